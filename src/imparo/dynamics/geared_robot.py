"""A robot whose motors do not turn with one joint each."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.dynamics.robot import Robot
from imparo.engine import Array
from imparo.persistence import persistent


@persistent
class GearedRobot(Robot):
    """A robot in the coordinates of its motors, θ = C q, behind their gears.

    Where the gears of a wrist couple joints, friction and rotors belong to a motor and not to a
    joint. Power is the same in both coordinates, τ_qᵀ dq = τ_θᵀ dθ, so that
    τ_θ = C⁻ᵀ τ_q = C⁻ᵀ Φ(C⁻¹θ, C⁻¹dθ, C⁻¹ddθ) π. All methods take positions, velocities and
    accelerations θ, dθ, ddθ, and outputs are the torques τ_θ. Motor k has the name of joint k.

    It can stand wherever a :class:`Robot` can: friction and rotors that
    :class:`ParametricDynamics` adds are then those of the motors. A state costs 5 µs more.

    Parameters
    ----------
    urdf : str or path-like
        As for :class:`Robot`.
    coupling : array of shape (J, J)
        C, invertible: row k has the turns of motor k, divided by its gear ratio, for one turn
        of each joint.
    **keywords
        As for :class:`Robot`; no sensor.

    Examples
    --------
    >>> from imparo.dynamics import Robot
    >>> from imparo.dynamics.geared_robot import GearedRobot
    >>> rows = [(0, 0, 0, 0), (1.0, 0, 0, 0)]
    >>> arm = GearedRobot.from_dh(rows, coupling=[[1, 0], [1, 1]])
    >>> joints = Robot.from_dh(rows).regressor([0.1, 0.2], [1.0, 2.0])
    >>> motors = arm.regressor([0.1, 0.3], [1.0, 3.0])
    >>> bool(abs(motors[0] - (joints[0] - joints[1])).max() < 1e-12)
    True
    """

    def __init__(self, urdf: Any, *, coupling: Any, **keywords: Any) -> None:
        super().__init__(urdf, **keywords)
        J = self.n_joints
        try:
            matrix = np.array(coupling, float)
        except (TypeError, ValueError):
            raise ValueError(
                f"coupling={coupling!r:.60} must be {J} rows of {J} finite numbers, one for "
                "each joint that moves"
            ) from None
        if matrix.shape != (J, J) or not np.isfinite(matrix).all():
            raise ValueError(
                f"coupling has the shape {matrix.shape}; {J} rows of {J} finite numbers were "
                "expected, one for each joint that moves"
            )
        if np.linalg.cond(matrix) > 1e9:
            raise ValueError(
                "coupling is singular: some motions of joints turn no motor, and others could "
                "not be told apart; give a matrix that has an inverse"
            )
        if self.sensor is not None:
            raise ValueError(
                f"a wrench at the sensor {self.sensor!r} does not depend on gears; use Robot"
            )
        self.coupling = matrix
        self._joints_of_motors = np.linalg.inv(matrix)
        ends = np.multiply(
            matrix[:, :, None], self.position_limits, where=matrix[:, :, None] != 0,
            out=np.zeros((J, J, 2)),
        )  # fmt: skip
        self.position_limits = np.stack(
            [ends.min(axis=2).sum(axis=1), ends.max(axis=2).sum(axis=1)], axis=1
        )
        turns = np.abs(matrix)
        speeds = np.multiply(turns, self.velocity_limits, where=turns > 0, out=np.zeros((J, J)))
        self.velocity_limits = speeds.sum(axis=1)

    def regressor(self, q: Any, dq: Any = None, ddq: Any = None) -> Array:
        """Return C⁻ᵀ Φ, see :meth:`Robot.regressor`."""
        return self._joints_of_motors.T @ super().regressor(q, dq, ddq)

    def inverse_dynamics(self, q: Any, dq: Any = None, ddq: Any = None) -> Array:
        """Return τ_θ, see :meth:`Robot.inverse_dynamics`."""
        return super().inverse_dynamics(q, dq, ddq) @ self._joints_of_motors

    def jacobian(self, q: Any, frame: str) -> Array:
        """Return the derivatives of a position by θ, see :meth:`Robot.jacobian`."""
        return super().jacobian(q, frame) @ self._joints_of_motors

    def _rows(self, given: Sequence[Any]) -> Array:
        """Return what the joints do, of what the motors do."""
        return super()._rows(given) @ self._joints_of_motors.T
