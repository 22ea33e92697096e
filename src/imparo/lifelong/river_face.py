"""The face that river knows: dictionaries in, and columns that emerge on the way."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from river import base
from sklearn.base import clone

from imparo.engine import Array
from imparo.lifelong.classifier import IncrementalClassifier
from imparo.lifelong.regressor import RecursiveRegressor


class _RiverFace:
    """What the two faces share; names of columns are learned as they come."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self._model = clone(learner)
        self._columns: dict[Any, int] = {}

    @property
    def _started(self) -> bool:
        return hasattr(self._model, "n_seen_")

    def _row(self, x: dict[Any, Any]) -> Array:
        row = np.zeros((1, max(1, len(self._columns))), self._model._dtype())
        for name, value in x.items():
            place = self._columns.get(name)
            if place is not None:
                row[0, place] = value
        return row

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn one example; a name never seen adds a column that was 0 so far.

        Parameters
        ----------
        x : dict
            Names and numbers.
        y : label or number
        """
        new = [name for name in x if name not in self._columns]
        columns = {name: len(self._columns) + i for i, name in enumerate(new)}
        before, known = self._columns, len(self._columns)
        self._columns = before | columns
        try:
            row = self._row(x)
            if new and self._started:
                self._model._check_growth(row)
                self._model._add_columns(row.shape[1] - max(1, known))
            self._model.partial_fit(row, [y])
        except BaseException:
            self._columns = before
            raise

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, in their order."""
        for x, target in zip(X.to_dict(orient="records"), y, strict=True):
            self.learn_one(x, target)


class RiverClassifier(_RiverFace, base.Classifier):
    """An :class:`~imparo.IncrementalClassifier` as a classifier of river.

    Made by :func:`imparo.lifelong.as_river`.
    """

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"learner": IncrementalClassifier()}

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each label; nothing before the first example.

        Without held-out examples (``holdout=None``) the answer has probability 1.
        """
        if not self._started:
            return {}
        if self._model.holdout is None:
            answer = self.predict_one(x)
            return {c: float(c == answer) for c in self._model.classes_.tolist()}
        return self._model.predict_proba_one(self._row(x)[0])

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Return the label; None before the first example."""
        return self._model.predict_one(self._row(x)[0]) if self._started else None


class RiverRegressor(_RiverFace, base.Regressor):
    """A :class:`~imparo.RecursiveRegressor` as a regressor of river.

    Made by :func:`imparo.lifelong.as_river`.
    """

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"learner": RecursiveRegressor()}

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> float:
        """Return the prediction; 0 before the first example."""
        return self._model.predict_one(self._row(x)[0]) if self._started else 0.0
