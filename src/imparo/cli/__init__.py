"""The command line: one file for each command."""

import click

from imparo import __version__
from imparo.cli.advise import advise_command
from imparo.cli.demo import demo
from imparo.cli.dynamics import dynamics


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="imparo")
def main() -> None:
    """Kernel machines that fit your budget and then keep learning."""


main.add_command(demo)
main.add_command(advise_command)
main.add_command(dynamics)
