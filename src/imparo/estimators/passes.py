"""Passes over the rows: features of a block become statistics, or scores of models."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import (
    Array,
    Engine,
    engine_holding,
    host_engine,
    power_of_two,
    with_smaller_blocks,
)
from imparo.estimators.blocks import Block, Stream
from imparo.features import FeatureMap
from imparo.scores import Score
from imparo.statistics import Statistics

# Blocks of float32 features are summed in float32, so many rows for each column, before
# they are added in float64: sums of many rows keep their digits at twice the speed.
_FLUSH = 4
# The rounding error that raw statistics may have, relative to the ridge they are used with.
_RAW_ERROR = 1e-3


def raw_is_accurate(
    map: FeatureMap, smallest_penalty: float, rows: Stream, center_weight: float
) -> tuple[bool, float]:
    """Return whether K_nmᵀK_nm may be accumulated and whitened afterwards, and its error.

    That costs half of whitening every row, but rounding errors in K_nmᵀK_nm, at most εnm
    and about εn√m in norm, are divided by σ_min(K_mm) in T⁻ᵀK_nmᵀK_nmT⁻¹. They must be small
    against what is solved with, which has no eigenvalue below nλ, nor below w·σ_min(K_mm)
    where the centers are rows of weight w: a row adds w·k(x)k(x)ᵀ. Maps without a factor
    have nothing to whiten.

    Parameters
    ----------
    map : FeatureMap
    smallest_penalty : float
    rows : Stream
    center_weight : float
        The smallest weight of a center among the rows of every split; 0 if not all are.

    Returns
    -------
    raw : bool
    error : float
        Of the whitened statistics, in norm.
    """
    if map.factor is None or len(map) == 0:
        return False, 0.0
    least = smallest_eigenvalue(map.factor)
    total = float(np.sum(rows.weight, dtype=np.float64))
    scale = float((map.factor**2).sum(axis=0).max())  # the largest K(x, x)
    limits = np.finfo(type_of_errors(rows.precision, rows.source.dtype))
    eps = float(limits.eps)
    if not (limits.tiny**0.5 / eps < scale < (limits.max / max(1.0, total)) ** 0.5):
        return False, 0.0  # squares of K would leave the range of the type
    error = eps * total * np.sqrt(len(map)) * scale * (scale / least)
    solved_with = total * smallest_penalty + center_weight * least
    return bool(error <= _RAW_ERROR * solved_with), float(error)


def smallest_eigenvalue(T: Array) -> float:
    """Return the smallest eigenvalue of TᵀT, to within a few per cent. Cost 20p².

    Parameters
    ----------
    T : array of shape (p, p)
        Upper triangular.

    Returns
    -------
    float
    """
    engine, unit = engine_holding(T), power_of_two(T)
    T = T / unit
    v = engine.asarray(np.random.RandomState(0).standard_normal((len(T), 1)))
    size = float((v**2).sum()) ** 0.5
    for _ in range(10):
        v /= size
        v = engine.solve_triangular(T, engine.solve_triangular(T, v, transpose=True))
        size = float((v**2).sum()) ** 0.5
    return unit * (unit / size)


def accumulate(rows: Stream, map: FeatureMap, *, raw: bool) -> list[Statistics]:
    """Return the statistics of Φ in every cell: one pass. Cost 2nmd + nm² or 2nm².

    Parameters
    ----------
    rows : Stream
    map : FeatureMap
    raw : bool
        Whether to accumulate K_nmᵀK_nm and whiten it at the end, at half the cost
        (:func:`raw_is_accurate`); of no effect for maps without a factor.

    Returns
    -------
    list of Statistics
    """
    used = map.evaluator() if raw else map
    found = [part.on(rows.engine) for part in rows.sum(_statistics, used)]
    rows.forget(used)
    T = map.factor_on(rows.engine)
    if raw and T is not None:
        for i in range(len(found)):  # one by one: all of them twice would be too much
            found[i] = found[i].whitened(T)
    return found


def _statistics(rows: Stream, map: FeatureMap) -> list[Statistics]:
    """Return the statistics of every cell, of features whitened by the factor of the map."""

    def whole(size: int) -> list[Statistics]:
        sums = _Sums(rows, len(map))
        for block in rows.blocks(map, size, "reading rows"):
            F = sums.typed(block.features(map))
            T = map.factor_on(block.engine)
            if T is not None:
                F = block.engine.whiten(T, F)
            sums.add(F, block)
        return sums.finished()

    return with_smaller_blocks(whole, rows.block_size(len(map)), rows.engine)


def extend(
    rows: Stream, map: FeatureMap, old: list[Statistics], *, raw: bool
) -> list[Statistics]:
    """Return the statistics of a grown map from those of the map before: one pass.

    Only products with new columns are computed: 4npk + nk² for k new columns after p,
    kernel evaluations apart, and np² more where rows are whitened.

    Parameters
    ----------
    rows : Stream
    map : FeatureMap
        Grown from the map of ``old``.
    old : list of Statistics
    raw : bool

    Returns
    -------
    list of Statistics
    """
    p, T = len(old[0].b), map.factor_on(rows.engine)
    k = len(map) - p
    if k == 0:
        return old
    old = [part.on(rows.engine) for part in old]
    if T is not None:
        T_oo, T_on, T_nn = _cut_at(T, p, rows.engine)
    used = map.evaluator() if raw else map
    added, crosses = rows.sum(_growth, used, p)
    rows.forget(used)
    added = [part.on(rows.engine) for part in added]
    crosses = [rows.engine.asarray(part) for part in crosses]
    if raw and T is not None:
        for i, (s, b) in enumerate(zip(old, added, strict=True)):
            crosses[i], added[i] = _whitened_growth(s, crosses[i], b, T_oo, T_on, T_nn)
    return [s.extended(c, b) for s, c, b in zip(old, crosses, added, strict=True)]


def _growth(rows: Stream, map: FeatureMap, p: int) -> tuple[list[Statistics], list[Array]]:
    """Return the statistics of columns from p on, and products of those before with them."""
    T = map.factor_on(rows.engine)
    if T is not None:
        T_oo, T_on, T_nn = _cut_at(T, p, rows.engine)

    def whole(size: int) -> tuple[list[Statistics], list[Array]]:
        sums = _Sums(rows, len(map) - p, p)
        for block in rows.blocks(map, size, "growing"):
            engine = block.engine
            F = sums.typed(block.features(map, 0, p))
            G = sums.typed(block.features(map, p))
            if T is not None:
                F = engine.whiten(T_oo, F)
                G = G - engine.product(F, engine.cast(engine.asarray(T_on), engine.type_of(F)))
                G = engine.whiten(T_nn, G)
            sums.add(G, block, F)
        return sums.finished(), sums.crosses()

    return with_smaller_blocks(whole, rows.block_size(len(map)), rows.engine)


def _cut_at(T: Array, p: int, engine: Engine) -> list[Array]:
    """Return the parts of a triangular factor before, beside and after column p."""
    return [engine.copy(part) for part in (T[:p, :p], T[:p, p:], T[p:, p:])]


def _whitened_growth(
    old: Statistics, cross: Array, new: Statistics, T_oo: Array, T_on: Array, T_nn: Array
) -> tuple[Array, Statistics]:
    """Return ΦᵀΨ and the statistics of Ψ from K_oᵀK_n and those of K_n.

    Ψ = (K_n − K_oM)T_nn⁻¹ with M = T_oo⁻¹T_on, and K_oM = ΦT_on.
    """
    engine = engine_holding(cross)
    first = engine.solve_triangular(T_oo, cross, transpose=True)  # ΦᵀK_n
    A_on = engine.product(old.A, T_on)  # ΦᵀK_oM
    middle = engine.product(T_on.T, first)
    inner = new.A - middle - middle.T + engine.product(T_on.T, A_on)
    plain = Statistics(len(T_nn), new.b.shape[1], engine=engine)
    plain._A[...] = inner
    plain.b[...] = new.b - engine.product(T_on.T, old.b)
    plain.feature_sum[...] = (
        new.feature_sum - engine.product(T_on.T, old.feature_sum[:, None])[:, 0]
    )
    plain.yy, plain.output_sum, plain.weight = new.yy, new.output_sum, new.weight
    whitened = plain.whitened(T_nn)
    rest = first - A_on
    rest = rest if engine.resident else np.ascontiguousarray(rest)
    return engine.whiten(T_nn, rest), whitened


class _Sums:
    """Statistics of every cell, and products with other features, block by block.

    Every device has sums of its own; they are added at the end.
    """

    def __init__(self, rows: Stream, n_features: int, n_before: int | None = None) -> None:
        self._n_outputs, self._n_features = rows.Y.shape[1], n_features
        self._engine, self._cells = rows.engine, range(rows.n_cells)
        self._dtype = _type_of_sums(rows.engine, rows.source.dtype)
        self._plain = bool((rows.weight[rows.cell >= 0] == 1).all())
        self._parts = {e: self._empty(e, self._dtype) for e in rows.engine.replicas}
        self._totals = self._parts
        number = np.dtype(np.float64)
        if self._dtype == np.float32:
            self._totals = {e: self._empty(e, number) for e in rows.engine.replicas}
        self._waiting = 0
        self._crosses = {
            e: [e.zeros((n_before, n_features), number) for _ in self._cells]
            for e in rows.engine.replicas
            if n_before is not None
        }

    def _empty(self, engine: Engine, dtype: np.dtype[Any]) -> list[Statistics]:
        shape = self._n_features, self._n_outputs
        return [Statistics(*shape, dtype, engine) for _ in self._cells]

    def typed(self, F: Array) -> Array:
        """Return features in the type that they are summed in."""
        return self._engine.cast(F, self._dtype) if self._engine.resident else F

    def add(self, F: Array, block: Block, before: Array | None = None) -> None:
        """Add the features of a block, and their products with others."""
        engine, bounds = block.engine, block.bounds
        for c, part in enumerate(self._parts[engine]):
            rows = slice(bounds[c], bounds[c + 1])
            if rows.start == rows.stop:
                continue
            weight = None if self._plain else block.weight[rows]
            part.add(F[rows], block.Y[rows], weight)
            if before is not None:
                right = F[rows] if weight is None else F[rows] * weight[:, None]
                engine.accumulate_product(self._crosses[engine][c], before[rows], right)
        self._waiting += len(F)
        if self._waiting > max(4096, _FLUSH * self._n_features):
            self._flush()

    def _flush(self) -> None:
        self._waiting = 0
        if self._dtype == np.float32:
            for engine, parts in self._parts.items():
                for total, part in zip(self._totals[engine], parts, strict=True):
                    total.merge(part)
                self._parts[engine] = self._empty(engine, self._dtype)

    def finished(self) -> list[Statistics]:
        """Return the statistics of every cell, in float64."""
        self._flush()
        first, *others = self._totals.values()
        for totals in others:
            for mine, theirs in zip(first, totals, strict=True):
                mine.merge(theirs.on(self._engine))
        return first

    def crosses(self) -> list[Array]:
        """Return the products with other features, of every cell."""
        first, *others = self._crosses.values()
        for crosses in others:
            for mine, theirs in zip(first, crosses, strict=True):
                mine += self._engine.asarray(theirs)
        return first


def type_of_errors(precision: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type whose rounding errors the sums of features of some rows have."""
    return np.dtype(np.float32) if precision == "float32" else dtype


