"""What a fit and its errors look like: functions that draw plain values in a theme.

Each takes a matplotlib figure, or a part of one, then values, then a
:class:`imparo.reports.drawing.Theme`.
"""

from imparo.reports.pictures.bars import draw_class_bars, draw_output_bars, draw_relevance
from imparo.reports.pictures.classes import (
    confused_pairs,
    draw_confused_pairs,
    draw_confusion,
    draw_reliability,
    reliability,
)
from imparo.reports.pictures.maps import draw_path, near_best, varied_axes
from imparo.reports.pictures.residuals import (
    deciles,
    draw_agreement,
    draw_deciles,
    draw_residual_histogram,
    draw_residuals,
)
from imparo.reports.pictures.resources import draw_cost
from imparo.reports.pictures.searches import draw_learning_curve, draw_trials

__all__ = [
    "confused_pairs",
    "deciles",
    "draw_agreement",
    "draw_class_bars",
    "draw_confused_pairs",
    "draw_confusion",
    "draw_cost",
    "draw_deciles",
    "draw_learning_curve",
    "draw_output_bars",
    "draw_path",
    "draw_relevance",
    "draw_reliability",
    "draw_residual_histogram",
    "draw_residuals",
    "draw_trials",
    "near_best",
    "reliability",
    "varied_axes",
]
