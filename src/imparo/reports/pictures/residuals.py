"""Where predictions are off: against what was observed, by size, by decile."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.reports.drawing import Theme, label
from imparo.reports.pictures.axes import amount, legend, write_ticks

# More points than these are counted in hexagons.
_MOST_POINTS = 1500


def draw_agreement(
    figure: Any, observed: Array, predicted: Array, names: Sequence[Any], theme: Theme
) -> None:
    """Draw predictions against observations, one small picture for each output.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    observed, predicted : array of shape (k, T)
    names : sequence
        Of the T outputs.
    theme : Theme
    """
    count = len(names)
    across = 1 if count == 1 else 2 if count <= 4 else 3
    axes = figure.subplots(-(-count // across), across, squeeze=False)
    for i, ax in enumerate(axes.flat):
        if i >= count:
            ax.set_visible(False)
            continue
        x, y = _finite(observed[:, i], predicted[:, i])
        ends = _range(np.concatenate([x, y]))
        _cloud(ax, x, y, (*ends, *ends), theme)
        ax.plot(ends, ends, color=theme.green, lw=1.4, label="perfect", zorder=4)
        ax.set(xlim=ends, ylim=ends)
        for axis in (ax.xaxis, ax.yaxis):
            write_ticks(axis, None if count == 1 else amount)
        if count == 1:
            ax.set_aspect("equal")
        else:
            ax.set_title(label(names[i], 20), fontsize=8.5, pad=3)
            ax.tick_params(labelsize=7)
            ax.locator_params(nbins=4)
    if count == 1:
        axes[0, 0].set(xlabel="observed", ylabel="predicted")
        axes[0, 0].legend(loc="upper left")
    else:
        figure.supxlabel("observed", fontsize=9.5, color=theme.soft)
        figure.supylabel("predicted", fontsize=9.5, color=theme.soft)


def draw_residual_histogram(figure: Any, residuals: Array, theme: Theme, unit: str) -> None:
    """Draw how often errors of each size occur, beside a normal law of the same spread.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    residuals : array of shape (k,)
        Observed minus predicted.
    theme : Theme
    unit : str
        What the axis counts.
    """
    ax = figure.add_subplot()
    values = residuals[np.isfinite(residuals)]
    if len(values):
        # A few far ones would leave one bar for all the rest.
        low, high = _range(np.quantile(values, [0.001, 0.999]) if len(values) > 500 else values)
        inside = values[(values >= low) & (values <= high)]
        bins = int(np.clip(len(np.histogram_bin_edges(inside, "auto")) - 1, 5, 60))
        _, edges, _ = ax.hist(
            np.clip(values, low, high), bins, range=(low, high), color=theme.blue, alpha=0.75,
            label="errors",
        )  # fmt: skip
        mean, spread = float(values.mean()), float(values.std())
        if spread > 1e-12 * max(abs(mean), float(np.abs(values).max())):
            at = np.linspace(low, high, 200)
            density = np.exp(-0.5 * ((at - mean) / spread) ** 2) / (spread * 2.5066282746)
            ax.plot(at, len(values) * (edges[1] - edges[0]) * density, color=theme.orange,
                    lw=2, label="normal law of the same spread")  # fmt: skip
    ax.axvline(0, color=theme.soft, lw=1, ls="--")
    ax.set(xlabel=unit, ylabel="rows")
    write_ticks(ax.xaxis)
    legend(figure, 2)


def draw_residuals(
    figure: Any, predicted: Array, residuals: Array, theme: Theme, unit: str
) -> None:
    """Draw errors against predictions, with their mean along the way.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    predicted, residuals : array of shape (k,)
    theme : Theme
    unit : str
        What the axis of errors counts.
    """
    ax = figure.add_subplot()
    x, y = _finite(predicted, residuals)
    low, high = _range(x)
    reach = _range(np.quantile(np.abs(y), [0.995]) if len(y) > 500 else np.abs(y))[1]
    _cloud(ax, x, np.clip(y, -reach, reach), (low, high, -reach, reach), theme)
    ax.axhline(0, color=theme.green, lw=1.4, zorder=4)
    at, mean = deciles(x, y)[:2]
    ax.plot(at, mean, "o-", color=theme.orange, lw=2, ms=5, mec=theme.surface,
            label="mean of a tenth of the rows", zorder=5)  # fmt: skip
    ax.set(xlabel="predicted", ylabel=unit, xlim=(low, high), ylim=(-reach, reach))
    for axis in (ax.xaxis, ax.yaxis):
        write_ticks(axis)
    legend(figure, 2)


def deciles(predicted: Array, observed: Array) -> tuple[Array, Array, Array]:
    """Return means by tenth of the predictions, and the standard error of the second.

    Parameters
    ----------
    predicted, observed : array of shape (k,)

    Returns
    -------
    predicted, observed, error : array of shape (at most 10,)

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.reports.pictures import deciles
    >>> at, mean, _ = deciles(np.arange(20.0), 2 * np.arange(20.0))
    >>> at[:3], mean[:3]
    (array([0.5, 2.5, 4.5]), array([1., 5., 9.]))
    """
    order = np.argsort(predicted, kind="stable")
    groups = [g for g in np.array_split(order, 10) if len(g)]
    error = [observed[g].std(ddof=1) / np.sqrt(len(g)) if len(g) > 1 else 0.0 for g in groups]
    at, mean = (np.array([v[g].mean() for g in groups]) for v in (predicted, observed))
    return at, mean, np.array(error)


def draw_deciles(figure: Any, predicted: Array, observed: Array, theme: Theme) -> None:
    """Draw the mean that was observed in each tenth of the predictions.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    predicted, observed : array of shape (k,)
    theme : Theme
    """
    ax = figure.add_subplot()
    x, y = _finite(predicted, observed)
    at, mean, error = deciles(x, y)
    ends = _range(np.concatenate([at, mean - 2 * error, mean + 2 * error]))
    ax.plot(ends, ends, color=theme.green, lw=1.4, label="perfect")
    ax.errorbar(at, mean, 2 * error, fmt="o", color=theme.blue, ms=7, mec=theme.surface,
                elinewidth=1.6, capsize=3,
                label="a tenth of the rows, ± 2 standard errors")  # fmt: skip
    ax.set(xlabel="mean of the predictions", ylabel="mean observed", xlim=ends, ylim=ends)
    for axis in (ax.xaxis, ax.yaxis):
        write_ticks(axis)
    legend(figure, 2)


def _cloud(ax: Any, x: Array, y: Array, extent: tuple[float, ...], theme: Theme) -> None:
    if len(x) > _MOST_POINTS:
        colors = theme.shades()(np.linspace(0.18, 1, 256))
        color_map = type(theme.shades()).from_list("cloud", colors)
        ax.hexbin(x, y, gridsize=45, extent=extent, mincnt=1, bins="log", cmap=color_map,
                  linewidths=0.1, rasterized=True)  # fmt: skip
        return
    size = float(np.clip(2500 / max(len(x), 1), 5, 24))
    ax.scatter(x, y, s=size, color=theme.blue, alpha=0.65, lw=0, rasterized=len(x) > 400)


def _finite(x: Array, y: Array) -> tuple[Array, Array]:
    both = np.isfinite(x) & np.isfinite(y)
    return np.asarray(x[both], float), np.asarray(y[both], float)


def _range(values: Array) -> tuple[float, float]:
    """Return ends with a margin around values, apart even where all are one."""
    if not len(values):
        return -1.0, 1.0
    low, high = float(np.min(values)), float(np.max(values))
    margin = 0.04 * (high - low)
    if not margin > 1e-9 * max(abs(low), abs(high)):
        margin = max(abs(high), 1.0) * 0.5
    return low - margin, high + margin
