"""Fit, predict and evaluate on every format, through the command line."""

import json
import os
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import imparo as library
from file_tools import FORMATS, imparo, rows, write
from imparo.cli import main

pytest.importorskip("pyarrow")
pytest.importorskip("h5py")

QUICK = ["--method", "nystrom", "--centers", "60"]
#: Formats that are fitted in a process of their own, too: others would show nothing more.
PROCESSES = (".csv", ".jsonl", ".parquet", ".libsvm", ".npz", ".h5")
CASES = [(kind, False) for kind in FORMATS] + [
    pytest.param(kind, True, marks=() if kind == ".parquet" else pytest.mark.slow)
    for kind in PROCESSES
]


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The model of the table as a CSV file, and its folder."""
    folder = tmp_path_factory.mktemp("fitted")
    write(folder / "train.csv", *rows())
    write(folder / "new.csv", *rows(50, 1))
    run("fit", folder / "train.csv", *QUICK, "-o", folder / "model.imparo")
    return folder


@pytest.mark.parametrize(("kind", "in_a_process"), CASES)
def test_every_format_gives_the_same_model(kind, in_a_process, tmp_path, fitted):
    train, new = (
        write(tmp_path / f"t{kind}", *rows()),
        write(tmp_path / f"n{kind}", *rows(50, 1)),
    )
    model = tmp_path / "model.imparo"
    command = ["fit", train, *QUICK, "-o", model, "--json"]
    if in_a_process:
        done = imparo(*command)
        assert done.returncode == 0, done.stderr
    else:
        done = run(*command)
    account = json.loads(done.stdout)
    assert account["rows_read"] == 200
    assert account["task"] == "regression"
    run("predict", model, new, "-o", tmp_path / "out.npy")
    judged = json.loads(run("evaluate", model, new, "--json").stdout)
    found = np.load(tmp_path / "out.npy").ravel()
    X, y = rows(50, 1)
    assert judged["metrics"]["rmse"] == pytest.approx(np.sqrt(np.mean((found - y) ** 2)))
    if "libsvm" in kind:  # sparse rows are scaled and not centered
        assert judged["metrics"]["rmse"] < 0.1
    else:
        same = library.load(fitted / "model.imparo")
        np.testing.assert_allclose(found, same.predict(X), rtol=1e-9)


def test_a_folder_and_a_pattern_are_their_files_together(tmp_path, fitted):
    X, y = rows()
    for part in range(4):
        some = slice(50 * part, 50 * part + 50)
        write(tmp_path / f"part-{part}.parquet", X[some], y[some])
    for source in (tmp_path, tmp_path / "part-*.parquet"):
        run("fit", source, "-t", "price", *QUICK, "-o", tmp_path / "model.imparo")
        one, other = (library.load(f / "model.imparo") for f in (tmp_path, fitted))
        np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-9)


def test_standard_input_is_read_and_standard_output_written(fitted):
    lines = (fitted / "new.csv").read_text()
    done = imparo("predict", fitted / "model.imparo", "-", input=lines)
    assert done.returncode == 0, done.stderr
    header, *cells = done.stdout.split()
    assert header == "prediction"
    model = library.load(fitted / "model.imparo")
    np.testing.assert_allclose(np.array(cells, float), model.predict(rows(50, 1)[0]))


def test_classes_get_probabilities_and_columns_go_through(tmp_path):
    write(tmp_path / "train.csv", *rows(300, 0, classes=True))
    write(tmp_path / "new.csv", *rows(60, 1, classes=True))
    model, out = tmp_path / "model.imparo", tmp_path / "out.jsonl"
    text = run("fit", tmp_path / "train.csv", *QUICK, "-o", model).output
    assert "Classification of price" in text
    asked = ["--probabilities", "--keep", "price,length", "-o", out]
    run("predict", model, tmp_path / "new.csv", *asked)
    table = [json.loads(line) for line in out.read_text().splitlines()]
    assert list(table[0]) == ["price", "length", "prediction", "P(cheap)", "P(dear)"]
    for row in table:
        assert row["P(cheap)"] + row["P(dear)"] == pytest.approx(1)
        likelier = "dear" if row["P(dear)"] > 0.5 else "cheap"
        assert row["prediction"] == likelier
    wrong = np.mean([row["prediction"] != row["price"] for row in table])
    judged = json.loads(run("evaluate", model, tmp_path / "new.csv", "--json").stdout)
    assert judged["metrics"]["error"] == pytest.approx(wrong)


def test_a_search_within_a_budget_says_what_it_did(tmp_path):
    write(tmp_path / "train.csv", *rows(400))
    reports = [tmp_path / f"report.{kind}" for kind in ("html", "json", "png", "svg")]
    flags = [flag for path in reports for flag in ("--report", path)]
    output = run("fit", tmp_path / "train.csv", "--budget", "1", *flags).output
    words = " ".join(output.split())
    assert "Regression of price: 400 rows, 3 columns" in words
    assert "80 of 400 rows, drawn at random (seed 0), were kept for the test" in words
    assert "root mean squared error" in words
    assert all(path.stat().st_size > 1000 for path in reports)
    told = json.loads(reports[1].read_text())
    assert told["cost"]["budget"] == 1
    assert told["trials"]
    assert told["command"].startswith("imparo")


def test_columns_are_prepared_as_told(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["city,size,when,code,price"]
    for i in range(300):
        size = "" if i % 10 == 0 else f"{rng.uniform():.4f}"
        day = f"2024-{1 + i % 12:02d}-15"
        lines.append(f"{['Rome', 'Oslo'][i % 2]},{size},{day},{i % 3},{i % 2 + i % 3}.5")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    read = ["--text", "code", "--task", "regression"]
    output = run("fit", tmp_path / "t.csv", *QUICK, *read, "--json").stdout
    account = json.loads(output)
    kinds = {column["name"]: column["kind"] for column in account["columns"]}
    assert kinds == {"city": "text", "size": "number", "when": "date", "code": "text",
                     "price": "number"}  # fmt: skip
    assert account["evaluation"]["metrics"]["r2"] > 0.99
    skipped = run(
        "fit", tmp_path / "t.csv", *QUICK, *read, "--missing", "skip", "--json"
    ).stdout
    assert json.loads(skipped)["rows_missing"] == 30
    refused = run("fit", tmp_path / "t.csv", *QUICK, "--missing", "refuse", code=3)
    assert "has no value in column 'size'" in refused.stderr


def test_groups_and_times_are_split_as_told(tmp_path):
    lines = ["x,who,when,y"]
    lines += [f"{i / 100},{i % 9},{1000 - i},{i % 7}.5" for i in range(180)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    by_group = json.loads(run("fit", tmp_path / "t.csv", *QUICK, "--group", "who",
                              "--json").stdout)  # fmt: skip
    assert "groups" in by_group["split"]
    by_time = json.loads(run("fit", tmp_path / "t.csv", *QUICK, "--time", "when",
                             "--json").stdout)  # fmt: skip
    assert "by time" in by_time["split"]
    # The largest times are the first rows, which have the smallest x.
    assert by_time["rows_tested"] == 36


def test_a_fit_beyond_memory_is_that_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("imparo.tabular.gathering._SHARE", 1e-9)
    X, y = rows(500)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("big.csv", "big.libsvm"):
        write(tmp_path / name, X, y)
        account = json.loads(run("fit", tmp_path / name, *QUICK, "--json").stdout)
        assert account["cost"]["scratch_bytes"] > 0
        assert account["evaluation"]["metrics"]["r2"] > 0.99
    assert not list(tmp_path.glob("imparo-*"))
    message = run("fit", tmp_path / "big.csv", "--method", "exact", code=5).stderr
    assert "needs all rows in memory" in message


def test_a_model_finds_nameless_columns_by_place(tmp_path, fitted):
    X = rows(50, 1)[0]
    np.save(tmp_path / "x.npy", X)
    run("predict", fitted / "model.imparo", tmp_path / "x.npy", "-o", tmp_path / "out.npy")
    expected = library.load(fitted / "model.imparo").predict(X)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy").ravel(), expected)


def test_bad_rows_are_skipped_if_told_and_counted(tmp_path):
    path = write(tmp_path / "t.csv", *rows())
    lines = path.read_text().splitlines()
    lines[7], lines[30] = "1,2", "1,2,x,4"
    path.write_text("\n".join(lines))
    message = run("fit", path, *QUICK, code=3).stderr
    assert "t.csv, line 8" in message
    account = json.loads(run("fit", path, *QUICK, "--bad-rows", "skip", "--json").stdout)
    assert (account["rows_read"], account["rows_bad"]) == (198, 2)


def test_output_that_nobody_reads_ends_quietly(fitted):
    command = f"{sys.executable} -m imparo predict {fitted}/model.imparo {fitted}/new.csv"
    pipe = os.popen(f"({command}; echo $? >&2) 2>&1 | head -1")
    assert pipe.read().strip() in ("prediction", "0", "141")
    pipe.close()
