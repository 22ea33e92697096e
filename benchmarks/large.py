"""Two million rows from disk within a gigabyte: peak memory of the whole process."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, measure_and_ask, peak, show
from imparo import NystromRegressor

ROWS, COLUMNS = 2_000_000, 50


def write(folder: str) -> None:
    """Write the rows and outputs, a piece at a time."""
    rng = np.random.default_rng(0)
    X = np.memmap(Path(folder) / "X.dat", np.float64, "w+", shape=(ROWS, COLUMNS))
    y = np.memmap(Path(folder) / "y.dat", np.float64, "w+", shape=(ROWS,))
    for start in range(0, ROWS, 50_000):
        part = rng.normal(size=(50_000, COLUMNS))
        X[start : start + 50_000] = part
        y[start : start + 50_000] = np.sin(part[:, 0]) + part[:, 1] * part[:, 2]


def fit(folder: str, settings: dict[str, Any]) -> Callable[[], Any]:
    X = np.memmap(Path(folder) / "X.dat", np.float64, "r", shape=(ROWS, COLUMNS))
    y = np.memmap(Path(folder) / "y.dat", np.float64, "r", shape=(ROWS,))

    def work() -> Callable[[], float]:
        start = time.perf_counter()
        model = NystromRegressor(**settings, memory="1GB", random_state=0).fit(X, y)
        seconds = time.perf_counter() - start
        whole = peak()
        return lambda: (model.n_centers_, model.path_, seconds, whole)

    return work


def main() -> None:
    works = {
        "1,000 centers, 1 penalty": {"n_centers": 1000, "penalty": 1e-6},
        "4 levels to 1,000 x 41 penalties, hold-out": {"n_centers": [125, 250, 500, 1000]},
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write(folder)
        for name, settings in works.items():
            seconds, _, answer = measure_and_ask(fit, folder, settings, repeats=1)
            rows.append(["", name, f"{seconds:.1f}", f"{answer[3] / 1e6:.0f}"])
    size = ROWS * COLUMNS * 8 / 1e6
    show(
        f"{ROWS:,} rows x {COLUMNS}, a file of {size:.0f} MB, memory='1GB'\n{machine()}",
        ["", "work", "seconds", "peak MB of the whole process"],
        rows,
    )
