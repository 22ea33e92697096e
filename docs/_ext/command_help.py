"""``{command-help}``: what ``imparo COMMAND --help`` prints, for every command there is.

The text is asked of click when the page is built, so that the page cannot go stale.
"""

from collections.abc import Iterator
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from imparo.cli import main

WIDTH = 92


def commands(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command, str]]:
    """Yield name, command and help text of a command and of all below it."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    path = context.command_path
    yield path, command, command.get_help(context)
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            if found is not None and not found.hidden:
                yield from commands(found, sub, context)


class CommandHelp(SphinxDirective):
    """A section for every command, with its help as the terminal shows it."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        sections: list[nodes.Node] = []
        for path, command, text in commands(main, "imparo"):
            section = nodes.section(ids=[nodes.make_id(path)])
            section += nodes.title(text=path)
            first = command.get_short_help_str(limit=120)
            if first:
                section += nodes.paragraph(text=first)
            block = nodes.literal_block(text=text)
            block["language"] = "text"
            section += block
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
