"""Learners over WebSockets: examples and questions in, answers and news out."""

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import TypeAdapter, ValidationError

from imparo.service.errors import Busy, Missing, Refused, ServiceError, Throttled, explained
from imparo.service.exchanges import (
    answered,
    answered_picture,
    as_json,
    taught,
    taught_picture,
)
from imparo.service.labels import Label
from imparo.service.live import LiveLearner
from imparo.service.schemas import Ask, Key, Recoding, Strict, Teach
from imparo.service.service import Service
from imparo.service.states import state_of
from imparo.service.telling import told_of

router = APIRouter()
# Messages of one socket that are worked on; what comes beyond waits in the network.
_FLIGHT = 32
# Seconds between two states that are sent to who watches.
_NEWS = 0.2
# Seconds in which who is told goodbye reads an answer.
_FAREWELL = 1.0
# Seconds until a learner that is too busy to tell its state is asked again.
_LATER = 1.0


class TeachImage(Strict):
    """What is on the image that follows."""

    label: Label
    key: Key | None = None


class AskImage(Strict):
    """How to answer the image that follows."""

    recoding: Recoding | None = None


_KINDS: dict[str, TypeAdapter[Any]] = {
    "teach": TypeAdapter(Teach),
    "ask": TypeAdapter(Ask),
    "teach_image": TypeAdapter(TeachImage),
    "ask_image": TypeAdapter(AskImage),
    "watch": TypeAdapter(bool),
}


