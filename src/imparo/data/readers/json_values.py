"""Objects of JSON as columns: which there are, of which kind, and their values."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from imparo.data.readers.base import LARGEST_WHOLE
from imparo.data.readers.column_choice import check_unlike, chosen_columns
from imparo.data.readers.text_cells import as_dates, complaint, is_date
from imparo.engine import Array

# Of the values of a key, at least this part is of the kind of the column.
_MOSTLY = 0.9
_Path = tuple[str, ...]
_PLAIN = {int, float, bool, type(None)}


@dataclass
class JsonColumn:
    """A key of the objects.

    Attributes
    ----------
    name : str
        Of the column, or of the group of columns: the keys that lead to it, with dots.
    path : tuple of str
        The keys.
    kind : "number", "date" or "text"
    length : int or None
        Number of values, if each is a list of numbers.
    loose : bool
        Whether numbers count as text.
    """

    name: str
    path: _Path
    kind: str = "number"
    length: int | None = None
    loose: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the columns it makes."""
        if self.length is None:
            return [self.name]
        return [f"{self.name}[{j}]" for j in range(self.length)]

    def values(self, objects: list[Any]) -> list[Any]:
        """Return the value of each object, None where there is none."""
        if len(self.path) == 1:
            return [found.get(self.path[0]) for found in objects]
        for key in self.path:
            objects = [_below(found, key) for found in objects]
        return objects


@dataclass(frozen=True)
class _Misplaced:
    """A value where an object was expected."""

    value: Any


@dataclass
class JsonSchema:
    """The columns of objects of JSON.

    Attributes
    ----------
    columns : list of JsonColumn
    """

    columns: list[JsonColumn]
    names: list[str] = field(init=False)
    kinds: dict[str, str] = field(init=False)
    groups: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.names = [name for column in self.columns for name in column.names]
        self.kinds = {name: column.kind for column in self.columns for name in column.names}
        self.groups = {c.name: c.names for c in self.columns if c.length is not None}

    def read(
        self, objects: list[Any], wanted: list[str]
    ) -> tuple[dict[str, Array], dict[int, tuple[str, str]]]:
        """Return columns, and what is wrong and what to do about it, by row."""
        found: dict[str, Array] = {}
        wrong: dict[int, tuple[str, str]] = {}
        asked = set(wanted)
        for column in self.columns:
            if asked.isdisjoint(column.names):
                continue
            values = column.values(objects)
            if column.length is None:
                found[column.name] = _cells(values, column, wrong)
            else:
                matrix = _matrix(values, column, wrong)
                found |= {
                    name: np.ascontiguousarray(matrix[:, j])
                    for j, name in enumerate(column.names)
                    if name in asked
                }
        return {name: found[name] for name in wanted}, wrong


def schema_of(
    objects: Iterable[dict[str, Any]], text: Iterable[str], file: object
) -> JsonSchema:
    """Return the columns of objects, from some of them.

    Keys of objects within objects are joined with dots. Numbers, true and false make columns
    of numbers; text makes text, or dates if all are dates of ISO 8601; lists of numbers of one
    length make a column a place; other lists are text, as they are written. A column is of
    the kind of nine in ten of its values, and else text.

    Parameters
    ----------
    objects : iterable of dict
    text : iterable of str
        Columns that are read as text in any case.
    file : str or Path
        For errors.
    """
    seen: dict[_Path, list[Any]] = {}
    inner: Counter[_Path] = Counter()
    for found in objects:
        for path, value in _leaves(found, inner):
            seen.setdefault(path, []).append(value)
    columns = [_column(path, seen[path]) for path in seen if not _is_lost(path, seen, inner)]
    for name in chosen_columns(list(text), [c.name for c in columns], file):
        place = next(k for k, column in enumerate(columns) if column.name == name)
        columns[place] = JsonColumn(name, columns[place].path, "text", None, True)
    schema = JsonSchema(columns)
    check_unlike(schema.names, file)
    return schema


def _leaves(
    found: dict[str, Any], inner: Counter[_Path], path: _Path = ()
) -> Iterator[tuple[_Path, Any]]:
    """Yield the keys that lead to each value, and the value; count objects in ``inner``."""
    for key, value in found.items():
        here = (*path, key)
        if isinstance(value, dict):
            inner[here] += 1
            yield from _leaves(value, inner, here)
        else:
            yield here, value


