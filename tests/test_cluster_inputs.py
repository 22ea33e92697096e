"""Kinds of rows on a cluster: all of them give the model of rows in memory."""

import os

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import wait
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from cluster_tools import (
    CUTS,
    assert_same,
    at_work,
    delayed,
    lazily,
    looks,
    pieces,
    shared_client,
    slow_parts,
    wave,
)
from imparo import (
    KernelRegressor,
    NystromRegressor,
    SGMRegressor,
)
from imparo.cluster import find_client
from imparo.estimators import cluster_reading

SEVEN = CUTS["seven"]


@pytest.fixture
def client(request):
    with at_work(shared_client(request.config)) as client:
        yield client


@pytest.fixture
def machine():
    return NystromRegressor(
        sigma=1.0, penalty=[1e-1, 1e-2, 1e-3], n_centers=[10, 25], random_state=0
    )


def fitted(machine, *rows):
    return clone(machine).fit(*rows)


# Arrays


@pytest.mark.parametrize(
    "form",
    ["lazy", "persisted", "columns", "y otherwise", "y here", "unknown", "made by workers",
     "on workers", "some on workers", "two uses", "a graph in common", "large recipes"],
)  # fmt: skip
def test_arrays(client, machine, monkeypatch, form):
    X, y, weight = wave()
    if form == "large recipes":
        monkeypatch.setattr(cluster_reading, "_LARGE", 0)
    parts = [lazily(part, SEVEN) for part in (X, y, weight)]
    if form == "persisted":
        parts = list(client.persist(parts))
    if form == "columns":
        parts[0] = da.from_array(X, chunks=(SEVEN, (2, 1)))
    if form == "y otherwise":
        parts[1:] = da.from_array(y, chunks=100), da.from_array(weight, chunks=77)
    if form == "y here":
        parts[1:] = y, weight
    if form == "unknown":
        keep = X[:, 0] > 0
        parts = [part[parts[0][:, 0] > 0] for part in parts]
        X, y, weight = X[keep], y[keep], weight[keep]
    if form == "made by workers":
        parts[0], X = parts[0].map_blocks(np.tanh), np.tanh(X)
    if form == "on workers":
        parts = list(client.persist(parts))
        parts[0], X = parts[0] * 2 - 1, X * 2 - 1
    if form == "some on workers":
        parts[1] = client.persist(parts[1])
    if form == "two uses":
        X, y, weight = (np.concatenate([part, part]) for part in (X, y, weight))
        parts = [da.concatenate([part, part]) for part in parts]
    if form == "a graph in common":
        parts[0], X = parts[0] - parts[0].mean(axis=0), X - X.mean(axis=0)
    assert_same(fitted(machine, *parts), fitted(machine, X, y, weight), X[:50])


def test_rows_in_the_order_of_the_workers(client, machine):
    """Partitions that are on workers are summed by worker, and keep their places."""
    X, y, _ = wave()
    workers = list(client.scheduler_info()["workers"])
    rows, outputs = (
        [
            client.submit(lambda part: part, part, workers=[workers[i % 2]], pure=False)
            for i, part in enumerate(pieces(values, SEVEN))
        ]
        for values in (X, y)
    )
    wait([*rows, *outputs])
    homes = [next(iter(found)) for found in client.who_has(rows).values()]
    assert len(set(homes)) == 2
    assert_same(fitted(machine, rows, outputs), fitted(machine, X, y), X[:50])


def test_tasks_in_common_are_done_once(client, machine, tmp_path):
    X, y, _ = wave()
    log = tmp_path / "log"

    def loaded():
        with open(log, "a") as file:
            file.write("0 0 0\n")
        return X

    whole = da.from_delayed(dask.delayed(loaded, pure=True)(), X.shape, X.dtype)
    fitted(machine, whole.rechunk((SEVEN, 3)), lazily(y, SEVEN))
    # Not once for every partition and pass, though a pass may have to do it again.
    assert 1 <= len(looks(log)) <= 5


def test_persisted_rows_are_not_made_again(client, machine, tmp_path):
    X, y, _ = wave()
    parts = slow_parts(X, y, SEVEN, tmp_path / "log")
    futures = client.compute(parts)
    wait(futures)
    assert len(looks(tmp_path / "log")) == 7
    assert_same(fitted(machine, futures), fitted(machine, X, y), X[:50])
    assert len(looks(tmp_path / "log")) == 7


