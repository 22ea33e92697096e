"""Workers that are killed in the middle of a fit: the same model, or an error in time."""

import os
import threading
import time

import dask
import numpy as np
import pytest
from distributed import wait
from numpy.testing import assert_array_equal
from sklearn.base import clone

from cluster_tools import (
    MORTAL,
    Killer,
    assert_same,
    kill,
    looks,
    mortal_workers,
    slow_parts,
    unchanged,
    wave,
)
from imparo import NystromClassifier, NystromRegressor, NytroRegressor
from imparo.cluster import Team, costs, task
from imparo.errors import ClusterError
from imparo.estimators import cluster_reading

EIGHT = (40, 30, 40, 30, 40, 40, 40, 40)
slow = pytest.mark.slow


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """A cluster may be without workers for three seconds, and has many groups."""
    monkeypatch.setattr(costs, "LEAST_ROWS", 1)
    with dask.config.set({"imparo.patience": 3.0}):
        yield


@pytest.fixture
def two(request):
    with mortal_workers(request.config, 2) as (workers, client):
        yield workers, client


def machine(kind="direct", **more):
    params = {"sigma": 1.0, "random_state": 0, "n_centers": 20}
    if kind == "nytro":
        return NytroRegressor(**params | {"iterations": [2, 4, 6]} | more)
    params |= {"penalty": [1e-1, 1e-2]}
    if kind == "logistic":
        few = {"loss": "logistic", "iterations": 3, "penalty": 1e-2}
        return NystromClassifier(**params | few | more)
    cg = {"solver": "cg", "iterations": 4, "penalty": 1e-2}
    return NystromRegressor(**params | (cg if kind == "cg" else {}) | more)


def rows(kind="direct"):
    X, y, _ = wave()
    return X, np.where(y > 2, "high", "low") if kind == "logistic" else y


def check_the_kill(killer, log, gone):
    """Check that it was in the middle: who was killed had worked, and others went on."""
    assert killer.at is not None
    found = looks(log)
    assert gone in {pid for _, pid, at in found if at < killer.at}
    late = {pid for _, pid, at in found if at > killer.at}
    assert late
    assert gone not in late


def killed_after_the_check(worker):
    """Return a progress that kills a worker when all rows are checked, but not yet used."""

    def progress(done, total, what):
        if what == "checking rows" and done == total:
            kill(worker)
            progress.at = time.time()

    progress.at = np.inf
    return progress


# One of two


def test_results_that_are_lost_are_made_again(two):
    """A worker dies after its task, while another has not ended: Dask does it once more."""
    (worker, _), client = two
    homes = client.run(os.getpid)
    address = next(home for home, pid in homes.items() if pid == worker.pid)

    def slowly(seconds):
        time.sleep(seconds)
        return os.getpid()

    quick = task(slowly, "quick", 0.0, worker=address)
    late = task(slowly, "late", 3.0, worker=next(home for home in homes if home != address))
    timer = threading.Timer(1.0, worker.kill)
    timer.start()
    found = Team(client).compute([quick, late], "waiting")
    assert worker.wait(5) is not None
    assert set(found) == set(homes.values()) - {worker.pid}


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("direct", 12),  # while centers are taken
        ("cg", 40),  # iterations
        pytest.param("direct", 5, marks=slow),  # rows are checked
        pytest.param("direct", 18, marks=slow),
        pytest.param("cg", 5, marks=slow),
        pytest.param("cg", 12, marks=slow),
        pytest.param("logistic", 5, marks=slow),
        pytest.param("logistic", 60, marks=slow),
        pytest.param("nytro", 12, marks=slow),
        pytest.param("nytro", 19, marks=slow),
    ],
)
def test_a_worker_is_killed_in_the_middle(two, tmp_path, kind, after):
    """What it was to do is done by the other; nothing changes but by rounding."""
    (worker, _), client = two
    X, y = rows(kind)
    log = tmp_path / "log"
    with Killer(log, after, [worker]) as killer:
        there = machine(kind).fit(slow_parts(X, y, EIGHT, log, seconds=0.05))
    check_the_kill(killer, log, worker.pid)
    assert len(client.scheduler_info()["workers"]) == 1
    assert_same(there, machine(kind).fit(X, y), X[:50])


@slow
@pytest.mark.parametrize("kind", ["direct", "cg"])
def test_rows_that_were_on_a_worker_are_made_again(two, tmp_path, kind):
    (worker, other), client = two
    X, y = rows()
    log = tmp_path / "log"
    futures = client.compute(slow_parts(X, y, EIGHT, log, seconds=0.02))
    wait(futures)
    lost = {number for number, pid, _ in looks(log) if pid == worker.pid}
    assert 0 < len(lost) < len(EIGHT)
    killed = killed_after_the_check(worker)
    there = machine(kind, progress=killed).fit(futures)
    again = [(number, pid) for number, pid, at in looks(log) if at > killed.at]
    assert {number for number, _ in again} == lost
    assert {pid for _, pid in again} == {other.pid}
    assert_same(there, machine(kind).fit(X, y), X[:50])


