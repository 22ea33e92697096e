"""Rows of one file of lines, whatever the format of its lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from imparo.data.readers.asked_columns import rows_of_a_block
from imparo.data.readers.base import LineFormat, ReadOptions, Rows, SparseBlock
from imparo.data.readers.column_choice import chosen_columns
from imparo.data.readers.compression import ByteReader, Openable, open_bytes
from imparo.data.readers.text_chunks import (
    CHUNK,
    Chunk,
    Transcoded,
    after_lines,
    n_lines,
    plain_encoding,
    whole_lines,
)
from imparo.engine import row_blocks

#: Rows and bytes that are read, at least, to find out what the columns are.
SAMPLE_ROWS = 1_000
SAMPLE_BYTES = 2**22


class LineRows(Rows):
    """Rows of a file of lines.

    Memory: one chunk of text and what it holds.

    Parameters
    ----------
    source : Path or Openable
    lines : LineFormat
        Its ``parse`` also takes ``columns``.
    options : ReadOptions
    format : str
    header_lines : int
        Number of lines that come before the first row.
    delimiter : str or None
        Before cells that may be in quotes and hold line ends; None if there are none.
    chunk : int
        Bytes that are read at a time.

    Attributes
    ----------
    may_be_empty : bool
        Whether it is no error if there are no rows: other files may have some.
    """

    lines: Any
    may_be_empty = False

    def __init__(
        self,
        source: "Path | Openable",
        lines: LineFormat,
        options: ReadOptions,
        format: str,
        *,
        header_lines: int = 0,
        delimiter: str | None = None,
        chunk: int = CHUNK,
    ) -> None:
        self.source, self.lines, self.options, self.format = source, lines, options, format
        self.names, self.kinds, self.bad = lines.names, lines.kinds, options.bad
        self.n_columns = len(lines.names)
        self.files = [source if isinstance(source, Path) else Path("-")]
        self.groups: dict[str, list[str]] = {}
        self.targets: list[str] = []
        self.header_lines = header_lines
        self._delimiter, self._chunk = delimiter, chunk

    def blocks(
        self, columns: Sequence[str] | None = None, size: int | None = None
    ) -> Iterator[Any]:
        """Yield the rows in order, at most ``size`` at a time."""
        chosen = chosen_columns(columns, self.names, self.source)
        self.bad.restart()
        return self._blocks(chosen, rows_of_a_block(size, self.n_columns))

    def _blocks(self, columns: list[str], size: int) -> Iterator[Any]:
        count = 0
        for chunk in self._chunks():
            block = self.lines.parse(
                chunk.content, self.source, chunk.line, chunk.offset, columns=columns
            )
            count += len(block)
            for rows in row_blocks(len(block), size):
                yield block if len(block) <= size else _some(block, rows)
        if not (count or self.may_be_empty):
            raise ValueError(
                f"{self.source} has no row that can be used: the first is wrong too, "
                f"{self.bad.examples[0]}"
                if self.bad.examples
                else f"{self.source} has no rows; give a file with some"
            )

    def _chunks(self) -> Iterator[Chunk]:
        first = True
        with opened_text(self.source, self.options.encoding) as file:
            for chunk in whole_lines(file, self.source, self._delimiter, self._chunk):
                yield without_lines(chunk, self.header_lines) if first else chunk
                first = False


def _some(block: Any, rows: slice) -> Any:
    if isinstance(block, SparseBlock):
        return SparseBlock(block.X[rows], block.y[rows], block.first)
    return block[rows]


def opened_text(source: "Path | Openable", encoding: str) -> ByteReader:
    """Return a reader of text: in its own encoding if that is like ASCII, else in UTF-8."""
    file = open_bytes(source)
    if plain_encoding(encoding):
        return file
    return ByteReader(source, Transcoded(file, source, encoding))


def read_encoding(encoding: str) -> str:
    """Return the encoding of what :func:`opened_text` gives."""
    if not plain_encoding(encoding) or encoding.lower() in ("utf8", "utf-8-sig", "utf_8"):
        return "utf-8"
    return encoding


def without_lines(chunk: Chunk, count: int) -> Chunk:
    """Return a chunk without its first lines."""
    place = after_lines(chunk.content, count)
    return Chunk(chunk.content[place:], chunk.line + count, chunk.offset + place)


def sample_of(
    source: "Path | Openable",
    encoding: str,
    delimiter: str | None,
    n_bytes: int = SAMPLE_BYTES,
    n_rows: int = SAMPLE_ROWS,
) -> Chunk:
    """Return the first lines of a file: some megabytes, and at least a thousand of them.

    Raises
    ------
    ValueError
        If the file is empty.
    """
    content, first = b"", None
    with opened_text(source, encoding) as file:
        for chunk in whole_lines(file, source, delimiter, n_bytes):
            first = first or chunk
            content += chunk.content
            if n_lines(content) > n_rows:
                break
    if first is None or not content.strip():
        raise ValueError(f"{source} is empty; give a file with rows")
    return Chunk(content, first.line, first.offset)
