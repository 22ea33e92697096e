"""The stochastic gradient method, many step sizes side by side (thesis, chapter 6).

w_{t+1} = w_t − η_t ℓ'₋(y_j, ⟨w_t, Φ(x_j)⟩) Φ(x_j). A :class:`Sweep` takes these steps for
every candidate step size at once, in blocks of rows (:mod:`~imparo.sgm.recursion`), with w in
a space of features or of kernel expansions (:mod:`~imparo.sgm.spaces`).
"""

from imparo.sgm.recursion import take_steps
from imparo.sgm.schedule import Schedule
from imparo.sgm.slopes import Slope
from imparo.sgm.spaces import FeatureSpace, GrowingExpansion, Space, StoredExpansion
from imparo.sgm.state import State
from imparo.sgm.sweep import Sweep

__all__ = [
    "FeatureSpace",
    "GrowingExpansion",
    "Schedule",
    "Slope",
    "Space",
    "State",
    "StoredExpansion",
    "Sweep",
    "take_steps",
]
