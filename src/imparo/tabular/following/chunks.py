"""What is read at once: some lines or rows, where they are, and which of them are bad."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from imparo.data import Frame
from imparo.data.readers import LineFormat, SparseBlock
from imparo.engine import Array
from imparo.tabular.following.positions import State

# Bytes at the beginning of a file, and before a place in it, that tell it from others.
HEAD, TAIL = 1024, 256


@dataclass
class Parsed:
    """Rows of a chunk.

    Attributes
    ----------
    rows : Frame, SparseBlock or None
        The good ones; None if there are none.
    places : list of int
        Line, or number, of each.
    faults : list of (int, str)
        Place of every bad one, and a sentence about it.
    """

    rows: Any
    places: list[int]
    faults: list[tuple[int, str]] = field(default_factory=list)


class Chunk(ABC):
    """Some rows of one file or pipe, in order.

    Attributes
    ----------
    file : str
        Its path, or "-".
    unit : "line" or "row"
        What places count.
    """

    file: str
    unit: str

    @abstractmethod
    def __len__(self) -> int:
        """Return how many lines or rows there are."""

    @abstractmethod
    def parsed(self) -> Parsed:
        """Return the rows."""

    @abstractmethod
    def states(self, until: int | None = None) -> dict[str, State]:
        """Return how far the file has been read after this chunk, or before a place in it."""


class LineChunk(Chunk):
    """Whole lines.

    Parameters
    ----------
    content : bytes
    file : str
    line, offset : int
        Number of the first line, from 1 on, and where it begins.
    format : callable
        Returns the format; called when rows are wanted, for more may be known of it then.
    head, tail : bytes
        How the file begins, and what stands before the chunk: see :func:`mark`.
    known : dict, optional
        What else is known of the file.
    """

    unit = "line"

    def __init__(
        self,
        content: bytes,
        file: str,
        line: int,
        offset: int,
        format: Callable[[], LineFormat],
        head: bytes = b"",
        tail: bytes = b"",
        known: State | None = None,
    ) -> None:
        self.file, self._format = file, format
        self._known = known or {}
        self._lines = _cut(content)
        self._line, self._offset = line, offset
        self._head, self._tail = head, tail

    def __len__(self) -> int:
        return len(self._lines)

    def parsed(self) -> Parsed:
        """Return the rows; where something is wrong, each line is parsed alone."""
        places = [self._line + i for i, text in enumerate(self._lines) if text.strip()]
        if not places:
            return Parsed(None, [])
        format = self._format()
        try:
            rows = format.parse(b"".join(self._lines), self.file, self._line)
            if len(rows) == len(places):
                return Parsed(rows, places)
        except ValueError:  # which line is wrong is found out next
            pass
        found, places, faults = [], [], []
        for i, text in enumerate(self._lines):
            place = self._line + i
            if not text.strip():
                continue
            try:
                rows = format.parse(text, self.file, place)
            except ValueError as error:
                faults.append((place, str(error)))
                continue
            if len(rows) == 1:
                found.append(rows)
                places.append(place)
            elif len(rows) > 1:
                sentence = f"{self.file}, line {place:,}: one line holds {len(rows)} rows"
                faults.append((place, sentence))
        return Parsed(stacked(found) if found else None, places, faults)

    def states(self, until: int | None = None) -> dict[str, State]:
        """Return how far the file has been read after this chunk, or before a line of it."""
        count = len(self._lines) if until is None else until - self._line
        text = b"".join(self._lines[:count])
        offset = self._offset + len(text)
        head = (self._head + text)[:HEAD] if len(self._head) == self._offset else self._head
        return {
            self.file: {
                **self._known,
                "offset": offset,
                "line": self._line + count,
                "mark": mark(head, (self._tail + text)[-TAIL:]),
            }
        }


def _cut(content: bytes) -> list[bytes]:
    """Cut at line feeds alone: a carriage return may stand in a cell."""
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]


class RowChunk(Chunk):
    """Rows of a file that is read as a whole.

    Parameters
    ----------
    rows : Frame or SparseBlock
    file : str
    start : int
        Number of the first row, from 0 on.
    known : dict
        Size and time of the file.
    last : bool
        Whether no row follows.
    """

    unit = "row"

    def __init__(self, rows: Any, file: str, start: int, known: State, last: bool) -> None:
        self.file = file
        self._rows, self._start, self._known, self._last = rows, start, known, last

    def __len__(self) -> int:
        return len(self._rows)

    def split(self, count: int) -> tuple["RowChunk", "RowChunk"]:
        """Return the first rows, and the others."""
        parts = (taken(self._rows, slice(count)), taken(self._rows, slice(count, None)))
        first = RowChunk(parts[0], self.file, self._start, self._known, False)
        rest = RowChunk(parts[1], self.file, self._start + count, self._known, self._last)
        return first, rest

    def parsed(self) -> Parsed:
        """Return the rows."""
        return Parsed(self._rows, list(range(self._start, self._start + len(self))))

    def states(self, until: int | None = None) -> dict[str, State]:
        """Return how far the file has been read after this chunk, or before a row of it."""
        end = self._start + len(self) if until is None else until
        done = self._last and until is None
        return {self.file: {**self._known, "row": end, "done": done}}


def mark(head: bytes, tail: bytes) -> str:
    """Return what tells whether a file still is what it was up to a place in it.

    Parameters
    ----------
    head : bytes
        Its first 1024 bytes, or all up to that place.
    tail : bytes
        The last 256 before it.
    """
    return hashlib.sha256(head[:HEAD] + b"|" + tail[-TAIL:]).hexdigest()[:16]


def stacked(parts: list[Any]) -> Any:
    """Return frames or sparse blocks on top of each other."""
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], SparseBlock):
        return _stacked_frames(parts)
    width = max(part.X.shape[1] for part in parts)
    X = sparse.vstack(
        [
            sparse.csr_array(
                (part.X.data, part.X.indices, part.X.indptr), (part.X.shape[0], width)
            )
            for part in parts
        ],
        format="csr",
    )
    ys = [Frame({"y": part.y}) for part in parts]
    return SparseBlock(X, Frame.stacked(ys)["y"], parts[0].first)


def _stacked_frames(frames: list[Frame]) -> Frame:
    """Stack frames that may lack columns, or have found them of another kind."""
    names = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    columns = {}
    for name in names:
        parts = [
            frame[name] if name in frame.columns else np.full(len(frame), np.nan)
            for frame in frames
        ]
        kinds = {part.dtype.kind for part in parts if not is_empty(part)}
        if len(kinds) > 1 and not kinds <= set("biuf"):
            parts = [as_texts(part) for part in parts]
        elif kinds & set("Mm"):
            (dtype,) = {part.dtype for part in parts if part.dtype.kind in kinds}
            parts = [np.full(len(p), "NaT", dtype) if is_empty(p) else p for p in parts]
        columns[name] = Frame.stacked([Frame({name: part}) for part in parts])[name]
    return Frame(columns, sum(map(len, frames)))


def is_empty(cells: Array) -> bool:
    """Return whether a column holds no value."""
    if cells.dtype == object:
        return all(cell is None for cell in cells)
    return bool((cells != cells).all())


def as_texts(cells: Array) -> Array:
    """Return a column as text, None where there is no value."""
    if cells.dtype == object:
        return cells
    texts = np.full(len(cells), None, dtype=object)
    for i in np.flatnonzero(cells == cells).tolist():
        cell = cells[i].item() if cells.dtype.kind in "biuf" else cells[i]
        whole = isinstance(cell, float) and cell == round(cell)
        texts[i] = str(int(cell) if whole else cell)
    return texts


def taken(rows: Any, places: Any) -> Any:
    """Return some rows of a frame or sparse block."""
    if isinstance(rows, SparseBlock):
        return SparseBlock(rows.X[places], rows.y[places], rows.first)
    return rows[places]
