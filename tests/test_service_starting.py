"""How the service starts and ends: ports, certificates, damaged folders, long lessons."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest
import websockets.sync.client

from imparo.service import Settings
from imparo.service.listening import check_certificate, listen
from service_tools import in_process, served, serving, slowly, until


def make(client, name="toys", **parameters):
    new = {"name": name, "kind": "classifier", "parameters": parameters}
    assert client.post("/api/learners", json=new).status_code == 201


def teach(client, name="toys", n=6, d=3):
    rows = np.random.default_rng(0).normal(size=(n, d)).tolist()
    sent = {"inputs": rows, "labels": ["a", "b"] * (n // 2)}
    return client.post(f"/api/learners/{name}/teach", json=sent)


# Listening.


@pytest.mark.parametrize(
    ("host", "said"),
    [("no.such.host.invalid", "no address"), ("192.0.2.1", "this machine has no address")],
)
def test_addresses_that_are_not_here_are_told(host, said):
    with pytest.raises(OSError, match=said):
        listen(Settings("learners", host=host, port=0, token="x" * 20))


def test_no_address_is_not_every_address():
    with pytest.raises(ValueError, match="host is empty"):
        Settings("learners", host=" ", token="x" * 20)


def test_a_name_of_two_addresses_is_heard_at_both_with_one_port():
    if not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    sockets = listen(Settings("learners", host="localhost", port=0))
    try:
        assert len({one.getsockname()[1] for one in sockets}) == 1
        for one in sockets:
            one.listen()
            socket.create_connection(one.getsockname()[:2], timeout=5).close()
    finally:
        for one in sockets:
            one.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two certificates with their keys, and the first key encrypted."""
    if not shutil.which("openssl"):
        pytest.skip("there is no program openssl here")
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("one", "two"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
            check=True, capture_output=True,
        )  # fmt: skip
    subprocess.run(
        ["openssl", "rsa", "-aes128", "-passout", "pass:secret", "-in", folder / "one.key",
         "-out", folder / "closed.key"], check=True, capture_output=True,
    )  # fmt: skip
    (folder / "picture.jpg").write_bytes(b"\xff\xd8\xff" * 20)
    (folder / "cut.pem").write_bytes((folder / "one.pem").read_bytes()[:200]
                                     + b"\n-----END CERTIFICATE-----\n")  # fmt: skip
    return folder


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("picture.jpg", "one.key", "no PEM file with a certificate"),
        ("one.key", "one.pem", "no PEM file with a certificate"),
        ("one.pem", "picture.jpg", "no PEM file with a private key"),
        ("one.pem", "two.key", "does not belong"),
        ("one.pem", "closed.key", "is encrypted"),
        ("cut.pem", "one.key", "damaged"),
    ],
)
def test_certificates_that_cannot_be_used_are_told(certificates, certificate, key, said):
    with pytest.raises(ValueError, match=said):
        check_certificate(certificates / certificate, certificates / key)


def test_with_a_certificate_all_goes_by_tls(certificates, tmp_path):
    pair = ("--certificate", certificates / "one.pem", "--key", certificates / "one.key")
    with served(tmp_path / "learners", *pair) as service:
        assert service.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=certificates / "one.pem")
        with httpx.Client(base_url=service.url, verify=trusted, timeout=30) as client:
            make(client)
            assert teach(client).is_success
        address = f"wss://localhost:{service.port}/api/learners/toys/stream"
        with websockets.sync.client.connect(address, ssl=trusted) as stream:
            stream.send(json.dumps({"id": 1, "ask": {"inputs": [1, 2, 3]}}))
            assert "result" in json.loads(stream.recv(timeout=30))
        with pytest.raises(httpx.TransportError):
            httpx.get(service.url.replace("https", "http"), timeout=10)


