"""Models that were fitted on a device: files and copies, and what if a device fails."""

import copy
import gc
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import imparo
from device_tools import name_of, use_blocks_of
from imparo import (
    KernelRegressor,
    NystromClassifier,
    NystromRegressor,
    NytroRegressor,
    RandomFeatureRegressor,
    SGMRegressor,
)
from imparo.engine.torch import TorchEngine
from imparo.errors import DeviceError, DeviceWarning, MemoryBudgetError
from imparo.estimators import devices, passes
from imparo.features.center_map import CenterMap

torch = pytest.importorskip("torch", reason="device='torch:cpu' needs PyTorch")
# One core, as on the machines that run all tests beside each other.
torch.set_num_threads(1)

close = {"rtol": 1e-8, "atol": 1e-9}
GRID = {"sigma": 1.0, "penalty": [1e-1, 1e-2], "random_state": 0, "device": "torch:cpu"}
MODELS = [
    KernelRegressor(sigma=1.0, penalty=[1e-1, 1e-2], device="torch:cpu"),
    NystromRegressor(n_centers=[5, 20], **GRID),
    NystromRegressor(n_centers=20, solver="cg", **GRID),
    NystromClassifier(n_centers=[5, 20], validation=3, **GRID),
    NytroRegressor(
        sigma=1.0, n_centers=20, iterations=[1, 5], random_state=0, device="torch:cpu"
    ),
    RandomFeatureRegressor(n_features=[8, 16], **GRID),
    SGMRegressor(sigma=1.0, features="nystrom", random_state=0, device="torch:cpu"),
]


all_models = pytest.mark.parametrize("model", MODELS, ids=name_of)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(400, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=400)
    return X, y, rng.uniform(0.2, 2, 400), rng.normal(size=(150, 3))


@pytest.fixture(autouse=True)
def _two_blocks(monkeypatch):
    """Blocks of one to two hundred rows, which may be halved."""
    use_blocks_of(monkeypatch, 2**17)


def outputs_for(model, y):
    return (y > 0.5).astype(int) if isinstance(model, NystromClassifier) else y


def tensors_in(value, seen):
    """Return where in an object there are tensors."""
    if id(value) in seen:
        return []
    seen.add(id(value))
    if torch.is_tensor(value):
        return [""]
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    else:
        parts = getattr(value, "__dict__", {}).items()
    return [f"{name}.{where}" for name, part in parts for where in tensors_in(part, seen)]


# Files and copies


@all_models
def test_copies_and_files_hold_no_tensors(rows, model, tmp_path):
    X, y, w, new = rows
    fitted = clone(model).fit(X, outputs_for(model, y), w)
    expected = fitted.predict(new)
    imparo.save(fitted, tmp_path / "model.imparo")
    same = {
        "file": imparo.load(tmp_path / "model.imparo"),
        "pickle": pickle.loads(pickle.dumps(fitted)),
        "copy": copy.deepcopy(fitted),
    }
    for how, other in same.items():
        assert tensors_in(other, set()) == [], how
        assert other.device == "torch:cpu"
        assert other.device_ == fitted.device_
        assert_array_equal(other.predict(new), expected, how)
        # What was learned on one machine is used on another.
        other.set_params(device="cpu")
        assert_allclose(other.predict(new), expected, err_msg=how, **close)


@all_models
def test_a_model_fitted_to_tensors_is_saved_without_them(rows, model, tmp_path):
    X, y, _, new = rows
    T = torch.from_numpy(X)
    fitted = clone(model).set_params(device=None)
    fitted.fit(T, torch.from_numpy(outputs_for(model, y)))
    imparo.save(fitted, tmp_path / "model.imparo")
    for other in (imparo.load(tmp_path / "model.imparo"), pickle.loads(pickle.dumps(fitted))):
        assert tensors_in(other, set()) == []
        assert_allclose(other.predict(new), fitted.predict(new), **close)
    expected = fitted.predict(new)
    T.zero_()
    assert_array_equal(fitted.predict(new), expected)  # the model has rows of its own


