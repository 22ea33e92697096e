"""Learners that outlive their process: what was acknowledged is never lost."""

import copy
import os
import tempfile
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from imparo.engine import Array
from imparo.errors import FileFormatError, RecoveryWarning, warn_user
from imparo.estimators.inputs import check_rows
from imparo.journal import Cut, Journal, decode, encode
from imparo.lifelong.labels import labels_of
from imparo.persistence import fingerprint, load, save

# Records are replaced by a snapshot when they take so many bytes, or as many as it does.
_LEAST_RECORDS = 2**22


def open(
    path: str | os.PathLike[str],
    learner: Any = None,
    *,
    sync: str | float = "always",
    writable: bool = True,
) -> "DurableLearner":
    """Open a learner that lives in a folder, or begin one there.

    Parameters
    ----------
    path : path-like
        A folder; made if it is missing.
    learner : estimator, optional
        What to begin with where there is none yet, such as ``IncrementalClassifier()``; it is
        copied. Where there is one already, its parameters must be the same, or nothing given.
    sync : "always", "never" or float, default "always"
        When ``learn`` acknowledges. "always": the example is on disk, power may fail. A number:
        it is on disk within so many seconds. "never": when the system likes. With all of them
        what was acknowledged survives the death of the process.
    writable : bool, default True
        One process may write, any number may read: see :meth:`DurableLearner.refresh`.

    Returns
    -------
    DurableLearner

    Raises
    ------
    BlockingIOError
        If another process, or another part of this one, has it open for writing.
    FileNotFoundError
        If there is no learner and none was given.
    FileFormatError
        If files are damaged otherwise than by a write that was cut short.

    Examples
    --------
    >>> import tempfile
    >>> import imparo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with imparo.lifelong.open(folder, imparo.IncrementalClassifier()) as robot:
    ...         first = robot.learn([[0.0, 1.0], [1.0, 0.0]], ["mug", "ball"])
    ...     with imparo.lifelong.open(folder) as robot:  # next day
    ...         print(robot.predict_one([0.1, 0.9]), robot.n_seen_)
    mug 2
    """
    return DurableLearner(path, learner, sync=sync, writable=writable)


