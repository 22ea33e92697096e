"""``imparo demo``: the main job on data that ships with the project."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from imparo.cli.common import console, guarded
from imparo.cli.steps import steps

if TYPE_CHECKING:
    from imparo.cli.demonstration import Outcome


@click.command()
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path),
    default="imparo-demo.html", show_default=True, help="Where to write the HTML report.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@guarded
def demo(output: Path, as_json: bool) -> None:
    """Learn the strength of concrete from its mixture, and explain the choice.

    Selects a kernel, its width and its penalty on data that ships with imparo, compares
    the result with a linear model on unseen rows, and writes one HTML report.

    \b
    Examples:
      imparo demo
      imparo demo -o concrete.html
      imparo demo --json > concrete.json
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.cli.demonstration import run_demo, write_report
    from imparo.paths import pyplot

    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent} to write the report to")
    pyplot()
    out = console(as_json)
    with steps(out) as show:

        def progress(description: str) -> Callable[[int, int, str], None]:
            return lambda done, total, _: show(description, done, total)

        outcome = run_demo(progress)
    write_report(outcome, output)
    if as_json:
        click.echo(json.dumps(outcome.to_dict()))
    else:
        _print(out, outcome, output)


def _print(console: Console, outcome: "Outcome", path: Path) -> None:
    from imparo.cli.demonstration import AUTOMATIC, BUDGET, SUBSAMPLED, UNIT, row_of

    table = Table(title=f"RMSE in {UNIT}, chosen by leave-one-out", title_justify="left")
    header = ["kernel", "σ", "λ", "leave-one-out", "test", "seconds"]
    shown = range(len(header)) if console.width >= 66 else (0, 3, 4)
    for i in shown:
        table.add_column(header[i], justify="left" if i == 0 else "right")
    for name in outcome.models:
        cells = row_of(outcome, name)
        style = "bold red" if name == outcome.chosen else None
        table.add_row(*(cells[i] for i in shown), style=style)
    console.print(table)
    best, error = outcome.path(outcome.chosen).best, outcome.test_errors
    console.print(
        f"Chosen: the {outcome.chosen} kernel with σ = {best['sigma']:.3g}, "
        f"λ = {best['penalty']:.2g}, out of {outcome.n_models:,} kernel models."
    )
    console.print(
        f"Test error {error[outcome.chosen]:.2f} {UNIT}; the linear baseline has "
        f"{error['linear']:.2f} {UNIT}."
    )
    subsampled, automatic = outcome.subsampled, outcome.automatic
    console.print(
        f"With {subsampled.n_centers_} of {outcome.n_train} mixtures as centers: "
        f"{error[SUBSAMPLED]:.2f} {UNIT}, selected in {outcome.seconds[SUBSAMPLED]:.2f} s."
    )
    console.print(
        f"AutoRegressor(budget={BUDGET}): {error[AUTOMATIC]:.2f} {UNIT}, "
        f"{automatic.n_centers_} centers, {outcome.seconds[AUTOMATIC]:.1f} s. The column that "
        f"counts most is {max(outcome.relevance, key=outcome.relevance.__getitem__)}."
    )
    console.print(f"Report: {path}", soft_wrap=True, markup=False)
