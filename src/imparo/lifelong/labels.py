"""Labels of any kind, appearing at any time."""

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from imparo.engine import Array


def labels_of(y: Any) -> list[Any]:
    """Return labels as plain values: numbers, strings, booleans or anything hashable.

    Parameters
    ----------
    y : array, series or list of shape (n,)

    Returns
    -------
    list
    """
    if type(y) is list and all(type(item) in (str, int, bool) for item in y):
        return y.copy()
    if isinstance(y, list | tuple) and any(isinstance(item, tuple) for item in y):
        values = np.empty(len(y), object)
        values[:] = y
    else:
        values = np.asarray(y)
        if values.dtype.kind in "US" and isinstance(y, list | tuple):
            values = _mixed(y, values)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise ValueError("y contains NaN or infinity, which is no label; drop such rows")
        if (values != np.floor(values)).any():
            check_classification_targets(values)
    values = column_or_1d(values, warn=True)
    labels = [item.item() if isinstance(item, np.generic) else item for item in values.tolist()]
    for label in labels:
        try:
            hash(label)
        except TypeError:
            raise TypeError(
                f"y contains {label!r:.60}, a {type(label).__name__}, and a label must be "
                "hashable: a string, a number or a tuple"
            ) from None
        if not _is_label(label):
            raise ValueError(f"y contains {label!r}, which is no label; drop such rows")
    return labels


def _is_label(label: Any) -> bool:
    """Return whether a value equals itself: None, NaN and pandas' NA are none."""
    try:
        return label is not None and bool(label == label)
    except TypeError:
        return False


def _mixed(y: Any, values: Array) -> Array:
    """Return labels as they are where NumPy would make strings of numbers."""
    if all(isinstance(item, str) for item in y):
        return values
    kept = np.empty(len(y), object)
    kept[:] = list(y)
    return kept


def sorted_classes(labels: list[Any]) -> tuple[Array, Array]:
    """Return the labels as a sorted array, and where each was in the list.

    Labels of kinds that do not compare stay in the order in which they appeared.
    """
    try:
        order = sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:
        order = list(range(len(labels)))
    classes = [labels[i] for i in order]
    kinds = {type(label) for label in labels}
    array = np.empty(len(classes), object)
    array[:] = classes
    if kinds and (kinds <= {int, float} or kinds in ({str}, {bool})):
        plain = np.array(classes)
        # Large whole numbers beside others may be rounded, and strings lose a last NUL.
        if plain.tolist() == classes:
            array = plain
    return array, np.array(order, np.intp)
