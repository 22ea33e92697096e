"""Rows in blocks, sorted by cell, where an engine computes: what every pass is made of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from imparo.data.sources import Source
from imparo.engine import Array, Engine, host_engine, is_tensor, rows_within
from imparo.engine.sending import sent_ahead
from imparo.features import FeatureMap
from imparo.progress import track

# Rows of a block that products of features are fastest with.
_HIGH = 1024


class Block(NamedTuple):
    """Rows of a pass, sorted by cell, where an engine computes.

    Attributes
    ----------
    X, Y, weight : arrays of shape (b, d), (b, T) and (b,)
        X in main memory where a map cannot take it elsewhere.
    bounds : array of shape (C + 1,)
        Where the cells begin and end.
    positions : array of shape (b,)
        Of the rows among all.
    engine : Engine
    """

    X: Any
    Y: Array
    weight: Array
    bounds: Array
    positions: Array
    engine: Engine

    def features(self, map: FeatureMap, start: int = 0, stop: int | None = None) -> Array:
        """Return ``map.evaluate`` of the rows, where the engine computes."""
        return self.engine.asarray(map.evaluate(self.X, start, stop))


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
        Bytes that may be used where the engine computes.
    progress : bool or callable
    engine : Engine
        Where blocks are computed.
    """

    source: Source
    Y: Array
    weight: Array
    cell: Array
    n_cells: int
    memory: int
    progress: Any
    engine: Engine = field(default_factory=host_engine)

    @property
    def precision(self) -> str:
        """How products are summed: "float64", "float32" or "split"."""
        return self.engine.precision if self.engine.resident else "float64"

    @property
    def distributed(self) -> bool:
        """Whether passes are made by the workers of a cluster."""
        return False

    def sum(self, function: Callable[..., Any], fixed: Any, *args: Any) -> Any:
        """Return ``function(self, fixed, *args)``: on a cluster, its sum over parts.

        Parameters
        ----------
        function : callable
            Gives what can be added: numbers, arrays, statistics, or tuples of them.
        fixed : object
            What more than one pass needs, such as a map.
        *args
            What this pass needs.

        Returns
        -------
        object
        """
        return function(self, fixed, *args)

    def each(self, function: Callable[..., Any], fixed: Any, *args: Any) -> list[Any]:
        """Return ``[function(self, fixed, *args)]``: on a cluster, one for each part."""
        return [function(self, fixed, *args)]

    def forget(self, fixed: Any) -> None:
        """Tell that no further pass needs what was fixed."""

    def block_size(self, n_columns: int) -> int:
        """Return how many rows a block of so many features has."""
        itemsize = self.source.dtype.itemsize
        per_row = (4 * max(1, n_columns) + 3 * self.source.shape[1]) * itemsize
        if self.engine.resident:
            # Features, the same in float64, and weighted.
            per_row = (8 + 8 + itemsize) * max(1, n_columns) + 4 * 8 * self.source.shape[1]
            size = min(self.memory // 4, self.engine.block_bytes) // per_row
            return max(1, min(size, self.source.shape[0]))
        size = rows_within(per_row, self.memory // 4, "one row of features")
        # Statistics of many columns are read and written with every block: it should be high.
        return max(size, min(_HIGH, self.memory // (8 * per_row)))

    def blocks(self, map: FeatureMap, size: int, what: str) -> Iterator[Block]:
        """Yield the rows in blocks of a size."""
        n_blocks = -(-self.source.shape[0] // size)
        sent = track(self._sent(map, size), n_blocks, what, self.progress)
        if self.engine.resident:
            yield from self._sorted_there(sent)
            return
        for rows, X, engine in sent:
            cell = self.cell[rows]
            positions = np.arange(rows.start, rows.stop)
            Y, weight = self.Y[rows], self.weight[rows]
            if self.n_cells > 1 or (cell < 0).any():
                # Sorted before the kernel is evaluated: rows of X are shorter than those of K.
                order = np.argsort(cell, kind="stable")
                order = order[np.searchsorted(cell[order], 0) :]
                X, Y, weight, cell = X[order], Y[order], weight[order], cell[order]
                positions = positions[order]
            bounds = np.searchsorted(cell, np.arange(self.n_cells + 1))
            yield Block(X, Y, weight, bounds, positions, engine)

    def _sorted_there(self, sent: Iterator[tuple[slice, Any, Engine]]) -> Iterator[Block]:
        """Yield blocks sorted by cell on the device, which never waits for the host."""
        cells = self.cell.astype(np.int64)
        there = {
            e: tuple(e.asarray(part) for part in (self.Y, self.weight, cells))
            for e in self.engine.replicas
        }
        for rows, X, engine in sent:
            (Y, weight, cell), xp = (part[rows] for part in there[engine]), engine.xp
            counts = np.bincount(cells[rows] + 1, minlength=self.n_cells + 1)
            bounds = np.concatenate([[0], np.cumsum(counts[1:])])
            start: Any = rows.start
            positions = xp.arange(start, rows.stop, device=cell.device)
            if self.n_cells > 1 or counts[0]:
                order = xp.argsort(cell, stable=True)[counts[0] :]
                Y, weight, positions = Y[order], weight[order], positions[order]
                X = X[order if is_tensor(X) else engine.to_host(order)]
            yield Block(X, Y, weight, bounds, positions, engine)

    def _sent(self, map: FeatureMap, size: int) -> Iterator[tuple[slice, Any, Engine]]:
        engines, blocks = self.engine.replicas, self.source.blocks(size)
        if self.engine.resident and map.portable:
            yield from sent_ahead(blocks, engines)
            return
        for number, (rows, X) in enumerate(blocks):
            yield rows, X, engines[number % len(engines)]
