"""From a path to a choice: leave-one-out, GCV, hold-out and V-fold.

All four score every level of a filter from one decomposition (leave-one-out, GCV) or
one for each split (hold-out, V-fold). They see the rows through :class:`Problem`
only, so that exact and approximate estimators share them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np

from imparo.engine import Array, default_engine
from imparo.filters import Filter, Iterative, Tikhonov
from imparo.filters.base import MARGIN
from imparo.scores import RootMeanSquare, Score, Scores

# Levels are scored so many at a time that their components take about this much.
_CHUNK_BYTES = 32 * 2**20
# GCV is 0/0 where a model interpolates: with less freedom than this it does not judge.
LEAST_FREEDOM = 0.1


class Problem(Protocol):
    """Rows turned into a symmetric matrix, right-hand sides, and their spectrum.

    With Φ the rows' features (implicitly, for a kernel), each scaled by the root of
    its weight and centered if there is an intercept, ΦΦᵀ = U diag(σ) Uᵀ. U is
    orthogonal to the direction of the mean where there is an intercept. The matrix is
    used up by the first look at the spectrum, and is then no longer there.
    """

    Y: Array
    weight: Array
    total: float
    offset: Array
    primal: bool
    matrix: Array
    rhs: Array

    @property
    def values(self) -> Array:
        """The r eigenvalues σ."""

    @property
    def floor(self) -> float:
        """No direction is amplified by more than 1/floor."""

    @property
    def components(self) -> Array:
        """UᵀY, shape (r, T)."""

    @property
    def has_intercept(self) -> bool:
        """Whether the mean is fitted without penalty."""

    def training_rows(self) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows and their part of U."""

    def evaluation(self, X: Any) -> tuple[Array, Array]:
        """Return B, b with f(x) = offset + B(g∘c) + g(0)·b, for rows not trained on."""

    def solution_of_levels(self, G: Array, G_null: float) -> Array:
        """Return the solution that :meth:`model` takes, from g at one level."""

    def model(self, solution: Array) -> tuple[Array, Array]:
        """Return coefficients and intercept from a solution of matrix·solution = rhs."""

    def fitted(self, solution: Array) -> Array:
        """Return the predictions of a solution on the training rows."""

    def features(self, X: Any) -> Any:
        """Return what the coefficients of :meth:`model` multiply, for new rows."""


def shrinkage(
    filter: Filter, values: Array, levels: Array, floor: float
) -> tuple[Array, Array, Array, Array]:
    """Return g and 1 − σg on the spectrum, and both on its null space.

    Directions that a level would amplify by more than 1/floor are dropped instead:
    at that level they cannot be told from rounding errors.

    Parameters
    ----------
    filter : Filter
        Linear.
    values : array of shape (r,)
    levels : array of shape (L,)
    floor : float

    Returns
    -------
    G, G_null, rest, rest_null : arrays of shape (r, L), (L,), (r, L) and (L,)

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.filters import Tikhonov
    >>> from imparo.selection import shrinkage
    >>> G, G_null, *_ = shrinkage(Tikhonov(), np.array([2.0, 1e-20]), np.array([0.0]), 1e-15)
    >>> G.ravel(), G_null
    (array([0.5, 0. ]), array([0.]))
    """
    sigma = np.append(values, 0.0).astype(np.float64)
    scale = float(np.max(sigma)) * MARGIN
    G = filter.g(sigma, levels, scale)
    rest = filter.residual(sigma, levels, scale)
    dropped = ~(G * max(floor, np.finfo(np.float64).tiny) <= 1)
    G, rest = np.where(dropped, 0.0, G), np.where(dropped, 1.0, rest)
    G, rest = G.astype(values.dtype), rest.astype(values.dtype)
    return G[:-1], G[-1], rest[:-1], rest[-1]


