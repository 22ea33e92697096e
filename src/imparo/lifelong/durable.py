"""Learners that outlive their process: what was acknowledged is never lost."""

import copy
import os
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from scipy import sparse

from imparo.errors import FileFormatError, RecoveryWarning, warn_user
from imparo.journal import Cut, Journal, decode, encode
from imparo.lifelong.changes import apply, as_bytes, check_same, check_savable, learn_record
from imparo.lifelong.labels import labels_of
from imparo.persistence import load, save

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
        self._doubtful = False  # whether the model may differ from what the folder says
        exists = self.path.is_dir() and any(self.path.glob("snapshot-*"))
        if not exists and not (writable and learner is not None):
            raise FileNotFoundError(
                f"there is no learner in {self.path}; give one to begin with, such as "
                "IncrementalClassifier()"
            )
        if learner is not None:
            check_savable(learner)
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
        if self._journal.writable:
            self._restore()
        else:
            self._restore_beside_writer()
        if learner is not None:
            check_same(self.path, self._learner, learner)
        cut = self.cut
        if cut is not None and self._journal.writable:  # to a reader it may be a write going on
            warn_user(
                f"{self.path} ended with {cut.bytes} bytes of an unfinished write "
                f"({cut.reason}), which were cut off; everything acknowledged is there",
                RecoveryWarning,
            )

    def _restore(self) -> None:
        """Load the snapshot and replay the records after it."""
        self._wait()  # files must not be replaced while they are read
        snapshot = self._journal.snapshot_path
        assert snapshot is not None
        learner = load(snapshot)
        self._snapshot_size = snapshot.stat().st_size
        self.n_replayed = self._written = self._replaced = 0
        self._replay(learner, self._journal.records())
        self._learner, self._doubtful = learner, False

    def _restore_beside_writer(self) -> None:
        """Do so while the writer may replace the files."""
        while True:
            self._journal.records()  # go back to the snapshot,
            self._journal.refresh()  # or to the next one if it is gone
            path = self._journal.snapshot_path
            try:
                self._restore()
            except (FileNotFoundError, FileFormatError):
                if path is None or path.exists():
                    raise
                continue
            if not self._journal.behind:
                return

    def _replay(self, learner: Any, records: Any) -> None:
        for number, payload in records:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # they were seen when it happened
                    apply(learner, decode(payload))
            except FileFormatError:
                raise
            except Exception as error:
                raise FileFormatError(
                    f"record {number} of {self.path} cannot be replayed ({error}); it was "
                    "written by another version of imparo: use that one, or restore a copy"
                ) from error
            self.n_replayed += 1
            self._written += len(payload)

    # What changes the learner.

    def learn(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> int:
        """Learn one example or a block of them, and keep them.

        A learner of robot dynamics takes (q, dq, ddq, y), or rows X and y.

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
        if classes is not None and hasattr(self._learner, "rows_of_example"):
            X, y = self._learner.rows_of_example(X, y, sample_weight, classes)
            sample_weight = classes = None
        single = np.ndim(X) == 1 and not sparse.issparse(X)
        if single:
            X, y = np.asarray(X)[None], [y]
        record = learn_record(self._learner, X, y)
        if sample_weight is not None:
            record["sample_weight"] = np.array(sample_weight, np.float64)
        if classes is not None:
            record["classes"] = labels_of(classes)
        return self._change(record, X)

    def partial_fit(
        self, X: Any, y: Any, *, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Do what :meth:`learn` does, as scikit-learn calls it, and return itself."""
        self.learn(X, y, sample_weight, classes)
        return self

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one example, a vector or a dictionary, and return itself."""
        with self._access:
            as_row = getattr(self._learner, "_row", lambda x: np.asarray(x)[None])
            row = as_row(x)
            record = learn_record(self._learner, row, [y])
            named = ("_columns", "feature_names_in_")
            if isinstance(x, Mapping) and not any(hasattr(self._learner, n) for n in named):
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

    def recode(self, recoding: Any) -> int:
        """Set α, see :meth:`IncrementalClassifier.recode`; return the number."""
        value = recoding if isinstance(recoding, str) else float(recoding)
        return self._change({"op": "recode", "recoding": value})

    def merge(self, other: Any) -> int:
        """Learn what another learner, durable or not, has learned; return the number."""
        if other is self or other is self._learner:
            raise ValueError("a learner cannot be merged with itself")
        if isinstance(other, DurableLearner):
            with other._access:
                content = as_bytes(other._learner)
        else:
            content = as_bytes(other)
        return self._change({"op": "merge", "other": content})

    def _change(self, record: dict[str, Any], X: Any = None) -> int:
        """Apply a change and write it; if it cannot be written, undo it."""
        with self._access:
            self._journal.check_writable()
            self._check_thread()
            if self._doubtful:
                self._restore()
            payload, self._doubtful = encode(record), True
            try:
                payload = self._apply_checked(record, X) or payload
                number = self._journal.append(payload)
                self._doubtful = False
            except BaseException:
                if self._doubtful:
                    self._restore()
                raise
            self._written += len(payload)
            if self._written - self._replaced > max(_LEAST_RECORDS, self._snapshot_size):
                self._snapshot_beside()
            return number

    def _apply_checked(self, record: dict[str, Any], X: Any) -> bytes | None:
        """Apply a change; return what to record instead if names of columns came with it."""
        try:
            return self._apply_named(record, X)
        except (ValueError, TypeError, AttributeError):
            # What is refused is refused before anything is changed; merges may fail later.
            self._doubtful = record["op"] == "merge"
            raise

    def _apply_named(self, record: dict[str, Any], X: Any) -> bytes | None:
        named = getattr(self._learner, "feature_names_in_", None) is not None
        if not (hasattr(X, "columns") and (named or not hasattr(self._learner, "n_seen_"))):
            apply(self._learner, record)
            return None
        apply(self._learner, {**record, "X": X})
        names = getattr(self._learner, "feature_names_in_", None)
        if names is None or named:
            return None
        return encode({**record, "names": [str(name) for name in names]})

    # Snapshots.

    def snapshot(self) -> None:
        """Replace the records by a snapshot now, and wait for it."""
        with self._access:
            self._wait()
            self._journal.snapshot(lambda path: save(self._learner, path))
            self._note_snapshot(self._written)
            self._trouble = None

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the learner as it is now to one file, see :func:`imparo.save`.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        int
            The number of the last change that is in it.
        """
        with self._access:
            if self._doubtful:
                self._restore()
            save(self._learner, path)
            return self.number

    def _snapshot_beside(self) -> None:
        """Begin a snapshot of the present state in a thread of its own."""
        if self._snapshot_thread is not None and self._snapshot_thread.is_alive():
            return
        try:
            state = copy.deepcopy(self._learner)
            number, written = self._journal.number, self._written

            def write() -> None:
                try:
                    self._journal.snapshot(lambda path: save(state, path), at=number)
                    self._note_snapshot(written)
                except BaseException as trouble:
                    self._trouble = trouble  # raised by the next change; no record is lost

            thread = threading.Thread(target=write, name="imparo-snapshot")
            thread.start()
        except Exception as trouble:  # the change is made and kept: it must be acknowledged
            self._trouble = trouble
        else:
            self._snapshot_thread = thread

    def _note_snapshot(self, written: int) -> None:
        path = self._journal.snapshot_path
        assert path is not None
        self._snapshot_size = path.stat().st_size
        self._replaced = written

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
            if update.snapshot is None and not self._doubtful:
                self._doubtful = True  # if it ends halfway, begin at the snapshot next time
                self._replay(self._learner, update.records)
                self._doubtful = self._journal.behind
            if update.snapshot is not None or self._doubtful:
                self._doubtful = True
                self._restore_beside_writer()
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
        with self._access:
            self._wait()
            self._journal.close()
            trouble, self._trouble = self._trouble, None
        if trouble is not None:
            warn_user(
                f"the last snapshot of {self.path} could not be written ({trouble}); all "
                "records are there",
                RecoveryWarning,
            )

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
        with self._access:  # attributes are computed too
            value = getattr(self._learner, name)
        if not callable(value):
            return value

        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self._access:
                return getattr(self._learner, name)(*args, **kwargs)

        return guarded
