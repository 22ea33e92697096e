"""What a service is started with: where it listens, who may use it, how much it takes."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """How much of anything the service takes before it says no.

    Attributes
    ----------
    body_bytes, image_bytes, import_bytes : int
        Of a JSON body, of an image, of a file to import.
    arriving_bytes : int
        Of all that arrives at the same time, in memory.
    image_pixels : int
        Width times height.
    rows, columns : int
        Of one request, and of a learner's inputs.
    outputs : int
        Of a regressor.
    features : int
        D of a learner; its factors take 3 D² numbers.
    classes, label_length : int
        Of one learner, and characters of a label.
    learners, robots, sockets, connections : int
        Side by side: learners, simulated arms, WebSockets, connections in all.
    waiting : int
        Rows that may wait for one learner; more are refused, so that those that wait are
        answered soon.
    memory : int
        Bytes that all learners together may take, as far as is known when one is created.
    header_bytes, header_seconds, body_seconds : int, float, float
        How large headers may be, and how long headers and body may take to arrive.
    answer_seconds : float
        How long a request may wait for its turn.
    rate : float
        Requests and messages a second from one address, twice as many at once; 0: any number.
    """

    body_bytes: int = 8 * 2**20
    image_bytes: int = 8 * 2**20
    import_bytes: int = 512 * 2**20
    arriving_bytes: int = 1024 * 2**20
    image_pixels: int = 16_000_000
    rows: int = 4096
    columns: int = 16_384
    outputs: int = 64
    features: int = 4096
    classes: int = 10_000
    label_length: int = 200
    learners: int = 100
    robots: int = 4
    sockets: int = 200
    connections: int = 1000
    waiting: int = 8192
    memory: int = 4 * 2**30
    header_bytes: int = 32 * 2**10
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 10.0
    rate: float = 2000.0


@dataclass(frozen=True)
class Settings:
    """Settings of a service.

    Parameters
    ----------
    folder : path-like
        Where learners live; made if it is missing.
    host, port : str, int
        Where it listens. Port 0 takes a free one.
    token : str or None
        What everyone must show. Needed unless ``host`` is this machine's own.
    sync : "always", "never" or float
        When an example is acknowledged, see :func:`imparo.lifelong.open`.
    limits : Limits
    tls : bool
        Whether it is reached by https.

    Examples
    --------
    >>> from imparo.service import Settings
    >>> Settings("learners").local
    True
    >>> Settings("learners", host="0.0.0.0")
    Traceback (most recent call last):
    ...
    ValueError: host='0.0.0.0' can be reached from other machines; give a token ...
    """

    folder: Path | str
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = field(default=None, repr=False)
    sync: str | float = "always"
    limits: Limits = field(default_factory=Limits)
    tls: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder).absolute())
        if not self.host.strip():
            raise ValueError(
                "host is empty; give an address, such as 127.0.0.1, or 0.0.0.0 for all"
            )
        if self.token is None and not self.local:
            raise ValueError(
                f"host={self.host!r} can be reached from other machines; give a token that all "
                "must show"
            )
        if self.token is not None and (len(self.token) < 16 or not self.token.isprintable()):
            raise ValueError(
                "the token must have at least 16 printable characters; leave it out to have "
                "one made"
            )

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_local(self.host)


def is_local(host: str) -> bool:
    """Return whether an address to listen on is one that only this machine can reach.

    Parameters
    ----------
    host : str

    Examples
    --------
    >>> from imparo.service.settings import is_local
    >>> is_local("127.0.0.1"), is_local("::1"), is_local("0.0.0.0"), is_local("robot.local")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
