"""Whether a learner that came as a file is one that this library could have written.

A file is made of plain arrays and values, and no code of it is run; but arrays whose shapes
do not go together would make compiled loops read and write beside them, and numbers that are
none would come up long after. So all is looked at before the learner is used for the first
time, and then a copy of it learns and answers.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from imparo.dynamics import Robot, SerialArm
from imparo.lifelong import IncrementalClassifier, RecursiveRegressor
from imparo.lifelong.recursion import DELAY, Recursion
from imparo.lifelong.reservoir import Reservoir
from imparo.service.album import Album, key_of
from imparo.service.errors import TooMuch
from imparo.service.labels import Label, check_label
from imparo.service.recipes import check_features, check_urdf
from imparo.service.settings import Limits

_LABEL: TypeAdapter[Any] = TypeAdapter(Label)
# Rows that a copy learns: more than wait for the weights, so that all parts have worked.
_TRIED = DELAY + 1
# Examples that may be held out, and numbers that they may be answered with.
_HELD, _ANSWERS = 5000, 2**24
# Of examples: beyond this they are no exact numbers, nor will there ever be so many.
_MOST_SEEN = 2**53
# Of the entries of L; the least penalty makes them 1e6.
_LARGEST = 1e20
# Pairs of labels that an album counts.
_PAIRS = 20_000


def check_learner(learner: Any, limits: Limits) -> None:
    """Raise, whatever it may be, unless a learner answers and learns as one of its kind does.

    Parameters
    ----------
    learner : estimator
    limits : Limits

    Raises
    ------
    TooMuch
        If it is whole, but larger than the limits.
    Exception
        Any other, if it is not.
    """
    for part in _parts(learner):
        for name, most in (("n_features", limits.features), ("holdout_size", _HELD)):
            size = vars(part).get(name, 0)
            if isinstance(size, int | np.integer) and size > most:
                raise TooMuch(f"the learner has {name}={size}, and {most} is the most here")
        if isinstance(part, Recursion):
            _check_recursion(part, limits)
        elif isinstance(part, Reservoir):
            _check_reservoir(part)
        elif isinstance(part, Robot):
            _check_robot(part, limits)
        elif isinstance(part, SerialArm):
            check_features(10 * part.n_joints, limits)
    if isinstance(learner, IncrementalClassifier | RecursiveRegressor):
        learner._check_parameters()
        _check(getattr(learner, "holdout", 2) is not None)  # it could not be asked
    if not hasattr(learner, "n_seen_"):
        return
    _check(_is_count(learner.n_seen_, 0, _MOST_SEEN))
    for name in ("_recursions", "_reservoir"):
        found = vars(learner).get(name)
        kind = Recursion if name == "_recursions" else Reservoir
        own = found if type(found) is list else [found] * (found is not None)
        _check(all(type(part) is kind for part in own))
    width = int(learner.n_features_in_)
    if not 1 <= width <= limits.columns:
        raise TooMuch(f"the learner takes rows of {width} numbers, too many for here")
    trial = copy.deepcopy(learner)
    # The last row says what a row of zeros may hide.
    rows = np.zeros((_TRIED, width))
    rows[-1] = 1e-3
    if isinstance(trial, IncrementalClassifier):
        _try_classifier(trial, rows, limits)
    else:
        _try_regressor(trial, rows, limits)


def check_album(state: dict[str, Any]) -> None:
    """Raise, whatever it may be, unless an album can be gone on with.

    Parameters
    ----------
    state : dict
        As :meth:`imparo.service.album.Album.state` returns it.
    """
    Album.check(state)
    _check(sorted(state["means"]) == ["accuracy", "error", "milliseconds"])
    for total, weight in state["means"].values():
        _check(_is_number(total) and _is_number(weight) and total >= 0 and weight >= 0)
    _check(_is_count(state["drawn"], 0) and len(state["confusion"]) <= _PAIRS)
    keys = list(state["thumbnails"])
    for shown, answered, count in state["confusion"]:
        _check(_is_count(count, 0))
        keys += [shown, answered]
    for key in set(keys):
        label = _LABEL.validate_python(json.loads(key))
        _check(key_of(label) == key)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300


def _is_count(value: Any, least: int, most: int = 2**62) -> bool:
    return type(value) is int and least <= value <= most


def _check(fits: Any) -> None:
    if not fits:
        raise ValueError("its parts do not go together")


def _parts(learner: Any) -> Iterator[Any]:
    """Yield every object of this library that a learner holds."""
    seen: set[int] = set()
    rest = [learner]
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            rest += [*value, *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            rest += value
        elif isinstance(value, np.ndarray):
            rest += value.ravel().tolist() if value.dtype.hasobject else []
        elif not isinstance(value, type):
            if type(value).__module__.startswith("imparo"):
                yield value
            rest += getattr(value, "__dict__", {}).values()


def _check_recursion(part: Recursion, limits: Limits) -> None:
    root, T = part.root, part.n_outputs
    _check(isinstance(root, np.ndarray) and root.ndim == 2 and root.dtype.char in "fd")
    D, dtype = len(root), root.dtype
    check_features(D, limits)
    room = len(part._coef)
    shapes = {
        "root": (D, D), "_coef": (room, D), "_rows": (DELAY, D), "_gains": (DELAY, D),
        "_targets": (DELAY, part._targets.shape[1]), "residual": (T,),
        "_errors": (len(part._errors), T), "_shares": (DELAY,), "_weights": (DELAY,),
    }  # fmt: skip
    for name, shape in shapes.items():
        array = getattr(part, name)
        _check(isinstance(array, np.ndarray) and array.shape == shape)
        _check(array.dtype == dtype or (array.ndim == 1 and array.dtype == np.float64))
        _check(array.flags.c_contiguous and np.isfinite(array).all())
    _check(np.abs(root).max(initial=0.0) < _LARGEST)
    _check(type(T) is int and 0 <= T <= min(room, part._targets.shape[1]))
    _check(type(part._n_waiting) is int and 0 <= part._n_waiting < DELAY)
    _check(len(part._errors) <= part._n_waiting)
    _check(0 < part.forgetting <= 1 and type(part.directional) is bool)
    numbers = [part.penalty, part.prior, part.weight]
    _check(all(type(x) is float and np.isfinite(x) and x >= 0 for x in numbers))


def _check_reservoir(part: Reservoir) -> None:
    n, codes, offered = part._n, part._codes, part._offered
    _check(_is_count(part.capacity, 1, _HELD) and _is_count(n, 0, part.capacity))
    _check(n <= len(codes) == len(part._rows) == len(part._weights) <= _HELD)
    _check(type(part.seed) is int and type(part._draws) is int)
    _check(codes.ndim == part._weights.ndim == 1 and part._rows.ndim == 2)
    _check(codes.dtype == np.intp and np.isfinite(part._rows[:n]).all())
    _check(type(offered) is list and all(type(count) is int for count in offered))
    _check(n == 0 or 0 <= codes[:n].min() <= codes[:n].max() < len(offered))


def _check_robot(part: Robot, limits: Limits) -> None:
    """Raise unless the text of a robot is what its own description is read as.

    What reads it at work is a library in C++, and it reads files by their names.
    """
    text = part.urdf
    _check(isinstance(text, str))
    check_urdf(text)
    again = Robot(
        text, joints=part.joints, sensor=part.sensor, sign=part.sign, gravity=part.gravity
    )
    _check(again.joints == part.joints)
    check_features(10 * len(again.joints), limits)


def _try_classifier(trial: Any, rows: Any, limits: Limits) -> None:
    labels = trial.classes_.tolist()
    if len(labels) > limits.classes:
        raise TooMuch(f"the learner knows {len(labels)} classes, too many for here")
    T, own = len(labels), trial._labels
    if T * trial._reservoir._n > _ANSWERS:
        raise TooMuch(
            f"the learner holds {trial._reservoir._n} examples out, of {T} classes: too many"
        )
    for label in [*labels, trial.unknown_label]:
        check_label(_LABEL.validate_python(label), limits)
    _check(trial._codes == {label: code for code, label in enumerate(own)})
    _check(sorted(trial._order.tolist()) == list(range(T)))
    told = [json.dumps(own[code]) for code in trial._order.tolist()]
    _check(told == [json.dumps(label) for label in labels])
    _check(T == len(set(map(json.dumps, labels))) == len(trial._labels) == len(trial._shown))
    _check(all(_is_count(count, 0, _MOST_SEEN) for count in trial._shown))
    _check(all(recursion.n_outputs == T for recursion in trial._recursions))
    _check(trial._reservoir._n == 0 or trial._reservoir._codes[: trial._reservoir._n].max() < T)
    if T == 0:  # all were forgotten: it answers once it has learned
        labels = ["a", "b"]
        trial.partial_fit(rows, [labels[k % 2] for k in range(len(rows))])
    for _ in range(2):
        _finite(
            trial.shown_.tolist(), float(trial.recoding_), trial.predict(rows).tolist(),
            *(np.asarray(found).tolist() for found in trial.assess(rows, 0.5)),
            trial.novelty(rows).tolist(),
        )  # fmt: skip
        trial.recoding_curve()
        trial.partial_fit(rows, [labels[k % len(labels)] for k in range(len(rows))])


def _try_regressor(trial: Any, rows: Any, limits: Limits) -> None:
    T = int(trial._n_outputs())
    if not 1 <= T <= limits.outputs:
        raise TooMuch(f"the learner has {T} outputs, and the service takes {limits.outputs}")
    for _ in range(2):
        found, deviations = trial.predict(rows, return_std=True)
        # Deviations are not known before there are enough rows.
        deviations = np.nan_to_num(np.asarray(deviations), nan=0.0)
        _check(np.asarray(found).reshape(len(rows), -1).shape[1] == T)
        _finite(np.asarray(found).tolist(), deviations.tolist())
        trial.partial_fit(rows, np.zeros((len(rows), T)))


def _finite(*found: Any) -> None:
    json.dumps(found, allow_nan=False)
