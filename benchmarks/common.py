"""Measure seconds and peak memory of a function, each in a process of its own."""

import multiprocessing
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def peak() -> int:
    """Return the peak bytes of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux counts the memory of the parent at the fork into ru_maxrss.
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _measured(
    setup: Callable[..., Callable[[], Any]], arguments: tuple, repeats: int, pipe: Any
):
    work = setup(*arguments)
    before = peak()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    beyond = peak() - before
    pipe.send((min(seconds), beyond, result() if callable(result) else None))


def measure(
    setup: Callable[..., Callable[[], Any]], *arguments: Any, repeats: int = 3
) -> tuple[float, int]:
    """Return the best seconds, and the peak bytes beyond those in use before.

    ``setup(*arguments)`` prepares the data and returns the function that is measured.
    """
    return measure_and_ask(setup, *arguments, repeats=repeats)[:2]


def measure_and_ask(
    setup: Callable[..., Callable[[], Any]], *arguments: Any, repeats: int = 3
) -> tuple[float, int, Any]:
    """Return seconds, bytes, and the answer of the function that the work returns.

    The answer, such as a test error, is computed after the clock has stopped.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(setup, arguments, repeats, sender))
    process.start()
    sender.close()
    result = receiver.recv()
    process.join()
    return result


def show(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table, numbers to the right."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i < 2 else "right")
    for row in rows:
        table.add_row(*row)
    # As wide as it needs: a figure that is cut off is none.
    Console(width=160).print(table)


def machine() -> str:
    """Return what the figures were measured on, for the table's title."""
    import numpy
    import scipy
    import sklearn

    cores = multiprocessing.cpu_count()
    versions = f"NumPy {numpy.__version__}, SciPy {scipy.__version__}"
    return (
        f"{platform.machine()}, {cores} cores, Python {platform.python_version()}, {versions}, "
        f"scikit-learn {sklearn.__version__}"
    )


def data_set(name: str) -> Any:
    """Return the arrays of a file of the folder IMPARO_DATA; None, and why, without it."""
    import numpy

    folder = os.environ.get("IMPARO_DATA")
    if not folder:
        print(f"{name}: set IMPARO_DATA to the folder with the data to run this part")
        return None
    return numpy.load(Path(folder) / f"{name}.npz")
