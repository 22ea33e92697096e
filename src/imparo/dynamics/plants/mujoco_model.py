"""A robot as a model of MuJoCo: bodies, sensor at the cut, cables across it, payloads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from imparo.dynamics.plants.effects import Payload
from imparo.dynamics.robot import Robot
from imparo.engine import Array
from imparo.extras import require

# Before 3.15 the forces of tendons were missing at force sensors.
OLDEST = (3, 15)


@dataclass(frozen=True)
class Cable:
    """A spring and damper between two links; it does not pull while it is slack.

    With x = max(0, length − slack) and v the rate of the length, the tension is::

        x (stiffness + hardening x²) + damping v

    The damper acts on slack cables, too, as the sheath of a bundle does.

    Attributes
    ----------
    proximal, distal : str
        Links that it is tied to; to matter to a sensor, on different sides of it.
    proximal_point, distal_point : sequence of 3 floats
        Where, in the links' frames (m).
    slack : float
        Length (m) up to which it does not pull.
    stiffness : float
        N/m.
    damping : float, default 0
        Ns/m.
    hardening : float, default 0
        N/m³.

    Examples
    --------
    >>> from imparo.dynamics.plants.mujoco_model import Cable
    >>> Cable("chest", (0, 0, 0), "r_forearm", (0, 0, 0), slack=0.2, stiffness=100.0).damping
    0.0
    """

    proximal: str
    proximal_point: Sequence[float]
    distal: str
    distal_point: Sequence[float]
    slack: float
    stiffness: float
    damping: float = 0.0
    hardening: float = 0.0

    def __post_init__(self) -> None:
        for name in ("proximal_point", "distal_point"):
            point = getattr(self, name)
            if np.shape(point) != (3,) or not np.isfinite(point).all():
                raise ValueError(f"the cable's {name}={point!r} must be three finite numbers")
        for name in ("slack", "stiffness", "damping", "hardening"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"the cable's {name}={value!r} must be finite, 0 or more")


class Built(NamedTuple):
    """MuJoCo's model and where things are in it.

    Attributes
    ----------
    mujoco : module
    model : mujoco.MjModel
    order : array of shape (J,)
        Places of the robot's joints among MuJoCo's.
    payloads : tuple of int
        Numbers of the payloads' bodies, which have no mass yet.
    """

    mujoco: Any
    model: Any
    order: Array
    payloads: tuple[int, ...]


def build(
    robot: Robot,
    *,
    cables: Sequence[Cable] = (),
    payloads: Sequence[Payload] = (),
    timestep: float = 0.002,
) -> Built:
    """Return a robot as a model of MuJoCo.

    Links that neither move nor carry a moving one are left out. Costs some 20 ms.

    Parameters
    ----------
    robot : Robot
    cables : sequence of Cable
    payloads : sequence of Payload
    timestep : float
        Seconds.
    """
    mujoco = _mujoco()
    links = {cable.proximal for cable in cables} | {cable.distal for cable in cables}
    links |= {payload.link for payload in payloads}
    text = _moving_part(robot.urdf, links)
    spec = mujoco.MjSpec.from_string(text)
    # Bodies on both sides of a fixed joint stay apart, so that a sensor can be between.
    spec.compiler.fusestatic = False
    spec.option.gravity = robot.gravity
    spec.option.timestep = timestep
    # Limits are checked before; a path that touches one must not be pushed back.
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    if robot.sensor is not None:
        _add_sensor(mujoco, spec, _child(robot.urdf, robot.sensor))
    for i, cable in enumerate(cables):
        _add_cable(spec, i, cable)
    for i, payload in enumerate(payloads):
        body = spec.body(payload.link).add_body(name=f"imparo_payload_{i}", pos=payload.point)
        # Otherwise MuJoCo puts the centre of a body without mass at twice its place.
        body.explicitinertial, body.ipos, body.mass = True, (0.0, 0.0, 0.0), 0.0
    try:
        model = spec.compile()
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"MuJoCo cannot simulate this robot ({reason}); every moving link needs a mass and "
            "an inertia that are possible"
        ) from None
    order = np.array([int(model.joint(name).dofadr[0]) for name in robot.joints])
    bodies = tuple(int(model.body(f"imparo_payload_{i}").id) for i in range(len(payloads)))
    return Built(mujoco, model, order, bodies)


def _mujoco() -> Any:
    """Return the package if it is new enough."""
    mujoco = require("mujoco", "sim")
    version = tuple(int(part) for part in mujoco.__version__.split(".")[:2])
    if version < OLDEST:
        raise ImportError(
            f"MuJoCo {mujoco.__version__} is too old: it loses the forces of cables at a force "
            "sensor; install 3.15 or newer with: pip install 'imparo[sim]'"
        )
    return mujoco


def _add_sensor(mujoco: Any, spec: Any, link: str) -> None:
    """Sense the force and torque at the origin and in the axes of a link."""
    spec.body(link).add_site(name="imparo_sensor")
    for kind in (mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE):
        spec.add_sensor(
            name=f"imparo_{int(kind)}",
            type=kind,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname="imparo_sensor",
        )


def _add_cable(spec: Any, i: int, cable: Cable) -> None:
    tendon = spec.add_tendon(name=f"imparo_cable_{i}")
    ends = ((cable.proximal, cable.proximal_point), (cable.distal, cable.distal_point))
    for end, (link, point) in zip("ab", ends, strict=True):
        name = f"imparo_cable_{i}{end}"
        spec.body(link).add_site(name=name, pos=point)
        tendon.wrap_site(name)
    tendon.springlength = [0.0, cable.slack]
    tendon.stiffness = [cable.stiffness, 0.0, cable.hardening]
    tendon.damping = [cable.damping, 0.0, 0.0]


def _child(text: str, joint: str) -> str:
    """Return the link beyond a joint."""
    for element in ET.fromstring(text).findall("joint"):
        if element.get("name") == joint:
            return _end(element, "child")
    raise ValueError(f"the robot has no joint {joint!r}")


def _moving_part(text: str, links: set[str]) -> str:
    """Return URDF of the links that move, those that carry one, and ``links``."""
    root = ET.fromstring(text)
    known = {link.get("name", "") for link in root.findall("link")}
    for name in sorted(links - known):
        raise ValueError(
            f"the robot has no link {name!r} for a cable or payload; it has "
            f"{', '.join(sorted(known))}"
        )
    above = {_end(joint, "child"): joint for joint in root.findall("joint")}
    kept = set(known - set(above))  # the root
    for name in known:
        chain, moves = [], name in links
        while name in above:
            chain.append(name)
            moves = moves or above[name].get("type") != "fixed"
            name = _end(above[name], "parent")
        if moves:
            kept.update(chain)
    for element in list(root):
        name = element.get("name", "") if element.tag == "link" else _end(element, "child")
        if name not in kept:
            root.remove(element)
    return ET.tostring(root, encoding="unicode")


def _end(joint: ET.Element, end: str) -> str:
    element = joint.find(end)
    return "" if element is None else element.get("link", "")
