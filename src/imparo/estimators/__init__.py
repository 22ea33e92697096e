"""The scikit-learn face of the library: thin classes over the street below."""

from imparo.estimators.auto import AutoClassifier, AutoRegressor
from imparo.estimators.exact import KernelClassifier, KernelRegressor
from imparo.estimators.nystrom import NystromClassifier, NystromRegressor
from imparo.estimators.nytro import NytroClassifier, NytroRegressor
from imparo.estimators.random_features import RandomFeatureClassifier, RandomFeatureRegressor
from imparo.estimators.sgm import SGMClassifier, SGMRegressor
from imparo.estimators.transformers import RandomFeatures

__all__ = [
    "AutoClassifier",
    "AutoRegressor",
    "KernelClassifier",
    "KernelRegressor",
    "NystromClassifier",
    "NystromRegressor",
    "NytroClassifier",
    "NytroRegressor",
    "RandomFeatureClassifier",
    "RandomFeatureRegressor",
    "RandomFeatures",
    "SGMClassifier",
    "SGMRegressor",
]
