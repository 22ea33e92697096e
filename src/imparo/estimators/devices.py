"""Where an estimator computes: its ``device``, tensors in and out, and what if a GPU fails."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from imparo.cluster import find_client, is_dask
from imparo.engine import (
    Array,
    Engine,
    choose_engine,
    computing_on,
    default_engine,
    host_engine,
    is_tensor,
    told_of_failures,
)
from imparo.errors import DeviceError, DeviceWarning, MemoryBudgetError, warn_user


def fit_on_device(estimator: Any, X: Any, work: Callable[[], Any]) -> Any:
    """Do the work of a fit where the estimator computes, and say where that was.

    With ``device="auto"`` a GPU that is out of memory or fails is left for the CPU, with a
    warning.

    Parameters
    ----------
    estimator : estimator
        With ``device``; gets ``device_``, which its path tells too.
    X : array or tensor
        The rows: they are computed with where they are if ``device`` is None.
    work : callable

    Returns
    -------
    object
        What ``work`` returns.
    """
    if estimator.device is None and default_engine().resident:
        return work()  # within a fit that computes on a device
    engine = _engine_here(estimator, X)
    before = dict(vars(estimator))
    try:
        return _work_on(engine, estimator, work)
    except (DeviceError, MemoryBudgetError) as error:
        if estimator.device != "auto" or not engine.resident:
            raise
        vars(estimator).clear()
        vars(estimator).update(before)
        warn_user(f"{error}; the CPU is used instead", DeviceWarning)
    return _work_on(host_engine(), estimator, work)


def _engine_here(estimator: Any, X: Any) -> Engine:
    """Return the engine of this machine: with a cluster, ``device`` is that of its workers."""
    device, precision = estimator.device, getattr(estimator, "precision", None)
    cluster = getattr(estimator, "cluster", None)
    away = hasattr(estimator, "cluster") and (cluster is not None or is_dask(X))
    if not away or find_client(cluster) is None:
        return choose_engine(device, None if is_dask(X) else X, precision)
    try:
        return choose_engine(device, None, precision)
    except (DeviceError, ImportError):
        return host_engine()


def _work_on(engine: Engine, estimator: Any, work: Callable[[], Any]) -> Any:
    with computing_on(engine), told_of_failures(engine):
        found = work()
    estimator.device_ = described(engine, getattr(estimator, "solver_", ""))
    away = vars(estimator).pop("_away", None)
    if away is not None:
        estimator.device_ = f"{away}, {estimator.device or 'cpu'}"
    path = getattr(estimator, "path_", None)
    if path is not None and (engine.resident or away is not None):
        estimator.path_ = replace(path, device=estimator.device_)
    return found


def described(engine: Engine, solver: str = "") -> str:
    """Return where an engine computes and how it sums products, for people."""
    if not engine.resident:
        return engine.name
    # Products with vectors wait for memory: slices would gain nothing.
    split = solver == "cg" and engine.precision == "split"
    return f"{engine.name}, {'float64' if split else engine.precision} products"


def decide_on_device(estimator: Any, X: Any) -> Any:
    """Return the predictions ``estimator._decision`` makes, a tensor for a tensor.

    Parameters
    ----------
    estimator : estimator
    X : array or tensor

    Returns
    -------
    array or tensor
    """
    engine = default_engine()
    if estimator.device is not None or not engine.resident:
        engine = choose_engine(estimator.device, X)
    rows = on_host(X)
    try:
        with computing_on(engine), told_of_failures(engine):
            return like(estimator._decision(rows), X)
    except (DeviceError, MemoryBudgetError) as error:
        if estimator.device != "auto" or not engine.resident:
            raise
        warn_user(f"{error}; the CPU is used instead", DeviceWarning)
    with computing_on(host_engine()):
        return like(estimator._decision(rows), X)


def on_host(values: Any) -> Any:
    """Return a tensor as a NumPy array, and anything else as it is."""
    if not is_tensor(values):
        return values
    values = values.detach()
    if str(values.layout) != "torch.strided":
        raise TypeError(
            f"a tensor of layout {values.layout} cannot be used; give a matrix of SciPy, or "
            "X.to_dense()"
        )
    # NumPy has no such type.
    values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    return host_engine().to_host(values)


def like(values: Array, X: Any) -> Any:
    """Return an array as a tensor on the device of X, if X is one and the array holds numbers.

    Parameters
    ----------
    values : array
    X : array or tensor

    Returns
    -------
    array or tensor
    """
    if not is_tensor(X) or values.dtype.kind not in "fiub":
        return values
    import torch

    return torch.from_numpy(np.ascontiguousarray(values)).to(X.device)
