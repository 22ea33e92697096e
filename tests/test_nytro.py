"""NYTRO: the iterates are those of the closed form, whatever they are computed with."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

import imparo
from imparo import NystromRegressor, NytroClassifier, NytroRegressor
from imparo.data.sources import ArraySource
from imparo.errors import SelectionWarning
from imparo.estimators import nytro_base
from imparo.estimators.blocks import Stream
from imparo.estimators.normal import GRAM, RECOMPUTED, STORED, Normal, cheapest_form
from imparo.estimators.nytro_walk import Stopping
from imparo.features import NystromMap
from imparo.filters import ConjugateGradient, Landweber, NuMethod
from imparo.kernels import Gaussian, Linear

FORMS = [GRAM, STORED, RECOMPUTED]
SIGMA = 1.5


@pytest.fixture
def surface(rng):
    X = rng.normal(size=(240, 3))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=240)
    return X, y


@pytest.fixture
def force(monkeypatch):
    def use(form):
        monkeypatch.setattr(nytro_base, "cheapest_form", lambda *_, **__: form)

    return use


def closed_form(X, y, centers, iterations, gamma, kernel=None):
    """Return predictions on X of the printed iteration's closed form.

    α_t = R g_t(RᵀK_nmᵀK_nmR) RᵀK_nmᵀy with RRᵀ = K_mm⁺, by an eigendecomposition: a
    square root of K_mm⁺ that is not the triangular one of the library.
    """
    kernel = kernel or Gaussian(SIGMA)
    K, K_mm = kernel(X, centers), kernel(centers)
    values, vectors = np.linalg.eigh(K_mm)
    kept = values > 1e-12 * values[-1]
    R = vectors[:, kept] / np.sqrt(values[kept])
    Phi = K @ R
    n = len(y)
    sigma, U = np.linalg.eigh(Phi.T @ Phi / n)
    g = np.array([gamma * sum((1 - gamma * s) ** i for i in range(iterations)) for s in sigma])
    beta = U @ (g * (U.T @ (Phi.T @ y / n)))
    return Phi @ beta


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("iterations", [1, 2, 7, 40])
def test_gradient_descent_is_its_closed_form(surface, force, form, iterations):
    X, y = surface
    force(form)
    model = NytroRegressor(
        sigma=SIGMA, n_centers=30, iterations=iterations, filter="landweber", step="bound",
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert model.form_ == form
    expected = closed_form(X, y, X[model.center_rows_], iterations, gamma=1.0)
    assert_allclose(model.predict(X), expected, rtol=1e-7, atol=1e-9)


def test_the_printed_recursion(surface):
    """β_t = β_{t−1} − (γ/n)RᵀK_nmᵀ(K_nmRβ_{t−1} − y), the missing R put in."""
    X, y = surface
    model = NytroRegressor(
        sigma=SIGMA, n_centers=25, iterations=15, filter="landweber", step="bound",
        random_state=3,
    ).fit(X, y)  # fmt: skip
    centers = X[model.center_rows_]
    K, K_mm = Gaussian(SIGMA)(X, centers), Gaussian(SIGMA)(centers)
    R = np.linalg.inv(np.linalg.cholesky(K_mm)).T
    beta = np.zeros(25)
    for t in range(1, 16):
        beta = beta - R.T @ (K.T @ (K @ (R @ beta) - y)) / len(y)
        assert_allclose(model.at(t).dual_coef_, R @ beta, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("filter", [Landweber(), NuMethod(), ConjugateGradient()])
@pytest.mark.parametrize("intercept", [False, True])
def test_all_forms_give_the_same_path_and_model(surface, force, filter, intercept):
    X, y = surface
    weight = np.random.default_rng(1).uniform(0.2, 2, len(y))
    outputs = np.column_stack([y + 5, -2 * y])
    # Conjugate gradients magnify rounding errors: their iterates part after some ten.
    steps = np.arange(1, 26 if filter.linear else 9)
    found = []
    for form in FORMS:
        force(form)
        model = NytroRegressor(
            sigma=SIGMA, n_centers=40, filter=filter, intercept=intercept, validation=3,
            iterations=steps, random_state=0,
        ).fit(X, outputs, weight)  # fmt: skip
        found.append((model.path_.errors, model.predict(X)))
    for errors, predictions in found[1:]:
        assert_allclose(errors, found[0][0], rtol=1e-6)
        assert_allclose(predictions, found[0][1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_validation_errors_are_those_of_separate_fits(surface, force, form):
    X, y = surface
    force(form)
    train, held = np.arange(0, 180), np.arange(180, 240)
    steps = [1, 5, 20]
    model = NytroRegressor(
        sigma=SIGMA, n_centers=30, iterations=steps, step="bound",
        validation=[(train, held)], random_state=0,
    ).fit(X, y)  # fmt: skip
    assert set(model.center_rows_) <= set(train)
    for t, error in zip(steps, model.path_.errors, strict=True):
        part = NytroRegressor(
            sigma=SIGMA, n_centers=30, centers=X[model.center_rows_], iterations=t,
            step="bound",
        ).fit(X[train], y[train])  # fmt: skip
        expected = np.sqrt(np.mean((part.predict(X[held]) - y[held]) ** 2))
        assert_allclose(error, expected, rtol=1e-8)


def test_the_final_model_is_fitted_to_all_rows(surface):
    X, y = surface
    model = NytroRegressor(sigma=SIGMA, n_centers=30, filter="nu", random_state=0).fit(X, y)
    alone = NytroRegressor(
        sigma=SIGMA, centers=X[model.center_rows_], n_centers=30, filter="nu",
        iterations=model.iterations_,
    ).fit(X, y)  # fmt: skip
    assert_allclose(model.predict(X), alone.predict(X), rtol=1e-8)
    assert model.path_.best["iterations"] == model.iterations_


def test_the_nu_method_needs_the_root_of_the_iterations(surface):
    """To come as close to the least-squares fit, Landweber takes about t² for ν's t."""
    X, y = surface
    y = np.sin(X[:, 0])  # no noise: the error falls as the iterations go on
    needed = {}
    for filter in ("landweber", "nu"):
        model = NytroRegressor(
            sigma=SIGMA, n_centers=60, filter=filter, iterations=np.arange(1, 2001),
            random_state=0,
        ).fit(X, y)  # fmt: skip
        close = np.flatnonzero(model.path_.errors < 0.1)
        needed[filter] = int(close[0]) + 1
    assert needed["landweber"] > 50
    root = np.sqrt(needed["landweber"])
    assert 0.4 * root < needed["nu"] < 3 * root


