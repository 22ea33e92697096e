"""Files of rows, read in blocks: one module a format."""

from imparo.data.readers.bad_rows import BadRows, NoRowsError, RowError
from imparo.data.readers.base import LineFormat, ReadOptions, Rows, SparseBlock
from imparo.data.readers.opening import open_rows

__all__ = [
    "BadRows",
    "LineFormat",
    "NoRowsError",
    "ReadOptions",
    "RowError",
    "Rows",
    "SparseBlock",
    "open_rows",
]
