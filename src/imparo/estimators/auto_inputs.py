"""The rows of a fit within a budget, prepared in as many ways as are tried."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_y, check_consistent_length

from imparo.cluster import is_dask
from imparo.data.sources import ArraySource, Source
from imparo.engine import Array, parse_memory
from imparo.estimators.cluster_source import ClusterSource
from imparo.estimators.inputs import check_dtype
from imparo.estimators.streams import are_blocks, read_rows
from imparo.preparation import KernelInputs
from imparo.preparation.columns import names_of, read, survey

#: How columns may be scaled.
KINDS = ("standard", "robust", "range", "quantile", "none")
#: Those that are tried, in this order.
TRIED = ("standard", "range", "none", "quantile")
# More numbers than this are prepared in one way only, and no copy of more than this share of
# the memory is made of them.
_MANY, _SHARE = 2e7, 0.25
# Rows that the preparation of rows that come in blocks is learned from.
_SAMPLE = 20_000


class Table:
    """Rows as the user gave them, and sources of them prepared.

    Parameters
    ----------
    rows : table that KernelInputs takes, or Source
    kinds : tuple of str
        The ways to prepare the columns, the first to be tried first.
    sample_weight : array or None
    dtype : dtype or None
    """

    def __init__(
        self, rows: Any, kinds: tuple[str, ...], sample_weight: Any, dtype: Any
    ) -> None:
        self._rows, self.kinds = rows, kinds
        self._weight, self._dtype = sample_weight, dtype
        self._inputs: dict[str, KernelInputs | None] = {}
        self._sources: dict[str, Source] = {}

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that is computed in."""
        return self.source(self.kinds[0]).dtype

    @property
    def is_sparse(self) -> bool:
        """Whether prepared rows are sparse."""
        return sparse.issparse(next(self.source(self.kinds[0]).blocks(1))[1])

    def inputs(self, kind: str) -> KernelInputs | None:
        """Return the fitted preparation of one kind."""
        if kind not in self._inputs:
            self._inputs[kind] = self._fitted(kind)
        return self._inputs[kind]

    def source(self, kind: str) -> Source:
        """Return the rows, prepared in one way; one way is kept beside the first."""
        if kind not in self._sources:
            made = self._prepared(self.inputs(kind))
            first = {k: v for k, v in self._sources.items() if k == self.kinds[0]}
            self._sources = first | {kind: made}
        return self._sources[kind]

    def _fitted(self, kind: str) -> KernelInputs | None:
        if not kind:
            return None
        inputs = KernelInputs(kind, dtype=self._dtype)
        if not _is_source(self._rows):
            return inputs.fit(self._rows, sample_weight=self._weight)
        order = np.random.RandomState(0).permutation(self._rows.shape[0])
        return inputs.fit(self._rows.take(np.sort(order[:_SAMPLE])))

    def _prepared(self, inputs: KernelInputs | None) -> Source:
        if inputs is None:
            return self._rows
        if isinstance(self._rows, ClusterSource):
            return self._rows.prepared(inputs)
        if _is_source(self._rows):
            return PreparedSource(self._rows, inputs)
        X = inputs.transform(self._rows)
        X = sparse.csr_array(X) if sparse.issparse(X) else np.ascontiguousarray(X)
        return ArraySource(X, X.dtype)


def _is_source(rows: Any) -> bool:
    return hasattr(rows, "blocks") and hasattr(rows, "take")


class PreparedSource:
    """Rows of another source, prepared block by block.

    Parameters
    ----------
    source : Source
    inputs : KernelInputs
        Fitted.
    """

    def __init__(self, source: Source, inputs: KernelInputs) -> None:
        self._source, self._inputs = source, inputs

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._source.shape[0], len(self._inputs.sources_)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The floating-point type of the blocks."""
        return self._source.dtype

    @property
    def at_hand(self) -> bool:
        """Whether rows are in memory."""
        return self._source.at_hand

    def blocks(self, size: int) -> Iterator[tuple[slice, Any]]:
        """Yield positions and rows, in order."""
        for rows, block in self._source.blocks(size):
            yield rows, self._converted(block)

    def take(self, positions: Array) -> Any:
        """Return some rows, in the order of ``positions``."""
        return self._converted(self._source.take(positions))

    def _converted(self, block: Any) -> Any:
        found = self._inputs.transform(block)
        if sparse.issparse(found):
            return sparse.csr_array(found).astype(self.dtype)
        return np.ascontiguousarray(found, self.dtype)


def read_table(
    estimator: Any, X: Any, y: Any, sample_weight: Any, inputs: str, **checks: Any
) -> tuple[Table, Any, Any]:
    """Return the rows, outputs and weights that the user hands in.

    Rows that come in blocks, and memory maps, hold numbers; others may be any table.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``dtype`` is used, and its ``n_features_in_`` and ``feature_names_in_`` set.
    X, y, sample_weight
        As for ``fit``.
    inputs : str
        How to prepare the columns: one of ``KINDS``, "auto" for all that are tried, or ""
        to leave rows as they are, where they hold numbers.
    **checks
        ``multi_output`` and ``y_numeric``, as for scikit-learn's ``check_X_y``.

    Returns
    -------
    table : Table
    y : array of shape (n,) or (n, T)
    sample_weight : array or None
    """
    wanted = check_dtype(estimator.dtype)
    dtype = None if isinstance(wanted, list) else wanted
    kinds = TRIED if inputs == "auto" else (inputs,)
    size = 0.0
    if hasattr(X, "shape") and not is_dask(X):
        size = float(np.prod(X.shape))
    blocks = y is None and not is_dask(X) and are_blocks(X)
    away = is_dask(X) or estimator.cluster is not None
    if size > _MANY or blocks or away:
        kinds = kinds[:1]
    if blocks or away or isinstance(X, np.memmap) or _in_blocks(X, inputs, estimator.memory):
        source, y, sample_weight = read_rows(estimator, X, y, sample_weight, **checks)
        return Table(source, kinds, None, dtype), y, sample_weight
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; "
            "give y, or blocks of pairs (X, y)"
        )
    kinds = kinds[:1] if sparse.issparse(X) else kinds
    table = Table(X, tuple(kind or "none" for kind in kinds), sample_weight, dtype)
    fitted = table.inputs(table.kinds[0])
    assert fitted is not None
    y = _check_y(y, **checks)
    check_consistent_length(X, y)
    estimator.n_features_in_ = fitted.n_features_in_
    vars(estimator).pop("feature_names_in_", None)
    if hasattr(fitted, "feature_names_in_"):
        estimator.feature_names_in_ = fitted.feature_names_in_
    return table, y, sample_weight


def _in_blocks(X: Any, inputs: str, memory: Any) -> bool:
    """Return whether a table is better read in blocks: large, or to be left as it is."""
    if sparse.issparse(X):
        return not inputs
    if inputs:
        if not isinstance(X, np.ndarray) or X.dtype.kind not in "fiub" or X.ndim != 2:
            return False
        return 8 * X.size > _SHARE * parse_memory(memory) and not np.isnan(X).any()
    table = read(X, KernelInputs())
    found = survey(table, names_of(table))
    return set(found.kinds) == {"number"} and not found.missing.any()
