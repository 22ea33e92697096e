"""Table 7.1 and figure 7.3: a class with few examples, naive, rebalanced and recoded."""

from typing import Any

import numpy as np

from imparo import IncrementalClassifier
from imparo.engine import Array
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.rare_class import OBJECT, Draw, Pool, Scores, drawn, objects
from imparo.experiments.shared.results import Results
from imparo.experiments.shared.verdicts import Printed
from imparo.lifelong import RebalancedClassifier
from imparo.reports.drawing import Theme

_MNIST, _ICUB, _RGBD = "MNIST", "iCubWorld28", "RGB-D"
_RULE, _OWN = "RC", "RC, imparo's α"
_WAYS = ("N", "RB", _RULE, "RC, α = 0.7", _OWN)
# Of the thesis: for each n_imb total accuracy and accuracy on the rare class of N, RB and RC.
_TABLE = {
    _MNIST: """
1 79.2 0.3 79.7 0.4 79.7 0.6 0.0 0.0 7.4 7.7 9.5 4.9
5 79.1 0.3 82.5 0.7 80.3 0.6 0.0 0.0 39.6 6.2 17.5 6.6
10 79.2 0.3 83.6 0.7 81.0 0.6 0.0 0.0 49.5 5.7 25.1 5.3
50 79.2 0.3 85.5 0.3 83.9 0.5 0.0 0.0 73.5 3.3 49.1 3.5
100 79.2 0.4 85.9 0.4 85.1 0.5 2.0 0.9 75.5 2.7 62.7 2.9
500 85.5 0.3 86.2 0.3 86.1 0.3 66.9 1.1 78.5 0.9 77.8 1.1""",
    _ICUB: """
1 77.6 0.3 76.8 0.1 77.7 0.3 0.0 0.0 0.4 0.6 8.0 11.4
5 77.6 0.3 77.9 0.1 78.6 0.3 0.0 0.0 8.1 3.9 38.5 9.7
10 77.6 0.3 78.3 0.4 78.9 0.2 0.0 0.0 23.7 10.8 49.6 5.6""",
    _RGBD: """
1 80.4 2.2 78.6 3.2 83.3 3.2 0.0 0.0 62.0 42.1 72.2 26.3
5 80.4 2.2 83.0 2.1 83.9 2.6 0.0 0.0 91.7 12.8 99.9 0.3
10 80.4 2.2 83.8 1.8 83.6 2.6 2.8 2.4 94.7 8.4 100.0 0.0""",
}
_STRICT = (
    "one held-out example that is answered otherwise stops the thesis' rule: α stays small; "
    "with 0.7, as in the authors' code, the rare digit is found more often than it prints"
)
_WEIGHTED = (
    "how often RB finds the rare digit hangs on λ (9.5 % at 100, 35.5 % at 10,000 in a draw "
    "with five examples), which the frequent classes choose; the thesis' λ are not known"
)
_COST = {
    _RULE: "examples held out are views next to those learned, and show little of what a large "
    "α costs on other views",
    _OWN: "imparo lets a rare class cost the others a little",
}
_BAL = {_MNIST: 1000, _ICUB: 30, _RGBD: 30}
_ALPHAS = np.linspace(0, 1, 21)
# Of the rebalanced loss, whose weights sum to T times as much.
_PENALTIES = (10.0, 100.0, 1e3, 1e4)


