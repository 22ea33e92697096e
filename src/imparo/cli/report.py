"""Self-contained HTML reports: one file, no network, pictures inside."""

import base64
import html
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_STYLE = """
:root { color-scheme: light; --ink: #1d2330; --soft: #5c6577; --line: #e3e6ec;
        --red: #c0143c; }
* { box-sizing: border-box; }
body { margin: 0; background: #f6f7f9; color: var(--ink);
       font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 0 0 .5rem; }
.lead { color: var(--soft); margin: 0 0 1.75rem; max-width: 50rem; }
.cards { display: grid; gap: 1rem;
         grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); }
.card, section { background: #fff; border: 1px solid var(--line); border-radius: .6rem; }
.card { padding: 1rem 1.2rem; }
.card b { display: block; font-size: 1.7rem; line-height: 1.25; }
.card span { color: var(--soft); font-size: .9rem; }
.sections { display: grid; gap: 1rem; margin-top: 1rem;
            grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr)); }
section { padding: 1.2rem 1.4rem; overflow-x: auto; }
section.wide { grid-column: 1 / -1; }
section p { margin: 0 0 .8rem; color: var(--soft); }
img { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { white-space: nowrap; text-align: right; padding: .35rem .6rem;
         border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
tr.chosen td { font-weight: 600; color: var(--red); }
pre { background: #f2f4f7; border-radius: .4rem; padding: .9rem 1rem; overflow-x: auto;
      font: .88rem/1.5 ui-monospace, Consolas, Menlo, monospace; margin: 0; }
footer { color: var(--soft); font-size: .88rem; margin-top: 1.5rem; }
"""


@dataclass
class Report:
    """A page of cards, pictures and tables, written as one HTML file.

    Parameters
    ----------
    title, lead : str
        Heading and the sentence under it.
    """

    title: str
    lead: str
    _cards: list[str] = field(default_factory=list)
    _sections: list[str] = field(default_factory=list)

    def card(self, value: str, label: str) -> None:
        """Add a number to see first, with what it is."""
        self._cards.append(
            f'<div class="card"><b>{html.escape(value)}</b>'
            f"<span>{html.escape(label)}</span></div>"
        )

    def picture(self, heading: str, text: str, figure: Any) -> None:
        """Add a matplotlib figure with its explanation."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg")
        data = base64.b64encode(buffer.getvalue()).decode()
        image = f'<img alt="{html.escape(text)}" src="data:image/svg+xml;base64,{data}">'
        self._section(heading, text, image)

    def table(
        self, heading: str, text: str, header: list[str], rows: list[list[str]], chosen: int
    ) -> None:
        """Add a table of which one row is the chosen one."""
        cells = "".join(f"<th>{html.escape(name)}</th>" for name in header)
        body = "".join(
            f'<tr class="{"chosen" if i == chosen else ""}">'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
            + "</tr>"
            for i, row in enumerate(rows)
        )
        self._section(heading, text, f"<table><tr>{cells}</tr>{body}</table>", wide=True)

    def code(self, heading: str, text: str, source: str) -> None:
        """Add lines of code, over the whole width."""
        self._section(heading, text, f"<pre>{html.escape(source)}</pre>", wide=True)

    def _section(self, heading: str, text: str, content: str, wide: bool = False) -> None:
        kind = ' class="wide"' if wide else ""
        self._sections.append(
            f"<section{kind}><h2>{html.escape(heading)}</h2>"
            f"<p>{html.escape(text)}</p>{content}</section>"
        )

    def write(self, path: Path, footer: str) -> None:
        """Write the page to a file."""
        path.write_text(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style></head>"
            f"<body><main><h1>{html.escape(self.title)}</h1>"
            f'<p class="lead">{html.escape(self.lead)}</p>'
            f'<div class="cards">{"".join(self._cards)}</div>'
            f'<div class="sections">{"".join(self._sections)}</div>'
            f"<footer>{html.escape(footer)}</footer></main></body></html>\n",
            encoding="utf-8",
        )
