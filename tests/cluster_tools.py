"""What the tests of clusters share: processes of Dask, rows, partitions, slow recipes."""

import contextlib
import gc
import sys
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client
from numpy.testing import assert_allclose

# Tests may be run by ``pytest`` too, which does not put the checkout on the path.
ROOT = str(Path(__file__).parents[1])
sys.path.extend([ROOT] * (ROOT not in sys.path))

from benchmarks.processes import Processes, peak_bytes  # noqa: E402

from imparo.cluster import team  # noqa: E402

__all__ = ["Processes", "peak_bytes"]

_SHARED, MORTAL = pytest.StashKey(), pytest.StashKey()


def shared_client(config):
    """Return a client of two workers that all tests of this process share.

    It is not the current one: other tests must not find it.
    """
    if _SHARED not in config.stash:
        processes = Processes(2).__enter__()
        config.stash[_SHARED] = processes.client(set_as_default=False)

        def end():
            for client in [config.stash[_SHARED], *team._CLIENTS.values()]:
                client.close()
            processes.__exit__()

        config.add_cleanup(end)
    return config.stash[_SHARED]


@contextlib.contextmanager
def at_work(client):
    """Make a client the current one, and see to it that workers do more than give rows."""

    def done():
        def count(dask_scheduler):
            kinds = dask_scheduler.task_prefixes.items()
            ours = [kind for name, kind in kinds if name.startswith("imparo-")]
            return sum(kind.state_counts[end] for kind in ours for end in ("memory", "erred"))

        return client.run_on_scheduler(count)

    before = done()
    with client.as_current():
        yield client
    assert done() > before


@contextlib.contextmanager
def own_cluster(workers=2, **options):
    """Give processes and their client, for tests that no other may share."""
    with (
        Processes(workers, **options) as processes,
        Client(processes.address, set_as_default=False, timeout="10s") as client,
        client.as_current(),
    ):
        if workers:
            client.wait_for_workers(workers, timeout=60)
        warm(client)
        yield processes, client


@contextlib.contextmanager
def mortal_workers(config, workers):
    """Give so many workers that may be killed, and their client; those that live are kept."""
    if MORTAL not in config.stash:
        processes = Processes(0).__enter__()
        client = Client(processes.address, set_as_default=False)
        config.stash[MORTAL] = processes, client
        config.add_cleanup(lambda: (client.close(), processes.__exit__()))
    processes, client = config.stash[MORTAL]
    until = time.monotonic() + 60
    while True:
        living = [worker for worker in processes.workers if worker.poll() is None]
        for worker in living[workers:]:
            kill(worker)
        for _ in range(workers - len(living)):
            processes.add_worker()
        seen = len(client.scheduler_info(n_workers=-1)["workers"])
        if seen == len(living) == workers:
            break
        assert time.monotonic() < until, processes.logs()
        time.sleep(0.05)
    warm(client)
    with client.as_current():
        yield living, client


def warm(client):
    """Let scheduler and workers import the library, which they do not answer during."""
    client.run_on_scheduler(lambda: __import__("imparo.estimators") and None)
    client.run(lambda: __import__("imparo.estimators") and None)


def kill(process):
    """Kill a process, and wait until it is dead."""
    process.kill()
    process.wait()


# Rows