def cases(quick: bool) -> list[Case]:
    """Return a case for each data set."""
    digits = [1, 10, 50] if quick else [1, 5, 10, 50, 100, 500]
    views = [1, 5] if quick else [1, 2, 5, 10, 20, 30]
    n_bal, trials = (200, 2) if quick else (1000, 10)
    of_objects = {"n_bal": 30, "n_test": 37, "n_imb": views, "rare": OBJECT}
    return [
        Case(_MNIST, trials, {"n_bal": n_bal, "n_test": 200, "n_imb": digits, "rare": None}),
        Case(_ICUB, trials, of_objects),
        Case(_RGBD, trials, of_objects | {"pixels": 16}),
    ]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Let examples of the rare class come, and test all ways at some numbers of them."""
    settings, rare = case.settings, case.settings["rare"]
    if rare is None:
        rare = np.random.default_rng(1000 + seed).integers(10)
    draw = drawn(_pool(case.name, data), rare, settings["n_bal"], settings["n_test"], seed)
    own, before = _learner(draw, seed), 0
    found: dict[str, list[Any]] = {way: [] for way in (*_WAYS, "alphas")}
    for n in settings["n_imb"]:
        own.partial_fit(draw.X_rare[before:n], np.full(n - before, draw.rare))
        before = n
        scores = Scores(draw, n)
        least = scores.best(0.0)[0]
        alpha = max(alpha for alpha in _ALPHAS if scores.best(alpha)[0] >= least)
        answers = (
            scores.best(0.0)[2], _rebalanced(draw, n), scores.best(alpha)[2],
            scores.best(0.7)[2], own.predict(draw.X_test),
        )  # fmt: skip
        for way, answer in zip(_WAYS, answers, strict=True):
            found[way].append(draw.accuracies(answer))
        found["alphas"].append([alpha, own.recoding_])
    return found


def _pool(name: str, data: Data) -> Pool:
    """Return the examples of a data set, or of what stands for it."""
    if name == _ICUB:
        return objects(data, "iCubWorld28 (28 objects, n_bal = 700, features of CaffeNet)")
    if name == _RGBD:
        wanted = "RGB-D (51 categories, n_bal = 500, features of CaffeNet)"
        return objects(data, wanted, pixels=True)
    (X, y), (X_test, y_test) = (data.arrays("mnist", part) for part in ("train", "test"))
    return Pool(X / 255.0, y.astype(float), X_test / 255.0, y_test.astype(float))


def _learner(draw: Draw, seed: int) -> IncrementalClassifier:
    """Return a learner that has seen the frequent classes, and holds out of them itself."""
    X, y = np.vstack([draw.X, draw.X_held]), np.append(draw.y, draw.y_held)
    order = np.random.default_rng(seed).permutation(len(y))
    return IncrementalClassifier().fit(X[order], y[order])


def _rebalanced(draw: Draw, n: int) -> Array:
    """Return what the rebalanced loss answers, λ by accuracy on the examples held out."""
    X, y = draw.shown(n)
    models = [RebalancedClassifier(penalty=p, intercept=False).fit(X, y) for p in _PENALTIES]
    scores = [model.score(draw.X_held, draw.y_held) for model in models]
    return models[int(np.argmax(scores))].predict(draw.X_test)


def tell(results: Results) -> Account:
    """Put accuracies beside the thesis', and draw them as examples come."""
    account, rows = Account(), []
    for name in (name for name in _BAL if name in results):
        _compare(account, results, name)
        _judge(account, results, name)
        means, alphas = [results.mean(name, way) for way in _WAYS], results.mean(name, "alphas")
        for i, n in enumerate(results.cases[name].settings["n_imb"]):
            told = [f"{mean[i, 0]:.1f} / {mean[i, 1]:.1f}" for mean in means]
            rows.append([name, str(n), *told, f"{alphas[i, 0]:.2f}", f"{alphas[i, 1]:.2f}"])
    account.table(
        "All ways", "Accuracy in per cent on all classes / on the rare one, and the mean α "
        "that the thesis' rule and imparo choose.",
        ["data", "n_imb", *_WAYS, "α, rule", "α, imparo"], rows,
    )  # fmt: skip
    account.picture(
        "As examples of the rare class come",
        "On the rare class (top) and on the others (bottom): naive (red), recoded by the "
        "thesis' rule (blue) and with imparo's α (dashed). *: other data stand for these.",
        lambda figure, theme: _draw(figure, theme, results),
        "On the rare class RC is above N while examples are few; on the others they are close.",
        size=(8.4, 5.0), dense=True,
    )  # fmt: skip
    account.notes.append(
        "RC recodes by the rule that the thesis states: the largest α at which accuracy on "
        "held-out examples of the frequent classes is not below that at α = 0. Beside it are "
        "α = 0.7, said to be in the authors' code, and what IncrementalClassifier() chooses, "
        "up to 0.7: its rule was set on these data, so that this is no independent test of it."
    )
    return account


def _compare(account: Account, results: Results, name: str) -> None:
    """Put numbers beside the thesis', where as many examples were learned or others stand."""
    settings, trials = results.cases[name].settings, len(results.trials[name])
    for line in _TABLE[name].strip().splitlines():
        n, *printed = line.split()
        if settings["n_bal"] != _BAL[name] or int(n) not in settings["n_imb"]:
            continue
        i = settings["n_imb"].index(int(n))
        for column, what in ((0, "all"), (1, "rare")):
            for k, ours in ((0, "N"), (1, "RB"), (2, _RULE), (2, _OWN)):
                text, deviation = printed[6 * column + 2 * k : 6 * column + 2 * k + 2]
                account.compare(
                    f"{name}, n_imb = {n}, {ours}, {what} (%)", Printed(text, float(deviation)),
                    results.mean(name, ours)[i, column],
                    results.deviation(name, ours)[i, column], trials, _because(ours),
                    substituted=results.substituted(name), larger_is_better=True, digits=".1f",
                )  # fmt: skip


