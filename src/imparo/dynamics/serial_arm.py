"""A serial arm by its Denavit–Hartenberg table, in NumPy alone."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from imparo.dynamics.rigid_columns import OF_BODY, body_columns, carry, spinning
from imparo.dynamics.robot import Robot
from imparo.dynamics.urdf_tables import urdf_of_dh
from imparo.engine import Array
from imparo.persistence import persistent

# States whose products are held at a time: they fit into a core's own memory.
_BLOCK = 256


@persistent
class SerialArm(Robot):
    """A serial arm with revolute joints, y = Φ(q, dq, ddq) π (thesis, eq. 8.1 and 8.2).

    It needs no Pinocchio, and stands wherever a :class:`Robot` can. Frame i is placed in frame
    i − 1 by Rot_x(α) Trans_x(a) Trans_z(d) Rot_z(θ + q), Craig's convention, as by
    :meth:`Robot.from_dh`; body i is fixed in frame i. With ω, ω̇ and the acceleration a of the
    origin (gravity being one upwards) in the axes of frame i, body i needs the wrench ::

        F = m a + (S(ω̇) + S(ω)²) mc
        T = −S(a) mc + (L(ω̇) + S(ω) L(ω)) (Ixx Ixy Iyy Ixz Iyz Izz)

    with S(u) v = u × v and L(u) I = I u: six rows and ten columns of Φ. These are carried from
    body to body towards the base. A torque is the last row of what has come to its joint, and a
    sensor's wrench is all of it where the arm is cut.

    Cost: O(J²) operations a state; some 5 µs in a block for four joints, as Pinocchio, and
    0.1 ms for one state alone, ten times as much as Pinocchio.

    Parameters
    ----------
    rows : array of shape (J, 4)
        a (m), α (rad), d (m), θ (rad) of each joint; joints are named joint_1, joint_2, … and
        bodies link_1, link_2, …
    parameters : array of shape (J, 10), optional
        m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz of each body, about the origin of its
        frame; 0 if None: they are there to be learned.
    sensor : int, optional
        k: a six-axis force/torque sensor cuts link k. Outputs are then the wrench (Fx Fy Fz Tx
        Ty Tz) on all that is distal of it, which begins with body k, in the axes and about the
        origin of frame k; otherwise the torques of the joints.
    tip : sequence of 3 floats, default (0, 0, 0)
        A point of the last body, for :meth:`position` and :meth:`jacobian`.
    sign : {1, -1}, default 1
        1: what the proximal side exerts on the distal one; −1 the opposite.
    gravity : sequence of 3 floats, default (0, 0, -9.81)
        In frame 0.
    position_limits : array of shape (J, 2), optional
        None, and infinities, are no limits.
    velocity_limits : array of shape (J,), optional

    Attributes
    ----------
    urdf : str
        A description of the kinematics.

    Examples
    --------
    A bar of 2 kg hangs at 0.5 m from its joint, held out horizontally:

    >>> import numpy as np
    >>> from imparo.dynamics import ParametricDynamics, SerialArm
    >>> bar = [2.0, 1.0, 0, 0, 0, 0, 0.5, 0, 0, 0.5]
    >>> pendulum = SerialArm([(0, 0, 0, 0)], parameters=[bar], gravity=(0, -9.81, 0))
    >>> pendulum.inverse_dynamics([0.0])
    array([9.81])
    >>> arm = SerialArm([(0, 0, 0, 0), (1, 0, 0, 0)], sensor=2, gravity=(0, -9.81, 0))
    >>> q, dq, ddq = np.random.default_rng(0).uniform(-2, 2, size=(3, 100, 2))
    >>> truth = np.linspace(0.1, 1, 10)
    >>> model = ParametricDynamics(arm).learn(q, dq, ddq, arm.regressor(q, dq, ddq) @ truth)
    >>> bool(np.allclose(model.base_.of(truth), model.parameters_[:-6], atol=1e-4))
    True
    """

    def __init__(
        self,
        rows: Any,
        *,
        parameters: Any = None,
        sensor: int | None = None,
        tip: Sequence[float] = (0.0, 0.0, 0.0),
        sign: int = 1,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        position_limits: Any = None,
        velocity_limits: Any = None,
    ) -> None:
        self.urdf = urdf_of_dh(rows)  # raises unless it is a table
        self.rows = np.array(rows, float)
        J = len(self.rows)
        self.joints = tuple(f"joint_{i}" for i in range(1, J + 1))
        whole = isinstance(sensor, int | np.integer) and not isinstance(sensor, bool)
        if sensor is not None and not (whole and 1 <= sensor <= J):
            raise ValueError(
                f"sensor={sensor!r:.60} must be the number of the link that it cuts, from 1 to "
                f"{J}, or None for the torques of the joints"
            )
        if not (np.isscalar(sign) and sign in (1, -1)):
            raise ValueError(f"sign={sign!r:.60} must be 1 (proximal on distal) or -1")
        self.sensor: Any = None if sensor is None else int(sensor)
        self.sign = int(sign)
        self.gravity = tuple(_numbers("gravity", gravity, (3,)).tolist())
        self.tip = tuple(_numbers("tip", tip, (3,)).tolist())
        none = np.zeros((J, OF_BODY)) if parameters is None else parameters
        self.body_parameters = _numbers("parameters", none, (J, OF_BODY))
        free = (
            np.tile([-np.inf, np.inf], (J, 1)) if position_limits is None else position_limits
        )
        self.position_limits = _numbers("position_limits", free, (J, 2), finite=False)
        fastest = np.full(J, np.inf) if velocity_limits is None else velocity_limits
        self.velocity_limits = _numbers("velocity_limits", fastest, (J,), finite=False)
        if not (self.position_limits[:, 0] <= self.position_limits[:, 1]).all():
            raise ValueError("position_limits must be rows (low, high) with low <= high")
        if not (self.velocity_limits > 0).all():
            raise ValueError("velocity_limits must be above 0, infinite where there is none")
        # Frame i in frame i − 1 but for the turn of its joint: places, and turns by α.
        a, alpha, d, _ = self.rows.T
        c, s = np.cos(alpha), np.sin(alpha)
        self._places = np.stack([a, -s * d, c * d], axis=1)
        self._leans = np.zeros((J, 3, 3))
        self._leans[:, 0, 0] = 1.0
        self._leans[:, 1, 1], self._leans[:, 1, 2] = c, -s
        self._leans[:, 2, 1], self._leans[:, 2, 2] = s, c

    @classmethod
    def from_dh(cls, rows: Any, **keywords: Any) -> Self:
        """Return ``SerialArm(rows, **keywords)``, as robots are made of such tables.

        Parameters
        ----------
        rows : array of shape (J, 4)
        **keywords
            As for the class.
        """
        return cls(rows, **keywords)

    def __repr__(self) -> str:
        senses = f"sensor={self.sensor}, sign={self.sign}" if self.sensor else "torques"
        return f"SerialArm(joints={list(self.joints)}, {senses})"

    # What is where.

    @property
    def _first(self) -> int:
        """Place of the first body that outputs depend on."""
        return 0 if self.sensor is None else int(self.sensor) - 1

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies that outputs depend on."""
        return tuple(f"link_{i + 1}" for i in range(self._first, self.n_joints))

    @cached_property
    def parameters(self) -> Array:
        """π of the description, shape (10 × bodies,)."""
        return self.body_parameters[self._first :].ravel()

    # Dynamics.

    def regressor(self, q: Any, dq: Any = None, ddq: Any = None) -> Array:
        """Return Φ(q, dq, ddq).

        Parameters
        ----------
        q, dq, ddq : array of shape (n, J) or (J,)
            Positions, velocities and accelerations; 0 where not given.

        Returns
        -------
        array of shape (n, T, 10 × bodies) or (T, 10 × bodies)
        """
        states = self._rows((q, dq, ddq))
        n = states.shape[1]
        Phi = np.zeros((n, self.n_outputs, OF_BODY * len(self.bodies)))
        for start in range(0, n, _BLOCK):
            block = slice(start, start + _BLOCK)
            self._fill(states[:, block], Phi[block])
        if self.sign < 0:
            np.negative(Phi, out=Phi)
        return Phi[0] if np.ndim(q) == 1 else Phi

    def inverse_dynamics(self, q: Any, dq: Any = None, ddq: Any = None) -> Array:
        """Return y = Φπ with the description's inertias.

        Parameters
        ----------
        q, dq, ddq : array of shape (n, J) or (J,)

        Returns
        -------
        array of shape (n, T) or (T,)
        """
        y: Array = self.regressor(q, dq, ddq) @ self.parameters
        return y

    def _fill(self, states: Array, Phi: Array) -> None:
        """Write Φ of states, shape (3, n, J), over zeros."""
        n, J = states.shape[1:]
        turns = self._turns(states[0])
        first, bodies = self._first, self._bodies(states, turns)
        carried = np.zeros((n, 6, OF_BODY * len(bodies)))
        for j in reversed(range(first, J)):
            place = OF_BODY * (j - first)
            carried[:, :, place : place + OF_BODY] = bodies[j - first]
            if self.sensor is None:
                Phi[:, j, place:] = carried[:, 5, place:]
            if j > first:
                carry(turns[j], self._places[j], carried[:, :, place:])
        if self.sensor is not None:
            Phi[:] = carried

    def _turns(self, q: Array) -> Array:
        """Return the axes of each frame in the one before, shape (J, n, 3, 3)."""
        angles = q.T + self.rows[:, 3, None]
        Z = np.zeros((*angles.shape, 3, 3))
        Z[..., 0, 0] = Z[..., 1, 1] = np.cos(angles)
        Z[..., 1, 0] = np.sin(angles)
        Z[..., 0, 1] = -Z[..., 1, 0]
        Z[..., 2, 2] = 1.0
        turned: Array = self._leans[:, None] @ Z
        return turned

    def _bodies(self, states: Array, turns: Array) -> Array:
        """Return rows and columns of each body that counts alone, shape (bodies, n, 6, 10)."""
        _, dq, ddq = states
        motion = np.zeros((len(dq), 3, 3))  # rows ω, ω̇, a
        motion[:, 2] = np.negative(self.gravity)
        found = []
        for j, (place, R) in enumerate(zip(self._places, turns, strict=True)):
            before = motion.copy()
            before[:, 2] += spinning(before[:, 0], before[:, 1]) @ place
            motion = before @ R  # Rᵀ times each: from the frame before into this one
            w, dw = motion[:, 0], motion[:, 1]
            dw[:, 0] += w[:, 1] * dq[:, j]  # ω × ẑ dq, before ω has its own part of dq
            dw[:, 1] -= w[:, 0] * dq[:, j]
            dw[:, 2] += ddq[:, j]
            w[:, 2] += dq[:, j]
            found.append(motion)
        moved = np.stack(found[self._first :])
        return body_columns(moved[..., 0, :], moved[..., 1, :], moved[..., 2, :])

    # Kinematics.

    def frames(self, q: Any) -> tuple[Array, Array]:
        """Return places and axes of all frames, from 0 to J, in frame 0.

        Parameters
        ----------
        q : array of shape (n, J) or (J,)

        Returns
        -------
        places : array of shape (n, J + 1, 3) or (J + 1, 3)
        axes : array of shape (n, J + 1, 3, 3) or (J + 1, 3, 3)
        """
        (positions,) = self._rows((q,))
        n, J = positions.shape
        places, axes = np.zeros((n, J + 1, 3)), np.zeros((n, J + 1, 3, 3))
        axes[:, 0] = np.eye(3)
        for j, turn in enumerate(self._turns(positions)):
            places[:, j + 1] = places[:, j] + axes[:, j] @ self._places[j]
            axes[:, j + 1] = axes[:, j] @ turn
        return (places[0], axes[0]) if np.ndim(q) == 1 else (places, axes)

    def position(self, q: Any, frame: str) -> Array:
        """Return where the origin of a frame, or the tip, is in frame 0.

        Parameters
        ----------
        q : array of shape (n, J) or (J,)
        frame : str
            "link_0" to "link_J", a joint, or "tip".

        Returns
        -------
        array of shape (n, 3) or (3,)
        """
        number = self._number(frame)
        return self._point(*self.frames(q), number, frame)

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
        number = self._number(frame)
        places, axes = self.frames(q)
        point = self._point(places, axes, number, frame)[..., None, :]
        J = np.zeros((*np.shape(q)[:-1], 3, self.n_joints))
        # A joint turns what is beyond it about the z axis of its frame.
        before = slice(1, number + 1)
        arms = np.cross(axes[..., before, :, 2], point - places[..., before, :])
        J[..., :number] = np.swapaxes(arms, -1, -2)
        return J

    def _point(self, places: Array, axes: Array, number: int, frame: str) -> Array:
        """Return the origin of a frame, or the tip, which is in it."""
        origin: Array = places[..., number, :]
        if frame == "tip":
            origin = origin + axes[..., number, :, :] @ np.array(self.tip)
        return origin

    def _number(self, frame: str) -> int:
        """Return which frame a name means; the tip is in the last one."""
        J = self.n_joints
        names = {f"link_{i}": i for i in range(J + 1)} | {"tip": J}
        names |= {name: i for i, name in enumerate(self.joints, start=1)}
        if not isinstance(frame, str) or frame not in names:
            raise ValueError(
                f"the robot has no link or joint {frame!r:.60}; it has link_0 to link_{J}, "
                f"joint_1 to joint_{J} and tip"
            )
        return names[frame]


def _numbers(name: str, values: Any, shape: tuple[int, ...], *, finite: bool = True) -> Array:
    """Return an array of numbers, checked."""
    try:
        array = np.array(values, float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.shape != shape or np.isnan(array).any() or (finite and np.isinf(array).any()):
        size = " x ".join(str(n) for n in shape)
        raise ValueError(f"{name}={values!r:.60} must be {size} {'finite ' * finite}numbers")
    return array
