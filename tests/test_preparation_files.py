"""Prepared inputs in model files: scikit-learn's transformers without pickle."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors import safe_open
from scipy import sparse
from sklearn import __version__ as sklearn_version
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import imparo
from imparo import persistence
from imparo.errors import FileFormatError
from imparo.preparation import DateParts, DistinctColumns, KernelInputs


@pytest.fixture
def frame(rng):
    """A table of every kind of column, with gaps."""
    pl = pytest.importorskip("polars")
    n = 150
    table = {
        "x": [None if i % 11 == 0 else v for i, v in enumerate(rng.gamma(2, size=n).tolist())],
        "large": (1e12 + rng.integers(0, 99, n)).tolist(),
        "tiny": (1e-300 * rng.normal(size=n)).tolist(),
        "flag": (rng.random(n) < 0.1).tolist(),
        "city": rng.choice(["Rome", "Òsmo", "Ulm", None], n, p=[0.5, 0.4, 0.05, 0.05]).tolist(),
        "answer": rng.choice(["yes", "no"], n).tolist(),
        "copy": None,
        "when": np.arange(n).astype("M8[D]").astype(object).tolist(),
    }
    table["copy"] = [-v for v in table["large"]]
    return pl.DataFrame(table)


def saved(model, path):
    imparo.save(model, path)
    return imparo.load(path)


@pytest.mark.parametrize("numbers", ["standard", "robust", "quantile", "none"])
@pytest.mark.parametrize("missing", ["indicate", "refuse"])
def test_fitted_inputs_come_back_bit_for_bit(frame, tmp_path, numbers, missing):
    if missing == "refuse":
        frame = frame.drop_nulls()
    inputs = KernelInputs(numbers, missing=missing, rare=3).fit(frame)
    same = saved(inputs, tmp_path / "m")
    assert_array_equal(same.transform(frame), inputs.transform(frame), strict=True)
    assert_array_equal(same.pipeline_.transform(frame), inputs.transform(frame))
    assert same.get_feature_names_out().tolist() == inputs.get_feature_names_out().tolist()
    assert (same.notes_, same.kinds_) == (inputs.notes_, inputs.kinds_)
    assert same.get_params() == inputs.get_params()
    assert repr(same.pipeline_) == repr(inputs.pipeline_)
    with pytest.raises(ValueError, match="infinite"):
        same.transform(frame.with_columns(x=float("inf")))
    assert_array_equal(same.fit(frame).transform(frame), inputs.transform(frame))


def test_sparse_single_and_unfitted_inputs(rng, tmp_path):
    S = sparse.random_array((60, 8), density=0.4, rng=rng, format="csr", dtype=np.float32)
    S.data[3] = np.nan
    inputs = KernelInputs().fit(S)
    Z = saved(inputs, tmp_path / "m").transform(S)
    assert Z.dtype == np.float32
    assert_array_equal(Z.toarray(), inputs.transform(S).toarray())
    assert saved(KernelInputs(rare=3, dtype=np.float32), tmp_path / "m").rare == 3


def test_parts_alone(rng, tmp_path):
    dates = np.arange("2024-01-01", "2025-01-01", dtype="M8[h]").reshape(-1, 2)
    same = saved(DateParts().fit(dates), tmp_path / "m")
    assert_array_equal(same.transform(dates), DateParts().fit_transform(dates))
    X = np.tile(rng.normal(size=(20, 2)), 2)
    same = saved(DistinctColumns().fit(X), tmp_path / "m")
    assert same.dropped_ == [("x2", "is the same as 'x0'"), ("x3", "is the same as 'x1'")]
    assert_array_equal(same.transform(X), X[:, :2])


def test_the_file_keeps_the_version_of_scikit_learn(frame, tmp_path):
    imparo.save(KernelInputs().fit(frame), tmp_path / "m")
    with safe_open(tmp_path / "m", framework="numpy") as file:
        text = file.metadata()["imparo"]
    found = []

    def collect(tree):
        if isinstance(tree, dict):
            found.extend((c[0], c[2]) for k, c in tree.items() if k == "$sklearn")
        for part in tree.values() if isinstance(tree, dict) else tree:
            if isinstance(part, dict | list):
                collect(part)

    collect(json.loads(text))
    assert {name for name, _ in found} >= {"Pipeline", "ColumnTransformer", "StandardScaler"}
    assert {version for _, version in found} == {sklearn_version}


def test_other_transformers_are_not_saved(frame, tmp_path):
    inputs = KernelInputs().fit(frame)
    for step in (PCA(), FunctionTransformer(np.log)):
        inputs.pipeline_ = Pipeline([("step", step)])
        with pytest.raises(TypeError, match="cannot be saved without pickle"):
            imparo.save(inputs, tmp_path / "m")
    with pytest.raises(TypeError, match="Pipeline is not an object of imparo"):
        imparo.save(inputs.pipeline_, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_other_transformers_are_not_read(frame, tmp_path, monkeypatch):
    inputs = KernelInputs().fit(frame)
    inputs.pipeline_ = Pipeline([("step", PCA())])
    monkeypatch.setitem(persistence._TRANSFORMERS, "PCA", PCA)
    imparo.save(inputs, tmp_path / "m")
    monkeypatch.undo()
    with pytest.raises(FileFormatError, match=r"holds PCA of scikit-learn .* may not hold"):
        imparo.load(tmp_path / "m")


def test_transformers_of_another_version(frame, tmp_path):
    inputs = KernelInputs().fit(frame)
    del inputs.pipeline_["columns"].sparse_threshold
    imparo.save(inputs, tmp_path / "m")
    words = rf"no parameter sparse_threshold of ColumnTransformer.*{sklearn_version}"
    with pytest.raises(FileFormatError, match=words):
        imparo.load(tmp_path / "m")


def test_a_cache_is_not_read(frame, tmp_path):
    inputs = KernelInputs().fit(frame)
    inputs.pipeline_.memory = str(tmp_path / "cache")
    imparo.save(inputs, tmp_path / "m")
    with pytest.raises(FileFormatError, match="with a cache"):
        imparo.load(tmp_path / "m")
