"""The spectrum, by both of its routes, and the largest eigenvalue."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import aslinearoperator

from imparo.engine import resolution
from imparo.errors import NotPositiveDefiniteError
from imparo.filters import (
    Spectrum,
    largest_eigenvalue,
)


def matrix(sigma, seed=0):
    """Return a random symmetric matrix with these eigenvalues, and its eigenvectors."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(len(sigma), len(sigma))))[0]
    K = (Q * sigma) @ Q.T
    return (K + K.T) / 2, Q


def gaussian(n, width, seed=0):
    x = np.random.default_rng(seed).uniform(size=(n, 1))
    return np.exp(-((x - x.T) ** 2) / (2 * width**2))


def assert_spectrum(spectrum, K, tolerance):
    """V diag(v) Vᵀ = K, V orthonormal, v ascending and those of NumPy."""
    size, V = np.linalg.norm(K, 2), spectrum.vectors.astype(float)
    r = len(spectrum.values)
    assert V.shape == (len(K), r)
    assert (spectrum.values >= 0).all()
    assert (np.diff(spectrum.values) >= 0).all()
    assert_allclose(V.T @ V, np.eye(r), atol=100 * tolerance)
    assert_allclose((V * spectrum.values) @ V.T, K, rtol=0, atol=tolerance * size)
    expected = np.linalg.eigvalsh(K)[len(K) - r :]
    assert_allclose(spectrum.values, np.maximum(expected, 0), rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("n", [1, 2, 30, 256, 300])
def test_spectrum_of_full_rank_is_that_of_eigh(n):
    K, _ = matrix(np.linspace(0.1, 1, n))
    kept = K.copy()
    spectrum = Spectrum.of(K)
    assert_array_equal(K, kept)
    assert len(spectrum.values) == n
    assert_spectrum(spectrum, K, 1e-13)
    assert_spectrum(Spectrum.of(K.copy(), overwrite=True), kept, 1e-13)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [40, 400])
def test_spectrum_of_low_rank_rebuilds_the_matrix(n, order):
    K = np.array(gaussian(n, 0.15), order=order)
    kept = K.copy()
    spectrum = Spectrum.of(K)
    assert_array_equal(K, kept)
    assert_spectrum(spectrum, K, 1e-12)
    # The short route leaves out directions, and only those that it cannot resolve.
    assert len(spectrum.values) == n if n < 256 else len(spectrum.values) < n // 4
    assert len(spectrum.values) >= np.sum(np.linalg.eigvalsh(K) > 10 * spectrum.floor)
    assert_spectrum(Spectrum.of(K.copy(), overwrite=True), K, 1e-12)


def test_spectrum_of_low_rank_products():
    Phi = np.random.default_rng(0).normal(size=(300, 7)) * np.logspace(0, -5, 7)
    spectrum = Spectrum.of(Phi @ Phi.T)
    assert_spectrum(spectrum, Phi @ Phi.T, 1e-12)
    assert len(spectrum.values) == 7
    singular = np.linalg.svd(Phi, compute_uv=False)[::-1]
    size = singular[-1] ** 2
    assert_allclose(spectrum.values, singular**2, rtol=0, atol=1e-13 * size)


@pytest.mark.parametrize("n", [30, 400])
def test_spectrum_in_single_precision(n):
    K = gaussian(n, 0.15).astype(np.float32)
    spectrum = Spectrum.of(K)
    assert spectrum.values.dtype == spectrum.vectors.dtype == np.float32
    assert_spectrum(spectrum, K.astype(float), 2e-5)
    assert spectrum.floor > 1e-6


@pytest.mark.parametrize("n", [1, 5, 300])
def test_spectrum_of_zero(n):
    spectrum = Spectrum.of(np.zeros((n, n)))
    assert_array_equal(spectrum.values, 0)
    assert spectrum.vectors.shape == (n, len(spectrum.values))
    assert spectrum.floor == 0


