"""How the error falls with the number of rows."""

import time
import warnings
from typing import Any

import numpy as np

from imparo import estimators
from imparo.engine import Array
from imparo.tabular.targets import CLASSIFICATION

_LEAST_ROWS = 50


def learning_curve(
    model: Any, X: Any, y: Array, weight: Array | None, X_test: Any, y_test: Array,
    seconds: float, memory: int, seed: int,
) -> list[dict[str, float]]:  # fmt: skip
    """Return test errors of a model like the one chosen, fitted to fewer rows.

    The kernel is kept; the penalty, and the number of centers up to that of the model, are
    chosen anew for every number of rows.

    Parameters
    ----------
    model : TableModel
        Fitted.
    X : array, Frame, memory map or callable
        The rows that it was fitted to, prepared if the model has ``inputs``.
    y, weight : array, array or None
    X_test, y_test : rows as they were read, and their outputs
    seconds : float
        What it may take, about: it ends before the next point would not fit.
    memory, seed : int

    Returns
    -------
    list of dict
        "rows" and "error": root mean squared error, or misclassification rate. Empty where the
        machine has no kernel with centers, or rows come in blocks.
    """
    machine = model.machine
    kernel, n = getattr(machine, "kernel_", None), len(y)
    transformed = getattr(machine, "target_", "none") != "none"
    if kernel is None or callable(X) or transformed or n < 2 * _LEAST_ROWS:
        return []
    inputs = getattr(machine, "inputs_", None)
    m = int(getattr(machine, "n_centers_", None) or getattr(machine, "n_features_", None) or n)
    most = min(m, 4000)
    name = "NystromClassifier" if model.task == CLASSIFICATION else "NystromRegressor"
    cls: Any = getattr(estimators, name)
    order = np.random.RandomState(seed).permutation(n)
    Z_test = model.prepared(X_test)
    if inputs is not None:
        Z_test = inputs.transform(Z_test)
    points: list[dict[str, float]] = []
    start, last = time.monotonic(), 0.0
    width = X.shape[1]
    for rows in _sizes(n):
        if 3 * 8 * rows * width > memory:  # the rows, prepared ones, and a block of the fit
            break
        spent = time.monotonic() - start
        if spent + 3 * last > seconds and points:
            break
        places = np.sort(order[:rows])
        Z = X[places]
        if inputs is not None:
            Z = inputs.transform(Z)
        fitted = cls(
            kernel, n_centers=sorted({max(1, min(most, rows) // 2), min(most, rows)}),
            intercept=True, random_state=seed, memory=memory,
        )  # fmt: skip
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of few rows there is much to warn of
                fitted.fit(Z, y[places], None if weight is None else weight[places])
        except ValueError:
            continue  # of few rows one class may be all there is
        last = time.monotonic() - start - spent
        predicted = fitted.predict(Z_test)
        if model.task == CLASSIFICATION:
            error = float(np.mean(predicted != y_test))
        else:
            squares = np.mean((predicted - y_test) ** 2, axis=0)
            error = float(np.mean(np.sqrt(squares)))
        points.append({"rows": rows, "error": error})
    return points


def _sizes(n: int) -> list[int]:
    """Return numbers of rows, each twice the one before, up to all."""
    halves = [n]
    while halves[-1] // 2 >= _LEAST_ROWS and len(halves) < 8:
        halves.append(halves[-1] // 2)
    return halves[::-1]
