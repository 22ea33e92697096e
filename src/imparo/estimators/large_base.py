"""How an estimator on centers chooses its solver, and fits by conjugate gradients."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from imparo.data.sources import Source
from imparo.engine import Array, default_engine, memory_for
from imparo.errors import PrecisionWarning, warn_user
from imparo.estimators import grids
from imparo.estimators.blocks import Stream
from imparo.estimators.candidates import Candidate
from imparo.estimators.cells import Cells
from imparo.estimators.inputs import used_rows
from imparo.estimators.large import (
    MOST_STEPS,
    PENALTIES,
    LargeProblem,
    Walked,
    check_room,
    largest_size,
    solve_large,
    walk,
)
from imparo.estimators.logistic import solve_logistic, walk_logistic
from imparo.estimators.map_base import PENALTIES as DIRECT_PENALTIES
from imparo.estimators.map_base import MapMachine
from imparo.estimators.solve import Solved
from imparo.estimators.splits import Splits, make_splits
from imparo.estimators.subsampled import Centers, Subsampled, are_given, n_given
from imparo.features.center_map import CenterMap
from imparo.features.nystrom import Dropped
from imparo.kernels import Kernel
from imparo.paths import Path
from imparo.scores import Score

DIRECT, CG = "direct", "cg"
# Operations of a matrix product that take as long as all else that an entry of K_nm costs in
# a pass: its function, and two products with vectors, which wait for memory.
_ENTRY, _ENTRY_THERE = 124.0, 290.0
# Statistics give every penalty and size, and exact solutions: they may take so much longer.
_PREFERENCE = 1.5
# Iterations that a penalty is expected to take.
_EXPECTED_STEPS = 20
_MOST_ITERATIONS = 100_000
# Iterations of conjugate gradients in a Newton step.
_NEWTON_STEPS = 20
# Where classes can be told apart, smaller penalties only make probabilities more extreme.
_LEAST_LOGISTIC = 1e-8
# Below this, statistics are cheap whatever the rest.
_SMALL = 3000


class LargeMachine(Subsampled, MapMachine):
    """A machine on centers that can do without m × m statistics."""

    solver: Any
    iterations: Any
    statistics_: Any
    iterations_: int | None
    dropped_centers_: list[Dropped]

    def _loss_name(self) -> str:
        return "square"

    def _solver(self, source: Source, n_cells: int) -> str:
        """Return "direct" or "cg"."""
        most = self._most_steps()
        if self.solver not in ("auto", DIRECT, CG):
            raise ValueError(
                f"solver={self.solver!r} is not known; give 'auto', 'direct' (statistics of "
                "m × m numbers, every penalty and size at once) or 'cg' (preconditioned "
                "conjugate gradients, for many centers)"
            )
        gcv = isinstance(self.validation, str) and self.validation == "gcv"
        if self._loss_name() == "logistic":
            if gcv:
                raise ValueError(
                    "validation='gcv' is for the square loss; give a fraction, a number of "
                    "folds, a splitter or pairs of index arrays"
                )
            if self.solver == DIRECT:
                raise ValueError(
                    "solver='direct' is there for the square loss; leave it out with "
                    "loss='logistic'"
                )
            return CG
        if self.solver == CG and gcv:
            raise ValueError(
                "validation='gcv' needs solver='direct'; give a fraction, a number of folds, a "
                "splitter or pairs of index arrays"
            )
        if self.solver != "auto" or gcv or isinstance(self.n_centers, str):
            return DIRECT if self.solver == "auto" else self.solver
        engine, (n, d) = default_engine(), source.shape
        memory = self._for_statistics(memory_for(self.memory, engine), source, n_cells)
        sizes = grids.sizes(self.n_centers, n, min(n, self._most_given(n)))
        m = int(sizes[-1])
        if m > self._largest_room(n_cells, memory, 1):
            return CG
        if len(sizes) > 1 or m < _SMALL:
            return DIRECT
        automatic = isinstance(self.penalty, str)
        n_penalties = DIRECT_PENALTIES if automatic else np.size(self.penalty)
        n_walks = PENALTIES if automatic else n_penalties
        entry = _ENTRY_THERE if engine.resident else _ENTRY
        direct = float(n) * m * (m + 2 * d + entry) + (2 + n_penalties / 3) * float(m) ** 3
        one_pass = float(n) * m * (2 * d + entry)
        steps = _EXPECTED_STEPS if isinstance(self.iterations, str) else most
        iterated = max(1, n_cells - 1) * n_walks * (steps * one_pass + float(m) ** 3)
        return CG if iterated * _PREFERENCE < direct else DIRECT

    def _most_given(self, n: int) -> int:
        return n_given(self.centers) if are_given(self.centers) else n

    def _most_steps(self) -> int:
        value = self.iterations
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(f"iterations={value!r} is not known; give a number or 'auto'")
            return _NEWTON_STEPS if self._loss_name() == "logistic" else MOST_STEPS
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not 1 <= value <= _MOST_ITERATIONS:
            raise ValueError(
                f"iterations={value!r} must be a whole number from 1 on, at most "
                f"{_MOST_ITERATIONS:,}, or 'auto'"
            )
        return int(value)

    def _fit_large(
        self, source: Source, Y: Array, weight: Array, y: Array, score: Score, *,
        stratify: bool = False,
    ) -> tuple[Solved, Path | None]:  # fmt: skip
        """Select on, and fit to, validated rows by conjugate gradients."""
        kernel, rng = self._checked_kernel(source), check_random_state(self.random_state)
        validation, most = self._checked_validation(), self._most_steps()
        seed = int(rng.randint(2**31 - 1))
        kept, weight = used_rows(weight, Y.dtype)
        candidates = self._candidates(kernel, source, kept)
        by_size, single = self._by_size(), self._is_single(len(candidates))
        method = ""
        splits: Splits = []
        if not single:
            method, splits = make_splits(validation, kept, y, rng, stratify=stratify)
        cells = Cells.of(splits, kept, len(y))
        rows = self._as_rows(source, Y, weight, cells)
        allowed = cells.may_be_centers()
        candidates = self._learned(candidates, source, Y, weight, allowed, seed)
        there = self._centers_there(allowed)
        if isinstance(self.n_centers, str):
            there = max(1, min(there, largest_size(rows.memory, source.dtype.itemsize)))
        sizes = self._sizes(len(kept), there)
        check_room(int(sizes[-1]), rows.memory, source.dtype.itemsize)
        tried: list[_Tried] = []
        problem: LargeProblem | None = None
        for candidate in candidates:
            drawn = self._choose(source, candidate.kernel, allowed, int(sizes[-1]), seed)
            diagonal = candidate.kernel.diagonal(drawn.X)
            for size in sizes:
                used = drawn.first(int(size))
                penalties = self._penalties_of(diagonal, int(size), by_size)
                passes = most if single else most * len(penalties)
                problem = None  # not two preconditioners
                problem = self._problem(rows, candidate.kernel, used, passes)
                walks = [
                    self._walk(problem, cells, v, penalties, most, score, used.rows)
                    for v in range(len(splits))
                ]
                tried.append(_Tried(candidate, used, penalties, walks))
        best = min(tried, key=lambda one: one.rank)
        path = None if single else self._large_path(tried, candidates, score, method, by_size)
        candidate, used = best.candidate, best.used
        if best is not tried[-1]:
            problem = None
            problem = self._problem(rows, candidate.kernel, used, most)
        assert problem is not None
        self.sigma_, self.kernel_ = candidate.sigma, candidate.kernel
        i, t = best.point if best.walks else (0, most - 1)
        self.penalty_, self.n_centers_ = float(best.penalties[i]), len(used)
        model, converged = self._final(problem, cells, best, i, most if single else t + 1, most)
        if single and isinstance(self.iterations, str) and not converged:
            warn_user(
                f"{most} iterations did not converge; give a larger penalty, iterations=... "
                "for more, or several penalties to choose from by held-out rows",
                PrecisionWarning,
            )
        self.solver_ = CG
        self.statistics_ = None
        self._set_centers(used)
        return model, path

    def _problem(
        self, rows: Stream, kernel: Kernel, used: Centers, passes: int
    ) -> LargeProblem:
        return LargeProblem(rows, CenterMap(kernel, used.X), bool(self.intercept), passes)

    def _walk(
        self, problem: LargeProblem, cells: Cells, split: int, penalties: Array, most: int,
        score: Score, center_rows: Array | None,
    ) -> Walked:  # fmt: skip
        if self._loss_name() == "logistic":
            return walk_logistic(
                problem, cells, split, penalties, most, score, center_rows, self.progress
            )
        return walk(problem, cells, split, penalties, most, score, self.progress)

    def _final(
        self, problem: LargeProblem, cells: Cells, best: "_Tried", i: int, steps: int, most: int
    ) -> tuple[Solved, bool]:
        """Return the model on all rows at penalty i, and whether it converged."""
        first = best.walks[0] if best.walks else None
        if self._loss_name() == "logistic":
            start = None
            if first is not None and first.shifts is not None:
                start = first.starts[i], first.shifts[i]
            model, self.iterations_ = solve_logistic(
                problem, cells, self.penalty_, most, start, best.used.rows
            )
            return model, True
        alpha = None if first is None else first.starts[i]
        model, self.iterations_, converged = solve_large(
            problem, cells, self.penalty_, steps, alpha
        )
        return model, converged

    def _set_centers(self, used: Centers) -> None:
        self.centers_, self.center_rows_ = used.X, used.rows
        self.center_weights_, self.dropped_centers_ = used.weights, []

    def _penalties_of(self, diagonal: Array, size: int, by_size: bool) -> Array:
        if by_size:
            scale = float(np.mean(diagonal, dtype=np.float64))
            return scale * self._penalty_of(np.array([size]))
        found = grids.penalties(self.penalty, diagonal, PENALTIES)
        if isinstance(self.penalty, str) and self._loss_name() == "logistic":
            found = found[found >= _LEAST_LOGISTIC * found[0]]
        if (found <= 0).any():
            raise ValueError(
                "penalty=0 needs solver='direct' and the square loss: conjugate gradients are "
                "preconditioned with the penalty; give positive penalties"
            )
        return found

    def _large_path(
        self,
        tried: "list[_Tried]",
        candidates: list[Candidate],
        score: Score,
        method: str,
        by_size: bool,
    ) -> Path:
        means, ties = [], []
        for one in tried:
            found = np.where(np.isnan(one.means), np.inf, one.means)
            means.append(found[0])
            ties.append(found[1])
        n_sizes = len(tried) // len(candidates)
        table = np.stack(means).reshape(len(candidates), n_sizes, *means[0].shape)
        table_of_ties = np.stack(ties).reshape(table.shape)
        # Penalties come before sizes, as on every path.
        table, table_of_ties = table.swapaxes(1, 2), table_of_ties.swapaxes(1, 2)
        axes: dict[str, Array] = {}
        if len(candidates) > 1:
            axes["sigma"] = np.array([c.sigma for c in candidates])
        if not by_size:
            axes["penalty"] = tried[0].penalties
        axes["n_centers"] = np.array([len(one.used) for one in tried[:n_sizes]])
        if self._loss_name() == "square":
            axes["iterations"] = np.arange(1, table.shape[-1] + 1)
        shape = tuple(len(values) for values in axes.values())
        return Path(
            errors=score.finish(table).reshape(shape),
            axes=axes,
            metric=score.name,
            method=method,
            train_errors=np.full(shape, np.nan),
            tie_breaker=table_of_ties.reshape(shape),
        )


@dataclass(frozen=True)
class _Tried:
    """A kernel and centers that were tried, and the walks of all splits."""

    candidate: Candidate
    used: Centers
    penalties: Array
    walks: list[Walked]

    @property
    def means(self) -> Array:
        """Mean errors and what breaks ties, shape (2, L, t)."""
        total = sum(walk.weight for walk in self.walks)
        return np.sum([walk.sums for walk in self.walks], axis=0) / total

    @property
    def point(self) -> tuple[int, int]:
        """Positions of the best penalty and iteration."""
        errors, ties = self.means
        i, t = np.unravel_index(np.lexsort((ties.ravel(), errors.ravel()))[0], errors.shape)
        return int(i), int(t)

    @property
    def rank(self) -> tuple[float, float]:
        """What is compared: the best error, and what breaks ties."""
        if not self.walks:
            return 0.0, 0.0
        errors, ties = self.means
        return float(errors[self.point]), float(ties[self.point])
