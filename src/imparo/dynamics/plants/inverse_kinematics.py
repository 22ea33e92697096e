"""Joint positions for points of a disc, near the middle of the joints' ranges."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from imparo.dynamics.robot import Robot
from imparo.engine import Array

PLANES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
# Least Σ u²/2 + _STEEP u⁶: near the middle a parabola, near the limits (|u| = 1) a wall.
_STEEP = 2.0
_DAMPING = 1e-4  # m, in units of the scaled Jacobian's singular values
_LARGEST_STEP = 0.25  # of the half ranges
_STEPS = 100
_EXACT = 1e-9
REACHED = 1e-6  # m; what is missed by less counts as reached


def middle(robot: Robot) -> Array:
    """Return the middle of the joints' ranges, 0 where there is no limit; shape (J,).

    Parameters
    ----------
    robot : Robot
    """
    limits = robot.position_limits
    bounded = np.isfinite(limits).all(axis=1, keepdims=True)
    return np.where(bounded, limits, 0.0).mean(axis=1)


def half_ranges(robot: Robot) -> Array:
    """Return half the joints' ranges, π where there is no limit; shape (J,).

    Parameters
    ----------
    robot : Robot
    """
    limits = robot.position_limits
    bounded = np.isfinite(limits).all(axis=1, keepdims=True)
    widths = np.where(bounded, limits, 0.0) @ [-0.5, 0.5]
    return np.where(widths > 0, widths, np.pi)


def solve(robot: Robot, frame: str, targets: Array, q: Array) -> tuple[Array, Array]:
    """Return positions of joints at which a link is at given points, and what is missing.

    Sequential quadratic programming for least Σ u²/2 + 2 u⁶ under p(q) = target, u the
    position relative to the middle in units of half the range: a damped least-squares step
    towards the target and a Newton step of the sum in the null space of the Jacobian.
    O(n) for n points at once, some 40 µs a point and step.

    Parameters
    ----------
    robot : Robot
    frame : str
    targets : array of shape (n, 3)
    q : array of shape (n, J)
        Where the search begins.

    Returns
    -------
    q : array of shape (n, J)
    missed : array of shape (n,)
        Distances to the targets (m).
    """
    centre, half = middle(robot), half_ranges(robot)
    u = (q - centre) / half
    active = np.arange(len(u))
    missed = np.full(len(u), np.inf)
    for _ in range(_STEPS):
        q = centre + half * u[active]
        error = targets[active] - robot.position(q, frame)
        missed[active] = np.linalg.norm(error, axis=1)
        step = _step(robot.jacobian(q, frame) * half, u[active], error)
        size = np.linalg.norm(step, axis=1)
        step *= np.minimum(1, _LARGEST_STEP / np.maximum(size, 1e-30))[:, None]
        u[active] += step
        active = active[(missed[active] > _EXACT) | (size > _EXACT)]
        if not len(active):
            break
    return centre + half * u, missed


def _step(J: Array, u: Array, error: Array) -> Array:
    """Return a step of u for Jacobians with respect to u."""
    gradient = u + 6 * _STEEP * u**5
    root = 1 / np.sqrt(1 + 30 * _STEEP * u**4)  # of the inverse Hessian, which is diagonal
    U, s, Vt = np.linalg.svd(J * root[:, None, :], full_matrices=False)
    along = np.einsum("nik,ni->nk", U, error) * s / (s**2 + _DAMPING**2)
    pull = -root * gradient
    # Directions that do not move the link are those outside the span of Vt.
    inside = np.einsum("nkj,nj->nk", Vt, pull) * (s > 1e-6)
    return root * (pull + np.einsum("nkj,nk->nj", Vt, along - inside))


class DiscSolver:
    """Inverse kinematics on circles about a centre.

    Circles are blown up from the centre in steps, each point beginning at its solution on the
    circle before. A disc has no holes, so that the joints' path on each circle closes.

    Parameters
    ----------
    robot : Robot
    frame : str
    centre : array of shape (3,)
    plane : {"xy", "xz", "yz"}
    start : array of shape (J,), optional
        Where the search at the centre begins; the middle of the ranges if None.
    """

    def __init__(
        self, robot: Robot, frame: str, centre: Array, plane: str, start: Any = None
    ) -> None:
        self.robot, self.frame, self.centre, self.plane = robot, frame, centre, plane
        q = middle(robot) if start is None else np.asarray(start, float)
        if q.shape != (robot.n_joints,) or not np.isfinite(q).all():
            raise ValueError(
                f"start has the shape {q.shape}; {robot.n_joints} finite numbers were "
                f"expected, for {', '.join(robot.joints)}"
            )
        self.start = q

    def points(self, radius: float, angles: Array) -> Array:
        """Return points of a circle, shape (n, 3).

        Parameters
        ----------
        radius : float
        angles : array of shape (n,)
            From the plane's first axis towards its second (rad).
        """
        places = np.tile(self.centre, (len(angles), 1))
        for axis, value in zip(
            PLANES[self.plane], (np.cos(angles), np.sin(angles)), strict=True
        ):
            places[:, axis] += radius * value
        return places

    def round(self, radius: float, n: int, circles: int = 4) -> tuple[Array, float]:
        """Return the joints' positions at equally spaced points of a circle.

        Parameters
        ----------
        radius : float
        n : int
            How many points.
        circles : int, default 4
            In how many steps the circle is blown up.

        Returns
        -------
        q : array of shape (n, J)
        missed : float
            Largest distance to a point; where it is not 0, that of the first circle, or the
            centre, that cannot be reached.
        """
        angles = 2 * np.pi * np.arange(n) / n
        q, missed = solve(self.robot, self.frame, self.centre[None], self.start[None])
        q = np.repeat(q, n, axis=0)
        for r in radius * np.arange(1, circles + 1) / circles:
            if missed.max() > REACHED:
                break
            q, missed = solve(self.robot, self.frame, self.points(r, angles), q)
        return q, float(missed.max())


class Centre(NamedTuple):
    """A place for circles.

    Attributes
    ----------
    position : array of shape (3,)
        In the root link's frame (m).
    start : array of shape (J,)
        The joints' positions there, for the ``start`` of :func:`circle`.
    margin : float
        Least distance of a joint from a limit, in halves of its range: 1 in the middle, 0 at
        the limit.
    motion: float
        Largest motion of a joint (rad) for a radian of the circle: at least its velocity
        times radius / speed.
    """

    position: Array
    start: Array
    margin: float
    motion: float

    @property
    def worth(self) -> float:
        """By which places are compared."""
        return self.margin / (1 + self.motion) if self.margin > 0 else self.margin


def feasible_centre(
    robot: Robot,
    frame: str,
    *,
    planes: Sequence[str] = ("xy", "xz"),
    radius: float = 0.1,
    n_tries: int = 300,
    seed: int = 0,
) -> Centre:
    """Return a centre about which circles fit into the joints' ranges, with room to spare.

    Tries the places of random joint positions, and then places around the best one: that of
    largest margin / (1 + κ), κ the largest motion of a joint (rad) for a radian of the circle.
    Joints then move at no more than about κ speed / radius. Costs about 20 ms a try.

    Parameters
    ----------
    robot : Robot
    frame : str
        Link or joint whose origin is to run round.
    planes : sequence of {"xy", "xz", "yz"}
        The planes of the circles, all about the same centre.
    radius : float, default 0.1
        Metres.
    n_tries : int, default 300
    seed : int, default 0

    Raises
    ------
    ValueError
        If no place was found. For the iCub's four joints of the right arm there is none for
        circles of 10 cm in both planes; ask for each plane alone, or lock the torso elsewhere.

    Examples
    --------
    >>> from imparo.dynamics import Robot
    >>> from imparo.dynamics.plants.inverse_kinematics import feasible_centre
    >>> arm = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0), (1.0, 0, 0, 0)])
    >>> place = feasible_centre(arm, "link_3", planes=["xy"], n_tries=10)
    >>> place.position.shape, place.margin > 0
    ((3,), True)
    """
    for plane in planes:
        if plane not in PLANES:
            raise ValueError(f"plane={plane!r} must be one of {', '.join(PLANES)}")
    rng = np.random.default_rng(seed)
    best = Centre(np.zeros(3), middle(robot), -np.inf, np.inf)
    for u in rng.uniform(-0.8, 0.8, (n_tries, robot.n_joints)):
        q = middle(robot) + half_ranges(robot) * u
        place = _tried(robot, frame, robot.position(q, frame), q, planes, radius)
        best = max(best, place, key=lambda one: one.worth)
    for size in np.geomspace(radius / 2, radius / 40, n_tries // 4):
        if best.margin == -np.inf:
            break
        moved = best.position + size * rng.normal(size=3)
        place = _tried(robot, frame, moved, best.start, planes, radius)
        best = max(best, place, key=lambda one: one.worth)
    if best.margin < 0:
        raise ValueError(
            f"no centre was found about which {frame} can run round circles of {radius:g} m in "
            f"{' and '.join(planes)} within the limits of the joints, in {n_tries} tries; "
            "shrink the radius, ask for one plane at a time, or lock other joints elsewhere"
        )
    return best


def _tried(
    robot: Robot, frame: str, place: Array, q: Array, planes: Sequence[str], radius: float
) -> Centre:
    """Return a place with its margin, −∞ where it does not do."""
    low, high = robot.position_limits.T
    start, missed = solve(robot, frame, place[None], q[None])
    margin, motion, n = np.inf if missed[0] < REACHED else -np.inf, 0.0, 24
    for plane in planes:
        if margin == -np.inf:
            break
        rows, off = DiscSolver(robot, frame, place, plane, start[0]).round(radius, n, 3)
        room = np.minimum(rows - low, high - rows) / half_ranges(robot)
        margin = min(margin, float(room.min())) if off < REACHED else -np.inf
        steps = np.abs(np.roll(rows, 1, axis=0) - rows).max()
        motion = max(motion, float(steps) * n / (2 * np.pi))
    return Centre(place, start[0], margin, motion)