def wave(n=300, d=3, n_outputs=1, seed=0):
    """Return rows, outputs and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n) + 2.0
    if n_outputs > 1:
        y = np.column_stack([y * (k + 1) - X[:, k % d] for k in range(n_outputs)])
    return X, y, rng.integers(0, 4, n) / 2.0


#: Rows of every partition, of 300 in all: one, two, seven, uneven ones, some empty.
CUTS = {
    "one": (300,),
    "two": (150, 150),
    "seven": (43, 43, 43, 43, 43, 43, 42),
    "uneven": (1, 200, 7, 92),
    "empty": (0, 120, 0, 0, 180, 0),
}


def kinds_and_cuts(kinds, iterated):
    """Return all pairs, to be tested; of kinds that pass over the rows often, few at once."""

    def marks(kind, name):
        few = kind in iterated and name not in ("seven", "empty")
        return [pytest.mark.slow] if few else []

    pairs = [
        pytest.param(kind, cuts, id=f"{kind}, {name}", marks=marks(kind, name))
        for kind in kinds
        for name, cuts in CUTS.items()
    ]
    return pytest.mark.parametrize(("kind", "cuts"), pairs)


def lazily(values, cuts):
    """Return an array of Dask whose partitions have so many rows."""
    return da.from_array(values, chunks=(cuts, *values.shape[1:]))


def pieces(values, cuts):
    """Return arrays of so many rows."""
    return np.split(values, np.cumsum(cuts)[:-1])


def delayed(parts):
    """Return a delayed object for each of some values."""
    return [dask.delayed(part, traverse=False) for part in parts]


# Comparisons


def assert_same(found, expected, new, tolerance=1e-10):
    """Assert that two models predict the same and were chosen by the same errors."""
    for name in ("predict", "decision_function", "predict_proba"):
        ours = getattr(expected, name, lambda rows: None)(new)
        if ours is None or ours.dtype.kind not in "fc":
            continue
        scale = max(1.0, np.abs(ours).max())
        assert_allclose(getattr(found, name)(new), ours, rtol=0, atol=tolerance * scale)
    assert (found.path_ is None) == (expected.path_ is None)
    if expected.path_ is not None:
        assert found.path_.errors.shape == expected.path_.errors.shape
        scale = np.nanmax(np.abs(expected.path_.errors))
        assert_allclose(
            found.path_.errors, expected.path_.errors, rtol=0, atol=tolerance * scale
        )
        assert found.path_.best_index == expected.path_.best_index


def unchanged(model, before):
    """Return whether a model has the attributes that it had, and no others."""
    after = vars(model)
    return list(after) == list(before) and all(after[name] is before[name] for name in before)


# Rows that are made slowly, and written down whenever they are


def slow_parts(X, y, cuts, log, seconds=0.0, weight=None, gate=None):
    """Return delayed pairs that add a line to a file before they are made.

    With a gate, whoever finds four lines waits until that file is there. Nothing of this
    file is needed to make them: workers do not see it.
    """

    def made(number, block, outputs, weight):
        import os
        import time

        with open(log, "a+") as file:
            file.seek(0)
            before = len(file.readlines())
            file.write(f"{number} {os.getpid()} {time.time()}\n")
        until = time.monotonic() + 60
        while gate and before >= 4 and not os.path.exists(gate) and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(seconds)
        return (block, outputs) if weight is None else (block, outputs, weight)

    weights = [None] * len(cuts) if weight is None else pieces(weight, cuts)
    return [
        dask.delayed(made, pure=False, traverse=False)(i, *three)
        for i, three in enumerate(zip(pieces(X, cuts), pieces(y, cuts), weights, strict=True))
    ]


def looks(log):
    """Return (partition, process, time) for each time that a partition was made."""
    if not Path(log).exists():
        return []
    lines = [line.split() for line in Path(log).read_text().splitlines()]
    return [(int(a), int(b), float(c)) for a, b, c in lines]


class Killer(threading.Thread):
    """Kills processes once partitions were made a number of times.

    Attributes
    ----------
    began, at : float or None
        Before and after it did, as ``time.time`` tells.
    """

    def __init__(self, log, after, processes):
        super().__init__(daemon=True)
        self._log, self._after, self._processes = log, after, processes
        self.began = self.at = None
        self._given_up = False
        self.start()

    def run(self):
        while len(looks(self._log)) < self._after:
            if self._given_up:
                return
            time.sleep(0.01)
        self.began = time.time()
        for process in self._processes:
            kill(process)
        self.at = time.time()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._given_up = True
        self.join()


def tasks_left(client, seconds=10.0):
    """Return how many tasks the scheduler has, once they no longer become fewer."""
    gc.collect()  # who has caught an error may hold its frames in a circle
    until = time.monotonic() + seconds
    while True:
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if left == 0 or time.monotonic() > until:
            return left
        time.sleep(0.05)
