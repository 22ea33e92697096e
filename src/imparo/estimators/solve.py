"""One point of a path on all rows, by the cheapest route that is exact there."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from imparo.engine import Array, default_engine, resolution
from imparo.errors import NotPositiveDefiniteError, PrecisionWarning, warn_user
from imparo.filters import Filter, Iterative, Tikhonov
from imparo.filters.base import collect
from imparo.selection import Problem, iterating_pays, shrinkage


@dataclass(frozen=True)
class Solved:
    """A model without the matrices that it came from."""

    coef: Array
    intercept: Array
    primal: bool

    def scaled(self, scale: float, shift: Array) -> Self:
        """Return the model of outputs scale·Y + shift."""
        coef, intercept = _in_units(self.coef, self.intercept, scale, shift)
        return replace(self, coef=coef, intercept=intercept)


@dataclass(frozen=True)
class Iterated(Solved):
    """A model with those that came before it: coefficients (t, p, T), intercepts (t, T)."""

    iterates: Array
    intercepts: Array

    def scaled(self, scale: float, shift: Array) -> Self:
        """Return the models of outputs scale·Y + shift."""
        iterates, intercepts = _in_units(self.iterates, self.intercepts, scale, shift)
        return replace(super().scaled(scale, shift), iterates=iterates, intercepts=intercepts)


def _in_units(coef: Array, intercept: Array, scale: float, shift: Array) -> tuple[Array, Array]:
    return coef.dtype.type(scale) * coef, (scale * intercept + shift).astype(coef.dtype)


def solve(problem: Problem, filter: Filter, value: Any) -> Solved:
    """Return the model at one value of the filter's parameter, using the problem up.

    Iterative filters iterate, unless a spectrum is cheaper; Tikhonov takes one Cholesky
    factor, a tenth of the cost of a spectrum, unless the penalty is too small for it.
    """
    size = len(problem.matrix)
    if isinstance(filter, Iterative) and iterating_pays(filter, value, size):
        steps = filter.iterates(problem.matrix, problem.rhs, primal=problem.primal)
        return _solved(problem, collect(steps, value)[0])
    if isinstance(filter, Tikhonov):
        M, ridge = problem.matrix, float(value) * problem.total
        smallest = max(resolution(M.dtype), len(M) * float(np.finfo(M.dtype).eps))
        if ridge > smallest * float(np.trace(M)):
            return _solved(problem, _by_cholesky(M, problem.rhs, ridge))
    return solve_by_spectrum(problem, filter, value)


def solve_by_spectrum(problem: Problem, filter: Filter, value: Any) -> Solved:
    """Return the model at one value from the spectrum of the problem.

    Warns
    -----
    PrecisionWarning
        If the penalty is above 0 and below what the floating-point type resolves.
    """
    level = value
    if filter.parameter == "penalty":
        level = float(value) * problem.total
        if 0 < level < problem.floor:
            warn_user(
                f"penalty={value:.1e} is below what {problem.Y.dtype} resolves on these rows, "
                f"which is {problem.floor / problem.total:.1e}; directions of the kernel "
                "matrix that are weaker are left out",
                PrecisionWarning,
            )
    G, G_null, _, _ = shrinkage(filter, problem.values, np.atleast_1d(level), problem.floor)
    return _solved(problem, problem.solution_of_levels(G[:, 0], G_null[0]))


def _solved(problem: Problem, solution: Array) -> Solved:
    return Solved(*problem.model(solution), problem.primal)


def _by_cholesky(M: Array, rhs: Array, ridge: float) -> Array:
    """Return (M + ridge·I)⁻¹rhs, using M up. Cost n³/3."""
    engine = default_engine()
    M[np.diag_indices_from(M)] += M.dtype.type(ridge)
    try:
        R = engine.cholesky(M, jitter=False, overwrite=True)
    except NotPositiveDefiniteError as error:
        raise NotPositiveDefiniteError(
            f"the kernel matrix plus {ridge:.2g} on its diagonal is not positive definite; a "
            "kernel must be: check the kernel function or matrix"
        ) from error
    return engine.solve_triangular(R, engine.solve_triangular(R, rhs, transpose=True))
