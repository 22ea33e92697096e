"""Widths of columns: a kernel with one for each is the kernel of scaled rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import imparo
from imparo import (
    AutoRegressor,
    KernelRegressor,
    NystromRegressor,
    NytroRegressor,
    RandomFeatureRegressor,
)
from imparo.features import as_feature_rule
from imparo.kernels import Gaussian, Laplacian, Matern
from imparo.theory import advise

WIDTHS = (0.5, 2.0, 1e3)
KERNELS = [Gaussian, Laplacian, *(lambda s, v=v: Matern(v, s) for v in (0.5, 1.5, 2.5))]
kernels = pytest.mark.parametrize("make", KERNELS)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=120)


@kernels
@pytest.mark.parametrize("given", [WIDTHS, list(WIDTHS), np.array(WIDTHS)])
def test_a_width_of_a_column_divides_it(rows, make, given):
    X = rows[0]
    expected = make(1.0)(X / WIDTHS, X[:7] / WIDTHS)
    assert_allclose(make(given)(X, X[:7]), expected, rtol=1e-12, atol=1e-15)
    assert_allclose(make(given)(X), make(1.0)(X / WIDTHS), rtol=1e-12, atol=1e-15)


@kernels
def test_equal_widths_are_one(rows, make):
    X = rows[0]
    assert_allclose(make((0.7, 0.7, 0.7))(X), make(0.7)(X), rtol=1e-12, atol=1e-15)


def test_kernels_with_widths_are_values():
    assert Gaussian([1.0, 2.0]) == Gaussian((1, 2)) != Gaussian((1.0, 3.0))
    assert hash(Gaussian([1.0, 2.0])) == hash(Gaussian((1.0, 2.0)))
    assert not Gaussian((1.0, 2.0)).needs_sigma
    assert repr(Gaussian([1, 2.5])) == "Gaussian(sigma=(1.0, 2.5))"


def test_float32_and_sparse_rows(rows):
    X = rows[0]
    narrow = Gaussian(WIDTHS)(X.astype(np.float32))
    assert narrow.dtype == np.float32
    assert_allclose(narrow, Gaussian(WIDTHS)(X), rtol=1e-5, atol=1e-6)
    for make in (Gaussian, lambda s: Matern(1.5, s)):
        found = make(WIDTHS)(sparse.csr_array(X), sparse.csr_array(X[:5]))
        assert_allclose(found, make(WIDTHS)(X, X[:5]), rtol=1e-10)


@kernels
@pytest.mark.parametrize(
    "bad", [(), (1.0, 0.0), (1.0, -1.0), (1.0, np.nan), (np.inf, 1.0), [[1.0, 2.0]], ("a", 1)]
)
def test_widths_that_are_none(make, bad):
    with pytest.raises(ValueError, match="sigma must be a positive number, or a list"):
        make(bad)


@kernels
def test_as_many_widths_as_columns(rows, make):
    with pytest.raises(ValueError, match="has 2 widths and the rows have 3 columns; give"):
        make((1.0, 2.0))(rows[0])


@pytest.mark.parametrize(
    "estimator",
    [
        KernelRegressor(penalty=1e-3),
        NystromRegressor(penalty=1e-3, n_centers=30, random_state=0),
        NytroRegressor(iterations=20, n_centers=30, random_state=0),
        RandomFeatureRegressor(penalty=1e-3, n_features=30, random_state=0),
    ],
)
def test_estimators_take_them(rows, estimator, tmp_path):
    X, y = rows
    model = estimator.set_params(kernel=Gaussian(WIDTHS)).fit(X, y)
    assert model.sigma_ == WIDTHS
    found = model.predict(X)
    imparo.save(model, tmp_path / "model.imparo")
    assert_array_equal(imparo.load(tmp_path / "model.imparo").predict(X), found)
    scaled = estimator.set_params(kernel=Gaussian(1.0)).fit(X / WIDTHS, y)
    assert_allclose(found, scaled.predict(X / WIDTHS), rtol=1e-7, atol=1e-9)


def test_auto_and_advise_take_them(rows):
    X, y = rows
    model = AutoRegressor(Gaussian(WIDTHS), budget=1, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert "σ = 0.5…1e+03" in str(model.record_[0])
    assert advise(X, y, kernel=Gaussian(WIDTHS)).kernel == Gaussian(WIDTHS)


@pytest.mark.parametrize("rule", ["fourier", "orthogonal", "qmc"])
@kernels
def test_random_features_have_them(rows, rule, make):
    X = rows[0]
    rule = as_feature_rule(rule)
    if isinstance(make(1.0), Laplacian) and type(rule).__name__ == "Orthogonal":
        pytest.skip("orthogonal features need a kernel that may be rotated")
    found = rule.draw(make(WIDTHS), 3, 60, 0).transform(X)
    scaled = rule.draw(make(1.0), 3, 60, 0).transform(X / WIDTHS)
    assert_allclose(found, scaled, rtol=1e-8, atol=1e-9)
    with pytest.raises(ValueError, match="has 3 widths and the rows have 4 columns"):
        rule.draw(make(WIDTHS), 4, 60, 0)


@pytest.mark.parametrize("rule", ["fastfood", "sorf"])
def test_fast_transforms_have_one_width(rule):
    with pytest.raises(ValueError, match="has one width for all columns; divide"):
        as_feature_rule(rule).draw(Gaussian(WIDTHS), 3, 60, 0)
