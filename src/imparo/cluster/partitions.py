"""From collections of Dask to partitions of rows, without computing any."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from imparo.cluster.recipes import FileRows, Given
from imparo.engine import row_blocks
from imparo.extras import require

# Rows in memory are cut into parts of about so many bytes.
_PART_BYTES = 32 * 2**20


class Partition(NamedTuple):
    """Rows that are somewhere, or will be.

    Attributes
    ----------
    rows : Delayed, Future or recipe
        Gives a matrix or a data frame; a pair or triple if ``together``.
    outputs, weights : the same, or None
    together : bool
        Whether ``rows`` gives (X, y) or (X, y, sample_weight).
    """

    rows: Any
    outputs: Any = None
    weights: Any = None
    together: bool = False


class Partitions(NamedTuple):
    """All partitions, and what the user has in main memory beside them.

    Attributes
    ----------
    parts : list of Partition
    y, weight : arrays or None
        Outputs and weights of all rows that are here, not in the parts.
    names : list of str or None
        Of the columns, where rows are data frames.
    """

    parts: list[Partition]
    y: Any = None
    weight: Any = None
    names: list[Any] | None = None


def is_dask(values: Any) -> bool:
    """Return whether something is a collection of Dask, or a list of delayed objects.

    Parameters
    ----------
    values : object

    Returns
    -------
    bool

    Examples
    --------
    >>> import dask.array as da
    >>> from imparo.cluster import is_dask
    >>> is_dask(da.ones((4, 2))), is_dask([[1.0, 2.0]])
    (True, False)
    """
    if isinstance(values, list | tuple):
        return len(values) > 0 and (
            _is_lazy(values[0])
            or (isinstance(values[0], list | tuple) and any(map(_is_lazy, values[0])))
        )
    return _is_lazy(values)


def _is_lazy(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("dask", "distributed")


def is_dask_array(values: Any) -> bool:
    """Return whether something is an array of Dask."""
    return type(values).__module__.startswith("dask.array")


def _is_frame(values: Any) -> bool:
    return type(values).__module__.startswith("dask.dataframe")


def is_delayed(values: Any) -> bool:
    """Return whether something is a delayed object or a future, of unknown kind."""
    return type(values).__module__.startswith(("dask.delayed", "distributed"))


def partitions_of(X: Any, y: Any = None, sample_weight: Any = None) -> Partitions:
    """Return the partitions of rows, outputs and weights that belong together.

    Parameters
    ----------
    X : dask array or data frame, or list
        A list of delayed objects or futures, each of a block of rows; without ``y``, each of
        a pair (X, y) or triple (X, y, sample_weight).
    y, sample_weight : dask array or series, list of delayed objects, array, or None

    Returns
    -------
    Partitions
    """
    require("dask", "dask")
    if is_delayed(X):
        X = [X]
        y, sample_weight = ([v] if is_delayed(v) else v for v in (y, sample_weight))
    if isinstance(X, list | tuple) and y is None:
        if sample_weight is not None:
            raise ValueError(
                "weights of rows that come in blocks must come with them, as triples "
                "(X, y, sample_weight)"
            )
        return Partitions([_together(item) for item in X])
    if is_dask_array(X) and X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a dask array of {X.ndim} dimensions instead")
    parts = _blocks(X)
    named = list(X.columns) if _is_frame(X) else None
    found: list[Any] = []
    for values, what in ((y, "y"), (sample_weight, "sample_weight")):
        here = values is not None and not is_dask(values)
        others = [None] * len(parts) if values is None or here else _aligned(values, X, what)
        if len(others) != len(parts):
            raise ValueError(
                f"X has {len(parts)} partitions and {what} has {len(others)}; give both in the "
                "same partitions (of files that Dask reads for each alone, it may join small "
                'ones: give parts of one frame, as in fit(table[columns], table["y"]))'
            )
        found.append((others, values if here else None))
    (outputs, y_here), (weights, weight_here) = found
    rows = [Partition(*three) for three in zip(parts, outputs, weights, strict=True)]
    return Partitions(rows, y_here, weight_here, named)


def partitions_in_memory(X: Any, y: Any, sample_weight: Any, least: int = 8) -> Partitions:
    """Return the partitions of rows that are on this machine, to be sent to workers.

    Rows of a memory map are not sent: workers read the file.

    Parameters
    ----------
    X : array, csr matrix or memory map of shape (n, d)
    y, sample_weight : array or None
    least : int
        Partitions to make at least, if there are rows enough.

    Returns
    -------
    Partitions
    """
    n, d = X.shape
    size = max(1, _PART_BYTES // max(1, d * X.dtype.itemsize))
    size = min(size, max(1, -(-n // least)))
    if FileRows.can_read(X):
        parts = [Partition(FileRows.of(X, rows)) for rows in row_blocks(n, size)]
    else:
        parts = [Partition(Given(_copy(X[rows]))) for rows in row_blocks(n, size)]
    return Partitions(parts, y, sample_weight)


def _copy(block: Any) -> Any:
    return block if sparse.issparse(block) else np.ascontiguousarray(block)


def _together(item: Any) -> Partition:
    if isinstance(item, list | tuple):
        if len(item) not in (2, 3) or not _is_lazy(item[0]):
            raise ValueError(
                "blocks must be delayed pairs (X, y) or triples (X, y, sample_weight), not "
                f"{type(item).__name__} of {len(item)}"
            )
        return Partition(*(_delayed(value) for value in item))
    return Partition(_delayed(item), together=True)


def _delayed(value: Any) -> Any:
    if is_dask_array(value) or _is_frame(value):
        raise ValueError(
            "a list of dask arrays or frames is not known; join them by dask.array.concatenate "
            "or dask.dataframe.concat, or give lists of delayed objects"
        )
    return value if _is_lazy(value) else require("dask", "dask").delayed(value)


def _blocks(values: Any) -> list[Any]:
    """Return one delayed object for every partition of rows."""
    if isinstance(values, list | tuple):
        return [_delayed(value) for value in values]
    if is_dask_array(values):
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        # Optimizing would cut the ties to results that are on the workers already.
        cut = values.to_delayed(optimize_graph=not has_futures(values))
        return list(np.ravel(cut))
    if _is_frame(values):
        # Optimizing would join small files of one frame and not of another beside it.
        return list(values.to_delayed(optimize_graph=False))
    raise TypeError(
        f"rows must be a dask array or frame, or delayed blocks, not {values!r:.60}"
    )


def _aligned(values: Any, X: Any, what: str) -> list[Any]:
    """Return the partitions of outputs or weights, cut as the rows are where that is known."""
    if is_dask_array(values) and is_dask_array(X):
        ours, theirs = values.chunks[0], X.chunks[0]
        if _known(ours) and _known(theirs):
            if sum(ours) != sum(theirs):
                raise ValueError(
                    f"Found input variables with inconsistent numbers of samples: X has "
                    f"{sum(theirs):,} rows and {what} has {sum(ours):,}"
                )
            if ours != theirs:
                values = values.rechunk({0: theirs})
    return _blocks(values)


def _known(chunks: Sequence[float]) -> bool:
    return not any(np.isnan(size) for size in chunks)


def has_futures(collection: Any) -> bool:
    """Return whether some of a collection is on workers already, or on its way."""
    graph: Iterable[Any] = dict(collection.__dask_graph__()).values()
    return any(type(value).__module__.partition(".")[0] == "distributed" for value in graph)
