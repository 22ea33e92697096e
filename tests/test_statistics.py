"""Statistics in Gram form: the laws of a sum, and direct formulas in NumPy."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import imparo
from imparo.errors import JitterWarning, NotPositiveDefiniteError
from imparo.statistics import Statistics

N, P, T = 13, 4, 2
FIELDS = ("A", "b", "yy", "feature_sum", "output_sum", "weight")

seeds = st.integers(0, 2**32 - 1)
cut_points = st.lists(st.integers(0, N), max_size=5).map(sorted)
often = settings(max_examples=50, deadline=None)


def whole_rows(seed, n=N):
    """Return whole numbers and square weights: every sum of them is exact."""
    rng = np.random.default_rng(seed)
    Phi = rng.integers(-9, 10, (n, P)).astype(float)
    Y = rng.integers(-9, 10, (n, T)).astype(float)
    return Phi, Y, rng.choice([0.0, 1.0, 4.0, 9.0], n)


def real_rows(seed, n=N):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, P)), rng.normal(size=(n, T)), rng.uniform(0.1, 3, n)


def of(Phi, Y, weight=None, dtype=np.float64):
    return Statistics(P, T, dtype).add(Phi, Y, weight)


def direct(Phi, Y, weight):
    W = np.diag(weight)
    A, b, yy = Phi.T @ W @ Phi, Phi.T @ W @ Y, Y.T @ W @ Y
    return A, b, yy, weight @ Phi, weight @ Y, weight.sum()


def values(statistics):
    return [getattr(statistics, name) for name in FIELDS]


def assert_same(statistics, expected, **tolerance):
    """Equal to other statistics or to six arrays; exactly where no tolerance is given."""
    if isinstance(expected, Statistics):
        expected = values(expected)
    for name, ours, theirs in zip(FIELDS, values(statistics), expected, strict=True):
        if tolerance:
            assert_allclose(ours, theirs, err_msg=name, **tolerance)
        else:
            assert_array_equal(ours, theirs, err_msg=name)


@given(seed=seeds, cuts=cut_points, weighted=st.booleans())
@often
def test_blocks_equal_one_pass_and_the_direct_formula(seed, cuts, weighted):
    Phi, Y, w = whole_rows(seed)
    blocks = Statistics(P, T)
    for rows in np.split(np.arange(N), cuts):
        blocks.add(Phi[rows], Y[rows], w[rows] if weighted else None)
    assert_same(blocks, of(Phi, Y, w if weighted else None))
    assert_same(blocks, direct(Phi, Y, w if weighted else np.ones(N)))


@given(seed=seeds)
@often
def test_real_rows_and_weights_equal_the_direct_formula(seed):
    Phi, Y, w = real_rows(seed)
    assert_same(of(Phi, Y, w), direct(Phi, Y, w), rtol=1e-12, atol=1e-12)


@given(seed=seeds, cuts=cut_points, weighted=st.booleans())
@often
def test_sparse_blocks_equal_dense_ones(seed, cuts, weighted):
    Phi, Y, w = whole_rows(seed)
    Phi[np.abs(Phi) < 5] = 0
    mixed = Statistics(P, T)
    forms = [sparse.csr_array, np.asarray, sparse.csr_matrix, sparse.csc_array]
    for i, rows in enumerate(np.split(np.arange(N), cuts)):
        mixed.add(forms[i % 4](Phi[rows]), Y[rows], w[rows] if weighted else None)
    assert_same(mixed, direct(Phi, Y, w if weighted else np.ones(N)))


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_single_precision(form, weighted):
    Phi, Y, w = real_rows(0)
    Phi32, Y32, w32 = (array.astype(np.float32) for array in (Phi, Y, w))
    single = of(form(Phi32), Y32, w32 if weighted else None, dtype=np.float32)
    assert all(value.dtype == np.float32 for value in values(single)[:-1])
    expected = direct(Phi, Y, w if weighted else np.ones(N))
    assert_same(single, expected, rtol=1e-5, atol=1e-5)


def test_whole_numbers_may_be_given_as_integers():
    Phi, Y, w = whole_rows(0)
    ours = of(Phi.astype(int), Y.astype(int), w.astype(int))
    assert_same(ours, direct(Phi, Y, w))


@given(a=seeds, b=seeds, c=seeds)
@often
def test_merge_is_associative_and_commutative(a, b, c):
    one, two, three = (of(*whole_rows(seed)) for seed in (a, b, c))
    assert_same((one + two) + three, one + (two + three))
    assert_same(one + two, two + one)
    rows = [np.concatenate(parts) for parts in zip(*map(whole_rows, (a, b, c)), strict=True)]
    assert_same(one + two + three, direct(*rows))


@given(a=seeds, b=seeds)
@often
def test_add_then_subtract_is_the_identity(a, b):
    one, two = of(*whole_rows(a)), of(*whole_rows(b))
    assert_same((one + two) - two, one)
    assert_same(one - one, Statistics(P, T))


def test_total_less_a_fold_is_the_training_part():
    Phi, Y, w = real_rows(1)
    total = of(Phi, Y, w)
    for fold in np.array_split(np.random.default_rng(0).permutation(N), 4):
        rest = np.setdiff1d(np.arange(N), fold)
        train = total - of(Phi[fold], Y[fold], w[fold])
        assert_same(train, direct(Phi[rest], Y[rest], w[rest]), rtol=1e-11, atol=1e-11)


def test_sums_and_differences_leave_their_operands():
    one, two = of(*real_rows(1)), of(*real_rows(2, 5))
    kept = copy.deepcopy(one), copy.deepcopy(two)
    total, rest = one + two, one - two
    total.add(*real_rows(3))
    rest.fade(0.5)
    assert_same(one, kept[0])
    assert_same(two, kept[1])


@given(seed=seeds, factor=st.sampled_from([0.25, 0.5, 1.0]))
@often
def test_fade_then_add_is_the_weighted_sum(seed, factor):
    old, new = whole_rows(seed), whole_rows(seed + 1)
    faded = of(*old).fade(factor).add(*new)
    # These factors are powers of two, so that nothing is rounded.
    weight = np.concatenate([factor * old[2], new[2]])
    rows = [np.concatenate(parts) for parts in zip(old[:2], new[:2], strict=True)]
    assert_same(faded, direct(*rows, weight))


@given(seed=seeds)
@often
def test_weights_are_copies(seed):
    Phi, Y, w = whole_rows(seed)
    times = w.astype(int)
    copies = of(np.repeat(Phi, times, axis=0), np.repeat(Y, times, axis=0))
    assert_same(of(Phi, Y, w), copies)


@given(seed=seeds)
@often
def test_centered_takes_out_the_weighted_means(seed):
    Phi, Y, w = real_rows(seed)
    Phi, Y = Phi + 3, Y - 7
    away, rest = Phi - np.average(Phi, 0, w), Y - np.average(Y, 0, w)
    A, b = of(Phi, Y, w).centered()
    assert_allclose(np.triu(A), np.triu(away.T @ np.diag(w) @ away), rtol=1e-9, atol=1e-9)
    assert_allclose(b, away.T @ np.diag(w) @ rest, rtol=1e-9, atol=1e-9)


@given(seed=seeds, penalty=st.sampled_from([1e-6, 0.01, 1.0]))
@often
def test_solve_is_ridge_of_the_mean_loss(seed, penalty):
    Phi, Y, w = real_rows(seed)
    root = np.sqrt(w)[:, None]
    # Least squares on the rows of the penalty: no normal equations in the reference.
    rows = np.vstack([root * Phi, np.sqrt(w.sum() * penalty) * np.eye(P)])
    outputs = np.vstack([root * Y, np.zeros((P, T))])
    expected = np.linalg.lstsq(rows, outputs, rcond=None)[0]
    assert_allclose(of(Phi, Y, w).solve(penalty), expected, rtol=1e-8, atol=1e-8)


def test_solve_leaves_the_statistics():
    ours = of(*real_rows(0))
    kept = copy.deepcopy(ours)
    ours.solve(0.1)
    ours.centered()
    ours.squared_error(np.ones((P, T)))
    ours.A[:] = 0
    assert_same(ours, kept)


def test_solve_of_singular_statistics_warns():
    Phi, Y, _ = whole_rows(0)
    Phi[:, 1] = Phi[:, 0]
    with pytest.warns(JitterWarning):
        w = of(Phi, Y).solve(0.0)
    assert np.isfinite(w).all()
    with pytest.raises(NotPositiveDefiniteError):
        of(Phi, Y).solve(-100.0)


@given(seed=seeds)
@often
def test_squared_error_is_that_of_the_residuals(seed):
    Phi, Y, w = real_rows(seed)
    coefficients = np.random.default_rng(seed).normal(size=(P, T))
    expected = w @ (Y - Phi @ coefficients) ** 2
    assert_allclose(of(Phi, Y, w).squared_error(coefficients), expected, rtol=1e-10)


def test_no_rows_and_no_outputs():
    Phi, Y, _ = whole_rows(0)
    ours = of(Phi, Y)
    kept = copy.deepcopy(ours)
    for form in (np.asarray, sparse.csr_array):
        assert_same(ours.add(form(Phi[:0]), Y[:0]), kept)
    mute = Statistics(P, 0).add(Phi, Y[:, :0])
    assert_array_equal(mute.A, Phi.T @ Phi)
    assert mute.solve(0.1).shape == (P, 0)


WRONG_ROWS = {
    "features": (np.ones((3, P + 1)), np.ones((3, T)), None),
    "outputs": (np.ones((3, P)), np.ones((3, T + 1)), None),
    "rows": (np.ones((3, P)), np.ones((2, T)), None),
    "transposed": (np.ones((P, 3)), np.ones((T, 3)), None),
    "one row, flat": (np.ones(P), np.ones(T), None),
    "flat outputs": (np.ones((3, P)), np.ones(3), None),
    "three axes": (np.ones((3, P, 1)), np.ones((3, T)), None),
    "sparse": (sparse.csr_array(np.ones((3, P + 1))), np.ones((3, T)), None),
}
WRONG_WEIGHTS = {
    "too few": np.ones(2),
    "column": np.ones((3, 1)),
    "negative": np.array([1.0, -1.0, 1.0]),
    "nan": np.array([1.0, np.nan, 1.0]),
    "infinite": np.array([1.0, np.inf, 1.0]),
}


@pytest.mark.parametrize("case", WRONG_ROWS)
def test_wrong_shapes_raise_and_change_nothing(case):
    ours = of(*real_rows(0))
    kept = copy.deepcopy(ours)
    with pytest.raises(ValueError, match="4 features and 2 outputs"):
        ours.add(*WRONG_ROWS[case])
    assert_same(ours, kept)


@pytest.mark.parametrize("case", WRONG_WEIGHTS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_wrong_weights_raise_and_change_nothing(case, form):
    ours = of(*real_rows(0))
    kept = copy.deepcopy(ours)
    with pytest.raises(ValueError, match="weight"):
        ours.add(form(np.ones((3, P))), np.ones((3, T)), WRONG_WEIGHTS[case])
    assert_same(ours, kept)


def test_more_than_there_is_cannot_be_subtracted():
    small, large = of(*whole_rows(0, 3)[:2]), of(*whole_rows(1, 8)[:2])
    kept = copy.deepcopy(small)
    with pytest.raises(ValueError, match="cannot be part of"):
        small.subtract(large)
    with pytest.raises(ValueError, match="cannot be part of"):
        small - large
    assert_same(small, kept)


@pytest.mark.parametrize("shape", [(P + 1, T), (P, T + 1), (1, 1)])
def test_other_shapes_cannot_be_merged(shape):
    ours = of(*real_rows(0))
    kept = copy.deepcopy(ours)
    for combine in (ours.merge, ours.subtract):
        with pytest.raises(ValueError, match="cannot be combined"):
            combine(Statistics(*shape))
    assert_same(ours, kept)


@pytest.mark.parametrize("factor", [0, -0.5, 1.1, np.nan, np.inf])
def test_fade_wants_a_factor_up_to_one(factor):
    ours = of(*real_rows(0))
    kept = copy.deepcopy(ours)
    with pytest.raises(ValueError, match="forgetting factor"):
        ours.fade(factor)
    assert_same(ours, kept)


@pytest.mark.parametrize("factor", [0.5, np.float64(0.5), np.float32(0.5)])
def test_fade_keeps_the_type(factor):
    Phi, Y, w = real_rows(0)
    faded = of(Phi, Y, w, dtype=np.float32).fade(factor)
    assert all(value.dtype == np.float32 for value in values(faded)[:-1])


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_inputs_are_not_modified(form):
    Phi, Y, w = real_rows(0)
    given_rows, outputs, weight = form(Phi.copy()), Y.copy(), w.copy()
    of(given_rows, outputs, weight)
    back = given_rows.toarray() if sparse.issparse(given_rows) else given_rows
    assert_array_equal(back, Phi)
    assert_array_equal(outputs, Y)
    assert_array_equal(weight, w)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saved_statistics_go_on_as_if_never_saved(tmp_path, dtype):
    ours = of(*real_rows(0), dtype=dtype)
    imparo.save(ours, tmp_path / "statistics.imparo")
    loaded = imparo.load(tmp_path / "statistics.imparo")
    assert type(loaded) is Statistics
    for one, other in zip(values(loaded)[:-1], values(ours)[:-1], strict=True):
        assert one.dtype == other.dtype
    assert_same(loaded, ours)
    more = real_rows(1)
    assert_same(loaded.add(*more).fade(0.3), ours.add(*more).fade(0.3))
    assert_array_equal(loaded.solve(0.1), ours.solve(0.1))


def test_a_model_of_another_shape_and_means_of_no_rows():
    statistics = Statistics(3, 1)
    with pytest.raises(ValueError, match=r"shape \(3, 1\), not \(3,\)"):
        statistics.squared_error(np.ones(3))
    with pytest.raises(ValueError, match="no rows"):
        statistics.centered()
