"""A robot as a linear model of its inertial parameters: y = Φ(q, dq, ddq) π."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from imparo.dynamics.pinocchio_model import PinocchioModel
from imparo.dynamics.urdf import free_joint, read_urdf, reduce_urdf
from imparo.dynamics.urdf_tables import read_arrays, urdf_of_arrays, urdf_of_dh
from imparo.engine import Array
from imparo.persistence import persistent

_OF_BODY = ("mass", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
_STATES = ("q", "dq", "ddq")
WRENCH = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")


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
        Positions of the others; 0 where none is given. Joints that mimic another one do not
        move: they are locked where that one, being locked, puts them, and must be named here
        if that one moves.
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
        joints: Sequence[str] | str | None = None,
        locked: Mapping[str, float] | None = None,
        sensor: str | None = None,
        sign: int = 1,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
    ) -> None:
        reduced = reduce_urdf(read_urdf(urdf), joints, locked)
        if not (np.isscalar(sign) and sign in (1, -1)):
            raise ValueError(f"sign={sign!r} must be 1 (proximal on distal) or -1")
        try:
            down = np.asarray(gravity, float)
        except (TypeError, ValueError):
            down = np.empty(0)
        if down.shape != (3,) or not np.isfinite(down).all():
            raise ValueError(
                f"gravity={gravity!r} must be three finite numbers, as (0, 0, -9.81)"
            )
        if sensor is not None:
            if not isinstance(sensor, str):
                raise TypeError(f"sensor={sensor!r:.60} must be the name of a fixed joint")
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
        given = arrays if isinstance(arrays, Mapping) else read_arrays(arrays)
        return cls(urdf_of_arrays(given), **keywords)

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
    def _built(self) -> PinocchioModel:
        return PinocchioModel(self.urdf, self.joints, self.sensor, self.gravity)

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
        """Return Φ(q, dq, ddq). Costs 2 to 40 µs a sample in a block, 10 µs more for one alone.

        Parameters
        ----------
        q, dq, ddq : array of shape (n, J) or (J,)
            Positions, velocities and accelerations; 0 where not given.

        Returns
        -------
        array of shape (n, T, 10 × bodies) or (T, 10 × bodies)
        """
        states, single = self._states(q, dq, ddq)
        built = self._built
        Phi = np.empty((states.shape[1], self.n_outputs, 10 * len(built.bodies)))
        built.regressors(states, Phi)
        if self.sign < 0:
            np.negative(Phi, out=Phi)
        return Phi[0] if single else Phi

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
        built = self._built
        rnea, model, data, sensor = built.pin.rnea, built.model, built.data, built.sensor
        Y = np.empty((states.shape[1], self.n_outputs))
        for i, state in enumerate(zip(*states, strict=True)):
            torques = rnea(model, data, *state)
            Y[i] = torques[built.places] if sensor is None else data.f[sensor].vector
        Y *= self.sign
        return Y[0] if single else Y

    # Kinematics.

    def position(self, q: Any, frame: str) -> Array:
        """Return where the origin of a link or joint is, in the root link's frame.

        Parameters
        ----------
        q : array of shape (n, J) or (J,)
        frame : str
            Name of a link or joint; of the link where both have it.

        Returns
        -------
        array of shape (n, 3) or (3,)
        """
        (positions,), single = self._states(q)
        number, built = self._frame(frame), self._built
        places = np.empty((len(positions), 3))
        for i, row in enumerate(positions):
            built.pin.framesForwardKinematics(built.model, built.data, row)
            places[i] = built.data.oMf[number].translation
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
        (positions,), single = self._states(q)
        number, built = self._frame(frame), self._built
        aligned = built.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = np.empty((len(positions), 3, self.n_joints))
        for i, row in enumerate(positions):
            full = built.pin.computeFrameJacobian(built.model, built.data, row, number, aligned)
            J[i] = full.reshape(6, -1)[:3, built.places]
        return J[0] if single else J

    def _frame(self, name: str) -> int:
        model, kinds = self._built.model, self._built.pin.FrameType
        if isinstance(name, str):
            for kind in (kinds.BODY, kinds.JOINT, kinds.FIXED_JOINT):
                if model.existFrame(name, kind):
                    return int(model.getFrameId(name, kind))
        names = [str(frame.name) for frame in model.frames][1:]
        raise ValueError(
            f"the robot has no link or joint {name!r}; it has {', '.join(names[-16:])}"
        )

    def _states(self, *given: Any) -> tuple[Array, bool]:
        """Return q, dq, ddq in Pinocchio's coordinates, and whether one state was given."""
        rows, built = self._rows(given), self._built
        states = np.zeros((*rows.shape[:2], built.n_coordinates))
        states[..., built.places] = rows
        return states, np.ndim(given[0]) == 1

    def _rows(self, given: Sequence[Any]) -> Array:
        """Return q, dq, ddq, checked, shape (3, n, J); 0 where not given."""
        q = _array(given[0], "q")
        J, shape = self.n_joints, q.shape
        if q.ndim not in (1, 2) or shape[-1] != J:
            raise ValueError(
                f"q has the shape {shape}; one column was expected for each of the {J} joints "
                f"{', '.join(self.joints)}"
            )
        rows = np.zeros((len(given), q.size // J, J))
        rows[0] = q
        for k, part in enumerate(given):
            if k and part is not None:
                array = _array(part, _STATES[k])
                if array.shape != shape:
                    raise ValueError(
                        f"{_STATES[k]} has the shape {array.shape} and q has {shape}; they "
                        "must be the same"
                    )
                rows[k] = array
        finite = np.isfinite(rows)
        if not finite.all():
            name = _STATES[int(np.argmin(finite.all(axis=(1, 2))))]
            raise ValueError(f"{name} holds NaN or infinity; leave such samples out")
        return rows


def _array(values: Any, name: str) -> Array:
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}={values!r:.60} must be an array of numbers, one column a joint"
        ) from None