def _is_lost(path: _Path, seen: dict[_Path, list[Any]], inner: Counter[_Path]) -> bool:
    """Return whether a key is not a column: elsewhere, more objects are of another shape."""

    def values(path: _Path) -> int:
        return sum(value is not None for value in seen.get(path, ()))

    if inner[path] and inner[path] >= values(path):
        return True
    above = (path[:stop] for stop in range(1, len(path)))
    return any(values(one) > inner[one] for one in above)


def _column(path: _Path, values: list[Any]) -> JsonColumn:
    name, there = ".".join(path), [value for value in values if value is not None]
    enough = _MOSTLY * len(there) - 1e-9
    numbers = sum(_is_number(value) for value in there)
    if numbers >= enough:
        return JsonColumn(name, path)
    lengths = Counter(len(value) for value in there if _is_vector(value))
    if lengths and lengths.most_common(1)[0][1] >= enough:
        return JsonColumn(name, path, length=lengths.most_common(1)[0][0])
    texts = [value for value in there if isinstance(value, str)]
    if len(texts) == len(there) and all(map(is_date, texts)):
        return JsonColumn(name, path, "date")
    return JsonColumn(name, path, "text", loose=len(texts) < enough)


def _below(found: Any, key: str) -> Any:
    if isinstance(found, dict):
        return found.get(key)
    return found if found is None or isinstance(found, _Misplaced) else _Misplaced(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(part is None or _is_number(part) for part in value)
    )


def _cells(values: list[Any], column: JsonColumn, wrong: dict[int, tuple[str, str]]) -> Array:
    if column.kind == "number":
        return _numbers(values, column.name, wrong)
    cells = np.empty(len(values), object)
    cells[:] = values
    for row, value in enumerate(values):
        if value is None or isinstance(value, str):
            continue
        if column.loose:
            cells[row] = _written(value)
        else:
            wrong.setdefault(row, complaint(_written(value), column.name, column.kind, False))
            cells[row] = None
    if column.kind == "text":
        return cells
    dates = as_dates([cell or "" for cell in cells])
    for row in dates.wrong:
        wrong.setdefault(row, complaint(cells[row], column.name, column.kind, False))
    return dates.cells


def _numbers(values: list[Any], name: str, wrong: dict[int, tuple[str, str]]) -> Array:
    kinds = set(map(type, values))
    if kinds <= _PLAIN:
        try:
            cells = np.array(values, float)
        except OverflowError:
            pass
        else:
            doubtful = np.abs(cells) >= LARGEST_WHOLE if int in kinds else np.isinf(cells)
            if not doubtful.any():
                return cells
    return np.array([_number(value, name, wrong, row) for row, value in enumerate(values)])


def _number(value: Any, name: str, wrong: dict[int, tuple[str, str]], row: int) -> float:
    if value is None:
        return math.nan
    large = isinstance(value, int) and abs(value) > LARGEST_WHOLE
    if large or not _is_number(value) or math.isinf(value):
        wrong.setdefault(row, complaint(_written(value), name, "number", large))
        return math.nan
    return float(value)


def _matrix(values: list[Any], column: JsonColumn, wrong: dict[int, tuple[str, str]]) -> Array:
    length = column.length or 0
    if all(type(value) is list and len(value) == length for value in values):
        flat = list(chain.from_iterable(values))
        if set(map(type, flat)) <= {int, float}:
            none: dict[int, tuple[str, str]] = {}
            cells = _numbers(flat, column.name, none)
            if not none:
                return cells.reshape(len(values), length)
    rows: list[Any] = []
    for row, value in enumerate(values):
        if value is None or (_is_vector(value) and len(value) == length):
            rows.append([None] * length if value is None else value)
            continue
        rows.append([None] * length)
        there = f"{len(value)} values" if isinstance(value, list) else _written(value)
        wrong.setdefault(
            row,
            (
                f"{there} in {column.name!r}, which holds lists of {length} numbers",
                "correct it",
            ),
        )
    flat = [part for row in rows for part in row]
    inner: dict[int, tuple[str, str]] = {}
    cells = _numbers(flat, column.name, inner).reshape(len(rows), length)
    for place, what in inner.items():
        wrong.setdefault(place // length, what)
    return cells


def _written(value: Any) -> str:
    if isinstance(value, _Misplaced):
        value = value.value
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
