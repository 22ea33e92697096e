"""
Where your data stand
=====================

The theory of :doc:`section 4.3 </guides/theory>` divides the plane of signal-to-noise ratio
and dimension among four methods. Both numbers can be estimated from a sample.
"""

import numpy as np

from imparo.kernels import Gaussian
from imparo.theory import KernelSpectrum, fastest, plot_regimes, signal_of

# %%
# Two problems on the same rows: a smooth function with little noise, and a rough one with
# much.

rng = np.random.default_rng(0)
n = 50_000
X = rng.uniform(-2, 2, size=(n, 2))
outputs = {
    "smooth": np.sin(X[:, 0]) + 0.05 * rng.normal(size=n),
    "noisy": np.sin(3 * X[:, 0]) * X[:, 1] + 5.0 * rng.normal(size=n),
}

# %%
# The penalty that the data call for tells how many steps 1/λ gradient descent would take; the
# largest leverage score at that penalty tells how many centers.

spectrum = KernelSpectrum(X, Gaussian(1.5), exact_rows=600)  # a sample of 600 rows
for name, y in outputs.items():
    penalty = float(signal_of(spectrum, y).penalty)
    dimensions = spectrum.dimensions(penalty)
    method = fastest(1 / penalty, float(dimensions.maximal), n)
    print(
        f"{name}: λ = {penalty:.1e}, d_eff = {float(dimensions.effective):.0f}, "
        f"d̃ = {float(dimensions.maximal):.0f}, fastest at this accuracy: {method}"
    )

# %%
# The plane, with the noisy problem on it. ``imparo advise DATA`` does all of this for a file,
# and adds seconds and bytes.

axes = plot_regimes(n, here=(1 / penalty, float(dimensions.maximal), "the noisy problem"))
