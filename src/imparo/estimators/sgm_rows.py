"""Rows as a sweep takes them: their features, or their places among the points."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from imparo.data.sources import Source, stacked
from imparo.engine import (
    CACHED_COLUMNS,
    Array,
    computing_on,
    default_engine,
    row_blocks,
    rows_within,
)
from imparo.errors import MemoryBudgetError
from imparo.features import FeatureMap
from imparo.kernels import Kernel
from imparo.sgm import FeatureSpace, GrowingExpansion, Space, State, StoredExpansion
from imparo.sgm.state import in_use

#: What a sweep is handed: rows as its space takes them, and their positions.
Part = tuple[Any, Array]

REPLACEMENT, SHUFFLED = "replacement", "shuffled"
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
        self._engine = default_engine()
        n, d = source.shape
        self.n_features = d if map is None else len(map)
        self._sparse = sparse.issparse(next(source.blocks(1))[1])
        # Sparse rows take the room of their entries, each a number and its column.
        width = 2 * _entries(source) if self._sparse else d
        columns = width if map is None else len(map)
        per_row = source.dtype.itemsize * (4 * columns + 3 * width)
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
        if self.map is None:
            return X
        with computing_on(self._engine):
            return self.map.transform(X)

    def _take(self, positions: Array) -> Any:
        if self._stored is not None:
            return self._stored[positions]
        return self._features(self.source.take(positions))

    @property
    def at_hand(self) -> bool:
        """Whether any rows can be had in any order."""
        return self._stored is not None or self.source.at_hand

    def passing(self, rows: Array, how: str, rng: np.random.RandomState) -> Iterator[Part]:
        """Yield the rows of one pass: shuffled, or drawn with replacement.

        Rows of a stream are shuffled among those that are read together.
        """
        if self.at_hand:
            yield from self._taken(_order(rows, how, rng))
        elif how == REPLACEMENT:
            raise ValueError(
                "sampling='replacement' draws rows from all over, and these are read as a "
                "stream; give an array, more memory, or sampling='shuffled'"
            )
        else:
            yield from self._streamed(rows, rng.permutation)

    def reading(self, rows: Array) -> Iterator[Part]:
        """Yield rows in the order in which they are stored."""
        if self.at_hand:
            return self._taken(np.sort(rows))
        return self._streamed(rows, lambda found: found)

    def _taken(self, order: Array) -> Iterator[Part]:
        for part in row_blocks(len(order), self._size):
            yield self._take(order[part]), order[part]

    def _streamed(self, rows: Array, arranged: Callable[[Array], Array]) -> Iterator[Part]:
        wanted = np.zeros(self.source.shape[0], bool)
        wanted[rows] = True
        for where, X in self.source.blocks(self._buffer):
            found = arranged(np.flatnonzero(wanted[where]))
            for part in row_blocks(len(found), self._size):
                yield self._features(X[found[part]]), where.start + found[part]

    def space(self, state: State) -> Space:
        """Return the space of the weights of a state."""
        is_sparse = self.map is None and self._sparse
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
    n_sweeps : int
        Sweeps at the same time, each with points of its own order.
    n_held : int
        Kernel matrices at the same time: the best width is kept beside the next.
    """

    def __init__(
        self, source: Source, kernel: Kernel, points: Any, memory: int, passes: int,
        n_sweeps: int = 1, n_held: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, (n, d) = kernel, source.shape
        self.n_before = 0 if points is None else points.shape[0]
        self.n_features = self.n_before + n
        itemsize = source.dtype.itemsize
        stored = passes > 1 and n_held * itemsize * self.n_features**2 <= memory // 2
        # The points, copies in the order in which they are met, and a block of K with what
        # distances need: points centered, and these with their norms.
        copies = 2 if stored else n_held * (1 + n_sweeps)
        block = (4 * 512 + 3 * d) * min(self.n_features, CACHED_COLUMNS)
        needed = itemsize * (copies * self.n_features * d + block)
        if needed > memory and not sparse.issparse(next(source.blocks(1))[1]):
            raise MemoryBudgetError(
                f"an expansion over {self.n_features:,} points of {d} columns needs "
                f"{needed:,} bytes and memory is {memory:,}; raise memory, or give "
                "features='nystrom' or 'fourier'"
            )
        X = next(source.blocks(n))[1] if source.at_hand else source.take(np.arange(n))
        if self.n_before:
            X = stacked([points, X])
        self.X = X
        self._K: Array | None = None
        if stored:
            self._K = np.empty((self.n_features, self.n_features), source.dtype)
            for columns in row_blocks(self.n_features, CACHED_COLUMNS):
                for rows in row_blocks(self.n_features, 512):
                    self._K[rows, columns] = kernel(X[rows], X[columns])

    def passing(self, rows: Array, how: str, rng: np.random.RandomState) -> Iterator[Part]:
        """Yield the rows of one pass."""
        order = _order(rows, how, rng)
        yield self.n_before + order, order

    def reading(self, rows: Array) -> Iterator[Part]:
        """Yield rows in the order in which they are stored."""
        rows = np.sort(rows)
        for part in row_blocks(len(rows), _CHUNK):
            yield self.n_before + rows[part], rows[part]

    def used(self, state: State, *, merge: bool = False) -> tuple[Any, State]:
        """Return the points that have a coefficient and their state; equal ones merged."""
        places = in_use(state.W, state.V)
        X, state = self.X[places], state.rows(places)
        if not merge:
            return X, state
        first, place = _distinct(X)
        return (X, state) if len(first) == len(place) else (X[first], state.merged(place))

    def space(self, state: State) -> Space:
        """Return the space of the coefficients of a state."""
        if self._K is not None:
            return StoredExpansion(self._K, state.W, state.V)
        return GrowingExpansion(self.kernel, self.X, state.W, state.V)


def _distinct(X: Any) -> tuple[Array, Array]:
    """Return the first of equal rows, and for every row which of these it is."""
    if not sparse.issparse(X):
        _, first, place = np.unique(X, axis=0, return_index=True, return_inverse=True)
        return first, place.ravel()
    X = X.copy()
    X.sum_duplicates()
    known: dict[bytes, int] = {}
    firsts: list[int] = []
    place = np.empty(X.shape[0], np.intp)
    for i, (start, stop) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True)):
        row = X.indices[start:stop].tobytes() + X.data[start:stop].tobytes()
        if row not in known:
            known[row] = len(firsts)
            firsts.append(i)
        place[i] = known[row]
    return np.array(firsts, np.intp), place


def _entries(source: Source) -> int:
    """Return how many entries a sparse row has, by the first rows."""
    X = next(source.blocks(_CHUNK))[1]
    return -(-X.nnz // max(1, X.shape[0])) + 1


def _order(rows: Array, how: str, rng: np.random.RandomState) -> Array:
    if how == REPLACEMENT:
        return rows[rng.randint(len(rows), size=len(rows))]
    return rng.permutation(rows)
