"""The parametric part: rigid bodies whose parameters are learned recursively."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imparo.dynamics.base import BaseParameters, base_parameters
from imparo.dynamics.columns import check_extras, extra_columns, extra_names
from imparo.dynamics.learner import DynamicsLearner, check_penalty
from imparo.dynamics.robot import WRENCH, Robot
from imparo.engine import Array
from imparo.estimators.inputs import check_type
from imparo.lifelong.inputs import DIRECTIONAL, check_forgetting
from imparo.lifelong.recursion import Recursion
from imparo.persistence import persistent


@persistent
class ParametricDynamics(DynamicsLearner):
    """Rigid-body dynamics with recursively learned base parameters (thesis, section 8.2.1).

    y = Φ_b(q, dq, ddq) π_b + extra columns, with π̂ the minimizer of
    Σ_i ‖(y_i − Φ_i π)/c‖² + λ‖π − π₀‖². A sample adds T rows, one for each output, at a cost of
    7T(r + e)²/2 flops for r base parameters and e extra columns.

    Parameters
    ----------
    robot : Robot
        Or any object with ``n_outputs``, ``n_inputs`` (or None for any), ``output_names``,
        ``parameter_names``, ``parameters`` and ``regressor_of(X)`` of shape (n, T, p).
    extras : sequence of str, default ("offset",)
        Further columns, one for each output: "offset" of the sensor, and for torques of joints
        "viscous" and "coulomb" friction and "rotor" inertia.
    penalty : float, default 1e-6
        λ of the sum of losses.
    forgetting : float, default 1.0
        γ: what is left of the weight of all samples when a new one comes. It is shared out
        over the T rows of the sample, √[T]γ each.
    forgetting_kind : {"exponential", "directional"}, default "exponential"
        As in :class:`~imparo.RecursiveRegressor`.
    prior : {"zero", "robot"}, default "zero"
        π₀: zero, or the parameters of the robot's description.
    output_scale : array of shape (T,), optional
        c: typical errors of the outputs. If None 1 N and 0.1 Nm for a wrench, and otherwise
        ones. Forces would drown torques without it.

    Attributes
    ----------
    base_ : BaseParameters or None
        Which combinations of parameters are learned; None where the object given as robot is
        no :class:`Robot`.
    parameter_names_ : tuple of str
        Names of all coefficients, extra columns last.
    parameters_, parameter_std_ : array of shape (r + e,)
        π̂ and its standard deviations, errors of samples taken as independent.
    noise_ : array of shape (T,)
        Estimated variance of what is left in each output.
    n_seen_ : int
        Samples so far.
    n_outputs_ : int
        T.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import ParametricDynamics, Robot
    >>> robot = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0)], gravity=(0, -9.81, 0))
    >>> rng = np.random.default_rng(0)
    >>> q, dq, ddq = rng.uniform(-2, 2, size=(3, 200, 2))
    >>> truth = rng.uniform(0.1, 1, len(robot.parameters))
    >>> y = robot.regressor(q, dq, ddq) @ truth + [0.5, -0.5]
    >>> model = ParametricDynamics(robot).learn(q, dq, ddq, y)
    >>> bool(np.allclose(model.base_.of(truth), model.parameters_[:-2], atol=1e-4))
    True
    >>> model.parameters_[-2:].round(3)
    array([ 0.5, -0.5])
    """

    _STATE = (
        *DynamicsLearner._STATE, "_recursion", "_scale", "_start", "_left", "_settled",
        "_extras",
    )  # fmt: skip

    def __init__(
        self,
        robot: Any,
        *,
        extras: Any = ("offset",),
        penalty: float = 1e-6,
        forgetting: float = 1.0,
        forgetting_kind: str = "exponential",
        prior: str = "zero",
        output_scale: Any = None,
    ) -> None:
        self.robot = robot
        self.extras = extras
        self.penalty = penalty
        self.forgetting = forgetting
        self.forgetting_kind = forgetting_kind
        self.prior = prior
        self.output_scale = output_scale

    # Learning.

    def _begin(self, X: Array, n_outputs: int) -> None:
        robot = self.robot
        if not hasattr(robot, "regressor_of"):
            raise TypeError(f"robot={robot!r:.60} must be a Robot, such as Robot('arm.urdf')")
        if robot.n_inputs is not None and X.shape[1] != robot.n_inputs:
            raise ValueError(
                f"X has {X.shape[1]} columns; {robot.n_inputs} were expected: positions, "
                "velocities and accelerations of every joint"
            )
        if n_outputs != robot.n_outputs:
            raise ValueError(
                f"y has {n_outputs} outputs and the robot {robot.n_outputs}: "
                f"{', '.join(robot.output_names)}"
            )
        of_torques = isinstance(robot, Robot) and robot.sensor is None
        self._extras = check_extras(self.extras, of_torques=of_torques)
        check_forgetting(self.forgetting, self.forgetting_kind)
        known = self.prior in ("zero", "robot") if isinstance(self.prior, str) else False
        check_type("prior", self.prior, "'zero' or 'robot'", known)
        self._scale = _checked_scale(self.output_scale, robot.output_names)
        self.base_: BaseParameters | None = None
        names, start = robot.parameter_names, robot.parameters
        if isinstance(robot, Robot):
            self.base_ = base_parameters(robot)
            names, start = self.base_.names, self.base_.of(robot.parameters)
        extra = extra_names(self._extras, robot.output_names)
        self.parameter_names_ = (*names, *extra)
        self._start = np.zeros(len(self.parameter_names_))
        if self.prior == "robot":
            self._start[: len(names)] = start
        self._recursion = Recursion(
            len(self._start), 1, check_penalty(self.penalty),
            forgetting=float(self.forgetting) ** (1 / n_outputs),
            directional=self.forgetting_kind == DIRECTIONAL,
        )  # fmt: skip
        self._left, self._settled = np.zeros(n_outputs), 0

    def _regressor(self, X: Array) -> Array:
        """Return all columns, shape (n, T, r + e)."""
        Phi = self.robot.regressor_of(X)
        if self.base_ is not None:
            Phi = Phi[..., self.base_.columns]
        if not self._extras:
            return np.ascontiguousarray(Phi)
        extra = extra_columns(self._extras, X, Phi.shape[1])
        return np.concatenate([Phi, extra], axis=-1)

    def _learn_rows(self, X: Array, Y: Array) -> None:
        self._learn_regressor(self._regressor(X), Y)

    def _learn_regressor(self, Phi: Array, Y: Array) -> Array:
        """Learn rows; return what each sample looks like just after it was learned."""
        known = Phi @ self._start
        rows, targets = Phi / self._scale[:, None], (Y - known) / self._scale
        recursion = self._recursion
        after = np.empty_like(Y)
        for i in range(len(Y)):
            for judged in recursion.learn(rows[i], targets[i][:, None]):
                errors = (judged.targets - judged.predictions)[:, 0]
                self._left = self._with_errors(errors, judged.shares)
                self._settled += len(errors)
            after[i] = recursion.predict(rows[i])[:, 0]
        return after * self._scale + known

    def _with_errors(self, errors: Array, shares: Array) -> Array:
        """Return what is left in each output with rows that follow those settled."""
        n, T, fade = len(errors), len(self._left), self._recursion.forgetting
        kept = fade ** np.arange(n - 1, -1, -1.0) * shares * np.square(errors)
        outputs = (self._settled + np.arange(n)) % T
        return fade**n * self._left + np.bincount(outputs, kept, minlength=T)

    # Predicting.

    def _predict_rows(self, X: Array, deviations: bool) -> tuple[Array, Array | None]:
        Phi = self._regressor(X)
        F = Phi @ (self._start + self._recursion.coefficients()[0])
        if not deviations:
            return F, None
        return F, np.sqrt(self._uncertainty(Phi) + self.noise_)

    def _uncertainty(self, Phi: Array) -> Array:
        """Return the variance of Φπ̂, shape (n, T)."""
        rows = (Phi / self._scale[:, None]).reshape(-1, Phi.shape[-1])
        h = self._recursion.leverage(rows).reshape(Phi.shape[:2])
        return h * self._recursion.noise()[0] * self._scale**2

    @property
    def parameters_(self) -> Array:
        """π̂: base parameters, then coefficients of the extra columns."""
        check_is_fitted(self, "n_seen_")
        return self._start + self._recursion.coefficients()[0]

    @property
    def parameter_covariance_(self) -> Array:
        """Covariance of π̂, s²A⁻¹, errors of samples taken as independent."""
        check_is_fitted(self, "n_seen_")
        L = self._recursion.root
        return self._recursion.noise()[0] * (L.T @ L)

    @property
    def parameter_std_(self) -> Array:
        """Standard deviations of π̂."""
        return np.sqrt(np.diagonal(self.parameter_covariance_))

    @property
    def noise_(self) -> Array:
        """Estimated variance of what is left in each output."""
        check_is_fitted(self, "n_seen_")
        recursion = self._recursion
        waiting = recursion._waiting_errors()[:, 0]
        left = self._with_errors(waiting, recursion._shares[: len(waiting)])
        samples = recursion.weight / self.n_outputs_
        # Parameters have taken their share of the errors away.
        taken = min(len(self._start) / self.n_outputs_, 0.9 * samples)
        return left / (samples - taken) * self._scale**2


def _checked_scale(given: Any, outputs: Sequence[str]) -> Array:
    if given is None:
        return np.array([0.1 if name in WRENCH[3:] else 1.0 for name in outputs])
    n = len(outputs)
    try:
        scale = np.asarray(given, float)
    except (TypeError, ValueError):
        scale = np.zeros(0)
    fits = scale.shape == (n,) and bool(((scale > 0) & (scale < np.inf)).all())
    check_type("output_scale", given, f"{n} numbers above 0, one an output", fits)
    return scale
