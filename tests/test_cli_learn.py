"""``imparo learn`` in one process: what it prints, what it refuses, with which code."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from imparo.cli.learn import learn
from imparo.tabular.following import open_kept


def rows(n, seed=0, target="price"):
    rng = np.random.default_rng(seed)
    size, age = rng.uniform(20, 200, n).round(1), rng.integers(0, 90, n)
    city = rng.choice(["Rome", "Oslo", "Bonn"], n)
    price = (3 * size - age + 40 * (city == "Rome") + rng.normal(size=n)).round(2)
    return pd.DataFrame({"size": size, "age": age, "city": city, target: price})


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "houses.csv"
    rows(300).to_csv(path, index=False)
    return path


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(learn, [*map(str, arguments), "--features", "30"], input=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_file_is_learned_told_and_not_learned_again(tmp_path, csv):
    first = run(tmp_path / "kept", csv, "--target", "price", "--warmup", 100)
    assert "Regression of 'price' by 3 columns, decided by the first 100 rows." in first.stdout
    assert "300 rows, 300 in all, RMSE" in first.stdout
    again = run(tmp_path / "kept", csv)
    assert "Going on after 300 rows" in again.stdout
    assert "0 rows, 300 in all" in again.stdout
    model = open_kept(tmp_path / "kept")
    assert (model.task, model.outputs, model.columns) == (
        "regression", ["price"], ["size", "age", "city"]
    )  # fmt: skip
    test = rows(100, seed=1)
    error = model.predict(test) - test["price"]
    assert np.sqrt(np.mean(error**2)) < 0.5 * test["price"].std()


def test_json_lines_tell_rows_errors_and_the_end(tmp_path, csv):
    said = lines(
        run(
            tmp_path / "kept", csv, "--target", "price", "--warmup", 100, "--json",
            "--block", 20, "--every", 40, "--stop-after", 200,
        )
    )  # fmt: skip
    assert [line["rows"] for line in said] == [40, 80, 120, 160, 200, 200]
    assert said[-1]["ended"] == "enough"
    assert said[-1]["number"] == 10
    assert said[1]["error"] is None  # these rows decided on scales
    assert 0 < said[-1]["recent"] < 200
    rest = lines(run(tmp_path / "kept", csv, "--json"))
    assert (rest[-1]["rows"], rest[-1]["ended"]) == (300, "end")


def test_classes_are_found_and_their_error_is_a_share(tmp_path):
    data = rows(300).drop(columns="price")
    data["dear"] = np.where(data["size"] > 110, "yes", "no")
    data.to_csv(tmp_path / "a.csv", index=False)
    said = run(tmp_path / "kept", tmp_path / "a.csv", "--target", "dear", "--warmup", 100)
    assert "Classification of 'dear'" in said.stdout
    assert "error" in said.stdout
    assert "%" in said.stdout
    model = open_kept(tmp_path / "kept")
    assert model.classes == ["no", "yes"]
    assert model.predict_proba(data[:4]).sum(axis=1) == pytest.approx(np.ones(4))


def test_sparse_rows_are_learned_line_by_line(tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "a.svm"
    with open(file, "w") as out:
        for _ in range(200):
            j = rng.integers(1, 9, 3)
            cells = " ".join(f"{k}:{rng.normal():.3f}" for k in sorted(set(j.tolist())))
            out.write(f"{int(3 in j)} {cells}\n")
    run(tmp_path / "kept", file, "--warmup", 80, "--stop-after", 150)
    said = run(tmp_path / "kept", file)
    assert "50 rows, 200 in all" in said.stdout
    assert open_kept(tmp_path / "kept").classes == [0, 1]


REFUSED = {
    "no target": ("name the column to learn", 3),
    "wrong target": ("there is no column 'prize'", 3),
    "no file": ("there is no file or folder", 4),
    "other target": ("learns 'price', not 'age'", 3),
    "other features": ("was begun with features 30, not 31", 3),
    "bad row": ("houses.csv, line 302", 3),
    "cut file": ("was cut to", 3),
    "no column": ("'age'", 3),
    "whole file": ("cannot be followed", 3),
    "wrong sync": ("is neither a number of at least 0 nor always or never", 2),
    "not ours": ("knows no columns", 3),
    "damaged": ("table.imparo", 7),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_cannot_be_done_is_one_sentence_and_a_code(tmp_path, csv, case):
    words, code = REFUSED[case]
    kept, given = tmp_path / "kept", {"no target": [], "wrong target": ["--target", "prize"]}
    if case not in ("no target", "wrong target", "not ours"):
        run(kept, csv, "--target", "price", "--warmup", 50)
    options = given.get(case, [])
    if case == "no file":
        csv = tmp_path / "houses.tsv"
    elif case == "other target":
        options = ["--target", "age"]
    elif case == "other features":
        options = ["--features", 31]
    elif case == "bad row":
        with open(csv, "a") as file:
            file.write("1,2\n")
    elif case == "cut file":
        csv.write_text(csv.read_text()[:500])
    elif case == "no column":
        csv = tmp_path / "less.csv"
        rows(9).drop(columns="age").to_csv(csv, index=False)
    elif case == "whole file":
        csv, options = tmp_path / "a.npy", ["--follow"]
        np.save(csv, np.zeros((3, 3)))
    elif case == "wrong sync":
        options = ["--sync", "sometimes"]
    elif case == "not ours":
        kept.mkdir()
        (kept / "snapshot-1").touch()
    elif case == "damaged":
        (kept / "table.imparo").write_bytes(b"x" * 100)
    said = CliRunner().invoke(
        learn, ["--features", "30", str(kept), str(csv), *map(str, options)]
    )
    assert said.exit_code == code, said.output
    assert words in said.stderr
    assert "Traceback" not in said.output
    if code != 2:
        assert len(said.stderr.strip().splitlines()) == 1


def test_errors_are_json_too_and_bad_rows_can_be_skipped(tmp_path, csv):
    with open(csv, "a") as file:
        file.write("1,2\n,3,Rome,7\n5,6,Rome,\n")
    said = run(tmp_path / "kept", csv, "--target", "price", "--json", code=3)
    assert lines(said)[-1]["code"] == 3
    said = run(tmp_path / "kept", csv, "--bad-rows", "skip", "--json")
    assert lines(said)[-1] | {"error": 0, "recent": 0} == {
        "rows": 301, "error": 0, "recent": 0, "number": 3, "ended": "end", "bad_rows": 2
    }  # fmt: skip
    again = run(tmp_path / "kept", csv, "--bad-rows", "skip")
    assert "bad rows" not in again.stdout  # they are behind


def test_predictions_before_any_row_are_refused_in_a_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    said = run(tmp_path / "kept", tmp_path / "empty", "--target", "y")
    assert "no row was learned" in said.stdout
    assert not (tmp_path / "kept").exists()
