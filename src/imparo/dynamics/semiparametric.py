"""Physics first, kernels for what it leaves out; both learn on."""

from typing import Any

import numpy as np
from sklearn.base import clone

from imparo.dynamics.learner import DynamicsLearner
from imparo.dynamics.nonparametric import NonparametricDynamics
from imparo.dynamics.parametric import ParametricDynamics
from imparo.engine import Array
from imparo.persistence import persistent


@persistent
class SemiparametricDynamics(DynamicsLearner):
    """Incremental semiparametric inverse dynamics (thesis, section 8.3).

    ỹ = ŷ + Δ(x, ŷ). The parametric part ŷ = Φ(x)π̂ has priority: it learns y as if it were
    alone. The nonparametric part Δ then learns the residual y − ŷ, formed with the parametric
    part *just updated*; with the one before the update errors of the first seconds are many
    times larger. Its inputs are the state and ŷ. A sample costs what the two parts cost,
    whatever came before it: 7D²/2 + 4DT and 7T(r + e)²/2 flops.

    Parameters
    ----------
    parametric : Robot or ParametricDynamics
        The part that knows the physics, with its own penalty and forgetting factor.
    nonparametric : NonparametricDynamics, optional
        The part that learns what is left; ``NonparametricDynamics()`` if None.

    Attributes
    ----------
    parametric_ : ParametricDynamics
        With π̂ in ``parameters_``.
    nonparametric_ : NonparametricDynamics
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

    def __init__(self, parametric: Any, nonparametric: Any = None) -> None:
        self.parametric = parametric
        self.nonparametric = nonparametric

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
        self.parametric_, self.nonparametric_ = clone(parametric), clone(nonparametric)
        self.parametric_._start_with(X, n_outputs)
        widened = np.zeros((1, X.shape[1] + n_outputs))
        self.nonparametric_._start_with(widened, n_outputs)

    def _learn_rows(self, X: Array, Y: Array) -> None:
        explained = self.parametric_._learn_rows(X, Y)
        inputs = np.concatenate([X, explained], axis=1)
        self.nonparametric_._learn_rows(inputs, Y - explained)
        for part in (self.parametric_, self.nonparametric_):
            part.n_seen_ += len(X)

    def _predict_rows(self, X: Array, deviations: bool) -> tuple[Array, Array | None]:
        Phi = self.parametric_._regressor(X)
        explained = Phi @ self.parametric_.parameters_
        inputs = np.concatenate([X, explained], axis=1)
        rest, spread = self.nonparametric_._predict_rows(inputs, deviations)
        if spread is None:
            return explained + rest, None
        doubt = self.parametric_._uncertainty(Phi)
        return explained + rest, np.sqrt(doubt + np.square(spread))
