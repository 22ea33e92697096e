"""The simulated arm over a WebSocket: its samples out, what is to be done in."""

import asyncio
import json
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from imparo.service.errors import Busy
from imparo.service.service import Service
from imparo.service.streams import counted

if TYPE_CHECKING:
    from imparo.service.robot_view import ArmShow

router = APIRouter()
_RATE = 10.0  # samples a second at speed 1


@router.websocket("/api/robot")
async def robot(socket: WebSocket) -> None:
    """Play an arm whose dynamics are learned while it moves."""
    service: Service = socket.app.state.service

    async def run() -> None:
        if service.robots >= service.limits.robots:
            raise Busy(
                f"{service.limits.robots} arms are moving already, the most here; close the "
                "page in another window"
            )
        service.robots += 1
        try:
            await _play(socket)
        finally:
            service.robots -= 1

    await counted(socket, service, "robot", run)


def _arm() -> "ArmShow":
    # What moves arms takes a second to import, and most services never do.
    from imparo.service.robot_view import ArmShow

    return ArmShow()


async def _play(socket: WebSocket) -> None:
    show = await asyncio.to_thread(_arm)
    await socket.send_text(json.dumps({"about": show.about()}))
    commands: asyncio.Queue[str] = asyncio.Queue(16)
    reader = asyncio.create_task(_read(socket, commands))
    loop = asyncio.get_running_loop()
    due = loop.time()
    try:
        while not reader.done():
            while not commands.empty():
                await _obey(socket, show, commands.get_nowait())
            if show.paused:
                await asyncio.wait([reader], timeout=0.1)
                due = loop.time()
                continue
            frame = await asyncio.to_thread(show.step)
            await socket.send_text(json.dumps(frame))
            # A machine that is too slow plays slower; it does not hurry afterwards.
            due = max(due + 1 / (_RATE * show.speed), loop.time())
            await asyncio.wait([reader], timeout=due - loop.time())
    finally:
        reader.cancel()


async def _read(socket: WebSocket, commands: "asyncio.Queue[str]") -> None:
    try:
        while True:
            await commands.put(await socket.receive_text())
    except (WebSocketDisconnect, KeyError, RuntimeError):
        return  # gone, or not text


async def _obey(socket: WebSocket, show: "ArmShow", text: str) -> None:
    try:
        wanted: Any = json.loads(text) if len(text) < 10_000 else None
        if not isinstance(wanted, dict):
            raise ValueError('a command is a JSON object, as {"do": "payload", "on": true}')
        await asyncio.to_thread(show.do, wanted)
    except (ValueError, RecursionError) as error:
        await socket.send_text(json.dumps({"error": str(error)}))
