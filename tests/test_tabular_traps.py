"""Tables that once went wrong: sparse indices, names of classes, pipes, interrupts, memory."""

import gzip
import json
import os
import threading

import numpy as np
import pytest
from click.testing import CliRunner

from imparo.cli import main
from imparo.data import Frame
from imparo.data.readers.in_memory import ArrayRows
from imparo.errors import MemoryBudgetError
from imparo.tabular import Keeper, fit_table
from imparo.tabular.curves import learning_curve
from imparo.tabular.gathering import gather
from imparo.tabular.judging import Judge
from imparo.tabular.roles import Roles
from imparo.tabular.splitting import make_split

QUICK = ["--method", "nystrom", "--centers", "50"]


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def linear(tmp_path):
    """A model of y = 3x + z from a CSV file."""
    rng = np.random.default_rng(0)
    lines = [
        "x,z,y",
        *(f"{x:.4f},{z:.4f},{3 * x + z:.4f}" for x, z in rng.normal(size=(90, 2))),
    ]
    model = tmp_path / "model.imparo"
    run("fit", write(tmp_path / "t.csv", lines), *QUICK, "-o", model)
    return model


def test_the_first_index_of_a_sparse_file_stays_with_the_model(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{3 * x + z:.4f} 0:{x:.4f} 1:{z:.4f}" for x, z in rng.normal(size=(90, 2))]
    run("fit", write(tmp_path / "t.svm", lines), *QUICK, "-o", tmp_path / "m.imparo")
    answers = []
    for first in ("0 0:0 1:2", "0 1:2"):
        run("predict", tmp_path / "m.imparo", write(tmp_path / "n.svm", [first, "0 1:1"]),
            "-o", tmp_path / "out.npy")  # fmt: skip
        answers.append(np.load(tmp_path / "out.npy").ravel())
    np.testing.assert_allclose(answers[0], answers[1])
    assert answers[0][0] == pytest.approx(2, abs=0.5)


def test_outputs_keep_no_block_in_memory():
    whole = np.ones((100, 5))
    rows = ArrayRows(Frame.of_matrices([(list("abcde"), whole)]))
    found = gather(rows, Roles(["a", "b"], ["e"], "d"), 10**9, lambda: None)
    assert not np.shares_memory(found.y, whole)
    assert not np.shares_memory(found.weight, whole)


def test_a_missing_target_among_the_first_rows_leaves_no_folder(tmp_path):
    frame = Frame({"x": np.arange(20.0), "y": np.arange(20.0) ** 2})
    wrong = frame.with_column("y", np.where(np.arange(20) == 3, np.nan, frame["y"]))
    with Keeper(tmp_path / "kept", "y", features=10) as keeper:
        with pytest.raises(ValueError, match="row 3: the target 'y' is missing"):
            keeper.learn(wrong)
        assert keeper.learn(frame) == 20


def test_a_learner_of_one_class_so_far_answers(tmp_path):
    lines = [json.dumps({"x": i, "y": "mug"}) for i in range(30)]
    data = write(tmp_path / "one.jsonl", lines)
    run("learn", tmp_path / "kept", data, "-t", "y", "--task", "classification")
    assert run("predict", tmp_path / "kept", data).output.split()[1:3] == ["mug", "mug"]
    assert json.loads(run("evaluate", tmp_path / "kept", data, "--json").stdout)["rows"] == 30


def test_names_of_classes_that_look_like_numbers_are_kept(tmp_path):
    names = ["1000001", "1000002", "A123", "007"]
    lines = ["x,code", *(f"{i % 4},{names[i % 4]}" for i in range(120))]
    model = tmp_path / "m.imparo"
    run("fit", write(tmp_path / "t.csv", lines), *QUICK, "-o", model)
    some = ["x,code", *(f"{i % 2},{names[i % 2]}" for i in range(20)), "3,007"]
    judged = run("evaluate", model, write(tmp_path / "n.csv", some), "--json")
    assert json.loads(judged.stdout)["metrics"]["error"] == 0


def test_a_class_called_none_is_learned(tmp_path):
    lines = ["x,y", *(f"{i},{['none', 'some'][i % 2]}" for i in range(200))]
    output = run("learn", tmp_path / "kept", write(tmp_path / "t.csv", lines), "-t", "y").output
    assert "200 in all" in output


def test_a_named_pipe_is_read_once(linear, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("x,z\n1,2\n0,1\n"))
    writer.start()
    assert len(run("predict", linear, pipe).output.split()) == 3
    writer.join()


def test_what_is_wrong_with_standard_input_is_told(linear):
    result = CliRunner().invoke(main, ["predict", str(linear), "-"], input="x\n1\n2\n")
    assert result.exit_code == 3
    assert "column" in result.stderr


def test_without_rows_to_predict_the_old_file_stays(linear, tmp_path):
    output = write(tmp_path / "out.csv", ["prediction", "1", "2"])
    bad = write(tmp_path / "n.jsonl", ["{", "{"])
    run("predict", linear, bad, "--bad-rows", "skip", "-o", output, code=3)
    assert output.read_text() == "prediction\n1\n2\n"


def test_a_text_column_may_be_empty_or_digits_in_new_rows(tmp_path):
    lines = ["x,city,y", *(f"{i},{['Rome', '7'][i % 2]},{i}.5" for i in range(60))]
    model = tmp_path / "m.imparo"
    run("fit", write(tmp_path / "t.csv", lines), *QUICK, "--text", "city", "-o", model)
    for new in (["x,city", "1,", "2,"], ["x,city", "1,7", "2,7"]):
        assert len(run("predict", model, write(tmp_path / "n.csv", new)).output.split()) == 3


def test_bad_rows_of_a_compressed_file_are_skipped_by_learn(tmp_path):
    lines = ["x,y", *(f"{i},{i}.5" for i in range(300))]
    lines[200] = "1,2,3"
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    asked = [tmp_path / "kept", tmp_path / "t.csv.gz", "-t", "y", "--features", "10"]
    assert "line 201" in run("learn", *asked, code=3).stderr
    result = run("learn", *asked, "--bad-rows", "skip")
    assert "299 in all" in result.output
    assert "Left out 1 bad rows" in result.output


def test_an_interrupt_during_the_test_keeps_the_model(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("imparo.tabular.fitting._judged", interrupted)
    fitted = fit_table("concrete", method="nystrom", n_centers=50)
    assert fitted.interrupted
    assert fitted.evaluation is None
    assert fitted.model.predict(np.ones((2, 8))).shape == (2,)


def test_identifiers_that_do_not_fit_are_named(monkeypatch):
    monkeypatch.setattr("imparo.tabular.gathering._SHARE", 1e-9)
    monkeypatch.setattr("imparo.tabular.scratch._MOST_TEXTS", 50)
    rows = Frame(
        {"id": [f"n{i}" for i in range(100)], "x": np.arange(100.0), "y": np.ones(100)}
    )
    with pytest.raises(MemoryBudgetError, match="'id' holds more than 50 different texts"):
        fit_table(rows, "y", method="nystrom", n_centers=5)


def test_files_by_relative_and_absolute_paths_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},{i}.5" for i in range(40)]
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name, ["x,y", *lines])
    both = ["a.csv", str(tmp_path / "b.csv")]
    told = fit_table(both, "y", method="nystrom", n_centers=9).account.data
    assert told == f"2 files in {tmp_path} (csv)"


