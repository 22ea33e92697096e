"""Normalisation of a stream's columns by what was seen so far."""

from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.persistence import persistent

# Motion that is so many times larger than the one that a scale was set by needs a new one.
_JUMP = 10.0
# How many times the median distance from the median a spike is away, and how many there may be.
_SPIKE, _SPIKES = 30.0, 0.02


@persistent
class RunningScale:
    """Shift and scale of columns, set by rows of the past only.

    They are set when 1, 2, 4, 8, … rows have been seen, up to ``settled``, by all of these;
    from then on they stay, so that features mean the same for ever. Only where the last
    ``settled`` rows have a spread beyond ten times the scale, as when a robot starts
    to move that had been idle, the columns concerned are set anew by those rows, and once more
    after as many again, when no idle ones are left among them. Single rows far from all others,
    up to 2 %, do not count: sensors have spikes.

    Parameters
    ----------
    n_columns : int
    settled : int
        A power of two.

    Attributes
    ----------
    mean, scale : array of shape (d,)
        In use; a column that was constant has the scale 1.
    n_seen : int
        Rows so far.
    """

    def __init__(self, n_columns: int, settled: int) -> None:
        self.settled = settled
        self.n_seen = 0
        self.mean, self.scale = np.zeros(n_columns), np.ones(n_columns)
        self._again = np.zeros(n_columns, bool)  # columns to be set once more

    @property
    def until_next(self) -> int:
        """Rows until a moment at which the scale may change, at least 1."""
        if self.n_seen >= self.settled:
            return self.settled - self.n_seen % self.settled
        following = 1
        while following <= self.n_seen:
            following *= 2
        return following - self.n_seen

    def advance(self, count: int, recent: Array) -> bool:
        """Count rows as seen; return whether the scale has changed.

        Parameters
        ----------
        count : int
            Up to :attr:`until_next`.
        recent : array of shape (k, d)
            The last rows, these included: all of them or ``settled``, where fewer.
        """
        due = count == self.until_next
        self.n_seen += count
        if not due:
            return False
        mean, scale = _moments(recent)
        if self.n_seen <= self.settled:
            self.mean, self.scale = mean, scale
            return True
        # Not where the mean has moved: features of far places are as good as of near ones.
        jumped = scale > _JUMP * self.scale
        # A constant column has the scale 1 for want of a better one.
        moving = recent.std(axis=0) > 0
        jumped &= moving
        # Where motion has ended again, its scale is the best there is.
        changed = jumped | (self._again & moving & (_JUMP * scale > self.scale))
        self._again = jumped & ~self._again
        self.mean = np.where(changed, mean, self.mean)
        self.scale = np.where(changed, scale, self.scale)
        return bool(changed.any())

    def apply(self, rows: Array) -> Array:
        """Return (x − mean)/scale."""
        normalised: Any = (rows - self.mean) / self.scale
        return normalised


def _moments(rows: Array) -> tuple[Array, Array]:
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    middle = np.median(rows, axis=0)
    away = np.abs(rows - middle)
    spikes = away > _SPIKE * np.median(away, axis=0)
    few = (spikes.mean(axis=0) <= _SPIKES) & spikes.any(axis=0)
    for j in np.flatnonzero(few):
        kept = rows[~spikes[:, j], j]
        mean[j], scale[j] = kept.mean(), kept.std()
    # Rounding gives constant columns a spread, too.
    constant = scale <= 1e-12 * np.abs(mean)
    return mean, np.where(constant, 1.0, scale)
