"""Nyström machines against separate fits, exact machines and definitions, in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import solve_triangular
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.utils.class_weight import compute_sample_weight

from imparo import KernelClassifier, KernelRegressor, NystromClassifier, NystromRegressor
from imparo.estimators import map_search
from imparo.kernels import Gaussian, Laplacian, Linear, Polynomial
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
