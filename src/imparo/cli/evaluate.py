"""``imparo evaluate``: how good a model is on a file that it has not seen."""

import json
from pathlib import Path
from typing import Any

import click

from imparo.cli.common import console, guarded
from imparo.cli.options import (
    READING,
    Names,
    json_option,
    reading,
    reading_options,
    report_option,
)
from imparo.cli.steps import steps
from imparo.cli.telling import tell_evaluation


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("--target", "-t", type=Names(), default="", metavar="COLUMNS",
              help="Name of the target in DATA, if it is not that of the fit.")  # fmt: skip
@report_option
@reading_options
@json_option
@guarded
def evaluate(model: Path, data: str, target: list[str], reports: tuple[Path, ...],
             as_json: bool, **options: Any) -> None:  # fmt: skip
    """Judge MODEL by the rows of DATA, which have the target.

    MODEL and DATA are as for imparo predict. Of a data set with parts, the test part judges.
    Rows are read in blocks: any number of them.

    \b
    Examples:
      imparo evaluate model.imparo test.csv
      imparo evaluate model.imparo 'days/*.parquet' --report judged.html
      imparo evaluate model.imparo test.csv --json
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.reports import check_report_path, write_report
    from imparo.tabular import as_rows, evaluate_table, open_model

    out = console(as_json)
    for path in reports:
        check_report_path(path)
    found = open_model(model)
    read = reading(**{name: options[name] for name in READING})
    if found.is_sparse:
        read["n_columns"] = found.n_columns
    rows = as_rows(data, prefer="test", **read)
    with steps(out) as show:
        evaluation = evaluate_table(found, rows, target, show=show)
    for path in reports:
        write_report(evaluation, path)
    if as_json:
        told = evaluation.to_dict() | {"bad_rows": rows.bad.count, "model": str(model)}
        click.echo(json.dumps(told))
        return
    tell_evaluation(out, evaluation)
    if rows.bad.count:
        out.print(f"[yellow]Note:[/] {rows.bad.count:,} bad rows were skipped", highlight=False)
    for path in reports:
        out.print("[bold]Report:[/] ", end="")
        out.print(str(path), markup=False, highlight=False, soft_wrap=True)
