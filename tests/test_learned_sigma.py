"""Estimators with ``sigma="learned"`` and ``sigma="per-feature"``."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

import imparo
from imparo import (
    KernelClassifier,
    KernelRegressor,
    NystromClassifier,
    NystromRegressor,
    NytroClassifier,
    NytroRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
    RandomFeatures,
)
from imparo.errors import MemoryBudgetError
from imparo.estimators import candidates
from imparo.kernels import Gaussian, Laplacian, Linear, Matern
from imparo.width_learning import Learned, learn_widths

SETTINGS = {
    "exact": {},
    "nystrom": {"n_centers": [10, 40]},
    "nytro": {"n_centers": 40, "iterations": [5, 10, 20, 40]},
    "random features": {"n_features": [20, 80]},
}
REGRESSORS = dict(
    zip(
        SETTINGS,
        (KernelRegressor, NystromRegressor, NytroRegressor, RandomFeatureRegressor),
        strict=True,
    )
)
CLASSIFIERS = dict(
    zip(
        SETTINGS,
        (KernelClassifier, NystromClassifier, NytroClassifier, RandomFeatureClassifier),
        strict=True,
    )
)
names = pytest.mark.parametrize("name", SETTINGS)
sigmas = pytest.mark.parametrize("sigma", ["learned", "per-feature"])
COLUMNS = ["age", "height", "weight", "noise"]


def regressor(name, **parameters):
    return REGRESSORS[name](**{"random_state": 0, **SETTINGS[name], **parameters})


def classifier(name, **parameters):
    return CLASSIFIERS[name](**{"random_state": 0, **SETTINGS[name], **parameters})


def transformer(name=None, **parameters):
    return RandomFeatures(**{"random_state": 0, "n_features": 40, **parameters})


makers = pytest.mark.parametrize(
    ("make", "name"),
    [(regressor, n) for n in SETTINGS] + [(transformer, None)],
    ids=[*SETTINGS, "transformer"],
)


def waves(X):
    return np.sin(2 * X[:, 1]) + np.sin(2 * X[:, 2])


@pytest.fixture(scope="module")
def rows():
    """Rows whose outputs depend on columns 1 and 2, and the others are in large units."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 4)) * [10, 1, 1, 10]
    return X, waves(X) + 0.1 * rng.normal(size=150)


@pytest.fixture(scope="module")
def fresh():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 4)) * [10, 1, 1, 10]
    return X, waves(X)


def error(model, X, y):
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


# What a fit gives.


@names
def test_errors_are_below_those_of_the_median(name):
    errors = []
    for seed in range(1, 4):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(150, 4)), rng.normal(size=(400, 4))
        y = waves(X) + 0.1 * rng.normal(size=150)
        models = [
            regressor(name, sigma=s, intercept=True).fit(X, y)
            for s in ("median", "learned", "per-feature")
        ]
        errors.append([error(model, new, waves(new)) for model in models])
    median, learned, each = np.mean(errors, axis=0)
    assert learned < median
    assert each < 0.6 * median


@names
@pytest.mark.parametrize(
    "kernel", ["gaussian", "laplacian", "matern12", "matern32", "matern52"]
)
def test_columns_that_count(rows, name, kernel):
    X, y = rows
    one = regressor(name, kernel=kernel, sigma="learned").fit(X, y)
    assert isinstance(one.sigma_, float)
    assert one.kernel_.sigma == one.sigma_
    each = regressor(name, kernel=kernel, sigma="per-feature").fit(X, y)
    assert isinstance(each.sigma_, tuple)
    assert each.kernel_.sigma == each.sigma_
    assert len(each.sigma_) == 4
    if kernel != "laplacian":  # to which other columns matter less
        assert set(np.argsort(each.relevance_)[-2:]) == {1, 2}
    for model in (one, each):
        assert type(model.kernel_) is type(imparo.kernels.as_kernel(kernel))
        assert model.relevance_.sum() == pytest.approx(1)
        zeros = [f"x{k}" for k in np.flatnonzero(model.relevance_ == 0)]
        assert model.unused_ == zeros


