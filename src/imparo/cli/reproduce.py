"""``imparo reproduce``: every table and figure of the thesis, with its numbers beside ours."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from imparo.cli.common import console, guarded
from imparo.cli.options import json_option
from imparo.cli.steps import steps

if TYPE_CHECKING:
    from imparo.experiments import Told

_STYLES = {"reproduced": "green", "better": "green", "differs": "yellow"}


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="list | all | NAME…")
@click.option(
    "--quick", is_flag=True, help="A reduced version: all of it in under 5 minutes on 2 cores."
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    help="At most so many; those of the thesis if left out.",
)
@click.option(
    "--data", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Folder of the data sets; what IMPARO_DATA names if left out.",
)  # fmt: skip
@click.option(
    "--download", is_flag=True, help="Fetch data that are not on this machine from the network."
)
@click.option(
    "--out", "-o", type=click.Path(file_okay=False, path_type=Path), default="reproduced",
    show_default=True, metavar="DIR", help="Where to keep trials and write the book.",
)  # fmt: skip
@json_option
@guarded
def reproduce(
    names: Sequence[str], quick: bool, trials: int | None, data: Path | None, download: bool,
    out: Path, as_json: bool,
) -> None:  # fmt: skip
    """Make tables and figures of the thesis anew, with its numbers beside ours.

    Trials are kept as they are done: after an interruption the same command goes on where it
    stopped. Each experiment ends with a page, its values and its pictures, and all of them are
    gathered in one book, chapter by chapter.

    Data that are not on this machine are fetched with --download; without it the nearest real
    data that are there stand for them, and the book says so.

    \b
    Examples:
      imparo reproduce list
      imparo reproduce all --quick
      imparo reproduce nystrom-errors --data ~/data --trials 3
      imparo reproduce all --out thesis --download
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.experiments import names as known
    from imparo.experiments import reproduce as make

    shown = console(as_json)
    if "list" in names:
        if len(names) > 1:
            raise click.UsageError("list stands alone: imparo reproduce list")
        _list(shown, as_json)
        return
    if "all" in names and len(names) > 1:
        raise click.UsageError("all stands alone, and means every experiment")
    wanted = known() if "all" in names else list(dict.fromkeys(names))
    for name in wanted:
        if name not in known():
            from imparo.experiments import experiment

            experiment(name)  # its error tells names that are near
    with steps(shown) as show:
        told = make(
            wanted, out, quick=quick, trials=trials, data=data, download=download,
            progress=lambda what, done, total: show(what, done, total),
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps([one.to_dict() for one in told]))
        return
    _print(shown, told, out, quick)


def _list(shown: Console, as_json: bool) -> None:
    from imparo.experiments import experiment
    from imparo.experiments import names as known

    found = [experiment(name) for name in known()]
    if as_json:
        keys = ("name", "chapter", "place", "title", "finding", "setting", "data", "minutes")
        click.echo(json.dumps([{key: getattr(one, key) for key in keys} for one in found]))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("name", "thesis", "what"):
        table.add_column(name, no_wrap=name != "what")
    table.add_column("minutes", justify="right")
    for one in found:
        minutes = f"{one.minutes:.0f}" if one.minutes >= 1 else "< 1"
        table.add_row(f"[bold]{one.name}[/]", one.place.split(",")[0], one.title, minutes)
    shown.print(table)
    shown.print("Minutes are of the thesis' settings on 2 cores, about; --quick takes seconds.")


def _print(shown: Console, told: "Sequence[Told]", out: Path, quick: bool) -> None:
    """Print the verdicts, the numbers of a single experiment, and where the book is."""
    table = Table(box=None, pad_edge=False)
    for name in ("experiment", "thesis", "verdict", ""):
        table.add_column(name, no_wrap=name != "")
    for one in told:
        said = next(iter(one.results.missing.values()), "not made")
        if one.account is not None:
            said = one.account.counts
        style = _STYLES.get(one.verdict, "dim")
        place = one.experiment.place.split(",")[0]
        table.add_row(one.experiment.name, place, f"[{style}]{one.mark}[/]", said)
    if len(told) == 1 and told[0].account is not None:
        _numbers(shown, told[0])
    shown.print(table)
    book = out / f"book{'-quick' * quick}.html"
    shown.print(f"Book: {book}", soft_wrap=True, markup=False)


def _numbers(shown: Console, told: "Told") -> None:
    account = told.account
    assert account is not None
    if account.comparisons:
        table = Table(title=f"{told.experiment.place}: {told.experiment.title}",
                      title_justify="left")  # fmt: skip
        for i, name in enumerate(("", "thesis", "ours", "trials", "verdict")):
            table.add_column(name, justify="left" if i in (0, 4) else "right")
        for one in account.comparisons:
            table.add_row(one.what, str(one.thesis), one.shown, str(one.trials), one.verdict)
        shown.print(table)
    for check in account.checks:
        mark = "[green]yes[/]" if check.holds else "[yellow]no[/] "
        shown.print(f"{mark}  {check.claim}: {check.evidence}")
    for note in account.notes:
        shown.print(f"Note: {note}", markup=False)
