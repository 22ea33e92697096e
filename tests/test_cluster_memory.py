"""Data that workers cannot hold: fitted without a spill, in the memory that is counted on."""

import os
import threading

import dask
import dask.array as da
import numpy as np
import pytest

from cluster_tools import own_cluster, peak_bytes
from imparo import NystromRegressor
from imparo.cluster import worker_bytes

N_PARTS, N_ROWS, N_COLUMNS = 40, 12_500, 300
PART = 8 * N_ROWS * N_COLUMNS  # 30 MB: all of them are 1.2 GB
LIMIT = 600_000_000


def large_rows():
    """Return pairs that are made when they are asked for, 1.2 GB in all."""

    def made(number):
        import numpy as np

        rng = np.random.default_rng(number)
        X = rng.random((N_ROWS, N_COLUMNS))
        return X, np.sin(4 * X[:, 0]) + X[:, 1]

    return [dask.delayed(made, pure=False)(number) for number in range(N_PARTS)]


def written(client):
    """Return what workers have ever written to disk, by kind of work."""

    def found(dask_worker):
        digests = dask_worker.digests_total
        return {str(k): v for k, v in digests.items() if "disk-write" in str(k) and v}

    return {k: v for one in client.run(found).values() for k, v in one.items()}


class Watch(threading.Thread):
    """Looks at what workers have on disk while something is done."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self._client, self._end, self.most, self.count = client, threading.Event(), 0, 0

    def run(self):
        while not self._end.wait(0.2):
            for worker in self._client.scheduler_info(n_workers=-1)["workers"].values():
                self.most = max(self.most, worker["metrics"]["spilled_bytes"]["disk"])
                self.count += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self.join()


@pytest.mark.parametrize(
    ("form", "solver"),
    [
        ("pairs", "direct"),
        pytest.param("pairs", "cg", marks=pytest.mark.slow),
        pytest.param("arrays", "direct", marks=pytest.mark.slow),
        pytest.param("arrays", "cg", marks=pytest.mark.slow),
    ],
)
def test_data_pass_through_workers_that_cannot_hold_them(form, solver):
    model = NystromRegressor(
        sigma=5.0, penalty=[1e-2, 1e-3], n_centers=300, solver=solver, random_state=0
    )
    if solver == "cg":
        model.set_params(penalty=1e-2, iterations=2)
    given = (large_rows(),)
    if form == "arrays":
        rng = da.random.default_rng(0)
        shape = N_ROWS * N_PARTS, N_COLUMNS
        X = rng.random(shape, chunks=(N_ROWS, N_COLUMNS))
        given = X, np.zeros(shape[0])
    with own_cluster(2, nanny=True, memory=str(LIMIT)) as (_, client):
        before = client.run(os.getpid)
        with Watch(client) as watch:
            model.fit(*given)
        assert client.run(os.getpid) == before  # nobody was started anew
        assert watch.count > 2
        assert watch.most == 0
        assert written(client) == {}
        peaks = [peak_bytes(pid) for pid in before.values()]
    assert N_PARTS * PART >= 2 * LIMIT
    cells = 2 if solver == "direct" else 1
    counted = worker_bytes(300, cells, PART, statistics=solver == "direct")
    assert max(peaks) <= 1.3 * counted
    assert max(peaks) <= 0.8 * LIMIT


@pytest.mark.slow
def test_what_would_be_seen():
    """The test above would see a spill: rows that are kept on such workers are written."""
    with own_cluster(2, nanny=True, memory=str(LIMIT)) as (_, client):
        with Watch(client) as watch:
            futures = client.compute(large_rows()[:36])
            dask.compute([dask.delayed(lambda pair: pair[1].sum())(f) for f in futures])
        assert written(client) != {}
        assert watch.most > 0


@pytest.mark.parametrize("m", [pytest.param(1000, marks=pytest.mark.slow), 2000])
def test_statistics_take_what_is_counted_on(m):
    """Four sets of m × m numbers for each part of the rows, and little else."""
    n, parts = 24_000, 12

    def made(number):
        import numpy as np

        X = np.random.default_rng(number).random((n // parts, 10))
        return X, X[:, 0]

    model = NystromRegressor(
        sigma=1.0, penalty=[1e-2, 1e-3], n_centers=m, solver="direct", random_state=0
    )
    with own_cluster(2) as (_, client):
        pids = client.run(os.getpid).values()
        model.fit([dask.delayed(made, pure=False)(number) for number in range(parts)])
        peaks = [peak_bytes(pid) for pid in pids]
    counted = worker_bytes(m, 2, 8 * n // parts * 10)
    assert max(peaks) <= 1.3 * counted
    assert max(peaks) >= 0.5 * counted  # what is counted on is not far too much either
