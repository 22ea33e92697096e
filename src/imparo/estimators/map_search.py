"""The errors of every (λ, m) of a nested map, and the model at one of them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imparo.data.sources import Source
from imparo.engine import Array, default_engine, host_engine, row_blocks, threads_for
from imparo.estimators.blocks import Stream
from imparo.estimators.cells import Cells
from imparo.estimators.passes import (
    Models,
    accumulate,
    extend,
    raw_is_accurate,
    score_models,
    type_of_errors,
)
from imparo.estimators.solve import Solved
from imparo.features import FeatureMap
from imparo.moments import trusted
from imparo.nested import NestedRidge
from imparo.persistence import persistent
from imparo.progress import track
from imparo.scores import RootMeanSquare, Score, Scores
from imparo.selection import LEAST_FREEDOM
from imparo.statistics import Statistics

# Penalties this close to each other share a factorisation.
_SAME = 1e-13
# Held-out rows that are predicted at once.
_PREDICTED = 4096
# Numbers of rows that are taken at once from a source where that is a pass.
_LOOKED_AT = 2**23


@persistent
@dataclass(frozen=True)
class Fitted:
    """A map and the statistics of its features in every cell: all that a path needs.

    Attributes
    ----------
    map : FeatureMap
    statistics : list of Statistics
    raw : bool
        Whether they were whitened after the pass instead of row by row.
    floor : float
        Their rounding error that is not relative, in norm.
    cells : Cells or None
        Which row is in which cell, and
    seed : int
        what the centers were drawn with: to grow on.
    parameters : dict
        Those of the estimator that a model must have been fitted with to grow.
    """

    map: FeatureMap
    statistics: list[Statistics]
    raw: bool
    floor: float
    cells: Cells | None = None
    seed: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def to(
        cls, rows: Stream, map: FeatureMap, smallest: float, center_weight: float
    ) -> "Fitted":
        """Return the statistics of a new map: one pass."""
        raw, error = raw_is_accurate(map, smallest, rows, center_weight)
        statistics = accumulate(rows, map, raw=raw)
        return cls(map, statistics, raw, error if raw else 0.0)

    def grown(
        self, rows: Stream, map: FeatureMap, smallest: float, center_weight: float
    ) -> "Fitted":
        """Return the statistics of a map grown from this one: one pass for new columns."""
        raw, error = raw_is_accurate(map, smallest, rows, center_weight)
        statistics = extend(rows, map, self.statistics, raw=raw)
        return Fitted(map, statistics, raw, max(self.floor, error if raw else 0.0))


@dataclass(frozen=True)
class Grid:
    """Penalties and sizes to judge: all pairs of L penalties and S sizes.

    Attributes
    ----------
    penalties : array of shape (L, S)
        The same in every column, unless the penalty depends on the size.
    sizes : array of shape (S,)
        Numbers of centers or features.
    scale : array of shape (S,) or None
        What penalties are multiplied by for the columns that statistics are of: m for
        random features ψ, as λ belongs to ψ/√m.
    """

    penalties: Array
    sizes: Array
    scale: Array | None = None

    @property
    def ridges(self) -> Array:
        """Penalties of the columns that statistics are of, shape (L, S)."""
        return self.penalties if self.scale is None else self.penalties * self.scale


def groups(ridges: Array, sizes: Array) -> list[tuple[Array, Array]]:
    """Return the pairs of (λ, m) in groups that are cheapest to solve together.

    Pairs of one ridge share a Cholesky factor: all sizes of a Nyström map do, and for random
    features, where m times λ counts, those of half the size and twice the penalty. Where that
    leaves more factorisations than a tridiagonal form of every size is worth, pairs of one
    size are solved together instead.

    Parameters
    ----------
    ridges : array of shape (L, S)
    sizes : array of shape (S,)
        Numbers of columns.

    Returns
    -------
    list of (i, s)
        Positions of the pairs, from the largest ridge, or the smallest size, on.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.estimators.map_search import groups
    >>> parts = groups(np.array([[2.0, 4.0], [1.0, 2.0]]), np.array([5, 10]))
    >>> [list(zip(i.tolist(), s.tolist())) for i, s in parts]
    [[(0, 1)], [(0, 0), (1, 1)], [(1, 0)]]
    """
    flat = ridges.ravel()
    order = np.argsort(-flat, kind="stable")
    values = flat[order]
    # Products of decimal grids that are equal on paper differ in the last digits.
    new = np.concatenate([[True], values[1:] < values[:-1] * (1 - _SAME)])
    by_ridge = np.split(order, np.flatnonzero(new)[1:])
    cubes = sizes.astype(np.float64) ** 3
    n_penalties, n_sizes = ridges.shape
    cost = sum(cubes[part % n_sizes].max() for part in by_ridge)
    reduction = default_engine().reduction
    if n_penalties > reduction and reduction * cubes.sum() < cost:
        every = np.arange(n_penalties)
        return [(every, np.full(n_penalties, s)) for s in range(n_sizes)]
    return [np.divmod(part, n_sizes) for part in by_ridge]


def judge(
    fitted: Fitted, rows: Stream, cells: Cells, grid: Grid, score: Score, intercept: bool
) -> Scores:
    """Return the errors on held-out rows, or GCV's where there is no split, shape (L, S).

    Squared errors come from moments, at no cost in n; where these cancel, and for
    misclassification rates, the held-out rows are read again.

    Parameters
    ----------
    fitted : Fitted
    rows : Stream
    cells : Cells
    grid : Grid
    score : Score
    intercept : bool

    Returns
    -------
    Scores
    """
    sizes = fitted.map.columns(grid.sizes)
    with threads_for(len(fitted.map)):
        if len(cells.fitted) == 0:
            return _gcv(fitted, rows, cells, grid, sizes, intercept)
        return _held_out(fitted, rows, cells, grid, sizes, score, intercept)


def _held_out(
    fitted: Fitted, rows: Stream, cells: Cells, grid: Grid, sizes: Array, score: Score,
    intercept: bool,
) -> Scores:  # fmt: skip
    sums = np.zeros((2, 2, *grid.penalties.shape))
    weights = np.zeros(2)
    by_moments = isinstance(score, RootMeanSquare)
    for v in range(len(cells.fitted)):
        inside, outside = cells.parts(fitted.statistics, v)
        ridge = ridge_of(fitted, rows, inside, intercept)
        part = _from_moments(ridge, outside, grid, sizes, rows.progress) if by_moments else None
        if part is None:
            by_moments = False  # nor would those of the other splits be reliable
            held = _residuals(rows, cells.held[v], fitted.map, ridge, grid, sizes, score)
            squares = isinstance(score, RootMeanSquare)
            train = (
                _train_sums(ridge, grid, sizes) if squares else np.full(held[0].shape, np.nan)
            )
            part = np.stack([held, np.stack([train, train])])
        sums += part
        weights += outside.weight, inside.weight
    with np.errstate(invalid="ignore"):
        means = np.where(np.isnan(sums[0]), np.inf, sums[0]) / weights[0]
        train_means = sums[1, 0] / weights[1]
    return Scores(score.finish(means[0]), score.finish(train_means), means[1])


def ridge_of(fitted: Fitted, rows: Stream, part: Statistics, intercept: bool) -> NestedRidge:
    """Return the ridge problem of a part of the statistics."""
    dtype = type_of_errors(rows.precision, rows.source.dtype)
    return NestedRidge(part, intercept=intercept, dtype=dtype, floor=fitted.floor)


def _from_moments(
    ridge: NestedRidge, outside: Statistics, grid: Grid, sizes: Array, progress: Any
) -> Array | None:
    """Return the sums of squared errors, held-out and training, or None where they cancel."""
    moments = [ridge.moments(outside), ridge.moments()]
    sums = np.empty((2, 2, *grid.penalties.shape))
    parts, ridges = groups(grid.ridges, sizes), grid.ridges
    pairs = [(_same(ridges, i, s), sizes[s]) for i, s in parts]
    ready = ridge.errors_side_by_side(pairs, moments)
    steps = track(enumerate(parts), len(parts), "penalties", progress)
    for number, (i, s) in steps:
        found = ready[number] if ready else ridge.squared_errors(*pairs[number], moments)
        (held, bounds), (train, _) = found
        if not trusted(held, bounds):
            return None
        sums[0, :, i, s], sums[1, :, i, s] = held[:, None], train[:, None]
    return sums


def _same(ridges: Array, i: Array, s: Array) -> Array:
    """Return the ridges of a group, those of equal ones made equal to the last digit."""
    found = ridges[i, s]
    return found if (s == s[0]).all() else np.full(len(found), found[0])


def _train_sums(ridge: NestedRidge, grid: Grid, sizes: Array) -> Array:
    own, errors = ridge.moments(), np.empty(grid.penalties.shape)
    ridges = grid.ridges
    for i, s in groups(ridges, sizes):
        errors[i, s] = ridge.squared_errors(_same(ridges, i, s), sizes[s], [own])[0][0]
    return errors


def _residuals(
    rows: Stream, cells: Array, map: FeatureMap, ridge: NestedRidge, grid: Grid, sizes: Array,
    score: Score,
) -> Array:  # fmt: skip
    """Return the sums of errors of every model on some cells, from predictions."""
    n_penalties, n_sizes = grid.penalties.shape
    n_outputs = rows.Y.shape[1]
    per_penalty = 8 * n_outputs * (2 * len(map) * n_sizes + int(np.sum(sizes)))
    chunk = int(np.clip(rows.memory // 8 // max(1, per_penalty), 1, n_penalties))
    sums = np.zeros((2, n_penalties, n_sizes))
    for start in range(0, n_penalties, chunk):
        some = slice(start, start + chunk)
        models = _models(map, ridge, grid.ridges[some], sizes, rows.source.dtype)
        sums[:, some] = score_models(rows, cells, map, models, score)
    return sums


def _models(
    map: FeatureMap, ridge: NestedRidge, ridges: Array, sizes: Array, dtype: np.dtype[Any]
) -> Models:
    n_penalties, n_outputs = len(ridges), len(ridge.output_mean)
    engine, number = ridge.engine, np.dtype(np.float64)
    W = engine.zeros((len(map), n_penalties, len(sizes), n_outputs), number)
    intercepts = np.empty((n_penalties, len(sizes), n_outputs))
    for i, s in groups(ridges, sizes):
        W[:, engine.asarray(i), engine.asarray(s)] = ridge.solve(_same(ridges, i, s), sizes[s])
    coefficients = []
    for k, size in enumerate(sizes):
        some = W[:size, :, k].reshape(int(size), n_penalties * n_outputs)
        for row in range(n_penalties):
            intercepts[row, k] = ridge.intercept(W[:, row, k])
        alpha = engine.cast(map.coefficients(some), dtype)
        coefficients.append(alpha.reshape(int(size), n_penalties, n_outputs))
    return Models(coefficients, intercepts.astype(dtype))


def _gcv(
    fitted: Fitted, rows: Stream, cells: Cells, grid: Grid, sizes: Array, intercept: bool
) -> Scores:
    total = cells.total(fitted.statistics)
    ridge = ridge_of(fitted, rows, total, intercept)
    n_rows = int(np.count_nonzero(rows.cell >= 0))
    own, shape = ridge.moments(), grid.penalties.shape
    sums, freedom = np.empty(shape), np.empty(shape)
    reliable = True
    parts, ridges = groups(grid.ridges, sizes), grid.ridges
    for i, s in track(parts, len(parts), "penalties", rows.progress):
        values = _same(ridges, i, s)
        ((sums[i, s], bounds),) = ridge.squared_errors(values, sizes[s], [own])
        reliable &= trusted(sums[i, s], bounds)
        freedom[i, s] = 1 - ridge.freedom(values, sizes[s]) / n_rows
    if not reliable:
        everything, score = np.ones(len(cells), bool), RootMeanSquare()
        sums = _residuals(rows, everything, fitted.map, ridge, grid, sizes, score)[0]
    means = sums / total.weight
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(freedom > LEAST_FREEDOM, means / freedom**2, np.inf)
    return Scores(np.sqrt(errors), np.sqrt(means), errors)


def solve(
    fitted: Fitted, rows: Stream, cells: Cells, penalty: float, size: int, intercept: bool
) -> Solved:
    """Return the model of one penalty and size, fitted to all rows.

    Parameters
    ----------
    fitted : Fitted
    rows : Stream
    cells : Cells
    penalty : float
        Of the columns that statistics are of.
    size : int
        Number of centers or features.
    intercept : bool

    Returns
    -------
    Solved
    """
    columns = fitted.map.columns(size)
    ridge = ridge_of(fitted, rows, cells.total(fitted.statistics), intercept)
    w = ridge.solve(np.array([penalty]), columns)[:, 0]
    coef = ridge.engine.to_host(fitted.map.coefficients(w[: columns[0]]))
    return Solved(coef.astype(rows.source.dtype), ridge.intercept(w), primal=False)


def held_out_predictions(
    fitted: Fitted, source: Source, ridge: float, size: int, intercept: bool
) -> tuple[Array, Array]:
    """Return the rows that splits hold out, and what models fitted without them predict.

    Parameters
    ----------
    fitted : Fitted
    source : Source
        The rows that it was fitted to.
    ridge : float
        Of the columns that statistics are of.
    size : int
        Number of centers or features.
    intercept : bool

    Returns
    -------
    rows : array of shape (k,)
        Positions, those of one split after those of another.
    F : array of shape (k, T)
    """
    cells, map, product = fitted.cells, fitted.map, host_engine().product
    assert cells is not None
    columns, found, dtype = map.columns(size), [], source.dtype
    for v in range(len(cells.held)):
        inside, _ = cells.parts(fitted.statistics, v)
        engine = default_engine()
        errors = type_of_errors(engine.precision if engine.resident else "float64", dtype)
        problem = NestedRidge(inside, intercept=intercept, dtype=errors, floor=fitted.floor)
        models = _models(map, problem, np.full((1, 1), ridge), columns, dtype)
        coef = problem.engine.to_host(models.coefficients[0][:, 0])
        held = np.flatnonzero((cells.of_row >= 0) & cells.held[v][cells.of_row])
        # Each look at rows that are not at hand is a pass over all of them.
        taken = _PREDICTED if source.at_hand else max(_PREDICTED, _LOOKED_AT // source.shape[1])
        for start in range(0, len(held), taken):
            rows = held[start : start + taken]
            X = source.take(rows)
            for some in row_blocks(len(rows), _PREDICTED):
                K = map.evaluate(X[some], 0, len(coef))
                found.append((rows[some], product(K, coef) + models.intercepts[0, 0]))
    return np.concatenate([r for r, _ in found]), np.concatenate([F for _, F in found])
