"""The journal: what the modules beside this one do, in the order that loses nothing."""

import io
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from imparo.errors import FileFormatError
from imparo.journal import folders
from imparo.journal.appending import Appender, seconds_of
from imparo.journal.locks import Lock
from imparo.journal.segments import LONGEST, Cut, Segment


class Update(NamedTuple):
    """What a writer has done since a reader last looked.

    Attributes
    ----------
    snapshot : Path or None
        If given, load it in place of all state: records before it are gone.
    records : iterator of (int, bytes)
        Records after that, or after the last that was read.
    """

    snapshot: Path | None
    records: Iterator[tuple[int, bytes]]


class Journal:
    """A folder with numbered records that survive crashes, and snapshots that replace them.

    Cost of opening: the snapshot and the records after it are read and checked once. Appends
    are safe from several threads, and while a snapshot is written.

    Parameters
    ----------
    folder : path-like
        Made if missing. A writer owns the files ``lock``, ``records-*`` and ``snapshot-*``.
    sync : "always", "never" or float, default "always"
        When a record is acknowledged. No policy loses acknowledged records when the process is
        killed. "always": on disk, power may fail. A number: the system has it, and it is on
        disk within so many seconds; a power failure loses what was acknowledged in that time
        at most. "never": the system has it, and writes it when it likes.
    writable : bool, default True
        One writer at a time; any number of readers meanwhile, which change nothing and see
        the records up to some moment.
    segment_size : int, default 64 MiB
        Bytes after which a new file of records begins.

    Attributes
    ----------
    cut : Cut or None
        Bytes of an unfinished write at the end that were cut off (by a reader: ignored), and
        the reason.
    damaged : list of Path
        Newer snapshots that were damaged, so that an older one and its records are used. They
        are kept until the next snapshot.

    Raises
    ------
    BlockingIOError
        If another writer has the folder open; the message names its process.
    FileFormatError
        If records or snapshots are damaged otherwise than by a write that a crash cut short.
        Nothing is changed then.

    Notes
    -----
    A record that could not be acknowledged because the process ended may be there or not. A
    reader may see a record shortly before it is acknowledged. After the deletion of the last
    of several segments a journal looks as it did before that segment; no check can tell.

    Examples
    --------
    >>> import tempfile
    >>> from imparo.journal import Journal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal(folder) as journal:
    ...         print(journal.append(b"one"), journal.append(b"two"))
    ...         _ = journal.snapshot(lambda path: path.write_text("one, two"))
    ...         print(journal.append(b"three"))
    ...     with Journal(folder) as journal:
    ...         print(journal.snapshot_path.read_text(), list(journal.records()))
    1 2
    3
    one, two [(3, b'three')]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        sync: str | float = "always",
        writable: bool = True,
        segment_size: int = 2**26,
    ) -> None:
        seconds = seconds_of(sync)
        self.folder = Path(folder).absolute()
        self.writable = writable
        self._closed = False
        self._process = os.getpid()
        #: Whether records ended because the writer replaced files: refresh again.
        self.behind = False
        self._snapshotting = threading.RLock()
        self._busy = False
        if writable:
            folders.make_folder(self.folder)
            self._lock = Lock(self.folder / folders.LOCK)
            try:
                self._start_writing(seconds, segment_size)
            except BaseException:
                self._lock.release()
                raise
        else:
            if not self.folder.is_dir():
                raise FileNotFoundError(f"there is no journal {self.folder}")
            self._adopt(folders.recover_beside_writer(self.folder))

    def _start_writing(self, seconds: float | None, segment_size: int) -> None:
        found = folders.recover(self.folder)
        self._adopt(found)
        last = found.segments[-1] if found.segments else None
        self._appender = Appender(
            self.folder, found.number, last, found.offset, seconds, segment_size
        )
        folders.remove_files(self.folder, folders.contents(self.folder).unfinished)
        if found.snapshot and not found.damaged:
            folders.remove(self.folder, found.snapshot)

    def _adopt(self, found: folders.Recovered) -> None:
        self._snapshot = found.snapshot
        self._number = found.number
        self.cut: Cut | None = found.cut
        self.damaged: list[Path] = found.damaged
        self._position = (0, 0, self.snapshot_number)

    @property
    def snapshot_path(self) -> Path | None:
        """File with the state to start from, or None to start from nothing."""
        return self._snapshot.path if self._snapshot else None

    @property
    def snapshot_number(self) -> int:
        """Last record that the snapshot stands for; 0 without a snapshot."""
        return self._snapshot.number if self._snapshot else 0

    @property
    def number(self) -> int:
        """The last record: acknowledged, or known to this reader; 0 before the first."""
        return self._appender.number if self.writable else self._number

    @property
    def size(self) -> int:
        """Bytes on disk, unfinished snapshots included. Cost: a look at each file."""
        self._check()
        return folders.size(self.folder)

    def append(self, payload: bytes) -> int:
        """Write a record; return when it is as durable as ``sync`` promises.

        Cost: one system call and 24 bytes beside the payload; with ``sync="always"`` one
        ``fsync``, a millisecond or so.

        Parameters
        ----------
        payload : bytes
            Less than 4 GiB.

        Returns
        -------
        int
            Its number: 1 for the first, and one more for each.

        Raises
        ------
        OSError
            If it could not be written. It is then removed, and the next one may succeed, unless
            the disk is in doubt: then all are refused until the journal is opened again.
        """
        self.check_writable()
        if not isinstance(payload, bytes):
            raise TypeError(f"a record is bytes, not {type(payload).__name__}; see encode")
        if len(payload) > LONGEST:
            raise ValueError(f"a record has at most {LONGEST} bytes, not {len(payload)}")
        return self._appender.append(payload)

    def snapshot(self, write: Callable[[Path], object], *, at: int | None = None) -> Path:
        """Save the state after the last record, and delete the records that led to it.

        Until the new snapshot is on disk and checked, the previous one and all records stay.
        Cost: the file is written once and read twice; readers and appends go on meanwhile.

        Parameters
        ----------
        write : callable
            Writes the state to the path that it is given, in the same folder.
        at : int, optional
            The record after which the state is saved, if not the last: for a copy of the
            state that another thread writes while records are appended.

        Returns
        -------
        Path
            The snapshot, until the next one is made.

        Examples
        --------
        >>> import tempfile
        >>> from imparo.journal import Journal
        >>> with tempfile.TemporaryDirectory() as folder, Journal(folder) as journal:
        ...     numbers = [journal.append(bytes(1000)) for _ in range(100)]
        ...     before = journal.size
        ...     path = journal.snapshot(lambda path: path.write_bytes(b"a hundred"))
        ...     before, journal.size, list(journal.records())
        (102433, 42, [])
        """
        self.check_writable()
        with self._snapshotting:
            if self._busy:
                raise RuntimeError("a snapshot cannot be made while another is being written")
            self._busy = True
            try:
                last = self._appender.rotate()
                at = last if at is None else at
                if not self.snapshot_number <= at <= last:
                    raise ValueError(
                        f"at must be a record from {self.snapshot_number} to {last}, not {at}"
                    )
                self._snapshot = folders.write_snapshot(self.folder, at, write)
                self.damaged = []
                folders.remove(self.folder, self._snapshot)
                return self._snapshot.path
            finally:
                self._busy = False

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield number and payload of the records after the snapshot, in order.

        Reads from disk, one record in memory at a time. To a reader whose files the writer
        replaces meanwhile the records seem to end; :meth:`refresh` then says so.
        """
        self._check()
        if not self.writable:
            self._position = (0, 0, self.snapshot_number)
            return self._read_on(folders.contents(self.folder).segments)
        return self._read_own(self.snapshot_number, self.number)

    def _read_own(self, after: int, last: int) -> Iterator[tuple[int, bytes]]:
        found = folders.covering(folders.contents(self.folder).segments, after + 1)
        for number, payload in folders.Chain(found).records():
            if number > last:
                return
            if number > after:
                yield number, payload

    def refresh(self) -> Update:
        """Look what the writer has added since this reader last read.

        If the snapshot is deleted before you have loaded it, refresh again: the next one is
        given. Cost: a list of the folder, and what is new.

        Returns
        -------
        Update

        Examples
        --------
        >>> import tempfile
        >>> from imparo.journal import Journal
        >>> with tempfile.TemporaryDirectory() as folder, Journal(folder) as writer:
        ...     reader = Journal(folder, writable=False)
        ...     _ = writer.append(b"one")
        ...     print(list(reader.refresh().records))
        ...     _ = writer.append(b"two")
        ...     _ = writer.snapshot(lambda path: path.write_text("one, two"))
        ...     print(reader.refresh().snapshot.read_text())
        [(1, b'one')]
        one, two
        """
        self._check()
        if self.writable:
            raise io.UnsupportedOperation("refresh is for readers; this journal is the writer")
        number = self._position[2]
        found = folders.contents(self.folder).segments
        path = self.snapshot_path
        unread = number == self.snapshot_number and path is not None and not path.exists()
        if (folders.covering(found, number + 1) and not unread) or (not found and number == 0):
            return Update(None, self._read_on(found))
        self._adopt(folders.recover_beside_writer(self.folder))
        if self.snapshot_number < number:
            raise FileFormatError(
                f"{self.folder} no longer holds the records that were read from it; open it "
                "again"
            )
        return Update(self.snapshot_path, self.records())

    def _read_on(self, found: list[Segment]) -> Iterator[tuple[int, bytes]]:
        first, offset, after = self._position
        covering = folders.covering(found, after + 1)
        chain = folders.Chain(covering, first, offset, after)
        self.behind = bool(found) and not covering
        try:
            for number, payload in chain.records():
                if number > self.snapshot_number:
                    self._position = (chain.first, chain.offset, number)
                    self._number = max(self._number, number)
                    yield number, payload
        except (FileNotFoundError, FileFormatError):
            if folders.contents(self.folder).segments == found:
                raise
            self.behind = True  # files came and went while they were listed or read

    def close(self) -> None:
        """Make the rest durable and let others write; may be called again."""
        if self._closed:
            return
        if not self.writable or self._process != os.getpid():
            self._closed = True  # in a fork the lock below may be held for ever
            return
        with self._snapshotting:
            self._closed = True
            try:
                self._appender.close()
            finally:
                self._lock.release()

    def _check(self) -> None:
        if self._closed:
            raise ValueError(f"the journal {self.folder} is closed; open it again")

    def check_writable(self) -> None:
        """Raise unless records can be appended: it is open, for writing, in this process."""
        self._check()
        if not self.writable:
            raise io.UnsupportedOperation(
                f"the journal {self.folder} was opened with writable=False"
            )
        if self._process != os.getpid():
            raise RuntimeError(
                f"the journal {self.folder} belongs to process {self._process}, of which this "
                "is a fork; open it after forking"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
