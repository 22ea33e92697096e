"""What was done to a table, in sentences for people."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from imparo.engine import Array
from imparo.preparation.columns import Survey, listed
from imparo.preparation.groups import OF_TEXT, Group, Setting

# Sentences on single columns; further ones are counted.
_MOST = 5


def of_columns(names: Sequence[str], one: str, many: str) -> str:
    """Return the subject of a sentence with its verb.

    Examples
    --------
    >>> from imparo.preparation.notes import of_columns
    >>> of_columns(["a"], "is", "are"), of_columns(["a", "b"], "is", "are")
    ("column 'a' is", "columns 'a' and 'b' are")
    """
    return f"column{'s' * (len(names) > 1)} {listed(names)} {one if len(names) == 1 else many}"


def make_notes(
    names: list[str],
    found: Survey,
    constant: Array,
    groups: list[Group],
    pipelines: list[Pipeline],
    outputs: list[tuple[int, str]],
    same_as: Array,
    setting: Setting,
) -> list[str]:
    """Return what was dropped, encoded, merged and filled.

    Parameters
    ----------
    names : list of str
        Of the input columns.
    found : Survey
        Of all rows.
    constant : array of shape (d,)
        Columns of numbers that have one value.
    groups, pipelines : lists
        With their fitted steps.
    outputs : list of tuples (int, str)
        Input column and what is added to its name, for each output column.
    same_as : array of int
        As in ``DistinctColumns``.
    setting : Setting

    Returns
    -------
    list of str
    """
    by_name = {g.name: (g, p) for g, p in zip(groups, pipelines, strict=True)}
    notes = _on_dropped(names, found, constant, outputs, same_as, by_name)
    if "flags" in by_name and setting.numbers != "none":
        flags = [names[j] for j in by_name["flags"][0].positions]
        notes.append(f"{of_columns(flags, 'is a flag', 'are flags')}, with two values")
    for name in OF_TEXT:
        if name in by_name:
            notes += _on_categories(names, *by_name[name])
    if "cycles" in by_name:
        group, pipeline = by_name["cycles"]
        cycles = zip(group.positions, pipeline["parts"].cycles_, strict=True)
        told = [f"column '{names[j]}' also gives its {_and(parts)}" for j, parts in cycles]
        notes += _capped(told, "dates give such parts")
    if "missing" in by_name:
        gaps = [names[j] for j in by_name["missing"][0].positions]
        notes.append(f"missing values of {listed(gaps)} are filled and marked by a column each")
    return notes + _on_copies(names, outputs, same_as)


def _on_dropped(
    names: list[str],
    found: Survey,
    constant: Array,
    outputs: list[tuple[int, str]],
    same_as: Array,
    by_name: dict[str, Any],
) -> list[str]:
    notes = []
    empty = [name for name, kind in zip(names, found.kinds, strict=True) if kind == "empty"]
    if empty:
        told = of_columns(empty, "has no value and was", "have no value and were")
        notes.append(f"{told} dropped")
    stay = np.flatnonzero(same_as == np.arange(len(same_as)))
    kept = {outputs[k][0] for k in stay}
    made = Counter(j for j, _ in outputs)
    same = {j for j in range(len(names)) if constant[j] and found.kinds[j] != "empty"}
    rare: set[int] = set()
    for group, pipeline in (by_name[name] for name in OF_TEXT if name in by_name):
        for j, values in zip(group.positions, pipeline["encode"].categories_, strict=True):
            if made[j] == 1:
                (rare if len(values) > 1 else same).add(int(j))
    if kept <= same | rare and outputs[stay[0]][1] != ": missing":
        notes.append(f"every column is constant; '{names[min(kept)]}' was kept all the same")
    elif same:
        which = [names[j] for j in sorted(same)]
        told = of_columns(which, "is constant and was", "are constant and were")
        notes.append(f"{told} dropped")
    if rare:
        told = of_columns([names[j] for j in sorted(rare)], "has", "have")
        notes.append(f"{told} rare values only, which share one column; lower rare")
    return notes


def _on_categories(names: list[str], group: Group, pipeline: Pipeline) -> list[str]:
    encoder, told, merged = pipeline["encode"], [], []
    for k, j in enumerate(group.positions):
        rare = encoder.infrequent_categories_[k]
        n_rare = 0 if rare is None else len(rare)
        width = len(encoder.categories_[k]) - n_rare + (n_rare > 0)
        if width > 2:
            told.append(f"column '{names[j]}' became {width} columns of 0 and 1")
        elif group.name != "categories":
            told.append(f"column '{names[j]}' is a flag, with two values")
        if n_rare > 1:
            merged.append(f"{n_rare} rare values of '{names[j]}' share one column")
    return [
        *_capped(told, "columns of text were encoded"),
        *_capped(merged, "have rare values"),
    ]


def _on_copies(names: list[str], outputs: list[tuple[int, str]], same_as: Array) -> list[str]:
    full = [f"{names[j]}{suffix}" for j, suffix in outputs]
    told = [
        f"column '{full[k]}' is the same as '{full[first]}' and was dropped"
        for k, first in enumerate(same_as)
        # The second column of a pair is no news.
        if 0 <= first != k and outputs[k][0] != outputs[first][0]
    ]
    return _capped(told, "columns are the same as others and were dropped")


def _capped(sentences: list[str], rest: str) -> list[str]:
    if len(sentences) <= _MOST:
        return sentences
    return [*sentences[:_MOST], f"{len(sentences) - _MOST} more {rest}"]


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
