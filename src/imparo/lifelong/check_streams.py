"""What the checks of incremental estimators share: streams, fresh copies, comparisons."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor

Array = NDArray[Any]
Outputs = dict[str, Array]

LABELS = np.arange(4)
METHODS = ("predict", "decision_function", "predict_proba")


class Deviation(AssertionError):
    """What an estimator did otherwise than expected: half a sentence."""


def fail(happened: str) -> NoReturn:
    """End a check that an estimator does not pass."""
    raise Deviation(happened)


@dataclass(frozen=True)
class Trial:
    """An estimator before its checks, and what they need to know of it.

    Parameters
    ----------
    estimator : object
        Never learns itself: copies do.
    columns : int
        Columns of X.
    rows : int
        Rows of a short stream; a long one has ten times as many.
    tol : float
        Difference between two models that should be equal but for rounding, relative to the
        largest output.
    named : bool
        Whether every call names all classes by ``classes=``.
    """

    estimator: Any
    columns: int
    rows: int
    tol: float
    named: bool

    @property
    def classifies(self) -> bool:
        """Whether outputs are classes."""
        return kind_of(self.estimator) == "classifier"

    @property
    def extra(self) -> dict[str, Array]:
        """What every call of ``partial_fit`` is given beside rows and outputs."""
        return {"classes": LABELS.copy()} if self.named and self.classifies else {}

    def fresh(self) -> Any:
        """Return a copy that has learned nothing, with a seed where none was given."""
        if not hasattr(self.estimator, "get_params"):
            return copy.deepcopy(self.estimator)
        model = clone(self.estimator)
        unset = [
            name
            for name, value in model.get_params().items()
            if name.rpartition("__")[2] == "random_state" and value is None
        ]
        return model.set_params(**dict.fromkeys(unset, 0)) if unset else model

    def stream(self, n: int, seed: int = 0) -> tuple[Array, Array]:
        """Return rows of an easy problem, for linear models without intercept and local ones.

        Four round groups about the origin, one a class, or numbers that grow along a line
        through the origin; 0.3 of noise in every column.
        """
        rng = np.random.default_rng(seed)
        X = 0.3 * rng.normal(size=(n, self.columns))
        if self.classifies:
            y = rng.permutation(np.arange(n) % len(LABELS))
            angle = (y + 0.5) * np.pi / 2
            X[:, 0] += 2 * np.cos(angle)
            X[:, 1] += 2 * np.sin(angle)
            return X, LABELS[y]
        place = rng.uniform(-1, 1, size=n)
        direction = (-1.0) ** np.arange(self.columns) / np.sqrt(self.columns)
        X += 2 * np.outer(place, direction)
        return X, 3 * place + 0.1 * rng.normal(size=n)

    @property
    def probe(self) -> Array:
        """Rows to predict for."""
        return self.stream(40, seed=1)[0]

    def learn(self, model: Any, X: Array, y: Array, block: int | None = None) -> Any:
        """Let a model learn copies of these rows, in blocks of one size, and return it.

        Copies, since an estimator that spoils its inputs is to fail one check and not all.
        """
        for part in blocks(len(X), block):
            model.partial_fit(X[part].copy(), y[part].copy(), **self.extra)
        return model

    def outputs(self, model: Any, X: Array | None = None) -> Outputs:
        """Return copies of all that a model says of rows, columns in the order of classes."""
        X = self.probe if X is None else X
        found = {}
        for name in METHODS:
            if hasattr(model, name):
                found[name] = np.array(getattr(model, name)(X.copy()))
        classes = getattr(model, "classes_", None)
        if classes is None:
            return found
        order = np.argsort(np.asarray(classes))
        for name in found.keys() - {"predict"}:
            if found[name].ndim == 2 and found[name].shape[1] == len(order):
                found[name] = found[name][:, order]
            elif found[name].ndim == 1 and order.tolist() == [1, 0]:
                found[name] = -found[name]
        return found

    def compare(self, model: Any, twin: Any, where: str, tol: float = 0.0) -> None:
        """Fail unless a model says the same as its twin, to the bit or to a tolerance.

        The twin is asked as often as the model and never shares its past, so that one whose
        predictions change it fails the check for that alone.
        """
        gap = difference(self.outputs(twin), self.outputs(model), tol)
        if gap:
            fail(f"{where}, {gap}")


def kind_of(estimator: Any) -> str:
    """Return "classifier" or "regressor", by scikit-learn's tags or ``_estimator_type``."""
    if hasattr(estimator, "__sklearn_tags__"):
        if is_classifier(estimator):
            return "classifier"
        if is_regressor(estimator):
            return "regressor"
    kind = getattr(estimator, "_estimator_type", None)
    if kind in ("classifier", "regressor"):
        return str(kind)
    raise TypeError(
        f"{type(estimator).__name__} does not say whether it is a classifier or a regressor; "
        "derive it from scikit-learn's mixin and BaseEstimator, or set _estimator_type"
    )


def blocks(n: int, size: int | None = None) -> Iterator[slice]:
    """Yield slices of so many rows; of all of them if no size is given."""
    size = size or max(n, 1)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def difference(expected: Outputs, found: Outputs, tol: float = 0.0) -> str | None:
    """Say how two models' outputs differ, if by more than ``tol`` of the largest one."""
    for name, old in expected.items():
        if name not in found:
            return f"{name} is missing"
        new = found[name]
        if new.shape != old.shape:
            return f"{name} has the shape {new.shape} instead of {old.shape}"
        if old.dtype.kind not in "fc":
            wrong = int(np.sum(old != new))
            if wrong:
                return f"{name} differs for {wrong} of {len(old)} rows"
            continue
        unequal = (old != new) & ~(np.isnan(old) & np.isnan(new))
        scale = np.max(np.abs(old[np.isfinite(old)]), initial=0) or 1.0
        if not np.all(np.abs(old - new)[unequal] <= tol * scale):
            gap = np.max(np.abs(old - new)[unequal]) / scale
            return f"{name} differs by {gap:.1e} of its largest value"
    return None


def error_of(call: Callable[[], object]) -> Exception | None:
    """Return what a call raises, or None."""
    try:
        call()
    except Exception as error:
        return error
    return None
