"""The service as a process: it is killed, told to end, and started wrongly."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from imparo.cli.serve import serve
from service_tools import served, until

D = 20


def create(client, name="toys", **parameters):
    content = {"name": name, "kind": "classifier", "parameters": parameters}
    client.post("/api/learners", json=content).raise_for_status()


class Teacher(threading.Thread):
    """A client that teaches, one example after the other, until the service is gone.

    Each example has a label of its own: what is there afterwards tells which were kept.
    """

    def __init__(self, service, number):
        super().__init__(daemon=True)
        self.service, self.number = service, number
        self.acknowledged, self.sent, self.error = [], 0, None

    def run(self):
        rng = np.random.default_rng(self.number)
        try:
            with self.service.client() as client:
                while True:
                    label = f"{self.number}-{self.sent}"
                    content = {"inputs": rng.normal(size=D).tolist(), "labels": label}
                    self.sent += 1
                    answer = client.post("/api/learners/toys/teach", json=content)
                    if answer.status_code != 200:
                        self.error = (answer.status_code, answer.text)
                        return
                    self.acknowledged.append(label)
        except httpx.TransportError:
            pass  # it was killed


@pytest.mark.parametrize(
    ("lives", "how"),
    [(3, signal.SIGKILL), pytest.param(25, signal.SIGKILL, marks=pytest.mark.slow),
     (2, signal.SIGTERM)],
)  # fmt: skip
def test_what_was_acknowledged_is_there_whatever_ends_the_service(tmp_path, lives, how):
    rng, acknowledged, sent = random.Random(0), set(), 0
    for life in range(lives):
        with served(tmp_path / "kept") as service:
            with service.client() as client:
                if life == 0:
                    create(client, penalty=1.0)
                check(client, acknowledged, sent)
            teachers = [Teacher(service, 100 * life + k) for k in range(6)]
            for teacher in teachers:
                teacher.start()
            until(lambda some=teachers: sum(len(t.acknowledged) for t in some) > 20)
            time.sleep(rng.random() * 0.3)
            service.process.send_signal(how)
            code = service.process.wait(30)
            assert code == (-signal.SIGKILL if how == signal.SIGKILL else 0)
            for teacher in teachers:
                teacher.join(30)
                # Told to end, it says that it is ending; it never breaks what it has begun.
                assert teacher.error is None or teacher.error[0] == 503, teacher.error
                acknowledged.update(teacher.acknowledged)
                sent += teacher.sent
    with served(tmp_path / "kept") as service, service.client() as client:
        check(client, acknowledged, sent)
        assert not service.bugs()


def check(client, acknowledged, sent):
    told = client.get("/api/learners/toys").json()
    classes = {part["label"] for part in told["classes"]}
    assert acknowledged <= classes
    assert len(acknowledged) <= told["n_seen"] == len(classes) <= sent
    # What was counted beside it has not lost more than what was not acknowledged either.
    history = client.get("/api/learners/toys/history").json()
    if acknowledged:
        assert history["milliseconds"][-1][0] >= len(acknowledged)


def test_many_teach_and_ask_at_once_and_all_is_counted(tmp_path):
    """The load of the benchmark, small: no acknowledgement is lost, nobody is refused."""
    with served(tmp_path / "kept", "--rate", 0) as service, service.client() as client:
        create(client)

        def work(number):
            rng, done = np.random.default_rng(number), 0
            with service.client() as own:
                for _ in range(15):
                    label = int(rng.integers(5))
                    x = (rng.normal(size=D) + 4 * np.eye(D)[label]).tolist()
                    content = {"inputs": x, "labels": label}
                    own.post("/api/learners/toys/teach", json=content).raise_for_status()
                    done += 1
                    found = own.post("/api/learners/toys/ask", json={"inputs": x})
                    assert label in found.raise_for_status().json()["classes"]
            return done

        with ThreadPoolExecutor(20) as pool:
            total = sum(pool.map(work, range(20)))
        told = client.get("/api/learners/toys").json()
        assert told["n_seen"] == total == 300
        assert told["number"] <= 300  # those that came together were kept together
        assert not service.bugs()


def test_memory_does_not_grow_with_examples(tmp_path):
    with served(tmp_path / "kept", "--sync", "never", "--rate", 0) as service:
        rng = np.random.default_rng(0)
        with service.client() as client:
            create(client, penalty=1.0)
            sizes, models = [], []
            for _ in range(4):
                for _ in range(40):
                    X = rng.normal(size=(100, D)).round(4)
                    labels = (X[:, 0] > 0).astype(int).tolist()
                    content = {"inputs": X.tolist(), "labels": labels}
                    client.post("/api/learners/toys/teach", json=content).raise_for_status()
                sizes.append(service.memory)
                models.append(client.get("/api/learners/toys").json()["memory"])
            disk = client.get("/api/learners/toys").json()["disk"]
    assert models[1] == models[3]  # four thousand examples, or sixteen thousand
    assert sizes[3] < sizes[1] + 20e6
    assert disk < 3 * 4 * 2**20 + 3 * models[-1]  # records are replaced by snapshots


def test_logs_are_json_and_tell_nothing_secret(tmp_path):
    token = "a-secret-of-many-characters"
    env = {**os.environ, "IMPARO_TOKEN": token}
    options = ("--log-level", "debug")
    with served(tmp_path / "kept", *options, env=env) as service:
        with service.client(headers={"authorization": f"Bearer {token}"}) as client:
            create(client)
            assert client.get("/?token=" + token).status_code in (200, 303)
        assert httpx.get(f"{service.url}/api/learners").status_code == 401
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(30) == 0
        until(lambda: service.log[-1]["event"].startswith("closed"))
    assert all({"time", "level", "event"} <= set(line) for line in service.log)
    assert any(line["event"] == "request" and line["status"] == 401 for line in service.log)
    assert token not in json.dumps(service.log) + "".join(service.said)


# What is said in the shell.


def run(*arguments):
    return CliRunner().invoke(serve, [str(argument) for argument in arguments])


def test_help_shows_how_to_begin():
    said = run("--help").output
    assert "imparo serve robot/ --port 9000" in said
    assert "token" in said


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--token", "short"), 3, "at least 16"),
        (("--certificate", __file__), 2, "go together"),
        (("--port", "70000"), 2, "70000"),
        (("--sync", "sometimes"), 2, "sometimes"),
        (("--memory", "much"), 3, "much"),
        (("--host", "no.such.host.invalid", "--token", "x" * 20), 4, "no address"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(tmp_path, options, code, said):
    result = run(tmp_path / "kept", "--port", 0, *options)
    assert result.exit_code == code, result.output
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_taken_port_and_a_taken_folder_are_told(tmp_path):
    with served(tmp_path / "a") as service:
        for folder, port, said in (("b", service.port, "is taken; give another --port"),
                                   ("a", 0, "served already")):  # fmt: skip
            result = subprocess.run(
                [sys.executable, "-m", "imparo", "serve", tmp_path / folder, "--port",
                 str(port)], capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            assert result.returncode == 4
            assert said in result.stderr
            assert "Traceback" not in result.stderr


def test_without_the_extra_it_says_what_to_install(tmp_path):
    code = (
        "import sys\n"
        "sys.modules['fastapi'] = None\n"
        "from imparo.cli import main\n"
        f"main(['serve', {str(tmp_path)!r}])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 6
    assert "pip install 'imparo[service]'" in result.stderr
