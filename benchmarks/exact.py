"""The whole path of 100 penalties with leave-one-out, against one fit of KernelRidge."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from benchmarks.common import machine, measure, show
from imparo import KernelRegressor
from imparo.kernels import median_width

ROWS = 3000
PENALTY = 1e-4


def data(name: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Return rows, outputs and the median width."""
    rng = np.random.default_rng(0)
    if name.startswith("cpuSmall"):
        with np.load(Path(os.environ["IMPARO_DATA"]) / "cpu_small.npz") as archive:
            X, y = archive["X"].astype(float), archive["y"].astype(float)
        X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
        some = rng.permutation(len(X))[:ROWS]
        X, y = X[some], y[some]
    else:
        X = rng.normal(size=(ROWS, 12 if "12" in name else 3))
        y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=ROWS)
    return X, y, median_width(X)


def kernel_ridge(name: str) -> Callable[[], Any]:
    X, y, sigma = data(name)
    model = KernelRidge(kernel="rbf", gamma=1 / (2 * sigma**2), alpha=PENALTY * len(y))
    return lambda: model.fit(X, y)


def one_penalty(name: str) -> Callable[[], Any]:
    X, y, sigma = data(name)
    return lambda: KernelRegressor(sigma=sigma, penalty=PENALTY).fit(X, y)


def whole_path(name: str) -> Callable[[], Any]:
    X, y, sigma = data(name)
    return lambda: KernelRegressor(sigma=sigma).fit(X, y)


def main() -> None:
    names = ["normal, d = 12", "normal, d = 3"]
    if "IMPARO_DATA" in os.environ:
        names.insert(0, "cpuSmall, d = 12")
    rows = []
    for name in names:
        rival, rival_bytes = measure(kernel_ridge, name)
        works = {
            "scikit-learn KernelRidge, one penalty": (rival, rival_bytes),
            "imparo, one penalty": measure(one_penalty, name),
            "imparo, 100 penalties with leave-one-out": measure(whole_path, name),
        }
        for work, (seconds, peak) in works.items():
            ratio = f"{seconds / rival:.2f}"
            rows.append([name, work, f"{seconds:.3f}", ratio, f"{peak / 1e6:.0f}"])
    show(
        f"Exact fit of {ROWS} rows, Gaussian kernel\n{machine()}",
        ["data", "work", "seconds", "ratio", "peak MB"],
        rows,
    )
