"""What a model says of tables of any size, and how good that is: block by block."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imparo.data import Frame
from imparo.data.readers import Rows
from imparo.engine import Array, choose_engine
from imparo.errors import FileFormatError
from imparo.persistence import load
from imparo.tabular.fitting import judge_block
from imparo.tabular.gathering import Show, missing_cells
from imparo.tabular.judging import Judge
from imparo.tabular.model import TableModel
from imparo.tabular.opening import as_rows, is_pipe
from imparo.tabular.outcome import Evaluation
from imparo.tabular.roles import no_column
from imparo.tabular.targets import CLASSIFICATION


def open_model(path: str | os.PathLike[str]) -> Any:
    """Return a model of a table from its file, or a learner from its folder.

    Parameters
    ----------
    path : path-like
        What ``imparo fit`` has written, or the folder of ``imparo learn``.

    Returns
    -------
    TableModel, or a learner with its face
    """
    path = Path(path)
    if path.is_dir():
        from imparo.tabular.following import open_kept

        return open_kept(path, writable=False)
    model = load(path)
    if not isinstance(model, TableModel):
        raise FileFormatError(
            f"{path} holds a {type(model).__name__}, which does not know its columns by name; "
            "load it with imparo.load in Python, or fit one with imparo fit"
        )
    return model


def on_device(model: Any, device: str | None) -> Any:
    """Return the model, told where to compute; learners from folders compute here.

    Parameters
    ----------
    model : TableModel or learner
    device : str or None
        None leaves it as it is.

    Returns
    -------
    TableModel or learner
        The same.
    """
    if device is not None:
        choose_engine(device)  # a device that is not there is told before any work
        machine = getattr(model, "machine", None)
        if machine is not None and hasattr(machine, "device"):
            machine.device = device
    return model


def open_for(model: Any, source: Any, **read: Any) -> Rows:
    """Open a table as a model knows its columns: what was text is text.

    Parameters
    ----------
    model : TableModel
    source : as for :func:`~imparo.tabular.as_rows`
        Of data with parts, the test part is read.
    **read
        How to read, as for :func:`~imparo.tabular.as_rows`.

    Returns
    -------
    Rows
    """
    if model.is_sparse:
        read |= {"n_columns": model.n_columns, "first_index": model.first_index}
    rows = as_rows(source, prefer="test", **read)
    known = [name for name, kind in model.kinds.items() if kind == "text"]
    if any(isinstance(label, str) for label in model.classes):
        known += model.outputs
    more = [name for name in known if rows.kinds.get(name, "text") != "text"]
    if not more or is_pipe(source) or not rows.files:
        return rows
    return as_rows(source, prefer="test", **{**read, "text": (*read.get("text", ()), *more)})


def predict_blocks(
    model: Any,
    rows: Rows,
    *,
    probabilities: bool = False,
    keep: Sequence[str] = (),
    show: Show = lambda done, total, what: None,
) -> Iterator[Frame]:
    """Yield predictions for a table, a block of rows at a time.

    Parameters
    ----------
    model : TableModel
    rows : Rows
    probabilities : bool
        Whether a column for each class, "P(class)", goes with the predictions.
    keep : sequence of str
        Columns of the table to hand through, before the predictions.
    show : callable
        Called as ``show(done, total, description)``.

    Yields
    ------
    Frame
        ``keep``, then "prediction", or one "prediction of ..." for each of several outputs.
    """
    for block, X in _read(model, rows, keep, show, "predicting"):
        found: dict[str, Any] = {} if rows.is_sparse else {name: block[name] for name in keep}
        if model.task == CLASSIFICATION:
            scores = model.scores(X)
            found["prediction"] = model.labels_of(scores)
            if probabilities:
                P = model.probabilities_of(scores)
                found |= {f"P({name})": P[:, j] for j, name in enumerate(model.classes)}
        else:
            F = np.asarray(model.predict(X)).reshape(len(block), -1)
            names = prediction_names(model)
            found |= {name: F[:, j] for j, name in enumerate(names)}
        yield Frame(found, len(block))


def prediction_names(model: Any, probabilities: bool = False) -> list[str]:
    """Return the names of the columns that predictions have."""
    if model.task == CLASSIFICATION:
        return ["prediction", *(f"P({c})" for c in (model.classes if probabilities else ()))]
    if len(model.outputs) == 1:
        return ["prediction"]
    return [f"prediction of {name}" for name in model.outputs]


def evaluate_table(
    model: Any,
    rows: Rows,
    target: Sequence[str] = (),
    *,
    source: str = "",
    show: Show = lambda done, total, what: None,
) -> Evaluation:
    """Judge a model by a table that it has not seen.

    Parameters
    ----------
    model : TableModel
    rows : Rows
        With the target.
    target : sequence of str
        Names of the target's columns here; those of the fit if empty.
    source : str
        What the rows are called, for the evaluation to tell.
    show : callable

    Returns
    -------
    Evaluation
    """
    names = [] if rows.is_sparse else _targets(model, rows, target)
    where = rows.files[0].name if len(rows.files) == 1 else f"{len(rows.files)} files"
    if not rows.files:
        where = source or "memory"
    told = f"rows of {where}" if rows.files or source else "rows in memory"
    judge = Judge(model.task, model.outputs, model.classes, model.baseline, told)
    seen = 0
    for block, X in _read(model, rows, names, show, "judging"):
        y = block.y if rows.is_sparse else _outputs(block, names, model)
        known = _known(y)
        for i in np.flatnonzero(~known):
            rows.bad.report(
                where, seen + int(i), "the target is missing", "fill it in", unit="row"
            )
        seen += len(y)
        places = np.flatnonzero(known)
        if len(places):
            X, y = (X, y) if known.all() else (X[places], y[places])
            judge_block(judge, model, X, _as_labels(y, model))
    return judge.finished()


def _read(
    model: Any, rows: Rows, others: Sequence[str], show: Show, what: str
) -> Iterator[tuple[Any, Any]]:
    """Yield blocks, and the inputs of the model in them."""
    columns = model.match(rows)
    if rows.is_sparse:
        others = []
    for name in others:
        if name not in rows.names:
            raise ValueError(no_column(name, rows.names))
    wanted = None if rows.is_sparse else list(dict.fromkeys([*columns, *others]))
    done = 0
    for block in rows.blocks(wanted):
        if not len(block):
            continue
        yield block, block.X if rows.is_sparse else model.renamed(block, columns)
        done += len(block)
        show(done, rows.n_rows, what)


def _targets(model: Any, rows: Rows, target: Sequence[str]) -> list[str]:
    names = list(target) or list(model.outputs)
    if not target and not set(names) <= set(rows.names) and rows.targets:
        names = list(rows.targets)
    names = [part for name in names for part in rows.groups.get(name, [name])]
    for name in names:
        if name not in rows.names:
            raise ValueError(f"to judge, the target is needed: {no_column(name, rows.names)}")
    if len(names) != len(model.outputs):
        raise ValueError(f"the model has {len(model.outputs)} outputs, not {len(names)}")
    return names


def _outputs(block: Frame, names: list[str], model: Any) -> Array:
    if len(names) == 1:
        y = block[names[0]]
        if model.task != CLASSIFICATION and y.dtype.kind not in "biuf":
            raise ValueError(f"the target '{names[0]}' must hold numbers, as in the fit")
        return y
    return block.matrix(names).astype(np.float64)


def _known(y: Array) -> Array:
    gone = missing_cells(y)
    return np.logical_not(gone if gone.ndim == 1 else gone.any(axis=1))


def _as_labels(y: Array, model: Any) -> Array:
    """Return outputs as the classes of the model are: text, or whole numbers."""
    if model.task != CLASSIFICATION:
        return y
    if any(isinstance(name, str) for name in model.classes):
        if y.dtype.kind in "biuf":
            return np.array([str(int(v)) if v == int(v) else repr(v) for v in y.tolist()])
        return y.astype(str)
    if y.dtype == object:
        raise ValueError("the target holds text, and held numbers in the fit")
    return y.astype(np.int64) if (y == np.round(y)).all() else y
