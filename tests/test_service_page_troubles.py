"""The page in a real browser when network, server or session are not as they should be."""

import functools
import http.server
import threading
from contextlib import contextmanager

import pytest

from page_tools import AWAY, browser, draw, learner, needs_browser, opened, shown, teach
from service_tools import served, until

pytestmark = needs_browser
TOKEN = "a-token-for-the-browser"


def test_a_held_arrow_key_gets_somewhere_on_a_slow_network(tmp_path):
    complaints = []
    with browser() as context, served(tmp_path) as service, service.client() as client:
        context.add_init_script(
            """const usual = window.fetch;
            window.fetch = async (url, options) => {
              const answer = await usual(url, options);
              if (options?.method === "PATCH") await new Promise((on) => setTimeout(on, 80));
              return answer;
            };"""
        )
        page = opened(context, service.url, complaints)
        page.click('[data-source="draw"]')
        for kind, times in (("circle", 4), ("line", 1)):
            teach(page, client, kind, times)
        client.patch("/api/learners/objects", json={"recoding": 0})
        until(lambda: page.input_value("#alpha") == "0")

        page.evaluate(
            """() => { window.seen = []; const slider = document.querySelector('#alpha');
            slider.addEventListener('input', () => window.seen.push(Number(slider.value))); }"""
        )
        page.focus("#alpha")
        for _ in range(30):
            page.keyboard.press("ArrowRight")
            page.wait_for_timeout(20)
        until(lambda: learner(client)["recoding"]["setting"] == 0.3)
        seen = page.evaluate("window.seen")
        assert seen == sorted(seen)  # it never jumps back
        assert len(seen) == 30
        assert page.input_value("#alpha") == "0.3"
        # Dragged away and back: browsers tell of no change.
        page.evaluate(
            """() => { const slider = document.querySelector('#alpha');
            for (const value of ['0.6', '0.3']) {
              slider.value = value; slider.dispatchEvent(new Event('input', {bubbles: true}));
            }
            slider.dispatchEvent(new PointerEvent('pointerup')); }"""
        )
        client.patch("/api/learners/objects", json={"recoding": 0.9})  # another window
        until(lambda: page.input_value("#alpha") == "0.9")
        assert not complaints


def test_a_drawing_that_was_not_taught_is_not_called_taught(tmp_path):
    refusing = [True]

    def refuse(route):
        if refusing:
            route.fulfill(status=422, json={"error": "this drawing is refused"})
        else:
            route.continue_()

    complaints = []
    with browser() as context, served(tmp_path) as service, service.client() as client:
        page = opened(context, service.url, complaints)
        page.click('[data-source="draw"]')
        page.route("**/teach/image*", refuse)
        page.fill("#name-field", "cross")
        draw(page, "cross")
        page.click("#teach-button")
        page.locator(".toast:has-text('this drawing is refused')").wait_for()
        assert page.locator("#pad-hint").inner_text() == ""
        refusing.clear()
        page.click("#teach-button")  # it is still there
        page.locator("#pad-hint:has-text('Taught. Draw the next one.')").wait_for()
        assert shown(client) == {"cross": 1}
        assert not [told for told in complaints if not told.startswith(AWAY)], complaints


@pytest.mark.parametrize("label", ["ring", 7])
def test_a_picture_is_taught_once_though_the_answer_was_lost(tmp_path, label):
    lost = []
    with browser() as context, served(tmp_path) as service, service.client() as client:
        page = opened(context, service.url, [])
        page.click('[data-source="draw"]')
        teach(page, client, "line", 1)
        if label == 7:  # which goes over the socket
            sent = {"inputs": [0.1] * 1280, "labels": 7}
            assert client.post("/api/learners/objects/teach", json=sent).is_success

        def lose(route):
            answer = route.fetch()
            if lost:
                route.fulfill(response=answer)
            else:
                lost.append(answer.status)
                route.abort()

        page.route("**/teach/image*", lose)
        draw(page, "circle")
        page.fill("#name-field", str(label))
        page.click("#teach-button")
        page.locator("#teach-status:has-text('One example')").wait_for()
        page.locator("#banner").wait_for(state="hidden")
        assert shown(client) == {"line": 1, label: 1 if label == "ring" else 2}
        assert lost == ([200] if label == "ring" else [])


def test_what_waits_outlives_a_session(tmp_path):
    headers = {"authorization": f"Bearer {TOKEN}"}
    with (
        browser() as context, served(tmp_path, "--token", TOKEN) as service,
        service.client(headers=headers) as client,
    ):  # fmt: skip
        page = opened(context, f"{service.url}/?token={TOKEN}", [])
        page.click('[data-source="draw"]')
        teach(page, client, "line", 1)
        context.clear_cookies()
        draw(page, "circle")
        page.fill("#name-field", "circle")
        page.click("#teach-button")
        page.locator("#banner:has-text('The session has ended')").wait_for()
        page.locator("#teach-status:has-text('1 not yet taught is kept')").wait_for()
        other = opened(context, f"{service.url}/?token={TOKEN}", [])  # from the terminal again
        other.locator("#teach-button").wait_for()
        other.close()
        page.locator("#banner").wait_for(state="hidden")
        page.locator('.class-card[data-label="circle"]').wait_for()
        assert shown(client) == {"circle": 1, "line": 1}


@contextmanager
def site(folder):
    """A page of somebody else."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    handler.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_link_may_be_followed_from_a_letter(tmp_path):
    with browser() as context, served(tmp_path / "kept", "--token", TOKEN) as service:
        link = f"http://localhost:{service.port}/?token={TOKEN}"
        (tmp_path / "letter.html").write_text(f'<a href="{link}">Teach it</a>', "utf-8")
        with site(tmp_path) as elsewhere:
            page = opened(context, f"{elsewhere}/letter.html", [])
            page.click("a")
            page.locator("#teach-button").wait_for()
            assert TOKEN not in page.url
            page.reload()
            page.locator("#teach-button").wait_for()
            page.go_back()  # the address with the token is not among those that were visited
            assert page.url == f"{elsewhere}/letter.html"
