"""Forgetting: weighted batches, and the theory of what an idle learner keeps."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from imparo.lifelong.recursion import DELAY, Recursion
from recursion_tools import CLOSE, PENALTY, D, T, learned, lengths, often, seeds, some_rows

factors = st.sampled_from([0.999, 0.95, 0.7])
# Rows whose sizes, or whose directions, are far apart; the first 20 of some are large.
ROWS = {
    "normal": lambda rng, k: rng.normal(size=D),
    "of all sizes": lambda rng, k: rng.normal(size=D) * 10 ** rng.uniform(-6, 3),
    "ill conditioned": lambda rng, k: rng.normal(size=D) * 10.0 ** -np.arange(D),
    "narrow": lambda rng, k: np.ones(D) + 1e-3 * rng.normal(size=D),
    "noise": lambda rng, k: 1e-7 * rng.normal(size=D),
    "noise after rows": lambda rng, k: (1e3 if k < 20 else 1e-4) * rng.normal(size=D),
    "noise between rows": lambda rng, k: np.eye(D)[0] * (k % 2) + 1e-8 * rng.normal(size=D),
}


def stream(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([ROWS[kind](rng, k) for k in range(n)])


def two_truths(n, seed=0, noise=0.1):
    """Return rows and outputs, of one vector of weights and from row n on of another."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(2 * n, D)), rng.normal(size=(2, D))
    y = np.concatenate([X[:n] @ W[0], X[n:] @ W[1]]) + noise * rng.normal(size=2 * n)
    return X, y[:, None], W


# Exponential.


@given(seeds, lengths, factors)
@often
def test_exponential_forgetting_is_a_weighted_batch(seed, n, gamma):
    X, Y = some_rows(seed, n)
    model = learned(X, Y, forgetting=gamma)
    w = gamma ** np.arange(n - 1, -1, -1.0)
    prior = PENALTY * gamma**n
    A = (w[:, None] * X).T @ X + prior * np.eye(D)
    W = np.linalg.solve(A, (w[:, None] * X).T @ Y)
    objective = w @ (Y - X @ W) ** 2 + prior * (W**2).sum(axis=0)
    scale = np.abs(W).max()
    assert_allclose(model.coefficients(), W.T, rtol=0, atol=1e-8 * scale)
    assert_allclose(model.root.T @ model.root @ A, np.eye(D), atol=1e-8)
    assert_allclose(model.noise(), objective / w.sum(), rtol=1e-8, atol=1e-12)
    assert_allclose([model.weight, model.prior], [w.sum(), prior])


@pytest.mark.parametrize("options", [{}, {"directional": True}])
def test_forgetting_finds_new_weights_sooner(options):
    X, Y, W = two_truths(200)
    forgets = learned(X, Y, forgetting=0.9, **options)
    remembers = learned(X, Y, **options)
    assert np.abs(remembers.coefficients() - W[1]).max() > 0.3
    assert np.abs(forgets.coefficients() - W[1]).max() < 0.1


def test_an_idle_learner_does_not_blow_up_and_learns_again():
    X, Y, W = two_truths(400)
    model = learned(X[:100], Y[:100], forgetting=0.95)
    same, output = np.repeat(X[:1], 1000, axis=0), np.repeat(Y[:1], 1000, axis=0)
    for _ in range(100):
        model.learn(same, output)
    assert np.isfinite(model.root).all()
    assert np.linalg.norm(model.root, 2) ** 2 < 1e14 / PENALTY
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.noise()).all()
    assert_allclose(model.predict(X[:1]), Y[:1], atol=1e-8)
    # Twice, for other weights: what comes is learned and what was is forgotten.
    for truth in (1, 0):
        rows = X[400:600]
        model.learn(rows, rows @ W[truth][:, None])
        assert_allclose(model.coefficients()[0], W[truth], atol=0.01)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_directions_that_rows_do_not_show_keep_their_weights(dtype):
    X, Y, W = two_truths(100, noise=0.0)
    X, Y = X.astype(dtype), Y.astype(dtype)
    model = learned(X[:100], Y[:100], penalty=1e-4, forgetting=0.95, dtype=dtype)
    only = X[100:].copy()
    only[:, 2:] = 0
    for _ in range(20):
        model.learn(only, only @ W[0].astype(dtype)[:, None])
    assert_allclose(model.coefficients()[0], W[0], atol=1e-3 if dtype is np.float64 else 0.1)


def test_a_column_of_zeros_does_not_end_forgetting():
    X, Y, W = two_truths(2000)
    Y -= X[:, 2:3] * np.repeat(W[:, 2], 2000)[:, None]
    X[:, 2] = 0
    model = learned(X, Y, forgetting=0.95)
    rest = [0, 1, 3, 4]
    assert_allclose(model.coefficients()[0, rest], W[1, rest], atol=0.15)
    assert 19 < model.weight < 21
    assert_allclose(model.noise(), 0.01, rtol=0.7)


