"""The page in a real browser, for tests: opened, drawn on, taught.

Needs Chromium on the machine (Debian's package chromium); tests are skipped where it is not.
"""

import shutil
from contextlib import contextmanager

import pytest

from service_tools import until

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which(
    "google-chrome"
)  # fmt: skip
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")

OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
]  # fmt: skip
# Where the browser's messages of errors that a test makes itself are allowed.
AWAY = ("Failed to load resource", "WebSocket", "ERR_CONNECTION")


@contextmanager
def browser(**settings):
    """Yield a context of a browser, and what its pages complained of."""
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        try:
            yield chromium.new_context(
                **{"viewport": {"width": 1280, "height": 900}, **settings}
            )
        finally:
            chromium.close()


def opened(context, url, complaints):
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda told: told.type == "error" and complaints.append(told.text))
    page.goto(url)
    return page


STROKES = {
    "circle": [[(0.5 + 0.3 * x, 0.5 + 0.3 * y) for x, y in
                ((1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7), (-1, 0), (-0.7, -0.7), (0, -1),
                 (0.7, -0.7), (1, 0))]],
    "line": [[(0.2, 0.2), (0.8, 0.8)]],
    "cross": [[(0.2, 0.5), (0.8, 0.5)], [(0.5, 0.2), (0.5, 0.8)]],
    "corner": [[(0.25, 0.2), (0.25, 0.8), (0.8, 0.8)]],
}  # fmt: skip


def draw(page, kind, shift=0.0):
    if page.locator("#pad-clear").is_enabled():
        page.click("#pad-clear")
    page.locator("#pad").scroll_into_view_if_needed()
    box = page.locator("#pad").bounding_box()
    for stroke in STROKES[kind]:
        for i, (x, y) in enumerate(stroke):
            place = (
                box["x"] + (x + shift) * box["width"], box["y"] + (y - shift) * box["height"]
            )  # fmt: skip
            page.mouse.move(*place, steps=2)
            if i == 0:
                page.mouse.down()
        page.mouse.up()


def card(page, label):
    return page.locator(f'.class-card[data-label="{label}"]')


def teach(page, client, kind, times=3):
    before = shown(client).get(kind, 0)
    for k in range(times):
        page.fill("#name-field", kind)
        draw(page, kind, shift=0.03 * (k - 1))
        page.click("#teach-button")
        until(lambda k=k: shown(client).get(kind, 0) == before + k + 1)
    card(page, kind).wait_for()


def learner(client):
    found = client.get("/api/learners").json()["learners"]
    return found[0] if found else None


def shown(client):
    found = learner(client)
    return {part["label"]: part["shown"] for part in found["classes"]} if found else {}


def recognised(page, kind):
    draw(page, kind, shift=0.02)
    page.wait_for_selector(f'#answer[data-label="{kind}"]')
