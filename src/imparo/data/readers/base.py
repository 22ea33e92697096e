"""What every reader is: rows of named columns that can be read in blocks, many times."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imparo.data.readers.bad_rows import BadRows
from imparo.engine import Array

#: Cells that mean that a value is missing, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
#: Whole numbers beyond this lose digits as floats.
LARGEST_WHOLE = 2**53


@dataclass(frozen=True)
class SparseBlock:
    """Rows of a sparse file.

    Attributes
    ----------
    X : csr_array of shape (k, d)
    y : array of shape (k,)
        The number, or text, that begins each line.
    first : 0 or 1
        The index that the first column has in the file.
    """

    X: Any
    y: Array
    first: int = 1

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class ReadOptions:
    """How to read files; readers ignore what their format has no use for.

    Attributes
    ----------
    delimiter : str or None
        Between the cells of a text file; found out if None.
    header : bool or None
        Whether the first line holds names; found out if None.
    encoding : str
        Of text files.
    text : tuple of str
        Columns to read as text though they hold numbers, such as codes and identifiers.
    bad : BadRows
        What to do with rows that cannot be used.
    part : str or None
        "train", "test" or "val": which rows of an archive that holds several parts.
    n_columns : int or None
        Number of columns of a sparse file, where rows to come may have more than this one.
    first_index : int or None
        0 or 1: the number of the first column of a sparse file; found out if None.
    """

    delimiter: str | None = None
    header: bool | None = None
    encoding: str = "utf-8"
    text: tuple[str, ...] = ()
    bad: BadRows = None  # type: ignore[assignment]  # a new one for every reader
    part: str | None = None
    n_columns: int | None = None
    first_index: int | None = None

    def __post_init__(self) -> None:
        if self.bad is None:
            object.__setattr__(self, "bad", BadRows())


class LineFormat(ABC):
    """A format of lines: any number of whole lines can be parsed on their own."""

    names: list[str]
    kinds: dict[str, str]

    @abstractmethod
    def parse(self, chunk: bytes, file: str | Path, line: int, offset: int = 0) -> Any:
        """Return the rows of some whole lines, as a Frame or SparseBlock.

        Parameters
        ----------
        chunk : bytes
            Whole lines, without the line of names.
        file : str or Path
            For errors.
        line : int
            Number of the first line of the chunk, from 1 on, for errors.
        """


class Rows(ABC):
    """Rows of one file, or of several files of one format.

    Attributes
    ----------
    names : list of str
        Names of the columns, in order; empty for sparse files.
    kinds : dict of str to str
        "number", "text", "date" or "duration" for every column.
    is_sparse : bool
        Whether blocks are :class:`SparseBlock`, not :class:`~imparo.data.Frame`.
    n_rows : int or None
        Where it is known without reading the rows.
    n_columns : int
        Number of columns, target not counted where the file is sparse.
    files : list of Path
        What is read.
    format : str
        Such as "csv" or "parquet".
    groups : dict of str to list of str
        Columns that belong together, by name: the parts ``X[0]``, ``X[1]`` … of an array ``X``.
    targets : list of str
        Columns that the file itself calls its target, such as ``y`` beside ``X``; may be empty.
    bad : BadRows
    lines : LineFormat or None
        How lines are parsed, if the format is one of lines.
    """

    names: list[str]
    kinds: dict[str, str]
    is_sparse: bool = False
    n_rows: int | None = None
    n_columns: int
    files: list[Path]
    format: str
    groups: dict[str, list[str]]
    targets: list[str]
    bad: BadRows
    lines: LineFormat | None = None

    @abstractmethod
    def blocks(
        self, columns: Sequence[str] | None = None, size: int | None = None
    ) -> Iterator[Any]:
        """Yield the rows in order, at most ``size`` at a time.

        Every call begins a new pass from the first row; a pass has one block in memory (and
        one ahead, at most).

        Parameters
        ----------
        columns : sequence of str, optional
            Names of the columns to read, in this order; all of them if left out.
        size : int, optional
            The most rows of a block; what suits the format if left out, about 2²¹ cells.
        """
