"""A simulated arm with a cable across its sensor, for the page that shows it learning."""

import math
from typing import Any

import numpy as np

from imparo.dynamics import Cable, SerialArm, circle
from imparo.dynamics.plants.effects import Wander
from imparo.engine import Array

RATE = 10  # samples a second of the arm's own time
RADIUS, SPEED = 0.1, 0.6  # of the circles (m, m/s)
# Centre (m) and joint positions near it (rad), found with feasible_centre. Frame 0 is in the
# chest: x forwards, y to the left, z up; the arm is the right one.
CIRCLES = {
    "xy": ((0.14, -0.27, -0.15), (-0.41, -0.69, 0.36, 1.52)),
    "xz": ((0.2, -0.28, 0.02), (0.5, -0.85, 0.1, 1.45)),
}
PAYLOAD = 0.5  # kg, in a point of the hand
OFFSET = np.array([3.0, -2.0, 4.0, 0.2, -0.1, 0.1])
WANDER = 0.04  # rad that joints stray from their path, so that none is ever repeated
TRANSIT = 2.0  # s from one circle to the other
_HAND = (0.0, 0.22, 0.0)
_RIGHT = math.pi / 2


def right_arm() -> SerialArm:
    """Return an arm of about the size of the iCub's: three shoulder joints and an elbow.

    With all joints at 0 it hangs down. The wrench is felt between shoulder and upper arm, with
    1.5 kg beyond, and told about the elbow.

    Examples
    --------
    >>> from imparo.service.robot_plant import right_arm
    >>> right_arm().position([0, 0, 0, 0], "tip").round(3).tolist()
    [-0.015, -0.11, -0.372]
    """
    none = [0.0] * 10  # bodies before the cut: nothing depends on them
    upper_arm = _body(0.75, (0.005, 0.004, -0.07), (0.0018, 0.0018, 0.0006))
    forearm = _body(0.75, (0.004, 0.085, 0.006), (0.003, 0.0006, 0.003))
    return SerialArm(
        [(0, _RIGHT, 0.11, _RIGHT), (0, _RIGHT, 0, _RIGHT), (0, -_RIGHT, 0.152, _RIGHT),
         (0.015, _RIGHT, 0, 0)],
        parameters=[none, none, upper_arm, forearm],
        sensor=3,
        tip=_HAND,
        position_limits=[(-2.0, 2.6), (-2.4, 0.9), (-2.0, 2.0), (0.05, 2.6)],
        velocity_limits=[9.0] * 4,
    )  # fmt: skip


def _body(mass: float, centre: Any, moments: Any) -> list[float]:
    """Return ten parameters of a body with its moments of inertia about its centre of mass."""
    c = np.array(centre)
    inertia = np.diag(moments) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    return [mass, *(mass * c), *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]


class ArmPlant:
    """What the arm does at any time, and what its sensor then says but for noise.

    Parameters
    ----------
    seed : int
        Of the joints' wander.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.service.robot_plant import ArmPlant
    >>> plant, times = ArmPlant(seed=0), np.arange(5) / 10
    >>> X = plant.motion(times, "xz", "xz", times)
    >>> X.shape, plant.wrench(X, loaded=True).shape
    ((5, 12), (5, 6))
    """

    def __init__(self, seed: int) -> None:
        self.arm = right_arm()
        self.paths = {
            plane: circle(
                self.arm, "tip", centre=centre, radius=RADIUS, plane=plane, speed=SPEED,
                rate=RATE, start=start,
            )
            for plane, (centre, start) in CIRCLES.items()
        }  # fmt: skip
        self.wander = Wander(WANDER, self.arm.n_joints, seed)
        self.cable = Cable(
            "link_0", (0.0, 0.0, 0.0), "link_4", _HAND,
            slack=0.3, stiffness=75.0, damping=0.4, hardening=750.0,
        )  # fmt: skip
        # Of the two bodies beyond the sensor, the second carries it.
        self.load = np.array([0.0] * 10 + _body(PAYLOAD, _HAND, (0.0, 0.0, 0.0)))

    def motion(self, times: Array, old: str, new: str, done: Array) -> Array:
        """Return rows [q, dq, ddq] on the way from one circle to another.

        Parameters
        ----------
        times : array of shape (n,)
        old, new : {"xy", "xz"}
        done : array of shape (n,)
            Seconds since the way was begun.
        """
        # 10u³ − 15u⁴ + 6u⁵ and its derivatives: no jump in velocities or accelerations.
        u = np.clip(done / TRANSIT, 0, 1)[:, None]
        s = u**3 * (10 - 15 * u + 6 * u**2)
        ds = 30 * u**2 * (1 - u) ** 2 / TRANSIT
        dds = 60 * u * (1 - u) * (1 - 2 * u) / TRANSIT**2
        start, stray = self.paths[old].at(times), self.wander.at(times)
        q, dq, ddq = (b - a for a, b in zip(start, self.paths[new].at(times), strict=True))
        way = (s * q, s * dq + ds * q, s * ddq + 2 * ds * dq + dds * q)
        return np.hstack([sum(parts) for parts in zip(start, stray, way, strict=True)])

    def wrench(self, X: Array, loaded: bool) -> Array:
        """Return the wrench of rigid bodies, cable and offset, shape (n, 6).

        Parameters
        ----------
        X : array of shape (n, 3J)
        loaded : bool
        """
        parameters = self.arm.parameters + loaded * self.load
        y: Array = self.arm.regressor_of(X) @ parameters + self.pull(X) + OFFSET
        return y

    def pull(self, X: Array) -> Array:
        """Return what the sensor feels of the cable, shape (n, 6).

        Parameters
        ----------
        X : array of shape (n, 3J)
        """
        arm, cable, J = self.arm, self.cable, self.arm.n_joints
        q, dq = X[:, :J], X[:, J : 2 * J]
        hand = arm.position(q, "tip")
        away = hand - cable.proximal_point
        length = np.linalg.norm(away, axis=1)
        along = away / length[:, None]
        rate = np.einsum("ni,nij,nj->n", along, arm.jacobian(q, "tip"), dq)
        x = np.maximum(0, length - cable.slack)
        tension = x * (cable.stiffness + cable.hardening * x**2) + cable.damping * rate
        # The cable pulls the hand to the chest; the sensor must hold it against that.
        held = tension[:, None] * along
        places, axes = arm.frames(q)
        turn = np.cross(hand - places[:, arm.sensor], held)
        into = axes[:, arm.sensor]
        return np.hstack([np.einsum("nji,nj->ni", into, part) for part in (held, turn)])
