"""From the parameters of an estimator to grids of values, checked."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.model_selection import (
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from imparo.engine import Array
from imparo.filters import Filter, Tikhonov, resolution
from imparo.filters.base import check_steps

# The automatic penalties: so many, from the mean of K(x, x) down by so much, or to
# where the ridge drowns in rounding errors.
_PENALTIES = 100
_SMALLEST = 1e-12
# Iterations tried by default; the ν-method and conjugate gradients need about the root.
_STEPS = {"Landweber": 1000, "NuMethod": 200, "ConjugateGradient": 100}

Splits = list[tuple[Array, Array]]


def penalties(penalty: Any, diagonal: Array) -> Array:
    """Return the grid of λ that ``penalty`` stands for.

    Parameters
    ----------
    penalty : float, array-like or "auto"
        "auto" is 100 values from the mean of K(x, x) down by 12 decades, fewer where
        rounding errors would drown them (5 in float32).
    diagonal : array of shape (n,)
        K(x_i, x_i).

    Returns
    -------
    array of shape (L,)
    """
    if isinstance(penalty, str):
        if penalty != "auto":
            raise ValueError(
                f"penalty={penalty!r} is not known; give a number, a grid or 'auto'"
            )
        top = float(np.mean(diagonal, dtype=np.float64))
        top = top if top > 0 else 1.0
        lowest = max(_SMALLEST, resolution(diagonal.dtype))
        return top * np.geomspace(1, lowest, _PENALTIES)
    return _numbers("penalty", penalty, "numbers from 0 on", lambda grid: grid >= 0)


def components(value: Any, n: int) -> Array:
    """Return the grid of numbers of components: at most 100 of 1..n for "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(
                f"components={value!r} is not known; give a number, a grid or 'auto'"
            )
        return np.unique(np.geomspace(1, max(n, 1), 100).astype(int))
    grid = _numbers(
        "components",
        value,
        "whole numbers from 1 on",
        lambda g: (g >= 1) & (g == np.floor(g)),
    )
    return grid.astype(int)


def iterations(value: Any, filter: Filter) -> Array:
    """Return the grid of numbers of steps: every one up to a limit for "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(
                f"iterations={value!r} is not known; give a number, a grid or 'auto'"
            )
        return np.arange(1, _STEPS.get(type(filter).__name__, 200) + 1)
    numbers = _numbers("iterations", value, "whole numbers from 1 on", lambda grid: grid >= 1)
    return np.unique(check_steps(numbers))


def _numbers(name: str, value: Any, expected: str, holds: Any) -> Array:
    try:
        grid = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        grid = np.empty(0)
    if isinstance(value, bool) or grid.ndim != 1 or not grid.size or value is None:
        raise ValueError(f"{name}={value!r} is not a number or a grid of numbers")
    if not (np.isfinite(grid) & holds(grid)).all():
        raise ValueError(f"{name}={value!r} must hold {expected}")
    return grid


def splits(
    validation: Any, filter: Filter, n: int, y: Any, rng: np.random.RandomState
) -> tuple[str, Splits]:
    """Return the name of the selection method and its splits, none for closed forms.

    Parameters
    ----------
    validation : "auto", "loo", "gcv", float, int, splitter or iterable of index pairs
    filter : Filter
        Leave-one-out is the "auto" choice for Tikhonov, hold-out of 20 % otherwise.
    n : int
    y : array, or None for regression
        Classes, to stratify by.
    rng : RandomState

    Returns
    -------
    method : str
    splits : list of (train, held out) index arrays
    """
    if isinstance(validation, str):
        if validation == "auto":
            validation = "loo" if isinstance(filter, Tikhonov) else 0.2
        elif validation not in ("loo", "gcv"):
            raise ValueError(
                f"validation={validation!r} is not known; give 'loo', 'gcv', a fraction, a "
                "number of folds or a splitter"
            )
    if n < 2:
        raise ValueError(
            "a parameter cannot be selected on 1 sample (n_samples=1); give more rows, or "
            "numbers for penalty and sigma"
        )
    if validation == "loo":
        return "leave-one-out", []
    if validation == "gcv":
        return "generalized cross-validation", []
    if hasattr(validation, "split"):
        found = list(validation.split(np.zeros((n, 1)), y))
        return f"{len(found)} splits", _checked(found, n)
    if isinstance(validation, Iterable):
        found = [(np.asarray(a), np.asarray(b)) for a, b in validation]
        return f"{len(found)} splits", _checked(found, n)
    if isinstance(validation, bool) or not isinstance(validation, int | float | np.number):
        raise ValueError(
            f"validation={validation!r} is not known; give 'loo', 'gcv', a fraction, a number "
            "of folds or a splitter"
        )
    if 0 < validation < 1:
        return "hold-out", _hold_out(float(validation), n, y, rng)
    if validation == int(validation) and 2 <= validation <= n:
        return f"{int(validation)}-fold", _folds(int(validation), n, y, rng)
    raise ValueError(
        f"validation={validation!r} must be a fraction between 0 and 1 or a number of folds "
        f"from 2 to the number of rows ({n})"
    )


def _hold_out(fraction: float, n: int, y: Any, rng: np.random.RandomState) -> Splits:
    held = min(max(1, round(fraction * n)), n - 1)
    settings = {"n_splits": 1, "test_size": held, "random_state": rng}
    if y is not None:
        counts = np.unique(y, return_counts=True)[1]
        if counts.min() >= 2 and len(counts) <= min(held, n - held):
            return list(StratifiedShuffleSplit(**settings).split(np.zeros(n), y))
    return list(ShuffleSplit(**settings).split(np.zeros(n)))


def _folds(n_folds: int, n: int, y: Any, rng: np.random.RandomState) -> Splits:
    settings = {"n_splits": n_folds, "shuffle": True, "random_state": rng}
    if y is not None and np.unique(y, return_counts=True)[1].min() >= n_folds:
        return list(StratifiedKFold(**settings).split(np.zeros(n), y))
    return list(KFold(**settings).split(np.zeros(n)))


def _checked(found: Splits, n: int) -> Splits:
    if not found or any(len(a) == 0 or len(b) == 0 for a, b in found):
        raise ValueError("validation gives no split with rows on both sides")
    if any(np.max(part) >= n for pair in found for part in pair):
        raise ValueError(f"validation names rows beyond the {n} that there are")
    return found
