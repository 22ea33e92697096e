"""Paths for joints to follow: circles of the hand by inverse kinematics, and multisines.

Every path is a trigonometric polynomial of time, q(t) = Σₕ aₕ cos(hωt) + bₕ sin(hωt), so that
it is smooth, it repeats, and velocities and accelerations are its exact derivatives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from imparo.dynamics.plants.inverse_kinematics import (
    PLANES,
    REACHED,
    DiscSolver,
    half_ranges,
    middle,
)
from imparo.dynamics.robot import Robot
from imparo.engine import Array

# Points of a revolution at which kinematics are inverted; doubled until the path is true.
_POINTS = 32
_MOST_POINTS = 512
# A hand may be this far (m) from its circle between those points.
_TRUE = 1e-6


@dataclass(frozen=True)
class Trajectory:
    """A periodic path of joints, and the times at which it is sampled.

    Attributes
    ----------
    joints : tuple of str
    cosines, sines : arrays of shape (H + 1, J)
        aₕ and bₕ (rad), h = 0 to H; a₀ is the mean.
    period : float
        2π / ω, in seconds.
    rate : float
        Samples a second.
    n_samples : int
    notes : dict of str to str
        What the path is.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics.plants.trajectories import Trajectory
    >>> swing = Trajectory(("hip",), np.zeros((2, 1)), np.array([[0.0], [0.5]]), 2.0, 4.0, 8)
    >>> q, dq, ddq = swing.at([0.0, 0.5])
    >>> q.round(3).ravel().tolist(), dq.round(3).ravel().tolist()
    ([0.0, 0.5], [1.571, 0.0])
    >>> len(swing), swing.q.shape
    (8, (8, 1))
    """

    joints: tuple[str, ...]
    cosines: Array
    sines: Array
    period: float
    rate: float
    n_samples: int
    notes: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.n_samples

    @cached_property
    def t(self) -> Array:
        """Times of the samples (s), shape (n,); the first is 0."""
        return np.arange(self.n_samples) / self.rate

    @cached_property
    def _samples(self) -> tuple[Array, Array, Array]:
        return self.at(self.t)

    @property
    def q(self) -> Array:
        """Positions at the samples, shape (n, J)."""
        return self._samples[0]

    @property
    def dq(self) -> Array:
        """Velocities at the samples, shape (n, J)."""
        return self._samples[1]

    @property
    def ddq(self) -> Array:
        """Accelerations at the samples, shape (n, J)."""
        return self._samples[2]

    def at(self, times: Any) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations at any times.

        Costs O(n H J).

        Parameters
        ----------
        times : array of shape (n,)
            Seconds.

        Returns
        -------
        q, dq, ddq : arrays of shape (n, J)
        """
        pulses = 2 * np.pi / self.period * np.arange(len(self.cosines))
        angles = np.asarray(times, float)[:, None] * pulses
        c, s = np.cos(angles), np.sin(angles)
        a, b = self.cosines, self.sines
        q = c @ a + s @ b
        dq = (c * pulses) @ b - (s * pulses) @ a
        ddq = -((c * pulses**2) @ a + (s * pulses**2) @ b)
        return q, dq, ddq


