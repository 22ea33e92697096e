"""Transforms of outputs against scikit-learn, log-normal theory and brute force."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import yeojohnson_llf
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import imparo
from imparo.preparation import MeanTargetRegressor, TargetTransform
from imparo.preparation.target import candidates

OUTPUTS = {
    "log-normal": lambda rng, n: np.exp(rng.normal(size=n)),
    "narrow log-normal": lambda rng, n: 7 * np.exp(0.3 * rng.normal(size=n)),
    "exponential": lambda rng, n: rng.exponential(size=n) + 1e-3,
    "counts": lambda rng, n: rng.poisson(0.4, n).astype(float),
    "normal": lambda rng, n: rng.normal(size=n),
    "to the left": lambda rng, n: -rng.pareto(2.5, n),
    "far from 0": lambda rng, n: 2000 - rng.exponential(10, n),
    "two tails": lambda rng, n: rng.standard_t(2, n),
    "two signs": lambda rng, n: rng.exponential(size=n) - 0.3,
}
POSITIVE = ("log-normal", "narrow log-normal", "exponential", "far from 0")
CASES = [("yeo-johnson", name) for name in OUTPUTS] + [("log", name) for name in POSITIVE]
every_case = pytest.mark.parametrize(("kind", "name"), CASES)
every_kind = pytest.mark.parametrize("kind", ["none", "log", "yeo-johnson"])


def with_power(power, y, shift=0.0, spread=1.0):
    """Return Yeo-Johnson's transform of y itself with a given λ."""
    one = np.ones(1)
    return TargetTransform(
        "yeo-johnson", power * one, one, shift * one, spread * one,
        np.min(y) * one, np.max(y) * one,
    )  # fmt: skip


def brute(transform, F, residuals, weight=None):
    """Return the mean over all residuals, one inverse for every pair."""
    pairs = [np.average(transform.median(f + residuals), weights=weight) for f in F]
    return np.array(pairs)


# The transforms.


@pytest.mark.parametrize("name", OUTPUTS)
def test_yeo_johnson_is_that_of_scikit_learn(rng, name):
    y = OUTPUTS[name](rng, 500)
    transform = TargetTransform.fit("yeo-johnson", y)
    theirs = PowerTransformer().fit(y[:, None] / transform.scale)
    expected = np.clip(theirs.lambdas_, 0, 2)
    assert_allclose(transform.power, expected, atol=1e-4)
    theirs.lambdas_ = transform.power  # the same λ, and then standardised again
    raw = PowerTransformer(standardize=False).fit(y[:, None] / transform.scale)
    raw.lambdas_ = transform.power
    T = raw.transform(y[:, None] / transform.scale)[:, 0]
    assert_allclose(transform(y), (T - T.mean()) / T.std(), rtol=1e-9, atol=1e-9)


def test_the_scale_is_the_median_size_of_what_is_not_0(rng):
    y = np.concatenate([np.zeros(40), rng.normal(size=31)])
    transform = TargetTransform.fit("yeo-johnson", y)
    assert transform.scale == np.median(np.abs(y[y != 0]))


@pytest.mark.parametrize("name", OUTPUTS)
def test_no_other_power_is_more_likely(rng, name):
    y = OUTPUTS[name](rng, 300)
    transform = TargetTransform.fit("yeo-johnson", y)
    best = yeojohnson_llf(transform.power[0], y / transform.scale)
    others = [yeojohnson_llf(power, y / transform.scale) for power in np.linspace(0, 2, 61)]
    assert best >= max(others) - 1e-4


@pytest.mark.parametrize("power", [0.0, 1e-9, 0.5, 1.0, 1.7, 2 - 1e-9, 2.0])
def test_special_powers_are_those_of_scikit_learn(rng, power):
    y = rng.normal(size=200)
    theirs = PowerTransformer(standardize=False).fit(y[:, None])
    theirs.lambdas_ = np.array([power])
    transform = with_power(power, y)
    assert_allclose(transform(y), theirs.transform(y[:, None])[:, 0], rtol=1e-12, atol=1e-13)
    assert_allclose(transform.median(transform(y)), y, rtol=1e-12, atol=1e-13)


