"""Rows as a sweep takes them: their features, or their places among the points."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from imparo.data.sources import Source, stacked
from imparo.engine import Array, row_blocks, rows_within
from imparo.errors import MemoryBudgetError
from imparo.features import FeatureMap
from imparo.kernels import Kernel
from imparo.sgm import FeatureSpace, GrowingExpansion, Space, State, StoredExpansion

#: What a sweep is handed: rows as its space takes them, and their positions.
Part = tuple[Any, Array]

REPLACEMENT, SHUFFLED, IN_ORDER = "replacement", "shuffled", "in order"
# Rows of a chunk; blocks of a sweep are cut from it.
_CHUNK = 1024
# Rows of a stream that are shuffled together, as far as memory allows.
_BUFFER = 2**16
# Rows of a block where features are sparse: weights of many columns are added to at once.
_SPARSE_BLOCK = 512


class FeatureRows:
    """Rows of a source, through a map.

    Features are stored where rows are needed more than once, or come from a stream, and
    memory allows it; computed again otherwise.

    Parameters
    ----------
    source : Source
    map : FeatureMap or None
        None for the rows themselves.
    memory : int
    passes : int
        How often rows will be needed.
    """

    def __init__(
        self, source: Source, map: FeatureMap | None, memory: int, passes: int
    ) -> None:
        self.source, self.map = source, map
        n, d = source.shape
        self.n_features = d if map is None else len(map)
        per_row = source.dtype.itemsize * (4 * self.n_features + 3 * d)
        size = rows_within(per_row, memory // 4, "one row of features")
        self._size = min(size, _CHUNK)
        self._buffer = min(max(1, memory // 8 // per_row), _BUFFER)
        self._stored: Array | None = None
        wanted = map is not None and (passes > 1 or not source.at_hand)
        if wanted and n * self.n_features * source.dtype.itemsize <= memory // 4:
            self._stored = np.empty((n, self.n_features), source.dtype)
            for rows, X in source.blocks(self._size):
                self._stored[rows] = self._features(X)

    def _features(self, X: Any) -> Any:
        return X if self.map is None else self.map.transform(X)

    def _take(self, positions: Array) -> Any:
        if self._stored is not None:
            return self._stored[positions]
        return self._features(self.source.take(positions))

    @property
    def at_hand(self) -> bool:
        """Whether any rows can be had in any order."""
        return self._stored is not None or self.source.at_hand

    def passing(self, rows: Array, how: str, rng: np.random.RandomState) -> Iterator[Part]:
        """Yield the rows of one pass: shuffled, drawn with replacement, or in order.

        Rows of a stream are shuffled among those that are read together.
        """
        if self.at_hand:
            order = _order(rows, how, rng)
            for part in row_blocks(len(order), self._size):
                yield self._take(order[part]), order[part]
            return
        if how == REPLACEMENT:
            raise ValueError(
                "sampling='replacement' draws rows from all over, and these are read as a "
                "stream; give an array, more memory, or sampling='shuffled'"
            )
        wanted = np.zeros(self.source.shape[0], bool)
        wanted[rows] = True
        for where, X in self.source.blocks(self._buffer):
            found = np.flatnonzero(wanted[where])
            if how == SHUFFLED:
                found = rng.permutation(found)
            for part in row_blocks(len(found), self._size):
                yield self._features(X[found[part]]), where.start + found[part]

    def reading(self, rows: Array) -> Iterator[Part]:
        """Yield rows, in any order, to be judged."""
        rng = np.random.RandomState(0)
        return self.passing(np.sort(rows), IN_ORDER, rng)

    def space(self, state: State) -> Space:
        """Return the space of the weights of a state."""
        is_sparse = self.map is None and sparse.issparse(next(self.source.blocks(1))[1])
        return FeatureSpace(state.W, state.V, _SPARSE_BLOCK if is_sparse else 64)


class PointRows:
    """Rows as points of a kernel expansion, after those that it has already.

    The kernel matrix is stored where rows are needed more than once and it takes at most
    half of the memory.

    Parameters
    ----------
    source : Source
    kernel : Kernel
    points : array or csr matrix of shape (k, d) or None
        Points of an earlier expansion.
    memory : int
    passes : int
    """

    at_hand = True

    def __init__(
        self, source: Source, kernel: Kernel, points: Any, memory: int, passes: int
    ) -> None:
        self.kernel, (n, d) = kernel, source.shape
        self.n_before = 0 if points is None else points.shape[0]
        self.n_features = self.n_before + n
        itemsize = source.dtype.itemsize
        # The points, their copy in the order in which they are met, and a block of K.
        needed = itemsize * (2 * self.n_features * d + 4 * 512 * min(self.n_features, 4096))
        if needed > memory and not sparse.issparse(next(source.blocks(1))[1]):
            raise MemoryBudgetError(
                f"an expansion over {self.n_features:,} points of {d} columns needs "
                f"{needed:,} bytes and memory is {memory:,}; raise memory, or give "
                "features='nystrom' or 'fourier'"
            )
        X = source.take(np.arange(n))
        if self.n_before:
            X = stacked([points, X])
        self.X = X
        self._K: Array | None = None
        if passes > 1 and itemsize * self.n_features**2 <= memory // 2:
            self._K = np.empty((self.n_features, self.n_features), source.dtype)
            for rows in row_blocks(self.n_features, 512):
                self._K[rows] = kernel(X[rows], X)

    def passing(self, rows: Array, how: str, rng: np.random.RandomState) -> Iterator[Part]:
        """Yield the rows of one pass."""
        order = _order(rows, how, rng)
        yield self.n_before + order, order

    def reading(self, rows: Array) -> Iterator[Part]:
        """Yield rows to be judged."""
        for part in row_blocks(len(rows), _CHUNK):
            yield self.n_before + rows[part], rows[part]

    def used(self, state: State, *, merge: bool = False) -> tuple[Any, State]:
        """Return the points that have a coefficient and their state; equal ones merged."""
        rows = state.W.any(axis=1)
        if state.V is not None:
            rows |= state.V.any(axis=1)
        places = np.flatnonzero(rows)
        X, state = self.X[places], state.rows(places)
        if not merge or sparse.issparse(X):
            return X, state
        _, first, place = np.unique(X, axis=0, return_index=True, return_inverse=True)
        return (X, state) if len(first) == len(X) else (X[first], state.merged(place.ravel()))

    def space(self, state: State) -> Space:
        """Return the space of the coefficients of a state."""
        if self._K is not None:
            return StoredExpansion(self._K, state.W, state.V)
        return GrowingExpansion(self.kernel, self.X, state.W, state.V)


def _order(rows: Array, how: str, rng: np.random.RandomState) -> Array:
    if how == REPLACEMENT:
        return rows[rng.randint(len(rows), size=len(rows))]
    return rng.permutation(rows) if how == SHUFFLED else rows
