"""Widths learned from data: a closed-form criterion, its gradient, and L-BFGS.

With G = (K + μI)⁻¹, μ = nλ and α = Gy, leave-one-out residuals are α_i/G_ii and the GCV error
is n‖α‖²/(Tr G)². The derivative of either along any change D of K is ⟨M, D⟩ with one symmetric
matrix M, so that a gradient over d widths and λ costs about 2n³ + 4n²d, as much as a few fits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from imparo.engine import Array, default_engine
from imparo.errors import NotPositiveDefiniteError
from imparo.kernels import Gaussian, Kernel, Laplacian, Matern, median_width

# How far widths may move from where they start: down by e⁴, up by e⁷, where a column is out.
_DOWN, _UP = 4.0, 7.0
_SMALLEST = 1e-9


@dataclass(frozen=True)
class Learned:
    """A kernel whose widths were learned.

    Attributes
    ----------
    kernel : Kernel
        With its widths.
    penalty : float
        λ that goes with them, for the rows they were learned from.
    error : float
        Root of the criterion, in the units of the outputs.
    n_steps : int
        Steps of L-BFGS.
    relevance : array of shape (d,)
        1/σ_k² in units of the columns' spreads, with sum 1: what each column counts.
    """

    kernel: Kernel
    penalty: float
    error: float
    n_steps: int
    relevance: Array


def criterion(
    kernel: Kernel, X: Array, Y: Array, penalty: float, kind: str = "gcv"
) -> tuple[float, Array]:
    """Return a selection error and M, its derivative with respect to the kernel matrix.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d)
    Y : array of shape (n, T)
    penalty : float
        λ > 0, on the scale of the mean loss.
    kind : {"gcv", "loo"}
        Generalized cross-validation, or leave-one-out.

    Returns
    -------
    value : float
        Mean squared error over rows and outputs.
    M : array of shape (n, n)
        Symmetric: the value changes by ⟨M, D⟩ where K changes by D.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian
    >>> from imparo.width_learning import criterion
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> value, M = criterion(Gaussian(1.0), X, np.sin(3 * X), 1e-4)
    >>> value < 1e-2, M.shape
    (True, (20, 20))
    """
    engine, (n, outputs) = default_engine(), Y.shape
    A = np.array(kernel(X), order="F")
    A[np.diag_indices(n)] += n * penalty
    R = engine.cholesky(A, jitter=False, overwrite=True)
    G, _ = lapack.dpotri(R, lower=0, overwrite_c=1)
    engine.symmetrize(G)
    alpha = engine.product(G, Y)
    if kind == "gcv":
        trace, squares = float(np.trace(G)), float(np.sum(np.square(alpha)))
        value = n * squares / trace**2 / outputs
        inner = engine.product(engine.product(G, alpha), alpha.T)
        share = n / trace**2 / outputs
        M = 2 * (value / trace * engine.product(G, G) - share * inner)
    else:
        own = np.diagonal(G)[:, None].copy()
        residuals = alpha / own
        value = float(np.mean(np.square(residuals)))
        weights = np.sum(np.square(residuals), axis=1) / own[:, 0]
        inner = engine.product(engine.product(G, residuals / own), alpha.T)
        M = 2 / (n * outputs) * (engine.product(G * weights, G) - inner)
    return value, (M + M.T) / 2


def learn_widths(
    kernel: Kernel,
    X: Any,
    Y: Any,
    *,
    per_column: bool = True,
    kind: str = "gcv",
    steps: int = 60,
    penalty: float = 1e-3,
) -> Learned:
    """Return the widths and λ that make a selection error small, by L-BFGS on logarithms.

    Starts from widths in proportion to the spreads of the columns, times the median distance
    of scaled rows: a column in other units has its width in those units, and nothing else
    changes. For some thousand rows at most; a sample of more is enough.

    Parameters
    ----------
    kernel : Gaussian, Laplacian or Matern
        Its own widths are not used.
    X : array of shape (n, d)
    Y : array of shape (n,) or (n, T)
        A constant is taken out.
    per_column : bool
        A width for every column, or one factor for all.
    kind : {"gcv", "loo"}
    steps : int
        The most steps of L-BFGS, each about 2n³ + 4n²d.
    penalty : float
        λ to start from.

    Returns
    -------
    Learned

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian
    >>> from imparo.width_learning import learn_widths
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=200)
    >>> learn_widths(Gaussian(), X, y).relevance.argmax()
    np.int64(1)
    """
    if not isinstance(kernel, Gaussian | Laplacian | Matern):
        raise ValueError(
            f"widths can be learned for the Gaussian, Laplacian and Matérn kernels, not for "
            f"{kernel!r}; give one of these"
        )
    if kind not in ("gcv", "loo"):
        raise ValueError(f"kind={kind!r} is not known; give 'gcv' or 'loo'")
    X = np.asarray(X, np.float64)
    Y = np.asarray(Y, np.float64).reshape(len(X), -1)
    Y = Y - Y.mean(axis=0)
    spread = X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    first = spread * median_width(X / spread, kernel.distance or "euclidean")
    scale = float(np.sqrt(np.mean(np.square(Y))))
    if scale == 0:  # constant outputs have nothing to tell
        even = np.full(X.shape[1], 1 / X.shape[1])
        widths = type(kernel)(**(_settings(kernel) | {"sigma": first}))
        return Learned(widths, penalty, 0.0, 0, even)
    n_widths = X.shape[1] if per_column else 1

    def made(theta: Array) -> tuple[Any, float]:
        widths = first * np.exp(theta[:-1])
        return type(kernel)(**(_settings(kernel) | {"sigma": widths})), float(np.exp(theta[-1]))

    def objective(theta: Array) -> tuple[float, Array]:
        candidate, level = made(theta)
        try:
            value, M = criterion(candidate, X, Y / scale, level, kind)
        except NotPositiveDefiniteError:
            return 1e3, np.zeros(len(theta))  # a step too far: the search turns back
        slopes = candidate.width_gradient(X, M)
        slopes = slopes if per_column else slopes.sum(keepdims=True)
        gradient = np.append(slopes, len(X) * level * np.trace(M))
        value = max(value, np.finfo(float).tiny)
        return float(np.log(value)), gradient / value

    bounds = [(-_DOWN, _UP)] * n_widths + [(np.log(_SMALLEST), 0.0)]
    start = np.append(np.zeros(n_widths), np.log(penalty))
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps}
    )
    best, level = made(found.x)
    relevance = np.square(spread / np.array(best.sigma))
    return Learned(
        best, level, scale * float(np.exp(found.fun / 2)), int(found.nit),
        relevance / relevance.sum(),
    )  # fmt: skip


def _settings(kernel: Any) -> dict[str, Any]:
    return {"order": kernel.order} if isinstance(kernel, Matern) else {}
