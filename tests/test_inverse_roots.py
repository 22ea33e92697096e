"""Inverse factors under rank-one changes: long-double Cholesky factors are the reference."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from imparo.engine import inverse_roots
from imparo.engine.inverse_roots import absorb_by_panels, absorb_rows

SIZES = [*range(1, 10), 23, 24, 25, 48, 100]
CHANGES = [(1.0, 1.0), (0.9, 1.0), (1.0, -0.3), (0.7, 2.5), (0.5, -0.2)]
CLOSE = {np.float64: 1e-12, np.float32: 2e-4}

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 60)
often = settings(max_examples=40, deadline=None)
both_types = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@pytest.fixture(params=["compiled", "panels"])
def route(request, monkeypatch):
    """One pass by the compiled loop, or without numba by panels."""
    if request.param == "panels":
        monkeypatch.setattr(inverse_roots, "compiled", lambda: None)
    elif inverse_roots.compiled() is None:
        pytest.skip("numba is not installed")
    return request.param


def by_panels(L, X, fade, weight):
    E, totals = np.zeros_like(X), np.full(len(X), fade, X.dtype)
    absorb_by_panels(L, X, E, totals, L.dtype.type(1 / np.sqrt(fade)), L.dtype.type(weight))
    return E, totals


def inverse_factor(A):
    """Return C⁻¹ of A = CCᵀ, column by column, in long doubles."""
    A = np.array(A, np.longdouble)
    C, L = np.zeros_like(A), np.zeros_like(A)
    for j in range(len(A)):
        C[j, j] = np.sqrt(A[j, j] - C[j, :j] @ C[j, :j])
        C[j + 1 :, j] = (A[j + 1 :, j] - C[j + 1 :, :j] @ C[j, :j]) / C[j, j]
    for j, unit in enumerate(np.eye(len(A), dtype=np.longdouble)):
        L[j] = (unit - C[j, :j] @ L[:j]) / C[j, j]
    return L


def start(seed, p, dtype=np.float64):
    """Return a positive definite A, whose eigenvalues are 1 or more, and its L."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(p + 3, p)) / np.sqrt(p)
    A = np.array(B.T @ B + np.eye(p), np.longdouble)
    return A, np.ascontiguousarray(inverse_factor(A), dtype)


def rows(seed, k, p, dtype=np.float64):
    rng = np.random.default_rng([seed, 1])
    return np.ascontiguousarray(rng.normal(size=(k, p)) / np.sqrt(p), dtype)


# One row.


@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize(("fade", "weight"), CHANGES)
@both_types
def test_a_row_gives_the_factor_of_the_changed_matrix(route, p, fade, weight, dtype):
    A, L = start(0, p, dtype)
    x = rows(0, 1, p, dtype)
    # Half of what may be taken out, where something is: A stays far from singular.
    weight *= 1.0 if weight > 0 else 1 / float(x[0] @ x[0])
    E, totals = absorb_rows(L, x, fade=fade, weight=weight)
    wide = x[0].astype(np.longdouble)
    changed = fade * A + weight * np.outer(wide, wide)
    solved = inverse_factor(A).T @ (inverse_factor(A) @ wide)
    close = CLOSE[dtype]
    assert L.dtype == E.dtype == totals.dtype == dtype
    assert_allclose(L, inverse_factor(changed), rtol=0, atol=close)
    assert_allclose(E[0], solved, rtol=0, atol=close)
    assert_allclose(totals[0], fade + weight * (wide @ solved), rtol=close)


@pytest.mark.parametrize("p", SIZES)
def test_what_is_above_the_diagonal_stays_exactly_zero(route, p):
    _, L = start(1, p)
    absorb_rows(L, rows(1, 5, p), fade=0.9)
    absorb_rows(L, rows(1, 2, p), weight=-0.01)
    assert_array_equal(np.triu(L, 1), np.zeros((p, p)))
    assert (np.diagonal(L) > 0).all()


def test_rows_are_not_written_to(route):
    _, L = start(2, 7)
    X = rows(2, 3, 7)
    X.setflags(write=False)
    kept = X.copy()
    absorb_rows(L, X, fade=0.8)
    assert_array_equal(X, kept)


def test_a_row_of_zeros_only_fades(route):
    A, L = start(3, 9)
    E, totals = absorb_rows(L, np.zeros((1, 9)), fade=0.25)
    assert_allclose(L, inverse_factor(0.25 * A), rtol=0, atol=1e-13)
    assert_array_equal(E, np.zeros((1, 9)))
    assert_array_equal(totals, [0.25])


def test_a_weight_of_zero_changes_nothing(route):
    _, L = start(4, 9)
    kept = L.copy()
    E, totals = absorb_rows(L, rows(4, 2, 9), weight=0.0)
    assert_allclose(L, kept, rtol=1e-14, atol=0)
    assert_allclose(E, rows(4, 2, 9) @ kept.T @ kept, rtol=0, atol=1e-13)
    assert_array_equal(totals, [1.0, 1.0])


def test_no_rows_change_nothing(route):
    _, L = start(5, 6)
    kept = L.copy()
    E, totals = absorb_rows(L, np.zeros((0, 6)))
    assert_array_equal(L, kept)
    assert E.shape == (0, 6)
    assert totals.shape == (0,)


def test_nan_is_not_swallowed(route):
    _, L = start(6, 6)
    x = rows(6, 1, 6)
    x[0, 3] = np.nan
    _, totals = absorb_rows(L, x)
    assert np.isnan(totals[0])


