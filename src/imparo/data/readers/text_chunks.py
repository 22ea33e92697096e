"""Text in chunks of whole lines, cut where no quoted cell is cut in two."""

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from imparo.data.readers.compression import ByteReader
from imparo.engine import Array

#: Bytes of a chunk, about.
CHUNK = 2**23
# The most bytes of one line, or of one quoted cell: what is longer is a quote left open, or
# no text at all, and would take the memory of a whole file.
_LONGEST = 2**26
_BOM = codecs.BOM_UTF8
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Chunk:
    """Some whole lines.

    Attributes
    ----------
    content : bytes
    line : int
        Number of the first line, from 1 on.
    offset : int
        Number of the first byte, from 0 on.
    """

    content: bytes
    line: int
    offset: int


class Quotes(NamedTuple):
    """Where the quoted cells of a text begin and end.

    Attributes
    ----------
    starts, ends : array of int
        Places of the quotes that open and close; the last end is the length of the text if
        that cell is still open.
    plain : bool
        Whether all quotes stand next to delimiters or line ends, or are doubled.
    """

    starts: Array
    ends: Array
    plain: bool


def whole_lines(
    file: ByteReader, name: object, delimiter: str | None, size: int = CHUNK
) -> Iterator[Chunk]:
    """Yield the text of a file in chunks of whole lines.

    Memory: a chunk, or the longest line.

    Parameters
    ----------
    file : ByteReader
    name : str or Path
        For errors.
    delimiter : str or None
        Before cells that may be in quotes, and so hold line ends; None if there are none.
    size : int
        Bytes of a chunk, about.

    Yields
    ------
    Chunk
    """
    rest, line, offset = b"", 1, 0
    while True:
        more = file.read(size)
        if b"\0" in more:
            raise ValueError(
                f"{name} is not text: it holds bytes of zero; give a text file, or the "
                "encoding of this one, such as utf-16"
            )
        content = rest + more
        if offset == 0 and content.startswith(_BOM):
            content, offset = content[len(_BOM) :], len(_BOM)
        last = len(more) < size
        quotes = _quotes_of(content, delimiter)
        if quotes is not None and len(quotes.ends) and quotes.ends[-1] == len(content):
            start = int(quotes.starts[-1])
            if last or len(content) - start > _LONGEST:
                raise ValueError(
                    f"{name}, line {line + n_lines(content[:start]):,}: a quote opens here and "
                    "is not closed; close it, or double it where it is part of the text"
                )
        cut = len(content) if last else _cut(content, quotes)
        if cut == 0 and len(content) > _LONGEST:
            raise ValueError(
                f"{name}, line {line:,} is longer than {_LONGEST:,} bytes; give a file of "
                "lines of text"
            )
        if cut:
            whole = content[:cut]
            yield Chunk(whole, line, offset)
            line, offset = line + n_lines(whole), offset + cut
        if last:
            return
        rest = content[cut:]


def n_lines(content: bytes) -> int:
    """Return the number of line ends: of Unix, Windows or old Macs."""
    count = content.count(b"\n")
    if b"\r" in content:
        count += content.count(b"\r") - content.count(b"\r\n")
    return count


def after_lines(content: bytes, count: int) -> int:
    """Return the place behind the first ``count`` lines."""
    place = 0
    for _ in range(count):
        end = _LINE_END.search(content, place)
        if end is None:
            return len(content)
        place = end.end()
    return place


def quotes_in(content: bytes, delimiter: str) -> Quotes:
    """Return where the quoted cells of whole lines are.

    Cost: some 3 ns a byte if the quotes are plain, else about 300 ns a quoted cell.
    """
    cells = np.frombuffer(content, np.uint8)
    places = np.flatnonzero(cells == ord('"'))
    ends_of_cells = np.zeros(256, bool)
    ends_of_cells[[ord(delimiter), 10, 13]] = True
    opening, closing = places[0::2], places[1::2]
    # Whether doubled quotes are seen as one cell that closes and another that opens makes no
    # difference to what lies within cells, so counting quotes is enough where all are plain.
    before = (opening == 0) | ends_of_cells[cells[opening - 1]]
    before[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    after = (closing == len(cells) - 1) | ends_of_cells[
        cells[np.minimum(closing + 1, len(cells) - 1)]
    ]
    after[: len(opening) - 1] |= opening[1:] == closing[: len(opening) - 1] + 1
    if before.all() and after.all():
        if len(closing) < len(opening):
            closing = np.append(closing, len(cells))
        return Quotes(opening, closing, plain=True)
    starts, ends = [], []
    for found in _quoted_cell(delimiter).finditer(content):
        starts.append(found.start(1))
        ends.append(found.end() - 1 if found[2] else len(content))
    return Quotes(np.array(starts, int), np.array(ends, int), plain=False)


def decoded(chunk: bytes, encoding: str, name: object, line: int, offset: int) -> str:
    """Return the text of a chunk, or say at which line and byte it has another encoding."""
    try:
        return chunk.decode(encoding)
    except UnicodeDecodeError as error:
        place = error.start
        raise ValueError(
            f"{name}, line {line + n_lines(chunk[:place]):,}: byte {offset + place:,} "
            f"(0x{chunk[place]:02x}) is not {encoding.upper()}; give its encoding, such as "
            "latin-1"
        ) from error


def plain_encoding(encoding: str) -> bool:
    """Return whether line ends, quotes and delimiters are the bytes that they are in ASCII."""
    marks = '\n\r",;\t| '
    try:
        return marks.encode(encoding) == marks.encode()
    except LookupError as error:
        raise ValueError(
            f"there is no encoding {encoding!r}; give one such as utf-8, latin-1 or utf-16"
        ) from error


class Transcoded:
    """A file in another encoding, such as UTF-16, read as if it were in UTF-8."""

    def __init__(self, file: ByteReader, name: object, encoding: str) -> None:
        self._file, self._name, self._encoding = file, name, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._read = self._lines = 0

    def read(self, size: int) -> bytes:
        """Return some bytes of UTF-8, none at the end."""
        text, last = "", False
        while not (text or last):
            part = self._file.read(size)
            last = len(part) < size
            try:
                text = self._decoder.decode(part, final=last)
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{self._name}, line {self._lines + 1:,} or later: near byte "
                    f"{self._read + error.start:,} it is not {self._encoding.upper()}; give "
                    "its encoding"
                ) from error
            self._read += len(part)
            self._lines += text.count("\n")
        return text.encode("utf-8")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _quotes_of(content: bytes, delimiter: str | None) -> Quotes | None:
    if delimiter is None or b'"' not in content:
        return None
    return quotes_in(content, delimiter)


def _cut(content: bytes, quotes: Quotes | None) -> int:
    """Return the place behind the last line end that is not within quotes, or 0."""
    # A carriage return that ends the bytes may be the first half of a line end.
    place = max(content.rfind(b"\n"), content.rfind(b"\r", 0, len(content) - 1))
    while quotes is not None and place >= 0:
        cell = bisect_right(quotes.starts, place) - 1
        if cell < 0 or place > quotes.ends[cell]:
            break
        start = int(quotes.starts[cell])
        place = max(content.rfind(b"\n", 0, start), content.rfind(b"\r", 0, start))
    return place + 1


@cache
def _quoted_cell(delimiter: str) -> re.Pattern[bytes]:
    mark = re.escape(delimiter.encode())
    return re.compile(rb"(?:\A|[" + mark + rb'\n\r]) *+(")(?:[^"]++|"")*+("?)')
