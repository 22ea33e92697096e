"""A walk along iterates: the error of each, when to stop, and which one to take."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.estimators.cells import Cells
from imparo.estimators.map_search import ridge_of
from imparo.estimators.normal import Normal
from imparo.moments import Moments, trusted
from imparo.paths import Path
from imparo.scores import RootMeanSquare, Score

# Without a new best for so many steps, and half of those so far, none is expected.
_PATIENCE = 20


@dataclass(frozen=True)
class Stopping:
    """When to stop, and which iterate to take, by the validation errors so far.

    Attributes
    ----------
    tolerance : float or None
        None takes the best iterate. A number takes the first whose error is not below
        (1 − tolerance) times that of ``window`` steps before (thesis, section 4.3).
    window : int
    """

    tolerance: float | None
    window: int

    def chosen(self, steps: Array, errors: Array, ties: Array) -> int | None:
        """Return the position of the iterate to take, or None to go on.

        Parameters
        ----------
        steps : array of shape (L,)
            The numbers of iterations that were judged.
        errors, ties : arrays of shape (L,)
            Of equal errors, the one with the smaller of ``ties`` is the better.

        Returns
        -------
        int or None
        """
        if self.tolerance is None:
            best = _best(errors, ties)
            waited = steps[len(errors) - 1] - steps[best]
            return best if waited > max(_PATIENCE, steps[best] // 2) else None
        for now in range(len(errors)):
            # The last that was judged at least a window before.
            before = int(np.searchsorted(steps, steps[now] - self.window, side="right")) - 1
            falls = before < 0 or errors[now] < (1 - self.tolerance) * errors[before]
            if not falls:
                return now
        return None

    def last(self, steps: Array, errors: Array, ties: Array) -> int:
        """Return the position to take when no more iterates come."""
        found = self.chosen(steps, errors, ties)
        if found is not None:
            return found
        return _best(errors, ties) if self.tolerance is None else len(errors) - 1


def _best(errors: Array, ties: Array) -> int:
    return int(np.lexsort((ties, errors))[0])


@dataclass(frozen=True)
class Walk:
    """Errors of the iterates that were judged, and the position of the one to take."""

    errors: Array
    train_errors: Array
    tie_breaker: Array
    chosen: int

    @property
    def rank(self) -> tuple[float, float]:
        """What walks are compared by: the error of the chosen iterate, and its tie breaker."""
        return float(self.errors[self.chosen]), float(self.tie_breaker[self.chosen])


class Judge:
    """The errors of iterates of one split: from moments, or from predictions."""

    def __init__(self, normal: Normal, cells: Cells, split: int, score: Score) -> None:
        self._normal, self._score = normal, score
        self._held = cells.held[split]
        self.system = normal.system(cells.fitted[split])
        weight, cell = normal.rows.weight, normal.rows.cell
        used = (cell >= 0) & self._held[cell]
        self.held_weight = float(weight[used].sum(dtype=np.float64))
        self._moments: tuple[Moments, Moments] | None = None
        if normal.fitted is not None and isinstance(score, RootMeanSquare):
            inside, outside = cells.parts(normal.fitted.statistics, split)
            ridge = ridge_of(normal.fitted, normal.rows, inside, normal.has_intercept)
            self._moments = ridge.moments(outside), ridge.moments()

    def __call__(self, betas: Array) -> Array:
        """Return the sums of errors, held-out and training, shape (2, 2, L)."""
        train = np.full(betas.shape[1], np.nan)
        if self._moments is not None:
            engine = self._normal.rows.engine
            there = engine.asarray(betas)
            held, bounds = map(engine.to_host, self._moments[0].squared_errors(there))
            train = engine.to_host(self._moments[1].squared_errors(there)[0])
            if trusted(held, bounds):
                return np.stack([np.stack([held, held]), np.stack([train, train])])
        p, n_models, _ = betas.shape
        alpha = self._normal.map.coefficients(betas.reshape(p, -1)).reshape(betas.shape)
        intercepts = np.stack([self.system.intercept(betas[:, k]) for k in range(n_models)])
        sums = self._normal.score(self._held, alpha, intercepts, self._score)
        return np.stack([sums, np.stack([train, train])])


def as_path(
    sigmas: list[Any], walks: list[Walk], steps: Array, score: Score, method: str
) -> Path | None:
    """Return the errors of all walks as a path, or None if there was none."""
    if not walks:
        return None
    length = max(len(walk.errors) for walk in walks)

    def table(name: str) -> Array:
        # Walks stop at different lengths: what was not reached is not known.
        filled = np.full((len(walks), length), np.nan)
        for row, walk in zip(filled, walks, strict=True):
            values = getattr(walk, name)
            row[: len(values)] = values
        return filled if len(walks) > 1 else filled[0]

    axes = {"sigma": np.array(sigmas)} if len(walks) > 1 else {}
    axes["iterations"] = steps[:length]
    return Path(
        errors=table("errors"), axes=axes, metric=score.name, method=method,
        train_errors=table("train_errors"), tie_breaker=table("tie_breaker"),
    )  # fmt: skip
