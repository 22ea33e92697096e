"""Sparse rows in text, as LIBSVM and SVMlight write them: ``label index:value …``."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from imparo.data.readers.base import LineFormat, ReadOptions, SparseBlock
from imparo.data.readers.compression import Openable
from imparo.data.readers.line_rows import LineRows, opened_text, read_encoding
from imparo.data.readers.sparse_fast import COMMENT, SparseParts, fast_parts
from imparo.data.readers.sparse_scan import Scan, scan_chunk
from imparo.data.readers.text_cells import as_numbers, as_text, is_missing, is_number, kind_of
from imparo.data.readers.text_chunks import decoded, whole_lines
from imparo.engine import Array

_INDEX = re.compile("[0-9]{1,18}")


class SparseLines(LineFormat):
    """Lines of sparse rows.

    Parameters
    ----------
    n_columns : int
    first : 0 or 1
        The index of the first column.
    text : bool
        Whether labels are text.
    options : ReadOptions

    Attributes
    ----------
    fast : bool
        Whether whole chunks are converted at once where they are well formed.
    """

    def __init__(self, n_columns: int, first: int, text: bool, options: ReadOptions) -> None:
        self.names, self.kinds = [], {}
        self.n_columns, self.first, self.text, self.fast = n_columns, first, text, True
        self._bad, self._encoding = options.bad, read_encoding(options.encoding)

    def parse(
        self,
        chunk: bytes,
        file: object,
        line: int,
        offset: int = 0,
        columns: Sequence[str] | None = None,
    ) -> SparseBlock:
        """Return the rows of some whole lines.

        Cost: about 0.2 µs an entry with pyarrow, 0.4 µs without, 2 µs line by line.

        Parameters
        ----------
        chunk : bytes
            Whole lines.
        file : str or Path
            For errors.
        line, offset : int
            Numbers of the first line, from 1 on, and of the first byte, for errors.
        columns : None
            Sparse files have no names to choose from.
        """
        if columns:
            raise ValueError(
                f"{file} is sparse and has no names of columns, so {columns[0]!r} is not "
                "there; read all of it"
            )
        parts = fast_parts(chunk, self.first, self.n_columns) if self.fast else None
        y = None if parts is None else self._y(parts.labels)
        if parts is None or y is None:
            text = decoded(chunk, self._encoding, file, line, offset)
            parts = self._exact_parts(text, file, line)
            y = self._y(parts.labels)
            assert y is not None
        starts = np.concatenate([[0], np.cumsum(parts.counts)])
        X = sparse.csr_array(
            (parts.values, parts.indices - self.first, starts),
            shape=(len(parts.labels), self.n_columns),
        )
        return SparseBlock(X, y, self.first)

    def _y(self, labels: list[str]) -> Array | None:
        """Return labels as an array, or None if one is no number though it should be."""
        if any(map(_are_several, labels)):
            return None
        if not self.text:
            found = as_numbers(labels)
            return None if found.wrong or found.large else found.cells
        return as_text(labels).cells

    def _exact_parts(self, text: str, file: object, line: int) -> SparseParts:
        labels: list[str] = []
        counts: list[int] = []
        indices: list[int] = []
        values: list[float] = []
        for place, row in enumerate(text.split("\n")):
            label, *entries = row.partition("#")[0].split() or [""]
            if not label:
                continue
            if _are_several(label):
                raise ValueError(
                    f"{file}, line {line + place:,}: {label[:40]!r} are several labels, which "
                    "cannot be learnt; give one label a line"
                )
            found = self._entries(entries)
            if isinstance(found, tuple) and (wrong := self._wrong_label(label)) is None:
                labels.append(label)
                counts.append(len(found[0]))
                indices += found[0]
                values += found[1]
            else:
                what = found if isinstance(found, str) else str(wrong)
                self._bad.report(str(file), line + place, what, "correct the line")
        return SparseParts(
            labels, np.array(counts, int), np.array(indices, int), np.array(values, float)
        )

    def _wrong_label(self, label: str) -> str | None:
        if ":" in label:
            return f"the line begins with {label[:40]!r}, and not with a label"
        if not self.text and not is_missing(label):
            found = as_numbers([label])
            if found.wrong or found.large:
                return f"the label {label[:40]!r}, where labels are numbers"
        return None

    def _entries(self, entries: list[str]) -> tuple[list[int], list[float]] | str:
        """Return indices and values, or what is wrong with one of them."""
        indices: list[int] = []
        values: list[float] = []
        before = self.first - 1
        for entry in entries:
            index, colon, value = entry.partition(":")
            shown = repr(entry[:40])
            if index == "qid" and _INDEX.fullmatch(value):
                continue
            if not colon:
                return f"{shown} where index:value is expected"
            if not _INDEX.fullmatch(index):
                return f"the index of {shown} is not a whole number from {self.first} on"
            if not is_number(value):
                return f"the value of {shown} is not a number"
            place = int(index)
            if place <= before:
                if not indices:
                    return f"the index of {shown} is not a whole number from {self.first} on"
                same = " twice" if place == before else f" after {before}"
                return f"the index {place}{same}; indices must ascend"
            indices.append(place)
            values.append(float(value))
            before = place
        if before >= self.n_columns + self.first:
            return f"the index {before} is beyond the {self.n_columns:,} columns that there are"
        return indices, values


def _are_several(label: str) -> bool:
    return "," in label and all(map(is_number, label.split(",")))


def open_sparse(
    path: Path | Openable, options: ReadOptions | None = None, like: LineRows | None = None
) -> LineRows:
    r"""Open a file of sparse rows.

    The file is scanned once for the largest index and for whether indices begin with 0: they
    do if there is one that is 0. Whether labels are numbers or text is decided on the first
    megabytes.

    Parameters
    ----------
    path : Path or Openable
        Lines of ``label index:value …`` with ascending indices; ``qid`` and what follows "#"
        is ignored. May be compressed.
    options : ReadOptions, optional
    like : LineRows, optional
        Another file of the same set, from which is taken whether labels are text.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from imparo.data.readers.sparse_text import open_sparse
    >>> path = Path(tempfile.mkdtemp()) / "a.svm"
    >>> _ = path.write_text("+1 1:0.5 3:2\n-1 2:1 # a comment\n")
    >>> block = next(open_sparse(path).blocks())
    >>> block.X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> block.y
    array([ 1., -1.])
    """
    options = options or ReadOptions()
    scan = Scan()
    labels: list[str] = []
    with opened_text(path, options.encoding) as file:
        for chunk in whole_lines(file, path, None):
            content = chunk.content
            content = COMMENT.sub(b"", content) if b"#" in content else content
            if not labels:
                labels = [
                    line.split(None, 1)[0].decode(errors="replace")
                    for line in content.split(b"\n")
                    if line.strip()
                ]
            scan = scan.joined(scan_chunk(content))
    if not scan.rows:
        raise ValueError(f"{path} is empty; give a file with rows")
    if not scan.entries and options.n_columns is None:
        raise ValueError(
            f"{path} has no entry index:value; give a file of lines such as '1 3:0.5 7:2'"
        )
    first = options.first_index
    if first is None:
        first = 0 if scan.smallest == 0 else 1
    if like is not None:
        text = like.lines.text
    else:
        text = kind_of([label for label in labels if "," not in label]) == "text"
    n_columns = (
        max(0, scan.largest + 1 - first) if options.n_columns is None else options.n_columns
    )
    lines = SparseLines(n_columns, first, text, options)
    rows = LineRows(path, lines, options, "libsvm")
    rows.is_sparse, rows.n_columns, rows.targets = True, n_columns, ["y"]
    # Lines that will be skipped are not known yet.
    rows.n_rows = scan.rows if options.bad.policy == "stop" else None
    return rows
