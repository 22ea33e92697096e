"""Over a network of its own: who is reachable from another address, and who is not.

Two ends of a cable: this machine, and a network namespace that stands for another one.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys

import pytest

from service_tools import kept, served, until

HERE, THERE = "10.203.77.1", "10.203.77.2"
# Run at the other end: asks for each path, without and with a token, and tells the statuses.
ASK = """
import json, sys
import httpx, websockets.sync.client
base, token, asked = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
headers = {"authorization": f"Bearer {token}"} if token else {}
told = {}
for method, path in asked:
    try:
        answer = httpx.request(method, f"http://{base}{path}", headers=headers, timeout=10)
        told[f"{method} {path}"] = [answer.status_code, answer.text[:100_000]]
    except httpx.TransportError as error:
        told[f"{method} {path}"] = [type(error).__name__, ""]
for path in ("/api/robot", "/api/learners/toys/stream"):
    try:
        with websockets.sync.client.connect(
            f"ws://{base}{path}", additional_headers=headers, open_timeout=10
        ) as socket:
            socket.send(json.dumps({"id": 1, "ask": {"inputs": [0, 1]}}))
            told[f"WS {path}"] = [101, socket.recv(timeout=10)]
    except Exception as error:
        response = getattr(error, "response", None)
        told[f"WS {path}"] = [getattr(response, "status_code", type(error).__name__), ""]
print(json.dumps(told))
"""
ASKED = [
    ("GET", "/"), ("GET", "/page/main.js"), ("GET", "/favicon.ico"), ("GET", "/api/learners"),
    ("GET", "/api/learners/toys"), ("GET", "/api/learners/toys/export"), ("GET", "/api/about"),
    ("GET", "/api/features"), ("GET", "/api/openapi.json"), ("GET", "/health/live"),
    ("GET", "/health/ready"), ("GET", "/metrics"), ("DELETE", "/api/learners/toys"),
    ("POST", "/api/learners/toys/teach"), ("OPTIONS", "/api/learners"), ("GET", "/nothing"),
    ("GET", "/?token=wrong-wrong-wrong-wrong"),
]  # fmt: skip


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)


@pytest.fixture(scope="module")
def cable():
    """The name of a namespace at the other end of a cable."""
    if not shutil.which("ip"):
        pytest.skip("there is no program ip here")
    if os.geteuid() != 0:
        pytest.skip("to make a network namespace one must be root")
    name = f"imparo-{secrets.token_hex(3)}"
    here, there = f"im{name[-6:]}a", f"im{name[-6:]}b"
    try:
        run("ip", "netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"a network namespace cannot be made here: {error.stderr.strip()}")
    try:
        try:
            run("ip", "link", "add", here, "type", "veth", "peer", "name", there)
            run("ip", "link", "set", there, "netns", name)
            run("ip", "addr", "add", f"{HERE}/30", "dev", here)
            run("ip", "link", "set", here, "up")
            run("ip", "-n", name, "addr", "add", f"{THERE}/30", "dev", there)
            run("ip", "-n", name, "link", "set", there, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"a cable cannot be made here: {error.stderr.strip()}")
        yield name
    finally:
        subprocess.run(["ip", "link", "del", here], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def from_there(cable, port, token="", asked=ASKED, host=HERE):
    """What is answered at the other end: status and text by what was asked."""
    told = run("ip", "netns", "exec", cable, sys.executable, "-c", ASK, f"{host}:{port}", token,
               json.dumps(asked))  # fmt: skip
    return json.loads(told.stdout)


def link_of(service):
    """The address that is printed for whoever started the service; waits for it."""
    until(lambda: service.said)
    return json.loads(service.said[0])["url"]


def teach(http):
    assert http.post("/api/learners", json={"name": "toys", "kind": "classifier"}).is_success
    sent = {"inputs": [[0, 1], [1, 0]], "labels": ["mug", "ball"]}
    assert http.post("/api/learners/toys/teach", json=sent).is_success


def test_the_other_end_is_reached_at_all(cable):
    """Else nothing would follow from what is not reached."""
    listening = subprocess.Popen(
        [sys.executable, "-c", "import http.server as s\n"
         "server = s.HTTPServer(('0.0.0.0', 0), s.BaseHTTPRequestHandler)\n"
         "print(server.server_port, flush=True)\nserver.serve_forever()"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        told = from_there(cable, int(listening.stdout.readline()), asked=[("GET", "/")])
        assert told["GET /"][0] == 501
    finally:
        listening.kill()
        listening.wait()
        listening.stdout.close()


def test_by_default_no_other_address_reaches_the_service(cable, tmp_path):
    with served(tmp_path / "learners") as service:
        with service.client() as http:
            teach(http)
        told = from_there(cable, service.port)
    assert {status for status, _ in told.values()} == {"ConnectError", "ConnectionRefusedError"}


def test_another_address_needs_the_token_that_is_made_for_it(cable, tmp_path):
    with served(tmp_path / "learners", "--host", "0.0.0.0") as service:
        token = link_of(service).partition("?token=")[2]
        assert len(token) >= 24
        with service.client(headers={"authorization": f"Bearer {token}"}) as http:
            teach(http)
            before = kept(http, tmp_path, ["toys"])
            told = from_there(cable, service.port)
            # Guesses are throttled once there are too many.
            assert {status for status, _ in told.values()} == {401, 403}
            assert {status for at, (status, _) in told.items() if at[:2] != "WS"} == {401}
            for status, text in told.values():
                assert token not in text
                assert "mug" not in text
                assert status == 403 or list(json.loads(text)) == ["error"]
            asked = [one for one in ASKED if one[0] == "GET" and "?" not in one[1]]
            told = from_there(cable, service.port, token, asked)
            statuses = {at: status for at, (status, _) in told.items()}
            assert statuses.pop("GET /nothing") == 404
            assert statuses == {at: 101 if at[:2] == "WS" else 200 for at in statuses}
            assert "mug" in told["GET /api/learners/toys"][1]
            assert json.loads(told["WS /api/learners/toys/stream"][1])["result"]["answers"]
            wrong = from_there(cable, service.port, token[:-1] + "!", ASKED[:4])
            assert {status for status, _ in wrong.values()} == {401, 403}
            assert kept(http, tmp_path, ["toys"]) == before
    assert token not in json.dumps(service.log)


def test_who_gives_a_token_is_asked_for_that_one(cable, tmp_path):
    token = "my-own-token-of-some-length"
    environment = {**os.environ, "IMPARO_TOKEN": token}
    with served(tmp_path / "learners", "--host", HERE, env=environment) as service:
        told = from_there(cable, service.port, asked=ASKED[:4])
        assert {status for status, _ in told.values()} == {401, 403}
        told = from_there(cable, service.port, token, asked=ASKED[:4])
        assert {status for at, (status, _) in told.items() if at[:3] == "GET"} == {200}
        # It was given, so it is known; what is printed may be read by others.
        assert token not in json.dumps([service.said, service.log])
