"""The interface between the street and the machine it runs on."""

from types import ModuleType
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Engine(Protocol):
    """Block evaluation and the five dense operations of the library.

    Arrays are the engine's own (NumPy arrays for :class:`NumpyEngine`, tensors for
    :class:`~imparo.engine.torch.TorchEngine`, which takes NumPy arrays too and gives them
    back); ``xp`` is the module with their element-wise functions (``exp``, ``sqrt``, …,
    each with ``out=``), so that a kernel is written once for every engine. Symmetric
    results are accumulated in the *upper* triangle only.

    Attributes
    ----------
    name : str
        Where it computes, for people: "cpu", "cuda (NVIDIA H200)".
    precision : str
        How products of features are summed: "float64", "float32" or "split".
    resident : bool
        Whether arrays live elsewhere than in main memory, so that rows are sent block by
        block and what is large stays there.
    reduction : float
        So many Cholesky factorisations take as long as one reduction to tridiagonal form.
    block_bytes : int
        Size of a block of features that is fastest.
    congruence_cost : float
        :meth:`congruence` over the time of LAPACK's, in operations of a Cholesky factor.
    """

    xp: ModuleType
    resident: bool
    reduction: float
    block_bytes: int
    congruence_cost: float

    @property
    def name(self) -> str:
        """Where it computes."""

    @property
    def precision(self) -> str:
        """How products are summed."""

    @property
    def replicas(self) -> "list[Engine]":
        """The engines that share the work on blocks of rows: one for every device."""

    def pays(self, operations: float, bytes_moved: float) -> bool:
        """Return whether work on arrays of main memory is done sooner by this engine."""

    def asarray(self, A: Any, dtype: Any = None) -> Array:
        """Return an array of this engine, of the same type if none is given."""

    def to_host(self, A: Any) -> Array:
        """Return a NumPy array in main memory."""

    def type_of(self, A: Any) -> np.dtype[Any]:
        """Return the type of the numbers, in NumPy's terms."""

    def cast(self, A: Array, dtype: np.dtype[Any]) -> Array:
        """Return A in another type, or A itself."""

    def copy(self, A: Array) -> Array:
        """Return a copy in the layout of :meth:`zeros`."""

    def copy_rows(self, A: Array) -> Array:
        """Return a copy in row-major order."""

    def add_to_diagonal(self, A: Array, value: float) -> None:
        """Add a number to the diagonal of A, in place."""

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return zeros in the layout that the accumulating methods update in place."""

    def inner(self, X: Any, Z: Any) -> Array:
        """Return X Zᵀ, shape (n, m); X and Z may be sparse. Cost 2nmd."""

    def squared_distances(
        self, X: Any, Z: Any, width: float = 1.0, *, negative: bool = False
    ) -> Array:
        """Return ‖x − z‖²/width², shape (n, m), free of cancellation. Cost 2nmd.

        ``negative`` gives it the other sign, at no cost.
        """

    def absolute_distances(self, X: Array, Z: Array, width: float = 1.0) -> Array:
        """Return ‖x − z‖₁/width, shape (n, m). Cost 3nmd, not a matrix product."""

    def product(self, A: Any, B: Array) -> Array:
        """Return the matrix product A B in row-major order; A may be sparse."""

    def accumulate_gram(self, A: Array, block: Any) -> None:
        """Add blockᵀ block to the upper triangle of A, in place. Cost b p²."""

    def accumulate_product(self, C: Array, left: Any, right: Any) -> None:
        """Add leftᵀ right to C, in place. Cost 2 b p q."""

    def symmetrize(self, A: Array) -> None:
        """Copy the upper triangle of A to the lower one, in place."""

    def cholesky(self, A: Array, *, jitter: bool = True, overwrite: bool = False) -> Array:
        """Return the upper R with RᵀR = A, reading the upper triangle of A. Cost p³/3.

        With ``jitter``, the policy of :func:`imparo.engine.factor_with_jitter` is
        applied; without it a failure is raised at once as
        :class:`~imparo.errors.NotPositiveDefiniteError`.
        """

    def solve_triangular(self, R: Array, B: Array, *, transpose: bool = False) -> Array:
        """Return R⁻¹B, or R⁻ᵀB with ``transpose``, for upper triangular R. Cost p²k."""

    def whiten(self, R: Array, block: Array) -> Array:
        """Return block R⁻¹ for upper triangular R, using row-major ``block`` up. Cost bp²."""

    def congruence(self, A: Array, R: Array) -> Array:
        """Return the upper triangle of R⁻ᵀAR⁻¹ for symmetric A, upper R. Cost p³."""

    def invert_triangular(self, R: Array) -> Array:
        """Return R⁻¹ for upper triangular R. Cost p³/3."""

    def eigh(self, A: Array, *, overwrite: bool = False) -> tuple[Array, Array]:
        """Return eigenvalues, ascending, and orthonormal eigenvectors. Cost about 9p³."""

    def pivoted_cholesky(self, A: Array, tolerance: float) -> tuple[Array, Array]:
        """Return L (p × r, rows in the order of A) and the r pivots, A ≈ L Lᵀ.

        Stops at the first r for which no diagonal entry of A − LLᵀ exceeds
        ``tolerance``. Cost p²r at most.
        """

    def orthonormalize(self, L: Array) -> tuple[Array, Array]:
        """Return Q with orthonormal columns and upper R, L = QR (Householder). Cost 4pr²."""
