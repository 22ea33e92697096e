"""Single trials within a budget: what each costs, and what came of it."""

import time
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from imparo.data.sources import ArraySource, Source
from imparo.engine import Array, host_engine, parse_memory
from imparo.errors import ImparoWarning
from imparo.estimators.auto_inputs import Table
from imparo.estimators.auto_order import is_series
from imparo.estimators.auto_trials import Best, Setting, Trial
from imparo.estimators.inputs import used_rows
from imparo.estimators.map_search import held_out_predictions
from imparo.estimators.nystrom_base import NystromMachine
from imparo.estimators.splits import Splits, check_validation, make_splits
from imparo.filters import Tikhonov
from imparo.kernels import Kernel, Laplacian
from imparo.preparation import TargetTransform
from imparo.scores import RootMeanSquare, Score

# Below so many rows five folds judge, above it a fifth of the rows, but no more than enough;
# rates of errors are known less well than squared errors.
_FEW_ROWS, _FEW_CLASSIFIED = 10_000, 50_000
_MOST_HELD = 50_000
# The first look: so many rows and centers.
FIRST_ROWS, FIRST_CENTERS = 2000, 128
# Times come out up to so much above what was expected, and this share is kept in hand.
CAUTION, _IN_HAND = 1.3, 0.03
PENALTIES = 41
# Models that are worse than the best by more than this factor are not averaged.
_CLOSE = 1.1
_NAMES = ("kernel_", "sigma_", "penalty_", "iterations_", "n_centers_", "centers_")


class TimeUp(Exception):
    """The deadline has passed in the middle of a trial."""


