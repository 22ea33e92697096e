"""Random features of the spline kernels of the simulation in chapter 5."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from imparo.centers.base import check_whole
from imparo.engine import Array
from imparo.features.base import FeatureRule
from imparo.features.drawn import DIRECTIONS, DrawnMap, check_number, stream
from imparo.features.spectral import unscaled
from imparo.features.waves import in_pieces
from imparo.kernels import Kernel, Spline
from imparo.persistence import persistent


@persistent
@dataclass(frozen=True, eq=False)
class SplineMap(DrawnMap):
    """Features a_j·K_q(ω_j, x), with points ω_j of [0, 1].

    Parameters
    ----------
    nodes : array of shape (m,)
        ω.
    amplitudes : array of shape (m,)
        a.
    q : float
        Order of the features, half of that of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import SplineMap
    >>> from imparo.kernels import Spline
    >>> X = np.array([[0.25], [0.75]])
    >>> map = SplineMap(nodes=np.array([0.5]), amplitudes=np.ones(1), q=2.0)
    >>> bool(np.allclose(map.evaluate(X), Spline(2.0)(X, np.array([[0.5]]))))
    True
    """

    nodes: Array
    amplitudes: Array
    q: float

    @property
    def n_given(self) -> int:  # type: ignore[override]  # follows from the nodes
        """Number m of features."""
        return len(self.nodes)

    @property
    def n_columns_in(self) -> int:
        """1."""
        return 1

    def evaluate(self, X: Any, start: int = 0, stop: int | None = None) -> Array:
        """Return columns ``start`` to ``stop`` of ψ. Cost about 130 flops each.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, 1)
        start, stop : int
            All columns if left out.

        Returns
        -------
        array of shape (n, stop − start)
            Row-major; float32 if X is, float64 otherwise.
        """
        X, start, stop = self._checked(X, start, stop)
        X = X.toarray() if sparse.issparse(X) else X
        kernel, nodes = Spline(self.q), self.nodes[start:stop, None].astype(X.dtype)
        amplitudes = self.amplitudes[start:stop].astype(X.dtype)
        F = np.empty((len(X), stop - start), X.dtype)

        def work(rows: slice) -> None:
            np.multiply(kernel(X[rows], nodes), amplitudes, out=F[rows])

        in_pieces(work, *F.shape)
        return F

    def _first(self, size: int) -> Self:
        return type(self)(self.nodes[:size], self.amplitudes[:size], self.q)

    def picked(self, positions: Array, weights: Array) -> "SplineMap":
        """Return the map of some of the nodes, each times a weight."""
        return SplineMap(self.nodes[positions], self.amplitudes[positions] * weights, self.q)


@persistent
@dataclass(frozen=True)
class SplineFeatures(FeatureRule):
    """ψ(ω, x) = K_{q/2}(ω, x), ω uniform on [0, 1], for the kernel ``Spline(q)``.

    As ∫K_{q/2}(ω, x)K_{q/2}(ω, x')dω = K_q(x, x'), these are features of the spline kernel,
    and everything about them is diagonal in the Fourier basis (thesis, chapter 5, numerical
    results).

    Notes
    -----
    q must be above 2, so that K_{q/2} is bounded. Rows have one column, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import SplineFeatures
    >>> from imparo.kernels import Spline
    >>> X = np.array([[0.1], [0.3]])
    >>> Phi = SplineFeatures().draw(Spline(4.0), 1, n_features=20_000, seed=0).transform(X)
    >>> bool(np.allclose(Phi @ Phi.T, Spline(4.0)(X), atol=0.1))
    True
    """

    def check(self, kernel: Kernel, n_columns: int) -> None:
        """Raise unless the kernel is a spline of order above 2 and there is one column.

        Parameters
        ----------
        kernel : Kernel
        n_columns : int
        """
        check_whole("n_columns", n_columns)
        part, _ = unscaled(kernel)
        if not isinstance(part, Spline):
            raise ValueError(
                "SplineFeatures has features of the spline kernel and of positive multiples of "
                f"it, not of {kernel!r}; use Spline(q), or Fourier for a Gaussian, Laplacian "
                "or Matérn kernel"
            )
        if part.q <= 2:
            raise ValueError(
                f"the order q of {part!r} must be above 2, as its random features are splines "
                "of order q/2; use Spline(4.0), for instance"
            )
        if n_columns != 1:
            raise ValueError(
                f"the spline kernel takes one column and X has {n_columns}; use the Gaussian "
                "or a Matérn kernel"
            )

    def draw(
        self, kernel: Kernel, n_columns: int, n_features: int, seed: int, rows: Any = None
    ) -> SplineMap:
        """Draw features; see :meth:`FeatureRule.draw`. Rows are not looked at."""
        self.check(kernel, n_columns)
        check_number(self, n_features)
        part, factor = unscaled(kernel)
        assert isinstance(part, Spline)
        nodes = stream(seed, DIRECTIONS).random(int(n_features))
        return SplineMap(nodes, np.full(len(nodes), np.sqrt(factor)), part.q / 2)
