"""All that a sweep must remember to go on later."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.persistence import persistent
from imparo.sgm.schedule import Schedule


def average(W: Array, V: Array | None, a: Any) -> Array:
    """Return W − V/a, the weighted average; W where nothing was averaged or no step taken.

    Parameters
    ----------
    W : array
        Weights; K or p × K of them.
    V : array of the shape of W, or None
        Σ a_ic_iΦ_i.
    a : array of shape (K,) or float, or None
    """
    if V is None or a is None:
        return W
    # V is 0 where a is. One copy and no more: there may be many columns.
    part = V / np.where(a > 0, a, 1).astype(V.dtype)
    return np.subtract(W, part, out=part)


def in_use(W: Array, V: Array | None) -> Array:
    """Return the positions of points with a weight, be it in the average alone."""
    used = W.any(axis=1)
    return np.flatnonzero(used if V is None else used | V.any(axis=1))


def columns_of(candidates: Array, n_outputs: int) -> Array:
    """Return the columns of some candidates: their outputs are side by side."""
    return (candidates[:, None] * n_outputs + np.arange(n_outputs)).ravel()


@persistent
@dataclass(frozen=True, eq=False)
class State:
    """Weights of C candidates on T outputs after some steps.

    Attributes
    ----------
    W : array of shape (p, C·T)
    V : array of shape (p, C·T) or None
        Σ a_ic_iΦ_i, which the average is made of.
    intercept, sums : arrays of shape (C·T,) or None
        The same for a feature that is 1 everywhere.
    a : array of shape (C,)
        Σ η_k/η: that of steps themselves might overflow.
    steps : int
        t.
    schedule : Schedule
    progressive : array of shape (C,)
        Losses before each step, those of step t weighted by t.
    """

    W: Array
    V: Array | None
    intercept: Array | None
    sums: Array | None
    a: Array
    steps: int
    schedule: Schedule
    progressive: Array

    @classmethod
    def zero(
        cls, p: int, T: int, schedule: Schedule, dtype: np.dtype, *, averaged: bool,
        intercept: bool,
    ) -> "State":  # fmt: skip
        """Return w₁ = 0 for every candidate.

        Parameters
        ----------
        p, T : int
            Numbers of features, or points, and of outputs.
        schedule : Schedule
        dtype : dtype
        averaged, intercept : bool

        Returns
        -------
        State
        """
        C = len(schedule)
        return cls(
            W=np.zeros((p, C * T), dtype),
            V=np.zeros((p, C * T), dtype) if averaged else None,
            intercept=np.zeros(C * T) if intercept else None,
            sums=np.zeros(C * T) if intercept else None,
            a=np.zeros(C),
            steps=0,
            schedule=schedule,
            progressive=np.zeros(C),
        )

    @property
    def n_outputs(self) -> int:
        """Number T of outputs."""
        return self.W.shape[1] // len(self.schedule)

    def first(self, schedule: Schedule, *, averaged: bool) -> "State":
        """Return a state in which candidates of another schedule begin where the first is.

        Parameters
        ----------
        schedule : Schedule
        averaged : bool
            An average that was not kept before begins with the next step.

        Returns
        -------
        State
        """
        C, T = len(schedule), self.n_outputs
        W, V, sums = self.W[:, :T], self.V, self.sums
        # a, and what is made with it, in the unit of each candidate's own η.
        ratio = self.schedule.eta[0] / schedule.eta
        a, ratios = self.a[0] * ratio, np.repeat(ratio, T)
        if self.V is None or not averaged:
            V, a = np.zeros_like(W) if averaged else None, np.zeros(C)
            sums = None if sums is None else np.zeros_like(sums)
        return State(
            W=np.tile(W, (1, C)),
            V=None if V is None else np.tile(V[:, :T], (1, C)) * ratios.astype(V.dtype),
            intercept=None if self.intercept is None else np.tile(self.intercept[:T], C),
            sums=None if sums is None else np.tile(sums[:T], C) * ratios,
            a=a,
            steps=self.steps,
            schedule=schedule,
            progressive=np.zeros(C),
        )

    def take(self, candidates: Array) -> "State":
        """Return a copy of the state of some candidates, given by position."""
        columns = columns_of(candidates, self.n_outputs)
        return State(
            W=self.W[:, columns],
            V=None if self.V is None else self.V[:, columns],
            intercept=None if self.intercept is None else self.intercept[columns],
            sums=None if self.sums is None else self.sums[columns],
            a=self.a[candidates],
            steps=self.steps,
            schedule=self.schedule.take(candidates),
            progressive=self.progressive[candidates],
        )

    def rescaled(self, factor: float, shift: Array) -> "State":
        """Return the state of outputs factor·y + shift, the shift as far as it can be kept.

        Parameters
        ----------
        factor : float
        shift : array of shape (T,)
            Added to the intercepts; 0 where there are none.

        Returns
        -------
        State
        """
        unit = self.W.dtype.type(factor)
        intercept, sums = self.intercept, self.sums
        if intercept is not None:
            intercept = factor * intercept + np.tile(shift, len(self.schedule))
        return replace(
            self,
            W=unit * self.W,
            V=None if self.V is None else unit * self.V,
            intercept=intercept,
            sums=None if sums is None else factor * sums,
        )

    def rows(self, positions: Array) -> "State":
        """Return the state of some features or points only."""
        return replace(
            self, W=self.W[positions], V=None if self.V is None else self.V[positions]
        )

    def merged(self, places: Array) -> "State":
        """Return the state with the weights of points at the same place added up."""

        def added(M: Array) -> Array:
            total = np.zeros((int(places.max()) + 1, M.shape[1]), M.dtype)
            np.add.at(total, places, M)
            return total

        return replace(self, W=added(self.W), V=None if self.V is None else added(self.V))

    def padded(self, n: int) -> "State":
        """Return the state with n more points, of weight 0, after those that there are."""
        more = np.zeros((n, self.W.shape[1]), self.W.dtype)
        V = None if self.V is None else np.concatenate([self.V, more])
        return replace(self, W=np.concatenate([self.W, more]), V=V)

    def solution(self, candidate: int = 0) -> tuple[Array, Array]:
        """Return the weights (p, T) and intercepts (T,): of the average where it was kept.

        Parameters
        ----------
        candidate : int

        Returns
        -------
        tuple of arrays
        """
        T = self.n_outputs
        one = self.take(np.array([candidate]))
        a = None if one.V is None else one.a
        weights = average(one.W, one.V, a)
        return weights, np.zeros(T) if one.intercept is None else average(
            one.intercept, one.sums, a
        )
