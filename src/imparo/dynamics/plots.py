"""Errors along a stream, drawn as in figure 8.4 of the thesis."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.paths import pyplot

COLOURS = {"SP": "#1f5fbf", "NP": "#c8372d", "P": "#2e8b3d"}
_LINES = {"SP": "-", "NP": "--", "P": "-."}
_TITLES = {"SP": "SP, semiparametric", "NP": "NP, nonparametric", "P": "P, parametric"}


def plot_stream(
    errors: Mapping[str, Array],
    groups: Mapping[str, Sequence[int]],
    step: float,
    *,
    title: str = "",
    floor: Mapping[str, float] | None = None,
) -> Any:
    """Draw windowed errors over time, with deviations over the pieces of a stream.

    Parameters
    ----------
    errors : mapping of str to array of shape (pieces, n, T)
        As :func:`streamed` returns them, for "P", "NP" and "SP".
    groups : mapping of str to sequence of int
        Outputs that share a panel, as :func:`output_groups` returns them.
    step : float
        Seconds from one sample to the next.
    title : str, optional
    floor : mapping of str to float, optional
        Level of the noise of a group, drawn as a thin line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    plt = pyplot()
    figure, axes = plt.subplots(
        len(groups), 1, figsize=(9, 3.2 * len(groups)), sharex=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for ax, (group, places) in zip(axes[:, 0], groups.items(), strict=True):
        for name, found in errors.items():
            values = found[:, :, list(places)].mean(axis=2)
            seconds = step * np.arange(1, values.shape[1] + 1)
            mean, spread = values.mean(axis=0), values.std(axis=0)
            colour = COLOURS.get(name)
            ax.plot(
                seconds, mean, color=colour, linewidth=1.6, linestyle=_LINES.get(name, "-"),
                label=_TITLES.get(name, name),
            )  # fmt: skip
            if len(values) > 1:
                low, high = np.maximum(mean - spread, 0), mean + spread
                ax.fill_between(seconds, low, high, color=colour, alpha=0.18, linewidth=0)
        if floor is not None and group in floor:
            ax.axhline(floor[group], color="0.3", linewidth=0.8, linestyle=":")
        ax.set_ylabel(f"RMSE of {group}")
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
    axes[0, 0].legend(frameon=False, ncols=3, loc="upper right")
    axes[-1, 0].set_xlabel("time (s)")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    return figure
