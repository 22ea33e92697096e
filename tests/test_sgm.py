"""Stochastic gradient estimators: loops over rows by the definition are the references."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import imparo
from imparo import KernelRegressor, SGMClassifier, SGMRegressor
from imparo.errors import SelectionWarning
from imparo.filters import Landweber
from imparo.kernels import Polynomial
from imparo.losses import EpsilonInsensitive, Logistic
from imparo.steps import step_rule

SIGMA = 1.3
CENTERS = np.random.default_rng(7).normal(size=(12, 3))
# What a model is made with, by where its weights live.
SPACES = {
    "exact": {"features": "exact", "sigma": SIGMA},
    "nystrom": {"features": "nystrom", "centers": CENTERS, "sigma": SIGMA},
    "random": {"features": "fourier", "n_features": 30, "sigma": SIGMA},
    "linear": {"kernel": "linear"},
}
# Steps that all losses bear: columns go up to ‖x‖² = 10.
STEPS = {"exact": 0.4, "nystrom": 0.4, "random": 0.4, "linear": 0.04}
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
per_loss = pytest.mark.parametrize("loss", VALUES)
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


def values(model, X):
    if isinstance(model, SGMClassifier):
        return model.decision_function(X)
    return model.predict(X)


@pytest.fixture
def rows(rng):
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


# Full batches


@pytest.mark.parametrize("epochs", [1, 2, 25])
@pytest.mark.parametrize("features", ["exact", "nystrom"])
def test_full_batches_are_landweber_iteration(rows, features, epochs):
    X, y, Z = rows
    centers = {"centers": X} if features == "nystrom" else {}
    model = SGMRegressor(
        sigma=SIGMA, step=0.7, epochs=epochs, batch_size=42, average=False, features=features,
        **centers,
    ).fit(X, y)  # fmt: skip
    # The gradient of the mean of (y − f)² has the factor 2/n.
    landweber = KernelRegressor(
        sigma=SIGMA, filter=Landweber(2 * 0.7 / 42), iterations=epochs
    ).fit(X, y)
    assert model.features_ == features
    assert model.n_steps_ == epochs
    assert_close(model.predict(Z), landweber.predict(Z))
    sizes, vectors = np.linalg.eigh(gaussian(X, X))
    g = Landweber(2 * 0.7 / 42).g(sizes, [epochs])[:, 0]
    assert_close(model.predict(Z), gaussian(Z, X) @ vectors @ (g * (vectors.T @ y)))


@pytest.mark.parametrize("epochs", [1, 30])
def test_full_batches_on_columns_are_landweber_iteration(rows, epochs):
    X, y, Z = rows
    model = SGMRegressor("linear", step=0.1, epochs=epochs, batch_size=99, average=False)
    model.fit(X, y)
    w = np.zeros(3)
    for _ in range(epochs):
        w = w - 0.1 * 2 * X.T @ (X @ w - y) / 42
    assert_close(model.coef_, w)
    landweber = KernelRegressor(
        "linear", filter=Landweber(2 * 0.1 / 42), iterations=epochs
    ).fit(X, y)
    assert_close(model.predict(Z), landweber.predict(Z))


# Streams, by definition


@per_space
@per_loss
@last_or_average
def test_a_stream_follows_the_definition(rows, space, loss, average):
    X, y, Z = rows
    y, eta = outputs(loss, y), STEPS[space]
    settings = {"step": eta, "decay": 0.3, "average": average, "random_state": 0}
    model = stream(make(loss, **settings, **SPACES[space]), X, y, range(1, 42))
    whole = stream(make(loss, **settings, **SPACES[space]), X, y, [20, 23])
    expected = loop(inner(model, X, X), y, loss, in_steps(np.arange(42)), eta, decay=0.3)
    expected = inner(model, Z, X) @ expected.solution(average)
    assert model.features_ == space
    assert_close(values(model, Z), expected[:, 0])
    assert_close(values(whole, Z), expected[:, 0])
    assert (model.n_steps_, model.step_, model.decay_) == (42, eta, 0.3)
    assert model.epochs_ is None
    assert model.path_ is None
    assert model.stopped_ is None


@given(cuts=st.lists(st.integers(1, 41), max_size=8, unique=True).map(sorted))
@settings(max_examples=15, deadline=None)
@per_space
def test_how_a_stream_is_cut_does_not_matter(space, cuts):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(42, 3)), rng.normal(size=42)
    settings = {"loss": "absolute", "step": 0.2, "random_state": 0} | SPACES[space]
    settings |= {"intercept": True}
    # The width of a new model is given: it would be that of the first rows.
    whole = SGMRegressor(**settings).partial_fit(X, y)
    cut = stream(SGMRegressor(**settings), X, y, cuts)
    assert_close(cut.predict(X), whole.predict(X))


@per_space
@last_or_average
@pytest.mark.parametrize("loss", ["square", "hinge"])
def test_an_intercept_is_a_feature_that_is_1(rows, space, average, loss):
    X, y, Z = rows
    y = outputs(loss, y)
    model = make(
        loss, step=0.2, average=average, intercept=True, random_state=0, **SPACES[space]
    )
    stream(model, X, y, [13, 14, 30])
    found = loop(inner(model, X, X), y, loss, in_steps(np.arange(42)), 0.2).solution(average)
    assert_close(values(model, Z), (inner(model, Z, X) @ found)[:, 0])
    assert_close(np.ravel(model.intercept_), found.sum(axis=0))


@per_space
@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_weights_of_a_stream_multiply_its_steps(rows, space, loss):
    X, y, Z = rows
    y = outputs(loss, y)
    weight = np.random.default_rng(5).uniform(0, 3, 42)
    weight[::7] = 0
    model = make(loss, step=0.2, decay=0.25, random_state=0, **SPACES[space])
    stream(model, X, y, [10, 11, 29], weight)
    found = loop(
        inner(model, X, X), y, loss, in_steps(np.arange(42)), 0.2, decay=0.25, weight=weight
    )
    assert_close(values(model, Z), (inner(model, Z, X) @ found.solution(True))[:, 0])


def test_a_row_of_weight_0_takes_a_step_of_length_0(rows):
    X, y, Z = rows
    model = SGMRegressor(sigma=SIGMA, step=0.2, average=False, random_state=0)
    model.partial_fit(X[:20], y[:20])
    before = model.predict(Z)
    model.partial_fit(X[20:21], y[20:21], [0.0])
    assert_array_equal(model.predict(Z), before)
    assert model.n_steps_ == 21


@per_space
@last_or_average
@pytest.mark.parametrize("batch", [2, 5, 20])
def test_steps_of_several_rows(rows, space, average, batch):
    X, y, Z = rows
    weight = np.random.default_rng(5).uniform(0, 3, 42)
    model = SGMRegressor(
        loss="absolute", step=0.5, decay=0.5, batch_size=batch, average=average,
        intercept=True, random_state=0, **SPACES[space],
    )  # fmt: skip
    stream(model, X, y, [20, 40], weight)  # the last step has two rows
    steps = in_steps(np.arange(42), batch)
    found = loop(inner(model, X, X), y, "absolute", steps, 0.5, decay=0.5, weight=weight)
    assert_close(model.predict(Z), (inner(model, Z, X) @ found.solution(average))[:, 0])
    assert model.n_steps_ == len(steps)


def test_a_step_has_the_rows_of_one_call(rows):
    X, y, Z = rows
    model = SGMRegressor(sigma=SIGMA, features="exact", step=0.5, batch_size=4)
    stream(model, X, y, [6])
    steps = [*in_steps(np.arange(6), 4), *in_steps(np.arange(6, 42), 4)]
    found = loop(gaussian(X, X), y, "square", steps, 0.5).solution(True)
    assert_close(model.predict(Z), gaussian(Z, X) @ found[:, 0])


@per_space
@pytest.mark.parametrize("loss", REGRESSION)
def test_several_outputs_are_learned_as_if_alone(rows, space, loss):
    X, y, Z = rows
    Y = np.column_stack([y, -3 * y, np.cos(y)])
    settings = {"loss": loss, "step": 0.3, "intercept": True, "random_state": 0}
    model = stream(SGMRegressor(**settings, **SPACES[space]), X, Y, [11, 12])
    assert model.predict(Z).shape == (9, 3)
    for j in range(3):
        alone = stream(SGMRegressor(**settings, **SPACES[space]), X, Y[:, j], [11, 12])
        assert_close(model.predict(Z)[:, j], alone.predict(Z))
        assert_close(model.intercept_[j], alone.intercept_)


def test_one_column_of_outputs_stays_a_column(rows):
    X, y, Z = rows
    model = SGMRegressor(sigma=SIGMA, step=0.3, random_state=0)
    assert model.partial_fit(X, y[:, None]).predict(Z).shape == (9, 1)
    assert model.partial_fit(X, y[:, None]).predict(Z).shape == (9, 1)


@per_space
@pytest.mark.parametrize("loss", VALUES)
def test_classes_are_learned_one_against_all(rows, space, loss):
    X, y, Z = rows
    names = np.array(["low", "mid", "up"])[np.digitize(y, [-0.5, 0.5])]
    settings = {"loss": loss, "decay": 0.2, "random_state": 0} | SPACES[space]
    settings |= {"step": STEPS[space]}
    model = SGMClassifier(**settings)
    model.partial_fit(X[:2], names[:2], classes=["up", "mid", "low"])
    model.partial_fit(X[2:], names[2:])
    assert model.classes_.tolist() == ["low", "mid", "up"]
    assert model.decision_function(Z).shape == (9, 3)
    for j, name in enumerate(model.classes_):
        alone = SGMClassifier(**settings).partial_fit(X[:2], names[:2] == name, [False, True])
        alone.partial_fit(X[2:], names[2:] == name)
        assert_close(model.decision_function(Z)[:, j], alone.decision_function(Z))
    largest = np.argmax(model.decision_function(Z), axis=1)
    assert_array_equal(model.predict(Z), model.classes_[largest])


def test_labels_are_learned_as_if_alone(rows):
    X, y, Z = rows
    Y = np.column_stack([y > 0, y > 0.5, X[:, 2] > 0]).astype(int)
    settings = {"loss": "logistic", "step": 2.0, "sigma": SIGMA, "random_state": 0}
    model = SGMClassifier(**settings).partial_fit(X[:10], Y[:10]).partial_fit(X[10:], Y[10:])
    for j in range(3):
        alone = SGMClassifier(**settings).partial_fit(X[:10], Y[:10, j], classes=[0, 1])
        alone.partial_fit(X[10:], Y[10:, j])
        assert_close(model.decision_function(Z)[:, j], alone.decision_function(Z))
        assert_array_equal(model.predict(Z)[:, j], alone.predict(Z))
        assert_close(model.predict_proba(Z)[:, j], alone.predict_proba(Z)[:, 1])


def test_weights_of_classes_multiply_the_steps_of_a_stream(rows):
    X, y, Z = rows
    y = (y > 0).astype(int)
    settings = {"sigma": SIGMA, "features": "exact", "step": 0.5}
    model = SGMClassifier(**settings, class_weight={0: 3.0})
    plain = SGMClassifier(**settings)
    for i in range(42):  # most calls have rows of one class alone
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        plain.partial_fit(X[i : i + 1], y[i : i + 1], [0, 1], [3.0 if y[i] == 0 else 1.0])
    assert_close(model.decision_function(Z), plain.decision_function(Z))


# Streams that choose among steps


@pytest.mark.parametrize(("loss", "largest"), [("square", (1.0, 1.0)), ("hinge", (1.0, 8.0))])
@last_or_average
def test_a_stream_goes_by_the_losses_before_its_steps(rows, loss, largest, average):
    """2/(κ²L) is 1 for the square loss; others go from 1/κ², or 8/κ² where averaged."""
    X, y, Z = rows
    y = outputs(loss, y)
    model = make(loss, sigma=SIGMA, features="exact", average=average)
    etas = largest[average] * GUESSES
    for start, stop in [(0, 7), (7, 20), (20, 42)]:
        learn(model, X[start:stop], y[start:stop])
        found = [loop(gaussian(X, X), y, loss, in_steps(np.arange(stop)), eta) for eta in etas]
        best = int(np.argmin([one.progress for one in found]))
        assert model.step_ == pytest.approx(etas[best], rel=1e-12)
        expected = gaussian(Z, X) @ found[best].solution(average)
        assert_close(values(model, Z), expected[:, 0])
    assert model.path_ is None
    assert model.n_steps_ == 42


def test_a_stream_may_choose_the_decay_and_several_outputs_choose_together(rows):
    X, y, Z = rows
    Y = np.column_stack([y, np.sign(y)])
    steps, decays = [0.05, 0.2, 0.6], [0.0, 0.25, 0.7]
    model = SGMRegressor(sigma=SIGMA, features="exact", step=steps, decay=decays)
    stream(model, X, Y, [9])
    found = {
        (eta, theta): loop(
            gaussian(X, X), Y, "square", in_steps(np.arange(42)), eta, decay=theta
        )
        for eta in steps
        for theta in decays
    }
    best = min(found, key=lambda pair: found[pair].progress)
    assert (model.step_, model.decay_) == best
    assert_close(model.predict(Z), gaussian(Z, X) @ found[best].solution(True))


def test_steps_of_a_stream_that_overflow_are_left_out(rows):
    X, y, _ = rows
    model = SGMRegressor(sigma=SIGMA, features="exact", step=[0.3, 1e200])
    alone = SGMRegressor(sigma=SIGMA, features="exact", step=0.3)
    assert stream(model, X, y, [20]).step_ == 0.3
    assert_close(model.predict(X), stream(alone, X, y, [20]).predict(X))


# Fits, by definition


def test_every_pass_meets_every_row_once_in_an_order_of_its_own(rows):
    first, second, third = passes_of(rows[0], 3, random_state=0)
    for order in (first, second, third):
        assert_array_equal(np.sort(order), np.arange(42))
    assert (first != second).any()
    assert (second != third).any()
    (other,) = passes_of(rows[0], random_state=1)
    assert (first != other).any()


@per_space
@per_loss
@last_or_average
def test_passes_follow_the_definition(rows, space, loss, average):
    X, y, Z = rows
    y, eta = outputs(loss, y), STEPS[space]
    model = make(
        loss, step=eta, decay=0.2, epochs=2, average=average, random_state=3, **SPACES[space]
    ).fit(X, y)
    order = np.concatenate(passes_of(X, 2, random_state=3))
    found = loop(inner(model, X, X), y, loss, in_steps(order), eta, decay=0.2)
    expected = inner(model, Z, X) @ found.solution(average)
    assert_close(values(model, Z), expected[:, 0])
    assert (model.n_steps_, model.epochs_, model.stopped_) == (84, 2, "passes")
    assert model.path_ is None


@pytest.mark.parametrize("loss", REGRESSION)
def test_with_an_intercept_a_fit_begins_with_the_mean_of_the_outputs(rows, loss):
    X, y, Z = rows
    weight = np.random.default_rng(5).uniform(0.5, 3, 42)
    y = 50 + 3 * y
    model = make(
        loss, sigma=SIGMA, features="exact", step=0.3, epochs=2, intercept=True, random_state=3
    ).fit(X, y, weight)
    order = np.concatenate(passes_of(X, 2, random_state=3))
    mean, shares = np.average(y, weights=weight), weight / weight.mean()
    K = gaussian(X, X) + 1
    found = loop(K, y - mean, loss, in_steps(order), 0.3, weight=shares).solution(True)
    assert_close(model.predict(Z), mean + (gaussian(Z, X) + 1) @ found[:, 0])
    assert_close(model.intercept_, mean + found.sum())


@pytest.mark.parametrize("batch", [1, 4])
def test_weights_of_a_fit_count_by_their_ratios(rows, batch):
    X, y, Z = rows
    weight = np.random.default_rng(5).uniform(0.5, 3, 42)
    settings = {"sigma": SIGMA, "features": "exact", "step": 0.3, "batch_size": batch}
    model = SGMRegressor(**settings, random_state=3).fit(X, y, weight)
    (order,) = passes_of(X, random_state=3)
    steps, shares = in_steps(order, batch), weight / weight.mean()
    found = loop(gaussian(X, X), y, "square", steps, 0.3, weight=shares).solution(True)
    assert_close(model.predict(Z), gaussian(Z, X) @ found[:, 0])
    other = SGMRegressor(**settings, random_state=3).fit(X, y, 1e-6 * weight)
    assert_close(other.predict(Z), model.predict(Z))


@per_space
@last_or_average
def test_a_stream_goes_on_from_a_fit(rows, space, average):
    """Steps are counted from the first of the fit, and the average goes on."""
    X, y, Z = rows
    y = 100 * y
    model = SGMRegressor(
        step=0.3, decay=0.4, epochs=2, average=average, intercept=True, random_state=3,
        **SPACES[space],
    ).fit(X[:30], y[:30])  # fmt: skip
    model.partial_fit(X[30:31], y[30:31]).partial_fit(X[31:], y[31:])
    order = np.concatenate([*passes_of(X[:30], 2, random_state=3), np.arange(30, 42)])
    mean = y[:30].mean()
    found = loop(inner(model, X, X), y - mean, "square", in_steps(order), 0.3, decay=0.4)
    expected = mean + inner(model, Z, X) @ found.solution(average)
    assert_close(model.predict(Z), expected[:, 0])
    assert (model.n_steps_, model.step_, model.decay_) == (72, 0.3, 0.4)
    assert model.epochs_ == 2


def test_after_a_search_the_step_that_it_chose_goes_on(rows):
    X, y, _ = rows
    model = SGMRegressor(sigma=SIGMA, random_state=0).fit(X[:30], y[:30])
    step, path = model.step_, model.path_
    model.partial_fit(X[30:], y[30:])
    assert (model.step_, model.n_steps_) == (step, 42)
    assert model.path_ is path


def test_a_fit_forgets_what_was_learned_before(rows):
    X, y, Z = rows
    settings = {"sigma": SIGMA, "step": 0.3, "random_state": 0}
    model = SGMRegressor(**settings, features="nystrom", n_features=10).fit(X, y)
    model.partial_fit(X, y).set_params(features="exact", n_features="auto").fit(X, y)
    fresh = SGMRegressor(**settings, features="exact").fit(X, y)
    assert_array_equal(model.predict(Z), fresh.predict(Z))
    assert vars(model).keys() == vars(fresh).keys()


@pytest.mark.parametrize("space", SPACES)
def test_rows_drawn_with_replacement(rows, space):
    """Of constant slopes, coefficients count how often each row was drawn."""
    X, y, Z = rows
    counting = SGMRegressor(
        sigma=1.0, features="exact", loss="absolute", step=1.0, epochs=3, average=False,
        sampling="replacement", random_state=0,
    ).fit(X, np.full(42, 1e6))  # fmt: skip
    assert_allclose(counting.dual_coef_, np.round(counting.dual_coef_), rtol=1e-9)
    assert counting.dual_coef_.sum() == pytest.approx(3 * 42)
    assert counting.dual_coef_.max() > 4
    settings = {"step": 0.3, "random_state": 0} | SPACES[space]
    drawn = SGMRegressor(**settings, sampling="replacement").fit(X, y)
    again = SGMRegressor(**settings, sampling="replacement").fit(X, y)
    shuffled = SGMRegressor(**settings).fit(X, y)
    assert drawn.n_steps_ == 42
    assert_array_equal(drawn.predict(Z), again.predict(Z))
    assert np.abs(drawn.predict(Z) - shuffled.predict(Z)).max() > 1e-3


def test_attributes_are_the_weights(rows):
    X, y, Z = rows
    models = {
        space: SGMRegressor(step=0.3, intercept=True, random_state=0, **settings).fit(X, y)
        for space, settings in SPACES.items()
    }
    for space, model in models.items():
        assert model.features_ == space
    exact, linear = models["exact"], models["linear"]
    K = gaussian(Z, exact.X_fit_)
    assert_close(exact.predict(Z), K @ exact.dual_coef_ + exact.intercept_)
    assert_close(linear.predict(Z), Z @ linear.coef_ + linear.intercept_)
    for space in ("nystrom", "random"):
        model = models[space]
        expected = model.map_.transform(Z) @ model.feature_coef_ + model.intercept_
        assert_close(model.predict(Z), expected)
    assert models["exact"].map_ is None
    assert models["linear"].map_ is None


def test_points_without_a_coefficient_are_not_kept(rows):
    """Rows far on the right side of the margin do not move the hinge loss."""
    X, _, Z = rows
    y = np.where(X[:, 0] > 0, 1, -1)
    X = X + 3 * y[:, None] * np.array([1.0, 0, 0])
    model = SGMClassifier(sigma=3.0, features="exact", step=2.0, random_state=0).fit(X, y)
    assert 0 < len(model.X_fit_) < 42
    assert len(model.X_fit_) == len(model.dual_coef_)
    K = np.exp(-((Z[:, None] - model.X_fit_[None]) ** 2).sum(axis=2) / 18)
    assert_close(model.decision_function(Z), K @ model.dual_coef_[:, 0])


# Step sizes

RULES = {
    "smooth-constant": lambda n, b: (n**-0.5, 0, n ** ((1 - b) / (2 * (1 + b)))),
    "smooth-decaying": lambda n, b: (1, 0.5, n ** ((1 - b) / (1 + b))),
    "smooth-one-pass-constant": lambda n, b: (n ** (-b / (b + 1)), 0, 1),
    "smooth-one-pass-decaying": lambda n, b: (1, b / (b + 1), 1),
    "nonsmooth-constant": lambda n, b: (n**-0.5, 0, n ** ((1 - 2 * b) / (4 * b + 2))),
    "nonsmooth-decaying": lambda n, b: (1, 0.5, n ** ((1 - 2 * b) / (2 * b + 1))),
    "nonsmooth-one-pass-constant": lambda n, b: (n ** (-2 * b / (2 * b + 1)), 0, 1),
    "nonsmooth-one-pass-decaying": lambda n, b: (1, 2 * b / (2 * b + 1), 1),
}


@pytest.mark.parametrize("beta", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("name", RULES)
def test_rules_are_those_of_the_corollaries(rows, name, beta):
    """Corollaries 2 to 9, the numbers of steps divided by n and rounded up."""
    X, y, _ = rows
    eta, theta, epochs = RULES[name](42, beta)
    loss = "logistic" if name.startswith("smooth") else "hinge"
    # 2/(κ²L) is 8 for the logistic loss, whose L is ¼.
    first = 8 if name.startswith("smooth") else 1
    epochs = max(1, int(np.ceil(epochs - 1e-9)))
    model = SGMClassifier(
        sigma=SIGMA, loss=loss, step=name, beta=beta, epochs="rule", random_state=0
    ).fit(X, y > 0)
    assert model.step_ == pytest.approx(first * eta)
    assert model.decay_ == pytest.approx(theta)
    assert (model.epochs_, model.n_steps_) == (epochs, 42 * epochs)
    assert model.path_ is None
    plain = SGMClassifier(
        sigma=SIGMA, loss=loss, step=model.step_, decay=model.decay_, epochs=epochs,
        random_state=0,
    ).fit(X, y > 0)  # fmt: skip
    assert_close(model.decision_function(X), plain.decision_function(X))


def test_a_rule_may_be_an_object_and_make_any_number_of_passes(rows):
    X, y, _ = rows
    named = SGMRegressor(sigma=SIGMA, step="smooth-decaying", epochs=3, random_state=0)
    given = SGMRegressor(sigma=SIGMA, step=step_rule("smooth-decaying"), epochs=3)
    assert named.fit(X, y).epochs_ == 3
    predictions = given.set_params(random_state=0).fit(X, y).predict(X)
    assert_array_equal(named.predict(X), predictions)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_first_step_is_as_long_as_the_features_allow(rows, intercept):
    """η₁ = 2/(κ²L), κ² being the largest K(x, x), and 1 more with an intercept."""
    X, y, _ = rows
    sizes = {
        "gaussian": 1.0,
        "linear": (X**2).sum(axis=1).max(),
        Polynomial(2): ((X**2).sum(axis=1) + 1).max() ** 2,
    }
    for kernel, size in sizes.items():
        model = SGMRegressor(
            kernel, step="smooth-decaying", intercept=intercept, random_state=0
        ).fit(X, y)
        assert model.step_ == pytest.approx(1 / (size + intercept))


@pytest.mark.parametrize("loss", ["hinge", "absolute", "exponential", EpsilonInsensitive(0.3)])
def test_smooth_rules_are_for_smooth_losses(rows, loss):
    X, y, _ = rows
    for name in RULES:
        model = SGMClassifier(sigma=SIGMA, loss=loss, step=name)
        if name.startswith("nonsmooth"):
            model.fit(X, y > 0)
            continue
        with pytest.raises(ValueError, match=f"use 'non{name}'"):
            model.fit(X, y > 0)


def test_a_rule_goes_by_the_rows_that_are_fitted(rows):
    """Steps of the search are those of 30 rows, and of the model those of 42."""
    X, y, _ = rows
    split = (np.arange(30), np.arange(30, 42))
    settings = {"sigma": SIGMA, "step": "smooth-constant", "batch_size": 42}
    model = SGMRegressor(**settings, epochs=[1, 2, 3], validation=[split]).fit(X, y)
    assert model.step_ == pytest.approx(42**-0.5)
    for epochs, error in zip([1, 2, 3], model.path_.errors, strict=True):
        part = SGMRegressor(**settings, epochs=epochs).fit(X[:30], y[:30])
        assert part.step_ == pytest.approx(30**-0.5)
        assert error == pytest.approx(np.sqrt(np.mean((part.predict(X[30:]) - y[30:]) ** 2)))


def test_a_stream_takes_the_rules_that_do_not_ask_for_n(rows):
    X, y, Z = rows
    model = SGMRegressor(
        sigma=SIGMA, features="exact", step="smooth-one-pass-decaying", beta=0.5
    )
    stream(model, X, y, [5])
    steps = in_steps(np.arange(42))
    found = loop(gaussian(X, X), y, "square", steps, 1.0, decay=1 / 3).solution(True)
    assert_close(model.predict(Z), gaussian(Z, X) @ found[:, 0])
    with pytest.raises(ValueError, match="depends on the number of rows"):
        SGMRegressor(sigma=SIGMA, step="smooth-constant").partial_fit(X, y)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("loss", "largest"),
    [("square", 1), ("logistic", 8), ("hinge", 8), ("absolute", 8), ("exponential", 8)],
)
def test_thirty_steps_are_tried(rows, loss, largest, intercept):
    """Of outputs ±1, absolute and exponential slopes at 0 are 1 as well."""
    X, y, _ = rows
    model = SGMClassifier(sigma=SIGMA, loss=loss, intercept=intercept, random_state=0)
    model.fit(X, y > 0)
    axes = model.path_.axes
    assert list(axes) == ["step"]
    assert_allclose(axes["step"], largest / (1 + intercept) * GUESSES)
    assert model.path_.errors.shape == (30,)
    assert model.step_ == model.path_.best["step"]


def test_steps_that_are_tried_have_the_units_of_the_outputs(rows):
    X, y, _ = rows
    for scale in (1e-3, 1.0, 1e3):
        model = SGMRegressor(sigma=SIGMA, loss="absolute", random_state=0).fit(X, scale * y)
        largest = 8 * scale * np.sqrt(np.mean(y**2))
        assert_allclose(model.path_.axes["step"], largest * GUESSES)


def test_thirty_decays_are_tried(rows):
    X, y, _ = rows
    model = SGMClassifier(sigma=SIGMA, decay="auto", random_state=0).fit(X, y > 0)
    assert list(model.path_.axes) == ["decay"]
    assert_allclose(model.path_.axes["decay"], np.arange(30) / 29)
    assert model.step_ == pytest.approx(1 / 4)
    assert model.decay_ == model.path_.best["decay"]
    given = SGMClassifier(sigma=SIGMA, decay="auto", step=0.25, random_state=0).fit(X, y > 0)
    assert_allclose(given.path_.errors, model.path_.errors)


def test_the_step_of_decays_that_are_tried_has_the_units_of_the_outputs(rows):
    X, y, _ = rows
    for scale in (1e-3, 1e3):
        model = SGMRegressor(sigma=SIGMA, loss="absolute", decay="auto", random_state=0)
        expected = scale * np.sqrt(np.mean(y**2)) / 4
        assert model.fit(X, scale * y).step_ == pytest.approx(expected)


# The search


@pytest.fixture
def split(rows):
    """A split of forty-two rows."""
    shuffled = np.random.default_rng(2).permutation(42)
    return shuffled[:31], shuffled[31:]


def rmse(y, f):
    return np.sqrt(np.mean((y - f) ** 2))


@per_space
@last_or_average
def test_errors_of_the_search_follow_the_definition(rows, split, space, average):
    X, y, _ = rows
    fitted, held = split
    steps, decays, epochs = [0.01, 0.1, 0.4], [0.0, 0.5], [1, 3]
    model = SGMRegressor(
        step=steps, decay=decays, epochs=epochs, average=average, validation=[split],
        patience=None, random_state=0, **SPACES[space],
    ).fit(X, y)  # fmt: skip
    path = model.path_
    assert list(path.axes) == ["step", "decay", "epochs"]
    assert path.errors.shape == path.losses.shape == (3, 2, 2)
    passes = walked(X, 3, [split], random_state=0)
    assert {frozenset(order.tolist()) for order in passes} == {frozenset(fitted.tolist())}
    K = inner(model, X, X)
    for i, eta in enumerate(steps):
        for j, theta in enumerate(decays):
            for k, count in enumerate(epochs):
                order = np.concatenate(passes[:count])
                found = loop(K, y, "square", in_steps(order), eta, decay=theta)
                f = (K[held] @ found.solution(average))[:, 0]
                assert path.errors[i, j, k] == pytest.approx(rmse(y[held], f), rel=1e-8)
                assert path.losses[i, j, k] == pytest.approx(rmse(y[held], f) ** 2, rel=1e-8)
    i, j, k = np.unravel_index(np.argmin(path.errors), (3, 2, 2))
    assert (model.step_, model.decay_, model.epochs_) == (steps[i], decays[j], epochs[k])
    assert path.best["error"] == path.errors.min()


@pytest.mark.parametrize("loss", ["absolute", "epsilon_insensitive"])
def test_regression_is_selected_by_its_loss(rows, split, loss):
    X, y, _ = rows
    held = split[1]
    y = 1000 * y
    weight = np.random.default_rng(5).uniform(0.5, 3, 42)
    steps = [10.0, 100.0, 1000.0]
    model = SGMRegressor(
        sigma=SIGMA, features="exact", loss=loss, step=steps, validation=[split],
        random_state=0,
    ).fit(X, y, weight)  # fmt: skip
    (order,) = walked(X, 1, [split], random_state=0)
    K, shares = gaussian(X, X), weight / weight.mean()
    for eta, error, mean in zip(steps, model.path_.errors, model.path_.losses, strict=True):
        found = loop(K, y, loss, in_steps(order), eta, weight=shares).solution(True)
        lost = VALUES[loss](y[held], (K[held] @ found)[:, 0])
        assert error == pytest.approx(np.average(lost, weights=weight[held]))
        assert mean == pytest.approx(error)
    assert model.step_ == steps[np.argmin(model.path_.errors)]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_classes_are_selected_by_their_errors_and_ties_by_the_loss(rows, split, loss):
    X, y, _ = rows
    held = split[1]
    y = np.digitize(y, [-0.5, 0.5])
    steps = [0.02, 0.05, 0.1, 0.5, 1.0]
    model = SGMClassifier(
        sigma=SIGMA, features="exact", loss=loss, step=steps, validation=[split], random_state=0
    ).fit(X, y)
    (order,) = walked(X, 1, [split], random_state=0)
    K, Y = gaussian(X, X), np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    found = []
    for eta in steps:
        F = K[held] @ loop(K, Y, loss, in_steps(order), eta).solution(True)
        found.append((np.mean(F.argmax(axis=1) != y[held]), np.mean(VALUES[loss](Y[held], F))))
    assert_allclose(model.path_.errors, [error for error, _ in found])
    assert_allclose(model.path_.losses, [mean for _, mean in found])
    assert len({error for error, _ in found}) < len(found)
    assert model.step_ == steps[found.index(min(found))]


@pytest.mark.parametrize("grid", [{"epochs": [1, 2]}, {"epochs": [2, 5], "decay": [0.1, 0.3]}])
def test_steps_side_by_side_are_as_if_alone(rows, split, grid):
    X, y, _ = rows
    settings = {"sigma": SIGMA, "validation": [split], "patience": None, "random_state": 0}
    together = SGMRegressor(step=[0.03, 0.1, 0.3], **settings, **grid).fit(X, y)
    for i, eta in enumerate([0.03, 0.1, 0.3]):
        alone = SGMRegressor(step=eta, **settings, **grid).fit(X, y)
        assert_close(together.path_.errors[i], alone.path_.errors, rtol=1e-10)
        assert_close(together.path_.losses[i], alone.path_.losses, rtol=1e-10)


def test_folds_are_judged_together(rows):
    X, y, _ = rows
    pairs = [(np.flatnonzero(np.arange(42) % 3 != i), np.arange(i, 42, 3)) for i in range(3)]
    weight = np.random.default_rng(5).uniform(0.5, 3, 42)
    settings = {"sigma": SIGMA, "epochs": [1, 2], "batch_size": 42}
    model = SGMRegressor(step=[0.5, 1.5], validation=pairs, **settings).fit(X, y, weight)
    for i, eta in enumerate([0.5, 1.5]):
        for k, epochs in enumerate([1, 2]):
            squares = np.empty(42)
            for fitted, held in pairs:
                # A step has the weights of its rows over the mean of all, not of the fold.
                step = eta * weight[fitted].mean() / weight.mean()
                part = SGMRegressor(**(settings | {"epochs": epochs}), step=step)
                part.fit(X[fitted], y[fitted], weight[fitted])
                squares[held] = (part.predict(X[held]) - y[held]) ** 2
            expected = np.sqrt(np.average(squares, weights=weight))
            assert model.path_.errors[i, k] == pytest.approx(expected)


@pytest.mark.parametrize("validation", [0.2, 0.5])
def test_one_pass_goes_on_over_the_rows_held_out(rows, validation):
    X, y, Z = rows
    (order,) = walked(X, 1, validation, random_state=0)
    n = 42 - round(42 * validation)
    assert len(order) == n
    (whole,) = passes_of(X, 1, validation=validation, step=[0.5, 1.0], random_state=0)
    assert_array_equal(whole[:n], order)
    assert_array_equal(np.sort(whole), np.arange(42))
    model = SGMRegressor(
        sigma=SIGMA, features="exact", step=[0.1, 0.3], validation=validation, random_state=0
    ).fit(X, y)
    found = loop(gaussian(X, X), y, "square", in_steps(whole), model.step_).solution(True)
    assert_close(model.predict(Z), gaussian(Z, X) @ found[:, 0])
    assert (model.n_steps_, model.epochs_) == (42, 1)


ANEW = {
    "folds": {"validation": 3},
    "pairs": {"validation": [(np.arange(30), np.arange(30, 42)), (np.arange(12, 42), [0, 1])]},
    "a pair that leaves rows out": {"validation": [(np.arange(30), np.arange(30, 40))]},
    "several passes": {"epochs": 2},
    "a grid of passes": {"epochs": [1, 2]},
}


@pytest.mark.parametrize("how", ANEW)
def test_otherwise_the_model_is_trained_anew_on_all_rows(rows, how):
    X, y, Z = rows
    settings = {"sigma": SIGMA, "random_state": 0, "features": "exact"}
    model = SGMRegressor(step=[0.05, 0.2], **settings, **ANEW[how]).fit(X, y)
    alone = SGMRegressor(step=model.step_, epochs=model.epochs_, **settings).fit(X, y)
    assert_close(model.predict(Z), alone.predict(Z), rtol=1e-10)
    assert model.n_steps_ == 42 * model.epochs_


def test_rows_drawn_with_replacement_are_drawn_anew_for_the_model(rows):
    X, y, Z = rows
    settings = {"sigma": SIGMA, "random_state": 0, "sampling": "replacement"}
    model = SGMRegressor(step=[0.05, 0.2], **settings).fit(X, y)
    alone = SGMRegressor(step=model.step_, **settings).fit(X, y)
    assert_close(model.predict(Z), alone.predict(Z), rtol=1e-10)


def test_centers_are_not_taken_from_rows_held_out(rows, split):
    X, y, _ = rows
    model = SGMRegressor(
        sigma=0.5, features="nystrom", n_features=31, step=[0.1, 0.2], validation=[split],
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert set(places(model.map_.centers, X)) <= set(split[0])


# Early stopping


@pytest.fixture
def noisy(rng):
    """Eighty rows whose errors fall for some passes, and rise from then on."""
    X = rng.normal(size=(80, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=80)


def stops(errors, patience):
    """Return after how many judgements errors have not improved for so long."""
    least, since = np.inf, 0
    for k, error in enumerate(errors, start=1):
        since = 0 if error < 0.999 * least else since + 1
        least = min(least, error)
        if since >= patience:
            return k
    return len(errors)


def test_passes_are_chosen_by_early_stopping(noisy):
    X, y = noisy
    model = SGMRegressor(sigma=0.5, epochs="auto", random_state=0).fit(X, y)
    path = model.path_
    assert list(path.axes) == ["step", "epochs"]
    assert_array_equal(path.axes["epochs"], np.arange(1, path.errors.shape[1] + 1))
    judged = np.isfinite(path.errors)
    assert judged[:, 0].all()
    # Once given up, a step size does not come back.
    assert (judged[:, 1:] <= judged[:, :-1]).all()
    assert_array_equal(np.isnan(path.losses), ~judged)
    assert not judged.all()
    assert judged[:, -1].any()
    assert model.path_.best["error"] == np.nanmin(path.errors)
    assert (model.step_, model.epochs_) == (path.best["step"], path.best["epochs"])
    assert isinstance(model.epochs_, int)
    assert model.stopped_ == "patience"
    assert model.n_steps_ == 80 * model.epochs_


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_patience_is_the_number_of_judgements_without_improvement(noisy, patience):
    X, y = noisy
    settings = {"sigma": 0.5, "step": 0.5, "validation": 0.3, "random_state": 0}
    every = SGMRegressor(epochs=range(1, 41), patience=None, **settings).fit(X, y)
    assert every.stopped_ == "passes"
    assert every.path_.errors.shape == (40,)
    assert np.isfinite(every.path_.errors).all()
    count = stops(every.path_.errors, patience)
    assert count < 40
    stopped = SGMRegressor(epochs="auto", patience=patience, **settings).fit(X, y)
    assert stopped.stopped_ == "patience"
    assert_allclose(stopped.path_.errors, every.path_.errors[:count])
    assert stopped.epochs_ == 1 + np.argmin(every.path_.errors[:count])


def test_every_step_size_has_its_own_patience(noisy):
    X, y = noisy
    settings = {"sigma": 0.5, "step": [0.02, 0.2, 0.7], "validation": 0.3, "random_state": 0}
    every = SGMRegressor(epochs=range(1, 41), patience=None, **settings).fit(X, y)
    stopped = SGMRegressor(epochs=range(1, 41), patience=3, **settings).fit(X, y)
    found = stopped.path_.errors
    for errors, part in zip(every.path_.errors, found, strict=True):
        count = int(np.isfinite(part).sum())
        assert_allclose(part[:count], errors[:count])
        assert 1 <= count <= stops(errors, 3)
    assert stopped.path_.best == every.path_.best
    assert_close(stopped.predict(X), every.predict(X))


def test_hopeless_steps_are_given_up_before_the_others(noisy):
    X, y = noisy
    model = SGMRegressor(
        sigma=0.5, step=[1e-9, 0.2], epochs=range(1, 41), validation=0.3, random_state=0
    ).fit(X, y)
    judged = np.isfinite(model.path_.errors).sum(axis=1)
    assert judged[0] < judged[1]


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("batch", [1, 5])
def test_parts_of_passes_are_judged_and_chosen(rows, split, parts, batch):
    X, y, Z = rows
    held = split[1]
    settings = {
        "sigma": SIGMA, "features": "exact", "step": 0.3, "batch_size": batch,
        "random_state": 0,
    }  # fmt: skip
    model = SGMRegressor(
        epochs=2, checks_per_epoch=parts, validation=[split], patience=None, **settings
    ).fit(X, y)
    path = model.path_
    assert list(path.axes) == ["epochs"]
    assert_allclose(path.axes["epochs"], np.arange(1, 2 * parts + 1) / parts)
    K = gaussian(X, X)
    passes = walked(X, 2, [split], random_state=0)
    steps = [step for order in passes for step in in_steps(order, batch)]
    per_pass = len(steps) // 2
    for check, error in enumerate(path.errors, start=1):
        whole, part = divmod(check, parts)
        count = whole * per_pass + int(np.round(part / parts * per_pass))
        found = loop(K, y, "square", steps[:count], 0.3).solution(True)
        assert error == pytest.approx(rmse(y[held], (K[held] @ found)[:, 0]))
    assert model.epochs_ == path.best["epochs"]
    # The model: as large a part of a pass, over all rows.
    everything = [
        step for order in passes_of(X, 2, random_state=0) for step in in_steps(order, batch)
    ]
    per_pass = -(-42 // batch)
    whole, part = divmod(round(model.epochs_ * parts), parts)
    count = whole * per_pass + int(np.round(part / parts * per_pass))
    found = loop(K, y, "square", everything[:count], 0.3).solution(True)
    assert model.n_steps_ == count
    assert_close(model.predict(Z), gaussian(Z, X) @ found[:, 0])


def test_more_judgements_than_steps_are_no_harm(rows):
    X, y, _ = rows
    model = SGMRegressor(
        sigma=SIGMA, step=0.3, batch_size=20, checks_per_epoch=7, random_state=0
    ).fit(X, y)
    assert np.isfinite(model.path_.errors).all()
    assert model.epochs_ == model.path_.best["epochs"]


@pytest.mark.parametrize("loss", ["square", "absolute"])
def test_losses_are_those_of_a_model_stopped_there(noisy, loss):
    X, y = noisy
    split = (np.arange(60), np.arange(60, 80))
    settings = {
        "sigma": 0.5, "loss": loss, "validation": [split], "random_state": 0, "step": [0.1, 0.4]
    }  # fmt: skip
    path = SGMRegressor(epochs=range(1, 6), patience=None, **settings).fit(X, y).path_
    for k in (1, 3, 5):
        model = SGMRegressor(epochs=k, progress=AT_THE_END_OF_THE_SEARCH, **settings)
        model.fit(X, y)
        assert model.stopped_ == "interrupted"
        assert len(model.X_fit_) == 60
        mean = np.mean(VALUES[loss](y[60:], model.predict(X[60:])))
        chosen = [0.1, 0.4].index(model.step_)
        assert path.losses[chosen, k - 1] == pytest.approx(mean, rel=1e-8)


def test_full_batches_are_judged_like_separate_fits(noisy):
    X, y = noisy
    split = (np.arange(60), np.arange(60, 80))
    settings = {"sigma": 0.5, "step": 2.0, "batch_size": 80}
    model = SGMRegressor(epochs=[1, 4, 9, 30], validation=[split], **settings).fit(X, y)
    for k, error in zip([1, 4, 9, 30], model.path_.errors, strict=True):
        part = SGMRegressor(epochs=k, **settings).fit(X[:60], y[:60])
        assert error == pytest.approx(rmse(y[60:], part.predict(X[60:])))


def test_of_models_without_any_loss_the_one_in_use_is_the_best_of_the_path():
    """The small step reaches the hinge loss 0 in two passes, the large one in one."""
    y = np.tile([1, -1], 6)
    model = SGMClassifier(
        "linear", step=[0.07, 0.5], epochs=[1, 2, 3], average=False, random_state=0,
        validation=[(np.arange(8), np.arange(8, 12))],
    ).fit(y[:, None], y)  # fmt: skip
    assert_array_equal(model.path_.losses == 0, [[False, True, True], [True, True, True]])
    best = model.path_.best
    assert (model.step_, model.epochs_) == (best["step"], best["epochs"])


def test_a_step_size_given_up_at_the_last_judgement_may_be_the_best():
    """Errors of both become 0; the larger step has not improved on it, but has less loss."""
    y = np.tile([1, -1], 6)
    X = y[:, None].astype(float)
    # Every step is the same, whatever the row.
    model = SGMClassifier("linear", loss="logistic", step=0.1, average=False, random_state=0)
    model.fit(-X, y)
    model.set_params(
        warm_start=True, step=[0.13, 1.0], checks_per_epoch=2, patience=1,
        validation=[(np.arange(8), np.arange(8, 12))],
    ).fit(X, y)  # fmt: skip
    assert_array_equal(model.path_.errors, [[1, 0], [0, 0]])
    assert model.step_ == 1.0
    assert model.n_steps_ == 24


def test_the_last_of_the_automatic_passes_is_warned_of(rows):
    X, _, _ = rows
    model = SGMRegressor("linear", step=1e-4, epochs="auto", random_state=0)
    with pytest.warns(SelectionWarning, match="100 passes"):
        model.fit(X, X[:, 0])
    assert model.epochs_ == 100
    assert model.stopped_ == "passes"


def test_a_width_is_chosen(rows):
    X, y, _ = rows
    settings = {"step": [0.1, 0.3], "epochs": [1, 4], "validation": 3, "random_state": 0}
    model = SGMRegressor(sigma=[0.01, SIGMA], **settings).fit(X, y)
    assert list(model.path_.axes) == ["sigma", "step", "epochs"]
    assert model.sigma_ == model.path_.best["sigma"] == SIGMA
    assert model.kernel_.sigma == SIGMA
    for i, sigma in enumerate([0.01, SIGMA]):
        alone = SGMRegressor(sigma=sigma, **settings).fit(X, y)
        assert_close(model.path_.errors[i], alone.path_.errors)
    assert_close(model.predict(X), alone.predict(X))


# Interruptions


def test_an_interrupted_search_keeps_the_best_so_far(noisy):
    X, y = noisy
    split = (np.arange(60), np.arange(60, 80))
    settings = {"sigma": 0.5, "step": [0.1, 0.4], "validation": [split], "random_state": 0}
    path = SGMRegressor(epochs=range(1, 6), **settings).fit(X, y).path_
    model = SGMRegressor(epochs="auto", progress=Stop(lambda done, *_: done == 3), **settings)
    model.fit(X, y)
    assert model.stopped_ == "interrupted"
    assert_allclose(model.path_.errors, path.errors[:, :3])
    assert model.epochs_ == model.path_.best["epochs"] <= 3
    assert model.step_ == model.path_.best["step"]
    assert model.path_.best["error"] == pytest.approx(rmse(y[60:], model.predict(X[60:])))
    assert model.n_steps_ == 60 * model.epochs_


def test_an_interrupted_last_fit_leaves_the_model_of_the_search(noisy):
    X, y = noisy
    split = (np.arange(60), np.arange(60, 80))
    model = SGMRegressor(
        sigma=0.5, step=[0.1, 0.4], epochs=[2, 4], validation=[split], random_state=0,
        progress=Stop(lambda done, total, what: what == "final passes"),
    ).fit(X, y)  # fmt: skip
    assert model.stopped_ == "interrupted"
    assert np.isfinite(model.path_.errors).all()
    assert model.path_.best["error"] == pytest.approx(rmse(y[60:], model.predict(X[60:])))


def test_a_search_over_widths_that_is_interrupted_keeps_the_best_of_those_tried(noisy):
    X, y = noisy
    split = (np.arange(60), np.arange(60, 80))
    calls = []

    def second_width(done, total, what):
        calls.append(what)
        return len(calls) == 5

    settings = {"step": [0.1, 0.4], "epochs": [1, 2, 3], "validation": [split]}
    model = SGMRegressor(
        sigma=[0.5, 5.0], progress=Stop(second_width), random_state=0, **settings
    ).fit(X, y)
    first = SGMRegressor(sigma=0.5, random_state=0, **settings).fit(X, y).path_.errors
    assert_allclose(model.path_.errors[0], first)
    assert np.isfinite(model.path_.errors[1, :, :2]).all()
    assert np.isnan(model.path_.errors[1, :, 2]).all()
    assert model.stopped_ == "interrupted"
    assert model.sigma_ == model.path_.best["sigma"]
    assert model.path_.best["error"] == pytest.approx(rmse(y[60:], model.predict(X[60:])))


@pytest.mark.parametrize("step", [0.1, [0.1, 0.2]])
@pytest.mark.parametrize("fitted", [False, True])
def test_before_the_first_judgement_an_interruption_leaves_the_model_as_it_was(
    noisy, step, fitted
):
    X, y = noisy
    model = SGMRegressor(sigma=0.5, random_state=0)
    if fitted:
        model.fit(X[:40], y[:40])
        expected = model.predict(X)
    model.set_params(progress=Stop(lambda done, *_: done == 2), step=step, epochs=5)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    if fitted:
        assert_array_equal(model.predict(X), expected)


def test_an_interrupted_model_learns_on(noisy):
    X, y = noisy
    model = SGMRegressor(
        sigma=0.5, epochs="auto", random_state=0, progress=Stop(lambda done, *_: done == 2)
    ).fit(X, y)
    steps = model.n_steps_
    assert model.partial_fit(X, y).n_steps_ == steps + 80


# Always the same


@per_space
@pytest.mark.parametrize("how", [{}, {"epochs": "auto", "validation": 3}, {"batch_size": 7}])
def test_the_same_seed_gives_the_same_model(rows, space, how):
    X, y, Z = rows
    settings = SPACES[space] | how
    first = SGMRegressor(**settings, random_state=4).fit(X, y)
    second = SGMRegressor(**settings, random_state=4).fit(X, y)
    other = SGMRegressor(**settings, random_state=5).fit(X, y)
    assert_array_equal(first.predict(Z), second.predict(Z))
    assert_array_equal(first.path_.errors, second.path_.errors)
    assert (first.predict(Z) != other.predict(Z)).any()


@per_space
def test_threads_change_nothing_but_rounding(rng, space):
    X = rng.normal(size=(400, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=400)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = SGMRegressor(epochs=[1, 2, 3], random_state=0, **SPACES[space]).fit(X, y)
            found.append((model.path_.errors, model.predict(X)))
    assert_allclose(found[0][0], found[1][0], rtol=1e-8)
    assert_close(found[0][1], found[1][1])


def test_the_default_features(rng):
    X, y = rng.normal(size=(5001, 1)), rng.normal(size=5001)
    settings = {"sigma": 0.1, "step": 0.1, "random_state": 0}
    assert SGMRegressor(**settings).fit(X[:5000], y[:5000]).features_ == "exact"
    many = SGMRegressor(**settings).fit(X, y)
    assert many.features_ == "nystrom"
    assert len(many.map_) + len(many.map_.dropped) == int(6 * np.sqrt(5001))
    assert SGMRegressor(**settings).partial_fit(X[:20], y[:20]).features_ == "random"
    assert len(SGMRegressor(**settings).partial_fit(X[:20], y[:20]).map_) == 400
    linear = SGMRegressor("linear", step=0.1).partial_fit(X[:20], y[:20])
    assert linear.features_ == "linear"
    few = SGMRegressor(**settings, n_features=15).fit(X[:100], y[:100])
    assert (few.features_, few.map_.n_given) == ("nystrom", 15)


def test_all_centers_that_are_given_are_used(rng, rows):
    X, y, _ = rows
    centers = rng.normal(size=(250, 3))
    settings = {"sigma": 0.3, "features": "nystrom", "centers": centers, "step": 0.1}
    assert SGMRegressor(**settings).fit(X, y).map_.n_given == 250
    assert SGMRegressor(**settings, n_features=99).fit(X, y).map_.n_given == 99
    assert SGMRegressor(**settings).partial_fit(X[:1], y[:1]).map_.n_given == 250


# Warm starts


@per_space
@last_or_average
@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_full_batches_go_on_where_they_were(rows, space, average, decay):
    X, y, Z = rows
    y = 5 + 20 * y
    settings = {
        "step": 0.3, "decay": decay, "batch_size": 42, "average": average, "random_state": 0,
        "intercept": True,
    } | SPACES[space]  # fmt: skip
    model = SGMRegressor(**settings, epochs=3).fit(X, y)
    model.set_params(warm_start=True, epochs=4).fit(X, y)
    whole = SGMRegressor(**settings, epochs=7).fit(X, y)
    assert_close(model.predict(Z), whole.predict(Z))
    assert_close(model.intercept_, whole.intercept_)
    assert model.n_steps_ == whole.n_steps_ == 7
    assert model.epochs_ == 4


@per_space
@last_or_average
def test_a_warm_start_goes_on_with_other_rows(rows, space, average):
    """Outputs of another size are learned in their own units."""
    X, y, Z = rows
    y = np.concatenate([y[:20], 1000 * y[20:]])
    settings = {"step": 0.3, "decay": 0.25, "average": average, "random_state": 0}
    model = SGMRegressor(**settings, warm_start=True, **SPACES[space])
    model.fit(X[:20], y[:20]).fit(X[20:], y[20:])
    (first,), (second,) = (passes_of(part, random_state=0) for part in (X[:20], X[20:]))
    order = np.concatenate([first, 20 + second])
    found = loop(inner(model, X, X), y, "square", in_steps(order), 0.3, decay=0.25)
    assert_close(model.predict(Z), (inner(model, Z, X) @ found.solution(average))[:, 0])
    assert model.n_steps_ == 42


def test_a_warm_start_of_a_new_model_is_a_fit(rows):
    X, y, Z = rows
    settings = {"sigma": SIGMA, "step": 0.3, "random_state": 0}
    warm = SGMRegressor(**settings, warm_start=True).fit(X, y)
    assert_array_equal(warm.predict(Z), SGMRegressor(**settings).fit(X, y).predict(Z))


def test_a_warm_start_keeps_the_features_and_the_width(rows):
    X, y, _ = rows
    model = SGMRegressor(features="fourier", n_features=20, step=0.1, random_state=0).fit(X, y)
    map, sigma = model.map_, model.sigma_
    model.set_params(warm_start=True, random_state=1).fit(3 * X, y)
    assert model.map_ is map
    assert model.sigma_ == sigma


def test_a_warm_start_may_search(rows, split):
    """Every step size begins where the model is."""
    X, y, _ = rows
    fitted, held = split
    model = SGMRegressor(sigma=SIGMA, features="exact", step=0.3, batch_size=42).fit(X, y)
    model.set_params(warm_start=True, step=[0.2, 0.6], validation=[split], average=False)
    before = model.dual_coef_
    first = loop(gaussian(X, X), y, "square", [np.arange(42)], 0.3).solution(False)[:, 0]
    model.fit(X, y)
    K = gaussian(X, X)
    for eta, error in zip([0.2, 0.6], model.path_.errors, strict=True):
        c = first.copy()
        c[fitted] += eta * 2 * (y[fitted] - K[fitted] @ first) / len(fitted)
        assert error == pytest.approx(rmse(y[held], K[held] @ c))
    assert len(before) == 42


@per_space
def test_the_average_of_a_warm_start_has_the_weights_of_all_steps(rows, space):
    X, y, Z = rows
    settings = {"batch_size": 42, "intercept": True, "random_state": 0} | SPACES[space]
    model = SGMRegressor(**settings, step=0.3, epochs=2).fit(X, y)
    model.set_params(warm_start=True, step=0.05, epochs=3).fit(X, y)
    K, mean = inner(model, X, X), y.mean()
    C, weighted = np.zeros(42), np.zeros(42)
    for eta in (0.3, 0.3, 0.05, 0.05, 0.05):
        weighted += eta * C
        C = C - eta * 2 * (K @ C - y + mean) / 42
    assert_close(model.predict(Z), mean + inner(model, Z, X) @ weighted / 0.75)
    assert model.step_ == 0.05


def test_an_average_that_was_not_kept_begins_with_the_next_step(rows):
    X, y, Z = rows
    settings = {"sigma": SIGMA, "features": "exact", "step": 0.3, "batch_size": 42}
    model = SGMRegressor(**settings, average=False, epochs=3).fit(X, y)
    model.set_params(warm_start=True, average=True, epochs=2).fit(X, y)
    iterates = loop(gaussian(X, X), y, "square", 5 * [np.arange(42)], 0.3).iterates
    expected = (iterates[3] + iterates[4]) / 2
    assert_close(model.predict(Z), gaussian(Z, X) @ expected[:, 0])


def test_a_warm_start_keeps_where_the_weights_live(rng):
    """More rows, or other settings, do not change the features of a model."""
    X, y = rng.normal(size=(5001, 1)), rng.normal(size=5001)
    settings = {"sigma": 1.0, "step": 0.1, "warm_start": True, "random_state": 0}
    model = SGMRegressor(**settings).fit(X[:10], y[:10])
    assert model.fit(X, y).features_ == "exact"
    stream = SGMRegressor(**settings).partial_fit(X[:30], y[:30])
    map = stream.map_
    assert stream.fit(X[:30], y[:30]).features_ == "random"
    assert stream.map_ is map
    assert stream.n_steps_ == 60


def test_a_warm_start_with_an_intercept_that_there_was_not(rows):
    """The model begins where it was, whatever has changed: steps are next to nothing."""
    X, y, Z = rows
    y = 100 + y
    settings = {"sigma": SIGMA, "step": 0.1, "average": False, "random_state": 0}
    for first in (False, True):
        model = SGMRegressor(**settings, intercept=first).fit(X, y)
        before = model.predict(Z)
        model.set_params(warm_start=True, intercept=not first, step=1e-12).fit(X, y)
        assert_allclose(model.predict(Z), before, rtol=1e-8)
        model.partial_fit(X, y)
        assert_allclose(model.predict(Z), before, rtol=1e-8)


def test_a_warm_start_of_a_classifier(rows):
    X, y, Z = rows
    y = np.digitize(y, [-0.5, 0.5])
    settings = {"sigma": SIGMA, "loss": "logistic", "step": 2.0, "batch_size": 42}
    model = SGMClassifier(**settings, epochs=3).fit(X, y)
    model.set_params(warm_start=True, epochs=4).fit(X, y)
    whole = SGMClassifier(**settings, epochs=7).fit(X, y)
    assert_close(model.decision_function(Z), whole.decision_function(Z))


# Classifiers


PROBABILITIES = {
    "logistic": lambda f: 1 / (1 + np.exp(-f)),
    "exponential": lambda f: 1 / (1 + np.exp(-2 * f)),
    "square": lambda f: np.clip((1 + f) / 2, 0, 1),
}


@pytest.mark.parametrize("loss", PROBABILITIES)
def test_probabilities_are_those_that_the_target_function_tells(rows, loss):
    X, y, Z = rows
    model = SGMClassifier(sigma=SIGMA, loss=loss, step=0.4, epochs=5, random_state=0)
    model.fit(X, np.where(y > 0, "yes", "no"))
    P, f = model.predict_proba(Z), model.decision_function(Z)
    assert P.shape == (9, 2)
    assert_allclose(P.sum(axis=1), 1)
    assert_allclose(P[:, 1], PROBABILITIES[loss](f))
    inside = (P[:, 1] > 0) & (P[:, 1] < 1)
    assert_allclose(imparo.losses.as_loss(loss).target(P[inside, 1]), f[inside], rtol=1e-6)
    assert_array_equal(model.predict(Z), np.where(P[:, 1] > 0.5, "yes", "no"))


@pytest.mark.parametrize("loss", PROBABILITIES)
def test_probabilities_of_several_classes_sum_to_1(rows, loss):
    X, y, Z = rows
    model = SGMClassifier(sigma=SIGMA, loss=loss, step=0.4, epochs=5, random_state=0)
    model.fit(X, np.digitize(y, [-0.5, 0.5]))
    Z = np.vstack([Z, np.full((1, 3), 1e3)])
    P = PROBABILITIES[loss](model.decision_function(Z))
    assert_allclose(model.predict_proba(Z), P / P.sum(axis=1, keepdims=True))
    assert_allclose(model.predict_proba(Z).sum(axis=1), 1)


def test_classes_that_are_all_impossible_are_as_likely(rows):
    X, y, _ = rows
    model = SGMClassifier("linear", loss="square", step=0.01).fit(
        X, np.digitize(y, [-0.5, 0.5])
    )
    model.coef_ = np.full((3, 3), -1.0)
    assert_allclose(model.predict_proba(np.ones((1, 3))), 1 / 3)


@pytest.mark.parametrize(
    "loss", ["hinge", "absolute", "epsilon_insensitive", EpsilonInsensitive(1.0)]
)
def test_losses_that_tell_the_likelier_class_have_no_probabilities(rows, loss):
    model = SGMClassifier(sigma=SIGMA, loss=loss, step=0.1)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model.fit(rows[0], rows[1] > 0), "predict_proba")
    assert hasattr(model.set_params(loss=Logistic()), "predict_proba")


def test_weights_of_classes_are_weights_of_their_rows(rows):
    X, y, Z = rows
    y = np.digitize(y, [-0.5, 1.5])
    counts = np.bincount(y)
    assert len(set(counts)) == 3
    given = {0: 1.0, 1: 2.0, 2: 5.0}
    balanced = {j: 42 / (3 * count) for j, count in enumerate(counts)}
    own = np.random.default_rng(5).uniform(0.5, 3, 42)
    for class_weight, of_class in ((given, given), ("balanced", balanced)):
        settings = {"sigma": SIGMA, "step": [0.1, 0.3], "random_state": 0}
        model = SGMClassifier(**settings, class_weight=class_weight).fit(X, y, own)
        weight = own * np.array([of_class[j] for j in y])
        plain = SGMClassifier(**settings).fit(X, y, weight)
        assert_close(model.decision_function(Z), plain.decision_function(Z))
        assert_allclose(model.path_.errors, plain.path_.errors)


def test_digits():
    X, y = load_digits(return_X_y=True)
    names = np.array(list("abcdefghij"))[y]
    model = SGMClassifier(sigma=22.0, features="nystrom", n_features=200, random_state=0)
    model.fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.93
    before = model.score(X[1::2], names[1::2])
    model.set_params(epochs="auto").fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > max(0.95, before)


# Files


@per_space
@pytest.mark.parametrize("loss", ["absolute", "logistic"])
def test_a_saved_model_predicts_and_learns_on_as_before(rows, tmp_path, space, loss):
    X, y, Z = rows
    y = outputs(loss, y)
    model = make(loss, epochs=[1, 2], intercept=True, random_state=0, **SPACES[space])
    model.fit(X[:30], y[:30])
    imparo.save(model, tmp_path / "model")
    again = imparo.load(tmp_path / "model")
    assert_array_equal(values(again, Z), values(model, Z))
    for one in (model, again):
        one.partial_fit(X[30:], y[30:])
    assert_array_equal(values(again, Z), values(model, Z))
    assert (again.n_steps_, again.step_) == (model.n_steps_, model.step_)
    assert_array_equal(again.path_.errors, model.path_.errors)


@per_space
def test_a_saved_stream_goes_on_with_all_its_steps(rows, tmp_path, space):
    X, y, Z = rows
    model = SGMRegressor(random_state=0, **SPACES[space]).partial_fit(X[:10], y[:10])
    imparo.save(model, tmp_path / "model")
    again = imparo.load(tmp_path / "model")
    for one in (model, again):
        one.partial_fit(X[10:], y[10:])
    assert again.step_ == model.step_
    assert_array_equal(again.predict(Z), model.predict(Z))
