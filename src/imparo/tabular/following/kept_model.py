"""A learner in a folder as a model of a table, to predict with while it learns elsewhere."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.errors import FileFormatError
from imparo.lifelong import DurableLearner
from imparo.lifelong import open as open_learner
from imparo.persistence import load
from imparo.tabular.model import TableModel
from imparo.tabular.targets import CLASSIFICATION

#: The file in a folder that tells its columns, scales and features.
TABLE = "table.imparo"


@dataclass(eq=False)
class KeptModel(TableModel):
    """A learner in a folder, as :func:`open_kept` gives it: a model that can be refreshed."""

    def refresh(self) -> int:
        """Catch up with the process that learns; return the number of rows."""
        learner = self.machine.learner
        learner.refresh()
        self.classes = classes_of(learner)
        return int(getattr(learner, "n_seen_", 0))

    def close(self) -> None:
        """Let go of the folder."""
        self.machine.learner.close()


def open_kept(folder: str | os.PathLike[str], writable: bool = False) -> Any:
    """Open what ``imparo learn`` keeps in a folder.

    Parameters
    ----------
    folder : path-like
    writable : bool, default False
        Whether to learn more: a :class:`~imparo.tabular.following.Keeper`. Otherwise a model to
        predict with, also while another process learns.

    Returns
    -------
    KeptModel or Keeper

    Raises
    ------
    FileFormatError
        If the folder holds no such learner.

    Examples
    --------
    >>> import tempfile
    >>> from imparo.data import load_concrete
    >>> from imparo.tabular.following import Keeper, open_kept
    >>> frame = load_concrete().frame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Keeper(folder, "compressive_strength", features=50) as keeper:
    ...         rows = keeper.learn(frame[:500])
    ...         model = open_kept(folder)
    ...         print(bool((model.predict(frame) == keeper.predict(frame)).all()))
    ...     model.close()
    True
    """
    path = Path(folder)
    if not (path / TABLE).exists():
        raise FileFormatError(
            f"{path} holds nothing that imparo learn keeps; name the folder given to it"
        )
    if writable:
        from imparo.tabular.following.keeper import Keeper

        return Keeper(path)
    kept = KeptModel(**vars(table_of(path)))
    learner = open_learner(path, writable=False)
    kept.machine = machine_of(kept, learner)
    kept.classes = classes_of(learner)
    return kept


class _Machine:
    """A durable learner as the machine of a table's model: outputs in their own units."""

    def __init__(self, learner: DurableLearner, center: Any, scale: Any) -> None:
        self.learner, self._center, self._scale = learner, center, scale

    def predict(self, X: Any) -> Array:
        return self._center + self._scale * self.learner.predict(X)


class _ClassMachine:
    def __init__(self, learner: DurableLearner) -> None:
        self.learner = learner

    def predict(self, X: Any) -> Array:
        return self.learner.predict(X)

    def predict_proba(self, X: Any) -> Array:
        return self.learner.predict_proba(X)


def machine_of(model: TableModel, learner: DurableLearner) -> Any:
    """Return a durable learner as the machine of a table's model."""
    if model.task == CLASSIFICATION:
        return _ClassMachine(learner)
    return _Machine(learner, model.made["center"], model.made["scale"])


def classes_of(learner: DurableLearner) -> list[Any]:
    """Return the labels so far."""
    return np.asarray(getattr(learner, "classes_", [])).tolist()


def table_of(folder: Path) -> TableModel:
    """Return what the first rows of a folder have decided."""
    model = load(folder / TABLE)
    if not (isinstance(model, TableModel) and model.made.get("command") == "learn"):
        raise FileFormatError(f"{folder / TABLE} is not what imparo learn writes")
    return model
