"""RecursiveRegressor over time: samples one by one, copies, merging and drift."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import imparo
from imparo import RecursiveRegressor
from imparo.lifelong.recursion import DELAY

N, D = 50, 3
NAMES = ["a", "b", "c"]
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture
def data(rng):
    X = rng.normal(size=(N, D))
    return X, X @ [1.0, -2.0, 3.0] + 0.1 * rng.normal(size=N)


def learner(**options):
    return RecursiveRegressor(**{"penalty": [0.1, 10.0], **options})


def change(n, after, seed=0, d=6, noise=0.3):
    """Return n samples of one truth and then some of another."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n + after, d)), rng.normal(size=(2, d))
    y = np.append(X[:n] @ W[0], X[n:] @ W[1]) + noise * rng.normal(size=n + after)
    return X, y


# One sample at a time.


def test_dictionaries_are_rows_by_their_names(data):
    X, y = data
    model, plain = learner(), learner()
    for i, (x, output) in enumerate(zip(X, y, strict=True)):
        names = NAMES if i % 2 == 0 else NAMES[::-1]
        given = {name: x[NAMES.index(name)] for name in names}
        model.learn_one(given, output)
        plain.learn_one(x, output)
    assert_array_equal(model.coef_, plain.coef_)
    assert model.predict_one({"c": 2.0, "a": 1.0}) == plain.predict_one([1.0, 0.0, 2.0])
    assert isinstance(plain.predict_one(X[0]), float)
    with pytest.raises(ValueError, match="'d' is not among the columns a, b, c"):
        model.learn_one({"a": 1.0, "d": 2.0}, 1.0)


@pytest.mark.parametrize("frame", [pd.DataFrame, None])
def test_dictionaries_after_rows_go_by_the_names_of_the_columns(frame, data):
    X, y = data
    model = learner().fit(X if frame is None else frame(X, columns=NAMES), y)
    if frame is None:
        model.learn_one(dict(zip(NAMES, X[0], strict=True)), y[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # names are known; the row has none
        expected = model.predict_one([1.0, 2.0, 3.0])
        assert model.predict_one({"a": 1.0, "b": 2.0, "c": 3.0}) == expected
        assert model.predict_one({"c": 3.0, "b": 2.0, "a": 1.0}) == expected
        assert model.predict_one({"c": 3.0}) == model.predict_one([0.0, 0.0, 3.0])
        with pytest.raises(ValueError, match="not among the columns"):
            model.predict_one({"z": 1.0})


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([[1.0, 2.0, 3.0]], 1.0, "vector"),
        (1.0, 1.0, "vector"),
        ([1.0, 2.0], 1.0, "2 features"),
        ([1.0, np.nan, 2.0], 1.0, "NaN"),
        (["x", "y", "z"], 1.0, "text"),
        ({"a": "x", "b": 1.0, "c": 1.0}, 1.0, "text"),
        ([1.0, 2.0, 3.0], np.nan, "NaN"),
        ([1.0, 2.0, 3.0], None, "NaN|None"),
        ([1.0, 2.0, 3.0], "much", "text"),
        ([1.0, 2.0, 3.0], [1.0, 2.0], "2 outputs"),
    ],
)
def test_a_bad_sample_leaves_a_learner_as_it_was(x, y, words, data):
    model = learner().fit(*data)
    before = pickle.dumps(model)
    with pytest.raises((ValueError, TypeError), match=words):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


def test_several_outputs_one_sample_at_a_time(data):
    X, y = data
    Y = np.stack([y, -y, 2 * y], axis=1)
    model = learner()
    for x, outputs in zip(X, Y, strict=True):
        model.learn_one(x, outputs)
    assert_array_equal(model.coef_, learner().fit(X, Y).coef_)
    assert model.predict_one(X[0]).shape == (3,)


# Parameters and copies.


def test_parameters_are_kept_as_given():
    given = {"penalty": [1.0, 2.0], "forgetting": 0.9, "forgetting_kind": "directional",
             "intercept": False, "drift": None, "device": "cpu", "dtype": "float32",
             "features": PolynomialFeatures()}  # fmt: skip
    model = RecursiveRegressor(**given)
    assert model.get_params(deep=False) == given
    assert clone(model).get_params()["features__degree"] == 2
    assert clone(model).set_params(penalty=3.0).penalty == 3.0
    assert not hasattr(clone(model.fit([[1.0], [2.0]], [1.0, 2.0])), "n_seen_")


