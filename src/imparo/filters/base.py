"""What every filter is, and what those that iterate have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from imparo.engine import Array, default_engine

Operator = Callable[[Array], Array]

# Steps are set for a spectrum so much larger than computed: beyond its bound the
# ν-method diverges.
MARGIN = 1 + 1e-6


class Filter(ABC):
    """A scalar function g_level(σ) that stands for 1/σ on a spectrum (thesis, ch. 3).

    The regularized solution of Mα = y is Σᵢ g(σᵢ)⟨qᵢ, y⟩qᵢ over the eigenpairs of M.
    """

    #: Whether g does not depend on y, so that the solution is linear in y.
    linear: ClassVar[bool] = True

    @property
    @abstractmethod
    def parameter(self) -> str:
        """The name of its level: "penalty", "components" or "iterations"."""

    @abstractmethod
    def g(self, sigma: Array, levels: Any, scale: float | None = None) -> Array:
        """Return g(σ) at every level.

        Parameters
        ----------
        sigma : array of shape (r,)
            Eigenvalues, not negative; the whole spectrum where the filter counts
            components.
        levels : float or array of shape (L,)
            Ridges nλ, numbers of components, or numbers of iterations.
        scale : float, optional
            An upper bound of the spectrum, for filters whose step depends on it; the
            largest of ``sigma`` if left out.

        Returns
        -------
        array of shape (r, L)
        """

    def residual(self, sigma: Array, levels: Any, scale: float | None = None) -> Array:
        """Return 1 − σg(σ), the share of each component that is not fitted.

        Parameters
        ----------
        sigma, levels, scale
            As for :meth:`g`.

        Returns
        -------
        array of shape (r, L)
        """
        sigma = np.asarray(sigma)
        return 1 - sigma[:, None] * self.g(sigma, levels, scale)


class Iterative(Filter):
    """A filter whose level is the number of steps of an iteration from 0.

    It needs products with M only, so M may be a matrix or any operator.
    """

    @property
    def parameter(self) -> str:
        """The number of steps."""
        return "iterations"

    @abstractmethod
    def iterates(
        self, M: Any, y: Array, scale: float | None = None, *, primal: bool = False
    ) -> Iterator[Array]:
        """Yield the solutions after 1, 2, … steps, without end. Cost one product a step.

        Parameters
        ----------
        M : array, LinearOperator or callable
            Symmetric positive semidefinite.
        y : array of shape (n, T)
        scale : float, optional
            An upper bound of the spectrum of M; computed if left out.
        primal : bool
            Whether M and y are ΦᵀΦ and ΦᵀY rather than the kernel matrix and Y. Only
            the conjugate gradient method distinguishes them.

        Yields
        ------
        array of shape (n, T)
            Valid until the next step: copy what is kept.
        """

    def g(self, sigma: Array, levels: Any, scale: float | None = None) -> Array:
        """Return g(σ) after each number of steps: the iteration on a diagonal matrix."""
        sigma = np.asarray(sigma)
        scale = float(np.max(sigma, initial=0.0)) if scale is None else scale
        steps = self.iterates(lambda v: sigma[:, None] * v, np.ones((len(sigma), 1)), scale)
        return collect(steps, levels)[:, :, 0].T


def collect(iterates: Iterator[Array], levels: Any) -> Array:
    """Return the iterates after each number of steps in ``levels``, shape (L, n, T)."""
    levels = check_steps(levels)
    found: dict[int, Array] = {}
    for step, solution in enumerate(islice(iterates, int(levels.max())), start=1):
        if step in levels:
            found[step] = solution.copy()
    return np.stack([found[int(level)] for level in levels])


def check_steps(levels: Any) -> Array:
    """Return ``levels`` as an array of whole numbers from 1 on, or raise."""
    levels = np.atleast_1d(np.asarray(levels))
    whole = np.isfinite(levels) & (levels == np.floor(levels))
    if levels.ndim != 1 or levels.size == 0 or not whole.all():
        raise ValueError(f"iterations must be whole numbers, not {levels.tolist()!r}")
    if levels.min() < 1:
        raise ValueError(f"iterations must be at least 1, not {levels.min():g}")
    return levels.astype(int)


def as_operator(M: Any) -> Operator:
    """Return the product with M as a function."""
    if isinstance(M, LinearOperator):
        return M.matmat
    return M if callable(M) else partial(default_engine().product, M)


def largest_eigenvalue(M: Any, n: int) -> float:
    """Return a bound of the spectrum of M, 1e-6 above it, by Lanczos steps.

    Parameters
    ----------
    M : array, LinearOperator or callable
        Symmetric positive semidefinite.
    n : int
        Its size.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.filters import largest_eigenvalue
    >>> round(largest_eigenvalue(np.diag([1.0, 4.0, 2.0]), 3), 4)
    4.0
    """
    if n == 0:
        return 0.0
    product = as_operator(M)
    if n <= 32:
        return float(np.linalg.eigvalsh(product(np.eye(n)))[-1]) * MARGIN
    operator = LinearOperator(
        (n, n), matvec=lambda v: product(v.reshape(n, 1)).ravel(), dtype=np.float64
    )
    start = np.random.RandomState(0).standard_normal(n)
    if not product(start.reshape(n, 1)).any():
        return 0.0  # ARPACK takes a vector that M maps to 0 for an error
    value = eigsh(operator, k=1, which="LA", tol=1e-7, v0=start, return_eigenvectors=False)
    return float(value[0]) * MARGIN
