"""Kernels that are functions of a distance over a width: Gaussian, Laplacian, Matérn."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from imparo.engine import Array, Engine
from imparo.kernels.base import Kernel, check_sigma, ones
from imparo.persistence import persistent


class _Stationary(Kernel):
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
    sigma : float, optional
        The width σ. scikit-learn's ``gamma`` is 1/2σ².

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian
    >>> Gaussian(sigma=1.0)(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    sigma: float | None = None
    sparse: ClassVar[bool] = True
    distance: ClassVar[str | None] = "euclidean"

    def __post_init__(self) -> None:
        check_sigma(self.sigma)

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        assert self.sigma is not None
        S = engine.squared_distances(X, Z, width=self.sigma * np.sqrt(2.0), negative=True)
        return engine.xp.exp(S, out=S)


@persistent
@dataclass(frozen=True)
class Laplacian(_Stationary):
    """K(x, x') = exp(−‖x − x'‖₁/σ), with the sum of absolute differences.

    With the Euclidean distance instead it is ``Matern(0.5)``.

    Parameters
    ----------
    sigma : float, optional
        The width σ. scikit-learn's ``gamma`` is 1/σ.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Laplacian
    >>> Laplacian(sigma=2.0)(np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    sigma: float | None = None
    distance: ClassVar[str | None] = "cityblock"

    def __post_init__(self) -> None:
        check_sigma(self.sigma)

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        assert self.sigma is not None
        S = engine.absolute_distances(X, Z, width=self.sigma)
        engine.xp.negative(S, out=S)
        return engine.xp.exp(S, out=S)


@persistent
@dataclass(frozen=True)
class Matern(_Stationary):
    """Matérn kernel of order 1/2, 3/2 or 5/2.

    With r = ‖x − x'‖/σ: exp(−r), (1 + √3r)exp(−√3r), (1 + √5r + 5r²/3)exp(−√5r).

    Parameters
    ----------
    order : {0.5, 1.5, 2.5}
        Functions of the space have smoothness of this order.
    sigma : float, optional
        The width σ; ``length_scale`` in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Matern
    >>> Matern(1.5, sigma=1.0)(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.4834],
           [0.4834, 1.    ]])
    """

    order: float = 1.5
    sigma: float | None = None
    sparse: ClassVar[bool] = True
    distance: ClassVar[str | None] = "euclidean"

    def __post_init__(self) -> None:
        check_sigma(self.sigma)
        if self.order not in (0.5, 1.5, 2.5):
            raise ValueError(f"the order of Matern must be 0.5, 1.5 or 2.5, not {self.order!r}")

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        assert self.sigma is not None
        xp = engine.xp
        R = engine.squared_distances(X, Z, width=self.sigma / np.sqrt(2 * self.order))
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
