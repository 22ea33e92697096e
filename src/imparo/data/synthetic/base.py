"""What every generator is: a law of rows, and a sample of it that is drawn in blocks."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from imparo.data.frames import Frame
from imparo.engine import Array

#: Rows that share a stream of random numbers: the same rows come, however they are cut.
_STREAM = 2**14


class Law(ABC):
    """A distribution of rows and outputs whose best predictions are known."""

    #: Number of columns.
    d: int

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return n rows and their outputs.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
        """

    @abstractmethod
    def function(self, X: Any) -> Array:
        """Return the mean of the output at every row: what no noise would give.

        Parameters
        ----------
        X : array of shape (n, d)
        """

    @property
    @abstractmethod
    def bayes_error(self) -> float:
        """The error that no prediction is below, on average over rows.

        The variance of the noise for regression, the misclassification rate of the Bayes
        rule for classification.
        """


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a law: all at once, or in blocks for more of them than memory holds.

    Rows are drawn when they are asked for, and the same ones every time, whatever the size
    of the blocks: n rows are the first n of any larger sample with the same seed.

    Parameters
    ----------
    law : Law
    n : int
        Number of rows.
    seed : int

    Examples
    --------
    >>> from imparo.data.synthetic import gaussians
    >>> sample = gaussians(100_000, rng=0)
    >>> X, y = sample
    >>> X.shape, y.shape, sample.names
    ((100000, 2), (100000,), ['x1', 'x2', 'y'])
    >>> sum(len(y) for X, y in sample.blocks(30_000))
    100000
    >>> round(sample.bayes_error, 4)
    0.0478
    """

    law: Law
    n: int
    seed: int

    @property
    def names(self) -> list[str]:
        """Names of the columns: x1, x2 … and y."""
        return [*(f"x{j}" for j in range(1, self.law.d + 1)), "y"]

    @property
    def bayes_error(self) -> float:
        """The error that no prediction is below; see :attr:`Law.bayes_error`."""
        return self.law.bayes_error

    @cached_property
    def _whole(self) -> tuple[Array, Array]:
        return next(self.blocks(self.n))

    @property
    def X(self) -> Array:
        """All rows, shape (n, d)."""
        return self._whole[0]

    @property
    def y(self) -> Array:
        """All outputs, shape (n,)."""
        return self._whole[1]

    def __iter__(self) -> Iterator[Array]:
        """Yield X and y, so that ``X, y = sample``."""
        return iter(self._whole)

    def __len__(self) -> int:
        return self.n

    def blocks(self, size: int) -> Iterator[tuple[Array, Array]]:
        """Yield rows and outputs in order, at most ``size`` at a time.

        Takes the memory of one block and of 16,384 rows.

        Parameters
        ----------
        size : int
        """
        check_count("size", size)
        waiting: list[tuple[Array, Array]] = []
        n_waiting = 0
        for stream in range(-(-self.n // _STREAM)):
            # Always whole streams: the end of a sample does not change its rows.
            X, y = self.law.draw(_STREAM, np.random.default_rng([stream, self.seed]))
            rows = min(_STREAM, self.n - stream * _STREAM)
            start = 0
            while start < rows:
                stop = min(rows, start + size - n_waiting)
                waiting.append((X[start:stop], y[start:stop]))
                n_waiting, start = n_waiting + stop - start, stop
                if n_waiting == size:
                    yield _joined(waiting)
                    waiting, n_waiting = [], 0
        if waiting:
            yield _joined(waiting)

    def another(self, n: int, rng: Any = None) -> "Sample":
        """Return new rows of the same law, such as those to test with.

        Parameters
        ----------
        n : int
        rng : int, Generator or None
        """
        return sample_of(self.law, n, seed_from(rng))

    def frames(self, size: int) -> Iterator[Frame]:
        """Yield blocks of named columns, as files are written.

        Parameters
        ----------
        size : int
        """
        for X, y in self.blocks(size):
            columns = dict(zip(self.names, X.T, strict=False))
            yield Frame({**columns, "y": y})


def _joined(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    if len(parts) == 1:
        return parts[0][0].copy(), parts[0][1].copy()
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def sample_of(law: Law, n: Any, seed: int) -> Sample:
    """Return a sample, its number of rows checked."""
    check_count("n", n)
    return Sample(law, int(n), seed)


def seed_from(rng: Any) -> int:
    """Return a seed: the one given, one drawn from a generator, or a new one for None."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if rng is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return int(rng)
    raise ValueError(f"rng={rng!r}: give a number from 0 on, a Generator of NumPy, or None")


def check_count(name: str, value: Any) -> None:
    """Raise unless ``value`` is a whole number above 0."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ValueError(f"{name}={value!r} must be a whole number above 0")


def check_between(
    name: str, value: Any, low: float, high: float = np.inf, closed: bool = False
) -> None:
    """Raise unless ``value`` is between two numbers, or one of them where ``closed``."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    inside = number and (low < value < high or (closed and value in (low, high)))
    if inside and np.isfinite(value):
        return
    top = f" and {'at most' if closed else 'below'} {high:g}" if np.isfinite(high) else ""
    least = "at least" if closed else "above"
    raise ValueError(f"{name}={value!r} must be a number {least} {low:g}{top}")
