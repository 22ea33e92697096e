"""FALKON's preconditioner in one m × m matrix, and conjugate gradients with it.

For m centers, K_nmᵀK_nm is about (n/m)K_mm², so that with T upper triangular, TᵀT = K_mm, and
A upper triangular, AᵀA = TTᵀ/m + λI, the operator of Nyström KRLS

    A⁻ᵀT⁻ᵀ(K_nmᵀK_nm/n + λK_mm)T⁻¹A⁻¹

has a small condition number (Rudi, Carratino and Rosasco, 2017): some twenty products with
K_nm solve what statistics would take nm² operations and m² float64 numbers for. T takes the
upper triangle of a matrix and A, transposed, the lower one; only their diagonal blocks are
kept apart. Cost m³ in all, and m² numbers.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from imparo.engine import Array, Engine, factor_with_jitter, row_blocks
from imparo.errors import NotPositiveDefiniteError

# Rows of a block: large enough for fast products, small enough for a cheap diagonal, and a
# sixteenth of all where that is less, as some blocks are alive beside the matrix.
_BLOCK, _LEAST = 2048, 16
_ALIVE = 8
_NUMBER = np.dtype(np.float64)
# A shift of the diagonal by so many rounding errors, which grow with √m, is to be expected
# and no one is told: K_mm is not known any better.
_EXPECTED = 8
# Rounding errors ε of products with K_nm come back as up to ε/(s·λ) in directions that K_mm
# has nothing of but the shift s. They are spread over all directions: a hundredth of the s that
# keeps the worst below 1 is enough, and more would count in the model.
_CLEAR = 0.01


def preconditioner_bytes(size: int, itemsize: int) -> int:
    """Return the bytes that a preconditioner takes while it is made.

    Parameters
    ----------
    size : int
        m.
    itemsize : int
        Bytes of a number.

    Returns
    -------
    int
    """
    return itemsize * size * (size + _ALIVE * _block_of(size))


def _block_of(size: int) -> int:
    return min(size, _BLOCK, max(_LEAST, size // 16))


class Preconditioner:
    """T and A for some centers; T once, A for every penalty.

    Parameters
    ----------
    kernel_rows : callable
        ``kernel_rows(start, stop)`` returns rows of K_mm from column ``start`` on, as an array
        of the engine.
    size : int
        m.
    dtype : dtype
        Of the factors as they are stored; solves are in float64.
    engine : Engine
    shift : float
        The least that is added to the diagonal of K_mm, in units of its mean
        (:func:`least_shift`).

    Attributes
    ----------
    shift : float
        What was added to the diagonal of K_mm.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.engine import host_engine
    >>> from imparo.filters import Preconditioner
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> P = Preconditioner(lambda i, j: K[i:j, i:], 2, np.float64, host_engine())
    >>> P.set_penalty(0.5)
    >>> u = np.ones((2, 1))
    >>> bool(np.allclose(P.to_beta(P.to_beta(u, transpose=True)), np.linalg.solve(
    ...     P.upper() @ P.upper().T / 2 + 0.5 * np.eye(2), u)))
    True
    """

    def __init__(
        self,
        kernel_rows: Callable[[int, int], Array],
        size: int,
        dtype: np.typing.DTypeLike,
        engine: Engine,
        shift: float = 0.0,
    ) -> None:
        self._size, self._engine = size, engine
        self._dtype = np.dtype(dtype)
        self._M = _row_major_zeros(engine, (size, size), self._dtype)
        self._blocks = list(row_blocks(size, _block_of(size)))
        self._T: list[Array] = []
        self._A: list[Array] = []
        self.penalty: float | None = None
        mean = float(engine.to_host(kernel_rows(0, min(size, 256)).diagonal()).mean())
        eps = float(np.finfo(self._dtype).eps)
        expected = max(_EXPECTED * eps * np.sqrt(size), shift) * mean
        self.shift = 0.0

        def attempt(jitter: float) -> bool | None:
            self.shift = expected + jitter
            return self._factor_kernel(kernel_rows, self.shift)

        what = "kernel matrix of the centers, for the preconditioner,"
        factor_with_jitter(attempt, max(mean, expected), self._dtype, what)

    def _factor_kernel(
        self, kernel_rows: Callable[[int, int], Array], shift: float
    ) -> bool | None:
        """Put the factor T of K_mm + shift·I in the upper triangle; None where it fails."""
        engine, M = self._engine, self._M
        for block in self._blocks:
            rows = kernel_rows(block.start, block.stop)
            M[block, block.start :] = engine.cast(rows, self._dtype)
        self._T = []
        for i, block in enumerate(self._blocks):
            corner = engine.copy(M[block, block])
            engine.add_to_diagonal(corner, shift)
            try:
                D = engine.cholesky(corner, jitter=False)
            except NotPositiveDefiniteError:
                return None
            self._T.append(engine.cast(D, _NUMBER))
            rest = slice(block.stop, self._size)
            if rest.start == rest.stop:
                continue
            P = engine.solve_triangular(D, M[block, rest], transpose=True)
            M[block, rest] = P
            for later in self._blocks[i + 1 :]:
                start = later.start - rest.start
                left = -P[:, start : start + later.stop - later.start]
                engine.accumulate_product(M[later, later.start :], left, P[:, start:])
        return True

    def set_penalty(
        self, penalty: float, weights: Array | None = None, *, centered: bool = False
    ) -> None:
        """Make A the factor of TDTᵀ/m + λI. Cost 2m³/3.

        Parameters
        ----------
        penalty : float
            λ.
        weights : array of shape (m,), optional
            The diagonal of D, of the engine: weights of the rows that are centers.
        centered : bool
            Whether the mean of the features is taken out, D being 1: for a model with an
            intercept.
        """
        scale = penalty
        for D in self._T:
            scale = max(scale, float(self._engine.to_host(D.diagonal()).max()) ** 2)

        def attempt(jitter: float) -> bool | None:
            return self._factor_features(penalty + jitter, weights, centered)

        factor_with_jitter(attempt, scale, self._dtype, "preconditioner")
        self.penalty = penalty

    def _factor_features(
        self, ridge: float, weights: Array | None, centered: bool
    ) -> bool | None:
        engine, M = self._engine, self._M
        corners = []
        mean = self._feature_mean() if centered else None
        for block, D in zip(self._blocks, self._T, strict=True):
            corner = engine.cast(D, self._dtype)
            row = engine.xp.concatenate([corner, M[block, block.stop :]], axis=1)
            scaled = row / self._size
            if weights is not None:
                scaled = scaled * weights[block.start :]
            if block.start:
                M[block, : block.start] = engine.product(
                    scaled, M[: block.start, block.start :].T
                )
            corner = engine.product(scaled, row.T)
            if mean is not None:
                M[block, : block.start] -= engine.xp.outer(mean[block], mean[: block.start])
                corner -= engine.xp.outer(mean[block], mean[block])
            engine.add_to_diagonal(corner, ridge)
            corners.append(corner)
        self._A = []
        for i, block in enumerate(self._blocks):
            try:
                R = engine.cholesky(corners[i], jitter=False)
            except NotPositiveDefiniteError:
                return None
            self._A.append(engine.cast(R, _NUMBER))
            if block.stop == self._size:
                break
            P = engine.whiten(R, engine.copy_rows(M[block.stop :, block]))
            M[block.stop :, block] = P
            for j in range(i + 1, len(self._blocks)):
                later = self._blocks[j]
                mine = P[later.start - block.stop : later.stop - block.stop]
                corners[j] -= engine.product(mine, mine.T)
                before = slice(block.stop, later.start)
                if before.start < before.stop:
                    others = P[: later.start - block.stop]
                    engine.accumulate_product(M[later, before], -mine.T, others.T)
        return True

    def _feature_mean(self) -> Array:
        """Return T1/m, the mean of the features of the centers."""
        mean = self._engine.zeros((self._size,), self._dtype)
        for block, D in zip(self._blocks, self._T, strict=True):
            mean[block] = D.sum(axis=1) + self._M[block, block.stop :].sum(axis=1)
        return mean / self._size

    # Solves with the triangles, in float64 also where these are stored in float32: T and Tᵀ
    # must be of the same matrix to the last digits, or the operator is not symmetric.

    def to_alpha(self, beta: Array) -> Array:
        """Return α = T⁻¹β."""
        M, D = self._M, self._T
        return self._backward(beta, D, lambda i: M[i, i.stop :])

    def from_alpha(self, gradient: Array) -> Array:
        """Return T⁻ᵀg."""
        M, D = self._M, self._T
        return self._forward(gradient, D, lambda i: M[: i.start, i].T)

    def to_beta(self, u: Array, *, transpose: bool = False) -> Array:
        """Return A⁻¹u, or A⁻ᵀu with ``transpose``."""
        M, D = self._M, self._A
        if transpose:
            return self._forward(u, D, lambda i: M[i, : i.start])
        return self._backward(u, D, lambda i: M[i.stop :, i].T)

    def pulled_back(self, gradient: Array, beta: Array) -> Array:
        """Return A⁻ᵀ(T⁻ᵀg + λβ): what g and λTᵀβ in the place of α are in that of u."""
        assert self.penalty is not None
        return self.to_beta(self.from_alpha(gradient) + self.penalty * beta, transpose=True)

    def upper(self) -> Array:
        """Return T as a matrix of its own."""
        T = self._engine.zeros((self._size, self._size), self._dtype)
        for block, D in zip(self._blocks, self._T, strict=True):
            T[block, block] = D
            T[block, block.stop :] = self._M[block, block.stop :]
        return T

    def _backward(self, B: Array, D: list[Array], rest: Callable[[slice], Array]) -> Array:
        engine = self._engine
        x = engine.copy_rows(engine.cast(B, _NUMBER))
        for block, R in zip(reversed(self._blocks), reversed(D), strict=True):
            known = engine.product(engine.cast(rest(block), _NUMBER), x[block.stop :])
            x[block] = engine.solve_triangular(R, x[block] - known)
        return x

    def _forward(self, B: Array, D: list[Array], rest: Callable[[slice], Array]) -> Array:
        engine = self._engine
        x = engine.copy_rows(engine.cast(B, _NUMBER))
        for block, R in zip(self._blocks, D, strict=True):
            known = engine.product(engine.cast(rest(block), _NUMBER), x[: block.start])
            x[block] = engine.solve_triangular(R, x[block] - known, transpose=True)
        return x


def least_shift(penalty: float, size: int, dtype: np.typing.DTypeLike) -> float:
    """Return the shift of K_mm that float64 products need at a penalty, K(x, x) being 1.

    Not below what is to be expected of m centers in the type of the factors. Rounded up to a
    power of 10: penalties that are near share a factor.

    Parameters
    ----------
    penalty : float
        λ over the mean of K(x, x).
    size : int
        m.
    dtype : dtype
        Of the factors.

    Returns
    -------
    float
    """
    wanted = _CLEAR * float(np.finfo(np.float64).eps) / penalty
    wanted = max(wanted, _EXPECTED * float(np.finfo(dtype).eps) * np.sqrt(size))
    return float(10.0 ** np.ceil(np.log10(wanted)))


def preconditioned_steps(
    gradient: Array, product: Callable[[Array], Array], engine: Engine
) -> Iterator[tuple[Array, float]]:
    """Yield the steps of conjugate gradients, for every column on its own.

    Parameters
    ----------
    gradient : array of shape (p, T)
        The right-hand side less the product with the start.
    product : callable
        With a symmetric positive definite matrix.
    engine : Engine

    Yields
    ------
    length : array of shape (T,)
        How far to go along the direction that ``product`` was called with last.
    left : float
        The norm of the residual over that of the start, the largest of the columns. There
        are no more steps where rounding errors leave no direction to go.
    """
    xp = engine.xp
    rest, direction = gradient, gradient
    energy = (rest**2).sum(axis=0)
    first = energy + 0.0
    while True:
        image = product(direction)
        curvature = (direction * image).sum(axis=0)
        live = (energy > 0) & (curvature > 0)
        safe = xp.where(live, curvature, xp.ones_like(curvature))
        length = xp.where(live, energy / safe, 0.0)
        rest = rest - length * image
        renewed = (rest**2).sum(axis=0)
        share = xp.where(first > 0, renewed / xp.where(first > 0, first, 1.0), 0.0)
        yield length, float(share.max()) ** 0.5
        if not bool(live.any()):
            return
        turn = xp.where(live, renewed / xp.where(live, energy, xp.ones_like(energy)), 0.0)
        direction = rest + turn * direction
        energy = xp.where(live, renewed, 0.0)


def _row_major_zeros(engine: Engine, shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    return engine.zeros(shape, dtype) if engine.resident else np.zeros(shape, dtype)
