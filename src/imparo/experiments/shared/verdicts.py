"""Whether a number or a finding of the thesis was reproduced, in words."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

REPRODUCED, BETTER, DIFFERS, OTHER = "reproduced", "better", "differs", "other data"


@dataclass(frozen=True)
class Printed:
    """A number as the thesis prints it.

    Attributes
    ----------
    text : str
        Its digits, which tell how far it was rounded: "0.2318".
    deviation : float or None
        The one that stands beside it.
    """

    text: str
    deviation: float | None = None

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def rounding(self) -> float:
        """Half of a unit of the last digit."""
        exponent = Decimal(self.text).as_tuple().exponent
        return 0.5 * 10.0 ** int(exponent)

    def __str__(self) -> str:
        if self.deviation is None:
            return self.text
        return f"{self.text} ± {self.deviation:g}"


@dataclass(frozen=True)
class Comparison:
    """A number of the thesis beside ours.

    Attributes
    ----------
    what : str
    thesis : Printed
    ours, deviation : float
        Mean and standard deviation over the trials.
    trials : int
    because : str
        Why ours may differ, if it does.
    substituted : bool
        Whether other data stand for those of the thesis, so that nothing is to be judged.
    larger_is_better : bool
        As of an accuracy.
    digits : str
        How our number is shown: a format.
    """

    what: str
    thesis: Printed
    ours: float
    deviation: float = 0.0
    trials: int = 1
    because: str = ""
    substituted: bool = False
    larger_is_better: bool = False
    digits: str = ".4g"

    @property
    def verdict(self) -> str:
        """Reproduced, better, differs, or other data.

        Reproduced is within the thesis' deviation, ours where it prints none, and what it
        rounded off.
        """
        if self.substituted:
            return OTHER
        own = self.thesis.deviation
        allowed = (self.deviation if own is None else own) + self.thesis.rounding
        apart = self.ours - self.thesis.value
        # Both are decimals: what is exactly on the edge must not fall by a last bit.
        if abs(apart) <= allowed * (1 + 1e-9):
            return REPRODUCED
        return BETTER if (apart > 0) == self.larger_is_better else DIFFERS

    @property
    def shown(self) -> str:
        """Our number, with its deviation if there is one."""
        text = format(self.ours, self.digits)
        # One digit, and 10 rather than 1e+01.
        rounded = float(f"{self.deviation:.1g}")
        return f"{text} ± {rounded:g}" if self.trials > 1 else text

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "what": self.what,
            "thesis": self.thesis.value,
            "thesis deviation": self.thesis.deviation,
            "ours": self.ours,
            "our deviation": self.deviation,
            "trials": self.trials,
            "verdict": self.verdict,
            "because": self.because if self.verdict == DIFFERS else "",
        }


@dataclass(frozen=True)
class Check:
    """A finding of the thesis that is not one number.

    Attributes
    ----------
    claim : str
        What the thesis finds.
    holds : bool
        Whether ours shows it.
    evidence : str
        What ours shows, with numbers.
    because : str
        Why it may not hold, if it does not.
    """

    claim: str
    holds: bool
    evidence: str
    because: str = ""

    @property
    def verdict(self) -> str:
        """Reproduced or differs."""
        return REPRODUCED if self.holds else DIFFERS

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "claim": self.claim,
            "verdict": self.verdict,
            "evidence": self.evidence,
            "because": "" if self.holds else self.because,
        }


def overall(verdicts: list[str]) -> str:
    """Return the verdict on an experiment: the worst, or better if anything is.

    Parameters
    ----------
    verdicts : list of str

    Returns
    -------
    str

    Examples
    --------
    >>> from imparo.experiments.shared.verdicts import overall
    >>> overall(["reproduced", "better", "other data"])
    'better'
    >>> overall(["reproduced", "differs", "better"])
    'differs'
    """
    for verdict in (DIFFERS, BETTER, REPRODUCED):
        if verdict in verdicts:
            return verdict
    return OTHER
