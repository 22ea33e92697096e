"""What estimators on a subset of the rows share: kernels, centers, rows, predictions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from imparo.centers import Uniform, as_rule, uniform_positions
from imparo.data.sources import Source
from imparo.engine import Array, default_engine, memory_for, parse_memory
from imparo.estimators import grids
from imparo.estimators.cells import Cells
from imparo.estimators.inputs import check_flags, check_rows
from imparo.estimators.predicting import predict_by_points
from imparo.estimators.streamed import Streamed
from imparo.kernels import Kernel, Precomputed, as_kernel

# Centers that depend on the kernel are chosen among so many rows, drawn uniformly.
_POOL = 20_000


@dataclass(frozen=True)
class Centers:
    """Centers in the order of choice, and the rows they came from if from rows."""

    X: Any
    rows: Array | None
    weights: Array

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.weights)

    def first(self, m: int) -> "Centers":
        """Return the first m of them."""
        rows = None if self.rows is None else self.rows[:m]
        return Centers(self.X[:m], rows, self.weights[:m])


class Subsampled(Streamed):
    """A machine on centers: which they are, and predictions from them."""

    n_centers: Any
    centers: Any

    def _checked_kernel(self, source: Source) -> Kernel:
        kernel = as_kernel(self.kernel)
        self._check_kernel(kernel, source)
        return kernel

    def _check_kernel(self, kernel: Kernel, source: Source) -> None:
        """Raise where a kernel or another parameter does not fit."""
        if isinstance(kernel, Precomputed):
            raise ValueError(
                "a precomputed kernel has all n x n entries, which estimators on centers are "
                "there to avoid; use KernelRegressor or KernelClassifier"
            )
        kernel.check_rows(next(source.blocks(1))[1])
        check_flags(self)

    def _most_centers(
        self, allowed: Array, cells: Cells, memory: int, n_candidates: int = 1
    ) -> int:
        """Return the largest number of centers that can be chosen and held."""
        most = self._centers_there(allowed)
        return self._room(self.n_centers, "n_centers", cells, memory, n_candidates, most)

    def _centers_there(self, allowed: Array) -> int:
        """Return the largest number of centers that can be chosen."""
        if are_given(self.centers):
            return n_given(self.centers)
        most = int(np.count_nonzero(allowed))
        return min(most, _POOL) if as_rule(self.centers).needs_kernel else most

    def _choice_needs_kernel(self) -> bool:
        """Return whether other widths have other centers."""
        return not are_given(self.centers) and as_rule(self.centers).needs_kernel

    def _sizes(self, n: int, most: int) -> Array:
        """Return the numbers of centers to judge, for n rows."""
        automatic = isinstance(self.n_centers, str) and self.n_centers == "auto"
        if automatic and are_given(self.centers):
            return grids.halves(most)
        return grids.sizes(self.n_centers, n, most)

    def _choose(
        self, source: Source, kernel: Kernel, allowed: Array, m: int, seed: int
    ) -> Centers:
        """Return m centers; the same ones first, whatever m."""
        if are_given(self.centers):
            X = _given_centers(self.centers, source)[:m]
            return Centers(X, None, np.ones(X.shape[0]))
        rule = as_rule(self.centers)
        rng, n = np.random.RandomState(seed), source.shape[0]
        if isinstance(rule, Uniform):
            rows = uniform_positions(n, m, rng, allowed)
            return Centers(source.take(rows), rows, np.ones(len(rows)))
        pool = uniform_positions(n, _POOL, rng, allowed)
        X = source.take(pool)
        found = rule.choose(X, kernel, m, rng, parse_memory(self.memory))
        return Centers(X[found.rows], pool[found.rows], found.weights)

    def _decision(self, X: Any) -> Array:
        """Return the (n, T) matrix of predictions."""
        check_is_fitted(self, "intercept_")
        coef = self.dual_coef_
        X = validate_data(
            self, check_rows(X), accept_sparse="csr", dtype=coef.dtype, order="C", reset=False
        )
        coef = coef.reshape(len(coef), np.size(self.intercept_))
        memory = memory_for(self.memory, default_engine())
        F = predict_by_points(self.kernel_, X, self.centers_, coef, memory)
        F += np.asarray(self.intercept_, F.dtype)
        return F


def are_given(centers: Any) -> bool:
    """Return whether centers are rows, not a rule."""
    return hasattr(centers, "shape") or isinstance(centers, list | tuple)


def n_given(centers: Any) -> int:
    """Return how many centers are given."""
    return int(centers.shape[0]) if hasattr(centers, "shape") else len(centers)


def _given_centers(centers: Any, source: Source) -> Any:
    X = check_array(centers, accept_sparse="csr", dtype=source.dtype, order="C")
    if X.shape[1] != source.shape[1]:
        raise ValueError(
            f"centers have {X.shape[1]} columns and X has {source.shape[1]}; give centers with "
            "the columns of X"
        )
    return sparse.csr_array(X) if sparse.issparse(X) else X
