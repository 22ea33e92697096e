"""Bounds of the stochastic gradient method for any steps, and convergence (section 6.3)."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from imparo.conditions import (
    Condition,
    ErrorTerms,
    Prescription,
    check_number,
    check_rows,
    shown,
)
from imparo.engine import Array

# Numbers of rows at which the conditions of convergence are looked at: each the square of
# the one before.
_GROWING = tuple(10**k for k in (4, 8, 16, 32))
# A power of n or of log n falls by at least this factor when n is squared.
_FALLS = 0.75
# Steps that are added one by one.
_EXACT = 4096


def sgm_bound(
    step_sizes: Any, n: int, beta: float, *, smooth: bool = True, average: bool = True
) -> ErrorTerms:
    """Return the terms of the bound of the excess risk after given steps, up to constants.

    Theorem 2 of section 6.3.2 (smooth losses) and theorem 3 of section 6.3.3 (others), for
    the average of the iterates, Ση/n + Ση²/Ση + (Ση)^{−β}, or for the last one,
    (Ση/n)Ση_k/(η_t(t−k)) + Ση_k²/(η_t(t−k)) + η_t + (Ση)^{1−β}/(η_t t), the inner sums over
    k < t; without smoothness Ση/n is √(Ση/n).

    Parameters
    ----------
    step_sizes : array-like of shape (t,)
        η₁, …, η_t, positive and not increasing.
    n : int
        Rows.
    beta : float
        In (0, 1].
    smooth : bool
    average : bool
        Of the weighted average of the iterates, or else of the last one.

    Returns
    -------
    ErrorTerms

    Examples
    --------
    >>> from imparo.theory import sgm_bound
    >>> terms = sgm_bound([0.1] * 1000, n=1000, beta=1.0)
    >>> round(terms.sample, 3), round(terms.computational, 3), round(terms.approximation, 3)
    (0.1, 0.1, 0.01)
    """
    eta = np.asarray(step_sizes, np.float64)
    if eta.ndim != 1 or len(eta) == 0 or not (eta > 0).all() or (np.diff(eta) > 0).any():
        raise ValueError("step_sizes must be one row of positive numbers that do not increase")
    check_rows(n)
    check_number("beta", beta, above=0, most=1)
    total, t = float(eta.sum()), len(eta)
    sample = total / n if smooth else math.sqrt(total / n)
    if average:
        return ErrorTerms(sample, float(np.square(eta).sum()) / total, total**-beta)
    last = float(eta[-1])
    weights = eta[:-1] / (last * np.arange(t - 1, 0, -1.0))
    return ErrorTerms(
        sample=sample * float(weights.sum()),
        computational=float((weights * eta[:-1]).sum()) + last,
        approximation=total ** (1 - beta) / (last * t),
    )


def check_convergence(
    step_sizes: Callable[[Array, int], Any], stopping_time: Callable[[int], int]
) -> Prescription:
    """Look whether steps and a stopping rule let the method converge.

    Theorem 1 of section 6.3.1: for a convex loss with bounded derivative the average of the
    iterates converges to the smallest risk if, as n grows, (A) Ση/n → 0 and
    (B) (1 + Ση²)/Ση → 0, the sums over the t*(n) steps.

    Parameters
    ----------
    step_sizes : function of (t, n)
        Takes an array of numbers of steps, as floats, and n; gives η_t, not increasing.
    stopping_time : function of n
        t*(n).

    Returns
    -------
    Prescription
        ``n``, and both expressions ``A`` and ``B`` at these n.

    Notes
    -----
    A judgement by numbers, not a proof: the expressions are computed at n = 10⁴, 10⁸, 10¹⁶
    and 10³², and count as going to 0 if the last is three quarters of the one before or
    less, as every negative power of n or of log n from (log n)^{−1/2} on is. Long sums are
    integrals in log t.

    Examples
    --------
    >>> from imparo.theory import check_convergence
    >>> one_pass = check_convergence(lambda t, n: t**-0.5, lambda n: n)
    >>> one_pass.holds
    True
    >>> print(check_convergence(lambda t, n: t**-2.0, lambda n: n).violated[0].name)
    (B) (1 + Ση²)/Ση → 0: the steps add up to enough
    """
    A, B, decreasing = [], [], True
    for n in _GROWING:
        t = stopping_time(n)
        check_number("stopping_time(n)", t, least=1)
        total, squares, monotone = _sums(step_sizes, float(t), n)
        A.append(total / n)
        B.append((1 + squares) / total if total > 0 else math.inf)
        decreasing = decreasing and monotone
    return Prescription(
        "convergence of the stochastic gradient method (theorem 1, section 6.3.1)",
        {"n": list(_GROWING), "A": A, "B": B},
        (
            Condition("the steps are positive and do not increase", decreasing),
            _vanishes("(A) Ση/n → 0: the steps do not add up to too much", A),
            _vanishes("(B) (1 + Ση²)/Ση → 0: the steps add up to enough", B),
            Condition("the loss is convex with a bounded derivative", None),
        ),
    )


def _vanishes(name: str, values: list[float]) -> Condition:
    text = ", ".join(shown(value) for value in values)
    return Condition(name, values[-1] <= _FALLS * values[-2], f"{text} at n = 1e4, …, 1e32")


def _sums(
    step_sizes: Callable[[Array, int], Any], t: float, n: int
) -> tuple[float, float, bool]:
    """Return Ση and Ση² over t steps, and whether the steps are positive and decreasing."""
    first = np.arange(1.0, min(t, _EXACT) + 1)
    eta = _steps(step_sizes, first, n)
    total, squares, shape = float(eta.sum()), float(np.square(eta).sum()), eta
    if t > _EXACT:
        # The sum over k in (a, b] is the integral from a + ½ to b + ½, but for O(η''), and
        # that of a power is smooth in log t.
        x = np.linspace(math.log(_EXACT + 0.5), math.log(t + 0.5), 8192)
        times = np.exp(x)
        rest = _steps(step_sizes, times, n)
        total += float(np.trapezoid(rest * times, x))
        squares += float(np.trapezoid(np.square(rest) * times, x))
        shape = np.concatenate([eta, rest])
    return (
        total,
        squares,
        bool((shape > 0).all() and (np.diff(shape) <= 1e-12 * shape[:-1]).all()),
    )


def _steps(step_sizes: Callable[[Array, int], Any], t: Array, n: int) -> Array:
    eta = np.broadcast_to(np.asarray(step_sizes(t, n), np.float64), t.shape)
    if not np.isfinite(eta).all():
        raise ValueError("step_sizes gave a number that is not finite; check its formula")
    return eta
