"""What a fit took, of what it might have taken."""

from typing import Any

from imparo.reports.drawing import Theme, label
from imparo.reports.words import duration, percent
from imparo.tabular.outcome import Cost
from imparo.theory.costs import as_bytes


def draw_cost(figure: Any, cost: Cost, theme: Theme) -> None:
    """Draw seconds by step, memory used of allowed, operations used of possible.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    cost : Cost
    theme : Theme
    """
    axes = figure.subplots(3, 1, height_ratios=(1.35, 1, 1))
    _seconds(axes[0], cost, theme)
    _meter(axes[1], cost.peak_bytes, cost.memory, "memory", as_bytes, theme)
    _meter(axes[2], cost.flops, cost.flops_possible, "operations", operations, theme)


def operations(count: float) -> str:
    """Return a number of floating-point operations as people write it.

    Parameters
    ----------
    count : float

    Returns
    -------
    str

    Examples
    --------
    >>> from imparo.reports.pictures.resources import operations
    >>> operations(3.2e11)
    '320 Gflop'
    """
    for unit in ("", "k", "M", "G", "T"):
        if not count >= 999.5:
            return f"{count:.3g} {unit}flop"
        count /= 1000
    return f"{count:.4g} Pflop"


def _seconds(ax: Any, cost: Cost, theme: Theme) -> None:
    total = sum(cost.seconds.values())
    left = 0.0
    for i, (step, seconds) in enumerate(cost.seconds.items()):
        name = f"{label(step, 20)} {duration(seconds)}"
        ax.barh(0, seconds, 0.62, left, color=theme.steps[i % len(theme.steps)], label=name,
                edgecolor=theme.surface, linewidth=1)  # fmt: skip
        left += seconds
    budget = "" if cost.budget is None else f"; budget for fitting {duration(cost.budget)}"
    _bare(ax, f"time: {duration(total)}{budget}", total or 1.0)
    if cost.seconds:
        ax.legend(loc="upper left", bbox_to_anchor=(-0.01, 0.02), ncols=4, handlelength=1,
                  handleheight=1, columnspacing=1.2, fontsize=8)  # fmt: skip


def _meter(ax: Any, used: float, of: float, what: str, shown: Any, theme: Theme) -> None:
    if of > 0:
        name = f"{what}: {shown(used)} of {shown(of)} ({percent(used / of)})"
    else:
        name = f"{what}: {shown(used)}"
    end = max(of, used) or 1.0
    ax.barh(0, end, 0.62, color=theme.line)
    ax.barh(0, used, 0.62, color=theme.orange if used > of > 0 else theme.blue)
    _bare(ax, name, end)


def _bare(ax: Any, title: str, end: float) -> None:
    ax.set_title(title, loc="left", fontsize=9.5)
    ax.set(xlim=(0, end), ylim=(-0.5, 0.5))
    ax.axis("off")
