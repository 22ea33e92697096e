"""``imparo serve`` in a process that is forked from one that has imported all it needs.

Imports take a service two seconds; tests start dozens.
"""

import multiprocessing
import os
import signal
import subprocess
from contextlib import suppress
from multiprocessing.reduction import DupFd

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["imparo.cli.serve", "imparo.service.running", "numba"])


class Forked:
    """The command ``imparo``, as :class:`subprocess.Popen` would run it."""

    def __init__(self, arguments):
        pipes = [os.pipe(), os.pipe()]
        ends = [DupFd(end) for _, end in pipes]
        self._process = _FORKS.Process(target=_run, args=(arguments, *ends), daemon=True)
        try:
            self._process.start()
        finally:
            for _, end in pipes:
                os.close(end)
        self.pid = self._process.pid
        self.stdout, self.stderr = (os.fdopen(begin, encoding="utf-8") for begin, _ in pipes)

    def wait(self, timeout=None):
        """Return how it ended; by a signal, its number below zero."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("imparo", timeout)
        return self._process.exitcode

    def send_signal(self, number):
        """Send it a signal, if it is there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self):
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _run(arguments, out, err):
    for number, end in enumerate((out.detach(), err.detach()), 1):
        os.dup2(end, number)
        os.close(end)
    from imparo.cli import main

    main(arguments, prog_name="imparo")
