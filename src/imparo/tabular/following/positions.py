"""How far each file has been learned: a log that is written ahead of the learner."""

import contextlib
import json
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imparo.errors import FileFormatError
from imparo.persistence import write_atomically

# Lines of the log that are kept for a learner that may have to go back, and twice as many
# before the others are replaced.
_KEPT = 10_000

#: How far a file has been read: "offset", "line" and "mark", or "row", "size" and "time".
State = dict[str, Any]


@dataclass
class Totals:
    """What is known after a number of rows.

    Attributes
    ----------
    seen : int
        Rows that the learner has learned.
    states : dict of str to dict
        How far each file has been read, by its path.
    loss : float
        Sum of the losses of predictions made before learning.
    judged : int
        How many there were.
    """

    seen: int = 0
    states: dict[str, State] = field(default_factory=dict)
    loss: float = 0.0
    judged: int = 0

    def after(self, line: dict[str, Any]) -> "Totals":
        """Return them after one more line of the log."""
        return Totals(
            line["seen"] + line["rows"],
            {**self.states, **line["files"]},
            line["loss"],
            line["judged"],
        )

    def as_line(self) -> dict[str, Any]:
        """Return them as the line that a log begins with."""
        return {
            "seen": self.seen, "rows": 0, "files": self.states, "loss": self.loss,
            "judged": self.judged,
        }  # fmt: skip


class Positions:
    """The log of one folder.

    A line is written *before* the rows that it tells of are learned: how many rows the learner
    had seen, how many come, and how far the files will then have been read. The number of rows
    that the learner has seen when it is opened again tells which lines came true. A line takes
    one write, and one sync if ``sync``.

    Parameters
    ----------
    path : Path
    seen : int
        Rows that the learner has learned.
    sync : bool, default True
        Whether a line must be on disk before the rows are learned. Without that, lines may be
        missing after a power cut; rows that were learned since are then skipped.

    Attributes
    ----------
    totals : Totals
        What is known now.
    skip : int
        Rows that were learned after the last line that is left: to be read and not learned.

    Raises
    ------
    FileFormatError
        If the learner knows less than what the log begins with, or the log is gone.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imparo.tabular.following.positions import Positions
    >>> def found(seen):
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         file = pathlib.Path(folder) / "positions.log"
    ...         log = Positions(file, seen=0)
    ...         log.write(3, {"a.csv": {"offset": 60}})
    ...         log.drop()  # the process dies: were the three rows learned?
    ...         log = Positions(file, seen)
    ...         log.drop()
    ...         return log.totals.states
    >>> found(seen=3), found(seen=0)
    ({'a.csv': {'offset': 60}}, {})
    """

    def __init__(self, path: Path, seen: int, sync: bool = True) -> None:
        self.path, self._sync = path, sync
        lines = _read(path)
        if not lines and seen:
            raise FileFormatError(
                f"{path} is missing or damaged, so that nobody knows which rows were learned; "
                "restore it from a copy, or begin another folder"
            )
        self.totals, closed = Totals(), not lines
        if lines and lines[0]["seen"] > seen:
            raise FileFormatError(
                f"the learner in {path.parent} has learned {seen:,} rows, and {path.name} "
                f"knows nothing before row {lines[0]['seen']:,}; restore the folder from a copy"
            )
        for line in lines:
            if line["seen"] + line["rows"] > seen:
                break  # this block was not learned, or not durably
            self.totals, closed = self.totals.after(line), line.get("closed", False)
        # Rows beyond the log after an orderly end were learned by somebody else.
        self.skip = 0 if closed else seen - self.totals.seen
        self.totals.seen = seen - self.skip
        self._begin([self.totals.as_line()])

    def write(
        self, rows: int, states: dict[str, State], loss: float = 0.0, judged: int = 0
    ) -> None:
        """Tell that so many rows are about to be learned, and where their files then stand.

        Parameters
        ----------
        rows : int
        states : dict of str to dict
            Of the files that the rows come from.
        loss, judged : float and int
            Losses of their predictions, and how many.
        """
        now = self.totals
        line = {
            "seen": now.seen, "rows": rows, "files": states, "loss": now.loss + loss,
            "judged": now.judged + judged,
        }  # fmt: skip
        self._append(line)
        self.totals = now.after(line)

    def passed(self, rows: int) -> None:
        """Tell that so many of the rows to skip have been read."""
        self.skip -= rows
        self.totals.seen += rows

    def close(self) -> None:
        """Tell that all lines came true; may be called again."""
        if not self._file.closed:
            with contextlib.suppress(OSError):  # as after a crash, then: no less is known
                self._append({**self.totals.as_line(), "files": {}, "closed": True})
            self._file.close()

    def drop(self) -> None:
        """Close the file and say nothing: whether the last line came true is not known."""
        self._file.close()

    def _begin(self, lines: list[dict[str, Any]]) -> None:
        write_atomically(self.path, b"".join(map(_encoded, lines)))
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 (held)
        self._count = len(lines)

    def _append(self, line: dict[str, Any]) -> None:
        if self._count >= 2 * _KEPT:
            self._shorten()
        size = os.fstat(self._file.fileno()).st_size
        content = _encoded(line)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(self._file.fileno(), rest) :]
            if self._sync:
                os.fsync(self._file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):  # half a line is not read either
                os.ftruncate(self._file.fileno(), size)
            raise
        self._count += 1

    def _shorten(self) -> None:
        """Replace all lines but the last ones by what they come to."""
        lines, totals = _read(self.path), Totals()
        for line in lines[:-_KEPT]:
            totals = totals.after(line)
        old = self._file
        self._begin([totals.as_line(), *lines[-_KEPT:]])
        old.close()


def _encoded(line: dict[str, Any]) -> bytes:
    text = json.dumps(line, separators=(",", ":"), allow_nan=False)
    return b"%08x %s\n" % (zlib.crc32(text.encode()), text.encode())


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the lines up to the first that was not written to its end."""
    lines: list[dict[str, Any]] = []
    if not path.exists():
        return lines
    for raw in path.read_bytes().splitlines(keepends=True):
        check, _, text = raw.partition(b" ")
        if not raw.endswith(b"\n") or check != b"%08x" % zlib.crc32(text[:-1]):
            break
        lines.append(json.loads(text))
    return lines
