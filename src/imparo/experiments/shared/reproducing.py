"""Run experiments, and write what came of them: pages, pictures, values, and the book."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from imparo.experiments.catalogue import experiment, names
from imparo.experiments.shared.book import Told, book
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.experiment import Experiment
from imparo.experiments.shared.results import Results, plain
from imparo.experiments.shared.running import Progress, run, stored
from imparo.extras import require
from imparo.measuring import surroundings
from imparo.reports.drawing import sheet
from imparo.reports.files import put

RESULTS, BOOK = "results", "book"


def reproduce(
    wanted: Sequence[str],
    out: str | os.PathLike[str] = "reproduced",
    *,
    quick: bool = False,
    trials: int | None = None,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> list[Told]:
    """Reproduce tables and figures of the thesis.

    Trials are kept in ``out/results`` as they are done: after an interruption the same call
    goes on where it stopped. Each experiment ends with ``out/NAME.html``, ``.json`` and
    ``.png``, and all that was ever made there is gathered in ``out/book.html``.

    Parameters
    ----------
    wanted : sequence of str
        Names of experiments: :func:`names`.
    out : path-like
        Folder to write to; it is made if need be.
    quick : bool
        The reduced version, of all experiments in under 5 minutes on 2 cores.
    trials : int, optional
        The most trials of each case, if fewer are wanted than the thesis made.
    data : path-like, optional
        Folder of the data sets; what ``IMPARO_DATA`` names if left out.
    download : bool
        Whether data that are not on this machine may be fetched.
    progress : callable, optional
        Called with what is being done, how much of it is done, and how much there is.

    Returns
    -------
    list of Told
        The experiments with their results, and the accounts of them.

    Raises
    ------
    Exception
        Of the first experiment that failed, after all others were made.

    Examples
    --------
    >>> import tempfile
    >>> from imparo.experiments import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (losses,) = reproduce(["losses"], folder, quick=True)
    >>> losses.verdict
    'reproduced'
    """
    if isinstance(wanted, str):
        raise TypeError(f"wanted={wanted!r} must be a list of names, such as [{wanted!r}]")
    if trials is not None and trials < 1:
        raise ValueError(f"trials={trials!r} must be a whole number from 1 on")
    if data is not None and not Path(data).is_dir():
        raise FileNotFoundError(f"there is no folder {data} to read data from")
    require("matplotlib", "plot")
    found = [experiment(name) for name in wanted]
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    source = Data(data, download)
    told: list[Told] = []
    failed: list[Exception] = []
    for one in found:
        try:
            results = run(
                one, folder / RESULTS, source, quick=quick, trials=trials, progress=progress
            )
            told.append(_told(one, results))
            _write(told[-1], folder)
        except Exception as error:
            # The others need not wait for it: they are made first.
            if len(found) == 1:
                raise
            failed.append(error)
    write_book(folder, quick=quick, told=told)
    if failed:
        raise failed[0]
    return told


def write_book(
    out: str | os.PathLike[str], *, quick: bool = False, told: Sequence[Told] = ()
) -> None:
    """Write the book of all results that are in a folder.

    Parameters
    ----------
    out : path-like
    quick : bool
        Whether it is that of the reduced versions.
    told : sequence of Told
        Experiments that were just made, which need not be read again.
    """
    folder, made = Path(out), {one.experiment.name: one for one in told}
    everything = [
        made[name]
        if name in made
        else _told(experiment(name), stored(experiment(name), folder / RESULTS, quick))
        for name in names()
    ]
    page = book(everything, surroundings())
    name = f"{BOOK}-quick" if quick else BOOK
    page.write(folder / f"{name}.html")
    put(folder / f"{name}.json", _json(page.data))


def _told(one: Experiment, results: Results) -> Told:
    return Told(one, results, one.tell(results) if results.trials else None)


def _write(told: Told, folder: Path) -> None:
    """Write the page, the values and the pictures of one experiment."""
    name = f"{told.experiment.name}{'-quick' * told.results.quick}"
    page = book([told], surroundings())
    page.write(folder / f"{name}.html")
    put(folder / f"{name}.json", _json(told.to_dict()))
    if page.pictures:
        put(folder / f"{name}.png", sheet(page.pictures, page.title, "png"))


def _json(values: Any) -> bytes:
    return (json.dumps(plain(values), indent=1, allow_nan=False) + "\n").encode()
