"""Which classes are taken for which, and whether probabilities can be believed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.reports.drawing import Theme, label
from imparo.reports.pictures.axes import legend
from imparo.reports.words import percent

MOST_CLASSES = 30
_PAIRS = 15
_BINS = 10


def draw_confusion(figure: Any, confusion: Array, classes: Sequence[Any], theme: Theme) -> None:
    """Draw a confusion matrix: colours are shares of the true class, numbers are rows.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    confusion : array of shape (C, C)
        Rows are true classes, columns predicted ones.
    classes : sequence
    theme : Theme
    """
    ax = figure.add_subplot()
    counts = np.asarray(confusion)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = ax.imshow(share, cmap=theme.shades(), vmin=0, vmax=1, aspect="auto")
    size = len(classes)
    font = float(np.clip(78 / size, 4.6, 10.5))
    for i, j in np.ndindex(share.shape):
        if counts[i, j] or size <= 10:
            strong = share[i, j] > 0.5
            color = theme.surface if strong else theme.ink if counts[i, j] else theme.soft
            ax.text(j, i, f"{int(counts[i, j]):,}", ha="center", va="center", fontsize=font,
                    color=color)  # fmt: skip
    names = [label(name, 14) for name in classes]
    turned = max(map(len, names)) * size > 55
    ax.set_xticks(range(size), names, rotation=90 if turned else 0, fontsize=max(font, 6.5))
    ax.set_yticks(range(size), names, fontsize=max(font, 6.5))
    ax.set(xlabel="predicted class", ylabel="true class")
    ax.grid(False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set(visible=True, color=theme.line)
    bar = figure.colorbar(image, ax=ax, format=lambda v, _: f"{100 * v:.0f} %", aspect=30)
    bar.set_label("share of the true class")
    bar.outline.set_visible(False)
    bar.ax.grid(False)


def confused_pairs(confusion: Array, most: int = _PAIRS) -> list[tuple[int, int, int, float]]:
    """Return the pairs of classes that are confused most often.

    Parameters
    ----------
    confusion : array of shape (C, C)
    most : int
        How many pairs.

    Returns
    -------
    list of (true, predicted, rows, share of the true class)

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.reports.pictures import confused_pairs
    >>> confused_pairs(np.array([[8, 2], [0, 5]]))
    [(0, 1, 2, 0.2)]
    """
    wrong = np.array(confusion)
    totals = wrong.sum(axis=1)
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    pairs = (divmod(int(k), len(wrong)) for k in order)
    return [(i, j, int(wrong[i, j]), float(wrong[i, j] / totals[i]))
            for i, j in pairs if wrong[i, j]]  # fmt: skip


def draw_confused_pairs(
    figure: Any, confusion: Array, classes: Sequence[Any], theme: Theme
) -> None:
    """Draw the pairs of classes that are confused most often.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    confusion : array of shape (C, C)
    classes : sequence
    theme : Theme
    """
    ax = figure.add_subplot()
    pairs = confused_pairs(confusion)
    ax.set_axisbelow(True)
    if not pairs:
        ax.axis("off")
        ax.text(0.5, 0.5, "no row was confused", ha="center", transform=ax.transAxes)
        return
    names = [f"{label(classes[i], 18)} → {label(classes[j], 18)}" for i, j, _, _ in pairs]
    bars = ax.barh(range(len(pairs)), [rows for _, _, rows, _ in pairs], 0.7, color=theme.blue)
    ax.bar_label(bars, [f"{rows:,} ({percent(share)})" for _, _, rows, share in pairs],
                 padding=3, fontsize=8, color=theme.soft)  # fmt: skip
    ax.set_yticks(range(len(pairs)), names, fontsize=8)
    ax.set_ylim(len(pairs) - 0.4, -0.6)
    ax.margins(x=0.2)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("rows (share of the true class)")


def reliability(
    confidence: Array, hit: Array, bins: int = _BINS
) -> tuple[Array, Array, Array, Array, Array]:
    """Return how often it came true, by the probability that was named.

    Parameters
    ----------
    confidence : array of shape (k,)
        Probabilities of something.
    hit : array of shape (k,)
        Whether it came true.
    bins : int
        Equal parts of 0 to 1.

    Returns
    -------
    confidence, share : array of shape (bins in use,)
        Means of both.
    low, high : array
        Between which the share is, with probability 0.95 (Wilson's interval).
    count : array of shape (bins,)
        Rows in every bin.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.reports.pictures import reliability
    >>> at, share, low, high, count = reliability(np.full(4, 0.75), np.array([1, 1, 1, 0]))
    >>> at, share, count
    (array([0.75]), array([0.75]), array([0, 0, 0, 0, 0, 0, 0, 4, 0, 0]))
    """
    place = np.clip((np.asarray(confidence) * bins).astype(int), 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    used = count > 0
    n = count[used]
    at = np.bincount(place, confidence, bins)[used] / n
    share = np.bincount(place, hit, bins)[used] / n
    z2 = 1.96**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    low, high = np.minimum(middle - reach, share), np.maximum(middle + reach, share)
    return at, share, low, high, count


def draw_reliability(
    figure: Any, confidence: Array, hit: Array, theme: Theme, what: str = "named probability"
) -> None:
    """Draw a reliability diagram, over how many rows named each probability.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
    confidence, hit : array of shape (k,)
    theme : Theme
    what : str
        What the probability is of.
    """
    finite = np.isfinite(confidence)
    confidence, hit = np.clip(confidence[finite], 0, 1), np.asarray(hit, float)[finite]
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3.4, 1))
    top.plot([0, 1], [0, 1], color=theme.green, lw=1.4, label="perfect")
    if len(confidence):
        at, share, low, high, count = reliability(confidence, hit)
        top.errorbar(at, share, [share - low, high - share], fmt="o", color=theme.blue, ms=7,
                     mec=theme.surface, elinewidth=1.6, capsize=3,
                     label="rows, with a 95 % interval")  # fmt: skip
        bottom.bar((np.arange(_BINS) + 0.5) / _BINS, count, 0.9 / _BINS, color=theme.blue)
    top.set(ylabel="came true", xlim=(0, 1), ylim=(-0.02, 1.04))
    bottom.set(xlabel=what, ylabel="rows")
    bottom.yaxis.get_major_locator().set_params(nbins=3, integer=True)
    for axis in (top.yaxis, bottom.xaxis):
        axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    legend(figure, 2)
