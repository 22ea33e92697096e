"""What others do for the same problem, in few lines."""

from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline

from imparo import KernelRegressor


def nystroem_ridge(sigma: float, penalty: float, m: int, n: int) -> Pipeline:
    """Return scikit-learn's Nyström map and ridge regression for one (λ, m)."""
    return make_pipeline(
        Nystroem(gamma=1 / (2 * sigma**2), n_components=m, random_state=0),
        Ridge(alpha=penalty * n, fit_intercept=False),
    )


class DivideAndConquer:
    """Exact KRLS on disjoint parts of the rows, predictions averaged (thesis, section 4.2)."""

    def __init__(self, sigma: float, penalty: float, part: int) -> None:
        self.sigma, self.penalty, self.part = sigma, penalty, part

    def fit(self, X: np.ndarray, y: np.ndarray) -> "DivideAndConquer":
        """Fit one model to each part."""
        order = np.random.default_rng(0).permutation(len(y))
        self.models = [
            KernelRegressor(sigma=self.sigma, penalty=self.penalty).fit(X[rows], y[rows])
            for rows in np.array_split(order, max(1, len(y) // self.part))
        ]
        return self

    def predict(self, X: np.ndarray) -> Any:
        """Return the mean of their predictions."""
        return np.mean([model.predict(X) for model in self.models], axis=0)
