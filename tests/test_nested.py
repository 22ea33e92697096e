"""Ridge on nested features: every size and penalty against fits from scratch."""

import copy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import Ridge

from imparo.engine import default_engine
from imparo.errors import NotPositiveDefiniteError
from imparo.features import NystromMap
from imparo.incremental_nystrom import incremental_nystrom
from imparo.kernels import Gaussian, Laplacian, Matern
from imparo.moments import trusted
from imparo.nested import NestedRidge
from imparo.statistics import Statistics

P, T = 7, 2
FIELDS = ("A", "b", "yy", "feature_sum", "output_sum", "weight")
PENALTIES = [1.0, 1e-2, 1e-5]

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=30, deadline=None)
with_and_without = pytest.mark.parametrize("intercept", [False, True])


def rows(seed, n=25, p=P, outputs=T):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, p)) * rng.uniform(0.3, 3, p) + rng.normal(size=p)
    Y = Phi[:, :outputs] + rng.normal(size=(n, outputs)) + 2
    return Phi, Y, rng.uniform(0.2, 3, n)


def of(Phi, Y, weight=None, dtype=np.float64):
    return Statistics(Phi.shape[1], Y.shape[1], dtype).add(Phi, Y, weight)


def ridge(Phi, Y, weight, penalty, intercept):
    """Return weights and intercept by least squares on the rows of the penalty."""
    root, p = np.sqrt(weight)[:, None], Phi.shape[1]
    left = np.hstack([root * Phi, root * intercept])
    below = np.hstack([np.sqrt(weight.sum() * penalty) * np.eye(p), np.zeros((p, 1))])
    right = np.vstack([root * Y, np.zeros((p, Y.shape[1]))])
    found = np.linalg.lstsq(np.vstack([left, below]), right, rcond=None)[0]
    return found[:p], found[p] * intercept


def squared_error(Phi, Y, weight, w, constant):
    """Return Σ of squared residuals, averaged over outputs, in extended precision."""
    Phi, Y, w = (np.asarray(a, np.longdouble) for a in (Phi, Y, w))
    return float((weight[:, None] * (Y - Phi @ w - constant) ** 2).sum(axis=0).mean())


@given(seed=seeds, intercept=st.booleans(), weighted=st.booleans())
@often
def test_every_pair_is_a_fit_from_scratch(seed, intercept, weighted):
    Phi, Y, w = rows(seed)
    w = w if weighted else np.ones(len(Y))
    model = NestedRidge(of(Phi, Y, w if weighted else None), intercept=intercept)
    sizes = np.array([1, 3, 4, P])
    for penalty in PENALTIES:
        W = model.solve(np.full(len(sizes), penalty), sizes)
        assert W.shape == (P, len(sizes), T)
        for s, size in enumerate(sizes):
            expected, constant = ridge(Phi[:, :size], Y, w, penalty, intercept)
            assert_allclose(W[:size, s], expected, rtol=1e-7, atol=1e-9)
            assert (W[size:, s] == 0).all()
            assert_allclose(model.intercept(W[:, s]), constant, rtol=1e-7, atol=1e-9)


def test_ridge_with_intercept_is_scikit_learns():
    Phi, Y, w = rows(1)
    model = NestedRidge(of(Phi, Y, w), intercept=True)
    W = model.solve(np.array([0.1]), np.array([P]))[:, 0]
    theirs = Ridge(alpha=0.1 * w.sum()).fit(Phi, Y, w)
    assert_allclose(W, theirs.coef_.T, rtol=1e-9)
    assert_allclose(model.intercept(W), theirs.intercept_, rtol=1e-9)


