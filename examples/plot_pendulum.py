"""
Physics first, kernels for the rest
===================================

A pendulum with a cable that its model does not know, learned sample by sample: by physics (P),
by kernels (NP) and by both (SP), as in :doc:`chapter 8 </guides/dynamics>`. Real robots need a
description of their bodies (``imparo[robot]``); a pendulum can be written down.
"""

import matplotlib.pyplot as plt
import numpy as np

from imparo import RandomFeatures, RecursiveRegressor

# %%
# The torque that goes with a motion: rigid body, friction, and a cable that pulls back. For 12
# seconds it swings low, then it is driven to where it has never been.

rng = np.random.default_rng(0)
t = np.arange(0, 24, 0.02)
size = np.where(t < 12, 0.6, 1.5)
q = size * (np.sin(2 * t) + 0.3 * np.sin(3.3 * t))
dq = size * (2 * np.cos(2 * t) + 0.99 * np.cos(3.3 * t))
ddq = -size * (4 * np.sin(2 * t) + 3.267 * np.sin(3.3 * t))
torque = 0.09 * ddq + 9.81 * 0.45 * np.sin(q) + 0.05 * dq + 0.5 * np.tanh(3 * (q - 0.4))
torque += 0.02 * rng.normal(size=len(t))

# %%
# Physics is linear in inertia, moment and friction. Kernels learn the torque *and* the columns
# of physics as their outputs, so that what physics leaves, with the parameters of now, is at
# hand at any time.

Phi = np.column_stack([ddq, 9.81 * np.sin(q), dq])
state = np.column_stack([q, dq / 2, ddq / 4])
features = RandomFeatures(sigma=0.7, n_features=150, random_state=0).fit(state[:1])
physics = RecursiveRegressor(penalty=1e-3, intercept=False)
kernels = RecursiveRegressor(features, penalty=0.1, intercept=False)

errors = np.zeros((len(t), 3))
for i in range(len(t)):
    if i:
        p, (np_torque, *columns) = physics.predict_one(Phi[i]), kernels.predict_one(state[i])
        rest = np_torque - columns @ physics.coef_
        errors[i] = torque[i] - np.array([p, np_torque, p + rest])
    physics.learn_one(Phi[i], torque[i])
    kernels.learn_one(state[i], np.append(torque[i], Phi[i]))

# %%
# Every error is one made before learning. Where the motion is new, kernels alone know nothing;
# with physics they start from a good guess.

fig, ax = plt.subplots(figsize=(8, 3.8))
for name, e in zip(("P", "NP", "SP"), errors.T, strict=True):
    window = np.sqrt(np.convolve(np.square(e), np.ones(60) / 60, mode="valid"))
    ax.semilogy(t[59:], window, label=name)
ax.axvline(12, color="#5c6577", ls="--")
ax.axhline(0.02, color="#5c6577", ls=":", label="noise")
ax.set(xlabel="seconds", ylabel="error of 60 samples (Nm)")
ax.legend(ncols=4)

print("identified J, ml, b:", physics.coef_.round(3))