@makers
@sigmas
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, None])
def test_unused_columns_have_names(rows, make, name, sigma, frame):
    X, y = np.column_stack([rows[0][:, :3], np.full(150, 0.1)]), rows[1]
    model = make(name, sigma=sigma)
    if frame is None:
        model.fit(X, y)
        assert model.unused_[-1] == "x3"
    else:
        model.fit(frame(dict(zip(COLUMNS, X.T, strict=True))), y)
        assert model.unused_[-1] == "noise"
        assert not {"height", "weight"} & set(model.unused_)
    assert model.relevance_[3] == 0
    if sigma == "learned":
        assert len(model.unused_) == 1


@names
@sigmas
@pytest.mark.parametrize("intercept", [False, True])
def test_the_model_is_that_of_the_kernel_given(rows, name, sigma, intercept):
    X, y = rows
    model = regressor(name, sigma=sigma, intercept=intercept).fit(X, y)
    given = regressor(name, kernel=model.kernel_, intercept=intercept).fit(X, y)
    assert_array_equal(model.predict(X), given.predict(X))
    assert_array_equal(model.path_.errors, given.path_.errors)


@sigmas
def test_transformed_rows_are_those_of_the_kernel_given(rows, sigma):
    X, y = rows
    model = transformer(sigma=sigma).fit(X, y)
    assert_array_equal(model.transform(X), transformer(kernel=model.kernel_).fit_transform(X))
    Phi = transformer(kernel=model.kernel_).fit_transform(X)
    pipeline = make_pipeline(transformer(sigma=sigma), Ridge(1e-2)).fit(X, y)
    assert_array_equal(pipeline.predict(X), Ridge(1e-2).fit(Phi, y).predict(Phi))


@makers
def test_a_fit_without_learning_forgets(rows, make, name):
    model = make(name, sigma="per-feature").fit(*rows)
    assert len(model.relevance_) == 4
    model.set_params(sigma="median").fit(*rows)
    assert not hasattr(model, "relevance_")
    assert not hasattr(model, "unused_")
    model.set_params(kernel=Gaussian(1.0)).fit(*rows)
    assert not hasattr(model, "relevance_")


@makers
@sigmas
def test_the_same_random_state_gives_the_same_model(rows, make, name, sigma):
    model = make(name, sigma=sigma)
    assert model.get_params()["sigma"] == sigma
    again = clone(model).fit(*rows)
    model.fit(*rows)
    assert model.kernel_ == again.kernel_
    assert_array_equal(model.relevance_, again.relevance_)
    assert model.get_params()["sigma"] == sigma
    # Fitting a second time is the same as well.
    assert model.fit(*rows).kernel_ == again.kernel_


def test_a_search_takes_learned_widths(rows):
    X, y = rows
    search = GridSearchCV(
        regressor("nystrom"), {"sigma": ["median", "per-feature"]}, cv=KFold(2)
    ).fit(X, y)
    assert search.best_params_ == {"sigma": "per-feature"}


@makers
@sigmas
def test_files_keep_what_was_learned(rows, make, name, sigma, tmp_path):
    X, y = rows
    model = make(name, sigma=sigma).fit(pd.DataFrame(X, columns=COLUMNS), y)
    imparo.save(model, tmp_path / "model.imparo")
    loaded = imparo.load(tmp_path / "model.imparo")
    assert_array_equal(loaded.relevance_, model.relevance_)
    assert loaded.unused_ == model.unused_
    assert (loaded.sigma, loaded.sigma_) == (sigma, model.sigma_)
    assert loaded.kernel_ == model.kernel_
    how = "transform" if name is None else "predict"
    frame = pd.DataFrame(X, columns=COLUMNS)
    assert_array_equal(getattr(loaded, how)(frame), getattr(model, how)(frame))


@sigmas
@pytest.mark.parametrize("make", [NystromRegressor, RandomFeatureRegressor])
def test_to_grow_is_to_fit_more(rows, make, sigma):
    X, y = rows
    size = make._size
    settings = {"sigma": sigma, "penalty": 1e-4, "random_state": 0}
    grown = make(**{size: 20}, **settings).fit(X, y)
    relevance = grown.relevance_
    grown.grow(50, X, y)
    whole = make(**{size: 50}, **settings).fit(X, y)
    assert grown.kernel_ == whole.kernel_
    assert_array_equal(grown.relevance_, relevance)
    assert_array_equal(whole.relevance_, relevance)
    assert_allclose(grown.predict(X), whole.predict(X), rtol=1e-6, atol=1e-8)


