"""Medians of repeated runs, after a first one that does not count."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

Work = Callable[[], Any]
_LEAST = 3
_MOST = 200


@dataclass(frozen=True)
class Timing:
    """How long some work takes.

    Attributes
    ----------
    seconds : float
        Median of the repeats.
    repeats : int
    """

    seconds: float
    repeats: int


@dataclass(frozen=True)
class Measurement:
    """One line of the outcome: what was measured, how fast it is, and beside which rival.

    Attributes
    ----------
    part : str
        Such as "machine" or "fits".
    what, size : str
        What was done, and to how much.
    value : float
        In ``unit``.
    unit : str
        "s", or a rate such as "rows/s".
    repeats : int
        Runs that the median is taken of.
    rival : str or None
        What was measured beside it.
    rival_value : float or None
        In ``unit``.
    error, rival_error : float or None
        Errors of both on rows that they have not seen, where something was learned.
    note : str
        What else to know.
    """

    part: str
    what: str
    size: str
    value: float
    unit: str
    repeats: int
    rival: str | None = None
    rival_value: float | None = None
    error: float | None = None
    rival_error: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times faster than the rival; None without one.

        Examples
        --------
        >>> from imparo.measuring import Measurement
        >>> Measurement("fits", "exact", "n = 100", 2.0, "s", 3, "rival", 3.0).ratio
        1.5
        >>> Measurement("readers", "CSV", "n = 100", 2.0, "rows/s", 3, "rival", 1.0).ratio
        2.0
        """
        if self.rival_value is None:
            return None
        fast, slow = self.value, self.rival_value
        return slow / fast if self.unit == "s" else fast / slow

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values, for JSON."""
        return asdict(self) | {"ratio": self.ratio}


def repeated(work: Work, seconds: float) -> Timing:
    """Run some work once to warm up, and then for about so many seconds.

    Parameters
    ----------
    work : function
    seconds : float
        Three repeats are made even if they take longer.

    Examples
    --------
    >>> from imparo.measuring import repeated
    >>> repeated(lambda: None, 0.0).repeats
    3
    """
    return by_turns([work], seconds)[0]


def by_turns(works: Sequence[Work], seconds: float) -> list[Timing]:
    """Run several works by turns, so that all meet the same moods of the machine.

    Parameters
    ----------
    works : sequence of functions
    seconds : float
        For all of them together; three turns are made even if they take longer.

    Returns
    -------
    list of Timing

    Examples
    --------
    >>> from imparo.measuring import by_turns
    >>> [timing.repeats for timing in by_turns([lambda: None, lambda: None], 0.0)]
    [3, 3]
    """
    for work in works:
        work()
    taken: list[list[float]] = [[] for _ in works]
    end = time.perf_counter() + seconds
    while len(taken[0]) < _LEAST or (time.perf_counter() < end and len(taken[0]) < _MOST):
        for work, found in zip(works, taken, strict=True):
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    return [Timing(median(found), len(found)) for found in taken]


def size_within(
    once: Callable[[int], float], seconds: float, smallest: int, largest: int, power: float = 1
) -> int:
    """Return how many rows some work can take within so many seconds.

    Parameters
    ----------
    once : function
        Does the work on so many rows, and returns the seconds that it took.
    seconds : float
    smallest, largest : int
        The least and the most rows.
    power : float, default 1
        The work grows like rows to this power.

    Examples
    --------
    >>> from imparo.measuring.timing import size_within
    >>> size_within(lambda n: 0.001 * n, 1.0, 100, 5000)
    1000
    """
    once(smallest)
    n = smallest
    while (taken := once(n)) < seconds / 10 and n < largest:
        n = min(2 * n, largest)
    n = int(n * (seconds / max(taken, 1e-9)) ** (1 / power))
    digits = 10 ** max(len(str(n)) - 2, 0)  # two digits that count, to be read with ease
    return int(min(max(n // digits * digits, smallest), largest))
