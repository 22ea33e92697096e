"""Rows and outputs of a stream as learners take them: checked once, and quickly."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from imparo.engine import Array
from imparo.estimators.devices import on_host
from imparo.estimators.inputs import check_numbers, check_rows


class StreamInputs:
    """What a learner does with rows before it learns them.

    It knows a number of outputs (``_n_outputs``) and a type (``_dtype``) once it has begun.
    """

    #: Attributes beside those that end with "_" that learning sets.
    _STATE: tuple[str, ...] = ()

    def _is_fresh(self) -> bool:
        return not hasattr(self, "n_seen_")

    def _reset(self) -> None:
        """Forget everything that was learned."""
        for name in list(vars(self)):
            if name in self._STATE or (name.endswith("_") and not name.startswith("_")):
                del self.__dict__[name]

    def _checked(self: Any, X: Any, *, reset: bool) -> Array:
        """Return rows as a matrix of numbers, checked."""
        if not reset and type(X) is np.ndarray and self._is_plain(X):
            return X
        X = validate_data(
            self, check_rows(on_host(X)), accept_sparse="csr", dtype=self._dtype(), order="C",
            reset=reset,
        )  # fmt: skip
        return X.toarray() if sparse.issparse(X) else X

    def _is_plain(self: Any, X: Array) -> bool:
        """Return whether rows need no more checks: a control loop has no time for them."""
        return (
            X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and len(X) > 0
            and X.dtype == self._dtype()
            and X.flags.c_contiguous
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X).all())
        )

    def _outputs(self: Any, X: Array, y: Any, fresh: bool) -> tuple[Array, bool]:
        """Return outputs as a matrix, checked, and whether they came as a vector."""
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: give an output for each row"
            )
        y = on_host(y)
        if not (type(y) is np.ndarray and y.dtype == self._dtype() and _is_plain_block(y)):
            y = check_array(
                check_numbers(y), ensure_2d=False, dtype=self._dtype(), input_name="y"
            )
        if len(y) != len(X):
            raise ValueError(
                f"X has {len(X)} rows and y has {len(y)}: inconsistent numbers of samples"
            )
        if y.ndim > 2:
            raise ValueError(f"y must have one or two axes, not the shape {y.shape}")
        Y = y.reshape(len(y), -1)
        if not fresh and Y.shape[1] != self._n_outputs():
            raise ValueError(
                f"y has {Y.shape[1]} outputs and the model has {self._n_outputs()}"
            )
        check_size(Y)
        return Y, y.ndim == 1


def _is_plain_block(y: Array) -> bool:
    """Return whether outputs need no more checks."""
    return y.ndim == 2 and y.size > 0 and bool(np.isfinite(y).all())


def check_size(Y: Array) -> None:
    """Raise if squares of outputs would overflow."""
    largest, most = float(np.abs(Y).max(initial=0.0)), float(np.finfo(Y.dtype).max)
    if not largest < most**0.5 * 1e-6:
        raise ValueError(
            f"y, times the root of sample_weight, goes up to {largest:.1e}, the square of "
            f"which {Y.dtype} cannot hold; scale y or the weights"
        )
