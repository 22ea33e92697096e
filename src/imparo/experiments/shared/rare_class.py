"""One class with few examples among many with more: the protocol of section 7.6."""

from typing import NamedTuple

import numpy as np

from imparo.engine import Array
from imparo.experiments.shared.data import Data

#: λ of the sum of losses to choose from.
PENALTIES = 10.0 ** np.arange(-1, 3.5, 0.5)
#: The object that is rare, the 28th as in the thesis.
OBJECT = 27


class Pool(NamedTuple):
    """Rows with their classes, to draw from and to test on."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


class Draw(NamedTuple):
    """Examples of one trial.

    Attributes
    ----------
    X, y : arrays
        Of the frequent classes, to learn from.
    X_held, y_held : arrays
        Of the frequent classes, to select by.
    X_rare : array
        Of the rare class, in the order of their coming.
    X_test, y_test : arrays
        Of all classes.
    rare : float
        The label.
    """

    X: Array
    y: Array
    X_held: Array
    y_held: Array
    X_rare: Array
    X_test: Array
    y_test: Array
    rare: float

    def shown(self, n: int) -> tuple[Array, Array]:
        """Return what is to be learned once n examples of the rare class have come."""
        y = np.append(self.y, np.full(n, self.rare))
        return np.vstack([self.X, self.X_rare[:n]]), y

    def accuracies(self, answers: Array) -> tuple[float, float, float]:
        """Return the per cent that is right: of all classes, of the rare one, of the others."""
        right = 100.0 * (answers == self.y_test)
        rare = self.y_test == self.rare
        return float(right.mean()), float(right[rare].mean()), float(right[~rare].mean())


def objects(data: Data, wanted: str, pixels: bool = False) -> Pool:
    """Return what iCub's camera saw of 49 objects, in the place of other objects.

    Parameters
    ----------
    data : Data
    wanted : str
        What they stand for, in words.
    pixels : bool
        Whether to take images of 16 × 16 pixels, and not the features of a network.

    Returns
    -------
    Pool
        Half of the turns of the table to learn from, the other half to test on.
    """
    name = "icub-camera49-images" if pixels else "icub-camera49"
    parts = []
    for part in ("train", "test"):
        X, y = data.arrays(name, part)
        if pixels:
            X = X.reshape(-1, 16, 4, 16, 4, 3).mean(axis=(2, 4)).reshape(len(X), -1) / 255.0
        parts += [X.astype(np.float64), y.astype(np.float64)]
    kind = "as images of 16 × 16 pixels" if pixels else "features of EfficientNet-Lite0"
    data.instead(
        wanted, f"49 objects on a turntable before iCub's camera, {kind}, 36 views each to "
        "learn from and 37 others to test on",
        "The features that the thesis uses were not published.",
    )  # fmt: skip
    return Pool(*parts)


def drawn(pool: Pool, rare: float, n_bal: int, n_test: int, seed: int) -> Draw:
    """Return the examples of a trial.

    Parameters
    ----------
    pool : Pool
    rare : float
        The label of the rare class.
    n_bal : int
        Examples of each other class to learn from; a fifth of that is held out.
    n_test : int
        Of each class, at most.
    seed : int

    Returns
    -------
    Draw
    """
    rng, (X, y, X_test, y_test) = np.random.default_rng(seed), pool
    rows = {t: rng.permutation(np.flatnonzero(y == t)) for t in np.unique(y)}
    asked = [rng.permutation(np.flatnonzero(y_test == t))[:n_test] for t in rows]
    frequent = [rows[t] for t in rows if t != rare]
    train = rng.permutation(np.concatenate([places[:n_bal] for places in frequent]))
    held = np.concatenate([places[n_bal : n_bal + n_bal // 5] for places in frequent])
    test = np.concatenate(asked)
    return Draw(
        X[train], y[train], X[held], y[held], X[rows[rare][:n_bal]], X_test[test],
        y_test[test], float(rare),
    )  # fmt: skip


class Scores:
    """Scores of least squares on 0/1 codes for every λ, without recoding.

    They are those of :class:`imparo.IncrementalClassifier` after the same examples; one
    eigendecomposition gives them for all λ at once.

    Parameters
    ----------
    draw : Draw
    n : int
        Examples of the rare class that have come.
    """

    def __init__(self, draw: Draw, n: int) -> None:
        X, y = draw.shown(n)
        self.classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        self._shares, self._held = counts / len(y), draw.y_held
        values, Q = np.linalg.eigh(X.T @ X)
        b = Q.T @ (X.T @ np.eye(len(counts))[codes])
        weights = [b / (values + penalty)[:, None] for penalty in PENALTIES]
        held, test = draw.X_held @ Q, draw.X_test @ Q
        self._scores = [(held @ W, test @ W) for W in weights]

    def best(self, alpha: float) -> tuple[float, int, Array]:
        """Return what recoding by α with the best λ comes to.

        Parameters
        ----------
        alpha : float

        Returns
        -------
        accuracy : float
            On the examples held out, which are of frequent classes.
        k : int
            Which λ it was.
        answers : array
            For the test rows.
        """
        factors = self._shares**-alpha
        accuracies = [
            float(np.mean(self.classes[np.argmax(held * factors, axis=1)] == self._held))
            for held, _ in self._scores
        ]
        k = int(np.argmax(accuracies))
        return accuracies[k], k, self.classes[np.argmax(self._scores[k][1] * factors, axis=1)]