# Which rows are learned from.


@names
@sigmas
def test_rows_held_out_change_no_width(rows, name, sigma):
    X, y = rows
    order = np.random.default_rng(1).permutation(150)
    held = order[:40]
    parameters = {"sigma": sigma, "validation": [(order[40:], held)]}
    expected = regressor(name, **parameters).fit(X, y)
    other, out = X.copy(), y.copy()
    other[held], out[held] = 7 * X[held] + 3, -20 * y[held]
    model = regressor(name, **parameters).fit(other, out)
    assert_allclose(model.sigma_, expected.sigma_, rtol=1e-5)
    assert_allclose(model.relevance_, expected.relevance_, rtol=1e-5)
    # The others do.
    other = X.copy()
    other[order[40:]] *= 2
    assert not np.allclose(regressor(name, **parameters).fit(other, y).sigma_, expected.sigma_)


@names
@pytest.mark.parametrize("most", [60, 4000])
def test_a_sample_is_enough(rows, name, most, monkeypatch):
    X, y = rows
    seen = []

    def spy(kernel, X, Y, **settings):
        seen.append((X, Y, settings["weight"]))
        return learn_widths(kernel, X, Y, **settings)

    monkeypatch.setattr(candidates, "learn_widths", spy)
    monkeypatch.setattr(candidates, "_ROWS", most)
    monkeypatch.setattr(candidates, "_FEWEST_ROWS", 50)
    w = np.random.default_rng(2).uniform(0.5, 2, 150)
    held = np.arange(100, 150)
    validation = [(np.arange(100), held)]
    regressor(name, sigma="per-feature", validation=validation).fit(X, y, w)
    [(some, out, weight)] = seen
    match = (some[:, None] == X).all(axis=2)
    assert len(some) == min(most, 100)
    assert (match.sum(axis=1) == 1).all()
    positions = match.argmax(axis=1)
    assert len(set(positions)) == len(some)
    assert not set(positions) & set(held)
    # Outputs and weights are of the same rows, up to units.
    assert np.corrcoef(out[:, 0], y[positions])[0, 1] == pytest.approx(1)
    assert_allclose(weight / weight.mean(), w[positions] / w[positions].mean(), rtol=1e-9)


@names
@sigmas
def test_rows_of_weight_zero_change_nothing(rows, name, sigma):
    X, y = rows
    rng = np.random.default_rng(3)
    where = rng.integers(0, 151, 30)
    more = np.insert(X, where, 100 * rng.normal(size=(30, 4)), axis=0)
    out = np.insert(y, where, 100 * rng.normal(size=30))
    w = rng.uniform(0.5, 2, 150)
    expected = regressor(name, sigma=sigma).fit(X, y, w)
    model = regressor(name, sigma=sigma).fit(more, out, np.insert(w, where, 0.0))
    assert_allclose(model.sigma_, expected.sigma_, rtol=1e-5)
    assert_allclose(model.relevance_, expected.relevance_, rtol=1e-5)
    if name in ("exact", "random features"):  # other positions are other centers
        assert_allclose(model.predict(X), expected.predict(X), rtol=1e-4, atol=1e-5)
    plain = regressor(name, sigma=sigma).fit(X, y)
    assert not np.allclose(plain.sigma_, expected.sigma_, rtol=1e-4)  # weights do count


# Other units.


@pytest.fixture(scope="module")
def plain(rows):
    return regressor("nystrom", sigma="per-feature").fit(*rows)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(-8, 8), min_size=4, max_size=4), st.permutations(range(4)))
def test_columns_in_other_units_and_order(rows, plain, powers, order):
    (X, y), units = rows, 10.0 ** np.array(powers)
    model = regressor("nystrom", sigma="per-feature").fit(X * units, y)
    assert_allclose(model.sigma_, units * plain.sigma_, rtol=1e-5)
    assert_allclose(model.relevance_, plain.relevance_, rtol=1e-5, atol=1e-12)
    assert model.unused_ == plain.unused_
    assert (model.penalty_, model.n_centers_) == (plain.penalty_, plain.n_centers_)
    assert_allclose(model.predict(X * units), plain.predict(X), rtol=1e-4, atol=1e-5)
    model = regressor("nystrom", sigma="per-feature").fit(X[:, order], y)
    assert_allclose(model.sigma_, np.array(plain.sigma_)[order], rtol=1e-5)


