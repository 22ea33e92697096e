"""What the Nyström regressor and classifier share: from parameters to a fitted model."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from imparo.data.sources import Source
from imparo.engine import Array
from imparo.estimators import grids
from imparo.estimators.cells import Cells
from imparo.estimators.inputs import used_rows
from imparo.estimators.nystrom_search import Fitted, Grid, judge, solve
from imparo.estimators.passes import Stream, accumulate
from imparo.estimators.solve import Solved
from imparo.estimators.splits import GCV, Splits, make_splits
from imparo.estimators.subsampled import Centers, Subsampled
from imparo.features import NystromMap
from imparo.kernels import Kernel
from imparo.paths import Path
from imparo.scores import RootMeanSquare, Score, Scores

# Parameters that a model cannot grow on without.
_FIXED = ("kernel", "centers", "intercept", "dtype", "sigma", "penalty", "validation")
# Columns by which the rows of a fitted model are known again.
_COMPARED = 8
# Penalties of "auto": each half of the one before.
_PENALTIES = 41


class NystromMachine(Subsampled):
    """Base of :class:`~imparo.NystromRegressor` and :class:`~imparo.NystromClassifier`."""

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        penalty: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = False,
        validation: Any = 0.2,
        memory: Any = None,
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
        self.validation = validation
        self.memory = memory
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

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
        """Select on, and fit to, validated rows; set what does not depend on the outputs."""
        kernel, rng = self._checked_kernel(source), check_random_state(self.random_state)
        validation = self._checked_validation()
        # Drawn before the splits: the same seed gives the same centers with and without.
        seed = int(rng.randint(2**31 - 1))
        kept, weight = used_rows(weight, Y.dtype)
        candidates = self._candidates(kernel, source, kept)
        single = self._is_single(len(candidates))
        method = ""
        splits: Splits = []
        if not single:
            method, splits = make_splits(validation, kept, y, rng, stratify=stratify)
        cells = Cells.of(splits, kept, len(y))
        rows = self._as_rows(source, Y, weight, cells)
        allowed = cells.may_be_centers()
        most = self._most_centers(allowed, cells, rows.memory, len(candidates))
        sizes = self._sizes(len(kept), most)
        found: list[Scores] = []
        best: tuple[Fitted, Centers, int] | None = None
        fitted: Fitted | None = None
        path: Path | None = None
        for i, (_, candidate) in enumerate(candidates):
            if i == 0 or self._choice_needs_kernel():
                chosen = self._choose(source, candidate, allowed, int(sizes[-1]), seed)
            if i == 0:
                grid = self._grid(candidate, chosen, sizes)
            fitted = None  # not two sets of statistics besides the best
            map = NystromMap(candidate, chosen.X)
            smallest = float(grid.penalties.min())
            fitted = Fitted.to(rows, map, smallest, _center_weight(chosen, rows, cells))
            if not single:
                found.append(judge(fitted, rows, cells, grid, score, self.intercept))
                sigmas = [sigma for sigma, _ in candidates[: i + 1]]
                path = self._path(sigmas, grid, found, score, method)
            if path is None or _candidate(path) == i:
                best = fitted, chosen, i
        assert best is not None
        fitted, chosen, i = best
        self.sigma_, self.kernel_ = candidates[i]
        parameters = {name: getattr(self, name) for name in _FIXED}
        fitted = replace(fitted, cells=cells, seed=seed, parameters=parameters)
        return self._chosen_model(fitted, chosen, rows, grid, path), path

    def _grow(
        self,
        source: Source,
        Y: Array,
        weight: Array,
        y: Array,
        score: Score,
        *,
        stratify: bool = False,
        penalties: Array | None = None,
    ) -> tuple[Solved, Path | None]:
        """Add centers to a fitted model, up to ``self._wanted`` in all.

        The path is judged at its own penalties, or at others where they are given.
        """
        fitted, cells, seed = self.statistics_, self.statistics_.cells, self.statistics_.seed
        assert cells is not None
        self._check_unchanged()
        kept, weight = used_rows(weight, Y.dtype)
        rows = self._as_rows(source, Y, weight, cells)
        _check_same_rows(rows, fitted, cells)
        allowed = cells.may_be_centers()
        most = self._most_centers(allowed, cells, rows.memory)
        before, old = fitted.map.n_given, self.path_
        wanted = int(grids.sizes(self._wanted, len(kept), most)[-1])
        chosen = self._choose(source, self.kernel_, allowed, wanted, seed)
        _check_same_centers(chosen, fitted.map)
        wanted = len(chosen.weights)
        if wanted <= before:
            raise ValueError(
                f"the model has {before:,} centers, and {wanted:,} were asked for or can be "
                "had; give a larger number"
            )
        sizes = [wanted] if old is None else np.unique([*old.sizes, wanted])
        grid = self._grid(self.kernel_, chosen, np.asarray(sizes))
        if old is not None and old.penalties is not None:
            values = old.penalties if penalties is None else penalties
            shape = len(values), len(grid.sizes)
            grid = Grid(np.broadcast_to(values[:, None], shape), grid.sizes)
        map = fitted.map.grow(chosen.X[before:])
        smallest = float(grid.penalties.min())
        fitted = fitted.grown(rows, map, smallest, _center_weight(chosen, rows, cells))
        parameters = self.statistics_.parameters
        fitted = replace(fitted, cells=cells, seed=seed, parameters=parameters)
        path = None
        if old is not None:
            scores = judge(fitted, rows, cells, grid, score, self.intercept)
            path = self._path([self.sigma_], grid, [scores], score, old.method)
        return self._chosen_model(fitted, chosen, rows, grid, path), path

    def _check_unchanged(self) -> None:
        """Raise if a parameter that the statistics depend on is not what it was in fit."""
        for name, before in self.statistics_.parameters.items():
            if not _same(getattr(self, name), before):
                raise ValueError(
                    f"{name} was changed since fit, and grow goes on with what it was; put it "
                    "back, or fit again"
                )

    def _chosen_model(
        self, fitted: Fitted, chosen: Centers, rows: Stream, grid: Grid, path: Path | None
    ) -> Solved:
        i, s = (0, 0) if path is None else _point(path)
        self.penalty_ = float(grid.penalties[i, s])
        self.n_centers_ = min(int(grid.sizes[s]), fitted.map.n_given)
        columns = int(fitted.map.columns(self.n_centers_)[0])
        self.centers_ = fitted.map.centers[:columns]
        used = chosen.first(self.n_centers_)
        self.center_rows_, self.center_weights_ = used.rows, used.weights
        self.dropped_centers_ = [d for d in fitted.map.dropped if d.center < self.n_centers_]
        self.statistics_ = fitted
        assert fitted.cells is not None
        return solve(
            fitted, rows, fitted.cells, self.penalty_, self.n_centers_, bool(self.intercept)
        )

    def _is_single(self, n_candidates: int) -> bool:
        """Return whether there is nothing to select."""
        given = isinstance(self.penalty, str) and self.penalty == "n_centers"
        if not given:
            given = not isinstance(self.penalty, str) and np.size(self.penalty) == 1
        fixed = not isinstance(self.n_centers, str) and np.size(self.n_centers) == 1
        return bool(given and fixed and n_candidates == 1)

    def _grid(self, kernel: Kernel, chosen: Centers, sizes: Array) -> Grid:
        diagonal = kernel.diagonal(chosen.X)
        if isinstance(self.penalty, str) and self.penalty == "n_centers":
            scale = float(np.mean(diagonal, dtype=np.float64))
            return Grid((scale * np.log(sizes) / sizes)[None, :], sizes)
        values = grids.penalties(self.penalty, diagonal, _PENALTIES)
        return Grid(np.broadcast_to(values[:, None], (len(values), len(sizes))), sizes)

    def _path(
        self, sigmas: list[Any], grid: Grid, scores: list[Scores], score: Score, method: str
    ) -> Path:
        axes: dict[str, Array] = {}
        if len(sigmas) > 1:
            axes["sigma"] = np.array(sigmas)
        if not (isinstance(self.penalty, str) and self.penalty == "n_centers"):
            axes["penalty"] = grid.penalties[:, 0].copy()
        axes["n_centers"] = grid.sizes
        shape = tuple(len(values) for values in axes.values())
        return Path(
            errors=np.stack([s.errors for s in scores]).reshape(shape),
            axes=axes,
            metric=(RootMeanSquare() if method == GCV else score).name,
            method=method,
            train_errors=np.stack([s.train_errors for s in scores]).reshape(shape),
            tie_breaker=np.stack([s.tie_breaker for s in scores]).reshape(shape),
        )

    def _keep(self, model: Solved, *, flat: bool) -> None:
        self.dual_coef_ = model.coef[:, 0] if flat else model.coef
        self.intercept_ = model.intercept[0] if flat else model.intercept


def _center_weight(chosen: Centers, rows: Stream, cells: Cells) -> float:
    """Return the least weight of a center among the rows of every split, 0 if some lack it."""
    if chosen.rows is None or not cells.fitted[:, cells.of_row[chosen.rows]].all():
        return 0.0
    return float(np.min(rows.weight[chosen.rows], initial=1.0))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if sparse.issparse(one) and sparse.issparse(other):
        return one.shape == other.shape and abs(one - other).sum() == 0
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    # Splitters that were saved and loaded are other objects with the same settings.
    return bool(one is other or one == other or repr(one) == repr(other))


def _candidate(path: Path) -> int:
    return path.best_index[0] if "sigma" in path.axes else 0


def _point(path: Path) -> tuple[int, int]:
    """Return the positions of the penalty and of the size at the best point of a path."""
    index = path.best_index
    if not np.isfinite(path.errors[index]):
        raise ValueError(
            f"no value of {' and '.join(path.axes)} could be judged by {path.method}: every "
            "error is infinite or not a number; give larger penalties, or another validation"
        )
    return (index[-2] if "penalty" in path.axes else 0), index[-1]


def _check_same_rows(rows: Stream, fitted: Fitted, cells: Cells) -> None:
    """Raise unless the rows are those that were fitted, as far as their statistics tell.

    One pass: ΦᵀWY of a few columns depends on every row, its outputs and its weight.
    """
    total, old = cells.total(fitted.statistics), fitted.map
    columns = min(len(old), _COMPARED)
    if rows.source.shape[1] != old.centers.shape[1]:
        raise ValueError(
            f"the rows have {rows.source.shape[1]} columns and the model was fitted to "
            f"{old.centers.shape[1]}; give the same rows"
        )
    same = total.b.shape[1] == rows.Y.shape[1]
    if same:
        few = NystromMap(old.kernel, old.centers[:columns])
        found = cells.total(accumulate(rows, few, raw=False))
        rtol = 1e-2 if rows.Y.dtype == np.float32 else 1e-6
        pairs = (
            (found.b, total.b[:columns]),
            (found.feature_sum, total.feature_sum[:columns]),
            (found.output_sum, total.output_sum),
            (found.yy, total.yy),
        )
        for ours, theirs in pairs:
            size = max(float(np.abs(theirs).max(initial=0.0)), rtol * total.weight)
            same &= bool(np.abs(ours - theirs).max(initial=0.0) <= rtol * size)
    if not same:
        raise ValueError(
            "the rows, outputs or weights are not those that the model was fitted to; give "
            "the same rows, or fit a new model"
        )


def _check_same_centers(chosen: Centers, map: NystromMap) -> None:
    """Raise unless the first centers, drawn again, are those of the map."""
    again = chosen.X[map.positions[map.positions < len(chosen.weights)]]
    if abs(again - map.centers[: again.shape[0]]).sum() != 0:
        raise ValueError(
            "the rows that were centers are no longer the same; give the same rows, or fit a "
            "new model"
        )