def test_log_is_the_standardised_logarithm(rng):
    y = np.exp(3 + 2 * rng.normal(size=400))
    z = TargetTransform.fit("log", y)(y)
    assert_allclose(z, (np.log(y) - np.log(y).mean()) / np.log(y).std(), atol=1e-12)


@every_case
def test_the_median_inverts(rng, kind, name):
    y = OUTPUTS[name](rng, 400)
    transform = TargetTransform.fit(kind, y)
    z = transform(y)
    assert_allclose([z.mean(), z.std()], [0, 1], atol=1e-9)
    assert_allclose(transform.median(z), y, rtol=1e-9, atol=1e-12 * transform.scale[0])


powers = st.one_of(
    st.floats(0, 2),
    st.sampled_from([0.0, 1.0, 2.0]),
    st.builds(abs, st.floats(-1e-6, 1e-6)),
    st.builds(lambda d: 1 + d, st.floats(-1e-6, 1e-6)),
    st.builds(lambda d: 2 - d, st.floats(0, 1e-6)),
)
values = st.lists(st.floats(-100, 100), min_size=2, max_size=20).map(np.array)


@settings(max_examples=200, deadline=None)
@given(power=powers, y=values, shift=st.floats(-3, 3), spread=st.floats(0.1, 10))
@example(power=5e-324, y=np.array([-1.0, 0.0, 2.0]), shift=0.0, spread=1.0)
@example(power=2e-15, y=np.array([-1.0, 0.0, 2.0]), shift=0.0, spread=1.0)
def test_inverse_of_forward_is_the_identity_and_both_increase(power, y, shift, spread):
    transform = with_power(power, y, shift, spread)
    z = transform(y)
    assert_allclose(transform.median(z), y, rtol=1e-12, atol=1e-12)
    assert (np.diff(transform(np.sort(y))) >= -1e-12 * (1 + np.abs(z).max())).all()
    F = np.linspace(z.min() - 2 * np.ptp(z), z.max() + 2 * np.ptp(z), 50)
    smeared = transform.with_residuals([-0.7, 0.1, 0.4])
    for inverse in (transform.median(F), smeared.mean(F)):
        assert np.isfinite(inverse).all()
        assert (np.diff(inverse) >= -1e-9 * np.abs(inverse).max()).all()


@every_case
@pytest.mark.parametrize("factor", [2.0**-900, 1e-300, 3.0, 1e290])
def test_scale_of_y_does_not_matter(rng, kind, name, factor):
    y = OUTPUTS[name](rng, 200)
    here, there = TargetTransform.fit(kind, y), TargetTransform.fit(kind, factor * y)
    z, F = here(y), rng.normal(size=50)
    assert_allclose(there(factor * y), z, rtol=1e-5, atol=1e-6)
    means = [t.with_residuals(0.3 * z).mean(F) for t in (here, there)]
    assert_allclose(means[1] / factor, means[0], rtol=1e-5, atol=1e-6 * here.scale[0])
    if factor == 2.0**-900:
        assert_array_equal(there(factor * y), z)
        assert_array_equal(means[1], means[0] * factor)


# The mean.


def test_the_mean_is_that_of_log_normal_theory(rng):
    y = np.exp(1 + rng.normal(size=50_000))
    transform = TargetTransform.fit("log", y)
    s, noise = 0.8, 0.8 * rng.normal(size=50_000)  # in units of log y
    transform = transform.with_residuals(noise / transform.spread[0])
    logs = np.linspace(-1, 3, 9)
    F = (logs - np.log(transform.scale[0]) - transform.shift[0]) / transform.spread[0]
    assert_allclose(transform.median(F), np.exp(logs), rtol=1e-12)
    # Standard error of the mean of exp(noise), over its expectation.
    error = np.sqrt(np.expm1(s**2) / 50_000)
    assert_allclose(transform.mean(F), np.exp(logs + s**2 / 2), rtol=4 * error)
    assert (transform.mean(F) > np.exp(logs) * 1.3).all()  # exp(0.32) = 1.38


