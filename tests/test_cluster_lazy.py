"""Predictions of rows on a cluster: collections, computed when someone asks."""

import os
import pickle
import time

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from cluster_tools import CUTS, delayed, lazily, looks, pieces, shared_client, wave
from imparo import (
    KernelClassifier,
    NystromClassifier,
    NystromRegressor,
    NytroRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
)

SEVEN = CUTS["seven"]


@pytest.fixture
def client(request):
    client = shared_client(request.config)
    with client.as_current():
        yield client


@pytest.fixture(params=["here", "on workers"])
def anywhere(request):
    """Collections are computed on workers where there is a client, or by this process."""
    if request.param == "here":
        with dask.config.set(scheduler="synchronous"):
            yield request.param
    else:
        with shared_client(request.config).as_current():
            yield request.param


def regressor(cls=NystromRegressor, n_outputs=1, **more):
    X, y, _ = wave(n_outputs=n_outputs)
    return cls(**{"sigma": 1.0, "random_state": 0} | more).fit(X, y)


def classifier(cls=NystromClassifier, n_classes=3, names="abc", **more):
    X, y, _ = wave()
    codes = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return cls(sigma=1.0, **more).fit(X, np.array(list(names))[codes])


def few(**more):
    return {"penalty": [1e-1, 1e-2], "n_centers": 20, "random_state": 0} | more


MODELS = {
    "numbers": lambda: regressor(**few()),
    "outputs": lambda: regressor(n_outputs=2, **few()),
    "float32": lambda: regressor(**few(dtype="float32")),
    "features": lambda: regressor(RandomFeatureRegressor, penalty=1e-2, n_features=32),
    "nytro": lambda: regressor(NytroRegressor, n_centers=20, iterations=5),
    "classes": lambda: classifier(**few()),
    "two classes": lambda: classifier(n_classes=2, **few()),
    "logistic": lambda: classifier(**few(penalty=1e-2, loss="logistic")),
    "exact": lambda: classifier(KernelClassifier, penalty=1e-2),
    "feature classes": lambda: classifier(
        RandomFeatureClassifier, penalty=1e-2, n_features=32, random_state=0
    ),
}


def methods(model):
    names = ("predict", "decision_function", "predict_proba")
    return [name for name in names if hasattr(model, name)]


@pytest.mark.parametrize(
    ("anywhere", "name"),
    [
        *(("here", name) for name in MODELS),
        *(("on workers", name) for name in ("outputs", "float32", "nytro", "logistic")),
    ],
    indirect=["anywhere"],
)
def test_arrays(anywhere, name):
    model = MODELS[name]()
    X, _, _ = wave(seed=1)
    for method in methods(model):
        expected = getattr(model, method)(X)
        for cuts in (CUTS["one"], CUTS["uneven"], CUTS["empty"]):
            found = getattr(model, method)(lazily(X, cuts))
            assert isinstance(found, da.Array)
            assert [n for n in found.chunks[0] if n] == [n for n in cuts if n]
            assert found.shape == expected.shape
            assert found.dtype == expected.dtype
            values = found.compute()
            assert values.dtype == expected.dtype
            assert_close(values, expected)
            assert_close(found[130:140].compute(), expected[130:140])


def assert_close(found, expected):
    """Blocks of other sizes may round otherwise."""
    if expected.dtype.kind == "f":
        rough = 1e-5 if expected.dtype == np.float32 else 1e-12
        assert_allclose(found, expected, rtol=rough, atol=rough)
    else:
        assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "form", ["columns", "unknown", "persisted", "delayed", "one delayed", "futures", "sparse",
             "float32"]
)  # fmt: skip
def test_kinds_of_rows(client, form):
    model = MODELS["classes"]()
    X, _, _ = wave(seed=1)
    X[np.abs(X) < 0.3] = 0
    rows = lazily(X, SEVEN)
    if form == "columns":
        rows = da.from_array(X, chunks=(100, 2))
    if form == "unknown":
        rows, X = rows[rows[:, 0] > 0], X[X[:, 0] > 0]
    if form == "persisted":
        rows = client.persist(rows)
    if form == "delayed":
        rows = delayed(pieces(X, CUTS["empty"]))
    if form == "one delayed":
        rows = dask.delayed(X)
    if form == "futures":
        rows = client.scatter(pieces(X, SEVEN))
    if form == "sparse":
        kept = sparse.csr_array(X)
        rows = delayed([kept[:0], kept[:100], kept[100:]])
    if form == "float32":
        rows, X = rows.astype("f"), X.astype("f")
    for method in methods(model):
        found, expected = getattr(model, method)(rows), getattr(model, method)(X)
        if isinstance(found, list):
            assert len(found) == len(rows)
            values = np.concatenate(dask.compute(*found))
        else:
            values = found.compute()
        assert_close(values, expected)


