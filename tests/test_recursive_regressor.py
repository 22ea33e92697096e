"""RecursiveRegressor: ridge regression on all samples, and Bayes' rule, are the references."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import imparo
from imparo import RandomFeatures, RecursiveRegressor
from imparo.features import FourierMap, NystromMap
from imparo.kernels import Gaussian
from imparo.lifelong.recursion import DELAY

N, D, PENALTY = 110, 4, 0.5
CLOSE = {"rtol": 1e-9, "atol": 1e-9}

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=25, deadline=None)
with_and_without = pytest.mark.parametrize("intercept", [True, False])
one_or_several = pytest.mark.parametrize("outputs", [None, 1, 3])


def samples(seed=0, n=N, outputs=None, d=D):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    W = rng.normal(size=(d, outputs or 1))
    Y = 2 + X @ W + 0.3 * rng.normal(size=(n, outputs or 1))
    return X, Y[:, 0] if outputs is None else Y


def design(X, intercept=True):
    return np.hstack([np.ones((len(X), 1)), X]) if intercept else X


def ridge(X, y, penalty=PENALTY, intercept=True, weight=None, prior=1.0):
    """Return the weights, the constant first, of the sum of losses and λ·prior·‖w‖²."""
    Phi = design(X, intercept)
    weight = np.ones(len(X)) if weight is None else weight
    A = Phi.T @ (weight[:, None] * Phi) + penalty * prior * np.eye(Phi.shape[1])
    return np.linalg.solve(A, (Phi.T * weight) @ y)


def weights_of(model):
    """Return intercept and coefficients as one array, as ``ridge`` does."""
    return np.vstack([np.atleast_1d(model.intercept_), np.atleast_2d(model.coef_).T]).squeeze()


def prequential(X, y, penalty, gamma=1.0):
    """Return the error of each row by the ridge regression on those before it."""
    errors = []
    for i in range(len(X)):
        fades = gamma ** np.arange(i - 1, -1, -1.0)
        W = ridge(X[:i], y[:i], penalty, weight=fades, prior=gamma**i) if i else 0 * y[:1].T
        errors.append(y[i] - (design(X[i : i + 1]) @ W if i else W)[0])
    return np.array(errors)


def assert_same_bits(one, other, X):
    for a, b in zip(one.predict(X, True), other.predict(X, True), strict=True):
        assert_array_equal(a, b)
    assert_array_equal(one.leverage(X), other.leverage(X))
    assert_array_equal(one.prequential_errors_, other.prequential_errors_)
    assert one.penalty_ == other.penalty_
    assert one.n_seen_ == other.n_seen_
    assert one.drifts_ == other.drifts_


# Weights.


@with_and_without
@one_or_several
@pytest.mark.parametrize("n", [1, 2, DELAY, N])
def test_the_weights_are_those_of_ridge_regression(intercept, outputs, n):
    X, y = samples(n=n, outputs=outputs)
    model = RecursiveRegressor(penalty=PENALTY, intercept=intercept).fit(X, y)
    W = ridge(X, y, intercept=intercept)
    expected = W if intercept else np.concatenate([np.zeros_like(W[:1]), W])
    assert_allclose(weights_of(model), expected.squeeze(), **CLOSE)
    assert_allclose(model.predict(X), design(X, intercept) @ W, **CLOSE)
    assert model.predict(X).shape == y.shape
    assert model.coef_.shape == ((D,) if outputs is None else (outputs, D))
    assert np.shape(model.intercept_) == (() if outputs is None else (outputs,))
    assert model.n_seen_ == n
    assert model.n_features_in_ == D


@given(seeds, st.lists(st.integers(0, N), max_size=6), st.sampled_from([1.0, 0.95]))
@often
def test_the_cuts_between_calls_change_no_bit(seed, cuts, gamma):
    X, y = samples(seed)
    for kind in ("exponential", "directional"):
        whole = RecursiveRegressor(forgetting=gamma, forgetting_kind=kind).fit(X, y)
        parts, single = clone(whole), clone(whole)
        for start, stop in itertools.pairwise(sorted({0, N, *cuts})):
            parts.partial_fit(X[start:stop], y[start:stop])
        for row, output in zip(X, y, strict=True):
            single.learn_one(row, output).predict_one(row)
        assert_same_bits(parts, whole, X)
        assert_same_bits(single, whole, X)


@given(seeds, st.floats(0.8, 0.999))
@often
def test_exponential_forgetting_is_weighted_ridge_regression(seed, gamma):
    X, y = samples(seed)
    model = RecursiveRegressor(penalty=PENALTY, forgetting=gamma, drift=None).fit(X, y)
    fades = gamma ** np.arange(N - 1, -1, -1.0)
    expected = ridge(X, y, weight=fades, prior=gamma**N)
    assert_allclose(weights_of(model), expected, rtol=1e-7, atol=1e-7)


def test_fit_forgets_what_was_learned_and_partial_fit_does_not():
    (X, y), (others, z) = samples(0), samples(1)
    model = RecursiveRegressor(penalty=PENALTY).fit(others, z).fit(X, y)
    assert_allclose(weights_of(model), ridge(X, y), **CLOSE)
    model.partial_fit(others, z)
    both = ridge(np.vstack([X, others]), np.append(y, z))
    assert_allclose(weights_of(model), both, **CLOSE)
    assert model.fit(others[:, :2], np.stack([z, z], axis=1)).coef_.shape == (2, 2)


def test_float32_is_computed_in_if_it_is_asked_for():
    X, y = samples()
    narrow = RecursiveRegressor(penalty=PENALTY, dtype="float32").fit(X, y)
    assert narrow.coef_.dtype == narrow.predict(X).dtype == narrow.leverage(X).dtype == "f4"
    assert_allclose(weights_of(narrow), ridge(X, y), atol=1e-5)
    wide = RecursiveRegressor(penalty=PENALTY).fit(X.astype("f4"), y.astype("f4"))
    assert wide.coef_.dtype == "f8"
    assert_allclose(weights_of(wide), ridge(*(part.astype("f4") for part in (X, y))), **CLOSE)


def test_a_penalty_far_below_rounding_gives_least_squares():
    X, y = samples()
    model = RecursiveRegressor(penalty=1e-15).fit(X, y)
    assert_allclose(weights_of(model), np.linalg.lstsq(design(X), y)[0], rtol=1e-8)


# Penalties side by side.


@one_or_several
@pytest.mark.parametrize("gamma", [1.0, 0.97])
def test_every_penalty_is_judged_by_errors_before_learning(outputs, gamma):
    X, y = samples(3, outputs=outputs)
    penalties = [1e-3, 1.0, 300.0]
    model = RecursiveRegressor(penalty=penalties, forgetting=gamma).fit(X, y)
    known = N // DELAY * DELAY
    fades = gamma ** np.arange(known - 1, -1, -1.0)
    expected = []
    for penalty in penalties:
        errors = prequential(X[:known], y[:known], penalty, gamma)
        squares = (errors.reshape(known, -1) ** 2).sum(axis=1)
        expected.append(np.sqrt(squares @ fades / fades.sum()))
    assert_allclose(model.prequential_errors_, expected, rtol=1e-8)
    assert model.penalty_ == penalties[np.argmin(expected)]
    assert_array_equal(model.penalties_, penalties)


def test_each_penalty_learns_as_if_it_were_alone():
    X, y = samples(4)
    penalties = (3.0, 0.1, 1e4)
    model = RecursiveRegressor(penalty=penalties).fit(X, y)
    for i, penalty in enumerate(penalties):
        model._best = i
        assert_allclose(weights_of(model), ridge(X, y, penalty), **CLOSE)
        assert model.penalty_ == penalty


def test_the_penalty_in_use_changes_with_the_errors():
    # Outputs without any signal first, then a signal without noise.
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, D))
    y = np.append(5 * rng.normal(size=64), X[64:] @ np.ones(D))
    model = RecursiveRegressor(penalty=[1e-6, 1e4], intercept=False, drift=None)
    model.partial_fit(X[:64], y[:64])
    assert model.penalty_ == 1e4
    model.partial_fit(X[64:], y[64:])
    assert model.penalty_ == 1e-6
    assert_allclose(model.predict(X[:5]), X[:5] @ ridge(X, y, 1e-6, intercept=False), **CLOSE)


def test_before_the_first_errors_none_are_made_up():
    X, y = samples()
    model = RecursiveRegressor().partial_fit(X[: DELAY - 1], y[: DELAY - 1])
    assert np.isnan(model.prequential_errors_).all()
    assert np.isfinite(model.partial_fit(X[:1], y[:1]).prequential_errors_).all()


@pytest.mark.parametrize(("scale", "unit"), [(1.0, 1e1), (30.0, 1e4), (1e-3, 1e-5), (0, 1)])
@with_and_without
def test_automatic_penalties_go_by_the_first_row(scale, unit, intercept):
    # ‖x‖² = 9·scale²: the next power of ten.
    X = scale * np.array([[1.0, -2.0, 2.0], [50.0, 0.0, 7.0]])
    model = RecursiveRegressor(intercept=intercept).fit(X, [1.0, 2.0])
    assert_allclose(model.penalties_, unit * np.array([1e-4, 1e-2, 1]), rtol=1e-12)


# What is not known.


@with_and_without
@one_or_several
@pytest.mark.parametrize("n", [1, 20, DELAY, N])
def test_deviations_are_those_of_bayesian_regression(intercept, outputs, n):
    X, y = samples(6, n=n, outputs=outputs)
    model = RecursiveRegressor(penalty=PENALTY, intercept=intercept).fit(X, y)
    probe = 3 * samples(7, n=5)[0]
    # w ~ N(0, s²/λ), noise N(0, s²): outputs ~ N(0, s²(K + I)), s² of most likelihood.
    Phi, Psi = design(X, intercept), design(probe, intercept)
    K, k = Phi @ Phi.T / PENALTY + np.eye(n), Psi @ Phi.T / PENALTY
    targets = y.reshape(n, -1)
    noise = np.einsum("it,it->t", targets, np.linalg.solve(K, targets)) / n
    unknown = (Psi * Psi).sum(axis=1) / PENALTY - (k * np.linalg.solve(K, k.T).T).sum(axis=1)
    mean, std = model.predict(probe, return_std=True)
    expected = np.sqrt(np.outer(1 + unknown, noise))
    assert_allclose(std, expected.squeeze(1) if outputs is None else expected, rtol=1e-7)
    assert_array_equal(mean, model.predict(probe))
    assert_allclose(model.leverage(probe), unknown, rtol=1e-7, atol=1e-10)
    assert_allclose(model.novelty(probe), unknown / (1 + unknown), rtol=1e-7, atol=1e-10)


def test_deviations_are_as_large_as_errors_are():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(3000, D))
    y = X @ np.ones(D) + 0.7 * rng.normal(size=3000)
    model = RecursiveRegressor(penalty=1e-3).fit(X[:2000], y[:2000])
    mean, std = model.predict(X[2000:], return_std=True)
    assert_allclose(np.mean(np.abs(y[2000:] - mean) < 1.96 * std), 0.95, atol=0.03)


def test_what_was_never_seen_is_new_and_what_was_is_not():
    X = np.zeros((50, D))
    X[:, :2] = samples()[0][:50, :2]
    model = RecursiveRegressor(penalty=1e-6, intercept=False).fit(X, X[:, 0])
    known, new = model.novelty([[1.0, 1, 0, 0], [0, 0, 1.0, 0]])
    assert known < 0.2
    assert_allclose(new, 1 / (1 + 1e-6))


@with_and_without
def test_what_centers_leave_of_the_kernel_is_not_known(intercept):
    X, y = samples(14)
    centers, probe = X[:6], np.vstack([X[:4], 20 + X[:4]])
    features = NystromMap(Gaussian(1.5), centers)
    model = RecursiveRegressor(features, penalty=PENALTY, intercept=intercept).fit(X, y)

    def kernel(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * 1.5**2))

    C = np.linalg.cholesky(kernel(centers, centers))
    Phi, Psi = (np.linalg.solve(C, kernel(centers, Z)).T for Z in (X, probe))
    rest = (1 - (Psi**2).sum(axis=1)) / PENALTY
    Phi, Psi = design(Phi, intercept), design(Psi, intercept)
    A = Phi.T @ Phi + PENALTY * np.eye(Phi.shape[1])
    expected = (Psi * np.linalg.solve(A, Psi.T).T).sum(axis=1) + rest
    assert_allclose(model.leverage(probe), expected, rtol=1e-7)
    std = model.predict(probe, return_std=True)[1]
    assert_allclose(std / std[0], np.sqrt((1 + expected) / (1 + expected[0])), rtol=1e-7)


def test_what_centers_leave_stays_finite_however_much_is_forgotten():
    X, y = samples(15, n=8000)
    model = RecursiveRegressor(
        NystromMap(Gaussian(1.5), X[:6]), penalty=PENALTY, forgetting=0.9, drift=None
    ).fit(X, y)
    assert np.isfinite(model.leverage(np.vstack([X[:20], 20 + X[:20]]))).all()


# Features.


def maps():
    X = samples(9)[0]
    rng = np.random.default_rng(9)
    drawn = RandomFeatures(sigma=1.5, n_features=20, random_state=0)
    return {
        "waves": FourierMap(rng.normal(size=(6, D)), np.full(6, 0.4)),
        "centers": NystromMap(Gaussian(2.0), X[:8]),
        "drawn": drawn,
        "drawn before": clone(drawn).fit(X),
        "map of the drawn": clone(drawn).fit(X).map_,
        "scaler": StandardScaler().fit(X),
        "new scaler": StandardScaler(),
    }


@pytest.mark.parametrize("name", maps())
def test_any_map_may_come_first(name, tmp_path):
    features, (X, y) = maps()[name], samples(10)
    X = 2 + 3 * X
    kept = pickle.dumps(features)
    model = RecursiveRegressor(features, penalty=PENALTY).partial_fit(X[:50], y[:50])
    reference = maps()[name]
    if name in ("drawn", "new scaler"):
        reference.fit(X[:50])
    assert_allclose(model.features_.transform(X), reference.transform(X), rtol=1e-12)
    Phi = reference.transform(X)
    imparo.save(model, tmp_path / "model")
    for other in (model, imparo.load(tmp_path / "model"), copy.deepcopy(model)):
        for row, output in zip(X[50:], y[50:], strict=True):
            other.learn_one(row, output)
        assert_allclose(weights_of(other), ridge(Phi, y), rtol=1e-7, atol=1e-7)
        assert_allclose(other.predict(X[:9]), design(Phi[:9]) @ ridge(Phi, y), rtol=1e-7)
    if hasattr(features, "fit"):  # maps keep what they have computed once
        assert pickle.dumps(features) == kept


def test_a_fitted_transformer_is_a_copy():
    X, y = samples()
    scaler = StandardScaler().fit(X)
    model = RecursiveRegressor(scaler, penalty=PENALTY).fit(X, y)
    before = model.predict(X)
    scaler.mean_ += 100
    assert_array_equal(model.predict(X), before)


# Weights of samples.


@with_and_without
@pytest.mark.parametrize("n", [20, N])
def test_a_weight_is_a_number_of_repetitions(intercept, n):
    X, y = samples(11, n=n)
    counts = np.random.default_rng(11).integers(0, 4, n)
    counts[0] = 0
    options = {"penalty": PENALTY, "intercept": intercept, "drift": None}
    weighted = RecursiveRegressor(**options).fit(X, y, sample_weight=counts)
    repeated = RecursiveRegressor(**options).fit(X.repeat(counts, axis=0), y.repeat(counts))
    assert_allclose(weights_of(weighted), weights_of(repeated), **CLOSE)
    assert_allclose(weighted.leverage(X), repeated.leverage(X), **CLOSE)
    for one, other in zip(weighted.predict(X, True), repeated.predict(X, True), strict=True):
        assert_allclose(one, other, **CLOSE)


def test_errors_count_as_much_as_their_samples():
    X, y = samples(12)
    weight = np.random.default_rng(12).uniform(0.1, 5, N)
    model = RecursiveRegressor(penalty=PENALTY).fit(X, y, sample_weight=weight)
    known, total, W = N // DELAY * DELAY, 0.0, np.zeros(D + 1)
    for i in range(known):
        total += weight[i] * float(y[i] - design(X[i : i + 1])[0] @ W) ** 2
        W = ridge(X[: i + 1], y[: i + 1], weight=weight[: i + 1])
    expected = np.sqrt(total / weight[:known].sum())
    assert_allclose(model.prequential_errors_, expected, rtol=1e-8)


def test_rows_of_weight_zero_are_as_if_they_were_not_there():
    X, y = samples(13)
    weight = np.arange(N) % 3 / 2  # the first among them
    model = RecursiveRegressor().fit(1e3 ** (weight[:, None] == 0) * X, y, sample_weight=weight)
    used = weight > 0
    other = RecursiveRegressor().fit(X[used], y[used], sample_weight=weight[used])
    assert_array_equal(model.penalties_, other.penalties_)
    assert_array_equal(weights_of(model), weights_of(other))
    assert_array_equal(model.prequential_errors_, other.prequential_errors_)
    model.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    assert_array_equal(weights_of(model), weights_of(other))
