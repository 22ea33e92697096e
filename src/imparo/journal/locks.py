"""One writer at a time: a lock that dies with its process."""

import contextlib
import os
import weakref
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]  # not a POSIX system: Lock says so

_HELD: "weakref.WeakSet[Lock]" = weakref.WeakSet()


class Lock:
    """An exclusive lock on a file, held until :meth:`release` or the end of the process.

    Parameters
    ----------
    path : Path
        Created if missing, never deleted. Holds the process id of the last writer.

    Raises
    ------
    BlockingIOError
        If this or another process holds the lock.
    """

    def __init__(self, path: Path) -> None:
        if fcntl is None:
            raise OSError(
                "this system has no fcntl.flock, without which two processes could write to "
                "one journal; open it with writable=False, or use Linux or macOS"
            )
        file = open(path, "a+b", buffering=0)  # noqa: SIM115 (held, not used and closed)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(20).decode(errors="replace").strip()
            file.close()
            who = "this process" if holder == str(os.getpid()) else "another process"
            raise BlockingIOError(
                f"the journal {path.parent} is open for writing in {who} "
                f"({holder or 'id unknown'}); close it there, or open it with writable=False"
            ) from None
        with contextlib.suppress(OSError):  # a full disk is no reason not to open
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        self._file = file
        _HELD.add(self)

    def release(self) -> None:
        """Let others write."""
        self._file.close()


def _let_go_after_fork() -> None:
    # A child shares the lock of its parent, and would keep it when the parent is killed.
    for lock in list(_HELD):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_after_fork)
