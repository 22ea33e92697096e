"""Learned widths: criteria by their definition, gradients by differences, what they find."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from imparo import width_learning
from imparo.kernels import Gaussian, Laplacian, Linear, Matern
from imparo.width_criteria import AllRows, OnCenters
from imparo.width_learning import learn_widths

# Kernels, and their formulas at differences over widths.
KERNELS = {
    "gaussian": (Gaussian, lambda D: np.exp(-np.sum(D**2) / 2)),
    "laplacian": (Laplacian, lambda D: np.exp(-np.sum(np.abs(D)))),
    "matern 1/2": (lambda s=None: Matern(0.5, s), lambda D: np.exp(-np.linalg.norm(D))),
    "matern 3/2": (
        lambda s=None: Matern(1.5, s),
        lambda D: (1 + 3**0.5 * np.linalg.norm(D)) * np.exp(-(3**0.5) * np.linalg.norm(D)),
    ),
    "matern 5/2": (
        lambda s=None: Matern(2.5, s),
        lambda D: (
            (1 + 5**0.5 * np.linalg.norm(D) + 5 * np.sum(D**2) / 3)
            * np.exp(-(5**0.5) * np.linalg.norm(D))
        ),
    ),
}
WIDTHS, PENALTY = np.array([0.7, 1.3, 4.0]), 0.02
KINDS = ["gcv", "loo", "centers"]
kernels = pytest.mark.parametrize("make", [k[0] for k in KERNELS.values()], ids=KERNELS)
kinds = pytest.mark.parametrize("kind", KINDS)
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
outputs = pytest.mark.parametrize("outputs", [1, 3])


@pytest.fixture
def rows():
    """Forty rows with three outputs, and weights with mean 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] + 0.3 * rng.normal(size=40), X[:, 2] > 0])
    w = rng.uniform(0.2, 2, 40)
    return X, Y, w / w.mean()


def made(kind, X, Y, w=None):
    """Return a criterion; one on centers has every third row."""
    return OnCenters(X, Y, X[::3], w) if kind == "centers" else AllRows(X, Y, w, kind)


def difference(f, step=1e-4):
    """Return f'(0), with an error of fourth order."""
    return (8 * (f(step) - f(-step)) - (f(2 * step) - f(-2 * step))) / (12 * step)


# Criteria are what they are called.


def naive(kind, kernel, X, Y, penalty, w):
    """Return a criterion from hat matrices, or by leaving out every row in turn."""
    n = len(X)
    if kind == "loo":
        K, residuals = kernel(X), np.empty_like(Y)
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            A = K[np.ix_(rest, rest)] + np.diag(n * penalty / w[rest])
            residuals[i] = Y[i] - K[i, rest] @ np.linalg.solve(A, Y[rest])
        return np.mean(w[:, None] * residuals**2)
    if kind == "gcv":
        K = kernel(X)
        H = K @ np.linalg.inv(K + np.diag(n * penalty / w))
    else:
        B, K = kernel(X, X[::3]), kernel(X[::3])
        H = B @ np.linalg.solve(B.T @ (w[:, None] * B) + n * penalty * K, B.T * w)
    return np.mean(w[:, None] * (Y - H @ Y) ** 2) / (1 - np.trace(H) / n) ** 2


@kernels
@kinds
@weighted
@outputs
def test_criteria_are_their_definitions(rows, make, kind, weighted, outputs):
    X, Y, w = rows
    Y, w = Y[:, :outputs], w if weighted else None
    for kernel in (make(WIDTHS), make(0.8)):
        found = made(kind, X, Y, w).at(kernel, PENALTY)
        ones = np.ones(40) if w is None else w
        assert found.value == pytest.approx(naive(kind, kernel, X, Y, PENALTY, ones), rel=1e-8)


@kernels
@kinds
def test_the_model_is_that_of_repeated_rows(rows, make, kind):
    X, Y, _ = rows
    times = np.arange(40) % 3 + 1
    repeated = np.repeat(np.arange(40), times)
    n, Z = len(repeated), X if kind != "centers" else X[::3]
    B, K = make(WIDTHS)(X[repeated], Z), make(WIDTHS)(Z)
    expected = np.linalg.solve(B.T @ B + n * PENALTY * K, B.T @ Y[repeated])
    found = made(kind, X, Y, times / times.mean()).at(make(WIDTHS), PENALTY)
    assert_array_equal(found.rows, Z)
    new = make(WIDTHS)(np.random.default_rng(1).normal(size=(9, 3)), Z)
    assert_allclose(new @ found.coef, new @ expected, rtol=1e-6, atol=1e-8)


