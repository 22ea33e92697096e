"""A million malformed requests: the service stays up, and its learners stay as they are.

``python -m benchmarks.service_fuzz [N] [SEED]``
"""

import asyncio
import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, show
from imparo import persistence

CONNECTIONS, BATCH = 8, 40
SECONDS = float(os.environ.get("IMPARO_SECONDS", 7200))
# What memory may grow by after the first tenths of the requests, in bytes.
GROWTH = 64 * 2**20
# Requests after a tenth of which a service is warm: all it loads late is there.
LONG = 50_000
ROW = [0.5, -1.0, 2.0]


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        report = fuzz(Path(folder), number, seed, SECONDS)
    seconds = time.perf_counter() - start
    title = f"{sum(report.statuses.values()):,} malformed requests, seed {seed}\n{machine()}"
    rows = [[str(status), f"{count:,}"] for status, count in sorted(report.statuses.items())]
    show(title, ["answered with", "requests"], rows)
    print(f"{seconds:.0f} s; memory {report.early / 1e6:.0f} MB in the second tenth, "
          f"{report.late / 1e6:.0f} MB in the last")  # fmt: skip
    for problem in report.problems:
        print(f"PROBLEM: {problem}")
    if report.problems:
        sys.exit(1)
    print("The service is up, nothing was answered with 5xx but 503, memory is flat, and every "
          "array of every learner is as it was.")  # fmt: skip


