"""What was tried, and what more rows bring."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.reports.drawing import Theme, label
from imparo.reports.pictures.axes import is_share, legend, write_ticks, writer
from imparo.reports.words import number


def draw_trials(
    figure: Any, seconds: Sequence[float], errors: Sequence[float], methods: Sequence[str],
    theme: Theme, metric: str = "validation error",
) -> None:  # fmt: skip
    """Draw the error of every trial at the time when it was done, and the best so far.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    seconds : sequence of float
        Of each trial.
    errors : sequence of float
        Not finite where a trial did not come to its end.
    methods : sequence of str
        One colour and shape each.
    theme : Theme
    metric : str
    """
    ax = figure.add_subplot()
    done = np.cumsum(np.nan_to_num(np.asarray(seconds, float)))
    values = np.asarray(errors, float)
    ended = np.isfinite(values)
    names = list(dict.fromkeys(methods))
    shapes = "osD^vP"
    for i, name in enumerate(names):
        rows = ended & (np.asarray(methods, object) == name)
        ax.plot(done[rows], values[rows], shapes[i % 6], ms=6.5, mec=theme.surface, mew=0.7,
                color=theme.steps[i % len(theme.steps)], label=label(name), ls="none",
                zorder=3)  # fmt: skip
    if ended.any():
        best = np.minimum.accumulate(np.where(ended, values, np.inf))
        best[~np.isfinite(best)] = np.nan
        ax.step(done, best, where="post", color=theme.red, lw=1.6, label="best so far")
        low, high = values[ended].min(), values[ended].max()
        if low > 0 and high > 8 * low:
            ax.set_yscale("log")
    if not ended.all():
        ax.plot(done[~ended], np.full((~ended).sum(), 0.02), "x", color=theme.soft, ms=6,
                transform=ax.get_xaxis_transform(), label="not finished")  # fmt: skip
    ax.set_xlim(0, 1.03 * done[-1] if done[-1] > 0 else 1)
    ax.set(xlabel="seconds of the search", ylabel=metric)
    write_ticks(ax.yaxis, writer(is_share(metric)))
    legend(figure, 4)


def draw_learning_curve(
    figure: Any, rows: Sequence[float], errors: Sequence[float], baseline: float | None,
    theme: Theme, metric: str = "error",
) -> None:  # fmt: skip
    """Draw the error on test rows against the number of rows that were fitted.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    rows, errors : sequence of float
    baseline : float or None
        Error of the simplest model.
    theme : Theme
    metric : str
    """
    ax = figure.add_subplot()
    order = np.argsort(rows)
    sizes, values = np.asarray(rows, float)[order], np.asarray(errors, float)[order]
    finite = values[np.isfinite(values)]
    known = baseline is not None and np.isfinite(baseline)
    shown = writer(is_share(metric))
    if known:
        ax.axhline(baseline, color=theme.soft, ls="--", lw=1.3,
                   label=f"simplest model: {shown(baseline or 0.0)}")  # fmt: skip
    last = f"this model: {shown(values[-1])}" if len(values) else "this model"
    ax.plot(sizes, values, "o-", color=theme.blue, lw=2.2, ms=6, mec=theme.surface, label=last)
    if len(sizes) and sizes[0] > 0 and sizes[-1] > 4 * sizes[0]:
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.set_xticks(sizes if len(sizes) < 7 else sizes[:: -(-len(sizes) // 6)])
    ax.xaxis.set_major_formatter(lambda value, _: number(round(value)))
    lowest = finite.min() if len(finite) else 0.0
    highest = max([*finite, baseline if known else 0.0], default=1.0)
    if 0 < lowest < highest / 8:
        ax.set_yscale("log")
    elif highest > 0 <= lowest:
        ax.set_ylim(0, 1.08 * highest)
    write_ticks(ax.yaxis, writer(is_share(metric)))
    ax.set(xlabel="rows fitted", ylabel=metric)
    legend(figure, 2)
