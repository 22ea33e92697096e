"""From the cells of the target to what is learned: numbers, or classes."""

from typing import Any

import numpy as np

from imparo.engine import Array

REGRESSION, CLASSIFICATION = "regression", "classification"
# Whole numbers are taken for classes if there are at most so many different ones.
_FEW = 20


def settle_task(y: Array, names: list[str], task: str) -> tuple[str, Array, list[str]]:
    """Return the task, the outputs as machines take them, and what was decided.

    Parameters
    ----------
    y : array of shape (n,) or (n, T)
        Numbers, or text as objects; nothing is missing.
    names : list of str
        Of the target's columns.
    task : "auto", "regression" or "classification"

    Returns
    -------
    task : "regression" or "classification"
    y : array of shape (n,) or (n, T)
        Floats; or text, or whole numbers, for classes.
    notes : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.tabular.targets import settle_task
    >>> task, y, notes = settle_task(np.tile([0.0, 1.0], 50), ["ill"], "auto")
    >>> task, notes
    ('classification', ["the target 'ill' holds 2 different values, taken for classes"])
    """
    if task not in ("auto", REGRESSION, CLASSIFICATION):
        raise ValueError(
            f"task={task!r} is not known; give 'auto', 'regression' or 'classification'"
        )
    name = ", ".join(names)
    if y.ndim == 2 and y.shape[1] > 1:
        if y.dtype == object or task == CLASSIFICATION:
            raise ValueError(
                f"the targets {name} are several, which only numbers can be; give one of them"
            )
        return REGRESSION, y.astype(np.float64), []
    y = y.reshape(len(y))
    notes: list[str] = []
    if y.dtype == object:
        if task == REGRESSION:
            raise ValueError(
                f"the target '{name}' holds text, such as {y[0]!r}, which regression cannot "
                "learn; ask for classification"
            )
        return CLASSIFICATION, _checked_classes(np.array(y, dtype=str), name), notes
    if task == "auto":
        task = REGRESSION
        few = np.unique(y[:100_000])
        if len(few) <= _FEW and len(np.unique(y)) <= _FEW:
            few = np.unique(y)
            whole = bool((few == np.round(few)).all())
            if whole and (len(few) <= 2 or len(y) >= 5 * len(few)):
                task = CLASSIFICATION
                notes.append(
                    f"the target '{name}' holds {len(few)} different values, taken for classes"
                )
    if task == REGRESSION:
        return task, y.astype(np.float64), notes
    if (y != np.round(y)).any():
        raise ValueError(
            f"the target '{name}' holds {y[y != np.round(y)][0]:g}, and numbers of classes are "
            "whole; read the column as text (--text), or ask for regression"
        )
    return task, _checked_classes(y.astype(np.int64), name), notes


def _checked_classes(y: Array, name: str) -> Array:
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"the target '{name}' holds one class only ({classes.tolist()[0]!r}), and at least "
            "two are needed; add rows of another class, or name another target"
        )
    if len(classes) > max(20, len(y) // 2):
        raise ValueError(
            f"the target '{name}' holds {len(classes):,} different values in {len(y):,} rows, "
            "too many for classes; name another target, or ask for regression of numbers"
        )
    return y


def label(value: Any) -> Any:
    """Return a class as plain text or number."""
    return value.item() if isinstance(value, np.generic) else value
