"""Rows of named columns, as readers hand them out: no data-frame library needed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from imparo.engine import Array


class Frame:
    """Some rows of a table, held column by column.

    Everything here that takes tables, such as :class:`~imparo.preparation.KernelInputs`,
    takes it as it takes a frame of pandas or polars.

    Parameters
    ----------
    columns : mapping from str to array of shape (n,)
        Numbers and flags in any of NumPy's types, with NaN where a value is missing; text as
        objects, ``str`` or None; dates as ``datetime64`` and durations as ``timedelta64``.
    n : int, optional
        Number of rows, needed if there is no column.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.data import Frame
    >>> frame = Frame({"age": np.array([20.0, np.nan]), "city": ["Rome", None]})
    >>> frame.shape, frame.columns
    ((2, 2), ['age', 'city'])
    >>> frame[1:]["city"]
    array([None], dtype=object)
    """

    def __init__(self, columns: Mapping[str, Any], n: int | None = None) -> None:
        self._cells = {str(name): _as_cells(cells) for name, cells in columns.items()}
        sizes = {len(cells) for cells in self._cells.values()}
        if n is not None:
            sizes.add(n)
        if len(sizes) != 1:
            raise ValueError(
                f"columns have {' and '.join(map(str, sorted(sizes)))} rows; all must have the "
                "same number"
                if sizes
                else "a frame without columns needs its number of rows"
            )
        self._n = sizes.pop()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._cells)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """Types of the columns."""
        return [cells.dtype for cells in self._cells.values()]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._n, len(self._cells)

    @property
    def nbytes(self) -> int:
        """Bytes that the cells take, about: a text counts as 64 of them."""
        return sum(
            cells.nbytes + 64 * len(cells) * (cells.dtype == object)
            for cells in self._cells.values()
        )

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"Frame of {self._n:,} rows: {', '.join(self._cells)}"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        whole = np.empty(self.shape, np.result_type(*self.dtypes) if self._plain else object)
        for j, cells in enumerate(self._cells.values()):
            whole[:, j] = cells
        return whole if dtype is None else whole.astype(dtype, copy=False)

    @property
    def _plain(self) -> bool:
        return bool(self._cells) and all(dtype.kind in "biuf" for dtype in self.dtypes)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._cells:
                raise KeyError(f"there is no column {key!r}")
            return self._cells[key]
        if not isinstance(key, tuple):
            some = {name: cells[key] for name, cells in self._cells.items()}
            return Frame(some, None if some else len(np.arange(self._n)[key]))
        rows, places = key
        names = self.columns
        if isinstance(places, int | np.integer):
            return FrameColumn(self._cells[names[places]][rows])
        if isinstance(places, slice):
            places = range(*places.indices(len(names)))
        chosen = [names[int(place)] for place in places]
        return self.select(chosen)[rows]

    def select(self, names: Iterable[str]) -> "Frame":
        """Return the frame of some columns, in the order of ``names``."""
        return Frame({name: self[name] for name in names}, self._n)

    def without(self, names: Iterable[str]) -> "Frame":
        """Return the frame of the other columns."""
        gone = set(names)
        return self.select(name for name in self._cells if name not in gone)

    def with_column(self, name: str, cells: Any) -> "Frame":
        """Return the frame with one more column, or with another of that name."""
        return Frame({**self._cells, name: cells}, self._n)

    @classmethod
    def stacked(cls, frames: Sequence["Frame"]) -> "Frame":
        """Return frames of the same columns on top of each other.

        Numbers of several types become the type that holds them all; a column that is text
        in one and empty (all NaN) in another is text.
        """
        if len(frames) == 1:
            return frames[0]
        first = frames[0]
        return cls(
            {name: _joined([frame[name] for frame in frames]) for name in first.columns},
            sum(map(len, frames)),
        )


class FrameColumn:
    """One column of a :class:`Frame`."""

    def __init__(self, cells: Array) -> None:
        self._cells = cells
        self.dtype, self.shape = cells.dtype, cells.shape

    def __len__(self) -> int:
        return len(self._cells)

    def to_numpy(self) -> Array:
        """Return the cells."""
        return self._cells

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self._cells if dtype is None else self._cells.astype(dtype, copy=False)


def _as_cells(cells: Any) -> Array:
    found = cells if isinstance(cells, np.ndarray) else np.array(cells, dtype=object)
    if not isinstance(cells, np.ndarray):
        plain = np.asarray(cells)
        found = plain if plain.dtype.kind in "biufMm" else found
    if found.ndim != 1:
        raise ValueError(f"a column has shape {found.shape}; it must have one axis")
    return found.astype(object) if found.dtype.kind in "UST" else found


def _joined(parts: list[Array]) -> Array:
    kinds = {part.dtype.kind for part in parts}
    if "O" in kinds and kinds != {"O"}:
        parts = [_as_objects(part) for part in parts]
    return np.concatenate(parts)


def _as_objects(cells: Array) -> Array:
    objects = cells.astype(object)
    objects[cells != cells] = None
    return objects