def test_rows_of_one_time_are_on_one_side():
    times = np.repeat(np.arange(10.0), 30)
    rows = ArrayRows(Frame({"x": times, "t": times, "y": times}))
    found = gather(rows, Roles(["x"], ["y"], None, None, "t"), 10**9, lambda: None)
    split = make_split(found, found.y, "regression", "time", 0.25, 0)
    assert found.time[split.fit].max() < found.time[split.test].min()
    assert len(split.test) == 90


def test_the_learning_curve_stays_within_memory():
    X = np.random.default_rng(0).normal(size=(800, 300))
    frame = Frame({f"x{j}": X[:, j] for j in range(300)} | {"y": X[:, 0]})
    model = fit_table(frame, "y", method="nystrom", n_centers=20, sigma=20.0).model
    memory = 3 * 8 * 300 * 250
    curve = learning_curve(model, X, X[:, 0], None, X, X[:, 0], 60, memory, 0)
    assert [point["rows"] for point in curve] == [50, 100, 200]


def test_nothing_that_is_read_is_overwritten(linear, tmp_path):
    data = tmp_path / "t.csv"
    before = data.read_text()
    for command in (
        ["fit", data, *QUICK, "-o", data],
        ["fit", data, *QUICK, "-r", data],
        ["fit", data, *QUICK, "-o", tmp_path / "a.html", "-r", tmp_path / "a.html"],
        ["predict", linear, data, "-o", data],
        ["predict", linear, data, "-o", linear],
    ):
        assert "would overwrite" in run(*command, code=2).stderr
    assert data.read_text() == before


