"""Where the weights live: in R^p, or in the span of the rows.

A space holds the weights of K columns (candidates times outputs) and, where iterates are
averaged, the sums that the average is made of. It predicts rows, gives their inner products,
and adds multiples of their features. What a row is, is the space's own affair: its features,
or its position among the points of an expansion.
"""

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from imparo.engine import CACHED_COLUMNS, Array, default_engine, row_blocks
from imparo.kernels import Kernel
from imparo.sgm.state import average, in_use

# Columns of a kernel matrix that are picked one by one where they are fewer than this share.
_FEW = 0.5


class Space(Protocol):
    """Weights of K columns and what a sweep does with them."""

    #: Rows of a block.
    block: int

    def predict(self, rows: Any, a: Array | None = None) -> Array:
        """Return predictions (b, K): by the last weights, or by W − V/a, their average."""

    def gram(self, rows: Any) -> Array:
        """Return the inner products (b, b) of the features of rows."""

    def add(self, rows: Any, C: Array, D: Array | None, *, later: bool = False) -> None:
        """Add Σ c_iφ_i to the weights and Σ d_iφ_i to the sums of the average.

        ``later`` keeps it back until :meth:`commit`.
        """

    def commit(self) -> None:
        """Add what was kept back."""

    def keep(self, columns: Array) -> None:
        """Forget all columns but these."""

    def weights(self) -> tuple[Array, Array | None]:
        """Return W and V."""


class FeatureSpace:
    """Weights of p features; rows are given as their features, dense or sparse.

    Parameters
    ----------
    W : array of shape (p, K)
        Where to start; copied.
    V : array of shape (p, K) or None
        Σ a_ic_iφ_i, for the average; None where iterates are not averaged.
    block : int
    """

    def __init__(self, W: Array, V: Array | None, block: int = 64) -> None:
        self.W, self.V, self.block = W.copy(), None if V is None else V.copy(), block
        self._later: list[Array] = []

    def predict(self, rows: Any, a: Array | None = None) -> Array:
        """Return ΦW. Cost 2bpK."""
        return default_engine().product(rows, average(self.W, self.V, a))

    def gram(self, rows: Any) -> Array:
        """Return ΦΦᵀ. Cost 2b²p."""
        return default_engine().inner(rows, rows)

    def add(self, rows: Any, C: Array, D: Array | None, *, later: bool = False) -> None:
        """Add ΦᵀC, and ΦᵀD. Cost 2bpK each."""
        pairs = [(self.W, C)] if D is None else [(self.W, C), (self.V, D)]
        if later:
            if not self._later:
                self._later = [np.zeros_like(M) for M, _ in pairs if M is not None]
            pairs = list(zip(self._later, (C for _, C in pairs), strict=True))
        for M, part in pairs:
            assert M is not None
            _accumulate(M, rows, part)

    def commit(self) -> None:
        """Add what was kept back."""
        for M, part in zip((self.W, self.V), self._later, strict=False):
            assert M is not None
            M += part
        self._later = []

    def keep(self, columns: Array) -> None:
        """Forget all columns but these."""
        self.W = np.ascontiguousarray(self.W[:, columns])
        self.V = None if self.V is None else np.ascontiguousarray(self.V[:, columns])

    def weights(self) -> tuple[Array, Array | None]:
        """Return W and V."""
        return self.W, self.V


def _accumulate(M: Array, rows: Any, C: Array) -> None:
    """Add rowsᵀC to M; of sparse rows only to the weights of columns that they have."""
    if not sparse.issparse(rows):
        default_engine().accumulate_product(M, rows, C)
        return
    used = np.unique(rows.indices)
    M[used] += rows[:, used].T @ C


