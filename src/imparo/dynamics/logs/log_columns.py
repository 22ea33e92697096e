"""Which columns of a file are time, states and outputs, found by their names.

Names that are known::

    time      t, time, timestamp, stamp; a unit may follow: time_ms, t [ns]
    states    q, dq, ddq (also position, velocity, acceleration): alone, for one joint or as
              an array of all; with a number (q1, q_1, q[1]); with a joint (q_elbow)
    outputs   y; tau, effort or torque, as the states; fx fy fz tx ty tz (or mx my mz, or
              force_x ... torque_z), alone or with a prefix such as wrench_

and any other names by the argument ``columns``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from imparo.dynamics.logs.checks import listed
from imparo.dynamics.logs.log import STATES
from imparo.dynamics.logs.tables import Table
from imparo.dynamics.robot import WRENCH

_TIMES = ("t", "time", "timestamp", "stamp")
UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_WORDS = {
    "q": ("q", "position", "pos"),
    "dq": ("dq", "qd", "velocity", "vel"),
    "ddq": ("ddq", "qdd", "acceleration", "acc"),
    "y": ("y",),
    "tau": ("tau", "effort", "torque"),
}
_UNIT = re.compile(r"(.*?)\s*[\[(]\s*([^\d\])][^\])]*?)\s*[\])]")
_COMPONENT = re.compile(r"(?:(.*)[_./ ])?(?:(f|force)|(t|m|torque))[_./ ]?([xyz])", re.I)


@dataclass
class Part:
    """Columns for q, dq, ddq or y, with the joint or output of each where it is known."""

    columns: list[str]
    labels: list[str] | None = None
    # Other names may be given to these columns.
    loose: bool = True
    # One output a joint.
    torques: bool = False


def split_unit(name: str) -> tuple[str, str]:
    """Split ``q1 [deg]`` into its name and its unit, which may be empty."""
    match = _UNIT.fullmatch(name)
    return (match[1], match[2]) if match else (name, "")


def find_time(table: Table, mapping: Mapping[str, Any]) -> tuple[str | None, str]:
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
    plain, unit = split_unit(name.lower())
    head, _, tail = plain.rpartition("_")
    if head and tail in UNITS:
        plain, unit = head, tail
    return plain, unit


def _named(table: Table, given: Any) -> list[str]:
    """Return the columns that a user named, one or several, by name or by number."""
    wanted = [given] if isinstance(given, str | int) else list(given)
    names = [str(name) for name in wanted]
    missing = [name for name in names if name not in table.names]
    if missing:
        raise ValueError(
            f"{table.path} has no column {', '.join(missing)}; its columns are {table.listing}"
        )
    return names


def find_columns(
    table: Table, mapping: Mapping[str, Any], outputs: Sequence[str] | str | None
) -> dict[str, Part]:
    """Return the columns of q and, where there are any, of dq, ddq and y."""
    unknown = set(mapping) - {"t", *STATES, "y"}
    if unknown:
        raise ValueError(f"columns has {sorted(unknown)}; its keys are t, q, dq, ddq and y")
    if table.nameless and "q" not in mapping:
        raise ValueError(
            f"{table.path} has no line of names; give its columns by number, "
            "as in columns={'t': 0, 'q': [1, 2]}"
        )
    parts: dict[str, Part] = {}
    for key in STATES:
        if mapping.get(key) is not None:
            names = _named(table, mapping[key])
            parts[key] = Part(names, _labels(table, names) if key == "q" else None)
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
        parts["y"] = Part(names, names if flat else None)
    elif "y" not in mapping and not table.nameless:
        part = _find_outputs(table, outputs)
        if part:
            parts["y"] = part
    return parts


def _labels(table: Table, names: list[str]) -> list[str] | None:
    if len(names) == 1 or table.nameless or any(table.read(x).ndim > 1 for x in names):
        return None
    heads = re.compile(rf"(?:{'|'.join(_WORDS['q'])})[_./ ](.+)", re.I)
    found = [heads.fullmatch(split_unit(name)[0]) for name in names]
    return [match[1] if match else name for match, name in zip(found, names, strict=True)]


def _family(table: Table, key: str, skip: Iterable[str] = ()) -> Part | None:
    """Find the columns of one kind: alone, numbered, or with the names of joints."""
    plain = {
        name: name if table.notes is not None else split_unit(name)[0]
        for name in table.names
        if name not in skip
    }
    for word in _WORDS[key]:
        for name, text in plain.items():
            if text.lower() == word:
                return Part([name], table.labels.get(key))
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
            return Part([found[k] for k in order], [f"joint{int(k)}" for k in order])
        if found:
            return Part(list(found.values()), list(found), loose=False)
    return None


def _find_outputs(table: Table, outputs: Sequence[str] | str | None) -> Part | None:
    kinds: dict[str, Part] = {}
    wrenches: dict[str, dict[str, str]] = {}
    for name in table.names if table.notes is None else []:
        match = _COMPONENT.fullmatch(split_unit(name)[0])
        if match:
            axis = ("F" if match[2] else "T") + match[4].lower()
            wrenches.setdefault(match[1] or "", {})[axis] = name
    wrenches = {head: axes for head, axes in wrenches.items() if len(axes) == len(WRENCH)}
    for head, axes in wrenches.items():
        part = Part([axes[axis] for axis in WRENCH], list(WRENCH))
        kinds["wrench" if len(wrenches) == 1 else head or "wrench"] = part
    if "wrench" in table.names:
        kinds["wrench"] = Part(["wrench"], list(WRENCH))
    used = [name for part in kinds.values() for name in part.columns]
    for key in ("tau", "y"):
        found = _family(table, key, skip=used)
        if found:
            found.torques = key == "tau"
            kinds[key] = found
    if isinstance(outputs, str):
        if outputs not in kinds:
            raise ValueError(f"{table.path} has no outputs {outputs}; it has {listed(kinds)}")
        kinds = {outputs: kinds[outputs]}
    elif "y" in kinds:
        kinds = {"y": kinds["y"]}
    if len(kinds) > 1:
        raise ValueError(
            f"{table.path} has several kinds of outputs; choose one with outputs=, "
            f"of {', '.join(map(repr, kinds))}"
        )
    return next(iter(kinds.values()), None)
