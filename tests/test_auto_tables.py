"""Learning within a budget from any table: columns prepared, used and refused."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from auto_tools import (
    FIXED,
    as_objects,
    as_pandas,
    as_polars,
)
from imparo import AutoClassifier, AutoRegressor, NystromRegressor
from imparo.kernels import Gaussian, Matern
from imparo.preparation import KernelInputs

# Tables.


@pytest.mark.parametrize("make", [AutoRegressor, AutoClassifier])
def test_a_table_is_the_same_in_every_form(households, no_clock, make):
    columns, y = households
    y = y > np.median(y) if make is AutoClassifier else y
    found = []
    for form in (as_pandas, as_polars, as_objects):
        model, X = make(**FIXED).fit(form(columns), y), form(columns)
        found.append(model.predict(X))
        assert model.score(X, y) > 0.9
        assert model.inputs_.kinds_ == ["number", "text", "date", "number"]
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


def test_a_table_is_prepared_and_fitted_as_by_hand(households, no_clock):
    """A Nyström model of the same centers, width and penalty on rows of KernelInputs."""
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(**FIXED).fit(frame, y)
    rows = KernelInputs().fit_transform(frame)
    assert_array_equal(model.inputs_.transform(frame), rows)
    assert_array_equal(model.inputs_.pipeline_.transform(frame), rows)
    same = NystromRegressor(
        "gaussian", sigma=model.sigma_, penalty=model.penalty_, centers=model.centers_,
        n_centers=len(model.centers_), intercept=True,
    )  # fmt: skip
    assert [member.share for member in model.members_] == [1.0]
    assert_allclose(model.predict(frame), same.fit(rows, y).predict(rows), atol=1e-5)


def test_new_categories_and_new_gaps_are_predicted(households):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(budget=2, random_state=0).fit(frame, y)
    new = frame[:4].copy()
    new.loc[0, "city"] = "Paris"
    new["moved"] = new["moved"].where(new.index != 1)
    new["owner"] = new["owner"].astype(object).where(new.index != 2, None)
    predicted, before = model.predict(new), model.predict(frame[:4])
    assert np.isfinite(predicted).all()
    assert predicted[3] == pytest.approx(before[3])
    assert (predicted[:3] >= y.min() - np.ptp(y)).all()
    assert (predicted[:3] <= y.max() + np.ptp(y)).all()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_other_columns_than_in_fit_are_refused(households):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(**FIXED, budget=1).fit(frame, y)
    for other, match in (
        (frame.drop(columns="city"), "feature names"),
        (frame[frame.columns[::-1]], "feature names"),
        (frame.to_numpy()[:, :3], "3 features, but .* expecting 4 features"),
        (frame.assign(city=1.0), "'city' was of kind text in fit and is of kind number now"),
        (frame.assign(income=np.inf), "infinite"),
    ):
        with pytest.raises(ValueError, match=match):
            model.predict(other)


def test_units_and_origins_of_columns_do_not_count(waves, no_clock):
    X, y = waves
    moved = X * [1e6, 1, 1e-6, 1] + [3e6, 0, 0, -50]
    one = AutoRegressor(**FIXED).fit(X, y).predict(X)
    other = AutoRegressor(**FIXED).fit(moved, y).predict(moved)
    assert_allclose(other, one, atol=1e-6 * np.ptp(y))


def test_units_do_not_count_where_everything_is_learned(waves, no_clock):
    """Powers of two change no digit, so that the two searches go the same way."""
    X, y = waves[0][:100], waves[1][:100]
    scaled = X * [2.0**20, 1, 2.0**-20, 4]
    one, other = (AutoRegressor("gaussian", random_state=0).fit(Z, y) for Z in (X, scaled))
    assert [t.note for t in other.record_] == [t.note for t in one.record_]
    assert_allclose(other.predict(scaled), one.predict(X), rtol=1e-9)


@pytest.mark.parametrize("inputs", ["standard", "robust", "range", "quantile", "none"])
def test_inputs_that_are_asked_for_are_used(households, inputs):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(inputs=inputs, budget=0.5, random_state=0).fit(frame, y)
    assert model.inputs_.numbers == inputs
    assert {t.inputs for t in model.record_ if t.method != "average"} == {inputs}
    expected = KernelInputs(inputs).fit_transform(frame)
    assert_array_equal(model.inputs_.transform(frame), expected)


def test_a_kernel_that_is_asked_for_is_used(waves):
    model = AutoRegressor(Matern(1.5), budget=1, random_state=0).fit(*waves)
    assert {t.kernel for t in model.record_ if t.method != "average"} == {"Matern 3/2"}


def test_kernels_are_compared(waves, no_clock):
    X, y = waves
    model = AutoRegressor(random_state=0).fit(X[:80], y[:80])
    names = {t.kernel for t in model.record_}
    assert {"Gaussian", "Matern 1/2", "Matern 3/2", "Laplacian"} <= names


def test_a_rough_function_has_a_rough_kernel(rng, no_clock):
    """Steps along the axes: a Gaussian kernel rings, that of absolute distances does not."""
    X = rng.uniform(-1, 1, size=(200, 2))
    y = np.floor(3 * X[:, 0]) + np.floor(3 * X[:, 1]) + 0.05 * rng.normal(size=200)
    model = AutoRegressor(random_state=0).fit(X, y)
    assert not isinstance(model.kernel_, Gaussian)


# Columns that are left as they are.


@pytest.fixture
def odd(rng):
    """Numbers, with a flag, a constant and a copy among the columns."""
    X = rng.normal(size=(200, 5))
    X[:, 1], X[:, 2], X[:, 3] = rng.integers(0, 2, 200), 5.0, X[:, 0]
    return X, np.sin(X[:, 0]) + X[:, 1]


def as_frame(X):
    return pd.DataFrame(X, columns=list("abcde"))


FORMS = pytest.mark.parametrize(
    "form", [np.array, as_frame, np.ndarray.tolist, sparse.csr_array]
)


@FORMS
def test_a_given_width_is_in_the_units_of_x(odd, form):
    """Flags, constants, copies and the order of columns stay: distances are those of X."""
    X, y = odd
    model = AutoRegressor("gaussian", sigma=2.0, budget=1, random_state=0).fit(form(X), y)
    assert not hasattr(model, "relevance_")
    assert not hasattr(model, "unused_")
    assert {t.sigma for t in model.record_ if t.method != "average"} == {2.0}
    same = NystromRegressor(
        "gaussian", sigma=2.0, penalty=model.penalty_, centers=model.centers_,
        n_centers=model.centers_.shape[0], intercept=True,
    )  # fmt: skip
    assert len(model.members_) == 1
    expected = same.fit(form(X), y).predict(form(X))
    assert_allclose(model.predict(form(X)), expected, atol=1e-4)


@FORMS
def test_given_centers_are_in_the_units_of_x(odd, form):
    X, y = odd
    settings = {"centers": X[:50], "budget": 1, "random_state": 0}
    model = AutoRegressor("gaussian", **settings).fit(form(X), y)
    centers = model.centers_
    for center in centers.toarray() if sparse.issparse(centers) else centers:
        assert (center == X).all(axis=1).any()
    assert model.score(form(X), y) > 0.99


@FORMS
def test_a_kernel_with_a_width_for_every_column_has_them_in_order(odd, form):
    X, y = odd
    kernel = Gaussian((1.0, 1.0, 1.0, 1.0, 1e6))
    model = AutoRegressor(kernel, budget=1, random_state=0).fit(form(X), y)
    other = X.copy()
    other[:, 4] = other[::-1, 4]  # of no weight at its width
    assert_allclose(model.predict(form(other)), model.predict(form(X)), atol=1e-6)


def test_a_given_width_and_a_table_of_text(households):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor("gaussian", sigma=[3.0, 10.0], budget=1, random_state=0)
    assert model.fit(frame, y).sigma_ in (3.0, 10.0)
    assert model.inputs_.numbers == "none"
    assert np.isfinite(model.predict(frame)).all()


# Columns that count.


def test_columns_that_do_not_count_are_named(rng, no_clock):
    X = rng.normal(size=(300, 4))
    y = np.sin(2 * X[:, 0]) + np.cos(2 * X[:, 2]) + 0.05 * rng.normal(size=300)
    names = ["wave", "noise", "other wave", "more noise", "always", "wave again"]
    frame = pd.DataFrame(np.column_stack([X, np.ones(300), 3 * X[:, 0] - 1]), columns=names)
    model = AutoRegressor("gaussian", sigma="per-feature", random_state=0).fit(frame, y)
    assert model.unused_ == ["noise", "more noise", "always", "wave again"]
    assert model.relevance_.shape == (6,)
    assert model.relevance_.sum() == pytest.approx(1)
    assert_array_equal(model.relevance_[[1, 3, 4, 5]], 0)
    assert (model.relevance_[[0, 2]] > 0.1).all()


def test_relevance_is_that_of_columns_of_the_table(rng, no_clock):
    """A category, which turns a wave around, and the wave; dates and numbers of no use."""
    n = 200
    city, size = rng.choice(["Rome", "Oslo", "Bonn"], n), rng.normal(size=n)
    days = rng.integers(0, 1000, n) * np.timedelta64(1, "D")
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "city": city,
            "moved": np.datetime64("2020-01-01", "us") + days,
            "size": size,
        }
    )
    y = np.sin(2 * size) * np.where(city == "Rome", 1, -1) + 0.05 * rng.normal(size=n)
    model = AutoRegressor("gaussian", sigma="per-feature", random_state=0).fit(frame, y)
    relevance = dict(zip(frame.columns, model.relevance_, strict=True))
    assert len(model.inputs_.sources_) > len(relevance) == 4
    assert sum(relevance.values()) == pytest.approx(1)
    assert relevance["city"] + relevance["size"] > 0.9
    assert min(relevance["city"], relevance["size"]) > max(
        relevance["noise"], relevance["moved"]
    )
    assert not {"city", "size"} & set(model.unused_)
    assert all(relevance[name] == 0 for name in model.unused_)


def test_relevance_of_another_fit_is_forgotten(waves):
    X, y = waves
    model = AutoRegressor("gaussian", sigma="per-feature", budget=1, random_state=0).fit(X, y)
    assert len(model.relevance_) == 4
    model.set_params(sigma=1.0).fit(X, y)
    assert not hasattr(model, "relevance_")
    assert not hasattr(model, "unused_")


# What is refused.


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"inputs": "best"}, "inputs='best' must be None or one of 'auto', 'standard'"),
        ({"inputs": ["standard"]}, "must be None or one of"),
        ({"target": "sqrt"}, "target='sqrt' must be one of 'auto', 'none'"),
        ({"target": None}, "target=None must be one of"),
        ({"sigma": "best"}, "sigma='best' is not known"),
        ({"sigma": -1.0}, "positive number"),
        ({"sigma": np.nan}, "positive number"),
        ({"sigma": []}, "not a width"),
        ({"sigma": None}, "sigma=None"),
        ({"kernel": "best"}, "kernel='best' is not known"),
        ({"dtype": "int"}, "float32, float64 or None"),
        ({"validation": "loo"}, "validation='loo' is not known"),
        ({"validation": 1.5}, "a fraction between 0 and 1 or a number of folds"),
    ],
    ids=str,
)
def test_bad_parameters_are_one_sentence_and_change_nothing(waves, settings, match):
    X, y = waves
    model = AutoRegressor(sigma=1.0, budget=1, random_state=0).fit(X[:50], y[:50])
    before, known = model.predict(X), vars(model).copy()
    with pytest.raises(ValueError, match=match) as caught:
        model.set_params(**settings).fit(X, y)
    assert "\n" not in str(caught.value)
    assert vars(model).keys() == known.keys()
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X, y: (X, np.where(y > 1, np.nan, y)), "NaN"),
        (lambda X, y: (X, y.astype(str)), "y holds text"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (np.where(X > 2, np.inf, X), y), "infini"),
        (lambda X, y: (np.full_like(X, np.nan), y), "every cell is missing"),
        (lambda X, y: (X, None), "requires y"),
    ],
    ids=["gaps in y", "text in y", "a row too many", "infinite", "no value", "no y"],
)
def test_bad_rows_are_one_sentence_and_change_nothing(waves, change, match):
    X, y = waves
    model = AutoRegressor(sigma=1.0, budget=1, random_state=0).fit(X[:50], y[:50])
    before = model.predict(X)
    with pytest.raises(ValueError, match=match):
        model.fit(*change(X, y))
    assert_array_equal(model.predict(X), before)


def test_one_class_is_refused(waves):
    with pytest.raises(ValueError, match="one class only"):
        AutoClassifier(budget=1).fit(waves[0], np.ones(300))


def test_mixed_columns_are_refused(waves):
    mixed = waves[0].astype(object)
    mixed[3, 1], mixed[4, 2] = "three", datetime.date(2020, 1, 1)
    with pytest.raises(ValueError, match="'x1' holds numbers and text"):
        AutoRegressor(budget=1).fit(mixed, waves[1])