@with_and_without
def test_every_pair_may_have_its_own_penalty(intercept):
    Phi, Y, w = rows(2)
    model = NestedRidge(of(Phi, Y, w), intercept=intercept)
    sizes, penalties = np.array([2, 5, 5, P]), np.array([1.0, 0.1, 0.01, 1e-3])
    W = model.solve(penalties, sizes)
    for s, (size, penalty) in enumerate(zip(sizes, penalties, strict=True)):
        expected, _ = ridge(Phi[:, :size], Y, w, penalty, intercept)
        assert_allclose(W[:size, s], expected, rtol=1e-8, atol=1e-10)
        assert (W[size:, s] == 0).all()


@given(seed=seeds, intercept=st.booleans())
@often
def test_errors_come_from_moments_at_every_size(seed, intercept):
    Phi, Y, w = rows(seed)
    Phi_out, Y_out, w_out = rows(seed + 1, 10)
    model = NestedRidge(of(Phi, Y, w), intercept=intercept)
    held = [model.moments(of(Phi_out, Y_out, w_out)), model.moments()]
    sizes = np.arange(1, P + 1)
    for penalty in PENALTIES:
        R, z = model.factor(penalty, P)
        solved = model.solve(np.full(P, penalty), sizes)
        at_once = [moments.errors_of_every_size(R, z)[0] for moments in held]
        one_by_one = [moments.squared_errors(solved)[0] for moments in held]
        for size in sizes:
            expected, constant = ridge(Phi[:, :size], Y, w, penalty, intercept)
            truth = (
                squared_error(Phi_out[:, :size], Y_out, w_out, expected, constant),
                squared_error(Phi[:, :size], Y, w, expected, constant),
            )
            for found in (at_once, one_by_one):
                assert [e[size - 1] for e in found] == pytest.approx(truth, rel=1e-8)


@with_and_without
def test_few_and_many_sizes_take_different_routes_to_the_same_errors(intercept, monkeypatch):
    Phi, Y, w = rows(3, 80, 40)
    model = NestedRidge(of(Phi[:60], Y[:60], w[:60]), intercept=intercept, floor=1e-9)
    held = [model.moments(of(Phi[60:], Y[60:], w[60:])), model.moments()]
    penalties, routes = np.full(40, 1e-3), []
    whole = type(held[0]).errors_of_every_size
    monkeypatch.setattr(
        type(held[0]), "errors_of_every_size",
        lambda *a: routes.append("every size") or whole(*a),
    )  # fmt: skip
    many = model.squared_errors(penalties, np.arange(1, 41), held)
    assert routes == ["every size"] * 2
    for i in (0, 9, 10, 39):
        few = model.squared_errors(penalties[:1], np.array([i + 1]), held)
        for (errors, bounds), (all_errors, all_bounds) in zip(few, many, strict=True):
            assert errors[0] == pytest.approx(all_errors[i], rel=1e-9)
            assert bounds[0] == pytest.approx(all_bounds[i], rel=1e-6)
    assert len(routes) == 2


def test_the_largest_size_of_a_grid_may_be_below_the_number_of_features():
    Phi, Y, w = rows(4)
    model = NestedRidge(of(Phi, Y, w), intercept=True)
    sizes = np.array([1, 2, 4])  # many for seven features: all sizes at once
    ((errors, _),) = model.squared_errors(np.full(3, 0.01), sizes, [model.moments()])
    for size, error in zip(sizes, errors, strict=True):
        expected = ridge(Phi[:, :size], Y, w, 0.01, True)
        truth = squared_error(Phi[:, :size], Y, w, *expected)
        assert error == pytest.approx(truth, rel=1e-9)


@with_and_without
def test_no_features_at_all_predict_the_mean(intercept):
    Phi, Y, w = rows(5)
    model = NestedRidge(of(Phi, Y, w), intercept=intercept)
    sizes = np.array([0, 2])
    W = model.solve(np.full(2, 0.1), sizes)
    assert (W[:, 0] == 0).all()
    ((errors, _),) = model.squared_errors(np.full(2, 0.1), sizes, [model.moments()])
    mean = np.average(Y, axis=0, weights=w) * intercept
    assert errors[0] == pytest.approx(squared_error(Phi, Y, w, np.zeros((P, T)), mean))
    assert_allclose(model.intercept(W[:, 0]), mean)
    assert model.freedom(np.full(2, 0.1), sizes)[0] == pytest.approx(float(intercept))


