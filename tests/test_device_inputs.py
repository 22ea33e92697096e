"""What may be handed to a model on a device, and what comes back: tensors, frames, blocks."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from device_tools import name_of, use_blocks_of
from imparo import (
    KernelClassifier,
    KernelRegressor,
    NystromClassifier,
    NystromRegressor,
    NytroClassifier,
    NytroRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
    SGMClassifier,
    SGMRegressor,
)

torch = pytest.importorskip("torch", reason="tensors need PyTorch")
# One core, as on the machines that run all tests beside each other.
torch.set_num_threads(1)

SIZES = {"sigma": 1.0, "penalty": [1e-1, 1e-2], "random_state": 0}
REGRESSORS = [
    KernelRegressor(sigma=1.0, penalty=[1e-1, 1e-2]),
    NystromRegressor(n_centers=[5, 15], **SIZES),
    NystromRegressor(sigma=1.0, penalty=1e-2, n_centers=15, solver="cg", random_state=0),
    NytroRegressor(sigma=1.0, n_centers=15, iterations=[1, 5], random_state=0),
    RandomFeatureRegressor(n_features=[8, 16], **SIZES),
    SGMRegressor(sigma=1.0, epochs=2, random_state=0),
]
CLASSIFIERS = [
    KernelClassifier(sigma=1.0, penalty=[1e-1, 1e-2]),
    NystromClassifier(n_centers=[5, 15], **SIZES),
    NytroClassifier(sigma=1.0, n_centers=15, iterations=[1, 5], random_state=0),
    RandomFeatureClassifier(n_features=[8, 16], **SIZES),
    SGMClassifier(sigma=1.0, epochs=2, random_state=0),
]


regressors = pytest.mark.parametrize("model", REGRESSORS, ids=name_of)
classifiers = pytest.mark.parametrize("model", CLASSIFIERS, ids=name_of)
from_centers = pytest.mark.parametrize("model", REGRESSORS[1:5], ids=name_of)


@pytest.fixture(autouse=True)
def _several_blocks(monkeypatch):
    use_blocks_of(monkeypatch, 2**14)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(90, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=90)
    return X, y, rng.uniform(0.2, 2, 90), rng.normal(size=(20, 3))


def on(model, device):
    """Return an unfitted copy for a device."""
    return type(model)(**(model.get_params() | {"device": device}))


# Tensors


@pytest.mark.parametrize("device", [None, "torch:cpu", "cpu", torch.device("cpu")], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@regressors
def test_tensors_in_give_tensors_out(rows, model, dtype, device):
    X, y, w, new = (part.astype(dtype) for part in rows)
    tensors = [torch.from_numpy(part) for part in (X, y, w, new)]
    kept = [part.clone() for part in tensors]
    expected = on(model, "cpu" if device == "cpu" else "torch:cpu").fit(X, y, w).predict(new)
    fitted = on(model, device).fit(*tensors[:3])
    assert fitted.device_ == ("cpu" if device == "cpu" else "torch:cpu, float64 products")
    found = fitted.predict(tensors[3])
    assert torch.is_tensor(found)
    assert found.device == tensors[3].device
    assert_array_equal(found.numpy(), expected)
    assert found.numpy().dtype == expected.dtype
    # Arrays in give arrays out, whatever the model was fitted to.
    assert isinstance(fitted.predict(new), np.ndarray)
    assert_allclose(fitted.predict(new), expected, rtol=0, atol=1e-5)
    for tensor, before in zip(tensors, kept, strict=True):
        assert torch.equal(tensor, before)


@classifiers
def test_numbers_of_classes_come_back_as_tensors_and_words_as_arrays(rows, model):
    X, y, w, new = rows
    labels = np.digitize(y, [0.3, 1.2])
    expected = on(model, "torch:cpu").fit(X, labels, w)
    fitted = on(model, None).fit(*(torch.from_numpy(part) for part in (X, labels, w)))
    there = torch.from_numpy(new)
    for found, wanted in (
        (fitted.predict(there), expected.predict(new)),
        (fitted.decision_function(there), expected.decision_function(new)),
    ):
        assert torch.is_tensor(found)
        assert found.numpy().dtype == wanted.dtype
        assert_array_equal(found.numpy(), wanted)
    words = np.array(["a", "b", "c"])[labels]
    found = on(model, None).fit(torch.from_numpy(X), words, torch.from_numpy(w)).predict(there)
    assert isinstance(found, np.ndarray)
    assert_array_equal(found, np.array(["a", "b", "c"])[expected.predict(new)])


@pytest.mark.parametrize(
    "model",
    [NystromClassifier(loss="logistic", penalty=1e-2, sigma=1.0, n_centers=9, iterations=30),
     SGMClassifier(loss="logistic", sigma=1.0, random_state=0)],
    ids=name_of,
)  # fmt: skip
def test_probabilities_and_labels_are_tensors(rows, model):
    X, y, _, new = rows
    labels = (np.column_stack([y, X[:, 2]]) > 0.5).astype(int)
    for outputs in (labels[:, 0], labels):
        fitted = on(model, None).set_params(random_state=0)
        fitted.fit(torch.from_numpy(X), torch.from_numpy(outputs))
        found = fitted.predict_proba(torch.from_numpy(new))
        assert torch.is_tensor(found)
        assert_allclose(found.numpy(), fitted.predict_proba(new), rtol=1e-12)
        found = fitted.predict(torch.from_numpy(new))
        assert torch.is_tensor(found)
        assert_array_equal(found.numpy(), fitted.predict(new))


FORMS = {
    "by columns": lambda X: torch.from_numpy(np.asfortranarray(X)),
    "every second": lambda X: torch.from_numpy(np.repeat(X, 2, axis=0))[::2],
    "whole numbers": lambda X: torch.from_numpy(np.round(4 * X).astype(int)),
    "half precision": lambda X: torch.from_numpy(X).half(),
    "with gradients": lambda X: torch.from_numpy(X).requires_grad_(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_tensor(rows, form):
    X, y, _, _ = rows
    T = FORMS[form](X)
    arrays = T.detach().numpy()
    model = NystromRegressor(n_centers=[5, 15], **SIZES)
    expected = on(model, "torch:cpu").fit(arrays, y).predict(arrays)
    found = on(model, None).fit(T, y).predict(T)
    assert_array_equal(found.numpy(), expected)
    assert not found.requires_grad


def test_stochastic_gradients_go_on_with_tensors(rows):
    X, y, w, new = rows
    tensors = [torch.from_numpy(part) for part in (X, y, w)]
    model = SGMRegressor(sigma=1.0, n_features=20, features="nystrom", random_state=0)
    found, expected = on(model, None), on(model, "cpu")
    for part in (slice(0, 50), slice(50, 90)):
        found.partial_fit(*(tensor[part] for tensor in tensors))
        expected.partial_fit(X[part], y[part], w[part])
    there = found.predict(torch.from_numpy(new))
    assert torch.is_tensor(there)
    assert_allclose(there.numpy(), expected.predict(new), rtol=1e-8)


SPOILED = {
    "NaN": lambda X, y: (np.where(X[3, 0] == X, np.nan, X), y),
    "infinity": lambda X, y: (np.where(X[3, 0] == X, np.inf, X), y),
    "one dimension": lambda X, y: (X[:, 0], y),
    "three dimensions": lambda X, y: (X[None], y),
    "no rows": lambda X, y: (X[:0], y[:0]),
    "no columns": lambda X, y: (X[:, :0], y),
    "too few rows": lambda X, y: (X[:-1], y),
    "NaN in y": lambda X, y: (X, np.where(y == y[5], np.nan, y)),
    "infinity in y": lambda X, y: (X, np.where(y == y[5], np.inf, y)),
    "shape of y": lambda X, y: (X, np.zeros((90, 2, 2))),
    "complex": lambda X, y: (X + 1j, y),
}


def sentence_of(call):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("name", SPOILED)
@pytest.mark.parametrize("model", [*REGRESSORS[:2], *CLASSIFIERS[1:2]], ids=name_of)
def test_bad_tensors_get_the_sentences_of_bad_arrays(rows, model, name):
    X, y, _, _ = rows
    y = y if "Regressor" in type(model).__name__ else (y > 0.5).astype(float)
    X, y = SPOILED[name](X, y)
    expected = sentence_of(lambda: on(model, "cpu").fit(X, y))
    found = sentence_of(lambda: on(model, None).fit(torch.from_numpy(X), torch.from_numpy(y)))
    assert found == expected


def test_bad_weights_and_new_rows_in_tensors(rows):
    X, y, w, new = rows
    T = [torch.from_numpy(part) for part in (X, y, w, new)]
    model = NystromRegressor(n_centers=5, sigma=1.0, penalty=0.1, random_state=0)
    for weight in (-w, np.full(90, np.nan), w[:-1], 0 * w):
        expected = sentence_of(lambda weight=weight: on(model, "cpu").fit(X, y, weight))
        there = torch.from_numpy(weight)
        assert sentence_of(lambda there=there: on(model, None).fit(*T[:2], there)) == expected
    fitted, plain = on(model, None).fit(*T[:3]), on(model, "cpu").fit(X, y, w)
    for bad in (new[:, :2], new * np.nan, new[0]):
        expected = sentence_of(lambda bad=bad: plain.predict(bad))
        assert sentence_of(lambda bad=bad: fitted.predict(torch.from_numpy(bad))) == expected


# Everything else that rows come in


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@regressors
def test_frames(rows, model, frame):
    X, y, w, new = rows
    expected = on(model, "torch:cpu").fit(X, y, w).predict(new)
    fitted = on(model, "torch:cpu")
    fitted.fit(frame(dict(zip("abc", X.T, strict=True))), y, w)
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    found = fitted.predict(frame(dict(zip("abc", new.T, strict=True))))
    assert isinstance(found, np.ndarray)
    assert_array_equal(found, expected)


@regressors
def test_sparse_rows(rows, model):
    X, y, w, new = rows
    X[np.abs(X) < 0.7], new[np.abs(new) < 0.7] = 0, 0
    rows_, news = sparse.csr_array(X), sparse.csr_array(new)
    found, expected = (on(model, device).fit(rows_, y, w) for device in ("torch:cpu", "cpu"))
    dense = on(model, "torch:cpu").fit(X, y, w)
    close = {"rtol": 1e-7, "atol": 1e-8}
    assert_allclose(found.predict(news), expected.predict(news), **close)
    assert_allclose(found.predict(new), dense.predict(new), **close)


@pytest.mark.parametrize("model", [REGRESSORS[k] for k in (0, 1, 3)], ids=name_of)
def test_sparse_rows_and_a_linear_kernel(rows, model):
    X, y, w, new = rows
    X[np.abs(X) < 0.7] = 0
    found, expected = (
        on(model, device)
        .set_params(kernel="linear", sigma="median")
        .fit(sparse.csr_array(X), y, w)
        .predict(sparse.csr_array(new))
        for device in ("torch:cpu", "cpu")
    )
    assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("form", ["function", "list", "tensors", "sparse"])
@from_centers
def test_blocks(rows, model, form):
    X, y, w, new = rows
    parts = [slice(0, 40), slice(40, 41), slice(41, 41), slice(41, 90)]
    make = {"tensors": torch.from_numpy, "sparse": sparse.csr_array}.get(form, np.asarray)
    numbers = torch.from_numpy if form == "tensors" else np.asarray
    blocks = [(make(X[p]), numbers(y[p]), numbers(w[p])) for p in parts]
    given = (lambda: iter(blocks)) if form == "function" else blocks
    found = on(model, "torch:cpu").fit(given).predict(new)
    expected = on(model, "torch:cpu").fit(X, y, w).predict(new)
    assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


@regressors
def test_memory_maps(rows, model, tmp_path):
    X, y, w, new = rows
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = on(model, "torch:cpu").fit(mapped, y, w).predict(new)
    assert_array_equal(found, on(model, "torch:cpu").fit(X, y, w).predict(new))
    assert_array_equal(mapped, X)


def test_rows_nobody_may_write_to(rows):
    """PyTorch has no such tensors, and says so with a warning that users should not see."""
    X, y, w, new = rows
    for part in rows:
        part.flags.writeable = False
    for model in REGRESSORS:
        on(model, "torch:cpu").fit(X, y, w).predict(new)
