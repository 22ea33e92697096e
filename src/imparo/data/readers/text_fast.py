"""Fast routes from a chunk of a text table to its columns.

Each gives what the exact route of :mod:`imparo.data.readers.text_table` gives, or nothing: any
cell in doubt, and any row that is not well formed, is left to the exact route.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np

from imparo.data.readers.base import LARGEST_WHOLE, MISSING
from imparo.data.readers.text_cells import BLANKS, as_kind
from imparo.data.readers.text_chunks import quotes_in
from imparo.data.readers.text_dialect import Layout
from imparo.engine import Array

# The csv module, and so the exact route, refuses longer cells.
_LONGEST_CELL = 131_072
_BLOCK = 2**22
_SPACES = np.isin(np.arange(256), np.frombuffer(b" \t\r\n\v\f", np.uint8))


@cache
def arrow_csv() -> ModuleType | None:
    """Return pyarrow.csv, or None if it is not installed."""
    try:
        from pyarrow import csv
    except ImportError:
        return None
    return csv


def by_arrow(
    chunk: bytes, layout: Layout, columns: Sequence[str], unusual: set[str]
) -> dict[str, Array] | None:
    """Return columns of a chunk with pyarrow, or None if the exact route has to.

    Parameters
    ----------
    chunk : bytes
        Whole lines in UTF-8.
    layout : Layout
    columns : sequence of str
        Names of the columns wanted.
    unusual : set of str
        Columns of numbers that are written as pyarrow does not read them, such as " ". They
        are read as text and converted here; the set grows when one is found.
    """
    if arrow_csv() is None or layout.delimiter == " " or not chunk.strip():
        return None
    quoted = b'"' in chunk
    if quoted and not quotes_in(chunk, layout.delimiter).plain:
        return None
    numbers = {name for name in columns if layout.kinds[name] == "number"}
    table = _read(chunk, layout, columns, numbers - unusual, quoted)
    if table is None:
        # Either the rows are not well formed, or numbers are not written as expected.
        if _read(chunk, layout, columns, set(), quoted) is None:
            return None
        unusual |= _unreadable(chunk, layout, sorted(numbers - unusual), quoted)
        table = _read(chunk, layout, columns, numbers - unusual, quoted)
    if any(table[j].null_count + _n_filled(table[j]) for j in _places_beyond(layout)):
        return None
    found = {}
    for name in columns:
        cells = table[str(layout.places[name])]
        if name in numbers - unusual:
            values = cells.to_numpy()
            # For NaN, infinity and large numbers, what was written decides.
            if (np.abs(values) < LARGEST_WHOLE).sum() + cells.null_count == len(values):
                found[name] = values
                continue
            again = _read(chunk, layout, [name], set(), quoted)
            if again is None:
                return None
            cells = again[str(layout.places[name])]
        converted = _from_text(cells, layout.kinds[name], layout.decimal)
        if converted is None:
            return None
        found[name] = converted
    return found


def by_numpy(chunk: bytes, layout: Layout, columns: Sequence[str]) -> dict[str, Array] | None:
    """Return columns of a chunk that holds nothing but numbers, or None if it does not.

    Parameters
    ----------
    chunk : bytes
        Whole lines.
    layout : Layout
    columns : sequence of str
        Names of the columns wanted.
    """
    width = len(layout.names)
    if (
        any(kind != "number" for kind in layout.kinds.values())
        or layout.width != width
        or b'"' in chunk
        # One that is not part of a line end of Windows ends a line of its own.
        or chunk.count(b"\r") != chunk.count(b"\r\n")
    ):
        return None
    if not chunk.endswith(b"\n"):
        chunk += b"\n"
    count = _n_rows(chunk, layout)
    if count is None:
        return None
    if layout.delimiter != " ":
        chunk = chunk.rstrip().replace(b"\n", layout.delimiter.encode())
    if layout.decimal == ",":
        if b"." in chunk:
            return None
        chunk = chunk.replace(b",", b".")
    try:
        values = np.fromstring(chunk, sep=layout.delimiter)
    except ValueError:
        return None
    # A NaN may be missing or odd, and a large number may have lost digits: cells tell.
    if len(values) != count * width or not (np.abs(values) < LARGEST_WHOLE).all():
        return None
    matrix = values.reshape(count, width)
    return {name: matrix[:, layout.places[name]].copy() for name in columns}


def _n_rows(chunk: bytes, layout: Layout) -> int | None:
    """Return the number of rows if all have a token for each name, and no cell has two."""
    marks = np.frombuffer(chunk, np.uint8)
    ends = np.flatnonzero(marks == ord("\n"))
    between = _SPACES[marks]
    if layout.delimiter != " ":
        between |= marks == ord(layout.delimiter)
    begins = np.flatnonzero(~between & np.concatenate([[True], between[:-1]]))
    if layout.delimiter == " ":
        counts = np.diff(np.searchsorted(begins, ends), prepend=0)
        counts = counts[counts > 0]
    else:
        # NumPy makes up a number where a cell is blank, so that each must hold a token.
        stops = np.flatnonzero((marks == ord(layout.delimiter)) | (marks == ord("\n")))
        if len(begins) != len(stops) or not (
            (begins < stops).all() and (begins[1:] > stops[:-1]).all()
        ):
            return None
        counts = np.diff(np.searchsorted(stops, ends, side="right"), prepend=0)
    return len(counts) if (counts == len(layout.names)).all() else None


def _read(
    chunk: bytes, layout: Layout, columns: Sequence[str], numbers: set[str], quoted: bool
) -> Any:
    """Return a table of arrow, or None if it cannot be read so."""
    import pyarrow as pa
    from pyarrow import csv

    places = [layout.places[name] for name in columns]
    types = {
        str(j): pa.float64() if layout.names[j] in numbers else pa.string() for j in places
    }
    types |= {j: pa.string() for j in _places_beyond(layout)}
    try:
        table = csv.read_csv(
            pa.BufferReader(chunk),
            read_options=csv.ReadOptions(
                column_names=[str(j) for j in range(layout.width)],
                block_size=_BLOCK,
                # A thread of the pool that gives its bytes back while Python ends would end
                # the process with an abort.
                use_threads=False,
            ),
            parse_options=csv.ParseOptions(
                delimiter=layout.delimiter, newlines_in_values=quoted
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types) or ["0"],
                null_values=_marks_of_missing(),
                strings_can_be_null=False,
                decimal_point=layout.decimal,
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table


def _unreadable(chunk: bytes, layout: Layout, names: Sequence[str], quoted: bool) -> set[str]:
    """Return the columns of numbers that pyarrow does not read, by halving them."""
    if not names or _read(chunk, layout, names, set(names), quoted) is not None:
        return set()
    if len(names) == 1:
        return set(names)
    half = len(names) // 2
    return _unreadable(chunk, layout, names[:half], quoted) | _unreadable(
        chunk, layout, names[half:], quoted
    )


def _from_text(column: Any, kind: str, decimal: str) -> Array | None:
    """Return a column of text of arrow as cells of a kind, or None if one is not of it."""
    coded = column.combine_chunks().dictionary_encode()
    unlike = coded.dictionary.to_pylist()
    if any(len(cell) > _LONGEST_CELL for cell in unlike):
        return None
    cells, wrong, large = as_kind([cell.strip(BLANKS) for cell in unlike], kind, decimal)
    if wrong or large:
        return None
    taken: Array = cells[coded.indices.to_numpy()]
    return taken


def _places_beyond(layout: Layout) -> list[str]:
    return [str(j) for j in range(len(layout.names), layout.width)]


def _n_filled(column: Any) -> int:
    return sum(bool(cell.strip(BLANKS)) for cell in column.unique().to_pylist())


@cache
def _marks_of_missing() -> list[str]:
    """Return all spellings: pyarrow compares them as they are written."""
    return sorted(
        {
            "".join(letters)
            for mark in MISSING
            for letters in product(*((letter, letter.upper()) for letter in mark))
        }
    )
