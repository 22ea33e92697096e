"""How a text table is written: its delimiter, its decimal mark, its line of names."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from imparo.data.readers.text_cells import BLANKS, is_missing, is_number, kind_of

#: What is looked for between cells, the likely ones first: a comma may stand within numbers of
#: a file that is delimited by another mark.
DELIMITERS = ("\t", ";", ",", "|")
_NAMES = {"\t": "tab", " ": "space", ";": "semicolon", ",": "comma", "|": "bar"}
_SPELLINGS = {"\\t": "\t", "tab": "\t", "space": " ", "comma": ",", "semicolon": ";"}
# Rows that are looked at for the delimiter.
_LOOK = 20
_TOKEN = re.compile(r'"((?:[^"]|"")*)"(?!\S)|(\S+)')
_WITH_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")


@dataclass(frozen=True)
class Layout:
    """What is known about a table before its rows are read.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    kinds : dict of str to str
        "number", "date" or "text" for each.
    delimiter, decimal : str
    width : int
        Number of cells of the rows; more than there are names if rows end with delimiters.
    """

    names: list[str]
    kinds: dict[str, str]
    delimiter: str
    decimal: str
    width: int

    @cached_property
    def places(self) -> dict[str, int]:
        """Number of the cell of each column."""
        return {name: place for place, name in enumerate(self.names)}


class Record(NamedTuple):
    """A row of a text table.

    Attributes
    ----------
    line : int
        Number of the line where it begins, in the text and from 0 on.
    cells : list of str
        Stripped.
    """

    line: int
    cells: list[str]


def records(text: str, delimiter: str) -> Iterator[Record]:
    """Yield the rows of a text, blank lines left out.

    Parameters
    ----------
    text : str
        Whole lines.
    delimiter : str
        A character; a space stands for any run of spaces and tabs, and then a quoted cell
        cannot hold line ends.
    """
    lines = io.StringIO(text, newline="")
    if delimiter == " ":
        for number, line in enumerate(lines):
            cells = _tokens(line)
            if cells:
                yield Record(number, cells)
        return
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    start = 0
    for row in reader:
        if len(row) > 1 or (row and row[0].strip()):
            yield Record(start, [cell.strip(BLANKS) for cell in row])
        start = reader.line_num


def name_of(delimiter: str) -> str:
    """Return what to call a delimiter in a sentence."""
    return _NAMES.get(delimiter, repr(delimiter))


def given_delimiter(delimiter: str) -> str:
    """Return the delimiter that a user means: "tab" and a backslash with t are spellings."""
    delimiter = _SPELLINGS.get(delimiter.lower(), delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise ValueError(
            f"the delimiter {delimiter!r} cannot be used; give one character, such as ';', or "
            "'tab'"
        )
    return delimiter


def find_delimiter(start: str) -> str:
    r"""Return what stands between the cells of a table, from the start of its text.

    That is the first of tab, semicolon, comma and bar that splits all rows into the same
    number of cells; or the first one in the first row; or blanks, if none is there.

    Examples
    --------
    >>> from imparo.data.readers.text_dialect import find_delimiter
    >>> find_delimiter("a;b\n1,5;2\n"), find_delimiter("1 2 3\n4 5 6\n")
    (';', ' ')
    """
    line = next((line for line in start.splitlines() if line.strip()), "")
    for mark in DELIMITERS:
        rows = _first_rows(start, mark)
        if rows and len(rows[0]) > 1 and _of_one_length(rows):
            return " " if mark == "\t" and _aligned(rows) else mark
    line = re.sub('"[^"]*"', "", line).strip()
    if mark := next((mark for mark in DELIMITERS if mark in line), ""):
        return mark
    return " " if len(_tokens(line)) > 1 else ","


def other_delimiters(rows: Sequence[Record]) -> list[str]:
    """Return the marks that split most rows of a table of one column into several cells."""
    lines = [" ".join(row.cells) for row in rows[:_LOOK]]
    return [
        mark
        for mark in (*DELIMITERS, " ")
        if 2 * sum(mark in line for line in lines) > len(lines)
    ]


def find_decimal(columns: Sequence[Sequence[str]], delimiter: str) -> str:
    """Return the decimal mark: a comma if it is sure to be one, else a point.

    It is one if some column holds only numbers once its commas are read so, no column holds
    numbers with points, and not all of them could be thousands, as in "1,234".
    """
    if delimiter == ",":
        return "."
    sure = False
    for column in columns:
        there = [cell for cell in column if not is_missing(cell)]
        commas = [cell for cell in there if "," in cell]
        if any("." in cell and is_number(cell) for cell in there):
            return "."
        if commas and all(is_number(cell, ",") for cell in there):
            sure |= any(
                _WITH_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell)
                for cell in commas
            )
    return "," if sure else "."


def has_names(rows: Sequence[Record], decimal: str) -> bool:
    """Return whether the first row holds names: text alone, or text above numbers or dates.

    Text that is all found again below it, each in its column, is data.
    """
    first, rest = rows[0].cells, rows[1:]
    text = [j for j, cell in enumerate(first) if kind_of([cell], decimal) == "text"]
    below = [[row.cells[j] for row in rest if j < len(row.cells)] for j in range(len(first))]
    if all(j in text or is_missing(cell) for j, cell in enumerate(first)):
        return not (text and all(first[j] in below[j] for j in text))
    # All of a column can be missing, which says nothing about its name.
    return any(
        any(not is_missing(cell) for cell in below[j]) and kind_of(below[j], decimal) != "text"
        for j in text
    )


def _first_rows(start: str, delimiter: str) -> list[list[str]]:
    rows = [row.cells for row in islice(records(start, delimiter), _LOOK + 1)]
    # The last may be cut short, where only the start of the file was read.
    return (
        rows[:_LOOK]
        if len(rows) > _LOOK or start.endswith(("\n", "\r"))
        else (rows[:-1] or rows)
    )


def _of_one_length(rows: list[list[str]]) -> bool:
    """Return whether rows are equally long, be it without the empty cells at their ends."""
    if len(set(map(len, rows))) == 1:
        return True
    return len({max((j for j, cell in enumerate(row) if cell), default=0) for row in rows}) == 1


def _aligned(rows: list[list[str]]) -> bool:
    """Return whether every row has a cell of several numbers: tabs beside spaces."""
    return all(
        any(len(parts := cell.split()) > 1 and all(map(is_number, parts)) for cell in row)
        for row in rows
    )


def _tokens(line: str) -> list[str]:
    if '"' not in line:
        return line.split()
    return [
        token[1].replace('""', '"') if token[2] is None else token[2]
        for token in _TOKEN.finditer(line)
    ]
