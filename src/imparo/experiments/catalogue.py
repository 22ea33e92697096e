"""All experiments, in the order of the thesis."""

from difflib import get_close_matches
from importlib import import_module

from imparo.experiments.shared.experiment import Experiment

# Each is the module of this package with that name, hyphens being underscores.
_NAMES = (
    "losses",
    "bias-variance",
    "grids",
    "selection-time",
    "nystrom-errors",
    "regimes",
    "time-and-error",
    "nytro-time",
    "features-needed",
    "rates",
    "features-or-centers",
    "feature-errors",
    "passes",
    "steps",
    "sgm-errors",
    "boundaries",
    "recoding",
    "rare-classes",
    "dynamics",
)


def names() -> list[str]:
    """Return the names of all experiments, in the order of the thesis.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from imparo.experiments import names
    >>> names()[:3]
    ['losses', 'bias-variance', 'grids']
    """
    return list(_NAMES)


def experiment(name: str) -> Experiment:
    """Return an experiment by its name.

    Parameters
    ----------
    name : str

    Returns
    -------
    Experiment

    Examples
    --------
    >>> from imparo.experiments import experiment
    >>> experiment("nystrom-errors").place
    'Table 4.1'
    >>> experiment("grid")
    Traceback (most recent call last):
    ValueError: there is no experiment 'grid'; did you mean grids? `imparo
    reproduce list` shows all of them
    """
    if name not in _NAMES:
        near = get_close_matches(name, _NAMES, n=2)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(
            f"there is no experiment {name!r}; {hint}`imparo reproduce list` shows all of them"
        )
    module = import_module(f"imparo.experiments.{name.replace('-', '_')}")
    found: Experiment = module.EXPERIMENT
    return found
