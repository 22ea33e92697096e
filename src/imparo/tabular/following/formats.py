"""How a file is read: line by line as it grows, or as a whole."""

import codecs
import contextlib
import glob
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from imparo.data import open_rows
from imparo.data.readers import LineFormat, Rows
from imparo.data.readers.several_files import files_below, holds_rows, natural_order
from imparo.data.readers.text_chunks import plain_encoding
from imparo.tabular.following.json_objects import JsonObjects

#: Endings of files of lines that may grow.
LINES = frozenset(
    {
        ".csv",
        ".tsv",
        ".txt",
        ".data",
        ".jsonl",
        ".ndjson",
        ".json",
        ".libsvm",
        ".svm",
        ".svmlight",
    }
)
#: Endings of files that are read as a whole, once.
WHOLE = frozenset(
    {".parquet", ".pq", ".arrow", ".feather", ".ipc", ".npy", ".npz", ".h5", ".hdf5"}
    | {".gz", ".bz2", ".xz", ".zst", ".lz4"}
)
# Bytes that tell what columns hold.
_SAMPLE = 2**22
_JSON = frozenset({".jsonl", ".ndjson", ".json"})


def is_lines(path: Path) -> bool:
    """Return whether a file can be read line by line; one array of JSON cannot."""
    if path.suffix.lower() == ".json" and path.exists():
        with open(path, "rb") as file:
            return not file.read(64).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    return path.suffix.lower() in LINES


def is_json(file: str) -> bool:
    """Return whether rows of a file name their own columns, some of which may be absent."""
    return file == "-" or Path(file).suffix.lower() in _JSON


def files_of(data: str) -> list[Path]:
    """Return the files of a folder, or those that a pattern fits, in natural order.

    Hidden ones are left out, and those that programs write to until they are complete.
    """
    path = Path(data)
    if path.is_dir():
        known = LINES | WHOLE
        return [file for file in files_below(path) if file.suffix.lower() in known]
    found = map(Path, glob.glob(data, recursive=True))
    return natural_order(file for file in found if file.is_file() and holds_rows(file))


class Formats:
    """Opens files, with what is known of their columns.

    Parameters
    ----------
    text : iterable of str
        Columns that hold text, whatever they look like.
    **settings
        More of :class:`~imparo.data.readers.ReadOptions`, such as ``delimiter``.

    Attributes
    ----------
    n_columns, first_index : int or None
        Number of columns of sparse rows, and the index of the first.
    """

    def __init__(self, text: Iterable[str] = (), **settings: Any) -> None:
        self.text = tuple(text)
        self.n_columns: int | None = None
        self.first_index: int | None = None
        self.settings = settings

    def rows(self, path: Path, **more: Any) -> Rows:
        """Open a file."""
        known: dict[str, Any] = {"n_columns": self.n_columns, "first_index": self.first_index}
        return open_rows(path, text=self.text, **known, **self.settings, **more)

    def lines(self, path: Path) -> tuple[LineFormat, int, int]:
        """Return the format of a file of lines, and offset and line of its first row."""
        encoding = self.settings.get("encoding") or "utf-8"
        if not plain_encoding(encoding):
            raise ValueError(f"{path} cannot be read line by line in {encoding}; use UTF-8")
        lines = JsonObjects() if is_json(str(path)) else self._format(path)
        if lines is None:
            raise ValueError(f"{path} holds no lines and can only be read as a whole")
        return lines, *first_row(path, lines)

    def _format(self, path: Path) -> LineFormat | None:
        try:
            return self.rows(path).lines
        except ValueError:
            # A line in another encoding is a bad row, not a bad file.
            sample = _decodable(path, self.settings.get("encoding") or "utf-8")
            if sample is None:
                raise
            with tempfile.NamedTemporaryFile(suffix=path.suffix) as file:
                file.write(sample)
                file.flush()
                return self.rows(Path(file.name)).lines


def _decodable(path: Path, encoding: str) -> bytes | None:
    """Return the first lines that can be decoded; None if all can."""
    kept, size, count = [], 0, 0
    with open(path, "rb") as file:
        for line in file:
            count += 1
            size += len(line)
            with contextlib.suppress(UnicodeDecodeError):
                line.decode(encoding)
                kept.append(line)
            if size > _SAMPLE:
                break
    return b"".join(kept) if 0 < len(kept) < count else None


def first_row(path: Path, lines: LineFormat) -> tuple[int, int]:
    """Return where the first row of a file of lines begins, and its line."""
    count = getattr(lines, "header_lines", 0)
    with open(path, "rb") as file:
        if not count:
            return (3, 1) if file.read(3) == codecs.BOM_UTF8 else (0, 1)
        for _ in range(count):
            file.readline()
        return file.tell(), count + 1
