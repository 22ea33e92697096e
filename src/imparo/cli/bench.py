"""``imparo bench``: how fast this machine is, and imparo beside its rivals on it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from imparo.cli.common import console, guarded
from imparo.cli.steps import Steps, steps

if TYPE_CHECKING:
    from imparo.measuring import Measurement

_TICK = 0.5  # seconds
_PARTS = ("machine", "fits", "readers", "stream")
_TITLES = {
    "machine": "This machine",
    "fits": "Fits of imparo, and of scikit-learn with one λ to the same rows",
    "readers": "Files read by imparo in blocks, and by others as a whole",
    "stream": "One example at a time",
}


@click.command()
@click.argument("part", type=click.Choice([*_PARTS, "all"]), default="all", metavar="[PART]")
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), default=20.0, metavar="SECONDS",
    show_default=True, help="How long to measure, about; more time means larger sizes.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the outcome as JSON to a file, too.",
)  # fmt: skip
@guarded
def bench(part: str, seconds: float, as_json: bool, output: Path | None) -> None:
    """Measure this machine, and imparo beside its rivals on it.

    PART is machine (matrix products, memory, scratch files), fits (Nyström, random features
    and exact, beside scikit-learn), readers (CSV, Parquet and NPY), stream (one example at a
    time), or all. Every figure is the median of repeats after a first run that does not count;
    rivals are measured in the same run, by turns.

    \b
    Examples:
      imparo bench
      imparo bench fits --seconds 60
      imparo bench machine --json -o machine.json
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.measuring import measure, surroundings
    from imparo.persistence import write_atomically

    if output is not None and not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent} to write the outcome to")
    out = console(as_json, markup=False)
    parts = list(_PARTS) if part == "all" else [part]
    with steps(out) as show, _ticking(show, seconds):
        found = measure(parts, seconds)
    about = surroundings()
    outcome = about | {"seconds": seconds, "measured": [line.to_dict() for line in found]}
    if output is not None:
        write_atomically(output, (json.dumps(outcome, indent=2) + "\n").encode())
    if as_json:
        click.echo(json.dumps(outcome))
    else:
        _print(out, about, found)
    if output is not None:
        out.print(f"Outcome: {output}", soft_wrap=True)


@contextmanager
def _ticking(show: Steps, seconds: float) -> Iterator[None]:
    """Show the time that passes: the work is made to fit into it."""
    ended, start, total = Event(), monotonic(), round(10 * seconds)

    def tick() -> None:
        while not ended.wait(_TICK):
            show("measuring", min(round(10 * (monotonic() - start)), total), total)

    thread = Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _print(out: Console, about: dict[str, Any], found: "list[Measurement]") -> None:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    threads = "" if about["threads"] is None else f", {about['threads']} threads of BLAS"
    out.print(f"{about['processor']}, {about['cores']} cores{threads}; {versions}")
    for part in dict.fromkeys(line.part for line in found):
        out.print(_table(part, [line for line in found if line.part == part]))


def _table(part: str, lines: "list[Measurement]") -> Table:
    """Return the table of a part, the rival of each line under it."""
    table = Table(title=_TITLES[part], title_justify="left")
    compared = any(line.rival for line in lines)
    learned = any(line.error is not None for line in lines)
    more = [*(["faster"] if compared else []), *(["test RMSE"] if learned else [])]
    for i, name in enumerate(("", "size", "speed" if lines[0].unit != "s" else "time", *more)):
        table.add_column(name, justify="left" if i < 2 else "right")
    for line in lines:
        cells = [line.what, line.size, f"{_short(line.value)} {line.unit}"]
        cells += [f"{_short(line.ratio)}×"] if line.ratio is not None else []
        cells += [f"{line.error:.3f}"] if line.error is not None else []
        table.add_row(*cells, end_section=compared and line.rival is None)
        if line.note:
            table.add_row(f"  {line.note}", style="dim")
        if line.rival is not None and line.rival_value is not None:
            cells = [f"  {line.rival}", "", f"{_short(line.rival_value)} {line.unit}", ""]
            cells += [f"{line.rival_error:.3f}"] if line.rival_error is not None else []
            table.add_row(*cells, style="dim", end_section=True)
    return table


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
