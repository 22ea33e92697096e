"""Tables as users have them: what each column holds, and its cells as plain arrays."""

import datetime
import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from imparo.engine import Array

# What a column may hold; "empty" is one without any value.
_WORDS = {"number": "numbers", "text": "text", "date": "dates", "duration": "durations"}
_DAY = 86_400_000_000  # microseconds


class Survey(NamedTuple):
    """What is known of every column after one look at all of its cells."""

    kinds: list[str]
    low: Array  # of numbers; of dates in days and of durations in seconds
    high: Array
    missing: Array  # how many cells


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame, of whichever library."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def read(X: Any, estimator: Any) -> Any:
    """Return X as a table: a frame, a sparse matrix, or an array of numbers or objects.

    Raises
    ------
    ValueError, TypeError
        If X has no rows and columns, or none of these forms.
    """
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise TypeError("X is a lazy frame and has no rows yet; use X.collect()")
    if is_frame(X):
        return _checked_frame(X, estimator)
    if isinstance(X, list | tuple):
        X = _from_rows(X)
    X = check_array(
        X, accept_sparse="csr", dtype=None, ensure_all_finite=False, estimator=estimator
    )
    if X.dtype.kind in "UT":
        X = X.astype(object)
    if X.dtype.kind not in ("biuf" if sparse.issparse(X) else "biufMmO"):
        raise TypeError(f"X holds {X.dtype}, and must hold numbers, text or dates; convert it")
    return _canonical(sparse.csr_array(X)) if sparse.issparse(X) else X


def _canonical(X: Any) -> Any:
    if not X.has_canonical_format:  # a cell may be stored in parts, which add up
        X = X.copy()
        X.sum_duplicates()
    return X


def _checked_frame(X: Any, estimator: Any) -> Any:
    words = ("sample", "feature")
    for size, word in zip(X.shape, words, strict=True):
        if size == 0:
            raise ValueError(
                f"Found array with 0 {word}(s) (shape={tuple(X.shape)}) while a minimum of 1 "
                f"is required by {type(estimator).__name__}."
            )
    names = list(X.columns)
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"X has several columns of one name, {listed(twice)}; rename them")
    return X


def _from_rows(X: Any) -> Any:
    try:
        array = np.asarray(X)
        # NumPy makes text of numbers that stand beside text.
        return np.array(X, dtype=object) if array.dtype.kind in "UST" else array
    except ValueError as error:
        raise ValueError(
            f"the rows of X do not all have the same number of cells ({error}); give a table"
        ) from error


def names_of(table: Any) -> list[str]:
    """Return the names of the columns, as scikit-learn has them: x0, x1 … without any."""
    if is_frame(table) and all(isinstance(name, str) for name in table.columns):
        return list(table.columns)
    return [f"x{j}" for j in range(table.shape[1])]


def listed(names: Sequence[str]) -> str:
    """Return names for a sentence: at most five, and how many more there are.

    Examples
    --------
    >>> from imparo.preparation.columns import listed
    >>> listed(["a", "b", "c"])
    "'a', 'b' and 'c'"
    >>> listed([f"x{i}" for i in range(17)])
    "'x0', 'x1', 'x2', 'x3', 'x4' and 12 more"
    """
    quoted = [f"'{name}'" for name in names]
    if len(quoted) > 5:
        return f"{', '.join(quoted[:5])} and {len(quoted) - 5} more"
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))


def take(table: Any, rows: Any) -> Any:
    """Return some rows of a table, by a slice or by their positions."""
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def pick(table: Any, positions: Any) -> Any:
    """Return some columns of a table, by their positions."""
    chosen = np.asarray(positions, dtype=np.intp)
    if hasattr(table, "iloc"):
        return table.iloc[:, chosen]
    return table[:, chosen.tolist()] if is_frame(table) else table[:, chosen]


