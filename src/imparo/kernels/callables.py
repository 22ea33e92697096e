"""Kernels that the user computes: a function, or the matrix itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from imparo.engine import Array, Engine
from imparo.kernels.base import Kernel
from imparo.persistence import persistent


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A kernel from a function of two blocks of rows.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` returns the (n, m) matrix of a positive-definite
        function. A function of two single rows is made into one by
        :func:`pairwise`.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import CallableKernel
    >>> K = CallableKernel(lambda X, Z: np.minimum(X, Z.T))
    >>> K(np.array([[1.0], [3.0]]))
    array([[1., 1.],
           [1., 3.]])
    """

    function: Callable[[Any, Any], Any]
    portable: ClassVar[bool] = False

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        K = np.array(self.function(X, Z), dtype=np.result_type(X, Z, np.float32))
        expected = (X.shape[0], Z.shape[0])
        if K.shape != expected:
            raise ValueError(
                f"the kernel function returned shape {K.shape} for blocks of {expected[0]} "
                f"and {expected[1]} rows; it must return {expected} (wrap a function of two "
                "single rows in imparo.kernels.pairwise)"
            )
        return K

    def diagonal(self, X: Any) -> Array:
        """Return K(x_i, x_i), one call for each row."""
        rows = (self(X[i : i + 1])[0, 0] for i in range(X.shape[0]))
        return np.fromiter(rows, np.result_type(X.dtype, np.float32), X.shape[0])

    @property
    def bound(self) -> float:
        """Infinite: nothing is known of the function."""
        return np.inf


def pairwise(function: Callable[[Any, Any], float]) -> CallableKernel:
    """Return a kernel from a function of two single rows.

    Parameters
    ----------
    function : callable
        ``function(x, z)`` returns a number. It is called n·m times: a function of
        two blocks is very much faster where it can be written.

    Returns
    -------
    CallableKernel

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import pairwise
    >>> pairwise(lambda x, z: min(x[0], z[0]))(np.array([[1.0], [3.0]]))
    array([[1., 1.],
           [1., 3.]])
    """

    def block(X: Any, Z: Any) -> Array:
        return np.array([[function(x, z) for z in Z] for x in X]).reshape(len(X), len(Z))

    return CallableKernel(block)


@persistent
@dataclass(frozen=True)
class Precomputed(Kernel):
    """The kernel matrix is given in place of the rows, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Precomputed
    >>> Precomputed()(np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """

    portable: ClassVar[bool] = False

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        return np.array(X, np.result_type(X, np.float32))

    def diagonal(self, X: Any) -> Array:
        """Return the diagonal of the square matrix."""
        return np.array(np.diagonal(X))

    @property
    def bound(self) -> float:
        """Infinite: nothing is known of the matrix."""
        return np.inf