@pytest.mark.parametrize("n", [5, 32, 45])
def test_copies_go_on_to_the_last_bit(n, data, tmp_path):
    X, y = data
    model = learner(drift="forget").partial_fit(X[:n], y[:n])
    imparo.save(model, tmp_path / "model")
    copies = [
        imparo.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    ]  # fmt: skip
    model.partial_fit(X[n:], y[n:])
    for other in copies:
        other.partial_fit(X[n:], y[n:])
        assert_array_equal(other.predict(X, True), model.predict(X, True))
        assert_array_equal(other.prequential_errors_, model.prequential_errors_)
        assert other.get_params() == model.get_params()


# Merging.


@given(st.integers(0, 2**32 - 1), st.integers(1, 99), st.sampled_from([None, 2]))
@settings(max_examples=30, deadline=None)
def test_a_merged_learner_is_that_of_all_samples(seed, cut, outputs):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, D))
    Y = X @ rng.normal(size=(D, 2)) + rng.normal(size=(100, 2))
    Y = Y[:, 0] if outputs is None else Y
    one, other = learner().fit(X[:cut], Y[:cut]), learner().fit(X[cut:], Y[cut:])
    kept = copy.deepcopy(other)
    assert one.merge(other) is one
    for learned in (kept, other):
        learned.partial_fit(X, Y)
    assert_array_equal(other.predict(X, True), kept.predict(X, True))
    assert one.n_seen_ == 100
    whole = learner().fit(X, Y)
    for i in range(2):
        one._best = whole._best = i
        assert_allclose(one.coef_, whole.coef_, **CLOSE)
        assert_allclose(one.leverage(X), whole.leverage(X), **CLOSE)
        for found, expected in zip(one.predict(X, True), whole.predict(X, True), strict=True):
            assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
        one.partial_fit(X, Y)
        whole.partial_fit(X, Y)
        one._best = whole._best = i
        assert_allclose(one.coef_, whole.coef_, **CLOSE)


def test_errors_of_both_count_after_merging():
    (X, y), (Z, z) = change(96, 0, seed=1), change(64, 0, seed=2, noise=3.0)
    one, other = learner(penalty=[1e-2, 1e3]).fit(X, y), learner(penalty=[1e-2, 1e3]).fit(Z, z)
    expected = (96 * one.prequential_errors_**2 + 64 * other.prequential_errors_**2) / 160
    one.merge(other)
    assert_allclose(one.prequential_errors_, np.sqrt(expected), rtol=1e-10)
    assert one.penalty_ == one.penalties_[np.argmin(expected)]


def test_learners_of_dependent_columns_and_a_tiny_penalty_can_be_merged(data):
    X, y = data
    X = np.hstack([X, X[:, :1] - X[:, 1:2], np.full((N, 1), 3.0)])
    one, other = (learner(penalty=1e-15).fit(X[p], y[p]) for p in (slice(25), slice(25, N)))
    expected = Ridge(1e-12, solver="svd").fit(X, y).predict(X)
    assert_allclose(one.merge(other).predict(X), expected, rtol=1e-5, atol=1e-5)


