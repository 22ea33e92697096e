"""RecursiveRegressor on input of any kind: what is bad leaves the model alone."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from imparo import RandomFeatures, RecursiveRegressor
from imparo.errors import MemoryBudgetError
from imparo.features import FourierMap

N, D = 50, 3
NAMES = ["a", "b", "c"]
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture
def data(rng):
    X = rng.normal(size=(N, D))
    return X, X @ [1.0, -2.0, 3.0] + 0.1 * rng.normal(size=N)


def learner(**options):
    return RecursiveRegressor(**{"penalty": [0.1, 10.0], **options})


def ridge(X, y, penalty):
    Phi = np.hstack([np.ones((len(X), 1)), X])
    return np.linalg.solve(Phi.T @ Phi + penalty * np.eye(Phi.shape[1]), Phi.T @ y)


# Bad input, and words that the message must have.

PARAMETERS = {
    "penalty": [
        (0, "above 0"),
        (-1.0, "above 0"),
        (np.nan, "above 0"),
        (np.inf, "above 0"),
        ([1.0, 0.0], "above 0"),
        ([1.0, 1.0], "different"),
        ([], "a number, several, or 'auto'"),
        ([[1.0]], "a number, several, or 'auto'"),
        (None, "a number, several, or 'auto'"),
        (True, "a number, several, or 'auto'"),
        (1j, "a number, several, or 'auto'"),
        ("small", "a number, several, or 'auto'"),
    ],
    "forgetting": [
        (bad, "above 0 and up to 1")
        for bad in (0, -0.5, 1.01, np.nan, np.inf, "0.9", None, True, [0.9])
    ],
    "forgetting_kind": [(bad, "one of exponential") for bad in ("none", None, 1, True)],
    "intercept": [(bad, "True or False") for bad in (1, "yes", None)],
    "drift": [(bad, "None, 'record' or 'forget'") for bad in ("alarm", True, 1)],
    "dtype": [(bad, "must be float32, float64 or None") for bad in ("int", "float16", 3)],
    "features": [
        (3, "must be None, a map"),
        ("fourier", "must be None, a map"),
        (RandomFeatures, "not an instance|must be None, a map"),
        (FourierMap(np.ones((2, 5)), np.ones(2)), "takes rows of 5 columns, and X has 3"),
    ],
}
CASES = [(name, value, words) for name, cases in PARAMETERS.items() for value, words in cases]


@pytest.mark.parametrize(("name", "value", "words"), CASES)
def test_a_bad_parameter_is_named_and_nothing_is_learned(name, value, words, data):
    model = learner(**{name: value})
    before = dict(vars(model))
    for method in (model.fit, model.partial_fit):
        with pytest.raises((ValueError, TypeError), match=words) as caught:
            method(*data)
        assert "\n" not in str(caught.value)
        assert vars(model) == before


def wrong(change, where=(3, 1)):
    def make(X, y):
        X = X.astype(object if isinstance(change, str) else type(change))
        X[where] = change
        return X, y

    return make


ROWS = {
    "NaN": (wrong(np.nan), "NaN"),
    "infinity": (wrong(np.inf), "infinity"),
    "text": (wrong("red"), "text"),
    "complex numbers": (wrong(1j), "omplex"),
    "huge numbers": (wrong(1e160), "scale the columns"),
    "no rows": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "no columns": (lambda X, y: (X[:, :0], y), "feature"),
    "columns missing": (lambda X, y: (X[:, :2], y), "2 features"),
    "a vector": (lambda X, y: (X[:, 0], y), "2D"),
    "a cube": (lambda X, y: (X[None], y[:1]), "dim"),
    "fewer outputs": (lambda X, y: (X, y[1:]), "inconsistent"),
    "more outputs": (lambda X, y: (X[1:], y), "inconsistent"),
    "None as outputs": (lambda X, y: (X, None), "y to be passed"),
    "one output for all": (lambda X, y: (X, 3.0), "1 dimension|ingleton"),
    "several outputs": (lambda X, y: (X, np.stack([y, y], axis=1)), "2 outputs"),
    "a cube of outputs": (lambda X, y: (X, y[:, None, None]), "dim"),
    "NaN as an output": (lambda X, y: (X, np.append(y[1:], np.nan)), "NaN"),
    "text as outputs": (lambda X, y: (X, ["red"] * len(y)), "text"),
    "huge outputs": (lambda X, y: (X, np.append(y[1:], 1e200)), "scale y"),
}


@pytest.mark.parametrize("name", ROWS)
def test_bad_rows_leave_a_learner_as_it_was(name, data):
    make, words = ROWS[name]
    model = learner().partial_fit(*data)
    before = pickle.dumps(model)
    with pytest.raises((ValueError, TypeError), match=words):
        model.partial_fit(*make(*data))
    assert pickle.dumps(model) == before
    fresh = learner()
    if name not in ("columns missing", "several outputs"):
        for method in (model.fit, fresh.fit, fresh.partial_fit):
            with pytest.raises((ValueError, TypeError), match=words):
                method(*make(*data))
        assert pickle.dumps(model) == before
        assert vars(fresh) == vars(learner())


WEIGHTS = {
    "negative": (-np.ones(N), "from 0 on"),
    "NaN": (np.full(N, np.nan), "NaN"),
    "infinite": (np.full(N, np.inf), "infinity"),
    "too few": (np.ones(N - 1), "one number for each"),
    "a matrix": (np.ones((N, 2)), "one number for each"),
    "text": (["much"] * N, "could not convert|text|numeric"),
    "huge": (np.full(N, 1e305), "overflow|scale|weight"),
}


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bad_weights_leave_a_learner_as_it_was(name, dtype, data):
    weight, words = WEIGHTS[name]
    model = learner(dtype=dtype).partial_fit(*data)
    before = pickle.dumps(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in (model.partial_fit, model.fit, learner(dtype=dtype).fit):
            with pytest.raises((ValueError, TypeError), match=words):
                method(*data, sample_weight=weight)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(("dtype", "size"), [("float64", 1e100), ("float32", 1e12)])
def test_outputs_that_overflow_by_their_weights_are_refused(dtype, size):
    model = RecursiveRegressor(penalty=1.0, intercept=False, dtype=dtype).fit([[1.0]], [1.0])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="scale y"):
        model.partial_fit([[1 / size]], [size], sample_weight=[size**2])
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("weight", [1e-300, 1e-320])
def test_tiny_weights_teach_next_to_nothing(weight, data):
    model = learner().fit(*data)
    before = model.predict(data[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(data[0], 1e5 + data[1], sample_weight=np.full(N, weight))
    assert_allclose(model.predict(data[0]), before, **CLOSE)


def test_a_learner_does_not_begin_with_rows_of_no_weight(data):
    with pytest.raises(ValueError, match="zero for every row"):
        learner().fit(*data, sample_weight=np.zeros(N))


def test_errors_beyond_all_numbers_do_not_break_the_learner():
    model = RecursiveRegressor(penalty=1e-10, intercept=False)
    model.partial_fit(np.full((40, 1), 1e-3), np.full(40, 1e140))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(np.full((40, 1), 1e100), np.zeros(40))
        mean, std = model.predict([[1.0]], return_std=True)
    assert np.isfinite(mean).all()
    assert not np.isnan(std).any()
    assert not np.isnan(model.prequential_errors_).any()


@pytest.mark.parametrize("method", ["predict", "leverage", "novelty"])
def test_bad_rows_are_not_predicted(method, data):
    X, y = data
    with pytest.raises(NotFittedError):
        getattr(learner(), method)(X)
    model = learner().fit(X, y)
    before = pickle.dumps(model)
    for name in ("NaN", "infinity", "text", "no rows", "columns missing", "a vector"):
        make, words = ROWS[name]
        with pytest.raises(ValueError, match=words):
            getattr(model, method)(make(X, y)[0])
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("name", ["coef_", "intercept_", "penalty_", "penalties_"])
def test_a_learner_that_has_not_learned_has_no_attributes(name):
    assert not hasattr(learner(), name)
    with pytest.raises(NotFittedError):
        learner().predict_one([1.0])


def test_more_features_than_memory_is_a_clear_error():
    wide = sparse.csr_array(([1.0], ([0], [7])), shape=(1, 2_000_000))
    with pytest.raises(MemoryBudgetError, match="fewer features"):
        learner().fit(wide, [1.0])


def test_predicting_changes_nothing(data):
    X, y = data
    asked, quiet = learner(), learner()
    for start in range(0, N, 7):
        for model in (asked, quiet):
            model.partial_fit(X[start : start + 7], y[start : start + 7])
        asked.predict(X, return_std=True), asked.novelty(X), asked.coef_, asked.intercept_
        asked.predict_one(X[0]), asked.prequential_errors_
    assert_array_equal(asked.predict(X, True), quiet.predict(X, True))
    assert_array_equal(asked.coef_, quiet.coef_)


# Kinds of rows.

KINDS = {
    "lists": lambda X: X.tolist(),
    "Fortran order": np.asfortranarray,
    "a view": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read only": lambda X: np.broadcast_to(X, X.shape),
    "objects": lambda X: X.astype(object),
    "csr": sparse.csr_array,
    "csc matrix": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "other byte order": lambda X: X.astype(X.dtype.newbyteorder()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_of_any_kind_give_the_same_bits(kind, intercept, data):
    X, y = data
    make = KINDS[kind]
    plain, other = learner(intercept=intercept), learner(intercept=intercept)
    for part in (slice(0, 20), slice(20, N)):
        plain.partial_fit(X[part], y[part])
        outputs = {"pandas": pd.Series, "polars": pl.Series, "lists": list}.get(kind, np.array)
        other.partial_fit(make(X[part]), outputs(y[part]))
    assert_array_equal(other.coef_, plain.coef_)
    assert_array_equal(other.predict(make(X), True), plain.predict(X, True))
    if kind in ("pandas", "polars"):
        assert_array_equal(other.feature_names_in_, NAMES)
        with pytest.raises(ValueError, match="feature names"):
            other.partial_fit(make(X)[NAMES[::-1]], y)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.int8, bool])
def test_numbers_of_any_type_are_taken_as_they_are(dtype, data):
    X, y = (10 * data[0]).astype(dtype), data[1].astype(dtype)
    model = RecursiveRegressor(penalty=0.1).fit(X, y)
    expected = ridge(X.astype(float), y.astype(float), 0.1)
    assert_allclose(np.append(model.intercept_, model.coef_), expected, **CLOSE)


def test_given_arrays_are_neither_changed_nor_kept(data):
    X, y = data
    weight = np.linspace(1, 2, N)
    kept = X.copy(), y.copy(), weight.copy()
    model = learner().fit(X, y, sample_weight=weight)
    for given, before in zip((X, y, weight), kept, strict=True):
        assert_array_equal(given, before)
    before = model.predict(kept[0])
    X[:], y[:] = 7, 7
    assert_array_equal(model.predict(kept[0]), before)


@pytest.mark.parametrize("case", ["one row", "equal rows", "constant column", "zeros"])
@pytest.mark.parametrize("penalty", ["auto", 1e-15, 1.0])
@pytest.mark.parametrize("kind", ["exponential", "directional"])
def test_rows_that_tell_little_are_learned(case, penalty, kind, data):
    X, y = data
    X = X.copy()
    if case == "one row":
        X, y = X[:1], y[:1]
    elif case == "equal rows":
        X, y = X[:1].repeat(N, axis=0), y[:1].repeat(N)
    elif case == "constant column":
        X[:, 1] = 5
    else:
        X[:] = 0
    for gamma in (1.0, 0.9):
        model = RecursiveRegressor(penalty=penalty, forgetting=gamma, forgetting_kind=kind)
        model.fit(X, y)
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite([mean, std]).all()
        if penalty == 1e-15 and gamma == 1:
            Phi = np.hstack([np.ones((len(X), 1)), X])
            fitted = Phi @ np.linalg.lstsq(Phi, y)[0]
            assert_allclose(mean, fitted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1e-100, 1e-30, 1e30, 1e100])
def test_scales_change_nothing_but_scales(size, data):
    X, y = data
    one = RecursiveRegressor(intercept=False).fit(X, y)
    other = RecursiveRegressor(intercept=False).fit(size * X, size * y)
    assert_allclose(other.penalties_ / size / size, one.penalties_, rtol=1e-6)
    assert_allclose(other.predict(size * X) / size, one.predict(X), rtol=1e-6)
    # With a constant feature, which is not scaled, rows far below it are learned too.
    if size < 1:
        both = RecursiveRegressor().fit(size * X, y)
        assert_allclose(both.predict(size * X), y, atol=0.5)


def test_tiny_penalties_in_float32_are_right_or_refused(data):
    X, _ = data
    model = RecursiveRegressor(penalty=1e-15, dtype="float32", intercept=False)
    model.fit(1e3 * X, 1e3 * X @ [1.0, -2.0, 3.0])
    assert_allclose(model.coef_, [1, -2, 3], rtol=1e-3)


@pytest.mark.parametrize("size", [1e155, 1e200, 1e300])
def test_rows_too_large_for_an_automatic_penalty_are_refused_in_words(size, data):
    with pytest.raises(ValueError, match="scale the columns"):
        RecursiveRegressor().fit(size * data[0], data[1])
