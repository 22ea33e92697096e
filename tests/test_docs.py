"""The documentation says what is true."""

import contextlib
import doctest
import importlib
import io
import re
import runpy
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

import imparo
from imparo.cli import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NUMBER = r"-?\d+\.?\d*(?:e[+-]?\d+)?"
WRITTEN = {"_build", "generated", "gallery"}  # by make docs

PAGES = sorted(p for p in DOCS.rglob("*.md") if not WRITTEN & set(p.relative_to(DOCS).parts))
PACKAGES = (
    "imparo", "imparo.kernels", "imparo.filters", "imparo.centers", "imparo.features",
    "imparo.theory", "imparo.preparation", "imparo.lifelong", "imparo.dynamics",
    "imparo.tabular", "imparo.tabular.following", "imparo.reports", "imparo.data",
    "imparo.data.named", "imparo.data.synthetic", "imparo.data.readers", "imparo.journal",
    "imparo.sgm", "imparo.measuring", "imparo.cluster", "imparo.experiments",
)  # fmt: skip


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def text_of(path):
    return path.read_text(encoding="utf-8")


def blocks_of(text, language):
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.S | re.M)


def test_the_example_of_the_readme_prints_what_it_says():
    readme = text_of(ROOT / "README.md")
    code, expected = re.search(r"```python\n(.*?)```\s+```\n(.*?)```", readme, re.S).groups()
    assert len([line for line in code.splitlines() if line]) == 10
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    actual = printed.getvalue()
    assert re.sub(NUMBER, "#", actual) == re.sub(NUMBER, "#", expected)
    numbers = [[float(x) for x in re.findall(NUMBER, text)] for text in (actual, expected)]
    np.testing.assert_allclose(*numbers, rtol=1e-4)


def test_the_other_example_of_the_readme_runs():
    code = blocks_of(text_of(ROOT / "README.md"), "python")[1]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    code = code.replace("budget=10", "budget=1").replace("4000", "480")
    code = code.replace("[250, 500, 1000, 2000]", "[25, 50, 100]")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, {"X": X, "y": np.sin(X[:, 0])})


def test_the_lifelong_example_of_the_readme_recognises_the_ball(tmp_path, monkeypatch):
    code = blocks_of(text_of(ROOT / "README.md"), "python")[2]
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {"X": np.random.default_rng(0).normal(size=(60, 3))})
    assert printed.getvalue() == "ball ['ball' 'mug']\n"


@pytest.mark.parametrize("page", [p for p in PAGES if ">>> " in text_of(p)], ids=name_of)
def test_the_checks_of_a_page_hold(page, tmp_path, monkeypatch):
    for package in ("pandas", "torch"):
        if package in text_of(page):
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    # The fence under an answer is not part of it.
    text = re.sub(r"^ *(`{3,}|:{3,}).*$", "", text_of(page), flags=re.M)
    test = doctest.DocTestParser().get_doctest(text, {}, name_of(page), str(page), 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    report = io.StringIO()
    failed, tried = doctest.DocTestRunner(optionflags=flags).run(test, out=report.write)
    assert tried
    assert not failed, report.getvalue()


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=name_of)
def test_python_of_a_page_can_be_parsed(page):
    for code in blocks_of(text_of(page), "python"):
        compile(code, str(page), "exec")


def commands_of(text):
    """Return the commands of imparo in the console blocks of a page."""
    for block in blocks_of(text, "console"):
        for line in block.replace("\\\n", " ").splitlines():
            for part in line.split("|"):
                words = shlex.split(part.strip().removeprefix("$ "), comments=True)
                if words and words[0] == "imparo":
                    yield words[1:]


def understood(words):
    """Return whether the command line has this command, with these options and values."""
    command, context = main, click.Context(main, info_name="imparo")
    while isinstance(command, click.Group):
        assert words, "a group without a command"
        found = command.get_command(context, words[0])
        assert found is not None, f"there is no command {words[0]!r}"
        context = click.Context(found, info_name=words[0], parent=context)
        command, words = found, words[1:]
    takes_value = {name: p for p in command.params for name in [*p.opts, *p.secondary_opts]}
    arguments = 0
    words = list(words)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            arguments += 1
            continue
        option = takes_value.get(word)
        assert option is not None, f"{command.name} has no option {word}"
        if isinstance(option, click.Option) and not option.is_flag:
            value = words.pop(0)
            if isinstance(option.type, click.Choice):
                assert value in option.type.choices, f"{word} {value}"
    needed = [p for p in command.params if isinstance(p, click.Argument) and p.required]
    assert arguments >= len(needed), f"{command.name} needs {len(needed)} arguments"
    return True


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=name_of)
def test_commands_of_a_page_are_understood(page):
    for words in commands_of(text_of(page)):
        assert understood(words), words


def test_a_wrong_command_is_not_understood():
    for wrong in (["fitt", "x.csv"], ["fit", "x.csv", "--targett", "y"], ["predict", "model"]):
        with pytest.raises(AssertionError):
            understood(wrong)


@pytest.mark.parametrize(
    "script", sorted((ROOT / "examples").glob("plot_*.py")), ids=lambda p: p.stem
)
def test_an_example_of_the_gallery_runs(script, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(script))
    drawn = pyplot.get_fignums()
    pyplot.close("all")
    assert drawn


def test_every_example_of_the_gallery_has_its_place():
    order = (DOCS / "_ext" / "gallery_style.py").read_text(encoding="utf-8")
    for script in (ROOT / "examples").glob("plot_*.py"):
        assert f'"{script.stem}"' in order


def test_every_public_name_is_listed():
    listed = set(re.findall(r"^   (imparo[\w.]+)$", text_of(DOCS / "api.md"), re.M))
    missing = []
    packages = {name: importlib.import_module(name) for name in PACKAGES}
    for package, module in packages.items():
        for name in set(module.__all__) - {"__version__"}:
            # Once is enough for what several packages export.
            places = {
                f"{other}.{name}"
                for other, found in packages.items()
                if getattr(found, name, None) is getattr(module, name)
            }
            if not places & listed:
                missing.append(f"{package}.{name}")
    assert not missing


def test_every_listed_name_exists():
    for place in re.findall(r"^   (imparo[\w.]+)$", text_of(DOCS / "api.md"), re.M):
        module, _, name = place.rpartition(".")
        assert hasattr(importlib.import_module(module), name), place


def test_every_benchmark_is_told_of():
    told = text_of(DOCS / "benchmarks.md")
    source = (ROOT / "benchmarks" / "__main__.py").read_text(encoding="utf-8")
    for name in re.findall(r'^    "([\w-]+)": \w+\.\w+,', source, re.M):
        assert f"`{name}`" in told or f"benchmarks {name}`" in told, name


def test_links_of_the_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *PAGES]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text_of(document)):
            if target.startswith("http"):
                continue
            place = document.parent / target
            if "gallery" in place.parts:  # written by make docs, from a script
                script = ROOT / "examples" / f"{place.stem}.py"
                assert place.stem == "index" or script.exists(), (document.name, target)
            else:
                assert place.exists(), (document.name, target)


def test_versions_agree():
    citation = text_of(ROOT / "CITATION.cff")
    changelog = text_of(ROOT / "CHANGELOG.md")
    assert f"\nversion: {imparo.__version__}\n" in citation
    assert f"\n## {imparo.__version__}" in changelog
