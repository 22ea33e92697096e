"""The service for tests: in a process of its own, or in this one."""

import asyncio
import contextlib
import io
import json
import socket
import struct
import subprocess
import sys
import threading
import time
import zipfile

import httpx
import numpy as np
from fastapi.testclient import TestClient

from forked import Forked
from imparo import persistence
from imparo.service import Settings, create_app

ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = ["mug", "ball", "car"] * 20


class Served:
    """A service in a process of its own.

    Attributes
    ----------
    process : Popen
    url : str
        Without the slash at its end.
    port : int
    log : list of dict
        What it has logged so far.
    """

    def __init__(self, folder, *options, prefix=(), env=None, program=None):
        arguments = ["serve", str(folder), "--port", "0", "--log", "json", *map(str, options)]
        if prefix or env or program:
            command = ["-m", "imparo", *arguments]
            if program is not None:
                command = ["-c", program, str(folder), *map(str, options)]
            self.process = subprocess.Popen(
                [*prefix, sys.executable, *command],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
            )  # fmt: skip
        else:
            self.process = Forked(arguments)
        self.log, self.said = [], []
        for line in self.process.stderr:
            self._keep(line)
            if self.log and self.log[-1].get("event") == "ready":
                break
        else:
            self.kill()
            raise AssertionError(f"it did not start: {self.log}")
        self.url = self.log[-1]["url"].rstrip("/")
        self.port = httpx.URL(self.url).port
        # Pipes that nobody reads would block it.
        for pipe, keep in (
            (self.process.stderr, self._keep), (self.process.stdout, self.said.append)
        ):  # fmt: skip
            threading.Thread(target=self._drain, args=(pipe, keep), daemon=True).start()

    def _keep(self, line):
        try:
            self.log.append(json.loads(line))
        except ValueError:
            self.log.append({"event": line.rstrip()})

    def _drain(self, pipe, keep):
        with contextlib.suppress(ValueError):
            for line in pipe:
                keep(line)

    def client(self, **options):
        """A client of HTTP; to be closed."""
        return httpx.Client(base_url=self.url, timeout=60, **options)

    def bugs(self):
        """What the service itself calls an error; broken text of a client is none."""
        errors = [line for line in self.log if line.get("level") in ("error", "critical")]
        return [line for line in errors if "Invalid UTF-8" not in line["event"]]

    @property
    def memory(self):
        """Bytes that the process has."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            (line,) = [line for line in file if line.startswith("VmRSS")]
        return 1024 * int(line.split()[1])

    def kill(self):
        """End it at once."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def served(folder, *options, **more):
    """``imparo serve FOLDER`` in a process of its own, killed at the end."""
    service = Served(folder, *options, **more)
    try:
        yield service
    finally:
        service.kill()


@contextlib.contextmanager
def in_process(folder, *, raises=True, **settings):
    """A client of a service in this process."""
    app = create_app(Settings(folder, **settings))
    with TestClient(
        app,
        base_url="http://localhost",
        raise_server_exceptions=raises,
        client=("127.0.0.1", 5),
    ) as client:
        yield client


def make(client, name="toys", kind="classifier", **more):
    """Make a learner."""
    made = client.post("/api/learners", json={"name": name, "kind": kind, **more})
    assert made.status_code == 201, made.text


def teach(client, name="toys", rows=ROWS, labels=LABELS, **more):
    """Teach rows; return what was answered."""
    sent = {"inputs": np.asarray(rows).tolist(), "labels": labels, **more}
    return client.post(f"/api/learners/{name}/teach", json=sent)


def live_of(client, name="toys"):
    """The learner at work behind a client of a service in this process."""
    return client.app.service.learners.find(name).at_work()


@contextlib.contextmanager
def at_work(live):
    """Keep a learner at work, and all that is sent to it waiting, until the block's end."""
    begun, go_on = threading.Event(), threading.Event()

    def work():
        begun.set()
        assert go_on.wait(30)

    thread = threading.Thread(target=lambda: asyncio.run(live.change(work)))
    thread.start()
    try:
        assert begun.wait(30)
        yield
    finally:
        go_on.set()
        thread.join()


def serving(before="", **limits):
    """A program that serves a folder, after some lines of its own and with these limits."""
    return f"""
import sys, time
{before}
from imparo.service import Limits, Settings, serve
from imparo.service.logs import set_up
set_up("json", "info")
serve(Settings(sys.argv[1], port=0, limits=Limits(**{limits})))
"""


def slowly(seconds, before=""):
    """A program that serves a folder, with learners that take so long for a block."""
    return serving(f"""
{before}
from imparo.lifelong.durable import DurableLearner
learn = DurableLearner.learn
def slow(self, X, y):
    time.sleep({seconds})
    return learn(self, X, y)
DurableLearner.learn = slow
""")


