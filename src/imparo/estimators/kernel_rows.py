"""Products with K_nm, block by block: stored, or computed anew at every pass."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imparo.engine import Array, Engine, with_smaller_blocks
from imparo.errors import MemoryBudgetError
from imparo.estimators.blocks import Block, Stream
from imparo.features import FeatureMap
from imparo.scores import Score

# The share of the memory of a device that rows may take to stay there.
_SHARE_OF_ROWS = 4


class Values(NamedTuple):
    """Kernel values of some rows of a block, with what belongs to these rows."""

    K: Array
    Y: Array
    weight: Array
    positions: Array
    engine: Engine


@dataclass(frozen=True)
class Sums:
    """K_nmᵀWY, K_nmᵀw, Yᵀw and Σw, in main memory."""

    b: Array
    feature_sum: Array
    output_sum: Array
    weight: float


class KernelRows:
    """K(x, X̃) of all rows, as an operator.

    Cost 4nmT for a product, and 2nmd to compute K_nm, once where it is stored. On a device
    the rows themselves stay there where they take a quarter of its memory at most.

    Parameters
    ----------
    rows : Stream
    map : FeatureMap
        Its ``evaluate`` is K(x, X̃).
    store : bool
        Whether K_nm is kept.
    """

    def __init__(self, rows: Stream, map: FeatureMap, *, store: bool) -> None:
        self.rows, self.map = rows, map
        self._store = store
        self._size = rows.block_size(len(map))
        self._kept: list[Block] | None = None
        self._stored: list[tuple[Block, Array]] | None = None
        n, d = rows.source.shape
        itemsize = rows.source.dtype.itemsize
        self._keep = (
            not store
            and rows.engine.resident
            and map.portable
            and (n * d * itemsize * _SHARE_OF_ROWS <= rows.memory)
        )
        need = itemsize * int((rows.cell >= 0).sum()) * len(map)
        if store and need > rows.memory:
            raise MemoryBudgetError(
                f"features of {n:,} rows and {len(map):,} centers need {need:,} bytes and "
                f"memory is {rows.memory:,}; raise memory or use fewer centers"
            )

    def _blocks(self) -> Iterator[Block]:
        if self._kept is not None:
            yield from self._kept
            return
        kept = []
        for block in self.rows.blocks(self.map, self._size, "kernel"):
            if self._keep:
                kept.append(block)
            yield block
        if self._keep:
            self._kept = kept

    def _computed(self) -> Iterator[tuple[Block, Array]]:
        if self._stored is not None:
            yield from self._stored
            return
        stored = []
        for block in self._blocks():
            K = block.features(self.map)
            if self._store:
                stored.append((block._replace(X=None), K))
            yield block, K
            del K
        if self._store:
            self._stored = stored

    def values(self, cells: Array) -> Iterator[Values]:
        """Yield kernel values, outputs and weights of the rows of some cells.

        Parameters
        ----------
        cells : boolean array of shape (C,)

        Yields
        ------
        Values
        """
        # Neighbouring cells are one slice: no copy where all rows are wanted.
        edges = np.flatnonzero(np.diff(np.concatenate([[0], cells.astype(int), [0]])))
        for block, K in self._computed():
            for first, last in edges.reshape(-1, 2):
                some = slice(block.bounds[first], block.bounds[last])
                if some.stop > some.start:
                    yield Values(
                        K[some], block.Y[some], block.weight[some], block.positions[some],
                        block.engine,
                    )  # fmt: skip

    def _whole(self, work: Callable[[], Any]) -> Any:
        """Do a pass, again in smaller blocks where a device runs out of memory."""

        def attempt(size: int) -> Any:
            if size != self._size:
                self._size, self._kept, self._stored = size, None, None
                # What is kept does not shrink with the blocks.
                self._store = self._keep = False
            return work()

        return with_smaller_blocks(attempt, self._size, self.rows.engine)

    def sums(self, cells: Array, dtype: np.dtype[Any] | None = None) -> Sums:
        """Return K_nmᵀWY and the sums of some cells: one pass.

        Parameters
        ----------
        cells : boolean array of shape (C,)
        dtype : dtype, optional
            Of the products; that of the rows if left out.

        Returns
        -------
        Sums
        """

        def work() -> Sums:
            m, n_outputs = len(self.map), self.rows.Y.shape[1]
            b, outputs, weight = np.zeros((m, n_outputs + 1)), np.zeros(n_outputs), 0.0
            for part in self.values(cells):
                engine, w = part.engine, part.weight[:, None]
                wide = engine.xp.column_stack([part.Y * w, w])
                K = part.K if dtype is None else engine.cast(part.K, dtype)
                wide = engine.cast(wide, engine.type_of(K))
                b += engine.to_host(engine.product(K.T, wide))
                sums = engine.to_host(wide)[:, :-1].sum(axis=0, dtype=np.float64)
                outputs += sums
                weight += float(part.weight.sum(dtype=engine.xp.float64))
            return Sums(b[:, :-1], b[:, -1], outputs, weight)

        return self._whole(work)

    def product(
        self,
        fitted: Array,
        alpha: Array,
        row_weights: Array | None = None,
        predictions: Array | None = None,
        held: Array | None = None,
        mean: Array | None = None,
        dtype: np.dtype[Any] | None = None,
        kept: Array | None = None,
    ) -> Array:
        """Return K_nmᵀWK_nm·α over some cells, and keep K_nm·α of these and other cells.

        Parameters
        ----------
        fitted : boolean array of shape (C,)
        alpha : array of shape (m, T)
            Of the engine of the rows.
        row_weights : array of shape (n, T), optional
            Weights of every row and output; those of the rows if left out.
        predictions : array of shape (n, T), optional
            Is filled with K_nm·α; of the engine of the rows.
        held : boolean array of shape (C,), optional
            Cells that are predicted and not multiplied back.
        mean : array of shape (T,), optional
            Taken out of K_nm·α before it is multiplied back: the mean of the features times α.
        dtype : dtype, optional
            Of the products; that of the rows if left out.
        kept : boolean array of shape (C,), optional
            Cells whose K_nm·α is kept in ``predictions``; all that are computed if left out.

        Returns
        -------
        array of shape (m, T)
            float64, of the engine of the rows.
        """
        home, number = self.rows.engine, np.dtype(np.float64)
        kind = self.rows.source.dtype if dtype is None else dtype
        wanted = fitted if held is None else fitted | held

        def work() -> Array:
            images = {e: e.zeros(tuple(alpha.shape), number) for e in home.replicas}
            there = {e: e.asarray(alpha, kind) for e in home.replicas}
            for block, K in self._computed():
                engine = block.engine
                K = engine.cast(K, kind)
                for cell in np.flatnonzero(wanted):
                    some = slice(block.bounds[cell], block.bounds[cell + 1])
                    if some.start == some.stop:
                        continue
                    F = engine.product(K[some], there[engine])
                    positions = block.positions[some]
                    if predictions is not None and (kept is None or kept[cell]):
                        at = home.asarray(positions)
                        predictions[at] = home.asarray(F, home.type_of(predictions))
                    if not fitted[cell]:
                        continue
                    if mean is not None:
                        F = F - engine.asarray(mean, kind)
                    if row_weights is None:
                        F = F * block.weight[some][:, None]
                    else:
                        F = F * engine.asarray(row_weights[home.asarray(positions)])
                    F = engine.cast(F, engine.type_of(K))
                    images[engine] += engine.product(K[some].T, F)
            return self._added(images)

        return self._whole(work)

    def _added(self, images: dict[Engine, Array]) -> Array:
        """Return the sum of what every device has found, on the first."""
        first, *others = images.values()
        for other in others:
            first += self.rows.engine.asarray(other)
        return first

    def back(self, cells: Array, G: Array, dtype: np.dtype[Any]) -> Array:
        """Return K_nmᵀG over some cells, in products of a type: one pass. G is (n, T)."""
        home = self.rows.engine

        def work() -> Array:
            images = {
                e: e.zeros((len(self.map), G.shape[1]), np.dtype(np.float64))
                for e in home.replicas
            }
            for part in self.values(cells):
                engine = part.engine
                some = engine.asarray(G[home.asarray(part.positions)])
                some = engine.cast(some, dtype)
                images[engine] += engine.product(engine.cast(part.K, dtype).T, some)
            return self._added(images)

        return self._whole(work)

    def score(self, cells: Array, alpha: Array, intercepts: Array, score: Score) -> Array:
        """Return the sums of errors of L models on the rows of some cells. Cost 2nmLT.

        Parameters
        ----------
        cells : boolean array of shape (C,)
        alpha : array of shape (m, L, T)
        intercepts : array of shape (L, T)
        score : Score

        Returns
        -------
        array of shape (2, L)
        """
        m, n_models, n_outputs = alpha.shape
        dtype = self.rows.source.dtype
        flat = alpha.reshape(m, n_models * n_outputs)

        def work() -> Array:
            sums = np.zeros((2, n_models))
            there = {
                e: (e.asarray(flat, dtype), e.asarray(intercepts))
                for e in self.rows.engine.replicas
            }
            for part in self.values(cells):
                engine, (coef, shift) = part.engine, there[part.engine]
                F = engine.product(part.K, coef).reshape(len(part.K), n_models, n_outputs)
                sums += engine.to_host(score(part.Y, F + shift, part.weight))
            return sums

        return self._whole(work)
