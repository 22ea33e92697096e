"""The command line: one file for each command, imported when the command is used.

A command's module imports what computes inside its functions, so that its help, its
completion and its errors of usage come at once.
"""

import click

from imparo import __version__
from imparo.cli.helping import LazyGroup

_SECTIONS = {
    "Learn from files": {
        "fit": "Learn a model from a file, and say what was done.",
        "predict": "Predict the rows of a file with a model.",
        "evaluate": "Judge a model on rows that it has not seen.",
        "learn": "Keep a learner current with data that keep coming.",
    },
    "Teach by showing": {
        "serve": "Serve learners over HTTP, and a page to teach them by showing.",
    },
    "Look around": {
        "demo": "Learn the strength of concrete, and explain the choice.",
        "advise": "Tell what to fit to data, and what it will take.",
        "cluster": "Tell what a fit would take on a cluster, and whether that pays.",
        "datasets": "List, show, get and make data sets.",
        "bench": "Measure this machine, and imparo beside its rivals on it.",
    },
    "The thesis": {
        "reproduce": "Make its tables and figures anew, with its numbers beside ours.",
    },
    "Robots": {
        "dynamics": "Learn what a robot weighs and how it moves, from logs.",
    },
    "Shell": {
        "completion": "Print the script that completes names in your shell.",
    },
}
_START = (
    ("imparo demo", "see it work"),
    ("imparo fit data.csv --target y -o model.imparo", "learn from a file"),
    ("imparo predict model.imparo new.csv -o out.csv", "use what it learned"),
)


@click.group(
    "imparo",
    cls=LazyGroup,
    package=__name__,
    sections=_SECTIONS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Every command explains itself with examples: imparo fit --help\n\n"
    "Exit codes: 0 done, 1 a bug of imparo, 2 wrong usage, 3 data that cannot be used, 4 a "
    "file or the disk, 5 budget or memory, 6 a missing package, 7 a damaged model, "
    "8 a device that is not there or failed, 9 a cluster that was lost, 130 interrupted.",
)
@click.version_option(__version__, prog_name="imparo")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Kernel machines that fit your budget and then keep learning.

    \b
    Examples:
      imparo fit data.csv --target y -o model.imparo --report report.html
      imparo predict model.imparo new.csv -o predictions.csv
      imparo learn arm/ stream.jsonl --target torque --follow
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    if ctx.invoked_subcommand is None:
        start = ctx.make_formatter()
        start.write(f"imparo {__version__}: kernel machines that fit your budget and then ")
        start.write("keep learning.\n\n")
        with start.indentation():
            start.write_dl(_START, col_max=50)
        start.write("\nAll commands: imparo --help\nOne of them:  imparo fit --help")
        click.echo(start.getvalue())
