"""What the maps of random features have in common: checks, prefixes, and picked features."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from imparo.engine import Array
from imparo.features.base import FeatureRule, RandomMap
from imparo.features.hadamard import working_type

# Streams of random numbers that no other part of a draw shares.
DIRECTIONS, RADII, STRETCHES, PHASES, SIGNS, PERMUTATIONS, PICKS = range(7)


def stream(seed: int, purpose: int, block: int = 0) -> np.random.Generator:
    """Return the generator of one purpose and block, independent of all others.

    Parameters
    ----------
    seed : int
        Not negative.
    purpose : int
        One of the constants of this module.
    block : int

    Returns
    -------
    Generator
    """
    key = (int(purpose), int(block))
    return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=key))


class DrawnMap(RandomMap):
    """Features that were drawn one by one, or in pairs that stay together."""

    @property
    def step(self) -> int:
        """The numbers of features that can be had are multiples of this."""
        return 1

    def first(self, n_columns: int) -> Self:
        """Return the map of the first features, which shares their arrays.

        Parameters
        ----------
        n_columns : int
            A multiple of ``step``, at most m.

        Returns
        -------
        RandomMap
        """
        if not is_whole(n_columns) or not 0 < n_columns <= len(self) or n_columns % self.step:
            raise ValueError(
                f"a map of {len(self)} features has no first {n_columns!r}; give a multiple of "
                f"{self.step} from {self.step} to {len(self)}"
            )
        return self._first(int(n_columns) // self.step)

    @abstractmethod
    def _first(self, size: int) -> Self:
        """Return the map of the first draws."""

    @abstractmethod
    def picked(self, positions: Array, weights: Array) -> "DrawnMap":
        """Return the map of some of the features, each times a weight.

        Parameters
        ----------
        positions : array of int of shape (k,)
            Of draws: of pairs, where features come in pairs. One may come again.
        weights : array of shape (k,)

        Returns
        -------
        DrawnMap
            Of ``k·step`` features.
        """

    def _checked(self, X: Any, start: int, stop: int | None) -> tuple[Any, int, int]:
        """Return rows in the type to work in, and the range of columns."""
        stop = self.n_given if stop is None else stop
        if not 0 <= start <= stop <= self.n_given:
            raise ValueError(
                f"columns {start} to {stop} were asked for and the map has {self.n_given}; "
                "give a range within it"
            )
        if X.ndim != 2 or X.shape[1] != self.n_columns_in:
            raise ValueError(
                f"X has shape {X.shape} and the features were drawn for {self.n_columns_in} "
                f"columns; give rows with {self.n_columns_in} columns"
            )
        return X.astype(working_type(X.dtype), copy=False), start, stop


def is_whole(value: Any) -> bool:
    """Return whether ``value`` is an integer, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_number(rule: FeatureRule, n_features: Any) -> None:
    """Raise unless ``n_features`` is a positive multiple of the step of the rule."""
    if not is_whole(n_features) or n_features < 1:
        raise ValueError(f"n_features={n_features!r} must be a whole number from 1 on")
    if n_features % rule.step:
        raise ValueError(
            f"n_features={n_features} must be a multiple of {rule.step}, as the features of "
            f"{rule!r} come in pairs; give {n_features + 1}, or form='cosine'"
        )
