"""Stochastic gradient estimators: loops over rows by the definition are the references."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from imparo import KernelRegressor, SGMClassifier, SGMRegressor
from imparo.filters import Landweber
from model_tools import values
from sgm_tools import (
    GUESSES,
    REGRESSION,
    SIGMA,
    SPACES,
    VALUES,
    assert_close,
    few_rows,
    gaussian,
    in_steps,
    inner,
    last_or_average,
    learn,
    loop,
    make,
    outputs,
    passes_of,
    per_space,
    stream,
)

rows = pytest.fixture(few_rows)


# Steps that all losses bear: columns go up to ‖x‖² = 10.
STEPS = {"exact": 0.4, "nystrom": 0.4, "random": 0.4, "linear": 0.04}


per_loss = pytest.mark.parametrize("loss", VALUES)


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
