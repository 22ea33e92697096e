"""Kernels that are functions of the inner product xᵀx'."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from imparo.engine import Array, Engine
from imparo.kernels.base import Kernel
from imparo.persistence import persistent


def _squared_norms(X: Any) -> Array:
    dtype = np.result_type(X.dtype, np.float32)
    if sparse.issparse(X):
        X = X.astype(dtype, copy=False)
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=dtype)


@persistent
@dataclass(frozen=True)
class Linear(Kernel):
    """K(x, x') = xᵀx'; makes kernel methods linear ones (thesis, section 2.3).

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Linear
    >>> Linear()(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[5., 2.],
           [2., 1.]])
    """

    sparse: ClassVar[bool] = True

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        return engine.inner(X, Z)

    def diagonal(self, X: Any) -> Array:
        """Return ‖x_i‖²."""
        return _squared_norms(X)

    @property
    def bound(self) -> float:
        """Infinite."""
        return np.inf


@persistent
@dataclass(frozen=True)
class Polynomial(Kernel):
    """K(x, x') = (xᵀx' + 1)^degree (thesis, section 2.3).

    Parameters
    ----------
    degree : int
        At least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Polynomial
    >>> Polynomial(2)(np.array([[1.0], [2.0]]))
    array([[ 4.,  9.],
           [ 9., 25.]])
    """

    degree: int = 2
    sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (isinstance(self.degree, int | np.integer) and self.degree >= 1):
            raise ValueError(f"degree must be a whole number from 1 on, not {self.degree!r}")

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        S = engine.inner(X, Z)
        S += 1
        return engine.xp.pow(S, self.degree, out=S)

    def diagonal(self, X: Any) -> Array:
        """Return (‖x_i‖² + 1)^degree."""
        return (_squared_norms(X) + 1) ** self.degree

    @property
    def bound(self) -> float:
        """Infinite."""
        return np.inf
