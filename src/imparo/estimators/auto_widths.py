"""Which kernel, which widths, which columns and outputs: tried on a part of the rows."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from imparo.estimators.auto_runs import (
    CAUTION,
    FIRST_CENTERS,
    FIRST_ROWS,
    PENALTIES,
    Runs,
)
from imparo.estimators.auto_trials import Setting
from imparo.estimators.candidates import LEARNED, PER_FEATURE
from imparo.kernels import Gaussian, Kernel, Laplacian, Matern
from imparo.kernels.base import width_of
from imparo.width_learning import Learned, learn_widths

# The first look at learned widths: rows, centers, steps, and the share of time for all.
_LEARN_ROWS, _LEARN_CENTERS, _LEARN_STEPS = 2000, 200, 40
_SCREEN_SHARE = 0.3
# What an evaluation of the criterion takes beyond its products, in operations.
_LEARN_OVERHEAD = 1e9
# Rows and centers that settings are compared with.
_JUDGE_ROWS, _JUDGE_CENTERS = 20_000, 500
_KERNELS = (Gaussian(), Matern(0.5), Matern(1.5), Laplacian())
# Seconds below which learning widths is not worth while.
_LEAST = 0.15
# The share of the time that is left for learning in every fold.
_CROSS_SHARE = 0.25


@dataclass(frozen=True)
class Screened:
    """A setting, and its error where all settings are compared."""

    setting: Setting
    error: float


class WidthRuns(Runs):
    """Trials of kernels, widths, columns and outputs on a part of the rows."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._learn_rate = 0.0
        self._kernel: Kernel = self._owner._kernels(self._table)[0]

    # What there is to choose from.

    @property
    def _kernels(self) -> list[Kernel]:
        return self._owner._kernels(self._table)

    def _learns(self) -> bool:
        """Return whether widths are to be learned."""
        sigma = self._owner.sigma
        wanted = isinstance(sigma, str) and sigma in ("auto", LEARNED, PER_FEATURE)
        kinds = (Gaussian, Laplacian, Matern)
        return wanted and all(isinstance(k, kinds) and k.needs_sigma for k in self._kernels)

    def _searches_widths(self) -> bool:
        """Return whether there are widths to choose from: "auto", or a grid."""
        sigma = self._owner.sigma
        many = sigma == "auto" if isinstance(sigma, str) else np.size(sigma) > 1
        return bool(self._kernel.needs_sigma and many)

    def _targets_to_try(self) -> list[str]:
        """Return the transforms of the outputs to choose from, the first of them first."""
        return self._owner._targets(self._y[self._kept]) if self._is_regression else ["none"]

    # Trials.

    def _first_look(self) -> Setting | None:
        """Return the best single width on a few rows, after a first model at once."""
        n = min(len(self._kept), FIRST_ROWS)
        m = min(FIRST_CENTERS, max(1, n // 4), self._possible_centers(), self._most_centers())
        given, searched = self._owner.sigma, self._searches_widths()
        bare = Setting(self._kernel, self._table.kinds[0], self._targets_to_try()[0])
        middle: Any = None
        if self._kernel.needs_sigma:
            middle = "median" if isinstance(given, str) else given
        if searched and not isinstance(given, str):
            middle = np.sort(given)[len(given) // 2]
        first = self._nystrom(bare, [max(1, m // 4)], n // 4, None, "first model", sigma=middle)
        if searched:
            found = self._nystrom(bare, [m], n, None, "first look at widths", sigma=given)
            first = first if found is None else found
        return None if first is None else replace(bare, kernel=first.kernel_)

    def _screen(self, first: Setting) -> list[Screened]:
        """Return settings, the best first: kernels, then columns, then outputs."""
        until = time.monotonic() + _SCREEN_SHARE * self._left()
        wanted, found = self._owner.sigma, []
        if wanted == "auto":
            found += self._judged(first, "one width")
        kernels = self._kernels
        # One width is learned in no time: that of every kernel comes first.
        for per_column in [False] * (wanted != PER_FEATURE) + [True] * (wanted != LEARNED):
            for i, kernel in enumerate(kernels):
                seconds = (until - time.monotonic()) / (len(kernels) - i + 2)
                if seconds < _LEAST and (found or self._left() < _LEAST):
                    break
                found += self._tried(kernel, first.inputs, first.target, seconds, per_column)
            kernels = list(dict.fromkeys([*_kernels_of(found), *kernels]))
        if not found:
            return [Screened(first, np.inf)]
        found = self._with_other_inputs(_sorted(found), until)
        return self._with_other_targets(found, until)

    def _with_other_inputs(self, found: list[Screened], until: float) -> list[Screened]:
        """Try other scalings of the columns, of all kernels, the best first."""
        best, tried = found[0].setting, list(found)
        kinds = [
            kind for kind in self._table.kinds[1:] if self._differs(self._table.kinds[0], kind)
        ]
        kernels = _kernels_of(found)
        ways = [(kernel, kind, False) for kernel in kernels for kind in kinds]
        if self._owner.sigma == PER_FEATURE:
            ways = []
        # Widths of columns undo any scaling of columns, but not of ranks.
        if "quantile" in kinds and self._owner.sigma != LEARNED:
            ways.insert(len(kinds), (kernels[0], "quantile", True))
        for i, (kernel, kind, per_column) in enumerate(ways):
            seconds = (until - time.monotonic()) / (len(ways) - i + 2)
            if seconds < _LEAST:
                break
            tried += self._tried(kernel, kind, best.target, seconds, per_column)
        return _sorted(tried)

    def _with_other_targets(self, found: list[Screened], until: float) -> list[Screened]:
        best, tried = found[0].setting, list(found)
        kinds = [kind for kind in self._targets_to_try() if kind != best.target]
        for i, kind in enumerate(kinds):
            if self._left() < _LEAST:
                break
            seconds = max((until - time.monotonic()) / (len(kinds) - i), _LEAST)
            columns = has_column_widths(best)
            tried += self._tried(bare(best.kernel), best.inputs, kind, seconds, columns)
        return _sorted(tried)

    def _differs(self, one: str, other: str) -> bool:
        """Return whether columns prepared in two ways differ by more than one factor."""
        some = np.arange(min(len(self._y), 500))
        X, Z = (self._table.source(kind).take(some) for kind in (one, other))
        if sparse.issparse(X) or X.shape != Z.shape:
            return True
        X, Z = X - X.mean(axis=0), Z - Z.mean(axis=0)
        factor = np.sum(X * Z) / max(np.sum(X * X), 1e-300)
        return not np.allclose(factor * X, Z, atol=1e-6 * np.abs(Z).max(initial=0.0))

    def _tried(
        self, kernel: Kernel, inputs: str, target: str, seconds: float, per_column: bool
    ) -> list[Screened]:
        """Return a kernel with one learned width, or with one for every column, judged."""
        start = time.monotonic()
        learned = self._learned(
            kernel, inputs, target, _LEARN_ROWS, _LEARN_CENTERS, _LEARN_STEPS, seconds,
            per_column=per_column,
        )  # fmt: skip
        if learned is None:
            return []
        note = "widths learned" if per_column else "one width, learned"
        setting = Setting(learned.kernel, inputs, target, learned)
        return self._judged(setting, note, time.monotonic() - start)

    def _judged(
        self, setting: Setting, note: str, before: float = 0.0, fold: int = 0
    ) -> list[Screened]:
        """Return a setting with its error on a part of the rows, one fold held out."""
        n = min(len(self._kept), _JUDGE_ROWS)
        m = min(_JUDGE_CENTERS, max(1, n // 4), self._possible_centers(), self._most_centers())
        cost = self._cost(n, m, PENALTIES, 1, setting.kernel)
        if CAUTION * self._rate * cost > self._left():
            return []
        machine = self._nystrom(
            setting, [m // 4, m // 2, m], n, None, note, keep=False, fold=fold, before=before
        )
        return [] if machine is None else [Screened(setting, self.record[-1].error)]

    # Learning.

    def _learn_work(self, n: int, m: int, kernel: Kernel) -> float:
        """Return operations of one evaluation of the criterion, overhead included."""
        entry = 2 * self._entry(kernel) + 3.0 * m
        return n * m * entry + 4.0 * m**3 + _LEARN_OVERHEAD

    def _expected_learning(self, n: int, m: int, steps: int, kernel: Kernel) -> float:
        # One width first, columns left out and learned again: more steps than asked for.
        return CAUTION * self._learn_rate * 1.7 * steps * self._learn_work(n, m, kernel)

    def _learned(
        self, kernel: Kernel, inputs: str, target: str, n: int, m: int, steps: int,
        seconds: float, fold: int = 0, draw: int = 0, per_column: bool = True,
    ) -> Learned | None:  # fmt: skip
        """Learn widths from rows that a fold does not hold out, for so many seconds."""
        begun = time.monotonic()
        until = begun + min(seconds, self._left())
        rng = np.random.RandomState(self._seed + 11 + 101 * draw)
        rows = np.sort(rng.permutation(self._splits[fold][0])[:n])
        X = self._table.source(inputs).take(rows)
        X = X.toarray() if sparse.issparse(X) else X

        def goes_on() -> bool:
            self._show(0, 1, "learning widths")
            return time.monotonic() < until

        per_column = per_column and self._owner.sigma != LEARNED
        try:
            found = learn_widths(
                kernel, X, self._outputs(target)[rows], weight=self._weight[rows],
                per_column=per_column, n_centers=m, steps=steps, seed=self._seed % 2**31,
                last_apart=self.is_series, goes_on=goes_on,
            )  # fmt: skip
        except (ValueError, MemoryError):
            if self.best is None:
                raise
            return None
        spent = time.monotonic() - begun
        if found.n_steps:
            # The lowest rate: few steps are mostly overhead, and learning that takes longer
            # than expected ends in time all the same.
            rate = spent / (found.n_steps * self._learn_work(len(rows), m, kernel))
            self._learn_rate = min(self._learn_rate or np.inf, rate)
        return found

    def _cross_fitted(self, best: Screened) -> Screened:
        """Return a setting with widths learned in every fold, or with one width if better.

        On few rows the choice between one width and a width for every column is a matter of
        luck in one fold: both are learned without, and judged on, each of the others. The
        widths of columns are then the geometric means of all folds.
        """
        setting, folds = best.setting, len(self._splits)
        if setting.learned is None or not has_column_widths(setting) or folds == 1:
            return best
        plain, size = bare(setting.kernel), (_LEARN_ROWS, _LEARN_CENTERS)
        if (
            folds * self._expected_learning(*size, 2 * _LEARN_STEPS, plain)
            > _CROSS_SHARE * self._left()
        ):
            return best
        notes = ["widths of another fold", "one width, learned"]
        notes = notes[:1] if self._owner.sigma == PER_FEATURE else notes
        errors = np.full((len(notes), folds), np.nan)
        found: tuple[list[Learned], list[Learned]] = ([setting.learned], [])
        errors[0, 0] = best.error
        for fold in range(folds):
            for i, note in enumerate(notes):
                if i == 0 and fold == 0:
                    continue
                start = time.monotonic()
                learned = self._learned(
                    plain, setting.inputs, setting.target, *size, _LEARN_STEPS, self._left(),
                    fold=fold, per_column=i == 0,
                )  # fmt: skip
                if learned is None:
                    return best
                candidate = replace(setting, kernel=learned.kernel, learned=learned)
                judged = self._judged(candidate, note, time.monotonic() - start, fold)
                if not judged:
                    return best
                errors[i, fold] = judged[0].error
                found[i].append(learned)
        means = np.sqrt(np.mean(np.square(errors), axis=1))
        i = int(np.argmin(means))
        joined = _joined(found[i])
        return Screened(replace(setting, kernel=joined.kernel, learned=joined), float(means[i]))


def _sorted(found: list[Screened]) -> list[Screened]:
    return sorted(found, key=lambda screened: screened.error)


def _kernels_of(found: list[Screened]) -> list[Kernel]:
    """Return the kernels without their widths, the best first."""
    return list(dict.fromkeys(bare(s.setting.kernel) for s in _sorted(found)))


def kernels_to_try(is_sparse: bool) -> list[Kernel]:
    """Return kernels of all degrees of smoothness, the likeliest first."""
    return [kernel for kernel in _KERNELS if kernel.sparse or not is_sparse]


def bare(kernel: Any) -> Any:
    """Return a kernel without its width."""
    return replace(kernel, sigma=None)


def has_column_widths(setting: Setting) -> bool:
    """Return whether every column has a width of its own."""
    return isinstance(width_of(setting.kernel), tuple)


def _joined(found: list[Learned]) -> Learned:
    """Return geometric means of widths; a column that most leave out is left out."""
    unused = np.mean([one.unused for one in found], axis=0) > 0.5
    kernels: list[Any] = [one.kernel for one in found]
    widths = np.log([np.broadcast_to(k.sigma, len(unused)) for k in kernels])
    kept = np.array([~one.unused for one in found])
    counts = np.maximum(1, kept.sum(axis=0))
    means = np.where(unused, widths.max(axis=0), np.sum(widths * kept, axis=0) / counts)
    sigma = tuple(float(s) for s in np.exp(means))
    kernel = replace(
        kernels[0], sigma=sigma if isinstance(kernels[0].sigma, tuple) else sigma[0]
    )
    relevance = np.where(unused, 0.0, np.mean([one.relevance for one in found], axis=0))
    return replace(
        found[0],
        kernel=kernel,
        relevance=relevance / max(float(relevance.sum()), np.finfo(float).tiny),
        unused=unused,
    )
