"""Rows that cannot be read: told with file and line, and fatal or skipped as told."""

from dataclasses import dataclass, field
from pathlib import Path

_POLICIES = ("stop", "skip")


class RowError(ValueError):
    """A row of a file that cannot be used."""


class NoRowsError(ValueError):
    """A file that is whole and holds no row."""


@dataclass
class BadRows:
    """What to do with rows that cannot be used, and which there were.

    Parameters
    ----------
    policy : "stop" or "skip", default "stop"
        Raise :class:`RowError` at the first one, or leave it out and count it.

    Attributes
    ----------
    count : int
        How many were left out, in the last pass over the rows.
    examples : list of str
        What was wrong with the first ten.

    Examples
    --------
    >>> from imparo.data.readers import BadRows
    >>> bad = BadRows("skip")
    >>> bad.report("a.csv", 7, "3 values where 4 columns are", "correct the line")
    >>> bad.count, bad.examples
    (1, ['a.csv, line 7: 3 values where 4 columns are'])
    """

    policy: str = "stop"
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.policy not in _POLICIES:
            raise ValueError(f"bad rows {self.policy!r}: give 'stop' or 'skip'")

    def report(
        self, file: str | Path, place: int, what: str, remedy: str, unit: str = "line"
    ) -> None:
        """Raise, or note that a row is left out.

        Parameters
        ----------
        file : str or Path
        place : int
            Number of the line, from 1 on; or of the row, from 0 on, in files without lines.
        what, remedy : str
            What is wrong, and what to do about it, each without a full stop.
        unit : "line" or "row"
        """
        sentence = f"{file}, {unit} {place:,}: {what}"
        if self.policy == "stop":
            raise RowError(f"{sentence}; {remedy}, or skip bad rows")
        self.count += 1
        if len(self.examples) < 10:
            self.examples.append(sentence)

    def restart(self) -> None:
        """Count anew: a pass over the rows begins."""
        self.count, self.examples = 0, []


@dataclass
class PassedBadRows(BadRows):
    """Bad rows of one of several passes, told to those of all of them."""

    to: BadRows | None = None

    def report(
        self, file: str | Path, place: int, what: str, remedy: str, unit: str = "line"
    ) -> None:
        """Tell those of all of them."""
        if self.to is not None:
            self.to.report(file, place, what, remedy, unit)
            self.count, self.examples = self.to.count, self.to.examples

    def restart(self) -> None:
        """Do nothing: only a pass over all files counts anew."""
