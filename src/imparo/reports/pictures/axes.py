"""Numbers along axes, written as elsewhere on the page."""

from collections.abc import Callable
from typing import Any

import numpy as np

from imparo.extras import require
from imparo.reports.words import number, percent


def writer(is_share: bool) -> Callable[[float], str]:
    """Return how values are written: as percentages, or as numbers."""
    return (lambda value: percent(round(value, 12))) if is_share else _rounded


def write_ticks(axis: Any, shown: Callable[[float], str] | None = None) -> None:
    """Write the ticks of an axis, a few of them where it is logarithmic.

    Parameters
    ----------
    axis : matplotlib Axis
    shown : callable, optional
        From a value to its text.
    """
    ticker = require("matplotlib.ticker", "plot")
    shown = shown or _rounded
    axis.set_major_formatter(lambda value, _: shown(value))
    if axis.get_scale() == "log":
        low, high = sorted(axis.get_view_interval())
        decades = np.log10(high / low)
        steps = (1,) if decades > 2.5 else (1, 2, 5) if decades > 0.8 else tuple(range(1, 10))
        axis.set_major_locator(ticker.LogLocator(subs=steps, numticks=7))
        if decades <= 0.8:
            axis.set_major_locator(ticker.MaxNLocator(6))
        axis.set_minor_formatter(ticker.NullFormatter())
        axis.set_minor_locator(ticker.NullLocator())


def legend(figure: Any, columns: int) -> None:
    """Put the names of what is drawn under a picture, where there are any."""
    found = [ax.get_legend_handles_labels() for ax in figure.axes]
    handles, names = ([item for pair in found for item in pair[i]] for i in (0, 1))
    if names:
        figure.legend(handles, names, loc="outside lower center", ncols=columns,
                      columnspacing=1.3, handlelength=1.6)  # fmt: skip


def amount(value: float) -> str:
    """Return a number in few letters, large ones in thousands, millions or billions.

    Parameters
    ----------
    value : float

    Returns
    -------
    str

    Examples
    --------
    >>> from imparo.reports.pictures.axes import amount
    >>> amount(250_000.0), amount(-1500.0), amount(0.5)
    ('250k', '−1.5k', '0.5')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size and abs(value) < 1000 * size:
            return f"{number(round(value / size, 3))}{unit}"
    return _rounded(value)


def is_share(metric: str) -> bool:
    """Return whether a metric counts shares of rows."""
    return metric.endswith("rate") or metric == "error"


def _rounded(value: float) -> str:
    return number(round(value, 12))
