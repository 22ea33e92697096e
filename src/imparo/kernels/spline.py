"""The periodic spline kernels of the simulation in chapter 5 (Wahba, eq. 2.1.7)."""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import gamma, zeta, zetac

from imparo.engine import Array, Engine
from imparo.kernels.base import Kernel, ones
from imparo.persistence import persistent

# The power series in θ/2π ≤ 1/2 gains a bit a term; this many reach float64.
_TERMS = 64


@persistent
@dataclass(frozen=True)
class Spline(Kernel):
    """K_q(x, x') = 1 + Σ_{k≥1} 2cos(2πk(x − x'))/k^q on [0, 1], any real q > 1.

    For one column. As ∫K_q(ω, x)K_q(ω, x')dω = K_{2q}(x, x'), everything about these
    kernels is diagonal in the Fourier basis: see chapter 5 of the thesis, numerical
    results.

    Parameters
    ----------
    q : float
        Order, above 1; eigenvalues fall as k^{−q}.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Spline
    >>> Spline(q=2)(np.array([[0.0], [0.5]])).round(4)  # 1 + π²/3, 1 − π²/6
    array([[ 4.2899, -0.6449],
           [-0.6449,  4.2899]])
    """

    q: float = 2.0
    portable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 < self.q < np.inf:
            raise ValueError(f"the order q of Spline must be above 1, not {self.q!r}")

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        for rows in (X, Z):
            if rows.shape[1] != 1:
                raise ValueError(
                    f"the spline kernel takes one column and X has {rows.shape[1]}; use the "
                    "Gaussian or a Matérn kernel"
                )
            if rows.size and (rows.min() < 0 or rows.max() > 1):
                raise ValueError(
                    "the spline kernel is defined on [0, 1] and X goes from "
                    f"{rows.min():.3g} to {rows.max():.3g}; scale the column first"
                )
        turn = np.abs(X - Z.T)
        # |x − x'| and 1 − |x − x'| are the same angle; the smaller converges faster.
        theta = 2 * np.pi * np.minimum(turn, 1 - turn)
        K = 1 + 2 * cosine_series(theta, float(self.q))
        return K.astype(np.result_type(X, Z, np.float32), copy=False)

    def diagonal(self, X: Any) -> Array:
        """Return 1 + 2ζ(q) for every row."""
        return self.bound * ones(X)

    @property
    def bound(self) -> float:
        """1 + 2ζ(q)."""
        return float(1 + 2 * zeta(self.q))


def cosine_series(theta: Array, q: float) -> Array:
    """Return Σ_{k≥1} cos(kθ)/k^q for 0 ≤ θ ≤ π, to full precision.

    The real part of the polylogarithm Li_q(e^{iθ}), by its expansion at θ = 0: a
    power of θ (or θ^{q−1}log θ where q is odd) and an even power series whose
    coefficients are ζ(q − 2j)(−1)^j/(2j)!. The direct sum needs 10^16 terms for q = 2.
    """
    if q > 60:
        # The second term is below the rounding of the first, and θ^{q−1} may overflow.
        return np.cos(theta, dtype=np.float64)
    q = _away_from_poles(q)
    leading, coefficients = _expansion(q)
    total = np.zeros_like(theta, dtype=np.float64)
    square = np.square(theta, dtype=np.float64)
    for coefficient in coefficients[::-1]:
        total *= square
        total += coefficient
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.power(theta, q - 1, dtype=np.float64)
        if q % 2 == 1:
            harmonic = sum(1 / k for k in range(1, int(q)))
            power *= harmonic - np.log(theta, dtype=np.float64)
    power[theta == 0] = 0.0
    return total + leading * power


def _away_from_poles(q: float) -> float:
    """Return the odd number that is within 1e-8 of q > 2, or else q.

    Beside an odd q two terms of the expansion are as large as 1/|q − odd| and cancel;
    the series itself changes by less than 1e-8.
    """
    odd = 2 * round((q - 1) / 2) + 1
    return float(odd) if odd > 1 and abs(q - odd) < 1e-8 else q


@cache
def _expansion(q: float) -> tuple[float, tuple[float, ...]]:
    odd = 2 * round((q - 1) / 2) + 1
    is_odd = q == odd
    coefficients, factorial = [], 1.0
    for j in range(_TERMS):
        if j > 0:
            factorial *= (2 * j - 1) * (2 * j)
        at = q - 2 * j
        value = 0.0 if is_odd and at == 1 else 1 + zetac(at)
        coefficients.append(value * (-1) ** j / factorial)
    if is_odd:
        leading = (-1) ** ((int(q) - 1) // 2) / gamma(q)
    else:
        # Γ(1 − q)cos(π(q − 1)/2) without the poles of Γ at even q; the cosine of πq/2 as
        # a sine, which keeps its digits beside odd q.
        cosine = (-1) ** ((odd + 1) // 2) * np.sin(np.pi * (q - odd) / 2)
        leading = np.pi / (2 * gamma(q) * cosine)
    return float(leading), tuple(coefficients)
