"""What the Nyström regressor and classifier share: centers, and a map of them."""

from typing import Any, ClassVar

import numpy as np

from imparo.data.sources import Source
from imparo.engine import Array
from imparo.estimators.blocks import Stream
from imparo.estimators.cells import Cells
from imparo.estimators.large_base import CG, DIRECT, LargeMachine
from imparo.estimators.map_search import Grid
from imparo.estimators.solve import Solved
from imparo.estimators.subsampled import Centers
from imparo.features import FeatureMap, NystromMap
from imparo.kernels import Kernel
from imparo.paths import Path
from imparo.scores import Score


class NystromMachine(LargeMachine):
    """Base of :class:`~imparo.NystromRegressor` and :class:`~imparo.NystromClassifier`."""

    _size: ClassVar[str] = "n_centers"
    _fixed: ClassVar[tuple[str, ...]] = (
        "kernel", "centers", "intercept", "dtype", "sigma", "penalty", "validation",
    )  # fmt: skip

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        penalty: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = False,
        solver: Any = "auto",
        iterations: Any = "auto",
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
        self.n_centers = n_centers
        self.centers = centers
        self.intercept = intercept
        self.solver = solver
        self.iterations = iterations
        self.validation = validation
        self.memory = memory
        self.device = device
        self.cluster = cluster
        self.precision = precision
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

    def _fit(
        self, source: Source, Y: Array, weight: Array, y: Array, score: Score, *,
        stratify: bool = False,
    ) -> tuple[Solved, Path | None]:  # fmt: skip
        """Select on, and fit to, validated rows, by statistics or by conjugate gradients."""
        parts = self.validation if isinstance(self.validation, int) else 2
        if self._solver(source, max(2, int(parts))) == CG:
            return self._fit_large(source, Y, weight, y, score, stratify=stratify)
        self.solver_ = DIRECT
        self.iterations_ = None
        return super()._fit(source, Y, weight, y, score, stratify=stratify)

    def _most(self, allowed: Array, cells: Cells, memory: int, n_candidates: int) -> int:
        return self._most_centers(allowed, cells, memory, n_candidates)

    def _draw(
        self, source: Source, kernel: Kernel, allowed: Array, m: int, seed: int
    ) -> Centers:
        return self._choose(source, kernel, allowed, m, seed)

    def _draws_by_kernel(self) -> bool:
        return self._choice_needs_kernel()

    def _map(self, kernel: Kernel, drawn: Centers) -> NystromMap:
        return NystromMap(kernel, drawn.X)

    def _grown(self, map: FeatureMap, drawn: Centers) -> NystromMap:
        assert isinstance(map, NystromMap)
        _check_same_centers(drawn, map)
        return map.grow(drawn.X[map.n_given :])

    def _scale(self, kernel: Kernel, drawn: Centers, dtype: np.dtype[Any]) -> Array:
        return kernel.diagonal(drawn.X)

    def _grid_of(self, penalties: Array, sizes: Array) -> Grid:
        return Grid(penalties, sizes)

    def _penalty_of(self, sizes: Array) -> Array:
        return np.log(sizes) / sizes

    def _center_weight(self, drawn: Centers, rows: Stream, cells: Cells) -> float:
        """Return the least weight of a center in the rows of every split, 0 if some lack it."""
        if drawn.rows is None or not cells.fitted[:, cells.of_row[drawn.rows]].all():
            return 0.0
        return float(np.min(rows.weight[drawn.rows], initial=1.0))

    def _set_chosen(self, map: FeatureMap, drawn: Centers, size: int) -> None:
        assert isinstance(map, NystromMap)
        self.centers_ = map.centers[: int(map.columns(size)[0])]
        used = drawn.first(size)
        self.center_rows_, self.center_weights_ = used.rows, used.weights
        self.dropped_centers_ = [d for d in map.dropped if d.center < size]

    def _keep(self, model: Solved, *, flat: bool) -> None:
        self.dual_coef_ = model.coef[:, 0] if flat else model.coef
        self.intercept_ = model.intercept[0] if flat else model.intercept


def _check_same_centers(chosen: Centers, map: NystromMap) -> None:
    """Raise unless the first centers, drawn again, are those of the map."""
    again = chosen.X[map.positions[map.positions < len(chosen.weights)]]
    if abs(again - map.centers[: again.shape[0]]).sum() != 0:
        raise ValueError(
            "the rows that were centers are no longer the same; give the same rows, or fit a "
            "new model"
        )