@with_and_without
def test_statistics_of_no_features_have_errors_too(intercept):
    _, Y, w = rows(5)
    model = NestedRidge(of(np.empty((len(Y), 0)), Y, w), intercept=intercept)
    ((errors, _),) = model.squared_errors(np.ones(1), np.zeros(1, int), [model.moments()])
    mean = np.average(Y, axis=0, weights=w) * intercept
    assert errors[0] == pytest.approx((w @ (Y - mean) ** 2).mean())


@given(seed=seeds, intercept=st.booleans(), exponent=st.integers(0, 9))
@often
def test_bounds_hold_where_errors_cancel(seed, intercept, exponent):
    Phi, _, w = rows(seed)
    rng = np.random.default_rng(seed)
    Y = Phi @ rng.normal(size=(P, T)) + 10.0**-exponent * rng.normal(size=(len(w), T))
    model = NestedRidge(of(Phi, Y, w), intercept=intercept)
    penalties, sizes = np.full(3, 1e-14), np.array([2, P - 1, P])
    W = model.solve(penalties, sizes)
    R, z = model.factor(1e-14, P)
    by_solve = model.moments().squared_errors(W)
    at_once = [values[sizes - 1] for values in model.moments().errors_of_every_size(R, z)]
    for errors, bounds in (by_solve, at_once):
        for s in range(3):
            truth = squared_error(Phi, Y, w, W[:, s], model.intercept(W[:, s]))
            assert abs(errors[s] - truth) <= bounds[s]
        if trusted(errors, bounds):
            assert errors[2] == pytest.approx(truth, rel=2e-3)
    if exponent >= 8:
        assert not trusted(*by_solve)
    if exponent <= 3:
        assert trusted(*by_solve)


def test_trusted_wants_every_error_well_above_its_bound():
    bounds = np.array([1e-9, 1e-9])
    assert trusted(np.array([1.0, 1.0]), bounds)
    assert not trusted(np.array([1.0, 1e-8]), bounds)
    assert not trusted(np.array([1.0, np.nan]), bounds)
    assert not trusted(np.zeros(2), np.zeros(2))


def test_the_error_of_the_statistics_counts_with_the_size_of_the_model():
    Phi, Y, w = rows(6)
    sizes = np.array([2, P])
    plain = NestedRidge(of(Phi, Y, w), intercept=False)
    raised = NestedRidge(of(Phi, Y, w), intercept=False, floor=0.5)
    W = plain.solve(np.full(2, 1e-3), sizes)
    without = plain.moments().squared_errors(W)[1]
    for moments in (raised.moments(), raised.moments(of(Phi, Y, w))):
        bounds = moments.squared_errors(W)[1]
        assert_allclose(bounds - without, 0.5 * (W**2).sum(axis=0).mean(axis=1), rtol=1e-9)


@given(seed=seeds, intercept=st.booleans(), weighted=st.booleans())
@often
def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix(seed, intercept, weighted):
    Phi, Y, w = rows(seed)
    w = w if weighted else np.ones(len(Y))
    model = NestedRidge(of(Phi, Y, w), intercept=intercept)
    sizes = np.array([1, 4, P])

    def trace(size, penalty):
        fits = [ridge(Phi[:, :size], np.eye(len(w))[:, [i]], w, penalty, intercept)
                for i in range(len(w))]  # fmt: skip
        return sum((Phi[i, :size] @ a + b).item() for i, (a, b) in enumerate(fits))

    for penalties in (np.full(3, 0.1), np.array([1.0, 0.1, 1e-4])):
        expected = [trace(*pair) for pair in zip(sizes, penalties, strict=True)]
        assert_allclose(model.freedom(penalties, sizes), expected, rtol=1e-7)


