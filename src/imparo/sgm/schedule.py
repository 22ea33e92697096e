"""Step sizes η_t = ηt^{−θ} of several candidates."""

from dataclasses import dataclass

import numpy as np

from imparo.engine import Array
from imparo.persistence import persistent


@persistent
@dataclass(frozen=True, eq=False)
class Schedule:
    """Step sizes η_t = ηt^{−θ}, one pair (η, θ) for each candidate.

    Parameters
    ----------
    eta : array of shape (C,)
        Positive.
    theta : array of shape (C,)
        Not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.sgm import Schedule
    >>> Schedule(np.array([1.0, 2.0]), np.array([0.0, 0.5])).sizes(1, 4)
    array([[1.        , 2.        ],
           [1.        , 1.41421356],
           [1.        , 1.15470054],
           [1.        , 1.        ]])
    """

    eta: Array
    theta: Array

    def __len__(self) -> int:
        """Return the number C of candidates."""
        return len(self.eta)

    def sizes(self, first: int, count: int) -> Array:
        """Return η_t for steps ``first``, …, ``first + count − 1``.

        Parameters
        ----------
        first : int
            From 1 on.
        count : int

        Returns
        -------
        array of shape (count, C)
        """
        times = np.arange(first, first + count, dtype=np.float64)[:, None]
        return self.eta * times**-self.theta

    def take(self, candidates: Array) -> "Schedule":
        """Return the schedule of some candidates, by position or mask."""
        return Schedule(self.eta[candidates], self.theta[candidates])
