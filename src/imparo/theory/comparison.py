"""What a fit really took, beside what was expected."""

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imparo.theory.costs import Cost, as_bytes, as_time

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Comparison:
    """Expected and measured cost of one fit.

    Attributes
    ----------
    expected : Cost
    seconds : float
        What it took.
    bytes : float or None
        Peak memory beyond what the process had before; None where the system cannot tell.
    before : float or None
        What the process had before.
    """

    expected: Cost
    seconds: float
    bytes: float | None
    before: float | None

    @property
    def time_ratio(self) -> float:
        """Measured over expected seconds."""
        return self.seconds / self.expected.seconds

    @property
    def memory_ratio(self) -> float | None:
        """Measured over expected peak of the process, data and libraries included."""
        if self.bytes is None or self.before is None:
            return None
        return (self.before + self.bytes) / (self.before + self.expected.bytes)

    def __str__(self) -> str:
        lines = [
            f"time    expected {as_time(self.expected.seconds)}, took "
            f"{as_time(self.seconds)}: {self.time_ratio:.2f} times"
        ]
        if self.memory_ratio is not None and self.before is not None:
            expected, found = self.expected.bytes, self.bytes or 0.0
            lines.append(
                f"memory  expected {as_bytes(self.before + expected)} at the peak, found "
                f"{as_bytes(self.before + found)}: {self.memory_ratio:.2f} times\n"
                f"        (of which the fit: expected {as_bytes(expected)}, found "
                f"{as_bytes(found)})"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, for JSON.

        Returns
        -------
        dict
        """
        return {
            "expected_seconds": self.expected.seconds,
            "seconds": self.seconds,
            "time_ratio": self.time_ratio,
            "expected_bytes": self.expected.bytes,
            "bytes": self.bytes,
            "bytes_before": self.before,
            "memory_ratio": self.memory_ratio,
        }


def compare(expected: Cost, work: Callable[[], Any]) -> Comparison:
    """Run a fit, and compare what it took with what was expected.

    Parameters
    ----------
    expected : Cost
    work : callable

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from imparo.theory import Cost, compare
    >>> compare(Cost(seconds=1.0, bytes=1e6), lambda: None).time_ratio < 1
    True
    """
    before = _start_of_peak()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    if before is None:
        return Comparison(expected, seconds, None, None)
    return Comparison(expected, seconds, max(0.0, _field("VmHWM") - before), before)


def _start_of_peak() -> float | None:
    """Let the system forget the peak so far; return the memory in use, or None."""
    try:
        # Freed memory that the allocator has kept would count neither before nor after.
        ctypes.CDLL(None).malloc_trim(0)
        _CLEAR.write_text("5")
        return _field("VmRSS")
    except (OSError, AttributeError):  # not Linux, or not allowed
        return None


def _field(name: str) -> float:
    lines = _STATUS.read_text().splitlines()
    return 1024.0 * int(next(line for line in lines if line.startswith(name)).split()[1])
