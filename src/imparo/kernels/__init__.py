"""Positive-definite functions: each evaluates a block and states its diagonal and bound.

A new kernel is a frozen dataclass with ``_evaluate``, ``diagonal`` and ``bound``,
decorated with :func:`imparo.persistence.persistent`, and a line in ``_NAMES``.
"""

from collections.abc import Callable
from typing import Any

from imparo.kernels.base import Constant, Kernel, Product, Sum
from imparo.kernels.callables import CallableKernel, Precomputed, pairwise
from imparo.kernels.dot import Linear, Polynomial
from imparo.kernels.spline import Spline
from imparo.kernels.stationary import Gaussian, Laplacian, Matern
from imparo.kernels.widths import median_width, scale_width, widths

__all__ = [
    "CallableKernel",
    "Constant",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Product",
    "Spline",
    "Sum",
    "as_kernel",
    "median_width",
    "pairwise",
    "scale_width",
    "widths",
]

_NAMES: dict[str, Callable[[], Kernel]] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "linear": Linear,
    "matern12": lambda: Matern(0.5),
    "matern32": lambda: Matern(1.5),
    "matern52": lambda: Matern(2.5),
    "polynomial": Polynomial,
    "precomputed": Precomputed,
    "spline": Spline,
}


def as_kernel(kernel: Any) -> Kernel:
    """Return a :class:`Kernel` from a name, a kernel object, or a callable.

    Parameters
    ----------
    kernel : str, Kernel or callable
        ``"gaussian"``, ``"laplacian"``, ``"matern12"``, ``"matern32"``,
        ``"matern52"``, ``"linear"``, ``"polynomial"``, ``"spline"``,
        ``"precomputed"``; or an object of this module; or a function of two blocks
        of rows that returns their kernel matrix.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from imparo.kernels import as_kernel
    >>> as_kernel("matern32")
    Matern(order=1.5, sigma=None)
    >>> as_kernel(lambda X, Z: X @ Z.T).bound
    inf
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel not in _NAMES:
            raise ValueError(
                f"kernel={kernel!r} is not known; give one of {', '.join(sorted(_NAMES))}, "
                "a kernel object or a function of two blocks of rows"
            )
        return _NAMES[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(kernel)
    raise TypeError(
        f"kernel must be a name, a kernel object or a function of two blocks of rows, "
        f"not {kernel!r}"
    )
