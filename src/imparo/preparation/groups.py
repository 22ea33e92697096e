"""Columns in groups, each with the steps of scikit-learn that it goes through."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from imparo.engine import Array, row_blocks
from imparo.preparation.columns import (
    Survey,
    column,
    float_matrix,
    floats,
    pick,
    settle,
    take,
)
from imparo.preparation.converters import Numbers, Texts
from imparo.preparation.dates import DateParts

# Medians and quantiles come from so many rows at most, and from so many cells unless these
# are fewer rows than the third number.
_RANKED_ROWS, _RANKED_CELLS, _RANKED_LEAST = 100_000, 10_000_000, 10_000
# Columns with more values than this are mapped to normal deviates by their quantiles.
_FEW_VALUES = 10
_BLOCK = 2**20  # numbers
# The groups of text.
OF_TEXT = ("categories", "pairs", "one against rare ones")
_RANKED = (MissingIndicator, QuantileTransformer, RobustScaler, SimpleImputer)


class Group(NamedTuple):
    """Columns, by position, and the steps that they go through."""

    name: str
    steps: list[tuple[str, Any]]
    positions: Array


class Setting(NamedTuple):
    """The parameters of ``KernelInputs`` that decide on the steps."""

    numbers: str
    rare: int
    max_categories: int
    fills: bool


def rows_to_rank_by(table: Any, found: Survey) -> Any:
    """Return the rows that medians and quantiles come from, as a slice or positions.

    A random sample, and some rows of any column that would otherwise have no value in it.
    """
    n, d = table.shape
    most = min(_RANKED_ROWS, max(_RANKED_LEAST, _RANKED_CELLS // d))
    if sparse.issparse(table):
        most = _RANKED_ROWS
    if n <= most:
        return slice(0, n)
    rows = np.random.RandomState(0).choice(n, most, replace=False)
    if not sparse.issparse(table):
        few = (found.missing < n) & ((n - found.missing) * (most / n) < 20)
        for j in np.flatnonzero(few & ~np.isnan(found.low)):
            values = floats(*settle(column(table, j), ""))
            rows = np.union1d(rows, np.flatnonzero(~np.isnan(values))[:100])
    return np.sort(rows)


def constant_columns(table: Any, found: Survey) -> Array:
    """Return which columns of numbers have one value only, up to rounding."""
    single = getattr(table, "dtype", None) == np.float32
    with np.errstate(over="ignore"):
        span = found.high - found.low
    size = np.maximum(np.abs(found.low), np.abs(found.high))
    return span <= 4 * np.finfo(np.float32 if single else np.float64).eps * size


def make_groups(
    table: Any, found: Survey, constant: Array, ranked: Any, setting: Setting
) -> list[Group]:
    """Return the groups that hold a column, in the order of their output columns."""
    counted = np.isin(found.kinds, ["number", "date", "duration"])
    varying = np.flatnonzero(counted & ~constant)
    gaps = np.flatnonzero(counted & (found.missing > 0) * setting.fills)
    flags = _two_valued(table, varying, found)
    rest = np.setdiff1d(varying, flags)
    texts = np.flatnonzero(np.isin(found.kinds, ["text"]))
    if not (len(varying) or len(gaps) or len(texts)):
        rest = np.flatnonzero(counted)[:1]
    groups = _of_numbers(take(table, ranked), rest, flags, sparse.issparse(table), setting)
    groups.append(_of_gaps(gaps, sparse.issparse(table) or setting.numbers == "none"))
    groups += _of_texts(table, texts, setting)
    groups.append(_of_dates(table, varying[np.isin(found.kinds, ["date"])[varying]], setting))
    return [group for group in groups if len(group.positions)]


def _of_numbers(
    ranked: Any, rest: Array, flags: Array, is_sparse: bool, setting: Setting
) -> list[Group]:
    median = [("impute", SimpleImputer(strategy="median"))] * setting.fills
    # Of two values the median is the more frequent one, and found faster in sparse columns.
    rule = "median" if is_sparse else "most_frequent"
    frequent = [("impute", SimpleImputer(strategy=rule))] * setting.fills
    if setting.numbers == "none":
        plain = [("numbers", Numbers(rescale=False))]
        return [Group("plain", plain + median, rest), Group("flags", plain + frequent, flags)]
    standard: Any = StandardScaler(with_mean=not is_sparse)
    # A rare flag, standardised, would be an outlier in all rows that have it: both values
    # go to ±1 instead, however rare. Zeros of a sparse matrix must stay, and 0 and 1 are
    # what one-hot columns hold.
    pair = MaxAbsScaler() if is_sparse else MinMaxScaler((-1, 1))
    special = np.zeros(len(rest), dtype=bool)
    scaler: Any = None
    if setting.numbers == "robust":
        special = _has_quartiles(ranked, rest)
        scaler = RobustScaler(with_centering=not is_sparse, unit_variance=True)
    if setting.numbers == "range":
        special[:] = True
        scaler = MaxAbsScaler() if is_sparse else MinMaxScaler((-1, 1))
    if setting.numbers == "quantile":
        special = _has_many_values(ranked, rest)
        scaler = QuantileTransformer(
            n_quantiles=min(1000, ranked.shape[0]), output_distribution="normal", subsample=None
        )
    # Scaled first, imputed then: a column with its gaps filled has too small a deviation.
    return [
        Group(name, [("numbers", Numbers()), ("scale", scale), *impute], positions)
        for name, scale, impute, positions in (
            (setting.numbers, scaler, median, rest[special]),
            ("standard", standard, median, rest[~special]),
            ("flags", pair, frequent, flags),
        )
    ]


def _of_gaps(positions: Array, plain: bool) -> Group:
    told = [("missing", MissingIndicator(features="all"))]
    scale = [] if plain else [("scale", MinMaxScaler((-1, 1)))]
    return Group("missing", [("numbers", Numbers(rescale=False)), *told, *scale], positions)


def _of_texts(table: Any, positions: Array, setting: Setting) -> list[Group]:
    encode = OneHotEncoder(
        min_frequency=setting.rare, max_categories=setting.max_categories,
        handle_unknown="infrequent_if_exist", sparse_output=False,
    )  # fmt: skip
    every = clone(encode).set_params(min_frequency=None)
    # Text of two values says what a flag says, and goes to ±1 likewise, however rare one of
    # them is: its second column is minus the first, and is dropped as a copy.
    scale = [("scale", MinMaxScaler((-1, 1)))] * (setting.numbers != "none")
    widths = [_widths(table, j, setting) for j in positions]
    values, columns = np.array(widths, dtype=int).reshape(-1, 2).T
    merged = (columns == 2) & (values > 2)
    return [
        Group(name, [("text", Texts()), ("encode", encoder), *then], positions[mask])
        for name, encoder, then, mask in (
            ("categories", encode, [], ~merged & (values != 2)),
            ("pairs", every, scale, values == 2),
            ("one against rare ones", encode, scale, merged),
        )
    ]


def _widths(table: Any, j: int, setting: Setting) -> tuple[int, int]:
    """Return how many values a column of text has, and how many columns it becomes."""
    counts = Counter(settle(column(table, j), "")[1].tolist()).values()
    frequent = sum(count >= setting.rare for count in counts)
    return len(counts), min(frequent + (frequent < len(counts)), setting.max_categories)


def _of_dates(table: Any, positions: Array, setting: Setting) -> Group:
    parts = DateParts(trend=False)
    if len(positions):
        cycles = DateParts(trend=False).fit(pick(table, positions)).cycles_
        positions = positions[[len(found) > 0 for found in cycles]]
    mean = [("impute", SimpleImputer(strategy="mean"))] * setting.fills
    return Group("cycles", [("parts", parts), *mean], positions)


def _two_valued(table: Any, positions: Array, found: Survey) -> Array:
    """Return the positions of columns in which only their smallest and largest value occur."""
    if sparse.issparse(table):
        known = (table.data == found.low[table.indices]) | (table.data == 0)
        known |= (table.data == found.high[table.indices]) | np.isnan(table.data)
        more = np.bincount(table.indices[~known], minlength=table.shape[1]) > 0
        zero = (found.low == 0) | (found.high == 0)
        return positions[(zero & ~more)[positions]]
    n = table.shape[0]
    # Most columns are out after the first rows.
    for rows in [slice(0, min(n, 1000)), *row_blocks(n, 2**16)]:
        if len(positions):
            values = float_matrix(pick(take(table, rows), positions))
            two = (values == found.low[positions]) | (values == found.high[positions])
            positions = positions[(two | np.isnan(values)).all(axis=0)]
    return positions


def _has_quartiles(ranked: Any, positions: Array) -> Array:
    """Return which columns have quartiles that differ."""
    values = float_matrix(pick(ranked, positions))
    if sparse.issparse(values):
        columns = (values[:, [j]].toarray().ravel() for j in range(values.shape[1]))
    else:
        columns = iter(values.T)
    quartiles = [np.nanpercentile(cells, (25, 75)) for cells in columns]
    return np.array([low < high for low, high in quartiles], dtype=bool)


def _has_many_values(ranked: Any, positions: Array) -> Array:
    values = float_matrix(pick(ranked, positions))
    counts = [len(np.unique(cells[~np.isnan(cells)])) for cells in values.T]
    return np.array(counts, dtype=int) > _FEW_VALUES


def fit_group(group: Group, table: Any, ranked: Any, weight: Array | None) -> Pipeline:
    """Return the steps of a group, fitted, without a copy of the whole table.

    Ranges, means and deviations are of all rows, in blocks; medians and quantiles are of
    ``ranked`` rows.
    """
    n = table.shape[0]
    size = n if sparse.issparse(table) else max(1, _BLOCK // len(group.positions))
    done: list[tuple[str, Any]] = []

    def until_here(rows: Any) -> Any:
        values = pick(take(table, rows), group.positions)
        for _, step in done:
            values = step.transform(values)
        return values

    for name, step in group.steps:
        step = clone(step).set_output(transform="default")
        if isinstance(step, _RANKED):
            values = until_here(ranked)
            step.fit(_medians(values) if _takes_medians(step, values) else values)
        elif isinstance(step, StandardScaler):
            for rows in row_blocks(n, size):
                step.partial_fit(
                    until_here(rows), sample_weight=None if weight is None else weight[rows]
                )
        elif hasattr(step, "partial_fit"):
            for rows in row_blocks(n, size):
                step.partial_fit(until_here(rows))
        else:
            step.fit(until_here(slice(0, n)))
        done.append((name, step))
    return Pipeline(done)


def _takes_medians(step: Any, values: Any) -> bool:
    dense = not sparse.issparse(values) and values.dtype.kind == "f"
    return isinstance(step, SimpleImputer) and step.strategy == "median" and dense


def _medians(values: Array) -> Array:
    """Return one row of medians, of which the imputer's own are the same.

    It would sort masked columns whole, at ten times the cost.
    """
    columns = (cells[~np.isnan(cells)] for cells in np.ascontiguousarray(values.T))
    return np.array([[np.median(cells) if len(cells) else np.nan for cells in columns]])


def output_columns(
    groups: list[Group], pipelines: list[Pipeline], found: Survey
) -> list[tuple[int, str]]:
    """Return for each output column its input column, and what to add to the name of that."""
    outputs = []
    for group, pipeline in zip(groups, pipelines, strict=True):
        if group.name in OF_TEXT:
            added = _category_names(pipeline["encode"])
        elif group.name == "cycles":
            added = [(k, f": {part}") for k, part in pipeline["parts"].parts()]
        elif group.name == "missing":
            added = [(k, ": missing") for k in range(len(group.positions))]
        else:
            kinds = (found.kinds[j] for j in group.positions)
            added = [(k, ": trend" if kind == "date" else "") for k, kind in enumerate(kinds)]
        outputs += [(int(group.positions[k]), suffix) for k, suffix in added]
    return outputs


def _category_names(encoder: OneHotEncoder) -> list[tuple[int, str]]:
    names = []
    for k, (values, rare) in enumerate(
        zip(encoder.categories_, encoder.infrequent_categories_, strict=True)
    ):
        merged = set() if rare is None else set(rare)
        kept = [value for value in values if value not in merged]
        names += [(k, ": missing" if value is None else f" = {value}") for value in kept]
        names += [(k, ": rare")] * bool(merged)
    return names


def join(groups: list[Group], pipelines: list[Pipeline], table: Any) -> ColumnTransformer:
    """Return fitted pipelines as the fitted transformer of all columns."""
    members = [
        (group.name, FrozenEstimator(pipeline), group.positions.tolist())
        for group, pipeline in zip(groups, pipelines, strict=True)
    ]
    joint = ColumnTransformer(members).set_output(transform="default")
    joint.fit(take(table, slice(0, 1)))
    # What a fit from scratch would have left: the plan unfitted, and the fitted pipelines.
    joint.transformers = [
        (name, clone(frozen.estimator), positions) for name, frozen, positions in members
    ]
    fitted = dict(zip((group.name for group in groups), pipelines, strict=True))
    joint.transformers_ = [
        (k, fitted.get(k, step), where) for k, step, where in joint.transformers_
    ]
    joint.sparse_output_ = sparse.issparse(table)
    return joint
