"""What becomes of models that were fitted on a cluster: copies, files, progress, searches."""

import copy
import pickle
import subprocess
import sys
import warnings
from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted

import imparo
from cluster_tools import CUTS, assert_same, lazily, pieces, shared_client, tasks_left, wave
from imparo import (
    AutoClassifier,
    AutoRegressor,
    NystromClassifier,
    NystromRegressor,
    NytroClassifier,
    NytroRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
)
from imparo.cluster import find_client
from imparo.estimators import nytro_base

SEVEN = CUTS["seven"]
ALL = [NystromRegressor, NystromClassifier, NytroRegressor, NytroClassifier,
       RandomFeatureRegressor, RandomFeatureClassifier]  # fmt: skip
all_machines = pytest.mark.parametrize("cls", ALL)


@pytest.fixture
def client(request):
    client = shared_client(request.config)
    with client.as_current():
        yield client


def machine(cls, **more):
    params = {"sigma": 1.0, "random_state": 0}
    params |= {"n_features": 32} if "Feature" in cls.__name__ else {"n_centers": 20}
    nytro = "Nytro" in cls.__name__
    params |= {"iterations": [2, 4]} if nytro else {"penalty": [1e-1, 1e-2]}
    return cls(**params | more)


def rows(cls):
    X, y, _ = wave()
    return X, np.where(y > 2, "high", "low") if "Classifier" in cls.__name__ else y


def fitted(cls, **more):
    X, y = rows(cls)
    return machine(cls, **more).fit(lazily(X, SEVEN), lazily(y, SEVEN))


# Copies


@all_machines
def test_parameters_and_clones(client, cls):
    address = client.scheduler.address
    for cluster in (None, address, client):
        model = machine(cls, cluster=cluster)
        assert model.get_params()["cluster"] is cluster
        same = clone(model)
        assert same is not model
        assert same.cluster is cluster
        assert repr(same)
        assert model.set_params(cluster=None).cluster is None
        assert same.cluster is cluster
    X, y = rows(cls)
    model = machine(cls, cluster=client).fit(X, y)
    assert_same(clone(model).fit(X, y), model, X[:50])
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(model))


@all_machines
@pytest.mark.parametrize("by", ["client", "address", "current"])
def test_pickles_and_files(client, tmp_path, cls, by):
    """A client is of this process: models come back without, and are as they were here."""
    cluster = {"client": client, "address": client.scheduler.address, "current": None}[by]
    model = fitted(cls, cluster=cluster)
    X, _ = rows(cls)
    imparo.save(model, tmp_path / "model.imparo")
    expected = cluster if by == "address" else None
    for same in (pickle.loads(pickle.dumps(model)), imparo.load(tmp_path / "model.imparo")):
        assert same.cluster == expected
        assert_array_equal(same.predict(X[:50]), model.predict(X[:50]))
        assert_array_equal(same.path_.errors, model.path_.errors)
        assert same.device_ == model.device_
        lazy = same.predict(lazily(X[:50], (20, 30)))
        assert_array_equal(lazy.compute(), model.predict(X[:50]))
    assert model.cluster is cluster
    assert "_away" not in vars(model)


def test_copies(client):
    model = fitted(NystromRegressor, cluster=client)
    X, _ = rows(NystromRegressor)
    assert_array_equal(copy.copy(model).predict(X), model.predict(X))
    assert_array_equal(copy.deepcopy(model).predict(X), model.predict(X))


def test_files_let_models_grow(client, tmp_path):
    X, y = rows(NystromRegressor)
    model = fitted(NystromRegressor)
    imparo.save(model, tmp_path / "model.imparo")
    there = imparo.load(tmp_path / "model.imparo").grow(40, lazily(X, SEVEN), lazily(y, SEVEN))
    here = machine(NystromRegressor).fit(X, y).grow(40, X, y)
    assert_same(there, here, X[:50])


@all_machines
def test_models_tell_where_they_were_fitted(client, cls):
    model = fitted(cls)
    assert f"2 workers of {client.scheduler.address}" in model.device_
    X, y = rows(cls)
    assert "workers" not in model.fit(X, y).device_