@settings(max_examples=6, deadline=None)
@given(
    st.lists(st.integers(-200, 200), min_size=4, max_size=4), st.sampled_from(list(SETTINGS))
)
def test_powers_of_two_change_no_digit(rows, powers, name):
    (X, y), units = rows, 2.0 ** np.array(powers)
    expected = regressor(name, sigma="per-feature").fit(X, y)
    model = regressor(name, sigma="per-feature").fit(X * units, y)
    assert_array_equal(model.sigma_, units * expected.sigma_)
    assert_array_equal(model.relevance_, expected.relevance_)
    assert_allclose(model.predict(X * units), expected.predict(X), rtol=1e-9)


@names
def test_outputs_in_other_units(rows, name):
    X, y = rows
    expected = regressor(name, sigma="per-feature").fit(X, y)
    for units in (1e-150, 1e-3, 1e150):
        model = regressor(name, sigma="per-feature").fit(X, units * y)
        assert_allclose(model.sigma_, expected.sigma_, rtol=1e-5)
        assert_allclose(model.predict(X), units * expected.predict(X), rtol=1e-4)


# Kinds of input.


@names
@sigmas
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(rows, fresh, name, sigma, n_classes):
    words = np.array(["low", "middle", "top"])
    cuts = [0.0] if n_classes == 2 else [-0.5, 0.5]
    X, new, truth = rows[0], fresh[0], words[np.digitize(fresh[1], cuts)]
    codes = np.digitize(waves(X), cuts)
    model = classifier(name, sigma=sigma, intercept=True).fit(X, words[codes])
    assert_array_equal(model.classes_, words[:n_classes])
    assert set(model.predict(new)) <= set(words)
    assert isinstance(model.sigma_, float if sigma == "learned" else tuple)
    if sigma == "per-feature":
        median = classifier(name, intercept=True).fit(X, words[codes])
        assert model.score(new, truth) > median.score(new, truth)
        assert set(np.argsort(model.relevance_)[-2:]) == {1, 2}
    # What classes are called does not matter.
    assert classifier(name, sigma=sigma, intercept=True).fit(X, codes).kernel_ == model.kernel_


def test_a_transformer_takes_classes_by_name(rows):
    X, y = rows
    words = np.array(["low", "top"])[(y > 0).astype(int)]
    model = transformer(sigma="per-feature").fit(X, words)
    assert model.kernel_ == transformer(sigma="per-feature").fit(X, 2.0 * (y > 0) - 1).kernel_
    three = np.array(["low", "middle", "top"])[np.digitize(y, [-0.5, 0.5])]
    assert set(np.argsort(transformer(sigma="per-feature").fit(X, three).relevance_)[2:]) == {
        1,
        2,
    }


@names
@sigmas
def test_several_outputs(rows, name, sigma):
    X, _ = rows
    Y = np.sin(2 * X[:, 1:3])
    model = regressor(name, sigma=sigma).fit(X, Y)
    assert model.predict(X).shape == (150, 2)
    assert model.relevance_.shape == (4,)
    one = regressor(name, sigma=sigma).fit(X, Y[:, :1])
    assert one.predict(X).shape == (150, 1)
    assert_allclose(one.sigma_, regressor(name, sigma=sigma).fit(X, Y[:, 0]).sigma_, rtol=1e-6)
    if sigma == "per-feature":
        assert set(np.argsort(model.relevance_)[-2:]) == {1, 2}
        assert np.argmax(one.relevance_) == 1


@makers
@sigmas
def test_sparse_rows(rows, make, name, sigma):
    X, y = rows[0] * (rows[0] > 0), rows[1]
    expected = make(name, sigma=sigma).fit(X, y)
    model = make(name, sigma=sigma).fit(sparse.csr_array(X), y)
    assert_allclose(model.sigma_, expected.sigma_, rtol=1e-9)
    assert_allclose(model.relevance_, expected.relevance_, rtol=1e-9)
    how = "transform" if name is None else "predict"
    found = getattr(model, how)(sparse.csr_array(X))
    assert_allclose(found, getattr(expected, how)(X), atol=1e-3)


