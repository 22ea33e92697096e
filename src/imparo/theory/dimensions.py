"""Dimensions of a learning problem: d*, d_eff, d̃, 𝒩_∞ and leverage scores.

All are functions of the scores l_i(λ) = (K(K + nλI)⁻¹)_ii of the n rows (thesis, sections 4.2
and 4.3). Exact where an eigendecomposition of K is cheap. Else from a sample of s rows, of
which two estimates are known to lie on either side, in expectation:

- the sample's own d_eff(λ), as C ↦ Tr(C(C + λI)⁻¹) is concave;
- the mean of s·l_i/(1 − l_i), the scores of rows left out of the sample, as
  C ↦ Tr(A(C + λI)⁻¹) is convex.

The error bar is from the lower to the upper one, and two standard errors beyond; the value is
their geometric mean.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from imparo.centers.base import check_positive
from imparo.centers.scores import Dictionary, Scorer
from imparo.engine import Array, default_engine, parse_memory
from imparo.errors import MemoryBudgetError
from imparo.kernels import Kernel, Precomputed

#: Up to so many rows everything is exact: an eigendecomposition takes a second or two.
EXACT_ROWS = 2000
# Rows of which d̃ is the largest, where there are more.
_SCANNED = 20_000


@dataclass(frozen=True)
class Estimate:
    """A number with an error bar, and where it is from.

    Attributes
    ----------
    value, low, high : float
        Equal where the number is exact.
    source : str
        "exact", or what it was estimated from.
    """

    value: float
    low: float
    high: float
    source: str

    @property
    def exact(self) -> bool:
        """Whether it is not an estimate."""
        return self.source == "exact"

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.exact:
            return f"{self.value:.4g} (exact)"
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g}; {self.source})"


@dataclass(frozen=True)
class Dimensions:
    """The dimensions of one kernel, set of rows and penalty.

    d_eff ≤ d̃ ≤ κ²/λ and d_eff ≤ d* ≤ n, κ² the largest K(x, x).

    Attributes
    ----------
    penalty : float
        λ, on the scale of the mean loss.
    full : Estimate
        d* = rank K.
    effective : Estimate
        d_eff(λ) = Tr(K(K + nλI)⁻¹), which estimates 𝒩(λ).
    maximal : Estimate
        d̃(λ) = n·max_i (K(K + nλI)⁻¹)_ii, which estimates 𝒩_∞(λ) from below.
    bound : float
        κ²/λ, above all of them.
    """

    penalty: float
    full: Estimate
    effective: Estimate
    maximal: Estimate
    bound: float

    def __str__(self) -> str:
        return (
            f"λ = {self.penalty:.3g}\n"
            f"  d*    rank of K                     {self.full}\n"
            f"  d_eff effective dimension 𝒩(λ)      {self.effective}\n"
            f"  d̃     n times the largest leverage  {self.maximal}\n"
            f"  κ²/λ  above all                     {self.bound:.4g}"
        )


@dataclass(frozen=True, eq=False)
class Curve:
    """The effective dimension over a grid of penalties.

    Attributes
    ----------
    penalties, effective, low, high : arrays of shape (L,)
    """

    penalties: Array
    effective: Array
    low: Array
    high: Array


class KernelSpectrum:
    """Eigenvalues of a kernel matrix, of all rows or of a sample of them, for every λ.

    Cost 9s³ once for s rows, then s² for each λ; 3s² numbers.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    kernel : Kernel
        With its width.
    exact_rows : int
        Up to so many rows are taken as they are, else a sample of as many.
    random_state : int, RandomState or None
        For the sample.
    memory : int, str or None

    Attributes
    ----------
    rows : array of shape (s,)
        Positions of the rows used.
    n : int
        Number of rows in all.
    values : array of shape (s,)
        Eigenvalues of K of the rows used, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Linear
    >>> from imparo.theory import KernelSpectrum
    >>> spectrum = KernelSpectrum(np.array([[1.0], [2.0]]), Linear())
    >>> round(spectrum.effective(0.5).value, 4), spectrum.full.value
    (0.8333, 1.0)
    """

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        *,
        exact_rows: int = EXACT_ROWS,
        random_state: Any = None,
        memory: Any = None,
    ) -> None:
        if kernel.needs_sigma:
            raise ValueError(
                f"the width of {kernel!r} is not set; give a kernel with its width"
            )
        whole = isinstance(exact_rows, int | np.integer) and not isinstance(exact_rows, bool)
        if not (whole and exact_rows > 0):
            raise ValueError(f"exact_rows={exact_rows!r} must be a whole number above 0")
        if isinstance(kernel, Precomputed):
            raise ValueError(
                "dimensions need a kernel that is a function of two rows, not a precomputed "
                "matrix; give another kernel"
            )
        self.kernel, self.n = kernel, int(X.shape[0])
        if self.n == 0:
            raise ValueError("there are no rows; give at least one")
        self._X, self._memory = X, parse_memory(memory)
        self.rows = np.arange(self.n)
        if self.n > exact_rows:
            rng = check_random_state(random_state)
            self.rows = np.sort(rng.choice(self.n, exact_rows, replace=False))
        size = len(self.rows)
        need = 3 * 8 * size**2
        if need > self._memory:
            raise MemoryBudgetError(
                f"the spectrum of {size:,} rows needs {need:,} bytes and memory is "
                f"{self._memory:,}; lower exact_rows or raise memory"
            )
        Z = X[self.rows].astype(np.float64)
        K = kernel(Z)
        if not np.isfinite(K).all():
            raise ValueError(
                f"the kernel {kernel!r} gives NaN or infinity on these rows; give finite "
                "numbers, and scale the columns of X"
            )
        self.diagonal = np.diagonal(K).copy()
        values, self._Q = default_engine().eigh(K, overwrite=True)
        # What is below rounding errors of the largest one is 0.
        self.noise = size * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
        self.values = np.where(values > self.noise, values, 0.0)

    @property
    def exact(self) -> bool:
        """Whether all rows are used."""
        return len(self.rows) == self.n

    @cached_property
    def _squares(self) -> Array:
        return np.square(self._Q)

    @property
    def vectors(self) -> Array:
        """Eigenvectors, in the columns, shape (s, s)."""
        return self._Q

    @property
    def norm(self) -> float:
        """‖C‖, the largest eigenvalue of K/n."""
        return float(self.values[-1] / len(self.values))

    @cached_property
    def bound(self) -> float:
        """κ², the bound of the kernel, or the largest K(x, x) of all rows."""
        bound = self.kernel.bound
        return float(bound if np.isfinite(bound) else self.kernel.diagonal(self._X).max())

    def leverage_scores(self, penalty: float) -> Array:
        """Return (K(K + sλI)⁻¹)_ii of the rows used; for the others see :func:`leverage`.

        Parameters
        ----------
        penalty : float
            λ > 0.

        Returns
        -------
        array of shape (s,)
            Between 0 and 1.
        """
        check_positive("penalty", penalty)
        shares = self.values / (self.values + penalty * len(self.values))
        return np.clip(self._squares @ shares, 0.0, 1.0)

    @property
    def full(self) -> Estimate:
        """d* = rank K: eigenvalues above rounding errors. Of a sample, a lower bound."""
        rank = float(np.count_nonzero(self.values))
        if self.exact:
            return Estimate(rank, rank, rank, "exact")
        size = len(self.rows)
        # A sample of full rank tells only that there is no less.
        high = rank if rank < size / 2 else float(self.n)
        return Estimate(rank, rank, high, self.sample)

    @property
    def sample(self) -> str:
        """How many rows are used, in words."""
        return f"{len(self.rows):,} of {self.n:,} rows"

    def effective(self, penalty: float) -> Estimate:
        """Return d_eff(λ) = Tr(K(K + nλI)⁻¹).

        Parameters
        ----------
        penalty : float

        Returns
        -------
        Estimate
        """
        scores = self.leverage_scores(penalty)
        if self.exact:
            total = float(scores.sum())
            return Estimate(total, total, total, "exact")
        inside, outside = scores * len(scores), self._left_out(scores)
        low, high = float(inside.mean()), float(outside.mean())
        below, above = (
            2 * float(side.std() / np.sqrt(len(side))) for side in (inside, outside)
        )
        # No more than there are rows, and than κ²/λ.
        most = min(float(self.n), self.bound / penalty)
        return Estimate(
            min(float(np.sqrt(low * high)), most), max(low - below, 0.0),
            min(high + above, most), self.sample,
        )  # fmt: skip

    def _left_out(self, scores: Array) -> Array:
        """Return ⟨K_x, (C + λI)⁻¹K_x⟩ with C of the other rows of the sample."""
        tiny = np.finfo(np.float64).eps
        return len(scores) * scores / np.maximum(1 - scores, tiny)

    def maximal(self, penalty: float) -> Estimate:
        """Return d̃(λ) = n·max_i (K(K + nλI)⁻¹)_ii.

        Of many rows, the scores of 20,000 by a sample: cost 20,000·s². The largest score of
        all rows may be larger still; κ²/λ bounds it.

        Parameters
        ----------
        penalty : float

        Returns
        -------
        Estimate
        """
        scores = self.leverage_scores(penalty)
        if self.exact:
            top = float(self.n * scores.max())
            return Estimate(top, top, top, "exact")
        most = min(float(self.n), self.bound / penalty)
        seen = self._scores_of_many(penalty)
        low = float(len(scores) * scores.max())
        high = float(max(self._left_out(scores).max(), self.n * seen.max()))
        value = min(float(self.n * seen.max()), most)
        source = f"{self.sample}, largest of {len(seen):,}"
        return Estimate(value, min(low, value), min(max(high, value), most), source)

    def _scores_of_many(self, penalty: float) -> Array:
        """Return scores of up to 20,000 rows, by the sample (T-approximate)."""
        rest = np.setdiff1d(np.arange(self.n), self.rows)
        if len(rest) > _SCANNED:
            rest = rest[np.random.RandomState(0).choice(len(rest), _SCANNED, replace=False)]
        scorer = Scorer(self.kernel, self._X, self._memory)
        weights = np.full(len(self.rows), self.n / len(self.rows))
        return scorer.scores(Dictionary(self.rows, weights), penalty, np.sort(rest))

    def dimensions(self, penalty: float) -> Dimensions:
        """Return all dimensions at one penalty.

        Parameters
        ----------
        penalty : float

        Returns
        -------
        Dimensions
        """
        check_positive("penalty", penalty)
        bound = self.bound / penalty
        return Dimensions(
            penalty, self.full, self.effective(penalty), self.maximal(penalty), bound
        )

    def curve(self, penalties: Array) -> "Curve":
        """Return d_eff over a grid of penalties, with error bars.

        Parameters
        ----------
        penalties : array of shape (L,)

        Returns
        -------
        Curve
        """
        found = [self.effective(float(penalty)) for penalty in penalties]
        low, value, high = (
            np.array([getattr(e, name) for e in found]) for name in ("low", "value", "high")
        )
        return Curve(np.asarray(penalties), value, low, high)

    def decay(self) -> float:
        """Return the capacity exponent γ: 𝒩(λ) ≈ Qλ^{−γ}, by least squares over λ.

        Over the penalties at which d_eff is between 2 and a fifth of the rows used, where a
        sample knows it; 1 bounds it.

        Returns
        -------
        float
            Between 0 and 1.
        """
        if not self.values.any():
            return 0.0
        grid = self.bound * np.geomspace(1, 1e-12, 61)
        counts = np.array([np.sum(self.values / (self.values + t * len(self.values)))
                           for t in grid])  # fmt: skip
        inside = (counts > 2) & (counts < len(self.values) / 5)
        if np.count_nonzero(inside) < 3:
            return 0.0 if counts.max() <= 2 else 1.0
        slope = np.polyfit(np.log(grid[inside]), np.log(counts[inside]), 1)[0]
        return float(np.clip(-slope, 0.0, 1.0))


def dimensions_of(
    X: Any,
    kernel: Kernel,
    penalty: float,
    *,
    exact_rows: int = EXACT_ROWS,
    random_state: Any = None,
    memory: Any = None,
) -> Dimensions:
    """Return d*, d_eff(λ) and d̃(λ), exact for few rows, else estimated with error bars.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    kernel : Kernel
    penalty : float
        λ > 0, on the scale of the mean loss: the ridge is nλ.
    exact_rows : int
        Up to so many rows are taken as they are, else a sample of as many. Cost 9s³.
    random_state : int, RandomState or None
    memory : int, str or None

    Returns
    -------
    Dimensions

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian
    >>> from imparo.theory import dimensions_of
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = dimensions_of(X, Gaussian(1.0), 1e-3)
    >>> found.effective.value < found.maximal.value < found.bound
    True
    """
    spectrum = KernelSpectrum(
        X, kernel, exact_rows=exact_rows, random_state=random_state, memory=memory
    )
    return spectrum.dimensions(penalty)
