"""Examples held out of a stream, a bounded number, as even over the classes as can be."""

from typing import NamedTuple

import numpy as np

from imparo.engine import Array
from imparo.persistence import persistent

_WORD = 2**64 - 1


class Example(NamedTuple):
    """One row of features, the number of its class, and its weight."""

    row: Array
    code: int
    weight: float


@persistent
class Reservoir:
    """At most ``capacity`` examples: an even sample of what was offered of each class.

    While there is room everything is kept. Then a newcomer takes the place of an example of
    the class that has most; in its own class, each example offered is as likely to stay
    (reservoir sampling). What has to go is handed back, to be learned after all. Which goes
    is drawn from a seed and the number of the draw, so that a replay draws the same.

    Parameters
    ----------
    capacity : int
    n_features : int
    dtype : dtype
    seed : int
    """

    def __init__(
        self, capacity: int, n_features: int, dtype: np.typing.DTypeLike, seed: int
    ) -> None:
        self.capacity = capacity
        self.seed = seed
        self._rows = np.empty((0, n_features), dtype)
        self._codes = np.empty(0, np.intp)
        self._weights = np.empty(0)
        self._offered: list[int] = []
        self._n = self._draws = 0

    def __len__(self) -> int:
        """Return how many examples are held."""
        return self._n

    @property
    def rows(self) -> Array:
        """Features of the examples."""
        return self._rows[: self._n]

    @property
    def codes(self) -> Array:
        """Numbers of their classes."""
        return self._codes[: self._n]

    def offer(self, example: Example) -> Example | None:
        """Hold an example; return the one that has to be learned instead, if any. Cost D."""
        code = example.code
        self._offered += [0] * (code + 1 - len(self._offered))
        self._offered[code] += 1
        if self._n < self.capacity:
            self._make_room()
            self._put(self._n, example)
            self._n += 1
            return None
        counts = np.bincount(self.codes, minlength=code + 1)
        largest = int(np.argmax(counts))
        # A class of which some had to go is a sample, and stays an even one only if newcomers
        # take the places of their own kind, also where the largest has one more.
        sampled = counts[code] < self._offered[code] - 1
        if counts[code] + int(sampled) >= counts[largest]:
            place = self._draw(self._offered[code])
            if place >= counts[code]:
                return example
            largest = code
        else:
            place = self._draw(int(counts[largest]))
        slot = int(np.flatnonzero(self.codes == largest)[place])
        gone = Example(
            self._rows[slot].copy(), int(self._codes[slot]), float(self._weights[slot])
        )
        self._put(slot, example)
        return gone

    def _put(self, slot: int, example: Example) -> None:
        self._rows[slot], self._codes[slot] = example.row, example.code
        self._weights[slot] = example.weight

    def _make_room(self) -> None:
        if self._n == len(self._codes):
            room = min(self.capacity, max(16, 2 * self._n))
            for name in ("_rows", "_codes", "_weights"):
                old = getattr(self, name)
                new = np.zeros((room, *old.shape[1:]), old.dtype)
                new[: self._n] = old
                setattr(self, name, new)

    def _draw(self, below: int) -> int:
        """Return a number below another, as good as random: splitmix64 of the draw."""
        self._draws += 1
        z = (self.seed + self._draws * 0x9E3779B97F4A7C15) & _WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
        return (z ^ (z >> 31)) % below

    def take(self) -> list[Example]:
        """Return all examples, and hold none."""
        held = [
            Example(self._rows[i].copy(), int(self._codes[i]), float(self._weights[i]))
            for i in range(self._n)
        ]
        self._n, self._offered = 0, []
        return held

    def drop(self, code: int) -> None:
        """Drop the examples of a class; those after it are numbered one less."""
        keep = np.flatnonzero(self.codes != code)
        for array in (self._rows, self._codes, self._weights):
            array[: len(keep)] = array[keep]
        self._n = len(keep)
        self._codes[: self._n] -= self._codes[: self._n] > code
        del self._offered[code : code + 1]

    def join(self, kept: int, gone: int) -> None:
        """Count the examples of one class as those of another, and close the gap."""
        self._codes[: self._n][self.codes == gone] = kept
        self._offered += [0] * (max(kept, gone) + 1 - len(self._offered))
        self._offered[kept] += self._offered[gone]
        self.drop(gone)

    def add_features(self, count: int) -> None:
        """Add columns that were 0 so far."""
        self._rows = np.pad(self._rows, ((0, 0), (0, count)))
