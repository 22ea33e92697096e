"""Nyström KRLS: grids on cpuSmall, one large fit, and the rivals beside us."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, measure, measure_and_ask, show
from benchmarks.rivals import DivideAndConquer, nystroem_ridge
from imparo import NystromRegressor
from imparo.engine import default_engine
from imparo.incremental_nystrom import incremental_nystrom
from imparo.kernels import Gaussian

LEVELS = np.linspace(20, 1000, 50).astype(int)
PENALTIES = np.logspace(-8, 0, 20)
# The authors' published code (NystromCoRe, Octave) on a machine like this one, one λ,
# m = 1 … 1000: it needs Octave and is not run here.
AUTHORS_SECONDS = 29.0
LARGE = {"rows": 100_000, "columns": 90, "centers": 2000}


def cpu_small() -> tuple[np.ndarray, np.ndarray, float]:
    """Return the 6554 training rows of cpuSmall, or normal rows of that shape."""
    if "IMPARO_DATA" in os.environ:
        with np.load(Path(os.environ["IMPARO_DATA"]) / "cpu_small.npz") as archive:
            X, y = archive["X"].astype(float), archive["y"].astype(float)
        X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
        return X[:6554], y[:6554], 0.5
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6554, 12))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=6554), 5.0


def refitted_levels() -> Callable[[], Any]:
    X, y, sigma = cpu_small()
    n = len(y) * 4 // 5

    def work() -> None:
        for m in LEVELS:
            model = nystroem_ridge(sigma, 1e-6, m, n).fit(X[:n], y[:n])
            np.mean((model.predict(X[n:]) - y[n:]) ** 2)

    return work


def whole_grid() -> Callable[[], Any]:
    X, y, sigma = cpu_small()
    settings = {"sigma": sigma, "penalty": PENALTIES, "n_centers": LEVELS, "random_state": 0}
    return lambda: NystromRegressor(**settings).fit(X, y)


def every_size() -> Callable[[], Any]:
    X, y, sigma = cpu_small()
    settings = {"sigma": sigma, "penalty": 1e-6, "n_centers": np.arange(1, 1001)}
    return lambda: NystromRegressor(**settings, random_state=0).fit(X, y)


def algorithm_1() -> Callable[[], Any]:
    """Alg. 1 with compiled rotations, every m up to 1000, validation errors included.

    At a large penalty: with small ones its matrices are singular in floating point.
    """
    X, y, sigma = cpu_small()
    n = len(y) * 4 // 5
    centers = X[np.random.default_rng(0).permutation(n)[:1000]]
    kernel, product = Gaussian(sigma), default_engine().product

    def work() -> None:
        K, K_held, K_mm = kernel(X[:n], centers), kernel(X[n:], centers), kernel(centers)
        for t, alpha in enumerate(incremental_nystrom(K, K_mm, y[:n, None], 1e-2), start=1):
            if t % 20 == 0:
                np.mean((product(K_held[:, :t], alpha)[:, 0] - y[n:]) ** 2)

    return work


def grids() -> None:
    refits, refits_bytes = measure(refitted_levels, repeats=1)
    rank_one, rank_one_bytes = measure(algorithm_1, repeats=2)
    grid, grid_bytes = measure(whole_grid)
    sizes, sizes_bytes = measure(every_size)
    count = len(PENALTIES)
    rows = [
        [
            f"{len(LEVELS)} levels x {count} penalties",
            f"scikit-learn, refitted ({len(LEVELS)} points measured, x {count})",
            f"{refits * count:.1f}", f"{refits * count / grid:.0f}",
            f"{refits_bytes / 1e6:.0f}",
        ],
        [
            "", f"Alg. 1 by rank-one updates (1 penalty measured, x {count})",
            f"{rank_one * count:.1f}", f"{rank_one * count / grid:.0f}",
            f"{rank_one_bytes / 1e6:.0f}",
        ],
        ["", "imparo", f"{grid:.3f}", "1", f"{grid_bytes / 1e6:.0f}"],
        [
            "every m = 1 .. 1000, 1 penalty", "the authors' code (quoted, not run)",
            f"{AUTHORS_SECONDS:.0f}", f"{AUTHORS_SECONDS / sizes:.0f}", "",
        ],
        [
            "", "Alg. 1 by rank-one updates", f"{rank_one:.2f}", f"{rank_one / sizes:.0f}",
            f"{rank_one_bytes / 1e6:.0f}",
        ],
        ["", "imparo", f"{sizes:.3f}", "1", f"{sizes_bytes / 1e6:.0f}"],
    ]  # fmt: skip
    name = "cpuSmall" if "IMPARO_DATA" in os.environ else "normal rows"
    show(
        f"Nyström KRLS on {name}, 6554 rows, hold-out\n{machine()}",
        ["work", "by", "seconds", "times ours", "peak MB"],
        rows,
    )


def large_data() -> tuple[np.ndarray, np.ndarray]:
    """Return rows of 90 correlated columns and a smooth function of what they share."""
    rng = np.random.default_rng(0)
    n, d = LARGE["rows"] + 10_000, LARGE["columns"]
    Z = rng.normal(size=(n, 10))
    X = Z @ rng.normal(size=(10, d)) / np.sqrt(10) + 0.3 * rng.normal(size=(n, d))
    y = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + Z[:, 3:].sum(axis=1) / 3
    return X, y + 0.1 * rng.normal(size=n)


def large(make: Callable[[int], Any]) -> Callable[[], Any]:
    X, y = large_data()
    n = LARGE["rows"]
    X_test, y_test = X[n:].copy(), y[n:]
    X = X[:n].copy()

    def work() -> Callable[[], tuple[float, float]]:
        model = make(n).fit(X, y[:n])

        def ask() -> tuple[float, float]:
            start = time.perf_counter()
            predicted = model.predict(X_test)
            seconds = time.perf_counter() - start
            return float(np.sqrt(np.mean((predicted - y_test) ** 2))), seconds

        return ask

    return work


SIGMA, PENALTY = 12.0, 1e-7


def sklearn_point(n: int) -> Any:
    return nystroem_ridge(SIGMA, PENALTY, LARGE["centers"], n)


def our_point(n: int) -> Any:
    m = LARGE["centers"]
    return NystromRegressor(sigma=SIGMA, penalty=PENALTY, n_centers=m, random_state=0)


def our_point_32(n: int) -> Any:
    return our_point(n).set_params(dtype="float32")


def our_grid(n: int) -> Any:
    levels = np.linspace(40, LARGE["centers"], 50).astype(int)
    return our_point(n).set_params(penalty=np.logspace(-12, 0, 20), n_centers=levels)


def divided(n: int) -> Any:
    return DivideAndConquer(SIGMA, PENALTY, part=2000)


def product_rate(repeats: int = 5) -> float:
    """Return the best rate of a matrix product, in operations a second."""
    A = np.random.default_rng(0).normal(size=(3000, 3000))
    product, best = default_engine().product, np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        product(A, A)
        best = min(best, time.perf_counter() - start)
    return 2 * 3000**3 / best


def one_large_fit() -> None:
    n, d, m = LARGE["rows"], LARGE["columns"], LARGE["centers"]
    works = {
        "scikit-learn Nystroem + Ridge, 1 point": (sklearn_point, 1),
        "divide and conquer, 50 x exact KRLS, 1 penalty": (divided, 1),
        "imparo, 1 point": (our_point, 3),
        "imparo, 1 point, float32": (our_point_32, 3),
        "imparo, 50 levels x 20 penalties, hold-out": (our_grid, 1),
    }
    rows, rate = [], product_rate()
    operations = n * m * (m + 1) + 2 * n * m * d + 4 * m**3 / 3
    rival = None
    for name, (make, repeats) in works.items():
        seconds, peak, (error, asked) = measure_and_ask(large, make, repeats=repeats)
        rival = rival or seconds
        share = f"{operations / seconds / rate:.0%}" if make is our_point else ""
        rows.append(
            ["", name, f"{seconds:.2f}", f"{rival / seconds:.1f}", f"{peak / 1e6:.0f}",
             f"{error:.4f}", f"{asked:.2f}", share]
        )  # fmt: skip
    show(
        f"n = {n:,}, d = {d}, m = {m:,}; a matrix product runs at {rate / 1e9:.0f} GFLOP/s\n"
        f"{machine()}",
        [
            "",
            "work",
            "seconds",
            "speed-up",
            "peak MB",
            "test RMSE",
            "10,000 predicted",
            "of product rate",
        ],
        rows,
    )


def main() -> None:
    grids()
    one_large_fit()
