"""How rows look in each format that can be written."""

import json
import re
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import IO, Any, NamedTuple

import numpy as np

from imparo.data.frames import Frame
from imparo.engine import Array
from imparo.extras import require

# Rows that Parquet and Arrow files keep together.
_GROUP = 2**17
# What must be quoted: space at an end too, which readers take away.
_SPECIAL = re.compile(r'["\r\n]|^\s|\s$')


class TableFormat(ABC):
    """Rows on their way into an open file."""

    @abstractmethod
    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        """Begin a file of columns with these names."""

    @abstractmethod
    def write(self, frame: Frame) -> None:
        """Write some rows: the columns are those announced, in their order."""

    @abstractmethod
    def finish(self) -> None:
        """Write the end of the file, which stays open."""

    def abandon(self) -> None:  # noqa: B027  # most formats hold nothing
        """Let go of what is held: the file is not wanted any more."""


class Delimited(TableFormat):
    """Text with one row a line: numbers as Python writes them, nothing for what is missing.

    A duration is its number of seconds.
    """

    delimiter = ","

    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        self._file, self._is_single = file, len(names) == 1
        self._put([self._quoted(name) for name in names])

    def write(self, frame: Frame) -> None:
        """Write some rows."""
        columns = [self._texts(frame[name]) for name in frame.columns]
        self._put(map(self.delimiter.join, zip(*columns, strict=True)), "\n")

    def finish(self) -> None:
        """Hand on what waits."""
        self._file.flush()

    def _put(self, parts: Any, between: str | None = None) -> None:
        text = (self.delimiter if between is None else between).join(parts) + "\n"
        self._file.write(_encoded(text))

    def _texts(self, cells: Array) -> list[str]:
        if cells.dtype.kind == "O":
            known: dict[Any, str] = {None: ""}
            texts = [known.get(cell) or self._learned(cell, known) for cell in cells]
        else:
            texts = [text or "" for text in _number_texts(cells)]
        # An empty line would be no row.
        return [text or '""' for text in texts] if self._is_single else texts

    def _learned(self, cell: Any, known: dict[Any, str]) -> str:
        if cell is None or cell != cell:
            return ""
        return known.setdefault(cell, self._quoted(str(cell)))

    def _quoted(self, text: str) -> str:
        if text and self.delimiter not in text and not _SPECIAL.search(text):
            return text
        return '"' + text.replace('"', '""') + '"'


class Tabbed(Delimited):
    """Text with one row a line and tabs between cells."""

    delimiter = "\t"


class JsonLines(TableFormat):
    """One object a line; null for what is missing, 1e999 for infinity, which reads so."""

    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        self._file = file
        self._keys = [json.dumps(name, ensure_ascii=False) + ": " for name in names]

    def write(self, frame: Frame) -> None:
        """Write some rows."""
        columns = []
        for key, name in zip(self._keys, frame.columns, strict=True):
            columns.append([key + text for text in self._texts(frame[name])])
        lines = ("{" + ", ".join(row) + "}\n" for row in zip(*columns, strict=True))
        self._file.write(_encoded("".join(lines)))

    def finish(self) -> None:
        """Hand on what waits."""
        self._file.flush()

    def _texts(self, cells: Array) -> list[str]:
        if cells.dtype.kind == "b":
            return ["true" if cell else "false" for cell in cells]
        if cells.dtype.kind == "O":
            return [
                "null"
                if cell is None or cell != cell
                else json.dumps(str(cell), ensure_ascii=False)
                for cell in cells
            ]
        texts = [text or "null" for text in _number_texts(cells)]
        if cells.dtype.kind == "M":
            return [text if text == "null" else f'"{text}"' for text in texts]
        return [text.replace("inf", "1e999") for text in texts]


def _number_texts(cells: Array) -> list[str | None]:
    """Return numbers and times as text that reads as the same, or None where one is missing."""
    if cells.dtype.kind == "b":
        cells = cells.view(np.uint8)
    if cells.dtype.kind == "m":
        missing = np.isnat(cells)
        cells = cells.astype("m8[us]").astype(np.int64) / 1e6
        cells[missing] = np.nan
    if cells.dtype.kind == "M":
        texts: list[str | None] = cells.astype("M8[us]").astype("U").tolist()
        missing = np.isnat(cells)
    else:
        # The shortest that reads as the same float32 is shorter than that of the float64.
        short = cells.dtype.kind == "f" and cells.dtype.itemsize < 8
        texts = list(map(str, cells if short else cells.tolist()))
        missing = cells != cells
    for i in np.flatnonzero(missing):
        texts[i] = None
    return texts


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text {error.object[error.start : error.end]!r} cannot be written in UTF-8; "
            "replace it"
        ) from error


