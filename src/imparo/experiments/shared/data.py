"""The thesis' data with its splits and scalings, or what stands for them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imparo.data.frames import Frame
from imparo.data.named import find
from imparo.engine import Array
from imparo.experiments.shared.results import SUBSTITUTE


class Split(NamedTuple):
    """Rows to learn from and rows to test on, scaled as the thesis scales them."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def scaled(X: Array, low: float = 0.0, high: float = 1.0) -> Array:
    """Return columns from ``low`` to ``high``; constant ones become ``low``.

    Parameters
    ----------
    X : array of shape (n, d)
    low, high : float

    Returns
    -------
    array of shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.experiments.shared.data import scaled
    >>> scaled(np.array([[1, 5], [3, 5]]), -1, 1).tolist()
    [[-1.0, -1.0], [1.0, -1.0]]
    """
    X = np.asarray(X, np.float64)
    least, span = X.min(axis=0), np.ptp(X, axis=0)
    return low + (high - low) * (X - least) / np.where(span > 0, span, 1.0)


class Data:
    """Where experiments get their data from.

    Parameters
    ----------
    folder : path-like or None
        Of archives; what ``IMPARO_DATA`` names if None.
    download : bool
        Whether data that are not on this machine may be fetched.
    progress : callable, optional
        Called as ``progress(done, total)`` in bytes while a file is fetched.

    Attributes
    ----------
    notes : list of str
        What is to be said of what was read since the list was emptied.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        download: bool = False,
        progress: Callable[..., Any] | None = None,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.download, self._progress = download, progress
        self.notes: list[str] = []
        self._last: tuple[str, Split, list[str]] | None = None

    def split(self, name: str) -> Split:
        """Return a data set as the thesis uses it, or its substitute, which ``notes`` tells.

        Parameters
        ----------
        name : str
            One of the names of ``imparo datasets list``.

        Returns
        -------
        Split
            Labels of two classes are −1 and 1, but for "insurance", where they are 0 and 1.

        Raises
        ------
        FileNotFoundError
            If neither it nor a substitute is on this machine.
        """
        if self._last is None or self._last[0] != name:
            self._last = None  # before another is read: both may be large
            before, self.notes = self.notes, []
            self._last = name, _SPLITS[name](self), self.notes
            self.notes = before
        _, found, notes = self._last
        self.notes.extend(note for note in notes if note not in self.notes)
        return found

    def arrays(self, name: str, part: str | None = None) -> tuple[Array, Array]:
        """Return the columns to learn from and those to learn, as they are stored.

        Parameters
        ----------
        name, part : str
            As for :func:`imparo.data.named.find`.

        Returns
        -------
        X : array of shape (n, d)
        y : array of shape (n,) or (n, T)
        """
        rows = find(name, part, self.download, progress=self._progress, folder=self.folder)
        table = Frame.stacked(list(rows.blocks()))
        X = table.matrix([column for column in rows.names if column not in rows.targets])
        y = table.matrix(rows.targets)
        return X, y[:, 0] if y.shape[1] == 1 else y

    def has(self, name: str, part: str | None = None) -> bool:
        """Return whether a data set can be read, without reading it."""
        try:
            find(name, part, self.download, progress=self._progress, folder=self.folder)
        except FileNotFoundError:
            return False
        return True

    def note(self, sentence: str) -> None:
        """Tell something of the data, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def instead(self, wanted: str, used: str, why: str) -> None:
        """Tell that other data stand for those of the thesis.

        Parameters
        ----------
        wanted, used : str
            In words.
        why : str
            What would bring the ones of the thesis.
        """
        self.note(f"{SUBSTITUTE} {wanted}: {used}. {why}")


def _halves(name: str, n: int, low: float) -> Callable[[Data], Split]:
    """Return how to read rows in one piece, of which the first n are to learn from."""

    def read(data: Data) -> Split:
        X, y = data.arrays(name)
        X, y = scaled(X, low), y.astype(float)
        return Split(X[:n], y[:n], X[n:], y[n:])

    return read


def _insurance(data: Data) -> Split:
    (X, y), (X_test, y_test) = (data.arrays("insurance", part) for part in ("train", "test"))
    both = scaled(np.vstack([X, X_test]), -1)
    return Split(both[: len(X)], y.astype(float), both[len(X) :], y_test.astype(float))


