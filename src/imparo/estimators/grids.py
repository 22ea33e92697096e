"""From the parameters of an estimator to grids of values, checked."""

from typing import Any

import numpy as np

from imparo.engine import Array, resolution
from imparo.filters import Filter
from imparo.filters.base import check_steps

# The automatic penalties: so many, from the mean of K(x, x) down by so much, or to
# where the ridge drowns in rounding errors.
_PENALTIES = 100
_SMALLEST = 1e-12
# The most iterations that "auto" tries, and how many numbers up to there. The ν-method and
# conjugate gradients need about the root of what Landweber needs.
_MOST_STEPS = {"Landweber": 100_000, "NuMethod": 1000, "ConjugateGradient": 100}
_NUMBERS_OF_STEPS = 100
# The most centers that "auto" takes, where the pass over 10⁵ rows takes seconds, and about
# the fewest that it tries.
_MOST_CENTERS, _FEWEST_CENTERS = 2000, 10
_MOST_FEATURES = 2048


def check_levels(filter: Filter, name: Any, levels: dict[str, Any]) -> None:
    """Raise if a level is given that the filter does not have.

    Parameters
    ----------
    filter : Filter
    name : object
        The filter as the user wrote it.
    levels : dict
        The parameters "penalty", "components" and "iterations".
    """
    for parameter, value in levels.items():
        unset = isinstance(value, str) and value == "auto"
        if parameter != filter.parameter and not unset:
            raise ValueError(
                f"{parameter}={value!r} has no effect with filter={name!r}, which goes by "
                f"{filter.parameter}; leave it out"
            )


def penalties(penalty: Any, diagonal: Array, count: int = _PENALTIES) -> Array:
    """Return the grid of λ that ``penalty`` stands for.

    Parameters
    ----------
    penalty : float, array-like or "auto"
        "auto" is ``count`` values from the mean of K(x, x) down by 12 decades, fewer where
        rounding errors would drown them (5 in float32).
    diagonal : array of shape (n,)
        K(x_i, x_i).
    count : int

    Returns
    -------
    array of shape (L,)
        From the largest to the smallest: complexity grows along every grid.
    """
    if isinstance(penalty, str):
        if penalty != "auto":
            raise ValueError(
                f"penalty={penalty!r} is not known; give a number, a grid or 'auto' (or "
                "'n_centers' with centers, 'n_features' with random features)"
            )
        top = float(np.mean(diagonal, dtype=np.float64))
        top = top if top > 0 else 1.0
        lowest = max(_SMALLEST, resolution(diagonal.dtype))
        return top * np.geomspace(1, lowest, count)
    grid = numbers("penalty", penalty, "numbers from 0 on", lambda grid: grid >= 0)
    return np.unique(grid)[::-1]


def components(value: Any, n: int) -> Array:
    """Return the grid of numbers of components: at most 100 of 1..n for "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(
                f"components={value!r} is not known; give a number, a grid or 'auto'"
            )
        return np.unique(np.geomspace(1, max(n, 1), 100).astype(int))
    grid = numbers(
        "components",
        value,
        "whole numbers from 1 on",
        lambda g: (g >= 1) & (g == np.floor(g)),
    )
    return np.unique(grid.astype(int))


def sizes(value: Any, n: int, most: int, name: str = "n_centers") -> Array:
    """Return the grid of numbers of centers or features.

    Parameters
    ----------
    value : int, array-like or "auto"
        "auto" is a number that √n log n suggests, at most 2000, and all of its halves down
        to 10 or so: errors change with the logarithm of m.
    n : int
        Number of rows.
    most : int
        The largest number that there can be; larger ones are cut to it.
    name : str
        That of the parameter.

    Returns
    -------
    array of shape (S,)
        Increasing.
    """
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"{name}={value!r} is not known; give a number, a grid or 'auto'")
        return halves(min(most, _MOST_CENTERS, int(np.ceil(np.sqrt(n) * np.log(max(n, 2))))))
    grid = numbers(
        name, value, "whole numbers from 1 on", lambda g: (g >= 1) & (g == np.floor(g))
    )
    return np.unique(np.minimum(grid, most).astype(int))


def halves(top: int) -> Array:
    """Return ``top`` and its halves down to 10 or so, increasing."""
    halvings = max(0, int(np.log2(max(top, 1) / _FEWEST_CENTERS)))
    return np.unique(np.ceil(top / 2.0 ** np.arange(halvings + 1)).astype(int))


def feature_counts(value: Any, n: int, most: int, step: int) -> Array:
    """Return the grid of numbers of random features.

    Parameters
    ----------
    value : int, array-like, "sqrt" or "auto"
        "sqrt" is √n; "auto" goes up to √n log n, at most 2048, by exact doublings, for which
        penalties that double are shared between sizes.
    n : int
        Number of rows.
    most : int
        The largest number that there can be.
    step : int
        Numbers must be multiples of this.

    Returns
    -------
    array of shape (S,)
        Increasing.
    """
    root = float(np.sqrt(n))
    if isinstance(value, str) and value == "sqrt":
        return np.array([min(step * int(np.ceil(root / step)), most // step * step)])
    if isinstance(value, str) and value == "auto":
        top = min(most, _MOST_FEATURES, root * np.log(max(n, 2)))
        doublings = max(0, int(np.log2(max(top, 1) / _FEWEST_CENTERS)))
        smallest = step * max(1, int(top / 2**doublings / step))
        return smallest * 2 ** np.arange(doublings + 1)
    if isinstance(value, str):
        raise ValueError(
            f"n_features={value!r} is not known; give a number, a grid, 'sqrt' or 'auto'"
        )
    grid = sizes(value, n, most, "n_features")
    if (grid % step).any():
        raise ValueError(
            f"n_features={value!r} must hold multiples of {step}: features come as pairs of "
            "cosine and sine; give even numbers, or a rule such as Fourier(form='cosine')"
        )
    return grid


def iterations(value: Any, filter: Filter) -> Array:
    """Return the grid of numbers of steps: at most 100, ever further apart, for "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(
                f"iterations={value!r} is not known; give a number, a grid or 'auto'"
            )
        most = _MOST_STEPS.get(type(filter).__name__, 1000)
        return np.unique(np.geomspace(1, most, _NUMBERS_OF_STEPS).round().astype(int))
    given = numbers("iterations", value, "whole numbers from 1 on", lambda grid: grid >= 1)
    return np.unique(check_steps(given))


def numbers(name: str, value: Any, expected: str, holds: Any) -> Array:
    """Return the grid that a parameter gives, or raise where an entry is not as expected."""
    try:
        grid = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        grid = np.empty(0)
    if isinstance(value, bool) or grid.ndim != 1 or not grid.size or value is None:
        raise ValueError(f"{name}={value!r} is not a number or a grid of numbers")
    if not (np.isfinite(grid) & holds(grid)).all():
        raise ValueError(f"{name}={value!r} must hold {expected}")
    return grid
