"""Random Fourier features by fast transforms: Fastfood and structured orthogonal ones."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from imparo.engine import Array, row_blocks
from imparo.features.drawn import DIRECTIONS, PERMUTATIONS, SIGNS, stream
from imparo.features.fourier import WaveMap, WaveRule, amplitudes_of
from imparo.features.hadamard import BLOCK, hadamard_transform
from imparo.features.orthogonal import check_round, lengths
from imparo.features.spectral import Spectrum
from imparo.persistence import persistent

# Sorf pads to this at least: with fewer columns signs alone are too little chance.
_FEWEST = 32


@dataclass(frozen=True, eq=False)
class StructuredMap(WaveMap):
    """Waves whose frequencies are, in blocks of p, the rows of diagonals and Hadamards.

    Parameters
    ----------
    n_columns : int
        d, padded with zeros to the power of two p.
    lengths : array of shape (f,)
        ‖ω‖ over the norm of a row of the product of the transforms.
    amplitudes : array of shape (f,)
    phases : array of shape (f,) or None
        For cosines; None for pairs.
    """

    n_columns: int
    lengths: Array
    amplitudes: Array
    phases: Array | None

    @property
    def n_columns_in(self) -> int:
        """Number d of columns of the rows."""
        return self.n_columns

    @property
    @abstractmethod
    def n_padded(self) -> int:
        """The power of two p that rows are padded to."""

    @abstractmethod
    def _transform(self, P: Array, block: int) -> Array:
        """Return the product of a block with padded rows, before lengths."""

    def frequencies(self) -> Array:
        """Return all ω as the rows of a matrix of shape (f, d): the map of the identity."""
        angles = self._angles(np.eye(self.n_columns), 0, len(self.lengths))
        return np.ascontiguousarray(angles.T)

    def _angles(self, X: Any, first: int, last: int) -> Array:
        p, (n, d) = self.n_padded, X.shape
        X = X.tocsr() if sparse.issparse(X) else X
        angles, lengths = np.empty((n, last - first), X.dtype), self.lengths.astype(X.dtype)
        for rows in row_blocks(n, max(1, BLOCK // p)):
            P = np.zeros((rows.stop - rows.start, p), X.dtype)
            P[:, :d] = X[rows].toarray() if sparse.issparse(X) else X[rows]
            for block in range(first // p, -(-last // p)):
                Z, at = self._transform(P, block), block * p
                use = slice(max(first, at), min(last, at + p))
                part = Z[:, use.start - at : use.stop - at]
                out = angles[rows, use.start - first : use.stop - first]
                np.multiply(part, lengths[use], out=out)
        return angles

    def _first(self, size: int) -> Self:
        phases = None if self.phases is None else self.phases[:size]
        return replace(
            self, lengths=self.lengths[:size], amplitudes=self.amplitudes[:size], phases=phases
        )


@persistent
@dataclass(frozen=True, eq=False)
class FastfoodMap(StructuredMap):
    """Waves with frequencies S·H·G·Π·H·B in blocks of p; see :class:`Fastfood`.

    Parameters
    ----------
    n_columns, lengths, amplitudes, phases
        See :class:`StructuredMap`.
    signs : array of int8 of shape (blocks, p)
        Diagonals B.
    permutations : array of int of shape (blocks, p)
        Π: row i of Πv is v[permutation[i]].
    gaussians : array of shape (blocks, p)
        Diagonals G, of length 1.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import Fastfood
    >>> from imparo.kernels import Gaussian
    >>> map = Fastfood().draw(Gaussian(1.0), n_columns=3, n_features=8, seed=0)
    >>> map.n_padded, map.frequencies().shape
    (4, (4, 3))
    """

    signs: Array
    permutations: Array
    gaussians: Array

    @property
    def n_padded(self) -> int:
        """The power of two p that rows are padded to."""
        return self.signs.shape[1]

    @property
    def reach(self) -> float:
        """p^{3/2} times the longest length: no entry of H·G·Π·H·B·x is larger than p^{3/2}."""
        p = self.n_padded
        return p**1.5 * max(1.0, float(self.lengths.max(initial=0.0)))

    def _transform(self, P: Array, block: int) -> Array:
        V = hadamard_transform(P * self.signs[block].astype(P.dtype))
        # Column-major: Π moves whole columns.
        V = np.take(V.T, self.permutations[block], axis=0)
        V *= self.gaussians[block].astype(P.dtype)[:, None]
        return hadamard_transform(V.T)


@persistent
@dataclass(frozen=True, eq=False)
class SorfMap(StructuredMap):
    """Waves with frequencies H·D₁·H·D₂·H·D₃ in blocks of p; see :class:`Sorf`.

    Parameters
    ----------
    n_columns, lengths, amplitudes, phases
        See :class:`StructuredMap`.
    signs : array of int8 of shape (blocks, 3, p)
        Diagonals D₃, D₂ and D₁.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import Sorf
    >>> from imparo.kernels import Gaussian
    >>> map = Sorf().draw(Gaussian(1.0), n_columns=33, n_features=8, seed=0)
    >>> map.n_padded, map.frequencies().shape
    (64, (4, 33))
    """

    signs: Array

    @property
    def n_padded(self) -> int:
        """The power of two p that rows are padded to."""
        return self.signs.shape[2]

    @property
    def reach(self) -> float:
        """p² times the longest length: no entry of H·D₁·H·D₂·H·D₃·x is larger than p²."""
        p = self.n_padded
        return p**2 * max(1.0, float(self.lengths.max(initial=0.0)))

    def _transform(self, P: Array, block: int) -> Array:
        for signs in self.signs[block].astype(P.dtype):
            P = hadamard_transform(P * signs)
        return P


class _StructuredRule(WaveRule):
    def _check(self, spectrum: Spectrum, n_columns: int) -> None:
        check_round(spectrum, type(self).__name__)
        if isinstance(spectrum.kernel.sigma, tuple):
            raise ValueError(
                f"{type(self).__name__} has one width for all columns; divide the columns of X "
                "by their widths and use sigma=1, or use Fourier or Orthogonal"
            )


@persistent
@dataclass(frozen=True)
class Fastfood(_StructuredRule):
    """Frequencies S·H·G·Π·H·B/(σ√p): products in p·log p (Le, Sarlós and Smola, 2013).

    H is Hadamard's matrix, B random signs, Π a random permutation, G Gaussian, and S gives
    each row the length χ_p (stretched for Matérn kernels). Rows are padded with zeros to the
    next power of two p, and blocks of p frequencies are stacked.

    A row of H·G·Π·H·B is G turned by an orthogonal matrix, so that its direction is uniform
    and independent of its length: each frequency has *exactly* the law that it has in
    :class:`Fourier`. Frequencies of a block are not independent: with whole blocks the
    squared error for rows near each other was 1.8 times that of independent ones.
    :class:`Sorf` is as fast and has less.

    Parameters
    ----------
    form : {"pair", "cosine"}
        See :class:`Fourier`.

    Notes
    -----
    The Laplacian kernel is refused, as its frequencies are not invariant to rotations. Cost
    16·np·log₂ p at most for n rows and p frequencies, where :class:`Fourier` has 2npd; memory
    four numbers a frequency. Faster from 512 columns on.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import Fastfood
    >>> from imparo.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> Phi = Fastfood().draw(Gaussian(1.0), 2, n_features=20_000, seed=0).transform(X)
    >>> bool(np.allclose(Phi @ Phi.T, Gaussian(1.0)(X), atol=0.02))
    True
    """

    def _draw(self, spectrum: Spectrum, n_columns: int, size: int, seed: int) -> FastfoodMap:
        p = power_of_two_from(n_columns)
        blocks = range(-(-size // p))
        G = np.array([stream(seed, DIRECTIONS, b).standard_normal(p) for b in blocks])
        G /= np.linalg.norm(G, axis=1, keepdims=True)
        # Rows of H·G·Π·H·B have the length √p then.
        scale = lengths(spectrum, p, size, seed) / np.sqrt(p) / spectrum.sigma
        return FastfoodMap(
            n_columns,
            scale,
            amplitudes_of(spectrum, size),
            self._phases(size, seed),
            np.array([random_signs(stream(seed, SIGNS, b), p) for b in blocks]),
            np.array([stream(seed, PERMUTATIONS, b).permutation(p) for b in blocks]),
            G,
        )


@persistent
@dataclass(frozen=True)
class Sorf(_StructuredRule):
    """Frequencies χ_p/σ · H·D₁·H·D₂·H·D₃: structured orthogonal random features.

    Three rounds of random signs D and of Hadamard's matrix (with HHᵀ = I) in the place of a
    Haar matrix (Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, 2016): the orthogonal rows
    of :class:`Orthogonal` at the cost of :class:`Fastfood`. Rows are padded with zeros to a
    power of two p of at least 32, and blocks of p frequencies are stacked.

    Two things differ from the paper, for the sake of the bias. Lengths are χ_p (stretched for
    Matérn kernels), not all equal to √p: equal lengths put E φ(x)ᵀφ(x') off by up to 0.6/p.
    And p is at least 32, as signs give directions that are only nearly uniform: for p = 2
    they put it off by up to 0.2, for p = 8 by 0.03, from p = 32 on by no more than 0.001,
    which 10⁶ features would show. :class:`Orthogonal` and :class:`Fastfood` have no bias.

    Parameters
    ----------
    form : {"pair", "cosine"}
        See :class:`Fourier`.

    Notes
    -----
    The Laplacian kernel is refused, as its frequencies are not invariant to rotations. Cost
    24·np·log₂ p at most for n rows and p frequencies, where :class:`Fourier` has 2npd; memory
    two numbers and three bytes a frequency. Faster from 512 columns on.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import Sorf
    >>> from imparo.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(3, 40)) / 8
    >>> Phi = Sorf().draw(Gaussian(1.0), 40, n_features=20_000, seed=0).transform(X)
    >>> bool(np.allclose(Phi @ Phi.T, Gaussian(1.0)(X), atol=0.02))
    True
    """

    def _draw(self, spectrum: Spectrum, n_columns: int, size: int, seed: int) -> SorfMap:
        p = max(_FEWEST, power_of_two_from(n_columns))
        blocks = range(-(-size // p))
        scale = lengths(spectrum, p, size, seed) / p**1.5 / spectrum.sigma
        signs = [random_signs(stream(seed, SIGNS, b), (3, p)) for b in blocks]
        return SorfMap(
            n_columns,
            scale,
            amplitudes_of(spectrum, size),
            self._phases(size, seed),
            np.array(signs),
        )


def power_of_two_from(d: int) -> int:
    """Return the smallest power of two that is not below d."""
    return 1 << (d - 1).bit_length()


def random_signs(rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
    """Return ±1 with equal probabilities, as int8."""
    return (2 * rng.integers(0, 2, shape) - 1).astype(np.int8)