@slow
@pytest.mark.parametrize("kind", ["direct", "cg"])
def test_rows_that_were_sent_are_sent_again(two, monkeypatch, kind):
    """Rows of this machine that a worker has lost."""
    monkeypatch.setattr(cluster_reading, "_LARGE", 0)
    (worker, _), client = two
    X, y = rows()
    killed = killed_after_the_check(worker)
    there = machine(kind, progress=killed, cluster=client).fit(X, y)
    assert killed.at < time.time()
    assert_same(there, machine(kind).fit(X, y), X[:50])


@slow
def test_tasks_in_common_are_done_again(two, tmp_path):
    (worker, _), _ = two
    X, y = rows()
    log = tmp_path / "log"
    both = dask.delayed(lambda pair, one: (pair[0] + one, pair[1]))
    one = dask.delayed(lambda: np.float64(1.0))()
    parts = [both(part, one) for part in slow_parts(X, y, EIGHT, log, seconds=0.05)]
    with Killer(log, 12, [worker]) as killer:
        there = machine().fit(parts)
    check_the_kill(killer, log, worker.pid)
    assert_same(there, machine().fit(X + 1.0, y), X[:50] + 1.0)


@slow
def test_not_a_digit_changes(two, tmp_path):
    """Sums are made in the same order, whoever makes them."""
    (worker, _), _ = two
    X, y = rows()
    quiet = machine().fit(slow_parts(X, y, EIGHT, tmp_path / "none"))
    with Killer(tmp_path / "log", 18, [worker]) as killer:
        there = machine().fit(slow_parts(X, y, EIGHT, tmp_path / "log", seconds=0.05))
    check_the_kill(killer, tmp_path / "log", worker.pid)
    assert_array_equal(there.dual_coef_, quiet.dual_coef_)
    assert_array_equal(there.path_.errors, quiet.path_.errors)


@slow
def test_growing_goes_on(two, tmp_path):
    (worker, _), _ = two
    X, y = rows()
    log = tmp_path / "log"
    parts = slow_parts(X, y, EIGHT, log, seconds=0.05)
    there = machine().fit(parts)
    done = len(looks(log))
    with Killer(log, done + 12, [worker]) as killer:
        there.grow(30, parts)
    check_the_kill(killer, log, worker.pid)
    assert_same(there, machine().fit(X, y).grow(30, X, y), X[:50])


@slow
def test_a_worker_that_is_retired(two, tmp_path):
    """Dask moves what it has to the other."""
    _, client = two
    X, y = rows()
    futures = client.compute(slow_parts(X, y, EIGHT, tmp_path / "log"))
    there = machine().fit(futures)
    client.retire_workers(workers=[next(iter(client.scheduler_info()["workers"]))])
    grown = clone(there).fit(futures).grow(30, futures)
    assert len(looks(tmp_path / "log")) == len(EIGHT)
    here = machine().fit(X, y)
    assert_same(there, here, X[:50])
    assert_same(grown, here.grow(30, X, y), X[:50])


# All of them


@pytest.mark.parametrize(
    ("kind", "after"),
    [("direct", 12), pytest.param("direct", 5, marks=slow), pytest.param("cg", 40, marks=slow)],
)
def test_all_workers_are_killed(two, tmp_path, kind, after):
    workers, client = two
    X, y = rows()
    model, log = machine(kind).fit(X, y), tmp_path / "log"
    before = dict(vars(model))
    with Killer(log, after, workers) as killer, pytest.raises(ClusterError) as told:
        model.fit(slow_parts(X, y, EIGHT, log, seconds=0.1))
    assert time.time() - killer.at < 15
    assert unchanged(model, before)
    address = client.scheduler.address
    assert str(told.value).startswith(
        f"the scheduler at {address} has had no worker for 3 seconds; start some with: dask "
        f"worker {address}"
    )


@pytest.mark.parametrize("after", [pytest.param(5, marks=slow), 20])
def test_another_worker_comes_in_time(request, tmp_path, after):
    """Within the patience of the cluster, nothing is lost."""
    X, y = rows()
    log = tmp_path / "log"
    with (
        mortal_workers(request.config, 1) as ((worker,), _),
        dask.config.set({"imparo.patience": 15.0}),
        Killer(log, after, [worker]) as killer,
    ):
        processes = request.config.stash[MORTAL][0]

        def replace():
            while killer.at is None:
                time.sleep(0.01)
            processes.add_worker()

        def give_up():
            """End a fit that would wait for ever: the cluster has a worker."""
            kill(processes.workers[-1])

        helper, end = threading.Thread(target=replace), threading.Timer(30.0, give_up)
        helper.start()
        end.start()
        try:
            there = machine().fit(slow_parts(X, y, EIGHT, log, seconds=0.05))
        finally:
            end.cancel()
            helper.join()
        check_the_kill(killer, log, worker.pid)
    assert_same(there, machine().fit(X, y), X[:50])
