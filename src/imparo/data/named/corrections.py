"""Rows of an archive with names, parts and corrections put right while they are read."""

from collections.abc import Iterator, Sequence

import numpy as np

from imparo.data.frames import Frame
from imparo.data.named.registry import NamedDataset, Part
from imparo.data.readers.asked_columns import asked_columns, rows_of_a_block
from imparo.data.readers.base import Rows
from imparo.engine import Array, row_blocks


class NamedRows(Rows):
    """The rows of a named data set.

    Takes some rows and columns of an archive, in the order of its file: columns to learn
    from, then those to learn, by the names that the data set gives them. One block is in
    memory at a time.

    Attributes
    ----------
    notes : tuple of str
        Traps of the data set, and what was corrected.
    """

    def __init__(self, rows: Rows, dataset: NamedDataset, part: Part) -> None:
        *inputs, output = (_group(rows, array) for array in dataset.arrays)
        columns = [name for group in inputs for name in group]
        new = [*(dataset.column_names or columns), *(dataset.target_names or output)]
        old = [*columns, *output]
        files = ", ".join(map(str, rows.files))
        if len(columns) != dataset.columns or len(new) != len(old):
            raise ValueError(
                f"{files} has {len(columns):,} columns to learn from where {dataset.name} has "
                f"{dataset.columns:,}; it is another file"
            )
        if rows.n_rows is not None and rows.n_rows < part.first + part.rows:
            raise ValueError(
                f"{files} has {rows.n_rows:,} rows where {part.first + part.rows:,} of "
                f"{dataset.name} are needed; it is another file"
            )
        self._rows, self._part, self._positive = rows, part, dataset.positive
        self._old = dict(zip(new, old, strict=True))
        self.names, self.targets = new, new[len(columns) :]
        self.kinds = {name: rows.kinds[old] for name, old in self._old.items()}
        renamed = dict(zip(old, new, strict=True))
        self.groups = {
            array: [renamed[name] for name in group]
            for array, group in zip(dataset.arrays, [*inputs, output], strict=True)
            if len(group) > 1
        }
        self.n_rows, self.n_columns = part.rows, len(new)
        self.files, self.format, self.bad = rows.files, rows.format, rows.bad
        self.notes = dataset.notes

    def blocks(
        self, columns: Sequence[str] | None = None, size: int | None = None
    ) -> Iterator[Frame]:
        """Yield the rows in order, at most ``size`` at a time.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of the columns to read, in this order; all of them if left out.
        size : int, optional
            The most rows of a block; what suits the archive if left out.
        """
        wanted = asked_columns(columns, self.names, {}, self.files[0])
        old = [self._old[name] for name in wanted]
        part, start = self._part, 0
        read = [*old, part.column] if part.column else old
        read = list(dict.fromkeys(read))
        # Many rows at a time even for small blocks: those before the part are passed over.
        least = rows_of_a_block(None, len(read))
        for block in self._rows.blocks(read, None if size is None else max(size, least)):
            keep = self._wanted(block, start)
            start += len(block)
            some = block if keep.all() else block[keep]
            for rows in row_blocks(len(some), rows_of_a_block(size, len(read))):
                piece = some[rows]
                cells = zip(wanted, old, strict=True)
                yield Frame({new: self._cells(piece, new, o) for new, o in cells}, len(piece))
            if not part.column and start >= part.first + part.rows:
                return

    def _wanted(self, block: Frame, start: int) -> Array:
        """Return which rows of a block are of the part."""
        part = self._part
        if part.column:
            values = block[part.column]
            return np.asarray((values >= part.low) & (values < part.high))
        numbers = np.arange(start, start + len(block))
        return (numbers >= part.first) & (numbers < part.first + part.rows)

    def _cells(self, block: Frame, new: str, old: str) -> Array:
        cells: Array = block[old]
        if self._positive is not None and new in self.targets:
            return np.where(cells == self._positive, 1, -1).astype(np.int8)
        return cells


def _group(rows: Rows, array: str) -> list[str]:
    """Return the columns that the reader made of an array."""
    if array in rows.groups:
        return rows.groups[array]
    if array in rows.names:
        return [array]
    raise ValueError(
        f"{', '.join(map(str, rows.files))} has no array {array!r}; is it another file?"
    )
