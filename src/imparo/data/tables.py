"""Tables in files, read whole: what a command needs to look at a data set."""

import csv
import gzip
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from imparo.engine import Array

_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
_TEXTS = (".csv", ".tsv", ".txt", ".data")


@dataclass(frozen=True)
class Table:
    """Rows and outputs of a file.

    Attributes
    ----------
    X : array of shape (n, d)
    y : array of shape (n,) or (n, T)
    columns : list of str
        Names of the columns of X.
    target : str
        Name of y.
    notes : list of str
        What was left out.
    """

    X: Array
    y: Array
    columns: list[str]
    target: str
    notes: list[str]


def read_table(path: Path, target: str | None = None) -> Table:
    """Read rows and outputs from a file.

    Parameters
    ----------
    path : Path
        ``.npz`` with X and y (or X_train and y_train), ``.npy`` with the target in the last
        column, or delimited text (``.csv``, ``.tsv``, ``.txt``, also ``.gz``) with or without
        a line of names.
    target : str, optional
        Name, or number from 0 on, of the column to learn; the last one if left out.

    Returns
    -------
    Table
        Columns of text, and rows where a value is missing, are left out, with a note.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    kinds = [suffix.lower() for suffix in path.suffixes]
    kind = "".join(kinds[-1:])
    if kind == ".gz":
        kind = kinds[-2] if kinds[-2:-1] and kinds[-2] in _TEXTS else kind
    if kind == ".npz":
        return _read_npz(path, target)
    if kind == ".npy":
        rows = _load(path)
        if rows.ndim != 2 or rows.shape[1] < 2:
            raise ValueError(
                f"{path} has shape {rows.shape}; give rows of at least two columns"
            )
        names = [f"column {j}" for j in range(rows.shape[1])]
        place = _place(target, names)
        X = np.delete(rows, place, axis=1)
        return Table(X, np.array(rows[:, place]), _without(names, place), names[place], [])
    if kind in _TEXTS:
        return _read_text(path, target, "\t" if kind == ".tsv" else None)
    raise ValueError(
        f"{path} is of no kind that can be read; give .npz, .npy, .csv, .tsv or .txt, the text "
        "ones also compressed as .gz"
    )


def _load(path: Path) -> Any:
    """Return the array of a .npy file, or the open archive of a .npz file."""
    try:
        # Not loaded whole, so that one column can be taken out of a large file.
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(found, np.ndarray) == (path.suffix.lower() == ".npy"):
            return found
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not a file of numbers that NumPy has written; write it with numpy.save "
            "or numpy.savez"
        ) from error
    raise ValueError(f"{path} is not of the kind that its name ends with")


def _read_npz(path: Path, target: str | None) -> Table:
    if target is not None:
        raise ValueError(f"{path} holds X and y apart; leave the target out")
    with _load(path) as archive:
        for x_name, y_name in (("X", "y"), ("X_train", "y_train"), ("X", "Y")):
            if x_name in archive and y_name in archive:
                try:
                    X, y = archive[x_name], archive[y_name]
                except (ValueError, zipfile.BadZipFile, zlib.error) as error:
                    raise ValueError(f"{x_name} of {path} cannot be read: {error}") from error
                break
        else:
            found = ", ".join(archive.files)
            raise ValueError(
                f"{path} holds {found}; X and y, or X_train and y_train, are needed"
            )
    if X.ndim < 2 or not X.size:
        raise ValueError(f"{x_name} of {path} has shape {X.shape}; give rows and columns")
    X = X.reshape(len(X), -1)
    return Table(X, y, [f"column {j}" for j in range(X.shape[1])], y_name, [])


def _read_text(path: Path, target: str | None, delimiter: str | None) -> Table:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            start = file.read(65_536)
            file.seek(0)
            if delimiter is None:
                delimiter = _delimiter(start)
            lines = [
                _cells(line, delimiter)
                for line in csv.reader(file, delimiter=delimiter, skipinitialspace=True)
                if len(line) > 1 or "".join(line).strip()
            ]
    except (UnicodeDecodeError, csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not delimited text in UTF-8: {error}") from error
    if not lines:
        raise ValueError(f"{path} is empty")
    # A delimiter at the end of every row makes no column.
    while all(line and not line[-1] for line in lines):
        lines = [line[:-1] for line in lines]
    width = len(lines[0])
    for number, line in enumerate(lines, 1):
        if len(line) != width:
            raise ValueError(
                f"{path}, row {number}: {len(line)} values where the first row has {width}"
            )
    if width < 2:
        raise ValueError(
            f"{path} has one column; one to learn from and one to learn are needed"
        )
    named = _has_names(lines)
    names = lines.pop(0) if named else [f"column {j}" for j in range(width)]
    if not lines:
        raise ValueError(f"{path} has names and no rows")
    return _as_table(np.array(lines, dtype=object), names, target)


def _delimiter(start: str) -> str:
    line = next((line for line in start.splitlines() if line.strip()), "")
    line = re.sub('"[^"]*"', "", line)
    # A comma may stand within numbers of a file that is delimited by the others.
    return next((mark for mark in ("\t", ";", ",") if mark in line.strip()), " ")


def _cells(line: list[str], delimiter: str) -> list[str]:
    cells = [cell.strip() for cell in line]
    while delimiter == " " and len(cells) > 1 and not cells[-1]:
        cells.pop()
    return cells


def _has_names(lines: list[list[str]]) -> bool:
    """Return whether the first line holds names: text alone, or text above numbers."""
    text = [
        j for j, cell in enumerate(lines[0])
        if cell.lower() not in _MISSING and not _is_number(cell)
    ]  # fmt: skip
    numbers = [j for j, cell in enumerate(lines[0]) if _is_number(cell)]
    if not (text and numbers):
        return not numbers
    rest = lines[1:]
    return any(
        rest and all(_is_number(line[j]) or line[j].lower() in _MISSING for line in rest)
        for j in text
    )


def _as_table(cells: Array, names: list[str], target: str | None) -> Table:
    place, notes = _place(target, names), []
    missing = np.array([[cell.lower() in _MISSING for cell in row] for row in cells])
    if not all(map(_is_number, cells[~missing[:, place], place])):
        # Among names of classes, "none" is one of them.
        missing[:, place] &= np.array([cell.lower() != "none" for cell in cells[:, place]])
    kept: list[int] = []
    left_out: list[int] = []
    for j in range(len(names)):
        if j == place:
            continue
        numbers = all(map(_is_number, cells[~missing[:, j], j]))
        (kept if numbers and not missing[:, j].all() else left_out).append(j)
    if not kept:
        raise ValueError("no column but the target holds numbers; encode text first")
    if left_out:
        listed = ", ".join(names[j] for j in left_out)
        notes.append(f"columns without numbers were left out: {listed}")
    full = ~np.any(missing[:, np.array([*kept, place])], axis=1)
    if not full.any():
        raise ValueError("a value is missing in every row; fill them in first")
    if not full.all():
        lost = int(np.count_nonzero(~full))
        notes.append(f"{lost:,} of {len(full):,} rows with missing values were left out")
    X = cells[np.ix_(full, kept)].astype(np.float64)
    y = _target(cells[full, place], names[place], np.flatnonzero(full))
    return Table(X, y, [names[j] for j in kept], names[place], notes)


def _target(y: Array, name: str, rows: Array) -> Array:
    """Return numbers or text, or raise where a few cells are unlike the others."""
    numbers = np.array([_is_number(cell) for cell in y])
    if numbers.all():
        return y.astype(np.float64)
    if 2 * np.count_nonzero(numbers) > len(y):
        first = int(np.flatnonzero(~numbers)[0])
        raise ValueError(
            f"the target {name!r} holds numbers but for {y[first]!r} in row {rows[first] + 1} "
            "below the names; correct it, or leave it empty to skip the row"
        )
    return y.astype(str)


def _place(target: str | None, names: list[str]) -> int:
    if target is None:
        return len(names) - 1
    if target in names:
        return names.index(target)
    if re.fullmatch("-?[0-9]+", target) and -len(names) <= int(target) < len(names):
        return int(target) % len(names)
    raise ValueError(f"there is no column {target!r}; there are {', '.join(names)}")


def _without(names: list[str], place: int) -> list[str]:
    return names[:place] + names[place + 1 :]


def _is_number(text: Any) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
