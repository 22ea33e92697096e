"""Rank-one updates of an inverse triangular factor: Carlson's form of recursive least squares.

L is lower triangular with A⁻¹ = LᵀL, so that L = R⁻ᵀ for the factor A = RᵀR of the thesis
(section 7.4.2). A new row x changes A to γA + w·xxᵀ. With a = Lx, β_0 = γ and
β_j = β_{j−1} + w·a_j², row j of L becomes

    L_j ← (β_{j−1} L_j − w·a_j e_{j−1}) / √(γ β_{j−1} β_j),    e_j = e_{j−1} + a_j L_j,

where L_j on the right is the old row. The last e is A⁻¹x before the update, from which the
gain comes without a solve. All is done in one pass over L, compiled with numba where that is
installed, else in panels of rows by small matrix products: the same numbers to rounding, some
eight times slower at 1000 columns (``python -m benchmarks lifelong``).
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from imparo.engine.base import Array

Absorb = Callable[[Array, Array, Array, Array, float, float], None]

# Rows of L that one product updates: more cost more flops, fewer more calls.
_PANEL = 24


def absorb_rows(
    L: Array, X: Array, *, fade: float = 1.0, weight: float = 1.0
) -> tuple[Array, Array]:
    """Change L to that of γA + w·xxᵀ for one row after the other, in place.

    Cost 7kp²/2 for k rows, in one pass over L. Rows in one call or in several give the same
    bits.

    Parameters
    ----------
    L : array of shape (p, p)
        Lower triangular, row-major; what is above the diagonal is 0, and stays so.
    X : array of shape (k, p)
        Row-major and of the type of L.
    fade : float
        γ in (0, 1], for each row.
    weight : float
        w; may be negative as long as A stays positive definite.

    Returns
    -------
    directions : array of shape (k, p)
        A⁻¹x before each update.
    totals : array of shape (k,)
        γ + w·xᵀA⁻¹x before each update.
    """
    if L.shape != (X.shape[1], X.shape[1]):  # the compiled loop would not notice
        raise ValueError(f"rows of {X.shape[1]} features do not go with L of shape {L.shape}")
    E, totals, number = np.zeros_like(X), np.full(len(X), fade, X.dtype), L.dtype.type
    absorb = compiled() or absorb_by_panels
    absorb(L, X, E, totals, number(1 / math.sqrt(fade)), number(weight))
    return E, totals


def absorb_by_panels(
    L: Array, X: Array, E: Array, totals: Array, scale: float, weight: float
) -> None:
    """Do what :func:`absorb_rows` does through one matrix product for each panel of rows."""
    p = len(L)
    padded = -(-p // _PANEL) * _PANEL
    for r, x in enumerate(X):
        a = np.zeros(padded, L.dtype)
        a[:p] = L @ x
        betas = totals[r] + np.concatenate([[0.0], np.cumsum(weight * a * a)])
        root = np.sqrt(betas[:-1]) * np.sqrt(betas[1:]) / scale  # the product may overflow
        turns = _turns(a, betas[:-1] / root, weight * a / root)
        below = np.zeros((_PANEL + 1, p), L.dtype)
        for turn, start in zip(turns, range(0, p, _PANEL), strict=True):
            stop = min(start + _PANEL, p)
            rows = stop - start
            # e on top of the panel; e is zero from ``start`` on, so that L stays triangular.
            below[1 : rows + 1, :stop] = L[start:stop, :stop]
            turned = turn[: rows + 1, : rows + 1] @ below[: rows + 1, :stop]
            below[0, :stop] = turned[0]
            L[start:stop, :stop] = turned[1:]
        E[r], totals[r] = below[0], betas[p]


def _turns(a: Array, own: Array, turned: Array) -> Array:
    """Return, for each panel, the matrix that maps [e; old rows] to [new e; new rows]."""
    a, own, turned = (v.reshape(-1, _PANEL) for v in (a, own, turned))
    turns = np.zeros((len(a), _PANEL + 1, _PANEL + 1), a.dtype)
    turns[:, 0, 0], turns[:, 0, 1:] = 1, a
    turns[:, 1:, 0] = -turned
    turns[:, 1:, 1:] = np.tril(-turned[:, :, None] * a[:, None, :], -1)
    diagonal = np.arange(1, _PANEL + 1)
    turns[:, diagonal, diagonal] = own
    return turns


@cache
def compiled() -> Absorb | None:
    """Return the loop, compiled at its first call; None without numba."""
    try:
        import numba
    except ImportError:
        return None

    # NaN and infinity keep their meaning; sums may be reordered, in one way for all calls.
    # Without the interpreter's lock, a service answers others while it learns.
    @numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
    def absorb(
        L: Array, X: Array, E: Array, totals: Array, scale: float, weight: float
    ) -> None:
        k, p = X.shape
        # Four rows of L at a time, after the short ones that are left over: x and e are then
        # read and written once for the four. What is above the diagonal stays 0, as e is 0
        # there.
        first = p % 4
        for j in range(first):
            for r in range(k):
                a = L[j, 0] * X[r, 0]
                for i in range(1, j + 1):
                    a += L[j, i] * X[r, i]
                before = totals[r]
                totals[r] = before + weight * a * a
                root = scale / (math.sqrt(before) * math.sqrt(totals[r]))
                for i in range(j + 1):
                    value = L[j, i]
                    L[j, i] = root * (before * value - weight * a * E[r, i])
                    E[r, i] += a * value
        for j in range(first, p, 4):
            l0, l1, l2, l3 = L[j], L[j + 1], L[j + 2], L[j + 3]
            for r in range(k):
                x, e = X[r], E[r]
                a0, a1, a2, a3 = x[0] * l0[0], x[0] * l1[0], x[0] * l2[0], x[0] * l3[0]
                for i in range(1, j + 4):
                    a0 += x[i] * l0[i]
                    a1 += x[i] * l1[i]
                    a2 += x[i] * l2[i]
                    a3 += x[i] * l3[i]
                b0 = totals[r]
                b1 = b0 + weight * a0 * a0
                b2 = b1 + weight * a1 * a1
                b3 = b2 + weight * a2 * a2
                b4 = b3 + weight * a3 * a3
                totals[r] = b4
                # Root by root: the products may overflow.
                r0, r1, r2 = math.sqrt(b0), math.sqrt(b1), math.sqrt(b2)
                r3, r4 = math.sqrt(b3), math.sqrt(b4)
                s0, s1 = scale / (r0 * r1), scale / (r1 * r2)
                s2, s3 = scale / (r2 * r3), scale / (r3 * r4)
                c0, c1, c2, c3 = b0 * s0, b1 * s1, b2 * s2, b3 * s3
                d0, d1 = weight * a0 * s0, weight * a1 * s1
                d2, d3 = weight * a2 * s2, weight * a3 * s3
                for i in range(j + 4):
                    direction = e[i]
                    value = l0[i]
                    l0[i] = c0 * value - d0 * direction
                    direction += a0 * value
                    value = l1[i]
                    l1[i] = c1 * value - d1 * direction
                    direction += a1 * value
                    value = l2[i]
                    l2[i] = c2 * value - d2 * direction
                    direction += a2 * value
                    value = l3[i]
                    l3[i] = c3 * value - d3 * direction
                    e[i] = direction + a3 * value

    return absorb