# Several rows.


@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize(("fade", "weight"), [(1.0, 1.0), (0.9, 1.0), (1.0, -0.05)])
@both_types
def test_rows_at_once_and_one_by_one_give_the_same_bits(route, p, fade, weight, dtype):
    _, L = start(7, p, dtype)
    X = rows(7, 9, p, dtype)
    one, parts = L.copy(), L.copy()
    E, totals = absorb_rows(L, X, fade=fade, weight=weight)
    found = [absorb_rows(one, x[None], fade=fade, weight=weight) for x in X]
    absorb_rows(parts, X[:4], fade=fade, weight=weight)
    absorb_rows(parts, X[4:], fade=fade, weight=weight)
    assert_array_equal(L, one)
    assert_array_equal(L, parts)
    assert_array_equal(E, np.concatenate([e for e, _ in found]))
    assert_array_equal(totals, np.concatenate([t for _, t in found]))


@given(seeds, sizes, st.integers(1, 40), st.sampled_from([1.0, 0.97, 0.6]))
@often
def test_a_stream_gives_the_factor_of_all_its_rows(seed, p, k, fade):
    A, L = start(seed, p)
    panels, X = L.copy(), rows(seed, k, p)
    absorb_rows(L, X, fade=fade)
    by_panels(panels, X, fade, 1.0)
    for x in X.astype(np.longdouble):
        A = fade * A + np.outer(x, x)
    expected = np.array(inverse_factor(A), float)
    size = np.abs(expected).max()
    assert_allclose(L, expected, rtol=0, atol=1e-11 * size)
    assert_allclose(panels, expected, rtol=0, atol=1e-11 * size)


@given(seeds, sizes, st.integers(1, 10))
@often
def test_rows_that_are_taken_out_leave_no_trace(seed, p, k):
    _, L = start(seed, p)
    kept, X = L.copy(), rows(seed, k, p)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    absorb_rows(L, X, weight=3.0)
    assert np.abs(L - kept).max() > 1e-4
    absorb_rows(L, X[::-1].copy(), weight=-3.0)
    assert_allclose(L, kept, rtol=0, atol=1e-11)


@given(seeds, sizes)
@often
def test_weights_are_repetitions(seed, p):
    _, once = start(seed, p)
    thrice, x = once.copy(), rows(seed, 1, p)
    absorb_rows(once, x, weight=3.0)
    absorb_rows(thrice, np.repeat(x, 3, axis=0))
    assert_allclose(once, thrice, rtol=0, atol=1e-13)


# Hard numbers.


@pytest.mark.parametrize("scales", [1.0, 1e-3, 1e3])
def test_a_tiny_penalty_costs_no_more_digits_than_its_root(route, scales):
    # Square roots are kept: the condition that counts is √(1/λ) = 3e7, not 1e15.
    p, penalty = 12, 1e-15
    rng = np.random.default_rng(8)
    X = rng.normal(size=(3 * p, p)) * scales ** np.linspace(0, 1, p)
    L = np.eye(p) / np.sqrt(penalty)
    absorb_rows(L, X)
    wide = X.astype(np.longdouble)
    expected = inverse_factor(wide.T @ wide + penalty * np.eye(p, dtype=np.longdouble))
    for j in range(p):
        assert_allclose(L[j], expected[j], rtol=0, atol=1e-12 * np.abs(expected[j]).max())


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e-100), (np.float32, 1e-12)])
def test_numbers_whose_products_would_overflow_do_no_harm(route, dtype, size):
    # β is 1/size² after the first column: within the type, while its square is not.
    L = np.eye(6, dtype=dtype) / dtype(size)
    x = np.ones((1, 6), dtype)
    with np.errstate(over="ignore"):
        absorb_rows(L, x)
    # A = s²I + 11ᵀ: the Schur complement of column j is s²(j + 1 + s²)/(j + s²).
    j = np.arange(1.0, 6)
    assert_allclose(L[0, 0], 1, rtol=1e-5)
    assert_allclose(np.diagonal(L)[1:] * dtype(size), np.sqrt(j / (j + 1)), rtol=1e-5)


def test_many_rows_of_all_sizes_keep_the_factor_exact(route):
    p, rng = 8, np.random.default_rng(9)
    X = rng.normal(size=(3000, p)) * 10.0 ** rng.uniform(-4, 4, size=(3000, 1))
    L = np.eye(p)
    absorb_rows(L, X)
    wide = X.astype(np.longdouble)
    expected = inverse_factor(wide.T @ wide + np.eye(p))
    for j in range(p):
        assert_allclose(L[j], expected[j], rtol=0, atol=1e-12 * np.abs(expected[j]).max())


# Routes.


@pytest.mark.parametrize("p", [*SIZES, 300])
@both_types
def test_both_routes_give_the_same_numbers(p, dtype):
    if inverse_roots.compiled() is None:
        pytest.skip("numba is not installed")
    _, L = start(10, p, dtype)
    panels, X = L.copy(), rows(10, 4, p, dtype)
    E, totals = absorb_rows(L, X, fade=0.9)
    others = by_panels(panels, X, 0.9, 1.0)
    close = CLOSE[dtype] / 10
    assert_allclose(L, panels, rtol=0, atol=close)
    assert_allclose(E, others[0], rtol=0, atol=close)
    assert_allclose(totals, others[1], rtol=close)


def test_without_numba_there_is_no_compiled_loop(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert inverse_roots.compiled.__wrapped__() is None
