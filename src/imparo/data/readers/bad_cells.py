"""Cells that make a row unusable: whole numbers too large, and bytes that are no text."""

from pathlib import Path
from typing import Any

import numpy as np

from imparo.data.frames import Frame
from imparo.data.readers.bad_rows import BadRows
from imparo.data.readers.base import LARGEST_WHOLE
from imparo.engine import Array

_TEXT = "read the column as text or make it smaller"


class BadCells:
    """What is wrong in a block of rows, to be told in the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.data import Frame
    >>> from imparo.data.readers import BadRows
    >>> from imparo.data.readers.bad_cells import BadCells
    >>> found, codes, bad = BadCells(), np.array([5, 2**60, 7]), BadRows("skip")
    >>> found.look_at(["code"], codes)
    >>> found.dropped_from(Frame({"code": codes}), bad, "a.npy", 100)["code"]
    array([5, 7])
    >>> bad.examples
    ["a.npy, row 101: the whole number 1152921504606846976 in 'code' has too many digits ..."]
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[str, str]] = {}

    def look_at(self, names: list[str], cells: Array) -> None:
        """Note whole numbers that floats cannot hold, in an array of one or two axes."""
        if cells.dtype.kind not in "iu" or cells.dtype.itemsize < 8 or not cells.size:
            return
        if int(cells.max()) <= LARGEST_WHOLE and int(cells.min()) >= -LARGEST_WHOLE:
            return
        wrong = (cells > LARGEST_WHOLE) | (cells < -LARGEST_WHOLE)
        for row, j in np.argwhere(wrong.reshape(len(cells), -1)):
            number = cells.reshape(len(cells), -1)[row, j]
            self.note(
                int(row),
                f"the whole number {number} in {names[j]!r} has too many digits for a float",
                _TEXT,
            )

    def note(self, row: int, what: str, remedy: str) -> None:
        """Note what is wrong with a row of the block; the first thing wrong is told."""
        self._found.setdefault(row, (what, remedy))

    def join(self, others: "BadCells", size: int) -> None:
        """Add what is wrong in ``size`` times as many cells, those of a row side by side."""
        for place in sorted(others._found):
            self.note(place // size, *others._found[place])

    def dropped_from(self, frame: Frame, bad: BadRows, file: str | Path, start: int) -> Frame:
        """Return the frame without bad rows, or raise if these are fatal.

        Parameters
        ----------
        frame : Frame
        bad : BadRows
        file : str or Path
        start : int
            Number of the first row of the block in the file.
        """
        if not self._found:
            return frame
        for row in sorted(self._found):
            bad.report(file, start + row, *self._found[row], unit="row")
        keep = np.ones(len(frame), bool)
        keep[list(self._found)] = False
        return frame[keep]

    def decoded(self, name: str, cells: list[Any], encoding: str) -> list[str | None]:
        """Return bytes as text, noting those that are not; text stays as it is."""
        texts: list[str | None] = []
        for row, cell in enumerate(cells):
            try:
                texts.append(cell.decode(encoding) if isinstance(cell, bytes) else cell)
            except UnicodeDecodeError:
                texts.append(None)
                self.note(
                    row,
                    f"the bytes in {name!r} are not text in {encoding}",
                    "write them anew, or give another encoding",
                )
        return texts
