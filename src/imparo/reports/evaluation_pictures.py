"""The pictures of an evaluation, with what they show in words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.reports import pictures as draw
from imparo.reports.drawing import Picture, label
from imparo.reports.pictures.bars import MOST
from imparo.reports.pictures.classes import MOST_CLASSES
from imparo.reports.words import METRICS, counted, metric, number, percent
from imparo.tabular.outcome import Evaluation

_MOST_OUTPUTS = 9


def evaluation_pictures(evaluation: Evaluation) -> list[Picture]:
    """Return the pictures that an evaluation has something to show in.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    list of Picture
    """
    if evaluation.task == "classification":
        found = [_confusion(evaluation), _reliability(evaluation), _classes(evaluation)]
    else:
        found = [*_residuals(evaluation), _outputs(evaluation)]
    return [picture for picture in found if picture is not None]


def curve_picture(
    curve: Sequence[dict[str, float]], name: str, baseline: float | None
) -> Picture | None:
    """Return the learning curve of a fit, or None if there is none.

    Parameters
    ----------
    curve : sequence of dict
        "rows" and "error".
    name : str
        The metric.
    baseline : float or None
        Of the simplest model.
    """
    known = [point for point in curve if point.get("error") is not None]
    if len(known) < 2:
        return None
    known = sorted(known, key=lambda point: point["rows"])
    rows, errors = ([point[key] for point in known] for key in ("rows", "error"))
    steps = f"from {metric(name, errors[0])} with {counted(int(rows[0]), 'row')} to "
    steps += f"{metric(name, errors[-1])} with {counted(int(rows[-1]), 'row')}"
    return Picture(
        "What more rows bring",
        "Error on the test rows of the same model, fitted to fewer rows. While it still falls "
        "at the right end, more data will help.",
        f"Learning curve: the error goes {steps}.",
        lambda figure, theme: draw.draw_learning_curve(
            figure, rows, errors, baseline, theme, METRICS[name][0]
        ),
    )


def _residuals(evaluation: Evaluation) -> list[Picture]:
    observed, predicted = (
        np.asarray(v, float).reshape(len(v), -1)
        for v in (evaluation.observed, evaluation.predicted)
    )
    if not len(observed):
        return []
    names, several = evaluation.outputs, len(evaluation.outputs) > 1
    shown = _worst_outputs(observed, predicted)
    drawn, which = [names[i] for i in shown], ""
    if len(shown) < len(names):
        which = f" Of {len(names)} outputs, the {len(shown)} with the largest errors."
    sample = ""
    if len(observed) < evaluation.rows:
        sample = f" A sample of {len(observed):,} of {evaluation.rows:,} rows."
    unit, x, y = "observed − predicted", predicted.ravel(), observed.ravel()
    note = ""
    if several:
        # Outputs of all sizes are drawn together in units of their own spread.
        center, spread = np.nanmean(observed, axis=0), np.nanstd(observed, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        x, y = (((v - center) / spread).ravel() for v in (predicted, observed))
        unit += ", in deviations"
        note = " All outputs together, each in units of its own standard deviation."
    residuals = y - x
    quantiles = np.nanquantile(residuals, [0.05, 0.95]) if np.isfinite(residuals).any() else []
    between = " and ".join(number(float(q)) for q in quantiles)
    rmse = number(evaluation.metrics.get("rmse"))
    high = 5.6 if len(shown) > 4 else 3.9
    return [
        Picture(
            "Predicted against observed",
            f"On the line, a prediction is perfect.{which}{sample}",
            f"Predictions against observations of {counted(len(observed), 'row')}, around the "
            f"line of perfect agreement; root mean squared error {rmse}.",
            lambda figure, theme: draw.draw_agreement(
                figure, observed[:, shown], predicted[:, shown], drawn, theme
            ),
            (5.6, high),
        ),
        Picture(
            "Are predictions right on average?",
            "Rows are put in ten groups of equal size by their prediction: the mean that was "
            f"observed in each should lie on the line.{note}",
            "Mean observed against mean predicted in each tenth of the rows.",
            lambda figure, theme: draw.draw_deciles(figure, x, y, theme),
            (5.6, high),
        ),
        Picture(
            "How large errors are",
            f"Nine errors in ten lie between {between}.{note}"
            if between
            else "No error could be counted.",
            f"Histogram of errors beside a normal law; nine in ten lie between {between}.",
            lambda figure, theme: draw.draw_residual_histogram(figure, residuals, theme, unit),
        ),
        Picture(
            "Where errors are",
            "Errors against the prediction: the mean should stay at zero, and the width the "
            f"same along the way.{note}",
            "Errors against predictions, with their mean in each tenth of the rows.",
            lambda figure, theme: draw.draw_residuals(figure, x, residuals, theme, unit),
        ),
    ]


def _worst_outputs(observed: Array, predicted: Array) -> list[int]:
    error = np.sqrt(np.mean((observed - predicted) ** 2, axis=0))
    spread = observed.std(axis=0)
    share = np.nan_to_num(error / np.where(spread > 0, spread, 1.0))
    return sorted(np.argsort(-share, kind="stable")[:_MOST_OUTPUTS].tolist())


def _outputs(evaluation: Evaluation) -> Picture | None:
    parts = evaluation.parts
    if len(parts) < 2:
        return None
    names = [part["output"] for part in parts]
    shares = [_share(part) for part in parts]
    worst = int(np.nanargmax(shares)) if np.isfinite(shares).any() else 0
    many = f" The worst {MOST} of {len(parts)}." if len(parts) > MOST else ""
    return Picture(
        "Each output",
        f"Error in units of the output's standard deviation: 0 is perfect.{many}",
        f"Bars of the error of each output; the largest is {number(shares[worst])} of its "
        f"deviation, of {names[worst]}.",
        lambda figure, theme: draw.draw_output_bars(figure, names, shares, theme),
        (5.6, _height(len(parts))),
    )


def _share(part: dict[str, Any]) -> float:
    deviation, error = part.get("deviation") or 0.0, part.get("rmse")
    return float(error) / deviation if error is not None and deviation > 0 else float("nan")


def _confusion(evaluation: Evaluation) -> Picture | None:
    confusion, classes = evaluation.confusion, evaluation.classes
    if confusion is None or not len(classes):
        return None
    pairs = draw.confused_pairs(confusion, 1)
    most = "no two classes are confused"
    if pairs:
        i, j, rows, _ = pairs[0]
        most = f"most often, in {counted(rows, 'row')}, {classes[i]} is taken for {classes[j]}"
    if len(classes) > MOST_CLASSES:
        return Picture(
            "Which classes are confused",
            f"The most frequent mistakes among {len(classes)} classes: the true class, and the "
            "one that was named.",
            f"Bars of the most frequent mistakes; {most}.",
            lambda figure, theme: draw.draw_confused_pairs(figure, confusion, classes, theme),
            (5.6, 4.6),
        )
    dense = len(classes) > 12
    return Picture(
        "Which classes are confused",
        "Every row of the matrix is a true class, every column what was named; numbers count "
        "test rows, and on the diagonal they are right.",
        f"Confusion matrix of {len(classes)} classes; {most}.",
        lambda figure, theme: draw.draw_confusion(figure, confusion, classes, theme),
        (8.4, 7.2) if dense else (5.6, 4.4),
        dense,
    )


def _reliability(evaluation: Evaluation) -> Picture | None:
    probabilities = evaluation.probabilities
    if probabilities is None or not len(probabilities):
        return None
    truth = np.asarray(evaluation.observed).reshape(-1).astype(int)
    if probabilities.shape[1] == 2:
        what = f"probability of {evaluation.classes[1]}"
        confidence, hit = probabilities[:, 1], truth == 1
    else:
        what = "probability of the class that is named"
        confidence = probabilities.max(axis=1)
        hit = probabilities.argmax(axis=1) == truth
    brier = number(evaluation.metrics.get("brier"))
    share = percent(float(np.mean(hit)))

    return Picture(
        "Can probabilities be believed?",
        "Of the rows where 80 % was named, 80 % should come true: on the line they do. Below, "
        f"how many rows named each. Brier score {brier}; 0 is perfect.",
        f"Reliability diagram of the {what}: on the whole {share} came true; Brier score "
        f"{brier}.",
        lambda figure, theme: draw.draw_reliability(
            figure, confidence, hit, theme, label(what, 48)
        ),
        (5.6, 4.4),
    )


def _classes(evaluation: Evaluation) -> Picture | None:
    parts = evaluation.parts
    if not parts:
        return None
    names = [part.get("class") for part in parts]
    recall, precision = (
        [_number(part.get(key)) for part in parts] for key in ("recall", "precision")
    )
    many = f" The worst {MOST} of {len(parts)} classes." if len(parts) > MOST else ""
    low = min(range(len(parts)), key=lambda i: float(np.nan_to_num(recall[i], nan=2.0)))
    return Picture(
        "Each class",
        "Recall is the share of its rows that are found, precision the share of the rows so "
        f"named that are right.{many}",
        f"Bars of recall and precision of each class; the lowest recall is "
        f"{percent(recall[low])}, of {names[low]}.",
        lambda figure, theme: draw.draw_class_bars(figure, names, recall, precision, theme),
        (5.6, _height(len(parts))),
    )


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _height(count: int) -> float:
    return float(np.clip(1.5 + 0.24 * min(count, MOST), 3.9, 6.2))
