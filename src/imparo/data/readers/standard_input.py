"""Rows from a pipe: kept in a temporary file, as they are read more than once."""

import os
import shutil
import sys
import tempfile
from typing import Any, BinaryIO


class StandardInput:
    """What comes in by standard input, from its first byte to its last.

    It is copied to a temporary file that has no name, and so is gone with this process.

    Parameters
    ----------
    stream : binary file, optional
        Standard input if left out.
    name : str
        For errors.

    Examples
    --------
    >>> import io
    >>> from imparo.data.readers.standard_input import StandardInput
    >>> kept = StandardInput(io.BytesIO(b"a,b"))
    >>> kept.open().read(2), kept.open().read(10)
    (b'a,', b'a,b')
    """

    def __init__(self, stream: BinaryIO | None = None, name: str = "standard input") -> None:
        self._name = name
        # It stays open as long as this object is there.
        self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115
        shutil.copyfileobj(stream or sys.stdin.buffer, self._file, 2**20)
        self._file.flush()

    def __str__(self) -> str:
        return self._name

    def open(self) -> "_FromStart":
        """Return a new reader from the first byte on."""
        return _FromStart(self._file)


class _FromStart:
    def __init__(self, file: Any) -> None:
        self._file, self._place = file, 0

    def read(self, size: int) -> bytes:
        # Not moved: other readers of the same file are somewhere else.
        part = os.pread(self._file.fileno(), size, self._place)
        self._place += len(part)
        return part

    def close(self) -> None:
        pass
