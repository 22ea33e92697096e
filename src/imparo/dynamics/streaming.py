"""Test, then learn: how a learner does on a stream."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.exceptions import NotFittedError

from imparo.engine import Array


def prequential(
    model: Any, X: Any, Y: Any, *, progress: Callable[[int], None] | None = None
) -> Array:
    """Return predictions of every sample before it was learned (thesis, section 8.4.3).

    Parameters
    ----------
    model : learner of dynamics
        Learns all samples. One that has learned nothing yet predicts 0 for the first.
    X : array of shape (n, 3J)
        Columns q, dq, ddq.
    Y : array of shape (n, T)
    progress : function, optional
        Called with the number of samples done.

    Returns
    -------
    array of shape (n, T)

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import NonparametricDynamics, prequential
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 1))
    >>> Y = np.sin(3 * X)
    >>> P = prequential(NonparametricDynamics(n_features=50), X, Y)
    >>> bool(np.abs(P - Y)[150:].mean() < 0.2 * np.abs(Y).mean())
    True
    """
    X, Y = np.ascontiguousarray(X, float), np.ascontiguousarray(Y, float)
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} rows and Y has {len(Y)}; they must have as many")
    predictions = np.zeros_like(Y)
    for i in range(len(X)):
        row, target = X[i : i + 1], Y[i : i + 1]
        try:
            predictions[i] = model.predict(row)[0]
        except NotFittedError:
            if i:
                raise
        model.partial_fit(row, target)
        if progress is not None:
            progress(i + 1)
    return predictions


def windowed_rmse(errors: Any, window: int = 30) -> Array:
    """Return the root mean square of each output over a window of the last samples.

    Parameters
    ----------
    errors : array of shape (n, T)
    window : int, default 30
        Samples; the first ones have shorter windows.

    Returns
    -------
    array of shape (n, T)
        Row i is over the samples i − window + 1 to i.

    Examples
    --------
    >>> from imparo.dynamics import windowed_rmse
    >>> windowed_rmse([[3.0], [4.0], [0.0]], window=2).round(3)
    array([[3.   ],
           [3.536],
           [2.828]])
    """
    E = np.asarray(errors, float)
    whole = isinstance(window, int | np.integer) and window >= 1
    if E.ndim != 2 or not len(E) or not whole:
        raise ValueError(
            f"errors of shape (n, T) and a window of at least 1 were expected, not {E.shape} "
            f"and {window}"
        )
    # Not by differences of sums: after a large error small ones would be lost.
    window = min(int(window), len(E))
    padded = np.concatenate([np.zeros((window - 1, E.shape[1])), np.square(E)])
    sums = sliding_window_view(padded, window, axis=0).sum(axis=-1)
    counts = np.minimum(np.arange(1, len(E) + 1), window)[:, None]
    return np.sqrt(sums / counts)


def output_groups(names: Sequence[str]) -> Mapping[str, list[int]]:
    """Return which outputs have one unit, and so a common mean error.

    Parameters
    ----------
    names : sequence of str
        Of the outputs: Fx to Tz make a group of forces and one of torques.
    """
    if tuple(names) == ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz"):
        return {"force (N)": [0, 1, 2], "torque (Nm)": [3, 4, 5]}
    return {"torque (Nm)": list(range(len(names)))}
