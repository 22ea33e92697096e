"""What all commands share: sentences, exit codes, notes, help, completion, progress."""

import errno
import json
import os
import re
import subprocess
import sys
import warnings

import click
import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner
from rich.console import Console

from imparo.cli import main
from imparo.cli import steps as steps_module
from imparo.cli.common import console, guarded
from imparo.cli.completion import DATA
from imparo.cli.helping import HelpContext, LazyGroup
from imparo.cli.steps import steps
from imparo.data.readers import RowError
from imparo.errors import FileFormatError, MemoryBudgetError, SelectionWarning


def failing(error):
    @click.command()
    @click.option("--json", "as_json", is_flag=True)
    @guarded
    def command(as_json):
        raise error

    return command


SENTENCES = [
    (ValueError("no rows\n  here"), 3, "no rows here"),
    (TypeError("text, not a number"), 3, "text, not a number"),
    (RowError("a.csv, line 7: wrong"), 3, "a.csv, line 7: wrong"),
    (FileNotFoundError("there is no file a.csv"), 4, "there is no file a.csv"),
    (
        PermissionError(errno.EACCES, "Permission denied", "a.csv"),
        4,
        "a.csv cannot be read or written: permission denied",
    ),
    (
        OSError(errno.ENOSPC, "No space left on device", "out.csv"),
        4,
        "the disk is full: out.csv cannot be written; free some space or write elsewhere",
    ),
    (
        OSError(errno.ENOSPC, "No space left on device"),
        4,
        "the disk is full: the output cannot be written; free some space or write elsewhere",
    ),
    (MemoryBudgetError("raise memory"), 5, "raise memory"),
    (MemoryError("no room for 8 TB"), 5, "no room for 8 TB"),
    (ImportError("install imparo[files]"), 6, "install imparo[files]"),
    (FileFormatError("m.imparo is damaged"), 7, "m.imparo is damaged"),
    (KeyboardInterrupt(), 130, "interrupted"),
]


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    SENTENCES,
    ids=[f"{type(error).__name__}-{code}-{said[:12]}" for error, code, said in SENTENCES],
)
def test_an_error_is_one_sentence_and_its_code_in_text_and_in_json(error, code, sentence):
    result = CliRunner().invoke(failing(error))
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr == f"Error: {sentence}\n"
    result = CliRunner().invoke(failing(error), ["--json"])
    assert result.exit_code == code
    assert json.loads(result.stdout) == {"error": sentence, "code": code}
    assert result.stderr == f"Error: {sentence}\n"


def test_memory_that_has_run_out_without_a_word_is_explained():
    result = CliRunner().invoke(failing(MemoryError()))
    assert result.exit_code == 5
    assert "not enough memory" in result.stderr


def test_a_long_sentence_is_one_line_and_brackets_are_kept():
    sentence = "[bold]the columns " + "very " * 100 + "long[/] of 12 rows"
    assert CliRunner().invoke(failing(ValueError(sentence))).stderr == f"Error: {sentence}\n"


def test_a_bug_asks_to_be_reported_and_shows_its_traceback_only_when_asked(monkeypatch):
    monkeypatch.delenv("IMPARO_DEBUG", raising=False)
    result = CliRunner().invoke(failing(KeyError("place")))
    assert result.exit_code == 1
    assert re.fullmatch(r"Error: .*bug.*KeyError: 'place'.*report it.*\n", result.stderr)
    monkeypatch.setenv("IMPARO_DEBUG", "1")
    result = CliRunner().invoke(failing(KeyError("place")))
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_wrong_usage_and_wanted_ends_are_clicks_own():
    for error, code in ((click.UsageError("no"), 2), (click.exceptions.Exit(0), 0)):
        assert CliRunner().invoke(failing(error)).exit_code == code


def test_warnings_of_imparo_are_notes_of_one_line_each():
    @click.command()
    @guarded
    def command():
        for _ in range(2):
            warnings.warn("the best\n  is [last]", SelectionWarning, stacklevel=1)
        click.echo("done")

    before = warnings.showwarning, list(warnings.filters)
    result = CliRunner().invoke(command)
    assert (result.exit_code, result.stdout) == (0, "done\n")
    assert result.stderr == "Note: the best is [last]\n"
    assert (warnings.showwarning, warnings.filters) == before


def test_warnings_of_others_are_left_alone():
    @click.command()
    @guarded
    def command():
        warnings.warn("odd", RuntimeWarning, stacklevel=1)

    with pytest.warns(RuntimeWarning, match="odd"):
        assert CliRunner().invoke(command).stderr == ""


