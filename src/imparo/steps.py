"""Step sizes and stopping times of the stochastic gradient method (thesis, section 6.3).

Steps η_t shrink as a power of n or of t; what they add up to, Ση, plays the part of 1/λ. With
the exponent β in (0, 1] of the approximation error, 𝒟(λ) ≤ cλ^β (1 where the best f is in the
space), theorems 2 and 3 balance the sample, computational and approximation errors.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.conditions import (
    Condition,
    Prescription,
    at_most,
    check_number,
    check_rows,
    round_up,
    shown,
)
from imparo.engine import Array
from imparo.losses import (
    Absolute,
    EpsilonInsensitive,
    Exponential,
    Hinge,
    Logistic,
    Loss,
    Square,
    ZeroOne,
    as_loss,
)
from imparo.persistence import persistent


@dataclass(frozen=True)
class LossConstants:
    """What the theorems ask of a loss, for outputs y in [−1, 1].

    Parameters
    ----------
    convex : bool
    slope : float
        a₀ = sup|ℓ'₋(y, a)|; infinite if not bounded.
    curvature : float
        L, the Lipschitz constant of ℓ'; infinite if the loss is not smooth.

    Examples
    --------
    >>> from imparo.theory import loss_constants
    >>> loss_constants("logistic")
    LossConstants(convex=True, slope=1.0, curvature=0.25)
    """

    convex: bool
    slope: float
    curvature: float

    @property
    def smooth(self) -> bool:
        """Whether the derivative is Lipschitz."""
        return self.convex and math.isfinite(self.curvature)


_CONSTANTS: dict[type[Loss], LossConstants] = {
    Absolute: LossConstants(True, 1.0, math.inf),
    EpsilonInsensitive: LossConstants(True, 1.0, math.inf),
    Exponential: LossConstants(True, math.inf, math.inf),
    Hinge: LossConstants(True, 1.0, math.inf),
    Logistic: LossConstants(True, 1.0, 0.25),
    Square: LossConstants(True, math.inf, 2.0),
    ZeroOne: LossConstants(False, math.inf, math.inf),
}


def loss_constants(loss: Any) -> LossConstants:
    """Return whether a loss is convex, and the bounds of its first two derivatives.

    Parameters
    ----------
    loss : str or Loss
        As for :func:`imparo.losses.as_loss`.

    Returns
    -------
    LossConstants

    Examples
    --------
    >>> from imparo.theory import loss_constants
    >>> loss_constants("hinge").smooth
    False
    """
    loss = as_loss(loss)
    if type(loss) not in _CONSTANTS:
        raise ValueError(
            f"the constants of {type(loss).__name__} are not known, which rules and automatic "
            "steps need; give numbers as steps, or one of the losses "
            f"{', '.join(cls.__name__ for cls, known in _CONSTANTS.items() if known.convex)}"
        )
    return _CONSTANTS[type(loss)]


@persistent
@dataclass(frozen=True)
class StepRule:
    """One of the eight corollaries of section 6.3: step sizes and when to stop.

    With p = 1 for smooth losses and p = 2 for others, the excess risk falls as
    n^{−β/(pβ+1)}log n. Where many passes are made, the number of steps regularizes:
    η_t = η₁/√n for ⌈n^{(pβ+3)/(2(pβ+1))}⌉ steps, or η_t = η₁/√t for ⌈n^{2/(pβ+1)}⌉ steps.
    Where one pass is made, the step size regularizes: η_t = η₁n^{−pβ/(pβ+1)} or
    η_t = η₁t^{−pβ/(pβ+1)}.

    Parameters
    ----------
    smooth : bool
        Whether the loss is smooth.
    one_pass : bool
        Whether n steps are taken.
    decaying : bool
        Whether steps shrink with t; they depend on n alone otherwise.

    Examples
    --------
    >>> from imparo.theory import step_rule
    >>> rule = step_rule("smooth-decaying")
    >>> rule.step_sizes([1, 4, 16], n=100, beta=0.5, eta1=2.0)
    array([2. , 1. , 0.5])
    >>> rule.stopping_time(1000, beta=0.5), rule.epochs(1000, beta=0.5)
    (10000, 10)
    """

    smooth: bool
    one_pass: bool
    decaying: bool

    @property
    def name(self) -> str:
        """The name by which :func:`step_rule` knows it."""
        parts = ["smooth" if self.smooth else "nonsmooth"]
        parts += ["one-pass"] if self.one_pass else []
        return "-".join([*parts, "decaying" if self.decaying else "constant"])

    @property
    def place(self) -> str:
        """The corollary in the thesis."""
        number = 2 + 4 * (not self.smooth) + 2 * self.one_pass + self.decaying
        return f"corollary {number}, section 6.3.{2 if self.smooth else 3}"

    def _capacity(self, beta: float) -> float:
        check_number("beta", beta, above=0, most=1)
        return float(beta) if self.smooth else 2 * float(beta)

    def step_exponent(self, beta: float) -> float:
        """Return the power of 1/n, or of 1/t where steps decay, in the step size."""
        b = self._capacity(beta)
        return b / (b + 1) if self.one_pass else 0.5

    def stopping_exponent(self, beta: float) -> float:
        """Return the power of n in the number of steps."""
        b = self._capacity(beta)
        if self.one_pass:
            return 1.0
        return 2 / (b + 1) if self.decaying else (b + 3) / (2 * (b + 1))

    def rate_exponent(self, beta: float) -> float:
        """Return β/(pβ + 1): the excess risk falls as n to minus this power, times log n."""
        return beta / (self._capacity(beta) + 1)

    def step_sizes(self, t: Any, n: int, beta: float, eta1: float = 1.0) -> Array:
        """Return η_t.

        Parameters
        ----------
        t : int or array-like
            Numbers of the steps, from 1 on.
        n : int
            Rows.
        beta : float
            In (0, 1].
        eta1 : float
            η₁; at most 2/(κ²L) for smooth losses.

        Returns
        -------
        array of the shape of t
        """
        check_rows(n)
        check_number("eta1", eta1, above=0)
        t = np.asarray(t, np.float64)
        if not np.all(t >= 1):
            raise ValueError("t must hold numbers of steps, from 1 on")
        base = t if self.decaying else np.full(t.shape, float(n))
        return eta1 * base ** -self.step_exponent(beta)

    def stopping_time(self, n: int, beta: float) -> int:
        """Return t*, the number of steps to take on n rows."""
        check_rows(n)
        return n if self.one_pass else round_up(float(n) ** self.stopping_exponent(beta))

    def epochs(self, n: int, beta: float) -> int:
        """Return how many passes over n rows t* steps are, rounded up."""
        check_rows(n)
        power = self.stopping_exponent(beta) - 1
        return round_up(float(n) ** power) if power > 0 else 1

    def prescribe(
        self,
        n: int,
        beta: float = 1.0,
        *,
        loss: Any = None,
        kernel_bound: float = 1.0,
        eta1: float | None = None,
    ) -> Prescription:
        """Return steps and stopping time, with the conditions of the corollary checked.

        Parameters
        ----------
        n : int
        beta : float
            In (0, 1]; 1 where the best f is in the space.
        loss : str or Loss, optional
            Its conditions are assumed if left out.
        kernel_bound : float
            κ² = sup K(x, x).
        eta1 : float, optional
            The largest that is allowed if left out, 2/(κ²L); 1 where that is unknown.

        Returns
        -------
        Prescription
            ``step_size`` (η of the first step), ``step_decay`` (θ of η_t = η₁t^{−θ}),
            ``iterations``, ``epochs``, ``rate_exponent``.

        Examples
        --------
        >>> from imparo.theory import step_rule
        >>> rule = step_rule("smooth-constant").prescribe(10_000, 1.0, loss="logistic")
        >>> rule.step_size, rule.iterations, rule.epochs, rule.rate_exponent
        (0.08, 10000, 1, 0.5)
        >>> step_rule("smooth-constant").prescribe(10_000, loss="hinge").violated[0].name
        'the derivative of the loss is Lipschitz'
        """
        check_rows(n)
        check_number("kernel_bound", kernel_bound, above=0)
        constants = None if loss is None else loss_constants(loss)
        limit = math.inf
        if constants is not None and constants.smooth:
            limit = 2 / (kernel_bound * constants.curvature)
        if eta1 is None:
            eta1 = limit if self.smooth and math.isfinite(limit) else 1.0
        first = float(self.step_sizes(1, n, beta, eta1))
        values = {
            "step_size": first,
            "step_decay": self.step_exponent(beta) if self.decaying else 0.0,
            "iterations": self.stopping_time(n, beta),
            "epochs": self.epochs(n, beta),
            "rate_exponent": self.rate_exponent(beta),
        }
        conditions = self._of_the_loss(constants)
        if self.smooth and math.isfinite(limit):
            conditions.append(
                at_most("the steps are short enough, η₁ ≤ 2/(κ²L)", "η₁", eta1, limit)
            )
        elif self.smooth:
            conditions.append(Condition("the steps are short enough, η₁ ≤ 2/(κ²L)", None))
        conditions.append(Condition(f"approximation error: 𝒟(λ) ≤ cλ^{beta:g}", None))
        return Prescription(f"{self.name} steps ({self.place})", values, tuple(conditions))

    def _of_the_loss(self, constants: LossConstants | None) -> list[Condition]:
        known = constants is not None
        convex, slope, curvature = (
            (constants.convex, constants.slope, constants.curvature)
            if constants is not None
            else (True, math.inf, math.inf)
        )
        conditions = [
            Condition("the loss is convex", convex if known else None),
            Condition(
                "the derivative of the loss is bounded",
                math.isfinite(slope) if known else None,
                f"sup |ℓ'| is {shown(slope)}" if known else "",
            ),
        ]
        if self.smooth:
            conditions.append(
                Condition(
                    "the derivative of the loss is Lipschitz",
                    math.isfinite(curvature) if known else None,
                    f"L is {shown(curvature)}" if known else "",
                )
            )
        return conditions


_RULES = {
    rule.name: rule
    for rule in (
        StepRule(smooth, one_pass, decaying)
        for smooth in (True, False)
        for one_pass in (False, True)
        for decaying in (False, True)
    )
}

#: The names that :func:`step_rule` knows.
STEP_RULES = tuple(_RULES)


def step_rule(name: str | StepRule) -> StepRule:
    """Return the rule of a corollary by its name.

    Parameters
    ----------
    name : str
        ``"smooth-constant"``, ``"smooth-decaying"``, ``"smooth-one-pass-constant"``,
        ``"smooth-one-pass-decaying"``, or ``"nonsmooth-…"`` of the same.

    Returns
    -------
    StepRule

    Examples
    --------
    >>> from imparo.theory import step_rule
    >>> step_rule("nonsmooth-one-pass-constant").place
    'corollary 8, section 6.3.3'
    """
    if isinstance(name, StepRule):
        return name
    if name not in _RULES:
        raise ValueError(f"step rule {name!r} is not known; give one of {', '.join(_RULES)}")
    return _RULES[name]
