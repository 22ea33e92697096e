"""What ``imparo demo`` does: the main job on data that ships with the project."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from imparo import AutoRegressor, KernelRegressor, NystromRegressor, __version__
from imparo.data import Dataset, load_concrete
from imparo.engine import Array
from imparo.estimators.decomposition import BiasVariance, bias_variance
from imparo.paths import Path as SelectionPath
from imparo.paths import pyplot
from imparo.reports import Page

KERNELS = ("gaussian", "matern32", "laplacian")
SIZES = (13, 26, 52, 103, 206, 412)
BUDGET = 10
SUBSAMPLED, AUTOMATIC = "Nyström", f"Auto, {BUDGET} s"
UNIT = "MPa"

_CODE = """\
from imparo import KernelRegressor
from imparo.data import load_concrete
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

concrete = load_concrete()
model = KernelRegressor({kernel!r}, sigma="auto", intercept=True)
make_pipeline(StandardScaler(), model).fit(concrete.X, concrete.y)
print(model.path_.best)
model.path_.plot()"""


@dataclass(frozen=True)
class Outcome:
    """Everything that the demo found, before it is shown."""

    data: Dataset
    models: dict[str, KernelRegressor]
    seconds: dict[str, float]
    test_errors: dict[str, float]
    chosen: str
    parts: BiasVariance
    y_test: Array
    predicted: Array
    days: Array
    by_age: dict[str, Array]
    n_train: int
    subsampled: NystromRegressor
    automatic: AutoRegressor
    columns: KernelRegressor

    def path(self, name: str) -> SelectionPath:
        """Return the path of one of the models."""
        path = self.models[name].path_
        assert path is not None
        return path

    @property
    def n_models(self) -> int:
        """How many kernel models the selection compared."""
        return sum(self.path(name).errors.size for name in KERNELS)

    @property
    def relevance(self) -> dict[str, float]:
        """What each column counts."""
        values = self.columns.relevance_.tolist()
        return dict(zip(self.data.feature_names, values, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain numbers and lists, for JSON."""
        return {
            "version": __version__,
            "data": self.data.source,
            "rows": {"train": self.n_train, "test": len(self.y_test)},
            "chosen": {"kernel": self.chosen, **self.path(self.chosen).best},
            "test_rmse": self.test_errors,
            "seconds": self.seconds,
            "subsampled": self.subsampled.path_.to_dict(),
            "automatic": {
                "method": self.automatic.method_,
                "stopped": self.automatic.stopped_,
                # Only where widths of columns were learned within the budget.
                "relevance": dict(
                    zip(
                        self.data.feature_names,
                        np.asarray(getattr(self.automatic, "relevance_", ())).tolist(),
                        strict=False,
                    )
                ),
                "trials": [vars(trial) for trial in self.automatic.record_],
            },
            "paths": {name: self.path(name).to_dict() for name in self.models},
        }


def run_demo(progress: Any) -> Outcome:
    """Select and fit a linear model and three kernels, and judge them on unseen rows."""
    data = load_concrete()
    order = np.random.RandomState(0).permutation(len(data.y))
    n_train = round(0.8 * len(order))
    train, test = order[:n_train], order[n_train:]
    scaler = StandardScaler().fit(data.X[train])
    X, y, X_test = (
        scaler.transform(data.X[train]),
        data.y[train],
        scaler.transform(data.X[test]),
    )
    models: dict[str, KernelRegressor] = {}
    seconds, errors, selected = {}, {}, {}
    for name in ("linear", *KERNELS):
        sigma = "median" if name == "linear" else "auto"
        show = progress(f"{name} kernel")
        start = time.perf_counter()
        model = KernelRegressor(name, sigma=sigma, intercept=True, progress=show).fit(X, y)
        seconds[name] = time.perf_counter() - start
        errors[name] = float(np.sqrt(np.mean((model.predict(X_test) - data.y[test]) ** 2)))
        models[name] = model
        assert model.path_ is not None
        selected[name] = model.path_.best["error"]
    chosen = min(KERNELS, key=selected.__getitem__)
    parts = bias_variance(models[chosen], X, y, X_test, data.y[test])
    subsampled = NystromRegressor(
        chosen, sigma=models[chosen].sigma_, n_centers=SIZES, intercept=True, random_state=0,
        progress=progress("fewer centers"),
    )  # fmt: skip
    columns = KernelRegressor(
        "matern32", sigma="per-feature", intercept=True, random_state=0,
        progress=progress("widths of columns"),
    ).fit(X, y)  # fmt: skip
    automatic = AutoRegressor(
        budget=BUDGET, random_state=0, progress=progress(f"{BUDGET} seconds")
    )
    # Auto takes the columns as they are.
    for name, model, parts_of in (
        (SUBSAMPLED, subsampled, (X, X_test)),
        (AUTOMATIC, automatic, (data.X[train], data.X[test])),
    ):
        start = time.perf_counter()
        model.fit(parts_of[0], y)
        seconds[name] = time.perf_counter() - start
        predicted = model.predict(parts_of[1])
        errors[name] = float(np.sqrt(np.mean((predicted - data.y[test]) ** 2)))
    age = data.feature_names.index("age")
    days = np.geomspace(1, 365, 200)
    mixture = np.tile(np.median(data.X[train], axis=0), (len(days), 1))
    mixture[:, age] = days
    by_age = {n: models[n].predict(scaler.transform(mixture)) for n in ("linear", chosen)}
    return Outcome(
        data, models, seconds, errors, chosen, parts, data.y[test],
        models[chosen].predict(X_test), days, by_age, n_train, subsampled, automatic,
        columns,
    )  # fmt: skip


