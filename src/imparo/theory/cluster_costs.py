"""Whether a cluster pays: seconds and bytes of a fit here, and by its workers."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from imparo.cluster.costs import n_groups, sent_bytes, statistics_bytes, worker_bytes
from imparo.engine import default_engine, host_engine, one_thread
from imparo.kernels import Gaussian, Kernel
from imparo.theory.costs import as_bytes, as_time, entry_seconds, seconds_of

# Seconds that a pass takes however little it does, and a task of it.
_PASS, _TASK = 0.05, 0.002
# What the workers' share of a pass is more than the mean, as some end later.
_UNEVEN = 1.05
_ROWS, _SIZE = 1024, 1024
# Rows of a partition, if nothing is known of them.
_PARTITION = 50_000


@dataclass(frozen=True)
class ClusterCost:
    """What a Nyström fit takes on this machine, and on a cluster.

    Attributes
    ----------
    seconds, local_seconds : float
        Of the fit on the cluster, and on this machine with all its cores.
    worker_bytes : int
        The most memory of a worker.
    here_bytes, local_bytes : int
        Of this machine with the cluster, and without it, rows in memory included.
    sent_bytes : int
        Over the network.
    workers : int
    """

    seconds: float
    local_seconds: float
    worker_bytes: int
    here_bytes: int
    local_bytes: int
    sent_bytes: int
    workers: int

    @property
    def pays(self) -> bool:
        """Whether the cluster is sooner done."""
        return bool(self.seconds < self.local_seconds)

    @property
    def speedup(self) -> float:
        """How many times sooner."""
        return self.local_seconds / self.seconds

    def __str__(self) -> str:
        verdict = "pays" if self.pays else "does not pay"
        return (
            f"a cluster of {self.workers} workers {verdict}: {as_time(self.seconds)}, and "
            f"{as_time(self.local_seconds)} here; {as_bytes(self.worker_bytes)} a worker and "
            f"{as_bytes(self.here_bytes)} here, and {as_bytes(self.local_bytes)} here without "
            f"it; {as_bytes(self.sent_bytes)} over the network"
        )


@dataclass(frozen=True)
class Speeds:
    """Speeds of a core, and of all cores, of this machine.

    Attributes
    ----------
    gram, gram_all : float
        ΦᵀΦ: operations a second, m² of them a row.
    cholesky_all : float
        m³/3.
    entry, entry_all : float
        Seconds of a kernel value.
    """

    gram: float
    gram_all: float
    cholesky_all: float
    entry: float
    entry_all: float


@cache
def _grams() -> tuple[float, float, float]:
    rng, engine = np.random.default_rng(0), host_engine()
    F = rng.normal(size=(_ROWS, _SIZE))
    A = engine.zeros((_SIZE, _SIZE), np.dtype(np.float64))
    S = engine.product(F.T, F) + _ROWS * np.eye(_SIZE)

    def gram() -> float:
        return _ROWS * _SIZE**2 / seconds_of(lambda: engine.accumulate_gram(A, F), 0.1)

    everything = gram(), _SIZE**3 / 3 / seconds_of(lambda: default_engine().cholesky(S), 0.1)
    with one_thread():
        return gram(), *everything


def speeds(d: int, kernel: Kernel | None = None) -> Speeds:
    """Return the speeds of this machine for rows of d columns, measured in half a second.

    Parameters
    ----------
    d : int
    kernel : Kernel, optional
        Gaussian if left out.

    Returns
    -------
    Speeds
    """
    X = np.random.default_rng(0).normal(size=(_ROWS, d))
    kernel = Gaussian(float(np.sqrt(d))) if kernel is None else kernel
    everything = entry_seconds(kernel, X)
    with one_thread():
        alone = entry_seconds(kernel, X)
    gram, gram_all, cholesky_all = _grams()
    # On a machine that has other work, too, one core may seem faster than all.
    return Speeds(gram, max(gram, gram_all), cholesky_all, alone, min(alone, everything))


def cluster_cost(
    n: int,
    d: int,
    m: int,
    workers: int,
    *,
    threads: int = 1,
    outputs: int = 1,
    parts: int = 2,
    penalties: int = 41,
    partition_rows: int | None = None,
    bandwidth: float = 1e9,
    iterations: int | None = None,
    measured: Any = None,
) -> ClusterCost:
    """Return what a Nyström fit takes here and on a cluster, to tell whether that pays.

    With G operations a second for ΦᵀΦ and c seconds for a kernel value on one core, the pass
    takes n(m²/G + mc) on one, and that over the number of workers on a cluster, where sums of
    8m² bytes for each part of the rows are added in a tree as well. All penalties are solved
    for on this machine, whatever makes the pass.

    Parameters
    ----------
    n, d, m : int
        Numbers of rows, columns and centers.
    workers : int
        Processes with a core each, as fast as one of this machine.
    threads : int
        Of every worker, each with a core of its own.
    outputs : int
    parts : int
        Parts of the rows with statistics of their own: 2 for a hold-out, V for V folds.
    penalties : int
    partition_rows : int, optional
        Rows of a partition; 50,000 if left out.
    bandwidth : float
        Bytes a second between two machines.
    iterations : int, optional
        Of conjugate gradients in all, where there are no statistics (``solver="cg"``).
    measured : Speeds, optional
        Speeds of a machine; those of this one, measured now, if left out.

    Returns
    -------
    ClusterCost

    Examples
    --------
    >>> from imparo.theory import cluster_cost
    >>> from imparo.theory.cluster_costs import Speeds
    >>> two_cores = Speeds(4e10, 8e10, 5e10, 8e-9, 4e-9)
    >>> cluster_cost(10_000, 10, 500, workers=4, measured=two_cores).pays
    False
    >>> print(cluster_cost(10_000_000, 28, 5000, workers=32, measured=two_cores))
    a cluster of 32 workers pays: 4.3 min, and 56 min here; ...
    """
    for name, value in (("n", n), ("d", d), ("m", m), ("workers", workers),
                        ("threads", threads), ("parts", parts)):  # fmt: skip
        if value < 1:
            raise ValueError(f"{name}={value!r} must be a number from 1 on")
    if bandwidth <= 0:
        raise ValueError(f"bandwidth={bandwidth!r} must be a positive number of bytes a second")
    speed = speeds(d) if measured is None else measured
    slots, size = workers * threads, min(n, partition_rows or _PARTITION)
    groups = n_groups(n, slots, -(-n // size))
    partition, square = 8 * size * d, float(m) ** 2
    table = statistics_bytes(m, parts)
    if iterations is None:
        alone = n * (square / speed.gram + m * speed.entry)
        here = n * (square / speed.gram_all + m * speed.entry_all)
        solving = (2 + penalties) * m * square / 3 / speed.cholesky_all
        sent = sent_bytes(n, d, m, parts, outputs, workers)
        levels = np.ceil(np.log2(max(2, workers))) + 2
        network = levels * table / bandwidth + 4 * _PASS + 4 * groups * _TASK
        matrices, passes = 8 + parts, 1
    else:
        # A product with a vector waits for memory: about as long as 16 operations.
        vector = 4 * 16 * outputs / speed.gram
        alone, here = (n * m * (e + vector) for e in (speed.entry, speed.entry_all))
        solving = (1 + penalties) * m * square / speed.cholesky_all
        travels = 8 * m * outputs * (workers + groups)
        sent = sent_bytes(n, d, 0, parts, outputs, workers) + iterations * travels
        network = travels / bandwidth / workers + _PASS / 10 + groups * _TASK
        matrices, passes = 1, iterations
    rows = 8 * n * (outputs + 2)
    fixed = n * 8 * outputs / bandwidth + 8 * m * d * 2 / bandwidth
    return ClusterCost(
        seconds=float(passes * (_UNEVEN * alone / slots + network) + fixed + solving),
        local_seconds=float(passes * here + solving),
        worker_bytes=worker_bytes(m, parts, partition, threads, statistics=iterations is None),
        here_bytes=int(8 * square * matrices) + rows,
        local_bytes=int(8 * square * matrices) + rows + 8 * n * d,
        sent_bytes=int(sent),
        workers=workers,
    )
