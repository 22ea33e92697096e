"""Centers drawn uniformly, whatever the number of rows."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from imparo.centers.base import CenterRule, Chosen
from imparo.engine import Array, row_blocks
from imparo.persistence import persistent

_ROWS_AT_ONCE = 2**20


def uniform_positions(
    n: int, k: int, rng: np.random.RandomState, allowed: Array | None = None
) -> Array:
    """Draw k of n rows uniformly without replacement, in random order.

    Every row gets a random key, in the order of the rows, and the k smallest keys win:
    all ordered k-tuples are equally likely, and those of a smaller k are their beginning.
    Equal keys (of probability n²/2⁵⁴) go by the number of the row.

    Parameters
    ----------
    n, k : int
        Not negative.
    rng : RandomState
        Gives n numbers, whatever k and ``allowed``.
    allowed : array of bool of shape (n,), optional
        The rows that may be drawn; all if left out.

    Returns
    -------
    array of int of shape (min(k, number allowed),)

    Notes
    -----
    Cost n + k·log k for each 2²⁰ rows; memory O(k + 2²⁰), not O(n).

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.centers import uniform_positions
    >>> uniform_positions(10, 4, np.random.RandomState(0))
    array([9, 4, 6, 3])
    >>> uniform_positions(10, 2, np.random.RandomState(0))
    array([9, 4])
    """
    if n < 0 or k < 0:
        raise ValueError(f"n={n!r} and k={k!r} must be numbers of rows, not negative")
    if allowed is not None and (len(allowed) != n or allowed.dtype != np.bool_):
        raise ValueError(
            f"allowed has shape {allowed.shape} and type {allowed.dtype}; it must hold one "
            f"bool for each of the {n} rows"
        )
    rows, keys = np.empty(0, np.intp), np.empty(0)
    for part in row_blocks(n, _ROWS_AT_ONCE):
        new_keys = rng.random_sample(part.stop - part.start)
        new_rows = np.arange(part.start, part.stop)
        if allowed is not None:
            new_rows, new_keys = new_rows[allowed[part]], new_keys[allowed[part]]
        rows, keys = _smallest(
            k, np.concatenate([rows, new_rows]), np.concatenate([keys, new_keys])
        )
    return rows


def _smallest(k: int, rows: Array, keys: Array) -> tuple[Array, Array]:
    """Return the k pairs with the smallest keys, sorted; among equal keys, the first."""
    if 0 < k < len(keys):
        candidates = keys <= np.partition(keys, k - 1)[k - 1]
        rows, keys = rows[candidates], keys[candidates]
    order = np.argsort(keys, kind="stable")[:k]
    return rows[order], keys[order]


@persistent
@dataclass(frozen=True)
class Uniform(CenterRule):
    """Uniformly without replacement: plain Nyström (thesis, section 4.2). Cost n.

    The right choice where all rows matter alike: m must then be of the order of the
    *largest* leverage score times n, not of their sum.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.centers import Uniform
    >>> X = np.arange(6.0).reshape(6, 1)
    >>> Uniform().choose(X, None, 3, np.random.RandomState(0)).rows
    array([4, 3, 0])
    """

    needs_kernel: ClassVar[bool] = False

    def _choose(
        self, X: Any, kernel: Any, n_centers: int, rng: np.random.RandomState, memory: int
    ) -> Chosen:
        rows = uniform_positions(X.shape[0], n_centers, rng)
        return Chosen(rows, np.ones(len(rows)))
