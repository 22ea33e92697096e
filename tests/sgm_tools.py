"""What the tests of stochastic gradients share: losses and loops written once more."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from imparo import SGMClassifier, SGMRegressor

SIGMA = 1.3
CENTERS = np.random.default_rng(7).normal(size=(12, 3))
# What a model is made with, by where its weights live.
SPACES = {
    "exact": {"features": "exact", "sigma": SIGMA},
    "nystrom": {"features": "nystrom", "centers": CENTERS, "sigma": SIGMA},
    "random": {"features": "fourier", "n_features": 30, "sigma": SIGMA},
    "linear": {"kernel": "linear"},
}
# ℓ(y, a) and ℓ'₋(y, a), written down once more.
VALUES = {
    "square": lambda y, a: (y - a) ** 2,
    "absolute": lambda y, a: np.abs(y - a),
    "epsilon_insensitive": lambda y, a: np.maximum(np.abs(y - a) - 0.1, 0),
    "hinge": lambda y, a: np.maximum(1 - y * a, 0),
    "logistic": lambda y, a: np.log(1 + np.exp(-y * a)),
    "exponential": lambda y, a: np.exp(-y * a),
}
SLOPES = {
    "square": lambda y, a: 2 * (a - y),
    "absolute": lambda y, a: np.where(a > y, 1.0, -1.0),
    "epsilon_insensitive": lambda y, a: 1.0 * (a - y > 0.1) - 1.0 * (a - y <= -0.1),
    "hinge": lambda y, a: np.where(y * a < 1, -y, 0.0),
    "logistic": lambda y, a: -y / (1 + np.exp(y * a)),
    "exponential": lambda y, a: -y * np.exp(-y * a),
}
REGRESSION = ("square", "absolute", "epsilon_insensitive")
# The guesses of step="auto" at κ² = 1: five decades down from the largest.
GUESSES = np.geomspace(1e-5, 1, 30)
per_space = pytest.mark.parametrize("space", SPACES)
last_or_average = pytest.mark.parametrize("average", [False, True])


def assert_close(found, expected, rtol=1e-8):
    """Equal but for rounding errors, which are as large as the largest entries make them."""
    size = np.max(np.abs(expected), initial=0.0)
    assert_allclose(found, expected, rtol=rtol, atol=rtol * size)


# The reference.


@dataclass
class Loop:
    """Every iterate, as coefficients of the rows; their steps; Σ tℓ(y_t, f_t(x_t))."""

    iterates: list
    etas: list
    progress: float

    def solution(self, average):
        """Return w_{t+1}, or Σ_{k≤t}η_kw_k/Σ_{k≤t}η_k."""
        if not average:
            return self.iterates[-1]
        terms = [eta * w for eta, w in zip(self.etas, self.iterates[:-1], strict=True)]
        return np.sum(terms, axis=0) / np.sum(self.etas)


def loop(K, y, loss, steps, eta, *, decay=0.0, weight=None):
    """Take steps one by one, each on the rows that it names, by the inner products of rows."""
    Y = np.reshape(y, (len(y), -1)).astype(float)
    v = np.ones((len(Y), 1)) if weight is None else np.reshape(weight, (-1, 1))
    iterates, etas, progress = [np.zeros_like(Y)], [], 0.0
    for t, rows in enumerate(steps, start=1):
        F, C = K[rows] @ iterates[-1], iterates[-1].copy()
        etas.append(eta * t**-decay)
        np.add.at(C, rows, -etas[-1] * v[rows] * SLOPES[loss](Y[rows], F) / len(rows))
        iterates.append(C)
        progress += t * float(np.sum(v[rows, 0] * VALUES[loss](Y[rows], F).mean(axis=1)))
    return Loop(iterates, etas, progress)


def in_steps(order, batch=1):
    return [order[i : i + batch] for i in range(0, len(order), batch)]


def gaussian(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * SIGMA**2))


def inner(model, A, B):
    """Return inner products of features in the space of a model."""
    if model.features_ == "linear":
        K = A @ B.T
    elif model.features_ == "exact":
        K = gaussian(A, B)
    elif model.features_ == "nystrom":
        among = gaussian(CENTERS, CENTERS)
        K = gaussian(A, CENTERS) @ np.linalg.solve(among, gaussian(CENTERS, B))
    else:
        K = model.map_.transform(A) @ model.map_.transform(B).T
    return K + bool(model.intercept)


# Models of any loss: that of a margin is learned by a classifier of ±1.


def make(loss, **settings):
    return (SGMRegressor if loss in REGRESSION else SGMClassifier)(loss=loss, **settings)


def outputs(loss, y):
    return y if loss in REGRESSION else np.where(y > np.median(y), 1, -1)


def learn(model, X, y, **more):
    """Hand some rows of a stream to a model."""
    if isinstance(model, SGMClassifier) and not hasattr(model, "classes_"):
        more["classes"] = [-1, 1]
    return model.partial_fit(X, y, **more)


def stream(model, X, y, cuts, weight=None):
    for part in np.split(np.arange(len(X)), cuts):
        learn(model, X[part], y[part], sample_weight=None if weight is None else weight[part])
    return model


def few_rows(rng):
    """Forty-two rows, a noisy function of them, and other rows to predict."""
    X = rng.normal(size=(42, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.1 * rng.normal(size=42)
    return X, y, rng.normal(size=(9, 3))


# The order of the rows of a fit.


class Stop:
    """A progress function that interrupts a fit."""

    def __init__(self, when):
        self.when = when

    def __call__(self, done, total, what):
        if self.when(done, total, what):
            raise KeyboardInterrupt


AT_THE_END_OF_THE_SEARCH = Stop(lambda done, total, what: what == "passes" and done == total)


def places(found, X):
    return np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in found])


def passes_of(X, epochs=1, **settings):
    """Return in which order a fit with these settings meets rows in each of its passes.

    Far below the outputs the slope of the absolute loss is −1, so that rows have the
    coefficients t^{−½} of the steps at which they were met.
    """
    met, before = [], np.zeros(len(X))
    for k in range(1, epochs + 1):
        model = SGMRegressor(
            sigma=1.0, features="exact", loss="absolute", decay=0.5, epochs=k, average=False,
            **({"step": 1.0} | settings),
        ).fit(X, np.full(len(X), 1e6))  # fmt: skip
        where = places(model.X_fit_, X)
        sizes = np.zeros(len(X))
        sizes[where] = model.dual_coef_
        times = (sizes[where] - before[where]) ** -2
        order = np.argsort(times)
        n = len(where)
        assert_allclose(times[order], (k - 1) * n + np.arange(1, n + 1), rtol=1e-6)
        met.append(where[order])
        before = sizes
    return met


def walked(X, epochs, validation, **settings):
    """Return in which order a search meets the rows that it fits."""
    return passes_of(
        X, epochs, validation=validation, step=[0.5, 1.0], progress=AT_THE_END_OF_THE_SEARCH,
        **settings,
    )  # fmt: skip


def two_sides(rows):
    """A split of forty-two rows."""
    shuffled = np.random.default_rng(2).permutation(42)
    return shuffled[:31], shuffled[31:]


def rmse(y, f):
    return np.sqrt(np.mean((y - f) ** 2))


def noisy_rows(rng):
    """Eighty rows whose errors fall for some passes, and rise from then on."""
    X = rng.normal(size=(80, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=80)
