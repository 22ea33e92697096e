"""Joints and wrenches of a bag, each on its own stamps, and the stamps they can share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imparo.dynamics.logs.bag_messages import Bag
from imparo.dynamics.logs.checks import check_gaps, check_stamps
from imparo.dynamics.logs.log import STATES
from imparo.dynamics.logs.preparation import complete_states, rising, to_radians
from imparo.dynamics.logs.signals import even_stamps, lateness, resample
from imparo.dynamics.robot import WRENCH
from imparo.engine import Array


@dataclass
class Stream:
    """Signals with the same stamps: the columns q, dq, ddq, y of some joints, or a wrench."""

    name: str
    joints: list[str]
    ns: Array
    values: Array
    arrival: bool
    has_velocity: bool = False
    has_effort: bool = False
    t: Array = field(default_factory=lambda: np.empty(0))
    # Longest time that a value may be held.
    reach: float = 0.0
    columns: dict[str, Array] = field(default_factory=dict)

    def settle(
        self, zero: int, drop: bool, max_gap: float | None, notes: dict[str, str]
    ) -> None:
        """Check stamps and values, and count seconds from zero."""
        t = (self.ns - zero) * 1e-9
        if drop:
            good, text = rising(t, self.values)
            if not good.all():
                notes[f"dropped from {self.name}"] = text
            t, self.values = t[good], self.values[good]
        bad = int((~np.isfinite(self.values).all(axis=1)).sum())
        if bad:
            raise ValueError(
                f"{self.name} has {bad} of {len(t)} messages in which a value is "
                "missing or not finite; give drop=True to leave them out"
            )
        try:
            self.t = check_stamps(t)
        except ValueError as error:
            hint = "" if self.arrival else ", or stamps='bag' to use the time of arrival"
            raise ValueError(
                f"{error}, in {self.name}; give drop=True to leave these out{hint}"
            ) from None
        self.reach = check_gaps(self.t, max_gap, self.name)
        notes[f"stamps of {self.name}"] = "of arrival" if self.arrival else "of the messages"
        if not self.joints:
            self.columns = dict(zip([f"y {w}" for w in WRENCH], self.values.T, strict=True))

    def complete(
        self,
        degrees: bool | Sequence[str],
        fit: dict[str, Any],
        max_gap: float | None,
        notes: dict[str, str],
    ) -> None:
        """Derive what was not measured."""
        J = len(self.joints)
        parts = [self.values[:, k : k + J] for k in range(0, self.values.shape[1], J)]
        if not isinstance(degrees, bool):
            degrees = [joint for joint in self.joints if joint in degrees]
        q = to_radians(parts[0], self.joints, degrees)
        dq = to_radians(parts[1], self.joints, degrees) if self.has_velocity else None
        rows, states, said = complete_states(self.t, q, dq, max_gap=max_gap, **fit)
        notes |= said
        self.t = self.t[rows]
        named = [*zip(STATES, states, strict=True)]
        if self.has_effort:
            named.append(("y", parts[-1][rows]))
        for key, part in named:
            for joint, column in zip(self.joints, part.T, strict=True):
                self.columns[f"{key} {joint}"] = column

    def at(self, base: Array, notes: dict[str, str]) -> Iterator[tuple[str, Array]]:
        """Return each column at the stamps of the base."""
        if np.array_equal(self.t, base):
            yield from self.columns.items()
            return
        names, block = list(self.columns), np.column_stack(list(self.columns.values()))
        ages = base - resample(self.t, self.t, base)
        notes[f"resampled {self.name}"] = lateness(ages)
        yield from zip(names, resample(self.t, block, base).T, strict=True)


def streams_of_joints(
    bag: Bag, wanted: list[str], stamps: str, with_effort: bool
) -> list[Stream]:
    """Put joints with the same stamps and the same kinds of values together."""
    groups: dict[Any, list[str]] = {}
    arrays = {joint: bag.states[joint].arrays(stamps) for joint in wanted}
    for joint, (ns, values, _) in arrays.items():
        measured = bool(np.isfinite(values[:, 1]).any())
        groups.setdefault((ns.tobytes(), measured), []).append(joint)
    streams = []
    for (_, measured), joints in groups.items():
        kept = [0, *[1] * measured, *[2] * with_effort]
        values = np.hstack([arrays[joint][1][:, [k]] for k in kept for joint in joints])
        ns, _, arrival = arrays[joints[0]]
        topic = bag.states[joints[0]].topic
        name = f"{topic} ({', '.join(joints)})" if len(groups) > 1 else topic
        streams.append(Stream(name, joints, ns, values, arrival, measured, with_effort))
    return streams


def common_stamps(streams: list[Stream], rate: float | None, notes: dict[str, str]) -> Array:
    """Return the stamps of the log: where every stream has a value that is not too old."""
    start = max(stream.t[0] for stream in streams)
    end = min(stream.t[-1] + (0.0 if stream.joints else stream.reach) for stream in streams)
    first = next(stream.t for stream in streams if stream.joints)
    if start > end:
        spans = "; ".join(f"{s.name} from {s.t[0]:.3f} to {s.t[-1]:.3f} s" for s in streams)
        raise ValueError(f"the streams have no time in common: {spans}")
    if rate is not None:
        return even_stamps(start, end, rate)
    if any(stream.joints and not np.array_equal(stream.t, first) for stream in streams):
        raise ValueError("the joints have several time stamps; give the rate of the log in Hz")
    base: Array = first[(first >= start) & (first <= end)]
    if len(base) < len(first):
        text = f"; {len(first) - len(base)} samples without a wrench"
        notes["left out"] = notes.get("left out", "") + text
    return base
