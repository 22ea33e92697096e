"""What came of a fit, and of an evaluation: plain values to print, draw and write."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.paths import Path


@dataclass(frozen=True)
class Evaluation:
    """How well predictions agree with what was observed, on rows that were not fitted.

    Attributes
    ----------
    task : "regression" or "classification"
    rows : int
        Number of rows.
    source : str
        Which rows these are, in words.
    outputs : list of str
        Names of the outputs: one, or several for regression of several.
    classes : list
        Labels, in the order of ``confusion``; empty for regression.
    metrics : dict of str to float
        Regression: "rmse", "mae", "r2". Classification: "error" (the misclassification rate),
        "balanced_error" (the mean of the classes' rates) and "brier" (mean squared error of
        probabilities, 0 to 2). Means over outputs, if there are several.
    baseline : dict of str to float
        The same metrics of the simplest model: the mean of the fitted outputs, or their most
        frequent class.
    parts : list of dict
        One for each output ("output", "rmse", "mae", "r2", "mean", "deviation") or class
        ("class", "rows", "precision", "recall", "f1").
    confusion : array of shape (C, C) or None
        Rows are true classes, columns predicted ones.
    observed, predicted : array of shape (k, T)
        A random sample of at most 20,000 rows for pictures: outputs and predictions; for
        classification one column, positions in ``classes``.
    probabilities : array of shape (k, C) or None
        Of those rows, for classification.
    """

    task: str
    rows: int
    source: str
    outputs: list[str]
    classes: list[Any]
    metrics: dict[str, float]
    baseline: dict[str, float]
    parts: list[dict[str, Any]]
    confusion: Array | None
    observed: Array
    predicted: Array
    probabilities: Array | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all but the sample as plain values, for JSON."""
        sample = ("observed", "predicted", "probabilities")
        return plain({k: v for k, v in vars(self).items() if k not in sample})


@dataclass(frozen=True)
class Cost:
    """What a fit took.

    Attributes
    ----------
    seconds : dict of str to float
        By step, in order: such as "reading", "preparing", "fitting", "testing".
    budget : float or None
        Seconds that were allowed for fitting, where a budget was given.
    peak_bytes : int
        The most memory that the process had, measured.
    memory : int
        Bytes that were allowed.
    flops : float
        Floating-point operations of the fit, counted by formula.
    flops_possible : float
        What matrix products of this machine would have done in the same seconds, measured.
    scratch_bytes : int
        Bytes written beside, for rows that do not fit in memory; 0 if they do.
    """

    seconds: dict[str, float]
    budget: float | None
    peak_bytes: int
    memory: int
    flops: float
    flops_possible: float
    scratch_bytes: int = 0


@dataclass(frozen=True)
class Account:
    """What was fitted, on what, how it was chosen, and what it took.

    Attributes
    ----------
    data : str
        What was read, in words.
    files : list of str
    rows_read, rows_bad, rows_missing, rows_fitted, rows_tested : int
        Rows in the files that can be read; that could not be; that were left out for a missing
        value; that the model knows; that it is judged on.
    columns : list of dict
        "name", "kind" ("number", "text", "date", "duration") and "use" ("input", "target",
        "weight", "group", "time", "dropped").
    target : list of str
    task : "regression" or "classification"
    split : str
        How the test rows were taken, in words.
    preparation : list of str
        What was done to the columns, in sentences.
    method : str
        Such as "nystrom".
    chosen : dict
        The parameters in use: "kernel", "sigma", "penalty", "n_centers" …, as they apply.
    validation : str
        What judged, in words.
    path : Path or None
        Validation errors over the grids of the model in use.
    trials : list of dict
        What was tried, in order: "method", "kernel", "n_centers", "n_rows", "error", "seconds",
        "note". Empty for a method that was given.
    stopped : str
        Why the search ended; "" for a method that was given.
    curve : list of dict
        The learning curve: "rows" and "error" (on the test rows) of the same model fitted to
        fewer rows; may be empty.
    relevance : list of dict
        "name" and "relevance" of the input columns, where widths of columns were learned.
    cost : Cost
    command : str
        The command that does it again.
    code : str
        How to predict with it in Python.
    environment : dict of str to str
        Versions and machine.
    warnings : list of str
        What the reader should know, in plain words.
    evaluation : Evaluation or None
        On the test rows.
    """

    data: str
    files: list[str]
    rows_read: int
    rows_bad: int
    rows_missing: int
    rows_fitted: int
    rows_tested: int
    columns: list[dict[str, str]]
    target: list[str]
    task: str
    split: str
    preparation: list[str]
    method: str
    chosen: dict[str, Any]
    validation: str
    path: Path | None
    trials: list[dict[str, Any]]
    stopped: str
    curve: list[dict[str, float]]
    relevance: list[dict[str, Any]]
    cost: Cost
    command: str
    code: str
    environment: dict[str, str]
    warnings: list[str] = field(default_factory=list)
    evaluation: Evaluation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        found = dict(vars(self))
        found["path"] = None if self.path is None else self.path.to_dict()
        found["cost"] = asdict(self.cost)
        found["evaluation"] = None if self.evaluation is None else self.evaluation.to_dict()
        return plain(found)


def plain(value: Any) -> Any:
    """Return nested values as JSON has them: NumPy's types as Python's, NaN as None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
