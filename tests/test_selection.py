"""Selection equals what it stands for: separate fits, one for each row, fold or level."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.svm import SVC

from imparo import KernelClassifier, KernelRegressor
from imparo.paths import Path

PENALTIES = np.logspace(-12, 0, 13)


def separate_fits(model, X, y, splits, w):
    """Return the pooled held-out RMSE of fits at each penalty, ridge nλ kept."""
    errors = []
    for penalty in model.penalty:
        squares = held = 0.0
        for train, test in splits:
            same_ridge = penalty * w.sum() / w[train].sum()
            fit = KernelRegressor(**(model.get_params() | {"penalty": same_ridge}))
            F = fit.fit(X[train], y[train], w[train]).predict(X[test])
            squares += (w[test] @ ((F - y[test]) ** 2).reshape(len(test), -1)).mean()
            held += w[test].sum()
        errors.append(np.sqrt(squares / held))
    return np.array(errors)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", ["gaussian", "linear", "matern12"])
def test_leave_one_out_is_n_fits(wave, rng, kernel, intercept, weighted):
    X, y = wave
    X, y = X[:25], y[:25] + 1
    w = rng.uniform(0.5, 2, 25) if weighted else np.ones(25)
    sigma = "median" if kernel == "linear" else 1.0
    penalties = PENALTIES[4:] if kernel == "linear" else PENALTIES
    model = KernelRegressor(kernel, sigma=sigma, penalty=penalties, intercept=intercept)
    one_by_one = [(np.delete(np.arange(25), i), np.array([i])) for i in range(25)]
    expected = separate_fits(model, X, y, one_by_one, w)
    assert_allclose(model.fit(X, y, w).path_.errors, expected, rtol=1e-8)


def test_leave_one_out_is_n_fits_in_high_dimension(rng):
    X, Y = rng.normal(size=(20, 40)), rng.normal(size=(20, 2))
    model = KernelRegressor("linear", penalty=PENALTIES[2:])
    one_by_one = [(np.delete(np.arange(20), i), np.array([i])) for i in range(20)]
    expected = separate_fits(model, X, Y, one_by_one, np.ones(20))
    assert_allclose(model.fit(X, Y).path_.errors, expected, rtol=1e-8)


def test_leave_one_out_is_n_fits_on_the_low_rank_route(rng):
    # 300 rows of one column and wide kernel: rank about 20. An outlier has leverage 1.
    X = np.append(rng.normal(size=299), 40.0)[:, None]
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    model = KernelRegressor(sigma=1.0, penalty=np.logspace(-6, -1, 4))
    one_by_one = [(np.delete(np.arange(300), i), np.array([i])) for i in range(300)]
    expected = separate_fits(model, X, y, one_by_one, np.ones(300))
    assert_allclose(model.fit(X, y).path_.errors, expected, rtol=1e-8)


def test_leave_one_out_rate_counts_rows_that_a_fit_without_them_gets_wrong(wave):
    X, y = wave
    labels = np.digitize(y, [0.2, 1.0])
    model = KernelClassifier(sigma=1.0, penalty=[1e-6, 1e-3, 1.0]).fit(X, labels)
    wrong = np.zeros(3)
    for i in range(60):
        rest = np.delete(np.arange(60), i)
        for k, penalty in enumerate(model.penalty):
            fit = KernelClassifier(sigma=1.0, penalty=penalty * 60 / 59)
            wrong[k] += fit.fit(X[rest], labels[rest]).predict(X[[i]])[0] != labels[i]
    assert_allclose(model.path_.errors, wrong / 60)


def test_penalties_agree_with_ridge_cv(wave):
    X, y = wave
    ours = KernelRegressor("linear", penalty=PENALTIES, intercept=True).fit(X, y)
    theirs = RidgeCV(alphas=PENALTIES * 60).fit(X, y)
    assert ours.penalty_ * 60 == pytest.approx(theirs.alpha_)
    assert_allclose(ours.path_.errors.min() ** 2, -theirs.best_score_, rtol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_gcv_is_its_formula(wave, kernel, intercept):
    X, y = wave
    penalties = np.logspace(-4, 0, 5)
    settings = {"sigma": 1.0 if kernel == "gaussian" else "median", "intercept": intercept}
    model = KernelRegressor(kernel, penalty=penalties, validation="gcv", **settings).fit(X, y)
    for penalty, error in zip(penalties, model.path_.errors, strict=True):
        fit = KernelRegressor(kernel, penalty=penalty, **settings)
        hat = fit.fit(X, np.eye(60)).predict(X)
        residual = y - hat @ y
        expected = np.sqrt(np.mean(residual**2)) / (1 - np.trace(hat) / 60)
        assert error == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("filter", ["landweber", "nu", "components", "cutoff"])
def test_gcv_of_other_filters_is_its_formula(wave, filter):
    X, y = wave
    levels = {"iterations": [3, 20], "components": [3, 20], "penalty": [1e-3, 1e-1]}
    fit = KernelRegressor(sigma=1.0, filter=filter, validation="gcv", **levels).fit(X, y)
    name = next(iter(fit.path_.axes))
    for level, error in zip(levels[name], fit.path_.errors, strict=True):
        one = KernelRegressor(sigma=1.0, filter=filter, **{name: level})
        hat = one.fit(X, np.eye(60)).predict(X)
        expected = np.sqrt(np.mean((y - hat @ y) ** 2)) / (1 - np.trace(hat) / 60)
        assert error == pytest.approx(expected, rel=1e-7)


FILTERS = {
    "tikhonov": {"penalty": [1e-6, 1e-2, 1.0]},
    "cutoff": {"penalty": [1e-4, 1e-1]},
    "components": {"components": [2, 9]},
    "landweber": {"iterations": [1, 40, 7]},
    "nu": {"iterations": [1, 12]},
    "cg": {"iterations": [1, 6]},
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
@pytest.mark.parametrize("filter", FILTERS)
def test_folds_are_separate_fits(wave, rng, filter, kernel, intercept):
    X, y = wave
    w = rng.uniform(0.5, 2, 60)
    folds = KFold(3, shuffle=True, random_state=0)
    settings = {"kernel": kernel, "filter": filter, "intercept": intercept}
    settings["sigma"] = 1.0 if kernel == "gaussian" else "median"
    model = KernelRegressor(validation=folds, **settings, **FILTERS[filter]).fit(X, y, w)
    ((name, levels),) = model.path_.axes.items()
    for level, error, train_error in zip(
        levels, model.path_.errors, model.path_.train_errors, strict=True
    ):
        sums = np.zeros((2, 2))
        for train, test in folds.split(X):
            fit = KernelRegressor(**settings, **{name: level}).fit(X[train], y[train], w[train])
            for k, rows in enumerate((test, train)):
                squares = (fit.predict(X[rows]) - y[rows]) ** 2
                sums[k] += w[rows] @ squares, w[rows].sum()
        expected = np.sqrt(sums[:, 0] / sums[:, 1])
        assert_allclose([error, train_error], expected, rtol=1e-8)


def test_the_model_is_a_fit_to_all_rows_at_the_best_point(wave):
    X, y = wave
    for validation in ("loo", "gcv", 0.25, 4, ShuffleSplit(3, random_state=1)):
        model = KernelRegressor(sigma=[0.5, 1.0, 4.0], validation=validation, random_state=0)
        model.fit(X, y)
        best = model.path_.best
        assert (model.sigma_, model.penalty_) == (best["sigma"], best["penalty"])
        again = KernelRegressor(sigma=model.sigma_, penalty=model.penalty_).fit(X, y)
        assert_allclose(model.predict(X), again.predict(X), rtol=1e-8, atol=1e-8)


def test_the_best_width_is_found_wherever_it_stands_in_the_grid(wave):
    X, y = wave
    widths = [0.1, 1.0, 30.0]
    alone = {s: KernelRegressor(sigma=s).fit(X, y).path_.errors.min() for s in widths}
    best = min(alone, key=alone.get)
    for order in (widths, widths[::-1], [1.0, 30.0, 0.1]):
        model = KernelRegressor(sigma=order).fit(X, y)
        assert model.sigma_ == best
        assert model.path_.errors.shape == (3, 100)
        for s, row in zip(order, model.path_.errors, strict=True):
            assert row.min() == pytest.approx(alone[s])


def test_automatic_penalties_follow_the_scale_of_the_kernel(wave):
    X, y = wave
    model = KernelRegressor("linear").fit(X, y)
    large = KernelRegressor("linear").fit(1e5 * X, y)
    assert large.penalty_ == pytest.approx(1e10 * model.penalty_, rel=1e-6)
    assert_allclose(large.predict(1e5 * X), model.predict(X), rtol=1e-6)


def test_selection_sees_an_error_far_below_the_variance(rng):
    # Noise-free: the leave-one-out error goes down to 1e-9 of the outputs.
    X = np.linspace(0, 1, 40)[:, None]
    model = KernelRegressor(sigma=0.3).fit(X, np.sin(3 * X[:, 0]))
    assert model.path_.best["error"] < 1e-5
    new = rng.uniform(0.05, 0.95, (20, 1))
    assert_allclose(model.predict(new), np.sin(3 * new[:, 0]), atol=1e-5)


def test_stratified_hold_out_has_every_class_on_both_sides(rng):
    X, y = rng.normal(size=(100, 2)), np.array([0] * 90 + [1] * 10)
    seen = []

    def kernel(A, B):
        seen.append(len(A))
        return SVC().fit([[0], [1]], [0, 1]) and A @ B.T

    model = KernelClassifier(kernel, validation=0.2, random_state=0).fit(X, y)
    assert 80 in seen
    assert 20 in seen
    assert model.path_.method == "hold-out"


def test_same_seed_same_path(wave):
    X, y = wave
    paths = [
        KernelRegressor(validation=0.3, random_state=seed).fit(X, y).path_.errors
        for seed in (1, 1, 2)
    ]
    assert (paths[0] == paths[1]).all()
    assert (paths[0] != paths[2]).any()


def test_ties_go_to_the_smaller_squared_error():
    grid = {"penalty": np.array([1.0, 0.1, 0.01])}
    errors, ties = np.array([0.1, 0.1, 0.2]), np.array([3.0, 2.0, 1.0])
    path = Path(errors, grid, "misclassification rate", "hold-out", errors, ties)
    assert path.best == {"penalty": 0.1, "error": 0.1}
    assert path.at_edge == []


def test_nan_is_never_best():
    grid = {"iterations": np.array([1, 2])}
    errors = np.array([np.nan, 1.0])
    path = Path(errors, grid, "root mean squared error", "hold-out", errors, errors)
    assert path.best_index == (1,)
    assert path.at_edge == ["iterations"]


def test_path_against_kernel_ridge_on_a_hold_out(wave):
    X, y = wave
    split = [(np.arange(40), np.arange(40, 60))]
    model = KernelRegressor(sigma=1.0, penalty=[1e-4, 1e-2], validation=split).fit(X, y)
    for penalty, error in zip(model.penalty, model.path_.errors, strict=True):
        ridge = KernelRidge(kernel="rbf", gamma=0.5, alpha=penalty * 40).fit(X[:40], y[:40])
        expected = np.sqrt(np.mean((ridge.predict(X[40:]) - y[40:]) ** 2))
        assert error == pytest.approx(expected, rel=1e-8)