def test_two_numbers_that_are_not_whole_are_no_classes(tmp_path):
    lines = ["x,y", *(f"{i},{[0.5, 1.5][i % 2]}" for i in range(60))]
    data = write(tmp_path / "t.csv", lines)
    account = json.loads(run("fit", data, *QUICK, "--json").stdout)
    assert account["task"] == "regression"
    refused = run("fit", data, *QUICK, "--task", "classification", code=3)
    assert "numbers of classes are whole" in refused.stderr


def test_the_simplest_model_is_wrong_where_its_class_does_not_occur():
    judge = Judge("classification", ["y"], ["a", "b"], "a", "rows")
    judge.add(np.array(["b", "b"]), np.array(["b", "b"]))
    assert judge.finished().baseline == {"error": 1.0, "balanced_error": 1.0}


def test_rows_without_target_are_skipped_with_other_gaps(tmp_path):
    lines = ["x,y", *(f"{i},{'' if i % 4 == 0 else i}" for i in range(80))]
    data = write(tmp_path / "t.csv", lines)
    assert "the target 'y' is missing" in run("fit", data, *QUICK, code=3).stderr
    account = json.loads(run("fit", data, *QUICK, "--missing", "skip", "--json").stdout)
    assert (account["rows_missing"], account["rows_bad"]) == (20, 0)


def test_a_folder_of_a_year_is_not_the_target_by_default(tmp_path):
    for year in (2020, 2021):
        folder = tmp_path / "hive" / f"year={year}"
        folder.mkdir(parents=True)
        write(folder / "a.csv", ["x,price", *(f"{i},{i}.5" for i in range(40))])
    account = json.loads(run("fit", tmp_path / "hive", *QUICK, "--json").stdout)
    assert account["target"] == ["price"]


def test_predictions_are_lines_of_json_if_asked(linear, tmp_path):
    output = run("predict", linear, tmp_path / "t.csv", "--json").stdout
    assert len([json.loads(line)["prediction"] for line in output.splitlines()]) == 90


def test_targets_may_be_named_one_by_one(tmp_path):
    lines = ["x,u,v", *(f"{i},{i}.5,{2 * i}.5" for i in range(60))]
    data = write(tmp_path / "t.csv", lines)
    account = json.loads(run("fit", data, *QUICK, "-t", "u", "-t", "v", "--json").stdout)
    assert account["target"] == ["u", "v"]


def test_a_pattern_without_files_is_an_error_to_learn_from(tmp_path):
    assert "no file" in run("learn", tmp_path / "k", tmp_path / "z*.csv", code=4).stderr


def test_names_in_capitals_are_suggested(linear, tmp_path):
    assert "did you mean 'x'" in run("fit", tmp_path / "t.csv", "-t", "X", code=3).stderr


def test_a_class_of_the_test_alone_is_told(tmp_path):
    lines = ["x,y", *(f"{i},{'ab'[i % 2]}" for i in range(60)), "7,rare"]
    data = write(tmp_path / "t.csv", lines)
    for seed in range(20):
        account = json.loads(run("fit", data, *QUICK, "--seed", seed, "--json").stdout)
        if account["evaluation"]["classes"][-1] == "rare" and len(account["warnings"]):
            break
    assert any("rare classes: 'rare'" in sentence for sentence in account["warnings"])
