"""Reports of fits and evaluations: pages, values and sheets, whatever the outcome."""

import base64
import errno
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from imparo.paths import Path
from imparo.reports import Page, check_report_path, evaluation_page, fit_page, write_report
from imparo.reports.drawing import LIGHT, as_svg
from imparo.reports.style import STYLE
from imparo.reports.words import number, percent, verdict
from imparo.tabular.outcome import Account, Cost, Evaluation

pytest.importorskip("matplotlib")
SCRIPT = "<script>alert(1)</script>"
HOSTILE = [SCRIPT, "$x_1$", "😀 naïve 漢字", "a\"b'c&amp;", "x" * 300, "\x00"]


def path(rng):
    errors = rng.uniform(1, 2, (5, 4))
    axes = {"penalty": np.geomspace(1, 1e-4, 5), "n_centers": np.array([10, 20, 40, 80])}
    nan = np.full(errors.shape, np.nan)
    return Path(errors, axes, "root mean squared error", "hold-out", nan, nan)


def regression(rng, rows=40, outputs=1, **changes):
    names = [f"y{i}" for i in range(outputs)]
    observed = rng.normal(size=(rows, outputs))
    parts = [
        {"output": n, "rmse": 0.5, "mae": 0.4, "r2": 0.7, "mean": 0.0, "deviation": 1.0}
        for n in names
    ]
    found = Evaluation(
        "regression", rows, "rows at random", names, [], {"rmse": 0.5, "mae": 0.4, "r2": 0.75},
        {"rmse": 1.0, "mae": 0.8, "r2": 0.0}, parts, None, observed,
        observed + 0.5 * rng.normal(size=observed.shape),
    )  # fmt: skip
    return replace(found, **changes)


def classification(rng, classes=3, rows=60, **changes):
    names = [f"c{i}" for i in range(classes)]
    truth, named = rng.integers(0, classes, (2, rows, 1))
    confusion = np.zeros((classes, classes), int)
    np.add.at(confusion, (truth[:, 0], named[:, 0]), 1)
    parts = [
        {"class": n, "rows": 3, "precision": 0.5, "recall": np.nan, "f1": np.nan} for n in names
    ]
    errors = {"error": 0.1, "balanced_error": 0.2, "brier": 0.3}
    found = Evaluation(
        "classification", rows, "rows at random", ["kind"], names, errors,
        {"error": 0.4, "balanced_error": 0.5, "brier": 0.8}, parts, confusion, truth, named,
        rng.dirichlet(np.ones(classes), rows),
    )  # fmt: skip
    return replace(found, **changes)


def account(rng, **changes):
    columns = [{"name": f"x{i}", "kind": "number", "use": "input"} for i in range(3)]
    columns.append({"name": "y0", "kind": "number", "use": "target"})
    trials = [
        {"method": "nystrom", "kernel": "gaussian", "n_centers": 10, "n_rows": 99,
         "error": error, "seconds": 0.5, "note": "first"} for error in (2.0, np.inf, 1.0)
    ]  # fmt: skip
    found = Account(
        "houses.csv", ["houses.csv", __file__], 100, 1, 2, 60, 40, columns, ["y0"],
        "regression", "a third at random", ["Columns were scaled."], "nystrom",
        {"kernel": "gaussian", "penalty": 1e-3}, "hold-out", path(rng), trials,
        "nothing more was worth trying",
        [{"rows": 30, "error": 0.7}, {"rows": 60, "error": 0.5}],
        [{"name": "x0", "relevance": 0.9}, {"name": "x1", "relevance": 0.1}],
        Cost({"reading": 1.0, "fitting": 3.0}, 60.0, 10**8, 10**9, 1e9, 4e9),
        "imparo fit houses.csv", "fit_table('houses.csv')", {"imparo": "1.0"}, [],
        regression(rng),
    )  # fmt: skip
    return replace(found, **changes)


