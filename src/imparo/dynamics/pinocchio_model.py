"""Pinocchio's model of a robot, and the regressors that it gives one state at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.dynamics.urdf import free_joint
from imparo.engine import Array
from imparo.extras import require


class PinocchioModel:
    """A model in Pinocchio's coordinates, and where things are in it.

    Parameters
    ----------
    urdf : str
        Reduced description.
    joints : sequence of str
        Those that move, in any order.
    sensor : str or None
        A fixed joint where a sensor cuts a link.
    gravity : sequence of 3 floats

    Attributes
    ----------
    pin : module
    model, data : object
        Pinocchio's.
    n_coordinates : int
        Of Pinocchio: one for each joint, and one for a sensor, which stays 0.
    places : array of shape (J,)
        Of the joints, among the coordinates.
    sensor : int or None
        Pinocchio's number of the cut.
    bodies : tuple of int
        Numbers of the joints whose bodies count.
    """

    def __init__(
        self, urdf: str, joints: Sequence[str], sensor: str | None, gravity: Sequence[float]
    ) -> None:
        self.pin = pin = require("pinocchio", "robot")
        text = urdf if sensor is None else free_joint(urdf, sensor)
        try:
            self.model = model = pin.buildModelFromXML(text)
        except Exception as error:
            raise ValueError(f"Pinocchio cannot read the robot description: {error}") from None
        model.gravity = pin.Motion(np.array(gravity), np.zeros(3))
        self.data = model.createData()
        self.n_coordinates = int(model.nv)
        self.places = np.array([model.idx_vs[model.getJointId(name)] for name in joints])
        self.bodies = tuple(range(1, model.njoints))
        self.sensor: int | None = None
        if sensor is not None:
            self.sensor = int(model.getJointId(sensor))
            self.bodies = tuple(int(j) for j in model.subtrees[self.sensor])
        # Bodies beyond the one that the sensor holds: place, number, number of the one before.
        beyond = enumerate(self.bodies[1:], start=1)
        self._beyond = [(k, j, int(model.parents[j])) for k, j in beyond]

    def regressors(self, states: Array, out: Array) -> None:
        """Fill in Φ of every state.

        Parameters
        ----------
        states : array of shape (3, n, n_coordinates)
            q, dq, ddq.
        out : array of shape (n, T, 10 × bodies)
        """
        one = self._torque_regressor if self.sensor is None else self._wrench_regressor
        for i in range(len(out)):  # zip would take a microsecond more for one state
            one(states[0, i], states[1, i], states[2, i], out[i])

    def _torque_regressor(self, q: Array, dq: Array, ddq: Array, out: Array) -> None:
        Phi = self.pin.computeJointTorqueRegressor(self.model, self.data, q, dq, ddq)
        # With one joint Pinocchio returns a vector.
        out[:] = Phi.reshape(self.n_coordinates, -1)[self.places]

    def _wrench_regressor(self, q: Array, dq: Array, ddq: Array, out: Array) -> None:
        pin, model, data, sensor = self.pin, self.model, self.data, self.sensor
        pin.rnea(model, data, q, dq, ddq)  # fills velocities and accelerations of bodies
        out[:, :10] = pin.jointBodyRegressor(model, data, sensor)
        poses: dict[int, Any] = {}
        for k, j, parent in self._beyond:
            step = data.liMi[j]
            poses[j] = pose = step if parent == sensor else poses[parent] * step
            carried = pin.jointBodyRegressor(model, data, j)
            np.matmul(pose.toDualActionMatrix(), carried, out=out[:, 10 * k : 10 * k + 10])
