"""What a floating-point type can resolve, and powers of two to scale by."""

from typing import Any

import numpy as np


def power_of_two(values: Any) -> float:
    """Return the power of two at or above the largest absolute value; 1 if all are 0.

    To scale by it changes no digit and keeps squares from overflowing. At most 2¹⁰²³, the
    largest there is.

    Parameters
    ----------
    values : array or sparse matrix

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.engine import power_of_two
    >>> power_of_two(np.array([3.0, -5.0])), power_of_two(np.ones(2)), power_of_two(np.zeros(2))
    (8.0, 1.0, 1.0)
    """
    if 0 in values.shape:
        return 1.0
    largest = max(float(values.max()), -float(values.min()))
    mantissa, exponent = np.frexp(largest)
    exponent = min(int(exponent) - (mantissa == 0.5), 1023)
    return float(np.ldexp(1.0, exponent)) if largest > 0 else 1.0


def resolution(dtype: np.typing.DTypeLike) -> float:
    """Return ε^{3/4}: the smallest eigenvalue or ridge to divide by, relative to σ_max.

    Coefficients of size 1/(tσ_max) come back from a product with the kernel matrix with
    rounding errors of ε/t; at t = ε^{3/4} these are 1e-4 of the outputs (2e-2 in
    float32), and the eigenvalues themselves are known to as much.

    Parameters
    ----------
    dtype : dtype

    Returns
    -------
    float
    """
    return float(np.finfo(dtype).eps) ** 0.75
