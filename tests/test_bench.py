"""``imparo bench``: the figures are of what they say, and the frame around them."""

import json
from threading import Event

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

from imparo.cli import bench, main
from imparo.measuring import Measurement, by_turns, files, measure, parts, surroundings, timing
from imparo.measuring.fits import CENTERS, FEATURES, measure_fits
from imparo.measuring.streams import _anew, _map, _recursive, examples_a_second


class Clock:
    """A time that passes only when work is done."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def takes(self, *seconds):
        """Return work that takes these seconds, one after the other, and then the last."""
        left = list(seconds)

        def work():
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return work


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(timing.time, "perf_counter", made)
    return made


def test_the_first_run_does_not_count_and_the_median_does(clock):
    (found,) = by_turns([clock.takes(100.0, 2.0, 9.0, 1.0)], 0.0)
    assert (found.seconds, found.repeats) == (2.0, 3)


def test_works_take_turns_until_the_seconds_are_used(clock):
    order = []

    def work(name, seconds):
        def run():
            order.append(name)
            clock.now += seconds

        return run

    found = by_turns([work("a", 1.0), work("b", 3.0)], 18.0)
    assert order == ["a", "b"] * 6  # one turn to warm up, five of four seconds
    assert [(timing.seconds, timing.repeats) for timing in found] == [(1.0, 5), (3.0, 5)]


@pytest.mark.parametrize("power", [1, 3])
def test_sizes_fill_the_time_however_the_work_grows(power):
    def once(n):
        return 1e-4 * (n / 100) ** power + 1e-7

    n = timing.size_within(once, 0.5, 100, 10**7, power)
    assert 0.7 < once(n) / 0.5 <= 1.01
    assert timing.size_within(once, 0.5, 100, 150, power) == 150
    assert timing.size_within(lambda n: 9.0, 0.5, 100, 150, power) == 100


def test_ratios_say_how_many_times_faster():
    fit = Measurement("fits", "exact", "n", 2.0, "s", 3, "rival", 5.0)
    read = Measurement("readers", "CSV", "n", 300.0, "rows/s", 3, "rival", 100.0)
    alone = Measurement("machine", "memory", "n", 2.0, "GB/s", 3)
    assert [line.ratio for line in (fit, read, alone)] == [2.5, 3.0, None]
    assert fit.to_dict()["ratio"] == 2.5


def test_rivals_learn_the_same_so_that_times_can_be_compared():
    lines = measure_fits(0.3)
    assert [line.what for line in lines] == [
        f"Nyström, m = {CENTERS}, 1 λ", f"Nyström, m = {CENTERS}, 41 λ",
        f"features, m = {FEATURES}, 1 λ", f"features, m = {FEATURES}, 40 λ",
        "exact, 1 λ", "exact, 100 λ",
    ]  # fmt: skip
    assert_allclose(lines[4].error, lines[4].rival_error, rtol=1e-6)  # the same solution
    for line in lines:
        assert line.error < 1.5 * line.rival_error
        assert line.value > 0
        assert line.rival_value > 0
        assert line.repeats >= 3


def test_the_rival_of_a_stream_solves_the_same_problem(rng):
    X, p = rng.normal(size=(40, 10)), 30
    y = np.sin(X[:, 0])
    learned = {}

    def spy(learn, name):
        learned[name] = dict(zip(learn.__code__.co_freevars, learn.__closure__, strict=True))
        return learn

    ours, theirs = spy(_recursive(X, p), "ours"), spy(_anew(X, p), "theirs")
    rates = examples_a_second([ours, theirs], X, y, 0.0)
    assert [count for _, count in rates] == [20, 20]  # after twenty to warm up: all rows once
    A, b = (learned["theirs"][name].cell_contents for name in ("A", "b"))
    model = learned["ours"]["model"].cell_contents
    assert_allclose(model.coef_, np.linalg.solve(A, b), rtol=1e-6, atol=1e-9)
    Phi = _map(X, p).transform(X)
    assert_allclose(A, Phi.T @ Phi + 0.1 * np.eye(p), rtol=1e-9)


@pytest.fixture
def quick(monkeypatch):
    """Parts that measure nothing, and note the seconds that they were given."""
    given = {}

    def function_of(part):
        def measure_part(seconds):
            given[part] = seconds
            rival = () if part == "machine" else ("rival [1]", 4.0)
            return [Measurement(part, f"work {part}", "n = 7", 2.0, "s", 3, *rival)]

        return measure_part

    monkeypatch.setattr(parts, "_function_of", function_of)
    return given


def test_parts_share_the_seconds(quick):
    lines = measure(["machine", "stream"], 10)
    assert [line.part for line in lines] == ["machine", "stream"]
    assert list(quick.values()) == [5.0, 5.0]


@pytest.mark.parametrize(
    ("asked", "seconds", "words"),
    [
        (["disk"], 1, "no part 'disk'"),
        (["machine"], 0, "above 0"),
        (["fits"], np.nan, "above 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(asked, seconds, words):
    with pytest.raises(ValueError, match=words):
        measure(asked, seconds)


def test_surroundings_are_told():
    about = surroundings()
    assert about["cores"] >= 1
    assert about["threads"] is None or about["threads"] >= 1
    assert about["versions"]["numpy"] == np.__version__
    json.dumps(about)


def run(*arguments):
    return CliRunner().invoke(main, ["bench", *map(str, arguments)], env={"COLUMNS": "100"})


def test_all_parts_are_shown_with_their_rivals(quick):
    result = run()
    assert result.exit_code == 0, result.output
    assert list(quick.values()) == [5.0] * 4
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in result.output.splitlines()
    ]
    rows = [row for row in rows if row]
    assert ["work machine", "n = 7", "2 s"] in rows
    for part in ("fits", "readers", "stream"):
        place = rows.index([f"work {part}", "n = 7", "2 s", "2×"])
        assert rows[place + 1] == ["rival [1]", "", "4 s", ""]


def test_the_outcome_is_written_and_printed_as_json(quick, tmp_path):
    file = tmp_path / "bench.json"
    result = run("fits", "--seconds", 3, "--json", "-o", file)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed == json.loads(file.read_text())
    assert printed["seconds"] == 3.0
    assert [line["ratio"] for line in printed["measured"]] == [2.0]
    assert list(quick.values()) == [3.0]


def test_the_time_that_passes_is_shown(monkeypatch):
    calls, times = [], iter([0.0, 1.0, 2.5, 99.0])
    shown = Event()

    def show(*call):
        calls.append(call)
        if len(calls) == 3:
            shown.set()

    monkeypatch.setattr(bench, "monotonic", lambda: next(times, 99.0))
    monkeypatch.setattr(bench, "_TICK", 0.001)
    with bench._ticking(show, 4.0):
        assert shown.wait(30)
    assert calls[:3] == [("measuring", done, 40) for done in (10, 25, 40)]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["disk"], 2), (["--seconds", 0], 2), (["-o", "missing/bench.json"], 4)],
    ids=["part", "seconds", "folder"],
)
def test_mistakes_have_their_codes(quick, arguments, code):
    result = run(*arguments)
    assert result.exit_code == code
    assert not quick


def test_the_machine_is_measured_for_what_it_is():
    lines = {line.what: line for line in measure(["machine"], 0.2)}
    assert list(lines) == [
        "matrix product, float64", "matrix product, float32", "memory, copied",
        "scratch file, written", "scratch file, read",
    ]  # fmt: skip
    for line in lines.values():
        assert 0 < line.value < 1e6
        assert line.repeats >= 3


def test_readers_are_measured_on_files_that_both_read_in_full(tmp_path):
    for kind in (files._csv, files._parquet, files._npy):
        name, write, _, read_whole = kind()
        write(tmp_path / name, files._rows(50))
        whole = read_whole(tmp_path / name)
        columns = whole if name.endswith("parquet") else np.asarray(whole).T
        blocks = list(files.open_rows(tmp_path / name).blocks())
        read = np.concatenate([block.matrix(block.columns) for block in blocks])
        assert_allclose(read, np.transpose(columns))
        assert_allclose(read, files._rows(50), atol=1e-6)
