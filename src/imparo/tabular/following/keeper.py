"""A learner in a folder that knows its columns: learned rows stay learned, whatever happens."""

import math
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from scipy import sparse

from imparo.data import Frame
from imparo.data.readers import SparseBlock
from imparo.engine import Array
from imparo.journal.locks import Lock
from imparo.lifelong import open as open_learner
from imparo.persistence import save
from imparo.preparation.columns import listed
from imparo.tabular.conversion import as_frame
from imparo.tabular.following.kept_model import TABLE, classes_of, machine_of, table_of
from imparo.tabular.following.positions import Positions, State
from imparo.tabular.following.table import (
    SPARSE_TARGET,
    Choices,
    Targets,
    as_names,
    begin_table,
    checked_targets,
)
from imparo.tabular.following.usable import usable, without_target
from imparo.tabular.model import TableModel
from imparo.tabular.targets import CLASSIFICATION

POSITIONS, LOCK = "positions.log", "keeper.lock"
# Rows whose errors count as recent.
RECENT = 1000


class Keeper:
    """Keeps a learner of a table in a folder, current and safe.

    ``imparo learn`` is made of it. The folder holds a learner of :func:`imparo.lifelong.open`,
    ``table.imparo`` (columns, scales and features, decided by the first rows, once) and
    ``positions.log`` (how far files have been read). One process writes at a time.

    Parameters
    ----------
    folder : path-like
        Made when the first rows are learned.
    target : str or sequence of str, optional
        Columns to learn, several of numbers; of a folder that has begun they must be the same,
        or nothing given.
    sync : "always", "never" or float, default "always"
        As for :func:`imparo.lifelong.open`.
    **choices
        How to learn: fields of :class:`~imparo.tabular.following.Choices`, such as
        ``features=500`` or ``forgetting=0.999``. Of a folder that has begun they must be the
        same, or nothing given.

    Attributes
    ----------
    model : TableModel or None
        What the first rows decided; None before them.
    rows : int
        Rows learned so far.
    error, recent : float
        Share of wrong answers, or root mean squared error, of predictions made before
        learning: of all rows but the first ones, and of the last 1,000 since it was opened.

    Examples
    --------
    >>> import tempfile
    >>> from imparo.data import load_concrete
    >>> from imparo.tabular.following import Keeper
    >>> frame = load_concrete().frame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Keeper(folder, "compressive_strength", features=50) as keeper:
    ...         first = keeper.learn(frame[:500])
    ...     with Keeper(folder) as keeper:  # next day
    ...         again = keeper.learn(frame[500:1000])
    ...         print(keeper.rows, keeper.predict(frame[1000:]).shape)
    1000 (30,)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        target: Targets = None,
        *,
        sync: str | float = "always",
        **choices: Any,
    ) -> None:
        known = {field.name for field in fields(Choices)}
        for name in choices:
            if name not in known:
                raise TypeError(f"{name!r} is not known; give {', '.join(sorted(known))}")
        self.folder = Path(folder).absolute()
        self.target, self._sync = as_names(target), sync
        self._given = {name: value for name, value in choices.items() if value is not None}
        self.model: TableModel | None = None
        self._lock: Lock | None = None
        self._recent: deque[float] = deque(maxlen=RECENT)
        if (self.folder / TABLE).exists():
            self._lock = _locked(self.folder)
            self._guarded_open()
        elif any(self.folder.glob("snapshot-*")):
            raise ValueError(
                f"{self.folder} holds a learner that knows no columns; use "
                "imparo.lifelong.open, or choose another folder"
            )

    # Opening.

    def begin(self, rows: Any) -> None:
        """Decide on columns, scales and features by the first rows, which are not learned yet.

        Parameters
        ----------
        rows : Frame or SparseBlock
        """
        model = begin_table(rows, self.target, Choices(**self._given))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.folder)
        if (self.folder / TABLE).exists():
            self._lock.release()
            raise BlockingIOError(f"another process has begun {self.folder} meanwhile")
        save(model, self.folder / TABLE)
        self._guarded_open()

    def _guarded_open(self) -> None:
        assert self._lock is not None
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise

    def _open(self) -> None:
        model = table_of(self.folder)
        if self.target and self.target != model.outputs:
            raise ValueError(
                f"{self.folder} learns {listed(model.outputs)}, not {listed(self.target)}; "
                "choose another folder, or leave the target out"
            )
        kept = model.made["choices"]
        for name, value in self._given.items():
            before = kept[name]
            if isinstance(value, tuple):
                same = list(value) == list(before)
            else:
                same = value == before or (name == "task" and value == "auto")
            if not same:
                raise ValueError(
                    f"{self.folder} was begun with {name} {before!r:.60}, not {value!r:.60}; "
                    "choose another folder, or leave it out"
                )
        begun = any(self.folder.glob("snapshot-*"))
        self._learner = open_learner(
            self.folder, None if begun else model.machine, sync=self._sync
        )
        try:
            seen = int(getattr(self._learner, "n_seen_", 0))
            self.positions = Positions(
                self.folder / POSITIONS, seen, sync=self._sync == "always"
            )
        except BaseException:
            self._learner.close()
            raise
        model.machine = machine_of(model, self._learner)
        self.model = model

    # Learning.

    def learn(self, rows: Any) -> int:
        """Predict rows, then learn them; the first ones decide how.

        Parameters
        ----------
        rows : Frame, data frame or SparseBlock
            With the target.

        Returns
        -------
        int
            Rows learned so far. When it is returned they are as safe as ``sync`` promises.

        Raises
        ------
        ValueError
            If a row cannot be learned; then none of them is.
        """
        rows = _as_rows(rows)
        if self.model is None:
            self._check_first(rows)
            self.begin(rows)
        assert self.model is not None
        X, y, _, faults = usable(self.model, rows)
        if faults:
            place = min(faults)
            raise ValueError(f"row {place}: {faults[place]}")
        return self.keep(X, y, {})

    def _check_first(self, rows: Any) -> None:
        """Raise if a target is missing among the rows that decide."""
        sparse_rows = isinstance(rows, SparseBlock)
        names = [SPARSE_TARGET] if sparse_rows else checked_targets(self.target, rows.columns)
        faults = without_target(rows, names)
        if faults:
            raise ValueError(f"row {min(faults)}: {faults[min(faults)]}")

    def keep(self, X: Any, y: Array, states: dict[str, State]) -> int:
        """Learn prepared rows, and remember how far their files have been read.

        Parameters
        ----------
        X : array of shape (k, p)
            From :func:`~imparo.tabular.following.usable.usable`.
        y : array of shape (k,) or (k, T)
        states : dict of str to dict

        Returns
        -------
        int
            Rows learned so far.
        """
        assert self.model is not None
        if self.positions.skip:
            passed = min(self.positions.skip, len(y))
            self.positions.passed(passed)
            X, y = X[passed:] if len(y) else X, y[passed:]
        if not len(y):
            self.positions.write(0, states)
            return self.rows
        losses = self._losses(X, y)
        self.positions.write(len(y), states, float(losses.sum()), len(losses))
        made = self.model.made
        outputs = y if self.task == CLASSIFICATION else (y - made["center"]) / made["scale"]
        self._learner.learn(X, outputs)
        self._recent.extend(losses.tolist())
        return self.rows

    def _losses(self, X: Any, y: Array) -> Array:
        """Return losses of predictions; none for the rows that decided on the features."""
        assert self.model is not None
        if self.positions.totals.seen < max(1, self.model.made["rows"]):
            return np.empty(0)
        predicted = self.model.machine.predict(X)
        if self.task == CLASSIFICATION:
            wrong = [a != b for a, b in zip(predicted.tolist(), y.tolist(), strict=True)]
            return np.array(wrong, np.float64)
        squares = np.square(predicted - y).reshape(len(y), -1)
        return np.fmin(squares.mean(axis=1), 1e300)

    # Reading.

    @property
    def task(self) -> str:
        """What is learned: "regression" or "classification"."""
        return self._begun().task

    @property
    def rows(self) -> int:
        """Rows learned so far."""
        return 0 if self.model is None else int(getattr(self._learner, "n_seen_", 0))

    @property
    def number(self) -> int:
        """The last change that was acknowledged."""
        return 0 if self.model is None else self._learner.number

    @property
    def error(self) -> float:
        """Error of all predictions made before learning; NaN before any."""
        totals = None if self.model is None else self.positions.totals
        return math.nan if totals is None else self._mean(totals.loss, totals.judged)

    @property
    def recent(self) -> float:
        """The same of the last 1,000 rows since it was opened."""
        return self._mean(sum(self._recent), len(self._recent))

    def _mean(self, total: float, count: int) -> float:
        if not count:
            return math.nan
        mean = total / count
        return mean if self.task == CLASSIFICATION else math.sqrt(mean)

    def predict(self, rows: Any) -> Array:
        """Return predictions, as :meth:`TableModel.predict` does."""
        return self._begun().predict(rows)

    def predict_proba(self, rows: Any) -> Array:
        """Return probabilities of the classes, in the order of ``classes``."""
        return self._begun().predict_proba(rows)

    @property
    def classes(self) -> list[Any]:
        """Labels so far."""
        return classes_of(self._learner) if self._begun().task == CLASSIFICATION else []

    def _begun(self) -> TableModel:
        if self.model is None:
            raise ValueError(f"nothing was learned in {self.folder} yet; learn some rows first")
        return self.model

    def close(self) -> None:
        """Make the rest durable and let others write; may be called again."""
        if self.model is not None:
            self._learner.close()
            # An interrupt may have come between a line and its rows.
            if self.positions.totals.seen == self.rows:
                self.positions.close()
            else:
                self.positions.drop()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _locked(folder: Path) -> Lock:
    try:
        return Lock(folder / LOCK)
    except BlockingIOError:
        holder = (folder / LOCK).read_text(errors="replace").strip()
        raise BlockingIOError(
            f"{folder} is kept by another process ({holder or 'id unknown'}); stop that one, "
            "or choose another folder"
        ) from None


def _as_rows(rows: Any) -> Any:
    if isinstance(rows, Frame | SparseBlock):
        return rows
    if isinstance(rows, Sequence) or sparse.issparse(rows) or not hasattr(rows, "columns"):
        raise TypeError(
            f"rows must be a data frame with named columns, not {type(rows).__name__}"
        )
    return as_frame(rows)
