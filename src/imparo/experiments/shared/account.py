"""What is told of an experiment: numbers beside the thesis', findings, tables, pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from imparo.experiments.shared.verdicts import DIFFERS, Check, Comparison, overall
from imparo.reports.drawing import Drawing, Picture


class Table(NamedTuple):
    """A table with its heading, and a sentence over it."""

    heading: str
    text: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass
class Account:
    """What came of an experiment.

    Attributes
    ----------
    comparisons : list of Comparison
        Numbers of the thesis beside ours.
    checks : list of Check
        Findings that are not one number.
    pictures : list of Picture
        The figure in the thesis' form, drawn anew.
    tables : list of Table
        More numbers.
    notes : list of str
        What else is to be said.

    Examples
    --------
    >>> from imparo.experiments.shared.account import Account
    >>> from imparo.experiments.shared.verdicts import Printed
    >>> account = Account()
    >>> account.compare("CPU", Printed("2.8466", 0.0497), 2.81, 0.02, trials=10)
    >>> account.check("small m is enough", True, "m = 62 has the error of m = 1000")
    >>> account.verdict
    'reproduced'
    """

    comparisons: list[Comparison] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def compare(self, *args: Any, **more: Any) -> None:
        """Add a number of the thesis beside ours: arguments of :class:`Comparison`."""
        self.comparisons.append(Comparison(*args, **more))

    def check(self, claim: str, holds: bool, evidence: str, because: str = "") -> None:
        """Add a finding: arguments of :class:`Check`."""
        self.checks.append(Check(claim, bool(holds), evidence, because))

    def picture(
        self, heading: str, text: str, draw: Drawing, alt: str = "",
        size: tuple[float, float] = (5.6, 3.9), dense: bool = False,
    ) -> None:  # fmt: skip
        """Add a picture, drawn by a function of a figure and a theme."""
        self.pictures.append(Picture(heading, text, alt or text, draw, size, dense))

    def table(
        self, heading: str, text: str, header: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> None:
        """Add a table."""
        self.tables.append(Table(heading, text, header, rows))

    @property
    def verdict(self) -> str:
        """Reproduced, better, differs, or other data: on the whole."""
        return overall([one.verdict for one in self.judged])

    @property
    def judged(self) -> list[Comparison | Check]:
        """All numbers and findings, each with its verdict."""
        return [*self.comparisons, *self.checks]

    @property
    def counts(self) -> str:
        """How many numbers were reproduced, and how many findings hold."""
        parts = []
        if self.comparisons:
            numbers = [one.verdict for one in self.comparisons]
            counts = {word: numbers.count(word) for word in dict.fromkeys(numbers)}
            told = ", ".join(f"{count} {word}" for word, count in counts.items())
            parts.append(f"of {len(numbers)} numbers {told}")
        if self.checks:
            held = sum(one.holds for one in self.checks)
            parts.append(f"{held} of {len(self.checks)} findings hold")
        return "; ".join(parts) or "nothing told"

    @property
    def sentence(self) -> str:
        """The verdict in words, with what differs and why."""
        text = f"{self.verdict.capitalize()}: {self.counts}."
        reasons = [one.because for one in self.judged if one.verdict == DIFFERS and one.because]
        if reasons:
            text += " What differs does because " + "; because ".join(dict.fromkeys(reasons))
            text += "."
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "numbers": [one.to_dict() for one in self.comparisons],
            "findings": [one.to_dict() for one in self.checks],
            "tables": [
                {
                    "heading": t.heading,
                    "header": list(t.header),
                    "rows": [list(r) for r in t.rows],
                }
                for t in self.tables
            ],
            "notes": self.notes,
        }
