"""What separates measurements from rigid bodies, for both plants."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.dynamics.logs.signals import low_pass, low_pass_delay
from imparo.dynamics.plants.trajectories import Trajectory
from imparo.engine import Array

# A random walk reaches its stated deviation after this many seconds.
DRIFT_TIME = 1000.0
_SINES = 12


@dataclass(frozen=True)
class Payload:
    """A mass in one point that a link carries for a while.

    Attributes
    ----------
    mass : float
        Kilograms.
    link : str
        The link that carries it.
    point : sequence of 3 floats, default the origin
        Where, in the link's frame (m).
    start, end : float
        Seconds from when and until when (exclusive) it is there; from 0 for ever by default.
        What is there from 0 is there while the robot settles, too.

    Examples
    --------
    >>> from imparo.dynamics.plants.effects import Payload
    >>> bottle = Payload(0.5, "r_hand", start=60.0)
    >>> bottle.carried(59.9), bottle.carried(60.0)
    (False, True)
    """

    mass: float
    link: str
    point: Sequence[float] = (0.0, 0.0, 0.0)
    start: float = 0.0
    end: float = math.inf

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mass) and self.mass > 0):
            raise ValueError(
                f"the payload's mass={self.mass!r} must be a finite number above 0"
            )
        if np.shape(self.point) != (3,) or not np.isfinite(self.point).all():
            raise ValueError(f"the payload's point={self.point!r} must be three finite numbers")
        if not self.start < self.end:
            raise ValueError(f"the payload's start={self.start} must be before end={self.end}")

    def carried(self, t: float) -> bool:
        """Return whether it is there.

        Parameters
        ----------
        t : float
            Seconds; negative while the robot settles.
        """
        return (t >= self.start or self.start <= 0) and t < self.end


@dataclass(frozen=True)
class SensorEffects:
    """Offset, drift and noise of a sensor: y + offset + drift(t) + noise.

    Attributes
    ----------
    offset : array of shape (T,)
    drift : array of shape (T,)
        Deviation that a random walk reaches after 1,000 s.
    noise : array of shape (T,)
        Deviation of white noise.
    """

    offset: Array
    drift: Array
    noise: Array

    @classmethod
    def of(cls, n_outputs: int, offset: Any, drift: Any, noise: Any) -> "SensorEffects":
        """Return effects after checks.

        Parameters
        ----------
        n_outputs : int
            T.
        offset, drift, noise : float, array of shape (T,) or None
            None is 0.
        """
        parts = []
        for name, given in (("offset", offset), ("drift", drift), ("noise", noise)):
            values = np.asarray(0.0 if given is None else given, float)
            if values.shape not in ((), (n_outputs,)) or not np.isfinite(values).all():
                raise ValueError(
                    f"{name}={given!r} must be one finite number or {n_outputs} of them, one "
                    "for each output"
                )
            if name != "offset" and (values < 0).any():
                raise ValueError(f"{name}={given!r} is a deviation; it must not be negative")
            parts.append(np.broadcast_to(values, n_outputs).copy())
        return cls(*parts)

    def applied(self, y: Array, rate: float, rng: np.random.Generator) -> Array:
        """Return what the sensor says of y.

        Parameters
        ----------
        y : array of shape (n, T)
        rate : float
            Samples a second.
        rng : numpy.random.Generator
        """
        steps = rng.normal(size=y.shape) * np.sqrt(1 / (rate * DRIFT_TIME))
        steps[0] = 0
        white = rng.normal(size=y.shape)
        return y + self.offset + self.drift * np.cumsum(steps, axis=0) + self.noise * white


class Wander:
    """Slow deviations of joints from their path, as of a controller that is not perfect.

    Each joint adds √(2/12) s Σₘ sin(2π fₘ t + φₘ), twelve sines of random frequencies up to
    1 Hz: of deviation s, smooth, and the same for the same seed.

    Parameters
    ----------
    size : float
        s (rad, or m for prismatic joints).
    n_joints : int
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics.plants.effects import Wander
    >>> q, dq, ddq = Wander(0.02, n_joints=2, seed=0).at(np.arange(1000.0))
    >>> q.shape, bool(0.015 < q.std() < 0.025)
    ((1000, 2), True)
    """

    def __init__(self, size: float, n_joints: int, seed: int) -> None:
        # The stream of random numbers that noise comes from is another one.
        rng = np.random.default_rng([seed, 1])
        self.size = size
        self.pulses = 2 * np.pi * rng.uniform(0.05, 1.0, (_SINES, n_joints))
        self.phases = rng.uniform(0, 2 * np.pi, (_SINES, n_joints))

    def at(self, times: Array) -> tuple[Array, Array, Array]:
        """Return deviations of positions, velocities and accelerations.

        Parameters
        ----------
        times : array of shape (n,)

        Returns
        -------
        q, dq, ddq : arrays of shape (n, J)
        """
        angles = times[:, None, None] * self.pulses + self.phases
        s, c = self.size * np.sqrt(2 / _SINES) * np.array([np.sin(angles), np.cos(angles)])
        w = self.pulses
        return s.sum(axis=1), (c * w).sum(axis=1), -(s * w**2).sum(axis=1)


def check_cutoff(cutoff: float | None) -> None:
    """Raise unless a cutoff is None or a frequency.

    Parameters
    ----------
    cutoff : float or None
    """
    if cutoff is not None and not (math.isfinite(cutoff) and cutoff > 0):
        raise ValueError(
            f"velocity_cutoff={cutoff!r} must be a finite frequency above 0 (Hz), or None"
        )


def check_path(joints: Sequence[str], path: Any) -> None:
    """Raise unless a path is of these joints.

    Parameters
    ----------
    joints : sequence of str
    path : Trajectory
    """
    if not isinstance(path, Trajectory):
        raise TypeError(
            "a plant follows a Trajectory, made by circle or multisine, not "
            f"{type(path).__name__}"
        )
    if tuple(joints) != path.joints:
        raise ValueError(
            f"the path is one of the joints {', '.join(path.joints)}, the robot's are "
            f"{', '.join(joints)}; make it for this robot"
        )


def lagged(velocities: Array, step: float, cutoff: float | None) -> tuple[Array, Array]:
    """Return velocities as robots log them, and accelerations from these; causal.

    Velocities pass the first-order filter :func:`~imparo.dynamics.logs.signals.low_pass`;
    accelerations are backward differences of what comes out.

    Parameters
    ----------
    velocities : array of shape (n, J)
    step : float
        Seconds from one to the next.
    cutoff : float or None
        Hz; no filter if None.

    Returns
    -------
    dq, ddq : arrays of shape (n, J)
        The first acceleration is 0.
    """
    out = velocities
    if cutoff is not None:
        out = low_pass(step * np.arange(len(velocities)), velocities, cutoff)
    return out, np.diff(out, axis=0, prepend=out[:1]) / step


def lag_notes(step: float, cutoff: float | None) -> dict[str, str]:
    """Return what a log says of its velocities and accelerations.

    Parameters
    ----------
    step : float
        Seconds between values that are filtered.
    cutoff : float or None
        Hz.
    """
    if cutoff is None:
        return {"dq": "true", "ddq": "true"}
    delay = low_pass_delay(cutoff, step)
    return {
        "dq": f"first-order low-pass at {cutoff:g} Hz, {1000 * delay:.3g} ms late",
        "ddq": f"backward difference of dq, {1000 * (delay + step / 2):.3g} ms late",
    }
