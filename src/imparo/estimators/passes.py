"""Passes over the rows: features of a block become statistics, or scores of models."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.data.sources import Source
from imparo.engine import Array, default_engine, power_of_two, rows_within
from imparo.features import FeatureMap
from imparo.progress import track
from imparo.scores import Score
from imparo.statistics import Statistics

# Rows of a block that products of features are fastest with.
_HIGH = 1024
# Blocks of float32 features are summed in float32, so many rows for each column, before
# they are added in float64: sums of many rows keep their digits at twice the speed.
_FLUSH = 4
# The rounding error that raw statistics may have, relative to the ridge they are used with.
_RAW_ERROR = 1e-3


@dataclass(frozen=True)
class Stream:
    """Rows to learn from: where they come from, outputs, weights and cells.

    Attributes
    ----------
    source : Source
    Y : array of shape (n, T)
    weight : array of shape (n,)
    cell : array of shape (n,)
        The cell of every row; −1 for those not used.
    n_cells : int
    memory : int
    progress : bool or callable
    """

    source: Source
    Y: Array
    weight: Array
    cell: Array
    n_cells: int
    memory: int
    progress: Any

    def block_size(self, n_columns: int) -> int:
        """Return how many rows a block of so many features has."""
        itemsize = self.source.dtype.itemsize
        per_row = (4 * max(1, n_columns) + 3 * self.source.shape[1]) * itemsize
        size = rows_within(per_row, self.memory // 4, "one row of features")
        # Statistics of many columns are read and written with every block: it should be high.
        return max(size, min(_HIGH, self.memory // (8 * per_row)))

    def blocks(self, n_columns: int, what: str) -> Iterator[tuple[Any, Array, Array, Array]]:
        """Yield X, Y, weights and bounds of the cells in blocks sorted by cell."""
        size = self.block_size(n_columns)
        n_blocks = -(-self.source.shape[0] // size)
        for rows, X in track(self.source.blocks(size), n_blocks, what, self.progress):
            cell = self.cell[rows]
            Y, weight = self.Y[rows], self.weight[rows]
            if self.n_cells > 1 or (cell < 0).any():
                # Sorted before the kernel is evaluated: rows of X are shorter than those of K.
                order = np.argsort(cell, kind="stable")
                order = order[np.searchsorted(cell[order], 0) :]
                X, Y, weight, cell = X[order], Y[order], weight[order], cell[order]
            yield X, Y, weight, np.searchsorted(cell, np.arange(self.n_cells + 1))


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
    scale = float(np.max(np.square(map.factor).sum(axis=0)))  # the largest K(x, x)
    limits = np.finfo(rows.source.dtype)
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
    engine, unit = default_engine(), power_of_two(T)
    T = T / unit
    v = np.random.RandomState(0).standard_normal((len(T), 1))
    size = 1.0
    for _ in range(10):
        v /= np.linalg.norm(v)
        v = engine.solve_triangular(T, engine.solve_triangular(T, v, transpose=True))
        size = float(np.linalg.norm(v))
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
    engine = default_engine()
    sums = _Sums(rows, len(map))
    for X, Y, weight, bounds in rows.blocks(len(map), "reading rows"):
        F = map.evaluate(X)
        if not raw and map.factor is not None:
            F = engine.whiten(map.factor, F)
        sums.add(F, Y, weight, bounds)
    found = sums.finished()
    if raw and map.factor is not None:
        for i in range(len(found)):  # one by one: all of them twice would be too much
            found[i] = found[i].whitened(map.factor)
    return found


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
    engine, p, T = default_engine(), len(old[0].b), map.factor
    k = len(map) - p
    if k == 0:
        return old
    if T is not None:
        parts = T[:p, :p], T[:p, p:], T[p:, p:]
        T_oo, T_on, T_nn = (np.asfortranarray(part) for part in parts)
    sums = _Sums(rows, k, p)
    for X, Y, weight, bounds in rows.blocks(len(map), "growing"):
        F, G = map.evaluate(X, 0, p), map.evaluate(X, p)
        if not raw and T is not None:
            F = engine.whiten(T_oo, F)
            G -= engine.product(F, T_on.astype(F.dtype))
            G = engine.whiten(T_nn, G)
        sums.add(G, Y, weight, bounds, F)
    added, crosses = sums.finished(), sums.crosses
    if raw and T is not None:
        for i, (s, b) in enumerate(zip(old, added, strict=True)):
            crosses[i], added[i] = _whitened_growth(s, crosses[i], b, T_oo, T_on, T_nn)
    return [s.extended(c, b) for s, c, b in zip(old, crosses, added, strict=True)]


def _whitened_growth(
    old: Statistics, cross: Array, new: Statistics, T_oo: Array, T_on: Array, T_nn: Array
) -> tuple[Array, Statistics]:
    """Return ΦᵀΨ and the statistics of Ψ from K_oᵀK_n and those of K_n.

    Ψ = (K_n − K_oM)T_nn⁻¹ with M = T_oo⁻¹T_on, and K_oM = ΦT_on.
    """
    engine = default_engine()
    first = engine.solve_triangular(T_oo, cross, transpose=True)  # ΦᵀK_n
    A_on = engine.product(old.A, T_on)  # ΦᵀK_oM
    middle = engine.product(T_on.T, first)
    inner = new.A - middle - middle.T + engine.product(T_on.T, A_on)
    plain = Statistics(len(T_nn), new.b.shape[1])
    plain._A[...] = inner
    plain.b[...] = new.b - engine.product(T_on.T, old.b)
    plain.feature_sum[...] = (
        new.feature_sum - engine.product(T_on.T, old.feature_sum[:, None])[:, 0]
    )
    plain.yy, plain.output_sum, plain.weight = new.yy, new.output_sum, new.weight
    whitened = plain.whitened(T_nn)
    return engine.whiten(T_nn, np.ascontiguousarray(first - A_on)), whitened


class _Sums:
    """Statistics of every cell, and products with other features, block by block."""

    def __init__(self, rows: Stream, n_features: int, n_before: int | None = None) -> None:
        self._n_outputs, self._n_features = rows.Y.shape[1], n_features
        self._dtype = rows.source.dtype
        self._plain = bool((rows.weight[rows.cell >= 0] == 1).all())
        self._parts = [self._empty(self._dtype) for _ in range(rows.n_cells)]
        self._totals = self._parts
        if self._dtype == np.float32:
            self._totals = [self._empty(np.dtype(np.float64)) for _ in range(rows.n_cells)]
        self._waiting = 0
        self.crosses = [
            np.zeros((n_before, n_features))
            for _ in range(rows.n_cells)
            if n_before is not None
        ]

    def _empty(self, dtype: np.dtype[Any]) -> Statistics:
        return Statistics(self._n_features, self._n_outputs, dtype)

    def add(
        self, F: Array, Y: Array, weight: Array, bounds: Array, before: Array | None = None
    ) -> None:
        """Add a block of which ``bounds`` are the limits of the cells."""
        engine = default_engine()
        for c, part in enumerate(self._parts):
            rows = slice(bounds[c], bounds[c + 1])
            if rows.start == rows.stop:
                continue
            part.add(F[rows], Y[rows], None if self._plain else weight[rows])
            if before is not None:
                right = F[rows] if self._plain else F[rows] * weight[rows, None]
                engine.accumulate_product(self.crosses[c], before[rows], right)
        self._waiting += len(F)
        if self._waiting > max(4096, _FLUSH * self._n_features):
            self._flush()

    def _flush(self) -> None:
        self._waiting = 0
        if self._dtype == np.float32:
            for c, part in enumerate(self._parts):
                self._totals[c].merge(part)
                self._parts[c] = self._empty(self._dtype)

    def finished(self) -> list[Statistics]:
        """Return the statistics of every cell, in float64."""
        self._flush()
        return self._totals


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
    product, shape = default_engine().product, models.intercepts.shape
    sums = np.zeros((2, *shape[:2]))
    for X, Y, weight, bounds in rows.blocks(len(map) + shape[0] * shape[2], "scoring"):
        for c in np.flatnonzero(cells):
            some = slice(bounds[c], bounds[c + 1])
            if some.start == some.stop:
                continue
            K = map.evaluate(X[some], 0, models.largest)
            for s, coef in enumerate(models.coefficients):
                flat = coef.reshape(len(coef), shape[0] * shape[2])
                F = product(K[:, : len(coef)], flat)
                F = F.reshape(len(K), shape[0], shape[2]) + models.intercepts[:, s]
                sums[:, :, s] += score(Y[some], F, weight[some])
    return sums


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

    @property
    def largest(self) -> int:
        """The largest number of columns."""
        return max(len(coef) for coef in self.coefficients)
