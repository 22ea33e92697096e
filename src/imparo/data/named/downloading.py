"""Published files, fetched, converted, checked, and kept in the cache."""

import errno
import hashlib
import json
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from imparo.data.named.cache import cached
from imparo.data.named.checksums import content_checksum
from imparo.data.named.registry import NamedDataset, Original, Recipe
from imparo.engine import Array

#: Called with the bytes done and, where it is known, their total.
Progress = Callable[[int, int | None], Any]

#: Seconds without an answer, or without a byte, after which a server counts as dead.
TIMEOUT = 60.0
_CHUNK = 2**18


def download(dataset: NamedDataset, progress: Progress | None = None) -> Path:
    """Fetch a data set into the cache, and return its archive there.

    The published files are converted to one archive of NumPy, whose content is compared with
    the checksum that imparo knows, or else with the shapes. The SHA-256 of what was fetched
    is noted beside it; where the content is not known, a later download must be the same.
    Nothing is kept unless all of this succeeds.

    Parameters
    ----------
    dataset : NamedDataset
    progress : callable, optional
        Called as ``progress(done, total)`` in bytes, for each file anew; total may be None.

    Returns
    -------
    Path

    Examples
    --------
    >>> from imparo.data.named import DATASETS, download
    >>> download(DATASETS["adult"])  # doctest: +SKIP
    PosixPath('/home/me/.cache/imparo/adult.npz')
    """
    recipe = dataset.recipe
    if recipe is None:
        raise ValueError(
            f"{dataset.name} cannot be downloaded: {dataset.source}; "
            + (
                f"put {dataset.archives[0]} in the folder that IMPARO_DATA names"
                if dataset.archives
                else "there is no file of it to be had"
            )
        )
    target = cached(dataset)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # In the cache itself: the last step is then a change of name, all or nothing.
        with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as folder:
            files, digests = _fetched(recipe, Path(folder), progress)
            made = recipe.convert(files)
            # Row after row, so that archives can be read in blocks.
            arrays = {key: np.ascontiguousarray(array) for key, array in made.items()}
            _check(dataset, recipe, arrays)
            record = _record(target)
            _check_first_use(dataset, recipe, record, digests)
            archive = Path(folder) / "made.npz"
            np.savez_compressed(archive, **arrays)  # type: ignore[arg-type]
            notes = Path(folder) / "made.json"
            notes.write_text(json.dumps(_notes(dataset, digests, arrays), indent=1) + "\n")
            os.replace(archive, target)
            os.replace(notes, record)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(
                f"the disk of {target.parent} is full: {dataset.name} needs about "
                f"{3 * recipe.megabytes:,.0f} MB there; free some, or name another folder in "
                "IMPARO_CACHE"
            ) from error
        raise
    return target


def fetch(original: Original, path: Path, progress: Progress | None = None) -> tuple[str, str]:
    """Write one published file, and return its address and its SHA-256.

    Parameters
    ----------
    original : Original
        Its addresses are tried in order.
    path : Path
        Where to write it.
    progress : callable, optional
    """
    failures: list[Exception] = []
    for address in original.addresses:
        if not address.startswith(("https://", "http://")):
            raise ValueError(f"{address} is no address of the web; it must begin with https://")
        try:
            return address, _copied(address, path, original.most_bytes, progress)
        except urllib.error.HTTPError as error:
            gone = (
                f"there is no file {address} any more (answer {error.code}); get it elsewhere "
                "and put the archive in the folder that IMPARO_DATA names"
            )
            failures.append(FileNotFoundError(gone) if error.code in (404, 410) else _no(error))
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, OSError) and reason.errno == errno.ENOSPC:
                raise reason from error
            failures.append(
                ConnectionError(
                    f"{address} cannot be reached ({_short(reason)}); is there a network?"
                )
            )
    raise failures[0]


def _copied(address: str, path: Path, most: int, progress: Progress | None) -> str:
    request = urllib.request.Request(address, headers={"User-Agent": "imparo"})
    digest, done = hashlib.sha256(), 0
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, path.open("wb") as file:
        length = answer.headers.get("Content-Length")
        total = int(length) if length and length.isdigit() else None
        if total is not None and total > shutil.disk_usage(path.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        while chunk := answer.read(_CHUNK):
            done += len(chunk)
            if done > most:
                raise ValueError(
                    f"{address} is larger than the {most:,} bytes that were published; it is "
                    "another file by now"
                )
            digest.update(chunk)
            file.write(chunk)
            if progress is not None:
                progress(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"it ended after {done:,} of {total:,} bytes")
    return digest.hexdigest()


def _no(error: urllib.error.HTTPError) -> Exception:
    return ConnectionError(f"{error.url} was refused by its server (answer {error.code})")


def _short(reason: Any) -> str:
    text = getattr(reason, "strerror", None) or str(reason)
    return " ".join(text.split()).lower() or type(reason).__name__


def _fetched(
    recipe: Recipe, folder: Path, progress: Progress | None
) -> tuple[dict[str, Path], dict[str, dict[str, str]]]:
    files, digests = {}, {}
    for i, original in enumerate(recipe.originals):
        # The published name, for errors; it is a name alone, never a path.
        path = folder / f"{i}" / original.addresses[0].rsplit("/", 1)[-1]
        path.parent.mkdir()
        address, digest = fetch(original, path, progress)
        files[original.name] = path
        digests[original.name] = {"address": address, "sha256": digest}
    return files, digests


def _check(dataset: NamedDataset, recipe: Recipe, arrays: dict[str, Array]) -> None:
    for key, shape in recipe.shapes.items():
        found = arrays[key].shape if key in arrays else None
        if found != shape:
            raise ValueError(
                f"the download of {dataset.name} has {key} of shape {found}, and {shape} was "
                "published; the file has changed, and nothing was kept"
            )
    for key, known in dataset.checksums.items():
        if key in arrays and content_checksum(arrays[key]) != known:
            raise ValueError(
                f"the download of {dataset.name} has other values in {key} than the data that "
                "imparo knows (its checksum is wrong); nothing was kept"
            )


def _check_first_use(
    dataset: NamedDataset, recipe: Recipe, record: Path, digests: dict[str, dict[str, str]]
) -> None:
    """Compare with what was fetched before, unless all values are known anyway."""
    if dataset.checksums.keys() >= recipe.shapes.keys() or not record.is_file():
        return
    try:
        before = json.loads(record.read_text())["files"]
        same = all(before[name]["sha256"] == now["sha256"] for name, now in digests.items())
    except (ValueError, KeyError, TypeError):
        return
    if not same:
        raise ValueError(
            f"the download of {dataset.name} is not the file that was fetched before; if it "
            f"has changed for good, remove {record} and get it again"
        )


def _record(archive: Path) -> Path:
    return archive.with_suffix(".json")


def _notes(
    dataset: NamedDataset, digests: dict[str, dict[str, str]], arrays: dict[str, Array]
) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": digests,
        "content": {key: content_checksum(array) for key, array in arrays.items()},
        "licence": dataset.licence,
    }
