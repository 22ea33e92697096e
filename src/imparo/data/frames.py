"""Rows of named columns, as readers hand them out: no data-frame library needed."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from imparo.engine import Array

# Which array holds a column, and as which of its columns; None for one of one axis.
_Place = tuple[int, int | None]


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
        arrays = [_as_cells(cells) for cells in columns.values()]
        self._set(arrays, {str(name): (i, None) for i, name in enumerate(columns)}, n)

    # A column is an array, or a column of a matrix that holds several: thousands of columns
    # then cost no more than one of them until somebody asks for each.
    def _set(self, arrays: list[Array], places: dict[str, _Place], n: int | None) -> None:
        sizes = set(map(len, arrays))
        if n is not None:
            sizes.add(n)
        if len(sizes) != 1:
            raise ValueError(
                f"columns have {' and '.join(map(str, sorted(sizes)))} rows; all must have the "
                "same number"
                if sizes
                else "a frame without columns needs its number of rows"
            )
        self._arrays, self._places, self._n = arrays, places, sizes.pop()

    @classmethod
    def _of(cls, arrays: list[Array], places: dict[str, _Place], n: int | None) -> "Frame":
        frame = cls.__new__(cls)
        frame._set(arrays, places, n)
        return frame

    @classmethod
    def of_matrices(
        cls, parts: Iterable[tuple[Sequence[str], Array]], n: int | None = None
    ) -> "Frame":
        """Return the frame whose columns are those of some matrices, without a copy.

        Parameters
        ----------
        parts : iterable of (names, array)
            Names of the columns, and an array of shape (n, number of names), or of shape
            (n,) with one name.
        n : int, optional
            Number of rows, needed if there is no column.

        Examples
        --------
        >>> import numpy as np
        >>> from imparo.data import Frame
        >>> X = np.arange(6.0).reshape(2, 3)
        >>> frame = Frame.of_matrices([(["a", "b", "c"], X), (["y"], np.zeros(2))])
        >>> frame.columns, frame["b"]
        (['a', 'b', 'c', 'y'], array([1., 4.]))
        >>> np.shares_memory(frame.matrix(["b", "c"]), X)
        True
        """
        arrays: list[Array] = []
        places: dict[str, _Place] = {}
        count = 0
        for names, array in parts:
            if array.ndim == 1:
                array = _as_cells(array)
            elif array.dtype.kind in "UST":
                array = array.astype(object)
            if len(names) != (array.shape[1] if array.ndim == 2 else 1):
                raise ValueError(f"{len(names)} names for an array of shape {array.shape}")
            i, one = len(arrays), array.ndim == 1
            places.update((name, (i, None if one else j)) for j, name in enumerate(names))
            arrays.append(array)
            count += len(names)
        if len(places) != count:
            raise ValueError("several columns have one name; every name must be another")
        return cls._of(arrays, places, n)

    def refilled(self, arrays: Sequence[Array]) -> "Frame":
        """Return the frame of other rows of the same columns, at no cost for each column.

        Parameters
        ----------
        arrays : sequence of arrays
            As those of the parts that :meth:`of_matrices` made this frame of.
        """
        if [array.shape[1:] for array in arrays] != [old.shape[1:] for old in self._arrays]:
            raise ValueError("the arrays do not have the columns of those of the frame")
        return Frame._of(list(arrays), self._places, None if arrays else self._n)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._places)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """Types of the columns."""
        types = [array.dtype for array in self._arrays]
        return [types[i] for i, _ in self._places.values()]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._n, len(self._places)

    @property
    def nbytes(self) -> int:
        """Bytes that the cells take, about: a text counts as 64 of them."""
        sizes = [array.itemsize + 64 * (array.dtype == object) for array in self._arrays]
        return self._n * sum(sizes[i] for i, _ in self._places.values())

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        names = self.columns
        more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
        return f"Frame of {self._n:,} rows: {', '.join(names[:10])}{more}"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        whole = self.matrix()
        if dtype is not None:
            return whole.astype(dtype, copy=bool(copy))
        return whole.copy() if copy else whole

    def matrix(self, names: Iterable[str] | None = None) -> Array:
        """Return columns as one array of shape (n, number of names).

        It is a view, of no cost, if the columns lie in one array in this order, as those of
        :meth:`of_matrices` do, and a copy otherwise. Numbers of several types become the type
        that holds them all; beside text or dates, everything becomes an object.

        Parameters
        ----------
        names : iterable of str, optional
            All columns if left out.
        """
        runs = list(self._runs(self._places if names is None else names))
        if len(runs) == 1:
            array = runs[0][1]
            return array if array.ndim == 2 else array[:, None]
        types = {array.dtype for _, array in runs}
        plain = bool(types) and all(dtype.kind in "biuf" for dtype in types)
        count = sum(len(some) for some, _ in runs)
        whole = np.empty((self._n, count), np.result_type(*types) if plain else object)
        start = 0
        for some, array in runs:
            stop = start + len(some)
            whole[:, start:stop] = array if array.ndim == 2 else array[:, None]
            start = stop
        return whole

    def _runs(self, names: Iterable[str]) -> Iterator[tuple[list[str], Array]]:
        """Yield names and arrays: as few as hold the columns in this order."""
        some: list[str] = []
        i, first, last = -1, None, None
        for name in names:
            if name not in self._places:
                raise KeyError(f"there is no column {name!r}")
            k, j = self._places[name]
            if some and k == i and j is not None and last is not None and j == last + 1:
                some.append(name)
            else:
                if some:
                    yield some, self._part(i, first, last)
                some, i, first = [name], k, j
            last = j
        if some:
            yield some, self._part(i, first, last)

    def _part(self, i: int, first: int | None, last: int | None) -> Array:
        array = self._arrays[i]
        if first is None or last is None:
            return array
        return array[:, first] if first == last else array[:, first : last + 1]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._places:
                raise KeyError(f"there is no column {key!r}")
            i, j = self._places[key]
            return self._arrays[i] if j is None else self._arrays[i][:, j]
        if not isinstance(key, tuple):
            n = None if self._arrays else len(np.arange(self._n)[key])
            return Frame._of([array[key] for array in self._arrays], self._places, n)
        rows, places = key
        names = self.columns
        if isinstance(places, int | np.integer):
            return FrameColumn(self[names[places]][rows])
        if isinstance(places, slice):
            places = range(*places.indices(len(names)))
        chosen = [names[int(place)] for place in places]
        return self.select(chosen)[rows]

    def select(self, names: Iterable[str]) -> "Frame":
        """Return the frame of some columns, in the order of ``names``."""
        return Frame.of_matrices(self._runs(names), self._n)

    def without(self, names: Iterable[str]) -> "Frame":
        """Return the frame of the other columns."""
        gone = set(names)
        return self.select(name for name in self._places if name not in gone)

    def with_column(self, name: str, cells: Any) -> "Frame":
        """Return the frame with one more column, or with another of that name."""
        arrays, (i, j) = list(self._arrays), self._places.get(name, (0, 0))
        if j is None:  # a matrix keeps the old column, an array of its own goes
            arrays[i] = _as_cells(cells)
        else:
            i = len(arrays)
            arrays.append(_as_cells(cells))
        return Frame._of(arrays, {**self._places, name: (i, None)}, self._n)

    @classmethod
    def stacked(cls, frames: Sequence["Frame"]) -> "Frame":
        """Return frames of the same columns on top of each other.

        Numbers of several types become the type that holds them all; a column that is text
        in one and empty (all NaN) in another is text.
        """
        if len(frames) == 1:
            return frames[0]
        first = frames[0]
        n = sum(map(len, frames))
        if all(first._is_laid_out_as(frame) for frame in frames[1:]):
            layers = zip(*(frame._arrays for frame in frames), strict=True)
            return cls._of([_joined(list(layer)) for layer in layers], first._places, n)
        return cls(
            {name: _joined([frame[name] for frame in frames]) for name in first.columns}, n
        )

    def _is_laid_out_as(self, other: "Frame") -> bool:
        shapes = ([array.shape[1:] for array in frame._arrays] for frame in (self, other))
        return operator.eq(*shapes) and self._places == other._places


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
