"""Standard input to learn from: one JSON object a line."""

import os
import select

from imparo.data.readers import LineFormat
from imparo.tabular.following.chunks import Chunk, LineChunk
from imparo.tabular.following.files import Source
from imparo.tabular.following.json_objects import JsonObjects
from imparo.tabular.following.positions import State

_READ = 2**16


class Pipe(Source):
    """Lines of a pipe, counted over all runs of the command.

    Parameters
    ----------
    handle : int
        Of the pipe; 0 is standard input.
    lines : int
        Lines that earlier runs have taken.
    """

    def __init__(self, handle: int = 0, lines: int = 0) -> None:
        self._handle, self._before = handle, lines
        self._format = JsonObjects()
        self._rest, self._line, self._open = b"", 1, True

    def read(self, limit: int) -> Chunk | None:
        """Return what has come, up to so many lines."""
        while self._open and self._rest.count(b"\n") < limit and self._is_ready():
            more = os.read(self._handle, _READ)
            self._open = bool(more)
            self._rest += more
        cut = 0
        for _ in range(limit):
            place = self._rest.find(b"\n", cut)
            if place < 0:
                break
            cut = place + 1
        if not self._open and b"\n" not in self._rest[cut:]:
            cut = len(self._rest)
        content, self._rest = self._rest[:cut], self._rest[cut:]
        if not content:
            self.ended = not self._open
            return None
        chunk = _PipeChunk(content, self._line, self._before, self._format)
        self._line += len(chunk)
        return chunk

    def wait(self, seconds: float) -> None:
        """Wait for more, at most so long."""
        self._is_ready(seconds)

    def _is_ready(self, seconds: float = 0.0) -> bool:
        return bool(select.select([self._handle], [], [], seconds)[0])

    def close(self) -> None:
        """Do nothing: standard input is not ours to close."""


class _PipeChunk(LineChunk):
    def __init__(self, content: bytes, line: int, before: int, format: LineFormat) -> None:
        super().__init__(content, "-", line, 0, lambda: format)
        self._before = before

    def states(self, until: int | None = None) -> dict[str, State]:
        """Return how many lines were taken after this chunk, or before a line of it."""
        end = self._line + len(self) if until is None else until
        return {"-": {"lines": self._before + end - 1}}
