"""Experiments: trials that are kept and gone on with, verdicts, the book, the command."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import imparo.experiments
from imparo.cli import main
from imparo.experiments import Case, Experiment, experiment, names, reproduce, write_book
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.book import Told, book
from imparo.experiments.shared.data import Data, scaled
from imparo.experiments.shared.experiment import CHAPTERS
from imparo.experiments.shared.results import SUBSTITUTE, Ledger, Results, fingerprint, plain
from imparo.experiments.shared.running import run, stored
from imparo.experiments.shared.trials import some_rows
from imparo.experiments.shared.verdicts import Comparison, Printed, overall
from imparo.measuring import surroundings

ALL = names()
#: Those that need no data and take about a second when quick.
LIGHT = ["losses", "features-needed", "boundaries"]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No data on this machine."""
    monkeypatch.delenv("IMPARO_DATA", raising=False)
    monkeypatch.setenv("IMPARO_CACHE", str(tmp_path / "cache"))


def counted(log, **more):
    """Return an experiment that writes down each trial it makes."""

    def trial(case, seed, data):
        log.append((case.name, seed))
        if case.settings.get("stop") == seed:
            raise KeyboardInterrupt
        return {"error": case.settings["level"] + np.float64(seed), "curve": np.arange(3.0)}

    def tell(results):
        account = Account()
        for name in results:
            account.compare(
                name, Printed("1.0", 0.5), float(results.mean(name, "error")),
                float(results.deviation(name, "error")), len(results.trials[name]),
            )  # fmt: skip
        return account

    cases = [Case("first case", 3, {"level": 0.0}), Case("Second, case!", 2, {"level": 9.0})]
    return Experiment(
        "counted", 4, "Table 9.9", "Counting", "It counts.", "None.", lambda quick: cases,
        trial, tell, **more,
    )  # fmt: skip


# The catalogue.


@pytest.mark.parametrize("name", ALL)
def test_experiments_are_whole(name):
    one = experiment(name)
    assert one.name == name
    assert one.chapter in CHAPTERS
    assert one.place.startswith(("Figure", "Table"))
    assert one.finding.endswith(".")
    assert one.setting.endswith(".")
    for quick in (True, False):
        cases = one.cases(quick)
        json.dumps(plain([case.settings for case in cases]), allow_nan=False)
        files = [Ledger(Path(), case).path for case in cases]
        assert len(set(files)) == len(cases) > 0  # no two share a file
        assert all(case.trials >= 1 for case in cases)
    full = {case.name: case.trials for case in one.cases(False)}
    assert all(case.trials <= full.get(case.name, 10**9) for case in one.cases(True))


def test_the_order_is_that_of_the_thesis():
    chapters = [experiment(name).chapter for name in ALL]
    assert chapters == sorted(chapters)
    assert set(chapters) == set(CHAPTERS)


def test_every_file_is_an_experiment():
    folder = Path(imparo.experiments.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "catalogue"}
    assert files == {name.replace("-", "_") for name in ALL}


def test_an_unknown_name_is_told_with_those_near_it():
    with pytest.raises(ValueError, match="did you mean grids"):
        experiment("grid")


# Trials.


def test_trials_are_made_once(tmp_path):
    log = []
    one = counted(log)
    first = run(one, tmp_path, Data())
    assert log == [("first case", i) for i in range(3)] + [("Second, case!", i) for i in (0, 1)]
    second = run(one, tmp_path, Data())
    assert len(log) == 5
    assert second.trials == first.trials == stored(one, tmp_path, quick=False).trials
    assert first.mean("first case", "error") == 1.0
    assert first.deviation("first case", "error") == 1.0
    assert first.mean("first case", "curve").tolist() == [0.0, 1.0, 2.0]


def test_an_interrupted_run_goes_on(tmp_path):
    log = []
    one = counted(log)
    stopping = [
        replace(case, settings={**case.settings, "stop": 2}) for case in one.cases(True)
    ]
    cut = replace(one, cases=lambda quick: stopping)
    with pytest.raises(KeyboardInterrupt):
        run(cut, tmp_path, Data())
    assert log == [("first case", 0), ("first case", 1), ("first case", 2)]
    log.clear()
    found = run(replace(cut, trial=one.trial), tmp_path, Data(), trials=2)
    assert log == [("Second, case!", 0), ("Second, case!", 1)]
    assert [len(trials) for trials in found.trials.values()] == [2, 2]


