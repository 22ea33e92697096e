"""``imparo datasets make``: rows of laws whose best predictions are known."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imparo.cli.common import console, guarded
from imparo.cli.helping import HelpContext
from imparo.cli.steps import steps

if TYPE_CHECKING:
    from imparo.data.synthetic import Sample

# Rows that are made and written at a time, and the most cells of them.
_ROWS, _CELLS = 2**19, 2**21
_POSITIVE = click.FloatRange(min=0, min_open=True)


class HelpCommand(click.Command):
    """A command whose help has the look of all of imparo's."""

    context_class = HelpContext


class HelpGroup(click.Group):
    """A group of such commands."""

    context_class = HelpContext
    command_class = HelpCommand
    group_class = type


@click.group(cls=HelpGroup)
def make() -> None:
    """Write rows of a law whose best predictions are known, to learn and to test with.

    Rows are made and written in blocks: ten million of them do not sit in memory. The same
    seed gives the same rows, and fewer rows are the first of more. Sections are those of the
    thesis.

    \b
    Examples:
      imparo datasets make gaussians --rows 10000 -o classes.csv
      imparo datasets make spline --r 0.875 --gamma 0.25 --rows 5000 -o spline.npz
      imparo datasets make rkhs --columns 10 --snr 100 --rows 10000000 -o rows.parquet
    """  # noqa: D301  # click's mark


def _made(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all generators share."""
    options = (
        click.option("--rows", type=click.IntRange(min=1), required=True, help="How many."),
        click.option(
            "--output", "-o", required=True,
            type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
            help="File to write: .csv, .parquet, .npz …; - for CSV on standard output.",
        ),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@make.command("gaussians", short_help="Two classes, each a Gaussian.")
@_made
@click.option(
    "--deviation", "deviations", type=_POSITIVE, multiple=True, default=(0.6,),
    show_default=True, help="Of both classes; give it twice for -1 and +1.",
)  # fmt: skip
@click.option(
    "--share", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.5,
    show_default=True, help="Of the class +1.",
)  # fmt: skip
@guarded
def gaussians_command(
    rows: int, output: Path, seed: int, as_json: bool, deviations: tuple[float, ...],
    share: float,
) -> None:  # fmt: skip
    """Make two classes, Gaussians about (-1, 0) and (1, 0): sections 1.3 and 7.3.

    \b
    Examples:
      imparo datasets make gaussians --rows 10000 -o classes.csv
      imparo datasets make gaussians --rows 10000 --share 0.9 -o unbalanced.parquet
    """  # noqa: D301  # click's mark
    from imparo.data.synthetic import gaussians

    _write(gaussians(rows, deviations=deviations, share=share, rng=seed), output, as_json)


@make.command("spline", short_help="One column, a peak of known smoothness.")
@_made
@click.option("--r", type=click.FloatRange(0.5, 1), default=0.5, show_default=True,
              help="Smoothness of the function.")  # fmt: skip
@click.option("--gamma", type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
              default=0.25, show_default=True, help="Size of the space.")  # fmt: skip
@click.option("--noise", type=_POSITIVE, default=0.1, show_default=True,
              help="Standard deviation.")  # fmt: skip
@guarded
def spline_command(
    rows: int, output: Path, seed: int, as_json: bool, r: float, gamma: float, noise: float
) -> None:
    """Make one column, and a peak of known smoothness: section 5.4.

    \b
    Examples:
      imparo datasets make spline --rows 5000 --r 0.875 --gamma 0.25 -o spline.csv
    """  # noqa: D301  # click's mark
    from imparo.data.synthetic import spline

    _write(spline(rows, r, gamma, noise=noise, rng=seed), output, as_json)


@make.command("rkhs", short_help="A function of the Gaussian kernel's space.")
@_made
@click.option("--columns", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--snr", type=_POSITIVE, default=100.0, show_default=True,
              help="‖f‖² over the variance of the noise.")  # fmt: skip
@click.option("--sigma", type=_POSITIVE, help="Width of the kernel; √columns if left out.")
@guarded
def rkhs_command(
    rows: int, output: Path, seed: int, as_json: bool, columns: int, snr: float,
    sigma: float | None,
) -> None:  # fmt: skip
    """Make a function of the Gaussian kernel's space, with noise: section 4.3.

    \b
    Examples:
      imparo datasets make rkhs --rows 10000 --columns 10 --snr 1000 -o rows.parquet
    """  # noqa: D301  # click's mark
    from imparo.data.synthetic import rkhs_function

    _write(rkhs_function(rows, columns, snr, sigma=sigma, rng=seed), output, as_json)


def _write(sample: "Sample", output: Path, as_json: bool) -> None:
    from imparo.data.writers import open_writer

    # The rows themselves may go to standard output.
    out, done = console(as_json or str(output) == "-"), 0
    size = max(1, min(_ROWS, _CELLS // len(sample.names)))
    with steps(out) as show_done, open_writer(output, sample.names) as writer:
        for frame in sample.frames(size):
            writer.write(frame)
            done += len(frame)
            show_done("writing rows", done, sample.n)
    told = {
        "file": str(output), "rows": sample.n, "columns": sample.law.d, "target": "y",
        "bayes_error": sample.bayes_error,
    }  # fmt: skip
    if as_json and str(output) != "-":
        click.echo(json.dumps(told))
        return
    out.print(
        f"{output}: {sample.n:,} rows, {sample.law.d:,} columns and the target y. No "
        f"prediction has an error below {sample.bayes_error:.4g} on average.",
        soft_wrap=True, markup=False, highlight=False,
    )  # fmt: skip