@every_case
@pytest.mark.parametrize("n", [1, 7, 200])
def test_few_residuals_give_the_direct_average(rng, kind, name, n):
    transform = TargetTransform.fit(kind, OUTPUTS[name](rng, 500))
    F, e = rng.uniform(-0.7, 0.7, 30), rng.uniform(-0.3, 0.3, n)
    expected = brute(transform, F, e)
    tolerance = 1e-13 * transform.scale[0]
    assert_allclose(transform.with_residuals(e).mean(F), expected, rtol=1e-12, atol=tolerance)


def test_a_direct_average_without_the_code_of_the_inverse(rng):
    y, e, F = np.exp(rng.normal(size=500)), rng.uniform(-0.5, 0.5, 150), rng.uniform(-1, 1, 20)
    transform = TargetTransform.fit("log", y).with_residuals(e)
    m, s = np.log(y).mean(), np.log(y).std()
    expected = np.exp(m + s * (F[:, None] + e)).mean(axis=1)
    assert_allclose(transform.mean(F), expected, rtol=1e-12)
    transform = TargetTransform.fit("yeo-johnson", y).with_residuals(e)
    theirs = PowerTransformer(standardize=False).fit(y[:, None])
    theirs.lambdas_ = transform.power
    T = transform.shift + transform.spread * (F[:, None] + e)
    pairs = theirs.inverse_transform(T.reshape(-1, 1)).reshape(T.shape)
    assert_allclose(transform.mean(F), transform.scale * pairs.mean(axis=1), rtol=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_many_residuals_are_condensed_without_bias(rng, sigma):
    e = sigma * rng.normal(size=20_000)
    y = np.exp(rng.normal(size=1000))
    transform = TargetTransform.fit("log", y).with_residuals(e)
    assert transform.residuals.shape == transform.weights.shape == (1, 200)
    assert_allclose(transform.weights.sum(), 1, rtol=1e-14)
    assert_allclose((transform.weights * transform.residuals).sum(), e.mean(), atol=1e-13)
    assert (np.diff(transform.residuals[0]) > 0).all()
    spread = transform.spread[0]
    expected = transform.median([0.0]) * np.exp(spread * e).mean()
    assert_allclose(transform.mean([0.0]), expected, rtol=5e-3)


def test_smearing_is_unbiased_where_the_plain_inverse_is_not(rng):
    X = rng.uniform(-1, 1, size=(20_000, 1))
    truth = np.exp(1.5 * X[:, 0])
    y = truth * np.exp(rng.normal(size=20_000))  # E[y|x] = √e · truth
    model = MeanTargetRegressor(LinearRegression(), kind="log").fit(X, y)
    assert_allclose((model.predict(X) / truth).mean(), np.exp(0.5), rtol=0.05)
    assert_allclose((model.predict_median(X) / truth).mean(), 1.0, rtol=0.05)
    assert_allclose(model.predict(X).mean(), y.mean(), rtol=0.02)


def test_predictions_out_of_range_are_clipped_to_it_and_half_more(rng):
    y = np.exp(rng.uniform(-1, 1, 300))
    transform = TargetTransform.fit("log", y).with_residuals([0.0])
    reach = np.log(y.max() / y.min()) / 2
    ends = [y.min() * np.exp(-reach), y.max() * np.exp(reach)]
    for F in ([-50.0, 50.0], [-np.inf, np.inf]):
        assert_allclose(transform.mean(F), ends, rtol=1e-12)
        assert_allclose(transform.median(F), ends, rtol=1e-12)


@every_kind
def test_weights_are_repeated_rows(rng, kind):
    y, e = np.exp(rng.normal(size=(120, 2))), rng.normal(size=(120, 2))
    times = rng.integers(0, 5, 120)
    weighted = TargetTransform.fit(kind, y, 0.1 * times)
    repeated = TargetTransform.fit(kind, np.repeat(y, times, axis=0))
    for name in ("power", "scale", "shift", "spread", "low", "high"):
        expected = getattr(repeated, name)
        assert_allclose(getattr(weighted, name), expected, rtol=1e-5, atol=1e-6)
    F = rng.normal(size=(10, 2))
    for residuals in (e, np.tile(e, (4, 1)) + rng.normal(size=(480, 2))):
        counts = np.tile(times, len(residuals) // 120)
        means = [
            repeated.with_residuals(residuals, counts / 7).mean(F),
            repeated.with_residuals(np.repeat(residuals, counts, axis=0)).mean(F),
        ]
        assert_allclose(means[0], means[1], rtol=1e-10)


def test_every_output_has_its_own_transform(rng):
    Y = np.column_stack([OUTPUTS[name](rng, 300) for name in ("log-normal", "two signs")])
    E = np.column_stack([rng.normal(size=300), rng.integers(0, 3, 300)])  # 300 and 3 values
    F = rng.normal(size=(40, 2))
    both = TargetTransform.fit("yeo-johnson", Y).with_residuals(E)
    for j in range(2):
        alone = TargetTransform.fit("yeo-johnson", Y[:, j]).with_residuals(E[:, j])
        assert_array_equal(both(Y)[:, j], alone(Y[:, j]))
        assert_allclose(both.mean(F)[:, j], alone.mean(F[:, j]), rtol=1e-14)
        assert_array_equal(both.median(F)[:, j], alone.median(F[:, j]))
        assert_array_equal(alone.mean(F[:, [j]])[:, 0], alone.mean(F[:, j]))


def test_a_row_is_the_same_in_any_block(rng):
    transform = TargetTransform.fit("yeo-johnson", np.exp(rng.normal(size=100)))
    transform = transform.with_residuals(rng.normal(size=300))
    F, some = rng.normal(size=700), [0, 255, 256, 699]
    assert_array_equal(transform.mean(F)[some], transform.mean(F[some]))
    assert transform.mean(F[:0]).shape == (0,)


# Extremes.


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_none_is_the_identity_bit_for_bit(rng, dtype):
    y = (100 * rng.normal(size=(30, 2))).astype(dtype)
    transform = TargetTransform.fit("none", y).with_residuals(rng.normal(size=(30, 2)) + 1)
    for found in (transform(y), transform.mean(y), transform.median(y)):
        assert found.dtype == (np.float64 if dtype == np.int64 else dtype)
        assert_array_equal(found, y)


@pytest.mark.parametrize("kind", ["log", "yeo-johnson"])
def test_float32_is_computed_in_float64(rng, kind):
    y = np.exp(rng.normal(size=100)).astype(np.float32)
    F = rng.normal(size=20).astype(np.float32)
    narrow, wide = (TargetTransform.fit(kind, v) for v in (y, y.astype(np.float64)))
    narrow, wide = (t.with_residuals([-0.2, 0.1]) for t in (narrow, wide))
    assert_array_equal(narrow(y), wide(y.astype(np.float64)), strict=True)
    assert_array_equal(narrow.mean(F), wide.mean(F.astype(np.float64)), strict=True)


@every_kind
@pytest.mark.parametrize("y", [[3.0], [2.5, 2.5, 2.5], [1e300] * 4, [5e-324] * 4])
def test_constant_outputs_stay(kind, y):
    transform = TargetTransform.fit(kind, y).with_residuals(np.zeros(2))
    assert_allclose(transform.mean(transform(y)), y, rtol=1e-14)
    if kind != "none":
        assert_array_equal(transform(y), np.zeros(len(y)))
        assert_allclose(transform.mean([-7.0, 7.0]), y[:1] * 2, rtol=1e-14)


def test_zeros_stay():
    transform = TargetTransform.fit("yeo-johnson", np.zeros(5)).with_residuals([0.0])
    assert_array_equal(transform.mean([1.0, -1.0]), [0.0, 0.0])


@pytest.mark.parametrize("kind", ["log", "yeo-johnson"])
@pytest.mark.parametrize(
    "y",
    [
        [1e-300, 1.0, 1e300],
        [1e-300, 1e-300, 1e-300, 1e300],
        [5e-324, 1e-310, 1e-308],
        [1.6e308, 1.7e308, 1.0],
        [1.0, 1.0 + 2.3e-16, 1.0],
        [1e6 + 1e-9, 1e6, 1e6 - 1e-9],
    ],
)
@pytest.mark.parametrize("sign", [1, -1, (-1, 1)])
def test_extreme_ranges_give_finite_results_in_order(kind, y, sign):
    y = np.concatenate([np.array(y) * s for s in np.atleast_1d(sign)])
    if kind == "log" and (y < 0).any():
        return
    with np.errstate(all="raise", under="ignore"):
        transform = TargetTransform.fit(kind, y).with_residuals([-100.0, 0.0, 3.0, 1e5])
        z = transform(y)
        means = transform.mean(np.array([-1e308, -5.0, -1.0, 0.0, 1.0, 5.0, 1e308]))
    assert np.isfinite(z).all()
    assert np.isfinite(means).all()
    order = np.argsort(y)
    assert (np.diff(z[order]) >= 0).all()
    assert (np.diff(means) >= -1e-12 * np.abs(means).max()).all()


def test_new_outputs_far_beyond_the_fitted_ones_are_finite():
    for kind in ("log", "yeo-johnson"):
        transform = TargetTransform.fit(kind, [1e-300, 2e-300, 4e-300])
        assert np.isfinite(transform(np.array([5e-324, 1e300]))).all()


# What cannot be used.

FITTED = TargetTransform.fit("log", [1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TargetTransform.fit("sqrt", [1.0]), "kind='sqrt' is not known"),
        (lambda: TargetTransform.fit(None, [1.0]), "kind=None is not known"),
        (lambda: TargetTransform.fit("log", [1.0, 0.0]), "smallest is 0; use kind='yeo-j"),
        (lambda: TargetTransform.fit("log", [[1.0, -2.0]]), "smallest is -2"),
        (lambda: FITTED([-1.0]), "smallest is -1"),
        (lambda: TargetTransform.fit("none", [1.0, np.nan]), "y contains NaN"),
        (lambda: TargetTransform.fit("yeo-johnson", [1.0, np.inf]), "y contains infinity"),
        (lambda: TargetTransform.fit("none", []), "0 sample"),
        (lambda: TargetTransform.fit("none", None), "y is None"),
        (lambda: TargetTransform.fit("none", ["a", "b"]), "could not convert string"),
        (lambda: TargetTransform.fit("log", [1.0, 2.0], [1.0]), "hold 2 finite numbers"),
        (lambda: TargetTransform.fit("log", [1.0, 2.0], [1.0, -1]), "hold 2 finite numbers"),
        (lambda: TargetTransform.fit("log", [1.0, 2.0], [1.0, np.nan]), "2 finite numbers"),
        (lambda: TargetTransform.fit("log", [1.0, 2.0], [0, 0]), "zero for every row"),
        (lambda: FITTED([[1.0, 2.0]]), "y has 2 outputs and the transform was fitted to 1"),
        (lambda: FITTED.median(np.zeros((3, 2))), "F has 2 outputs"),
        (lambda: FITTED.median([np.nan]), "F contains NaN"),
        (lambda: FITTED.with_residuals([np.nan]), "residuals contains NaN"),
        (lambda: FITTED.with_residuals(np.zeros((3, 2))), "residuals has 2 outputs"),
        (lambda: FITTED.mean([0.0]), "call with_residuals first"),
        (lambda: candidates([1.0, np.nan]), "y contains NaN"),
    ],
)
def test_one_clear_sentence(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# Which transforms to try.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log-normal", ["none", "log", "yeo-johnson"]),
        ("exponential", ["none", "log", "yeo-johnson"]),
        ("normal", ["none"]),
        ("to the left", ["none", "yeo-johnson"]),
        ("far from 0", ["none", "yeo-johnson"]),  # above 0, but skewed to the left
        ("two signs", ["none", "yeo-johnson"]),
        ("counts", ["none"]),  # skewed, but few values
    ],
)
def test_candidates(rng, name, expected):
    y = OUTPUTS[name](rng, 2000)
    assert candidates(y) == candidates(1e-300 * y) == candidates(1e290 * y) == expected


