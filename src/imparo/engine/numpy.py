"""The engine for arrays in main memory: SciPy's BLAS and LAPACK.

NumPy and SciPy each bring a thread pool of their own, and work that alternates
between them runs no faster on two cores than on one. All heavy work therefore goes
through SciPy, NumPy does the element-wise rest.
"""

from types import ModuleType
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import blas, lapack
from scipy.spatial.distance import cdist

from imparo.engine.base import Array, Engine
from imparo.engine.blocks import PREFERRED_BLOCK_BYTES
from imparo.engine.distances import squared_distances
from imparo.engine.jitter import factor_with_jitter
from imparo.errors import NotPositiveDefiniteError


def _fortran(A: Array) -> tuple[Array, int]:
    """Return a column-major view of A or of Aᵀ, and whether it is that of Aᵀ."""
    if A.flags.f_contiguous:
        return A, 0
    return np.ascontiguousarray(A).T, 1


def _column_major_symmetric(A: Array, overwrite: bool) -> tuple[Array, bool]:
    """Return a column-major view of symmetric A and whether its upper triangle is A's.

    The transpose of a symmetric matrix is the matrix, so no order ever needs a copy;
    only the triangles change place.
    """
    if not overwrite:
        A = A.copy(order="K")
    if A.flags.f_contiguous:
        return A, True
    if A.flags.c_contiguous:
        return A.T, False
    return np.asfortranarray(A), True


