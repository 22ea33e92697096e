"""A file gives back the model that was saved, or says why it cannot."""

import json
import os
import pickle
import stat

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import imparo
from imparo import KernelClassifier, KernelRegressor
from imparo.errors import FileFormatError
from imparo.filters import CutOff, Landweber
from imparo.kernels import Gaussian, Linear, Matern


def equal(a, b):
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape
        return same and a.flags.f_contiguous == b.flags.f_contiguous and (a == b).all()
    if sparse.issparse(a):
        return (a != b).nnz == 0
    if isinstance(a, imparo.Path | KFold | np.random.RandomState):
        pairs = zip(_state(a), _state(b), strict=True)
        return all(equal(x, y) for x, y in pairs)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and a == b


def _state(value):
    if isinstance(value, np.random.RandomState):
        return value.get_state()
    return list(vars(value).values())


MODELS = {
    "regressor": (KernelRegressor(sigma=[0.5, 1.0]), "number"),
    "two outputs": (KernelRegressor("linear", intercept=True), "numbers"),
    "float32": (KernelRegressor(dtype="float32", filter=CutOff(), penalty=0.1), "number"),
    "dtype type": (KernelRegressor(dtype=np.float32, penalty=0.1), "number"),
    "composed": (KernelRegressor(Gaussian(1.0) + 2 * Linear() * Matern(0.5)), "number"),
    "splitter": (KernelRegressor(validation=KFold(3)), "number"),
    "index pairs": (
        KernelRegressor(validation=[(np.arange(40), np.arange(40, 60))]),
        "number",
    ),
    "random state": (KernelRegressor(random_state=np.random.RandomState(3)), "number"),
    "range": (KernelRegressor(filter="nu", iterations=range(1, 9)), "number"),
    "iterations": (KernelRegressor(filter=Landweber(0.01), iterations=[3, 5]), "number"),
    "text classes": (KernelClassifier(class_weight={"a": 1, "b": 2.5}), "text"),
    "three classes": (KernelClassifier(filter="nu"), "classes"),
    "labels": (KernelClassifier(), "labels"),
}


@pytest.fixture
def outputs(wave):
    y = wave[1]
    return {
        "number": y,
        "numbers": np.column_stack([y, -y]),
        "text": np.where(y > 0, "a", "b"),
        "classes": np.digitize(y, [0, 1]),
        "labels": np.column_stack([y > 0, y > 1]).astype(int),
    }


@pytest.mark.parametrize("name", MODELS)
def test_a_fitted_model_comes_back_whole(wave, outputs, tmp_path, name):
    model, kind = MODELS[name]
    X = wave[0]
    model.fit(X, outputs[kind])
    imparo.save(model, tmp_path / "model.imparo")
    same = imparo.load(tmp_path / "model.imparo")
    assert type(same) is type(model)
    for key, value in vars(model).items():
        assert equal(value, vars(same)[key]), key
    assert (same.predict(X) == model.predict(X)).all()
    assert same.get_params().keys() == model.get_params().keys()
    same.fit(X, outputs[kind])


def test_a_model_that_is_not_fitted_comes_back(tmp_path):
    imparo.save(KernelRegressor(penalty=np.logspace(-3, 0, 4)), tmp_path / "m")
    assert equal(imparo.load(tmp_path / "m").penalty, np.logspace(-3, 0, 4))


def test_sparse_rows_feature_names_and_odd_numbers(tmp_path, rng):
    X = sparse.random_array((30, 5), density=0.4, rng=rng, format="csr")
    model = KernelRegressor(penalty=0.1).fit(X, rng.normal(size=30))
    model.feature_names_in_ = np.array([f"färg {i}" for i in range(5)], dtype=object)
    model.extra_ = {"inf": np.inf, "nan": float("nan"), "scalar": np.float32(0.1), 3: (1, [2])}
    imparo.save(model, str(tmp_path / "m"))
    same = imparo.load(str(tmp_path / "m"))
    assert equal(same.X_fit_, model.X_fit_)
    assert list(same.feature_names_in_) == list(model.feature_names_in_)
    assert np.isnan(same.extra_.pop("nan"))
    model.extra_.pop("nan")
    assert equal(same.extra_, model.extra_)


