"""HTTP as uvicorn speaks it, with limits on the head of a request: its size, and its time."""

from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from imparo.service.settings import Limits


def limited_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Return the protocol, for these limits.

    uvicorn waits for ever for the end of a head, and keeps all of it: a few clients that send a
    byte now and then, or headers without end, would take the service down.

    Parameters
    ----------
    limits : Limits
    """

    class LimitedProtocol(HttpToolsProtocol):
        """Closes connections whose heads are too long or too slow."""

        _head = 0
        _timer: TimerHandle | None = None

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._timer is not None:
                self._head += len(data)
                # A body may come in the same piece; the server reads pieces of 64 KiB.
                if self._head > limits.header_bytes + 2**16:
                    self._refuse("The head of the request is too long.")
                    return
            super().data_received(data)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._expect_head()

        def on_header(self, name: bytes, value: bytes) -> None:
            size = len(self.url) + sum(len(a) + len(b) for a, b in self.headers)
            if size + len(name) + len(value) > limits.header_bytes:
                raise ValueError("the head of the request is too long")
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._stop()
            super().on_headers_complete()

        def handle_websocket_upgrade(self) -> None:
            self._stop()
            super().handle_websocket_upgrade()

        def _expect_head(self) -> None:
            if self._timer is None:
                self._head = 0
                self._timer = self.loop.call_later(limits.header_seconds, self._too_slow)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _too_slow(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self._refuse("The head of the request took too long.")

        def _refuse(self, said: str) -> Any:
            self._stop()
            self.send_400_response(said)

    return LimitedProtocol
