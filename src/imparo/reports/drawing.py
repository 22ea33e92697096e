"""Pictures in two themes: drawn by matplotlib, as SVG for pages and on a sheet for files."""

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.extras import require

# The figure that a drawing gets may be a part of a larger one.
Drawing = Callable[[Any, "Theme"], None]

_SIZE = (5.6, 3.9)
# Families with more letters than matplotlib's own, used where they are installed.
_FAMILIES = (
    "Noto Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans Arabic", "Arial Unicode MS",
    "Hiragino Sans", "PingFang SC", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic",
    "Noto Emoji", "Segoe UI Emoji",
)  # fmt: skip
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_METADATA = re.compile(rb"<metadata>.*?</metadata>", re.DOTALL)


@dataclass(frozen=True)
class Theme:
    """Colours of a picture; told apart by people who do not see all of them.

    Attributes
    ----------
    name : str
    ink, soft, line, surface : str
        Of text, of lesser text, of grids, and of what is behind.
    blue, orange, red, green : str
        Of values, of a second kind of values, of the chosen one, of what is perfect.
    steps : tuple of str
        For parts of a whole, in order.
    """

    name: str
    ink: str
    soft: str
    line: str
    surface: str
    blue: str
    orange: str
    red: str
    green: str
    steps: tuple[str, ...]

    def settings(self) -> dict[str, Any]:
        """Return matplotlib's settings for this theme."""
        return {
            "font.family": ["DejaVu Sans", *_installed()],
            "font.size": 9.5,
            "text.color": self.ink,
            "axes.titlesize": 9.5,
            "axes.labelcolor": self.soft,
            "axes.edgecolor": self.soft,
            "axes.linewidth": 0.7,
            "axes.facecolor": "none",
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.color": self.line,
            "grid.linewidth": 0.7,
            "xtick.color": self.soft,
            "ytick.color": self.soft,
            "legend.frameon": False,
            "legend.fontsize": 8.6,
            "figure.facecolor": "none",
            "savefig.facecolor": "auto",
            "savefig.dpi": 150,
            "svg.fonttype": "path",
            "svg.hashsalt": "imparo",
        }

    def shades(self) -> Any:
        """Return a colour map from the surface to blue, for shares of cells."""
        colors = require("matplotlib.colors", "plot")
        return colors.LinearSegmentedColormap.from_list("shades", [self.surface, self.blue])


LIGHT = Theme(
    "light", "#1d2330", "#566074", "#e1e5ec", "#ffffff", "#1f6fb4", "#c8670a", "#c0143c",
    "#0b7a55", ("#1f6fb4", "#e69f00", "#0e9b76", "#b0578d", "#56b4e9", "#8b95a7"),
)  # fmt: skip
DARK = Theme(
    "dark", "#e7eaf0", "#a7b0c0", "#2d3442", "#191e28", "#62aee8", "#f0a04b", "#ff5c7f",
    "#4fd1a1", ("#62aee8", "#f0b429", "#35c49a", "#d98abf", "#a5d8f7", "#8b95a7"),
)  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A drawing, with what it shows in words.

    Attributes
    ----------
    heading, text : str
        Over the picture.
    alt : str
        What can be seen, for those who cannot.
    draw : callable
        Called with a figure and a theme.
    size : pair of float
        Width and height in inches.
    dense : bool
        Whether it is too fine for half of a page.
    """

    heading: str
    text: str
    alt: str
    draw: Drawing
    size: tuple[float, float] = _SIZE
    dense: bool = False


def as_svg(picture: Picture, theme: Theme) -> bytes:
    """Draw a picture on nothing, as SVG."""
    figures = require("matplotlib.figure", "plot")
    with drawn_in(theme):
        figure = figures.Figure(figsize=picture.size, layout="constrained")
        picture.draw(figure, theme)
        return figure_svg(figure)


def figure_svg(figure: Any) -> bytes:
    """Return a figure as SVG, the same bytes for the same figure."""
    buffer = io.BytesIO()
    with _no_glyph_warnings():
        figure.savefig(buffer, format="svg", dpi=150, metadata={"Date": None})
    content = _METADATA.sub(b"", _COMMENT.sub(b"", buffer.getvalue()))
    return re.sub(rb"\s*\n\s*", b"\n", content)


def sheet(pictures: Sequence[Picture], title: str, form: str, theme: Theme = LIGHT) -> bytes:
    """Draw all pictures on one sheet, two in a row, each with its heading.

    Parameters
    ----------
    pictures : sequence of Picture
    title : str
    form : "png" or "svg"
    theme : Theme

    Returns
    -------
    bytes
        Of the file; PNG has 150 dots an inch.
    """
    figures = require("matplotlib.figure", "plot")
    lines = [pictures[i : i + 2] for i in range(0, len(pictures), 2)]
    heights = [max(picture.size[1] for picture in line) + 0.45 for line in lines] or [1.0]
    with drawn_in(theme), _no_glyph_warnings():
        figure = figures.Figure(
            figsize=(12, sum(heights) + 0.6), layout="constrained", facecolor=theme.surface
        )
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
        figure.suptitle(label(title, 90), x=0.012, ha="left", fontsize=16, weight="bold")
        cells = figure.subfigures(len(heights), 2, squeeze=False, height_ratios=heights,
                                  wspace=0.04, hspace=0.03)  # fmt: skip
        for i, picture in enumerate(pictures):
            cell = cells[i // 2, i % 2]
            cell.suptitle(label(picture.heading, 60), x=0.02, ha="left", fontsize=11.5,
                          weight="bold")  # fmt: skip
            picture.draw(cell, theme)
        if form == "svg":
            return figure_svg(figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()


@contextmanager
def drawn_in(theme: Theme) -> Iterator[None]:
    """Draw with the settings of a theme, and leave matplotlib's as they were."""
    matplotlib = require("matplotlib", "plot")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(theme.settings())
        yield


