"""What goes wrong with a request, and the HTTP status that says so."""

import logging
from typing import Any

from sklearn.exceptions import NotFittedError

_log = logging.getLogger("imparo.service")
# To a client that has gone; for the log and the metrics.
LEFT = "the request was not sent to its end; nothing was done"


class ServiceError(Exception):
    """A request that is not done; the message is one sentence for whoever sent it.

    Attributes
    ----------
    status : int
        Of HTTP.
    retry_after : int or None
        Seconds after which it may be tried again.
    learned : int or None
        Rows that were learned all the same.
    """

    status = 500
    retry_after: int | None = None
    learned: int | None = None

    def content(self) -> dict[str, Any]:
        """Return what is told, as :class:`~imparo.service.schemas.Problem` has it."""
        text = str(self).encode("utf-8", "replace").decode()
        return {"error": text} | ({} if self.learned is None else {"learned": self.learned})


class Malformed(ServiceError):
    """It is not what it says it is."""

    status = 400


class Refused(ServiceError):
    """The request cannot be done as it is."""

    status = 422


class Missing(ServiceError):
    """What it names is not there."""

    status = 404


class Conflict(ServiceError):
    """It does not go with what is there."""

    status = 409


class Damaged(Conflict):
    """What it names cannot be read, and to try again changes nothing."""


class Begun(Conflict):
    """A part of it is done, or all perhaps: whoever sent it all again would do that twice."""

    def content(self) -> dict[str, Any]:
        """Return what is told; rows that were learned are null where that is not known."""
        return {"learned": None, **super().content()}


class TooMuch(ServiceError):
    """It is larger than the service takes."""

    status = 413


class WrongKind(ServiceError):
    """Its content is of a kind that is not taken."""

    status = 415


class Busy(ServiceError):
    """The service has too much to do; nothing was changed."""

    status = 503
    retry_after = 1


class Throttled(ServiceError):
    """Too many requests from one address."""

    status = 429
    retry_after = 1


class Unavailable(ServiceError):
    """What it needs does not work at present; to send it again does nothing twice."""

    status = 503
    retry_after = 30


class Unready(Unavailable):
    """Learners are being opened, or closed."""

    retry_after = 1


def explained(error: BaseException) -> ServiceError:
    """Return an error as one that a client can be told."""
    if isinstance(error, ServiceError):
        return error
    text = " ".join(str(error).split())
    if isinstance(error, NotFittedError):
        return Conflict(text)
    if isinstance(error, MemoryError):
        return Unavailable(f"there is not enough memory for this ({text}); nothing was done")
    if isinstance(error, ImportError):
        return Unavailable(text)
    if isinstance(error, OSError):
        return Unavailable(f"the disk did not take it ({text}); nothing was done")
    if isinstance(error, ValueError | TypeError):
        return Refused(text)
    _log.error("a bug", exc_info=error)
    return ServiceError(f"this is a bug of imparo ({type(error).__name__}); see the log")
