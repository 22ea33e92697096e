"""Logistic regression on m centers: Newton steps by preconditioned conjugate gradients.

Minimises (1/n) Σ wᵢ log(1 + exp(−yᵢf(xᵢ))) + λ‖f‖² over functions of the centers, for every
class against the others. A Newton step solves a weighted least-squares problem with the
operator of :mod:`imparo.estimators.large`, K_nmᵀDK_nm/n + 2λK_mm, inexactly at first and ever
better; penalties go from the largest to the smallest, each starting where the one before has
ended (Marteau-Ferey, Bach and Rudi, 2019).
"""

from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.estimators.cells import Cells
from imparo.estimators.large import HeldOut, LargeProblem, Walked
from imparo.estimators.solve import Solved
from imparo.filters import preconditioned_steps
from imparo.progress import track
from imparo.scores import Score

# Newton steps for one penalty, at most, and the relative fall of the objective that ends them.
_NEWTON, _SMALL = 12, {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}
# A Newton step is solved to this share of its gradient, and better as that goes down.
_INEXACT = 0.1
_HALVINGS = 8


class LogisticFit:
    """Coefficients and predictions of all rows, on the way down to the minimum.

    Parameters
    ----------
    problem : LargeProblem
    cells : boolean array of shape (C,)
        Cells to fit.
    held : boolean array of shape (C,), optional
        Cells to predict.
    center_rows : array of shape (m,) or None
        The rows that are centers: their weights make a better preconditioner.
    """

    def __init__(
        self, problem: LargeProblem, cells: Array, held: Array | None, center_rows: Array | None
    ) -> None:
        self._problem, self._cells, self._held = problem, cells, held
        rows, engine = problem.rows, problem.engine
        self.engine, number = engine, np.dtype(np.float64)
        used = (rows.cell >= 0) & cells[rows.cell]
        weight = np.where(used, rows.weight, 0.0)
        self.weight = float(weight.sum(dtype=np.float64))
        # Outputs, weights and predictions of every row, in float64: objectives are sums.
        self._Y = engine.asarray(rows.Y, number)
        self._ones = (self._Y + 1) / 2  # codes are −1 and 1
        self._w = engine.asarray((weight / self.weight)[:, None], number)
        self._rows_of_centers = None
        if center_rows is not None:
            self._rows_of_centers = engine.asarray(center_rows)
        n, n_outputs = rows.Y.shape
        self.alpha = engine.zeros((len(problem.map), n_outputs), number)
        self._beta: Any = None  # of no use before there is a factor
        self.F = engine.zeros((n, n_outputs), number)
        self.shift = engine.zeros((n_outputs,), number)

    def _objective(self, F: Array, beta: Array, penalty: float) -> Array:
        """Return the objective of every output; ‖f‖² is ‖β‖² with β = Tα."""
        xp, margins = self.engine.xp, -self._Y * F
        losses = xp.logaddexp(xp.zeros_like(margins), margins)
        return (self._w * losses).sum(axis=0) + penalty * (beta**2).sum(axis=0)

    def _probability(self, F: Array) -> Array:
        """Return P(y = 1)."""
        xp = self.engine.xp
        return xp.exp(-xp.logaddexp(xp.zeros_like(F), -F))

    def minimise(self, penalty: float, most: int) -> int:
        """Go to the minimum at one penalty; return the passes over the rows that it took.

        Parameters
        ----------
        penalty : float
        most : int
            Iterations of conjugate gradients in a Newton step.

        Returns
        -------
        int
        """
        engine = self.engine
        if self._problem.prepare(2 * penalty) or self._beta is None:
            self._beta = self._problem.features_of(self.alpha)
        self._problem.preconditioner.set_penalty(2 * penalty, self._center_weights())
        passes = 0
        before = self._objective(self.F + self.shift, self._beta, penalty)
        for _ in range(_NEWTON):
            self._set_shift()
            passes += self._newton_step(penalty, most)
            now = self._objective(self.F + self.shift, self._beta, penalty)
            fall = engine.to_host(before - now)
            before, size = now, np.abs(engine.to_host(now)) + 1e-300
            if (fall <= _SMALL[self._problem.rows.source.dtype] * size).all():
                break
        self._set_shift()
        return passes

    def _center_weights(self) -> Array:
        """Return the curvature of the loss at the centers, averaged over the outputs."""
        p = self._probability(self.F + self.shift)
        curvature = (p * (1 - p)).mean(axis=1)
        dtype = self._problem.rows.source.dtype
        if self._rows_of_centers is None:
            mean = float((self._w[:, 0] * curvature).sum())
            found = self.engine.zeros((len(self.alpha),), dtype)
            found += mean
            return found
        return self.engine.cast(curvature[self._rows_of_centers], dtype)

    def _newton_step(self, penalty: float, most: int) -> int:
        P, engine, values = self._problem.preconditioner, self.engine, self._problem.values
        dtype = self._problem.product_type
        p = self._probability(self.F + self.shift)
        slopes = self._w * (p - self._ones)
        curvature = self._w * p * (1 - p)

        gradient = values.back(self._cells, slopes, dtype)
        pulled, total = self.alpha * 0.0, curvature.sum(axis=0) + 1e-300
        if self._problem.has_intercept:
            pulled = values.back(self._cells, curvature, dtype)
        rest = P.pulled_back(-gradient, -self._beta)
        step_F = engine.zeros(tuple(self.F.shape), np.dtype(np.float64))
        last: list[Array] = []

        def product(direction: Array) -> Array:
            beta = P.to_beta(direction)
            alpha = P.to_alpha(beta)
            image = values.product(
                self._cells, alpha, row_weights=curvature, predictions=step_F, held=self._held,
                dtype=dtype,
            )  # fmt: skip
            # The intercept follows: its best change for this one of F is taken out.
            shift = self.shift * 0.0
            if self._problem.has_intercept:
                shift = -(curvature * step_F).sum(axis=0) / total
            last[:] = [alpha, beta, shift]
            return P.pulled_back(image + pulled * shift, beta)

        size = float((rest**2).sum()) ** 0.5
        wanted = min(_INEXACT, size)
        total_alpha, total_beta = self.alpha * 0.0, self._beta * 0.0
        total_F, total_shift, passes = self.F * 0.0, self.shift * 0.0, 1
        steps = preconditioned_steps(rest, product, engine)
        for _, (length, left) in zip(range(most), steps, strict=False):
            passes += 1
            total_alpha = total_alpha + length * last[0]
            total_beta = total_beta + length * last[1]
            total_F = total_F + length * step_F
            total_shift = total_shift + length * last[2]
            if left <= wanted:
                break
        self._move(total_alpha, total_beta, total_F, total_shift, penalty)
        return passes

    def _move(self, alpha: Array, beta: Array, F: Array, shift: Array, penalty: float) -> None:
        """Take the step of every output, halved until its objective falls."""
        engine = self.engine
        before = self._objective(self.F + self.shift, self._beta, penalty)
        share = engine.zeros((alpha.shape[1],), np.dtype(np.float64)) + 1.0
        for _ in range(_HALVINGS):
            now = self._objective(
                self.F + self.shift + share * (F + shift), self._beta + share * beta, penalty
            )
            worse = ~(now <= before)
            if not bool(worse.any()):
                break
            share = engine.xp.where(worse, share / 2, share)
        else:
            share = engine.xp.where(worse, share * 0.0, share)
        self.alpha, self._beta = self.alpha + share * alpha, self._beta + share * beta
        self.F, self.shift = self.F + share * F, self.shift + share * shift

    def _set_shift(self) -> None:
        """Set the intercepts to their best by Newton's method: no pass is needed."""
        if not self._problem.has_intercept:
            return
        for _ in range(20):
            p = self._probability(self.F + self.shift)
            slope = (self._w * (p - self._ones)).sum(axis=0)
            curvature = (self._w * p * (1 - p)).sum(axis=0)
            step = slope / (curvature + 1e-12)
            self.shift = self.shift - step.clip(-2.0, 2.0)
            if float(abs(step).max()) < 1e-10:
                break

    def start(self, alpha: Array, shift: Array) -> None:
        """Begin with coefficients, at the cost of one pass."""
        engine, problem = self.engine, self._problem
        self.alpha = engine.asarray(alpha, np.float64)
        self.shift = engine.asarray(shift, np.float64)
        problem.values.product(
            self._cells, self.alpha, predictions=self.F, held=self._held,
            dtype=problem.product_type,
        )  # fmt: skip
        self._beta = None