def test_searches(client):
    """Each fit of a search goes to the cluster; its parts are rows of this process."""
    X, y = rows(NystromRegressor)
    model = machine(NystromRegressor, penalty=1e-2, cluster=client)
    search = GridSearchCV(model, {"sigma": [0.5, 1.0, 2.0]}, cv=3)
    there = search.fit(X, y)
    here = clone(search).set_params(estimator__cluster=None).fit(X, y)
    assert there.best_params_ == here.best_params_
    assert "workers" in there.best_estimator_.device_
    name = "mean_test_score"
    assert_allclose(there.cv_results_[name], here.cv_results_[name], rtol=1e-9)


def test_fits_within_tasks(client):
    """A worker computes what it is given by itself: it must not wait for its own cluster."""
    X, y = rows(NystromRegressor)
    model = machine(NystromRegressor)

    def work(model, X, y):
        import dask.array as da

        rows, outputs = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
        return model.fit(rows, outputs)

    there = client.submit(work, model, X, y, pure=False).result(timeout=30)
    assert "workers" not in there.device_
    assert_same(there, machine(NystromRegressor).fit(X, y), X[:50])


def test_seeds(client):
    """The same seed gives the same model, to the last digit, whoever computes what."""
    X, y = rows(NystromRegressor)
    given = lazily(X, SEVEN), lazily(y, SEVEN)
    first = machine(NystromRegressor, cluster=client).fit(*given)
    again = machine(NystromRegressor, cluster=client).fit(*given)
    assert_array_equal(first.dual_coef_, again.dual_coef_)
    assert_array_equal(first.path_.errors, again.path_.errors)
    other = machine(NystromRegressor, random_state=1).fit(*given)
    assert not np.array_equal(first.center_rows_, other.center_rows_)


@pytest.mark.parametrize("cls", [NystromRegressor, NytroRegressor, RandomFeatureRegressor])
def test_workers_that_are_threads(cls):
    """Nothing is copied between them: what is given and what is found must stay as it is."""
    X, y = rows(cls)
    assert find_client(None) is None
    with Client(
        processes=False, n_workers=2, threads_per_worker=2, dashboard_address=":0"
    ) as c:
        assert find_client(None) is c  # the one that was made last
        kept = c.persist([lazily(X, SEVEN), lazily(y, SEVEN)])
        model = machine(cls, intercept=True)
        there, again = clone(model).fit(*kept), clone(model).fit(*kept)
        assert "2 workers of inproc" in there.device_
        assert_array_equal(kept[0].compute(), X)
        found = there.predict(kept[0][:50]).compute()
        assert_allclose(found, again.predict(X[:50]), rtol=1e-10)
    assert find_client(None) is None
    assert_same(there, clone(model).fit(X, y), X[:50])


@pytest.mark.parametrize("cls", [AutoRegressor, AutoClassifier])
def test_automatic_estimators(client, cls):
    """The first trials, which do not depend on the time there is, are the same."""
    X, y = rows(cls)
    there = cls(budget=2.0, random_state=0).fit(lazily(X, SEVEN), lazily(y, SEVEN))
    here = cls(budget=2.0, random_state=0).fit(X, y)
    ours, theirs = there.record_[0], here.record_[0]
    assert (ours.n_rows, ours.n_centers, ours.kernel) == (300, theirs.n_centers, theirs.kernel)
    assert ours.error == pytest.approx(theirs.error, rel=1e-7)
    assert ours.sigma == pytest.approx(theirs.sigma, rel=1e-10)
    found = there.predict(lazily(X, SEVEN))
    assert isinstance(found, da.Array)
    assert there.score(lazily(X, SEVEN), y) == pytest.approx(there.score(X, y), rel=1e-4)


# Progress


