"""imparo: kernel machines that fit your budget and then keep learning.

*Ancora imparo*, "I am still learning". The way a row of data takes through the
library, and where things live, is told in ``docs/architecture.md``.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imparo.dynamics import (
        NonparametricDynamics,
        ParametricDynamics,
        SemiparametricDynamics,
    )
    from imparo.estimators import (
        AutoClassifier,
        AutoRegressor,
        KernelClassifier,
        KernelRegressor,
        NystromClassifier,
        NystromRegressor,
        NytroClassifier,
        NytroRegressor,
        RandomFeatureClassifier,
        RandomFeatureRegressor,
        RandomFeatures,
        SGMClassifier,
        SGMRegressor,
    )
    from imparo.lifelong import IncrementalClassifier, RecursiveRegressor
    from imparo.paths import Path
    from imparo.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "AutoClassifier",
    "AutoRegressor",
    "IncrementalClassifier",
    "KernelClassifier",
    "KernelRegressor",
    "NonparametricDynamics",
    "NystromClassifier",
    "NystromRegressor",
    "NytroClassifier",
    "NytroRegressor",
    "ParametricDynamics",
    "Path",
    "RandomFeatureClassifier",
    "RandomFeatureRegressor",
    "RandomFeatures",
    "RecursiveRegressor",
    "SGMClassifier",
    "SGMRegressor",
    "SemiparametricDynamics",
    "__version__",
    "load",
    "save",
]

# Where each name is found when it is first used: the command line starts in a tenth of a
# second, because it imports no more than the command needs.
_HOMES = {
    "estimators": (
        "AutoClassifier",
        "AutoRegressor",
        "KernelClassifier",
        "KernelRegressor",
        "NystromClassifier",
        "NystromRegressor",
        "NytroClassifier",
        "NytroRegressor",
        "RandomFeatureClassifier",
        "RandomFeatureRegressor",
        "RandomFeatures",
        "SGMClassifier",
        "SGMRegressor",
    ),
    "dynamics": ("NonparametricDynamics", "ParametricDynamics", "SemiparametricDynamics"),
    "lifelong": ("IncrementalClassifier", "RecursiveRegressor"),
    "paths": ("Path",),
    "persistence": ("load", "save"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = tuple(found.name for found in pkgutil.iter_modules(__path__) if found.name[0] != "_")


if not TYPE_CHECKING:  # type checkers are to find fault with names that do not exist

    def __getattr__(name: str) -> Any:
        """Import a public name, or a module of this package, at its first use."""
        if name in _HOME_OF:
            value = getattr(importlib.import_module(f"imparo.{_HOME_OF[name]}"), name)
        elif name in _MODULES:
            value = importlib.import_module(f"imparo.{name}")
        else:
            raise AttributeError(f"module 'imparo' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
