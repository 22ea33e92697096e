"""Widths from the data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from imparo.kernels import (
    Gaussian,
    Laplacian,
    Linear,
    median_width,
    scale_width,
    widths,
)


@pytest.fixture
def rng():
    return np.random.RandomState(0)


@pytest.fixture
def rows(rng):
    return rng.uniform(0, 1, (12, 3))


def close(actual, expected, rtol=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("distance", ["euclidean", "cityblock"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_median_width(rows, distance, layout):
    close(median_width(layout(rows), distance), np.median(pdist(rows, distance)))


@pytest.mark.parametrize("distance", ["euclidean", "cityblock"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_median_width_does_not_count_duplicates(distance, dtype, rng):
    for _ in range(20):
        X = rng.uniform(0, 1, (3, 5)).astype(dtype)
        copies = X[[0] * 60 + [1, 2]]
        # 60 pairs each of rows (0, 1) and (0, 2), and one (1, 2).
        expected = np.median(np.repeat(pdist(X, distance), [60, 60, 1]))
        close(median_width(copies, distance), expected, 1e-5)


def test_median_width_of_data_far_from_the_origin(rng):
    X = 1e7 + rng.uniform(0, 1, (50, 3))
    close(median_width(X), np.median(pdist(X)))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 3), (50, 3), (150, 7)])
def test_widths_of_constant_data(layout, dtype, shape):
    for value in (0.0, 0.1, 0.3, 1 / 3, 123.456, -1e5):
        X = layout(np.full(shape, value, dtype))
        assert median_width(X) == 1
        assert median_width(X, "cityblock") == 1
        assert scale_width(X) == 1


def test_scale_width_of_rows_that_are_all_the_same(rng):
    # The entries of a row differ, and scikit-learn's "scale" counts that.
    X = np.tile(rng.uniform(0, 1, 5), (10, 1))
    close(scale_width(X), np.sqrt(5 * X.var() / 2))
    assert median_width(X) == 1


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_width_is_that_of_scikit_learn(rows, layout, offset, dtype):
    X = (np.where(rows > 0.4, rows, 0) + offset).astype(dtype)
    gamma = 1 / (X.shape[1] * X.astype(float).var())
    close(1 / (2 * scale_width(layout(X)) ** 2), gamma, 1e-9)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_scale_width_of_whole_numbers(layout, rng):
    X = rng.randint(0, 128, (20, 3)).astype(np.int8)
    close(scale_width(layout(X)), np.sqrt(3 * X.astype(float).var() / 2))


def test_median_width_of_many_rows_is_near_and_always_the_same(rng):
    X = rng.standard_normal((1500, 2))
    drawn = median_width(X)
    assert drawn == median_width(X)
    close(drawn, np.median(pdist(X)), 0.05)


def test_median_width_of_a_thousand_rows_uses_them_all(rng):
    X = rng.standard_normal((1000, 2))
    close(median_width(X), np.median(pdist(X)))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("width", [median_width, scale_width])
def test_widths_of_tiny_and_huge_rows(width, scale, rng):
    X = rng.standard_normal((30, 2))
    close(width(X * scale) / scale, width(X))


@pytest.mark.parametrize(
    "kernel", [Gaussian(), Laplacian(), Laplacian() + Gaussian(), Linear()]
)
def test_widths(kernel, rows):
    distance = kernel.width_distance or "euclidean"
    median = np.median(pdist(rows, distance))
    close(widths("median", kernel, rows), [median])
    close(
        widths("auto", kernel, rows),
        median * np.array([1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8]),
    )
    close(widths("scale", kernel, rows), [np.sqrt(3 * rows.var() / 2)])


@pytest.mark.parametrize(
    "sigma", [2, 2.0, np.float32(2), [2.0], [3, 1, 2], (4, 0.5), np.ones(3)]
)
def test_widths_that_are_given(sigma, rows):
    grid = widths(sigma, Gaussian(), rows)
    assert grid.ndim == 1
    assert grid.dtype == np.float64
    assert list(grid) == sorted(set(np.ravel(sigma)))


@pytest.mark.parametrize(
    "bad",
    [
        "medium",
        "",
        0,
        -1.0,
        np.nan,
        np.inf,
        None,
        [],
        [1, -1],
        [[1.0, 2.0]],
        ["a"],
        {},
        [1, None],
    ],
)
def test_widths_errors(bad, rows):
    with pytest.raises(ValueError, match="sigma"):
        widths(bad, Gaussian(), rows)
