"""Inertial parameters that bodies can have, and the nearest to those that none can.

A body of mass m, first moments h and moments of inertia I about the origin of its frame exists
if its mass density is nowhere negative. That is so if and only if its pseudo-inertia matrix is
positive semidefinite (P. Wensing, S. Kim and J.-J. Slotine, RA-L 2018)::

    P = ∫ (r, 1)(r, 1)ᵀ dm = [[Σ, h], [hᵀ, m]],   Σ = ½ tr(I) 1 − I

which says: the mass is positive, and the three principal moments of inertia about the centre of
mass are positive, each at most the sum of the other two.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from imparo.dynamics.base import BaseParameters, vector
from imparo.dynamics.consistency_solver import BASIS, completed, followed
from imparo.dynamics.robot import Robot
from imparo.engine import Array
from imparo.persistence import persistent

# Rounding errors, and descriptions given to a few digits, do not make a body impossible.
_TOLERANCE = 1e-9
# A body without mass begins as a ball of 10 cm and a hundredth of the heaviest, or of 1 kg.
_SMALL, _RADIUS = 0.01, 0.1


@persistent
@dataclass(frozen=True, eq=False)
class BodyConsistency:
    """Whether one body could exist.

    Attributes
    ----------
    name : str
    mass : float
        In kg.
    centre : array of shape (3,)
        Centre of mass in the frame of the body, in m; NaN where the mass is 0.
    moments : array of shape (3,)
        Principal moments of inertia about it, ascending, in kg m²; NaN where the mass is 0.
    ok : bool
    verdict : str
        In words.
    """

    name: str
    mass: float
    centre: Array
    moments: Array
    ok: bool
    verdict: str


@persistent
@dataclass(frozen=True, eq=False)
class Consistency:
    """Whether the bodies of a robot could exist; ``print`` shows a table.

    Attributes
    ----------
    bodies : tuple of BodyConsistency
    """

    bodies: tuple[BodyConsistency, ...]

    @property
    def ok(self) -> bool:
        """Whether all could."""
        return all(body.ok for body in self.bodies)

    def __str__(self) -> str:
        rows = [("body", "mass (kg)", "centre of mass (m)", "principal moments (kg m²)", "")]
        for body in self.bodies:
            centre = " ".join(f"{x:7.4f}" for x in body.centre)
            moments = " ".join(f"{x:10.3e}" for x in body.moments)
            rows.append((body.name, f"{body.mass:9.4f}", centre, moments, body.verdict))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines)


def check_consistency(robot: Robot, parameters: Any) -> Consistency:
    """Say of each body of a robot whether it could exist with these parameters.

    Parameters
    ----------
    robot : Robot
    parameters : array of shape (p,)
        Ten numbers a body, as in ``robot.parameters``.

    Returns
    -------
    Consistency

    Notes
    -----
    Least squares often give full vectors π that no bodies have, as the data leave most
    directions of π open. Ask :func:`nearest_consistent` whether any consistent π fits as well.

    Examples
    --------
    >>> from imparo.dynamics import Robot
    >>> from imparo.dynamics.consistency import check_consistency
    >>> robot = Robot.from_dh([(0, 0, 0, 0), (0.5, 0, 0, 0)])
    >>> link_1 = [2.0, 0.5, 0, 0, 0.01, 0, 0.2, 0, 0, 0.2]
    >>> link_2 = [1.0, 0.2, 0, 0, 0.01, 0, 0.05, 0, 0, 0.08]
    >>> report = check_consistency(robot, link_1 + link_2)
    >>> report.ok
    False
    >>> report.bodies[1].verdict
    'impossible: a principal moment exceeds the sum of the others, 0.04 > 0.01 + 0.01'
    """
    pi = vector(parameters, 10 * len(robot.bodies), "parameters")
    return Consistency(tuple(map(_judged, robot.bodies, pi.reshape(-1, 10))))


def nearest_consistent(
    robot: Robot,
    base: BaseParameters,
    base_values: Any,
    *,
    covariance: Any = None,
    start: Any = None,
) -> tuple[Array, float]:
    """Return bodies that exist and whose base parameters are closest to identified ones.

    It minimises the distance d(π) = √((C π − b)ᵀ V⁻¹ (C π − b)) over all π with P ⪰ 0 for each
    body. Where base parameters leave π open, it is the one closest to ``start``, in the
    divergence −log det(P P₀⁻¹) + tr(P P₀⁻¹), which does not depend on units or frames.

    Cost: 20 to 50 singular value decompositions of an (r, p) matrix; 10 ms for an arm, 0.5 s
    for a whole humanoid.

    Parameters
    ----------
    robot : Robot
    base : BaseParameters
        Of that robot.
    base_values : array of shape (r,)
        Identified base parameters b.
    covariance : array of shape (r, r), optional
        Their covariance V; the identity, in SI units, if None.
    start : array of shape (p,), optional
        Parameters to stay close to; those of the robot's description if None. Bodies in it that
        could not exist are replaced by small ones that could.

    Returns
    -------
    parameters : array of shape (p,)
        They are consistent.
    distance : float
        0 if the identified base parameters are those of bodies that exist. Otherwise how far
        the nearest such are, to about three digits: in standard deviations if a covariance is
        given. More than about √r is a sign of a wrong model or covariance.

    Examples
    --------
    >>> from imparo.dynamics import Robot
    >>> from imparo.dynamics.base import base_parameters
    >>> from imparo.dynamics.consistency import check_consistency, nearest_consistent
    >>> arm = Robot.from_dh([(0, 0, 0, 0), (0.5, 0, 0, 0)], gravity=(0, -9.81, 0))
    >>> base = base_parameters(arm)
    >>> identified = [1.0, 0.0, 0.8, 0.2, 0.0, 0.05]
    >>> parameters, distance = nearest_consistent(arm, base, identified)
    >>> distance, check_consistency(arm, parameters).ok
    (0.0, True)
    >>> identified[-1] = -0.01  # a negative moment of inertia about the second axis
    >>> parameters, distance = nearest_consistent(arm, base, identified)
    >>> round(distance, 3), check_consistency(arm, parameters).ok
    (0.022, True)
    """
    p = 10 * len(robot.bodies)
    if base.combinations.shape[1] != p:
        raise ValueError(
            f"the base parameters are of {base.combinations.shape[1]} parameters and the robot "
            f"has {p}; give those of this robot"
        )
    b = vector(base_values, base.rank, "base_values")
    root = _root_of_covariance(covariance, base.rank)
    first = vector(robot.parameters if start is None else start, p, "start")
    bodies = _repaired(first.reshape(-1, 10))
    if not base.rank:  # no output depends on any parameter
        return np.concatenate([_parameters_of(P) for P in bodies]), 0.0
    frames = [np.linalg.cholesky(P) for P in bodies]
    # In coordinates where every body begins as P = 1: x holds the upper triangles of X, with
    # P = F X Fᵀ, scaled so that their inner product is the trace's.
    C, target = (solve_triangular(root, part, lower=True) for part in (base.combinations, b))
    K = np.hstack([_carried(C[:, 10 * k : 10 * k + 10], F) for k, F in enumerate(frames)])
    factors, found = completed(K, target, followed(K, target))
    P = np.array([F @ L @ (F @ L).T for F, L in zip(frames, factors, strict=True)])
    parameters = np.concatenate([_parameters_of(matrix) for matrix in P])
    return parameters, 0.0 if found else float(np.linalg.norm(C @ parameters - target))


def _root_of_covariance(covariance: Any, r: int) -> Array:
    """Return the lower Cholesky factor of a covariance."""
    if covariance is None:
        return np.eye(r)
    try:
        V = np.asarray(covariance, float)
    except (TypeError, ValueError):
        V = np.empty(0)
    if V.shape != (r, r) or not np.isfinite(V).all():
        raise ValueError(
            f"covariance has the shape {V.shape}; finite numbers of the shape {(r, r)} were "
            "expected, a row for each base parameter"
        )
    try:
        return np.asarray(np.linalg.cholesky((V + V.T) / 2))
    except np.linalg.LinAlgError:
        raise ValueError(
            "covariance is not positive definite; add the variance of what is not known to its "
            "diagonal"
        ) from None


# One body.


def pseudo_inertia(ten: Any) -> Array:
    """Return P of ten parameters, shape (..., 10) to (..., 4, 4).

    Parameters
    ----------
    ten : array of shape (..., 10)
        m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
    """
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = np.moveaxis(np.asarray(ten, float), -1, 0)
    half = (xx + yy + zz) / 2
    rows = [
        [half - xx, -xy, -xz, hx],
        [-xy, half - yy, -yz, hy],
        [-xz, -yz, half - zz, hz],
        [hx, hy, hz, m],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def _parameters_of(P: Array) -> Array:
    """Return the ten parameters of a pseudo-inertia matrix."""
    S, trace = P[:3, :3], np.trace(P[:3, :3])
    upper = (trace - S[0, 0], -S[0, 1], trace - S[1, 1], -S[0, 2], -S[1, 2], trace - S[2, 2])
    return np.array([P[3, 3], *P[:3, 3], *upper])


def _judged(name: str, ten: Array) -> BodyConsistency:
    nan = np.full(3, np.nan)
    mass = float(ten[0])
    if not ten.any():
        return BodyConsistency(name, mass, nan, nan, True, "possible: it has no mass at all")
    if mass == 0:
        verdict = "impossible: it has moments, but no mass"
        return BodyConsistency(name, mass, nan, nan, False, verdict)
    P = pseudo_inertia(ten)
    centre = P[:3, 3] / mass
    spread = np.linalg.eigvalsh(P[:3, :3] - mass * np.outer(centre, centre))
    moments = np.sort(spread.sum() - spread)
    a, b, c = moments
    # Moments about the centre are a difference: its error is that of its larger part.
    slack = _TOLERANCE * float(np.abs(np.diagonal(P)[:3]).sum())
    if mass < 0:
        verdict = f"impossible: its mass is negative, {mass:.3g} kg"
    elif a < -slack:
        verdict = f"impossible: a principal moment is negative, {a:.3g}"
    elif c > a + b + 2 * slack:
        verdict = (
            "impossible: a principal moment exceeds the sum of the others, "
            f"{c:.3g} > {a:.3g} + {b:.3g}"
        )
    elif c >= a + b - 2 * slack:
        verdict = "possible, as a limit: flat, thin or a point"
    else:
        verdict = "possible"
    ok = verdict.startswith("possible")
    return BodyConsistency(name, mass, centre, moments, ok, verdict)


def _repaired(tens: Array) -> Array:
    """Return pseudo-inertia matrices of bodies that exist, the same where they do."""
    heaviest = float(tens[:, 0].max())
    ball = (_SMALL * heaviest if heaviest > 0 else 1.0) * np.diag([_RADIUS**2] * 3 + [1.0])
    matrices = pseudo_inertia(tens)
    for k, P in enumerate(matrices):
        mass = float(P[3, 3])
        if mass <= 0:  # nothing else of such a body says much
            matrices[k] = ball
            continue
        seat = np.append(P[:3, 3] / mass, 1.0)
        values, axes = np.linalg.eigh((P - mass * np.outer(seat, seat))[:3, :3])
        size = float(values[-1])
        # A point is as wide as what has no mass; others, at least a hundredth of their length.
        thick = values.clip(1e-4 * size if size > 1e-6 * mass else mass * _RADIUS**2)
        matrices[k, :3, :3] += (axes * (thick - values)) @ axes.T
    return matrices


def _carried(K: Array, F: Array) -> Array:
    """Return K as a map of the flat X instead of the ten parameters of P = F X Fᵀ."""
    return K @ np.stack([_parameters_of(P) for P in F @ BASIS @ F.T], axis=1)
