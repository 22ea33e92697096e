"""The page in a real browser: things are drawn, taught and known, also after a kill -9."""

import os
import signal
import time

from page_tools import (
    AWAY,
    STROKES,
    browser,
    card,
    draw,
    learner,
    needs_browser,
    opened,
    recognised,
    shown,
    teach,
)
from service_tools import drawing, served, until

pytestmark = needs_browser


def test_three_drawn_classes_then_a_fourth_and_all_is_there_after_a_kill(tmp_path):
    complaints = []
    folder = tmp_path / "learners"
    with browser() as context:
        with served(folder) as service, service.client() as client:
            page = opened(context, service.url, complaints)
            page.click('[data-source="draw"]')
            for kind in ("circle", "line", "cross"):
                teach(page, client, kind)
            for kind in ("circle", "line", "cross"):
                recognised(page, kind)
            teach(page, client, "corner")
            recognised(page, "corner")
            assert shown(client) == dict.fromkeys(STROKES, 3)
            assert not complaints
            pictures = thumbnails(page)
            service.process.send_signal(signal.SIGKILL)
            service.process.wait()
            page.locator("#banner").wait_for(state="visible")
            port = service.port
        with served(folder, "--port", port) as service, service.client() as client:
            page.reload()
            page.click('[data-source="draw"]')
            for kind in STROKES:
                card(page, kind).wait_for()
            assert shown(client) == dict.fromkeys(STROKES, 3)
            assert thumbnails(page) == pictures
            assert not page.locator("#banner").is_visible()
            for kind in STROKES:
                recognised(page, kind)
            for chart in ("#chart-accuracy", "#chart-ms", "#chart-memory"):
                assert "12" in page.locator(chart).inner_html()  # examples seen
            assert page.locator("#confusion td").count() >= 9
            assert shown(client) == dict.fromkeys(STROKES, 3)  # asking has taught nothing
    assert not [said for said in complaints if not said.startswith(AWAY)], complaints