class ArrowFile(TableFormat):
    """An Arrow file, which is also a Feather file of version 2."""

    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        self._arrow = require("pyarrow", "files")
        self._file, self._names = _Forgettable(file), names
        self._waiting: list[Any] = []
        self._n_waiting = 0
        self._sink: Any = None

    def write(self, frame: Frame) -> None:
        """Write some rows: the types of the columns are those of the first ones."""
        arrow = self._arrow
        arrays = [_arrow_array(arrow, frame[name]) for name in self._names]
        if self._sink is None:
            types = [array.type for array in arrays]
            self._schema = arrow.schema(list(zip(self._names, types, strict=True)))
            self._sink = self._opened(self._schema)
        for j, (field, array) in enumerate(zip(self._schema, arrays, strict=True)):
            if array.type != field.type:
                arrays[j] = self._cast(array, field)
        self._waiting.append(arrow.record_batch(arrays, schema=self._schema))
        self._n_waiting += len(frame)
        if self._n_waiting >= _GROUP:
            self._flush()

    def _cast(self, array: Any, field: Any) -> Any:
        try:
            return array.cast(field.type)
        except (ValueError, NotImplementedError) as error:
            raise ValueError(
                f"column {field.name!r} holds {array.type} and began with {field.type}; write "
                "one type"
            ) from error

    def _opened(self, schema: Any) -> Any:
        return require("pyarrow.ipc", "files").new_file(self._file, schema)

    def _flush(self) -> None:
        if self._waiting:
            table = self._arrow.Table.from_batches(self._waiting, self._schema)
            self._sink.write_table(table.combine_chunks(), _GROUP)
        self._waiting, self._n_waiting = [], 0

    def finish(self) -> None:
        """Write the rows that wait, and the end of the file."""
        if self._sink is None:
            numbers = [(name, self._arrow.float64()) for name in self._names]
            self._sink = self._opened(self._arrow.schema(numbers))
        self._flush()
        self._sink.close()

    def abandon(self) -> None:
        """Close what pyarrow has opened: it would, later, write to a file that is closed."""
        self._file.is_wanted = False
        if self._sink is not None:
            self._sink.close()


class _Forgettable:
    """A file to write to, until it is not wanted: then everything goes nowhere."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.is_wanted = file, True

    def write(self, content: Any) -> int:
        return self._file.write(content) if self.is_wanted else len(content)

    def flush(self) -> None:
        if self.is_wanted:
            self._file.flush()

    def close(self) -> None:
        """Do nothing: who opened the file closes it."""


class ParquetFile(ArrowFile):
    """A Parquet file."""

    def _opened(self, schema: Any) -> Any:
        return require("pyarrow.parquet", "files").ParquetWriter(self._file, schema)


def _arrow_array(arrow: Any, cells: Array) -> Any:
    if cells.dtype.kind == "O":
        texts = [None if cell is None or cell != cell else str(cell) for cell in cells]
        return arrow.array(texts, arrow.string())
    if cells.dtype.kind in "Mm":
        cells = cells.astype(f"{cells.dtype.kind}8[us]")
    return arrow.array(np.ascontiguousarray(cells))


class Matrix(TableFormat):
    """An array of NumPy of rows and columns, in float64."""

    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        if not file.seekable():
            raise ValueError("an array of NumPy cannot be written to a pipe; write a file")
        self._file, self._shape = file, (0, len(names))
        self._head()

    def _head(self) -> None:
        # NumPy leaves room for more rows: the header stays as long as it is.
        header = {"descr": "<f8", "fortran_order": False, "shape": self._shape}
        np.lib.format.write_array_header_1_0(self._file, header)

    def write(self, frame: Frame) -> None:
        """Write some rows."""
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
            if dtype.kind not in "biuf":
                raise ValueError(
                    f"column {name!r} holds no numbers, and an array of NumPy takes nothing "
                    "else; write .npz, or another format"
                )
        self._file.write(frame.matrix().astype("<f8", order="C").tobytes())
        self._shape = (self._shape[0] + len(frame), self._shape[1])

    def finish(self) -> None:
        """Write how many rows there are."""
        self._file.seek(0)
        self._head()
        self._file.seek(0, 2)


class _Piece(NamedTuple):
    start: int
    dtype: np.dtype[Any]
    n: int


class Archive(TableFormat):
    """An archive of NumPy, with one array for every column.

    Rows wait in a temporary file: an archive has its arrays one after the other.
    """

    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        self._file = file
        self._waiting = tempfile.TemporaryFile()  # noqa: SIM115
        self._pieces: dict[str, list[_Piece]] = {name: [] for name in names}

    def write(self, frame: Frame) -> None:
        """Write some rows."""
        for name, pieces in self._pieces.items():
            cells = frame[name]
            if cells.dtype.kind == "O":
                cells = np.array(["" if c is None or c != c else str(c) for c in cells], "U")
            pieces.append(_Piece(self._waiting.tell(), cells.dtype, len(cells)))
            self._waiting.write(np.ascontiguousarray(cells).tobytes())

    def finish(self) -> None:
        """Put the columns into the archive."""
        with self._waiting, zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, pieces in self._pieces.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    self._put(member, name, pieces)

    def abandon(self) -> None:
        """Remove the temporary file."""
        self._waiting.close()

    def _put(self, member: IO[bytes], name: str, pieces: list[_Piece]) -> None:
        types = {piece.dtype for piece in pieces} or {np.dtype(np.float64)}
        if len({dtype.kind if dtype.kind in "UMm" else "number" for dtype in types}) > 1:
            raise ValueError(f"column {name!r} holds text and numbers; write one of them")
        dtype = np.result_type(*types)
        header = np.lib.format.header_data_from_array_1_0(np.empty(0, dtype))
        header["shape"] = (sum(piece.n for piece in pieces),)
        np.lib.format.write_array_header_1_0(member, header)
        for piece in pieces:
            self._waiting.seek(piece.start)
            raw = self._waiting.read(piece.n * piece.dtype.itemsize)
            cells = np.frombuffer(raw, piece.dtype)
            member.write(cells.astype(dtype, copy=False).tobytes())


#: How to write each format, by its name.
FORMATS: dict[str, Callable[[IO[bytes], list[str]], TableFormat]] = {
    "csv": Delimited,
    "tsv": Tabbed,
    "jsonl": JsonLines,
    "parquet": ParquetFile,
    "arrow": ArrowFile,
    "npy": Matrix,
    "npz": Archive,
}
#: Those that are lines of text, which may be compressed.
TEXT_FORMATS = frozenset({"csv", "tsv", "jsonl"})
