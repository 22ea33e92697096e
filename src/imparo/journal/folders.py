"""What a journal's folder holds, and what can be recovered from it."""

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from imparo.errors import FileFormatError
from imparo.journal.segments import Cut, Segment, SegmentReader
from imparo.persistence import sync_folder

LOCK = "lock"
_ATTEMPTS = 100
# Number, size and digest stand in the name, so that one rename makes a snapshot valid.
_SNAPSHOT = re.compile(r"snapshot-(\d{20})-(\d+)-([0-9a-f]{64})")
_SEGMENT = re.compile(r"records-(\d{20})")
_UNFINISHED = re.compile(r"\.?unfinished-[0-9a-f]{16}(\..*)?|\.records-\d{20}\.[0-9a-f]{16}")


class Snapshot(NamedTuple):
    """A file with the state after record ``number``."""

    number: int
    size: int
    digest: str
    path: Path


class Contents(NamedTuple):
    """Files of a journal: snapshots from the newest, segments from the oldest."""

    snapshots: list[Snapshot]
    segments: list[Segment]
    unfinished: list[Path]


class Recovered(NamedTuple):
    """From where to go on: a snapshot, the segments after it, and how they end."""

    snapshot: Snapshot | None
    damaged: list[Path]
    segments: list[Segment]
    number: int
    offset: int
    cut: Cut | None


def contents(folder: Path) -> Contents:
    """List the journal's files; others in the folder are left alone."""
    found = Contents([], [], [])
    for name in os.listdir(folder):
        if match := _SNAPSHOT.fullmatch(name):
            number, size, digest = match.groups()
            found.snapshots.append(Snapshot(int(number), int(size), digest, folder / name))
        elif match := _SEGMENT.fullmatch(name):
            found.segments.append(Segment(int(match[1]), folder / name))
        elif _UNFINISHED.fullmatch(name):
            found.unfinished.append(folder / name)
    found.snapshots.sort(reverse=True)
    found.segments.sort()
    return found


def segment_path(folder: Path, first: int) -> Path:
    """Name of the segment that begins with this record."""
    return folder / f"records-{first:020d}"


def recover(folder: Path) -> Recovered:
    """Find the newest whole snapshot and check every record after it.

    Cost: the snapshot and the records after it are read once; changes nothing.
    """
    found = contents(folder)
    damaged: list[Path] = []
    base = None
    for snapshot in found.snapshots:
        if is_whole(snapshot):
            base = snapshot
            break
        damaged.append(snapshot.path)
    number = base.number if base else 0
    segments = covering(found.segments, number + 1)
    if not segments and (found.segments or found.snapshots):
        reason = f"the snapshot {damaged[0].name} is damaged, and " if damaged else ""
        raise FileFormatError(
            f"{folder} cannot be recovered: {reason}the segment with record {number + 1} is "
            "missing; restore it from a copy"
        )
    chain = Chain(segments)
    for _ in chain.records():
        pass
    # A snapshot is made after the records that it stands for.
    newest = found.snapshots[0].number if found.snapshots else 0
    if chain.number < newest:
        reason = f"the snapshot {damaged[0].name} is damaged, and " if damaged else ""
        raise FileFormatError(
            f"{folder} cannot be recovered: {reason}the segment with record {chain.number + 1} "
            "is missing or incomplete; restore it from a copy"
        )
    return Recovered(base, damaged, segments, chain.number, chain.offset, chain.tail)


def recover_beside_writer(folder: Path) -> Recovered:
    """Recover while files may come and go: an error counts when it comes twice."""
    before = ""
    for _ in range(_ATTEMPTS):
        try:
            return recover(folder)
        except (FileNotFoundError, FileFormatError) as error:
            if isinstance(error, FileFormatError) and str(error) == before:
                raise
            before = str(error)
            time.sleep(0.005)
    raise FileNotFoundError(f"{folder} changed faster than it could be read; try again")


def size(folder: Path) -> int:
    """Bytes of the journal's files."""
    found = contents(folder)
    total = 0
    paths = [*found.unfinished, *(s.path for s in found.snapshots)]
    for path in paths + [s.path for s in found.segments]:
        with contextlib.suppress(FileNotFoundError):  # replaced meanwhile
            total += os.stat(path).st_size
    return total


def covering(segments: list[Segment], number: int) -> list[Segment]:
    """Segments from the one in which this record is or will be; none if that is missing."""
    first = max((s.first for s in segments if s.first <= number), default=None)
    return [] if first is None else [s for s in segments if s.first >= first]


class Chain:
    """Records of consecutive segments.

    Parameters
    ----------
    segments : list of Segment
    first, offset, number : int
        Segment, place in it and record at which an earlier chain stopped.
    """

    def __init__(
        self, segments: list[Segment], first: int = 0, offset: int = 0, number: int = 0
    ) -> None:
        self._segments = segments
        self.first = first
        self.offset = offset
        self.number = number
        self.tail: Cut | None = None

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield number and payload of each; a missing or unfinished segment is an error."""
        for i, segment in enumerate(self._segments):
            if (i and self.number + 1 != segment.first) or self.tail:
                raise FileFormatError(
                    f"{segment.path.parent} is damaged between record {self.number} and the "
                    f"segment {segment.path.name}: a segment is missing or incomplete; restore "
                    "it from a copy"
                )
            resumed = segment.first == self.first
            reader = SegmentReader(segment, *((self.offset, self.number) if resumed else ()))
            self.first, self.offset, self.number = reader.first, reader.offset, reader.number
            for record in reader.records():
                self.offset, self.number = reader.offset, reader.number
                yield record
            self.offset, self.tail = reader.offset, reader.tail


def write_snapshot(folder: Path, number: int, write: Callable[[Path], object]) -> Snapshot:
    """Let the caller write a file, and move it into its place when it is on disk."""
    temporary = folder / f"unfinished-{secrets.token_hex(8)}"
    try:
        write(temporary)
        if not temporary.is_file():
            raise FileNotFoundError(
                "the function given to snapshot wrote no file at the path that it was given"
            )
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        size, digest = _measure(temporary)
        name = f"snapshot-{number:020d}-{size}-{digest}"
        snapshot = Snapshot(number, size, digest, folder / name)
        os.replace(temporary, snapshot.path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    if not is_whole(snapshot, from_disk=True):
        raise FileFormatError(
            f"the snapshot {snapshot.path} cannot be read back as it was written; the one "
            "before it and all records are kept: check the disk"
        )
    return snapshot


def is_whole(snapshot: Snapshot, from_disk: bool = False) -> bool:
    """Whether the file has the size and the SHA-256 that its name says."""
    if os.stat(snapshot.path).st_size != snapshot.size:
        return False
    return _measure(snapshot.path, from_disk) == (snapshot.size, snapshot.digest)


def _measure(path: Path, from_disk: bool = False) -> tuple[int, str]:
    with open(path, "rb") as file:
        if from_disk and hasattr(os, "posix_fadvise"):  # what memory holds proves nothing
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def remove(folder: Path, keep: Snapshot) -> None:
    """Delete what the snapshot replaces: older segments and all other snapshots."""
    found = contents(folder)
    needed = covering(found.segments, keep.number + 1)
    old = [s.path for s in found.segments if s not in needed]
    old += [s.path for s in found.snapshots if s.path != keep.path]
    remove_files(folder, old)


def remove_files(folder: Path, paths: list[Path]) -> None:
    """Delete these files for good."""
    for path in paths:
        os.unlink(path)
    if paths:
        sync_folder(folder)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents so that they survive a power failure."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