@pytest.mark.parametrize("penalty", [0.0, 1e-300, 1e-17])
@with_and_without
def test_no_penalty_on_dependent_features_is_the_pseudo_inverse(penalty, intercept):
    Phi, Y, w = rows(7)
    Phi[:, 3] = Phi[:, 0] - Phi[:, 2]
    model = NestedRidge(of(Phi, Y, w), intercept=intercept)
    W = model.solve(np.full(2, penalty), np.array([4, P]))
    assert np.isfinite(W).all()
    for s, size in enumerate((4, P)):
        expected, constant = ridge(Phi[:, :size], Y, w, 0.0, intercept)
        found = Phi @ W[:, s] + model.intercept(W[:, s])
        # A direction of rounding errors may take √ε of what it is asked for.
        assert_allclose(found, Phi[:, :size] @ expected + constant, rtol=1e-6, atol=1e-6)


def test_more_features_than_rows_interpolate_without_penalty():
    Phi, Y, _ = rows(8, 5)
    model = NestedRidge(of(Phi, Y), intercept=False)
    W = model.solve(np.zeros(1), np.array([P]))[:, 0]
    assert_allclose(Phi @ W, Y, atol=1e-6)


def test_all_zero_features():
    _, Y, _ = rows(9)
    model = NestedRidge(of(np.zeros((len(Y), P)), Y), intercept=True)
    W = model.solve(np.zeros(1), np.array([P]))[:, 0]
    assert (W == 0).all()
    assert_allclose(model.intercept(W), Y.mean(axis=0))


def test_statistics_that_are_no_gram_matrix():
    Phi, Y, _ = rows(10)
    negative = Statistics(P, T).subtract(Statistics(P, T)).merge(of(Phi, Y))
    negative.upper[...] *= -1
    with pytest.raises(NotPositiveDefiniteError, match="positive semidefinite"):
        NestedRidge(negative, intercept=False).solve(np.full(1, 1e-3), np.array([P]))


@with_and_without
def test_statistics_are_not_changed_by_what_is_made_of_them(intercept):
    Phi, Y, w = rows(11)
    inside, outside = of(Phi, Y, w), of(*rows(12))
    kept = copy.deepcopy(inside), copy.deepcopy(outside)
    model = NestedRidge(inside, intercept=intercept)
    sizes = np.arange(1, P + 1)
    model.squared_errors(np.full(P, 0.1), sizes, [model.moments(outside), model.moments()])
    model.squared_errors(np.linspace(0.1, 1, P), sizes, [model.moments(outside)])
    model.freedom(np.full(P, 0.1), sizes)
    for one, other in zip((inside, outside), kept, strict=True):
        for name in FIELDS:
            assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


# The algorithm as the thesis prints it.


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), Matern(1.5, 2.0)])
@pytest.mark.parametrize("penalty", [1.0, 1e-3, 1e-6])
def test_the_printed_algorithm_is_the_nested_one_and_the_definition(rng, kernel, penalty):
    X, Y = rng.normal(size=(50, 2)), rng.normal(size=(50, 3))
    centers = X[:12]
    K_nm, K_mm = kernel(X, centers), kernel(centers)
    map = NystromMap(kernel, centers)
    model = NestedRidge(of(map.transform(X), Y), intercept=False)
    sizes = np.arange(1, 13)
    W = model.solve(np.full(12, penalty), sizes)
    steps = list(incremental_nystrom(K_nm, K_mm, Y, penalty))
    assert [len(step) for step in steps] == sizes.tolist()
    for t, alpha in enumerate(steps, start=1):
        A = K_nm[:, :t]
        expected = np.linalg.solve(A.T @ A + 50 * penalty * K_mm[:t, :t], A.T @ Y)
        assert_allclose(A @ alpha, A @ expected, rtol=1e-7, atol=1e-8)
        assert_allclose(alpha, expected, rtol=1e-4, atol=1e-5)
        ours = map.coefficients(W[:t, t - 1])
        assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_the_printed_algorithm_has_no_remedy_for_equal_centers(rng):
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(20, 1))
    kernel, centers = Gaussian(1.0), X[[0, 1, 0]]
    steps = incremental_nystrom(kernel(X, centers), kernel(centers), Y, 1e-3)
    next(steps), next(steps)
    with pytest.raises(NotPositiveDefiniteError, match="drops dependent centers"):
        next(steps)


