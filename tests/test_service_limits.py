"""What the service refuses: how much, and how slowly."""

import contextlib

import pytest

from imparo.service import Limits
from imparo.service.replies import POLICY
from service_tools import answer_of, connected, in_process, patient_service, served, serving

patient = pytest.fixture(scope="module")(patient_service)


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
    program = serving(header_seconds=0.5, body_seconds=0.5, connections=30)
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
