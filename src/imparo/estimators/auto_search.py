"""The trials of a fit within a budget: each next one is that with the most to gain a second."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from imparo.estimators.auto_average import Average, averaged
from imparo.estimators.auto_runs import CAUTION, FIRST_CENTERS, FIRST_ROWS, PENALTIES
from imparo.estimators.auto_trials import Best, Setting, Trial
from imparo.estimators.auto_widths import WidthRuns, bare, has_column_widths
from imparo.estimators.base import ExactMachine
from imparo.estimators.nystrom_base import NystromMachine
from imparo.estimators.nytro_base import NytroMachine
from imparo.kernels import Linear
from imparo.kernels.base import width_of

# An error that falls by less than this share, twice, has ceased to fall.
_WORTH = 2e-3
# Where it falls by more than this share, the next step is a larger one.
_MUCH = 0.05
# Up to so many rows all of them may become centers.
_EXACT_ROWS = 10_000
# Products that conjugate gradients take, of both walks together.
_STEPS = 100
# Shares that errors are expected to fall by before anything is known: with more centers,
# widths from more rows, another kernel or other rows, and widths all larger or smaller.
_GAINS = {"grow": 0.2, "refine": 0.1, "restart": 0.03, "sharpen": 0.005}
# Another kernel is looked at again if its error was at most so many times the best.
_NEAR = 1.15
# Widths are learned from at most so many rows and centers, in so many steps.
_MOST_LEARNED, _MOST_LEARN_CENTERS, _LEARN_STEPS = 16_000, 800, 60
# The share of the time that is left which a last, large step may be expected to take.
_LAST = 0.75
_RESTARTS = 3
# Models that an average is chosen from.
_POOL = 6
SPENT = "the budget was spent in the middle of a trial"
_TOO_DEAR = "the budget does not allow for more centers"
_FLAT = "more centers no longer lower the error"


@dataclass(frozen=True)
class Action:
    """Something to try next."""

    kind: str
    gain: float
    seconds: float
    run: Callable[[], None]


class Search(WidthRuns):
    """The trials of one fit: a first look, a choice of settings, and then what pays most."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.average: Average | None = None
        self._pool: list[Best] = []
        self._gains = dict(_GAINS)
        self._machine: NystromMachine | None = None
        self._error, self._next, self._factor = np.inf, FIRST_CENTERS, 2
        self._flat, self._few_rows, self._end = 0, FIRST_ROWS, ""
        self._rivals: list[Setting] = []
        self._learned_rows, self._draws = FIRST_ROWS, 0
        self._ratios = [2**-0.5, 2**0.5, 2**-0.25, 2**0.25]

    def run(self) -> str:
        """Try models until nothing more is worth it or fits; return why it stopped."""
        first = self._first_look()
        if first is None:
            return SPENT
        if self._learns():
            found = self._screen(first)
            best = self._cross_fitted(found[0])
            first = best.setting
            # Widths of columns undo scalings of columns: like is compared with like.
            columns = has_column_widths(first)
            near = [s.setting for s in found if s.error < _NEAR * found[0].error]
            near = [setting for setting in near if has_column_widths(setting) == columns]
            self._rivals = _others(near, first)
        self._setting = first
        while self._end != SPENT:
            possible = [a for a in self._actions() if a.seconds < self._left()]
            if not possible:
                break
            max(possible, key=lambda a: a.gain / max(a.seconds, 1e-3)).run()
        if self._end == _TOO_DEAR:
            self._instead()
        self._try_all_rows()
        self._try_average()
        return self._end or _TOO_DEAR

    def told_record(self) -> list[Trial]:
        """Return the trials with errors in the units of the outputs."""
        return [replace(t, error=self._told(t.error)) for t in self.record]

    def _actions(self) -> list[Action]:
        found = [self._growth(), self._refinement(), self._restart(), self._sharpening()]
        return [action for action in found if action is not None]

    # More centers.

    def _growth(self) -> Action | None:
        """Return the next number of centers to try; where there is none, say why."""
        if self._end:
            return None
        n, most = len(self._kept), min(self._possible_centers(), self._most_centers())
        m, rows, count = min(self._next, most), n, self._n_penalties()
        kernel = self._setting.kernel
        if self._expected(n, m, count, kernel) > self._left():
            smaller = self._largest_affordable(n, count, most)
            if self._machine is None:
                # Not even a small model of all rows: as many rows as there is time for.
                m, rows = self._fewer_rows(count, most)
                if rows < 1.5 * self._few_rows:
                    self._end = "the budget does not allow for more rows"
                    return None
            elif smaller < 1.25 * self._machine.statistics_.map.n_given:
                self._end = _TOO_DEAR
                return None
            else:
                m = smaller
        elif self._factor == 4 and self._machine is not None and m > 4 * FIRST_CENTERS:
            # The last step that there is time for is as large as time allows. Speeds
            # measured on few centers are too low to tell.
            after = self._left() - self._expected(n, m, count, kernel)
            if self._expected(n, min(2 * m, most), count, kernel) > after:
                m = max(m, self._largest_affordable(n, count, most))
        seconds = min(self._expected(rows, m, count, kernel), self._left() * 0.999)
        return Action("grow", self._gains["grow"], seconds, partial(self._grow, m, rows))

    def _grow(self, m: int, rows: int) -> None:
        penalties, machine = self._penalties(), self._machine
        moved = self._look_at_widths(self._setting, m, rows)
        if machine is not None and moved is self._setting and rows == len(self._kept):
            found = self._more_centers(machine, self._setting, m, penalties)
        else:
            sizes = [m // 4, m // 2, m]
            self._setting = moved
            found = self._nystrom(moved, sizes, rows, penalties, "more centers")
        if found is None:
            late = self.record[-1].note.endswith("out of time")
            self._end = SPENT if late else "the last trial failed; record_ says why"
            return
        if rows < len(self._kept):
            self._few_rows = rows  # go on with what it has told about the time
            return
        self._machine, error = found, self.record[-1].error
        gain = self._gained(error)
        self._gains["grow"] = max(gain, _WORTH / 2)
        self._flat = self._flat + 1 if gain < _WORTH else 0
        self._factor = 4 if gain > _MUCH else 2
        self._next = self._factor * m
        every = self._possible_centers()
        if self._flat == 2:
            self._end = _FLAT
        elif found.statistics_.map.n_given < m:
            self._end = "there are no more centers to choose"
        elif m >= every:
            self._end = "all rows of a fit are centers"
        elif m >= self._most_centers():
            self._end = "memory does not hold more centers"

    def _gained(self, error: float) -> float:
        """Return the share that the error of the line in hand has fallen by; note it."""
        before = self._error
        gain = 1.0 if not np.isfinite(before) else 1 - error / before if before > 0 else 0.0
        self._error = min(self._error, error)
        return gain

    def _look_at_widths(self, setting: Setting, m: int, rows: int) -> Setting:
        """Return the width that is best on a part of the rows, if there is time to look."""
        if not self._searches_widths() or self._learns():
            return setting
        n = min(rows, max(FIRST_ROWS, 6 * m))
        few, count = min(m, n // 3), self._n_penalties()
        if n >= rows or 3 * self._expected(n, few, count) > 0.2 * self._left():
            return setting
        moved = [self._moved(setting, ratio) for ratio in (2**-0.5, 1.0, 2**0.5)]
        widths = [width_of(s.kernel) for s in moved if s is not None]
        plain = replace(setting, kernel=bare(setting.kernel))
        found = self._nystrom(
            plain, [few], n, self._penalties(), "look at widths", keep=False, sigma=widths
        )
        if found is None or found.kernel_ == setting.kernel:
            return setting
        return replace(setting, kernel=found.kernel_)

    # Other widths, other kernels, other rows to learn from.

    def _refinement(self) -> Action | None:
        """Return to learn widths from twice as many rows."""
        most = min(_MOST_LEARNED, len(self._splits[0][0]))
        learned = self._learns() and self._setting.learned is not None
        if not learned or self._machine is None or self._learned_rows >= most:
            return None
        rows = min(2 * self._learned_rows, most)
        seconds, gain = self._seconds_to_learn(rows), self._gains["refine"]
        if self._learned_rows == FIRST_ROWS:
            # Where more centers help much, the first widths were too wide for want of centers.
            gain = max(gain, self._gains["grow"])
        return Action("refine", gain, seconds, partial(self._refine, rows))

    def _refine(self, rows: int) -> None:
        self._learned_rows = rows
        gain = self._relearned(self._setting, rows, f"widths learned from {rows:,} rows")
        self._gains["refine"] = gain / 2 if gain > _WORTH else 0.0

    def _restart(self) -> Action | None:
        """Return to take another kernel, or to learn the widths from other rows."""
        if not self._learns() or self._machine is None:
            return None
        seconds = self._seconds_to_learn(self._learned_rows)
        if self._rivals:
            run = partial(self._take_rival, self._rivals[0])
            return Action("restart", self._gains["restart"], seconds, run)
        # One width is much the same whatever the rows.
        if self._draws >= _RESTARTS or not has_column_widths(self._setting):
            return None
        if self._learned_rows >= len(self._splits[0][0]):
            return None  # there are no other rows
        return Action("restart", self._gains["restart"] / 2, seconds, self._draw_again)

    def _take_rival(self, setting: Setting) -> None:
        self._rivals.pop(0)
        self._relearned(setting, self._learned_rows, "another kernel")

    def _draw_again(self) -> None:
        self._draws += 1
        self._relearned(self._setting, self._learned_rows, "widths learned from other rows")

    def _seconds_to_learn(self, rows: int) -> float:
        centers = _centers_to_learn_with(rows)
        learning = self._expected_learning(rows, centers, _LEARN_STEPS, self._setting.kernel)
        size = self._size()
        return learning + self._expected(
            len(self._kept), size, self._n_penalties(), self._setting.kernel
        )

    def _relearned(self, setting: Setting, rows: int, note: str) -> float:
        """Learn widths anew and fit them; return the share that the error falls by."""
        start = time.monotonic()
        centers = _centers_to_learn_with(rows)
        fit = self._expected(len(self._kept), self._size(), self._n_penalties())
        learned = self._learned(
            bare(setting.kernel), setting.inputs, setting.target, rows, centers, _LEARN_STEPS,
            self._left() - fit, draw=self._draws, per_column=has_column_widths(self._setting),
        )  # fmt: skip
        if learned is None:
            return 0.0
        moved = replace(setting, kernel=learned.kernel, learned=learned)
        return self._switch(moved, note, time.monotonic() - start)

    def _sharpening(self) -> Action | None:
        """Return to make all widths larger or smaller."""
        searched = self._searches_widths() or self._learns()
        if not searched or self._machine is None or not self._ratios:
            return None
        moved = self._moved(self._setting, self._ratios[0])
        if moved is None:
            self._ratios.pop(0)
            return self._sharpening()
        kernel, count = self._setting.kernel, self._n_penalties()
        seconds = self._expected(len(self._kept), self._size(), count, kernel)
        return Action("sharpen", self._gains["sharpen"], seconds, partial(self._sharpen, moved))

    def _sharpen(self, moved: Setting) -> None:
        if self._switch(moved, "sharper width") < _WORTH:
            self._ratios.pop(0)

    def _switch(self, setting: Setting, note: str, before: float = 0.0) -> float:
        """Fit another setting with as many centers, and go on with it if it is better."""
        m, n = self._size(), len(self._kept)
        error = self._error
        found = self._nystrom(
            setting, [max(1, m // 2), m], n, self._penalties(), note, before=before
        )
        if found is None:
            return 0.0
        gain = self._gained(self.record[-1].error)
        if gain > 0 and error > self.record[-1].error:
            self._setting, self._machine = setting, found
            self._next = max(self._next, self._factor * m)
            if self._end == _FLAT:  # what was enough for other widths may not be for these
                self._end, self._flat = "", 1
        return gain

    def _size(self) -> int:
        """Return how many centers other settings are tried with: as many as are of use."""
        assert self._machine is not None
        return int(self._machine.n_centers_)

    def _moved(self, setting: Setting, ratio: float) -> Setting | None:
        """Return a setting with so many times its width, or its neighbour in the grid."""
        given = self._owner.sigma
        if isinstance(given, str) or ratio == 1:
            return setting.wider(ratio)
        grid = np.unique(np.asarray(given, float))
        sigma = width_of(setting.kernel)
        assert isinstance(sigma, float)  # grids are of single widths
        place = int(np.argmin(np.abs(grid - sigma))) + (1 if ratio > 1 else -1)
        if not 0 <= place < len(grid):
            return None
        return setting.wider(float(grid[place]) / sigma)

    # What is tried at the end.

    def _instead(self) -> None:
        """Try conjugate gradients on more centers, where statistics would take too long."""
        n, d = len(self._kept), self._source(self._setting).shape[1]
        if self.best is None or self.best.n_rows < len(self._y):
            return
        most = min(self._possible_centers(), self._most_centers())
        m = min(most, 2 * self.best.values["n_centers_"])
        products = n * m * (2.0 * d + 60 + 64 * self._Y.shape[1])
        if CAUTION * self._rate * _STEPS * products > self._left():
            return
        setting = self.best.setting
        if setting.target != "none":
            return
        nytro = NytroMachine(
            setting.kernel, filter="cg", iterations="auto", n_centers=m,
            centers=self._owner.centers, intercept=self._owner.intercept,
            validation=self._splits, memory=self._memory, random_state=self._seed,
            progress=self._tick,
        )  # fmt: skip
        everything, note = np.arange(len(self._y)), "iterations instead of statistics"
        self._trial(nytro, "nytro", m, everything, note, setting=setting)

    def _try_all_rows(self) -> None:
        """Fit exactly, with every row a center, where that is affordable."""
        best, n = self.best, len(self._kept)
        if best is None or n > _EXACT_ROWS or best.method != "nystrom":
            return
        d = self._source(best.setting).shape[1]
        linear = isinstance(best.setting.kernel, Linear)  # which has weights and no centers
        if linear or best.setting.target != "none":
            return
        penalties, folds, count = self._penalties(), len(self._splits), self._n_penalties()
        # An eigendecomposition does not tick, and runs at half the speed of a product.
        cost = folds * (20.0 * n**3 + 4.0 * n**2 * count) + n**3
        room = (4 * n**2 + 2 * n * d) * self._Y.dtype.itemsize
        if room > self._memory or CAUTION * self._rate * cost > self._left():
            return
        exact = ExactMachine(
            best.setting.kernel, penalty=penalties, intercept=self._owner.intercept,
            validation=self._splits, memory=self._memory, random_state=self._seed,
            progress=self._tick,
        )  # fmt: skip
        everything, note = np.arange(len(self._y)), "all rows as centers"
        self._trial(exact, "exact", n, everything, note, setting=best.setting)

    def _remember(self, found: Best) -> None:
        """Keep the best models of different settings, to be averaged."""
        if found.held is None:
            return
        same = _key(found)
        old = [b for b in self._pool if _key(b) == same]
        if old and old[0].error <= found.error:
            return
        pool = [b for b in self._pool if _key(b) != same] + [found]
        self._pool = sorted(pool, key=lambda b: b.error)[:_POOL]

    def _try_average(self) -> None:
        """Average several models, if the validation error says so."""
        start, best = time.monotonic(), self.best
        if best is None or best.n_rows < len(self._y) or len(self._pool) < 2:
            return
        found = averaged(self._pool, self._Y, self._weight, self._validation_error)
        if found is None or found.error > best.error * (1 - _WORTH):
            return
        self.average = found
        centers = sum(b.values["n_centers_"] for b, _ in found.members)
        note = f"average of {len(found.members)} models: better"
        spent = time.monotonic() - start
        held = sum(len(part) for _, part in self._splits)
        self.record.append(
            Trial(
                "average", None, None, centers, best.n_rows, found.error, spent, note,
                n_held=held,
            )
        )  # fmt: skip

    # Sizes.

    def _n_penalties(self) -> int:
        penalties = self._penalties()
        return PENALTIES if penalties is None else len(penalties)

    def _largest_affordable(self, n: int, penalties: int, most: int) -> int:
        sizes = np.unique(np.geomspace(16, max(17, most), 200).astype(int))
        kernel = self._setting.kernel
        left = _LAST * self._left()  # what is not finished is lost
        fits = [m for m in sizes if self._expected(n, int(m), penalties, kernel) < left]
        return int(max(fits, default=0))

    def _fewer_rows(self, penalties: int, most: int) -> tuple[int, int]:
        """Return centers and rows to use all the time that is left."""
        source = self._source(self._setting)
        row = source.shape[1] * source.dtype.itemsize
        n = min(len(self._kept), self._memory // 4 // row)
        while n > FIRST_ROWS:
            n = max(FIRST_ROWS, n * 3 // 4)
            m = min(most, int(np.sqrt(n)) * 2, n // 4)
            if self._expected(n, m, penalties) < self._left():
                return m, n
        return FIRST_CENTERS, 0


def _centers_to_learn_with(rows: int) -> int:
    return min(_MOST_LEARN_CENTERS, max(200, rows // 10))


def _others(settings: list[Setting], chosen: Setting) -> list[Setting]:
    """Return settings that differ from one and from each other in more than their widths."""
    seen = {(chosen.name, chosen.inputs, chosen.target)}
    found = []
    for setting in settings:
        key = setting.name, setting.inputs, setting.target
        found += [] if key in seen else [setting]
        seen.add(key)
    return found


def _key(found: Best) -> tuple[Any, ...]:
    setting = found.setting
    return setting.kernel, setting.inputs, setting.target
