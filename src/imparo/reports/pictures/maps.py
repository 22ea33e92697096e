"""The path: a map of errors over two parameters, or a curve over one."""

from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.extras import require
from imparo.paths import Path
from imparo.reports.drawing import Theme, label
from imparo.reports.pictures.axes import is_share, legend, write_ticks, writer
from imparo.reports.words import number

NAMES = {
    "penalty": "penalty λ",
    "components": "components",
    "iterations": "iterations t",
    "n_centers": "centers m",
    "n_features": "features m",
    "sigma": "width σ",
    "step": "step η",
    "decay": "decay θ",
    "epochs": "passes",
}
# Across, where there is a choice; the level of regularization goes upwards.
_ACROSS = ("n_centers", "n_features", "epochs", "sigma")
_UPWARDS = ("penalty", "iterations", "components", "step", "decay")
_NEAR = 0.05
_WORST = 4  # times the best error: colours end there
# Good errors are bright in both themes, and so are these dark.
_ON_MAP, _CHOSEN = "#1d2330", "#d0103a"


def varied_axes(path: Path) -> list[str]:
    """Return the names of the parameters of which a path has more than one value."""
    return [name for name, grid in path.axes.items() if len(grid) > 1]


def near_best(best: float) -> float:
    """Return the error up to which a choice is as good as the best: 5 % above it."""
    return best * (1 + _NEAR) if best > 0 else best + 0.01


def draw_path(figure: Any, path: Path, theme: Theme) -> None:
    """Draw the validation errors of a path, the chosen point and what is as good.

    Over two parameters it is a map, with the others at their best; over one a curve.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    path : Path
    theme : Theme
    """
    names = varied_axes(path) or list(path.axes)
    ax = figure.add_subplot()
    if len(names) == 1:
        _draw_curve(figure, ax, path, names[0], theme)
        return
    across = next((name for name in _ACROSS if name in names), names[-1])
    rest = [name for name in names if name != across]
    upwards = next((name for name in _UPWARDS if name in rest), rest[-1])
    _draw_map(figure, ax, path, across, upwards, theme)


def _draw_map(
    figure: Any, ax: Any, path: Path, across: str, upwards: str, theme: Theme
) -> None:
    order = list(path.axes)
    place: list[Any] = list(path.best_index)
    x, y = (order.index(name) for name in (across, upwards))
    column, row = place[x], place[y]
    place[x] = place[y] = slice(None)
    errors = np.asarray(path.errors, float)[tuple(place)]
    errors = errors if y < x else errors.T
    columns, rows = _Grid(path.axes[across]), _Grid(path.axes[upwards])
    errors = np.ma.masked_invalid(errors[np.ix_(rows.order, columns.order)])
    best = float(errors.min())
    mesh = ax.pcolormesh(
        columns.edges, rows.edges, errors, cmap="viridis_r", rasterized=True,
        norm=_norm(errors, best),
    )  # fmt: skip
    bar = figure.colorbar(mesh, ax=ax, extend="max")
    bar.set_label(path.metric)
    shown = writer(is_share(path.metric))
    write_ticks(bar.ax.yaxis, shown)
    bar.outline.set_visible(False)
    bar.ax.grid(False)
    level = near_best(best)
    handles = []
    if min(errors.shape) > 1 and best < level < float(errors.max()):
        lines = ax.contour(
            columns.outer(), rows.outer(), np.pad(errors.filled(np.nan), 1, mode="edge"),
            [level], colors=_ON_MAP, linewidths=1.3, linestyles="--",
        )  # fmt: skip
        handle = lines.legend_elements()[0][0]
        handle.set(color=theme.ink, label="5 % above the best")
        handles.append(handle)
    handles += ax.plot(
        columns.at(column), rows.at(row), "*", color=_CHOSEN, ms=15, mec="white", mew=1.1,
        label=f"chosen: {shown(best)}", clip_on=False, zorder=5, ls="none",
    )  # fmt: skip
    for name, grid, axis in ((across, columns, "x"), (upwards, rows, "y")):
        _scale(ax, axis, grid, NAMES.get(name, label(name)))
    ax.grid(False)
    figure.legend(handles=handles[::-1], loc="outside lower center", ncols=2)


