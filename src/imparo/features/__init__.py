"""Maps from rows to R^p, nested in p: the first t columns are the map of size t.

A new rule for random features is a frozen dataclass with ``check`` and ``draw``, decorated
with :func:`imparo.persistence.persistent`, and a line in ``_NAMES``. Its first features must
not depend on how many are asked for: every path over m rests on that.
"""

from collections.abc import Callable
from typing import Any

from imparo.features.base import FeatureMap, FeatureRule, RandomMap
from imparo.features.fourier import Fourier, FourierMap
from imparo.features.hadamard import hadamard_transform
from imparo.features.leverage import LeverageFeatures, feature_scores
from imparo.features.nystrom import Dropped, NystromMap
from imparo.features.orthogonal import Orthogonal
from imparo.features.quasi import QuasiMonteCarlo
from imparo.features.splines import SplineFeatures, SplineMap
from imparo.features.structured import Fastfood, FastfoodMap, Sorf, SorfMap

__all__ = [
    "Dropped",
    "Fastfood",
    "FastfoodMap",
    "FeatureMap",
    "FeatureRule",
    "Fourier",
    "FourierMap",
    "LeverageFeatures",
    "NystromMap",
    "Orthogonal",
    "QuasiMonteCarlo",
    "RandomMap",
    "Sorf",
    "SorfMap",
    "SplineFeatures",
    "SplineMap",
    "as_feature_rule",
    "feature_scores",
    "hadamard_transform",
]

_NAMES: dict[str, Callable[[], FeatureRule]] = {
    "fastfood": Fastfood,
    "fourier": Fourier,
    "leverage": LeverageFeatures,
    "orthogonal": Orthogonal,
    "qmc": QuasiMonteCarlo,
    "sorf": Sorf,
    "spline": SplineFeatures,
}


#: The names that :func:`as_feature_rule` knows.
FEATURE_NAMES = tuple(sorted(_NAMES))


def as_feature_rule(features: Any) -> FeatureRule:
    """Return a :class:`FeatureRule` from its name or from itself.

    Parameters
    ----------
    features : str or FeatureRule
        ``"fourier"``, ``"orthogonal"``, ``"fastfood"``, ``"sorf"``, ``"qmc"``,
        ``"spline"``, ``"leverage"``, or an object of this module.

    Returns
    -------
    FeatureRule

    Examples
    --------
    >>> from imparo.features import as_feature_rule
    >>> as_feature_rule("qmc")
    QuasiMonteCarlo(form='pair', sequence='sobol')
    """
    if isinstance(features, FeatureRule):
        return features
    if isinstance(features, str):
        if features not in _NAMES:
            raise ValueError(
                f"features={features!r} is not known; give one of {', '.join(sorted(_NAMES))} "
                "or a rule object of imparo.features"
            )
        return _NAMES[features]()
    raise TypeError(
        f"features must be a name or a rule object of imparo.features, not {features!r}"
    )
