"""What an experiment is: cases, trials of each, and what is told of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imparo.experiments.shared.account import Account
    from imparo.experiments.shared.data import Data
    from imparo.experiments.shared.results import Results

#: The parts of the thesis, as the book calls them.
CHAPTERS = {
    1: "Learning from examples",
    4: "Speeding up by data-dependent subsampling",
    5: "Speeding up by data-independent subsampling",
    6: "Stochastic gradient methods",
    7: "Adding new classes in constant time",
    8: "Incremental inverse dynamics",
}


@dataclass(frozen=True)
class Case:
    """Settings that trials are made with: a data set, most often.

    Attributes
    ----------
    name : str
        For people and for the name of the file of results.
    trials : int
        How many; trial i has the seed i.
    settings : dict
        Plain values, all that the numbers of a trial depend on: results that were made with
        others are not taken for them.
    """

    name: str
    trials: int = 1
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the thesis, and how ours is made.

    Attributes
    ----------
    name : str
        What the command line calls it.
    chapter : int
    place : str
        "Table 4.1", "Figure 4.2".
    title : str
    finding : str
        What the thesis finds, in a sentence or two.
    setting : str
        Data, widths, grids and repetitions of the thesis, in words.
    cases : callable
        Called with whether it is to be quick; gives the cases.
    trial : callable
        Called with a case, the seed and the data; gives plain values, which JSON can hold.
    tell : callable
        From results to tables, pictures and verdicts.
    data : tuple of str
        Names of the data sets that are needed.
    minutes : float
        Of the whole on 2 cores, about.
    """

    name: str
    chapter: int
    place: str
    title: str
    finding: str
    setting: str
    cases: Callable[[bool], Sequence[Case]]
    trial: Callable[[Case, int, "Data"], dict[str, Any]]
    tell: Callable[["Results"], "Account"]
    data: tuple[str, ...] = ()
    minutes: float = 1.0
