"""From collections of Dask to a source on a cluster, or to blocks that are read one by one."""

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import _check_y, validate_data

from imparo.cluster import (
    Partition,
    Partitions,
    Team,
    is_dask,
    is_recipe,
    partitions_in_memory,
    partitions_of,
    recipes_of,
    task,
)
from imparo.cluster.costs import GROUPS
from imparo.data.sources import check_finite
from imparo.engine import Array
from imparo.estimators.cluster_source import ClusterSource, Rows
from imparo.estimators.devices import on_host
from imparo.estimators.inputs import check_numbers, check_rows
from imparo.extras import require

# Recipes of more bytes than this hold rows, and are sent once for all passes.
_LARGE = 2**16
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class Found(NamedTuple):
    """What a worker has found in a partition."""

    n_rows: int
    n_columns: int
    dtype: str
    y: Any
    weight: Any
    names: list[Any] | None


def read_cluster_rows(
    estimator: Any, client: Any, X: Any, y: Any, sample_weight: Any, wanted: Any,
    checks: dict[str, Any],
) -> tuple[ClusterSource, Array, Any]:  # fmt: skip
    """Return a source of rows on a cluster, the outputs and the weights.

    One pass over the rows: workers check and count them, and send the outputs.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``n_features_in_`` is set.
    client : Client
    X, y, sample_weight
        Collections of Dask, or arrays to be sent to the workers.
    wanted : dtype or list of dtypes
    checks : dict

    Returns
    -------
    source : ClusterSource
    y : array of shape (n,) or (n, T)
    sample_weight : array or None
    """
    team = Team(client)
    found = _partitions(team, estimator, X, y, sample_weight, checks)
    _check_names(found.names, X)
    recipes = recipes_of(found.parts)
    passes = recipes
    if recipes is None:  # outputs are needed once only: rows may stand alone without them
        passes = recipes_of([Partition(part.rows) for part in found.parts])
    held = _held(team, passes, len(found.parts))
    kind = bool(checks.get("y_numeric"))
    tasks = []
    for i, part in enumerate(found.parts):
        given: Any = [part.rows, part.outputs, part.weights]
        if recipes is not None:
            given = recipes[i] if held[i] is None else held[i]
        tasks.append(task(_scan, "check", given, part.together, i, kind))
    scanned: list[Found] = team.compute(tasks, "checking rows", estimator.progress, tasks)
    used = [i for i, one in enumerate(scanned) if one.n_rows]
    if not used:
        raise ValueError("the partitions hold no row; give at least one with rows")
    columns = {scanned[i].n_columns for i in used}
    if len(columns) > 1:
        raise ValueError(
            f"partitions have {' and '.join(str(c) for c in sorted(columns))} columns; every "
            "partition must have the same columns"
        )
    names = scanned[used[0]].names if found.names is None else found.names
    if any(scanned[i].names not in (None, names) for i in used):
        raise ValueError(
            "partitions have columns of different names, or in another order; every partition "
            "must have the same columns in the same order"
        )
    outputs = found.y if found.y is not None else _joined([scanned[i].y for i in used])
    weight = found.weight
    if weight is None and any(scanned[i].weight is not None for i in used):
        # Rows that come without a weight have 1.
        weights = [(scanned[i].weight, scanned[i].n_rows) for i in used]
        weight = np.concatenate([np.ones(n) if w is None else w for w, n in weights])
    counts = [scanned[i].n_rows for i in used]
    if outputs is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; "
            "give y, or delayed pairs (X, y)"
        )
    outputs = _check_y(outputs, **checks, estimator=estimator)
    if len(outputs) != sum(counts):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{sum(counts):,} rows and y has {len(outputs):,}"
        )
    dtype = np.dtype(wanted) if not isinstance(wanted, list) else _common(scanned, used)
    estimator.n_features_in_ = columns.pop()
    vars(estimator).pop("feature_names_in_", None)
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.asarray(names, object)
    count = len(set(team.slots()))
    estimator._away = f"{count} worker{'s' * (count > 1)} of {team.address}"
    rows = Rows(
        team, [found.parts[i] for i in used],
        None if passes is None else [passes[i] for i in used], [held[i] for i in used],
        counts,
    )  # fmt: skip
    source = ClusterSource(
        rows, estimator.n_features_in_, dtype, estimator.device,
        getattr(estimator, "precision", None),
    )  # fmt: skip
    return source, outputs, weight


