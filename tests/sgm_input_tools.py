"""What the tests of bad and odd input to stochastic gradients share."""

import numpy as np
import pytest

from imparo import SGMClassifier, SGMRegressor

SPACES = {
    "exact": {"features": "exact", "sigma": 1.0},
    "nystrom": {"features": "nystrom", "n_features": 20, "sigma": 1.0},
    "random": {"features": "fourier", "n_features": 20, "sigma": 1.0},
    "linear": {"kernel": "linear"},
}
per_space = pytest.mark.parametrize("space", SPACES)
both_faces = pytest.mark.parametrize("make", [SGMRegressor, SGMClassifier])


def outputs_for(make, y):
    return y if make is SGMRegressor else np.where(y > 0.5, "much", "few")


def gaussian(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / 2)
