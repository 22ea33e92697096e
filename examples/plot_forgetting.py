"""
A world that changes
====================

Recursive least squares with a forgetting factor follows a function that changes at half time
(:doc:`chapter 7 </guides/lifelong>`). Errors are those made *before* each sample is learned.
"""

import matplotlib.pyplot as plt
import numpy as np

from imparo import RandomFeatures, RecursiveRegressor

rng = np.random.default_rng(0)
n = 2000
X = rng.uniform(-1, 1, size=(n, 1))
before, after = np.sin(4 * X[:, 0]), np.cos(5 * X[:, 0])
y = np.where(np.arange(n) < n // 2, before, after) + 0.1 * rng.normal(size=n)

# %%
# 80 random features make the learner nonlinear; its memory stays the same for ever.

features = RandomFeatures(sigma=0.5, n_features=80, random_state=0).fit(X[:1])
learners = {
    "remembers all": RecursiveRegressor(features, penalty=1e-2),
    "forgets, γ = 0.99": RecursiveRegressor(features, penalty=1e-2, forgetting=0.99),
    "forgets on drift": RecursiveRegressor(features, penalty=1e-2, drift="forget"),
}
fig, ax = plt.subplots(figsize=(8, 3.8))
for name, model in learners.items():
    errors = np.empty(n)
    for i in range(n):
        errors[i] = abs(model.predict_one(X[i]) - y[i]) if i else abs(y[i])
        model.learn_one(X[i], y[i])
    window = np.convolve(errors, np.ones(60) / 60, mode="valid")
    ax.semilogy(np.arange(59, n), window, label=name)
ax.axvline(n // 2, color="#5c6577", ls="--")
ax.set(xlabel="samples", ylabel="absolute error, mean of 60")
ax.legend()

# %%
# The last one watched its own errors and noted the change:

print(*learners["forgets on drift"].drifts_, sep="\n")
