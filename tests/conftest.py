"""Shared fixtures: small data, and the real data of ``IMPARO_DATA``."""

import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def wave(rng):
    """Sixty rows of a noisy smooth function of three columns."""
    X = rng.normal(size=(60, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=60)


@pytest.fixture
def real_data():
    """A function that reads an archive of the benchmark data, or skips saying why."""
    folder = os.environ.get("IMPARO_DATA")

    def read(name):
        if not folder:
            pytest.skip("IMPARO_DATA does not name a folder with the benchmark data")
        path = Path(folder) / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"IMPARO_DATA has no {path.name}")
        with np.load(path) as archive:
            return {key: archive[key] for key in archive.files}

    return read
