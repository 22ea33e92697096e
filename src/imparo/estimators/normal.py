"""The normal operator ΦᵀWΦ of a Nyström map: from statistics, stored or recomputed rows.

An iteration needs products with it only. Three forms give the same numbers at different
costs; :func:`cheapest_form` counts them.
"""

from collections.abc import Callable, Iterator

import numpy as np

from imparo.engine import Array, default_engine
from imparo.errors import MemoryBudgetError
from imparo.estimators.cells import sum_of
from imparo.estimators.map_search import Fitted
from imparo.estimators.passes import Stream
from imparo.features import NystromMap
from imparo.scores import Score

GRAM, STORED, RECOMPUTED = "gram", "stored", "recomputed"
# In operations of a matrix product: one of a product with a vector, which waits for
# memory, and one evaluation of the function that a kernel applies to a distance.
_VECTOR, _FUNCTION = 16, 60


def cheapest_form(
    n: int, m: int, d: int, n_outputs: int, steps: int, itemsize: int, memory: int,
    n_splits: int = 1,
) -> str:  # fmt: skip
    """Return the form that takes the fewest operations within ``memory``.

    With p = 2nmd operations and nm function values to evaluate K_nm once:
    "gram" costs p + 2nm² once and 2m² a step, in m² numbers; "stored" costs p once and
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
        GRAM: evaluate + 2.0 * n * m**2 + steps * 2 * m**2 * slow,
        STORED: evaluate + steps * 4 * n * m * slow,
        RECOMPUTED: steps * (evaluate + 4 * n * m * slow),
    }
    room = {
        GRAM: 8 * (8 + 4 * n_splits) * m**2,
        STORED: itemsize * n * m + 8 * 4 * m**2,
        RECOMPUTED: 0,
    }
    possible = [form for form in costs if room[form] <= 0.8 * memory]
    return min(possible, key=costs.__getitem__)


class Normal:
    """ΦᵀWΦ and ΦᵀWY of some cells, centered where there is an intercept.

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
        self._stored: list[tuple[Array, Array, Array, Array]] = []
        if form == GRAM:
            self.fitted = Fitted.to(rows, map, smallest, 0.0)
        elif form == STORED:
            need = rows.source.dtype.itemsize * int((rows.cell >= 0).sum()) * len(map)
            if need > rows.memory:
                raise MemoryBudgetError(
                    f"features of {rows.source.shape[0]:,} rows and {len(map):,} centers need "
                    f"{need:,} bytes and memory is {rows.memory:,}; raise memory or use fewer "
                    "centers"
                )
            self._stored = list(self._computed())

    def _computed(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        for X, Y, weight, bounds in self.rows.blocks(len(self.map), "kernel"):
            yield self.map.kernel(X, self.map.centers), Y, weight, bounds

    def _blocks(self, cells: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield kernel values, outputs and weights of the rows of some cells."""
        for K, Y, weight, bounds in self._stored or self._computed():
            # Neighbouring cells are one slice: no copy where all rows are wanted.
            edges = np.flatnonzero(np.diff(np.concatenate([[0], cells.astype(int), [0]])))
            for first, last in edges.reshape(-1, 2):
                some = slice(bounds[first], bounds[last])
                if some.stop > some.start:
                    yield K[some], Y[some], weight[some]

    def system(self, cells: Array) -> "System":
        """Return the normal equations of the rows of some cells: one pass, or none.

        Parameters
        ----------
        cells : boolean array of shape (C,)

        Returns
        -------
        System
        """
        engine, T = default_engine(), self.map.factor
        if self.fitted is not None:
            total = sum_of(self.fitted.statistics, cells)
            A = total.A
            return System(
                lambda v: engine.product(A, v), total.b, total.feature_sum, total.output_sum,
                total.weight, self.has_intercept,
            )  # fmt: skip
        n_outputs = self.rows.Y.shape[1]
        b, sums = np.zeros((len(T), n_outputs)), np.zeros((len(T), 1))
        outputs, weight = np.zeros(n_outputs), 0.0
        for K, Y, w in self._blocks(cells):
            wide = np.column_stack([Y * w[:, None], w])
            found = engine.product(K.T, wide.astype(K.dtype))
            b += found[:, :-1]
            sums += found[:, -1:]
            outputs += (Y * w[:, None]).sum(axis=0, dtype=np.float64)
            weight += float(w.sum(dtype=np.float64))
        b = engine.solve_triangular(T, b, transpose=True)
        feature_sum = engine.solve_triangular(T, sums, transpose=True)[:, 0]

        def product(v: Array) -> Array:
            # ΦᵀWΦv = T⁻ᵀKᵀWKT⁻¹v: the rows themselves are never whitened.
            alpha = engine.solve_triangular(T, v)
            image = np.zeros_like(v)
            for K, _, w in self._blocks(cells):
                F = engine.product(K, alpha.astype(K.dtype))
                F *= w[:, None]
                image += engine.product(K.T, F)
            return engine.solve_triangular(T, image, transpose=True)

        return System(product, b, feature_sum, outputs, weight, self.has_intercept)

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
        p, n_models, n_outputs = alpha.shape
        product = default_engine().product
        sums = np.zeros((2, n_models))
        for K, Y, w in self._blocks(cells):
            F = product(K, alpha.reshape(p, -1).astype(K.dtype))
            sums += score(Y, F.reshape(-1, n_models, n_outputs) + intercepts, w)
        return sums


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
    size = rows.block_size(1)
    largest = 0.0
    for part, X in rows.source.blocks(size):
        values = map.kernel.diagonal(X)[rows.cell[part] >= 0]
        largest = max(largest, float(np.max(values, initial=0.0)))
    return largest
