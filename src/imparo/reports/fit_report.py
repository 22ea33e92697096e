"""The report of ``imparo fit``: what was fitted, how it was chosen, how good it is."""

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from imparo.reports import pictures as draw
from imparo.reports.drawing import Picture
from imparo.reports.evaluation_report import (
    FORMAT,
    add_cards,
    add_evaluation,
    add_reproduction,
)
from imparo.reports.page import Page
from imparo.reports.pictures.maps import NAMES
from imparo.reports.pictures.resources import operations
from imparo.reports.words import (
    counted,
    duration,
    listed,
    number,
    percent,
    sentence,
    value_of,
    verdict,
)
from imparo.tabular.outcome import Account
from imparo.theory.costs import as_bytes

_MOST_COLUMNS = 40
_MOST_FILES = 40
_MOST_TRIALS = 25
_USES = ("target", "weight", "group", "time", "input", "dropped")


def fit_page(account: Account) -> Page:
    """Return the report of a fit.

    Parameters
    ----------
    account : Account

    Returns
    -------
    Page
        With a picture for everything that was measured.
    """
    page = Page(
        f"Predicting {listed(account.target)}",
        _lead(account),
        "imparo · report of a fit",
        {"format": FORMAT, "kind": "fit", **account.to_dict()},
    )
    for words in account.warnings:
        page.warn(sentence(words))
    total = sum(account.cost.seconds.values())
    if account.evaluation is not None:
        add_cards(page, account.evaluation)
    elif account.path is not None:
        page.card(number(account.path.best["error"]), f"{account.path.metric} in validation")
    page.card(f"{account.rows_fitted:,}", "rows fitted")
    page.card(duration(total), "from reading to the model")
    _add_data(page, account)
    _add_choice(page, account)
    if account.evaluation is not None:
        page.part("How good it is", sentence(f"Judged on {account.evaluation.source}"))
        add_evaluation(page, account.evaluation, account.curve)
    _add_cost(page, account)
    add_reproduction(page, account.command, account.code, account.environment)
    _add_files(page, account.files)
    return page


def _lead(account: Account) -> str:
    fitted = f"The model learned from {counted(account.rows_fitted, 'row')}."
    if account.evaluation is not None:
        rows = f"{counted(account.evaluation.rows, 'row')} that it has not seen"
        return f"{fitted} {verdict(account.evaluation, rows)}"
    return f"{fitted} No rows were kept for a test, so its error on new rows is not known."


def _add_data(page: Page, account: Account) -> None:
    page.part("What was fitted, and on what")
    chosen = [
        (NAMES.get(k, k.replace("_", " ")), value_of(v)) for k, v in account.chosen.items()
    ]
    page.facts(
        "The model", "",
        [("target", listed(account.target, 6)), ("task", account.task),
         ("method", account.method), *chosen],
    )  # fmt: skip
    page.facts(
        "The rows", "",
        [("data", account.data), ("read", f"{account.rows_read:,}"),
         ("could not be read", f"{account.rows_bad:,}"),
         ("left out for missing values", f"{account.rows_missing:,}"),
         ("fitted", f"{account.rows_fitted:,}"),
         ("kept for the test", f"{account.rows_tested:,}"), ("split", account.split)],
    )  # fmt: skip
    if account.preparation:
        page.sentences("What was done to the columns", "", map(sentence, account.preparation))
    if account.columns:
        _add_columns(page, account.columns)


def _add_columns(page: Page, columns: list[dict[str, str]]) -> None:
    """Add the columns: those with a role first, inputs then, in the order of the file."""
    places = {use: i for i, use in enumerate(_USES)}
    ordered = sorted(columns, key=lambda c: places.get(c["use"], len(_USES)))
    rest, note = ordered[_MOST_COLUMNS:], ""
    if rest:
        uses = Counter(f"{column['kind']}, {column['use']}" for column in rest)
        kinds = "; ".join(f"{count:,} ({use})" for use, count in uses.most_common())
        note = f"And {counted(len(rest), 'more column')}: {kinds}."
    page.table(
        "The columns",
        f"{counted(len(columns), 'column')} in the file.",
        ["name", "kind", "use"],
        [[c["name"], c["kind"], c["use"]] for c in ordered[:_MOST_COLUMNS]],
        note=note,
        folded=True,
    )


def _add_choice(page: Page, account: Account) -> None:
    path, trials = account.path, account.trials
    if path is None and not trials and not account.validation:
        return
    by = account.validation
    if re.fullmatch(r"\d+-fold|hold-out|leave-one-out", by):
        by += " validation"
    words = [sentence(f"Models were compared by {by}") if by else ""]
    if account.stopped:
        words.append(f"The search ended because {account.stopped}.")
    page.part("How it was chosen", " ".join(filter(None, words)))
    page.add(_path_picture(account))
    if trials:
        page.add(_trials_picture(account))
    if account.relevance:
        page.add(_relevance_picture(account))
    if trials:
        _add_trials(page, trials)


