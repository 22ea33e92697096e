"""A sweep over rows that takes the steps of all candidates side by side."""

from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.losses import Loss
from imparo.sgm.recursion import take_steps
from imparo.sgm.slopes import Slope
from imparo.sgm.spaces import Space
from imparo.sgm.state import State, average, columns_of


class Sweep:
    """Stochastic gradient steps of C candidates on T outputs (thesis, algorithm 6.2).

    w_{t+1} = w_t − η_t Σ_i v_iℓ'₋(y_i, f_t(x_i))Φ(x_i)/b, the sum over the b rows of a step.
    The weighted average w̄_t = Σ_{k≤t}η_kw_k/a_t, a_t = Σ_{k≤t}η_k, needs no copy of iterates:
    with the terms c_i of the steps, w_{t+1} = Σc_iΦ_i and w̄_t = w_{t+1} − Σa_ic_iΦ_i/a_t.

    Every candidate sees the same rows in the same order. One whose numbers overflow ceases to
    move and is marked in ``dead``.

    Parameters
    ----------
    space : Space
        With K = C·T columns, the outputs of a candidate side by side.
    state : State
        Where to begin: candidates, steps taken before, whether iterates are averaged and
        there is a feature that is 1 everywhere. The space holds its weights.
    loss : Loss
    Y : array of shape (n, T)
        Outputs divided by ``unit``.
    weight : array of shape (n,)
        v, of mean 1.
    batch : int
        b.
    unit : float
        The loss is that of unit·y and unit·f.
    """

    def __init__(
        self,
        space: Space,
        state: State,
        loss: Loss,
        Y: Array,
        weight: Array,
        *,
        batch: int = 1,
        unit: float = 1.0,
    ) -> None:
        self.space, self.schedule, self.loss = space, state.schedule, loss
        self.Y, self.weight, self.batch, self.unit = Y, weight, batch, unit
        self.slope = Slope(loss, unit)
        self.averaged = state.V is not None
        self.steps, self.a = state.steps, state.a
        self.intercept, self._sums = state.intercept, state.sums
        self._later: list[tuple[Array, Array]] = []
        self.candidates = np.arange(len(self.schedule))
        self.dead = np.zeros(len(self.schedule), bool)
        #: Losses before each step, those of step t weighted by t: later ones tell more.
        self.progressive = state.progressive
        self.counts_progress = False
        self._length = self._done = 0

    @property
    def n_outputs(self) -> int:
        """Number T of outputs."""
        return self.Y.shape[1]

    def begin(self, n_rows: int) -> None:
        """Begin a pass over so many rows; its last step may have fewer rows than others."""
        self._length, self._done = n_rows, 0

    def advance(self, rows: Any, positions: Array) -> None:
        """Take the steps of some rows, in order; a step may be handed over in parts.

        Parameters
        ----------
        rows : as the space takes them, of length b
        positions : array of shape (b,)
            Of the outputs and weights.
        """
        start = 0
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            while start < len(positions):
                size = self._block(len(positions) - start)
                part = slice(start, start + size)
                self._take(rows[part], positions[part])
                start += size

    def _block(self, available: int) -> int:
        """Return how many rows to take together: those of whole steps, or parts of one."""
        most, into = min(self.space.block, available), self._done % self.batch
        if into:
            return min(most, self.batch - into)
        return most // self.batch * self.batch if self.batch <= most else most

    def _take(self, rows: Any, positions: Array) -> None:
        T, dtype = self.n_outputs, self.Y.dtype
        index = self._done + np.arange(len(positions))
        group = index // self.batch
        in_step = np.minimum(self.batch, self._length - group * self.batch)
        group = group - group[0]
        sizes = self.schedule.sizes(self.steps + 1, int(group[-1]) + 1)
        sums = self.a + np.cumsum(sizes / self.schedule.eta, axis=0)
        share = (self.weight[positions] / in_step)[:, None]
        step = np.repeat((share * sizes[group]).astype(dtype), T, axis=1)
        Y = np.tile(self.Y[positions], (1, len(self.schedule)))
        self._done += len(positions)
        ended = self._done % self.batch == 0 or self._done >= self._length
        F = self.space.predict(rows)
        if self.intercept is not None:
            F += self.intercept.astype(dtype)
        if group[-1] > 0:
            gram = self.space.gram(rows).astype(dtype, copy=False)
            if self.intercept is not None:
                gram += 1
            C = take_steps(F, gram, group, step, Y, self.slope)
        else:
            C = -step * self.slope(Y, F)
        if self.counts_progress:
            self._count(F, positions, self.steps + 1 + group)
        D = None
        if self.averaged:
            D = np.repeat(sums[group], T, axis=1).astype(dtype) * C
        self._bury(F, C, D)
        self.space.add(rows, C, D, later=not ended)
        self._move_intercept(C, D, later=not ended)
        if ended:
            self.space.commit()
            self.steps += len(sizes)
            self.a = sums[-1]

    def _count(self, F: Array, positions: Array, times: Array) -> None:
        # In float64: squares of what float32 just holds are summed here.
        values = self.loss.value(
            self.unit * self.Y[positions][:, None, :].astype(np.float64),
            self.unit * F.reshape(len(F), -1, self.n_outputs).astype(np.float64),
        ).mean(axis=2)
        self.progressive = self.progressive + (times * self.weight[positions]) @ values

    def _bury(self, F: Array, C: Array, D: Array | None) -> None:
        """Let candidates whose numbers overflow rest, and go on with the others."""
        # Losses with bounded slopes have finite ones at predictions that are not.
        lost = ~(np.isfinite(F) & np.isfinite(C)).all(axis=0)
        if D is not None:
            lost |= ~np.isfinite(D).all(axis=0)
        if lost.any():
            self.dead |= lost.reshape(-1, self.n_outputs).any(axis=1)
        if self.dead.any():
            columns = np.repeat(self.dead, self.n_outputs)
            C[:, columns] = 0
            if D is not None:
                D[:, columns] = 0

    def _move_intercept(self, C: Array, D: Array | None, *, later: bool) -> None:
        if self.intercept is None:
            return
        assert self._sums is not None
        zero = np.zeros_like(self._sums)
        self._later.append((C.sum(axis=0), zero if D is None else D.sum(axis=0)))
        if not later:
            for c, d in self._later:
                self.intercept, self._sums = self.intercept + c, self._sums + d
            self._later = []

    def predict(self, rows: Any) -> Array:
        """Return predictions by the last or the average iterate, shape (b, C, T).

        Parameters
        ----------
        rows : as the space takes them
        """
        a = self._column_sums()
        with np.errstate(over="ignore", invalid="ignore"):
            F = self.space.predict(rows, a)
            F += self._intercepts(a).astype(F.dtype)
        return F.reshape(len(F), -1, self.n_outputs)

    def state(self, candidate: int | None = None) -> State:
        """Return a copy of all that is needed to go on: of all candidates, or of one alive."""
        W, V = self.space.weights()
        whole = State(
            W=W, V=V, intercept=self.intercept, sums=self._sums, a=self.a, steps=self.steps,
            schedule=self.schedule, progressive=self.progressive,
        )  # fmt: skip
        everyone = np.arange(len(self.schedule))
        return whole.take(everyone if candidate is None else np.array([candidate]))

    def keep(self, candidates: Array) -> None:
        """Go on with some of the candidates alive only, given by position or mask."""
        chosen = np.arange(len(self.schedule))[candidates]
        columns = columns_of(chosen, self.n_outputs)
        self.space.keep(columns)
        self.schedule = self.schedule.take(chosen)
        self.a, self.dead = self.a[chosen], self.dead[chosen]
        self.progressive, self.candidates = self.progressive[chosen], self.candidates[chosen]
        if self.intercept is not None:
            assert self._sums is not None
            self.intercept, self._sums = self.intercept[columns], self._sums[columns]

    def _column_sums(self) -> Array | None:
        return np.repeat(self.a, self.n_outputs) if self.averaged else None

    def _intercepts(self, a: Array | None) -> Array:
        if self.intercept is None:
            return np.zeros(len(self.schedule) * self.n_outputs)
        return average(self.intercept, self._sums, a)
