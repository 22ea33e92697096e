"""Base parameters: the combinations of inertial parameters that motion can reveal.

The columns of the regressor Φ are linearly dependent: the mass of a hand and the first moment
of the forearm that carries it act on the outputs in the same way, and no data tell them apart.
With r independent columns Φ_b and every column a combination of them, Φ = Φ_b C, it is
Φ π = Φ_b (C π) for every state. The r numbers π_b = C π are the base parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from imparo.dynamics.robot import Robot
from imparo.engine import Array
from imparo.errors import PrecisionWarning, warn_user
from imparo.persistence import persistent

_TOLERANCE = 1e-8
# Exact dependence leaves 1e-15 or so and exact independence 1e-2: between these, neither.
_UNCLEAR = (1e-11, 1e-4)
# Coefficients below, in columns of equal size, are rounding errors.
_NOTHING = 1e-9
_SPEED, _ACCELERATION = 2.0, 8.0  # so that inertial forces are about as large as weights


@persistent
@dataclass(frozen=True, eq=False, repr=False)
class BaseParameters:
    """Independent columns of a regressor, and what their parameters stand for.

    Attributes
    ----------
    columns : array of shape (r,)
        Numbers of the independent columns, in ascending order.
    combinations : array of shape (r, p)
        C in π_b = C π. It is the identity in ``columns``.
    names : tuple of str
        The combinations in words, as "mcx of forearm + 0.0123 mass of hand".
    without_effect : tuple of str
        Parameters whose columns are 0: no output depends on them.
    smallest_kept, largest_dropped : float
        How clear the choice was: what a column adds to those before it as a share of its norm,
        or its norm as a share of the largest one, whichever is less. The least of the
        independent columns, and the largest of the others.
    """

    columns: Array
    combinations: Array
    names: tuple[str, ...]
    without_effect: tuple[str, ...]
    smallest_kept: float
    largest_dropped: float

    @property
    def rank(self) -> int:
        """Number r of base parameters."""
        return len(self.columns)

    @property
    def gap(self) -> float:
        """How many times larger ``smallest_kept`` is; 1e8 and more for exact dependence."""
        tiny = float(np.finfo(float).tiny)
        return self.smallest_kept / max(self.largest_dropped, tiny)

    def reduce(self, Phi: Any) -> Array:
        """Return the independent columns of a regressor.

        Parameters
        ----------
        Phi : array of shape (..., p)

        Returns
        -------
        array of shape (..., r)
        """
        array = np.asarray(Phi)
        p = self.combinations.shape[1]
        if array.ndim == 0 or array.shape[-1] != p:
            raise ValueError(
                f"the regressor has the shape {array.shape}; {p} columns were expected"
            )
        return array[..., self.columns]

    def of(self, parameters: Any) -> Array:
        """Return the base parameters C π of full ones.

        Parameters
        ----------
        parameters : array of shape (p,)

        Returns
        -------
        array of shape (r,)
        """
        return self.combinations @ vector(parameters, self.combinations.shape[1], "parameters")

    def table(self, values: Any, deviations: Any = None) -> list[tuple[Any, ...]]:
        """Return rows (name, value) or (name, value, standard deviation).

        Parameters
        ----------
        values : array of shape (r,)
            Base parameters, identified or of :meth:`of`.
        deviations : array of shape (r,), optional
            Their standard deviations.

        Returns
        -------
        list of tuple
        """
        parts: list[Sequence[Any]] = [self.names, vector(values, self.rank, "values").tolist()]
        if deviations is not None:
            parts.append(vector(deviations, self.rank, "deviations").tolist())
        return list(zip(*parts, strict=True))

    def __repr__(self) -> str:
        p = self.combinations.shape[1]
        return f"BaseParameters({self.rank} of {p} parameters, gap {self.gap:.0e})"


def base_parameters(
    robot: Robot,
    *,
    rng: int | np.random.Generator = 0,
    n_samples: int | None = None,
    tolerance: float | None = None,
) -> BaseParameters:
    """Return the combinations of parameters that the outputs of a robot depend on.

    Regressors at random states are stacked, their columns scaled to norm 1 and taken one by
    one, from the base of the robot to its tip (a QR decomposition without pivoting). What a
    column adds to those before it is either clear or nothing: in the second case its parameter
    is regrouped onto those of earlier columns, as textbooks do.

    Cost: n regressors and O(n T p²) operations; 0.01 s for an arm, 0.3 s for a whole humanoid.

    Parameters
    ----------
    robot : Robot
        Its outputs count: a force/torque sensor reveals more than the torques of joints, and
        gravity along the axis of the first joint reveals less.
    rng : int or Generator, default 0
        For the states: positions within the limits of the joints (±π where there are none),
        velocities and accelerations normal, with deviations 2 and 8 in SI units.
    n_samples : int, optional
        Number of states; at least 200 and enough for four rows a column if None.
    tolerance : float, optional
        A column that adds less than this share of its norm is dependent, and one whose norm is
        less than this share of the largest is 0. If None, it is 1e-8, and a warning is given
        where that is not clear.

    Returns
    -------
    BaseParameters

    Examples
    --------
    Two links of a planar arm, 0.5 m apart: the mass of the second is felt as part of the first.

    >>> from imparo.dynamics import Robot
    >>> from imparo.dynamics.base import base_parameters
    >>> arm = Robot.from_dh([(0, 0, 0, 0), (0.5, 0, 0, 0)], gravity=(0, -9.81, 0))
    >>> base = base_parameters(arm)
    >>> for name in base.names:
    ...     print(name)
    mcx of link_1 + 0.5 mass of link_2
    mcy of link_1
    Izz of link_1 + 0.25 mass of link_2
    mcx of link_2
    mcy of link_2
    Izz of link_2
    >>> len(base.without_effect)
    13
    """
    names = robot.parameter_names
    p, T = len(names), robot.n_outputs
    n = max(200, -(-4 * p // T)) if n_samples is None else int(n_samples)
    if n * T < p:
        raise ValueError(
            f"n_samples={n_samples} gives {max(n, 0) * T} rows for {p} columns; use at least "
            f"{-(-p // T)}, better four times as many"
        )
    limit = _TOLERANCE if tolerance is None else float(tolerance)
    if not 0 < limit < 1:
        raise ValueError(f"tolerance={tolerance!r} must be a number between 0 and 1")
    Phi = robot.regressor(*_random_states(robot, n, np.random.default_rng(rng)))
    base = _decomposed(Phi.reshape(-1, p), names, limit)
    if tolerance is None:
        _warn_if_unclear(base)
    return base


def vector(values: Any, size: int, name: str) -> Array:
    """Return a vector of finite numbers, or say what is wrong with it.

    Parameters
    ----------
    values : array-like
    size : int
    name : str
        For the sentence.
    """
    array = np.asarray(values, float)
    if array.shape != (size,):
        raise ValueError(f"{name} has the shape {array.shape}; {size} numbers were expected")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite numbers; all must be finite")
    return array


def _random_states(robot: Robot, n: int, rng: np.random.Generator) -> tuple[Array, ...]:
    low, high = robot.position_limits.T
    limited = np.isfinite(low) & np.isfinite(high) & (low < high)
    low, high = np.where(limited, low, -np.pi), np.where(limited, high, np.pi)
    shape = (n, robot.n_joints)
    dq, ddq = (size * rng.normal(size=shape) for size in (_SPEED, _ACCELERATION))
    return rng.uniform(low, high, shape), dq, ddq


def _decomposed(A: Array, names: Sequence[str], tolerance: float) -> BaseParameters:
    """Return the base parameters of the stacked regressors A, shape (rows, p)."""
    R = np.linalg.qr(A, mode="r")  # the same inner products in fewer rows
    norms = np.linalg.norm(R, axis=0)
    shares = norms / max(float(norms.max()), np.finfo(float).tiny)
    nothing = shares <= tolerance
    R = R / np.where(nothing, 1.0, norms)
    # Gram-Schmidt, twice, and not Householder: what is left of a dependent column has no
    # direction of its own, and must not be taken out of later columns.
    Q = np.empty((len(R), 0))
    kept, added = [], []
    dropped = shares[nothing].tolist()
    for j in np.flatnonzero(~nothing):
        rest = R[:, j] - Q @ (Q.T @ R[:, j])
        rest -= Q @ (Q.T @ rest)
        size = float(np.linalg.norm(rest))
        if size > tolerance:
            kept.append(int(j))
            added.append(min(size, float(shares[j])))
            Q = np.column_stack([Q, rest / size])
        else:
            dropped.append(min(size, float(shares[j])))
    columns = np.array(kept, dtype=np.intp)
    C = _coefficients(Q, R, columns, nothing)
    scales = np.where(nothing, 1.0, norms)
    C *= scales / scales[columns, None]
    return BaseParameters(
        columns=columns,
        combinations=C,
        names=tuple(_in_words(row, int(j), names) for row, j in zip(C, columns, strict=True)),
        without_effect=tuple(names[j] for j in np.flatnonzero(nothing).tolist()),
        smallest_kept=min(added, default=1.0),
        largest_dropped=max(dropped, default=0.0),
    )


def _coefficients(Q: Array, R: Array, columns: Array, nothing: Array) -> Array:
    """Return C for columns of norm 1, without what rounding alone has made."""
    C = solve_triangular(Q.T @ R[:, columns], Q.T @ R)
    C[:, nothing] = 0.0
    C[np.abs(C) < _NOTHING] = 0.0
    C[columns[:, None] > np.arange(R.shape[1])] = 0.0  # a column is of earlier ones only
    C[:, columns] = np.eye(len(columns))
    return np.asarray(C)


def _in_words(row: Array, column: int, names: Sequence[str]) -> str:
    words = names[column]
    for j in np.flatnonzero(row).tolist():
        if j != column:
            size = f"{abs(row[j]):.4g}"
            words += (
                f" {'-' if row[j] < 0 else '+'} {'' if size == '1' else size + ' '}{names[j]}"
            )
    return words


def _warn_if_unclear(base: BaseParameters) -> None:
    low, high = _UNCLEAR
    if base.smallest_kept < high or base.largest_dropped > low:
        warn_user(
            "the base parameters are not clear-cut: a column that was kept adds "
            f"{base.smallest_kept:.1e} of its size, and one that was not "
            f"{base.largest_dropped:.1e} (angles rounded to 1.5708 in a URDF do this); choose "
            "a tolerance between rounding and what matters, as tolerance=1e-4",
            PrecisionWarning,
        )