def _path_picture(account: Account) -> Picture | None:
    path = account.path
    if path is None or not draw.varied_axes(path):
        return None
    best = path.best
    names = draw.varied_axes(path)
    at = " and ".join(f"{NAMES.get(name, name)} = {number(best[name])}" for name in names)
    edge = ""
    if path.at_edge:
        edges = listed([NAMES.get(name, name) for name in path.at_edge])
        edge = f" The best is at the end of the grid of {edges}."
    what = "map" if len(names) > 1 else "curve"
    return Picture(
        "The path and the chosen point",
        f"Error in validation ({path.method}) of {path.errors.size:,} models. Inside the "
        f"marked region a model is as good as the best within 5 %.{edge}",
        f"A {what} of the validation error over {listed([NAMES.get(n, n) for n in names])}. "
        f"The smallest, {number(best['error'])}, is at {at}.",
        lambda figure, theme: draw.draw_path(figure, path, theme),
    )


def _trials_picture(account: Account) -> Picture:
    trials = account.trials
    errors = [_float(trial.get("error")) for trial in trials]
    seconds = [_float(trial.get("seconds")) for trial in trials]
    ended = [error for error in errors if math.isfinite(error)]
    best = number(min(ended)) if ended else "none"
    methods = [str(trial.get("method", "")) for trial in trials]
    name = account.path.metric if account.path is not None else "validation error"
    return Picture(
        "What was tried",
        f"{counted(len(trials), 'trial')}, each at the time when it was done.",
        f"Validation errors of {counted(len(trials), 'trial')} over "
        f"{duration(math.fsum(s for s in seconds if math.isfinite(s)))}; the best is {best}.",
        lambda figure, theme: draw.draw_trials(figure, seconds, errors, methods, theme, name),
    )


def _relevance_picture(account: Account) -> Picture:
    names = [str(item["name"]) for item in account.relevance]
    values = [_float(item["relevance"]) for item in account.relevance]
    first = names[max(range(len(names)), key=lambda i: values[i])]
    many = f" The first 20 of {len(names):,}." if len(names) > 20 else ""
    return Picture(
        "What each column counts",
        "From the widths that the kernel learned for the columns: where the output changes "
        f"fast along a column, it counts more.{many}",
        f"Bars of the relevance of columns; the most relevant is {first}.",
        lambda figure, theme: draw.draw_relevance(figure, names, values, theme),
        (5.6, max(2.4, 1.1 + 0.28 * min(len(names), 20))),
    )


def _add_trials(page: Page, trials: list[dict[str, Any]]) -> None:
    errors = [_float(trial.get("error")) for trial in trials]
    order = sorted(range(len(trials)), key=lambda i: (not math.isfinite(errors[i]), errors[i]))
    shown = sorted(order[:_MOST_TRIALS])
    note = ""
    if len(trials) > len(shown):
        note = f"The best {len(shown)} of {len(trials):,}; all are in the JSON report."
    page.table(
        "Every trial in numbers", "",
        ["method", "kernel", "centers", "rows", "error", "time", "why"],
        [[str(t.get("method", "")), str(t.get("kernel", "")), number(t.get("n_centers")),
          number(t.get("n_rows")), number(errors[i]), duration(_float(t.get("seconds"))),
          str(t.get("note", ""))] for i, t in ((i, trials[i]) for i in shown)],
        shown.index(order[0]) if math.isfinite(errors[order[0]]) else -1,
        note=note,
    )  # fmt: skip


def _add_cost(page: Page, account: Account) -> None:
    cost = account.cost
    total = sum(cost.seconds.values())
    page.part("What it took")
    facts = [(f"time for {step}", duration(seconds)) for step, seconds in cost.seconds.items()]
    facts.append(("time in all", duration(total)))
    if cost.budget is not None:
        facts.append(("budget for fitting", duration(cost.budget)))
    facts += [
        ("most memory", f"{as_bytes(cost.peak_bytes)} of {as_bytes(cost.memory)} allowed"),
        ("operations", f"{operations(cost.flops)}, counted by formula"),
    ]
    if cost.flops_possible > 0:
        share = percent(cost.flops / cost.flops_possible)
        possible = f"{operations(cost.flops_possible)} in the same time: {share} used"
        facts.append(("possible on this machine", possible))
    if cost.scratch_bytes:
        facts.append(("written beside", as_bytes(cost.scratch_bytes)))
    page.add(
        Picture(
            "Time, memory and operations",
            "What was used, of what was allowed or possible.",
            f"Bars: {duration(total)} in all; {as_bytes(cost.peak_bytes)} of "
            f"{as_bytes(cost.memory)} of memory; {operations(cost.flops)} of "
            f"{operations(cost.flops_possible)}.",
            lambda figure, theme: draw.draw_cost(figure, cost, theme),
            (5.6, 2.9),
        )
    )
    page.facts("The same in numbers", "", facts)


def _add_files(page: Page, files: list[str]) -> None:
    if not files:
        return
    note = ""
    if len(files) > _MOST_FILES:
        note = f"And {len(files) - _MOST_FILES:,} more; all are in the JSON report."
    rows = [[file, _size(file)] for file in files[:_MOST_FILES]]
    page.table("Data files", "", ["file", "size"], rows, note=note)


def _size(file: str) -> str:
    try:
        return as_bytes(Path(file).stat().st_size)
    except (OSError, ValueError):
        return "–"


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)
