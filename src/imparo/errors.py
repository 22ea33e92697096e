"""Typed errors and warnings: one clear sentence each, and a type to catch.

Every error that imparo raises for bad input is a ``ValueError`` or a
``TypeError``, as scikit-learn's users expect; the types here name the failures
that a program may want to handle.
"""

import sys
import warnings


class NotPositiveDefiniteError(ValueError):
    """A matrix that must be positive definite is not, even with jitter."""


class DowndateError(NotPositiveDefiniteError):
    """Removing these rows would leave a factor that is not positive definite."""


class FileFormatError(ValueError):
    """A model file is truncated, altered, newer than this imparo, or not one of ours."""


class MemoryBudgetError(MemoryError, ValueError):
    """The work cannot be done within the memory that the user gave."""


class DeviceError(RuntimeError):
    """A device that was asked for is not there, or failed in the middle."""


class ClusterError(RuntimeError):
    """A cluster does not answer, has no workers, or lost them in the middle."""


class ImparoWarning(UserWarning):
    """Base of all warnings of this library, so that they can be filtered together."""


class JitterWarning(ImparoWarning):
    """A matrix was shifted by a small multiple of the identity to factor it."""


class SelectionWarning(ImparoWarning):
    """The best point lies where an automatic grid ends."""


class PrecisionWarning(ImparoWarning):
    """A parameter is below what the floating-point type can resolve."""


class DeviceWarning(ImparoWarning):
    """A device could not be used, and the work was done on the CPU instead."""


class RecoveryWarning(ImparoWarning):
    """A learner was recovered from disk, and an unfinished write was cut off."""


def warn_user(message: str, category: type[ImparoWarning]) -> None:
    """Warn at the line of the user's code that called into the library."""
    level, frame = 2, sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame.f_globals.get("__name__", "").partition(".")[0] == package:
        if frame.f_back is None:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
