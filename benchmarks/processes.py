"""A scheduler and workers of Dask as processes of their own, for benchmarks and tests."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

_SECONDS = 60


class Processes:
    """A scheduler and workers on this machine, killed when the block is left.

    Parameters
    ----------
    workers : int
    threads : int
        Of every worker.
    memory : str
        Limit of every worker; "0" is none.
    nanny : bool
        Whether a process watches every worker, keeps its limit and starts it again.
    env : dict, optional
        More of the environment of the workers.
    """

    def __init__(
        self, workers: int = 2, *, threads: int = 1, memory: str = "0", nanny: bool = False,
        env: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._count, self._threads, self._memory = workers, threads, memory
        self._nanny, self._env = nanny, env or {}
        self._folder = tempfile.TemporaryDirectory(
            prefix="imparo-dask-",
            ignore_cleanup_errors=True,  # a worker ends a moment after who watched it
        )
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        told = folder / "scheduler.json"
        self.scheduler = self._started(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--no-show", "--scheduler-file", str(told),
        )  # fmt: skip
        until = time.monotonic() + _SECONDS
        while not told.exists() or not told.read_text().strip().endswith("}"):
            if time.monotonic() > until:
                raise TimeoutError((folder / "dask_scheduler.log").read_text())
            time.sleep(0.05)
        import json

        self.address = json.loads(told.read_text())["address"]
        for _ in range(self._count):
            self.add_worker()
        return self

    def add_worker(self) -> None:
        """Start one more worker."""
        self.workers.append(
            self._started(
                "dask_worker", self.address, "--nthreads", str(self._threads),
                "--memory-limit", self._memory, "--no-dashboard",
                "--nanny" if self._nanny else "--no-nanny",
                "--local-directory", self._folder.name,
            )
        )  # fmt: skip

    def _started(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        number = len(self.workers) if module == "dask_worker" else ""
        log = Path(self._folder.name) / f"{module}{number}.log"
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *options],
            env=os.environ | limits | self._env, stdout=log.open("wb"),
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    def client(self, **options: Any) -> Any:
        """Return a client that has seen all workers."""
        from distributed import Client

        client = Client(self.address, **options)
        client.wait_for_workers(self._count, timeout=_SECONDS)
        return client

    def logs(self) -> str:
        """Return what the processes have printed."""
        return "\n".join(p.read_text() for p in sorted(Path(self._folder.name).glob("*.log")))

    def __exit__(self, *_: object) -> None:
        # Killed: asked to end, a worker may wait ten seconds for a scheduler that has ended.
        started = [process for process in [*self.workers, self.scheduler] if process]
        for process in started:
            process.kill()
        for process in started:
            process.wait()
        self._folder.cleanup()


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    return 0
