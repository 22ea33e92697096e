"""Columns that say something, each once."""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from imparo.engine import Array, row_blocks
from imparo.persistence import persistent

# Columns are compared in full only where so many random projections of them agree.
_PROJECTIONS = 3
_BLOCK = 2**20  # numbers


@persistent
class DistinctColumns(SelectorMixin, BaseEstimator):
    """Drop columns that are constant, and those that are another one up to sign and scale.

    A constant column adds nothing to a distance, and one that is there twice counts double.
    Columns are the same if they agree in every row after scaling to mean 0 and deviation 1,
    with either sign, to half of the digits of their type (1.5e-8, in float32 3.5e-4), which
    leaves room for the rounding of °C to °F. The first one stays. If all columns are
    constant the first stays, so that there is something to fit.

    Cost 8nd: columns are compared through three random projections, and in full only where
    these agree. Sparse matrices stay sparse.

    Attributes
    ----------
    kept_ : array of int
        Positions of the columns that stay.
    same_as_ : array of shape (d,)
        For each column the position of the one that stays for it; −1 for a constant one.
    dropped_ : list of tuples (name, reason)
        What was dropped: "is constant" or "is the same as 'name'".
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    Examples
    --------
    >>> from imparo.preparation import DistinctColumns
    >>> distinct = DistinctColumns().fit([[1.0, 5.0, 3.0], [2.0, 5.0, 1.0], [4.0, 5.0, -3.0]])
    >>> distinct.dropped_
    [('x1', 'is constant'), ('x2', "is the same as 'x0'")]
    >>> distinct.transform([[7.0, 8.0, 9.0]])
    array([[7.]])
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns to keep.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : None
            Not used.

        Returns
        -------
        DistinctColumns
            Itself.
        """
        matrix = check_array(
            X, accept_sparse="csc", dtype=[np.float64, np.float32], estimator=self
        )
        same_as = _same_as(matrix)
        if (same_as < 0).all():
            same_as[0] = 0
        validate_data(self, X, skip_check_array=True)
        self.same_as_ = same_as
        self.kept_ = np.flatnonzero(same_as == np.arange(len(same_as)))
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(same_as))])
        self.dropped_ = [
            (str(names[j]), f"is the same as '{names[first]}'" if first >= 0 else "is constant")
            for j, first in enumerate(same_as)
            if first != j
        ]
        return self

    def _get_support_mask(self) -> Array:
        check_is_fitted(self, "same_as_")
        return self.same_as_ == np.arange(len(self.same_as_))


class _Sketch(NamedTuple):
    """What standardises every column, x/scale = shift + deviation·z, and Rᵀz/√n."""

    scale: Array
    shift: Array
    deviation: Array
    constant: Array
    projections: Array


def _same_as(X: Any) -> Array:
    """Return for every column the position of the first that is the same; −1 if constant."""
    tolerance = float(np.sqrt(np.finfo(X.dtype).eps))
    sketch = _sketch(X)
    same_as = np.arange(X.shape[1])
    same_as[sketch.constant] = -1
    P = sketch.projections
    size = np.where(sketch.constant, np.inf, np.abs(P[0]))
    order = np.argsort(size, kind="stable")
    # Projections of equal columns differ by about the tolerance; sixteen times that is out
    # of reach for normal deviates.
    near = 16 * tolerance
    first = np.searchsorted(size[order], size - near)
    last = np.searchsorted(size[order], size + near, side="right")
    for j in np.flatnonzero((last - first > 1) & ~sketch.constant):
        others = order[first[j] : last[j]]
        others = np.sort(others[(others < j) & (same_as[others] == others)])
        signs = [np.abs(P[:, others] - s * P[:, [j]]).max(axis=0) <= near for s in (1, -1)]
        for other in others[signs[0] | signs[1]]:
            if _agree(X, sketch, j, other, tolerance):
                same_as[j] = other
                break
    return same_as


def _agree(X: Any, sketch: _Sketch, j: Any, other: Any, tolerance: float) -> bool:
    a, b = _standardised(X, sketch, j), _standardised(X, sketch, other)
    bound = tolerance * np.maximum(np.abs(a), 1)  # a far value has the digits of a near one
    return bool((np.abs(a - b) <= bound).all() or (np.abs(a + b) <= bound).all())


def _standardised(X: Any, sketch: _Sketch, j: int) -> Array:
    x = X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j]
    x = x.astype(np.float64) / sketch.scale[j]
    return (x - sketch.shift[j]) / sketch.deviation[j]


def _sketch(X: Any) -> _Sketch:
    n, d = X.shape
    low, high = _extremes(X)
    # Powers of two: squares of extreme columns neither overflow nor vanish.
    exponent = np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
    scale = np.ldexp(1.0, np.clip(exponent, -1022, 1023))
    low, high = low / scale, high / scale
    constant = high - low <= 4 * np.finfo(X.dtype).eps * np.maximum(np.abs(low), np.abs(high))
    total, squares = np.zeros(d), np.zeros(d)
    projections, ones = np.zeros((_PROJECTIONS, d)), np.zeros((_PROJECTIONS, 1))
    rng = np.random.RandomState(0)
    start = np.zeros(d) if sparse.issparse(X) else low
    for rows in row_blocks(n, n if sparse.issparse(X) else max(1, _BLOCK // d)):
        R = rng.normal(size=(rows.stop - rows.start, _PROJECTIONS))
        if sparse.issparse(X):
            B = sparse.csc_array(X).astype(np.float64)
            B.data /= np.repeat(scale, np.diff(B.indptr))
            squares += B.multiply(B).sum(axis=0)
        else:
            B = X[rows] / scale - start
            squares += np.einsum("ij,ij->j", B, B)
        total += B.sum(axis=0)
        projections += (B.T @ R).T
        ones += R.sum(axis=0)[:, None]
    mean = total / n
    deviation = np.sqrt(np.maximum(squares / n - mean**2, 0))
    constant |= deviation == 0
    deviation[constant] = 1.0
    projections = (projections - ones * mean) / (deviation * np.sqrt(n))
    return _Sketch(scale, start + mean, deviation, constant, projections)


def _extremes(X: Any) -> tuple[Array, Array]:
    if sparse.issparse(X):
        low, high = (np.asarray(f(axis=0).todense()).ravel() for f in (X.min, X.max))
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    return low.astype(np.float64), high.astype(np.float64)
