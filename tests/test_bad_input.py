"""Hard input gets the right answer or one clear sentence, and nothing is lost."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.model_selection import GroupKFold, KFold

from imparo import (
    KernelClassifier,
    KernelRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
)
from imparo.errors import (
    ImparoWarning,
    MemoryBudgetError,
    NotPositiveDefiniteError,
    PrecisionWarning,
)
from imparo.kernels import Gaussian, Polynomial

# What was wrong, in words that the message must have.
PARAMETERS = {
    "kernel": [("gausian", "not known; give one of"), (3, "must be a name")],
    "sigma": [
        (0, "positive"),
        (-1.0, "positive"),
        (np.nan, "positive"),
        ("wide", "not known"),
        ([], "not a width"),
        ([1.0, -2.0], "positive"),
        (None, "not a width"),
        (True, "not a width"),
    ],
    "filter": [("ridge", "not known; give one of"), (None, "not known")],
    "penalty": [
        (-1e-3, "from 0 on"),
        (np.nan, "from 0 on"),
        (np.inf, "from 0 on"),
        ("small", "not known"),
        ([], "not a number"),
        (None, "not a number"),
        ([[1.0]], "not a number"),
        (True, "not a number"),
    ],
    "validation": [
        (1.5, "fraction between 0 and 1 or a number of folds"),
        (1, "number of folds"),
        (61, "more than the number of rows"),
        (0, "number of folds"),
        (np.inf, "number of folds"),
        (KFold, "not known"),
        ("cv", "not known"),
        (None, "not known"),
        ([], "no split"),
        ([(np.arange(50), np.array([99]))], "beyond"),
        ([(np.arange(50), np.array([-1]))], "beyond"),
        ([(np.arange(50), np.arange(40, 60))], "both sides"),
        ([(np.arange(50), np.array([0.5]))], "whole numbers"),
        ([1, 2], "pairs"),
        (GroupKFold(3), "needs groups"),
    ],
    "memory": [("lots", "not an amount"), (-5, "at least one byte"), ("1kB", "needs")],
    "dtype": [("int32", "float32, float64"), ("foo", "float32, float64")],
    "intercept": [("yes", "True or False")],
    "progress": [("yes", "True, False or a function")],
    "iterations": [(5, "no effect with filter='tikhonov', which goes by penalty")],
    "components": [(5, "no effect with filter='tikhonov', which goes by penalty")],
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, *case) for name, cases in PARAMETERS.items() for case in cases],
)
def test_bad_parameter(wave, name, value, message):
    X, y = wave
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        KernelRegressor(**{name: value}).fit(X, y)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize("value", [0, -3, 1.5, "many", None, []])
@pytest.mark.parametrize("filter", ["components", "nu", "landweber", "cg"])
def test_bad_number_of_steps_or_components(wave, filter, value):
    name = "components" if filter == "components" else "iterations"
    with pytest.raises(ValueError, match=name):
        KernelRegressor(filter=filter, **{name: value}).fit(*wave)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), "linear", Polynomial(2)])
@pytest.mark.parametrize("sigma", [1.0, "auto", "foo"])
def test_a_width_for_a_kernel_that_takes_none(wave, kernel, sigma):
    with pytest.raises(ValueError, match="no width to set"):
        KernelRegressor(kernel, sigma=sigma).fit(*wave)


def test_a_bad_validation_is_refused_where_nothing_is_selected(wave):
    with pytest.raises(ValueError, match="not known"):
        KernelRegressor(sigma=1.0, penalty=0.1, validation="bogus").fit(*wave)


def test_text_columns_of_frames_are_named(wave):
    X, y = wave
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["city"], frame["kind"] = "Genova", pd.Categorical(["x"] * 60)
    for rows in (
        frame,
        pl.DataFrame({"a": X[:, 0], "city": ["Genova"] * 60, "kind": ["x"] * 60}),
    ):
        with pytest.raises(ValueError, match="columns city, kind hold text"):
            KernelRegressor().fit(rows, y)
    numbers = pd.DataFrame(X).astype(object)
    KernelRegressor(penalty=0.1).fit(numbers, y)


def test_a_precomputed_matrix_must_be_symmetric(rng):
    with pytest.raises(ValueError, match="symmetric"):
        KernelRegressor("precomputed").fit(rng.normal(size=(20, 20)), np.ones(20))


def test_a_kernel_function_that_gives_nan(wave):
    with pytest.raises(ValueError, match="gives NaN"):
        KernelRegressor(lambda A, B: np.full((len(A), len(B)), np.nan)).fit(*wave)


def test_leave_one_out_needs_tikhonov_and_gcv_a_linear_filter(wave):
    with pytest.raises(ValueError, match="Tikhonov filter only"):
        KernelRegressor(filter="nu", validation="loo").fit(*wave)
    with pytest.raises(ValueError, match="linear in y"):
        KernelRegressor(filter="cg", validation="gcv").fit(*wave)


ROWS = {
    "NaN": (lambda X: np.where(X[3, 0] == X, np.nan, X), "NaN"),
    "infinity": (lambda X: np.where(X[3, 0] == X, np.inf, X), "infinity"),
    "text": (lambda X: X.astype(str), "text"),
    "objects of text": (lambda X: X.astype(str).astype(object), "text"),
    "one dimension": (lambda X: X[:, 0], "2D"),
    "three dimensions": (lambda X: X[None], "dim"),
    "no rows": (lambda X: X[:0], "0 sample"),
    "no columns": (lambda X: X[:, :0], "0 feature"),
    "too few rows": (lambda X: X[:-1], "inconsistent"),
    "complex": (lambda X: X + 1j, "omplex"),
}


@pytest.mark.parametrize(
    "make",
    [KernelRegressor, KernelClassifier, RandomFeatureRegressor, RandomFeatureClassifier],
)
@pytest.mark.parametrize("name", ROWS)
def test_bad_rows_leave_a_fitted_model_as_it_was(wave, make, name):
    X, y = wave
    y = (y > 0).astype(int)
    spoil, message = ROWS[name]
    model = make(sigma=1.0).fit(X, y)
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(spoil(X), y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is before[key] for key in before)


def test_a_failing_kernel_leaves_a_fitted_model_as_it_was(wave):
    X, y = wave
    model = KernelRegressor(sigma=1.0).fit(X, y)
    expected = model.predict(X)

    def interrupted(A, B):
        raise KeyboardInterrupt

    model.set_params(kernel=interrupted, sigma="median")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y)
    assert (model.predict(X) == expected).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(60, np.nan), "NaN"),
        (np.full(60, np.inf), "infinity"),
        (np.array(["a", "b"] * 30), "text"),
        (np.array(["a", "b"] * 30, dtype=object), "text"),
        (np.zeros((60, 2, 2)), "dim"),
        (None, "y"),
    ],
)
def test_bad_outputs_of_a_regressor(wave, y, message):
    with pytest.raises(ValueError, match=message):
        KernelRegressor().fit(wave[0], y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(60), "one class"),
        (np.linspace(0, 1, 60), "continuous"),
        (np.tile([[1, 2]], (60, 1)) + np.arange(60)[:, None], "MultiOutputClassifier"),
    ],
)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_bad_classes(wave, y, message):
    with pytest.raises(ValueError, match=message):
        KernelClassifier().fit(wave[0], y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(60), "from 0 on"),
        (np.zeros(60), "non-zero"),
        (np.full(60, np.nan), "NaN"),
        (np.ones(59), "shape"),
    ],
)
def test_bad_weights(wave, weight, message):
    with pytest.raises(ValueError, match=message):
        KernelRegressor().fit(*wave, sample_weight=weight)


def test_prediction_with_other_columns(wave):
    model = KernelRegressor().fit(*wave)
    with pytest.raises(ValueError, match="features"):
        model.predict(wave[0][:, :2])


def test_one_row():
    model = KernelRegressor(sigma=1.0, penalty=1.0).fit([[2.0]], [6.0])
    assert model.predict([[2.0]]) == pytest.approx(3.0)  # K/(K + λ) = 1/2
    with pytest.raises(ValueError, match="1 sample"):
        KernelRegressor().fit([[2.0]], [6.0])


def test_two_rows_can_be_selected_on():
    model = KernelRegressor(sigma=1.0).fit([[0.0], [1.0]], [1.0, 1.0])
    assert np.isfinite(model.predict([[0.5]])).all()


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "linear", "polynomial"])
@pytest.mark.parametrize("intercept", [False, True])
def test_constant_and_duplicate_rows(kernel, intercept):
    X = np.full((300, 3), 7.0)
    y = np.linspace(0, 1, 300)
    model = KernelRegressor(kernel, intercept=intercept).fit(X, y)
    assert_allclose(model.predict(X), 0.5, atol=1e-2)  # nothing to tell rows apart by


def test_constant_columns_change_nothing_for_a_gaussian(wave):
    X, y = wave
    more = np.column_stack([X, np.full(60, 5.0)])
    settings = {"sigma": 1.0, "penalty": 1e-3}
    assert_allclose(
        KernelRegressor(**settings).fit(more, y).predict(more),
        KernelRegressor(**settings).fit(X, y).predict(X),
        rtol=1e-9,
    )


@pytest.mark.parametrize("validation", ["loo", "gcv", 0.3, 3])
def test_constant_outputs(wave, validation):
    X, _ = wave
    model = KernelRegressor(intercept=True, validation=validation).fit(X, np.full(60, 4.0))
    assert_allclose(model.predict(X), 4.0, rtol=1e-9)


def test_tiny_penalty_on_resolved_rows_is_interpolation(rng):
    X, y = np.linspace(0, 30, 25)[:, None], rng.normal(size=25)
    model = KernelRegressor(sigma=0.7, penalty=1e-15)
    with pytest.warns(PrecisionWarning, match="below what float64"):
        model.fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_penalty_below_resolution_is_reported_and_harmless(rng, intercept):
    X = rng.normal(size=(400, 1))
    y = np.sin(X[:, 0])
    model = KernelRegressor(sigma=2.0, penalty=1e-16, intercept=intercept)
    with pytest.warns(PrecisionWarning, match="below what float64 resolves"):
        model.fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
def test_tiny_penalty_on_duplicates_is_the_pseudo_inverse(rng, intercept):
    X = np.repeat(rng.normal(size=(20, 2)), 3, axis=0)
    y = rng.normal(size=60)
    model = KernelRegressor(sigma=0.5, penalty=1e-15, intercept=intercept)
    with pytest.warns(PrecisionWarning, match="weaker are left out"):
        model.fit(X, y)
    means = y.reshape(20, 3).mean(axis=1).repeat(3)
    assert_allclose(model.predict(X), means, atol=1e-6)


def test_no_penalty_asks_for_the_pseudo_inverse_and_gets_no_warning(rng, recwarn):
    X = np.repeat(rng.normal(size=(20, 2)), 3, axis=0)
    KernelRegressor(sigma=0.5, penalty=0).fit(X, rng.normal(size=60))
    assert not [w for w in recwarn if issubclass(w.category, ImparoWarning)]


def test_selection_may_include_no_penalty(wave):
    X, y = wave
    model = KernelRegressor(sigma=1.0, penalty=[0.0, 1e-2]).fit(X, y)
    assert np.isfinite(model.path_.errors[0])
    assert model.penalty_ in (0.0, 1e-2)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_huge_and_tiny_rows(wave, scale):
    X, y = wave
    plain = KernelRegressor(penalty=1e-3).fit(X, y).predict(X)
    scaled = KernelRegressor(penalty=1e-3).fit(X * scale, y).predict(X * scale)
    assert_allclose(scaled, plain, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_huge_and_tiny_outputs(wave, scale):
    X, y = wave
    plain = KernelRegressor().fit(X, y)
    scaled = KernelRegressor().fit(X, y * scale)
    assert_allclose(scaled.predict(X), plain.predict(X) * scale, rtol=1e-8)


def test_a_kernel_that_overflows(wave):
    with pytest.raises(ValueError, match="overflows on these rows; scale"):
        KernelRegressor("polynomial").fit(wave[0] * 1e160, wave[1])


@pytest.mark.parametrize("shape", [(60, 3), (20, 40)])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_linear_kernel_that_overflows(rng, shape, intercept):
    X, y = rng.normal(size=shape) * 1e200, rng.normal(size=shape[0])
    with pytest.raises(ValueError, match="overflows on these rows; scale"):
        KernelRegressor("linear", intercept=intercept).fit(X, y)


@pytest.mark.parametrize("penalty", ["auto", 1e-3])
def test_an_indefinite_kernel(wave, penalty):
    with pytest.raises(NotPositiveDefiniteError, match="check the kernel function"):
        KernelRegressor(lambda A, B: -(A @ B.T), penalty=penalty).fit(*wave)


def test_a_kernel_of_the_wrong_shape(wave):
    with pytest.raises(ValueError, match="pairwise"):
        KernelRegressor(lambda a, b: np.exp(-np.sum((a - b) ** 2)), penalty=0.1).fit(*wave)


def test_a_precomputed_matrix_must_be_square(wave):
    with pytest.raises(ValueError, match="square matrix"):
        KernelRegressor("precomputed").fit(*wave)


def test_sparse_rows_for_a_dense_kernel(wave):
    X, y = sparse.csr_array(wave[0]), wave[1]
    with pytest.raises(TypeError, match="dense rows"):
        KernelRegressor("laplacian", sigma=1.0).fit(X, y)


def test_more_rows_than_memory_allows(wave):
    with pytest.raises(MemoryBudgetError, match="use at most 56 rows or raise memory"):
        KernelRegressor(memory="90kB").fit(*wave)
    KernelRegressor(memory="90kB", penalty=1e-3).fit(*wave)  # one factor takes less


def test_float32_stays_float32_and_is_close(wave):
    X, y = wave
    wide = KernelRegressor(penalty=1e-2).fit(X, y)
    narrow = KernelRegressor(penalty=1e-2).fit(X.astype(np.float32), y)
    assert narrow.dual_coef_.dtype == narrow.predict(X).dtype == np.float32
    assert_allclose(narrow.predict(X), wide.predict(X), atol=1e-4)
    asked = KernelRegressor(penalty=1e-2, dtype="float32").fit(X, y)
    assert asked.dual_coef_.dtype == np.float32


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_float32_rows_and_outputs_of_any_size(wave, scale):
    X, y = wave
    plain = KernelRegressor(dtype="float32").fit(X, y).predict(X)
    rows = KernelRegressor(dtype="float32").fit(X * scale, y).predict(X * scale)
    outputs = KernelRegressor(dtype="float32").fit(X, y * scale).predict(X)
    assert_allclose(rows, plain, atol=1e-2)
    assert_allclose(outputs / scale, plain, atol=1e-2)


def test_float32_rows_with_outputs_far_from_zero(wave):
    X, y = wave
    wide = KernelRegressor(intercept=True).fit(X, y).predict(X)
    narrow = KernelRegressor(intercept=True).fit(X.astype(np.float32), y + 1e4).predict(X)
    assert_allclose(narrow - 1e4, wide, atol=0.02)  # float32 itself has steps of 0.001


@pytest.mark.parametrize("scale", [1e-300, 1e-50, 1e50, 1e307])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("error")
def test_only_ratios_of_weights_count(wave, rng, scale, intercept, dtype):
    X, y = wave
    w = rng.uniform(0.5, 2, 60)
    model = KernelRegressor(penalty=1e-2, intercept=intercept, dtype=dtype)
    plain = model.fit(X, y, w).predict(X)
    scaled = model.fit(X, y, w * scale).predict(X)
    assert_allclose(scaled, plain, rtol=1e-7 if dtype == "float64" else 1e-2, atol=1e-3)
    labels = KernelClassifier(penalty=1e-2, class_weight={0: 9, 1: 1}, dtype=dtype)
    scores = [labels.fit(X, y > 1, v).decision_function(X) for v in (w, w * scale)]
    assert_allclose(*scores, atol=1e-3)


@pytest.mark.parametrize("size", [1e40, 1e-40])
def test_outputs_that_float32_cannot_hold(wave, size):
    X, y = wave
    with pytest.raises(ValueError, match="cannot hold; scale y, or give dtype='float64'"):
        KernelRegressor(dtype="float32").fit(X, y * size)


def test_float32_selection_is_close(wave):
    X, y = wave
    wide, narrow = KernelRegressor(sigma=1.0), KernelRegressor(sigma=1.0, dtype="float32")
    assert narrow.fit(X, y).path_.best["error"] == pytest.approx(
        wide.fit(X, y).path_.best["error"], rel=1e-2
    )


@pytest.mark.parametrize("dtype", [int, bool, np.int8, np.uint16, np.float16, object])
def test_other_kinds_of_numbers(wave, dtype):
    X = (10 * np.abs(wave[0])).astype(int).astype(dtype)
    model = KernelRegressor(sigma=1.0, penalty=0.1).fit(X, wave[1])
    expected = KernelRegressor(sigma=1.0, penalty=0.1).fit(X.astype(float), wave[1])
    assert_allclose(model.predict(X), expected.predict(X.astype(float)), rtol=1e-5)
