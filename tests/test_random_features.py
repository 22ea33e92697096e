"""Random-feature machines against scikit-learn's Ridge, exact machines and definitions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import zeta
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit
from sklearn.utils.class_weight import compute_sample_weight

from imparo import KernelRegressor, RandomFeatureClassifier, RandomFeatureRegressor
from imparo.estimators.grids import feature_counts
from imparo.estimators.map_search import groups
from imparo.features import Fourier, LeverageFeatures, QuasiMonteCarlo
from imparo.kernels import Gaussian, Laplacian, Matern, Spline

RULES = {
    "pairs": {"sigma": 1.0},
    "cosines": {"sigma": 1.0, "features": Fourier("cosine")},
    "laplacian": {"kernel": "laplacian", "sigma": 2.0},
    "orthogonal": {"sigma": 1.0, "features": "orthogonal"},
    "fastfood": {"sigma": 1.0, "features": "fastfood"},
    "sorf": {"kernel": "matern32", "sigma": 1.0, "features": "sorf"},
    "qmc": {"sigma": 1.0, "features": "qmc"},
    "qmc cosines": {"kernel": "matern52", "sigma": 1.0, "features": QuasiMonteCarlo("cosine")},
    "leverage": {"sigma": 1.0, "features": "leverage"},
    "leverage of cosines": {
        "sigma": 1.0,
        "features": LeverageFeatures(base=Fourier("cosine"), penalty=1e-3, pool=200),
    },
    "spline": {"kernel": Spline(4.0), "features": "spline"},
}
# Penalties and sizes that share factorisations, some only up to rounding, and that do not.
GRIDS = {
    "doubling": ([0.4, 0.2, 0.1, 0.05], [8, 16, 32]),
    "in decimals": ([0.3, 0.03, 0.003, 3e-4], [4, 40]),
    "not doubling": ([0.3, 0.07, 1e-4], [6, 14, 30]),
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


@pytest.fixture
def split(rng):
    order = rng.permutation(90)
    return order[:65], order[65:85]  # five rows are on neither side


def rows_for(rule, X):
    """Return X, or a column in [0, 1] for splines."""
    return np.exp(-(X[:, :1] ** 2)) if rule == "spline" else X


def as_matrix(Y):
    return Y.reshape(len(Y), -1)


def ridge(Phi, Y, penalty, weight=None, intercept=False):
    """Return scikit-learn's solution of the problem of the docstring."""
    weight = np.ones(len(Phi)) if weight is None else weight
    model = Ridge(alpha=penalty * weight.sum(), fit_intercept=intercept, solver="svd")
    return model.fit(Phi, Y, weight)


def errors_of(map, X, Y, penalties, sizes, splits, weight=None, intercept=False):
    """Return errors on held-out and on fitted rows for every pair, from separate fits."""
    weight = np.ones(len(X)) if weight is None else weight
    found = np.empty((2, len(penalties), len(sizes)))
    for s, size in enumerate(sizes):
        Phi = map.first(size).transform(X)
        for i, penalty in enumerate(penalties):
            sums = np.zeros((2, 2))
            for train, held in splits:
                f = ridge(Phi[train], as_matrix(Y)[train], penalty, weight[train], intercept)
                for side, part in enumerate((held, train)):
                    left = as_matrix(f.predict(Phi[part])) - as_matrix(Y)[part]
                    sums[side] += weight[part] @ (left**2).mean(axis=1), weight[part].sum()
            found[:, i, s] = np.sqrt(sums[:, 0] / sums[:, 1])
    return found


def whole_map(sizes, X, y, weight=None, **parameters):
    """Return the map of the largest size."""
    model = RandomFeatureRegressor(n_features=max(sizes), random_state=0, **parameters)
    return model.fit(X, y, weight).map_


# One point is ridge regression on features.


