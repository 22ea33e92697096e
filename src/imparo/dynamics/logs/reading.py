"""Logs from files: one function for CSV, NPZ, Parquet and the bags of ROS.

Columns are found by their names::

    time      t, time, timestamp, stamp; a unit may follow: time_ms, t [ns]
    states    q, dq, ddq (also position, velocity, acceleration): alone, for one joint or as
              an array of all; with a number (q1, q_1, q[1]); with a joint (q_elbow)
    outputs   y; tau, effort or torque, as the states; fx fy fz tx ty tz (or mx my mz, or
              force_x ... torque_z), alone or with a prefix such as wrench_

and any other names by the argument ``columns``.
"""

import csv
import gzip
import io
import itertools
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from imparo.dynamics.extras import require
from imparo.dynamics.logs.log import STATES, Log, choose, even_stamps
from imparo.dynamics.robot import WRENCH
from imparo.engine import Array

_TIMES = ("t", "time", "timestamp", "stamp")
_UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_WORDS = {
    "q": ("q", "position", "pos"),
    "dq": ("dq", "qd", "velocity", "vel"),
    "ddq": ("ddq", "qdd", "acceleration", "acc"),
    "y": ("y",),
    "tau": ("tau", "effort", "torque"),
}
_UNIT = re.compile(r"(.*?)\s*[\[(]\s*([^\d\])][^\])]*?)\s*[\])]")
_COMPONENT = re.compile(r"(?:(.*)[_./ ])?(?:(f|force)|(t|m|torque))[_./ ]?([xyz])", re.I)
_TEXTS = (".csv", ".tsv", ".txt", ".dat")


