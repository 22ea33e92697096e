"""Motion of rigid bodies, and the wrenches it needs, as columns of a regressor.

All of it is in the axes of one frame, for any number of states. S(u) v = u × v; L(u) turns six
moments of inertia into I u. A body has m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
"""

import numpy as np

from imparo.engine import Array

OF_BODY = 10  # parameters of a body


# S and L of the three axes: for one state two products take a tenth of the time that filling
# in matrices takes.
_CROSSING = np.array([np.cross(np.eye(3), axis) for axis in np.eye(3)])
_INERTIAL = np.array(
    [
        [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]],
        [[0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0]],
        [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]],
    ],
    float,
)


def crossing(u: Array) -> Array:
    """Return S(u) with S(u) v = u × v, shape (..., 3, 3)."""
    S: Array = (u @ _CROSSING.reshape(3, 9)).reshape(*u.shape, 3)
    return S


def spinning(w: Array, dw: Array) -> Array:
    """Return S(ω̇) + S(ω)²: accelerations of points of a turning body by their places."""
    S = crossing(w)
    both: Array = crossing(dw) + S @ S
    return both


def inertial(u: Array) -> Array:
    """Return L(u) with L(u) (Ixx Ixy Iyy Ixz Iyz Izz) = I u, shape (..., 3, 6)."""
    L: Array = (u @ _INERTIAL.reshape(3, 18)).reshape(*u.shape, 6)
    return L


def body_columns(w: Array, dw: Array, a: Array) -> Array:
    """Return the wrench that a body needs, as six rows of its ten parameters.

    Parameters
    ----------
    w, dw, a : array of shape (..., 3)
        Angular velocity and acceleration, and acceleration of the origin less gravity.

    Returns
    -------
    array of shape (..., 6, 10)
    """
    out = np.zeros((*w.shape[:-1], 6, OF_BODY))
    out[..., :3, 0] = a
    out[..., :3, 1:4] = spinning(w, dw)
    out[..., 3:, 1:4] = -crossing(a)
    out[..., 3:, 4:] = inertial(dw) + crossing(w) @ inertial(w)
    return out


def carry(R: Array, place: Array, columns: Array) -> None:
    """Turn wrenches in a frame into those in the frame before, in place.

    Parameters
    ----------
    R : array of shape (n, 3, 3)
        Axes of the frame in the one before.
    place : array of shape (3,)
        Its origin there.
    columns : array of shape (n, 6, k)
    """
    force = R @ columns[:, :3]
    columns[:, 3:] = R @ columns[:, 3:] + crossing(place) @ force
    columns[:, :3] = force
