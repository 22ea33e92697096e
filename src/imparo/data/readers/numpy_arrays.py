"""Arrays of NumPy: ``.npy`` files, mapped into memory, and ``.npz`` archives, streamed."""

import ast
import mmap
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from imparo.data.readers.array_columns import NamedArray, table_of, with_fields
from imparo.data.readers.array_rows import ArchiveRows, Reader
from imparo.data.readers.base import ReadOptions

# Columns one after the other cannot be streamed by rows. An array of up to so many bytes is
# then loaded, a larger one unpacked to a temporary file.
_LOADED = 2**26
_CHUNK = 2**20
_SPARSE = {"data", "indices", "indptr", "shape", "format"}


class Header(NamedTuple):
    """What precedes the numbers of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool
    size: int  # of the header, in bytes

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


def read_header(file: IO[bytes]) -> Header:
    """Read the beginning of an array in NumPy's format, of version 1 to 3.

    Raises
    ------
    ValueError
        If the bytes are something else.
    """
    start = file.read(8)
    if len(start) < 8 or start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        raise ValueError("it does not begin as an array of NumPy")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    if length > 2**20:
        raise ValueError("its header is too long")
    try:
        text = file.read(length).decode("utf-8" if start[6] == 3 else "latin-1")
        header = ast.literal_eval(text.strip())
        shape = tuple(int(size) for size in header["shape"])
        dtype = np.lib.format.descr_to_dtype(header["descr"])
        by_columns = bool(header["fortran_order"]) and len(shape) > 1
    except (SyntaxError, TypeError, KeyError, ValueError, RecursionError) as error:
        raise ValueError("its header is damaged") from error
    if any(size < 0 for size in shape):
        raise ValueError("its header is damaged")
    return Header(shape, dtype, by_columns, 8 + width + length)


class NpyRows(ArchiveRows):
    """Rows of a ``.npy`` file; see :func:`open_npy`."""

    format = "npy"
    _mapped = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        with readable(path, "array of NumPy"), path.open("rb") as file:
            self._header = read_header(file)
        shape, dtype = self._header.shape, self._header.dtype
        held = path.stat().st_size - self._header.size
        if held < self._header.nbytes and not dtype.hasobject:
            raise ValueError(
                f"{path} is cut off: it holds {held:,} of {self._header.nbytes:,} bytes"
            )
        if not shape or (dtype.names and len(shape) > 1):
            raise ValueError(
                f"{path} holds {'fields' if dtype.names else 'numbers'} of shape {shape}; give "
                "an array of rows and columns"
            )
        if dtype.names:
            arrays = with_fields("", "", shape, dtype)
        else:
            arrays = [NamedArray("", None, "column 0", shape, dtype, "column {j}")]
        table = table_of(arrays, None, path)
        super().__init__(path, table if dtype.names else replace(table, groups={}), options)

    @contextmanager
    def _opened(self, keys: list[str]) -> Iterator[Mapping[str, Reader]]:
        yield {key: _mapped_array(self._path, self._header) for key in keys}


class NpzRows(ArchiveRows):
    """Rows of the arrays of an archive; see :func:`open_npz`."""

    format = "npz"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._headers: dict[str, Header] = {}
        others = {}
        with readable(path, "archive of NumPy"), zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if not member.endswith(".npy"):
                    others[member] = "it is no array"
                    continue
                with archive.open(member) as file:
                    self._headers[member] = read_header(file)
        if {member.removesuffix(".npy") for member in self._headers} >= _SPARSE:
            raise ValueError(
                f"{path} holds a sparse matrix of SciPy; write it as LIBSVM text, with "
                "sklearn.datasets.dump_svmlight_file"
            )
        table = table_of(_named(self._headers), options.part, path)
        table.left_out.update(others)
        super().__init__(path, table, options)

    @contextmanager
    def _opened(self, keys: list[str]) -> Iterator[Mapping[str, Reader]]:
        with readable(self._path, "archive of NumPy"), ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self._path))
            readers: dict[str, Reader] = {}
            for key in keys:
                file = stack.enter_context(archive.open(key))
                header = read_header(file)
                if header != self._headers[key]:
                    raise ValueError("it was changed while it was read")
                if header.by_columns:
                    readers[key] = _unpacked(file, header)
                else:
                    readers[key] = _streamed(file, header)
            yield readers


def open_npy(path: str | Path, options: ReadOptions | None = None) -> NpyRows:
    """Open an array of rows and columns, or a structured one of rows.

    The file is mapped into memory, and its pages are given back: a pass takes one block.

    Parameters
    ----------
    path : str or Path
    options : ReadOptions, optional
        ``text``, ``encoding`` and ``bad`` count.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from imparo.data.readers.numpy_arrays import open_npy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "rows.npy"
    ...     np.save(file, np.arange(6.0).reshape(3, 2))
    ...     rows = open_npy(file)
    ...     [block["column 1"].tolist() for block in rows.blocks(size=2)]
    [[1.0, 3.0], [5.0]]
    """
    return NpyRows(Path(path), options or ReadOptions())


def open_npz(path: str | Path, options: ReadOptions | None = None) -> NpzRows:
    """Open an archive of arrays, compressed or not.

    A pass takes one block. An array whose columns are stored one after the other is loaded
    if it has up to 64 MB, and unpacked to a temporary file if it has more.

    Parameters
    ----------
    path : str or Path
    options : ReadOptions, optional
        ``part``, ``text``, ``encoding`` and ``bad`` count.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from imparo.data.readers.numpy_arrays import open_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "rows.npz"
    ...     np.savez_compressed(file, X=np.eye(3), y=np.arange(3), names=np.array(["a", "b"]))
    ...     rows = open_npz(file)
    ...     last = list(rows.blocks(["X[2]", "y"], size=2))[-1]
    >>> rows.names, rows.targets, rows.left_out
    (['X[0]', 'X[1]', 'X[2]', 'y'], ['y'], {'names': 'it has 2 rows where the table has 3'})
    >>> last["X[2]"], last["y"]
    (array([1.]), array([2]))
    """
    return NpzRows(Path(path), options or ReadOptions())


def _named(headers: Mapping[str, Header]) -> list[NamedArray]:
    arrays = []
    for member, header in headers.items():
        name = "" if len(headers) == 1 and header.dtype.names else member.removesuffix(".npy")
        arrays += with_fields(member, name, header.shape, header.dtype)
    return arrays


@contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Turn what is raised by a file that is damaged, or no archive, into one sentence."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_file() and not path.stat().st_size:
        raise ValueError(f"{path} is empty")
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        raise ValueError(
            f"{path} is damaged, cut off or no {what} ({error}); write it anew"
        ) from error


def _mapped_array(path: Path | IO[bytes], header: Header) -> Reader:
    order: Any = "F" if header.by_columns else "C"
    offset = 0 if not isinstance(path, Path) else header.size
    array = np.memmap(path, header.dtype, "r", offset, header.shape, order)

    def read(rows: slice) -> Any:
        # The rows before were copied: their pages may go.
        base: Any = array._mmap  # type: ignore[attr-defined]
        if hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)
        return array[rows].view(np.ndarray)

    return read


def _streamed(file: IO[bytes], header: Header) -> Reader:
    def read(rows: slice) -> Any:
        shape = (rows.stop - rows.start, *header.shape[1:])
        cells = np.empty(int(np.prod(shape)) * header.dtype.itemsize, np.uint8)
        into, start = cells.data, 0
        while start < len(cells):
            piece = file.read(min(_CHUNK, len(cells) - start))
            if not piece:
                raise EOFError("an array in it ends early")
            into[start : start + len(piece)] = piece
            start += len(piece)
        if rows.stop == header.shape[0]:
            file.read(1)  # at its end, the check sum of the array is compared
        return np.ndarray(shape, header.dtype, cells)

    return read


def _unpacked(file: IO[bytes], header: Header) -> Reader:
    if header.nbytes <= _LOADED:
        flat = _streamed(file, Header((1, header.nbytes), np.dtype(np.uint8), False, 0))
        whole = np.ndarray(header.shape, header.dtype, flat(slice(0, 1)), order="F")
        return lambda rows: whole[rows]
    with tempfile.TemporaryFile() as unpacked:
        left = header.nbytes
        while left:  # no more than the header announces
            piece = file.read(min(_CHUNK, left))
            if not piece:
                raise EOFError("an array in it ends early")
            unpacked.write(piece)
            left -= len(piece)
        unpacked.flush()
        mapped = _mapped_array(unpacked, header)
    return lambda rows: np.array(mapped(rows))
