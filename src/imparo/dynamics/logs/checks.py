"""Checks of names, stamps and columns, each with one sentence for what is wrong."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from imparo.engine import Array

# A recording has a gap where a step is this many times the median one.
_GAP = 10.0


def listed(names: Iterable[str]) -> str:
    """Return names with commas between them, or "none"."""
    return ", ".join(names) or "none"


def check_names(names: Any, what: str) -> tuple[str, ...]:
    """Return names as a tuple if they are text, one line each, and all different."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what} must be names, one a column, not {names!r}")
    for name in names:
        if not name or name != name.strip() or not name.isprintable():
            raise ValueError(f"{what} has the name {name!r}; give text without spaces around")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} has a name twice: {listed(names)}")
    return tuple(str(name) for name in names)


def choose(have: Sequence[str], want: Sequence[str] | None, what: str) -> list[int]:
    """Return the places of some names among others, or say which are not there."""
    if want is None:
        return list(range(len(have)))
    missing = [name for name in check_names(want, what) if name not in have]
    if missing:
        raise ValueError(f"there are no {what} {listed(missing)}; these are {listed(have)}")
    return [list(have).index(name) for name in want]


def check_stamps(t: Any, name: str = "t") -> Array:
    """Return stamps as float64 if they are finite and increasing, or say where they are not."""
    stamps = np.asarray(t, dtype=np.float64)
    if stamps.ndim != 1 or not len(stamps):
        raise ValueError(
            f"{name} has shape {stamps.shape}; give one stamp a sample, in seconds"
        )
    if not np.isfinite(stamps).all():
        row = int(np.argmin(np.isfinite(stamps)))
        raise ValueError(f"{name} is {stamps[row]} in row {row}; give finite stamps in seconds")
    bad = np.diff(stamps) <= 0
    if bad.any():
        row = int(np.argmax(bad)) + 1
        kind = "repeats" if stamps[row] == stamps[row - 1] else "is before"
        raise ValueError(
            f"{name} must increase, but in row {row} it is {stamps[row]}, which {kind} the "
            f"stamp {stamps[row - 1]} of the row before ({int(bad.sum())} such rows in all)"
        )
    return stamps


def check_gaps(t: Array, max_gap: float | None, name: str) -> float:
    """Return the longest step allowed; raise if a step is longer. 10 median steps if None."""
    if max_gap is not None and not max_gap > 0:
        raise ValueError(f"max_gap is {max_gap}; give seconds above 0")
    if len(t) < 2:
        return math.inf if max_gap is None else max_gap
    steps = np.diff(t)
    allowed = _GAP * float(np.median(steps)) if max_gap is None else max_gap
    row = int(np.argmax(steps))
    if steps[row] > allowed:
        raise ValueError(
            f"{name} has a gap of {steps[row]:.6g} s after t = {t[row]:.9g} (row {row}); steps "
            f"up to {allowed:.6g} s are accepted: cut the recording there, or raise max_gap"
        )
    return allowed


def check_rows(x: Any, n: int, name: str, axes: tuple[int, ...] = (2,)) -> Array:
    """Return values as float64 if they have n rows and one of these numbers of axes."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim not in axes or len(values) != n:
        raise ValueError(f"{name} has shape {values.shape}; {n} rows were expected")
    return values


def check_values(x: Any, t: Array, name: str) -> Array:
    """Return values as float64 if there is one, or one row, a stamp, and all are finite."""
    values = check_rows(x, len(t), name, axes=(1, 2))
    good = np.isfinite(values.reshape(len(t), -1)).all(axis=1)
    if not good.all():
        raise ValueError(f"{name} is not finite in row {int(np.argmin(good))}")
    return values


def check_columns(array: Array, name: str, names: tuple[str, ...]) -> None:
    """Raise if columns and their names do not go together, or a value is not finite."""
    if array.shape[1] != len(names):
        raise ValueError(
            f"{name} has {array.shape[1]} columns, but there are {len(names)} names: "
            f"{listed(names)}"
        )
    good = np.isfinite(array)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        bad = int((~good.all(axis=1)).sum())
        raise ValueError(
            f"{name} of {names[column]} is {array[row, column]} in row {row} ({bad} such rows "
            "in all); give finite numbers, or leave these rows out"
        )
