"""Small things that many trials do."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.experiments.shared.data import Split


def some_rows(split: Split, n: int | None, seed: int) -> Split:
    """Return a split with at most n rows to learn from, drawn at random, and as many to test.

    Parameters
    ----------
    split : Split
    n : int or None
        None keeps all rows.
    seed : int

    Returns
    -------
    Split
    """
    if n is None:
        return split
    rng = np.random.default_rng(seed)
    few, test = (
        np.sort(rng.permutation(len(y))[:n]) if len(y) > n else slice(None)
        for y in (split.y, split.y_test)
    )
    return Split(split.X[few], split.y[few], split.X_test[test], split.y_test[test])


def rmse(model: Any, split: Split) -> float:
    """Return the root mean squared error of a model on the test rows."""
    return root_mean_square(model.predict(split.X_test) - split.y_test)


def root_mean_square(left: Array) -> float:
    """Return √(mean of squares)."""
    return float(np.sqrt(np.mean(np.square(left, dtype=np.float64))))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a function takes, and what it gives."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def exponent(x: Array, y: Array) -> float:
    """Return p of y ≈ c·xᵖ, by least squares of the logarithms.

    Parameters
    ----------
    x, y : arrays of positive numbers

    Returns
    -------
    float

    Examples
    --------
    >>> from imparo.experiments.shared.trials import exponent
    >>> round(exponent([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    slope: float = np.polyfit(np.log(x), np.log(y), 1)[0]
    return float(slope)
