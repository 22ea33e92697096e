"""What the machine can do: multiply matrices, move memory, write and read files."""

import os
import tempfile
import time
from statistics import median

import numpy as np

from imparo.engine import available_memory
from imparo.measuring.timing import Measurement, repeated

_PART = "machine"


def measure_machine(seconds: float) -> list[Measurement]:
    """Measure products of matrices, the bandwidth of memory, and the disk of scratch files.

    Parameters
    ----------
    seconds : float
        For all of it, about.

    Returns
    -------
    list of Measurement
    """
    share = seconds / 4
    found = [matrix_product(kind, share) for kind in ("float64", "float32")]
    return [*found, memory_copy(share), *disk(share)]


def matrix_product(kind: str, seconds: float) -> Measurement:
    """Measure how many operations a second a product of square matrices makes."""
    rng = np.random.default_rng(0)

    def squares(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        A, B = rng.normal(size=(2, n, n)).astype(kind)
        return A, B, np.empty_like(A)

    n = 256
    while n < 4096 and repeated_product(*squares(n)) * 8 * 4 < seconds:
        n *= 2
    A, B, C = squares(n)
    timing = repeated(lambda: np.matmul(A, B, out=C), seconds)
    rate = 2 * n**3 / timing.seconds / 1e9
    size = f"{n:,} × {n:,}"
    return Measurement(_PART, f"matrix product, {kind}", size, rate, "GFLOP/s", timing.repeats)


def repeated_product(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> float:
    """Return the seconds of one product, after one that does not count."""
    np.matmul(A, B, out=C)
    start = time.perf_counter()
    np.matmul(A, B, out=C)
    return time.perf_counter() - start


def memory_copy(seconds: float) -> Measurement:
    """Measure how fast a large array is copied: what is read and written counts."""
    size = min(2**28, available_memory() // 8)  # beyond the caches of processors
    source = np.ones(size // 8)
    target = np.empty_like(source)
    timing = repeated(lambda: np.copyto(target, source), seconds)
    rate = 2 * source.nbytes / timing.seconds / 1e9
    what, shown = "memory, copied", f"{source.nbytes / 1e6:,.0f} MB"
    return Measurement(_PART, what, shown, rate, "GB/s", timing.repeats)


def disk(seconds: float) -> list[Measurement]:
    """Measure how fast a file is written, until it is on the disk, and read back."""
    content = np.random.default_rng(0).bytes(2**24)
    folder = tempfile.gettempdir()
    written: list[float] = []
    read: list[float] = []
    end = time.perf_counter() + seconds
    with tempfile.TemporaryFile(buffering=0) as file:
        while len(written) < 4 or (time.perf_counter() < end and len(written) < 50):
            start = time.perf_counter()
            file.seek(0)
            file.write(content)
            os.fsync(file.fileno())
            written.append(time.perf_counter() - start)
            forgotten = _forget(file.fileno())
            start = time.perf_counter()
            file.seek(0)
            file.read()
            read.append(time.perf_counter() - start)
    note = f"in {folder}" if forgotten else f"in {folder}; read from memory, not from the disk"
    size = f"{len(content) / 1e6:,.0f} MB"
    rates = [len(content) / median(found[1:]) / 1e9 for found in (written, read)]
    repeats = len(written) - 1
    return [
        Measurement(_PART, "scratch file, written", size, rates[0], "GB/s", repeats,
                    note=f"in {folder}"),
        Measurement(_PART, "scratch file, read", size, rates[1], "GB/s", repeats, note=note),
    ]  # fmt: skip


def _forget(handle: int) -> bool:
    """Ask the system to drop its copy of a file in memory; return whether it can be asked."""
    if not hasattr(os, "posix_fadvise"):
        return False
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    return True
