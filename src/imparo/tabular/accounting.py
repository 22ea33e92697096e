"""An honest account of a fit: what went in, what was chosen, what it took."""

import os
import platform
import re
import resource
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from imparo.data.readers import Rows
from imparo.engine import default_engine
from imparo.errors import ImparoWarning
from imparo.preparation.columns import listed
from imparo.tabular.gathering import Gathered
from imparo.tabular.machines import Method, chosen_parameters
from imparo.tabular.model import TableModel
from imparo.tabular.outcome import Account, Cost, Evaluation, plain
from imparo.tabular.roles import Roles
from imparo.tabular.splitting import Split
from imparo.tabular.targets import CLASSIFICATION
from imparo.theory.costs import seconds_of

# A class with fewer rows than this share of the largest is worth a word.
_RARE = 0.05


def resident_bytes() -> int:
    """Return the memory that this process has now."""
    return _status("VmRSS") or _peak()


def peak_bytes() -> int:
    """Return the most memory that this process has had."""
    # Linux counts the memory of the parent at the fork into ru_maxrss.
    return _status("VmHWM") or _peak()


def _status(name: str) -> int | None:
    """Return an entry of Linux' account of this process, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(f"{name}:")), None)
    return None if found is None else int(found.split()[1]) * 1024


def _peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def warnings_kept() -> Iterator[list[str]]:
    """Collect what imparo warns of, to be told in the account."""
    told: list[str] = []
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def keep(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, ImparoWarning):
                told.append(" ".join(str(message).split()))
            else:
                usual(message, category, *place, **more)

        warnings.simplefilter("always", ImparoWarning)
        warnings.showwarning = keep
        yield told


def account(
    rows: Rows, roles: Roles, table: Gathered, parts: Split, method: Method, model: TableModel,
    evaluation: Evaluation | None, curve: list[dict[str, float]], seconds: dict[str, float],
    memory: int, scratch_bytes: int, notes: list[str], warned: list[str], command: str,
    source: Any,
) -> Account:  # fmt: skip
    """Return the account of a fit.

    Parameters
    ----------
    rows, roles, table, parts, method, model, evaluation, curve
        What the fit was made of, and what came of it.
    seconds : dict of str to float
    memory, scratch_bytes : int
    notes : list of str
        What was decided without being told.
    warned : list of str
    command : str
    source : object
        What the user named.

    Returns
    -------
    Account
    """
    machine = model.machine
    inputs = model.inputs if model.inputs is not None else getattr(machine, "inputs_", None)
    preparation = [*notes, *(_named(inputs, model) if inputs is not None else ())]
    numbers = getattr(inputs, "numbers", None)
    if numbers is not None and numbers != "none":
        preparation.append(_SCALED[numbers])
    target = getattr(machine, "target_", "none")
    if target != "none":
        preparation.append(f"outputs were transformed ({target}) for the fit")
    names = [
        {"name": name, "kind": rows.kinds.get(name, "number"), "use": roles.use_of(name)}
        for name in rows.names
    ]
    trials = [
        {name: getattr(trial, name) for name in _TOLD}
        for trial in getattr(machine, "record_", [])
    ]
    budget = getattr(machine, "budget", None)
    cost = Cost(
        dict(seconds), budget, peak_bytes(), memory,
        _operations(model, len(parts.fit), trials),
        _product_rate() * seconds["fitting"], scratch_bytes,
    )  # fmt: skip
    path = getattr(machine, "path_", None)
    return Account(
        data=_described(rows, source), files=[str(file) for file in rows.files],
        rows_read=table.read, rows_bad=table.bad, rows_missing=table.missing,
        rows_fitted=len(parts.fit), rows_tested=len(parts.test), columns=names,
        target=list(roles.target), task=model.task, split=parts.words, preparation=preparation,
        method=getattr(machine, "method_", method.name), chosen=chosen_parameters(machine),
        validation=str(getattr(machine, "validation_", "") or getattr(path, "method", "")),
        path=path, trials=trials, stopped=getattr(machine, "stopped_", ""), curve=curve,
        relevance=_relevance(model), cost=cost, command=command, code=_code(source, model),
        environment=environment(),
        warnings=[*dict.fromkeys([*warned, *_worries(model, table, parts, evaluation, rows)])],
        evaluation=evaluation,
    )  # fmt: skip


_TOLD = ("method", "kernel", "n_centers", "n_rows", "error", "seconds", "note")
_SCALED = {
    "standard": "columns of numbers were scaled to mean 0 and deviation 1",
    "robust": "columns of numbers were scaled by their quartiles",
    "range": "columns of numbers were scaled to lie between −1 and 1",
    "quantile": "columns of numbers were mapped to normal deviates by their quantiles",
}


def _named(inputs: Any, model: TableModel) -> list[str]:
    """Return the notes of a preparation, with names of columns in place of x0, x1 and so on."""
    if model.is_sparse or not set(model.kinds.values()) <= {"number"}:
        return list(inputs.notes_)  # of a frame, they have names

    def name(found: re.Match[str]) -> str:
        return f"'{model.columns[int(found[1])]}'"

    return [re.sub(r"'x(\d+)'", name, note) for note in inputs.notes_]


def summary(found: Account) -> dict[str, Any]:
    """Return the few facts about a fit that stay with the model."""
    kept = ("data", "rows_fitted", "rows_tested", "split", "method", "chosen", "command")
    made = {name: plain(getattr(found, name)) for name in kept}
    made["environment"] = dict(found.environment)
    if found.evaluation is not None:
        made["metrics"] = plain(found.evaluation.metrics)
    return made


def environment() -> dict[str, str]:
    """Return versions, and what machine this is."""
    found = {"imparo": version("imparo"), "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cores"] = str(os.cpu_count())
    return found


def as_code(source: Any, target: Any, method: str, given: dict[str, Any]) -> str:
    """Return the call of Python that a fit was asked for with."""
    named = f", {target!r}" if target is not None else ""
    settings = "".join(f", {name}={value!r}" for name, value in given.items())
    chosen = f", method={method!r}" if method != "auto" else ""
    return f"fit_table({_short(source)}{named}{chosen}{settings})"


def _code(source: Any, model: TableModel) -> str:
    return (
        "import imparo\n"
        "from imparo.tabular import as_rows\n\n"
        'model = imparo.load("model.imparo")\n'
        f"for block in as_rows({_short(source)}).blocks():\n"
        f"    print(model.predict({'block.X' if model.is_sparse else 'block'}))\n"
    )


def _short(source: Any) -> str:
    return repr(str(source)) if isinstance(source, str | os.PathLike) else "rows"


def _described(rows: Rows, source: Any) -> str:
    if not rows.files:
        return source if isinstance(source, str) else "rows in memory"
    if len(rows.files) == 1:
        return f"{rows.files[0]} ({rows.format})"
    folder = os.path.commonpath([os.path.abspath(file) for file in rows.files])
    return f"{len(rows.files):,} files in {folder} ({rows.format})"


def _relevance(model: TableModel) -> list[dict[str, Any]]:
    values = getattr(model.machine, "relevance_", None)
    if values is None or model.is_sparse:
        return []
    if model.inputs is not None:  # columns of the machine are prepared ones
        values = np.bincount(model.inputs.sources_, weights=values, minlength=model.n_columns)
    pairs = zip(model.columns, np.asarray(values).tolist(), strict=True)
    return [{"name": name, "relevance": value} for name, value in pairs]


def _product_rate() -> float:
    """Return the operations a second of matrix products here, in a tenth of a second."""
    square = np.ones((1024, 1024))
    engine = default_engine()
    return 2 * 1024**3 / seconds_of(lambda: engine.product(square, square))


def _operations(model: TableModel, n: int, trials: list[dict[str, Any]]) -> float:
    """Return the floating-point operations of a fit: 2nmd + nm² + 10m³ of every trial."""
    d = getattr(model.machine, "n_features_in_", model.n_columns)
    m = getattr(model.machine, "n_centers_", None) or getattr(
        model.machine, "n_features_", None
    )
    sizes = [(t["n_rows"], t["n_centers"]) for t in trials] or [(n, int(m or n))]
    return float(sum(2.0 * k * s * d + float(k) * s**2 + 10.0 * s**3 for k, s in sizes))


def _worries(
    model: TableModel, table: Gathered, parts: Split, evaluation: Evaluation | None, rows: Rows
) -> list[str]:
    """Return what the reader of a report should know, in plain words."""
    found = []
    if table.bad:
        found.append(
            f"{table.bad:,} rows could not be used and were skipped; the first: "
            f"{rows.bad.examples[0]}"
        )
    if table.missing:
        found.append(f"{table.missing:,} rows with a missing value were left out")
    left_out = getattr(rows, "left_out", {})
    if left_out:
        found.append(f"not read: {listed(list(left_out))} ({next(iter(left_out.values()))})")
    path = getattr(model.machine, "path_", None)
    edges = [name for name in getattr(path, "at_edge", []) if name in ("penalty", "sigma")]
    if edges:
        found.append(
            f"the best {' and '.join(edges)} lies at the end of what was tried; a wider grid "
            "may be better"
        )
    if model.task == CLASSIFICATION:
        cells = table.y.astype(str) if table.y.dtype == object else table.y
        names, counts = np.unique(cells, return_counts=True)
        fitted = set(cells[parts.fit].tolist())
        labels = [f"{v:g}" if isinstance(v, float) else str(v) for v in names.tolist()]
        few = (counts < _RARE * counts.max()).tolist()
        rare = [name for name, is_rare in zip(labels, few, strict=True) if is_rare]
        if rare:
            found.append(
                f"rare classes: {listed(rare)}; look at their rows of the table of classes, "
                "not only at the error"
            )
        pairs = zip(labels, names.tolist(), strict=True)
        unknown = [name for name, value in pairs if value not in fitted]
        if unknown:
            found.append(f"classes of test rows only, which were not fitted: {listed(unknown)}")
    if getattr(model.machine, "stopped_", "") == "interrupted":
        found.append("the search was interrupted; this is the best model until then")
    if evaluation is None:
        found.append("no rows were kept for a test, so how good it is was not measured")
        return found
    metric = "error" if model.task == CLASSIFICATION else "rmse"
    if not np.isfinite(evaluation.baseline[metric]):
        metric = "mae"
    if evaluation.metrics[metric] >= 0.98 * evaluation.baseline[metric]:
        found.append(
            "the model is hardly better than always predicting the "
            + ("most frequent class" if model.task == CLASSIFICATION else "mean")
            + "; the columns may not tell the target"
        )
    if evaluation.rows < 100:
        found.append(f"the test has {evaluation.rows} rows only; its errors are rough")
    return found
