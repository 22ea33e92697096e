"""``imparo evaluate``: how good a model is on a file that it has not seen."""

import json
from pathlib import Path
from typing import Any

import click

from imparo.cli.common import console, guarded
from imparo.cli.completion import DATA
from imparo.cli.options import (
    READING,
    Names,
    check_place,
    command_line,
    device_option,
    json_option,
    reading,
    reading_options,
    report_option,
)
from imparo.cli.steps import steps
from imparo.cli.telling import tell_evaluation


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=DATA)
@click.option("--target", "-t", type=Names(), default="", metavar="COLUMNS",
              help="Name of the target in DATA, if it is not that of the fit.")  # fmt: skip
@report_option
@device_option
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
    from imparo.reports import check_report_path, evaluation_page, write_report
    from imparo.tabular import evaluate_table, open_model
    from imparo.tabular.accounting import environment
    from imparo.tabular.predicting import on_device, open_for

    out = console(as_json)
    for path in reports:
        check_place(path, "report", [data, model])
        check_report_path(path)
    found = on_device(open_model(model), options["device"])
    read = reading(**{name: options[name] for name in READING})
    rows = open_for(found, data, **read)
    with steps(out) as show:
        evaluation = evaluate_table(found, rows, target, source=data, show=show)
    for path in reports:
        if path.suffix.lower() == ".json":
            write_report(evaluation, path)
            continue
        about = {"file": str(model), **_described(found)}
        page = evaluation_page(
            evaluation, about, command=command_line(), environment=environment()
        )
        write_report(page, path)
    if as_json:
        told = evaluation.to_dict() | {"bad_rows": rows.bad.count, "model": str(model)}
        click.echo(json.dumps(told))
        return
    tell_evaluation(out, evaluation)
    fitted_to = str(getattr(found, "made", {}).get("data", ""))
    if fitted_to.removesuffix(f" ({rows.format})") == data:
        out.print(
            "[yellow]Note:[/] the model was fitted to rows of these data; the test that imparo "
            "fit has made is the honest one",
            highlight=False,
        )
    if rows.bad.count:
        out.print(f"[yellow]Note:[/] {rows.bad.count:,} bad rows were skipped", highlight=False)
    for path in reports:
        out.print("[bold]Report:[/] ", end="")
        out.print(str(path), markup=False, highlight=False, soft_wrap=True)


def _described(model: Any) -> dict[str, str]:
    """Return what a model is, in a few words for the report."""
    made = getattr(model, "made", {})
    told = {"fitted to": made.get("data"), "rows": made.get("rows_fitted"),
            "method": made.get("method"), **made.get("chosen", {})}  # fmt: skip
    return {
        name: f"{value:,.4g}" if isinstance(value, float) else str(value)
        for name, value in told.items()
        if value is not None and not isinstance(value, list)
    }
