"""The spline model of the thesis' simulation: one column, and a peak of known smoothness."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import gamma as gamma_function
from scipy.special import zetac

from imparo.data.synthetic.base import Law, Sample, check_between, sample_of, seed_from
from imparo.engine import Array

# Terms of a power series that gains two bits a term.
_TERMS = 40
# Two terms of the series cancel beside odd orders. The mean of this far to both sides is
# within 1e-9 of the function there.
_ASIDE = 1e-5


@dataclass(frozen=True)
class SplineLaw(Law):
    """Rows uniform on [0, 1], outputs f(x) = K_p(x, x₀) plus normal noise.

    Parameters
    ----------
    r, gamma : float
        Smoothness of f, in [1/2, 1], and size of the space, in (0, 1/2).
    noise : float
        Standard deviation of the noise.
    epsilon : float
        Smoothness beyond r.
    x0 : float
        Where f has its peak, in [0, 1].
    """

    r: float
    gamma: float
    noise: float
    epsilon: float
    x0: float

    d = 1

    @property
    def order(self) -> float:
        """The power p = r/γ + 1/2 + ε by which the coefficients of f fall."""
        return self.r / self.gamma + 0.5 + self.epsilon

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return n rows and their noisy outputs."""
        X = rng.random((n, 1))
        return X, self.function(X) + self.noise * rng.standard_normal(n)

    def function(self, X: Any) -> Array:
        """Return f(x) = 1 + Σ_{k≥1} 2cos(2πk(x − x₀))/k^p, to nine digits or more."""
        turn = np.abs(np.asarray(X, np.float64)[:, 0] - self.x0)
        return 1 + 2 * _cosines(2 * np.pi * np.minimum(turn, 1 - turn), self.order)

    def coefficients(self, count: int) -> Array:
        """Return the Fourier coefficients k^{−p} of f, k = 1 … count.

        Parameters
        ----------
        count : int
        """
        return np.arange(1, count + 1) ** -self.order

    def eigenvalues(self, count: int) -> Array:
        """Return the eigenvalues k^{−1/γ} of the kernel K_{1/γ}, k = 1 … count.

        Each has two eigenfunctions, √2cos 2πkx and √2sin 2πkx; that of the constant is 1.

        Parameters
        ----------
        count : int
        """
        return np.arange(1, count + 1) ** (-1 / self.gamma)

    @property
    def bayes_error(self) -> float:
        """The variance of the noise."""
        return float(self.noise**2)


def spline(
    n: int,
    r: float = 0.5,
    gamma: float = 0.25,
    *,
    noise: float = 0.1,
    epsilon: float = 0.01,
    x0: float = 0.5,
    rng: Any = None,
) -> Sample:
    """Return rows of the spline model, for which all excess risks are known.

    x is uniform on [0, 1] and y = f(x) + noise with f = K_{r/γ+1/2+ε}(·, x₀), where
    K_q(x, x') = 1 + Σ_{k≥1} 2cos(2πk(x − x'))/k^q is the spline kernel of order q (Wahba,
    eq. 2.1.7). With the kernel K_{1/γ} this has the smoothness r and the effective dimension
    λ^{−γ} of the theorems: section 5.4 of the thesis, which has (r, γ) = (11/16, 1/8) and
    (7/8, 1/4). :func:`imparo.theory.simulate_rates` runs its experiment.

    Parameters
    ----------
    n : int
        Number of rows.
    r, gamma : float
        Smoothness of f, in [1/2, 1], and size of the space, in (0, 1/2).
    noise : float
        Standard deviation of the noise.
    epsilon : float
        Smoothness beyond r, above 0.
    x0 : float
        Where f has its peak, in [0, 1].
    rng : int, Generator or None
        Where random numbers come from.

    Returns
    -------
    Sample
        ``X, y = spline(1000)``; ``sample.law`` is a :class:`SplineLaw`.

    Examples
    --------
    >>> from imparo.data.synthetic import spline
    >>> sample = spline(1000, r=7 / 8, gamma=1 / 4, rng=0)
    >>> sample.X.shape, round(float(sample.law.function([[0.5]])[0]), 3)
    ((1000, 1), 3.163)
    """
    check_between("r", r, 0.5, 1, closed=True)
    check_between("gamma", gamma, 0, 0.5)
    check_between("noise", noise, 0)
    check_between("epsilon", epsilon, 0)
    check_between("x0", x0, 0, 1, closed=True)
    law = SplineLaw(float(r), float(gamma), float(noise), float(epsilon), float(x0))
    return sample_of(law, n, seed_from(rng))


# The kernel itself is imparo.kernels.Spline; data stand below kernels and cannot use it.


def _cosines(theta: Array, p: float) -> Array:
    """Return Σ_{k≥1} cos(kθ)/k^p for 0 ≤ θ ≤ π and p > 1.

    By its expansion at 0, Γ(1 − p)sin(πp/2)θ^{p−1} + Σ_j (−1)^j ζ(p − 2j)θ^{2j}/(2j)!.
    """
    if p > 40:
        # 2^−40 is the second term.
        return np.cos(theta) + 2.0**-p * np.cos(2 * theta)
    if abs(p - round(p)) < _ASIDE:
        return (_cosines(theta, p - 2 * _ASIDE) + _cosines(theta, p + 2 * _ASIDE)) / 2
    leading, coefficients = _expansion(p)
    square, total = np.square(theta), np.zeros_like(theta)
    for coefficient in coefficients[::-1]:
        total = total * square + coefficient
    return total + leading * theta ** (p - 1)


@cache
def _expansion(p: float) -> tuple[float, tuple[float, ...]]:
    j = np.arange(_TERMS)
    signs = np.where(j % 2, -1.0, 1.0)
    series = signs * (1 + zetac(p - 2 * j)) / gamma_function(2 * j + 1.0)
    return float(gamma_function(1 - p) * np.sin(np.pi * p / 2)), tuple(series.tolist())
