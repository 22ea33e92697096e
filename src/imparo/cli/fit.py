"""``imparo fit``: a good model of a file, and an honest account of it, in one line."""

import json
from pathlib import Path
from typing import Any

import click

from imparo.cli.common import INTERRUPTED, console, guarded
from imparo.cli.completion import DATA
from imparo.cli.options import (
    READING,
    Memory,
    Names,
    Numbers,
    check_place,
    cluster_option,
    command_line,
    device_option,
    json_option,
    reading,
    reading_options,
    report_option,
    together,
)
from imparo.cli.steps import steps
from imparo.cli.telling import tell_fit

_method_options = together(
    click.option(
        "--method", type=click.Choice(["auto", "exact", "nystrom", "nytro", "features", "sgm"]),
        default="auto", show_default=True,
        help="auto finds kernel, widths, penalty and size within the budget.",
    ),
    click.option(
        "--budget", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
        help="Time for auto to search; 60 if left out.",
    ),
    click.option(
        "--memory", type=Memory(),
        help="For the whole program, such as 2GB; half of the machine's if left out.",
    ),
    device_option,
    cluster_option,
    click.option("--kernel", help="gaussian, matern32, laplacian, linear …; chosen by auto."),
    click.option(
        "--sigma", type=Numbers(("median", "scale", "learned", "per-feature", "auto")),
        help="Width of the kernel.",
    ),
    click.option(
        "--penalty", type=Numbers(("auto",)), help="λ: one, or several to choose from."
    ),
    click.option(
        "--centers", type=Numbers(("auto",), whole=True),
        help="Number of centers of nystrom and nytro.",
    ),
    click.option(
        "--features", type=Numbers(("auto",), whole=True),
        help="Number of random features of features and sgm.",
    ),
)  # fmt: skip

_column_options = together(
    click.option(
        "--target", "-t", type=Names(), multiple=True, metavar="COLUMNS",
        help="What to learn: a name, a number from 0 on, or several; the last column, or what "
        "the file calls its target, if left out.",
    ),
    click.option(
        "--task", type=click.Choice(["auto", "regression", "classification"]), default="auto",
        show_default=True, help="auto takes text, and few whole numbers, for classes.",
    ),
    click.option("--columns", type=Names(), default="", metavar="COLUMNS",
                 help="What to learn from; all others if left out."),
    click.option(
        "--drop", type=Names(), default="", metavar="COLUMNS", help="What to leave out."
    ),
    click.option("--weight", metavar="COLUMN", help="Weights of the rows."),
    click.option(
        "--missing", type=click.Choice(["fill", "skip", "refuse"]), default="fill",
        show_default=True, help="Fill and mark missing values, skip such rows, or stop.",
    ),
)  # fmt: skip

_split_options = together(
    click.option(
        "--test", type=click.FloatRange(0, 1, max_open=True), default=0.2, show_default=True,
        help="Share of the rows kept for an honest test, at most 50,000; 0 fits all.",
    ),
    click.option(
        "--split", type=click.Choice(["random", "time", "group"]),
        help="How rows are kept; time is the order of the file unless --time names a column.",
    ),
    click.option("--time", "time_column", metavar="COLUMN",
                 help="Times: the last rows are kept for the test."),
    click.option("--group", metavar="COLUMN",
                 help="Groups, such as patients or recordings, that must not be split."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
)  # fmt: skip


@click.command()
@click.argument("data", type=DATA)
@_column_options
@_split_options
@_method_options
@reading_options
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Where to save the model, such as model.imparo.",
)  # fmt: skip
@report_option
@click.option("--scratch", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Where rows go that do not fit in memory.")  # fmt: skip
@json_option
@guarded
def fit(data: str, output: Path | None, reports: tuple[Path, ...], scratch: Path | None,
        as_json: bool, **options: Any) -> None:  # fmt: skip
    """Learn a column of DATA from the others, within seconds and bytes.

    DATA is a file (.csv, .tsv, .parquet, .arrow, .feather, .jsonl, .libsvm, .npy, .npz, .h5;
    text also compressed), a folder or pattern of files, "-" for standard input, or the name of
    a data set (see imparo datasets). Columns of numbers, categories and dates are prepared, the
    task is found from the target, a fifth of the rows is kept for a test, and what was done is
    told.

    \b
    Examples:
      imparo fit houses.csv --target price -o model.imparo --report report.html
      imparo fit logs/ --target failed --time when --budget 300
      imparo fit 'part-*.parquet' --target y --memory 2GB --method nystrom --centers 1000
      imparo fit big.parquet --target y --method nystrom --centers 20000 --device cuda
      imparo fit big.parquet --target y --method nystrom --cluster tcp://10.0.0.1:8786
      imparo fit patients.csv --target outcome --group patient --drop name,address
      imparo fit concrete --json
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.persistence import save
    from imparo.reports import check_report_path, write_report
    from imparo.tabular import fit_table

    out = console(as_json)
    check_place(output, "model", [data, *reports])
    for k, path in enumerate(reports):
        check_place(path, "report", [data, *reports[:k]])
        check_report_path(path)
    given = {
        name: options[option]
        for name, option in (("kernel", "kernel"), ("sigma", "sigma"), ("penalty", "penalty"),
                             ("n_centers", "centers"), ("n_features", "features"))
        if options[option] is not None
    }  # fmt: skip
    target = [name for names in options["target"] for name in names]
    with steps(out) as show:
        fitted = fit_table(
            data, target or None, task=options["task"], method=options["method"],
            budget=options["budget"], memory=options["memory"], device=options["device"],
            cluster=options["cluster"],
            columns=options["columns"], drop=options["drop"], weight=options["weight"],
            group=options["group"], time=options["time_column"], split=options["split"],
            test=options["test"], missing=options["missing"], seed=options["seed"],
            scratch=scratch, curve=bool(reports), command=command_line(), progress=show,
            read=reading(**{name: options[name] for name in READING}), **given,
        )  # fmt: skip
    if output is not None:
        save(fitted.model, output)
    with steps(out) as show:
        for done, path in enumerate(reports):
            show("writing reports", done, len(reports))
            write_report(fitted.account, path)
    if as_json:
        click.echo(json.dumps(fitted.account.to_dict() | {"model": output and str(output)}))
    else:
        tell_fit(out, fitted.account)
        written = [("Model", output)] if output is not None else []
        for what, place in [*written, *(("Report", path) for path in reports)]:
            out.print(f"[bold]{what}:[/] ", end="")
            out.print(str(place), markup=False, highlight=False, soft_wrap=True)
    if fitted.interrupted:
        click.echo("Interrupted: this is the best model until then.", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
