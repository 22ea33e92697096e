"""How fast a device multiplies and a host sends to it: measured once, then used to choose."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from imparo.engine.current import host_engine
from imparo.extras import require

# Products of matrices of this size tell the rate of a device, and are over in milliseconds.
_SIZE, _HOST_SIZE, _SENT = 2048, 1536, 2**26
# Seconds that a call of a device takes however little it does, transfers back and forth
# included.
_LATENCY = 2e-4


@dataclass(frozen=True)
class Rates:
    """What a device and its host do in a second.

    Attributes
    ----------
    float64, float32 : float
        Operations of matrix products on the device.
    host : float
        The same on the host, in float64.
    transfer : float
        Bytes between the two, one way, from memory that is not pinned.
    """

    float64: float
    float32: float
    host: float
    transfer: float

    def pays(self, operations: float, bytes_moved: float) -> bool:
        """Return whether work on arrays of the host is done sooner on the device.

        Parameters
        ----------
        operations, bytes_moved : float

        Returns
        -------
        bool
        """
        there = _LATENCY + bytes_moved / self.transfer + operations / self.float64
        return there < operations / self.host


@cache
def measured_rates(device: str) -> Rates:
    """Return the rates of a device: a tenth of a second, once a process.

    Parameters
    ----------
    device : str
        As PyTorch names it.

    Returns
    -------
    Rates
    """
    torch = require("torch", "torch")

    def wait() -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    def rate(dtype: Any) -> float:
        A = torch.ones((_SIZE, _SIZE), dtype=dtype, device=device)
        return 2 * _SIZE**3 / _seconds(lambda: A @ A, wait)

    H = np.ones((_HOST_SIZE, _HOST_SIZE))
    host = 2 * _HOST_SIZE**3 / _seconds(lambda: host_engine().product(H, H), wait)
    sent = torch.ones(_SENT // 8, dtype=torch.float64)
    transfer = _SENT / _seconds(lambda: sent.to(device).cpu(), wait) * 2
    return Rates(rate(torch.float64), rate(torch.float32), host, transfer)


def _seconds(work: Callable[[], Any], wait: Callable[[], None]) -> float:
    work()
    best = float("inf")
    for _ in range(3):
        wait()
        start = time.perf_counter()
        work()
        wait()
        best = min(best, time.perf_counter() - start)
    return best
