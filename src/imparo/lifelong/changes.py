"""Changes of a learner as records: what they hold, how they are made again."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from imparo.engine import Array
from imparo.errors import FileFormatError
from imparo.estimators.inputs import check_numbers, check_rows
from imparo.lifelong.labels import labels_of
from imparo.persistence import fingerprint, load, save


def learn_record(learner: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return the record of examples to learn: plain arrays, and labels as plain values."""
    if is_classifier(learner):
        outputs: Any = labels_of(y)
    else:
        outputs = np.asarray(check_numbers(y))
        if outputs.dtype.kind != "c":  # which the learner refuses
            outputs = outputs.astype(np.float64)
    return {"op": "learn", "X": _plain(X), "y": outputs}


def apply(learner: Any, record: dict[str, Any]) -> None:
    """Make a recorded change."""
    kind = record["op"]
    if kind == "forget":
        learner.forget(record["label"])
    elif kind == "rename":
        learner.rename(record["old"], record["new"])
    elif kind == "recode":
        learner.recode(record["recoding"])
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


def as_bytes(learner: Any) -> Array:
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
    exact = array.dtype in (np.float32, np.float64) or array.dtype.kind == "c"  # refused later
    return array if exact else array.astype(np.float64)


def check_savable(learner: Any) -> None:
    """Raise unless a learner can learn on, be saved, and learn the same when replayed."""
    if not hasattr(learner, "partial_fit"):
        raise TypeError(
            f"{learner!r:.60} cannot learn on and so cannot be kept; give a learner such as "
            "IncrementalClassifier()"
        )
    fingerprint(learner)
    if hasattr(learner, "n_seen_"):
        return
    for name, value in learner.get_params().items():
        if name.rpartition("__")[2] == "random_state" and value is None:
            if name.startswith("features__") and _is_fitted(learner.features):
                continue
            raise ValueError(
                f"{name}=None would draw something else whenever records are replayed; give "
                "it a number"
            )


def _is_fitted(features: Any) -> bool:
    try:
        check_is_fitted(features)
    except NotFittedError:
        return False
    return True


def check_same(path: Path, found: Any, given: Any) -> None:
    """Raise unless a learner that was given has the parameters of the one that is kept."""
    if type(found) is not type(given):
        raise ValueError(
            f"{path} holds a {type(found).__name__}, not a {type(given).__name__}; open it "
            "without a learner, or choose another folder"
        )
    kept, wanted = found.get_params(deep=False), given.get_params(deep=False)
    for name, value in wanted.items():
        if fingerprint(kept[name]) != fingerprint(value) and not _same_numbers(
            kept[name], value
        ):
            raise ValueError(
                f"the learner in {path} has {name}={kept[name]!r:.60}, not {value!r:.60}; "
                "open it without a learner, or choose another folder"
            )


def _same_numbers(one: Any, other: Any) -> bool:
    """Return whether two parameters are the same numbers, in a list, a tuple or an array."""
    a, b = np.asarray(one), np.asarray(other)
    return a.dtype.kind in "fiu" and b.dtype.kind in "fiu" and np.array_equal(a, b)