def test_the_printed_algorithm_leaves_its_matrices(rng):
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(20, 1))
    K_nm, K_mm = Gaussian(1.0)(X, X[:5]), Gaussian(1.0)(X[:5])
    before = K_nm.copy(), K_mm.copy(), Y.copy()
    first, *_ = incremental_nystrom(K_nm, K_mm, Y, 1e-2)
    for ours, theirs in zip((K_nm, K_mm, Y), before, strict=True):
        assert_array_equal(ours, theirs)
    a = K_nm[:, :1]
    assert_allclose(first, a.T @ Y / (a.T @ a + 0.2 * K_mm[:1, :1]), rtol=1e-12)


# What statistics can do for a nested map.


def assert_same(ours, theirs, **tolerance):
    for name in FIELDS:
        one, other = getattr(ours, name), getattr(theirs, name)
        assert_allclose(one, other, err_msg=name, **tolerance)


def arrays(statistics):
    names = ("upper", "b", "yy", "feature_sum", "output_sum")
    return [getattr(statistics, name) for name in names]


def shares_memory(one, other):
    return any(np.shares_memory(a, b) for a in arrays(one) for b in arrays(other))


@given(seed=seeds, before=st.integers(0, P))
@often
def test_extended_is_the_statistics_of_all_features(seed, before):
    Phi, Y, w = rows(seed)
    old, new = of(Phi[:, :before], Y, w), of(Phi[:, before:], Y, w)
    kept = copy.deepcopy(old), copy.deepcopy(new)
    cross = Phi[:, :before].T @ np.diag(w) @ Phi[:, before:]
    grown = old.extended(cross, new)
    assert_same(grown, of(Phi, Y, w), rtol=1e-11, atol=1e-11)
    assert not shares_memory(grown, old)
    assert not shares_memory(grown, new)
    grown.add(Phi, Y, w).fade(0.5)
    for one, other in zip((old, new), kept, strict=True):
        assert_same(one, other, rtol=0, atol=0)


def test_features_of_other_rows_do_not_extend():
    Phi, Y, w = rows(0)
    with pytest.raises(ValueError, match="give the same rows"):
        of(Phi, Y, w).extended(np.zeros((P, P)), of(Phi[1:], Y[1:], w[1:]))


@given(seed=seeds)
@often
def test_whitened_is_the_statistics_of_whitened_features(seed):
    Phi, Y, w = rows(seed)
    factor = np.linalg.qr(np.random.default_rng(seed).normal(size=(P, P)) + 3 * np.eye(P))[1]
    raw = of(Phi, Y, w)
    kept = copy.deepcopy(raw)
    white = raw.whitened(np.asfortranarray(factor))
    size = np.linalg.cond(factor) ** 2
    expected = of(Phi @ np.linalg.inv(factor), Y, w)
    scale = max(np.abs(array).max() for array in arrays(expected))
    assert_same(white, expected, rtol=1e-9, atol=1e-13 * size * scale)
    assert not shares_memory(white, raw)
    white.add(Phi, Y).merge(raw)
    assert_same(raw, kept, rtol=0, atol=0)


def test_upper_is_what_is_accumulated():
    Phi, Y, w = rows(0)
    statistics = of(Phi, Y, w)
    A = Phi.T @ np.diag(w) @ Phi
    assert_allclose(np.triu(statistics.upper), np.triu(A), rtol=1e-12)
    assert_allclose(statistics.A, A, rtol=1e-12)
    assert np.shares_memory(statistics.upper, statistics.upper)
    assert not np.shares_memory(statistics.upper, statistics.A)


