"""Squared distances as a matrix product, without its cancellation.

‖x − z‖² = ‖x‖² + ‖z‖² − 2xᵀz is one matrix product, but where x ≈ z the three terms
cancel: the error is about ε(‖x‖² + ‖z‖²) however small the distance. So the data
are centered first, and the entries that are small against that error are computed
again from the differences of the rows as they were given: centering rounds them. In
float32, blocks with many such entries are computed in float64 instead, and in
float64 by differences throughout.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from imparo.engine.base import Array

# An entry is recomputed where it is below this share of ‖x‖² + ‖z‖²; its relative
# error is then at most about ε/share.
RECOMPUTE_BELOW = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
# Above this share of recomputed entries another route for the whole block is faster.
MANY = 0.02
# Numbers in the differences that are held at once, 32 MB in float64.
_NUMBERS_AT_ONCE = 2**22

Product = Callable[[Array, Array], Array]


def squared_distances(
    X: Any, Z: Any, width: float, product: Product, *, negative: bool = False
) -> Array:
    """Return ‖x − z‖²/width², or −‖x − z‖²/width², for every pair of rows, shape (n, m)."""
    sign = -1.0 if negative else 1.0
    if sparse.issparse(X) or sparse.issparse(Z):
        found = _sparse_squared_distances(sparse.csr_array(X), sparse.csr_array(Z), width)
        return np.negative(found, out=found) if negative else found
    dtype = np.result_type(X, Z, np.float32)
    if X.shape[0] == 0 or Z.shape[0] == 0:
        return np.zeros((X.shape[0], Z.shape[0]), dtype)
    S = _expanded(X, Z, width, dtype, product, sign)
    if S is None and dtype == np.float32:
        S = _expanded(X, Z, width, np.dtype(np.float64), product, sign)
    if S is None:
        S = cdist(X / np.float64(width), Z / np.float64(width), "sqeuclidean")
        S *= sign
    return S.astype(dtype, copy=False)


def _expanded(
    X: Array, Z: Array, width: float, dtype: np.dtype[Any], product: Product, sign: float
) -> Array | None:
    """Return ± the distances by one product in ``dtype``, or None where too many cancel."""
    center = Z.mean(axis=0, dtype=np.float64)
    right = ((Z - center) / width).astype(dtype, copy=False)
    left = right if X is Z else ((X - center) / width).astype(dtype, copy=False)
    xx, zz = np.einsum("ij,ij->i", left, left), np.einsum("ij,ij->i", right, right)
    # One product instead of three passes over the n × m result:
    # [−2X, ‖x‖², 1] [Z, 1, ‖z‖²]ᵀ.
    left = np.column_stack([-2 * sign * left, sign * xx, np.full_like(xx, sign)])
    right = np.column_stack([right, np.ones_like(zz), zz])
    S = product(left, right.T)
    del left, right
    # A look for the least of every row is cheaper than one at every entry, and most rows
    # have no suspect.
    limits = RECOMPUTE_BELOW[dtype] * (xx + zz.max())
    least = S.min(axis=1) if sign > 0 else -S.max(axis=1)
    rows = np.flatnonzero(limits > least)
    close = limits[rows, None] > sign * S[rows]
    if np.count_nonzero(close) > max(MANY * S.size, 4 * len(X)):
        return None
    i, j = np.nonzero(close)
    suspects = rows[i] * S.shape[1] + j
    flat = S.reshape(-1)
    for some in _batches(suspects, X.shape[1]):
        i, j = np.divmod(some, S.shape[1])
        D = (X[i].astype(np.float64) - Z[j]) / width
        flat[some] = sign * np.einsum("ij,ij->i", D, D)
    return S


def _batches(suspects: Array, n_columns: int) -> list[Array]:
    pairs = max(1, _NUMBERS_AT_ONCE // max(1, n_columns))
    return [suspects[start : start + pairs] for start in range(0, len(suspects), pairs)]


def _sparse_squared_distances(X: Any, Z: Any, width: float) -> Array:
    dtype = np.result_type(X.dtype, Z.dtype, np.float32)
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    left, right = X / width, Z / width
    xx = left.multiply(left).sum(axis=1)[:, None]
    zz = right.multiply(right).sum(axis=1)[None, :]
    S: Array = np.ascontiguousarray((left @ right.T).toarray())
    S *= -2
    S += xx
    S += zz
    flat = S.reshape(-1)
    suspects = np.flatnonzero(RECOMPUTE_BELOW[np.dtype(np.float64)] * (xx + zz) > S)
    # A difference of two sparse rows is sparse: as many numbers as the average row has.
    for some in _batches(suspects, 2 * (X.nnz + Z.nnz) // max(1, X.shape[0] + Z.shape[0])):
        i, j = np.divmod(some, S.shape[1])
        D = (X[i] - Z[j]) / width
        flat[some] = D.multiply(D).sum(axis=1)
    return np.maximum(S, 0, out=S).astype(dtype, copy=False)