class Reader(HTMLParser):
    """Read a page as a browser does: tags in their order, texts, and what is open."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "source", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def pictures_in(reader):
    """Return every picture of a page as the roots of its SVGs, light and dark."""
    light = [a["src"] for a in reader.all("img") if a.get("class") == "light"]
    dark = [a["srcset"] for a in reader.all("source")]
    return [
        [ElementTree.fromstring(base64.b64decode(s.removeprefix("data:image/svg+xml;base64,")))
         for s in pair] for pair in zip(light, dark, strict=True)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def fit_html():
    rng = np.random.default_rng(0)
    return fit_page(account(rng, warnings=["Two rows are equal."])).to_html()


# The page


def test_a_page_needs_nothing_from_outside_and_runs_nothing(fit_html):
    reader = Reader(fit_html)
    names = {name for name, _ in reader.tags}
    assert not names & {"script", "iframe", "object", "embed", "form"}
    ids = {attrs["id"] for _, attrs in reader.tags if "id" in attrs}
    for _, attrs in reader.tags:
        assert not [name for name in attrs if name.startswith("on")]
        for key in ("src", "srcset", "href"):
            link = attrs.get(key, "data:")
            assert link.startswith("data:") or link[1:] in ids
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    assert len(fit_html) < 2_000_000


def test_a_page_can_be_read_aloud(fit_html):
    reader = Reader(fit_html)
    levels = [int(name[1]) for name, _ in reader.tags if re.fullmatch(r"h\d", name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert all(len(attrs["alt"]) > 30 for attrs in reader.all("img"))
    assert {attrs["scope"] for attrs in reader.all("th")} == {"row", "col"}
    assert reader.all("html")[0]["lang"] == "en"


def test_pictures_are_drawn_for_light_and_dark(fit_html):
    pictures = pictures_in(Reader(fit_html))
    assert len(pictures) == 9
    for light, dark in pictures:
        assert light.get("viewBox") == dark.get("viewBox")
        assert ElementTree.tostring(light) != ElementTree.tostring(dark)


def test_sections_come_in_order_and_warnings_first(fit_html):
    text = Reader(fit_html).text
    order = [
        "Predicting y0", "Two rows are equal.", "What was fitted, and on what",
        "How it was chosen", "How good it is", "What it took", "How to reproduce it",
    ]  # fmt: skip
    places = [text.rindex(words) for words in order]
    assert places == sorted(places)
    asked = ("houses.csv", "hold-out", "a third at random", "imparo fit houses.csv")
    for words in (*asked, "nothing more was worth trying", "Columns were scaled."):
        assert words in text


def colours(block):
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(dark):
    found = colours(STYLE[: STYLE.index("@media")])
    if dark:
        found |= colours(STYLE[STYLE.index("@media") : STYLE.index("* {")])

    def luminance(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return np.dot(parts, (0.2126, 0.7152, 0.0722))

    for text in ("ink", "soft", "accent", "blue", "good", "bad"):
        for ground in ("paper", "surface"):
            low, high = sorted(luminance(found[name]) for name in (text, ground))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


def test_a_table_is_folded_and_numbers_are_to_the_right():
    page = Page("t", "l")
    rows = [[f"name {i}", str(i), "text" if i else "1"] for i in range(30)]
    page.table("h", "", ["name", "count", "mixed"], rows, 20, folded=True)
    reader = Reader(page.to_html())
    assert len(reader.all("table")) == 2
    assert sum("class" in attrs for attrs in reader.all("td")) == 30  # one column of three
    chosen = [i for i, a in enumerate(reader.all("tr")) if a.get("class") == "chosen"]
    assert chosen == [1 + 15 + 1 + 5]


# Words


@pytest.mark.parametrize(
    ("errors", "baseline", "words"),
    [({"rmse": 0.5}, {"rmse": 2.0}, "off by 0.5 in a typical case. Always predicting the mean "
      "would be off by 2: 75 % of that error is taken away."),
     ({"rmse": 3.0}, {"rmse": 2.0}, "no better than that, and should not be relied on"),
     ({"rmse": np.nan}, {"rmse": 2.0}, "could not be counted"),
     ({"rmse": 0.0}, {"rmse": 0.0}, "off by 0 in a typical case.")],
    ids=["better", "worse", "missing", "nothing to explain"],
)  # fmt: skip
def test_the_headline_tells_what_the_error_means(rng, errors, baseline, words):
    found = regression(rng, metrics=errors, baseline=baseline)
    assert words in verdict(found, "9 rows")


def test_the_headline_of_classes_counts_mistakes(rng):
    assert verdict(classification(rng), "9 rows") == (
        "On 9 rows it names the wrong class in 10 % of the cases. Always naming the most "
        "frequent class would be wrong in 40 %: 75 % of those mistakes are avoided."
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (np.inf, "–"), (0, "0"), (-0.5, "−0.5"), (1234.5, "1,234"),
     (1e6, "1,000,000"), (1.5e-9, "1.5e-9"), (2.5e20, "2.5e20"), (np.float32(0.25), "0.25")],
)  # fmt: skip
def test_numbers(value, text):
    assert number(value) == text


def test_percentages_are_never_rounded_to_all_or_nothing():
    assert [percent(v) for v in (0, 1e-5, 0.5, 0.99951, 1, np.nan)] == [
        "0 %", "0.001 %", "50 %", "99.9 %", "100 %", "–"
    ]  # fmt: skip


# Outcomes of all kinds


def constant(rng):
    same = np.full((40, 1), 3.0)
    return {"evaluation": regression(rng, observed=same, predicted=same)}


OUTCOMES = {
    "nothing was judged": lambda rng: {
        "evaluation": None, "rows_tested": 0, "curve": [], "path": path(rng)
    },
    "nothing was searched": lambda rng: {"validation": ""},
    "no trial ended": lambda rng: {
        "trials": [{"method": "exact", "error": None, "seconds": None}], "evaluation": None,
    },
    "a path of one point": lambda rng: {
        "path": Path(np.array([[1.0]]), {"penalty": np.ones(1), "n_centers": np.ones(1)},
                     "m", "hold-out", np.ones((1, 1)), np.ones((1, 1))),
        "evaluation": None,
    },
    "one test row": lambda rng: {"evaluation": regression(rng, rows=1), "rows_tested": 1},
    "constant predictions": constant,
    "errors that are missing": lambda rng: {
        "evaluation": regression(rng, metrics={"rmse": np.nan}, baseline={"rmse": np.nan},
                                 predicted=np.full((40, 1), np.nan))
    },
    "seven outputs": lambda rng: {
        "evaluation": regression(rng, outputs=7), "target": [f"y{i}" for i in range(7)],
    },
    "two classes": lambda rng: {"evaluation": classification(rng, 2)},
    "a class in one row": lambda rng: {"evaluation": classification(rng, 2, rows=1)},
    "thirty classes": lambda rng: {"evaluation": classification(rng, 30)},
    "two hundred classes": lambda rng: {
        "evaluation": classification(rng, 200, probabilities=None)
    },
    "names that are hostile": lambda rng: {
        "target": [SCRIPT], "data": HOSTILE[1], "warnings": HOSTILE, "files": HOSTILE,
        "columns": [{"name": name, "kind": "text", "use": "input"} for name in HOSTILE],
        "relevance": [{"name": name, "relevance": 1.0} for name in HOSTILE],
        "evaluation": replace(
            classification(rng, len(HOSTILE)), classes=HOSTILE, outputs=[SCRIPT],
            parts=[{"class": name, "rows": 1, "recall": 1.0, "precision": 1.0, "f1": 1.0}
                   for name in HOSTILE],
        ),
    },
    "many columns": lambda rng: {
        "columns": [{"name": f"p{i}", "kind": "number", "use": "input"} for i in range(12_288)],
        "relevance": [{"name": f"p{i}", "relevance": 1e-4} for i in range(12_288)],
        "chosen": {"sigma": np.linspace(1, 2, 12_288)}, "evaluation": None,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", OUTCOMES)
@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning")
def test_every_outcome_has_a_page(rng, kind, monkeypatch):
    drawn = []

    def once(picture, theme):
        if theme.name == "light":  # the other theme is drawn alike, and so is the cost
            costs = picture.heading.startswith("Time, ") and drawn
            drawn.append(drawn[-1] if costs else as_svg(picture, theme))
        return drawn[-1]

    monkeypatch.setattr("imparo.reports.page.as_svg", once)
    # Each has what it is about, and no pictures that others have.
    bare = {"path": None, "trials": [], "relevance": [], "curve": []}
    found = account(rng, **(bare | OUTCOMES[kind](rng)))
    evaluation = found.evaluation
    page = fit_page(replace(found, task=evaluation.task if evaluation else found.task))
    text = page.to_html()
    reader = Reader(text)
    assert not reader.all("script")
    assert len(drawn) == len(page.pictures) > 0
    assert len(text) < 1_500_000
    for content in drawn:
        ElementTree.fromstring(content)
    if kind == "names that are hostile":
        assert reader.text.count(SCRIPT) > 5
    if kind == "many columns":
        assert "And 12,248 more columns" in reader.text
        assert "12,288 values between 1 and 2" in reader.text
    json.dumps(page.data, allow_nan=False)


def test_of_many_outputs_the_worst_are_drawn(rng):
    found = regression(rng, outputs=12)
    found.predicted[:, 2:11] += 9
    page = evaluation_page(found)
    assert "Of 12 outputs, the 9 with the largest errors." in page.pictures[0].text
    text = ElementTree.tostring(ElementTree.fromstring(as_svg(page.pictures[0], LIGHT)))
    assert len(re.findall(rb'id="axes_\d+"', text)) == 9


def test_a_page_of_an_evaluation_says_what_was_judged(rng):
    found = classification(rng, 2)
    page = evaluation_page(found, {"file": "m.imparo"}, warnings=["Old."], command="imparo e")
    text = Reader(page.to_html()).text
    for words in (
        "How well kind is predicted",
        "rows at random",
        "m.imparo",
        "Old.",
        "imparo e",
    ):
        assert words in text


# Files


@pytest.fixture
def small(rng):
    return account(rng, trials=[], relevance=[], curve=[], evaluation=None)


def test_json_is_the_account_with_a_format(small, tmp_path):
    write_report(small, tmp_path / "r.json")

    def no_constant(name):
        raise AssertionError(f"{name} is not JSON")

    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    found = json.loads(text, parse_constant=no_constant)
    assert found.pop("format") == 1
    assert found.pop("kind") == "fit"
    assert found == json.loads(json.dumps(small.to_dict()))


def test_sheets_have_all_pictures(small, tmp_path):
    for suffix in ("png", "svg"):
        write_report(small, tmp_path / f"r.{suffix}")
    png = (tmp_path / "r.png").read_bytes()
    assert int.from_bytes(png[16:20], "big") == 12 * 150
    at = png.index(b"pHYs") + 4
    assert int.from_bytes(png[at : at + 4], "big") == round(150 / 0.0254)
    root = ElementTree.parse(tmp_path / "r.svg").getroot()
    axes = [g for g in root.iter("{http://www.w3.org/2000/svg}g")
            if re.fullmatch(r"axes_\d+", g.get("id", ""))]  # fmt: skip
    # A map with its scale, and three bars of cost.
    assert len(axes) == 2 + 3


def test_the_same_outcome_gives_the_same_bytes(small):
    first, second = (fit_page(small).pictures[0] for _ in range(2))
    assert as_svg(first, LIGHT) == as_svg(second, LIGHT)


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [("r.docx", ValueError, "must end in .html, .json, .png or .svg"),
     ("report", ValueError, "must end in .html, .json, .png or .svg"),
     ("no/where/r.html", FileNotFoundError, "there is no folder"),
     ("folder.html", IsADirectoryError, "is a folder")],
)  # fmt: skip
def test_places_are_checked_before_the_work(small, tmp_path, name, error, words):
    (tmp_path / "folder.html").mkdir()
    for call in (check_report_path, lambda place: write_report(small, place)):
        with pytest.raises(error, match=re.escape(words)):
            call(tmp_path / name)


def test_without_matplotlib_only_json_can_be_written(monkeypatch, small, tmp_path):
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=re.escape("imparo[plot]")):
        check_report_path(tmp_path / "r.html")
    write_report(small, tmp_path / "r.json")


def test_a_full_disk_leaves_the_old_report(monkeypatch, small, tmp_path):
    place = tmp_path / "r.json"
    place.write_text("old", encoding="utf-8")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"the report .*r\.json could not be written: No space"):
        write_report(small, place)
    assert place.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["r.json"]


def test_a_link_stays_a_link(small, tmp_path):
    (tmp_path / "there.json").touch()
    (tmp_path / "here.json").symlink_to(tmp_path / "there.json")
    write_report(small, tmp_path / "here.json")
    assert (tmp_path / "here.json").is_symlink()
    assert json.loads((tmp_path / "there.json").read_text(encoding="utf-8"))["kind"] == "fit"
