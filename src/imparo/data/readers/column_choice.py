"""Names of columns: which are asked for, and whether they are there and unlike."""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence


def chosen_columns(
    columns: Sequence[str] | None, names: Sequence[str], file: object
) -> list[str]:
    """Return the columns asked for, all if None, or say which is not there.

    Examples
    --------
    >>> from imparo.data.readers.column_choice import chosen_columns
    >>> chosen_columns(["b"], ["a", "b"], "file.csv")
    ['b']
    >>> chosen_columns(["agee"], ["age", "y"], "file.csv")
    Traceback (most recent call last):
    ValueError: file.csv has no column 'agee'; did you mean 'age'?
    """
    if columns is None:
        return list(names)
    there = set(names)
    for name in columns:
        if name not in there:
            raise ValueError(f"{file} has no column {name!r}; {near_names(name, names)}")
    check_unlike(columns, "the columns to read")
    return list(columns)


def near_names(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence: which names are like the wrong one, or which there are."""
    names = list(names)
    folded = {one.lower(): one for one in names}
    near = [folded[one] for one in difflib.get_close_matches(name.lower(), folded, n=3)]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    shown = ", ".join(map(repr, names[:20]))
    return f"there are {shown}{' …' if len(names) > 20 else ''}"


def check_unlike(names: Iterable[str], where: object) -> None:
    """Raise if a name is there twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        listed = ", ".join(map(repr, twice[:10]))
        raise ValueError(
            f"{where} has several columns of the name {listed}; give every column a name of "
            "its own"
        )
