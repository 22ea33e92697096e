"""Centers by randomly pivoted Cholesky, whole blocks of pivots at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.centers.base import (
    CenterRule,
    Chosen,
    block_rows,
    check_whole,
    checked_diagonal,
    draw,
)
from imparo.centers.uniform import uniform_positions
from imparo.engine import Array, default_engine, resolution, row_blocks
from imparo.kernels import Kernel
from imparo.persistence import persistent

_REMEDY = "raise memory, ask for fewer centers or choose them uniformly"


@persistent
@dataclass(frozen=True)
class PivotedCholesky(CenterRule):
    """Each center with P(i) ∝ what the centers before it leave of K(x_i, x_i).

    Randomly pivoted Cholesky (Chen, Epperly, Tropp and Webber, 2022), in the accelerated
    form of Epperly, Tropp and Webber, "Embrace rejection" (2024). With T the upper
    Cholesky factor of K(S, S), the residual of the centers S is
    d(x) = K(x, x) − ‖K(x, S)T⁻¹‖². A round

    1. proposes ``block`` rows, independently, with probabilities in proportion to d;
    2. goes through them in turn and accepts row i with probability d'(x_i)/d(x_i), d'
       being the residual after those accepted before it, which the small matrix of the
       proposals gives: the accepted ones have exactly the law of pivots taken one by one;
    3. subtracts from d the squares of the new columns of K(X, S)T⁻¹, in blocks of rows.

    It needs no penalty, and Tr(K − K̂) is near the best there is: at most (1 + ε) times that
    of the best rank r, in expectation, with r/ε + r·log(1/εη) centers, η being the share of
    the trace that the best rank r leaves. No two centers are equal. There are fewer than
    asked for where every row is left with less than ε^{3/4}·K(x, x), ε being that of the
    type of X: it is then within rounding errors of the span of the centers.

    Parameters
    ----------
    block : int
        Proposals in a round. The law of the centers is the same whatever it is.

    Notes
    -----
    For m centers from n rows, k of them accepted in a round of b proposals: nm² flops for
    the columns, and nm²/2k values of the kernel, as those of earlier centers are computed
    again in each round rather than kept; m³b/3k + m²b²/2k + mbk for the proposals. While
    the spectrum decays slowly k is a good part of b. Where it decays fast, k is small, but
    each round divides the residual by nearly b, and a few of them end in rounding errors.
    Memory 2m² + (2m + 3b)b numbers, n residuals and a block of rows: never n × m.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.centers import PivotedCholesky
    >>> from imparo.kernels import Linear
    >>> X = np.random.RandomState(0).randn(100, 3)
    >>> chosen = PivotedCholesky().choose(X, Linear(), 10, np.random.RandomState(0))
    >>> len(chosen.rows)  # the rank of the kernel matrix
    3
    """

    block: int = 512

    def __post_init__(self) -> None:
        check_whole("block", self.block)

    def _choose(
        self, X: Any, kernel: Any, n_centers: int, rng: np.random.RandomState, memory: int
    ) -> Chosen:
        m = min(n_centers, X.shape[0])
        # Before the work rather than in the middle of it.
        block_rows(X, m, _held(m, self.block), memory, _REMEDY)
        residual = Residual(kernel, X, memory)
        while len(residual.rows) < m and not residual.exhausted:
            proposals = draw(residual.diagonal, self.block, rng)
            residual.extend(proposals, rng.random_sample(self.block), m)
        # K(x, x) = 0 for all rows: one is as good as another, and none would be no map.
        rows = residual.rows if len(residual.rows) else uniform_positions(X.shape[0], 1, rng)
        return Chosen(rows, np.ones(len(rows)))


def _held(m: int, block: int) -> int:
    """Return the bytes of T, its next copy, and the matrices of the proposals."""
    return 8 * (2 * m * m + (2 * m + 3 * block) * block)


class Residual:
    """The diagonal of K − K̂ while centers are added to K̂.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse matrix of shape (n, d)
    memory : int
        Bytes for the work beside X.

    Attributes
    ----------
    rows : array of int of shape (m,)
        The centers S.
    diagonal : array of shape (n,)
        d(x), in float64; 0 where it is below ε^{3/4}·K(x, x).
    """

    def __init__(self, kernel: Kernel, X: Any, memory: int) -> None:
        self.kernel = kernel
        self.X = X
        self.memory = memory
        self.rows = np.empty(0, np.intp)
        self.diagonal = checked_diagonal(kernel, X)
        # Less than this is within rounding of 0.
        self._floor = resolution(np.result_type(X.dtype, np.float32)) * self.diagonal
        self._T = np.empty((0, 0))

    @property
    def exhausted(self) -> bool:
        """Whether all rows are, up to rounding, in the span of the centers."""
        return not self.diagonal.any()

    def extend(self, proposals: Array, chances: Array, limit: int) -> None:
        """Accept some of the proposals as centers and bring the residual up to date.

        Parameters
        ----------
        proposals : array of int of shape (b,)
            Drawn with probabilities in proportion to ``diagonal``.
        chances : array of shape (b,)
            Numbers between 0 and 1, to accept by.
        limit : int
            Go no further than this many centers; the residual is then left as it was.
        """
        H, W = self._submatrix(proposals)
        accepted, L, left = _accept(
            H,
            np.maximum(chances * self.diagonal[proposals], self._floor[proposals]),
            limit - len(self.rows),
        )
        self._T = _bordered(self._T, W[:, accepted], L.T)
        self.rows = np.concatenate([self.rows, proposals[accepted]])
        if len(self.rows) == limit:
            return
        if len(accepted):
            self._subtract(len(accepted), len(proposals))
        # The small matrix is in float64 whatever X is, and has not been summed up: where
        # the two differ it is right, and a row that was proposed by rounding is not again.
        self.diagonal[proposals] = left
        self.diagonal[self.rows] = 0.0
        self.diagonal[self.diagonal <= self._floor] = 0.0

    def _submatrix(self, proposals: Array) -> tuple[Array, Array]:
        """Return K − K̂ among the proposals, and T⁻ᵀK(S, proposals). Cost m²b + mb²."""
        engine = default_engine()
        P = self.X[proposals].astype(np.float64, copy=False)
        S = self.X[self.rows].astype(np.float64, copy=False)
        H = self.kernel(P).astype(np.float64, copy=False)
        if not len(self.rows):
            return H, np.empty((0, len(proposals)))
        W = engine.whiten(self._T, self.kernel(P, S).astype(np.float64, copy=False)).T
        H -= engine.product(W.T, W)
        return H, W

    def _subtract(self, n_new: int, n_proposals: int) -> None:
        """Subtract the squares of the last columns of K(X, S)T⁻¹. Cost 2nm·n_new."""
        engine, m = default_engine(), len(self.rows)
        unit = np.zeros((m, n_new))
        unit[m - n_new :] = np.eye(n_new)
        columns = engine.solve_triangular(self._T, unit)
        S = self.X[self.rows]
        step = block_rows(self.X, m, _held(m, n_proposals), self.memory, _REMEDY)
        for part in row_blocks(self.X.shape[0], step):
            K = self.kernel(self.X[part], S)
            columns = columns.astype(K.dtype, copy=False)
            new = engine.product(K, columns)
            self.diagonal[part] -= np.einsum("ij,ij->i", new, new)


def _accept(H: Array, thresholds: Array, limit: int) -> tuple[Array, Array, Array]:
    """Return the accepted positions, lower L of H there, and what is left of H's diagonal.

    In turn, position i is accepted if what is left of H_ii exceeds its threshold, until
    there are ``limit``. Cost bk² for k accepted of b.
    """
    left = np.diagonal(H).copy()
    columns = np.zeros((min(limit, len(H)), len(H)))  # of L, each one a row here
    accepted: list[int] = []
    for i in range(len(H)):
        if left[i] <= thresholds[i]:
            continue
        k = len(accepted)
        column = H[i].copy()
        if k:
            column -= default_engine().product(columns[:k].T, columns[:k, i, None])[:, 0]
        column /= np.sqrt(left[i])
        column[accepted] = 0.0
        column[i] = np.sqrt(left[i])
        left -= column * column
        columns[k] = column
        accepted.append(i)
        if len(accepted) == limit:
            break
    order = np.array(accepted, np.intp)
    return order, columns[: len(order), order].T, left


def _bordered(T: Array, right: Array, corner: Array) -> Array:
    """Return the upper triangular [[T, right], [0, corner]], column-major."""
    m, k = right.shape
    whole = np.zeros((m + k, m + k), order="F")
    whole[:m, :m], whole[:m, m:], whole[m:, m:] = T, right, corner
    return whole
