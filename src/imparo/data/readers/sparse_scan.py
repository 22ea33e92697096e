"""A quick look at a whole sparse file: its rows, and its smallest and largest index."""

from dataclasses import dataclass

import numpy as np

from imparo.engine import Array

# Digits of an index that are read; longer ones are wrong and told when rows are read.
_DIGITS = 10


@dataclass(frozen=True)
class Scan:
    """What is known of some lines.

    Attributes
    ----------
    rows : int
        Number of lines that are not blank.
    smallest : int or None
        The smallest first index of a line, if there is an entry.
    largest : int
        The largest last index of a line.
    entries : bool
        Whether there is an entry, be it a wrong one.
    """

    rows: int = 0
    smallest: int | None = None
    largest: int = 0
    entries: bool = False

    def joined(self, other: "Scan") -> "Scan":
        """Return what is known of these lines and others."""
        found = [scan.smallest for scan in (self, other) if scan.smallest is not None]
        return Scan(
            self.rows + other.rows,
            min(found, default=None),
            max(self.largest, other.largest),
            self.entries or other.entries,
        )


def scan_chunk(chunk: bytes) -> Scan:
    """Return what is known of whole lines.

    As indices ascend, the first and the last of each line are enough. Cost: some 5 ns a byte.

    Parameters
    ----------
    chunk : bytes
        Whole lines without comments.
    """
    marks = np.frombuffer(chunk, np.uint8)
    colons = np.flatnonzero(marks == ord(":"))
    ends = np.append(np.flatnonzero(marks == ord("\n")), len(marks))
    filled = np.concatenate([[0], np.cumsum(marks > ord(" "), dtype=np.int64)])
    rows = int(np.count_nonzero(np.diff(filled[ends], prepend=0)))
    if not len(colons):
        return Scan(rows)
    until = np.searchsorted(colons, ends)
    since = np.concatenate([[0], until[:-1]])
    there = until > since
    first = _indices(marks, colons[since[there]])
    # What comes before the first entry may be "qid:5".
    second = since[there] + 1
    first = np.where(
        (first < 0) & (second < until[there]),
        _indices(marks, colons[np.minimum(second, len(colons) - 1)]),
        first,
    )
    last = _indices(marks, colons[until[there] - 1])
    known = first[first >= 0]
    smallest = int(known.min()) if len(known) else None
    return Scan(rows, smallest, int(max(last.max(), 0)), entries=True)


def _indices(marks: Array, colons: Array) -> Array:
    """Return the whole numbers that end at colons, -1 where there is none."""
    found = np.zeros(len(colons), np.int64)
    going = np.ones(len(colons), bool)
    count = np.zeros(len(colons), int)
    for power in range(_DIGITS):
        places = colons - 1 - power
        digits = marks[np.maximum(places, 0)].astype(np.int64) - ord("0")
        going &= (places >= 0) & (digits >= 0) & (digits <= 9)
        if not going.any():
            break
        found[going] += digits[going] * 10**power
        count += going
    # What stands before the digits must be a blank.
    before = colons - 1 - count
    whole = (count > 0) & ((before < 0) | (marks[np.maximum(before, 0)] <= ord(" ")))
    return np.where(whole, found, -1)
