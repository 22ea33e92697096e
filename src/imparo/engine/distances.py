"""Squared distances as a matrix product, without its cancellation.

‖x − z‖² = ‖x‖² + ‖z‖² − 2xᵀz is one matrix product, but where x ≈ z the three terms
cancel: the error is about ε(‖x‖² + ‖z‖²) however small the distance. So the data
are centered first, and the entries that are small against that error are computed
again from the differences. In float32, blocks with many such entries are computed
in float64 instead, and in float64 by differences throughout.
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
_PAIRS_AT_ONCE = 2**16

Product = Callable[[Array, Array], Array]


def squared_distances(X: Any, Z: Any, width: float, product: Product) -> Array:
    """Return ‖x − z‖²/width² for every pair of rows, shape (n, m)."""
    if sparse.issparse(X) or sparse.issparse(Z):
        return _sparse_squared_distances(sparse.csr_array(X), sparse.csr_array(Z), width)
    dtype = np.result_type(X, Z, np.float32)
    same = X is Z
    center = Z.mean(axis=0, dtype=np.float64)
    Z = ((Z - center) / width).astype(dtype, copy=False)
    X = Z if same else ((X - center) / width).astype(dtype, copy=False)
    return _dense_squared_distances(X, Z, product)


def _dense_squared_distances(X: Array, Z: Array, product: Product) -> Array:
    dtype = X.dtype
    xx, zz = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Z, Z)
    # One product instead of three passes over the n × m result:
    # [−2X, ‖x‖², 1] [Z, 1, ‖z‖²]ᵀ.
    left = np.column_stack([-2 * X, xx, np.ones_like(xx)])
    right = np.column_stack([Z, np.ones_like(zz), zz])
    S = product(left, right.T)
    del left, right
    share = RECOMPUTE_BELOW[dtype]
    if S.size:
        suspects = np.flatnonzero(share * (xx[:, None] + zz.max()) > S)
        if len(suspects) > max(MANY * S.size, 4 * len(X)):
            if dtype == np.float32:
                wide = _dense_squared_distances(X.astype(float), Z.astype(float), product)
                return wide.astype(np.float32)
            return cdist(X, Z, "sqeuclidean")
        _recompute(S, suspects, lambda i, j: X[i] - Z[j])
    return np.maximum(S, 0, out=S)


def _recompute(
    S: Array, suspects: Array, difference: Callable[[Array, Array], Array]
) -> None:
    flat = S.reshape(-1)
    for start in range(0, len(suspects), _PAIRS_AT_ONCE):
        some = suspects[start : start + _PAIRS_AT_ONCE]
        D = difference(*np.divmod(some, S.shape[1])).astype(np.float64, copy=False)
        flat[some] = np.einsum("ij,ij->i", D, D)


def _sparse_squared_distances(X: Any, Z: Any, width: float) -> Array:
    dtype = np.result_type(X.dtype, Z.dtype, np.float32)
    X, Z = X.astype(dtype) / dtype.type(width), Z.astype(dtype) / dtype.type(width)
    xx, zz = X.multiply(X).sum(axis=1), Z.multiply(Z).sum(axis=1)
    S: Array = np.ascontiguousarray((X @ Z.T).toarray())
    S *= -2
    S += np.asarray(xx).reshape(-1, 1)
    S += np.asarray(zz).reshape(1, -1)
    if S.size:
        suspects = np.flatnonzero(
            RECOMPUTE_BELOW[dtype] * (xx.reshape(-1, 1) + zz.reshape(1, -1)) > S
        )
        _recompute(S, suspects, lambda i, j: (X[i] - Z[j]).toarray())
    return np.maximum(S, 0, out=S)