@contextmanager
def recoloured(figure: Any, theme: Theme) -> Iterator[None]:
    """Show a figure that was drawn for white on the surface of a theme, for the while.

    Greys are turned round, so that black on white becomes light on dark; other colours
    become lighter where they would be hard to see. What is mapped from values stays.

    Parameters
    ----------
    figure : matplotlib Figure
    theme : Theme
    """
    undo: list[tuple[Any, Any]] = []
    try:
        # Figures and axes are found twice: their patches come by themselves.
        for artist in figure.findobj(lambda found: not hasattr(found, "patch")):
            for what in ("color", "facecolor", "edgecolor", "markerfacecolor",
                         "markeredgecolor"):  # fmt: skip
                read, write = (getattr(artist, f"{w}_{what}", None) for w in ("get", "set"))
                mapped = getattr(artist, "get_array", lambda: None)()
                if read is None or write is None or mapped is not None:
                    continue
                before = read()
                after = _on_surface(before, theme)
                if after is not None:
                    undo.append((write, before))
                    write(after)
        yield
    finally:
        for write, before in reversed(undo):
            write(before)


def label(text: Any, length: int = 28) -> str:
    """Return any text as matplotlib shows it letter by letter, shortened in the middle.

    Parameters
    ----------
    text : object
    length : int
        The most letters.

    Returns
    -------
    str

    Examples
    --------
    >>> from imparo.reports.drawing import label
    >>> label("a very long name of a column", 15)
    'a very…column'
    """
    text = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    if len(text) > length:
        tail = (length - 1) // 2
        text = f"{text[: length - 1 - tail].rstrip()}…{text[-tail:].lstrip()}"
    # Dollars would begin a formula.
    return text.replace("$", r"\$")


def _on_surface(value: Any, theme: Theme) -> Any:
    """Return colours for the surface of a theme, or None where they can stay."""
    colors = require("matplotlib.colors", "plot")
    if isinstance(value, str) and value in ("none", "auto", "inherit", "face"):
        return None
    try:
        given = np.atleast_2d(colors.to_rgba_array(value))
    except (ValueError, TypeError):
        return None
    if len(given) == 0:
        return None
    dark, light = (np.array(colors.to_rgb(c)) for c in (theme.surface, theme.ink))
    found = given.copy()
    for row in found:
        rgb = row[:3]
        if np.ptp(rgb) < 0.06:
            rgb[:] = light + rgb.mean() * (dark - light)
            continue
        while _contrast(rgb, dark) < 3.5:
            rgb += 0.1 * (1 - rgb)
    return found[0] if np.ndim(value) < 2 else found


def _contrast(a: Any, b: Any) -> float:
    """Return the contrast of two colours as the guidelines for web content count it."""

    def luminance(rgb: Any) -> float:
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    low, high = sorted((luminance(np.asarray(a)), luminance(np.asarray(b))))
    return (high + 0.05) / (low + 0.05)


@contextmanager
def _no_glyph_warnings() -> Iterator[None]:
    # A letter that no font has is drawn as a box; the tables of the page have the name.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _installed() -> list[str]:
    fonts = require("matplotlib.font_manager", "plot")
    names = set(fonts.get_font_names())
    return [family for family in _FAMILIES if family in names]
