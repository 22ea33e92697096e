"""The command line as a person uses it."""

import gzip
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from imparo.cli import demonstration, main
from imparo.data import load_concrete


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo says, writes and finds, with one second to search where it has ten."""
    path = tmp_path_factory.mktemp("demo") / "report.html"
    found, run_demo = [], demonstration.run_demo

    def recorded(progress):
        found.append(run_demo(progress))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demonstration, "BUDGET", 1)
        patch.setattr(demonstration, "run_demo", recorded)
        result = CliRunner().invoke(main, ["demo", "--output", str(path)])
    assert result.exit_code == 0, result.output
    return result.output, path.read_text(encoding="utf-8"), found[0]


def test_demo_tells_the_choice_and_beats_the_baseline(demo):
    output, _, _ = demo
    words = " ".join(output.split())
    found = re.search(r"Test error ([\d.]+) MPa; the linear baseline has ([\d.]+) MPa", words)
    ours, linear = map(float, found.groups())
    assert ours < 0.5 * linear
    assert re.search(r"Chosen: the \w+ kernel with σ = [\d.]+, λ = \S+, out of 2,100", words)


def test_demo_report_is_self_contained(demo):
    _, page, _ = demo
    assert page.startswith("<!doctype html>")
    assert page.count('src="data:image/svg+xml;base64,') == 7
    links = re.findall(r'(?:src|href)="(?!data:)([^"]*)"|url\(([^)]*)\)|@import', page)
    assert links == []
    headings = ("The path and the chosen point", "Less is more", "What each column counts")
    for heading in (*headings, "CC BY 4.0"):
        assert heading in page


def test_demo_as_json(demo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demonstration, "run_demo", lambda _: demo[2])
    run = CliRunner().invoke(main, ["demo", "--json"])
    assert run.exit_code == 0
    outcome = json.loads(run.stdout)
    chosen = outcome["chosen"]
    errors = outcome["paths"][chosen["kernel"]]["errors"]
    assert np.min(errors) == chosen["error"]
    assert outcome["rows"] == {"train": 824, "test": 206}
    assert (tmp_path / "imparo-demo.html").exists()


def test_bad_output_is_one_sentence(tmp_path):
    path = tmp_path / "missing" / "report.html"
    result = CliRunner().invoke(main, ["demo", "-o", str(path)])
    assert result.exit_code == 4
    assert "there is no folder" in result.output
    assert "Traceback" not in result.output


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "report.html")])
    assert result.exit_code == 6
    assert "pip install 'imparo[plot]'" in result.output


# imparo advise


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    """A file with names, a column of text, two missing values, and the target in the middle."""
    rng = np.random.default_rng(0)
    area, age = rng.uniform(40, 200, 50).round(1), rng.integers(0, 60, 50).astype(str)
    price = (2 * area + 20 * np.sin(area / 20) + rng.normal(size=50)).round(2).astype(str)
    age[3], price[7] = "NA", ""
    lines = [f'{area[i]},"town, {i % 3}",{price[i]},{age[i]}' for i in range(50)]
    path = tmp_path_factory.mktemp("houses") / "houses.csv"
    path.write_text("\n".join(["area,place [name],price [k],age", *lines]), encoding="utf-8")
    return path


def run_advise(*arguments):
    return CliRunner().invoke(main, ["advise", *map(str, arguments)])


def advise_as_json(*arguments):
    result = run_advise(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_advise_tells_what_to_take():
    result = run_advise("concrete", "--sigma", "median")
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    assert "regression of 'compressive_strength': 1,030 rows, 8 columns" in words
    method, size = re.search(r"Take ([a-z ]+) with ([\d,]+) ", words).groups()
    table = [[cell.strip() for cell in line.split("│")] for line in result.output.splitlines()]
    rows = {cells[1]: cells[2:-1] for cells in table if len(cells) == 8}
    assert sorted(rows) == ["exact", "nystrom", "nytro", "random features"]
    assert rows[method][0] == size
    assert rows[method][-2:] == ["yes", "yes"]
    for what in ("SNR", "noise variance", "effective dimension", "capacity exponent", "exact"):
        assert what in words


def test_advise_on_a_file_with_names_text_and_holes(houses):
    result = run_advise(houses, "--target", "price [k]", "--kernel", "matern32")
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    # Brackets are part of a name, not of the layout.
    assert "regression of 'price [k]': 48 rows, 2 columns" in words
    assert "columns without numbers were left out: place [name]" in words
    assert "2 of 50 rows with missing values were left out" in words
    assert re.search(r"Kernel: Matern, σ = [\d.]+, order 1.5\.", words)


@pytest.mark.parametrize("in_a_process", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_advise_as_json(houses, tmp_path, in_a_process):
    path = tmp_path / "advice.html"
    arguments = [houses, "--target", "2", "--json", "--check", "-o", path, "--budget", "30"]
    if in_a_process:
        command = [sys.executable, "-m", "imparo", "advise", *map(str, arguments)]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    else:
        run = run_advise(*arguments)
        assert run.exit_code == 0, run.output

    def no_constant(name):
        raise AssertionError(f"{name} is not JSON")

    found = json.loads(run.stdout, parse_constant=no_constant)
    assert (found["n"], found["d"], found["task"]) == (48, 2, "regression")
    assert found["target"] == "price [k]"
    assert len(found["left_out"]) == 2
    assert found["explained"] > 0.9
    chosen = [o for o in found["options"] if o["method"] == found["method"]]
    assert [o["size"] for o in chosen] == [found["size"]]
    assert found["comparison"]["time_ratio"] > 0
    assert "Traceback" not in run.stderr
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count('src="data:image/svg+xml;base64,') == 2
    links = re.findall(r'(?:src|href)="(?!data:)([^"]*)"|url\(([^)]*)\)|@import', page)
    assert links == []
    for heading in ("You are here", "What each method would take", "Prediction and fit"):
        assert heading in page
    assert "budget=30" in page


def test_advise_makes_the_fit_if_asked(houses):
    result = run_advise(houses, "--target", "price [k]", "--check", "--sigma", "median")
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    assert re.search(r"time expected .* took .*: [\d.]+ times", words)


def test_advise_reads_every_kind_of_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)).round(3)
    rows = np.column_stack([X, X[:, 0] > 0])
    lines = ["\t".join(map(str, row)) for row in rows]
    np.savez(tmp_path / "a.npz", X=X, y=rows[:, 2])
    np.save(tmp_path / "a.npy", rows)
    (tmp_path / "a.tsv").write_text("\n".join(["u\tv\tw", *lines]), encoding="utf-8")
    (tmp_path / "a.txt").write_text("\n".join(lines).replace("\t", " "), encoding="utf-8")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    found = [
        advise_as_json(tmp_path / name, "--sigma", "median")
        for name in ("a.npz", "a.npy", "a.tsv", "a.txt", "a.csv.gz")
    ]
    assert [f["target"] for f in found] == ["y", "column 2", "w", "column 2", "column 2"]
    assert {f["task"] for f in found} == {"classification"}
    assert len({(f["n"], f["d"], f["penalty"], f["needed"], f["kernel"]) for f in found}) == 1


def test_advise_on_several_files_sparse_rows_and_standard_input(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(3)
    rows = np.column_stack([X, np.sin(X[:, 0]).round(4)])
    lines = [",".join(map(str, row)) for row in rows]
    (tmp_path / "parts").mkdir()
    for i, part in enumerate((lines[:20], lines[20:])):
        (tmp_path / "parts" / f"{i}.csv").write_text("\n".join(["u,v,w", *part]))
    sparse = [f"{row[2]} 1:{row[0]} 2:{row[1]}" for row in rows]
    (tmp_path / "rows.svm").write_text("\n".join(sparse))
    settings = ("--sigma", "2", "--no-scale")
    whole = CliRunner().invoke(
        main, ["advise", "-", *settings, "--json"], input="\n".join(["u,v,w", *lines])
    )
    folder, pattern, sparsely = (
        advise_as_json(tmp_path / name, *settings)
        for name in ("parts", "parts/*.csv", "rows.svm")
    )
    assert json.loads(whole.stdout)["penalty"] == folder["penalty"]
    for found in (folder, pattern, sparsely):
        assert (found["n"], found["d"], found["task"]) == (60, 2, "regression")
        assert found["penalty"] == pytest.approx(folder["penalty"])


def test_a_column_without_any_value_is_left_out(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{a},,{b}" for a, b in rng.normal(size=(40, 2))]
    (tmp_path / "a.csv").write_text("\n".join(["u,hole,w", *lines]))
    found = advise_as_json(tmp_path / "a.csv", "--sigma", "2")
    assert (found["n"], found["d"]) == (40, 1)
    assert found["left_out"] == ["columns without numbers were left out: hole"]


def test_columns_are_scaled_unless_not_wanted(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    np.save(tmp_path / "even.npy", np.column_stack([X, X[:, 1]]))
    np.save(tmp_path / "uneven.npy", np.column_stack([X * [1e4, 1], X[:, 1]]))
    even, uneven = (
        advise_as_json(tmp_path / f"{name}.npy", "--sigma", 2) for name in ("even", "uneven")
    )
    assert uneven["penalty"] == pytest.approx(even["penalty"])
    assert uneven["notes"] == even["notes"] == []
    plain = advise_as_json(tmp_path / "uneven.npy", "--no-scale", "--sigma", 2)
    assert any("StandardScaler" in note for note in plain["notes"])


@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_advise_on_constant_columns(kernel, tmp_path):
    y = np.random.default_rng(0).normal(size=30)
    np.save(tmp_path / "rows.npy", np.column_stack([np.ones((30, 2)), y]))
    found = advise_as_json(tmp_path / "rows.npy", "--kernel", kernel)
    assert found["explained"] == 0
    assert any("hardly any of the variance" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["nothing.csv"], "there is no file nothing.csv", 4),
        (["nothing"], "there is no data set 'nothing'", 3),
        (["{houses}", "--target", "cost"], "there is no column 'cost' among", 3),
        (["{houses}", "--target", "1", "--task", "regression"], "y holds text", 3),
        (["concrete", "--target", "watr"], "did you mean 'water'", 3),
        (["concrete", "--kernel", "rbf"], "kernel='rbf' is not known; give one of", 3),
        (["concrete", "--kernel", "precomputed"], "give another kernel", 3),
        (["concrete", "--sigma", "wide"], "sigma='wide' is not known", 3),
        (["concrete", "--sigma", "-1"], "sigma must be a positive number", 3),
        (["concrete", "--budget", "nan"], "budget=nan must be a number of seconds", 3),
        (["concrete", "-o", "nowhere/advice.html"], "there is no folder nowhere", 4),
        (["{houses}", "--target", "0", "-o", 300 * "x" + ".html"], "too long", 4),
        (["{houses}", "--target", "0", "--check", "--memory", "1kB"], "raise memory", 5),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else str(value),
)
def test_advise_answers_mistakes_in_one_sentence(arguments, message, code, houses):
    result = run_advise(*(argument.format(houses=houses) for argument in arguments))
    assert result.exit_code == code
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n", b"a,b\n1\n", b"\xff", b"a,b\nx,y\n"], ids=repr
)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.npy", "a.npz", "a.xls"])
def test_advise_on_files_that_are_no_table(content, name, tmp_path):
    (tmp_path / name).write_bytes(content)
    result = run_advise(tmp_path / name)
    assert result.exit_code == 3
    assert isinstance(result.exception, SystemExit)
    assert re.fullmatch("Error: .*\n", result.stderr)
    assert "pickle" not in result.output


@pytest.mark.parametrize(
    "arguments", [[], ["concrete", "--budget", "0"], ["concrete", "--task", "x"], ["a", "b"]]
)
def test_advise_shows_its_usage(arguments):
    result = run_advise(*arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.output


def test_advise_helps():
    lines = run_advise("-h").output.splitlines()
    # The examples can be copied line by line.
    assert "  imparo advise concrete" in lines
    assert not any("\\b" in line for line in lines)


def test_advise_without_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    result = run_advise("concrete", "-o", tmp_path / "advice.html")
    assert result.exit_code == 6
    assert "pip install 'imparo[plot]'" in result.output


def test_version_and_help():
    assert "imparo, version" in CliRunner().invoke(main, ["--version"]).output
    for command in ("demo", "advise"):
        assert command in CliRunner().invoke(main, ["-h"]).output


def test_the_data_are_the_published_ones():
    concrete = load_concrete()
    assert concrete.X.shape == (1030, 8)
    assert not np.isnan(concrete.X).any()
    # First row, and range of strength, as published by Yeh.
    assert concrete.X[0].tolist() == [540, 0, 0, 162, 2.5, 1040, 676, 28]
    assert (concrete.y.min(), concrete.y.max()) == (2.33, 82.6)


@pytest.mark.parametrize("command", ["advise", "fit"])
def test_an_amount_of_memory_that_is_none_is_wrong_usage(command):
    result = CliRunner().invoke(main, [command, "concrete", "--memory", "lots"])
    assert result.exit_code == 2
    assert "memory='lots' is not an amount of memory" in result.stderr