def test_candidates_of_many_outputs(rng):
    skewed, even = np.exp(rng.normal(size=500)), rng.uniform(1, 2, 500)
    assert candidates(np.column_stack([even, skewed])) == ["none", "log", "yeo-johnson"]
    assert candidates(np.column_stack([-even, skewed])) == ["none", "yeo-johnson"]
    assert candidates(np.column_stack([even, even])) == candidates([1.0]) == ["none"]
    assert candidates(np.ones(20)) == candidates(np.zeros((20, 2))) == ["none"]


# The regressor.


@pytest.fixture
def prices(rng):
    """Log-normal noise on a smooth function: a table to fit and one to test on."""
    X = rng.uniform(-1, 1, size=(3000, 2))
    y = np.exp(2 * X[:, 0] + np.sin(3 * X[:, 1]) + 1.2 * rng.normal(size=3000))
    truth = np.exp(2 * X[:, 0] + np.sin(3 * X[:, 1]) + 1.2**2 / 2)
    return X[:1000], y[:1000], X[1000:], truth[1000:]


def test_squared_error_of_the_mean_beats_that_of_the_plain_inverse(prices):
    X, y, new, truth = prices
    kernel = imparo.KernelRegressor(sigma=1.0, penalty=1e-3)

    def error(model):
        return mean_squared_error(truth, model.fit(X, y).predict(new))

    plain = error(TransformedTargetRegressor(kernel, func=np.log, inverse_func=np.exp))
    assert error(MeanTargetRegressor(kernel, kind="log")) < 0.3 * plain
    assert error(MeanTargetRegressor(kernel)) < 0.5 * plain


