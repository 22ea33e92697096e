"""One file of lines that may grow while it is read, be cut short or replaced."""

import os
from collections.abc import Callable
from pathlib import Path

from imparo.data.readers import LineFormat
from imparo.tabular.following.chunks import HEAD, TAIL, LineChunk, mark
from imparo.tabular.following.positions import State

# Bytes that are read at once; more only where a line is longer.
_READ = 2**18

#: Called with the path; returns the format, and offset and line of the first row.
Opener = Callable[[Path], tuple[LineFormat, int, int]]


class ChangedFileError(ValueError):
    """A file is no longer what was learned from it."""


class GrowingFile:
    """A file of lines, read from where one stopped.

    Only whole lines are read: a writer may be in the middle of one. The file stays open, so
    that what was appended before it was moved away is read, too.

    Parameters
    ----------
    path : Path
    opener : callable
        See :data:`Opener`.
    state : dict, optional
        How far it has been read.
    """

    def __init__(self, path: Path, opener: Opener, state: State | None = None) -> None:
        self.path, self._opener = path, opener
        self._format: LineFormat | None = None
        self._handle: int | None = None
        self.offset = 0 if state is None else int(state["offset"])
        self.line = 1 if state is None else int(state["line"])
        self._mark = None if state is None else str(state["mark"])

    def read(self, limit: int, last: bool = False) -> LineChunk | None:
        """Return the next lines.

        Parameters
        ----------
        limit : int
            The most lines.
        last : bool
            Whether the file is complete, so that a line without an end is one.

        Returns
        -------
        LineChunk or None
            None if there is no line yet.

        Raises
        ------
        ChangedFileError
            If the file was cut short, or holds something else where it had been read.
        """
        if not self._open():
            return None
        assert self._handle is not None
        size = os.fstat(self._handle).st_size
        if size == self.offset:
            if not self._is_current():
                raise self._changed("was replaced by another file")
            return None
        self._check(size)
        if self._format is None and not self._begin(last):
            return None
        tail = _tail(self._handle, self.offset)
        content = self._lines(limit, last)
        if content is None and not self._is_current():
            content = self._lines(limit, last=True)  # nobody will end that line
        if content is None:
            return None
        if tail and not tail.endswith(b"\n"):
            self._check_end(content)
        head = os.pread(self._handle, min(self.offset, HEAD), 0)
        known = {"inode": os.fstat(self._handle).st_ino}
        chunk = LineChunk(
            content, str(self.path), self.line, self.offset, self.format, head, tail, known
        )
        state = chunk.states()[chunk.file]
        self.offset, self.line, self._mark = state["offset"], state["line"], state["mark"]
        return chunk

    def holds(self, path: Path) -> bool:
        """Return whether another file holds what was read of this one."""
        if self._mark is None:
            return False
        try:
            with open(path, "rb") as file:
                return _mark_of(file.fileno(), self.offset) == self._mark
        except OSError:
            return False

    def format(self) -> LineFormat:
        """Return how its lines are parsed."""
        if self._format is None:
            self._format = self._opener(self.path)[0]
        return self._format

    def forget_format(self) -> None:
        """Let the next read find out anew what columns hold: more rows tell more."""
        self._format = None

    def close(self) -> None:
        """Close the file; the next read opens it again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self) -> bool:
        """Open the file if it is not; return whether it is there."""
        if self._handle is None:
            try:
                self._handle = os.open(self.path, os.O_RDONLY)
            except FileNotFoundError:
                return False
        return True

    def _is_current(self) -> bool:
        """Return whether the path still leads to what is open, to a copy, or to nothing."""
        assert self._handle is not None
        try:
            named, held = os.stat(self.path), os.fstat(self._handle)
        except FileNotFoundError:
            return True
        if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino):
            return True
        # An editor may save what was read as another file; of an empty one nothing was read.
        if self._mark is not None and not self.holds(self.path):
            return False
        self.close()
        return self._open()

    def _check(self, size: int) -> None:
        """Raise unless what was read is still there."""
        assert self._handle is not None
        if size < self.offset:
            raise self._changed(f"was cut to {size:,} bytes, and {self.offset:,} were read")
        if self._mark is not None and _mark_of(self._handle, self.offset) != self._mark:
            raise self._changed("holds something else now where it had been read")

    def _check_end(self, content: bytes) -> None:
        """Raise unless the line that the file ended with was whole, as it was taken to be."""
        if content[:1] not in (b"\n", b"\r"):
            raise self._changed("goes on in the middle of a line that was read as a whole one")
        self.line -= 1  # the first line here is the end of that one

    def _changed(self, what: str) -> ChangedFileError:
        return ChangedFileError(f"{self.path} {what}")

    def _begin(self, last: bool) -> bool:
        """Find the format, and where rows begin; return whether there are any."""
        assert self._handle is not None
        start = os.pread(self._handle, _READ, 0)
        if not (last or b"\n" in start):
            return False
        try:
            self._format, offset, line = self._opener(self.path)
        except ValueError:
            if not last and start.count(b"\n") < 2 and len(start) < _READ:
                return False  # names only, and rows may come
            raise
        if self.offset < offset:
            self.offset, self.line = offset, line
            self._mark = _mark_of(self._handle, offset)
        return True

    def _lines(self, limit: int, last: bool) -> bytes | None:
        """Return up to so many whole lines from the place on."""
        assert self._handle is not None
        content, at = b"", self.offset
        while True:
            more = os.pread(self._handle, _READ, at)
            content, at = content + more, at + len(more)
            if not more or b"\n" in more:
                break
        place = -1
        for _ in range(limit):
            found = content.find(b"\n", place + 1)
            if found < 0:
                break
            place = found
        else:
            return content[: place + 1]
        if last and at >= os.fstat(self._handle).st_size and place + 1 < len(content):
            return content
        return content[: place + 1] or None


def _tail(handle: int, offset: int) -> bytes:
    """Return the last bytes before a place."""
    return os.pread(handle, min(offset, TAIL), max(0, offset - TAIL))


def _mark_of(handle: int, offset: int) -> str:
    """Return the mark of what stands in a file up to a place; "" if it ends before."""
    if os.fstat(handle).st_size < offset:
        return ""
    return mark(os.pread(handle, min(offset, HEAD), 0), _tail(handle, offset))
