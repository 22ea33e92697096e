"""AutoRegressor and AutoClassifier within ten seconds, against the default estimators."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.common import machine, measure_and_ask, show
from imparo import AutoClassifier, AutoRegressor, NystromClassifier, NystromRegressor

BUDGET = 10.0
REGRESSION = (
    "cpu_act", "cpu_small", "pumadyn32nh", "pumadyn32nm", "uci_kin40k", "icub_arm_ft_small",
    "sarcos_inv_test_only",
)  # fmt: skip
CLASSES = (
    "breastcancer_thesis", "insurance_coil2000", "adult", "ijcnn1", "covtype", "mnist",
    "icub_camera49_effnetlite0",
)  # fmt: skip


def data(name: str) -> tuple[Any, Any, Any, Any]:
    """Return training and test rows, columns standardized, and outputs."""
    with np.load(Path(os.environ["IMPARO_DATA"]) / f"{name}.npz") as archive:
        parts = {key: archive[key] for key in archive.files}
    if "X_train" in parts:
        X, y = parts["X_train"], parts["y_train"]
        X_test = parts.get("X_test", parts.get("X_val"))
        y_test = parts.get("y_test", parts.get("y_val"))
    else:
        X = parts.get("X", parts.get("X_test"))
        y = next(parts[key] for key in ("y", "Y", "y_test") if key in parts)
        order = np.random.default_rng(0).permutation(len(X))
        X, y = X[order], y[order]
        n = len(X) * 4 // 5
        X, X_test, y, y_test = X[:n], X[n:], y[:n], y[n:]
    scaler = StandardScaler().fit(X.astype(float))
    return scaler.transform(X.astype(float)), y, scaler.transform(X_test.astype(float)), y_test


def fit(name: str, make: Callable[[], Any]) -> Callable[[], Any]:
    X, y, X_test, y_test = data(name)

    def work() -> Callable[[], Any]:
        start = time.perf_counter()
        model = make().fit(X, y)
        seconds = time.perf_counter() - start

        def answer() -> dict[str, Any]:
            F = model.predict(X_test)
            wrong = (
                np.mean(y_test != F) if name in CLASSES else np.sqrt(np.mean((F - y_test) ** 2))
            )
            found = {"seconds": seconds, "error": float(wrong), "m": model.n_centers_}
            for key in ("stopped_", "method_"):
                found[key] = getattr(model, key, "")
            return found

        return answer

    return work


def default_regressor() -> Any:
    return NystromRegressor(random_state=0)


def default_classifier() -> Any:
    return NystromClassifier(random_state=0)


def auto_regressor() -> Any:
    return AutoRegressor(budget=BUDGET, random_state=0)


def auto_classifier() -> Any:
    return AutoClassifier(budget=BUDGET, random_state=0)


def main() -> None:
    if "IMPARO_DATA" not in os.environ:
        print("auto: IMPARO_DATA does not name a folder with the benchmark data; left out")
        return
    rows = []
    for name in (*REGRESSION, *CLASSES):
        classes = name in CLASSES
        default = default_classifier if classes else default_regressor
        auto = auto_classifier if classes else auto_regressor
        plain = measure_and_ask(fit, name, default, repeats=1)[2]
        ours = measure_and_ask(fit, name, auto, repeats=1)[2]
        print(f"{name}: Auto {ours}, default {plain}", file=sys.stderr)
        rows.append(
            [name, f"{ours['method_']}, m = {ours['m']}", f"{ours['seconds']:.1f}",
             f"{ours['error']:.5g}", f"{plain['seconds']:.1f}", f"{plain['error']:.5g}",
             ours["stopped_"]]
        )  # fmt: skip
    show(
        f"A budget of {BUDGET:g} s; test error (RMSE, or misclassification rate)\n{machine()}",
        ["data", "Auto", "seconds", "error", "default: seconds", "error", "stopped because"],
        rows,
    )