def test_residuals_are_those_of_folds(prices):
    X, y, *_ = prices
    w = np.random.default_rng(1).uniform(0, 2, len(y))
    model = MeanTargetRegressor(Ridge(3.0), kind="log", validation=4).fit(X, y, w)
    transform = TargetTransform.fit("log", y, w)
    z, e = transform(y), np.empty(len(y))
    for fitted, held in KFold(4, shuffle=True, random_state=0).split(X):
        e[held] = z[held] - Ridge(3.0).fit(X[fitted], z[fitted], w[fitted]).predict(X[held])
    whole = Ridge(3.0).fit(X, z, w)
    assert_allclose(model.regressor_.coef_, whole.coef_, rtol=1e-12)
    expected = transform.with_residuals(e, w).mean(whole.predict(X))
    assert_allclose(model.predict(X), expected, rtol=1e-12)
    assert_allclose(model.predict_median(X), transform.median(whole.predict(X)), rtol=1e-12)


@pytest.mark.parametrize("regressor", [None, imparo.KernelRegressor(sigma=1.0, penalty=0.1)])
def test_none_is_the_regressor_itself(prices, regressor):
    X, y, new, _ = prices
    own = Ridge() if regressor is None else clone(regressor)
    model = MeanTargetRegressor(regressor, kind="none").fit(X[:200], y[:200])
    expected = own.fit(X[:200], y[:200]).predict(new)
    assert_array_equal(model.predict(new), expected, strict=True)
    assert_array_equal(model.predict_median(new), expected, strict=True)