@makers
@sigmas
def test_float32(rows, make, name, sigma):
    X, y = rows[0].astype(np.float32), rows[1].astype(np.float32)
    model = make(name, sigma=sigma).fit(X, y)
    found = model.predict(X) if name else model.transform(X)
    assert found.dtype == np.float32
    expected = make(name, sigma=sigma).fit(X.astype(np.float64), y.astype(np.float64))
    assert_allclose(model.sigma_, expected.sigma_, rtol=1e-3)
    assert model.relevance_.dtype == np.float64


HARD = {
    "one row": lambda X, y: (X[:1], y[:1]),
    "two rows": lambda X, y: (X[:2], y[:2]),
    "three rows": lambda X, y: (X[:3], y[:3]),
    "one column": lambda X, y: (X[:, 1:2], y),
    "constant outputs": lambda X, y: (X, np.full(150, 0.1)),
    "constant columns": lambda X, y: (np.where([1, 0, 0, 1], 0.1, X), y),
    "only constant columns": lambda X, y: (np.full((150, 2), 0.1), y),
    "duplicate rows": lambda X, y: (np.repeat(X[:40], 3, axis=0), np.repeat(y[:40], 3)),
    "whole numbers": lambda X, y: (np.round(X).astype(int), np.round(y).astype(int)),
    "huge": lambda X, y: (1e150 * X, 1e150 * y),
    "tiny": lambda X, y: (1e-150 * X, 1e-150 * y),
    "huge and tiny": lambda X, y: (X * [1e150, 1, 1e-150, 1], y),
    "more columns than rows": lambda X, y: (X[:48].reshape(12, 16), y[:12]),
}