def circle(
    robot: Robot,
    frame: str,
    *,
    centre: Sequence[float],
    radius: float = 0.1,
    plane: str = "xy",
    speed: float = 0.6,
    rate: float = 10.0,
    duration: float = 100.0,
    start: Any = None,
) -> Trajectory:
    """Return a path of the joints on which a link runs round a circle at constant speed.

    Where joints are to spare, each point takes the positions q nearest to the middle of the
    joints' ranges, in the sense of least Σ u²/2 + 2 u⁶ with u = (q − middle) / half the range.
    That makes q a function of the point, found by damped least squares as the circle is blown
    up from its centre: one revolution closes, and the next repeats it. Costs 0.1 to 1 s.

    Planes are those of the robot's root link. For the iCub x points backwards, y to its
    right and z up: XY is the transverse and XZ the sagittal plane of the thesis.

    Parameters
    ----------
    robot : Robot
    frame : str
        Link or joint whose origin runs round.
    centre : sequence of 3 floats
        In the root link's frame (m).
    radius : float, default 0.1
        Metres.
    plane : {"xy", "xz", "yz"}
        The circle begins on the first axis, and turns towards the second.
    speed : float, default 0.6
        Metres a second.
    rate : float, default 10
        Samples a second.
    duration : float, default 100
        Seconds.
    start : array of shape (J,), optional
        Where the search for the joints' positions at the centre begins; the middle of the
        ranges if None. It decides between an elbow up and an elbow down.

    Raises
    ------
    ValueError
        If the circle is out of reach or exceeds limits of joints' positions or velocities.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import Robot
    >>> from imparo.dynamics.plants.trajectories import circle
    >>> arm = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0), (1.0, 0, 0, 0)])
    >>> path = circle(arm, "link_3", centre=(1, 0.5, 0), start=[-0.5, 1.5, 0], rate=100)
    >>> radii = np.linalg.norm(arm.position(path.q, "link_3") - [1, 0.5, 0], axis=1)
    >>> bool(abs(radii - 0.1).max() < 1e-6)
    True
    """
    numbers = {"radius": radius, "speed": speed, "rate": rate, "duration": duration}
    n_samples = _n_samples(**numbers)
    middle_point = np.asarray(centre, float)
    if middle_point.shape != (3,) or not np.isfinite(middle_point).all():
        raise ValueError(f"centre={centre!r} must be three finite numbers (x, y, z) in metres")
    if plane not in PLANES:
        raise ValueError(f"plane={plane!r} must be one of {', '.join(PLANES)}")
    what = f"the circle of {radius:g} m in {plane} about ({_numbers(middle_point)})"
    solver = DiscSolver(robot, frame, middle_point, plane, start)
    period, points = 2 * np.pi * radius / speed, _POINTS
    while True:
        solved, missed = solver.round(radius, points)
        if missed > REACHED:
            raise ValueError(
                f"{what} is out of reach: {frame} stays about {missed:.3g} m away; move the "
                "centre, shrink the radius, or look for a centre with feasible_centre"
            )
        cosines, sines = _harmonics(solved)
        path = Trajectory(robot.joints, cosines, sines, period, float(rate), n_samples)
        times = (np.arange(points) + 0.5) * period / points
        targets = solver.points(radius, 2 * np.pi * times / period)
        error = np.linalg.norm(robot.position(path.at(times)[0], frame) - targets, axis=1).max()
        if error < _TRUE:
            break
        points *= 2
        if points > _MOST_POINTS:
            raise ValueError(
                f"{what} leads through positions where the arm is stretched or joints jump, so "
                f"that {frame} misses it by {error:.2g} m; move the centre or shrink the radius"
            )
    check_limits(robot, path, what, speed)
    path.notes.update(
        path=f"{what}, {frame}, at {speed:g} m/s", plane=plane, radius=f"{radius:g}"
    )
    return path


