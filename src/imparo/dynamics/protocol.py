"""The experiment of the thesis: learners side by side on pieces of a stream."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from imparo.dynamics.streaming import prequential, windowed_rmse
from imparo.engine import Array


def streamed(
    models: Mapping[str, Any],
    X: Any,
    Y: Any,
    *,
    pieces: int = 1,
    window: int = 30,
    progress: Callable[[], None] | None = None,
) -> dict[str, Array]:
    """Test, then learn, along pieces of a stream (thesis, section 8.4.3).

    Parameters
    ----------
    models : mapping of str to learner
        With more than one piece copies of them learn, each piece from the same beginning;
        with one they learn themselves.
    X : array of shape (n, 3J)
    Y : array of shape (n, T)
    pieces : int, default 1
        Consecutive parts of n // pieces samples.
    window : int, default 30
        Samples that an error is taken over.
    progress : function, optional
        Called after every sample of every model.

    Returns
    -------
    dict of str to array of shape (pieces, n // pieces, T)
        Root mean squared errors, see :func:`windowed_rmse`.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import NonparametricDynamics, streamed
    >>> X = np.sin(np.arange(300.0))[:, None]
    >>> errors = streamed({"NP": NonparametricDynamics(n_features=20)}, X, X**2)
    >>> errors["NP"].shape
    (1, 300, 1)
    """
    X, Y = np.ascontiguousarray(X, float), np.ascontiguousarray(Y, float)
    if Y.ndim != 2 or len(X) != len(Y):
        raise ValueError(
            f"X and Y have the shapes {X.shape} and {Y.shape}; two tables with as many rows "
            "were expected"
        )
    if not 1 <= pieces <= len(X):
        raise ValueError(f"{len(X)} samples cannot be cut into {pieces} pieces")
    length = len(X) // pieces
    errors = {}
    for name, model in models.items():
        found = []
        for k in range(pieces):
            part = slice(k * length, (k + 1) * length)
            learner = copy.deepcopy(model) if pieces > 1 else model
            done = None if progress is None else _without_count(progress)
            guesses = prequential(learner, X[part], Y[part], progress=done)
            found.append(windowed_rmse(guesses - Y[part], window))
        errors[name] = np.stack(found)
    return errors


def _without_count(progress: Callable[[], None]) -> Callable[[int], None]:
    return lambda count: progress()
