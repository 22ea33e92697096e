"""What ``imparo advise`` looks at: the numbers of a file, in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from imparo.data.readers import Rows
from imparo.engine import Array, available_memory
from imparo.errors import MemoryBudgetError
from imparo.tabular import as_rows
from imparo.tabular.roles import assign_roles


@dataclass
class Table:
    """Rows and outputs to be advised on.

    Attributes
    ----------
    X : array or csr_array of shape (n, d)
    y : array of shape (n,) or (n, T)
    target : str
        Name of y.
    notes : list of str
        What was left out.
    """

    X: Any
    y: Array
    target: str
    notes: list[str] = field(default_factory=list)

    def scaled(self) -> Any:
        """Return X with standardised columns; sparse columns keep their zeros."""
        if sparse.issparse(self.X):
            return StandardScaler(with_mean=False).fit_transform(self.X)
        return StandardScaler().fit_transform(np.asarray(self.X, np.float64))


def read_numbers(
    source: str, target: str | None, show: Callable[[int, int | None, str], Any], **options: Any
) -> Table:
    """Read the columns of numbers and the target of what a user names.

    Rows where a value is missing are left out, and so are columns of text, with a note: advice
    is on a sample, and a fit fills and encodes them.

    Parameters
    ----------
    source : str
        File, folder, pattern, "-" or the name of a data set.
    target : str or None
        Column to learn; what the data call so, or the last one, if None.
    show : callable
        Called as ``show(done, total, description)``.
    **options
        How to read, as :func:`imparo.tabular.as_rows` takes it.
    """
    rows = as_rows(source, **options)
    roles = assign_roles(rows, target)
    if rows.is_sparse:
        X, y = _stacked(rows, [], [], show)
        return Table(X, y, roles.target[0])
    kept = [name for name in roles.inputs if rows.kinds[name] == "number"]
    if not kept:
        raise ValueError("no column but the target holds numbers; encode text first")
    X, y = _stacked(rows, kept, roles.target, show)
    empty = np.isnan(X).all(axis=0)
    left_out = [name for name, gone in zip(kept, empty, strict=True) if gone]
    left_out += [name for name in roles.inputs if rows.kinds[name] != "number"]
    if empty.any():
        X = X[:, ~empty]
    if not X.shape[1]:
        raise ValueError("no column but the target holds numbers; encode text first")
    notes = []
    if left_out:
        notes.append(f"columns without numbers were left out: {', '.join(left_out)}")
    full = ~(np.isnan(X).any(axis=1) | _missing(y))
    if not full.any():
        raise ValueError("a value is missing in every row; fill them in first")
    if not full.all():
        lost = int(np.count_nonzero(~full))
        notes.append(f"{lost:,} of {len(full):,} rows with missing values were left out")
        X, y = X[full], y[full]
    return Table(X, y, ", ".join(roles.target), notes)


def _stacked(
    rows: Rows, kept: list[str], target: list[str], show: Callable[[int, int | None, str], Any]
) -> tuple[Any, Array]:
    limit = available_memory()
    parts, outputs, read, size = [], [], 0, 0
    for block in rows.blocks(None if rows.is_sparse else [*kept, *target]):
        if rows.is_sparse:
            part, y = block.X, block.y
            size += part.data.nbytes + part.indices.nbytes
        else:
            part = np.asarray(block.matrix(kept), np.float64)
            y = block[target[0]] if len(target) == 1 else block.matrix(target)
            size += part.nbytes
        if size > limit:
            raise MemoryBudgetError(
                "the numbers of these files do not fit into half of the machine's memory; ask "
                "for advice on a part of the files"
            )
        parts.append(part)
        outputs.append(y)
        read += len(y)
        show(read, rows.n_rows, "reading rows")
    if not read:
        raise ValueError(f"{', '.join(map(str, rows.files))} has no rows")
    stack = sparse.vstack if rows.is_sparse else np.concatenate
    return stack(parts), np.concatenate(outputs)


def _missing(y: Array) -> Array:
    if y.dtype == object:
        return np.array([cell is None for cell in y], bool)
    if y.dtype.kind != "f":
        return np.zeros(len(y), bool)
    gone = np.isnan(y)
    return gone if y.ndim == 1 else np.any(gone, axis=1)
