"""Widths learned from data: a closed-form criterion, its gradient, L-BFGS, and a guard.

L-BFGS lowers a selection error over log-widths and log-λ. With a width for every column such
an error can be over-fitted, so a part of the rows is kept out of it: they tell which iterate
to take, whether it beats one width for all columns, and which columns can be left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from imparo.engine import Array, default_engine
from imparo.errors import NotPositiveDefiniteError
from imparo.kernels import Gaussian, Kernel, Laplacian, Matern, median_width
from imparo.width_criteria import AllRows, Criterion, Evaluated, OnCenters

# How far widths may move from where they start: down by e⁴, up by e⁷, where a column is out.
_DOWN, _UP = 4.0, 7.0
_SMALLEST = 1e-9
# Steps for one width, of which there is not much to learn.
_FIRST_STEPS = 12
# The share of rows that are kept apart, at most so many, and from how many rows on.
_APART, _MOST_APART, _FEWEST = 0.25, 2000, 40
# Columns are left out if the criterion rises by less than this share.
_NOTHING = 1e-3
# The width of a column that is left out, in spreads: squares of 1e-12 change nothing.
_OUT = 1e6
# Up to so many rows all of them are centers, above it at most so many, a third of the rows or
# so many at least.
_ALL_ROWS, _CENTERS, _FEWEST_CENTERS = 400, 400, 100


@dataclass(frozen=True)
class Learned:
    """A kernel whose widths were learned.

    Attributes
    ----------
    kernel : Kernel
        With its widths.
    penalty : float
        λ that goes with them, for the rows they were learned from.
    error : float
        Root of the criterion, in the units of the outputs.
    held_error : float
        Root mean squared error on the rows kept apart; NaN if there were none.
    n_steps : int
        Steps of L-BFGS.
    relevance : array of shape (d,)
        1/σ_k² in units of the columns' spreads, with sum 1: what each column counts.
    unused : boolean array of shape (d,)
        Columns that can be left out: the criterion does not rise without them.
    """

    kernel: Kernel
    penalty: float
    error: float
    held_error: float
    n_steps: int
    relevance: Array
    unused: Array


@dataclass(frozen=True)
class _Iterate:
    """Log-widths relative to the start, with what is known about them."""

    theta: Array
    penalty: float
    value: float
    losses: Array  # squared errors of the rows kept apart, summed over outputs

    @property
    def held(self) -> float:
        """The mean loss, or the criterion where no rows are kept apart."""
        return float(self.losses.mean()) if len(self.losses) else self.value


def learn_widths(
    kernel: Kernel,
    X: Any,
    Y: Any,
    *,
    per_column: bool = True,
    kind: str = "auto",
    weight: Array | None = None,
    n_centers: int = _CENTERS,
    steps: int = 60,
    penalty: float = 1e-3,
    seed: int = 0,
    last_apart: bool = False,
    goes_on: Callable[[], bool] = lambda: True,
) -> Learned:
    """Return the widths and λ that make a selection error small, by L-BFGS on logarithms.

    Widths of columns start in proportion to the columns' spreads, times the median distance
    of scaled rows: a column in other units has its width in those units, and nothing else
    changes. First one factor for all is learned, then every width. A quarter of the rows is
    kept apart: of all iterates the best on these is taken, and one with its own width for
    every column only if it beats the one factor by more than a standard error. Columns
    without which the criterion does not rise are left out, and the others learned again.

    Parameters
    ----------
    kernel : Gaussian, Laplacian or Matern
        Its own widths are not used.
    X : array of shape (n, d)
        Some thousand rows at most; a sample of more is enough.
    Y : array of shape (n,) or (n, T)
        A constant is taken out.
    per_column : bool
        A width for every column, or one that all share.
    kind : {"auto", "gcv", "loo", "centers"}
        Generalized cross-validation or leave-one-out of exact KRLS, cost 4n³ a step, or
        generalized cross-validation of Nyström KRLS, cost 3nm² a step. "auto" is "gcv" up to
        400 rows and "centers" above.
    weight : array of shape (n,), optional
        Weights of the rows, above 0.
    n_centers : int
        m, for "centers": a third of the rows at most, but 100 at least.
    steps : int
        The most steps of L-BFGS with a width for every column.
    penalty : float
        λ to start from.
    seed : int
        For the rows kept apart and the centers.
    last_apart : bool
        Whether the last rows are kept apart, for a series, instead of random ones.
    goes_on : callable
        Asked after every step whether to go on; the best so far is returned if not.

    Returns
    -------
    Learned

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian
    >>> from imparo.width_learning import learn_widths
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=200)
    >>> learned = learn_widths(Gaussian(), X, y)
    >>> learned.relevance.round(1)
    array([0., 1., 0.])
    """
    check_learnable(kernel)
    if kind not in ("auto", "gcv", "loo", "centers"):
        raise ValueError(f"kind={kind!r} is not known; give 'auto', 'gcv', 'loo' or 'centers'")
    X = np.asarray(X, np.float64)
    Y = np.asarray(Y, np.float64).reshape(len(X), -1)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, np.float64)
    descent = _Descent(
        kernel, X, Y, weight, per_column, kind, n_centers, seed, last_apart, goes_on
    )
    d = X.shape[1]
    varies = ~descent.constant if per_column else np.ones(d, bool)
    first = np.where(varies, 0.0, descent.out)
    if descent.scale == 0:  # constant outputs have nothing to tell
        return descent.learned(_Iterate(first, penalty, 0.0, np.empty(0)))
    one = descent.run(first, penalty, varies, min(steps, _FIRST_STEPS), shared=True)
    if not per_column or d == 1:
        return descent.learned(one)
    many = descent.run(one.theta, one.penalty, varies, steps)
    if not _beats(many, one) and goes_on():  # one width may have ended where it is flat
        many = descent.run(first, penalty, varies, steps)
    if not _beats(many, one):
        return descent.learned(one)
    active = descent.needed(many) if goes_on() else varies
    if active.all() or not goes_on():
        return descent.learned(many)
    rest = np.where(active, many.theta, descent.out)
    fewer = descent.run(rest, many.penalty, active, steps // 2)
    return descent.learned(fewer)


def check_learnable(kernel: Kernel) -> None:
    """Raise unless the widths of a kernel can be learned."""
    if not isinstance(kernel, Gaussian | Laplacian | Matern):
        raise ValueError(
            f"widths can be learned for the Gaussian, Laplacian and Matérn kernels, not for "
            f"{kernel!r}; give one of these"
        )


def _beats(many: _Iterate, one: _Iterate) -> bool:
    """Return whether an iterate is better by more than a standard error of the difference."""
    if not len(one.losses):
        return many.value < one.value
    gain = one.losses - many.losses
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))


class _Descent:
    """The rows, and L-BFGS over a part of the log-widths."""

    def __init__(
        self,
        kernel: Any,
        X: Array,
        Y: Array,
        weight: Array,
        per_column: bool,
        kind: str,
        n_centers: int,
        seed: int,
        last_apart: bool,
        goes_on: Callable[[], bool],
    ) -> None:
        self._kernel, self._goes_on, self._n_steps = kernel, goes_on, 0
        rng = np.random.RandomState(seed)
        order = rng.permutation(len(X))
        n_apart = min(int(_APART * len(X)), _MOST_APART) if len(X) >= _FEWEST else 0
        if last_apart:
            n_fitted = len(X) - n_apart
            order = np.concatenate([np.arange(n_fitted, len(X)), rng.permutation(n_fitted)])
        apart, fitted = order[:n_apart], order[n_apart:]
        weight = weight / weight[fitted].mean()
        mean = np.average(Y[fitted], axis=0, weights=weight[fitted])
        self.scale = float(
            np.sqrt(np.average(np.mean((Y - mean) ** 2, axis=1), weights=weight))
        )
        if not np.ptp(Y, axis=0).any():  # their mean may be off in the last digit
            self.scale = 0.0
        Y = (Y - mean) / (self.scale or 1.0)
        # The spread of equal numbers rounds to something that is not quite 0.
        self.constant = X.min(axis=0) == X.max(axis=0)
        size = np.where(X[0] != 0, np.abs(X[0]), 1.0)
        self._spread = np.where(self.constant, size, X.std(axis=0))
        units = self._spread if per_column else np.ones(X.shape[1])
        distance = kernel.distance or "euclidean"
        self._first = units * median_width(X[fitted] / units, distance)
        self._per_column = per_column
        #: The log-width of a column that is left out, as none is where all share one.
        self.out = np.log(_OUT * self._spread[0] / self._first[0]) if per_column else np.inf
        self._apart = X[apart], Y[apart], weight[apart, None]
        every = None if np.all(weight == weight[0]) else weight[fitted]
        self._criterion: Criterion
        if kind in ("gcv", "loo") or (kind == "auto" and len(fitted) <= _ALL_ROWS):
            name = "loo" if kind == "loo" else "gcv"
            self._criterion = AllRows(X[fitted], Y[fitted], every, name)
        else:
            few = max(_FEWEST_CENTERS, len(fitted) // 3)
            centers = X[fitted[: min(n_centers, few, len(fitted))]]
            self._criterion = OnCenters(X[fitted], Y[fitted], centers, every)

    def run(
        self, theta: Array, penalty: float, active: Array, steps: int, *, shared: bool = False
    ) -> _Iterate:
        """Return the best iterate on the way from a point, that point included."""
        seen: dict[bytes, tuple[Any, Evaluated]] = {}
        found: list[_Iterate] = []

        def at(x: Array) -> tuple[Any, float, Array]:
            moved = theta.copy()
            moved[active] = theta[active] + x[0] if shared else x[:-1]
            return self._made(moved), float(np.exp(x[-1])), moved

        def objective(x: Array) -> tuple[float, Array]:
            kernel, level, _ = at(x)
            try:
                point = self._criterion.at(kernel, level)
            except NotPositiveDefiniteError:
                return 1e3, np.zeros(len(x))  # a step too far: the search turns back
            seen[x.tobytes()] = kernel, point
            slopes = point.slopes[active]
            slopes = slopes.sum(keepdims=True) if shared else slopes
            value = max(point.value, np.finfo(float).tiny)
            return float(np.log(value)), np.append(slopes, point.penalty_slope) / value

        def look(x: Array) -> None:
            if x.tobytes() in seen:
                kernel, point = seen[x.tobytes()]
                _, level, moved = at(x)
                found.append(_Iterate(moved, level, point.value, self._losses(kernel, point)))
                seen.clear()
            if not self._goes_on():
                raise StopIteration

        free = np.zeros(1) if shared else theta[active]
        start = np.append(free, np.log(penalty))
        bounds = [(-_DOWN, _UP)] * len(free) + [(np.log(_SMALLEST), 0.0)]
        objective(start)
        try:
            look(start)
        except StopIteration:
            steps = 0
        if steps:
            result = minimize(
                objective, start, jac=True, method="L-BFGS-B", bounds=bounds,
                callback=look, options={"maxiter": steps},
            )  # fmt: skip
            self._n_steps += int(result.nit)
        if not found:
            raise NotPositiveDefiniteError(
                "the kernel matrix of the rows that widths are learned from is not positive "
                "definite; check X for values of very different size"
            )
        return min(found, key=lambda iterate: iterate.held)

    def needed(self, best: _Iterate) -> Array:
        """Return which columns are needed: without the others the error does not rise."""
        order = np.argsort(-best.theta)  # the least relevant first
        few, many = 0, len(order) - 1  # none can be left out; all but one
        while few < many:
            count = (few + many + 1) // 2
            theta = best.theta.copy()
            theta[order[:count]] = self.out
            if self._is_as_good(theta, best):
                few = count
            else:
                many = count - 1
        active = np.ones(len(order), bool)
        active[order[:few]] = False
        return active

    def _is_as_good(self, theta: Array, best: _Iterate) -> bool:
        kernel = self._made(theta)
        try:
            point = self._criterion.at(kernel, best.penalty)
        except NotPositiveDefiniteError:
            return False
        losses = self._losses(kernel, point)
        fewer = _Iterate(theta, best.penalty, point.value, losses)
        allowed = 1 + _NOTHING
        return fewer.value <= allowed * best.value and fewer.held <= allowed * best.held

    def learned(self, best: _Iterate) -> Learned:
        kernel = self._made(best.theta)
        relevance = np.square(self._spread / np.array(kernel.sigma))
        unused = self.constant | (best.theta >= self.out)
        relevance[unused] = 0.0
        held = np.sqrt(best.held) * self.scale if len(best.losses) else np.nan
        return Learned(
            kernel, best.penalty, self.scale * float(np.sqrt(best.value)), float(held),
            self._n_steps, relevance / (relevance.sum() or 1.0), unused,
        )  # fmt: skip

    def _made(self, theta: Array) -> Any:
        settings = {"order": self._kernel.order} if isinstance(self._kernel, Matern) else {}
        widths = self._first * np.exp(theta)
        return type(self._kernel)(
            **settings, sigma=widths if self._per_column else float(widths[0])
        )

    def _losses(self, kernel: Any, point: Evaluated) -> Array:
        X, Y, weight = self._apart
        if not len(X):
            return np.empty(0)
        F = default_engine().product(kernel(X, point.rows), point.coef)
        return np.mean(weight * np.square(F - Y), axis=1)