def populate(client):
    """Make an open learner of each kind, and teach each a little."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(36, 3)).round(3).tolist()
    for name, kind, taught in (
        ("toys", "classifier", {"labels": ["mug", "ball", "mug", "car", "ball", "mug"] * 6}),
        ("arm", "regressor", {"outputs": [[row[0], row[1] * 2] for row in rows]}),
    ):
        created = client.post("/api/learners", json={"name": name, "kind": kind})
        assert created.status_code == 201, created.text
        told = client.post(f"/api/learners/{name}/teach", json={"inputs": rows, **taught})
        assert told.status_code == 200, told.text
    new = {"name": "drawn", "kind": "classifier", "features": "pixels"}
    assert client.post("/api/learners", json=new).status_code == 201
    for k in range(3):
        told = client.post(
            "/api/learners/drawn/teach/image", params={"label": f"shape {k % 2}"},
            content=drawing(k), headers={"content-type": "image/png"},
        )  # fmt: skip
        assert told.status_code == 200, told.text
    return ["arm", "drawn", "toys"]


def drawing(number=0, kind="PNG"):
    """The bytes of a drawing."""
    import io

    from PIL import Image, ImageDraw

    image = Image.new("RGB", (64, 48), "white")
    ImageDraw.Draw(image).ellipse((8, 8 + 4 * number, 40, 40), fill="black")
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def kept(client, folder, names, **more):
    """What learners know, bit for bit, but what predictions leave behind."""
    found = {}
    for name in names:
        answer = client.get(f"/api/learners/{name}/export", **more)
        assert answer.status_code == 200, answer.text
        state = client.get(f"/api/learners/{name}", **more).json()
        found[name] = (
            state["number"], state["n_seen"], state["classes"], bits(answer.content, folder)
        )  # fmt: skip
    return found


def bits(exported, folder):
    """A digest of every array and number of an exported learner."""
    import io
    import zipfile

    path = folder / "exported.imparo"
    with zipfile.ZipFile(io.BytesIO(exported)) as archive:
        path.write_bytes(archive.read("learner.imparo"))
    learner = persistence.load(path)
    for recursion in vars(learner).get("_recursions", []):
        recursion._errors = recursion._errors[:0]
    return persistence.fingerprint(learner)


# Over bare sockets.


@contextlib.contextmanager
def connected(service, seconds=30.0):
    """A bare socket to a service."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=seconds) as bare:
        yield bare


@contextlib.contextmanager
def upgraded(service, seconds=30.0):
    """A bare socket to the learner "toys" that has become a WebSocket."""
    with connected(service, seconds) as bare:
        bare.sendall(
            b"GET /api/learners/toys/stream HTTP/1.1\r\nHost: localhost\r\n"
            b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        assert bare.recv(2**16).startswith(b"HTTP/1.1 101")  # what came before is lost
        yield bare


def flood(bare, message):
    """Send the same again and again, until that fails or it was taken ten thousand times."""
    for _ in range(10_000):
        bare.sendall(message)


def answer_of(bare):
    """Read until the other end closes; return the status and all that was read."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := bare.recv(2**16):
            received += piece
    return (int(received[9:12]) if received[:5] == b"HTTP/" else None), received


def frame(payload, opcode=1, final=True, masked=True):
    """A frame of a WebSocket, as a client sends it."""
    head = bytes([(128 if final else 0) | opcode])
    mask = 128 if masked else 0
    if len(payload) < 126:
        head += bytes([mask | len(payload)])
    elif len(payload) < 2**16:
        head += bytes([mask | 126]) + struct.pack(">H", len(payload))
    else:
        head += bytes([mask | 127]) + struct.pack(">Q", len(payload))
    return head + (b"\0\0\0\0" if masked else b"") + payload


def until(condition, seconds=30.0):
    """Wait until something is so; fail if it never is."""
    patience = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < patience, "it did not come to be"
        time.sleep(0.01)


def taught_service(tmp_path_factory):
    """A service with learners that no test of a file changes: a fixture of that file."""
    folder = tmp_path_factory.mktemp("taught")
    with in_process(folder / "learners", raises=False) as found:
        names = populate(found)
        before = kept(found, folder, names)
        yield found
        assert kept(found, folder, names) == before
        assert {
            state["name"] for state in found.get("/api/learners").json()["learners"]
        } == set(names)


def patient_service(tmp_path_factory):
    """A service in a process of its own, which must outlive all tests of a file."""
    with served(tmp_path_factory.mktemp("served") / "learners") as service:
        with service.client() as http:
            populate(http)
        yield service
        with service.client() as http:
            assert http.get("/health/ready").json() == {"status": "ready", "damaged": []}
        assert service.bugs() == []


def exported(client, name="toys"):
    """The parts of an exported learner."""
    content = client.get(f"/api/learners/{name}/export").content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {part: archive.read(part) for part in archive.namelist()}
