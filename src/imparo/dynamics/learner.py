"""What the learners of dynamics share: states in, wrenches or torques out."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from imparo.engine import Array
from imparo.estimators.inputs import all_or_nothing, check_type
from imparo.lifelong.inputs import is_number
from imparo.lifelong.stream_inputs import StreamInputs

# Rows whose regressors and features are held at a time.
_BLOCK = 512
# Squares of velocities, and theirs again, must be numbers.
_LARGEST = 1e50
_LEAST = 1e-100


def joined(q: Any, dq: Any, ddq: Any) -> Array:
    """Return rows [q, dq, ddq].

    Parameters
    ----------
    q, dq, ddq : array of shape (J,) or (n, J)

    Returns
    -------
    array of shape (1, 3J) or (n, 3J)

    Examples
    --------
    >>> from imparo.dynamics import joined
    >>> joined([0.1, 0.2], [0.0, 0.0], [1.0, -1.0])
    array([[ 0.1,  0.2,  0. ,  0. ,  1. , -1. ]])
    """
    parts = [np.atleast_2d(np.asarray(part)) for part in (q, dq, ddq)]
    shapes = [part.shape for part in parts]
    if len(set(shapes)) > 1 or any(len(shape) != 2 for shape in shapes):
        given = ", ".join(str(np.shape(part)) for part in (q, dq, ddq))
        raise ValueError(
            f"q, dq and ddq have the shapes {given}; "
            "all three must be vectors of one number for each joint, or arrays of such rows"
        )
    return np.concatenate(parts, axis=1)


class DynamicsLearner(MultiOutputMixin, RegressorMixin, StreamInputs, BaseEstimator, ABC):
    """Base of the parametric, the nonparametric and the semiparametric learner."""

    n_seen_: int
    n_outputs_: int
    n_features_in_: int
    _STATE: tuple[str, ...] = ("_flat",)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # What each of them has.

    @abstractmethod
    def _begin(self, X: Array, n_outputs: int) -> None:
        """Check parameters and set up the empty model."""

    @abstractmethod
    def _learn_rows(self, X: Array, Y: Array) -> None:
        """Learn rows in their order."""

    @abstractmethod
    def _predict_rows(self, X: Array, deviations: bool) -> tuple[Array, Array | None]:
        """Return predictions and, if asked for, standard deviations."""

    # Learning.

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything and learn these samples, in their order.

        Parameters
        ----------
        X : array or data frame of shape (n, 3J)
            Columns q, dq, ddq.
        y : array of shape (n, T)

        Returns
        -------
        self
        """
        self._reset()
        return self._learn(X, y)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn samples, in their order.

        Parameters
        ----------
        X : array or data frame of shape (n, 3J)
            Columns q, dq, ddq.
        y : array of shape (n, T)

        Returns
        -------
        self
        """
        return self._learn(X, y)

    def learn(self, q: Any, dq: Any, ddq: Any, y: Any) -> Self:
        """Learn one sample, or a block of them in their order.

        Parameters
        ----------
        q, dq, ddq : array of shape (J,) or (n, J)
            Positions, velocities, accelerations.
        y : array of shape (T,) or (n, T)
            What was measured.

        Returns
        -------
        self
        """
        return self.partial_fit(*self.rows_of_example(q, dq, ddq, y))

    def rows_of_example(self, q: Any, dq: Any, ddq: Any, y: Any) -> tuple[Array, Array]:
        """Return X and y of one sample or a block, as :meth:`partial_fit` takes them.

        Parameters
        ----------
        q, dq, ddq : array of shape (J,) or (n, J)
        y : array of shape (T,) or (n, T)
        """
        Y = np.asarray(y)
        return joined(q, dq, ddq), Y[None] if np.ndim(q) == 1 else Y

    def _learn(self, X: Any, y: Any) -> Self:
        fresh = self._is_fresh()
        X = self._checked(X, reset=fresh)
        _check_motion(X)
        Y, flat = self._outputs(X, y, fresh)
        if fresh:
            self._start_with(X, Y.shape[1], flat)
        for start in range(0, len(X), _BLOCK):
            part = slice(start, start + _BLOCK)
            self._learn_rows(X[part], Y[part])
        self.n_seen_ += len(X)
        return self

    def _start_with(self, X: Array, n_outputs: int, flat: bool = False) -> None:
        """Begin with what rows like these say of columns and outputs."""
        self.n_features_in_ = X.shape[1]
        self.n_outputs_, self._flat = n_outputs, flat
        self._begin(X, n_outputs)
        self.n_seen_ = 0

    def _n_outputs(self) -> int:
        return self.n_outputs_

    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    # Predicting.

    def predict(self, X: Any, dq: Any = None, ddq: Any = None, return_std: bool = False) -> Any:
        """Return the predicted outputs.

        Parameters
        ----------
        X : array or data frame of shape (n, 3J)
            Columns q, dq, ddq; or q alone, of shape (J,) or (n, J), with the other two
            following.
        dq, ddq : array of shape (J,) or (n, J), optional
        return_std : bool, default False
            Whether to return standard deviations of new measurements too.

        Returns
        -------
        y : array of shape (n, T), or (T,) for one state
        std : array of the same shape
        """
        check_is_fitted(self, "n_seen_")
        single = False
        if dq is not None or ddq is not None:
            if dq is None or ddq is None:
                raise ValueError("of dq and ddq only one was given; give both, or rows X alone")
            single = np.ndim(X) == 1
            X = joined(X, dq, ddq)
        X = self._checked(X, reset=False)
        _check_motion(X)
        parts = [
            self._predict_rows(X[start : start + _BLOCK], return_std)
            for start in range(0, len(X), _BLOCK)
        ]
        F = self._shaped([part[0] for part in parts], single)
        if not return_std:
            return F
        return F, self._shaped([part[1] for part in parts], single)

    def _shaped(self, parts: list[Any], single: bool) -> Any:
        F = parts[0] if len(parts) == 1 else np.concatenate(parts)
        F = F[:, 0] if self._flat else F
        return F[0] if single else F


def _check_motion(X: Array) -> None:
    largest = float(np.abs(X).max())
    if not largest < _LARGEST:
        raise ValueError(
            f"X goes up to {largest:.1e}, which is no motion of a robot; positions in radians "
            "or metres, velocities and accelerations were expected"
        )


def check_positive(name: str, value: Any) -> float:
    """Return a number above 0, checked."""
    fits = is_number(value) and 0 < value < np.inf
    check_type(name, value, "a number above 0 and finite", fits)
    return float(value)


def check_penalty(value: Any) -> float:
    """Return a penalty whose root, and rows divided by it, are numbers."""
    fits = is_number(value) and _LEAST <= value < np.inf
    check_type("penalty", value, f"a finite number of at least {_LEAST:g}", fits)
    return float(value)
