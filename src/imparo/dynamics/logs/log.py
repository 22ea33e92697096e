"""A recording of a robot: what moved, what was measured, and how each number came about."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imparo.dynamics.logs.checks import (
    check_columns,
    check_gaps,
    check_names,
    check_rows,
    check_stamps,
    choose,
    listed,
)
from imparo.dynamics.logs.preparation import complete_states
from imparo.dynamics.logs.signals import even_stamps, lateness, resample
from imparo.engine import Array

STATES = ("q", "dq", "ddq")
ARRAYS = ("t", *STATES, "y")


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """Samples of a robot's motion and of the forces that went with it. SI units.

    All arrays are copied as float64 and cannot be written to.

    Parameters
    ----------
    t : array of shape (n,)
        Stamps in seconds, increasing.
    q, dq, ddq : arrays of shape (n, J)
        Positions, velocities and accelerations: rad or m, per s, per s².
    y : array of shape (n, T)
        Joint torques in Nm (or forces in N), or a wrench [Fx Fy Fz Tx Ty Tz]; T may be 0.
    joints, outputs : sequences of str
        Names of the columns of q and of y.
    notes : mapping of str to str, optional
        What is known of the recording: its source, what was derived, how late it is.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics.logs.log import Log
    >>> t = np.arange(5) / 100
    >>> still = np.zeros((5, 1))
    >>> log = Log(t, still, still, still, still + 2.0, ["elbow"], ["elbow"])
    >>> log
    Log of 5 samples over 0.04 s; joints elbow; outputs elbow
    >>> len(log[1:4]), log.X.shape
    (3, (5, 3))
    """

    t: Array
    q: Array
    dq: Array
    ddq: Array
    y: Array
    joints: tuple[str, ...]
    outputs: tuple[str, ...]
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        keep = object.__setattr__
        for name in ("joints", "outputs"):
            keep(self, name, check_names(getattr(self, name), name))
        if not self.joints:
            raise ValueError("joints is empty; name at least one joint")
        keep(self, "t", _frozen(check_stamps(self.t)))
        for name in (*STATES, "y"):
            names = self.outputs if name == "y" else self.joints
            array = check_rows(getattr(self, name), len(self.t), name)
            check_columns(array, name, names)
            keep(self, name, _frozen(array))
        notes = dict(self.notes)
        if not all(isinstance(text, str) for pair in notes.items() for text in pair):
            raise TypeError("notes must map text to text")
        keep(self, "notes", notes)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        count = f"{len(self)} sample" + "s" * (len(self) != 1)
        return (
            f"Log of {count} over {self.t[-1] - self.t[0]:.6g} s; "
            f"joints {listed(self.joints)}; outputs {listed(self.outputs)}"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Log):
            return NotImplemented
        same = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ARRAYS)
        texts = (self.joints, self.outputs, self.notes)
        return same and texts == (other.joints, other.outputs, other.notes)

    __hash__ = None  # type: ignore[assignment]  # equal by content, notes included

    def __getitem__(self, rows: slice) -> "Log":
        if not isinstance(rows, slice):
            raise TypeError(f"a log is cut by slices, as in log[3:4]; this was {rows!r}")
        start, stop, step = rows.indices(len(self))
        if step < 1 or start >= stop:
            raise ValueError(
                f"the rows {start}:{stop}:{step} of a log of {len(self)} are empty or run "
                "backwards; a log holds at least one sample, and time increases"
            )
        notes = {key: text for key, text in self.notes.items() if key != "parts"}
        arrays: dict[str, Any] = {name: getattr(self, name)[rows] for name in ARRAYS}
        return Log(**arrays, joints=self.joints, outputs=self.outputs, notes=notes)

    @property
    def X(self) -> Array:
        """Rows [q, dq, ddq] as learners take them, shape (n, 3J)."""
        return np.hstack([self.q, self.dq, self.ddq])

    def between(self, start: float, end: float) -> "Log":
        """Return the samples with start ≤ t < end, in seconds."""
        return self[int(np.searchsorted(self.t, start)) : int(np.searchsorted(self.t, end))]

    def select(
        self, joints: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> "Log":
        """Return the log of some joints and outputs, in the order of their names here."""
        j = choose(self.joints, joints, "joints")
        o = choose(self.outputs, outputs, "outputs")
        states = (self.q[:, j], self.dq[:, j], self.ddq[:, j])
        names = tuple(self.joints[i] for i in j), tuple(self.outputs[i] for i in o)
        return Log(self.t, *states, self.y[:, o], *names, self.notes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``.npz``, ``.csv`` or ``.parquet``; :func:`read_log` reads the same bits.

        The file is complete or not there: it is moved to its place when written. Parquet
        needs ``pip install 'imparo[logs]'``.

        Parameters
        ----------
        path : path-like
        """
        from imparo.dynamics.logs.writing import write_log

        write_log(self, path)

    @classmethod
    def from_signals(
        cls,
        t: Any,
        q: Any,
        dq: Any = None,
        ddq: Any = None,
        y: Any = None,
        *,
        joints: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        notes: Mapping[str, str] | None = None,
        rate: float | None = None,
        window: int = 11,
        order: int = 2,
        lag: int = 0,
        max_gap: float | None = None,
    ) -> "Log":
        """Make a log of what was measured; what was not is derived from the past.

        Parameters
        ----------
        t : array of shape (n,)
        q : array of shape (n, J)
        dq, ddq : arrays of shape (n, J), optional
            Where left out, dq comes from q, and ddq from dq if that is given, else from q,
            by :func:`differentiate`; rows where its window is not full are left out. The
            notes say so, and how late the result is.
        y : array of shape (n, T), optional
        joints, outputs : sequences of str, optional
            joint1 to jointJ if left out; outputs the joints if T = J.
        notes : mapping, optional
        rate : float, optional
            Hz; the rows are brought to this rate by :func:`resample`.
        window, order, lag
            Of the derivation. With a lag, row i has the derivative at t[i], which is known
            ``lag`` samples later; the last ``lag`` rows, then, are left out.
        max_gap : float, optional
            Longest step in seconds to derive or resample across, 10 median steps if None.

        Examples
        --------
        >>> import numpy as np
        >>> from imparo.dynamics.logs.log import Log
        >>> t = np.arange(100) / 100
        >>> log = Log.from_signals(t, np.sin(t)[:, None], joints=["elbow"])
        >>> len(log), log.notes["ddq"]
        (90, 'derived from q: fit of order 2 to 11 samples, 5 samples (0.05 s) late')
        """
        t = check_stamps(t)
        columns: dict[str, Array] = {}
        for name, given in (("q", q), ("dq", dq), ("ddq", ddq), ("y", y)):
            if given is not None:
                array = np.asarray(given, np.float64)
                array = array[:, None] if array.ndim == 1 else array
                columns[name] = check_rows(array, len(t), name)
        y = columns.pop("y", np.empty((len(t), 0)))
        J, T = columns["q"].shape[1], y.shape[1]
        if joints is None:
            joints = [f"joint{j + 1}" for j in range(J)]
        if outputs is None:
            outputs = joints if J == T else [f"y{k + 1}" for k in range(T)]
        names = check_names(joints, "joints"), check_names(outputs, "outputs")
        for name, array in {**columns, "y": y}.items():
            check_columns(array, name, names[name == "y"])
        rows, states, said = complete_states(
            t, **columns, window=window, order=order, lag=lag, max_gap=max_gap
        )
        known = {**(notes or {}), **said}
        t, y = t[rows], y[rows]
        if rate is not None:
            check_gaps(t, max_gap, "t")
            new = even_stamps(t[0], t[-1], rate)
            q, dq, ddq, y = (resample(t, column, new) for column in (*states, y))
            known["resampled"] = f"to {rate:g} Hz, " + lateness(new - resample(t, t, new))
            return cls(new, q, dq, ddq, y, *names, known)
        return cls(t, *states, y, *names, known)


