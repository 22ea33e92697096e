"""Named arrays as a table: which of them are columns, and how their cells are read.

Archives of NumPy and HDF5 files hold arrays. Those with the same number of rows make a table:
an array of one axis is a column, one of more axes several, ``X[0]``, ``X[1]`` … Where there is
an array ``X``, it holds the inputs and ``y`` or ``Y`` the outputs. ``X_train`` or ``train/X``
is ``X`` of the part "train".
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from imparo.data.readers.asked_columns import some_of
from imparo.data.readers.bad_rows import NoRowsError
from imparo.data.readers.column_choice import check_unlike

_PARTS: dict[str, str] = {
    "train": "train",
    "test": "test",
    "val": "val",
    "valid": "val",
    "validation": "val",
}
_ENDING = re.compile(f"(?P<base>.+)_(?P<part>{'|'.join(_PARTS)})")
_BEGINNING = re.compile(f"(?P<part>{'|'.join(_PARTS)})_(?P<base>.+)")
# Arrays of one length are a table if they hold most of the values of a file.
_MOST = 2 / 3


@dataclass(frozen=True)
class NamedArray:
    """An array of a file, or a field of one, before it is read.

    Attributes
    ----------
    key : str
        Name in the file.
    field : str or None
        Which field of a structured array.
    name : str
        Name of its columns.
    shape : tuple of int
    dtype : dtype
        Bytes stand for text of any length.
    pattern : str
        Of the names of columns, if there are several.
    """

    key: str
    field: str | None
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pattern: str = "{name}[{j}]"

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(np.prod(self.shape[1:]))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        if len(self.shape) == 1 or (self.width == 1 and self.pattern.startswith("{name}")):
            return [self.name]
        return [self.pattern.format(name=self.name, j=j) for j in range(self.width)]

    @property
    def kind(self) -> str | None:
        """What the cells are, or None if they cannot be read."""
        if self.dtype.kind == "M" or self.dtype.kind == "m":
            unit = np.datetime_data(self.dtype)[0]
            coarse = self.dtype.kind == "m" and unit in "YM"
            kind = "date" if self.dtype.kind == "M" else "duration"
            return None if unit == "generic" or coarse else kind
        if self.dtype.kind in "UST":
            return "text"
        return "number" if self.dtype.kind in "biuf" else None

    @property
    def reason(self) -> str:
        """Why the cells cannot be read."""
        if self.dtype.kind == "O":
            return "it holds Python objects, which are not read; store numbers or text"
        if self.dtype.kind == "c":
            return "it holds complex numbers; store their real and imaginary parts"
        return f"it holds {self.dtype}, not numbers, text or dates"


def with_fields(key: str, name: str, shape: tuple[int, ...], dtype: Any) -> list[NamedArray]:
    """Return an array, or the fields of a structured one, by names that begin with ``name``."""
    if not dtype.names:
        return [NamedArray(key, None, name, shape, dtype)]
    found = []
    for field in dtype.names:
        inner = dtype[field]
        base, more = inner.subdtype or (inner, ())
        full = f"{name}/{field}" if name else field
        found.append(NamedArray(key, field, full, (*shape, *more), base))
    return found


@dataclass(frozen=True)
class ArrayTable:
    """The arrays of a file that are the columns of one table.

    Attributes
    ----------
    arrays : list of NamedArray
    n_rows : int
    groups : dict of str to list of str
    targets : list of str
    left_out : dict of str to str
        Why other arrays are not columns.
    part : str or None
        Which part of the rows, where a file has several.
    """

    arrays: list[NamedArray]
    n_rows: int
    groups: dict[str, list[str]]
    targets: list[str]
    left_out: dict[str, str]
    part: str | None


def table_of(arrays: Sequence[NamedArray], part: str | None, file: Path) -> ArrayTable:
    """Return the table that named arrays make.

    Parameters
    ----------
    arrays : sequence of NamedArray
        All that the file holds.
    part : str or None
        "train", "test" or "val"; the first of these that there is if None.
    file : Path
        For errors.

    Raises
    ------
    ValueError
        If they make none.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from imparo.data.readers.array_columns import NamedArray, table_of
    >>> shapes = {"X_train": (60, 2), "y_train": (60,), "X_test": (10, 2), "y_test": (10,)}
    >>> numbers = np.dtype(float)
    >>> arrays = [NamedArray(key, None, key, shapes[key], numbers) for key in shapes]
    >>> table = table_of(arrays, "test", Path("a.npz"))
    >>> table.n_rows, table.groups, table.targets
    (10, {'X': ['X[0]', 'X[1]']}, ['y'])
    """
    chosen, left_out, part = _of_part(arrays, part, file)
    rows = [array for array in chosen if array.shape]
    inputs = next((array for array in rows if _is_x(array.name, array)), None)
    n = inputs.shape[0] if inputs else _common_length(rows, file)
    kept: list[NamedArray] = []
    for array in chosen:
        is_role = inputs is not None and (array is inputs or array.name in ("y", "Y"))
        wrong = _unfit(array, n)
        if wrong and is_role:
            raise ValueError(f"{array.key} of {file} cannot be used: {wrong}")
        if wrong:
            left_out[array.name] = wrong
        else:
            kept.append(array)
    if not kept:
        reason = next(iter(left_out.items()), ("", "there is no array"))
        raise ValueError(f"{file} holds no table: {': '.join(filter(None, reason))}")
    if not n:
        raise NoRowsError(f"{file} holds no rows")
    check_unlike((name for array in kept for name in array.columns), file)
    groups = {a.name: a.columns for a in kept if len(a.shape) > 1 or a is inputs}
    outputs = [array for array in kept if inputs and array.name in ("y", "Y")]
    targets = [name for array in outputs for name in array.columns]
    return ArrayTable(kept, n, groups, targets, left_out, part)


def _is_x(name: str, array: NamedArray) -> bool:
    return name == "X" or (name == "x" and len(array.shape) > 1)


def _of_part(
    arrays: Sequence[NamedArray], asked: str | None, file: Path
) -> tuple[list[NamedArray], dict[str, str], str | None]:
    split = [(array, *split_part(array.name)) for array in arrays]
    there = {part for array, base, part in split if _is_x(base, array)}
    if not there and all(part for _, _, part in split):
        there = {part for _, _, part in split}
    order: list[str | None] = [None, "train", "test", "val"]
    order = [part for part in order if part in there]
    if asked is None:
        part = order[0] if order else None
    else:
        part = _PARTS.get(asked, asked)
        if part == "train" and part not in there and None in there:
            part = None
        if part not in order:
            names = " and ".join(str(name) for name in order if name)
            raise ValueError(
                f"{file} has no part {asked!r}; "
                + (f"there is {names}" if names else "all its rows are one part")
            )
    if not any(order):
        return list(arrays), {}, None
    chosen: dict[str, NamedArray] = {}
    left_out = {}
    # Arrays of no part after those of the part: X of the part is X.
    for array, base, found in sorted(split, key=lambda each: each[2] != part):
        if found not in (part, None) or base in chosen:
            left_out[array.name] = f"it is not of the part {part or 'without a name'}"
        else:
            chosen[base] = replace(array, name=base)
    return list(chosen.values()), left_out, part


def split_part(name: str) -> tuple[str, str | None]:
    """Return a name without its part, and the part.

    Examples
    --------
    >>> from imparo.data.readers.array_columns import split_part
    >>> split_part("X_train"), split_part("validation/X"), split_part("view")
    (('X', 'train'), ('X', 'val'), ('view', None))
    """
    *folders, last = name.split("/")
    for place, folder in enumerate(folders):
        if folder in _PARTS:
            return "/".join([*folders[:place], *folders[place + 1 :], last]), _PARTS[folder]
    match = _ENDING.fullmatch(last) or _BEGINNING.fullmatch(last)
    if not match:
        return name, None
    return "/".join([*folders, match["base"]]), _PARTS[match["part"]]


def _unfit(array: NamedArray, n: int) -> str | None:
    """Return why an array is no column, or None."""
    if not array.shape:
        return "it is a single value"
    if array.shape[0] != n:
        return f"it has {array.shape[0]:,} rows where the table has {n:,}"
    if not array.width:
        return "it has rows without any value"
    return None if array.kind else array.reason


def _common_length(arrays: list[NamedArray], file: Path) -> int:
    values: Counter[int] = Counter()
    names: dict[int, list[str]] = {}
    for array in arrays:
        values[array.shape[0]] += int(np.prod(array.shape))
        names.setdefault(array.shape[0], []).append(array.name)
    n = max(names, key=lambda length: (len(names[length]), values[length]), default=0)
    if values[n] <= _MOST * values.total() and values.total():
        listed = "; ".join(f"{m:,} in {some_of(names[m])}" for m in sorted(names)[:4])
        raise ValueError(
            f"{file} holds no table: its arrays have different numbers of rows ({listed})"
        )
    return n
