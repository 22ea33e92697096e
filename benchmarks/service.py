"""Fifty clients teach and ask at once: what a service takes, how long answers wait.

The same clients ask a service as a careful user would write it, and one that only answers.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, show
from benchmarks.service_rivals import RIVALS

CLIENTS, SECONDS, D, CLASSES = 50, float(os.environ.get("IMPARO_SECONDS", 60)), 512, 10


def main() -> None:
    rows = []
    for name, pause in (("imparo", 0.0), ("imparo, 20 Hz each", 0.05)):
        with tempfile.TemporaryDirectory() as folder:
            rows += _load(name, Path(folder), pause)
    for kind, name in RIVALS.items():
        with tempfile.TemporaryDirectory() as folder:
            rows += _load(name, Path(folder), 0.0, kind)
    title = (
        f"{CLIENTS} clients teach and ask vectors of D = {D}, {SECONDS:g} s, clients on the "
        f"same machine\n{machine()}"
    )
    columns = ["service", "requests", "a second", "median ms", "99 %", "99.9 %", "worst",
               "taught", "refused", "after kill -9", "MB at 10 s", "at the end"]  # fmt: skip
    show(title, columns, rows)


@dataclass
class Tally:
    """What clients saw."""

    teach: list[float] = field(default_factory=list)
    ask: list[float] = field(default_factory=list)
    acknowledged: int = 0
    refused: int = 0
    memory: list[int] = field(default_factory=list)


def _load(name: str, folder: Path, pause: float, rival: str = "") -> list[list[str]]:
    with _service(folder, rival) as (process, port):
        if not rival:
            call(port, "POST", "/api/learners", {"name": "load", "kind": "classifier"})
        tally = Tally()
        asyncio.run(_clients(port, process.pid, pause, tally))
        process.send_signal(signal.SIGKILL)
        process.wait()
    with _service(folder, rival) as (_, port):
        kept = call(port, "GET", "/api/learners/load")["n_seen"]
    seconds = np.array(tally.teach + tally.ask)
    quantiles = [f"{1e3 * q:.1f}" for q in np.quantile(seconds, [0.5, 0.99, 0.999, 1.0])]
    early, late = tally.memory[min(10, len(tally.memory) - 1)], tally.memory[-1]
    return [[
        name, f"{len(seconds):,}", f"{len(seconds) / SECONDS:,.0f}", *quantiles,
        f"{tally.acknowledged:,}", f"{tally.refused:,}", f"{kept:,}",
        f"{early / 1e6:.0f}", f"{late / 1e6:.0f}",
    ]]  # fmt: skip


async def _clients(port: int, process: int, pause: float, tally: Tally) -> None:
    end = asyncio.get_running_loop().time() + SECONDS
    watcher = asyncio.create_task(_watch(process, tally))
    await asyncio.gather(*(_client(port, k, end, pause, tally) for k in range(CLIENTS)))
    watcher.cancel()


async def _watch(process: int, tally: Tally) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        statm = Path(f"/proc/{process}/statm").read_text().split()
        tally.memory.append(int(statm[1]) * page)
        await asyncio.sleep(1)


async def _client(port: int, k: int, end: float, pause: float, tally: Tally) -> None:
    """Teach and ask in turns, one request at a time."""
    rng = np.random.default_rng(k)
    bodies = [_bodies(rng) for _ in range(20)]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    loop = asyncio.get_running_loop()
    await asyncio.sleep(float(rng.uniform(0, max(pause, 0.05))))
    n = 0
    while loop.time() < end:
        for kind, content in zip(("teach", "ask"), bodies[n % len(bodies)], strict=True):
            start = loop.time()
            writer.write(content)
            status = await _answer(reader)
            seconds = loop.time() - start
            (tally.teach if kind == "teach" else tally.ask).append(seconds)
            if kind == "teach" and status == 200:
                tally.acknowledged += 1
            # The very first questions come before anything is known.
            tally.refused += status not in (200, 409)
            if pause:
                await asyncio.sleep(max(0.0, pause - seconds))
        n += 1
    writer.close()


def _bodies(rng: np.random.Generator) -> tuple[bytes, bytes]:
    label = int(rng.integers(CLASSES))
    x = rng.normal(size=D)
    x[label] += 4
    row = [round(v, 6) for v in x.tolist()]
    teach = json.dumps({"inputs": row, "labels": f"class {label}"}).encode()
    ask = json.dumps({"inputs": row}).encode()
    return tuple(_request(f"/api/learners/load/{kind}", content)
                 for kind, content in (("teach", teach), ("ask", ask)))  # fmt: skip


def _request(path: str, content: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def _answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head[9:12])


# A service in a process of its own.


@contextmanager
def _service(folder: Path, rival: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    if not rival:
        with served(folder, "--rate", "0") as found:
            yield found
        return
    command = [sys.executable, "-m", "benchmarks.service_rivals", rival, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Serve a folder; yield the process and its port."""
    command = [sys.executable, "-m", "imparo", "serve", str(folder), "--port", "0",
               "--log", "json", *options]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process, _port(process)
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("{"):
            told = json.loads(line)
            if told["event"] == "ready":
                return int(told["url"].rstrip("/").rpartition(":")[2])
    raise RuntimeError("the service did not start")


def call(port: int, method: str, path: str, content: Any = None) -> Any:
    """Send one request and return what came back."""
    import httpx

    answer = httpx.request(method, f"http://127.0.0.1:{port}{path}", json=content, timeout=120)
    answer.raise_for_status()
    return answer.json()


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"{time.perf_counter() - start:.0f} s")
