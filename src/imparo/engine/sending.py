"""Blocks of rows on their way to a device: one is sent while another is computed with.

A copy from memory that the system may move waits for the host; so rows go through buffers that
are locked in place ("pinned"), filled in turn, and copies run beside the work on the device.
Rows that lie in pinned memory already are sent from where they are.
"""

from collections.abc import Iterator
from typing import Any

from scipy import sparse

from imparo.engine.base import Array, Engine
from imparo.engine.current import is_tensor

# Buffers that are filled in turn.
_BUFFERS = 3


class Sender:
    """Sends blocks of rows to one device.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Engine) -> None:
        on_device: Any = engine
        self._engine = on_device
        self._asynchronous = self._engine.device.type == "cuda"
        self._buffers: list[Any] = [None] * _BUFFERS
        self._free: list[Any] = [None] * _BUFFERS
        self._turn = 0
        if self._asynchronous:
            self._copies = self._engine.copies

    def send(self, X: Any) -> Any:
        """Start to send a block; :meth:`arrived` makes the device wait for it.

        Sparse rows stay where they are.
        """
        if sparse.issparse(X):
            return X, None
        if is_tensor(X) or not self._asynchronous:
            return self._engine.asarray(X), None
        torch, device = self._engine.xp, self._engine.device
        rows = torch.from_numpy(X if X.flags.writeable else X.copy())
        turn = None
        if not rows.is_pinned():
            turn = self._turn = (self._turn + 1) % _BUFFERS
            rows = self._staged(rows, turn)
        with torch.cuda.stream(self._copies):
            there = rows.to(device, non_blocking=True)
            done = torch.cuda.Event()
            done.record(self._copies)
        if turn is not None:
            self._free[turn] = done
        return there, done

    def _staged(self, rows: Any, turn: int) -> Any:
        torch, needed = self._engine.xp, rows.numel() * rows.element_size()
        if self._free[turn] is not None:
            self._free[turn].synchronize()
        buffer = self._buffers[turn]
        if buffer is None or buffer.numel() < needed:
            buffer = self._buffers[turn] = torch.empty(
                needed, dtype=torch.uint8, pin_memory=True
            )
        place = buffer[:needed].view(rows.dtype).view(rows.shape)
        place.copy_(rows)
        return place

    def arrived(self, sent: Any) -> Array:
        """Return a block that was sent, for use on the device from now on."""
        there, done = sent
        if done is not None:
            now = self._engine.xp.cuda.current_stream(self._engine.device)
            now.wait_event(done)
            there.record_stream(now)
        return there


def sent_ahead(
    blocks: Iterator[tuple[slice, Any]], engines: list[Engine]
) -> Iterator[tuple[slice, Array, Engine]]:
    """Yield blocks of rows on devices in turn, each sent while the one before is at work.

    Parameters
    ----------
    blocks : iterator over (positions, rows)
    engines : list of Engine

    Yields
    ------
    positions : slice
    rows : array
        Of the engine.
    engine : Engine
    """
    senders = [Sender(engine) for engine in engines]
    waiting: list[tuple[slice, Any, int]] = []
    for number, (rows, X) in enumerate(blocks):
        k = number % len(engines)
        waiting.append((rows, senders[k].send(X), k))
        if len(waiting) > len(engines):
            rows, sent, k = waiting.pop(0)
            yield rows, senders[k].arrived(sent), engines[k]
    for rows, sent, k in waiting:
        yield rows, senders[k].arrived(sent), engines[k]
