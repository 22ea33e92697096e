"""A rare class among frequent ones: the protocol of the thesis' section 7.6."""

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import data_set, machine, show
from imparo import IncrementalClassifier
from imparo.lifelong import RebalancedClassifier
from imparo.paths import pyplot

PENALTIES = 10.0 ** np.arange(-1, 3.5, 0.5)
NAMES = ["naive", "rebalanced", "α = 0.7", "strict rule", "imparo's choice"]
# Accuracies of all classes and of the rare one, table 7.1 of the thesis.
THESIS = {10: "81.0 / 25.1", 50: "83.9 / 49.1", 100: "85.1 / 62.7", 500: "86.1 / 77.8"}


class Problem(NamedTuple):
    """Examples to learn, examples to ask, and how many of each class."""

    title: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    n_bal: int
    n_test: int
    n_imb: tuple[int, ...]


def problems() -> list[Problem]:
    found, mnist = [], data_set("mnist")
    if mnist is not None:
        X, X_test = (mnist[k].reshape(-1, 784) / 255.0 for k in ("X_train", "X_test"))
        y, y_test = mnist["y_train"], mnist["y_test"]
        found.append(
            Problem("MNIST, pixels", X, y, X_test, y_test, 1000, 200, (10, 50, 100, 500))
        )
    icub = data_set("icub_camera49_effnetlite0")
    if icub is not None:
        X, y, seen = icub["X"].astype(float), icub["y"], icub["view"] < 36
        parts = X[seen], y[seen], X[~seen], y[~seen]
        found.append(Problem("iCub, 49 objects", *parts, 30, 37, (1, 3, 5, 10)))
    return found


def main(trials: int = 10) -> None:
    """Print table 7.1 of the thesis, and the same on 49 objects seen by an iCub."""
    for problem in problems():
        found = _run(problem, trials)
        rows = []
        for n_imb in problem.n_imb:
            for name in NAMES:
                total, rare, alpha = np.array(found[name, n_imb]).T
                thesis = THESIS.get(n_imb, "") if problem.title.startswith("MNIST") else ""
                rows.append(
                    [str(n_imb), name, f"{total.mean():.1f} ± {total.std():.1f}",
                     f"{rare.mean():.1f} ± {rare.std():.1f}", f"{alpha.mean():.2f}",
                     thesis if name == "α = 0.7" else ""]
                )  # fmt: skip
        header = ["n_imb", "model", "all classes %", "rare class %", "mean α", "thesis RC"]
        show(f"{problem.title}: accuracy, {trials} trials\n{machine()}", header, rows)


def _run(
    problem: Problem, trials: int
) -> dict[tuple[str, int], list[tuple[float, float, float]]]:
    """Return accuracies in percent, of all and of the rare class, and α of every trial."""
    X, y = problem.X, problem.y
    found: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        rare = rng.choice(np.unique(y))
        rows = {t: rng.permutation(np.flatnonzero(y == t)) for t in np.unique(y)}
        asked = [rng.permutation(np.flatnonzero(problem.y_test == t)) for t in rows]
        test = np.concatenate([places[: problem.n_test] for places in asked])
        X_test, y_test = problem.X_test[test], problem.y_test[test]
        frequent, n = [rows[t] for t in rows if t != rare], problem.n_bal
        train = rng.permutation(np.concatenate([places[:n] for places in frequent]))
        held = np.concatenate([places[n : n + n // 5] for places in frequent])
        models = [
            IncrementalClassifier(penalty=p, recoding=0.0, holdout=None, intercept=False)
            for p in PENALTIES
        ]
        for model in models:
            model.partial_fit(X[train], y[train])
        # One stream of which the learner itself holds out every sixth example.
        own, both = IncrementalClassifier(), rng.permutation(np.concatenate([train, held]))
        own.partial_fit(X[both], y[both])
        shown = 0
        for n_imb in problem.n_imb:
            new, shown = rows[rare][shown:n_imb], n_imb
            for model in (*models, own):
                model.partial_fit(X[new], y[new])
            learned = np.concatenate([train, rows[rare][:n_imb]])
            answers = _answers(models, (X[held], y[held]), X_test, (X[learned], y[learned]))
            answers.append((own.predict(X_test), own.recoding_))
            for name, (prediction, alpha) in zip(NAMES, answers, strict=True):
                right = 100.0 * (prediction == y_test)
                result = (float(right.mean()), float(right[y_test == rare].mean()), alpha)
                found.setdefault((name, n_imb), []).append(result)
    return found


def _answers(
    models: list[IncrementalClassifier], held: Any, X_test: np.ndarray, learned: Any
) -> list[tuple[np.ndarray, float]]:
    """Return answers and α of the first four ways, λ by accuracy on examples held out."""
    scores = [(m.decision_function(held[0]), m.decision_function(X_test)) for m in models]
    classes, counts = models[0].classes_, models[0].counts_

    def best(alpha: float) -> tuple[float, int, np.ndarray]:
        factors = (counts.sum() / counts) ** alpha
        answers = [classes[np.argmax(on_held * factors, axis=1)] for on_held, _ in scores]
        accuracies = [float(np.mean(answer == held[1])) for answer in answers]
        k = int(np.argmax(accuracies))
        return accuracies[k], k, classes[np.argmax(scores[k][1] * factors, axis=1)]

    accuracy, k, naive = best(0.0)
    alphas = np.linspace(0, 1, 21)
    strict = max(alpha for alpha in alphas if best(alpha)[0] >= accuracy)
    rebalanced = RebalancedClassifier(penalty=PENALTIES[k], intercept=False).fit(*learned)
    return [
        (naive, 0.0),
        (rebalanced.predict(X_test), 0.0),
        (best(0.7)[2], 0.7),
        (best(strict)[2], float(strict)),
    ]


def figure(trials: int = 5) -> None:
    """Draw accuracies on a rare digit, and the cost of learning, to ``docs/lifelong.png``."""
    mnist = problems()[0]._replace(n_imb=(1, 2, 5, 10, 20, 50, 100, 200, 500))
    found = _run(mnist, trials)
    panels = pyplot().subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    drawing, (left, right) = panels
    for name, style in zip(NAMES, ("-", ":", "--", "-.", "-"), strict=True):
        rare = [np.mean([row[1] for row in found[name, n]]) for n in mnist.n_imb]
        left.plot(mnist.n_imb, rare, style, label=name, marker=".")
    left.set(
        xscale="log", xlabel="examples of the rare digit", ylabel="found, %",
        title="MNIST: one digit rare, 1,000 examples of each other",
    )  # fmt: skip
    left.legend(frameon=False, fontsize="small")
    model, rng = IncrementalClassifier(penalty=100.0, recoding=0.7, holdout=None), 0
    order = np.random.default_rng(rng).permutation(len(mnist.y))[:20_000]
    milliseconds = []
    for x, label in zip(mnist.X[order], mnist.y[order].tolist(), strict=True):
        start = time.perf_counter()
        model.learn_one(x, label)
        milliseconds.append(1e3 * (time.perf_counter() - start))
    blocks = np.array(milliseconds).reshape(-1, 250)
    seen = 250 * np.arange(1, len(blocks) + 1)
    right.plot(seen, np.median(blocks, axis=1), label="median of 250")
    right.plot(seen, np.quantile(blocks, 0.99, axis=1), ":", label="99 %")
    right.set(
        xlabel="examples seen", ylabel="ms", title="Learning one more image, 784 pixels",
        ylim=(0, None),
    )  # fmt: skip
    right.legend(frameon=False, fontsize="small")
    drawing.savefig(Path(__file__).parents[1] / "docs" / "lifelong.png", dpi=110)