class Stream:
    """One WebSocket to one learner.

    Messages are worked on as they come, up to 32 at a time, and answered as they are done; what
    a message has changed is there for those that are sent after its answer.
    """

    def __init__(self, socket: WebSocket, service: Service, name: str) -> None:
        self._socket, self._service, self._name = socket, service, name
        self._room = asyncio.Semaphore(_FLIGHT)
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answering = 0  # of the tasks, those whose work is done
        self._gone = False

    async def run(self) -> None:
        """Work until the client leaves, or the service ends."""
        # For the protocol below, which else would close it before what was taken is answered.
        self._socket.scope["imparo.ends"] = True
        self._service.streams.add(self)
        self._reading = asyncio.create_task(self._read())
        try:
            await asyncio.wait([self._reading])
            if self._reading.cancelled():  # the service ends: what was taken is answered
                await self._leave()
            else:
                self._reading.result()
        finally:
            # What was sent is done; only the answers have nowhere to go. A wish to watch may
            # have come together with the farewell, and be looked at only after this.
            self._gone = True
            self._reading.cancel()
            self._service.streams.discard(self)
            if self._watching is not None:
                self._watching.cancel()

    async def _leave(self) -> None:
        """Answer what was taken, and close; who does not read its answers is not waited for."""
        while self._tasks:
            done, _ = await asyncio.wait(self._tasks, timeout=_FAREWELL)
            if not done and self._answering == len(self._tasks):
                break
        try:
            async with asyncio.timeout(_FAREWELL):
                await self._socket.close(1012, "the service is ending")
        except (TimeoutError, WebSocketDisconnect, RuntimeError):
            self._socket.scope.get("imparo.abort", lambda: None)()

    def end_soon(self) -> None:
        """Take no more messages, and leave when those that were taken are answered."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> None:
        while True:
            await self._room.acquire()
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            task = asyncio.create_task(self._handle(message))
            del message
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _handle(self, message: MutableMapping[str, Any]) -> None:
        number: Any = None
        arriving = self._service.arriving
        size = len(message.get("text") or message.get("bytes") or b"")
        arriving.add(size)  # until it is answered, as bodies of requests
        try:
            if arriving.full:
                raise Busy("too much is arriving at once; try again")
            client = self._socket.client
            if not self._service.rates.take(client.host if client else "unknown"):
                raise Throttled(
                    "too many messages a second; send fewer, or several rows in one"
                )
            header, content = _parsed(message, self._service.limits.body_bytes)
            number = _id_of(header)
            kind, sent = _wanted(header, bool(content))
            del header, message  # while it waits for its turn, only what was made of them
            result = as_json(await self._work(kind, sent, content)).decode()
            answer = f'{{"id": {json.dumps(number)}, "result": {result}}}'
        except Exception as error:
            answer = _problem(number, explained(error))
        finally:
            arriving.add(-size)
        self._answering += 1
        await self._send(answer)
        self._answering -= 1

    async def _work(self, kind: str, sent: Any, content: bytes) -> Any:
        service, name = self._service, self._name
        if kind == "teach":
            return await taught(service, name, sent)
        if kind == "ask":
            return await answered(service, name, sent)
        if kind == "teach_image":
            return await taught_picture(service, name, sent.label, sent.key, content)
        if kind == "ask_image":
            return await answered_picture(service, name, sent.recoding, content)
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if sent and not self._gone:
            live = service.learners.find(name).at_work()
            self._watching = asyncio.create_task(self._watch(live))
        return {"watching": sent}

    async def _watch(self, live: LiveLearner) -> None:
        event = live.watch()
        try:
            while True:
                event.clear()
                try:
                    entry = self._service.learners.find(self._name)
                    if entry.live is not live:  # another one has its name now
                        raise Missing(f"the learner {self._name!r} was opened anew")
                    state = as_json(await state_of(entry)).decode()
                except Missing:
                    raise
                except ServiceError:  # it is busy: there will be news later
                    await asyncio.sleep(_LATER)
                    continue
                await self._send(f'{{"event": "state", "state": {state}}}')
                await asyncio.sleep(_NEWS)
                await event.wait()
        except Missing as error:
            await self._send(json.dumps({"event": "end", "error": str(error)}))
        finally:
            live.unwatch(event)

    async def _send(self, text: str) -> None:
        try:
            async with self._writing:
                await self._socket.send_text(text)
        except (WebSocketDisconnect, RuntimeError):
            pass  # the client has gone


def _problem(number: Any, error: ServiceError) -> str:
    return json.dumps({"id": number, **error.content(), "status": error.status})


def _parsed(message: MutableMapping[str, Any], most: int) -> tuple[dict[str, Any], bytes]:
    """Return the JSON object of a message, and the bytes behind it."""
    text, content = message.get("text"), message.get("bytes") or b""
    image = b""
    if text is None:
        if len(content) < 4:
            raise Refused("a binary message begins with the length of its JSON header")
        (length,) = struct.unpack("<I", content[:4])
        if length > min(len(content) - 4, 10_000):
            raise Refused("the JSON header of a binary message is longer than the message")
        text, image = content[4 : 4 + length], content[4 + length :]
    if len(text) > most:
        raise Refused(f"a message is larger than {most:,} bytes, which is the most here")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused("the message is not JSON") from None
    if not isinstance(header, dict):
        raise Refused('a message is a JSON object, as {"id": 1, "ask": {"inputs": [0, 1]}}')
    return header, image


def _id_of(header: dict[str, Any]) -> Any:
    """Take the id of a message, which must be one that can be sent back."""
    number = header.pop("id", None)
    try:
        json.dumps({"id": [number]}, allow_nan=False)
    except (ValueError, RecursionError):
        raise Refused("the id cannot be sent back; use text or a number") from None
    return number


def _wanted(header: dict[str, Any], has_image: bool) -> tuple[str, Any]:
    if len(header) != 1 or not set(header) <= set(_KINDS):
        raise Refused(f"a message has an id and one of {', '.join(_KINDS)}")
    ((kind, given),) = header.items()
    if kind.endswith("image") and not has_image:
        raise Refused(f"{kind} is for binary messages: the image follows the header")
    try:
        return kind, _KINDS[kind].validate_python(given)
    except ValidationError as error:
        told = told_of(error.errors())
    # Not above: no collection sees what pydantic holds of errors, and a cycle would stay.
    raise Refused(told)


@router.websocket("/api/learners/{name}/stream")
async def stream(socket: WebSocket, name: str) -> None:
    """Teach, ask and watch one learner."""
    service: Service = socket.app.state.service

    async def run() -> None:
        service.learners.find(name).at_work()
        await Stream(socket, service, name).run()

    await counted(socket, service, "learner", run)


async def counted(
    socket: WebSocket, service: Service, kind: str, run: Callable[[], Awaitable[None]]
) -> None:
    """Serve a socket, if there is room for one more; what goes wrong is said on it."""
    await socket.accept()
    gauge = service.metrics.sockets.labels(kind)
    gauge.inc()
    service.sockets += 1
    try:
        if service.sockets > service.limits.sockets:
            raise Refused(
                f"{service.limits.sockets} sockets are open, the most here; close some"
            )
        await run()
    except ServiceError as error:
        await _end(socket, str(error))
    except WebSocketDisconnect:
        pass
    finally:
        service.sockets -= 1
        gauge.dec()


async def _end(socket: WebSocket, why: str) -> None:
    try:
        await socket.send_text(json.dumps({"error": why}))
        # A reason has at most 123 bytes.
        await socket.close(1008, why.encode()[:120].decode(errors="ignore"))
    except (WebSocketDisconnect, RuntimeError):
        pass
