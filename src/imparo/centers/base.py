"""What every rule for centers is, and what the rules have in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from imparo.engine import Array, parse_memory, rows_within
from imparo.errors import MemoryBudgetError
from imparo.kernels import Kernel, Precomputed


@dataclass(frozen=True, eq=False)
class Chosen:
    """The rows that a rule has chosen as centers, in the order of choice.

    Parameters
    ----------
    rows : array of int of shape (m,)
        Positions in the candidate rows; one may come again where draws are with
        replacement.
    weights : array of shape (m,)
        1/(N·P(i)) for a row drawn with probability P(i) from N candidates, so that the
        mean of weight·φ(x)φ(x)ᵀ over the draws is, in expectation, that over all
        candidates; ones where the rule has no such probability.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.centers import Uniform
    >>> chosen = Uniform().choose(np.zeros((5, 1)), None, 3, np.random.RandomState(0))
    >>> chosen.rows, chosen.weights
    (array([4, 3, 0]), array([1., 1., 1.]))
    """

    rows: Array
    weights: Array


class CenterRule(ABC):
    """How m of n rows become the centers of a Nyström map (thesis, section 4.2).

    Rules are immutable values. Every rule is *prefix-stable*: with the same rows, kernel
    and state of the generator, a larger m keeps the first centers, so that the map of m
    centers is the beginning of every larger one.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.centers import as_rule
    >>> from imparo.kernels import Gaussian
    >>> X = np.random.RandomState(0).randn(50, 2)
    >>> rule = as_rule("pivoted")
    >>> few = rule.choose(X, Gaussian(1.0), 3, np.random.RandomState(0))
    >>> many = rule.choose(X, Gaussian(1.0), 9, np.random.RandomState(0))
    >>> bool((few.rows == many.rows[:3]).all())
    True
    """

    #: Whether the choice depends on the kernel and thus on the rows themselves. Where it
    #: does not, :func:`uniform_positions` gives the same positions without the rows.
    needs_kernel: ClassVar[bool] = True

    def choose(
        self,
        X: Any,
        kernel: Kernel | None,
        n_centers: int,
        rng: np.random.RandomState,
        memory: int | float | str | None = None,
    ) -> Chosen:
        """Choose ``n_centers`` of the rows of X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            The candidates; rows may be equal.
        kernel : Kernel or None
            None will do where ``needs_kernel`` is False.
        n_centers : int
            At least 1. Rules without replacement give no more than n.
        rng : RandomState
            Moved on by the draws.
        memory : int, float, str or None
            For the work beside X, in bytes or as ``"2GB"``; half of what there is if None.

        Returns
        -------
        Chosen
            At least one row.
        """
        check_whole("n_centers", n_centers)
        if X.shape[0] == 0:
            raise ValueError("there are no rows to choose centers from; give at least one")
        if self.needs_kernel and not isinstance(kernel, Kernel):
            raise ValueError(
                f"{type(self).__name__} chooses centers by a kernel, and kernel is {kernel!r}; "
                "give a kernel object of imparo.kernels"
            )
        if self.needs_kernel and isinstance(kernel, Precomputed):
            raise ValueError(
                f"{type(self).__name__} needs a kernel that is a function of two rows, not a "
                "precomputed matrix; give another kernel, or choose centers uniformly"
            )
        X = X.tocsr() if sparse.issparse(X) else X
        return self._choose(X, kernel, int(n_centers), rng, parse_memory(memory))

    @abstractmethod
    def _choose(
        self, X: Any, kernel: Any, n_centers: int, rng: np.random.RandomState, memory: int
    ) -> Chosen:
        """Choose, from checked arguments."""


def check_whole(name: str, value: Any) -> None:
    """Raise unless ``value`` is a whole number from 1 on."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ValueError(f"{name}={value!r} must be a whole number from 1 on")


def check_positive(name: str, value: Any) -> None:
    """Raise unless ``value`` is a positive, finite number."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 < value < np.inf:
        raise ValueError(f"{name}={value!r} must be a positive, finite number")


def checked_diagonal(kernel: Kernel, X: Any) -> Array:
    """Return K(x_i, x_i) as a new array in float64, or raise where one is no finite square."""
    diagonal = np.array(kernel.diagonal(X), np.float64)
    if not np.isfinite(diagonal).all() or diagonal.min(initial=0.0) < 0:
        raise ValueError(
            f"K(x, x) of {kernel!r} is negative or not finite for some rows; check that the "
            "kernel is positive definite, and scale the columns of X"
        )
    return diagonal


def draw(scores: Array, size: int, rng: np.random.RandomState) -> Array:
    """Draw positions with replacement, with probabilities in proportion to ``scores``.

    Positions with score 0 are never drawn. One random number a draw, so that a smaller
    ``size`` gives the first of the same draws. Cost n + size·log n.
    """
    total = np.cumsum(scores, dtype=np.float64)
    drawn = np.searchsorted(total, rng.random_sample(size) * total[-1], side="right")
    # The largest random number may round to the total.
    return np.minimum(drawn, np.flatnonzero(scores)[-1])


def block_rows(X: Any, n_columns: int, held: int, memory: int, remedy: str) -> int:
    """Return how many rows of X to evaluate a kernel for at once.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    n_columns : int
        How many rows they are compared with.
    held : int
        Bytes that are held beside the block.
    memory : int
        Bytes for all of it.
    remedy : str
        What the user may do where that is too little.

    Returns
    -------
    int
    """
    # The values, what the kernel makes them from, and centered copies of the rows.
    per_row = 8 * (4 * n_columns + (0 if sparse.issparse(X) else 3 * X.shape[1]))
    if held + per_row > memory:
        raise MemoryBudgetError(
            f"comparing rows with {n_columns:,} others to choose centers needs "
            f"{held + per_row:,} bytes and memory is {memory:,}; {remedy}"
        )
    return rows_within(per_row, memory - held)
