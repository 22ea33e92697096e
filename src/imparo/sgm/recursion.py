"""Exact steps, many at a time: the recursion of a block by products of matrices.

Row i of a block is predicted by the weights before the block, and by what the rows before it
in the block added: f_i = f⁰_i + Σ_{k<i} K_ik c_k with c_k = −η_k ℓ'₋(y_k, f_k). That is a
fixed point, C = −η ℓ'₋(Y, F⁰ + LC) with L strictly lower triangular, so that iterating it makes
at least one more row exact each time and ends where a loop over the rows would, in some five
rounds. Where numba is installed the loop is compiled instead, which is faster by far
(``python -m benchmarks sgm``); all other rows of a block come in by products either way.
"""

import numpy as np

from imparo.engine import Array, default_engine
from imparo.sgm.slopes import Slope

# Rows whose recursion is iterated together.
_ROWS = 32
# Changes of C below so many units of its last place are rounding errors.
_UNITS = 8


def take_steps(
    F: Array,
    gram: Array,
    group: Array,
    step: Array,
    Y: Array,
    slope: Slope,
) -> Array:
    """Return what every row of a block adds to the weights: coefficients of its features.

    Cost about b²K + 12·b·32·K for b rows and K columns.

    Parameters
    ----------
    F : array of shape (b, K)
        Predictions by the weights before the block; in its place predictions by the weights
        that each row met.
    gram : array of shape (b, b)
        Inner products of the rows' features.
    group : array of shape (b,)
        Number of the step that a row belongs to, not decreasing: rows of one step do not see
        each other.
    step : array of shape (b, K)
        Step size of each row and column.
    Y : array of shape (b, K)
    slope : Slope

    Returns
    -------
    array of shape (b, K)
    """
    product, loop = default_engine().product, slope.loop()
    C = np.empty_like(F)
    seen = np.where(group[None, :] < group[:, None], gram, gram.dtype.type(0))
    for start in range(0, len(F), _ROWS):
        part = slice(start, start + _ROWS)
        if start:
            F[part] += product(seen[part, :start], C[:start])
        block = F[part], seen[part, part], step[part], Y[part]
        C[part] = fixed_point(*block, slope) if loop is None else loop(*block)
    return C


def fixed_point(F: Array, lower: Array, step: Array, Y: Array, slope: Slope) -> Array:
    """Return C = −η ℓ'₋(Y, F + LC), leaving F + LC in F, by iteration.

    Parameters
    ----------
    F, step, Y : arrays of shape (b, K)
    lower : array of shape (b, b)
        L, strictly lower triangular.
    slope : Slope

    Returns
    -------
    array of shape (b, K)
    """
    product = default_engine().product
    tolerance = _UNITS * float(np.finfo(F.dtype).eps)
    before = F.copy()
    C = -step * slope(Y, F)
    columns = np.arange(F.shape[1])
    # One more row is final after every round: there are never more rounds than rows.
    for _ in range(len(F)):
        whole = len(columns) == F.shape[1]
        some = slice(None) if whole else columns
        old = C[:, some]
        # Rows that are not final may overflow, and ∞ times the zeros of L is not 0.
        f = product(lower, np.where(np.isfinite(old), old, 0))
        f += before[:, some]
        new = -step[:, some] * slope(Y[:, some], f)
        # Row by row: a large one takes no digits from the others.
        rests = (np.abs(new - old) <= tolerance * np.abs(new)) | (new == old)
        F[:, some], C[:, some] = f, new
        columns = columns[~rests.all(axis=0)]
        if not len(columns):
            break
    return C
