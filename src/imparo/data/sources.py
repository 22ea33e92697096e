"""Where rows come from: arrays, memory maps and iterators, read a block at a time.

A source hands out blocks of checked rows in one floating-point type, so that whatever
holds the data, only one block is converted and in memory at once.
"""

import mmap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from imparo.engine import Array, engine_of, row_blocks

# Scattered rows of a memory map that are read before its pages are given back.
_SCATTERED = 32

#: Opens a new iterator over blocks of rows.
Opener = Callable[[], Iterator[Any]]


class Source(Protocol):
    """Rows that can be read in blocks, any number of times."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The floating-point type of the blocks."""

    @property
    def at_hand(self) -> bool:
        """Whether rows are in memory, so that any of them cost the same to take."""

    def blocks(self, size: int) -> Iterator[tuple[slice, Any]]:
        """Yield positions and rows, in order, at most ``size`` at a time."""

    def take(self, positions: Array) -> Any:
        """Return some rows, in the order of ``positions``."""


class ArraySource:
    """Rows of an array, a sparse matrix or a memory map.

    A block of an array in the type asked for is a view. Pages of a memory map are given
    back once they are read, so that a file of any size takes no more memory than a block.

    Parameters
    ----------
    X : array, memory map or csr matrix of shape (n, d)
    dtype : dtype
        float32 or float64.
    check : bool
        Whether blocks are searched for NaN and infinity; for rows not checked before.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.data.sources import ArraySource
    >>> source = ArraySource(np.arange(6).reshape(3, 2), np.dtype("float64"))
    >>> [(rows.start, X.tolist()) for rows, X in source.blocks(2)]
    [(0, [[0.0, 1.0], [2.0, 3.0]]), (2, [[4.0, 5.0]])]
    """

    def __init__(self, X: Any, dtype: np.dtype[Any], *, check: bool = False) -> None:
        self._X, self._dtype, self._check = X, dtype, check
        self._map = _shared_map(X)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._X.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The floating-point type of the blocks."""
        return self._dtype

    @property
    def at_hand(self) -> bool:
        """Whether rows are in memory: all but those of a memory map."""
        return self._map is None

    def blocks(self, size: int) -> Iterator[tuple[slice, Any]]:
        """Yield positions and rows, in order."""
        for rows in row_blocks(self.shape[0], size):
            yield rows, self._converted(self._X[rows], rows.start)

    def take(self, positions: Array) -> Any:
        """Return some rows, in the order of ``positions``."""
        # In the order of the file: a disk is not read back and forth.
        order = np.argsort(positions, kind="stable")
        back = np.empty(len(order), np.intp)
        back[order] = np.arange(len(order))
        wanted = np.asarray(positions)[order]
        if self._map is None:
            return self._converted(self._X[wanted], None)[back]
        # A look at one row maps a good part of the file around it: a few rows at a time.
        rows = np.empty((len(wanted), self.shape[1]), self._dtype)
        for some in row_blocks(len(wanted), _SCATTERED):
            rows[some] = self._converted(self._X[wanted[some]], None)
        return rows[back]

    def _converted(self, block: Any, start: int | None) -> Any:
        if sparse.issparse(block):
            block = block.astype(self._dtype, copy=False)
        else:
            if self._map is not None:
                block = np.array(block, self._dtype, order="C")
                self._map.madvise(mmap.MADV_DONTNEED)
            block = np.ascontiguousarray(block, self._dtype)
        if self._check:
            check_finite(block, start)
        return block


class TensorSource:
    """Rows of a tensor of PyTorch on a device: blocks stay there.

    Parameters
    ----------
    X : tensor of shape (n, d)
        Of finite numbers.
    dtype : dtype
        float32 or float64.
    """

    def __init__(self, X: Any, dtype: np.dtype[Any]) -> None:
        self._engine = engine_of(X)
        self._X, self._dtype = self._engine.asarray(X, dtype), dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._X.shape[0], self._X.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The floating-point type of the blocks."""
        return self._dtype

    @property
    def at_hand(self) -> bool:
        """True: any row costs the same to take."""
        return True

    def blocks(self, size: int) -> Iterator[tuple[slice, Any]]:
        """Yield positions and rows, in order, as tensors."""
        for rows in row_blocks(self.shape[0], size):
            yield rows, self._X[rows]

    def take(self, positions: Array) -> Any:
        """Return some rows in main memory, in the order of ``positions``."""
        return self._engine.to_host(self._X[self._engine.asarray(positions)])