def test_other_settings_are_other_results(tmp_path):
    log = []
    one = counted(log)
    run(one, tmp_path, Data())
    changed = [replace(case, settings={"level": 1.0}) for case in one.cases(True)]
    found = run(replace(one, cases=lambda quick: changed), tmp_path, Data())
    assert len(log) == 10
    assert found.mean("first case", "error") == 2.0
    run(one, tmp_path, Data())  # the old ones are still there
    assert len(log) == 10


def test_fewer_trials_can_be_asked_for_and_more_later(tmp_path):
    log = []
    one = counted(log)
    assert len(run(one, tmp_path, Data(), trials=1).trials["first case"]) == 1
    assert len(run(one, tmp_path, Data()).trials["first case"]) == 3
    assert log.count(("first case", 0)) == 1


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_line_that_was_cut_off_is_made_again(tmp_path, cut):
    log = []
    one = counted(log)
    run(one, tmp_path, Data())
    path = Ledger(tmp_path / "counted", one.cases(True)[0]).path
    path.write_bytes(path.read_bytes()[:-cut])
    expected = 5 if cut == 1 else 6  # without its end of line a line is still whole
    found = run(one, tmp_path, Data())
    assert len(log) == expected
    assert found.values("first case", "error").tolist() == [0.0, 1.0, 2.0]
    run(one, tmp_path, Data())
    assert len(log) == expected


