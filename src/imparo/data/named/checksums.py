"""A checksum of what arrays hold, whatever file they are in."""

import hashlib
from typing import Any

import numpy as np

from imparo.engine import row_blocks

# Cells that are in double precision at once.
_CELLS = 2**20


def content_checksum(array: Any) -> str:
    """Return the SHA-256 of the shape and the values of an array of numbers.

    Values are taken as 64-bit floats, low byte first, row after row, so that neither the
    type nor the compression of the file counts. -0 counts as 0 and all NaN are one. Takes
    8 MB of memory beside the array.

    Parameters
    ----------
    array : array
        Numbers or flags, with at least one axis.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.data.named import content_checksum
    >>> content_checksum(np.arange(4, dtype=np.uint8))[:16]
    'b236fdd1c9315144'
    >>> a = np.arange(6, dtype="f4").reshape(2, 3)
    >>> content_checksum(a) == content_checksum(np.asfortranarray(a, dtype=">i8"))
    True
    """
    array = np.asarray(array)
    if array.ndim < 1 or array.dtype.kind not in "biuf":
        raise TypeError(
            f"an array of {array.dtype} with {array.ndim} axes has no checksum here; give rows "
            "of numbers"
        )
    digest = hashlib.sha256(",".join(map(str, array.shape)).encode() + b"\n")
    width = max(1, int(np.prod(array.shape[1:])))
    for rows in row_blocks(len(array), max(1, _CELLS // width)):
        block = np.ascontiguousarray(array[rows], dtype="<f8") + 0.0
        block[np.isnan(block)] = np.nan
        digest.update(np.ascontiguousarray(block, dtype="<f8").tobytes())
    return digest.hexdigest()
