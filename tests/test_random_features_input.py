"""Random-feature machines on input of any kind: growing, forms of rows, faults, pipelines."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import imparo
from imparo import RandomFeatureClassifier, RandomFeatureRegressor, RandomFeatures
from imparo.errors import MemoryBudgetError
from imparo.features import Fourier
from imparo.kernels import Gaussian, Linear, Spline
from model_tools import assert_untouched, values

RULES = {
    "pairs": {"sigma": 1.0},
    "cosines": {"sigma": 1.0, "features": Fourier("cosine")},
    "laplacian": {"kernel": "laplacian", "sigma": 2.0},
    "orthogonal": {"kernel": "matern52", "sigma": 1.0, "features": "orthogonal"},
    "fastfood": {"sigma": 1.0, "features": "fastfood"},
    "sorf": {"kernel": "matern32", "sigma": 1.0, "features": "sorf"},
    "qmc": {"sigma": 1.0, "features": "qmc"},
    "leverage": {"sigma": 1.0, "features": "leverage"},
    "spline": {"kernel": Spline(4.0), "features": "spline"},
}

every_rule = pytest.mark.parametrize("rule", RULES)
with_and_without = pytest.mark.parametrize("intercept", [False, True])
both_faces = pytest.mark.parametrize("make", [RandomFeatureRegressor, RandomFeatureClassifier])


@pytest.fixture
def rows(rng):
    """Ninety rows: a noisy smooth function and weights."""
    X = rng.normal(size=(90, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=90)
    return X, y, rng.uniform(0.2, 2, 90)


def rows_for(rule, X):
    """Return X, or a column in [0, 1] for splines."""
    return np.exp(-(X[:, :1] ** 2)) if rule == "spline" else X


def outputs_for(make, y):
    return y if make is RandomFeatureRegressor else np.where(y > 0.5, "much", "few")


def assert_close_models(one, other, rtol=1e-8):
    assert (one.n_features_, one.penalty_) == (other.n_features_, other.penalty_)
    if other.path_ is not None:
        assert_array_equal(one.path_.sizes, other.path_.sizes)
        assert_allclose(one.path_.errors, other.path_.errors, rtol=rtol)
        assert_allclose(one.path_.tie_breaker, other.path_.tie_breaker, rtol=rtol)
    scale = np.abs(other.feature_coef_).max()
    assert_allclose(one.feature_coef_, other.feature_coef_, rtol=rtol, atol=rtol * scale)
    assert_allclose(one.intercept_, other.intercept_, rtol=rtol, atol=rtol * scale)


# Growing.


@both_faces
@every_rule
@pytest.mark.parametrize("validation", [0.3, 4, "gcv"])
def test_growing_is_a_fit_with_more_features(rows, make, rule, validation):
    X, y, w = rows
    X, y = rows_for(rule, X), outputs_for(make, y)
    parameters = {**RULES[rule], "penalty": [1.0, 0.5, 0.01, 1e-3], "validation": validation}
    whole = make(n_features=[6, 12, 24, 48], random_state=0, **parameters).fit(X, y, w)
    model = make(n_features=[6, 12], random_state=0, **parameters).fit(X, y, w)
    assert model.grow(24, X, y, w) is model
    model.grow(48, X, y, w)
    assert_close_models(model, whole)
    assert model.path_.method == whole.path_.method


@pytest.mark.parametrize("penalty", [1e-3, "n_features"])
@with_and_without
def test_growing_where_nothing_is_selected(rows, penalty, intercept):
    X, y, w = rows
    parameters = {"sigma": 1.0, "penalty": penalty, "intercept": intercept}
    model = RandomFeatureRegressor(n_features=10, **parameters).fit(X, y, w)
    before = model.map_
    model.grow(30, X, y, w)  # with no seed given
    assert_array_equal(model.map_.evaluate(X)[:, :10], before.evaluate(X))
    assert (model.path_, model.n_features_, len(model.map_)) == (None, 30, 30)
    assert model.penalty_ == (1e-3 if penalty == 1e-3 else 1 / 30)
    theirs = Ridge(alpha=model.penalty_ * w.sum(), fit_intercept=intercept, solver="svd")
    theirs.fit(model.map_.transform(X), y, w)
    assert_allclose(model.feature_coef_, theirs.coef_, rtol=1e-8, atol=1e-8)


def test_growing_with_automatic_grids(rows):
    X, y, _ = rows
    model = RandomFeatureRegressor(random_state=0).fit(X, y)
    assert model.path_.sizes.tolist() == [10, 20, 40]  # up to √n log n = 42.7
    model.grow(80, X, y)
    whole = RandomFeatureRegressor(n_features=[10, 20, 40, 80], random_state=0).fit(X, y)
    assert_array_equal(model.path_.penalties, whole.path_.penalties)
    assert_allclose(model.path_.errors, whole.path_.errors, rtol=1e-6)
    by_size = RandomFeatureRegressor(penalty="n_features", random_state=0).fit(X, y)
    by_size.grow(80, X, y)
    whole.set_params(penalty="n_features").fit(X, y)
    assert_close_models(by_size, whole)


@both_faces
def test_growing_after_saving(rows, make, tmp_path):
    X, y, w = rows
    y = outputs_for(make, y)
    model = make(sigma=1.0, n_features=[6, 12], penalty=[1e-1, 1e-3], random_state=0)
    imparo.save(model.fit(X, y, w), tmp_path / "model.imparo")
    loaded = imparo.load(tmp_path / "model.imparo").grow(30, X, y, w)
    model.grow(30, X, y, w)
    assert_array_equal(loaded.path_.errors, model.path_.errors)
    assert_array_equal(loaded.feature_coef_, model.feature_coef_)


OTHER_ROWS = {
    "other rows": (lambda X, y, w: (X + 1, y, w), "same rows"),
    "rows in another order": (lambda X, y, w: (np.roll(X, 2, axis=0), y, w), "same rows"),
    "other outputs": (lambda X, y, w: (X, y + 1, w), "same rows"),
    "outputs in another order": (lambda X, y, w: (X, np.roll(y, 2), w), "same rows"),
    "opposite outputs": (lambda X, y, w: (X, -y, w), "same rows"),
    "other weights": (lambda X, y, w: (X, y, w**2), "same rows"),
    "no weights": (lambda X, y, w: (X, y, None), "same rows"),
    "fewer rows": (lambda X, y, w: (X[1:], y[1:], w[1:]), "same rows"),
    "more outputs": (lambda X, y, w: (X, np.column_stack([y, y]), w), "same rows"),
    "fewer columns": (lambda X, y, w: (X[:, :2], y, w), "columns|features"),
    "NaN": (lambda X, y, w: (np.where(X[0, 0] == X, np.nan, X), y, w), "NaN"),
    "no outputs": (lambda X, y, w: (X, None, w), "requires y"),
}


@pytest.mark.parametrize("name", OTHER_ROWS)
@pytest.mark.parametrize("penalty", [1e-3, [1e-2, 1e-3]])
def test_growing_on_other_rows_is_refused(rows, name, penalty):
    X, y, _ = rows
    w = 1.0 + np.arange(90) % 2  # the same again after two rows
    model = RandomFeatureRegressor(sigma=1.0, n_features=10, penalty=penalty, random_state=0)
    model.fit(X, y, w)
    before, expected = dict(vars(model)), model.predict(X)
    change, message = OTHER_ROWS[name]
    other = change(X, y, w)
    with pytest.raises(ValueError, match=message):
        model.grow(20, *other)
    assert_untouched(model, before)
    assert_array_equal(model.predict(X), expected)


CHANGES = {"kernel": "laplacian", "sigma": 2.0, "penalty": [0.1, 1.0], "features": "qmc",
           "intercept": True, "validation": 3, "dtype": "float32"}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_growing_with_other_parameters_is_refused(rows, name):
    X, y, _ = rows
    penalties = np.array([1e-2, 1e-3])
    model = RandomFeatureRegressor(sigma=1.0, penalty=penalties, n_features=10).fit(X, y)
    model.set_params(**{name: CHANGES[name]})
    before = dict(vars(model))
    with pytest.raises(ValueError, match=f"{name} was changed since fit"):
        model.grow(20, X, y)
    assert_untouched(model, before)


@pytest.mark.parametrize(
    ("m", "message"),
    [(m, "must be a whole number from 1 on") for m in (0, -1, 1.5, "x", True, None, [20])]
    + [(21, "multiples of 2"), (10, "has 10 features, and 10 were"), (4, "has 10 features")],
)
def test_growing_to_a_number_that_cannot_be(rows, m, message):
    X, y, _ = rows
    model = RandomFeatureRegressor(sigma=1.0, n_features=10, penalty=1e-3).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.grow(m, X, y)
    assert_untouched(model, before)


def test_growing_what_cannot_grow(rows):
    X, y, _ = rows
    with pytest.raises(NotFittedError):
        RandomFeatureRegressor().grow(10, X, y)
    model = RandomFeatureRegressor(sigma=1.0, n_features=10, penalty=1e-3).fit(X, y)
    model.statistics_ = None
    with pytest.raises(ValueError, match="no statistics to grow from"):
        model.grow(20, X, y)
    assert model.predict(X).shape == (90,)


def test_a_model_that_is_grown_leaves_its_copies_alone(rows):
    X, y, _ = rows
    model = RandomFeatureRegressor(sigma=1.0, n_features=10, penalty=[1e-1, 1e-3]).fit(X, y)
    statistics, A = model.statistics_, model.statistics_.statistics[0].A
    model.grow(20, X, y)
    assert_array_equal(statistics.statistics[0].A, A)
    assert len(statistics.map) == 10


# Forms of rows.


def parts(X, y, w):
    cuts = [slice(0, 40), slice(40, 41), slice(41, 41), slice(41, 90)]
    return [(X[some], y[some], w[some]) for some in cuts]


def as_memory_map(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


FORMS = {
    "blocks": lambda X, y, w, folder: (parts(X, y, w),),
    "a function of blocks": lambda X, y, w, folder: (lambda: iter(parts(X, y, w)),),
    "sparse blocks": lambda X, y, w, folder: (
        [(sparse.csr_array(a), b, c) for a, b, c in parts(X, y, w)],
    ),
    "memory map": lambda X, y, w, folder: (as_memory_map(X, folder), y, w),
    "sparse": lambda X, y, w, folder: (sparse.csc_matrix(X), y, w),
    "pandas": lambda X, y, w, folder: (pd.DataFrame(X, columns=[*"abc"]), pd.Series(y), w),
    "polars": lambda X, y, w, folder: (pl.DataFrame(X, schema=[*"abc"]), pl.Series(y), w),
    "columns first": lambda X, y, w, folder: (np.asfortranarray(X), y, w),
    "lists": lambda X, y, w, folder: (X.tolist(), y.tolist(), w.tolist()),
}


@pytest.mark.filterwarnings("error")
@both_faces
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", ["fourier", "leverage"])
def test_every_form_of_rows_gives_and_grows_the_same_model(
    rows, make, form, features, tmp_path
):
    X, y, w = rows
    y = outputs_for(make, y)
    parameters = {"features": features, "penalty": [0.2, 0.1, 1e-3], "random_state": 0}
    expected = make(n_features=[10, 20], **parameters).fit(X, y, w)
    given = FORMS[form](X, y, w, tmp_path)
    model = make(n_features=[10, 20], **parameters).fit(*given)
    assert_close_models(model, expected)
    assert model.n_features_in_ == 3
    named = form in ("pandas", "polars")
    assert list(getattr(model, "feature_names_in_", [])) == (["a", "b", "c"] if named else [])
    new = given[0] if hasattr(given[0], "shape") else X
    assert_allclose(values(model, new), values(expected, X), rtol=1e-8, atol=1e-9)
    assert_close_models(model.grow(40, *given), expected.grow(40, X, y, w))


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "spline"])
def test_sparse_rows_of_every_kernel_and_rule(rows, rule):
    X, y, w = rows
    X = np.where(np.abs(X) > 0.7, X, 0)
    model = RandomFeatureRegressor(
        penalty=[0.1, 1e-3], n_features=[10, 20], random_state=0, **RULES[rule]
    )
    expected = clone(model).fit(X, y, w)
    assert_close_models(model.fit(sparse.csr_array(X), y, w), expected)
    for kind in (sparse.csr_matrix, sparse.coo_array):
        assert_allclose(model.predict(kind(X)), expected.predict(X), rtol=1e-8, atol=1e-9)


def test_names_of_columns_are_checked(rows):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = RandomFeatureRegressor(n_features=10, penalty=0.1).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])
    with pytest.raises(ValueError, match="columns city hold text"):
        model.fit(frame.assign(city="Genova"), y)


@pytest.mark.parametrize("memory", ["12kB", "100kB", "10MB"])
@pytest.mark.parametrize("validation", [0.2, 3, "gcv"])
@both_faces
def test_memory_changes_nothing_but_rounding(rng, make, memory, validation):
    X = rng.normal(size=(600, 3))
    y = outputs_for(make, np.sin(X[:, 0]) + 0.1 * rng.normal(size=600))
    model = make(sigma=1.0, penalty=[0.1, 0.05, 1e-3], n_features=[4, 8], random_state=0,
                 validation=validation)  # fmt: skip
    wide = clone(model).fit(X, y)
    tight = model.set_params(memory=memory).fit(X, y)
    assert_close_models(tight, wide)
    assert_allclose(values(tight, X), values(wide, X), rtol=1e-8, atol=1e-9)


def test_too_little_memory_is_told_with_what_is_enough(rows):
    X, y, _ = rows
    parameters = {"sigma": 1.0, "validation": 5, "random_state": 0, "memory": "110kB"}
    model = RandomFeatureRegressor(n_features=[10, 60], **parameters)
    with pytest.raises(MemoryBudgetError, match=r"60 features .* use at most 32") as caught:
        model.fit(X, y)
    assert "\n" not in str(caught.value)
    assert model.set_params(n_features=[10, 32]).fit(X, y).path_.sizes[-1] == 32
    automatic = RandomFeatureRegressor(**parameters).fit(X, y)
    assert automatic.path_.sizes[-1] <= 32
    with pytest.raises(MemoryBudgetError):
        RandomFeatureRegressor(sigma=1.0, memory=100).fit(X, y)


@pytest.mark.parametrize("memory", ["60kB", "70kB"])  # for 28 features, and for 31
def test_growing_beyond_memory_is_refused(rows, memory):
    X, y, _ = rows
    model = RandomFeatureRegressor(n_features=20, penalty=1e-3, memory=memory).fit(X, y)
    with pytest.raises(MemoryBudgetError, match="60 features"):
        model.grow(60, X, y)


def test_the_number_of_features_that_memory_is_enough_for_can_be_had(rows):
    X, y, _ = rows
    model = RandomFeatureRegressor(n_features=60, penalty=1e-3, memory="70kB")
    with pytest.raises(MemoryBudgetError, match=r"use at most \d+ features") as caught:
        model.fit(X, y)
    most = int(str(caught.value).split("use at most ")[1].split()[0])
    model.set_params(n_features=most).fit(X, y)


def test_memory_for_no_feature_at_all(rows):
    X, y, _ = rows
    with pytest.raises(MemoryBudgetError):
        RandomFeatureRegressor(n_features="sqrt", penalty=0.1, memory=50).fit(X, y)


# Rows of any size, and that hardly differ.


def test_single_precision_stays_and_is_close(rows):
    X, y, w = rows
    for rule, parameters in RULES.items():
        Z = rows_for(rule, X)
        settings = {"penalty": [0.1, 1e-2], "n_features": [10, 20], "random_state": 0}
        wide = RandomFeatureRegressor(**settings, **parameters).fit(Z, y, w)
        narrow = RandomFeatureRegressor(**settings, **parameters)
        narrow.fit(Z.astype(np.float32), y, w)
        assert narrow.feature_coef_.dtype == narrow.predict(Z).dtype == np.float32
        assert_allclose(narrow.path_.errors, wide.path_.errors, rtol=1e-4)
        assert_allclose(narrow.predict(Z), wide.predict(Z), atol=1e-3)
        asked = RandomFeatureRegressor(dtype="float32", **settings, **parameters).fit(Z, y, w)
        assert asked.feature_coef_.dtype == np.float32
        asked.grow(40, Z, y, w)
        whole = wide.grow(40, Z, y, w)
        assert_allclose(asked.path_.errors, whole.path_.errors, rtol=1e-4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-30, 1e30, 1e200, 1e300])
@pytest.mark.parametrize("features", ["fourier", "fastfood", "sorf", "leverage"])
def test_huge_and_tiny_rows_and_outputs(rows, scale, features):
    X, y, w = rows
    model = RandomFeatureRegressor(
        features=features, penalty=[0.1, 1e-3], n_features=[10, 20], random_state=0
    ).fit(X, y, w)
    errors, expected = model.path_.errors, model.predict(X)
    model.fit(X * scale, y, w)
    assert_allclose(model.path_.errors, errors, rtol=1e-8)
    assert_allclose(model.predict(X * scale), expected, rtol=1e-7, atol=1e-9)
    model.fit(X, y * scale, w * scale)
    assert_allclose(model.path_.errors / scale, errors, rtol=1e-8)
    assert_allclose(model.predict(X) / scale, expected, rtol=1e-8)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("cosines", "spline")])
def test_pairs_do_not_see_where_the_origin_is(rows, rule):
    """A shift turns each pair of cosine and sine, which ridge regression does not feel."""
    X, y, w = rows
    model = RandomFeatureRegressor(
        penalty=[0.1, 1e-3], n_features=[10, 20], random_state=0, **RULES[rule]
    ).fit(X, y, w)
    errors, expected = model.path_.errors, model.predict(X)
    shift = np.array([5.0, -3.0, 100.0])
    assert_allclose(model.fit(X + shift, y, w).path_.errors, errors, rtol=1e-7)
    assert_allclose(model.predict(X + shift), expected, rtol=1e-6, atol=1e-7)


@with_and_without
def test_a_weight_is_a_number_of_copies(rows, rng, intercept):
    X, y, _ = rows
    times = rng.integers(0, 4, 90)
    model = RandomFeatureRegressor(
        sigma=1.0, penalty=1e-3, n_features=20, intercept=intercept, random_state=0
    )
    copied = clone(model).fit(X.repeat(times, 0), y.repeat(times))
    assert_close_models(model.fit(X, y, times), copied)


@both_faces
@pytest.mark.parametrize("validation", [0.25, 4, "gcv"])
@pytest.mark.parametrize("features", ["fourier", "leverage"])
def test_rows_without_weight_are_not_there(rows, make, validation, features):
    X, y, w = rows
    y, w = outputs_for(make, y), w * (np.arange(90) % 4 != 0)
    model = make(penalty=[1e-1, 1e-3], n_features=[6, 20], features=features,
                 validation=validation, random_state=0)  # fmt: skip
    dropped = clone(model).fit(X[w > 0], y[w > 0], w[w > 0])
    assert_close_models(model.fit(X, y, w), dropped)


@pytest.mark.filterwarnings("error")
@every_rule
@pytest.mark.parametrize("validation", [3, "gcv"])
def test_constant_rows_and_constant_outputs(rows, rule, validation):
    X, y, _ = rows
    model = RandomFeatureRegressor(**RULES[rule], intercept=True, validation=validation)
    constant = np.full((90, 1 if rule == "spline" else 3), 0.7)
    assert_allclose(model.fit(constant, y).predict(constant), y.mean(), rtol=1e-6)
    X = rows_for(rule, X)
    assert_allclose(model.fit(X, np.full(90, 4.0)).predict(X), 4.0, rtol=1e-9)


def test_one_row_and_one_column(rng):
    # φ(x)ᵀφ(x) = 1 for pairs, so that K/(K + λ) = 1/2.
    model = RandomFeatureRegressor(sigma=1.0, penalty=1.0, n_features=6).fit([[2.0]], [6.0])
    assert model.predict([[2.0]]) == pytest.approx(3.0)
    by_size = RandomFeatureRegressor(n_features="sqrt", penalty="n_features")
    assert by_size.fit([[2.0]], [6.0]).predict([[2.0]]) == pytest.approx(4.0)  # λ = 1/2
    with pytest.raises(ValueError, match="1 sample"):
        RandomFeatureRegressor().fit([[2.0]], [6.0])
    with pytest.raises(ValueError, match="one class"):
        RandomFeatureClassifier().fit([[2.0]], [6])
    X = rng.uniform(-3, 3, size=(200, 1))
    model = RandomFeatureRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    assert_allclose(model.predict(X), np.sin(X[:, 0]), atol=1e-3)


@both_faces
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("validation", [0.2, 2, "gcv"])
def test_two_and_three_rows(make, n, validation):
    X, y = np.array([[0.0], [1.0], [3.0]])[:n], np.array([0, 1, 1])[:n]
    model = make(validation=validation, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [0, 1e-15])
@with_and_without
def test_no_penalty_is_least_squares(rows, penalty, intercept):
    X, y, w = rows
    model = RandomFeatureRegressor(
        sigma=0.5, penalty=penalty, n_features=30, intercept=intercept, random_state=0
    ).fit(X, y, w)
    theirs = LinearRegression(fit_intercept=intercept).fit(model.map_.transform(X), y, w)
    assert_allclose(model.feature_coef_, theirs.coef_, rtol=1e-6, atol=1e-6)
    # Of more features than rows, and of rows that repeat, the mean is interpolated.
    X, y = X[:20].repeat(3, axis=0), y[:60]
    model.set_params(n_features=200).fit(X, y)
    assert_allclose(model.predict(X), y.reshape(20, 3).mean(axis=1).repeat(3), atol=1e-6)
    model.set_params(penalty=[1e-3, penalty], n_features=[20, 200]).fit(X, y)
    assert np.isfinite(model.path_.errors).all()


# Faults.


PARAMETERS = {
    "kernel": [("gausian", "not known; give one of"), (3, "must be a name"),
               ("linear", "not of Linear"), (Gaussian(1.0) + Linear(), "not of Sum"),
               ("precomputed", "not of Precomputed"), (len, "not of CallableKernel"),
               (Spline(4.0), "not of Spline")],
    "sigma": [(0, "positive"), (np.nan, "positive"), ("wide", "not known"), ([], "not a width"),
              (True, "not a width"), (None, "not a width")],
    "penalty": [(-1, "from 0 on"), (np.nan, "from 0 on"), (np.inf, "from 0 on"),
                ("x", "not known"), ("n_centers", "'n_features' with random features"),
                ([], "not a number"), (None, "not a number"), (True, "not a number"),
                ([1.0, -1.0], "from 0 on")],
    "n_features": [(0, "from 1 on"), (-2, "from 1 on"), (1.5, "whole numbers"),
                   ("x", "'sqrt' or 'auto'"), (True, "not a number"), ([], "not a number"),
                   (None, "not a number"), ([4, 0], "from 1 on"), (np.nan, "whole numbers"),
                   (15, "multiples of 2"), ([4, 15], "multiples of 2"), (10**8, "at most")],
    "features": [("rff", "not known; give one of"), (None, "features must be a name"),
                 (Fourier, "features must be a name"), ("spline", "not of Gaussian")],
    "validation": [("loo", "no closed form over numbers of centers or features"),
                   ("cv", "not known"), (1.5, "fraction"), (91, "more than the number of rows"),
                   ([(np.arange(50), np.arange(40, 60))], "both sides"), (None, "not known")],
    "memory": [("lots", "not an amount"), (-5, "at least one byte"), (2000, "memory is")],
    "dtype": [("int32", "float32, float64"), ("foo", "float32, float64")],
    "intercept": [("yes", "True or False"), (None, "True or False")],
    "progress": [("yes", "True, False or a function")],
    "random_state": [("x", "seed")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, *case) for name, cases in PARAMETERS.items() for case in cases],
    ids=lambda value: repr(value)[:30],
)
def test_bad_parameter(rows, name, value, message):
    X, y, _ = rows
    model = RandomFeatureRegressor(n_features=20, penalty=[1e-1, 1e-2]).fit(X, y)
    before = dict(vars(model.set_params(**{name: value})))
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        model.fit(X[:, :2], y)  # of which nothing is kept, not even how many columns there are
    assert "\n" not in str(caught.value)
    assert_untouched(model, before)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": Gaussian(2.0), "sigma": 1.0}, "no width to set"),
        ({"kernel": "laplacian", "features": "orthogonal"}, "rows are rotated"),
        ({"kernel": Spline(4.0), "features": "spline"}, "one column and X has 3"),
        ({"kernel": Spline(2.0), "features": "spline"}, "must be above 2"),
        ({"penalty": 0.1, "n_features": 6, "validation": "bogus"}, "validation"),
    ],
)
def test_parameters_that_do_not_go_together(rows, parameters, message):
    with pytest.raises(ValueError, match=message):
        RandomFeatureRegressor(**parameters).fit(*rows)


def test_splines_live_between_0_and_1(rng):
    X = np.append(rng.random(89), 1.5)[:, None]
    for form in (np.asarray, lambda X: [(X[:50], X[:50, 0]), (X[50:], X[50:, 0])]):
        y = None if form is not np.asarray else X[:, 0]
        with pytest.raises(ValueError, match=r"on \[0, 1\] and X goes from"):
            RandomFeatureRegressor(Spline(4.0), features="spline").fit(form(X), y)


@both_faces
def test_bad_outputs_and_weights(rows, make):
    X, y, w = rows
    y = (y > 0.5).astype(int)
    model = make(sigma=1.0, n_features=[6, 12]).fit(X, y, w)
    before = dict(vars(model))
    some = np.arange(90) == 5
    for bad, message in [
        ((X, None), "requires y"),
        ((X, np.where(some, np.nan, y)), "NaN"),
        ((X, np.where(some, np.inf, y)), "infinity"),
        ((X, np.zeros((90, 2, 2))), "dim"),
        ((X, y[:-1]), "inconsistent"),
        ((X, y, -w), "from 0 on"),
        ((X, y, 0 * w), "zero|0 for every row"),
        ((X, y, np.where(some, np.nan, w)), "NaN"),
        ((X, y, w[:-1]), "shape"),
        (([(X, y, w[:-1])],), "one weight for every row"),
        ((iter([(X, y)]),), "read once"),
        (([(X, y), (X[:, :2], y)],), "same columns"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(*bad)
        assert_untouched(model, before)


def test_bad_new_rows(rows):
    X, y, _ = rows
    with pytest.raises(NotFittedError):
        RandomFeatureRegressor().predict(X)
    model = RandomFeatureRegressor(sigma=1.0, n_features=20, penalty=0.1, random_state=0)
    model.fit(X, y)
    for new, message in (
        (X[:, :2], "3 features"),
        (np.full((2, 3), np.nan), "NaN"),
        (X[:0], "0 sample"),
        (np.full((2, 3), 1e308), "scale the columns of X"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(new)


# Seeds and threads.


@both_faces
@pytest.mark.parametrize("features", ["fourier", "leverage"])
def test_the_same_seed_gives_the_same_model(rows, make, features):
    X, y, w = rows
    y = outputs_for(make, y)
    one, two, other = (
        make(features=features, n_features=[6, 20], random_state=seed).fit(X, y, w)
        for seed in (0, 0, 1)
    )
    assert_array_equal(one.path_.errors, two.path_.errors)
    assert_array_equal(one.feature_coef_, two.feature_coef_)
    assert not np.array_equal(one.map_.omega[:3], other.map_.omega[:3])
    state = np.random.RandomState(0)
    moved = make(n_features=6, penalty=0.1, random_state=state)
    first = moved.fit(X, y).map_.omega
    assert not np.array_equal(moved.fit(X, y).map_.omega, first)


def test_features_depend_on_the_seed_alone(rows):
    X, y, _ = rows
    maps = [
        RandomFeatureRegressor(sigma=1.0, n_features=20, random_state=3, **other).fit(X, y).map_
        for other in (
            {"penalty": 0.1},
            {"penalty": [0.1, 1.0]},
            {"validation": 3},
            {"intercept": True},
        )
    ]
    maps.append(RandomFeatures(sigma=1.0, n_features=20, random_state=3).fit(X + 1).map_)
    for map in maps[1:]:
        assert_array_equal(map.omega, maps[0].omega)


def test_threads_change_nothing_but_rounding(rng):
    X = rng.normal(size=(3000, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=3000)
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = RandomFeatureRegressor(n_features=[64, 256], random_state=0)
            models.append(model.fit(X, y))
    assert_array_equal(models[0].map_.omega, models[1].map_.omega)
    assert_close_models(*models, rtol=1e-7)


# Files, pipelines, and features alone.


@both_faces
@every_rule
def test_saved_and_pickled_models_predict_the_same(rows, make, rule, tmp_path):
    X, y, w = rows
    X, y = rows_for(rule, X), outputs_for(make, y)
    model = make(n_features=[6, 20], random_state=0, **RULES[rule]).fit(X, y, w)
    imparo.save(model, tmp_path / "model.imparo")
    for same in (imparo.load(tmp_path / "model.imparo"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(same.predict(X), model.predict(X))
        assert same.path_.best == model.path_.best
        assert repr(same) == repr(model)  # with all parameters
    model.statistics_ = None
    imparo.save(model, tmp_path / "small.imparo")
    sizes = [(tmp_path / f"{name}.imparo").stat().st_size for name in ("model", "small")]
    assert sizes[0] - sizes[1] > 2 * 8 * 20**2
    assert_array_equal(imparo.load(tmp_path / "small.imparo").predict(X), model.predict(X))


@both_faces
def test_clones_and_searches(rows, make):
    X, y, _ = rows
    y = outputs_for(make, y)
    model = make(n_features=[6, 20], random_state=0, memory="1GB").fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "path_")
    assert_array_equal(copy.fit(X, y).predict(X), model.predict(X))
    grid = {"features": ["fourier", "qmc"], "n_features": [4, 40], "penalty": [1.0, 1e-3]}
    search = GridSearchCV(make(sigma=1.0, random_state=0), grid, cv=3).fit(X, y)
    best = search.best_estimator_
    assert best.n_features_ == search.best_params_["n_features"] == 40
    assert len(set(search.cv_results_["mean_test_score"])) > 4


@every_rule
@with_and_without
def test_the_transformer_with_ridge_is_the_regressor(rows, rng, rule, intercept):
    X, y, _ = rows
    X, new = rows_for(rule, X), rows_for(rule, rng.normal(size=(20, 3)))
    parameters = {"n_features": 30, "random_state": 0, **RULES[rule]}
    pipeline = make_pipeline(
        RandomFeatures(**parameters), Ridge(alpha=90 * 1e-3, fit_intercept=intercept)
    ).fit(X, y)
    model = RandomFeatureRegressor(penalty=1e-3, intercept=intercept, **parameters).fit(X, y)
    assert_array_equal(pipeline[0].map_.transform(new), model.map_.transform(new))
    assert_allclose(pipeline.predict(new), model.predict(new), rtol=1e-7, atol=1e-8)
    assert_allclose(model.feature_coef_, pipeline[1].coef_, rtol=1e-6, atol=1e-7)


def test_the_transformer_and_the_regressor_choose_by_the_same_rows(rng):
    X = rng.normal(size=(2500, 2))
    parameters = {"n_features": 20, "features": "leverage", "sigma": 1.0, "random_state": 0}
    features = RandomFeatures(**parameters).fit_transform(X)
    model = RandomFeatureRegressor(penalty=0.1, **parameters).fit(X, X[:, 0])
    assert_allclose(model.map_.transform(X), features, rtol=1e-12)


@every_rule
def test_a_saved_transformer_is_the_same(rows, rule, tmp_path):
    X = rows_for(rule, rows[0])
    features = RandomFeatures(n_features=20, random_state=0, **RULES[rule]).fit(X)
    expected = features.transform(X)
    assert expected.shape == (90, 20)
    assert_array_equal(clone(features).fit_transform(X), expected)
    imparo.save(features, tmp_path / "features.imparo")
    for same in (
        imparo.load(tmp_path / "features.imparo"),
        pickle.loads(pickle.dumps(features)),
    ):
        assert_array_equal(same.transform(X), expected)
        assert list(same.get_feature_names_out()) == list(features.get_feature_names_out())


def test_names_frames_and_types_of_features(rows):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(90) + 5)
    features = RandomFeatures(n_features=4, random_state=0)
    expected = clone(features).fit_transform(X)
    names = [f"randomfeatures{j}" for j in range(4)]
    found = features.set_output(transform="pandas").fit_transform(frame)
    assert list(features.feature_names_in_) == ["a", "b", "c"]
    assert (list(found.columns), list(found.index)) == (names, list(frame.index))
    assert_array_equal(found, expected)
    assert features.set_output(transform="polars").transform(frame).columns == names
    features.set_output(transform="default")
    with pytest.raises(ValueError, match="feature names"):
        features.transform(frame[["c", "b", "a"]])
    both = FeatureUnion([("one", features), ("scaled", StandardScaler())]).fit(frame)
    assert list(both.get_feature_names_out())[3:5] == ["one__randomfeatures3", "scaled__a"]
    narrow = clone(features).fit(X.astype(np.float32))
    assert narrow.transform(X.astype(np.float32)).dtype == np.float32
    asked = RandomFeatures(n_features=4, random_state=0, dtype="float32").fit_transform(X)
    assert asked.dtype == np.float32
    assert_allclose(asked, expected, atol=1e-5)
    grid = {"randomfeatures__n_features": [2, 60], "randomfeatures__sigma": [0.05, 1.5]}
    pipeline = make_pipeline(RandomFeatures(random_state=0), Ridge(0.1))
    best = GridSearchCV(pipeline, grid, cv=3).fit(X, y).best_params_
    assert list(best.values()) == [60, 1.5]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "spline"])
def test_features_of_sparse_rows(rows, rule):
    X = np.where(np.abs(rows[0]) > 0.7, rows[0], 0)
    features = RandomFeatures(n_features=20, random_state=0, **RULES[rule])
    expected = clone(features).fit_transform(X)
    for kind in (sparse.csr_array, sparse.csc_matrix):
        found = features.fit(kind(X)).transform(kind(X))
        assert isinstance(found, np.ndarray)
        assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_automatic_numbers_of_features_and_widths(rows):
    X, y, _ = rows
    for sigma in ("median", "scale"):
        features = RandomFeatures(sigma=sigma, random_state=0).fit(X)
        model = RandomFeatureRegressor(sigma=sigma, n_features=40, random_state=0).fit(X, y)
        assert len(features.map_) == 40  # the last of 10, 20, 40, up to √n log n = 42.7
        assert features.sigma_ == features.kernel_.sigma == model.sigma_
        assert_array_equal(features.map_.omega, model.map_.omega)
    assert RandomFeatures(n_features="sqrt").fit_transform(X).shape == (90, 10)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sigma": [1.0, 2.0]}, "sigma=.* is a grid and a transformer cannot select"),
        ({"sigma": "auto"}, "sigma='auto' is a grid and a transformer cannot select"),
        ({"n_features": [10, 20]}, "n_features=.* is a grid and a transformer cannot select"),
        ({"n_features": 11}, "multiples of 2"),
        ({"n_features": 0}, "from 1 on"),
        ({"n_features": "many"}, "not known"),
        ({"sigma": -1.0}, "positive"),
        ({"kernel": "linear"}, "not of Linear"),
        ({"kernel": Gaussian(1.0), "sigma": 2.0}, "no width to set"),
        ({"features": "rff"}, "not known"),
        ({"dtype": "int32"}, "float32, float64"),
        ({"random_state": "x"}, "seed"),
    ],
    ids=str,
)
def test_a_transformer_that_cannot_be(rows, parameters, message):
    X = rows[0]
    features = RandomFeatures(n_features=10).fit(X)
    before = dict(vars(features.set_params(**parameters)))
    with pytest.raises(ValueError, match=message) as caught:
        features.fit(X[:, :2])
    assert "\n" not in str(caught.value)
    assert_untouched(features, before)


def test_bad_rows_of_a_transformer(rows):
    X = rows[0]
    with pytest.raises(NotFittedError):
        RandomFeatures().transform(X)
    features = RandomFeatures(n_features=10).fit(X)
    before = dict(vars(features))
    for bad, message in ((np.full((5, 3), np.nan), "NaN"), (X.astype(str), "text"),
                         (X[:0], "0 sample"), (X[:, 0], "2D")):  # fmt: skip
        for method in (features.fit, features.transform):
            with pytest.raises(ValueError, match=message):
                method(bad)
            assert_untouched(features, before)
    with pytest.raises(ValueError, match="3 features"):
        features.transform(X[:, :2])