def thumbnails(page):
    page.wait_for_function(
        "() => [...document.querySelectorAll('.class-card img')].length > 0 && "
        "[...document.querySelectorAll('.class-card img')].every(i => i.complete)"
    )
    return page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('.class-card')].map(card =>
        [card.dataset.label, [...card.querySelectorAll('img')].filter(i => i.naturalWidth > 0
        ).length]))"""
    )


def test_alpha_is_seen_at_once_and_kept(tmp_path):
    complaints = []
    with browser() as context, served(tmp_path) as service, service.client() as client:
        page = opened(context, service.url, complaints)
        page.click('[data-source="draw"]')
        for kind, times in (("circle", 6), ("line", 1)):
            teach(page, client, kind, times)
        recognised(page, "line")
        with page.expect_request(lambda sent: "recoding=0.1" in sent.url):
            page.evaluate(
                """() => { const slider = document.querySelector('#alpha');
                slider.value = '0.1'; slider.dispatchEvent(new Event('input',
                {bubbles: true})); }"""
            )
        assert learner(client)["recoding"]["setting"] == "auto"  # a preview sets nothing
        page.evaluate(
            """() => document.querySelector('#alpha').dispatchEvent(
            new Event('change', {bubbles: true}))"""
        )
        until(lambda: learner(client)["recoding"]["setting"] == 0.1)
        assert not complaints


def test_what_is_hardly_likelier_than_the_rest_is_not_sure(tmp_path):
    complaints, told = [], {"answer": "line", "classes": ["circle", "line"]}
    with browser() as context, served(tmp_path) as service, service.client() as client:
        page = opened(context, service.url, complaints)
        page.click('[data-source="draw"]')
        for kind in ("circle", "line"):
            teach(page, client, kind, 1)
        page.route("**/ask/image*", lambda route: route.fulfill(json=told))
        for sure, said in ((0.69, "Not sure"), (0.71, "line"), (0.69, "Not sure")):
            told.update(confidence=sure, probabilities=[1 - sure, sure])
            recognised(page, "line")
            page.wait_for_function(
                "said => document.querySelector('#answer').innerText === said", arg=said
            )
            assert ("“line”" in page.locator("#answer-hint").inner_text()) == (said != "line")
        assert not complaints


def test_the_camera_is_taught_by_holding_with_the_keyboard(tmp_path):
    complaints = []
    with (
        browser(permissions=["camera"]) as context,
        served(tmp_path) as service,
        service.client() as client,
    ):
        page = opened(context, service.url, complaints)
        # It never looks unasked, not even where it may.
        page.focus("#camera-start")
        page.keyboard.press("Enter")
        page.locator("#camera-stop").wait_for()
        page.wait_for_function(_FOCUSED, arg="camera-stop")  # what was pressed is gone
        page.fill("#name-field", "clock")
        page.focus("#teach-button")
        page.wait_for_function("() => !document.querySelector('#teach-button').disabled")
        page.keyboard.down("Space")
        until(lambda: shown(client).get("clock", 0) >= 4)
        page.keyboard.up("Space")
        page.wait_for_selector('#answer[data-label="clock"]')
        taught = shown(client)["clock"]
        page.wait_for_timeout(1500)
        assert shown(client)["clock"] <= taught + 2  # what was under way; then it only asks
        page.reload()
        page.locator("#camera-stop").wait_for()  # it was asked before: it looks again
        page.wait_for_selector('#answer[data-label="clock"]')
        assert not complaints


def test_names_are_text_and_never_markup(tmp_path):
    complaints, name = [], '<img src=x onerror="alert(1)"><b>mug</b>'
    with browser() as context, served(tmp_path) as service, service.client() as client:
        page = opened(context, service.url, complaints)
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.click('[data-source="draw"]')
        page.fill("#name-field", name)
        draw(page, "circle")
        page.click("#teach-button")
        until(lambda: shown(client) == {name: 1})
        page.locator(".class-card").wait_for()
        assert name in page.locator(".class-card").inner_text()
        assert page.locator(".class-card b").count() == 0
        assert not complaints


def test_a_name_is_one_however_its_letters_are_written(tmp_path):
    complaints, composed, decomposed = [], "caf\u00e9", "cafe\u0301"
    with browser() as context, served(tmp_path) as service, service.client() as client:
        populate(client)
        told = client.post(
            "/api/learners/drawn/teach/image", params={"label": decomposed},
            content=drawing(), headers={"content-type": "image/png"},
        )  # fmt: skip
        assert told.is_success
        page = opened(context, service.url, complaints)
        page.select_option("#learner-select", "drawn")
        page.click('[data-source="draw"]')
        card(page, decomposed).wait_for()
        page.fill("#name-field", composed)
        pick = card(page, decomposed).locator(".class-pick")
        assert pick.get_attribute("aria-pressed") == "true"
        draw(page, "circle")
        page.click("#teach-button")
        page.locator("#teach-status:has-text('taught')").wait_for()
        page.fill("#name-field", "cre\u0300me")  # new: composed
        draw(page, "line")
        page.click("#teach-button")
        page.locator("#teach-status:has-text('cr\u00e8me')").wait_for()
        (drawn,) = [
            one
            for one in client.get("/api/learners").json()["learners"]
            if one["name"] == "drawn"
        ]
        found = {one["label"]: one["shown"] for one in drawn["classes"]}
        assert (found[decomposed], found["cr\u00e8me"]) == (2, 1)
        assert composed not in found
        assert not complaints


def test_the_robot_view_plays_and_takes_a_payload(tmp_path):
    complaints = []
    with browser() as context, served(tmp_path) as service:
        page = opened(context, f"{service.url}/#robot", complaints)
        page.wait_for_function(
            "() => document.querySelectorAll('#chart-force path, #chart-force polyline')"
            ".length >= 3",
            timeout=60_000,
        )
        button = page.locator("#payload-button")
        assert button.get_attribute("aria-pressed") == "false"
        button.click()
        page.wait_for_selector('#payload-button[aria-pressed="true"]')
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.click("#robot-pause")  # and the mouse stays on it
            pause = page.get_by_role("button", name="Go on", exact=True)
            assert pause.get_attribute("aria-pressed") is None  # its name says it all
            assert pause.evaluate("node => node.matches(':hover')")
            assert pause.evaluate(_CONTRAST) > 4.5
            pause.click()
            page.get_by_role("button", name="Pause", exact=True).wait_for()
        page.click('[data-view="teach"]')
        page.locator("#teach-button").wait_for()
        assert not complaints


_FOCUSED = "id => document.activeElement.id === id"
_CONTRAST = """node => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(value => value / 255)
      .map(value => value <= 0.04 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = getComputedStyle(node);
  const [a, b] = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
  return (a + 0.05) / (b + 0.05); }"""


def test_all_is_in_reach_and_every_control_has_a_name(tmp_path):
    complaints = []
    with browser() as wide, served(tmp_path) as service:
        for width, height in ((360, 740), (844, 390), (1280, 740)):
            size = {"width": width, "height": height}
            context = wide.browser.new_context(viewport=size, has_touch=width < 500)
            for view in ("teach", "robot"):
                page = opened(context, f"{service.url}/#{view}", complaints)
                page.locator(f'[data-view="{view}"]').wait_for()
                assert page.evaluate("() => document.documentElement.scrollWidth") <= width
                assert page.evaluate(_NAMELESS) == []
                if view == "teach":
                    page.click('[data-source="draw"]')
                    page.locator("#pad").scroll_into_view_if_needed()
                    assert page.evaluate(_COVERED, ["#pad", "#teach-button"]) == []
                page.close()
        assert not complaints


_NAMELESS = """() => [...document.querySelectorAll('button, input, select, a[href]')]
  .filter(e => e.offsetParent !== null)
  .filter(e => !(e.innerText || '').trim() && !e.getAttribute('aria-label') &&
    !e.getAttribute('aria-labelledby') && !(e.labels && e.labels.length) && !e.title)
  .map(e => e.outerHTML.slice(0, 120))"""


# Corners and middles of elements that cannot be pressed: out of sight, or below another.
_COVERED = """selectors => selectors.flatMap(selector => {
  const node = document.querySelector(selector);
  const { left, top, width, height } = node.getBoundingClientRect();
  return [[.05, .05], [.95, .05], [.5, .5], [.05, .95], [.95, .95]]
    .filter(([x, y]) => !node.contains(
      document.elementFromPoint(left + x * width, top + y * height)))
    .map(([x, y]) => `${selector} at ${x}, ${y}`); })"""


def populate(client):
    """Two learners of drawings, and one of vectors that knows both 7 and "7"."""
    for name, labels in (("drawn", ("circle", "ring")), ("signs", ("plus", "minus"))):
        new = {"name": name, "kind": "classifier", "features": "pixels"}
        assert client.post("/api/learners", json=new).status_code == 201
        for k in range(6):
            told = client.post(
                f"/api/learners/{name}/teach/image", params={"label": labels[k % 2]},
                content=drawing(k), headers={"content-type": "image/png"},
            )  # fmt: skip
            assert told.status_code == 200, told.text
    assert client.post("/api/learners", json={"name": "vec", "kind": "classifier"}).is_success
    rows = {"inputs": [[1.0, 2.0], [2.0, 1.0]], "labels": [7, "7"]}
    assert client.post("/api/learners/vec/teach", json=rows).is_success


def test_what_is_shown_fits_the_learner(tmp_path):
    complaints, held = [], []
    with browser() as context, served(tmp_path) as service, service.client() as client:
        populate(client)
        page = opened(context, service.url, complaints)
        for _ in range(2):  # also after a reload
            page.locator("#panel-draw").wait_for()  # drawings are drawn
            page.locator('.class-card[data-label="ring"]').wait_for()
            page.reload()
        page.locator("#rare-now:has-text('circle')").wait_for()
        page.route("**/signs/recoding", lambda route: held.append(route))
        page.select_option("#learner-select", "signs")
        card(page, "plus").wait_for()
        assert page.locator("#rare-now").inner_text() == ""  # nothing of the one before
        wait_for(page, held).continue_()
        page.locator("#rare-now b").first.wait_for()
        assert "ring" not in page.locator("#rare-now").inner_text()
        page.select_option("#learner-select", "vec")
        page.locator(".class-card").first.wait_for()
        assert page.locator(".class-name").all_inner_texts() == ["7", '"7"']
        assert not page.locator(".mini-teach, #known-hint").filter(visible=True).count()
        assert not complaints


def wait_for(page, held):
    patience = time.monotonic() + 30
    while not held:
        assert time.monotonic() < patience, "nothing was asked for"
        page.wait_for_timeout(10)  # the browser's messages come in meanwhile
    return held.pop()


def test_others_make_and_delete_learners(tmp_path):
    complaints = []
    with browser() as context, served(tmp_path) as service, service.client() as client:
        populate(client)
        page = opened(context, service.url, complaints)
        page.locator("#learner-select option[value=signs]").wait_for(state="attached")
        page.select_option("#learner-select", "signs")
        card(page, "plus").wait_for()
        page.wait_for_timeout(300)  # its socket opens
        assert client.delete("/api/learners/signs").status_code == 204
        page.locator(".toast:has-text('deleted elsewhere')").wait_for()
        page.wait_for_function(
            "() => document.querySelector('#learner-select').value !== 'signs'"
        )
        card(page, "ring").wait_for()
        new = {"name": "later", "kind": "classifier", "features": "pixels"}
        assert client.post("/api/learners", json=new).status_code == 201
        page.click("#learners-button")
        page.locator("#learner-list b:text-is('later')").wait_for()
        assert not complaints


def test_what_the_server_does_not_take_is_told_and_kept(tmp_path):
    """A disk that is full, say; until it is not."""
    complaints, refusing = [], [True]
    said = "the disk did not take it ([Errno 28] No space left on device); nothing was done"

    def refuse(route):
        if refusing:
            route.fulfill(status=503, json={"error": said}, headers={"retry-after": "30"})
        else:
            route.continue_()

    with browser() as context, served(tmp_path) as service, service.client() as client:
        page = opened(context, service.url, complaints)
        page.click('[data-source="image"]')
        page.route("**/teach/image*", refuse)
        pictures = [
            {"name": f"{k}.png", "mimeType": "image/png", "buffer": drawing(k)}
            for k in range(3)
        ]
        page.set_input_files("#file-input", pictures)
        page.locator("#image-strip li").nth(2).wait_for()
        page.fill("#name-field", "ring")
        page.click("#image-all")
        for where in ("#teach-status", "#answer-hint"):
            told = page.locator(f"{where}:has-text('No space left')")
            told.wait_for()
            assert "kept" in told.inner_text()
        assert page.locator("#image-strip .taught").count() == 0
        refusing.clear()
        page.locator("#image-strip .taught").nth(2).wait_for()
        assert shown(client) == {"ring": 3}
        assert "3 examples" in page.locator("#teach-status").inner_text()
        assert not [told for told in complaints if not told.startswith(AWAY)], complaints


def test_the_dialog_says_everything_where_one_looks(tmp_path):
    complaints, held = [], []
    with browser() as context, served(tmp_path) as service, service.client() as client:
        populate(client)
        page = opened(context, service.url, complaints)
        page.locator("#learner-select option").first.wait_for(state="attached")
        no_picture = {"name": "a.png", "mimeType": "image/png", "buffer": b"no picture"}
        page.click("#learners-button")
        page.set_input_files("#file-input", no_picture)
        page.locator(".toast").wait_for()
        assert page.evaluate(_COVERED, [".toast"]) == []
        page.evaluate("() => document.querySelector('.toast button')?.click()")
        for name, told in (("a b", "no spaces"), ("signs", "already")):
            page.fill("#create-name", name)
            page.click("#create-form button")
            page.locator(f"#create-name-error:has-text('{told}')").wait_for()
            page.wait_for_function(_FOCUSED, arg="create-name")
            assert page.get_attribute("#create-name", "aria-invalid") == "true"
            assert page.evaluate(_COVERED, ["#create-name", "#create-name-error"]) == []
        page.route("**/merge", lambda route: held.append(route))
        page.click("#merge-form button")
        merge = wait_for(page, held)
        assert "“drawn” learns" in page.locator("#merge-told").inner_text()
        assert page.evaluate(_COVERED, ["#merge-told"]) == []
        buttons = page.locator("#learners form button, .learner-list button")
        assert all(button.is_disabled() for button in buttons.all())
        merge.continue_()
        page.locator("#learners").wait_for(state="hidden")
        page.locator(".toast:has-text('knows what')").wait_for()
        page.click("#learners-button")
        page.click('[data-does="delete signs"]')
        page.click('[data-does="yes signs"]')
        page.locator("#list-told:has-text('is deleted')").wait_for()
        assert page.evaluate(_COVERED, ["#list-told"]) == []
        assert not [said for said in complaints if not said.startswith(AWAY)], complaints


def test_with_a_token_the_printed_link_opens_the_page(tmp_path):
    complaints, token = [], "a-token-for-the-browser"
    env = {**os.environ, "IMPARO_TOKEN": token}
    with browser() as context, served(tmp_path, env=env) as service:
        page = opened(context, service.url, [])
        assert page.locator("#teach-button").count() == 0  # only a field for the token
        page.fill("input[name=token]", token)
        page.click("button")
        page.locator("#teach-button").wait_for()
        other = opened(
            context.browser.new_context(), f"{service.url}/?token={token}", complaints
        )
        for _ in range(2):  # the second time it has the cookie already
            other.locator("#teach-button").wait_for()
            assert token not in other.url
            other.goto(f"{service.url}/?token={token}")
        stranger = context.browser.new_context()
        page = opened(stranger, service.url, [])
        for _ in range(12):  # too many: it is told on the page
            page.fill("input[name=token]", "not-the-token-at-all")
            page.click("button")
        assert "wait" in page.locator("[role=alert]").inner_text()
        assert not complaints
