"""What the exact regressor and classifier share: kernel, filter, selection, solution."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from imparo.engine import Array, parse_memory
from imparo.estimators import grids
from imparo.estimators.problems import Rows, make_problem, predict_in_blocks
from imparo.estimators.solve import Solved, solve, solve_by_spectrum
from imparo.filters import Filter, Tikhonov, as_filter
from imparo.kernels import Kernel, Linear, Precomputed, as_kernel, widths
from imparo.paths import Path
from imparo.progress import track
from imparo.scores import RootMeanSquare, Score, Scores
from imparo.selection import (
    Split,
    generalized_cross_validation,
    held_out,
    leave_one_out,
)


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method leave the object as it was if it raises, Ctrl-C included."""

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded


class ExactMachine(BaseEstimator):
    """Base of :class:`~imparo.KernelRegressor` and :class:`~imparo.KernelClassifier`."""

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        filter: Any = "tikhonov",
        penalty: Any = "auto",
        components: Any = "auto",
        iterations: Any = "auto",
        intercept: bool = False,
        validation: Any = "auto",
        memory: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.filter = filter
        self.penalty = penalty
        self.components = components
        self.iterations = iterations
        self.intercept = intercept
        self.validation = validation
        self.memory = memory
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = as_kernel(self.kernel)
        except (TypeError, ValueError):
            kernel = Linear()  # tags are asked for before fit can refuse the kernel
        tags.input_tags.sparse = kernel.sparse
        tags.input_tags.pairwise = isinstance(kernel, Precomputed)
        return tags

    def _validated(self, X: Any, y: Any, **checks: Any) -> tuple[Any, Any]:
        dtype: Any = [np.float64, np.float32]
        if self.dtype is not None:
            dtype = np.dtype(self.dtype)
            if dtype not in (np.float32, np.float64):
                raise ValueError(f"dtype={self.dtype!r} must be float32, float64 or None")
        return validate_data(
            self, _numeric(X), y, accept_sparse="csr", dtype=dtype, order="C", **checks
        )

    def _fit(self, X: Any, Y: Array, weight: Array, y: Any, score: Score) -> Self:
        """Select on, and fit to, validated rows; ``y`` holds classes to stratify by."""
        memory, rng = parse_memory(self.memory), check_random_state(self.random_state)
        filter, kernel = as_filter(self.filter), as_kernel(self.kernel)
        if isinstance(kernel, Precomputed) and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel must be a square matrix, not of shape {X.shape}"
            )
        kept = _positive(weight)
        rows = Rows(X, Y, weight.astype(Y.dtype))
        if len(kept) < len(rows):
            rows = rows.take(kept, kernel)
        candidates = self._candidates(kernel, rows, rng)
        grid = self._grid(filter, candidates[0][1], rows)
        if len(candidates) == len(grid) == 1:
            sigma, kernel = candidates[0]
            by_cholesky = isinstance(filter, Tikhonov) and grid[0] > 0
            problem = make_problem(
                rows, kernel, self.intercept, memory, factor_only=by_cholesky
            )
            path, model, value = None, solve(problem, filter, grid[0]), grid[0]
        else:
            method, splits = grids.splits(
                self.validation, filter, len(rows), None if y is None else y[kept], rng
            )
            work = _Work(rows, filter, grid, splits, score, bool(self.intercept), memory)
            path, model = self._select(work, candidates, method)
            index = path.best_index
            sigma, kernel = candidates[index[0] if len(index) > 1 else 0]
            value = grid[index[-1]]
        self._keep(model, rows, kernel, sigma, path)
        for name in ("penalty", "components", "iterations"):
            setattr(self, f"{name}_", value.item() if filter.parameter == name else None)
        if isinstance(kernel, Precomputed):
            self.coef_ = np.zeros((len(weight), Y.shape[1]), Y.dtype)
            self.coef_[kept] = model.coef
        return self

    def _candidates(
        self, kernel: Kernel, rows: Rows, rng: np.random.RandomState
    ) -> list[tuple[float | None, Kernel]]:
        if not kernel.needs_sigma:
            if not isinstance(self.sigma, str):
                raise ValueError(
                    f"sigma={self.sigma!r} has no effect on {kernel!r}, which has no width to "
                    "set; leave sigma out, or give the kernel without its width"
                )
            return [(getattr(kernel, "sigma", None), kernel)]
        found = widths(self.sigma, kernel, rows.X, rng)
        return [(float(s), kernel.with_sigma(float(s))) for s in found]

    def _grid(self, filter: Filter, kernel: Kernel, rows: Rows) -> Array:
        if filter.parameter == "penalty":
            return grids.penalties(self.penalty, kernel.diagonal(rows.X))
        if filter.parameter == "components":
            linear = isinstance(kernel, Linear)
            return grids.components(self.components, min(rows.X.shape) if linear else len(rows))
        return grids.iterations(self.iterations, filter)

    def _select(
        self, work: "_Work", candidates: list[tuple[float | None, Kernel]], method: str
    ) -> tuple[Path, Solved]:
        """Return the path over all candidates and the model at its best point."""
        total = len(candidates) * max(1, len(work.splits))
        ticks = track(range(total), total, f"{method} selection", self.progress)
        scores: list[Scores] = []
        model = None
        for i, (_, kernel) in enumerate(candidates):
            if work.splits:
                scores.append(work.on_splits(kernel, ticks))
                continue
            next(ticks)
            problem = work.problem(kernel)
            scores.append(work.in_closed_form(problem, method))
            path = work.path(candidates[: i + 1], scores, method)
            # The spectrum is at hand now and not later: solve while this one leads.
            if len(candidates) == 1 or path.best_index[0] == i:
                value = work.grid[path.best_index[-1]]
                model = solve_by_spectrum(problem, work.filter, value)
        for _ in ticks:
            pass
        path = work.path(candidates, scores, method)
        if model is None:
            index = path.best_index
            _, kernel = candidates[index[0] if len(index) > 1 else 0]
            model = solve(work.problem(kernel), work.filter, work.grid[index[-1]])
        return path, model

    def _keep(
        self,
        model: Solved,
        rows: Rows,
        kernel: Kernel,
        sigma: float | None,
        path: Path | None,
    ) -> None:
        self.kernel_, self.sigma_, self.path_ = kernel, sigma, path
        self.form_ = "primal" if model.primal else "dual"
        self.coef_, self.intercept_ = model.coef, model.intercept
        weights_suffice = isinstance(kernel, Linear | Precomputed)
        self.X_fit_ = None if weights_suffice else rows.X.copy()

    def _decision(self, X: Any) -> Array:
        """Return the (n, T) matrix of predictions."""
        check_is_fitted(self, "coef_")
        X = validate_data(
            self,
            _numeric(X),
            accept_sparse="csr",
            dtype=self.coef_.dtype,
            order="C",
            reset=False,
        )
        return predict_in_blocks(
            X,
            self.kernel_,
            self.X_fit_,
            self.coef_,
            self.intercept_,
            parse_memory(self.memory),
        )


