"""Where the weights live: in R^p, or in the span of the rows.

A space holds the weights of K columns (candidates times outputs) and, where iterates are
averaged, the sums that the average is made of. It predicts rows, gives their inner products,
and adds multiples of their features. What a row is, is the space's own affair: its features,
or its position among the points of an expansion.
"""

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from imparo.engine import Array, default_engine
from imparo.kernels import Kernel

# Columns of a kernel matrix that are picked one by one where they are fewer than this share.
_FEW = 0.5
# Columns of a kernel matrix that are evaluated together.
_CHUNK = 4096


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


def _mean(W: Array, V: Array | None, a: Array | None) -> Array:
    """Return W − V/a, the weighted average; W where nothing was averaged or no step taken."""
    if V is None or a is None:
        return W
    # V is 0 where a is. One copy and no more: there may be many columns.
    part = V / np.where(a > 0, a, 1).astype(V.dtype)
    return np.subtract(W, part, out=part)


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
        return default_engine().product(rows, _mean(self.W, self.V, a))

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


class StoredExpansion:
    """Coefficients of n points whose kernel matrix is in memory; rows are positions.

    Parameters
    ----------
    K : array of shape (n, n)
    A : array of shape (n, K)
        Where to start; copied.
    B : array of shape (n, K) or None
        As ``V`` of :class:`FeatureSpace`.
    """

    # Entries for the inner products of a block are picked one by one: a small one needs few.
    block = 64

    def __init__(self, K: Array, A: Array, B: Array | None) -> None:
        self.K, self.A, self.B = K, A.copy(), None if B is None else B.copy()
        self._later: list[tuple[Array, Array, Array | None]] = []

    def predict(self, rows: Any, a: Array | None = None) -> Array:
        """Return K(x, X)A. Cost 2bsK for s points with a coefficient, n where most have one."""
        used, weights = self._used(), _mean(self.A, self.B, a)
        if len(used) < _FEW * len(weights):
            return default_engine().product(self.K[rows[:, None], used], weights[used])
        first, last = (rows[0], rows[-1]) if len(rows) else (0, -1)
        in_a_row = last - first + 1 == len(rows) and (np.diff(rows) == 1).all()
        values = self.K[first : last + 1] if in_a_row else self.K[rows]
        return default_engine().product(values, weights)

    def _used(self) -> Array:
        """Return the points with a coefficient, be it that of the average alone."""
        used = self.A.any(axis=1)
        return np.flatnonzero(used if self.B is None else used | self.B.any(axis=1))

    def gram(self, rows: Any) -> Array:
        """Return entries of the matrix."""
        return self.K[rows[:, None], rows[None, :]]

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

    def commit(self) -> None:
        """Add what was kept back."""
        waiting, self._later = self._later, []
        for rows, C, D in waiting:
            self.add(rows, C, D)

    def keep(self, columns: Array) -> None:
        """Forget all columns but these."""
        self.A = np.ascontiguousarray(self.A[:, columns])
        self.B = None if self.B is None else np.ascontiguousarray(self.B[:, columns])

    def weights(self) -> tuple[Array, Array | None]:
        """Return A and B."""
        return self.A, self.B


class GrowingExpansion(StoredExpansion):
    """Coefficients of the points met so far; kernel values are computed when needed.

    Only points with a coefficient are evaluated: in a first pass that is half of all pairs,
    and fewer where the loss has no slope at many of them. Rows are positions among n points.

    Parameters
    ----------
    kernel : Kernel
    X : array or csr matrix of shape (n, d)
    A, B : as for :class:`StoredExpansion`
    """

    # Kernel values of few rows would take as long as those of many.
    block = 512

    def __init__(self, kernel: Kernel, X: Any, A: Array, B: Array | None) -> None:
        super().__init__(np.empty((0, 0), A.dtype), A, B)
        self.kernel, self.X = kernel, X
        self._met = np.zeros(len(A), bool)
        self._order = np.empty(len(A), np.intp)
        self._points = None if sparse.issparse(X) else np.empty_like(X)
        self._n_met = 0
        self._meet(self._used())

    def _meet(self, rows: Array) -> None:
        new = np.unique(rows[~self._met[rows]])
        start, stop = self._n_met, self._n_met + len(new)
        self._order[start:stop] = new
        if self._points is not None:
            self._points[start:stop] = self.X[new]
        self._met[new], self._n_met = True, stop

    def predict(self, rows: Any, a: Array | None = None) -> Array:
        """Return K(x, X)A. Cost bs(2d + 2K) for s points with a coefficient."""
        product, X = default_engine().product, self.X[rows]
        F = np.zeros((len(rows), self.A.shape[1]), self.A.dtype)
        for start in range(0, self._n_met, _CHUNK):
            part = slice(start, min(start + _CHUNK, self._n_met))
            order = self._order[part]
            points = self.X[order] if self._points is None else self._points[part]
            B = None if self.B is None else self.B[order]
            F += product(self.kernel(X, points), _mean(self.A[order], B, a))
        return F

    def gram(self, rows: Any) -> Array:
        """Return kernel values. Cost 2b²d."""
        return self.kernel(self.X[rows])

    def add(self, rows: Any, C: Array, D: Array | None, *, later: bool = False) -> None:
        """Add C to the coefficients of the rows."""
        super().add(rows, C, D, later=later)
        if not later:
            self._meet(rows[C.any(axis=1)])

    def keep(self, columns: Array) -> None:
        """Forget all columns but these, and points that they do not use."""
        super().keep(columns)
        self._met[:], self._n_met = False, 0
        self._meet(self._used())
