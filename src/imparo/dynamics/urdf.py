"""Robot descriptions as URDF text: read, reduced to the joints that move, made of tables."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from scipy.spatial.transform import Rotation

from imparo.dynamics.extras import require
from imparo.engine import Array

TURNING = ("revolute", "continuous")
MOVING = (*TURNING, "prismatic")


class Reduced(NamedTuple):
    """A description in which only some joints move.

    Attributes
    ----------
    text : str
        URDF without pictures; joints that do not move are fixed where they are locked.
    joints : tuple of str
        Joints that move, in the order asked for.
    positions : array of shape (J, 2)
        Least and largest position; infinite where there is no limit.
    velocities : array of shape (J,)
        Largest velocity.
    """

    text: str
    joints: tuple[str, ...]
    positions: Array
    velocities: Array


def read_urdf(source: str | os.PathLike[str]) -> str:
    """Return URDF text: given as such, in a file, or under a name of ``icub-models``.

    Parameters
    ----------
    source : str or path-like
        Text that begins with "<", the path of a file, or a name such as "iCubGazeboV2_5".
    """
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return source
    path = Path(source)
    if path.is_file():
        return path.read_text(encoding="utf-8")
    if path.suffix or path.parent != Path():
        raise FileNotFoundError(f"there is no file {path} with a robot description (URDF)")
    models = require("icub_models", "robot")
    names = sorted(name for name in models.get_robot_names() if name.startswith("iCub"))
    if str(source) not in names:
        raise FileNotFoundError(
            f"{source!s} is neither a file nor a robot known by name; names are "
            f"{', '.join(names)}"
        )
    return Path(models.get_model_file(str(source))).read_text(encoding="utf-8")


def reduce_urdf(
    text: str, joints: Sequence[str] | None = None, locked: Mapping[str, float] | None = None
) -> Reduced:
    """Return a description in which only ``joints`` move, without pictures.

    Parameters
    ----------
    text : str
        URDF.
    joints : sequence of str, optional
        Names of the joints that move; all that can if None.
    locked : mapping of str to float, optional
        Positions of others; 0 where none is given.
    """
    root = _parsed(text)
    found = {_name(joint, "joint"): joint for joint in root.findall("joint")}
    movable = [name for name, joint in found.items() if _moves(joint)]
    wanted = tuple(movable if joints is None else joints)
    locked = dict(locked or {})
    for name in (*wanted, *locked):
        if name not in movable:
            raise ValueError(
                f"the robot has no joint {name!r} that moves; those that do are "
                f"{', '.join(movable)}"
            )
    if len(set(wanted)) != len(wanted) or not wanted:
        raise ValueError(f"joints={list(wanted)} must name at least one joint, and each once")
    both = [name for name in locked if name in wanted]
    if both:
        raise ValueError(f"the joint {both[0]!r} is to move and to be locked; choose one")
    new = ET.Element("robot", {"name": root.get("name", "robot")})
    for link in root.findall("link"):
        _name(link, "link")
        new.append(_kept(link, {"name": link.get("name", "")}, ("inertial",)))
    for name, joint in found.items():
        new.append(_reduced_joint(joint, name in wanted, float(locked.get(name, 0.0))))
    _check_tree(new)
    limits = [_limits(found[name]) for name in wanted]
    positions = np.array([limit[:2] for limit in limits])
    velocities = np.array([limit[2] for limit in limits])
    ET.indent(new)
    return Reduced(ET.tostring(new, encoding="unicode"), wanted, positions, velocities)


def free_joint(text: str, name: str) -> str:
    """Return a description in which a fixed joint could turn: where a sensor cuts a link.

    Parameters
    ----------
    text : str
    name : str
        Of a fixed joint.
    """
    root = _parsed(text)
    found = {_name(joint, "joint"): joint for joint in root.findall("joint")}
    if name not in found:
        fixed = [key for key, joint in found.items() if joint.get("type") == "fixed"]
        likely = [key for key in fixed if "ft" in key or "sensor" in key] or fixed
        raise ValueError(
            f"the robot has no joint {name!r} for a sensor; fixed joints are "
            f"{', '.join(likely[:12])}"
        )
    joint = found[name]
    if joint.get("type") != "fixed":
        raise ValueError(
            f"the joint {name!r} moves; a force/torque sensor cuts a link at a fixed joint"
        )
    joint.set("type", "revolute")
    ET.SubElement(joint, "limit", {"lower": "0", "upper": "0", "velocity": "0", "effort": "0"})
    return ET.tostring(root, encoding="unicode")


def urdf_of_arrays(arrays: Mapping[str, Any]) -> str:
    """Return URDF text of a tree given as arrays.

    Parameters
    ----------
    arrays : mapping
        ``link_names``, ``link_mass``, ``link_com`` (3), ``link_inertial_rpy`` (3),
        ``link_inertia`` (ixx ixy ixz iyy iyz izz), ``joint_names``, ``joint_types``,
        ``joint_parent`` and ``joint_child`` (numbers of links), ``joint_xyz``, ``joint_rpy``,
        ``joint_axis``, ``joint_limits`` (2).
    """
    robot = ET.Element("robot", {"name": "robot"})
    names = [str(name) for name in arrays["link_names"]]
    for i, name in enumerate(names):
        inertial = ET.SubElement(ET.SubElement(robot, "link", {"name": name}), "inertial")
        pose = {"xyz": arrays["link_com"][i], "rpy": arrays["link_inertial_rpy"][i]}
        ET.SubElement(inertial, "origin", {key: _text(value) for key, value in pose.items()})
        ET.SubElement(inertial, "mass", {"value": repr(float(arrays["link_mass"][i]))})
        keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        moments = [repr(float(value)) for value in arrays["link_inertia"][i]]
        ET.SubElement(inertial, "inertia", dict(zip(keys, moments, strict=True)))
    for i, name in enumerate(arrays["joint_names"]):
        kind = str(arrays["joint_types"][i])
        joint = ET.SubElement(robot, "joint", {"name": str(name), "type": kind})
        ET.SubElement(joint, "parent", {"link": names[int(arrays["joint_parent"][i])]})
        ET.SubElement(joint, "child", {"link": names[int(arrays["joint_child"][i])]})
        pose = {"xyz": arrays["joint_xyz"][i], "rpy": arrays["joint_rpy"][i]}
        ET.SubElement(joint, "origin", {key: _text(value) for key, value in pose.items()})
        if kind in MOVING:
            ET.SubElement(joint, "axis", {"xyz": _text(arrays["joint_axis"][i])})
            low, high = (float(end) for end in arrays["joint_limits"][i])
            if low < high:
                ET.SubElement(joint, "limit", {"lower": repr(low), "upper": repr(high)})
    return ET.tostring(robot, encoding="unicode")


def urdf_of_dh(rows: Any) -> str:
    """Return URDF text of a serial robot by its modified (Craig's) Denavit–Hartenberg table.

    Joint i is placed by Rot_x(α) Trans_x(a) Trans_z(d) Rot_z(θ + q). Inertias are 0: they are
    there to be learned.

    Parameters
    ----------
    rows : array of shape (J, 4)
        a (m), α (rad), d (m), θ (rad) of each joint.
    """
    table = np.asarray(rows, float)
    if table.ndim != 2 or table.shape[1] != 4 or not np.isfinite(table).all() or not len(table):
        raise ValueError(
            "a Denavit-Hartenberg table has one row (a, alpha, d, theta) of finite numbers for "
            f"each joint, not the shape {table.shape}"
        )
    robot = ET.Element("robot", {"name": "robot"})
    ET.SubElement(robot, "link", {"name": "link_0"})
    for i, (a, alpha, d, theta) in enumerate(table, start=1):
        ET.SubElement(robot, "link", {"name": f"link_{i}"})
        joint = ET.SubElement(robot, "joint", {"name": f"joint_{i}", "type": "continuous"})
        ET.SubElement(joint, "parent", {"link": f"link_{i - 1}"})
        ET.SubElement(joint, "child", {"link": f"link_{i}"})
        turn = Rotation.from_euler("x", alpha)
        place = turn.apply([a, 0.0, d])
        pose = turn * Rotation.from_euler("z", theta)
        ET.SubElement(joint, "origin", {"xyz": _text(place), "rpy": _text(_rpy(pose))})
        ET.SubElement(joint, "axis", {"xyz": "0 0 1"})
    return ET.tostring(robot, encoding="unicode")


# Elements.


def _parsed(text: str) -> ET.Element:
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise ValueError(f"the robot description is not well-formed XML: {error}") from None
    if root.tag != "robot":
        raise ValueError(
            f"the robot description begins with <{root.tag}>, not <robot>: give a URDF file"
        )
    return root


def _name(element: ET.Element, kind: str) -> str:
    name = element.get("name")
    if not name:
        raise ValueError(f"the robot description has a {kind} without a name")
    return name


def _moves(joint: ET.Element) -> bool:
    return joint.get("type") in MOVING and joint.find("mimic") is None


def _kept(element: ET.Element, attributes: dict[str, str], tags: Sequence[str]) -> ET.Element:
    new = ET.Element(element.tag, attributes)
    new.extend(part for part in element if part.tag in tags)
    return new


def _reduced_joint(joint: ET.Element, moves: bool, position: float) -> ET.Element:
    name, kind = _name(joint, "joint"), joint.get("type", "fixed")
    if not moves:
        new = _kept(joint, {"name": name, "type": "fixed"}, ("parent", "child"))
        turn, place = _pose(joint)
        if kind in TURNING:
            turn = turn * Rotation.from_rotvec(position * _axis(joint))
        elif kind == "prismatic":
            place = place + turn.apply(position * _axis(joint))
        ET.SubElement(new, "origin", {"xyz": _text(place), "rpy": _text(_rpy(turn))})
        return new
    # A continuous joint would have two coordinates in Pinocchio.
    attributes = {"name": name, "type": "prismatic" if kind == "prismatic" else "revolute"}
    new = _kept(joint, attributes, ("parent", "child", "origin"))
    ET.SubElement(new, "axis", {"xyz": _text(_axis(joint))})
    low, high, fastest = _limits(joint)
    values = {"lower": low, "upper": high, "velocity": fastest, "effort": np.inf}
    bounded = {key: repr(float(np.clip(value, -1e9, 1e9))) for key, value in values.items()}
    ET.SubElement(new, "limit", bounded)
    return new


def _limits(joint: ET.Element) -> tuple[float, float, float]:
    """Return the least and the largest position and the largest velocity."""
    limit = joint.find("limit")
    given: Mapping[str, str] = {} if limit is None else limit.attrib
    fastest = float(given.get("velocity", np.inf))
    if joint.get("type") == "continuous" or not ("lower" in given or "upper" in given):
        return -np.inf, np.inf, fastest
    return float(given.get("lower", 0)), float(given.get("upper", 0)), fastest


def _axis(joint: ET.Element) -> Array:
    element = joint.find("axis")
    axis = _numbers(element, "xyz", (1.0, 0.0, 0.0), joint)
    length = float(np.linalg.norm(axis))
    if length == 0:
        raise ValueError(f"the axis of the joint {joint.get('name')!r} is 0; give a direction")
    return axis / length


def _pose(joint: ET.Element) -> tuple[Rotation, Array]:
    origin = joint.find("origin")
    turn = Rotation.from_euler("xyz", _numbers(origin, "rpy", (0.0, 0.0, 0.0), joint))
    return turn, _numbers(origin, "xyz", (0.0, 0.0, 0.0), joint)


def _numbers(
    element: ET.Element | None, key: str, default: tuple[float, ...], joint: ET.Element
) -> Array:
    text = None if element is None else element.get(key)
    if text is None:
        return np.array(default)
    try:
        values = np.array([float(part) for part in text.split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ValueError(
            f"the joint {joint.get('name')!r} has {key}={text!r}; three numbers were expected"
        )
    return values


def _check_tree(root: ET.Element) -> None:
    """Raise unless joints join links to one tree."""
    links = [link.get("name", "") for link in root.findall("link")]
    parents: dict[str, str] = {}
    for joint in root.findall("joint"):
        ends = {}
        for end in ("parent", "child"):
            element = joint.find(end)
            ends[end] = "" if element is None else element.get("link", "")
            if ends[end] not in links:
                raise ValueError(
                    f"the joint {joint.get('name')!r} has the {end} link {ends[end]!r}, which "
                    "the robot description does not have"
                )
        if ends["child"] in parents:
            raise ValueError(
                f"the link {ends['child']!r} hangs on two joints; loops are not supported: cut "
                "one of them"
            )
        parents[ends["child"]] = ends["parent"]
    roots = [link for link in links if link not in parents]
    if len(roots) != 1:
        raise ValueError(
            f"the links {', '.join(roots[:4]) or 'of a loop'} hang on nothing; exactly one may"
        )


def _text(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


def _rpy(turn: Rotation) -> Array:
    """Return roll, pitch and yaw about fixed axes."""
    R = turn.as_matrix()
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    roll = np.arctan2(R[2, 1], R[2, 2])
    # Yaw is what roll leaves: where both turn about almost one axis, roll is not accurate, but
    # their sum is.
    c, s = np.cos(roll), np.sin(roll)
    yaw = np.arctan2(s * R[0, 2] - c * R[0, 1], c * R[1, 1] - s * R[1, 2])
    return np.array([roll, pitch, yaw])
