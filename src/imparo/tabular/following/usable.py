"""Which rows can be learned, and what is wrong with the others."""

from typing import Any

import numpy as np

from imparo.data import Frame
from imparo.data.readers import SparseBlock
from imparo.data.readers.base import MISSING
from imparo.data.readers.text_cells import MISSING_TEXT
from imparo.engine import Array
from imparo.tabular.following.chunks import as_texts, taken
from imparo.tabular.following.table import labels_of
from imparo.tabular.model import TableModel
from imparo.tabular.roles import no_column
from imparo.tabular.targets import CLASSIFICATION

#: What is wrong with a row, by its position.
Faults = dict[int, str]


def without_target(rows: Any, targets: list[str], *, text: bool = True) -> Faults:
    """Return the rows of which a target is missing.

    Parameters
    ----------
    rows : Frame or SparseBlock
    targets : list of str
    text : bool
        Whether the target is text, of which "none" may be a class.
    """
    if isinstance(rows, SparseBlock):
        return _missing(rows.y, targets[0], text)
    faults: Faults = {}
    for target in targets:
        faults = {**_missing(rows[target], target, text), **faults}
    return faults


def _missing(cells: Array, target: str, text: bool) -> Faults:
    marks = MISSING_TEXT if text else MISSING
    if cells.dtype == object:
        gone = [cell is None or str(cell).strip().lower() in marks for cell in cells]
    elif cells.dtype.kind == "f":
        gone = list(~np.isfinite(cells))
    else:
        gone = [False] * len(cells)
    word = f"the target '{target}' is missing; fill it in"
    return {i: word for i, is_gone in enumerate(gone) if is_gone}


def usable(
    model: TableModel, rows: Any, *, absent: bool = False
) -> tuple[Any, Array, Array, Faults]:
    """Return what can be learned of some rows.

    Parameters
    ----------
    model : TableModel
    rows : Frame or SparseBlock
        With the target.
    absent : bool
        Whether a column that is not there holds missing values, as in JSON.

    Returns
    -------
    X : array of shape (k, p)
        Prepared rows.
    y : array of shape (k,) or (k, T)
        Numbers, or labels.
    kept : array of shape (k,)
        Positions of the rows that are good.
    faults : dict of int to str
        What is wrong with the others.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    n, text = len(rows), model.made["text_target"]
    if isinstance(rows, SparseBlock):
        table, faults = rows.X, without_target(rows, model.outputs, text=text)
        y, more = _outputs(model, rows.y)
    else:
        rows, faults = _known_columns(model, rows, absent)
        faults |= without_target(rows, model.outputs, text=text)
        y, more = _all_outputs(model, rows)
        table = rows.select(model.columns)
    faults = {**more, **faults}
    kept = np.array([i for i in range(n) if i not in faults], np.intp)
    if not len(kept):
        return None, y[kept], kept, faults
    try:
        X = model.prepared(table if len(kept) == n else taken(table, kept))
    except (ValueError, TypeError):
        X, kept = _one_by_one(model, table, kept, faults)
    return X, y[kept], kept, faults


def _one_by_one(
    model: TableModel, table: Any, kept: Array, faults: Faults
) -> tuple[Any, Array]:
    """Prepare rows alone, to find those that cannot be."""
    good, parts = [], []
    for i in kept.tolist():
        try:
            parts.append(model.prepared(taken(table, slice(i, i + 1))))
            good.append(i)
        except (ValueError, TypeError) as error:
            faults[i] = str(error)
    return (np.vstack(parts) if parts else None), np.array(good, np.intp)


def _all_outputs(model: TableModel, rows: Frame) -> tuple[Array, Faults]:
    """Return the targets as they are learned, and which rows cannot be."""
    if len(model.outputs) == 1:
        return _outputs(model, rows[model.outputs[0]])
    parts: list[Array] = []
    faults: Faults = {}
    for name in model.outputs:
        numbers, more = _numbers(rows[name], name)
        parts.append(numbers.astype(np.float64))
        faults = {**more, **faults}
    return np.column_stack(parts), faults


def _outputs(model: TableModel, cells: Array) -> tuple[Array, Faults]:
    """Return the target as it is learned, and which cells cannot be."""
    (target,) = model.outputs
    if model.task == CLASSIFICATION and model.made["text_target"]:
        return labels_of(as_texts(cells)), {}
    numbers, faults = _numbers(cells, target)
    if model.task != CLASSIFICATION:
        return numbers, faults
    parts = np.isfinite(numbers) & (numbers != np.round(numbers))
    for i in np.flatnonzero(parts).tolist():
        faults[i] = (
            f"the target '{target}' is {numbers[i]:g}, and classes are whole numbers or text; "
            "correct it"
        )
    whole = np.where(np.isfinite(numbers) & ~parts, numbers, 0)
    return whole.astype(np.int64), faults


def _known_columns(model: TableModel, rows: Frame, absent: bool) -> tuple[Frame, Faults]:
    """Return a frame of the columns that are needed, of the kinds that they had before."""
    faults: Faults = {}
    columns: dict[str, Array] = {}
    for name in (*model.columns, *model.outputs):
        if name not in rows.columns:
            if not absent:
                raise ValueError(f"the learner needs it: {no_column(name, rows.columns)}")
            columns[name] = np.full(len(rows), np.nan)
        else:
            columns[name] = rows[name]
    for name in model.columns:
        columns[name], more = _as_kind(columns[name], model.kinds[name], name)
        faults = {**more, **faults}
    return Frame(columns, len(rows)), faults


def _as_kind(cells: Array, kind: str, name: str) -> tuple[Array, Faults]:
    if kind == "number":
        return _numbers(cells, name)
    if kind == "text":
        return as_texts(cells), {}
    if kind in ("date", "duration") and cells.dtype.kind not in "Mm":
        return _times(cells, "M8[us]" if kind == "date" else "m8[us]", name)
    return cells, {}


def _numbers(cells: Array, name: str) -> tuple[Array, Faults]:
    if cells.dtype.kind in "biuf":
        return cells, {}
    numbers, faults = np.full(len(cells), np.nan), {}
    for i, cell in enumerate(cells.tolist()):
        if cell is None or str(cell).strip().lower() in MISSING:
            continue
        try:
            numbers[i] = float(cell)
        except (ValueError, TypeError):
            faults[i] = f"'{name}' holds {cell!r:.40}, and numbers before; correct it"
    return numbers, faults


def _times(cells: Array, dtype: str, name: str) -> tuple[Array, Faults]:
    times, faults = np.full(len(cells), "NaT", dtype), {}
    for i, cell in enumerate(cells.tolist()):
        if cell is None or cell != cell or str(cell).strip().lower() in MISSING:
            continue
        if dtype.startswith("m8"):
            try:
                times[i] = np.timedelta64(round(float(cell) * 1e6), "us")
            except (ValueError, TypeError, OverflowError):
                faults[i] = f"'{name}' holds {cell!r:.40}, and seconds before; correct it"
            continue
        try:
            times[i] = np.datetime64(str(cell).strip().removesuffix("Z"))
        except ValueError:
            faults[i] = f"'{name}' holds {cell!r:.40}, and dates before; correct it"
    return times, faults