def _chunks(problem: Problem, n_levels: int) -> Iterator[slice]:
    width = max(1, len(problem.values)) * problem.Y.shape[1] * problem.Y.itemsize
    size = max(1, _CHUNK_BYTES // width)
    return (slice(i, i + size) for i in range(0, n_levels, size))


def _weigh(shrunk: Array, components: Array) -> Array:
    """Return shrunk components of every level side by side, shape (r, L·T)."""
    r, n_levels = shrunk.shape
    wide = shrunk[:, :, None] * components[:, None, :]
    return wide.reshape(r, n_levels * components.shape[1])


def _residuals(problem: Problem, rest: Array, rest_null: Array) -> Iterator[Any]:
    """Yield blocks of rows: residuals (b, L, T), squares of U (b, r), null part (b, 1)."""
    product = default_engine().product
    root = np.sqrt(problem.weight)
    mixed = _weigh(rest, problem.components)
    shape = (-1, rest.shape[1], problem.Y.shape[1])
    eps = np.finfo(rest.dtype).eps
    for rows, U in problem.training_rows():
        s = root[rows, None]
        squares = np.square(U)
        null = 1 - squares.sum(axis=1, keepdims=True)
        if problem.has_intercept:
            null -= s * s / problem.total
        # Below rounding a row has no part in the null space: 1e-16 of one would count
        # where 1 − h is as small as λ.
        null[null < 10 * U.shape[1] * eps] = 0
        leftover = s * (problem.Y[rows] - problem.offset) - product(U, problem.components)
        leftover *= null > 0
        E = product(U, mixed).reshape(shape) + leftover[:, None, :] * rest_null[:, None]
        yield rows, E / s[:, :, None], squares, null


def leave_one_out(problem: Problem, filter: Filter, levels: Array, score: Score) -> Scores:
    """Return the leave-one-out errors at every level, from one decomposition.

    The error of row i in a fit without it is (y_i − f_i)/(1 − h_i), h the diagonal of
    the hat matrix. The ridge nλ is kept where n − 1 rows are fitted. Cost 2nrL(1 + T).

    Parameters
    ----------
    problem : Problem
    filter : Tikhonov
        The identity holds for no other filter.
    levels : array of shape (L,)
        Ridges nλ.
    score : Score

    Returns
    -------
    Scores
    """
    if not isinstance(filter, Tikhonov):
        raise ValueError(
            f"leave-one-out has a closed form for the Tikhonov filter only, not for "
            f"{filter!r}; use validation='gcv', a fraction or a number of folds"
        )
    product, tiny = default_engine().product, np.finfo(problem.Y.dtype).tiny
    sums = np.zeros((2, 2, len(levels)))
    _, _, rest, rest_null = shrinkage(filter, problem.values, levels, problem.floor)
    for some in _chunks(problem, len(levels)):
        part = rest[:, some], rest_null[some]
        for rows, E, squares, null in _residuals(problem, *part):
            Y, w = problem.Y[rows], problem.weight[rows]
            D = product(squares, part[0]) + null * part[1]  # the diagonal of I − H
            with np.errstate(divide="ignore", invalid="ignore"):
                left_out = np.where(tiny < D, 1 / D, np.inf)[:, :, None] * E
            sums[0, :, some] += score(Y, Y[:, None, :] - left_out, w)
            sums[1, :, some] += score(Y, Y[:, None, :] - E, w)
    return _scores(sums, problem.total, score)


def generalized_cross_validation(problem: Problem, filter: Filter, levels: Array) -> Scores:
    """Return the GCV errors: root mean squared residual over mean of 1 − h.

    Infinite where the mean of 1 − h is below 0.1: near interpolation both go to 0 and
    their ratio means nothing. Classes are judged by the squared errors of their codes.

    Parameters
    ----------
    problem : Problem
    filter : Filter
        Linear.
    levels : array of shape (L,)

    Returns
    -------
    Scores
    """
    if not filter.linear:
        raise ValueError(
            f"GCV needs a filter that is linear in y, and {filter!r} is not; use "
            "validation=0.2 or a number of folds"
        )
    n, score = len(problem.Y), RootMeanSquare()
    sums = np.zeros((2, 2, len(levels)))
    _, _, rest, rest_null = shrinkage(filter, problem.values, levels, problem.floor)
    for some in _chunks(problem, len(levels)):
        for rows, E, *_ in _residuals(problem, rest[:, some], rest_null[some]):
            Y, w = problem.Y[rows], problem.weight[rows]
            sums[:, :, some] += score(Y, Y[:, None, :] - E, w)
    null = n - len(rest) - problem.has_intercept
    freedom = (rest.sum(axis=0, dtype=float) + null * rest_null) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        sums[0] = np.where(freedom > LEAST_FREEDOM, sums[0] / freedom**2, np.inf)
    return _scores(sums, problem.total, score)


def iterating_pays(filter: Iterative, levels: Array, size: int) -> bool:
    """Return whether so many products cost less than a spectrum of that size.

    A product reads the matrix once, at the speed of memory, while a spectrum computes
    at that of the processor: they meet at about size/4 products.
    """
    return not filter.linear or int(np.max(levels)) < max(100, size // 4)


@dataclass(frozen=True)
class Split:
    """A fit on a part of the rows, and the rows held out from it."""

    problem: Problem
    X: Any
    Y: Array
    weight: Array


def held_out(
    splits: Iterator[Split],
    filter: Filter,
    levels_of: Callable[[Problem], Array],
    score: Score,
) -> Scores:
    """Return the errors on held-out rows, pooled over splits, at every level.

    Parameters
    ----------
    splits : iterator of Split
        One for a hold-out, V for V folds.
    filter : Filter
    levels_of : callable
        The levels of a problem: ridges nλ depend on its n.
    score : Score

    Returns
    -------
    Scores
    """
    sums: Any = 0.0
    held = fitted = 0.0
    for split in splits:
        levels = levels_of(split.problem)
        size = len(split.problem.matrix)
        if isinstance(filter, Iterative) and iterating_pays(filter, levels, size):
            sums = sums + _walk_iterates(split, filter, levels, score)
        else:
            sums = sums + _walk_spectrum(split, filter, levels, score)
        held += float(split.weight.sum())
        fitted += split.problem.total
    sums[0] /= held
    sums[1] /= fitted
    return _scores(sums, 1.0, score)


def _walk_spectrum(split: Split, filter: Filter, levels: Array, score: Score) -> Array:
    problem, product = split.problem, default_engine().product
    sums = np.zeros((2, 2, len(levels)))
    B, B_null = problem.evaluation(split.X)
    G, G_null, rest, rest_null = shrinkage(filter, problem.values, levels, problem.floor)
    for some in _chunks(problem, len(levels)):
        F = product(B, _weigh(G[:, some], problem.components))
        F = F.reshape(len(B), -1, problem.Y.shape[1]) + problem.offset
        F += B_null[:, None, :] * G_null[some, None]
        sums[0, :, some] += score(split.Y, F, split.weight)
        for rows, E, *_ in _residuals(problem, rest[:, some], rest_null[some]):
            Y = problem.Y[rows]
            sums[1, :, some] += score(Y, Y[:, None, :] - E, problem.weight[rows])
    return sums


def _walk_iterates(split: Split, filter: Iterative, levels: Array, score: Score) -> Array:
    problem = split.problem
    sums = np.zeros((2, 2, len(levels)))
    wanted = {int(level): i for i, level in enumerate(levels)}
    steps = filter.iterates(problem.matrix, problem.rhs, primal=problem.primal)
    features = problem.features(split.X)
    for t, solution in enumerate(islice(steps, max(wanted)), start=1):
        if t in wanted:
            coef, intercept = problem.model(solution)
            F = default_engine().product(features, coef) + intercept
            sums[0, :, wanted[t]] = score(split.Y, F[:, None, :], split.weight)[:, 0]
            F = problem.fitted(solution)
            sums[1, :, wanted[t]] = score(problem.Y, F[:, None, :], problem.weight)[:, 0]
    return sums


def _scores(sums: Array, total: float, score: Score) -> Scores:
    means = np.where(np.isnan(sums), np.inf, sums) / total
    return Scores(score.finish(means[0, 0]), score.finish(means[1, 0]), means[0, 1])
