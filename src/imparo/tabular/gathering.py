"""From a reader to rows at hand: in memory while they fit, on disk from then on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from imparo.data import Frame
from imparo.data.readers import RowError, Rows
from imparo.engine import Array
from imparo.preparation.columns import listed
from imparo.tabular.roles import Roles
from imparo.tabular.scratch import DiskTable, Scratch, SparseDisk

#: Called as ``show(done, total, description)``; a total that nobody knows is None.
Show = Callable[[int, int | None, str], Any]

# Rows stay in memory up to this share of what is allowed: fits need copies of them.
_SHARE = 0.2
MISSING = ("fill", "skip", "refuse")


@dataclass
class Gathered:
    """Rows to learn from, with their outputs.

    Attributes
    ----------
    X : matrix, Frame, csr array, DiskTable or SparseDisk
        A matrix if all inputs are numbers.
    y : array of shape (n,) or (n, T)
        Objects where the target is text.
    weight, group, time : array of shape (n,) or None
    read, bad, missing : int
        Rows that were read, that could not be, and that were left out for a missing value.
    kinds : dict of str to str
        Of the input columns.
    """

    X: Any
    y: Array
    weight: Array | None
    group: Array | None
    time: Array | None
    read: int
    bad: int
    missing: int
    kinds: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def on_disk(self) -> bool:
        """Whether rows are on disk."""
        return isinstance(self.X, DiskTable | SparseDisk)

    def rows(self, places: Any) -> Any:
        """Return the inputs of some rows, in memory."""
        return self.X.rows(places) if self.on_disk else self.X[places]


def gather(
    rows: Rows,
    roles: Roles,
    memory: int,
    scratch: Callable[[], Scratch],
    missing: str = "fill",
    show: Show = lambda done, total, what: None,
) -> Gathered:
    """Read the columns that are needed, in one pass.

    Parameters
    ----------
    rows : Rows
    roles : Roles
    memory : int
        Bytes; beyond a fifth of them rows go to disk.
    scratch : callable
        Makes the place on disk, if one is needed.
    missing : "fill", "skip" or "refuse"
        What to do where an input is missing: leave it to the preparation of columns, leave the
        row out, or raise.
    show : callable

    Returns
    -------
    Gathered

    Notes
    -----
    Costs one pass over the files; outputs, weights, groups and times stay in memory: 8 bytes a
    row for each, or what their texts take.
    """
    if missing not in MISSING:
        raise ValueError(f"missing={missing!r} must be one of {', '.join(map(repr, MISSING))}")
    inputs: _Inputs = (_SparseInputs if rows.is_sparse else _TableInputs)(memory, scratch)
    outputs: list[Array] = []
    special: dict[str, list[Array]] = {
        name: [] for name in (roles.weight, roles.group, roles.time) if name is not None
    }
    read = lost = 0
    for block in rows.blocks(None if rows.is_sparse else roles.read):
        first, read = read, read + len(block)
        X = block.X if rows.is_sparse else block.select(roles.inputs)
        y = block.y if rows.is_sparse else _outputs(block, roles.target)
        keep = _known_targets(y, rows, roles.target, first, skip=missing == "skip")
        lost += int(np.count_nonzero(~keep)) if missing == "skip" else 0
        if missing != "fill" and not rows.is_sparse:
            gaps = _gaps(X)
            if missing == "refuse" and gaps.any():
                _refuse_gaps(X, first)
            lost += int(np.count_nonzero(gaps & keep))
            keep &= ~gaps
        if not keep.all():
            places = np.flatnonzero(keep)
            X, y, block = X[places], y[places], block if rows.is_sparse else block[places]
        if len(y):
            inputs.add(X)
            outputs.append(y)
            for name, parts in special.items():
                parts.append(np.array(block[name]))
        show(read, rows.n_rows, "reading rows")
    if not outputs:
        gone = f": all {read:,} were left out" if read else ""
        raise ValueError(f"{_name(rows)} holds no row to learn from{gone}")
    joined = {name: _joined(parts) for name, parts in special.items()}
    weight = None if roles.weight is None else _checked_weight(joined, roles.weight)
    group, time = (
        None if name is None else _without_gaps(joined[name], name)
        for name in (roles.group, roles.time)
    )
    return Gathered(
        inputs.finished(), _joined(outputs), weight, group, time, read, rows.bad.count, lost,
        {name: rows.kinds[name] for name in roles.inputs},
    )  # fmt: skip


class _Inputs:
    """Input columns of block after block: kept in memory, or written to disk."""

    def __init__(self, memory: int, scratch: Callable[[], Scratch]) -> None:
        self._limit, self._scratch = _SHARE * memory, scratch
        self._parts: list[Any] = []
        self._size = 0
        self._disk: Any = None

    def add(self, X: Any) -> None:
        """Take some rows."""
        if self._disk is not None:
            self._disk.append(X)
            return
        self._parts.append(self._kept(X))
        self._size += self._bytes(self._parts[-1])
        if self._size > self._limit:
            self._disk = self._opened()
            for part in self._parts:
                self._disk.append(part)
            self._parts = []

    def _kept(self, X: Any) -> Any:
        return X

    def _bytes(self, X: Any) -> int:
        raise NotImplementedError

    def _opened(self) -> Any:
        raise NotImplementedError

    def finished(self) -> Any:
        """Return all rows."""
        raise NotImplementedError


class _TableInputs(_Inputs):
    def _bytes(self, X: Any) -> int:
        return X.nbytes

    def _opened(self) -> DiskTable:
        return DiskTable(self._scratch(), self._parts[0])

    def finished(self) -> Any:
        if self._disk is not None:
            return self._disk.finish()
        if all(_all_numbers(part) for part in self._parts):
            return _matrix(self._parts)
        return Frame.stacked(self._parts)


class _SparseInputs(_Inputs):
    def _bytes(self, X: Any) -> int:
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes

    def _opened(self) -> SparseDisk:
        X = self._parts[0]
        return SparseDisk(self._scratch(), X.shape[1], X.dtype)

    def finished(self) -> Any:
        if self._disk is not None:
            return self._disk.finish()
        return sparse.csr_array(sparse.vstack(self._parts, format="csr"))


def _all_numbers(frame: Frame) -> bool:
    return all(dtype.kind in "biuf" for dtype in frame.dtypes)


def _matrix(frames: list[Frame]) -> Array:
    """Return frames of numbers as one matrix; each is let go once it is copied."""
    dtype = np.result_type(*(part.matrix(part.columns[:]).dtype for part in frames))
    if dtype.itemsize <= 2:  # flags, pixels and small counts: float32 holds them exactly
        dtype = np.dtype(np.float32)
    whole = np.empty((sum(map(len, frames)), frames[0].shape[1]), dtype)
    start = 0
    frames.reverse()
    while frames:
        part = frames.pop()
        whole[start : start + len(part)] = part.matrix(part.columns)
        start += len(part)
    return whole


def _outputs(block: Frame, target: list[str]) -> Array:
    if len(target) == 1:
        cells = block[target[0]]
        if cells.dtype.kind in "Mm":
            raise ValueError(
                f"the target '{target[0]}' holds dates, and must hold numbers or classes; name "
                "another target"
            )
        # A copy: a view would keep its whole block in memory.
        return np.array(cells, np.float64 if cells.dtype.kind in "biu" else None)
    kinds = {block[name].dtype.kind for name in target}
    if not kinds <= set("biuf"):
        raise ValueError(
            f"of the targets {listed(target)} some hold text; several targets must be numbers"
        )
    return block.matrix(target).astype(np.float64)


def _known_targets(y: Array, rows: Rows, target: list[str], first: int, *, skip: bool) -> Array:
    """Return which rows have an output; the others are bad rows, unless they are skipped."""
    known: Any
    if y.dtype == object:
        known = np.array([cell is not None for cell in y], bool)
    else:
        known = np.isfinite(y.reshape(len(y), -1)).all(axis=1)
    for i in () if skip else np.flatnonzero(~known):
        what = "infinite" if y.dtype != object and np.isinf(y[i]).any() else "missing"
        told = f"the target {listed(target)} is {what}"
        rows.bad.report(_name(rows), first + int(i), told, "fill it in", unit="row")
    return known


def _gaps(X: Frame) -> Array:
    gaps: Array = np.zeros(len(X), bool)
    for name in X.columns:
        np.logical_or(gaps, missing_cells(X[name]), out=gaps)
    return gaps


def missing_cells(cells: Array) -> Array:
    """Return which cells are missing: NaN, NaT or None."""
    if cells.dtype == object:
        return np.array([cell is None for cell in cells], bool)
    return np.isnat(cells) if cells.dtype.kind in "Mm" else cells != cells


def _refuse_gaps(X: Frame, first: int) -> None:
    for name in X.columns:
        gone = np.flatnonzero(missing_cells(X[name]))
        if len(gone):
            raise RowError(
                f"row {first + int(gone[0]):,} has no value in column '{name}'; fill it in, "
                "drop the column, or let missing values be filled or such rows be skipped"
            )


def _joined(parts: list[Array]) -> Array:
    kinds = {part.dtype.kind for part in parts}
    if "O" in kinds and len(kinds) > 1:
        parts = [part.astype(object) for part in parts]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _checked_weight(cells: dict[str, Array], name: str) -> Array:
    found = cells[name]
    numbers = found.dtype.kind in "biuf"
    if not numbers or not (np.isfinite(found) & (found >= 0)).all():
        raise ValueError(f"the column '{name}' of weights must hold numbers from 0 on")
    return found.astype(np.float64)


def _without_gaps(cells: Array, name: str) -> Array:
    gone = np.flatnonzero(missing_cells(cells))
    if len(gone):
        raise ValueError(
            f"the column '{name}' has no value in {len(gone):,} rows, and groups and times "
            "must be known; fill them in"
        )
    return cells


def _name(rows: Rows) -> str:
    return str(rows.files[0]) if len(rows.files) == 1 else f"{len(rows.files)} files"
