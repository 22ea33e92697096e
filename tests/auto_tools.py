"""What the tests of learning within a budget share."""

import numpy as np
import pandas as pd
import polars as pl

from imparo.estimators import auto_search, auto_widths

# With these, and a clock that stands still, nothing is left to chance or to time.
FIXED = {"kernel": "gaussian", "sigma": "median", "random_state": 0}
# Trials that compare settings on one fold, or a part of the rows: their models are not kept.
SCREENING = ("one width", "one width, learned", "widths learned", "widths of another fold")


def comparable(model):
    """Return the trials whose errors are of the same held-out rows as the model's."""
    done = [
        t for t in model.record_
        if np.isfinite(t.error) and t.note.split(":")[0] not in SCREENING
    ]  # fmt: skip
    most = max((t.n_rows, t.n_held) for t in done)
    return [t for t in done if (t.n_rows, t.n_held) == most]


def prepared(model, X):
    """Return rows as the kernel of a model sees them."""
    return X if model.inputs_ is None else model.inputs_.transform(X)


class Clock:
    """A clock that trials and learning move: one second for so many operations."""

    def __init__(self, monkeypatch, operations):
        self.now, self.longest, self._operations = 0.0, 0.0, operations
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        trial, learn = auto_search.Search._trial, auto_widths.learn_widths

        def timed(search, machine, method, m, rows, note, **settings):
            # Half of the work in reading rows, half in solving.
            splits = len(search._splits)
            cost = search._cost(len(rows), m, 41, splits) / self._operations
            shares = {"reading rows": 0.5, "growing": 0.5, "penalties": 0.5 / splits}
            wrapped = machine.progress

            def progress(done, total, what):
                self._move(shares.get(what, 0.02) * cost / total)
                wrapped(done, total, what)

            machine.progress = progress
            result = trial(search, machine, method, m, rows, note, **settings)
            machine.progress = wrapped
            return result

        def learned(kernel, X, Y, *, n_centers, goes_on, **settings):
            def move_on():
                self._move(3.0 * len(X) * n_centers**2 / self._operations)
                return goes_on()

            return learn(kernel, X, Y, n_centers=n_centers, goes_on=move_on, **settings)

        monkeypatch.setattr(auto_search.Search, "_trial", timed)
        monkeypatch.setattr(auto_widths, "learn_widths", learned)

    def _move(self, step):
        self.now, self.longest = self.now + step, max(self.longest, step)


def as_pandas(columns):
    return pd.DataFrame(columns)


def as_polars(columns):
    return pl.DataFrame({name: _plain(values) for name, values in columns.items()})


def as_objects(columns):
    table = np.empty((len(columns["city"]), len(columns)), dtype=object)
    for j, values in enumerate(columns.values()):
        table[:, j] = values.tolist()
    return table


def _plain(values):
    return values.tolist() if values.dtype == object else values


def by_hand(member, X):
    """Return what a member of a model predicts, from its parts."""
    rows = np.asarray(X) if member.inputs is None else member.inputs.transform(X)
    F = member.kernel(rows, member.centers) @ member.coef + member.intercept
    return F if member.target is None else member.target.mean(F)
