"""From ``step``, ``decay`` and ``beta`` to the step sizes to choose from."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.estimators import grids
from imparo.losses import Loss
from imparo.sgm import Schedule
from imparo.steps import STEP_RULES, StepRule, loss_constants, step_rule

# Guesses of the thesis, and how far down they go from the largest.
_GUESSES, _DECADES = 30, 5
# The first step of the thesis where the decay is chosen, for a kernel and slopes up to 1.
_FIRST = 0.25
# The largest step for a loss that is not smooth: that of the thesis, and what averages bear.
_LARGEST, _LARGEST_AVERAGED = 1.0, 8.0


@dataclass(frozen=True, eq=False)
class Steps:
    """Step sizes ηt^{−θ} to choose from: a grid, or the rule of a corollary.

    Attributes
    ----------
    etas, thetas : arrays
        The grid is their product; of a rule, η₁ and θ.
    rule : StepRule or None
    beta : float
    """

    etas: Array
    thetas: Array
    rule: StepRule | None = None
    beta: float = 1.0

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.etas) * len(self.thetas)

    @property
    def axes(self) -> dict[str, Array]:
        """The grids of more than one value."""
        found = {"step": self.etas, "decay": self.thetas}
        return {name: grid for name, grid in found.items() if len(grid) > 1}

    def schedule(self, n: int) -> Schedule:
        """Return the candidates for n rows, those of one η side by side."""
        etas = self.etas
        if self.rule is not None:
            etas = self.rule.step_sizes(np.ones(1), n, self.beta, float(etas[0]))
        eta, theta = np.meshgrid(etas, self.thetas, indexing="ij")
        return Schedule(eta.ravel(), theta.ravel())


def steps_of(
    step: Any, decay: Any, beta: Any, loss: Loss, bound: float, Y: Array, unit: float, *,
    averaged: bool,
) -> Steps:  # fmt: skip
    """Return the step sizes that an estimator's parameters stand for.

    Parameters
    ----------
    step : float, array-like, "auto" or name of a rule
    decay : float, array-like or "auto"
    beta : float
        In (0, 1], for rules of one pass.
    loss : Loss
    bound : float
        κ² ≥ ‖Φ(x)‖².
    Y : array of shape (n, T)
        Outputs divided by ``unit``.
    unit : float
    averaged : bool
        Averages of iterates bear larger steps.

    Returns
    -------
    Steps
    """
    _check_beta(beta, step)
    if isinstance(step, StepRule) or (isinstance(step, str) and step != "auto"):
        return _of_rule(step, decay, float(beta), loss, bound)
    scale = _scale(loss, Y, unit) / bound
    given = not isinstance(step, str)
    if isinstance(decay, str):
        if decay != "auto":
            raise ValueError(f"decay={decay!r} is not known; give a number, a grid or 'auto'")
        thetas = np.linspace(0, 1, _GUESSES)
        etas = _grid("step", step) if given else np.array([_FIRST * scale])
    else:
        thetas = _grid("decay", decay, zero=True)
        etas = _grid("step", step) if given else _guesses(loss, bound, scale, averaged)
    return Steps(etas, thetas)


def _of_rule(step: Any, decay: Any, beta: float, loss: Loss, bound: float) -> Steps:
    if isinstance(step, str) and step not in STEP_RULES:
        raise ValueError(
            f"step={step!r} is not known; give a number, a grid, 'auto' or one of the rules "
            f"{', '.join(STEP_RULES)}"
        )
    rule, constants = step_rule(step), loss_constants(loss)
    if isinstance(decay, str) or np.size(decay) != 1 or float(np.ravel(decay)[0]) != 0:
        raise ValueError(
            f"decay={decay!r} has no effect with step={rule.name!r}, which has its own; leave "
            "it out"
        )
    if rule.smooth and not constants.smooth:
        raise ValueError(
            f"step={rule.name!r} is for losses whose derivative is Lipschitz, and that of "
            f"{loss!r} is not; use {rule.name.replace('smooth', 'nonsmooth')!r}"
        )
    eta1 = 2 / (bound * constants.curvature) if rule.smooth else 1.0
    theta = rule.step_exponent(beta) if rule.decaying else 0.0
    return Steps(np.array([eta1]), np.array([theta]), rule, beta)


def _check_beta(beta: Any, step: Any) -> None:
    number = isinstance(beta, int | float | np.number) and not isinstance(beta, bool)
    if not (number and 0 < beta <= 1):
        raise ValueError(f"beta={beta!r} must be a number above 0 and at most 1")
    ruled = isinstance(step, StepRule) or (isinstance(step, str) and step != "auto")
    if beta != 1 and not ruled:
        raise ValueError(
            f"beta={beta!r} has no effect with step={step!r}: it belongs to the rules of step "
            "sizes; leave it out"
        )


def _grid(name: str, value: Any, *, zero: bool = False) -> Array:
    expected = "numbers from 0 on" if zero else "numbers above 0"
    grid = grids.numbers(name, value, expected, lambda g: g >= 0 if zero else g > 0)
    return np.unique(grid)


def _scale(loss: Loss, Y: Array, unit: float) -> float:
    """Return the size of outputs over that of slopes at 0: 1 for the hinge loss on ±1."""
    largest = float(np.max(np.abs(Y), initial=0.0))
    if largest == 0:  # outputs that are all the mean: as if they were 1
        Y, largest = np.ones_like(Y), 1.0
    # Squares of outputs themselves might overflow.
    size = largest * float(np.sqrt(np.mean(np.square(Y.astype(np.float64) / largest))))
    zero = np.zeros_like(Y)
    with np.errstate(over="ignore"):
        slopes = loss.derivative(unit * Y, zero) / unit
    slope = float(np.mean(np.abs(slopes), dtype=np.float64))
    return size / slope if 0 < slope < math.inf else 1.0


def _guesses(loss: Loss, bound: float, scale: float, averaged: bool) -> Array:
    """Return 30 step sizes, down five decades from the largest of use."""
    constants = loss_constants(loss)
    top = (_LARGEST_AVERAGED if averaged else _LARGEST) * scale
    if constants.smooth:
        top = 2 / (bound * constants.curvature)
    return top * np.geomspace(10.0**-_DECADES, 1, _GUESSES)
