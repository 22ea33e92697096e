"""Logs from the bags of ROS 1 and ROS 2: joint states and wrenches on one time base."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from imparo.dynamics.extras import require
from imparo.dynamics.logs.differentiation import check_gaps, check_stamps, resample
from imparo.dynamics.logs.log import Log, choose, complete_states, even_stamps, lateness
from imparo.dynamics.logs.reading import rising, to_radians
from imparo.dynamics.robot import WRENCH
from imparo.engine import Array

_STATE = "sensor_msgs/msg/JointState"
_WRENCHES = ("geometry_msgs/msg/WrenchStamped", "geometry_msgs/msg/Wrench")


def read_bag(
    path: Path,
    *,
    joints: Sequence[str] | None = None,
    outputs: Sequence[str] | str | None = None,
    joint_states: str | Sequence[str] | None = None,
    wrench: str | bool | None = None,
    stamps: str = "header",
    drop: bool = False,
    degrees: bool | Sequence[str] = False,
    rate: float | None = None,
    window: int = 11,
    order: int = 2,
    lag: int = 0,
    max_gap: float | None = None,
) -> Log:
    """Read joint states, and efforts or a wrench, from a bag. Users call ``read_log``.

    Messages of ``sensor_msgs/JointState`` may hold the joints in any order and be split over
    messages and topics. Each joint is differentiated on its own stamps; accelerations always
    are derived, velocities where the messages have none. Then everything is brought to one
    time base from the past alone, by :func:`resample`: the mean of the samples since the last
    stamp of the base or, where there is none, the last sample. The notes say how late it is.
    Cost: about 50 microseconds a message.

    Parameters
    ----------
    path : Path
        ``.bag`` of ROS 1; ``.mcap``, ``.db3`` or a folder with such files of ROS 2. Types of
        messages need not be stored in it.
    joints : sequence of str, optional
        Joints to read, in this order; all, in the order they appear, if left out.
    outputs : sequence of str, or "tau" or "wrench", optional
        Some of the outputs, or which kind they are.
    joint_states : str or sequence of str, optional
        Topics of joint states; may be left out where there is only one.
    wrench : str or True, optional
        Topic of type ``WrenchStamped`` or ``Wrench`` to take as y; True where there is only
        one. Left out, y is the effort of the joints.
    stamps : {"header", "bag"}, default "header"
        Use the stamps of messages, or those of their arrival; arrival also where a message
        has none.
    drop : bool, default False
        Leave out messages that are not finite or whose stamp does not increase.
    degrees : bool or sequence of str, default False
    rate : float, optional
        Hz of the time base; the stamps of the joint states if left out.
    window, order, lag, max_gap
        See :meth:`Log.from_signals`. A stream without a message for longer than max_gap, 10
        of its median steps if None, is an error.
    """
    if stamps not in ("header", "bag"):
        raise ValueError(f"stamps is {stamps!r}; give 'header' or 'bag'")
    if outputs == "wrench" and wrench is None:
        wrench = True
    bag = _read(path, joint_states, wrench)
    try:
        have = list(bag.states)
        wanted = have if joints is None else [have[k] for k in choose(have, joints, "joints")]
        if not isinstance(degrees, bool):
            choose(wanted, degrees, "joints to convert from degrees")
        kind = "wrench" if bag.wrench else _effort(bag, wanted, outputs)
        notes = {"source": path.name}
        fit: dict[str, Any] = {"window": window, "order": order, "lag": lag}
        streams = _groups(bag, wanted, stamps, kind == "effort")
        if bag.wrench:
            streams.append(_Stream(bag.wrench.topic, [], *bag.wrench.arrays(stamps)))
            notes |= {"frame": bag.wrench.frame} if bag.wrench.frame else {}
        zero = min(int(stream.ns.min()) for stream in streams)
        notes["start"] = f"{zero} ns since 1970"
        for stream in streams:
            stream.settle(zero, drop, max_gap, notes)
            if stream.joints:
                stream.complete(degrees, fit, max_gap, notes)
        base = _base(streams, rate, notes)
        columns = {
            name: column for stream in streams for name, column in stream.at(base, notes)
        }
        q, dq, ddq = (
            np.column_stack([columns[f"{part} {joint}"] for joint in wanted])
            for part in ("q", "dq", "ddq")
        )
        titles = list(WRENCH) if bag.wrench else wanted if kind == "effort" else []
        y = [columns[f"y {title}"] for title in titles]
        log = Log(
            base,
            q,
            dq,
            ddq,
            np.column_stack(y) if y else np.empty((len(base), 0)),
            tuple(wanted),
            tuple(titles),
            notes,
        )
        named = outputs is not None and not isinstance(outputs, str)
        return log.select(outputs=outputs) if named else log
    except ValueError as error:
        raise ValueError(f"{path} makes no log: {error}") from None


@dataclass
class _Signal:
    """What the messages say of one joint (position, velocity, effort) or of one wrench."""

    topic: str
    arrived: list[int] = field(default_factory=list)
    stamped: list[int] = field(default_factory=list)
    rows: list[tuple[float, ...]] = field(default_factory=list)
    frame: str = ""

    def arrays(self, stamps: str) -> tuple[Array, Array, bool]:
        """Return stamps in ns, values, and whether the stamps are those of arrival."""
        arrival = stamps == "bag" or not all(self.stamped)
        ns = np.array(self.arrived if arrival else self.stamped, dtype=np.int64)
        return ns, np.array(self.rows, dtype=np.float64), arrival


@dataclass
class _Bag:
    states: dict[str, _Signal]
    wrench: _Signal | None
    wrench_topics: list[str]


@dataclass
class _Stream:
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
        named = [*zip(("q", "dq", "ddq"), states, strict=True)]
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


def _effort(bag: _Bag, wanted: list[str], outputs: Sequence[str] | str | None) -> str:
    lacking = [j for j in wanted if not np.isfinite([r[2] for r in bag.states[j].rows]).any()]
    if not lacking:
        return "effort"
    if len(lacking) == len(wanted) and not bag.wrench_topics and outputs is None:
        return ""
    other = f", or wrench= one of {', '.join(bag.wrench_topics)}" if bag.wrench_topics else ""
    raise ValueError(
        f"there are no efforts of the joints {', '.join(lacking)}; choose joints that have "
        f"them{other}"
    )


def _groups(bag: _Bag, wanted: list[str], stamps: str, with_effort: bool) -> list[_Stream]:
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
        streams.append(_Stream(name, joints, ns, values, arrival, measured, with_effort))
    return streams


def _base(streams: list[_Stream], rate: float | None, notes: dict[str, str]) -> Array:
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


def _read(path: Path, joint_states: str | Sequence[str] | None, wrench: Any) -> _Bag:
    """Read the messages of the topics that are asked for, or the only ones there are."""
    reader1, reader2 = require("rosbags.rosbag1", "logs"), require("rosbags.rosbag2", "logs")
    typesys = require("rosbags.typesys", "logs")
    first = path.suffix.lower() == ".bag" and path.is_file()
    store = typesys.get_typestore(
        typesys.Stores.ROS1_NOETIC if first else typesys.Stores.ROS2_HUMBLE
    )
    with contextlib.ExitStack() as stack:
        readers = []
        for file in _files(path):
            with _damage(path):
                reader = (reader1 if first else reader2).Reader(file)
                readers.append(stack.enter_context(reader))
        kinds = {c.topic: c.msgtype for reader in readers for c in reader.connections}
        state_topics = [topic for topic, kind in kinds.items() if kind == _STATE]
        wrench_topics = [topic for topic, kind in kinds.items() if kind in _WRENCHES]
        topics = _topics(path, kinds, state_topics, joint_states, "joint_states")
        wanted = None if wrench is True else wrench
        force = _topics(path, kinds, wrench_topics, wanted, "wrench") if wrench else []
        bag = _Bag({}, _Signal(force[0]) if force else None, wrench_topics)
        for reader in readers:
            chosen = [c for c in reader.connections if c.topic in (*topics, *force)]
            for c in chosen:
                own = store.generate_msgdef(c.msgtype)[1] if first else None
                own = own or store.hash_rihs01(c.msgtype)
                if c.digest and c.digest != own:
                    raise ValueError(
                        f"{path} has another {c.msgtype} than ROS, which cannot be read"
                    )
            # Without connections, all would be read.
            messages = iter(reader.messages(chosen)) if chosen else iter(())
            count = 0
            while True:
                with _damage(path):
                    item = next(messages, None)
                    if item is None:
                        break
                    c, ns, raw = item
                    read = store.deserialize_ros1 if first else store.deserialize_cdr
                    message = read(raw, c.msgtype)
                count += 1
                _take(bag, path, c.topic, ns, message)
            expected = sum(c.msgcount for c in chosen)
            if count < expected:
                raise ValueError(
                    f"{path} is damaged: only {count} of {expected} messages can be read"
                )
    for topic in {*topics, *force} - {signal.topic for signal in bag.states.values()}:
        if bag.wrench is None or topic != bag.wrench.topic or not bag.wrench.rows:
            raise ValueError(f"the topic {topic} of {path} has no values")
    return bag


def _take(bag: _Bag, path: Path, topic: str, ns: int, message: Any) -> None:
    """Add one message to its signals."""
    header = getattr(message, "header", None)
    stamp = header.stamp.sec * 10**9 + header.stamp.nanosec if header else 0
    if bag.wrench is not None and topic == bag.wrench.topic:
        value = message.wrench if header else message
        six = [getattr(part, axis) for part in (value.force, value.torque) for axis in "xyz"]
        bag.wrench.arrived.append(ns)
        bag.wrench.stamped.append(stamp)
        bag.wrench.rows.append(tuple(six))
        bag.wrench.frame = header.frame_id if header else ""
        return
    J = len(message.name)
    triple = []
    for part in (message.position, message.velocity, message.effort):
        if len(part) not in (0, J):
            raise ValueError(
                f"a message on {topic} of {path} names {J} joints, but has {len(part)} values"
            )
        triple.append(part if len(part) else np.full(J, np.nan))
    for joint, *values in zip(message.name, *triple, strict=True):
        signal = bag.states.setdefault(joint, _Signal(topic))
        if signal.topic != topic:
            raise ValueError(
                f"the joint {joint} of {path} is on {signal.topic} and on {topic}; name one "
                "with joint_states"
            )
        signal.arrived.append(ns)
        signal.stamped.append(stamp)
        signal.rows.append(tuple(values))


def _files(path: Path) -> list[Path]:
    if not path.is_dir() or (path / "metadata.yaml").exists():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix in (".mcap", ".db3"))
    if not found:
        raise ValueError(f"the folder {path} is no bag: it has no metadata.yaml, .mcap or .db3")
    return found


def _topics(
    path: Path, kinds: dict[str, str], have: list[str], want: Any, argument: str
) -> list[str]:
    """Return the topics that are wanted, or the only one there is."""
    listed = ", ".join(have) or "none"
    if want is None:
        if len(have) != 1:
            rest = ", ".join(f"{t} ({kind})" for t, kind in kinds.items()) or "nothing"
            found = f"has {len(have)} topics for {argument}: {listed}; name the one to read"
            missing = f"has no topic for {argument}; it holds {rest}"
            raise ValueError(f"{path} {found if have else missing}")
        return have
    names = [want] if isinstance(want, str) else list(want)
    unknown = [str(name) for name in names if name not in have]
    if unknown:
        raise ValueError(
            f"{path} has no topic {', '.join(unknown)} for {argument}; it has {listed}"
        )
    return names


@contextlib.contextmanager
def _damage(path: Path) -> Iterator[None]:
    # Damaged bags make rosbags, sqlite and the decompressors raise exceptions of every kind.
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{path} is truncated, damaged or no bag ({reason[:120]}); a recording that "
            "was cut off is repaired by rosbag reindex, ros2 bag reindex or mcap recover"
        ) from error
