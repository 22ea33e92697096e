"""Widths from the data: the "median" and "scale" heuristics, and a grid around one."""

from typing import Any

import numpy as np
from scipy import sparse

from imparo.engine import Array, default_engine, power_of_two
from imparo.kernels.base import Kernel, check_sigma

_SAMPLE = 1000
# Widths of "auto", as multiples of the median: a factor of 2 apart, a factor of 8 each way.
_MULTIPLES = 2.0 ** np.arange(-3, 4)


def median_width(X: Any, distance: str = "euclidean") -> float:
    """Return the median distance between two rows that differ, on at most 1000 rows.

    Where there are more, always the same 1000 are drawn: a width does not depend on luck.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    distance : {"euclidean", "cityblock"}

    Returns
    -------
    float
        1 where no two rows differ.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import median_width
    >>> median_width(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    if X.shape[0] > _SAMPLE:
        X = X[np.random.RandomState(0).choice(X.shape[0], _SAMPLE, replace=False)]
    X = X.astype(np.float64)
    scale = power_of_two(X)
    X = X / scale
    engine = default_engine()
    # The engine's distances are exactly 0 for equal rows; scikit-learn's are not.
    if distance == "euclidean":
        D = np.sqrt(engine.squared_distances(X, X))
    else:
        X = X.toarray() if sparse.issparse(X) else X
        D = engine.absolute_distances(X, X)
    D = D[np.triu_indices(X.shape[0], 1)]
    D = D[D > 0]
    return float(scale * np.median(D)) if len(D) else 1.0


def scale_width(X: Any) -> float:
    """Return √(d·v/2), v the variance of all entries of X: scikit-learn's ``"scale"``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)

    Returns
    -------
    float
        1 where X is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import scale_width
    >>> scale_width(np.array([[0.0, 4.0], [4.0, 0.0]]))
    2.0
    """
    # The variance of equal numbers rounds to something that is not quite 0.
    if X.min() == X.max():
        return 1.0
    X = X.astype(np.float64)
    scale = power_of_two(X)
    X = X / scale
    if sparse.issparse(X):
        data, size = X.data.astype(np.float64), X.shape[0] * X.shape[1]
        mean = data.sum() / size
        squares = np.square(data - mean).sum() + (size - len(data)) * mean**2
        variance = squares / size
    else:
        variance = np.var(X, dtype=np.float64)
    return float(scale * np.sqrt(X.shape[1] * variance / 2))


def widths(sigma: Any, kernel: Kernel, X: Any) -> Array:
    """Return the widths that an estimator's ``sigma`` stands for on these rows.

    Parameters
    ----------
    sigma : float, "median", "scale", "auto" or array-like
        A width, a heuristic, a grid of seven widths around the median, or a grid.
    kernel : Kernel
        The kernel whose width it is; says which distance counts.
    X : array or sparse matrix of shape (n, d)

    Returns
    -------
    array of shape (n_widths,)
        From the smallest to the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian, widths
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> widths("median", Gaussian(), X)
    array([2.])
    """
    if isinstance(sigma, str):
        if sigma == "scale":
            return np.array([scale_width(X)])
        if sigma in ("median", "auto"):
            median = median_width(X, kernel.width_distance or "euclidean")
            return median * (_MULTIPLES if sigma == "auto" else np.ones(1))
        raise ValueError(
            f"sigma={sigma!r} is not known; give a number, a grid of numbers, 'median', "
            "'scale' or 'auto', or to an estimator 'learned' or 'per-feature'"
        )
    try:
        grid = np.atleast_1d(np.asarray(sigma, dtype=np.float64))
    except (TypeError, ValueError):
        grid = np.empty(0)
    if sigma is None or isinstance(sigma, bool) or grid.ndim != 1 or grid.size == 0:
        raise ValueError(
            f"sigma={sigma!r} is not a width; give a positive number, a grid of them, "
            "'median', 'scale' or 'auto'"
        )
    for value in grid:
        check_sigma(float(value))
    return np.unique(grid)
