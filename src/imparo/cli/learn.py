"""``imparo learn``: keep a learner current from a file that grows, a pipe or a folder."""

import math
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imparo.cli.common import INTERRUPTED, console, guarded
from imparo.cli.completion import DATA
from imparo.cli.learning_lines import Show
from imparo.cli.options import Names

if TYPE_CHECKING:
    from imparo.data.readers import BadRows
    from imparo.tabular.following import Formats, Keeper, Source


class NumberOr(click.ParamType):
    """A number, or one of some words."""

    name = "value"

    def __init__(self, *words: str) -> None:
        self._words = words

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        """Return what the help shows."""
        return "|".join([*self._words, "NUMBER"])

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the number, or the word."""
        if value in self._words or not isinstance(value, str):
            return value
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            self.fail(
                f"{value!r} is neither a number of at least 0 nor {' or '.join(self._words)}",
                param,
                ctx,
            )
        return number


class _Every(click.ParamType):
    """Rows, such as 1000, or seconds, such as 10s."""

    name = "every"

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        return "ROWS|SECONDSs"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            number = float(value.removesuffix("s"))
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number > 0):
            self.fail(f"{value!r} is neither rows, as 1000, nor seconds, as 10s", param, ctx)
        return (math.inf, number) if value.endswith("s") else (number, math.inf)


@click.command("learn")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("data", type=DATA)
@click.option(
    "--target", "-t", type=Names(), default="", metavar="COLUMNS",
    help="What to learn, several if they are numbers; needed the first time, unless the file "
    "itself calls a column its target.",
)  # fmt: skip
@click.option("--follow", is_flag=True, help="Wait for more when all that is there is learned.")
@click.option(
    "--task", type=click.Choice(["auto", "regression", "classification"]),
    help="What kind of target it is; found out by default.",
)  # fmt: skip
@click.option(
    "--columns", type=Names(), default="", metavar="COLUMNS",
    help="What to learn from; all others if left out.",
)  # fmt: skip
@click.option("--drop", type=Names(), default="", metavar="COLUMNS", help="What to leave out.")
@click.option(
    "--features", type=click.IntRange(min=0), metavar="M",
    help="Random Fourier features, 500 by default; 0 learns a linear function.",
)  # fmt: skip
@click.option(
    "--sigma", type=NumberOr("median", "learned", "per-feature"),
    help="Width of the kernel, found by the first rows unless it is a number; median.",
)  # fmt: skip
@click.option(
    "--penalty", type=NumberOr("auto"), help="λ; auto learns with three side by side."
)
@click.option(
    "--forgetting", type=click.FloatRange(0, 1, min_open=True), metavar="γ",
    help="What is left of earlier rows' weight with each new one; 1: nothing is forgotten.",
)  # fmt: skip
@click.option(
    "--drift", type=click.Choice(["record", "forget"]),
    help="When the error rises: record it, or let earlier rows fade.",
)  # fmt: skip
@click.option(
    "--alpha", "recoding", type=NumberOr("auto"),
    help="How much rare classes are helped, from 0 to 1; auto.",
)  # fmt: skip
@click.option("--seed", type=int, help="Of the random features; 0.")
@click.option(
    "--warmup", type=click.IntRange(min=1), default=1000, show_default=True, metavar="ROWS",
    help="First rows, which decide on kinds of columns, scales and widths.",
)  # fmt: skip
@click.option(
    "--block", type=click.IntRange(min=1), default=256, show_default=True, metavar="ROWS",
    help="The most rows that are learned, and made safe, at once.",
)  # fmt: skip
@click.option(
    "--sync", type=NumberOr("always", "never"), default="always", show_default=True,
    help="When rows are on disk: before they count as learned, within seconds, or at will.",
)  # fmt: skip
@click.option(
    "--bad-rows", type=click.Choice(["stop", "skip"]), default="stop", show_default=True,
    help="End at a row that cannot be learned, or leave it out.",
)  # fmt: skip
@click.option(
    "--on-rotate", type=click.Choice(["stop", "continue"]), default="stop", show_default=True,
    help="When a file was cut short or replaced: end, or learn it from its beginning.",
)  # fmt: skip
@click.option("--delimiter", metavar="MARK", help="Between the cells of a text file.")
@click.option(
    "--header/--no-header", default=None,
    help="Whether the first line of a text file holds names; found out if left out.",
)  # fmt: skip
@click.option("--encoding", default="utf-8", show_default=True, help="Of text files.")
@click.option(
    "--text", type=Names(), default="", metavar="COLUMNS",
    help="Columns to read as text though they hold numbers, such as codes.",
)  # fmt: skip
@click.option(
    "--stop-after", type=click.IntRange(min=1), metavar="ROWS", help="End after so many rows."
)
@click.option(
    "--idle", type=click.FloatRange(min=0), metavar="SECONDS",
    help="End when nothing new came for so long.",
)  # fmt: skip
@click.option(
    "--poll", type=click.FloatRange(min=0, min_open=True), default=0.5, show_default=True,
    metavar="SECONDS", help="Time between looks for more.",
)  # fmt: skip
@click.option("--every", type=_Every(), help="How often to print a line.")
@click.option(
    "--ack", is_flag=True, help="Print a line of JSON for each block once it is safe."
)
@click.option("--json", "as_json", is_flag=True, help="Print progress as lines of JSON.")
@guarded
def learn(
    folder: Path, data: str, target: list[str], follow: bool, columns: list[str],
    drop: list[str], warmup: int, block: int, sync: str | float, bad_rows: str,
    on_rotate: str, delimiter: str | None, header: bool | None, encoding: str,
    text: list[str], stop_after: int | None, idle: float | None, poll: float,
    every: tuple[float, float] | None, ack: bool, as_json: bool, **choices: Any,
) -> None:  # fmt: skip
    """Keep the learner in FOLDER current: learn every row of DATA exactly once.

    DATA is a file, a folder of files, a pattern, or - for lines of JSON on standard input.
    Stop it at any moment, by whatever means; the same command goes on where it was. Each row is
    predicted before it is learned: that is the error shown. imparo predict and imparo evaluate
    take FOLDER as a model, also while it learns.

    \b
    Examples:
      imparo learn kept sales.csv --target price
      imparo learn kept sales.csv --follow
      imparo learn kept incoming/ --target price --follow --idle 60
      sensor | imparo learn kept - --target fault --ack
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.data.readers import BadRows
    from imparo.tabular.following import Feeding, Formats, Keeper, Pace
    from imparo.tabular.following.kept_model import TABLE

    out = console(as_json=as_json or ack)
    given = {**choices, "drop": tuple(drop) or None}
    bad = BadRows(bad_rows)
    with ExitStack() as stack:
        stop = stack.enter_context(_signals())
        begun = (folder / TABLE).exists()
        data, target, inputs = _named(data, target, columns, begun)
        given["columns"] = inputs
        keeper = stack.enter_context(Keeper(folder, target, sync=sync, **given))
        formats = Formats(text, delimiter=delimiter, header=header, encoding=encoding)
        source = _source(data, keeper, formats, follow, on_rotate, poll, bad)
        stack.callback(source.close)
        show = Show(out, keeper, as_json, ack, data == "-", every)
        show.start(stack)
        feeding = Feeding(
            keeper, source, formats,
            Pace(block=block, warmup=warmup, stop_after=stop_after, idle=idle, poll=poll),
            bad, show.learned, lambda: bool(stop),
        )  # fmt: skip
        reason = feeding.run()
        show.finish(reason, bad)
    if reason == "stopped" and not follow:
        raise click.exceptions.Exit(INTERRUPTED)


