"""Sufficient statistics in Gram form: they add, merge, subtract and fade.

Rows enter as features Φ and outputs Y and are never needed again: ΦᵀΦ, ΦᵀY, YᵀY and
the sums give every linear model on them. The square-root form, for
ill-conditioned features and for streams, is :mod:`imparo.factors`.
"""

from typing import Any, Self

import numpy as np
from scipy import sparse

from imparo.engine import Array, Engine, engine_holding, host_engine, is_tensor
from imparo.persistence import persistent

_SUMS = ("_A", "b", "yy", "feature_sum", "output_sum", "weight")


@persistent
class Statistics:
    """ΦᵀWΦ, ΦᵀWY, YᵀWY, the weighted sums, and the total weight n.

    Parameters
    ----------
    n_features, n_outputs : int
        The numbers p and T of columns of Φ and Y.
    dtype : dtype
        float64 unless the features are float32 and memory is short.
    engine : Engine, optional
        Where the sums are kept; main memory if left out.

    Attributes
    ----------
    b : array of shape (p, T)
        ΦᵀWY.
    yy : array of shape (T, T)
        YᵀWY.
    feature_sum, output_sum : arrays of shape (p,) and (T,)
        Φᵀw and Yᵀw, for an intercept.
    weight : float
        The sum of the weights; the number of rows where all are 1.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.statistics import Statistics
    >>> first = Statistics(1, 1).add(np.array([[1.0]]), np.array([[2.0]]))
    >>> rest = Statistics(1, 1).add(np.array([[2.0], [3.0]]), np.array([[3.0], [7.0]]))
    >>> whole = first + rest
    >>> whole.A, whole.b, whole.weight
    (array([[14.]]), array([[29.]]), 3.0)
    >>> (whole - first).b
    array([[27.]])
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        dtype: np.typing.DTypeLike = np.float64,
        engine: Engine | None = None,
    ) -> None:
        engine, dtype = engine or host_engine(), np.dtype(dtype)
        self._A = engine.zeros((n_features, n_features), dtype)
        self.b = engine.zeros((n_features, n_outputs), dtype)
        self.yy = engine.zeros((n_outputs, n_outputs), dtype)
        self.feature_sum = engine.zeros((n_features,), dtype)
        self.output_sum = engine.zeros((n_outputs,), dtype)
        self.weight = 0.0

    @property
    def A(self) -> Array:
        """ΦᵀWΦ, both triangles; only the upper one is accumulated."""
        engine = self._engine
        full = engine.copy(self._A)
        engine.symmetrize(full)
        return full

    @property
    def upper(self) -> Array:
        """ΦᵀWΦ as it is accumulated: no copy, and only the upper triangle counts."""
        return self._A

    def on(self, engine: Engine) -> "Statistics":
        """Return the same statistics where an engine computes, or themselves if there.

        Parameters
        ----------
        engine : Engine

        Returns
        -------
        Statistics
        """
        if self._engine is engine:
            return self
        moved = self._shallow()
        for name in _SUMS[:-1]:
            setattr(moved, name, engine.asarray(getattr(self, name)))
        return moved

    def __sizeof__(self) -> int:
        # What Dask and others count, to decide where to add and when to spill.
        return object.__sizeof__(self) + sum(getattr(self, name).nbytes for name in _SUMS[:-1])

    def __getstate__(self) -> dict[str, Any]:
        # Pickled and copied in main memory: a GPU may not be there again.
        engine = self._engine
        state = dict(vars(self))
        return state | {name: engine.to_host(state[name]) for name in _SUMS[:-1]}

    def add(self, Phi: Any, Y: Array, weight: Array | None = None) -> Self:
        """Add a block of rows, in place. Cost kp² + 2kpT for k rows.

        Parameters
        ----------
        Phi : array or sparse matrix of shape (k, p)
        Y : array of shape (k, T)
        weight : array of shape (k,), optional
            Not negative; 1 if left out.

        Returns
        -------
        Statistics
            Itself.
        """
        engine = self._engine
        xp, dtype = engine.xp, engine.type_of(self.b)
        if tuple(Phi.shape[1:]) != self.b.shape[:1] or Y.shape != (
            Phi.shape[0], self.b.shape[1]
        ):  # fmt: skip
            raise ValueError(
                f"features of shape {Phi.shape} and outputs of shape {Y.shape} do not fit "
                f"statistics of {self.b.shape[0]} features and {self.b.shape[1]} outputs"
            )
        if weight is None:
            root = engine.zeros((Y.shape[0], 1), dtype)
            root += 1
            self.output_sum += engine.cast(Y.sum(axis=0), dtype)
            self.weight += float(Y.shape[0])
        else:
            w = weight if is_tensor(weight) else np.asarray(weight)
            if w.shape != Y.shape[:1]:
                raise ValueError(f"weights of shape {w.shape} came with {Y.shape[0]} rows")
            if not bool(((w >= 0) & (w < np.inf)).all()):
                raise ValueError("weights must be finite numbers from 0 on")
            self.output_sum += Y.T @ w
            self.weight += float(w.sum(dtype=xp.float64))
            root = xp.sqrt(w)[:, None]
            Phi = Phi.multiply(root).tocsr() if sparse.issparse(Phi) else Phi * root
            Y = Y * root
        # ΦᵀY and the sums of the features in one product: Φ is read once less.
        wide = engine.cast(xp.column_stack([Y, root]), engine.type_of(Phi))
        sums = engine.product(Phi.T, wide)
        engine.accumulate_gram(self._A, Phi)
        self.b += sums[:, :-1]
        self.feature_sum += sums[:, -1]
        engine.accumulate_product(self.yy, Y, Y)
        return self

    def extended(self, cross: Array, new: "Statistics") -> "Statistics":
        """Return the statistics of the same rows with more features after these.

        Parameters
        ----------
        cross : array of shape (p, k)
            ΦᵀWΨ between these features and the new ones, Ψ.
        new : Statistics
            Those of Ψ on the same rows.

        Returns
        -------
        Statistics
        """
        p, k = cross.shape
        if not np.isclose(self.weight, new.weight, rtol=1e-9):
            raise ValueError(
                f"the new features have rows of weight {new.weight:g} and the old ones of "
                f"{self.weight:g}; give the same rows"
            )
        engine = self._engine
        grown = Statistics(p + k, self.b.shape[1], engine.type_of(self.b), engine)
        grown._A[:p, :p], grown._A[:p, p:], grown._A[p:, p:] = self._A, cross, new._A
        grown.b[:p], grown.b[p:] = self.b, new.b
        grown.feature_sum[:p], grown.feature_sum[p:] = self.feature_sum, new.feature_sum
        grown.yy, grown.output_sum = engine.copy(self.yy), engine.copy(self.output_sum)
        grown.weight = self.weight
        return grown

    def whitened(self, T: Array) -> "Statistics":
        """Return the statistics of the features ΦT⁻¹, T upper triangular. Cost p³.

        Parameters
        ----------
        T : array of shape (p, p)

        Returns
        -------
        Statistics
        """
        engine, white = self._engine, self._shallow()
        white.yy, white.output_sum = engine.copy(self.yy), engine.copy(self.output_sum)
        white._A = engine.congruence(self._A, T)
        white.b = engine.solve_triangular(T, self.b, transpose=True)
        sums = self.feature_sum[:, None]
        white.feature_sum = engine.solve_triangular(T, sums, transpose=True)[:, 0]
        return white

    def merge(self, other: "Statistics") -> Self:
        """Add the statistics of other rows, in place; the result is that of one pass."""
        return self._combine(other, 1)

    def subtract(self, other: "Statistics") -> Self:
        """Take out the statistics of a part of the rows, in place (V-fold selection)."""
        if other.weight > self.weight * (1 + 1e-9):
            raise ValueError(
                f"statistics of weight {other.weight:g} cannot be part of statistics of "
                f"weight {self.weight:g}"
            )
        return self._combine(other, -1)

    def fade(self, factor: float) -> Self:
        """Multiply the weight of every row so far by ``factor`` in (0, 1], in place."""
        if not 0 < factor <= 1:
            raise ValueError(f"the forgetting factor must be in (0, 1], not {factor!r}")
        factor = float(factor)  # a NumPy scalar would turn float32 into float64
        for name in _SUMS:
            setattr(self, name, getattr(self, name) * factor)
        return self

    def __add__(self, other: "Statistics") -> Self:
        return self._copied().merge(other)

    def __sub__(self, other: "Statistics") -> Self:
        return self._copied().subtract(other)

    @property
    def _engine(self) -> Engine:
        return engine_holding(self._A)

    def _shallow(self) -> Self:
        # Not copy.copy, which leaves tensors in main memory.
        same = object.__new__(type(self))
        vars(same).update(vars(self))
        return same

    def _copied(self) -> Self:
        engine, same = self._engine, self._shallow()
        for name in _SUMS[:-1]:
            setattr(same, name, engine.copy(getattr(self, name)))
        return same

    def _combine(self, other: "Statistics", sign: int) -> Self:
        if self.b.shape != other.b.shape:
            raise ValueError(
                f"statistics of {other.b.shape} features and outputs cannot be combined with "
                f"those of {self.b.shape}"
            )
        for name in _SUMS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if is_tensor(mine):
                mine.add_(theirs, alpha=sign)
            elif isinstance(mine, np.ndarray) and np.can_cast(theirs.dtype, mine.dtype):
                # In place: m² numbers are the largest thing in memory.
                (np.add if sign > 0 else np.subtract)(mine, theirs, out=mine)
            else:
                setattr(self, name, mine + sign * theirs)
        return self

    def centered(self) -> tuple[Array, Array]:
        """Return the upper triangle of A and b with the means of Φ and Y taken out.

        Returns
        -------
        A, b : arrays of shape (p, p) and (p, T)
            Σw(φ − φ̄)(φ − φ̄)ᵀ and Σw(φ − φ̄)(y − ȳ)ᵀ.
        """
        if self.weight == 0:
            raise ValueError("statistics of no rows have no means; add rows first")
        share = self.feature_sum[:, None] / self.weight
        return self._A - share * self.feature_sum, self.b - share * self.output_sum

    def solve(self, penalty: float) -> Array:
        """Return (A + nλI)⁻¹b, of the *mean* loss plus λ‖w‖². Cost p³/3.

        Parameters
        ----------
        penalty : float
            λ; n is the total weight.

        Returns
        -------
        array of shape (p, T)
        """
        engine = self._engine
        A = engine.copy(self._A)
        engine.add_to_diagonal(A, self.weight * penalty)
        R = engine.cholesky(A)
        return engine.solve_triangular(R, engine.solve_triangular(R, self.b, transpose=True))

    def squared_error(self, w: Array) -> Array:
        """Return Σᵢwᵢ(yᵢ − φᵢᵀw)² for each output, from the statistics alone.

        Cancels where the error is many orders below YᵀY: use residuals there.

        Parameters
        ----------
        w : array of shape (p, T)

        Returns
        -------
        array of shape (T,)
        """
        if w.shape != self.b.shape:
            raise ValueError(f"the model must have shape {self.b.shape}, not {w.shape}")
        return self.yy.diagonal() - (w * (2 * self.b - self.A @ w)).sum(axis=0)
