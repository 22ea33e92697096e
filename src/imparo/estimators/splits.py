"""From ``validation`` to a method of selection and its splits."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import (
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from imparo.engine import Array
from imparo.filters import Filter, Tikhonov

Splits: TypeAlias = list[tuple[Array, Array]]

LEAVE_ONE_OUT = "leave-one-out"
GCV = "generalized cross-validation"

_KNOWN = "give 'loo', 'gcv', a fraction, a number of folds, a splitter or pairs of index arrays"


def check_validation(validation: Any, filter: Filter) -> Any:
    """Return ``validation`` with "auto" resolved, or raise if it is of no known kind.

    Parameters
    ----------
    validation : "auto", "loo", "gcv", float, int, splitter or iterable of index pairs
    filter : Filter
        "auto" is leave-one-out for Tikhonov and a hold-out of 20 % otherwise.

    Returns
    -------
    "loo", "gcv", float, int, splitter or iterable
    """
    if isinstance(validation, str):
        if validation == "auto":
            return "loo" if isinstance(filter, Tikhonov) else 0.2
        if validation not in ("loo", "gcv"):
            raise ValueError(f"validation={validation!r} is not known; {_KNOWN}")
        return validation
    is_type = isinstance(validation, type)
    if not is_type and (hasattr(validation, "split") or isinstance(validation, Iterable)):
        return validation
    if isinstance(validation, bool) or not isinstance(validation, int | float | np.number):
        raise ValueError(f"validation={validation!r} is not known; {_KNOWN}")
    if not (0 < validation < 1 or (2 <= validation < np.inf and validation == int(validation))):
        raise ValueError(
            f"validation={validation!r} must be a fraction between 0 and 1 or a number of "
            "folds from 2 on"
        )
    return validation


def make_splits(
    validation: Any, kept: Array, y: Array, rng: np.random.RandomState, *, stratify: bool
) -> tuple[str, Splits]:
    """Return the name of the selection method and its splits, none for closed forms.

    Parameters
    ----------
    validation : as :func:`check_validation` returns it
    kept : array of shape (n_kept,)
        Positions of the rows that are fitted; others have weight 0. The splits that a
        user gives count all rows, those made here only these.
    y : array of shape (n,) or (n, T)
        Outputs of all rows, for splitters.
    rng : RandomState
    stratify : bool
        Whether y holds classes to stratify hold-out and folds by.

    Returns
    -------
    method : str
    splits : list of (train, held out) positions in ``kept``
    """
    n, n_kept = len(y), len(kept)
    if n_kept < 2:
        raise ValueError(
            "a parameter cannot be selected on 1 sample (n_samples=1); give more rows, or one "
            "value for every parameter"
        )
    if isinstance(validation, str):
        return (LEAVE_ONE_OUT if validation == "loo" else GCV), []
    classes = y[kept] if stratify else None
    if hasattr(validation, "split") or isinstance(validation, Iterable):
        pairs = _checked_pairs(_given_pairs(validation, n, y), n)
        return f"{len(pairs)} splits", _among(pairs, kept, n)
    if validation < 1:
        return "hold-out", _hold_out(float(validation), n_kept, classes, rng)
    if validation > n_kept:
        raise ValueError(
            f"validation={validation!r} is more than the number of rows, {n_kept}; give a "
            "number of folds up to that, or 'loo'"
        )
    return f"{int(validation)}-fold", _folds(int(validation), n_kept, classes, rng)


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


def _given_pairs(validation: Any, n: int, y: Any) -> list[Any]:
    if not hasattr(validation, "split"):
        return list(validation)
    try:
        return list(validation.split(np.zeros((n, 1)), y))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(
            f"validation={validation!r} needs groups, which fit does not take; give its "
            "splits: validation=list(splitter.split(X, y, groups))"
        ) from error


def _checked_pairs(pairs: list[Any], n: int) -> Splits:
    checked = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(
                f"validation must give pairs (rows to fit, rows to hold out), not {pair!r:.60}"
            )
        fitted, held = (_positions(part, n) for part in pair)
        if np.intersect1d(fitted, held).size:
            raise ValueError(
                "validation has rows on both sides of a split; rows to hold out must not be "
                "fitted"
            )
        checked.append((fitted, held))
    return checked


def _positions(part: Any, n: int) -> Array:
    rows = np.asarray(part)
    if rows.dtype == bool and rows.shape == (n,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError("validation must give rows as arrays of whole numbers or masks")
    if rows.size and not (rows.min() >= 0 and rows.max() < n):
        raise ValueError(f"validation names rows beyond the {n} that there are (0 to {n - 1})")
    return rows.astype(np.intp)


def _among(pairs: Splits, kept: Array, n: int) -> Splits:
    """Return pairs of positions in ``kept`` from pairs of positions in all rows."""
    place = np.full(n, -1)
    place[kept] = np.arange(len(kept))
    found = [(place[a], place[b]) for a, b in pairs]
    found = [(a[a >= 0], b[b >= 0]) for a, b in found]
    if not found or any(len(a) == 0 or len(b) == 0 for a, b in found):
        raise ValueError("validation gives no split with rows of weight above 0 on both sides")
    return found
