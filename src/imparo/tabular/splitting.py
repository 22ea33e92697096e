"""Rows to fit and rows to judge by: at random, by time, or by group."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedShuffleSplit

from imparo.engine import Array
from imparo.tabular.gathering import Gathered
from imparo.tabular.targets import CLASSIFICATION

# More rows than these tell no more about an error.
_MOST_TESTED = 50_000
# Up to so many rows groups are held out in five folds, as other rows are.
_FOLDED = 10_000
SPLITS = ("random", "time", "group")


@dataclass(frozen=True)
class Split:
    """Rows to fit, rows to test, and how the fit is to judge.

    Attributes
    ----------
    fit, test : arrays of positions, in ascending order
        The second may be empty.
    validation : list of (array, array) or None
        Positions in ``fit`` to learn from and to judge by; None leaves it to the machine.
    words : str
        How it was done.
    """

    fit: Array
    test: Array
    validation: list[tuple[Array, Array]] | None
    words: str


def make_split(
    rows: Gathered, y: Array, task: str, kind: str, share: float, seed: int
) -> Split:
    """Return which rows are fitted and which judge.

    Parameters
    ----------
    rows : Gathered
        With ``time`` for "time" (the order of the rows if there is none), and with ``group``
        for "group".
    y : array
        Outputs.
    task : str
    kind : "random", "time" or "group"
    share : float
        Of rows to test, from 0 on and below 1; at most 50,000 of them.
    seed : int

    Returns
    -------
    Split
    """
    if kind not in SPLITS:
        raise ValueError(f"split={kind!r} must be one of {', '.join(map(repr, SPLITS))}")
    if not 0 <= share < 1:
        raise ValueError(f"test={share!r} must be a share from 0 on and below 1")
    n = len(y)
    wanted = min(round(share * n), _MOST_TESTED)
    if share and wanted < 1:
        wanted = 1
    if n - wanted < 2:
        raise ValueError(
            f"{n:,} rows are too few to fit and test; give more, or test none (--test 0)"
            if wanted
            else "one row is too little to choose a model; give more rows"
        )
    if kind == "time":
        return _by_time(rows.time, n, wanted)
    if kind == "group":
        return _by_group(rows.group, wanted, seed)
    if not wanted:
        return Split(np.arange(n), np.arange(0), None, "all rows were fitted")
    places = np.zeros(n)
    settings: dict[str, Any] = {"n_splits": 1, "test_size": wanted, "random_state": seed}
    splitter = ShuffleSplit(**settings)
    if task == CLASSIFICATION:
        counts = np.unique(y, return_counts=True)[1]
        if counts.min() >= 2 and len(counts) <= min(wanted, n - wanted):
            splitter = StratifiedShuffleSplit(**settings)
    fit, test = next(iter(splitter.split(places, y)))
    words = f"{wanted:,} of {n:,} rows, drawn at random (seed {seed}), were kept for the test"
    return Split(np.sort(fit), np.sort(test), None, words)


def _by_time(time: Array | None, n: int, wanted: int) -> Split:
    if time is not None and time.dtype == object:
        raise ValueError("the column of times holds text; give dates or numbers")
    order = np.arange(n) if time is None else np.argsort(time, kind="stable")
    if time is not None and wanted:  # a time is before or after, never both
        first = int(np.searchsorted(time[order], time[order[n - wanted]]))
        wanted = n - first if first >= 2 else wanted
    before, after = order[: n - wanted], order[n - wanted :]
    # The last of the rows to fit judge, as the test rows do: what comes after what is known.
    held = max(1, len(before) // 5)
    fit = np.sort(before)
    place = np.empty(n, np.intp)
    place[fit] = np.arange(len(fit))
    pair = (np.sort(place[before[:-held]]), np.sort(place[before[-held:]]))
    how = "in the order of the file" if time is None else "by time"
    words = f"the last {wanted:,} of {n:,} rows {how} were kept for the test" if wanted else (
        "all rows were fitted"
    )  # fmt: skip
    return Split(fit, np.sort(after), [pair], f"{words}, and the last fifth before judges")


def _by_group(group: Array | None, wanted: int, seed: int) -> Split:
    if group is None:
        raise ValueError("a split by group needs the column of groups; name it")
    names, of_row = np.unique(group.astype(str) if group.dtype == object else group,
                              return_inverse=True)  # fmt: skip
    need = 3 if wanted else 2
    if len(names) < need:
        raise ValueError(
            f"the column of groups holds {len(names)} group, and at least {need} are needed to "
            "keep some for judging"
        )
    order = np.random.RandomState(seed).permutation(len(names))
    sizes = np.bincount(of_row)[order]
    n_test = int(np.searchsorted(np.cumsum(sizes), wanted) + 1) if wanted else 0
    n_test = min(n_test, len(names) - 2)
    tested = np.isin(of_row, order[:n_test])
    fit, test = np.flatnonzero(~tested), np.flatnonzero(tested)
    folds = min(5, len(names) - n_test)
    pairs = list(GroupKFold(folds).split(np.zeros(len(fit)), groups=of_row[fit]))
    pairs = pairs if len(fit) <= _FOLDED else pairs[:1]
    words = (
        f"{n_test:,} of {len(names):,} groups ({len(test):,} rows) were kept for the test"
        if wanted
        else "all rows were fitted"
    )
    return Split(fit, test, pairs, f"{words}, and no group is both fitted and judged by")
