"""What the service refuses: who asks, from where, how much, how slowly, and in which form."""

import contextlib
import hashlib
import io
import json
import re
import struct
import zipfile
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import websockets.exceptions
import websockets.sync.client
from safetensors import safe_open
from safetensors.numpy import save as save_tensors
from starlette.websockets import WebSocketDisconnect

import imparo
from imparo.errors import FileFormatError
from imparo.journal import decode, encode
from imparo.lifelong import IncrementalClassifier, RecursiveRegressor
from imparo.service import Limits, Settings
from imparo.service.replies import POLICY
from imparo.service.tokens import Doorkeeper
from service_tools import (
    answer_of,
    bits,
    connected,
    drawing,
    frame,
    in_process,
    kept,
    populate,
    served,
    upgraded,
)

TOKEN = "a-token-of-sixteen-or-more"
BEARER = {"authorization": f"Bearer {TOKEN}"}
LOCAL = {"host": "localhost"}
PAGE = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def client(tmp_path):
    with in_process(tmp_path / "learners") as found:
        yield found


@pytest.fixture
def guarded(tmp_path):
    with in_process(tmp_path / "learners", token=TOKEN) as found:
        yield found


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A service with learners that no test of this file changes."""
    folder = tmp_path_factory.mktemp("taught")
    with in_process(folder / "learners", raises=False) as found:
        names = populate(found)
        before = kept(found, folder, names)
        yield found
        assert kept(found, folder, names) == before
        assert {
            state["name"] for state in found.get("/api/learners").json()["learners"]
        } == set(names)


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """A service in a process of its own, which must outlive all tests of this file."""
    with served(tmp_path_factory.mktemp("served") / "learners") as service:
        with service.client() as http:
            populate(http)
        yield service
        with service.client() as http:
            assert http.get("/health/ready").json() == {"status": "ready", "damaged": []}
        assert service.bugs() == []


# From where.


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "",
     "localhost@evil.example", "192.168.1.7:8765", "0.0.0.0", "[", "[::1",
     "evil.example#localhost"],
)  # fmt: skip
def test_a_name_that_was_made_to_point_here_is_refused(taught, host):
    answer = taught.get("/api/learners", headers={"host": host})
    assert answer.status_code == 403
    assert "learners" not in answer.json()


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:80", "[::1]:8765"])
def test_the_names_of_this_machine_are_good(taught, host):
    assert taught.get("/api/learners", headers={"host": host}).status_code == 200


def test_two_hosts_are_none(taught):
    for hosts in (["localhost", "evil.example"], ["evil.example", "localhost"]):
        headers = [("host", host) for host in hosts]
        assert taught.get("/api/learners", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "http://localhost.evil.example", "http://[",
     "localhost",
     "http://localhost:1", "http://localhost@evil.example", "file://", "\udcff",
     "//localhost:80"],
)  # fmt: skip
def test_a_page_of_another_site_is_refused_whatever_it_asks_for(taught, origin):
    headers = {"origin": origin.encode("utf-8", "surrogateescape")}
    for method, path in (
        ("GET", "/"), ("GET", "/api/learners"), ("POST", "/api/learners/toys/teach"),
        ("DELETE", "/api/learners/toys"), ("OPTIONS", "/api/learners/toys"),
        ("POST", "/api/session"), ("GET", "/health/live"), ("GET", "/metrics"),
    ):  # fmt: skip
        sent = {"inputs": [0, 0, 0], "labels": "mug"}
        answer = taught.request(method, path, headers=headers, json=sent)
        assert answer.status_code == 403, (method, path)


def test_a_token_does_not_open_the_door_to_other_sites(guarded):
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert guarded.get("/api/learners", headers={**BEARER, **headers}).status_code == 403


def test_the_own_page_is_served(taught):
    headers = {"host": "localhost:8765", "origin": "http://localhost:8765",
               "sec-fetch-site": "same-origin"}  # fmt: skip
    assert taught.get("/api/learners", headers=headers).status_code == 200


def test_what_a_browser_says_comes_from_another_site_is_refused(taught):
    headers = {"sec-fetch-site": "cross-site"}
    assert taught.get("/api/learners", headers=headers).status_code == 403


def test_no_other_site_is_ever_allowed_to_read(taught, guarded):
    for client in (taught, guarded):
        for method in ("GET", "OPTIONS", "POST", "HEAD"):
            for origin in ("http://evil.example", "http://localhost"):
                headers = {"origin": origin, "access-control-request-method": "DELETE"}
                answer = client.request(method, "/api/learners", headers=headers)
                names = {name.lower() for name in answer.headers}
                assert not any(name.startswith("access-control") for name in names)


# Who.


def test_without_the_token_nothing_is_told(guarded):
    for method, path in (
        ("GET", "/"), ("GET", "/page/main.js"), ("GET", "/api/learners"), ("GET", "/metrics"),
        ("GET", "/api/openapi.json"), ("GET", "/health/live"), ("GET", "/health/ready"),
        ("POST", "/api/learners"), ("GET", "/nothing"), ("GET", "/favicon.ico"),
        ("GET", "/api/session"), ("PUT", "/api/session"), ("GET", "/api/about"),
    ):  # fmt: skip
        answer = guarded.request(method, path)
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
        assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    "shown",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x",
     f"Bearer {TOKEN[:-1]}",
     f"Bearer {TOKEN.upper()}", "Bearer é", f"Bearer {TOKEN}\t{TOKEN}"],
)  # fmt: skip
def test_nothing_but_the_token_is_the_token(guarded, shown):
    headers = {"authorization": shown.encode("latin-1")}
    assert guarded.get("/api/learners", headers=headers).status_code == 401


def test_the_token_in_the_header_opens(guarded):
    for word in ("Bearer", "bearer", "BEARER"):
        headers = {"authorization": f"{word} {TOKEN}"}
        assert guarded.get("/api/learners", headers=headers).json() == {"learners": []}


def test_the_link_sets_a_cookie_that_opens_and_hides_the_token(guarded):
    answer = guarded.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert guarded.get("/api/learners").status_code == 200
    guarded.cookies.clear()
    assert guarded.get("/api/learners").status_code == 401


def test_the_form_sets_the_cookie(guarded):
    asked = guarded.get("/", headers=PAGE)
    assert asked.status_code == 401
    assert "<form" in asked.text
    assert "<script" not in asked.text
    wrong = guarded.post("/api/session", data={"token": "wrong"}, follow_redirects=False)
    assert wrong.status_code == 422
    assert "set-cookie" not in wrong.headers
    right = guarded.post("/api/session", data={"token": TOKEN}, follow_redirects=False)
    assert right.status_code == 303
    assert guarded.get("/api/learners").status_code == 200


@pytest.mark.parametrize(
    "cookie",
    ["imparo_session=", f"imparo_session={TOKEN}", 'imparo_session="\\777"', "imparo_session",
     "=;=;=", 'a="' + "\\a" * 10_000, ";" * 20_000, "imparo_session=" + "0" * 64],
)  # fmt: skip
def test_a_cookie_that_was_made_up_does_not_open(guarded, cookie):
    assert guarded.get("/api/learners", headers={"cookie": cookie}).status_code == 401


def test_cookies_travel_by_https_alone_where_there_is_https():
    assert "; Secure" in Doorkeeper(TOKEN, tls=True).cookie()
    assert "; Secure" not in Doorkeeper(TOKEN, tls=False).cookie()


def test_who_tries_tokens_is_throttled_and_who_has_it_goes_on(guarded):
    guesses = [
        lambda k: guarded.get("/api/learners", headers={"authorization": f"Bearer {k}"}),
        lambda k: guarded.get("/", params={"token": str(k)}),
        lambda k: guarded.post("/api/session", data={"token": str(k)}),
    ]
    answers = [guesses[k % 3](k) for k in range(30)]
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) > 0
    assert {answer.status_code for answer in answers} == {401, 422, 429}
    assert [answer.status_code for answer in answers].index(429) >= 10
    assert guarded.get("/api/learners", headers=BEARER).status_code == 200
    # Who tries nothing is told where the token is to be had.
    assert guarded.get("/api/learners").status_code == 401


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "with a\nnewline in it"])
def test_a_token_that_is_none_is_refused(tmp_path, token):
    with pytest.raises(ValueError, match="at least 16"):
        Settings(tmp_path, token=token)


def test_the_token_is_not_told(tmp_path):
    assert TOKEN not in repr(Settings(tmp_path, token=TOKEN))
    with in_process(tmp_path / "learners", token=TOKEN) as client:
        for path in ("/api/about", "/api/openapi.json", "/metrics", "/"):
            assert TOKEN not in client.get(path, headers=BEARER).text


# How often.


def test_too_many_requests_are_refused_with_the_time_to_wait(tmp_path):
    with in_process(tmp_path / "learners", limits=Limits(rate=1e-3)) as client:
        # Twice as many as a second's at once: here less than one.
        answer = client.get("/api/learners")
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert "send fewer" in answer.json()["error"]


def test_messages_over_sockets_count_too(tmp_path):
    with in_process(tmp_path / "learners", limits=Limits(rate=3.0)) as client:
        created = client.post("/api/learners", json={"name": "toys", "kind": "classifier"})
        assert created.status_code == 201
        with client.websocket_connect("/api/learners/toys/stream", headers=LOCAL) as socket:
            told = []
            for k in range(20):
                socket.send_json({"id": k, "ask": {"inputs": [0]}})
                told.append(socket.receive_json()["status"])
    assert 429 in told


# How much.

SMALL = Limits(body_bytes=2000, image_bytes=1000, import_bytes=3000)


@pytest.mark.parametrize(
    ("path", "most"),
    [("/api/learners", 2000), ("/api/learners/toys/teach/image?label=x", 1000),
     ("/api/learners/toys/ask/image", 1000), ("/api/import?name=x", 3000), ("/nothing", 2000)],
)  # fmt: skip
def test_what_is_too_large_is_refused_by_its_length_or_when_it_has_come(tmp_path, path, most):
    with in_process(tmp_path / "learners", limits=SMALL) as client:
        for content in (b"x" * (most + 1), iter([b"x" * 600] * (most // 600 + 1))):
            answer = client.post(path, content=content, headers={"content-type": "image/png"})
            # Where there is nothing, nobody reads what comes.
            assert answer.status_code == 413 or path == "/nothing", answer.text
        assert client.post(path, content=b"x" * most).status_code != 413


def test_a_length_that_is_absurd_is_refused_before_anything_has_come(patient):
    for length in ("9" * 15, "9" * 18):
        with connected(patient) as bare:
            bare.sendall(
                b"POST /api/import?name=x HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: " + length.encode() + b"\r\n\r\n"
            )
            status, told = answer_of(bare)
            assert status == 413
            assert b"connection: close" in told
    for length in ("9" * 30, "-1", "1e3", "0x10", "1, 2", "١"):
        with connected(patient) as bare:
            bare.sendall(
                b"POST /api/import?name=x HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: " + length.encode() + b"\r\n\r\n"
            )
            assert answer_of(bare)[0] == 400


def test_chunks_without_a_length_are_counted(patient):
    with connected(patient) as bare:
        bare.sendall(
            b"POST /api/learners HTTP/1.1\r\nHost: localhost\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        piece = b"%x\r\n" % 2**20 + b" " * 2**20 + b"\r\n"
        with contextlib.suppress(ConnectionError):
            for _ in range(20):
                bare.sendall(piece)
        assert answer_of(bare)[0] in (413, None)  # None: reset while it still sent
    with connected(patient) as bare:
        bare.sendall(b"GET /health/live HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert answer_of(bare)[0] == 200


def test_bodies_that_arrive_together_have_a_limit_and_leave_room_for_the_next(tmp_path):
    limits = Limits(arriving_bytes=1500)
    with in_process(tmp_path / "learners", limits=limits) as client:
        for _ in range(3):
            answer = client.post("/api/learners", content=b" " * 2000)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        # What was refused is not counted for ever.
        created = client.post("/api/learners", json={"name": "toys", "kind": "classifier"})
        assert created.status_code == 201


def test_rows_columns_and_outputs_have_limits(tmp_path):
    limits = Limits(rows=4, columns=5, outputs=2, features=8, label_length=6, classes=3)
    with in_process(tmp_path / "learners", limits=limits) as client:
        populated = [
            {"name": "toys", "kind": "classifier"},
            {"name": "arm", "kind": "regressor"},
        ]
        for new in populated:
            assert client.post("/api/learners", json=new).status_code == 201

        def teach(name, **sent):
            return client.post(f"/api/learners/{name}/teach", json=sent).status_code

        assert teach("toys", inputs=[[0, 1]] * 5, labels="a") == 413
        assert teach("toys", inputs=[0] * 6, labels="a") == 413
        assert teach("arm", inputs=[0, 1], outputs=[0, 0, 0]) == 413
        assert teach("toys", inputs=[0, 1], labels="a" * 7) == 422
        assert teach("toys", inputs=[[0, 1]] * 4, labels=["a", "b", "c", "d"]) == 413
        assert client.get("/api/learners/toys").json()["n_seen"] == 0
        assert teach("toys", inputs=[[0, 1]] * 4, labels=["a", "b", "c", "a"]) == 200
        many = {"kind": "classifier", "name": "x", "parameters": {"fourier": {
            "n_features": 9, "sigma": 1}}}  # fmt: skip
        assert client.post("/api/learners", json=many).status_code == 413


def test_learners_and_their_memory_have_limits(tmp_path):
    limits = Limits(learners=2, memory=10**6)
    with in_process(tmp_path / "learners", limits=limits) as client:

        def create(name, n_inputs=2):
            new = {"name": name, "kind": "regressor", "parameters": {"n_inputs": n_inputs}}
            return client.post("/api/learners", json=new).status_code

        assert create("large", 1000) == 413
        assert [create("a"), create("b"), create("c")] == [201, 201, 413]
        exported = client.get("/api/learners/a/export").content
        assert client.post("/api/import?name=c", content=exported).status_code == 413
        assert client.delete("/api/learners/a").status_code == 204
        assert create("c") == 201


# How slowly, and the heads of requests: over bare sockets.


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A service that waits a fraction of a second only."""
    program = (
        "import sys, imparo.service as s; from imparo.service.logs import set_up;"
        "set_up('json', 'info');"
        "s.serve(s.Settings(sys.argv[1], port=0, limits=s.Limits("
        "header_seconds=0.5, body_seconds=0.5, connections=30)))"
    )
    folder = tmp_path_factory.mktemp("hasty")
    with served(folder / "learners", program=program) as service:
        yield service
        assert service.bugs() == []


