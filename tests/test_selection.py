"""Selection equals what it stands for: separate fits, one for each row, fold or level."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, ShuffleSplit

from imparo import KernelClassifier, KernelRegressor
from imparo.errors import SelectionWarning
from imparo.filters import as_filter
from imparo.paths import Path

PENALTIES = np.logspace(0, -12, 13)


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
    penalties = PENALTIES[:-4:2] if kernel == "linear" else PENALTIES[::2]
    model = KernelRegressor(kernel, sigma=sigma, penalty=penalties, intercept=intercept)
    one_by_one = [(np.delete(np.arange(25), i), np.array([i])) for i in range(25)]
    expected = separate_fits(model, X, y, one_by_one, w)
    assert_allclose(model.fit(X, y, w).path_.errors, expected, rtol=1e-8)


def test_leave_one_out_is_n_fits_in_high_dimension(rng):
    X, Y = rng.normal(size=(20, 40)), rng.normal(size=(20, 2))
    model = KernelRegressor("linear", penalty=PENALTIES[:-2])
    one_by_one = [(np.delete(np.arange(20), i), np.array([i])) for i in range(20)]
    expected = separate_fits(model, X, Y, one_by_one, np.ones(20))
    assert_allclose(model.fit(X, Y).path_.errors, expected, rtol=1e-8)


def test_leave_one_out_is_n_fits_on_the_low_rank_route(rng):
    # 300 rows of one column and wide kernel: rank about 20. An outlier has leverage 1.
    X = np.append(rng.normal(size=299), 40.0)[:, None]
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    model = KernelRegressor(sigma=1.0, penalty=[1e-1, 1e-6])
    one_by_one = [(np.delete(np.arange(300), i), np.array([i])) for i in range(300)]
    expected = separate_fits(model, X, y, one_by_one, np.ones(300))
    assert_allclose(model.fit(X, y).path_.errors, expected, rtol=1e-8)


def test_leave_one_out_rate_counts_rows_that_a_fit_without_them_gets_wrong(wave):
    X, y = wave
    labels = np.digitize(y, [0.2, 1.0])
    model = KernelClassifier(sigma=1.0, penalty=[1.0, 1e-3, 1e-6]).fit(X, labels)
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
    penalties = np.logspace(0, -4, 5)
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
    name = as_filter(filter).parameter
    levels = {"iterations": [3, 20], "components": [3, 20], "penalty": [1e-1, 1e-3]}[name]
    settings = {"sigma": 1.0, "filter": filter, "validation": "gcv"}
    fit = KernelRegressor(**settings, **{name: levels}).fit(X, y)
    for level, error in zip(levels, fit.path_.errors, strict=True):
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
        assert model.path_.sigmas.tolist() == widths
        for s, row in zip(widths, model.path_.errors, strict=True):
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
    fitted = []

    def kernel(A, B):
        fitted.append(B)
        return A @ B.T

    model = KernelClassifier(kernel, validation=0.2, random_state=0).fit(X, y)
    assert model.path_.method == "hold-out"
    part = next(rows for rows in fitted if len(rows) == 80)
    rare = {tuple(row) for row in X[90:]}
    assert sum(tuple(row) in rare for row in part) == 8


def test_same_seed_same_path(wave):
    X, y = wave
    paths = [
        KernelRegressor(validation=0.3, random_state=seed).fit(X, y).path_.errors
        for seed in (1, 1, 2)
    ]
    assert (paths[0] == paths[1]).all()
    assert (paths[0] != paths[2]).any()


def test_rows_without_weight_keep_their_place_in_given_splits(wave):
    X, y = wave
    w = np.ones(60)
    w[:5] = 0
    split = [(np.arange(5, 40), np.arange(40, 60))]
    model = KernelRegressor(sigma=1.0, penalty=[1e-1, 1e-3], validation=split).fit(X, y, w)
    without = [(np.arange(35), np.arange(35, 55))]
    same = KernelRegressor(sigma=1.0, penalty=[1e-1, 1e-3], validation=without)
    assert_allclose(model.path_.errors, same.fit(X[5:], y[5:]).path_.errors, rtol=1e-12)
    masks = [(np.arange(60) < 40, np.arange(60) >= 40)]
    masked = KernelRegressor(sigma=1.0, penalty=[1e-1, 1e-3], validation=masks).fit(X, y, w)
    assert_allclose(masked.path_.errors, model.path_.errors, rtol=1e-12)


def test_gcv_does_not_judge_models_that_nearly_interpolate(rng):
    worst = 1.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 5))
        y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=300)
        model = KernelRegressor(filter="cutoff", validation="gcv").fit(X[:200], y[:200])
        worst = min(worst, model.score(X[200:], y[200:]))
    assert worst > 0.7


def test_when_nothing_can_be_judged_it_is_said():
    X, y = np.arange(5.0)[:, None], np.arange(5.0)
    with pytest.raises(ValueError, match="no value of sigma and penalty could be judged"):
        KernelRegressor(sigma=[0.1, 0.2], penalty=0.0).fit(X, y)


def test_many_steps_go_by_the_spectrum_and_agree_with_the_iteration(wave):
    X, y = wave
    for filter in ("landweber", "nu"):
        grid = [1, 30, 90, 5000]  # by spectrum, and by iteration without the last
        whole = KernelRegressor(sigma=1.0, filter=filter, iterations=grid, validation=3)
        short = KernelRegressor(sigma=1.0, filter=filter, iterations=grid[:3], validation=3)
        errors = [m.set_params(random_state=0).fit(X, y).path_.errors for m in (whole, short)]
        assert_allclose(errors[0][:3], errors[1], rtol=1e-8)


def test_the_end_of_automatic_steps_is_reported(rng):
    X = np.linspace(0, 1, 50)[:, None]
    model = KernelRegressor(sigma=0.3, filter="nu", validation=5, random_state=0)
    with pytest.warns(SelectionWarning, match="the most that were tried"):
        model.fit(X, np.sin(9 * X[:, 0]))


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
    model = KernelRegressor(sigma=1.0, penalty=[1e-2, 1e-4], validation=split).fit(X, y)
    for penalty, error in zip(model.penalty, model.path_.errors, strict=True):
        ridge = KernelRidge(kernel="rbf", gamma=0.5, alpha=penalty * 40).fit(X[:40], y[:40])
        expected = np.sqrt(np.mean((ridge.predict(X[40:]) - y[40:]) ** 2))
        assert error == pytest.approx(expected, rel=1e-8)