class _Work:
    """Rows, filter and grid of one selection, and the errors of a kernel on them."""

    def __init__(
        self, rows: Rows, filter: Filter, grid: Array, splits: grids.Splits, score: Score,
        intercept: bool, memory: int,
    ) -> None:  # fmt: skip
        self.rows, self.filter, self.grid = rows, filter, grid
        self.splits, self.score = splits, score
        self.intercept, self.memory = intercept, memory

    def problem(self, kernel: Kernel, part: Array | None = None) -> Any:
        rows = self.rows if part is None else self.rows.take(part, kernel)
        return make_problem(rows, kernel, self.intercept, self.memory)

    def levels(self, problem: Any) -> Array:
        return self.grid * problem.total if self.filter.parameter == "penalty" else self.grid

    def on_splits(self, kernel: Kernel, ticks: Iterator[int]) -> Scores:
        def parts() -> Iterator[Split]:
            for fitted, held in self.splits:
                next(ticks)
                X = self.rows.held_out(held, fitted, kernel)
                Y, weight = self.rows.Y[held], self.rows.weight[held]
                yield Split(self.problem(kernel, fitted), X, Y, weight)

        return held_out(parts(), self.filter, self.levels, self.score)

    def in_closed_form(self, problem: Any, method: str) -> Scores:
        leave_out = method == "leave-one-out"
        errors = leave_one_out if leave_out else generalized_cross_validation
        return errors(problem, self.filter, self.levels(problem), self.score)

    def path(
        self,
        candidates: list[tuple[float | None, Kernel]],
        scores: list[Scores],
        method: str,
    ) -> Path:
        axes: dict[str, Array] = {}
        if len(candidates) > 1:
            axes["sigma"] = np.array([sigma for sigma, _ in candidates])
        axes[self.filter.parameter] = self.grid
        shape = tuple(len(values) for values in axes.values())
        squares = method == "generalized cross-validation"
        return Path(
            errors=np.stack([s.errors for s in scores]).reshape(shape),
            axes=axes,
            metric=RootMeanSquare().name if squares else self.score.name,
            method=method,
            train_errors=np.stack([s.train_errors for s in scores]).reshape(shape),
            tie_breaker=np.stack([s.tie_breaker for s in scores]).reshape(shape),
        )


def _positive(weight: Array) -> Array:
    """Return the positions of the rows that count."""
    if not (weight >= 0).all():
        raise ValueError("sample_weight must hold numbers from 0 on")
    kept = np.flatnonzero(weight > 0)
    if not len(kept):
        raise ValueError("sample_weight is 0 for every row; give some row a weight")
    return kept


def _numeric(X: Any) -> Any:
    """Return X, or raise one clear sentence if it is text."""
    if isinstance(X, list | tuple | np.ndarray) and not sparse.issparse(X):
        array = np.asarray(X) if not isinstance(X, np.ndarray) else X
        if array.dtype.kind in "US" or (
            array.dtype.kind == "O" and any(isinstance(v, str) for v in array.ravel()[:1000])
        ):
            raise ValueError(
                "X holds text and must hold numbers, not strings; encode text columns first, "
                "for instance with OneHotEncoder"
            )
    return X
