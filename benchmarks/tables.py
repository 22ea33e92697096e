"""AutoRegressor and AutoClassifier on tables, against boosted trees given the same time.

``SEEDS``, ``TREES`` (seeds of the trees) and ``BUDGET`` in the environment shorten a run;
``TABLES`` names data sets.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from benchmarks.common import machine, measure_and_ask, show
from imparo import AutoClassifier, AutoRegressor

BUDGET = float(os.environ.get("BUDGET", "120"))
SEEDS = int(os.environ.get("SEEDS", "3"))
# The rival's seeds, fewer where time is short.
TREES = int(os.environ.get("TREES", str(SEEDS)))
# Test error to reach, and rows that train, where the file does not say.
GOALS = {
    "pumadyn32nh": (0.0210, 4096),
    "pumadyn32nm": (0.0060, 4096),
    "cpu_act": (2.42, 6554),
    "cpu_small": (2.84, 6554),
    "uci_kin40k": (0.13, 36_000),
    "ijcnn1": (0.020, None),
    "adult": (0.150, None),
    "insurance_coil2000": (0.2315, None),
    "irrelevant": (None, None),
    "relevant": (None, None),
}
CLASSES = ("ijcnn1", "adult")
MADE = ("irrelevant", "relevant")


def data(name: str) -> tuple[Any, Any, Any, Any]:
    """Return training rows and outputs, test rows and outputs, as they are."""
    if name in MADE:
        return made(200 if name == "irrelevant" else 0)
    with np.load(Path(os.environ["IMPARO_DATA"]) / f"{name}.npz") as archive:
        parts = {key: archive[key].astype(float) for key in archive.files}
    n = GOALS[name][1]
    if n is not None:
        X, y = parts["X"], parts["y"].ravel()
        return X[:n], y[:n], X[n:], y[n:]
    X_test = parts["X_test"] if "X_test" in parts else parts["X_val"]
    y_test = parts["y_test"] if "y_test" in parts else parts["y_val"]
    # The last rows of this copy of adult are empty: an accident of its making.
    end = -1 if name == "adult" else None
    return parts["X_train"][:end], parts["y_train"][:end], X_test[:end], y_test[:end]


def made(irrelevant: int) -> tuple[Any, Any, Any, Any]:
    """Return 20,000 + 5,000 rows of five columns that count, among others that do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25_000, 5))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + 0.5 * X[:, 3] * X[:, 4]
    y += 0.2 * rng.normal(size=25_000)
    X = np.column_stack([X, rng.normal(size=(25_000, irrelevant))])
    X = X[:, rng.permutation(X.shape[1])]
    return X[:20_000], y[:20_000], X[20_000:], y[20_000:]


def error_of(name: str, predicted: Any, y: Any) -> float:
    if name in CLASSES:
        return float(np.mean(predicted != y))
    return float(np.sqrt(np.mean(np.square(predicted - y))))


def ours(name: str, seed: int) -> Callable[[], Any]:
    X, y, X_test, y_test = data(name)
    kind = AutoClassifier if name in CLASSES else AutoRegressor

    def work() -> Callable[[], Any]:
        start = time.perf_counter()
        model = kind(budget=BUDGET, random_state=seed).fit(X, y)
        seconds = time.perf_counter() - start

        def answer() -> dict[str, Any]:
            used = [int(i) for i in np.argsort(-getattr(model, "relevance_", np.zeros(1)))[:5]]
            return {
                "seconds": seconds,
                "error": error_of(name, model.predict(X_test), y_test),
                "kernels": " + ".join(f"{m.kernel!r:.24}" for m in model.members_),
                "unused": len(getattr(model, "unused_", [])),
                "most relevant": used,
                "record": [str(trial) for trial in model.record_],
                "stopped": model.stopped_,
            }

        return answer

    return work


def trees(name: str, seed: int) -> Callable[[], Any]:
    """Search at random for the best boosted trees until the time is over, then refit them."""
    X, y, X_test, y_test = data(name)
    is_class = name in CLASSES
    kind = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor

    def work() -> Callable[[], Any]:
        start = time.perf_counter()
        rng = np.random.default_rng(seed)
        rows, held = train_test_split(
            np.arange(len(y)),
            test_size=0.2,
            random_state=seed,
            stratify=y if is_class else None,
        )
        best: tuple[float, dict[str, Any]] = (np.inf, {})
        settings: dict[str, Any] = {"max_iter": 100, "early_stopping": False}
        longest, tried = 0.0, 0
        while time.perf_counter() - start + 2.5 * longest < BUDGET:
            before = time.perf_counter()
            model = kind(random_state=seed, **settings).fit(X[rows], y[rows])
            error = error_of(name, model.predict(X[held]), y[held])
            best = min(best, (error, settings), key=lambda pair: pair[0])
            longest, tried = max(longest, time.perf_counter() - before), tried + 1
            settings = {
                "learning_rate": float(10 ** rng.uniform(-2.0, -0.5)),
                "max_leaf_nodes": int(2 ** rng.uniform(2, 7)),
                "min_samples_leaf": int(2 ** rng.uniform(1, 7)),
                "l2_regularization": float(10 ** rng.uniform(-4, 2)),
                "max_features": float(rng.uniform(0.3, 1.0)),
                "max_iter": int(10 ** rng.uniform(1.8, 3.2)),
                "early_stopping": False,
            }
        model = kind(random_state=seed, **best[1]).fit(X, y)
        seconds = time.perf_counter() - start
        return lambda: {
            "seconds": seconds, "error": error_of(name, model.predict(X_test), y_test),
            "tried": tried,
        }  # fmt: skip

    return work


def main() -> None:
    if "IMPARO_DATA" not in os.environ:
        print("tables: IMPARO_DATA does not name a folder with the benchmark data; left out")
        return
    chosen = os.environ.get("TABLES", " ".join(GOALS)).split()
    rows = []
    for name in chosen:
        found: dict[str, list[dict[str, Any]]] = {"imparo": [], "trees": []}
        for who, fit in (("imparo", ours), ("trees", trees)):
            for seed in range(
                SEEDS if who == "imparo" else int(os.environ.get("TREES", SEEDS))
            ):
                answer = measure_and_ask(fit, name, seed, repeats=1)[2]
                found[who].append(answer)
                told = {key: value for key, value in answer.items() if key != "record"}
                print(f"{name}, seed {seed}, {who}: {told}", file=sys.stderr)
                for line in answer.get("record", []):
                    print(f"    {line}", file=sys.stderr)
        goal = GOALS[name][0]
        line = [name, "" if goal is None else f"{goal:g}"]
        for answers in found.values():
            errors = [answer["error"] for answer in answers]
            line.append(f"{np.mean(errors):.4g}" if errors else "–")
            line.append(f"{np.min(errors):.4g}–{np.max(errors):.4g}" if errors else "–")
            line.append(f"{np.mean([a['seconds'] for a in answers]):.0f}" if errors else "–")
        rows.append(line)
    show(
        f"Test error (RMSE, or misclassification rate), budget {BUDGET:g} s\n{machine()}",
        ["data", "goal", "imparo", "seeds", "seconds", "boosted trees", "seeds", "seconds"],
        rows,
    )
