r"""Segments: files of records, each with its number and checksum.

A segment is a magic line with the format's version, four random bytes (its mark), the number
of its first record and a CRC-32 of all that; then records. A record is the mark, the length of
the payload, the count of records before it that were not yet on disk, its number, a CRC-32 of
header and payload, and the payload. Numbers are little-endian. No byte of a mark is 0: the
beginning of a record is never taken for room that was reserved and not written to.

The mark finds records behind damage, which tells a torn end from a damaged middle: no payload
can hold it but by a chance of 255⁻⁴, and the checksum then decides.
"""

import secrets
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from imparo.errors import FileFormatError

FORMAT = 1
LONGEST = 2**32 - 1
_MAGIC = b"imparo journal "
_START = struct.Struct("<4sQI")  # mark, number of the first record, CRC-32
_HEADER = struct.Struct("<4sIIQI")  # mark, length, not yet on disk, number, CRC-32
_CHECKED = _HEADER.size - 4  # all of the header but its checksum
_LINE = _MAGIC + b"%d\n" % FORMAT
START = len(_LINE) + _START.size


class Cut(NamedTuple):
    """What an unfinished write left at the end of the last segment, and why it is no record."""

    bytes: int
    reason: str


class Segment(NamedTuple):
    """A file of records, the first of which has the number ``first``."""

    first: int
    path: Path


def start(first: int) -> bytes:
    """Return the beginning of a new segment."""
    mark = bytes(1 + secrets.randbelow(255) for _ in range(4))
    line = _LINE + _START.pack(mark, first, 0)[:-4]
    return line + struct.pack("<I", zlib.crc32(line))


def mark_of(beginning: bytes) -> bytes:
    """Return the mark of the segment that begins so."""
    return beginning[len(_LINE) : len(_LINE) + 4]


def frame(mark: bytes, number: int, unsynced: int, payload: bytes) -> bytes:
    """Return the record as it is written."""
    head = _HEADER.pack(mark, len(payload), min(unsynced, LONGEST), number, 0)[:_CHECKED]
    checksum = zlib.crc32(payload, zlib.crc32(head))
    return b"".join((head, struct.pack("<I", checksum), payload))


class SegmentReader:
    """Reads the records of one segment in order, and judges what follows the last.

    Parameters
    ----------
    segment : Segment
    offset, number : int, optional
        Where an earlier reader stopped, and at which record.

    Attributes
    ----------
    number : int
        The last record read; one less than ``first`` before any.
    offset : int
        Where it ends.
    tail : Cut or None
        After the last record: what follows it that is no record.
    """

    def __init__(self, segment: Segment, offset: int = 0, number: int | None = None) -> None:
        self.path = segment.path
        self.first = segment.first
        self.offset = offset
        self.number = segment.first - 1 if number is None else number
        self.tail: Cut | None = None

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield number and payload of each record; one pass, a record in memory at a time."""
        with open(self.path, "rb") as file:
            size = file.seek(0, 2)  # a writer may add to it while we read
            if size < self.offset:
                raise FileFormatError(
                    f"{self.path} is shorter than when it was last read; open the journal again"
                )
            file.seek(0)
            beginning = file.read(START)
            if not self._whole(beginning, size):
                return
            mark = mark_of(beginning)
            self.offset = max(self.offset, START)
            file.seek(self.offset)
            while self.offset < size:
                head = file.read(_HEADER.size)
                payload = b""
                # A damaged length must not make us read gigabytes.
                length = _length(head, size - self.offset)
                if length is not None:
                    payload = file.read(length)
                if length is None or not _good(mark, head, payload):
                    file.seek(self.offset)
                    self._judge(file.read(size - self.offset), mark)
                    return
                number = _HEADER.unpack(head)[3]
                if number != self.number + 1:
                    raise FileFormatError(
                        f"{self.path} holds record {number} where {self.number + 1} was "
                        "expected; restore it from a copy"
                    )
                self.number = number
                self.offset += len(head) + len(payload)
                yield number, payload

    def _whole(self, beginning: bytes, size: int) -> bool:
        """Whether the segment begins as it should; False if nothing was written to it."""
        line, newline, _ = beginning.partition(b"\n")
        version = line.removeprefix(_MAGIC)
        if newline and line.startswith(_MAGIC) and version.isdigit() and int(version) > FORMAT:
            raise FileFormatError(
                f"{self.path} has format {int(version)}; this imparo reads journals of format "
                f"{FORMAT}: upgrade it"
            )
        if len(beginning) < START or _zeros(beginning):
            with open(self.path, "rb") as file:
                empty = all(map(_zeros, iter(lambda: file.read(1 << 20), b"")))
            if empty or (size < START and _LINE.startswith(beginning[: len(_LINE)])):
                self.tail = Cut(size, "the segment ends before its first record")
                return False
        if not beginning.startswith(_LINE):
            raise FileFormatError(
                f"{self.path} does not begin as a segment of a journal; restore it from a copy"
            )
        _, first, checksum = _START.unpack(beginning[len(_LINE) :])
        if checksum != zlib.crc32(beginning[:-4]) or first != self.first:
            raise FileFormatError(
                f"{self.path} was renamed, or its beginning is damaged; restore it from a copy"
            )
        return True

    def _judge(self, rest: bytes, mark: bytes) -> None:
        """Tell the torn end of a write from damage that good records follow."""
        bad = self.number + 1
        place = rest.find(mark, 1)
        while place >= 0:
            head = rest[place : place + _HEADER.size]
            length = _length(head, len(rest) - place)
            end = place + _HEADER.size + (length or 0)
            if length is not None and _good(mark, head, rest[place + _HEADER.size : end]):
                _, _, unsynced, number, _ = _HEADER.unpack(head)
                # A power failure may lose any of the records that were not yet on disk, not
                # only the last: what follows such a hole was never safe either.
                if not number - unsynced <= bad < number:
                    raise FileFormatError(
                        f"{self.path} is damaged at byte {self.offset}, in record {bad}, while "
                        f"later records are whole; restore it from a copy"
                    )
                place = end - 1
            place = rest.find(mark, place + 1)
        if _zeros(rest):
            reason = "the end of the segment is zeros"
        elif _length(rest[: _HEADER.size], len(rest)) is None:
            reason = f"record {bad} is incomplete"
        else:
            reason = f"record {bad} does not match its checksum"
        self.tail = Cut(len(rest), reason)


def _zeros(content: bytes) -> bool:
    return content.count(0) == len(content)


def _length(head: bytes, room: int) -> int | None:
    """Length of the payload, if the record fits into the room there is."""
    if len(head) < _HEADER.size:
        return None
    length: int = _HEADER.unpack(head)[1]
    return length if length <= room - _HEADER.size else None


def _good(mark: bytes, head: bytes, payload: bytes) -> bool:
    checksum = zlib.crc32(payload, zlib.crc32(head[:_CHECKED]))
    return head[:4] == mark and _HEADER.unpack(head)[4] == checksum
