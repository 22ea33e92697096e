"""Kernel values at centers, as they are: what every map of centers evaluates."""

from typing import Any, Self

import numpy as np
from scipy import sparse

from imparo.engine import Array, engine_of, is_tensor
from imparo.features.base import FeatureMap
from imparo.features.sent import sent
from imparo.kernels import Kernel


class CenterMap(FeatureMap):
    """Rows → K(x, X̃): no whitening, for solvers that never form an m × m matrix of features.

    Parameters
    ----------
    kernel : Kernel
    centers : array or csr matrix of shape (m, d)

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features.center_map import CenterMap
    >>> from imparo.kernels import Linear
    >>> CenterMap(Linear(), np.eye(2)).evaluate(np.array([[3.0, 4.0]]))
    array([[3., 4.]])
    """

    factor: Array | None = None

    def __init__(self, kernel: Kernel, centers: Any) -> None:
        self.kernel, self.centers = kernel, centers
        self.n_given = int(centers.shape[0])

    def __sizeof__(self) -> int:
        # What Dask counts, to decide which worker comes to what it needs.
        centers = self.centers.data if sparse.issparse(self.centers) else self.centers
        factor = 0 if self.factor is None else self.factor.nbytes
        return object.__sizeof__(self) + centers.nbytes + factor

    def __len__(self) -> int:
        """Return the number m of centers."""
        return int(self.centers.shape[0])

    @property
    def n_columns_in(self) -> int:
        """Number d of columns of the rows."""
        return int(self.centers.shape[1])

    @property
    def portable(self) -> bool:
        """Whether :meth:`evaluate` takes tensors: for dense rows and kernels of ours."""
        return self.kernel.portable and not sparse.issparse(self.centers)

    def evaluate(self, X: Any, start: int = 0, stop: int | None = None) -> Array:
        """Return K(x, x̃) of some centers. Cost 2nmd.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        start, stop : int
            All centers if left out.

        Returns
        -------
        array of shape (n, stop − start)
        """
        if is_tensor(X):
            engine = engine_of(X)
            points = sent(self, "centers", self.centers, engine, engine.type_of(X))
            return self.kernel(X, points[start:stop], engine=engine)
        centers = self.centers[start:stop]
        if centers.shape[0] == 0:  # a kernel function may not take blocks of no rows
            return np.empty((X.shape[0], 0), np.result_type(X.dtype, np.float32))
        return self.kernel(X, centers)

    def columns(self, n_given: Any) -> Array:
        """Return ``n_given`` itself, as far as there are so many."""
        return np.minimum(np.atleast_1d(n_given), len(self))

    def transform(self, X: Any) -> Array:
        """Return K(x, X̃)."""
        return self.evaluate(X)

    def coefficients(self, W: Array) -> Array:
        """Return the weights themselves."""
        return W

    def first(self, n_columns: int) -> Self:
        """Return the map of the first centers."""
        return type(self)(self.kernel, self.centers[:n_columns])
