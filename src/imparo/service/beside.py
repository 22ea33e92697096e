"""An album that may fail: the learner that it is kept beside goes on without it."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from imparo.service.album import open_album

_log = logging.getLogger("imparo.service")
# Seconds after which an album that failed is tried again.
_AGAIN = 10.0


class Beside:
    """The album of a learner, opened anew when its disk has failed.

    Parameters
    ----------
    folder : Path
        Of the album.
    name : str
        Of the learner.
    known : function
        Returns the keys of all classes that the album may tell of, None where it tells of none.

    Attributes
    ----------
    album : Album
    """

    def __init__(self, folder: Path, name: str, known: Callable[[], set[str] | None]) -> None:
        self._folder, self._name, self._known = folder, name, known
        self._again = 0.0
        self.album = open_album(folder)

    def do(self, work: Callable[[], object]) -> bool:
        """Do something to the album, after the learner was changed: that counts, and stays.

        Returns
        -------
        bool
            Whether it is kept.
        """
        try:
            work()
            return True
        except Exception as error:
            # A journal takes nothing more after the disk has failed once: open it anew, but
            # not for each example, and do not tell of each.
            if time.monotonic() >= self._again:
                self._again = time.monotonic() + _AGAIN
                self._tell("pictures and curves could not be kept", error)
                self._reopen()
            return False

    def reconcile(self) -> None:
        """Let the album tell of no class that the learner does not know.

        The album is written after the learner; a process may end between the two.
        """
        known = self._known()
        if known is not None:
            self.do(lambda: self.album.keep_only(known))

    def close(self) -> None:
        """Make the rest durable, if that can be."""
        self._known = lambda: None  # which holds the learner: all would wait for a collection
        try:
            self.album.close()
        except OSError as error:
            self._tell("the last pictures and curves were not kept", error)

    def _reopen(self) -> None:
        with suppress(OSError):  # it has been told
            self.album.close()
        try:
            self.album = open_album(self._folder)
            self.reconcile()
        except Exception as error:
            self._tell("pictures and curves could not be opened again", error)

    def _tell(self, what: str, error: Exception) -> None:
        _log.error(what, exc_info=error, extra={"learner": self._name})
