"""The Nyström map: nested in the number of centers, whatever their rank."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

import imparo
from imparo.errors import NotPositiveDefiniteError
from imparo.features import Dropped, NystromMap
from imparo.features.independent import _CLEAR, extend_factor
from imparo.kernels import CallableKernel, Gaussian, Laplacian, Linear, Matern, Polynomial

KERNELS = [
    Gaussian(1.0),
    Laplacian(2.0),
    Matern(1.5, 1.0),
    Linear(),
    Polynomial(3),
    Gaussian(0.5) + 2 * Linear(),
]

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=30, deadline=None)
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def projected(kernel, X, centers):
    """Return K_nm K_mm⁺ K_mn, the kernel of projections on the span of the centers."""
    K_nm, K_mm = kernel(X, centers), kernel(centers)
    return K_nm @ np.linalg.pinv(K_mm, rcond=1e-11, hermitian=True) @ K_nm.T


def greedy(K, tolerance):
    """Return which columns are independent of those before them, by projections."""
    kept = []
    for j in range(len(K)):
        c = K[kept, j]
        left = K[j, j] - c @ np.linalg.pinv(K[np.ix_(kept, kept)], hermitian=True) @ c
        if left > tolerance * K[j, j]:
            kept.append(j)
    return kept


@every_kernel
def test_features_are_those_of_projections(rng, kernel):
    X, centers = rng.normal(size=(30, 3)), rng.normal(size=(12, 3))
    map = NystromMap(kernel, centers)
    Phi = map.transform(X)
    assert Phi.shape == (30, len(map))
    expected = projected(kernel, X, centers)
    assert_allclose(Phi @ Phi.T, expected, rtol=1e-6, atol=1e-8 * expected.max())
    # What is left out is not negative: ‖φ(x)‖² ≤ K(x, x).
    assert (np.sum(Phi**2, axis=1) <= kernel.diagonal(X) * (1 + 1e-9)).all()


@every_kernel
def test_all_rows_as_centers_give_the_kernel_back(rng, kernel):
    X = rng.normal(size=(25, 3))
    Phi = NystromMap(kernel, X).transform(X)
    K = kernel(X)
    assert_allclose(Phi @ Phi.T, K, atol=1e-9 * K.max())


def test_the_features_span_those_of_scikit_learn(rng):
    X = rng.normal(size=(40, 2))
    theirs = Nystroem(kernel="rbf", gamma=0.5, n_components=9, random_state=0).fit(X)
    Phi = NystromMap(Gaussian(1.0), X[theirs.component_indices_]).transform(X)
    Psi = theirs.transform(X)
    assert_allclose(Phi @ Phi.T, Psi @ Psi.T, atol=1e-9)


@every_kernel
def test_the_factor_is_that_of_the_kept_centers(rng, kernel):
    centers = rng.normal(size=(15, 3))
    map = NystromMap(kernel, centers)
    assert_array_equal(map.factor, np.triu(map.factor))
    assert_array_equal(map.centers, centers[map.positions])
    K = kernel(centers[map.positions])
    assert_allclose(map.factor.T @ map.factor, K, atol=1e-11 * K.max())
    assert len(map) + len(map.dropped) == map.n_given == 15


@given(seed=seeds, t=st.integers(0, 12), repeats=st.booleans())
@often
def test_the_first_columns_are_the_map_of_the_first_centers(seed, t, repeats):
    rng = np.random.default_rng(seed)
    X, centers = rng.normal(size=(10, 2)), rng.normal(size=(12, 2))
    if repeats:
        centers = centers[rng.integers(0, 6, 12)]
    kernel = Gaussian(0.7)
    whole, part = NystromMap(kernel, centers), NystromMap(kernel, centers[:t])
    (columns,) = whole.columns(t)
    assert columns == len(part)
    assert whole.positions[:columns].tolist() == part.positions.tolist()
    assert [d for d in whole.dropped if d.center < t] == part.dropped
    if t:
        left, right = whole.transform(X)[:, :columns], part.transform(X)
        assert_allclose(left, right, rtol=1e-6, atol=1e-8)


def test_columns_of_several_numbers_of_centers():
    centers = np.array([[0.0], [1.0], [0.0], [2.0], [1.0]])
    map = NystromMap(Gaussian(1.0), centers)
    assert map.columns([0, 1, 2, 3, 4, 5, 9]).tolist() == [0, 1, 2, 2, 3, 3, 3]
    assert map.columns(3).tolist() == [2]


@given(seed=seeds, cuts=st.lists(st.integers(0, 12), max_size=3).map(sorted))
@often
def test_growing_is_taking_all_centers_at_once(seed, cuts):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(9, 2))[rng.integers(0, 9, 12)]
    X, kernel = rng.normal(size=(8, 2)), Gaussian(0.7)
    parts = np.split(centers, cuts)
    map = NystromMap(kernel, parts[0])
    for part in parts[1:]:
        map = map.grow(part)
    whole = NystromMap(kernel, centers)
    assert map.positions.tolist() == whole.positions.tolist()
    assert [d.center for d in map.dropped] == [d.center for d in whole.dropped]
    assert [d.reason[:8] for d in map.dropped] == [d.reason[:8] for d in whole.dropped]
    assert map.n_given == whole.n_given == 12
    assert_allclose(map.factor, whole.factor, rtol=1e-6, atol=1e-9)
    assert_allclose(map.transform(X), whole.transform(X), rtol=1e-6, atol=1e-7)


def test_growing_leaves_the_map_as_it_was(rng):
    centers = rng.normal(size=(10, 2))
    map = NystromMap(Gaussian(1.0), centers[[0, 1, 0, 2]])
    before = map.centers.copy(), map.factor.copy(), map.positions.copy(), list(map.dropped)
    grown = map.grow(centers[[3, 1, 4]])
    assert_array_equal(map.centers, before[0])
    assert_array_equal(map.factor, before[1])
    assert_array_equal(map.positions, before[2])
    assert map.dropped == before[3]
    assert (map.n_given, grown.n_given) == (4, 7)
    assert [d.center for d in grown.dropped] == [2, 5]
    assert grown.dropped[1] == Dropped(5, "equal to center 1")
    assert_allclose(grown.factor[:3, :3], map.factor)


# Centers that add nothing.


def test_equal_centers_are_dropped_and_the_first_of_them_is_named(rng):
    rows = rng.normal(size=(3, 2))
    map = NystromMap(Gaussian(1.0), rows[[1, 0, 1, 2, 0, 1]])
    assert map.positions.tolist() == [0, 1, 3]
    assert map.dropped == [
        Dropped(2, "equal to center 0"),
        Dropped(4, "equal to center 1"),
        Dropped(5, "equal to center 0"),
    ]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_a_row_that_the_kernel_vanishes_at(form):
    map = NystromMap(Linear(), form(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])))
    assert map.positions.tolist() == [1]
    assert [d.center for d in map.dropped] == [0, 2]
    assert all("K(x, x) is 0" in d.reason for d in map.dropped)
    assert map.columns([1, 2, 3]).tolist() == [0, 1, 1]


def test_more_centers_than_the_dimension_of_a_linear_kernel(rng):
    centers, X = rng.normal(size=(20, 3)), rng.normal(size=(7, 3))
    map = NystromMap(Linear(), centers)
    assert map.positions.tolist() == [0, 1, 2]
    assert all("within rounding of the span" in d.reason for d in map.dropped)
    Phi = map.transform(X)
    assert_allclose(Phi @ Phi.T, X @ X.T, rtol=1e-9)


def test_constant_rows(rng):
    map = NystromMap(Gaussian(1.0), np.full((200, 2), 3.0))
    assert len(map) == 1
    assert {d.reason for d in map.dropped} == {"equal to center 0"}


def test_no_center_is_left():
    map = NystromMap(Linear(), np.zeros((4, 2)))
    assert len(map) == 0
    assert map.transform(np.ones((5, 2))).shape == (5, 0)
    assert map.columns([0, 4]).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("times", [0.5, 2.0])
def test_a_center_is_dropped_where_its_residual_is_in_the_rounding_errors(dtype, times):
    # Two rows at distance δ: 1 − exp(−δ²) ≈ δ² is left of the second, known to ε(1 + 1).
    limit = _CLEAR * 2 * np.finfo(dtype).eps
    centers = np.array([[0.0], [np.sqrt(times * limit)]], dtype)
    map = NystromMap(Gaussian(1.0), centers)
    if times > 1:
        assert map.dropped == []
        assert map.factor[1, 1] ** 2 == pytest.approx(float(centers[1, 0]) ** 2, rel=0.02)
    else:
        (dropped,) = map.dropped
        assert dropped.center == 1
        assert f"known to {limit:.1e}" in dropped.reason


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_independence_does_not_depend_on_the_size_of_the_kernel(rng, scale):
    centers = np.vstack([rng.normal(size=(4, 4)), np.ones((1, 4))])
    plain = NystromMap(Linear(), centers)
    scaled = NystromMap(Linear(), centers * scale)
    assert scaled.positions.tolist() == plain.positions.tolist() == [0, 1, 2, 3]
    assert_allclose(scaled.factor / scale, plain.factor, rtol=1e-9)


@pytest.mark.parametrize("dependent", [False, True])
def test_more_centers_than_are_decided_on_together(rng, dependent):
    centers = rng.normal(size=(300, 2))
    if dependent:
        # Within a block, across blocks, and in the last one.
        centers[[5, 140, 141, 270, 299]] = centers[[4, 0, 139, 271, 7]]
    kernel = Laplacian(1.0)
    map = NystromMap(kernel, centers)
    lost = [5, 140, 141, 271, 299] if dependent else []
    assert map.positions.tolist() == [j for j in range(300) if j not in lost]
    twins = {5: 4, 140: 0, 141: 139, 271: 270, 299: 7}
    assert [d.reason for d in map.dropped] == [f"equal to center {twins[j]}" for j in lost]
    K = kernel(centers[map.positions])
    assert_allclose(map.factor, np.linalg.cholesky(K).T, atol=1e-9)
    grown = NystromMap(kernel, centers[:100]).grow(centers[100:])
    assert grown.positions.tolist() == map.positions.tolist()
    assert_allclose(grown.factor, map.factor, atol=1e-9)


@given(seed=seeds, rank=st.integers(1, 9), start=st.integers(0, 12))
@often
def test_kept_columns_are_those_that_projections_find(seed, rank, start):
    rng = np.random.default_rng(seed)
    F = rng.integers(-3, 4, (12, rank)).astype(float)
    K = F @ F.T
    everything = greedy(K, 1e-9)
    first, new = [j for j in everything if j < start], np.arange(start, 12)
    T = np.linalg.cholesky(K[np.ix_(first, first)]).T if first else np.zeros((0, 0))
    found = extend_factor(T, K[np.ix_(first, new)], K[np.ix_(new, new)], 2.2e-16)
    chosen = [*first, *(start + found.kept).tolist()]
    assert chosen == everything
    assert_allclose(found.factor[: len(first), : len(first)], np.triu(T), rtol=1e-14)
    error = found.factor.T @ found.factor - K[np.ix_(chosen, chosen)]
    assert np.abs(error).max() < 1e-9 * max(1, K.max())
    lost = np.setdiff1d(np.arange(len(new)), found.kept)
    assert (np.abs(found.residuals[lost]) < 1e-9).all()
    assert (found.residuals[found.kept] > 1e-9).all()
    assert (found.residuals[found.kept] > found.limits[found.kept]).all()


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
def test_a_wide_kernel_keeps_what_can_be_resolved(rng, sigma):
    X, eps = rng.uniform(-1, 1, size=(150, 1)), np.finfo(np.float64).eps
    map = NystromMap(Gaussian(sigma), X)
    K = Gaussian(sigma)(X)
    assert len(map) < 40  # eigenvalues fall faster than any power
    assert len(map) >= np.count_nonzero(np.linalg.eigvalsh(K) > 1e-6)
    # No column of the inverse is longer than rounding errors allow.
    lengths = np.linalg.norm(np.linalg.inv(map.factor), axis=0)
    assert lengths.max() <= 1.01 / np.sqrt(_CLEAR * eps)
    # Nothing that is left of a dropped center exceeds what its residual is known to.
    found = extend_factor(np.zeros((0, 0)), K[:0], K, eps)
    assert found.kept.tolist() == map.positions.tolist()
    lost = np.setdiff1d(np.arange(150), found.kept)
    assert (found.residuals[lost] <= found.limits[lost]).all()
    Phi = map.transform(X)
    assert (1 - np.sum(Phi[lost] ** 2, axis=1) <= found.limits[lost] + 1e-9).all()
    assert_allclose(np.sum(Phi[found.kept] ** 2, axis=1), 1, atol=1e-9)


# Forms of rows, and what cannot be a kernel.


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(2)], ids=repr)
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_centers_are_those_of_dense_ones(rng, kernel, form):
    centers = rng.normal(size=(12, 5)) * (rng.uniform(size=(12, 5)) < 0.5)
    centers[7] = centers[2]
    X = rng.normal(size=(6, 5)) * (rng.uniform(size=(6, 5)) < 0.5)
    dense = NystromMap(kernel, centers)
    ours = NystromMap(kernel, form(centers[:5])).grow(form(centers[5:]))
    assert sparse.issparse(ours.centers)
    assert ours.positions.tolist() == dense.positions.tolist()
    assert [d.center for d in ours.dropped] == [d.center for d in dense.dropped]
    assert Dropped(7, "equal to center 2") in ours.dropped
    expected = dense.transform(X)
    assert_allclose(ours.transform(form(X)), expected, rtol=1e-6, atol=1e-8)
    assert_allclose(ours.transform(X), expected, rtol=1e-6, atol=1e-8)


def test_single_precision_rows_have_a_factor_in_double_precision(rng):
    X = rng.normal(size=(30, 2)).astype(np.float32)
    map = NystromMap(Gaussian(1.0), X[:8])
    assert map.factor.dtype == np.float64
    assert map.centers.dtype == map.transform(X).dtype == np.float32
    wide = NystromMap(Gaussian(1.0), X[:8].astype(np.float64))
    assert_allclose(map.factor, wide.factor, rtol=1e-12)
    assert_allclose(map.transform(X), wide.transform(X.astype(np.float64)), atol=1e-4)


def test_centers_of_whole_numbers():
    map = NystromMap(Gaussian(1.0), np.array([[0], [1], [0]]))
    wide = NystromMap(Gaussian(1.0), np.array([[0.0], [1.0], [0.0]]))
    assert map.dropped == wide.dropped
    assert_array_equal(map.factor, wide.factor)


def test_a_kernel_function_is_never_asked_for_no_rows(rng):
    X = rng.normal(size=(20, 2))
    map = NystromMap(CallableKernel(lambda A, B: rbf_kernel(A, B, gamma=0.5)), X[:6])
    expected = NystromMap(Gaussian(1.0), X[:6])
    assert_allclose(map.transform(X), expected.transform(X), rtol=1e-7, atol=1e-9)
    assert_allclose(map.grow(X[6:9]).factor, expected.grow(X[6:9]).factor, rtol=1e-7)


@every_kernel
def test_coefficients_of_centers_give_the_function(rng, kernel):
    X, centers = rng.normal(size=(20, 3)), rng.normal(size=(8, 3))
    map = NystromMap(kernel, centers)
    for t in (0, 1, len(map)):
        W = rng.normal(size=(t, 2))
        alpha = map.coefficients(W)
        assert alpha.shape == (t, 2)
        expected = map.transform(X)[:, :t] @ W
        assert_allclose(kernel(X, map.centers[:t]) @ alpha, expected, atol=1e-8)


@pytest.mark.filterwarnings("ignore:overflow")
def test_kernels_that_cannot_be_used(rng):
    X = rng.normal(size=(10, 2))
    with pytest.raises(NotPositiveDefiniteError, match="not positive definite on these rows"):
        NystromMap(CallableKernel(lambda A, B: -(A @ B.T)), X)
    # Distances, shifted: K(x, x) = 1 and yet no kernel.
    shifted = CallableKernel(lambda A, B: 1 + np.square(A[:, None] - B[None]).sum(axis=2))
    with pytest.raises(NotPositiveDefiniteError, match="not positive definite on these rows"):
        NystromMap(shifted, X)
    with pytest.raises(ValueError, match="gives NaN on these rows"):
        NystromMap(CallableKernel(lambda A, B: np.full((len(A), len(B)), np.nan)), X)
    with pytest.raises(ValueError, match="overflows on these rows; scale"):
        NystromMap(Polynomial(2), X * 1e160)


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_map_that_cannot_be_grown_is_as_it_was(rng):
    X = rng.normal(size=(10, 2))
    map = NystromMap(Polynomial(2), X[:3])
    factor = map.factor.copy()
    with pytest.raises(ValueError, match="overflows"):
        map.grow(X[3:] * 1e160)
    assert map.n_given == len(map) == 3
    assert_array_equal(map.factor, factor)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_saved_maps_go_on_as_if_never_saved(rng, tmp_path, form):
    centers, X = rng.normal(size=(9, 2)), rng.normal(size=(5, 2))
    centers[4] = centers[1]
    map = NystromMap(Gaussian(1.0), form(centers))
    imparo.save(map, tmp_path / "map.imparo")
    for loaded in (imparo.load(tmp_path / "map.imparo"), pickle.loads(pickle.dumps(map))):
        assert loaded.dropped == map.dropped
        assert_array_equal(loaded.transform(X), map.transform(X))
        more = form(rng.normal(size=(3, 2)))
        assert_array_equal(loaded.grow(more).factor, map.grow(more).factor)
