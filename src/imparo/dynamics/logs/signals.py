"""Signals filtered and brought to other stamps, from the past alone, with their delays."""

import math
from typing import Any

import numpy as np

from imparo.dynamics.logs.checks import check_stamps, check_values
from imparo.engine import Array


def low_pass(t: Any, x: Any, cutoff: float) -> Array:
    """Filter of first order, as robots apply it to their velocities; causal.

    With the steps hₖ = tₖ − tₖ₋₁ and y₀ = x₀::

        yₖ = yₖ₋₁ + (1 − exp(−2π f hₖ)) (xₖ − yₖ₋₁)

    Slow motions come out late by h / (exp(2π f h) − 1) seconds, see
    :func:`low_pass_delay`: nearly 1 / (2π f) − h / 2. Cost: O(n), about 2 µs a sample.

    Parameters
    ----------
    t : array of shape (n,)
        Stamps in seconds, increasing.
    x : array of shape (n,) or (n, J)
    cutoff : float
        Frequency f in Hz at which half of the power passes.

    Examples
    --------
    >>> from imparo.dynamics.logs.signals import low_pass
    >>> print(low_pass([0.0, 0.1, 0.2], [0.0, 1.0, 1.0], cutoff=2.0).round(3))
    [0.    0.715 0.919]
    """
    if not cutoff > 0:
        raise ValueError(f"cutoff is {cutoff}; give a frequency in Hz above 0")
    t = check_stamps(t)
    values = check_values(x, t, "x")
    out = values.copy()
    # [()] makes scalars of one column's values, which are faster than arrays of no axes.
    state = out[0][()]
    for k, share in enumerate(-np.expm1(-2 * np.pi * cutoff * np.diff(t)), start=1):
        state = state + share * (values[k] - state)
        out[k] = state
    return out


def low_pass_delay(cutoff: float, step: float) -> float:
    """Delay in seconds of :func:`low_pass` for slow motions: h / (exp(2π f h) − 1).

    Parameters
    ----------
    cutoff : float
        Frequency f in Hz.
    step : float
        Seconds h from sample to sample.

    Examples
    --------
    >>> from imparo.dynamics.logs.signals import low_pass_delay
    >>> round(low_pass_delay(cutoff=2.0, step=0.01), 4)
    0.0747
    """
    if not (cutoff > 0 and 0 < step < math.inf):
        raise ValueError(f"cutoff is {cutoff} and step is {step}; both must be above 0")
    return step / math.expm1(min(2 * math.pi * cutoff * step, 700.0))


def resample(t: Any, values: Any, new_t: Any, *, how: str = "mean") -> Array:
    """Values at other stamps, from the past alone.

    At g[k] stands the mean of the samples with g[k − 1] < t ≤ g[k] or, where there is none
    and for k = 0, the last one before. Going to a higher rate, that holds the last sample,
    which is then at most one old step late; going to a lower one, the mean keeps what is
    too fast from folding into the result, and is about half a new step late. How late a
    value is, exactly: ``new_t − resample(t, t, new_t)``. Cost: O(n + m log n).

    Parameters
    ----------
    t : array of shape (n,)
        Stamps in seconds, increasing.
    values : array of shape (n,) or (n, J)
    new_t : array of shape (m,)
        Increasing, none before t[0].
    how : {"mean", "hold"}, default "mean"
        "hold" takes the last sample always.

    Returns
    -------
    array of shape (m,) or (m, J)

    Examples
    --------
    >>> from imparo.dynamics.logs.signals import resample
    >>> print(resample([0, 1, 2, 3], [0.0, 1.0, 2.0, 3.0], [0, 2.5, 2.7, 3]))
    [0.  1.5 2.  3. ]
    """
    if how not in ("mean", "hold"):
        raise ValueError(f"how is {how!r}; give 'mean' or 'hold'")
    t, new_t = check_stamps(t), check_stamps(new_t, "new_t")
    old = check_values(values, t, "values")
    if new_t[0] < t[0]:
        raise ValueError(
            f"new_t starts at {new_t[0]}, before the first sample at {t[0]}; start it there"
        )
    count = np.searchsorted(t, new_t, side="right")
    out = old[count - 1]
    if how == "hold":
        return out
    several = np.flatnonzero(np.diff(count) > 1)
    if len(several):
        # Sums of [start, end) and, unused, of what lies between; the last may reach the end.
        bounds = np.column_stack([count[several], count[several + 1]]).ravel()
        sums = np.add.reduceat(old, bounds[:-1] if bounds[-1] == len(old) else bounds, axis=0)
        sizes = np.diff(count)[several].reshape(-1, *[1] * (old.ndim - 1))
        out[several + 1] = sums[::2] / sizes
    return out


def even_stamps(start: float, end: float, rate: float) -> Array:
    """Return stamps at a rate in Hz from the start on, none after the end."""
    if not (rate > 0 and math.isfinite(rate)):
        raise ValueError(f"rate is {rate}; give samples a second, above 0")
    count = math.floor((end - start) * rate * (1 + 1e-12) + 1e-9) + 1
    stamps: Array = start + np.arange(count) / rate
    return np.minimum(stamps, max(end, start))


def lateness(ages: Array) -> str:
    """Say how old values are at their stamps, given in seconds."""
    return f"{ages.mean() * 1e3:.3g} ms late on average, {ages.max() * 1e3:.3g} ms at most"
