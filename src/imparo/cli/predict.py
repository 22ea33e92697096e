"""``imparo predict``: what a model says of a file, row by row."""

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
    device_option,
    json_option,
    reading,
    reading_options,
)
from imparo.cli.steps import steps


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=DATA)
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Where to write: .csv, .tsv, .jsonl, .parquet, .arrow, .feather, .npy, .npz; standard "
    "output, as CSV, if left out.",
)  # fmt: skip
@click.option("--probabilities", is_flag=True, help="Of every class, beside the prediction.")
@click.option(
    "--keep", type=Names(), default="", metavar="COLUMNS",
    help="Columns of DATA to write before the predictions, such as an identifier.",
)  # fmt: skip
@device_option
@reading_options
@json_option
@guarded
def predict(model: Path, data: str, output: Path | None, probabilities: bool, keep: list[str],
            as_json: bool, **options: Any) -> None:  # fmt: skip
    """Predict the target of every row of DATA with MODEL.

    MODEL is a file that imparo fit has saved, or the folder of imparo learn. DATA is as for
    imparo fit; it needs the columns that the model was fitted to, by name, and not the target.
    Rows are read and written in blocks: any number of them.

    \b
    Examples:
      imparo predict model.imparo new.csv -o predictions.csv
      imparo predict model.imparo new.parquet --keep id --probabilities -o out.parquet
      cat rows.jsonl | imparo predict model.imparo - | head
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.data.writers import open_writer
    from imparo.tabular import open_model, predict_blocks
    from imparo.tabular.predicting import on_device, open_for, prediction_names

    out = console(as_json or output is None)
    check_place(output, "predictions", [data, model])
    found = on_device(open_model(model), options["device"])
    read = reading(**{name: options[name] for name in READING})
    rows = open_for(found, data, **read)
    if probabilities and found.task != "classification":
        raise ValueError("--probabilities are of classes, and this model predicts numbers")
    names = [*keep, *prediction_names(found, probabilities)]
    count = 0
    with steps(out) as show:
        blocks = predict_blocks(found, rows, probabilities=probabilities, keep=keep, show=show)
        first = next(blocks, None)  # what is wrong is told before a file is begun
        with open_writer(
            output, names, "jsonl" if as_json and output is None else None
        ) as writer:
            while first is not None:
                writer.write(first)
                count += len(first)
                first = next(blocks, None)
            if not count:  # here: what was in the file before stays
                raise ValueError(f"{data} holds no row to predict")
    if rows.bad.count:
        out.print(f"[yellow]Note:[/] {rows.bad.count:,} bad rows were skipped", highlight=False)
        for sentence in rows.bad.examples[:3]:
            out.print(f"  {sentence}", markup=False, highlight=False, soft_wrap=True)
    if as_json and output is not None:
        told = {"rows": count, "bad_rows": rows.bad.count, "output": str(output)}
        click.echo(json.dumps(told))
    elif output is not None:
        out.print(f"{count:,} predictions: ", end="", highlight=False)
        out.print(str(output), markup=False, highlight=False, soft_wrap=True)
