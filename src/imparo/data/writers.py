"""Rows written to files: a block at a time, and the file is there when it is whole."""

import contextlib
import gzip
import os
import secrets
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from imparo.data.frames import Frame
from imparo.data.readers.column_choice import check_unlike
from imparo.data.table_formats import FORMATS, TEXT_FORMATS, TableFormat

_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".ipc": "arrow",
    ".feather": "arrow", ".npy": "npy", ".npz": "npz",
}  # fmt: skip


class Writer:
    """A file that is being written; see :func:`open_writer`.

    Leaving the ``with`` block puts the file in its place. An error within removes what was
    written.

    Attributes
    ----------
    n_rows : int
        Rows written so far.
    """

    def __init__(self, path: Path | None, names: list[str], kind: str, packed: bool) -> None:
        self.n_rows = 0
        self._names, self._path = names, path
        self._temporary: Path | None = None
        self._opened: list[Any] = []
        self._is_done = False
        self._format: TableFormat | None = None
        file: Any = self._open()
        try:
            if packed:
                file = gzip.GzipFile("", "wb", 6, file, mtime=0)
                self._opened.append(file)
            self._format = FORMATS[kind](file, names)
        except BaseException:
            self.discard()
            raise

    def _open(self) -> IO[bytes]:
        if self._path is None:
            sys.stdout.flush()
            return getattr(sys.stdout, "buffer", None) or _AsText()  # type: ignore[return-value]
        if self._path.exists() and not self._path.is_file():
            # A device or a pipe cannot be replaced: it takes the bytes as they come.
            file: IO[bytes] = self._path.open("wb")
        else:
            # A link stays one: the file it leads to is replaced.
            self._path = Path(os.path.realpath(self._path))
            self._temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")
            handle = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            file = os.fdopen(handle, "w+b")
        self._opened.append(file)
        return file

    def write(self, frame: Frame) -> None:
        """Write some rows; columns that were not announced are left out.

        Raises
        ------
        OSError
            If the disk is full, among other things.
        """
        there = set(frame.columns)
        gone = [name for name in self._names if name not in there]
        if gone:
            raise ValueError(f"there is no column {gone[0]!r} to write")
        if self._format is None or self._is_done:
            raise ValueError("the file is closed; open it anew to write more")
        if len(frame):
            self._format.write(frame.select(self._names))
            self.n_rows += len(frame)

    def close(self) -> None:
        """End the file and put it in its place."""
        if self._is_done or self._format is None:
            return
        try:
            self._format.finish()
            while self._opened:
                file = self._opened[-1]
                file.flush()
                if self._temporary is not None and len(self._opened) == 1:
                    os.fsync(file.fileno())
                self._opened.pop().close()
            if self._temporary is not None:
                os.replace(self._temporary, str(self._path))
            self._is_done = True
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove what was written, if the file is not in its place yet."""
        if self._is_done:
            return
        self._is_done = True
        if self._format is not None:
            self._format.abandon()
        while self._opened:
            # It is not wanted any more: that its end cannot be written does not matter.
            with contextlib.suppress(OSError, ValueError):
                self._opened.pop().close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class _AsText:
    """Standard output that takes no bytes, such as one that is kept in a string."""

    def write(self, content: bytes) -> int:
        return sys.stdout.write(content.decode())

    def flush(self) -> None:
        sys.stdout.flush()


def open_writer(
    path: str | os.PathLike[str] | None, names: list[str], format: str | None = None
) -> Writer:
    """Open a file to write rows to.

    The rows are written beside the place of the file, which is there when all of them are; an
    error leaves the file that was there before, or none.

    Parameters
    ----------
    path : path-like or None
        None or "-" for standard output. Ends in ``.csv``, ``.tsv``, ``.jsonl``,
        ``.parquet``, ``.arrow``, ``.feather``, ``.npy`` (numbers alone) or ``.npz``; the text
        ones may have ``.gz`` after it.
    names : list of str
        The columns, in order.
    format : str, optional
        "csv", "tsv", "jsonl", "parquet", "arrow", "npy" or "npz", whatever the name ends in.

    Returns
    -------
    Writer
        To be used in a ``with`` statement.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from imparo.data import Frame
    >>> from imparo.data.writers import open_writer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "out.csv"
    ...     with open_writer(file, ["city", "y"]) as writer:
    ...         writer.write(Frame({"y": [0.1, float("nan")], "city": ["Aix, France", None]}))
    ...     print(file.read_text())
    city,y
    "Aix, France",0.1
    ,
    """
    names = [str(name) for name in names]
    check_unlike(names, "what is to be written")
    if not names:
        raise ValueError("there is no column to write; give one or more names")
    target = None if path is None or str(path) == "-" else Path(path)
    kind, packed = _kind(target, format)
    if target is not None:
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a folder; give the name of a file to write")
        if not target.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {target.parent} to write to")
    return Writer(target, names, kind, packed)


def _kind(path: Path | None, format: str | None) -> tuple[str, bool]:
    """Return the format of a file, and whether it is compressed."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"format {format!r} cannot be written; give {', '.join(FORMATS)}")
    suffixes = [suffix.lower() for suffix in path.suffixes] if path else []
    packed = suffixes[-1:] == [".gz"]
    kind = format or _SUFFIXES.get("".join(suffixes[:-1][-1:] if packed else suffixes[-1:]))
    if kind is None and (path is None or (path.exists() and not path.is_file())):
        kind = "csv"
    if kind is None:
        raise ValueError(
            f"{path} ends in no format that can be written; end it in "
            f"{', '.join(_SUFFIXES)}, or give the format"
        )
    if path is None and kind not in TEXT_FORMATS:
        raise ValueError(f"{kind} is not written to standard output; give the name of a file")
    if packed and kind not in TEXT_FORMATS:
        raise ValueError(f"{path} would be compressed twice; leave .gz away")
    return kind, packed
