"""What users hand in, checked: one clear sentence where it cannot be used."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, check_array

from imparo.cluster import is_dask
from imparo.engine import Array, default_engine, power_of_two


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method leave the object as it was if it raises, Ctrl-C included."""

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded


def check_type(name: str, value: Any, expected: str, holds: bool) -> None:
    """Raise unless a parameter is of the kind that it must be."""
    if not holds:
        raise ValueError(f"{name}={value!r} must be {expected}")


def check_flags(estimator: Any) -> None:
    """Raise unless ``intercept`` and ``progress`` of an estimator are what they must be."""
    intercept, progress = estimator.intercept, estimator.progress
    is_bool = isinstance(intercept, bool | np.bool_)
    check_type("intercept", intercept, "True or False", is_bool)
    draws = isinstance(progress, bool | np.bool_) or callable(progress)
    check_type("progress", progress, "True, False or a function", draws)


def check_dtype(dtype: Any) -> Any:
    """Return what ``dtype`` stands for: one floating-point type, or both for None."""
    if dtype is None:
        return [np.float64, np.float32]
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be float32, float64 or None")
    return found


def check_rows(X: Any) -> Any:
    """Return X, or raise if it holds text, naming the columns of a data frame."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        kinds = {
            name: str(kind).lower() for name, kind in zip(X.columns, X.dtypes, strict=True)
        }
        times = [str(name) for name, kind in kinds.items() if "date" in kind or "time" in kind]
        if times:
            raise ValueError(
                f"the columns {', '.join(times)} hold dates or times and must hold numbers; "
                "convert them first, or let AutoRegressor or AutoClassifier prepare them"
            )
        names = [str(name) for name, kind in kinds.items() if _is_text(X[name], kind)]
        if names:
            raise ValueError(
                f"the columns {', '.join(names)} hold text and must hold numbers, not strings; "
                "encode them first, for instance with OneHotEncoder"
            )
    elif not sparse.issparse(X) and isinstance(X, list | tuple | np.ndarray) and _holds_text(X):
        raise ValueError(
            "X holds text and must hold numbers, not strings; encode text columns first, for "
            "instance with OneHotEncoder"
        )
    return X


def check_kernel_matrix(K: Array) -> None:
    """Raise unless a kernel matrix that the user gives is square and symmetric."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"a precomputed kernel must be a square matrix, not of shape {K.shape}"
        )
    probe = np.random.RandomState(0).choice([-1.0, 1.0], (len(K), 1)).astype(K.dtype)
    product = default_engine().product
    right, left = product(K, probe), product(K.T, probe)
    if np.abs(right - left).max() > 1e-4 * np.abs(right).max():
        raise ValueError("a precomputed kernel must be a symmetric matrix; this one is not")


def check_numbers(y: Any) -> Any:
    """Return y, or raise if it holds text."""
    if y is not None and not is_dask(y) and _holds_text(y):
        raise ValueError(
            "y holds text and a regressor needs numbers; use a classifier for classes, such as "
            "KernelClassifier"
        )
    return y


def _is_text(column: Any, kind: str) -> bool:
    if kind == "object":
        return _holds_text(column)
    return any(word in kind for word in ("str", "utf8", "categor", "enum"))


def _holds_text(values: Any) -> bool:
    array = np.asarray(values)
    if array.dtype.kind == "O":
        return any(isinstance(value, str) for value in array.ravel()[:1000])
    return array.dtype.kind in "US"


def scaled_weight(sample_weight: Any, y: Any) -> Array:
    """Return the sample weights, checked, in float64 and at most 1; ones for None."""
    weight = _check_sample_weight(sample_weight, y, dtype=np.float64)
    return weight / power_of_two(weight)


def stream_weight(sample_weight: Any, n: int) -> Array:
    """Return the weights of some rows of a stream, checked; all of them may be 0."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, int | float) or getattr(sample_weight, "shape", None) == ():
        sample_weight = np.full(n, sample_weight)
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight has the shape {weight.shape} and must hold one number for each of "
            f"the {n} rows"
        )
    if not (weight >= 0).all():
        raise ValueError("sample_weight must hold numbers from 0 on")
    return weight


def scaled_outputs(
    y: Array, weight: Array, center: bool, dtype: np.dtype[Any]
) -> tuple[Array, float, Array]:
    """Return outputs near 1 as a matrix, and the scale and shift that they had.

    y = scale·Y + shift, with the weighted mean as shift if ``center``. In float64 until
    then, so that outputs far from 0 keep their digits where X is float32; the scale is a
    power of two, which changes none.
    """
    Y = y.reshape(len(y), -1).astype(np.float64)
    if not np.isfinite(Y).all():
        raise ValueError(
            "y contains NaN or None and must hold finite numbers; impute or drop such rows"
        )
    largest, limits = np.abs(Y).max(initial=0.0), np.finfo(dtype)
    if largest > limits.max / 8 or 0 < largest < limits.tiny * 8:
        raise ValueError(
            f"y goes up to {largest:.1e}, which {dtype} cannot hold; scale y, or give "
            "dtype='float64' if X is float32"
        )
    outer = power_of_two(Y)
    Y = Y / outer
    shift = np.average(Y, axis=0, weights=weight) if center else np.zeros(Y.shape[1])
    Y = Y - shift
    inner = power_of_two(Y)
    return np.ascontiguousarray(Y / inner, dtype), outer * inner, outer * shift


def used_rows(weight: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return the positions of the rows of weight above 0, and all weights, at most 1.

    Only ratios of weights count, so they are scaled by a power of two, which leaves every
    digit as it is and keeps products of extreme ones from overflowing.
    """
    if not (weight >= 0).all():
        raise ValueError("sample_weight must hold numbers from 0 on")
    weight = (weight / power_of_two(weight)).astype(dtype)
    kept = np.flatnonzero(weight > 0)
    if not len(kept):
        raise ValueError("sample_weight is 0 for every row; give some row a weight")
    return kept, weight
