"""Left derivatives of a loss in other units, and loops compiled for those of this library."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.losses import (
    Absolute,
    EpsilonInsensitive,
    Exponential,
    Hinge,
    Logistic,
    Loss,
    Square,
)

_NUMBERS: dict[type[Loss], int] = {
    Square: 0,
    Absolute: 1,
    EpsilonInsensitive: 2,
    Hinge: 3,
    Exponential: 4,
    Logistic: 5,
}

#: Takes the steps of a few rows: see :meth:`Slope.loop`.
Loop = Callable[[Array, Array, Array, Array], Array]


@dataclass(frozen=True)
class Slope:
    """ℓ'₋(uy, ua)/u: what a step goes along where outputs are divided by u.

    Parameters
    ----------
    loss : Loss
    unit : float

    Examples
    --------
    >>> from imparo.losses import Absolute
    >>> from imparo.sgm import Slope
    >>> import numpy as np
    >>> Slope(Absolute(), 2.0)(np.array([1.0]), np.array([3.0]))
    array([0.5])
    """

    loss: Loss
    unit: float = 1.0

    def __call__(self, Y: Array, F: Array) -> Array:
        """Return the slopes, entry by entry."""
        if self.unit == 1:
            return self.loss._derivative(Y, F)
        unit = F.dtype.type(self.unit)
        return self.loss._derivative(unit * Y, unit * F) / unit

    def loop(self) -> Loop | None:
        """Return a compiled loop over rows; None without numba or for losses of others.

        It takes F, L, step and Y as :mod:`imparo.sgm.recursion` has them, leaves in F what
        each row was predicted, and returns C.
        """
        number, run = _NUMBERS.get(type(self.loss)), compiled()
        if run is None or number is None:
            return None
        epsilon, unit = float(getattr(self.loss, "epsilon", 0.0)), float(self.unit)

        def loop(F: Array, L: Array, step: Array, Y: Array) -> Array:
            # Every other order of L in memory would be compiled anew.
            return run(F, np.ascontiguousarray(L), step, Y, number, epsilon, unit)

        return loop


@cache
def compiled() -> Callable[..., Any] | None:
    """Return the loop, compiled at its first call; None without numba."""
    try:
        import numba
    except ImportError:
        return None

    @numba.njit(cache=True)
    def slope(y: float, a: float, number: int, epsilon: float) -> float:
        if number == 0:
            return 2 * (a - y)
        if number == 1:
            return 1.0 if a > y else -1.0
        if number == 2:
            return 1.0 if a - y > epsilon else (-1.0 if a - y <= -epsilon else 0.0)
        margin = y * a
        if number == 3:
            return -y if margin < 1 or (margin == 1 and y > 0) else 0.0
        if number == 4:
            return -y * math.exp(-margin)
        if margin > 0:
            small = math.exp(-margin)
            return -y * small / (1 + small)
        return -y / (1 + math.exp(margin))

    @numba.njit(cache=True)
    def run(
        F: Array, L: Array, step: Array, Y: Array, number: int, epsilon: float, unit: float
    ) -> Array:
        C = F * 0
        for i in range(F.shape[0]):
            for k in range(i):
                if L[i, k] != 0:
                    for c in range(F.shape[1]):
                        F[i, c] += L[i, k] * C[k, c]
            for c in range(F.shape[1]):
                s = slope(unit * Y[i, c], unit * F[i, c], number, epsilon)
                C[i, c] = -step[i, c] * s / unit
        return C

    return run