def test_many_conjugate_gradient_steps_are_least_squares(surface):
    X, y = surface
    cg = NytroRegressor(sigma=3.0, n_centers=12, filter="cg", iterations=60, random_state=0)
    ridge = NystromRegressor(sigma=3.0, n_centers=12, penalty=0.0, random_state=0)
    assert_allclose(cg.fit(X, y).predict(X), ridge.fit(X, y).predict(X), rtol=1e-4, atol=1e-4)


def test_early_stopping_is_worth_a_penalty(surface):
    """t steps of size γ and λ = 1/(γt) give errors within the theorem's factor (sec. 4.3)."""
    X, y = surface
    truth = np.sin(X[:, 0]) + X[:, 1] ** 2
    for t in (2, 10, 100):
        stopped = NytroRegressor(
            sigma=SIGMA, n_centers=60, iterations=t, filter="landweber", step="bound",
            random_state=0,
        ).fit(X, y)  # fmt: skip
        ridge = NystromRegressor(sigma=SIGMA, n_centers=60, penalty=1 / t, random_state=0)
        risk = np.mean((stopped.predict(X) - truth) ** 2)
        assert risk <= 16 * np.mean((ridge.fit(X, y).predict(X) - truth) ** 2)


def test_weights_are_copies(surface):
    X, y = surface
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    settings = {"sigma": SIGMA, "centers": X[:20], "iterations": 30, "filter": "landweber"}
    weighted = NytroRegressor(**settings).fit(X, y, weight)
    copies = NytroRegressor(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.predict(X), copies.predict(X), rtol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_classes(force, form):
    force(form)
    X, y = load_digits(return_X_y=True)
    names = np.array(list("abcdefghij"))[y]
    model = NytroClassifier(n_centers=200, filter="cg", random_state=0, validation=0.25)
    model.fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.95
    assert model.decision_function(X[:3]).shape == (3, 10)
    wrong = model.path_.errors
    assert ((wrong >= 0) & (wrong <= 1)).all()
    assert model.path_.errors[model.iterations_ - 1] == wrong.min()


def test_misclassification_at_every_step_is_that_of_the_predictions():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    train, held = np.arange(300), np.arange(300, 400)
    model = NytroClassifier(
        sigma=20.0, n_centers=80, iterations=[1, 4, 12], filter="nu",
        validation=[(train, held)], random_state=0,
    ).fit(X, y)  # fmt: skip
    part = NytroClassifier(
        sigma=20.0, centers=X[model.center_rows_], n_centers=80, iterations=12, filter="nu"
    ).fit(X[train], y[train])
    for t, error in zip([1, 4, 12], model.path_.errors, strict=True):
        assert np.mean(part.at(t).predict(X[held]) != y[held]) == pytest.approx(error)


# Stopping


def falling(n):
    return np.exp(-np.arange(n) / 5) + 0.5


@given(st.integers(1, 12), st.floats(0, 0.5), st.integers(1, 60))
@settings(deadline=None)
def test_the_rule_of_the_thesis(window, tolerance, length):
    errors = falling(length)
    steps = np.arange(1, length + 1)
    chosen = Stopping(tolerance, window).chosen(steps, errors, errors)
    flat = [
        t for t in range(window, length)
        if not errors[t] < (1 - tolerance) * errors[t - window]
    ]  # fmt: skip
    assert chosen == (flat[0] if flat else None)


def test_the_rule_of_the_thesis_stops_a_fit(surface):
    X, y = surface
    model = NytroRegressor(
        sigma=SIGMA, n_centers=40, tolerance=0.05, filter="landweber", step="bound",
        random_state=0,
    ).fit(X, y)  # fmt: skip
    errors, t = model.path_.errors, model.iterations_
    assert 10 < t < 500
    assert errors[t - 1] >= 0.95 * errors[t - 11]
    ratios = errors[10 : t - 1] / errors[: t - 11]
    assert (ratios < 0.95).all()


def test_the_best_iterate_is_taken_and_waited_for():
    errors = np.concatenate([np.linspace(2, 1, 30), np.linspace(1, 2, 200)])
    stopping, steps = Stopping(None, 10), np.arange(1, 231)
    assert stopping.chosen(steps, errors[:40], errors[:40]) is None
    assert stopping.chosen(steps, errors, errors) == 29
    assert stopping.last(steps, errors[:35], errors[:35]) == 29
    assert Stopping(0.0, 10).last(steps, falling(12), falling(12)) == 11


def test_the_window_counts_iterations_however_few_are_judged():
    every, errors = np.arange(1, 101), falling(100)
    some = np.arange(5, 101, 5)
    rule = Stopping(0.05, 10)
    at = every[rule.chosen(every, errors, errors)]
    fewer = some[rule.chosen(some, errors[some - 1], errors[some - 1])]
    assert at <= fewer < at + 5


def test_of_equal_errors_the_smaller_tie_breaker_is_taken():
    errors, ties = np.array([2.0, 1.0, 1.0, 1.0]), np.array([9.0, 3.0, 1.0, 2.0])
    assert Stopping(None, 10).last(np.arange(1, 5), errors, ties) == 2


def test_the_last_of_the_automatic_iterations_is_warned_of(surface):
    X, _ = surface
    with pytest.warns(SelectionWarning, match="500 iterations"):
        NytroRegressor(sigma=SIGMA, n_centers=100, filter="landweber", random_state=0).fit(
            X, np.sin(X[:, 0])
        )


# Earlier iterates


def test_an_earlier_iterate_is_a_model_of_its_own(surface, tmp_path):
    X, y = surface
    model = NytroRegressor(
        sigma=SIGMA, n_centers=40, iterations=20, intercept=True, random_state=0
    ).fit(X, 100 + 3 * y)
    before = model.predict(X)
    early = model.at(5)
    alone = copy.deepcopy(model).set_params(iterations=5).fit(X, 100 + 3 * y)
    assert early.iterations_ == 5
    assert_allclose(early.predict(X), alone.predict(X), rtol=1e-10)
    assert (model.predict(X) == before).all()
    imparo.save(model, tmp_path / "model")
    again = imparo.load(tmp_path / "model")
    assert (again.at(5).predict(X) == early.predict(X)).all()
    for bad in (0, 21, 1.5, True, "5"):
        with pytest.raises(ValueError, match="must be a whole number from 1 to 20"):
            model.at(bad)


def test_iterates_that_do_not_fit_are_not_kept(surface):
    X, y = surface
    model = NytroRegressor(
        sigma=SIGMA, n_centers=40, iterations=4000, filter="nu", memory=2_000_000
    ).fit(X, y)
    with pytest.raises(ValueError, match="not kept"):
        model.at(3)


# Forms


@given(
    n=st.integers(10, 10**7), m=st.integers(1, 20_000), d=st.integers(1, 1000),
    outputs=st.integers(1, 50), steps=st.integers(1, 10_000),
    memory=st.integers(10**6, 10**12),
)  # fmt: skip
def test_the_form_fits_and_more_memory_is_never_slower(n, m, d, outputs, steps, memory):
    form = cheapest_form(n, m, d, outputs, steps, 8, memory)
    if form == STORED:
        assert 8 * n * m <= memory
    if form == GRAM:
        assert 8 * m * m <= memory
    more = cheapest_form(n, m, d, outputs, steps, 8, 10**18)
    assert more in (GRAM, STORED)  # to compute again is for want of memory only


def test_few_steps_do_not_pay_for_a_gram_matrix():
    few = cheapest_form(10**5, 4000, 10, 1, 5, 8, 10**12)
    many = cheapest_form(10**5, 4000, 10, 1, 2000, 8, 10**12)
    assert (few, many) == (STORED, GRAM)


def test_the_normal_operator_of_some_cells(rng):
    X, Y = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    weight, cell = rng.uniform(1, 2, 50), rng.integers(-1, 3, 50)
    map = NystromMap(Gaussian(1.0), X[:12])
    rows = Stream(ArraySource(X, np.dtype(float)), Y, weight, cell, 3, 10**8, False)
    chosen = np.array([True, False, True])
    some = np.isin(cell, [0, 2])
    Phi, w = map.transform(X[some]), weight[some]
    mean, out = w @ Phi / w.sum(), w @ Y[some] / w.sum()
    centered = Phi - mean
    for form in FORMS:
        system = Normal(rows, map, form, intercept=True).system(chosen)
        v = rng.normal(size=(12, 2))
        expected = centered.T @ (w[:, None] * (centered @ v))
        assert_allclose(system.product(v), expected, rtol=1e-8, atol=1e-9)
        rhs = centered.T @ (w[:, None] * (Y[some] - out))
        assert_allclose(system.b, rhs, rtol=1e-8, atol=1e-9)
        assert system.weight == pytest.approx(w.sum())
        assert_allclose(system.intercept(v), out - mean @ v)


# Input


def test_dependent_centers_are_no_harm(surface):
    X, y = surface
    centers = np.vstack([X[:20], X[:20]])
    twice = NytroRegressor(sigma=SIGMA, centers=centers, n_centers=40, iterations=30)
    once = NytroRegressor(sigma=SIGMA, centers=X[:20], n_centers=20, iterations=30)
    assert_allclose(twice.fit(X, y).predict(X), once.fit(X, y).predict(X), rtol=1e-8)
    assert [d.reason for d in twice.dropped_centers_][:1] == ["equal to center 0"]


def test_an_unbounded_kernel(surface):
    X, y = surface
    model = NytroRegressor(Linear(), centers=X, n_centers=240, iterations=400, step="bound")
    expected = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert_allclose(model.fit(X, y).predict(X), expected, atol=1e-3)


def test_a_width_is_chosen(surface):
    X, y = surface
    model = NytroRegressor(
        sigma=[0.01, SIGMA], n_centers=60, filter="nu", random_state=0, validation=4
    ).fit(X, y)
    assert model.sigma_ == SIGMA
    assert model.path_.errors.shape[0] == 2
    assert model.path_.best["sigma"] == SIGMA


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"filter": "tikhonov"}, "does not iterate"),
        ({"filter": Landweber(step=0.1)}, "step of its own"),
        ({"filter": "cg", "step": 0.5}, "no effect"),
        ({"step": -1.0}, "must be 'spectral', 'bound' or a positive number"),
        ({"step": "fast"}, "must be 'spectral', 'bound' or a positive number"),
        ({"filter": "landweber", "step": 1e6}, "diverge"),
        ({"filter": "nu", "step": 50.0, "sigma": 50.0}, "diverge"),
        ({"tolerance": 1.0}, "tolerance"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"window": 0}, "window"),
        ({"iterations": 0}, "iterations"),
        ({"iterations": 1.5}, "iterations"),
        ({"iterations": "many"}, "iterations"),
        ({"validation": "gcv"}, "gcv"),
        ({"validation": "loo"}, "loo"),
        ({"n_centers": 0}, "n_centers"),
        ({"kernel": "precomputed"}, "precomputed"),
    ],
)
def test_bad_parameters(surface, settings, message):
    X, y = surface
    model = NytroRegressor(sigma=SIGMA, n_centers=10, iterations=5, random_state=0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=message):
        model.set_params(**settings).fit(X, y)
    assert (model.predict(X) == before).all()


def test_a_step_of_ones_own(surface):
    X, y = surface
    settings = {"sigma": SIGMA, "n_centers": 30, "iterations": 12, "random_state": 0}
    given = NytroRegressor(step=0.7, filter="landweber", **settings).fit(X, y)
    expected = closed_form(X, y, X[given.center_rows_], 12, gamma=0.7)
    assert_allclose(given.predict(X), expected, rtol=1e-7, atol=1e-9)


def test_float32(surface):
    X, y = surface
    settings = {"sigma": SIGMA, "n_centers": 30, "filter": "nu", "iterations": 20}
    double = NytroRegressor(**settings, random_state=0).fit(X, y)
    single = NytroRegressor(**settings, random_state=0).fit(X.astype("float32"), y)
    assert single.dual_coef_.dtype == np.float32
    assert_allclose(single.predict(X.astype("float32")), double.predict(X), atol=2e-3)
