"""Rows on a cluster to learn from: passes over them that workers make.

A pass is a function of a stream of rows. A worker makes the stream of its group of partitions
and calls the function; results are added on the workers (:mod:`imparo.cluster.sums`). Rows stay
where they are. Outputs, weights and cells are here too: a number for every row and output,
where a row costs m of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imparo.cluster import WorkersReplacedError, task, tree_sum
from imparo.cluster.team import died_again, most_deaths
from imparo.engine import Array, Engine
from imparo.errors import ClusterError
from imparo.estimators.blocks import Stream
from imparo.estimators.cluster_source import ClusterSource, Rows, grouped, spread
from imparo.estimators.cluster_work import Group, Pass, Settings, on_worker

# What people are told that workers do.
_WORDS = {
    "_statistics": "summing statistics",
    "_growth": "growing",
    "_scores": "scoring",
    "_largest_value": "looking at kernel values",
}


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _done(found: Any) -> bool:
    return True


@dataclass(frozen=True)
class ClusterStream(Stream):
    """Rows on a cluster to learn from: passes are made by the workers.

    Attributes
    ----------
    groups : list of lists of int
        Partitions that are summed together.
    homes : list of str
        The worker that is to do it, for every group.
    settings : Settings
    """

    groups: list[list[int]] = field(default_factory=list)
    homes: list[str] = field(default_factory=list)
    settings: Settings | None = None
    _held: list[Any] = field(default_factory=list)
    _fixed: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def _rows(self) -> Rows:
        source: Any = self.source
        return source.rows

    @property
    def precision(self) -> str:
        """How workers sum products, as far as that was asked for."""
        source: Any = self.source
        return source.precision if source.precision and source.device else super().precision

    @property
    def distributed(self) -> bool:
        """True: passes are made by the workers."""
        return True

    def positions(self, group: int) -> Array:
        """Return the positions among all of the rows of a group."""
        rows = self._rows
        return np.concatenate(
            [np.arange(s.start, s.stop) for s in map(rows.slice, self.groups[group])]
        )

    @classmethod
    def of(
        cls, source: ClusterSource, Y: Array, weight: Array, cell: Array, n_cells: int,
        memory: int, progress: Any, engine: Engine, worker_memory: Any,
    ) -> "ClusterStream":  # fmt: skip
        """Return rows with outputs, weights and cells, which workers are given their part of.

        Parameters
        ----------
        source : ClusterSource
        Y, weight, cell, n_cells, memory, progress, engine
            As for :class:`Stream`; memory and engine are those of this machine.
        worker_memory : int, str, dict or None
            Bytes that a task may use.

        Returns
        -------
        ClusterStream
        """
        settings = Settings(
            source.shape[1], str(source.dtype), n_cells, worker_memory, source.device,
            source.precision,
        )  # fmt: skip
        stream = cls(
            source, Y, weight, cell, n_cells, memory, progress, engine,
            *grouped(source.rows, source.shape[1] * source.dtype.itemsize), settings,
        )  # fmt: skip
        stream._send_groups()
        return stream

    def _send_groups(self) -> None:
        """Give workers the outputs, weights and cells of their rows: once for all passes."""
        rows = self._rows
        self._held.clear()
        for g, members in enumerate(self.groups):
            at = self.positions(g)
            group = Group(
                [rows.recipe(i) for i in members], [rows.how(i) for i in members],
                [rows.counts[i] for i in members],
                self.Y[at], self.weight[at], self.cell[at],
            )  # fmt: skip
            self._held.append(rows.team.hold(group, "group", self.homes[g]))

    def sum(self, function: Callable[..., Any], fixed: Any, *args: Any) -> Any:
        """Return the sum over all groups of ``function(rows of a group, fixed, *args)``.

        Parameters
        ----------
        function : callable
            At the top of a module, so that workers find it.
        fixed : object
            What many passes need, such as a map: it is sent once.
        *args
            What this pass needs.

        Returns
        -------
        object
        """

        def work(found: list[Any]) -> tuple[list[Any], list[Any]]:
            return [tree_sum(found, "sum")], [task(_done, "done", one) for one in found]

        (total,) = self._computed(work, function, fixed, args)
        return total

    def each(self, function: Callable[..., Any], fixed: Any, *args: Any) -> list[Any]:
        """Return what ``function(rows of a group, fixed, *args)`` gives for every group."""
        return self._computed(lambda found: (found, found), function, fixed, args)

    def sum_and_rows(
        self, function: Callable[..., Any], fixed: Any, *args: Any, by_row: Array | None = None
    ) -> tuple[Any, list[Any]]:
        """Return the sum of the first of two results over all groups, and all of the second.

        Parameters
        ----------
        function : callable
        fixed : object
        *args
        by_row : array of shape (n, …), optional
            Of which every group is given its rows, as the last argument.

        Returns
        -------
        sum : object
        rows : list
        """

        def work(found: list[Any]) -> tuple[list[Any], list[Any]]:
            sums = tree_sum([task(_first, "first", pair) for pair in found])
            return [sums, *(task(_second, "second", pair) for pair in found)], []

        total, *parts = self._computed(work, function, fixed, args, by_row)
        return total, parts

    def _computed(
        self, work: Callable[[list[Any]], tuple[list[Any], list[Any]]],
        function: Callable[..., Any], fixed: Any, args: tuple[Any, ...],
        by_row: Array | None = None,
    ) -> list[Any]:  # fmt: skip
        """Return what is wanted of a pass, made again where all workers were replaced."""
        team, what = self._rows.team, _WORDS.get(function.__name__, "iterating")
        for _ in range(1 + most_deaths()):
            wanted, steps = work(self._tasks(function, fixed, args, by_row))
            progress = self.progress if steps else False
            try:
                return team.compute(wanted, what, progress, steps, self.homes)
            except WorkersReplacedError:
                self.homes[:] = spread(len(self.groups), team.slots())
                self._fixed.clear()
                self._send_groups()
        raise ClusterError(died_again(what))

    def _tasks(
        self, function: Callable[..., Any], fixed: Any, args: tuple[Any, ...],
        by_row: Array | None = None,
    ) -> list[Any]:  # fmt: skip
        rows = self._rows
        if id(fixed) not in self._fixed:
            self._fixed[id(fixed)] = fixed, rows.team.hold(fixed, "model")
        shipped = self._fixed[id(fixed)][1]
        made = rows.team.hold(Pass(function, args), "pass")
        name = function.__name__.strip("_").replace("_", "-")
        found = []
        for g, members in enumerate(self.groups):
            blocks = [None if rows.recipe(i) else rows.given(i) for i in members]
            mine = None if by_row is None else by_row[self.positions(g)]
            found.append(
                task(on_worker, name, self.settings, self._held[g], blocks, shipped, made,
                     mine, worker=self.homes[g])
            )  # fmt: skip
        return found

    def forget(self, fixed: Any) -> None:
        """Let workers drop what was sent for many passes."""
        self._fixed.pop(id(fixed), None)
