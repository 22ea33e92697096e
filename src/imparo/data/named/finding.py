"""Data sets by name: in the user's folder, in the cache, or downloaded if asked."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from imparo.data.named import downloading
from imparo.data.named.cache import Place, arrays_in, located, named
from imparo.data.named.catalogue import DATASETS
from imparo.data.named.checksums import content_checksum
from imparo.data.named.corrections import NamedRows
from imparo.data.named.downloading import Progress
from imparo.data.named.registry import NamedDataset
from imparo.data.readers.base import ReadOptions, Rows
from imparo.data.readers.numpy_arrays import open_npz


def names() -> list[str]:
    """Return the names of all data sets.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from imparo.data.named import names
    >>> names()[:3]
    ['concrete', 'digits', 'breast-cancer']
    """
    return list(DATASETS)


def locate(name: str, part: str | None = None) -> Path | None:
    """Return the file that holds a data set, or None if there is none on this machine.

    Looks in the folder that the environment variable ``IMPARO_DATA`` names, then in the
    cache of downloads.

    Parameters
    ----------
    name : str
    part : str, optional
        "train", "test" or "val": the file must hold this part.

    Returns
    -------
    Path or None

    Examples
    --------
    >>> from imparo.data.named import locate
    >>> locate("concrete") is None  # it ships with imparo and needs no file
    True
    """
    dataset = DATASETS[name]
    if part is not None:
        dataset.part(part)
    found = located(dataset, part)
    return found.path if found else None


def where(dataset: NamedDataset) -> str:
    """Return where a data set is.

    Parameters
    ----------
    dataset : NamedDataset

    Returns
    -------
    "shipped", "data", "cache", "download" or "none"
        With imparo or scikit-learn, in IMPARO_DATA, downloaded, to be downloaded, not to be
        had.
    """
    if dataset.make is not None:
        return "shipped"
    found = located(dataset)
    if found is not None:
        return found.whose
    return "download" if dataset.recipe is not None else "none"


def find(
    name: str,
    part: str | None = None,
    download: bool = False,
    options: ReadOptions | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Rows:
    """Return the rows of a data set.

    Parameters
    ----------
    name : str
        One of :func:`names`, or another name of it; case, hyphens and underscores do not
        count.
    part : str, optional
        "train", "test" or "val". If left out, all rows where they are in one piece, else
        those of "train", or of the first part that the file holds.
    download : bool
        Whether to fetch it where it is not on this machine; False never uses the network.
    options : ReadOptions, optional
        How to read the archive; its part is overruled.
    progress : callable, optional
        Called as ``progress(done, total)`` in bytes while a file is fetched.
    folder : Path, optional
        Of the user's archives; what ``IMPARO_DATA`` names if left out.

    Returns
    -------
    Rows
        With names and targets; what is known to be wrong with the file is put right, and
        told in ``DATASETS[name].notes``.

    Examples
    --------
    >>> from imparo.data.named import find
    >>> rows = find("concrete")
    >>> rows.n_rows, rows.targets
    (1030, ['compressive_strength'])
    >>> find("cpuSmal")
    Traceback (most recent call last):
    imparo.data.named.registry.UnknownDataset: there is no data set 'cpuSmal'; did you mean
    cpu-small or cpu-act? `imparo datasets list` shows all of them
    """
    dataset = DATASETS[name]
    dataset.part(part)
    if dataset.make is not None:
        return dataset.make()
    found = located(dataset, part, folder)
    if found is None and download and dataset.recipe is not None:
        downloading.download(dataset, progress)
        found = located(dataset, part, folder)
    if found is None:
        raise FileNotFoundError(_missing(dataset, part))
    return _opened(dataset, found, options or ReadOptions())


def verify(name: str) -> list[str]:
    """Compare the archive of a data set on this machine with the checksums that are known.

    Costs one reading of the archive, an array at a time.

    Parameters
    ----------
    name : str

    Returns
    -------
    list of str
        The arrays that were compared; empty where no checksum is known.

    Examples
    --------
    >>> from imparo.data.named import verify
    >>> verify("mnist")  # doctest: +SKIP
    ['X_train', 'y_train', 'X_test', 'y_test']
    """
    dataset = DATASETS[name]
    found = located(dataset)
    if found is None:
        if dataset.make is not None:
            return []
        raise FileNotFoundError(_missing(dataset, None))
    rows = {
        named(array, part.suffix): part.first + part.rows
        for part in dataset.parts.values()
        for array in dataset.arrays
        if part.suffix
    }
    compared = [key for key in dataset.checksums if key in arrays_in(found.path)]
    with np.load(found.path, allow_pickle=False) as archive:
        for key in compared:
            # Without the rows that are left out anyway.
            if content_checksum(archive[key][: rows.get(key)]) != dataset.checksums[key]:
                raise ValueError(
                    f"{found.path} has other values in {key} than the data that imparo knows; "
                    "it was changed, or is another version"
                )
    return compared


def _opened(dataset: NamedDataset, place: Place, options: ReadOptions) -> Rows:
    part = dataset.parts[place.part]
    rows = open_npz(place.path, replace(options, part=part.suffix or None))
    return NamedRows(rows, dataset, part)


def _missing(dataset: NamedDataset, part: str | None) -> str:
    what = f"the part {part!r} of {dataset.name}" if part else dataset.name
    if dataset.recipe is not None:
        return (
            f"{what} is not on this machine; get it with `imparo datasets get {dataset.name}` "
            f"({dataset.recipe.megabytes:,.0f} MB), or put {dataset.archives[0]} in the folder "
            "that IMPARO_DATA names"
        )
    if dataset.archives:
        return (
            f"{what} is not on this machine and cannot be downloaded as it is; put "
            f"{dataset.archives[0]} in the folder that IMPARO_DATA names"
        )
    return f"{what} cannot be had: {dataset.source}"
