"""From a source to a keeper: warm-up, block after block, bad rows, and when to end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imparo.data.readers import BadRows, RowError, SparseBlock
from imparo.engine import Array
from imparo.tabular.following.chunks import Chunk, stacked, taken
from imparo.tabular.following.files import Source
from imparo.tabular.following.formats import Formats, is_json
from imparo.tabular.following.keeper import Keeper
from imparo.tabular.following.table import SPARSE_TARGET, checked_targets
from imparo.tabular.following.usable import usable, without_target

# Rows that a warm-up waits for, unless nothing more will come, and seconds of silence that
# end it when they are there.
_LEAST, _SILENCE = 100, 1.0


@dataclass
class Pace:
    """How rows are fed.

    Attributes
    ----------
    block : int
        The most rows that are learned at once.
    warmup : int
        First rows, by which kinds, scales and features are decided.
    stop_after : int or None
        Rows to learn before ending.
    idle : float or None
        Seconds without a new row after which to end.
    poll : float
        Seconds between looks.
    """

    block: int = 256
    warmup: int = 1000
    stop_after: int | None = None
    idle: float | None = None
    poll: float = 0.5


@dataclass
class Feeding:
    """Feeds a keeper from a source until there is no more, or somebody says stop.

    Parameters
    ----------
    keeper : Keeper
    source : Source
    formats : Formats
        Of the source: told what the learner knows of columns.
    pace : Pace
    bad : BadRows
        What to do with rows that cannot be learned.
    learned : callable
        Called with the file after each block, when its rows are safe.
    stopping : callable
        Returns whether to end after this block.
    """

    keeper: Keeper
    source: Source
    formats: Formats
    pace: Pace = field(default_factory=Pace)
    bad: BadRows = field(default_factory=BadRows)
    learned: Callable[[str], Any] = lambda file: None
    stopping: Callable[[], bool] = lambda: False

    def run(self) -> str:
        """Feed; return why it ended: "end", "enough", "idle" or "stopped".

        Raises
        ------
        RowError
            At the first bad row, unless they are skipped; the rows before it are learned.
        """
        self._last, self._at_start = time.monotonic(), self.keeper.rows
        waiting: list[Chunk] = []
        if self.keeper.model is None:
            waiting, reason = self._first_rows()
            if reason == "stopped" or not waiting:
                return reason  # nothing was learned, and nothing is lost
            self._begin(waiting)
        self._tell_formats()
        for chunk in waiting:
            if self.stopping():
                return "stopped"
            self._learn(chunk)
            if self._is_enough():
                return "enough"
        while True:
            chunk, reason = self._next(self._limit())
            if chunk is None:
                return reason
            self._learn(chunk)
            if self._is_enough():
                return "enough"

    def _next(self, limit: int, ready: Callable[[], bool] = lambda: False) -> Any:
        """Wait for rows; return them, or None and why there are none."""
        while True:
            if self.stopping():
                return None, "stopped"
            chunk = self.source.read(limit)
            now = time.monotonic()
            if chunk is not None:
                self._last = now
                return chunk, ""
            if self.source.ended:
                return None, "end"
            if self.pace.idle is not None and now - self._last >= self.pace.idle:
                return None, "idle"
            if ready():
                return None, "ready"
            self.source.wait(self.pace.poll)

    def _limit(self) -> int:
        if self.pace.stop_after is None:
            return self.pace.block
        return min(self.pace.block, self._at_start + self.pace.stop_after - self.keeper.rows)

    def _is_enough(self) -> bool:
        return self.pace.stop_after is not None and self._limit() <= 0

    # The beginning.

    def _first_rows(self) -> tuple[list[Chunk], str]:
        """Gather the rows that decide; return them, and why there are no more."""
        chunks: list[Chunk] = []
        count = 0
        wanted = self.pace.warmup
        if self.pace.stop_after is not None:
            wanted = min(wanted, self.pace.stop_after)

        def ready() -> bool:
            silent = time.monotonic() - self._last >= _SILENCE
            return silent and count >= min(wanted, _LEAST)

        while count < wanted:
            chunk, reason = self._next(min(self.pace.block, wanted - count), ready)
            if chunk is None:
                return chunks, reason
            chunks.append(chunk)
            count += len(chunk)
        return chunks, ""

    def _begin(self, chunks: list[Chunk]) -> None:
        """Decide by the first rows, up to the first bad one unless those are skipped."""
        self.source.forget_formats()
        parts, fault = [], ""
        for chunk in chunks:
            parsed = chunk.parsed()
            rows, places = parsed.rows, np.array(parsed.places, np.intp)
            faults = dict(parsed.faults)
            if rows is not None:
                rows, targets = self._with_targets(rows, is_json(chunk.file))
                gone = without_target(rows, targets)
                faults |= _placed(gone, parsed.places, chunk)
                good = np.array([place not in faults for place in parsed.places], bool)
                if faults and self.bad.policy == "stop":
                    good &= places < min(faults)
                if good.any():
                    parts.append(taken(rows, np.flatnonzero(good)))
            if faults:
                fault = fault or faults[min(faults)]
                if self.bad.policy == "stop":
                    break
        if not parts:
            raise RowError(fault or "there are no rows to learn from; give some")
        self.keeper.begin(stacked(parts))

    def _with_targets(self, rows: Any, is_json: bool) -> tuple[Any, list[str]]:
        """Return rows with the columns to learn, and the names of these."""
        if isinstance(rows, SparseBlock):
            return rows, [SPARSE_TARGET]
        for name in self.keeper.target if is_json else ():
            if name not in rows.columns:  # JSON leaves out what is missing
                rows = rows.with_column(name, np.full(len(rows), np.nan))
        return rows, checked_targets(self.keeper.target, rows.columns)

    def _tell_formats(self) -> None:
        """Let files be read as the learner knows their columns."""
        model = self.keeper.model
        assert model is not None
        text = [name for name in model.columns if model.kinds[name] == "text"]
        if model.made["text_target"] and not model.is_sparse:
            text += model.outputs
        self.formats.text = tuple(text)
        if model.is_sparse:
            self.formats.n_columns, self.formats.first_index = (
                model.n_columns,
                model.first_index,
            )
        self.source.forget_formats()

    # Blocks.

    def _learn(self, chunk: Chunk) -> None:
        """Learn the good rows of a chunk; raise at the first bad one if told to."""
        model = self.keeper.model
        assert model is not None
        parsed = chunk.parsed()
        faults = dict(parsed.faults)
        X: Any = None
        y: Array = np.empty(0)
        places: Array = np.empty(0, np.intp)
        if parsed.rows is not None:
            try:
                X, y, kept, wrong = usable(model, parsed.rows, absent=is_json(chunk.file))
            except ValueError as error:
                raise ValueError(f"{chunk.file}: {error}") from error
            places = np.array(parsed.places, np.intp)[kept]
            faults |= _placed(wrong, parsed.places, chunk)
        until = None
        if faults and self.bad.policy == "stop":
            until = min(faults)
            before = places < until
            X, y = (X[before] if before.any() else None), y[before]
        self.keeper.keep(X, y, chunk.states(until))
        if until is not None:
            raise RowError(faults[until])
        for place in sorted(faults):
            self.bad.count += 1
            if len(self.bad.examples) < 10:
                self.bad.examples.append(faults[place])
        self.learned(chunk.file)


def _placed(faults: dict[int, str], places: list[int], chunk: Chunk) -> dict[int, str]:
    """Return what is wrong by place, with file and place in the sentence."""
    return {
        places[i]: f"{chunk.file}, {chunk.unit} {places[i]:,}: {what}, or skip bad rows"
        for i, what in faults.items()
    }
