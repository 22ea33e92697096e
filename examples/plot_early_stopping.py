"""
Stopping early is a penalty
===========================

Gradient descent that is stopped after t steps regularizes as a penalty of 1/(γt) does
(:doc:`chapter 3 </guides/exact>`, :doc:`section 4.3 </guides/nytro>`).
"""

import matplotlib.pyplot as plt
import numpy as np

from imparo import KernelRegressor
from imparo.kernels import Gaussian
from imparo.theory import expected_risk

rng = np.random.default_rng(0)
n = 120
X = np.sort(rng.uniform(0, 1, size=(n, 1)), axis=0)
truth = np.sin(2 * np.pi * X[:, 0]) + 0.5 * np.sin(6 * np.pi * X[:, 0])
y = truth + 0.5 * rng.normal(size=n)
kernel = Gaussian(0.08)

# %%
# Too few steps, the right number, too many:

fig, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True)
for ax, t in zip(axes, (3, 60, 100_000), strict=True):
    model = KernelRegressor(kernel, filter="landweber", iterations=t).fit(X, y)
    ax.plot(X, y, ".", color="#b8bfcc")
    ax.plot(X, truth, "--", color="#5c6577")
    ax.plot(X, model.predict(X))
    ax.set_title(f"{t:,} steps")

# %%
# The expected risk has a closed form on given rows, here for steps and for the penalty that
# each number of steps stands for. The two curves are never far apart; in the theorem the one
# is at most four times the other.

K = kernel(X)
steps = np.unique(np.geomspace(1, 1e5, 60).astype(int))
by_steps = [expected_risk(K, truth, 0.25, iterations=int(t), step_size=1.0) for t in steps]
by_penalty = [expected_risk(K, truth, 0.25, penalty=1 / t) for t in steps]

fig, ax = plt.subplots(figsize=(7, 3.6))
ax.loglog(steps, by_steps, label="t steps of gradient descent")
ax.loglog(steps, by_penalty, label="a penalty of 1/(γt)")
ax.set(xlabel="t, or 1/(γλ)", ylabel="expected excess risk")
ax.legend()