def swaps(n, diagonal=0.0):
    return np.kron(np.eye(n // 2), [[diagonal, 1.0], [1.0, diagonal]])


def one_swap_among(K):
    K = K.copy()
    K[:2, :], K[:, :2] = 0, 0
    K[0, 1] = K[1, 0] = 1e-3
    return K


def indefinite(n):
    low = gaussian(n, 0.15)
    return {
        "negative": -np.eye(n),
        "full rank": matrix(np.r_[-0.1, np.linspace(0.1, 1, n - 1)])[0],
        "low rank": matrix(np.r_[-0.1, np.zeros(n - 4), 1.0, 2.0, 3.0])[0],
        "negative diagonal entry": np.diag(np.r_[1.0, -1.0, np.zeros(n - 2)]),
        "zero diagonal": swaps(n),
        "tiny diagonal": swaps(n, 1e-20),
        "small diagonal": swaps(n, 1e-3),
        "one swap, low rank": one_swap_among(low),
        "one swap, full rank": one_swap_among(low + np.eye(n)),
        "difference of kernels": low - 0.5 * gaussian(n, 0.05),
    }


@pytest.mark.parametrize("n", [12, 256, 300])
@pytest.mark.parametrize("case", indefinite(4))
def test_indefinite_matrices_are_refused(case, n):
    K = indefinite(n)[case]
    with pytest.raises(NotPositiveDefiniteError, match="negative eigenvalue"):
        Spectrum.of(K)


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-3), (np.float32, 0.1)])
@pytest.mark.parametrize("seed", range(5))
def test_eigenvalues_at_the_floor_can_be_divided_by(dtype, error, seed):
    smallest = resolution(dtype)
    K, Q = matrix(np.r_[smallest, np.linspace(0.1, 1, 9)], seed)
    spectrum = Spectrum.of(K.astype(dtype))
    assert spectrum.floor == pytest.approx(smallest, rel=1e-5)
    # The worst output: all of it on the smallest eigenvalue.
    y = Q[:, 0].astype(dtype)
    alpha = spectrum.vectors @ ((spectrum.vectors.T @ y) / spectrum.values)
    assert np.linalg.norm(K.astype(dtype) @ alpha - y) < error


# The largest eigenvalue.


def definite_matrices(n):
    """Yield matrices with their largest eigenvalue."""
    rng = np.random.default_rng(n)
    B = rng.normal(size=(n, n))
    yield B @ B.T, np.linalg.norm(B, 2) ** 2
    K = gaussian(n, 0.3, seed=n)
    yield K, np.linalg.eigvalsh(K)[-1]
    yield np.eye(n), 1.0
    yield np.full((n, n), 3.0), 3.0 * n
    close_pairs = 1 - 1e-5 * np.arange(n)
    yield np.diag(rng.permutation(close_pairs)), 1.0
    lonely = np.zeros(n)
    lonely[n // 2] = 1e-8
    yield np.diag(lonely), 1e-8


@pytest.mark.parametrize("n", [*range(1, 8), *range(29, 38), 50, 75, 100])
def test_largest_eigenvalue_is_a_tight_upper_bound(n):
    for K, expected in definite_matrices(n):
        for M in (K, aslinearoperator(K), lambda V, K=K: K @ V):
            found = largest_eigenvalue(M, n)
            assert isinstance(found, float)
            assert expected * (1 - 1e-14) <= found <= expected * (1 + 1e-5)


@pytest.mark.parametrize("n", [10, 60])
def test_largest_eigenvalue_in_single_precision(n):
    K = gaussian(n, 0.3)
    expected = np.linalg.eigvalsh(K)[-1]
    assert largest_eigenvalue(K.astype(np.float32), n) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("n", [1, 32, 33, 60])
def test_largest_eigenvalue_of_zero(n):
    assert largest_eigenvalue(np.zeros((n, n)), n) == pytest.approx(0, abs=1e-300)
