"""The engine of PyTorch: the same operations on a GPU, or on the CPU to check against.

Tensors stay where they are. NumPy arrays may be given too: they are sent to the device where
that is sooner than to compute on the host (:mod:`imparo.engine.rates`), and the result comes
back as a NumPy array.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from imparo.engine.base import Array, Engine
from imparo.engine.blocks import PREFERRED_BLOCK_BYTES
from imparo.engine.current import host_engine, is_tensor
from imparo.engine.jitter import factor_with_jitter
from imparo.engine.rates import Rates, measured_rates
from imparo.engine.split import add_split_gram
from imparo.engine.torch_distances import squared_distances
from imparo.errors import NotPositiveDefiniteError
from imparo.extras import require

# Columns of a panel of a symmetric product: only the panels of the upper triangle are
# computed. On an H200 384 reach 80 % of the rate of a whole product, 2,500 reach 62 %.
PANEL = 384
# Where float64 products have this share of the speed of float32 ones, they are used.
_GOOD_SHARE = 0.4


class TorchEngine:
    """Tensors of PyTorch, on one device or on several that share the blocks of rows.

    Parameters
    ----------
    devices : list of torch.device or str
        The first holds what is not split.
    precision : "float64", "float32", "split" or None
        How products of features are summed: in float64; in float32 for float32 rows, some
        thousand rows at a time before they are added in float64; in exact slices
        (:mod:`imparo.engine.split`). None takes float64 where the device is good at it, by
        a measurement, else float32 for float32 rows and slices for float64 ones.
    """

    resident = True
    # LAPACK's reduction has no counterpart on a GPU that is worth its time.
    reduction = float("inf")
    congruence_cost = 6.0

    def __init__(self, devices: Sequence[Any], precision: str | None = None) -> None:
        torch = require("torch", "torch")
        self.xp: ModuleType = torch
        self.device = torch.device(devices[0])
        if self.device.type == "cuda" and self.device.index is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        self.asked_precision = precision
        self._types: dict[np.dtype[Any], Any] = {
            np.dtype(np.float32): torch.float32,
            np.dtype(np.float64): torch.float64,
            np.dtype(np.int64): torch.int64,
            np.dtype(bool): torch.bool,
        }
        # A GPU wants products that keep thousands of units busy, a CPU blocks in its cache.
        self.block_bytes = PREFERRED_BLOCK_BYTES if self.device.type == "cpu" else 2**32
        self._others: list[Engine] = [TorchEngine([other], precision) for other in devices[1:]]

    def __repr__(self) -> str:
        return f"<TorchEngine on {self.name}>"

    @property
    def name(self) -> str:
        """Where it computes, for people."""
        if self.device.type != "cuda":
            return f"torch:{self.device.type}"
        more = f", {len(self.replicas)} of them" if self._others else ""
        return f"cuda ({self.xp.cuda.get_device_name(self.device)}{more})"

    @property
    def replicas(self) -> list[Engine]:
        """An engine for every device."""
        return [self, *self._others]

    @cached_property
    def rates(self) -> Rates:
        """How fast the device is, measured once a process."""
        return measured_rates(str(self.device))

    @cached_property
    def precision(self) -> str:
        """How products of features are summed."""
        if self.asked_precision is not None:
            return self.asked_precision
        if self.device.type == "cpu":
            return "float64"
        good = self.rates.float64 >= _GOOD_SHARE * self.rates.float32
        return "float64" if good else "split"

    # Arrays.

    def asarray(self, A: Any, dtype: Any = None) -> Array:
        """Return a tensor on the device."""
        wanted = None if dtype is None else self._types[np.dtype(dtype)]
        if is_tensor(A):
            return A.to(self.device, wanted)
        A = np.asarray(A)
        if not A.flags.writeable or any(step < 0 for step in A.strides):
            A = A.copy()  # PyTorch has no arrays that nobody may write to
        return self.xp.from_numpy(A).to(self.device, wanted)

    def to_host(self, A: Any) -> Array:
        """Return a NumPy array."""
        return A.detach().cpu().numpy() if is_tensor(A) else np.asarray(A)

    def type_of(self, A: Any) -> np.dtype[Any]:
        """Return the type of the numbers, in NumPy's terms."""
        if not is_tensor(A):
            return A.dtype
        kind: Any = A.dtype
        for ours, theirs in self._types.items():
            if theirs == kind:
                return ours
        raise TypeError(
            f"tensors of {kind} cannot be computed with; convert them, for instance with "
            "X.double()"
        )

    def cast(self, A: Any, dtype: np.dtype[Any]) -> Array:
        """Return A in another type, or A itself."""
        if not is_tensor(A):
            return A.astype(dtype, copy=False)
        return A.to(self._types[np.dtype(dtype)])

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return zeros on the device."""
        return self.xp.zeros(shape, dtype=self._types[np.dtype(dtype)], device=self.device)

    def copy(self, A: Any) -> Array:
        """Return a copy."""
        return A.clone() if is_tensor(A) else np.array(A, order="F")

    def copy_rows(self, A: Any) -> Array:
        """Return a row-major copy."""
        if not is_tensor(A):
            return np.array(A, order="C")
        return A.clone(memory_format=self.xp.contiguous_format)

    def add_to_diagonal(self, A: Any, value: float) -> None:
        """Add a number to the diagonal of A, in place."""
        if is_tensor(A):
            A.diagonal().add_(value)
        else:
            host_engine().add_to_diagonal(A, value)

    def lane(self, number: int) -> AbstractContextManager[Any]:
        """Return a context whose work runs beside that of other numbers, where that can be."""
        if self.device.type != "cuda":
            return nullcontext()
        return self.xp.cuda.stream(self._lanes[number % len(self._lanes)])

    @cached_property
    def copies(self) -> Any:
        """The stream that rows are sent in, always the same: each has memory of its own."""
        return self.xp.cuda.Stream(self.device)

    @cached_property
    def _lanes(self) -> list[Any]:
        return [self.xp.cuda.Stream(self.device) for _ in range(3)]

    def open_lanes(self) -> None:
        """Make what runs in lanes wait for all that was asked for before."""
        if self.device.type == "cuda":
            for lane in self._lanes:
                lane.wait_stream(self.xp.cuda.current_stream(self.device))

    def close_lanes(self) -> None:
        """Make all that is asked for from now on wait for what runs in lanes."""
        if self.device.type == "cuda":
            for lane in self._lanes:
                self.xp.cuda.current_stream(self.device).wait_stream(lane)

    def pays(self, operations: float, bytes_moved: float) -> bool:
        """Return whether work on NumPy arrays is done sooner here, transfers included."""
        return self.device.type == "cpu" or self.rates.pays(operations, bytes_moved)

    def _hosted(
        self, operations: float, name: str, work: Callable[..., Any], *arrays: Any, **how: Any
    ) -> Any:
        """Do work on NumPy arrays, here or on the host, and return NumPy arrays."""
        moved = sum(A.nbytes for A in arrays if isinstance(A, np.ndarray))
        if any(sparse.issparse(A) for A in arrays) or not self.pays(operations, 2.0 * moved):
            return getattr(host_engine(), name)(*arrays, **how)
        found = work(*(self.asarray(A) for A in arrays), **how)
        if isinstance(found, tuple):
            return tuple(self.to_host(part) for part in found)
        return self.to_host(found)

    # Products.

    def product(self, A: Any, B: Array) -> Array:
        """Return A B; A may be sparse."""
        if not is_tensor(A) and not is_tensor(B):
            operations = 2.0 * A.shape[0] * A.shape[1] * B.shape[1]
            return self._hosted(operations, "product", self.product, A, B)
        a: Any = self.asarray(A)
        b: Any = self.asarray(B)
        dtype = self.xp.promote_types(a.dtype, b.dtype)
        return a.to(dtype) @ b.to(dtype)

    def inner(self, X: Any, Z: Any) -> Array:
        """Return X Zᵀ."""
        if not is_tensor(X):
            operations = 2.0 * X.shape[0] * X.shape[1] * Z.shape[0]
            return self._hosted(operations, "inner", self.inner, X, Z)
        return self.product(X, Z.T)

    def squared_distances(
        self, X: Any, Z: Any, width: float = 1.0, *, negative: bool = False
    ) -> Array:
        """Return ‖x − z‖²/width²; see :mod:`imparo.engine.torch_distances`."""
        if not is_tensor(X):
            operations = 2.0 * X.shape[0] * X.shape[1] * Z.shape[0]
            return self._hosted(
                operations, "squared_distances", self.squared_distances, X, Z,
                width=width, negative=negative,
            )  # fmt: skip
        return squared_distances(X, Z, width, self.xp, negative=negative)

    def absolute_distances(self, X: Array, Z: Array, width: float = 1.0) -> Array:
        """Return ‖x − z‖₁/width."""
        if not is_tensor(X):
            operations = 3.0 * X.shape[0] * X.shape[1] * Z.shape[0]
            return self._hosted(
                operations, "absolute_distances", self.absolute_distances, X, Z, width=width
            )
        return self.xp.cdist(X, Z, p=1.0).div_(width)

    def accumulate_gram(self, A: Array, block: Any) -> None:
        """Add blockᵀ block to the upper triangle of A, in place."""
        if not is_tensor(A):
            host_engine().accumulate_gram(A, self._block_on_host(block))
            return
        if 0 in block.shape:
            return
        if self.precision == "split" and block.dtype == self.xp.float64:
            add_split_gram(A, block, self.xp, 4 * PANEL)
            return
        block = block.to(A.dtype)
        for first in range(0, A.shape[0], PANEL):
            rows = slice(first, first + PANEL)
            part = A[rows, first:]
            self.xp.addmm(part, block[:, rows].T, block[:, first:], out=part)

    def _block_on_host(self, block: Any) -> Any:
        """Return a block of rows in main memory; sparse ones are there."""
        return block if sparse.issparse(block) else self.to_host(block)

    def accumulate_product(self, C: Array, left: Any, right: Any) -> None:
        """Add leftᵀ right to C, in place."""
        if not is_tensor(C):
            host_engine().accumulate_product(C, left, right)
            return
        left, right = left.to(C.dtype), right.to(C.dtype)
        self.xp.addmm(C, left.T, right, out=C)

    def symmetrize(self, A: Any) -> None:
        """Copy the upper triangle of A to the lower one, in place."""
        if not is_tensor(A):
            host_engine().symmetrize(A)
            return
        for first in range(0, A.shape[0], 4 * PANEL):
            rows = slice(first, first + 4 * PANEL)
            corner = A[rows, rows]
            upper = self.xp.triu(corner, 1)
            corner.triu_().add_(upper.T)
            A[rows.stop :, rows] = A[rows, rows.stop :].T

    # Factors.

    def cholesky(self, A: Any, *, jitter: bool = True, overwrite: bool = False) -> Array:
        """Return the upper R with RᵀR = A."""
        if not is_tensor(A):
            return self._hosted(
                A.shape[0] ** 3 / 3, "cholesky", self.cholesky, A, jitter=jitter,
                overwrite=overwrite,
            )  # fmt: skip
        if len(A) == 0:
            return A.clone()

        def attempt(shift: float) -> Array | None:
            work = A
            if shift:
                work = self.copy(A)
                self.add_to_diagonal(work, shift)
            R, info = self.cholesky_unchecked(work)
            return None if int(info) or not self.xp.isfinite(R.diagonal()).all() else R

        if jitter:
            return factor_with_jitter(attempt, float(A.diagonal().mean()), self.type_of(A))
        factor = attempt(0.0)
        if factor is None:
            raise NotPositiveDefiniteError(
                f"the {len(A)} x {len(A)} matrix is not positive definite in {self.type_of(A)}"
            )
        return factor

    def cholesky_unchecked(self, A: Any) -> tuple[Any, Any]:
        """Return R and a number on the device that is 0 where it is right: no waiting.

        The lower triangle of Aᵀ is the upper one of A, and PyTorch's lower factor the faster.
        """
        L, info = self.xp.linalg.cholesky_ex(A.mT)
        return L.mT, info

    def solve_triangular(self, R: Array, B: Array, *, transpose: bool = False) -> Array:
        """Return R⁻¹B or R⁻ᵀB for upper triangular R."""
        if not is_tensor(R) and not is_tensor(B):
            operations = float(R.shape[0]) ** 2 * B.shape[1]
            return self._hosted(
                operations, "solve_triangular", self.solve_triangular, R, B,
                transpose=transpose,
            )  # fmt: skip
        r: Any = self.asarray(R)
        b: Any = self.asarray(B)
        dtype = self.xp.promote_types(r.dtype, b.dtype)
        r, b = r.to(dtype), b.to(dtype)
        solve = self.xp.linalg.solve_triangular
        return solve(r.mT, b, upper=False) if transpose else solve(r, b, upper=True)

    def whiten(self, R: Any, block: Any) -> Array:
        """Return block R⁻¹."""
        if not is_tensor(block):
            operations = float(R.shape[0]) ** 2 * block.shape[0]
            return self._hosted(operations, "whiten", self.whiten, R, block)
        there: Any = self.asarray(R)
        return self.xp.linalg.solve_triangular(
            there.to(block.dtype), block, upper=True, left=False
        )

    def congruence(self, A: Array, R: Array) -> Array:
        """Return the upper triangle of R⁻ᵀAR⁻¹, by two solves."""
        if not is_tensor(A):
            return self._hosted(A.shape[0] ** 3, "congruence", self.congruence, A, R)
        full = self.copy(A)
        self.symmetrize(full)
        half = self.whiten(R, full)
        del full
        return self.solve_triangular(R, half, transpose=True)

    def invert_triangular(self, R: Array) -> Array:
        """Return R⁻¹."""
        if not is_tensor(R):
            operations = R.shape[0] ** 3 / 3
            return self._hosted(operations, "invert_triangular", self.invert_triangular, R)
        unit = self.xp.eye(R.shape[0], dtype=R.dtype, device=self.device)
        return self.xp.linalg.solve_triangular(R, unit, upper=True)

    def eigh(self, A: Array, *, overwrite: bool = False) -> tuple[Array, Array]:
        """Return eigenvalues, ascending, and orthonormal eigenvectors."""
        if not is_tensor(A):
            operations = 9.0 * A.shape[0] ** 3
            return self._hosted(operations, "eigh", self.eigh, A, overwrite=overwrite)
        values, vectors = self.xp.linalg.eigh(A, UPLO="U")
        return values, vectors

    def pivoted_cholesky(self, A: Array, tolerance: float) -> tuple[Array, Array]:
        """Return L with A ≈ LLᵀ and the pivots; LAPACK has it, PyTorch has not."""
        L, pivots = host_engine().pivoted_cholesky(self.to_host(A), tolerance)
        return (self.asarray(L), pivots) if is_tensor(A) else (L, pivots)

    def orthonormalize(self, L: Array) -> tuple[Array, Array]:
        """Return the thin QR factors of L."""
        if not is_tensor(L):
            operations = 4.0 * L.shape[0] * L.shape[1] ** 2
            return self._hosted(operations, "orthonormalize", self.orthonormalize, L)
        Q, R = self.xp.linalg.qr(L)
        return Q, R