@every_rule
@with_and_without
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [0, 1, 3])
def test_one_point_is_ridge_on_its_features(rows, rng, rule, intercept, weighted, outputs):
    X, y, w = rows
    Y = np.column_stack([y, X[:, 2] + 3, np.exp(X[:, 0])])[:, :outputs] if outputs else y
    X, new = rows_for(rule, X), rows_for(rule, rng.normal(size=(20, 3)))
    w = w if weighted else None
    model = RandomFeatureRegressor(
        penalty=1e-3, n_features=30, intercept=intercept, random_state=0, **RULES[rule]
    ).fit(X, Y, w)
    theirs = ridge(model.map_.transform(X), Y, 1e-3, w, intercept)
    coef = theirs.coef_.T.reshape(30, *Y.shape[1:])
    assert_allclose(
        model.feature_coef_, coef, rtol=1e-8, atol=1e-8 * np.abs(coef).max(), strict=True
    )
    assert np.shape(model.intercept_) == Y.shape[1:]
    assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-8)
    expected = theirs.predict(model.map_.transform(new)).reshape(20, *Y.shape[1:])
    assert_allclose(model.predict(new), expected, rtol=1e-7, atol=1e-8)
    assert (model.n_features_, model.penalty_, model.path_) == (30, 1e-3, None)


@pytest.mark.parametrize("form", ["pair", "cosine"])
def test_features_are_those_of_the_formula(rows, form):
    X, y, _ = rows
    model = RandomFeatureRegressor(
        sigma=1.0, penalty=1e-3, n_features=30, features=Fourier(form), random_state=0
    ).fit(X, y)
    angles = X @ model.map_.omega.T
    if form == "pair":
        Phi = np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(90, 30)
    else:
        Phi = np.cos(angles + model.map_.phases)
    Phi *= np.sqrt(2 / 30)
    w = np.linalg.solve(Phi.T @ Phi + 90 * 1e-3 * np.eye(30), Phi.T @ y)
    assert_allclose(model.feature_coef_, w, rtol=1e-8)
    assert_allclose(model.predict(X), Phi @ w, rtol=1e-8)


# The whole path is that of separate fits.


@every_rule
@pytest.mark.parametrize("grid", GRIDS)
@with_and_without
def test_every_pair_of_the_path_is_a_separate_fit(rows, split, rule, grid, intercept):
    X, y, w = rows
    X, (penalties, sizes) = rows_for(rule, X), GRIDS[grid]
    parameters = {**RULES[rule], "penalty": penalties, "validation": [split]}
    model = RandomFeatureRegressor(
        n_features=sizes, intercept=intercept, random_state=0, **parameters
    ).fit(X, y, w)
    map = whole_map(sizes, X, y, w, **parameters)
    expected = errors_of(map, X, y, penalties, sizes, [split], w, intercept)
    assert list(model.path_.axes) == ["penalty", "n_features"]
    assert_array_equal(model.path_.penalties, penalties)
    assert_array_equal(model.path_.sizes, sizes)
    assert_allclose(model.path_.errors, expected[0], rtol=1e-8)
    assert_allclose(model.path_.train_errors, expected[1], rtol=1e-8)
    i, s = np.unravel_index(np.argmin(expected[0]), expected[0].shape)
    assert (model.penalty_, model.n_features_) == (penalties[i], sizes[s])
    # The chosen point is refitted to all rows.
    Phi = map.first(sizes[s]).transform(X)
    theirs = ridge(Phi, y, penalties[i], w, intercept)
    assert len(model.map_) == len(model.feature_coef_) == sizes[s]
    assert_array_equal(model.map_.transform(X), Phi)
    assert_allclose(
        model.feature_coef_, theirs.coef_, rtol=1e-7, atol=1e-7 * abs(theirs.coef_).max()
    )
    assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-8)


@every_rule
def test_every_pair_of_the_path_is_a_machine_of_its_own(rows, rule):
    X, y, w = rows
    X, train, held = rows_for(rule, X), np.arange(60), np.arange(60, 90)
    penalties, sizes = [0.1, 0.05, 1e-3], [8, 16, 32]
    model = RandomFeatureRegressor(
        penalty=penalties, n_features=sizes, validation=[(train, held)], random_state=0,
        **RULES[rule],
    ).fit(X, y, w)  # fmt: skip
    for i, penalty in enumerate(penalties):
        for s, size in enumerate(sizes):
            one = RandomFeatureRegressor(
                penalty=penalty, n_features=size, random_state=0, **RULES[rule]
            ).fit(X[train], y[train], w[train])
            assert one.path_ is None
            mean = np.average((one.predict(X[held]) - y[held]) ** 2, weights=w[held])
            assert model.path_.errors[i, s] == pytest.approx(np.sqrt(mean), rel=1e-8)


