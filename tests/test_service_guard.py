"""What the service refuses: from where, by whom, how often; what every answer says."""

import re

import pytest
from starlette.websockets import WebSocketDisconnect

from imparo.service import Limits, Settings
from imparo.service.tokens import Doorkeeper
from service_tools import in_process, taught_service

TOKEN = "a-token-of-sixteen-or-more"
BEARER = {"authorization": f"Bearer {TOKEN}"}
LOCAL = {"host": "localhost"}
PAGE = {"accept": "text/html,application/xhtml+xml"}

taught = pytest.fixture(scope="module")(taught_service)


@pytest.fixture
def guarded(tmp_path):
    with in_process(tmp_path / "learners", token=TOKEN) as found:
        yield found


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
