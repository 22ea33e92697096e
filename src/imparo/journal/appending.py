"""The end of a journal: append, make durable, undo what failed."""

import math
import os
import threading
import time
from pathlib import Path

from imparo.journal import segments
from imparo.journal.folders import segment_path
from imparo.persistence import write_atomically


class Appender:
    """Appends to the last segment of a folder; safe to use from several threads.

    Parameters
    ----------
    folder : Path
    number : int
        The last record.
    segment : Segment or None
        The one to go on with, or None to begin one.
    size : int
        Where its last record ends; what follows is cut off.
    seconds : float or None
        Zero to sync each record, None never to; else the time after which it is due.
    segment_size : int
        Bytes after which a new segment begins.
    """

    def __init__(
        self,
        folder: Path,
        number: int,
        segment: segments.Segment | None,
        size: int,
        seconds: float | None,
        segment_size: int,
    ) -> None:
        self._end = (number, size)
        self._folder = folder
        self._seconds = seconds
        self._segment_size = segment_size
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._since = 0.0  # when the oldest record was written that is not yet on disk
        self._trouble = ""
        self._synced = number
        if segment is None or size < segments.START:
            self._begin()
        else:
            self._open(segment.path)
            if os.fstat(self._file.fileno()).st_size != size:
                os.ftruncate(self._file.fileno(), size)
            # Whatever was written before a crash counts as on disk from now on.
            os.fsync(self._file.fileno())

    @property
    def number(self) -> int:
        """The last record."""
        return self._end[0]

    @property
    def _size(self) -> int:
        return self._end[1]

    def append(self, payload: bytes) -> int:
        """Write one record; return its number when it is as durable as promised."""
        with self._lock:
            self._check()
            if self._size >= self._segment_size:
                self.rotate()
            number = self.number + 1
            unsynced = self.number - self._synced if self._seconds else 0
            record = segments.frame(self._mark, number, unsynced, payload)
            due = self._is_due()
            try:
                _write(self._file.fileno(), record)
                if due:
                    self._sync()
                # At once, so that no interrupt can come between the two.
                self._end = (number, self._size + len(record))
            except BaseException:
                self._undo()
                raise
            if due:
                self._synced = number
            elif self._seconds:
                self._schedule()
            return number

    def rotate(self) -> int:
        """Begin a new segment, unless the last is empty; return the last record's number."""
        with self._lock:
            self._check()
            if self._size > segments.START:
                # Only the last segment may have a torn end, whatever the policy.
                self._sync()
                self._synced = self.number
                full = self._file
                self._begin()
                full.close()
            return self.number

    def close(self) -> None:
        """Make the rest durable, unless the policy is never to."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
            try:
                if self._seconds and self._synced < self.number and not self._trouble:
                    self._sync()
            finally:
                self._trouble = f"the journal {self._folder} is closed"
                self._file.close()

    def _check(self) -> None:
        if self._trouble:
            raise OSError(self._trouble)

    def _begin(self) -> None:
        path = segment_path(self._folder, self.number + 1)
        beginning = segments.start(self.number + 1)
        try:
            write_atomically(path, beginning)
            self._open(path)
            self._end = (self.number, len(beginning))
        except BaseException:
            if path.exists():  # to go on in the old segment would be an error then
                self._refuse("a new segment could not be finished")
            raise

    def _open(self, path: Path) -> None:
        with open(path, "rb") as file:
            mark = segments.mark_of(file.read(segments.START))
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (held, not used and closed)
        self._mark = mark

    def _undo(self) -> None:
        try:
            os.ftruncate(self._file.fileno(), self._size)
        except OSError:
            self._refuse("a record could not be written, nor what was written of it removed")

    def _refuse(self, what: str) -> None:
        self._trouble = (
            f"the journal {self._folder} takes no more records, because {what}; all that it "
            "acknowledged is kept: close it, check the disk, and open it again"
        )

    def _sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError:
            # After an error the system may forget what it could not write, and the next call
            # would succeed without it.
            self._refuse("the disk did not confirm what was written")
            raise

    # Group commit: a timer makes records durable after half of the time that is allowed;
    # where the disk is too slow for that, append waits for it.

    def _is_due(self) -> bool:
        if not self._seconds:
            return self._seconds == 0
        waiting = self._synced < self.number
        return waiting and time.monotonic() - self._since >= self._seconds

    def _schedule(self) -> None:
        if self._synced == self.number - 1:
            self._since = time.monotonic()
        if self._timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        self._timer = threading.Timer((self._seconds or 0) / 2, self._sync_later)
        self._timer.daemon = True
        self._timer.start()

    def _sync_later(self) -> None:
        with self._lock:
            if self._trouble:
                return
            number, now = self.number, time.monotonic()
            try:
                handle = os.dup(self._file.fileno())  # a new segment may begin meanwhile
            except OSError:  # of too many files: once more, a little later
                self._start_timer()
                return
        try:
            os.fsync(handle)
        except OSError:
            with self._lock:
                if not self._trouble:
                    self._refuse("the disk did not confirm what was written")
            return
        finally:
            os.close(handle)
        with self._lock:
            self._timer = None
            self._synced = max(self._synced, number)
            if self._synced < self.number and not self._trouble:
                self._since = now
                self._start_timer()


def seconds_of(sync: str | float) -> float | None:
    """Return after how long a record must be on disk: 0 is "always", None is "never"."""
    if sync == "always":
        return 0.0
    if sync == "never":
        return None
    number = isinstance(sync, int | float) and not isinstance(sync, bool)
    if number and 0 < float(sync) < math.inf:
        return float(sync)
    raise ValueError(
        f"sync must be 'always', 'never' or a positive number of seconds, not {sync!r}"
    )


def _write(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
