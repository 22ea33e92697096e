"""A Cholesky factor that leaves out, in order, what depends on what came before."""

from dataclasses import dataclass

import numpy as np

from imparo.engine import Array, engine_holding
from imparo.errors import NotPositiveDefiniteError

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
    engine = engine_holding(K)
    xp, own = engine.xp, K.diagonal()
    old = xp.sqrt(xp.square(T).sum(axis=0))
    size = xp.sqrt(xp.where(own > 0, own, xp.ones_like(own)))
    plain = len(T) == 0 and bool((size == 1).all())
    if not plain:
        K, cross = K / (size[:, None] * size), cross / (old[:, None] * size)
        T = T / old
    found = _all(T, cross, K, eps) or _some(T, cross, K, eps)
    factor = found.factor
    if not plain:
        kept = size[engine.asarray(found.kept)]
        factor = factor * xp.concatenate([old, kept])
    if not engine.resident:
        factor = np.asfortranarray(factor)
    return Extension(factor, found.kept, found.residuals, found.limits)


def _all(T: Array, cross: Array, K: Array, eps: float) -> Extension | None:
    """Return the factor of all centers, or None where one depends on others."""
    engine = engine_holding(K)
    p, k = cross.shape
    B = engine.solve_triangular(T, cross, transpose=True)
    S = K - engine.product(B.T, B) if p else K
    try:
        R = engine.cholesky(S, jitter=False)
    except NotPositiveDefiniteError:
        return None
    grown = engine.zeros((p + k, p + k), engine.type_of(K))
    grown[:p, :p], grown[:p, p:], grown[p:, p:] = T, B, R
    # Column j of T⁻¹ is (−w, 1)/T_jj.
    inverse = engine.invert_triangular(grown)[:, p:]
    residuals = engine.to_host(R.diagonal() ** 2)
    lengths = engine.to_host(engine.xp.square(inverse).sum(axis=0))
    limits = _CLEAR * eps * lengths * residuals
    if not (residuals > limits).all():
        return None
    return Extension(grown, np.arange(k), residuals, limits)


def _some(T: Array, cross: Array, K: Array, eps: float) -> Extension:
    """Decide on the centers one by one, in blocks that share their products."""
    engine, (p, k) = engine_holding(K), cross.shape
    grown = engine.zeros((p + k, p + k), engine.type_of(K))
    grown[:p, :p] = T
    residuals, limits = np.empty(k), np.empty(k)
    kept: list[int] = []
    for start in range(0, k, _BLOCK):
        block, q = slice(start, min(start + _BLOCK, k)), p + len(kept)
        factor = engine.copy(grown[:q, :q])
        rhs = engine.xp.vstack([cross[:, block], K[kept, block]])
        B = engine.solve_triangular(factor, rhs, transpose=True)
        W = engine.to_host(engine.solve_triangular(factor, B))
        S = engine.to_host(K[block, block] - engine.product(B.T, B))
        rows, chosen = _decide(S, W, eps, residuals[block], limits[block])
        new = slice(q, q + len(chosen))
        grown[:q, new] = B[:, engine.asarray(chosen)]
        grown[new, new] = engine.asarray(np.ascontiguousarray(rows[:, chosen]))
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