@all_models
def test_clones_have_the_device_and_fit_the_same(rows, model):
    X, y, _, new = rows
    y = outputs_for(model, y)
    fitted = clone(model).fit(X, y)
    again = clone(fitted)
    assert again.device == "torch:cpu"
    assert not hasattr(again, "device_")
    assert_array_equal(again.fit(X, y).predict(new), fitted.predict(new))


def test_a_device_of_pytorch_may_be_saved(rows, tmp_path):
    X, y, _, new = rows
    model = NystromRegressor(n_centers=10, sigma=1.0, penalty=0.1, device=torch.device("cpu"))
    model.fit(X, y)
    imparo.save(model, tmp_path / "model.imparo")
    loaded = imparo.load(tmp_path / "model.imparo")
    assert_array_equal(loaded.predict(new), model.predict(new))
    assert loaded.fit(X, y).device_ == model.device_


# Failures


@pytest.mark.parametrize("model", [MODELS[1], MODELS[5]], ids=name_of)
@pytest.mark.parametrize(
    ("name", "value"),
    [("precision", "double"), ("device", "gpu"), ("memory", {"gpu": 1}), ("memory", "1kB")],
    ids=str,
)
def test_a_fit_that_fails_leaves_the_model_as_it_was(rows, model, name, value):
    X, y, _, new = rows
    fitted = clone(model).fit(X, y)
    expected, kept = fitted.predict(new), fitted.get_params()
    fitted.set_params(**{name: value})
    before = dict(vars(fitted))
    with pytest.raises(
        (ValueError, MemoryError), match=r"is not known|must have|memory is|byte"
    ):
        fitted.fit(X, y)
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[key] is before[key] for key in before)
    assert_array_equal(fitted.set_params(**kept).predict(new), expected)


def fails_once(monkeypatch, owner, name, call, error, counts=lambda *args: True):
    """Make a method raise in its k-th call that counts; return a list of those calls."""
    calls, method = [], getattr(owner, name)

    def failing(*args, **kwargs):
        if counts(*args):
            calls.append(name)
            if len(calls) == call:
                raise error
        return method(*args, **kwargs)

    monkeypatch.setattr(owner, name, failing)
    return calls


def of_many_rows(engine, A, B):
    """A product with the kernel values of a block of rows, not one of m numbers."""
    return max(A.shape) > 60


# Where memory may run out in a pass, and in which call.
FULL = [
    (MODELS[1], TorchEngine, "accumulate_gram", 1),
    (MODELS[1], TorchEngine, "accumulate_gram", 2),
    (MODELS[3], TorchEngine, "accumulate_gram", 4),
    (MODELS[1], TorchEngine, "squared_distances", 3),
    (MODELS[2], CenterMap, "evaluate", 2),
    (MODELS[2], TorchEngine, "product", 2),
    (MODELS[2], TorchEngine, "product", 9),
    (MODELS[2], TorchEngine, "product", 30),
    (clone(MODELS[3]).set_params(validation=0.2), CenterMap, "evaluate", 4),
    (MODELS[4], TorchEngine, "accumulate_gram", 2),
    (MODELS[5], TorchEngine, "accumulate_gram", 2),
    (MODELS[1], TorchEngine, "whiten", 2),
    (NystromClassifier(loss="logistic", n_centers=20, iterations=30, **GRID),
     TorchEngine, "product", 17),
]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "owner", "name", "call"), FULL,
    ids=lambda value: name_of(value) if hasattr(value, "fit") else str(value)[-20:],
)  # fmt: skip
def test_the_model_is_the_same_where_memory_ran_out(
    rows, monkeypatch, model, owner, name, call
):
    X, y, w, new = rows
    y = outputs_for(model, y)
    if name == "whiten":
        monkeypatch.setattr(passes, "_RAW_ERROR", 0.0)  # or sums are whitened, not rows
    expected = clone(model).fit(X, y, w)
    counts = of_many_rows if name == "product" else lambda *args: True
    error = torch.OutOfMemoryError("CUDA out of memory")
    calls = fails_once(monkeypatch, owner, name, call, error, counts)
    found = clone(model).fit(X, y, w)
    assert len(calls) > call  # it was tried again
    assert_allclose(found.path_.errors, expected.path_.errors, rtol=1e-7)
    predict = "decision_function" if isinstance(model, NystromClassifier) else "predict"
    assert_allclose(getattr(found, predict)(new), getattr(expected, predict)(new), **close)


