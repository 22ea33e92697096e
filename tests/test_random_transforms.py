"""Fast transforms behind random features: Hadamard's, and cosines by tangents."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import hadamard

from imparo.features import hadamard_transform, waves
from imparo.features.hadamard import working_type
from imparo.features.waves import cosine_waves, in_pieces, wave_pairs

often = settings(max_examples=30, deadline=None)

# --- Hadamard ----------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("k", range(11))
def test_the_transform_is_the_product_with_the_matrix(rng, k, order):
    X = np.array(rng.normal(size=(5, 2**k)), order=order)
    result = hadamard_transform(X)
    assert_allclose(result, X @ hadamard(2**k), rtol=1e-12, atol=1e-12 * 2**k)
    assert result.flags.f_contiguous if order == "C" else result.flags.c_contiguous


@pytest.mark.parametrize("k", [12, 13, 14])
def test_large_transforms_have_the_rows_of_the_matrix(k):
    rows = np.array([0, 1, 5, 2**k - 1])
    bits = [[bin(i & j).count("1") % 2 for j in range(2**k)] for i in rows]
    X = np.zeros((len(rows), 2**k))
    X[np.arange(len(rows)), rows] = 1
    assert_array_equal(hadamard_transform(X), 1 - 2 * np.array(bits))


@often
@given(k=st.integers(0, 9), n=st.integers(0, 7), seed=st.integers(0, 2**32 - 1))
def test_twice_is_d_times_and_lengths_grow_by_the_root(k, n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2**k))
    once = hadamard_transform(X)
    assert_allclose(hadamard_transform(once), 2**k * X, atol=1e-10)
    assert_allclose(np.sum(once**2, axis=1), 2**k * np.sum(X**2, axis=1), rtol=1e-10)


def test_types_and_rows_that_are_not_contiguous(rng):
    X = rng.normal(size=(6, 16)).astype(np.float32)
    result = hadamard_transform(X)
    assert result.dtype == np.float32
    assert_allclose(result, X @ hadamard(16), atol=1e-4)
    whole = rng.integers(-9, 9, size=(8, 32))
    assert_array_equal(hadamard_transform(whole[::2, ::2]), whole[::2, ::2] @ hadamard(16))
    assert hadamard_transform(whole).dtype == np.float64


@pytest.mark.parametrize("d", [0, 3, 12])
def test_other_numbers_of_columns_are_refused(d):
    with pytest.raises(ValueError, match=f"X has {d} columns.*power of two"):
        hadamard_transform(np.zeros((2, d)))


def test_the_type_to_work_in():
    names = {"f2": "f4", "f4": "f4", "f8": "f8", "i1": "f8", "i8": "f8", "?": "f8"}
    for given_type, expected in names.items():
        assert working_type(np.dtype(given_type)) == expected


# --- Waves -------------------------------------------------------------------------------


def reference(theta, phases, amplitudes):
    theta = theta.astype(np.longdouble)
    pairs = np.empty((len(theta), 2 * theta.shape[1]))
    pairs[:, 0::2] = amplitudes * np.cos(theta)
    pairs[:, 1::2] = amplitudes * np.sin(theta)
    return amplitudes * np.cos(theta + phases).astype(float), pairs


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e3, 1e6, 1e10, 1e15, 1e100, 1e300])
def test_cosines_and_sines_of_any_angle(rng, size):
    theta = rng.uniform(-size, size, (50, 40))
    _, pairs = reference(theta, np.zeros(40), np.ones(40))
    assert_allclose(wave_pairs(theta.copy(), np.ones(40)), pairs, rtol=0, atol=5e-16)
    cosines = cosine_waves(theta.copy(), np.zeros(40), np.ones(40))
    assert_allclose(cosines, pairs[:, 0::2], rtol=0, atol=5e-16)


def test_angles_next_to_the_poles_of_the_tangent():
    k = np.concatenate([np.arange(-999, 1000.0), 2.0 ** np.arange(10, 40)])
    odd = (2 * k + 1) * np.pi
    theta = np.stack([odd, np.nextafter(odd, np.inf), np.nextafter(odd, -np.inf)])
    # 6381956970095103·2^797 is the float64 that is nearest to an odd multiple of π/2.
    worst = np.ldexp(6381956970095103.0, 797)
    theta = np.append(theta, np.tile([[2 * worst]], (3, 1)), axis=1)
    _, pairs = reference(theta, 0.0, 1.0)
    result = wave_pairs(theta.copy(), np.ones(theta.shape[1]))
    assert_allclose(result, pairs, rtol=0, atol=5e-16)
    assert_allclose(result[:, 0::2], -1, atol=1e-6)
    assert abs(np.tan(worst)) > 1e18


@often
@given(
    n=st.integers(0, 5), f=st.integers(0, 9), seed=st.integers(0, 2**32 - 1), wide=st.booleans()
)
def test_phases_and_amplitudes(n, f, seed, wide):
    rng = np.random.default_rng(seed)
    dtype, atol = (np.float64, 1e-14) if wide else (np.float32, 2e-5)
    theta = rng.normal(scale=5, size=(n, f)).astype(dtype)
    phases, amplitudes = rng.uniform(0, 7, f), rng.uniform(0, 3, f)
    cosines, pairs = reference(theta, phases, amplitudes)
    angles = theta.copy()
    result = cosine_waves(angles, phases, amplitudes)
    assert result is angles
    assert_allclose(result, cosines, rtol=0, atol=atol)
    result = wave_pairs(theta.copy(), amplitudes)
    assert result.dtype == dtype
    assert result.flags.c_contiguous
    assert_allclose(result, pairs, rtol=0, atol=atol)


@pytest.mark.parametrize("shape", [(3000, 190), (7, 100_000), (600_000, 1)])
def test_large_blocks_are_those_of_their_rows(rng, shape):
    theta = rng.normal(size=shape)
    amplitudes, phases = rng.random(shape[1]), rng.random(shape[1])
    pairs, cosines = (np.empty((shape[0], 2 * shape[1])), np.empty(shape))
    for i in range(0, shape[0], 4096):
        rows = slice(i, i + 4096)
        pairs[rows, 0::2] = amplitudes * np.cos(theta[rows])
        pairs[rows, 1::2] = amplitudes * np.sin(theta[rows])
        cosines[rows] = amplitudes * np.cos(theta[rows] + phases)
    assert_allclose(wave_pairs(theta.copy(), amplitudes), pairs, rtol=0, atol=1e-15)
    assert_allclose(cosine_waves(theta, phases, amplitudes), cosines, rtol=0, atol=1e-15)


@given(n=st.integers(0, 300), width=st.integers(0, 200))
def test_every_row_is_in_one_piece(n, width):
    seen = np.zeros(n, int)

    def work(rows):
        seen[rows] += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waves, "_PIECE", 64)
        in_pieces(work, n, width)
    assert (seen == 1).all()
