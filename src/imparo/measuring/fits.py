"""Fits of imparo and of scikit-learn to the same rows, one penalty and whole paths."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from imparo.engine import Array
from imparo.estimators import KernelRegressor, NystromRegressor, RandomFeatureRegressor
from imparo.measuring.timing import Measurement, by_turns, size_within

COLUMNS = 10
CENTERS = 300
FEATURES = 400
WIDTH = 3.0
PENALTY = 1e-6
_PART = "fits"
_GAMMA = 1 / (2 * WIDTH**2)
_TESTED = 1000

Make = Callable[[int], Any]


def measure_fits(seconds: float) -> list[Measurement]:
    """Fit by centers, by random features and exactly, beside scikit-learn.

    The rival fits one penalty: the same as imparo in the first line of each method, while the
    second line is imparo's whole path of penalties with the choice of the best.

    Parameters
    ----------
    seconds : float
        For all of it, about: it decides on the number of rows.

    Returns
    -------
    list of Measurement
    """
    share = seconds / 3
    centers: dict[str, Any] = {"n_centers": CENTERS, "sigma": WIDTH, "random_state": 0}
    features: dict[str, Any] = {"n_features": FEATURES, "sigma": WIDTH, "random_state": 0}
    return [
        *_compared(
            f"Nyström, m = {CENTERS}", share, 1,
            lambda n: NystromRegressor(penalty=PENALTY, **centers),
            lambda n: NystromRegressor(**centers),
            "Nystroem + Ridge",
            lambda n: make_pipeline(
                Nystroem(gamma=_GAMMA, n_components=CENTERS, random_state=0), _ridge(n)
            ),
        ),
        *_compared(
            f"features, m = {FEATURES}", share, 1,
            lambda n: RandomFeatureRegressor(penalty=PENALTY, **features),
            lambda n: RandomFeatureRegressor(**features),
            "RBFSampler + Ridge",
            lambda n: make_pipeline(
                RBFSampler(gamma=_GAMMA, n_components=FEATURES, random_state=0), _ridge(n)
            ),
        ),
        *_compared(
            "exact", share, 3,
            lambda n: KernelRegressor(sigma=WIDTH, penalty=PENALTY),
            lambda n: KernelRegressor(sigma=WIDTH),
            "KernelRidge",
            lambda n: KernelRidge(kernel="rbf", gamma=_GAMMA, alpha=PENALTY * n),
        ),
    ]  # fmt: skip


def _ridge(n: int) -> Ridge:
    return Ridge(alpha=PENALTY * n, fit_intercept=False)


def _rows(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + _TESTED, COLUMNS))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=len(X))
    return X, y


def _compared(
    what: str, seconds: float, power: float, one: Make, path: Make, rival: str, theirs: Make
) -> list[Measurement]:
    """Return the lines of one penalty and of the path, of rows within so many seconds."""
    makes = {"one": one, "path": path, "rival": theirs}

    def once(n: int) -> float:
        X, y = _rows(n)
        start = time.perf_counter()
        for make in makes.values():
            make(n).fit(X[:n], y[:n])
        return time.perf_counter() - start

    # Rounds: one to warm up, three to measure, and about one to find the size.
    n = size_within(once, seconds / 5, 500, 500_000, power)
    X, y = _rows(n)
    fitted: dict[str, Any] = {}

    def fit(name: str) -> None:
        fitted[name] = makes[name](n).fit(X[:n], y[:n])

    timings = dict(
        zip(makes, by_turns([partial(fit, name) for name in makes], 0.6 * seconds), strict=True)
    )
    errors = {
        name: float(np.sqrt(np.mean((model.predict(X[n:]) - y[n:]) ** 2)))
        for name, model in fitted.items()
    }
    labels = {"one": "1 λ", "path": f"{fitted['path'].path_.errors.size} λ"}
    return [
        Measurement(
            _PART, f"{what}, {label}", f"n = {n:,}, d = {COLUMNS}", timings[name].seconds, "s",
            timings[name].repeats, rival, timings["rival"].seconds, errors[name],
            errors["rival"],
        )
        for name, label in labels.items()
    ]  # fmt: skip
