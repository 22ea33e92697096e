"""Which lessons were learned under a key, so that none is learned twice."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: Keys that are known of one learner; older ones are forgotten.
KEYS = 10_000


class Key(NamedTuple):
    """The key of a lesson, and a digest of what came with it."""

    name: str
    digest: str


class Learned(NamedTuple):
    """What was learned under a key.

    Attributes
    ----------
    name, digest : str
        Of the key.
    rows : int
        Of the lesson, that are learned.
    number, seen : int
        Of the learner's last change with them, and its examples after it.
    """

    name: str
    digest: str
    rows: int
    number: int
    seen: int


class Keys:
    """The keys that came last, and what was learned under them.

    Examples
    --------
    >>> from imparo.service.keys import Keys, Learned
    >>> keys = Keys()
    >>> keys.add([Learned("a", "0f", 3, 1, 3), Learned("a", "0f", 5, 2, 5)])
    >>> keys.get("a").rows, keys.get("b")
    (5, None)
    """

    def __init__(self) -> None:
        self._known: dict[str, Learned] = {}

    def add(self, learned: Iterable[Learned]) -> None:
        """Keep what was learned; of a key that is known, in place of what was before."""
        for one in learned:
            self._known.pop(one.name, None)  # the youngest is the last
            self._known[one.name] = one
            if len(self._known) > KEYS:
                del self._known[next(iter(self._known))]

    def get(self, name: str) -> Learned | None:
        """Return what was learned under a key."""
        return self._known.get(name)

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()

    def __iter__(self) -> Iterator[Learned]:
        return iter(self._known.values())
