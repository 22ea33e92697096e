"""Physics first, kernels for what it leaves out; both learn on."""

from typing import Any

import numpy as np
from sklearn.base import clone

from imparo.dynamics.learner import DynamicsLearner
from imparo.dynamics.nonparametric import NonparametricDynamics
from imparo.dynamics.parametric import ParametricDynamics
from imparo.engine import Array
from imparo.estimators.inputs import check_type
from imparo.persistence import persistent


@persistent
class SemiparametricDynamics(DynamicsLearner):
    """Incremental semiparametric inverse dynamics (thesis, section 8.3).

    ỹ = ŷ + Δ(x, ŷ). The parametric part ŷ = Φ(x)π̂ has priority: it learns y as if it were
    alone. The nonparametric part Δ then learns the residual y − ŷ, formed with the parametric
    part *just updated*; with the one before the update errors of the first seconds are many
    times larger. Its inputs are the state and ŷ.

    In the thesis the residual of a sample is formed once. π̂ goes on to change as it is learned,
    in new regions quickly, and what Δ has learned of old residuals is then wrong. With
    ``revise`` Δ always is the least-squares model of the residuals of *all* samples with the
    present π̂. That is exact and costs little: the same recursion learns y and the columns of Φ
    as outputs, by W_y and W_k, and Δ = φ(W_y − Σ_k π̂_k W_k). Where π̂ changes because the robot
    does, as when it picks something up, the residuals of the time are the right ones: what
    physics left out before is what it leaves out now.

    A sample costs what the two parts cost, whatever came before it: 7D²/2 + 4DT + 7T(r + e)²/2
    flops for D features, r base parameters and e extra columns, and 4DT(r + e/T) more with
    ``revise``, less what is always 0.

    Parameters
    ----------
    parametric : Robot or ParametricDynamics
        The part that knows the physics, with its own penalty and forgetting factor.
    nonparametric : NonparametricDynamics, optional
        The part that learns what is left; ``NonparametricDynamics()`` if None.
    revise : bool or "auto", default "auto"
        Whether residuals of past samples follow π̂ as it changes. False is the thesis' rule.
        "auto": unless the parametric part forgets.

    Attributes
    ----------
    parametric_ : ParametricDynamics
        With π̂ in ``parameters_``.
    nonparametric_ : NonparametricDynamics
        With ``revise`` its outputs are y and the entries of the regressor.
    n_seen_ : int
        Samples so far.
    n_outputs_ : int
        T.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    Notes
    -----
    The deviation that ``predict`` returns counts the noise and the ignorance of both parts as
    independent; since the second part corrects the first, it is rather too large than too
    small where data are few.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import Robot, SemiparametricDynamics
    >>> robot = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0)], gravity=(0, -9.81, 0))
    >>> rng = np.random.default_rng(0)
    >>> q, dq, ddq = rng.uniform(-2, 2, size=(3, 500, 2))
    >>> y = robot.regressor(q, dq, ddq) @ rng.uniform(0.1, 1, 20) + 2 * np.tanh(2 * q)
    >>> model = SemiparametricDynamics(robot)
    >>> for i in range(400):
    ...     model = model.learn(q[i], dq[i], ddq[i], y[i])
    >>> errors = model.predict(q[400:], dq[400:], ddq[400:]) - y[400:]
    >>> rigid = model.parametric_.predict(q[400:], dq[400:], ddq[400:]) - y[400:]
    >>> bool(np.abs(errors).mean() < 0.5 * np.abs(rigid).mean())
    True
    """

    _STATE = (*DynamicsLearner._STATE, "_moments", "_revise", "_rigid", "_used")

    def __init__(
        self, parametric: Any, nonparametric: Any = None, *, revise: bool | str = "auto"
    ) -> None:
        self.parametric = parametric
        self.nonparametric = nonparametric
        self.revise = revise

    def _begin(self, X: Array, n_outputs: int) -> None:
        parametric, nonparametric = self.parametric, self.nonparametric
        if hasattr(parametric, "regressor_of"):
            parametric = ParametricDynamics(parametric)
        if not isinstance(parametric, ParametricDynamics):
            raise TypeError(
                f"parametric={parametric!r:.60} must be a Robot or a ParametricDynamics"
            )
        if nonparametric is None:
            nonparametric = NonparametricDynamics()
        if not isinstance(nonparametric, NonparametricDynamics):
            raise TypeError(
                f"nonparametric={nonparametric!r:.60} must be a NonparametricDynamics"
            )
        self._revise = self.revises(parametric)
        self.parametric_, self.nonparametric_ = clone(parametric), clone(nonparametric)
        self.parametric_._start_with(X, n_outputs)
        extra = n_outputs * len(self.parametric_._extras)
        self._rigid = len(self.parametric_.parameter_names_) - extra
        self._used = self._entries_in_use(X.shape[1], n_outputs)
        entries = n_outputs + int(self._used.sum()) if self._revise else n_outputs
        widened = np.zeros((1, X.shape[1] + n_outputs))
        self.nonparametric_._start_with(widened, entries)
        # Of the errors of y and of the regressor's columns, for the noise with any π̂.
        size = 1 + self._used.shape[1]
        self._moments = np.zeros((n_outputs, size, size))

    def _entries_in_use(self, n_columns: int, n_outputs: int) -> Array:
        """Return which entries of each output's own columns are not always 0.

        A third or a half of a robot's are: no force depends on moments of inertia, and no
        torque on bodies before its joint.
        """
        shape = (n_outputs, self._rigid + len(self.parametric_._extras))
        if self.parametric_.base_ is None:
            return np.ones(shape, bool)
        states = np.random.default_rng(0).normal(size=(20, n_columns))
        rows = self._own_columns(self.parametric_._regressor(states))
        sizes = np.abs(rows).max(axis=0)
        return sizes > 1e-12 * sizes.max()

    def revises(self, parametric: ParametricDynamics) -> bool:
        """Return whether residuals follow the parameters of a parametric part."""
        given = self.revise
        known = isinstance(given, bool | np.bool_) or (
            isinstance(given, str) and given == "auto"
        )
        check_type("revise", given, "True, False or 'auto'", known)
        return parametric.forgetting == 1 if isinstance(given, str) else bool(given)

    # Entries of the regressor as outputs: of each row the rigid columns, and of the extra
    # columns those that are its own.

    def _own_columns(self, Phi: Array) -> Array:
        """Return the columns that each output has, shape (n, T, r + e/T)."""
        n, T, _ = Phi.shape
        own = np.arange(T)
        extra = Phi[:, :, self._rigid :].reshape(n, T, -1, T)[:, own, :, own]
        return np.concatenate([Phi[:, :, : self._rigid], extra.transpose(1, 0, 2)], axis=2)

    def _rows_of(self, entries: Array) -> Array:
        """Return entries as (y_t, its columns), shape (n, T, 1 + r + e/T)."""
        T, size = self._used.shape
        rows = np.zeros((len(entries), T, 1 + size))
        rows[:, :, 0] = entries[:, :T]
        rows[:, :, 1:][:, self._used] = entries[:, T:]
        return rows

    def _mixing(self) -> Array:
        """Return (1, −π̂) of each output, shape (T, 1 + r + e/T)."""
        T, r, pi = self.n_outputs_, self._rigid, self.parametric_.parameters_
        own = pi[r:].reshape(-1, T).T
        return np.concatenate([np.ones((T, 1)), -np.tile(pi[:r], (T, 1)), -own], axis=1)

    def _learn_rows(self, X: Array, Y: Array) -> None:
        Phi = self.parametric_._regressor(X)
        explained = self.parametric_._learn_regressor(Phi, Y)
        inputs = np.concatenate([X, explained], axis=1)
        targets = Y - explained
        if self._revise:
            targets = np.concatenate([Y, self._own_columns(Phi)[:, self._used]], axis=1)
        learned, anew = self.nonparametric_._learn_judged(inputs, targets)
        if self._revise:
            self._moments = np.zeros_like(self._moments) if anew else self._moments
            for judged in learned:
                errors = judged.targets - judged.predictions
                self._moments = self._with_errors(errors, judged.shares)
        for part in (self.parametric_, self.nonparametric_):
            part.n_seen_ += len(X)

    def _with_errors(self, errors: Array, shares: Array) -> Array:
        """Return the moments with rows that follow."""
        fade, rows = float(self.nonparametric_.forgetting), self._rows_of(errors)
        kept = fade ** np.arange(len(rows) - 1, -1, -1.0) * shares
        added = np.einsum("n,nti,ntj->tij", kept, rows, rows)
        return fade ** len(rows) * self._moments + added

    def _predict_rows(self, X: Array, deviations: bool) -> tuple[Array, Array | None]:
        parametric, nonparametric = self.parametric_, self.nonparametric_
        Phi = parametric._regressor(X)
        explained = Phi @ parametric.parameters_
        features = nonparametric._features_of(np.concatenate([X, explained], axis=1))
        rest = nonparametric._recursion.predict(features)
        if self._revise:
            rest = np.einsum("nti,ti->nt", self._rows_of(rest), self._mixing())
        if not deviations:
            return explained + rest, None
        doubt = parametric._uncertainty(Phi)
        spread = 1 + nonparametric._recursion.leverage(features)
        return explained + rest, np.sqrt(doubt + spread[:, None] * self.noise_)

    @property
    def noise_(self) -> Array:
        """Estimated variance of what both parts leave in each output."""
        recursion = self.nonparametric_._recursion
        if not self._revise:
            return recursion.noise()
        waiting = recursion._waiting_errors()
        moments = self._with_errors(waiting, recursion._shares[: len(waiting)])
        mixing = self._mixing()
        squares = np.einsum("ti,tij,tj->t", mixing, moments, mixing)
        return np.maximum(squares, 0) / recursion.weight
