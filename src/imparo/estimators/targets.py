"""Classes as the matrix of codes that least squares fits."""

from typing import Any

import numpy as np
from sklearn.preprocessing import LabelBinarizer, label_binarize
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from imparo.engine import Array


def encode_classes(y: Any, dtype: np.dtype[Any]) -> tuple[Array, Array, bool]:
    """Return ±1 codes, the classes, and whether y is multilabel.

    One column for two classes, one for each class for more (one against all), one for
    each label where y is an indicator matrix.

    Parameters
    ----------
    y : array of shape (n,) or indicator matrix of shape (n, T)
    dtype : dtype

    Returns
    -------
    codes : array of shape (n, T)
    classes : array
    multilabel : bool

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.estimators.targets import encode_classes
    >>> codes, classes, _ = encode_classes(np.array(["b", "a", "b"]), np.dtype(float))
    >>> codes.ravel(), classes
    (array([ 1., -1.,  1.]), array(['a', 'b'], dtype='<U1'))
    """
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    kind = type_of_target(y)
    if kind == "multiclass-multioutput":
        raise ValueError(
            "y has several columns of classes, and labels must be 0 or 1 in that case; fit one "
            "classifier for each column with MultiOutputClassifier"
        )
    binarizer = LabelBinarizer(neg_label=-1, pos_label=1)
    codes = binarizer.fit_transform(y)
    classes, multilabel = binarizer.classes_, kind == "multilabel-indicator"
    if len(classes) < 2 and not multilabel:
        raise ValueError(
            f"y holds one class only ({classes.tolist()[0]!r}) and a classifier needs at least "
            "two classes; add rows of another class"
        )
    return np.ascontiguousarray(codes, dtype), classes, multilabel


def codes_of(
    y: Any, classes: Any, known: Array | None, labels: bool | None, dtype: np.dtype[Any]
) -> tuple[Array, Array, bool]:
    """Return ±1 codes of some rows of a stream, the classes, and whether y is multilabel.

    Parameters
    ----------
    y : array of shape (n,) or indicator matrix of shape (n, T)
    classes : array or None
        All classes, as the user gives them.
    known : array or None
        All classes of a model that has learned before.
    labels : bool or None
        Whether that model has labels.
    dtype : dtype

    Returns
    -------
    codes : array of shape (n, T)
    classes : array
    multilabel : bool
    """
    several = y.ndim == 2 and y.shape[1] > 1
    if known is not None and labels is not None and (several or labels):
        if not labels:
            raise ValueError("y has several columns of labels, and the model has classes")
        if not several or y.shape[1] != len(known):
            raise ValueError(f"y must hold 0 or 1 for each of {len(known)} labels, in columns")
    if several:
        if not np.isin(y, (0, 1)).all():
            raise ValueError("y has several columns, and labels must be 0 or 1 in that case")
        return np.ascontiguousarray(np.where(y > 0, 1, -1), dtype), np.arange(y.shape[1]), True
    y = column_or_1d(y)
    given = None if classes is None else np.unique(classes)
    if known is None and given is None:
        raise ValueError(
            "classes must be passed on the first call to partial_fit: a stream does not tell "
            "which there will be"
        )
    if known is not None and given is not None and not np.array_equal(known, given):
        raise ValueError(
            f"classes={given.tolist()} are not those of the first call, {known.tolist()}"
        )
    all_classes = known if given is None else given
    assert all_classes is not None
    if len(all_classes) < 2:
        raise ValueError(
            f"classes holds one class only ({all_classes.tolist()[0]!r}) and a classifier "
            "needs at least two classes"
        )
    unknown = np.setdiff1d(y, all_classes)
    if len(unknown):
        raise ValueError(
            f"y holds {unknown.tolist()[0]!r}, which is not among the classes "
            f"{all_classes.tolist()}; name all classes in the first call of partial_fit"
        )
    codes = label_binarize(y, classes=all_classes, neg_label=-1, pos_label=1)
    return np.ascontiguousarray(codes, dtype), all_classes, False
