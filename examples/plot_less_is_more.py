"""
Less is more
============

How many centers does a kernel model need? Far fewer than rows, and fewer still if they are
chosen well (:doc:`section 4.2 </guides/nystrom>`). The dashed line is the exact model of all
rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from imparo import KernelRegressor, NystromRegressor
from imparo.kernels import Gaussian

# %%
# Most rows lie in one place and a few elsewhere, as is common: rows at random then miss the
# few.

rng = np.random.default_rng(0)
n = 1200
X = np.vstack([rng.normal(0, 0.3, size=(n - 60, 2)), rng.normal(3, 0.6, size=(60, 2))])
truth = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1])
y = truth + 0.1 * rng.normal(size=n)
kernel, penalty = Gaussian(0.7), 1e-5

exact = KernelRegressor(kernel, penalty=penalty).fit(X, y)
best = np.sqrt(np.mean((exact.predict(X) - truth) ** 2))

# %%
# Centers are *prefix-stable*: the first 20 of 200 are those that a model of 20 would have, so
# that ``n_centers`` can be walked through.

sizes = np.array([5, 10, 20, 30, 50, 80, 120, 200])
fig, ax = plt.subplots(figsize=(7, 4))
for rule in ("uniform", "leverage", "pivoted"):
    errors = []
    for m in sizes:
        model = NystromRegressor(
            kernel, n_centers=int(m), penalty=penalty, centers=rule, random_state=0
        ).fit(X, y)
        errors.append(np.sqrt(np.mean((model.predict(X) - truth) ** 2)))
    ax.loglog(sizes, errors, "o-", label=rule)
ax.axhline(best, color="#5c6577", ls="--", label=f"exact, all {n} rows")
ax.set(xlabel="centers m", ylabel="error against the truth", xticks=sizes, xticklabels=sizes)
ax.minorticks_off()
ax.legend()
