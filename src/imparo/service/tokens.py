"""Who may use the service: a token in a header, or a cookie that was got for it."""

import hashlib
import hmac
import secrets

COOKIE = "imparo_session"
_MONTH = 30 * 24 * 3600


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(24)


class Doorkeeper:
    """Compares what is shown with the token, in the same time whatever it is.

    Parameters
    ----------
    token : str or None
        None lets everyone in.
    tls : bool
        Whether cookies may travel by https alone.

    Examples
    --------
    >>> from imparo.service.tokens import Doorkeeper
    >>> keeper = Doorkeeper("a-token-of-sixteen", tls=False)
    >>> keeper.admits({b"authorization": b"Bearer a-token-of-sixteen"})
    True
    >>> keeper.admits({}), keeper.admits({b"authorization": b"Bearer another"})
    (False, False)
    """

    def __init__(self, token: str | None, tls: bool) -> None:
        self.token, self._tls = token, tls
        # The cookie does not hold the token: who reads it off a disk cannot log in elsewhere.
        self._cookie = "" if token is None else _digest(token)

    def admits(self, headers: dict[bytes, bytes]) -> bool:
        """Return whether a request with these headers may pass."""
        if self.token is None:
            return True
        kind, _, shown = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer":
            return self.knows(shown.strip())
        return _same(_cookie_in(headers.get(b"cookie", b"")), self._cookie.encode())

    def knows(self, token: bytes) -> bool:
        """Return whether this is the token."""
        return self.token is not None and _same(token, self.token.encode())

    def cookie(self) -> str:
        """Return the header's value that sets the cookie."""
        secure = "; Secure" if self._tls else ""
        return (
            f"{COOKIE}={self._cookie}; Max-Age={_MONTH}; Path=/; HttpOnly; SameSite=Strict"
            f"{secure}"
        )


def _digest(token: str) -> str:
    return hmac.new(token.encode(), b"imparo session", hashlib.sha256).hexdigest()


def _same(a: bytes, b: bytes) -> bool:
    return bool(b) and hmac.compare_digest(a, b)


def _cookie_in(header: bytes) -> bytes:
    # By hand: the standard library takes seconds for cookies that were made to take them.
    for part in header.split(b";"):
        name, _, value = part.partition(b"=")
        if name.strip() == COOKIE.encode():
            return value.strip()
    return b""
