"""The Nyström map Φ = K(X, X̃)T⁻¹, TᵀT = K(X̃, X̃), nested in the number of centers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from imparo.engine import (
    Array,
    default_engine,
    engine_holding,
    host_engine,
)
from imparo.errors import NotPositiveDefiniteError
from imparo.features.center_map import CenterMap
from imparo.features.independent import extend_factor
from imparo.kernels import Kernel
from imparo.persistence import persistent

# A residual so many times its rounding error below 0 is not that of a positive definite
# kernel.
_CLEARLY_NEGATIVE = 100


@persistent
@dataclass(frozen=True)
class Dropped:
    """A center that adds nothing to those before it, and why.

    Attributes
    ----------
    center : int
        Its position in the order in which centers were chosen.
    reason : str
        In words.
    """

    center: int
    reason: str


@persistent
class NystromMap(CenterMap):
    """Rows → K(x, X̃)T⁻¹ with T upper triangular, TᵀT = K(X̃, X̃) (thesis, section 4.2).

    ‖T⁻ᵀk(x)‖² ≤ K(x, x), and φ(x)ᵀφ(x') is the kernel of the projections of K(x, ·) and
    K(x', ·) on the span of the centers: ridge regression on φ is Nyström KRLS, with
    coefficients α = T⁻¹w. Because T is triangular, the first t columns depend on the
    first t centers alone: one map holds those of every size.

    Centers that lie within rounding of the span of earlier ones are dropped, one by one
    in their order, and the reason is recorded: a singular K(X̃, X̃) is no special case.

    Parameters
    ----------
    kernel : Kernel
    centers : array or csr matrix of shape (m, d)
        In the order in which they were chosen.

    Attributes
    ----------
    centers : array or csr matrix of shape (p, d)
        Those that are kept.
    positions : array of shape (p,)
        Where they were among the m.
    factor : array of shape (p, p)
        T, in float64; a tensor where it was made on a device.
    n_given : int
        m.
    dropped : list of Dropped

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import NystromMap
    >>> from imparo.kernels import Gaussian
    >>> rows = np.array([[0.0], [1.0], [0.0], [2.0]])
    >>> map = NystromMap(Gaussian(1.0), rows)
    >>> map.dropped
    [Dropped(center=2, reason='equal to center 0')]
    >>> Phi = map.transform(rows)
    >>> bool(np.allclose(Phi @ Phi.T, Gaussian(1.0)(rows)))
    True
    """

    factor: Array

    def __init__(self, kernel: Kernel, centers: Any) -> None:
        self.kernel = kernel
        self.centers = centers[:0]
        self.positions = np.empty(0, np.intp)
        self.factor = host_engine().zeros((0, 0), np.dtype(np.float64))
        self.n_given = 0
        self.dropped: list[Dropped] = []
        self._extend(centers)

    def __len__(self) -> int:
        """Return the number p of columns."""
        return len(self.positions)

    def __getstate__(self) -> dict[str, Any]:
        # Pickled in main memory: a GPU may not be there again.
        return vars(self) | {"factor": engine_holding(self.factor).to_host(self.factor)}

    def grow(self, centers: Any) -> "NystromMap":
        """Return the map with more centers after those of this one, which it keeps.

        Parameters
        ----------
        centers : array or csr matrix of shape (k, d)

        Returns
        -------
        NystromMap
        """
        grown = NystromMap.__new__(NystromMap)
        vars(grown).update(vars(self))
        grown.dropped = list(self.dropped)
        grown._extend(centers)
        return grown

    def first(self, n_columns: int) -> "NystromMap":
        """Return the map of the first columns.

        Parameters
        ----------
        n_columns : int

        Returns
        -------
        NystromMap
        """
        part = NystromMap.__new__(NystromMap)
        part.kernel, part.centers = self.kernel, self.centers[:n_columns]
        part.positions = self.positions[:n_columns]
        part.factor = engine_holding(self.factor).copy(self.factor[:n_columns, :n_columns])
        part.n_given = int(part.positions[-1]) + 1 if n_columns else 0
        part.dropped = [d for d in self.dropped if d.center < part.n_given]
        return part

    def evaluator(self) -> CenterMap:
        """Return K(x, X̃) of the same centers: no factor, and nothing whitened."""
        return CenterMap(self.kernel, self.centers)

    def columns(self, n_given: Any) -> Array:
        """Return how many columns belong to the first ``n_given`` centers.

        Parameters
        ----------
        n_given : int or array of shape (S,)

        Returns
        -------
        array of shape (S,)
        """
        return np.searchsorted(self.positions, np.atleast_1d(n_given))

    def transform(self, X: Any) -> Array:
        """Return Φ. Cost 2nmd + nm².

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)

        Returns
        -------
        array of shape (n, p)
        """
        there = self._worth_sending(X, float(X.shape[0]) * len(self) ** 2)
        if there is not None:
            return there.to_host(self.transform(there.asarray(X)))
        engine = engine_holding(X)
        factor = self.factor_on(engine)
        assert factor is not None
        return engine.whiten(factor, self.evaluate(X))

    def on_host(self) -> "NystromMap":
        """Return the map with its factor in main memory."""
        same = NystromMap.__new__(NystromMap)
        vars(same).update(self.__getstate__())
        return same

    def coefficients(self, W: Array) -> Array:
        """Return α = T⁻¹w for weights of the first columns, to multiply K(x, X̃) with.

        Parameters
        ----------
        W : array of shape (t, T)
            Weights of the first t columns.

        Returns
        -------
        array of shape (t, T)
        """
        engine, t = engine_holding(W), len(W)
        factor = self.factor_on(engine)
        assert factor is not None
        return engine.solve_triangular(factor[:t, :t], W)

    def _extend(self, centers: Any) -> None:
        engine, number = default_engine(), np.dtype(np.float64)
        # In float64 also for float32 rows: m² of them cost little and T stays exact.
        new = centers.astype(np.float64)
        old = self.centers.astype(np.float64)
        if engine.resident and self.kernel.portable and not sparse.issparse(centers):
            new, old = engine.asarray(new), engine.asarray(old)
        K = engine.asarray(self.kernel(new, new))
        cross = engine.zeros((0, new.shape[0]), number)
        if len(self):  # a kernel function may not take blocks of no rows
            cross = engine.asarray(self.kernel(old, new))
        check_values(K, self.kernel)
        eps = float(np.finfo(np.result_type(centers.dtype, np.float32)).eps)
        found = extend_factor(engine.asarray(self.factor), cross, K, eps)
        self.factor, kept, residuals = found.factor, found.kept, found.residuals
        hopeless = residuals < -_CLEARLY_NEGATIVE * found.limits
        if hopeless.any():
            raise NotPositiveDefiniteError(
                f"the kernel {self.kernel!r} is not positive definite on these rows: a squared "
                f"distance between functions is {residuals[hopeless].min():.2g} of K(x, x)"
            )
        lost = np.setdiff1d(np.arange(len(residuals)), kept)
        everything = _stack(self.centers, centers)
        places = np.concatenate([np.arange(len(self)), len(self) + kept])
        self.centers = everything[places]
        self.positions = np.concatenate([self.positions, self.n_given + kept])
        for j in lost:
            reason = self._reason(centers, j, float(residuals[j]), float(found.limits[j]))
            self.dropped.append(Dropped(int(self.n_given + j), reason))
        self.n_given += len(residuals)

    def _reason(self, centers: Any, j: int, residual: float, limit: float) -> str:
        row = centers[j : j + 1]
        if float(self.kernel.diagonal(row)[0]) <= 0:
            return "K(x, x) is 0: the kernel vanishes there"
        before = np.flatnonzero(self.positions < self.n_given + j)
        own = float(self.kernel.diagonal(row)[0])
        alike = self.kernel(row, self.centers[before])[0] >= own * (1 - 1e-6)
        for twin in before[alike]:
            if abs(row - self.centers[twin : twin + 1]).max() == 0:
                return f"equal to center {self.positions[twin]}"
        return (
            f"within rounding of the span of earlier centers: {max(residual, 0.0):.1e} of "
            f"K(x, x) is left, known to {limit:.1e}"
        )


def _stack(first: Any, second: Any) -> Any:
    if sparse.issparse(second):
        return sparse.vstack([first, second], format="csr")
    return np.concatenate([first, second])


def check_values(K: Array, kernel: Kernel) -> None:
    """Raise if values of a kernel are not finite."""
    xp = engine_holding(K).xp
    if bool(xp.isfinite(K).all()):
        return
    if bool(xp.isnan(K).any()):
        raise ValueError(f"the kernel {kernel!r} gives NaN on these rows; check the function")
    raise ValueError(
        f"the kernel {kernel!r} overflows on these rows; scale the columns of X, for "
        "instance with StandardScaler"
    )
