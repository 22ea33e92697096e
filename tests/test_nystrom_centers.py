"""Centers of Nyström machines: grown, chosen, dropped, given, hardly independent."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

import imparo
from imparo import KernelRegressor, NystromClassifier, NystromRegressor
from imparo.centers import LeverageScores, PivotedCholesky
from imparo.features import Dropped
from imparo.kernels import Gaussian
from model_tools import assert_untouched
from nystrom_tools import (
    both_faces,
    close,
    errors_of,
    nystrom,
    some_left_out,
    wavy_rows,
    with_and_without,
)

rows = pytest.fixture(wavy_rows)
split = pytest.fixture(some_left_out)


RULES = ["uniform", "leverage", "recursive", "pivoted"]


# Growing.


@both_faces
@pytest.mark.parametrize("centers", RULES)
@pytest.mark.parametrize("validation", [0.2, 4, "gcv"])
def test_growing_is_a_fit_with_more_centers(rows, make, centers, validation):
    X, y, w = rows
    y = y if make is NystromRegressor else y > 0.5
    settings = {"sigma": 1.0, "centers": centers, "validation": validation, "random_state": 0}
    settings["penalty"] = np.geomspace(1, 1e-5, 6)
    whole = make(n_centers=[5, 10, 25, 40], **settings).fit(X, y, w)
    model = make(n_centers=[5, 10], **settings).fit(X, y, w)
    before = model.center_rows_
    assert model.grow(25, X, y, w) is model
    model.grow(40, X, y, w)
    assert_array_equal(model.path_.sizes, whole.path_.sizes)
    assert_allclose(model.path_.errors, whole.path_.errors, rtol=1e-6)
    assert model.path_.method == whole.path_.method
    assert (model.n_centers_, model.penalty_) == (whole.n_centers_, whole.penalty_)
    assert_array_equal(model.center_rows_, whole.center_rows_)
    assert_array_equal(model.center_rows_[: len(before)], before)
    assert_allclose(model.center_weights_, whole.center_weights_)
    predict = "predict" if make is NystromRegressor else "decision_function"
    assert_allclose(
        getattr(model, predict)(X), getattr(whole, predict)(X), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("penalty", [1e-3, "n_centers"])
@with_and_without
def test_growing_where_nothing_is_selected(rows, penalty, intercept):
    X, y, w = rows
    settings = {"sigma": 1.0, "penalty": penalty, "intercept": intercept, "random_state": 0}
    model = NystromRegressor(n_centers=10, **settings).fit(X, y, w).grow(30, X, y, w)
    whole = NystromRegressor(n_centers=30, **settings).fit(X, y, w)
    assert model.path_ is None
    assert (model.n_centers_, model.penalty_) == (30, whole.penalty_)
    assert_allclose(model.predict(X), whole.predict(X), rtol=1e-7, atol=1e-8)


def test_growing_with_the_penalty_of_the_number_of_centers(rows):
    X, y, _ = rows
    settings = {"sigma": 1.0, "penalty": "n_centers", "random_state": 0}
    model = NystromRegressor(n_centers=[5, 10], **settings).fit(X, y).grow(30, X, y)
    whole = NystromRegressor(n_centers=[5, 10, 30], **settings).fit(X, y)
    assert_allclose(model.path_.errors, whole.path_.errors, rtol=1e-7)


def test_growing_through_dependent_centers(rows):
    X, y, _ = rows
    X = np.vstack([X[:20]] * 4)
    y = y[:80]
    settings = {"sigma": 1.0, "penalty": [1e-2, 1e-4], "random_state": 0}
    model = NystromRegressor(n_centers=[4, 10], **settings).fit(X, y).grow(60, X, y)
    whole = NystromRegressor(n_centers=[4, 10, 60], **settings).fit(X, y)
    assert_allclose(model.path_.errors, whole.path_.errors, rtol=1e-7)
    assert len(model.statistics_.map) == len(whole.statistics_.map) <= 20
    assert len(model.statistics_.map.dropped) == 60 - len(whole.statistics_.map)
    assert model.dropped_centers_ == whole.dropped_centers_


@both_faces
def test_growing_after_saving(rows, make, tmp_path):
    X, y, w = rows
    y = y if make is NystromRegressor else np.where(y > 0.5, "much", "few")
    model = make(sigma=1.0, n_centers=[5, 10], penalty=[1e-1, 1e-3], random_state=0)
    imparo.save(model.fit(X, y, w), tmp_path / "model.imparo")
    loaded = imparo.load(tmp_path / "model.imparo").grow(30, X, y, w)
    model.grow(30, X, y, w)
    assert_array_equal(loaded.path_.errors, model.path_.errors)
    assert_array_equal(loaded.predict(X), model.predict(X))


def test_growing_without_a_seed_keeps_the_centers(rows):
    X, y, _ = rows
    model = NystromRegressor(sigma=1.0, n_centers=10, penalty=[1e-1, 1e-3]).fit(X, y)
    before = model.center_rows_
    model.grow(20, X, y)
    assert_array_equal(model.center_rows_[:10], before)


def test_growing_to_more_than_there_are_stops_there(rows):
    X, y, _ = rows
    model = NystromRegressor(sigma=1.0, n_centers=10, penalty=1e-3).fit(X, y).grow(500, X, y)
    assert model.n_centers_ == 90
    exact = KernelRegressor(sigma=1.0, penalty=1e-3).fit(X, y)
    assert_allclose(model.predict(X), exact.predict(X), rtol=1e-6)
    with pytest.raises(ValueError, match="the model has 90 centers"):
        model.grow(100, X, y)


def test_growing_to_given_centers(rows):
    X, y, _ = rows
    settings = {"sigma": 1.0, "penalty": 1e-3, "centers": X[:30]}
    model = NystromRegressor(n_centers=10, **settings).fit(X, y).grow(30, X, y)
    whole = NystromRegressor(n_centers=30, **settings).fit(X, y)
    assert model.center_rows_ is None
    assert_allclose(model.predict(X), whole.predict(X), rtol=1e-7, atol=1e-8)


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
}


@pytest.mark.parametrize("name", OTHER_ROWS)
@pytest.mark.parametrize("penalty", [1e-3, [1e-2, 1e-3]])
def test_growing_on_other_rows_is_refused(rows, name, penalty):
    X, y, _ = rows
    w = 1.0 + np.arange(90) % 2  # the same again after two rows
    model = NystromRegressor(sigma=1.0, n_centers=10, penalty=penalty, random_state=0)
    model.fit(X, y, w)
    before, expected = dict(vars(model)), model.predict(X)
    change, message = OTHER_ROWS[name]
    other = change(X, y, w)
    with pytest.raises(ValueError, match=message):
        model.grow(20, *other)
    assert_untouched(model, before)
    assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("m", [0, -1, 1.5, "x", True, None, [20]])
def test_growing_to_no_number(rows, m):
    X, y, _ = rows
    model = NystromRegressor(sigma=1.0, n_centers=10, penalty=1e-3).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"n_centers=.* must be a whole number from 1 on"):
        model.grow(m, X, y)
    assert_untouched(model, before)


def test_growing_what_cannot_grow(rows):
    X, y, _ = rows
    with pytest.raises(NotFittedError):
        NystromRegressor().grow(10, X, y)
    model = NystromRegressor(sigma=1.0, n_centers=10, penalty=1e-3).fit(X, y)
    for m in (10, 5):
        with pytest.raises(ValueError, match=f"the model has 10 centers, and {m} were asked"):
            model.grow(m, X, y)
    model.statistics_ = None
    with pytest.raises(ValueError, match="no statistics to grow from"):
        model.grow(20, X, y)
    assert model.predict(X).shape == (90,)


def test_a_model_that_is_grown_leaves_its_copies_alone(rows):
    X, y, _ = rows
    model = NystromRegressor(sigma=1.0, n_centers=10, penalty=[1e-1, 1e-3], random_state=0)
    model.fit(X, y)
    statistics, A = model.statistics_, model.statistics_.statistics[0].A
    model.grow(20, X, y)
    assert_array_equal(statistics.statistics[0].A, A)
    assert len(statistics.map) == 10


# Centers.


@pytest.mark.parametrize("centers", [*RULES, LeverageScores(penalty=1e-3), PivotedCholesky(4)],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("validation", [0.3, 3])
def test_a_larger_number_of_centers_keeps_the_first(rows, centers, validation):
    X, y, w = rows
    settings = {"sigma": 1.0, "penalty": [1e-2, 1e-3], "centers": centers, "random_state": 7,
                "validation": validation}  # fmt: skip
    small, large = (NystromRegressor(n_centers=m, **settings).fit(X, y, w) for m in (8, 30))
    assert_array_equal(large.center_rows_[:8], small.center_rows_)
    assert_allclose(large.center_weights_[:8], small.center_weights_)
    # Rows that are drawn again are dropped.
    kept = np.setdiff1d(np.arange(8), [d.center for d in small.dropped_centers_])
    assert_array_equal(small.centers_, X[small.center_rows_[kept]])


@pytest.mark.parametrize("centers", RULES)
def test_rows_that_are_held_out_are_never_centers(rows, split, centers):
    X, y, _ = rows
    settings = {"sigma": 1.0, "penalty": [1e-2, 1e-3], "centers": centers, "random_state": 0}
    model = NystromRegressor(n_centers=90, validation=[split], **settings).fit(X, y)
    assert not np.isin(model.center_rows_, split[1]).any()
    if centers == "uniform":
        assert sorted(model.center_rows_) == sorted(np.setdiff1d(np.arange(90), split[1]))
        folds = NystromRegressor(n_centers=90, validation=3, **settings).fit(X, y)
        assert sorted(folds.center_rows_) == list(range(90))


@pytest.mark.parametrize("centers", RULES)
def test_rows_of_weight_0_are_never_centers(rows, centers):
    X, y, w = rows
    w = w * (np.arange(90) % 3 > 0)
    model = NystromRegressor(
        sigma=1.0, penalty=1e-2, centers=centers, n_centers=40, random_state=0
    ).fit(X, y, w)
    assert (w[model.center_rows_] > 0).all()


@both_faces
@pytest.mark.parametrize("centers", RULES)
def test_the_same_seed_gives_the_same_model(rows, make, centers):
    X, y, w = rows
    y = y if make is NystromRegressor else y > 0.5
    one, two, other = (
        make(centers=centers, n_centers=[5, 20], penalty=[1e-1, 1e-3], random_state=seed)
        .fit(X, y, w) for seed in (0, 0, 1)
    )  # fmt: skip
    assert_array_equal(one.center_rows_, two.center_rows_)
    assert_array_equal(one.path_.errors, two.path_.errors)
    assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert one.center_rows_.tolist() != other.center_rows_.tolist()


def test_a_generator_of_random_numbers_is_moved_on(rows):
    X, y, _ = rows
    state = np.random.RandomState(0)
    model = NystromRegressor(sigma=1.0, penalty=1e-2, n_centers=10, random_state=state)
    first = model.fit(X, y).center_rows_
    assert model.fit(X, y).center_rows_.tolist() != first.tolist()


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, pd.DataFrame,
                                  sparse.csr_array])  # fmt: skip
def test_centers_may_be_given(rows, form):
    X, y, _ = rows
    centers = form(X[:12])
    model = NystromRegressor(sigma=1.0, penalty=1e-3, n_centers=12, centers=centers).fit(X, y)
    f = nystrom(Gaussian(1.0), X, y, X[:12], 1e-3)
    assert_allclose(model.predict(X), f(X)[:, 0], **close)
    assert model.center_rows_ is None
    assert model.center_weights_.tolist() == [1.0] * 12


def test_given_centers_need_not_be_rows(rows, rng):
    X, y, w = rows
    centers = rng.normal(size=(120, 3))  # and may be more than there are rows
    model = NystromRegressor(sigma=1.0, penalty=1e-3, n_centers=120, centers=centers)
    f = nystrom(Gaussian(1.0), X, y, centers, 1e-3, w)
    assert_allclose(model.fit(X, y, w).predict(X), f(X)[:, 0], rtol=1e-6, atol=1e-7)


def test_automatic_numbers_of_centers_and_penalties(rng):
    X = rng.normal(size=(500, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=500)
    model = NystromRegressor(random_state=0).fit(X, y)
    # √n log n and its halves down to 10 or so; λ from 1 down to 1e-12, by halves.
    top = int(np.ceil(np.sqrt(500) * np.log(500)))
    assert model.path_.sizes.tolist() == [np.ceil(top / 2**k) for k in (3, 2, 1, 0)]
    assert len(model.path_.penalties) == 41
    assert model.path_.penalties[0] == 1
    assert 0.99e-12 < model.path_.penalties[-1] < 2e-12
    assert_allclose(model.path_.penalties[1:] / model.path_.penalties[:-1], 0.505, atol=0.005)
    assert model.path_.best["error"] < 0.12
    assert model.path_.method == "hold-out"


def test_a_kernel_function_gives_the_named_machine(rows):
    X, y, w = rows
    settings = {"penalty": [1e-2, 1e-4], "n_centers": [5, 30], "random_state": 0}
    named = NystromRegressor(sigma=1.0, **settings).fit(X, y, w)
    called = NystromRegressor(lambda A, B: rbf_kernel(A, B, gamma=0.5), **settings)
    called.fit(X, y, w)
    assert_allclose(called.path_.errors, named.path_.errors, rtol=1e-7)
    assert_allclose(called.predict(X), named.predict(X), rtol=1e-6, atol=1e-7)
    assert_allclose(called.grow(40, X, y, w).predict(X), named.grow(40, X, y, w).predict(X),
                    rtol=1e-6, atol=1e-7)  # fmt: skip


# Centers that depend on each other.


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [0.0, 1e-15, 1e-6, 1e-2])
@with_and_without
def test_equal_rows_give_the_pseudo_inverse(rng, penalty, intercept):
    X = np.repeat(rng.normal(size=(15, 2)), 4, axis=0)
    y = rng.normal(size=60)
    model = NystromRegressor(
        sigma=0.5, penalty=penalty, n_centers=40, intercept=intercept, random_state=0
    ).fit(X, y)
    f = nystrom(Gaussian(0.5), X, y, X[model.center_rows_], penalty, None, intercept)
    assert_allclose(model.predict(X), f(X)[:, 0], atol=1e-6)
    distinct = len(np.unique(X[model.center_rows_], axis=0))
    assert model.centers_.shape == (distinct, 2)
    assert model.dual_coef_.shape == (distinct,)
    assert len(model.dropped_centers_) == 40 - distinct
    for dropped in model.dropped_centers_:
        twin = int(dropped.reason.removeprefix("equal to center "))
        rows = model.center_rows_[[dropped.center, twin]]
        assert twin < dropped.center
        assert_array_equal(*X[rows])


@pytest.mark.parametrize("penalty", [0.0, 1e-15, 1e-2])
@with_and_without
def test_more_centers_than_dimensions_are_linear_regression(rows, penalty, intercept):
    X, y, w = rows
    model = NystromRegressor(
        "linear", penalty=penalty, n_centers=50, intercept=intercept, random_state=0
    ).fit(X, y, w)
    theirs = Ridge(alpha=penalty * w.sum(), fit_intercept=intercept).fit(X, y, w)
    assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-8, atol=1e-9)
    assert len(model.centers_) == 3
    assert len(model.dropped_centers_) == 47
    assert all("within rounding of the span" in d.reason for d in model.dropped_centers_)


@pytest.mark.parametrize("penalty", [0.0, 1e-15, 1e-3])
def test_given_centers_with_repeats(rows, penalty):
    X, y, _ = rows
    centers = X[[3, 1, 3, 7, 1, 3]]
    model = NystromRegressor(sigma=1.0, penalty=penalty, n_centers=6, centers=centers)
    model.fit(X, y)
    f = nystrom(Gaussian(1.0), X, y, X[[3, 1, 7]], penalty)
    assert_allclose(model.predict(X), f(X)[:, 0], rtol=1e-7, atol=1e-8)
    assert model.dropped_centers_ == [
        Dropped(2, "equal to center 0"),
        Dropped(4, "equal to center 1"),
        Dropped(5, "equal to center 0"),
    ]


def test_dropped_centers_are_counted_in_every_size(rows, split):
    X, y, _ = rows
    centers = X[[3, 3, 3, 1, 7, 7, 9]]
    sizes = range(1, 8)
    model = NystromRegressor(
        sigma=1.0, penalty=[1e-2, 1e-3], n_centers=sizes, centers=centers, validation=[split]
    ).fit(X, y)
    expected = errors_of(Gaussian(1.0), X, y, centers, [1e-2, 1e-3], sizes, [split])[0]
    assert_allclose(model.path_.errors, expected, rtol=1e-7)
    assert_allclose(model.path_.errors[:, 0], model.path_.errors[:, 2], rtol=1e-12)
    assert all(d.center < model.n_centers_ for d in model.dropped_centers_)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "linear", "polynomial"])
@with_and_without
def test_constant_rows_predict_the_mean(kernel, intercept):
    X, y = np.full((200, 3), 7.0), np.linspace(0, 1, 200)
    model = NystromRegressor(kernel, intercept=intercept, random_state=0).fit(X, y)
    assert_allclose(model.predict(X), 0.5, atol=0.05)
    assert len(model.centers_) == 1


@pytest.mark.filterwarnings("error")
@both_faces
@with_and_without
@pytest.mark.parametrize("validation", [0.2, "gcv"])
@pytest.mark.parametrize("n_centers", [10, [1, 10]])
def test_a_kernel_that_vanishes_everywhere_predicts_the_mean(
    make, intercept, validation, n_centers
):
    y = np.array([1.0, 1.0, 1.0, 0.0] * 10)
    model = make("linear", penalty=[1e-1, 1e-2], n_centers=n_centers, intercept=intercept,
                 validation=validation, random_state=0)  # fmt: skip
    model.fit(np.zeros((40, 2)), y if make is NystromRegressor else y.astype(int))
    assert len(model.centers_) == 0
    assert all("K(x, x) is 0" in d.reason for d in model.dropped_centers_)
    expected = {True: 0.75, False: 0.0} if make is NystromRegressor else {True: 1, False: 0}
    assert_allclose(model.predict(np.ones((3, 2))), expected[intercept])


@pytest.mark.parametrize("target", ["smooth", "noisy", "classes"])
@with_and_without
def test_the_first_center_may_be_one_that_the_kernel_vanishes_at(rows, target, intercept):
    X, y, _ = rows
    exact = X @ [1.0, 2.0, 3.0]
    y = {"smooth": exact, "noisy": y, "classes": exact > 0}[target]
    make = NystromClassifier if target == "classes" else NystromRegressor
    model = make(
        "linear", centers=np.vstack([np.zeros((1, 3)), X[:5]]), n_centers=[1, 2, 6],
        penalty=[1e-3, 1e-8], intercept=intercept, validation=3, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert np.isfinite(model.path_.errors).all()
    if target == "smooth":
        assert_allclose(model.predict(X), y, atol=1e-4)
        spread = np.sqrt(np.mean((exact - exact.mean() * intercept) ** 2))
        assert model.path_.errors[0, 0] == pytest.approx(spread, rel=0.1)


def test_growing_from_a_center_that_the_kernel_vanishes_at(rows):
    X, y, _ = rows
    centers = np.vstack([np.zeros((1, 3)), X[:5]])
    model = NystromRegressor("linear", centers=centers, n_centers=1, penalty=1e-3).fit(X, y)
    assert_array_equal(model.predict(X), 0.0)
    model.grow(6, X, y)
    theirs = Ridge(alpha=1e-3 * 90, fit_intercept=False).fit(X, y)
    assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-8, atol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sigma", [3.0, 30.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@with_and_without
def test_no_penalty_on_a_wide_kernel_is_harmless(rows, sigma, dtype, intercept):
    X, y, w = rows
    penalties = [1e-3, 1e-15, 0.0]
    model = NystromRegressor(
        sigma=sigma, penalty=penalties, n_centers=[5, 60], intercept=intercept, dtype=dtype,
        random_state=0,
    ).fit(X, y, w)  # fmt: skip
    assert np.isfinite(model.path_.errors).all()
    # A fit to the training rows gets no worse with less of a penalty.
    train = model.path_.train_errors
    assert (np.diff(train, axis=0) <= (1e-2 if dtype == "float32" else 1e-6)).all()
    for penalty in penalties:
        one = NystromRegressor(
            sigma=sigma, penalty=penalty, n_centers=60, intercept=intercept, dtype=dtype,
            random_state=0,
        ).fit(X, y, w)  # fmt: skip
        assert np.isfinite(one.predict(X)).all()
        assert np.sqrt(np.average((one.predict(X) - y) ** 2, weights=w)) < y.std()


@with_and_without
@pytest.mark.parametrize("penalty", [1e-9, 0.0])
def test_a_penalty_that_single_precision_does_not_resolve_is_harmless(rows, penalty, intercept):
    X, y, w = rows
    errors = []
    for seed in range(30):
        model = NystromRegressor(
            sigma=30.0, penalty=penalty, n_centers=60, intercept=intercept, dtype="float32",
            random_state=seed,
        ).fit(X, y, w)  # fmt: skip
        errors.append(np.sqrt(np.average((model.predict(X) - y) ** 2, weights=w)))
    # Least squares on any features is at least as good as the mean of y.
    assert max(errors) < 1.1 * y.std()
