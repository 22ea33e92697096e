"""Bars with names: what columns count, how classes and outputs do."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.reports.drawing import Theme, label
from imparo.reports.pictures.axes import legend
from imparo.reports.words import number

MOST = 20


def draw_relevance(
    figure: Any, names: Sequence[Any], relevance: Sequence[float], theme: Theme
) -> None:
    """Draw what each column counts, the most relevant on top; of many the first twenty.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    names : sequence
    relevance : sequence of float
    theme : Theme
    """
    values = np.nan_to_num(np.asarray(relevance, float))
    order = np.argsort(-values, kind="stable")[:MOST].tolist()
    _bars(figure.add_subplot(), [names[i] for i in order], [(values[order], theme.blue, "")],
          "relevance (all columns together: 1)", theme)  # fmt: skip


def draw_class_bars(
    figure: Any, classes: Sequence[Any], recall: Sequence[float], precision: Sequence[float],
    theme: Theme,
) -> None:  # fmt: skip
    """Draw how many rows of each class are found, and how many so named are right.

    Of more than twenty classes the worst are drawn.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    classes : sequence
    recall, precision : sequence of float
    theme : Theme
    """
    found, right = (np.asarray(v, float) for v in (recall, precision))
    order = list(range(len(found)))
    if len(found) > MOST:
        worth = np.nan_to_num(found) + np.nan_to_num(right)
        order = sorted(np.argsort(worth, kind="stable")[:MOST].tolist())
    ax = figure.add_subplot()
    groups = [(found[order], theme.blue, "recall"), (right[order], theme.orange, "precision")]
    _bars(ax, [classes[i] for i in order], groups, "share", theme)
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    legend(figure, 2)


def draw_output_bars(
    figure: Any, outputs: Sequence[Any], shares: Sequence[float], theme: Theme
) -> None:
    """Draw the error of each output in units of its deviation; of many the worst twenty.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    outputs : sequence
    shares : sequence of float
        Root mean squared error over standard deviation: 1 is no better than the mean.
    theme : Theme
    """
    values = np.asarray(shares, float)
    order = list(range(len(values)))
    if len(values) > MOST:
        worst = np.argsort(-np.nan_to_num(values), kind="stable")
        order = sorted(worst[:MOST].tolist())
    ax = figure.add_subplot()
    _bars(ax, [outputs[i] for i in order], [(values[order], theme.blue, "")],
          "error in units of the output's deviation", theme)  # fmt: skip
    ax.axvline(1, color=theme.soft, ls="--", lw=1.3, label="no better than the mean")
    ax.set_xlim(0, max(1.05, 1.05 * float(np.nanmax(values, initial=1.0))))
    legend(figure, 2)


def _bars(
    ax: Any, names: Sequence[Any], groups: list[tuple[Any, str, str]], unit: str, theme: Theme
) -> None:
    places = np.arange(len(names))
    height = 0.74 / len(groups)
    for i, (values, color, what) in enumerate(groups):
        shift = (i - (len(groups) - 1) / 2) * height
        bars = ax.barh(places + shift, np.nan_to_num(values), 0.9 * height, color=color,
                       label=what)  # fmt: skip
        if len(groups) == 1 and len(names) <= MOST:
            ax.bar_label(bars, [number(v) for v in values], padding=3, fontsize=8,
                         color=theme.soft)  # fmt: skip
    ax.set_yticks(places, [label(name, 22) for name in names],
                  fontsize=9 if len(names) <= 12 else 7.5)  # fmt: skip
    ax.set_ylim(len(names) - 0.4, -0.6)
    if len(groups) == 1:
        ax.margins(x=0.12)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.set_xlabel(unit)
