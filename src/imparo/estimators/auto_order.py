"""Whether rows are a series: then the last of them judge, as the future will."""

from typing import Any

import numpy as np
from scipy import sparse

from imparo.data.sources import Source
from imparo.engine import Array

# Stretches of rows that are looked at, and rows in each.
_STRETCHES, _ROWS = 8, 256
# Below so many rows there is nothing to see.
_FEWEST = 500
# A column whose steps from row to row have less than this share of its variance is smooth.
_SMOOTH = 0.05
# A column that goes one way in more than this share of its steps is sorted.
_SORTED = 0.98
# Classes, fewer values than so many, that change less than twice each, or outputs that change
# less than so often, are in blocks.
_MANY_VALUES, _FEWEST_CHANGES = 50, 20


def is_series(source: Source, kept: Array, y: Any) -> bool:
    """Return whether consecutive rows are alike, without having been sorted.

    Rows drawn at random differ from their neighbours as much as from any other. Where a
    column moves smoothly along the rows, up and down, neighbours tell each other's outputs,
    and rows held out at random are easier than those to come.

    Parameters
    ----------
    source : Source
    kept : array of positions
        Rows that are used, in order.
    y : array of shape (n,) or (n, T)
        Outputs of all rows; sorted ones are no series.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.data.sources import ArraySource
    >>> from imparo.estimators.auto_order import is_series
    >>> t = np.linspace(0, 50, 2000)
    >>> y = np.random.default_rng(0).normal(size=2000)
    >>> rows = ArraySource(np.column_stack([np.sin(t), y]), np.dtype(float))
    >>> is_series(rows, np.arange(2000), y)
    True
    """
    n = len(kept)
    if n < _FEWEST or _is_sorted(np.asarray(y)[kept]):
        return False
    starts = np.linspace(0, n - _ROWS, _STRETCHES).astype(int)
    rows = kept[(starts[:, None] + np.arange(_ROWS)).ravel()]
    X = source.take(rows)
    if sparse.issparse(X):
        return False
    steps = np.diff(X.astype(np.float64).reshape(_STRETCHES, _ROWS, -1), axis=1)
    # Twice the variance is what the squared difference of two random rows is.
    order = np.random.RandomState(0).permutation(len(X))
    apart = np.mean(np.square(X[order[::2]] - X[order[1::2]]), axis=0)
    smooth = np.mean(np.square(steps), axis=(0, 1)) < _SMOOTH * apart
    moving = steps != 0
    up = np.sum(steps > 0, axis=(0, 1)) / np.maximum(1, np.sum(moving, axis=(0, 1)))
    is_sorted = np.maximum(up, 1 - up) > _SORTED
    return bool(np.any(smooth & ~is_sorted & (np.mean(moving, axis=(0, 1)) > _SMOOTH)))


def _is_sorted(y: Array) -> bool:
    """Return whether outputs are in order, or classes in blocks."""
    y = y.reshape(len(y), -1)[:, 0]
    if y.dtype.kind not in "fiub":
        y = np.unique(y, return_inverse=True)[1]
    steps = np.diff(y.astype(np.float64))
    moving = steps[steps != 0]
    values = len(np.unique(y))
    if len(moving) < max(_FEWEST_CHANGES, 2 * values if values < _MANY_VALUES else 0):
        return True
    up = np.mean(moving > 0)
    return bool(max(up, 1 - up) > _SORTED)
