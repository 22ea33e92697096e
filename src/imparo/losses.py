"""Losses ℓ(y, a) of predicting a for y: value, left derivative, target function.

Section 1.4 of the thesis defines them; the stochastic gradient methods of section 6.2
step along the left derivative; appendix A derives the target functions.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from imparo.engine import Array
from imparo.persistence import persistent


class Loss(ABC):
    """A loss ℓ(y, a) ≥ 0; an immutable value, equal to any other with its parameters.

    The losses of the margin ya (hinge, exponential, logistic, 0-1) take y in {−1, +1};
    the others take any y.
    """

    def value(self, y: Any, a: Any) -> Array:
        """Return ℓ(y, a), entry by entry.

        Parameters
        ----------
        y, a : array-like
            Outputs and predictions, of shapes that broadcast.

        Returns
        -------
        array
        """
        return self._value(*_floats(y, a))

    def derivative(self, y: Any, a: Any) -> Array:
        """Return ℓ'₋(y, a), the left derivative in a: the slope just below a.

        For a convex loss it is a subgradient. Parameters as for :meth:`value`.
        """
        return self._derivative(*_floats(y, a))

    def target(self, p: Any) -> Array:
        """Return the a that minimizes p·ℓ(1, a) + (1 − p)·ℓ(−1, a), for p = P(y = 1 | x).

        This is the target function f*(x) of classification (appendix A). Of several
        minimizers it is the smallest in absolute value; for the 0-1 loss it is the
        likelier label, 0 if neither is. It is infinite where none is finite.
        """
        (p,) = _floats(p)
        if not np.all((p >= 0) & (p <= 1)):
            raise ValueError("p must be probabilities P(y = 1 | x), from 0 to 1")
        return self._target(p)

    @property
    def tells_probability(self) -> bool:
        """Whether the target function has an inverse, so that predictions tell P(y = 1 | x)."""
        return type(self)._probability is not Loss._probability

    def probability(self, a: Any) -> Array:
        """Return the p whose :meth:`target` is a: what a prediction says of P(y = 1 | x).

        Parameters
        ----------
        a : array-like

        Returns
        -------
        array

        Raises
        ------
        TypeError
            For losses whose target is the likelier class alone.
        """
        (a,) = _floats(a)
        return self._probability(a)

    @abstractmethod
    def _value(self, y: Array, a: Array) -> Array: ...

    @abstractmethod
    def _derivative(self, y: Array, a: Array) -> Array: ...

    def _probability(self, a: Array) -> Array:
        raise TypeError(
            f"the {type(self).__name__} loss tells the likelier class and no probability; use "
            "'logistic', 'square' or 'exponential'"
        )

    def _target(self, p: Array) -> Array:
        return np.sign(2 * p - 1)


def _floats(*arrays: Any) -> tuple[Array, ...]:
    dtype = np.result_type(*map(np.asarray, arrays), np.float32)
    return tuple(np.asarray(array, dtype) for array in arrays)


@persistent
@dataclass(frozen=True)
class Square(Loss):
    """ℓ(y, a) = (y − a)², with target 2p − 1.

    Examples
    --------
    >>> from imparo.losses import Square
    >>> Square().value([1, 1], [0, 3]), Square().derivative([1, 1], [0, 3])
    (array([1., 4.]), array([-2.,  4.]))
    """

    def _value(self, y: Array, a: Array) -> Array:
        return (y - a) ** 2

    def _derivative(self, y: Array, a: Array) -> Array:
        return 2 * (a - y)

    def _target(self, p: Array) -> Array:
        return 2 * p - 1

    def _probability(self, a: Array) -> Array:
        return np.clip((1 + a) / 2, 0, 1)


@persistent
@dataclass(frozen=True)
class Absolute(Loss):
    r"""ℓ(y, a) = \|y − a\|, with target sign(2p − 1).

    Examples
    --------
    >>> from imparo.losses import Absolute
    >>> Absolute().derivative([1, 1, 1], [0, 1, 2])
    array([-1., -1.,  1.])
    """

    def _value(self, y: Array, a: Array) -> Array:
        return np.abs(y - a)

    def _derivative(self, y: Array, a: Array) -> Array:
        return np.where(a > y, 1, -1).astype(a.dtype)


@persistent
@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    r"""ℓ(y, a) = max(\|y − a\| − ε, 0), with target (1 − ε)₊ sign(2p − 1).

    Parameters
    ----------
    epsilon : float
        Deviations up to this size cost nothing; not negative.

    Examples
    --------
    >>> from imparo.losses import EpsilonInsensitive
    >>> EpsilonInsensitive(0.5).value(1, [0.0, 0.75, 2.0])
    array([0.5, 0. , 0.5])
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < np.inf:
            raise ValueError(f"epsilon must be a finite number from 0 on, not {self.epsilon!r}")

    def _value(self, y: Array, a: Array) -> Array:
        return np.maximum(np.abs(y - a) - float(self.epsilon), 0)

    def _derivative(self, y: Array, a: Array) -> Array:
        return np.subtract(a - y > self.epsilon, a - y <= -self.epsilon, dtype=a.dtype)

    def _target(self, p: Array) -> Array:
        return max(1 - float(self.epsilon), 0) * np.sign(2 * p - 1)


