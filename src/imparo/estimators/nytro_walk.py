"""A walk along iterates: the error of each, when to stop, and which one to take."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.estimators.cells import Cells
from imparo.estimators.normal import Normal
from imparo.estimators.nystrom_search import ridge_of
from imparo.nested import Moments, trusted
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

    def chosen(self, errors: Array) -> int | None:
        """Return the position of the iterate to take, or None to go on.

        Parameters
        ----------
        errors : array of shape (t,)

        Returns
        -------
        int or None
        """
        if self.tolerance is None:
            best = int(np.argmin(errors))
            waited = len(errors) - 1 - best
            return best if waited > max(_PATIENCE, (best + 1) // 2) else None
        before, now = errors[: -self.window], errors[self.window :]
        with np.errstate(invalid="ignore"):
            flat = np.flatnonzero(~(now < (1 - self.tolerance) * before))
        return int(flat[0]) + self.window if len(flat) else None

    def last(self, errors: Array) -> int:
        """Return the position to take when no more iterates come."""
        found = self.chosen(errors)
        if found is not None:
            return found
        return int(np.argmin(errors)) if self.tolerance is None else len(errors) - 1


@dataclass(frozen=True)
class Walk:
    """Errors of the iterates that were judged, and the position of the one to take."""

    errors: Array
    train_errors: Array
    tie_breaker: Array
    chosen: int


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
            held, bounds = self._moments[0].squared_errors(betas)
            train = self._moments[1].squared_errors(betas)[0]
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
