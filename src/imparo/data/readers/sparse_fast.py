"""A fast route from a chunk of sparse lines to arrays: all lines at once, by their bytes.

It gives what :mod:`imparo.data.readers.sparse_text` gives line by line, or nothing where a line
is not well formed.
"""

import re
from typing import NamedTuple

import numpy as np

from imparo.data.readers.text_fast import arrow_csv
from imparo.engine import Array

COMMENT = re.compile(rb"#[^\r\n]*")
_QUERY = re.compile(rb"(?<=[ \t])qid:[0-9]+(?=\s)")
_SPACES = np.isin(np.arange(256), np.frombuffer(b" \t\r\n\v\f\x1c\x1d\x1e\x1f", np.uint8))
# Digits of an index that are read at once.
_DIGITS = 9


class SparseParts(NamedTuple):
    """Rows before they are put into a matrix.

    Attributes
    ----------
    labels : list of str
    counts : array of int
        Number of entries of each row.
    indices, values : array
        Of all entries; indices are as they are written.
    """

    labels: list[str]
    counts: Array
    indices: Array
    values: Array


def fast_parts(chunk: bytes, first: int, n_columns: int) -> SparseParts | None:
    """Return the rows of a chunk, or None if a line is not well formed.

    Parameters
    ----------
    chunk : bytes
        Whole lines.
    first : 0 or 1
        The index of the first column.
    n_columns : int
    """
    if b"#" in chunk:
        chunk = COMMENT.sub(b"", chunk)
    if b"qid:" in chunk:
        chunk = _QUERY.sub(b"", chunk)
    if not chunk.isascii() or chunk.count(b"\r") != chunk.count(b"\r\n"):
        return None
    chunk += b"\n"
    marks = np.frombuffer(chunk, np.uint8)
    blank = _SPACES[marks]
    edges = np.flatnonzero(np.diff(blank, prepend=True))
    begins, stops = edges[0::2], edges[1::2]
    colons = np.flatnonzero(marks == ord(":"))
    if not len(begins):
        return None
    # The first token of a line is its label, and each other one has one colon within.
    line_of = np.searchsorted(np.flatnonzero(marks == ord("\n")), begins)
    is_label = np.diff(line_of, prepend=-1) > 0
    rows = np.flatnonzero(is_label)
    counts = np.diff(np.append(rows, len(begins))) - 1
    begins, stops, label_begins, label_stops = (
        begins[~is_label],
        stops[~is_label],
        begins[rows],
        stops[rows],
    )
    if len(colons) != len(begins) or not ((begins < colons) & (colons + 1 < stops)).all():
        return None
    indices = _whole_numbers(marks, begins, colons)
    if indices is None or not _ascend(indices, counts, first, n_columns):
        return None
    values = _numbers(marks, colons + 1, stops)
    if values is None or not np.isfinite(values).all():
        return None
    labels = [
        chunk[begin:stop].decode()
        for begin, stop in zip(label_begins.tolist(), label_stops.tolist(), strict=True)
    ]
    return SparseParts(labels, counts, indices, values)


def _whole_numbers(marks: Array, begins: Array, stops: Array) -> Array | None:
    """Return the numbers that are written in digits from ``begins`` to ``stops``."""
    found = np.zeros(len(begins), np.int64)
    lengths = stops - begins
    longest = int(lengths.max(initial=0))
    if longest > _DIGITS:
        return None
    for power in range(longest):
        some = slice(None) if power == 0 else np.flatnonzero(lengths > power)
        # Bytes below "0" become large ones, as they are not signed.
        digits = marks[stops[some] - 1 - power] - np.uint8(ord("0"))
        if (digits > 9).any():
            return None
        found[some] += digits.astype(np.int64) * 10**power
    return found


def _ascend(indices: Array, counts: Array, first: int, n_columns: int) -> bool:
    """Return whether indices ascend in each row and are those of columns."""
    steps = np.diff(indices, prepend=-1)
    steps[np.cumsum(counts)[:-1][counts[1:] > 0]] = 1
    if not len(indices):
        return True
    least, most = int(indices.min()), int(indices.max())
    return bool((steps > 0).all()) and first <= least and most < first + n_columns


def _numbers(marks: Array, begins: Array, stops: Array) -> Array | None:
    """Return the numbers that are written from ``begins`` to ``stops``, blanks after each."""
    if not len(begins):
        return np.empty(0)
    change = np.zeros(len(marks) + 1, np.int8)
    change[begins] = 1
    if arrow_csv() is not None:
        import pyarrow as pa

        change[stops] = -1
        text = marks[np.cumsum(change[:-1], dtype=np.int8).view(bool)]
        places = np.concatenate([[0], np.cumsum(stops - begins)]).astype(np.int32)
        cells = pa.StringArray.from_buffers(
            len(begins), pa.py_buffer(places), pa.py_buffer(text)
        )
        try:
            return np.array(cells.cast(pa.float64()))
        except pa.ArrowInvalid:
            change[stops] = 0
    change[stops + 1] = -1
    text = marks[np.cumsum(change[:-1], dtype=np.int8).view(bool)]
    try:
        found = np.fromstring(text.tobytes(), sep=" ")
    except ValueError:
        return None
    return found if len(found) == len(begins) else None
