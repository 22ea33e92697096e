"""Rows of named arrays: what archives of NumPy and HDF5 files have in common."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imparo.data.frames import Frame
from imparo.data.readers.array_columns import ArrayTable, NamedArray
from imparo.data.readers.asked_columns import asked_columns, rows_of_a_block
from imparo.data.readers.bad_cells import BadCells
from imparo.data.readers.base import ReadOptions, Rows
from imparo.engine import Array, row_blocks

#: Gives some rows of an array, which follow those of the call before.
Reader = Callable[[slice], Any]


class _Chosen(NamedTuple):
    """Columns of one array that are read in one way."""

    array: NamedArray
    places: list[int]
    names: list[str]
    as_text: bool


class ArchiveRows(Rows):
    """Rows of the arrays of a file.

    Columns of one array are views of one block, so that thousands of them cost little.

    Parameters
    ----------
    path : Path
    table : ArrayTable
        Which arrays are columns.
    options : ReadOptions
        ``text``, ``encoding`` and ``bad`` count.

    Attributes
    ----------
    left_out : dict of str to str
        Why other arrays of the file are not columns.
    part : str or None
        Which part of the rows is read, where the file has several.
    """

    # Whether arrays are of a file that is mapped into memory: blocks must then be copies.
    _mapped = False

    def __init__(self, path: Path, table: ArrayTable, options: ReadOptions) -> None:
        self._path, self._table, self._options = path, table, options
        self.files, self.bad, self.n_rows = [path], options.bad, table.n_rows
        self.groups, self.targets = table.groups, table.targets
        self.left_out, self.part = table.left_out, table.part
        self.kinds = {}
        for array in table.arrays:
            self.kinds.update(dict.fromkeys(array.columns, str(array.kind)))
        self.kinds.update((name, "text") for name in options.text if name in self.kinds)
        self.names = list(self.kinds)
        self.n_columns = len(self.names)

    @abstractmethod
    def _opened(self, keys: list[str]) -> AbstractContextManager[Mapping[str, Reader]]:
        """Open some arrays for a pass over their rows, from the first to the last."""

    def _block_rows(self, size: int | None, n_columns: int) -> int:
        return rows_of_a_block(size, n_columns)

    def blocks(
        self, columns: Sequence[str] | None = None, size: int | None = None
    ) -> Iterator[Frame]:
        """Yield the rows in order; arrays that are not asked for are not read."""
        names = asked_columns(columns, self.names, self.left_out, self._path)
        size = self._block_rows(size, len(names))
        self.bad.restart()
        return self._pass(names, self._chosen(set(names)), size)

    def _chosen(self, wanted: set[str]) -> list[_Chosen]:
        chosen = []
        for array in self._table.arrays:
            columns = array.columns
            for as_text in (False, True):
                places = [
                    j for j, name in enumerate(columns)
                    if name in wanted and (self.kinds[name] == "text") == as_text
                ]  # fmt: skip
                names = [columns[j] for j in places]
                if places:
                    chosen.append(_Chosen(array, places, names, as_text))
        return chosen

    def _pass(self, names: list[str], chosen: list[_Chosen], size: int) -> Iterator[Frame]:
        in_order = names == [name for each in chosen for name in each.names]
        columns: Frame | None = None
        with self._opened(list(dict.fromkeys(each.array.key for each in chosen))) as readers:
            for rows in row_blocks(self._table.n_rows, size):
                raw = {key: reader(rows) for key, reader in readers.items()}
                found = BadCells()
                cells = [self._cells(each, raw[each.array.key], found) for each in chosen]
                del raw
                if columns is None or not cells:
                    parts = zip((each.names for each in chosen), cells, strict=True)
                    frame = Frame.of_matrices(parts, rows.stop - rows.start)
                    columns = frame[np.zeros(0, np.intp)]  # no view: the block may go
                else:
                    frame = columns.refilled(cells)
                frame = frame if in_order else frame.select(names)
                yield found.dropped_from(frame, self.bad, self._path, rows.start)
                del cells, frame

    def _cells(self, chosen: _Chosen, raw: Any, found: BadCells) -> Array:
        array, places, names, as_text = chosen
        cells = raw if array.field is None else raw[array.field]
        cells = cells.reshape(len(cells), -1)
        if len(places) < array.width:
            is_run = places[-1] - places[0] + 1 == len(places)
            cells = cells[:, places[0] : places[-1] + 1] if is_run else cells[:, places]
        if as_text:
            return _texts(cells, names, self._options.encoding, found)
        if len(places) == 1:
            cells = cells[:, 0]
        if array.kind != "number":
            return cells.astype("M8[us]" if array.kind == "date" else "m8[us]")
        cells = _plain_numbers(np.array(cells) if self._mapped else cells)
        found.look_at(names, cells)
        return cells


def _plain_numbers(cells: Array) -> Array:
    """Return numbers in a type that everything takes: flags are 0 and 1."""
    if cells.dtype == bool:
        return cells.view(np.uint8)
    dtype = cells.dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        dtype = np.dtype(np.float32 if dtype.itemsize == 2 else np.float64)
    return cells.astype(dtype, copy=False)


def _texts(cells: Array, names: list[str], encoding: str, found: BadCells) -> Array:
    """Return text, with None for what is empty: arrays have no other way to say so."""
    texts = np.full(cells.shape, None, dtype=object)
    for j, name in enumerate(names):
        column = cells[:, j]
        if column.dtype.kind in "Mm":
            column = np.where(np.isnat(column), "", column.astype("U"))
        plain = column.tolist()
        if column.dtype.kind in "SO":
            plain = found.decoded(name, plain, encoding)
        texts[:, j] = [_text(cell) for cell in plain]
    return texts if len(names) > 1 else texts[:, 0]


def _text(cell: Any) -> str | None:
    return None if cell is None or cell != cell else str(cell) or None