UNLIKE = {
    "another kind": (lambda X, y: Ridge().fit(X, y), TypeError, "only another"),
    "a learner of nothing": (lambda X, y: learner(), NotFittedError, "must have learned"),
    "other columns": (lambda X, y: learner().fit(X[:, :2], y), ValueError, "2 columns"),
    "other penalties": (lambda X, y: learner(penalty=3.0).fit(X, y), ValueError, "penalty="),
    "other outputs": (
        lambda X, y: learner().fit(X, np.stack([y, y], axis=1)), ValueError, "2 outputs"
    ),
    "no intercept": (
        lambda X, y: learner(intercept=False).fit(X, y), ValueError, "other features"
    ),
    "other features": (
        lambda X, y: learner(features=StandardScaler()).fit(X, y), ValueError, "other features"
    ),
    "another direction": (
        lambda X, y: learner(forgetting=0.9, forgetting_kind="directional").fit(X, y),
        ValueError,
        "forget in directions",
    ),
    "another type": (lambda X, y: learner(dtype="float32").fit(X, y), ValueError, "dtype"),
    "other names": (
        lambda X, y: learner().fit(pd.DataFrame(X, columns=NAMES[::-1]), y),
        ValueError,
        "name",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLIKE)
def test_learners_that_are_not_alike_are_not_merged(name, data):
    make, kind, words = UNLIKE[name]
    X, y = data
    model = learner().fit(pd.DataFrame(X, columns=NAMES) if name == "other names" else X, y)
    other = make(X, y)
    before = pickle.dumps(model), pickle.dumps(other)
    with pytest.raises(kind, match=words):
        model.merge(other)
    if name != "another kind":
        with pytest.raises((ValueError, NotFittedError)):
            other.merge(model)
    assert (pickle.dumps(model), pickle.dumps(other)) == before


def test_a_learner_is_not_merged_with_itself(data):
    model = learner().fit(*data)
    with pytest.raises(ValueError, match="itself"):
        model.merge(model)
    with pytest.raises(TypeError, match="only another"):
        model.merge(None)


# Drift.


def test_a_change_is_recorded_with_when_and_what():
    X, y = change(1000, 300)
    model = learner(drift="record").fit(X, y)
    first = model.drifts_[0]
    assert 1000 < first.change.at <= 1000 + 4 * DELAY
    assert first.change.before < 0.6 < first.change.after
    # Where the window is cut is where the truth changed, give or take a bucket.
    assert abs(first.change.at - first.change.n_after - 1000) <= 2 * DELAY
    assert "recorded" in first.action
    plain = learner(drift=None).fit(X, y)
    assert plain.drifts_ == []
    assert_array_equal(model.predict(X, True), plain.predict(X, True))
    assert_array_equal(model.prequential_errors_, plain.prequential_errors_)


@pytest.mark.parametrize("seed", range(5))
def test_where_nothing_changes_nothing_is_recorded(seed):
    X, y = change(4000, 0, seed=seed)
    assert learner(drift="forget").fit(X, y).drifts_ == []


def test_forgetting_at_a_change_recovers_sooner():
    X, y = change(1000, 400)
    errors = {}
    for drift in ("record", "forget"):
        model = learner(drift=drift).fit(X[:1000], y[:1000])
        model.partial_fit(X[1000:1300], y[1000:1300])
        errors[drift] = np.sqrt(np.mean((model.predict(X[1300:]) - y[1300:]) ** 2))
        assert model.drifts_
    assert "faded" in model.drifts_[0].action
    assert errors["forget"] < 0.4 < errors["record"]


def test_what_is_faded_at_a_change_is_what_the_record_says():
    X, y = change(1000, 200)
    model = learner(drift="forget", penalty=0.5)
    model.partial_fit(X, y)
    (drift,) = model.drifts_
    at, kept = drift.change.at, model._recursions[0].prior / 0.5
    assert f"faded to {kept:.3g} of their weight" in drift.action
    # The samples before the change are left with the weight of those after it.
    assert_allclose(kept * at, drift.change.n_after, rtol=0.01)
    weight = np.where(np.arange(1200) < at, kept, 1.0)
    Phi = np.hstack([np.ones((1200, 1)), X])
    A = Phi.T @ (weight[:, None] * Phi) + 0.5 * kept * np.eye(7)
    expected = np.linalg.solve(A, Phi.T @ (weight * y))
    assert_allclose(np.append(model.intercept_, model.coef_), expected, **CLOSE)


@pytest.mark.parametrize("size", [1, 7, 100, 1200])
def test_forgetting_at_a_change_does_not_depend_on_the_cuts(size):
    X, y = change(700, 500)
    whole, parts = learner(drift="forget").fit(X, y), learner(drift="forget")
    for start in range(0, 1200, size):
        parts.partial_fit(X[start : start + size], y[start : start + size])
    assert whole.drifts_
    assert parts.drifts_ == whole.drifts_
    assert_array_equal(parts.predict(X, True), whole.predict(X, True))
    assert_array_equal(parts.prequential_errors_, whole.prequential_errors_)


def test_errors_of_samples_that_are_faded_count_less():
    X, y = change(1000, 400)
    (drift,) = learner(drift="forget", penalty=0.5).fit(X, y).drifts_
    at, stop = drift.change.at, drift.change.at + 5 * DELAY
    model = learner(drift="forget", penalty=0.5).fit(X[:at], y[:at])
    kept = model._recursions[0].prior / 0.5
    assert kept < 1
    loss = kept * at * model.prequential_errors_[0] ** 2
    for x, output in zip(X[at:stop], y[at:stop], strict=True):
        loss += (output - model.predict_one(x)) ** 2
        model.learn_one(x, output)
    expected = np.sqrt(loss / (kept * at + stop - at))
    assert_allclose(model.prequential_errors_[0], expected, rtol=1e-9)


def test_weights_of_samples_are_no_drift():
    X, y = change(2000, 0)
    weight = np.where(np.arange(2000) < 1000, 0.01, 100.0)
    assert learner().fit(X, y, sample_weight=weight).drifts_ == []


def test_exact_predictions_and_constant_outputs_are_no_drift():
    X, _ = change(600, 0)
    for y in (np.zeros(600), np.ones(600), X @ np.arange(6.0)):
        assert learner(drift="forget", penalty=1e-6).fit(X, y).drifts_ == []
