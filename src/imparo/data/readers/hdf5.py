"""HDF5 files: datasets as columns, read in blocks."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from imparo.data.readers.array_columns import NamedArray, table_of, with_fields
from imparo.data.readers.array_rows import ArchiveRows, Reader
from imparo.data.readers.base import ReadOptions
from imparo.extras import require

# Bytes of unpacked chunks that are kept for each dataset: blocks need not end with a chunk.
_CACHE = 2**24


class Hdf5Rows(ArchiveRows):
    """Rows of the datasets of a file; see :func:`open_hdf5`."""

    format = "hdf5"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        with _readable(path) as file:
            arrays, self._chunks = _datasets(file)
        super().__init__(path, table_of(arrays, options.part, path), options)

    def _block_rows(self, size: int | None, n_columns: int) -> int:
        rows = super()._block_rows(size, n_columns)
        # Whole chunks, if there is a choice: each is then unpacked once.
        chunk = max(self._chunks.get(array.key, 1) for array in self._table.arrays)
        return rows // chunk * chunk if size is None and chunk <= rows else rows

    @contextmanager
    def _opened(self, keys: list[str]) -> Iterator[Mapping[str, Reader]]:
        with _readable(self._path) as file:
            yield {key: _reader(file[key], self._path) for key in keys}


def open_hdf5(path: str | Path, options: ReadOptions | None = None) -> Hdf5Rows:
    """Open an HDF5 file; its datasets are columns by the rules for archives of arrays.

    A pass takes one block, and 16 MB for every dataset that is stored in chunks.

    Parameters
    ----------
    path : str or Path
    options : ReadOptions, optional
        ``part``, ``text``, ``encoding`` and ``bad`` count.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import h5py, numpy as np
    >>> from imparo.data.readers.hdf5 import open_hdf5
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows.h5"
    ...     with h5py.File(path, "w") as file:
    ...         file["train/X"], file["train/y"] = np.eye(2), ["yes", "no"]
    ...     rows = open_hdf5(path)
    ...     block = next(rows.blocks())
    >>> rows.names, rows.targets, rows.part
    (['X[0]', 'X[1]', 'y'], ['y'], 'train')
    >>> block["y"]
    array(['yes', 'no'], dtype=object)
    """
    return Hdf5Rows(Path(path), options or ReadOptions())


@contextmanager
def _readable(path: Path) -> Iterator[Any]:
    h5py = require("h5py", "files")
    with path.open("rb") as start:  # says what is wrong with the name, if anything is
        if not start.read(1):
            raise ValueError(f"{path} is empty")
    try:
        file = h5py.File(path, "r", rdcc_nbytes=_CACHE)
    except (OSError, RuntimeError) as error:
        raise _damaged(path, error) from error
    with file:
        yield file


def _damaged(path: Path, error: Exception) -> ValueError:
    reason = str(error).replace("\n", " ")
    return ValueError(
        f"{path} is damaged, cut off or no HDF5 file ({reason:.200}); write it anew"
    )


def _datasets(file: Any) -> tuple[list[NamedArray], dict[str, int]]:
    """Return what the file holds, and how many rows a chunk of each dataset has."""
    h5py = require("h5py", "files")
    found: list[Any] = []

    def visit(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            found.append(item)

    try:
        file.visititems(visit)
        tables = [item for item in found if item.dtype.names]
        arrays, chunks = [], {}
        for item in found:
            key = item.name.lstrip("/")
            name = "" if [item] == tables and len(found) == 1 else key
            for array in with_fields(key, name, item.shape, item.dtype):
                arrays.append(_with_text(array, h5py))
            if item.chunks:
                chunks[key] = item.chunks[0]
    except (OSError, RuntimeError, KeyError) as error:
        raise _damaged(Path(file.filename), error) from error
    return arrays, chunks


def _with_text(array: NamedArray, h5py: Any) -> NamedArray:
    """Return the array with bytes as its type if it holds text of any length."""
    if h5py.check_string_dtype(array.dtype) is None:
        return array
    return replace(array, dtype=np.dtype(bytes))


def _reader(dataset: Any, path: Path) -> Reader:
    def read(rows: slice) -> Any:
        try:
            return dataset[rows]
        except (OSError, RuntimeError) as error:
            raise _damaged(path, error) from error

    return read
