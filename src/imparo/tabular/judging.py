"""How good predictions are, block by block: any number of rows in little memory."""

from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.tabular.outcome import Evaluation
from imparo.tabular.targets import CLASSIFICATION, REGRESSION, label

# Rows that pictures are drawn from.
_SAMPLE = 20_000


class Judge:
    """Counts errors of a model block by block.

    Parameters
    ----------
    task : "regression" or "classification"
    outputs : list of str
    classes : list
    baseline : means of outputs, or one label
        What the simplest model predicts.
    source : str
        Which rows these are, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.tabular.judging import Judge
    >>> judge = Judge("regression", ["y"], [], [0.0], "two rows")
    >>> judge.add(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    >>> judge.finished().metrics["rmse"].__round__(3)
    1.414
    """

    def __init__(
        self, task: str, outputs: list[str], classes: list[Any], baseline: Any, source: str
    ) -> None:
        self._task, self._outputs, self._source = task, outputs, source
        self._baseline = baseline
        self._classes = [label(name) for name in classes]
        self._place = {name: i for i, name in enumerate(self._classes)}
        self._known = len(self._classes)
        self._confusion = np.zeros((self._known, self._known), np.int64)
        self._brier, self.n = 0.0, 0
        width = len(outputs)
        # Sums of errors, their squares, and of the baseline's; of outputs and their squares.
        self._sums = np.zeros((6, width))
        self._shift: Array | None = None
        self._rng = np.random.default_rng(0)
        self._sample: list[tuple[Array, ...]] = []
        self._keys: list[Array] = []

    def add(self, y: Array, predicted: Array, probabilities: Array | None = None) -> None:
        """Take some rows.

        Parameters
        ----------
        y, predicted : arrays of shape (k,) or (k, T)
            Observed and predicted outputs, or labels.
        probabilities : array of shape (k, C), optional
            For classification.
        """
        if self._task == REGRESSION:
            Y, F = (np.asarray(a, np.float64).reshape(len(a), -1) for a in (y, predicted))
            if self._shift is None:
                self._shift = Y[0].copy()  # so that squares of large outputs do not cancel
            E, B, D = Y - F, Y - np.asarray(self._baseline), Y - self._shift
            with np.errstate(over="ignore", invalid="ignore"):
                for i, part in enumerate((E**2, np.abs(E), B**2, np.abs(B), D, D**2)):
                    self._sums[i] += part.sum(axis=0)
            self._keep(Y, F)
        else:
            true, found = self._places(y), self._places(predicted)
            np.add.at(self._confusion, (true, found), 1)
            if probabilities is not None:
                P = np.asarray(probabilities, np.float64)
                known = true < self._known
                right = np.zeros(len(true))
                right[known] = P[np.flatnonzero(known), true[known]]
                self._brier += float((P**2).sum() - 2 * right.sum() + len(true))
                self._keep(true[:, None], found[:, None], P)
            else:
                self._keep(true[:, None], found[:, None])
        self.n += len(y)

    def _places(self, labels: Array) -> Array:
        names = [label(name) for name in np.asarray(labels).tolist()]
        for name in dict.fromkeys(names):
            if name not in self._place:
                self._place[name] = len(self._classes)
                self._classes.append(name)
        grown = len(self._classes) - len(self._confusion)
        if grown:
            self._confusion = np.pad(self._confusion, (0, grown))
        return np.array([self._place[name] for name in names], np.intp)

    def _keep(self, *parts: Array) -> None:
        """Keep a random sample: the rows with the smallest of random keys."""
        keys = self._rng.random(len(parts[0]))
        self._keys.append(keys)
        self._sample.append(parts)
        if sum(map(len, self._keys)) > 4 * _SAMPLE:
            self._thin()

    def _thin(self) -> None:
        keys = np.concatenate(self._keys)
        chosen = np.sort(np.argsort(keys, kind="stable")[:_SAMPLE])
        joined = (np.concatenate(column) for column in zip(*self._sample, strict=True))
        self._keys = [keys[chosen]]
        self._sample = [tuple(part[chosen] for part in joined)]

    def finished(self) -> Evaluation:
        """Return what came of it."""
        if not self.n:
            raise ValueError(f"{self._source} has no row to judge by")
        self._thin()
        sample = self._sample[0]
        if self._task == CLASSIFICATION:
            metrics, baseline, parts = self._of_classes()
        else:
            metrics, baseline, parts = self._of_numbers()
        return Evaluation(
            self._task, self.n, self._source, self._outputs, self._classes, metrics, baseline,
            parts, self._confusion if self._task == CLASSIFICATION else None,
            sample[0], sample[1], sample[2] if len(sample) > 2 else None,
        )  # fmt: skip

    def _of_numbers(self) -> tuple[dict[str, float], dict[str, float], list[dict[str, Any]]]:
        squared, absolute, base_squared, base_absolute, total, total_squared = self._sums
        n = self.n
        assert self._shift is not None
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.maximum(total_squared / n - (total / n) ** 2, 0)

        def explained(squares: Array) -> Array:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(spread > 0, 1 - squares / n / spread, np.nan)

        def means(squares: Array, absolutes: Array) -> dict[str, float]:
            return {
                "rmse": float(np.sqrt(squares / n).mean()),
                "mae": float((absolutes / n).mean()),
                "r2": float(explained(squares).mean()),
            }

        parts = [
            {
                "output": name,
                "rmse": float(np.sqrt(squared[j] / n)),
                "mae": float(absolute[j] / n),
                "r2": float(explained(squared)[j]),
                "mean": float(self._shift[j] + total[j] / n),
                "deviation": float(np.sqrt(spread[j])),
            }
            for j, name in enumerate(self._outputs)
        ]
        return means(squared, absolute), means(base_squared, base_absolute), parts

    def _of_classes(self) -> tuple[dict[str, float], dict[str, float], list[dict[str, Any]]]:
        C = self._confusion
        right, shown, said = np.diag(C), C.sum(axis=1), C.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            recall, precision = right / shown, right / said
            f1 = 2 * right / (shown + said)
        seen = shown > 0
        metrics = {
            "error": float(1 - right.sum() / self.n),
            "balanced_error": float(1 - recall[seen].mean()),
        }
        if len(self._sample[0]) > 2:
            metrics["brier"] = self._brier / self.n
        place = self._place.get(label(self._baseline))
        share = 0.0 if place is None else float(shown[place] / self.n)
        met = place is not None and bool(seen[place])
        baseline = {"error": 1 - share, "balanced_error": 1 - met / int(seen.sum())}
        parts = [
            {"class": name, "rows": int(shown[i]), "precision": float(precision[i]),
             "recall": float(recall[i]), "f1": float(f1[i])}
            for i, name in enumerate(self._classes)
        ]  # fmt: skip
        return metrics, baseline, parts
