"""Random Fourier features: independent frequencies from the spectral measure."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from imparo.centers.base import check_whole
from imparo.engine import Array, default_engine, engine_holding, engine_of, is_tensor
from imparo.features.base import FeatureRule
from imparo.features.drawn import DIRECTIONS, PHASES, DrawnMap, check_number, stream
from imparo.features.sent import sent
from imparo.features.spectral import Spectrum, spectrum_of
from imparo.features.waves import cosine_waves, wave_pairs
from imparo.kernels import Kernel, Laplacian
from imparo.persistence import persistent


class WaveMap(DrawnMap):
    """Features that are waves over the rows: a·cos(ωᵀx + b), or a·cos ωᵀx and a·sin ωᵀx.

    Attributes
    ----------
    amplitudes : array of shape (f,)
        a; √2 for a kernel with K(x, x) = 1.
    phases : array of shape (f,) or None
        b; None for pairs.
    """

    amplitudes: Array
    phases: Array | None

    @property
    def step(self) -> int:
        """2 for pairs, 1 for cosines."""
        return 2 if self.phases is None else 1

    @property
    def n_given(self) -> int:  # type: ignore[override]  # follows from the frequencies
        """Number m of features."""
        return self.step * len(self.amplitudes)

    @property
    @abstractmethod
    def reach(self) -> float:
        """An upper bound of |ωᵀx|, and of all sums on the way to it, where |x_i| ≤ 1."""

    @abstractmethod
    def frequencies(self) -> Array:
        """Return all ω as the rows of a matrix of shape (f, d), in float64."""

    @abstractmethod
    def _angles(self, X: Any, first: int, last: int) -> Array:
        """Return ωᵀx for some frequencies, in a new row-major array."""

    def evaluate(self, X: Any, start: int = 0, stop: int | None = None) -> Array:
        """Return columns ``start`` to ``stop`` of ψ.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        start, stop : int
            All columns if left out.

        Returns
        -------
        array of shape (n, stop − start)
            Row-major; float32 if X is, float64 otherwise.
        """
        if is_tensor(X):
            return self._evaluate_there(X, start, self.n_given if stop is None else stop)
        X, start, stop = self._checked(X, start, stop)
        self._check_size(X)
        first, last = start // self.step, -(-stop // self.step)
        angles, amplitudes = self._angles(X, first, last), self.amplitudes[first:last]
        if self.phases is not None:
            return cosine_waves(angles, self.phases[first:last], amplitudes)
        pairs = wave_pairs(angles, amplitudes)
        skipped = start - 2 * first
        return np.ascontiguousarray(pairs[:, skipped : skipped + stop - start])

    @property
    def portable(self) -> bool:
        """Whether :meth:`evaluate` takes tensors: all waves do, by products with all ω."""
        return True

    def _evaluate_there(self, X: Any, start: int, stop: int) -> Array:
        """Return columns of ψ on the device of X: fast transforms would gain nothing there."""
        engine: Any = engine_of(X)
        xp, dtype = engine.xp, engine.type_of(X)
        self._check_size(X)
        first, last = start // self.step, -(-stop // self.step)
        some = slice(first, last)
        angles = X @ sent(self, "omega", self._all_frequencies, engine, dtype)[some].T
        amplitudes = sent(self, "amplitudes", self.amplitudes, engine, dtype)[some]
        if self.phases is not None:
            angles += sent(self, "phases", self.phases, engine, dtype)[some]
            return xp.cos(angles, out=angles).mul_(amplitudes)
        pairs = xp.stack([xp.cos(angles), xp.sin(angles)], axis=2)
        pairs *= amplitudes[:, None]
        skipped = start - 2 * first
        return pairs.reshape(len(X), -1)[:, skipped : skipped + stop - start]

    @cached_property
    def _all_frequencies(self) -> Array:
        return self.frequencies()

    def _check_size(self, X: Any) -> None:
        if 0 in X.shape:
            return
        largest = max(float(X.max()), -float(X.min()))
        dtype = engine_holding(X).type_of(X)
        if self.reach > float(np.finfo(dtype).max) / max(largest, 1.0):
            raise ValueError(
                f"X has entries up to {largest:.2g}, for which the angles of random features "
                f"overflow {dtype}; scale the columns of X, for instance with StandardScaler"
            )

    def picked(self, positions: Array, weights: Array) -> "FourierMap":
        """Return the map of some of the frequencies, each times a weight."""
        phases = None if self.phases is None else self.phases[positions]
        amplitudes = self.amplitudes[positions] * weights
        return FourierMap(self.frequencies()[positions], amplitudes, phases)


@persistent
@dataclass(frozen=True, eq=False)
class FourierMap(WaveMap):
    """Waves with any frequencies: what all rules draw that have no faster product.

    Parameters
    ----------
    omega : array of shape (f, d)
        Frequencies.
    amplitudes : array of shape (f,)
    phases : array of shape (f,), optional
        For cosines; pairs if left out.

    Notes
    -----
    Cost 2nfd, and an evaluation of the tangent for each row and frequency.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import FourierMap
    >>> map = FourierMap(np.array([[np.pi], [2 * np.pi]]), np.ones(2))
    >>> map.evaluate(np.array([[0.5], [1.0]])).round(12) + 0.0
    array([[ 0.,  1., -1.,  0.],
           [-1.,  0.,  1.,  0.]])
    """

    omega: Array
    amplitudes: Array
    phases: Array | None = None

    @property
    def n_columns_in(self) -> int:
        """Number d of columns of the rows."""
        return self.omega.shape[1]

    @cached_property
    def reach(self) -> float:
        """The largest Σ|ω_i|."""
        return float(np.abs(self.omega).sum(axis=1).max(initial=0.0))

    def frequencies(self) -> Array:
        """Return all ω as the rows of a matrix of shape (f, d)."""
        return self.omega

    def _angles(self, X: Any, first: int, last: int) -> Array:
        omega = self.omega[first:last].astype(X.dtype, copy=False)
        return default_engine().product(X, omega.T)

    def _first(self, size: int) -> Self:
        phases = None if self.phases is None else self.phases[:size]
        return type(self)(self.omega[:size], self.amplitudes[:size], phases)


@dataclass(frozen=True)
class WaveRule(FeatureRule):
    """A rule that draws frequencies.

    Parameters
    ----------
    form : {"pair", "cosine"}
        √2·cos ωᵀx and √2·sin ωᵀx for each frequency, or √2·cos(ωᵀx + b) with a phase b,
        uniform on [0, 2π].
    """

    form: str = "pair"

    def __post_init__(self) -> None:
        if self.form not in ("pair", "cosine"):
            raise ValueError(
                f"form={self.form!r} is not known; give 'pair', for the cosine and the sine of "
                "each frequency, or 'cosine', for a cosine with a random phase"
            )

    @property
    def step(self) -> int:
        """2 for pairs, 1 for cosines."""
        return 2 if self.form == "pair" else 1

    def check(self, kernel: Kernel, n_columns: int) -> None:
        """Raise unless the rule has features of this kernel for rows of so many columns.

        Parameters
        ----------
        kernel : Kernel
            Its width may not be set yet.
        n_columns : int
        """
        check_whole("n_columns", n_columns)
        spectrum = spectrum_of(kernel, type(self).__name__)
        widths = spectrum.kernel.sigma
        if isinstance(widths, tuple) and len(widths) != n_columns:
            raise ValueError(
                f"the kernel has {len(widths)} widths and the rows have {n_columns} columns; "
                "give a width for every column"
            )
        self._check(spectrum, int(n_columns))

    def draw(
        self, kernel: Kernel, n_columns: int, n_features: int, seed: int, rows: Any = None
    ) -> WaveMap:
        """Draw features; see :meth:`FeatureRule.draw`. Rows are not looked at."""
        self.check(kernel, n_columns)
        check_number(self, n_features)
        spectrum = spectrum_of(kernel, type(self).__name__)
        return self._draw(spectrum, int(n_columns), int(n_features) // self.step, seed)

    def _check(self, spectrum: Spectrum, n_columns: int) -> None:
        """Raise where the rule has no features of a kernel that others have."""

    @abstractmethod
    def _draw(self, spectrum: Spectrum, n_columns: int, size: int, seed: int) -> WaveMap:
        """Draw ``size`` frequencies, from checked arguments."""

    def _phases(self, size: int, seed: int) -> Array | None:
        if self.form == "pair":
            return None
        return stream(seed, PHASES).uniform(0.0, 2 * np.pi, size)


def amplitudes_of(spectrum: Spectrum, size: int) -> Array:
    """Return the amplitudes of waves that are drawn from the spectral measure itself."""
    return np.full(size, np.sqrt(2.0) * spectrum.amplitude)


@persistent
@dataclass(frozen=True)
class Fourier(WaveRule):
    """Independent frequencies from the spectral measure (thesis, section 5.3).

    With ω from the Fourier transform of K (Rahimi and Recht, 2007), √2·cos(ωᵀx + b) has
    E ψ(x)ψ(x') = K(x, x'). With m columns its variance is (v + ½)/m, where v is that of
    cos ωᵀ(x − x'), half of it from the phase; m/2 pairs have 2v/m. That is never more for
    the Gaussian and the Laplacian kernel, nothing at x = x', and half of the products.

    Parameters
    ----------
    form : {"pair", "cosine"}
        Columns √2·cos ωᵀx, √2·sin ωᵀx in turn, or √2·cos(ωᵀx + b), b ~ U[0, 2π].

    Notes
    -----
    Frequencies of the Gaussian kernel are N(0, σ⁻²I): the thesis prints σ² in chapter 8.
    Those of the Laplacian kernel are Cauchy, those of Matérn kernels Student's t, over σ.
    The error is of the order of 1/√m. Cost md to draw, nmd for n rows in pairs and 2nmd in
    cosines.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import Fourier
    >>> from imparo.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> map = Fourier().draw(Gaussian(1.0), n_columns=2, n_features=20_000, seed=0)
    >>> Phi = map.transform(X)
    >>> bool(np.allclose(Phi @ Phi.T, Gaussian(1.0)(X), atol=0.02))
    True
    """

    def _draw(self, spectrum: Spectrum, n_columns: int, size: int, seed: int) -> FourierMap:
        rng = stream(seed, DIRECTIONS)
        if isinstance(spectrum.kernel, Laplacian):
            omega = rng.standard_cauchy((size, n_columns))
        else:
            omega = rng.standard_normal((size, n_columns))
            omega *= spectrum.stretches(size, seed)[:, None]
        omega /= spectrum.sigma
        return FourierMap(omega, amplitudes_of(spectrum, size), self._phases(size, seed))
