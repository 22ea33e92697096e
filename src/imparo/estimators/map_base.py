"""What estimators on a nested map share: from parameters to a fitted model.

A machine says how its map is drawn and grown; which (λ, m) is best, and the model there, is
found here, the same way for centers and for random features.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from imparo.data.sources import Source
from imparo.engine import Array, engine_holding
from imparo.estimators import grids
from imparo.estimators.blocks import Stream
from imparo.estimators.cells import Cells
from imparo.estimators.inputs import all_or_nothing, used_rows
from imparo.estimators.map_search import Fitted, Grid, judge, solve
from imparo.estimators.passes import accumulate
from imparo.estimators.solve import Solved
from imparo.estimators.splits import GCV, Splits, make_splits
from imparo.estimators.streamed import Streamed
from imparo.features import FeatureMap
from imparo.kernels import Kernel
from imparo.paths import Path
from imparo.scores import RootMeanSquare, Score, Scores

# Columns by which the rows of a fitted model are known again.
_COMPARED = 8
#: Penalties of "auto": each half of the one before.
PENALTIES = 41


class MapMachine(Streamed):
    """Base of the estimators with a whole (λ, m) path."""

    penalty: Any
    random_state: Any
    #: The parameter that is m.
    _size: ClassVar[str]
    #: Parameters that a model cannot grow on without.
    _fixed: ClassVar[tuple[str, ...]]

    # What a machine brings. What is drawn is anything with a length that maps are made of.

    @abstractmethod
    def _checked_kernel(self, source: Source) -> Kernel:
        """Return the kernel, or raise where it or another parameter does not fit."""

    @abstractmethod
    def _most(self, allowed: Array, cells: Cells, memory: int, n_candidates: int) -> int:
        """Return the largest size that can be had and held."""

    @abstractmethod
    def _sizes(self, n: int, most: int) -> Array:
        """Return the sizes to judge, for n rows."""

    @abstractmethod
    def _draw(self, source: Source, kernel: Kernel, allowed: Array, m: int, seed: int) -> Any:
        """Draw m centers or features; the same ones first, whatever m."""

    @abstractmethod
    def _draws_by_kernel(self) -> bool:
        """Return whether other widths need other draws."""

    @abstractmethod
    def _map(self, kernel: Kernel, drawn: Any) -> FeatureMap:
        """Return the map of what was drawn."""

    @abstractmethod
    def _grown(self, map: FeatureMap, drawn: Any) -> FeatureMap:
        """Return a map grown to what was drawn, or raise where that does not extend it."""

    @abstractmethod
    def _scale(self, kernel: Kernel, drawn: Any, dtype: np.dtype[Any]) -> Array:
        """Return values of K(x, x) in the type of the rows, to set automatic penalties by."""

    @abstractmethod
    def _grid_of(self, penalties: Array, sizes: Array) -> Grid:
        """Return the grid of penalties (L, S) and sizes."""

    @abstractmethod
    def _penalty_of(self, sizes: Array) -> Array:
        """Return the penalties where the size is the only parameter, K(x, x) being 1."""

    def _center_weight(self, drawn: Any, rows: Stream, cells: Cells) -> float:
        """Return the least weight of a row that a column belongs to; 0 if there are none."""
        return 0.0

    @abstractmethod
    def _set_chosen(self, map: FeatureMap, drawn: Any, size: int) -> None:
        """Set the fitted attributes that tell what is used."""

    # What all machines do.

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
        # Drawn before the splits: the same seed gives the same map with and without.
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
        candidates = self._learned(candidates, source, Y, weight, allowed, seed)
        memory = self._for_statistics(rows.memory, source, len(cells))
        most = self._most(allowed, cells, memory, len(candidates))
        sizes = self._sizes(len(kept), most)
        found: list[Scores] = []
        best: tuple[Fitted, Any, int] | None = None
        fitted: Fitted | None = None
        path: Path | None = None
        for i, candidate in enumerate(c.kernel for c in candidates):
            if i == 0 or self._draws_by_kernel():
                drawn = self._draw(source, candidate, allowed, int(sizes[-1]), seed)
            if i == 0:
                grid = self._grid(candidate, drawn, sizes, source.dtype)
            fitted = None  # not two sets of statistics besides the best
            map = self._map(candidate, drawn)
            smallest = float(grid.ridges.min())
            fitted = Fitted.to(rows, map, smallest, self._center_weight(drawn, rows, cells))
            if not single:
                found.append(judge(fitted, rows, cells, grid, score, self.intercept))
                sigmas = [c.sigma for c in candidates[: i + 1]]
                path = self._path(sigmas, grid, found, score, method)
            if path is None or _candidate(path) == i:
                best = fitted, drawn, i
        assert best is not None
        fitted, drawn, i = best
        self.sigma_, self.kernel_ = candidates[i].sigma, candidates[i].kernel
        parameters = {name: getattr(self, name) for name in self._fixed}
        fitted = replace(fitted, cells=cells, seed=seed, parameters=parameters)
        return self._chosen_model(fitted, drawn, rows, grid, path), path

    @all_or_nothing
    def _grow_to(self, size: Any, X: Any, y: Any, sample_weight: Any) -> Self:
        """Grow a fitted model to so many centers or features."""
        check_is_fitted(self, "intercept_")
        if self.statistics_ is None:
            raise ValueError(
                "the model has no statistics to grow from: they were removed, or solver='cg' "
                "made none; fit it again with more"
            )
        whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
        if not whole or size < 1:
            raise ValueError(f"{self._size}={size!r} must be a whole number from 1 on")
        self._wanted = int(size)
        self._learn(X, y, sample_weight, how="_grow")
        del self._wanted
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, how: str = "_fit") -> Any:
        raise AssertionError  # the face has it, and comes first

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
        """Add columns to a fitted model, up to ``self._wanted`` in all.

        The path is judged at its own penalties, or at others where they are given.
        """
        fitted, cells, seed = self.statistics_, self.statistics_.cells, self.statistics_.seed
        assert cells is not None
        self._check_unchanged()
        kept, weight = used_rows(weight, Y.dtype)
        rows = self._as_rows(source, Y, weight, cells)
        _check_same_rows(rows, fitted, cells)
        allowed = cells.may_be_centers()
        memory = self._for_statistics(rows.memory, source, len(cells))
        most = self._most(allowed, cells, memory, 1)
        before, old = fitted.map.n_given, self.path_
        wanted = self._checked_wanted(len(kept), most)
        drawn = self._draw(source, self.kernel_, allowed, wanted, seed)
        wanted = len(drawn)
        if wanted <= before:
            what = self._size.removeprefix("n_")
            raise ValueError(
                f"the model has {before:,} {what}, and {wanted:,} were asked for or can be "
                "had; give a larger number"
            )
        map = self._grown(fitted.map, drawn)
        sizes = [wanted] if old is None else np.unique([*old.sizes, wanted])
        grid = self._grid(self.kernel_, drawn, np.asarray(sizes), source.dtype)
        if old is not None and old.penalties is not None:
            values = old.penalties if penalties is None else penalties
            shape = len(values), len(grid.sizes)
            grid = self._grid_of(np.broadcast_to(values[:, None], shape), grid.sizes)
        smallest = float(grid.ridges.min())
        fitted = fitted.grown(rows, map, smallest, self._center_weight(drawn, rows, cells))
        parameters = self.statistics_.parameters
        fitted = replace(fitted, cells=cells, seed=seed, parameters=parameters)
        path = None
        if old is not None:
            scores = judge(fitted, rows, cells, grid, score, self.intercept)
            path = self._path([self.sigma_], grid, [scores], score, old.method)
        return self._chosen_model(fitted, drawn, rows, grid, path), path

    def _checked_wanted(self, n: int, most: int) -> int:
        """Return the size that is asked for, as far as it can be had."""
        return int(grids.sizes(self._wanted, n, most, self._size)[-1])

    def _check_unchanged(self) -> None:
        """Raise if a parameter that the statistics depend on is not what it was in fit."""
        for name, before in self.statistics_.parameters.items():
            if not _same(getattr(self, name), before):
                raise ValueError(
                    f"{name} was changed since fit, and grow goes on with what it was; put it "
                    "back, or fit again"
                )

    def _chosen_model(
        self, fitted: Fitted, drawn: Any, rows: Stream, grid: Grid, path: Path | None
    ) -> Solved:
        i, s = (0, 0) if path is None else _point(path)
        size = min(int(grid.sizes[s]), fitted.map.n_given)
        self.penalty_ = float(grid.penalties[i, s])
        setattr(self, f"{self._size}_", size)
        self._set_chosen(fitted.map, drawn, size)
        self.statistics_ = fitted
        assert fitted.cells is not None
        ridge = float(grid.ridges[i, s])
        return solve(fitted, rows, fitted.cells, ridge, size, bool(self.intercept))

    def _by_size(self) -> bool:
        """Return whether the penalty follows from the size."""
        return isinstance(self.penalty, str) and self.penalty == self._size

    def _is_single(self, n_candidates: int) -> bool:
        """Return whether there is nothing to select."""
        given = self._by_size()
        if not given:
            given = not isinstance(self.penalty, str) and np.size(self.penalty) == 1
        return bool(given and self._is_fixed(getattr(self, self._size)) and n_candidates == 1)

    def _is_fixed(self, size: Any) -> bool:
        """Return whether a value of the size parameter is a single number."""
        return not isinstance(size, str) and np.size(size) == 1

    def _grid(self, kernel: Kernel, drawn: Any, sizes: Array, dtype: np.dtype[Any]) -> Grid:
        diagonal = self._scale(kernel, drawn, dtype)
        if self._by_size():
            scale = float(np.mean(diagonal, dtype=np.float64))
            return self._grid_of((scale * self._penalty_of(sizes))[None, :], sizes)
        values = self._penalties(diagonal)
        return self._grid_of(np.broadcast_to(values[:, None], (len(values), len(sizes))), sizes)

    def _penalties(self, diagonal: Array) -> Array:
        """Return the grid of penalties, from the largest to the smallest."""
        return grids.penalties(self.penalty, diagonal, PENALTIES)

    def _path(
        self, sigmas: list[Any], grid: Grid, scores: list[Scores], score: Score, method: str
    ) -> Path:
        axes: dict[str, Array] = {}
        if len(sigmas) > 1:
            axes["sigma"] = np.array(sigmas)
        if not self._by_size():
            axes["penalty"] = grid.penalties[:, 0].copy()
        axes[self._size] = grid.sizes
        shape = tuple(len(values) for values in axes.values())
        return Path(
            errors=np.stack([s.errors for s in scores]).reshape(shape),
            axes=axes,
            metric=(RootMeanSquare() if method == GCV else score).name,
            method=method,
            train_errors=np.stack([s.train_errors for s in scores]).reshape(shape),
            tie_breaker=np.stack([s.tie_breaker for s in scores]).reshape(shape),
        )


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
    if rows.source.shape[1] != old.n_columns_in:
        raise ValueError(
            f"the rows have {rows.source.shape[1]} columns and the model was fitted to "
            f"{old.n_columns_in}; give the same rows"
        )
    same = total.b.shape[1] == rows.Y.shape[1]
    if same:
        found = cells.total(accumulate(rows, old.first(columns), raw=False))
        rtol = 1e-2 if rows.Y.dtype == np.float32 else 1e-6
        pairs = (
            (found.b, total.b[:columns]),
            (found.feature_sum, total.feature_sum[:columns]),
            (found.output_sum, total.output_sum),
            (found.yy, total.yy),
        )
        for ours, theirs in pairs:
            ours, theirs = (engine_holding(part).to_host(part) for part in (ours, theirs))
            size = max(float(np.abs(theirs).max(initial=0.0)), rtol * total.weight)
            same &= bool(np.abs(ours - theirs).max(initial=0.0) <= rtol * size)
    if not same:
        raise ValueError(
            "the rows, outputs or weights are not those that the model was fitted to; give "
            "the same rows, or fit a new model"
        )
