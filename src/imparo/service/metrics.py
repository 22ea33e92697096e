"""Numbers about a running service, for Prometheus."""

import os
import time
from pathlib import Path
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counters of one service; several in one process do not share them.

    Examples
    --------
    >>> from imparo.service.metrics import Metrics
    >>> metrics = Metrics()
    >>> metrics.learned("objects", 3, 0.001, 4096)
    >>> b'imparo_learned_rows_total{learner="objects"} 3.0' in metrics.text()
    True
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kept: Any = {"registry": self.registry}
        self.requests = Counter(
            "imparo_requests", "Requests by route and status.", ["method", "route", "status"],
            **kept,
        )  # fmt: skip
        self.seconds = Histogram(
            "imparo_request_seconds", "From the head of a request to the end of its answer.",
            ["route"], buckets=_SECONDS, **kept,
        )  # fmt: skip
        self.refused = Counter(
            "imparo_refused", "Requests that were refused before they reached a route.",
            ["reason"], **kept,
        )  # fmt: skip
        self.rows = Counter("imparo_learned_rows", "Examples learned.", ["learner"], **kept)
        self.asked = Counter("imparo_answered_rows", "Rows answered.", ["learner"], **kept)
        self.learning = Histogram(
            "imparo_learn_seconds", "Of learning and keeping one block.", ["learner"],
            buckets=_SECONDS, **kept,
        )  # fmt: skip
        self.blocks = Histogram(
            "imparo_learn_block_rows", "Examples that were learned together.", ["learner"],
            buckets=_ROWS, **kept,
        )  # fmt: skip
        self.waiting = Gauge(
            "imparo_waiting_rows", "Examples that wait to be learned.", ["learner"], **kept
        )
        self.memory = Gauge("imparo_learner_bytes", "Of a learner.", ["learner"], **kept)
        self.learners = Gauge("imparo_learners", "Learners.", ["status"], **kept)
        self.sockets = Gauge("imparo_websockets", "Open WebSockets.", ["kind"], **kept)
        self.resident = Gauge("imparo_resident_bytes", "Memory of the process.", **kept)
        started = Gauge("imparo_start_time_seconds", "When the service began.", **kept)
        started.set(time.time())

    def learned(self, learner: str, rows: int, seconds: float, memory: int) -> None:
        """Count a block that was learned."""
        self.rows.labels(learner).inc(rows)
        self.learning.labels(learner).observe(seconds)
        self.blocks.labels(learner).observe(rows)
        self.memory.labels(learner).set(memory)

    def answered(self, learner: str, rows: int) -> None:
        """Count rows that were answered."""
        self.asked.labels(learner).inc(rows)

    def forget(self, learner: str) -> None:
        """Drop the series of a learner that is gone."""
        for series in (self.rows, self.asked, self.learning, self.blocks, self.waiting,
                       self.memory):  # fmt: skip
            if (learner,) in series._metrics:
                series.remove(learner)

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        self.resident.set(resident())
        return generate_latest(self.registry)


def resident() -> int:
    """Return the bytes of memory that this process has, as far as the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
