"""Rates and required features of a problem, as numbers and as maps (thesis, section 5.3.1)."""

from typing import Any

import numpy as np

from imparo.paths import pyplot
from imparo.theory.random_features import (
    centers_exponent,
    centers_power,
    features_exponent,
    features_power,
    lower_bound_exponent,
    penalty_exponent,
    rate_exponent,
)


def rate_exponents(r: float, gamma: float, alpha: float = 1.0) -> dict[str, float]:
    """Return every power of n that chapter 5 and section 4.2 give for a problem.

    Parameters
    ----------
    r, gamma, alpha : float
        As for :func:`features_exponent`.

    Returns
    -------
    dict of str to float
        ``risk`` and ``penalty`` fall as n to minus their power, and no method has a risk
        that falls faster than ``lower_bound``; ``features``, ``centers`` (uniform) and
        ``leverage_centers`` grow as n to theirs.

    Examples
    --------
    >>> from imparo.theory import rate_exponents
    >>> rate_exponents(0.5, 1.0)["risk"], rate_exponents(1.0, 0.5)["features"]
    (0.5, 0.6)
    """
    return {
        "risk": rate_exponent(r, gamma),
        "lower_bound": lower_bound_exponent(r, gamma),
        "penalty": penalty_exponent(r, gamma),
        "features": features_exponent(r, gamma, alpha),
        "centers": centers_exponent(r, gamma),
        "leverage_centers": centers_exponent(r, gamma, "leverage"),
    }


def plot_required_features(axes: Any = None) -> Any:
    """Draw how many features or centers the best rate needs (thesis, figure of 5.3.1).

    Four maps of the power of n over the smoothness r of the target and the size γ of the
    space: random features (left) with α = 1 (top) and with α = γ (bottom), Nyström centers
    (right) drawn uniformly (top) and by leverage scores (bottom).

    Parameters
    ----------
    axes : array of four matplotlib Axes, optional
        Drawn on if given, in the order of the panels, row by row.

    Returns
    -------
    array of shape (2, 2) of matplotlib Axes

    Examples
    --------
    >>> from imparo.theory import plot_required_features
    >>> axes = plot_required_features()
    >>> axes.shape
    (2, 2)
    """
    plt = pyplot()
    if axes is None:
        axes = plt.subplots(
            2, 2, figsize=(7.6, 6.4), sharex=True, sharey=True, layout="constrained"
        )[1]
    axes = np.asarray(axes, object)
    if axes.size != 4:
        raise ValueError(f"axes has {axes.size} axes; four are drawn on")
    axes = axes.reshape(2, 2)
    r, gamma = np.meshgrid(np.linspace(0.5, 1.0, 201), np.linspace(0.0, 1.0, 201))
    panels = (
        ("random features, α = 1", features_power(r, gamma, 1.0)),
        ("Nyström, uniform centers", centers_power(r, gamma, False)),
        ("random features, α = γ", features_power(r, gamma, gamma)),
        ("Nyström, leverage scores", centers_power(r, gamma, True)),
    )
    # Light enough everywhere for the dark lines and their labels.
    colors = plt.matplotlib.colors.ListedColormap(plt.cm.YlGnBu(np.linspace(0, 0.72, 256)))
    mesh = None
    for ax, (title, power) in zip(axes.flat, panels, strict=True):
        mesh = ax.pcolormesh(
            r, gamma, power, cmap=colors, vmin=0, vmax=1, shading="gouraud", rasterized=True
        )
        lines = ax.contour(
            r, gamma, power, np.arange(0.1, 0.95, 0.1), colors="0.2", linewidths=0.9
        )
        middles = [
            segment[len(segment) // 2]
            for segments in lines.allsegs
            for segment in segments
            if len(segment) > 30
        ]
        ax.clabel(lines, fmt=lambda level: f"{level:.1f}", fontsize=9, manual=middles)
        ax.set_title(title, fontsize=10.5)
        ax.set(xlim=(0.5, 1), ylim=(0, 1))
    for ax in axes[1]:
        ax.set_xlabel("smoothness r of the target")
    for ax in axes[:, 0]:
        ax.set_ylabel("size γ of the space")
    axes[0, 0].figure.colorbar(
        mesh, ax=axes.ravel().tolist(), label="m grows as n to the power", shrink=0.85
    )
    return axes
