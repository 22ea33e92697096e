"""A source of rows that are on a cluster, and how their partitions are grouped."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from imparo.cluster import Partition, Team, is_recipe, task
from imparo.cluster.costs import COPIES, INPUTS, most_columns, n_groups
from imparo.data.sources import stacked
from imparo.engine import Array
from imparo.estimators.cluster_work import How, cut


class Rows:
    """Partitions of a source: where they are, how many rows each has, and what becomes of them.

    Parameters
    ----------
    team : Team
    parts : list of Partition
        Those with rows.
    recipes : list or None
        How workers make the partitions by themselves; None where Dask does.
    held : list
        Futures of recipes that are large, because they hold rows; None for others.
    counts : list of int
    prepare : callable, optional
        From a block of rows to the rows that are learned from.
    """

    def __init__(
        self, team: Team, parts: list[Partition], recipes: list[Any] | None, held: list[Any],
        counts: list[int], prepare: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self.team, self.parts, self.recipes, self.held = team, parts, recipes, held
        self.counts, self.prepare = counts, prepare
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def given(self, i: int) -> Any:
        """Return what a task is given to make partition i from."""
        small = self.recipe(i)
        if small is not None:
            return small
        return self.parts[i].rows if self.held[i] is None else self.held[i]

    def recipe(self, i: int) -> Any | None:
        """Return the recipe of partition i, if there is one that is small."""
        if self.recipes is None or self.held[i] is not None:
            return None
        return self.recipes[i].first()

    def homes(self) -> list[str]:
        """Return the worker that has each partition, "" where none has or nobody knows."""
        futures = [
            held_future(part.rows) if mine is None else mine
            for part, mine in zip(self.parts, self.held, strict=True)
        ]
        if any(future is None for future in futures):
            return [""] * len(futures)
        return self.team.where(futures)

    def how(self, i: int) -> How:
        """Return how a worker makes rows of what it is given for partition i."""
        return How(self.parts[i].together, self.prepare)

    def slice(self, i: int) -> slice:
        """Return the positions of the rows of partition i among all."""
        return slice(int(self.starts[i]), int(self.starts[i + 1]))


class ClusterSource:
    """Rows on a cluster.

    Parameters
    ----------
    rows : Rows
    n_columns : int
    dtype : dtype
        float32 or float64.
    device, precision : str or None
        Where workers compute.
    """

    def __init__(
        self, rows: Rows, n_columns: int, dtype: np.dtype[Any], device: Any, precision: Any
    ) -> None:
        self.rows, self._shape = rows, (sum(rows.counts), n_columns)
        self._dtype, self.device, self.precision = dtype, device, precision

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The floating-point type of the blocks."""
        return self._dtype

    @property
    def at_hand(self) -> bool:
        """False: every look at a row asks the workers."""
        return False

    def prepared(self, inputs: Any) -> "ClusterSource":
        """Return the same rows, prepared on the workers by fitted ``inputs``."""
        rows = self.rows
        same = Rows(
            rows.team, rows.parts, rows.recipes, rows.held, rows.counts, inputs.transform
        )
        columns = len(inputs.sources_)
        return ClusterSource(same, columns, self._dtype, self.device, self.precision)

    def blocks(self, size: int) -> Iterator[tuple[slice, Any]]:
        """Yield positions and rows, in order: each block is cut, and sent, on its own."""
        for i, count in enumerate(self.rows.counts):
            start = self.rows.slice(i).start
            for first in range(0, count, size):
                some = slice(first, min(first + size, count))
                (block,) = self._taken([(i, some)], "reading rows")
                yield slice(start + some.start, start + some.stop), block

    def take(self, positions: Array) -> Any:
        """Return some rows, in the order of ``positions``; no others leave the workers."""
        positions = np.asarray(positions)
        order = np.argsort(positions, kind="stable")
        wanted = positions[order]
        edges = np.searchsorted(wanted, self.rows.starts)
        cuts = [
            (i, wanted[first:last] - self.rows.starts[i])
            for i, (first, last) in enumerate(pairwise(edges))
            if last > first
        ]
        found = self._taken(cuts, "taking rows")
        back = np.empty(len(order), np.intp)
        back[order] = np.arange(len(order))
        if not found:
            return np.empty((0, self.shape[1]), self._dtype)
        return stacked(found)[back]

    def _taken(self, cuts: list[tuple[int, Any]], what: str) -> list[Any]:
        rows = self.rows
        wanted = [
            task(cut, "rows", rows.given(i), rows.how(i), (rows.counts[i], self.shape[1]), some,
                 str(self._dtype))
            for i, some in cuts
        ]  # fmt: skip
        return rows.team.compute(wanted, what)

    def most_columns(self, n_cells: int) -> int | None:
        """Return the most features whose statistics workers can hold, if that is known."""
        limit = self.rows.team.memory_limit()
        if limit is None:
            return None
        largest = max(self.rows.counts) * self.shape[1] * self._dtype.itemsize
        if self.rows.recipes is None:
            largest = max(largest, int(INPUTS * limit[0] / limit[1] / COPIES))
        return most_columns(*limit, n_cells, largest)


def grouped(rows: Rows, row_bytes: int) -> tuple[list[list[int]], list[str]]:
    """Return which partitions are summed together, and the workers that are to do it.

    Neighbours, or, where rows are on workers already, those of the same worker. Groups of a
    worker are neighbours, so that most sums are made within one.
    """
    n, slots = sum(rows.counts), rows.team.slots()
    target = -(-n // n_groups(n, len(slots), len(rows.counts)))
    limit = rows.team.memory_limit()
    if rows.recipes is None and limit is not None:
        # A task has all partitions of its group at once where Dask makes them.
        target = max(1, min(target, int(INPUTS * limit[0] / limit[1]) // row_bytes))
    homes = rows.homes()
    groups: list[list[int]] = []
    places: list[str] = []
    for home in dict.fromkeys(homes):
        size = target
        for i in (i for i, place in enumerate(homes) if place == home):
            if size >= target:
                groups.append([])
                places.append(home)
                size = 0
            groups[-1].append(i)
            size += rows.counts[i]
    if not any(places):
        places = spread(len(groups), slots)
    return groups, places


def spread(count: int, slots: list[str]) -> list[str]:
    """Return a worker for each of so many groups, the same one for neighbours."""
    return [slots[g * len(slots) // count] for g in range(count)]


def held_future(value: Any) -> Any | None:
    """Return the future that a partition is, if it is one."""
    if type(value).__module__.partition(".")[0] == "distributed":
        return value
    if is_recipe(value):
        return None
    graph = value.__dask_graph__() if hasattr(value, "__dask_graph__") else {}
    node: Any = graph.get(value.key) if value.key in graph else None
    while type(node).__name__ == "Alias" and node.target in graph:
        node = graph[node.target]
    is_future = type(node).__module__.partition(".")[0] == "distributed"
    return node if is_future else None
