"""Rows of numbers as they come in JSON: checked and made an array, in one pass each."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import PlainValidator, WithJsonSchema

from imparo.engine import Array

_NUMBERS = {int, float}
# What is squared must be a number still.
_LARGEST = 1e100


class Matrix(NamedTuple):
    """Rows, and how they came.

    Attributes
    ----------
    rows : array of shape (n, d)
    flat : bool
        Whether they came as one list of numbers, which stands as one row here.
    """

    rows: Array
    flat: bool


def matrix_of(sent: Any) -> Matrix:
    """Return a list of numbers, or of rows of as many numbers each, as a matrix.

    Parameters
    ----------
    sent : list of float or list of list of float

    Raises
    ------
    ValueError
        If it is anything else, or a number is not finite.

    Examples
    --------
    >>> from imparo.service.rows import matrix_of
    >>> matrix_of([[1, 2], [3, 4.5]]).rows.shape, matrix_of([1, 2, 3]).rows.shape
    ((2, 2), (1, 3))
    """
    if not isinstance(sent, list) or not sent:
        raise ValueError("a list of numbers, or of rows of numbers, was expected")
    flat = not isinstance(sent[0], list)
    rows: Sequence[Any] = [sent] if flat else sent
    width = len(rows[0])
    if width == 0:
        raise ValueError("a row is empty; send numbers")
    for i, row in enumerate(rows):
        if type(row) is not list or len(row) != width:
            raise ValueError(f"row {i} has not {width} numbers, as the first one; all must")
        # Of types, not of values: a set of a few is made at the speed of C.
        if not set(map(type, row)) <= _NUMBERS:
            raise ValueError(f"row {i} holds something that is not a number")
    try:
        array = np.array(rows, np.float64)
    except OverflowError:
        raise ValueError("a number is too large") from None
    # Written so that NaN fails, too.
    if not (np.abs(array) <= _LARGEST).all():
        raise ValueError("a number is NaN, infinite or beyond 1e100; send others")
    return Matrix(array, flat)


_ROW = {"type": "array", "items": {"type": "number"}, "minItems": 1}
#: One row, or several.
Rows = Annotated[
    Matrix,
    PlainValidator(matrix_of),
    WithJsonSchema({"anyOf": [_ROW, {"type": "array", "items": _ROW, "minItems": 1}]}),
]