class BlockSource:
    """Rows of an iterator over blocks that can be opened anew for every pass.

    Blocks are cut, and small ones put together, to the size asked for.

    Parameters
    ----------
    opener : callable
        Returns a new iterator over arrays or sparse matrices of shape (k, d).
    shape : tuple
        Numbers of rows and columns, which every pass must find again.
    dtype : dtype
        float32 or float64.
    """

    def __init__(self, opener: Opener, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self._opener, self._shape, self._dtype = opener, shape, dtype

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
        """False: every look at a row reads the blocks again."""
        return False

    def blocks(self, size: int) -> Iterator[tuple[slice, Any]]:
        """Yield positions and rows, in order, whatever the sizes of the blocks given."""
        waiting: list[Any] = []
        n_waiting = start = 0

        def joined() -> Any:
            block = waiting[0] if len(waiting) == 1 else stacked(waiting)
            waiting.clear()
            return block

        for given in self._opener():
            for rows in row_blocks(given.shape[0], size):
                part = given[rows]
                if n_waiting + part.shape[0] > size:
                    block = joined()
                    yield slice(start, start + n_waiting), block
                    start, n_waiting = start + n_waiting, 0
                waiting.append(self._converted(part, start + n_waiting))
                n_waiting += part.shape[0]
        if n_waiting:
            yield slice(start, start + n_waiting), joined()
            start += n_waiting
        self._check_end(start)

    def take(self, positions: Array) -> Any:
        """Return some rows, in the order of ``positions``: one pass."""
        positions = np.asarray(positions)
        order = np.argsort(positions, kind="stable")
        wanted, found, start = positions[order], [], 0
        for given in self._opener():
            stop = start + given.shape[0]
            first, last = np.searchsorted(wanted, [start, stop])
            if last > first:
                found.append(self._converted(given[wanted[first:last] - start], None))
            start = stop
        self._check_end(start)
        back = np.empty(len(order), np.intp)
        back[order] = np.arange(len(order))
        return stacked(found)[back]

    def _check_end(self, stop: int) -> None:
        if stop != self._shape[0]:
            raise ValueError(
                f"the blocks gave {self._shape[0]:,} rows in the first pass and {stop:,} in a "
                "later one; they must give the same rows every time"
            )

    def _converted(self, block: Any, start: int | None) -> Any:
        if block.shape[1] != self._shape[1]:
            raise ValueError(
                f"a block has {block.shape[1]} columns and the first had {self._shape[1]}; "
                "every block must have the same columns"
            )
        if sparse.issparse(block):
            block = sparse.csr_array(block).astype(self._dtype)
        else:
            # A copy: who gives the block may fill the same memory with the next one.
            block = np.array(block, self._dtype, order="C")
        check_finite(block, start)
        return block


def opener_of(blocks: Any) -> Opener:
    """Return a function that opens ``blocks`` anew, or raise if that cannot be done.

    Parameters
    ----------
    blocks : callable or iterable
        A function that returns an iterator, or something to iterate over many times,
        such as a list; not an iterator, which can be read once.

    Returns
    -------
    callable
    """
    if callable(blocks):
        return lambda: iter(blocks())
    if isinstance(blocks, Iterator):
        raise ValueError(
            "an iterator over blocks can be read once, and a fit reads the rows more than "
            "once; give the function that makes it, or a list of blocks"
        )
    if not isinstance(blocks, Iterable):
        raise TypeError(f"blocks must be a function or an iterable, not {blocks!r:.60}")
    return lambda: iter(blocks)


def check_finite(block: Any, start: int | None) -> None:
    """Raise if a block holds NaN or infinity, saying in which row from ``start`` on."""
    values = block.data if sparse.issparse(block) else block
    # A finite sum is cheap and proves all entries finite; an infinite one may overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)) or np.isfinite(values).all():
            return
    what = "NaN" if np.isnan(values).any() else "infinity"
    dense = block.toarray() if sparse.issparse(block) else block
    row = int(np.flatnonzero(~np.isfinite(dense).all(axis=1))[0])
    where = "" if start is None else f" in row {start + row:,}"
    raise ValueError(
        f"X contains {what}{where} and must hold finite numbers; impute or drop such rows"
    )


def stacked(parts: list[Any]) -> Any:
    """Return blocks of rows on top of each other; sparse if one of them is."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def _shared_map(X: Any) -> mmap.mmap | None:
    """Return the mapping behind X if its pages may be given back: that of a shared file.

    Pages of private and anonymous mappings would be lost.
    """
    base, shared = X, False
    while base is not None and not isinstance(base, mmap.mmap):
        if isinstance(base, np.memmap):
            shared = base.mode in ("r", "r+", "w+")
        base = getattr(base, "base", None)
    return base if shared and hasattr(mmap, "MADV_DONTNEED") else None