def test_merging_happens_in_place_and_sums_share_nothing():
    one, two = of(*rows(0)), of(*rows(1))
    kept = copy.deepcopy(one), copy.deepcopy(two)
    for combined in (one + two, two + one, (one + two) - two):
        assert not shares_memory(combined, one)
        assert not shares_memory(combined, two)
    memory = arrays(one)
    assert one.merge(two) is one
    for array, before in zip(arrays(one), memory, strict=True):
        assert array is before
    assert_same(two, kept[1], rtol=0, atol=0)
    assert not shares_memory(one, two)
    assert_same(one.subtract(two), kept[0], rtol=1e-12, atol=1e-12)


def test_merging_with_itself_doubles():
    one = of(*rows(0))
    expected = one + one
    assert_same(one.merge(one), expected, rtol=0, atol=0)
    assert expected.weight == pytest.approx(2 * rows(0)[2].sum())


def test_single_precision_parts_are_summed_in_double_precision():
    Phi, Y, w = (array.astype(np.float32) for array in rows(0))
    total, part = Statistics(P, T), of(Phi, Y, w, np.float32)
    memory = arrays(total)
    for _ in range(3):
        total.merge(part)
    for array, before in zip(arrays(total), memory, strict=True):
        assert array is before
        assert array.dtype == np.float64
    # Three times a float32 number is exact in float64 and not in float32.
    assert_array_equal(total.b, 3 * part.b.astype(np.float64))
    assert_array_equal(total.A, 3 * part.A.astype(np.float64))


def test_double_precision_is_not_lost_in_single_precision_sums():
    rest = tuple(array.astype(np.float32) for array in rows(0))
    single, double = of(*rest, np.float32), of(*rows(1))
    kept = copy.deepcopy(single)
    total = single + double
    assert_array_equal(total.b, kept.b.astype(np.float64) + double.b)
    assert_same(single, kept, rtol=0, atol=0)
    assert single.b.dtype == np.float32


# The dense operations behind all this.


def triangle(rng, p, dtype=np.float64):
    R = np.triu(rng.normal(size=(p, p)))
    R[np.diag_indices(p)] = rng.uniform(1, 2, p)
    return np.asfortranarray(R / np.sqrt(max(p, 1)), dtype)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(9, 6), (1, 6), (9, 1), (1, 1)])
def test_whiten(rng, order, dtype, shape):
    R = triangle(rng, shape[1])
    block = np.array(rng.normal(size=shape), dtype, order=order)
    expected = np.linalg.solve(R.T, block.astype(np.float64).T).T
    kept = R.copy()
    white = default_engine().whiten(R, block)
    assert white.dtype == dtype
    assert white.shape == shape
    scale = np.abs(expected).max()
    assert_allclose(white, expected, atol=(1e-4 if dtype == np.float32 else 1e-12) * scale)
    assert_array_equal(R, kept)


