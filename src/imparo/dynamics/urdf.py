"""Robot descriptions as URDF text: read, and reduced to the joints that move."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from scipy.spatial.transform import Rotation

from imparo.dynamics.urdf_elements import (
    MOVING,
    TURNING,
    axis_of,
    following_of,
    inertial_of,
    kind_of,
    limits_of,
    named,
    parsed,
    pose_of,
    rpy_of,
    text_of,
)
from imparo.dynamics.urdf_tables import urdf_of_arrays, urdf_of_dh
from imparo.engine import Array
from imparo.extras import require

__all__ = ["Reduced", "free_joint", "read_urdf", "reduce_urdf", "urdf_of_arrays", "urdf_of_dh"]

_LONGEST = 1000  # Characters of a path; more are a text.


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
    expected = "the path of a URDF file, its text, or a name such as 'iCubGazeboV2_5'"
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"urdf={source!r:.60} must be {expected}")
    if isinstance(source, str):
        if source.lstrip().startswith("<"):
            return source
        if not source.strip():
            raise ValueError(f"urdf is empty; give {expected}")
        if "\n" in source or len(source) > _LONGEST:
            raise ValueError(f"urdf={source!r:.60} is no URDF, which begins with <robot>")
    path = Path(source)
    if path.is_file():
        return _text_in(path)
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a folder; give a file with a robot description")
    if path.suffix or path.parent != Path():
        raise FileNotFoundError(f"there is no file {path} with a robot description (URDF)")
    models = require("icub_models", "robot")
    names = sorted(name for name in models.get_robot_names() if name.startswith("iCub"))
    if str(source) not in names:
        raise FileNotFoundError(
            f"{source!s} is neither a file nor a robot known by name; names are "
            f"{', '.join(names)}"
        )
    return _text_in(Path(models.get_model_file(str(source))))


def _text_in(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(
            f"{path} is no text in UTF-8; a URDF file was expected: save it as UTF-8"
        ) from None


def reduce_urdf(
    text: str,
    joints: Sequence[str] | str | None = None,
    locked: Mapping[str, float] | None = None,
) -> Reduced:
    """Return a description in which only ``joints`` move, without pictures.

    A joint that mimics another one is locked where that one, being locked, puts it. If that
    one moves, it must be named in ``locked``.

    Parameters
    ----------
    text : str
        URDF.
    joints : sequence of str, optional
        Names of the joints that move; all that can if None.
    locked : mapping of str to float, optional
        Positions of others; 0 where none is given.
    """
    root = parsed(text)
    links, found = named(root, "link"), named(root, "joint")
    kinds = {name: kind_of(joint) for name, joint in found.items()}
    movable = [name for name, kind in kinds.items() if kind in MOVING]
    wanted = _wanted(joints, movable, found)
    places = _places(locked, movable, wanted)
    new = ET.Element("robot", {"name": root.get("name", "robot")})
    for name, link in links.items():
        kept = ET.SubElement(new, "link", {"name": name})
        inertial = inertial_of(link)
        if inertial is not None:
            kept.append(inertial)
    for name, joint in found.items():
        if name in wanted:
            new.append(_moving(joint))
        else:
            position = _position(name, found, wanted, places) if name in movable else 0.0
            new.append(_fixed(joint, position))
    _check_tree(new)
    limits = [limits_of(found[name]) for name in wanted]
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
    root = parsed(text)
    found = named(root, "joint")
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


# Which joints move, and where the others are.


def _wanted(
    joints: Any, movable: Sequence[str], found: Mapping[str, ET.Element]
) -> tuple[str, ...]:
    leaders = {name: following_of(found[name]) for name in movable}
    free = [name for name in movable if leaders[name] is None]
    if not free:
        raise ValueError(
            "the robot has no joint that moves; a revolute, continuous or prismatic one was "
            "expected"
        )
    if isinstance(joints, str):
        joints = (joints,)
    try:
        wanted = tuple(free if joints is None else joints)
    except TypeError:
        raise TypeError(
            f"joints={joints!r:.60} must be names of joints, such as {free[:2]}"
        ) from None
    for name in wanted:
        _check_movable(name, movable)
        leader = leaders[name]
        if leader is not None:
            raise ValueError(
                f"the joint {name!r} mimics {leader.leader!r} and does not move by itself; "
                f"leave it out of joints and lock it, as locked={{{name!r}: 0.0}}"
            )
    if len(set(wanted)) != len(wanted) or not wanted:
        raise ValueError(f"joints={list(wanted)} must name at least one joint, and each once")
    return wanted


def _places(locked: Any, movable: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
    if locked is not None and not isinstance(locked, Mapping):
        raise TypeError(
            f"locked={locked!r:.60} must be a mapping of joints to positions, such as "
            f"{{{movable[-1]!r}: 0.3}}"
        )
    places = {}
    for name, position in (locked or {}).items():
        _check_movable(name, movable)
        if name in wanted:
            raise ValueError(f"the joint {name!r} is to move and to be locked; choose one")
        try:
            places[name] = float(position)
        except (TypeError, ValueError):
            places[name] = np.nan
        if not np.isfinite(places[name]):
            raise ValueError(
                f"locked has {position!r} for the joint {name!r}; a finite number was "
                "expected: give a position in rad, or in m for a joint that slides"
            )
    return places


def _check_movable(name: str, movable: Sequence[str]) -> None:
    if name not in movable:
        raise ValueError(
            f"the robot has no joint {name!r} that moves; those that do are "
            f"{', '.join(movable)}"
        )


def _position(
    name: str,
    found: Mapping[str, ET.Element],
    wanted: Sequence[str],
    places: Mapping[str, float],
    followers: tuple[str, ...] = (),
) -> float:
    """Return where a joint is locked: as asked for, or where the joint it mimics puts it."""
    follows = following_of(found[name])
    if name in places or follows is None:
        return places.get(name, 0.0)
    leader = follows.leader
    if leader in wanted:
        raise ValueError(
            f"the joint {name!r} mimics {leader!r}, which moves, and joints that move together "
            f"are not supported; lock one of them, as locked={{{name!r}: 0.0}}"
        )
    if leader not in found or leader in (name, *followers):
        raise ValueError(
            f"the joint {name!r} mimics {leader!r}, which is no other joint; correct it"
        )
    place = _position(leader, found, wanted, places, (name, *followers))
    return follows.multiplier * place + follows.offset


# Joints of the reduced description.


def _moving(joint: ET.Element) -> ET.Element:
    slides = joint.get("type") == "prismatic"
    # A continuous joint would have two coordinates in Pinocchio.
    new = _with_ends(joint, "prismatic" if slides else "revolute")
    place, rpy = pose_of(joint)
    ET.SubElement(new, "origin", {"xyz": text_of(place), "rpy": text_of(rpy)})
    ET.SubElement(new, "axis", {"xyz": text_of(axis_of(joint))})
    low, high, fastest = limits_of(joint)
    values = {"lower": low, "upper": high, "velocity": fastest, "effort": np.inf}
    bounded = {key: repr(float(np.clip(value, -1e9, 1e9))) for key, value in values.items()}
    ET.SubElement(new, "limit", bounded)
    return new


def _fixed(joint: ET.Element, position: float) -> ET.Element:
    kind, new = joint.get("type"), _with_ends(joint, "fixed")
    place, rpy = pose_of(joint)
    turn = Rotation.from_euler("xyz", rpy)
    if kind in TURNING:
        turn = turn * Rotation.from_rotvec(position * axis_of(joint))
    elif kind == "prismatic":
        place = place + turn.apply(position * axis_of(joint))
    ET.SubElement(new, "origin", {"xyz": text_of(place), "rpy": text_of(rpy_of(turn))})
    return new


def _with_ends(joint: ET.Element, kind: str) -> ET.Element:
    new = ET.Element("joint", {"name": joint.get("name", ""), "type": kind})
    new.extend(part for part in joint if part.tag in ("parent", "child"))
    return new


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
    for link in links:
        above, passed = link, set[str]()
        while above in parents and above not in passed:
            passed.add(above)
            above = parents[above]
        if above != roots[0]:
            raise ValueError(
                f"the link {link!r} hangs on a loop of joints at {above!r}; every link must "
                f"hang on {roots[0]!r}: cut the loop"
            )
