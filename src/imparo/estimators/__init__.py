"""The scikit-learn face of the library: thin classes over the street below."""

from imparo.estimators.auto import AutoClassifier, AutoRegressor
from imparo.estimators.exact import KernelClassifier, KernelRegressor
from imparo.estimators.nystrom import NystromClassifier, NystromRegressor
from imparo.estimators.nytro import NytroClassifier, NytroRegressor

__all__ = [
    "AutoClassifier",
    "AutoRegressor",
    "KernelClassifier",
    "KernelRegressor",
    "NystromClassifier",
    "NystromRegressor",
    "NytroClassifier",
    "NytroRegressor",
]