@makers
@sigmas
@pytest.mark.parametrize("case", HARD)
def test_hard_rows(rows, make, name, sigma, case):
    X, y = HARD[case](*rows)
    parameters = {"n_centers": [1, 10]} if name in ("nystrom", "nytro") else {}
    if case == "one row":  # nothing can be selected
        parameters = {
            "exact": {"penalty": 0.1},
            "nystrom": {"n_centers": 1, "penalty": 0.1},
            "nytro": {"n_centers": 1, "iterations": 5},
            "random features": {"n_features": 20, "penalty": 0.1},
        }.get(name, {})
    if name == "nytro":
        parameters["n_centers"] = min(10, max(1, len(X) // 2))
    model = make(name, sigma=sigma, **parameters).fit(X, y)
    found = model.transform(X) if name is None else model.predict(X)
    assert np.isfinite(found).all()
    d = X.shape[1]
    assert np.ndim(model.sigma_) == 0 if sigma == "learned" else len(model.sigma_) == d
    assert np.isfinite(model.sigma_).all()
    assert model.relevance_.shape == (d,)
    assert np.isfinite(model.relevance_).all()
    zeros = [f"x{k}" for k in np.flatnonzero(model.relevance_ == 0)]
    # One width for columns of 1e150 and of 1: squares of shares underflow.
    assert model.unused_ == ([] if (case, sigma) == ("huge and tiny", "learned") else zeros)
    constant = np.ptp(X, axis=0) == 0
    assert_array_equal(model.relevance_[constant], 0)
    if name and case in ("huge", "tiny", "huge and tiny") and sigma == "per-feature":
        expected = make(name, sigma=sigma, **parameters).fit(*rows)
        assert_allclose(model.relevance_, expected.relevance_, rtol=1e-5)


# What cannot be.


def my_kernel(X, Z):
    return X @ Z.T


UNLEARNABLE = {
    "linear": "linear",
    "polynomial": "polynomial",
    "a sum": Gaussian() + Linear(),
    "a multiple": 2 * Gaussian(),
    "with a width": Gaussian(2.0),
    "with widths": Matern(1.5, (1.0, 2.0, 3.0, 4.0)),
    "a function": my_kernel,
}


@pytest.fixture
def nothing_learned(monkeypatch):
    """Make learning fail, to see that a refusal comes before it."""

    def learn(*rows, **settings):
        raise AssertionError("widths are learned")

    monkeypatch.setattr(candidates, "learn_widths", learn)


def state(model):
    return {key: id(value) for key, value in vars(model).items()}


@makers
@sigmas
@pytest.mark.parametrize("kernel", UNLEARNABLE)
def test_kernels_whose_widths_cannot_be_learned(
    rows, make, name, sigma, kernel, nothing_learned
):
    model = make(name).fit(*rows)
    model.set_params(kernel=UNLEARNABLE[kernel], sigma=sigma)
    before = state(model)
    with pytest.raises(ValueError, match=r"Matérn kernels|no width to set") as caught:
        model.fit(*rows)
    assert "\n" not in str(caught.value)
    assert "; " in str(caught.value)
    assert state(model) == before


@pytest.mark.parametrize("features", ["fastfood", "sorf"])
@pytest.mark.parametrize("make", [regressor, classifier, transformer])
def test_fast_transforms_have_one_width(rows, make, features):
    X, y = rows[0], rows[1] > 0
    model = make("random features", features=features, sigma="learned").fit(X, y)
    before = state(model.set_params(sigma="per-feature"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "learn_widths", None)  # it would not even be called
        with pytest.raises(ValueError, match="has one width for all columns; divide"):
            model.fit(X, y)
    assert state(model) == before


@sigmas
def test_a_transformer_learns_from_outputs(rows, sigma, nothing_learned):
    X, y = rows
    model = transformer().fit(X)
    before = state(model.set_params(sigma=sigma))
    for out, message in (
        (None, f"sigma='{sigma}' learns from outputs and y is None; give y, or"),
        (y[:-1], "inconsistent numbers of samples"),
        (np.where(np.arange(150) == 3, np.nan, y), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, out)
        assert state(model) == before


@makers
@sigmas
def test_missing_values_are_refused(rows, make, name, sigma, nothing_learned):
    X, y = rows
    model = make(name).fit(X, y)
    before = state(model.set_params(sigma=sigma))
    missing = np.where(np.arange(600).reshape(150, 4) == 7, np.nan, X)
    with pytest.raises(ValueError, match="X contains NaN"):
        model.fit(missing, y)
    assert state(model) == before


@names
@sigmas
def test_memory(rows, name, sigma):
    X, y = rows
    model = regressor(name, sigma=sigma, memory=20_000).fit
    with pytest.raises(MemoryBudgetError, match="learning widths of 4 columns needs") as caught:
        model(X, y)
    assert "raise memory, or give sigma='median'" in str(caught.value)
    assert not hasattr(model.__self__, "relevance_")
    # What it says that it needs is what it needs.
    need = int(re.search("needs ([0-9,]+) bytes", str(caught.value))[1].replace(",", ""))
    model = regressor(name, sigma=sigma)
    with pytest.raises(MemoryBudgetError, match=f"needs {need:,} bytes"):
        model.set_params(memory=need - 1).fit(X, y)
    assert isinstance(model.set_params(memory=need).fit(X, y).kernel_, Gaussian)


@names
def test_dense_kernels_refuse_sparse_rows(rows, name, nothing_learned):
    if name == "random features":
        pytest.skip("random features of the Laplacian kernel take sparse rows")
    with pytest.raises(TypeError, match="Laplacian takes dense rows and got a sparse matrix"):
        regressor(name, kernel=Laplacian(), sigma="per-feature").fit(
            sparse.csr_array(rows[0]), rows[1]
        )


@names
def test_a_name_that_is_not_known(rows, name):
    with pytest.raises(ValueError, match="sigma='per-column' is not known; give a number"):
        regressor(name, sigma="per-column").fit(*rows)


def test_estimators_tell_what_was_learned(rows, monkeypatch):
    X, y = rows
    relevance = np.array([0.25, 0.75, 0.0, 0.0])
    told = Learned(Gaussian((1.0, 2.0, 3.0, 4.0)), 1e-3, 0.1, 0.1, 3, relevance, relevance == 0)
    monkeypatch.setattr(candidates, "learn_widths", lambda *rows, **settings: told)
    for name in SETTINGS:
        model = regressor(name, sigma="per-feature").fit(X, y)
        assert model.sigma_ == told.kernel.sigma
        assert model.kernel_ == told.kernel
        assert_array_equal(model.relevance_, relevance)
        assert model.unused_ == ["x2", "x3"]
