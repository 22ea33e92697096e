"""What estimators that read rows in blocks share: parameters, rows, widths."""

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from imparo.data.sources import Source
from imparo.engine import Array, default_engine, memory_for, parse_memory
from imparo.errors import MemoryBudgetError
from imparo.estimators import grids
from imparo.estimators.blocks import Stream
from imparo.estimators.candidates import (
    Candidate,
    candidates_of,
    forget_relevance,
    is_learned,
    learned_candidates,
)
from imparo.estimators.cells import Cells
from imparo.estimators.cluster_rows import ClusterStream
from imparo.estimators.cluster_source import ClusterSource
from imparo.estimators.splits import check_validation
from imparo.estimators.streams import read_rows
from imparo.filters import Tikhonov
from imparo.kernels import Kernel, Linear, as_kernel

_SAMPLE = 1000
# Matrices of m × m numbers that are alive at once, besides one for every cell; more on a
# device, where three penalties are solved for side by side.
_MATRICES, _MATRICES_THERE = 8, 12


class _OfWorkers(int):
    """Bytes that follow from the memory of workers, and not from that of this machine."""


class Streamed(BaseEstimator):
    """A machine that passes over its rows: parameters, rows and widths."""

    kernel: Any
    sigma: Any
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
        tags.input_tags.sparse = self._takes_sparse(kernel)
        return tags

    def __getstate__(self) -> Any:
        # A client of Dask is of this process, not of the model.
        state = super().__getstate__()
        cluster = state.get("cluster")
        return (
            state if cluster is None or isinstance(cluster, str) else {**state, "cluster": None}
        )

    def __sklearn_clone__(self) -> Any:
        # A client of Dask is shared: it cannot be copied.
        cluster = getattr(self, "cluster", None)
        if cluster is None or isinstance(cluster, str):
            return super().__sklearn_clone__()
        other = copy.copy(self)
        other.cluster = None
        return clone(other).set_params(cluster=cluster)

    def _takes_sparse(self, kernel: Kernel) -> bool:
        return kernel.sparse

    def _rows(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, Any]:
        return read_rows(self, X, y, sample_weight, **checks)

    def _checked_validation(self) -> Any:
        if isinstance(self.validation, str) and self.validation == "loo":
            raise ValueError(
                "validation='loo' has no closed form over numbers of centers or features; give "
                "'gcv', a fraction, a number of folds, a splitter or pairs of index arrays"
            )
        if isinstance(self.validation, str) and self.validation == "auto":
            return 0.2
        return check_validation(self.validation, Tikhonov())

    def _as_rows(self, source: Source, Y: Array, weight: Array, cells: Cells) -> Stream:
        engine = default_engine()
        memory = memory_for(self.memory, engine)
        if len(cells.of_row) != len(Y):
            raise ValueError(
                f"the model was fitted to {len(cells.of_row):,} rows and {len(Y):,} were "
                "given; give the same rows"
            )
        parts = source, Y, weight, cells.of_row, len(cells), memory, self.progress, engine
        if isinstance(source, ClusterSource):
            return ClusterStream.of(source, *parts[1:], self.memory)
        return Stream(*parts)

    def _for_statistics(self, memory: int, source: Source, n_cells: int) -> int:
        """Return the bytes for statistics: fewer where workers hold less than this machine."""
        most = source.most_columns(n_cells) if isinstance(source, ClusterSource) else None
        if most is None:
            return memory
        held = _OfWorkers(_bytes_of_a_pair(n_cells, 1) * most**2)
        return min(memory, held)

    def _candidates(self, kernel: Kernel, source: Source, kept: Array) -> list[Candidate]:
        forget_relevance(self)

        def rows() -> Any:
            sample = kept
            if len(kept) > _SAMPLE:
                rng = np.random.RandomState(0)
                sample = kept[rng.choice(len(kept), _SAMPLE, replace=False)]
            return source.take(sample)

        return candidates_of(self.sigma, kernel, rows)

    def _learned(
        self, candidates: list[Candidate], source: Source, Y: Array, weight: Array,
        allowed: Array, seed: int,
    ) -> list[Candidate]:  # fmt: skip
        """Return the candidates, learned from rows that may be fitted where that is asked."""
        if not is_learned(self.sigma):
            return candidates
        memory, kernel = parse_memory(self.memory), candidates[0].kernel
        rows = np.flatnonzero(allowed)
        return learned_candidates(self, kernel, source.take, rows, Y, weight, seed, memory)

    def _room(
        self, asked: Any, name: str, cells: Cells, memory: int, n_candidates: int, most: int,
        step: int = 1,
    ) -> int:  # fmt: skip
        """Return the largest size whose statistics fit, or raise if a larger one is asked."""
        per_pair = _bytes_of_a_pair(len(cells), n_candidates)
        room = self._largest_room(len(cells), memory, n_candidates) // step * step
        if room < most and not isinstance(asked, str):
            largest = int(np.max(grids.sizes(asked, 1, most, name)))
            if largest > room:
                what = name.removeprefix("n_")
                if isinstance(memory, _OfWorkers):
                    raise MemoryBudgetError(
                        f"statistics of {largest:,} {what} with {len(cells)} parts of the rows "
                        f"are more than the workers' memory limit allows; use at most "
                        f"{room:,} {what}, fewer folds, or workers with more memory"
                    )
                raise MemoryBudgetError(
                    f"{largest:,} {what} with {len(cells)} parts of the rows need "
                    f"{per_pair * largest**2:,} bytes and memory is {memory:,}; use at most "
                    f"{room:,} {what}, fewer folds, or raise memory"
                )
        return max(step, min(most, room))

    def _largest_room(self, n_cells: int, memory: int, n_candidates: int) -> int:
        """Return the largest size whose statistics fit."""
        return int(np.sqrt(memory / _bytes_of_a_pair(n_cells, n_candidates)))


def _bytes_of_a_pair(n_cells: int, n_candidates: int) -> int:
    """Return the bytes that statistics need for every pair of columns."""
    # With several widths the best statistics so far are kept beside the new ones.
    alive = _MATRICES_THERE if default_engine().resident else _MATRICES
    return 8 * (min(n_candidates, 2) * n_cells + alive)