def test_the_noise_of_an_idle_learner_is_that_of_its_rows():
    rng = np.random.default_rng(0)
    X = np.repeat(np.ones((1, 2)), 5000, axis=0)
    model = learned(X, rng.normal(size=(5000, 1)), forgetting=0.99)
    # About 100 samples are remembered: their variance is known to within some 14 %.
    assert_allclose(model.noise(), 1.0, atol=0.5)
    assert_allclose(model.weight, 100, rtol=0.01)


def test_fading_again_and_again_does_not_blow_up():
    X, Y, W = two_truths(100)
    model = learned(X[:50], Y[:50])
    for _ in range(400):
        model.fade(0.1)
    assert np.linalg.norm(model.root, 2) ** 2 < 1e14 / PENALTY
    assert_allclose(model.coefficients()[0], W[0], atol=0.1)
    model.learn(X[100:], Y[100:])
    assert_allclose(model.coefficients()[0], W[1], atol=0.1)


# Directional.


@given(seeds, lengths)
@often
def test_with_factor_one_directional_forgetting_is_none(seed, n):
    X, Y = some_rows(seed, n)
    one, other = learned(X, Y, forgetting=1.0, directional=True), learned(X, Y)
    assert_array_equal(one.coefficients(), other.coefficients())
    assert_array_equal(one.root, other.root)
    almost = learned(X, Y, forgetting=1 - 1e-13, directional=True)
    assert_allclose(almost.coefficients(), other.coefficients(), **CLOSE)
    assert_allclose(almost.root, other.root, **CLOSE)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("gamma", [0.5, 0.95])
def test_leverage_is_never_above_that_of_the_penalty(kind, gamma):
    X = stream(kind, 1500)
    model = Recursion(D, 1, PENALTY, forgetting=gamma, directional=True)
    largest = 0.0
    for start in range(0, len(X), 5):
        model.learn(X[start : start + 5], np.zeros((5, 1)))
        # ‖L‖² is the leverage of the unit vector that is known least.
        largest = max(largest, np.linalg.norm(model.root, 2) ** 2)
    assert largest * PENALTY <= 1 + 1e-6


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("first", [0, 200])
def test_the_leverage_of_a_repeated_row_tends_to_the_inverse_factor_less_one(gamma, first):
    X, Y = some_rows(0, 200)
    model = learned(X[:first], Y[:first], 1e-6, forgetting=gamma, directional=True)
    row = np.repeat(10 * X[:1], 2000, axis=0)
    model.learn(row, np.zeros((2000, T)))
    assert_allclose(model.leverage(row[:1]), (1 - gamma) / gamma, rtol=1e-6)


@given(seeds, factors)
@often
def test_directions_without_rows_are_not_forgotten(seed, gamma):
    # First both halves of the columns, each by rows of its own, then the first half only.
    X, Y = some_rows(seed, 300)
    X[:100, :3], X[100:, 3:] = 0, 0
    model = learned(X[:150], Y[:150], forgetting=gamma, directional=True)
    kept = copy.deepcopy(model)
    model.learn(X[150:], Y[150:])
    probe = np.random.default_rng(seed).normal(size=(4, D))
    probe[:, :3] = 0
    assert_allclose(model.leverage(probe), kept.leverage(probe), rtol=1e-11)
    assert_allclose(model.predict(probe), kept.predict(probe), rtol=1e-9, atol=1e-11)


def test_an_idle_learner_keeps_what_it_knows():
    X, Y, W = two_truths(200)
    model = learned(X[:200], Y[:200], forgetting=0.95, directional=True)
    before = model.coefficients()[0]
    assert_allclose(before, W[0], atol=0.15)
    same = np.repeat(X[:1], 20_000, axis=0)
    model.learn(same, same @ W[0][:, None])
    assert_allclose(model.coefficients()[0], before, atol=0.15)
    assert np.linalg.norm(model.root, 2) ** 2 < (1 + 1e-6) / PENALTY


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-100, 1e-163, 1e-170])
def test_rows_next_to_zero_do_no_harm(size):
    X, Y = some_rows(1, 100)
    model = learned(X, Y, 1e-15, forgetting=0.9, directional=True)
    before = model.predict(X)
    model.learn(size * X, np.zeros((100, T)))
    assert np.isfinite(model.root).all()
    assert_allclose(model.predict(X), before, rtol=1e-6, atol=1e-6)


def test_the_gain_is_that_of_a_sample_at_full_weight():
    # Forgetting concerns what is known afterwards, not how a sample is learned.
    X, Y = some_rows(2, DELAY)
    model = learned(X, Y, forgetting=0.8, directional=True)
    W, inverse = model.coefficients(), model.root.T @ model.root
    x, y = some_rows(3, 1)
    model.learn(x, y)
    gain = inverse @ x[0] / (1 + x[0] @ inverse @ x[0])
    assert_allclose(model.coefficients(), W + np.outer(y[0] - W @ x[0], gain), **CLOSE)
