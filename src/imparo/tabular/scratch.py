"""Rows that do not fit in memory, on disk: written once, read as often as needed.

A text file is parsed once, whatever the number of passes; numbers are then at hand as fast as
the disk, or the system's cache of it, gives them.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from imparo.data import Frame
from imparo.engine import Array
from imparo.errors import MemoryBudgetError

# Different texts of a column, all of which stay in memory.
_MOST_TEXTS = 500_000


class Scratch:
    """A folder for the time of a fit; it is removed at the end, whatever happens.

    Parameters
    ----------
    folder : path-like or None
        Where to make it; the system's place for temporary files if None.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        if folder is not None and not Path(folder).is_dir():
            raise FileNotFoundError(f"there is no folder {folder} for scratch files")
        self.path = Path(tempfile.mkdtemp(prefix="imparo-", dir=folder))
        self.written = 0

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.path, ignore_errors=True)

    def matrix(self, name: str, width: int, dtype: Any) -> "ScratchMatrix":
        """Return a new matrix of so many columns, to be written row by row."""
        return ScratchMatrix(self, self.path / name, width, np.dtype(dtype))

    def note_written(self, size: int) -> None:
        """Count bytes that were written."""
        self.written += size


class ScratchMatrix:
    """Rows of numbers in a file, appended block by block.

    Parameters
    ----------
    scratch : Scratch
    path : Path
    width : int
        Number of columns; 1 makes a vector.
    dtype : dtype
    """

    def __init__(self, scratch: Scratch, path: Path, width: int, dtype: np.dtype[Any]) -> None:
        self._scratch, self._path, self._width, self._dtype = scratch, path, width, dtype
        self._file = path.open("wb", buffering=0)
        self.n = 0

    def append(self, block: Array) -> None:
        """Write some rows."""
        content = np.ascontiguousarray(block, self._dtype).reshape(-1, self._width)
        view = memoryview(content.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        while len(view):
            view = view[self._file.write(view) :]
        self.n += len(content)
        self._scratch.note_written(content.nbytes)

    def finish(self) -> None:
        """End writing, and open for reading."""
        self._file.close()
        self._file = self._path.open("rb", buffering=0)

    def read(self, places: Any) -> Array:
        """Return some rows: of a slice, or of positions.

        Read, not mapped: to look at scattered rows of a map is to have all of it in memory.
        """
        size = self._width * self._dtype.itemsize
        handle = self._file.fileno()
        if isinstance(places, slice):
            start, stop, _ = places.indices(self.n)
            found = np.empty((max(0, stop - start), self._width), self._dtype)
            if found.size:
                _fill(handle, found, start * size)
            return found
        found = np.empty((len(places), self._width), self._dtype)
        for i, place in enumerate(np.asarray(places).tolist()):
            found[i] = np.frombuffer(os.pread(handle, size, place * size), self._dtype)
        return found

    def mapped(self) -> np.memmap:
        """Return what was written as a memory map, to be read only."""
        self._file.close()
        return np.memmap(self._path, self._dtype, "r", shape=(self.n, self._width))


def _fill(handle: int, found: Array, offset: int) -> None:
    """Read bytes of a file into an array."""
    view = memoryview(found.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    while len(view):
        count = os.preadv(handle, [view], offset)
        if not count:
            raise OSError("a scratch file has become shorter while it was in use")
        view, offset = view[count:], offset + count


class DiskTable:
    """Columns of a table in scratch files: numbers, codes of text, and dates apart.

    Parameters
    ----------
    scratch : Scratch
    first : Frame
        Some rows, which tell what the columns hold.
    """

    def __init__(self, scratch: Scratch, first: Frame) -> None:
        kinds = {name: first[name].dtype.kind for name in first.columns}
        self.columns = first.columns
        self._numbers = [name for name in self.columns if kinds[name] in "biuf"]
        self._texts = [name for name in self.columns if kinds[name] == "O"]
        self._dates = [name for name in self.columns if kinds[name] in "Mm"]
        self._date_types = {name: first[name].dtype for name in self._dates}
        small = all(first[name].dtype.itemsize <= _small(kinds[name]) for name in self._numbers)
        self.dtype = np.dtype(np.float32 if small else np.float64)
        self._files = [
            scratch.matrix("numbers", max(1, len(self._numbers)), self.dtype),
            scratch.matrix("texts", max(1, len(self._texts)), np.int32),
            scratch.matrix("dates", max(1, len(self._dates)), np.int64),
        ]
        self._codes: list[dict[Any, int]] = [{} for _ in self._texts]
        self._values: list[Array] = []
        self.n = 0

    @property
    def plain(self) -> bool:
        """Whether all columns hold numbers."""
        return not (self._texts or self._dates)

    def append(self, frame: Frame) -> None:
        """Write some rows."""
        if self._numbers:
            self._files[0].append(frame.matrix(self._numbers))
        if self._texts:
            codes = np.empty((len(frame), len(self._texts)), np.int32)
            for j, name in enumerate(self._texts):
                known = self._codes[j]
                codes[:, j] = [known.setdefault(cell, len(known)) for cell in frame[name]]
                if len(known) > _MOST_TEXTS:
                    raise MemoryBudgetError(
                        f"the column '{name}' holds more than {_MOST_TEXTS:,} different texts, "
                        "as identifiers do, and rows do not fit in memory; drop the column, or "
                        "give more memory"
                    )
            self._files[1].append(codes)
        if self._dates:
            dates = np.empty((len(frame), len(self._dates)), np.int64)
            for j, name in enumerate(self._dates):
                dates[:, j] = frame[name].astype(self._date_types[name]).view(np.int64)
            self._files[2].append(dates)
        self.n += len(frame)

    def finish(self) -> "DiskTable":
        """End writing, and open for reading."""
        for file in self._files:
            file.finish()
        self._values = [np.array(list(known), dtype=object) for known in self._codes]
        return self

    def rows(self, places: Any) -> Any:
        """Return some rows: a matrix if all columns hold numbers, else a Frame."""
        numbers, texts, dates = self._files
        if self.plain:
            return numbers.read(places)
        cells: dict[str, Array] = {}
        if self._numbers:
            found = numbers.read(places)
            cells |= {name: found[:, j] for j, name in enumerate(self._numbers)}
        if self._texts:
            codes = texts.read(places)
            cells |= {name: self._values[j][codes[:, j]] for j, name in enumerate(self._texts)}
        if self._dates:
            whole = np.asfortranarray(dates.read(places))
            for j, name in enumerate(self._dates):
                cells[name] = whole[:, j].view(self._date_types[name])
        return Frame({name: cells[name] for name in self.columns})


def _small(kind: str) -> int:
    """Return the bytes of a number that float32 holds exactly."""
    return 4 if kind == "f" else 2


class SparseDisk:
    """Rows of a sparse matrix in scratch files.

    Parameters
    ----------
    scratch : Scratch
    width : int
        Number of columns.
    dtype : dtype
    """

    def __init__(self, scratch: Scratch, width: int, dtype: Any) -> None:
        self._data = scratch.matrix("data", 1, dtype)
        self._indices = scratch.matrix("indices", 1, np.int32)
        self._ends: list[Array] = [np.zeros(1, np.int64)]
        self.width = width

    def append(self, block: Any) -> None:
        """Write some rows."""
        if not block.shape[0]:
            return
        self._data.append(block.data)
        self._indices.append(block.indices)
        self._ends.append(block.indptr[1:].astype(np.int64) + self._ends[-1][-1])

    def finish(self) -> "SparseDisk":
        """End writing, and open for reading."""
        self._ends = [np.concatenate(self._ends)]
        self.n = len(self._ends[0]) - 1
        for file in (self._data, self._indices):
            file.finish()
        return self

    def rows(self, places: Any) -> Any:
        """Return some rows as a csr array: of a slice, or of positions."""
        if not isinstance(places, slice):
            order = np.argsort(places, kind="stable")
            back = np.empty(len(order), np.intp)
            back[order] = np.arange(len(order))
            parts = [self.rows(slice(i, i + 1)) for i in np.asarray(places)[order]]
            return sparse.vstack(parts, format="csr")[back]
        start, stop, _ = places.indices(self.n)
        ends = self._ends[0][start : stop + 1]
        cells = slice(int(ends[0]), int(ends[-1]))
        shape = (stop - start, self.width)
        data, indices = (file.read(cells)[:, 0] for file in (self._data, self._indices))
        return sparse.csr_array((data, indices, ends - ends[0]), shape=shape)
