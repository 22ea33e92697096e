"""Exact problems: a block of rows in dual form (n × n) or primal form (d × d).

Both give the same functions. With S the diagonal of the roots of the weights, u its
unit vector and P = I − uuᵀ (or I without an intercept), the dual works on
M = P S K S P and the right-hand side P S Y, the primal on ΦᵀΦ with Φ = P S X.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from imparo.engine import Array, default_engine, resolution, row_blocks, rows_within
from imparo.errors import MemoryBudgetError
from imparo.filters import Spectrum
from imparo.kernels import Kernel, Linear, Precomputed
from imparo.statistics import Statistics

# Matrices of the size of K that are alive at once, at most: K and the strip of it that is
# being made; K and two of working space for the eigendecomposition; one more where K is
# small and made of statistics. `python -m benchmarks memory` measures them.
_COPIES_TO_FACTOR = 1.75
_COPIES_TO_DECOMPOSE = 3.5
_COPIES_IN_PRIMAL = 4.75
# K is made in so many strips, so that the scratch memory of a kernel is a part of K.
_STRIPS = 8


@dataclass(frozen=True)
class Rows:
    """Validated rows: features, outputs as a matrix, weights without zeros."""

    X: Any
    Y: Array
    weight: Array

    def __len__(self) -> int:
        return len(self.Y)

    def take(self, rows: Array, kernel: Kernel) -> "Rows":
        """Return a part of the rows (and of the columns, for a precomputed kernel)."""
        if len(rows) == len(self) and (np.diff(rows) == 1).all():
            return self
        X = self.held_out(rows, rows, kernel)
        return Rows(X, self.Y[rows], self.weight[rows])

    def held_out(self, rows: Array, fitted: Array, kernel: Kernel) -> Any:
        """Return rows to evaluate a model on that was fitted to others."""
        X = self.X[rows]
        return X[:, fitted] if isinstance(kernel, Precomputed) else X


def make_problem(rows: Rows, kernel: Kernel, intercept: bool, memory: int) -> "Dual | Primal":
    """Return the smaller of the two forms: d × d for a linear kernel with d < n."""
    itemsize = rows.Y.itemsize
    if isinstance(kernel, Linear) and rows.X.shape[1] < len(rows):
        _check_memory(rows.X.shape[1], "columns", _COPIES_IN_PRIMAL, itemsize, memory)
        return Primal(rows, intercept, memory)
    _check_memory(len(rows), "rows", _COPIES_TO_FACTOR, itemsize, memory)
    return Dual(rows, kernel, intercept, memory)


def _check_memory(size: int, what: str, copies: float, itemsize: int, memory: int) -> None:
    need = int(copies * size**2 * itemsize)
    if need > memory:
        most = int(np.sqrt(memory / (copies * itemsize)))
        raise MemoryBudgetError(
            f"an exact fit of {size:,} {what} needs {need:,} bytes and memory is {memory:,}; "
            f"use at most {most:,} {what} or raise memory"
        )


class _Form:
    """What the two forms share: weights, offset, and rows shifted to their mean."""

    def __init__(self, rows: Rows, kernel: Kernel, intercept: bool, memory: int) -> None:
        self.Y, self.weight, self.X = rows.Y, rows.weight, rows.X
        self.kernel, self.memory = kernel, memory
        self.total = float(rows.weight.sum(dtype=np.float64))
        self.has_intercept = intercept
        self.root = np.sqrt(rows.weight)[:, None]
        self.offset = np.zeros(rows.Y.shape[1], rows.Y.dtype)
        self.shift = None
        if intercept:
            self.offset = self._weighted_mean(rows.Y)
            if isinstance(kernel, Linear) and not sparse.issparse(rows.X):
                # Products of rows far from 0 would cancel when they are centered.
                self.shift = self._weighted_mean(rows.X)
                self.X = rows.X - self.shift

    def _weighted_mean(self, A: Array) -> Array:
        share = (self.weight / self.total).astype(A.dtype)[None, :]
        return default_engine().product(share, A)[0]

    @property
    def mean_direction(self) -> Array:
        """The unit vector u of the roots of the weights, shape (n, 1)."""
        return self.root / np.sqrt(self.root.dtype.type(self.total))

    def _shifted(self, X: Any) -> Any:
        return X if self.shift is None else X - self.shift

    def _intercept(self, coef: Array, mean: Array, means_coef: Array) -> Array:
        """Return the intercept for rows that are not shifted."""
        intercept = self.offset - mean @ means_coef
        return intercept if self.shift is None else intercept - self.shift @ coef


class Dual(_Form):
    """The n × n form, for any kernel. Memory about 3n² numbers, cost n²d + 9n³."""

    primal = False

    def __init__(self, rows: Rows, kernel: Kernel, intercept: bool, memory: int) -> None:
        super().__init__(rows, kernel, intercept, memory)
        n, K = len(rows), self._kernel_matrix()
        _check_finite(K, kernel)
        self.mean = self._weighted_mean(K) if intercept else np.zeros(n, K.dtype)
        if (rows.weight != 1).any():
            K *= self.root
            K *= self.root.T
        if intercept:
            self._taken_out = _take_out_direction(K, self.mean_direction)
        self.matrix = K
        self.rhs = self.root * (rows.Y - self.offset)

    def _kernel_matrix(self) -> Array:
        n = len(self.Y)
        K = np.empty((n, n), self.Y.dtype)
        for rows in row_blocks(n, max(256, -(-n // _STRIPS))):
            K[rows] = self.kernel(self.X[rows], self.X)
        return K

    @cached_property
    def spectrum(self) -> Spectrum:
        """The spectrum of the matrix, which is used up and is no longer there."""
        M = self.matrix
        _check_memory(len(M), "rows", _COPIES_TO_DECOMPOSE, M.itemsize, self.memory)
        del self.matrix
        if not self.has_intercept:
            return Spectrum.of(M, overwrite=True)
        # The mean's direction u has eigenvalue 0 and would mix with other weak ones.
        # Raised above all others it comes out alone, as the last.
        u = self.mean_direction
        top = M.dtype.type(2 * np.trace(M) + self._taken_out or 1.0)
        for rows in row_blocks(len(M), 256):
            M[rows] += (top * u[rows]) * u.T
        whole = Spectrum.of(M, overwrite=True)
        values = whole.values[:-1]
        # The weak directions carry the rounding errors of what was taken out, too.
        size = float(np.max(values, initial=self._taken_out))
        return Spectrum(values, whole.vectors[:, :-1], resolution(M.dtype) * size)

    @property
    def values(self) -> Array:
        """Eigenvalues of M."""
        return self.spectrum.values

    @property
    def floor(self) -> float:
        """Resolution of the eigenvalues."""
        return self.spectrum.floor

    @cached_property
    def components(self) -> Array:
        """Uᵀ P S Y."""
        return default_engine().product(self.spectrum.vectors.T, self.rhs)

    @cached_property
    def leftover(self) -> Array:
        """The part of the right-hand side in the null space, shape (n, T)."""
        U, product = self.spectrum.vectors, default_engine().product
        if U.shape[1] == len(U) - self.has_intercept:
            return np.zeros_like(self.rhs)
        rest = self.rhs - product(U, self.components)
        # Once more, as its rounding errors are divided by the penalty.
        return rest - product(U, product(U.T, rest))

    def training_rows(self) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows of U."""
        U = self.spectrum.vectors
        for rows in row_blocks(len(U), rows_within(4 * U.itemsize * U.shape[1], self.memory)):
            yield rows, U[rows]

    def features(self, X: Any) -> Array:
        """Return K(X, training rows), or X itself for a linear kernel."""
        return X if isinstance(self.kernel, Linear) else self.kernel(X, self.X)

    def fitted(self, solution: Array) -> Array:
        """Return the predictions of a solution on the training rows, from M."""
        return self.offset + default_engine().product(self.matrix, solution) / self.root

    def evaluation(self, X: Any) -> tuple[Array, Array]:
        """Return the components of new rows on the eigenvectors and the null part."""
        product = default_engine().product
        K = self.kernel(self._shifted(X), self.X)
        if self.has_intercept:
            K -= self.mean
        K *= self.root.T
        return product(K, self.spectrum.vectors), product(K, self.leftover)

    def solution_of_levels(self, G: Array, G_null: float) -> Array:
        """Return U(g∘c) plus g(0) times what is in the null space."""
        mixed = default_engine().product(self.spectrum.vectors, G[:, None] * self.components)
        return mixed + G_null * self.leftover

    def model(self, solution: Array) -> tuple[Array, Array]:
        """Return α = Sβ, or the weights Xᵀα for a linear kernel, and the intercept."""
        if self.has_intercept:
            # Nothing of the mean's direction belongs here but rounding errors, which a
            # small penalty makes large.
            u = self.mean_direction
            solution = solution - u * (u.T @ solution)
        alpha = coef = self.root * solution
        if isinstance(self.kernel, Linear):
            coef = default_engine().product(self.X.T, alpha)
        return coef, self._intercept(coef, self.mean, alpha)