@pytest.mark.parametrize("start", ["", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHo"])
def test_a_head_that_never_ends_is_not_waited_for(hasty, start):
    with connected(hasty) as bare:
        bare.sendall(start.encode())
        status, told = answer_of(bare)
    assert (status == 400 and b"took too long" in told) if start else told == b""


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(hasty):
    with connected(hasty) as bare:
        bare.settimeout(0.05)
        bare.sendall(b"GET / HTTP/1.1\r\n")
        received = b""
        for _ in range(400):
            with contextlib.suppress(ConnectionError):
                bare.sendall(b"x")
            with contextlib.suppress(TimeoutError, ConnectionError):
                received = bare.recv(1000)
                break
    assert received[9:12] in (b"400", b"")


def test_the_head_of_a_second_request_is_not_waited_for_either(hasty):
    with connected(hasty) as bare:
        bare.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health/liv")
        assert answer_of(bare)[1].count(b"HTTP/1.1 ") == 2


def test_a_body_that_does_not_come_is_not_waited_for(hasty):
    for length in (b"Content-Length: 10", b"Transfer-Encoding: chunked"):
        with connected(hasty) as bare:
            bare.sendall(
                b"POST /api/learners HTTP/1.1\r\nHost: localhost\r\n" + length + b"\r\n\r\n"
            )
            status, told = answer_of(bare)
            assert status == 503
            assert b"retry-after: 1" in told


def test_who_goes_on_after_the_answer_is_left(hasty):
    """Refused and answered, a client sends a byte now and then to keep its place."""
    for path in (b"/nothing", b"/health/live"):
        with connected(hasty) as bare:
            bare.settimeout(0.05)
            bare.sendall(
                b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 1000000\r\n\r\n"
            )
            ended = False
            for _ in range(400):
                try:
                    bare.sendall(b"x")
                    ended = not bare.recv(1000)
                except TimeoutError:
                    continue
                except ConnectionError:
                    ended = True
                if ended:
                    break
            assert ended


def test_a_body_before_a_websocket_is_not_waited_for(hasty):
    with connected(hasty) as bare:
        bare.settimeout(0.05)
        bare.sendall(
            b"POST /api/robot HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\n"
            b"Upgrade: websocket\r\nContent-Length: 1000000\r\n\r\n"
        )
        for _ in range(400):
            try:
                bare.sendall(b"x")
                if not bare.recv(1000):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            raise AssertionError("it was waited for")


def test_more_connections_than_there_is_room_for_are_told_so(hasty):
    with contextlib.ExitStack() as stack:
        bares = [stack.enter_context(connected(hasty)) for _ in range(40)]
        for bare in bares:
            bare.sendall(b"POST /api/learners HTTP/1.1\r\nHost: localhost\r\n"
                         b"Content-Length: 9\r\n\r\n")  # fmt: skip
        answers = [answer_of(bare)[1] for bare in bares]
    full = [answer for answer in answers if b"too many connections" in answer]
    assert full
    for answer in full:
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in answer
        assert POLICY.encode() in answer
    with connected(hasty) as bare:
        bare.sendall(b"GET /health/live HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert answer_of(bare)[0] == 200


@pytest.mark.parametrize(
    "head",
    [b"GET /" + b"a" * 40_000, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40_000,
     b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * 20_000,
     b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 2_000,
     b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a" * 40_000],
    ids=["address", "value", "empty headers", "many headers", "name"],
)  # fmt: skip
def test_a_long_head_is_refused(patient, head):
    with connected(patient) as bare:
        bare.sendall(head + b" HTTP/1.1\r\n\r\n")
        status, told = answer_of(bare)
    assert status == 400
    assert POLICY.encode() in told


def test_the_usual_head_of_a_browser_is_none_too_long(patient):
    cookies = b"; ".join(b"name_%d=%s" % (k, b"v" * 60) for k in range(200))
    with connected(patient) as bare:
        bare.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\nCookie: " + cookies + b"\r\n\r\n")
        assert answer_of(bare)[0] == 200


def test_who_leaves_in_the_middle_of_a_body_is_no_bug(patient):
    for path in ("toys/ask", "drawn/ask/image", "drawn/teach/image?label=x"):
        with connected(patient) as bare:
            bare.sendall(
                f"POST /api/learners/{path} HTTP/1.1\r\nHost: localhost\r\n"
                "Content-Type: image/png\r\nContent-Length: 100\r\n\r\nabc".encode()
            )
    # Answered after them, so that they have been seen to.
    with patient.client() as http:
        assert http.get("/api/learners/drawn").json()["n_seen"] == 3
    assert patient.bugs() == []


@pytest.mark.parametrize("second", [b"GET /api/about HTTP/1.1\r\nHost: localhost", b"\0"])
def test_who_sends_two_at_once_and_leaves_is_no_bug(patient, second):
    """The first is at work, in a thread, when the connection ends; the second waits."""
    with patient.client() as http:
        exported = http.get("/api/learners/toys/export").content
    damaged = exported[:-5]
    for _ in range(5):
        with connected(patient) as bare:
            bare.sendall(
                b"POST /api/import?name=other HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                b"application/zip\r\nContent-Length: %d\r\n\r\n" % len(damaged) + damaged
                + second + b"\r\n\r\n"
            )  # fmt: skip
    with patient.client() as http:  # imports are one by one: this one is looked at after them
        assert http.post("/api/import?name=other", content=damaged).status_code == 422
    assert patient.bugs() == []


# What every answer says.


def test_every_answer_has_the_headers_that_protect_the_page(tmp_path):
    limits = Limits(body_bytes=1000)
    with in_process(tmp_path / "learners", token=TOKEN, limits=limits) as client:

        def ask(method, path, **more):
            return client.request(method, path, **{"headers": BEARER, **more})

        answers = {
            200: ask("GET", "/"), 401: ask("GET", "/", headers=PAGE), 404: ask("GET", "/x"),
            413: ask("POST", "/api/learners", content=b"x" * 2000),
            422: ask("POST", "/api/learners", json={}), 405: ask("PUT", "/api/learners"),
            400: ask("POST", "/api/learners", content=b"{",
                     headers={**BEARER, "content-type": "application/json"}),
            403: ask("GET", "/", headers={**BEARER, "origin": "null"}),
            303: ask("GET", f"/?token={TOKEN}", headers={}, follow_redirects=False),
        }  # fmt: skip
    for status, answer in answers.items():
        assert answer.status_code == status
        # The page that asks for the token brings its own style: what it is, and no other.
        style = "'sha256-[A-Za-z0-9+/]{43}='" if status == 401 else "'self'"
        assert re.fullmatch(
            f"default-src 'none'; script-src 'self'; style-src {style}; img-src 'self' blob:; "
            "media-src 'self' blob:; connect-src 'self'; font-src 'self'; manifest-src 'self'; "
            "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
            answer.headers["content-security-policy"],
        )
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] in ("no-referrer", "same-origin")
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["permissions-policy"].startswith("camera=(self)")
        assert "cache-control" in answer.headers
        assert "server" not in answer.headers
        for name in answer.headers:
            assert len(answer.headers.get_list(name)) == 1 or name == "vary", name
        if status not in (200, 303) and "json" in answer.headers["content-type"]:
            assert list(answer.json()) == ["error"]
    assert answers[405].headers["allow"]
    assert answers[401].headers["www-authenticate"] == "Bearer"


def test_a_picture_may_be_kept_by_the_browser_and_is_nothing_else(taught):
    (kind, *_) = taught.get("/api/learners/drawn").json()["classes"]
    answer = taught.get(kind["thumbnails"][0])
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.content[:2] == b"\xff\xd8"


# WebSockets.


@pytest.mark.parametrize("path", ["/api/learners/toys/stream", "/api/robot"])
def test_a_websocket_of_another_site_or_without_the_token_is_not_opened(taught, guarded, path):
    for client, headers in (
        (taught, {"origin": "http://evil.example"}), (taught, {"origin": "null"}),
        (taught, {"host": "evil.example"}), (guarded, {}),
        (guarded, {"authorization": "Bearer wrong"}),
        (guarded, {**BEARER, "origin": "http://evil.example"}),
    ):  # fmt: skip
        with pytest.raises(WebSocketDisconnect) as refused:
            client.websocket_connect(path, headers={"host": "localhost", **headers}).__enter__()
        assert refused.value.code == 1008


def test_a_websocket_with_the_token_is_opened(guarded):
    headers = {**BEARER, "origin": "http://testserver", "host": "testserver"}
    with guarded.websocket_connect("/api/robot", headers=headers) as socket:
        assert socket.receive_json()["about"]


def test_a_token_in_the_address_of_a_websocket_does_not_open_it(guarded):
    with pytest.raises(WebSocketDisconnect):
        guarded.websocket_connect(f"/api/robot?token={TOKEN}").__enter__()


MESSAGES = [
    "", "{", "null", "[]", '"x"', "{}", '{"id": 1}', '{"ask": 1}', '{"teach": null}',
    '{"ask": {"inputs": [1, 2, 3]}, "teach": {"inputs": [1, 2, 3], "labels": "x"}}',
    '{"teach": {"inputs": [1, 2, 3]}}', '{"teach": {"inputs": [NaN, 2, 3], "labels": "mug"}}',
    '{"teach": {"inputs": [1e999, 2, 3], "labels": "mug"}}', "[" * 100_000,
    '{"id": ' + "[" * 900 + "]" * 900 + ', "ask": 1}',
    '{"id": NaN, "ask": {"inputs": [1, 2, 3]}}',
    '{"id": 1e999, "ask": {"inputs": [1, 2, 3]}}', '{"id": ' + "9" * 5000 + "}",
    '{"id": "\\ud800", "\\ud800": 1}', '{"teach": {"inputs": [1, 2, 3], "labels": "\\ud800"}}',
    '{"teach": {"inputs": [1, 2, 3], "labels": "mug", "\\ud800": 1}}',
    '{"ask": {"inputs": [1, 2, 3], "recoding": NaN}}', '{"watch": "maybe"}', "\ufeff{}",
    '{"teach_image": {"label": "x"}}', '{"ask_image": {}}', '{"id": 1, "id": 2}',
    b"", b"\0", b"\0\0\0\0", b"\2\0\0\0{}", b"\xff\xff\xff\xff{}", b"\2\0\0\0{}x",
    struct.pack("<I", 33) + b'{"teach_image": {"label": "mug"}}' + b"no image",
    struct.pack("<I", 33) + b'{"teach_image": {"label": "m\0g"}}',
]  # fmt: skip


@pytest.mark.parametrize("name", ["toys", "drawn", "arm"])
def test_whatever_is_said_over_a_socket_is_answered_in_json_and_changes_nothing(taught, name):
    with taught.websocket_connect(f"/api/learners/{name}/stream", headers=LOCAL) as socket:
        for message in MESSAGES:
            if isinstance(message, str):
                socket.send_text(message)
            else:
                socket.send_bytes(message)
            told = json.loads(socket.receive_text(), parse_constant=pytest.fail)
            assert 400 <= told["status"] < 500, message
        socket.send_text('{"id": "alive", "ask": {"inputs": [1, 2]}}')
        assert socket.receive_json()["id"] == "alive"


def test_a_socket_to_a_learner_of_a_long_foreign_name_is_closed_with_a_sentence(patient):
    address = f"ws://127.0.0.1:{patient.port}/api/learners/{'%E6%97%A5' * 60}/stream"
    with websockets.sync.client.connect(address) as socket:
        assert "no learner" in json.loads(socket.recv())["error"]
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            socket.recv()
        assert socket.close_code == 1008


@pytest.mark.parametrize(
    "frames",
    [b"\xff" * 100, frame(b"x", masked=False), frame(b"\xff\xfe", 1), frame(b"x", 3),
     frame(b"x" * 126, 9), frame(b"a", 0), frame(b"a", 1, final=False) + frame(b"b", 1),
     bytes([0x81, 0xFF]) + b"\x7f" * 8 + b"\0" * 4, frame(b"", 8), frame(b"\x03", 8),
     frame(b"\x03\xe8" + b"\xff" * 9, 8), bytes([0xC1, 0x80, 0, 0, 0, 0])],
)  # fmt: skip
def test_what_is_no_frame_ends_its_socket_and_no_other(patient, frames):
    with upgraded(patient) as bare:
        with contextlib.suppress(ConnectionError):
            bare.sendall(frames)
        answer_of(bare)


# Names and paths.


@pytest.mark.parametrize(
    "name",
    ["..", ".", "../main.js", "..%2fmain.js", "%2e%2e/robot.py", "..\\main.js", "%00",
     "main.js%00",
     "/etc/passwd", "%2Fetc%2Fpasswd", "main.js/", "index.html/..", "MAIN.JS", "%ff", ""],
)  # fmt: skip
def test_only_the_files_of_the_page_are_served(taught, name):
    page = Path(imparo.__file__).parent / "service" / "page"
    answer = taught.get(f"/page/{name}")
    files = {file.read_bytes() for file in page.iterdir()}
    assert answer.status_code == 404 or answer.content in files


NAMES = ["..", ".", "", "a/b", "../x", "a\\b", "a b", "a\0", "a\n", "é", "x" * 65, ".hidden",
"a.b",
         ".making-1", "~", "$HOME", "%2e%2e", "a\ud800"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_is_never_named_as_a_path_is(taught, name):
    sent = json.dumps({"name": name, "kind": "classifier"})
    answer = taught.post(
        "/api/learners", content=sent, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    exported = taught.get("/api/learners/toys/export").content
    shown = name.encode("utf-8", "replace").decode()
    assert (
        taught.post("/api/import", params={"name": shown}, content=exported).status_code == 422
    )
    sent = json.dumps({"other": name})
    merged = taught.post("/api/learners/toys/merge", content=sent,
                         headers={"content-type": "application/json"})  # fmt: skip
    assert merged.status_code == 422


def test_a_name_that_another_file_has_is_refused(client, tmp_path):
    (tmp_path / "learners" / "notes").mkdir()
    (tmp_path / "learners" / "notes" / "mine.txt").write_text("keep")
    for name in ("lock", "notes"):
        answer = client.post("/api/learners", json={"name": name, "kind": "classifier"})
        assert answer.status_code == 409
    assert (tmp_path / "learners" / "notes" / "mine.txt").read_text() == "keep"
    assert client.get("/api/learners").json() == {"learners": []}


@pytest.mark.parametrize("key", ["../about.json", "%2e%2e%2fabout.json", "%00", "0" * 500])
def test_only_pictures_are_served_as_pictures(taught, key):
    assert taught.get(f"/api/learners/drawn/thumbnails/{key}").status_code in (404, 405)


# Bodies that are no JSON, or not the right one.

TEACH = "/api/learners/toys/teach"


@pytest.mark.parametrize(
    "content",
    [b'{"inputs": [0, 0, 0], "labels": "mug", "\\ud800": 1}', b"", b"{", b"[", b"nul", b"\xff",
     b"\0", b"{'inputs': [1]}", b'{"inputs": [1, 2, 3], }',
     b"[" * 100_000, b'{"a":' * 50_000, b"1" * 5000, b'{"inputs": [' + b"9" * 5000 + b"]}",
     b'\xef\xbb\xbf{"inputs": [1', "{}}".encode("utf-16"),
     b'{"labels": "\xff\xfe", "inputs": [1]'],
)  # fmt: skip
def test_what_is_no_json_is_refused(taught, content):
    answer = taught.post(TEACH, content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"inputs": [NaN, 0, 0], "labels": "mug"}',
        b'{"inputs": [1e999, 0, 0], "labels": "mug"}',
        b'{"inputs": [-Infinity, 0, 0], "labels": "mug"}',
        b'{"inputs": [1e300, 0, 0], "labels": "a"}',
        b'{"inputs": [' + b"9" * 400 + b', 0, 0], "labels": "mug"}',
        b'{"inputs": [true, 0, 0], "labels": "mug"}',
        b'{"inputs": ["1", 0, 0], "labels": "mug"}',
        b'{"inputs": [null, 0, 0], "labels": "mug"}', b'{"inputs": [[[0]]], "labels": "mug"}',
        b'{"inputs": [], "labels": "mug"}', b'{"inputs": [[]], "labels": "mug"}',
        b'{"inputs": {}, "labels": "mug"}', b'{"inputs": "abc", "labels": "mug"}',
        b'{"inputs": [[0, 0, 0], [0]], "labels": "mug"}',
        b'{"inputs": [[0, 0, 0], 1], "labels": "a"}',
        b'{"inputs": [0, 0, 0], "labels": "mug", "inputs": [NaN]}',
        b'{"inputs": [0, 0], "labels": "mug"}', b'{"inputs": [0, 0, 0], "labels": []}',
        b'{"inputs": [0, 0, 0], "labels": ["a", "b"]}',
        b'{"inputs": [0, 0, 0], "labels": null}',
        b'{"inputs": [0, 0, 0], "labels": 1.5}', b'{"inputs": [0, 0, 0], "labels": {}}',
        b'{"inputs": [0, 0, 0], "labels": [[]]}',
        b'{"inputs": [0, 0, 0], "labels": "mug", "x": 1}',
        b'{"inputs": [0, 0, 0], "labels": ' + b"9" * 300 + b"}",
        b'{"inputs": [0, 0, 0], "outputs": [1]}', b'{"labels": "mug"}', b'"mug"', b"[]",
        b"null",
    ],
)  # fmt: skip
def test_rows_that_are_none_are_refused(taught, content):
    answer = taught.post(TEACH, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    "label",
    ["", " ", "\t", "\0", "mug\0", "\ud800", "mug\udc00", "a\nb", "a\r\nb", "\x1b[31m",
     "\u202e",
     "\u2028", "x" * 201, "x" * 10**6, "\ufeff", "\x7f"],
)  # fmt: skip
def test_labels_that_cannot_be_shown_are_refused(taught, label):
    headers = {"content-type": "application/json"}
    for path, sent in (
        (TEACH, {"inputs": [0, 0, 0], "labels": label}),
        (TEACH, {"inputs": [[0, 0, 0]] * 2, "labels": ["mug", label]}),
        ("/api/learners/toys/rename", {"label": "mug", "new": label}),
        ("/api/learners/toys/forget", {"label": label}),
        ("/api/learners/toys/rename", {"label": label, "new": "cup"}),
    ):
        answer = taught.post(path, content=json.dumps(sent), headers=headers)
        assert answer.status_code in (400, 413, 422), path
        assert answer.json()["error"].isascii() or answer.json()["error"].isprintable()
    shown = quote(label.encode("utf-8", "surrogatepass")[:4000])
    answer = taught.post(
        f"/api/learners/toys/teach/image?label={shown}",
        content=drawing(), headers={"content-type": "image/png"},
    )  # fmt: skip
    assert answer.status_code == 422


def test_other_charsets_are_read_as_json_is_or_not_at_all(taught):
    sent = '{"inputs": [0, 0, 0]}'
    for charset in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"):
        answer = taught.post("/api/learners/toys/ask", content=sent.encode(charset),
                             headers={"content-type": "application/json"})  # fmt: skip
        assert answer.status_code in (200, 400), charset
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = taught.post(TEACH, content=b'{"inputs": [0, 0, 0], "labels": "mug"}',
                             headers={"content-type": kind})  # fmt: skip
        assert answer.status_code in (400, 415, 422), kind


# Images that are none.


def test_images_that_are_none_are_refused(taught):
    whole = drawing(1)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    for path in ("teach/image?label=x", "ask/image"):
        for content in (b"", b"no image", whole[:40], whole[: len(whole) // 2], bytes(damaged),
                        b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"GIF89a" + whole,
                        b"PK\3\4",
                        b"\xff\xd8\xff\xe0" + b"\0" * 100, _png(60_000, 60_000), _png(0, 5),
                        b"RIFF\xff\xff\xff\xffWEBPVP8 " + b"\xff" * 50):  # fmt: skip
            answer = taught.post(f"/api/learners/drawn/{path}", content=content,
                                 headers={"content-type": "image/png"})  # fmt: skip
            assert answer.status_code == 422, content[:20]
        for kind in ("text/html", "application/json", "", "image/svg+xml"):
            answer = taught.post(f"/api/learners/drawn/{path}", content=whole,
                                 headers={"content-type": kind})  # fmt: skip
            assert answer.status_code == 415


def _png(width, height):
    import zlib

    def piece(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))  # fmt: skip

    head = piece(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = piece(b"IDAT", zlib.compress(bytes(10**6)))
    return b"\x89PNG\r\n\x1a\n" + head + rows + piece(b"IEND", b"")


# Robots.


@pytest.mark.parametrize(
    "urdf",
    [
        "iCubGazeboV2_5", "/etc/passwd", "file:///etc/passwd", "../robot.urdf", "",
        '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>',
        '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><robot>&b;</robot>',
        '<<!--!DOCTYPE r [<!ENTITY x "y">]><robot/>', "<robot", "<robot/>", "<a>" * 100_000,
        '<robot name="r"><link name="\0"/></robot>', '<robot name="r">\ud800</robot>',
        '<robot name="r"><link name="a"/><joint name="j" type="revolute"><parent link="a"/>'
        '<child link="a"/></joint></robot>',
    ],
)  # fmt: skip
def test_a_robot_is_text_and_names_no_file(taught, urdf):
    new = {"name": "arm2", "kind": "dynamics",
           "parameters": {"model": "P", "robot": {"urdf": urdf}}}  # fmt: skip
    answer = taught.post("/api/learners", content=json.dumps(new),
                         headers={"content-type": "application/json"})  # fmt: skip
    assert answer.status_code == 422
    assert "root:" not in answer.text


# Files to import.


def exported(client, name="toys"):
    """The parts of an exported learner."""
    content = client.get(f"/api/learners/{name}/export").content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {part: archive.read(part) for part in archive.namelist()}


def packed(parts, **how):
    """A ZIP file of (name, content) pairs, or of a dictionary."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **how) as archive:
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)
    return buffer.getvalue()


def bring(client, content, name="copy"):
    return client.post("/api/import", params={"name": name}, content=content)


def test_what_is_exported_can_be_imported(client, tmp_path):
    populate(client)
    for name in ("toys", "arm", "drawn"):
        content = client.get(f"/api/learners/{name}/export").content
        answer = bring(client, content, f"{name}-2")
        assert answer.status_code == 201, answer.text
        again = client.get(f"/api/learners/{name}-2/export").content
        assert bits(again, tmp_path) == bits(content, tmp_path)


def _archives(parts):
    model = parts["learner.imparo"]
    whole = packed(parts)
    lie = bytearray(whole)
    place = whole.index(b"PK\1\2")
    lie[place + 24 : place + 28] = b"\x0a\0\0\0"  # the size it unpacks to
    encrypted = bytearray(whole)
    encrypted[6] |= 1
    encrypted[place + 8] |= 1
    yield "another file", packed({**parts, "run.py": b"import os"})
    yield "a path", packed({**parts, "../../evil": b"x"})
    yield "paths only", packed({f"../{name}": content for name, content in parts.items()})
    yield "absolute", packed({f"/{name}": content for name, content in parts.items()})
    yield "twice", packed([*parts.items(), ("learner.imparo", model)])
    yield "a part less", packed({"learner.imparo": model, "about.json": parts["about.json"]})
    yield "nothing", packed({})
    yield "a lie of sizes", bytes(lie)
    yield "encrypted", bytes(encrypted)
    yield "in another way", packed(parts, compression=zipfile.ZIP_LZMA)
    yield "in yet another way", packed(parts, compression=zipfile.ZIP_BZIP2)
    yield "only entries", b"PK\3\4" + whole[place : place + 46 + 14] * 5000 + whole[-22:]
    yield "nested", packed({**parts, "learner.imparo": whole})
    for part in parts:
        yield f"no {part}", packed({**parts, part: b""})
        yield f"noise as {part}", packed({**parts, part: b"\xff" * 1000})
    for share in (0.02, 0.5, 0.99):
        yield f"cut at {share}", whole[: int(share * len(whole))]
    yield "a cut model", model[: len(model) // 2]
    yield "no bytes", b""
    yield "a pickle", b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94."
    yield "a number", b"PK\3\4"


def test_archives_that_are_not_what_was_exported_are_refused(taught):
    for what, content in _archives(exported(taught)):
        answer = bring(taught, content)
        assert answer.status_code == 422, what
        assert list(answer.json()) == ["error"]


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path):
    with in_process(tmp_path / "learners", limits=Limits(import_bytes=10**6)) as client:
        client.post("/api/learners", json={"name": "toys", "kind": "classifier"})
        parts = exported(client)
        bomb = packed({**parts, "album.bin": bytes(10**8)}, compression=zipfile.ZIP_DEFLATED)
        assert len(bomb) < 10**6
        assert bring(client, bomb).status_code == 413


@pytest.mark.parametrize(
    "about",
    [b"", b"[]", b"null", b"{}", b'{"features": []}', b'{"features": "pickles"}',
     b"[" * 100_000,
     b'{"features": {"a": 1}}', b'{"features": NaN}', b'{"features": "pix\xff"}'],
)  # fmt: skip
def test_an_about_that_is_none_is_refused(taught, about):
    answer = bring(taught, packed({**exported(taught), "about.json": about}))
    assert answer.status_code == 422


def test_only_classifiers_learn_images(taught):
    about = json.dumps({"features": "pixels"})
    assert (
        bring(taught, packed({**exported(taught, "arm"), "about.json": about})).status_code
        == 422
    )


def test_models_of_other_kinds_are_refused(taught, tmp_path):
    X, y = np.eye(3), np.arange(3.0)
    for model in (imparo.KernelRegressor(penalty=0.1).fit(X, y), imparo.KernelRegressor()):
        imparo.save(model, tmp_path / "model.imparo")
        answer = bring(taught, (tmp_path / "model.imparo").read_bytes())
        assert answer.status_code == 422
        assert "KernelRegressor" in answer.json()["error"]


def test_a_learner_saved_by_the_library_can_be_imported(client, tmp_path):
    for name, learner, y in (
        ("c", IncrementalClassifier(), ["a", "b", "a"]), ("r", RecursiveRegressor(), [0.0, 1.0,
        2.0]),
    ):  # fmt: skip
        for number in (0, 1):
            imparo.save(learner, tmp_path / "model.imparo")
            learner.partial_fit(np.eye(3), y)
            answer = bring(client, (tmp_path / "model.imparo").read_bytes(), f"{name}{number}")
            assert answer.status_code == 201, answer.text
            assert answer.json()["n_seen"] == 3 * number


# Model files whose header was made to harm.


def taken_apart(model, folder):
    (folder / "model.imparo").write_bytes(model)
    with safe_open(folder / "model.imparo", "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["imparo"]), arrays


def put_together(header, arrays):
    """A model file with all checksums right."""
    header["arrays"] = {
        name: imparo.persistence._digest(array) for name, array in arrays.items()
    }
    text = json.dumps(header)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return save_tensors(arrays, metadata={"imparo": text, "sha256": digest})


def state_of(header):
    """The attributes of a learner in a header, by name."""
    keys, values = header["object"]["$object"][1]["$dict"]
    return keys, values


HUGE = 10**12
RIGGED = [
    {"$objects": ["U1000000000", [4], ["a", "b", "c", "d"]]},
    {"$objects": ["<U100000000", [3], ["ball", "car", "mug"]]},
    {"$objects": ["S2000000000", [3], ["ball", "car", "mug"]]},
    {"$objects": ["1000000000f8", [3], [0, 0, 0]]},
    {"$objects": ["V1000000000", [1], [0]]},
    {"$objects": ["O", [HUGE], ["a"]]},
    {"$objects": ["O", [-1], []]},
    {"$objects": ["O", [3], [["a"], "b", {"$float": "nan"}]]},
    {"$scalar": ["V1", 4 * 10**9]},
    {"$scalar": ["1000000000f8", 0]},
    {"$sklearn": ["Pipeline", {"$dict": [["memory", "steps"], ["/tmp", []]]}, "1.0"]},
    {"$sklearn": ["FunctionTransformer", {"$dict": [[], []]}, "1.0"]},
    {"$splitter": ["__builtins__", {"$dict": [[], []]}]},
    {"$splitter": ["GridSearchCV", {"$dict": [[], []]}]},
    {"$object": ["os.system", {"$dict": [[], []]}]},
    {"$object": ["Recursion", {"$dict": [["root"], [1]]}]},
    {"$object": ["Recursion", []]},
    {"$array": ["../../etc/passwd", "C"]},
    {"$array": ["nothing", "C"]},
    {"$csr": {"$dict": [["data"], [1]]}},
    {"$randomstate": {"$tuple": ["MT19937", [0] * 624, HUGE, 0, 0.0]}},
    {"$range": [0, HUGE, 1]},
    {"$range": [0, 10, 0]},
    {"$dict": [[[], {}], [1, 2]]},
    {"$dict": [["a"], []]},
    {"$dtype": "nothing"},
    {"$float": "x"},
    {"$tuple": 5},
    {"$unknown": 1},
    {"a": 1, "b": 2},
    {},
    "x",
    -1,
    HUGE,
    [],
]


@pytest.mark.parametrize(
    "place", ["classes_", "_reservoir", "_recursions", "n_features_in_", "_codes"]
)
def test_a_header_that_was_made_to_harm_is_refused(taught, tmp_path, place):
    model = exported(taught)["learner.imparo"]
    for rigged in RIGGED:
        header, arrays = taken_apart(model, tmp_path)
        keys, values = state_of(header)
        values[keys.index(place)] = rigged
        answer = bring(taught, put_together(header, arrays))
        assert answer.status_code in (413, 422), rigged
        assert list(answer.json()) == ["error"]


def test_one_array_cannot_be_named_a_thousand_times(taught, tmp_path):
    header, arrays = taken_apart(exported(taught)["learner.imparo"], tmp_path)
    keys, values = state_of(header)
    name = next(iter(arrays))
    keys.append("more")
    values.append([{"$array": [name, "C"]}] * 1000)
    assert bring(taught, put_together(header, arrays)).status_code == 422


@pytest.mark.parametrize(
    ("part", "harm"),
    [
        ("root", lambda a: np.zeros((len(a), 1))), ("root", lambda a: np.zeros((2, 2))),
        ("root", lambda a: np.full_like(a, np.nan)), ("root", lambda a: a.astype(np.int64)),
        ("_gains", lambda a: np.zeros((32, 1))), ("_rows", lambda a: np.zeros((1, 1))),
        ("_coef", lambda a: np.zeros((0, 0))), ("_coef", lambda a: np.full_like(a, np.inf)),
        ("_targets", lambda a: np.zeros((32, 0))), ("_weights", lambda a: np.zeros(1)),
        ("_codes", lambda a: np.full_like(a, 2**40)), ("_codes", lambda a: np.full_like(a, -5)),
        ("_codes", lambda a: np.zeros(0, a.dtype)),
    ],
)  # fmt: skip
def test_arrays_that_do_not_go_together_are_refused(taught, tmp_path, part, harm):
    """Compiled loops do not look where they read and write."""
    header, arrays = taken_apart(exported(taught)["learner.imparo"], tmp_path)
    names = [name for name in arrays if name.endswith(part)]
    assert names
    for name in names:
        arrays[name] = np.ascontiguousarray(harm(arrays[name]))
    assert bring(taught, put_together(header, arrays)).status_code == 422


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("n_seen_", -1), ("n_seen_", "3"), ("n_seen_", 1e9), ("_best", 7), ("_shown", [1]),
     ("_shown", ["a", "b", "c"]), ("temperature_", {"$float": "nan"}), ("unknown_label", []),
     ("unknown_label", "x" * 1000), ("holdout_size", HUGE), ("n_features_in_", 2),
     ("_labels", ["mug", "mug", "mug"]), ("_alpha", {"$float": "inf"}), ("_until_selection",
     "x"),
     ("classes_", {"$objects": ["O", [3], [1.5, None, True]]})],
)  # fmt: skip
def test_values_that_do_not_go_together_are_refused(taught, tmp_path, attribute, value):
    header, arrays = taken_apart(exported(taught)["learner.imparo"], tmp_path)
    keys, values = state_of(header)
    values[keys.index(attribute)] = value
    assert bring(taught, put_together(header, arrays)).status_code in (413, 422)


def test_a_learner_that_has_learned_nothing_is_looked_at_too(taught, tmp_path):
    from imparo.estimators import RandomFeatures

    learner = IncrementalClassifier(RandomFeatures(sigma=1.0, n_features=10**9))
    imparo.save(learner, tmp_path / "model.imparo")
    assert bring(taught, (tmp_path / "model.imparo").read_bytes()).status_code == 413


def test_a_header_of_brackets_is_refused_before_it_is_read(taught):
    text = "[" + "[]," * 10**7 + "[]]"
    digest = hashlib.sha256(text.encode()).hexdigest()
    content = save_tensors({"a": np.zeros(1)}, metadata={"imparo": text, "sha256": digest})
    assert bring(taught, content).status_code == 422


@pytest.mark.parametrize(
    "rigged", [RIGGED[0], RIGGED[3], RIGGED[8], *RIGGED[10:14], *RIGGED[17:21], *RIGGED[23:31]]
)
def test_the_library_says_what_is_wrong_with_such_files_too(taught, tmp_path, rigged):
    header, arrays = taken_apart(exported(taught)["learner.imparo"], tmp_path)
    header["object"] = rigged
    (tmp_path / "rigged.imparo").write_bytes(put_together(header, arrays))
    with pytest.raises(FileFormatError):
        imparo.load(tmp_path / "rigged.imparo")


def test_texts_and_sparse_rows_that_are_whole_are_read_as_before(tmp_path):
    from imparo.persistence import _decode, _encode, _Parts

    arrays = {}
    texts = np.array(["a", "b" * 200, ""] * 100)
    state = np.random.RandomState(3)  # what scikit-learn keeps
    state.normal(size=3)
    whole = [texts, texts.astype(object), state, np.float32(1.5), np.str_("x")]
    parts = _Parts(arrays)
    tree = _encode(whole, parts, "value")
    parts.room = 2**20
    found = _decode(tree, parts, tmp_path)
    assert (found[0] == texts).all()
    assert found[0].dtype == texts.dtype
    assert (found[1] == texts).all()
    assert found[2].normal() == state.normal()
    assert found[3:] == whole[3:]


# Albums that were made to harm.


@pytest.mark.parametrize(
    "harm",
    [
        lambda s: s["curves"]["accuracy"].update(step=0),
        lambda s: s["curves"]["accuracy"].update(most=0),
        lambda s: s["curves"]["memory"].update(most=10**9),
        lambda s: s["curves"]["memory"].update(points=[[1, 1.0, 0]]),
        lambda s: s["curves"]["memory"].update(points=[["a", 1.0, 1]]),
        lambda s: s["curves"]["memory"].update(points=[[1, float("nan"), 1]]),
        lambda s: s["curves"].pop("error"),
        lambda s: s["means"].pop("error"),
        lambda s: s["means"].update(more=[0.0, 1.0]),
        lambda s: s["means"].update(error=["a", "b"]),
        lambda s: s["means"].update(error=[-1.0, 1.0]),
        lambda s: s["means"].update(accuracy=[float("inf"), 1.0]),
        lambda s: s["confusion"].append(["mug", "ball", 1]),
        lambda s: s["confusion"].append(['"mug"', '["ball"]', 1]),
        lambda s: s["confusion"].append(['"mug"', '"ball"', -1]),
        lambda s: s["confusion"].extend([[f'"{k}"', '"x"', 1] for k in range(30_000)]),
        lambda s: s["thumbnails"].update({'"mug"': {"1": np.frombuffer(b"<svg>", np.uint8)}}),
        lambda s: s["thumbnails"].update({'"mug"': {"../1": np.frombuffer(b"\xff\xd8",
        np.uint8)}}),
        lambda s: s["thumbnails"].update({"mug": {"1": np.frombuffer(b"\xff\xd8", np.uint8)}}),
        lambda s: s["thumbnails"].update({'"m"': {"1": np.zeros(10**6, np.uint8)}}),
        lambda s: s.update(drawn="x"),
        lambda s: s.update(drawn=-1),
        lambda s: s.pop("thumbnails"),
    ],
)  # fmt: skip
def test_an_album_that_could_not_be_gone_on_with_is_refused(taught, harm):
    parts = exported(taught)
    state = decode(parts["album.bin"])
    harm(state)
    answer = bring(taught, packed({**parts, "album.bin": encode(state)}))
    assert answer.status_code == 422


# Nothing is ever unpickled.


def test_no_module_of_the_service_unpickles():
    root = Path(imparo.__file__).parent
    files = [*root.joinpath("service").glob("*.py"), *root.joinpath("journal").glob("*.py"),
             root.joinpath("lifelong", "durable.py"), root / "persistence.py"]  # fmt: skip
    assert len(files) > 30
    for file in files:
        text = file.read_text(encoding="utf-8")
        for word in (
            "pickle.load",
            "joblib.load(",
            "allow_pickle=True",
            "marshal",
            "shelve",
            "eval(",
        ):
            assert word not in text, (file.name, word)


def test_nothing_is_left_of_what_was_refused(client, tmp_path):
    populate(client)
    before = sorted(path.name for path in (tmp_path / "learners").iterdir())
    parts = exported(client)
    for _, content in _archives(parts):
        assert bring(client, content).status_code == 422
    for about in (b"{}", json.dumps({"features": "pickles"})):
        assert bring(client, packed({**parts, "about.json": about})).status_code == 422
    assert sorted(path.name for path in (tmp_path / "learners").iterdir()) == before
    assert client.get("/health/ready").json() == {"status": "ready", "damaged": []}
