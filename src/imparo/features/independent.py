"""A Cholesky factor that leaves out, in order, what depends on what came before."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from imparo.engine import Array, default_engine

# Columns that are decided on together.
_BLOCK = 64
# A residual counts if it is so many times its own rounding error.
_CLEAR = 8


@dataclass(frozen=True)
class Extension:
    """A factor with new columns, and what became of every new center.

    Attributes
    ----------
    factor : array of shape (p + r, p + r)
        Upper triangular; its leading block is the factor that was extended.
    kept : array of shape (r,)
        Positions of the new centers that are kept.
    residuals : array of shape (k,)
        What is left of each K_jj beside the centers kept before it, relative to K_jj.
    limits : array of shape (k,)
        What the residuals are known to, below which a center is left out.
    """

    factor: Array
    kept: Array
    residuals: Array
    limits: Array


def extend_factor(T: Array, cross: Array, K: Array, eps: float) -> Extension:
    """Extend T, the factor of some centers, by those new ones that are independent of them.

    The residual K_jj − ‖T⁻ᵀk_j‖² of center j is the squared distance of K(x_j, ·) to the
    span of the kept ones before it. With w = T⁻¹T⁻ᵀk_j, the coefficients of its
    projection, it is known to about ε(1 + ‖w‖²)K_jj, and the center is kept where it is
    clearly above that: then no column of T⁻¹ is longer than 1/√(8ε), and features K T⁻¹
    are exact to some √ε. The order of the centers is not changed, so the leading block of
    the result belongs to the first centers alone. Cost 2(p + k)³/3 less 2p³/3 for k new
    centers.

    Parameters
    ----------
    T : array of shape (p, p)
        Upper triangular.
    cross : array of shape (p, k)
        Kernel between the old centers and the new ones.
    K : array of shape (k, k)
        Kernel between the new ones.
    eps : float
        Rounding error of the features.

    Returns
    -------
    Extension
    """
    # For a unit diagonal, which makes the test independent of the scale of the kernel.
    old = np.sqrt(np.square(T).sum(axis=0))
    size = np.sqrt(np.where(np.diagonal(K) > 0, np.diagonal(K), 1.0))
    plain = len(T) == 0 and bool((size == 1).all())
    if not plain:
        K, cross = K / (size[:, None] * size), cross / (old[:, None] * size)
        T = T / old
    found = _all(T, cross, K, eps) or _some(T, cross, K, eps)
    factor = found.factor
    if not plain:
        factor = factor * np.concatenate([old, size[found.kept]])
    return Extension(np.asfortranarray(factor), found.kept, found.residuals, found.limits)


def _all(T: Array, cross: Array, K: Array, eps: float) -> Extension | None:
    """Return the factor of all centers, or None where one depends on others."""
    engine = default_engine()
    (p, k), potrf = cross.shape, lapack.get_lapack_funcs("potrf", (K,))
    S = K.T  # of a symmetric matrix the same, in the order that LAPACK wants
    B = engine.solve_triangular(T, cross, transpose=True)
    if p:
        S = S - engine.product(B.T, B)
    R, info = potrf(S, clean=1)
    if info:
        return None
    grown = engine.zeros((p + k, p + k), K.dtype)
    grown[:p, :p], grown[:p, p:], grown[p:, p:] = T, B, R
    # Column j of T⁻¹ is (−w, 1)/T_jj.
    inverse = engine.invert_triangular(grown)[:, p:]
    residuals = np.square(np.diagonal(R))
    limits = _CLEAR * eps * np.square(inverse).sum(axis=0) * residuals
    if not (residuals > limits).all():
        return None
    return Extension(grown, np.arange(k), residuals, limits)


def _some(T: Array, cross: Array, K: Array, eps: float) -> Extension:
    """Decide on the centers one by one, in blocks that share their products."""
    engine, (p, k) = default_engine(), cross.shape
    grown = engine.zeros((p + k, p + k), K.dtype)
    grown[:p, :p] = T
    residuals, limits = np.empty(k), np.empty(k)
    kept: list[int] = []
    for start in range(0, k, _BLOCK):
        block, q = slice(start, min(start + _BLOCK, k)), p + len(kept)
        factor = np.asfortranarray(grown[:q, :q])
        rhs = np.vstack([cross[:, block], K[kept, block]])
        B = engine.solve_triangular(factor, rhs, transpose=True)
        W = engine.solve_triangular(factor, B)
        S = K[block, block] - engine.product(B.T, B)
        rows, chosen = _decide(S, W, eps, residuals[block], limits[block])
        new = slice(q, q + len(chosen))
        grown[:q, new], grown[new, new] = B[:, chosen], rows[:, chosen]
        kept += (start + chosen).tolist()
    q = p + len(kept)
    return Extension(grown[:q, :q], np.array(kept, np.intp), residuals, limits)


def _decide(
    S: Array, W: Array, eps: float, residuals: Array, limits: Array
) -> tuple[Array, Array]:
    """Return the rows of the factor of the independent part of S, and its positions.

    ``W`` holds the coefficients on earlier centers; ``residuals`` and ``limits`` are
    filled in.
    """
    S, size, q = S.copy(), len(S), len(W)
    weights = np.vstack([W, np.zeros((size, size))])
    rows = np.zeros((size, size))
    chosen: list[int] = []
    for j in range(size):
        residuals[j] = S[j, j]
        limits[j] = _CLEAR * eps * (1 + weights[:, j] @ weights[:, j])
        if not residuals[j] > limits[j]:
            continue
        share = S[j, j + 1 :] / S[j, j]
        rows[len(chosen), j:] = S[j, j:] / np.sqrt(S[j, j])
        S[j + 1 :, j + 1 :] -= np.outer(S[j, j + 1 :], share)
        weights[:, j + 1 :] -= np.outer(weights[:, j], share)
        weights[q + j, j + 1 :] = share
        chosen.append(j)
    return rows[: len(chosen)], np.array(chosen, np.intp)