def write_report(outcome: Outcome, path: Path) -> None:
    """Write the outcome as one self-contained HTML file."""
    plt = pyplot()
    plt.switch_backend("agg")
    plt.rcParams["svg.hashsalt"] = "imparo"
    best, error = outcome.path(outcome.chosen).best, outcome.test_errors
    gain = 1 - error[outcome.chosen] / error["linear"]
    total = sum(outcome.seconds[name] for name in outcome.models)
    report = Page(
        "How strong will this concrete be?",
        f"imparo learned it from {outcome.n_train} mixtures: it compared {outcome.n_models:,} "
        "kernel models by leave-one-out, chose one, and is judged here on "
        f"{len(outcome.y_test)} mixtures that it has not seen.",
    )
    report.card(f"{error[outcome.chosen]:.2f} {UNIT}", "test error (RMSE) of the chosen model")
    report.card(f"{error['linear']:.2f} {UNIT}", "test error of the linear baseline")
    report.card(f"−{gain:.0%}", "error against the baseline")
    report.card(f"{total:.1f} s", f"to select and fit everything ({outcome.n_models:,} models)")

    ax = outcome.path(outcome.chosen).plot()
    ax.set_ylabel(f"leave-one-out error (RMSE, {UNIT})")
    report.picture(
        "The path and the chosen point",
        f"Each line is one width σ of the {outcome.chosen} kernel at 100 penalties λ. To the "
        "left the model is too stiff, to the right it learns noise. One eigendecomposition a "
        "line gives all of it.",
        ax.figure,
    )
    ax = outcome.parts.plot(chosen=best["penalty"])
    report.picture(
        "Bias and variance",
        "The chosen kernel learned from 20 random halves of the mixtures. Bias is how far the "
        "average model is from the truth, variance how much the models differ; the sum is "
        "smallest where one gains what the other loses.",
        ax.figure,
    )
    report.picture(
        "Predicted against measured",
        f"Every point is a mixture not seen in training; the line is a perfect prediction "
        f"(strength in {UNIT}).",
        _scatter(plt, outcome),
    )
    report.picture(
        "What it learned about age",
        "Predicted strength of the median mixture as it ages: fast hardening in the first "
        "weeks that levels off, which no straight line can follow.",
        _aging(plt, outcome),
    )
    ax = outcome.subsampled.path_.plot()
    report.picture(
        "Less is more",
        f"The same kernel written in m centers instead of all {outcome.n_train} mixtures: the "
        "error on a fifth of them over m and the penalty λ. Every m has its price and error; "
        "with few centers hardly any penalty is needed, because their number regularizes, too. "
        "One pass over the rows gives all of it, however many rows there are.",
        ax.figure,
    )
    report.picture(
        f"What {BUDGET} seconds allow",
        f"Every trial of AutoRegressor(budget={BUDGET}), by the time when it was done: kernels "
        "with learned widths on a part of the rows, then more centers and better widths. It "
        f"stopped because {_because(outcome.automatic.stopped_)}.",
        _trials(plt, outcome.automatic),
    )
    unused = [outcome.data.feature_names[int(name[1:])] for name in outcome.columns.unused_]
    report.picture(
        "What each column counts",
        "One over the square of the width that a Matérn kernel learns for each column, in "
        "units of its spread, with sum 1. "
        + (
            f"Without {', '.join(unused)} nothing changes."
            if unused
            else "None can be left out without a loss."
        ),
        _relevance(plt, outcome),
    )
    report.table(
        "All mixtures, fewer centers, or a budget",
        "The chosen kernel by two estimators, and what the third finds by itself within its "
        "budget. Errors on the mixtures that none has seen.",
        ["model", "centers", "λ", "test", "seconds"],
        _budget_rows(outcome),
        0,
    )
    names = list(outcome.models)
    report.table(
        "What was compared",
        "The kernel with the smallest leave-one-out error is chosen; the test error plays no "
        "part in the choice.",
        ["kernel", "σ", "λ", "leave-one-out", "test", "seconds"],
        [row_of(outcome, name) for name in names],
        names.index(outcome.chosen),
    )
    report.code(
        "The same in Python", "From your own code:", _CODE.format(kernel=outcome.chosen)
    )
    report.write(path, f"{outcome.data.source}. Made by imparo {__version__}.")
    plt.close("all")


