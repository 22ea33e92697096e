"""Examples a second that lifelong learners take, one at a time."""

import time
from collections.abc import Callable
from itertools import cycle
from statistics import median

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from imparo.engine import Array
from imparo.estimators import RandomFeatures
from imparo.lifelong import RecursiveRegressor
from imparo.measuring.timing import Measurement

FEATURES = (100, 500)
_COLUMNS = 10
_PART = "stream"
_PENALTY = 0.1


def measure_stream(seconds: float) -> list[Measurement]:
    """Learn one example at a time, beside solving anew after each.

    The rival adds the example to the normal equations, which is cheap, and solves them by a
    Cholesky factorisation, which is not: p³/3 operations a time, where imparo takes some p².

    Parameters
    ----------
    seconds : float
        For all of it, about.

    Returns
    -------
    list of Measurement
    """
    share = seconds / len(FEATURES)
    found = []
    for p in FEATURES:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(1000, _COLUMNS))
        y = np.sin(X[:, 0]) + X[:, 1]
        ours, theirs = examples_a_second([_recursive(X, p), _anew(X, p)], X, y, share)
        line = Measurement(
            _PART, "RecursiveRegressor", f"{p} features", ours[0], "examples/s", ours[1],
            "solved anew each time", theirs[0],
        )  # fmt: skip
        found.append(line)
    return found


Learn = Callable[[Array, float], None]


def examples_a_second(
    learners: list[Learn], X: Array, y: Array, seconds: float
) -> list[tuple[float, int]]:
    """Return examples a second and the examples that they are the median of, by turns.

    Parameters
    ----------
    learners : list of function
        Each learns one example.
    X, y : array
        Examples, taken round and round.
    seconds : float
        For all learners together.
    """
    examples = cycle(zip(X, y.tolist(), strict=True))
    taken: list[list[float]] = [[] for _ in learners]
    for _ in range(20):  # to warm up
        x, target = next(examples)
        for learn in learners:
            learn(x, target)
    end = time.perf_counter() + seconds
    while len(taken[0]) < 20 or time.perf_counter() < end:
        x, target = next(examples)
        for learn, found in zip(learners, taken, strict=True):
            start = time.perf_counter()
            learn(x, target)
            found.append(time.perf_counter() - start)
    return [(1 / median(found), len(found)) for found in taken]


def _map(X: Array, p: int) -> RandomFeatures:
    return RandomFeatures(sigma=3.0, n_features=p, random_state=0).fit(X)


def _recursive(X: Array, p: int) -> Learn:
    model = RecursiveRegressor(_map(X, p).map_, penalty=_PENALTY, intercept=False, drift=None)

    def learn(x: Array, target: float) -> None:
        model.learn_one(x, target)

    return learn


def _anew(X: Array, p: int) -> Learn:
    features = _map(X, p).map_
    A, b = _PENALTY * np.eye(p), np.zeros(p)

    def learn(x: Array, target: float) -> None:
        nonlocal A, b
        row = features.evaluate(x[None])[0] / np.sqrt(p)
        A += np.outer(row, row)
        b += row * target
        cho_solve(cho_factor(A, check_finite=False), b, check_finite=False)

    return learn
