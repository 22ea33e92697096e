"""Has the error changed? ADWIN2, a window of values as long as their mean stays the same.

The window holds the latest values of a stream. It is cut where an older part W₀ and a newer
part W₁ have means so far apart that one mean for both is not credible (A. Bifet and
R. Gavaldà, Learning from time-changing data with adaptive windowing, SDM 2007)::

    |μ₀ − μ₁| > √(2 σ² L / m) + 2 L / (3 m),  1/m = 1/n₀ + 1/n₁,  L = ln(2 ln(n) / δ)

with n the width and σ² the variance of the whole window. The window is not kept: buckets of
2ᵏ values hold their sums, at most five of each size, and cuts fall between buckets.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.persistence import persistent

# As in the paper; a place to cut is within about an eighth of the values since a change.
_BUCKETS = 5


@persistent
@dataclass(frozen=True)
class Change:
    """The mean of the values was one number, and now is another.

    Attributes
    ----------
    at : int
        Number of the value at which it was noticed, 1 for the first.
    before, after : float
        Mean of the values before and after the cut.
    n_before, n_after : int
        How many they are; those after are the window that is left.
    """

    at: int
    before: float
    after: float
    n_before: int
    n_after: int

    @property
    def worse(self) -> bool:
        """Whether the mean rose. A learner's error falls as it learns; that is no drift."""
        return self.after > self.before


@persistent
class DriftDetector:
    """Notice that the mean of a stream of errors or bounded losses has changed: ADWIN2.

    Cost: one or two microseconds a value, O(log n) in the number of values since the last
    change; O(log n) memory, some 150 numbers after 100 000 values.

    Parameters
    ----------
    delta : float, default 0.002
        Largest chance that a look finds a change where there is none; it is far less in fact.
    check_every : int, default 32
        Values from one look for a change to the next. A look costs about 25 microseconds.
    min_window : int, default 5
        Fewest values on either side of a cut.

    Attributes
    ----------
    n_seen, width : int
        How many values there were, and how many of them, the latest, the window holds.
    last_change : Change or None

    Notes
    -----
    The paper drops the oldest bucket until no cut is left to make: some old values stay, and
    one change is noticed about three times. Here all values before the clearest cut, the one
    that exceeds its bound by the largest factor, go at once.

    Examples
    --------
    >>> from imparo.lifelong.drift import DriftDetector
    >>> detector = DriftDetector()
    >>> rare, frequent = [0, 0, 0, 0, 1] * 100, [0, 1, 1] * 100
    >>> for wrong in rare + frequent:
    ...     change = detector.update(wrong)
    ...     if change and change.worse:
    ...         print(f"{change.at}: {change.before:.2f}, now {change.after:.2f}")
    544: 0.20, now 0.62
    >>> detector.n_seen, detector.width
    (800, 304)
    """

    def __init__(
        self, delta: float = 0.002, check_every: int = 32, min_window: int = 5
    ) -> None:
        if not 0 < delta < 1:
            raise ValueError(f"delta must be a number between 0 and 1, not {delta!r}")
        for name, value in (("check_every", check_every), ("min_window", min_window)):
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name}={value!r} must be a whole number from 1 on")
        self.delta = float(delta)
        self.check_every, self.min_window = int(check_every), int(min_window)
        self.n_seen = self.width = 0
        self.last_change: Change | None = None
        # Sums of values and of squares; [k] has the buckets of 2ᵏ values, the oldest first.
        self._totals: list[list[float]] = []
        self._squares: list[list[float]] = []

    @property
    def mean(self) -> float:
        """Mean of the values in the window; NaN before the first."""
        return sum(map(sum, self._totals)) / self.width if self.width else math.nan

    def update(self, value: float) -> Change | None:
        """Add a value.

        Parameters
        ----------
        value : float
            From 0 to 1: whether a prediction was wrong, or a bounded loss.

        Returns
        -------
        Change or None
            The change, good or bad, if the window was cut at this value; of several the last.

        Raises
        ------
        ValueError
            If it is not such a number. The detector is then as it was.
        """
        return self._add(_bounded(value))

    def update_many(self, values: Iterable[float]) -> list[Change]:
        """Add values as :meth:`update` does one by one, or none if one of them is refused.

        Parameters
        ----------
        values : array-like of shape (n,)

        Returns
        -------
        list of Change
        """
        values = values.tolist() if isinstance(values, np.ndarray) else values
        changes = [self._add(value) for value in [_bounded(value) for value in values]]
        return [change for change in changes if change]

    def _add(self, value: float) -> Change | None:
        self._insert(value)
        if self.n_seen % self.check_every:
            return None
        change = None
        while n_before := self._clearest_cut():
            before = self._drop(n_before)
            change = Change(self.n_seen, before, self.mean, n_before, self.width)
        self.last_change = change or self.last_change
        return change

    def _insert(self, value: float) -> None:
        """Add a bucket of one value; of six buckets of a size the oldest two become one."""
        self.n_seen += 1
        self.width += 1
        total, square = value, value * value
        for totals, squares in zip(self._totals, self._squares, strict=True):
            totals.append(total)
            squares.append(square)
            if len(totals) <= _BUCKETS:
                return
            total = totals.pop(0) + totals.pop(0)
            square = squares.pop(0) + squares.pop(0)
        self._totals.append([total])
        self._squares.append([square])

    def _clearest_cut(self) -> int:
        """Return how many values are before the clearest cut; 0 if none is to be made."""
        n, total = self.width, sum(map(sum, self._totals))
        if n < 2 * self.min_window:
            return 0
        variance = max(sum(map(sum, self._squares)) / n - (total / n) ** 2, 0.0)
        log = math.log(2 * math.log(n) / self.delta)
        cut, clearest, n_before, before = 0, 1.0, 0, 0.0
        for level in range(len(self._totals) - 1, -1, -1):
            for bucket in self._totals[level]:
                n_before += 1 << level
                before += bucket
                n_after = n - n_before
                if min(n_before, n_after) < self.min_window:
                    continue
                ratio = log * (1 / n_before + 1 / n_after)
                bound = math.sqrt(2 * variance * ratio) + 2 / 3 * ratio
                clear = abs(before / n_before - (total - before) / n_after) / bound
                if clear > clearest:
                    cut, clearest = n_before, clear
        return cut

    def _drop(self, n: int) -> float:
        """Take out the oldest n values, which are whole buckets, and return their mean."""
        left, total = n, 0.0
        while left:
            left -= 1 << (len(self._totals) - 1)
            total += self._totals[-1].pop(0)
            self._squares[-1].pop(0)
            if not self._totals[-1]:
                self._totals.pop()
                self._squares.pop()
        self.width -= n
        return total / n


def _bounded(value: Any) -> float:
    """Return a value as a float, or raise unless it is a number from 0 to 1."""
    try:
        if 0 <= value <= 1:  # false for NaN
            return float(value)
    except (TypeError, ValueError):  # text, None, arrays
        pass
    raise ValueError(f"a value must be a number from 0 to 1, not {value!r:.60}")