def column(table: Any, j: Any) -> Array:
    """Return the cells of a column of a dense table as a NumPy array.

    A date with a time zone is read as the clock there shows it: habits follow that clock.
    """
    if not is_frame(table):
        return table[:, j]
    series = table.iloc[:, int(j)] if hasattr(table, "iloc") else table[:, int(j)]
    if str(series.dtype).lower().startswith(("categor", "enum")):
        cells = np.asarray(series.to_numpy(), dtype=object)
        missing = _missing(cells)
        return _texts(cells, missing)
    if getattr(series.dtype, "time_zone", None):  # polars
        series = series.dt.replace_time_zone(None)
    elif getattr(getattr(series, "dt", None), "tz", None):  # pandas
        series = series.dt.tz_localize(None)
    return np.asarray(series.to_numpy())


def settle(cells: Array, name: str) -> tuple[str, Array]:
    """Return the kind of a column, and its cells as a plain array.

    Returns
    -------
    kind : "number", "text", "date", "duration" or "empty"
    plain : array of shape (n,)
        Numbers with NaN, text with None, ``datetime64`` or ``timedelta64`` with NaT.

    Raises
    ------
    ValueError, TypeError
        If the column mixes kinds, or holds none of them.
    """
    kind = {"M": "date", "m": "duration"}.get(cells.dtype.kind, "number")
    if cells.dtype.kind in "biufMm":
        return kind, cells
    if cells.dtype.kind != "O":
        raise TypeError(f"column '{name}' holds {cells.dtype}, neither numbers, text nor dates")
    for found in set(map(type, cells)):
        if _kind_of(found) is None:
            raise TypeError(
                f"column '{name}' holds a cell of type {found.__name__}, and cells must be "
                "numbers, strings or dates; convert or drop the column"
            )
    missing = _missing(cells)
    present = cells[~missing]
    kinds = {str(_kind_of(found)) for found in set(map(type, present))}
    if len(kinds) > 1:
        raise ValueError(
            f"column '{name}' holds {' and '.join(_WORDS[k] for k in sorted(kinds))}; make it "
            "one of them, or two columns"
        )
    kind = kinds.pop() if kinds else "empty"
    if kind == "text":
        return kind, _texts(cells, missing)
    if kind in ("date", "duration"):
        make = _plain_date if kind == "date" else np.timedelta64
        plain = np.full(len(cells), "NaT", "M8[us]" if kind == "date" else "m8[us]")
        plain[~missing] = [make(value, "us") for value in present]
        return kind, plain
    try:
        plain = np.full(len(cells), np.nan)
        plain[~missing] = present.astype(np.float64)
    except OverflowError as error:
        raise ValueError(
            f"column '{name}' holds a number beyond what float64 can hold; scale the column"
        ) from error
    return kind, plain


def _kind_of(found: type) -> str | None:
    if _is_void(found):
        return "empty"
    # Before numbers: NumPy's durations are integers to Python.
    if issubclass(found, datetime.timedelta | np.timedelta64):
        return "duration"
    if issubclass(found, datetime.date | np.datetime64):
        return "date"
    if issubclass(found, str):
        return "text"
    return "number" if issubclass(found, numbers.Real | Decimal | np.bool_) else None


def _is_void(found: type) -> bool:
    # pandas' NA and NaT by name: it need not be installed.
    return found is type(None) or found.__name__ in ("NAType", "NaTType")


def _missing(cells: Array) -> Array:
    void = {found for found in set(map(type, cells)) if _is_void(found)}
    gone = (type(cell) in void or bool(cell != cell) for cell in cells)
    return np.fromiter(gone, bool, len(cells))


def _texts(cells: Array, missing: Array) -> Array:
    texts = np.full(len(cells), None, dtype=object)
    texts[~missing] = [str(cell) for cell in cells[~missing]]
    return texts


def _plain_date(value: Any, unit: Any) -> Any:
    if getattr(value, "tzinfo", None):
        value = value.replace(tzinfo=None)
    return np.datetime64(value, unit)


def floats(kind: str, plain: Array) -> Array:
    """Return a settled column as float64: dates in days since 1970, durations in seconds."""
    if kind not in ("date", "duration"):
        return plain.astype(np.float64, copy=False)
    unit = "M8[us]" if kind == "date" else "m8[us]"
    values = plain.astype(unit).astype(np.int64) / (_DAY if kind == "date" else 1e6)
    values[np.isnat(plain)] = np.nan
    return values