def _partitions(
    team: Team, estimator: Any, X: Any, y: Any, sample_weight: Any, checks: dict[str, Any]
) -> Partitions:
    if is_dask(X):
        return partitions_of(X, on_host(y), on_host(sample_weight))
    if y is None or callable(X) or not (hasattr(X, "shape") or isinstance(X, list | tuple)):
        raise ValueError(
            "rows for a cluster must be collections of Dask, delayed blocks, or X and y in "
            "memory; blocks that this machine makes cannot be read by workers"
        )
    mapped, given = isinstance(X, np.memmap), X
    X, y = validate_data(
        estimator, check_rows(on_host(X)), y, accept_sparse="csr", dtype="numeric",
        ensure_all_finite=not mapped, **checks,
    )  # fmt: skip
    names = getattr(estimator, "feature_names_in_", None)
    least = GROUPS * len(team.slots())
    found = partitions_in_memory(given if mapped else X, y, sample_weight, least)
    return found if names is None else found._replace(names=list(names))


def _held(team: Team, recipes: list[Any] | None, count: int) -> list[Any]:
    """Return futures of the recipes that are large, sent once; None for others."""
    if recipes is None:
        return [None] * count
    large = [sys.getsizeof(recipe) > _LARGE for recipe in recipes]
    if not any(large):
        return [None] * count
    sent = iter(team.hold_all([r for i, r in enumerate(recipes) if large[i]], "part"))
    return [next(sent) if is_large else None for is_large in large]


def _check_names(names: list[Any] | None, X: Any) -> None:
    """Raise where columns of a data frame hold text, before anything is computed."""
    if names is not None and hasattr(X, "_meta"):
        check_rows(X._meta)


def _scan(given: Any, together: bool, number: int, numeric: bool) -> Found:
    """Check the rows of a partition and count them; return its outputs and weights."""
    X, y, weight = given() if is_recipe(given) else given
    if together:
        if not isinstance(X, list | tuple) or len(X) not in (2, 3):
            raise ValueError(
                "delayed blocks must give pairs (X, y) or triples (X, y, sample_weight), not "
                f"{type(X).__name__}"
            )
        X, y, weight = (*X, None)[:3]
    elif isinstance(X, tuple):
        raise ValueError(
            f"partition {number} gives {len(X)} things where rows are expected; blocks of "
            "pairs (X, y) are given alone, without y"
        )
    names = list(X.columns) if hasattr(X, "columns") else None
    X = check_array(
        check_rows(X), accept_sparse="csr", dtype="numeric", ensure_min_samples=0,
        ensure_all_finite=False,
    )  # fmt: skip
    try:
        check_finite(X, 0)
    except ValueError as error:
        told = str(error).replace(" and must", f" of partition {number} and must", 1)
        raise ValueError(told) from None
    n = X.shape[0]
    if y is not None:
        y = check_numbers(y) if numeric else y
        y = y.toarray() if sparse.issparse(y) else np.asarray(y)
        if y.shape[:1] != (n,):
            raise ValueError(
                f"partition {number} has {n:,} rows and {len(y):,} outputs; X and y must be "
                "cut into partitions alike"
            )
    if weight is not None:
        weight = np.asarray(weight, np.float64)
        if weight.shape != (n,):
            raise ValueError(
                f"partition {number} has {n:,} rows and weights of shape {weight.shape}; give "
                "one weight for every row"
            )
    known = X.dtype in _FLOATS
    return Found(n, X.shape[1], str(X.dtype) if known else "float64", y, weight, names)


def _joined(parts: list[Any]) -> Any:
    if any(part is None for part in parts):
        return None
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise ValueError(
            "partitions have outputs of different shapes; every partition must have the same "
            "outputs"
        )
    return np.concatenate(parts)


def _common(scanned: list[Found], used: list[int]) -> np.dtype[Any]:
    return np.dtype(np.result_type(*(np.dtype(scanned[i].dtype) for i in used)))


def local_blocks(
    X: Any, y: Any, sample_weight: Any
) -> tuple[list[Any] | None, Callable[[], Iterator[Any]]]:
    """Return names of columns, and a function that yields partitions of Dask one by one.

    For rows without a cluster, and for estimators that go through them in order.

    Parameters
    ----------
    X, y, sample_weight
        As for :func:`imparo.cluster.partitions_of`.

    Returns
    -------
    names : list or None
    blocks : callable
    """
    found = partitions_of(X, on_host(y), on_host(sample_weight))
    if found.y is None and not any(p.together or p.outputs is not None for p in found.parts):
        raise ValueError(
            "the estimator requires y to be passed, but the target y is None; give y, or "
            "delayed pairs (X, y)"
        )
    y, sample_weight = (None if v is None else np.asarray(v) for v in (found.y, found.weight))
    dask: Any = require("dask", "dask")

    def blocks() -> Iterator[Any]:
        start = 0
        for part in found.parts:
            rows, outputs, weights = dask.compute(part.rows, part.outputs, part.weights)
            if part.together:
                rows, outputs, weights = (*rows, None)[:3]
            stop = start + rows.shape[0]
            outputs = outputs if y is None else y[start:stop]
            weights = weights if sample_weight is None else sample_weight[start:stop]
            yield (rows, outputs) if weights is None else (rows, outputs, weights)
            start = stop
        check_consistent_length(np.empty(start), y, sample_weight)

    return found.names, blocks
