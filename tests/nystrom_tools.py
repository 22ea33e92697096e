"""What the tests of Nyström machines share: rows, a split, fits of other machines."""

import numpy as np
import pytest

from imparo import NystromClassifier, NystromRegressor

close = {"rtol": 1e-7, "atol": 1e-8}
with_and_without = pytest.mark.parametrize("intercept", [False, True])
both_faces = pytest.mark.parametrize("make", [NystromRegressor, NystromClassifier])


def wavy_rows(rng):
    """Ninety rows: a noisy smooth function, its classes, and weights."""
    X = rng.normal(size=(90, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=90)
    return X, y, rng.uniform(0.2, 2, 90)


def some_left_out(rng):
    order = rng.permutation(90)
    return order[:65], order[65:85]  # five rows are on neither side


def as_matrix(y):
    return y.reshape(len(y), -1)


def nystrom(kernel, X, Y, centers, penalty, weight=None, intercept=False):
    """Return the Nyström solution as a function, by least squares on K_nm(K_mm⁺)^{1/2}.

    The rows of the penalty are stacked below: nothing is squared.
    """
    weight = np.ones(len(X)) if weight is None else weight
    values, vectors = np.linalg.eigh(kernel(centers))
    kept = values > 1e-12 * values.max(initial=1e-300)
    B = vectors[:, kept] / np.sqrt(values[kept])
    root, Phi = np.sqrt(weight)[:, None], kernel(X, centers) @ B
    left = np.hstack([root * Phi, root * intercept])
    p = Phi.shape[1]
    below = np.hstack([np.sqrt(weight.sum() * penalty) * np.eye(p), np.zeros((p, 1))])
    right = np.vstack([root * as_matrix(Y), np.zeros((p, as_matrix(Y).shape[1]))])
    w = np.linalg.lstsq(np.vstack([left, below]), right, rcond=None)[0]
    return lambda new: kernel(new, centers) @ (B @ w[:p]) + w[p] * intercept


def errors_of(kernel, X, Y, centers, penalties, sizes, splits, weight=None, intercept=False):
    """Return errors on held-out and on fitted rows for every pair, from separate fits."""
    weight = np.ones(len(X)) if weight is None else weight
    found = np.empty((2, len(penalties), len(sizes)))
    for i, penalty in enumerate(penalties):
        for s, size in enumerate(sizes):
            sums = np.zeros((2, 2))
            for train, held in splits:
                f = nystrom(
                    kernel,
                    X[train],
                    Y[train],
                    centers[:size],
                    penalty,
                    weight[train],
                    intercept,
                )
                for side, part in enumerate((held, train)):
                    squares = ((f(X[part]) - as_matrix(Y)[part]) ** 2).mean(axis=1)
                    sums[side] += weight[part] @ squares, weight[part].sum()
            found[:, i, s] = np.sqrt(sums[:, 0] / sums[:, 1])
    return found
