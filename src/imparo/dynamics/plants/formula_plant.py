"""A robot by a formula, for fast tests; nothing is simulated."""

import math
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from imparo.dynamics.logs.log import Log
from imparo.dynamics.plants.effects import (
    Payload,
    SensorEffects,
    check_cutoff,
    check_path,
    lag_notes,
    lagged,
)
from imparo.dynamics.plants.trajectories import Trajectory
from imparo.dynamics.robot import Robot
from imparo.engine import Array

# Values between samples that a filter of velocities sees.
_FINE = 0.002
_SETTLE = 1.0
# Of the hidden layer of g.
_UNITS = 16


class FormulaPlant:
    """A plant that is a formula, for fast tests; it is **not** a simulation.

    y = Φ(q, dq, ddq) π̃ + s g(q, dq) + friction + offset + drift + noise, at the samples of a
    path, which joints follow exactly. π̃ are the robot's parameters with perturbed masses and
    lengths, g = A tanh(B [q, dq / 2] + c) with random A, B, c: smooth, nonlinear, and nothing
    that a real cable does. Judge learners on :class:`MujocoPlant` or on recordings.

    Each body's mass is multiplied by a factor and its geometry stretched by another about the
    origin of its joint: m, mc and I become m a, mc a b and I a b². Both are exp of uniform
    numbers in ± ``perturbation``, so that parameters stay physically possible.

    Cost: 10 to 60 µs a sample.

    Parameters
    ----------
    robot : Robot
    perturbation : float, default 0.2
        Of the inertial parameters.
    nonlinear : float or array of shape (T,), default 0
        s: what g adds to each output, in its unit.
    friction : float or array of shape (J,), default 0
        Nms/rad; viscous, and as many Nm of Coulomb friction, smoothed by tanh(dq / 0.01). It
        acts on torques only: a sensor in the arm does not feel it.
    payloads : sequence of Payload, default none
    offset, drift, noise : float or array of shape (T,), default 0
        As for :class:`MujocoPlant`.
    velocity_cutoff : float, optional
        As for :class:`MujocoPlant`.
    seed : int, default 0
        Of the robot: of π̃ and g.

    Attributes
    ----------
    parameters : array of shape (10 × bodies,)
        π̃.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import Robot
    >>> from imparo.dynamics.plants.formula_plant import FormulaPlant
    >>> from imparo.dynamics.plants.trajectories import multisine
    >>> arm = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0)], gravity=(0, -9.81, 0))
    >>> log = FormulaPlant(arm, offset=2.0).simulate(multisine(arm, duration=1))
    >>> log.y.shape, float(log.y[0, 0])  # this robot's bodies weigh nothing
    ((100, 2), 2.0)
    """

    def __init__(
        self,
        robot: Robot,
        *,
        perturbation: float = 0.2,
        nonlinear: Any = 0.0,
        friction: Any = 0.0,
        payloads: Sequence[Payload] = (),
        offset: Any = None,
        drift: Any = None,
        noise: Any = None,
        velocity_cutoff: float | None = None,
        seed: int = 0,
    ) -> None:
        check_cutoff(velocity_cutoff)
        if not (math.isfinite(perturbation) and 0 <= perturbation <= 1):
            raise ValueError(f"perturbation={perturbation!r} must be a number from 0 to 1")
        self.robot, self.payloads = robot, tuple(payloads)
        self.sensor_effects = SensorEffects.of(robot.n_outputs, offset, drift, noise)
        self.velocity_cutoff = velocity_cutoff
        self.nonlinear = _sizes("nonlinear", nonlinear, robot.n_outputs, "output")
        self.friction = _sizes("friction", friction, robot.n_joints, "joint")
        if self.friction.any() and robot.sensor is not None:
            raise ValueError(
                "friction of the joints is not felt by a force/torque sensor in the arm; leave "
                "friction at 0, or take the robot without its sensor"
            )
        rng = np.random.default_rng(seed)
        bodies = robot.parameters.reshape(-1, 10)
        heavier, longer = np.exp(perturbation * rng.uniform(-1, 1, (2, len(bodies), 1)))
        powers = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
        self.parameters = (bodies * heavier * longer**powers).ravel()
        width, T = 2 * robot.n_joints, robot.n_outputs
        self._inner = rng.normal(size=(width, _UNITS)) / math.sqrt(width)
        self._shift = rng.uniform(-1, 1, _UNITS)
        self._outer = rng.normal(size=(_UNITS, T)) / math.sqrt(_UNITS)

    def simulate(self, path: Trajectory, *, seed: int = 0) -> Log:
        """Return the log of the robot as it follows a path.

        Parameters
        ----------
        path : Trajectory
            Of the robot's joints.
        seed : int, default 0
            Of drift and noise.
        """
        return self.simulate_with_truth(path, seed=seed)[0]

    def simulate_with_truth(self, path: Trajectory, *, seed: int = 0) -> tuple[Log, Log]:
        """Return the log, and one of the true velocities, accelerations and outputs.

        Parameters
        ----------
        path : Trajectory
        seed : int, default 0

        Returns
        -------
        measured, truth : Log
        """
        check_path(self.robot.joints, path)
        y = self.outputs(path.t, path.q, path.dq, path.ddq)
        every = max(1, math.ceil(1 / (path.rate * _FINE) - 1e-9))
        step = 1 / (path.rate * every)
        dq, ddq = path.dq, path.ddq
        if self.velocity_cutoff is not None:
            skipped = math.ceil(_SETTLE / step)
            times = (np.arange(skipped + (len(path) - 1) * every + 1) - skipped) * step
            smooth, rates = lagged(path.at(times)[1], step, self.velocity_cutoff)
            dq, ddq = smooth[skipped::every], rates[skipped::every]
        noisy = self.sensor_effects.applied(y, path.rate, np.random.default_rng(seed))
        names = {"joints": self.robot.joints, "outputs": self.robot.output_names}
        notes = {**path.notes, "plant": "formula, not simulated", "seed": str(seed)}
        measured = {**notes, **lag_notes(step, self.velocity_cutoff)}
        true = {**notes, **lag_notes(step, None), "y": "without offset, drift and noise"}
        return (
            Log(path.t, path.q, dq, ddq, noisy, notes=measured, **names),
            Log(path.t, path.q, path.dq, path.ddq, y, notes=true, **names),
        )

    def outputs(self, t: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """Return y without offset, drift and noise.

        Parameters
        ----------
        t : array of shape (n,)
            Seconds; payloads come and go.
        q, dq, ddq : arrays of shape (n, J)

        Returns
        -------
        array of shape (n, T)
        """
        robot = self.robot
        y = robot.regressor(q, dq, ddq) @ self.parameters
        hidden = np.tanh(np.hstack([q, dq / 2]) @ self._inner + self._shift)
        y += self.nonlinear * (hidden @ self._outer)
        if self.friction.any():
            y += robot.sign * self.friction * (dq + np.tanh(dq / 0.01))
        for payload in self.payloads:
            there = np.array([payload.carried(float(time)) for time in t], bool)
            if there.any():
                states = q[there], dq[there], ddq[there]
                y[there] += loaded(robot, payload).inverse_dynamics(*states)
                y[there] -= robot.inverse_dynamics(*states)
        return y


def loaded(robot: Robot, payload: Payload) -> Robot:
    """Return a robot that carries a payload for ever.

    Parameters
    ----------
    robot : Robot
    payload : Payload
    """
    root = ET.fromstring(robot.urdf)
    names = [link.get("name", "") for link in root.findall("link")]
    if payload.link not in names:
        raise ValueError(
            f"the robot has no link {payload.link!r} for a payload; it has {', '.join(names)}"
        )
    link = ET.SubElement(root, "link", {"name": "imparo_payload"})
    inertial = ET.SubElement(link, "inertial")
    ET.SubElement(inertial, "mass", {"value": repr(float(payload.mass))})
    moments = dict.fromkeys(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), "0")
    ET.SubElement(inertial, "inertia", moments)
    joint = ET.SubElement(root, "joint", {"name": "imparo_payload_joint", "type": "fixed"})
    ET.SubElement(joint, "parent", {"link": payload.link})
    ET.SubElement(joint, "child", {"link": "imparo_payload"})
    place = " ".join(repr(float(part)) for part in payload.point)
    ET.SubElement(joint, "origin", {"xyz": place, "rpy": "0 0 0"})
    return Robot(
        ET.tostring(root, encoding="unicode"),
        joints=robot.joints,
        sensor=robot.sensor,
        sign=robot.sign,
        gravity=robot.gravity,
    )


def _sizes(name: str, given: Any, count: int, of: str) -> Array:
    values = np.asarray(given, float)
    fits = values.shape in ((), (count,)) and np.isfinite(values).all() and (values >= 0).all()
    if not fits:
        raise ValueError(
            f"{name}={given!r} must be one number from 0 or {count} of them, one for each {of}"
        )
    return np.broadcast_to(values, count).copy()
