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

from imparo.dynamics.base_parameters import BaseParameters, vector
from imparo.dynamics.robot import Robot
from imparo.engine import Array
from imparo.persistence import persistent

# Rounding errors, and descriptions given to a few digits, do not make a body impossible.
_TOLERANCE = 1e-9
# Weight of the divergence from the start, as a share of the squared distance and at the least.
_PROXIMITY, _FLOOR = 1e-9, 1e-17
_STEPS = 150
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
    >>> from imparo.dynamics.base_parameters import base_parameters
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
    frames = [np.linalg.cholesky(P) for P in _repaired(first.reshape(-1, 10))]
    # In coordinates where every body begins as P = 1: x holds the upper triangles of X, with
    # P = F X Fᵀ, scaled so that their inner product is the trace's.
    C, target = (solve_triangular(root, part, lower=True) for part in (base.combinations, b))
    K = np.hstack([_carried(C[:, 10 * k : 10 * k + 10], F) for k, F in enumerate(frames)])
    factors = _followed(K, target)
    factors, found = _completed(K, target, factors)
    P = np.array([F @ L @ (F @ L).T for F, L in zip(frames, factors, strict=True)])
    parameters = np.concatenate([_parameters_of(matrix) for matrix in P])
    return parameters, 0.0 if found else float(np.linalg.norm(C @ parameters - target))


def _root_of_covariance(covariance: Any, r: int) -> Array:
    """Return the lower Cholesky factor of a covariance."""
    if covariance is None:
        return np.eye(r)
    V = np.asarray(covariance, float)
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


# All bodies.

_ROWS, _COLUMNS = np.triu_indices(4)
_WEIGHTS = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2.0))


def _flat(X: Array) -> Array:
    """Return symmetric matrices as vectors with the same inner products."""
    return X[..., _ROWS, _COLUMNS] * _WEIGHTS


def _square(x: Array) -> Array:
    """Undo :func:`_flat`."""
    X = np.empty((*x.shape[:-1], 4, 4))
    X[..., _ROWS, _COLUMNS] = X[..., _COLUMNS, _ROWS] = x / _WEIGHTS
    return X


_BASIS = _square(np.eye(10))


def _carried(K: Array, F: Array) -> Array:
    """Return K as a map of the flat X instead of the ten parameters of P = F X Fᵀ."""
    return K @ np.stack([_parameters_of(P) for P in F @ _BASIS @ F.T], axis=1)


def _local(K: Array, factors: Array) -> Array:
    """Return K as a map of the flat D, where X moves from L Lᵀ to L (1 + D) Lᵀ."""
    moved = _flat(np.einsum("kab,ibc,kdc->kiad", factors, _BASIS, factors))
    blocks = np.einsum("rkj,kij->rki", K.reshape(len(K), -1, 10), moved)
    return blocks.reshape(len(K), -1)


def _followed(K: Array, target: Array) -> Array:
    """Return factors L of the X = L Lᵀ that minimise ½ |K x − target|² + ε (tr X − log det X).

    At the minimum, with the slack S of X ⪰ 0: S X = ε 1 and Kᵀ (K x − target) + ε 1 = S. Both
    are solved together (a primal-dual method): unlike Newton's method in X alone, that takes
    few steps even where X must grow by orders of magnitude.
    """
    scale = float(np.linalg.norm(K, 2))
    K, target = K / scale, target / scale
    one = np.tile(np.eye(4), (K.shape[1] // 10, 1, 1))
    # From far inside, whatever the target: X and S = R Rᵀ larger than what it asks for.
    far = max(1.0, float(np.max(np.abs(target) / np.linalg.norm(K, axis=1))))
    slope = K.T @ (far * (K @ _flat(one).ravel()) - target)
    L, R = np.sqrt(far) * one, np.sqrt(max(1.0, float(np.linalg.norm(slope)))) * one
    floor = _FLOOR * max(1.0, float(target @ target))
    best, nearest = np.inf, L
    share = 0.1
    for _ in range(_STEPS):
        # Nesterov and Todd's scaling: G⁻¹ X G⁻ᵀ = Gᵀ S G = Λ, a diagonal matrix.
        U, size, Vt = np.linalg.svd(R.mT @ L)
        G, H = (F / np.sqrt(size)[:, None, :] for F in (L @ Vt.mT, R @ U))  # H = G⁻ᵀ
        A, rest = _local(K, G), target - K @ _flat(L @ L.mT).ravel()
        least = max(_PROXIMITY * float(rest @ rest), floor)
        centre = max(share * float(np.mean(size**2)), least)
        if rest @ rest < best:
            best, nearest = float(rest @ rest), L
        # (AᵀA + 1) dx = pull + Aᵀ rest, without the cancellation that large A would bring.
        pull = _flat(_diagonal(centre / size) - least * G.mT @ G).ravel()
        V, s, W = np.linalg.svd(A, full_matrices=False)
        inside = W @ pull
        dx = pull + W.T @ ((inside + s * (V.T @ rest)) / (1 + s * s) - inside)
        moves = _square(dx.reshape(-1, 10))
        moves = np.stack([moves, _diagonal(centre / size - size) - moves])
        roots = 1 / np.sqrt(size)
        moved = np.linalg.eigvalsh(roots[:, :, None] * moves * roots[:, None, :])
        step = min(1.0, 0.9 / max(float(-moved.min()), 1e-9))
        share = 0.1 if step > 0.8 else 1.0  # after a short step, back to the central path
        L, R = np.linalg.cholesky(_diagonal(size) + step * moves)
        L, R = G @ L, H @ R
        if centre == least and np.abs(moved).max() < 1e-2:  # the step has squared it
            return L
    return nearest


def _diagonal(values: Array) -> Array:
    return values[..., None] * np.eye(4)


def _completed(K: Array, target: Array, factors: Array) -> tuple[Array, bool]:
    """Return X ≻ 0 that meet the target, and True, if a small step leads to such."""
    rest = target - K @ _flat(factors @ factors.mT).ravel()
    A = _local(K, factors)
    d = np.linalg.lstsq(A, rest, rcond=None)[0]
    met = np.linalg.norm(A @ d - rest) <= 1e-12 * np.linalg.norm(target)
    if met and np.linalg.eigvalsh(_square(d.reshape(-1, 10))).min() > -0.5:
        return _moved(factors, d), True
    return factors, False


def _moved(factors: Array, d: Array) -> Array:
    return factors @ np.linalg.cholesky(np.eye(4) + _square(d.reshape(-1, 10)))
