"""From the published files to the arrays of our archives, one function a data set."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from imparo.data.named.originals import (
    read_arff,
    read_idx,
    read_libsvm,
    read_matlab,
    read_text,
)
from imparo.engine import Array

Files = Mapping[str, Path]
Arrays = dict[str, Array]


def mnist(files: Files) -> Arrays:
    """Return images as rows of 784 bytes, and digits."""
    arrays = {}
    for part in ("train", "test"):
        images = read_idx(files[f"{part} images"])
        arrays[f"X_{part}"] = images.reshape(len(images), -1)
        arrays[f"y_{part}"] = read_idx(files[f"{part} labels"])
    return arrays


def adult(files: Files) -> Arrays:
    """Return flags 0 and 1; 1 is the label of incomes above 50,000."""
    arrays = {}
    for part in ("train", "test"):
        X, y = read_libsvm(files[part], 123)
        arrays[f"X_{part}"] = _small(X, np.int8, files[part])
        arrays[f"y_{part}"] = (y > 0).astype(np.int8)
    return arrays


def ijcnn1(files: Files) -> Arrays:
    """Return the official parts for training, validation and test."""
    arrays = {}
    for part in ("train", "val", "test"):
        X, y = read_libsvm(files[part], 22)
        arrays[f"X_{part}"] = X.astype(np.float32)
        arrays[f"y_{part}"] = _small(y, np.int8, files[part])
    return arrays


def insurance(files: Files) -> Arrays:
    """Return CoIL 2000: the last column of the training file is its target."""
    path = files["archive"]
    train = read_text(path, "ticdata2000.txt", delimiter="\t")
    test = read_text(path, "ticeval2000.txt", delimiter="\t")
    labels = read_text(path, "tictgts2000.txt", delimiter="\t")
    return {
        "X_train": _small(train[:, :-1], np.uint8, path),
        "y_train": _small(train[:, -1], np.uint8, path),
        "X_test": _small(test, np.uint8, path),
        "y_test": _small(labels[:, 0], np.uint8, path),
    }


def covtype(files: Files) -> Arrays:
    """Return Covertype in its published order; the last column is the class."""
    table = read_text(files["data"], dtype=np.float32)
    return {
        "X": _small(table[:, :-1], np.int16, files["data"]),
        "y": _small(table[:, -1], np.uint8, files["data"]),
    }


def computer_activity(files: Files) -> Arrays:
    """Return cpu-small or cpu-act; the last column is the share of user time."""
    table = read_arff(files["data"])
    return {
        "X": table[:, :-1].astype(np.float32),
        "y": _small(table[:, -1], np.uint8, files["data"]),
    }


def pumadyn(files: Files) -> Arrays:
    """Return a file of Delve; the last column is the target."""
    table = read_text(files["data"], delimiter=None)
    return _last_column(table)


def kin40k(files: Files) -> Arrays:
    """Return kin40k; the last column is the target."""
    return _last_column(read_text(files["data"]))


def year_prediction(files: Files) -> Arrays:
    """Return the songs; the first column is the year, the last 51,630 rows are the test."""
    table = read_text(files["archive"], "YearPredictionMSD.txt", dtype=np.float32)
    X, y = table[:, 1:], table[:, 0]
    return {
        "X_train": X[:463_715], "y_train": y[:463_715],
        "X_test": X[463_715:], "y_test": y[463_715:],
    }  # fmt: skip


def ct_slices(files: Files) -> Arrays:
    """Return the slices without the number of the patient, the first column."""
    path, member = files["archive"], "slice_localization_data.csv"
    table = read_text(path, member, header=1, dtype=np.float32)
    return {"X": table[:, 1:-1], "y": table[:, -1]}


def sarcos(files: Files) -> Arrays:
    """Return 21 joint states and 7 torques of the official training and test files."""
    arrays = {}
    for part, name in (("train", "sarcos_inv"), ("test", "sarcos_inv_test")):
        table = read_matlab(files[part], name).astype(np.float32)
        arrays[f"X_{part}"], arrays[f"y_{part}"] = table[:, :21], table[:, 21:]
    return arrays


def _last_column(table: Array) -> Arrays:
    table = table.astype(np.float32)
    return {"X": table[:, :-1], "y": table[:, -1]}


def _small(values: Array, dtype: type, path: Path) -> Array:
    """Return whole numbers in a small type, or say that they do not fit it."""
    with np.errstate(invalid="ignore"):
        small: Array = values.astype(dtype)
    if not np.array_equal(small, values):
        raise ValueError(
            f"{path.name} holds numbers other than those published; it may have changed"
        )
    return small