@pytest.mark.parametrize("regressor", [Ridge(), make_pipeline(Ridge())])
def test_many_outputs_are_those_of_separate_fits(prices, regressor):
    X, y, new, _ = prices
    Y = np.column_stack([y, 1 / y, y - 3])
    both = MeanTargetRegressor(regressor).fit(X, Y)
    alone = [MeanTargetRegressor(regressor).fit(X, column).predict(new) for column in Y.T]
    assert_allclose(both.predict(new), np.column_stack(alone), rtol=1e-9)


def test_kernel_matrices_sparse_rows_and_frames(prices):
    X, y, new, _ = prices
    X, y, new = X[:100], y[:100], new[:50]
    fixed = {"penalty": 1e-2}
    expected = MeanTargetRegressor(imparo.KernelRegressor("linear", **fixed)).fit(X, y)
    expected = expected.predict(new)
    given = MeanTargetRegressor(imparo.KernelRegressor("precomputed", **fixed))
    assert_allclose(given.fit(X @ X.T, y).predict(new @ X.T), expected, rtol=1e-6)
    linear = MeanTargetRegressor(imparo.KernelRegressor("linear", **fixed))
    folds = [cross_val_predict(linear, X, y), cross_val_predict(given, X @ X.T, y)]
    assert_allclose(folds[0], folds[1], rtol=1e-6)
    rows = sparse.csr_array(X)
    assert_allclose(linear.fit(rows, y).predict(sparse.csr_array(new)), expected, rtol=1e-6)
    frame = pd.DataFrame(X, columns=["size", "age"])
    assert list(linear.fit(frame, pd.Series(y)).feature_names_in_) == ["size", "age"]
    assert linear.n_features_in_ == 2
    assert_allclose(linear.predict(pd.DataFrame(new, columns=["size", "age"])), expected)


