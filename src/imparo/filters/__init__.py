"""Spectral filters: from the spectrum of a matrix to regularized solutions.

A filter replaces 1/σ by a tamer g(σ) on every eigenvalue σ (thesis, chapter 3). A new
one is a class with ``g`` (and, where it iterates, ``iterates``), decorated with
:func:`imparo.persistence.persistent`, and a line in ``_NAMES``.
"""

from collections.abc import Callable
from typing import Any

from imparo.filters.base import Filter, Iterative, largest_eigenvalue
from imparo.filters.conjugate_gradient import ConjugateGradient
from imparo.filters.cutoff import CutOff
from imparo.filters.landweber import Landweber
from imparo.filters.nu import NuMethod
from imparo.filters.preconditioned import Preconditioner, preconditioned_steps
from imparo.filters.spectrum import Spectrum
from imparo.filters.tikhonov import Tikhonov

__all__ = [
    "ConjugateGradient",
    "CutOff",
    "Filter",
    "Iterative",
    "Landweber",
    "NuMethod",
    "Preconditioner",
    "Spectrum",
    "Tikhonov",
    "as_filter",
    "largest_eigenvalue",
    "preconditioned_steps",
]

_NAMES: dict[str, Callable[[], Filter]] = {
    "cg": ConjugateGradient,
    "components": lambda: CutOff(by="components"),
    "cutoff": CutOff,
    "landweber": Landweber,
    "nu": NuMethod,
    "tikhonov": Tikhonov,
}


def as_filter(filter: Any) -> Filter:
    """Return a :class:`Filter` from its name or from itself.

    Parameters
    ----------
    filter : str or Filter
        ``"tikhonov"``, ``"cutoff"`` (by threshold), ``"components"`` (cut-off by
        number), ``"landweber"``, ``"nu"``, ``"cg"``, or an object of this module.

    Returns
    -------
    Filter

    Examples
    --------
    >>> from imparo.filters import as_filter
    >>> as_filter("nu")
    NuMethod(nu=1.0)
    """
    if isinstance(filter, Filter):
        return filter
    if isinstance(filter, str) and filter in _NAMES:
        return _NAMES[filter]()
    raise ValueError(
        f"filter={filter!r} is not known; give one of {', '.join(sorted(_NAMES))} or a filter "
        "object of imparo.filters"
    )
