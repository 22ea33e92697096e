"""Parquet files, read a batch of rows at a time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from imparo.data.frames import Frame
from imparo.data.readers.arrow_columns import ArrowColumns
from imparo.data.readers.asked_columns import asked_columns, rows_of_a_block
from imparo.data.readers.bad_rows import NoRowsError
from imparo.data.readers.base import ReadOptions, Rows
from imparo.extras import require

# Bytes of a column that are read at a time. Without such a buffer, or with one that reads
# ahead, pyarrow holds whole row groups: 560 MB of a file where this takes 90 MB, no slower.
_BUFFER = 65_536


class ParquetRows(Rows):
    """Rows of a Parquet file; see :func:`open_parquet`.

    Attributes
    ----------
    left_out : dict of str to str
        Why other columns of the file cannot be read.
    """

    format = "parquet"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path, self.files, self.bad = path, [path], options.bad
        with _opened(path) as file:
            self.n_rows = file.metadata.num_rows
            self._columns = ArrowColumns(file.schema_arrow, options, path)
            self._fields = file.schema_arrow.names
        if not self.n_rows:
            raise NoRowsError(f"{path} holds no rows")
        self.names, self.kinds = self._columns.names, self._columns.kinds
        self.groups, self.left_out = self._columns.groups, self._columns.left_out
        self.n_columns, self.targets = len(self.names), []

    def blocks(
        self, columns: Sequence[str] | None = None, size: int | None = None
    ) -> Iterator[Frame]:
        """Yield the rows in order; only the columns asked for are read."""
        names = asked_columns(columns, self.names, self.left_out, self._path)
        self.bad.restart()
        return self._pass(names, rows_of_a_block(size, len(names)))

    def _pass(self, names: list[str], size: int) -> Iterator[Frame]:
        fields = [self._fields[place] for place in self._columns.places_of(names)]
        start = 0
        with _opened(self._path) as file:
            batches = file.iter_batches(size, columns=fields, use_threads=True)
            while (batch := _next(batches, self._path)) is not None:
                if batch.num_columns > len(fields):  # "a.b" brings the field b of a along
                    batch = batch.select(fields)
                yield self._columns.frame(batch, names, start)
                start += batch.num_rows
        if start != self.n_rows:
            raise ValueError(
                f"{self._path} holds {start:,} rows where {self.n_rows:,} were; it was changed "
                "while it was read, or is damaged"
            )


def open_parquet(path: str | Path, options: ReadOptions | None = None) -> ParquetRows:
    """Open a Parquet file.

    A pass holds one batch of rows, and some 2 MB of every column, however large the row
    groups are.

    Parameters
    ----------
    path : str or Path
    options : ReadOptions, optional
        ``text`` and ``bad`` count.

    Raises
    ------
    ValueError
        If the file is damaged, empty or no Parquet file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from imparo.data.readers.parquet import open_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "rows.parquet"
    ...     table = pa.table({"age": [20, None, 40], "city": ["Rome", "Oslo", None]})
    ...     pq.write_table(table, file)
    ...     rows = open_parquet(file)
    ...     blocks = list(rows.blocks(size=2))
    >>> rows.kinds, rows.n_rows
    ({'age': 'number', 'city': 'text'}, 3)
    >>> blocks[0]["age"], blocks[1]["city"]
    (array([20., nan]), array([None], dtype=object))
    """
    return ParquetRows(Path(path), options or ReadOptions())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    arrow, parquet = require("pyarrow", "files"), require("pyarrow.parquet", "files")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_file() and not path.stat().st_size:
        raise ValueError(f"{path} is empty")
    with arrow.OSFile(str(path)) as source:
        try:
            file = parquet.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER)
        except (ValueError, OSError, NotImplementedError) as error:
            raise damaged(path, error, "Parquet") from error
        with file:
            yield file


def _next(batches: Iterator[Any], path: Path) -> Any:
    try:
        return next(batches, None)
    except (ValueError, OSError, NotImplementedError) as error:
        raise damaged(path, error, "Parquet") from error


def damaged(path: Path, error: Exception, what: str) -> Exception:
    """Return the error to raise where pyarrow cannot read a file: one sentence."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    reason = str(error).strip().split("\n")[0].split(". ")[0].rstrip(".")
    return ValueError(
        f"{path} is damaged, cut off or no {what} file ({reason:.200}); write it anew"
    )
