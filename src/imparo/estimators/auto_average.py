"""An average of several models, where the validation error says so."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from imparo.engine import Array
from imparo.estimators.auto_trials import Best

# A model may be chosen more than once, which is its weight.
_ROUNDS = 12


@dataclass(frozen=True)
class Average:
    """Models and their shares, and the validation error of their average."""

    members: list[tuple[Best, float]]
    error: float


def averaged(
    pool: list[Best], Y: Array, weight: Array, error: Callable[[Array, Array, Array], float]
) -> Average | None:
    """Return the average of models that is best on the held-out rows, or None for one model.

    Starts from the best model and adds, one at a time and with repetition, the one that
    makes the average best, for as long as it gets better.

    Parameters
    ----------
    pool : list of Best
        The best first, each with the predictions of all held-out rows.
    Y : array of shape (n, T)
    weight : array of shape (n,)
    error : callable
        Returns the error of predictions, given outputs and weights.

    Returns
    -------
    Average or None
    """
    predictions = [np.asarray(best.held, np.float64) for best in pool]
    held = np.all([np.isfinite(F).all(axis=1) for F in predictions], axis=0)
    if not held.any():
        return None
    Y, weight = Y[held], weight[held]
    predictions = [F[held] for F in predictions]
    counts, total = np.zeros(len(pool)), np.zeros(Y.shape)
    least = np.inf
    for _ in range(_ROUNDS):
        size = counts.sum() + 1
        errors = [error((total + F) / size, Y, weight) for F in predictions]
        j = int(np.argmin(errors))
        if errors[j] >= least:
            break
        least, total = errors[j], total + predictions[j]
        counts[j] += 1
    chosen = np.flatnonzero(counts)
    if len(chosen) < 2:
        return None
    members = [(pool[j], float(counts[j] / counts.sum())) for j in chosen]
    return Average(sorted(members, key=lambda pair: pair[0].error), least)
