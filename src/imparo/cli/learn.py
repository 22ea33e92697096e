"""``imparo learn``: keep a learner current from a file that grows, a pipe or a folder."""

import json
import math
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.status import Status

from imparo.cli.common import INTERRUPTED, console, guarded
from imparo.cli.options import Names

if TYPE_CHECKING:
    from imparo.data.readers import BadRows
    from imparo.tabular.following import Formats, Keeper, Source

# Rows and seconds between lines of JSON, unless told otherwise, and seconds between updates of
# the line on a terminal.
_ROWS, _SECONDS, _BLINK = 1000, 10.0, 0.1
_REASONS = {
    "end": "Everything there is was learned",
    "enough": "Enough rows were learned",
    "idle": "Nothing new came",
    "stopped": "Stopped",
}


class _NumberOr(click.ParamType):
    """A number, or one of some words."""

    name = "value"

    def __init__(self, *words: str) -> None:
        self._words = words

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        return "|".join([*self._words, "NUMBER"])

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in self._words or not isinstance(value, str):
            return value
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            self.fail(
                f"{value!r} is neither a number nor {' or '.join(self._words)}", param, ctx
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
@click.argument("data", type=str)
@click.option(
    "--target", "-t", metavar="COLUMN", help="Column to learn; needed the first time."
)
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
    "--sigma", type=_NumberOr("median", "learned", "per-feature"),
    help="Width of the kernel, found by the first rows unless it is a number; median.",
)  # fmt: skip
@click.option(
    "--penalty", type=_NumberOr("auto"), help="λ; auto learns with three side by side."
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
    "--alpha", "recoding", type=_NumberOr("auto"),
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
    "--sync", type=_NumberOr("always", "never"), default="always", show_default=True,
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
    folder: Path, data: str, target: str | None, follow: bool, columns: list[str],
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

    out = console(as_json=as_json or ack)
    given = {**choices, "columns": tuple(columns) or None, "drop": tuple(drop) or None}
    delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(delimiter or "", delimiter)
    bad = BadRows(bad_rows)
    with ExitStack() as stack:
        stop = stack.enter_context(_signals())
        keeper = stack.enter_context(Keeper(folder, target, sync=sync, **given))
        formats = Formats(text, delimiter=delimiter, header=header, encoding=encoding)
        source = _source(data, keeper, formats, follow, on_rotate, poll)
        stack.callback(source.close)
        show = _Show(out, keeper, as_json, ack, data == "-", every)
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


def _source(
    data: str, keeper: "Keeper", formats: "Formats", follow: bool, on_rotate: str, poll: float
) -> "Source":
    from imparo.tabular.following import Files, Pipe

    states = {} if keeper.model is None else keeper.positions.totals.states
    if data == "-":
        return Pipe(lines=states.get("-", {"lines": 0})["lines"])
    return Files(data, formats, states, follow=follow, on_rotate=on_rotate, poll=poll)


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


class _Show:
    """Prints how the learner gets on: a live line, lines of JSON, acknowledgements."""

    def __init__(
        self,
        out: Console,
        keeper: "Keeper",
        as_json: bool,
        ack: bool,
        is_pipe: bool,
        every: tuple[float, float] | None,
    ) -> None:
        self._out, self._keeper = out, keeper
        self._as_json, self._ack, self._is_pipe = as_json, ack, is_pipe
        told = as_json or every is not None
        self._every = every or ((_ROWS, _SECONDS) if told else (math.inf, math.inf))
        self._began = self._last = time.monotonic()
        self._at_start = self._rows = keeper.rows
        self._resumed = keeper.model is not None
        self._live: Status | None = None
        self._blinked = -math.inf
        self._file = ""

    def start(self, stack: ExitStack) -> None:
        """Tell where it goes on, and begin the live line."""
        if self._ack:
            self._acknowledge()
        if self._resumed and not self._as_json:
            self._out.print(f"Going on after {self._at_start:,} rows.", soft_wrap=True)
        if self._out.is_terminal and not self._as_json:
            self._live = stack.enter_context(self._out.status("waiting for rows …"))

    def learned(self, file: str) -> None:
        """Tell that some more rows are safe."""
        self._file = file
        if self._ack:
            self._acknowledge()
        now, rows = time.monotonic(), self._keeper.rows
        if not (self._resumed or self._as_json):
            self._resumed = True
            self._introduce()
        if rows - self._rows >= self._every[0] or now - self._last >= self._every[1]:
            self._rows, self._last = rows, now
            self._tell()
        if self._live is not None and now - self._blinked >= _BLINK:
            self._blinked = now
            self._live.update(escape(self._line()))

    def finish(self, reason: str, bad: "BadRows") -> None:
        """Tell why it ended, what came of it, and how to go on."""
        if self._as_json:
            click.echo(json.dumps({**self._numbers(), "ended": reason, "bad_rows": bad.count}))
            return
        new = self._keeper.rows - self._at_start
        if self._keeper.model is None:
            what = "no row was learned"
        else:
            what = f"{new:,} rows, {self._keeper.rows:,} in all{self._errors()}"
        self._out.print(f"{_REASONS[reason]}: {escape(what)}.", soft_wrap=True)
        if bad.count:
            self._out.print(
                f"Left out {bad.count:,} bad rows; the first: {escape(bad.examples[0])}.",
                soft_wrap=True, style="yellow",
            )  # fmt: skip
        if reason == "stopped":
            self._out.print("The same command goes on from here.")

    def _introduce(self) -> None:
        """Tell what the first rows decided."""
        model = self._keeper.model
        assert model is not None
        what = f"{model.n_columns:,} columns" if model.n_columns != 1 else "one column"
        self._out.print(
            f"{model.task.capitalize()} of '{escape(model.outputs[0])}' by {what}, decided by "
            f"the first {model.made['rows']:,} rows.",
            soft_wrap=True,
        )
        for note in model.made["notes"]:
            self._out.print(f"Note: {escape(note)}.", style="yellow", soft_wrap=True)

    def _tell(self) -> None:
        if self._as_json:
            click.echo(json.dumps(self._numbers()))
        elif self._live is None:
            self._out.print(escape(self._line()), soft_wrap=True)

    def _acknowledge(self) -> None:
        keeper = self._keeper
        count = keeper.rows
        if self._is_pipe:
            states = {} if keeper.model is None else keeper.positions.totals.states
            count = states.get("-", {"lines": 0})["lines"]
        click.echo(json.dumps({"ack": count, "rows": keeper.rows, "number": keeper.number}))

    def _numbers(self) -> dict[str, Any]:
        keeper = self._keeper
        error, recent = (
            None if math.isnan(value) else value for value in (keeper.error, keeper.recent)
        )
        return {"rows": keeper.rows, "error": error, "recent": recent, "number": keeper.number}

    def _line(self) -> str:
        seconds = max(1e-9, time.monotonic() - self._began)
        speed = (self._keeper.rows - self._at_start) / seconds
        where = "standard input" if self._is_pipe else Path(self._file).name
        return f"{self._keeper.rows:,} rows, {speed:,.0f} a second{self._errors()}, {where}"

    def _errors(self) -> str:
        keeper = self._keeper
        if math.isnan(keeper.error):
            return ""
        is_classes = keeper.task == "classification"

        def word(value: float) -> str:
            return f"{100 * value:.1f} %" if is_classes else f"{value:.4g}"

        name = "error" if is_classes else "RMSE"
        recent = "" if math.isnan(keeper.recent) else f" ({word(keeper.recent)} lately)"
        return f", {name} {word(keeper.error)}{recent}"
