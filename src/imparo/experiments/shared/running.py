"""Trials of an experiment: made one by one, kept at once, gone on with after a stop."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from imparo.experiments.shared.data import Data
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Ledger, Results

#: Called with what is being done, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], Any]


def run(
    experiment: Experiment,
    folder: Path,
    data: Data,
    *,
    quick: bool = False,
    trials: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Make the trials of an experiment that are not in its folder yet.

    Whatever stops it, trials that are done stay done. A case whose data, or whose packages,
    are not on this machine is left out, and the results say why.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
        Of all results; this experiment's are in a folder of its name.
    data : Data
    quick : bool
        The reduced version.
    trials : int, optional
        The most trials of a case, if fewer are wanted than the thesis made.
    progress : callable, optional

    Returns
    -------
    Results
    """
    cases = list(experiment.cases(quick))
    found = Results(quick, {case.name: case for case in cases})
    counts = [_count(case, trials) for case in cases]
    done, total = 0, sum(counts)
    show = progress or (lambda what, done, total: None)
    show(experiment.name, 0, total)
    for case, count in zip(cases, counts, strict=True):
        ledger = Ledger(folder / experiment.name, case)
        known = ledger.read()
        for i in range(count):
            entry = known.get(i)
            if entry is None:
                data.notes = []
                start = time.perf_counter()
                try:
                    numbers = experiment.trial(case, i, data)
                except (FileNotFoundError, ImportError, MemoryError) as error:
                    found.missing[case.name] = str(error) or "there is not enough memory"
                    done += count - i
                    break
                entry = ledger.add(i, numbers, time.perf_counter() - start, data.notes)
            _take(found, case, entry)
            done += 1
            show(experiment.name, done, total)
        show(experiment.name, done, total)
    return found


def stored(experiment: Experiment, folder: Path, quick: bool) -> Results:
    """Return what is in the folder of an experiment, without making anything.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
    quick : bool

    Returns
    -------
    Results
        Without the cases of which there is no trial.
    """
    cases = list(experiment.cases(quick))
    found = Results(quick, {case.name: case for case in cases})
    for case in cases:
        known = Ledger(folder / experiment.name, case).read()
        for i in sorted(known):
            if i < case.trials:
                _take(found, case, known[i])
    return found


def _count(case: Case, trials: int | None) -> int:
    return case.trials if trials is None else min(case.trials, trials)


def _take(found: Results, case: Case, entry: dict[str, Any]) -> None:
    found.trials.setdefault(case.name, []).append(entry["found"])
    notes = found.notes.setdefault(case.name, [])
    notes.extend(note for note in entry["notes"] if note not in notes)
    found.seconds += float(entry["seconds"])