def _breast_cancer(data: Data) -> Split:
    (X, y), (X_test, y_test) = (
        data.arrays("breast-cancer-thesis", part) for part in ("train", "test")
    )
    return Split(X, 2.0 * y - 1, X_test, 2.0 * y_test - 1)


def _adult(data: Data) -> Split:
    (X, y), (X_test, y_test) = (data.arrays("adult", part) for part in ("train", "test"))
    data.note(
        "The thesis' file of adult has one row more in each part, all zeros, which its parsing "
        "made up; they are left out."
    )
    return Split(2.0 * X - 1, 2.0 * y - 1, 2.0 * X_test - 1, 2.0 * y_test - 1)


def _ijcnn(data: Data) -> Split:
    X, y = data.arrays("ijcnn1", "train")
    X_val, y_val = data.arrays("ijcnn1", "val")
    if data.has("ijcnn1", "test"):
        X_test, y_test = data.arrays("ijcnn1", "test")
        X, y = np.vstack([X, X_val]), np.append(y, y_val)
    else:
        data.instead(
            "ijcnn1's 91,701 test rows", "its 14,990 validation rows, so that 35,000 rows are "
            "learned from and not 49,990",
            "The official test file is fetched where downloads are allowed.",
        )  # fmt: skip
        X_test, y_test = X_val, y_val
    return Split(X.astype(float), y.astype(float), X_test.astype(float), y_test.astype(float))


def _covtype(data: Data) -> Split:
    X, y = data.arrays("covtype-binary")
    # The order of the rows is not random, and the thesis' code shuffles them.
    order = np.random.default_rng(0).permutation(len(y))
    X, y = scaled(X, -1)[order].astype(np.float32), y[order].astype(np.float32)
    return Split(X[:522_910], y[:522_910], X[522_910:], y[522_910:])


def _year(data: Data) -> Split:
    if data.has("year-prediction", "train"):
        (X, y), (X_test, y_test) = (
            data.arrays("year-prediction", part) for part in ("train", "test")
        )
        n = len(y)
        both, years = scaled(np.vstack([X, X_test])), np.append(y, y_test)[:, None]
        years = scaled(years)[:, 0]
        return Split(both[:n], years[:n], both[n:], years[n:])
    X, Y = data.arrays("ur10e")
    data.instead(
        "YearPredictionMSD (463,715 × 90)", "the current of the second motor of a UR10e arm "
        "(recordings of a real robot, 120,649 × 18, every tenth piece of ten seconds to test, "
        "all scaled to [0, 1])", "It is fetched where downloads are allowed (--download).",
    )  # fmt: skip
    X, y = scaled(X), scaled(Y[:, 1:2])[:, 0]
    # Neighbours in time are nearly copies: pieces are tested, not single rows.
    test = np.arange(len(y)) // 940 % 10 == 9
    return Split(X[~test], y[~test], X[test], y[test])


def _ct_slices(data: Data) -> Split:
    if data.has("ct-slices"):
        X, y = data.arrays("ct-slices")
        return Split(X[:42_800], y[:42_800], X[42_800:], y[42_800:])
    X, y = (part.astype(float) for part in data.arrays("kin40k"))
    data.instead(
        "CT slices (42,800 × 384)", "kin40k, positions of a robot arm (40,000 × 8, the last "
        "fifth to test)", "They are fetched where downloads are allowed (--download).",
    )  # fmt: skip
    return Split(X[:32_000], y[:32_000], X[32_000:], y[32_000:])


_SPLITS: dict[str, Callable[[Data], Split]] = {
    "cpu-small": _halves("cpu-small", 6554, 0.0),
    "cpu-act": _halves("cpu-act", 6554, 0.0),
    "pumadyn32nh": _halves("pumadyn32nh", 4096, -1.0),
    "insurance": _insurance,
    "breast-cancer-thesis": _breast_cancer,
    "adult": _adult,
    "ijcnn1": _ijcnn,
    "covtype-binary": _covtype,
    "year-prediction": _year,
    "ct-slices": _ct_slices,
}