def _because(way: str) -> str:
    """Return why a number may differ from the thesis', as far as it is known."""
    other = (
        "which digit is rare matters more than the deviations of the thesis say; its λ are not "
        "known, and with a constant feature N gains 0.3 to 0.5 points (four trials)"
    )
    return {_RULE: _STRICT, "RB": _WEIGHTED}.get(way, other)


def _judge(account: Account, results: Results, name: str) -> None:
    """Check on one data set what the text of the thesis says."""
    settings = results.cases[name].settings
    few = [i for i, n in enumerate(settings["n_imb"]) if n < settings["n_bal"] / 2]
    naive = results.mean(name, "N")[few]
    for way in (_RULE, _OWN):
        ours = results.mean(name, way)[few]
        account.check(
            f"{name}: {way} finds the rare class more often than N",
            bool(np.all((ours[:, 1] > naive[:, 1]) | (naive[:, 1] == 100))),
            "; ".join(f"{b:.1f} against {a:.1f} % at n_imb = {settings['n_imb'][i]}"
                      for i, a, b in zip(few, naive[:, 1], ours[:, 1], strict=True)),
        )  # fmt: skip
        lost = float((naive[:, 0] - ours[:, 0]).max())
        account.check(
            f"{name}: {way} is not worse than N on all classes",
            lost <= 0.2,
            f"{abs(lost):.2f} points {'less' if lost > 0 else 'more'} where it compares worst",
            _COST.get(way, "") if name != _MNIST else "",
        )
    if name != _MNIST:
        weighted, ours = (results.mean(name, way)[few, 1] for way in ("RB", _RULE))
        account.check(
            f"{name}: RC finds the rare class more often than RB while examples are few",
            ours[0] > weighted[0],
            f"{ours[0]:.1f} against {weighted[0]:.1f} % with one example",
            "both always find this object" if min(ours[0], weighted[0]) == 100 else "",
        )


def _draw(figure: Any, theme: Theme, results: Results) -> None:
    """Draw a column of two panels for each data set."""
    names = [name for name in _BAL if name in results]
    panels = figure.subplots(2, len(names), squeeze=False, sharex="col")
    lines = (("N", theme.red, "-"), (_RULE, theme.blue, "-"), (_OWN, theme.blue, "--"))
    for column, name in enumerate(names):
        numbers = results.cases[name].settings["n_imb"]
        for part, ax in enumerate(panels[:, column], start=1):
            means = [results.mean(name, way)[:, part] for way, _, _ in lines]
            for (way, colour, style), mean in zip(lines, means, strict=True):
                ax.plot(numbers, mean, style, color=colour, label=way, lw=1.7, marker=".")
            around = np.min(means) - 5, min(np.max(means) + 5, 101)
            ax.set(xscale="log", ylim=(-4, 104) if part == 1 else around)
            ax.set_xticks(numbers, [str(n) for n in numbers], fontsize=7)
            ax.minorticks_off()
        panels[0, column].set_title(name + "*" * results.substituted(name))
        panels[1, column].set_xlabel("n_imb")
    panels[0, 0].set_ylabel("rare class (%)")
    panels[1, 0].set_ylabel("other classes (%)")
    labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(*labels, loc="outside lower center", ncols=3)


EXPERIMENT = Experiment(
    name="rare-classes",
    chapter=7,
    place="Table 7.1 and Figure 7.3",
    title="New classes with few examples",
    finding="Recoding (RC) finds a new class from its first examples, where the naive "
    "classifier (N) ignores it, without loss on the others; on the robots' objects it is "
    "better than the rebalanced loss (RB), which has to be trained anew each time.",
    setting="MNIST (pixels, n_bal = 1000, a random digit rare), iCubWorld28 (n_bal = 700, the "
    "28th class rare) and RGB-D (n_bal = 500, tomato rare), features of CaffeNet; n_imb from 1 "
    "to 500; λ and α by examples of the frequent classes held out; 10 trials.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("mnist", "icub-camera49", "icub-camera49-images"),
    minutes=5,
)