class NumpyEngine:
    """NumPy arrays, computed by SciPy's BLAS and LAPACK on all cores."""

    xp: ModuleType = np
    name: str = "cpu"
    precision: str = "float64"
    resident = False
    reduction = 8.0
    block_bytes = PREFERRED_BLOCK_BYTES
    congruence_cost = 1.0

    @property
    def replicas(self) -> list[Engine]:
        """Itself: all cores share every product."""
        return [self]

    def pays(self, operations: float, bytes_moved: float) -> bool:
        """Return True: they are here."""
        return True

    def asarray(self, A: Any, dtype: Any = None) -> Array:
        """Return a NumPy array."""
        if hasattr(A, "detach"):
            A = A.detach().cpu().numpy()
        return np.asarray(A, dtype)

    def to_host(self, A: Any) -> Array:
        """Return A as a NumPy array."""
        return self.asarray(A)

    def type_of(self, A: Any) -> np.dtype[Any]:
        """Return the type of the numbers."""
        return A.dtype

    def cast(self, A: Array, dtype: np.dtype[Any]) -> Array:
        """Return A in another type, or A itself."""
        return A.astype(dtype, copy=False)

    def copy(self, A: Array) -> Array:
        """Return a column-major copy."""
        return np.array(A, order="F")

    def copy_rows(self, A: Array) -> Array:
        """Return a row-major copy."""
        return np.array(A, order="C")

    def add_to_diagonal(self, A: Array, value: float) -> None:
        """Add a number to the diagonal of A, in place."""
        A[np.diag_indices_from(A)] += A.dtype.type(value)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return column-major zeros, which BLAS updates in place."""
        return np.zeros(shape, dtype, order="F")

    def product(self, A: Any, B: Array) -> Array:
        """Return A B in row-major order, computed as (BᵀAᵀ)ᵀ; A may be sparse."""
        if sparse.issparse(A):
            return np.ascontiguousarray(A @ B)
        dtype = np.result_type(A, B)
        a, a_flipped = _fortran(A.astype(dtype, copy=False))
        b, b_flipped = _fortran(B.astype(dtype, copy=False))
        if min(*A.shape, *B.shape) == 0:
            return np.zeros((A.shape[0], B.shape[1]), dtype)
        if B.shape[1] == 1:
            # A product of matrices would copy all of A first: three to seven times as long.
            gemv = blas.get_blas_funcs("gemv", (a, b))
            return gemv(1.0, a, B[:, 0].astype(dtype, copy=False), trans=a_flipped)[:, None]
        gemm = blas.get_blas_funcs("gemm", (a, b))
        return gemm(1.0, b, a, trans_a=1 - b_flipped, trans_b=1 - a_flipped).T

    def inner(self, X: Any, Z: Any) -> Array:
        """Return X Zᵀ as a dense array."""
        if sparse.issparse(X) or sparse.issparse(Z):
            dtype = np.result_type(X.dtype, Z.dtype, np.float32)
            S = X.astype(dtype, copy=False) @ Z.T.astype(dtype, copy=False)
            return np.ascontiguousarray(S.toarray() if sparse.issparse(S) else S)
        return self.product(X, Z.T)

    def squared_distances(
        self, X: Any, Z: Any, width: float = 1.0, *, negative: bool = False
    ) -> Array:
        """Return ‖x − z‖²/width²; see :mod:`imparo.engine.distances`."""
        return squared_distances(X, Z, width, self.product, negative=negative)

    def absolute_distances(self, X: Array, Z: Array, width: float = 1.0) -> Array:
        """Return ‖x − z‖₁/width."""
        S = cdist(X, Z, "cityblock")
        S /= width
        return S.astype(np.result_type(X, Z, np.float32), copy=False)

    def accumulate_gram(self, A: Array, block: Any) -> None:
        """Add blockᵀ block to the upper triangle of column-major A, in place."""
        if sparse.issparse(block):
            A += (block.T @ block).toarray()
            return
        if 0 in block.shape:
            return
        block = np.ascontiguousarray(block, A.dtype)
        syrk = blas.get_blas_funcs("syrk", (A,))
        result = syrk(1.0, block.T, beta=1.0, c=A, overwrite_c=1)
        if not np.shares_memory(result, A):
            A[...] = result

    def accumulate_product(self, C: Array, left: Any, right: Any) -> None:
        """Add leftᵀ right to C, in place."""
        if sparse.issparse(left) or sparse.issparse(right):
            S = left.T @ right
            C += S.toarray() if sparse.issparse(S) else S
        else:
            C += self.product(left.T, right)

    def symmetrize(self, A: Array) -> None:
        """Copy the upper triangle of A to the lower one, in place."""
        for i in range(1, len(A)):
            A[i, :i] = A[:i, i]

    def cholesky(self, A: Array, *, jitter: bool = True, overwrite: bool = False) -> Array:
        """Return the upper R with RᵀR = A."""
        potrf = lapack.get_lapack_funcs("potrf", (A,))

        def attempt(shift: float) -> Array | None:
            work, is_upper = _column_major_symmetric(A, overwrite and not jitter)
            if shift:
                work[np.diag_indices_from(work)] += shift
            R, info = potrf(work, lower=not is_upper, clean=1, overwrite_a=1)
            if info != 0 or not np.isfinite(np.diagonal(R)).all():
                return None
            return R if is_upper else R.T

        if len(A) == 0:
            return A.copy()
        if jitter:
            scale = float(np.mean(np.diagonal(A)))
            return factor_with_jitter(attempt, scale, A.dtype)
        factor = attempt(0.0)
        if factor is None:
            raise NotPositiveDefiniteError(
                f"the {len(A)} x {len(A)} matrix is not positive definite in {A.dtype}"
            )
        return factor

    def solve_triangular(self, R: Array, B: Array, *, transpose: bool = False) -> Array:
        """Return R⁻¹B or R⁻ᵀB for upper triangular R."""
        if R.shape[0] == 0:
            return B.copy()
        return linalg.solve_triangular(R, B, trans=int(transpose), check_finite=False)

    def whiten(self, R: Array, block: Array) -> Array:
        """Return block R⁻¹, computed as (R⁻ᵀ blockᵀ)ᵀ in the place of ``block``."""
        if 0 in block.shape:
            return block
        return linalg.solve_triangular(
            R.astype(block.dtype, copy=False), block.T, trans=1, overwrite_b=True,
            check_finite=False,
        ).T  # fmt: skip

    def congruence(self, A: Array, R: Array) -> Array:
        """Return the upper triangle of R⁻ᵀAR⁻¹, by LAPACK's ``sygst``."""
        if len(A) == 0:
            return A.copy()
        sygst = lapack.get_lapack_funcs("sygst", (A, R))
        C, _ = sygst(np.asfortranarray(A), R, itype=1, lower=0)
        return C

    def invert_triangular(self, R: Array) -> Array:
        """Return R⁻¹ by LAPACK's ``trtri``."""
        if len(R) == 0:
            return R.copy()
        trtri = lapack.get_lapack_funcs("trtri", (R,))
        V, _ = trtri(np.asfortranarray(R), lower=0)
        return V

    def eigh(self, A: Array, *, overwrite: bool = False) -> tuple[Array, Array]:
        """Return eigenvalues, ascending, and orthonormal eigenvectors (divide and conquer)."""
        work, is_upper = _column_major_symmetric(A, overwrite)
        return linalg.eigh(
            work, lower=not is_upper, overwrite_a=True, check_finite=False, driver="evd"
        )

    def pivoted_cholesky(self, A: Array, tolerance: float) -> tuple[Array, Array]:
        """Return L with A ≈ LLᵀ and the pivots, by LAPACK's ``pstrf``."""
        # LAPACK takes its first pivot whatever the tolerance.
        if np.max(np.diagonal(A), initial=0) <= tolerance:
            return np.empty((len(A), 0), A.dtype, order="F"), np.empty(0, np.intp)
        pstrf = lapack.get_lapack_funcs("pstrf", (A,))
        work, is_upper = _column_major_symmetric(A, overwrite=False)
        R, order, rank, _ = pstrf(work, tol=tolerance, lower=not is_upper, overwrite_a=1)
        order = order - 1
        R = np.triu(R[:rank] if is_upper else R[:, :rank].T)
        L = np.empty((len(A), rank), A.dtype, order="F")
        L[order] = R.T
        return L, order[:rank]

    def orthonormalize(self, L: Array) -> tuple[Array, Array]:
        """Return the thin QR factors of L."""
        return linalg.qr(L, mode="economic", check_finite=False)
