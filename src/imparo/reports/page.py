"""Self-contained HTML pages: one file, no network, no scripts, pictures inside."""

import base64
import html
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from imparo.reports.drawing import (
    DARK,
    LIGHT,
    Drawing,
    Picture,
    as_svg,
    drawn_in,
    figure_svg,
    recoloured,
)
from imparo.reports.files import put
from imparo.reports.style import STYLE

# Nothing may be fetched or run: what a name in the data tries, the browser refuses.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_LONG = 14
_LONG_WORD = re.compile(r"(\S{30})(?=\S)")
_NUMBER = re.compile(r"[−+-]?[\d.,]+(e[−+-]?\d+)?( ?(%|m?s|min|h|[kMGT]?B))?|[–∞]|")


@dataclass(frozen=True)
class _Panel:
    heading: str
    text: str
    content: str | Picture
    kind: str  # "half", "wide" or "long"


@dataclass
class _Part:
    heading: str
    text: str
    chapter: str = ""
    mark: str = ""
    tone: str = ""
    panels: list[_Panel] = field(default_factory=list)


@dataclass
class Page:
    """A page of cards, warnings, pictures and tables, written as one HTML file.

    Panels are added to the part that was begun last. Half a page wide are pictures and
    facts; tables and code take the whole width.

    Parameters
    ----------
    title, lead : str
        Heading and the sentences under it.
    kind : str
        What sort of page it is, over the heading.
    data : dict or None
        The same as plain values, for a JSON file.

    Examples
    --------
    >>> from imparo.reports import Page
    >>> page = Page("Strength of concrete", "What was found.")
    >>> page.card("4.1 MPa", "error on new rows")
    >>> page.facts("Rows", "", [("fitted", "824"), ("tested", "206")])
    >>> page.to_html("Made today.").startswith("<!doctype html>")
    True
    """

    title: str
    lead: str
    kind: str = ""
    data: dict[str, Any] | None = None
    footer: str = ""
    _cards: list[str] = field(default_factory=list)
    _warnings: list[str] = field(default_factory=list)
    _parts: list[_Part] = field(default_factory=lambda: [_Part("", "")])

    def card(self, value: str, label: str, tone: str = "") -> None:
        """Add a number to see first, with what it is; ``tone`` may be "good" or "bad"."""
        self._cards.append(
            f'<div class="card {tone}"><b>{_text(value)}</b><span>{_text(label)}</span></div>'
        )

    def warn(self, sentence: str) -> None:
        """Add a sentence that has to be read first."""
        self._warnings.append(sentence)

    def part(
        self, heading: str, text: str = "", chapter: str = "", mark: str = "", tone: str = ""
    ) -> None:
        """Begin a part of the page.

        Parameters
        ----------
        heading, text : str
        chapter : str
            That the part belongs to: the contents are then a list, chapter by chapter.
        mark : str
            A word on what came of it, beside the heading.
        tone : "", "good" or "bad"
            Of the mark.
        """
        self._parts.append(_Part(heading, text, chapter, mark, tone))

    def picture(
        self, heading: str, text: str, figure: Any, alt: str = "",
        size: tuple[float, float] = (5.6, 3.9), dense: bool = False,
    ) -> None:  # fmt: skip
        """Add a picture with its explanation.

        Parameters
        ----------
        heading, text : str
        figure : matplotlib Figure or callable
            A figure drawn for white, which is recoloured for dark; or a function of a figure
            and a :class:`Theme` that draws.
        alt : str
            What can be seen; the text if left out.
        size : pair of float
            Inches, for a function.
        dense : bool
            Whether it needs the whole width.
        """
        if callable(figure):
            draw: Drawing = figure
            self.add(Picture(heading, text, alt or text, draw, size, dense))
            return
        light = figure_svg(figure)
        with drawn_in(DARK), recoloured(figure, DARK):
            dark = figure_svg(figure)
        self._panel(heading, text, _image(light, dark, alt or text))

    def add(self, picture: Picture | None) -> None:
        """Add a picture, where there is one."""
        if picture is not None:
            kind = "wide" if picture.dense else "half"
            self._panel(picture.heading, picture.text, picture, kind)

    def table(
        self, heading: str, text: str, header: Sequence[str], rows: Sequence[Sequence[str]],
        chosen: int = -1, note: str = "", folded: bool = False,
    ) -> None:  # fmt: skip
        """Add a table, of which one row may be the chosen one.

        Parameters
        ----------
        heading, text : str
        header : sequence of str
        rows : sequence of sequences of str
        chosen : int
            Position of the chosen row; -1 for none.
        note : str
            Under the table.
        folded : bool
            Whether a long table is shown as two, side by side.
        """
        half = -(-len(rows) // 2) if folded and len(rows) > _LONG else max(len(rows), 1)
        numbers = [_is_numbers(column) for column in zip(*rows, strict=True)] or [False] * len(
            header
        )
        tables = [
            _table(header, rows[i : i + half], numbers, chosen - i)
            for i in range(0, max(len(rows), 1), half)
        ]
        content = "".join(tables)
        if len(tables) > 1:
            content = f'<div class="columns">{content}</div>'
        if note:
            content += f'<p class="more">{_text(note)}</p>'
        kind = "long" if len(rows) > _LONG else "wide"
        self._panel(heading, text, _scrolled(content, heading), kind)

    def facts(self, heading: str, text: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Add a table of names and values, half of the page wide."""
        rows = "".join(
            f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>'
            for name, value in pairs
        )
        self._panel(heading, text, f'<table class="facts"><tbody>{rows}</tbody></table>')

    def sentences(self, heading: str, text: str, items: Iterable[str]) -> None:
        """Add a list of sentences, half of the page wide."""
        content = "".join(f"<li>{_text(item)}</li>" for item in items)
        self._panel(heading, text, f"<ul>{content}</ul>")

    def code(self, heading: str, text: str, source: str) -> None:
        """Add lines of code, over the whole width."""
        self._panel(heading, text, f"<pre>{_text(source)}</pre>", "wide")

    def _panel(
        self, heading: str, text: str, content: str | Picture, kind: str = "half"
    ) -> None:
        self._parts[-1].panels.append(_Panel(heading, text, content, kind))

    @property
    def pictures(self) -> list[Picture]:
        """The pictures that can be drawn again, in order."""
        panels = (panel for part in self._parts for panel in part.panels)
        return [p.content for p in panels if isinstance(p.content, Picture)]

    def to_html(self, footer: str = "") -> str:
        """Return the page as HTML.

        Parameters
        ----------
        footer : str
            Under everything.

        Returns
        -------
        str
        """
        warned = ""
        if self._warnings:
            items = "".join(f"<li>{_text(sentence)}</li>" for sentence in self._warnings)
            warned = (
                f'<div class="warnings" role="note"><h2>Please note</h2><ul>{items}</ul></div>'
            )
        named = [(i, part) for i, part in enumerate(self._parts) if part.heading]
        contents = _contents(named) if len(named) > 2 else ""
        threes = " threes" if len(self._cards) in (3, 5, 6, 9) else ""
        cards = "".join(self._cards)
        cards = f'<div class="cards{threes}">{cards}</div>' if cards else ""
        kind = f'<p class="kind">{_text(self.kind)}</p>' if self.kind else ""
        parts = "".join(_part(i, part) for i, part in enumerate(self._parts))
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
            f"<title>{_text(self.title)}</title><style>{STYLE}</style></head>\n"
            f"<body><main><header>{kind}<h1>{_text(self.title)}</h1>"
            f'<p class="lead">{_text(self.lead)}</p></header>\n'
            f"{warned}{cards}{contents}\n{parts}"
            f"<footer>{_text(footer or self.footer)}</footer></main></body></html>\n"
        )

    def write(self, path: str | os.PathLike[str], footer: str = "") -> None:
        """Write the page to a file, as a whole."""
        put(path, self.to_html(footer).encode("utf-8", "replace"))


def _text(value: Any) -> str:
    return html.escape(str(value))


def _cell(value: str) -> str:
    """Return a text of which words that no column has room for can be broken."""
    return "<wbr>".join(_text(piece) for piece in _LONG_WORD.split(value) if piece)


def _scrolled(content: str, name: str, kind: str = "") -> str:
    """Return what may be wider than the page, to be moved by touch, wheel or keys."""
    return (
        f'<div class="scroll {kind}" role="region" tabindex="0" aria-label="{_text(name)}">'
        f"{content}</div>"
    )


def _is_numbers(column: Sequence[str]) -> bool:
    return any(column) and all(_NUMBER.fullmatch(cell) for cell in column)


def _table(
    header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool], chosen: int
) -> str:
    kinds = [' class="n"' if flag and i else "" for i, flag in enumerate(numbers)]
    head = "".join(
        f'<th scope="col"{kind}>{_text(name)}</th>'
        for name, kind in zip(header, kinds, strict=True)
    )
    body = []
    for i, row in enumerate(rows):
        cells = [f"<td{kind}>{_cell(c)}</td>" for c, kind in zip(row, kinds, strict=True)]
        cells[0] = f'<th scope="row">{_cell(row[0])}</th>'
        mark = ' class="chosen"' if i == chosen else ""
        body.append(f"<tr{mark}>{''.join(cells)}</tr>")
    many = ' class="many"' if len(header) > 4 else ""
    return f"<table{many}><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _image(light: bytes, dark: bytes, alt: str) -> str:
    sources = [
        f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
        for content in (light, dark)
    ]
    # Not one picture with two sources: a browser in dark mode prints the dark one.
    return (
        f'<img class="light" alt="{_text(alt)}" src="{sources[0]}">'
        f'<picture class="dark"><source type="image/svg+xml" srcset="{sources[1]}">'
        f'<img alt="{_text(alt)}" src="data:,"></picture>'
    )


def _contents(named: list[tuple[int, _Part]]) -> str:
    """Return links to all parts: in a row, or chapter by chapter."""
    chapters = list(dict.fromkeys(part.chapter for _, part in named))
    if chapters == [""]:
        links = "".join(f'<a href="#part-{i}">{_text(p.heading)}</a>' for i, p in named)
        return f'<nav aria-label="Contents">{links}</nav>'
    lists = []
    for chapter in chapters:
        items = "".join(
            f'<li><a href="#part-{i}">{_text(p.heading)}</a>{_mark(p)}</li>'
            for i, p in named
            if p.chapter == chapter
        )
        title = f"<h3>{_text(chapter)}</h3>" if chapter else ""
        lists.append(f"<div>{title}<ul>{items}</ul></div>")
    return f'<nav class="book" id="contents" aria-label="Contents">{"".join(lists)}</nav>'


def _mark(part: _Part) -> str:
    return f' <span class="mark {part.tone}">{_text(part.mark)}</span>' if part.mark else ""


def _part(i: int, part: _Part) -> str:
    """Return a part as HTML: halves in pairs; one that is left over takes a row."""
    if not part.panels and not part.heading:
        return ""
    level = 3 if part.heading else 2
    rows: list[str] = []
    pending: list[_Panel] = []

    def flush() -> None:
        for first in range(0, len(pending), 2):
            pair = pending[first : first + 2]
            kind = "" if len(pair) == 2 else "side"
            inside = "".join(_panel(panel, kind, level) for panel in pair)
            rows.append(f'<div class="row">{inside}</div>' if len(pair) == 2 else inside)
        pending.clear()

    for panel in part.panels:
        if panel.kind == "half":
            pending.append(panel)
        else:
            flush()
            kind = "wide long" if panel.kind == "long" else "wide"
            rows.append(_panel(panel, kind, level))
    flush()
    panels = f'<div class="panels">{"".join(rows)}</div>' if rows else ""
    if not part.heading:
        return panels
    about = f'<p class="about">{_text(part.text)}</p>' if part.text else ""
    kind = f'<p class="kind">{_text(part.chapter)}</p>' if part.chapter else ""
    back = '<p class="back"><a href="#contents">Contents</a></p>' if part.chapter else ""
    return (
        f'<section id="part-{i}" aria-labelledby="heading-{i}">{kind}'
        f'<h2 id="heading-{i}">{_text(part.heading)}{_mark(part)}</h2>{about}{panels}{back}'
        "</section>\n"
    )


def _panel(panel: _Panel, kind: str, level: int) -> str:
    content = panel.content
    if isinstance(content, Picture):
        picture = content
        content = _image(as_svg(picture, LIGHT), as_svg(picture, DARK), picture.alt)
        if picture.dense:
            content = _scrolled(content, picture.heading, "dense")
    words = f"<h{level}>{_text(panel.heading)}</h{level}>"
    if panel.text:
        words += f"<p>{_text(panel.text)}</p>"
    if kind == "side":
        words, content = f'<div class="words">{words}</div>', f"<div>{content}</div>"
    return f'<div class="panel {kind}">{words}{content}</div>\n'