@persistent
@dataclass(frozen=True)
class Hinge(Loss):
    """ℓ(y, a) = max(1 − ya, 0), of support vector machines, with target sign(2p − 1).

    Examples
    --------
    >>> from imparo.losses import Hinge
    >>> Hinge().value([1, -1, 1], [0.25, 0.25, 2.0])
    array([0.75, 1.25, 0.  ])
    """

    def _value(self, y: Array, a: Array) -> Array:
        return np.maximum(1 - y * a, 0)

    def _derivative(self, y: Array, a: Array) -> Array:
        # Just below the kink ya = 1, the margin is below 1 for y > 0, above it for y < 0.
        return np.where((y * a < 1) | ((y * a == 1) & (y > 0)), -y, 0)


@persistent
@dataclass(frozen=True)
class Exponential(Loss):
    """ℓ(y, a) = exp(−ya), of boosting, with target ½log(p/(1 − p)); overflows to inf.

    Examples
    --------
    >>> from imparo.losses import Exponential
    >>> Exponential().value([1, -1], [0.0, 1.0]).round(4)
    array([1.    , 2.7183])
    """

    def _value(self, y: Array, a: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(-y * a)

    def _derivative(self, y: Array, a: Array) -> Array:
        return -y * self._value(y, a)

    def _target(self, p: Array) -> Array:
        return logit(p) / 2

    def _probability(self, a: Array) -> Array:
        return expit(2 * a)


@persistent
@dataclass(frozen=True)
class Logistic(Loss):
    """ℓ(y, a) = log(1 + exp(−ya)), with target log(p/(1 − p)).

    Examples
    --------
    >>> from imparo.losses import Logistic
    >>> Logistic().value([1, -1], [1000.0, 1000.0])
    array([   0., 1000.])
    """

    def _value(self, y: Array, a: Array) -> Array:
        with np.errstate(under="ignore"):
            return np.logaddexp(0, -y * a)

    def _derivative(self, y: Array, a: Array) -> Array:
        return -y * expit(-y * a)

    def _target(self, p: Array) -> Array:
        return logit(p)

    def _probability(self, a: Array) -> Array:
        return expit(a)


@persistent
@dataclass(frozen=True)
class ZeroOne(Loss):
    """ℓ(y, a) = 1 where y ≠ sign(a) and 0 elsewhere, with target sign(2p − 1).

    The sign of 0 counts as +1. The loss is not convex and has no use for a gradient.

    Examples
    --------
    >>> from imparo.losses import ZeroOne
    >>> ZeroOne().value([1, 1, -1, -1], [0.0, -2.0, 0.0, -2.0])
    array([0., 1., 1., 0.])
    """

    def _value(self, y: Array, a: Array) -> Array:
        return (y != np.where(a == 0, 1, np.sign(a))).astype(a.dtype)

    def _derivative(self, y: Array, a: Array) -> Array:
        raise TypeError("the 0-1 loss is not convex; use one that is, such as 'logistic'")


_NAMES: dict[str, type[Loss]] = {
    "absolute": Absolute,
    "epsilon_insensitive": EpsilonInsensitive,
    "exponential": Exponential,
    "hinge": Hinge,
    "logistic": Logistic,
    "square": Square,
    "zero_one": ZeroOne,
}


def as_loss(loss: Any) -> Loss:
    """Return a :class:`Loss` from a name or a loss object.

    Parameters
    ----------
    loss : str or Loss
        ``"square"``, ``"absolute"``, ``"epsilon_insensitive"``, ``"hinge"``,
        ``"exponential"``, ``"logistic"``, ``"zero_one"``; or an object of this module.

    Examples
    --------
    >>> from imparo.losses import as_loss
    >>> as_loss("epsilon_insensitive")
    EpsilonInsensitive(epsilon=0.1)
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in _NAMES:
        return _NAMES[loss]()
    names = ", ".join(_NAMES)
    if isinstance(loss, str):
        raise ValueError(f"loss={loss!r} is not known; give one of {names}")
    raise TypeError(f"loss must be a loss object or one of {names}, not {loss!r}")
