"""Who has asked too much, and whether too much is in memory."""

import time
from collections import OrderedDict
from collections.abc import Callable

_ADDRESSES = 10_000


class Rates:
    """Buckets that fill at a rate and hold a burst.

    Parameters
    ----------
    rate : float
        A second; 0 lets everything through.
    burst : float
    clock : function

    Examples
    --------
    >>> from imparo.service.rates import Rates
    >>> rates = Rates(1.0, 2.0, clock=lambda: 0.0)
    >>> [rates.take("10.0.0.7") for _ in range(3)], rates.take("10.0.0.8")
    ([True, True, False], True)
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst, self._clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Take one token of an address; return whether there was one."""
        if self.rate == 0:
            return True
        level, now = self._level(address)
        enough = level >= 1
        self._buckets[address] = (level - 1 if enough else level, now)
        self._buckets.move_to_end(address)
        if len(self._buckets) > _ADDRESSES:
            self._buckets.popitem(last=False)
        return enough

    def give_back(self, address: str) -> None:
        """Put back a token that was taken."""
        if self.rate != 0:
            level, now = self._level(address)
            self._buckets[address] = (min(self.burst, level + 1), now)

    def has(self, address: str) -> bool:
        """Return whether there is a token, and take none."""
        return self.rate == 0 or self._level(address)[0] >= 1

    def _level(self, address: str) -> tuple[float, float]:
        now = self._clock()
        level, since = self._buckets.get(address, (self.burst, now))
        return min(self.burst, level + (now - since) * self.rate), now


class Arriving:
    """Bytes of requests and messages that are in memory, of all clients together.

    Parameters
    ----------
    most : int

    Examples
    --------
    >>> from imparo.service.rates import Arriving
    >>> arriving = Arriving(10)
    >>> arriving.add(11)
    >>> arriving.full
    True
    """

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0

    def add(self, size: int) -> None:
        """Count bytes that have come, or, below 0, that have gone."""
        self._held += size

    @property
    def full(self) -> bool:
        """Whether there are more than there is room for."""
        return self._held > self._most
