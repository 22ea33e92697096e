"""Selection errors in closed form, with their derivatives along log-widths and log-λ.

A criterion holds rows; evaluated at a kernel and a penalty it gives a value, the gradient and
the model there. All of them see weighted problems through rows times √w.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import lapack

from imparo.engine import Array, default_engine, one_thread

# What is added to the diagonal of the m × m system, in units of n·K(x, x): the criterion is
# that of the problem with it, so that its gradient is exact where centers are close.
_JITTER = 1e-11
# Kernel matrices of up to so many entries are worked on by one thread: there are thousands of
# small products, and on a busy machine a second thread is waited for.
_ONE_THREAD = 2_000_000


@dataclass(frozen=True)
class Evaluated:
    """A criterion at a point.

    Attributes
    ----------
    value : float
        Mean squared error over rows and outputs.
    slopes : array of shape (d,)
        Derivatives along log σ_k.
    penalty_slope : float
        Derivative along log λ.
    rows : array of shape (m, d)
        What the model there is an expansion over.
    coef : array of shape (m, T)
        Its coefficients.
    """

    value: float
    slopes: Array
    penalty_slope: float
    rows: Array
    coef: Array


class Criterion(Protocol):
    """A selection error of the problem on given rows."""

    def at(self, kernel: Any, penalty: float) -> Evaluated:
        """Return the error and its gradient at a kernel and λ > 0."""


def _threads(entries: int) -> AbstractContextManager[Any]:
    return one_thread() if entries <= _ONE_THREAD else nullcontext()


def _inverse(A: Array) -> Array:
    """Return the inverse of column-major A, using it up. Cost n³."""
    engine = default_engine()
    R = engine.cholesky(A, jitter=False, overwrite=True)
    G, _ = lapack.dpotri(R, lower=0, overwrite_c=1)
    engine.symmetrize(G)
    return G


class AllRows:
    """Generalized cross-validation, or leave-one-out, of exact KRLS.

    With G = (K + μI)⁻¹, μ = nλ and α = Gy, leave-one-out residuals are α_i/G_ii and the GCV
    error is n‖α‖²/(Tr G)² (thesis, section 2.6). The derivative of either along any change D
    of K is ⟨M, D⟩ with one symmetric matrix M. Cost about 4n³ + 4n²d an evaluation.

    Parameters
    ----------
    X : array of shape (n, d)
    Y : array of shape (n, T)
    weight : array of shape (n,), optional
        Weights of the rows, with mean 1.
    kind : {"gcv", "loo"}

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian
    >>> from imparo.width_criteria import AllRows
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> found = AllRows(X, np.sin(3 * X)).at(Gaussian(1.0), 1e-4)
    >>> found.value < 1e-2, found.slopes.shape
    (True, (1,))
    """

    def __init__(
        self, X: Array, Y: Array, weight: Array | None = None, kind: str = "gcv"
    ) -> None:
        self._X, self._kind = X, kind
        self._root = None if weight is None else np.sqrt(weight)[:, None]
        self._Y = Y if self._root is None else self._root * Y

    def at(self, kernel: Any, penalty: float) -> Evaluated:
        """Return the error and its gradient at a kernel and λ > 0."""
        with _threads(len(self._X) ** 2):
            return self._at(kernel, penalty)

    def _at(self, kernel: Any, penalty: float) -> Evaluated:
        engine, Y = default_engine(), self._Y
        n, outputs = Y.shape
        A = np.array(kernel(self._X), order="F")
        if self._root is not None:
            A *= self._root
            A *= self._root.T
        A[np.diag_indices(n)] += n * penalty
        G = _inverse(A)
        alpha = engine.product(G, Y)
        if self._kind == "gcv":
            trace, squares = float(np.trace(G)), float(np.sum(np.square(alpha)))
            value = n * squares / trace**2 / outputs
            inner = engine.product(engine.product(G, alpha), alpha.T)
            M = engine.product(G, G)
            M *= value / trace
            inner *= n / trace**2 / outputs
        else:
            own = np.diagonal(G)[:, None].copy()
            residuals = alpha / own
            value = float(np.mean(np.square(residuals)))
            shares = np.sum(np.square(residuals), axis=1) / own[:, 0] / (n * outputs)
            inner = engine.product(engine.product(G, residuals / own), alpha.T)
            inner /= n * outputs
            M = engine.product(G * shares, G)
        M -= inner
        M += M.T.copy()
        penalty_slope = n * penalty * float(np.trace(M))
        coef = alpha
        if self._root is not None:
            M *= self._root
            M *= self._root.T
            coef = self._root * alpha
        slopes = kernel.width_gradient(self._X, M)
        return Evaluated(value, slopes, penalty_slope, self._X, coef)


class OnCenters:
    """Generalized cross-validation of Nyström KRLS on m centers.

    With B = K_nm, E = nλK_mm (and a trace of the identity) and A = BᵀB + E, the model is
    c = A⁻¹Bᵀy, its residuals r = y − Bc and its degrees of freedom m − Tr(A⁻¹E); the error is
    ‖r‖²/n over (1 − dof/n)². It sees many more rows than exact KRLS in the same time, and so
    does not fit their noise. Cost about 3nm² + 4nmd + 4m³ an evaluation, memory 5nm numbers.

    Parameters
    ----------
    X : array of shape (n, d)
    Y : array of shape (n, T)
    centers : array of shape (m, d)
    weight : array of shape (n,), optional
        Weights of the rows, with mean 1.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian
    >>> from imparo.width_criteria import OnCenters
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> OnCenters(X, np.sin(3 * X), X[::20]).at(Gaussian(1.0), 1e-6).value < 1e-4
    True
    """

    def __init__(self, X: Array, Y: Array, centers: Array, weight: Array | None = None) -> None:
        self._X, self._Z = X, centers
        self._root = None if weight is None else np.sqrt(weight)[:, None]
        self._Y = Y if self._root is None else self._root * Y

    def at(self, kernel: Any, penalty: float) -> Evaluated:
        """Return the error and its gradient at a kernel and λ > 0."""
        with _threads(len(self._X) * len(self._Z)):
            return self._at(kernel, penalty)

    def _at(self, kernel: Any, penalty: float) -> Evaluated:
        engine, Y, Z = default_engine(), self._Y, self._Z
        (n, outputs), m = Y.shape, len(Z)
        B, K = kernel(self._X, Z), kernel(Z)
        if self._root is not None:
            B *= self._root
        E = n * penalty * K
        E[np.diag_indices(m)] += _JITTER * n * float(kernel.bound)
        A = np.array(E, order="F")
        engine.accumulate_gram(A, B)
        G = _inverse(A)
        c = engine.product(G, engine.product(B.T, Y))
        r = Y - engine.product(B, c)
        GE = engine.product(G, E)
        g, S = engine.product(GE, c), engine.product(GE, G)
        free = 1 - (m - float(np.trace(GE))) / n  # 1 − dof/n
        value = float(np.sum(np.square(r))) / (n * outputs * free**2)
        # dV = a·d‖r‖²/2 + b·d dof; ⟨M, dB⟩ + ⟨N, dE⟩ collects both.
        a, b = 2 / (n * outputs * free**2), 2 * value / (n * free)
        M = engine.product(B, 2 * b * S)
        M -= engine.product(a * r, (c + g).T)
        M += engine.product(a * engine.product(B, g), c.T)
        N = engine.product(a * g, c.T)
        N = (N + N.T) / 2 + b * (S - G)
        penalty_slope = n * penalty * float(np.sum(N * K))
        if self._root is not None:
            M *= self._root
        slopes = kernel.width_gradient(self._X, M, Z)
        slopes = slopes + kernel.width_gradient(Z, n * penalty * N)
        return Evaluated(value, slopes, penalty_slope, Z, c)
