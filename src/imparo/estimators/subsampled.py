"""What estimators on a subset of the rows share: kernels, centers, rows, predictions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from imparo.centers import Uniform, as_rule, uniform_positions
from imparo.data.sources import Source
from imparo.engine import Array, parse_memory
from imparo.errors import MemoryBudgetError
from imparo.estimators import grids
from imparo.estimators.cells import Cells
from imparo.estimators.inputs import check_rows, check_type
from imparo.estimators.passes import Stream
from imparo.estimators.problems import predict_in_blocks
from imparo.estimators.splits import check_validation
from imparo.estimators.streams import read_rows
from imparo.filters import Tikhonov
from imparo.kernels import Kernel, Linear, Precomputed, as_kernel, widths

# Centers that depend on the kernel are chosen among so many rows, drawn uniformly.
_POOL = 20_000
_SAMPLE = 1000
# Matrices of m × m numbers that are alive at once, besides one for every cell.
_MATRICES = 8


@dataclass(frozen=True)
class Centers:
    """Centers in the order of choice, and the rows they came from if from rows."""

    X: Any
    rows: Array | None
    weights: Array

    def first(self, m: int) -> "Centers":
        """Return the first m of them."""
        rows = None if self.rows is None else self.rows[:m]
        return Centers(self.X[:m], rows, self.weights[:m])


class Subsampled(BaseEstimator):
    """A machine on centers: parameters, rows, centers and predictions."""

    kernel: Any
    sigma: Any
    n_centers: Any
    centers: Any
    intercept: Any
    validation: Any
    memory: Any
    dtype: Any
    progress: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = as_kernel(self.kernel)
        except (TypeError, ValueError):
            kernel = Linear()  # tags are asked for before fit can refuse the kernel
        tags.input_tags.sparse = kernel.sparse
        return tags

    def _rows(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, Any]:
        return read_rows(self, X, y, sample_weight, **checks)

    def _checked_kernel(self, source: Source) -> Kernel:
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            raise ValueError(
                "a precomputed kernel has all n x n entries, which estimators on centers are "
                "there to avoid; use KernelRegressor or KernelClassifier"
            )
        kernel.check_rows(next(source.blocks(1))[1])
        is_bool = isinstance(self.intercept, bool | np.bool_)
        check_type("intercept", self.intercept, "True or False", is_bool)
        draws = isinstance(self.progress, bool | np.bool_) or callable(self.progress)
        check_type("progress", self.progress, "True, False or a function", draws)
        return kernel

    def _checked_validation(self) -> Any:
        if isinstance(self.validation, str) and self.validation == "loo":
            raise ValueError(
                "validation='loo' has no closed form over numbers of centers; give 'gcv', a "
                "fraction, a number of folds, a splitter or pairs of index arrays"
            )
        if isinstance(self.validation, str) and self.validation == "auto":
            return 0.2
        return check_validation(self.validation, Tikhonov())

    def _as_rows(self, source: Source, Y: Array, weight: Array, cells: Cells) -> Stream:
        memory = parse_memory(self.memory)
        if len(cells.of_row) != len(Y):
            raise ValueError(
                f"the model was fitted to {len(cells.of_row):,} rows and {len(Y):,} were "
                "given; give the same rows"
            )
        return Stream(source, Y, weight, cells.of_row, len(cells), memory, self.progress)

    def _candidates(
        self, kernel: Kernel, source: Source, kept: Array
    ) -> list[tuple[float | None, Kernel]]:
        if not kernel.needs_sigma:
            if not (isinstance(self.sigma, str) and self.sigma == "median"):
                raise ValueError(
                    f"sigma={self.sigma!r} has no effect on {kernel!r}, which has no width to "
                    "set; leave sigma out, or give the kernel without its width"
                )
            return [(getattr(kernel, "sigma", None), kernel)]
        if not isinstance(self.sigma, str):
            found = widths(self.sigma, kernel, source)  # which need no rows
            return [(float(s), kernel.with_sigma(float(s))) for s in found]
        sample = kept
        if len(kept) > _SAMPLE:
            sample = kept[np.random.RandomState(0).choice(len(kept), _SAMPLE, replace=False)]
        found = widths(self.sigma, kernel, source.take(sample))
        return [(float(s), kernel.with_sigma(float(s))) for s in found]

    def _most_centers(
        self, allowed: Array, cells: Cells, memory: int, n_candidates: int = 1
    ) -> int:
        """Return the largest number of centers that can be chosen and held."""
        if _are_given(self.centers):
            most = (
                self.centers.shape[0] if hasattr(self.centers, "shape") else len(self.centers)
            )
        else:
            most = int(np.count_nonzero(allowed))
            most = min(most, _POOL) if as_rule(self.centers).needs_kernel else most
        # With several widths the best statistics so far are kept beside the new ones.
        per_center = 8 * (min(n_candidates, 2) * len(cells) + _MATRICES)
        room = int(np.sqrt(memory / per_center))
        if room < most and not isinstance(self.n_centers, str):
            asked = int(np.max(grids.sizes(self.n_centers, 1, most)))
            if asked > room:
                raise MemoryBudgetError(
                    f"{asked:,} centers with {len(cells)} parts of the rows need "
                    f"{per_center * asked**2:,} bytes and memory is {memory:,}; use at most "
                    f"{room:,} centers, fewer folds, or raise memory"
                )
        return max(1, min(most, room))

    def _choice_needs_kernel(self) -> bool:
        """Return whether other widths have other centers."""
        return not _are_given(self.centers) and as_rule(self.centers).needs_kernel

    def _sizes(self, n: int, most: int) -> Array:
        """Return the numbers of centers to judge, for n rows."""
        automatic = isinstance(self.n_centers, str) and self.n_centers == "auto"
        if automatic and _are_given(self.centers):
            return grids.halves(most)
        return grids.sizes(self.n_centers, n, most)

    def _choose(
        self, source: Source, kernel: Kernel, allowed: Array, m: int, seed: int
    ) -> Centers:
        """Return m centers; the same ones first, whatever m."""
        if _are_given(self.centers):
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
        F = predict_in_blocks(
            X, self.kernel_, self.centers_, coef.reshape(len(coef), np.size(self.intercept_)),
            parse_memory(self.memory),
        )  # fmt: skip
        F += np.asarray(self.intercept_, F.dtype)
        return F


def _are_given(centers: Any) -> bool:
    return hasattr(centers, "shape") or isinstance(centers, list | tuple)


def _given_centers(centers: Any, source: Source) -> Any:
    X = check_array(centers, accept_sparse="csr", dtype=source.dtype, order="C")
    if X.shape[1] != source.shape[1]:
        raise ValueError(
            f"centers have {X.shape[1]} columns and X has {source.shape[1]}; give centers with "
            "the columns of X"
        )
    return sparse.csr_array(X) if sparse.issparse(X) else X