@kernels
@weighted
@outputs
def test_all_rows_as_centers_are_exact(rows, make, weighted, outputs):
    X, Y, w = rows
    Y, w, kernel = Y[:, :outputs], w if weighted else None, make(0.3 * WIDTHS)
    centers, exact = OnCenters(X, Y, X, w).at(kernel, 0.1), AllRows(X, Y, w).at(kernel, 0.1)
    assert centers.value == pytest.approx(exact.value, rel=1e-6)
    assert centers.penalty_slope == pytest.approx(exact.penalty_slope, rel=1e-6)
    assert_allclose(centers.slopes, exact.slopes, rtol=1e-5, atol=1e-6 * exact.value)
    assert_allclose(centers.coef, exact.coef, rtol=1e-5, atol=1e-6)


# Gradients are differences.


@kernels
@kinds
@weighted
@outputs
def test_gradients_are_finite_differences(rows, make, kind, weighted, outputs):
    X, Y, w = rows
    criterion = made(kind, X, Y[:, :outputs], w if weighted else None)
    theta = np.log([*WIDTHS, PENALTY])

    def at(theta):
        return criterion.at(make(np.exp(theta[:3])), np.exp(theta[3]))

    found = at(theta)
    expected = [difference(lambda s, u=u: at(theta + s * u).value) for u in np.eye(4)]
    gradient = [*found.slopes, found.penalty_slope]
    assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


@kernels
@kinds
def test_one_width_has_the_sum_of_the_slopes(rows, make, kind):
    criterion = made(kind, *rows)
    expected = difference(lambda s: criterion.at(make(1.3 * np.exp(s)), PENALTY).value)
    assert criterion.at(make(1.3), PENALTY).slopes.sum() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("square", [False, True])
def test_width_gradient_is_a_sum_over_pairs(rng, name, square):
    make, formula = KERNELS[name]
    X, Z = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    Z[0] = X[2]  # where the derivative is 0
    Z = X if square else Z
    M = rng.normal(size=(len(X), len(Z)))
    expected = np.zeros(3)
    for k, unit in enumerate(np.eye(3)):
        for i, x in enumerate(X):
            for j, z in enumerate(Z):
                slope = difference(
                    lambda s, D=x - z, u=unit: formula(D / (WIDTHS * np.exp(s * u)))
                )
                expected[k] += M[i, j] * slope
    found = make(WIDTHS).width_gradient(X, M, None if square else Z)
    assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    if square:
        assert_array_equal(found, make(WIDTHS).width_gradient(X, M, X))


@kernels
def test_far_from_zero_gradients_keep_their_digits(rng, make):
    X, Z, M = rng.normal(size=(9, 3)), rng.normal(size=(5, 3)), rng.normal(size=(9, 5))
    far = np.array([1e7, -1e7, 3e6])
    expected = make(WIDTHS).width_gradient(X, M, Z)
    found = make(WIDTHS).width_gradient(X + far, M, Z + far)
    assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@kernels
@kinds
def test_gradients_of_duplicate_rows(rows, make, kind):
    X, Y, w = (np.repeat(part, 2, axis=0) for part in rows)
    found = made(kind, X, Y, w).at(make(WIDTHS), PENALTY)
    step = difference(lambda s: made(kind, X, Y, w).at(make(WIDTHS * np.exp(s)), PENALTY).value)
    assert found.slopes.sum() == pytest.approx(step, rel=1e-6)


# What is learned.


