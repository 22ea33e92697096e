"""Tables in text files: CSV and its relatives, with or without a line of names.

A chunk of lines goes one of two routes with the same result. The fast one
(:mod:`imparo.data.readers.text_fast`) converts all of it at once. Where that finds anything
odd, the exact one goes cell by cell, and so knows the line of whatever is wrong.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

from imparo.data.frames import Frame
from imparo.data.readers.bad_rows import NoRowsError
from imparo.data.readers.base import LineFormat, ReadOptions
from imparo.data.readers.column_choice import check_unlike, chosen_columns
from imparo.data.readers.compression import Openable, without_compression
from imparo.data.readers.line_rows import LineRows, opened_text, read_encoding, sample_of
from imparo.data.readers.text_cells import as_kind, complaint, kind_of
from imparo.data.readers.text_chunks import Chunk, decoded, n_lines
from imparo.data.readers.text_dialect import (
    Layout,
    Record,
    find_decimal,
    find_delimiter,
    given_delimiter,
    has_names,
    name_of,
    other_delimiters,
    records,
)
from imparo.data.readers.text_fast import by_arrow, by_numpy

_Found = tuple[Layout, bool]
# Bytes that are looked at for the delimiter.
_LOOK = 2**16


class TableLines(LineFormat):
    """Lines of a text table.

    Parameters
    ----------
    layout : Layout
    options : ReadOptions

    Attributes
    ----------
    names, kinds
        Of the columns.
    layout : Layout
    header_lines : int
        Number of lines of the file that come before the first row.
    fast : bool
        Whether the fast route is tried first.
    """

    def __init__(self, layout: Layout, options: ReadOptions, header_lines: int = 0) -> None:
        self.layout, self.names, self.kinds = layout, layout.names, layout.kinds
        self.header_lines, self.fast = header_lines, True
        self._bad, self._encoding = options.bad, read_encoding(options.encoding)
        self._unusual: set[str] = set()

    def parse(
        self,
        chunk: bytes,
        file: object,
        line: int,
        offset: int = 0,
        columns: Sequence[str] | None = None,
    ) -> Frame:
        """Return the rows of some whole lines.

        Cells of columns that are not asked for are not looked at, so that a column that
        cannot be read can be left out.

        Cost: some 0.1 µs a cell with pyarrow, 0.3 µs with NumPy where all columns are
        numbers, 0.8 µs by the exact route.

        Parameters
        ----------
        chunk : bytes
            Whole lines, without the line of names.
        file : str or Path
            For errors.
        line, offset : int
            Numbers of the first line, from 1 on, and of the first byte, for errors.
        columns : sequence of str, optional
            Names of the columns wanted; all of them if left out.
        """
        wanted = chosen_columns(columns, self.names, file)
        text = None
        if self._encoding != "utf-8" or not chunk.isascii():
            text = decoded(chunk, self._encoding, file, line, offset)
        if self.fast and wanted:
            plain = chunk if self._encoding == "utf-8" or text is None else text.encode()
            found = by_arrow(plain, self.layout, wanted, self._unusual)
            found = by_numpy(plain, self.layout, wanted) if found is None else found
            if found is not None:
                return Frame(found)
        if text is None:
            text = decoded(chunk, self._encoding, file, line, offset)
        return self._exact(text, file, line, wanted)

    def _exact(self, text: str, file: object, line: int, wanted: list[str]) -> Frame:
        wrong: dict[int, tuple[str, str]] = {}
        rows: list[Record] = []
        try:
            for row in records(text, self.layout.delimiter):
                cells = row.cells
                if len(cells) != len(self.names) and not self._fits(cells):
                    wrong[row.line] = (
                        f"{len(cells)} value{'s' * (len(cells) != 1)} where "
                        f"{len(self.names)} columns are",
                        "correct the line",
                    )
                else:
                    rows.append(row)
        except csv.Error as error:
            raise ValueError(
                f"{file}, line {line + (rows[-1].line if rows else 0):,} or later: {error}; "
                "correct the line"
            ) from error
        found = {}
        for name in wanted:
            place, kind = self.layout.places[name], self.kinds[name]
            column = as_kind([row.cells[place] for row in rows], kind, self.layout.decimal)
            found[name] = column.cells
            for k in (*column.wrong, *column.large):
                wrong.setdefault(
                    rows[k].line,
                    complaint(rows[k].cells[place], name, kind, k in column.large),
                )
        for place in sorted(wrong):
            self._bad.report(str(file), line + place, *wrong[place])
        frame = Frame(found, len(rows))
        if wrong:
            frame = frame[[k for k, row in enumerate(rows) if row.line not in wrong]]
        return frame

    def _fits(self, cells: list[str]) -> bool:
        """Return whether a row is too long only by delimiters at its end."""
        return len(cells) > len(self.names) and not any(cells[len(self.names) :])


def open_text(
    path: Path | Openable, options: ReadOptions | None = None, like: LineRows | None = None
) -> LineRows:
    r"""Open a text table.

    Parameters
    ----------
    path : Path or Openable
        Of delimited text, ``.tsv`` with tabs; may be compressed.
    options : ReadOptions, optional
    like : LineRows, optional
        Another file of the same table, from which delimiter, decimal mark and kinds are taken
        and whether there is a line of names.

    Returns
    -------
    LineRows
        Kinds are decided on the first four megabytes, and at least a thousand rows. A column
        of which nine cells in ten are numbers is one of numbers, and rows with other cells are
        bad rows; a column of which all are dates and times of ISO 8601 is one of dates. A
        comma is taken for a decimal mark if it cannot be anything else: see
        :func:`~imparo.data.readers.text_dialect.find_decimal`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from imparo.data.readers.text_table import open_text
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("age,city\n20,Rome\n,Paris\n")
    >>> rows = open_text(path)
    >>> rows.kinds
    {'age': 'number', 'city': 'text'}
    >>> [block["age"] for block in rows.blocks()]
    [array([20., nan])]
    """
    options = options or ReadOptions()
    delimiter = _delimiter(path, options, like)
    quoting = None if delimiter == " " else delimiter
    if like is None:
        chunk = sample_of(path, options.encoding, quoting)
        rows = _sample(chunk, path, options, delimiter)
        layout, header = _layout(rows, path, options, delimiter)
        if header and len(rows) < 2:
            raise NoRowsError(f"{path} has a line of names and no rows; give some rows")
    else:
        chunk = sample_of(path, options.encoding, quoting, _LOOK, 1)
        rows = _sample(chunk, path, options, delimiter)
        layout, header = _layout_like(rows, path, like)
    header_lines = 0
    if header:
        header_lines = rows[1].line if len(rows) > 1 else n_lines(chunk.content) + 1
    return LineRows(
        path,
        TableLines(layout, options, header_lines),
        options,
        "csv",
        header_lines=header_lines,
        delimiter=quoting,
    )


def _delimiter(path: Path | Openable, options: ReadOptions, like: LineRows | None) -> str:
    if options.delimiter is not None:
        return given_delimiter(options.delimiter)
    if like is not None:
        delimiter: str = like.lines.layout.delimiter
        return delimiter
    if isinstance(path, Path) and without_compression(path).lower().endswith(".tsv"):
        return "\t"
    with opened_text(path, options.encoding) as file:
        start = file.read(_LOOK)
    # A character may be cut in two at the end, and errors are told when lines are read.
    text = start.decode(read_encoding(options.encoding), errors="replace")
    return find_delimiter(text.removeprefix("\ufeff"))


def _sample(chunk: Chunk, path: object, options: ReadOptions, delimiter: str) -> list[Record]:
    encoding = read_encoding(options.encoding)
    text = decoded(chunk.content, encoding, path, chunk.line, chunk.offset)
    try:
        rows = list(records(text, delimiter))
    except csv.Error as error:
        raise ValueError(f"{path} is not delimited text: {error}") from error
    if not rows:
        raise ValueError(f"{path} is empty; give a file with rows")
    return rows


def _layout(rows: list[Record], path: object, options: ReadOptions, delimiter: str) -> _Found:
    """Return what the table is like, and whether its first row holds names."""
    _check_several(rows, path, delimiter, options.delimiter is not None)
    first = rows[0].cells
    least = _filled(first)
    below = [row.cells for row in rows[1:] if len(row.cells) >= least]
    # A delimiter at the end of every row makes no column.
    width = max(least, min(len(first), max(map(_filled, below), default=0)))
    cells = [[*row[:width], *[""] * (width - len(row))] for row in below]
    decimal = find_decimal(list(zip(*cells, strict=True)), delimiter)
    header = has_names(rows, decimal) if options.header is None else options.header
    names = _names(first[:width], header, path)
    chosen_columns(options.text, names, path)
    if not header:
        cells.insert(0, first[:width])
    kinds = {
        name: "text" if name in options.text else kind_of([row[j] for row in cells], decimal)
        for j, name in enumerate(names)
    }
    longest = len(below[0]) if below else len(first)
    return Layout(names, kinds, delimiter, decimal, max(longest, width)), header


def _layout_like(rows: list[Record], path: object, like: LineRows) -> _Found:
    """Return what a table is like of which another file is known."""
    given: Layout = like.lines.layout
    header, first = like.header_lines > 0, rows[0].cells
    if header:
        names = _names(first, header, path)
        short = names[: _filled(first)]
        names = short if set(short) == set(given.names) else names
    elif _filled(first) <= len(given.names) <= len(first):
        names = given.names
    else:
        names = _names(first, header, path)
    # Names that the other file does not have are told by who compares the files.
    kinds = {name: given.kinds.get(name, "text") for name in names}
    longest = max(len(rows[1 if len(rows) > 1 else 0].cells), len(names))
    return Layout(names, kinds, given.delimiter, given.decimal, longest), header


def _names(first: list[str], header: bool, path: object) -> list[str]:
    names = [name if header and name else f"column {j}" for j, name in enumerate(first)]
    check_unlike(names, path)
    return names


def _filled(cells: list[str]) -> int:
    """Return the number of cells without the empty ones at the end; at least one."""
    return max((j for j, cell in enumerate(cells, 1) if cell), default=1)


def _check_several(rows: list[Record], path: object, delimiter: str, given: bool) -> None:
    """Raise if there is one column, where that is likely to be a mistake."""
    if max(len(row.cells) for row in rows[:20]) > 1:
        return
    others = [mark for mark in other_delimiters(rows) if mark != delimiter]
    if given and not others:
        return
    remedy = (
        f"its lines hold a {name_of(others[0])}: give it as the delimiter"
        if others
        else f"give a table of several, or the delimiter {delimiter!r} if one is meant"
    )
    raise ValueError(f"{path} has one column when split at each {name_of(delimiter)}; {remedy}")
