"""The Walsh-Hadamard transform, as products with small matrices."""

from functools import cache
from typing import Any

import numpy as np
from scipy import linalg

from imparo.engine import Array, default_engine

# Numbers in a block: products of at most 10⁶ terms take OpenBLAS' fast way for small
# matrices, which is twice as fast here.
BLOCK = 60_000


def hadamard_transform(X: Array) -> Array:
    """Return X H, H being Sylvester's Hadamard matrix with entries ±1.

    H_ab = H_a ⊗ H_b: over a row as a box with sides of about 8, H is a product with a small H
    along each side. Each is one matrix product that puts its side in front of the others,
    or behind them, so that after the last one the numbers lie as in the transpose:
    nothing is moved in between. The rows of H are orthogonal, HH = dI.

    Parameters
    ----------
    X : array of shape (n, d)
        d a power of two, in row-major or column-major order. Blocks of 60,000 numbers are
        the fastest.

    Returns
    -------
    array of shape (n, d)
        Column-major if X is row-major, and row-major if it is column-major.

    Notes
    -----
    Cost 2nd·Σf for sides of length f, at most 8nd·log₂ d, at the speed of matrix products; a
    product with H itself costs 2nd².

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import hadamard_transform
    >>> hadamard_transform(np.array([[1.0, 2.0, 3.0, 5.0]]))
    array([[11., -3., -5.,  1.]])
    """
    n, d = X.shape
    if d < 1 or d & (d - 1):
        raise ValueError(f"X has {d} columns and must have a power of two; pad it with zeros")
    engine, X = default_engine(), X.astype(working_type(X.dtype), copy=False)
    sides = [sylvester(k, X.dtype) for k in _exponents(d.bit_length() - 1)]
    if X.flags.c_contiguous:
        for H in sides:
            # Symmetric, and faster so: BLAS then has both of its factors transposed.
            X = engine.product(H.T, X.reshape(-1, len(H)).T)
        return X.reshape(d, n).T
    V = np.ascontiguousarray(X.T)
    for H in sides:
        V = engine.product(V.reshape(len(H), -1).T, H)
    return V.reshape(n, d)


def working_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 for half and single precision, and float64 for everything else."""
    half = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if half else np.float64)


def _exponents(k: int) -> list[int]:
    """Return numbers about 3, as equal as can be, with the sum k."""
    # Sides of 8, or of 4 and 16 beside them: from 512 to 8,192 columns larger ones cost more
    # flops than they save passes over the block, and smaller ones more passes.
    count = max(1, (k + 1) // 3)
    return [(k + i) // count for i in range(count)]


@cache
def sylvester(k: int, dtype: np.dtype[Any]) -> Array:
    """Return H of 2^k columns, which nobody may write to."""
    H = linalg.hadamard(2**k).astype(dtype)
    H.flags.writeable = False
    return H
