"""Clusters without workers, whose scheduler dies, or whose workers die of the data."""

import os
import time

import dask
import pytest
from distributed import Client

from cluster_tools import (
    CUTS,
    Killer,
    assert_same,
    lazily,
    own_cluster,
    shared_client,
    slow_parts,
    unchanged,
    wave,
)
from imparo import NystromRegressor
from imparo.errors import ClusterError

SEVEN = CUTS["seven"]
slow = pytest.mark.slow


@pytest.fixture(autouse=True)
def hasty():
    """A cluster may be without workers for three seconds."""
    with dask.config.set({"imparo.patience": 3.0}):
        yield


def machine(kind="direct", **more):
    params = {"sigma": 1.0, "random_state": 0, "n_centers": 20, "penalty": [1e-1, 1e-2]}
    cg = {"solver": "cg", "iterations": 4}
    return NystromRegressor(**params | (cg if kind == "cg" else {}) | more)


def failed(model, *rows):
    """Return the sentence and the seconds of a fit that fails; the model is as it was."""
    before, began = dict(vars(model)), time.monotonic()
    with pytest.raises(ClusterError) as told:
        model.fit(*rows)
    assert unchanged(model, before)
    assert "\n" not in str(told.value)
    return str(told.value), time.monotonic() - began


def test_no_workers_and_then_one(tmp_path):
    X, y, _ = wave()
    given = lazily(X, SEVEN), lazily(y, SEVEN)
    with own_cluster(0) as (processes, _):
        told, seconds = failed(machine(), *given)
        assert told.startswith(f"the scheduler at {processes.address} has had no worker")
        assert 3 <= seconds < 12
        with dask.config.set({"imparo.patience": 60.0}):
            processes.add_worker()  # takes a second to come
            there = machine().fit(*given)
    assert_same(there, machine().fit(X, y), X[:50])


@pytest.mark.parametrize(
    ("kind", "after"),
    [("direct", 12), pytest.param("direct", 4, marks=slow), pytest.param("cg", 40, marks=slow)],
)
def test_the_scheduler_is_killed(tmp_path, kind, after):
    X, y, _ = wave()
    log = tmp_path / "log"
    with own_cluster(1) as (processes, _):
        model = machine(kind).fit(X, y)
        with Killer(log, after, [processes.scheduler]) as killer:
            told, _ = failed(model, slow_parts(X, y, SEVEN, log, seconds=0.1))
            ended = time.time()
        assert killer.began < ended < killer.began + 20
        assert "the model is as it was before" in told
        if after != 12:  # the client takes its time to give up
            told, seconds = failed(model, slow_parts(X, y, SEVEN, log))
            assert seconds < 60


def test_a_client_that_is_closed(request):
    X, y, _ = wave()
    address = shared_client(request.config).scheduler.address
    client = Client(address, set_as_default=False)
    model = machine(cluster=client).fit(X, y)
    client.close()
    for rows in ((X, y), (lazily(X, SEVEN), lazily(y, SEVEN))):
        _, seconds = failed(model, *rows)
        assert seconds < 15


@slow
@pytest.mark.parametrize("since", [1, 3])
def test_partitions_that_kill_whoever_makes_them(tmp_path, since):
    """Dask gives up after four workers: the data are the reason, not the machines.

    While rows are checked, or while they are summed.
    """
    X, y, _ = wave()
    folder, parent = tmp_path, os.getpid()

    def deadly(number):
        import signal

        made = len(list(folder.glob(f"{number} *")))
        (folder / f"{number} {made}").touch()
        # Fifteen deaths are too many, and the end of the test.
        if number == 2 and since <= made + 1 < since + 15 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return X[:40], y[:40]

    with own_cluster(1, nanny=True), dask.config.set({"imparo.patience": 60.0}):
        told, _ = failed(machine(), [dask.delayed(deadly)(number) for number in range(3)])
    what = {1: "checking rows", 3: "summing statistics"}[since]
    assert told.startswith(f"workers died again and again while {what}")
    assert "more, use fewer centers or features, or smaller partitions" in told
    assert len(list(folder.glob("2 *"))) <= since + 4


@slow
def test_workers_that_are_too_small():
    """Statistics that no worker can hold are refused before anything is summed."""
    X, y, _ = wave(4000)
    with own_cluster(1, memory="400MB") as (_, client):
        given = lazily(X, (2000, 2000)), lazily(y, (2000, 2000))
        few = NystromRegressor(sigma=1.0, penalty=1e-2, random_state=0).fit(*given)
        assert "1 worker of" in few.device_
        limit = client.scheduler_info()["workers"]
        assert {info["memory_limit"] for info in limit.values()} == {400_000_000}
        with pytest.raises(MemoryError, match="centers"):
            NystromRegressor(
                sigma=1.0, penalty=1e-2, n_centers=3900, solver="direct", random_state=0
            ).fit(*given)
