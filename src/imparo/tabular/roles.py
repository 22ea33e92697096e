"""Which column is what: inputs, target, weight, group, time."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from imparo.data.readers import Rows
from imparo.preparation.columns import listed


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are used for.

    Attributes
    ----------
    inputs, target : list of str
        Columns to learn from, and to learn.
    weight, group, time : str or None
        Columns with the weights of rows, with what must not be split between fit and test, and
        with what tells before from after.
    dropped : list of str
        Columns that are not read.
    notes : list of str
        What was decided without being told, in sentences.
    """

    inputs: list[str]
    target: list[str]
    weight: str | None = None
    group: str | None = None
    time: str | None = None
    dropped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def read(self) -> list[str]:
        """The columns to read, each once."""
        others = [name for name in (self.weight, self.group, self.time) if name is not None]
        return list(dict.fromkeys([*self.inputs, *self.target, *others]))

    def use_of(self, name: str) -> str:
        """Return what a column is used for, in a word."""
        if name in self.target:
            return "target"
        if name in self.inputs:
            return "input"
        uses = {self.weight: "weight", self.group: "group", self.time: "time"}
        return uses.get(name, "dropped")


def assign_roles(
    rows: Rows,
    target: str | Sequence[str] | None = None,
    *,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    time: str | None = None,
) -> Roles:
    """Return what the columns of a table are used for.

    Parameters
    ----------
    rows : Rows
    target : str or sequence of str, optional
        Columns to learn: names, numbers from 0 on (or −1 for the last), or the name of an array
        of several. Left out: what the file calls its target, or else its last column.
    columns : sequence of str
        Columns to learn from; all others if empty.
    drop : sequence of str
        Columns to leave out.
    weight, group, time : str, optional
        Not learned from, unless ``columns`` names them.

    Returns
    -------
    Roles
    """
    if rows.is_sparse:
        return _sparse_roles(target, [*columns, *drop], weight or group or time)
    notes: list[str] = []
    wanted = [target] if isinstance(target, str) else list(target or ())
    if wanted:
        goal = _named(rows, wanted, "target")
    elif rows.targets:
        goal = list(rows.targets)
    else:
        partitions = getattr(rows, "partitions", [])
        goal = [name for name in rows.names if name not in partitions][-1:]
        notes.append(f"no target was named: the last column, '{goal[0]}', is learned")
    weight, group, time = (
        None if name is None else _named(rows, [name], role)[0]
        for name, role in ((weight, "weight"), (group, "group"), (time, "time"))
    )
    dropped = set(_named(rows, drop, "drop"))
    special = {name for name in (weight, group, time) if name is not None}
    if columns:
        inputs = _named(rows, columns, "columns")
        twice = [name for name in inputs if name in goal]
        if twice:
            raise ValueError(
                f"{listed(twice)} cannot be learned and be learned from; leave it out of one"
            )
    else:
        # An archive with X and y says itself what is learned from.
        offered = rows.groups.get("X", rows.names) if rows.targets else rows.names
        inputs = [name for name in offered if name not in special]
    inputs = [name for name in inputs if name not in dropped and name not in goal]
    if not inputs:
        raise ValueError(
            "no column is left to learn from; a target and at least one other column are needed"
        )
    kept = Roles(inputs, goal, weight, group, time)
    gone = [name for name in rows.names if name not in set(kept.read)]
    return Roles(inputs, goal, weight, group, time, gone, notes)


def _sparse_roles(
    target: str | Sequence[str] | None, columns: Sequence[str], special: str | None
) -> Roles:
    named = [target] if isinstance(target, str) else list(target or ())
    if named not in ([], ["y"]):
        raise ValueError(
            f"the target of a sparse file is the first value of each line, and not "
            f"{listed(named)}; leave the target out"
        )
    if columns or special:
        raise ValueError(
            "columns of a sparse file have no names; leave out what names columns, weights, "
            "groups or times"
        )
    return Roles([], ["y"])


def _named(rows: Rows, names: Iterable[str], role: str) -> list[str]:
    """Return the columns that names, numbers and names of arrays stand for."""
    found: list[str] = []
    for name in names:
        if name in rows.names:
            found.append(name)
        elif name in rows.groups:
            found.extend(rows.groups[name])
        elif _is_place(name) and -len(rows.names) <= int(name) < len(rows.names):
            found.append(rows.names[int(name)])
        else:
            raise ValueError(f"{role}: {no_column(name, [*rows.groups, *rows.names])}")
    return list(dict.fromkeys(found))


def _is_place(name: str) -> bool:
    return name.removeprefix("-").isdigit()


def no_column(name: str, names: Sequence[str]) -> str:
    """Return a sentence that there is no such column, and which there are."""
    alike = {other.lower(): other for other in names}
    near = difflib.get_close_matches(name.lower(), alike, 1)
    hint = f"; did you mean '{alike[near[0]]}'" if near else ""
    return f"there is no column '{name}' among {listed(list(names))}{hint}"
