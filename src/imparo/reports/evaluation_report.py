"""The report of ``imparo evaluate``: how good a model is on given rows."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from imparo.reports.evaluation_pictures import curve_picture, evaluation_pictures
from imparo.reports.page import Page
from imparo.reports.words import (
    LEADING,
    METRICS,
    counted,
    gain,
    listed,
    metric,
    number,
    percent,
    sentence,
    verdict,
)
from imparo.tabular.outcome import Evaluation

FORMAT = 1
_MOST_PARTS = 40
_HEADINGS = {
    "class": "class",
    "rows": "rows",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "output": "output",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "mean": "mean",
    "deviation": "deviation",
}


def evaluation_page(
    evaluation: Evaluation,
    model: dict[str, Any] | None = None,
    *,
    warnings: Iterable[str] = (),
    command: str = "",
    code: str = "",
    environment: dict[str, str] | None = None,
) -> Page:
    """Return the report of an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
    model : dict of str to str, optional
        What the model is, as names and values: "file", "method", "kernel" …
    warnings : iterable of str
        Sentences to be read first.
    command, code : str
        What does it again, in a shell and in Python.
    environment : dict of str to str, optional
        Versions and machine.

    Returns
    -------
    Page

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.reports import evaluation_page
    >>> from imparo.tabular.outcome import Evaluation
    >>> y = np.arange(5.0)[:, None]
    >>> errors = {"rmse": 0.1, "mae": 0.1, "r2": 0.99}
    >>> baseline = {"rmse": 1.4, "mae": 1.2, "r2": 0.0}
    >>> found = Evaluation("regression", 5, "new.csv", ["y"], [], errors, baseline, [], None,
    ...                    y, y + 0.1)
    >>> evaluation_page(found).title
    'How well y is predicted'
    """
    page = Page(
        f"How well {listed(evaluation.outputs)} {_is(evaluation)} predicted",
        verdict(evaluation, counted(evaluation.rows, "row")),
        "imparo · evaluation of a model",
        {"format": FORMAT, "kind": "evaluation", "model": model or {}, **evaluation.to_dict()},
    )
    for words in warnings:
        page.warn(sentence(words))
    add_cards(page, evaluation)
    page.card(f"{evaluation.rows:,}", "rows it was judged on")
    page.part("How good it is")
    facts = [("rows", evaluation.source), ("number of rows", f"{evaluation.rows:,}")]
    facts += [(str(name), str(value)) for name, value in (model or {}).items()]
    add_evaluation(page, evaluation, facts=facts)
    if command or code or environment:
        add_reproduction(page, command, code, environment or {})
    return page


def add_cards(page: Page, evaluation: Evaluation) -> None:
    """Add the first numbers of an evaluation to a page."""
    name, better = LEADING[evaluation.task], gain(evaluation)
    values, baseline = evaluation.metrics, evaluation.baseline
    tone = "" if math.isnan(better) else "good" if better > 0 else "bad"
    what = "typical error (RMSE)" if name == "rmse" else "of the rows get a wrong class"
    page.card(metric(name, values.get(name)), what, tone)
    page.card(metric(name, baseline.get(name)), f"{what} with the simplest model")
    if not math.isnan(better):
        sign = "−" if better > 0 else "+"
        page.card(f"{sign}{percent(abs(better))}", "error against the simplest model", tone)
    if evaluation.task == "regression" and "r2" in values:
        page.card(number(values["r2"]), "R²: share of the variance explained")


def add_evaluation(
    page: Page,
    evaluation: Evaluation,
    curve: Sequence[dict[str, float]] = (),
    facts: Iterable[tuple[str, str]] = (),
) -> None:
    """Add metrics, pictures and the table of classes or outputs to the part begun last.

    Parameters
    ----------
    page : Page
    evaluation : Evaluation
    curve : sequence of dict
        The learning curve of the fit.
    facts : iterable of (name, value)
        On the model and the rows.
    """
    facts = list(facts)
    if facts:
        page.facts("What was judged", "", facts)
    names = [name for name in METRICS if name in evaluation.metrics]
    names += [name for name in evaluation.metrics if name not in METRICS]
    rows = [
        [
            METRICS.get(name, (name, ""))[0],
            metric(name, evaluation.metrics[name]),
            metric(name, evaluation.baseline.get(name)),
            METRICS.get(name, ("", ""))[1],
        ]
        for name in names
    ]
    simplest = "the most frequent class" if evaluation.task == "classification" else "the mean"
    page.table(
        "The errors in numbers",
        f"The simplest model always answers {simplest} of the rows that were fitted.",
        ["metric", "model", "simplest", "what it is"],
        rows,
    )
    leading = LEADING[evaluation.task]
    for picture in evaluation_pictures(evaluation):
        page.add(picture)
    page.add(curve_picture(curve, leading, evaluation.baseline.get(leading)))
    _add_parts(page, evaluation.parts)


def add_reproduction(page: Page, command: str, code: str, environment: dict[str, str]) -> None:
    """Add the part on how to do it again."""
    page.part("How to reproduce it")
    if command:
        page.code("In a shell", "", command)
    if code:
        page.code("In Python", "", code)
    if environment:
        page.facts("Versions and machine", "", environment.items())


def _add_parts(page: Page, parts: Sequence[dict[str, Any]]) -> None:
    if not parts or (len(parts) == 1 and "output" in parts[0]):
        return
    keys = list(parts[0])
    shown, note = list(parts), ""
    if len(parts) > _MOST_PARTS:
        worst = "f1" if "f1" in keys else "r2"
        ranked = sorted(range(len(parts)), key=lambda i: _rank(parts[i].get(worst)))
        shown = [parts[i] for i in sorted(ranked[:_MOST_PARTS])]
        note = f"The {_MOST_PARTS} worst of {len(parts):,}; all are in the JSON report."
    page.table(
        f"Every {_HEADINGS.get(keys[0], keys[0])} in numbers",
        "",
        [_HEADINGS.get(key, key) for key in keys],
        [[str(p[keys[0]]), *(_cell(key, p.get(key)) for key in keys[1:])] for p in shown],
        note=note,
        folded="class" in keys,
    )


def _rank(value: Any) -> float:
    return -math.inf if value is None or math.isnan(value) else float(value)


def _cell(key: str, value: Any) -> str:
    shares = ("precision", "recall", "f1")
    return percent(value) if key in shares and value is not None else number(value)


def _is(evaluation: Evaluation) -> str:
    return "is" if len(evaluation.outputs) == 1 else "are"
