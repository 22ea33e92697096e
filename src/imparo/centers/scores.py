"""Leverage scores, exact and from a weighted sample of the rows.

With φ(x) the feature of a row, the score l_i(t) = (K(K + tnI)⁻¹)_ii is
φ_iᵀ(Σ_j φ_jφ_jᵀ + tnI)⁻¹φ_i over all n rows. A sample J with weights w whose
Σ_J w_jφ_jφ_jᵀ is an unbiased estimate of that sum (w = n/|J| for a uniform sample)
gives by Woodbury's identity

    l̂_i(t) = (K_ii − K_iJ(K_JJ + tn·diag(1/w))⁻¹K_Ji)/(tn).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.centers.base import block_rows, check_positive, checked_diagonal
from imparo.engine import Array, default_engine, parse_memory, row_blocks
from imparo.kernels import Kernel

_REMEDY = "raise memory or the penalty, or choose centers uniformly"


def leverage_scores(kernel: Kernel, X: Any, penalty: float) -> Array:
    """Return the exact leverage scores l_i(t) = (K(K + tnI)⁻¹)_ii (thesis, section 4.2).

    Their sum is the effective dimension d_eff(t). From the eigendecomposition, so that
    they keep their digits for every t. Cost 9n³, memory 3n² numbers: for small n.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse matrix of shape (n, d)
    penalty : float
        t > 0, on the scale of the mean loss: the ridge is tn.

    Returns
    -------
    array of shape (n,)
        Each between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.centers import leverage_scores
    >>> from imparo.kernels import Linear
    >>> leverage_scores(Linear(), np.array([[1.0], [2.0]]), 0.5).round(4)
    array([0.1667, 0.6667])
    """
    check_positive("penalty", penalty)
    X = X.astype(np.float64, copy=False)
    values, Q = default_engine().eigh(kernel(X))
    # The smallest eigenvalues are rounding errors, and their number could make them count.
    values[values < len(values) * np.finfo(np.float64).eps * values[-1]] = 0
    return np.einsum("ij,ij,j->i", Q, Q, values / (values + penalty * X.shape[0]))


def approximate_leverage_scores(
    kernel: Kernel,
    X: Any,
    penalty: float,
    pilot_rows: Array,
    memory: int | float | str | None = None,
) -> Array:
    """Return T-approximate leverage scores from a uniform sample J (thesis, section 4.2).

    l̂_i(t) = (K_ii − K_iJ(K_JJ + t|J|I)⁻¹K_Ji)/(tn), within the bounds
    K_ii/(Tr K + tn) and K_ii/(K_ii + tn) that hold for every exact score. Exact where
    J is all rows; T ≤ 2 where J has a few times max_i n·l_i(t) rows (Bernstein's
    inequality for Σ_J φφᵀ), at most K_ii/t each.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse matrix of shape (n, d)
    penalty : float
        t > 0, on the scale of the mean loss: the ridge is tn.
    pilot_rows : array of int of shape (p,)
        The positions J in X, drawn uniformly.
    memory : int, float, str or None
        For the work beside X, in bytes or as ``"2GB"``; half of what there is if None.

    Returns
    -------
    array of shape (n,)

    Notes
    -----
    Cost np² and np values of the kernel, in blocks of rows; memory 2p² numbers and a
    block.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.centers import approximate_leverage_scores
    >>> from imparo.kernels import Linear
    >>> X = np.array([[1.0], [2.0]])
    >>> approximate_leverage_scores(Linear(), X, 0.5, np.array([0, 1])).round(4)
    array([0.1667, 0.6667])
    """
    check_positive("penalty", penalty)
    pilot_rows = np.asarray(pilot_rows)
    if not pilot_rows.size:
        raise ValueError("pilot_rows is empty; give the positions of at least one row")
    pilot = Dictionary(pilot_rows, np.full(len(pilot_rows), X.shape[0] / len(pilot_rows)))
    return Scorer(kernel, X, parse_memory(memory)).scores(pilot, penalty)


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Rows J whose Σ w_jφ_jφ_jᵀ stands for the sum over all rows.

    Parameters
    ----------
    rows : array of int of shape (p,)
    weights : array of shape (p,)
        Positive.
    """

    rows: Array
    weights: Array

    def merged(self) -> "Dictionary":
        """Return the same sum with every row once: the matrices get smaller."""
        rows, place = np.unique(self.rows, return_inverse=True)
        return Dictionary(rows, np.bincount(place, self.weights, len(rows)))


class Scorer:
    """Scores of the rows of one data set, by one kernel, from changing dictionaries.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse matrix of shape (n, d)
    memory : int
        Bytes for the work beside X.

    Attributes
    ----------
    diagonal : array of shape (n,)
        K_ii.
    trace : float
        Its sum.
    """

    def __init__(self, kernel: Kernel, X: Any, memory: int) -> None:
        self.kernel = kernel
        self.X = X
        self.memory = memory
        self.diagonal = checked_diagonal(kernel, X)
        self.trace = float(self.diagonal.sum())

    def scores(
        self, dictionary: Dictionary, penalty: float, rows: Array | None = None
    ) -> Array:
        """Return l̂_i(t) of the given rows, or of all.

        Cost (number of rows)·p² + p³/3. The scores are clipped to bounds of the exact
        ones, Σ_jφ_jφ_jᵀ being at least φ_iφ_iᵀ and at most Tr K: that can only bring
        them closer, and leaves none at 0.
        """
        n, ridge = self.X.shape[0], penalty * self.X.shape[0]
        diagonal = self.diagonal if rows is None else self.diagonal[rows]
        captured = np.zeros(len(diagonal))
        if len(dictionary.rows):
            Z, p = self.X[dictionary.rows], len(dictionary.rows)
            R = self._factor(Z, dictionary.weights, ridge)
            step = block_rows(self.X, p, 2 * 8 * p * p, self.memory, _REMEDY)
            for part in row_blocks(n if rows is None else len(rows), step):
                block = self.kernel(self.X[part if rows is None else rows[part]], Z)
                W = default_engine().whiten(R, block)
                captured[part] = np.einsum("ij,ij->i", W, W)
        scores = (diagonal - captured) / ridge
        return np.clip(scores, diagonal / (self.trace + ridge), diagonal / (diagonal + ridge))

    def _factor(self, Z: Any, weights: Array, ridge: float) -> Array:
        """Return upper R with RᵀR = K_JJ + ridge·diag(1/w).

        With D = diag(√w), DK_JJD + ridge·I is factored instead, whose eigenvalues are
        bounded below by the ridge however uneven the weights, and its factor scaled back.
        """
        Z = Z.astype(np.float64, copy=False)
        root = np.sqrt(weights)
        A = self.kernel(Z).astype(np.float64, copy=False)
        A *= root
        A *= root[:, None]
        A[np.diag_indices_from(A)] += ridge
        return default_engine().cholesky(A, overwrite=True) / root
