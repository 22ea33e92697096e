"""Random features that are drawn by their leverage scores on given rows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from imparo.centers.base import check_positive, check_whole
from imparo.engine import Array, default_engine, host_engine, resolution, row_blocks
from imparo.features.base import FeatureRule
from imparo.features.drawn import PICKS, DrawnMap, check_number, stream
from imparo.features.fourier import Fourier
from imparo.kernels import Kernel
from imparo.persistence import persistent

# The first so many features come from the first pool, as many again from the next one.
_FIRST = 256
# Features in a pool for each one that is drawn up to its end.
_POOL = 4
# Rows or features that are evaluated at once.
_BLOCK = 1024


def feature_scores(map: DrawnMap, rows: Any, penalty: float) -> Array:
    """Return leverage scores of features on rows (Bach, 2015; thesis, chapter 5, remark).

    With Ψ the features of s rows, l_j(λ) = [A(A + sλI)⁻¹]_jj, A = ΨᵀΨ/M, summed over the
    two columns of a pair: how much of what is learned at λ rests on feature j.

    Parameters
    ----------
    map : DrawnMap
        M features.
    rows : array or sparse matrix of shape (s, d)
    penalty : float
        λ, on the scale of the mean loss. Where it is below ε^{3/4} of the mean of ‖φ(x)‖²,
        which float64 does not resolve, that is taken.

    Returns
    -------
    array of shape (M / step,)
        Between 0 and ``step``; their sum is the effective dimension.

    Notes
    -----
    Cost sM² + 2M³/3 for M ≤ s. Otherwise ψ_jᵀ(ΨΨᵀ/M + sλI)⁻¹ψ_j/M, which is the same, for
    2s²M + s³/3. Memory the square of the smaller of both.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import FourierMap, feature_scores
    >>> map = FourierMap(np.array([[0.0], [3.0]]), np.ones(2), np.zeros(2))  # 1 and cos 3x
    >>> rows = np.array([[0.0], [np.pi / 3]])  # features (1, 1) and (1, -1): A = I
    >>> feature_scores(map, rows, penalty=0.5)
    array([0.5, 0.5])
    """
    s, m, rows = rows.shape[0], len(map), rows.astype(np.float64)
    rows = rows.tocsr() if sparse.issparse(rows) else rows
    scores = (_by_features if m <= s else _by_rows)(map, rows, penalty)
    return np.clip(scores, 0.0, 1.0).reshape(-1, map.step).sum(axis=1)


def _by_features(map: DrawnMap, rows: Any, penalty: float) -> Array:
    engine, s, m = default_engine(), rows.shape[0], len(map)
    A = host_engine().zeros((m, m), np.dtype(np.float64))
    for block in row_blocks(s, _BLOCK):
        engine.accumulate_gram(A, map.evaluate(rows[block]))
    A /= m
    ridge = _add_ridge(A, s, penalty)
    # A(A + rI)⁻¹ = I − r(A + rI)⁻¹, of which the diagonal is enough.
    V = engine.invert_triangular(engine.cholesky(A, jitter=False, overwrite=True))
    return 1 - ridge * np.square(V).sum(axis=1)


def _by_rows(map: DrawnMap, rows: Any, penalty: float) -> Array:
    engine, s, m = default_engine(), rows.shape[0], len(map)
    K, scores = host_engine().zeros((s, s), np.dtype(np.float64)), np.empty(m)
    for block in row_blocks(m, _BLOCK):
        engine.accumulate_gram(K, map.evaluate(rows, block.start, block.stop).T)
    K /= m
    _add_ridge(K, s, penalty)
    R = engine.cholesky(K, jitter=False, overwrite=True)
    for block in row_blocks(m, _BLOCK):
        Psi = map.evaluate(rows, block.start, block.stop)
        Psi = engine.solve_triangular(R, Psi, transpose=True)
        scores[block] = np.square(Psi).sum(axis=0) / m
    return scores


def _add_ridge(A: Array, s: int, penalty: float) -> float:
    """Add sλ to the diagonal of A and return it; more where that is nothing beside A."""
    mean = float(np.trace(A)) / s or 1.0
    ridge = s * max(penalty, resolution(np.float64) * mean)
    A[np.diag_indices_from(A)] += ridge
    return ridge


@persistent
@dataclass(frozen=True)
class LeverageFeatures(FeatureRule):
    """Draw many features, keep by score (thesis, chapter 5, "beyond uniform sampling").

    From a pool of M features of another rule, draws are with replacement with P(j) ∝ l_j(λ),
    the scores of :func:`feature_scores` on rows of the data, and a feature is multiplied by
    1/√(M·P(j)). In the notation of the thesis the features have the law θ' = θq and are
    ψ' = ψ/√q: φ(x)ᵀφ(x') has the expectation that it has over the pool, and thus K(x, x').
    With these scores a number of features of the order of the effective dimension is enough
    (Bach, 2015), the case α = γ of the theorems, where features that are drawn uniformly may
    need 1/λ. The gain is large where the frequencies that matter are rare. Fewer features than
    the effective dimension may do worse than uniform ones, whose first draws are the smooth
    part of the kernel.

    Parameters
    ----------
    base : FeatureRule
        How the pool is drawn. Pairs stay together.
    penalty : float, optional
        λ of the scores, on the scale of the mean loss. The mean of K(x, x) over √s for s rows
        if left out: the order that the theory takes.
    pool : int, optional
        M, a multiple of the step of ``base``. If left out, pools grow with the number of
        features: the first 256 come from a pool of 1,024, and with each doubling of the
        features that are asked for a pool twice as large gives the new half. Pools are
        nested, and do not depend on how many features are asked for.

    Notes
    -----
    Cost sM² + 2M³/3 for a pool of M ≤ s features, 2s²M + s³/3 for a larger one, and at most
    twice that for all pools; M is 4 to 8 times the number of features if left out.
    Features of :class:`Fastfood` and :class:`Sorf` lose their fast product.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import LeverageFeatures
    >>> from imparo.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> rule = LeverageFeatures(penalty=1e-3)
    >>> map = rule.draw(Gaussian(1.0), 2, n_features=50, seed=0, rows=X)
    >>> map.evaluate(X).shape
    (200, 50)
    """

    needs_rows: ClassVar[bool] = True

    base: FeatureRule = field(default_factory=Fourier)
    penalty: float | None = None
    pool: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.base, FeatureRule) or self.base.needs_rows:
            raise ValueError(
                f"base={self.base!r} must be a rule that draws features without rows; give "
                "Fourier(), Orthogonal(), QuasiMonteCarlo() or another such rule"
            )
        if self.penalty is not None:
            check_positive("penalty", self.penalty)
        if self.pool is not None:
            check_whole("pool", self.pool)
            if self.pool % self.base.step:
                raise ValueError(
                    f"pool={self.pool} must be a multiple of {self.base.step}, as the features "
                    f"of {self.base!r} come in pairs; give {self.pool + 1}"
                )

    @property
    def step(self) -> int:
        """That of the pool."""
        return self.base.step

    def check(self, kernel: Kernel, n_columns: int) -> None:
        """Raise unless the rule of the pool has features of this kernel.

        Parameters
        ----------
        kernel : Kernel
        n_columns : int
        """
        self.base.check(kernel, n_columns)

    def draw(
        self, kernel: Kernel, n_columns: int, n_features: int, seed: int, rows: Any = None
    ) -> DrawnMap:
        """Draw features by their scores on ``rows``; see :meth:`FeatureRule.draw`."""
        self.check(kernel, n_columns)
        check_number(self, n_features)
        if rows is None or 0 in rows.shape:
            raise ValueError(
                "LeverageFeatures chooses features by rows of the data and got none; give some "
                "rows, or use another rule"
            )
        pools = list(self._pools(int(n_features)))
        pool = self.base.draw(kernel, n_columns, pools[-1][1], seed)
        assert isinstance(pool, DrawnMap)
        penalty = self.penalty
        if penalty is None:
            penalty = float(np.mean(kernel.diagonal(rows)) / np.sqrt(rows.shape[0]))
        picks, weights = [], []
        for number, (drawn, size) in enumerate(pools):
            scores = feature_scores(pool.first(size), rows, penalty)
            picked, weight = _pick(scores, drawn // self.step, stream(seed, PICKS, number))
            picks.append(picked)
            weights.append(weight)
        return pool.picked(np.concatenate(picks), np.concatenate(weights))

    def _pools(self, n_features: int) -> Iterator[tuple[int, int]]:
        """Yield how many features to draw, and from how many."""
        if self.pool is not None:
            yield n_features, self.pool
            return
        start, stop = 0, _FIRST
        while start < n_features:
            yield min(stop, n_features) - start, _POOL * stop
            start, stop = stop, 2 * stop


def _pick(scores: Array, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return positions, with probabilities in proportion to scores, and their weights."""
    scores = scores / scores.max() if scores.any() else np.ones(len(scores))
    total = np.cumsum(scores)
    picked = np.searchsorted(total, rng.random(size) * total[-1], side="right")
    # The largest random number may round to the total.
    picked = np.minimum(picked, np.flatnonzero(scores)[-1])
    return picked, np.sqrt(total[-1] / (len(scores) * scores[picked]))
