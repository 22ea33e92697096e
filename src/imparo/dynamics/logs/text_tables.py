"""Delimited text, opened as a table: CSV and its relatives, with or without names.

Text in which every cell is a number is converted by numpy all at once. Any other (quotes, empty
cells, words) is read cell by cell, so that an error can name the line it is on.
"""

import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from imparo.dynamics.logs.tables import Table, stored_notes
from imparo.engine import Array

# A line of the file: its number, from 1 on, and its text.
_Line = tuple[int, str]
# Up to here, floats hold every whole number.
_EXACT = 2**53


def open_text(path: Path) -> Table:
    """Open delimited text; the delimiter and whether there are names is found out.

    Cost: about 0.6 microseconds a cell where all are numbers, else up to 1.5.
    """
    # Line numbers are of the file, so comments and empty lines are counted and skipped.
    lines = [(k, line) for k, line in enumerate(io.StringIO(_text(path)), 1) if line.strip()]
    comments = list(itertools.takewhile(_is_comment, lines))
    lines = [line for line in lines if not _is_comment(line)]
    if not lines:
        raise ValueError(f"{path} is empty; a line of names and rows of numbers are needed")
    notes = None
    for _, comment in comments:
        if comment.startswith("# notes: {"):
            notes = stored_notes(comment.removeprefix("# notes: "), path)
    lines = [(k, line.strip(" \r\n")) for k, line in lines]
    mark = _delimiter(path, lines[:2]) if notes is None else ","
    names, nameless, rows = _header(path, lines, comments, mark)
    matrix = _all_numbers(rows, mark, len(names))
    cells, places = ([], []) if matrix is not None else _cells(path, rows, mark, len(names))
    if not rows:
        raise ValueError(f"{path} has names but no rows")
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise ValueError(f"{path} has two columns named {twice!r}; rename one")

    def read(name: str) -> Array:
        place = names.index(name)
        if matrix is None:
            column = [row[place] for row in cells]
        elif np.abs(matrix[:, place]).max() > _EXACT:
            column = [line.split(mark)[place] for _, line in rows]
        else:
            return matrix[:, place]
        return _numbers(path, name, column, places)

    return Table(path, named, read, notes, nameless=nameless, flat=True)


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not text in UTF-8, but binary or damaged") from error
    if "\0" in text:
        raise ValueError(f"{path} is not text, but binary")
    return text


def _is_comment(line: _Line) -> bool:
    return line[1].lstrip()[0] in "#%"


def _delimiter(path: Path, lines: list[_Line]) -> str:
    """Return what splits the first lines into the same number of cells, the most of them."""
    best, most = " ", 1
    for mark in ",;\t":
        counts = {len(row) for row, _ in _split(path, lines, mark)}
        if len(counts) == 1 and max(counts) > most:
            best, most = mark, max(counts)
    if most == 1:
        first = lines[0][1]
        mark = max("\t;,", key=first.count)
        best = mark if mark in first else " "
    return best


def _header(
    path: Path, lines: list[_Line], comments: list[_Line], mark: str
) -> tuple[list[str], bool, list[_Line]]:
    """Return the names of the columns, whether these are only numbers, and the other lines."""
    first, used = next(_split(path, lines, mark))
    names = [name.strip() for name in first]
    if not all(map(_is_number, names)):
        return names, False, lines[used:]
    if comments:
        # numpy.savetxt writes the names as a comment.
        last = next(_split(path, [(0, comments[-1][1].strip("#% \r\n"))], mark), ([], 0))[0]
        if len(last) == len(names) and not any(map(_is_number, last)):
            return [name.strip() for name in last], False, lines
    return [str(k) for k in range(len(names))], True, lines


def _split(path: Path, lines: list[_Line], mark: str) -> Iterator[tuple[list[str], int]]:
    """Yield each row of cells and how many lines were used; quotes may span several."""
    reader = csv.reader(
        (line + "\n" for _, line in lines), delimiter=mark, skipinitialspace=True
    )
    try:
        for row in reader:
            yield row, reader.line_num
    except csv.Error as error:
        raise ValueError(f"{path} is not delimited text: {error}") from error


def _all_numbers(lines: list[_Line], mark: str, width: int) -> Array | None:
    """Return all cells as a matrix, or None if one is no number or a row has others."""
    if not lines:
        return None
    try:
        found: Array = np.loadtxt(
            [line for _, line in lines], delimiter=mark, comments=None, ndmin=2
        )
    except ValueError:
        return None
    return found if found.shape == (len(lines), width) else None


def _cells(
    path: Path, lines: list[_Line], mark: str, width: int
) -> tuple[list[list[str]], list[int]]:
    """Return rows of cells, all of one width, and the number of the line where each ends."""
    cells, places = [], []
    for row, used in _split(path, lines, mark):
        cells.append(row)
        places.append(lines[used - 1][0])
    for row, place in zip(cells, places, strict=True):
        if len(row) == width + 1 and not row[-1]:
            row.pop()
        if len(row) != width:
            raise ValueError(
                f"line {place} of {path} has {len(row)} cells where {width} were expected"
            )
    return cells, places


def _numbers(path: Path, name: str, column: list[str], places: list[int]) -> Array:
    """Return the cells of one column as numbers, NaN where they are empty."""
    column = [cell.strip() for cell in column]
    try:
        numbers = np.array([float(cell or "nan") for cell in column])
        wrong = "_" in "".join(column)
    except ValueError:
        wrong = True
    if wrong:
        pairs = zip(places, column, strict=True)
        place, cell = next((k, cell) for k, cell in pairs if cell and not _is_number(cell))
        raise ValueError(
            f"line {place} of {path} has {cell[:40]!r} in the column {name}; "
            "a number was expected"
        )
    # Nanoseconds since 1970 have more digits than floats.
    if np.abs(numbers).max() > _EXACT and all(map(str.isdigit, column)):
        whole = [int(cell) for cell in column]
        return np.array(whole, dtype=np.int64) if max(whole) < 2**63 else numbers
    return numbers


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    # Python also reads 1_000, which no log means.
    return "_" not in cell