PIPED = """
import click, sys
from imparo.cli.common import console, guarded
@click.command()
@guarded
def command():
    out = console()
    sys.stdin.read()  # until nobody reads any more
    {printing}
command()
"""


@pytest.mark.parametrize(
    "printing",
    [
        "click.echo(7)",
        "out.print(7)",
        "print(7)",
        "print('y' * 100_000)",
        "print(7, flush=True)",
    ],
)
def test_a_reader_that_stops_reading_ends_the_command_quietly(printing):
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    running = subprocess.Popen(
        [sys.executable, "-c", PIPED.format(printing=printing)], env=buffered,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    running.stdout.close()
    running.stdin.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait(30) == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_under_standard_output_is_told():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "imparo", "completion", "fish"]
        run = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert run.returncode == 4
    assert run.stderr.startswith("Error: the disk is full")
    assert len(run.stderr.splitlines()) == 1


# Consoles and colours.


def page(command, *, colours):
    """Return a help page, drawn where standard output is or is not a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("imparo.cli.helping.coloured", lambda: colours)
        return CliRunner().invoke(main, [*command, "--help"], color=True).output


def test_messages_go_to_standard_error_beside_json():
    assert console(as_json=True).stderr
    assert not console().stderr


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
    ],
    ids=["plain", "NO_COLOR", "empty", "dumb"],
)
def test_help_has_colours_on_a_terminal_that_wants_them(monkeypatch, variables, expected):
    from imparo.cli import helping

    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert not helping.coloured()  # under pytest
    monkeypatch.setattr(sys, "stdout", type("Terminal", (), {"isatty": lambda self: True})())
    assert helping.coloured() is expected


def test_colours_change_nothing_else_of_a_page():
    for command in ([], ["advise"], ["bench"], ["completion"], ["dynamics", "fit"]):
        plain, colourful = (page(command, colours=colours) for colours in (False, True))
        assert "\x1b[" not in plain
        assert "\x1b[36m\x1b[1m" in colourful
        assert click.unstyle(colourful) == plain


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_pages_are_as_wide_as_the_terminal_and_no_wider_than_can_be_read(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = CliRunner().invoke(main, ["bench", "-h"]).output
    examples = text[text.index("Examples:") : text.index("Options:")]
    widths = [len(line) for line in text.replace(examples, "").splitlines()]
    assert min(columns, 100) - 15 < max(widths) <= min(columns, 100)


# Help and slips.


def test_the_list_of_commands_is_grouped_and_complete():
    text = CliRunner().invoke(main, ["--help"]).output
    assert CliRunner().invoke(main, ["-h"]).output == text
    headings = re.findall(r"^(\w[\w ]+):$", text, re.MULTILINE)
    assert headings == ["Examples", "Options", *main.sections]
    for name, sentence in main.sentences.items():
        assert re.search(rf"^  {name} +{re.escape(sentence)}$", text, re.MULTILINE)
    assert set(main.sentences) >= {"fit", "predict", "evaluate", "learn", "demo", "datasets"}


@pytest.mark.parametrize(
    "command", [["demo"], ["advise"], ["bench"], ["completion"], ["dynamics"]], ids=" ".join
)
def test_every_page_has_examples_that_can_be_copied(command):
    text = CliRunner().invoke(main, [*command, "-h"]).output
    examples = text[text.index("Examples:\n") :].split("\n\n")[0].splitlines()[1:]
    assert len(examples) >= 3
    assert all(re.match(rf"  .*imparo {command[0]}", line) for line in examples)
    assert "\b" not in text


def test_imparo_alone_shows_how_to_start():
    result = CliRunner().invoke(main, [])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert len([line for line in lines if line.startswith("  imparo ")]) == 3
    assert "All commands: imparo --help" in lines


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["advice"], "did you mean 'advise'?"),
        (["dynamics", "indentify"], "did you mean 'identify'?"),
        (["bench", "--secnds", "3"], "'--seconds'"),
        (["zzz"], "there are fit, predict"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1],
)
def test_a_slip_is_answered_with_what_was_meant(arguments, hint):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert "Usage:" in result.stderr


def test_a_file_in_the_place_of_a_command_is_answered_with_fit(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("")
    assert f"fit {file}" in CliRunner().invoke(main, [str(file)]).stderr


def test_a_command_whose_module_is_missing_breaks_no_other(tmp_path, monkeypatch):
    sections = {"All": {"here": "It is there.", "gone": "It is not."}}
    (tmp_path / "some_commands").mkdir()
    (tmp_path / "some_commands" / "__init__.py").write_text("")
    text = "import click\n@click.command()\ndef here():\n    click.echo('yes')\n"
    (tmp_path / "some_commands" / "here.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    group = LazyGroup("some", package="some_commands", sections=sections)
    assert CliRunner().invoke(group, ["here"]).output == "yes\n"
    assert "It is not." in CliRunner().invoke(group, ["--help"]).output
    result = CliRunner().invoke(group, ["gone"])
    assert result.exit_code == 6
    assert result.stderr == "Error: No module named 'some_commands.gone'\n"


# Completion.


def completed(*words, shell="bash"):
    """Return the completions of the last word, as a shell would get them."""
    variables = {"COMP_WORDS": " ".join(["imparo", *words]), "COMP_CWORD": str(len(words))}
    made = get_completion_class(shell)(main, {}, "imparo", "_IMPARO_COMPLETE")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return [line.split(",", 1) for line in made.complete().splitlines()]


def test_commands_and_options_are_completed():
    assert completed("ad") == [["plain", "advise"]]
    assert completed("dynamics", "st") == [["plain", "stream"]]
    assert ["plain", "--seconds"] in completed("bench", "--s")
    assert completed("bench", "re") == [["plain", "readers"]]
    assert completed("completion", "z") == [["plain", "zsh"]]


def test_data_sets_and_files_are_completed_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("cars.csv", "c a.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "cubes").mkdir()
    monkeypatch.setattr("imparo.cli.completion.known_names", lambda: ["concrete", "mnist"])
    asked = click.Argument(["data"], type=DATA)
    context = HelpContext(main)

    def items(text):
        return [(item.type, item.value) for item in asked.shell_complete(context, text)]

    assert items("c") == [("plain", "concrete"), ("plain", "cars.csv"), ("plain", "cubes/")]
    assert items("mn") == [("plain", "mnist")]
    assert items("ca") == [("file", "ca")]  # the shell looks for files itself


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell):
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_IMPARO_COMPLETE={shell}_complete" in result.output
    assert CliRunner().invoke(main, ["completion", "csh"]).exit_code == 2


# Progress.


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def drawn(monkeypatch, calls, **settings):
    """Return what a terminal shows of some steps, each at its second."""
    clock = Clock()
    usual = steps_module._LongSteps.__init__

    def at_this_time(self, *columns, **more):
        usual(self, *columns, get_time=clock, auto_refresh=False, **more)

    monkeypatch.setattr(steps_module._LongSteps, "__init__", at_this_time)
    out = Console(force_terminal=True, width=100, _environ={"TERM": "xterm"}, **settings)
    pages = []
    with out.capture() as caught, steps(out) as show:
        for second, call in calls:
            clock.now = second
            show(*call)
            show._bars.refresh()
            pages.append([
                task.description for task in show._bars.tasks
                if steps_module._seconds(task) >= steps_module.PATIENCE
            ])  # fmt: skip
    return pages, click.unstyle(caught.get())


def test_only_steps_of_more_than_a_second_are_drawn_with_time_left(monkeypatch):
    calls = [
        (0.0, ("quick", 0, 2)),
        (0.5, ("quick", 2, 2)),
        (1.0, ("reading [rows]", 0, 100)),
        (1.5, ("reading [rows]", 10, 100)),
        (5.0, (50, 100, "reading [rows]")),  # as estimators call it
    ]
    pages, text = drawn(monkeypatch, calls)
    assert pages == [[], [], [], [], ["reading [rows]"]]
    assert "quick" not in text
    line = next(line for line in text.splitlines() if "reading [rows]" in line)
    assert re.search(r"reading \[rows\].* 50% 0:00:04 left 0:0\d:\d\d", line)


def test_off_a_terminal_and_beside_json_nothing_is_drawn(capsys):
    dumb = Console(force_terminal=True, _environ={"TERM": "dumb"})
    for out in (Console(), console(as_json=True), dumb):
        with steps(out) as show:
            show("reading", 0, 10)
            show(5, 10, "reading")
            assert show._bars is None
    assert capsys.readouterr() == ("", "")


def test_json_is_silent_even_on_a_terminal():
    out = console(as_json=True)
    out._force_terminal = True
    assert out.is_terminal
    with steps(out) as show:
        assert show._bars is None
