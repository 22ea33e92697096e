"""Sufficient statistics in square-root form: a triangular factor that learns and forgets.

R is upper triangular with RᵀR = λI + ΦᵀΦ and z = R⁻ᵀΦᵀY, so that the model is
w = R⁻¹z. Rows enter by orthogonal transformations of [R z], which does not square
the condition number as ΦᵀΦ does. *Recursive convention*: the sum of the losses plus
λ‖w‖², λ entering once, in the first factor R₀ = √λ I (thesis, section 7.4.2,
where the printed "+ λI" at every step is a slip).
"""

from typing import Any, Self

import numpy as np
from scipy.linalg import lapack

from imparo.engine import Array, default_engine
from imparo.engine.rotations import downdate_rotations, rotate_in, rotate_out
from imparo.errors import DowndateError
from imparo.persistence import persistent
from imparo.statistics import Statistics

# Block size of tpqrt: 16 to 32 columns are fastest from 100 to 1300 columns.
_QR_BLOCK = 32


@persistent
class Factor:
    """The factor [R z] of regularized least squares, updated row by row or in blocks.

    Parameters
    ----------
    n_features, n_outputs : int
        The numbers p and T of columns of Φ and Y.
    penalty : float
        λ ≥ 0 of the *sum* of losses plus λ‖w‖².
    dtype : dtype

    Attributes
    ----------
    R : array of shape (p, p)
        Upper triangular with a diagonal that is not negative.
    z : array of shape (p, T)
        R⁻ᵀΦᵀY.
    residual : array of shape (T,)
        min_w Σ(y − φᵀw)² + λ‖w‖² for each output: what the rows leave unexplained.
    weight : float
        Number of rows, faded with them.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.factors import Factor
    >>> factor = Factor(1, 1, penalty=1.0)
    >>> factor.update(np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]])).solve()
    array([[0.83333333]])
    >>> factor.downdate(np.array([[2.0]]), np.array([[2.0]])).solve()
    array([[0.5]])
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        penalty: float,
        dtype: np.typing.DTypeLike = np.float64,
    ) -> None:
        if not 0 <= penalty < np.inf:
            raise ValueError(f"penalty must be a finite number from 0 on, not {penalty!r}")
        self.R = np.diag(np.full(n_features, np.sqrt(penalty), dtype))
        self.z = np.zeros((n_features, n_outputs), dtype)
        self.residual = np.zeros(n_outputs, dtype)
        self.weight = 0.0

    @classmethod
    def from_statistics(cls, statistics: Statistics, penalty: float) -> Self:
        """Return the factor of rows that were accumulated in Gram form. Cost p³/3.

        Parameters
        ----------
        statistics : Statistics
        penalty : float
            λ of the *sum* of losses.

        Returns
        -------
        Factor
        """
        engine, A = default_engine(), statistics.A
        A[np.diag_indices_from(A)] += penalty
        n_features, n_outputs = statistics.b.shape
        factor = cls(n_features, n_outputs, penalty, A.dtype)
        factor.R = np.ascontiguousarray(engine.cholesky(A))
        z = engine.solve_triangular(factor.R, statistics.b, transpose=True)
        factor.z = np.ascontiguousarray(z)
        unexplained = np.diagonal(statistics.yy) - np.sum(z * z, axis=0)
        factor.residual = np.maximum(unexplained, 0)
        factor.weight = statistics.weight
        return factor

    def update(self, Phi: Any, Y: Any, weight: Any = None) -> Self:
        """Add k rows, in place. Cost 2kp² + 4kpT; one row goes by plane rotations.

        Parameters
        ----------
        Phi : array of shape (k, p)
        Y : array of shape (k, T)
        weight : array of shape (k,), optional
            Not negative; 1 if left out.

        Returns
        -------
        Factor
            Itself.
        """
        Phi, Y, total = self._rows(Phi, Y, weight)
        if len(Phi) == 1:
            rotate_in(self.R, self.z, Phi[0], Y[0])
            self._absorb(Y)
        elif len(Phi) > 1:
            self._absorb_block(Phi, Y, pentagon=0)
        self.weight += total
        return self

    def merge(self, other: "Factor") -> Self:
        """Add the rows of another factor, in place; the two penalties add up too.

        Give the workers of a sum ``penalty=0`` and λ to the first of them only.
        """
        self._check_shape(other.z.shape)
        self._absorb_block(other.R.copy(), other.z.copy(), pentagon=len(self.R))
        self.residual = self.residual + other.residual
        self.weight += other.weight
        return self

    def downdate(self, Phi: Any, Y: Any, weight: Any = None) -> Self:
        """Take out k rows that were added before, in place. Cost 3kp².

        Parameters
        ----------
        Phi : array of shape (k, p)
        Y : array of shape (k, T)
        weight : array of shape (k,), optional
            The weight that they have now, fading included.

        Returns
        -------
        Factor
            Itself.

        Raises
        ------
        DowndateError
            If the rest would not be positive definite: rows that were never added, or
            no longer there. The factor is then as it was before the call.
        """
        Phi, Y, total = self._rows(Phi, Y, weight)
        eps = np.finfo(self.R.dtype).eps
        if total > self.weight * (1 + 1e-9):
            raise DowndateError(
                f"rows of weight {total:g} cannot be taken out of a weight of "
                f"{self.weight:g}; take out only rows that were added and have not faded"
            )
        if len(Phi) and not np.all(np.diagonal(self.R) > 0):
            raise DowndateError(
                "these rows cannot be taken out: the factor is singular without them and "
                "with them; give a penalty above 0 or more rows"
            )
        R, z, residual = self.R.copy(), self.z.copy(), self.residual.copy()
        for x, y in zip(Phi, Y, strict=True):
            a = default_engine().solve_triangular(R, x, transpose=True)
            rho_squared = 1.0 - float(a @ a)
            if not rho_squared > len(R) * eps:
                raise DowndateError(
                    "these rows cannot be taken out: the rest would not be positive "
                    f"definite (1 - |a|^2 = {rho_squared:.1e}); take out only rows that were "
                    "added and have not faded"
                )
            c, s = downdate_rotations(a, float(np.sqrt(rho_squared)))
            rotate_out(R, c, s)
            for k in range(len(R)):
                z[k] = (z[k] - s[k] * y) / c[k]
                y = c[k] * y - s[k] * z[k]
            residual -= y * y
        energy = self.residual + np.sum(self.z * self.z, axis=0)
        if (residual < -np.sqrt(eps) * energy).any():
            raise DowndateError(
                "these rows cannot be taken out: their outputs are not those that were added"
            )
        self.R, self.z, self.residual = R, z, np.maximum(residual, 0)
        self.weight -= total
        return self

    def fade(self, factor: float) -> Self:
        """Multiply the weight of all rows, and the penalty, by ``factor`` in (0, 1]."""
        if not 0 < factor <= 1:
            raise ValueError(f"the forgetting factor must be in (0, 1], not {factor!r}")
        self.R *= np.sqrt(factor)
        self.z *= np.sqrt(factor)
        self.residual *= factor
        self.weight *= factor
        return self

    def solve(self) -> Array:
        """Return the model w = R⁻¹z, shape (p, T). Cost p²T."""
        # Blocks leave rounding errors, not zeros, on the diagonal of a singular factor.
        rounding = len(self.R) * np.finfo(self.R.dtype).eps
        columns = np.linalg.norm(self.R, axis=0)
        if not np.all(np.diagonal(self.R) > rounding * columns):
            raise ValueError(
                "the factor is singular: fewer independent rows than features and no "
                "penalty; give a penalty above 0 or more rows"
            )
        return default_engine().solve_triangular(self.R, self.z)

    def _rows(self, Phi: Any, Y: Any, weight: Any) -> tuple[Array, Array, float]:
        """Return copies of the rows, scaled by the roots of their weights, and the total."""
        Phi = np.array(Phi, self.R.dtype, order="C", ndmin=2)
        Y = np.array(Y, self.R.dtype, order="C", ndmin=2)
        if Phi.ndim != 2 or Y.ndim != 2:
            raise ValueError(f"rows must have two axes, not shapes {Phi.shape} and {Y.shape}")
        self._check_shape((Phi.shape[1], Y.shape[1]))
        if len(Phi) != len(Y):
            raise ValueError(f"{len(Phi)} rows of features came with {len(Y)} rows of outputs")
        if not (np.isfinite(Phi).all() and np.isfinite(Y).all()):
            raise ValueError("the rows hold NaN or infinity; drop or impute them first")
        if weight is None:
            return Phi, Y, float(len(Phi))
        w = np.broadcast_to(np.asarray(weight, self.R.dtype), len(Phi))
        if not ((w >= 0) & (w < np.inf)).all():
            raise ValueError("weights must be finite numbers from 0 on")
        root = np.sqrt(w)[:, None]
        return Phi * root, Y * root, float(w.sum(dtype=np.float64))

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if shape != self.z.shape:
            raise ValueError(
                f"{shape[0]} features and {shape[1]} outputs do not fit a factor of "
                f"{self.z.shape[0]} features and {self.z.shape[1]} outputs"
            )

    def _absorb(self, leftover: Array) -> None:
        self.residual += np.sum(leftover * leftover, axis=0)

    def _absorb_block(self, Phi: Array, Y: Array, pentagon: int) -> None:
        """Reduce [R z; Φ Y] by tpqrt; Φ has ``pentagon`` upper triangular last rows."""
        tpqrt, tpmqrt = lapack.get_lapack_funcs(("tpqrt", "tpmqrt"), (self.R,))
        block = min(_QR_BLOCK, len(self.R))
        R, V, T, _ = tpqrt(
            pentagon, block, np.asfortranarray(self.R), np.asfortranarray(Phi),
            overwrite_a=1, overwrite_b=1,
        )  # fmt: skip
        z, leftover = self.z, Y
        if Y.shape[1]:
            z, leftover, _ = tpmqrt(
                pentagon, V, T, np.asfortranarray(self.z), np.asfortranarray(Y), trans="T"
            )
        # Householder leaves signs; a factor with a positive diagonal is unique.
        sign = np.where(np.diagonal(R) < 0, -1.0, 1.0).astype(R.dtype)[:, None]
        self.R = np.ascontiguousarray(np.triu(R) * sign)
        self.z = np.ascontiguousarray(z * sign)
        self._absorb(leftover)
