"""The two faces of every kernel machine: numbers in and out, or classes."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.class_weight import compute_sample_weight

from imparo.cluster import is_dask
from imparo.engine import Array
from imparo.estimators.devices import decide_on_device, fit_on_device, like, on_host
from imparo.estimators.inputs import check_numbers, scaled_outputs, scaled_weight
from imparo.estimators.lazy import gathered, lazy
from imparo.estimators.targets import encode_classes
from imparo.scores import Misclassification, RootMeanSquare

# What a machine brings to its face:
#   _rows(X, y, sample_weight, **checks) -> rows, y, sample_weight, checked;
#   _fit(rows, Y, weight, y, score, *, stratify) -> a solved model and its path;
#   _keep(model, *, flat) sets the fitted attributes;
#   _decision(X) -> the (n, T) matrix of predictions.


class Regressor(RegressorMixin):
    """Outputs scaled to near 1 for the fit, and predictions as they were."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _learn(self: Any, X: Any, y: Any, sample_weight: Any, how: str = "_fit") -> Any:
        y, sample_weight = on_host(y), on_host(sample_weight)
        return fit_on_device(self, X, lambda: self._learn_here(X, y, sample_weight, how))

    def _learn_here(self: Any, X: Any, y: Any, sample_weight: Any, how: str) -> Any:
        rows, y, sample_weight = self._rows(
            X, check_numbers(y), sample_weight, multi_output=True, y_numeric=True
        )
        weight = scaled_weight(sample_weight, y)
        Y, scale, shift = scaled_outputs(y, weight, bool(self.intercept), rows.dtype)
        self._take_units(scale, shift)
        model, path = getattr(self, how)(rows, Y, weight, y, RootMeanSquare())
        if path is not None:
            path = path.scaled(scale)
        self.path_ = path
        self._keep(model.scaled(scale, shift), flat=y.ndim == 1)
        return self

    def _take_units(self, scale: float, shift: Array) -> None:
        """Learn before a fit that outputs are scale·Y + shift, where that is of use."""

    @lazy
    def predict(self: Any, X: Any) -> Array:
        """Return the predicted outputs, in blocks of rows within ``memory``.

        Parameters
        ----------
        X : array, sparse matrix, data frame or collection of Dask of shape (k, d)

        Returns
        -------
        array of shape (k,) or (k, n_outputs)
            One of Dask, not computed yet, for a collection.
        """
        F = decide_on_device(self, X)
        return F[:, 0] if np.ndim(self.intercept_) == 0 else F

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R² of the predictions.

        Parameters
        ----------
        X : array, sparse matrix, data frame or collection of Dask of shape (k, d)
        y : array of shape (k,) or (k, n_outputs)
        sample_weight : array of shape (k,), optional

        Returns
        -------
        float
        """
        if not is_dask(X):
            return float(super().score(X, y, sample_weight))
        return _gathered_score(self, r2_score, X, y, sample_weight)


class Classifier(ClassifierMixin):
    """Classes as ±1 codes for the fit, and predictions by their largest code."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _learn(self: Any, X: Any, y: Any, sample_weight: Any, how: str = "_fit") -> Any:
        y, sample_weight = on_host(y), on_host(sample_weight)
        return fit_on_device(self, X, lambda: self._learn_here(X, y, sample_weight, how))

    def _learn_here(self: Any, X: Any, y: Any, sample_weight: Any, how: str) -> Any:
        rows, y, sample_weight = self._rows(X, y, sample_weight, multi_output=True)
        y = y.toarray() if sparse.issparse(y) else y
        Y, classes, multilabel = encode_classes(y, rows.dtype)
        weight = scaled_weight(sample_weight, y)
        if self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, y)
        score = Misclassification(multilabel)
        model, self.path_ = getattr(self, how)(
            rows, Y, weight, y, score, stratify=not multilabel
        )
        self._keep(model, flat=False)
        self.classes_, self._multilabel = classes, multilabel
        return self

    @lazy
    def decision_function(self: Any, X: Any) -> Array:
        """Return the least-squares predictions of the codes.

        Parameters
        ----------
        X : array, sparse matrix, data frame or collection of Dask of shape (k, d)

        Returns
        -------
        array of shape (k,) for two classes, else (k, n_classes) or (k, n_labels)
        """
        F = decide_on_device(self, X)
        return F[:, 0] if F.shape[1] == 1 and not self._multilabel else F

    @lazy
    def predict(self: Any, X: Any) -> Array:
        """Return the predicted classes, in blocks of rows within ``memory``.

        Parameters
        ----------
        X : array, sparse matrix, data frame or collection of Dask of shape (k, d)

        Returns
        -------
        array of shape (k,), or indicator matrix of shape (k, n_labels)
            One of Dask, not computed yet, for a collection.
        """
        F = on_host(decide_on_device(self, X))
        if self._multilabel:
            return like((F > 0).astype(int), X)
        if F.shape[1] == 1:
            return like(self.classes_[(F[:, 0] > 0).astype(int)], X)
        return like(self.classes_[np.argmax(F, axis=1)], X)

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows, or of their weight, whose class is predicted.

        Parameters
        ----------
        X : array, sparse matrix, data frame or collection of Dask of shape (k, d)
        y : array of shape (k,), or indicator matrix of shape (k, n_labels)
        sample_weight : array of shape (k,), optional

        Returns
        -------
        float
        """
        if not is_dask(X):
            return float(super().score(X, y, sample_weight))
        return _gathered_score(self, accuracy_score, X, y, sample_weight)


def _gathered_score(estimator: Any, metric: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Return a metric of the predictions of a collection of Dask, which are brought here."""
    cluster = getattr(estimator, "cluster", None)
    parts = y, estimator.predict(X), sample_weight
    truth, found, weight = (gathered(part, cluster) for part in parts)
    return float(metric(truth, found, sample_weight=weight))


def shares(P: Array, *, multilabel: bool) -> Array:
    """Return probabilities of classes from those of one against all.

    Parameters
    ----------
    P : array of shape (k, T)
    multilabel : bool
        Whether classes do not exclude each other.

    Returns
    -------
    array of shape (k, n_classes) or (k, n_labels)
    """
    if multilabel:
        return P
    if P.shape[1] == 1:
        return np.hstack([1 - P, P])
    total = P.sum(axis=1, keepdims=True)
    # Where every class is found impossible, all are as likely.
    return np.divide(P, total, out=np.full_like(P, 1 / P.shape[1]), where=total > 0)
