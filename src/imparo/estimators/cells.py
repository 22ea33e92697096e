"""Cells: rows that every split treats alike, so that statistics of each are taken once.

A hold-out has two cells, V folds have V. Whatever the splits, the statistics of their
training and held-out rows are sums of those of cells, and one pass over the rows serves
all of them and the final fit.
"""

from dataclasses import dataclass

import numpy as np

from imparo.engine import Array
from imparo.estimators.splits import Splits
from imparo.persistence import persistent
from imparo.statistics import Statistics

_FITTED, _HELD = 1, 2
# Powers of 3 up to this one fit into 64 bits.
_MOST_DIGITS = 39


@persistent
@dataclass(frozen=True)
class Cells:
    """Which cell every row is in, and what every split does with each cell.

    Attributes
    ----------
    of_row : array of shape (n,)
        Number of the cell; −1 for rows of weight 0.
    fitted, held : boolean arrays of shape (V, C)
        Whether split v fits, or holds out, cell c.
    """

    of_row: Array
    fitted: Array
    held: Array

    @classmethod
    def of(cls, splits: Splits, kept: Array, n: int) -> "Cells":
        """Return the cells of ``splits``, which are positions in ``kept`` of n rows.

        Parameters
        ----------
        splits : list of (fitted, held) arrays
            None at all give a single cell.
        kept : array of shape (n_kept,)
        n : int

        Returns
        -------
        Cells
        """
        uses = np.zeros((len(splits), len(kept)), np.int8)
        for use, (fitted, held) in zip(uses, splits, strict=True):
            use[fitted], use[held] = _FITTED, _HELD
            if np.count_nonzero(use) < len(fitted) + len(held):
                raise ValueError(
                    "validation names a row more than once in a split; give every row once, "
                    "and copies as sample weights"
                )
        if len(splits) <= _MOST_DIGITS:
            codes = np.zeros(len(kept), np.int64)
            for use in uses:
                codes = 3 * codes + use
            _, first, cell = np.unique(codes, return_index=True, return_inverse=True)
        else:
            _, first, cell = np.unique(uses, axis=1, return_index=True, return_inverse=True)
        of_row = np.full(n, -1, np.int16 if len(first) < 2**15 else np.int64)
        of_row[kept] = cell.reshape(-1)
        patterns = uses[:, first]
        return cls(of_row, patterns == _FITTED, patterns == _HELD)

    def __len__(self) -> int:
        """Return the number of cells."""
        return self.fitted.shape[1]

    def may_be_centers(self) -> Array:
        """Return which rows centers may be taken from: not those that all splits hold out.

        With one split its held-out rows stay unseen; with folds every row is fitted by
        some, and centers, which carry no outputs, are common to all.
        """
        unseen = np.asarray(self.held.any(axis=0) & ~self.fitted.any(axis=0))
        return (self.of_row >= 0) & ~unseen[self.of_row]

    def parts(self, statistics: list[Statistics], split: int) -> tuple[Statistics, Statistics]:
        """Return the statistics of the fitted and the held-out rows of a split.

        Where most cells are fitted, as with folds, the others are subtracted from the
        total.
        """
        fitted, held = self.fitted[split], self.held[split]
        if np.count_nonzero(fitted) <= len(self) / 2 or fitted.all():
            return sum_of(statistics, fitted), sum_of(statistics, held)
        return self.total(statistics) - sum_of(statistics, ~fitted), sum_of(statistics, held)

    def total(self, statistics: list[Statistics]) -> Statistics:
        """Return the statistics of all rows."""
        return sum_of(statistics, np.ones(len(self), bool))


def sum_of(statistics: list[Statistics], chosen: Array) -> Statistics:
    """Return the sum of the statistics of the chosen cells."""
    first, *others = (s for s, take in zip(statistics, chosen, strict=True) if take)
    if not others:
        return first
    total = first + others[0]
    for other in others[1:]:
        total.merge(other)
    return total
