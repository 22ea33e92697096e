"""
One pass, thirty step sizes
===========================

Stochastic gradients have no penalty: the size of the step regularizes (:doc:`chapter 6
</guides/sgm>`). Thirty of them go over the rows side by side, in one sweep, and rows that were
held out say which was right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from imparo import SGMClassifier

X, y = make_moons(2000, noise=0.28, random_state=0)
X_test, y_test = make_moons(2000, noise=0.28, random_state=1)

model = SGMClassifier(loss="hinge", sigma=0.4, features="exact", random_state=0).fit(X, y)
print(f"η = {model.step_:.3g}, {1 - model.score(X_test, y_test):.1%} wrong on new rows")

# %%
# Short steps over-smooth, long ones over-fit. The hinge loss tells the steps apart more finely
# than the rate of errors does.

path = model.path_
fig, ax = plt.subplots(figsize=(7, 3.6))
ax.loglog(path.axes["step"], path.losses.ravel(), "o-", ms=4)
ax.axvline(model.step_, color="#5c6577", ls="--", label="chosen")
ax.set(xlabel="step size η", ylabel="hinge loss on rows held out")
ax.legend()

# %%
# The model: a line of decision in one pass.

grid = np.stack(np.meshgrid(np.linspace(-2, 3, 120), np.linspace(-1.5, 2, 90)), axis=-1)
score = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
fig, ax = plt.subplots(figsize=(7, 4))
ax.contourf(
    grid[..., 0], grid[..., 1], score, levels=[-9, -1, 0, 1, 9], cmap="RdBu_r", alpha=0.5
)
ax.scatter(*X[:500].T, c=y[:500], s=8, cmap="RdBu_r", edgecolor="none")
ax.grid(False)
