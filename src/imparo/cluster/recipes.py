"""Recipes: what a worker needs to make the rows of a partition by itself.

A partition whose part of the graph stands alone, such as a piece of a file, is made inside
of the task that uses it and let go at once. So data of any size pass through a worker that
can hold one partition, and nothing is left for Dask to spill.
"""

from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse

# Literals that partitions share, such as a handle of a file, may be so large in every recipe.
_SMALL = 2**20


class Recipe:
    """A part of a graph, computed where it is called.

    Parameters
    ----------
    graph : dict
    keys : list
        What to compute; None stands for None.
    """

    def __init__(self, graph: dict[Any, Any], keys: list[Any]) -> None:
        self.graph, self.keys = graph, keys

    def __sizeof__(self) -> int:
        from dask.sizeof import sizeof

        return object.__sizeof__(self) + sum(sizeof(node) for node in self.graph.values())

    def __call__(self) -> list[Any]:
        """Return the values of all keys."""
        from dask.local import get_sync

        wanted = [key for key in self.keys if key is not None]
        found = iter(get_sync(self.graph, wanted))
        return [None if key is None else next(found) for key in self.keys]

    def first(self) -> "Recipe":
        """Return the recipe of the first key alone."""
        return Recipe(culled(self.graph, self.keys[:1]), self.keys[:1])


class Given:
    """Rows that travel with the recipe."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __sizeof__(self) -> int:
        rows = self.rows.data if sparse.issparse(self.rows) else self.rows
        return object.__sizeof__(self) + int(rows.nbytes)

    def __call__(self) -> list[Any]:
        """Return the rows, and no outputs or weights."""
        return [self.rows, None, None]

    def first(self) -> "Given":
        """Return itself: there are only rows."""
        return self


class FileRows:
    """Rows of a file of plain numbers, that workers map into memory.

    Parameters
    ----------
    path : str
    offset : int
        Bytes before the first row.
    shape : tuple
    dtype : dtype
    """

    def __init__(
        self, path: str, offset: int, shape: tuple[int, int], dtype: np.dtype[Any]
    ) -> None:
        self.path, self.offset, self.shape, self.dtype = path, offset, shape, dtype

    @classmethod
    def can_read(cls, X: Any) -> bool:
        """Return whether rows are a memory map of a file, one after another."""
        shared = isinstance(X, np.memmap) and X.filename is not None and X.mode != "c"
        return bool(shared and X.flags.c_contiguous)

    @classmethod
    def of(cls, X: np.memmap[Any, Any], rows: slice) -> "FileRows":
        """Return some rows of a memory map."""
        part = X[rows]
        start = X.offset + (part.__array_interface__["data"][0] - _base(X))
        return cls(str(X.filename), start, (part.shape[0], part.shape[1]), X.dtype)

    def __call__(self) -> list[Any]:
        """Return the rows, and no outputs or weights."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                count = self.shape[0] * self.shape[1]
                rows = np.fromfile(file, self.dtype, count)
        except OSError as error:
            raise OSError(
                f"a worker cannot read {self.path}: {error.strerror}; rows that do not fit in "
                "memory must lie in a folder that all workers see under the same name"
            ) from error
        return [rows.reshape(self.shape), None, None]

    def first(self) -> "FileRows":
        """Return itself: there are only rows."""
        return self


def _base(X: np.memmap[Any, Any]) -> int:
    """Return the address of the first byte that a memory map, or what it is cut from, maps."""
    while isinstance(X.base, np.memmap):
        X = X.base
    return int(X.__array_interface__["data"][0])


def is_recipe(value: Any) -> bool:
    """Return whether something makes the rows of a partition when it is called."""
    return isinstance(value, Recipe | Given | FileRows)


def recipes_of(partitions: list[Any]) -> list[Any] | None:
    """Return the recipes of partitions, or None where they do not stand alone.

    They do not where they need results that are on workers, or tasks that other partitions
    need too: these are left to Dask, which computes each of them once.

    Parameters
    ----------
    partitions : list of Partition

    Returns
    -------
    list or None
    """
    if all(isinstance(part.rows, Given | FileRows) for part in partitions):
        return [part.rows for part in partitions]
    whole: dict[int, dict[Any, Any]] = {}
    kept: list[Any] = []
    found, shared = [], Counter[Any]()
    for part in partitions:
        graph: dict[Any, Any] = {}
        keys: list[Any] = []
        for value in (part.rows, part.outputs, part.weights):
            if value is None:
                keys.append(None)
                continue
            if not hasattr(value, "__dask_graph__"):
                return None
            given = value.__dask_graph__()
            if id(given) not in whole:
                kept.append(given)  # so that its identity is not that of another
                whole[id(given)] = dict(given)
                layers = getattr(given, "layers", {}).values()
                if any(layer.annotations for layer in layers):
                    return None  # such as the workers that can read a file
                if any(_is_future(node) for node in whole[id(given)].values()):
                    return None
            if value.key not in whole[id(given)]:
                return None
            graph |= culled(whole[id(given)], [value.key])
            keys.append(value.key)
        found.append(Recipe(graph, keys))
        shared.update(graph.keys())
    for recipe in found:
        for key, node in recipe.graph.items():
            if shared[key] > 1 and not _is_small(node):
                return None
    return found


def culled(graph: dict[Any, Any], keys: list[Any]) -> dict[Any, Any]:
    """Return the part of a graph that some keys need."""
    from dask.optimization import cull

    return dict(cull(graph, [key for key in keys if key is not None])[0])


def _is_future(node: Any) -> bool:
    return type(node).__module__.partition(".")[0] == "distributed"


def _is_small(node: Any) -> bool:
    """Return whether a node is data that may be copied into every recipe."""
    from dask.sizeof import sizeof

    return type(node).__name__ == "DataNode" and sizeof(node) <= _SMALL