_KILLED = """
import sys, time
from pathlib import Path
from imparo.experiments import Case, Experiment
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.running import run
def trial(case, seed, data):
    time.sleep(0.05)
    return {"value": seed**2}
one = Experiment(
    "squares", 4, "Table", "t", "f.", "s.", lambda quick: [Case("all", 30)], trial, None
)
found = run(one, Path(sys.argv[1]), Data())
print(found.values("all", "value").tolist())
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_process_loses_one_trial_at_most(tmp_path, end):
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    path = tmp_path / "squares" / "all.jsonl"
    until = time.monotonic() + 60
    while not path.exists() or len(path.read_text().splitlines()) < 5:
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(end)
    process.wait()
    before = path.read_text().splitlines()
    assert 5 <= len(before) < 30
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [i**2 for i in range(30)]
    assert path.read_text().splitlines()[: len(before)] == before


@pytest.mark.parametrize(
    "error", [FileNotFoundError("no data; get them"), ImportError("no package"), MemoryError()]
)
def test_what_cannot_be_made_is_left_out_and_told(tmp_path, error):
    one = counted([])

    def trial(case, seed, data):
        if case.name == "first case":
            raise error
        return one.trial(case, seed, data)

    found = run(replace(one, trial=trial), tmp_path, Data())
    assert list(found) == ["Second, case!"]
    assert found.missing == {"first case": str(error) or "there is not enough memory"}
    assert "first case" in book([Told(one, found, one.tell(found))], surroundings()).to_html()


def test_progress_is_told_to_the_end(tmp_path):
    shown = []
    run(counted([]), tmp_path, Data(), progress=lambda *step: shown.append(step))
    assert shown[0] == ("counted", 0, 5)
    assert shown[-1] == ("counted", 5, 5)


def test_values_become_plain():
    found = plain({"a": np.float32(0.5), "b": [np.inf, np.array([[1, 2]])], 3: (np.bool_(1),)})
    assert found == {"a": 0.5, "b": [None, [[1, 2]]], "3": [True]}


def test_settings_tell_results_apart():
    a, b = Case("a", 1, {"x": 1, "y": [2]}), Case("b", 9, {"y": [2], "x": 1})
    assert fingerprint(a) == fingerprint(b)
    assert fingerprint(a) != fingerprint(Case("a", 1, {"x": 1, "y": [3]}))


# Verdicts.


finite = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@given(finite, st.floats(1e-3, 1e3), st.floats(-3, 3), st.booleans())
def test_verdicts(value, deviation, apart, larger):
    """Within the deviation is reproduced; beyond it better on one side, worse on the other."""
    thesis = Printed(f"{value:.3f}", deviation)
    allowed = deviation + thesis.rounding
    found = Comparison("x", thesis, value + apart * allowed, larger_is_better=larger).verdict
    if abs(apart) < 0.99:
        assert found == "reproduced"
    elif abs(apart) > 1.01:
        assert found == ("better" if (apart > 0) == larger else "differs")


def test_what_is_printed_without_a_deviation_is_judged_by_ours():
    thesis = Printed("1.24")
    assert thesis.rounding == pytest.approx(0.005)
    assert Comparison("x", thesis, 1.244).verdict == "reproduced"
    assert Comparison("x", thesis, 1.3).verdict == "differs"
    assert Comparison("x", thesis, 1.3, 0.1, 5).verdict == "reproduced"
    assert Comparison("x", thesis, 99.0, substituted=True).verdict == "other data"
    assert str(Printed("2.8466", 0.0497)) == "2.8466 ± 0.0497"
    assert Comparison("x", thesis, 87.8, 12.3, 5, digits=".1f").shown == "87.8 ± 10"


def test_one_that_differs_decides():
    assert overall([]) == "other data"
    assert overall(["other data", "reproduced"]) == "reproduced"
    account = Account()
    account.compare("a", Printed("1.0"), 2.0, because="the moon is full")
    account.check("b", True, "seen")
    assert account.verdict == "differs"
    assert "because the moon is full" in account.sentence
    assert "1 of 1 findings hold" in account.sentence
    assert Told(counted([]), Results(False, {}), account).mark == "differs in 1 of 2"


# Data.


SIZES = {
    "cpu-small": (6554, 1638, 12), "cpu-act": (6554, 1638, 21), "pumadyn32nh": (4096, 4096, 32),
    "insurance": (5822, 4000, 85), "breast-cancer-thesis": (400, 169, 30),
    "adult": (32_561, 16_281, 123), "covtype-binary": (522_910, 58_102, 54),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_splits_are_those_of_the_thesis(real_data, name):
    real_data("cpu_small")  # skips where there is no folder
    split = Data().split(name)
    n, n_test, d = SIZES[name]
    assert split.X.shape == (n, d)
    assert split.X_test.shape == (n_test, d)
    assert (len(split.y), len(split.y_test)) == (n, n_test)
    both = np.vstack([split.X, split.X_test])
    assert both.max() <= 1 + 1e-6
    assert both.min() >= -1 - 1e-6
    if name in ("adult", "covtype-binary", "breast-cancer-thesis"):
        assert set(np.unique(split.y)) == {-1.0, 1.0}


@pytest.mark.parametrize("name", ["year-prediction", "ct-slices", "ijcnn1"])
def test_what_stands_for_data_is_told(real_data, name):
    real_data("cpu_small")
    data = Data()
    split = data.split(name)
    assert len(split.y) > 10_000
    assert len(data.notes) == 1
    assert data.notes[0].startswith(SUBSTITUTE)
    data.notes = []
    assert data.split(name) is split  # kept for the next trial
    assert len(data.notes) == 1
    results = Results(False, {}, notes={"a": data.notes, "b": []})
    assert results.substituted("a")
    assert not results.substituted("b")


def test_data_that_are_not_there(nowhere, tmp_path):
    with pytest.raises(FileNotFoundError, match="imparo datasets get adult"):
        Data().split("adult")
    with pytest.raises(FileNotFoundError):
        Data(tmp_path).split("year-prediction")


def test_scaling_keeps_constant_columns():
    found = scaled(np.array([[1.0, 7.0], [2.0, 7.0], [5.0, 7.0]]), -1, 1)
    assert found[:, 0].tolist() == [-1.0, -0.5, 1.0]
    assert np.isfinite(found).all()


def test_some_rows_are_drawn_without_repetition(real_data):
    real_data("cpu_small")
    split = Data().split("cpu-small")
    few = some_rows(split, 500, 0)
    assert few.X.shape == (500, 12)
    assert len(few.y_test) == 500
    assert some_rows(split, None, 0) is split
    assert not np.array_equal(few.X, some_rows(split, 500, 1).X)


# The book.


class _Page(HTMLParser):
    """Collects what a page refers to, and checks that elements end."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.sources, self._open = [], set(), [], []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs["href"]] if tag == "a" else []
        self.ids |= {attrs["id"]} if "id" in attrs else set()
        self.sources += [attrs[key] for key in ("src", "srcset") if key in attrs]
        if tag not in ("meta", "link", "img", "source", "wbr", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag


def test_the_book_has_all_chapters(nowhere, tmp_path):
    reproduce(LIGHT, tmp_path, quick=True)
    text = (tmp_path / "book-quick.html").read_text("utf-8")
    page = _Page(text)
    for number, title in CHAPTERS.items():
        assert f"Chapter {number} · {title}" in text
    assert text.count("not run") >= len(ALL) - len(LIGHT)
    assert all(link[0] == "#" and link[1:] in page.ids for link in page.links)
    assert len(page.links) >= len(ALL)
    assert all(source.startswith("data:") for source in page.sources)
    values = json.loads((tmp_path / "book-quick.json").read_text())
    assert [one["name"] for one in values["experiments"]] == ALL
    for name in LIGHT:
        assert _Page((tmp_path / f"{name}-quick.html").read_text("utf-8")).sources
        assert (tmp_path / f"{name}-quick.png").read_bytes()[:4] == b"\x89PNG"
        one = json.loads((tmp_path / f"{name}-quick.json").read_text())
        assert one["verdict"] == "reproduced"


def test_the_book_gathers_what_was_made_before(nowhere, tmp_path):
    reproduce(["losses"], tmp_path, quick=True)
    reproduce(["boundaries"], tmp_path, quick=True)
    made = json.loads((tmp_path / "book-quick.json").read_text())["experiments"]
    assert [one["name"] for one in made if one["verdict"] != "not run"] == [
        "losses",
        "boundaries",
    ]
    (tmp_path / "book-quick.html").unlink()
    write_book(tmp_path, quick=True)
    assert (tmp_path / "book-quick.html").exists()


def test_one_that_fails_does_not_keep_others(nowhere, tmp_path, monkeypatch):
    from imparo.experiments import losses

    def broken(case, seed, data):
        raise ArithmeticError("two and two are five")

    monkeypatch.setattr(losses, "EXPERIMENT", replace(losses.EXPERIMENT, trial=broken))
    with pytest.raises(ArithmeticError, match="two and two"):
        reproduce(["losses", "boundaries"], tmp_path, quick=True)
    assert (tmp_path / "boundaries-quick.html").exists()
    assert (tmp_path / "book-quick.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"wanted": ["grid"]}, "did you mean grids"),
        ({"wanted": "losses"}, "must be a list of names"),
        ({"wanted": ["losses"], "trials": 0}, "from 1 on"),
        ({"wanted": ["losses"], "data": "no/such/folder"}, "there is no folder"),
    ],
)
def test_bad_arguments(tmp_path, arguments, message):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        reproduce(out=tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


# The command.


def imparo_(*arguments):
    return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


def test_the_list():
    shown = imparo_("list")
    assert shown.exit_code == 0
    assert all(name in shown.output for name in ALL)
    values = json.loads(imparo_("list", "--json").stdout)
    assert [one["name"] for one in values] == ALL


def test_one_from_the_shell(nowhere, tmp_path):
    shown = imparo_("losses", "--quick", "--out", tmp_path)
    assert shown.exit_code == 0, shown.output
    assert "reproduced" in shown.output
    assert "book-quick.html" in shown.output
    (values,) = json.loads(imparo_("losses", "--quick", "--out", tmp_path, "--json").stdout)
    assert values["verdict"] == "reproduced"


def test_without_data_the_command_says_what_is_missing(nowhere, tmp_path):
    shown = imparo_("grids", "--quick", "--out", tmp_path)
    assert shown.exit_code == 0
    assert "imparo datasets get" in " ".join(shown.output.split())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["grid"], 3, "did you mean grids"),
        (["list", "losses"], 2, "list stands alone"),
        (["all", "losses"], 2, "all stands alone"),
        ([], 2, "Missing argument"),
        (["losses", "--trials", "0"], 2, "x>=1"),
        (["losses", "--data", "no/such"], 4, "there is no folder"),
    ],
)
def test_wrong_usage(tmp_path, arguments, code, message):
    shown = imparo_(*arguments, "--out", tmp_path / "out")
    assert shown.exit_code == code
    assert message in " ".join(shown.stderr.split())
    assert not (tmp_path / "out").exists()


# On the thesis' data.


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ALL if name not in LIGHT])
def test_quick_versions_tell_something(real_data, tmp_path, name):
    real_data("cpu_small")
    (told,) = reproduce([name], tmp_path, quick=True)
    assert told.results.missing == {}
    assert told.account is not None
    assert told.account.pictures or told.account.tables
    assert told.account.comparisons or told.account.checks
