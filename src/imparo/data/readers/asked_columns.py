"""Which columns of a file a pass over its rows reads, and how many rows at a time."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from imparo.data.readers.column_choice import chosen_columns

# Cells of a block, where no size is asked for.
_CELLS = 2**21


def asked_columns(
    columns: Sequence[str] | None,
    names: Sequence[str],
    left_out: Mapping[str, str],
    file: str | Path,
) -> list[str]:
    """Return the names of the columns to read, or say which cannot be.

    Parameters
    ----------
    columns : sequence of str or None
        What is asked for; None for all.
    names : sequence of str
        What there is.
    left_out : mapping from str to str
        Why other columns of the file cannot be read.
    file : str or Path
        For errors.

    Examples
    --------
    >>> from imparo.data.readers.asked_columns import asked_columns
    >>> asked_columns(["b"], ["a", "b"], {}, "rows.parquet")
    ['b']
    >>> asked_columns(["c"], ["a", "b"], {"c": "it holds lists"}, "rows.parquet")
    Traceback (most recent call last):
    ValueError: column 'c' of rows.parquet cannot be read: it holds lists
    """
    there = set(names)
    for name in columns or ():
        if name in left_out and name not in there:
            raise ValueError(f"column {name!r} of {file} cannot be read: {left_out[name]}")
    return chosen_columns(columns, names, file)


def some_of(names: Sequence[str]) -> str:
    """Return names for a sentence: at most eight, and how many more there are."""
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def rows_of_a_block(size: int | None, n_columns: int) -> int:
    """Return how many rows to read at a time: ``size``, or about 2²¹ cells."""
    if size is None:
        return max(1, _CELLS // max(1, n_columns))
    if size < 1:
        raise ValueError(f"blocks of {size} rows cannot be; give 1 or more")
    return int(size)
