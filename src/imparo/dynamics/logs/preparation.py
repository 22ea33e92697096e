"""Measured columns made ready for a log: radians, rows that count, states that are missing."""

from collections.abc import Sequence

import numpy as np

from imparo.dynamics.logs.checks import check_gaps, choose
from imparo.dynamics.logs.differentiation import CausalDerivative, differentiate
from imparo.engine import Array


def to_radians(values: Array, joints: Sequence[str], degrees: bool | Sequence[str]) -> Array:
    """Convert the columns that are in degrees: all, none, or those of the joints named."""
    if isinstance(degrees, bool):
        return np.deg2rad(values) if degrees else values
    chosen = choose(joints, degrees, "joints to convert from degrees")
    values = values.copy()
    values[:, chosen] = np.deg2rad(values[:, chosen])
    return values


def rising(t: Array, rows: Array) -> tuple[Array, str]:
    """Return which rows are finite with a stamp after all before, and a note on the others."""
    finite = np.isfinite(t) & np.isfinite(rows).all(axis=1)
    known = np.where(finite, t, -np.inf)
    latest = np.concatenate([[-np.inf], np.maximum.accumulate(known)[:-1]])
    good = finite & (t > latest)
    late = int((finite & ~good).sum())
    note = f"{int((~finite).sum())} rows not finite, {late} whose stamps do not increase"
    return good, note


def complete_states(
    t: Array,
    q: Array,
    dq: Array | None = None,
    ddq: Array | None = None,
    *,
    window: int = 11,
    order: int = 2,
    lag: int = 0,
    max_gap: float | None = None,
) -> tuple[slice, tuple[Array, Array, Array], dict[str, str]]:
    """Derive dq and ddq where they are missing.

    Returns the rows that are complete, q, dq and ddq in these rows, and notes.
    """
    fit = CausalDerivative(window, order, lag)
    if dq is not None and ddq is not None:
        return slice(0, len(t)), (q, dq, ddq), {}
    n = len(t)
    if n < window:
        raise ValueError(
            f"{n} samples are too few to derive velocities or accelerations over a window of "
            f"{window}; give dq and ddq, a longer recording or a shorter window"
        )
    check_gaps(t, max_gap, "t")
    rows = slice(window - 1 - lag, n - lag)
    step = float(np.median(np.diff(t)))
    given, source, degree = (q, "q", 0) if dq is None else (dq, "dq", 1)
    derived = differentiate(t, given, window=window, order=order, lag=lag)
    notes: dict[str, str] = {}
    states = []
    for d, name, measured in ((1, "dq", dq), (2, "ddq", ddq)):
        if measured is not None:
            states.append(measured[rows])
            continue
        late = fit.delay[d - degree] - lag
        text = f"derived from {source}: fit of order {order} to {window} samples, "
        text += f"{late:g} samples ({late * step:.3g} s) late"
        notes[name] = text + f", known {lag} samples after its row" * (lag > 0)
        states.append(derived[d - degree - 1][window - 1 :])
    notes["left out"] = f"the first {window - 1 - lag} and last {lag} of {n} samples"
    return rows, (q[rows], states[0], states[1]), notes
