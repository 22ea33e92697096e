"""From a table as users have it to a matrix in which Euclidean distance makes sense."""

import itertools
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from imparo.engine import Array, row_blocks
from imparo.persistence import persistent
from imparo.preparation import groups as grouping
from imparo.preparation.columns import (
    Survey,
    float_matrix,
    float_type,
    names_of,
    read,
    survey,
    take,
)
from imparo.preparation.distinct import DistinctColumns
from imparo.preparation.notes import make_notes, of_columns

_NUMBERS = ("standard", "robust", "range", "quantile", "none")
_MISSING = ("indicate", "refuse")
_BLOCK = 2**20  # numbers


@persistent
class KernelInputs(TransformerMixin, BaseEstimator):
    """Make any table fit for a kernel machine: one number for each thing that may differ.

    Kernels see rows through their distances, so every column should count about as much as
    any other. Columns are recognised by what they hold:

    - numbers are scaled, durations (in seconds) and dates (in days) likewise;
    - flags, columns of two values, go to −1 and 1;
    - categories (text) become one column of 0 and 1 for each value. Missing is a value;
      rare and unseen ones share a column, or are 0 in all where there is no rare one. Of
      two values, the first in the alphabet is told from all else by 1 and −1;
    - dates give points on the circles of day, week and year, too: see :class:`DateParts`.

    Two random rows have a squared distance of about 2 in a column of numbers or in a date's
    circle, and of 2 in a category in which they differ. Constant columns and copies are
    dropped (:class:`DistinctColumns`), as are columns without any value.

    Output columns come in this order: numbers, flags, marks of missing values, categories,
    circles of dates. ``get_feature_names_out`` and ``sources_`` tell which is which.

    Parameters
    ----------
    numbers : {"standard", "robust", "range", "quantile", "none"}, default "standard"
        Mean 0 and deviation 1; median 0 and the inter-quartile range of a normal of
        deviation 1, or as "standard" where that range is 0; from −1 to 1 as flags; quantiles
        to those of a normal
        for columns of more than 10 values, others as "standard"; or left as they are.
    rare : int, default 10
        Values of a category seen in fewer rows than this share one column, unless there
        are only two values.
    max_categories : int, default 50
        The most columns that one category becomes; the rarest values share the last one.
    missing : {"indicate", "refuse"}, default "indicate"
        Fill gaps with the median (flags with the more frequent value, circles of dates with
        their mean), and mark them in a column of −1 and 1 where there were any in ``fit``;
        or raise an error.
    dtype : "float32", "float64" or None, default None
        Type of the output; None stands for float32 if all numbers of X are float32, and
        for float64 otherwise.

    Attributes
    ----------
    pipeline_ : Pipeline
        What ``transform`` does, in scikit-learn's terms: a ``ColumnTransformer``, and the
        selection of distinct columns.
    kinds_ : list of str
        For each input column "number", "text", "date", "duration" or "empty".
    notes_ : list of str
        What was dropped, encoded, merged and filled, in sentences.
    sources_ : array of int
        For each output column the position of the input column that it was made from.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    Notes
    -----
    A sparse matrix stays sparse: numbers are scaled and not centered, flags and marks go to
    0 and 1, and "quantile" is refused.

    Weights count for means and deviations, and rows of weight 0 are left out; medians,
    quantiles and counts are of the other rows, each as one. Medians and quantiles are those
    of 100,000 rows at most, of wide tables of 10,000. ``transform`` works in blocks, and
    needs little more memory than its input and output.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.preparation import KernelInputs
    >>> X = [[20.0, "yes", "Rome"], [30.0, "no", "Oslo"], [np.nan, "no", "Bonn"],
    ...      [40.0, "yes", "Rome"], [50.0, "yes", "Bonn"], [40.0, "no", "Oslo"]]
    >>> inputs = KernelInputs(rare=2).fit(X)
    >>> list(inputs.get_feature_names_out(["age", "works", "city"]))
    ['age', 'age: missing', 'city = Bonn', 'city = Oslo', 'city = Rome', 'works = no']
    >>> inputs.transform(X[:3]).round(1)
    array([[-1.6, -1. ,  0. ,  0. ,  1. , -1. ],
           [-0.6, -1. ,  0. ,  1. ,  0. ,  1. ],
           [ 0.4,  1. ,  1. ,  0. ,  0. ,  1. ]])
    >>> inputs.sources_
    array([0, 0, 2, 2, 2, 1])
    """

    def __init__(
        self,
        numbers: Any = "standard",
        *,
        rare: Any = 10,
        max_categories: Any = 50,
        missing: Any = "indicate",
        dtype: Any = None,
    ) -> None:
        self.numbers = numbers
        self.rare = rare
        self.max_categories = max_categories
        self.missing = missing
        self.dtype = dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.numbers != "quantile"
        tags.input_tags.allow_nan = self.missing == "indicate"
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what the columns hold, and how to scale them.

        Parameters
        ----------
        X : array, list of rows, data frame or sparse matrix of shape (n, d)
        y : None
            Not used.
        sample_weight : array of shape (n,), optional
            For means and deviations; a row of weight 0 is as none.

        Returns
        -------
        KernelInputs
            Itself.
        """
        # On a copy, so that an error leaves this object as it was.
        fresh = clone(self)
        fresh._fit(X, sample_weight)
        self.__dict__.pop("feature_names_in_", None)
        parameters = self.get_params(deep=False)
        self.__dict__.update({k: v for k, v in vars(fresh).items() if k not in parameters})
        return self

    def transform(self, X: Any) -> Any:
        """Return the table as a matrix.

        Parameters
        ----------
        X : array, list of rows, data frame or sparse matrix of shape (k, d)

        Returns
        -------
        array or sparse matrix of shape (k, number of output columns)
        """
        check_is_fitted(self, "pipeline_")
        table = read(X, self)
        validate_data(self, table, skip_check_array=True, reset=False)
        encode, distinct = self.pipeline_["columns"], self.pipeline_["distinct"]
        if encode.sparse_output_ and not sparse.issparse(table):
            table = sparse.csr_array(float_matrix(table))
        elif sparse.issparse(table) and not encode.sparse_output_:
            raise TypeError(
                "X is sparse and was dense in fit; use X.toarray(), or fit on sparse X"
            )
        parts = (distinct.transform(part) for part in self._encoded(encode, table))
        return _stacked(parts, table.shape[0], len(self.sources_))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names such as "age", "age: missing" and "city = Rome".

        Parameters
        ----------
        input_features : array of str, optional
            Names of the columns, where X had none in ``fit``.

        Returns
        -------
        array of str
        """
        check_is_fitted(self, "pipeline_")
        names = _check_feature_names_in(self, input_features)
        kept = zip(self.sources_, self._suffixes, strict=True)
        return np.array([f"{names[j]}{suffix}" for j, suffix in kept], dtype=object)

    def _fit(self, X: Any, sample_weight: Any) -> None:
        self._check_parameters()
        table = read(X, self)
        if self.numbers == "quantile" and sparse.issparse(table):
            raise TypeError(
                "numbers='quantile' would make a sparse matrix dense; use 'standard', 'robust' "
                "or 'none', or X.toarray()"
            )
        validate_data(self, table, skip_check_array=True)
        names = names_of(table)
        table, weight = _weighted(table, sample_weight)
        found = survey(table, names)
        self._refuse(found, names, range(len(names)))
        if all(kind == "empty" for kind in found.kinds):
            raise ValueError("X holds no value at all: every cell is missing; give some values")
        self.kinds_ = found.kinds
        constant = grouping.constant_columns(table, found)
        ranked = grouping.rows_to_rank_by(table, found)
        setting = grouping.Setting(
            self.numbers, int(self.rare), int(self.max_categories), self.missing == "indicate"
        )
        groups = grouping.make_groups(table, found, constant, ranked, setting)
        self._used = sorted({int(j) for group in groups for j in group.positions})
        self._size = np.maximum(np.abs(found.low), np.abs(found.high))
        with np.errstate(over="ignore", invalid="ignore"):
            pipelines = [grouping.fit_group(g, table, ranked, weight) for g in groups]
        encode = grouping.join(groups, pipelines, table)
        outputs = grouping.output_columns(groups, pipelines, found)
        self.sources_ = np.array([j for j, _ in outputs])
        self._suffixes = [suffix for _, suffix in outputs]
        encoded = _stacked(self._encoded(encode, table), table.shape[0], len(outputs))
        distinct = DistinctColumns().set_output(transform="default").fit(encoded)
        self.pipeline_ = Pipeline([("columns", encode), ("distinct", distinct)])
        self.notes_ = make_notes(
            names, found, constant, groups, pipelines, outputs, distinct.same_as_, setting
        )
        self.sources_ = self.sources_[distinct.kept_]
        self._suffixes = [self._suffixes[j] for j in distinct.kept_]

    def _encoded(self, encode: ColumnTransformer, table: Any) -> Iterator[Any]:
        """Yield blocks of all output columns, copies included."""
        names = [str(name) for name in _check_feature_names_in(self)]
        dtype = float_type(table, self.kinds_) if self.dtype is None else np.dtype(self.dtype)
        n, d = table.shape
        size = n if sparse.issparse(table) else max(1, _BLOCK // max(d, len(self._suffixes)))
        for rows in row_blocks(n, size):
            part = take(table, rows)
            if dtype == np.float64 and getattr(part, "dtype", None) == np.float32:
                part = part.astype(dtype)
            self._check(survey(part, names, self._used), part, names)
            with np.errstate(over="ignore", invalid="ignore"):
                block = encode.transform(part).astype(dtype, copy=False)
            self._check_finite(block, names)
            yield block

    def _check(self, found: Survey, part: Any, names: list[str]) -> None:
        """Raise unless a block has columns of the kinds and about the size of the fit."""
        for j in self._used:
            if found.kinds[j] not in ("empty", self.kinds_[j]):
                raise ValueError(
                    f"column '{names[j]}' was of kind {self.kinds_[j]} in fit and is of kind "
                    f"{found.kinds[j]} now; give the columns that fit had"
                )
        self._refuse(found, names, self._used)
        single = getattr(part, "dtype", None) == np.float32
        # Whatever the scaler, numbers within this stay finite.
        with np.errstate(over="ignore"):
            reach = self._size * 2.0 ** (60 if single else 500)
        size = np.maximum(np.abs(found.low), np.abs(found.high))
        far = [j for j in self._used if size[j] > reach[j] > 0]
        if far and self.numbers != "none":
            raise ValueError(
                f"{of_columns([names[j] for j in far], 'holds', 'hold')} values up to "
                f"{size[far].max():.0e}, and went up to {self._size[far].max():.0e} in fit; "
                "check the units"
            )

    def _refuse(self, found: Survey, names: list[str], positions: Any) -> None:
        """Raise if a column holds infinite values, or missing ones that may not be there."""
        infinite = np.isinf(found.low) | np.isinf(found.high)
        bad = [names[j] for j in positions if infinite[j]]
        if bad:
            raise ValueError(
                f"{of_columns(bad, 'holds', 'hold')} infinite values and must hold finite "
                "numbers; replace them, or drop such rows"
            )
        gaps = [names[j] for j in positions if found.missing[j]]
        if gaps and self.missing == "refuse":
            raise ValueError(
                f"{of_columns(gaps, 'holds', 'hold')} missing values (NaN, None or NaT), and "
                "missing='refuse'; fill them, or use missing='indicate'"
            )

    def _check_finite(self, block: Any, names: list[str]) -> None:
        """Raise if scaling left the range of floating-point numbers."""
        if sparse.issparse(block):
            finite = np.ones(block.shape[1], dtype=bool)
            finite[block.indices[~np.isfinite(block.data)]] = False
        else:
            finite = np.isfinite(block).all(axis=0)
        bad = sorted({names[self.sources_[j]] for j in np.flatnonzero(~finite)})
        if bad:
            raise ValueError(
                f"{of_columns(bad, 'holds', 'hold')} values too large for {block.dtype} when "
                "scaled; scale or clip them, or use dtype='float64'"
            )

    def _check_parameters(self) -> None:
        for name, allowed in (("numbers", _NUMBERS), ("missing", _MISSING)):
            value = getattr(self, name)
            if not (isinstance(value, str) and value in allowed):
                words = ", ".join(repr(word) for word in allowed)
                raise ValueError(f"{name}={value!r} must be one of {words}")
        for name, least in (("rare", 1), ("max_categories", 2)):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (whole and value >= least):
                raise ValueError(f"{name}={value!r} must be a whole number from {least} on")
        try:
            known = self.dtype is None or np.dtype(self.dtype) in (np.float32, np.float64)
        except TypeError:
            known = False
        if not known:
            raise ValueError(f"dtype={self.dtype!r} must be float32, float64 or None")


def _stacked(blocks: Iterator[Any], n: int, width: int) -> Any:
    """Return blocks of rows as one matrix, with no copy of all of them beside it."""
    first = next(blocks)
    if first.shape[0] == n:
        return first
    whole = np.empty((n, width), first.dtype)
    start = 0
    for block in itertools.chain([first], blocks):
        whole[start : start + len(block)] = block
        start += len(block)
    return whole


def _weighted(table: Any, sample_weight: Any) -> tuple[Any, Array | None]:
    """Return the rows of weight above 0, and their weights, at most 1; None for None."""
    if sample_weight is None:
        return table, None
    weight = _check_sample_weight(sample_weight, table, dtype=np.float64)
    if not (weight >= 0).all():
        raise ValueError("sample_weight must hold numbers from 0 on")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; give some row a weight")
    kept = np.flatnonzero(weight)
    return take(table, kept), weight[kept] / weight.max()
