"""Pictures that several experiments draw."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.reports.drawing import Drawing, Theme


def heat_map(
    x: Array, y: Array, errors: Array, x_label: str, y_label: str, what: str
) -> Drawing:
    """Return a drawing of errors over a grid, y logarithmic, with the best y of every x.

    Parameters
    ----------
    x : array of shape (S,)
    y : array of shape (L,)
        Positive.
    errors : array of shape (L, S)
    x_label, y_label, what : str

    Returns
    -------
    callable
    """

    def draw(figure: Any, theme: Theme) -> None:
        from matplotlib.colors import LogNorm

        ax = figure.subplots()
        # A few huge errors would hide the valley.
        high = min(float(np.quantile(errors, 0.97)), 20 * float(errors.min()))
        norm = LogNorm(float(errors.min()), max(high, 1.0001 * float(errors.min())))
        mesh = ax.pcolormesh(x, y, np.clip(errors, None, high), norm=norm, shading="nearest",
                             cmap="viridis", rasterized=True)  # fmt: skip
        ax.plot(x, y[np.argmin(errors, axis=0)], color="white", lw=1.6)
        ax.set(yscale="log", xlabel=x_label, ylabel=y_label)
        ax.grid(False)
        bar = figure.colorbar(mesh, ax=ax, label=what)
        bar.outline.set_visible(False)

    return draw


def curves(
    lines: Sequence[tuple[str, Array, Array, Array | None]],
    x_label: str,
    y_label: str,
    *,
    x_scale: str = "linear",
    y_scale: str = "linear",
    y_limits: tuple[float, float] | None = None,
    colours: Sequence[str] = ("blue", "orange", "red", "green", "soft"),
) -> Drawing:
    """Return a drawing of lines with bands of one deviation.

    Parameters
    ----------
    lines : sequence of (label, x, mean, deviation or None)
    x_label, y_label : str
    x_scale, y_scale : "linear" or "log"
    y_limits : pair of float, optional
    colours : sequence of str
        Names of colours of the theme, in the order of the lines.

    Returns
    -------
    callable
    """

    def draw(figure: Any, theme: Theme) -> None:
        ax = figure.subplots()
        for i, (label, x, mean, deviation) in enumerate(lines):
            colour = getattr(theme, colours[i % len(colours)])
            ax.plot(x, mean, color=colour, label=label, lw=1.8,
                    marker="." if len(x) <= 25 else None)  # fmt: skip
            if deviation is not None and np.any(deviation):
                low = np.asarray(mean) - deviation
                if y_scale == "log":
                    low = np.maximum(low, 0.1 * np.asarray(mean))
                ax.fill_between(x, low, np.asarray(mean) + deviation, color=colour, alpha=0.18,
                                lw=0)  # fmt: skip
        ax.set(xscale=x_scale, yscale=y_scale, xlabel=x_label, ylabel=y_label)
        if y_limits is not None:
            ax.set_ylim(*y_limits)
        if len(lines) > 1:
            ax.legend()

    return draw
