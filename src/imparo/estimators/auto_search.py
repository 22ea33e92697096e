"""The trials of a fit within a budget, from cheap to dear."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from imparo.data.sources import ArraySource, Source
from imparo.engine import Array, parse_memory
from imparo.errors import ImparoWarning
from imparo.estimators.base import ExactMachine
from imparo.estimators.inputs import used_rows
from imparo.estimators.nystrom_base import NystromMachine
from imparo.estimators.nytro_base import NytroMachine
from imparo.estimators.solve import Solved
from imparo.estimators.splits import Splits, make_splits
from imparo.kernels import Linear
from imparo.nested import REDUCTION
from imparo.paths import Path
from imparo.persistence import persistent
from imparo.scores import Score

# Below so many rows five folds judge, above it a fifth of the rows, but no more than enough.
_FEW_ROWS = 2500
_MOST_HELD = 50_000
# The first look at widths: so many rows and centers.
_FIRST_ROWS, _FIRST_CENTERS = 2000, 128
# An error that falls by less than this share, twice, has ceased to fall.
_WORTH = 2e-3
# Where it falls by more than this share, the next step is a larger one.
_MUCH = 0.05
# Times come out up to so much above what was expected, and this share is kept in hand.
_CAUTION, _IN_HAND = 1.3, 0.03
_PENALTIES = 41
# Up to so many rows all of them may become centers.
_EXACT_ROWS = 10_000
# Products that conjugate gradients take, of both walks together.
_STEPS = 100
SPENT = "the budget was spent in the middle of a trial"
_TOO_DEAR = "the budget does not allow for more centers"
_NAMES = ("kernel_", "sigma_", "penalty_", "iterations_", "n_centers_", "centers_")


class TimeUp(Exception):
    """The deadline has passed in the middle of a trial."""


def _width(sigma: float | tuple[float, ...]) -> str:
    if isinstance(sigma, tuple):
        return f"{min(sigma):.2g}…{max(sigma):.2g}"
    return f"{sigma:.4g}"


@persistent
@dataclass(frozen=True)
class Trial:
    """One fit that was tried on the way.

    Attributes
    ----------
    method : str
        "nystrom", "nytro" or "exact".
    sigma : float, tuple of float or None
    penalty : float or None
        None for NYTRO, whose level is the number of iterations.
    n_centers, n_rows : int
    error : float
        Validation error; infinite where the trial did not come to an end.
    seconds : float
    note : str
        Why it was tried, and what came of it.
    """

    method: str
    sigma: float | tuple[float, ...] | None
    penalty: float | None
    n_centers: int
    n_rows: int
    error: float
    seconds: float
    note: str

    def __str__(self) -> str:
        sigma = "–" if self.sigma is None else _width(self.sigma)
        penalty = "–" if self.penalty is None else f"{self.penalty:.1e}"
        return (
            f"{self.method:8} σ = {sigma:<7} λ = {penalty:<8} m = {self.n_centers:<6,} "
            f"n = {self.n_rows:<9,} error {self.error:<9.4g} {self.seconds:7.2f} s  {self.note}"
        )


@dataclass(frozen=True)
class Best:
    """The best model so far, complete: nothing that comes later can harm it."""

    error: float
    model: Solved
    path: Path | None
    method: str
    n_rows: int
    values: dict[str, Any]


class Search:
    """The trials of one fit, from cheap to dear."""

    def __init__(
        self,
        owner: Any,
        source: Source,
        Y: Array,
        weight: Array,
        y: Array,
        score: Score,
        stratify: bool,
    ) -> None:
        self._owner, self._source, self._score, self._stratify = owner, source, score, stratify
        self._Y, self._weight, self._y = Y, weight, y
        self._start = owner._started
        self._deadline = self._start + owner.budget * (1 - _IN_HAND)
        self._seed = int(check_random_state(owner.random_state).randint(2**31 - 1))
        self._kernel = owner._checked_kernel(source)
        self._memory = parse_memory(owner.memory)
        self._kept = used_rows(weight, Y.dtype)[0]
        self._splits = self._make_splits(stratify)
        self.best: Best | None = None
        self.record: list[Trial] = []
        self._rate = self._lowest = self._most_work = 0.0
        self._show = owner.progress if callable(owner.progress) else lambda *_: None

    def _make_splits(self, stratify: bool) -> Splits:
        """Return positions in all rows; every trial is judged on the same held-out ones."""
        n = len(self._kept)
        value = min(5, n) if n < _FEW_ROWS else min(_MOST_HELD, n // 5) / n
        rng = np.random.RandomState(self._seed)
        _, pairs = make_splits(value, self._kept, self._y, rng, stratify=stratify)
        return [(self._kept[a], self._kept[b]) for a, b in pairs]

    # Time.

    def draw(self) -> Any:
        """Return a bar of the budget, to be used as a context, that trials move on."""
        from rich.progress import Progress

        bar = Progress()
        task = bar.add_task("budget", total=self._owner.budget)

        def show(done: int, total: int, what: str) -> None:
            spent = time.monotonic() - self._start
            best = "" if self.best is None else f", best so far {self.best.error:.3g}"
            bar.update(task, completed=spent, description=f"{what}{best}")

        self._show = show
        return bar

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _tick(self, done: int, total: int, what: str) -> None:
        if self._left() < 0 and self.best is not None:
            raise TimeUp
        self._show(done, total, what)

    def _cost(self, n: int, m: int, penalties: int, folds: int = 1) -> float:
        """Return operations of a Nyström fit, to scale measured times by."""
        d = self._source.shape[1]
        # Many penalties take a reduction to tridiagonal form for each of a few sizes.
        solve = folds * min(penalties, 1.25 * REDUCTION) * m**3 / 3 + 4.0 * m**3
        judge = 0.0
        if self._Y.shape[1] > 1 or self._stratify:
            judge = 4.0 * (n / 5) * m * penalties * self._Y.shape[1]
        return n * m * (2.0 * d + 80) + 2.0 * n * m**2 + solve + judge + 1e7

    def _expected(self, n: int, m: int, penalties: int) -> float:
        folds = len(self._splits)
        return _CAUTION * self._rate * self._cost(n, m, penalties, folds)

    # Trials.

    def run(self) -> str:
        """Try models until nothing more is worth it or fits; return why it stopped."""
        sigma = self._first_widths()
        stopped = self._grow(sigma)
        self._sharpen()
        if stopped == _TOO_DEAR:
            self._instead()
        self._try_all_rows()
        return stopped

    def _first_widths(self) -> Any:
        """Return the best width on a few rows, after a first model that takes no time."""
        n = min(len(self._kept), _FIRST_ROWS)
        m = min(_FIRST_CENTERS, max(1, n // 4), self._possible_centers(), self._most_centers())
        given, searched = self._owner.sigma, self._searches_widths()
        middle = given
        if searched:
            middle = "median" if isinstance(given, str) else np.sort(given)[len(given) // 2]
        first = self._nystrom(middle, [max(1, m // 4)], n // 4, None, "first model")
        if searched:
            found = self._nystrom(given, [m], n, None, "first look at widths")
            first = first if found is None else found
        return None if first is None else first.sigma_

    def _grow(self, sigma: Any) -> str:
        """Take two or four times as many centers while that pays; return why it ended."""
        n, m = len(self._kept), _FIRST_CENTERS
        every = self._possible_centers()
        most = min(every, self._most_centers())
        machine: NystromMachine | None = None
        flat, before, factor, part = 0, np.inf, 2, _FIRST_ROWS
        while True:
            m = min(m, most)
            penalties = self._penalties()
            count = _PENALTIES if penalties is None else len(penalties)
            rows = n
            if self._expected(n, m, count) > self._left():
                smaller = self._largest_affordable(n, count, most)
                if machine is None:
                    # Not even a small model of all rows: as many rows as there is time for.
                    m, rows = self._fewer_rows(count, most)
                    if rows < 1.5 * part:
                        return "the budget does not allow for more rows"
                    part = rows
                elif smaller < 1.25 * machine.statistics_.map.n_given:
                    return _TOO_DEAR
                else:
                    m = smaller
            elif factor == 4 and machine is not None and m > 4 * _FIRST_CENTERS:
                # The last step that there is time for is as large as time allows. Speeds
                # measured on few centers are too low to tell.
                after = self._left() - self._expected(n, m, count)
                if self._expected(n, min(2 * m, most), count) > after:
                    m = max(m, self._largest_affordable(n, count, most))
            moved = self._look_at_widths(sigma, m, rows)
            if machine is not None and moved == sigma and rows == n:
                found = self._more_centers(machine, m, penalties)
            else:
                sigma = moved
                sizes = [m // 4, m // 2, m]
                found = self._nystrom(sigma, sizes, rows, penalties, "more centers")
            if found is None:
                late = self.record[-1].note.endswith("out of time")
                return SPENT if late else "the last trial failed; record_ says why"
            if rows < n:
                continue  # with what it has told about the time
            machine = found
            error = self.record[-1].error
            flat = flat + 1 if error > before * (1 - _WORTH) else 0
            factor = 4 if error < before * (1 - _MUCH) else 2
            before = min(before, error)
            if flat == 2:
                return "more centers no longer lower the error"
            if machine.statistics_.map.n_given < m:
                return "there are no more centers to choose"
            if m >= most:
                if most == every:
                    return "all rows of a fit are centers"
                return "memory does not hold more centers"
            m *= factor

    def _instead(self) -> None:
        """Try conjugate gradients on more centers, where statistics would take too long."""
        n, d = len(self._kept), self._source.shape[1]
        if self.best is None or self.best.n_rows < len(self._y):
            return
        most = min(self._possible_centers(), self._most_centers())
        m, sigma = min(most, 2 * self.best.values["n_centers_"]), self.best.values["sigma_"]
        products = n * m * (2.0 * d + 60 + 64 * self._Y.shape[1])
        if _CAUTION * self._rate * _STEPS * products > self._left():
            return
        nytro = NytroMachine(
            self._kernel, sigma=self._width(sigma), filter="cg", iterations="auto",
            n_centers=m, centers=self._owner.centers, intercept=self._owner.intercept,
            validation=self._splits, memory=self._memory, random_state=self._seed,
            progress=self._tick,
        )  # fmt: skip
        everything = np.arange(len(self._y))
        self._trial(nytro, "nytro", m, everything, "iterations instead of statistics")

    def _look_at_widths(self, sigma: Any, m: int, rows: int) -> Any:
        """Return the width that is best on a part of the rows, if there is time to look."""
        if not self._searches_widths() or sigma is None:
            return sigma
        n = min(rows, max(_FIRST_ROWS, 6 * m))
        few = min(m, n // 3)
        narrow = self._penalties()
        count = _PENALTIES if narrow is None else len(narrow)
        if n >= rows or 3 * self._expected(n, few, count) > 0.2 * self._left():
            return sigma
        widths = [w for w in (self._near(sigma, r) for r in (2**-0.5, 1.0, 2**0.5)) if w]
        found = self._nystrom(widths, [few], n, narrow, "look at widths", keep=False)
        return sigma if found is None else found.sigma_

    def _sharpen(self) -> None:
        """Try nearby widths at the best number of centers, on and on where that pays."""
        if self.best is None or not self._searches_widths():
            return
        for factor in (2.0, 2**0.5, 2**0.25):
            for ratio in (1 / factor, factor):
                while self._try_width(ratio):
                    pass

    def _try_width(self, ratio: float) -> bool:
        """Return whether so many times the best width is better, if there is time to tell."""
        best, penalties, n = self.best, self._penalties(), len(self._kept)
        assert best is not None
        width, m = self._near(best.values["sigma_"], ratio), best.values["n_centers_"]
        if width is None:
            return False
        count = _PENALTIES if penalties is None else len(penalties)
        tried = any(
            isinstance(t.sigma, float) and np.isclose(t.sigma, width, rtol=1e-3)
            and (t.n_rows, t.n_centers) == (best.n_rows, m)
            for t in self.record
        )  # fmt: skip
        whole = best.method == "nystrom" and best.n_rows == len(self._y)
        if tried or not whole or self._expected(n, m, count) > self._left():
            return False
        self._nystrom(width, [m], n, penalties, "sharper width")
        return self.best is not best

    def _try_all_rows(self) -> None:
        """Fit exactly, with every row a center, where that is affordable."""
        best, (n, d) = self.best, (len(self._kept), self._source.shape[1])
        linear = isinstance(self._kernel, Linear)  # which has weights and no centers
        if best is None or n > _EXACT_ROWS or best.method != "nystrom" or linear:
            return
        penalties = self._penalties()
        folds, count = len(self._splits), _PENALTIES if penalties is None else len(penalties)
        # An eigendecomposition does not tick, and runs at half the speed of a product.
        cost = folds * (20.0 * n**3 + 4.0 * n**2 * count) + n**3
        room = (4 * n**2 + 2 * n * d) * self._source.dtype.itemsize
        if room > self._memory or _CAUTION * self._rate * cost > self._left():
            return
        exact = ExactMachine(
            self._kernel, sigma=self._width(best.values["sigma_"]), penalty=penalties,
            intercept=self._owner.intercept, validation=self._splits, memory=self._memory,
            random_state=self._seed, progress=self._tick,
        )  # fmt: skip
        everything = np.arange(len(self._y))
        self._trial(exact, "exact", n, everything, "all rows as centers")

    # The pieces that trials are made of.

    def _searches_widths(self) -> bool:
        """Return whether there are widths to choose from: "auto", or a grid."""
        sigma = self._owner.sigma
        many = sigma == "auto" if isinstance(sigma, str) else np.size(sigma) > 1
        return bool(self._kernel.needs_sigma and many)

    def _near(self, sigma: float, ratio: float) -> float | None:
        """Return so many times a width, or its neighbour in the grid that was given."""
        if isinstance(self._owner.sigma, str) or ratio == 1:
            return ratio * sigma
        grid = np.unique(np.asarray(self._owner.sigma, float))
        place = int(np.argmin(np.abs(grid - sigma))) + (1 if ratio > 1 else -1)
        return float(grid[place]) if 0 <= place < len(grid) else None

    def _width(self, sigma: Any) -> Any:
        return sigma if self._kernel.needs_sigma else "median"

    def _penalties(self) -> Array | None:
        """Return penalties around the best one so far, or None for the whole range."""
        if self.best is None or self.best.values.get("penalty_") is None:
            return None
        # More centers want less of a penalty: further down than up.
        around = self.best.values["penalty_"] * 2.0 ** np.arange(4, -11, -1)
        return np.unique(np.maximum(around, self._lowest))[::-1]

    def _possible_centers(self) -> int:
        """Return how many rows may be centers: all with folds, else those that are fitted."""
        centers = self._owner.centers
        if not isinstance(centers, str) and hasattr(centers, "__len__"):
            return len(centers) if not hasattr(centers, "shape") else int(centers.shape[0])
        return len(self._kept) if len(self._splits) > 1 else len(self._splits[0][0])

    def _most_centers(self) -> int:
        """Return how many centers memory holds, for a look at several widths too."""
        return max(1, int(np.sqrt(self._memory / (8 * (2 * len(self._splits) + 12)))))

    def _largest_affordable(self, n: int, penalties: int, most: int) -> int:
        sizes = np.unique(np.geomspace(16, max(17, most), 200).astype(int))
        fits = [m for m in sizes if self._expected(n, int(m), penalties) < self._left()]
        return int(max(fits, default=0))

    def _fewer_rows(self, penalties: int, most: int) -> tuple[int, int]:
        """Return centers and rows to use all the time that is left."""
        row = self._source.shape[1] * self._source.dtype.itemsize
        n = min(len(self._kept), self._memory // 4 // row)
        while n > _FIRST_ROWS:
            n = max(_FIRST_ROWS, n * 3 // 4)
            m = min(most, int(np.sqrt(n)) * 2, n // 4)
            if self._expected(n, m, penalties) < self._left():
                return m, n
        return _FIRST_CENTERS, 0

    def _part(self, n: int) -> tuple[Array, Splits]:
        """Return about n rows, always the same first ones, and the splits among them."""
        if n >= len(self._kept) or len(self._splits) > 1:
            return np.arange(len(self._y)), self._splits
        rng = np.random.RandomState(self._seed + 1)
        ((train, held),) = self._splits
        n_held = min(len(held), max(n // 5, _FIRST_ROWS))
        train = rng.permutation(train)[: n - n // 5]
        held = rng.permutation(held)[:n_held]
        rows = np.sort(np.concatenate([train, held]))
        return rows, [(np.searchsorted(rows, np.sort(train)), np.searchsorted(rows, held))]

    def _nystrom(
        self, sigma: Any, sizes: list[int], n: int, penalties: Array | None, note: str,
        *, keep: bool = True,
    ) -> NystromMachine | None:  # fmt: skip
        rows, splits = self._part(n)
        machine = NystromMachine(
            self._kernel, sigma=self._width(sigma),
            penalty="auto" if penalties is None else penalties,
            n_centers=np.unique([size for size in sizes if size >= 1]),
            centers=self._owner.centers, intercept=self._owner.intercept, validation=splits,
            memory=self._memory, random_state=self._seed, progress=self._tick,
        )  # fmt: skip
        done = self._trial(machine, "nystrom", max(sizes), rows, note, keep=keep)
        return machine if done else None

    def _more_centers(
        self, machine: NystromMachine, m: int, penalties: Array | None
    ) -> NystromMachine | None:
        machine._wanted = m
        everything = np.arange(len(self._y))
        done = self._trial(
            machine, "nystrom", m, everything, "grown", how="_grow", penalties=penalties
        )
        return machine if done else None

    def _trial(
        self, machine: Any, method: str, m: int, rows: Array, note: str,
        *, how: str = "_fit", keep: bool = True, **settings: Any,
    ) -> bool:  # fmt: skip
        """Fit a machine to some rows, write it down, and keep it if it is the best."""
        start, source = time.monotonic(), self._source
        if len(rows) < len(self._y):
            source = ArraySource(source.take(rows), source.dtype)
        elif method == "exact":
            source = source.take(np.arange(len(self._y)))
        outputs = self._Y[rows], self._weight[rows], self._y[rows], self._score
        try:
            with warnings.catch_warnings():
                # That a penalty among many is below the resolution concerns nobody here.
                warnings.simplefilter("ignore", ImparoWarning)
                model, path = getattr(machine, how)(
                    source, *outputs, stratify=self._stratify, **settings
                )
        except TimeUp:
            return self._failed(method, m, rows, start, f"{note}: out of time")
        except (ValueError, MemoryError) as failure:
            if self.best is None:
                raise
            return self._failed(method, m, rows, start, f"{note}: {failure}")
        machine.path_ = path
        seconds = time.monotonic() - start
        error = float(path.errors[path.best_index])
        values = {name: getattr(machine, name, None) for name in _NAMES}
        if method == "exact":
            values["centers_"], values["n_centers_"] = machine.X_fit_, len(self._kept)
        # Errors of fits to fewer rows are judged on fewer, too: they do not compare.
        best = self.best
        better = best is None or (len(rows), -error) > (best.n_rows, -best.error)
        if keep and better:
            self.best = Best(error, model, path, method, len(rows), values)
            note += ": better"
        sigma, penalty, size = values["sigma_"], values["penalty_"], values["n_centers_"]
        assert size is not None
        self.record.append(Trial(method, sigma, penalty, size, len(rows), error, seconds, note))
        if path.penalties is not None and not self._lowest:
            self._lowest = float(path.penalties.min())
        if method == "nystrom":
            widths = 1 if path.sigmas is None else len(path.sigmas)
            penalties = 1 if path.penalties is None else len(path.penalties)
            work = widths * self._cost(len(rows), m, penalties, len(self._splits))
            # Trials of little work are mostly overhead, and tell little about the speed.
            rate = seconds / work
            self._rate = rate if work >= self._most_work else min(self._rate, rate)
            self._most_work = max(self._most_work, work)
        return True

    def _failed(self, method: str, m: int, rows: Array, start: float, note: str) -> bool:
        seconds = time.monotonic() - start
        self.record.append(Trial(method, None, None, m, len(rows), np.inf, seconds, note))
        return False
