"""Random Fourier features with orthogonal directions."""

from dataclasses import dataclass

import numpy as np

from imparo.engine import Array, default_engine
from imparo.features.drawn import DIRECTIONS, RADII, stream
from imparo.features.fourier import FourierMap, WaveRule, amplitudes_of
from imparo.features.spectral import Spectrum
from imparo.persistence import persistent

# Directions that are made orthogonal together. It is part of the draw: with another one the
# last digits of the directions change.
_PANEL = 64


@persistent
@dataclass(frozen=True)
class Orthogonal(WaveRule):
    """Frequencies in blocks of d with orthogonal directions and independent lengths.

    Orthogonal random features (Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, 2016):
    directions are rows of a matrix from the Haar measure, lengths are those of the spectral
    measure, χ_d/σ for the Gaussian kernel and χ_d·√(2ν/χ²_{2ν})/σ for Matérn kernels. Each
    frequency has the law that it has in :class:`Fourier`, so that features are as free of
    bias; frequencies of one block repel each other, which makes the error smaller, most of
    all for rows that are near each other and for whole blocks.

    Parameters
    ----------
    form : {"pair", "cosine"}
        See :class:`Fourier`.

    Notes
    -----
    The Laplacian kernel is refused: its spectral measure is not invariant to rotations. Cost
    4dk² to draw k ≤ d directions of a block, and that of :class:`Fourier` to evaluate.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import Orthogonal
    >>> from imparo.kernels import Gaussian
    >>> map = Orthogonal().draw(Gaussian(1.0), n_columns=3, n_features=6, seed=0)
    >>> W = map.frequencies()
    >>> G = W @ W.T
    >>> bool(np.allclose(G, np.diag(np.diag(G))))
    True
    """

    def _check(self, spectrum: Spectrum, n_columns: int) -> None:
        check_round(spectrum, type(self).__name__)

    def _draw(self, spectrum: Spectrum, n_columns: int, size: int, seed: int) -> FourierMap:
        omega = np.empty((size, n_columns))
        for start in range(0, size, n_columns):
            rng = stream(seed, DIRECTIONS, start // n_columns)
            wanted = min(n_columns, size - start)
            omega[start : start + wanted] = haar_rows(n_columns, wanted, rng)
        omega *= lengths(spectrum, n_columns, size, seed)[:, None]
        omega /= spectrum.sigma
        return FourierMap(omega, amplitudes_of(spectrum, size), self._phases(size, seed))


def check_round(spectrum: Spectrum, rule: str) -> None:
    """Raise unless the law of frequencies is invariant to rotations."""
    if not spectrum.is_round:
        raise ValueError(
            f"{rule} needs a kernel that does not change when rows are rotated, and Laplacian "
            "sums absolute differences; use Fourier or QuasiMonteCarlo, or the kernel "
            "Matern(0.5)"
        )


def lengths(spectrum: Spectrum, n_columns: int, size: int, seed: int) -> Array:
    """Return lengths of frequencies at width 1: χ_d, stretched for Matérn kernels.

    Parameters
    ----------
    spectrum : Spectrum
    n_columns : int
        d.
    size : int
    seed : int

    Returns
    -------
    array of shape (size,)
    """
    chi = np.sqrt(stream(seed, RADII).chisquare(n_columns, size))
    return chi * spectrum.stretches(size, seed)


def haar_rows(d: int, wanted: int, rng: np.random.Generator) -> Array:
    """Return the first rows of a d × d orthogonal matrix from the Haar measure.

    Gaussian rows are made orthonormal in panels, each against those before it and then in
    itself by QR, with positive diagonals, twice: the result of Gram and Schmidt, of which
    the first rows do not depend on how many are wanted. Cost 4d·wanted².

    Parameters
    ----------
    d : int
    wanted : int
        At most d.
    rng : Generator

    Returns
    -------
    array of shape (wanted, d)
    """
    engine = default_engine()
    Q = np.empty((d, min(d, -(-wanted // _PANEL) * _PANEL)), order="F")
    for start in range(0, wanted, _PANEL):
        end = min(start + _PANEL, d)
        panel, before = rng.standard_normal((end - start, d)).T, Q[:, :start]
        for _ in range(2):  # once leaves errors where a panel is nearly in the span
            panel = panel - engine.product(before, engine.product(before.T, panel))
            panel, R = engine.orthonormalize(panel)
            panel = panel * np.sign(np.diagonal(R))
        Q[:, start:end] = panel
    return Q[:, :wanted].T
