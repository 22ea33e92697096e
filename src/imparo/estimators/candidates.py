"""The kernels that an estimator's ``sigma`` stands for: given, by a rule, or learned."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from imparo.engine import Array
from imparo.errors import MemoryBudgetError
from imparo.kernels import Kernel, widths
from imparo.kernels.base import Width, width_of
from imparo.width_learning import Learned, check_learnable, learn_widths

LEARNED, PER_FEATURE = "learned", "per-feature"
# Rows that widths are learned from, and the fewest to begin with.
_ROWS, _FEWEST_ROWS = 4000, 200
# Numbers in use for a row: copies of its columns, and of its entries in matrices of centers.
_COPIES, _ENTRIES = 6, 2500


@dataclass(frozen=True)
class Candidate:
    """A kernel, and the width that distinguishes it."""

    sigma: Width
    kernel: Kernel


def is_learned(sigma: Any) -> bool:
    """Return whether ``sigma`` asks for widths that are learned."""
    return isinstance(sigma, str) and sigma in (LEARNED, PER_FEATURE)


def candidates_of(sigma: Any, kernel: Kernel, rows: Callable[[], Any]) -> list[Candidate]:
    """Return the kernels to select from.

    Parameters
    ----------
    sigma : float, str or array-like
        The parameter of an estimator. Widths that are to be learned give one candidate
        without a width: what is learned depends on the splits, which come later.
    kernel : Kernel
    rows : callable
        Returns rows for the heuristics, where they are needed.

    Returns
    -------
    list of Candidate
    """
    if not kernel.needs_sigma:
        if not (isinstance(sigma, str) and sigma == "median"):
            raise ValueError(
                f"sigma={sigma!r} has no effect on {kernel!r}, which has no width to set; "
                "leave sigma out, or give the kernel without its width"
            )
        return [Candidate(width_of(kernel), kernel)]
    if is_learned(sigma):
        check_learnable(kernel)
        return [Candidate(None, kernel)]
    # Widths that are given need no rows.
    found = widths(sigma, kernel, rows() if isinstance(sigma, str) else None)
    return [Candidate(float(s), kernel.with_sigma(float(s))) for s in found]


def learned_candidates(
    estimator: Any,
    kernel: Kernel,
    take: Callable[[Array], Any],
    allowed: Array,
    Y: Array,
    weight: Array,
    seed: int,
    memory: int,
) -> list[Candidate]:
    """Return the one kernel whose widths are learned, and tell the estimator what counts.

    Parameters
    ----------
    estimator : BaseEstimator
        ``relevance_`` and ``unused_`` are set.
    kernel : Kernel
        Without a width.
    take : callable
        Returns the rows at given positions.
    allowed : array of positions
        Rows to learn from: none that are held out.
    Y : array of shape (n, T)
    weight : array of shape (n,)
    seed : int
    memory : int
        Bytes; fewer rows are taken where it is small.

    Returns
    -------
    list of Candidate
    """
    d = estimator.n_features_in_
    n = min(_ROWS, len(allowed), memory // 2 // (8 * (_COPIES * d + _ENTRIES)))
    fewest = min(_FEWEST_ROWS, len(allowed))
    if n < fewest:
        need = 16 * fewest * (_COPIES * d + _ENTRIES)
        raise MemoryBudgetError(
            f"learning widths of {d:,} columns needs {need:,} bytes and memory is {memory:,}; "
            "raise memory, or give sigma='median'"
        )
    rng = np.random.RandomState(seed)
    rows = np.sort(allowed[rng.permutation(len(allowed))[:n]])
    X = take(rows)
    X = X.toarray() if sparse.issparse(X) else X
    found = learn_widths(
        kernel, X, Y[rows], weight=weight[rows], seed=seed,
        per_column=estimator.sigma == PER_FEATURE,
    )  # fmt: skip
    tell_relevance(estimator, found)
    return [Candidate(width_of(found.kernel), found.kernel)]


def tell_relevance(estimator: Any, found: Learned) -> None:
    """Set ``relevance_`` and ``unused_``, the names of columns that can be left out."""
    estimator.relevance_ = found.relevance
    names = getattr(estimator, "feature_names_in_", None)
    names = [f"x{i}" for i in range(len(found.unused))] if names is None else names
    estimator.unused_ = [str(names[i]) for i in np.flatnonzero(found.unused)]


def forget_relevance(estimator: Any) -> None:
    """Remove what an earlier fit told about the columns."""
    for name in ("relevance_", "unused_"):
        vars(estimator).pop(name, None)
