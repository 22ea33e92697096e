"""One GPU: grids of penalties and centers, many centers, many rows, and rivals beside them.

    python -m benchmarks.gpu [grid] [cg] [rows] [sgpr] [others] [logistic] [memory] [huge]

Needs PyTorch, NumPy, SciPy and scikit-learn, and nothing to install beside them: without
imparo in the environment, run it with PYTHONPATH=src. GPyTorch is measured where it is there.
Prints one table. Seconds are those of a whole ``fit``, model selection included, after a small
fit has started the device; host memory is what the fit adds to the process.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from imparo import (
    KernelRegressor,
    NystromClassifier,
    NystromRegressor,
    NytroRegressor,
    RandomFeatureRegressor,
    RecursiveRegressor,
    SGMRegressor,
)
from imparo.engine import choose_engine, computing_on
from imparo.estimators import large
from imparo.estimators.blocks import Stream
from imparo.estimators.passes import accumulate
from imparo.features import Fourier, NystromMap
from imparo.kernels import Gaussian

# The shape of YearPredictionMSD's training set.
ROWS, COLUMNS = 463_715, 90
MANY_ROWS, FEW_COLUMNS = 10_000_000, 28
DEVICE = "cuda" if torch.cuda.is_available() else "torch:cpu"
# To try the script where there is no GPU: a hundredth of the rows, a tenth of the centers.
SCALE = 1 if torch.cuda.is_available() else 100

Row = tuple[str, str, str, str, str]


def pinned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array in pinned memory, where there is a GPU to pin it for."""
    there = torch.cuda.is_available()
    return torch.empty(shape, dtype=dtype, pin_memory=there).numpy()


def year_like(dtype: Any = torch.float64) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of YearPredictionMSD's shape in pinned memory, and outputs."""
    rng = np.random.default_rng(0)
    n = ROWS // SCALE
    X = pinned((n, COLUMNS), dtype)
    rng.standard_normal(out=X, dtype=X.dtype)
    W = rng.normal(size=(COLUMNS, 8)).astype(X.dtype) / np.sqrt(COLUMNS)
    y = np.sin(X @ W).sum(axis=1) + 0.5 * rng.normal(size=n)
    return X, y


def many_rows() -> tuple[np.ndarray, np.ndarray]:
    """Return ten million rows in float32, in pinned memory, and outputs."""
    rng = np.random.default_rng(1)
    n = MANY_ROWS // SCALE
    X = pinned((n, FEW_COLUMNS), torch.float32)
    rng.standard_normal(out=X, dtype=np.float32)
    W = rng.normal(size=(FEW_COLUMNS, 8)).astype(np.float32) / np.sqrt(FEW_COLUMNS)
    y = np.sin(2 * (X @ W)).sum(axis=1) + 0.5 * rng.standard_normal(n, dtype=np.float32)
    return X, y


