"""What ``advise`` predicts against what the fit takes, in a process of its own each."""

import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, show

# File, names of rows and outputs, task, budget in seconds.
SETS: dict[str, tuple[str, str, str, str, float]] = {
    "cpuSmall": ("cpu_small", "X", "y", "regression", 10),
    "pumadyn32nh": ("pumadyn32nh", "X", "y", "regression", 10),
    "adult": ("adult", "X_train", "y_train", "classification", 20),
    "ijcnn1": ("ijcnn1", "X_train", "y_train", "classification", 20),
    "kin40k": ("uci_kin40k", "X", "y", "regression", 20),
    "insurance": ("insurance_coil2000", "X_train", "y_train", "regression", 10),
    "covtype": ("covtype", "X", "y", "classification", 60),
}


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised rows and outputs of a shared data set."""
    file, rows, outputs, _, _ = SETS[name]
    with np.load(Path(os.environ["IMPARO_DATA"]) / f"{file}.npz") as archive:
        X, y = archive[rows].astype(float), archive[outputs]
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X, y


def look(name: str, pipe: Any) -> None:
    from imparo.theory import advise

    X, y = data(name)
    _, _, _, task, budget = SETS[name]
    advice = advise(X, y, budget, task=task)
    comparison = advice.compare(X, y, random_state=0)
    pipe.send((advice.method, advice.size, advice.needed, comparison))


def main() -> None:
    if "IMPARO_DATA" not in os.environ:
        print("IMPARO_DATA is not set: nothing to advise on")
        return
    context, rows = multiprocessing.get_context("spawn"), []
    for name in SETS:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=look, args=(name, sender))
        process.start()
        sender.close()
        method, size, needed, found = receiver.recv()
        process.join()
        rows.append([
            name, f"{method}, {size:,} (calls for {needed:,})",
            f"{found.expected.seconds:.2f}", f"{found.seconds:.2f}", f"{found.time_ratio:.2f}",
            f"{found.expected.bytes / 1e6:.0f}", f"{found.bytes / 1e6:.0f}",
            f"{found.memory_ratio:.2f}",
        ])  # fmt: skip
    show(
        f"Prediction and fit\n{machine()}",
        ["data", "advice", "s expected", "s taken", "ratio", "MB expected", "MB taken",
         "peak ratio"],
        rows,
    )  # fmt: skip
