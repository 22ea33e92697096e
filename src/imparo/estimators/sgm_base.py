"""What the stochastic gradient regressor and classifier share: from parameters to a model."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from imparo.data.sources import Source
from imparo.engine import (
    Array,
    computing_on,
    default_engine,
    host_engine,
    memory_for,
    parse_memory,
)
from imparo.errors import SelectionWarning, warn_user
from imparo.estimators.candidates import Candidate
from imparo.estimators.cells import Cells
from imparo.estimators.devices import on_host
from imparo.estimators.inputs import check_rows, used_rows
from imparo.estimators.predicting import predict_by_map, predict_by_points
from imparo.estimators.sgm_parameters import EXACT, LINEAR, NYSTROM, SGMParameters
from imparo.estimators.sgm_rows import FeatureRows, PointRows
from imparo.estimators.sgm_steps import steps_of
from imparo.estimators.sgm_training import (
    Task,
    TooLargeError,
    Walk,
    check_memory,
    passed,
)
from imparo.estimators.solve import Solved
from imparo.estimators.splits import Splits, make_splits
from imparo.features import FeatureMap, NystromMap, RandomMap
from imparo.kernels import Kernel, as_kernel
from imparo.losses import Square
from imparo.paths import Path
from imparo.scores import MeanLoss, RootMeanSquare, Score
from imparo.sgm import State

_INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Trained(Solved):
    """A model with the state that learning goes on from."""

    state: State

    def scaled(self, scale: float, shift: Array) -> Self:
        """Return the model of outputs scale·Y + shift."""
        state = self.state.rescaled(scale, shift)
        return replace(super().scaled(scale, shift), state=state)


@dataclass(frozen=True)
class Ready:
    """A kernel and the rows as sweeps take them."""

    candidate: Candidate
    map: FeatureMap | None
    rows: FeatureRows | PointRows


class SGMMachine(SGMParameters):
    """Base of :class:`~imparo.SGMRegressor` and :class:`~imparo.SGMClassifier`."""

    epochs_: float | None
    stopped_: str | None

    def _rows(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, Any]:
        return super()._rows(on_host(X), y, sample_weight, **checks)

    def _fit(
        self, source: Source, Y: Array, weight: Array, y: Array, score: Score, *,
        stratify: bool = False,
    ) -> tuple[Solved, Path | None]:  # fmt: skip
        """Select on, and fit to, validated rows; set what does not depend on the outputs."""
        loss, kernel = self._checked_loss(), as_kernel(self.kernel)
        self._check_rest()
        validation, rng = self._checked_validation(), check_random_state(self.random_state)
        unit, shift = self.__dict__.pop("_units", (1.0, np.zeros(Y.shape[1])))
        before = self._before(source, Y, unit, shift)
        kind = self._checked_kind(kernel, source)
        if before is not None:
            kind = self.features_
        # Drawn before the splits: the same seed gives the same features with and without.
        seed, order = (int(s) for s in rng.randint(2**31 - 1, size=2))
        kept, weight = used_rows(weight, Y.dtype)
        if isinstance(score, RootMeanSquare) and not isinstance(loss, Square):
            score = MeanLoss(loss, unit)
        candidates = self._kernels(kernel, source, kept, before)
        bound = self._bound(candidates[0].kernel, source, kept)
        steps = steps_of(
            self.step, self.decay, self.beta, loss, bound, Y[kept], unit,
            averaged=bool(self.average),
        )  # fmt: skip
        checks = self._judgements(steps, len(kept))
        single = len(steps) == len(candidates) == len(checks) == 1
        method, splits = "", Splits()
        if not single:
            method, splits = make_splits(validation, kept, y, rng, stratify=stratify)
        allowed = Cells.of(splits, kept, len(Y)).may_be_centers()
        if before is None:
            candidates = self._learned(candidates, source, Y, weight, allowed, seed)
        problem = Task(
            Y=Y,
            weight=weight.astype(np.float64) / np.mean(weight[kept], dtype=np.float64),
            kept=kept,
            loss=loss,
            unit=unit,
            steps=steps,
            sampling=self.sampling,
            batch=int(self.batch_size),
            averaged=bool(self.average),
            intercept=bool(self.intercept),
            checks=int(self.checks_per_epoch),
            patience=self.patience,
            progress=self.progress,
        )
        positions = [(kept[a], kept[b]) for a, b in splits]
        passes = -(-int(checks[-1]) // problem.checks) * max(1, len(splits))
        engine = default_engine()

        def ready(candidate: Candidate) -> Ready:
            with computing_on(engine):
                if before is None:
                    map = self._drawn_map(source, candidate.kernel, kind, allowed, seed)
                else:
                    map = self.map_
                rows = self._as_sweep_rows(
                    source, candidate.kernel, map, kind, passes, max(1, len(splits)),
                    min(2, len(candidates)),
                )  # fmt: skip
            copies = (max(1, len(splits)) + 1) * (2 if self.average else 1)
            check_memory(
                len(steps), Y.shape[1], rows.n_features, Y.itemsize, copies,
                parse_memory(self.memory),
            )  # fmt: skip
            return Ready(candidate, map, rows)

        # Steps wait for each other: they are taken on the host, whatever makes the features.
        with computing_on(host_engine()):
            if single:
                found, path = ready(candidates[0]), None
                state = passed(
                    problem, found.rows, steps.schedule(len(kept)), int(checks[0]),
                    np.random.RandomState(order), before,
                )  # fmt: skip
                self.stopped_, check = "passes", int(checks[0])
            else:
                found, state, path, check = self._search(
                    problem, candidates, ready, positions, score, method, checks, order,
                    before,
                )  # fmt: skip
        whole, part = divmod(check, problem.checks)
        self.epochs_ = whole if part == 0 else check / problem.checks
        self._set_features(kind, found.map, found.candidate)
        return self._trained(kind, found, state), path

    def _search(
        self, problem: Task, candidates: list[Candidate], ready: Any, splits: Splits,
        score: Score, method: str, checks: Array, order: int, before: State | None,
    ) -> tuple[Ready, State, Path, int]:  # fmt: skip
        """Return what is best, its state on all rows, the path and the number of checks."""
        walks: list[Walk] = []
        best: tuple[Ready, Walk] | None = None
        stopped = ""
        try:
            for candidate in candidates:
                found = ready(candidate)
                walk = Walk(problem, found.rows, splits, score, before, order)
                walks.append(walk)
                walk.run(checks)
                if best is None:
                    best = found, walk
                elif walk.is_better_than(best[1]):
                    best[1].forget()
                    best = found, walk
                else:
                    walk.forget()
                    del found
                stopped = walk.stopped
        except KeyboardInterrupt:
            reached = bool(walks) and walks[-1].best is not None
            if reached and (best is None or walks[-1].is_better_than(best[1])):
                best = found, walks[-1]
            if best is None:
                raise
            stopped = _INTERRUPTED
        assert best is not None
        found, walk = best
        if walk.best is None:
            raise ValueError(
                "no step could be judged: every one overflowed; give smaller steps, or scale "
                "the columns of X"
            )
        path = self._path(problem, [c.sigma for c in candidates], walks, checks, score, method)
        state = walk.best.state
        if stopped != _INTERRUPTED:
            try:
                state = walk.finish(np.random.RandomState(order), before)
                self._warn_of_the_last_pass(stopped, walk.best.check + 1, checks)
            except KeyboardInterrupt:
                stopped = _INTERRUPTED
            except TooLargeError as error:
                warn_user(
                    f"{error}; the model that was judged, which has not seen the rows held "
                    "out, is kept",
                    SelectionWarning,
                )
        self.stopped_ = stopped
        return found, state, path, walk.best.check + 1

    def _warn_of_the_last_pass(self, stopped: str, check: int, checks: Array) -> None:
        automatic = isinstance(self.epochs, str) and self.epochs == "auto"
        if automatic and stopped == "passes" and check == checks[-1]:
            warn_user(
                f"{check // int(self.checks_per_epoch)} passes, the most that were made, are "
                "the best; give epochs=... to make more, or larger steps",
                SelectionWarning,
            )

    def _path(
        self, problem: Task, sigmas: list[Any], walks: list[Walk], checks: Array,
        score: Score, method: str,
    ) -> Path:  # fmt: skip
        count = max(walk.errors.shape[1] for walk in walks)
        axes: dict[str, Array] = {}
        if len(sigmas) > 1:
            axes["sigma"] = np.array(sigmas)
        axes |= problem.steps.axes
        if len(checks) > 1:
            axes["epochs"] = checks[:count] / problem.checks
        shape = tuple(len(values) for values in axes.values())

        def joined(name: str) -> Array:
            tables = np.full((len(sigmas), len(problem.steps), count), np.nan)
            for table, walk in zip(tables, walks, strict=False):
                values = getattr(walk, name)
                table[:, : values.shape[1]] = values
            return tables.reshape(shape)

        losses = joined("losses")
        # Of models that are as good, the one that was met first is in use.
        sigma, candidate, check = np.indices((len(sigmas), len(problem.steps), count))
        keys = candidate.ravel(), check.ravel(), sigma.ravel(), losses.ravel()
        ranks = np.argsort(np.lexsort(keys)).reshape(shape)
        return Path(
            errors=joined("errors"),
            axes=axes,
            metric=score.name,
            method=method,
            train_errors=np.full(shape, np.nan),
            tie_breaker=ranks.astype(np.float64),
            losses=losses,
        )

    # What a fitted model holds.

    def _as_sweep_rows(
        self, source: Source, kernel: Kernel, map: FeatureMap | None, kind: str, passes: int,
        n_sweeps: int = 1, n_held: int = 1,
    ) -> FeatureRows | PointRows:  # fmt: skip
        memory = parse_memory(self.memory)
        if kind != EXACT:
            return FeatureRows(source, map, memory // n_held, passes)
        points = getattr(self, "_points", None)
        return PointRows(source, kernel, points, memory, passes, n_sweeps, n_held)

    def _before(self, source: Source, Y: Array, unit: float, shift: Array) -> State | None:
        """Return the state that a warm start begins with, in the units of Y."""
        if not self.warm_start or not hasattr(self, "intercept_"):
            self._forget()
            return None
        state: State = self._state
        if state.n_outputs != Y.shape[1] or self._n_columns != source.shape[1]:
            raise ValueError(
                f"the model was fitted to {self._n_columns} columns and {state.n_outputs} "
                f"outputs and these are {source.shape[1]} and {Y.shape[1]}; give the same, or "
                "warm_start=False"
            )
        state = state.take(np.array([self._best]))
        if self.intercept and state.intercept is None:
            none = np.zeros(state.n_outputs)
            state = replace(state, intercept=none, sums=none)
        return state.rescaled(1 / unit, -shift / unit)

    def _forget(self) -> None:
        """Remove what an earlier fit found."""
        for name in ("coef_", "dual_coef_", "feature_coef_", "X_fit_", "_points", "map_"):
            self.__dict__.pop(name, None)

    def _set_features(self, kind: str, map: FeatureMap | None, candidate: Candidate) -> None:
        self.features_, self.map_ = kind, map
        self.kernel_, self.sigma_ = candidate.kernel, candidate.sigma

    def _trained(self, kind: str, found: Ready, state: State) -> Trained:
        if kind == EXACT:
            assert isinstance(found.rows, PointRows)
            # A warm start may have been given the same rows again.
            merge = found.rows.n_before > 0
            self._points, state = found.rows.used(state, merge=merge)
        return self._model(kind, state, 0)

    def _model(self, kind: str, state: State, best: int) -> Trained:
        coef, intercept = state.solution(best)
        self._best = best
        self.step_ = float(state.schedule.eta[best])
        self.decay_ = float(state.schedule.theta[best])
        self.n_steps_ = state.steps
        return Trained(coef, intercept, kind == LINEAR, state)

    def _keep(self, model: Solved, *, flat: bool) -> None:
        assert isinstance(model, Trained)
        coef, intercept = model.coef, model.intercept
        self._state, self._n_columns = model.state, self.n_features_in_
        if self.features_ == LINEAR:
            self.coef_ = coef[:, 0] if flat else coef.T
        elif self.features_ == EXACT:
            self.X_fit_ = self._points
            self.dual_coef_ = coef[:, 0] if flat else coef
        else:
            self.feature_coef_ = coef[:, 0] if flat else coef
        self.intercept_ = intercept[0] if flat else intercept

    def _decision(self, X: Any) -> Array:
        """Return the (n, T) matrix of predictions."""
        check_is_fitted(self, "intercept_")
        kind, memory = self.features_, memory_for(self.memory, default_engine())
        name = {LINEAR: "coef_", EXACT: "dual_coef_"}.get(kind, "feature_coef_")
        coef = getattr(self, name)
        X = validate_data(
            self, check_rows(X), accept_sparse="csr", dtype=coef.dtype, order="C", reset=False
        )
        T = np.size(self.intercept_)
        if kind == LINEAR:
            F = default_engine().product(X, np.atleast_2d(coef).T)
        elif kind == EXACT:
            F = predict_by_points(self.kernel_, X, self.X_fit_, coef.reshape(-1, T), memory)
        elif kind == NYSTROM:
            assert isinstance(self.map_, NystromMap)
            # K(x, X̃)T⁻¹w: T is applied to the weights, not to every row.
            coef = self.map_.coefficients(coef.reshape(-1, T)).astype(coef.dtype)
            F = predict_by_points(self.kernel_, X, self.map_.centers, coef, memory)
        else:
            assert isinstance(self.map_, RandomMap)
            F = predict_by_map(self.map_, X, coef.reshape(-1, T), memory)
        F += np.asarray(self.intercept_, F.dtype)
        return F
