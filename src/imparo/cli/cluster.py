"""``imparo cluster``: what a fit would take on a cluster, and whether that pays."""

import json
from dataclasses import asdict

import click

from imparo.cli.common import console, guarded
from imparo.cli.options import Memory, json_option


class Count(click.ParamType):
    """A whole number from 1 on, which may be written as 1e8."""

    name = "number"

    def convert(self, value: object, param: object, ctx: object) -> int:
        """Return the number, or fail with a sentence."""
        try:
            found = float(str(value).replace("_", "").replace(",", ""))
        except ValueError:
            found = 0.0
        if not 1 <= found < 1e18 or found != int(found):
            self.fail(f"{value!r} is not a whole number from 1 on, such as 1000000 or 1e6")
        return int(found)


@click.command("cluster")
@click.option("--rows", "-n", type=Count(), required=True, help="Rows of the data.")
@click.option("--columns", "-d", type=Count(), required=True, help="Columns of numbers.")
@click.option("--centers", "-m", type=Count(), required=True, help="Centers of the model.")
@click.option(
    "--workers", "-w", type=Count(), default="4", show_default=True,
    help="Processes with a core each.",
)  # fmt: skip
@click.option("--outputs", type=Count(), default="1", show_default=True)
@click.option(
    "--folds", type=Count(), help="Folds to judge by; a fifth is held out if left out."
)
@click.option(
    "--penalties", type=Count(), default="41", show_default=True, help="Penalties to try."
)
@click.option(
    "--iterations", type=Count(),
    help="Of conjugate gradients in all, for centers too many for statistics.",
)  # fmt: skip
@click.option("--partition", type=Count(), help="Rows of a partition; 50,000 if left out.")
@click.option(
    "--bandwidth", type=Memory(), default="1GB", show_default=True,
    help="Between two machines, in a second.",
)  # fmt: skip
@json_option
@guarded
def cluster_command(
    rows: int, columns: int, centers: int, workers: int, outputs: int, folds: int | None,
    penalties: int, iterations: int | None, partition: int | None, bandwidth: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Tell what a Nyström fit would take on a cluster of Dask, and whether that pays.

    Workers are taken to be as fast as a core of this machine, which is measured in a second.
    Nothing is fitted, and no cluster is needed.

    \b
    Examples:
      imparo cluster --rows 1e8 --columns 28 --centers 5000 --workers 32
      imparo cluster -n 500000 -d 20 -m 2000 -w 2 --bandwidth 100MB --json
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.engine import parse_memory
    from imparo.theory import cluster_cost
    from imparo.theory.costs import as_bytes, as_time

    if folds == 1:
        raise click.UsageError("--folds 1 leaves nothing to judge by; give 2 or more")
    found = cluster_cost(
        rows, columns, centers, workers, outputs=outputs, parts=folds or 2,
        penalties=penalties, partition_rows=partition, iterations=iterations,
        bandwidth=parse_memory(bandwidth),
    )  # fmt: skip
    if as_json:
        told = asdict(found) | {"pays": found.pays, "speedup": found.speedup}
        click.echo(json.dumps(told))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("", "here", f"{workers:,} workers"):
        table.add_column(name, justify="right" if name else "left")
    table.add_row("time", as_time(found.local_seconds), as_time(found.seconds))
    table.add_row("memory here", as_bytes(found.local_bytes), as_bytes(found.here_bytes))
    table.add_row("memory of a worker", "", as_bytes(found.worker_bytes))
    table.add_row("over the network", "", as_bytes(found.sent_bytes))
    out = console()
    out.print(table)
    verdict = "pays" if found.pays else "does not pay"
    out.print(f"The cluster [bold]{verdict}[/]: {found.speedup:.2g} times the speed.")
