"""What every incremental estimator should do: one property a function.

The first line of each docstring says it, and becomes part of the message of a failure.
"""

import copy
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from imparo.lifelong.check_streams import (
    LABELS,
    METHODS,
    Array,
    Trial,
    blocks,
    error_of,
    fail,
)

# Enough rows for models that compare, few enough that a suite takes no time.
ROWS = 96


def check_unseen_labels(trial: Trial) -> None:
    """Check that a new label may come at any call, on one row, without ``classes=``.

    Numbers and strings, of which new ones may be longer and sorted before the old ones. The
    model predicts no label before it has seen it, has it among ``classes_`` and the columns of
    ``predict_proba`` from then on, and predicts it where most rows have it. Naming classes
    by ``classes=`` is allowed.
    """
    X, y = trial.stream(ROWS)
    order = np.concatenate([np.flatnonzero(y == label)[:1] for label in (2, 1, 3, 0)])
    rest = np.setdiff1d(np.arange(ROWS), order)
    probe, truth = trial.stream(80, seed=1)
    for names in (LABELS * 10 - 10, np.array(["a long one", "b", "no", "yes"])):
        model, seen = trial.fresh(), list[Any]()
        for rows in [*order[:, None], *np.array_split(rest, 4)]:
            labels = np.array(names[y[rows]].tolist())  # strings no longer than they must be
            model.partial_fit(X[rows], labels)
            seen = sorted({*seen, *labels.tolist()})
            _check_labels(model, probe, seen)
        _check_hits(model.predict(probe), names[truth])
        model = trial.fresh()
        for part in blocks(ROWS, ROWS // 2):
            model.partial_fit(X[part], names[y[part]], classes=names)
        _check_hits(model.predict(probe), names[truth])


def _check_labels(model: Any, X: Array, seen: list[Any]) -> None:
    strange = sorted(set(model.predict(X).tolist()) - set(seen))
    if strange:
        fail(f"predict gives {strange} after rows of {seen} alone")
    if hasattr(model, "classes_") and sorted(np.asarray(model.classes_).tolist()) != seen:
        fail(f"classes_ is {np.asarray(model.classes_).tolist()} after rows of {seen}")
    if hasattr(model, "predict_proba"):
        shape = model.predict_proba(X).shape
        if shape != (len(X), len(seen)):
            fail(f"predict_proba has the shape {shape} for {len(X)} rows and classes {seen}")


def _check_hits(found: Array, truth: Array) -> None:
    for label in np.unique(truth):
        hits = np.mean(found[truth == label] == label)
        if not hits > 0.5:
            fail(f"{label!r} is predicted for {hits:.0%} of the rows of an easy class")


def check_deterministic(trial: Trial) -> None:
    """Check that one stream learned twice gives models that are equal to the bit.

    Longer than the streams of other checks, each of which presupposes this.
    """
    X, y = trial.stream(3 * ROWS)
    model, twin = trial.fresh(), trial.fresh()
    for part in blocks(len(X), ROWS // 4):
        for one in (model, twin):
            trial.learn(one, X[part], y[part])
        trial.compare(model, twin, f"after {part.stop} rows of the same stream")


def check_predict_before_learning(trial: Trial) -> None:
    """Check that predicting before learning raises NotFittedError, and does no harm."""
    model = trial.fresh()
    for name in METHODS:
        if hasattr(model, name):
            error = error_of(partial(getattr(model, name), trial.probe))
            if not isinstance(error, NotFittedError):
                what = "nothing" if error is None else type(error).__name__
                fail(f"{name} raises {what} before the first row")
    X, y = trial.stream(ROWS)
    twin = trial.learn(trial.fresh(), X, y)
    trial.compare(trial.learn(model, X, y), twin, "once asked too early")


def check_inputs_left_alone(trial: Trial) -> None:
    """Check that arrays are neither changed nor kept: what becomes of them later is no matter.

    In float64 and float32, by rows and by columns; also after more rows were learned.
    """
    X, y = trial.stream(ROWS)
    extra = trial.extra
    layouts = ("by rows", np.ascontiguousarray), ("by columns", np.asfortranarray)
    for dtype, (layout, arranged) in product((np.float64, np.float32), layouts):
        first, second = (arranged(part.astype(dtype)) for part in np.split(X, 2))
        values, more = np.split(y, 2)
        rows, outputs = first.copy("K"), values.copy()
        model, twin = trial.fresh(), trial.fresh()
        model.partial_fit(rows, outputs, **extra)
        twin.partial_fit(first.copy("K"), values.copy(), **extra)
        where = f"{rows.dtype} arrays {layout}"
        if not (np.array_equal(rows, first) and np.array_equal(outputs, values)):
            fail(f"partial_fit changes {where}")
        rows[...], outputs[...] = 7, values[0]
        trial.compare(model, twin, f"after {where} were overwritten")
        for one in (model, twin):
            one.partial_fit(second.copy("K"), more.copy(), **extra)
        trial.compare(model, twin, f"after {where} were overwritten and others learned")
        rows = first.copy("K")
        model.predict(rows)
        if not np.array_equal(rows, first):
            fail(f"predict changes {where}")


def check_block_sizes(trial: Trial) -> None:
    """Check that rows one by one, in blocks cut anywhere, or in one block give one model."""
    X, y = trial.stream(ROWS)
    rng = np.random.default_rng(2)
    whole = trial.learn(trial.fresh(), X, y)
    single = trial.learn(trial.fresh(), X, y, block=1)
    trial.compare(single, whole, "one by one instead of in one block", trial.tol)
    for number in (1, 5, 30):
        cuts = np.sort(rng.choice(np.arange(1, ROWS), number, replace=False))
        model, whole = trial.fresh(), trial.learn(trial.fresh(), X, y)
        for rows in np.split(np.arange(ROWS), cuts):
            trial.learn(model, X[rows], y[rows])
        where = f"in {number + 1} blocks instead of one"
        trial.compare(model, whole, where, trial.tol)


def check_row_order(trial: Trial) -> None:
    """Check that the order of the rows, and of the classes, does not matter.

    Only for estimators that promise it. Rows are permuted, and sorted by output both ways;
    with ``classes=``, classes are named forwards and backwards.
    """
    X, y = trial.stream(ROWS)
    orders = {
        "permuted": np.random.default_rng(3).permutation(ROWS),
        "sorted by y": np.argsort(y, kind="stable"),
        "sorted by -y": np.argsort(-y, kind="stable"),
    }
    for name, order in orders.items():
        model = trial.learn(trial.fresh(), X[order], y[order], block=7)
        twin = trial.learn(trial.fresh(), X, y, block=7)
        trial.compare(model, twin, f"with the rows {name}", trial.tol)
    if trial.classifies:
        model, twin = trial.fresh(), trial.fresh()
        model.partial_fit(X, y, classes=LABELS[::-1].copy())
        twin.partial_fit(X, y, classes=LABELS.copy())
        trial.compare(model, twin, "with the classes named backwards", trial.tol)


def check_predicting_changes_nothing(trial: Trial) -> None:
    """Check that predictions between rows leave the model as it is, to the bit.

    Their arrays are overwritten, too: none may be part of the model.
    """
    X, y = trial.stream(ROWS)
    model, twin = trial.fresh(), trial.learn(trial.fresh(), X, y, block=8)
    for part in blocks(ROWS, 8):
        trial.learn(model, X[part], y[part])
        for name in METHODS:
            if hasattr(model, name):
                found = getattr(model, name)(trial.probe)
                if isinstance(found, np.ndarray) and found.flags.writeable:
                    found[...] = found.flat[0]
    trial.compare(model, twin, "with predictions between the blocks")


def check_copies(trial: Trial) -> None:
    """Check that a deep copy learns on its own, and a clone starts from nothing."""
    X, y = trial.stream(ROWS)
    half = ROWS // 2
    model = trial.learn(trial.fresh(), X[:half], y[:half])
    twin = trial.learn(trial.fresh(), X[:half], y[:half])
    early = trial.learn(copy.deepcopy(model), X[half:], y[half:])
    trial.compare(model, twin, "in a model whose deep copy learned on", trial.tol)
    late = copy.deepcopy(model)
    trial.learn(model, X[half:], y[half:])
    trial.compare(late, twin, "in a deep copy of a model that learned on", trial.tol)
    twin = trial.learn(trial.fresh(), X, y, block=half)
    trial.compare(early, twin, "in a deep copy that learned on", trial.tol)
    if hasattr(model, "get_params"):
        bare = trial.learn(clone(model), X[half:], y[half:])
        twin = trial.learn(trial.fresh(), X[half:], y[half:])
        trial.compare(bare, twin, "in a clone of a model that had learned", trial.tol)


def check_pickle(trial: Trial) -> None:
    """Check that an unpickled model predicts and learns on as the model would have."""
    X, y = trial.stream(ROWS)
    half = ROWS // 2
    model = trial.learn(trial.fresh(), X[:half], y[:half])
    twin = trial.learn(trial.fresh(), X[:half], y[:half])
    model = pickle.loads(pickle.dumps(model))
    trial.compare(model, twin, "in the unpickled model", trial.tol)
    for one in (model, twin):
        trial.learn(one, X[half:], y[half:])
    trial.compare(model, twin, "in the unpickled model after more rows", trial.tol)


def check_bad_input(trial: Trial) -> None:
    """Check that bad input raises ValueError or TypeError, and the model is as it was before.

    NaN, infinity, text, no rows, a column or an output too many or too few. The fault is in the
    last row, and the label that comes with it is new. The first block of a stream may be bad,
    too, and that it had another number of columns must not matter then.
    """
    X, y = trial.stream(ROWS)
    known = np.flatnonzero(y != LABELS[-1])[: ROWS // 2] if trial.classifies else slice(40)
    model, twin = (trial.learn(trial.fresh(), X[known], y[known]) for _ in range(2))
    for what, bad_X, bad_y in _bad_blocks(trial, X[-9:], y[-9:]):
        _check_refused(
            f"partial_fit with {what}", model.partial_fit, bad_X, bad_y, **trial.extra
        )
        trial.compare(model, twin, f"after {what}")
        if what.endswith("in X"):
            _check_refused(f"predict with {what}", model.predict, bad_X)
    for one in (model, twin):
        trial.learn(one, X, y)
    trial.compare(model, twin, "after more rows since the bad ones")
    wide = np.column_stack([X, X[:, 0]])
    for what, bad_X, bad_y in _bad_blocks(trial, wide[-9:], y[-9:]):
        if "columns" not in what:
            model, twin = trial.fresh(), trial.learn(trial.fresh(), X, y)
            where = f"{what} in the first block"
            _check_refused(
                f"partial_fit with {where}", model.partial_fit, bad_X, bad_y, **trial.extra
            )
            trial.learn(model, X, y)
            trial.compare(model, twin, f"after {where}")


def _bad_blocks(trial: Trial, X: Array, y: Array) -> Iterator[tuple[str, Array, Array]]:
    if trial.classifies:
        y = np.append(y[:-1], LABELS[-1])
    for name, value in (("NaN", np.nan), ("infinity", np.inf), ("text", "text")):
        bad = X.astype(object if name == "text" else X.dtype)
        bad[-1, -1] = value
        yield f"{name} in X", bad, y
        if not trial.classifies:
            bad = y.astype(bad.dtype)
            bad[-1] = value
            yield f"{name} in y", X, bad
    yield "one of the columns missing in X", X[:, 1:], y
    yield "one of the columns twice in X", np.column_stack([X, X[:, 0]]), y
    yield "an output too few", X, y[1:]
    yield "an output too many", X, np.append(y, y[-1])
    yield "no rows", X[:0], y[:0]


def _check_refused(
    what: str, call: Callable[..., object], *args: Array, **options: Array
) -> None:
    error = error_of(partial(call, *args, **options))
    if not isinstance(error, ValueError | TypeError):
        fail(f"{what} raises {'nothing' if error is None else type(error).__name__}")


def check_learning(trial: Trial) -> None:
    """Check that errors on an easy problem are less than half of those of the best constant.

    Each block is predicted before it is learned; the second half of the stream counts.
    """
    X, y = trial.stream(2 * ROWS)
    model = trial.learn(trial.fresh(), X[:ROWS], y[:ROWS], block=8)
    X, truth, predicted = X[ROWS:], y[ROWS:], []
    for part in blocks(ROWS, 8):
        predicted.append(model.predict(X[part].copy()))
        trial.learn(model, X[part], truth[part])
    found = np.concatenate(predicted)
    if trial.classifies:
        error = float(np.mean(found != truth))
        trivial = 1 - float(np.max(np.unique(truth, return_counts=True)[1])) / ROWS
    else:
        error, trivial = float(np.mean((found - truth) ** 2)), float(np.var(truth))
    if not error < trivial / 2:
        fail(f"the error is {error:.3g} and that of a constant {trivial:.3g}")


def check_degenerate_rows(trial: Trial) -> None:
    """Check that outputs are finite after one row, equal rows, or constant columns."""
    X, y = trial.stream(ROWS)
    constant = X.copy()
    constant[:, 1:] = np.arange(trial.columns - 1)
    cases = {
        "one row": (X[:1], y[:1]),
        "one row many times": (np.repeat(X[:1], ROWS, axis=0), y),
        "constant columns": (constant, y),
        "rows of zeros": (np.zeros_like(X), y),
    }
    for name, (rows, values) in cases.items():
        model = trial.learn(trial.fresh(), rows, values, block=8)
        for probe in (trial.probe, rows):
            for method, found in trial.outputs(model, probe).items():
                if found.dtype.kind in "fc" and not np.isfinite(found).all():
                    fail(f"{method} is not finite after {name}")