@pytest.mark.parametrize("where", ["collection", "memory"])
def test_automatic_estimators_know_the_names_of_columns(client, where):
    """Rows on workers have no names, and yet columns in another order are refused."""
    import dask.dataframe as dd
    import pandas as pd

    rows, y, _ = wave()
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    model = AutoRegressor(budget=2, random_state=0)
    if where == "memory":
        model.set_params(cluster=client).fit(table, y)
    else:
        model.fit(dd.from_pandas(table, npartitions=3), y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(table)
    for wrong in (table[["c", "b", "a"]], table.rename(columns={"a": "z"})):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(wrong)


@pytest.mark.parametrize("name", [*(cls.__name__ for cls in ALL), "cg", "recomputed"])
def test_progress_is_told(client, monkeypatch, name):
    if name == "recomputed":
        monkeypatch.setattr(nytro_base, "cheapest_form", lambda *_, **__: name)
    more = {"solver": "cg", "iterations": 3} if name == "cg" else {}
    cls = {"cg": NystromRegressor, "recomputed": NytroRegressor}.get(name) or getattr(
        imparo, name
    )
    told = []
    fitted(cls, progress=lambda done, total, what: told.append((done, total, what)), **more)
    stages = [[told[0]]]
    for before, now in pairwise(told):
        if now[2] != before[2] or now[0] <= before[0]:
            stages.append([])
        stages[-1].append(now)
    for stage in stages:
        done = [now for now, _, _ in stage]
        totals = {total for _, total, _ in stage}
        assert len(totals) == 1
        assert done == list(range(1, len(done) + 1))
        assert all(isinstance(what, str) and what for _, _, what in stage)
    ends = {stage[-1][2]: stage[-1][:2] for stage in stages}
    done, total = ends["checking rows"]
    assert done == total == 7
    assert len(stages) > 1
    # Iterations may end before the most of them; what workers do is done to the end.
    for what, (done, total) in ends.items():
        assert done <= total
        if "iteration" not in what:
            assert done == total, what


def test_progress_on_the_terminal(client, capsys):
    fitted(NystromRegressor, progress=True)
    told = capsys.readouterr()
    assert "checking rows" in told.out
    assert "[####" in told.out
    assert "100%" in told.out
    assert "Traceback" not in told.out + told.err


def test_silence(client, capfd):
    fitted(NystromRegressor)
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", "")


def test_progress_changes_nothing(client):
    loud = fitted(NystromRegressor, progress=lambda *_: None)
    assert_array_equal(loud.dual_coef_, fitted(NystromRegressor).dual_coef_)


# What stays where


def test_nothing_stays_on_the_workers(client):
    model = fitted(NystromRegressor)
    model.grow(40, lazily(rows(NystromRegressor)[0], SEVEN), rows(NystromRegressor)[1])
    assert tasks_left(client) == 0


def test_inputs_are_not_changed(client):
    X, y, weight = wave()
    kept = X.copy(), y.copy(), weight.copy()
    parts = zip(*(pieces(part, SEVEN) for part in (X, y, weight)), strict=True)
    futures = client.scatter(list(parts))
    model = machine(NystromRegressor, intercept=True)
    first = clone(model).fit(futures)
    again = clone(model).fit(futures)
    # Rows that are on workers are summed by worker, and may be on more of them by now.
    assert_allclose(first.predict(X), again.predict(X), rtol=1e-10)
    for (rows_, outputs, weights), *parts in zip(
        client.gather(futures), *(pieces(p, SEVEN) for p in kept), strict=True
    ):
        assert_array_equal(rows_, parts[0])
        assert_array_equal(outputs, parts[1])
        assert_array_equal(weights, parts[2])
    clone(model).set_params(cluster=client).fit(X, y, weight)
    for now, before in zip((X, y, weight), kept, strict=True):
        assert_array_equal(now, before)


def test_dask_is_not_needed_for_rows_in_memory():
    code = (
        "import sys, numpy as np, imparo\n"
        "X = np.random.default_rng(0).normal(size=(60, 2))\n"
        "m = imparo.NystromRegressor(n_centers=5, penalty=0.1).fit(X, X[:, 0])\n"
        "m.predict(X), m.score(X, X[:, 0])\n"
        "print(sorted({n.partition('.')[0] for n in sys.modules} & {'dask', 'distributed'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert done.stdout.strip() == "[]"
