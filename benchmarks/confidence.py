"""How far confidence can be trusted, and whether what was never shown is noticed."""

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.common import machine, show
from benchmarks.rare_classes import Problem, problems
from imparo import IncrementalClassifier, RandomFeatures

LEFT_OUT = {"MNIST": 2, "iCub": 5}
STREAM = 10_000
BELOW = 0.7


def main(trials: int = 4) -> None:
    """Print calibration errors, and how unknown classes are told, mean of some trials."""
    rows = []
    for problem in problems():
        maps = {"": None}
        if problem.title.startswith("MNIST"):
            maps["600 Fourier features"] = RandomFeatures(
                sigma=6.0, n_features=600, random_state=0
            )
        for name, features in maps.items():
            found = np.mean([_one(problem, features, seed) for seed in range(trials)], axis=0)
            accuracy, error, known, unknown, by_confidence, by_novelty = found
            rows.append(
                [problem.title, name, f"{accuracy:.1%}", f"{error:.1%}", f"{known:.0%}",
                 f"{unknown:.0%}", f"{by_confidence:.2f}", f"{by_novelty:.2f}"]
            )  # fmt: skip
    header = [
        "data", "features", "right", "calibration error", "known refused", "unknown refused",
        "AUC confidence", "AUC novelty",
    ]  # fmt: skip
    title = f"Confidence, {trials} trials; refused below {BELOW}\n{machine()}"
    show(title, header, rows)


def _one(problem: Problem, features: RandomFeatures | None, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(problem.y))[:STREAM]
    X, y = problem.X[order], problem.y[order]
    model = IncrementalClassifier(features).fit(X, y)
    confidence = model.confidence(problem.X_test)
    right = model.predict(problem.X_test) == problem.y_test
    classes = np.unique(y)
    count = next(n for name, n in LEFT_OUT.items() if problem.title.startswith(name))
    left_out = rng.choice(classes, count, replace=False)
    shown = ~np.isin(y, left_out)
    model = IncrementalClassifier(features).fit(X[shown], y[shown])
    sure = model.confidence(problem.X_test)
    new = np.isin(problem.y_test, left_out)
    return [
        float(right.mean()),
        _calibration_error(confidence, right),
        float(np.mean(sure[~new] < BELOW)),
        float(np.mean(sure[new] < BELOW)),
        roc_auc_score(new, -sure),
        roc_auc_score(new, model.novelty(problem.X_test)),
    ]


def _calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Return the mean distance of confidence and accuracy over bins of confidence."""
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(right[places == b].mean() - confidence[places == b].mean()) * np.mean(places == b)
        for b in np.unique(places)
    ]
    return float(np.sum(gaps))
