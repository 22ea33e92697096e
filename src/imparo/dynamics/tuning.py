"""Width and penalty of the nonparametric part, by the last part of a recording."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from imparo.dynamics.nonparametric import NonparametricDynamics
from imparo.dynamics.parametric import ParametricDynamics
from imparo.dynamics.semiparametric import SemiparametricDynamics
from imparo.engine import Array, default_engine
from imparo.persistence import persistent

# Widths in units of √(2d), and penalties, that are tried where none are given. The largest
# penalties leave next to nothing of the nonparametric part.
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
_PENALTIES = tuple(10.0**k for k in range(-4, 5))


@persistent
@dataclass(frozen=True, eq=False)
class Tuning:
    """Errors over widths and penalties, and the learner with the best of them.

    Attributes
    ----------
    model : learner of dynamics
        Not fitted, with σ and λ set.
    sigmas, penalties : array
        What was tried.
    errors : array of shape (sigmas, penalties)
        Root of the mean squared error of held-out samples, in units of the outputs' standard
        deviations.
    parametric_error : float
        The same of the parametric part alone; NaN where there is none.
    """

    model: Any
    sigmas: Array
    penalties: Array
    errors: Array
    parametric_error: float

    @property
    def best(self) -> tuple[float, float]:
        """The width and penalty with the least error."""
        i, j = np.unravel_index(int(np.argmin(self.errors)), self.errors.shape)
        return float(self.sigmas[i]), float(self.penalties[j])


def tune(
    model: Any,
    X: Any,
    Y: Any,
    *,
    sigmas: Sequence[float] | None = None,
    penalties: Sequence[float] | None = None,
    validation: Any = 0.25,
) -> Tuning:
    """Choose σ and λ of the nonparametric part by samples that come later.

    The parametric part is learned by the earlier samples as a stream; the residuals that it
    leaves, with the inputs as normalised then, are fitted for all λ at once.

    Parameters
    ----------
    model : NonparametricDynamics or SemiparametricDynamics
        It is not changed. Its forgetting factors are taken as 1.
    X : array of shape (n, 3J)
        Columns q, dq, ddq, in the order of time.
    Y : array of shape (n, T)
    sigmas, penalties : sequence of float, optional
        Candidates. √(2d) times 1/4 to 4, and 10⁻⁴ to 10⁴ if None.
    validation : float or array of shape (n,), default 0.25
        The last part of the samples that is held out, or which of them (True) are.

    Returns
    -------
    Tuning

    Notes
    -----
    Cost 2nD² + 10D³ for each σ, D features.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import NonparametricDynamics, tune
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(400, 3))
    >>> Y = np.sin(X)
    >>> tuned = tune(NonparametricDynamics(n_features=100), X, Y, sigmas=(0.1, 2.0, 50.0))
    >>> tuned.best[0]
    2.0
    >>> tuned.model.sigma
    2.0
    """
    if not isinstance(model, NonparametricDynamics | SemiparametricDynamics):
        raise TypeError(
            f"model={model!r:.60} must be a NonparametricDynamics or a SemiparametricDynamics"
        )
    X, Y = np.ascontiguousarray(X, float), np.asarray(Y, float)
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y):
        raise ValueError(
            f"X and Y have the shapes {X.shape} and {Y.shape}; two tables with as many rows "
            "were expected"
        )
    held = _held_out(validation, len(X))
    part, inputs, targets, base = _residuals(model, X, Y, held)
    size = Y[~held].std(axis=0)
    size[size == 0] = 1.0
    d = inputs.shape[1]
    widths = np.sqrt(2 * d) * np.array(_WIDTHS) if sigmas is None else np.array(sigmas, float)
    grid = np.array(_PENALTIES if penalties is None else penalties, float)
    for name, values in (("sigmas", widths), ("penalties", grid)):
        if values.ndim != 1 or not len(values) or not ((values > 0) & (values < np.inf)).all():
            raise ValueError(f"{name} must be numbers above 0, not {values.tolist()}")
    errors = np.array(
        [_errors(part, inputs, targets / size, held, float(width), grid) for width in widths]
    )
    i, j = np.unravel_index(int(np.argmin(errors)), errors.shape)
    best = {"sigma": float(widths[i]), "penalty": float(grid[j])}
    tuned = clone(model)
    if isinstance(model, SemiparametricDynamics):
        tuned.set_params(nonparametric=clone(part).set_params(**best))
    else:
        tuned.set_params(**best)
    alone = float(np.sqrt(np.mean(np.square(targets[held] / size)))) if base else float("nan")
    return Tuning(tuned, widths, grid, errors, alone)


def _held_out(validation: Any, n: int) -> Array:
    if np.ndim(validation) == 1:
        held = np.asarray(validation, bool)
        fits = len(held) == n and held.any() and not held.all()
    else:
        share = float(validation)
        count = round(share * n) if 0 < share < 1 else 0
        held, fits = np.arange(n) >= n - count, 0 < count < n
    if not fits:
        raise ValueError(
            f"validation={validation!r:.60} must leave samples on both sides: a number between "
            f"0 and 1, or True for some of the {n} samples"
        )
    return held


def _residuals(
    model: Any, X: Array, Y: Array, held: Array
) -> tuple[NonparametricDynamics, Array, Array, bool]:
    """Return the nonparametric part, its inputs and targets, and whether there is another."""
    if isinstance(model, NonparametricDynamics):
        return model, X, Y, False
    parametric = model.parametric
    if not isinstance(parametric, ParametricDynamics):
        parametric = ParametricDynamics(parametric)
    parametric = clone(parametric).set_params(forgetting=1.0)
    explained = np.empty_like(Y)
    parametric._start_with(X, Y.shape[1])
    explained[~held] = parametric._learn_rows(X[~held], Y[~held])
    parametric.n_seen_ = int((~held).sum())
    explained[held] = parametric.predict(X[held])
    part = model.nonparametric or NonparametricDynamics()
    return part, np.concatenate([X, explained], axis=1), Y - explained, True


def _errors(
    part: NonparametricDynamics, Z: Array, R: Array, held: Array, sigma: float, penalties: Array
) -> Array:
    """Return errors of held-out rows for all penalties."""
    model = clone(part).set_params(sigma=sigma)
    model._start_with(Z, R.shape[1])
    rows = Z[~held]
    seen = 0
    while seen < len(rows):  # the normalisation that the stream would have arrived at
        step = min(model.scale_.until_next, len(rows) - seen)
        seen += step
        model.scale_.advance(step, rows[max(0, seen - model.scale_.settled) : seen])
    product = default_engine().product
    Phi, Psi = model._features_of(rows), model._features_of(Z[held])
    values, vectors = np.linalg.eigh(product(Phi.T, Phi))
    turned = product(vectors.T, product(Phi.T, R[~held]))
    tested = product(Psi, vectors)
    found = []
    for penalty in penalties:
        F = tested @ (turned / (np.maximum(values, 0) + penalty)[:, None])
        found.append(np.sqrt(np.mean(np.square(R[held] - F))))
    return np.array(found)
