"""Learned widths: criteria by their definition, gradients by finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from imparo import KernelRegressor
from imparo.kernels import Gaussian, Laplacian, Linear, Matern
from imparo.width_learning import criterion, learn_widths

KERNELS = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    **{f"matern {v}": lambda sigma=None, v=v: Matern(v, sigma) for v in (0.5, 1.5, 2.5)},
}
kernels = pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS)
kinds = pytest.mark.parametrize("kind", ["gcv", "loo"])


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    return X, np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] + 0.3 * rng.normal(size=50)])


@kernels
def test_leave_one_out_is_leaving_one_out(rows, make):
    (X, Y), penalty = rows, 0.01
    n, K = len(X), make((0.7, 1.3, 4.0))(X)
    residuals = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        alpha = np.linalg.solve(K[np.ix_(rest, rest)] + n * penalty * np.eye(n - 1), Y[rest])
        residuals.append(Y[i] - K[i, rest] @ alpha)
    value, _ = criterion(make((0.7, 1.3, 4.0)), X, Y, penalty, "loo")
    assert value == pytest.approx(np.mean(np.square(residuals)), rel=1e-9)


@kernels
def test_gcv_is_its_definition(rows, make):
    (X, Y), penalty = rows, 0.01
    n, K = len(X), make(1.1)(X)
    H = K @ np.linalg.inv(K + n * penalty * np.eye(n))
    expected = np.mean(np.square(Y - H @ Y)) / (1 - np.trace(H) / n) ** 2
    assert criterion(make(1.1), X, Y, penalty, "gcv")[0] == pytest.approx(expected, rel=1e-9)


@kernels
@kinds
def test_gradients_are_finite_differences(rows, make, kind):
    X, Y = rows
    theta = np.log([0.7, 1.3, 4.0, 0.02])

    def value(theta):
        return criterion(make(np.exp(theta[:3])), X, Y, np.exp(theta[3]), kind)[0]

    _, M = criterion(make(np.exp(theta[:3])), X, Y, np.exp(theta[3]), kind)
    slopes = make(np.exp(theta[:3])).width_gradient(X, M)
    gradient = np.append(slopes, len(X) * np.exp(theta[3]) * np.trace(M))
    step = 1e-5
    for k, unit in enumerate(step * np.eye(4)):
        # Fourth order: errors of the difference are below 1e-10.
        near, far = (value(theta + s * unit) - value(theta - s * unit) for s in (1, 2))
        expected = (8 * near - far) / (12 * step)
        assert gradient[k] == pytest.approx(expected, rel=1e-6, abs=1e-9 * abs(gradient).max())


@kernels
def test_one_width_has_the_sum_of_the_slopes(rows, make):
    X, Y = rows
    _, M = criterion(make(1.3), X, Y, 0.02)
    step = 1e-5
    up, down = (criterion(make(1.3 * np.exp(s)), X, Y, 0.02)[0] for s in (step, -step))
    assert make(1.3).width_gradient(X, M).sum() == pytest.approx((up - down) / (2 * step), 1e-5)


def test_duplicate_rows_do_not_matter_to_gradients(rows):
    X, Y = np.repeat(rows[0], 2, axis=0), np.repeat(rows[1], 2, axis=0)
    for make in KERNELS.values():
        _, M = criterion(make((0.7, 1.3, 4.0)), X, Y, 0.02)
        assert np.isfinite(make((0.7, 1.3, 4.0)).width_gradient(X, M)).all()


@pytest.fixture(scope="module")
def two_of_six():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(250, 6))
    return X, np.sin(2 * X[:, 1]) + 0.5 * X[:, 4] ** 2 + 0.1 * rng.normal(size=250)


@kernels
@kinds
def test_relevant_columns_are_found(two_of_six, make, kind):
    X, y = two_of_six
    found = learn_widths(make(), X[:150], y[:150], kind=kind)
    assert set(np.argsort(found.relevance)[-2:]) == {1, 4}
    assert found.relevance[[0, 2, 3, 5]].sum() < 0.1
    assert found.relevance.sum() == pytest.approx(1)
    one = learn_widths(make(), X[:150], y[:150], kind=kind, per_column=False)
    errors = [
        np.mean((KernelRegressor(f.kernel, penalty=f.penalty, intercept=True)
                 .fit(X[:150], y[:150]).predict(X[150:]) - y[150:]) ** 2)
        for f in (found, one)
    ]  # fmt: skip
    assert errors[0] < 0.9 * errors[1]
    assert found.error < one.error


def test_a_column_in_other_units(two_of_six):
    X, y = two_of_six
    units = np.array([1.0, 1e3, 1.0, 1.0, 1e-4, 7.0])
    plain, scaled = (learn_widths(Gaussian(), rows[:120], y[:120]) for rows in (X, X * units))
    assert_allclose(scaled.kernel.sigma, units * plain.kernel.sigma, rtol=1e-3)
    assert scaled.penalty == pytest.approx(plain.penalty, rel=1e-3)
    assert_allclose(scaled.relevance, plain.relevance, atol=1e-4)
    # And in other units of the outputs.
    louder = learn_widths(Gaussian(), X[:120], 1e6 * y[:120] + 5e6)
    assert_allclose(louder.kernel.sigma, plain.kernel.sigma, rtol=1e-3)
    assert louder.error == pytest.approx(1e6 * plain.error, rel=1e-3)


def test_hard_rows(two_of_six):
    X, y = two_of_six
    constant = np.column_stack([X[:60, :2], np.full(60, 3.0)])
    found = learn_widths(Gaussian(), constant, y[:60])
    assert np.isfinite(found.kernel.sigma).all()
    nothing = learn_widths(Gaussian(), X[:60], np.full(60, 3.0))
    assert (nothing.error, nothing.n_steps) == (0.0, 0)
    twice = learn_widths(Matern(0.5), np.repeat(X[:40], 2, axis=0), np.repeat(y[:40], 2))
    assert np.isfinite(twice.error)
    assert len(learn_widths(Laplacian(), X[:50, :1], y[:50]).kernel.sigma) == 1


def test_what_cannot_be_learned(two_of_six):
    X, y = two_of_six
    with pytest.raises(ValueError, match="not for Linear"):
        learn_widths(Linear(), X, y)
    with pytest.raises(ValueError, match="kind='aic' is not known; give 'gcv' or 'loo'"):
        learn_widths(Gaussian(), X, y, kind="aic")
