"""``imparo advise``: what to fit to a file of data, and what it will take."""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid
from sklearn.preprocessing import StandardScaler

from imparo import __version__
from imparo.cli.report import Report
from imparo.data import load_concrete
from imparo.data.tables import Table, read_table
from imparo.paths import pyplot
from imparo.theory import Advice, Comparison, Option, advise
from imparo.theory.costs import as_bytes, as_time
from imparo.theory.dimensions import Estimate

_CODE = """\
from imparo.theory import advise

advice = advise(X, y, budget={budget:g}, memory={memory})  # columns scaled: {scaled}
model = advice.estimator(random_state=0).fit(X, y)
"""
_REGIMES = {
    "nytro": "NYTRO (centers and early stopping)",
    "nkrls": "Nyström with a penalty",
    "krls": "the exact method with a penalty",
    "early stopping": "the exact method with early stopping",
}


@click.command("advise")
@click.argument("data", type=str)
@click.option("--target", help="Column to learn: name or number; the last one if left out.")
@click.option(
    "--task", type=click.Choice(["auto", "regression", "classification"]), default="auto",
    show_default=True, help="What kind of target it is.",
)  # fmt: skip
@click.option(
    "--budget", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
    help="Seconds that the fit may take.",
)  # fmt: skip
@click.option("--memory", help="Bytes that it may use, such as 2GB; half of the machine's.")
@click.option("--kernel", default="gaussian", show_default=True, help="Name of the kernel.")
@click.option("--sigma", default="auto", show_default=True, help="Width of the kernel.")
@click.option("--scale/--no-scale", default=True, help="Standardise the columns first.")
@click.option("--check", is_flag=True, help="Make the fit, and compare with the prediction.")
@click.option("--json", "as_json", is_flag=True, help="Print the advice as JSON.")
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path),
    help="Write an HTML report with the plane of SNR and dimension.",
)  # fmt: skip
def advise_command(
    data: str, target: str | None, task: str, budget: float, memory: str | None, kernel: str,
    sigma: str, scale: bool, check: bool, as_json: bool, output: Path | None,
) -> None:  # fmt: skip
    """Tell which method, m, λ and t suit DATA, and what the fit will take.

    DATA is a file (.csv, .tsv, .npz with X and y, .npy) or "concrete", the data that ship
    with imparo. Nothing is fitted but a sample of 2000 rows, unless --check is given.

    \b
    Examples:
      imparo advise concrete
      imparo advise houses.csv --target price --budget 30 --memory 2GB
      imparo advise train.npz --check -o advice.html
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    console = Console(stderr=as_json)
    if output is not None and not output.parent.is_dir():
        raise click.ClickException(f"there is no folder {output.parent} to write the report to")
    try:
        if output is not None:
            pyplot()
        table = _read(data, target)
        X = table.X
        if scale:
            X = StandardScaler().fit_transform(np.asarray(X, np.float64))
        with console.status("looking at a sample of the rows …"):
            advice = advise(
                X, table.y, budget, memory, kernel=kernel, sigma=_number(sigma), task=task
            )
        comparison = None
        if check:
            with console.status(f"fitting, about {as_time(advice.cost.seconds)} …"):
                comparison = advice.compare(X, table.y, random_state=0)
    except (ValueError, TypeError, MemoryError, ImportError, OSError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    if as_json:
        found = advice.to_dict() | {"target": table.target, "left_out": table.notes}
        if comparison is not None:
            found["comparison"] = comparison.to_dict()
        click.echo(json.dumps(found))
    else:
        _print(console, table, advice, comparison)
    if output is not None:
        try:
            _write(output, table, advice, comparison, budget, memory, scale)
        except OSError as error:
            raise click.ClickException(f"the report cannot be written: {error}") from error
        console.print(f"Report: {output}", soft_wrap=True, markup=False)


def _read(data: str, target: str | None) -> Table:
    if data == "concrete" and not Path(data).exists():
        shipped = load_concrete()
        if target not in (None, shipped.target_name):
            raise ValueError(f"the target of concrete is {shipped.target_name}; leave it out")
        return Table(shipped.X, shipped.y, shipped.feature_names, shipped.target_name, [])
    return read_table(Path(data), target)


def _number(sigma: str) -> float | str:
    try:
        return float(sigma)
    except ValueError:
        return sigma


def _print(
    console: Console, table: Table, advice: Advice, comparison: Comparison | None
) -> None:
    what = _UNITS[advice.method]
    target = escape(repr(table.target))
    console.print(
        f"[bold]{advice.task}[/] of {target}: {advice.n:,} rows, {advice.d:,} columns"
    )
    console.print(
        f"[bold]Take {advice.method} with {advice.size:,} {what}[/]: about "
        f"{as_time(advice.cost.seconds)} and {as_bytes(advice.cost.bytes)}, selection of λ "
        f"included; {advice.reason}."
    )
    console.print(
        f"Expect λ near {advice.penalty:.2g}, or {advice.iterations:,} steps of gradient "
        f"descent. Kernel: {escape(_kernel(advice))}."
    )
    grid = Grid(title="What each method would take", title_justify="left")
    for i, name in enumerate(("method", "size", "time", "memory", "fits", "enough")):
        grid.add_column(name, justify="left" if i == 0 else "right")
    for option in advice.options:
        grid.add_row(
            option.method, f"{option.size:,}", as_time(option.cost.seconds),
            as_bytes(option.cost.bytes), "yes" if option.fits else "no", _enough(option),
            style="bold" if option.method == advice.method else None,
        )  # fmt: skip
    console.print(grid)
    numbers = Grid(title="What the sample tells", title_justify="left")
    for i, name in enumerate(("", "value", "between", "from")):
        numbers.add_column(name, justify="left" if i in (0, 3) else "right")
    for row in _figures(advice):
        numbers.add_row(*row)
    console.print(numbers)
    console.print(
        f"Theory, by orders of magnitude at equal accuracy: {_REGIMES[advice.regime]}."
    )
    for note in (*table.notes, *advice.notes):
        console.print(f"Note: {note}.", style="yellow", markup=False)
    if comparison is not None:
        console.print("[bold]Prediction and fit[/]")
        console.print(str(comparison), markup=False)


_UNITS = {
    "exact": "rows",
    "nystrom": "centers",
    "nytro": "centers",
    "random features": "features",
}


def _kernel(advice: Advice) -> str:
    sigma = getattr(advice.kernel, "sigma", None)
    if sigma is None:
        return repr(advice.kernel)
    order = f", order {advice.kernel.order:g}" if hasattr(advice.kernel, "order") else ""
    width = f"{sigma:.4g}" if isinstance(sigma, float | int) else "one for each column"
    return f"{type(advice.kernel).__name__}, σ = {width}{order}"


def _enough(option: Option) -> str:
    if option.enough:
        return "yes"
    return "too small" if option.converges else "too few steps"


def _short(value: float) -> str:
    return f"{value:,.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def _figures(advice: Advice) -> list[list[str]]:
    named: list[tuple[str, Estimate]] = [
        ("best penalty λ*", advice.signal.penalty),
        ("SNR = ‖f‖²/σ²", advice.signal.snr),
        ("noise variance σ²", advice.signal.noise),
        ("effective dimension d_eff(λ*)", advice.dimensions.effective),
        ("n · largest leverage, d̃(λ*)", advice.dimensions.maximal),
        ("rank of K, d*", advice.dimensions.full),
    ]
    rows = []
    for name, e in named:
        span = "" if e.low == e.high else f"{_short(e.low)} … {_short(e.high)}"
        rows.append([name, _short(e.value), span, e.source])
    if advice.task == "regression":
        source = advice.signal.noise.source
        rows.append(["error to expect (RMSE)", _short(advice.signal.error), "", source])
    explained = f"{100 * advice.signal.explained:.0f} %"
    rows.append(["variance of y explained", explained, "", "at that penalty"])
    rows.append(["capacity exponent γ", f"{advice.decay:.2g}", "", "d_eff(λ) ∝ λ^−γ"])
    return rows


def _write(
    path: Path, table: Table, advice: Advice, comparison: Comparison | None, budget: float,
    memory: str | None, scaled: bool,
) -> None:  # fmt: skip
    plt = pyplot()
    report = Report(
        f"What to fit to {table.target}",
        f"{advice.n:,} rows and {advice.d:,} columns, looked at through a sample. "
        f"{_kernel(advice)}.",
    )
    what = _UNITS[advice.method]
    report.card(f"{advice.size:,} {what}", f"{advice.method}: {advice.reason}")
    report.card(as_time(advice.cost.seconds), "expected time, selection included")
    report.card(as_bytes(advice.cost.bytes), "expected memory, beside the data")
    report.card(f"{advice.penalty:.2g}", f"λ to expect; or {advice.iterations:,} steps")
    figure, ax = plt.subplots(figsize=(7.2, 5.2), layout="constrained")
    advice.plot(ax)
    report.picture(
        "You are here",
        "Which method is fastest at the best accuracy, by the orders of magnitude of theory. "
        f"Here: {_REGIMES[advice.regime]}.",
        figure,
    )
    report.picture(
        "How the dimension grows",
        "The effective dimension at every penalty, with its error bar.",
        _dimension_plot(plt, advice),
    )
    report.table(
        "What each method would take", "At the size that the data call for, or the largest "
        "that the budget and memory allow.",
        ["method", "size", "time", "memory", "fits", "enough"],
        [[o.method, f"{o.size:,}", as_time(o.cost.seconds), as_bytes(o.cost.bytes),
          "yes" if o.fits else "no", _enough(o)] for o in advice.options],
        [o.method for o in advice.options].index(advice.method),
    )  # fmt: skip
    report.table(
        "What the sample tells", "Exact for few rows, estimated with an error bar for many.",
        ["", "value", "between", "from"], _figures(advice), -1,
    )  # fmt: skip
    report.code(
        "What the theorems ask for",
        "With their conditions checked; constants of proofs are larger than practice needs.",
        "\n\n".join(map(str, advice.prescriptions)),
    )
    if comparison is not None:
        report.code("Prediction and fit", "The fit was made and measured.", str(comparison))
    given = "None" if memory is None else repr(memory)
    report.code(
        "The same in Python", "From your own code:",
        _CODE.format(budget=budget, memory=given, scaled="yes" if scaled else "no"),
    )  # fmt: skip
    notes = " ".join(f"{note}." for note in (*table.notes, *advice.notes))
    report.write(path, f"{notes} Made by imparo {__version__}.".strip())
    plt.close("all")


def _dimension_plot(plt: Any, advice: Advice) -> Any:
    figure, ax = plt.subplots(figsize=(5.6, 3.9), layout="constrained")
    curve = advice.curve
    ax.fill_between(curve.penalties, curve.low, curve.high, color="#3b6fb6", alpha=0.25, lw=0)
    ax.plot(curve.penalties, curve.effective, color="#3b6fb6", lw=2, label="d_eff(λ)")
    ax.axvline(advice.penalty, color="crimson", lw=1.2, ls="--", label="λ*")
    ax.set(xscale="log", yscale="log", xlabel="penalty λ", ylabel="effective dimension")
    ax.legend(frameon=False, fontsize="small")
    return figure
