"""What every nested map is, and what the maps of random features have in common."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from imparo.engine import Array, Engine, default_engine
from imparo.features.sent import sent
from imparo.kernels import Kernel

# Operations of a matrix product that take as long as the function of a distance or angle.
_FUNCTION = 60


class FeatureMap(ABC):
    """A map from rows to R^p whose first t columns are a map of size t.

    Features are ``evaluate(X)``, times T⁻¹ where the map has a ``factor`` T. All passes over
    rows, paths over sizes and models are written in these terms.
    """

    #: How many centers or features were asked for; there may be fewer columns.
    n_given: int
    #: Upper triangular T of shape (p, p), or None for the identity.
    factor: Array | None

    @property
    def portable(self) -> bool:
        """Whether :meth:`evaluate` takes tensors, and computes where they are."""
        return False

    def factor_on(self, engine: Engine) -> Array | None:
        """Return T where an engine computes."""
        if self.factor is None:
            return None
        return sent(self, "factor", self.factor, engine, np.dtype(np.float64))

    @property
    @abstractmethod
    def n_columns_in(self) -> int:
        """Number d of columns of the rows."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number p of columns."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.n_columns_in} columns to {len(self)} features>"

    def _worth_sending(self, X: Any, operations: float) -> Engine | None:
        """Return the engine at work if rows of main memory are better transformed there."""
        engine = default_engine()
        if not engine.resident or not self.portable or not isinstance(X, np.ndarray):
            return None
        n, d = X.shape
        moved = float(n * (len(self) + d)) * X.dtype.itemsize
        pays = engine.pays(n * len(self) * (2.0 * d + _FUNCTION) + operations, moved)
        return engine if pays else None

    @abstractmethod
    def evaluate(self, X: Any, start: int = 0, stop: int | None = None) -> Array:
        """Return columns ``start`` to ``stop`` of the features before T⁻¹.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        start, stop : int
            All columns if left out.

        Returns
        -------
        array of shape (n, stop − start)
            In row-major order and in the type of X.
        """

    @abstractmethod
    def columns(self, n_given: Any) -> Array:
        """Return how many columns belong to the first ``n_given`` centers or features.

        Parameters
        ----------
        n_given : int or array of shape (S,)

        Returns
        -------
        array of shape (S,)
        """

    @abstractmethod
    def transform(self, X: Any) -> Array:
        """Return Φ, whose inner products are those of the kernel or near to them."""

    @abstractmethod
    def coefficients(self, W: Array) -> Array:
        """Return T⁻¹w for weights of the first columns, to multiply ``evaluate`` with."""

    @abstractmethod
    def first(self, n_columns: int) -> Self:
        """Return the map of the first columns."""

    def evaluator(self) -> "FeatureMap":
        """Return a map with the same :meth:`evaluate` and no factor, which is p × p numbers."""
        return self


class RandomMap(FeatureMap):
    """Features ψ(ω_1, x) … ψ(ω_m, x), drawn at random (thesis, chapter 5).

    :meth:`evaluate` gives ψ itself, so that columns do not depend on m; :meth:`transform`
    gives ψ/√m, of which φ(x)ᵀφ(x') tends to K(x, x') as m grows.
    """

    factor: Array | None = None

    def columns(self, n_given: Any) -> Array:
        """Return ``n_given`` itself, as far as there are so many."""
        return np.minimum(np.atleast_1d(n_given), self.n_given)

    def __len__(self) -> int:
        """Return the number m of features."""
        return self.n_given

    def coefficients(self, W: Array) -> Array:
        """Return the weights themselves: there is no T."""
        return W

    def transform(self, X: Any) -> Array:
        """Return ψ(ω_j, x)/√m.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)

        Returns
        -------
        array of shape (n, m)
        """
        engine = self._worth_sending(X, 0.0)
        if engine is not None:
            return engine.to_host(self.transform(engine.asarray(X)))
        F = self.evaluate(X)
        F *= float(1 / np.sqrt(self.n_given))
        return F


class FeatureRule(ABC):
    """How random features of a kernel are drawn: an immutable value, as a kernel is.

    Every rule is *prefix-stable*: with the same seed a larger number keeps the first
    features.
    """

    #: Whether features are chosen by rows.
    needs_rows: ClassVar[bool] = False

    @property
    def step(self) -> int:
        """The numbers of features that can be had are multiples of this."""
        return 1

    @abstractmethod
    def check(self, kernel: Kernel, n_columns: int) -> None:
        """Raise unless the rule has features of this kernel for rows of so many columns."""

    @abstractmethod
    def draw(
        self, kernel: Kernel, n_columns: int, n_features: int, seed: int, rows: Any = None
    ) -> RandomMap:
        """Draw features.

        Parameters
        ----------
        kernel : Kernel
            With its width.
        n_columns : int
            Number d of columns of the rows.
        n_features : int
            m, a multiple of ``step``.
        seed : int
        rows : array or sparse matrix of shape (s, d), optional
            To choose features by, for rules that need them.

        Returns
        -------
        RandomMap
        """
