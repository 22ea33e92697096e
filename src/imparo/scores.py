"""The errors that a model is selected by, at every level of a path at once."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from imparo.engine import Array, engine_holding
from imparo.losses import Loss


class Score(Protocol):
    """An error to select by, summed over blocks of rows."""

    @property
    def name(self) -> str:
        """What it counts, for people."""

    def __call__(self, Y: Array, F: Array, weight: Array) -> Array:
        """Return the weighted sums of error and squared error, shape (2, L).

        ``Y`` is (b, T), ``F`` is (b, L, T): predictions at L levels.
        """

    def finish(self, total: Array) -> Array:
        """Return errors from mean sums."""


@dataclass(frozen=True)
class RootMeanSquare:
    """Root of the mean squared error over rows and outputs."""

    name: str = "root mean squared error"

    def __call__(self, Y: Array, F: Array, weight: Array) -> Array:
        """Return the sums of squared errors, twice."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = _weighted_sums(weight, ((F - Y[:, None, :]) ** 2).mean(axis=2))
        return engine_holding(F).xp.stack([squares, squares])

    def finish(self, total: Array) -> Array:
        """Return the roots."""
        return np.sqrt(total)


@dataclass(frozen=True)
class Misclassification:
    """Share of rows (of labels, if ``multilabel``) that get the wrong sign or arg max."""

    multilabel: bool = False
    name: str = "misclassification rate"

    def __call__(self, Y: Array, F: Array, weight: Array) -> Array:
        """Return the sums of errors, and of squared errors to break ties by."""
        engine = engine_holding(F)
        if Y.shape[1] == 1 or self.multilabel:
            apart = (F > 0) != (Y > 0)[:, None, :]
            wrong = engine.cast(apart, np.dtype(np.float64)).mean(axis=2)
        else:
            apart = F.argmax(axis=2) != Y.argmax(axis=1)[:, None]
            wrong = engine.cast(apart, np.dtype(np.float64))
        wrong[engine.xp.isnan(F).any(axis=2)] = 1.0
        squares = RootMeanSquare()(Y, F, weight)[0]
        return engine.xp.stack([_weighted_sums(weight, wrong), squares])

    def finish(self, total: Array) -> Array:
        """Return the rates as they are."""
        return total


@dataclass(frozen=True)
class MeanLoss:
    """Mean of a loss over rows and outputs, both the loss and outputs divided by ``unit``."""

    loss: Loss
    unit: float = 1.0

    @property
    def name(self) -> str:
        """What it counts."""
        return f"mean of {self.loss!r}"

    def __call__(self, Y: Array, F: Array, weight: Array) -> Array:
        """Return the sums of losses, twice."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.loss.value(self.unit * Y[:, None, :], self.unit * F)
            sums = _weighted_sums(weight, np.mean(values, axis=2)) / self.unit
        return np.stack([sums, sums])

    def finish(self, total: Array) -> Array:
        """Return the means as they are."""
        return total


@dataclass(frozen=True)
class Scores:
    """Errors at every level: validation, training, and what breaks ties, shape (L,)."""

    errors: Array
    train_errors: Array
    tie_breaker: Array


def _weighted_sums(weight: Array, errors: Array) -> Array:
    return engine_holding(errors).product(weight[None, :], errors)[0]