def resident() -> int:
    """Return the bytes that the process holds in main memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """Measure seconds, and the peaks of device and host memory, of what is within."""
    found: dict[str, float] = {}
    before, done, peak = resident(), threading.Event(), [0]

    def look() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], resident())

    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    watcher = threading.Thread(target=look)
    watcher.start()
    start = time.perf_counter()
    try:
        yield found
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    finally:
        found["seconds"] = time.perf_counter() - start
        done.set()
        watcher.join()
    found["host"] = max(peak[0], resident()) - before
    if torch.cuda.is_available():
        found["device"] = torch.cuda.max_memory_allocated()


def row(what: str, found: dict[str, float], result: str) -> Row:
    device = f"{found['device'] / 1e9:.1f} GB" if "device" in found else "-"
    return what, f"{found['seconds']:.2f} s", device, f"{found['host'] / 1e9:.2f} GB", result


def product_rate(dtype: Any = torch.float64) -> float:
    """Return the operations a second of a large matrix product."""
    size = 8192 // (1 if SCALE == 1 else 16)
    A = torch.randn((size, size), dtype=dtype, device=DEVICE.removeprefix("torch:"))
    best = float("inf")
    for _ in range(4):
        with watched() as found:
            A @ A
        best = min(best, found["seconds"])
    return 2 * size**3 / best


def warm_up(X: np.ndarray, y: np.ndarray) -> None:
    for solver in ("direct", "cg"):
        some = NystromRegressor(
            sigma=9.5, n_centers=500, penalty=[1e-3, 1e-4], device=DEVICE, solver=solver,
            random_state=0, iterations=3,
        )  # fmt: skip
        some.fit(X[:20_000], y[:20_000])


def grid() -> Iterator[Row]:
    """Yield figures of 100 penalties × 50 numbers of centers, and of the pass alone."""
    X, y = year_like()
    warm_up(X, y)
    m = 10_000 // (1 if SCALE == 1 else 20)
    sizes = np.linspace(m // 50, m, 50).astype(int)
    penalties = np.geomspace(1e-2, 1e-9, 100)
    for number in (1, 2):
        model = NystromRegressor(
            sigma=9.5, n_centers=sizes, penalty=penalties, device=DEVICE, random_state=0
        )
        with watched() as found:
            model.fit(X, y)
        best = model.path_.best
        text = f"RMSE {best['error']:.4f} at m = {best['n_centers']}; {model.device_}"
        yield row(f"{m:,} centers, 50 sizes x 100 penalties, run {number}", found, text)
        del model
    rate = product_rate()
    yield "float64 product, 8192 x 8192", "", "", "", f"{rate / 1e12:.1f} TFLOP/s"
    yield from _accumulation(X, y, m, rate)


def _accumulation(X: np.ndarray, y: np.ndarray, m: int, rate: float) -> Iterator[Row]:
    from imparo.data.sources import ArraySource

    engine = choose_engine(DEVICE)
    n = len(X)
    with computing_on(engine):
        map = NystromMap(Gaussian(9.5), X[:m].copy())
        rows = Stream(
            ArraySource(X, X.dtype), y[:, None], np.ones(n), np.zeros(n, np.int16), 1,
            100 * 10**9, False, engine,
        )  # fmt: skip
        with watched() as found:
            accumulate(rows, map, raw=True)
    # The symmetric half of K_nmᵀK_nm, and K_nm itself; whitening and upload count as time.
    operations = n * float(m) ** 2 + 2 * n * float(m) * COLUMNS
    share = operations / found["seconds"] / rate
    yield row("one pass: upload, kernel, products, whitening", found, f"{share:.0%} of that")


def cg() -> Iterator[Row]:
    """Yield figures of 50,000 centers by preconditioned conjugate gradients."""
    X, y = year_like(torch.float32)
    warm_up(X, y)
    m = 50_000 // (1 if SCALE == 1 else 50)
    yield from _by_cg(X, y, m, {"penalty": 1e-6, "iterations": 20}, all_steps=True)
    yield from _by_cg(X, y, m, {"penalty": 1e-6, "iterations": 20})
    yield from _by_cg(X, y, m, {"penalty": [1e-4, 1e-5, 1e-6, 1e-7]})


def huge() -> Iterator[Row]:
    """Yield figures of 150,000 centers, of which one matrix takes 90 GB."""
    X, y = year_like(torch.float32)
    warm_up(X, y)
    m = 150_000 // (1 if SCALE == 1 else 50)
    yield from _by_cg(X, y, m, {"penalty": 1e-6, "iterations": 20, "precision": "float32"})


def _by_cg(
    X: np.ndarray, y: np.ndarray, m: int, settings: dict[str, Any], all_steps: bool = False
) -> Iterator[Row]:
    model = NystromRegressor(
        sigma=9.5, n_centers=m, solver="cg", device=DEVICE, random_state=0, **settings
    )
    before = dict(large._CONVERGED)
    if all_steps:  # not to stop where the residual is down to what float32 gives
        large._CONVERGED = dict.fromkeys(before, 0.0)
    with watched() as found:
        model.fit(X, y)
    large._CONVERGED = before
    text = f"{model.iterations_} iterations"
    if model.path_ is not None:
        best = model.path_.best
        text = f"RMSE {best['error']:.4f} after {best['iterations']} at {best['penalty']:g}"
    count = np.size(settings["penalty"])
    what = f"{m:,} centers by cg, {count} {'penalty' if count == 1 else 'penalties'}, float32"
    yield row(what, found, text)


def rows() -> Iterator[Row]:
    """Yield figures of ten million rows."""
    X, y = many_rows()
    warm_up(X, y)
    m = 20_000 // (1 if SCALE == 1 else 50)
    held = len(X) - len(X) // 50
    test = slice(held, None)
    for precision in ("float32", None):
        model = NystromRegressor(
            sigma=5.0, n_centers=m, penalty=1e-7, iterations=20, device=DEVICE,
            random_state=0, precision=precision,
        )  # fmt: skip
        with watched() as found:
            model.fit(X[:held], y[:held])
        yield from _judged_by(model, X[test], y[test], found, held)


def _judged_by(
    model: Any, X: np.ndarray, y: np.ndarray, found: dict[str, float], n: int
) -> Iterator[Row]:
    with watched() as predicting:
        error = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    text = f"{model.solver_}, {model.iterations_} iterations, test RMSE {error:.4f}; "
    text += model.device_.rpartition(", ")[2]
    what = f"{n:,} rows x {FEW_COLUMNS}, {model.n_centers_:,} centers, float32"
    yield row(what, found, text)
    yield row(f"   predictions of {len(X):,} rows", predicting, "")


def sgpr() -> Iterator[Row]:
    """Yield GPyTorch's SGPR, and our time to its validation error."""
    X, y = year_like(torch.float32)
    warm_up(X, y)
    order = np.random.default_rng(2).permutation(len(X))
    held = order[: len(X) // 5]
    fitted = order[len(X) // 5 :]
    limit = 60.0
    reached: float | None = None
    for m in (1000,) if SCALE == 1 else (100,):
        try:
            with watched() as found:
                error, seconds = _sgpr(X, y, fitted, held, m, limit)
        except ImportError:
            yield "SGPR", "", "", "", "GPyTorch is not installed"
            return
        except torch.OutOfMemoryError:
            yield f"GPyTorch SGPR, {m:,} inducing points", "", "", "", "out of memory"
            continue
        found["seconds"] = seconds
        yield row(
            f"GPyTorch SGPR, {m:,} inducing points", found,
            f"validation RMSE {error:.4f}, best in {limit:.0f} s",
        )  # fmt: skip
        reached = error if reached is None else min(reached, error)
    share = 1 if SCALE == 1 else 20
    few: dict[str, Any] = {"sigma": [10.0, 20.0, 40.0]}
    many: dict[str, Any] = {
        "sigma": [10.0, 14.0], "penalty": [1e-5, 1e-6, 1e-7], "solver": "cg",
        "precision": "float32",
    }  # fmt: skip
    ladder = [(1000, few), (4000, few), (10_000, many), (20_000, many), (40_000, many)]
    for m, settings in ladder:
        model = NystromRegressor(
            n_centers=m // share, device=DEVICE, validation=[(fitted, held)], random_state=0,
            **settings,
        )  # fmt: skip
        with watched() as found:
            model.fit(X, y)
        best = model.path_.best
        text = f"validation RMSE {best['error']:.4f}, width {best['sigma']:g}, {model.solver_}"
        yield row(f"imparo, {m:,} centers, all widths and penalties", found, text)
        if reached is not None and best["error"] <= reached:
            break


def _sgpr(
    X: np.ndarray, y: np.ndarray, fitted: np.ndarray, held: np.ndarray, m: int, limit: float
) -> tuple[float, float]:
    """Return the best validation RMSE of SGPR within a limit of seconds, and when."""
    import gpytorch

    device = DEVICE.removeprefix("torch:")
    train, out, test, truth = (
        torch.tensor(part, dtype=torch.float32, device=device)
        for part in (X[fitted], y[fitted], X[held], y[held])
    )

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(train, out, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
            base.base_kernel.lengthscale = 9.5
            self.covar_module = gpytorch.kernels.InducingPointKernel(
                base, inducing_points=train[:m].clone(), likelihood=likelihood
            )

        def forward(self, rows: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(rows), self.covar_module(rows)
            )

    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
    model = Model(likelihood).to(device)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    best, when, start = float("inf"), 0.0, time.perf_counter()
    step = 0
    while time.perf_counter() - start < limit:
        model.train()
        likelihood.train()
        optimizer.zero_grad()
        loss = -objective(model(train), out)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 5 and step > 1:
            continue
        model.eval()
        likelihood.eval()
        with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
            parts = [model(part).mean for part in test.split(20_000)]
            error = float(((torch.cat(parts) - truth) ** 2).mean().sqrt())
        if error < best:
            best, when = error, time.perf_counter() - start
    return best, when


def others() -> Iterator[Row]:
    """Yield the other estimators on the GPU and on the CPU beside it."""
    X, y = year_like()
    n = 100_000 // SCALE
    X, y = X[:n], y[:n]
    warm_up(X, y)
    few = 2000 // (1 if SCALE == 1 else 20)
    shared = {"sigma": 9.5, "random_state": 0}
    map = Fourier().draw(Gaussian(9.5), COLUMNS, 1000, 0)
    exact_rows = 8000 if SCALE == 1 else 800
    works: dict[str, tuple[Callable[..., Any], dict[str, Any], int]] = {
        "Nystrom, 2,000 centers, 41 penalties": (
            NystromRegressor, shared | {"n_centers": few}, n,
        ),
        "random features, 2,000, all penalties": (
            RandomFeatureRegressor, shared | {"n_features": few}, n,
        ),
        "NYTRO, 2,000 centers, 100 iterations": (
            NytroRegressor, shared | {"n_centers": few, "iterations": range(1, 101)}, n,
        ),
        "exact, 100 penalties, leave-one-out, 8,000 rows": (
            KernelRegressor, {"sigma": 9.5}, exact_rows,
        ),
        "SGM, one pass, 30 steps, 2,000 centers": (
            SGMRegressor,
            shared | {"features": "nystrom", "n_features": few, "epochs": 1},
            n,
        ),
        "recursive, 1,000 Fourier features, 20,000 rows": (
            RecursiveRegressor, {"features": map}, 20_000 // SCALE,
        ),
    }  # fmt: skip
    for name, (make, settings, count) in works.items():
        seconds, errors = [], []
        for device in (DEVICE, "cpu"):
            model = make(**settings, device=device)
            with watched() as found:
                model.fit(X[:count], y[:count])
            seconds.append(found["seconds"])
            errors.append(float(np.sqrt(np.mean((model.predict(X[:2000]) - y[:2000]) ** 2))))
            if device == DEVICE:
                first = found
        text = f"CPU {seconds[1]:.2f} s, {seconds[1] / seconds[0]:.1f} times; "
        text += f"training RMSE {errors[0]:.4f}, CPU {errors[1]:.4f}"
        yield row(name, first, text)


def memory() -> Iterator[Row]:
    """Yield peaks beside the memory that was given."""
    X, y = year_like(torch.float32)
    warm_up(X, y)
    share = 1 if SCALE == 1 else 20
    works = {
        "5,000 centers, 5 sizes, 4 GB": {
            "n_centers": [1000 // share * k for k in range(1, 6)], "memory": "4GB",
        },
        "5,000 centers, 5 folds, 6 GB": {
            "n_centers": 5000 // share, "validation": 5, "memory": "6GB",
        },
        "30,000 centers by cg, 6 GB": {
            "n_centers": 30_000 // share, "penalty": [1e-5, 1e-6], "memory": "6GB",
        },
        "host 1 GB, device 4 GB, 5,000 centers": {
            "n_centers": 5000 // share, "memory": {"host": "1GB", "device": "4GB"},
        },
    }  # fmt: skip
    for name, settings in works.items():
        model = NystromRegressor(sigma=20.0, device=DEVICE, random_state=0, **settings)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        with watched() as found:
            model.fit(X, y)
        yield row(name, found, f"solver {model.solver_}")
        del model


def logistic() -> Iterator[Row]:
    """Yield logistic regression on many centers."""
    X, y = year_like(torch.float32)
    labels = np.where(y > 0, "up", "down")
    m = 20_000 // (1 if SCALE == 1 else 50)
    warm_up(X, y)
    model = NystromClassifier(
        sigma=9.5, n_centers=m, loss="logistic", penalty=[1e-4, 1e-5, 1e-6], device=DEVICE,
        random_state=0,
    )  # fmt: skip
    with watched() as found:
        model.fit(X, labels)
    text = f"{model.path_.best['error']:.2%} wrong at {model.penalty_:g}"
    yield row(f"logistic loss, {m:,} centers, 3 penalties", found, text)


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "grid": grid, "cg": cg, "rows": rows, "sgpr": sgpr, "others": others,
    "logistic": logistic, "memory": memory, "huge": huge,
}  # fmt: skip


def main() -> None:
    """Print one table of the parts that are named, or of all."""
    unknown = set(sys.argv[1:]) - set(PARTS)
    if unknown:
        sys.exit(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    card = (
        torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU: sizes reduced"
    )
    print(f"{card}; PyTorch {torch.__version__}, {os.cpu_count()} cores\n")
    header: Row = ("what", "seconds", "device", "host", "result")
    print(_line(header))
    for name in sys.argv[1:] or PARTS:
        for found in PARTS[name]():
            print(_line(found), flush=True)


def _line(cells: Row) -> str:
    widths = (58, 10, 10, 9)
    padded = [cells[0].ljust(widths[0])]
    padded += [cell.rjust(width) for cell, width in zip(cells[1:4], widths[1:], strict=True)]
    return "  ".join([*padded, cells[4]])


if __name__ == "__main__":
    main()