def concatenate(logs: Sequence[Log]) -> Log:
    """Join recordings of one robot, one after the other.

    Stamps are kept where they increase; a log that does not start after the one before has
    its stamps moved to start a median step after it. The note "parts" has the rows of each.

    Parameters
    ----------
    logs : sequence of Log
        With the same joints and outputs in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics.logs.log import Log, concatenate
    >>> log = Log.from_signals([0.0, 0.1], *np.zeros((4, 2, 1)))
    >>> both = concatenate([log, log])
    >>> print(both.t, both.notes["parts"])
    [0.  0.1 0.2 0.3] 0:2, 2:4
    """
    logs = list(logs)
    if not logs:
        raise ValueError("there are no logs to join; give at least one")
    first = logs[0]
    stamps: list[Array] = []
    for number, log in enumerate(logs):
        if (log.joints, log.outputs) != (first.joints, first.outputs):
            raise ValueError(
                f"log {number} has joints {listed(log.joints)} and outputs "
                f"{listed(log.outputs)}, log 0 has {listed(first.joints)} and "
                f"{listed(first.outputs)}; choose the same ones with select"
            )
        t = log.t
        if stamps and t[0] <= stamps[-1][-1]:
            steps = np.diff(t) if len(t) > 1 else np.diff(stamps[-1])
            t = t - t[0] + stamps[-1][-1] + (float(np.median(steps)) if len(steps) else 1.0)
        stamps.append(t)
    ends = np.cumsum([len(log) for log in logs])
    notes: dict[str, str] = {}
    for key in dict.fromkeys(key for log in logs for key in log.notes):
        notes[key] = "; ".join(dict.fromkeys(log.notes.get(key, "unknown") for log in logs))
    notes["parts"] = ", ".join(
        f"{end - len(log)}:{end}" for log, end in zip(logs, ends, strict=True)
    )
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(log, name) for log in logs]) for name in ARRAYS
    }
    arrays["t"] = np.concatenate(stamps)
    return Log(**arrays, joints=first.joints, outputs=first.outputs, notes=notes)


def _frozen(array: Array) -> Array:
    # A view that cannot be written to may still change with what it is a view of.
    if array.flags.writeable or array.base is not None:
        array = array.copy()
        array.flags.writeable = False
    return array
