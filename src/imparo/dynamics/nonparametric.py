"""The nonparametric part: recursive least squares on random features of normalised inputs."""

import math
from typing import Any

import numpy as np

from imparo.dynamics.learner import (
    DynamicsLearner,
    check_penalty,
    check_positive,
)
from imparo.dynamics.running_scale import RunningScale
from imparo.engine import Array
from imparo.estimators.inputs import check_type
from imparo.estimators.transformers import RandomFeatures
from imparo.lifelong.inputs import DIRECTIONAL, check_forgetting
from imparo.lifelong.recursion import Judged, Recursion
from imparo.persistence import persistent

# Rows that the normalisation is set by; a power of two. They are kept.
SETTLED = 256


@persistent
class NonparametricDynamics(DynamicsLearner):
    """Dynamics of any kind, by random features and recursion (thesis, section 8.2.2).

    ŷ = φ(x̄)W with φ the random features of a Gaussian kernel, x̄ the normalised inputs and W the
    minimizer of Σ_i ‖y_i − φ(x̄_i)W‖² + λ‖W‖². A sample costs 7D²/2 + 4DT flops, whatever came
    before it.

    Inputs are normalised by rows of the past only: set when 1, 2, 4, …, 256 samples have been
    seen, each time followed by learning these anew (256 samples at once is the longest pause),
    and then kept, unless motion becomes ten times larger than that
    (:class:`~imparo.dynamics.running_scale.RunningScale`). The model then begins anew with the
    last 256 samples, twice: the second time with motion alone.

    Parameters
    ----------
    n_features : int, default 500
        D.
    sigma : float or "auto", default "auto"
        Width of the kernel for normalised inputs. "auto": √(2d), the usual distance of two of
        them.
    penalty : float, default 0.1
        λ of the sum of losses; ‖φ‖² is 1.
    forgetting : float, default 1.0
        γ: what is left of the weight of all samples when a new one comes.
    forgetting_kind : {"exponential", "directional"}, default "exponential"
        As in :class:`~imparo.RecursiveRegressor`.
    features : str or rule, default "fourier"
        As in :class:`~imparo.RandomFeatures`.
    random_state : int, default 0
        Seed of the features. Not None: a durable learner must draw them again.

    Attributes
    ----------
    sigma_ : float
        Width in use.
    scale_ : RunningScale
        Normalisation in use.
    rescaled_ : list of int
        After how many samples the normalisation was set anew, beyond the first 256.
    n_seen_ : int
        Samples so far.
    n_outputs_ : int
        T.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import NonparametricDynamics
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(600, 3))
    >>> y = np.sin(X[:, 0]) + 0.5 * X[:, 2]
    >>> model = NonparametricDynamics(n_features=200).fit(X[:500], y[:500])
    >>> bool(np.abs(model.predict(X[500:]) - y[500:]).mean() < 0.1)
    True
    """

    _STATE = (*DynamicsLearner._STATE, "_recursion", "_map", "_recent")

    def __init__(
        self,
        *,
        n_features: int = 500,
        sigma: Any = "auto",
        penalty: float = 0.1,
        forgetting: float = 1.0,
        forgetting_kind: str = "exponential",
        features: Any = "fourier",
        random_state: int = 0,
    ) -> None:
        self.n_features = n_features
        self.sigma = sigma
        self.penalty = penalty
        self.forgetting = forgetting
        self.forgetting_kind = forgetting_kind
        self.features = features
        self.random_state = random_state

    # Learning.

    def _begin(self, X: Array, n_outputs: int) -> None:
        check_forgetting(self.forgetting, self.forgetting_kind)
        whole = isinstance(self.random_state, int | np.integer) and self.random_state >= 0
        check_type("random_state", self.random_state, "a whole number from 0", whole)
        self.sigma_ = self._checked_sigma(X.shape[1])
        check_penalty(self.penalty)
        rule = RandomFeatures(
            "gaussian", sigma=self.sigma_, n_features=self.n_features, features=self.features,
            random_state=self.random_state,
        )  # fmt: skip
        self._map = rule.fit(np.zeros((2, X.shape[1]))).map_
        self.scale_ = RunningScale(X.shape[1], SETTLED)
        self.rescaled_: list[int] = []
        self._recent = (np.zeros((0, X.shape[1])), np.zeros((0, n_outputs)))
        self._recursion = self._empty()

    def _checked_sigma(self, n_columns: int) -> float:
        if isinstance(self.sigma, str):
            check_type("sigma", self.sigma, "a number above 0 or 'auto'", self.sigma == "auto")
            return math.sqrt(2 * n_columns)
        return check_positive("sigma", self.sigma)

    def _empty(self) -> Recursion:
        return Recursion(
            len(self._map) + 1, self.n_outputs_, float(self.penalty),
            forgetting=float(self.forgetting),
            directional=self.forgetting_kind == DIRECTIONAL,
        )  # fmt: skip

    def _features_of(self, X: Array) -> Array:
        """Return a constant and the features of normalised rows."""
        psi = self._map.transform(self.scale_.apply(X))
        Phi = np.empty((len(X), psi.shape[1] + 1))
        Phi[:, 0], Phi[:, 1:] = 1.0, psi
        return Phi

    def _learn_rows(self, X: Array, Y: Array) -> None:
        self._learn_judged(X, Y)

    def _learn_judged(self, X: Array, Y: Array) -> tuple[list[Judged], bool]:
        """Learn rows; return those that entered the weights, as predicted before.

        And whether the model has begun anew, with these as the first.
        """
        judged: list[Judged] = []
        anew = False
        while len(X):
            n = min(len(X), self.scale_.until_next)
            self._remember(X[:n], Y[:n])
            if self.scale_.advance(n, self._recent[0]):
                if self.scale_.n_seen > SETTLED:
                    self.rescaled_ = [*self.rescaled_[-999:], self.scale_.n_seen]
                self._recursion = self._empty()
                again = self._features_of(self._recent[0])
                judged, anew = self._recursion.learn(again, self._recent[1]), True
            else:
                judged += self._recursion.learn(self._features_of(X[:n]), Y[:n])
            X, Y = X[n:], Y[n:]
        return judged, anew

    def _remember(self, X: Array, Y: Array) -> None:
        """Keep the last rows."""
        self._recent = (
            np.concatenate([self._recent[0], X])[-SETTLED:],
            np.concatenate([self._recent[1], Y])[-SETTLED:],
        )

    # Predicting.

    def _predict_rows(self, X: Array, deviations: bool) -> tuple[Array, Array | None]:
        Phi = self._features_of(X)
        F = self._recursion.predict(Phi)
        if not deviations:
            return F, None
        spread = 1 + self._recursion.leverage(Phi)
        return F, np.sqrt(spread[:, None] * self._recursion.noise())
