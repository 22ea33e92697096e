"""Elements of a robot description, read with checks.

Parsers of URDF drop an inertia that they cannot read and go on; here nothing is dropped.
"""

from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from scipy.spatial.transform import Rotation

from imparo.engine import Array

TURNING = ("revolute", "continuous")
MOVING = (*TURNING, "prismatic")
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def parsed(text: str) -> ET.Element:
    """Return the root element of a URDF text.

    Parameters
    ----------
    text : str
    """
    xacro = (
        "the robot description is written in xacro, not in URDF; run xacro first: "
        "xacro robot.urdf.xacro > robot.urdf"
    )
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        if "<xacro:" in text:
            raise ValueError(xacro) from None
        raise ValueError(
            f"the robot description is not well-formed XML ({error}); give a URDF file"
        ) from None
    if any("xacro}" in str(element.tag) for element in root.iter()):
        raise ValueError(xacro)
    if root.tag != "robot":
        raise ValueError(
            f"the robot description begins with <{root.tag}>, not <robot>: give a URDF file"
        )
    return root


def named(root: ET.Element, kind: str) -> dict[str, ET.Element]:
    """Return the links or joints of a robot by their names.

    Parameters
    ----------
    root : Element
    kind : {"link", "joint"}
    """
    found: dict[str, ET.Element] = {}
    for element in root.findall(kind):
        name = element.get("name")
        if not name:
            raise ValueError(
                f"the robot description has a {kind} without a name; give each {kind} one"
            )
        if name in found:
            raise ValueError(
                f"the robot description has two {kind}s named {name!r}; rename one of them"
            )
        found[name] = element
    return found


def inertial_of(link: ET.Element) -> ET.Element | None:
    """Return the inertia of a link, every number of it checked and written out; None without.

    Parameters
    ----------
    link : Element
    """
    where = f"the <inertial> of the link {link.get('name')!r}"
    parts = link.findall("inertial")
    if len(parts) > 1:
        raise ValueError(
            f"the link {link.get('name')!r} has {len(parts)} <inertial> elements; one was "
            "expected: merge them"
        )
    if not parts:
        return None
    origin, mass, moments = (parts[0].find(tag) for tag in ("origin", "mass", "inertia"))
    zero = (0.0, 0.0, 0.0)
    pose = {key: text_of(_three(origin, key, zero, where)) for key in ("xyz", "rpy")}
    kilograms = _number(mass, "value", "mass", where)
    if kilograms < 0:
        raise ValueError(
            f"{where} has the mass {kilograms:g}; 0 kg or more was expected: correct it"
        )
    tensor = {key: repr(_number(moments, key, "inertia", where)) for key in MOMENTS}
    new = ET.Element("inertial")
    ET.SubElement(new, "origin", pose)
    ET.SubElement(new, "mass", {"value": repr(kilograms)})
    ET.SubElement(new, "inertia", tensor)
    return new


def kind_of(joint: ET.Element) -> str:
    """Return the type of a joint: one of those that move, or fixed.

    Parameters
    ----------
    joint : Element
    """
    name, kind = joint.get("name"), joint.get("type")
    if kind in ("floating", "planar"):
        raise ValueError(
            f"the joint {name!r} is {kind}, and joints of more than one coordinate are not "
            'supported; write type="fixed" to hold it where it is'
        )
    if kind is None or kind not in (*MOVING, "fixed"):
        raise ValueError(
            f"the joint {name!r} has the type {kind!r}; {', '.join(MOVING)} or fixed was "
            "expected: correct it"
        )
    return kind


class Following(NamedTuple):
    """A mimic: position = multiplier × that of the joint ``leader`` + offset."""

    leader: str
    multiplier: float
    offset: float


def following_of(joint: ET.Element) -> Following | None:
    """Return which joint this one mimics; None if it does not.

    Parameters
    ----------
    joint : Element
    """
    mimic = joint.find("mimic")
    if mimic is None:
        return None
    where = f"the joint {joint.get('name')!r}"
    factors = [
        _number(mimic, key, "mimic", where) if key in mimic.attrib else default
        for key, default in (("multiplier", 1.0), ("offset", 0.0))
    ]
    return Following(mimic.get("joint", ""), *factors)


