"""Powers of two to scale by: they change no digit, and keep squares from overflowing."""

from typing import Any

import numpy as np


def power_of_two(values: Any) -> float:
    """Return the power of two at or above the largest absolute value; 1 if all are 0.

    At most 2¹⁰²³, the largest there is.

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