class Runs:
    """Rows, splits and a clock, and the trials that were made with them."""

    def __init__(
        self,
        owner: Any,
        table: Table,
        Y: Array,
        weight: Array,
        y: Array,
        score: Score,
        stratify: bool,
        units: tuple[float, Any],
    ) -> None:
        self._owner, self._table, self._score, self._stratify = owner, table, score, stratify
        self._Y, self._weight, self._y, self._units = Y, weight, y, units
        self._start = owner._started
        self._deadline = self._start + owner.budget * (1 - _IN_HAND)
        self._seed = int(check_random_state(owner.random_state).randint(2**31 - 1))
        self._memory = parse_memory(owner.memory)
        self._kept = used_rows(weight, Y.dtype)[0]
        self._splits = self._make_splits(stratify)
        self.best: Best | None = None
        self.record: list[Trial] = []
        self._rate = self._lowest = self._most_work = 0.0
        self._targets: dict[str, TargetTransform] = {}
        self._show = owner.progress if callable(owner.progress) else lambda *_: None

    def _make_splits(self, stratify: bool) -> Splits:
        """Return positions in all rows; every trial is judged on the same held-out ones."""
        n, value = len(self._kept), self._owner.validation
        if n < 2:
            raise ValueError(
                "a model cannot be chosen on 1 sample (n_samples=1); give more rows, or more "
                "of them a weight above 0"
            )
        if isinstance(value, str) and value == "auto":
            if self._in_order():
                value = "last"
            else:
                few = _FEW_ROWS if self._is_regression else _FEW_CLASSIFIED
                value = min(5, n) if n < few else min(_MOST_HELD, n // 5) / n
        self.is_series = isinstance(value, str) and value == "last"
        if self.is_series:
            n_held = min(_MOST_HELD, max(1, n // 5))
            self.validation = f"the last {n_held:,} rows"
            if value != self._owner.validation:
                self.validation += ", as neighbouring rows are alike"
            return [(self._kept[: n - n_held], self._kept[n - n_held :])]
        rng = np.random.RandomState(self._seed)
        value = check_validation(value, Tikhonov())
        self.validation, pairs = make_splits(value, self._kept, self._y, rng, stratify=stratify)
        return [(self._kept[a], self._kept[b]) for a, b in pairs]

    def _in_order(self) -> bool:
        """Return whether the last rows should judge: those of a series without new classes."""
        source = self._table.source(self._table.kinds[0])
        if not is_series(source, self._kept, self._y):
            return False
        y, n = self._y[self._kept], len(self._kept)
        if self._is_regression or y.ndim > 1:
            return True
        return set(np.unique(y[n - n // 5 :])) <= set(np.unique(y[: n - n // 5]))

    def _source(self, setting: Setting) -> Source:
        return self._table.source(setting.inputs)

    def _outputs(self, target: str) -> Array:
        """Return the outputs that are fitted, transformed as a setting says."""
        if target == "none":
            return self._Y
        if target not in self._targets:
            found = TargetTransform.fit(target, self._y[self._kept], self._weight[self._kept])
            self._targets[target] = found
        Z = self._targets[target](self._y).reshape(self._Y.shape)
        return np.ascontiguousarray(Z, self._Y.dtype)

    # Time.

    def draw(self) -> Any:
        """Return a bar of the budget, to be used as a context, that trials move on."""
        from rich.progress import Progress

        bar = Progress()
        task = bar.add_task("budget", total=self._owner.budget)

        def show(done: int, total: int, what: str) -> None:
            spent = time.monotonic() - self._start
            best = (
                "" if self.best is None else f", best so far {self._told(self.best.error):.3g}"
            )
            bar.update(task, completed=spent, description=f"{what}{best}")

        self._show = show
        return bar

    def _told(self, error: float) -> float:
        """Return an error in the units of the outputs."""
        return self._units[0] * error

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _tick(self, done: int, total: int, what: str) -> None:
        if self._left() < 0 and self.best is not None:
            raise TimeUp
        self._show(done, total, what)

    def _cost(
        self, n: int, m: int, penalties: int, folds: int = 1, kernel: Kernel | None = None
    ) -> float:
        """Return operations of a Nyström fit, to scale measured times by."""
        # Many penalties take a reduction to tridiagonal form for each of a few sizes.
        solve = folds * min(penalties, 1.25 * host_engine().reduction) * m**3 / 3 + 4.0 * m**3
        judge = 0.0
        if self._Y.shape[1] > 1 or self._stratify:
            judged = n if folds > 1 else n / 5
            judge = 4.0 * judged * m * penalties * self._Y.shape[1]
        return n * m * self._entry(kernel) + 2.0 * n * m**2 + solve + judge + 1e7

    def _entry(self, kernel: Kernel | None) -> float:
        """Return operations of one entry of a kernel matrix."""
        d = self._table.source(self._table.kinds[0]).shape[1]
        # Absolute differences are no product of matrices.
        return (60.0 if isinstance(kernel, Laplacian) else 2.0) * d + 80

    def _expected(self, n: int, m: int, penalties: int, kernel: Kernel | None = None) -> float:
        """Return the seconds that a trial on n rows and m centers takes, or less."""
        folds = len(self._splits)
        return CAUTION * self._rate * self._cost(n, m, penalties, folds, kernel)

    # Sizes.

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

    def _part(self, n: int, fold: int | None = None) -> tuple[Array, Splits]:
        """Return about n rows, always the same first ones, and the splits among them.

        All of them where they are few or in folds, unless one ``fold`` is asked for.
        """
        several = len(self._splits) > 1
        if fold is None and (several or n >= len(self._kept)):
            return np.arange(len(self._y)), self._splits
        rng = np.random.RandomState(self._seed + 1)
        train, held = self._splits[fold or 0]
        n_held = min(len(held), max(n // 5, FIRST_ROWS))
        train = rng.permutation(train)[: max(1, n - n // 5)]
        held = rng.permutation(held)[:n_held]
        rows = np.sort(np.concatenate([train, held]))
        return rows, [(np.searchsorted(rows, np.sort(train)), np.searchsorted(rows, held))]

    # Trials.

    def _nystrom(
        self, setting: Setting, sizes: list[int], n: int, penalties: Array | None, note: str,
        *, keep: bool = True, fold: int | None = None, sigma: Any = None, before: float = 0.0,
    ) -> NystromMachine | None:  # fmt: skip
        """Fit centers, for one kernel or, where ``sigma`` is given, for a grid of widths."""
        rows, splits = self._part(n, fold)
        machine = NystromMachine(
            setting.kernel, sigma="median" if sigma is None else sigma,
            penalty="auto" if penalties is None else penalties,
            n_centers=np.unique([size for size in sizes if size >= 1]),
            centers=self._owner.centers, intercept=self._owner.intercept, validation=splits,
            memory=self._memory, random_state=self._seed, progress=self._tick,
        )  # fmt: skip
        done = self._trial(
            machine, "nystrom", max(sizes), rows, note, setting=setting, keep=keep,
            before=before,
        )  # fmt: skip
        return machine if done else None

    def _more_centers(
        self, machine: NystromMachine, setting: Setting, m: int, penalties: Array | None
    ) -> NystromMachine | None:
        machine._wanted = m
        everything = np.arange(len(self._y))
        done = self._trial(
            machine, "nystrom", m, everything, "grown", setting=setting, how="_grow",
            penalties=penalties,
        )  # fmt: skip
        return machine if done else None

    def _trial(
        self, machine: Any, method: str, m: int, rows: Array, note: str,
        *, setting: Setting, how: str = "_fit", keep: bool = True, before: float = 0.0,
        **settings: Any,
    ) -> bool:  # fmt: skip
        """Fit a machine to some rows, write it down, and keep it if it is the best.

        ``before`` are seconds that were spent for it already.
        """
        start, source = time.monotonic(), self._source(setting)
        machine.n_features_in_ = source.shape[1]
        if len(rows) < len(self._y):
            source = ArraySource(source.take(rows), source.dtype)
        rows_in = source.take(np.arange(len(self._y))) if method == "exact" else source
        Y, weight = self._outputs(setting.target)[rows], self._weight[rows]
        outputs = Y, weight, self._y[rows], self._score
        failed = partial(self._failed, method, m, rows, start - before, setting)
        try:
            with warnings.catch_warnings():
                # That a penalty among many is below the resolution concerns nobody here.
                warnings.simplefilter("ignore", ImparoWarning)
                model, path = getattr(machine, how)(
                    rows_in, *outputs, stratify=self._stratify, **settings
                )
            machine.path_ = path
            error = float(path.errors[path.best_index])
            target, held = None, None
            if setting.target != "none":
                held = self._held(machine, source)
                error, target = self._in_original_units(*held, setting, rows, Y)
        except TimeUp:
            return failed(f"{note}: out of time")
        except (ValueError, MemoryError) as failure:
            if self.best is None:
                raise
            return failed(f"{note}: {failure}")
        seconds = time.monotonic() - start
        values = {name: getattr(machine, name, None) for name in _NAMES}
        if method == "exact":
            values["centers_"], values["n_centers_"] = machine.X_fit_, len(self._kept)
        used = setting
        if values["sigma_"] is not None and setting.learned is None:
            used = Setting(machine.kernel_, setting.inputs, setting.target)
        found = Best(
            error, model, path, method, len(rows), used, values, target,
            None,
        )  # fmt: skip
        # Errors of fits to fewer rows are judged on fewer, too: they do not compare.
        best = self.best
        better = best is None or (len(rows), -error) > (best.n_rows, -best.error)
        if keep and better:
            self.best = found
            note += ": better"
        if keep and self._may_be_averaged(found):
            held = self._held(machine, source) if held is None else held
            self._remember(replace(found, held=self._predictions(*held, target)))
        self.record.append(
            Trial(
                method, values["sigma_"], values["penalty_"], values["n_centers_"] or m,
                len(rows), error, seconds + before, note, used.name, setting.inputs,
                setting.target, sum(len(held) for _, held in machine.validation),
            )
        )  # fmt: skip
        if path.penalties is not None and not self._lowest:
            self._lowest = float(path.penalties.min())
        if method == "nystrom":
            self._learn_speed(path, machine.kernel_, len(rows), m, seconds)
        return True

    def _remember(self, found: Best) -> None:
        """Take note of a model that may be a part of an average."""

    def _learn_speed(self, path: Any, kernel: Kernel, n: int, m: int, seconds: float) -> None:
        widths = 1 if path.sigmas is None else len(path.sigmas)
        penalties = 1 if path.penalties is None else len(path.penalties)
        folds = len(self._splits)
        work = widths * self._cost(n, m, penalties, folds, kernel)
        # Trials of little work are mostly overhead, and tell little about the speed.
        rate = seconds / work
        self._rate = rate if work >= self._most_work else min(self._rate, rate)
        self._most_work = max(self._most_work, work)

    def _failed(
        self, method: str, m: int, rows: Array, start: float, setting: Setting, note: str
    ) -> bool:
        seconds = time.monotonic() - start
        self.record.append(
            Trial(
                method, None, None, m, len(rows), np.inf, seconds, note, setting.name,
                setting.inputs, setting.target,
            )
        )  # fmt: skip
        return False

    # Predictions of held-out rows.

    def _held(self, machine: Any, source: Source) -> tuple[Array, Array]:
        ridge, size = machine.penalty_, machine.n_centers_
        return held_out_predictions(
            machine.statistics_, source, ridge, size, self._owner.intercept
        )

    def _in_original_units(
        self, held: Array, F: Array, setting: Setting, rows: Array, Z: Array
    ) -> tuple[float, TargetTransform]:
        """Return the error of predicted means, and the transform with its residuals."""
        weight = self._weight[rows][held]
        transform = self._targets[setting.target].with_residuals(Z[held] - F, weight)
        Y = self._Y[rows][held]
        error = self._validation_error(self._scaled(transform.mean(F)), Y, weight)
        return error, transform

    def _scaled(self, y: Array) -> Array:
        """Return outputs in the units that errors are counted in."""
        scale, shift = self._units
        return (np.asarray(y) - shift) / scale

    def _validation_error(self, F: Array, Y: Array, weight: Array) -> float:
        """Return the validation error of predictions."""
        score = self._score
        total = score(Y, np.asarray(F, Y.dtype)[:, None, :], weight)[0] / weight.sum()
        return float(score.finish(total)[0])

    def _may_be_averaged(self, found: Best) -> bool:
        """Return whether a model is worth an average: of all rows, and close to the best."""
        whole = found.method == "nystrom" and found.n_rows == len(self._y)
        return whole and self.best is not None and found.error <= _CLOSE * self.best.error

    def _predictions(
        self, held: Array, F: Array, target: TargetTransform | None
    ) -> Array | None:
        """Return predictions of all held-out rows, NaN elsewhere."""
        if len(np.unique(held)) < len(held):
            return None  # rows that several splits hold out have several predictions
        everything = np.full((len(self._y), F.shape[1]), np.nan, np.float32)
        everything[held] = F if target is None else self._scaled(target.mean(F))
        return everything

    @property
    def _is_regression(self) -> bool:
        return isinstance(self._score, RootMeanSquare)
