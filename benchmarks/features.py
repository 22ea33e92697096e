"""Random features: a path against scikit-learn at one penalty, and fast transforms."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks.common import machine, measure, measure_and_ask, show
from benchmarks.nystrom import LARGE, large_data
from imparo import RandomFeatureRegressor
from imparo.features import as_feature_rule
from imparo.kernels import Gaussian

FEATURES, SIGMA, PENALTY = 2048, 10.0, 1e-7
DIMENSIONS = (64, 128, 256, 512, 1024, 2048)
RULES = ("fourier", "orthogonal", "qmc", "fastfood", "sorf")


def sampler_ridge(n: int) -> Pipeline:
    """Return scikit-learn's Fourier features and ridge regression for one penalty."""
    return make_pipeline(
        RBFSampler(gamma=1 / (2 * SIGMA**2), n_components=FEATURES, random_state=0),
        Ridge(alpha=PENALTY * n, fit_intercept=False),
    )


def one_point(n: int) -> RandomFeatureRegressor:
    return RandomFeatureRegressor(
        sigma=SIGMA, penalty=PENALTY, n_features=FEATURES, random_state=0
    )


def whole_path(n: int) -> RandomFeatureRegressor:
    return RandomFeatureRegressor(sigma=SIGMA, random_state=0)


def fit(make: Callable[[int], Any], dtype: str) -> Callable[[], Any]:
    X, y = large_data()
    n = LARGE["rows"]
    X, y = X.astype(dtype), y.astype(dtype)
    X_test, y_test = X[n:].copy(), y[n:]
    X = X[:n].copy()

    def work() -> Callable[[], float]:
        model = make(n).fit(X, y[:n])
        return lambda: float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))

    return work


def evaluate(rule: str, d: int) -> Callable[[], Any]:
    X = np.random.default_rng(0).normal(size=(4000, d))
    map = as_feature_rule(rule).draw(Gaussian(np.sqrt(2.0 * d)), d, 2 * d, 0)
    return lambda: map.evaluate(X)


def fits() -> None:
    rows = []
    for dtype in ("float64", "float32"):
        rival = measure_and_ask(fit, sampler_ridge, dtype, repeats=2)
        works = {
            "RBFSampler + Ridge, 1 penalty": rival,
            "imparo, 1 penalty": measure_and_ask(fit, one_point, dtype, repeats=2),
            "imparo, whole path": measure_and_ask(fit, whole_path, dtype, repeats=2),
        }
        for name, (seconds, peak, error) in works.items():
            ratio = f"{rival[0] / seconds:.2f}"
            cells = [f"{seconds:.2f}", ratio, f"{peak / 1e6:.0f}", f"{error:.4f}"]
            rows.append([dtype, name, *cells])
    show(
        f"{FEATURES} random features, n = 100,000, d = 90\n{machine()}",
        ["type", "work", "seconds", "times faster", "peak MB", "test RMSE"],
        rows,
    )


def transforms() -> None:
    rows = []
    for d in DIMENSIONS:
        seconds = {rule: measure(evaluate, rule, d, repeats=5)[0] for rule in RULES}
        dense = seconds["fourier"]
        for rule in ("fourier", "fastfood", "sorf"):
            cells = [f"{1e3 * seconds[rule]:.1f}", f"{dense / seconds[rule]:.2f}"]
            rows.append([f"d = {d}, {2 * d} features", rule, *cells])
    show(f"Features of 4,000 rows\n{machine()}", ["size", "rule", "ms", "times dense"], rows)


def main() -> None:
    fits()
    transforms()
