"""Files of rows, read in blocks: one module a format."""

from imparo.data.readers.bad_rows import BadRows, RowError
from imparo.data.readers.base import LineFormat, ReadOptions, Rows, SparseBlock

__all__ = ["BadRows", "LineFormat", "ReadOptions", "RowError", "Rows", "SparseBlock"]
