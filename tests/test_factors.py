"""The square-root form: QR, Cholesky and least squares in NumPy are the references."""

import copy
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg

import imparo
from imparo.engine import rotations
from imparo.errors import DowndateError, JitterWarning, NotPositiveDefiniteError
from imparo.factors import Factor
from imparo.statistics import Statistics

N, P, T = 14, 5, 2
FIELDS = ("R", "z", "residual", "weight")
CLOSE = {"rtol": 1e-10, "atol": 1e-10}

seeds = st.integers(0, 2**32 - 1)
penalties = st.sampled_from([0.0, 0.1, 10.0])
cut_points = st.lists(st.integers(0, N), max_size=6).map(sorted)
often = settings(max_examples=50, deadline=None)


@pytest.fixture(params=["compiled", "blas"])
def route(request, monkeypatch):
    """One row at a time by the compiled loop, or without numba by BLAS."""
    if request.param == "blas":
        monkeypatch.setattr(rotations, "compiled", lambda: None)
    elif rotations.compiled() is None:
        pytest.skip("numba is not installed")
    return request.param


def some_rows(seed, n=N, p=P, outputs=T):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.normal(size=(n, outputs))


def some_weights(seed, n=N):
    return np.random.default_rng(seed).uniform(0.1, 3, n)


def of(Phi, Y, weight=None, penalty=0.1):
    return Factor(Phi.shape[1], Y.shape[1], penalty).update(Phi, Y, weight)


def by_rows(Phi, Y, penalty=0.1, dtype=np.float64):
    factor = Factor(Phi.shape[1], Y.shape[1], penalty, dtype)
    for x, y in zip(Phi, Y, strict=True):
        factor.update(x[None], y[None])
    return factor


def reference(Phi, Y, weight, ridge):
    """Return R, z, residual, total: one QR and one least squares of all rows at once.

    ``ridge`` is the diagonal of the penalty; its roots are rows like any others.
    """
    root, p = np.sqrt(weight)[:, None], Phi.shape[1]
    rows = np.vstack([np.sqrt(ridge) * np.eye(p), root * Phi])
    outputs = np.vstack([np.zeros((p, Y.shape[1])), root * Y])
    Q, R = np.linalg.qr(rows)
    sign = np.sign(np.diag(R))[:, None]
    left = outputs - rows @ np.linalg.lstsq(rows, outputs, rcond=None)[0]
    return sign * R, sign * (Q.T @ outputs), np.sum(left**2, axis=0), weight.sum()


def assert_same(factor, expected, **tolerance):
    """Equal to another factor or to R, z, residual, weight; exactly without tolerance."""
    if isinstance(expected, Factor):
        expected = [getattr(expected, name) for name in FIELDS]
    for name, theirs in zip(FIELDS, expected, strict=True):
        if tolerance:
            assert_allclose(getattr(factor, name), theirs, err_msg=name, **tolerance)
        else:
            assert_array_equal(getattr(factor, name), theirs, err_msg=name)


def assert_gram(factor, expected):
    """RᵀR is what it should be, and R is its Cholesky factor: upper, diagonal positive."""
    assert_allclose(factor.R.T @ factor.R, expected, **CLOSE)
    assert_allclose(factor.R, linalg.cholesky(expected), **CLOSE)


