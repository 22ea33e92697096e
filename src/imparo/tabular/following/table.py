"""What a kept learner makes of rows: columns, kinds, scales, and the learner to begin with."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from imparo.data import Frame
from imparo.data.readers import SparseBlock
from imparo.engine import Array
from imparo.estimators.transformers import RandomFeatures
from imparo.lifelong import IncrementalClassifier, RecursiveRegressor
from imparo.preparation import KernelInputs
from imparo.preparation.columns import listed, settle
from imparo.tabular.model import TableModel
from imparo.tabular.roles import no_column
from imparo.tabular.targets import CLASSIFICATION, REGRESSION, settle_task

SPARSE_TARGET = "y"
#: Columns to learn, as users name them.
Targets = str | Sequence[str] | None


@dataclass(frozen=True)
class Choices:
    """How to learn; decided once for each folder.

    Attributes
    ----------
    task : "auto", "regression" or "classification"
        Text, and whole numbers of which there are few different ones, are classes.
    features : int
        Random Fourier features of the Gaussian kernel; 0 learns a linear function. A row costs
        about 11 times their square in flops.
    sigma : float, "median", "learned" or "per-feature"
        Width of the kernel, found by the first rows unless it is a number.
    penalty : float or "auto"
        λ; "auto" learns with three, side by side.
    forgetting : float
        What is left of the weight of earlier rows when a new one comes.
    drift : "record" or "forget"
        What to do when the error rises: note it, or fade what was learned before.
    recoding : float or "auto"
        How much rare classes are helped, from 0 to 1.
    columns, drop : tuple of str
        Columns to learn from, all if empty; columns to leave out.
    seed : int
    """

    task: str = "auto"
    features: int = 500
    sigma: float | str = "median"
    penalty: float | str = "auto"
    forgetting: float = 1.0
    drift: str = "record"
    recoding: float | str = "auto"
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    seed: int = 0


def begin_table(rows: Any, target: Targets, choices: Choices) -> TableModel:
    """Return the model that a folder begins with, decided by its first rows.

    Parameters
    ----------
    rows : Frame or SparseBlock
        The first rows; none of them lacks its target.
    target : str, sequence of str or None
        Columns to learn; not needed for sparse rows. Several hold numbers.
    choices : Choices

    Returns
    -------
    TableModel
        Its machine has learned nothing yet.

    Examples
    --------
    >>> from imparo.data import load_concrete
    >>> from imparo.tabular.following.table import Choices, begin_table
    >>> frame = load_concrete().frame
    >>> model = begin_table(frame, "compressive_strength", Choices(features=50))
    >>> model.task, len(model.columns), model.made["rows"]
    ('regression', 8, 1030)
    """
    is_sparse = isinstance(rows, SparseBlock)
    names = [SPARSE_TARGET] if is_sparse else checked_targets(target, rows.columns)
    outputs = rows.y if is_sparse else _cells(rows, names)
    task, y = _task(outputs, names, choices.task)
    if is_sparse:
        columns, kinds, X = [], {}, rows.X
    else:
        columns = _columns(rows, names, choices)
        kinds = {name: settle(rows[name], name)[0] for name in columns}
        X = rows.select(columns)
    inputs = KernelInputs().fit(X)
    Z = inputs.transform(X)
    center, scale, baseline = _size(task, y)
    codes: Any = y if task == CLASSIFICATION else (y - center) / scale
    features = _features(Z, codes, choices)
    prepare: Any = inputs
    if is_sparse and features is not None:  # what is written for each row is dense
        prepare, features = Pipeline([("inputs", inputs), ("features", features)]), None
    return TableModel(
        task=task, columns=columns, kinds=kinds, outputs=names, classes=[], inputs=prepare,
        machine=_learner(task, features, choices), n_columns=X.shape[1], is_sparse=is_sparse,
        baseline=baseline, first_index=rows.first if is_sparse else 1,
        made={
            "command": "learn", "rows": len(y), "center": center, "scale": scale,
            "text_target": outputs.dtype == object, "notes": list(inputs.notes_),
            "choices": {**asdict(choices), "task": task},
        },
    )  # fmt: skip


def as_names(target: Targets) -> list[str]:
    """Return the names of the columns to learn; none where nothing was said."""
    return [target] if isinstance(target, str) else list(target or ())


def checked_targets(target: Targets, names: Sequence[str]) -> list[str]:
    """Return the names of the columns to learn, or raise."""
    wanted = as_names(target)
    if not wanted:
        raise ValueError(f"name the column to learn: --target one of {listed(list(names))}")
    for name in wanted:
        if name not in names:
            raise ValueError(f"target: {no_column(name, names)}")
    return wanted


def _cells(rows: Frame, names: list[str]) -> Array:
    if len(names) == 1:
        return rows[names[0]]
    for name in names:
        if rows[name].dtype.kind not in "biuf":
            raise ValueError(
                f"of several targets '{name}' holds no numbers; learn it in a folder of its own"
            )
    return np.column_stack([rows[name].astype(np.float64) for name in names])


def _columns(rows: Frame, target: list[str], choices: Choices) -> list[str]:
    for name in (*choices.columns, *choices.drop):
        if name not in rows.columns:
            raise ValueError(no_column(name, rows.columns))
    wanted = choices.columns or rows.columns
    others = {*target, *choices.drop}
    columns = [name for name in wanted if name not in others]
    if not columns:
        raise ValueError(
            "no column is left to learn from; a target and at least one other column are needed"
        )
    return columns


def _task(outputs: Array, target: list[str], task: str) -> tuple[str, Array]:
    y = outputs.astype(np.int64) if outputs.dtype.kind == "b" else outputs
    single = y.ndim == 1 and len({*y.tolist()}) < 2
    if single and task == CLASSIFICATION:  # others will come
        return task, labels_of(y)
    if single and task == "auto":
        raise ValueError(
            f"the target '{target[0]}' holds one value only in the first {len(y):,} rows, "
            "which does not tell what kind it is; give --task, or more rows by --warmup"
        )
    task, y, _ = settle_task(y, target, task)
    return task, y


def labels_of(y: Array) -> Array:
    """Return classes as text or whole numbers."""
    if y.dtype == object:
        return np.array([str(value) for value in y], dtype=object)
    whole = y.astype(np.float64)
    return whole.astype(np.int64) if (whole == np.round(whole)).all() else whole


def _size(task: str, y: Array) -> tuple[Any, Any, Any]:
    """Return center and scale of numbers, and what the simplest model predicts."""
    if task == REGRESSION:
        center, scale = y.mean(axis=0), y.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        return center, scale, np.atleast_1d(center).tolist()
    values, counts = np.unique(y.astype(str) if y.dtype == object else y, return_counts=True)
    return 0.0, 1.0, values[np.argmax(counts)].item()


def _features(Z: Any, y: Any, choices: Choices) -> RandomFeatures | None:
    if choices.features == 0:
        return None
    sigma = choices.sigma
    learned = isinstance(sigma, str) and sigma != "median"
    if learned and len(np.unique(y)) < 2:
        sigma = "median"  # outputs tell nothing
    if isinstance(sigma, str) and Z.shape[0] < 2:
        raise ValueError(
            "one row does not tell the width of the kernel; give more rows, or --sigma"
        )
    features = RandomFeatures(
        sigma=sigma, n_features=choices.features, random_state=choices.seed
    )
    return features.fit(Z, y)


def _learner(task: str, features: Any, choices: Choices) -> Any:
    map = None if features is None else features.map_
    shared: dict[str, Any] = {
        "penalty": choices.penalty, "forgetting": choices.forgetting, "drift": choices.drift
    }  # fmt: skip
    if task == REGRESSION:
        learner: Any = RecursiveRegressor(map, **shared)
    else:
        learner = IncrementalClassifier(
            map, **shared, recoding=choices.recoding, random_state=choices.seed
        )
    learner._check_parameters()
    return learner
