"""Links, cookies and waiting: how a browser comes in."""

from fastapi import FastAPI
from fastapi.testclient import TestClient

from imparo.cli import serve as command
from imparo.service import Settings, create_app
from imparo.service.tokens import Doorkeeper
from service_tools import in_process


def test_two_services_of_one_machine_do_not_log_each_other_out(tmp_path):
    # Browsers share cookies between ports, by their names.
    keepers = [Doorkeeper(f"a-token-of-sixteen-{k}", tls=False) for k in range(2)]
    pairs = [keeper.cookie().split(";")[0] for keeper in keepers]
    jar = dict(pair.split("=") for pair in pairs)
    header = "; ".join(f"{name}={value}" for name, value in jar.items()).encode()
    assert all(keeper.admits({b"cookie": header}) for keeper in keepers)
    swapped = pairs[0].split("=")[0] + "=" + pairs[1].split("=")[1]
    assert not any(keeper.admits({b"cookie": swapped.encode()}) for keeper in keepers)


def test_the_cookie_of_a_mounted_service_is_for_its_path(tmp_path):
    token = "a-token-of-some-length"
    inner = create_app(Settings(tmp_path, token=token))
    program = FastAPI(lifespan=lambda program: inner.lifespan())
    program.mount("/teach", inner)
    with TestClient(program, base_url="http://localhost", follow_redirects=False) as client:
        for answer in (
            client.get(f"/teach/?token={token}"),
            client.post("/teach/api/session", data={"token": token}),
        ):
            assert "Path=/teach;" in answer.headers["set-cookie"]


def test_any_token_can_be_in_the_link(tmp_path, monkeypatch):
    token, opened = "a+b&c#d%20e/f?g=héé ü", []
    monkeypatch.setattr(command.click, "launch", opened.append)
    monkeypatch.setattr(
        "imparo.service.serve", lambda settings, told, **more: told("http://localhost:1/")
    )
    command.serve.main(
        [str(tmp_path), "--token", token, "--open"], standalone_mode=False, prog_name="serve"
    )
    (link,) = opened
    with in_process(tmp_path / "learners", token=token) as client:
        answer = client.get(link.removeprefix("http://localhost:1"), follow_redirects=False)
        assert answer.status_code == 303


def test_who_is_told_to_wait_is_told_how_long(tmp_path):
    token = "a-token-of-some-length"
    with in_process(tmp_path, token=token) as client:
        for _ in range(12):
            answer = client.get("/?token=wrong", headers={"accept": "text/html"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "6")
        client.app.service.learners.ready = False
        headers = {"authorization": f"Bearer {token}"}
        answer = client.get("/health/ready", headers=headers)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
