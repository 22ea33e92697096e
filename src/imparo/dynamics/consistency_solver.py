"""Pseudo-inertia matrices of all bodies that best meet a linear target: a convex problem.

Bodies are given in coordinates in which each begins as X = 1, see
:func:`imparo.dynamics.consistency.nearest_consistent`.
"""

import numpy as np

from imparo.engine import Array

# Weight of the divergence from the start, as a share of the squared distance and at the least.
_PROXIMITY, _FLOOR = 1e-9, 1e-17
_STEPS = 150

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


# Symmetric matrices whose flat vectors are the axes.
BASIS = _square(np.eye(10))


def _local(K: Array, factors: Array) -> Array:
    """Return K as a map of the flat D, where X moves from L Lᵀ to L (1 + D) Lᵀ."""
    moved = _flat(np.einsum("kab,ibc,kdc->kiad", factors, BASIS, factors))
    blocks = np.einsum("rkj,kij->rki", K.reshape(len(K), -1, 10), moved)
    return blocks.reshape(len(K), -1)


def followed(K: Array, target: Array) -> Array:
    """Return factors L of the X = L Lᵀ that minimise ½ |K x − target|² + ε (tr X − log det X).

    At the minimum, with the slack S of X ⪰ 0: S X = ε 1 and Kᵀ (K x − target) + ε 1 = S. Both
    are solved together (a primal-dual method): unlike Newton's method in X alone, that takes
    few steps even where X must grow by orders of magnitude.

    Parameters
    ----------
    K : array of shape (r, 10 × bodies)
        A map of x, the flat X of all bodies.
    target : array of shape (r,)

    Returns
    -------
    array of shape (bodies, 4, 4)
    """
    one = np.tile(np.eye(4), (K.shape[1] // 10, 1, 1))
    scale = float(np.linalg.norm(K, 2))
    K, target = K / scale, target / scale
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


def completed(K: Array, target: Array, factors: Array) -> tuple[Array, bool]:
    """Return factors of X ≻ 0 that meet the target, and True, if a small step leads there.

    Parameters
    ----------
    K : array of shape (r, 10 × bodies)
    target : array of shape (r,)
    factors : array of shape (bodies, 4, 4)
        Of the X to step from.
    """
    rest = target - K @ _flat(factors @ factors.mT).ravel()
    A = _local(K, factors)
    d = np.linalg.lstsq(A, rest, rcond=None)[0]
    met = np.linalg.norm(A @ d - rest) <= 1e-12 * np.linalg.norm(target)
    move = _square(d.reshape(-1, 10))
    if met and np.linalg.eigvalsh(move).min() > -0.5:
        return factors @ np.linalg.cholesky(np.eye(4) + move), True
    return factors, False
