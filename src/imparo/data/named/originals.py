"""The formats of published data: LIBSVM, delimited text, ARFF, idx and MATLAB files.

All of them are read without running anything that a file says. Compressed files may not grow
beyond a limit, and archives are read in place: nothing is unpacked to the disk.
"""

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from imparo.engine import Array

#: The most bytes that a file may have once it is unpacked.
MOST_BYTES = 4 * 2**30
_BROKEN = (
    ValueError, TypeError, KeyError, NotImplementedError, EOFError, OSError, struct.error,
    zlib.error, lzma.LZMAError, zipfile.BadZipFile,
)  # fmt: skip
_IDX_BYTES = 0x08


class _Limited(io.RawIOBase):
    """A stream that ends in an error where it is longer than it may be."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._left = stream, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read(len(buffer))
        self._left -= len(found)
        if self._left < 0:
            raise ValueError("it is far larger than the published file")
        buffer[: len(found)] = found
        return len(found)


@contextmanager
def unpacked(path: Path, member: str = "", most: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file, or a member of a ZIP archive, without its compression.

    Parameters
    ----------
    path : Path
    member : str
        Name of a file of the archive, in any of its folders.
    most : int, optional
        The most bytes; :data:`MOST_BYTES` if left out.
    """
    limit = MOST_BYTES if most is None else most
    if member:
        with zipfile.ZipFile(path) as whole, whole.open(_member(whole, member)) as stream:
            yield io.BufferedReader(_Limited(stream, limit))
        return
    with path.open("rb") as file:
        start = file.read(6)
    opener: Any = open
    if start[:2] == b"\x1f\x8b":
        opener = gzip.open
    elif start[:3] == b"BZh":
        opener = bz2.open
    elif start == b"\xfd7zXZ\x00":
        opener = lzma.open
    with opener(path, "rb") as stream:
        yield io.BufferedReader(_Limited(stream, limit))


def _member(archive: zipfile.ZipFile, wanted: str) -> zipfile.ZipInfo:
    for info in archive.infolist():
        name = PurePosixPath(info.filename.replace("\\", "/"))
        if name.is_absolute() or ".." in name.parts or ":" in name.parts[:1]:
            raise ValueError(f"it names a file outside of itself, {info.filename!r}")
    for info in archive.infolist():
        if PurePosixPath(info.filename).name == wanted and not info.is_dir():
            return info
    raise ValueError(f"it has no file {wanted}")


@contextmanager
def explained(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a reader says of a file that it cannot read into one sentence."""
    try:
        yield
    except _BROKEN as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{path.name} is not {what} as it was published: {reason}; it may have moved or "
            "changed"
        ) from error


def read_libsvm(path: Path, columns: int) -> tuple[Array, Array]:
    """Return the dense rows and the labels of a LIBSVM file.

    Parameters
    ----------
    path : Path
    columns : int
        Number of columns; rows that end in zeros do not show it.
    """
    from sklearn.datasets import load_svmlight_file  # slow to import

    with explained(path, "a LIBSVM file"), unpacked(path) as stream:
        X, y = load_svmlight_file(stream, n_features=columns, zero_based=False)
        return X.toarray(), y


def read_text(
    path: Path,
    member: str = "",
    delimiter: str | None = ",",
    header: int = 0,
    dtype: Any = np.float64,
) -> Array:
    """Return the table of numbers of a text file.

    Parameters
    ----------
    path : Path
    member : str
        Name of the file, if it is in a ZIP archive.
    delimiter : str or None
        Between the numbers; any white space if None.
    header : int
        Number of lines before the first row.
    dtype : dtype
    """
    with explained(path, "a table of numbers"), unpacked(path, member) as stream:
        text = io.TextIOWrapper(stream, encoding="ascii")
        return np.loadtxt(text, dtype, delimiter=delimiter, skiprows=header, ndmin=2)


def read_arff(path: Path) -> Array:
    """Return the table of an ARFF file whose columns are all numeric."""
    with explained(path, "an ARFF file"), unpacked(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8")
        for line in text:
            if line.strip().lower() == "@data":
                return np.loadtxt(text, delimiter=",", comments="%", ndmin=2)
        raise ValueError("there is no line @data")


def read_idx(path: Path) -> Array:
    """Return the bytes of an idx file, the format of MNIST."""
    with explained(path, "an idx file"), unpacked(path) as stream:
        zero, kind, axes = struct.unpack(">HBB", stream.read(4))
        if zero != 0 or kind != _IDX_BYTES or not 1 <= axes <= 3:
            raise ValueError("its first bytes are others")
        shape = struct.unpack(f">{axes}I", stream.read(4 * axes))
        count = int(np.prod(shape, dtype=np.int64))
        content = stream.read(count + 1)
        if len(content) != count:
            raise ValueError(f"it does not hold the {count:,} bytes that it announces")
        return np.frombuffer(content, np.uint8).reshape(shape)


def read_matlab(path: Path, name: str) -> Array:
    """Return a matrix of numbers of a MATLAB file, version 5."""
    from scipy.io import loadmat  # slow to import

    with explained(path, "a MATLAB file"), unpacked(path) as stream:
        found = loadmat(io.BytesIO(stream.read()), variable_names=[name])
        matrix = np.asarray(found[name])
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
            raise ValueError(f"its {name} is no matrix of numbers")
        return matrix
