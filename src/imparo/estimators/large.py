"""Nyström KRLS where m × m statistics are too much: preconditioned conjugate gradients.

Products with K_nm and a preconditioner (:mod:`imparo.filters.preconditioned`) are all that is
needed. Penalties are gone through from the largest to the smallest, each starting where the
one before has ended, and the held-out error is known after every iteration at no further pass:
predictions follow the same recurrence as coefficients. So the iterations are also those of
NYTRO, accelerated (thesis, section 4.3).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array, Engine
from imparo.errors import MemoryBudgetError
from imparo.estimators.blocks import Stream
from imparo.estimators.cells import Cells
from imparo.estimators.cluster_kernel import kernel_rows_of
from imparo.estimators.solve import Solved
from imparo.features.center_map import CenterMap
from imparo.filters import Preconditioner, preconditioned_steps
from imparo.filters.preconditioned import least_shift, preconditioner_bytes
from imparo.progress import track
from imparo.scores import Score

#: Iterations of "auto", for each penalty, at most.
MOST_STEPS = 100
#: Penalties of "auto": a decade apart.
PENALTIES = 13
# Iterations end where the residual is this share of the first one.
_CONVERGED = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}
# With held-out rows they end too where the best error has not fallen by so much in so many.
_GAIN, _PATIENCE = 1e-4, 5
# Memory that the preconditioner may take, and K_nm beside it.
_SHARE, _SHARE_OF_KERNEL = 0.75, 0.9
# The largest shift of the diagonal of K_mm, over its mean.
_MOST_SHIFT = 1e-3
# Arrays of a number for every row and output that are alive at once, at most.
_ROW_ARRAYS = 12


@dataclass(frozen=True)
class Walked:
    """Held-out errors at every penalty and iteration, and where the final fit begins.

    Attributes
    ----------
    sums : array of shape (2, L, t)
        Sums of errors and of squared errors; what was not reached has the last value.
    weight : float
        Of the rows held out.
    starts : list of arrays of shape (m, T)
        Coefficients to begin with at every penalty: those that it began with where
        iterations regularize, so that the final fit makes as many as were judged.
    shifts : list of arrays of shape (T,) or None
        Intercepts with them, where these do not follow from the coefficients.
    """

    sums: Array
    weight: float
    starts: list[Array]
    shifts: list[Array] | None = None


def largest_size(memory: int, itemsize: int) -> int:
    """Return the most centers whose preconditioner fits into memory."""
    least, most = 0, int(np.sqrt(memory / itemsize)) + 1
    while most - least > 1:
        middle = (least + most) // 2
        fits = preconditioner_bytes(middle, itemsize) <= _SHARE * memory
        least, most = (middle, most) if fits else (least, middle)
    return least


def check_room(size: int, memory: int, itemsize: int) -> None:
    """Raise unless the preconditioner of so many centers fits into memory."""
    most = largest_size(memory, itemsize)
    if size > most:
        needed = preconditioner_bytes(size, itemsize)
        raise MemoryBudgetError(
            f"the preconditioner of {size:,} centers needs {needed:,} bytes, "
            f"{_SHARE:.0%} of memory at most, and memory is {memory:,}; use at most {most:,} "
            "centers, dtype='float32', or raise memory"
        )


class LargeProblem:
    """The rows, the centers and the factor of K_mm, for every penalty and split.

    Parameters
    ----------
    rows : Stream
    map : CenterMap
    intercept : bool
    passes : int
        Products with K_nm that are expected, to decide whether to store it.
    """

    def __init__(self, rows: Stream, map: CenterMap, intercept: bool, passes: int) -> None:
        self.rows, self.map, self.engine = rows, map, rows.engine
        self.has_intercept = intercept
        dtype, m = rows.source.dtype, len(map)
        check_room(m, rows.memory, dtype.itemsize)
        used = int((rows.cell >= 0).sum())
        left = _SHARE_OF_KERNEL * rows.memory - preconditioner_bytes(m, dtype.itemsize)
        left -= _ROW_ARRAYS * 8 * rows.Y.size
        store = passes > 1 and used * m * dtype.itemsize <= left - rows.memory / 8
        self.values = kernel_rows_of(rows, map, store=store)
        #: Type of the products with K_nm: float64 unless float32 is asked for.
        self.product_type: np.dtype[Any] = np.dtype(np.float64)
        if rows.precision == "float32":
            self.product_type = np.dtype(np.float32)
        self._scale = float(np.mean(map.kernel.diagonal(map.centers[:256]), dtype=np.float64))
        self._shift = -1.0
        self.preconditioner: Preconditioner

    def prepare(self, penalty: float) -> bool:
        """Make the factor of K_mm fit for a penalty; return whether it is another one."""
        scale = self._scale if self._scale > 0 else 1.0
        shift = min(
            least_shift(penalty / scale, len(self.map), self.rows.source.dtype), _MOST_SHIFT
        )
        if shift == self._shift:
            return False
        engine, points, kernel = self.engine, self._points(), self.map.kernel
        if self._shift >= 0:
            del self.preconditioner  # not two of them

        def kernel_rows(start: int, stop: int) -> Array:
            return engine.asarray(kernel(points[start:stop], points[start:]))

        dtype = self.rows.source.dtype
        self.preconditioner = Preconditioner(kernel_rows, len(self.map), dtype, engine, shift)
        self._shift = shift
        return True

    def _points(self) -> Any:
        centers, dtype = self.map.centers, self.rows.source.dtype
        if self.engine.resident and self.map.portable:
            return self.engine.asarray(centers, dtype)
        return centers

    def kernel_product(self, alpha: Array) -> Array:
        """Return (K_mm + shift·I)α = TᵀTα, row block by row block. Cost 2m²(d + T)."""
        engine, points, kernel = self.engine, self._points(), self.map.kernel
        there, found = engine.asarray(alpha, np.float64), []
        size = self.rows.block_size(len(alpha))
        for first in range(0, len(alpha), size):
            K = engine.asarray(kernel(points[first : first + size], points))
            found.append(engine.product(engine.cast(K, np.dtype(np.float64)), there))
        return engine.xp.concatenate(found) + self.preconditioner.shift * alpha

    def features_of(self, alpha: Array) -> Array:
        """Return β = Tα, from T⁻ᵀ(K_mm + shift·I)α = Tα."""
        if not bool((alpha != 0).any()):
            return alpha + 0.0
        return self.preconditioner.from_alpha(self.kernel_product(alpha))

    def fit(self, cells: Array, held: Array | None = None) -> "LargeFit":
        """Return a fit to the rows of some cells, from coefficients 0."""
        return LargeFit(self, cells, held)


class LargeFit:
    """Coefficients on the way: α, Tα, K_nmᵀWK_nm·α and predictions, all kept current.

    Parameters
    ----------
    problem : LargeProblem
    cells : boolean array of shape (C,)
        Cells to fit.
    held : boolean array of shape (C,), optional
        Cells to predict.
    """

    def __init__(self, problem: LargeProblem, cells: Array, held: Array | None = None) -> None:
        self._problem, self._cells, self._held = problem, cells, held
        engine = self.engine = problem.engine
        sums = problem.values.sums(cells, problem.product_type)
        self.weight = sums.weight
        b, feature_sum = engine.asarray(sums.b), engine.asarray(sums.feature_sum)
        number, (m, n_outputs) = np.dtype(np.float64), b.shape
        self._feature_mean = engine.zeros((m,), number)
        self._output_mean = engine.zeros((n_outputs,), number)
        if problem.has_intercept:
            self._feature_mean = feature_sum / sums.weight
            self._output_mean = engine.asarray(sums.output_sum) / sums.weight
            b = b - engine.xp.outer(self._feature_mean, engine.asarray(sums.output_sum))
        self._b = b
        self.alpha = engine.zeros((m, n_outputs), number)
        self._image = self.alpha + 0.0
        self._beta: Any = None  # of no use before there is a factor
        n = problem.rows.source.shape[0]
        dtype = problem.rows.source.dtype
        self._F = self._step_F = None
        if held is not None:
            self._F = engine.zeros((n, n_outputs), dtype)
            self._step_F = engine.zeros((n, n_outputs), dtype)

    def start(self, alpha: Array) -> None:
        """Begin with coefficients, at the cost of one pass."""
        self.alpha = self.engine.asarray(alpha, np.float64)
        self._image = self._normal(self.alpha)
        if self._F is not None and self._step_F is not None:
            self._F = self._step_F + 0.0
        self._beta = None

    def _normal(self, alpha: Array) -> Array:
        """Return K_nmᵀWK_nm·α of centered features, keeping the predictions of the step."""
        mean = self._feature_mean @ alpha if self._problem.has_intercept else None
        return self._problem.values.product(
            self._cells, alpha, predictions=self._step_F, held=self._held, mean=mean,
            dtype=self._problem.product_type, kept=self._held,
        )  # fmt: skip

    def steps(self, penalty: float, most: int) -> Iterator[float]:
        """Iterate at one penalty, yielding what is left of the residual after each step."""
        if self._problem.prepare(penalty) or self._beta is None:
            self._beta = self._problem.features_of(self.alpha)
        P, n = self._problem.preconditioner, self.weight
        if P.penalty != penalty:
            P.set_penalty(penalty, centered=self._problem.has_intercept)

        # The penalty is λαᵀTᵀTα, that of K_mm with its shift: without the shift, rounding
        # errors in directions that K_mm does not resolve would make it negative.
        rest = P.pulled_back((self._b - self._image) / n, -self._beta)
        last: list[Array] = []

        def product(direction: Array) -> Array:
            beta = P.to_beta(direction)
            alpha = P.to_alpha(beta)
            image = self._normal(alpha)
            last[:] = [alpha, beta, image]
            return P.pulled_back(image / n, beta)

        converged = _CONVERGED[self._problem.rows.source.dtype]
        steps = preconditioned_steps(rest, product, self.engine)
        for _, (length, left) in zip(range(most), steps, strict=False):
            alpha, beta, image = last
            self.alpha = self.alpha + length * alpha
            self._beta = self._beta + length * beta
            self._image = self._image + length * image
            if self._F is not None and self._step_F is not None:
                self._F += self.engine.cast(length, self.engine.type_of(self._F)) * self._step_F
            yield left
            if left <= converged:
                return

    def intercept(self) -> Array:
        """Return the intercept that belongs to the coefficients, shape (T,)."""
        found = self._output_mean - self._feature_mean @ self.alpha
        return self.engine.to_host(found)

    def score(self, judge: "HeldOut", score: Score) -> Array:
        """Return the sums of errors on the rows held out, shape (2,)."""
        assert self._F is not None
        shift = self._output_mean - self._feature_mean @ self.alpha
        return judge.sums(self._F, shift, score)


class HeldOut:
    """Rows held out, to judge predictions of all rows by."""

    def __init__(self, rows: Stream, cells: Array, engine: Engine) -> None:
        used = (rows.cell >= 0) & cells[rows.cell]
        positions = np.flatnonzero(used)
        self.weight = float(rows.weight[used].sum(dtype=np.float64))
        self._engine, self._at = engine, engine.asarray(positions)
        self._Y = engine.asarray(rows.Y[positions])
        self._row_weight = engine.asarray(rows.weight[positions])

    def sums(self, F: Array, shift: Array, score: Score) -> Array:
        """Return the sums of errors of F + shift, shape (2,)."""
        F = F[self._at] + self._engine.cast(shift, self._engine.type_of(F))
        return self._engine.to_host(score(self._Y, F[:, None, :], self._row_weight))[:, 0]

    def log_loss(self, F: Array, shift: Array) -> float:
        """Return the sum of log(1 + exp(−yf)), averaged over outputs."""
        margins = -self._Y * (F[self._at] + shift)
        xp = self._engine.xp
        losses = xp.logaddexp(xp.zeros_like(margins), margins).mean(axis=1)
        return float((self._row_weight * losses).sum())


def walk(
    problem: LargeProblem, cells: Cells, split: int, penalties: Array, most: int,
    score: Score, progress: Any,
) -> Walked:  # fmt: skip
    """Go through all penalties on the fitted rows of one split, judging every iteration.

    Parameters
    ----------
    problem : LargeProblem
    cells : Cells
    split : int
    penalties : array of shape (L,)
        From the largest to the smallest.
    most : int
        Iterations for each.
    score : Score
    progress : bool or callable

    Returns
    -------
    Walked
    """
    fit = problem.fit(cells.fitted[split], cells.held[split])
    judge = HeldOut(problem.rows, cells.held[split], problem.engine)
    sums = np.full((2, len(penalties), most), np.nan)
    starts: list[Array] = []
    for i, penalty in track(enumerate(penalties), len(penalties), "penalties", progress):
        errors: list[float] = []
        starts.append(problem.engine.to_host(fit.alpha))
        for t, _ in enumerate(fit.steps(float(penalty), most)):
            sums[:, i, t] = fit.score(judge, score)
            errors.append(float(sums[0, i, t]))
            if _stagnates(errors):
                break
        reached = len(errors)
        sums[:, i, reached:] = sums[:, i, reached - 1 : reached]
    sums = np.where(np.isnan(sums), np.inf, sums)
    return Walked(sums, judge.weight, starts)


def _stagnates(errors: list[float]) -> bool:
    """Return whether the best error has not fallen by a share worth an iteration."""
    if len(errors) <= _PATIENCE:
        return False
    before = min(errors[:-_PATIENCE])
    return min(errors[-_PATIENCE:]) > (1 - _GAIN) * before


def solve_large(
    problem: LargeProblem, cells: Cells, penalty: float, most: int, start: Array | None
) -> tuple[Solved, int, bool]:
    """Return the model at one penalty on all rows, its iterations, and whether they converged.

    Parameters
    ----------
    problem : LargeProblem
    cells : Cells
    penalty : float
    most : int
        Iterations at most; fewer where the residual is down.
    start : array of shape (m, T) or None
        Coefficients to begin with.

    Returns
    -------
    model : Solved
    iterations : int
    converged : bool
        Whether the residual is down to what is asked for.
    """
    fit = problem.fit(np.ones(len(cells), bool))
    if start is not None:
        fit.start(start)
    steps = track(fit.steps(penalty, most), most, "final fit", problem.rows.progress)
    left = list(steps)
    coef = problem.engine.to_host(fit.alpha).astype(problem.rows.source.dtype)
    # Fewer than were allowed: the residual is down, or rounding errors leave nothing to do.
    converged = len(left) < most or left[-1] <= _CONVERGED[problem.rows.source.dtype]
    return Solved(coef, fit.intercept(), primal=False), len(left), converged
