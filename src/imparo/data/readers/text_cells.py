"""Cells of text: which are numbers, dates or missing, and columns of them as arrays."""

import re
from typing import NamedTuple

import numpy as np

from imparo.data.readers.base import LARGEST_WHOLE, MISSING
from imparo.engine import Array

#: What cells are stripped of.
BLANKS = " \t"
#: Marks of missing values among text, in lower case: there, "none" is a value.
MISSING_TEXT = MISSING - {"none"}
# Of the cells of a column of numbers, at least this part is numbers.
_MOSTLY = 0.9
_LONGEST_MARK = max(map(len, MISSING))
_DATE = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_DIGITS = re.compile(r"[+-]?[0-9]+")
_PLURALS = {"number": "numbers", "date": "dates", "text": "text"}
_DATE_TYPE = "datetime64[us]"


class Column(NamedTuple):
    """A column as an array, and what could not be read.

    Attributes
    ----------
    cells : array of shape (n,)
    wrong : list of int
        Rows whose cell is not of the column's kind.
    large : list of int
        Rows that hold a whole number too large for a float.
    """

    cells: Array
    wrong: list[int]
    large: list[int]


def is_missing(cell: str) -> bool:
    """Return whether a cell, stripped, means that a value is missing."""
    return len(cell) <= _LONGEST_MARK and cell.lower() in MISSING


def is_number(cell: str, decimal: str = ".") -> bool:
    """Return whether a cell is a finite number.

    Parameters
    ----------
    cell : str
    decimal : "." or ","
        What stands before the fraction.

    Examples
    --------
    >>> from imparo.data.readers.text_cells import is_number
    >>> [is_number(cell) for cell in ("1e3", "1,5", "1_000", "inf")]
    [True, False, False, False]
    >>> is_number("1,5", decimal=",")
    True
    """
    if decimal != ".":
        if "." in cell:
            return False
        cell = cell.replace(decimal, ".")
    try:
        number = float(cell)
    except ValueError:
        return False
    # Python also reads 1_000 and digits of other scripts, which no other reader does.
    return "_" not in cell and cell.isascii() and abs(number) < np.inf


def is_date(cell: str) -> bool:
    """Return whether a cell is a date, or a date and time, as of ISO 8601."""
    return not np.isnat(_date(cell))


def as_numbers(cells: list[str], decimal: str = ".") -> Column:
    """Return stripped cells as floats, NaN where they are missing or no numbers.

    Cost: about 0.1 µs a cell where all are numbers.
    """
    marks = "".join(cells)
    written = cells
    if decimal != "." and decimal in marks and "." not in marks:
        cells = [cell.replace(decimal, ".") for cell in cells]
    if "_" not in marks and marks.isascii() and (decimal == "." or "." not in marks):
        try:
            found = np.array([float(cell or "nan") for cell in cells], float)
        except ValueError:
            pass
        else:
            if not np.isinf(found).any():
                nan = np.flatnonzero(np.isnan(found))
                wrong = [int(row) for row in nan if not is_missing(cells[row])]
                return Column(found, wrong, _too_large(found, cells))
    return _numbers_one_by_one(written, decimal)


def as_dates(cells: list[str]) -> Column:
    """Return stripped cells as dates in UTC, NaT where they are missing or no dates.

    Times without an offset count as UTC, and are kept to the microsecond.
    """
    unlike: dict[str, np.datetime64] = {}
    for cell in cells:
        if cell not in unlike:
            unlike[cell] = _date(cell)
    found = np.array([unlike[cell] for cell in cells], _DATE_TYPE)
    missing = np.flatnonzero(np.isnat(found))
    return Column(found, [int(row) for row in missing if not is_missing(cells[row])], [])


def as_text(cells: list[str]) -> Column:
    """Return stripped cells as objects, None where they are missing."""
    found = np.empty(len(cells), object)
    found[:] = [
        None if len(cell) <= _LONGEST_MARK and cell.lower() in MISSING_TEXT else cell
        for cell in cells
    ]
    return Column(found, [], [])


def as_kind(cells: list[str], kind: str, decimal: str = ".") -> Column:
    """Return stripped cells as an array of a kind: "number", "date" or "text"."""
    if kind == "number":
        return as_numbers(cells, decimal)
    return as_dates(cells) if kind == "date" else as_text(cells)


def kind_of(cells: list[str], decimal: str = ".") -> str:
    """Return what stripped cells are: "number", "date" or "text".

    Those of which nine in ten are numbers are numbers, and so are those that are all missing.

    Examples
    --------
    >>> from imparo.data.readers.text_cells import kind_of
    >>> kind_of(["1", "", "2.5"]), kind_of(["2020-01-31"]), kind_of(["1", "two"])
    ('number', 'date', 'text')
    """
    there = [cell for cell in cells if not is_missing(cell)]
    wrong = as_numbers(there, decimal).wrong
    if len(wrong) <= (1 - _MOSTLY) * len(there) + 1e-9:
        return "number"
    # All of them are needed, so that the first that is none answers for most text.
    return "date" if all(map(is_date, there)) else "text"


def complaint(cell: str, name: str, kind: str, large: bool) -> tuple[str, str]:
    """Return what is wrong with a cell, and what to do about it."""
    shown = cell if len(cell) <= 40 else cell[:39] + "…"
    if large:
        return (
            f"column {name!r} holds {shown}, and whole numbers beyond 2⁵³ lose digits",
            "leave the column out, read it as text",
        )
    return (
        f"{shown!r} in column {name!r}, which holds {_PLURALS[kind]}",
        "correct it, read the column as text",
    )


def _numbers_one_by_one(cells: list[str], decimal: str) -> Column:
    found, wrong = np.full(len(cells), np.nan), []
    points = [cell.replace(decimal, ".") for cell in cells] if decimal != "." else cells
    for row, cell in enumerate(cells):
        if is_number(cell, decimal):
            found[row] = float(points[row])
        elif not is_missing(cell):
            wrong.append(row)
    return Column(found, wrong, _too_large(found, points))


def _too_large(found: Array, cells: list[str]) -> list[int]:
    # The whole number just beyond the largest is rounded to it, hence the equality.
    rows = np.flatnonzero(np.abs(found) >= LARGEST_WHOLE)
    return [
        int(row)
        for row in rows
        if _DIGITS.fullmatch(cells[row].strip()) and abs(int(cells[row])) > LARGEST_WHOLE
    ]


def _date(cell: str) -> np.datetime64:
    match = _DATE.fullmatch(cell)
    if match is None:
        return np.datetime64("NaT", "us")
    try:
        found = np.datetime64(f"{match[1]}T{match[2] or '00:00'}", "us")
    except ValueError:
        return np.datetime64("NaT", "us")
    offset = match[3]
    if offset is None or offset == "Z":
        return found
    digits = offset[1:].replace(":", "")
    minutes = 60 * int(digits[:2]) + int(digits[2:] or 0)
    shift = np.timedelta64(minutes, "m")
    return found + shift if offset[0] == "-" else found - shift
