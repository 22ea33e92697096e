"""Nyström machines on input of any size and kind, as scikit-learn and files have it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import imparo
from imparo import KernelRegressor, NystromClassifier, NystromRegressor
from imparo.centers import PivotedCholesky
from imparo.errors import MemoryBudgetError, NotPositiveDefiniteError
from imparo.kernels import Gaussian, Matern, Polynomial
from model_tools import assert_untouched
from nystrom_tools import both_faces, some_left_out, wavy_rows, with_and_without

rows = pytest.fixture(wavy_rows)
split = pytest.fixture(some_left_out)


# Input of any size, and input that cannot be used.


def test_outputs_far_from_0(rows):
    X, y, _ = rows
    settings = {"sigma": 1.0, "n_centers": [10, 30], "intercept": True, "random_state": 0}
    plain = NystromRegressor(**settings).fit(X, y)
    far = NystromRegressor(**settings).fit(X, y + 1e6)
    assert far.penalty_ == plain.penalty_
    assert_allclose(far.path_.errors, plain.path_.errors, rtol=1e-6)
    assert_allclose(far.predict(X) - 1e6, plain.predict(X), atol=1e-6)


def test_constant_outputs(rows):
    X, _, w = rows
    for validation in (0.2, 3, "gcv"):
        model = NystromRegressor(intercept=True, n_centers=[5, 20], validation=validation)
        assert_allclose(model.fit(X, np.full(90, 4.0), w).predict(X), 4.0, rtol=1e-9)
    model = NystromRegressor(n_centers=[5, 20]).fit(X, np.zeros(90))
    assert_array_equal(model.predict(X), 0.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_huge_and_tiny_rows(rows, scale, form):
    X, y, w = rows
    model = NystromRegressor(penalty=[1e-1, 1e-3], n_centers=[5, 30], random_state=0)
    plain = model.fit(X, y, w)
    errors, predictions = plain.path_.errors, plain.predict(X)
    scaled = model.fit(form(X * scale), y, w)
    assert_allclose(scaled.path_.errors, errors, rtol=1e-6)
    assert_allclose(scaled.predict(X * scale), predictions, rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_huge_and_tiny_rows_of_a_linear_kernel(rows, scale):
    X, y, _ = rows
    model = NystromRegressor("linear", n_centers=[2, 30], random_state=0)
    plain = model.fit(X, y)
    errors, predictions = plain.path_.errors, plain.predict(X)
    scaled = model.fit(X * scale, y)
    assert_allclose(scaled.path_.errors, errors, rtol=1e-6)
    assert_allclose(scaled.predict(X * scale), predictions, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_kernel_that_overflows(rows):
    X, y, _ = rows
    for kernel, scale in (("polynomial", 1e160), ("linear", 1e200)):
        with pytest.raises(ValueError, match="overflows on these rows; scale"):
            NystromRegressor(kernel, n_centers=10).fit(X * scale, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-150, 1e150, 1e-300, 1e300])
@with_and_without
def test_huge_and_tiny_outputs(rows, scale, intercept):
    X, y, _ = rows
    model = NystromRegressor(n_centers=[5, 30], intercept=intercept, random_state=0)
    plain = model.fit(X, y)
    errors, predictions = plain.path_.errors, plain.predict(X)
    scaled = model.fit(X, y * scale)
    assert_allclose(scaled.path_.errors / scale, errors, rtol=1e-9)
    assert_allclose(scaled.predict(X) / scale, predictions, rtol=1e-7, atol=1e-9)


@both_faces
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("validation", [0.2, 2, "gcv"])
@with_and_without
def test_two_and_three_rows(make, n, validation, intercept):
    X, y = np.array([[0.0], [1.0], [3.0]])[:n], np.array([0, 1, 1])[:n]
    model = make(validation=validation, intercept=intercept, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert 1 <= model.n_centers_ <= n


def test_one_row():
    # K/(K + λ) = 1/2.
    model = NystromRegressor(sigma=1.0, penalty=1.0, n_centers=5).fit([[2.0]], [6.0])
    assert model.predict([[2.0]]) == pytest.approx(3.0)
    assert model.n_centers_ == 1
    with pytest.raises(ValueError, match="1 sample"):
        NystromRegressor().fit([[2.0]], [6.0])
    with pytest.raises(ValueError, match="one class"):
        NystromClassifier().fit([[2.0]], [6])


def test_grids_of_one_value(rows):
    X, y, _ = rows
    for penalty, sizes, shape in (
        ([1e-2], [5, 10], (1, 2)),
        ([1e-2, 1e-3], [5], (2, 1)),
        (1e-2, [5, 10, 20], (1, 3)),
        ("auto", 5, (41, 1)),
    ):
        model = NystromRegressor(sigma=1.0, penalty=penalty, n_centers=sizes).fit(X, y)
        assert model.path_.errors.shape == shape
    assert NystromRegressor(sigma=1.0, penalty=[1e-2], n_centers=[5]).fit(X, y).path_ is None


def test_more_centers_than_rows_are_cut(rows, split):
    X, y, _ = rows
    model = NystromRegressor(sigma=1.0, penalty=1e-2, n_centers=10**6).fit(X, y)
    assert model.n_centers_ == len(model.center_rows_) == 90
    model = NystromRegressor(
        sigma=1.0, penalty=[1e-2, 1e-3], n_centers=[10, 500, 1000], validation=[split]
    ).fit(X, y)
    assert model.path_.sizes.tolist() == [10, 70]  # all but those held out
    centers = NystromRegressor(sigma=1.0, penalty=1e-2, n_centers=50, centers=X[:20])
    assert centers.fit(X, y).n_centers_ == 20


PARAMETERS = {
    "kernel": [("gausian", "not known; give one of"), (3, "must be a name"),
               ("precomputed", "use KernelRegressor or KernelClassifier")],
    "sigma": [(0, "positive"), (np.nan, "positive"), ("wide", "not known"), ([], "not a width"),
              (True, "not a width"), (None, "not a width")],
    "penalty": [(-1, "from 0 on"), (np.nan, "from 0 on"), (np.inf, "from 0 on"),
                ("x", "not known"), ([], "not a number"), (None, "not a number"),
                (True, "not a number"), ([1.0, -1.0], "from 0 on")],
    "n_centers": [(0, "from 1 on"), (-1, "from 1 on"), (1.5, "whole numbers"),
                  ("x", "not known"), (True, "not a number"), ([], "not a number"),
                  (None, "not a number"), ([5, 0], "from 1 on"), (np.nan, "whole numbers")],
    "centers": [("random", "random"), (3, "centers"), (None, "centers"),
                (np.zeros((4, 2)), "centers have 2 columns and X has 3"),
                (np.zeros((0, 3)), "0 sample"), (np.zeros(3), "2D"), ([], "2D|0 sample"),
                (np.full((4, 3), np.nan), "NaN")],
    "validation": [("loo", "no closed form over numbers of centers"), ("cv", "not known"),
                   (1.5, "fraction"), (91, "more than the number of rows"), (1, "folds"),
                   ([], "no split"), ([(np.arange(50), np.array([99]))], "beyond"),
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
    model = NystromRegressor(n_centers=10, penalty=[1e-1, 1e-2]).fit(X, y)
    model.set_params(**{name: value})
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        model.fit(X, y)
    # scikit-learn shows an array of one dimension on lines of its own.
    assert "\n" not in str(caught.value) or "2D" in message
    assert_untouched(model, before)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), "linear", Polynomial(2), Matern(1.5, 1.0)],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("sigma", [1.0, "auto"])
def test_a_width_for_a_kernel_that_takes_none(rows, kernel, sigma):
    with pytest.raises(ValueError, match="no width to set"):
        NystromRegressor(kernel, sigma=sigma).fit(*rows[:2])


def test_bad_parameters_are_refused_where_nothing_is_selected(rows):
    for name, value in (("validation", "bogus"), ("validation", "loo")):
        with pytest.raises(ValueError, match=name):
            NystromRegressor(penalty=0.1, n_centers=5, **{name: value}).fit(*rows[:2])


ROWS = {
    "NaN": (lambda X, y: (np.where(X[3, 0] == X, np.nan, X), y), "NaN"),
    "infinity": (lambda X, y: (np.where(X[3, 0] == X, np.inf, X), y), "infinity"),
    "text": (lambda X, y: (X.astype(str), y), "text"),
    "one dimension": (lambda X, y: (X[:, 0], y), "2D"),
    "three dimensions": (lambda X, y: (X[None], y), "dim"),
    "no rows": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "no columns": (lambda X, y: (X[:, :0], y), "0 feature"),
    "too few rows": (lambda X, y: (X[:-1], y), "inconsistent"),
    "complex": (lambda X, y: (X + 1j, y), "omplex"),
    "no outputs": (lambda X, y: (X, None), "requires y"),
    "NaN in y": (lambda X, y: (X, np.where(np.arange(90) == 5, np.nan, y)), "NaN"),
    "infinity in y": (lambda X, y: (X, np.where(np.arange(90) == 5, np.inf, y)), "infinity"),
    "shape of y": (lambda X, y: (X, np.zeros((90, 2, 2))), "dim"),
}


@both_faces
@pytest.mark.parametrize("name", ROWS)
def test_bad_rows_leave_a_fitted_model_as_it_was(rows, make, name):
    X, y, _ = rows
    y = (y > 0.5).astype(int)
    spoil, message = ROWS[name]
    model = make(sigma=1.0, n_centers=[5, 10]).fit(X, y)
    before, expected = dict(vars(model)), model.predict(X)
    bad = spoil(X, y)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*bad)
    assert_untouched(model, before)
    assert_array_equal(model.predict(X), expected)


def test_bad_classes_and_outputs(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="one class"):
        NystromClassifier().fit(X, np.zeros(90))
    with pytest.raises(ValueError, match="continuous"):
        NystromClassifier().fit(X, y)
    with pytest.raises(ValueError, match="text"):
        NystromRegressor().fit(X, np.array(["a", "b"] * 45))


@pytest.mark.parametrize(
    ("weight", "message"),
    [(-np.ones(90), "from 0 on"), (np.zeros(90), "zero"), (np.full(90, np.nan), "NaN"),
     (np.ones(89), "shape")],
)  # fmt: skip
def test_bad_weights(rows, weight, message):
    with pytest.raises(ValueError, match=message):
        NystromRegressor().fit(*rows[:2], sample_weight=weight)


def test_kernels_that_are_none(rows):
    X, y, _ = rows
    with pytest.raises(NotPositiveDefiniteError, match="not positive definite on these rows"):
        NystromRegressor(lambda A, B: -(A @ B.T), n_centers=10).fit(X, y)
    with pytest.raises(ValueError, match="gives NaN"):
        NystromRegressor(lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, y)
    with pytest.raises(TypeError, match="dense rows"):
        NystromRegressor("laplacian").fit(sparse.csr_array(X), y)


def test_prediction_before_fit_and_with_other_columns(rows):
    X, y, _ = rows
    with pytest.raises(NotFittedError):
        NystromRegressor().predict(X)
    model = NystromRegressor(n_centers=5, penalty=0.1).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((2, 3), np.nan))


def test_memory(rows):
    X, y, _ = rows
    with pytest.raises(
        MemoryBudgetError, match=r"60 centers .*use at most \d+ centers"
    ) as caught:
        NystromRegressor(
            sigma=1.0, n_centers=60, memory="100kB", validation=5, solver="direct"
        ).fit(X, y)
    most = int(str(caught.value).split("use at most ")[1].split()[0])
    settings = {"sigma": 1.0, "validation": 5, "random_state": 0}
    tight = NystromRegressor(n_centers=most, memory="100kB", **settings).fit(X, y)
    wide = NystromRegressor(n_centers=most, **settings).fit(X, y)
    assert_allclose(tight.path_.errors, wide.path_.errors, rtol=1e-7)
    assert_allclose(tight.predict(X), wide.predict(X), rtol=1e-6, atol=1e-8)
    automatic = NystromRegressor(memory="20kB", **settings).fit(X, y)
    assert automatic.path_.sizes.max() < most
    with pytest.raises(MemoryBudgetError):
        NystromRegressor(memory=100, **settings).fit(X, y)


def test_inputs_are_not_changed(rows, split):
    X, y, w = rows
    centers = X[:10].copy()
    kept = [array.copy() for array in (X, y, w, centers)]
    for array in (X, y, w, centers):
        array.flags.writeable = False
    model = NystromRegressor(n_centers=[3, 10], centers=centers, validation=[split])
    model.fit(X, y, w)
    NystromRegressor(n_centers=5, penalty=0.1).fit(X, y, w).grow(10, X, y, w)
    for array, before in zip((X, y, w, centers), kept, strict=True):
        assert_array_equal(array, before)


def test_centers_are_copies_of_the_rows(rows):
    X, y, _ = rows
    X = X.copy()
    model = NystromRegressor(sigma=1.0, n_centers=90, penalty=1e-2, random_state=0).fit(X, y)
    given = NystromRegressor(sigma=1.0, n_centers=90, penalty=1e-2, centers=X).fit(X, y)
    new = X[:5].copy()
    expected = model.predict(new), given.predict(new)
    X[:] = 0
    assert_array_equal(model.predict(new), expected[0])
    assert_array_equal(given.predict(new), expected[1])


# As scikit-learn and files have it.


def assert_same_tree(one, other):
    """Equal, down to every array of every part."""
    assert type(one) is type(other)
    if sparse.issparse(one):
        one, other = one.toarray(), other.toarray()
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert_array_equal(one, other)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same_tree(a, b)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same_tree(one[key], other[key])
    elif hasattr(one, "__dict__"):
        assert_same_tree(vars(one), vars(other))
    else:
        assert one == other


@both_faces
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "settings",
    [
        {"n_centers": [5, 20], "validation": 3, "intercept": True},
        {"n_centers": 10, "penalty": "n_centers", "dtype": "float32"},
        {"n_centers": [5, 20], "sigma": [0.5, 1.0], "centers": "leverage"},
        {"n_centers": [5, 20], "centers": PivotedCholesky(4), "validation": "gcv"},
    ],
)
def test_saved_and_pickled_models_are_the_same(rows, make, form, settings, tmp_path):
    X, y, w = rows
    X[5] = X[6]
    y = y if make is NystromRegressor else np.where(y > 0.5, "much", "few")
    model = make(**settings, random_state=0).fit(form(X), y, w)
    imparo.save(model, tmp_path / "model.imparo")
    for loaded in (imparo.load(tmp_path / "model.imparo"), pickle.loads(pickle.dumps(model))):
        assert_same_tree(vars(loaded), vars(model))
        assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_model_without_its_statistics_makes_a_smaller_file(rows, tmp_path):
    X, y, _ = rows
    model = NystromRegressor(n_centers=60, random_state=0).fit(X, y)
    imparo.save(model, tmp_path / "whole.imparo")
    model.statistics_ = None
    imparo.save(model, tmp_path / "small.imparo")
    sizes = [(tmp_path / f"{name}.imparo").stat().st_size for name in ("whole", "small")]
    assert sizes[0] - sizes[1] > 3 * 8 * 60**2
    loaded = imparo.load(tmp_path / "small.imparo")
    assert_array_equal(loaded.predict(X), model.predict(X))


@both_faces
def test_clone(rows, make):
    X, y, _ = rows
    y = (y > 0.5).astype(int)
    model = make(n_centers=[5, 10], sigma=1.0, random_state=0, memory="1GB").fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "path_")
    assert_array_equal(copy.fit(X, y).predict(X), model.predict(X))


def test_a_search_over_everything(rows):
    X, y, _ = rows
    grid = {"kernel": ["gaussian", "laplacian"], "n_centers": [5, 20], "penalty": [1.0, 1e-2],
            "centers": ["uniform", "pivoted"]}  # fmt: skip
    search = GridSearchCV(NystromRegressor(sigma=1.0, random_state=0), grid, cv=3).fit(X, y)
    assert search.best_params_["penalty"] == 1e-2
    assert search.best_estimator_.n_centers_ == search.best_params_["n_centers"]
    assert search.best_score_ > 0.3


def test_pipelines_and_scores(rows):
    X, y, w = rows
    scaled = make_pipeline(StandardScaler(), NystromRegressor(random_state=0))
    frame = pd.DataFrame(X * [1.0, 1000.0, 1e-3], columns=["a", "b", "c"])
    scaled.fit(frame, y, nystromregressor__sample_weight=w)
    by_hand = NystromRegressor(random_state=0).fit(StandardScaler().fit_transform(frame), y, w)
    assert_allclose(
        scaled.predict(frame), by_hand.predict(StandardScaler().fit_transform(frame))
    )
    assert cross_val_score(NystromRegressor(random_state=0), X, y, cv=3).mean() > 0.5
    assert cross_val_score(NystromClassifier(random_state=0), X, y > 0.5, cv=3).mean() > 0.7


def test_progress_is_told_to_its_end(rows):
    calls = {}
    NystromRegressor(
        sigma=1.0, n_centers=[5, 10], penalty=[1e-1, 1e-2, 1e-3],
        progress=lambda done, total, what: calls.setdefault(what, []).append((done, total)),
    ).fit(*rows[:2])  # fmt: skip
    assert calls["penalties"] == [(1, 3), (2, 3), (3, 3)]
    assert calls["reading rows"] == [(1, 1)]


@pytest.mark.parametrize(
    "settings",
    [
        {"n_centers": [5, 20]},
        {"n_centers": [5, 20], "penalty": [1e-2, 0.0]},
        {"n_centers": [5, 20], "penalty": "n_centers"},
        {"n_centers": [5, 20], "sigma": [0.5, 1.0, 2.0]},
        {"n_centers": [5, 20], "sigma": [0.5, 1.0, 2.0], "penalty": 1e-2},
        {"n_centers": 20, "sigma": [0.5, 1.0, 2.0]},
        {"n_centers": 20},
    ],
    ids=str,
)
@both_faces
def test_paths_can_be_drawn(rows, make, settings):
    X, y, _ = rows
    y = y if make is NystromRegressor else y > 0.5
    path = make(**settings, random_state=0).fit(X, y).path_
    ax = path.plot()
    (chosen,) = [line for line in ax.lines if "chosen" in line.get_label()]
    (x,), (height,) = chosen.get_data()
    if ax.get_ylabel() == path.metric:
        assert height == pytest.approx(path.best["error"])
    else:  # a map of penalties and sizes
        assert x == path.best["n_centers"]
        assert height == pytest.approx(path.best["penalty"] or 1e-3)
    assert len(ax.get_legend().get_texts()) <= 12  # readable
    ax.figure.clear()
    assert path.to_dict()["best"] == path.best


@pytest.mark.parametrize(
    ("name", "value"),
    [("sigma", 2.0), ("intercept", True), ("centers", "pivoted"), ("penalty", [0.1, 1.0])],
)
def test_grow_refuses_other_parameters_than_those_of_fit(rows, name, value):
    X, y, _ = rows
    model = NystromRegressor(
        sigma=1.0, penalty=np.array([1e-2, 1e-3]), n_centers=10, random_state=0
    ).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=f"{name} was changed since fit"):
        model.set_params(**{name: value}).grow(20, X, y)
    assert (model.predict(X) == before).all()


def test_weights_of_a_block_must_be_its_own(rows):
    X, y, w = rows
    blocks = [(X[:50], y[:50], w[:40]), (X[50:], y[50:], w[40:])]
    with pytest.raises(ValueError, match="one weight for every row"):
        NystromRegressor(n_centers=10).fit(blocks)


def test_missing_outputs_are_refused(rows):
    X, y, _ = rows
    missing = y.astype(object)
    missing[3] = None
    with pytest.raises(ValueError, match="NaN or None"):
        NystromRegressor(n_centers=10, penalty=0.1).fit(X, missing)


def test_grow_with_weights_in_single_precision(rng):
    X, w = rng.normal(size=(30_000, 2)).astype("float32"), rng.uniform(0.1, 1, 30_000)
    y = np.sin(X[:, 0])
    model = NystromRegressor(n_centers=20, penalty=1e-3, random_state=0).fit(X, y, w)
    whole = NystromRegressor(n_centers=60, penalty=1e-3, random_state=0).fit(X, y, w)
    assert_allclose(model.grow(60, X, y, w).predict(X[:50]), whole.predict(X[:50]), atol=1e-3)


def test_no_penalty_and_fewer_rows_than_centers_is_the_exact_solution(rng):
    """Folds of fewer rows than centers: the least-norm solution, without rounding noise."""
    X = rng.normal(size=(400, 6))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    pairs = list(KFold(2).split(X))
    settings = {"sigma": 1.0, "penalty": [0.0, 1e-6], "validation": pairs}
    nystrom = NystromRegressor(centers=X, n_centers=400, **settings).fit(X, y)
    exact = KernelRegressor(**settings).fit(X, y)
    assert_allclose(nystrom.path_.errors[:, 0], exact.path_.errors, rtol=2e-3)