def _named(
    data: str, target: list[str], columns: list[str], begun: bool
) -> tuple[str, list[str], tuple[str, ...] | None]:
    """Return the file, targets and inputs that a name, or an archive of arrays, stands for.

    What the archive itself calls its target and inputs counts for a folder that has not begun.
    """
    from imparo.data import open_rows
    from imparo.data.named import DATASETS, locate

    if data in DATASETS and not Path(data).exists():
        found = locate(data)
        if found is None:
            raise FileNotFoundError(
                f"the data set {data} is no file on this machine; imparo datasets show {data} "
                "tells where it is"
            )
        data = str(found)
    if Path(data).suffix.lower() not in (".npz", ".h5", ".hdf5") or not Path(data).is_file():
        return data, target, tuple(columns) or None
    rows = open_rows(data)
    target, columns = (
        [part for name in names for part in rows.groups.get(name, [name])]
        for names in (target, columns)
    )
    if not begun and rows.targets:
        target, columns = target or rows.targets, columns or rows.groups.get("X", [])
    return data, target, tuple(columns) or None


def _source(
    data: str, keeper: "Keeper", formats: "Formats", follow: bool, on_rotate: str, poll: float,
    bad: "BadRows",
) -> "Source":  # fmt: skip
    from imparo.tabular.following import Files, Pipe

    states = {} if keeper.model is None else keeper.positions.totals.states
    if data == "-":
        return Pipe(lines=states.get("-", {"lines": 0})["lines"])
    return Files(data, formats, states, follow=follow, on_rotate=on_rotate, poll=poll,
                 bad=bad)  # fmt: skip


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Note SIGINT and SIGTERM, so that a block is finished; the second one ends at once."""
    seen: list[int] = []
    usual: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        signal.signal(number, usual[number])

    for number in (signal.SIGINT, signal.SIGTERM):
        usual[number] = signal.signal(number, note)
    try:
        yield seen
    finally:
        for known, handler in usual.items():
            signal.signal(known, handler)
