"""Stochastic gradients: interruptions, repeats, warm starts, classifiers and files."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import imparo
from imparo import SGMClassifier, SGMRegressor
from imparo.losses import EpsilonInsensitive, Logistic
from model_tools import values
from sgm_tools import (
    SIGMA,
    SPACES,
    Stop,
    assert_close,
    few_rows,
    gaussian,
    in_steps,
    inner,
    last_or_average,
    loop,
    make,
    noisy_rows,
    outputs,
    passes_of,
    per_space,
    rmse,
    two_sides,
)

rows = pytest.fixture(few_rows)
split = pytest.fixture(two_sides)
noisy = pytest.fixture(noisy_rows)


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