class Primal(_Form):
    """The d × d form of the linear kernel. One pass over the rows, cost nd² + 9d³."""

    primal = True

    def __init__(self, rows: Rows, intercept: bool, memory: int) -> None:
        super().__init__(rows, Linear(), intercept, memory)
        n, d = rows.X.shape
        self._block = rows_within(4 * max(d, 1) * rows.Y.itemsize, memory)
        statistics = Statistics(d, rows.Y.shape[1], rows.Y.dtype)
        for part in row_blocks(n, self._block):
            statistics.add(self.X[part], rows.Y[part], rows.weight[part])
        if intercept:
            self.mean = statistics.feature_sum / statistics.weight
            self.matrix, self.rhs = statistics.centered()
            default_engine().symmetrize(self.matrix)
        else:
            self.mean = np.zeros(d, rows.Y.dtype)
            self.matrix, self.rhs = statistics.A, statistics.b
        _check_finite(self.matrix, Linear())

    @cached_property
    def _basis(self) -> tuple[Array, Array, float]:
        """Eigenvalues that are resolved, VΛ^{−1/2}, and the floor; uses the matrix up."""
        M = self.matrix
        del self.matrix
        spectrum = Spectrum.of(M, overwrite=True)
        kept = spectrum.values > spectrum.floor
        values = spectrum.values[kept]
        return values, spectrum.vectors[:, kept] / np.sqrt(values), spectrum.floor

    @property
    def values(self) -> Array:
        """Eigenvalues of ΦᵀΦ."""
        return self._basis[0]

    @property
    def floor(self) -> float:
        """Resolution of the eigenvalues."""
        return self._basis[2]

    @cached_property
    def components(self) -> Array:
        """Λ^{−1/2}Vᵀ ΦᵀY, the same as UᵀY."""
        return default_engine().product(self._basis[1].T, self.rhs)

    def training_rows(self) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of U = ΦVΛ^{−1/2}, computed anew at each pass."""
        basis, product = self._basis[1], default_engine().product
        center = self.mean @ basis
        for part in row_blocks(len(self.Y), self._block):
            yield part, self.root[part] * (product(self.X[part], basis) - center)

    def features(self, X: Any) -> Any:
        """Return the rows themselves."""
        return X

    def fitted(self, solution: Array) -> Array:
        """Return the predictions of a solution on the training rows."""
        product = default_engine().product
        return product(self.X, solution) + (self.offset - self.mean @ solution)

    def evaluation(self, X: Any) -> tuple[Array, Array]:
        """Return the components of new rows; nothing of them is in the null space."""
        values, basis, _ = self._basis
        B = default_engine().product(self._shifted(X), basis)
        B = (B - self.mean @ basis) * values
        return B, np.zeros((len(B), self.Y.shape[1]), B.dtype)

    def solution_of_levels(self, G: Array, G_null: float) -> Array:
        """Return V(gΛ^{1/2}c)."""
        values, basis, _ = self._basis
        return default_engine().product(basis, (values * G)[:, None] * self.components)

    def model(self, solution: Array) -> tuple[Array, Array]:
        """Return the weights and the intercept."""
        return solution, self._intercept(solution, self.mean, solution)


def _check_finite(M: Array, kernel: Kernel) -> None:
    total = float(np.sum(M, dtype=np.float64))
    # A linear kernel of finite rows gives NaN only where infinities were subtracted.
    if np.isnan(total) and np.isnan(M).any() and not isinstance(kernel, Linear):
        raise ValueError(f"the kernel {kernel!r} gives NaN on these rows; check the function")
    if not np.isfinite(total):
        raise ValueError(
            f"the kernel {kernel!r} overflows on these rows; scale the columns of X, for "
            "instance with StandardScaler"
        )


def _take_out_direction(M: Array, u: Array) -> float:
    """Make M = P M P with P = I − uuᵀ, in place, for symmetric M; return ‖Mu‖. Cost 6n²."""
    v = default_engine().product(M, u)
    size = float(np.linalg.norm(v))
    v -= 0.5 * float((u.T @ v)[0, 0]) * u
    for rows in row_blocks(len(M), 256):
        M[rows] -= u[rows] * v.T
        M[rows] -= v[rows] * u.T
    return size
