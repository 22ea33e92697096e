"""Parameters of a robot from a recording, with uncertainties and a check of possibility."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.dynamics.consistency import Consistency, check_consistency, nearest_consistent
from imparo.dynamics.learner import _BLOCK
from imparo.dynamics.parametric import ParametricDynamics
from imparo.dynamics.robot import Robot
from imparo.engine import Array
from imparo.persistence import persistent

# Stretches of time whose errors are taken as independent of each other's.
_STRETCHES = 50


@persistent
@dataclass(frozen=True, eq=False)
class Identification:
    """What a recording says about the parameters of a robot.

    Attributes
    ----------
    model : ParametricDynamics
        Fitted, with outputs weighted by their noise.
    names : tuple of str
        Base parameters in words, then extra columns.
    values, std : array of shape (r + e,)
        π̂, and standard deviations that allow for errors that last.
    covariance : array of shape (r + e, r + e)
    description : array of shape (r + e,)
        What the robot's description says; NaN for extra columns.
    rmse : array of shape (T,)
        What is left in each output.
    consistency : Consistency
        Of ``parameters``.
    parameters : array of shape (p,)
        The full parameters of bodies that can exist whose base parameters are closest to π̂.
    distance : float
        How far these are, in standard deviations: 0 if π̂ itself is possible.
    """

    model: ParametricDynamics
    names: tuple[str, ...]
    values: Array
    std: Array
    covariance: Array
    description: Array
    rmse: Array
    consistency: Consistency
    parameters: Array
    distance: float


def identify(
    robot: Robot, X: Any, Y: Any, *, extras: Any = ("offset",), penalty: float = 1e-6
) -> Identification:
    """Identify the base parameters of a robot (thesis, section 8.2.1).

    Three fits: each tells how large the errors of the outputs are, and the next weights the
    outputs by them. Errors of a rigid model last for a while, and so do not cancel as
    independent ones would: their sums over 50 stretches of time give the covariance
    A⁻¹(Σ_b s_b s_bᵀ)A⁻¹ with s_b = Σ_{i∈b} Φ_iᵀ r_i.

    Parameters
    ----------
    robot : Robot
    X : array of shape (n, 3J)
        Columns q, dq, ddq, in the order of time.
    Y : array of shape (n, T)
    extras : sequence of str, default ("offset",)
        As in :class:`ParametricDynamics`.
    penalty : float, default 1e-6
        λ, around the parameters of the description where these are not all 0.

    Returns
    -------
    Identification

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import Robot, identify
    >>> robot = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0)], gravity=(0, -9.81, 0))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 6))
    >>> Y = robot.regressor_of(X) @ np.tile([2, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1], 2)
    >>> found = identify(robot, X, Y + 0.01 * rng.standard_normal(Y.shape))
    >>> found.names[0], round(float(found.values[0]), 2)
    ('mcx of link_1 + mass of link_2', 2.0)
    >>> found.consistency.ok
    True
    """
    X, Y = np.ascontiguousarray(X, float), np.ascontiguousarray(Y, float)
    keywords = {
        "extras": extras, "penalty": penalty,
        "prior": "robot" if np.any(robot.parameters) else "zero",
    }  # fmt: skip
    model = ParametricDynamics(robot, **keywords).fit(X, Y)
    # Outputs without noise would get all the weight.
    least = 1e-6 * np.sqrt(np.mean(np.square(Y), axis=0)) + np.finfo(float).tiny ** 0.25
    for _ in range(2):
        scale = np.maximum(np.sqrt(model.noise_), least)
        model = ParametricDynamics(robot, output_scale=scale, **keywords).fit(X, Y)
    residuals = Y - model.predict(X)
    covariance = _covariance(model, X, residuals / scale)
    base = model.base_
    assert base is not None
    r, values = base.rank, model.parameters_
    doubt = covariance[:r, :r]
    possible = doubt + 1e-12 * np.trace(doubt) / r * np.eye(r) + 1e-24 * np.eye(r)
    parameters, distance = nearest_consistent(robot, base, values[:r], covariance=possible)
    description = np.full(len(values), np.nan)
    description[:r] = base.of(robot.parameters)
    return Identification(
        model, model.parameter_names_, values, np.sqrt(np.diagonal(covariance)), covariance,
        description, np.sqrt(np.mean(np.square(residuals), axis=0)),
        check_consistency(robot, parameters), parameters, distance,
    )  # fmt: skip


def _covariance(model: ParametricDynamics, X: Array, residuals: Array) -> Array:
    """Return the covariance of π̂ by the scores of stretches of time."""
    count = min(_STRETCHES, len(X))
    p = len(model.parameter_names_)
    scores = np.zeros((count, p))
    stretch = np.arange(len(X)) * count // len(X)
    for start in range(0, len(X), _BLOCK):
        part = slice(start, start + _BLOCK)
        rows = model._regressor(X[part]) / model._scale[:, None]
        np.add.at(scores, stretch[part], np.einsum("ntp,nt->np", rows, residuals[part]))
    spread = scores @ model._recursion.root.T  # A⁻¹ = LᵀL
    half = spread @ model._recursion.root
    return half.T @ half * (count / max(count - 1, 1))
