"""Width and penalty of the nonparametric part, by stretches of time that are held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from imparo.dynamics.nonparametric import NonparametricDynamics
from imparo.dynamics.parametric import ParametricDynamics
from imparo.dynamics.semiparametric import SemiparametricDynamics
from imparo.engine import Array, default_engine, one_thread
from imparo.persistence import persistent

# Widths in units of √(2d), and penalties, that are tried where none are given. The largest
# penalties leave next to nothing of the nonparametric part.
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
_PENALTIES = tuple(10.0**k for k in range(-4, 5))
# Of a squared error; half of it of the error itself.
_SLACK = 0.02


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
    best : tuple of float
        The width and penalty that were chosen: of all that are within one standard error, or
        1 %, of the least error, the width nearest to √(2d), and with it the largest penalty.
    """

    model: Any
    sigmas: Array
    penalties: Array
    errors: Array
    parametric_error: float

    best: tuple[float, float]


def tune(
    model: Any,
    X: Any,
    Y: Any,
    *,
    sigmas: Sequence[float] | None = None,
    penalties: Sequence[float] | None = None,
    validation: Any = 4,
) -> Tuning:
    """Choose σ and λ of the nonparametric part by stretches of time that are held out.

    The parametric part learns the other samples as a stream; the residuals that it
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
    validation : int, float or array of shape (n,), default 4
        Into how many stretches of time the samples are cut, each held out once; or the last
        part of them that is held out; or which of them (True) are.

    Returns
    -------
    Tuning

    Notes
    -----
    Cost 2nD² + 10D³ for each σ and stretch, D features.

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
    if not (np.isfinite(X).all() and np.isfinite(Y).all()):
        raise ValueError("X or Y holds NaN or infinity; leave such samples out")
    splits = _splits(validation, len(X))
    alone = isinstance(model, NonparametricDynamics)
    widths, grid = _candidates(sigmas, penalties, X, Y, alone)
    size = Y.std(axis=0)
    size[size <= 1e-12 * np.abs(Y.mean(axis=0))] = 1.0  # constant, up to rounding
    squares, left = [], []
    with one_thread():  # eigenvalues of a few hundred columns are slower on several
        for held in splits:
            part, inputs, targets = _residuals(model, X, Y, held)
            targets = targets / size
            left.append(np.mean(np.square(targets[held])))
            squares.append(
                [_losses(part, inputs, targets, held, float(w), grid) for w in widths]
            )
    losses: Array = np.array(squares)
    errors = np.sqrt(losses.mean(axis=0))
    usual = np.sqrt(2 * inputs.shape[1])
    i, j = _cautious(losses, np.abs(np.log(widths / usual)))
    best = {"sigma": float(widths[i]), "penalty": float(grid[j])}
    tuned = clone(model)
    if isinstance(model, SemiparametricDynamics):
        tuned.set_params(nonparametric=clone(part).set_params(**best))
        parametric_error = float(np.sqrt(np.mean(left)))
    else:
        tuned.set_params(**best)
        parametric_error = float("nan")
    return Tuning(
        tuned, widths, grid, errors, parametric_error, (best["sigma"], best["penalty"])
    )


def _candidates(
    sigmas: Any, penalties: Any, X: Array, Y: Array, alone: bool
) -> tuple[Array, Array]:
    d = X.shape[1] if alone else X.shape[1] + Y.shape[1]
    usual = np.sqrt(2 * d) * np.array(_WIDTHS)
    return _numbers("sigmas", sigmas, usual), _numbers("penalties", penalties, _PENALTIES)


def _numbers(name: str, given: Any, usual: Any) -> Array:
    values = np.asarray(usual if given is None else given)
    numeric = values.ndim == 1 and len(values) > 0 and values.dtype.kind in "fiu"
    if not (numeric and ((values > 0) & (values < np.inf)).all()):
        raise ValueError(f"{name} must be numbers above 0, not {given!r:.60}")
    return values.astype(float)


def _cautious(losses: Array, oddness: Array) -> tuple[int, int]:
    """Return the least odd width, and with it the largest penalty, that do about as well.

    About: by no more than one standard error of the difference over the stretches, or 1 % of
    the error. What a few stretches recommend may be chance, and they say little of where the
    robot has not been.

    Parameters
    ----------
    losses : array of shape (stretches, sigmas, penalties)
    oddness : array of shape (sigmas,)
    """
    count = len(losses)
    mean = losses.mean(axis=0)
    best = mean.argmin()
    behind = losses - losses.reshape(count, -1)[:, best, None, None]
    doubt = behind.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else 0.0
    near = behind.mean(axis=0) <= np.maximum(doubt, _SLACK * mean.min())
    i = int(np.argmin(np.where(near.any(axis=1), oddness, np.inf)))
    return i, int(np.flatnonzero(near[i]).max())


def _splits(validation: Any, n: int) -> list[Array]:
    """Return which samples are held out, once or several times."""
    mask = np.asarray(validation)
    if mask.ndim:
        splits = [mask if mask.dtype == bool and mask.ndim == 1 else np.zeros(0, bool)]
    elif isinstance(validation, int | np.integer) and 2 <= validation <= n:
        block = np.arange(n) * validation // n
        splits = [block == k for k in range(validation)]
    else:
        share = float(validation) if isinstance(validation, float | np.floating) else 0.0
        splits = [np.arange(n) >= n - (round(share * n) if 0 < share < 1 else 0)]
    if not all(len(held) == n and held.any() and not held.all() for held in splits):
        raise ValueError(
            f"validation={validation!r:.60} must leave samples on both sides: a number of "
            f"blocks, a share between 0 and 1, or True for some of the {n} samples"
        )
    return splits


def _residuals(
    model: Any, X: Array, Y: Array, held: Array
) -> tuple[NonparametricDynamics, Array, Array]:
    """Return the nonparametric part, its inputs and its targets."""
    if isinstance(model, NonparametricDynamics):
        return model, X, Y
    parametric = model.parametric
    if not isinstance(parametric, ParametricDynamics):
        parametric = ParametricDynamics(parametric)
    revised = model.revises(parametric)
    parametric = clone(parametric).set_params(forgetting=1.0)
    parametric._start_with(X, Y.shape[1])
    Phi = parametric._regressor(X)
    after = parametric._learn_regressor(Phi[~held], Y[~held])
    final = Phi @ parametric.parameters_
    explained = final.copy()
    explained[~held] = after
    part = model.nonparametric or NonparametricDynamics()
    inputs = np.concatenate([X, explained], axis=1)
    return part, inputs, Y - (final if revised else explained)


def _losses(
    part: NonparametricDynamics, Z: Array, R: Array, held: Array, sigma: float, penalties: Array
) -> Array:
    """Return mean squared errors of held-out rows for all penalties."""
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
    values = np.maximum(values, 0)
    turned = product(vectors.T, product(Phi.T, R[~held]))
    tested = product(Psi, vectors)
    found = []
    for penalty in penalties:
        F = tested @ (turned / (values + penalty)[:, None])
        found.append(np.mean(np.square(R[held] - F)))
    return np.array(found)
