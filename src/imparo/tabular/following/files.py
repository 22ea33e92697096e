"""Files to learn from: one that grows, or all of a folder, those to come included."""

import contextlib
import glob
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from imparo.data.readers import BadRows
from imparo.data.readers.bad_rows import PassedBadRows
from imparo.errors import ImparoWarning, warn_user
from imparo.tabular.following.chunks import Chunk, RowChunk, taken
from imparo.tabular.following.formats import Formats, files_of, is_lines
from imparo.tabular.following.growing import ChangedFileError, GrowingFile
from imparo.tabular.following.positions import State

CONTINUE, STOP = "continue", "stop"


class ChangedFileWarning(ImparoWarning):
    """A file that had been learned was changed, and is left alone."""


class Source(ABC):
    """Where rows come from.

    Attributes
    ----------
    ended : bool
        Whether nothing more will come.
    """

    ended: bool = False

    @abstractmethod
    def read(self, limit: int) -> Chunk | None:
        """Return up to so many rows, or None if there are none at present."""

    def wait(self, seconds: float) -> None:
        """Wait before the next look, or until there is something."""
        time.sleep(seconds)

    def forget_formats(self) -> None:  # noqa: B027 (nothing to forget for most)
        """Find out anew what columns hold: more rows, or a learner, tell more."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""


class Files(Source):
    """One file, the files of a folder, or those that a pattern fits, in natural order.

    Files of lines are read as far as they go, and again when they have grown. Others are read
    once, when they have not changed for two polls.

    Parameters
    ----------
    data : str or Path
        A file, a folder or a pattern such as ``"logs/*.csv"``.
    formats : Formats
    states : dict of str to dict
        How far files have been read.
    follow : bool
        Whether to wait for more; otherwise everything that is there is complete.
    on_rotate : "stop" or "continue"
        What to do with a file that holds something else than what was read of it: raise (of
        several files: warn, and leave it alone), or read it from its beginning.
    poll : float
        Seconds between looks.
    bad : BadRows, optional
        What to do with bad rows of files that are read as a whole.
    """

    def __init__(
        self,
        data: str | Path,
        formats: Formats,
        states: dict[str, State],
        *,
        follow: bool = False,
        on_rotate: str = STOP,
        poll: float = 0.5,
        bad: BadRows | None = None,
    ) -> None:
        self._data, self._formats, self._bad = str(data), formats, bad or BadRows()
        self._follow, self._on_rotate, self._poll = follow, on_rotate, poll
        self._states = dict(states)
        self._growing: dict[Path, GrowingFile] = {}
        self._whole: Iterator[RowChunk] | None = None
        self._rest: RowChunk | None = None  # of the last chunk of it
        self._current: Path | None = None
        self._exhausted: dict[Path, tuple[int, int]] = {}  # files without news, as they were
        self._quiet: dict[Path, tuple[tuple[int, int], float]] = {}  # since when unchanged
        self._left: set[Path] = set()  # files that are not read any more
        self._check_data()

    def _check_data(self) -> None:
        path = Path(self._data)
        self._several = path.is_dir() or (not path.exists() and glob.has_magic(self._data))
        if self._several:
            fresh = not (self._follow or self._states or path.is_dir())
            if fresh and not self._paths():
                raise FileNotFoundError(f"there is no file like {path}; check the pattern")
            return
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder {path}; check the name")
        if self._follow and not is_lines(path):
            raise ValueError(
                f"{path} is read as a whole and cannot be followed as it grows; leave --follow "
                "out, follow a folder of such files, or write CSV or JSON lines"
            )

    def _paths(self) -> list[Path]:
        if not self._several:
            return [Path(self._data).absolute()]
        return [path.absolute() for path in files_of(self._data)]

    def read(self, limit: int) -> Chunk | None:
        """Return up to so many rows of the first file that has some."""
        if self._current is not None:
            chunk = self._read(self._current, limit, last=not self._follow)
            if chunk is not None:
                return chunk
            self._current = None
        paths = self._paths()
        if not self._several and not paths[0].exists() and not self._follow:
            raise FileNotFoundError(f"{paths[0]} is gone; check the name")
        for path in paths:
            if path in self._left or not self._has_news(path):
                continue
            last = not self._follow or (path != paths[-1] and self._is_quiet(path))
            chunk = self._read(path, limit, last)
            if chunk is not None:
                self._current = path
                return chunk
        self.ended = not self._follow
        return None

    def _has_news(self, path: Path) -> bool:
        now = _stamp(path)
        since = self._quiet.get(path)
        if since is None or since[0] != now:
            self._quiet[path] = (now, time.monotonic())
        if self._several and path in self._exhausted and self._exhausted[path] == now:
            # Half a line at the end may turn out to be a whole one.
            growing = self._growing.get(path)
            return growing is not None and now[0] > growing.offset and self._is_quiet(path)
        return True

    def _is_quiet(self, path: Path) -> bool:
        return time.monotonic() - self._quiet[path][1] >= 2 * self._poll

    def _read(self, path: Path, limit: int, last: bool) -> Chunk | None:
        now = _stamp(path)
        try:
            chunk = (
                self._lines(path, limit, last) if is_lines(path) else self._rows(path, limit)
            )
        except ChangedFileError as error:
            self._answer(path, error)
            if path in self._left:
                return None
            chunk = self._lines(path, limit, last)
        if chunk is None and path in self._growing:
            self._exhausted[path] = now
            if self._several:
                self._growing[path].close()
        return chunk

    # Files of lines.

    def _lines(self, path: Path, limit: int, last: bool) -> Chunk | None:
        if path not in self._growing:
            state = self._states.get(str(path)) or self._moved_here(path)
            self._growing[path] = GrowingFile(path, self._formats.lines, state)
        return self._growing[path].read(limit, last)

    def _moved_here(self, path: Path) -> State | None:
        """Return the state of a file that now has another name, this one."""
        with contextlib.suppress(FileNotFoundError):
            inode = path.stat().st_ino
            for name, state in self._states.items():
                if state.get("inode") != inode or name == str(path):
                    continue
                old = GrowingFile(Path(name), self._formats.lines, state)
                if old.holds(path) and not old.holds(Path(name)):
                    return state
        return None

    def _answer(self, path: Path, error: ChangedFileError) -> None:
        """Raise, or leave a file alone, or read it anew from its beginning."""
        old = self._growing.pop(path)
        old.close()
        rotated = any(old.holds(other) for other in self._paths() if other != path)
        if rotated or self._on_rotate == CONTINUE:
            if not rotated:
                warn_user(f"{error}; it is learned from its beginning", ChangedFileWarning)
            self._states.pop(str(path), None)
            self._growing[path] = GrowingFile(path, self._formats.lines)
            self._exhausted.pop(path, None)
        elif self._several:
            warn_user(f"{error}; it is left alone", ChangedFileWarning)
            self._left.add(path)
        else:
            raise ValueError(
                f"{error}; begin another folder, or learn it from its beginning with "
                "--on-rotate continue"
            ) from error

    # Files that are read as a whole.

    def _rows(self, path: Path, limit: int) -> Chunk | None:
        if self._whole is None:
            if self._follow and not self._is_quiet(path):
                return None
            size, when = _stamp(path)
            state = self._states.get(str(path))
            known = {"size": size, "time": when}
            if state is not None and (state["size"], state["time"]) != (size, when):
                warn_user(
                    f"{path} has changed since it was learned; it is left alone",
                    ChangedFileWarning,
                )
                self._left.add(path)
                return None
            if state is not None and state["done"]:
                self._left.add(path)
                return None
            start = 0 if state is None else state["row"]
            self._whole = _row_chunks(path, self._formats, known, start, limit, self._bad)
        chunk = self._rest or next(self._whole, None)
        self._rest = None
        if chunk is None:
            self._whole = None
            self._left.add(path)
        elif len(chunk) > limit:
            chunk, self._rest = chunk.split(limit)
        return chunk

    def forget_formats(self) -> None:
        """Find out anew what columns hold."""
        for growing in self._growing.values():
            growing.forget_format()

    def close(self) -> None:
        """Close what is open."""
        for growing in self._growing.values():
            growing.close()


def _row_chunks(
    path: Path, formats: Formats, known: State, start: int, limit: int, bad: BadRows
) -> Iterator[RowChunk]:
    """Yield the rows of a file from a number on; the last chunk knows that it is."""
    waiting: tuple[Any, int] | None = None
    place = 0
    passed = PassedBadRows(bad.policy, to=bad)
    for rows in formats.rows(path, bad=passed).blocks(size=limit):
        if place + len(rows) > start:
            skipped = max(0, start - place)
            if waiting is not None:
                yield RowChunk(waiting[0], str(path), waiting[1], known, last=False)
            waiting = (taken(rows, slice(skipped, None)), place + skipped)
        place += len(rows)
    if waiting is not None:
        yield RowChunk(waiting[0], str(path), waiting[1], known, last=True)


def _stamp(path: Path) -> tuple[int, int]:
    """Return size and time of a file; (-1, 0) if it is gone."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return -1, 0
    return found.st_size, found.st_mtime_ns
