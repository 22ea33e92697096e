"""First steps: columns of any table as floats, or as text."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from imparo.engine import Array
from imparo.persistence import persistent
from imparo.preparation.columns import float_matrix, text_matrix


@persistent
class Numbers(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns of numbers, durations and dates as floats that can be squared.

    Dates become days since 1970, durations seconds. With ``rescale`` a column that lies far
    from 0, within a factor of two, has its smallest value subtracted, and one of extreme
    scale is divided by a power of two. Neither rounds, so that 10¹⁵ + 1 and 10¹⁵ + 2, or
    1e-300 and 2e-300, are as good as 1 and 2.
    """

    def __init__(self, *, rescale: Any = True) -> None:
        self.rescale = rescale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the range of every column."""
        self.__dict__.pop("n_features_in_", None)
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Widen the range of every column."""
        matrix = float_matrix(X)
        low: Array
        high: Array
        if sparse.issparse(matrix):
            low, high = (np.zeros(matrix.shape[1]) for _ in range(2))
            np.fmin.at(low, matrix.indices, matrix.data)
            np.fmax.at(high, matrix.indices, matrix.data)
        else:
            low, high = np.fmin.reduce(matrix, axis=0), np.fmax.reduce(matrix, axis=0)
        if hasattr(self, "n_features_in_"):
            low, high = np.fmin(low, self.low_), np.fmax(high, self.high_)
        self.low_: Array
        self.high_: Array
        self.low_, self.high_ = low.astype(np.float64), high.astype(np.float64)
        self.n_features_in_ = len(low)
        self._place()
        return self

    def _place(self) -> None:
        low, high = np.nan_to_num(self.low_), np.nan_to_num(self.high_)
        # Differences of floats within a factor of two are exact (Sterbenz).
        self.shift_ = np.where((low > 0) & (high <= 2 * low), low, 0.0)
        self.shift_ = np.where((high < 0) & (low >= 2 * high), high, self.shift_)
        size = np.maximum(np.abs(low - self.shift_), np.abs(high - self.shift_))
        exponent = np.frexp(size)[1]
        self.exponent_ = np.where(np.abs(exponent) > 40, exponent, 0)
        if not self.rescale:
            self.shift_[:], self.exponent_[:] = 0, 0

    def transform(self, X: Any) -> Any:
        """Return X as floats, shifted and scaled; float32 stays what it is."""
        matrix = float_matrix(X)
        exponent = -self.exponent_
        if sparse.issparse(matrix):
            if exponent.any():
                matrix = matrix.copy()
                matrix.data = np.ldexp(matrix.data, exponent[matrix.indices])
            return matrix
        if self.shift_.any():
            matrix = matrix - self.shift_.astype(matrix.dtype)
        return np.ldexp(matrix, exponent) if exponent.any() else matrix


@persistent
class Texts(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns of categories as text, with None where a value is missing."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the columns."""
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Array:
        """Return X as an array of strings."""
        return text_matrix(X)
