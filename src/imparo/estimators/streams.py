"""From what the user hands in, arrays or blocks, to a source of rows, outputs and weights."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import _check_y, validate_data

from imparo.cluster import find_client, is_dask
from imparo.data.sources import ArraySource, BlockSource, Source, TensorSource, opener_of
from imparo.engine import Array, engine_of, is_tensor
from imparo.estimators.cluster_reading import local_blocks, read_cluster_rows
from imparo.estimators.devices import on_host
from imparo.estimators.inputs import check_dtype, check_numbers, check_rows

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def read_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, **checks: Any
) -> tuple[Source, Array, Any]:
    """Return a source of checked rows, the outputs and the weights.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``dtype`` is used, and its ``n_features_in_`` set.
    X : array, sparse matrix, data frame, memory map, collection of Dask, or blocks
        Blocks, where ``y`` is left out: a function that returns an iterator over pairs
        (X, y) or triples (X, y, sample_weight), or an iterable to be read many times.
    y : array or None
    sample_weight : array or None
    **checks
        ``multi_output`` and ``y_numeric``, as for scikit-learn's ``check_X_y``.

    Returns
    -------
    source : Source
    y : array of shape (n,) or (n, T)
    sample_weight : array or None
    """
    wanted = check_dtype(estimator.dtype)
    cluster = getattr(estimator, "cluster", None)
    if is_dask(X) or cluster is not None:
        client = find_client(cluster) if hasattr(estimator, "cluster") else None
        if client is not None:
            return read_cluster_rows(estimator, client, X, y, sample_weight, wanted, checks)
    if is_dask(X):
        return _read_here(estimator, X, y, sample_weight, checks)
    if y is None and are_blocks(X):
        if sample_weight is not None:
            raise ValueError(
                "weights of rows that come in blocks must come with them, as triples "
                "(X, y, sample_weight)"
            )
        return _scan(estimator, X, wanted, checks)
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; "
            "give y, or blocks of pairs (X, y)"
        )
    if is_tensor(X):
        tensor_source = _tensor_rows(estimator, X, wanted)
        if tensor_source is not None:
            y = _check_y(y, **checks, estimator=estimator)
            check_consistent_length(X, y)
            return tensor_source, y, sample_weight
        X = on_host(X)
    mapped = isinstance(X, np.memmap)
    # A memory map is checked block by block as it is read, not in a pass of its own.
    X, y = validate_data(
        estimator, check_rows(X), y, accept_sparse="csr", dtype="numeric",
        ensure_all_finite=not mapped, **checks,
    )  # fmt: skip
    return ArraySource(X, _type_for(X.dtype, wanted), check=mapped), y, sample_weight


def _read_here(
    estimator: Any, X: Any, y: Any, sample_weight: Any, checks: dict[str, Any]
) -> tuple[Source, Array, Any]:
    """Return the rows of a collection of Dask, read in this process one partition at a time."""
    names, blocks = local_blocks(X, y, sample_weight)
    found = read_rows(estimator, blocks, None, None, **checks)
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.asarray(names, object)
    return found


def _tensor_rows(estimator: Any, X: Any, wanted: Any) -> Source | None:
    """Return a source of a tensor that stays on its GPU; None for one in main memory."""
    if X.device.type == "cpu":
        return None
    engine: Any = engine_of(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"Expected 2D array with at least one row and one column, got a tensor of shape "
            f"{tuple(X.shape)} instead"
        )
    if not bool(engine.xp.isfinite(X).all()):
        raise ValueError(
            "X contains NaN or infinity and must hold finite numbers; impute or drop such rows"
        )
    known = X.dtype in (engine.xp.float32, engine.xp.float64)
    dtype = engine.type_of(X) if known else np.dtype(np.float64)
    estimator.n_features_in_ = X.shape[1]
    vars(estimator).pop("feature_names_in_", None)
    return TensorSource(X, _type_for(dtype, wanted))


def are_blocks(X: Any) -> bool:
    """Return whether rows come in blocks."""
    if callable(X) or isinstance(X, Iterator):
        return True
    if hasattr(X, "shape") or not isinstance(X, Iterable) or isinstance(X, str | bytes):
        return False
    if isinstance(X, list | tuple):
        return len(X) > 0 and isinstance(X[0], tuple)
    return True


def _type_for(given: np.dtype[Any], wanted: Any) -> np.dtype[Any]:
    if isinstance(wanted, list):
        return given if given in _FLOATS else np.dtype(np.float64)
    return wanted


def _scan(
    estimator: Any, blocks: Any, wanted: Any, checks: dict[str, Any]
) -> tuple[Source, Array, Any]:
    """Read all blocks once: count rows, keep outputs and weights."""
    opener = opener_of(blocks)
    outputs: list[Array] = []
    weights, n, columns, dtype = [], 0, None, None
    for item in opener():
        X, y, weight = _taken_apart(item)
        X = check_array(
            check_rows(X), accept_sparse="csr", dtype="numeric", ensure_min_samples=0
        )
        if columns is None:
            columns, dtype = X.shape[1], _type_for(X.dtype, wanted)
        elif dtype is not None and X.shape[0]:
            dtype = np.promote_types(dtype, _type_for(X.dtype, wanted))
        if X.shape[1] != columns:
            raise ValueError(
                f"a block has {X.shape[1]} columns and the first had {columns}; every block "
                "must have the same columns"
            )
        y = check_numbers(y) if checks.get("y_numeric") else y
        y = _check_y(y, **checks) if X.shape[0] else np.asarray(y)
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"a block has {X.shape[0]} rows and {y.shape[0]} outputs")
        if X.shape[0]:
            if outputs and y.shape[1:] != outputs[0].shape[1:]:
                raise ValueError(
                    f"a block has outputs of shape {y.shape} and the first of "
                    f"{outputs[0].shape}; every block must have the same outputs"
                )
            # Copies: who gives the block may fill the same memory with the next one.
            outputs.append(_copied(y))
            weights.append(
                np.ones(y.shape[0]) if weight is None else np.array(on_host(weight), float)
            )
            if weights[-1].shape != (y.shape[0],):
                raise ValueError(
                    f"a block has {y.shape[0]} rows and weights of shape {weights[-1].shape}; "
                    "give one weight for every row"
                )
        n += X.shape[0]
    if columns is None or n == 0:
        raise ValueError("the blocks hold no row; give at least one pair (X, y) with rows")
    assert dtype is not None
    estimator.n_features_in_ = columns
    vars(estimator).pop("feature_names_in_", None)
    source = BlockSource(lambda: _matrices(opener()), (n, columns), dtype)
    return source, np.concatenate(outputs), np.concatenate(weights)


def _copied(y: Any) -> Array:
    return y.toarray() if sparse.issparse(y) else y.copy()


def _taken_apart(item: Any) -> tuple[Any, Any, Any]:
    if not isinstance(item, list | tuple) or len(item) not in (2, 3):
        raise ValueError(
            "blocks must be pairs (X, y) or triples (X, y, sample_weight), not "
            f"{type(item).__name__}"
            + (f" of {len(item)}" if isinstance(item, list | tuple) else "")
        )
    return (*item, None) if len(item) == 2 else tuple(item)


def _matrices(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        X = check_array(
            item[0], accept_sparse="csr", dtype="numeric", ensure_min_samples=0,
            ensure_all_finite=False,
        )  # fmt: skip
        if X.shape[0]:
            yield X
