"""The documentation says what is true."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np

import imparo
import imparo.centers
import imparo.features
import imparo.filters
import imparo.kernels
import imparo.lifelong
import imparo.preparation
import imparo.theory

ROOT = Path(__file__).parent.parent
NUMBER = r"-?\d+\.?\d*(?:e[+-]?\d+)?"


def test_the_example_of_the_readme_prints_what_it_says():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, expected = re.search(r"```python\n(.*?)```\s+```\n(.*?)```", readme, re.S).groups()
    assert len([line for line in code.splitlines() if line]) == 10
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    actual = printed.getvalue()
    assert re.sub(NUMBER, "#", actual) == re.sub(NUMBER, "#", expected)
    numbers = [[float(x) for x in re.findall(NUMBER, text)] for text in (actual, expected)]
    np.testing.assert_allclose(*numbers, rtol=1e-4)


def test_the_other_example_of_the_readme_runs():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", readme, re.S)[1]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    code = code.replace("budget=10", "budget=1").replace("4000", "480")
    code = code.replace("[250, 500, 1000, 2000]", "[25, 50, 100]")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, {"X": X, "y": np.sin(X[:, 0])})


def test_the_lifelong_example_of_the_readme_recognises_the_ball(tmp_path, monkeypatch):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", readme, re.S)[2]
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {"X": np.random.default_rng(0).normal(size=(60, 3))})
    assert printed.getvalue() == "ball ['ball' 'mug']\n"


def test_every_public_name_is_listed():
    listed = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for module in (
        imparo, imparo.kernels, imparo.filters, imparo.centers, imparo.features, imparo.theory,
        imparo.preparation, imparo.lifelong, imparo.dynamics,
    ):  # fmt: skip
        for name in set(module.__all__) - {"__version__"}:
            if module is not imparo and name in imparo.__all__:
                continue  # listed as imparo's own
            assert re.search(rf"{re.escape(module.__name__)}\.{name}\b", listed), name


def test_links_of_the_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)\)", text):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), (document.name, target)


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {imparo.__version__}\n" in citation
    assert f"\n## {imparo.__version__}" in changelog
