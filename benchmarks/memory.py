"""Peak memory of exact fits, in kernel matrices: what ``memory`` counts with."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import machine, measure, show
from imparo import KernelRegressor
from imparo.kernels import Gaussian, Matern

ROWS = 4000
KERNELS = {
    "gaussian": "gaussian",
    "laplacian": "laplacian",
    "matern52": "matern52",
    "polynomial": "polynomial",
    "gaussian + gaussian * matern52": Gaussian(3.0) + Gaussian(2.0) * Matern(2.5, 2.0),
}
WORKS: dict[str, dict[str, Any]] = {
    "one penalty": {"penalty": 1e-3},
    "path, leave-one-out": {},
    "path, leave-one-out, intercept": {"intercept": True},
    "path, hold-out": {"validation": 0.2, "random_state": 0},
}


def fit(kernel: Any, settings: dict[str, Any], dtype: str, columns: int) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    n = ROWS if columns < 100 else 2 * columns
    X, y = rng.normal(size=(n, columns)).astype(dtype), rng.normal(size=n)
    KernelRegressor(kernel, penalty=1.0).fit(X[:300], y[:300])
    return lambda: KernelRegressor(kernel, **settings).fit(X, y)


def main() -> None:
    rows = []
    for dtype in ("float64", "float32"):
        unit = ROWS**2 * np.dtype(dtype).itemsize
        for name, kernel in KERNELS.items():
            for work, settings in WORKS.items():
                _, peak = measure(fit, kernel, settings, dtype, 8, repeats=1)
                rows.append([f"{name}, {dtype}", work, f"{peak / unit:.2f}"])
    columns = 2000
    for work, settings in WORKS.items():
        _, peak = measure(fit, "linear", settings, "float64", columns, repeats=1)
        rows.append([f"linear, {columns} columns", work, f"{peak / (8 * columns**2):.2f}"])
    show(f"Peak memory of {ROWS} rows\n{machine()}", ["kernel", "work", "matrices"], rows)