class DurableLearner:
    """A learner whose every acknowledged example survives crashes and power cuts.

    Each call that changes it becomes a record of a :class:`~imparo.journal.Journal`, in its
    folder, before it returns. From time to time a snapshot of the model replaces the records,
    written by a thread of its own, so that the folder stays below about three times the size
    of the model, or of 4 MiB. Opening it again replays the records after the last snapshot, and
    gives the same model to the last bit (on the same machine and libraries).

    All else, such as ``predict``, ``classes_`` or ``novelty``, is that of the learner; calls
    from several threads wait for each other. Open it with :func:`open`.

    Attributes
    ----------
    path : Path
        The folder.
    number : int
        The last change that was acknowledged, or that a reader has seen.
    cut : Cut or None
        What an unfinished write left, and was cut off when the learner was opened.
    n_replayed : int
        Changes that were replayed then.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        learner: Any = None,
        *,
        sync: str | float = "always",
        writable: bool = True,
    ) -> None:
        self.path = Path(path).absolute()
        self._access = threading.RLock()
        self._snapshot_thread: threading.Thread | None = None
        self._trouble: BaseException | None = None
        exists = self.path.is_dir() and any(self.path.glob("snapshot-*"))
        if not exists and not (writable and learner is not None):
            raise FileNotFoundError(
                f"there is no learner in {self.path}; give one to begin with, such as "
                "IncrementalClassifier()"
            )
        if learner is not None:
            _check_savable(learner)
        self._journal = Journal(self.path, sync=sync, writable=writable)
        try:
            self._start(learner)
        except BaseException:
            self._journal.close()
            raise

    def _start(self, learner: Any) -> None:
        if self._journal.snapshot_path is None:
            if learner is None or self._journal.number:
                raise FileFormatError(
                    f"{self.path} holds records and no learner that they belong to; restore "
                    "the folder from a copy"
                )
            begun = copy.deepcopy(learner)
            self._journal.snapshot(lambda path: save(begun, path))
        self._restore()
        if learner is not None:
            _check_same(self.path, self._learner, learner)
        cut = self.cut
        if cut is not None:
            warn_user(
                f"{self.path} ended with {cut.bytes} bytes of an unfinished write "
                f"({cut.reason}), which were cut off; everything acknowledged is there",
                RecoveryWarning,
            )

    def _restore(self) -> None:
        """Load the snapshot and replay the records after it."""
        snapshot = self._journal.snapshot_path
        assert snapshot is not None
        self._learner = load(snapshot)
        self._snapshot_size = snapshot.stat().st_size
        self.n_replayed = self._since = 0
        self._replay(self._journal.records())

    def _replay(self, records: Any) -> None:
        for number, payload in records:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # they were seen when it happened
                    _apply(self._learner, decode(payload))
            except FileFormatError:
                raise
            except Exception as error:
                raise FileFormatError(
                    f"record {number} of {self.path} cannot be replayed ({error}); it was "
                    "written by another version of imparo: use that one, or restore a copy"
                ) from error
            self.n_replayed += 1
            self._since += len(payload)

    # What changes the learner.

    def learn(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> int:
        """Learn one example or a block of them, and keep them.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (d,) or (n, d)
        y : one output or label for a row, or an array of them
        sample_weight : array of shape (n,), optional
        classes : array, optional
            Labels to know beforehand, for classifiers; not needed.

        Returns
        -------
        int
            The number of this change. When it is returned the examples are as safe as
            ``sync`` promises; if an error is raised the learner is as it was.
        """
        single = np.ndim(X) == 1 and not sparse.issparse(X)
        if single:
            X, y = np.asarray(X)[None], [y]
        record = self._record(X, y)
        if sample_weight is not None:
            record["sample_weight"] = np.array(sample_weight, np.float64)
        if classes is not None:
            record["classes"] = labels_of(classes)
        return self._change(record, X)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Do what :meth:`learn` does, as scikit-learn calls it, and return itself."""
        self.learn(X, y, sample_weight, classes)
        return self

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one example, a vector or a dictionary, and return itself."""
        with self._access:
            row = self._learner._row(x)
            record = self._record(row, [y])
            if isinstance(x, Mapping) and not hasattr(self._learner, "_columns"):
                record["columns"] = [str(key) for key in x]
            self._change(record, row)
        return self

    def forget(self, label: Any) -> int:
        """Remove a class, see :meth:`IncrementalClassifier.forget`; return the number."""
        return self._change({"op": "forget", "label": labels_of([label])[0]})

    def rename(self, old: Any, new: Any) -> int:
        """Rename a class, see :meth:`IncrementalClassifier.rename`; return the number."""
        old, new = labels_of([old])[0], labels_of([new])[0]
        return self._change({"op": "rename", "old": old, "new": new})

    def merge(self, other: Any) -> int:
        """Learn what another learner, durable or not, has learned; return the number."""
        other = other._learner if isinstance(other, DurableLearner) else other
        return self._change({"op": "merge", "other": _as_bytes(other)})

    def _record(self, X: Any, y: Any) -> dict[str, Any]:
        if is_classifier(self._learner):
            outputs: Any = labels_of(y)
        else:
            outputs = np.array(y, np.float64)
        return {"op": "learn", "X": _plain(X), "y": outputs}

    def _change(self, record: dict[str, Any], X: Any = None) -> int:
        """Apply a change and write it; if it cannot be written, undo it."""
        with self._access:
            self._journal.check_writable()
            self._check_thread()
            payload = encode(record)
            named = getattr(self._learner, "feature_names_in_", None) is not None
            if hasattr(X, "columns") and (named or not hasattr(self._learner, "n_seen_")):
                _apply(self._learner, {**record, "X": X})
                names = getattr(self._learner, "feature_names_in_", None)
                if names is not None and not named:
                    record["names"] = [str(name) for name in names]
                    payload = encode(record)
            else:
                _apply(self._learner, record)
            try:
                number = self._journal.append(payload)
            except BaseException:
                self._restore()
                raise
            self._since += len(payload)
            if self._since > max(_LEAST_RECORDS, self._snapshot_size):
                self._snapshot_beside()
            return number

    # Snapshots.

    def snapshot(self) -> None:
        """Replace the records by a snapshot now, and wait for it."""
        with self._access:
            self._wait()
            self._journal.snapshot(lambda path: save(self._learner, path))
            self._note_snapshot(self._since)

    def _snapshot_beside(self) -> None:
        """Begin a snapshot of the present state in a thread of its own."""
        if self._snapshot_thread is not None and self._snapshot_thread.is_alive():
            return
        state, number, since = copy.deepcopy(self._learner), self._journal.number, self._since

        def write() -> None:
            try:
                self._journal.snapshot(lambda path: save(state, path), at=number)
                self._note_snapshot(since)
            except BaseException as trouble:
                self._trouble = trouble  # raised by the next change; no record is lost

        self._snapshot_thread = threading.Thread(target=write, name="imparo-snapshot")
        self._snapshot_thread.start()

    def _note_snapshot(self, since: int) -> None:
        path = self._journal.snapshot_path
        assert path is not None
        self._snapshot_size = path.stat().st_size
        self._since -= since

    def _check_thread(self) -> None:
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise OSError(
                f"the last snapshot of {self.path} could not be written ({trouble}); all "
                "records are there, and it is tried again"
            ) from trouble

    def _wait(self) -> None:
        thread = self._snapshot_thread
        if thread is not None:
            thread.join()
            self._snapshot_thread = None

    # Reading.

    def refresh(self) -> int:
        """Catch up with the process that writes; return the number of the last change.

        Only for learners opened with ``writable=False``.
        """
        with self._access:
            update = self._journal.refresh()
            if update.snapshot is not None:
                try:
                    self._learner = load(update.snapshot)
                except FileNotFoundError:  # replaced by a newer one meanwhile
                    return self.refresh()
            self._replay(update.records)
            return self.number

    @property
    def number(self) -> int:
        """The last change that was acknowledged, or that a reader has seen."""
        return self._journal.number

    @property
    def cut(self) -> Cut | None:
        """What an unfinished write left, and was cut off at opening."""
        return self._journal.cut

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._journal.size

    def close(self) -> None:
        """Make the rest durable and let others write; may be called again."""
        self._wait()
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self._learner!r} in {self.path}, {self.number} changes>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a durable learner has no attribute {name!r}")
        if name in ("fit", "set_params"):
            raise AttributeError(
                f"{name} would change what is kept in {self.path} and is not recorded; use "
                "learn, or begin another learner in another folder"
            )
        value = getattr(self._learner, name)
        if not callable(value):
            return value

        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self._access:
                return getattr(self._learner, name)(*args, **kwargs)

        return guarded


def _apply(learner: Any, record: dict[str, Any]) -> None:
    """Make a recorded change."""
    kind = record["op"]
    if kind == "forget":
        learner.forget(record["label"])
    elif kind == "rename":
        learner.rename(record["old"], record["new"])
    elif kind == "merge":
        learner.merge(_from_bytes(record["other"]))
    elif kind == "learn":
        extra = {name: record[name] for name in ("sample_weight", "classes") if name in record}
        learner.partial_fit(record["X"], record["y"], **extra)
        if "names" in record:
            learner.feature_names_in_ = np.array(record["names"], object)
        if "columns" in record:
            learner._columns = list(record["columns"])
    else:
        raise FileFormatError(f"a change of the kind {kind!r} is unknown to this imparo")


def _as_bytes(learner: Any) -> Array:
    """Return a model file as an array of bytes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "other.imparo"
        save(learner, file)
        return np.fromfile(file, np.uint8)


