"""What a theorem prescribes, and which of its conditions hold."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imparo.persistence import persistent

#: A dimension at one level, or as a function of the level.
Dimension = float | Callable[[float], float]


@persistent
@dataclass(frozen=True)
class Condition:
    """One condition of a theorem.

    Parameters
    ----------
    name : str
        What it demands, in words.
    holds : bool or None
        None where data cannot tell: the condition is then assumed.
    detail : str
        The numbers.

    Examples
    --------
    >>> from imparo.theory import Condition
    >>> print(Condition("enough rows", False, "n ≥ 12,345 is needed and n is 1,000"))
    violated: enough rows (n ≥ 12,345 is needed and n is 1,000)
    """

    name: str
    holds: bool | None
    detail: str = ""

    def __str__(self) -> str:
        state = {True: "holds", False: "violated", None: "assumed"}[self.holds]
        return f"{state}: {self.name}" + (f" ({self.detail})" if self.detail else "")


@persistent
@dataclass(frozen=True)
class Prescription:
    """The numbers that a theorem gives, with its conditions checked.

    Parameters
    ----------
    name : str
        The theorem and its place in the thesis.
    values : dict
        The numbers by name; each is an attribute, too.
    conditions : tuple of Condition

    Examples
    --------
    >>> from imparo.theory import Condition, Prescription
    >>> rule = Prescription(
    ...     "a theorem (section 0.0)",
    ...     {"penalty": 0.01, "n_centers": 1234},
    ...     (Condition("m ≤ n", False, "m is 1,234 and n is 1,000"),),
    ... )
    >>> rule.penalty, rule.holds
    (0.01, False)
    >>> print(rule)
    a theorem (section 0.0)
      penalty    0.01
      n_centers  1,234
    conditions
      violated: m ≤ n (m is 1,234 and n is 1,000)
    """

    name: str
    values: dict[str, Any]
    conditions: tuple[Condition, ...] = field(default=())

    def __getattr__(self, name: str) -> Any:
        # Not through self.values, which is missing while a copy is being made.
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(
            f"this prescription has no {name!r}; its values are {', '.join(values)}"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.values})

    @property
    def violated(self) -> tuple[Condition, ...]:
        """The conditions that do not hold."""
        return tuple(condition for condition in self.conditions if condition.holds is False)

    @property
    def assumed(self) -> tuple[Condition, ...]:
        """The conditions that cannot be checked."""
        return tuple(condition for condition in self.conditions if condition.holds is None)

    @property
    def holds(self) -> bool:
        """Whether no condition is known to be violated."""
        return not self.violated

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists and numbers, for JSON; None stands for infinity.

        Returns
        -------
        dict
        """
        return {
            "name": self.name,
            "values": {key: _plain(value) for key, value in self.values.items()},
            "conditions": [
                {"name": c.name, "holds": c.holds, "detail": c.detail} for c in self.conditions
            ],
        }

    def __str__(self) -> str:
        width = max(map(len, self.values), default=0)
        lines = [self.name]
        lines += [f"  {key:{width}}  {shown(value)}" for key, value in self.values.items()]
        if self.conditions:
            order = {False: 0, True: 1, None: 2}
            lines += ["conditions"]
            lines += [f"  {c}" for c in sorted(self.conditions, key=lambda c: order[c.holds])]
        return "\n".join(lines)


@persistent
@dataclass(frozen=True)
class ErrorTerms:
    """The three terms of a bound of the excess risk, up to constants.

    Parameters
    ----------
    sample, computational, approximation : float
        What the finite sample, the saved computations and the regularization cost.
    power : int
        The bound is (sample + computational + approximation)^power.

    Examples
    --------
    >>> from imparo.theory import ErrorTerms
    >>> ErrorTerms(0.1, 0.2, 0.3, power=2).total
    0.36...
    """

    sample: float
    computational: float
    approximation: float
    power: int = 1

    @property
    def total(self) -> float:
        """The bound."""
        return (self.sample + self.computational + self.approximation) ** self.power


def shown(value: Any) -> str:
    """Return a number as people write it: 12,345 or 0.01235; lists in brackets."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, bool | str) or value is None:
        return str(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else f"{float(value):.4g}"
    return f"{value:.4g}"


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def enough(what: str, name: str, value: float, least: float) -> Condition:
    """Return the condition ``value ≥ least``, in words and numbers."""
    detail = f"{name} ≥ {shown(least)} is needed and {name} is {shown(value)}"
    return Condition(what, bool(value >= least), detail)


def at_most(what: str, name: str, value: float, most: float) -> Condition:
    """Return the condition ``value ≤ most``, in words and numbers."""
    detail = f"{name} ≤ {shown(most)} is needed and {name} is {shown(value)}"
    return Condition(what, bool(value <= most), detail)


def no_more_than_rows(m: int, n: int) -> Condition:
    """Return the condition m ≤ n on a number of centers."""
    detail = f"m is {shown(m)} and n is {shown(n)}"
    return Condition("there are as many rows as centers, m ≤ n", m <= n, detail)


def at_level(dimension: Dimension, level: float, name: str) -> float:
    """Return a dimension, given as a number or a function, at a level; it is checked."""
    value = dimension(level) if callable(dimension) else dimension
    check_number(name, value, above=0)
    return float(value)


def round_up(value: float) -> int:
    """Return the smallest whole number not below ``value``, forgiving rounding errors."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= 1e-12 * abs(value) else math.ceil(value)


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> None:
    """Raise unless ``value`` is a finite number within the given limits."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if number and math.isfinite(value):
        inside = (
            (least is None or value >= least)
            and (above is None or value > above)
            and (most is None or value <= most)
            and (below is None or value < below)
        )
        if inside:
            return
    limits = {"from {} on": least, "above {}": above, "up to {}": most, "below {}": below}
    words = [text.format(shown(x)) for text, x in limits.items() if x is not None]
    raise ValueError(f"{name}={value!r} must be a finite number {' and '.join(words)}".rstrip())


def check_rows(n: Any, least: int = 1) -> None:
    """Raise unless ``n`` is a whole number of rows."""
    whole = isinstance(n, int | np.integer) and not isinstance(n, bool)
    if not whole or n < least:
        raise ValueError(f"n={n!r} must be a whole number of rows, from {least} on")
