"""Functions of a kernel's space, with noise of a chosen strength."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from imparo.data.synthetic.base import (
    Law,
    Sample,
    check_between,
    check_count,
    sample_of,
    seed_from,
)
from imparo.engine import Array

#: Returns the kernel matrix of two blocks of rows.
KernelFunction = Callable[[Any, Any], Array]

# Eigenvalues below this share of the largest are rounding errors.
_NOTHING = 1e-12


@dataclass(frozen=True)
class GaussianBump:
    """The Gaussian kernel exp(−‖x − x'‖²/2σ²), for data alone.

    Parameters
    ----------
    sigma : float
    """

    sigma: float

    def __call__(self, X: Any, Z: Any) -> Array:
        """Return the kernel matrix of two blocks of rows."""
        return np.exp(cdist(X, Z, "sqeuclidean") / (-2 * self.sigma**2))


@dataclass(frozen=True, eq=False)
class RKHSLaw(Law):
    """Standard normal rows, outputs f(x) = Σ_j α_j K(x, z_j) plus normal noise.

    Parameters
    ----------
    kernel : callable
    centers : array of shape (m, d)
        The z_j.
    weights : array of shape (m,)
        The α_j.
    noise : float
        Standard deviation of the noise.
    """

    kernel: KernelFunction
    centers: Array
    weights: Array
    noise: float

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return int(self.centers.shape[1])

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return n rows and their noisy outputs."""
        X = rng.standard_normal((n, self.d))
        return X, self.function(X) + self.noise * rng.standard_normal(n)

    def function(self, X: Any) -> Array:
        """Return f at every row, O(nmd)."""
        return np.asarray(self.kernel(np.asarray(X), self.centers)) @ self.weights

    @cached_property
    def norm(self) -> float:
        """‖f‖ in the space of the kernel, (αᵀKα)^{1/2}."""
        K = np.asarray(self.kernel(self.centers, self.centers))
        return float(np.sqrt(max(self.weights @ K @ self.weights, 0.0)))

    @property
    def snr(self) -> float:
        """‖f‖²/noise²."""
        return (self.norm / self.noise) ** 2

    def snr_at(self, X: Any) -> float:
        """Return the SNR for rows that are given: μᵀK_n⁺μ/noise², μ = f(X).

        This is the thesis' definition, of a fixed design. It is below :attr:`snr`, as f_opt
        is the part of f that the rows tell apart, and near it where they are many. O(n³).

        Parameters
        ----------
        X : array of shape (n, d)
        """
        values, vectors = np.linalg.eigh(np.asarray(self.kernel(np.asarray(X), np.asarray(X))))
        there = values > _NOTHING * values[-1]
        parts = vectors[:, there].T @ self.function(X)
        return float(np.sum(parts**2 / values[there]) / self.noise**2)

    @property
    def bayes_error(self) -> float:
        """The variance of the noise."""
        return float(self.noise**2)


def rkhs_function(
    n: int,
    d: int,
    snr: float,
    *,
    kernel: KernelFunction | None = None,
    sigma: float | None = None,
    centers: int = 20,
    norm: float = 1.0,
    rng: Any = None,
) -> Sample:
    """Return noisy values of a random function of a kernel's space.

    x is standard normal in d dimensions and y = f(x) + noise, where f = Σ_j α_j K(·, z_j) with
    normal α_j and z_j drawn like x, scaled to ‖f‖ = ``norm``. The variance of the noise is
    ‖f‖²/SNR: SNR is ‖f_opt‖²/σ² as in section 4.3.2 of the thesis (eq. for SNR), where it
    says with the dimension d̃ which of NYTRO, Nyström, early stopping and the exact method is
    the fastest (section 4.3.3, figure). The best penalty is λ* = 1/SNR there. It is not the
    ratio of variances: f of norm 1 may be much smaller than 1 at most x.

    Parameters
    ----------
    n, d : int
        Numbers of rows and columns.
    snr : float
        Above 0.
    kernel : callable, optional
        Of two blocks of rows, such as a kernel of :mod:`imparo.kernels`; the Gaussian one of
        width ``sigma`` if left out.
    sigma : float, optional
        √d if left out. Smaller ones make the dimension larger, as more columns do.
    centers : int
        Number m of the z_j.
    norm : float
        ‖f‖.
    rng : int, Generator or None
        Where random numbers come from.

    Returns
    -------
    Sample
        ``X, y = rkhs_function(1000, 3, 100)``; ``sample.law`` is an :class:`RKHSLaw`.

    Examples
    --------
    >>> from imparo.data.synthetic import rkhs_function
    >>> sample = rkhs_function(1000, d=3, snr=100, rng=0)
    >>> round(sample.law.snr), round(sample.bayes_error, 4), sample.X.shape
    (100, 0.01, (1000, 3))
    """
    check_count("d", d)
    check_count("centers", centers)
    check_between("snr", snr, 0)
    check_between("norm", norm, 0)
    if kernel is None:
        if sigma is not None:
            check_between("sigma", sigma, 0)
        kernel = GaussianBump(float(np.sqrt(d) if sigma is None else sigma))
    elif sigma is not None:
        raise ValueError("sigma is for the kernel that is used if none is given; leave it out")
    seed = seed_from(rng)
    # A stream of its own: more rows do not change the function.
    own = np.random.default_rng([seed, 0, 1])
    Z, weights = own.standard_normal((centers, d)), own.standard_normal(centers)
    size = RKHSLaw(kernel, Z, weights, 1.0).norm
    if not size > 0:
        raise ValueError("the kernel is 0 at all centers; give another kernel or more centers")
    law = RKHSLaw(kernel, Z, weights * (norm / size), float(norm / np.sqrt(snr)))
    return sample_of(law, n, seed)
