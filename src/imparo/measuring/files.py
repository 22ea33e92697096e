"""Rows a second that files are read at, beside the usual reader of each format."""

import importlib
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from imparo.data import open_rows
from imparo.data.readers import Rows
from imparo.engine import Array
from imparo.measuring.timing import Measurement, by_turns, size_within

COLUMNS = 20
_PART = "readers"


def measure_readers(seconds: float) -> list[Measurement]:
    """Read CSV, Parquet and NPY block by block, beside readers of whole files.

    Parquet is left out where pyarrow is not installed. Files are read from memory, where they
    have just been written: what is measured is the reader, not the disk. To open a file of
    text, imparo looks at its first lines for the kinds of columns; that time is told apart.

    Parameters
    ----------
    seconds : float
        For all of it, about: it decides on the number of rows.

    Returns
    -------
    list of Measurement
    """
    kinds = [_csv, *([_parquet] if _has("pyarrow") else []), _npy]
    with tempfile.TemporaryDirectory() as folder:
        return [_read(kind, Path(folder), seconds / len(kinds)) for kind in kinds]


# A format: the name of the file, how rows are written to it, and the rival with its name.
Format = tuple[str, Callable[[Path, Array], None], str, Callable[[Path], Any]]


def _read(kind: Callable[[], Format], folder: Path, seconds: float) -> Measurement:
    name, write, rival, read_whole = kind()
    path = folder / name

    def once(n: int) -> float:
        write(path, _rows(n))
        rows = open_rows(path)
        start = time.perf_counter()
        _pass(rows)
        read_whole(path)
        return time.perf_counter() - start

    n = size_within(once, seconds / 8, 5000, 2_000_000)
    write(path, _rows(n))
    start = time.perf_counter()
    rows = open_rows(path)
    opened = time.perf_counter() - start
    ours, theirs = by_turns([lambda: _pass(rows), lambda: read_whole(path)], seconds / 2)
    path.unlink()
    return Measurement(
        _PART, name.partition(".")[2].upper(), f"{n:,} rows × {COLUMNS}", n / ours.seconds,
        "rows/s", ours.repeats, rival, n / theirs.seconds,
        note=f"opened in {opened:.2g} s before",
    )  # fmt: skip


def _pass(rows: Rows) -> None:
    for block in rows.blocks():
        block[block.columns[0]].sum()  # arrays that lie in a file are read when they are used


def _rows(n: int) -> Array:
    return np.random.default_rng(0).normal(size=(n, COLUMNS)).round(6)


def _names() -> list[str]:
    return [f"x{i}" for i in range(COLUMNS)]


def _csv() -> Format:
    def write(path: Path, rows: Array) -> None:
        np.savetxt(path, rows, "%.6f", ",", header=",".join(_names()), comments="")

    if _has("pandas"):
        pandas = importlib.import_module("pandas")
        return "rows.csv", write, "pandas.read_csv", pandas.read_csv
    return (
        "rows.csv", write, "numpy.loadtxt",
        lambda path: np.loadtxt(path, delimiter=",", skiprows=1),
    )  # fmt: skip


def _parquet() -> Format:
    import pyarrow
    from pyarrow import parquet

    def write(path: Path, rows: Array) -> None:
        parquet.write_table(pyarrow.table(dict(zip(_names(), rows.T, strict=True))), path)

    def read(path: Path) -> Any:
        table = parquet.read_table(path)
        return [column.to_numpy() for column in table.columns]

    return "rows.parquet", write, "pyarrow, to NumPy", read


def _npy() -> Format:
    return "rows.npy", np.save, "numpy.load", lambda path: np.load(path, allow_pickle=False)


def _has(module: str) -> bool:
    return find_spec(module) is not None