def test_the_file_holds_no_pickle_and_names_its_content(wave, tmp_path):
    imparo.save(KernelRegressor(penalty=0.1).fit(*wave), tmp_path / "m")
    with safe_open(tmp_path / "m", framework="numpy") as file:
        header = json.loads(file.metadata()["imparo"])
    assert header["class"] == "KernelRegressor"
    assert header["version"] == imparo.__version__
    assert header["format"] == 1
    assert header["arrays"].keys() == {"KernelRegressor.dual_coef_", "KernelRegressor.X_fit_"}


@pytest.mark.parametrize("keep", [0, 5, 8, 100, 0.5, 0.99])
def test_a_truncated_file(wave, tmp_path, keep):
    path = tmp_path / "m"
    imparo.save(KernelRegressor().fit(*wave), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if keep < 1 else keep])
    with pytest.raises(FileFormatError, match="incomplete"):
        imparo.load(path)


def test_any_altered_byte_is_noticed(wave, tmp_path, rng):
    path = tmp_path / "m"
    imparo.save(KernelRegressor().fit(*wave), path)
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    text = content.index(b"format")
    places = [text + 40, *rng.integers(start, len(content), 20), len(content) - 1]
    for place in places:
        altered = bytearray(content)
        altered[place] ^= 1
        path.write_bytes(bytes(altered))
        with pytest.raises(FileFormatError):
            imparo.load(path)


def test_a_newer_file(wave, tmp_path, monkeypatch):
    monkeypatch.setattr("imparo.persistence.FORMAT", 2)
    imparo.save(KernelRegressor().fit(*wave), tmp_path / "m")
    monkeypatch.undo()
    with pytest.raises(FileFormatError, match=r"format 2.*upgrade"):
        imparo.load(tmp_path / "m")


def test_files_of_others(tmp_path, wave):
    with pytest.raises(FileNotFoundError, match="no file"):
        imparo.load(tmp_path / "nothing")
    (tmp_path / "pickle").write_bytes(pickle.dumps(KernelRegressor().fit(*wave)))
    with pytest.raises(FileFormatError, match="not a model file"):
        imparo.load(tmp_path / "pickle")
    save_file({"w": np.ones(3)}, tmp_path / "tensors")
    with pytest.raises(FileFormatError, match="not a model of imparo"):
        imparo.load(tmp_path / "tensors")
    with pytest.raises(FileFormatError):
        imparo.load(tmp_path)


def test_what_cannot_be_saved_is_named(wave, tmp_path):
    model = KernelRegressor(lambda A, B: A @ B.T, penalty=0.1).fit(*wave)
    with pytest.raises(TypeError, match=r"KernelRegressor\.kernel is <function"):
        imparo.save(model, tmp_path / "m")
    with pytest.raises(TypeError, match="Ridge is not an object of imparo"):
        imparo.save(Ridge(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_subclass_is_not_saved_as_its_parent(wave, tmp_path):
    class KernelRegressor(imparo.KernelRegressor):
        pass

    with pytest.raises(TypeError, match="not an object of imparo"):
        imparo.save(KernelRegressor(), tmp_path / "m")


def test_a_failed_save_leaves_the_old_file(wave, tmp_path, monkeypatch):
    path = tmp_path / "m"
    imparo.save(KernelRegressor(penalty=0.1).fit(*wave), path)
    before = path.read_bytes()

    def power_cut(*_):
        raise OSError("no power")

    monkeypatch.setattr(os, "replace", power_cut)
    with pytest.raises(OSError, match="no power"):
        imparo.save(KernelRegressor(penalty=0.2).fit(*wave), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_file_is_readable_as_the_umask_allows(wave, tmp_path):
    imparo.save(KernelRegressor(), tmp_path / "m")
    (tmp_path / "plain").touch()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("m", "plain")]
    assert modes[0] == modes[1]


def test_a_missing_parameter_is_named(tmp_path, monkeypatch):
    model = KernelRegressor()
    del model.memory
    imparo.save(model, tmp_path / "m")
    with pytest.raises(FileFormatError, match="no parameter memory of KernelRegressor"):
        imparo.load(tmp_path / "m")


@pytest.mark.parametrize("value", [Gaussian(2.0), Gaussian() + 3 * Linear(), Landweber(0.5)])
def test_kernels_and_filters(tmp_path, value):
    imparo.save(value, tmp_path / "v")
    assert imparo.load(tmp_path / "v") == value
