"""FALKON's preconditioner and conjugate gradients against dense matrices, on both engines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from imparo.engine import NumpyEngine
from imparo.engine.torch import TorchEngine
from imparo.errors import JitterWarning, NotPositiveDefiniteError
from imparo.filters import Preconditioner, preconditioned, preconditioned_steps
from imparo.kernels import Gaussian, Matern

torch = pytest.importorskip("torch", reason="the preconditioner is tested on both engines")
# One core, as on the machines that run all tests beside each other.
torch.set_num_threads(1)

ENGINES = {"cpu": NumpyEngine(), "torch:cpu": TorchEngine(["cpu"])}
both_devices = pytest.mark.parametrize("device", ENGINES)
both_types = pytest.mark.parametrize("dtype", ["float64", "float32"])


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(preconditioned, "_BLOCK", 4)


# The preconditioner


def conditioner(K, dtype="float64", device="cpu"):
    engine = ENGINES[device]

    def kernel_rows(start, stop):
        return engine.asarray(np.ascontiguousarray(K[start:stop, start:], dtype))

    return Preconditioner(kernel_rows, len(K), np.dtype(dtype), engine)


def dense(P, method, m, device, **how):
    """Return a linear map of the preconditioner as a matrix."""
    engine = ENGINES[device]
    return engine.to_host(getattr(P, method)(engine.asarray(np.eye(m)), **how))


def check_algebra(K, penalty, weights, centered, dtype, device, rtol):
    """Compare every solve with that of dense matrices from the definitions."""
    m, engine = len(K), ENGINES[device]
    P = conditioner(K, dtype, device)
    T = engine.to_host(P.upper()).astype(float)
    assert_array_equal(T, np.triu(T))
    scale = K.diagonal().mean()
    assert_allclose(T.T @ T, K + P.shift * np.eye(m), atol=rtol * scale, rtol=0)
    assert 0 < P.shift < 1e-3 * scale
    D = np.ones(m) if weights is None else weights
    G = T * D @ T.T / m + penalty * np.eye(m)
    if centered:
        G -= np.outer(T.sum(axis=1) / m, T.sum(axis=1) / m)
    there = None if weights is None else engine.asarray(weights, np.dtype(dtype))
    P.set_penalty(penalty, there, centered=centered)
    close = {"atol": rtol * np.linalg.cond(T), "rtol": 0}
    A_inverse = dense(P, "to_beta", m, device)
    size = np.abs(A_inverse).max()
    assert_allclose(A_inverse, np.triu(A_inverse), atol=1e-12 * size)
    assert_allclose(A_inverse.T @ G @ A_inverse, np.eye(m), **close)
    assert_allclose(dense(P, "to_beta", m, device, transpose=True), A_inverse.T,
                    atol=rtol * size, rtol=0)  # fmt: skip
    assert_allclose(T @ dense(P, "to_alpha", m, device), np.eye(m), **close)
    assert_allclose(T.T @ dense(P, "from_alpha", m, device), np.eye(m), **close)
    assert_array_equal(engine.to_host(P.upper()), T)  # T outlives every penalty


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 14), st.integers(1, 16),
    st.floats(1e-6, 10.0), st.sampled_from(["plain", "weighted", "centered"]),
    st.sampled_from(sorted(ENGINES)),
)  # fmt: skip
def test_blocks_of_every_size_solve_as_dense_matrices(seed, m, block, penalty, kind, device):
    rng = np.random.default_rng(seed)
    K = Matern(0.5, 1.0)(rng.normal(size=(m, 3)))
    weights = rng.uniform(0, 1, m) if kind == "weighted" else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preconditioned, "_BLOCK", block)
        check_algebra(K, penalty, weights, kind == "centered", "float64", device, 1e-10)


@both_devices
def test_single_precision(rng, small_blocks, device):
    K = 7.0 * Matern(0.5, 1.0)(rng.normal(size=(11, 3)))
    check_algebra(K, 1e-2, None, True, "float32", device, 1e-4)
    check_algebra(K, 1e-2, rng.uniform(0, 1, 11), False, "float32", device, 1e-4)


@both_devices
def test_one_penalty_after_another(rng, small_blocks, device):
    """A is made anew of T: what it was before leaves no trace."""
    K = Gaussian(1.0)(rng.normal(size=(11, 3)))
    P, fresh = conditioner(K, device=device), conditioner(K, device=device)
    for penalty in (10.0, 1e-3, 0.5):
        P.set_penalty(penalty, centered=penalty > 1)
        assert P.penalty == penalty
    fresh.set_penalty(0.5)
    assert_array_equal(dense(P, "to_beta", 11, device), dense(fresh, "to_beta", 11, device))


@both_devices
@both_types
def test_centers_that_are_there_twice(rng, small_blocks, device, dtype):
    """Rounding errors are expected, and shifted away without a word."""
    X = rng.normal(size=(6, 3)).repeat(2, axis=0)
    P = conditioner(Gaussian(1.0)(X), dtype, device)
    T = ENGINES[device].to_host(P.upper()).astype(float)
    assert np.isfinite(T).all()
    assert_allclose(T.T @ T, Gaussian(1.0)(X), atol=1e-12 if dtype == "float64" else 1e-4)


@both_devices
def test_the_policy_of_jitter(rng, small_blocks, device):
    Q = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    values = np.linspace(0.5, 1.5, 9)
    for least, raised in ((-1e-9, False), (-0.3, True)):
        values[0] = least
        K = Q * values @ Q.T
        if raised:
            with pytest.raises(NotPositiveDefiniteError, match="kernel matrix of the centers"):
                conditioner(K, device=device)
            continue
        with pytest.warns(JitterWarning, match="kernel matrix of the centers"):
            P = conditioner(K, device=device)
        T = ENGINES[device].to_host(P.upper())
        assert 1e-9 < P.shift < 1e-6
        assert_allclose(T.T @ T, K + P.shift * np.eye(9), atol=1e-12)


# Conjugate gradients


def solve(A, B, start, most, device):
    """Return the solution after some steps, and what was left after each."""
    engine, last, left = ENGINES[device], [], []
    there, X = engine.asarray(A), engine.asarray(start)

    def product(direction):
        last[:] = [direction]
        return there @ direction

    steps = preconditioned_steps(engine.asarray(B) - there @ X, product, engine)
    for _, (length, share) in zip(range(most), steps, strict=False):
        X = X + length * last[0]
        left.append(share)
    return engine.to_host(X), left


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from(sorted(ENGINES)))
def test_as_many_steps_as_there_are_eigenvalues(seed, rank, device):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    values = rng.uniform(0.5, 3.0, rank)[rng.integers(0, rank, 9)]
    A, B = Q * values @ Q.T, rng.normal(size=(9, 3))
    units = np.array([1.0, 1e6, 1e-6])  # every column has steps of its own
    found, left = solve(A, B * units, rng.normal(size=(9, 3)) * units, rank, device)
    assert_allclose(found / units, np.linalg.solve(A, B), atol=1e-6)
    assert left[-1] < 1e-6


@both_devices
def test_columns_without_anything_to_do(rng, device):
    """A zero column, one that starts at its solution, and no column to do anything for."""
    A = np.diag(np.arange(1.0, 6.0))
    B, start = rng.normal(size=(5, 3)), np.zeros((5, 3))
    B[:, 0], start[:, 1] = 0.0, B[:, 1] / np.diagonal(A)
    B[:, 1] = np.diagonal(A) * start[:, 1]
    found, left = solve(A, B, start, 9, device)
    assert_allclose(found, np.linalg.solve(A, B), atol=1e-9)
    assert np.isfinite(left).all()
    assert left[-1] < 1e-8
    found, left = solve(A, 0 * B, 0 * start, 9, device)
    assert_array_equal(found, 0)
    assert set(left) == {0.0}
