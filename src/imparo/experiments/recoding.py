"""Figure 7.2: accuracy on a rare class and on the others, for α from 0 to 1."""

from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.rare_class import OBJECT, PENALTIES, Scores, drawn, objects
from imparo.experiments.shared.results import Results
from imparo.reports.drawing import Theme

_CASE = "iCubWorld28"
_ALPHAS = np.linspace(0, 1, 11).round(1)


def cases(quick: bool) -> list[Case]:
    """Return the one case."""
    numbers = [1, 3, 10] if quick else [1, 2, 3, 5, 7, 10, 15, 20, 30]
    settings = {"n_bal": 30, "n_test": 37, "n_imb": numbers, "rare": OBJECT,
                "alphas": _ALPHAS.tolist(), "penalties": PENALTIES.tolist()}  # fmt: skip
    return [Case(_CASE, 2 if quick else 10, settings)]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Let examples of the rare class come, and recode by every α with the best λ."""
    settings = case.settings
    pool = objects(data, "iCubWorld28 (28 objects, n_bal = 700, features of CaffeNet)")
    draw = drawn(pool, settings["rare"], settings["n_bal"], settings["n_test"], seed)
    rare, others, held = [], [], []
    for n in settings["n_imb"]:
        scores = Scores(draw, n)
        found = [scores.best(alpha) for alpha in settings["alphas"]]
        on_test = np.array([draw.accuracies(answers) for _, _, answers in found])
        rare.append(on_test[:, 1])
        others.append(on_test[:, 2])
        held.append([100 * accuracy for accuracy, _, _ in found])
    return {"rare": rare, "others": others, "held": held}


def tell(results: Results) -> Account:
    """Draw both accuracies, and check how they change with α."""
    account = Account()
    if _CASE not in results:
        return account
    settings = results.cases[_CASE].settings
    numbers, alphas = np.array(settings["n_imb"]), np.array(settings["alphas"])
    rare, others = results.mean(_CASE, "rare"), results.mean(_CASE, "others")
    few = np.flatnonzero(numbers <= settings["n_bal"] // 3)
    account.check(
        "accuracy on the rare class grows with α",
        bool(np.all(np.diff(rare.mean(axis=0)) > -1) and np.all(rare[few, -1] >= rare[few, 0])),
        _ends(numbers[few], rare[few]),
    )
    account.check(
        "accuracy on the other classes falls with α",
        bool(np.all(others[few, -1] < others[few, 0])),
        _ends(numbers[few], others[few]),
    )
    free = [_free(alphas, rare[i], others[i]) for i in few]
    account.check(
        "some α > 0 keeps the accuracy on the other classes and gains on the rare one",
        any(gain > 0 for _, gain in free),
        "; ".join(
            f"at n_imb = {numbers[i]} α = {alpha:g} gains {gain:.1f} points"
            for i, (alpha, gain) in zip(few, free, strict=True)
        ),
    )
    account.picture(
        "Accuracy for α from 0 to 1",
        f"On the rare class (top) and on the others (bottom) as examples of the rare one come; "
        f"λ is the best for every α. Mean of {len(results.trials[_CASE])} trials.",
        lambda figure, theme: _draw(figure, theme, numbers, alphas, rare, others),
        "Two panels of lines, one for each α: on the rare class they rise with α, on the "
        "others they fall.",
        size=(5.6, 5.6),
    )
    account.notes.append(
        "The data have 36 views of an object, so that n_bal is 30 where the thesis has 700, "
        "and a class with ten examples is not very rare."
    )
    return account


def _ends(numbers: Array, values: Array) -> str:
    told = [
        f"n_imb = {n}: {line[0]:.1f} % at α = 0, {line[-1]:.1f} % at α = 1"
        for n, line in zip(numbers, values, strict=True)
    ]
    return "; ".join(told)


def _free(alphas: Array, rare: Array, others: Array) -> tuple[float, float]:
    """Return the largest α at which the others lose nothing, and what the rare one gains."""
    best = int(np.flatnonzero(others >= others[0] - 1e-9)[-1])
    return float(alphas[best]), float(rare[best] - rare[0])


def _draw(
    figure: Any, theme: Theme, numbers: Array, alphas: Array, rare: Array, others: Array
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    shades = LinearSegmentedColormap.from_list("alpha", [theme.red, theme.orange, theme.blue])
    panels = figure.subplots(2, 1, sharex=True)
    for ax, values, what in zip(panels, (rare, others), ("rare class", "others"), strict=True):
        for j, alpha in enumerate(alphas):
            ax.plot(numbers, values[:, j], color=shades(float(alpha)), lw=1.6, marker=".")
        ax.set(xscale="log", ylabel=f"accuracy on the {what} (%)")
    panels[1].set_xlabel("n_imb: examples of the rare class")
    panels[1].set_xticks(numbers, [str(n) for n in numbers])
    panels[1].minorticks_off()
    bar = figure.colorbar(ScalarMappable(Normalize(0, 1), shades), ax=panels, label="α")
    bar.outline.set_visible(False)


EXPERIMENT = Experiment(
    name="recoding",
    chapter=7,
    place="Figure 7.2",
    title="What recoding gives the rare class, and costs the others",
    finding="As α grows from 0 to 1, accuracy on the rare class rises and that on the others "
    "falls; a model between the two keeps the one and improves the other.",
    setting="iCubWorld28, the 28th class rare, n_bal = 700; recoding with α from 0 to 1, the "
    "best λ for every α and n_imb; 10 trials.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("icub-camera49",),
    minutes=1,
)
