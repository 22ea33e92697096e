"""Engine: every operation against NumPy or exact arithmetic, in every layout and type."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from imparo.engine import (
    NumpyEngine,
    Tridiagonal,
    available_memory,
    default_engine,
    factor_with_jitter,
    parse_memory,
    row_blocks,
    rows_within,
)
from imparo.engine.blocks import PREFERRED_BLOCK_BYTES
from imparo.errors import JitterWarning, MemoryBudgetError, NotPositiveDefiniteError

TYPES = [np.float32, np.float64]
TOLERANCE = {np.float32: 1e-4, np.float64: 1e-12}
ORDERS = ["C", "F"]

all_types = pytest.mark.parametrize("dtype", TYPES)
all_orders = pytest.mark.parametrize("order", ORDERS)


@pytest.fixture(params=[NumpyEngine])
def engine(request):
    return request.param()


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def close(actual, expected, dtype=np.float64):
    np.testing.assert_allclose(
        actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * 10
    )


def positive_definite(rng, p, dtype=np.float64, order="C"):
    B = rng.standard_normal((2 * p, p))
    return np.array(B.T @ B + np.eye(p), dtype, order=order)


def upper_only(A):
    """Return A with its lower triangle spoiled."""
    A = A.copy(order="K")
    A[np.tril_indices_from(A, -1)] = np.nan
    return A


def test_default_engine_is_numpy():
    assert isinstance(default_engine(), NumpyEngine)
    assert default_engine().xp is np


# Products


@pytest.mark.parametrize("left_order", ORDERS)
@pytest.mark.parametrize("right_order", ORDERS)
@pytest.mark.parametrize("left_type", TYPES)
@pytest.mark.parametrize("right_type", TYPES)
def test_product(engine, rng, left_order, right_order, left_type, right_type):
    A = np.array(rng.standard_normal((5, 7)), left_type, order=left_order)
    B = np.array(rng.standard_normal((7, 3)), right_type, order=right_order)
    C = engine.product(A, B)
    dtype = np.result_type(left_type, right_type)
    assert C.dtype == dtype
    assert C.flags.c_contiguous
    close(C, A.astype(float) @ B.astype(float), dtype.type)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(7, 4), (1, 4), (7, 1), (1, 1)])
def test_product_with_one_column(engine, rng, shape, kind, order):
    """Another routine of BLAS, and the same product: of views, too."""
    A = np.array(rng.normal(size=shape), kind, order=order)
    B = rng.normal(size=(shape[1], 1)).astype(kind)
    for left, right in ((A, B), (A[::2], B), (A[:, ::-1], B[::-1]), (A, B.astype(float))):
        found = engine.product(left, right)
        assert found.shape == (left.shape[0], 1)
        assert found.dtype == np.result_type(left, right)
        np.testing.assert_allclose(found, left.astype(float) @ right, rtol=1e-5, atol=1e-5)


def test_product_of_views(engine, rng):
    A, B = rng.standard_normal((10, 14)), rng.standard_normal((14, 6))
    close(engine.product(A[::2, ::-2], B[::2, 1:4]), A[::2, ::-2] @ B[::2, 1:4])


@pytest.mark.parametrize(("n", "k", "m"), [(0, 3, 2), (2, 0, 3), (2, 3, 0), (0, 0, 0)])
@all_types
def test_product_of_empty_matrices(engine, n, k, m, dtype):
    C = engine.product(np.ones((n, k), dtype), np.ones((k, m), dtype))
    assert C.shape == (n, m)
    assert C.dtype == dtype
    assert not C.any()


@pytest.mark.parametrize("left", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("right", [np.asarray, sparse.csr_array])
def test_inner(engine, rng, left, right):
    X, Z = rng.standard_normal((5, 4)), rng.standard_normal((3, 4))
    S = engine.inner(left(X), right(Z))
    assert isinstance(S, np.ndarray)
    close(S, X @ Z.T)


@all_types
@all_orders
def test_gram_of_blocks_accumulates_in_the_upper_triangle(engine, rng, dtype, order):
    blocks = [np.array(rng.standard_normal((b, 4)), dtype, order=order) for b in (3, 0, 1, 6)]
    A = engine.zeros((4, 4), np.dtype(dtype))
    before = A
    for block in blocks:
        engine.accumulate_gram(A, block)
    assert A is before
    rows = np.vstack(blocks).astype(float)
    close(np.triu(A), np.triu(rows.T @ rows), dtype)


@all_orders
def test_gram_adds_to_what_is_there_in_either_layout(engine, rng, order):
    A = np.array(positive_definite(rng, 4), order=order)
    block = rng.standard_normal((3, 4))
    expected = A + block.T @ block
    engine.accumulate_gram(A, block)
    close(np.triu(A), np.triu(expected))


@all_types
def test_gram_of_sparse_blocks(engine, rng, dtype):
    blocks = [sparse.random_array((b, 5), density=0.4, rng=0, dtype=dtype) for b in (4, 7)]
    A = engine.zeros((5, 5), np.dtype(dtype))
    for block in blocks:
        engine.accumulate_gram(A, sparse.csr_array(block))
    rows = sparse.vstack(blocks).toarray().astype(float)
    assert rows.any()
    close(np.triu(A), np.triu(rows.T @ rows), dtype)


def test_gram_of_no_columns(engine):
    A = engine.zeros((0, 0), np.dtype(float))
    engine.accumulate_gram(A, np.ones((3, 0)))
    assert A.shape == (0, 0)


@pytest.mark.parametrize("left", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("right", [np.asarray, sparse.csr_array])
def test_accumulate_product(engine, rng, left, right):
    L, R = rng.standard_normal((6, 4)), rng.standard_normal((6, 2))
    C = engine.zeros((4, 2), np.dtype(float))
    C += 1
    for rows in row_blocks(6, 4):
        engine.accumulate_product(C, left(L[rows]), right(R[rows]))
    close(C, 1 + L.T @ R)


@all_orders
def test_symmetrize(engine, rng, order):
    A = positive_definite(rng, 5, order=order)
    B = upper_only(A)
    engine.symmetrize(B)
    np.testing.assert_array_equal(B, np.triu(A) + np.triu(A, 1).T)


# Factorizations


@all_types
@all_orders
@pytest.mark.parametrize("jitter", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
def test_cholesky(engine, rng, dtype, order, jitter, overwrite):
    A = positive_definite(rng, 6, dtype, order)
    given_, kept = upper_only(A), upper_only(A)
    R = engine.cholesky(given_, jitter=jitter, overwrite=overwrite)
    assert R.dtype == dtype
    np.testing.assert_array_equal(R, np.triu(R))
    assert (np.diagonal(R) > 0).all()
    close(R.T.astype(float) @ R, A, dtype)
    if not overwrite:
        np.testing.assert_array_equal(given_, kept)


def test_cholesky_of_a_view(engine, rng):
    A = positive_definite(rng, 8)
    part = A[::2, ::2]
    R = engine.cholesky(part)
    close(R.T @ R, part)


@pytest.mark.parametrize("jitter", [True, False])
def test_cholesky_of_nothing(engine, jitter):
    assert engine.cholesky(np.zeros((0, 0)), jitter=jitter).shape == (0, 0)


@all_types
@all_orders
def test_singular_matrix_gets_jitter_and_a_warning(engine, rng, dtype, order):
    B = rng.standard_normal((2, 6))
    A = np.array(100 * B.T @ B, dtype, order=order)
    kept = A.copy()
    with pytest.warns(JitterWarning, match="singular"):
        R = engine.cholesky(A)
    assert np.isfinite(R).all()
    share = 1e-3 if dtype == np.float32 else 1e-10
    assert np.abs(R.T.astype(float) @ R - A).max() < share * np.abs(A).max()
    np.testing.assert_array_equal(A, kept)


def test_positive_definite_matrix_gets_no_jitter(engine, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        R = engine.cholesky(np.diag([4.0, 9.0]))
    np.testing.assert_array_equal(R, np.diag([2.0, 3.0]))


@all_types
@pytest.mark.filterwarnings("ignore::imparo.errors.JitterWarning")
@pytest.mark.parametrize("A", [[[1, 2], [2, 1]], [[-1, 0], [0, -1]], [[1, 0], [0, -0.05]]])
def test_indefinite_matrix_is_refused(engine, dtype, A):
    with pytest.raises(NotPositiveDefiniteError, match="not positive definite"):
        engine.cholesky(np.array(A, dtype))


@all_types
@pytest.mark.parametrize("A", [[[1, 2], [2, 1]], [[1, 1], [1, 1]], [[0, 0], [0, 0]]])
def test_without_jitter_the_first_failure_is_raised(engine, dtype, A):
    with pytest.raises(NotPositiveDefiniteError, match="2 x 2"):
        engine.cholesky(np.array(A, dtype), jitter=False)


@pytest.mark.parametrize("jitter", [True, False])
@pytest.mark.parametrize(
    ("i", "j", "bad"),
    [
        (0, 0, np.nan),
        (0, 1, np.nan),
        (2, 2, np.nan),
        (0, 1, np.inf),
        (0, 0, np.inf),
    ],
)
def test_matrix_that_is_not_finite_is_refused(engine, i, j, bad, jitter):
    A = 2 * np.eye(3)
    A[i, j] = bad
    with pytest.raises(NotPositiveDefiniteError):
        engine.cholesky(A, jitter=jitter)


class Attempts:
    """Stands for a factorization that works from the given jitter on."""

    def __init__(self, needed):
        self.needed = needed
        self.tried = []

    def __call__(self, jitter):
        self.tried.append(jitter)
        return "factor" if jitter >= self.needed else None


@all_types
@pytest.mark.parametrize("scale", [1.0, 250.0, -3.0])
def test_jitter_escalates_by_ten(dtype, scale):
    eps = np.finfo(dtype).eps
    attempt = Attempts(needed=abs(scale) * eps * 50)
    with pytest.warns(JitterWarning, match="added to its diagonal") as record:
        assert factor_with_jitter(attempt, scale, np.dtype(dtype), "thing") == "factor"
    np.testing.assert_allclose(
        attempt.tried, abs(scale) * eps * np.array([0, 1, 10, 100]), rtol=1e-14
    )
    assert len(record) == 1
    message = str(record[0].message)
    assert "the thing" in message
    assert f"{attempt.tried[-1]:.1e}" in message


def test_no_jitter_where_none_is_needed():
    attempt = Attempts(needed=0.0)
    assert factor_with_jitter(attempt, 1.0, np.dtype(float)) == "factor"
    assert attempt.tried == [0.0]


def test_jitter_gives_up():
    attempt = Attempts(needed=np.inf)
    with pytest.raises(NotPositiveDefiniteError, match="the thing is not positive definite"):
        factor_with_jitter(attempt, 1.0, np.dtype(float), "thing")
    assert len(attempt.tried) == 1 + 8
    assert attempt.tried[-1] == pytest.approx(np.finfo(float).eps * 1e7)


@pytest.mark.parametrize("scale", [0.0, np.nan, np.inf])
def test_jitter_of_a_matrix_without_scale(scale):
    attempt = Attempts(needed=1e-300)
    with pytest.warns(JitterWarning):
        factor_with_jitter(attempt, scale, np.dtype(float))
    assert attempt.tried[-1] == np.finfo(float).eps


@all_types
@all_orders
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("columns", [(), (1,), (4,)])
def test_solve_triangular(engine, rng, dtype, order, transpose, columns):
    R = np.array(np.triu(rng.standard_normal((5, 5))) + 4 * np.eye(5), dtype, order=order)
    B = rng.standard_normal((5, *columns)).astype(dtype)
    kept = B.copy()
    W = engine.solve_triangular(R, B, transpose=transpose)
    assert W.dtype == dtype
    close((R.T if transpose else R).astype(float) @ W, B, dtype)
    np.testing.assert_array_equal(B, kept)


def test_solve_triangular_of_nothing(engine):
    assert engine.solve_triangular(np.zeros((0, 0)), np.zeros((0, 3))).shape == (0, 3)


@all_types
@all_orders
@pytest.mark.parametrize("overwrite", [True, False])
def test_eigh(engine, rng, dtype, order, overwrite):
    A = positive_definite(rng, 6, dtype, order)
    given_, kept = upper_only(A), upper_only(A)
    values, V = engine.eigh(given_, overwrite=overwrite)
    assert values.dtype == V.dtype == dtype
    assert (np.diff(values) >= 0).all()
    V, scale = V.astype(float), float(values[-1])
    close(V.T @ V, np.eye(6), dtype)
    close((V * values) @ V.T / scale, A / scale, dtype)
    if not overwrite:
        np.testing.assert_array_equal(given_, kept)


def test_eigh_of_nothing(engine):
    values, V = engine.eigh(np.zeros((0, 0)))
    assert values.shape == (0,)
    assert V.shape == (0, 0)


@all_types
@all_orders
def test_pivoted_cholesky_of_low_rank(engine, rng, dtype, order):
    B = rng.standard_normal((8, 3)) * [3.0, 2.0, 1.0]
    A = np.array(B @ B.T, dtype, order=order)
    L, pivots = engine.pivoted_cholesky(upper_only(A), 100 * np.finfo(dtype).eps)
    assert L.shape == (8, 3)
    assert L.dtype == dtype
    close(L.astype(float) @ L.T, A, dtype)
    # Each pivot is the largest diagonal entry that the ones before it leave.
    for step, pivot in enumerate(pivots):
        left = np.diagonal(A) - np.square(L[:, :step].astype(float)).sum(axis=1)
        assert pivot == np.argmax(left)
        assert abs(L[pivot, step + 1 :]).max(initial=0) == 0


@all_orders
def test_pivoted_cholesky_of_full_rank(engine, rng, order):
    A = positive_definite(rng, 6, order=order)
    kept = A.copy()
    L, pivots = engine.pivoted_cholesky(A, 0.0)
    assert sorted(pivots) == list(range(6))
    close(L @ L.T, A)
    np.testing.assert_array_equal(A, kept)


def test_pivoted_cholesky_stops_at_the_tolerance(engine):
    A = np.diag([0.5, 8.0, 2.0, 0.1])
    L, pivots = engine.pivoted_cholesky(A, 1.0)
    assert list(pivots) == [1, 2]
    close(L, np.array([[0, 0], [np.sqrt(8), 0], [0, np.sqrt(2)], [0, 0]]))


def test_pivoted_cholesky_of_zero(engine):
    L, pivots = engine.pivoted_cholesky(np.zeros((3, 3)), 0.0)
    assert L.shape == (3, 0)
    assert len(pivots) == 0


def test_pivoted_cholesky_of_a_matrix_below_the_tolerance(engine):
    L, pivots = engine.pivoted_cholesky(0.1 * np.eye(3), 1.0)
    assert L.shape == (3, 0)
    assert len(pivots) == 0


def test_orthonormalize(engine, rng):
    L = rng.standard_normal((7, 3))
    Q, R = engine.orthonormalize(L)
    assert Q.shape == (7, 3)
    close(Q.T @ Q, np.eye(3))
    close(Q @ R, L)
    np.testing.assert_array_equal(R, np.triu(R))


# Memory and blocks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2GB", 2 * 10**9),
        ("2 gb", 2 * 10**9),
        ("512MiB", 512 * 2**20),
        ("1.5kB", 1500),
        ("1KiB", 1024),
        ("3T", 3 * 10**12),
        ("3Ti", 3 * 2**40),
        (" 100 ", 100),
        ("100B", 100),
        (4096, 4096),
        (np.int64(4096), 4096),
        (4096.7, 4096),
        (1, 1),
    ],
)
def test_parse_memory(text, expected):
    parsed = parse_memory(text)
    assert parsed == expected
    assert type(parsed) is int


@pytest.mark.parametrize(
    "bad",
    [
        *("", "GB", "-1GB", "1.2.3GB", ".", "2PB", "lots", "1e9", "0", "99999999999TB"),
        *(0, -1, 0.5, np.inf, np.nan, True, [1], b"2GB"),
    ],
)
def test_parse_memory_errors(bad):
    with pytest.raises(ValueError, match="memory="):
        parse_memory(bad)


def test_memory_by_default():
    assert parse_memory(None) == available_memory() > 2**20


def test_rows_within():
    assert rows_within(100, 1000) == 10
    assert rows_within(100, 199) == 1
    assert rows_within(1000, 1000) == 1
    assert rows_within(1024, 2**40) == PREFERRED_BLOCK_BYTES // 1024
    # A row above the preferred size is still a block where the memory is there.
    assert rows_within(2 * PREFERRED_BLOCK_BYTES, 2**40) == 1
    assert rows_within(0, 1000) == 1000


def test_rows_within_too_little_memory():
    with pytest.raises(MemoryBudgetError, match="one row of K needs 1,001 bytes"):
        rows_within(1001, 1000, "one row of K")


@settings(deadline=None)
@given(bytes_per_row=st.integers(1, 10**9), memory=st.integers(1, 10**10))
def test_rows_within_never_exceeds_the_memory(bytes_per_row, memory):
    if bytes_per_row > memory:
        with pytest.raises(MemoryBudgetError):
            rows_within(bytes_per_row, memory)
    else:
        assert 1 <= rows_within(bytes_per_row, memory) <= memory // bytes_per_row


@settings(deadline=None)
@given(n_rows=st.integers(0, 300), block_rows=st.integers(1, 400))
def test_row_blocks_cover_every_row_once_in_order(n_rows, block_rows):
    slices = list(row_blocks(n_rows, block_rows))
    assert all(rows.stop <= n_rows for rows in slices)
    blocks = [range(n_rows)[rows] for rows in slices]
    assert [i for block in blocks for i in block] == list(range(n_rows))
    assert all(len(block) == block_rows for block in blocks[:-1])
    assert all(1 <= len(block) <= block_rows for block in blocks)


@pytest.mark.parametrize("p", [1, 2, 3, 65, 200])
@pytest.mark.parametrize("outputs", [1, 3])
def test_tridiagonal_form_solves_every_ridge(rng, p, outputs):
    A = positive_definite(rng, p)
    B, ridges = rng.standard_normal((p, outputs)), np.array([1e-6, 0.3, 100.0])
    lower = np.tril(A)  # the upper triangle is not read
    form = Tridiagonal(np.array(lower, order="F"))
    W = form.solve(ridges, B)
    assert W.shape == (p, 3, outputs)
    for i, ridge in enumerate(ridges):
        close(W[:, i], np.linalg.solve(A + ridge * np.eye(p), B))
    np.testing.assert_allclose(form.eigenvalues(), np.linalg.eigvalsh(A), rtol=1e-10)


def test_tridiagonal_form_of_a_singular_matrix(rng):
    B = rng.standard_normal((4, 9))
    form = Tridiagonal(np.array(B.T @ B, order="F"))
    values = form.eigenvalues()
    assert (values >= 0).all()
    assert np.count_nonzero(values > 1e-10) == 4
    w = form.solve(np.array([1e-3]), np.ones((9, 1)))[:, 0]
    close(w, np.linalg.solve(B.T @ B + 1e-3 * np.eye(9), np.ones((9, 1))), np.float32)
    with pytest.raises(NotPositiveDefiniteError, match="with a ridge of -1"):
        form.solve(np.array([-1.0]), np.ones((9, 1)))
