"""Logs from files: one function for CSV, NPZ, Parquet and the bags of ROS."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imparo.dynamics.logs.checks import choose
from imparo.dynamics.logs.log import STATES, Log
from imparo.dynamics.logs.log_columns import UNITS, Part, find_columns, find_time, split_unit
from imparo.dynamics.logs.preparation import rising, to_radians
from imparo.dynamics.logs.signals import even_stamps
from imparo.dynamics.logs.tables import Table, open_npz, open_parquet
from imparo.dynamics.logs.text_tables import open_text
from imparo.engine import Array

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
    say how, and how late they are. Nothing is left out unless the notes say so. The names of
    columns that are known are listed in :mod:`imparo.dynamics.logs.log_columns`. Cost: about
    0.6 microseconds a number of a text, less in other files.

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
    table, mapping = _open(path), dict(columns or {})
    chosen = slice(None) if rows is None else rows
    parts = find_columns(table, mapping, outputs)
    t, unit = find_time(table, mapping)
    if unit and time_unit and UNITS.get(unit) != UNITS.get(time_unit):
        raise ValueError(f"time_unit is {time_unit!r}, but the column of {path} says {unit!r}")
    for name in (name for key in STATES if key in parts for name in parts[key].columns):
        said = split_unit(name)[1].lower()
        if said.startswith(("deg", "°")) and degrees is False:
            raise ValueError(f"the column {name} of {path} is in degrees; give degrees=True")
        if said.startswith("rad") and degrees is True:
            raise ValueError(f"the column {name} of {path} is in rad; leave degrees out")
    values = {key: _matrix(table, part, chosen) for key, part in parts.items()}
    names, titles, values = _pick(table, parts, values, joints, outputs)
    notes = {"source": path.name} if table.notes is None else dict(table.notes)
    if t is None:
        if rate is None:
            raise ValueError(
                f"{path} has no column of time among {table.listing}; name it with "
                "columns={'t': ...}, or give the rate of its rows in Hz as rate"
            )
        seconds = even_stamps(0.0, (len(values["q"]) - 0.5) / rate if rate else 0.0, rate)
        notes["t"], settings["rate"] = f"not recorded; rows counted at {rate:g} Hz", None
    else:
        seconds = _seconds(table, t, chosen, unit or time_unit, notes)
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


def _refuse(path: Path, kind: str, **options: Any) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{path} is {kind}, and {' and '.join(given)} has no meaning there")


def _open(path: Path) -> Table:
    kinds = [suffix.lower() for suffix in path.suffixes[-2:]]
    if kinds[-1:] == [".npz"]:
        return open_npz(path)
    if kinds[-1:] == [".parquet"]:
        return open_parquet(path)
    if kinds and (kinds[-1] in _TEXTS or (kinds[-1] == ".gz" and kinds[0] in _TEXTS)):
        return open_text(path)
    raise ValueError(
        f"{path} is of no kind that can be read; give .csv, .npz, .parquet, .bag, .mcap, .db3 "
        "or the folder of a bag of ROS 2"
    )


def _matrix(table: Table, part: Part, rows: slice) -> Array:
    blocks = []
    for name in part.columns:
        block = table.read(name)
        if block.dtype.kind not in "iuf" or block.ndim not in (1, 2):
            raise ValueError(
                f"{name} of {table.path} holds {block.dtype} of shape {block.shape}; rows of "
                "numbers were expected"
            )
        block = block.reshape(len(block), -1)[rows]
        if not len(block):
            raise ValueError(f"{name} of {table.path} has no rows here")
        blocks.append(block.astype(np.float64))
    if len({len(block) for block in blocks}) > 1:
        raise ValueError(f"the columns {', '.join(part.columns)} differ in length")
    found: Array = np.hstack(blocks)
    return found


def _pick(
    table: Table,
    parts: dict[str, Part],
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
    table: Table, have: list[str], want: Sequence[str] | None, what: str, loose: bool
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
    table: Table, name: str, rows: slice, unit: str | None, notes: dict[str, str]
) -> Array:
    if unit and unit not in UNITS:
        raise ValueError(f"{unit!r} is no unit of time; it may be s, ms, us or ns")
    stamps = table.read(name)
    if stamps.dtype.kind not in "iuf" or stamps.size != len(stamps):
        raise ValueError(f"{name} of {table.path} must hold one number a row, the time")
    stamps = stamps.reshape(-1)[rows]
    scale = UNITS[unit or "s"]
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
