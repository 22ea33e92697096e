"""Files that reports are written to: checked before the work, whole after it."""

import os
from pathlib import Path

from imparo.persistence import write_atomically


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise unless a report can be written to a path, as far as can be told beforehand.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    OSError
        If there is no such folder, or nothing may be written to it.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file for the report")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write the report to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"the report {path} may not be written; choose another place")


def put(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a report as a whole, or leave what was there.

    Parameters
    ----------
    path : path-like
        Links are followed; a device or pipe is written to as it is.
    content : bytes

    Raises
    ------
    OSError
        With one sentence, if the file cannot be written.
    """
    place = Path(os.path.realpath(path))
    check_place(place)
    try:
        if place.exists() and not place.is_file():
            place.write_bytes(content)
        else:
            write_atomically(place, content)
    except OSError as error:
        why = error.strerror or str(error)
        raise type(error)(f"the report {path} could not be written: {why}") from error
