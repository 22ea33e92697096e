"""The scikit-learn face of the library: thin classes over the street below."""

from imparo.estimators.exact import KernelClassifier, KernelRegressor

__all__ = ["KernelClassifier", "KernelRegressor"]
