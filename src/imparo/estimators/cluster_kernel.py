"""Products with K_nm whose rows are on a cluster: made by the workers, added on the way.

Every pass computes K_nm anew, so that a worker keeps nothing that could be lost with it. What
travels are coefficients and sums, m numbers for every output, and numbers of rows where they
are asked for.
"""

from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.estimators.blocks import Stream
from imparo.estimators.cluster_rows import ClusterStream
from imparo.estimators.kernel_rows import KernelRows, Sums
from imparo.features import FeatureMap
from imparo.scores import Score


class ClusterKernelRows:
    """K(x, X̃) of all rows of a cluster, as an operator; see :class:`KernelRows`.

    Parameters
    ----------
    rows : ClusterStream
    map : FeatureMap
    """

    def __init__(self, rows: ClusterStream, map: FeatureMap) -> None:
        self.rows, self.map = rows, map.evaluator()

    def sums(self, cells: Array, dtype: np.dtype[Any] | None = None) -> Sums:
        """Return K_nmᵀWY and the sums of some cells."""
        found: Sums = self.rows.sum(_sums, self.map, cells, dtype)
        return found

    def product(
        self,
        fitted: Array,
        alpha: Array,
        row_weights: Array | None = None,
        predictions: Array | None = None,
        held: Array | None = None,
        mean: Array | None = None,
        dtype: np.dtype[Any] | None = None,
        kept: Array | None = None,
    ) -> Array:
        """Return K_nmᵀWK_nm·α over some cells, and keep K_nm·α of these and other cells."""
        home = self.rows.engine
        if predictions is None:
            kept = np.zeros(self.rows.n_cells, bool)
        elif kept is None:
            kept = fitted if held is None else fitted | held
        kind = None if predictions is None else home.type_of(predictions)
        image, parts = self.rows.sum_and_rows(
            _product, self.map, fitted, home.to_host(alpha), held,
            None if mean is None else home.to_host(mean), dtype, kept, kind,
            by_row=None if row_weights is None else home.to_host(row_weights),
        )  # fmt: skip
        for group, part in enumerate(parts):
            if predictions is not None and len(part):
                positions = self.rows.positions(group)
                cell = self.rows.cell[positions]
                at = positions[(cell >= 0) & kept[cell]]
                predictions[home.asarray(at)] = home.asarray(part, kind)
        return home.asarray(image)

    def back(self, cells: Array, G: Array, dtype: np.dtype[Any]) -> Array:
        """Return K_nmᵀG over some cells; G is (n, T)."""
        home = self.rows.engine
        found, _ = self.rows.sum_and_rows(_back, self.map, cells, dtype, by_row=home.to_host(G))
        return home.asarray(found)

    def score(self, cells: Array, alpha: Array, intercepts: Array, score: Score) -> Array:
        """Return the sums of errors of L models on the rows of some cells, shape (2, L)."""
        host = self.rows.engine.to_host
        found = self.rows.sum(_score, self.map, cells, host(alpha), host(intercepts), score)
        return np.asarray(found)


def kernel_rows_of(
    rows: Stream, map: FeatureMap, *, store: bool
) -> KernelRows | ClusterKernelRows:
    """Return K(x, X̃) of all rows as an operator, wherever the rows are.

    Parameters
    ----------
    rows : Stream
    map : FeatureMap
        Its ``evaluate`` is K(x, X̃).
    store : bool
        Whether K_nm is kept; never on a cluster.

    Returns
    -------
    KernelRows or ClusterKernelRows
    """
    if isinstance(rows, ClusterStream):
        return ClusterKernelRows(rows, map)
    return KernelRows(rows, map, store=store)


# What workers do, for the rows of a group.


def _sums(rows: Stream, map: FeatureMap, cells: Array, dtype: Any) -> Sums:
    return KernelRows(rows, map, store=False).sums(cells, dtype)


def _product(
    rows: Stream, map: FeatureMap, fitted: Array, alpha: Array, held: Any, mean: Any,
    dtype: Any, kept: Array, kind: Any, row_weights: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    engine = rows.engine
    predictions, used = None, np.zeros(len(rows.cell), bool)
    if kept.any():
        predictions = engine.zeros((len(rows.cell), alpha.shape[1]), kind)
        used = (rows.cell >= 0) & kept[rows.cell]
    image = KernelRows(rows, map, store=False).product(
        fitted, engine.asarray(alpha),
        None if row_weights is None else engine.asarray(row_weights), predictions, held,
        None if mean is None else engine.asarray(mean), dtype, kept,
    )  # fmt: skip
    found = np.empty((0, alpha.shape[1]))
    if predictions is not None:
        found = engine.to_host(predictions)[used]
    return engine.to_host(image), found


def _back(
    rows: Stream, map: FeatureMap, cells: Array, dtype: Any, G: Array
) -> tuple[Array, None]:
    values = KernelRows(rows, map, store=False)
    return rows.engine.to_host(values.back(cells, rows.engine.asarray(G), dtype)), None


def _score(
    rows: Stream, map: FeatureMap, cells: Array, alpha: Array, intercepts: Array, score: Score
) -> Array:
    return KernelRows(rows, map, store=False).score(cells, alpha, intercepts, score)
