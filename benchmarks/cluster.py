"""One and two workers against each other, against this machine alone, and against paper.

``python -m benchmarks cluster``: real scheduler and worker processes with a thread each. Rows
are made by the workers whenever they are needed, as if they were read from files.
"""

import time
from typing import Any

import numpy as np

from benchmarks.common import machine, measure, show
from benchmarks.processes import Processes, peak_bytes

ROWS, COLUMNS, CENTERS, PARTS = 500_000, 20, 2000, 40
SETTINGS = {"n_centers": CENTERS, "sigma": 4.0, "random_state": 0}


def rows(seed: int, n: int = ROWS // PARTS) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows: a smooth function of a few columns, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS))
    y = np.sin(X[:, 0] + X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * rng.normal(size=n)
    return X, y


def alone() -> Any:
    """Return the same fit on this machine, with all its cores."""
    from imparo import NystromRegressor

    def blocks() -> Any:
        return (rows(seed) for seed in range(PARTS))

    return lambda: NystromRegressor(**SETTINGS).fit(blocks)


def _sent(dask_worker: Any) -> int:
    return sum(record["total"] for record in dask_worker.transfer_outgoing_log)


def on_workers(count: int) -> dict[str, Any]:
    """Fit on a cluster; return seconds, peak bytes of the workers, and bytes between them."""
    import dask

    from imparo import NystromRegressor

    parts = [dask.delayed(rows)(seed) for seed in range(PARTS)]
    with Processes(count) as processes, processes.client() as client:
        # Imports, and the compilation of nothing: what a running cluster has behind it.
        NystromRegressor(n_centers=50, sigma=4.0, random_state=0).fit(parts[:2])
        before = sum(client.run(_sent).values())
        start = time.perf_counter()
        model = NystromRegressor(**SETTINGS).fit(parts)
        return {
            "seconds": time.perf_counter() - start,
            "peak": max(peak_bytes(worker.pid) for worker in processes.workers),
            "sent": sum(client.run(_sent).values()) - before,
            "error": model.path_.errors[model.path_.best_index],
        }


def by_hand(count: int) -> dict[str, Any]:
    """Sum K_nmᵀK_nm by dask.array, and solve for one penalty: what a user would write."""
    import dask
    import dask.array as da

    from imparo.kernels import Gaussian

    kernel = Gaussian(4.0)
    with Processes(count) as processes, processes.client() as client:
        client.run(_kernel_of, np.zeros((1, COLUMNS)), np.zeros((1, COLUMNS)))
        centers = rows(0)[0][:CENTERS]
        start = time.perf_counter()
        pairs = [dask.delayed(rows, nout=2)(seed) for seed in range(PARTS)]
        n = ROWS // PARTS
        X = da.concatenate([da.from_delayed(x, (n, COLUMNS), float) for x, _ in pairs])
        y = da.concatenate([da.from_delayed(t, (n,), float) for _, t in pairs])
        K = X.map_blocks(_kernel_of, centers, chunks=(X.chunks[0], (CENTERS,)), dtype=float)
        A, b = dask.compute(K.T @ K, K.T @ y)
        np.linalg.solve(A + 1e-7 * ROWS * kernel(centers), b)
        return {
            "seconds": time.perf_counter() - start,
            "peak": max(peak_bytes(worker.pid) for worker in processes.workers),
            "sent": sum(client.run(_sent).values()),
            "error": np.nan,
        }


def _kernel_of(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    from imparo.kernels import Gaussian

    return Gaussian(4.0)(X, centers)


def main() -> None:
    from imparo.theory import cluster_cost

    seconds, _ = measure(alone, repeats=1)
    table = [["this machine alone", f"{seconds:.1f}", "", "", "", "", "", ""]]
    found = {count: on_workers(count) for count in (1, 2)}
    for count, one in found.items():
        paper = cluster_cost(ROWS, COLUMNS, CENTERS, count, partition_rows=ROWS // PARTS)
        table.append(
            [f"{count} worker{'s' * (count > 1)}", f"{one['seconds']:.1f}",
             f"{paper.seconds:.1f}", f"{found[1]['seconds'] / one['seconds']:.2f}",
             f"{one['peak'] / 1e6:.0f}", f"{paper.worker_bytes / 1e6:.0f}",
             f"{one['sent'] / 1e6:.0f}", f"{one['error']:.4f}"]
        )  # fmt: skip
    hand = by_hand(2)
    table.append(
        ["2 workers, dask.array by hand, one λ", f"{hand['seconds']:.1f}", "", "",
         f"{hand['peak'] / 1e6:.0f}", "", f"{hand['sent'] / 1e6:.0f}", ""]
    )  # fmt: skip
    header = [
        "", "seconds", "on paper", "speed", "peak MB of a worker", "on paper",
        "MB sent by workers", "validation error",
    ]  # fmt: skip
    what = f"{ROWS:,} × {COLUMNS} rows, {CENTERS:,} centers, all penalties"
    show(f"{what}\n{machine()}", header, table)
