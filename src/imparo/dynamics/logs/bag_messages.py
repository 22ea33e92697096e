"""What the messages of a bag say: joint states and one wrench, with both of their stamps."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from imparo.dynamics.logs.checks import listed
from imparo.engine import Array
from imparo.extras import require

_STATE = "sensor_msgs/msg/JointState"
_WRENCHES = ("geometry_msgs/msg/WrenchStamped", "geometry_msgs/msg/Wrench")


@dataclass
class Signal:
    """What the messages say of one joint (position, velocity, effort) or of one wrench."""

    topic: str
    arrived: list[int] = field(default_factory=list)
    stamped: list[int] = field(default_factory=list)
    rows: list[Sequence[float]] = field(default_factory=list)
    frame: str = ""

    def add(self, arrived: int, stamped: int, row: Sequence[float]) -> None:
        """Add what one message says, with both of its stamps in ns."""
        self.arrived.append(arrived)
        self.stamped.append(stamped)
        self.rows.append(row)

    def arrays(self, stamps: str) -> tuple[Array, Array, bool]:
        """Return stamps in ns, values, and whether the stamps are those of arrival."""
        arrival = stamps == "bag" or not all(self.stamped)
        ns = np.array(self.arrived if arrival else self.stamped, dtype=np.int64)
        return ns, np.array(self.rows, dtype=np.float64), arrival


@dataclass
class Bag:
    """The signals that were read, by joint, and the topics that have wrenches."""

    states: dict[str, Signal]
    wrench: Signal | None
    wrench_topics: list[str]


def read_messages(path: Path, joint_states: str | Sequence[str] | None, wrench: Any) -> Bag:
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
        bag = Bag({}, Signal(force[0]) if force else None, wrench_topics)
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


def _take(bag: Bag, path: Path, topic: str, ns: int, message: Any) -> None:
    """Add one message to its signals."""
    header = getattr(message, "header", None)
    stamp = header.stamp.sec * 10**9 + header.stamp.nanosec if header else 0
    if bag.wrench is not None and topic == bag.wrench.topic:
        value = message.wrench if header else message
        six = [getattr(part, axis) for part in (value.force, value.torque) for axis in "xyz"]
        bag.wrench.add(ns, stamp, six)
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
        signal = bag.states.setdefault(joint, Signal(topic))
        if signal.topic != topic:
            raise ValueError(
                f"the joint {joint} of {path} is on {signal.topic} and on {topic}; name one "
                "with joint_states"
            )
        signal.add(ns, stamp, values)


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
    if want is None:
        if len(have) != 1:
            rest = ", ".join(f"{t} ({kind})" for t, kind in kinds.items()) or "nothing"
            several = f"{len(have)} topics for {argument}: {listed(have)}; name the one to read"
            none = f"no topic for {argument}; it holds {rest}"
            raise ValueError(f"{path} has {several if have else none}")
        return have
    names = [want] if isinstance(want, str) else list(want)
    unknown = [str(name) for name in names if name not in have]
    if unknown:
        raise ValueError(
            f"{path} has no topic {', '.join(unknown)} for {argument}; it has {listed(have)}"
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
