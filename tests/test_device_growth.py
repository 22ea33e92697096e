"""Models that grow on a device, the statistics that they grow from, and their precision."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import imparo
from device_tools import name_of, use_blocks_of
from imparo import NystromClassifier, NystromRegressor, RandomFeatureRegressor
from imparo.estimators import passes

torch = pytest.importorskip("torch", reason="device='torch:cpu' needs PyTorch")
# One core, as on the machines that run all tests beside each other.
torch.set_num_threads(1)

GRID = {"sigma": 1.0, "penalty": [1e-1, 1e-2], "random_state": 0, "device": "torch:cpu"}
MODELS = [
    NystromRegressor(n_centers=[5, 20], **GRID),
    RandomFeatureRegressor(n_features=[8, 16], **GRID),
]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(400, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=400)
    return X, y, rng.uniform(0.2, 2, 400), rng.normal(size=(150, 3))


@pytest.fixture(autouse=True)
def _several_blocks(monkeypatch):
    use_blocks_of(monkeypatch, 2**16)


# Growth


GROWING = {
    "centers": (NystromRegressor, "n_centers", {}),
    "folds and weights": (NystromClassifier, "n_centers", {"validation": 3}),
    "whitened rows": (NystromRegressor, "n_centers", {}),
    "features": (RandomFeatureRegressor, "n_features", {}),
}
BY_FILE = {
    "as it is": lambda model, path: model,
    "pickled": lambda model, path: pickle.loads(pickle.dumps(model)),
    "saved": lambda model, path: (imparo.save(model, path), imparo.load(path))[1],
}


@pytest.mark.parametrize(("first", "then"), [("torch:cpu", "torch:cpu"), ("torch:cpu", "cpu"),
                                             ("cpu", "torch:cpu")])  # fmt: skip
@pytest.mark.parametrize("how", BY_FILE)
@pytest.mark.parametrize("case", GROWING)
def test_a_grown_model_is_one_fitted_with_more(
    rows, tmp_path, monkeypatch, case, how, first, then
):
    X, y, w, new = rows
    if case == "whitened rows":
        monkeypatch.setattr(passes, "_RAW_ERROR", 0.0)
    make, size, settings = GROWING[case]
    settings = GRID | settings
    y = (y > 0.5).astype(int) if make is NystromClassifier else y
    weight = w if case == "folds and weights" else None
    model = make(**settings | {size: 10, "device": first}).fit(X, y, weight)
    model = BY_FILE[how](model, tmp_path / "model.imparo").set_params(device=then)
    model.grow(30, X, y, weight)
    whole = make(**settings | {size: [10, 30], "device": "cpu"}).fit(X, y, weight)
    assert_allclose(model.path_.errors, whole.path_.errors, rtol=1e-6)
    assert_allclose(model.predict(new), whole.predict(new), rtol=1e-5, atol=1e-6)
    assert model.device_ == ("cpu" if then == "cpu" else "torch:cpu, float64 products")


@pytest.mark.parametrize("how", BY_FILE)
def test_statistics_are_those_of_the_cpu(rows, tmp_path, how):
    X, y, w, _ = rows
    settings = GRID | {"n_centers": 15, "validation": 3}
    model = NystromRegressor(**settings).fit(X, y, w)
    found = BY_FILE[how](model, tmp_path / "model.imparo").statistics_
    expected = NystromRegressor(**settings | {"device": "cpu"}).fit(X, y, w).statistics_
    assert len(found.statistics) == len(expected.statistics) > 1
    for ours, theirs in zip(found.statistics, expected.statistics, strict=True):
        for name in ("A", "b", "yy", "feature_sum", "output_sum"):
            assert_allclose(
                np.asarray(getattr(ours, name)), getattr(theirs, name), rtol=1e-7, atol=1e-8
            )
        assert ours.weight == pytest.approx(theirs.weight)


# Precision


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("precision", ["float64", "float32", "split"])
@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_every_precision(rows, model, precision, dtype):
    X, y, w, new = rows
    model = clone(model).set_params(dtype=dtype)
    expected = clone(model).set_params(device="cpu").fit(X, y, w)
    found = model.set_params(precision=precision).fit(X, y, w)
    assert found.device_ == f"torch:cpu, {precision} products"
    rough = "float32" in (dtype, precision)
    assert_allclose(found.predict(new), expected.predict(new), atol=1e-3 if rough else 1e-8)
    assert_allclose(found.path_.errors, expected.path_.errors, rtol=1e-3 if rough else 1e-8)


def test_products_of_float32_have_its_error(rows):
    """Or the precision asked for would not be the one that is used."""
    X, y, _, new = rows
    exact, rough = (
        NystromRegressor(n_centers=20, **GRID, precision=precision).fit(X, y).predict(new)
        for precision in ("float64", "float32")
    )
    assert 1e-9 < np.abs(exact - rough).max() < 1e-3