def _type_of_sums(engine: Engine, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which features of some rows are multiplied."""
    if not engine.resident or engine.precision == "split":
        return dtype
    return np.dtype(engine.precision)


def score_models(
    rows: Stream, cells: Array, map: FeatureMap, models: "Models", score: Score
) -> Array:
    """Return the sums of errors of many models on the rows of some cells. Cost one pass.

    Parameters
    ----------
    rows : Stream
    cells : boolean array of shape (C,)
    map : FeatureMap
    models : Models
    score : Score

    Returns
    -------
    array of shape (2, L, S)
    """
    used = map.evaluator()
    sent = models.on(host_engine()) if rows.distributed else models
    found = rows.sum(_scores, used, cells, sent, score)
    rows.forget(used)
    return np.asarray(found)


def _scores(
    rows: Stream, map: FeatureMap, cells: Array, models: "Models", score: Score
) -> Array:
    """Return the sums of errors of many models on the rows of some cells."""
    shape, columns = models.intercepts.shape, len(map)
    there = {engine: models.on(engine) for engine in rows.engine.replicas}

    def whole(size: int) -> Array:
        sums = np.zeros((2, *shape[:2]))
        for block in rows.blocks(map, size, "scoring"):
            engine, bounds = block.engine, block.bounds
            for c in np.flatnonzero(cells):
                some = slice(bounds[c], bounds[c + 1])
                if some.start == some.stop:
                    continue
                Y, weight = block.Y[some], block.weight[some]
                K = engine.asarray(map.evaluate(block.X[some], 0, models.largest))
                for s, coef in enumerate(there[engine].coefficients):
                    flat = coef.reshape(len(coef), shape[0] * shape[2])
                    F = engine.product(K[:, : len(coef)], flat)
                    F = F.reshape(len(K), shape[0], shape[2])
                    F = F + there[engine].intercepts[:, s]
                    sums[:, :, s] += engine.to_host(score(Y, F, weight))
        return sums

    return with_smaller_blocks(
        whole, rows.block_size(columns + shape[0] * shape[2]), rows.engine
    )


@dataclass(frozen=True)
class Models:
    """Models of L penalties for each of S sizes, as ``predict`` would use them.

    Attributes
    ----------
    coefficients : list of S arrays of shape (t, L, T)
        Coefficients of the first t columns of ``evaluate``.
    intercepts : array of shape (L, S, T)
    """

    coefficients: list[Array]
    intercepts: Array

    def on(self, engine: Engine) -> "Models":
        """Return the same models where an engine computes."""
        coefficients = [engine.asarray(coef) for coef in self.coefficients]
        return Models(coefficients, engine.asarray(self.intercepts))

    @property
    def largest(self) -> int:
        """The largest number of columns."""
        return max(len(coef) for coef in self.coefficients)
