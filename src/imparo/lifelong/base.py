"""What every lifelong learner shares: parameters, rows of a stream, candidates side by side."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from imparo.engine import (
    Array,
    choose_engine,
    computing_on,
    parse_memory,
    told_of_failures,
)
from imparo.errors import MemoryBudgetError
from imparo.estimators.inputs import check_dtype, check_type
from imparo.features import NystromMap
from imparo.lifelong.drift import Change, DriftDetector
from imparo.lifelong.inputs import DIRECTIONAL, check_forgetting, fitted_map
from imparo.lifelong.recursion import Recursion
from imparo.lifelong.stream_inputs import StreamInputs
from imparo.persistence import persistent

RECORD, FORGET = "record", "forget"
# Changes that are remembered; a learner that runs for years must not grow.
_MOST_RECORDS = 1000


@persistent
@dataclass(frozen=True)
class Drift:
    """A change of the prequential error, and what was done.

    Attributes
    ----------
    change : Change
        When it was noticed, and the errors before and after.
    action : str
        In words.
    """

    change: Change
    action: str


class Learner(StreamInputs, BaseEstimator):
    """Base of the recursive regressor and the incremental classifier."""

    #: Attributes beside those that end with "_" that learning sets.
    _STATE: tuple[str, ...] = ("_recursions", "_best", "_detector", "_columns")
    n_seen_: int
    drifts_: list[Drift]
    _recursions: list[Recursion]
    _best: int

    # Parameters.

    def _check_parameters(self: Any) -> None:
        check_forgetting(self.forgetting, self.forgetting_kind)
        drift = self.drift
        known = drift is None or (isinstance(drift, str) and drift in (RECORD, FORGET))
        check_type("drift", drift, f"None, '{RECORD}' or '{FORGET}'", known)
        is_bool = isinstance(self.intercept, bool | np.bool_)
        check_type("intercept", self.intercept, "True or False", is_bool)

    def _penalties(self: Any, first: Array) -> list[float]:
        """Return the penalties to learn with, side by side; "auto" goes by the first row."""
        given = self.penalty
        if isinstance(given, str):
            check_type("penalty", given, "a number, several, or 'auto'", given == "auto")
            largest = float(np.abs(first).max(initial=0.0))
            if largest == 0:
                return list(self._AUTO)
            size = math.log10(np.sum(np.square(first / largest))) + 2 * math.log10(largest)
            # Beyond that rows are refused, and a root of λ would not be a number.
            unit = 10.0 ** min(max(round(size), -290), 290)
            return [unit * factor for factor in self._AUTO]
        values = np.atleast_1d(np.asarray(given))
        numeric = values.ndim == 1 and len(values) > 0 and values.dtype.kind in "fiu"
        check_type("penalty", given, "a number, several, or 'auto'", numeric)
        positive = bool(((values > 0) & (values < np.inf)).all())
        check_type(
            "penalty", given, "above 0 and finite: a recursion begins with √λ I", positive
        )
        distinct = len(np.unique(values)) == len(values)
        check_type("penalty", given, "made of different numbers", distinct)
        return [float(value) for value in values]

    # Rows.

    def _dtype(self: Any) -> np.dtype[Any]:
        # float64 also for rows in float32: a million updates add up.
        return np.dtype(np.float64 if self.dtype is None else check_dtype(self.dtype))

    def _features_of(self: Any, X: Array) -> Array:
        """Return φ(x), with a column of ones in front for the intercept."""
        map = self.features_
        Phi: Any = X
        if map is not None:
            # The recursion goes row by row and stays here; features of blocks need not.
            engine = choose_engine(self.device)
            with computing_on(engine), told_of_failures(engine):
                Phi = map.transform(X)
        if map is not None and sparse.issparse(Phi):
            Phi = Phi.toarray()
        Phi = np.ascontiguousarray(Phi, self._dtype())
        if not self.intercept:
            return Phi
        with_ones = np.empty((len(Phi), Phi.shape[1] + 1), Phi.dtype)
        with_ones[:, 0] = 1
        with_ones[:, 1:] = Phi
        return with_ones

    def _learned_features(self: Any, X: Array, weight: Array | None) -> Array:
        """Return features of rows to learn, after a look whether numbers would overflow."""
        Phi = self._features_of(X)
        largest = float(np.abs(Phi).max(initial=0.0))
        if weight is not None:
            largest *= max(1.0, math.sqrt(float(weight.max(initial=0.0))))
        least = min(recursion.penalty for recursion in self._recursions)
        most = float(np.finfo(Phi.dtype).max) ** 0.5 * 1e-6
        if not largest < most * min(1.0, math.sqrt(least)):
            raise ValueError(
                f"X, times the root of sample_weight, goes up to {largest:.1e}, which with "
                f"penalty={least:.1e} overflows {Phi.dtype}; scale the columns of X or the "
                "weights, or give a larger penalty"
            )
        return Phi

    def _begin(self: Any, X: Array, n_outputs: int) -> None:
        """Set the map, the penalties and the empty models by the first rows."""
        self._check_parameters()
        choose_engine(self.device)  # one that is not there is told before anything is learned
        self.features_ = fitted_map(self.features, X)
        first = self._features_of(X[:1])
        penalties = self._penalties(first[0, int(self.intercept) :])
        D = first.shape[1]
        needed = len(penalties) * D * D * first.itemsize
        if needed > parse_memory(None):
            raise MemoryBudgetError(
                f"{len(penalties)} factors of {D} x {D} numbers need {needed / 1e9:.1f} GB, "
                "more than there is; give a map with fewer features, or fewer penalties"
            )
        directional = self.forgetting_kind == DIRECTIONAL
        self._recursions = [
            Recursion(
                D, n_outputs, penalty, forgetting=self.forgetting, directional=directional,
                dtype=first.dtype,
            )
            for penalty in penalties
        ]  # fmt: skip
        self._best = len(penalties) // 2
        self.n_seen_ = 0
        self.drifts_ = []
        self._detector = DriftDetector() if self.drift is not None else None

    # Attributes.

    @property
    def penalty_(self) -> float:
        """λ in use."""
        return self._chosen().penalty

    @property
    def penalties_(self) -> Array:
        """All λ that are learned with, side by side."""
        check_is_fitted(self, "n_seen_")
        return np.array([recursion.penalty for recursion in self._recursions])

    def _chosen(self) -> Recursion:
        check_is_fitted(self, "n_seen_")
        return self._recursions[self._best]

    def leverage(self, X: Any) -> Array:
        """Return φ(x)ᵀA⁻¹φ(x): how little is known in the direction of x.

        1 + leverage is the variance of a prediction in units of the noise's. Nyström features
        vanish far from their centers; what they leave of the kernel, (K(x, x) − ‖φ‖²)/λ, is
        then added.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)

        Returns
        -------
        array of shape (k,)
            From 0, known well, to ‖φ‖²/λ, never seen. Cost 2kD².
        """
        self._chosen()
        X = self._checked(X, reset=False)
        return self._leverage(X, self._features_of(X))

    def _leverage(self: Any, X: Array, Phi: Array) -> Array:
        recursion, map = self._recursions[self._best], self.features_
        h = recursion.leverage(Phi)
        if isinstance(map, NystromMap):
            known = np.square(Phi[:, int(self.intercept) :]).sum(axis=1)
            h += np.maximum(map.kernel.diagonal(X) - known, 0) / recursion.penalty_left
        return h

    def novelty(self, X: Any) -> Array:
        """Return leverage/(1 + leverage): what part of x a new example would teach.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)

        Returns
        -------
        array of shape (k,)
            From 0, familiar, to 1, never seen.
        """
        leverage = self.leverage(X)
        return leverage / (1 + leverage)

    # Columns that emerge.

    def _check_growth(self: Any, row: Array) -> None:
        """Raise unless a learner can take more columns than it has."""
        if self.features_ is not None:
            raise ValueError(
                f"a row has {row.shape[1]} columns, and the map takes {self.n_features_in_}: "
                "columns can emerge only where features=None"
            )

    def _add_columns(self: Any, count: int) -> None:
        """Add columns that were 0 so far. Cost D²."""
        for recursion in self._recursions:
            recursion.add_features(count)
        self.n_features_in_ += count

    # Drift.

    def _judge(self: Any, errors: Array) -> bool:
        """Hand prequential errors between 0 and 1 to the detector; act where it alarms.

        Returns whether their mean has changed, to the better or worse.
        """
        if self._detector is None:
            return False
        changed = False
        for error in errors.tolist():
            change = self._detector.update(error)
            changed = changed or change is not None
            if change is not None and change.worse:
                self._answer(change)
        return changed

    def _answer(self: Any, change: Change) -> None:
        action = "recorded only"
        if self.drift == FORGET:
            # Not of the detector's window, which may be shorter than what was learned.
            kept = min(1.0, change.n_after / self._chosen().weight)
            for recursion in self._recursions:
                recursion.fade(kept)
            self._after_fading(kept)
            action = f"earlier examples faded to {kept:.3g} of their weight"
        self.drifts_ = [*self.drifts_[1 - _MOST_RECORDS :], Drift(change, action)]

    def _after_fading(self, kept: float) -> None:
        """Let go of what no longer holds after a drift."""

    # Merging.

    def _check_alike(self: Any, other: Any) -> None:
        """Raise unless another learner can be merged into this one."""
        if type(other) is not type(self):
            raise TypeError(
                f"only another {type(self).__name__} can be merged, not {other!r:.60}"
            )
        if other is self:
            raise ValueError("a learner cannot be merged with itself")
        if other._is_fresh() or self._is_fresh():
            raise NotFittedError("both learners must have learned something to be merged")
        if self.n_features_in_ != other.n_features_in_:
            raise ValueError(
                f"the other learner has {other.n_features_in_} columns and this one "
                f"{self.n_features_in_}; only learners of the same columns can be merged"
            )
        if self.penalties_.tolist() != other.penalties_.tolist():
            raise ValueError(
                f"the other learner has penalty={other.penalties_.tolist()} and this one "
                f"{self.penalties_.tolist()}; give both the same numbers to merge them"
            )
        if any(
            model.forgetting != 1 and model.forgetting_kind == DIRECTIONAL
            for model in (self, other)
        ):
            raise ValueError(
                "learners that forget in directions cannot be merged: what is left of each "
                "example is not known; use forgetting_kind='exponential'"
            )
        if self._dtype() != other._dtype():
            raise ValueError(
                f"the other learner computes in {other._dtype()} and this one in "
                f"{self._dtype()}; give both the same dtype to merge them"
            )
        names, its = (getattr(m, "feature_names_in_", None) for m in (self, other))
        if names is not None and its is not None and not np.array_equal(names, its):
            raise ValueError("the other learner has other names of columns, or another order")
        probe = np.random.RandomState(0).standard_normal((4, self.n_features_in_))
        probe = probe.astype(self._dtype())
        ours, theirs = self._features_of(probe), other._features_of(probe)
        if ours.shape != theirs.shape or not np.array_equal(ours, theirs):
            raise ValueError("the other learner has other features; give both the same map")

    # One example at a time.

    def _row(self: Any, x: Any) -> Array:
        """Return one row as a matrix: of a vector, or of a dictionary by column names."""
        if isinstance(x, Mapping):
            named = getattr(self, "feature_names_in_", [str(key) for key in x])
            names = getattr(self, "_columns", None) or list(named)
            unknown = [str(key) for key in x if str(key) not in set(names)]
            if unknown:
                raise ValueError(
                    f"{unknown[0]!r} is not among the columns {', '.join(names[:8])}; give "
                    "all names in the first example, or use as_river for columns that emerge"
                )
            values = {str(key): value for key, value in x.items()}
            x = [values.get(name, 0.0) for name in names]
        row = np.asarray(x) if not isinstance(x, np.ndarray) else x
        if row.ndim != 1:
            raise ValueError(f"one example is a vector, not an array of shape {row.shape}")
        if row.dtype.kind in "fiub":
            row = row.astype(self._dtype(), copy=False)
        return row[None]

    def _learn_row(self: Any, x: Any, y: Any) -> None:
        row = self._row(x)
        self.partial_fit(row, y)
        named = hasattr(self, "_columns") or hasattr(self, "feature_names_in_")
        if isinstance(x, Mapping) and not named:
            self._columns = [str(key) for key in x]