class Expansion(ABC):
    """Coefficients of n points; rows are positions among them.

    Only points that were met, those with a coefficient, count in predictions.

    Parameters
    ----------
    A : array of shape (n, K)
        Where to start; copied.
    B : array of shape (n, K) or None
        As ``V`` of :class:`FeatureSpace`.
    """

    block: int

    def __init__(self, A: Array, B: Array | None) -> None:
        self.A, self.B = A.copy(), None if B is None else B.copy()
        self._later: list[tuple[Array, Array, Array | None]] = []
        self._met = np.zeros(len(A), bool)
        # The points that were met, in that order: those after ``_n_met`` are not yet known.
        self._order, self._n_met = np.empty(len(A), np.intp), 0
        self._meet(in_use(A, B))

    @abstractmethod
    def predict(self, rows: Any, a: Array | None = None) -> Array:
        """Return K(x, X)A."""

    @abstractmethod
    def gram(self, rows: Any) -> Array:
        """Return kernel values."""

    def add(self, rows: Any, C: Array, D: Array | None, *, later: bool = False) -> None:
        """Add C to the coefficients of the rows."""
        if later:
            self._later.append((rows, C, D))
            return
        # A row may come twice where rows are drawn with replacement.
        np.add.at(self.A, rows, C)
        if D is not None:
            assert self.B is not None
            np.add.at(self.B, rows, D)
        self._meet(rows[C.any(axis=1)])

    def commit(self) -> None:
        """Add what was kept back."""
        waiting, self._later = self._later, []
        for rows, C, D in waiting:
            self.add(rows, C, D)

    def keep(self, columns: Array) -> None:
        """Forget all columns but these, and points that they do not use."""
        self.A = np.ascontiguousarray(self.A[:, columns])
        self.B = None if self.B is None else np.ascontiguousarray(self.B[:, columns])
        self._met[:], self._n_met = False, 0
        self._meet(in_use(self.A, self.B))

    def weights(self) -> tuple[Array, Array | None]:
        """Return A and B."""
        return self.A, self.B

    def _meet(self, rows: Array) -> Array:
        """Remember points that have a coefficient now; return those that are new."""
        new = np.unique(rows[~self._met[rows]])
        self._order[self._n_met : self._n_met + len(new)] = new
        self._met[new], self._n_met = True, self._n_met + len(new)
        return new


class StoredExpansion(Expansion):
    """An expansion over points whose kernel matrix is in memory.

    Parameters
    ----------
    K : array of shape (n, n)
    A, B : as for :class:`Expansion`
    """

    # Entries for the inner products of a block are picked one by one: a small one needs few.
    block = 64

    def __init__(self, K: Array, A: Array, B: Array | None) -> None:
        super().__init__(A, B)
        self.K = K

    def predict(self, rows: Any, a: Array | None = None) -> Array:
        """Return K(x, X)A. Cost 2bsK for s points with a coefficient, n where most have one."""
        weights = average(self.A, self.B, a)
        if self._n_met < _FEW * len(weights):
            some = self._order[: self._n_met]
            return default_engine().product(self.K[rows[:, None], some], weights[some])
        first, last = (rows[0], rows[-1]) if len(rows) else (0, -1)
        in_a_row = last - first + 1 == len(rows) and (np.diff(rows) == 1).all()
        values = self.K[first : last + 1] if in_a_row else self.K[rows]
        return default_engine().product(values, weights)

    def gram(self, rows: Any) -> Array:
        """Return entries of the matrix."""
        return self.K[rows[:, None], rows[None, :]]


class GrowingExpansion(Expansion):
    """An expansion whose kernel values are computed when needed.

    In a first pass that is half of all pairs, and fewer where the loss has no slope at many
    points.

    Parameters
    ----------
    kernel : Kernel
    X : array or csr matrix of shape (n, d)
    A, B : as for :class:`Expansion`
    """

    # Kernel values of few rows would take as long as those of many.
    block = 512

    def __init__(self, kernel: Kernel, X: Any, A: Array, B: Array | None) -> None:
        self.kernel, self.X = kernel, X
        self._points = None if sparse.issparse(X) else np.empty_like(X)
        super().__init__(A, B)

    def _meet(self, rows: Array) -> Array:
        start, new = self._n_met, super()._meet(rows)
        if self._points is not None:
            self._points[start : self._n_met] = self.X[new]
        return new

    def predict(self, rows: Any, a: Array | None = None) -> Array:
        """Return K(x, X)A. Cost bs(2d + 2K) for s points with a coefficient."""
        product, X = default_engine().product, self.X[rows]
        F = np.zeros((len(rows), self.A.shape[1]), self.A.dtype)
        for part in row_blocks(self._n_met, CACHED_COLUMNS):
            order = self._order[part]
            points = self.X[order] if self._points is None else self._points[part]
            B = None if self.B is None else self.B[order]
            F += product(self.kernel(X, points), average(self.A[order], B, a))
        return F

    def gram(self, rows: Any) -> Array:
        """Return kernel values. Cost 2b²d."""
        return self.kernel(self.X[rows])
