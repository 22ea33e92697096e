"""Sums of what workers find, added pair by pair on the workers themselves."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from imparo.cluster.team import task


def added(first: Any, second: Any) -> Any:
    """Return the sum of two results: of numbers, arrays, statistics, or tuples of them.

    Neither is changed: a worker may be asked for its result again.

    Parameters
    ----------
    first, second : object

    Returns
    -------
    object

    Examples
    --------
    >>> from imparo.cluster import added
    >>> added((1.0, [2, 3]), (10.0, [20, 30]))
    (11.0, [22, 33])
    """
    if isinstance(first, list | tuple):
        return type(first)(added(a, b) for a, b in zip(first, second, strict=True))
    if is_dataclass(first) and not isinstance(first, type):
        names = [field.name for field in fields(first)]
        sums = {name: added(getattr(first, name), getattr(second, name)) for name in names}
        return replace(first, **sums)
    return first + second


def tree_sum(parts: list[Any], name: str = "sum") -> Any:
    """Return the sum of delayed results: neighbours first, on the worker that has one of them.

    The order depends on the number of parts alone, so that neither who computes a part nor
    when, nor how often it is tried, changes a digit.

    Parameters
    ----------
    parts : list of Delayed

    Returns
    -------
    Delayed
    """
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        last = parts[-1:] if len(parts) % 2 else []
        parts = [task(added, name, a, b) for a, b in pairs] + last
    return parts[0]