@pytest.mark.parametrize("model", [MODELS[2], FULL[-1][0]], ids=name_of)
@pytest.mark.parametrize("after", [0, 7])
def test_blocks_that_were_stored_are_made_smaller(rows, monkeypatch, model, after):
    """From some product on there is no room for more than 120 rows."""
    X, y, w, new = rows
    y = outputs_for(model, y)
    expected = clone(model).fit(X, y, w).predict(new)
    sizes, product = [], TorchEngine.product

    def narrow(engine, A, B):
        sizes.append(max(A.shape))
        if len(sizes) > after and sizes[-1] > 120:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return product(engine, A, B)

    monkeypatch.setattr(TorchEngine, "product", narrow)
    found = clone(model).fit(X, y, w)
    assert max(sizes) > 120
    monkeypatch.setattr(TorchEngine, "product", product)
    assert_allclose(found.predict(new), expected, **close)


def test_predictions_are_the_same_where_memory_ran_out(rows, monkeypatch):
    X, y, _, _ = rows
    # A block for the kernel machine has 400 columns.
    use_blocks_of(monkeypatch, 2**21)
    for model in (MODELS[0], MODELS[1], MODELS[5]):
        fitted = clone(model).fit(X, y)
        expected = fitted.predict(X)
        with monkeypatch.context() as patch:
            error = torch.OutOfMemoryError("full")
            calls = fails_once(patch, TorchEngine, "product", 1, error)
            assert_allclose(fitted.predict(X), expected, rtol=1e-12)
            assert len(calls) > 1


@pytest.mark.parametrize("name", ["accumulate_gram", "squared_distances"])
def test_memory_that_is_never_enough(rows, monkeypatch, name):
    X, y, _, new = rows

    def full(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    model = clone(MODELS[1]).fit(X, y)
    expected, before = model.predict(new), dict(vars(model))
    with monkeypatch.context() as patch:
        patch.setattr(TorchEngine, name, full)
        with pytest.raises(MemoryBudgetError, match="torch:cpu has no memory left"):
            model.fit(X, y)
    assert all(vars(model)[key] is before[key] for key in before)
    assert_array_equal(model.predict(new), expected)


def launch_failure(*args, **kwargs):
    raise RuntimeError("CUDA error: unspecified launch failure\nCompile with `TORCH_USE`")


DEATHS = [
    (MODELS[0], "eigh"), (MODELS[1], "accumulate_gram"), (MODELS[1], "cholesky"),
    (MODELS[2], "product"), (MODELS[4], "accumulate_gram"), (MODELS[5], "product"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "name"),
    DEATHS,
    ids=lambda value: name_of(value) if hasattr(value, "fit") else value,
)
def test_a_device_that_dies(rows, monkeypatch, model, name):
    X, y, _, new = rows
    fitted = clone(model).fit(X, y)
    expected, before = fitted.predict(new), dict(vars(fitted))
    with monkeypatch.context() as patch:
        patch.setattr(TorchEngine, name, launch_failure)
        message = "torch:cpu failed in the middle (CUDA error: unspecified launch failure)"
        with pytest.raises(DeviceError, match=re.escape(message)) as caught:
            fitted.fit(X, y)
    assert "\n" not in str(caught.value)
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[key] is before[key] for key in before)
    assert_array_equal(fitted.predict(new), expected)