def test_workers_make_the_rows(client, machine, tmp_path):
    X, y, _ = wave()
    parts = slow_parts(X, y, SEVEN, tmp_path / "log")
    assert_same(fitted(machine, parts), fitted(machine, X, y), X[:50])
    found = looks(tmp_path / "log")
    assert {number for number, _, _ in found} == set(range(7))
    assert os.getpid() not in {process for _, process, _ in found}


# Frames


@pytest.mark.parametrize("form", ["frame", "array of one", "y here"])
def test_frames(client, machine, form):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, y, weight = wave()
    frame = pd.DataFrame(X, columns=["age", "size", "rate"]).assign(y=y, weight=weight)
    parts = dd.from_pandas(frame, npartitions=5)
    names = ["age", "size", "rate"]
    given = [parts[names], parts["y"], parts["weight"]]
    if form == "array of one":
        given = [part.to_dask_array() for part in given]
    if form == "y here":
        given[1:] = frame["y"], frame["weight"]
    there = fitted(machine, *given)
    assert_same(there, fitted(machine, X, y, weight), X[:50])
    assert there.n_features_in_ == 3
    if form == "array of one":
        assert not hasattr(there, "feature_names_in_")
    else:
        assert_array_equal(there.feature_names_in_, names)
        with pytest.raises(ValueError, match="feature names"):
            there.predict(frame[["size", "age", "rate"]])


def test_names_of_columns_are_forgotten(client, machine):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, y, _ = wave()
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=2)
    machine.fit(frame, y)
    assert_array_equal(machine.feature_names_in_, list("abc"))
    machine.fit(lazily(X, SEVEN), y)
    assert not hasattr(machine, "feature_names_in_")


# Lists


@pytest.mark.parametrize(
    "form",
    ["pairs", "triples", "X and y", "X and y here", "tuples", "one delayed", "one of each",
     "futures", "X and y futures", "empty parts"],
)  # fmt: skip
def test_lists(client, machine, form):
    X, y, weight = wave()
    cuts = CUTS["empty"] if form == "empty parts" else SEVEN
    parts = [pieces(values, cuts) for values in (X, y, weight)]
    pairs = list(zip(*parts[:2], strict=True))
    weighted = None
    if form in ("pairs", "empty parts"):
        given = [delayed(pairs)]
    if form == "triples":
        given, weighted = [delayed(zip(*parts, strict=True))], weight
    if form == "X and y":
        given, weighted = [delayed(part) for part in parts], weight
    if form == "X and y here":
        given, weighted = [delayed(parts[0]), y, weight], weight
    if form == "tuples":
        given = [list(zip(delayed(parts[0]), delayed(parts[1]), strict=True))]
    if form == "one delayed":
        given = [dask.delayed((X, y), traverse=False)]
    if form == "one of each":
        given = [dask.delayed(X), dask.delayed(y)]
    if form == "futures":
        given = [client.scatter(pairs)]
    if form == "X and y futures":
        given, weighted = [client.scatter(part) for part in parts], weight
    assert_same(fitted(machine, *given), fitted(machine, X, y, weighted), X[:50])


@pytest.mark.parametrize("first", [0, 3])
def test_pairs_and_triples(client, machine, first):
    """Rows that come without a weight have 1, as those of blocks in memory have."""
    X, y, weight = wave()
    parts = list(zip(*(pieces(values, SEVEN) for values in (X, y, weight)), strict=True))
    parts[first] = parts[first][:2]
    assert_same(fitted(machine, delayed(parts)), fitted(machine, lambda: iter(parts)), X[:50])


# Rows of this machine


@pytest.mark.parametrize("form", ["array", "frame", "list", "sparse", "float32", "columns"])
@pytest.mark.parametrize("by", ["client", "address"])
def test_rows_in_memory(client, machine, monkeypatch, form, by):
    # Once as recipes that are sent with every task, once as data that workers keep.
    monkeypatch.setattr(cluster_reading, "_LARGE", 0 if by == "client" else 2**16)
    X, y, weight = wave()
    X[np.abs(X) < 0.3] = 0
    rows = {"array": X, "list": X.tolist(), "sparse": sparse.csr_array(X),
            "float32": X.astype("f"), "columns": np.asfortranarray(X)}  # fmt: skip
    if form == "frame":
        rows["frame"] = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    address = client.scheduler.address
    machine.set_params(cluster=client if by == "client" else address)
    there = fitted(machine, rows[form], y, weight)
    here = fitted(machine.set_params(cluster=None), rows[form], y, weight)
    new = rows[form][:50]
    assert_same(there, here, new, tolerance=1e-4 if form == "float32" else 1e-10)
    assert hasattr(there, "feature_names_in_") == (form == "frame")


