"""``imparo advise``: what to fit to a file of data, and what it will take."""

import json
from pathlib import Path
from typing import Any

import click

from imparo.cli.common import console, guarded
from imparo.cli.completion import DATA
from imparo.cli.options import READING, Memory, reading, reading_options
from imparo.cli.steps import steps


@click.command("advise")
@click.argument("data", type=DATA)
@click.option("--target", "-t", help="Column to learn: name or number; the last if left out.")
@click.option(
    "--task", type=click.Choice(["auto", "regression", "classification"]), default="auto",
    show_default=True, help="What kind of target it is.",
)  # fmt: skip
@click.option(
    "--budget", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
    help="Seconds that the fit may take.",
)  # fmt: skip
@click.option(
    "--memory", type=Memory(), help="Bytes that it may use, such as 2GB; half of the machine's."
)
@click.option("--kernel", default="gaussian", show_default=True, help="Name of the kernel.")
@click.option("--sigma", default="auto", show_default=True, help="Width of the kernel.")
@click.option("--scale/--no-scale", default=True, help="Standardise the columns first.")
@click.option("--check", is_flag=True, help="Make the fit, and compare with the prediction.")
@reading_options
@click.option("--json", "as_json", is_flag=True, help="Print the advice as JSON.")
@click.option(
    "--report", "-r", "--output", "-o", "output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an HTML report with the plane of SNR and dimension.",
)  # fmt: skip
@guarded
def advise_command(
    data: str, target: str | None, task: str, budget: float, memory: str | None, kernel: str,
    sigma: str, scale: bool, check: bool, as_json: bool, output: Path | None, **given: Any,
) -> None:  # fmt: skip
    """Tell which method, m, λ and t suit DATA, and what the fit will take.

    DATA is a file of rows, a folder or pattern of files, "-" for standard input, or the name
    of a data set. Columns of text and rows with missing values are left out. Nothing is fitted
    but a sample of 2000 rows, unless --check is given.

    \b
    Examples:
      imparo advise concrete
      imparo advise houses.csv --target price --budget 30 --memory 2GB
      imparo advise 'logs/*.parquet' --target load --check -o advice.html
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.cli.advice_pages import print_advice, write_page
    from imparo.cli.advice_rows import read_numbers
    from imparo.paths import pyplot
    from imparo.theory import advise
    from imparo.theory.costs import as_time

    out = console(as_json)
    if output is not None:
        if not output.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {output.parent} for the report")
        pyplot()
    with steps(out) as show:
        how = reading(**{name: given[name] for name in READING})
        table = read_numbers(data, target, show, **how)
    X = table.scaled() if scale else table.X
    with out.status("looking at a sample of the rows …"):
        advice = advise(
            X, table.y, budget, memory, kernel=kernel, sigma=_number(sigma), task=task
        )
    comparison = None
    if check:
        with out.status(f"fitting, about {as_time(advice.cost.seconds)} …"):
            comparison = advice.compare(X, table.y, random_state=0)
    if as_json:
        found = advice.to_dict() | {"target": table.target, "left_out": table.notes}
        if comparison is not None:
            found["comparison"] = comparison.to_dict()
        click.echo(json.dumps(found))
    else:
        print_advice(out, table, advice, comparison)
    if output is not None:
        write_page(output, table, advice, comparison, budget, memory, scale)
        out.print(f"Report: {output}", soft_wrap=True, markup=False)


def _number(sigma: str) -> float | str:
    try:
        return float(sigma)
    except ValueError:
        return sigma
