"""What fewer centers cost: the errors of Nyström KRLS (thesis, section 4.2.3, proof sketch)."""

import math
from collections.abc import Callable

from imparo.conditions import (
    Dimension,
    ErrorTerms,
    at_level,
    check_number,
    check_rows,
)
from imparo.theory.nystrom import (
    leverage_centers,
    saturated,
    smallest_level,
    uniform_centers,
)

_SMALLEST = 1e-300


def uniform_error(
    m: float,
    max_dimension: Callable[[float], float] | None = None,
    *,
    kernel_bound: float = 1.0,
    delta: float = 0.05,
) -> float:
    """Return the computational error 𝒞(m) of m uniform centers (section 4.2.3).

    The smallest t > 0 with max(67, 5𝒩_∞(t))log(12κ²/(tδ)) ≤ m: the penalty below which m
    centers begin to cost accuracy. It says nothing where it is above κ².

    Parameters
    ----------
    m : float
        Centers.
    max_dimension : function of t, optional
        𝒩_∞, which does not increase; κ²/t if left out.
    kernel_bound, delta
        As for :func:`nystrom_rule`.

    Returns
    -------
    float

    Notes
    -----
    By bisection, to a relative 1e-12; the result itself satisfies the inequality.

    Examples
    --------
    >>> from imparo.theory import uniform_error
    >>> [round(uniform_error(m), 4) for m in (1000, 10_000, 100_000)]
    [0.0431, 0.0054, 0.0006]
    """
    check_number("m", m, above=0)
    check_number("kernel_bound", kernel_bound, above=0)
    check_number("delta", delta, above=0, below=1)

    def suffices(t: float) -> bool:
        largest = kernel_bound / t
        if max_dimension is not None:
            largest = at_level(max_dimension, t, "max_dimension")
        return uniform_centers(largest, t, kernel_bound, delta) <= m

    # At the upper end the logarithm is 0.
    return _smallest(suffices, _SMALLEST, 12 * kernel_bound / delta)


def leverage_error(
    m: float,
    effective_dimension: Callable[[float], float],
    *,
    n: int,
    norm: float,
    kernel_bound: float = 1.0,
    accuracy: float = 1.0,
    delta: float = 0.05,
) -> float:
    """Return the computational error 𝒞(m) of m centers by leverage scores (section 4.2.3).

    The smallest t from 19κ²/n · log(12n/δ) to ‖C‖ with max(334, 78T²𝒩(t))log(48n/δ) ≤ m,
    or infinity where there is none. The 334, which the thesis prints in its theorem 1 but
    not in the definition of 𝒞, is kept here, so that both say the same.

    Parameters
    ----------
    m : float
        Centers.
    effective_dimension : function of t
        𝒩, which does not increase.
    n, norm, kernel_bound, accuracy, delta
        As for :func:`nystrom_rule`.

    Returns
    -------
    float

    Examples
    --------
    >>> from imparo.theory import leverage_error
    >>> round(leverage_error(20_000, lambda t: t**-0.5, n=10**8, norm=1.0), 4)
    0.0097
    >>> leverage_error(100, lambda t: t**-0.5, n=10**8, norm=1.0)
    inf
    """
    check_number("m", m, above=0)
    check_rows(n)
    check_number("norm", norm, above=0)
    check_number("kernel_bound", kernel_bound, above=0)
    check_number("accuracy", accuracy, least=1)
    check_number("delta", delta, above=0, below=1)

    def suffices(t: float) -> bool:
        dimension = at_level(effective_dimension, t, "effective_dimension")
        return leverage_centers(dimension, n, accuracy, delta) <= m

    least = smallest_level(n, kernel_bound=kernel_bound, delta=delta)
    if least > norm or not suffices(norm):
        return math.inf
    return _smallest(suffices, least, norm)


def _smallest(suffices: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest t in [low, high] that suffices, where all larger ones do."""
    if suffices(low):
        return low
    while high - low > 1e-12 * high:
        middle = math.sqrt(low) * math.sqrt(high) if high > 2 * low else (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def nystrom_error(
    penalty: float,
    n: int,
    computational_error: float,
    *,
    effective_dimension: Dimension,
    max_dimension: Dimension,
    s: float = 0.0,
    delta: float = 0.05,
    R: float = 1.0,
    M: float = 1.0,
    noise: float = 1.0,
) -> ErrorTerms:
    """Return the terms of the bound of Nyström KRLS's excess risk, up to one constant.

    The root of the excess risk is bounded (section 4.2.3, proof sketch) by
    R(M√𝒩_∞(λ)/n + σ√(𝒩(λ)/n))log(6/δ) + R𝒞(m)^{1/2+v} + Rλ^{1/2+v}, v = min(s, 1/2):
    sample, computational and approximation error. More centers than make the second
    term as small as the others buy nothing.

    Parameters
    ----------
    penalty : float
    n : int
    computational_error : float
        𝒞(m), by :func:`uniform_error` or :func:`leverage_error`.
    effective_dimension, max_dimension : float or function of λ
    s, delta, R, M, noise
        As for :func:`nystrom_rule`.

    Returns
    -------
    ErrorTerms

    Examples
    --------
    >>> from imparo.theory import nystrom_error
    >>> terms = nystrom_error(
    ...     0.01, 10_000, 0.02, effective_dimension=10.0, max_dimension=100.0
    ... )
    >>> round(terms.sample, 3), round(terms.computational, 3), round(terms.approximation, 3)
    (0.156, 0.141, 0.1)
    """
    check_number("penalty", penalty, above=0)
    check_rows(n)
    if computational_error != math.inf:
        check_number("computational_error", computational_error, least=0)
    check_number("s", s, least=0)
    check_number("delta", delta, above=0, below=1)
    power = 0.5 + saturated(s)
    dimension = at_level(effective_dimension, penalty, "effective_dimension")
    largest = at_level(max_dimension, penalty, "max_dimension")
    sample = M * math.sqrt(largest) / n + noise * math.sqrt(dimension / n)
    return ErrorTerms(
        sample=R * sample * math.log(6 / delta),
        computational=R * computational_error**power,
        approximation=R * penalty**power,
        power=2,
    )