def read_log(
    path: str | os.PathLike[str],
    *,
    joints: Sequence[str] | None = None,
    outputs: Sequence[str] | str | None = None,
    rate: float | None = None,
    columns: Mapping[str, Any] | None = None,
    degrees: bool | Sequence[str] = False,
    time_unit: str | None = None,
    rows: slice | None = None,
    drop: bool = False,
    joint_states: str | Sequence[str] | None = None,
    wrench: str | bool | None = None,
    stamps: str = "header",
    window: int = 11,
    order: int = 2,
    lag: int = 0,
    max_gap: float | None = None,
) -> Log:
    r"""Read a recording from a file, or from a folder that is a bag of ROS 2.

    ``.csv`` (also ``.tsv``, ``.txt``, ``.dat``, and these as ``.gz``), ``.npz``,
    ``.parquet``; ``.bag`` of ROS 1, ``.mcap``, ``.db3`` and folders of ROS 2. Parquet and
    bags need ``pip install 'imparo[logs]'``. Velocities and accelerations that the file does
    not hold are derived from the past, see :meth:`Log.from_signals`, and the notes of the log
    say how, and how late they are. Nothing is left out unless the notes say so.

    Parameters
    ----------
    path : path-like
    joints : sequence of str, optional
        Joints to read, in this order; where the file only numbers them, their names.
    outputs : sequence of str, or "tau", "wrench" or "y", optional
        Outputs to read, or which of several kinds.
    rate : float, optional
        Samples a second of the log; the file's own stamps if left out. Where a file has no
        stamps this is their rate.
    columns : mapping, optional
        Names of columns (in a text without names, their numbers from 0 on) for "t", "q",
        "dq", "ddq" and "y", one or a list. With "q", what is not mapped of dq and ddq is
        derived. None says that a column is not there.
    degrees : bool or sequence of str, default False
        Whether q, dq and ddq, of all joints or of these, are in degrees.
    time_unit : {"s", "ms", "us", "ns"}, optional
        Of the stamps; stamps in other units than seconds start at 0 in the log.
    rows : slice, optional
        Rows of the file to read.
    drop : bool, default False
        Leave out rows that are not finite or whose stamp does not increase. Otherwise they
        are an error.
    joint_states, wrench, stamps
        For bags, see :func:`imparo.dynamics.logs.bags.read_bag`.
    window, order, lag, max_gap
        See :meth:`Log.from_signals`.

    Returns
    -------
    Log

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from imparo.dynamics.logs.reading import read_log
    >>> text = "time, q_elbow [deg], tau_elbow\n0.0, 10, 1.5\n0.1, 20, 1.6\n0.2, 30, 1.7\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "arm.csv"
    ...     _ = file.write_text(text)
    ...     log = read_log(file, degrees=True, window=3)
    >>> log
    Log of 1 sample over 0 s; joints elbow; outputs elbow
    >>> print(log.dq.round(4), log.notes["dq"])
    [[1.7453]] derived from q: fit of order 2 to 3 samples, 0 samples (0 s) late
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    settings: dict[str, Any] = {
        "rate": rate, "window": window, "order": order, "lag": lag, "max_gap": max_gap
    }  # fmt: skip
    if path.is_dir() or path.suffix.lower() in (".bag", ".mcap", ".db3"):
        _refuse(path, "a bag", columns=columns, time_unit=time_unit, rows=rows)
        from imparo.dynamics.logs.bags import read_bag

        return read_bag(
            path, joints=joints, outputs=outputs, joint_states=joint_states, wrench=wrench,
            stamps=stamps, drop=drop, degrees=degrees, **settings,
        )  # fmt: skip
    other = None if stamps == "header" else stamps
    _refuse(path, "not a bag", joint_states=joint_states, wrench=wrench, stamps=other)
    table = _open(path)
    parts = _find(table, dict(columns or {}), outputs)
    t, unit = _find_time(table, dict(columns or {}))
    if unit and time_unit and _UNITS.get(unit) != _UNITS.get(time_unit):
        raise ValueError(f"time_unit is {time_unit!r}, but the column of {path} says {unit!r}")
    for name in (name for key in STATES if key in parts for name in parts[key].columns):
        said = _unit(name)[1].lower()
        if said.startswith(("deg", "°")) and degrees is False:
            raise ValueError(f"the column {name} of {path} is in degrees; give degrees=True")
        if said.startswith("rad") and degrees is True:
            raise ValueError(f"the column {name} of {path} is in rad; leave degrees out")
    values = {key: _matrix(table, part, rows) for key, part in parts.items()}
    names, titles, values = _pick(table, parts, values, joints, outputs)
    notes = {"source": path.name} if table.notes is None else dict(table.notes)
    if t is None:
        if rate is None:
            raise ValueError(
                f"{path} has no column of time among {table.listing}; name it with "
                "columns={'t': ...}, or give the rate of its rows in Hz as rate"
            )
        seconds = even_stamps(0.0, (len(values["q"]) - 0.5) / rate, rate)
        notes["t"], settings["rate"] = f"not recorded; rows counted at {rate:g} Hz", None
    else:
        seconds = _seconds(table, t, rows, unit or time_unit, notes)
    for key in STATES:
        if key in values:
            values[key] = to_radians(values[key], names, degrees)
    if drop:
        good, notes["dropped"] = rising(seconds, np.hstack(list(values.values())))
        if not good.any():
            raise ValueError(f"{path} has no row with finite numbers in all columns")
        seconds, values = seconds[good], {key: v[good] for key, v in values.items()}
    try:
        settings |= values
        return Log.from_signals(seconds, joints=names, outputs=titles, notes=notes, **settings)
    except ValueError as error:
        raise ValueError(f"{path} makes no log: {error}") from None


def to_radians(values: Array, joints: Sequence[str], degrees: bool | Sequence[str]) -> Array:
    """Convert the columns that are in degrees: all, none, or those of the joints named."""
    if isinstance(degrees, bool):
        return np.deg2rad(values) if degrees else values
    chosen = choose(joints, degrees, "joints to convert from degrees")
    values = values.copy()
    values[:, chosen] = np.deg2rad(values[:, chosen])
    return values


def rising(t: Array, rows: Array) -> tuple[Array, str]:
    """Return which rows are finite with a stamp after all before, and a note on the others."""
    finite = np.isfinite(t) & np.isfinite(rows).all(axis=1)
    known = np.where(finite, t, -np.inf)
    latest = np.concatenate([[-np.inf], np.maximum.accumulate(known)[:-1]])
    good = finite & (t > latest)
    late = int((finite & ~good).sum())
    note = f"{int((~finite).sum())} rows not finite, {late} whose stamps do not increase"
    return good, note


@dataclass
class _Table:
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
        shown = ", ".join(name[:40] for name in self.names[:20])
        return shown + f" and {len(self.names) - 20} more" * (len(self.names) > 20)


@dataclass
class _Part:
    """Columns for q, dq, ddq or y, with the joint or output of each where it is known."""

    columns: list[str]
    labels: list[str] | None = None
    # Other names may be given to these columns.
    loose: bool = True
    # One output a joint.
    torques: bool = False


def _refuse(path: Path, kind: str, **options: Any) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{path} is {kind}, and {' and '.join(given)} has no meaning there")


def _open(path: Path) -> _Table:
    kinds = [suffix.lower() for suffix in path.suffixes[-2:]]
    if kinds[-1:] == [".npz"]:
        return _open_npz(path)
    if kinds[-1:] == [".parquet"]:
        return _open_parquet(path)
    if kinds and (kinds[-1] in _TEXTS or (kinds[-1] == ".gz" and kinds[0] in _TEXTS)):
        return _open_text(path)
    raise ValueError(
        f"{path} is of no kind that can be read; give .csv, .npz, .parquet, .bag, .mcap, .db3 "
        "or the folder of a bag of ROS 2"
    )


def _open_npz(path: Path) -> _Table:
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
    return _Table(path, names, read, _notes(str(read("notes")), path) if ours else None, labels)


def _open_parquet(path: Path) -> _Table:
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
            return np.asarray((column.to_numpy(False) - column[0].as_py()) * 1e-9)
        if hasattr(column.type, "value_type"):
            lengths = set(map(len, column.to_pylist())) if not column.null_count else set()
            if len(lengths) != 1:
                raise ValueError(f"{name} of {path} has lists of several lengths, or none")
            return np.asarray(column.flatten().to_numpy(False)).reshape(len(column), -1)
        return np.asarray(column.to_numpy(zero_copy_only=False))

    names = list(dict.fromkeys(file.schema_arrow.names))
    return _Table(path, names, read, None if stored is None else _notes(stored.decode(), path))


def _open_text(path: Path) -> _Table:
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not text in UTF-8, but binary or damaged") from error
    if "\0" in text:
        raise ValueError(f"{path} is not text, but binary")
    # Line numbers are of the file, so comments and empty lines are counted and skipped.
    lines = [(k, line) for k, line in enumerate(io.StringIO(text), 1) if line.strip()]
    comments = list(itertools.takewhile(lambda pair: pair[1].lstrip()[0] in "#%", lines))
    lines = [pair for pair in lines if pair[1].lstrip()[0] not in "#%"]
    if not lines:
        raise ValueError(f"{path} is empty; a line of names and rows of numbers are needed")
    notes = None
    for _, comment in comments:
        if comment.startswith("# notes: {"):
            notes = _notes(comment.removeprefix("# notes: "), path)
    ours = notes is not None
    how: dict[str, Any] = {
        "delimiter": "," if ours else _delimiter([line for _, line in lines[:2]]),
        "skipinitialspace": True,
    }
    passed: list[int] = []

    def source() -> Iterable[str]:
        for number, line in lines:
            passed.append(number)
            yield line.strip(" \r\n") + "\n"

    cells: list[list[str]] = []
    places: list[int] = []
    try:
        for row in csv.reader(source(), **how):
            cells.append(row)
            places.append(passed[-1])
    except csv.Error as error:
        raise ValueError(f"{path} is not delimited text: {error}") from error
    names = [name.strip() for name in cells[0]]
    nameless = all(map(_is_number, names))
    if not nameless:
        cells, places = cells[1:], places[1:]
    elif comments:
        # numpy.savetxt writes the names as a comment.
        last = next(csv.reader([comments[-1][1].strip("#% \r\n")], **how), [])
        if len(last) == len(names) and not any(map(_is_number, last)):
            nameless, names = False, [name.strip() for name in last]
    if nameless:
        names = [str(k) for k in range(len(names))]
    for row, place in zip(cells, places, strict=True):
        if len(row) == len(names) + 1 and not row[-1]:
            row.pop()
        if len(row) != len(names):
            raise ValueError(
                f"line {place} of {path} has {len(row)} cells where {len(names)} were expected"
            )
    if not cells:
        raise ValueError(f"{path} has names but no rows")
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise ValueError(f"{path} has two columns named {twice!r}; rename one")

    def read(name: str) -> Array:
        place = names.index(name)
        column = [row[place].strip() for row in cells]
        try:
            numbers = np.array(list(map(float, column)))
            plain = "_" not in "".join(column)
        except ValueError:
            plain = False
        if not plain:
            for cell, number in zip(column, places, strict=True):
                if cell and not _is_number(cell):
                    raise ValueError(
                        f"line {number} of {path} has {cell[:40]!r} in the column {name}; "
                        "a number was expected"
                    )
            return np.array([float(cell) if cell else np.nan for cell in column])
        # Nanoseconds since 1970 have more digits than floats.
        if np.abs(numbers).max() > 2**53 and all(map(str.isdigit, column)):
            whole = [int(cell) for cell in column]
            return np.array(whole, dtype=np.int64) if max(whole) < 2**63 else numbers
        return numbers

    return _Table(path, named, read, notes, nameless=nameless, flat=True)


def _delimiter(lines: list[str]) -> str:
    """Return what splits the first lines into the same number of cells, the most of them."""
    best, most = " ", 1
    for mark in ",;\t":
        counts = {len(row) for row in csv.reader(lines, delimiter=mark)}
        if len(counts) == 1 and max(counts) > most:
            best, most = mark, max(counts)
    if most == 1:
        mark = max("\t;,", key=lines[0].count)
        best = mark if mark in lines[0] else " "
    return best


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    # Python also reads 1_000, which no log means.
    return "_" not in cell


def _notes(text: str, path: Path) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the notes in {path} are damaged: they are not JSON") from error
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise ValueError(f"the notes in {path} are damaged: they are not texts by name")
    return found


def _unit(name: str) -> tuple[str, str]:
    """Split ``q1 [deg]`` into its name and its unit, which may be empty."""
    match = _UNIT.fullmatch(name)
    return (match[1], match[2]) if match else (name, "")


def _find_time(table: _Table, mapping: dict[str, Any]) -> tuple[str | None, str]:
    """Return the column of stamps, None if there is none, and the unit that its name says."""
    if "t" in mapping:
        if mapping["t"] is None:
            return None, ""
        (name,) = _named(table, [mapping["t"]])
        return name, _time_name(name)[1]
    for word in _TIMES:
        for name in table.names:
            plain, unit = _time_name(name)
            if plain == word:
                return name, unit
    return None, ""


def _time_name(name: str) -> tuple[str, str]:
    plain, unit = _unit(name.lower())
    head, _, tail = plain.rpartition("_")
    if head and tail in _UNITS:
        plain, unit = head, tail
    return plain, unit


def _named(table: _Table, given: Any) -> list[str]:
    wanted = [given] if isinstance(given, str | int) else list(given)
    names = [str(name) for name in wanted]
    missing = [name for name in names if name not in table.names]
    if missing:
        raise ValueError(
            f"{table.path} has no column {', '.join(missing)}; its columns are {table.listing}"
        )
    return names


def _find(
    table: _Table, mapping: dict[str, Any], outputs: Sequence[str] | str | None
) -> dict[str, _Part]:
    """Return the columns of q and, where there are any, of dq, ddq and y."""
    unknown = set(mapping) - {"t", *STATES, "y"}
    if unknown:
        raise ValueError(f"columns has {sorted(unknown)}; its keys are t, q, dq, ddq and y")
    if table.nameless and "q" not in mapping:
        raise ValueError(
            f"{table.path} has no line of names; give its columns by number, "
            "as in columns={'t': 0, 'q': [1, 2]}"
        )
    parts: dict[str, _Part] = {}
    for key in STATES:
        if mapping.get(key) is not None:
            names = _named(table, mapping[key])
            parts[key] = _Part(names, _labels(table, names) if key == "q" else None)
        elif key not in mapping and "q" not in mapping:
            part = _family(table, key)
            if part:
                parts[key] = part
    if "q" not in parts:
        raise ValueError(
            f"{table.path} has no positions: no column q, q1 or q_NAME among {table.listing}; "
            "name them with columns={'q': [...]}"
        )
    if mapping.get("y") is not None:
        names = _named(table, mapping["y"])
        flat = len(names) > 1 and all(table.read(name).ndim == 1 for name in names)
        parts["y"] = _Part(names, names if flat else None)
    elif "y" not in mapping and not table.nameless:
        part = _find_outputs(table, outputs)
        if part:
            parts["y"] = part
    return parts


def _labels(table: _Table, names: list[str]) -> list[str] | None:
    if len(names) == 1 or table.nameless or any(table.read(x).ndim > 1 for x in names):
        return None
    heads = re.compile(rf"(?:{'|'.join(_WORDS['q'])})[_./ ](.+)", re.I)
    found = [heads.fullmatch(_unit(name)[0]) for name in names]
    return [match[1] if match else name for match, name in zip(found, names, strict=True)]


def _family(table: _Table, key: str, skip: Iterable[str] = ()) -> _Part | None:
    """Find the columns of one kind: alone, numbered, or with the names of joints."""
    plain = {
        name: name if table.notes is not None else _unit(name)[0]
        for name in table.names
        if name not in skip
    }
    for word in _WORDS[key]:
        for name, text in plain.items():
            if text.lower() == word:
                return _Part([name], table.labels.get(key))
        pattern = re.compile(rf"{word}(?:[_./ ](.+)|\[?(\d+)\]?)", re.I)
        found: dict[str, str] = {}
        for name, text in plain.items():
            match = pattern.fullmatch(text)
            # An array such as ddq_smooth is not of one joint.
            if match and (table.flat or table.read(name).ndim == 1):
                label = match[1] or match[2]
                if label in found:
                    raise ValueError(
                        f"{table.path} has {found[label]} and {name} for the same joint"
                    )
                found[label] = name
        if found and table.notes is None and all(label.isdigit() for label in found):
            order = sorted(found, key=int)
            first = min(int(order[0]), 1)
            if [int(label) for label in order] != list(range(first, first + len(order))):
                raise ValueError(
                    f"{table.path} has {', '.join(found.values())}; a number is missing"
                )
            return _Part([found[k] for k in order], [f"joint{int(k)}" for k in order])
        if found:
            return _Part(list(found.values()), list(found), loose=False)
    return None


def _find_outputs(table: _Table, outputs: Sequence[str] | str | None) -> _Part | None:
    kinds: dict[str, _Part] = {}
    wrenches: dict[str, dict[str, str]] = {}
    for name in table.names if table.notes is None else []:
        match = _COMPONENT.fullmatch(_unit(name)[0])
        if match:
            axis = ("F" if match[2] else "T") + match[4].lower()
            wrenches.setdefault(match[1] or "", {})[axis] = name
    wrenches = {head: axes for head, axes in wrenches.items() if len(axes) == len(WRENCH)}
    for head, axes in wrenches.items():
        part = _Part([axes[axis] for axis in WRENCH], list(WRENCH))
        kinds["wrench" if len(wrenches) == 1 else head or "wrench"] = part
    if "wrench" in table.names:
        kinds["wrench"] = _Part(["wrench"], list(WRENCH))
    used = [name for part in kinds.values() for name in part.columns]
    for key in ("tau", "y"):
        found = _family(table, key, skip=used)
        if found:
            found.torques = key == "tau"
            kinds[key] = found
    if isinstance(outputs, str):
        if outputs not in kinds:
            raise ValueError(
                f"{table.path} has no outputs {outputs}; it has {', '.join(kinds) or 'none'}"
            )
        kinds = {outputs: kinds[outputs]}
    elif "y" in kinds:
        kinds = {"y": kinds["y"]}
    if len(kinds) > 1:
        raise ValueError(
            f"{table.path} has several kinds of outputs; choose one with outputs=, "
            f"of {', '.join(map(repr, kinds))}"
        )
    return next(iter(kinds.values()), None)


def _matrix(table: _Table, part: _Part, rows: slice | None) -> Array:
    blocks = []
    for name in part.columns:
        block = table.read(name)
        if block.dtype.kind not in "iuf" or block.ndim not in (1, 2):
            raise ValueError(
                f"{name} of {table.path} holds {block.dtype} of shape {block.shape}; rows of "
                "numbers were expected"
            )
        block = block.reshape(len(block), -1)[slice(None) if rows is None else rows]
        if not len(block):
            raise ValueError(f"{name} of {table.path} has no rows here")
        blocks.append(block.astype(np.float64))
    if len({len(block) for block in blocks}) > 1:
        raise ValueError(f"the columns {', '.join(part.columns)} differ in length")
    found: Array = np.hstack(blocks)
    return found


def _pick(
    table: _Table,
    parts: dict[str, _Part],
    values: dict[str, Array],
    joints: Sequence[str] | None,
    outputs: Sequence[str] | str | None,
) -> tuple[list[str], list[str] | None, dict[str, Array]]:
    """Return the names of joints and outputs, and the columns that are theirs."""
    for key, part in parts.items():
        if part.labels is not None and len(part.labels) != values[key].shape[1]:
            raise ValueError(
                f"{key} of {table.path} has {values[key].shape[1]} columns, but there are "
                f"{len(part.labels)} names: {', '.join(part.labels)}"
            )
    width = values["q"].shape[1]
    labels = parts["q"].labels or [f"joint{j + 1}" for j in range(width)]
    chosen, names = _chosen(table, labels, joints, "joints", parts["q"].loose)
    wanted = [labels[j] for j in chosen]
    taken = {"q": values["q"][:, chosen]}
    for key, part in parts.items():
        if key == "q" or (key == "y" and not part.torques):
            continue
        have = part.labels or labels
        if len(have) != values[key].shape[1] or (joints is None and set(have) != set(labels)):
            raise ValueError(
                f"{table.path} has {values[key].shape[1]} columns for {key}, "
                f"{', '.join(part.columns)}, but positions of the joints {', '.join(labels)}; "
                "choose joints that have both, or name the columns with columns={...}"
            )
        taken[key] = values[key][:, choose(have, wanted, f"{key} of the joints")]
    if "y" not in parts:
        if outputs is not None:
            raise ValueError(f"{table.path} has no outputs among its columns {table.listing}")
        return names, None, taken
    part = parts["y"]
    titles = names if part.torques else part.labels
    y = taken["y"] if part.torques else values["y"]
    if outputs is not None and not isinstance(outputs, str):
        have = titles or [f"y{k + 1}" for k in range(y.shape[1])]
        places, titles = _chosen(table, have, outputs, "outputs", part.loose)
        y = y[:, places]
    return names, titles, {**taken, "y": y}


def _chosen(
    table: _Table, have: list[str], want: Sequence[str] | None, what: str, loose: bool
) -> tuple[list[int], list[str]]:
    """Return places and names of what is wanted; loose names may be replaced by others."""
    if want is None:
        return list(range(len(have))), have
    if loose and len(want) == len(have) and not set(want) & set(have):
        return list(range(len(have))), list(want)
    try:
        return choose(have, want, what), list(want)
    except ValueError as error:
        raise ValueError(f"{table.path}: {error}") from None


def _seconds(
    table: _Table, name: str, rows: slice | None, unit: str | None, notes: dict[str, str]
) -> Array:
    if unit and unit not in _UNITS:
        raise ValueError(f"{unit!r} is no unit of time; it may be s, ms, us or ns")
    stamps = table.read(name)
    if stamps.dtype.kind not in "iuf" or stamps.size != len(stamps):
        raise ValueError(f"{name} of {table.path} must hold one number a row, the time")
    stamps = stamps.reshape(-1)[slice(None) if rows is None else rows]
    scale = _UNITS[unit or "s"]
    if scale != 1.0 and len(stamps):
        first = stamps[0].item()
        notes["start"] = f"{int(first) if first == first // 1 else first} {unit}"
        return (stamps - stamps[0]) * scale
    seconds: Array = stamps.astype(np.float64)
    if not unit and table.notes is None and len(seconds) > 1:
        step = float(np.median(np.diff(seconds)))
        if step >= 1.0:
            raise ValueError(
                f"{name} of {table.path} has steps of {step:g}, too long for seconds; say what "
                "they are with time_unit='ms', 'us' or 'ns' ('s' if they are seconds)"
            )
    return seconds