def test_whiten_of_a_part_of_an_array(rng):
    R, whole = triangle(rng, 4), rng.normal(size=(12, 9))
    expected = np.linalg.solve(R.T, whole[2:8, 3:7].T).T
    assert_allclose(default_engine().whiten(R, whole[2:8, 3:7]), expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_whiten_nothing(rng, shape):
    found = default_engine().whiten(triangle(rng, shape[1]), np.empty(shape))
    assert found.shape == shape


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("p", [0, 1, 2, 30])
def test_congruence_reads_and_gives_upper_triangles(rng, order, p):
    R = triangle(rng, p)
    full = rng.normal(size=(p, p))
    full = full + full.T
    A = np.array(np.triu(full) + np.tril(np.full((p, p), 1e300), -1), order=order)
    kept = A.copy(), R.copy()
    C = default_engine().congruence(A, R)
    inverse = np.linalg.inv(R)
    expected = inverse.T @ full @ inverse
    assert_allclose(np.triu(C), np.triu(expected), rtol=1e-7, atol=1e-7 * p**2)
    assert_array_equal(A, kept[0])
    assert_array_equal(R, kept[1])


def test_congruence_of_a_factor_is_the_identity(rng):
    R = triangle(rng, 20)
    assert_allclose(np.triu(default_engine().congruence(R.T @ R, R)), np.eye(20), atol=1e-9)


@pytest.mark.parametrize("p", [0, 1, 2, 30])
@pytest.mark.parametrize("order", ["C", "F"])
def test_invert_triangular(rng, order, p):
    R = np.array(triangle(rng, p), order=order)
    kept = R.copy()
    V = default_engine().invert_triangular(R)
    assert_allclose(V @ R, np.eye(p), atol=1e-8)
    assert_array_equal(V, np.triu(V))
    assert_array_equal(R, kept)
    for small, large in pairwise(range(0, p + 1, 5)):
        part = default_engine().invert_triangular(R[:large, :large])
        assert_allclose(part[:small, :small], V[:small, :small], rtol=1e-10)


# Distances by rows with suspects: near 0 they come from differences, elsewhere from products.


def brute(X, Z):
    X, Z = X.astype(np.longdouble), Z.astype(np.longdouble)
    return ((X[:, None] - Z[None]) ** 2).sum(axis=2).astype(np.float64)


@given(seed=seeds, copies=st.integers(1, 6), dtype=st.sampled_from([np.float32, np.float64]))
@often
def test_distances_of_a_few_equal_rows_are_exactly_zero(seed, copies, dtype):
    rng = np.random.default_rng(seed)
    Z = (rng.normal(size=(70, 5)) + 10 * rng.normal()).astype(dtype)
    X = (rng.normal(size=(90, 5)) + 10 * rng.normal()).astype(dtype)
    i, j = rng.choice(90, copies, replace=False), rng.choice(70, copies)
    X[i] = Z[j]
    S, expected = default_engine().squared_distances(X, Z), brute(X, Z)
    assert (S[i, j] == 0).all()
    assert (S >= 0).all()
    apart = expected > 0
    error = np.abs(S - expected)[apart] / expected[apart]
    assert error.max() < (1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12])
def test_distances_of_a_few_near_duplicates_are_accurate(rng, gap):
    Z = rng.normal(size=(60, 4))
    X = rng.normal(size=(80, 4))
    X[5], X[6], X[79] = Z[0] + gap, Z[0] - gap, Z[59] + gap
    S, expected = default_engine().squared_distances(X, Z), brute(X, Z)
    assert_allclose(S, expected, rtol=1e-9)


def test_distances_of_a_small_row_beside_a_large_center(rng):
    # The limit of a row goes by the largest center: nothing near may slip through.
    Z = rng.normal(size=(60, 4))
    Z[3] *= 1e5
    X = Z + 1e-5 * rng.normal(size=Z.shape)
    assert_allclose(default_engine().squared_distances(X, Z), brute(X, Z), rtol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("copies", [0, 3, 60])
def test_negative_distances_are_distances_with_the_other_sign(rng, form, dtype, copies):
    # A few equal rows are looked at one by one, many change the route.
    X, Z = rng.normal(size=(80, 4)).astype(dtype), rng.normal(size=(60, 4)).astype(dtype)
    X[:copies] = Z[0]
    plain = default_engine().squared_distances(form(X), form(Z), 0.7)
    negative = default_engine().squared_distances(form(X), form(Z), 0.7, negative=True)
    assert_array_equal(negative, -plain)
    assert (negative[:copies, 0] == 0).all()
    assert negative.dtype == dtype
    assert (negative <= 0).all()
    nothing = default_engine().squared_distances(form(X[:0]), form(Z), negative=True)
    assert nothing.shape == (0, 60)
