"""The command line as a person uses it."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from imparo.cli import main
from imparo.data import load_concrete


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "report.html"
    result = CliRunner().invoke(main, ["demo", "--output", str(path)])
    assert result.exit_code == 0, result.output
    return result.output, path.read_text(encoding="utf-8")


def test_demo_tells_the_choice_and_beats_the_baseline(demo):
    output, _ = demo
    words = " ".join(output.split())
    found = re.search(r"Test error ([\d.]+) MPa; the linear baseline has ([\d.]+) MPa", words)
    ours, linear = map(float, found.groups())
    assert ours < 0.5 * linear
    assert re.search(r"Chosen: the \w+ kernel with σ = [\d.]+, λ = \S+, out of 2,100", words)


def test_demo_report_is_self_contained(demo):
    _, page = demo
    assert page.startswith("<!doctype html>")
    assert page.count('src="data:image/svg+xml;base64,') == 6
    links = re.findall(r'(?:src|href)="(?!data:)([^"]*)"|url\(([^)]*)\)|@import', page)
    assert links == []
    for heading in ("The path and the chosen point", "Less is more", "CC BY 4.0"):
        assert heading in page


def test_demo_as_json(tmp_path):
    command = [sys.executable, "-c", "from imparo.cli import main; main()", "demo", "--json"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    outcome = json.loads(run.stdout)
    chosen = outcome["chosen"]
    errors = outcome["paths"][chosen["kernel"]]["errors"]
    assert np.min(errors) == chosen["error"]
    assert outcome["rows"] == {"train": 824, "test": 206}
    assert (tmp_path / "imparo-demo.html").exists()


def test_bad_output_is_one_sentence(tmp_path):
    path = tmp_path / "missing" / "report.html"
    result = CliRunner().invoke(main, ["demo", "-o", str(path)])
    assert result.exit_code == 1
    assert "there is no folder" in result.output
    assert "Traceback" not in result.output


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "report.html")])
    assert result.exit_code == 1
    assert "pip install 'imparo[plot]'" in result.output


def test_version_and_help():
    assert "imparo, version" in CliRunner().invoke(main, ["--version"]).output
    assert "demo" in CliRunner().invoke(main, ["-h"]).output


def test_the_data_are_the_published_ones():
    concrete = load_concrete()
    assert concrete.X.shape == (1030, 8)
    assert not np.isnan(concrete.X).any()
    # First row, and range of strength, as published by Yeh.
    assert concrete.X[0].tolist() == [540, 0, 0, 162, 2.5, 1040, 676, 28]
    assert (concrete.y.min(), concrete.y.max()) == (2.33, 82.6)
