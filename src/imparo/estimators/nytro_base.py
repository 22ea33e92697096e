"""What the NYTRO regressor and classifier share: iterate, judge every step, stop."""

import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from imparo.data.sources import Source
from imparo.engine import Array, host_engine
from imparo.errors import SelectionWarning, warn_user
from imparo.estimators import grids
from imparo.estimators.blocks import Stream
from imparo.estimators.cells import Cells
from imparo.estimators.inputs import used_rows
from imparo.estimators.normal import Normal, System, cheapest_form, largest_kernel_value
from imparo.estimators.nytro_walk import Judge, Stopping, Walk, as_path
from imparo.estimators.solve import Iterated, Solved
from imparo.estimators.splits import Splits, make_splits
from imparo.estimators.subsampled import Subsampled
from imparo.features import NystromMap
from imparo.filters import Iterative, as_filter, largest_eigenvalue
from imparo.paths import Path
from imparo.progress import track
from imparo.scores import Score

# The most iterations of "auto". Those of the ν-method and of conjugate gradients are worth
# about their square of gradient steps.
_MOST_STEPS = {"Landweber": 500, "NuMethod": 200, "ConjugateGradient": 100}
# So many iterates are judged together: products with matrices instead of vectors.
_CHUNK = 16


class NytroMachine(Subsampled):
    """Base of :class:`~imparo.NytroRegressor` and :class:`~imparo.NytroClassifier`."""

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        filter: Any = "nu",
        iterations: Any = "auto",
        step: Any = "spectral",
        tolerance: float | None = None,
        window: int = 10,
        n_centers: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = False,
        validation: Any = 0.2,
        memory: Any = None,
        device: Any = None,
        cluster: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.filter = filter
        self.iterations = iterations
        self.step = step
        self.tolerance = tolerance
        self.window = window
        self.n_centers = n_centers
        self.centers = centers
        self.intercept = intercept
        self.validation = validation
        self.memory = memory
        self.device = device
        self.cluster = cluster
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

    def at(self, iterations: int) -> Self:
        """Return a copy of the model as it was after fewer iterations, at no cost.

        Parameters
        ----------
        iterations : int
            From 1 to ``iterations_``.

        Returns
        -------
        estimator
        """
        check_is_fitted(self, "intercept_")
        if self._iterates is None or self._intercepts is None:
            raise ValueError(
                "the iterates did not fit into memory and were not kept; raise memory, or fit "
                f"with iterations={iterations!r}"
            )
        whole = isinstance(iterations, int | np.integer) and not isinstance(iterations, bool)
        if not whole or not 1 <= iterations <= self.iterations_:
            raise ValueError(
                f"iterations={iterations!r} must be a whole number from 1 to "
                f"{self.iterations_}, those that were done"
            )
        earlier, i = copy.copy(self), iterations - 1
        flat = np.ndim(self.dual_coef_) == 1
        coef, intercept = self._iterates[i], self._intercepts[i]
        earlier.dual_coef_ = coef[:, 0] if flat else coef
        earlier.intercept_ = intercept[0] if flat else intercept
        earlier._iterates = self._iterates[: i + 1]
        earlier._intercepts = self._intercepts[: i + 1]
        earlier.iterations_ = int(iterations)
        return earlier

    def _fit(
        self,
        source: Source,
        Y: Array,
        weight: Array,
        y: Array,
        score: Score,
        *,
        stratify: bool = False,
    ) -> tuple[Solved, Path | None]:
        """Iterate on a part of the rows, choose a step, iterate on all rows."""
        kernel, rng = self._checked_kernel(source), check_random_state(self.random_state)
        validation, filter = self._checked_validation(), self._checked_filter()
        if validation == "gcv":
            raise ValueError(
                "validation='gcv' is not there for iterations; give a fraction, a number of "
                "folds, a splitter or pairs of index arrays"
            )
        stopping, steps = self._checked_stopping(), self._steps(filter)
        seed = int(rng.randint(2**31 - 1))
        kept, weight = used_rows(weight, Y.dtype)
        candidates = self._candidates(kernel, source, kept)
        select = len(steps) > 1 or len(candidates) > 1
        method = ""
        splits: Splits = []
        if select:
            method, splits = make_splits(validation, kept, y, rng, stratify=stratify)
        cells = Cells.of(splits, kept, len(y))
        rows = self._as_rows(source, Y, weight, cells)
        allowed = cells.may_be_centers()
        candidates = self._learned(candidates, source, Y, weight, allowed, seed)
        memory = self._for_statistics(rows.memory, source, len(cells))
        most = self._most_centers(allowed, cells, memory, len(candidates))
        size = int(self._sizes(len(kept), most)[-1])
        best: tuple[Normal, float, int] | None = None
        found: list[Walk] = []
        for i, candidate in enumerate(c.kernel for c in candidates):
            chosen = self._choose(source, candidate, allowed, size, seed)
            map = NystromMap(candidate, chosen.X)
            normal = self._normal(rows, map, int(steps[-1]), filter)
            kappa = largest_kernel_value(rows, map)
            if select:
                walk = self._walk(normal, cells, filter, kappa, steps, stopping, score)
                found.append(walk)
                if min(range(i + 1), key=lambda k: found[k].rank) != i:
                    continue
            best = normal, kappa, i
            self.n_centers_ = len(chosen.weights)
            self.center_rows_, self.center_weights_ = chosen.rows, chosen.weights
        assert best is not None
        normal, kappa, i = best
        self.sigma_, self.kernel_ = candidates[i].sigma, candidates[i].kernel
        self.form_, self.centers_ = normal.form, normal.map.centers
        self.dropped_centers_ = normal.map.dropped
        self.iterations_ = int(steps[found[i].chosen]) if select else int(steps[0])
        path = as_path([c.sigma for c in candidates], found, steps, score, method)
        if select and isinstance(self.iterations, str) and self.iterations_ == steps[-1]:
            warn_user(
                f"{steps[-1]} iterations, the most that were tried, are the best; give "
                "iterations=... to try more, a larger step, or filter='cg', which needs fewer",
                SelectionWarning,
            )
        return self._final(normal, cells, filter, kappa), path

    def _checked_filter(self) -> Iterative:
        filter = as_filter(self.filter)
        if not isinstance(filter, Iterative):
            raise ValueError(
                f"filter={self.filter!r} does not iterate; give 'landweber', 'nu' or 'cg', or "
                "use NystromRegressor for a penalty"
            )
        if getattr(filter, "step", None) is not None:
            raise ValueError(
                f"filter={filter!r} has a step of its own; give step=γ to the estimator instead"
            )
        known = isinstance(self.step, str) and self.step in ("spectral", "bound")
        number = isinstance(self.step, int | float | np.number) and not (
            isinstance(self.step, bool)
        )
        if not known and not (number and 0 < self.step < np.inf):
            raise ValueError(
                f"step={self.step!r} must be 'spectral', 'bound' or a positive number"
            )
        if not filter.linear and self.step != "spectral":
            raise ValueError(
                f"step={self.step!r} has no effect with filter={self.filter!r}, which finds "
                "its own; leave it out"
            )
        return filter

    def _checked_stopping(self) -> Stopping:
        tolerance, window = self.tolerance, self.window
        number = isinstance(tolerance, int | float | np.number)
        if tolerance is not None and not (number and 0 <= tolerance < 1):
            raise ValueError(
                f"tolerance={tolerance!r} must be None or a number from 0 to below 1"
            )
        whole = isinstance(window, int | np.integer) and not isinstance(window, bool)
        if not whole or window < 1:
            raise ValueError(f"window={window!r} must be a whole number from 1 on")
        return Stopping(tolerance, int(window))

    def _steps(self, filter: Iterative) -> Array:
        """Return the numbers of iterations to judge."""
        if isinstance(self.iterations, str) and self.iterations == "auto":
            return np.arange(1, _MOST_STEPS.get(type(filter).__name__, 500) + 1)
        return grids.iterations(self.iterations, filter)

    def _normal(self, rows: Stream, map: NystromMap, steps: int, filter: Iterative) -> Normal:
        n, d = rows.source.shape
        itemsize = rows.source.dtype.itemsize
        # Once to choose an iteration, and once to fit to all rows.
        form = cheapest_form(
            n, len(map), d, rows.Y.shape[1], 2 * steps, itemsize, rows.memory, rows.n_cells,
            may_store=not rows.distributed,
        )  # fmt: skip
        scale = float((map.factor**2).sum(axis=0).max()) if len(map) else 0.0
        # t gradient steps regularize as λ = 1/(γt); accelerated ones as 1/(γt²).
        power = 1 if type(filter).__name__ == "Landweber" else 2
        return Normal(rows, map, form, bool(self.intercept), scale / steps**power)

    def _stepping(
        self, system: System, filter: Iterative, kappa: float, steps: int, what: str
    ) -> Iterator[Array]:
        scale = None
        if filter.linear:
            scale = self._scale(system, filter, kappa)
        iterates = filter.iterates(system.product, system.b, scale, primal=True)
        return track(islice(iterates, steps), steps, what, self.progress)

    def _scale(self, system: System, filter: Iterative, kappa: float) -> float:
        """Return the inverse of the step on ΦᵀWΦ: n/γ."""
        bound = system.weight * kappa
        if self.step == "bound":
            return bound
        if self.step != "spectral" and system.weight / self.step >= bound:
            return system.weight / self.step
        top = largest_eigenvalue(system.product, len(system.b))
        if self.step == "spectral":
            return top
        most = 2.0 if type(filter).__name__ == "Landweber" else 1.0
        if self.step * top >= most * system.weight:
            raise ValueError(
                f"step={self.step!r} makes the iteration diverge: it must be below "
                f"{most * system.weight / top:.3g}, or left out"
            )
        return system.weight / self.step

    def _walk(
        self,
        normal: Normal,
        cells: Cells,
        filter: Iterative,
        kappa: float,
        steps: Array,
        stopping: Stopping,
        score: Score,
    ) -> Walk:
        """Iterate on the fitted rows of every split, judging each step, until told to stop."""
        most, wanted = int(steps[-1]), set(steps.tolist())
        judges = [Judge(normal, cells, v, score) for v in range(len(cells.fitted))]
        walks = [
            self._stepping(judge.system, filter, kappa, most, "iterations") for judge in judges
        ]
        sums, done = np.zeros((2, 2, 0)), 0
        held = sum(judge.held_weight for judge in judges)
        fitted = sum(judge.system.weight for judge in judges)
        errors, train, ties = np.empty(0), np.empty(0), np.empty(0)
        chosen: int | None = None
        while chosen is None and done < most:
            part: Any = 0.0
            count = min(_CHUNK, most - done)
            judged = [k for k in range(count) if done + k + 1 in wanted]
            for judge, walk in zip(judges, walks, strict=True):
                taken = [next(walk).copy() for _ in range(count)]
                if judged:
                    part = part + judge(np.stack([taken[k] for k in judged], axis=1))
            done += count
            if not judged:
                continue
            sums = np.concatenate([sums, part], axis=2)
            means = np.where(np.isnan(sums[0]), np.inf, sums[0]) / held
            errors, ties = score.finish(means[0]), means[1]
            train = score.finish(sums[1, 0] / fitted)
            chosen = stopping.chosen(steps, errors, ties)
        if chosen is None:
            chosen = stopping.last(steps, errors, ties)
        if not np.isfinite(errors[chosen]):
            raise ValueError(
                "no iteration could be judged: every error is infinite or not a number; give a "
                "smaller step"
            )
        return Walk(errors, train, ties, chosen)

    def _final(self, normal: Normal, cells: Cells, filter: Iterative, kappa: float) -> Iterated:
        system = normal.system(np.ones(len(cells), bool))
        p, n_outputs = system.b.shape
        dtype, t = normal.rows.source.dtype, self.iterations_
        keep = 8 * t * p * n_outputs <= normal.rows.memory // 2
        alphas, intercepts = [], []
        for k, beta in enumerate(self._stepping(system, filter, kappa, t, "final fit")):
            if keep or k == t - 1:
                alpha = host_engine().to_host(normal.map.coefficients(beta))
                alphas.append(alpha.astype(dtype))
                intercepts.append(system.intercept(beta))
        return Iterated(
            alphas[-1], intercepts[-1], False, np.stack(alphas), np.stack(intercepts)
        )

    def _keep(self, model: Solved, *, flat: bool) -> None:
        assert isinstance(model, Iterated)
        self.dual_coef_ = model.coef[:, 0] if flat else model.coef
        self.intercept_ = model.intercept[0] if flat else model.intercept
        kept = len(model.iterates) == self.iterations_
        self._iterates = model.iterates if kept else None
        self._intercepts = model.intercepts if kept else None