def float_type(table: Any, kinds: list[str]) -> np.dtype[Any]:
    """Return float32 if all numbers of a table are of that type, float64 otherwise."""
    if is_frame(table):
        types = zip(table.dtypes, kinds, strict=True)
        found = {str(dtype).lower() for dtype, kind in types if kind == "number"}
        return np.dtype(np.float32 if found == {"float32"} else np.float64)
    return np.dtype(np.float32 if table.dtype == np.float32 else np.float64)


def float_matrix(table: Any) -> Any:
    """Return a table of numbers, dates and durations as floats; float32 stays what it is."""
    if not is_frame(table) and table.dtype.kind in "biuf":
        return table if table.dtype == np.float32 else table.astype(np.float64, copy=False)
    matrix = np.empty(table.shape, order="F")
    for j, name in enumerate(names_of(table)):
        kind, plain = settle(column(table, j), name)
        if kind == "text":
            raise ValueError(f"column '{name}' holds text and must hold numbers")
        matrix[:, j] = floats(kind, plain)
    return matrix


def text_matrix(table: Any) -> Array:
    """Return a table of text as an array of strings, with None where a cell is missing."""
    matrix = np.full(table.shape, None, dtype=object)
    for j, name in enumerate(names_of(table)):
        kind, plain = settle(column(table, j), name)
        if kind == "text":
            matrix[:, j] = plain
        elif not (kind == "empty" or np.isnan(floats(kind, plain)).all()):
            raise ValueError(f"column '{name}' holds {_WORDS[kind]} and must hold text")
    return matrix


def date_matrix(table: Any) -> Array:
    """Return a table of dates as ``datetime64[us]``."""
    matrix = np.full(table.shape, "NaT", dtype="M8[us]")
    for j, name in enumerate(names_of(table)):
        kind, plain = settle(column(table, j), name)
        if kind == "date":
            matrix[:, j] = plain
        elif kind == "text" or not np.isnan(floats(kind, plain)).all():
            raise ValueError(
                f"column '{name}' holds {_WORDS[kind]} and must hold dates; convert it, for "
                "instance with NumPy's astype('datetime64[us]')"
            )
    return matrix


def survey(table: Any, names: list[str], positions: Sequence[int] | None = None) -> Survey:
    """Look at all cells of a table, or of some of its columns.

    Parameters
    ----------
    table : frame, array or sparse matrix
    names : list of str
        Of all columns, for errors.
    positions : sequence of int, optional
        The columns to look at; the others are "empty".

    Returns
    -------
    Survey
    """
    n, d = table.shape
    low, high = np.full(d, np.nan), np.full(d, np.nan)
    missing = np.full(d, n)
    kinds = ["number"] * d
    if sparse.issparse(table):
        low, high = (_sparse_extreme(table, name) for name in ("nanmin", "nanmax"))
        missing = np.bincount(table.indices[np.isnan(table.data)], minlength=d)
    elif not is_frame(table) and table.dtype.kind in "biuf":
        low = np.fmin.reduce(table, axis=0).astype(np.float64)
        high = np.fmax.reduce(table, axis=0).astype(np.float64)
        missing = np.isnan(table).sum(axis=0) if table.dtype.kind == "f" else np.zeros(d, int)
    else:
        for j in range(d) if positions is None else positions:
            kinds[j], plain = settle(column(table, j), names[j])
            if kinds[j] == "text":
                missing[j] = sum(cell is None for cell in plain)
                continue
            values = floats(kinds[j], plain)
            low[j], high[j] = np.fmin.reduce(values), np.fmax.reduce(values)
            missing[j] = np.count_nonzero(np.isnan(values))
    kinds = ["empty" if gone == n else kind for kind, gone in zip(kinds, missing, strict=True)]
    return Survey(kinds, low, high, missing)


def _sparse_extreme(table: Any, name: str) -> Array:
    return np.asarray(getattr(table, name)(axis=0).todense(), dtype=np.float64).ravel()
