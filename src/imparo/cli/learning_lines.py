"""How ``imparo learn`` tells how it gets on: a live line, lines of JSON, acknowledgements."""

import json
import math
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.status import Status

if TYPE_CHECKING:
    from imparo.data.readers import BadRows
    from imparo.tabular.following import Keeper

# Rows and seconds between lines of JSON, unless told otherwise, and seconds between updates of
# the line on a terminal.
_ROWS, _SECONDS, _BLINK = 1000, 10.0, 0.1
_REASONS = {
    "end": "Everything there is was learned",
    "enough": "Enough rows were learned",
    "idle": "Nothing new came",
    "stopped": "Stopped",
}


class Show:
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
        from imparo.preparation.columns import listed

        model = self._keeper.model
        assert model is not None
        what = f"{model.n_columns:,} columns" if model.n_columns != 1 else "one column"
        self._out.print(
            f"{model.task.capitalize()} of {escape(listed(model.outputs))} by {what}, decided "
            f"by the first {model.made['rows']:,} rows.",
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
