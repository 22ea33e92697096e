"""Rows: where they come from, and data that are known by name."""

from imparo.data.frames import Frame
from imparo.data.readers.opening import open_rows
from imparo.data.shipped import Dataset, load_concrete

__all__ = ["Dataset", "Frame", "load_concrete", "open_rows"]