def multisine(
    robot: Robot,
    *,
    duration: float = 60.0,
    rate: float = 100.0,
    period: float = 20.0,
    harmonics: int = 6,
    fraction: float = 0.8,
    velocity: Any = None,
    seed: int = 0,
) -> Trajectory:
    """Return a path that excites all joints: sums of sines with random phases, within limits.

    Each joint swings about the middle of its range (0 if it has none) by harmonics 1 to H of
    1 / period, amplitudes falling as 1 / √h. Made for identification.

    Parameters
    ----------
    robot : Robot
    duration : float, default 60
        Seconds.
    rate : float, default 100
        Samples a second.
    period : float, default 20
        Seconds until the path repeats.
    harmonics : int, default 6
        H.
    fraction : float, default 0.8
        Part of the range (of ±π without limits) and of the velocity limits that is used.
    velocity : float or array of shape (J,), optional
        Largest velocity, before ``fraction``, if lower than the robot's limits.
    seed : int, default 0
        Of the phases.

    Examples
    --------
    >>> from imparo.dynamics import Robot
    >>> from imparo.dynamics.plants.trajectories import multisine
    >>> arm = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0)])
    >>> path = multisine(arm, duration=20, fraction=0.5, velocity=1.0)
    >>> path.q.shape, bool(abs(path.dq).max() <= 0.5)
    ((2000, 2), True)
    """
    n_samples = _n_samples(rate=rate, duration=duration, period=period)
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction={fraction!r} must be above 0 and at most 1")
    if harmonics != int(harmonics) or harmonics < 1:
        raise ValueError(f"harmonics={harmonics!r} must be a whole number of at least 1")
    fastest = robot.velocity_limits.copy()
    if velocity is not None:
        given = np.asarray(velocity, float)
        if given.shape not in ((), fastest.shape) or not (given > 0).all():
            raise ValueError(
                f"velocity={velocity!r} must be one number above 0 or {robot.n_joints} of them"
            )
        fastest = np.minimum(fastest, given)
    h = np.arange(1, int(harmonics) + 1)[:, None]
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, (len(h), robot.n_joints))
    a, b = np.sin(phases) / np.sqrt(h), np.cos(phases) / np.sqrt(h)
    none = np.zeros((1, robot.n_joints))
    cosines, sines = np.concatenate([none, a]), np.concatenate([none, b])
    unit = Trajectory(robot.joints, cosines, sines, float(period), float(rate), n_samples)
    q, dq, _ = unit.at(np.linspace(0, period, 64 * len(h), endpoint=False))
    # Peaks fall between the points of that grid, above them by less than this.
    missed = 1 + 0.5 * (np.pi / 64) ** 2
    largest = np.abs([q, dq]).max(axis=1) * missed
    scale = fraction * np.minimum(half_ranges(robot) / largest[0], fastest / largest[1])
    cosines, sines = cosines * scale, sines * scale
    cosines[0] = middle(robot)
    notes = {"path": f"multisine of {harmonics} harmonics of {1 / period:g} Hz, seed {seed}"}
    path = Trajectory(
        robot.joints, cosines, sines, float(period), float(rate), n_samples, notes
    )
    check_limits(robot, path, "the multisine", None)
    return path


def check_limits(robot: Robot, path: Trajectory, what: str, speed: float | None) -> None:
    """Raise if a path exceeds limits of positions or velocities, by the worst of them.

    Parameters
    ----------
    robot : Robot
    path : Trajectory
    what : str
        What the path is, to begin the sentence with.
    speed : float or None
        What to lower where velocities are exceeded.
    """
    grid = np.linspace(0, path.period, 16 * len(path.cosines), endpoint=False)
    q, dq, _ = path.at(grid)
    low, high = robot.position_limits.T
    beyond = np.maximum(low - q, q - high)
    worst, j = np.unravel_index(int(beyond.argmax()), beyond.shape)
    if beyond[worst, j] > 0:
        limit = high[j] if q[worst, j] > high[j] else low[j]
        raise ValueError(
            f"{what} needs {robot.joints[j]} at {q[worst, j]:.3f} rad, {beyond[worst, j]:.3f} "
            f"beyond its limit {limit:.3f}; move the centre, shrink the radius, or look for a "
            "centre with feasible_centre"
        )
    ratio = np.abs(dq) / robot.velocity_limits
    worst, j = np.unravel_index(int(ratio.argmax()), ratio.shape)
    if ratio[worst, j] > 1:
        advice = "" if speed is None else f"; a speed of {speed / ratio[worst, j]:.3g} m/s fits"
        raise ValueError(
            f"{what} needs {robot.joints[j]} at {abs(dq[worst, j]):.3g} rad/s, "
            f"{abs(dq[worst, j]) - robot.velocity_limits[j]:.3g} beyond its limit "
            f"{robot.velocity_limits[j]:.3g}{advice}"
        )


def _n_samples(*, rate: float, duration: float, **others: float) -> int:
    """Return rate × duration after checks of these and other numbers above 0."""
    for name, value in {"rate": rate, "duration": duration, **others}.items():
        if not (np.ndim(value) == 0 and np.isfinite(value) and value > 0):
            raise ValueError(f"{name}={value!r} must be a finite number above 0")
    count = round(rate * duration)
    if count < 1:
        raise ValueError(f"duration={duration:g} s at rate={rate:g} a second has no sample")
    return count


def _harmonics(values: Array) -> tuple[Array, Array]:
    """Return aₕ and bₕ of the trigonometric polynomial through equally spaced points."""
    n = len(values)
    spectrum = np.fft.rfft(values, axis=0)[: n // 2] * (2 / n)
    spectrum[0] /= 2
    return spectrum.real.copy(), -spectrum.imag


def _numbers(values: Array) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
