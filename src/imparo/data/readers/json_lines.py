"""JSON: an object a line, or one array of objects."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from imparo.data.frames import Frame
from imparo.data.readers.asked_columns import rows_of_a_block
from imparo.data.readers.base import LineFormat, ReadOptions, Rows
from imparo.data.readers.column_choice import chosen_columns
from imparo.data.readers.compression import Openable
from imparo.data.readers.json_values import JsonSchema, schema_of
from imparo.data.readers.line_rows import (
    SAMPLE_ROWS,
    LineRows,
    opened_text,
    read_encoding,
    sample_of,
)
from imparo.data.readers.text_chunks import decoded

# The most bytes of an array of JSON, which is held in memory as text.
_LARGEST_ARRAY = 2**28
_BETWEEN = re.compile(r"[\s,]*")
_REMEDY = "write one whole JSON object a line"


class JsonLines(LineFormat):
    """Lines that are objects of JSON.

    Parameters
    ----------
    schema : JsonSchema
    options : ReadOptions
    """

    def __init__(self, schema: JsonSchema, options: ReadOptions) -> None:
        self.schema, self.names, self.kinds = schema, schema.names, schema.kinds
        self._bad, self._encoding = options.bad, read_encoding(options.encoding)

    def parse(
        self,
        chunk: bytes,
        file: object,
        line: int,
        offset: int = 0,
        columns: Sequence[str] | None = None,
    ) -> Frame:
        """Return the rows of some whole lines.

        Keys that are not columns are ignored; a value is missing where a key is not there.

        Cost: about 0.2 µs a value.

        Parameters
        ----------
        chunk : bytes
            Whole lines.
        file : str or Path
            For errors.
        line, offset : int
            Numbers of the first line, from 1 on, and of the first byte, for errors.
        columns : sequence of str, optional
            Names of the columns wanted; all of them if left out.
        """
        wanted = chosen_columns(columns, self.names, file)
        text = decoded(chunk, self._encoding, file, line, offset)
        objects, places, wrong = _objects(text)
        return checked_frame(self, file, line, wanted, objects, places, wrong)

    @property
    def bad(self) -> Any:
        """Where bad rows are reported."""
        return self._bad


def checked_frame(
    lines: JsonLines,
    file: object,
    line: int,
    wanted: list[str],
    objects: list[Any],
    places: list[int],
    wrong: dict[int, tuple[str, str]],
) -> Frame:
    """Return the frame of some objects, less those reported as bad rows.

    Parameters
    ----------
    lines : JsonLines
    file : str or Path
    line : int
        Number of the line that places are counted from.
    wanted : list of str
        Names of columns.
    objects : list of dict
    places : list of int
        Where each begins: lines from ``line`` on.
    wrong : dict of int to tuple
        What is known to be wrong, by place.
    """
    found, bad = lines.schema.read(objects, wanted)
    for row, what in bad.items():
        wrong.setdefault(places[row], what)
    for place in sorted(wrong):
        lines.bad.report(str(file), line + place, *wrong[place])
    frame = Frame(found, len(objects))
    return frame[[k for k in range(len(objects)) if k not in bad]] if bad else frame


class JsonArray(Rows):
    """Rows of a file that is one array of objects.

    Memory: the text of the file, and a block.

    Parameters
    ----------
    source : Path or Openable
    text : str
        The whole of it.
    options : ReadOptions
    schema : JsonSchema, optional
        The columns; found out if left out.

    Attributes
    ----------
    may_be_empty : bool
        Whether it is no error if there are no rows: other files may have some.
    """

    may_be_empty = False

    def __init__(
        self,
        source: "Path | Openable",
        text: str,
        options: ReadOptions,
        schema: JsonSchema | None = None,
    ) -> None:
        self.source, self.bad, self.format = source, options.bad, "json"
        self._text = text
        self.files = [source if isinstance(source, Path) else Path("-")]
        if schema is None:
            first = [found for _, found in islice(self._objects(), SAMPLE_ROWS)]
            objects = [found for found in first if isinstance(found, dict)]
            if not objects:
                raise ValueError(f"{source} holds no objects of JSON; give an array of some")
            schema = schema_of(objects, options.text, source)
        self.schema, self._lines = schema, JsonLines(schema, options)
        self.names, self.kinds, self.groups = schema.names, schema.kinds, schema.groups
        self.n_columns, self.targets = len(schema.names), []

    def blocks(
        self, columns: Sequence[str] | None = None, size: int | None = None
    ) -> Iterator[Frame]:
        """Yield the rows in order, at most ``size`` at a time."""
        wanted = chosen_columns(columns, self.names, self.source)
        self.bad.restart()
        return self._blocks(wanted, rows_of_a_block(size, 8 * self.n_columns))

    def _blocks(self, wanted: list[str], size: int) -> Iterator[Frame]:
        objects, count = self._objects(), 0
        while some := list(islice(objects, size)):
            wrong = {
                place: (f"{json.dumps(found)[:40]} is no object", _REMEDY)
                for place, found in some
                if not isinstance(found, dict)
            }
            good = [(place, found) for place, found in some if isinstance(found, dict)]
            frame = checked_frame(
                self._lines,
                self.source,
                0,
                wanted,
                [found for _, found in good],
                [place for place, _ in good],
                wrong,
            )
            count += len(frame)
            if len(frame):
                yield frame
        if not (count or self.may_be_empty):
            raise ValueError(
                f"{self.source} has no row that can be used: {self.bad.examples[0]}"
                if self.bad.examples
                else f"{self.source} has no rows; give a file with some"
            )

    def _objects(self) -> Iterator[tuple[int, Any]]:
        """Yield the line of each element and the element."""
        decoder, text = json.JSONDecoder(), self._text
        place = _skip(text, text.index("[") + 1)
        line, counted = 1, 0
        while not text.startswith("]", place):
            line, counted = line + text.count("\n", counted, place), place
            try:
                found, end = decoder.raw_decode(text, place)
            except (ValueError, RecursionError) as error:
                found_at = getattr(error, "lineno", line)
                raise ValueError(
                    f"{self.source}, line {found_at:,}: {_reason(error)}; correct the file, or "
                    f"{_REMEDY}"
                ) from error
            yield line, found
            place = _skip(text, end)


def open_json(
    path: Path | Openable, options: ReadOptions | None = None, like: Rows | None = None
) -> Rows:
    """Open a file of JSON.

    Parameters
    ----------
    path : Path or Openable
        An object a line, or below 256 MB one array of objects.
    options : ReadOptions, optional
    like : Rows, optional
        Another file of the same format, from which names and kinds are taken.

    Returns
    -------
    Rows
        With the columns of the first four megabytes, and at least a thousand lines: see
        :func:`~imparo.data.readers.json_values.schema_of`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from imparo.data.readers.json_lines import open_json
    >>> path = Path(tempfile.mkdtemp()) / "a.jsonl"
    >>> _ = path.write_text('{"x": [1, 2], "by": {"name": "Ada"}}')
    >>> rows = open_json(path)
    >>> rows.kinds
    {'x[0]': 'number', 'x[1]': 'number', 'by.name': 'text'}
    """
    options = options or ReadOptions()
    with opened_text(path, options.encoding) as file:
        start = file.read(2**16).removeprefix(b"\xef\xbb\xbf").lstrip()
    schema = _schema(like)
    if start.startswith(b"["):
        return JsonArray(path, _whole(path, options), options, schema)
    if schema is None:
        chunk = sample_of(path, options.encoding, None)
        encoding = read_encoding(options.encoding)
        text = decoded(chunk.content, encoding, path, chunk.line, chunk.offset)
        objects, _, wrong = _objects(text)
        if not objects:
            first = min(wrong)
            raise ValueError(
                f"{path} is not JSON lines: line {1 + first:,} holds {wrong[first][0]}; "
                f"{_REMEDY}"
            )
        schema = schema_of(objects, options.text, path)
    rows = LineRows(path, JsonLines(schema, options), options, "json")
    rows.groups = schema.groups
    return rows


def _schema(like: Rows | None) -> JsonSchema | None:
    if isinstance(like, JsonArray):
        return like.schema
    return like.lines.schema if isinstance(like, LineRows) else None


def _whole(path: Path | Openable, options: ReadOptions) -> str:
    with opened_text(path, options.encoding) as file:
        content = file.read(_LARGEST_ARRAY + 1)
    if len(content) > _LARGEST_ARRAY:
        raise ValueError(
            f"{path} is an array of JSON of more than {_LARGEST_ARRAY // 2**20} MB, which has "
            "to be held in memory; write it as JSON lines, an object a line"
        )
    text = decoded(content, read_encoding(options.encoding), path, 1, 0)
    return text.removeprefix("\ufeff")


def _skip(text: str, place: int) -> int:
    match = _BETWEEN.match(text, place)
    return match.end() if match else place


def _objects(text: str) -> tuple[list[Any], list[int], dict[int, tuple[str, str]]]:
    """Return the objects of lines, the line of each, and what is wrong with the others."""
    objects, kept, wrong = [], [], {}
    decode = json.JSONDecoder().raw_decode
    for place, line in enumerate(text.split("\n")):
        line = line.strip()
        if not line:
            continue
        try:
            found, end = decode(line)
            if end < len(line):
                raise json.JSONDecodeError("Extra data", line, end)
        except (ValueError, RecursionError) as error:
            wrong[place] = (f"wrong JSON, {_reason(error)}", _REMEDY)
            continue
        if isinstance(found, dict):
            objects.append(found)
            kept.append(place)
        else:
            wrong[place] = (f"{line[:40]} is no object", _REMEDY)
    return objects, kept, wrong


def _reason(error: Exception) -> str:
    """Return what is wrong with JSON: Python refuses numbers of thousands of digits, too."""
    deep = isinstance(error, RecursionError)
    reason = getattr(error, "msg", "nested too deep" if deep else "a number of too many digits")
    return f"{reason[:1].lower()}{reason[1:]}"
