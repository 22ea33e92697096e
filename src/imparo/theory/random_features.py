"""How many random features KRLS needs, and at what rate it learns (thesis, chapter 5).

Two numbers describe a problem: r ≥ 1/2, how smooth the target is (‖L^{−r}f‖ ≤ R; 1/2 says
no more than that f is in the space), and γ in (0, 1], how large the space is
(𝒩(λ) ≤ Q²λ^{−γ}; 1 always holds). A third, α in (0, 1], says how well the features suit the
data (ℱ_∞(λ) ≤ F²λ^{−α}; 1 always holds, and features drawn by leverage scores have α = γ).
"""

from typing import Any

import numpy as np

from imparo.conditions import (
    Condition,
    Prescription,
    check_number,
    check_rows,
    round_up,
)
from imparo.engine import Array


def check_problem(r: Any, gamma: Any, alpha: Any = 1.0) -> None:
    """Raise unless r ≥ 1/2 and γ, α are in (0, 1]."""
    check_number("r", r, least=0.5)
    check_number("gamma", gamma, above=0, most=1)
    check_number("alpha", alpha, above=0, most=1)


def penalty_exponent(r: float, gamma: float) -> float:
    """Return 1/(2v + γ), v = min(r, 1): the penalty of KRLS falls as n to minus this power.

    Theorem 7 of section 5.2, where 2r is printed for 2v: beyond r = 1, where Tikhonov
    regularization gains nothing more, the bias λ^{2v} would then exceed the printed rate.

    Examples
    --------
    >>> from imparo.theory import penalty_exponent
    >>> penalty_exponent(0.5, 1.0)
    0.5
    """
    check_problem(r, gamma)
    return 1 / (2 * min(r, 1.0) + gamma)


def rate_exponent(r: float, gamma: float) -> float:
    """Return 2v/(2v + γ), v = min(r, 1): the excess risk falls as n to minus this power.

    That of KRLS (theorem 7, section 5.2), of random features (theorems 9–11, section
    5.3.1) and of Nyström KRLS (theorem 1, section 4.2.3, with s = r − 1/2).

    Examples
    --------
    >>> from imparo.theory import rate_exponent
    >>> rate_exponent(0.5, 1 / 3)
    0.75
    """
    check_problem(r, gamma)
    return 2 * min(r, 1.0) / (2 * min(r, 1.0) + gamma)


def lower_bound_exponent(r: float, gamma: float) -> float:
    """Return 2r/(2r + γ): no method has a rate with a larger exponent on all problems.

    Theorem 8 of section 5.2. It is that of :func:`rate_exponent` up to r = 1.

    Examples
    --------
    >>> from imparo.theory import lower_bound_exponent
    >>> lower_bound_exponent(2.0, 1.0)
    0.8
    """
    check_problem(r, gamma)
    return 2 * r / (2 * r + gamma)


def features_power(r: Any, gamma: Any, alpha: Any) -> Array:
    """Return c/(2v + γ) on arrays; see :func:`features_exponent`."""
    v = np.minimum(r, 1.0)
    return (alpha + (1 + gamma - alpha) * (2 * v - 1)) / (2 * v + gamma)


def features_exponent(r: float, gamma: float, alpha: float = 1.0) -> float:
    """Return the power of n in the number of random features that the best rate needs.

    It is c/(2v + γ) with c = α + (1 + γ − α)(2v − 1), v = min(r, 1) (theorem 11 of section
    5.3.1; theorems 9 and 10 at α = 1).

    Parameters
    ----------
    r, gamma : float
        Smoothness of the target and size of the space.
    alpha : float
        How well the features suit the data; γ if they are drawn by leverage scores.

    Returns
    -------
    float

    Notes
    -----
    At r = 1/2 and α = γ it is γ/(1 + γ), which the thesis prints with a minus sign.

    Examples
    --------
    >>> from imparo.theory import features_exponent
    >>> features_exponent(0.5, 1.0), features_exponent(0.5, 1 / 3, alpha=1 / 3)
    (0.5, 0.25)
    """
    check_problem(r, gamma, alpha)
    return float(features_power(r, gamma, alpha))


def centers_power(r: Any, gamma: Any, leverage: bool) -> Array:
    """Return the exponent of :func:`centers_exponent` on arrays."""
    return (gamma if leverage else 1.0) / (2 * np.minimum(r, 1.0) + gamma)