def test_frames(anywhere):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, y, _ = wave()
    frame = pd.DataFrame(X, columns=["age", "size", "rate"]).assign(kind="a")
    frame.loc[200:, "kind"] = "b"
    names = ["age", "size", "rate"]
    model = NystromRegressor(sigma=1.0, **few()).fit(frame[names], y)
    rows = dd.from_pandas(frame, npartitions=4)
    found = model.predict(rows[names])
    assert isinstance(found, da.Array)
    assert_allclose(found.compute(), model.predict(frame[names]), rtol=1e-12)
    # Partitions of which nothing is left.
    some = model.predict(rows[rows["kind"] == "b"][names]).compute()
    assert_allclose(some, model.predict(frame[names][200:]), rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(rows[["size", "age", "rate"]])


# Nothing before it is asked for


def slow_rows(X, cuts, log):
    def made(number, block):
        with open(log, "a") as file:
            file.write(f"{number} {os.getpid()} {time.time()}\n")
        return block

    parts = [dask.delayed(made)(i, part) for i, part in enumerate(pieces(X, cuts))]
    arrays = [
        da.from_delayed(part, (n, X.shape[1]), X.dtype)
        for part, n in zip(parts, cuts, strict=True)
    ]
    return da.concatenate(arrays)


def test_nothing_is_computed_before_it_is_asked_for(client, tmp_path):
    model = MODELS["logistic"]()
    X, _, _ = wave(seed=1)
    rows = slow_rows(X, SEVEN, tmp_path / "log")
    found = [getattr(model, method)(rows) for method in methods(model)]
    assert looks(tmp_path / "log") == []
    found[0][:10].compute()
    assert {number for number, _, _ in looks(tmp_path / "log")} == {0}
    found[0].compute()
    seen = looks(tmp_path / "log")
    assert {number for number, _, _ in seen} == set(range(7))
    assert os.getpid() not in {process for _, process, _ in seen}


def test_columns_are_checked_when_predictions_are_made(client):
    model = MODELS["numbers"]()
    X, _, _ = wave(seed=1)
    with pytest.raises(ValueError, match="2 features"):
        model.predict(lazily(X[:, :2].copy(), SEVEN))


def test_unfitted_models(client):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        NystromRegressor().predict(lazily(wave()[0], SEVEN))


# What travels


@pytest.mark.parametrize("name", ["numbers", "nytro", "logistic"])
def test_what_a_fit_needs_alone_does_not_travel(client, name):
    X, y, _ = wave(2000)
    model = {
        "numbers": lambda: NystromRegressor(sigma=1.0, penalty=[1e-1, 1e-2], n_centers=300),
        "nytro": lambda: NytroRegressor(sigma=1.0, n_centers=300, iterations=50),
        "logistic": lambda: NystromClassifier(
            sigma=1.0, penalty=[1e-1, 1e-2], n_centers=300, loss="logistic", iterations=3
        ),
    }[name]()
    model.set_params(random_state=0)
    model.fit(X, y > 2 if name == "logistic" else y)
    whole = len(pickle.dumps(model))
    needed = model.centers_.nbytes + model.dual_coef_.nbytes
    one = len(cloudpickle.dumps(model.predict(dask.delayed(X[:1])).__dask_graph__()))
    assert one < needed + 20_000
    if name != "logistic":
        assert whole > 5 * one
    # Once for all partitions, not once for each.
    parts = model.predict(da.zeros((100, 3), chunks=(1, 3)))
    many = len(cloudpickle.dumps(parts.__dask_graph__()))
    assert many < one + 100 * 2_000
    assert model.path_ is not None or name == "nytro"  # the model itself has lost nothing


def test_the_client_does_not_travel(client):
    X, y, _ = wave()
    model = NystromRegressor(sigma=1.0, cluster=client, **few()).fit(lazily(X, SEVEN), y)
    found = model.predict(lazily(X, SEVEN))
    cloudpickle.dumps(found.__dask_graph__())
    assert_allclose(found.compute(), model.predict(X), rtol=1e-12)
    assert model.cluster is client


# Scores


@pytest.mark.parametrize("form", ["arrays", "lists", "y here", "frames"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores(anywhere, form, weighted):
    X, y, weight = wave(seed=1)
    names = np.array(list("abc"))[np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))]
    for model, truth in ((MODELS["numbers"](), y), (MODELS["classes"](), names)):
        expected = model.score(X, truth, weight if weighted else None)
        given = [X, truth, weight]
        if form == "arrays":
            given = [lazily(part, SEVEN) for part in given]
        if form == "lists":
            given = [delayed(pieces(part, SEVEN)) for part in given]
        if form == "y here":
            given[0] = lazily(X, SEVEN)
        if form == "frames":
            import pandas as pd

            frame = pd.DataFrame(X, columns=list("abc")).assign(y=truth, w=weight)
            parts = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=4)
            given = [parts[list("abc")].to_dask_array(), parts["y"], parts["w"]]
        found = model.score(*given[: 3 if weighted else 2])
        assert isinstance(found, float)
        assert found == pytest.approx(expected, rel=1e-12)
