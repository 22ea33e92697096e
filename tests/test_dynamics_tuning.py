"""Test-then-learn and the choice of σ and λ, against loops that train each model by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import imparo
from dynamics_tools import Folded, arm, rows_and_outputs, waves, weighted_ridge
from imparo.dynamics import (
    NonparametricDynamics,
    ParametricDynamics,
    SemiparametricDynamics,
    output_groups,
    prequential,
    tune,
    windowed_rmse,
)
from imparo.dynamics.tuning import _cautious
from imparo.persistence import fingerprint

SIGMAS, PENALTIES = (0.7, 2.0, 8.0), (1e-3, 0.1, 10.0)


def data(n=260, seed=0):
    return rows_and_outputs(Folded(2, 5), n, seed, noise=0.1, bent=2.0)


def kernels(**options):
    return NonparametricDynamics(**{"n_features": 16, "penalty": 0.1, **options})


def both(**options):
    return SemiparametricDynamics(ParametricDynamics(Folded(2, 5), **options), kernels())


def unrevised():
    return both().set_params(revise=False)


MODELS = {"kernels": kernels, "both": both, "unrevised": unrevised}


# Test, then learn.


@pytest.mark.parametrize("name", list(MODELS))
def test_a_stream_is_predicted_before_it_is_learned(name):
    X, Y = data(60)
    model = MODELS[name]()
    expected = np.zeros_like(Y)
    for i in range(1, 60):  # from scratch each time
        past = MODELS[name]().fit(X[:i], Y[:i])
        expected[i] = past.predict(X[i : i + 1])[0]
    found = prequential(model, X, Y)
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    assert model.n_seen_ == 60
    more = data(20, seed=1)
    assert_allclose(prequential(model, *more)[0], MODELS[name]().fit(X, Y).predict(more[0])[0])
    assert model.n_seen_ == 80


def test_progress_is_told_after_each_sample():
    told = []
    prequential(kernels(), *data(7), progress=told.append)
    assert told == [1, 2, 3, 4, 5, 6, 7]


def test_a_stream_takes_vectors_lists_and_a_learner_that_knows_something():
    X, Y = data(30)
    expected = prequential(kernels(), X, Y[:, :1])[:, 0]
    assert_allclose(prequential(kernels(), X.tolist(), Y[:, 0].tolist()), expected)
    known = kernels().fit(X, Y)
    assert_allclose(prequential(known, X[:1], Y[:1]), kernels().fit(X, Y).predict(X[:1]))


def test_a_stream_of_unequal_lengths_is_refused_before_anything_is_learned():
    X, Y = data(30)
    model = kernels().fit(X, Y)
    before = fingerprint(model)
    for rows, outputs in ((X, Y[:20]), (X[:20], Y)):
        with pytest.raises(ValueError, match="rows"):
            prequential(model, rows, outputs)
    assert fingerprint(model) == before


def test_a_learner_that_is_never_fitted_is_not_taken_for_a_fresh_one():
    class Broken:
        def predict(self, X):
            raise NotFittedError

        def partial_fit(self, X, y):
            pass

    with pytest.raises(NotFittedError):
        prequential(Broken(), *data(5))


errors = arrays(
    float,
    st.tuples(st.integers(1, 40), st.integers(1, 3)),
    elements=st.floats(-1e8, 1e8).map(lambda x: 0.0 if abs(x) < 1e-100 else x),
)


@given(errors, st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_errors_of_a_window_are_those_of_its_samples(E, window):
    expected = np.empty_like(E)
    for i in range(len(E)):
        part = E[max(0, i - window + 1) : i + 1]
        expected[i] = np.sqrt(np.mean(part**2, axis=0))
    assert_allclose(windowed_rmse(E, window), expected, rtol=1e-10)


def test_errors_that_are_over_leave_no_trace_in_later_windows():
    E = np.full((100, 1), 1e-3)
    E[:5] = 1e8
    assert_allclose(windowed_rmse(E, 10)[20:], 1e-3, rtol=1e-12)
    E[3] = np.nan
    found = windowed_rmse(E, 10)
    assert np.isnan(found[3:13]).all()
    assert_allclose(found[14:], 1e-3, rtol=1e-12)
    assert_allclose(windowed_rmse([[3.0], [4.0]], 10**9)[-1], np.sqrt(12.5))


@pytest.mark.parametrize(
    ("E", "window"),
    [([1.0, 2.0], 3), ([[]], 0), (np.zeros((0, 2)), 3), ([[1.0]], 2.5), ([[1.0]], -1)],
)
def test_windows_of_nothing_are_refused(E, window):
    with pytest.raises(ValueError, match="were expected"):
        windowed_rmse(E, window)


def test_outputs_of_one_unit_are_grouped():
    wrench = ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
    assert dict(output_groups(wrench)) == {"force (N)": [0, 1, 2], "torque (Nm)": [3, 4, 5]}
    joints = tuple(f"joint_{k}" for k in range(1, 7))
    assert dict(output_groups(joints)) == {"torque (Nm)": list(range(6))}
    assert dict(output_groups(list(wrench))) == dict(output_groups(wrench))


# The choice of width and penalty.


def stretches(n, count):
    """Which samples are held out, for each of so many stretches of nearly equal length."""
    return [np.array([i * count // n == k for i in range(n)]) for k in range(count)]


def losses_by_training(model, X, Y, held):
    """Train each pair by itself, without forgetting, and predict the samples held out."""
    size, found = Y.std(axis=0), np.empty((len(SIGMAS), len(PENALTIES)))
    prefix = "nonparametric__" if isinstance(model, SemiparametricDynamics) else ""
    for i, sigma in enumerate(SIGMAS):
        for j, penalty in enumerate(PENALTIES):
            one = clone(model).set_params(
                **{f"{prefix}sigma": sigma, f"{prefix}penalty": penalty}
            )
            one.fit(X[~held], Y[~held])
            found[i, j] = np.mean(((one.predict(X[held]) - Y[held]) / size) ** 2)
    return found


def splits_of(kind, n):
    if kind == "share":
        return 0.3, [np.arange(n) >= n - round(0.3 * n)]
    if kind == "mask":
        mask = np.zeros(n, bool)
        mask[50:120] = True
        return mask, [mask]
    return kind, stretches(n, kind)


def chosen_by_hand(losses, usual):
    """Return of the pairs about as good as the best the usual width, and the most penalty."""
    mean = losses.mean(axis=0)
    best = np.unravel_index(mean.argmin(), mean.shape)
    near = []
    for i, sigma in enumerate(SIGMAS):
        for j, penalty in enumerate(PENALTIES):
            behind = [one[i, j] - one[best] for one in losses]
            doubt = np.std(behind, ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0.0
            if np.mean(behind) <= max(doubt, 0.02 * mean.min()):
                near.append((abs(np.log(sigma / usual)), -penalty, sigma))
    _, penalty, sigma = min(near)
    return sigma, -penalty


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("kind", ["share", "mask", 3])
def test_errors_are_those_of_training_each_pair_by_itself(name, kind):
    X, Y = data()
    Y[:, 1] *= 20  # units must not matter
    model = MODELS[name]()
    validation, splits = splits_of(kind, len(X))
    tuned = tune(model, X, Y, sigmas=SIGMAS, penalties=PENALTIES, validation=validation)
    losses = np.array([losses_by_training(model, X, Y, held) for held in splits])
    assert_allclose(tuned.errors, np.sqrt(losses.mean(axis=0)), rtol=1e-6)
    assert_array_equal(tuned.sigmas, SIGMAS)
    assert_array_equal(tuned.penalties, PENALTIES)
    usual = np.sqrt(12) if name == "kernels" else np.sqrt(16)
    assert tuned.best == chosen_by_hand(losses, usual)
    part = tuned.model if name == "kernels" else tuned.model.nonparametric
    assert (part.sigma, part.penalty) == tuned.best
    assert part.n_features == 16
    assert not hasattr(tuned.model, "n_seen_")
    if name == "kernels":
        assert np.isnan(tuned.parametric_error)
    else:
        alone = []
        for held in splits:
            rigid = clone(model.parametric).fit(X[~held], Y[~held])
            alone.append(np.mean(((rigid.predict(X[held]) - Y[held]) / Y.std(axis=0)) ** 2))
        assert tuned.parametric_error == pytest.approx(np.sqrt(np.mean(alone)), rel=1e-6)


def test_inputs_are_normalised_as_at_the_end_of_the_stream():
    X, Y = data(900)
    X[256:] *= 50
    model = kernels(sigma=2.0).fit(X[:800], Y[:800])
    assert model.rescaled_ != []
    Z = (X - model.scale_.mean) / model.scale_.scale
    Phi = waves(Z, 2.0, 16)
    W, _ = weighted_ridge(Phi[:800], Y[:800], 0.1)
    expected = np.sqrt(np.mean(((Phi[800:] @ W - Y[800:]) / Y.std(axis=0)) ** 2))
    held = np.arange(900) >= 800
    tuned = tune(kernels(), X, Y, sigmas=(2.0,), penalties=(0.1,), validation=held)
    assert tuned.errors[0, 0] == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_the_choice_is_cautious(seed):
    rng = np.random.default_rng(seed)
    losses = rng.uniform(1.0, 1.05, size=(4, 1, 1)) + rng.uniform(0, 0.3, size=(4, 3, 3))
    oddness = np.abs(np.log(np.array(SIGMAS) / 3.0))
    i, j = _cautious(losses, oddness)
    assert (SIGMAS[i], PENALTIES[j]) == chosen_by_hand(losses, 3.0)


def test_forgetting_is_left_out_of_the_errors_and_kept_in_the_model():
    X, Y = data(150)
    fast = both(forgetting=0.9).set_params(nonparametric__forgetting=0.8)
    grid = {"sigmas": SIGMAS, "penalties": PENALTIES, "validation": 0.3}
    tuned = tune(fast, X, Y, **grid)
    # Where parameters are forgotten residuals stay as they were formed.
    assert_allclose(tuned.errors, tune(unrevised(), X, Y, **grid).errors, rtol=1e-9)
    assert tuned.model.parametric.forgetting == 0.9
    assert tuned.model.nonparametric.forgetting == 0.8


@pytest.mark.parametrize("name", list(MODELS))
def test_the_model_and_the_data_are_not_changed(name):
    X, Y = data(120)
    kept = X.copy(), Y.copy()
    for model in (MODELS[name](), MODELS[name]().fit(X, Y)):
        before = fingerprint(model)
        tune(model, X, Y, sigmas=(1.0,), penalties=(0.1,))
        assert fingerprint(model) == before
    assert_array_equal(X, kept[0])
    assert_array_equal(Y, kept[1])


def test_a_robot_alone_is_tuned_with_a_part_of_its_own():
    X, Y = rows_and_outputs(arm(), 90, bent=1.0)
    tuned = tune(SemiparametricDynamics(arm()), X, Y, sigmas=(2.0, 4.0), penalties=(0.1,))
    assert tuned.model.nonparametric.penalty == 0.1
    assert tuned.model.parametric is not None
    assert tuned.model.fit(X, Y).n_seen_ == 90


def test_the_usual_grid_is_in_units_of_normalised_distances(tmp_path):
    X, Y = data(80)
    tuned = tune(kernels(n_features=8), X, Y)
    assert_allclose(tuned.sigmas, np.sqrt(12) * np.array([0.25, 0.5, 1, 2, 4]))
    assert_allclose(tuned.penalties, 10.0 ** np.arange(-4, 5))
    assert_allclose(tune(both(), X, Y).sigmas, np.sqrt(16) * np.array([0.25, 0.5, 1, 2, 4]))
    imparo.save(tuned, tmp_path / "tuned.imparo")
    again = imparo.load(tmp_path / "tuned.imparo")
    assert again.best == tuned.best
    assert_array_equal(again.errors, tuned.errors)


def test_the_true_width_is_found_where_there_is_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(500, 2))
    Y = np.sin(2 * X)
    model = NonparametricDynamics(n_features=100)
    tuned = tune(model, X, Y, sigmas=(0.02, 1.0, 100.0), penalties=(1e-3, 1.0))
    assert tuned.best[0] == 1.0
    F = tuned.model.fit(X[:400], Y[:400]).predict(X[400:])
    assert np.sqrt(np.mean((F - Y[400:]) ** 2)) < 0.2 * Y.std()


@pytest.mark.parametrize("value", [0.1, 0.0, -3.7])
def test_a_constant_output_does_not_drown_the_others(value):
    X, Y = data(100)
    Y[:, 1] = value
    tuned = tune(kernels(), X, Y, sigmas=SIGMAS, penalties=PENALTIES)
    assert tuned.errors.max() < 10


@pytest.mark.parametrize("fault", ["NaN in X", "NaN in Y", "infinity in X", "infinity in Y"])
@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("name", list(MODELS))
def test_samples_that_are_no_numbers_are_refused(fault, place, name):
    X, Y = data(100)
    value = np.nan if "NaN" in fault else np.inf
    (X if fault.endswith("X") else Y)[place, 0] = value
    with pytest.raises(ValueError, match="NaN or infinity"):
        tune(MODELS[name](), X, Y, sigmas=(1.0,), penalties=(0.1,))


NOTHING = {
    "no stretch": 0,
    "one stretch": 1,
    "more stretches than samples": 101,
    "stretches below 0": -1,
    "a share of 0": 0.0,
    "a share of 1": 1.0,
    "a share of NaN": np.nan,
    "a share of no sample": 1e-9,
    "True": True,
    "None": None,
    "text": "last",
    "all": [True] * 100,
    "none": [False] * 100,
    "too short": [True, False],
    "numbers": np.arange(100),
    "a table": [[0.5]],
}


@pytest.mark.parametrize("case", list(NOTHING))
def test_a_validation_that_leaves_nothing_is_refused(case):
    X, Y = data(100)
    with pytest.raises(ValueError, match="must leave samples on both sides"):
        tune(kernels(), X, Y, validation=NOTHING[case])


@pytest.mark.parametrize("name", ["sigmas", "penalties"])
@pytest.mark.parametrize(
    "values", [[], [0.0], [-1.0], [np.nan], [np.inf], 3.0, [[1.0]], ["wide"], "wide"], ids=str
)
def test_candidates_that_are_no_numbers_above_0_are_refused(name, values):
    with pytest.raises(ValueError, match=f"{name} must be numbers above 0"):
        tune(kernels(), *data(50), **{name: values})


def test_other_models_and_shapes_are_refused():
    X, Y = data(50)
    for model in (ParametricDynamics(Folded(2, 5)), "SP", None, NonparametricDynamics):
        with pytest.raises(TypeError, match="must be a NonparametricDynamics or a Semi"):
            tune(model, X, Y)
    for rows, outputs in ((X[0], Y), (X, Y[:, 0]), (X, Y[1:])):
        with pytest.raises(ValueError, match="two tables with as many rows"):
            tune(kernels(), rows, outputs)
