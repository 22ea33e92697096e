"""Where archives of data sets are: the user's folder, and the cache of downloads."""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

from imparo.data.named.registry import NamedDataset


def cache_folder() -> Path:
    """Return the folder of downloaded data; it need not exist.

    What the environment variable ``IMPARO_CACHE`` says, else ``imparo`` in the cache folder
    of the user (``XDG_CACHE_HOME``, or ``~/.cache``).

    Returns
    -------
    Path

    Examples
    --------
    >>> import os
    >>> from imparo.data.named import cache_folder
    >>> os.environ["IMPARO_CACHE"] = "/tmp/data"
    >>> str(cache_folder())
    '/tmp/data'
    >>> del os.environ["IMPARO_CACHE"]
    """
    named = os.environ.get("IMPARO_CACHE")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    # The standard asks to ignore paths that are not absolute.
    if base and Path(base).is_absolute():
        return Path(base) / "imparo"
    return Path.home() / ".cache" / "imparo"


def data_folder() -> Path | None:
    """Return the folder that the environment variable ``IMPARO_DATA`` names, or None."""
    named = os.environ.get("IMPARO_DATA")
    return Path(named).expanduser() if named else None


def cached(dataset: NamedDataset) -> Path:
    """Return where the download of a data set is kept."""
    # Versions of one archive share the file.
    return cache_folder() / (dataset.archives[0] if dataset.archives else f"{dataset.name}.npz")


@dataclass(frozen=True)
class Place:
    """An archive on this machine.

    Attributes
    ----------
    path : Path
    whose : "data" or "cache"
        The user's folder, or the cache of downloads.
    part : str
        The part that was asked for, or the first one that is there.
    """

    path: Path
    whose: str
    part: str


def located(
    dataset: NamedDataset, part: str | None = None, folder: Path | None = None
) -> Place | None:
    """Return the archive that holds a part, or None if there is none.

    Parameters
    ----------
    dataset : NamedDataset
    part : str or None
        The first of "all", "train", "test" and "val" that is there, if None.
    folder : Path or None
        The user's; what ``IMPARO_DATA`` names if None.
    """
    places = []
    folder = data_folder() if folder is None else folder
    if folder is not None:
        places += [(folder / archive, "data") for archive in dataset.archives]
    places.append((cached(dataset), "cache"))
    order = [name for name in ("all", "train", "test", "val") if name in dataset.parts]
    for path, whose in places:
        arrays = arrays_in(path) if path.is_file() else set()
        for name in order if part is None else [part]:
            suffix = dataset.part(name).suffix
            if {named(array, suffix) for array in dataset.arrays} <= arrays:
                return Place(path, whose, name)
    return None


def arrays_in(path: Path) -> set[str]:
    """Return the names of the arrays of an archive, without reading them."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"{path} is not an archive of NumPy, or is damaged; remove it, or put a good copy "
            "in its place"
        ) from error


def named(array: str, suffix: str) -> str:
    """Return the name of an array in an archive: X_train of X and train."""
    return f"{array}_{suffix}" if suffix else array
