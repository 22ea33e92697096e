"""What users hand over as data: a file, a folder, a name, or rows themselves."""

import os
from pathlib import Path
from typing import Any

from imparo.data import open_rows
from imparo.data.named import DATASETS, find
from imparo.data.readers import ReadOptions, Rows
from imparo.data.readers.in_memory import ArrayRows
from imparo.tabular.conversion import as_frame


def as_rows(
    source: Any, *, prefer: str | None = None, download: bool = False, **options: Any
) -> Rows:
    """Return rows to read from whatever a user names.

    Parameters
    ----------
    source : str, path-like, list of paths, Rows, Frame or data frame
        A file, folder or pattern of files; the name of a data set, if there is no such file;
        "-" for standard input; or rows.
    prefer : str, optional
        Part to read of data that have parts, such as "test", if none is asked for.
    download : bool
        Whether a named data set may be downloaded if it is not at hand.
    **options
        Fields of :class:`imparo.data.readers.ReadOptions`.

    Returns
    -------
    Rows

    Examples
    --------
    >>> from imparo.tabular import as_rows
    >>> as_rows("concrete").targets
    ['compressive_strength']
    """
    if isinstance(source, Rows):
        return source
    if hasattr(source, "columns"):
        return ArrayRows(as_frame(source))
    if not isinstance(source, str | os.PathLike | list | tuple):
        raise TypeError(
            f"{source!r:.60} is no source of rows; give a file, a folder, the name of a data "
            "set, or a data frame"
        )
    part = options.pop("part", None)
    if isinstance(source, str) and _is_name(source):
        parts = DATASETS[source].parts
        # Where a part is cut out of all rows, a fit may have seen it.
        if part is None and prefer in parts and "all" not in parts:
            part = prefer
        return find(source, part, download, ReadOptions(**options))
    if part is None and prefer is not None and not is_pipe(source):
        try:
            return open_rows(source, part=prefer, **options)
        except ValueError:
            pass  # it has no such part, or what is wrong is told below
    return open_rows(source, part=part, **options)


def is_pipe(source: Any) -> bool:
    """Return whether a source can be read once only."""
    if not isinstance(source, str | os.PathLike):
        return False
    path = Path(source)
    return str(source) == "-" or (path.exists() and not (path.is_file() or path.is_dir()))


def known_task(source: Any) -> str:
    """Return the task of a named data set, "auto" for anything else."""
    if isinstance(source, str) and _is_name(source):
        task = DATASETS[source].task
        return task if task in ("regression", "classification") else "auto"
    return "auto"


def _is_name(source: str) -> bool:
    """Return whether a text names a data set, and no file."""
    if Path(source).exists() or source == "-":
        return False
    bare = not Path(source).suffix and os.sep not in source and "*" not in source
    return source in DATASETS or bare
