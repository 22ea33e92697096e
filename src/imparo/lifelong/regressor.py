"""Recursive regression: one sample or a block, in constant time, with what is not known."""

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from imparo.engine import Array
from imparo.estimators.devices import like
from imparo.estimators.inputs import all_or_nothing
from imparo.lifelong.base import Learner
from imparo.lifelong.drift import DriftDetector
from imparo.lifelong.inputs import checked_weight
from imparo.lifelong.stream_inputs import check_size
from imparo.persistence import persistent


@persistent
class RecursiveRegressor(MultiOutputMixin, RegressorMixin, Learner):
    """Recursive regularized least squares on any feature map (thesis, sections 7.4.2 and 8.2).

    After any number of samples the weights are those of ridge regression on all of them,
    w = (ΦᵀΦ + λI)⁻¹Φᵀy, in square-root form, at 7D²/2 + 4DT flops a sample and D² numbers of
    memory, however long the stream is. λ is that of the *sum* of losses, unlike in
    :class:`~imparo.KernelRegressor`. The result does not depend on how samples are grouped
    into calls, nor, up to rounding, on their order, unless something is forgotten or
    ``penalty="auto"`` goes by another first sample.

    Parameters
    ----------
    features : None, FeatureMap or transformer, default None
        φ: the rows themselves, a map of :mod:`imparo.features` (``NystromMap(kernel,
        centers)``, or ``RandomFeatures(...).fit(X).map_``), or a transformer such as
        :class:`~imparo.RandomFeatures`, which is fitted to the first rows if it is not fitted:
        give it a width then, for one row tells none.
    penalty : float, array of float or "auto", default "auto"
        λ > 0. Several are learned with side by side, each at the cost of one, and the one with
        the least prequential error predicts. "auto": 10⁻⁴, 10⁻² and 1 times the power of ten
        next to the squared norm of the first row's features.
    forgetting : float, default 1.0
        γ: what is left of the weight of earlier samples when a new one comes. 1/(1 − γ)
        samples is the memory.
    forgetting_kind : "exponential" or "directional", default "exponential"
        "exponential" forgets everything alike, λ included; a learner that sees the same rows
        for long knows nothing else in the end. A column whose uncertainty reaches 10¹² times
        that of the penalty gets λ anew, around its present weight. "directional" forgets only
        in the direction of each new row, never more than down to the penalty: idle learners
        keep what they know.
    intercept : bool, default True
        Whether to add a constant feature 1, under the same penalty.
    drift : "record", "forget" or None, default "record"
        Whether the prequential error is watched for changes, and whether earlier samples are
        faded when it rises, to the weight of those since the change.
    device : str, torch.device or None, default None
        Where features of blocks are computed if that is sooner, transfers included: "cuda",
        "auto" or "cpu". The recursion goes row by row and stays on the CPU.
    dtype : "float32", "float64" or None, default None
        Type to compute in; float64 if None, also for rows in float32.

    Attributes
    ----------
    n_seen_ : int
        Samples so far.
    coef_ : array of shape (D,) or (T, D)
        Weights of the features.
    intercept_ : float or array of shape (T,)
    penalty_, penalties_ : float, array
        λ in use, and all of them.
    prequential_errors_ : array of shape (n_penalties,)
        Root mean squared error of every λ on samples before they were learned; faded as the
        samples are; of samples up to the last multiple of 32.
    drifts_ : list of Drift
        When the error rose, and what was done: the last 1000.
    features_ : FeatureMap, transformer or None
        The map in use.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo import RandomFeatures, RecursiveRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> y = np.sin(X[:, 0])
    >>> features = RandomFeatures(sigma=1.0, n_features=100, random_state=0)
    >>> model = RecursiveRegressor(features)
    >>> for x, target in zip(X, y):
    ...     model = model.learn_one(x, target)
    >>> bool(abs(model.predict_one([1.0]) - np.sin(1.0)) < 1e-2)
    True
    >>> bool(model.novelty([[8.0]])[0] > model.novelty([[1.0]])[0])
    True
    """

    _AUTO = (1e-4, 1e-2, 1.0)
    _STATE = (*Learner._STATE, "_flat", "_losses", "_judged", "_usual")

    def __init__(
        self,
        features: Any = None,
        *,
        penalty: Any = "auto",
        forgetting: float = 1.0,
        forgetting_kind: str = "exponential",
        intercept: bool = True,
        drift: str | None = "record",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.features = features
        self.penalty = penalty
        self.forgetting = forgetting
        self.forgetting_kind = forgetting_kind
        self.intercept = intercept
        self.drift = drift
        self.device = device
        self.dtype = dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything and learn these samples, in their order.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of shape (n,) or (n, T)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        RecursiveRegressor
            Itself.
        """
        self._reset()
        return self._learn(X, y, sample_weight)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn samples, in their order. Cost 7nD²/2 + 4nDT for each λ.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of shape (n,) or (n, T)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        RecursiveRegressor
            Itself.
        """
        return self._learn(X, y, sample_weight)

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one sample, as quickly as can be.

        Parameters
        ----------
        x : array of shape (d,) or dictionary
            A dictionary's names are columns, in the order of the first one; a name that is
            missing later counts as 0.
        y : float or array of shape (T,)

        Returns
        -------
        RecursiveRegressor
            Itself.
        """
        self._learn_row(x, np.asarray(y)[None])
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> Self:
        fresh = self._is_fresh()
        X = self._checked(X, reset=fresh)
        Y, flat = self._outputs(X, y, fresh)
        weight = checked_weight(sample_weight, len(X), fresh=fresh)
        # Nothing is learned from rows of weight 0, and nothing is forgotten for them.
        used = slice(None) if weight is None else weight > 0
        if fresh:
            self._begin(X[used], Y.shape[1])
            self._flat = flat
            self._losses, self._judged = np.zeros(len(self._recursions)), 0.0
            self._usual = 0.0
        counts = np.ones(len(X)) if weight is None else weight[used]
        Phi = self._learned_features(X[used], weight)
        if weight is not None:
            root = np.sqrt(counts)[:, None]
            with np.errstate(over="ignore"):  # checked next
                Phi, Y = ((part * root).astype(Phi.dtype) for part in (Phi, Y[used]))
            check_size(Y)
        while len(Phi):
            # Drift is answered where it is in the stream: cuts must not matter.
            n = self._recursions[0].n_free
            results = [one.learn(Phi[:n], Y[:n], counts[:n]) for one in self._recursions]
            for judged in zip(*results, strict=True):
                errors = [one.targets - one.predictions for one in judged]
                self._compare(errors, judged[0].weights)
            Phi, Y, counts = Phi[n:], Y[n:], counts[n:]
        self.n_seen_ += len(X)
        return self

    def _n_outputs(self) -> int:
        return self._recursions[0].n_outputs

    def _compare(self, errors: list[Array], weights: Array) -> None:
        """Judge the penalties, and watch for drift, by errors before learning."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.stack([np.square(e, dtype=np.float64).sum(axis=1) for e in errors])
        squares = np.fmin(squares, 1e300)  # what overflows is wrong, and no reason to stop
        fades = float(self.forgetting) ** np.arange(squares.shape[1], -1, -1.0)
        self._losses = fades[0] * self._losses + squares @ fades[1:]
        self._judged = fades[0] * self._judged + float(fades[1:] @ weights)
        with np.errstate(over="ignore"):
            own = np.fmin(squares[self._best] / weights, 1e300)
        self._best = int(np.argmin(self._losses))
        # The detector takes numbers up to 1: errors against a size that stays the same as long
        # as their mean does, for a moving one would look like a change itself.
        if self._usual == 0:
            self._usual = float(own.mean())
        usual = self._usual + np.finfo(float).tiny
        if self._judge(own / (own + usual)) and self._detector is not None:
            # The window begins anew: what it holds is in the old size.
            self._usual, seen = float(own.mean()), self._detector.n_seen
            self._detector = DriftDetector()
            self._detector.n_seen = seen

    def _after_fading(self, kept: float) -> None:
        self._losses, self._judged = kept * self._losses, kept * self._judged

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the predicted outputs. Cost 2nDT, with deviations 2nD² more.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        return_std : bool, default False
            Whether to return standard deviations of new outputs too.

        Returns
        -------
        y : array of shape (n,) or (n, T)
        std : array of the same shape
            √(s²(1 + φᵀA⁻¹φ)), with s² the noise that the samples show.
        """
        recursion = self._chosen()
        rows = self._checked(X, reset=False)
        Phi = self._features_of(rows)
        F = recursion.predict(Phi)
        if not return_std:
            return like(F[:, 0] if self._flat else F, X)
        spread = 1 + self._leverage(rows, Phi)
        std = np.sqrt(spread[:, None] * recursion.noise()).astype(F.dtype)
        found = (F[:, 0], std[:, 0]) if self._flat else (F, std)
        return like(found[0], X), like(found[1], X)

    def predict_one(self, x: Any) -> Any:
        """Return the prediction for one row: a float, or an array of shape (T,).

        Parameters
        ----------
        x : array of shape (d,) or dictionary
        """
        self._chosen()
        y = self.predict(self._row(x))[0]
        return float(y) if self._flat else y

    def merge(self, other: "RecursiveRegressor") -> Self:
        """Learn all that another learner has learned, exactly, at the cost of D³.

        Parameters
        ----------
        other : RecursiveRegressor
            With the same features and penalties. It is not changed.

        Returns
        -------
        RecursiveRegressor
            Itself: the model of the samples of both.

        Examples
        --------
        >>> import numpy as np
        >>> from imparo import RecursiveRegressor
        >>> X, y = np.arange(20.0)[:, None], np.arange(20.0) ** 2
        >>> halves = [RecursiveRegressor(penalty=1.0).fit(X[p], y[p])
        ...           for p in (slice(10), slice(10, 20))]
        >>> whole = RecursiveRegressor(penalty=1.0).fit(X, y)
        >>> bool(np.allclose(halves[0].merge(halves[1]).coef_, whole.coef_))
        True
        """
        self._check_alike(other)
        T = self._recursions[0].n_outputs
        if other._recursions[0].n_outputs != T:
            raise ValueError(
                f"the other learner has {other._recursions[0].n_outputs} outputs and this "
                f"one {T}"
            )
        merged = copy.deepcopy(self._recursions)
        for own, its in zip(merged, other._recursions, strict=True):
            own.merge(its, np.arange(T))
        self._recursions = merged
        self._losses = self._losses + other._losses
        self._judged += other._judged
        self._best = int(np.argmin(self._losses)) if self._judged else self._best
        self.n_seen_ += other.n_seen_
        return self

    @property
    def coef_(self) -> Array:
        """Weights of the features."""
        W = self._chosen().coefficients()[:, int(self.intercept) :]
        return W[0] if self._flat else W

    @property
    def intercept_(self) -> Any:
        """Weight of the constant feature, or 0."""
        W = self._chosen().coefficients()
        b = W[:, 0] if self.intercept else np.zeros(len(W), W.dtype)
        return b[0] if self._flat else b

    @property
    def prequential_errors_(self) -> Array:
        """Root mean squared error of every λ before learning; NaN before 32 samples."""
        self._chosen()
        if not self._judged:
            return np.full(len(self._losses), np.nan)
        return np.sqrt(self._losses / self._judged)