@every_kind
def test_files_keep_transforms_and_models(prices, tmp_path, kind):
    X, y, new, _ = prices
    model = MeanTargetRegressor(imparo.KernelRegressor(sigma=1.0, penalty=0.1), kind=kind)
    model.fit(X[:300], y[:300])
    imparo.save(model, tmp_path / "model.imparo")
    same = imparo.load(tmp_path / "model.imparo")
    assert_array_equal(same.predict(new), model.predict(new), strict=True)
    assert_array_equal(same.predict_median(new), model.predict_median(new), strict=True)
    assert same.get_params()["kind"] == kind
    imparo.save(model.transform_, tmp_path / "transform.imparo")
    transform = imparo.load(tmp_path / "transform.imparo")
    assert isinstance(transform, TargetTransform)
    assert_array_equal(transform(y), model.transform_(y))
    assert_array_equal(transform.mean(new[:, 0]), model.transform_.mean(new[:, 0]))


@pytest.mark.parametrize(
    ("parameters", "weight", "message"),
    [
        ({"kind": "sqrt"}, None, "kind='sqrt' is not known"),
        ({"validation": 1}, None, "validation=1 must be a number of folds"),
        ({"validation": True}, None, "validation=True must be"),
        ({"validation": 2.5}, None, "validation=2.5 must be"),
        ({"validation": 61}, None, "n_samples=60; give fewer folds"),
        ({"regressor": KNeighborsRegressor()}, np.ones(60), "KNeighborsRegressor takes no"),
        ({}, np.ones(59), "sample_weight must hold 60"),
        ({"kind": "log"}, None, "kind='log' needs y above 0"),
    ],
)
def test_a_fit_that_is_refused_changes_nothing(wave, parameters, weight, message):
    X, y = wave
    model = MeanTargetRegressor().fit(X, y)
    before = model.predict(X)
    model.set_params(**parameters)
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(X, y, weight)
    assert "\n" not in str(caught.value)
    assert_array_equal(model.predict(X), before)


def expected_failures(estimator):
    """Return the checks that cannot hold, each with its reason in one line."""
    failures = {}
    if estimator.kind != "none":
        weights = "copies of a row change which rows the folds hold out, and so residuals"
        failures["check_sample_weight_equivalence_on_dense_data"] = weights
        failures["check_sample_weight_equivalence_on_sparse_data"] = weights
    if estimator.kind == "log":
        failures["check_regressor_multioutput"] = "gives outputs below 0 despite positive_only"
    return failures


@parametrize_with_checks(
    [
        MeanTargetRegressor(),
        MeanTargetRegressor(kind="log"),
        MeanTargetRegressor(kind="none"),
        MeanTargetRegressor(imparo.KernelRegressor(sigma=20.0, penalty=1e-3), validation=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_conventions(estimator, check):
    check(estimator)