@dataclass
class Report:
    """What came of it.

    Attributes
    ----------
    statuses : Counter
        Of HTTP; "closed" where the connection was closed without an answer. What was said over
        WebSockets counts as "WS" and its status.
    early, late : int
        Bytes of memory of the service: the least in the second tenth, and in the last.
    problems : list of str
        Empty if all is as it should be.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    early: int = 0
    late: int = 0
    problems: list[str] = field(default_factory=list)


def fuzz(
    folder: Path, number: int, seed: int, seconds: float, *, more: tuple[bytes, ...] = ()
) -> Report:
    """Send malformed requests to a service of its own, and look what they did.

    Parameters
    ----------
    folder : Path
    number : int
        Of requests, at least.
    seed : int
        Of what is sent.
    seconds : float
        After which no more is sent.
    more : sequence of bytes
        Requests that are sent before all others.
    """
    import httpx

    report = Report()
    log = folder / "log"
    with (
        served(folder / "learners", log) as (process, port),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        maker = Maker(_populate(client))
        before = known(client, folder)
        sender = _Sender(port, process.pid, maker, report)
        asyncio.run(sender.all(number, seed, seconds, more))
        if process.poll() is not None:
            report.problems.append(f"the service ended with {process.returncode}")
            return report
        if client.get("/health/ready").json() != {"status": "ready", "damaged": []}:
            report.problems.append("the service is not ready")
        after = known(client, folder)
    report.problems += [
        f"{name} was changed" for name in before if after.get(name) != before[name]
    ]
    report.problems += [f"{name} is new" for name in set(after) - set(before)]
    bad = {s: n for s, n in report.statuses.items() if s.split()[-1] >= "5" and "503" not in s
           and s != "closed"}  # fmt: skip
    if bad:
        report.problems.append(f"server errors: {bad}")
    if number >= LONG and report.late - report.early > GROWTH:
        report.problems.append(f"memory grew by {(report.late - report.early) / 1e6:.0f} MB")
    lines = log.read_text("utf-8").splitlines()
    bugs = [line for line in lines if '"event": "a bug' in line or "Exception in ASGI" in line]
    report.problems += bugs[:5]
    return report


# Learners, and what they know.


def _populate(client: Any) -> dict[str, bytes]:
    """Make a learner of each kind; return an exported one and images."""
    from PIL import Image, ImageDraw

    rows = np.random.default_rng(0).normal(size=(40, 3)).round(3).tolist()
    labels = ["mug", "ball", "mug", "car"] * 10
    for name, kind, taught in (
        ("toys", "classifier", {"labels": labels}),
        ("arm", "regressor", {"outputs": [row[:2] for row in rows]}),
        ("wrist", "dynamics", {"outputs": [row[:1] for row in rows]}),
    ):
        parameters = {"n_features": 20} if kind == "dynamics" else {}
        new = {"name": name, "kind": kind, "parameters": parameters}
        client.post("/api/learners", json=new).raise_for_status()
        sent = {"inputs": rows, **taught}
        client.post(f"/api/learners/{name}/teach", json=sent).raise_for_status()
    new = {"name": "drawn", "kind": "classifier", "features": "pixels"}
    client.post("/api/learners", json=new).raise_for_status()
    found = {}
    for kind in ("PNG", "JPEG", "WEBP"):
        image = Image.new("RGB", (48, 40), "white")
        ImageDraw.Draw(image).ellipse((5, 5, 30, 20 + len(kind)), fill="black")
        file = io.BytesIO()
        image.save(file, kind)
        found[kind] = file.getvalue()
        client.post(
            "/api/learners/drawn/teach/image", params={"label": kind}, content=found[kind],
            headers={"content-type": "image/png"},
        ).raise_for_status()  # fmt: skip
    found["export"] = client.get("/api/learners/toys/export").content
    return found


def known(client: Any, folder: Path) -> dict[str, Any]:
    """Return what every learner knows: numbers, classes, and a digest of every array."""
    found = {}
    for state in client.get("/api/learners").json()["learners"]:
        content = client.get(f"/api/learners/{state['name']}/export").content
        path = folder / "exported.imparo"
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            path.write_bytes(archive.read("learner.imparo"))
        learner = persistence.load(path)
        told = [state[key] for key in ("kind", "status", "n_seen", "number", "classes")]
        found[state["name"]] = [*told, persistence.fingerprint(_settled(learner))]
    return found


def _settled(learner: Any) -> Any:
    """Return a learner without what asking has left behind in its parts, which is computed."""
    rest, seen = [learner], set()
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, list | tuple):
            rest += value
        elif type(value).__module__.startswith("imparo"):
            if {"_gains", "_errors"} <= vars(value).keys():
                value._errors = value._errors[:0]
            rest += vars(value).values()
    return learner


@contextmanager
def served(folder: Path, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Serve a folder, and log to a file: a pipe would fill up."""
    command = [sys.executable, "-m", "imparo", "serve", str(folder), "--port", "0",
               "--log", "json", "--rate", "0"]  # fmt: skip
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        while not (found := re.search(r'"url": "http://[^"]*:(\d+)/"', log.read_text("utf-8"))):
            if process.poll() is not None:
                raise RuntimeError(f"the service did not start: {log.read_text('utf-8')}")
            time.sleep(0.05)
        yield process, int(found[1])
    finally:
        process.kill()
        process.wait()


# What is sent. Nothing of it may change a learner: what could is spoiled for certain.

NOT_ROWS = [
    None, True, "x", "", 1, {}, [], [[]], [[[1]]], ["1", 2, 3], [None, 1, 2], [True, 1, 2], [1,
    2],
    [1, 2, 3, 4], [[1, 2, 3], [1]], [[1, 2, 3], 1], [1, [1, 2, 3]], {"0": 1}, [1e300, 1e300, 0],
    [10**400, 0, 0], [float("nan"), 0, 0], [float("inf"), 0, 0], [[0, 0, 0]] * 5000,
]  # fmt: skip
NOT_LABELS = [
    None, 1.5, {}, [], [[]], [None], "", " ", "\n", "a\0", "a\nb", "\ud800", "\u202e",
    "x" * 201,
    2**60, -(2**70), ["mug", "mug"], [""], {"label": "mug"}, 1e999, [1.5], "\x7f", "\x1b[31m",
]  # fmt: skip
NOT_NAMES = [
    "",
    "..",
    "a/b",
    "a b",
    "é",
    "x" * 65,
    None,
    1,
    [],
    {},
    True,
    "a\n",
    "\0",
    ".a",
    "a.b",
]
NOT_KEYS = ["", "x" * 65, "a b", "a/b", "é", "a\n", 1, True, [], {}]
ROUTES = [
    "/api/learners", "/api/learners/toys", "/api/learners/toys/teach", "/api/learners/toys/ask",
    "/api/learners/drawn/teach/image", "/api/learners/toys/export", "/api/import",
    "/api/features",
    "/api/learners/toys/history", "/metrics", "/health/live", "/", "/page/main.js",
    "/api/session",
    "/api/learners/toys/recoding", "/api/learners/toys/thumbnails/1", "/api/robot",
]  # fmt: skip
METHODS = ["PUT", "OPTIONS", "TRACE", "COPY", "LOCK", "MKCOL", "PROPFIND", "SEARCH", "REPORT"]
KINDS = ["text/plain", "application/xml", "image/png", "multipart/form-data; boundary=x", "x",
         "application/x-www-form-urlencoded", "application/json; charset=utf-7"]  # fmt: skip


