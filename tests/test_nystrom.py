"""Nyström machines against separate fits, exact machines and definitions, in NumPy."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import solve_triangular
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

import imparo
from imparo import KernelClassifier, KernelRegressor, NystromClassifier, NystromRegressor
from imparo.centers import LeverageScores, PivotedCholesky
from imparo.errors import MemoryBudgetError, NotPositiveDefiniteError
from imparo.estimators import map_search
from imparo.features import Dropped
from imparo.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial

close = {"rtol": 1e-7, "atol": 1e-8}
RULES = ["uniform", "leverage", "recursive", "pivoted"]

with_and_without = pytest.mark.parametrize("intercept", [False, True])
both_faces = pytest.mark.parametrize("make", [NystromRegressor, NystromClassifier])


@pytest.fixture
def rows(rng):
    """Ninety rows: a noisy smooth function, its classes, and weights."""
    X = rng.normal(size=(90, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=90)
    return X, y, rng.uniform(0.2, 2, 90)


@pytest.fixture
def split(rng):
    order = rng.permutation(90)
    return order[:65], order[65:85]  # five rows are on neither side


def as_matrix(y):
    return y.reshape(len(y), -1)


def nystrom(kernel, X, Y, centers, penalty, weight=None, intercept=False):
    """Return the Nyström solution as a function, by least squares on K_nm(K_mm⁺)^{1/2}.

    The rows of the penalty are stacked below: nothing is squared.
    """
    weight = np.ones(len(X)) if weight is None else weight
    values, vectors = np.linalg.eigh(kernel(centers))
    kept = values > 1e-12 * values.max(initial=1e-300)
    B = vectors[:, kept] / np.sqrt(values[kept])
    root, Phi = np.sqrt(weight)[:, None], kernel(X, centers) @ B
    left = np.hstack([root * Phi, root * intercept])
    p = Phi.shape[1]
    below = np.hstack([np.sqrt(weight.sum() * penalty) * np.eye(p), np.zeros((p, 1))])
    right = np.vstack([root * as_matrix(Y), np.zeros((p, as_matrix(Y).shape[1]))])
    w = np.linalg.lstsq(np.vstack([left, below]), right, rcond=None)[0]
    return lambda new: kernel(new, centers) @ (B @ w[:p]) + w[p] * intercept


def errors_of(kernel, X, Y, centers, penalties, sizes, splits, weight=None, intercept=False):
    """Return errors on held-out and on fitted rows for every pair, from separate fits."""
    weight = np.ones(len(X)) if weight is None else weight
    found = np.empty((2, len(penalties), len(sizes)))
    for i, penalty in enumerate(penalties):
        for s, size in enumerate(sizes):
            sums = np.zeros((2, 2))
            for train, held in splits:
                f = nystrom(
                    kernel,
                    X[train],
                    Y[train],
                    centers[:size],
                    penalty,
                    weight[train],
                    intercept,
                )
                for side, part in enumerate((held, train)):
                    squares = ((f(X[part]) - as_matrix(Y)[part]) ** 2).mean(axis=1)
                    sums[side] += weight[part] @ squares, weight[part].sum()
            found[:, i, s] = np.sqrt(sums[:, 0] / sums[:, 1])
    return found


# Full rank is exact.


@pytest.mark.parametrize(
    "kernel",
    ["gaussian", "laplacian", "matern12", "matern52", "linear", "polynomial",
     Gaussian(1.0) + 0.5 * Linear()],
    ids=str,
)  # fmt: skip
@with_and_without
@pytest.mark.parametrize("penalty", [1e-1, 1e-4])
def test_all_rows_as_centers_are_the_exact_machine(rows, rng, kernel, intercept, penalty):
    X, y, w = rows
    Y, new = np.column_stack([y, np.cos(X[:, 2])]), rng.normal(size=(20, 3))
    sigma = (
        "median" if kernel in ("linear", "polynomial") or not isinstance(kernel, str) else 1.0
    )
    settings = {"sigma": sigma, "penalty": penalty, "intercept": intercept}
    exact = KernelRegressor(kernel, **settings)
    ours = NystromRegressor(kernel, n_centers=90, random_state=0, **settings)
    for outputs in (y, Y):
        for weight in (None, w):
            expected = exact.fit(X, outputs, weight).predict(new)
            found = ours.fit(X, outputs, weight).predict(new)
            assert found.shape == expected.shape
            assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
            assert sorted(ours.center_rows_) == list(range(90))
            assert ours.path_ is None


@pytest.mark.parametrize("several", [False, True])
@with_and_without
def test_all_rows_as_centers_are_the_exact_classifier(rows, several, intercept):
    X, y, w = rows
    labels = np.digitize(y, [0, 1]) if several else y > 0.5
    settings = {"sigma": 1.0, "penalty": 1e-3, "intercept": intercept}
    exact = KernelClassifier(**settings).fit(X, labels, w)
    ours = NystromClassifier(n_centers=90, **settings).fit(X, labels, w)
    assert_allclose(ours.decision_function(X), exact.decision_function(X), rtol=1e-6, atol=1e-7)
    assert_array_equal(ours.predict(X), exact.predict(X))


def test_the_path_of_all_training_rows_is_the_exact_one(rows, split):
    X, y, w = rows
    settings = {"sigma": 1.0, "penalty": [1e-1, 1e-3, 1e-5], "validation": [split]}
    # Centers are the rows that are fitted, and the model is then refitted to all rows.
    exact = KernelRegressor(**settings).fit(X, y, w)
    ours = NystromRegressor(centers=X[split[0]], n_centers=65, **settings).fit(X, y, w)
    assert_allclose(ours.path_.errors[:, 0], exact.path_.errors, rtol=1e-6)
    assert_allclose(ours.path_.train_errors[:, 0], exact.path_.train_errors, rtol=1e-6)


def test_scikit_learns_features_with_ridge_are_the_same_machine(rows, rng):
    X, y, w = rows
    new = rng.normal(size=(20, 3))
    theirs = Nystroem(kernel="rbf", gamma=0.5, n_components=15, random_state=0).fit(X)
    ridge = Ridge(alpha=1e-2 * w.sum()).fit(theirs.transform(X), y, w)
    ours = NystromRegressor(
        sigma=1.0, penalty=1e-2, centers=X[theirs.component_indices_], n_centers=15,
        intercept=True,
    ).fit(X, y, w)  # fmt: skip
    assert_allclose(ours.predict(new), ridge.predict(theirs.transform(new)), **close)
    assert ours.intercept_ == pytest.approx(ridge.intercept_)


# The whole path is that of separate fits.


def test_every_pair_of_the_path_is_the_formula_solved_from_scratch(rows, split):
    X, y, _ = rows
    (train, held), n = split, 65
    penalties, sizes = [1.0, 1e-2, 1e-4], [1, 4, 16, 40]
    model = NystromRegressor(
        sigma=1.0, penalty=penalties, n_centers=sizes, validation=[split], random_state=0
    ).fit(X, y)
    largest = NystromRegressor(
        sigma=1.0, penalty=penalties, n_centers=40, validation=[split], random_state=0
    ).fit(X, y)
    centers = X[largest.center_rows_]
    assert len(centers) == 40
    K_n, K_m = rbf_kernel(X, centers, gamma=0.5), rbf_kernel(centers, gamma=0.5)
    assert model.path_.errors.shape == (3, 4)
    for i, penalty in enumerate(penalties):
        for s, m in enumerate(sizes):
            A = K_n[train, :m]
            G = A.T @ A + n * penalty * K_m[:m, :m]
            alpha = np.linalg.pinv(G, rcond=1e-15, hermitian=True) @ A.T @ y[train]
            for errors, part in ((model.path_.errors, held), (model.path_.train_errors, train)):
                expected = np.sqrt(np.mean((K_n[part, :m] @ alpha - y[part]) ** 2))
                assert errors[i, s] == pytest.approx(expected, rel=1e-7)
    i, s = np.unravel_index(np.argmin(model.path_.errors), (3, 4))
    assert (model.penalty_, model.n_centers_) == (penalties[i], sizes[s])
    assert_array_equal(model.center_rows_, largest.center_rows_[: sizes[s]])
    # The chosen point is refitted to all rows.
    m = model.n_centers_
    A = K_n[:, :m]
    G = A.T @ A + 90 * model.penalty_ * K_m[:m, :m]
    assert_allclose(model.predict(X), A @ np.linalg.solve(G, A.T @ y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), Polynomial(2)], ids=repr)
@with_and_without
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_paths_of_any_problem(rows, split, kernel, intercept, outputs, weighted):
    X, y, w = rows
    Y = np.column_stack([y, X[:, 2] + 3, np.exp(X[:, 0])])[:, :outputs]
    w = w if weighted else None
    penalties, sizes = [1e-1, 1e-3], [2, 8, 25]
    centers = X[split[0]][:25]
    model = NystromRegressor(
        kernel, penalty=penalties, n_centers=sizes, centers=centers, intercept=intercept,
        validation=[split],
    ).fit(X, Y, w)  # fmt: skip
    expected = errors_of(kernel, X, Y, centers, penalties, sizes, [split], w, intercept)
    assert_allclose(model.path_.errors, expected[0], rtol=1e-6)
    assert_allclose(model.path_.train_errors, expected[1], rtol=1e-6)


SPLITTERS = {
    "folds": KFold(4, shuffle=True, random_state=0),
    "random": ShuffleSplit(5, test_size=0.2, train_size=0.5, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=3, random_state=0),
    "series": TimeSeriesSplit(4),
    "one by one": LeaveOneOut(),
}


@pytest.mark.parametrize("name", SPLITTERS)
@with_and_without
def test_splits_of_any_kind_are_separate_fits_pooled(rows, name, intercept):
    X, y, w = rows
    penalties, sizes = [1e-1, 1e-4], [3, 20]
    model = NystromRegressor(
        sigma=1.0, penalty=penalties, n_centers=sizes, centers=X[:20], intercept=intercept,
        validation=SPLITTERS[name],
    ).fit(X, y, w)  # fmt: skip
    splits = list(SPLITTERS[name].split(X))
    assert model.path_.method == f"{len(splits)} splits"
    expected = errors_of(Gaussian(1.0), X, y, X[:20], penalties, sizes, splits, w, intercept)
    assert_allclose(model.path_.errors, expected[0], rtol=1e-6)
    assert_allclose(model.path_.train_errors, expected[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("validation", "sides"), [(5, (72, 18)), (0.2, (72, 18)), (0.5, (45, 45))]
)
def test_a_number_of_folds_and_a_fraction(rows, validation, sides):
    X, y, w = rows
    penalties, sizes = [1e-1, 1e-3], [3, 20]
    model = NystromRegressor(
        sigma=1.0, penalty=penalties, n_centers=sizes, centers=X[:20], validation=validation,
        random_state=0,
    ).fit(X, y, w)  # fmt: skip
    cells = model.statistics_.cells
    splits = [
        tuple(np.flatnonzero(np.isin(cells.of_row, np.flatnonzero(use[v]))) for use in
              (cells.fitted, cells.held)) for v in range(len(cells.fitted))
    ]  # fmt: skip
    assert {(len(train), len(held)) for train, held in splits} == {sides}
    held = np.concatenate([held for _, held in splits])
    assert len(np.unique(held)) == len(held) == (90 if validation == 5 else sides[1])
    expected = errors_of(Gaussian(1.0), X, y, X[:20], penalties, sizes, splits, w)
    assert_allclose(model.path_.errors, expected[0], rtol=1e-6)


def test_rows_may_be_given_more_than_once_as_for_the_exact_machine(rows):
    X, y, _ = rows
    twice = np.concatenate([np.zeros(20, int), np.arange(40)])
    settings = {"sigma": 1.0, "penalty": [1.0, 0.1], "validation": [(twice, np.arange(50, 90))]}
    exact = KernelRegressor(**settings).fit(X, y).path_.errors
    try:
        ours = NystromRegressor(centers=X[:40], n_centers=40, **settings).fit(X, y)
    except ValueError as error:
        assert "more than once" in str(error)  # noqa: PT017 (either is right)
    else:
        assert_allclose(ours.path_.errors[:, 0], exact, rtol=1e-6)


@with_and_without
@pytest.mark.parametrize("weighted", [False, True])
def test_generalized_cross_validation_is_its_definition(rows, intercept, weighted):
    X, y, w = rows
    w = w if weighted else None
    total = 90.0 if w is None else w.sum()
    penalties, sizes = [1.0, 1e-2, 1e-4], [2, 10, 30]
    model = NystromRegressor(
        sigma=1.0, penalty=penalties, n_centers=sizes, centers=X[:30], intercept=intercept,
        validation="gcv",
    ).fit(X, y, w)  # fmt: skip
    assert model.path_.method == "generalized cross-validation"
    for i, penalty in enumerate(penalties):
        for s, m in enumerate(sizes):
            # Column j of the hat matrix is the fit to the j-th unit vector.
            H = nystrom(Gaussian(1.0), X, np.eye(90), X[:m], penalty, w, intercept)(X)
            squares = (y - H @ y) ** 2
            mean = squares.mean() if w is None else w @ squares / total
            expected = np.sqrt(mean) / (1 - np.trace(H) / 90)
            assert model.path_.errors[i, s] == pytest.approx(expected, rel=1e-6)
            assert model.path_.train_errors[i, s] == pytest.approx(np.sqrt(mean), rel=1e-6)


def test_generalized_cross_validation_of_full_rank_is_the_exact_one(rows):
    X, y, w = rows
    settings = {"sigma": 1.0, "penalty": np.geomspace(1, 1e-3, 7), "validation": "gcv"}
    exact = KernelRegressor(**settings).fit(X, y, w)
    ours = NystromRegressor(n_centers=90, **settings).fit(X, y, w)
    assert_allclose(ours.path_.errors[:, 0], exact.path_.errors, rtol=1e-6)


def test_generalized_cross_validation_does_not_judge_interpolation(rows):
    X, y, _ = rows
    settings = {"sigma": 0.3, "n_centers": 90, "validation": "gcv"}
    model = NystromRegressor(**settings, penalty=[1e-1, 1e-14]).fit(X, y)
    assert np.isinf(model.path_.errors[1, 0])
    assert model.penalty_ == 0.1
    with pytest.raises(ValueError, match="could be judged by generalized cross-validation"):
        NystromRegressor(**settings, penalty=[1e-14, 1e-13]).fit(X, y)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@with_and_without
def test_classes_are_judged_by_the_misclassification_rate(
    rows, split, several, weighted, intercept
):
    X, y, w = rows
    train, held = split
    weight = w if weighted else np.ones(90)
    labels = np.digitize(y, [0, 1]) if several else (y > 0.5).astype(int)
    penalties, sizes = [1.0, 1e-2, 1e-5], [2, 8, 25]
    model = NystromClassifier(
        sigma=1.0, penalty=penalties, n_centers=sizes, centers=X[:25], intercept=intercept,
        validation=[split],
    ).fit(X, labels, w if weighted else None)  # fmt: skip
    codes = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    codes = codes if several else codes[:, 1:2]
    for i, penalty in enumerate(penalties):
        for s, m in enumerate(sizes):
            f = nystrom(
                Gaussian(1.0), X[train], codes[train], X[:m], penalty, weight[train], intercept
            )
            F = f(X[held])
            guess = F.argmax(axis=1) if several else (F[:, 0] > 0).astype(int)
            rate = weight[held] @ (guess != labels[held]) / weight[held].sum()
            assert model.path_.errors[i, s] == pytest.approx(rate, abs=1e-9)
            squares = weight[held] @ ((F - codes[held]) ** 2).mean(axis=1)
            expected = squares / weight[held].sum()
            assert model.path_.tie_breaker[i, s] == pytest.approx(expected, rel=1e-6)
    assert model.path_.metric == "misclassification rate"
    assert model.path_.best["error"] == model.path_.errors.min()


def test_a_grid_of_widths_is_a_fit_for_each(rows, split):
    X, y, _ = rows
    sigmas = [0.1, 2.0, 50.0]
    settings = {"penalty": [1e-1, 1e-3], "n_centers": [5, 20], "validation": [split],
                "random_state": 0}  # fmt: skip
    model = NystromRegressor(sigma=sigmas, **settings).fit(X, y)
    assert list(model.path_.axes) == ["sigma", "penalty", "n_centers"]
    alone = [NystromRegressor(sigma=sigma, **settings).fit(X, y) for sigma in sigmas]
    for errors, one in zip(model.path_.errors, alone, strict=True):
        assert_allclose(errors, one.path_.errors, rtol=1e-9)
    best = alone[int(np.argmin([one.path_.errors.min() for one in alone]))]
    assert (model.sigma_, model.penalty_) == (best.sigma_, best.penalty_)
    assert model.sigma_ == 2.0  # neither the first nor the last
    assert_array_equal(model.center_rows_, best.center_rows_)
    assert_allclose(model.predict(X), best.predict(X), rtol=1e-9)


# Where errors are so small that their differences cancel.


def in_the_span(rng, n=300, m=20):
    """Return rows and a noiseless function of a few well separated centers."""
    X = rng.uniform(-3, 3, size=(n, 2))
    centers = X[:m]
    return X, centers, Laplacian(1.0)(X, centers) @ rng.normal(size=m)


def nearly_exact_errors(kernel, X, y, centers, penalty, train, held, intercept=False):
    """Return held-out errors by QR of rows of K_nmT⁻¹ and of the penalty."""
    T = np.linalg.cholesky(kernel(centers)).T
    Phi = solve_triangular(T, kernel(X, centers).T, trans=1).T
    below = np.sqrt(len(train) * penalty) * np.eye(len(T))
    if intercept:
        Phi = np.column_stack([Phi, np.ones(len(X))])
        below = np.column_stack([below, np.zeros(len(T))])
    Q, R = np.linalg.qr(np.vstack([Phi[train], below]))
    w = solve_triangular(R, Q[: len(train)].T @ y[train])
    return np.sqrt(np.mean((Phi[held] @ w - y[held]) ** 2))


@pytest.mark.parametrize("validation", ["hold-out", "folds"])
def test_tiny_errors_of_a_well_conditioned_path_have_digits(rng, monkeypatch, validation):
    X, centers, y = in_the_span(rng)
    penalties, sizes = [1e-2, 1e-6, 1e-9, 1e-11], [10, 20]
    splits = [(np.arange(240), np.arange(240, 300))]
    if validation == "folds":
        splits = list(KFold(3).split(X))
    passes = []
    score_models = map_search.score_models
    monkeypatch.setattr(
        map_search, "score_models", lambda *a: passes.append(1) or score_models(*a)
    )
    model = NystromRegressor(
        Laplacian(1.0), penalty=penalties, n_centers=sizes, centers=centers, validation=splits
    ).fit(X, y)
    assert len(passes) == len(splits)  # rows were read again, once for every split
    for i, penalty in enumerate(penalties):
        for s, m in enumerate(sizes):
            each = [
                nearly_exact_errors(Laplacian(1.0), X, y, centers[:m], penalty, *pair)
                for pair in splits
            ]
            sizes_held = [len(held) for _, held in splits]
            expected = np.sqrt(np.average(np.square(each), weights=sizes_held))
            assert model.path_.errors[i, s] == pytest.approx(expected, rel=1e-4)
    # The squares of these are 1e-18 of the variance; moments end at 1e-13 or so.
    assert model.path_.errors[-1, -1] < 2e-9 * np.std(y)
    assert (model.penalty_, model.n_centers_) == (1e-11, 20)


def test_errors_that_are_large_take_no_second_look_at_the_rows(rows, monkeypatch):
    X, y, _ = rows

    def fail(*args):
        raise AssertionError("rows were read again")

    monkeypatch.setattr(map_search, "score_models", fail)
    for validation in (0.2, 5, "gcv"):
        NystromRegressor(sigma=1.0, n_centers=[5, 30], validation=validation,
                         random_state=0).fit(X, y)  # fmt: skip


@with_and_without
def test_tiny_errors_of_a_smooth_function(rng, intercept):
    X = rng.uniform(-1, 1, size=(300, 2))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 5 * intercept
    train, held = np.arange(240), np.arange(240, 300)
    penalties, sizes = [1e-4, 1e-8, 1e-12, 1e-14], [10, 30, 60]
    centers = X[:60]
    model = NystromRegressor(
        sigma=0.8, penalty=penalties, n_centers=sizes, centers=centers, intercept=intercept,
        validation=[(train, held)],
    ).fit(X, y)  # fmt: skip
    dropped = [d.center for d in model.statistics_.map.dropped]
    kept = np.setdiff1d(np.arange(60), dropped)
    for i, penalty in enumerate(penalties):
        for s, m in enumerate(sizes):
            some = centers[kept[kept < m]]
            expected = nearly_exact_errors(
                Gaussian(0.8), X, y, some, penalty, train, held, intercept
            )
            assert model.path_.errors[i, s] == pytest.approx(expected, rel=0.02, abs=1e-7)
    assert model.path_.errors.min() < 1e-4


def test_tiny_errors_of_generalized_cross_validation(rng):
    X, centers, y = in_the_span(rng)
    model = NystromRegressor(
        Laplacian(1.0), penalty=[1e-2, 1e-9], n_centers=20, centers=centers, validation="gcv"
    ).fit(X, y)
    everything = np.arange(300)
    for error, penalty in zip(model.path_.train_errors[:, 0], [1e-2, 1e-9], strict=True):
        args = (Laplacian(1.0), X, y, centers, penalty, everything, everything)
        assert error == pytest.approx(nearly_exact_errors(*args), rel=1e-4)


def test_training_errors_are_right_to_their_rounding_errors(rng):
    X, centers, y = in_the_span(rng)
    train, held = np.arange(240), np.arange(240, 300)
    penalties = [1e-2, 1e-5, 1e-11]
    model = NystromRegressor(
        Laplacian(1.0), penalty=penalties, n_centers=[10, 20], centers=centers,
        validation=[(train, held)],
    ).fit(X, y)  # fmt: skip
    for i, penalty in enumerate(penalties):
        for s, m in enumerate([10, 20]):
            args = (Laplacian(1.0), X, y, centers[:m], penalty, train, train)
            assert model.path_.train_errors[i, s] == pytest.approx(
                nearly_exact_errors(*args), rel=1e-5, abs=1e-6 * np.std(y)
            )


def test_single_precision_errors_have_digits_too(rng):
    X = rng.uniform(-3, 3, size=(2000, 1)).astype(np.float32)
    y = np.sin(2 * X[:, 0].astype(float)) + 0.01 * rng.normal(size=2000)
    train, held = np.arange(1600), np.arange(1600, 2000)
    penalties, sizes = [1e-2, 1e-4], [5, 15]
    centers = np.linspace(-3, 3, 15, dtype=np.float32)[
        [7, 0, 14, 3, 11, *range(1, 3), *range(4, 7), *range(8, 11), 12, 13]
    ]
    centers = centers[:, None]  # fmt: skip
    model = NystromRegressor(
        Laplacian(1.0), penalty=penalties, n_centers=sizes, centers=centers,
        validation=[(train, held)],
    ).fit(X, y)  # fmt: skip
    expected = errors_of(
        Laplacian(1.0), X.astype(float), y, centers.astype(float), penalties, sizes,
        [(train, held)],
    )[0]  # fmt: skip
    assert model.dual_coef_.dtype == np.float32
    assert_allclose(model.path_.errors, expected, rtol=1e-3)


# The number of centers as the only parameter.


@with_and_without
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Polynomial(2)], ids=repr)
def test_the_penalty_may_follow_from_the_number_of_centers(rows, split, kernel, intercept):
    X, y, _ = rows
    sizes, centers = [2, 5, 12, 25], X[:25]
    model = NystromRegressor(
        kernel, penalty="n_centers", n_centers=sizes, centers=centers, validation=[split],
        intercept=intercept,
    ).fit(X, y)  # fmt: skip
    assert list(model.path_.axes) == ["n_centers"]
    mean = kernel.diagonal(centers).mean()
    for s, m in enumerate(sizes):
        args = (kernel, X, y, centers, [mean * np.log(m) / m], [m], [split], None, intercept)
        assert model.path_.errors[s] == pytest.approx(errors_of(*args)[0, 0, 0], rel=1e-6)
    best = sizes[int(np.argmin(model.path_.errors))]
    assert model.n_centers_ == best
    assert model.penalty_ == pytest.approx(mean * np.log(best) / best)
    fixed = NystromRegressor(
        kernel, penalty="n_centers", n_centers=12, centers=centers, intercept=intercept
    ).fit(X, y)
    assert fixed.path_ is None
    # The mean is that over the centers that there are.
    mean = kernel.diagonal(centers[:12]).mean()
    f = nystrom(kernel, X, y, centers[:12], mean * np.log(12) / 12, None, intercept)
    assert_allclose(fixed.predict(X), f(X)[:, 0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
def test_all_sizes_at_once_are_sizes_one_by_one(rows, split, intercept):
    X, y, w = rows
    settings = {"sigma": 1.0, "penalty": [1e-1, 1e-3], "centers": X[:30], "validation": [split],
                "intercept": intercept}  # fmt: skip
    every = NystromRegressor(n_centers=range(1, 31), **settings).fit(X, y, w).path_
    assert every.sizes.tolist() == list(range(1, 31))
    for m in (1, 2, 17, 30):
        one = NystromRegressor(n_centers=m, **settings).fit(X, y, w).path_
        assert_allclose(every.errors[:, m - 1], one.errors[:, 0], rtol=1e-8)
        assert_allclose(every.train_errors[:, m - 1], one.train_errors[:, 0], rtol=1e-8)


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


def assert_untouched(model, before):
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is before[key] for key in before)


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


# Weights and classes.


@with_and_without
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=repr)
def test_a_weight_is_a_number_of_copies(rows, rng, kernel, intercept):
    X, y, _ = rows
    times = rng.integers(0, 4, 90)
    settings = {"penalty": 1e-2, "n_centers": 20, "centers": X[:20], "intercept": intercept}
    weighted = NystromRegressor(kernel, **settings).fit(X, y, times)
    copied = NystromRegressor(kernel, **settings).fit(X.repeat(times, 0), y.repeat(times))
    assert_allclose(weighted.predict(X), copied.predict(X), **close)


@both_faces
@pytest.mark.parametrize("validation", [0.25, 4, "gcv"])
def test_rows_without_weight_are_not_there(rows, make, validation):
    X, y, w = rows
    y = y if make is NystromRegressor else (y > 0.5).astype(int)
    w = w * (np.arange(90) % 4 != 0)
    settings = {"sigma": 1.0, "penalty": [1e-1, 1e-3], "n_centers": [5, 20], "centers": X[:20],
                "validation": validation, "random_state": 0}  # fmt: skip
    weighted, dropped = make(**settings).fit(X, y, w), make(**settings)
    dropped.fit(X[w > 0], y[w > 0], w[w > 0])
    assert_allclose(weighted.path_.errors, dropped.path_.errors, rtol=1e-7)
    assert_allclose(weighted.predict(X), dropped.predict(X), **close)


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20, 1e300])
@pytest.mark.filterwarnings("error")
def test_only_ratios_of_weights_count(rows, scale):
    X, y, w = rows
    model = NystromRegressor(sigma=1.0, penalty=[1e-1, 1e-3], n_centers=20, random_state=0)
    plain = model.fit(X, y, w)
    errors, predictions = plain.path_.errors, plain.predict(X)
    scaled = model.fit(X, y, w * scale)
    assert_allclose(scaled.path_.errors, errors, rtol=1e-9)
    assert_allclose(scaled.predict(X), predictions, rtol=1e-7)


def test_weights_of_classes(rows):
    X, y, w = rows
    labels = np.digitize(y, [0, 2])
    settings = {"sigma": 1.0, "penalty": [1e-1, 1e-3], "n_centers": 20, "random_state": 0}
    balanced = NystromClassifier(class_weight="balanced", **settings).fit(X, labels, w)
    by_hand = compute_sample_weight("balanced", labels) * w
    expected = NystromClassifier(**settings).fit(X, labels, by_hand)
    assert_allclose(balanced.path_.errors, expected.path_.errors)
    assert_allclose(balanced.decision_function(X), expected.decision_function(X), **close)
    given = NystromClassifier(class_weight={0: 1.0, 1: 2.0, 2: 5.0}, **settings).fit(X, labels)
    expected = NystromClassifier(**settings).fit(X, labels, np.array([1.0, 2.0, 5.0])[labels])
    assert_allclose(given.decision_function(X), expected.decision_function(X), **close)


@pytest.mark.parametrize("weights", [None, "balanced"])
def test_names_of_classes(rows, weights):
    X, y, _ = rows
    numbers = np.digitize(y, [0, 1])
    names = np.array(["few", "more", "much"])[numbers]
    settings = {"sigma": 1.0, "n_centers": [5, 20], "random_state": 0, "class_weight": weights}
    one = NystromClassifier(**settings).fit(X, numbers)
    two = NystromClassifier(**settings).fit(X, names)
    assert two.classes_.tolist() == ["few", "more", "much"]
    assert_array_equal(two.predict(X), np.array(["few", "more", "much"])[one.predict(X)])
    assert one.decision_function(X).shape == (90, 3)
    binary = NystromClassifier(**settings).fit(X, np.where(y > 0.5, "yes", "no"))
    assert binary.decision_function(X).shape == (90,)
    assert_array_equal(binary.predict(X) == "yes", binary.decision_function(X) > 0)


def test_classes_are_fitted_by_their_codes(rows, rng):
    X, y, w = rows
    labels, new = np.digitize(y, [0, 1]), rng.normal(size=(20, 3))
    settings = {"sigma": 1.0, "penalty": 1e-2, "n_centers": 20, "random_state": 0}
    codes = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    classes = NystromClassifier(**settings).fit(X, labels, w)
    numbers = NystromRegressor(**settings).fit(X, codes, w)
    assert_allclose(classes.decision_function(new), numbers.predict(new), **close)
    assert_array_equal(classes.predict(new), numbers.predict(new).argmax(axis=1))


def test_several_labels_at_once(rows, split):
    X, y, _ = rows
    labels = np.column_stack([y > 0, X[:, 0] > 0, X[:, 1] > 1]).astype(int)
    settings = {"sigma": 1.0, "penalty": [1e-1, 1e-3], "n_centers": 20, "centers": X[:20],
                "validation": [split]}  # fmt: skip
    model = NystromClassifier(**settings).fit(X, labels)
    train, held = split
    for i, penalty in enumerate([1e-1, 1e-3]):
        f = nystrom(Gaussian(1.0), X[train], 2.0 * labels[train] - 1, X[:20], penalty)
        rate = np.mean((f(X[held]) > 0) != labels[held])
        assert model.path_.errors[i, 0] == pytest.approx(rate)
    assert model.predict(X).shape == (90, 3)
    assert_array_equal(model.predict(X), model.decision_function(X) > 0)
    thin = NystromClassifier(**settings).fit(X, sparse.csr_array(labels))
    assert_array_equal(thin.predict(X), model.predict(X))


def test_folds_of_classes_are_stratified(rows):
    X, *_ = rows
    labels = (np.arange(90) % 9 == 0).astype(int)
    model = NystromClassifier(
        sigma=1.0, penalty=[10.0, 1.0], n_centers=10, validation=5, random_state=0
    ).fit(X, labels)
    # With two rows of ten in every fold and nothing learned, one row in nine is wrong.
    assert model.path_.errors[0, 0] == pytest.approx(1 / 9)
    given = NystromClassifier(
        sigma=1.0, penalty=[10.0, 1.0], n_centers=10, validation=StratifiedKFold(5),
        random_state=0,
    ).fit(X, labels)  # fmt: skip
    assert given.path_.errors[0, 0] == pytest.approx(1 / 9)


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