@pytest.fixture(scope="module")
def two_of_four():
    """Rows whose outputs depend on columns 1 and 2."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 4))
    return X, np.sin(2 * X[:, 1]) + 0.5 * X[:, 2] ** 2 + 0.3 * rng.normal(size=120)


@pytest.fixture(scope="module")
def learned(two_of_four):
    """Return a function: what is learned from these rows, once with the same settings."""

    @cache
    def found(**settings):
        return learn_widths(Gaussian(), *two_of_four, **settings)

    return found


def assert_same(found, expected, units=1.0, rtol=1e-5):
    assert_allclose(found.kernel.sigma, units * np.array(expected.kernel.sigma), rtol=rtol)
    assert_allclose(found.relevance, expected.relevance, rtol=rtol, atol=1e-9)
    assert_array_equal(found.unused, expected.unused)
    assert found.penalty == pytest.approx(expected.penalty, rel=rtol)
    assert found.error == pytest.approx(expected.error, rel=rtol)
    assert found.held_error == pytest.approx(expected.held_error, rel=rtol)


def error_of(found, X, y, new, truth):
    """Return the mean squared error on new rows of the model with this kernel and λ."""
    A = found.kernel(X) + len(X) * found.penalty * np.eye(len(X))
    f = found.kernel(new, X) @ np.linalg.solve(A, y - y.mean()) + y.mean()
    return np.mean((f - truth) ** 2)


@pytest.mark.parametrize("name", KERNELS)
@kinds
def test_relevant_columns_are_found(name, kind):
    if name == "laplacian" and kind != "centers":
        pytest.skip("other columns matter less to a product of functions of single columns")
    make = KERNELS[name][0]
    rng = np.random.default_rng(1)
    X = rng.normal(size=(350, 10))
    y = np.sin(2 * X[:, 1]) + np.sin(2 * X[:, 4]) + 0.1 * rng.normal(size=350)
    rows, new = (X[:200], y[:200]), (X[200:], y[200:])
    found, one = (
        learn_widths(make(), *rows, kind=kind, n_centers=60, per_column=p)
        for p in (True, False)
    )
    assert set(np.argsort(found.relevance)[-2:]) == {1, 4}
    assert found.relevance[[1, 4]].sum() > 0.75
    assert not found.unused[[1, 4]].any()
    assert_array_equal(found.relevance == 0, found.unused)
    assert found.relevance.sum() == pytest.approx(1)
    assert found.error < one.error
    assert found.held_error < one.held_error
    better = 0.85 if name == "laplacian" else 0.3
    assert error_of(found, *rows, *new) < better * error_of(one, *rows, *new)


def test_one_width_that_tells_nothing_is_no_place_to_start():
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 10))
        # With one width for all columns, a constant is the best that there is.
        y = np.sin(3 * X[:, 1]) + 0.1 * rng.normal(size=200)
        settings = {"kind": "centers", "n_centers": 50, "steps": 30, "seed": seed}
        found.append(learn_widths(Matern(1.5), X, y, **settings).held_error)
    assert np.count_nonzero(np.array(found) < 0.4) >= 9


def test_irrelevant_columns_are_left_out(two_of_four):
    X, y = two_of_four
    found = learn_widths(Gaussian(), X, y)
    assert_array_equal(found.unused, [True, False, False, True])
    # Removing them changes nothing that counts.
    widths = np.array(found.kernel.sigma)[[1, 2]]
    assert_allclose(found.kernel(X), Gaussian(widths)(X[:, [1, 2]]), rtol=1e-9)
    assert_allclose(found.relevance[[1, 2]].sum(), 1, rtol=1e-12)
    ratio = np.square(X.std(axis=0)[[1, 2]] / widths)
    assert_allclose(found.relevance[[1, 2]], ratio / ratio.sum(), rtol=1e-12)


def test_one_width_leaves_no_column_out(two_of_four):
    X, y = two_of_four
    for units in (1e-9, 1.0, 1e9):
        scaled = X * [units, 1, 1, 1]
        found = learn_widths(Gaussian(), scaled, y, per_column=False)
        assert np.ndim(found.kernel.sigma) == 0
        assert not found.unused.any()
        squares = np.var(scaled, axis=0)
        assert_allclose(found.relevance, squares / squares.sum(), rtol=1e-9)


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(-8, 8), min_size=4, max_size=4),
    st.permutations(range(4)),
    st.sampled_from(["gcv", "loo"]),
)
def test_columns_in_other_units_and_order(two_of_four, learned, powers, order, kind):
    X, y = two_of_four
    units, expected = 10.0 ** np.array(powers), learned(kind=kind)
    assert_same(learn_widths(Gaussian(), X * units, y, kind=kind), expected, units)
    found = learn_widths(Gaussian(), X[:, order], y, kind=kind)
    assert_allclose(found.kernel.sigma, np.array(expected.kernel.sigma)[order], rtol=1e-5)
    assert_array_equal(found.unused, expected.unused[order])


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(-300, 300), min_size=4, max_size=4),
    st.integers(-300, 300),
    st.sampled_from(list(KERNELS)),
    st.sampled_from(KINDS),
)
def test_scales_that_are_powers_of_two_change_no_digit(two_of_four, powers, power, name, kind):
    (X, y), make = two_of_four, KERNELS[name][0]
    units, louder = 2.0 ** np.array(powers), 2.0**power
    expected = learn_widths(make(), X, y, kind=kind, n_centers=30, steps=10)
    found = learn_widths(make(), X * units, louder * y, kind=kind, n_centers=30, steps=10)
    assert_array_equal(found.kernel.sigma, units * expected.kernel.sigma)
    assert_array_equal(found.relevance, expected.relevance)
    assert_array_equal(found.unused, expected.unused)
    assert (found.penalty, found.n_steps) == (expected.penalty, expected.n_steps)
    assert found.error == louder * expected.error
    assert found.held_error == louder * expected.held_error


@pytest.mark.parametrize("kind", ["gcv", "loo"])
def test_shifts_change_nothing(two_of_four, kind):
    X, y = two_of_four
    expected = learn_widths(Gaussian(), X, y, kind=kind)
    moved = X + np.array([50, -3, 0.1, 20])
    assert_same(learn_widths(Gaussian(), moved, y, kind=kind), expected)
    assert_same(learn_widths(Gaussian(), X, y - 30, kind=kind), expected)


@pytest.mark.parametrize("value", [0.0, 0.1, -1 / 3, 1e5 + 0.1])  # some have a std above 0
@pytest.mark.parametrize("where", [0, 2, 4])
@pytest.mark.parametrize("per_column", [True, False])
def test_a_constant_column_changes_nothing(two_of_four, learned, value, where, per_column):
    X, y = two_of_four
    expected = learned(per_column=per_column)
    found = learn_widths(
        Gaussian(), np.insert(X, where, value, axis=1), y, per_column=per_column
    )
    assert found.unused[where]
    assert found.relevance[where] == 0
    rest = np.delete(np.arange(5), where)
    assert_allclose(found.relevance[rest], expected.relevance, rtol=1e-5)
    assert_array_equal(found.unused[rest], expected.unused)
    assert found.penalty == pytest.approx(expected.penalty, rel=1e-5)
    if per_column:
        assert_allclose(np.array(found.kernel.sigma)[rest], expected.kernel.sigma, rtol=1e-5)
        # A row that differs there a little is not far from all others.
        new = np.insert(X, where, value + 0.01, axis=1)
        old = np.insert(X, where, value, axis=1)
        assert_allclose(found.kernel(new, old), found.kernel(old), rtol=1e-6)
    else:
        assert found.kernel.sigma == pytest.approx(expected.kernel.sigma, rel=1e-5)


# Rows that are kept apart.


class Spy(AllRows):
    """A criterion that writes down its rows and where it was evaluated."""

    rows: list
    points: list

    def __init__(self, X, *others):
        super().__init__(X, *others)
        type(self).rows, type(self).points = X, []

    def at(self, kernel, penalty):
        self.points.append((*np.atleast_1d(kernel.sigma), penalty))
        return super().at(kernel, penalty)


@pytest.fixture
def spy(monkeypatch):
    monkeypatch.setattr(width_learning, "AllRows", Spy)
    return Spy


def apart_of(X, fitted):
    """Return which rows are not among those of a criterion."""
    return ~(X[:, None] == fitted).all(axis=2).any(axis=1)


def test_outputs_kept_apart_do_not_change_an_iterate(two_of_four, spy):
    X, y = two_of_four
    learn_widths(Gaussian(), X, y, per_column=False)
    apart = apart_of(X, spy.rows)
    assert np.count_nonzero(apart) == 30
    points = spy.points
    for other in (np.where(apart, 1e3 * np.arange(120), y), np.where(apart, 0.0, y)):
        learn_widths(Gaussian(), X, other, per_column=False)
        assert_allclose(spy.points, points, rtol=1e-5)
    learn_widths(Gaussian(), X, np.where(apart, y, y[::-1]), per_column=False)
    assert not np.allclose(spy.points[:5], points[:5], rtol=1e-3)  # those of fitted rows do


@weighted
@pytest.mark.parametrize("per_column", [True, False])
def test_errors_are_those_of_their_docstrings(two_of_four, spy, per_column, weighted):
    X, y = two_of_four
    w = np.random.default_rng(2).uniform(0.5, 2, 120) if weighted else np.ones(120)
    found = learn_widths(Matern(1.5), X, y, per_column=per_column, weight=7 * w)
    apart = apart_of(X, spy.rows)
    w = w / w[~apart].mean()
    mean = np.average(y[~apart], weights=w[~apart])
    rows = X[~apart], y[~apart, None] - mean
    value = naive("gcv", found.kernel, *rows, found.penalty, w[~apart])
    assert found.error == pytest.approx(np.sqrt(value), rel=1e-6)
    A = found.kernel(rows[0]) + np.diag(90 * found.penalty / w[~apart])
    f = found.kernel(X[apart], rows[0]) @ np.linalg.solve(A, rows[1][:, 0]) + mean
    losses = w[apart] * (f - y[apart]) ** 2
    assert found.held_error == pytest.approx(np.sqrt(losses.mean()), rel=1e-6)


def test_weights_are_relative(two_of_four):
    X, y = two_of_four
    w = np.random.default_rng(2).uniform(0.5, 2, 120)
    expected = learn_widths(Gaussian(), X, y, weight=w)
    assert_same(learn_widths(Gaussian(), X, y, weight=1024 * w), expected, rtol=0)
    plain = learn_widths(Gaussian(), X, y)
    assert_same(learn_widths(Gaussian(), X, y, weight=np.full(120, 3.0)), plain, rtol=0)
    assert expected.penalty != plain.penalty


def test_rows_of_little_weight_do_not_count(two_of_four):
    X, y = two_of_four
    rng = np.random.default_rng(3)
    little = rng.permutation(120) < 40
    found, other = (
        learn_widths(
            Gaussian(), X, np.where(little, 50 * rng.normal(size=120), y),
            weight=np.where(little, 1e-12, 1.0), per_column=False,
        )
        for _ in range(2)
    )  # fmt: skip
    assert found.kernel.sigma == pytest.approx(other.kernel.sigma, rel=1e-5)
    assert found.penalty == pytest.approx(other.penalty, rel=1e-5)


def test_noise_is_not_fitted():
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(300, 40)), rng.normal(size=(1000, 40))
        y, truth = rng.normal(size=300), rng.normal(size=1000)
        one, many = (
            learn_widths(Gaussian(), X, y, per_column=p, seed=seed) for p in (False, True)
        )
        ratios.append(error_of(many, X, y, new, truth) / error_of(one, X, y, new, truth))
    assert np.mean(ratios) < 1.03


def test_noise_does_not_get_widths_of_its_own():
    chosen = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(120, 15)), rng.normal(size=120)
        widths = learn_widths(Gaussian(), X, y, seed=seed, steps=20).kernel.sigma / X.std(
            axis=0
        )
        chosen += np.ptp(widths) > 1e-6 * widths.mean()
    # A difference of pure luck is above its standard error in one case of six.
    assert chosen <= 5


def test_few_rows_are_all_fitted(two_of_four, spy):
    X, y = two_of_four
    assert np.isnan(learn_widths(Gaussian(), X[:39], y[:39]).held_error)
    assert_array_equal(np.sort(spy.rows, axis=0), np.sort(X[:39], axis=0))
    assert learn_widths(Gaussian(), X[:40], y[:40]).held_error > 0
    assert len(spy.rows) == 30


def test_the_last_rows_of_a_series_are_kept_apart(two_of_four, spy):
    X, y = two_of_four
    learn_widths(Gaussian(), X, y, last_apart=True)
    assert_array_equal(apart_of(X, spy.rows), np.arange(120) >= 90)
    learn_widths(Gaussian(), X, y)
    assert not apart_of(X, spy.rows)[90:].all()


# Settings.


def test_auto_takes_centers_for_many_rows(two_of_four, monkeypatch):
    X, y = two_of_four
    exact, centers = (learn_widths(Gaussian(), X, y, kind=k) for k in ("gcv", "centers"))
    assert_same(learn_widths(Gaussian(), X, y), exact, rtol=0)
    monkeypatch.setattr(width_learning, "_ALL_ROWS", 89)
    assert_same(learn_widths(Gaussian(), X, y), centers, rtol=0)


def test_the_same_seed_gives_the_same_widths(two_of_four):
    X, y = two_of_four
    for kind in KINDS:
        first, again, other = (
            learn_widths(Gaussian(), X, y, kind=kind, n_centers=20, steps=10, seed=s)
            for s in (1, 1, 2)
        )
        assert_same(first, again, rtol=0)
        assert first.kernel.sigma != other.kernel.sigma


@kinds
@pytest.mark.parametrize("per_column", [True, False])
@pytest.mark.parametrize("asked", [0, 1, 5, 20])
def test_it_stops_when_told_to(two_of_four, kind, per_column, asked):
    X, y = two_of_four
    left = iter([True] * asked)
    found = learn_widths(
        Gaussian(), X, y, kind=kind, per_column=per_column, n_centers=30,
        goes_on=lambda: next(left, False),
    )  # fmt: skip
    assert found.n_steps <= asked
    assert np.isfinite(
        [found.error, found.held_error, *np.atleast_1d(found.kernel.sigma)]
    ).all()
    assert found.relevance.sum() == pytest.approx(1)
    if not asked:  # where it started
        assert found.penalty == pytest.approx(1e-3)
        whole = learn_widths(Gaussian(), X, y, kind=kind, per_column=per_column, n_centers=30)
        assert whole.held_error < found.held_error


def test_steps_are_at_most_those_asked_for(two_of_four):
    X, y = two_of_four
    assert learn_widths(Gaussian(), X, y, steps=0).n_steps == 0
    # One width, every width from one or two starts, and those of the columns that are left.
    assert learn_widths(Gaussian(), X, y, steps=4).n_steps <= 4 + 2 * 4 + 2
    assert learn_widths(Gaussian(), X, y, steps=4, per_column=False).n_steps <= 4


# Hard rows.


@pytest.mark.parametrize("value", [0.0, 0.1, 7.7e-5, -3.3, 1e150])  # some have a std above 0
def test_constant_outputs_have_nothing_to_tell(two_of_four, value):
    X, _ = two_of_four
    for Y in (np.full(120, value), np.full((120, 2), value)):
        found = learn_widths(Gaussian(), X, Y)
        assert (found.error, found.n_steps) == (0.0, 0)
        assert not found.unused.any()
        assert_allclose(found.relevance, 0.25)


@pytest.mark.parametrize("per_column", [True, False])
def test_constant_columns_have_the_error_of_a_constant(two_of_four, per_column):
    y = two_of_four[1]
    found = learn_widths(Gaussian(), np.ones((120, 2)), y, per_column=per_column)
    assert found.error == pytest.approx(y.std(), rel=0.2)
    assert found.unused.all()


@kernels
@kinds
def test_hard_rows(two_of_four, make, kind):
    X, y = two_of_four
    twice = np.repeat(np.arange(40), 2)
    for some, out in (
        (X[twice], y[twice]),
        (X[:1], y[:1]),
        (X[:2], y[:2]),
        (X[:3], y[:3]),
        (X[:50, :1], y[:50]),
        (np.ones((50, 2)), y[:50]),
        (X[:50] * [1e150, 1, 1e-150, 1], 1e-150 * y[:50]),
        (1e150 * X[:50], 1e150 * y[:50]),
        (np.round(X[:50]), y[:50] > 0),
    ):
        for per_column in (True, False):
            found = learn_widths(
                make(), some, out, kind=kind, per_column=per_column, n_centers=20, steps=5
            )
            sigma = found.kernel.sigma
            assert len(sigma) == some.shape[1] if per_column else np.ndim(sigma) == 0
            assert np.isfinite([found.error, found.penalty, *found.relevance]).all()
            assert_array_equal(found.relevance[found.unused], 0)
            assert np.isclose(found.relevance.sum(), 1) or found.unused.all()


def test_what_cannot_be_learned(two_of_four):
    X, y = two_of_four
    for kernel in (Linear(), Gaussian() + Linear(), 2 * Gaussian()):
        with pytest.raises(ValueError, match=r"Matérn kernels, not for .*; give one of these"):
            learn_widths(kernel, X, y)
    with pytest.raises(ValueError, match="kind='aic' is not known; give 'auto', 'gcv', 'loo'"):
        learn_widths(Gaussian(), X, y, kind="aic")