def limits_of(joint: ET.Element) -> tuple[float, float, float]:
    """Return the least and the largest position and the largest velocity of a joint.

    Parameters
    ----------
    joint : Element
    """
    name, limit = joint.get("name"), joint.find("limit")
    given = {} if limit is None else limit.attrib

    def end(key: str, default: float) -> float:
        value = _float(given[key]) if key in given else default
        if np.isnan(value):
            raise ValueError(
                f"the joint {name!r} has the limit {key}={given[key]!r}; a number was "
                "expected: correct it or leave it out"
            )
        return value

    fastest = end("velocity", np.inf)
    if fastest < 0:
        raise ValueError(
            f"the joint {name!r} has the limit velocity={fastest:g}; 0 or more was expected: "
            "correct it or leave it out"
        )
    if joint.get("type") == "continuous" or not ("lower" in given or "upper" in given):
        return -np.inf, np.inf, fastest
    low, high = end("lower", 0.0), end("upper", 0.0)
    if low > high:
        raise ValueError(
            f"the joint {name!r} has the limits {low:g} to {high:g}; lower must not exceed "
            "upper: exchange them"
        )
    return low, high, fastest


def axis_of(joint: ET.Element) -> Array:
    """Return the axis of a joint, of length 1.

    Parameters
    ----------
    joint : Element
    """
    where = f"the joint {joint.get('name')!r}"
    axis = _three(joint.find("axis"), "xyz", (1.0, 0.0, 0.0), where)
    length = float(np.linalg.norm(axis))
    if length == 0:
        raise ValueError(f"the axis of {where} is 0; give a direction")
    return axis / length


def pose_of(joint: ET.Element) -> tuple[Array, Array]:
    """Return where the frame of a joint is, and its roll, pitch and yaw.

    Parameters
    ----------
    joint : Element
    """
    origin, where = joint.find("origin"), f"the joint {joint.get('name')!r}"
    zero = (0.0, 0.0, 0.0)
    return _three(origin, "xyz", zero, where), _three(origin, "rpy", zero, where)


# Numbers as text.


def text_of(values: Array) -> str:
    """Return numbers as text that reads back to the bit.

    Parameters
    ----------
    values : array of shape (n,)
    """
    return " ".join(repr(float(value)) for value in values)


def rpy_of(turn: Rotation) -> Array:
    """Return roll, pitch and yaw about fixed axes.

    Parameters
    ----------
    turn : Rotation
    """
    R = turn.as_matrix()
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    roll = np.arctan2(R[2, 1], R[2, 2])
    # Yaw is what roll leaves: where both turn about almost one axis, roll is not accurate, but
    # their sum is.
    c, s = np.cos(roll), np.sin(roll)
    yaw = np.arctan2(s * R[0, 2] - c * R[0, 1], c * R[1, 1] - s * R[1, 2])
    return np.array([roll, pitch, yaw])


def _float(text: str) -> float:
    """Return a number, NaN where the text is none; Python alone reads 1_0 as ten."""
    try:
        return float(text) if "_" not in text else np.nan
    except ValueError:
        return np.nan


def _number(element: ET.Element | None, key: str, tag: str, where: str) -> float:
    text = None if element is None else element.get(key)
    value = np.nan if text is None else _float(text)
    if not np.isfinite(value):
        found = f"no <{tag} {key}>" if text is None else f"<{tag} {key}={text!r}>"
        raise ValueError(
            f"{where} has {found}; a finite number was expected: add or correct it"
        )
    return value


def _three(
    element: ET.Element | None, key: str, default: tuple[float, ...], where: str
) -> Array:
    text = None if element is None else element.get(key)
    if text is None:
        return np.array(default)
    values = np.array([_float(part) for part in text.split()])
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ValueError(
            f"{where} has {key}={text!r}; three finite numbers were expected: correct them"
        )
    return values
