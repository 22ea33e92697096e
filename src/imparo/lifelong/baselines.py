"""What recoding is compared with: the loss rebalanced, which needs all examples again."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from imparo.engine import Array, default_engine, host_engine
from imparo.estimators.inputs import all_or_nothing, check_rows, check_type
from imparo.lifelong.inputs import fitted_map
from imparo.persistence import persistent


@persistent
class RebalancedClassifier(ClassifierMixin, BaseEstimator):
    """Least squares with every class of the same weight: W = (ΦᵀΣΦ + λI)⁻¹ΦᵀΣY.

    Σ_ii = k/k_t for the class t of example i, and Y are 0/1 codes (thesis, section 7.5.2). A
    baseline for :class:`~imparo.IncrementalClassifier`: Σ changes with each example, so that
    nothing of it can be kept. Cost nD² + D³/3. The other baseline, the naive classifier, is
    ``IncrementalClassifier(recoding=0)``.

    Parameters
    ----------
    features : None, FeatureMap or transformer, default None
        As for :class:`~imparo.IncrementalClassifier`.
    penalty : float, default 1.0
        λ > 0 of the *sum* of losses.
    intercept : bool, default True
        Whether to add a constant feature 1, under the same penalty.

    Attributes
    ----------
    classes_ : array of shape (T,)
    coef_ : array of shape (T, D)
    intercept_ : array of shape (T,)
    features_ : FeatureMap, transformer or None
        The map in use.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.lifelong import RebalancedClassifier
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [1.0]])
    >>> y = ["common", "common", "common", "common", "rare"]
    >>> RebalancedClassifier(penalty=0.1).fit(X, y).predict([[0.9]])
    array(['rare'], dtype='<U6')
    """

    def __init__(
        self, features: Any = None, *, penalty: float = 1.0, intercept: bool = True
    ) -> None:
        self.features = features
        self.penalty = penalty
        self.intercept = intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to all examples.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of shape (n,)

        Returns
        -------
        RebalancedClassifier
            Itself.
        """
        number = isinstance(self.penalty, int | float | np.number) and 0 < self.penalty < np.inf
        check_type("penalty", self.penalty, "a number above 0", bool(number))
        X, y = validate_data(
            self, check_rows(X), y, accept_sparse="csr", dtype=np.float64, order="C"
        )
        check_classification_targets(y)
        X = X.toarray() if sparse.issparse(X) else X
        self.features_ = fitted_map(self.features, X)
        Phi = self._features_of(X)
        self.classes_, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        weight = len(y) / counts[codes]
        Y = np.zeros((len(y), len(counts)))
        Y[np.arange(len(y)), codes] = weight
        engine, D = default_engine(), Phi.shape[1]
        A = host_engine().zeros((D, D), Phi.dtype)
        engine.accumulate_gram(A, Phi * np.sqrt(weight)[:, None])
        A[np.diag_indices(D)] += self.penalty
        R = engine.cholesky(A)
        z = engine.solve_triangular(R, engine.product(Phi.T, Y), transpose=True)
        W = engine.solve_triangular(R, z).T
        self.coef_ = np.ascontiguousarray(W[:, int(self.intercept) :])
        self.intercept_ = W[:, 0].copy() if self.intercept else np.zeros(len(W))
        return self

    def _features_of(self, X: Any) -> Array:
        Phi = X if self.features_ is None else self.features_.transform(X)
        Phi = Phi.toarray() if sparse.issparse(Phi) else Phi
        return np.column_stack([np.ones(len(Phi)), Phi]) if self.intercept else Phi

    def decision_function(self, X: Any) -> Array:
        """Return the scores.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)

        Returns
        -------
        array of shape (n, T), or of shape (n,) for two classes
        """
        S = self._scores(X)
        return S[:, 1] - S[:, 0] if S.shape[1] == 2 else S

    def predict(self, X: Any) -> Array:
        """Return the labels with the largest scores.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)

        Returns
        -------
        array of shape (n,)
        """
        S = self._scores(X)
        return self.classes_[np.argmax(S, axis=1)]

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "coef_")
        X = validate_data(
            self, check_rows(X), accept_sparse="csr", dtype=np.float64, order="C", reset=False
        )
        X = X.toarray() if sparse.issparse(X) else X
        Phi = self._features_of(X)[:, int(self.intercept) :]
        return default_engine().product(Phi, self.coef_.T) + self.intercept_
