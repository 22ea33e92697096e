"""Help that teaches: pages with examples, commands in groups, and a hint after a slip."""

import importlib
import os
import re
import shutil
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from imparo.cli.common import answered

_WIDEST = 100
# How a docstring begins its examples; the first character keeps click from wrapping them.
_EXAMPLES = re.compile(r"^\x08\nExamples:\n", re.MULTILINE)
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def coloured() -> bool:
    """Return whether standard output is a terminal that is to have colours."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and sys.stdout.isatty()


class HelpFormatter(click.HelpFormatter):
    """Help as wide as the terminal, with colours where they are wanted."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        if width is None:
            width = max(min(shutil.get_terminal_size().columns, _WIDEST) - 2, 30)
        super().__init__(indent_increment, width, max_width)
        self._coloured = coloured()

    def _styled(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self._coloured else text

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write how the command is called."""
        prefix = self._styled(prefix or "Usage:", bold=True) + " "
        super().write_usage(self._styled(prog, fg="green", bold=True), args, prefix)

    def write_heading(self, heading: str) -> None:
        """Write the name of a section."""
        self.write(" " * self.current_indent + self._styled(f"{heading}:", bold=True) + "\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write names and what they mean."""
        super().write_dl([(self._name(a), b) for a, b in rows], col_max, col_spacing)

    def _name(self, name: str) -> str:
        if not name.startswith("-"):
            return self._styled(name, fg="cyan", bold=True)
        return _FLAG.sub(lambda found: self._styled(found[0], fg="cyan", bold=True), name)

    def write_text(self, text: str) -> None:
        """Write paragraphs, and the examples among them as a section of its own."""
        text, *examples = _EXAMPLES.split(text, maxsplit=1)
        super().write_text(text.rstrip())
        if examples:
            self.write_examples(examples[0])

    def write_examples(self, lines: str) -> None:
        """Write lines for a shell, each to be copied as it is."""
        self.write("\n" + self._styled("Examples:", bold=True) + "\n")
        for line in lines.strip().splitlines():
            command, comment, words = line.strip().partition("  #")
            shown = self._styled(command, fg="green")
            if comment:
                shown += self._styled(comment + words, dim=True)
            self.write(f"  {shown}\n")


class HelpContext(click.Context):
    """The context of commands whose help is formatted here."""

    formatter_class = HelpFormatter


class LazyGroup(click.Group):
    """A group that imports a command when it is used, and not to list it.

    Parameters
    ----------
    package : str
        Package with a module for each command, of the command's name.
    sections : dict
        Heading to the commands under it, each with the sentence of the list.
    """

    context_class = HelpContext

    def __init__(
        self, *args: Any, package: str, sections: dict[str, dict[str, str]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.package = package
        self.sections = sections
        self.sentences = {n: s for part in sections.values() for n, s in part.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return [*self.sentences, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self.sentences:
            return super().get_command(ctx, cmd_name)
        module = importlib.import_module(f"{self.package}.{cmd_name}")
        for found in vars(module).values():
            if isinstance(found, click.Command) and found.name == cmd_name:
                found.context_class = HelpContext
                return found
        raise RuntimeError(f"{module.__name__} holds no command {cmd_name}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, a section at a time."""
        width = max(map(len, self.sentences))
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{n:{width}}", s) for n, s in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin like what was typed."""
        commands = [
            CompletionItem(name, help=sentence)
            for name, sentence in self.sentences.items()
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was named, or say which may have been meant."""
        name = args[0]
        known = self.list_commands(ctx)
        if name in known or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = get_close_matches(name, known, n=1)
        if near:
            hint = f"did you mean '{near[0]}'?"
        elif "fit" in known and Path(name).exists():
            hint = f"to learn from this file: {ctx.command_path} fit {name}"
        else:
            hint = f"there are {', '.join(known)}"
        raise click.UsageError(f"there is no command '{name}'; {hint}", ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what fails or is interrupted around it is told in one sentence."""
        with answered():
            return super().invoke(ctx)
