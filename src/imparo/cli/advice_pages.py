"""What ``imparo advise`` shows: tables on the terminal, and a page with the plane."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from imparo import __version__
from imparo.cli.advice_rows import Table
from imparo.paths import pyplot
from imparo.reports import Page
from imparo.theory import Advice, Comparison, Option
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


def print_advice(
    console: Console, table: Table, advice: Advice, comparison: Comparison | None
) -> None:
    """Print what was found as tables and sentences."""
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


def write_page(
    path: Path, table: Table, advice: Advice, comparison: Comparison | None, budget: float,
    memory: str | None, scaled: bool,
) -> None:  # fmt: skip
    """Write the page of what was found, with its pictures."""
    plt = pyplot()
    report = Page(
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
