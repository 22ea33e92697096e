"""Who may use the service: a token in a header, or a cookie that was got for it."""

import hashlib
import hmac
import secrets
from urllib.parse import quote

# With the token's own ending: browsers share cookies between the ports of a machine, and who
# logs in to one service would be logged out of the other.
COOKIE = "imparo_session_"
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
        self._cookie = "" if token is None else _digest(token, "session")
        self._name = COOKIE + ("" if token is None else _digest(token, "name")[:8])

    def admits(self, headers: dict[bytes, bytes]) -> bool:
        """Return whether a request with these headers may pass."""
        if self.token is None:
            return True
        kind, _, shown = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer":
            return self.knows(shown.strip())
        return _same(
            _cookie_in(headers.get(b"cookie", b""), self._name.encode()), self._cookie.encode()
        )

    def knows(self, token: bytes) -> bool:
        """Return whether this is the token."""
        return self.token is not None and _same(token, self.token.encode())

    def cookie(self, root: str = "") -> str:
        """Return the header's value that sets the cookie.

        Parameters
        ----------
        root : str
            Below which path the service is.
        """
        secure = "; Secure" if self._tls else ""
        return (
            f"{self._name}={self._cookie}; Max-Age={_MONTH}; Path={quote(root) or '/'}; "
            f"HttpOnly; SameSite=Strict{secure}"
        )


def _digest(token: str, purpose: str) -> str:
    return hmac.new(token.encode(), f"imparo {purpose}".encode(), hashlib.sha256).hexdigest()


def _same(a: bytes, b: bytes) -> bool:
    return bool(b) and hmac.compare_digest(a, b)


def _cookie_in(header: bytes, wanted: bytes) -> bytes:
    # By hand: the standard library takes seconds for cookies that were made to take them.
    for part in header.split(b";"):
        name, _, value = part.partition(b"=")
        if name.strip() == wanted:
            return value.strip()
    return b""
