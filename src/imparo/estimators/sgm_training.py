"""The search over step sizes and passes: all candidates in one sweep, judged as they go."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.errors import MemoryBudgetError
from imparo.estimators.sgm_rows import SHUFFLED, FeatureRows, PointRows
from imparo.estimators.sgm_steps import Steps
from imparo.estimators.splits import Splits
from imparo.losses import Loss
from imparo.progress import track
from imparo.scores import MeanLoss, Misclassification, Score
from imparo.sgm import Schedule, State, Sweep

# An error that falls by less has not improved, for the patience of the search.
_IMPROVEMENT = 1e-3


@dataclass(frozen=True)
class Task:
    """Outputs, weights and how steps are taken: all but the features.

    Attributes
    ----------
    Y : array of shape (n, T)
        Outputs divided by ``unit``.
    weight : array of shape (n,)
        Of mean 1.
    kept : array of positions
        Rows of weight above 0.
    loss : Loss
    unit : float
    steps : Steps
    sampling : str
    batch : int
    averaged, intercept : bool
    checks : int
        How often a pass is judged.
    patience : int or None
    progress : bool or callable
    """

    Y: Array
    weight: Array
    kept: Array
    loss: Loss
    unit: float
    steps: Steps
    sampling: str
    batch: int
    averaged: bool
    intercept: bool
    checks: int
    patience: int | None
    progress: Any

    def sweep(
        self, rows: FeatureRows | PointRows, schedule: Schedule, before: State | None
    ) -> Sweep:
        """Return a sweep at its beginning: w₁ = 0, or where a model was before."""
        if before is None:
            state = State.zero(
                rows.n_features, self.Y.shape[1], schedule, self.Y.dtype,
                averaged=self.averaged, intercept=self.intercept,
            )  # fmt: skip
        else:
            state = before.first(schedule, averaged=self.averaged)
            state = state.padded(rows.n_features - len(state.W))
        return Sweep(
            rows.space(state), state, self.loss, self.Y, self.weight, batch=self.batch,
            unit=self.unit,
        )  # fmt: skip

    def passes(
        self, sweep: Sweep, rows: FeatureRows | PointRows, fitted: Array,
        rng: np.random.RandomState,
    ) -> Iterator[None]:  # fmt: skip
        """Pass over rows again and again, yielding after every part that is judged."""
        n = len(fitted)
        steps = -(-n // self.batch)
        marks = np.round(np.arange(1, self.checks + 1) * steps / self.checks).astype(int)
        marks = np.minimum(marks * self.batch, n)
        while True:
            sweep.begin(n)
            done = mark = 0
            for part, positions in rows.passing(fitted, self.sampling, rng):
                start = 0
                while start < len(positions):
                    stop = min(len(positions), start + int(marks[mark]) - done)
                    sweep.advance(part[start:stop], positions[start:stop])
                    done, start = done + stop - start, stop
                    while mark < len(marks) and done == marks[mark]:
                        mark += 1
                        yield


@dataclass
class Found:
    """The best of a sweep so far."""

    error: float
    loss: float
    candidate: int
    check: int
    state: State


class Walk:
    """Sweeps over the fitted rows of every split, side by side, judged together.

    Candidates that have not improved for ``patience`` judgements, or have overflown, leave.

    Parameters
    ----------
    problem : Task
    rows : FeatureRows or PointRows
    splits : list of (fitted, held) positions
    score : Score
    before : State or None
        Where to begin.
    seed : int
    """

    def __init__(
        self, problem: Task, rows: FeatureRows | PointRows, splits: Splits, score: Score,
        before: State | None, seed: int,
    ) -> None:  # fmt: skip
        self.problem, self.rows, self.splits, self.score = problem, rows, splits, score
        rng = np.random.RandomState(seed)
        self.sweeps = [
            problem.sweep(rows, problem.steps.schedule(len(fitted)), before)
            for fitted, _ in splits
        ]
        self._walks = [
            problem.passes(sweep, rows, fitted, np.random.RandomState(rng.randint(2**31 - 1)))
            for sweep, (fitted, _) in zip(self.sweeps, splits, strict=True)
        ]
        held = [problem.weight[h].sum(dtype=np.float64) for _, h in splits]
        self._total = float(sum(held))
        self.best: Found | None = None
        self.stopped = "passes"
        n = len(problem.steps)
        self.errors, self.losses = np.empty((n, 0)), np.empty((n, 0))
        self._lowest = np.full((n, 2), np.inf)
        self._since = np.zeros(n, int)
        self._done = 0

    def run(self, checks: Array) -> None:
        """Go on until all judgements are made, or no candidate improves.

        Parameters
        ----------
        checks : array of int
            After how many parts of passes candidates are judged.
        """
        last, judged = int(checks[-1]), set(checks.tolist())
        for check in track(range(last), last, "passes", self.problem.progress):
            for walk in self._walks:
                next(walk)
            self._done = check + 1
            if self._done not in judged:
                continue
            self._judge(check)
            # In the end nobody leaves: the best may go on over the rows held out.
            if self._done < last and self._leave(checks):
                self.stopped = "patience"
                return

    def _judge(self, check: int) -> None:
        alive = self.sweeps[0].candidates
        problem = self.problem
        mean = MeanLoss(problem.loss, problem.unit)
        sums = np.zeros((2, len(alive)))
        for sweep, (_, held) in zip(self.sweeps, self.splits, strict=True):
            for part, positions in self.rows.reading(held):
                Y, F = problem.Y[positions], sweep.predict(part)
                weight = problem.weight[positions].astype(Y.dtype)
                sums[0] += self.score(Y, F, weight)[0]
                sums[1] += mean(Y, F, weight)[0]
            sums[:, sweep.dead] = np.inf
        sums = np.where(np.isnan(sums), np.inf, sums) / self._total
        errors, losses = self.score.finish(sums[0]), sums[1] * problem.unit
        for name, values in (("errors", errors), ("losses", losses)):
            column = np.full((len(self._since), 1), np.nan)
            column[alive, 0] = values
            setattr(self, name, np.concatenate([getattr(self, name), column], axis=1))
        # A rate of errors may rest while the loss still falls.
        rates = isinstance(self.score, Misclassification)
        now = np.stack([errors, losses if rates else errors], axis=1)
        then = self._lowest[alive]
        clearly = (now < then * (1 - _IMPROVEMENT)).any(axis=1)
        self._lowest[alive] = np.minimum(now, then)
        self._since[alive] = np.where(clearly, 0, self._since[alive] + 1)
        place = int(np.lexsort((losses, errors))[0])
        found = float(errors[place]), float(losses[place])
        before = (np.inf, np.inf) if self.best is None else (self.best.error, self.best.loss)
        if found < before and np.isfinite(found[0]):
            state = self.sweeps[0].state(place)
            self.best = Found(*found, int(alive[place]), check, state)

    def _leave(self, checks: Array) -> bool:
        """Let candidates go that do not improve; return whether none is left."""
        alive = self.sweeps[0].candidates
        gone = np.any([sweep.dead for sweep in self.sweeps], axis=0)
        if self.problem.patience is not None:
            gone |= self._since[alive] >= self.problem.patience
            gone |= self._are_too_far(alive, checks)
        if gone.all():
            return True
        if gone.any():
            for sweep in self.sweeps:
                sweep.keep(~gone)
        return False

    def _are_too_far(self, alive: Array, checks: Array) -> Array:
        """Return which candidates cannot become the best in what is left, at their pace.

        Errors fall ever more slowly, so that the pace of the last judgements is the most that
        can be hoped for. What counts is the least error so far: one judgement may be unlucky.
        """
        patience, done = self.problem.patience, self.errors.shape[1]
        if patience is None or done <= patience or self.best is None:
            return np.zeros(len(alive), bool)
        least = np.minimum.accumulate(self.errors[alive], axis=1)
        now, then = least[:, -1], least[:, -1 - patience]
        made = checks[done - 1] - checks[done - 1 - patience]
        left = checks[-1] - checks[done - 1]
        return now - left * (then - now) / made > self.best.error

    def is_better_than(self, other: "Walk") -> bool:
        """Return whether the best of this walk is better than that of another one."""
        if self.best is None or other.best is None:
            return self.best is not None
        return (self.best.error, self.best.loss) < (other.best.error, other.best.loss)

    def forget(self) -> None:
        """Give back the memory of weights and rows; errors stay."""
        self.sweeps, self._walks, self.best = [], [], None
        del self.rows

    def finish(self, fresh: np.random.RandomState, before: State | None) -> State:
        """Return the best candidate, on all rows.

        After one pass that held out rows once, the pass goes on over them: that is a pass
        over all rows. Otherwise all rows are passed as often as was best.
        """
        best, problem, n_splits = self.best, self.problem, len(self.splits)
        assert best is not None
        fitted, held = self.splits[0]
        whole = len(fitted) + len(held) == len(problem.kept)
        sweep = self.sweeps[0]
        at_end = best.check + 1 == self._done == problem.checks
        shuffled = problem.sampling == SHUFFLED and problem.steps.rule is None
        if n_splits == 1 and whole and at_end and shuffled:
            place = int(np.flatnonzero(sweep.candidates == best.candidate)[0])
            sweep.keep(np.array([place]))
            sweep.begin(len(held))
            for part, positions in self.rows.passing(held, problem.sampling, fresh):
                sweep.advance(part, positions)
            return _finite(sweep)
        self.sweeps, self._walks = [], []  # their memory is needed
        schedule = problem.steps.schedule(len(problem.kept)).take(np.array([best.candidate]))
        return passed(problem, self.rows, schedule, best.check + 1, fresh, before)


def check_memory(
    n_steps: int, n_outputs: int, n_features: int, itemsize: int, copies: int, memory: int
) -> None:
    """Raise if the weights of all candidates do not fit, in so many copies."""
    needed = itemsize * n_features * n_steps * n_outputs * copies
    if needed > memory:
        raise MemoryBudgetError(
            f"weights of {n_steps} steps, {n_outputs} outputs and {n_features:,} features or "
            f"points need {needed:,} bytes and memory is {memory:,}; give fewer steps or "
            "features, or raise memory"
        )


def passed(
    problem: Task, rows: FeatureRows | PointRows, schedule: Schedule, checks: int,
    rng: np.random.RandomState, before: State | None,
) -> State:  # fmt: skip
    """Return the state after passes over all rows, as many parts of passes as ``checks``."""
    sweep = problem.sweep(rows, schedule, before)
    walk = problem.passes(sweep, rows, problem.kept, rng)
    for _ in track(range(checks), checks, "final passes", problem.progress):
        next(walk)
    return _finite(sweep)


class TooLargeError(ValueError):
    """Numbers overflow with the only step size that there is."""


def _finite(sweep: Sweep) -> State:
    """Return the state of one candidate, or raise if it has overflown."""
    if sweep.dead.all():
        raise TooLargeError(
            f"step={float(sweep.schedule.eta[0]):.3g} is too large: numbers overflow; give a "
            "smaller one, or scale the columns of X"
        )
    return sweep.state()
