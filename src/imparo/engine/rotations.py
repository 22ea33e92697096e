"""Plane rotations that take one row into, or out of, a triangular factor.

The loop over rotations is sequential, so it is compiled with numba where that is
installed and otherwise driven row by row through BLAS ``rot``: the same arithmetic
in the same order, 20 times slower at 100 columns and 5 times at 1280, as
``benchmarks/factors.py`` measures.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.linalg import blas

from imparo.engine.base import Array

Rotation = Callable[[Array, Array, Array, Array], None]


def rotate_in(R: Array, z: Array, x: Array, y: Array) -> None:
    """Make [R z] the triangular factor of [R z] stacked on the row [x y], in place.

    Parameters
    ----------
    R : array of shape (p, p)
        Upper triangular, row-major.
    z : array of shape (p, T)
        Row-major.
    x, y : arrays of shape (p,) and (T,)
        The row; overwritten, ``y`` with its residual.
    """
    loops = compiled()
    (loops[0] if loops else row_in_by_blas)(R, z, x, y)


def downdate_rotations(a: Array, rho: float) -> tuple[Array, Array]:
    """Return c and s of the rotations that turn (a, ρ) into (0, 1), last entry first.

    With Rᵀa = x and ρ² = 1 − aᵀa these take the row x out of R (LINPACK's dchdd).
    """
    c, s = np.empty_like(a), np.empty_like(a)
    length = rho
    for k in range(len(a) - 1, -1, -1):
        longer = math.hypot(length, a[k])
        c[k], s[k] = length / longer, a[k] / longer
        length = longer
    return c, s


def rotate_out(R: Array, c: Array, s: Array) -> None:
    """Apply the rotations of :func:`downdate_rotations` to R, in place."""
    loops = compiled()
    (loops[1] if loops else row_out_by_blas)(R, c, s, np.zeros(len(R), R.dtype))


def row_in_by_blas(R: Array, z: Array, x: Array, y: Array) -> None:
    """Do what :func:`rotate_in` does, row by row through BLAS."""
    rot = blas.get_blas_funcs("rot", (R,))
    flat, flat_z = R.reshape(-1), z.reshape(-1)
    p, T = z.shape
    for k in range(p):
        if x[k] == 0:
            continue
        length = math.hypot(R[k, k], x[k])
        c, s = R[k, k] / length, x[k] / length
        at = {"overwrite_x": 1, "overwrite_y": 1}
        rot(flat, x, c, s, n=p - k, offx=k * p + k, offy=k, **at)
        if T:
            rot(flat_z, y, c, s, n=T, offx=k * T, **at)


def row_out_by_blas(R: Array, c: Array, s: Array, row: Array) -> None:
    """Do what :func:`rotate_out` does, row by row through BLAS; ``row`` starts at 0."""
    rot = blas.get_blas_funcs("rot", (R,))
    flat, p = R.reshape(-1), len(R)
    for k in range(p - 1, -1, -1):
        rot(
            row, flat, c[k], s[k],
            n=p - k, offx=k, offy=k * p + k, overwrite_x=1, overwrite_y=1,
        )  # fmt: skip


@cache
def compiled() -> tuple[Rotation, Rotation] | None:
    """Return the two loops, in and out, compiled at their first call; None without numba."""
    try:
        import numba
    except ImportError:
        return None

    @numba.njit(cache=True)
    def row_in(R: Array, z: Array, x: Array, y: Array) -> None:
        p, T = z.shape
        for k in range(p):
            if x[k] == 0:
                continue
            length = math.hypot(R[k, k], x[k])
            c, s = R[k, k] / length, x[k] / length
            for j in range(k, p):
                above = R[k, j]
                R[k, j] = c * above + s * x[j]
                x[j] = c * x[j] - s * above
            for t in range(T):
                above = z[k, t]
                z[k, t] = c * above + s * y[t]
                y[t] = c * y[t] - s * above

    @numba.njit(cache=True)
    def row_out(R: Array, c: Array, s: Array, row: Array) -> None:
        p = R.shape[0]
        for k in range(p - 1, -1, -1):
            for j in range(k, p):
                above = R[k, j]
                R[k, j] = c[k] * above - s[k] * row[j]
                row[j] = c[k] * row[j] + s[k] * above

    return row_in, row_out
