"""What the random-feature regressor and classifier share: features, and predictions."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from imparo.data.sources import Source
from imparo.engine import Array, default_engine, memory_for, resolution
from imparo.estimators import grids
from imparo.estimators.cells import Cells
from imparo.estimators.inputs import check_flags, check_rows
from imparo.estimators.map_base import MapMachine
from imparo.estimators.map_search import Grid
from imparo.estimators.predicting import predict_by_map
from imparo.estimators.solve import Solved
from imparo.estimators.transformers import (
    check_features,
    check_sparse,
    rows_to_choose_by,
    takes_sparse,
)
from imparo.features import FeatureMap, RandomMap, as_feature_rule
from imparo.kernels import Kernel, as_kernel

_SMALLEST = 1e-12
# No one needs more; memory sets the limit.
_MOST = 2**31


class RandomFeatureMachine(MapMachine):
    """Base of the random-feature regressor and classifier."""

    _size: ClassVar[str] = "n_features"
    _fixed: ClassVar[tuple[str, ...]] = (
        "kernel", "features", "intercept", "dtype", "sigma", "penalty", "validation",
    )  # fmt: skip

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        penalty: Any = "auto",
        n_features: Any = "auto",
        features: Any = "fourier",
        intercept: bool = False,
        validation: Any = 0.2,
        memory: Any = None,
        device: Any = None,
        cluster: Any = None,
        precision: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.penalty = penalty
        self.n_features = n_features
        self.features = features
        self.intercept = intercept
        self.validation = validation
        self.memory = memory
        self.device = device
        self.cluster = cluster
        self.precision = precision
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

    def _takes_sparse(self, kernel: Kernel) -> bool:
        return takes_sparse(self.features)

    def _checked_kernel(self, source: Source) -> Kernel:
        kernel = as_kernel(self.kernel)
        check_features(self, kernel, source.shape[1])
        check_sparse(next(source.blocks(1))[1], self.features)
        check_flags(self)
        return kernel

    def _most(self, allowed: Array, cells: Cells, memory: int, n_candidates: int) -> int:
        asked = getattr(self, "_wanted", self.n_features)  # a grown model has another number
        step = as_feature_rule(self.features).step
        return self._room(asked, "n_features", cells, memory, n_candidates, _MOST, step)

    def _sizes(self, n: int, most: int) -> Array:
        return grids.feature_counts(
            self.n_features, n, most, as_feature_rule(self.features).step
        )

    def _checked_wanted(self, n: int, most: int) -> int:
        step = as_feature_rule(self.features).step
        return int(grids.feature_counts(self._wanted, n, most, step)[-1])

    def _is_fixed(self, size: Any) -> bool:
        return size == "sqrt" if isinstance(size, str) else np.size(size) == 1

    def _draw(
        self, source: Source, kernel: Kernel, allowed: Array, m: int, seed: int
    ) -> RandomMap:
        rule = as_feature_rule(self.features)
        rows = None
        if rule.needs_rows:
            rows = source.take(rows_to_choose_by(source.shape[0], seed, allowed))
        return rule.draw(kernel, source.shape[1], m, seed, rows)

    def _draws_by_kernel(self) -> bool:
        return True

    def _map(self, kernel: Kernel, drawn: RandomMap) -> RandomMap:
        return drawn

    def _grown(self, map: FeatureMap, drawn: RandomMap) -> RandomMap:
        return drawn

    def _scale(self, kernel: Kernel, drawn: RandomMap, dtype: np.dtype[Any]) -> Array:
        return np.full(1, kernel.bound, dtype)  # K(x, x) is the same for all rows

    def _penalties(self, diagonal: Array) -> Array:
        if isinstance(self.penalty, str) and self.penalty == "auto":
            # Exact halves, which numbers of features that double share factorisations with.
            count = 1 + int(np.log2(1 / max(_SMALLEST, resolution(diagonal.dtype))))
            return float(diagonal[0]) * 0.5 ** np.arange(count)
        return super()._penalties(diagonal)

    def _grid_of(self, penalties: Array, sizes: Array) -> Grid:
        return Grid(penalties, sizes, scale=sizes.astype(np.float64))

    def _penalty_of(self, sizes: Array) -> Array:
        return 1.0 / sizes

    def _set_chosen(self, map: FeatureMap, drawn: RandomMap, size: int) -> None:
        self.map_ = drawn.first(size)

    def _keep(self, model: Solved, *, flat: bool) -> None:
        # Statistics are of ψ; coefficients belong to ψ/√m, which ``map_.transform`` gives.
        coef = model.coef * model.coef.dtype.type(np.sqrt(len(self.map_)))
        self.feature_coef_ = coef[:, 0] if flat else coef
        self.intercept_ = model.intercept[0] if flat else model.intercept

    def _decision(self, X: Any) -> Array:
        """Return the (n, T) matrix of predictions."""
        check_is_fitted(self, "intercept_")
        coef = self.feature_coef_
        coef = coef.reshape(len(coef), np.size(self.intercept_))
        X = validate_data(
            self, check_rows(X), accept_sparse="csr", dtype=coef.dtype, order="C", reset=False
        )
        F = predict_by_map(self.map_, X, coef, memory_for(self.memory, default_engine()))
        F += np.asarray(self.intercept_, F.dtype)
        return F
