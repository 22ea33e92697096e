"""
Random features or centers
==========================

Random features are drawn before the first row is seen; centers are rows. For the same number,
centers are usually more accurate: they know where the data are (:doc:`chapter 5
</guides/random-features>`).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from imparo import NystromRegressor, RandomFeatureRegressor, RandomFeatures
from imparo.data import load_concrete
from imparo.kernels import Gaussian

concrete = load_concrete()
X, X_test, y, y_test = train_test_split(concrete.X, concrete.y, random_state=0)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

# %%
# Each is refitted for a growing m, with the penalty selected by five folds.

sizes = [16, 32, 64, 128, 256, 512]
common = {"sigma": 3.0, "validation": 5, "intercept": True, "random_state": 0}
candidates = {
    "centers": lambda m: NystromRegressor(n_centers=m, **common),
    "Fourier features": lambda m: RandomFeatureRegressor(n_features=m, **common),
    "orthogonal features": lambda m: RandomFeatureRegressor(
        n_features=m, features="orthogonal", **common
    ),
}
fig, ax = plt.subplots(figsize=(7, 3.8))
for name, make in candidates.items():
    errors = []
    for m in sizes:
        predicted = make(m).fit(X, y).predict(X_test)
        errors.append(np.sqrt(np.mean((predicted - y_test) ** 2)))
    ax.semilogx(sizes, errors, "o-", label=name)
ax.set(
    xlabel="centers or features m", ylabel="test error (MPa)", xticks=sizes, xticklabels=sizes
)
ax.minorticks_off()
ax.legend()

# %%
# What the features themselves err by, as approximations of the kernel, falls as 1/√m.

kernel = Gaussian(3.0)
fig, ax = plt.subplots(figsize=(7, 3.8))
K = kernel(X_test)
for rule, label in (("fourier", "Fourier"), ("orthogonal", "orthogonal")):
    gaps = []
    for m in sizes:
        Z = RandomFeatures(kernel, n_features=m, features=rule, random_state=0).fit(X)
        Z = Z.transform(X_test)
        gaps.append(np.sqrt(np.mean((Z @ Z.T - K) ** 2)))
    ax.loglog(sizes, gaps, "o-", label=label)
ax.loglog(sizes, 0.7 / np.sqrt(sizes), "--", color="#5c6577", label="1/√m")
ax.set(xlabel="features m", ylabel="error of the kernel", xticks=sizes, xticklabels=sizes)
ax.minorticks_off()
ax.legend()
