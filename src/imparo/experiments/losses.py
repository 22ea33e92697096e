"""Figures 1.6 and 1.7 and appendix A: loss functions, and the target functions they yield."""

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from imparo.engine import Array
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.drawing import curves
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.losses import EpsilonInsensitive, Loss, as_loss
from imparo.reports.drawing import Drawing, Theme

_REGRESSION = {
    "square": "square",
    "absolute": "absolute",
    "epsilon_insensitive": "ε-insensitive",
}
_MARGIN = {
    "zero_one": "0-1",
    "hinge": "hinge",
    "exponential": "exponential",
    "logistic": "logistic",
    "square": "square",
}
# The a of least expected loss, and what minimizes it in closed form.
_TARGETS = {
    "square": "2p − 1",
    "logistic": "log(p/(1 − p))",
    "exponential": "½ log(p/(1 − p))",
    "hinge": "sign(2p − 1)",
    "absolute": "sign(2p − 1)",
    "epsilon_insensitive": "(1 − ε) sign(2p − 1)",
}
_TOLERANCE = 1e-6
# Kinks of ε-insensitive loss would not be seen at its default of 0.1.
_EPSILON = 0.5


def cases(quick: bool) -> list[Case]:
    """Return a case for either figure and one for the appendix; there is nothing to reduce."""
    return [
        Case("regression", 1, {"from": -2.0, "to": 2.0, "epsilon": _EPSILON}),
        Case("classification", 1, {"from": -2.0, "to": 2.5}),
        # Without 1/2, where sign(2p − 1) is one of many minimizers.
        Case("targets", 1, {"from": 0.02, "to": 0.98, "points": 48, "epsilon": _EPSILON}),
    ]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Compute values of losses, or minimizers of expected ones."""
    settings = case.settings
    if case.name == "targets":
        p = np.linspace(settings["from"], settings["to"], settings["points"])
        found = {name: _minimizers(_loss(name, settings["epsilon"]), p) for name in _TARGETS}
        return {"p": p, "minimizers": found}
    x = np.linspace(settings["from"], settings["to"], 451)
    if case.name == "regression":
        losses = {name: _loss(name, settings["epsilon"]).value(x, 0.0) for name in _REGRESSION}
    else:
        losses = {name: as_loss(name).value(1.0, x) for name in _MARGIN}
    return {"x": x, "losses": losses}


def _loss(name: str, epsilon: float) -> Loss:
    """Return a loss by its name, with an ε that can be seen."""
    return EpsilonInsensitive(epsilon) if name == "epsilon_insensitive" else as_loss(name)


def _minimizers(loss: Loss, p: Array) -> list[float]:
    """Return the a of least p·ℓ(1, a) + (1 − p)·ℓ(−1, a), from values of the loss alone."""

    def expected(a: float, p: float) -> float:
        return float(p * loss.value(1.0, a) + (1 - p) * loss.value(-1.0, a))

    return [
        float(minimize_scalar(expected, bounds=(-6, 6), args=(float(one),), method="bounded",
                              options={"xatol": 1e-11, "maxiter": 1000}).x)
        for one in p
    ]  # fmt: skip


def tell(results: Results) -> Account:
    """Draw the losses, and put numerical target functions beside the closed forms."""
    account = Account()
    for name, names, axis in (
        ("regression", _REGRESSION, "y − a"),
        ("classification", _MARGIN, "margin ya"),
    ):
        if name in results:
            found = results.trials[name][0]
            x, losses = np.array(found["x"]), found["losses"]
            lines = [(label, x, np.array(losses[key]), None) for key, label in names.items()]
            drawing = curves(
                lines, axis, "loss ℓ(y, a)", y_limits=(-0.1, 4),
                colours=("soft", "blue", "orange", "green", "red")[5 - len(lines) :]
                if name == "classification" else ("blue", "orange", "red"),
            )  # fmt: skip
            text = f"Of {', '.join(names.values())} loss"
            text += f", ε = {_EPSILON:g}." if name == "regression" else "."
            account.picture(f"Losses for {name}", text, drawing, f"{text} Against {axis}.")
    if "classification" in results:
        _check_surrogates(account, results.trials["classification"][0])
    if "targets" in results:
        _tell_targets(account, results.trials["targets"][0])
    account.notes.append(
        "Appendix A derives the targets of the square and the logistic loss; the others "
        "follow in the same way."
    )
    return account


def _check_surrogates(account: Account, found: dict[str, Any]) -> None:
    """Say which losses are convex and which lie above the 0-1 loss."""
    losses = {name: np.array(values) for name, values in found["losses"].items()}
    bends = {name: float(np.diff(values, 2).min()) for name, values in losses.items()}
    surrogates = [name for name in _MARGIN if name != "zero_one"]
    account.check(
        "Surrogate losses are convex, and the 0-1 loss is not",
        all(bends[name] >= -1e-12 for name in surrogates) and bends["zero_one"] < 0,
        f"second differences of the surrogates are never negative (least "
        f"{min(bends[name] for name in surrogates):.0e}), that of the 0-1 loss is "
        f"{bends['zero_one']:.0f}",
    )
    # log(1 + e^0) = log 2 < 1: a bound once it is counted in bits.
    scale = {"logistic": 1 / np.log(2)}
    gaps = [scale.get(name, 1.0) * losses[name] - losses["zero_one"] for name in surrogates]
    account.check(
        "Surrogate losses are relaxations of the 0-1 loss",
        all(gap.min() >= -1e-12 for gap in gaps),
        "hinge, exponential and square are nowhere below it; logistic is not either once it "
        "is divided by log 2",
    )


def _tell_targets(account: Account, found: dict[str, Any]) -> None:
    """Put the minimizers beside the closed forms."""
    p = np.array(found["p"])
    rows, kept = [], {}
    for name, formula in _TARGETS.items():
        minimizers = np.array(found["minimizers"][name])
        closed = _loss(name, _EPSILON).target(p)
        apart = float(np.abs(minimizers - closed).max())
        kept[name] = minimizers
        label = (_MARGIN | _REGRESSION)[name]
        account.check(
            f"The target function of the {label} loss is {formula}",
            apart <= _TOLERANCE,
            f"for {len(p)} values of p from {p[0]:g} to {p[-1]:g} the numerical minimizer of "
            f"the expected loss is at most {apart:.0e} away",
        )
        rows.append([label, formula, f"{apart:.0e}"])
    account.check(
        "The sign of every target function is the likelier class",
        all(np.array_equal(np.sign(a), np.sign(2 * p - 1)) for a in kept.values()),
        f"so it is for all {len(kept)} losses and {len(p)} values of p",
    )
    account.table(
        "Target functions", "p = ρ(1|x); the last column is the largest distance between the "
        "numerical minimizer and the formula.", ["loss", "f*(x)", "distance"], rows,
    )  # fmt: skip
    account.picture(
        "Target functions", "Lines are the closed forms; dots are numerical minimizers of the "
        "expected loss.", _targets_drawing(p, kept),
        "Target functions of six losses against p = ρ(1|x): dots lie on the lines.",
    )  # fmt: skip


def _targets_drawing(p: Array, minimizers: dict[str, Array]) -> Drawing:
    """Return a drawing of closed forms as lines and of minimizers as dots."""

    def draw(figure: Any, theme: Theme) -> None:
        ax = figure.subplots()
        colours = [theme.red, theme.green, theme.orange, theme.blue, None, theme.soft]
        fine = np.linspace(p[0], p[-1], 1001)
        for (name, found), colour in zip(minimizers.items(), colours, strict=True):
            if colour is None:  # the absolute loss has the target of the hinge loss
                continue
            label = "hinge, absolute" if name == "hinge" else (_MARGIN | _REGRESSION)[name]
            closed = _loss(name, _EPSILON).target(fine)
            ax.plot(fine, closed, color=colour, lw=1.6, label=label)
            ax.plot(p, found, ".", color=colour, ms=5)
        ax.set(xlabel="p = ρ(1|x)", ylabel="target f*(x)")
        ax.legend(loc="upper left")

    return draw


EXPERIMENT = Experiment(
    name="losses",
    chapter=1,
    place="Figures 1.6 and 1.7, appendix A",
    title="Loss functions and their target functions",
    finding="Different losses yield different target functions: 2p − 1 for the square loss, "
    "log(p/(1 − p)) for the logistic loss. The sign of each is the likelier class.",
    setting="Losses as functions of y − a for regression and of the margin ya for "
    "classification; expected losses given x, where ρ(1|x) = p.",
    cases=cases,
    trial=trial,
    tell=tell,
    minutes=0.1,
)
