"""What learners are given: feature maps and sample weights, checked."""

import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from imparo.engine import Array
from imparo.estimators.inputs import check_type, stream_weight
from imparo.estimators.transformers import RandomFeatures
from imparo.features import FeatureMap

EXPONENTIAL, DIRECTIONAL = "exponential", "directional"


def is_number(value: Any) -> bool:
    """Return whether a parameter is a number, and no truth value."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def check_forgetting(gamma: Any, kind: Any) -> None:
    """Raise unless a forgetting factor and its kind are what they must be."""
    fits = is_number(gamma) and 0 < gamma <= 1
    check_type("forgetting", gamma, "a number above 0 and up to 1", fits)
    kinds = (EXPONENTIAL, DIRECTIONAL)
    check_type("forgetting_kind", kind, f"one of {', '.join(kinds)}", kind in kinds)


def fitted_map(features: Any, X: Array) -> Any:
    """Return the map to use: None for the rows themselves.

    Parameters
    ----------
    features : None, FeatureMap or transformer
        A transformer that is not fitted is fitted to X, as a copy.
    X : array of shape (n, d)
        The first rows.
    """
    if features is None:
        return None
    if isinstance(features, FeatureMap):
        if features.n_columns_in != X.shape[1]:
            raise ValueError(
                f"features takes rows of {features.n_columns_in} columns, and X has "
                f"{X.shape[1]}"
            )
        return features
    if not (hasattr(features, "fit") and hasattr(features, "transform")):
        raise TypeError(
            f"features={features!r:.60} must be None, a map of imparo.features such as "
            "NystromMap(kernel, centers), or a transformer such as RandomFeatures"
        )
    try:
        check_is_fitted(features)
        fitted = copy.deepcopy(features)
    except NotFittedError:
        if len(X) == 1 and isinstance(getattr(features, "sigma", None), str):
            raise ValueError(
                f"the width sigma={features.sigma!r} of features cannot be told from one row; "
                "give sigma a number, or more rows in the first call"
            ) from None
        fitted = clone(features).fit(X)
    # The map itself, without the checks of a transformer, which take longer than one row.
    return fitted.map_ if isinstance(fitted, RandomFeatures) else fitted


def checked_weight(sample_weight: Any, n: int, *, fresh: bool) -> Array | None:
    """Return the weights of n rows of a stream, checked; None for ones.

    All of them may be 0, but not of the first rows.
    """
    if sample_weight is None:
        return None
    weight = stream_weight(sample_weight, n)
    if fresh and not weight.any():
        raise ValueError("sample_weight is zero for every row; give some row a weight")
    return weight
