"""What the exact regressor and classifier share: from parameters to a fitted model."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from imparo.engine import Array, default_engine, memory_for, parse_memory
from imparo.errors import SelectionWarning, warn_user
from imparo.estimators import grids
from imparo.estimators.candidates import (
    candidates_of,
    forget_relevance,
    is_learned,
    learned_candidates,
)
from imparo.estimators.devices import on_host
from imparo.estimators.inputs import (
    check_dtype,
    check_flags,
    check_kernel_matrix,
    check_rows,
    used_rows,
)
from imparo.estimators.predicting import predict_by_points
from imparo.estimators.problems import Rows, make_problem
from imparo.estimators.search import Search, best_candidate
from imparo.estimators.solve import Solved, solve
from imparo.estimators.splits import Splits, check_validation, make_splits
from imparo.filters import Filter, as_filter
from imparo.kernels import Kernel, Linear, Precomputed, as_kernel
from imparo.paths import Path
from imparo.scores import Score


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
        device: Any = None,
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
        self.device = device
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

    def _rows(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, Any]:
        dtype = check_dtype(self.dtype)
        X, y = validate_data(
            self,
            check_rows(on_host(X)),
            y,
            accept_sparse="csr",
            dtype=dtype,
            order="C",
            **checks,
        )
        return X, y, sample_weight

    def _fit(
        self, X: Any, Y: Array, weight: Array, y: Array, score: Score, *, stratify: bool = False
    ) -> tuple[Solved, Path | None]:
        """Select on, and fit to, validated rows; set what does not depend on the outputs.

        ``y`` is as the user gave it, for splitters and to ``stratify`` by.
        """
        memory, rng = parse_memory(self.memory), check_random_state(self.random_state)
        filter, kernel = as_filter(self.filter), as_kernel(self.kernel)
        levels = {n: getattr(self, n) for n in ("penalty", "components", "iterations")}
        grids.check_levels(filter, self.filter, levels)
        validation = check_validation(self.validation, filter)
        check_flags(self)
        kernel.check_rows(X)
        if isinstance(kernel, Precomputed):
            check_kernel_matrix(X)
        kept, weight = used_rows(weight, Y.dtype)
        rows = Rows(X, Y, weight).take(kept, kernel)
        forget_relevance(self)
        candidates = candidates_of(self.sigma, kernel, lambda: rows.X)
        learns = kernel.needs_sigma and is_learned(self.sigma)
        seed = int(rng.randint(2**31 - 1)) if learns else 0
        grid = self._grid(filter, candidates[0].kernel, rows)
        path: Path | None = None
        splits: Splits = []
        index: tuple[int, ...] = (0,)
        single = len(candidates) == len(grid) == 1
        if not single:
            method, splits = make_splits(validation, kept, y, rng, stratify=stratify)
        if learns:
            candidates = learned_candidates(
                self, kernel, lambda part: rows.X[part], _not_held_out(splits, len(rows)),
                rows.Y, rows.weight, seed, memory,
            )  # fmt: skip
        if single:
            problem = make_problem(rows, candidates[0].kernel, self.intercept, memory)
            model = solve(problem, filter, grid[0])
        else:
            search = Search(rows, filter, grid, method, splits, score, self.intercept, memory)
            path, model = search.run(candidates, self.progress)
            index = path.best_index
            self._warn_of_the_last_step(filter, grid, index[-1])
        chosen = candidates[best_candidate(index)]
        self.kernel_, self.sigma_ = chosen.kernel, chosen.sigma
        for name in levels:
            value = grid[index[-1]].item() if name == filter.parameter else None
            setattr(self, f"{name}_", value)
        self.form_ = "primal" if model.primal else "dual"
        weights_suffice = isinstance(kernel, Linear | Precomputed)
        self.X_fit_ = None if weights_suffice else rows.X.copy()
        if isinstance(kernel, Precomputed):
            coef = np.zeros((len(Y), Y.shape[1]), Y.dtype)
            coef[kept] = model.coef
            model = Solved(coef, model.intercept, model.primal)
        return model, path

    def _grid(self, filter: Filter, kernel: Kernel, rows: Rows) -> Array:
        if filter.parameter == "penalty":
            return grids.penalties(self.penalty, kernel.diagonal(rows.X))
        if filter.parameter == "components":
            most = min(rows.X.shape) if isinstance(kernel, Linear) else len(rows)
            return grids.components(self.components, most)
        return grids.iterations(self.iterations, filter)

    def _warn_of_the_last_step(self, filter: Filter, grid: Array, index: int) -> None:
        automatic = filter.parameter == "iterations" and isinstance(self.iterations, str)
        if automatic and index == len(grid) - 1:
            warn_user(
                f"{grid[-1]} iterations, the most that were tried, are the best; give "
                "iterations=... to try more, or use filter='tikhonov'",
                SelectionWarning,
            )

    def _keep(self, model: Solved, *, flat: bool) -> None:
        """Set coefficients as scikit-learn's linear and kernel models have them."""
        coef, intercept = model.coef, model.intercept
        for stale in ("coef_", "dual_coef_"):
            self.__dict__.pop(stale, None)
        if isinstance(self.kernel_, Linear):
            self.coef_ = coef[:, 0] if flat else coef.T
        else:
            self.dual_coef_ = coef[:, 0] if flat else coef
        self.intercept_ = intercept[0] if flat else intercept

    def _decision(self, X: Any) -> Array:
        """Return the (n, T) matrix of predictions."""
        check_is_fitted(self, "intercept_")
        coef = self.coef_.T if isinstance(self.kernel_, Linear) else self.dual_coef_
        X = validate_data(
            self, check_rows(X), accept_sparse="csr", dtype=coef.dtype, order="C", reset=False
        )
        coef = coef.reshape(len(coef), -1)
        if self.X_fit_ is None:  # weights of the columns
            F = default_engine().product(X, coef)
        else:
            memory = memory_for(self.memory, default_engine())
            F = predict_by_points(self.kernel_, X, self.X_fit_, coef, memory)
        F += np.asarray(self.intercept_, F.dtype)
        return F


def _not_held_out(splits: Splits, n: int) -> Array:
    """Return the rows that some split fits; all where there are no splits."""
    if not splits:
        return np.arange(n)
    return np.unique(np.concatenate([fitted for fitted, _ in splits]))
