"""Columns beside those of rigid bodies: sensor offsets, friction, rotors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imparo.engine import Array

OFFSET, VISCOUS, COULOMB, ROTOR = "offset", "viscous", "coulomb", "rotor"
EXTRAS = (OFFSET, VISCOUS, COULOMB, ROTOR)
# Speed at which Coulomb friction has 76 % of its size: a sign would follow the noise of a
# velocity that is nearly 0.
CREEP = 0.02


def check_extras(extras: Any, *, of_torques: bool) -> tuple[str, ...]:
    """Return names of extra columns, checked.

    Parameters
    ----------
    extras : sequence of str
    of_torques : bool
        Whether outputs are torques of joints, and not the wrench at a sensor.
    """
    try:
        names = (extras,) if isinstance(extras, str) else tuple(extras or ())
    except TypeError:
        raise ValueError(
            f"extras={extras!r} must be names: {', '.join(EXTRAS)}; or empty"
        ) from None
    for name in names:
        if name not in EXTRAS:
            raise ValueError(f"extras={extras!r} may hold {', '.join(EXTRAS)}, not {name!r}")
        if name != OFFSET and not of_torques:
            raise ValueError(
                f"extras={extras!r}: {name} acts in the joints, and a force/torque sensor in a "
                "link does not feel it; only 'offset' can be had with a sensor"
            )
    if len(set(names)) != len(names):
        raise ValueError(f"extras={extras!r} names something twice")
    return names


def extra_columns(extras: Sequence[str], X: Array, n_outputs: int) -> Array:
    """Return extra columns of the regressor, T for each name.

    Output t has, for each name, one column of its own: 1 (offset), dq_t (viscous),
    tanh(dq_t/0.02) (Coulomb), ddq_t (inertia of the rotor).

    Parameters
    ----------
    extras : sequence of str
    X : array of shape (n, 3T)
        q, dq and ddq; with an offset only, of any width.
    n_outputs : int
        T.

    Returns
    -------
    array of shape (n, T, T × names)
    """
    T = n_outputs
    Phi = np.zeros((len(X), T, T * len(extras)))
    places = np.arange(T)
    for k, name in enumerate(extras):
        Phi[:, places, k * T + places] = _values(name, X, T)
    return Phi


def _values(name: str, X: Array, T: int) -> Any:
    if name == OFFSET:
        return 1.0
    if name == ROTOR:
        return X[:, 2 * T :]
    dq = X[:, T : 2 * T]
    return dq if name == VISCOUS else np.tanh(dq / CREEP)


def extra_names(extras: Sequence[str], output_names: Sequence[str]) -> tuple[str, ...]:
    """Return names such as "offset of Fx", in the order of the columns."""
    return tuple(f"{name} of {output}" for name in extras for output in output_names)