@pytest.mark.parametrize(
    ("model", "name"),
    DEATHS,
    ids=lambda value: name_of(value) if hasattr(value, "fit") else value,
)
def test_with_auto_the_cpu_takes_over(rows, monkeypatch, model, name):
    X, y, _, new = rows
    expected = clone(model).set_params(device="cpu").fit(X, y)
    choose = devices.choose_engine
    monkeypatch.setattr(
        devices, "choose_engine",
        lambda device, *rest: choose("torch:cpu" if device == "auto" else device, *rest),
    )  # fmt: skip
    found = clone(model).set_params(device="auto")
    assert clone(found).fit(X, y).device_ == "torch:cpu, float64 products"
    with monkeypatch.context() as patch:
        patch.setattr(TorchEngine, name, launch_failure)
        with pytest.warns(DeviceWarning, match="the CPU is used instead"):
            found.fit(X, y)
    assert found.device_ == "cpu"
    found.set_params(device="cpu")
    assert_array_equal(found.predict(new), expected.predict(new))
    assert_array_equal(found.path_.errors, expected.path_.errors)


def test_other_errors_are_not_blamed_on_the_device(rows, monkeypatch):
    X, y, _, _ = rows

    def broken(*args, **kwargs):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(TorchEngine, "accumulate_gram", broken)
    with pytest.raises(RuntimeError, match="shapes") as caught:
        clone(MODELS[1]).fit(X, y)
    assert type(caught.value) is RuntimeError


@pytest.mark.parametrize(
    "settings", [{"solver": "direct"}, {"solver": "cg"}, {"loss": "logistic"}]
)
def test_nothing_of_the_size_of_a_matrix_outlives_a_model(settings):
    """Cycles would keep the memory of a card until Python looks for them."""
    rng = np.random.default_rng(0)
    X, m = rng.normal(size=(300, 3)), 120
    cls = NystromClassifier if "loss" in settings else NystromRegressor
    y = X[:, 0] > 0 if "loss" in settings else X[:, 0]
    gc.collect()
    gc.disable()
    try:
        model = cls(sigma=1.0, n_centers=m, device="torch:cpu", random_state=0, **settings)
        model.fit(X, y)
        model.predict(X)
        del model
        tensors = (A for A in gc.get_objects() if type(A) is torch.Tensor)
        assert not [tuple(A.shape) for A in tensors if A.numel() >= m * m]
    finally:
        gc.enable()


def test_stored_kernel_values_are_given_up_where_memory_runs_out(monkeypatch):
    """Smaller blocks alone would not make what is stored any smaller."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    how = {"sigma": 1.0, "n_centers": 40, "penalty": 1e-3, "solver": "cg", "random_state": 0}
    expected = NystromRegressor(**how).fit(X, X[:, 0]).predict(X)
    made, evaluate = [], CenterMap.evaluate

    def limited(self, rows, *args):
        made.append(evaluate(self, rows, *args))
        if len(made) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return made[-1]

    use_blocks_of(monkeypatch, 2**18)
    monkeypatch.setattr(CenterMap, "evaluate", limited)
    model = NystromRegressor(**how, device="torch:cpu").fit(X, X[:, 0])
    assert len(made) > 10  # computed anew at every pass
    assert_allclose(model.predict(X), expected, atol=1e-6)


def test_errors_of_float32_products_are_not_taken_for_those_of_float64():
    X = np.random.default_rng(1).uniform(-3, 3, (1500, 2))
    y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    model = NystromRegressor(
        sigma=2.0, n_centers=200, device="torch:cpu", precision="float32", random_state=0
    ).fit(X, y)
    true = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    assert_allclose(model.path_.best["error"], true, rtol=0.5)


def test_learners_tell_a_device_that_is_not_there_before_they_learn():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for model in (imparo.RecursiveRegressor(device="gpu"), imparo.RandomFeatures(device="gpu")):
        with pytest.raises(ValueError, match="device='gpu' is not known"):
            model.fit(X, X[:, 0])
    found = imparo.RecursiveRegressor().fit(X, X[:, 0]).predict(torch.from_numpy(X))
    assert isinstance(found, torch.Tensor)


def test_sparse_tensors_get_one_sentence():
    X = torch.eye(5, dtype=torch.float64).to_sparse()
    with pytest.raises(TypeError, match="to_dense"):
        NystromRegressor(n_centers=2).fit(X, np.ones(5))
