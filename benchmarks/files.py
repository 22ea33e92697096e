"""A folder of Parquet files that does not fit in memory, against the same rows in memory.

``python -m benchmarks files`` writes the rows (3 GB) to a temporary folder, or to the one that
``IMPARO_BENCH`` names, where it leaves them for the next time.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, measure_and_ask, show
from imparo.data.frames import Frame

ROWS, COLUMNS, FILES = 10_000_000, 28, 20
MEMORY = "2GB"
STEPS = ("reading", "preparing", "fitting")


def columns(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows of the table: a smooth function of a few columns, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, COLUMNS)) * np.geomspace(0.1, 100, COLUMNS)
    Z = X / np.geomspace(0.1, 100, COLUMNS)
    y = np.sin(Z[:, 0] + Z[:, 1]) + Z[:, 2] * Z[:, 3] + 0.3 * rng.normal(size=rows)
    return X, y


def write(folder: Path) -> None:
    """Write the files that are not there yet."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(exist_ok=True)
    for part in range(FILES):
        path = folder / f"part-{part}.parquet"
        if not path.exists():
            X, y = columns(part, ROWS // FILES)
            cells = {f"x{j}": X[:, j] for j in range(COLUMNS)} | {"y": y}
            parquet.write_table(pa.table(cells), path.with_suffix(".tmp"))
            path.with_suffix(".tmp").rename(path)


def command(folder: Path, centers: int) -> dict[str, Any]:
    """Fit the folder with the command line; return its account."""
    call = [sys.executable, "-m", "imparo", "fit", str(folder), "--target", "y", "--json"]
    method = ["--method", "nystrom", "--centers", str(centers), "--memory", MEMORY]
    run = subprocess.run([*call, *method], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def in_memory(centers: int) -> Callable[[], Any]:
    """Return the same fit of rows that are in memory already."""
    from imparo.tabular import fit_table

    parts = [columns(part, ROWS // FILES) for part in range(FILES)]
    X, y = (np.concatenate([part[i] for part in parts]) for i in range(2))
    del parts
    frame = Frame({f"x{j}": X[:, j] for j in range(COLUMNS)} | {"y": y})

    def work() -> Callable[[], Any]:
        fitted = fit_table(frame, "y", method="nystrom", n_centers=centers, memory="20GB")
        return lambda: fitted.account.to_dict()

    return work


def main() -> None:
    given = os.environ.get("IMPARO_BENCH")
    place = Path(given) if given else Path(tempfile.mkdtemp())
    folder = place / "ten-million-rows"
    try:
        write(folder)
        table = []
        for centers in (500, 1000):
            disk = command(folder, centers)
            _, _, memory = measure_and_ask(in_memory, centers, repeats=1)
            seconds = [
                sum(found["cost"]["seconds"][step] for step in STEPS)
                for found in (disk, memory)
            ]
            for name, found, total in (
                (f"folder, --memory {MEMORY}", disk, seconds[0]),
                ("in memory", memory, seconds[1]),
            ):
                cost = found["cost"]
                table.append(
                    [name, f"{centers}", *(f"{cost['seconds'][step]:.1f}" for step in STEPS),
                     f"{total:.1f}", f"{seconds[1] / total:.0%}",
                     f"{cost['peak_bytes'] / 1e9:.2f}",
                     f"{found['evaluation']['metrics']['rmse']:.4f}"]
                )  # fmt: skip
        header = ["rows", "centers", *STEPS, "seconds", "speed", "peak GB", "test RMSE"]
        title = f"{ROWS:,} × {COLUMNS} rows, Nyström\n{machine()}"
        show(title, header, table)
    finally:
        if not given:
            shutil.rmtree(place)