def test_a_file_that_holds_no_token_is_told(tmp_path):
    for content, said in ((b"\xff\xfe\xff", "is no text"), (b"short\n", "has 5 characters")):
        (tmp_path / "token").write_bytes(content)
        result = subprocess.run(
            [sys.executable, "-m", "imparo", "serve", tmp_path / "kept", "--port", "0",
             "--token-file", tmp_path / "token"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert result.returncode == 3
        assert said in result.stderr
        assert "token" in result.stderr


def test_who_asks_with_a_browser_gets_a_page_to_enter_the_token(tmp_path):
    with in_process(tmp_path / "learners", token="a-token-of-some-length") as client:
        browser = {"accept": "text/html,*/*"}
        asked = client.get("/", headers=browser)
        wrong = client.post("/api/session", data={"token": "another"}, headers=browser)
        for answer, said in ((asked, "A token is needed"), (wrong, "This is not the token")):
            assert answer.status_code == 401
            assert said in answer.text
            assert '<form method="post" action="/api/session">' in answer.text
            assert "style-src 'sha256-" in answer.headers["content-security-policy"]
        assert "not the token" in client.get("/", headers={"authorization": "Bearer x"}).text


# Opening.


def test_while_learners_are_opened_the_service_answers_and_is_not_ready(tmp_path):
    folder = tmp_path / "learners"
    with in_process(folder) as client:
        make(client)
        teach(client)
    program = serving("""
import imparo.service.learners as learners
warm_up = learners._warm_up
def slow():
    while not __import__("os").path.exists(sys.argv[1] + "/go"):
        time.sleep(0.02)
    warm_up()
learners._warm_up = slow
import imparo.service.running as running
running._PATIENCE = 0.0
""")
    process = subprocess.Popen(
        [sys.executable, "-c", program, folder], stderr=subprocess.PIPE, text=True
    )
    try:
        told = json.loads(process.stderr.readline())
        assert told["event"] == "opening learners"
        with httpx.Client(base_url=told["url"], timeout=30) as client:
            assert client.get("/health/live").status_code == 200
            for path in ("/health/ready", "/api/learners", "/api/learners/toys"):
                answer = client.get(path)
                assert answer.status_code == 503, path
            assert answer.headers["retry-after"] == "1"
            (folder / "go").touch()
            until(lambda: client.get("/health/ready").status_code == 200)
            assert client.get("/api/learners/toys").json()["n_seen"] == 6
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_told_to_end_while_opening_it_ends(tmp_path):
    program = serving("""
import imparo.service.learners as learners
learners._warm_up = lambda: time.sleep(1)
import imparo.service.running as running
running._PATIENCE = 0.0
""")
    process = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stderr=subprocess.PIPE, text=True
    )
    try:
        assert json.loads(process.stderr.readline())["event"] == "opening learners"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert "ready" not in process.stderr.read()
    finally:
        process.kill()
        process.stderr.close()


def test_folders_that_are_damaged_are_told_one_by_one(tmp_path, caplog):
    with in_process(tmp_path) as client:
        for name in ("missing", "broken", "empty", "newer", "good"):
            make(client, name)
            teach(client, name)
    (tmp_path / "missing" / "about.json").unlink()
    (tmp_path / "broken" / "about.json").write_text('{"x')
    (tmp_path / "empty" / "about.json").write_text("{}")
    (tmp_path / "newer" / "about.json").write_text('{"format": 99}')
    shutil.copytree(tmp_path / "good", tmp_path / "good (copy)")
    (tmp_path / "notes").mkdir()
    with in_process(tmp_path) as client:
        states = {s["name"]: s for s in client.get("/api/learners").json()["learners"]}
        assert sorted(states) == ["broken", "empty", "good", "missing", "newer"]
        for name, said in (("missing", "about.json is missing"), ("broken", "is damaged"),
                           ("empty", "is damaged"), ("newer", "newer imparo")):  # fmt: skip
            assert states[name]["status"] == "damaged"
            assert said in states[name]["reason"]
            assert states[name]["classes"] == []
            assert states[name]["n_seen"] == 0
        assert states["good"]["n_seen"] == 6
    assert any("rename it" in record.message for record in caplog.records)


# Ending.


def test_a_long_lesson_is_cut_short_and_says_how_far_it_came(tmp_path):
    # Steps of a fifth of a second: the whole would take minutes.
    program = slowly(0.2, before="import imparo.service.live as live; live._GRACE = 0.5")
    told = []
    with served(tmp_path / "learners", program=program) as service:
        with service.client() as client:
            make(client)

        def lesson():
            with service.client() as client:
                told.append(teach(client, n=4000))

        threads = [threading.Thread(target=lesson) for _ in range(2)]
        for thread in threads:
            thread.start()
        with service.client() as client:
            until(lambda: client.get("/api/learners/toys").json()["n_seen"])
        start = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert service.process.wait(30) == 0
        assert time.monotonic() - start < 10
        assert service.bugs() == []
    # Of the one that was begun a part is learned; of the other, perhaps, nothing.
    statuses = [409 if "learned" in answer.json() else 503 for answer in told]
    assert [answer.status_code for answer in told] == statuses
    learned = sum(answer.json().get("learned", 0) for answer in told)
    with in_process(tmp_path / "learners") as client:
        assert client.get("/api/learners/toys").json()["n_seen"] == learned > 0


def test_what_was_learned_for_long_is_opened_soon_after_an_end_in_order(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        teach(client)
        live = client.app.service.learners.find("toys").at_work()
        live.desk._learned = 100.0
        records = live.learner._journal.size
        assert records
    with in_process(tmp_path) as client:
        opened = client.app.service.learners.find("toys").at_work().learner
        assert opened.number == 1
        assert opened.n_seen_ == 6
        assert list(opened._journal.records()) == []
        assert os.listdir(tmp_path / "toys" / "learner")
