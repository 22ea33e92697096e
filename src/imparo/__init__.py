"""imparo: kernel machines that fit your budget and then keep learning.

*Ancora imparo*, "I am still learning". The way a row of data takes through the
library, and where things live, is told in ``docs/architecture.md``.
"""

from imparo.dynamics import (
    NonparametricDynamics,
    ParametricDynamics,
    SemiparametricDynamics,
)
from imparo.estimators import (
    AutoClassifier,
    AutoRegressor,
    KernelClassifier,
    KernelRegressor,
    NystromClassifier,
    NystromRegressor,
    NytroClassifier,
    NytroRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
    RandomFeatures,
    SGMClassifier,
    SGMRegressor,
)
from imparo.lifelong import IncrementalClassifier, RecursiveRegressor
from imparo.paths import Path
from imparo.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "AutoClassifier",
    "AutoRegressor",
    "IncrementalClassifier",
    "KernelClassifier",
    "KernelRegressor",
    "NonparametricDynamics",
    "NystromClassifier",
    "NystromRegressor",
    "NytroClassifier",
    "NytroRegressor",
    "ParametricDynamics",
    "Path",
    "RandomFeatureClassifier",
    "RandomFeatureRegressor",
    "RandomFeatures",
    "RecursiveRegressor",
    "SGMClassifier",
    "SGMRegressor",
    "SemiparametricDynamics",
    "__version__",
    "load",
    "save",
]
