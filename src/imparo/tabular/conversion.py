"""Data frames of other libraries as ours."""

from typing import Any

from imparo.data import Frame
from imparo.preparation.columns import column


def as_frame(table: Any) -> Frame:
    """Return a data frame of pandas or polars, or a Frame, as a Frame.

    Parameters
    ----------
    table : data frame

    Returns
    -------
    Frame

    Examples
    --------
    >>> import pandas as pd
    >>> from imparo.tabular import as_frame
    >>> as_frame(pd.DataFrame({"a": [1, 2], "b": ["x", None]}))["b"]
    array(['x', None], dtype=object)
    """
    if isinstance(table, Frame):
        return table
    names = [str(name) for name in table.columns]
    if len(set(names)) < len(names):
        raise ValueError("the frame has several columns of one name; rename them")
    cells = {}
    for j, name in enumerate(names):
        found = column(table, j)
        if found.dtype == object:
            found = found.copy()
            found[[cell is not None and cell != cell for cell in found]] = None
        cells[name] = found
    return Frame(cells, len(table))