def _from_bytes(content: Array) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "other.imparo"
        content.tofile(file)
        return load(file)


def _plain(X: Any) -> Array:
    """Return rows as they are recorded: a dense array of numbers in row-major order."""
    X = X.toarray() if sparse.issparse(X) else check_rows(X)
    array = np.array(X, order="C")
    exact = array.dtype in (np.float32, np.float64)
    return array if exact else array.astype(np.float64)


def _check_savable(learner: Any) -> None:
    if not hasattr(learner, "partial_fit"):
        raise TypeError(
            f"{learner!r:.60} cannot learn on and so cannot be kept; give a learner such as "
            "IncrementalClassifier()"
        )
    fingerprint(learner)


def _check_same(path: Path, found: Any, given: Any) -> None:
    """Raise unless a learner that was given has the parameters of the one that is kept."""
    if type(found) is not type(given):
        raise ValueError(
            f"{path} holds a {type(found).__name__}, not a {type(given).__name__}; open it "
            "without a learner, or choose another folder"
        )
    kept, wanted = found.get_params(deep=False), given.get_params(deep=False)
    for name, value in wanted.items():
        if fingerprint(kept[name]) != fingerprint(value):
            raise ValueError(
                f"the learner in {path} has {name}={kept[name]!r:.60}, not {value!r:.60}; "
                "open it without a learner, or choose another folder"
            )