class Maker:
    """Makes requests that are malformed, each in its own way.

    Parameters
    ----------
    samples : dict of bytes
        An exported learner, and images by their kind.
    """

    def __init__(self, samples: dict[str, bytes]) -> None:
        self._samples = samples
        export = samples["export"]
        with zipfile.ZipFile(io.BytesIO(export)) as archive:
            model = archive.read("learner.imparo")
        start = export.index(model)
        self._model = range(start, start + len(model))

    # Requests that are well framed, and can follow each other on one connection.

    def request(self, rng: random.Random) -> bytes:
        """Return one request."""
        makers: list[tuple[int, Callable[[random.Random], bytes]]] = [
            (30, self._json), (12, self._elsewhere), (8, self._image), (8, self._foreign),
            (4, self._query), (1, self._import),
        ]  # fmt: skip
        (make,) = rng.choices([m for _, m in makers], [w for w, _ in makers])
        return make(rng)

    def _json(self, rng: random.Random) -> bytes:
        """Return a request whose JSON is none, or not what was expected."""
        path, sent, spoils = rng.choice(self._jsons())
        method = "PATCH" if path.endswith(("toys", "arm")) else "POST"
        way = rng.randrange(6)
        if way <= 1:
            key = rng.choice(list(spoils))
            body = json.dumps({**sent, key: rng.choice(spoils[key])}).encode()
        elif way == 2:
            extra = rng.choice(["x", "input", "\ud800", "__proto__", "labels ", "", "a" * 999])
            body = json.dumps({**sent, extra: rng.choice(NOT_ROWS[:20])}).encode()
        else:
            body = self.not_json(rng, json.dumps(sent).encode())
        kind = "application/json"
        if rng.random() < 0.1:
            # The right body as another kind is none, unless it is read as JSON all the same.
            kind = rng.choice(KINDS)
        return _framed(method, path, body, kind)

    @staticmethod
    def _jsons() -> list[tuple[str, dict[str, Any], dict[str, list[Any]]]]:
        rows, learners = {"inputs": NOT_ROWS}, "/api/learners"
        new = {"name": "new", "kind": "classifier"}
        return [
            (f"{learners}/toys/teach", {"inputs": ROW, "labels": "mug"},
             {**rows, "labels": NOT_LABELS, "outputs": [ROW, 1, "x"], "key": NOT_KEYS}),
            (f"{learners}/arm/teach", {"inputs": ROW, "outputs": [1.0, 2.0]},
             {**rows, "outputs": [*NOT_ROWS[:11], [1], [1, 2, 3]], "labels": ["mug", ["a"],
             5]}),
            (f"{learners}/wrist/teach", {"inputs": ROW, "outputs": [1.0]},
             {**rows, "outputs": [*NOT_ROWS[:11], [1, 2, 3]]}),
            (f"{learners}/drawn/teach", {"inputs": [0.0] * 784, "labels": "a"},
             {**rows, "labels": NOT_LABELS}),
            (f"{learners}/toys/ask", {"inputs": ROW},
             {**rows, "recoding": [-1, 2, "x", float("nan")], "novelty": ["x", 5, []]}),
            (f"{learners}/arm/ask", {"inputs": ROW}, rows),
            (f"{learners}/toys/forget", {"label": "mug"},
             {"label": [*NOT_LABELS, "nobody", 1, True]}),
            (f"{learners}/toys/rename", {"label": "mug", "new": "cup"},
             {"label": [*NOT_LABELS, "nobody"], "new": NOT_LABELS}),
            (f"{learners}/toys/merge", {"other": "toys-2"},
             {"other": [*NOT_NAMES, "toys", "arm", "wrist", "drawn", "nobody"]}),
            (f"{learners}/toys", {"recoding": 0.25}, {"recoding": [-1, 2, "x", None, [],
            1e999]}),
            (f"{learners}/arm", {"recoding": 0.25}, {"recoding": [0.5, "auto", 3]}),
            (learners, new, {
                "name": [*NOT_NAMES, "toys", "lock"], "kind": ["", None, "oracle", []],
                "features": ["sound", None, 3], "parameters": [
                    None, [], {"penalty": -1}, {"penalty": []}, {"forgetting": 0}, {"x": 1},
                    {"fourier": {}}, {"fourier": {"sigma": 1, "n_features": 10**9}},
                    {"n_inputs": 10**9}, {"random_state": -1}, {"holdout_size": 10**9}]}),
            (learners, {"name": "new", "kind": "dynamics"}, {"parameters": [
                {"model": "P"}, {"model": "SP", "robot": {}}, {"n_features": 10**9},
                {"model": "P", "robot": {"urdf": "/etc/passwd"}}, {"n_joints": 10**6},
                {"model": "P", "robot": {"urdf": "<!DOCTYPE x><robot/>"}},
                {"model": "P", "robot": {"dh": [[1]]}}, {"model": "P", "robot": {"dh": []}}]}),
        ]  # fmt: skip

    def not_json(self, rng: random.Random, body: bytes) -> bytes:
        """Return bytes that are no JSON, made of bytes that are."""
        way = rng.randrange(7)
        if way == 0:
            body = body[: rng.randrange(len(body))]
        elif way == 1:
            flipped = bytearray(body)
            for _ in range(rng.randint(1, 6)):
                flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            body = bytes(flipped)
        elif way == 2:
            place = rng.randrange(len(body))
            body = body[:place] + rng.randbytes(rng.randint(1, 9)) + body[place:]
        elif way == 3:
            body = rng.randbytes(rng.randrange(200))
        elif way == 4:
            body = rng.choice([b"[", b'{"a":', b"[[", b"-"]) * rng.randrange(1, 3000)
        elif way == 5:
            body = body.replace(
                b"0.5", rng.choice([b"0x1", b".5", b"1e", b"+1", b"1,", b"9" * 5000])
            )
        else:
            body = body.decode().encode(
                rng.choice(["utf-16", "utf-32-le", "cp037", "utf-8-sig"])
            )
        try:
            json.loads(body)
        except (ValueError, RecursionError):
            return body
        return body + b"}"

    def _elsewhere(self, rng: random.Random) -> bytes:
        """Return a request for what is not there, or in a way that is not there."""
        way = rng.randrange(4)
        body = json.dumps({"inputs": ROW, "labels": "mug"}).encode()
        if way == 0:
            return _framed(rng.choice(METHODS), rng.choice(ROUTES), body)
        if way == 1:
            name = rng.choice(["nobody", "Toys", "toys%20", "%74oys%00", "..", "%2e%2e",
            "%ff%fe",
                               "toys;", "x" * 3000, "%F0%9F%98%80", "..%2ftoys"])  # fmt: skip
            last = rng.choice(
                ["teach", "ask", "forget", "rename", "merge", "nothing", "%74each%2f"]
            )
            return _framed("POST", f"/api/learners/{name}/{last}", body)
        if way == 2:
            path = "/" + "".join(
                rng.choice("abc/.%25~;:@&=+$,()*'!-_") for _ in range(rng.randint(1, 60))
            )
            return _framed("POST", path.replace("%25", "%"), body)
        name = rng.choice(
            ["../main.js", "..%2f..%2fguard.py", "%00", "main.js%00", "%2e%2e/x", "é"]
        )
        return _framed("GET", rng.choice(["/page/",
        "/api/learners/drawn/thumbnails/"]) + name.encode(
            "ascii", "ignore").decode())  # fmt: skip

    def _image(self, rng: random.Random) -> bytes:
        kind = rng.choice(["PNG", "JPEG", "WEBP"])
        content = bytearray(self._samples[kind])
        way = rng.randrange(4)
        if way == 0:
            content = content[: rng.randrange(int(0.4 * len(content)))]
        elif way == 1:
            content = bytearray(rng.randbytes(rng.randrange(300)))
        else:
            for _ in range(rng.randint(1, 20)):
                content[rng.randrange(len(content))] = rng.randrange(256)
        # What may still be a picture is only looked at, or comes with a label that is none.
        path = "/api/learners/drawn/ask/image"
        if way <= 1 and kind == "PNG":
            path = "/api/learners/drawn/teach/image?label=PNG"
        elif rng.random() < 0.3:
            label = rng.choice(["", "?label=", "?label=%00", "?label=%0a",
            "?label=" + "x" * 201,
                                "?label=%e2%80%ae", "?lable=PNG"])  # fmt: skip
            path = f"/api/learners/{rng.choice(['drawn', 'toys'])}/teach/image{label}"
        name = f"image/{kind.lower()}" if rng.random() < 0.8 else rng.choice(KINDS)
        return _framed("POST", path, bytes(content), name)

    def _foreign(self, rng: random.Random) -> bytes:
        """Return a request that is right, from where it must not come from."""
        body = json.dumps({"inputs": ROW, "labels": "mug"}).encode()
        headers = rng.choice([
            {"Host": "evil.example"}, {"Host": ""}, {"Host": "[::"}, {"Origin": "null"},
            {"Origin": "http://evil.example"}, {"Origin": "http://localhost:1"},
            {"Origin": "x" * 999},
            {"Sec-Fetch-Site": "cross-site"}, {"Host": "localhost\r\nHost: localhost"},
            {"Host": "localhost.evil.example"}, {"Origin": "http://[:"},
        ])  # fmt: skip
        return _framed("POST", "/api/learners/toys/teach", body, **headers)

    def _query(self, rng: random.Random) -> bytes:
        value = rng.choice(
            ["nan", "inf", "-1", "2", "x", "", "%00", "1e999", "[]", "%ff", "0.5" * 99]
        )
        path = f"/api/learners/drawn/ask/image?recoding={value}"
        return _framed("POST", path, self._samples["PNG"], "image/png")

    def _import(self, rng: random.Random) -> bytes:
        content = bytearray(self._samples["export"])
        name, way = "new", rng.randrange(4)
        if way == 0:
            content = content[: rng.randrange(len(content) - 1)]
        elif way == 1:  # in the model itself, of which there are checksums
            for place in rng.sample(self._model, rng.randint(1, 5)):
                content[place] ^= 1 << rng.randrange(8)
        elif way == 2:
            content = bytearray(
                rng.choice([b"", b"PK\3\4"]) + rng.randbytes(rng.randrange(400))
            )
        else:
            for _ in range(rng.randint(1, 5)):
                content[rng.randrange(len(content))] = rng.randrange(256)
            name = rng.choice(["toys", "..", "a%2fb", "", "%00"])
        return _framed("POST", f"/api/import?name={name}", bytes(content), "application/zip")

    # What is no HTTP: each on a connection of its own.

    def noise(self, rng: random.Random) -> bytes:
        """Return what is sent on one connection, which is then closed."""
        # Were it read after all, it would be refused.
        teach = json.dumps({"inputs": ROW[:1], "labels": ""}).encode()
        head = b"POST /api/learners/toys/teach HTTP/1.1\r\nHost: localhost\r\n"
        kind = b"Content-Type: application/json\r\n"
        whole = _framed("POST", "/api/learners/toys/teach", self.not_json(rng, teach))
        flipped = bytearray(whole)
        for _ in range(rng.randint(1, 5)):
            flipped[rng.randrange(len(flipped) // 2)] = rng.randrange(256)
        flipped[-1:] = b"\xff\xfe"
        return rng.choice([
            rng.randbytes(rng.randint(1, 300)), bytes(flipped),
            whole[: rng.randrange(len(whole))],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"GET / HTTP/9.9\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\nHost: x\n\n",
            b"\r\n" * 50,
            b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"CONNECT x:1 HTTP/1.1\r\n\r\n",
            b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET / HTTP/1.1\r\nHo\0st: x\r\n\r\n",
            head + b"X: " + rng.randbytes(50) + b"\r\n\r\n", head + b": x\r\n\r\n",
            head + b"a" * rng.randint(20_000, 60_000), head + b"a:\r\n" * rng.randint(1, 9000),
            head + kind + b"Content-Length: %d\r\n\r\n" % (len(teach) + rng.randint(1,
            99)) + teach,
            head + kind + b"Content-Length: %d\r\n\r\n" % rng.randrange(len(teach)) + teach,
            head + kind + b"Content-Length: -1\r\n\r\n" + teach,
            head + kind + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + teach,
            head + kind + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + teach,
            head + kind + b"Transfer-Encoding: chunked\r\n\r\n" + rng.choice([b"zz", b"-1",
            b"9" * 30,
                b"5;" + b"x" * 99, b"%x" % len(teach)]) + b"\r\n" + teach + b"X",
            head + kind + b"Transfer-Encoding: gzip\r\nContent-Length: 9\r\n\r\n" + teach,
            head + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
            b"GET /api/robot HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: upgrade\r\nSec-WebSocket-Version: 99\r\n\r\n",
        ])  # fmt: skip

    # Over a WebSocket.

    def message(self, rng: random.Random) -> bytes:
        """Return the frame of a message that is answered with an error."""
        sent = {"id": 1, "teach": {"inputs": ROW, "labels": "mug"}}
        way = rng.randrange(5)
        if way == 0:
            body = self.not_json(rng, b'{"id": 1, "teach": {"inputs": [0.5], "labels": ""}}')
            return _frame(body.decode("utf-8", "replace").encode(), 1)
        if way == 1:
            sent["teach"] = {"inputs": rng.choice(NOT_ROWS[:20]), "labels": "mug"}
        elif way == 2:
            sent["teach"] = {"inputs": ROW, "labels": rng.choice(NOT_LABELS)}
        elif way == 3:
            sent = {"id": 1, rng.choice(["x", "asc", "", "teech"]): rng.choice(NOT_ROWS[:20])}
        else:
            header = rng.choice(
                [b"", b"{}", b'{"teach_image": {"label": "mug"}}', b"\xff", b"["]
            )
            size = rng.choice([len(header), 0, 1, 2**31, 2**32 - 1])
            return _frame(struct.pack("<I", size) + header + rng.randbytes(20), 2)
        return _frame(json.dumps(sent).encode(), 1)


def _framed(
    method: str, path: str, body: bytes = b"", kind: str = "application/json", **headers: str
) -> bytes:
    given = {"Host": "localhost", "Content-Type": kind, **headers}
    lines = [
        f"{method} {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in given.items()),
    ]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def _frame(payload: bytes, opcode: int) -> bytes:
    n = len(payload)
    size = bytes([128 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n)
    if n >= 2**16:
        size = b"\xff" + struct.pack(">Q", n)
    return bytes([128 | opcode]) + size + b"\0\0\0\0" + payload


# Sending.

OPENING = (
    b"GET /api/learners/toys/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class _Sender:
    """Sends what a maker makes, over a few connections at once."""

    def __init__(self, port: int, process: int, maker: Maker, report: Report) -> None:
        self._port, self._process = port, process
        self._maker, self._report = maker, report
        self._next = 0
        self._sizes: list[int] = []

    async def all(
        self, number: int, seed: int, seconds: float, more: tuple[bytes, ...]
    ) -> None:
        """Send so many requests, or for so long."""
        end = time.monotonic() + seconds
        if more:
            await self._framed(list(more))
        batches = -(-number // BATCH)
        workers = [self._work(batches, seed, end) for _ in range(CONNECTIONS)]
        await asyncio.gather(*workers)
        # The least of a tenth: large bodies come and go.
        tenth = len(self._sizes) // 10  # none in a run that is too short to tell
        parts = self._sizes[tenth : 2 * tenth], self._sizes[len(self._sizes) - tenth :]
        self._report.early, self._report.late = (min(part, default=0) for part in parts)

    async def _work(self, batches: int, seed: int, end: float) -> None:
        while self._next < batches and time.monotonic() < end:
            batch, self._next = self._next, self._next + 1
            self._sizes.append(self._memory())
            rng = random.Random(f"{seed} {batch}")
            kind = batch % 10
            if kind == 8:
                noise = [self._maker.noise(rng) for _ in range(BATCH)]
                await self._within(asyncio.gather(*map(self._noise, noise)), BATCH)
            elif kind == 9:
                await self._within(
                    self._socket([self._maker.message(rng) for _ in range(BATCH)]), BATCH
                )
            else:
                await self._within(
                    self._framed([self._maker.request(rng) for _ in range(BATCH)]), BATCH
                )

    async def _within(self, work: Awaitable[Any], count: int) -> None:
        try:
            async with asyncio.timeout(60):
                await work
        except TimeoutError:
            self._report.problems.append("requests were not answered within a minute")

    def _memory(self) -> int:
        with suppress(OSError):
            statm = Path(f"/proc/{self._process}/statm").read_text().split()
            return int(statm[1]) * os.sysconf("SC_PAGE_SIZE")
        return 0

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def _framed(self, requests: list[bytes]) -> None:
        """Send requests behind each other on one connection, and read as many answers."""
        statuses = self._report.statuses
        while requests:
            reader, writer = await self._open()
            answered = 0
            try:
                writer.write(b"".join(requests))
                for _ in requests:
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = (
                        head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]
                    )
                    await reader.readexactly(int(length or 0))
                    statuses[head[9:12].decode()] += 1
                    answered += 1
            except (ConnectionError, asyncio.IncompleteReadError):
                # Closed behind an answer: the others are sent again; or without one.
                if answered == 0:
                    statuses["closed"] += 1
                    answered = 1
            finally:
                writer.close()
            requests = requests[answered:]

    async def _noise(self, content: bytes) -> None:
        """Send anything, end, and read what comes."""
        received = b""
        try:
            reader, writer = await self._open()
            try:
                writer.write(content)
                writer.write_eof()
                received = await reader.read(4096)
            finally:
                writer.close()
        except ConnectionError:
            pass
        status = received[9:12].decode("latin-1") if received[:7] == b"HTTP/1." else "closed"
        self._report.statuses[status] += 1

    async def _socket(self, frames: list[bytes]) -> None:
        """Send messages over one WebSocket, and then a frame that is none."""
        reader, writer = await self._open()
        try:
            writer.write(OPENING)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"".join(frames))
            for _ in frames:
                told = json.loads(await _message(reader))
                self._report.statuses[f"WS {told.get('status', 200)}"] += 1
            writer.write(b"\xff" * 20)
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            self._report.problems.append(
                "a WebSocket was closed before its messages were answered"
            )
        finally:
            writer.close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(2)
    size = head[1] & 127
    if size == 126:
        (size,) = struct.unpack(">H", await reader.readexactly(2))
    elif size == 127:
        (size,) = struct.unpack(">Q", await reader.readexactly(8))
    return await reader.readexactly(size)


if __name__ == "__main__":
    main()
