"""Numbers of trials on disk, a line each: what is there is not computed again."""

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from imparo import __version__
from imparo.engine import Array
from imparo.experiments.shared.experiment import Case


def plain(value: Any) -> Any:
    """Return a value as JSON has it: arrays become lists, numbers of NumPy Python's.

    Parameters
    ----------
    value : object

    Returns
    -------
    object

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.experiments.shared.results import plain
    >>> plain({"m": np.arange(2), "error": np.float64(0.5), "none": np.nan})
    {'m': [0, 1], 'error': 0.5, 'none': None}
    """
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def fingerprint(case: Case) -> str:
    """Return what tells results of these settings and this version from others."""
    text = json.dumps([__version__, plain(case.settings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Ledger:
    """The file of a case: a line of JSON for each trial, written when it is done.

    Lines of other settings stay where they are; a line that was cut off is passed over.

    Parameters
    ----------
    folder : Path
        Of the experiment.
    case : Case
    """

    def __init__(self, folder: Path, case: Case) -> None:
        name = re.sub(r"[^a-z0-9]+", "-", case.name.lower()).strip("-") or "case"
        self.path = folder / f"{name}.jsonl"
        self._mark = fingerprint(case)

    def read(self) -> dict[int, dict[str, Any]]:
        """Return the lines of these settings by the number of their trial."""
        if not self.path.exists():
            return {}
        found = {}
        for line in self.path.read_text("utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and entry.get("settings") == self._mark:
                found[int(entry["trial"])] = entry
        return found

    def add(
        self, trial: int, found: dict[str, Any], seconds: float, notes: list[str]
    ) -> dict[str, Any]:
        """Write the numbers of a trial, so that they survive what comes next; return them."""
        entry = {
            "trial": trial,
            "settings": self._mark,
            "seconds": round(seconds, 3),
            "notes": notes,
            "found": plain(found),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:
            # A line that was cut off by a crash must not swallow this one.
            torn = file.tell() and not self._ends_well()
            file.write((b"\n" if torn else b"") + json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return entry

    def _ends_well(self) -> bool:
        with open(self.path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


@dataclass
class Results:
    """What the trials of an experiment have found.

    Attributes
    ----------
    quick : bool
        Whether it is the reduced version.
    cases : dict of str to Case
    trials : dict of str to list of dict
        Numbers of every trial, by the name of the case; cases without any are not in it.
    notes : dict of str to list of str
        What is to be said of the data of a case, such as what stands for what.
    missing : dict of str to str
        Why a case was not made.
    seconds : float
        Of all trials.
    """

    quick: bool
    cases: dict[str, Case]
    trials: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __contains__(self, case: str) -> bool:
        return case in self.trials

    def __iter__(self) -> Any:
        return iter(self.trials)

    def values(self, case: str, key: str) -> Array:
        """Return one of the numbers, or arrays, of every trial: shape (trials, …).

        Parameters
        ----------
        case, key : str

        Returns
        -------
        array
        """
        return np.array([trial[key] for trial in self.trials[case]], float)

    def mean(self, case: str, key: str) -> Any:
        """Return the mean over the trials."""
        return self.values(case, key).mean(axis=0)

    def deviation(self, case: str, key: str) -> Any:
        """Return the standard deviation over the trials; 0 of a single one."""
        found = self.values(case, key)
        return found.std(axis=0, ddof=1) if len(found) > 1 else np.zeros(found.shape[1:])

    def substituted(self, case: str) -> bool:
        """Return whether other data stand for those of the thesis."""
        return any(note.startswith(SUBSTITUTE) for note in self.notes.get(case, ()))


#: How notes begin that say that other data stand for those of the thesis.
SUBSTITUTE = "In the place of"
