"""A robot as a linear model of its inertial parameters: y = Φ(q, dq, ddq) π."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from imparo.dynamics.extras import require
from imparo.dynamics.urdf import (
    free_joint,
    read_urdf,
    reduce_urdf,
    urdf_of_arrays,
    urdf_of_dh,
)
from imparo.engine import Array
from imparo.persistence import persistent

_OF_BODY = ("mass", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
WRENCH = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")


class _Built(NamedTuple):
    """Pinocchio's model and where things are in it."""

    pin: Any
    model: Any
    data: Any
    places: Array  # of the joints that move, among Pinocchio's coordinates
    sensor: int | None  # Pinocchio's number of the cut
    bodies: tuple[int, ...]  # numbers of the joints whose bodies count


@persistent
class Robot:
    """A robot whose inverse dynamics are y = Φ(q, dq, ddq) π (thesis, eq. 8.1 and 8.2).

    π stacks ten numbers of each body: its mass m, first moments mc and moments of inertia about
    the origin of the frame of the joint that carries it, in the order m, mcx, mcy, mcz, Ixx,
    Ixy, Iyy, Ixz, Iyz, Izz. Links behind fixed joints belong to the body that carries them.

    Needs ``pip install imparo[robot]`` (Pinocchio).

    Parameters
    ----------
    urdf : str or path-like
        A URDF file, its text, or a name of the package icub-models, as "iCubGazeboV2_5".
    joints : sequence of str, optional
        Joints that move, in the order of the columns of q; all that can if None.
    locked : mapping of str to float, optional
        Positions of the others; 0 where none is given.
    sensor : str, optional
        A fixed joint where a six-axis force/torque sensor cuts a link. Outputs are then the
        wrench (Fx Fy Fz Tx Ty Tz) in the frame of that joint's child link, about its origin;
        otherwise the torques (forces of prismatic joints) of ``joints``.
    sign : {1, -1}, default 1
        1: what the proximal side exerts on the distal one, as in Pinocchio and MuJoCo; a hand
        that hangs down is held by a force upwards. −1: what the distal side exerts on the
        proximal one, as the iCub's sensors measure. Torques follow it, too.
    gravity : sequence of 3 floats, default (0, 0, -9.81)
        In the frame of the root link.

    Attributes
    ----------
    urdf : str
        The reduced description: without pictures, other joints fixed.
    n_joints, n_outputs : int
        J and T.
    position_limits : array of shape (J, 2)
    velocity_limits : array of shape (J,)

    Examples
    --------
    >>> from imparo.dynamics import Robot
    >>> arm = Robot(  # doctest: +SKIP
    ...     "iCubGazeboV2_5",
    ...     joints=("r_shoulder_pitch", "r_shoulder_roll", "r_shoulder_yaw", "r_elbow"),
    ...     sensor="r_arm_ft_sensor",
    ... )
    >>> planar = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0)], gravity=(0, -9.81, 0))
    >>> planar.regressor([0.1, 0.2], [0.0, 0.0], [0.0, 0.0]).shape
    (2, 20)
    """

    def __init__(
        self,
        urdf: str | os.PathLike[str],
        *,
        joints: Sequence[str] | None = None,
        locked: Mapping[str, float] | None = None,
        sensor: str | None = None,
        sign: int = 1,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
    ) -> None:
        reduced = reduce_urdf(read_urdf(urdf), joints, locked)
        if sign not in (1, -1):
            raise ValueError(f"sign={sign!r} must be 1 (proximal on distal) or -1")
        down = np.asarray(gravity, float)
        if down.shape != (3,) or not np.isfinite(down).all():
            raise ValueError(f"gravity={gravity!r} must be three finite numbers")
        if sensor is not None:
            free_joint(reduced.text, sensor)  # raises unless it can be one
        self.urdf = reduced.text
        self.joints = reduced.joints
        self.sensor, self.sign = sensor, int(sign)
        self.gravity = tuple(float(part) for part in down)
        self.position_limits = reduced.positions
        self.velocity_limits = reduced.velocities

    @classmethod
    def from_arrays(cls, arrays: Any, **keywords: Any) -> Self:
        """Return a robot whose tree is given as arrays.

        Parameters
        ----------
        arrays : mapping or path-like
            See :func:`imparo.dynamics.urdf.urdf_of_arrays`; or an NPZ file of them.
        **keywords
            As for the class.
        """
        if isinstance(arrays, Mapping):
            return cls(urdf_of_arrays(arrays), **keywords)
        with np.load(arrays, allow_pickle=False) as file:
            return cls(urdf_of_arrays(dict(file)), **keywords)

    @classmethod
    def from_dh(cls, rows: Any, **keywords: Any) -> Self:
        """Return a serial robot by modified (Craig's) Denavit–Hartenberg parameters.

        Parameters
        ----------
        rows : array of shape (J, 4)
            a, α, d, θ of each joint; joints are named joint_1, joint_2, …
        **keywords
            As for the class.
        """
        return cls(urdf_of_dh(rows), **keywords)

    def __repr__(self) -> str:
        senses = f"sensor={self.sensor!r}, sign={self.sign}" if self.sensor else "torques"
        return f"Robot(joints={list(self.joints)}, {senses})"

    def __getstate__(self) -> dict[str, Any]:
        # Pinocchio's objects are made anew where they are needed.
        return {key: value for key, value in vars(self).items() if key != "_built"}

    @cached_property
    def _built(self) -> _Built:
        pin = require("pinocchio", "robot")
        text = self.urdf if self.sensor is None else free_joint(self.urdf, self.sensor)
        try:
            model = pin.buildModelFromXML(text)
        except Exception as error:
            raise ValueError(f"Pinocchio cannot read the robot description: {error}") from None
        model.gravity = pin.Motion(np.array(self.gravity), np.zeros(3))
        data = model.createData()
        places = np.array([model.idx_vs[model.getJointId(name)] for name in self.joints])
        bodies = tuple(range(1, model.njoints))
        sensor = None
        if self.sensor is not None:
            sensor = int(model.getJointId(self.sensor))
            bodies = tuple(int(j) for j in model.subtrees[sensor])
        return _Built(pin, model, data, places, sensor, bodies)

    # What is where.

    @property
    def n_joints(self) -> int:
        """Number J of joints that move."""
        return len(self.joints)

    @property
    def n_outputs(self) -> int:
        """Number T of outputs."""
        return len(self.output_names)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs: Fx to Tz, or the joints."""
        return self.joints if self.sensor is None else WRENCH

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies that outputs depend on: of the links that joints carry."""
        built = self._built
        links: dict[int, str] = {}
        for frame in built.model.frames:
            if frame.type == built.pin.FrameType.BODY:
                links.setdefault(int(frame.parentJoint), str(frame.name))
        return tuple(links.get(j, str(built.model.names[j])) for j in built.bodies)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the ten parameters of each body."""
        return tuple(f"{name} of {body}" for body in self.bodies for name in _OF_BODY)

    @cached_property
    def parameters(self) -> Array:
        """π of the description, shape (10 × bodies,)."""
        inertias = self._built.model.inertias
        return np.concatenate([inertias[j].toDynamicParameters() for j in self._built.bodies])

    # Dynamics.

    @property
    def n_inputs(self) -> int:
        """Number 3J of columns of rows [q, dq, ddq]."""
        return 3 * self.n_joints

    def regressor_of(self, X: Any) -> Array:
        """Return Φ of rows [q, dq, ddq], shape (n, T, 10 × bodies).

        Parameters
        ----------
        X : array of shape (n, 3J)
        """
        J = self.n_joints
        return self.regressor(X[:, :J], X[:, J : 2 * J], X[:, 2 * J :])

    def regressor(self, q: Any, dq: Any = None, ddq: Any = None) -> Array:
        """Return Φ(q, dq, ddq). Costs 5 to 60 µs a sample.

        Parameters
        ----------
        q, dq, ddq : array of shape (n, J) or (J,)
            Positions, velocities and accelerations; 0 where not given.

        Returns
        -------
        array of shape (n, T, 10 × bodies) or (T, 10 × bodies)
        """
        states, single = self._states(q, dq, ddq)
        width = 10 * len(self._built.bodies)
        Phi = np.empty((len(states[0]), self.n_outputs, width))
        one = self._torque_regressor if self.sensor is None else self._wrench_regressor
        for i in range(len(Phi)):
            one(states[0][i], states[1][i], states[2][i], Phi[i])
        return Phi[0] if single else Phi

    def _torque_regressor(self, q: Array, dq: Array, ddq: Array, out: Array) -> None:
        pin, model, data, places, *_ = self._built
        Phi = pin.computeJointTorqueRegressor(model, data, q, dq, ddq)
        # With one joint Pinocchio returns a vector.
        np.multiply(Phi.reshape(model.nv, -1)[places], self.sign, out=out)

    def _wrench_regressor(self, q: Array, dq: Array, ddq: Array, out: Array) -> None:
        pin, model, data, _, sensor, bodies = self._built
        pin.rnea(model, data, q, dq, ddq)  # fills velocities and accelerations of bodies
        poses = {sensor: pin.SE3.Identity()}
        for k, j in enumerate(bodies):
            if j != sensor:
                poses[j] = poses[model.parents[j]] * data.liMi[j]
            carried = poses[j].toDualActionMatrix() @ pin.jointBodyRegressor(model, data, j)
            np.multiply(carried, self.sign, out=out[:, 10 * k : 10 * k + 10])

    def inverse_dynamics(self, q: Any, dq: Any = None, ddq: Any = None) -> Array:
        """Return y by the recursive Newton–Euler algorithm with the description's inertias.

        Parameters
        ----------
        q, dq, ddq : array of shape (n, J) or (J,)

        Returns
        -------
        array of shape (n, T) or (T,)
        """
        states, single = self._states(q, dq, ddq)
        pin, model, data, places, sensor, _ = self._built
        Y = np.empty((len(states[0]), self.n_outputs))
        for i, state in enumerate(zip(*states, strict=True)):
            torques = pin.rnea(model, data, *state)
            Y[i] = torques[places] if sensor is None else data.f[sensor].vector
        Y *= self.sign
        return Y[0] if single else Y

    # Kinematics.

    def position(self, q: Any, frame: str) -> Array:
        """Return where the origin of a link or joint is, in the root link's frame.

        Parameters
        ----------
        q : array of shape (n, J) or (J,)
        frame : str
            Name of a link or joint.

        Returns
        -------
        array of shape (n, 3) or (3,)
        """
        (positions, *_), single = self._states(q)
        number, (pin, model, data, *_) = self._frame(frame), self._built
        places = np.empty((len(positions), 3))
        for i, row in enumerate(positions):
            pin.framesForwardKinematics(model, data, row)
            places[i] = data.oMf[number].translation
        return places[0] if single else places

    def jacobian(self, q: Any, frame: str) -> Array:
        """Return the derivative of :meth:`position` with respect to q.

        Parameters
        ----------
        q : array of shape (n, J) or (J,)
        frame : str

        Returns
        -------
        array of shape (n, 3, J) or (3, J)
        """
        (positions, *_), single = self._states(q)
        number, (pin, model, data, places, *_) = self._frame(frame), self._built
        aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = np.empty((len(positions), 3, self.n_joints))
        for i, row in enumerate(positions):
            full = pin.computeFrameJacobian(model, data, row, number, aligned)
            J[i] = full.reshape(6, -1)[:3, places]
        return J[0] if single else J

    def _frame(self, name: str) -> int:
        model = self._built.model
        if not model.existFrame(name):
            names = [str(frame.name) for frame in model.frames][1:]
            raise ValueError(
                f"the robot has no link or joint {name!r}; it has {', '.join(names[-16:])}"
            )
        return int(model.getFrameId(name))

    def _states(self, *given: Any) -> tuple[list[Array], bool]:
        """Return q, dq, ddq as rows of Pinocchio's coordinates, and whether one was given."""
        built, J = self._built, self.n_joints
        rows = []
        for name, part in zip(("q", "dq", "ddq"), given, strict=False):
            if part is None:
                part = np.zeros(np.shape(given[0]))
            array = np.asarray(part, float)
            if array.ndim not in (1, 2) or array.shape[-1] != J:
                raise ValueError(
                    f"{name} has the shape {array.shape}; one column was expected for each of "
                    f"the {J} joints {', '.join(self.joints)}"
                )
            if array.shape != np.shape(given[0]):
                raise ValueError(
                    f"{name} has the shape {array.shape} and q has {np.shape(given[0])}; they "
                    "must be the same"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"{name} holds NaN or infinity; leave such samples out")
            full = np.zeros((array.size // J, built.model.nv))
            full[:, built.places] = array
            rows.append(full)
        return rows, np.ndim(given[0]) == 1
