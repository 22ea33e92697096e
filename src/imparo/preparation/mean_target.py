"""A regressor on a transformed output that predicts the mean of the original one."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from imparo.engine import Array
from imparo.persistence import persistent
from imparo.preparation.target import TargetTransform, checked_outputs


@persistent
class MeanTargetRegressor(RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a regressor to a transformed output, and predict the mean of the original one.

    scikit-learn's ``TransformedTargetRegressor`` predicts t⁻¹(f(x)), the median for noise of
    median 0; this one the mean of t⁻¹(f(x) + e), which squared errors ask for. Residuals e
    come from folds, since those of fitted rows are too small; the noise of t(y) is taken to
    be the same for all x.

    Parameters
    ----------
    regressor : estimator, optional
        ``Ridge()`` if left out.
    kind : {"yeo-johnson", "log", "none"}, default "yeo-johnson"
        Of :class:`TargetTransform`. "log" needs outputs above 0; with "none", this is the
        regressor itself.
    validation : int, default 5
        Number of folds, shuffled, that residuals come from.

    Attributes
    ----------
    regressor_ : estimator
        Fitted to all rows and the transformed outputs.
    transform_ : TargetTransform
        With its residuals.
    n_features_in_, feature_names_in_
        Those of ``regressor_``, if it has them.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.preparation import MeanTargetRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 1))
    >>> y = np.exp(X[:, 0] + rng.normal(size=2000))
    >>> model = MeanTargetRegressor(kind="log").fit(X, y)
    >>> model.predict([[0.0]]).round(1), model.predict_median([[0.0]]).round(1)
    (array([1.7]), array([1.]))
    """

    def __init__(
        self, regressor: Any = None, *, kind: str = "yeo-johnson", validation: int = 5
    ) -> None:
        self.regressor = regressor
        self.kind = kind
        self.validation = validation

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self._regressor())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.target_tags.multi_output = inner.target_tags.multi_output
        tags.target_tags.positive_only = inner.target_tags.positive_only or self.kind == "log"
        tags.regressor_tags.poor_score = inner.regressor_tags.poor_score
        tags.non_deterministic = inner.non_deterministic
        return tags

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in ``fit``."""
        return self.regressor_.n_features_in_

    @property
    def feature_names_in_(self) -> Array:
        """Their names, if X had string names."""
        return self.regressor_.feature_names_in_

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the transform, its residuals and the regressor.

        Parameters
        ----------
        X : whatever the regressor takes, n rows
        y : array of shape (n,), or (n, T) if the regressor takes many outputs
        sample_weight : array of shape (n,), optional
            For regressors that take weights.

        Returns
        -------
        MeanTargetRegressor
            Itself.
        """
        folds, regressor = self.validation, self._regressor()
        if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or folds < 2:
            raise ValueError(f"validation={folds!r} must be a number of folds, at least 2")
        y = checked_outputs(y)
        check_consistent_length(X, y)
        given = {}
        if sample_weight is not None:
            if not has_fit_parameter(regressor, "sample_weight"):
                raise ValueError(
                    f"{type(regressor).__name__} takes no sample_weight; leave it out, or "
                    "give another regressor"
                )
            given["sample_weight"] = np.asarray(sample_weight)
        transform = TargetTransform.fit(self.kind, y, sample_weight)
        Z = transform(y)
        if self.kind != "none":
            if len(y) < folds:
                raise ValueError(
                    f"validation={folds} folds need as many rows and X has "
                    f"n_samples={len(y)}; give fewer folds"
                )
            splits = KFold(int(folds), shuffle=True, random_state=0)
            F = cross_val_predict(regressor, X, Z, cv=splits, params=given)
            transform = transform.with_residuals(Z - F.reshape(Z.shape), sample_weight)
        self.regressor_ = clone(regressor).fit(X, Z, **given)
        self.transform_ = transform
        return self

    def predict(self, X: Any) -> Array:
        """Return the mean of y for each row of X, in the shape of the regressor's own."""
        check_is_fitted(self, "regressor_")
        return self.transform_.mean(self.regressor_.predict(X))

    def predict_median(self, X: Any) -> Array:
        """Return the median of y for each row of X, if that of the residuals is 0."""
        check_is_fitted(self, "regressor_")
        return self.transform_.median(self.regressor_.predict(X))

    def _regressor(self) -> Any:
        return Ridge() if self.regressor is None else self.regressor
