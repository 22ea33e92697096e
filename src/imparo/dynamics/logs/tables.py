"""Files of named columns, opened but not yet understood: any table, NPZ and Parquet."""

import json
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from imparo.engine import Array
from imparo.extras import require


@dataclass
class Table:
    """Columns of a file by name; a column may have two axes."""

    path: Path
    names: list[str]
    read: Callable[[str], Array]
    # Those of a log that was saved; they also say that the names are ours.
    notes: dict[str, str] | None = None
    labels: dict[str, list[str]] = field(default_factory=dict)
    nameless: bool = False
    # Whether every column has one axis.
    flat: bool = False

    @property
    def listing(self) -> str:
        """The names of the first columns, and how many more there are."""
        shown = ", ".join(name[:40] for name in self.names[:20])
        return shown + f" and {len(self.names) - 20} more" * (len(self.names) > 20)


def open_npz(path: Path) -> Table:
    """Open an archive of arrays; an array is loaded when it is read."""
    # A damaged archive may also ask for a password or an unknown method: RuntimeError.
    broken = (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = list(archive.files)
    # A single array, as numpy.save writes it, has no files.
    except (*broken, AttributeError, TypeError) as error:
        raise ValueError(f"{path} is not an archive that numpy.savez has written") from error

    def read(name: str) -> Array:
        try:
            with np.load(path, allow_pickle=False) as archive:
                found: Array = archive[name]
        except broken as error:
            raise ValueError(
                f"{name} of {path} is damaged or holds Python objects, which are not loaded; "
                "save arrays of numbers"
            ) from error
        return found

    labels = {}
    for key, name in (("q", "joints"), ("y", "outputs")):
        if name in names and (found := read(name)).dtype.kind == "U" and found.ndim == 1:
            labels[key] = found.tolist()
    ours = "notes" in names and len(labels) == 2
    notes = stored_notes(str(read("notes")), path) if ours else None
    return Table(path, names, read, notes, labels)


def open_parquet(path: Path) -> Table:
    """Open a Parquet file; times become seconds from the first, lists of one length rows."""
    pyarrow, parquet = require("pyarrow", "logs"), require("pyarrow.parquet", "logs")
    try:
        file = parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a Parquet file, or not all of one") from error
    stored = (file.schema_arrow.metadata or {}).get(b"imparo")

    def read(name: str) -> Array:
        try:
            column = file.read(columns=[name]).column(0).combine_chunks()
        except (pyarrow.ArrowException, OSError, IndexError) as error:
            raise ValueError(f"{name} of {path} is damaged") from error
        if pyarrow.types.is_timestamp(column.type) or pyarrow.types.is_duration(column.type):
            column = column.cast(f"{str(column.type).split('[')[0]}[ns]").cast("int64")
            stamps = column.to_numpy(False)
            return np.asarray((stamps - stamps[:1]) * 1e-9)
        if hasattr(column.type, "value_type"):
            lengths = set(map(len, column.to_pylist())) if not column.null_count else set()
            if len(lengths) != 1:
                raise ValueError(f"{name} of {path} has lists of several lengths, or none")
            return np.asarray(column.flatten().to_numpy(False)).reshape(len(column), -1)
        return np.asarray(column.to_numpy(zero_copy_only=False))

    names = list(dict.fromkeys(file.schema_arrow.names))
    notes = None if stored is None else stored_notes(stored.decode(), path)
    return Table(path, names, read, notes)


def stored_notes(text: str, path: Path) -> dict[str, str]:
    """Return the notes that a saved log has as JSON."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the notes in {path} are damaged: they are not JSON") from error
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise ValueError(f"the notes in {path} are damaged: they are not texts by name")
    return found
