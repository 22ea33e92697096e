"""Predictions of collections of Dask: collections again, computed when someone asks."""

import copy
import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from imparo.cluster import find_client, has_futures, is_dask, is_dask_array, is_delayed, task
from imparo.extras import require

# What a model has that predictions do not need: m² numbers, and the record of its fit.
_OF_THE_FIT = ("statistics_", "path_", "record_", "_iterates", "_intercepts")


def lazy(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of an estimator give a collection of Dask for one.

    Parameters
    ----------
    method : callable
        Of an estimator and rows, giving an array with a row for each.

    Returns
    -------
    callable
    """

    @functools.wraps(method)
    def call(self: Any, X: Any) -> Any:
        return _lazily(self, method.__name__, X) if is_dask(X) else method(self, X)

    return call


def _lazily(estimator: Any, name: str, X: Any) -> Any:
    """Return the predictions of a collection: an array of Dask, or a list for a list."""
    if is_dask_array(X) and X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a dask array of {X.ndim} dimensions instead")
    dask = require("dask", "dask")
    model = dask.delayed(_Predictor(_slim(estimator), name), traverse=False, pure=False)
    if is_delayed(X):
        return task(_called, name, model, X)
    if isinstance(X, list | tuple):
        return [task(_called, name, model, rows) for rows in X]
    da = require("dask.array", "dask")
    if is_dask_array(X) and X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    parts = np.ravel(X.to_delayed(optimize_graph=not has_futures(X)))
    sizes = X.chunks[0] if is_dask_array(X) else [np.nan] * len(parts)
    meta = getattr(_slim(estimator), name)(_one_row(X))
    found = [
        da.from_delayed(task(_called, name, model, rows), (size, *meta.shape[1:]), meta.dtype)
        for rows, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(found, allow_unknown_chunksizes=True)


def _slim(estimator: Any) -> Any:
    """Return the model as workers need it to predict."""
    same = copy.copy(estimator)
    for attribute in _OF_THE_FIT:
        vars(same).pop(attribute, None)
    if hasattr(same, "cluster"):
        same.cluster = None
    same.progress = False
    return same


def _one_row(X: Any) -> Any:
    """Return a row as those of a collection are, to see what comes of it."""
    if hasattr(X, "_meta_nonempty"):
        return X._meta_nonempty
    return np.zeros((1, X.shape[1]), X.dtype)


class _Predictor:
    """A model and the method to call, as they travel to workers."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.name = model, name


def _called(predictor: _Predictor, rows: Any) -> Any:
    if rows.shape[0] == 0:
        few = getattr(predictor.model, predictor.name)(
            np.zeros((1, rows.shape[1])) if isinstance(rows, np.ndarray) else _padded(rows)
        )
        return few[:0]
    return getattr(predictor.model, predictor.name)(rows)


def _padded(rows: Any) -> Any:
    """Return one row of a frame or sparse matrix that has none."""
    if hasattr(rows, "reindex"):
        return rows.reindex([0]).fillna(0)
    return type(rows)(np.zeros((1, rows.shape[1])))


def gathered(values: Any, cluster: Any = None) -> Any:
    """Return a collection of Dask as an array, and anything else as it is.

    Parameters
    ----------
    values : collection or object
    cluster : Client, str or None
        Who computes; as for the estimators.

    Returns
    -------
    array or object
    """
    if not is_dask(values):
        return values
    dask, client = require("dask", "dask"), find_client(cluster)
    with nullcontext() if client is None else client.as_current():
        if isinstance(values, list | tuple):
            return np.concatenate([np.asarray(part) for part in dask.compute(*values)])
        return np.asarray(dask.compute(values)[0])