def test_a_client_that_is_not_current(request, machine):
    X, y, _ = wave()
    client = shared_client(request.config)
    assert find_client(None) is None
    rows = [dask.delayed(part) for part in pieces(X, SEVEN)]
    machine.set_params(cluster=client)
    there = fitted(machine, rows, y)
    assert_same(there, fitted(machine.set_params(cluster=None), X, y), X[:50])


def test_an_address_makes_no_client_for_every_fit(request, machine):
    X, y, _ = wave()
    client = shared_client(request.config)

    def clients():
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.clients))

    machine.set_params(cluster=client.scheduler.address)
    first = fitted(machine, X, y)
    before = clients()
    kept = [first, *(fitted(machine, X, y) for _ in range(3))]
    assert clients() <= before, kept


@pytest.mark.parametrize("form", ["npy", "sliced", "offset", "float32", "backwards"])
def test_files_that_workers_read(client, machine, tmp_path, form):
    X, y, weight = wave()
    X = X.astype("f") if form == "float32" else X
    if form == "offset":
        (tmp_path / "rows").write_bytes(b"1234567" + X.tobytes())
        rows = np.memmap(tmp_path / "rows", X.dtype, "r", 7, X.shape)
    else:
        np.save(tmp_path / "rows.npy", X)
        rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    if form == "sliced":
        rows, X, y, weight = rows[20:280][5:], X[25:280], y[25:280], weight[25:280]
    if form == "backwards":
        rows, X = rows[::-1], X[::-1]
    machine.set_params(cluster=client)
    there = fitted(machine, rows, y, weight)
    here = fitted(machine.set_params(cluster=None), X, y, weight)
    assert_same(there, here, X[:50], tolerance=1e-4 if form == "float32" else 1e-10)


@pytest.mark.parametrize("form", ["delayed", "frame of sparse"])
def test_sparse_parts(client, machine, form):
    X, y, _ = wave()
    X[np.abs(X) < 0.3] = 0
    rows = sparse.csr_array(X)
    parts = [rows[a:b] for a, b in ((0, 100), (100, 100), (100, 300))]
    kinds = parts if form == "delayed" else [sparse.coo_matrix(part) for part in parts]
    outputs = delayed([y[:100], y[:0], y[100:]])
    there = fitted(machine, delayed(kinds), outputs)
    assert sparse.issparse(there.centers_)
    assert_same(there, fitted(machine, rows, y), rows[:50])


# Without a cluster, and estimators that have none


@pytest.mark.parametrize("form", ["arrays", "pairs", "frame", "y here"])
@pytest.mark.parametrize("cls", [NystromRegressor, SGMRegressor])
def test_without_a_cluster(cls, form, tmp_path):
    X, y, weight = wave()
    assert find_client(None) is None
    model = cls(sigma=1.0, random_state=0)
    if cls is NystromRegressor:
        model.set_params(penalty=[1e-1, 1e-2], n_centers=25)
    blocks = list(zip(*(pieces(values, SEVEN) for values in (X, y, weight)), strict=True))
    if form == "arrays":
        given = [lazily(part, SEVEN) for part in (X, y, weight)]
    if form == "pairs":
        given = [slow_parts(X, y, SEVEN, tmp_path / "log", weight=weight)]
    if form == "frame":
        import pandas as pd

        frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, w=weight)
        parts = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=7)
        given = [parts[list("abc")], parts["y"], parts["w"]]
    if form == "y here":
        given = [lazily(X, SEVEN), y, weight]
    found = model.fit(*given)
    if form == "pairs":
        assert {process for _, process, _ in looks(tmp_path / "log")} == {os.getpid()}
    expected = clone(model).fit(lambda: iter(blocks))
    assert_allclose(found.predict(X[:50]), expected.predict(X[:50]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("cls", [SGMRegressor, KernelRegressor])
def test_estimators_that_compute_here(request, cls):
    """They are given the rows by the cluster, in order."""
    X, y, _ = wave()
    model = cls(sigma=1.0, random_state=0) if cls is SGMRegressor else cls(sigma=1.0)
    with shared_client(request.config).as_current():
        there = clone(model).fit(lazily(X, SEVEN), lazily(y, SEVEN))
        found = there.predict(lazily(X[:50], (20, 30)))
        assert isinstance(found, da.Array)
        expected = clone(model).fit(X, y).predict(X[:50])
        assert_allclose(found.compute(), expected, rtol=1e-6)
