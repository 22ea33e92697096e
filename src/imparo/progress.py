"""Progress on the terminal, where the user asks for it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")


def track(
    items: Iterable[Item],
    total: int,
    description: str,
    progress: bool | Callable[[int, int, str], Any],
) -> Iterator[Item]:
    """Yield ``items``, showing how many of ``total`` are done.

    Parameters
    ----------
    items : iterable
    total : int
    description : str
        What is being done, in a few words.
    progress : bool or callable
        False is silent; True draws a bar; a callable is called as
        ``progress(done, total, description)`` after each item.

    Examples
    --------
    >>> from imparo.progress import track
    >>> list(track("ab", 2, "letters", lambda done, total, what: print(done, total, what)))
    1 2 letters
    2 2 letters
    ['a', 'b']
    """
    if callable(progress):
        for done, item in enumerate(items, start=1):
            yield item
            progress(done, total, description)
        return
    if not progress:
        yield from items
        return
    from rich.progress import track as draw

    yield from draw(items, description=description, total=total)
