"""Rows that do not fit in memory, on disk: written once, read as often as needed.

A text file is parsed once, whatever the number of passes; numbers are then at hand as fast as
the disk, or the system's cache of it, gives them.
"""

import mmap
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from imparo.data import Frame
from imparo.engine import Array


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

    def rows(self) -> np.memmap:
        """Return what was written as a memory map, to be read only."""
        self._file.close()
        return np.memmap(self._path, self._dtype, "r", shape=(self.n, self._width))

    def remove(self) -> None:
        """Give the disk back; maps that are open stay readable."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def forget_pages(*maps: np.memmap | None) -> None:
    """Give back the memory that reading a map has taken; the file stays as it is."""
    for found in maps:
        pages = getattr(found, "_mmap", None)
        if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)


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
        self._maps: list[np.memmap | None] = []
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
            self._files[1].append(codes)
        if self._dates:
            dates = np.empty((len(frame), len(self._dates)), np.int64)
            for j, name in enumerate(self._dates):
                dates[:, j] = frame[name].astype(self._date_types[name]).view(np.int64)
            self._files[2].append(dates)
        self.n += len(frame)

    def finish(self) -> "DiskTable":
        """End writing, and open for reading."""
        used = (self._numbers, self._texts, self._dates)
        self._maps = [
            file.rows() if names else None
            for file, names in zip(self._files, used, strict=True)
        ]
        self._values = [np.array(list(known), dtype=object) for known in self._codes]
        return self

    def rows(self, places: Any) -> Any:
        """Return some rows: a matrix if all columns hold numbers, else a Frame."""
        numbers, codes, dates = self._maps
        if self.plain:
            assert numbers is not None
            found = np.array(numbers[places])
            forget_pages(numbers)
            return found
        cells: dict[str, Array] = {}
        for j, name in enumerate(self._numbers):
            cells[name] = np.array(numbers[places, j])  # type: ignore[index]
        for j, name in enumerate(self._texts):
            cells[name] = self._values[j][codes[places, j]]  # type: ignore[index]
        for j, name in enumerate(self._dates):
            whole = np.array(dates[places, j])  # type: ignore[index]
            cells[name] = whole.view(self._date_types[name])
        forget_pages(*self._maps)
        return Frame({name: cells[name] for name in self.columns})

    def remove(self) -> None:
        """Give the disk back."""
        for file in self._files:
            file.remove()


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
        self._maps = [self._data.rows(), self._indices.rows()] if self._data.n else []
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
        if not self._maps:
            return sparse.csr_array(shape)
        data, indices = (np.array(found[cells, 0]) for found in self._maps)
        forget_pages(*self._maps)
        return sparse.csr_array((data, indices, ends - ends[0]), shape=shape)
