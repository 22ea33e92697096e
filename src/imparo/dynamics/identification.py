"""Parameters of a robot from a recording, with uncertainties and a check of possibility."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imparo.dynamics.consistency import Consistency, check_consistency, nearest_consistent
from imparo.dynamics.learner import _BLOCK
from imparo.dynamics.parametric import ParametricDynamics
from imparo.dynamics.robot import Robot
from imparo.engine import Array
from imparo.persistence import persistent

# Stretches of time whose errors are taken as independent of each other's.
_STRETCHES = 50
# Of finding parameters and noise; a few do.
_TURNS = 50


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
        What the robot's description says; NaN for extra columns, and throughout where it has
        no inertias.
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

    Outputs are weighted by their noise, which is found with the parameters by turns until both
    stay. Errors of a rigid model last for a while, and so do not cancel as
    independent ones would. So 50 stretches of time are left out, one after the other: with
    A_b = Σ_{i∈b} Φ_iᵀΦ_i and s_b = Σ_{i∈b} Φ_iᵀ r_i that moves π̂ by m_b = (A − A_b)⁻¹ s_b, and
    the covariance is 49/50 Σ_b m_b m_bᵀ + λA⁻². The second part counts where the motion says
    nothing: what λ alone holds has the deviation 1/√λ.

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
    if not isinstance(robot, Robot):
        raise TypeError(f"robot={robot!r:.60} must be a Robot, such as Robot('arm.urdf')")
    X, Y = np.ascontiguousarray(X, float), np.ascontiguousarray(Y, float)
    described = bool(np.any(robot.parameters))
    keywords = {
        "extras": extras, "penalty": penalty,
        "prior": "robot" if described else "zero",
    }  # fmt: skip
    first = ParametricDynamics(robot, **keywords).fit(X, Y)
    unknown = len(first.parameter_names_)
    if Y.size <= unknown:
        raise ValueError(
            f"{len(X)} samples of {robot.n_outputs} outputs are too few for {unknown} "
            "parameters; give a longer log, or fewer extras"
        )
    sums = _sums(first, X, Y)
    # Outputs without noise would get all the weight.
    least = 1e-6 * np.sqrt(np.mean(np.square(Y), axis=0)) + np.finfo(float).tiny ** 0.25
    scale = _noise(sums, np.sqrt(first.noise_), float(penalty), least)
    model = ParametricDynamics(robot, output_scale=scale, **keywords).fit(X, Y)
    covariance = _covariance(sums, scale, model.parameters_ - model._start, float(penalty))
    base = model.base_
    assert base is not None
    r, values = base.rank, model.parameters_
    doubt = covariance[:r, :r]
    possible = doubt + 1e-12 * np.trace(doubt) / max(r, 1) * np.eye(r) + 1e-24 * np.eye(r)
    parameters, distance = nearest_consistent(robot, base, values[:r], covariance=possible)
    description = np.full(len(values), np.nan)
    if described:
        description[:r] = base.of(robot.parameters)
    return Identification(
        model, model.parameter_names_, values, np.sqrt(np.diagonal(covariance)), covariance,
        description, np.sqrt(np.mean(np.square(Y - model.predict(X)), axis=0)),
        check_consistency(robot, parameters), parameters, distance,
    )  # fmt: skip


class _Sums(NamedTuple):
    """Of samples of each stretch of time, with y less what the description says."""

    squares: Array  # Φᵀ_t Φ_t, shape (stretches, T, p, p)
    products: Array  # Φᵀ_t y_t, shape (stretches, T, p)
    energy: Array  # y², shape (T,)
    samples: int


def _sums(model: ParametricDynamics, X: Array, Y: Array) -> _Sums:
    (n, T), p = Y.shape, len(model.parameter_names_)
    count = min(_STRETCHES, n)
    squares, products = np.zeros((count, T, p, p)), np.zeros((count, T, p))
    energy = np.zeros(T)
    for b, stretch in enumerate(np.array_split(np.arange(n), count)):
        for start in range(0, len(stretch), _BLOCK):
            part = stretch[start : start + _BLOCK]
            Phi = model._regressor(X[part])
            targets = Y[part] - Phi @ model._start
            rows = Phi.transpose(1, 0, 2)
            squares[b] += rows.mT @ rows
            products[b] += np.einsum("tnp,nt->tp", rows, targets)
            energy += np.square(targets).sum(axis=0)
    return _Sums(squares, products, energy, n)


def _noise(sums: _Sums, scale: Array, penalty: float, least: Array) -> Array:
    """Return deviations of the outputs' noise, by turns with the parameters."""
    squares, products = sums.squares.sum(axis=0), sums.products.sum(axis=0)
    scale = np.maximum(scale, least)
    for _ in range(_TURNS):
        weights = scale**-2.0
        inverse = _inverse(np.einsum("t,tpq->pq", weights, squares), penalty)
        pi = inverse @ (weights @ products)
        left = sums.energy - 2 * products @ pi + (squares @ pi) @ pi
        # Parameters have taken their share of the errors away.
        taken = weights * np.einsum("pq,tqp->t", inverse, squares)
        free = np.maximum(sums.samples - taken, 0.1 * sums.samples)
        before, scale = scale, np.maximum(np.sqrt(np.maximum(left, 0) / free), least)
        if np.allclose(scale, before, rtol=1e-6, atol=0):
            break
    return scale


def _covariance(sums: _Sums, scale: Array, moved: Array, penalty: float) -> Array:
    """Return the covariance of π̂, by leaving out one stretch of time after the other."""
    weights = scale**-2.0
    squares = np.einsum("t,btpq->bpq", weights, sums.squares)
    scores = np.einsum("t,btp->bp", weights, sums.products) - squares @ moved
    total, count = squares.sum(axis=0), len(squares)
    moves = np.einsum("bpq,bq->bp", _inverse(total - squares, penalty, rounded=0.0), scores)
    whole = _inverse(total, penalty)
    return moves.T @ moves * ((count - 1) / count) + penalty * whole @ whole


def _inverse(A: Array, penalty: float, rounded: float | None = None) -> Array:
    """Return (A + λ)⁻¹ of A ⪰ 0, shape (..., p, p), where λ may be lost in the rounding of A.

    Parameters
    ----------
    A : array of shape (..., p, p)
    penalty : float
    rounded : float, optional
        What the inverse has where eigenvalues of A are nothing but rounding; 1/λ if None.
    """
    values, vectors = np.linalg.eigh(A)
    noise = A.shape[-1] * np.finfo(float).eps * np.abs(values).max(axis=-1, keepdims=True)
    inside = 1 / (np.maximum(values, 0) + penalty)
    inside = np.where(values > noise, inside, 1 / penalty if rounded is None else rounded)
    return (vectors * inside[..., None, :]) @ vectors.mT