def walk_logistic(
    problem: LargeProblem, cells: Cells, split: int, penalties: Array, most: int,
    score: Score, center_rows: Array | None, progress: Any,
) -> Walked:  # fmt: skip
    """Go through all penalties on the fitted rows of one split.

    Parameters
    ----------
    problem : LargeProblem
    cells : Cells
    split : int
    penalties : array of shape (L,)
        From the largest to the smallest.
    most : int
        Iterations of conjugate gradients in a Newton step.
    score : Score
    center_rows : array of shape (m,) or None
    progress : bool or callable

    Returns
    -------
    Walked
        With one iteration for each penalty.
    """
    engine = problem.engine
    fit = LogisticFit(problem, cells.fitted[split], cells.held[split], center_rows)
    judge = HeldOut(problem.rows, cells.held[split], engine)
    sums = np.full((2, len(penalties), 1), np.nan)
    starts: list[Array] = []
    shifts: list[Array] = []
    for i, penalty in track(enumerate(penalties), len(penalties), "penalties", progress):
        fit.minimise(float(penalty), most)
        wrong = judge.sums(fit.F, fit.shift, score)[0]
        losses = judge.log_loss(fit.F, fit.shift)
        sums[:, i, 0] = wrong, losses
        starts.append(engine.to_host(fit.alpha))
        shifts.append(engine.to_host(fit.shift))
    return Walked(sums, judge.weight, starts, shifts)


def solve_logistic(
    problem: LargeProblem, cells: Cells, penalty: float, most: int,
    start: tuple[Array, Array] | None, center_rows: Array | None,
) -> tuple[Solved, int]:  # fmt: skip
    """Return the model at one penalty, fitted to all rows, and its passes over them.

    Parameters
    ----------
    problem : LargeProblem
    cells : Cells
    penalty : float
    most : int
    start : pair of arrays of shape (m, T) and (T,), or None
        Coefficients and intercepts to begin with.
    center_rows : array of shape (m,) or None

    Returns
    -------
    Solved, int
    """
    fit = LogisticFit(problem, np.ones(len(cells), bool), None, center_rows)
    if start is not None:
        fit.start(*start)
    passes = fit.minimise(penalty, most)
    host, dtype = problem.engine.to_host, problem.rows.source.dtype
    return Solved(host(fit.alpha).astype(dtype), host(fit.shift), primal=False), passes
