"""The errors of every candidate kernel at every level, and the model at the best point."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.estimators.candidates import Candidate
from imparo.estimators.problems import Rows, make_problem
from imparo.estimators.solve import Solved, solve, solve_by_spectrum
from imparo.estimators.splits import GCV, LEAVE_ONE_OUT, Splits
from imparo.filters import Filter
from imparo.kernels import Kernel
from imparo.paths import Path
from imparo.progress import track
from imparo.scores import RootMeanSquare, Score, Scores
from imparo.selection import Split, generalized_cross_validation, held_out, leave_one_out


@dataclass(frozen=True)
class Search:
    """Rows, filter and levels of one selection."""

    rows: Rows
    filter: Filter
    grid: Array
    method: str
    splits: Splits
    score: Score
    intercept: bool
    memory: int

    def run(self, candidates: list[Candidate], progress: Any) -> tuple[Path, Solved]:
        """Return the path over all candidates and the model at its best point."""
        total = len(candidates) * max(1, len(self.splits))
        ticks = track(range(total), total, f"{self.method} selection", progress)
        scores: list[Scores] = []
        model = None
        for i, candidate in enumerate(candidates):
            if self.splits:
                scores.append(self._on_splits(candidate.kernel, ticks))
                continue
            next(ticks)
            problem = self._problem(candidate.kernel)
            scores.append(self._in_closed_form(problem))
            index = self._path(candidates[: i + 1], scores).best_index
            # The spectrum is at hand now and not later: solve while this one leads.
            if best_candidate(index) == i:
                model = solve_by_spectrum(problem, self.filter, self.grid[index[-1]])
        for _ in ticks:
            pass
        path = self._path(candidates, scores)
        index = path.best_index
        if not np.isfinite(path.errors[index]):
            raise ValueError(
                f"no value of {' and '.join(path.axes)} could be judged by {self.method}: "
                "every error is infinite or not a number; give larger penalties, or another "
                "validation"
            )
        if model is None:
            problem = self._problem(candidates[best_candidate(index)].kernel)
            model = solve(problem, self.filter, self.grid[index[-1]])
        return path, model

    def _problem(self, kernel: Kernel, part: Array | None = None) -> Any:
        rows = self.rows if part is None else self.rows.take(part, kernel)
        return make_problem(rows, kernel, self.intercept, self.memory)

    def _levels(self, problem: Any) -> Array:
        return self.grid * problem.total if self.filter.parameter == "penalty" else self.grid

    def _on_splits(self, kernel: Kernel, ticks: Iterator[int]) -> Scores:
        def parts() -> Iterator[Split]:
            for fitted, held in self.splits:
                next(ticks)
                X = self.rows.held_out(held, fitted, kernel)
                Y, weight = self.rows.Y[held], self.rows.weight[held]
                yield Split(self._problem(kernel, fitted), X, Y, weight)

        return held_out(parts(), self.filter, self._levels, self.score)

    def _in_closed_form(self, problem: Any) -> Scores:
        levels = self._levels(problem)
        if self.method == LEAVE_ONE_OUT:
            return leave_one_out(problem, self.filter, levels, self.score)
        return generalized_cross_validation(problem, self.filter, levels)

    def _path(self, candidates: list[Candidate], scores: list[Scores]) -> Path:
        axes: dict[str, Array] = {}
        if len(candidates) > 1:
            axes["sigma"] = np.array([candidate.sigma for candidate in candidates])
        axes[self.filter.parameter] = self.grid
        shape = tuple(len(values) for values in axes.values())
        return Path(
            errors=np.stack([s.errors for s in scores]).reshape(shape),
            axes=axes,
            metric=(RootMeanSquare() if self.method == GCV else self.score).name,
            method=self.method,
            train_errors=np.stack([s.train_errors for s in scores]).reshape(shape),
            tie_breaker=np.stack([s.tie_breaker for s in scores]).reshape(shape),
        )


def best_candidate(index: tuple[int, ...]) -> int:
    """Return which candidate a point of a path belongs to."""
    return index[0] if len(index) > 1 else 0
