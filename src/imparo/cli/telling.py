"""What came of a fit or an evaluation, in a few lines for the terminal."""

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from imparo.tabular.outcome import Account, Evaluation

# More classes or outputs than these are left to the report.
_MOST_PARTS, _MOST_NOTES = 12, 8
_NAMES = {
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "r2": "variance explained (R²)",
    "error": "misclassified",
    "balanced_error": "misclassified, mean over classes",
    "brier": "Brier score of probabilities",
}

_METHODS = {
    "nystrom": "Nyström",
    "nytro": "NYTRO",
    "exact": "exact",
    "features": "random features",
    "sgm": "stochastic gradients",
}


def tell_fit(out: Console, account: "Account") -> None:
    """Print what was fitted, on what, and how good it is."""
    from imparo.theory.costs import as_bytes, as_time

    used = sum(column["use"] == "input" for column in account.columns)
    columns = f", {used:,} columns" if used else ""
    out.print(
        f"[bold]{account.task.capitalize()}[/] of "
        f"[bold cyan]{escape(_listed(account.target))}[/]: {account.rows_read:,} rows{columns} "
        f"from {escape(account.data)}",
        highlight=False,
    )
    notes = account.preparation[:_MOST_NOTES]
    if len(account.preparation) > _MOST_NOTES:
        notes.append(f"{len(account.preparation) - _MOST_NOTES} more in the report")
    seconds = as_time(account.cost.seconds["fitting"])
    chosen = f"chosen by {account.validation} in {seconds}" if account.validation else seconds
    ended = f"the search ended: {account.stopped}" if account.stopped else ""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", justify="right", min_width=6)
    grid.add_column()
    for name, lines in (
        ("data", [*notes, account.split]),
        ("model", [f"[bold]{escape(_method(account))}[/]", chosen, ended]),
    ):
        for k, line in enumerate(filter(None, lines)):
            bold = line.startswith("[bold]")
            grid.add_row(name if k == 0 else "", line if bold else escape(line))
    out.print(grid, highlight=False)
    if account.evaluation is not None:
        tell_evaluation(out, account.evaluation)
    for sentence in account.warnings:
        out.print(f"[yellow]Note:[/] {escape(sentence)}", highlight=False)
    total = sum(account.cost.seconds.values())
    memory = as_bytes(account.cost.peak_bytes)
    out.print(f"[dim]{as_time(total)} in all, at most {memory} of memory[/]", highlight=False)


def tell_evaluation(out: Console, evaluation: "Evaluation") -> None:
    """Print how good predictions are, beside the simplest model."""
    grid = Table(
        box=box.SIMPLE_HEAD, title=f"On {evaluation.rows:,} {_rows(evaluation)}",
        title_justify="left", title_style="bold", min_width=40,
    )  # fmt: skip
    grid.add_column("")
    grid.add_column("model", justify="right", style="bold")
    simplest = "mean" if evaluation.task == "regression" else "most frequent class"
    grid.add_column(simplest, justify="right", style="dim")
    for name, value in evaluation.metrics.items():
        other = evaluation.baseline.get(name)
        shown = "" if other is None else _value(name, other)
        grid.add_row(_NAMES.get(name, name), _value(name, value), shown)
    out.print(grid)
    if 1 < len(evaluation.parts) <= _MOST_PARTS:
        out.print(_parts(evaluation))
    elif len(evaluation.parts) > _MOST_PARTS:
        what = "classes" if evaluation.classes else "outputs"
        out.print(f"[dim]{len(evaluation.parts)} {what}: see the report[/]", highlight=False)


def _parts(evaluation: "Evaluation") -> Table:
    classes = evaluation.task == "classification"
    names = (
        ("rows", "precision", "recall", "f1") if classes else ("rmse", "mae", "r2", "deviation")
    )
    grid = Table(box=box.SIMPLE_HEAD)
    grid.add_column("class" if classes else "output")
    for name in names:
        grid.add_column(name.upper() if name in ("rmse", "mae") else name, justify="right")
    for part in evaluation.parts:
        cells = [f"{part[n]:,}" if n == "rows" else _value(n, part[n]) for n in names]
        grid.add_row(escape(str(part["class" if classes else "output"])), *cells)
    return grid


def _rows(evaluation: "Evaluation") -> str:
    words = evaluation.source
    start = f"{evaluation.rows:,} "
    return escape(words.removeprefix(start))


def _value(name: str, value: float) -> str:
    if value != value:
        return "–"
    if name in ("error", "balanced_error", "r2", "precision", "recall", "f1"):
        return f"{100 * value:.1f} %"
    return f"{value:,.4g}"


def _method(account: "Account") -> str:
    chosen = account.chosen
    words = [_METHODS.get(account.method, account.method)]
    if "kernel" in chosen:
        words.append(f"{chosen['kernel']} kernel")
    sigma: Any = chosen.get("sigma")
    if isinstance(sigma, tuple | list):
        words.append("a width for each column")
    elif sigma is not None:
        words.append(f"σ = {sigma:.3g}")
    if chosen.get("penalty") is not None:
        words.append(f"λ = {chosen['penalty']:.2g}")
    for name, what in (("n_centers", "centers"), ("n_features", "features"),
                       ("iterations", "iterations")):  # fmt: skip
        if chosen.get(name) is not None:
            words.append(f"{chosen[name]:,} {what}")
    if "averaged_models" in chosen:
        words.append(f"average of {chosen['averaged_models']} models")
    if "device" in chosen:
        words.append(f"on {chosen['device']}")
    return ", ".join(words)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
