"""What learning from a long stream may cost: as much memory and time as from a short one."""

import gc
import pickle
import sys
import time
import types
from typing import Any

import numpy as np

from imparo.lifelong.check_streams import Array, Trial, blocks, fail

# Bytes by which a state may grow: counters, and what grows as the logarithm of the rows.
SLACK = 4096
# A cost linear in the rows seen makes a block 9 to 18 times slower, less what is constant.
SLOWER = 3.0
REPEATS = 5
# Nothing behind these belongs to a model, and what they refer to has no end.
FOREIGN = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.CodeType,
)


def check_memory(trial: Trial) -> None:
    """Check that a stream ten times as long leaves a state of the same size.

    It may grow by 4 kB and a tenth, but by no more than 4 kB and a quarter of the bytes of the
    new rows, so that a large model that keeps them is found, too. Both the pickle is measured,
    if there is one, and all objects that the model refers to.
    """
    X, y = trial.stream(10 * trial.rows)
    model = trial.learn(trial.fresh(), X[: trial.rows], y[: trial.rows], block=10)
    before = pickled_size(model), deep_size(model)
    trial.learn(model, X[trial.rows :], y[trial.rows :], block=10)
    after = pickled_size(model), deep_size(model)
    for what, old, new in zip(("pickle", "state"), before, after, strict=True):
        if old is None or new is None:
            continue
        if new - old > SLACK + min(old / 10, X[trial.rows :].nbytes / 4):
            fail(
                f"the {what} has {old:,} bytes after {trial.rows} rows and {new:,} after "
                f"{len(X)}"
            )


def check_time(trial: Trial) -> None:
    """Check that updates and predictions take as long on a stream ten times as long.

    The fastest of many small blocks late in the first tenth of the stream is compared to the
    fastest in the last tenth. Where it seems more than 3 times as long the stream is learned
    again, up to 5 times, and the fastest of all count: other work on the machine makes a block
    slower, never faster, and would have to disturb every block of a tenth each time. A cost
    that is linear in the rows seen is 9 times as high in the last tenth, or more.
    """
    size = max(trial.rows // 40, 1)
    X, y = trial.stream(10 * trial.rows)
    early = slice(trial.rows // 2, trial.rows)
    late = slice(9 * trial.rows, 10 * trial.rows)
    first, last = np.full(2, np.inf), np.full(2, np.inf)
    for _ in range(REPEATS):
        model = trial.fresh()
        for part in blocks(len(X), size):
            seconds = _seconds(trial, model, X[part], y[part])
            if early.start <= part.start < early.stop:
                first = np.minimum(first, seconds)
            elif part.start >= late.start:
                last = np.minimum(last, seconds)
        if (last <= SLOWER * first).all():
            return
    for what, a, b in zip(("an update", "a prediction"), first, last, strict=True):
        if b > SLOWER * a:
            fail(
                f"{what} takes {1e6 * a:.0f} µs after {trial.rows} rows and {1e6 * b:.0f} µs "
                f"after {len(X)}"
            )


def _seconds(trial: Trial, model: Any, X: Array, y: Array) -> Array:
    """Return the seconds to learn some rows, and to predict for them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        trial.learn(model, X, y)
        learned = time.perf_counter()
        model.predict(X)
        return np.array([learned - start, time.perf_counter() - learned])
    finally:
        if collects:
            gc.enable()


def pickled_size(model: Any) -> int | None:
    """Return the bytes of a pickle, or None for what cannot be pickled."""
    try:
        return len(pickle.dumps(model))
    except Exception:  # whatever a foreign object may raise
        return None


def deep_size(model: Any) -> int:
    """Return the bytes of all objects that a model refers to, each counted once.

    What a pickle would leave out, as caches, counts too, and so does the whole of an array of
    which a part is kept.
    """
    total, seen, found = 0, set[int](), [model]
    while found:
        one = found.pop()
        if id(one) in seen or isinstance(one, FOREIGN):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        if isinstance(one, np.ndarray):
            found.append(one.base)
            if one.dtype.hasobject:
                found.extend(one.ravel().tolist())
        else:
            found.extend(gc.get_referents(one))
    return total
