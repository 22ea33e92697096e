"""Numbers and findings in words that need no statistics to be read."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.tabular.outcome import Evaluation
from imparo.theory.costs import as_time

_FIRST_WORDS = {
    "a", "all", "an", "column", "columns", "each", "every", "few", "in", "missing", "no",
    "numbers", "of", "on", "only", "rows", "some", "test", "the", "there", "this", "values",
}  # fmt: skip
# The metric that a report is about, by task.
LEADING = {"regression": "rmse", "classification": "error"}
METRICS = {
    "rmse": ("RMSE", "the size of a typical error (root mean square), in units of the target"),
    "mae": ("MAE", "the mean size of an error, in units of the target"),
    "r2": ("R²", "the share of the target's variance that is explained; 1 is perfect"),
    "error": ("error", "the share of rows with a wrong class"),
    "balanced_error": ("balanced error", "the same, with every class counting alike"),
    "brier": ("Brier score", "squared error of the probabilities; 0 is perfect, 2 the worst"),
}


def number(value: Any) -> str:
    """Return a number with three digits that count, or a dash for none.

    Parameters
    ----------
    value : number or None

    Returns
    -------
    str

    Examples
    --------
    >>> from imparo.reports.words import number
    >>> number(12345.6), number(0.04217), number(1e-7), number(float("nan"))
    ('12,346', '0.0422', '1e-7', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value < 0:
        return f"−{number(-value)}"
    if value == int(value) and value < 1e15:
        return f"{int(value):,}"
    if 1000 <= value < 1e9:
        return f"{value:,.0f}"
    base, mark, exponent = f"{value:.3g}".partition("e")
    return f"{base}e{int(exponent)}" if mark else base


def percent(share: float) -> str:
    """Return a share as a percentage; only what is nothing, or all, is shown as such.

    Parameters
    ----------
    share : float

    Returns
    -------
    str

    Examples
    --------
    >>> from imparo.reports.words import percent
    >>> percent(0.0166), percent(0.75), percent(0.9999), percent(1.0)
    ('1.7 %', '75 %', '99.9 %', '100 %')
    """
    if share is None or not math.isfinite(share):
        return "–"
    value = 100 * share
    if 99 < value < 100:
        return f"{min(value, 99.9):.1f} %"
    return f"{value:.0f} %" if abs(value) >= 10 else f"{value:.2g} %"


def metric(name: str, value: Any) -> str:
    """Return the value of a metric as its name calls for."""
    if value is not None and name.endswith("error"):
        return percent(value)
    if value is not None and name == "r2" and abs(value) < 100:
        return number(round(value, 3))
    return number(value)


def listed(names: Sequence[Any], most: int = 3) -> str:
    """Return names as an enumeration, of which the rest is counted.

    Parameters
    ----------
    names : sequence
    most : int
        How many are named.

    Returns
    -------
    str

    Examples
    --------
    >>> from imparo.reports.words import listed
    >>> listed(["a", "b"]), listed("abcdef")
    ('a and b', 'a, b, c and 3 more')
    """
    shown = [str(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def value_of(value: Any) -> str:
    """Return a parameter in words: a number, a text, or how many values and between which."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | float | np.number):
        return number(float(value)) if not isinstance(value, int) else f"{value:,}"
    if isinstance(value, list | tuple | np.ndarray):
        values = np.asarray(value)
        if values.size > 6 and values.dtype.kind in "iuf":
            low, high = number(float(values.min())), number(float(values.max()))
            return f"{values.size:,} values between {low} and {high}"
        if values.size > 6:
            return f"{values.size:,} values"
        return ", ".join(value_of(item) for item in values.ravel().tolist())
    return "none" if value is None else str(value)


def duration(seconds: float) -> str:
    """Return a time as people say it.

    Parameters
    ----------
    seconds : float

    Returns
    -------
    str

    Examples
    --------
    >>> from imparo.reports.words import duration
    >>> duration(4e-5), duration(0.0871), duration(5.27), duration(float("nan"))
    ('0 ms', '87 ms', '5.3 s', '–')
    """
    if not math.isfinite(seconds):
        return "–"
    return as_time(seconds) if seconds >= 0.9995 else f"{1000 * seconds:.0f} ms"


def sentence(text: str) -> str:
    """Return words as a sentence; a first word that may be a name stays as it is.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from imparo.reports.words import sentence
    >>> sentence("the rows are few"), sentence("age was left out.")
    ('The rows are few.', 'age was left out.')
    """
    text = text.strip()
    first = text.split(" ", 1)[0]
    if first in _FIRST_WORDS:
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def counted(n: int, what: str) -> str:
    """Return a number of things, one without the plural."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def gain(evaluation: Evaluation) -> float:
    """Return the share of the baseline's error that the model takes away, or NaN."""
    name = LEADING[evaluation.task]
    ours, theirs = evaluation.metrics.get(name), evaluation.baseline.get(name)
    if ours is None or theirs is None or not math.isfinite(ours) or not theirs > 0:
        return math.nan
    return 1 - ours / theirs


def verdict(evaluation: Evaluation, rows: str) -> str:
    """Return how good a model is, in sentences for whoever has to decide on it.

    Parameters
    ----------
    evaluation : Evaluation
    rows : str
        Which rows these are, such as "206 rows that it has not seen".

    Returns
    -------
    str
    """
    name, better = LEADING[evaluation.task], gain(evaluation)
    ours = evaluation.metrics.get(name)
    if ours is None or not math.isfinite(ours):
        return f"On {rows} the error could not be counted, so nothing can be said of it."
    theirs = evaluation.baseline.get(name)
    if evaluation.task == "classification":
        found = f"On {rows} it names the wrong class in {percent(ours)} of the cases."
        other = "Always naming the most frequent class"
        compared = f"{other} would be wrong in {percent(theirs or 0.0)}"
        fewer = "those mistakes are avoided"
    else:
        several = len(evaluation.outputs) > 1
        mean = f" (a mean over {len(evaluation.outputs)} targets)" if several else ""
        found = f"On {rows} its predictions are off by {number(ours)} in a typical case{mean}."
        other = "Always predicting the mean"
        compared = f"{other} would be off by {number(theirs)}"
        fewer = "that error is taken away"
    if math.isnan(better):
        return found
    if better <= 0:
        return (
            f"{found} {compared}: the model is no better than that, and should not be "
            "relied on."
        )
    return f"{found} {compared}: {percent(better)} of {fewer}."
