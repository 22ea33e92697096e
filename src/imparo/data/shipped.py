"""Data that ship with the project."""

import csv
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from imparo.data.frames import Frame
from imparo.engine import Array


@dataclass(frozen=True)
class Dataset:
    """Rows to learn from, with names and provenance.

    Attributes
    ----------
    X, y : arrays of shape (n, d) and (n,)
    feature_names : list of str
    target_name : str
    source : str
        Where the data come from, and their licence.
    """

    X: Array
    y: Array
    feature_names: list[str]
    target_name: str
    source: str

    @property
    def frame(self) -> Frame:
        """All columns by name, the target last."""
        cells = {name: self.X[:, j] for j, name in enumerate(self.feature_names)}
        return Frame({**cells, self.target_name: self.y})


def load_concrete() -> Dataset:
    """Return 1,030 concrete mixtures and their measured compressive strength (MPa).

    Eight columns: seven ingredients in kg/m³ and the age in days. I-C. Yeh, "Modeling of
    strength of high-performance concrete using artificial neural networks", Cement and
    Concrete Research 28 (1998); UCI Machine Learning Repository, CC BY 4.0.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from imparo.data import load_concrete
    >>> concrete = load_concrete()
    >>> concrete.X.shape, concrete.target_name
    ((1030, 8), 'compressive_strength')
    """
    text = files("imparo.data").joinpath("concrete.csv").read_text(encoding="utf-8")
    header, *lines = csv.reader(text.splitlines())
    table = np.array(lines, dtype=np.float64)
    return Dataset(
        X=np.ascontiguousarray(table[:, :-1]),
        y=table[:, -1].copy(),
        feature_names=header[:-1],
        target_name=header[-1],
        source="Concrete compressive strength, I-C. Yeh (1998), UCI, CC BY 4.0",
    )