@given(seed=seeds, cuts=cut_points, penalty=penalties, weighted=st.booleans())
@often
def test_any_blocks_give_the_factor_of_one_qr(seed, cuts, penalty, weighted):
    Phi, Y = some_rows(seed)
    w = some_weights(seed) if weighted else np.ones(N)
    factor = Factor(P, T, penalty)
    for rows in np.split(np.arange(N), cuts):
        factor.update(Phi[rows], Y[rows], w[rows] if weighted else None)
    assert_same(factor, reference(Phi, Y, w, penalty), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_single_rows_give_the_factor_of_one_qr(route, penalty):
    Phi, Y = some_rows(0)
    expected = reference(Phi, Y, np.ones(N), penalty)
    assert_same(by_rows(Phi, Y, penalty), expected, **CLOSE)
    assert_same(of(Phi, Y, penalty=penalty), expected, **CLOSE)


@pytest.mark.parametrize("build", [of, by_rows])
def test_factor_is_that_of_cholesky(route, build):
    Phi, Y = some_rows(1)
    gram = 0.1 * np.eye(P) + Phi.T @ Phi
    factor = build(Phi, Y)
    assert_gram(factor, gram)
    z = linalg.solve_triangular(linalg.cholesky(gram), Phi.T @ Y, trans=1)
    assert_allclose(factor.z, z, **CLOSE)
    assert_allclose(factor.solve(), np.linalg.solve(gram, Phi.T @ Y), **CLOSE)


@pytest.mark.parametrize("p", [1, 31, 32, 33, 70])
def test_sizes_around_the_block_of_the_qr(p):
    Phi, Y = some_rows(p, n=p + 9, p=p)
    expected = reference(Phi, Y, np.ones(p + 9), 0.1)
    assert_same(of(Phi, Y), expected, **CLOSE)
    assert_same(of(Phi[:2], Y[:2]).update(Phi[2:], Y[2:]), expected, **CLOSE)


def test_single_precision(route):
    Phi, Y = some_rows(2)
    expected = reference(Phi, Y, np.ones(N), 0.1)
    block = Factor(P, T, 0.1, np.float32).update(Phi, Y)
    single = by_rows(Phi, Y, dtype=np.float32)
    both = Factor(P, T, 0.1, np.float32).update(Phi[:8], Y[:8])
    both.update(Phi[8:], Y[8:]).update(Phi[:3], Y[:3]).downdate(Phi[:3], Y[:3])
    for factor in (block, single, both):
        assert {factor.R.dtype, factor.z.dtype, factor.residual.dtype} == {np.dtype(np.float32)}
        assert_same(factor, expected, rtol=1e-4, atol=1e-4)
    faded = block.fade(np.float64(0.5))
    assert faded.R.dtype == faded.solve().dtype == np.float32


def triangle(rng, p, outputs, dtype):
    R = np.triu(rng.normal(size=(p, p))).astype(dtype)
    R[np.diag_indices(p)] = np.abs(np.diag(R)) + 0.5
    return R, rng.normal(size=(p, outputs)).astype(dtype)


needs_numba = pytest.mark.skipif(rotations.compiled() is None, reason="numba is not installed")
DTYPES = [(np.float64, 1e-12), (np.float32, 1e-5)]


@needs_numba
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("outputs", [0, 1, 3])
@pytest.mark.parametrize("p", [1, 2, 7, 40])
def test_both_routes_in_agree(p, outputs, dtype, tolerance):
    rng = np.random.default_rng(p)
    R, z = triangle(rng, p, outputs, dtype)
    R[p // 2, p // 2] = 0
    x, y = rng.normal(size=p).astype(dtype), rng.normal(size=outputs).astype(dtype)
    x[p // 3 : p // 2] = 0
    compiled, by_blas = ([a.copy() for a in (R, z, x, y)] for _ in range(2))
    rotations.compiled()[0](*compiled)
    rotations.row_in_by_blas(*by_blas)
    for one, other in zip(compiled, by_blas, strict=True):
        assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    # And what they agree on is the factor of the stacked rows.
    new_R, new_z, _, left = (a.astype(float) for a in by_blas)
    R, z, x, y = (a.astype(float) for a in (R, z, x, y))
    close = {"rtol": 10 * tolerance, "atol": 10 * tolerance}
    assert_allclose(new_R.T @ new_R, R.T @ R + np.outer(x, x), **close)
    assert_allclose(new_R.T @ new_z, R.T @ z + np.outer(x, y), **close)
    energy = np.sum(z**2, axis=0) + y**2
    assert_allclose(np.sum(new_z**2, axis=0) + left**2, energy, **close)


@needs_numba
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("p", [1, 2, 7, 40])
def test_both_routes_out_agree(p, dtype, tolerance):
    rng = np.random.default_rng(p)
    R, _ = triangle(rng, p, 0, dtype)
    a = rng.normal(size=p)
    a = (0.8 * a / np.linalg.norm(a)).astype(dtype)
    c, s = rotations.downdate_rotations(a, float(np.sqrt(1 - a @ a)))
    assert c.dtype == s.dtype == dtype
    outs = []
    for rotate in (rotations.compiled()[1], rotations.row_out_by_blas):
        new, row = R.copy(), np.zeros(p, dtype)
        rotate(new, c, s, row)
        outs.append((new, row))
    for one, other in zip(*outs, strict=True):
        assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    # The row that comes out is x = Rᵀa.
    R, new = R.astype(float), outs[1][0].astype(float)
    x, close = R.T @ a, {"rtol": 10 * tolerance, "atol": 10 * tolerance}
    assert_allclose(outs[1][1], x, **close)
    assert_allclose(new.T @ new, R.T @ R - np.outer(x, x), **close)


@given(seed=seeds, k=st.integers(0, 6), weighted=st.booleans())
@often
def test_update_then_downdate_is_the_identity(seed, k, weighted):
    factor = of(*some_rows(seed))
    kept = copy.deepcopy(factor)
    more, w = some_rows(seed + 1, k), some_weights(seed, k) if weighted else None
    factor.update(*more, w).downdate(*more, w)
    assert_same(factor, kept, rtol=1e-9, atol=1e-9)


def test_downdate_leaves_the_factor_of_the_rest(route):
    Phi, Y = some_rows(3)
    gone = np.array([11, 0, 5, 6])
    rest = np.setdiff1d(np.arange(N), gone)
    factor = of(Phi, Y).downdate(Phi[gone], Y[gone])
    expected = reference(Phi[rest], Y[rest], np.ones(len(rest)), 0.1)
    assert_same(factor, expected, **CLOSE)
    # Down to the penalty alone, and up again.
    factor.downdate(Phi[rest], Y[rest])
    assert_allclose(factor.R, np.sqrt(0.1) * np.eye(P), rtol=1e-8, atol=1e-8)
    assert_allclose(factor.residual, 0, atol=1e-8)
    assert factor.weight == 0
    assert_same(factor.update(Phi[rest], Y[rest]), expected, rtol=1e-8, atol=1e-8)


@given(seed=seeds)
@often
def test_rows_never_added_cannot_be_taken_out(seed):
    factor = of(*some_rows(seed))
    kept = copy.deepcopy(factor)
    Phi, Y = some_rows(seed + 1, 1)
    # Longer than all rows together: the rest would be indefinite.
    Phi *= 2 * np.linalg.norm(factor.R) / np.linalg.norm(Phi)
    with pytest.raises(DowndateError, match="only rows that were added"):
        factor.downdate(Phi, Y)
    assert_same(factor, kept)


@pytest.mark.parametrize("position", [0, 2, 3])
def test_failed_downdate_of_many_rows_changes_nothing(route, position):
    Phi, Y = some_rows(4)
    factor = of(Phi, Y)
    kept = copy.deepcopy(factor)
    rows = Phi[:4].copy()
    rows[position] *= 100
    with pytest.raises(DowndateError):
        factor.downdate(rows, Y[:4])
    assert_same(factor, kept)


def test_a_row_comes_out_only_as_often_as_it_went_in():
    x, y = np.array([[1.0, 2.0]]), np.array([[3.0]])
    factor = Factor(2, 1, 0.5).update(x, y).update(x, y)
    factor.downdate(x, y).downdate(x, y)
    with pytest.raises(DowndateError):
        factor.downdate(x, y)


def test_outputs_never_added_cannot_be_taken_out():
    x = np.array([[1.0, 2.0]])
    factor = Factor(2, 1, 0.5).update(x, [[3.0]]).update(x[:, ::-1], [[1.0]])
    kept = copy.deepcopy(factor)
    with pytest.raises(DowndateError):
        factor.downdate(x, [[300.0]])
    assert_same(factor, kept)


def test_faded_rows_come_out_with_their_faded_weight():
    Phi, Y = some_rows(5)
    factor = of(Phi[:8], Y[:8]).fade(0.25)
    kept = copy.deepcopy(factor)
    with pytest.raises(DowndateError):
        factor.downdate(5 * Phi[:8], 5 * Y[:8])
    assert_same(factor, kept)
    factor.downdate(Phi[:3], Y[:3], np.full(3, 0.25))
    expected = reference(Phi[3:8], Y[3:8], np.full(5, 0.25), 0.25 * 0.1)
    assert_same(factor, expected, **CLOSE)


def test_nothing_can_be_taken_out_of_no_rows():
    factor = Factor(2, 1, 10.0)
    kept = copy.deepcopy(factor)
    with pytest.raises(DowndateError):
        factor.downdate([[0.1, 0.2]], [[1.0]])
    assert_same(factor, kept)


@pytest.mark.parametrize("rows", [[[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
def test_rows_that_a_factor_without_penalty_needs_stay(rows):
    factor = Factor(2, 1, 0.0).update(rows, [[1.0]] * len(rows))
    kept = copy.deepcopy(factor)
    with pytest.raises(DowndateError):
        factor.downdate([[1.0, 0.0]], [[1.0]])
    assert_same(factor, kept)


@given(seed=seeds, factor=st.floats(0.05, 1.0), by_row=st.booleans())
@often
def test_fade_then_update_is_the_weighted_sum(seed, factor, by_row):
    (old, old_y), (new, new_y) = some_rows(seed, 8), some_rows(seed + 1, 6)
    faded = of(old, old_y).fade(factor)
    for rows in np.split(np.arange(6), 6 if by_row else 1):
        faded.update(new[rows], new_y[rows])
    w = np.repeat([factor, 1.0], [8, 6])
    expected = reference(np.vstack([old, new]), np.vstack([old_y, new_y]), w, factor * 0.1)
    assert_same(faded, expected, rtol=1e-8, atol=1e-8)
    # The penalty fades with the rows.
    assert_gram(faded, factor * (0.1 * np.eye(P) + old.T @ old) + new.T @ new)


@given(seed=seeds, cuts=cut_points, penalty=st.sampled_from([0.0, 0.7]))
@often
def test_merge_is_one_pass_and_penalties_add(seed, cuts, penalty):
    Phi, Y = some_rows(seed)
    parts = [Factor(P, T, 0.3)]
    for rows in np.split(np.arange(N), cuts):
        parts.append(Factor(P, T, penalty).update(Phi[rows], Y[rows]))
    ridge = 0.3 + penalty * (len(parts) - 1)
    expected = reference(Phi, Y, np.ones(N), ridge)
    kept = copy.deepcopy(parts)
    for order in (parts, parts[::-1]):
        total = copy.deepcopy(order[0])
        for part in order[1:]:
            total.merge(part)
        assert_same(total, expected, rtol=1e-8, atol=1e-8)
    for part, before in zip(parts, kept, strict=True):
        assert_same(part, before)


@given(seed=seeds, weighted=st.booleans())
@often
def test_from_statistics_is_update_from_scratch(seed, weighted):
    Phi, Y = some_rows(seed)
    w = some_weights(seed) if weighted else None
    factor = Factor.from_statistics(Statistics(P, T).add(Phi, Y, w), 0.1)
    scratch = of(Phi, Y, w)
    assert_same(factor, scratch, rtol=1e-8, atol=1e-8)
    # It goes on from there, by single rows, blocks and downdates.
    more, outputs = some_rows(seed + 1, 5)
    for each in (factor, scratch):
        each.update(more[:1], outputs[:1]).update(more[1:], outputs[1:])
        each.downdate(more[2:3], outputs[2:3])
    assert_same(factor, scratch, rtol=1e-8, atol=1e-8)


def test_from_statistics_goes_on_by_single_rows(route):
    Phi, Y = some_rows(14)
    factor = Factor.from_statistics(Statistics(P, T).add(Phi[:8], Y[:8]), 0.1)
    for i in range(8, N):
        factor.update(Phi[i : i + 1], Y[i : i + 1])
    factor.downdate(Phi[:3], Y[:3])
    assert_same(factor, reference(Phi[3:], Y[3:], np.ones(N - 3), 0.1), **CLOSE)


@given(seed=seeds, penalty=st.sampled_from([0.01, 1.0]))
@often
def test_residual_is_the_least_penalized_error(seed, penalty):
    Phi, Y = some_rows(seed)

    def objective(w):
        return np.sum((Y - Phi @ w) ** 2, axis=0) + penalty * np.sum(w**2, axis=0)

    factor = of(Phi, Y, penalty=penalty)
    best = factor.solve()
    assert_allclose(objective(best), factor.residual, rtol=1e-9)
    step = np.random.default_rng(seed).normal(size=best.shape)
    assert (objective(best + 0.1 * step) > factor.residual).all()


def ill_conditioned(condition, n=60, p=8):
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.normal(size=(n, p)))[0]
    V = np.linalg.qr(rng.normal(size=(p, p)))[0]
    return U * np.logspace(0, -np.log10(condition), p) @ V.T, rng.normal(size=(p, 1))


@pytest.mark.parametrize("build", [of, by_rows])
def test_condition_number_is_not_squared(route, build):
    Phi, truth = ill_conditioned(1e9)
    Y = Phi @ truth
    error = np.linalg.norm(build(Phi, Y, penalty=0.0).solve() - truth)
    assert error < 1e-6 * np.linalg.norm(truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JitterWarning)
        try:
            w = Statistics(8, 1).add(Phi, Y).solve(0.0)
        except NotPositiveDefiniteError:
            return
    assert np.linalg.norm(w - truth) > 1000 * error


def test_merge_does_not_square_the_condition_number():
    Phi, truth = ill_conditioned(1e9)
    half = of(Phi[:30], Phi[:30] @ truth, penalty=0.0)
    half.merge(of(Phi[30:], Phi[30:] @ truth, penalty=0.0))
    assert np.linalg.norm(half.solve() - truth) < 1e-6 * np.linalg.norm(truth)


def test_weights_are_copies(route):
    Phi, Y = some_rows(6)
    times = np.random.default_rng(6).integers(0, 4, N)
    copies = of(np.repeat(Phi, times, axis=0), np.repeat(Y, times, axis=0))
    assert_same(of(Phi, Y, times), copies, **CLOSE)
    single = Factor(P, T, 0.1)
    for i in range(N):
        single.update(Phi[i : i + 1], Y[i : i + 1], times[i : i + 1])
    assert_same(single, copies, **CLOSE)


def test_one_weight_for_all_rows():
    Phi, Y = some_rows(6)
    assert_same(of(Phi, Y, 2.5), of(Phi, Y, np.full(N, 2.5)))


def test_no_outputs(route):
    Phi, Y = some_rows(7, outputs=0)
    factor = of(Phi[:5], Y[:5]).update(Phi[5:6], Y[5:6]).update(Phi[6:], Y[6:])
    assert_gram(factor, 0.1 * np.eye(P) + Phi.T @ Phi)
    factor.downdate(Phi[:3], Y[:3]).merge(of(Phi[:3], Y[:3]))
    assert_gram(factor, 0.2 * np.eye(P) + Phi.T @ Phi)
    assert factor.solve().shape == (P, 0)
    assert factor.residual.shape == (0,)


def test_no_rows_change_nothing():
    Phi, Y = some_rows(8)
    factor = of(Phi, Y)
    kept = copy.deepcopy(factor)
    assert_same(factor.update(Phi[:0], Y[:0]), kept)
    assert_same(factor.downdate(Phi[:0], Y[:0]), kept)
    assert_same(factor.update(Phi[:0], Y[:0], np.ones(0)), kept)


ONES = np.ones((3, P))
BAD_ROWS = {
    "nan": (np.where(np.eye(3, P), np.nan, 1.0), np.ones((3, T)), None),
    "infinity": (ONES, np.full((3, T), np.inf), None),
    "nan in one row": (np.full((1, P), np.nan), np.ones((1, T)), None),
    "features": (np.ones((3, P + 1)), np.ones((3, T)), None),
    "outputs": (ONES, np.ones((3, T + 1)), None),
    "rows": (ONES, np.ones((2, T)), None),
    "flat outputs": (ONES, np.ones(3), None),
    "three axes, one row": (np.ones((1, P, 2)), np.ones((1, T)), None),
    "three axes": (np.ones((3, P, 2)), np.ones((3, T)), None),
    "three axes of outputs": (ONES, np.ones((3, T, 2)), None),
    "negative weight": (ONES, np.ones((3, T)), np.array([1.0, -1e-3, 1.0])),
    "nan weight": (ONES, np.ones((3, T)), np.array([1.0, np.nan, 1.0])),
    "infinite weight": (ONES, np.ones((3, T)), np.array([1.0, np.inf, 1.0])),
    "too few weights": (ONES, np.ones((3, T)), np.ones(2)),
    "column of weights": (ONES, np.ones((3, T)), np.ones((3, 1))),
}


@pytest.mark.parametrize("case", BAD_ROWS)
@pytest.mark.parametrize("action", ["update", "downdate"])
def test_bad_rows_raise_and_change_nothing(action, case):
    factor = of(*some_rows(9)).update(ONES, np.ones((3, T)))
    kept = copy.deepcopy(factor)
    # A failed downdate would also be a ValueError; these never get that far.
    with pytest.raises(ValueError) as caught:
        getattr(factor, action)(*BAD_ROWS[case])
    assert caught.type is ValueError
    assert_same(factor, kept)


def test_other_shapes_cannot_be_merged():
    factor = of(*some_rows(9))
    kept = copy.deepcopy(factor)
    for shape in ((P + 1, T), (P, T + 1)):
        with pytest.raises(ValueError, match="do not fit a factor of 5 features"):
            factor.merge(Factor(*shape, 0.1))
    assert_same(factor, kept)


@pytest.mark.parametrize("factor", [0, -0.5, 1.1, np.nan, np.inf])
def test_fade_wants_a_factor_up_to_one(factor):
    ours = of(*some_rows(9))
    kept = copy.deepcopy(ours)
    with pytest.raises(ValueError, match="forgetting factor"):
        ours.fade(factor)
    assert_same(ours, kept)


@pytest.mark.parametrize("penalty", [-1e-9, np.nan, np.inf])
def test_penalty_is_a_finite_number_from_0_on(penalty):
    with pytest.raises(ValueError, match="penalty must be"):
        Factor(2, 1, penalty)
    with pytest.raises(ValueError, match="penalty must be"):
        Factor.from_statistics(Statistics(2, 1).add(np.eye(2), np.ones((2, 1))), penalty)


@pytest.mark.parametrize("build", [of, by_rows])
@pytest.mark.parametrize("n", [0, 1, P - 1])
def test_too_few_rows_without_penalty_cannot_be_solved(route, build, n):
    factor = build(*some_rows(10, n), penalty=0.0)
    with pytest.raises(ValueError, match="singular"):
        factor.solve()


@pytest.mark.parametrize("build", [of, by_rows])
def test_dependent_features_without_penalty_cannot_be_solved(build):
    Phi, Y = some_rows(10)
    Phi[:, 3] = Phi[:, 0] + Phi[:, 1]
    with pytest.raises(ValueError, match="singular"):
        build(Phi, Y, penalty=0.0).solve()


@pytest.mark.parametrize("build", [of, by_rows])
def test_features_of_any_scale_can_be_solved(build):
    Phi, Y = some_rows(10)
    scale = np.logspace(-12, 12, P)
    w = build(Phi * scale, Y, penalty=0.0).solve()
    expected = np.linalg.lstsq(Phi, Y, rcond=None)[0]
    assert_allclose(scale[:, None] * w, expected, **CLOSE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 2), (5, 1), (1, 2), (5, 0)])
def test_saved_factors_go_on_as_if_never_saved(tmp_path, route, dtype, shape):
    p, outputs = shape
    factor = Factor(p, outputs, 0.1, dtype).update(*some_rows(11, 8, p, outputs))
    imparo.save(factor, tmp_path / "factor.imparo")
    loaded = imparo.load(tmp_path / "factor.imparo")
    assert type(loaded) is Factor
    assert loaded.R.dtype == loaded.z.dtype == dtype
    assert_same(loaded, factor)
    Phi, Y = some_rows(12, 4, p, outputs)
    for each in (loaded, factor):
        each.update(Phi[:1], Y[:1]).update(Phi[1:], Y[1:]).downdate(Phi[:2], Y[:2])
        each.fade(0.9).merge(copy.deepcopy(each))
    assert_same(loaded, factor)


def test_inputs_are_not_modified(route):
    Phi, Y, w = *some_rows(13), some_weights(13)
    for array in (Phi, Y, w):
        array.flags.writeable = False
    kept = Phi.copy(), Y.copy(), w.copy()
    factor = of(Phi, Y, w).update(Phi[:1], Y[:1], w[:1]).update(Phi[:1], Y[:1])
    factor.downdate(Phi[:2], Y[:2]).update(np.asfortranarray(Phi), np.asfortranarray(Y))
    statistics = Statistics(P, T).add(Phi, Y)
    before = copy.deepcopy(vars(statistics))
    Factor.from_statistics(statistics, 0.1).update(Phi, Y).update(Phi[:1], Y[:1])
    for array, same in zip((Phi, Y, w), kept, strict=True):
        assert_array_equal(array, same)
    for name, value in before.items():
        assert_array_equal(getattr(statistics, name), value)


def test_lists_whole_numbers_and_one_flat_row_are_taken():
    Phi, Y = [[1, 2], [3, 4]], [[5], [6]]
    expected = reference(np.array(Phi), np.array(Y), np.ones(2), 0.1)
    assert_same(Factor(2, 1, 0.1).update(Phi, Y), expected, **CLOSE)
    flat = Factor(2, 1, 0.1).update([1, 2], [5]).update([3, 4], 6)
    assert_same(flat, expected, **CLOSE)