def _scatter(plt: Any, outcome: Outcome) -> Any:
    figure, ax = plt.subplots(figsize=(5.6, 3.9), layout="constrained")
    ax.scatter(outcome.y_test, outcome.predicted, s=16, color="#3b6fb6", alpha=0.7, lw=0)
    ends = [0, 1.05 * float(np.max(outcome.y_test))]
    ax.plot(ends, ends, color="0.4", lw=1)
    ax.set(xlabel="measured", ylabel="predicted", xlim=ends, ylim=ends)
    return figure


def _aging(plt: Any, outcome: Outcome) -> Any:
    figure, ax = plt.subplots(figsize=(5.6, 3.9), layout="constrained")
    colors = {"linear": "0.5", outcome.chosen: "crimson"}
    for name, strength in outcome.by_age.items():
        ax.plot(outcome.days, strength, color=colors[name], lw=2, label=name)
    ax.set(xlabel="age (days)", ylabel=f"predicted strength ({UNIT})")
    ax.legend(frameon=False, fontsize="small")
    return figure


def _because(reason: str) -> str:
    return "it was interrupted" if reason == "interrupted" else reason


def _trials(plt: Any, model: AutoRegressor) -> Any:
    """Draw the error of every finished trial against the time, and the best so far."""
    figure, ax = plt.subplots(figsize=(5.6, 3.9), layout="constrained")
    seconds = np.cumsum([trial.seconds for trial in model.record_])
    errors = np.array([trial.error for trial in model.record_])
    sizes = np.array([trial.n_centers for trial in model.record_])
    dots = ax.scatter(seconds, errors, c=sizes, cmap="viridis_r", s=34, zorder=3)
    ax.step(seconds, np.minimum.accumulate(errors), where="post", color="crimson", lw=1.5,
            label="best so far")  # fmt: skip
    figure.colorbar(dots, ax=ax, label="centers m")
    ax.set(xlabel="seconds", ylabel=f"validation error (RMSE, {UNIT})")
    ax.legend(frameon=False, fontsize="small")
    return figure


def _relevance(plt: Any, outcome: Outcome) -> Any:
    """Draw what each column counts, the most relevant on top."""
    relevance = outcome.relevance
    figure, ax = plt.subplots(figsize=(5.6, 3.9), layout="constrained")
    names = sorted(relevance, key=relevance.__getitem__)
    ax.barh(names, [relevance[name] for name in names], color="#3b6fb6")
    ax.set(xlabel="relevance")
    return figure


def _budget_rows(outcome: Outcome) -> list[list[str]]:
    exact = outcome.models[outcome.chosen]
    rows = [(f"exact, {outcome.chosen}", outcome.n_train, exact.penalty_, outcome.chosen)]
    for name, model in (
        (SUBSAMPLED, outcome.subsampled),
        (AUTOMATIC, outcome.automatic),
    ):
        shown = name if name == SUBSAMPLED else f"{name} ({model.method_})"
        rows.append((shown, model.n_centers_, model.penalty_, name))
    return [
        [shown, str(m), f"{penalty:.2g}", f"{outcome.test_errors[name]:.2f}",
         f"{outcome.seconds[name]:.2f}"]
        for shown, m, penalty, name in rows
    ]  # fmt: skip


def row_of(outcome: Outcome, name: str) -> list[str]:
    """Return the cells of a model in the table of what was compared."""
    best = outcome.path(name).best
    width = f"{best['sigma']:.3g}" if "sigma" in best else "–"
    return [
        name,
        width,
        f"{best['penalty']:.2g}",
        f"{best['error']:.2f}",
        f"{outcome.test_errors[name]:.2f}",
        f"{outcome.seconds[name]:.2f}",
    ]
