"""Compressed files, opened as what they hold."""

import bz2
import gzip
import lzma
import os
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from imparo.extras import require

#: Endings of compressed files, and what they are called.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd", ".lz4": "lz4"}
_OPENERS: dict[str | None, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, OSError)


@runtime_checkable
class Openable(Protocol):
    """Bytes that can be read from the start many times, and are no file with a name."""

    def open(self) -> Any:
        """Return a new reader from the first byte on, with ``read`` and ``close``."""


class ByteReader:
    """A file read from the start; damage is told in one sentence.

    Parameters
    ----------
    name : str or Path
        For errors.
    file : file
        What to read from.
    compression : str or None
        How the file is compressed.
    """

    def __init__(self, name: object, file: Any, compression: str | None = None) -> None:
        self._name, self._file, self._compression = name, file, compression

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end."""
        parts: list[bytes] = []
        while size > 0 and (part := self._some(size)):
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _some(self, size: int) -> bytes:
        try:
            return bytes(self._file.read(size))
        except _DAMAGE as error:
            # An error with a number is the disk's, not that of the compressed content.
            if self._compression is None or getattr(error, "errno", None) is not None:
                raise
            raise ValueError(
                f"{self._name} is damaged, cut short or not compressed with "
                f"{self._compression}; copy it anew, or correct the end of its name"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "ByteReader":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_bytes(path: "Path | Openable") -> ByteReader:
    """Open a file for its bytes, decompressed if its name says that it is compressed.

    Parameters
    ----------
    path : Path or Openable
        Compressed if it ends with ``.gz``, ``.bz2``, ``.xz``, ``.zst`` or ``.lz4``; the last
        two need the extra "files".

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> from imparo.data.readers.compression import open_bytes
    >>> path = Path(tempfile.mkdtemp()) / "a.csv.gz"
    >>> _ = path.write_bytes(gzip.compress(b"x,y"))
    >>> with open_bytes(path) as file:
    ...     file.read(100)
    b'x,y'
    """
    if not isinstance(path, Path):
        return ByteReader(path, path.open())
    compression = COMPRESSIONS.get(path.suffix.lower())
    if compression in ("zstd", "lz4"):
        arrow = require("pyarrow", "files")
        file = arrow.CompressedInputStream(arrow.OSFile(os.fspath(path), "rb"), compression)
    else:
        file = _OPENERS.get(compression, open)(path, "rb")
    return ByteReader(path, file, compression)


def without_compression(name: str | Path) -> str:
    """Return the name of a file without the ending that says that it is compressed.

    Examples
    --------
    >>> from imparo.data.readers.compression import without_compression
    >>> without_compression("folder/a.csv.gz"), without_compression("b.csv")
    ('a.csv', 'b.csv')
    """
    path = Path(name)
    return path.stem if path.suffix.lower() in COMPRESSIONS else path.name
