"""The fits that a data set allows, each with its cost, and the one to take."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from imparo.estimators.grids import halves
from imparo.theory.costs import (
    Cost,
    Machine,
    Problem,
    exact_cost,
    nystrom_cost,
    nytro_cost,
    random_feature_cost,
)

#: Penalties of an exact fit, of one on centers, of one on features; steps of NYTRO.
EXACT_PENALTIES, CENTER_PENALTIES, FEATURE_PENALTIES, STEPS = 100, 41, 40, 200
# Random features per center, at about the same error.
_FEATURES_PER_CENTER = 2
_FEWEST = 16
# Another method must be so much cheaper to be taken instead of Nyström, whose whole path
# comes with it.
_CLEARLY = 0.67


@dataclass(frozen=True)
class Option:
    """One way to fit, and what it is expected to take.

    Attributes
    ----------
    method : str
        "exact", "nystrom", "nytro" or "random features".
    size : int
        Rows, centers or features that models are made of.
    cost : Cost
    fits : bool
        Whether it is within the budget and the memory.
    enough : bool
        Whether the size and the steps are what the data call for.
    converges : bool
        Whether the steps are.
    """

    method: str
    size: int
    cost: Cost
    fits: bool
    enough: bool
    converges: bool = True


def options(
    problem: Problem, needed: int, steps: int, budget: float, memory: int, machine: Machine
) -> list[Option]:
    """Return every method at the size the data call for, or the largest that fits.

    Parameters
    ----------
    problem : Problem
    needed : int
        Centers that the data call for.
    steps : int
        Iterations of the ν-method that the penalty calls for, about √(κ²/λ).
    budget : float
        Seconds.
    memory : int
        Bytes.
    machine : Machine

    Returns
    -------
    list of Option
    """
    needed = int(np.clip(needed, 1, problem.n))

    def affordable(cost: Cost) -> bool:
        return cost.seconds <= budget and cost.bytes <= memory

    def sized(
        method: str, wanted: int, cost_of: Callable[[int], Cost], converges: bool = True
    ) -> Option:
        m = wanted
        if not affordable(cost_of(m)):
            m = _largest(lambda size: affordable(cost_of(size)), wanted)
        cost = cost_of(m)
        enough = converges and m >= wanted
        return Option(method, m, cost, affordable(cost), enough, converges)

    exact = exact_cost(problem, EXACT_PENALTIES, machine)
    found = [
        Option("exact", problem.n, exact, affordable(exact), True),
        sized("nystrom", needed, lambda m: nystrom_cost(
            problem, m, CENTER_PENALTIES, halves(m), machine)),
        sized(
            "nytro", needed, lambda m: nytro_cost(problem, m, STEPS, machine), steps <= STEPS
        ),
    ]  # fmt: skip
    if np.isfinite(problem.feature):
        wanted = 2 * -(-_FEATURES_PER_CENTER * needed // 2)
        found.append(
            sized("random features", wanted, lambda m: random_feature_cost(
                problem, m, FEATURE_PENALTIES, halves(m), machine))
        )  # fmt: skip
    return found


def _largest(holds: Callable[[int], bool], wanted: int) -> int:
    """Return the largest size for which ``holds``, even, or the fewest there can be."""
    low, high = min(_FEWEST, wanted), wanted
    if not holds(low):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return max(2 * (low // 2), 1)


def choose(found: list[Option]) -> tuple[Option, str]:
    """Return the option to take, and why.

    The cheapest that is large enough, with Nyström in case of doubt, as its whole path of
    penalties comes at one price and can grow; else the one that comes nearest.

    Parameters
    ----------
    found : list of Option

    Returns
    -------
    option : Option
    reason : str
    """
    by_name = {option.method: option for option in found}
    nystrom = by_name["nystrom"]
    complete = [option for option in found if option.fits and option.enough]
    if nystrom in complete:
        for option in sorted(complete, key=lambda o: o.cost.seconds):
            if option.cost.seconds < _CLEARLY * nystrom.cost.seconds:
                return option, "it is the cheapest of those that are large enough"
        return nystrom, "it is large enough, and its whole (λ, m) path comes at one price"
    if complete:
        best = min(complete, key=lambda o: o.cost.seconds)
        if len(complete) > 1:
            return best, "it is the cheapest of those that are large enough"
        return best, "no other method that is large enough is within the budget and memory"
    possible = [option for option in found if option.fits]
    possible = [option for option in possible if option.converges] or possible
    if not possible:
        return nystrom, "nothing is within the budget and memory; this is the least there is"

    def reach(option: Option) -> float:
        worth = _FEATURES_PER_CENTER if option.method == "random features" else 1
        return option.size / worth

    best = max(possible, key=lambda o: (round(reach(o) / reach(nystrom), 1), o is nystrom))
    return best, "the budget and memory do not allow for as many as the data call for"
