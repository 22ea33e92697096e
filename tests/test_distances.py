"""Distances, where the product form would cancel, too."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from imparo.engine import NumpyEngine, default_engine

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


def brute_squared_distances(X, Z):
    X, Z = np.asarray(X, np.longdouble), np.asarray(Z, np.longdouble)
    return np.square(X[:, None, :] - Z[None, :, :]).sum(axis=2)


@all_types
@all_orders
def test_squared_distances(engine, rng, dtype, order):
    X = np.array(rng.standard_normal((9, 4)), dtype, order=order)
    Z = np.array(rng.standard_normal((5, 4)), dtype, order=order)
    S = engine.squared_distances(X, Z)
    assert S.dtype == dtype
    assert S.flags.c_contiguous
    close(S, brute_squared_distances(X, Z), dtype)


def relative_error(S, X, Z, width=1.0):
    """Return the largest one over pairs that differ, after checking that others are 0."""
    expected = brute_squared_distances(X, Z) / width**2
    assert (S[expected == 0] == 0).all()
    apart = expected > 0
    assert apart.any()
    return float(np.max(np.abs(S - expected)[apart] / expected[apart]))


@pytest.mark.parametrize("n", [8, 200])
@pytest.mark.parametrize("width", [1.0, 0.3])
def test_float32_with_a_large_common_offset(engine, rng, n, width):
    X = (1e4 + rng.uniform(0, 1, (n, 3))).astype(np.float32)
    S = engine.squared_distances(X, X, width)
    assert S.dtype == np.float32
    assert relative_error(S, X, X, width) < 1e-3


def clusters(rng, dtype):
    """Return two tight clusters around 0 and around 10⁴, each exact in its type."""
    near = rng.uniform(0, 1, (40, 3)).astype(dtype)
    return np.vstack([near, near + dtype(1e4)]).astype(dtype)


@pytest.mark.parametrize("width", [1.0, 0.3])
def test_float64_clusters_far_apart(engine, rng, width):
    X = clusters(rng, np.float64)
    assert relative_error(engine.squared_distances(X, X, width), X, X, width) < 1e-8


@pytest.mark.parametrize("width", [1.0, 0.3])
def test_float32_clusters_far_apart(engine, rng, width):
    X = clusters(rng, np.float32)
    assert relative_error(engine.squared_distances(X, X, width), X, X, width) < 1e-3


def test_float32_outlier_does_not_spoil_the_others(engine, rng):
    X = rng.uniform(0, 1, (60, 3)).astype(np.float32)
    X[0] = 1e6
    assert relative_error(engine.squared_distances(X, X), X, X) < 1e-3


@all_types
@pytest.mark.parametrize("copies", [2, 30])
@pytest.mark.parametrize("width", [1.0, 0.3])
def test_duplicates_are_at_distance_zero(engine, rng, dtype, copies, width):
    rows = (3 + rng.standard_normal((4, 5))).astype(dtype)
    X = np.tile(rows, (copies, 1))
    for S in (
        engine.squared_distances(X, X, width),
        engine.squared_distances(X, rows, width),
        engine.squared_distances(sparse.csr_array(X), sparse.csr_array(rows), width),
        engine.absolute_distances(X, rows, width),
    ):
        same = np.equal.outer(np.arange(len(X)) % 4, np.arange(S.shape[1]) % 4)
        assert (S[same] == 0).all()
        assert (S[~same] > 0).all()


def near_duplicates(rng):
    X = rng.standard_normal((50, 3))
    X *= 1e3 / np.linalg.norm(X, axis=1, keepdims=True)
    step = rng.standard_normal((50, 3))
    return X, X + 1e-7 * step / np.linalg.norm(step, axis=1, keepdims=True)


@pytest.mark.parametrize("width", [1.0, 0.3])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_float64_near_duplicates(engine, rng, layout, width):
    X, Z = near_duplicates(rng)
    expected = np.diagonal(brute_squared_distances(X, Z)) / width**2
    S = np.diagonal(engine.squared_distances(layout(X), layout(Z), width))
    assert np.max(np.abs(S - expected) / expected) < 1e-6


@all_types
@pytest.mark.parametrize("left", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("width", [1.0, 2.5])
def test_sparse_distances_equal_dense_ones(engine, rng, dtype, left, width):
    X = sparse.random_array((12, 6), density=0.3, rng=1, dtype=dtype).toarray()
    Z = np.vstack(
        [X[:3], sparse.random_array((5, 6), density=0.3, rng=2, dtype=dtype).toarray()]
    )
    S = engine.squared_distances(left(X), sparse.csr_array(Z), width)
    assert isinstance(S, np.ndarray)
    assert S.dtype == dtype
    close(S, brute_squared_distances(X, Z) / width**2, dtype)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0)])
def test_squared_distances_of_no_rows(engine, layout, n, m):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        S = engine.squared_distances(layout(np.ones((n, 2))), layout(np.ones((m, 2))))
    assert S.shape == (n, m)


@pytest.mark.parametrize("width", [0.25, 2.0, 7.3])
@all_types
def test_width_divides_the_distance(engine, rng, dtype, width):
    X, Z = rng.standard_normal((2, 6, 3)).astype(dtype)
    squared = brute_squared_distances(X, Z) / width**2
    close(engine.squared_distances(X, Z, width), squared, dtype)
    absolute = np.abs(X[:, None].astype(float) - Z[None]).sum(axis=2) / width
    S = engine.absolute_distances(X, Z, width)
    assert S.dtype == dtype
    close(S, absolute, dtype)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_distances_leave_their_input_alone(engine, rng, layout):
    X, Z = rng.standard_normal((2, 6, 3))
    X_kept, Z_kept = X.copy(), Z.copy()
    engine.squared_distances(layout(X), layout(Z), 3.0)
    engine.absolute_distances(X, Z, 3.0)
    np.testing.assert_array_equal(X, X_kept)
    np.testing.assert_array_equal(Z, Z_kept)


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 20),
    m=st.integers(1, 20),
    d=st.integers(0, 4),
    spread=st.sampled_from([1e-6, 1.0, 1e3]),
    offset=st.sampled_from([0.0, 1.0, 1e4]),
)
def test_float64_distances_of_any_data(seed, n, m, d, spread, offset):
    rng = np.random.RandomState(seed)
    X = offset + spread * rng.standard_normal((n, d))
    Z = offset + spread * rng.standard_normal((m, d))
    Z[: m // 2] = X[rng.randint(n, size=m // 2)]
    S = default_engine().squared_distances(X, Z)
    expected = brute_squared_distances(X, Z)
    assert (S[expected == 0] == 0).all()
    # Rounding the data to float64 is itself an error of ε·offset.
    resolution = 1e-8 * expected + 1e-15 * offset * np.sqrt(expected)
    assert (np.abs(S - expected) <= resolution).all()
