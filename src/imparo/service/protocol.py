"""HTTP and WebSockets as uvicorn speaks them, with limits on sizes and times."""

import json
from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from imparo.service.rates import Arriving
from imparo.service.replies import HEADERS
from imparo.service.settings import Limits

# What a header counts for beside its letters: it costs memory, however short it is.
_EACH = 32
# Bytes that must be read of an answer in the time that a body may take to arrive.
_LEAST = 2**16
# Seconds that the other end has to say goodbye when the service ends.
_FAREWELL = 1.0
# Bytes that may wait to be read beyond an answer: of pongs, say.
_UNREAD = 2**20


class _Reading:
    """Ends connections whose other end does not read what it has asked for."""

    loop: Any
    transport: Any
    seconds: float
    _unread = 0
    _reading: TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        self._wait()

    def resume_writing(self) -> None:
        super().resume_writing()  # type: ignore[misc]
        self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)  # type: ignore[misc]

    def _wait(self) -> None:
        self._forget()
        self._unread = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(self.seconds, self._look)

    def _look(self) -> None:
        if self.transport.get_write_buffer_size() > self._unread - _LEAST:
            self.transport.abort()
        else:
            self._wait()

    def _forget(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None


def limited_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Return HTTP for these limits.

    uvicorn waits for ever for the end of a head, and keeps all of it: a few clients that send a
    byte now and then, or headers without end, would take the service down. So would those who
    go on sending a body after it was answered, and those who never read an answer.

    Parameters
    ----------
    limits : Limits
    """

    class LimitedProtocol(_Reading, HttpToolsProtocol):
        """Closes connections whose heads are too long or too slow, or whose rest is."""

        seconds = limits.body_seconds

        _head = 0  # bytes that came while a head was expected
        _size = 0  # of the head as far as it is read
        _whole = True
        _timer: TimerHandle | None = None
        _rest: TimerHandle | None = None
        _at_work: RequestResponseCycle | None = None

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)
            # uvicorn tells the request that came last; of several that came together, the one
            # at work is another, and would write where nobody reads.
            cycle = self._at_work
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.transport.get_protocol() is not self:
                return  # it has become a WebSocket
            # What ended a head may hold much of a body, and is not counted.
            if self._timer is not None:
                self._head += len(data)
                if self._head > limits.header_bytes and not self.transport.is_closing():
                    self._refuse("the head of the request is too long")
            elif self._whole and (self.cycle is None or self.cycle.response_complete):
                # Empty lines between requests: they have ended uvicorn's own waiting, and are
                # the beginning of no head.
                self._expect_head()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._size, self._whole = 0, False
            self._expect_head()

        def on_url(self, url: bytes) -> None:
            self._grow(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._grow(len(name) + len(value) + _EACH)
            super().on_header(name, value)

        def _grow(self, size: int) -> None:
            self._size += size
            if self._size > limits.header_bytes:
                raise ValueError("the head of the request is too long")

        def on_headers_complete(self) -> None:
            self._stop()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._whole = True
            self._stop()
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self._whole and self._rest is None:
                # What comes is thrown away, but not for ever.
                self._rest = self.loop.call_later(limits.body_seconds, self.transport.close)

        def handle_websocket_upgrade(self) -> None:
            self._stop()
            super().handle_websocket_upgrade()
            # It has the whole head; what it cannot read it would wait for without end.
            if not getattr(self.transport.get_protocol(), "handshake_initiated", True):
                self.send_400_response("this does not open a WebSocket; use GET without a body")

        def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
            self._at_work = cycle
            super()._start_asgi_task(cycle, _full if app is service_unavailable else app)

        def _expect_head(self) -> None:
            if self._timer is None and not self.transport.is_closing():
                self._head = 0
                self._timer = self.loop.call_later(limits.header_seconds, self._too_slow)

        def _stop(self) -> None:
            for timer in (self._timer, self._rest):
                if timer is not None:
                    timer.cancel()
            self._timer = self._rest = None

        def _too_slow(self) -> None:
            self._timer = None
            if self.transport.is_closing():
                return
            if self._head:
                self._refuse("the head of the request took too long")
            else:  # a browser that may want it later: to answer what was not asked breaks that
                self.transport.close()

        def _refuse(self, said: str) -> Any:
            self._stop()
            self.send_400_response(said)

        def send_400_response(self, msg: str) -> None:
            status, headers, content = _told(400, msg)
            lines = [b"HTTP/1.1 %d Bad Request" % status]
            lines += [name + b": " + value for name, value in headers]
            self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + content)
            self.transport.close()

    return LimitedProtocol


def limited_sockets(limits: Limits, arriving: Arriving) -> type[WebSocketsSansIOProtocol]:
    """Return WebSockets for these limits.

    uvicorn waits for ever for the end of a message that has begun, and answers pings whether
    the answers are read or not.

    Parameters
    ----------
    limits : Limits
    arriving : Arriving
        To which the parts of messages are added.
    """

    class LimitedSockets(_Reading, WebSocketsSansIOProtocol):
        """Closes sockets whose messages are too slow, or whose answers are not read."""

        seconds = limits.body_seconds
        scope: Any = None
        _kept = 0  # bytes of a message that has begun
        _message: TimerHandle | None = None

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.transport.is_closing():
                return
            kept = len(self.conn.reader.buffer) + sum(map(len, self.frames))
            arriving.add(kept - self._kept)
            self._kept = kept
            if (kept and arriving.full) or self.transport.get_write_buffer_size() > _UNREAD:
                self.transport.abort()
            elif not kept:
                self._stop()
            elif self._message is None:
                self._message = self.loop.call_later(self.seconds, self.transport.abort)

        def shutdown(self) -> None:
            if "imparo.ends" not in (self.scope or ()) or self.close_sent:
                super().shutdown()
                return
            # Streams answer what they have taken, then leave.
            self.close_timeout = _FAREWELL
            self.scope["imparo.abort"] = self.transport.abort

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            arriving.add(-self._kept)
            self._kept = 0
            super().connection_lost(exc)

        def _stop(self) -> None:
            if self._message is not None:
                self._message.cancel()
                self._message = None

    return LimitedSockets


async def _full(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request that there is no room for."""
    status, headers, content = _told(
        503, "too many connections are open; try again in a second"
    )
    headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _told(status: int, said: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    content = json.dumps({"error": said}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
        *HEADERS,
    ]
    return status, headers, content