SPLITTERS = {
    "folds": KFold(4, shuffle=True, random_state=0),
    "random": ShuffleSplit(5, test_size=0.2, train_size=0.5, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
}


@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize("rule", ["pairs", "sorf", "leverage", "spline"])
def test_splits_of_any_kind_are_separate_fits_pooled(rows, name, rule):
    X, y, w = rows
    X, (penalties, sizes) = rows_for(rule, X), GRIDS["doubling"]
    parameters = {**RULES[rule], "penalty": penalties, "validation": SPLITTERS[name]}
    model = RandomFeatureRegressor(n_features=sizes, random_state=0, **parameters)
    splits = list(SPLITTERS[name].split(X))
    map = whole_map(sizes, X, y, w, **parameters)
    expected = errors_of(map, X, y, penalties, sizes, splits, w)
    path = model.fit(X, y, w).path_
    assert path.method == f"{len(splits)} splits"
    assert_allclose(path.errors, expected[0], rtol=1e-8)
    assert_allclose(path.train_errors, expected[1], rtol=1e-8)


@pytest.mark.parametrize(("validation", "held"), [(5, 18), (0.2, 18), (0.5, 45)])
def test_a_number_of_folds_and_a_fraction(rows, validation, held):
    X, y, w = rows
    penalties, sizes = GRIDS["not doubling"]
    model = RandomFeatureRegressor(
        sigma=1.0, penalty=penalties, n_features=sizes, validation=validation, random_state=0
    ).fit(X, y, w)
    cells = model.statistics_.cells
    splits = [
        tuple(np.flatnonzero(use[v][cells.of_row]) for use in (cells.fitted, cells.held))
        for v in range(len(cells.fitted))
    ]
    assert [len(b) for _, b in splits] == [held] * (5 if validation == 5 else 1)
    assert all(len(a) == 90 - held for a, _ in splits)
    map = whole_map(sizes, X, y, sigma=1.0, penalty=1.0)  # the seed alone decides
    expected = errors_of(map, X, y, penalties, sizes, splits, w)
    assert_allclose(model.path_.errors, expected[0], rtol=1e-8)


@every_rule
@with_and_without
@pytest.mark.parametrize("weighted", [False, True])
def test_generalized_cross_validation_is_its_definition(rows, rule, intercept, weighted):
    X, y, w = rows
    X, (penalties, sizes) = rows_for(rule, X), GRIDS["doubling"]
    weight = w if weighted else np.ones(90)
    model = RandomFeatureRegressor(
        penalty=penalties, n_features=sizes, intercept=intercept, validation="gcv",
        random_state=0, **RULES[rule],
    ).fit(X, y, w if weighted else None)  # fmt: skip
    assert model.path_.method == "generalized cross-validation"
    map = whole_map(sizes, X, y, **{**RULES[rule], "penalty": 1.0})
    for s, size in enumerate(sizes):
        Phi = map.first(size).transform(X)
        for i, penalty in enumerate(penalties):
            # Column j of the hat matrix is the fit to the j-th unit vector.
            H = ridge(Phi, np.eye(90), penalty, weight, intercept).predict(Phi)
            mean = np.average((y - H @ y) ** 2, weights=weight)
            expected = np.sqrt(mean) / (1 - np.trace(H) / 90)
            assert model.path_.errors[i, s] == pytest.approx(expected, rel=1e-8)
            assert model.path_.train_errors[i, s] == pytest.approx(np.sqrt(mean), rel=1e-8)


def test_a_grid_of_widths_is_a_fit_for_each(rows, split):
    X, y, _ = rows
    sigmas = [0.1, 1.5, 50.0]
    parameters = {"penalty": [1e-1, 1e-3], "n_features": [8, 40], "validation": [split],
                  "random_state": 0}  # fmt: skip
    model = RandomFeatureRegressor(sigma=sigmas, **parameters).fit(X, y)
    assert list(model.path_.axes) == ["sigma", "penalty", "n_features"]
    alone = [RandomFeatureRegressor(sigma=s, **parameters).fit(X, y) for s in sigmas]
    for errors, one in zip(model.path_.errors, alone, strict=True):
        assert_allclose(errors, one.path_.errors, rtol=1e-9)
    assert model.sigma_ == 1.5  # neither the first nor the last
    assert model.kernel_ == Gaussian(1.5)
    assert_allclose(model.predict(X), alone[1].predict(X), rtol=1e-9)


@pytest.mark.parametrize("validation", ["hold-out", "folds"])
def test_tiny_errors_have_digits(rows, rng, validation):
    """Where the outputs are a function of the features the differences of moments cancel."""
    X, y, _ = rows
    penalties, sizes = [1e-2, 1e-5, 1e-8], [10, 20]
    splits = [(np.arange(70), np.arange(70, 90))]
    splits = list(KFold(3).split(X)) if validation == "folds" else splits
    map = whole_map(sizes, X, y, sigma=1.0, penalty=1.0)
    y = map.transform(X) @ rng.normal(size=20)
    model = RandomFeatureRegressor(
        sigma=1.0, penalty=penalties, n_features=sizes, validation=splits, random_state=0
    ).fit(X, y)
    expected = errors_of(map, X, y, penalties, sizes, splits)[0]
    assert expected[2, 1] < 1e-5
    assert_allclose(model.path_.errors, expected, rtol=1e-4)
    assert (model.penalty_, model.n_features_) == (1e-8, 20)


# Factorisations that sizes share.


def test_sizes_that_double_share_factorisations_with_penalties_that_halve(rows):
    X, y, _ = rows
    grids = [*GRIDS.values(), ("n_features", [6, 14, 30])]
    for (penalties, sizes), expected in zip(grids, (6, 5, 9, 1), strict=True):
        calls = []
        RandomFeatureRegressor(
            sigma=1.0, penalty=penalties, n_features=sizes, random_state=0,
            progress=lambda *call, calls=calls: calls.append(call),
        ).fit(X, y)  # fmt: skip
        steps = [call for call in calls if call[2] == "penalties"]
        assert steps == [(k, expected, "penalties") for k in range(1, expected + 1)]


# Some as near to each other as can be told apart.
PENALTIES = st.builds(
    lambda value, k: value * (1 + k * 1e-11), st.sampled_from([0, 1e-9, 0.1, 0.3, 7.0]),
    st.integers(0, 2),
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(
    st.lists(PENALTIES | st.floats(1e-300, 1e300), min_size=1, max_size=6),
    st.lists(st.sampled_from([1, 2, 4, 8, 10, 20, 40, 3, 7]), min_size=1, max_size=6),
)
def test_groups_are_a_partition_of_equal_products(penalties, sizes):
    ridges = np.outer(penalties, np.array(sizes, float))
    found = groups(ridges, np.array(sizes))
    pairs = [pair for part in found for pair in zip(*part, strict=True)]
    assert sorted(pairs) == [(i, s) for i in range(len(penalties)) for s in range(len(sizes))]
    values = [ridges[rows[0], columns[0]] for rows, columns in found]
    assert all(a > b for a, b in pairwise(values))
    for value, (rows, columns) in zip(values, found, strict=True):
        assert_allclose(ridges[rows, columns], value, rtol=1e-12)
    for value in ridges.ravel():  # what is equal to rounding is not told apart
        assert sum(np.isclose(value, v, rtol=1e-14, atol=0) for v in values) == 1


def test_groups_of_products_that_are_equal_on_paper():
    ridges = np.outer([0.7, 0.07, 0.007], [3.0, 30.0, 300.0])
    assert len(set(ridges.ravel())) > 5  # of nine, and the rest differ by rounding
    assert len(groups(ridges, np.array([3, 30, 300]))) == 5


def test_many_penalties_of_few_sizes_are_grouped_by_size():
    sizes, penalties = np.array([10, 100]), np.geomspace(1, 1e-6, 41)
    found = groups(np.outer(penalties, sizes), sizes)
    assert [(list(i), set(s)) for i, s in found] == [
        (list(range(41)), {0}),
        (list(range(41)), {1}),
    ]
    # Sizes that all share the factor of a penalty are not worth a reduction each.
    sizes = np.arange(2, 101)
    found = groups(np.repeat(penalties[:, None], len(sizes), axis=1), sizes)
    assert [set(i) for i, _ in found] == [{k} for k in range(41)]


@pytest.mark.parametrize("validation", [0.2, 3, "gcv"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_path_by_reductions_is_the_path_by_factors(rows, validation, intercept):
    X, y, w = rows
    penalties = np.geomspace(1, 1e-7, 30)
    parameters = {
        "sigma": 1.0, "n_features": [10, 24], "validation": validation, "random_state": 0,
        "intercept": intercept,
    }  # fmt: skip
    whole = RandomFeatureRegressor(penalty=penalties, **parameters).fit(X, y, w).path_
    parts = [
        RandomFeatureRegressor(penalty=some, **parameters).fit(X, y, w).path_
        for some in np.array_split(penalties, 6)  # too few for a reduction
    ]
    assert_allclose(whole.errors, np.concatenate([p.errors for p in parts]), rtol=1e-7)
    trained = np.concatenate([p.train_errors for p in parts])
    assert_allclose(whole.train_errors, trained, rtol=1e-7)


# λ and m from the number of rows.


@pytest.mark.parametrize(
    ("kernel", "rule", "top"),
    [
        (Gaussian(1.0), "fourier", 1.0),
        (3.0 * Matern(1.5, 1.0), "qmc", 3.0),
        (Laplacian(1.0), "fourier", 1.0),
        (Spline(4.0), "spline", 1 + 2 * zeta(4)),
    ],
)
def test_one_over_m_times_the_kernel_at_zero(rows, split, kernel, rule, top):
    X, y, w = rows
    X = rows_for(rule, X)
    parameters = {"kernel": kernel, "features": rule, "penalty": "n_features"}
    one = RandomFeatureRegressor(n_features=20, random_state=0, **parameters).fit(X, y, w)
    assert one.path_ is None
    assert one.penalty_ == pytest.approx(top / 20)
    theirs = ridge(one.map_.transform(X), y, top / 20, w)
    assert_allclose(one.feature_coef_, theirs.coef_, rtol=1e-8, atol=1e-9)
    sizes = [4, 10, 30]
    model = RandomFeatureRegressor(
        n_features=sizes, validation=[split], random_state=0, **parameters
    ).fit(X, y, w)
    assert list(model.path_.axes) == ["n_features"]
    map = whole_map(sizes, X, y, **parameters)
    for s, size in enumerate(sizes):
        expected = errors_of(map, X, y, [top / size], [size], [split], w)
        assert model.path_.errors[s] == pytest.approx(expected[0, 0, 0], rel=1e-8)
    assert model.penalty_ == pytest.approx(top / model.n_features_)


@both_faces
def test_root_of_n_features_and_their_inverse_select_nothing(rows, make):
    X, y, _ = rows
    y = y if make is RandomFeatureRegressor else y > 0.5
    model = make(n_features="sqrt", penalty="n_features").fit(X, y)
    assert model.path_ is None
    assert (model.n_features_, model.penalty_) == (10, 0.1)  # √90 is 9.49
    model = make(features=Fourier("cosine"), n_features="sqrt", penalty="n_features")
    assert model.fit(X[:82], y[:82]).n_features_ == 10  # √82 is 9.06
    assert model.fit(X[:81], y[:81]).n_features_ == 9


def test_root_of_n_features_with_a_grid_of_penalties(rows):
    X, y, _ = rows
    model = RandomFeatureRegressor(n_features="sqrt", penalty=[0.1, 1.0]).fit(X, y)
    assert model.path_.sizes.tolist() == [10]
    assert model.path_.errors.shape == (2, 1)


@given(n=st.integers(1, 10**9), most=st.integers(2, 10**5), step=st.sampled_from([1, 2]))
def test_automatic_numbers_of_features_double_up_to_what_theory_asks_for(n, most, step):
    found = feature_counts("auto", n, most, step)
    top = min(most, 2048, np.sqrt(n) * np.log(max(n, 2)))
    assert (found[1:] == 2 * found[:-1]).all()
    assert (found % step == 0).all()
    assert found[-1] <= max(top, step)
    if top >= 10:
        assert 10 - step < found[0] < 20
        assert found[-1] > top * (1 - step / 10)
    root = feature_counts("sqrt", n, 10**6, step)
    assert root.tolist() == [step * np.ceil(np.sqrt(n) / step)]


@pytest.mark.parametrize(("dtype", "last"), [("float64", 2.0**-39), ("float32", 2.0**-17)])
def test_automatic_penalties_are_exact_halves(rows, dtype, last):
    X, y, _ = rows
    kernel = 3.0 * Gaussian(1.0)
    model = RandomFeatureRegressor(kernel, n_features=[10, 20], dtype=dtype).fit(X, y)
    penalties = model.path_.penalties
    # Down to ε^(3/4), what the type resolves.
    assert penalties[0] == 3.0
    assert penalties[-1] == 3.0 * last
    assert (penalties[1:] == penalties[:-1] / 2).all()


# The limit of many features, and functions of the features themselves.


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"features": Fourier("cosine")},
        {"features": "orthogonal"},
        {"features": "fastfood"},
        {"features": "sorf"},
        {"features": "qmc"},
        {"features": "leverage"},
        {"kernel": "laplacian"},
        {"kernel": "matern32"},
        {"kernel": 2.0 * Gaussian()},
        {"kernel": Spline(4.0), "features": "spline", "sigma": "median"},
    ],
    ids=str,
)
def test_predictions_tend_to_those_of_the_exact_machine(rng, parameters):
    X, new = rng.normal(size=(2, 150, 2))
    rule = parameters.get("features")
    X, new = rows_for(rule, X), rows_for(rule, new)
    y = np.sin(2 * X[:, 0]) + X[:, -1] + 0.1 * rng.normal(size=150)
    parameters = {"sigma": 1.0, "penalty": 1e-2, "intercept": True, **parameters}
    exact = {k: v for k, v in parameters.items() if k != "features"}
    expected = KernelRegressor(**exact).fit(X, y).predict(new)
    errors = []
    for m in (16, 128, 1024):
        squares = []
        for seed in range(8):
            model = RandomFeatureRegressor(n_features=m, random_state=seed, **parameters)
            squares.append(np.mean((model.fit(X, y).predict(new) - expected) ** 2))
        errors.append(np.sqrt(np.mean(squares)))
    # The error goes as 1/√m or faster: by 2.8 for each step. With other seeds one of the
    # eleven cases would fail in 1 of 2000 runs or fewer.
    assert errors[1] < errors[0] / 1.5
    assert errors[2] < errors[1] / 1.5
    assert errors[2] < 0.08


@every_rule
def test_a_function_of_the_features_is_found_exactly(rows, rng, rule):
    X, y, _ = rows
    X, new = rows_for(rule, X), rows_for(rule, rng.normal(size=(20, 3)))
    model = RandomFeatureRegressor(
        n_features=8, penalty=1e-13, intercept=True, random_state=0, **RULES[rule]
    ).fit(X, y)
    alpha = rng.normal(size=8)
    model.fit(X, model.map_.transform(X) @ alpha + 5)
    assert_allclose(model.predict(new), model.map_.transform(new) @ alpha + 5, rtol=1e-7)


# Classes.


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@with_and_without
def test_classes_are_judged_by_the_misclassification_rate(
    rows, split, several, weighted, intercept
):
    X, y, w = rows
    train, held = split
    weight = w if weighted else np.ones(90)
    names = np.array(["few", "more", "much"] if several else ["no", "yes"])
    labels = np.digitize(y, [0, 1] if several else [0.5])
    penalties, sizes = [0.4, 0.1, 1e-3], [4, 8, 24]
    model = RandomFeatureClassifier(
        sigma=1.0, penalty=penalties, n_features=sizes, intercept=intercept,
        validation=[split], random_state=0,
    ).fit(X, names[labels], w if weighted else None)  # fmt: skip
    assert model.classes_.tolist() == names.tolist()
    map = whole_map(sizes, X, y, sigma=1.0, penalty=1.0)
    codes = np.where(labels[:, None] == np.arange(len(names)), 1.0, -1.0)
    codes = codes if several else codes[:, 1:]

    def guesses(F):
        return F.argmax(axis=1) if several else (F[:, 0] > 0).astype(int)

    for s, size in enumerate(sizes):
        Phi = map.first(size).transform(X)
        for i, penalty in enumerate(penalties):
            f = ridge(Phi[train], codes[train], penalty, weight[train], intercept)
            F = as_matrix(f.predict(Phi[held]))
            rate = weight[held] @ (guesses(F) != labels[held]) / weight[held].sum()
            assert model.path_.errors[i, s] == pytest.approx(rate, abs=1e-12)
            squares = np.average(((F - codes[held]) ** 2).mean(axis=1), weights=weight[held])
            assert model.path_.tie_breaker[i, s] == pytest.approx(squares, rel=1e-8)
    assert model.path_.metric == "misclassification rate"
    assert model.path_.best["error"] == model.path_.errors.min()
    assert np.isnan(model.path_.train_errors).all()
    Phi = model.map_.transform(X)
    F = as_matrix(ridge(Phi, codes, model.penalty_, weight, intercept).predict(Phi))
    assert_allclose(as_matrix(model.decision_function(X)), F, rtol=1e-7, atol=1e-8)
    assert_array_equal(model.predict(X), names[guesses(F)])


def test_several_labels_at_once(rows, split):
    X, y, _ = rows
    train, held = split
    labels = np.column_stack([y > 0, X[:, 0] > 0, X[:, 1] > 1]).astype(int)
    model = RandomFeatureClassifier(
        sigma=1.0, penalty=[0.1, 1e-3], n_features=[10, 20], validation=[split], random_state=0
    ).fit(X, labels)
    map = whole_map([20], X, y, sigma=1.0, penalty=1.0)
    for s, size in enumerate([10, 20]):
        Phi = map.first(size).transform(X)
        for i, penalty in enumerate([0.1, 1e-3]):
            F = ridge(Phi[train], 2.0 * labels[train] - 1, penalty).predict(Phi[held])
            rate = np.mean((F > 0) != labels[held])
            assert model.path_.errors[i, s] == pytest.approx(rate)
    F = ridge(model.map_.transform(X), 2.0 * labels - 1, model.penalty_)
    F = F.predict(model.map_.transform(X))
    assert_allclose(model.decision_function(X), F, rtol=1e-7, atol=1e-8)
    assert_array_equal(model.predict(X), F > 0)


@pytest.mark.parametrize("given", ["balanced", {0: 1.0, 1: 2.0, 2: 5.0}])
def test_weights_of_classes(rows, given):
    X, y, w = rows
    labels = np.digitize(y, [0, 2])
    parameters = {"sigma": 1.0, "penalty": [1e-1, 1e-3], "n_features": 20, "random_state": 0}
    model = RandomFeatureClassifier(class_weight=given, **parameters).fit(X, labels, w)
    weight = w * compute_sample_weight(given, labels)
    expected = RandomFeatureClassifier(**parameters).fit(X, labels, weight)
    assert_allclose(model.path_.errors, expected.path_.errors)
    codes = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    theirs = ridge(model.map_.transform(X), codes, model.penalty_, weight)
    assert_allclose(model.feature_coef_, theirs.coef_.T, rtol=1e-8, atol=1e-9)


def test_generalized_cross_validation_of_classes_is_that_of_their_codes(rows):
    X, y, _ = rows
    parameters = {"sigma": 1.0, "penalty": [0.4, 0.1, 1e-3], "n_features": [8, 16],
                  "validation": "gcv", "random_state": 0}  # fmt: skip
    classes = RandomFeatureClassifier(**parameters).fit(X, y > 0.5).path_
    codes = RandomFeatureRegressor(**parameters).fit(X, np.where(y > 0.5, 1.0, -1.0)).path_
    assert_allclose(classes.errors, codes.errors)
    assert classes.metric == "root mean squared error"
