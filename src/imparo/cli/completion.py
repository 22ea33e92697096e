"""``imparo completion``: names that the shell completes."""

import glob
import os

import click
from click.shell_completion import CompletionItem, get_completion_class

from imparo.cli.common import guarded


class Data(click.ParamType):
    """An argument that names data: a file, folder, pattern, ``-``, or a known data set."""

    name = "data"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the data sets and files that begin like what was typed."""
        names = [name for name in known_names() if name.startswith(incomplete)]
        if not names:
            return [CompletionItem(incomplete, type="file")]  # the shell does it best
        # Shells take either words or files, so that files beside names must be words.
        files = [
            f"{path}{os.sep}" if os.path.isdir(path) else path
            for path in sorted(glob.glob(f"{glob.escape(incomplete)}*"))
            if not any(letter.isspace() for letter in path)
        ]
        return [
            *(CompletionItem(name, help="a data set") for name in names),
            *(CompletionItem(path) for path in files if path not in names),
        ]


#: For the arguments of commands that name data.
DATA = Data()


def known_names() -> list[str]:
    """Return the names of data sets."""
    from imparo.data import named

    return sorted(named.DATASETS)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@guarded
def completion(shell: str) -> None:
    """Print the script that lets SHELL complete commands, options, files and data sets.

    bash: add to ~/.bashrc the line: eval "$(imparo completion bash)"

    zsh: add to ~/.zshrc, after compinit, the line: eval "$(imparo completion zsh)"

    fish: write the script to ~/.config/fish/completions/imparo.fish

    \b
    Examples:
      echo 'eval "$(imparo completion bash)"' >> ~/.bashrc
      echo 'eval "$(imparo completion zsh)"' >> ~/.zshrc
      imparo completion fish > ~/.config/fish/completions/imparo.fish
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    root = click.get_current_context().find_root()
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(root.command, {}, "imparo", "_IMPARO_COMPLETE").source())
