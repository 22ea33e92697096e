"""Arrow files, Arrow streams and Feather files, read a batch of rows at a time."""

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from imparo.data.frames import Frame
from imparo.data.readers.arrow_columns import ArrowColumns
from imparo.data.readers.asked_columns import asked_columns, rows_of_a_block
from imparo.data.readers.bad_rows import NoRowsError
from imparo.data.readers.base import ReadOptions, Rows
from imparo.data.readers.parquet import damaged
from imparo.engine import row_blocks
from imparo.extras import require


class ArrowRows(Rows):
    """Rows of an Arrow file; see :func:`open_arrow`.

    Attributes
    ----------
    left_out : dict of str to str
        Why other columns of the file cannot be read.
    """

    format = "arrow"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path, self.files, self.bad = path, [path], options.bad
        source = _Source(path)
        self._columns = ArrowColumns(source.schema, options, path)
        self.n_rows = source.count()
        if self.n_rows == 0 or (
            self.n_rows is None and not any(batch.num_rows for batch in source.batches([]))
        ):
            raise NoRowsError(f"{path} holds no rows")
        self.names, self.kinds = self._columns.names, self._columns.kinds
        self.groups, self.left_out = self._columns.groups, self._columns.left_out
        self.n_columns, self.targets = len(self.names), []

    def blocks(
        self, columns: Sequence[str] | None = None, size: int | None = None
    ) -> Iterator[Frame]:
        """Yield the rows in order; only the columns asked for are read.

        Blocks end where a batch of the file ends, and may be views of the file.
        """
        names = asked_columns(columns, self.names, self.left_out, self._path)
        self.bad.restart()
        return self._pass(names, rows_of_a_block(size, len(names)))

    def _pass(self, names: list[str], size: int) -> Iterator[Frame]:
        source, start = _Source(self._path), 0
        for batch in source.batches(self._columns.places_of(names)):
            for rows in row_blocks(batch.num_rows, size):
                part = batch.slice(rows.start, rows.stop - rows.start)
                yield self._columns.frame(part, names, start + rows.start)
                source.give_back()
            start += batch.num_rows


def open_arrow(path: str | Path, options: ReadOptions | None = None) -> ArrowRows:
    """Open an Arrow file, an Arrow stream or a Feather file of version 2.

    The file is mapped into memory and its pages are given back, so that a pass takes one
    block; of compressed files one batch as it was written.

    Parameters
    ----------
    path : str or Path
    options : ReadOptions, optional
        ``text`` and ``bad`` count.

    Raises
    ------
    ValueError
        If the file is damaged, empty or no Arrow file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa
    >>> from pyarrow import feather
    >>> from imparo.data.readers.arrow_files import open_arrow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "rows.feather"
    ...     feather.write_feather(pa.table({"age": [20, 30], "own": [True, None]}), file)
    ...     rows = open_arrow(file)
    ...     first = next(rows.blocks())
    >>> first["age"], first["own"]
    (array([20, 30]), array([ 1., nan]))
    """
    return ArrowRows(Path(path), options or ReadOptions())


class _Source:
    """The batches of a file that is mapped into memory."""

    def __init__(self, path: Path) -> None:
        self._arrow, self._ipc = require("pyarrow", "files"), require("pyarrow.ipc", "files")
        self._path = path
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
        with path.open("rb") as file:
            start = file.read(6)
            if not start:
                raise ValueError(f"{path} is empty")
            if start[:4] == b"FEA1":
                raise ValueError(
                    f"{path} is a Feather file of version 1; write it anew as version 2"
                )
            # Mapped here, not by pyarrow: its pages can then be given back.
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._is_file = start == b"ARROW1"
        self._bytes = self._arrow.py_buffer(self._map)
        self.schema = self._opened(None).schema
        # Batches that are not compressed lie in the file, and cost nothing; to ask pyarrow for
        # some of their columns would copy all of them.
        first = next(self._batches(None), None)
        self._is_packed = first is not None and not self._lies_here(first)

    def _lies_here(self, batch: Any) -> bool:
        first, last = self._bytes.address, self._bytes.address + self._bytes.size
        buffers = [buffer for column in batch.columns for buffer in column.buffers() if buffer]
        return all(first <= buffer.address <= last for buffer in buffers)

    def _opened(self, places: list[int] | None) -> Any:
        options = self._ipc.IpcReadOptions(included_fields=places)
        opener = self._ipc.open_file if self._is_file else self._ipc.open_stream
        try:
            return opener(self._bytes, options=options)
        except (ValueError, OSError, NotImplementedError) as error:
            raise damaged(self._path, error, "Arrow") from error

    def count(self) -> int | None:
        """Return the number of rows; None for a stream, which would have to be read."""
        return sum(batch.num_rows for batch in self.batches([])) if self._is_file else None

    def batches(self, places: list[int]) -> Iterator[Any]:
        """Yield batches of the fields at some places."""
        if self._is_packed and places:
            yield from self._batches(places)
        else:  # no place at all would mean all of them
            some = [0] if self._is_packed else None
            yield from (batch.select(places) for batch in self._batches(some))

    def _batches(self, places: list[int] | None) -> Iterator[Any]:
        reader = self._opened(places)
        number = 0
        while True:
            try:
                if self._is_file:
                    if number == reader.num_record_batches:
                        return
                    batch = reader.get_batch(number)
                else:
                    batch = reader.read_next_batch()
            except StopIteration:
                return
            except (ValueError, OSError, NotImplementedError) as error:
                raise damaged(self._path, error, "Arrow") from error
            number += 1
            yield batch
            self.give_back()

    def give_back(self) -> None:
        """Give back the pages that were read; a block that is a view finds them again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