def centers_exponent(r: float, gamma: float, sampling: str = "uniform") -> float:
    """Return the power of n in the number of Nyström centers that the best rate needs.

    With λ ≈ n^{−1/(2v+γ)} (theorem 1 of section 4.2.3, whose s is r − 1/2) uniform centers
    are of the order 𝒩_∞(λ) ≤ κ²/λ, and centers by leverage scores of the order
    𝒩(λ) ≤ Qλ^{−γ}: 1/(2v + γ) and γ/(2v + γ), v = min(r, 1).

    Parameters
    ----------
    r, gamma : float
    sampling : {"uniform", "leverage"}

    Returns
    -------
    float

    Examples
    --------
    >>> from imparo.theory import centers_exponent
    >>> centers_exponent(0.5, 1.0), centers_exponent(0.5, 0.25, sampling="leverage")
    (0.5, 0.2)
    """
    check_problem(r, gamma)
    if sampling not in ("uniform", "leverage"):
        raise ValueError(f"sampling={sampling!r} must be 'uniform' or 'leverage'")
    return float(centers_power(r, gamma, sampling == "leverage"))


def random_features_rule(
    n: int, r: float = 0.5, gamma: float = 1.0, alpha: float = 1.0
) -> Prescription:
    """Return the penalty and random features that learn at the rate of exact KRLS.

    λ = n^{−1/(2v+γ)} and m = n^{c/(2v+γ)}, up to constants and logarithms, with c as in
    :func:`features_exponent`. With the default it is theorem 9 of section 5.3.1, where
    nothing is known beyond f being in the space: m = √n, λ = 1/√n, risk n^{−1/2}. With r and
    γ it is theorem 10, with α theorem 11.

    Parameters
    ----------
    n : int
    r, gamma, alpha : float
        As for :func:`features_exponent`.

    Returns
    -------
    Prescription
        ``n_features``, ``penalty`` (of the mean loss), ``rate_exponent``,
        ``features_exponent``, ``penalty_exponent``.

    Examples
    --------
    >>> from imparo.theory import random_features_rule
    >>> rule = random_features_rule(10_000)
    >>> rule.n_features, rule.penalty, rule.rate_exponent
    (100, 0.01, 0.5)
    >>> random_features_rule(10_000, r=0.5, gamma=1 / 3, alpha=1 / 3).n_features
    10
    """
    check_rows(n)
    power, shrinking = features_exponent(r, gamma, alpha), penalty_exponent(r, gamma)
    m = round_up(n**power)
    values = {
        "n_features": m,
        "penalty": n**-shrinking,
        "rate_exponent": rate_exponent(r, gamma),
        "features_exponent": power,
        "penalty_exponent": shrinking,
    }
    theorem = 11 if alpha != 1 else 10 if (r, gamma) != (0.5, 1) else 9
    conditions = (
        Condition("n ≥ n₀, a number that the thesis does not print", None),
        Condition(f"source: ‖L^−r f‖ is finite with r = {r:g}", None),
        Condition(f"capacity: 𝒩(λ) ≤ Q²λ^−{gamma:g}", True if gamma == 1 else None),
        Condition(f"compatibility: ℱ_∞(λ) ≤ F²λ^−{alpha:g}", True if alpha == 1 else None),
    )
    name = f"KRLS with random features (theorem {theorem}, section 5.3.1)"
    return Prescription(name, values, conditions)


def features_as_regularizer(n: int) -> Prescription:
    """Return m = √n and λ = 1/m, where the number of random features regularizes.

    Section 5.3.1, in the worst case: the bound of theorem 9, with m alone to be tuned.

    Parameters
    ----------
    n : int

    Returns
    -------
    Prescription
        ``n_features``, ``penalty``, ``rate_exponent``.

    Examples
    --------
    >>> from imparo.theory import features_as_regularizer
    >>> features_as_regularizer(10_000).values
    {'n_features': 100, 'penalty': 0.01, 'rate_exponent': 0.5}
    """
    check_rows(n)
    m = round_up(n**0.5)
    values = {"n_features": m, "penalty": 1 / m, "rate_exponent": 0.5}
    conditions = (
        Condition("n ≥ n₀, a number that the thesis does not print", None),
        Condition("f is in the space of the kernel", None),
    )
    name = "the number of random features as the regularizer (section 5.3.1)"
    return Prescription(name, values, conditions)
