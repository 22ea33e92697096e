"""Rows that are in memory already, read like those of a file."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from imparo.data.frames import Frame
from imparo.data.readers.asked_columns import asked_columns, rows_of_a_block
from imparo.data.readers.bad_rows import BadRows
from imparo.data.readers.base import Rows
from imparo.engine import Array, row_blocks

_KINDS = {"M": "date", "m": "duration", "O": "text"}


class ArrayRows(Rows):
    """The rows of a frame, handed out in blocks.

    Blocks are views: nothing is copied.

    Parameters
    ----------
    frame : Frame
    targets : sequence of str
        Columns that are to be learned; may be empty.
    groups : mapping from str to sequence of str, optional
        Columns that belong together, by name.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.data import Frame
    >>> from imparo.data.readers.in_memory import ArrayRows
    >>> rows = ArrayRows(Frame({"age": [1.0, 2.0, 3.0], "city": ["Rome", "Oslo", None]}))
    >>> rows.kinds, rows.n_rows
    ({'age': 'number', 'city': 'text'}, 3)
    >>> [len(block) for block in rows.blocks(["age"], size=2)]
    [2, 1]
    """

    format = "memory"

    def __init__(
        self,
        frame: Frame,
        targets: Sequence[str] = (),
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        for target in targets:
            if target not in frame.columns:
                raise ValueError(
                    f"the target {target!r} is no column; there are {', '.join(frame.columns)}"
                )
        self._frame = frame
        self.names = frame.columns
        kinds = (_KINDS.get(dtype.kind, "number") for dtype in frame.dtypes)
        self.kinds = dict(zip(self.names, kinds, strict=True))
        self.n_rows, self.n_columns = frame.shape
        self.files = []
        self.groups = {name: list(columns) for name, columns in (groups or {}).items()}
        self.targets = list(targets)
        self.bad = BadRows()

    @classmethod
    def from_arrays(
        cls, X: Any, y: Any = None, names: Sequence[str] | None = None, target: str = "y"
    ) -> "ArrayRows":
        """Return the rows of a matrix, and of a vector to learn.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,), optional
        names : sequence of str, optional
            Of the columns of X; ``X[0]``, ``X[1]`` … if left out, as in archives of NumPy.
        target : str
            Name of y.

        Examples
        --------
        >>> import numpy as np
        >>> from imparo.data.readers.in_memory import ArrayRows
        >>> ArrayRows.from_arrays(np.eye(2), np.array([5, 6])).names
        ['X[0]', 'X[1]', 'y']
        """
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X has shape {X.shape}; give rows and columns")
        named = [f"X[{j}]" for j in range(X.shape[1])] if names is None else list(names)
        if len(named) != X.shape[1] or len({*named, target}) != len(named) + 1:
            raise ValueError(
                f"{len(named)} names for {X.shape[1]} columns; give one for each column of X, "
                f"all different and none of them {target!r}"
            )
        columns: dict[str, Array] = {name: X[:, j] for j, name in enumerate(named)}
        if y is not None:
            columns[target] = np.asarray(y)
        frame = Frame(columns, len(X))
        return cls(frame, [] if y is None else [target], {"X": named})

    def blocks(
        self, columns: Sequence[str] | None = None, size: int | None = None
    ) -> Iterator[Frame]:
        """Yield the rows in order, at most ``size`` at a time.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of the columns to read, in this order; all of them if left out.
        size : int, optional
            The most rows of a block; about 2²¹ cells if left out.
        """
        chosen = self._frame.select(asked_columns(columns, self.names, {}, "the table"))
        for rows in row_blocks(len(chosen), rows_of_a_block(size, chosen.shape[1])):
            yield chosen[rows]