def _draw_curve(figure: Any, ax: Any, path: Path, name: str, theme: Theme) -> None:
    at = list(path.axes).index(name)
    place: list[Any] = list(path.best_index)
    column, place[at] = place[at], slice(None)
    grid = _Grid(path.axes[name])
    errors, training = (
        np.asarray(table, float)[tuple(place)][grid.order]
        for table in (path.errors, path.train_errors)
    )
    finite = errors[np.isfinite(errors)]
    best = float(path.errors[path.best_index])
    if np.isfinite(training).any():
        ax.plot(grid.values, training, color=theme.soft, ls="--", lw=1.3, label="fitted rows")
    shown = np.where(np.isfinite(errors), errors, np.nan)
    write = writer(is_share(path.metric))
    ax.plot(grid.values, shown, color=theme.blue, lw=2.2, ms=4, label=path.method,
            marker="o" if len(shown) < 12 else None)  # fmt: skip
    good = np.flatnonzero(shown <= near_best(best))
    if len(good) > 1:
        ax.axvspan(*grid.values[good[[0, -1]]], color=theme.blue, alpha=0.1, lw=0,
                   label="5 % above the best")  # fmt: skip
    ax.plot(grid.at(column), best, "*", color=theme.red, ms=15, mec=theme.surface, mew=1.1,
            label=f"chosen: {write(best)}", zorder=5, clip_on=False)  # fmt: skip
    top = min(float(finite.max()), best * 6) if len(finite) and best > 0 else None
    low = [v for v in (best, *training[np.isfinite(training)]) if v >= 0.5 * best]
    if top is not None and top > best:
        ax.set_ylim(0.92 * min(low), best + 1.08 * (top - best))
    _scale(ax, "x", grid, NAMES.get(name, label(name)))
    write_ticks(ax.yaxis, write)
    ax.set_ylabel(path.metric)
    legend(figure, 4)


class _Grid:
    """Where the values of a grid are drawn: in order, and 0 a decade below the rest."""

    def __init__(self, grid: Array) -> None:
        values = np.asarray(grid, float).copy()
        positive = values[values > 0]
        self.zero = None
        span = positive.max() / positive.min() if len(positive) else 1.0
        self.log = bool(len(positive) and values.min() >= 0 and span > 8)
        if self.log and len(positive) < len(values):
            self.zero = float(positive.min() / 10)
            values[values <= 0] = self.zero
        self.drawn = values
        self.order = np.argsort(values, kind="stable")
        self.values = values[self.order]
        scaled = np.log(self.values) if self.log else self.values
        middle = (scaled[1:] + scaled[:-1]) / 2
        first, last = (
            (2 * scaled[0] - middle[0], 2 * scaled[-1] - middle[-1])
            if len(middle)
            else (scaled[0] - 0.5, scaled[0] + 0.5)
        )
        edges = np.concatenate([[first], middle, [last]])
        self.edges = np.exp(edges) if self.log else edges

    def outer(self) -> Array:
        """Return the values between the first and the last edge."""
        return np.concatenate([self.edges[:1], self.values, self.edges[-1:]])

    def at(self, i: int) -> float:
        """Return where the value with that position in the grid is drawn."""
        return float(self.drawn[i])


def _scale(ax: Any, axis: str, grid: _Grid, name: str) -> None:
    ticker = require("matplotlib.ticker", "plot")
    this = getattr(ax, f"{axis}axis")
    if grid.log:
        getattr(ax, f"set_{axis}scale")("log")
        wide = grid.values[-1] / grid.values[0] > 1000
        this.set_major_locator(ticker.LogLocator(numticks=7, subs=(1,) if wide else (1, 2, 5)))
        zero = grid.zero

        def shown(value: float, _: Any) -> str:
            if zero is not None and value <= 1.01 * zero:
                return "0" if value > 0.99 * zero else ""
            exponent = round(np.log10(value))
            if wide and abs(exponent) > 2:
                return f"$10^{{{exponent}}}$"
            return number(float(f"{value:.6g}"))

        this.set_major_formatter(shown)
        this.set_minor_formatter(ticker.NullFormatter())
    else:
        write_ticks(this)
    getattr(ax, f"set_{axis}label")(name)


def _norm(errors: Any, best: float) -> Any:
    colors = require("matplotlib.colors", "plot")
    worst = float(errors.max())
    if best > 0 and worst > best * 1.001:
        return colors.LogNorm(best, min(worst, _WORST * best))
    return colors.Normalize(best, worst if worst > best else best + 1)
