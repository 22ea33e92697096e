"""Curves of a stream in bounded memory."""

import math
from itertools import pairwise
from typing import Any

# A faded mean over about the last hundred examples (Gama's prequential error).
FADE = 0.99
# Points of a curve that is read from a file.
_MOST = 4096


class FadedMean:
    """The mean of a stream, in which what is 1/(1 − γ) examples old counts a third.

    Parameters
    ----------
    total, weight : float
        Where it goes on.

    Examples
    --------
    >>> from imparo.service.curves import FadedMean
    >>> mean = FadedMean()
    >>> mean.add(1.0, 1), mean.add(0.0, 1)
    (1.0, 0.497...)
    """

    def __init__(self, total: float = 0.0, weight: float = 0.0) -> None:
        self.total, self.weight = total, weight

    def add(self, value: float, count: int) -> float:
        """Add ``count`` examples whose mean is ``value``; return the mean now."""
        kept = FADE**count
        share = (1 - kept) / (1 - FADE)
        self.total = kept * self.total + share * value
        self.weight = kept * self.weight + share
        return self.value

    @property
    def value(self) -> float:
        """The mean, NaN before any example."""
        return self.total / self.weight if self.weight else math.nan


class Curve:
    """A curve over a stream of any length, of at most so many points.

    Each point stands for equally many examples. When there are too many points, every two
    become one.

    Parameters
    ----------
    most : int
        Points at most.

    Examples
    --------
    >>> from imparo.service.curves import Curve
    >>> curve = Curve(most=4)
    >>> for n in range(1, 9):
    ...     curve.add(n, float(n))
    >>> curve.points()
    [[2, 1.5], [4, 3.5], [6, 5.5], [8, 7.5]]
    """

    def __init__(self, most: int = 512) -> None:
        self.most = most
        self._step = 1
        self._points: list[list[float]] = []  # [place, sum, count]

    def add(self, place: int, value: float) -> None:
        """Add a value at a place of the stream, not before the last."""
        last = self._points[-1] if self._points else None
        if last is None or (place - 1) // self._step > (last[0] - 1) // self._step:
            self._points.append([place, value, 1])
        else:
            last[0], last[1], last[2] = place, last[1] + value, last[2] + 1
        while len(self._points) > self.most:
            self._halve()

    def _halve(self) -> None:
        self._step *= 2
        joined: list[list[float]] = []
        for place, total, count in self._points:
            if joined and (place - 1) // self._step == (joined[-1][0] - 1) // self._step:
                joined[-1][0] = place
                joined[-1][1] += total
                joined[-1][2] += count
            else:
                joined.append([place, total, count])
        self._points = joined

    def points(self) -> list[list[Any]]:
        """Return [place, mean] of every point."""
        return [[int(place), total / count] for place, total, count in self._points]

    def state(self) -> dict[str, Any]:
        """Return all that there is, as plain values."""
        points = [list(point) for point in self._points]
        return {"most": self.most, "step": self._step, "points": points}

    @classmethod
    def of(cls, state: dict[str, Any]) -> "Curve":
        """Return the curve of such a state; raise ValueError if it can be of no curve."""
        most, step = state["most"], state["step"]
        points = [list(point) for point in state["points"]]
        places = [place for place, _, _ in points]
        counts = [most, step, *places, *(count for _, _, count in points)]
        fits = (
            all(type(count) is int and 1 <= count <= 2**53 for count in counts)
            and 2 <= most <= _MOST and len(points) <= most
            # Else halving them would never end.
            and all(one < other for one, other in pairwise(places))
            and all(type(t) in (int, float) and abs(t) < 1e300 for _, t, _ in points)
        )  # fmt: skip
        if not fits:
            raise ValueError("the points of a curve do not go together")
        curve = cls(most)
        curve._step, curve._points = step, points
        return curve
