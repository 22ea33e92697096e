"""The one jitter policy of the library: detect, escalate by ten, warn, give up."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from imparo.errors import JitterWarning, NotPositiveDefiniteError

Factor = TypeVar("Factor")

TRIES = 8
# A larger share of the diagonal would change the answer: 5 tries in float32.
LARGEST_SHARE = 1e-2


def factor_with_jitter(
    attempt: Callable[[float], Factor | None],
    scale: float,
    dtype: np.dtype[Any],
    what: str = "matrix",
) -> Factor:
    """Factor A, or A + jI with the smallest j = 10ᵏ·ε·scale that works.

    Parameters
    ----------
    attempt : callable
        ``attempt(j)`` returns the factor of A + jI, or None where it is not
        positive definite.
    scale : float
        Size of the matrix, such as its mean diagonal entry; j is relative to it.
    dtype : dtype
        Floating-point type; j starts at its machine epsilon times ``scale``.
    what : str
        Name of the matrix in the messages.

    Returns
    -------
    factor
        What ``attempt`` returned first.

    Raises
    ------
    NotPositiveDefiniteError
        If eight escalations, or those up to a hundredth of ``scale``, do not help: the
        matrix is not positive semidefinite up to rounding, and a shift large enough to
        hide it would change the answer.

    Warns
    -----
    JitterWarning
        If any jitter was needed, with its amount.
    """
    factor = attempt(0.0)
    if factor is not None:
        return factor
    scale = abs(scale) if np.isfinite(scale) and scale != 0 else 1.0
    jitter = float(np.finfo(dtype).eps) * scale
    for _ in range(TRIES):
        if jitter > LARGEST_SHARE * scale:
            break
        factor = attempt(jitter)
        if factor is not None:
            warnings.warn(
                f"the {what} is singular in {dtype} and {jitter:.1e} was added to its "
                "diagonal; remove duplicate rows or raise the penalty to avoid this",
                JitterWarning,
                stacklevel=3,
            )
            return factor
        jitter *= 10.0
    raise NotPositiveDefiniteError(
        f"the {what} is not positive definite even with {jitter / 10:.1e} added to its "
        "diagonal; check that the kernel is positive definite and the data finite"
    )
