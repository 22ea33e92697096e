"""Files that cannot be used: one clear sentence and a code, from a process of its own."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from file_tools import imparo, rows, text, write
from imparo.cli import main

pytest.importorskip("pyarrow")

QUICK = ["--method", "nystrom", "--centers", "60"]
X, Y = rows(120)
GOOD = text(X, Y)


def truncated_parquet(path):
    write(path, X, Y)
    path.write_bytes(path.read_bytes()[:-40])


def lines(path, change):
    table = GOOD.splitlines()
    change(table)
    path.write_text("\n".join(table))


def set_line(number, content):
    return lambda table: table.__setitem__(number - 1, content)


#: What the file is called, how it is written, further arguments, the code, and the words.
BAD = {
    "missing column": (
        "t.csv", lambda p: p.write_text(GOOD), ["-t", "cost"], 3, "no column 'cost'"),
    "wrong delimiter": (
        "t.csv", lambda p: p.write_text(GOOD), ["--delimiter", ";"], 3, "a comma"),
    "mixed types": (
        "t.csv", lambda p: lines(p, set_line(50, "1,2,red,4")), [], 3, "line 50"),
    "truncated Parquet": ("t.parquet", truncated_parquet, [], 3, "t.parquet"),
    "empty": ("t.csv", lambda p: p.write_text(""), [], 3, "empty"),
    "binary": ("t.csv", lambda p: p.write_bytes(bytes(range(256)) * 8), [], 3, "not text"),
    "quotes": (
        "t.csv", lambda p: lines(p, set_line(9, '1,"2,3,4')), [], 3, "line 9"),
    "NaN target": (
        "t.csv", lambda p: lines(p, set_line(9, "1,2,3,")), [], 3,
        "the target 'price' is missing"),
    "one class": (
        "t.csv", lambda p: p.write_text(text(X, ["a"] * 120)), [], 3, "one class only"),
    "huge integers": (
        "t.csv", lambda p: lines(p, set_line(9, f"{10**25},2,3,4")), [], 3, "line 9"),
    "non-UTF-8": (
        "t.csv", lambda p: p.write_bytes(text(X, ["caf\xe9", "t\xe9"] * 60).encode("latin-1")),
        [], 3, "encoding"),
    "duplicated header": (
        "t.csv", lambda p: lines(p, set_line(1, "a,b,a,price")), [], 3, "'a'"),
    "wrong sparse index": (
        "t.libsvm", lambda p: p.write_text("1 1:2 3:4\n2 3:1 2:5\n"), [], 3, "line 2"),
    "no file": ("t.csv", lambda p: None, [], 4, "there is no file"),
    "folder without files": ("t", lambda p: p.mkdir(), [], 3, "no file"),
    "unknown format": ("t.xlsx", lambda p: p.write_bytes(b"PK"), [], 3, "CSV"),
    "pickled archive": (
        "t.npy", lambda p: np.save(p, np.array([{}, 1], object)), [], 3, "t.npy"),
    "text for a number": (
        "t.csv", lambda p: p.write_text(text(X, ["a", "b"] * 60)), ["--task", "regression"], 3,
        "holds text"),
    "wrong JSON": ("t.jsonl", lambda p: p.write_text('{"a": 1, "y": 2}\n{"a": 1,\n'), [], 3,
                   "line 2"),
    "infinite input": (
        "t.csv", lambda p: lines(p, set_line(9, "inf,2,3,4")), [], 3, "line 9"),
}  # fmt: skip


#: Those that need no process of their own to be seen; of the others one is enough.
NO_PROCESS = ("no file", "folder without files", "unknown format", "pickled archive",
              "text for a number", "wrong JSON", "infinite input")  # fmt: skip
CASES = [(kind, False) for kind in BAD] + [
    pytest.param(kind, True, marks=() if kind == "truncated Parquet" else pytest.mark.slow)
    for kind in BAD
    if kind not in NO_PROCESS
]


@pytest.mark.parametrize(("kind", "in_a_process"), CASES)
def test_a_bad_file_is_one_sentence(kind, in_a_process, tmp_path):
    name, make, arguments, code, words = BAD[kind]
    path = tmp_path / name
    make(path)
    output = tmp_path / "model.imparo"
    command = ["fit", str(path), *QUICK, *arguments, "-o", str(output), "--json"]
    if in_a_process:
        done = imparo(*command)
        assert done.returncode == code, done.stderr + done.stdout
    else:
        done = CliRunner().invoke(main, command)
        assert done.exit_code == code, done.output
    sentence = done.stderr.strip()
    assert sentence.startswith("Error: ")
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    assert words in sentence
    assert json.loads(done.stdout) == {"error": sentence.removeprefix("Error: "), "code": code}
    assert not output.exists()


def limited():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path):
    path = write(tmp_path / "t.csv", X, Y)
    done = imparo("fit", path, *QUICK, "-o", tmp_path / "model.imparo", preexec_fn=limited)
    assert done.returncode == 4, done.stderr
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_predictions_to_a_full_device_are_one_sentence(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    path = write(tmp_path / "t.csv", X, Y)
    command = ["fit", str(path), *QUICK, "-o", str(tmp_path / "model.imparo")]
    assert CliRunner().invoke(main, command).exit_code == 0
    done = imparo("predict", tmp_path / "model.imparo", path, "-o", "/dev/full")
    assert done.returncode == 4
    assert "the disk is full" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_interrupted_search_keeps_the_best_model_so_far(tmp_path):
    path, output = write(tmp_path / "t.csv", *rows(3000)), tmp_path / "model.imparo"
    command = [sys.executable, "-m", "imparo", "fit", str(path), "-o", str(output), "--json"]
    with subprocess.Popen(
        [*command, "--budget", "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(6)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "nterrupted" in err
    assert "Traceback" not in err
    assert output.exists() == bool(out.strip().startswith('{"data"'))


def test_damaged_and_foreign_models_are_one_sentence(tmp_path):
    path = write(tmp_path / "t.csv", X, Y)
    (tmp_path / "model.imparo").write_bytes(b"nonsense")
    done = imparo("predict", tmp_path / "model.imparo", path)
    assert done.returncode == 7
    assert done.stderr.count("\n") == 1
