"""Kernels that are functions of a distance over a width: Gaussian, Laplacian, Matérn."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from imparo.engine import Array, Engine, default_engine, engine_of, is_tensor
from imparo.kernels.base import Kernel, Width, as_width, ones
from imparo.persistence import persistent


class _Stationary(Kernel):
    sigma: Width

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", as_width(self.sigma))

    def _in_widths(self, X: Any, Z: Any) -> tuple[Any, Any, float]:
        """Return rows, and the one width that they are to be compared with."""
        if not isinstance(self.sigma, tuple):
            assert self.sigma is not None
            return X, Z, self.sigma
        scaled = self._scaled(X)
        return scaled, scaled if Z is X else self._scaled(Z), 1.0

    def _scaled(self, X: Any) -> Any:
        widths = np.array(self.sigma)
        if X.shape[1] != len(widths):
            raise ValueError(
                f"the kernel has {len(widths)} widths and the rows have {X.shape[1]} columns; "
                "give a width for every column"
            )
        engine = engine_of(X)
        inverse = (1 / widths).astype(np.result_type(engine.type_of(X), np.float32))
        if is_tensor(X):
            return X * engine.asarray(inverse)
        return X.multiply(inverse).tocsr() if sparse.issparse(X) else X * inverse

    def _slope(self, R: Array) -> Array:
        """Return h(r) with ∂K/∂log σ_k = h(r)·(x_k − x'_k)²/σ_k², at distances r in widths."""
        raise AssertionError

    def width_gradient(self, X: Array, M: Array, Z: Array | None = None) -> Array:
        """Return Σ_ij M_ij·∂K(x_i, z_j)/∂log σ_k for every column k.

        With P = M∘h it is Σ_i x_ik²(P1)_i + Σ_j z_jk²(Pᵀ1)_j − 2Σ_i x_ik(PZ)_ik, rows over
        their widths: products of matrices. Cost 4nmd.

        Parameters
        ----------
        X : array of shape (n, d)
        M : array of shape (n, m)
        Z : array of shape (m, d), optional
            ``X`` itself if left out.

        Returns
        -------
        array of shape (d,)
            Their sum belongs to a width that all columns share.
        """
        engine = default_engine()
        X, Z, width = self._in_widths(X, X if Z is None else Z)
        middle = Z.mean(axis=0)  # which would cancel in the differences
        X, Z = (X - middle) / width, (Z - middle) / width
        P = self._slope(np.sqrt(engine.squared_distances(X, Z)))
        P *= M
        inner = np.einsum("ik,ik->k", X, engine.product(P, Z))
        own = engine.product(np.square(X).T, P.sum(axis=1)[:, None])
        other = engine.product(np.square(Z).T, P.sum(axis=0)[:, None])
        return own[:, 0] + other[:, 0] - 2 * inner

    def diagonal(self, X: Any) -> Array:
        """Return ones."""
        return ones(X)

    @property
    def bound(self) -> float:
        """1, as K(x, x) = 1."""
        return 1.0


@persistent
@dataclass(frozen=True)
class Gaussian(_Stationary):
    """K(x, x') = exp(−‖x − x'‖²/2σ²) (thesis, section 2.3).

    Parameters
    ----------
    sigma : float or sequence of float, optional
        The width σ, or one for every column: each is divided by its own. scikit-learn's
        ``gamma`` is 1/2σ².

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian
    >>> Gaussian(sigma=1.0)(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    sigma: Width = None
    sparse: ClassVar[bool] = True
    distance: ClassVar[str | None] = "euclidean"

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        X, Z, sigma = self._in_widths(X, Z)
        S = engine.squared_distances(X, Z, width=sigma * np.sqrt(2.0), negative=True)
        return engine.xp.exp(S, out=S)

    def _slope(self, R: Array) -> Array:
        return np.exp(-0.5 * np.square(R))


@persistent
@dataclass(frozen=True)
class Laplacian(_Stationary):
    """K(x, x') = exp(−‖x − x'‖₁/σ), with the sum of absolute differences.

    With the Euclidean distance instead it is ``Matern(0.5)``.

    Parameters
    ----------
    sigma : float or sequence of float, optional
        The width σ, or one for every column. scikit-learn's ``gamma`` is 1/σ.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Laplacian
    >>> Laplacian(sigma=2.0)(np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    sigma: Width = None
    distance: ClassVar[str | None] = "cityblock"

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        X, Z, sigma = self._in_widths(X, Z)
        S = engine.absolute_distances(X, Z, width=sigma)
        engine.xp.negative(S, out=S)
        return engine.xp.exp(S, out=S)

    def width_gradient(self, X: Array, M: Array, Z: Array | None = None) -> Array:
        """Return Σ_ij M_ij·K(x_i, z_j)·abs(x_ik − z_jk)/σ_k for every column k. Cost 4nmd.

        Parameters
        ----------
        X : array of shape (n, d)
        M : array of shape (n, m)
        Z : array of shape (m, d), optional
            ``X`` itself if left out.

        Returns
        -------
        array of shape (d,)
        """
        P = self(X, Z) * M
        X, Z, width = self._in_widths(X, X if Z is None else Z)
        pairs = zip((X / width).T, (Z / width).T, strict=True)
        return np.array([np.sum(P * np.abs(x[:, None] - z)) for x, z in pairs])


@persistent
@dataclass(frozen=True)
class Matern(_Stationary):
    """Matérn kernel of order 1/2, 3/2 or 5/2.

    With r = ‖x − x'‖/σ: exp(−r), (1 + √3r)exp(−√3r), (1 + √5r + 5r²/3)exp(−√5r).

    Parameters
    ----------
    order : {0.5, 1.5, 2.5}
        Functions of the space have smoothness of this order.
    sigma : float or sequence of float, optional
        The width σ, or one for every column; ``length_scale`` in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Matern
    >>> Matern(1.5, sigma=1.0)(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.4834],
           [0.4834, 1.    ]])
    """

    order: float = 1.5
    sigma: Width = None
    sparse: ClassVar[bool] = True
    distance: ClassVar[str | None] = "euclidean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order not in (0.5, 1.5, 2.5):
            raise ValueError(f"the order of Matern must be 0.5, 1.5 or 2.5, not {self.order!r}")

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        X, Z, sigma = self._in_widths(X, Z)
        xp = engine.xp
        R = engine.squared_distances(X, Z, width=sigma / np.sqrt(2 * self.order))
        xp.sqrt(R, out=R)
        if self.order == 0.5:
            xp.negative(R, out=R)
            return xp.exp(R, out=R)
        K = xp.negative(R)
        xp.exp(K, out=K)
        if self.order == 1.5:
            R += 1
        else:
            # 1 + r + r²/3 = ((r + 3/2)² + 3/4)/3, without a third matrix.
            R += 1.5
            R *= R
            R += 0.75
            R /= 3
        K *= R
        return K

    def _slope(self, R: Array) -> Array:
        if self.order == 0.5:
            # Not differentiable at 0, where (x_k − x'_k)²/r is 0 all the same.
            return np.exp(-R) / np.where(R > 0, R, 1.0)
        a = np.sqrt(2 * self.order)
        slope = np.exp(-a * R)
        return 3 * slope if self.order == 1.5 else 5 / 3 * (1 + a * R) * slope
