"""Logs from the bags of ROS 1 and ROS 2: joint states and wrenches on one time base."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imparo.dynamics.logs.bag_messages import Bag, read_messages
from imparo.dynamics.logs.bag_streams import Stream, common_stamps, streams_of_joints
from imparo.dynamics.logs.checks import choose
from imparo.dynamics.logs.log import STATES, Log
from imparo.dynamics.robot import WRENCH


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
    bag = read_messages(path, joint_states, wrench)
    try:
        have = list(bag.states)
        wanted = have if joints is None else [have[k] for k in choose(have, joints, "joints")]
        if not isinstance(degrees, bool):
            choose(wanted, degrees, "joints to convert from degrees")
        kind = "wrench" if bag.wrench else _effort(bag, wanted, outputs)
        notes = {"source": path.name}
        fit: dict[str, Any] = {"window": window, "order": order, "lag": lag}
        streams = streams_of_joints(bag, wanted, stamps, kind == "effort")
        if bag.wrench:
            streams.append(Stream(bag.wrench.topic, [], *bag.wrench.arrays(stamps)))
            notes |= {"frame": bag.wrench.frame} if bag.wrench.frame else {}
        zero = min(int(stream.ns.min()) for stream in streams)
        notes["start"] = f"{zero} ns since 1970"
        for stream in streams:
            stream.settle(zero, drop, max_gap, notes)
            if stream.joints:
                stream.complete(degrees, fit, max_gap, notes)
        base = common_stamps(streams, rate, notes)
        columns = {
            name: column for stream in streams for name, column in stream.at(base, notes)
        }
        q, dq, ddq = (
            np.column_stack([columns[f"{part} {joint}"] for joint in wanted]) for part in STATES
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


def _effort(bag: Bag, wanted: list[str], outputs: Sequence[str] | str | None) -> str:
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
