"""Maps from rows to R^p, nested in p: the first t columns are the map of size t."""

from imparo.features.base import FeatureMap, FeatureRule, RandomMap
from imparo.features.nystrom import Dropped, NystromMap

__all__ = ["Dropped", "FeatureMap", "FeatureRule", "NystromMap", "RandomMap"]
