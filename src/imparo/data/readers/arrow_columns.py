"""Columns of Arrow, as Parquet, Feather and Arrow files hold them, as plain cells."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imparo.data.frames import Frame
from imparo.data.readers.asked_columns import some_of
from imparo.data.readers.bad_cells import BadCells
from imparo.data.readers.base import ReadOptions
from imparo.data.readers.column_choice import check_unlike
from imparo.engine import Array


class _Field(NamedTuple):
    place: int  # in the schema
    name: str
    names: list[str]  # of its columns: several for a list
    is_list: bool


class ArrowColumns:
    """What the columns of a schema are called and hold, and how their cells are read.

    Flags are the numbers 0 and 1. Whole numbers with gaps, and decimals, are float64;
    float32 stays. Dictionaries are text, dates ``datetime64[us]`` and, with a time zone,
    what the clock there shows. Times of day and durations are ``timedelta64[us]``. A list of
    ``k`` numbers in every row makes ``k`` columns, ``x[0]`` to ``x[k-1]``.

    Parameters
    ----------
    schema : pyarrow.Schema
    options : ReadOptions
    file : Path
        For errors.

    Attributes
    ----------
    names : list of str
    kinds : dict of str to str
    groups : dict of str to list of str
        The columns of every list.
    left_out : dict of str to str
        Why other columns cannot be read.
    """

    def __init__(self, schema: Any, options: ReadOptions, file: Path) -> None:
        self._options, self._file = options, file
        self.names: list[str] = []
        self.kinds: dict[str, str] = {}
        self.groups: dict[str, list[str]] = {}
        self.left_out: dict[str, str] = {}
        self._fields: list[_Field] = []
        for place, field in enumerate(schema):
            self._add(place, field)
        lists = [name for names in self.groups.values() for name in names]
        check_unlike([*schema.names, *lists], file)
        if not self.names:
            raise ValueError(
                f"{file} has no column that can be read: "
                + ("it has none at all" if not self.left_out else _first_reason(self.left_out))
            )

    def _add(self, place: int, field: Any) -> None:
        kind, size = kind_of(field.type)
        if kind is None:
            self.left_out[field.name] = f"it holds {field.type}, not numbers, text or dates"
            return
        names = [field.name]
        if size is not None:
            names = [f"{field.name}[{j}]" for j in range(size)]
            self.groups[field.name] = names
        elif field.name in self._options.text:
            kind = "text"
        self.names += names
        self.kinds.update(dict.fromkeys(names, kind))
        self._fields.append(_Field(place, field.name, names, size is not None))

    def places_of(self, columns: Sequence[str]) -> list[int]:
        """Return where in the schema the fields of some columns are."""
        wanted = set(columns)
        return [field.place for field in self._fields if not wanted.isdisjoint(field.names)]

    def frame(self, batch: Any, columns: Sequence[str], start: int) -> Frame:
        """Return the rows of a batch that has the fields of ``places_of``, in their order.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        columns : sequence of str
        start : int
            Number of its first row in the file.
        """
        wanted = set(columns)
        fields = [field for field in self._fields if not wanted.isdisjoint(field.names)]
        found, parts = BadCells(), []
        for field, array in zip(fields, batch.columns, strict=True):
            try:
                if not field.is_list and self.kinds[field.name] == "text":
                    cells = _texts(array, field.name, found)
                else:
                    cells = _numbers(array, field.name, found)
            except (ValueError, NotImplementedError) as error:
                raise ValueError(
                    f"column {field.name!r} of {self._file} cannot be read: {error}"
                ) from error
            parts.append((field.names, cells))
        frame = Frame.of_matrices(parts, batch.num_rows).select(columns)
        return found.dropped_from(frame, self._options.bad, self._file, start)


def kind_of(type_: Any) -> tuple[str | None, int | None]:
    """Return what cells of a type of Arrow are, and how many a list of them has.

    Returns
    -------
    kind : "number", "text", "date", "duration" or None
        None if they are nothing of these.
    size : int or None
        None if the type is no list of fixed size.
    """
    import pyarrow.types as is_

    if isinstance(type_, _arrow().BaseExtensionType):
        return kind_of(type_.storage_type)
    if is_.is_dictionary(type_):
        return kind_of(type_.value_type)
    if is_.is_run_end_encoded(type_):
        return kind_of(type_.value_type)
    if is_.is_fixed_size_list(type_):
        kind, size = kind_of(type_.value_type)
        return (kind if kind == "number" else None), type_.list_size * (size or 1)
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return "text", None
    if is_.is_timestamp(type_) or is_.is_date(type_):
        return "date", None
    if is_.is_duration(type_) or is_.is_time(type_):
        return "duration", None
    plain = (is_.is_integer, is_.is_floating, is_.is_boolean, is_.is_decimal, is_.is_null)
    return ("number" if any(check(type_) for check in plain) else None), None


def _arrow() -> Any:
    import pyarrow

    return pyarrow


def _first_reason(left_out: dict[str, str]) -> str:
    name = next(iter(left_out))
    return f"column {name!r} is left out as {left_out[name]}" + (
        "" if len(left_out) == 1 else f", like {some_of(list(left_out)[1:])}"
    )


def _plain(array: Any) -> Any:
    """Return an array without the ways to store it: extensions, dictionaries, runs."""
    import pyarrow.compute as compute
    import pyarrow.types as is_

    if isinstance(array.type, _arrow().BaseExtensionType):
        return _plain(array.storage)
    if is_.is_run_end_encoded(array.type):
        return _plain(compute.run_end_decode(array))
    return array


def _texts(array: Any, name: str, found: BadCells) -> Array:
    import pyarrow.types as is_

    array = _plain(array)
    value = array.type.value_type if is_.is_dictionary(array.type) else array.type
    if kind_of(value)[0] in ("date", "duration"):
        return _texts_of_times(_numbers(array, name, found))
    if not is_.is_dictionary(array.type):
        # Texts repeat: each is made once, and rows share it.
        array = array.dictionary_encode()
    places = array.indices.cast(_arrow().int64()).fill_null(len(array.dictionary)).to_numpy()
    try:
        words = array.dictionary.to_pylist()
    except UnicodeDecodeError:
        cells = array.dictionary_decode().cast(_arrow().large_binary(), safe=False)
        return np.array(found.decoded(name, cells.to_pylist(), "utf-8"), dtype=object)
    distinct = np.full(len(words) + 1, None, dtype=object)
    distinct[:-1] = [None if word is None or word != word else str(word) for word in words]
    return distinct[places]


def _texts_of_times(times: Array) -> Array:
    texts = times.astype("U").astype(object)
    texts[np.isnat(times)] = None
    return texts


def _numbers(array: Any, name: str, found: BadCells) -> Array:
    """Return cells of one or two axes: numbers, dates or durations."""
    import pyarrow.compute as compute
    import pyarrow.types as is_

    pa = _arrow()
    array = _plain(array)
    type_ = array.type
    if is_.is_dictionary(type_):
        return _numbers(array.dictionary_decode(), name, found)
    if is_.is_fixed_size_list(type_):
        return _matrix(array, name, found)
    if is_.is_null(type_):
        return np.full(len(array), np.nan)
    if is_.is_timestamp(type_) or is_.is_date(type_):
        if getattr(type_, "tz", None):
            array = compute.local_timestamp(array)
        return _microseconds(array, pa.timestamp("us"))
    if is_.is_duration(type_):
        return _microseconds(array, pa.duration("us"))
    if is_.is_time(type_):
        whole = array.cast(pa.int32() if is_.is_time32(type_) else pa.int64())
        return _microseconds(
            whole.cast(pa.int64()).cast(pa.duration(type_.unit)), pa.duration("us")
        )
    if is_.is_decimal(type_):
        array = array.cast(pa.float64())
    if is_.is_floating(array.type):
        cells: Array = array.to_numpy(zero_copy_only=False)
        return cells.astype(np.float32) if cells.dtype == np.float16 else cells
    gaps = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if gaps is not None:
        array = array.fill_null(False if is_.is_boolean(type_) else 0)
    cells = array.to_numpy(zero_copy_only=False)
    cells = cells.view(np.uint8) if cells.dtype == bool else cells
    found.look_at([name], cells)
    if gaps is not None:
        cells = cells.astype(np.float64)
        cells[gaps] = np.nan
    return cells


def _microseconds(array: Any, type_: Any) -> Array:
    import pyarrow.compute as compute

    # Finer fractions go; a time that does not fit is an error.
    how = compute.CastOptions(target_type=type_, allow_time_truncate=True)
    return array.cast(options=how).to_numpy(zero_copy_only=False)


def _matrix(array: Any, name: str, found: BadCells) -> Array:
    size, inner = array.type.list_size, BadCells()
    flat = _numbers(array.values.slice(array.offset * size, len(array) * size), name, inner)
    found.join(inner, size)
    cells: Array = flat.reshape(len(array), flat.size // max(1, len(array)))
    if array.null_count:
        cells = cells.astype(cells.dtype if cells.dtype.kind == "f" else np.float64)
        cells[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return cells
