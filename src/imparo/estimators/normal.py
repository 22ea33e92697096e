"""The normal operator ΦᵀWΦ of a Nyström map: from statistics, stored or recomputed rows.

An iteration needs products with it only. Three forms give the same numbers at different
costs; :func:`cheapest_form` counts them.
"""

from collections.abc import Callable

import numpy as np

from imparo.engine import Array, engine_holding, is_tensor
from imparo.estimators.blocks import Stream
from imparo.estimators.cells import sum_of
from imparo.estimators.cluster_kernel import kernel_rows_of
from imparo.estimators.map_search import Fitted
from imparo.features import NystromMap
from imparo.kernels import Kernel
from imparo.scores import Score

GRAM, STORED, RECOMPUTED = "gram", "stored", "recomputed"
# In operations of a matrix product: one of a product with a vector, which waits for
# memory, and one evaluation of the function that a kernel applies to a distance.
_VECTOR, _FUNCTION = 16, 60


def cheapest_form(
    n: int, m: int, d: int, n_outputs: int, steps: int, itemsize: int, memory: int,
    n_splits: int = 1, *, may_store: bool = True,
) -> str:  # fmt: skip
    """Return the form that takes the fewest operations within ``memory``.

    With p = 2nmd operations and nm function values to evaluate K_nm once:
    "gram" costs p + nm² once and 2m² a step, in m² numbers; "stored" costs p once and
    4nm a step, in nm numbers; "recomputed" costs p + 4nm a step and needs no memory.

    Parameters
    ----------
    n, m, d, n_outputs : int
        Rows, centers, columns and outputs.
    steps : int
        Iterations that are expected.
    itemsize, memory : int
        Bytes of a number, and those that may be used.
    n_splits : int
        Every split has matrices of its own.
    may_store : bool
        Whether K_nm may be stored: not by workers that keep nothing.

    Returns
    -------
    "gram", "stored" or "recomputed"

    Examples
    --------
    >>> from imparo.estimators.normal import cheapest_form
    >>> cheapest_form(50_000, 500, 20, 1, 200, 8, 10**9)
    'gram'
    >>> cheapest_form(50_000, 10_000, 20, 1, 20, 8, 10**10)
    'stored'
    >>> cheapest_form(50_000, 10_000, 20, 1, 20, 8, 10**9)
    'recomputed'
    """
    evaluate = 2.0 * n * m * d + _FUNCTION * n * m
    # Many outputs turn products with vectors into products of matrices.
    slow = max(1.0, _VECTOR / n_outputs) * n_outputs
    costs = {
        GRAM: evaluate + 1.0 * n * m**2 + steps * 2 * m**2 * slow,
        STORED: evaluate + steps * 4 * n * m * slow,
        RECOMPUTED: steps * (evaluate + 4 * n * m * slow),
    }
    room = {
        GRAM: 8 * (8 + 4 * n_splits) * m**2,
        STORED: itemsize * n * m + 8 * 4 * m**2,
        RECOMPUTED: 0,
    }
    possible = [form for form in costs if room[form] <= 0.8 * memory]
    possible = [form for form in possible if form != STORED or may_store]
    return min(possible, key=costs.__getitem__)


class Normal:
    """ΦᵀWΦ and ΦᵀWY of some cells, centered where there is an intercept.

    Iterates live in main memory; products with K_nm are made where the rows are computed.

    Parameters
    ----------
    rows : Stream
    map : NystromMap
    form : "gram", "stored" or "recomputed"
    intercept : bool
    smallest : float
        The penalty that the iterations go down to, for the precision of statistics.
    """

    def __init__(
        self, rows: Stream, map: NystromMap, form: str, intercept: bool, smallest: float = 0.0
    ) -> None:
        self.rows, self.map, self.form, self.has_intercept = rows, map, form, intercept
        self.fitted: Fitted | None = None
        if form == GRAM:
            self.fitted = Fitted.to(rows, map, smallest, 0.0)
        self._values = kernel_rows_of(rows, map, store=form == STORED)

    def system(self, cells: Array) -> "System":
        """Return the normal equations of the rows of some cells: one pass, or none.

        Parameters
        ----------
        cells : boolean array of shape (C,)

        Returns
        -------
        System
        """
        engine = self.rows.engine
        host, T = engine.to_host, self.map.factor_on(engine)
        assert T is not None
        if self.fitted is not None:
            total = sum_of(self.fitted.statistics, cells)
            A = total.A
            return System(
                lambda v: host(engine.product(A, v)), host(total.b), host(total.feature_sum),
                host(total.output_sum), total.weight, self.has_intercept,
            )  # fmt: skip
        sums = self._values.sums(cells)
        b = engine.solve_triangular(T, engine.asarray(sums.b), transpose=True)
        whole = engine.asarray(sums.feature_sum[:, None])
        feature_sum = engine.solve_triangular(T, whole, transpose=True)[:, 0]

        def product(v: Array) -> Array:
            # ΦᵀWΦv = T⁻ᵀKᵀWKT⁻¹v: the rows themselves are never whitened.
            alpha = engine.solve_triangular(T, engine.asarray(v))
            image = self._values.product(cells, alpha)
            return host(engine.solve_triangular(T, image, transpose=True))

        return System(
            product, host(b), host(feature_sum), sums.output_sum, sums.weight,
            self.has_intercept,
        )  # fmt: skip

    def score(self, cells: Array, alpha: Array, intercepts: Array, score: Score) -> Array:
        """Return the sums of errors of L models on the rows of some cells. Cost 2nmLT.

        Parameters
        ----------
        cells : boolean array of shape (C,)
        alpha : array of shape (p, L, T)
            Coefficients of the centers.
        intercepts : array of shape (L, T)
        score : Score

        Returns
        -------
        array of shape (2, L)
        """
        return self._values.score(cells, alpha, intercepts, score)


class System:
    """Normal equations Mβ = b of features that are centered if there is an intercept.

    Attributes
    ----------
    b : array of shape (p, T)
    weight : float
    """

    def __init__(
        self,
        product: Callable[[Array], Array],
        b: Array,
        feature_sum: Array,
        output_sum: Array,
        weight: float,
        intercept: bool,
    ) -> None:
        self._product, self.weight = product, weight
        self.b = b
        self._feature_mean = np.zeros(len(b))
        self._output_mean = np.zeros(b.shape[1])
        if intercept:
            self._feature_mean = feature_sum / weight
            self._output_mean = output_sum / weight
            self.b = b - np.outer(self._feature_mean, output_sum)

    def product(self, v: Array) -> Array:
        """Return Mv."""
        image = self._product(v)
        mean = self._feature_mean
        return image - self.weight * np.outer(mean, mean @ v) if mean.any() else image

    def intercept(self, beta: Array) -> Array:
        """Return the intercept that belongs to β, shape (T,)."""
        return self._output_mean - self._feature_mean @ beta


def largest_kernel_value(rows: Stream, map: NystromMap) -> float:
    """Return max K(x, x) over the rows, from the bound of the kernel where it has one."""
    if np.isfinite(map.kernel.bound):
        return float(map.kernel.bound)
    return float(max(rows.each(_largest_value, map.kernel)))


def _largest_value(rows: Stream, kernel: Kernel) -> float:
    largest = 0.0
    for part, X in rows.source.blocks(rows.block_size(1)):
        X = engine_holding(X).to_host(X) if is_tensor(X) else X
        values = kernel.diagonal(X)[rows.cell[part] >= 0]
        largest = max(largest, float(np.max(values, initial=0.0)))
    return largest
