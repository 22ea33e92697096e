"""Predictions in blocks of rows: by kernel values or features, here or on a device."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from imparo.engine import (
    CACHED_COLUMNS,
    Array,
    Engine,
    default_engine,
    row_blocks,
    rows_within,
    with_smaller_blocks,
)
from imparo.engine.sending import sent_ahead
from imparo.features import RandomMap
from imparo.kernels import Kernel


def predict_in_blocks(
    X: Any, features: Callable[[Any], Array], coef: Array, memory: int
) -> Array:
    """Return features(X)·coef, in blocks of rows within ``memory``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    features : callable
        From a block of b rows to b rows of p features, or kernel values.
    coef : array of shape (p, T)
    memory : int

    Returns
    -------
    array of shape (n, T)
    """
    product = default_engine().product
    F = np.empty((X.shape[0], coef.shape[1]), np.result_type(coef, np.float32))
    if sparse.issparse(X):
        X = X.tocsr()
    per_row = 4 * coef.itemsize * max(1, coef.shape[0])
    block = rows_within(per_row, memory, "the prediction of one row")
    for rows in row_blocks(X.shape[0], block):
        F[rows] = product(features(X[rows]), coef)
    return F


def predict_by_points(kernel: Kernel, X: Any, points: Any, coef: Array, memory: int) -> Array:
    """Return K(X, points)·coef, in blocks of rows and of points that stay in the cache.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse matrix of shape (n, d)
    points : array or csr matrix of shape (p, d)
    coef : array of shape (p, T)
    memory : int

    Returns
    -------
    array of shape (n, T)
    """
    engine = default_engine()
    dense = not sparse.issparse(X) and not sparse.issparse(points)
    if engine.resident and kernel.portable and dense:
        there = {e: e.asarray(points, coef.dtype) for e in engine.replicas}
        return predict_there(lambda rows, e: kernel(rows, there[e], engine=e), X, coef, memory)
    F = np.zeros((X.shape[0], coef.shape[1]), np.result_type(coef, np.float32))
    for some in row_blocks(points.shape[0], CACHED_COLUMNS):
        values = partial(_values, kernel, points[some])
        F += predict_in_blocks(X, values, coef[some], memory)
    return F


def predict_by_map(map: RandomMap, X: Any, coef: Array, memory: int) -> Array:
    """Return the features of a map times coefficients, in blocks of rows.

    Parameters
    ----------
    map : RandomMap
    X : array or sparse matrix of shape (n, d)
    coef : array of shape (p, T)
    memory : int

    Returns
    -------
    array of shape (n, T)
    """
    if default_engine().resident and map.portable and not sparse.issparse(X):
        return predict_there(lambda rows, _: map.transform(rows), X, coef, memory)
    return predict_in_blocks(X, map.transform, coef, memory)


def predict_there(
    features: Callable[[Any, Engine], Array], X: Array, coef: Array, memory: Any
) -> Array:
    """Return features(X)·coef from the devices of the engine at work, block by block.

    Parameters
    ----------
    features : callable
        From rows on the device of an engine, and that engine, to features there.
    X : array of shape (n, d)
    coef : array of shape (p, T)
    memory : int

    Returns
    -------
    array of shape (n, T)
    """
    engine, dtype = default_engine(), np.result_type(coef, np.float32)
    weights = {e: e.asarray(coef, dtype) for e in engine.replicas}
    per_row = 4 * 8 * max(1, coef.shape[0]) + 4 * 8 * X.shape[1]
    room = min(memory // 4, engine.block_bytes)

    def whole(size: int) -> Array:
        F = np.empty((X.shape[0], coef.shape[1]), dtype)
        blocks = ((rows, X[rows]) for rows in row_blocks(X.shape[0], size))
        for rows, block, e in sent_ahead(blocks, engine.replicas):
            F[rows] = e.to_host(e.product(features(block, e), weights[e]))
        return F

    return with_smaller_blocks(whole, max(1, room // per_row), engine)


def _values(kernel: Kernel, points: Any, rows: Any) -> Array:
    return kernel(rows, points)
