"""Dense sums over all rows, solved anew: the reference for recursive least squares."""

import copy

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from imparo.lifelong.recursion import DELAY, Recursion

D, T, PENALTY = 5, 3, 0.3
CLOSE = {"rtol": 1e-9, "atol": 1e-10}

seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(1, 3 * DELAY)
often = settings(max_examples=40, deadline=None)


class Dense:
    """A, b, Σy² and the number of rows, faded with them: the model from its formulas."""

    def __init__(self, n_features, n_outputs, penalty, forgetting=1.0):
        self.A, self.b = penalty * np.eye(n_features), np.zeros((n_features, n_outputs))
        self.squares, self.weight = np.zeros(n_outputs), 0.0
        self.prior, self.forgetting = penalty, forgetting

    def learn(self, X, Y):
        for x, y in zip(X, Y, strict=True):
            self.fade(self.forgetting)
            self.A += np.outer(x, x)
            self.b += np.outer(x, y)
            self.squares += y**2
            self.weight += 1
        return self

    def fade(self, factor):
        for name in ("A", "b", "squares", "weight", "prior"):
            setattr(self, name, factor * getattr(self, name))

    def merge(self, other):
        self.A += other.A - other.prior * np.eye(len(self.A))
        self.b += other.b
        self.squares += other.squares
        self.weight += other.weight

    def add_outputs(self, count):
        self.b = np.hstack([self.b, np.zeros((len(self.b), count))])
        self.squares = np.append(self.squares, np.zeros(count))

    def remove_output(self, output):
        self.b = np.delete(self.b, output, axis=1)
        self.squares = np.delete(self.squares, output)

    def add_features(self, count):
        n = len(self.A)
        A = self.prior * np.eye(n + count)
        A[:n, :n] = self.A
        self.A = A
        self.b = np.vstack([self.b, np.zeros((count, self.b.shape[1]))])

    @property
    def coef(self):
        return np.linalg.solve(self.A, self.b).T

    @property
    def residual(self):
        return self.squares - (self.b * self.coef.T).sum(axis=0)


def some_rows(seed, n, d=D, outputs=T):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, outputs))


def learned(X, Y, penalty=PENALTY, **options):
    model = Recursion(X.shape[1], Y.shape[1], penalty, **options)
    model.learn(X, Y)
    return model


def assert_is(model, dense):
    """Assert that a model is what the sums say: weights, L, what is left, predictions."""
    probe = np.random.default_rng(99).normal(size=(7, model.n_features))
    inverse = np.linalg.inv(dense.A)
    assert_allclose(model.coefficients(), dense.coef, **CLOSE)
    assert_allclose(model.predict(probe), probe @ dense.coef.T, **CLOSE)
    assert_allclose(model.root.T @ model.root, inverse, **CLOSE)
    assert_array_equal(np.triu(model.root, 1), 0)
    assert_allclose(model.leverage(probe), ((probe @ inverse) * probe).sum(axis=1), **CLOSE)
    assert_allclose(model.weight, dense.weight, rtol=1e-12)
    if dense.weight:
        noise = dense.residual / dense.weight
        assert_allclose(model.noise(), noise, rtol=1e-8, atol=1e-8)


def state(model):
    model = copy.deepcopy(model)
    found = [model.coefficients(), model.root.copy(), model.noise(), model.weight]
    model.settle()
    return [*found, model.coefficients(), model.residual]


def assert_same_bits(one, other):
    for a, b in zip(state(one), state(other), strict=True):
        assert_array_equal(a, b)
