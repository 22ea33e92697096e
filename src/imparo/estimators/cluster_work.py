"""What workers do: make the rows of a group of partitions, and a pass over them.

Nothing here changes what it is given, or keeps anything: a task may be done again, and
elsewhere.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from imparo.cluster import is_recipe
from imparo.data.sources import BlockSource
from imparo.engine import (
    Array,
    Engine,
    choose_engine,
    computing_on,
    host_engine,
    memory_for,
    parse_memory,
    told_of_failures,
)
from imparo.estimators.blocks import Stream
from imparo.statistics import Statistics

# The share of a worker's memory that a task may count on, beside the rows it was given.
_SHARE = 0.5


class Settings(NamedTuple):
    """What workers know of every pass."""

    n_columns: int
    dtype: str
    n_cells: int
    memory: Any
    device: Any
    precision: Any


class How:
    """How a worker makes a matrix of what it is given."""

    def __init__(self, together: bool, prepare: Callable[[Any], Any] | None) -> None:
        self._together, self._prepare = together, prepare

    def __call__(self, given: Any) -> Any:
        """Return the rows of a partition."""
        X = given.first()()[0] if is_recipe(given) else given
        X = X[0] if self._together else X
        X = check_array(
            X, accept_sparse="csr", dtype="numeric", ensure_min_samples=0,
            ensure_all_finite=False,
        )  # fmt: skip
        return X if self._prepare is None else self._prepare(X)


def cut(given: Any, how: How, shape: tuple[int, int], some: Any, dtype: str) -> Any:
    """Return some rows of a partition, which must have the shape that it had before."""
    block = how(given)
    if block.shape != shape:
        raise ValueError(
            f"a partition had {shape[0]:,} rows and {shape[1]} columns in the first pass, and "
            f"{block.shape[0]:,} and {block.shape[1]} in a later one; it must give the same "
            "rows every time"
        )
    block = block[some]
    if sparse.issparse(block):
        return sparse.csr_array(block).astype(dtype)
    return np.ascontiguousarray(block, dtype)


class Group:
    """Outputs, weights and cells of the rows of some partitions, and how to make the rows.

    Codes of −1 and 1, and cells, travel as bytes, and weights only where they are not all 1.
    ``recipes`` has None for partitions that tasks are given apart.
    """

    def __init__(
        self, recipes: list[Any], how: list[How], counts: list[int], Y: Array,
        weight: Array, cell: Array,
    ) -> None:  # fmt: skip
        self.recipes, self.how, self.counts = recipes, how, counts
        self._dtype = str(Y.dtype)
        codes = bool((np.abs(Y) == 1).all())
        self._Y = Y.astype(np.int8) if codes else Y
        self._weight = None if bool((weight == 1).all()) else weight
        self._cell = cell.astype(np.int8) if cell.max(initial=0) < 2**7 else cell

    def __sizeof__(self) -> int:
        # What Dask counts, to do the work where its inputs are.
        arrays = (self._Y, self._weight, self._cell)
        own = sum(part.nbytes for part in arrays if part is not None)
        return object.__sizeof__(self) + own + sum(map(sys.getsizeof, self.recipes))

    def stream(self, blocks: list[Any], settings: Settings, engine: Engine) -> Stream:
        """Return the stream of these rows, on a worker."""
        given = [a if b is None else b for a, b in zip(blocks, self.recipes, strict=True)]

        def opener() -> Iterator[Any]:
            for how, part in zip(self.how, given, strict=True):
                yield how(part)

        n, dtype = sum(self.counts), np.dtype(settings.dtype)
        weight = np.ones(n, self._dtype) if self._weight is None else self._weight
        source = BlockSource(opener, (n, settings.n_columns), dtype)
        memory = worker_memory(settings.memory, engine)
        Y = self._Y.astype(self._dtype, copy=False)
        return Stream(source, Y, weight, self._cell, settings.n_cells, memory, False, engine)


def worker_memory(memory: Any, engine: Engine) -> int:
    """Return the bytes that a task may use on the worker that it is done by."""
    allowed = memory_for(memory, engine)
    if engine.resident:
        return allowed
    from distributed.worker import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not on a worker
        return allowed
    limit = worker.memory_manager.memory_limit or parse_memory(None) * 2
    return min(allowed, int(_SHARE * limit / worker.state.nthreads))


class Pass:
    """A function of a stream and its arguments, as it travels to workers."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args

    def __sizeof__(self) -> int:
        from dask.sizeof import sizeof

        return object.__sizeof__(self) + int(sizeof(self.args))


def on_worker(
    settings: Settings, group: Group, blocks: list[Any], fixed: Any, made: Pass,
    by_row: Any,
) -> Any:  # fmt: skip
    """Make a pass over the rows of a group."""
    engine = choose_engine(settings.device, None, settings.precision)
    with computing_on(engine), told_of_failures(engine):
        rows = group.stream(blocks, settings, engine)
        more = () if by_row is None else (by_row,)
        return _here(made.function(rows, fixed, *made.args, *more))


def _here(found: Any) -> Any:
    """Return what a pass has found, in main memory."""
    if isinstance(found, list | tuple):
        return type(found)(_here(part) for part in found)
    if isinstance(found, Statistics):
        return found.on(host_engine())
    return host_engine().to_host(found) if hasattr(found, "device") else found
