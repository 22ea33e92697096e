"""What every kernel is, and how kernels are added and multiplied."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from imparo.engine import Array, Engine, engine_of, host_engine, is_tensor
from imparo.persistence import persistent

# Operations of a matrix product that take as long as the function of a distance.
_FUNCTION = 60


class Kernel(ABC):
    """A positive-definite function K(x, x') (thesis, section 2.3).

    Kernels are immutable values: two with equal parameters are equal. Sums and
    products of kernels, and positive multiples, are kernels:
    ``Gaussian(1.0) + 0.5 * Linear()``.

    A kernel with a width may be made without one (``Gaussian()``); an estimator
    then sets it from its own ``sigma``.
    """

    #: Whether sparse rows are accepted.
    sparse: ClassVar[bool] = False
    #: The distance that the width is compared with, for the width heuristics.
    distance: ClassVar[str | None] = None
    #: Whether it is written in terms of an engine, and so runs on every device.
    portable: ClassVar[bool] = True

    @abstractmethod
    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        """Return the (n, m) matrix K(X, Z)."""

    @abstractmethod
    def diagonal(self, X: Any) -> Array:
        """Return K(x_i, x_i) for every row, without the matrix. Cost nd at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)

        Returns
        -------
        array of shape (n,)
        """

    @property
    @abstractmethod
    def bound(self) -> float:
        """The supremum κ² of K(x, x), infinite where there is none."""

    def __call__(self, X: Any, Z: Any = None, *, engine: Engine | None = None) -> Array:
        """Return the kernel matrix of two blocks of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        Z : array or sparse matrix of shape (m, d), optional
            ``X`` itself if left out.
        engine : Engine, optional
            Where to compute; where the rows are if left out.

        Returns
        -------
        array of shape (n, m)
            A tensor if the rows are tensors.
        """
        if self.needs_sigma:
            raise ValueError(
                f"the width of {self!r} is not set; give sigma, or fit it with an estimator"
            )
        self.check_rows(X)
        self.check_rows(Z)
        Z = X if Z is None else Z
        engine = engine or engine_of(Z if is_tensor(Z) else X)
        if is_tensor(X) != is_tensor(Z):
            X, Z = engine.asarray(X), engine.asarray(Z)
        if not engine.resident or (is_tensor(X) and self.portable):
            return self._evaluate(X, Z, engine)
        if is_tensor(X):
            rows = engine.to_host(X)
            points = rows if Z is X else engine.to_host(Z)
            return engine.asarray(self._evaluate(rows, points, host_engine()))
        n, m, d = X.shape[0], Z.shape[0], X.shape[1]
        moved = float(n * m + n * d + m * d) * X.dtype.itemsize
        dense = self.portable and not sparse.issparse(X) and not sparse.issparse(Z)
        if not dense or not engine.pays(n * m * (2.0 * d + _FUNCTION), moved):
            return self._evaluate(X, Z, host_engine())
        rows = engine.asarray(X)
        points = rows if Z is X else engine.asarray(Z)
        return engine.to_host(self._evaluate(rows, points, engine))

    def check_rows(self, X: Any) -> None:
        """Raise TypeError if the rows are sparse and the kernel needs dense ones."""
        if not self.sparse and sparse.issparse(X):
            raise TypeError(
                f"{type(self).__name__} takes dense rows and got a sparse matrix; use the "
                "linear, polynomial, Gaussian or Matérn kernel, or X.toarray()"
            )

    @property
    def needs_sigma(self) -> bool:
        """Whether a width is still to be set, in this kernel or in a part of it."""
        return getattr(self, "sigma", 1.0) is None

    def with_sigma(self, sigma: "float | tuple[float, ...]") -> Self:
        """Return this kernel with every width that was not set put to ``sigma``.

        Parameters
        ----------
        sigma : float or tuple of float
            A positive width, or one for every column.

        Returns
        -------
        Kernel
        """
        if self.needs_sigma and is_dataclass(self):
            return replace(self, sigma=sigma)
        return self

    @property
    def width_distance(self) -> str | None:
        """The distance of the first part whose width is not set, or None."""
        return self.distance if self.needs_sigma else None

    def __add__(self, other: Any) -> "Kernel":
        other = _as_part(other)
        return NotImplemented if other is None else Sum(self, other)

    def __mul__(self, other: Any) -> "Kernel":
        other = _as_part(other)
        return NotImplemented if other is None else Product(self, other)

    __radd__ = __add__
    __rmul__ = __mul__


def _as_part(value: Any) -> Kernel | None:
    if isinstance(value, Kernel):
        return value
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return Constant(float(value))
    return None


#: A width for all columns, one for each, or none yet.
Width = float | tuple[float, ...] | None


def check_sigma(sigma: float | None) -> None:
    """Raise unless ``sigma`` is None or a positive, finite number."""
    if sigma is not None and not (
        isinstance(sigma, int | float | np.number) and 0 < sigma < np.inf
    ):
        raise ValueError(f"sigma must be a positive number, not {sigma!r}")


def as_width(sigma: Any) -> Width:
    """Return a width as kernels keep it, checked: widths of columns become a tuple."""
    if sigma is None or np.ndim(sigma) == 0:
        check_sigma(sigma)
        return sigma
    try:
        widths = tuple(float(value) for value in np.asarray(sigma, np.float64).ravel())
    except (TypeError, ValueError):
        widths = ()
    if np.ndim(sigma) != 1 or not widths or not all(0 < w < np.inf for w in widths):
        raise ValueError(
            f"sigma must be a positive number, or a list of one for every column, not {sigma!r}"
        )
    return widths


def width_of(kernel: Kernel) -> Width:
    """Return the width, or widths, of a kernel; None if it has none."""
    return getattr(kernel, "sigma", None)


def ones(X: Any) -> Array:
    """Return n ones in the floating-point type of X."""
    return np.ones(X.shape[0], np.result_type(X.dtype, np.float32))


@persistent
@dataclass(frozen=True)
class Constant(Kernel):
    """K(x, x') = value ≥ 0; added to a kernel, it is an intercept with a penalty.

    Parameters
    ----------
    value : float
        Not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Constant, Linear
    >>> (Linear() + Constant(2.0))(np.array([[1.0], [3.0]]))
    array([[ 3.,  5.],
           [ 5., 11.]])
    """

    value: float = 1.0
    sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.value < np.inf:
            raise ValueError(
                f"a kernel can be shifted or scaled by a finite number that is not "
                f"negative, not by {self.value!r}"
            )

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        dtype = np.result_type(engine.type_of(X), engine.type_of(Z), np.float32)
        K = engine.zeros((X.shape[0], Z.shape[0]), dtype)
        K += self.value
        return K

    def diagonal(self, X: Any) -> Array:
        """Return ``value`` for every row."""
        return self.value * ones(X)

    @property
    def bound(self) -> float:
        """``value``."""
        return self.value


@dataclass(frozen=True)
class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def __call__(self, X: Any, Z: Any = None, *, engine: Engine | None = None) -> Array:
        engine = engine or engine_of(X)
        K = self.left(X, Z, engine=engine)
        return self._join(K, self.right(X, Z, engine=engine))

    def _evaluate(self, X: Any, Z: Any, engine: Engine) -> Array:
        return self(X, Z, engine=engine)

    def _join(self, K: Array, L: Array) -> Array:
        raise AssertionError

    @property
    def _parts(self) -> tuple[Kernel, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def sparse(self) -> bool:  # type: ignore[override]  # a constant for others
        """Whether both parts accept sparse rows."""
        return all(part.sparse for part in self._parts)

    @property
    def portable(self) -> bool:  # type: ignore[override]  # a constant for others
        """Whether both parts run on every device."""
        return all(part.portable for part in self._parts)

    @property
    def needs_sigma(self) -> bool:
        return any(part.needs_sigma for part in self._parts)

    def with_sigma(self, sigma: "float | tuple[float, ...]") -> Self:
        return type(self)(*(part.with_sigma(sigma) for part in self._parts))

    @property
    def width_distance(self) -> str | None:
        return next((p.width_distance for p in self._parts if p.needs_sigma), None)


@persistent
@dataclass(frozen=True)
class Sum(_Pair):
    """K(x, x') = left(x, x') + right(x, x'); written ``left + right``.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from imparo.kernels import Gaussian, Linear
    >>> (Gaussian(1.0) + Linear()).bound
    inf
    """

    def _join(self, K: Array, L: Array) -> Array:
        K += L
        return K

    def diagonal(self, X: Any) -> Array:
        """Return the sum of the diagonals."""
        return self.left.diagonal(X) + self.right.diagonal(X)

    @property
    def bound(self) -> float:
        """The sum of the bounds."""
        return self.left.bound + self.right.bound


@persistent
@dataclass(frozen=True)
class Product(_Pair):
    """K(x, x') = left(x, x') · right(x, x'); written ``left * right``.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from imparo.kernels import Gaussian
    >>> (3 * Gaussian(1.0)).bound
    3.0
    """

    def _join(self, K: Array, L: Array) -> Array:
        K *= L
        return K

    def diagonal(self, X: Any) -> Array:
        """Return the product of the diagonals."""
        return self.left.diagonal(X) * self.right.diagonal(X)

    @property
    def bound(self) -> float:
        """The product of the bounds; 0 where either is 0."""
        bounds = (self.left.bound, self.right.bound)
        return 0.0 if 0.0 in bounds else bounds[0] * bounds[1]
