"""
Your own kernel
===============

Any positive-definite function of two blocks of rows is a kernel, and sums and products of
kernels are, too. Here a seasonal series is written as trend + season, and continued.
"""

import matplotlib.pyplot as plt
import numpy as np

from imparo import KernelRegressor
from imparo.kernels import CallableKernel, Gaussian, Linear

rng = np.random.default_rng(0)
t = np.arange(0, 10, 1 / 24)[:, None]
level = 0.6 * t[:, 0] + 1.5 * np.sin(2 * np.pi * t[:, 0]) + 0.6 * np.cos(4 * np.pi * t[:, 0])
y = level + 0.3 * rng.normal(size=len(t))
past = t[:, 0] < 7


# %%
# A function that takes two blocks of rows and gives the matrix between them:


def yearly(A, B):
    """A function that repeats every year: exp(−2 sin²(π(a − b))/0.5²)."""
    return np.exp(-2 * np.sin(np.pi * (A - B.T)) ** 2 / 0.5**2)


season = CallableKernel(yearly)
kernels = {
    "Gaussian": Gaussian(0.3),
    "Linear + season": Linear() + season,
}
fig, ax = plt.subplots(figsize=(8, 3.8))
ax.plot(t, y, ".", ms=3, color="#b8bfcc")
for name, kernel in kernels.items():
    model = KernelRegressor(kernel, intercept=True).fit(t[past], y[past])
    error = np.sqrt(np.mean((model.predict(t[~past]) - level[~past]) ** 2))
    ax.plot(t, model.predict(t), label=f"{name}: {error:.2f} beyond the dashed line")
ax.axvline(7, color="#5c6577", ls="--")
ax.set(xlabel="years", ylabel="y")
ax.legend()

# %%
# The penalty was selected by leave-one-out, as for every kernel: ``path_`` has all of it.

print(model.path_)
