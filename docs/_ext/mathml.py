"""Formulas as MathML, by the converter that comes with docutils.

Browsers draw MathML themselves: no script, no fonts to fetch and no network when a page is
read. A formula that the converter does not know is a warning, and so fails ``make docs``.
"""

import html
import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

# What LaTeX understands and the converter does not: digits as arguments, and dots.
_DIGITS = re.compile(r"\\([td]?frac)(\d)(\d)")
_SPACE = "{http://www.w3.org/1998/Math/MathML}"
# Characters that HTML has names for and XML has not.
_NAMED = re.compile(r"&(?!lt;|gt;|amp;|#)\w+;")
_FORMULA = re.compile(r"(<math (?!display)[^>]*>(?:(?!</math>).)*</math>)([,.;:)?]+)", re.S)
_ROWS = (f"{_SPACE}math", f"{_SPACE}mrow", f"{_SPACE}mtd", f"{_SPACE}msqrt")
_APPLIED = "\u2061"  # stands unseen between a function and what it is applied to
_ACCENTS = ("ˉ", "ˆ", "~", "˙", "¨", "¯")
_FENCES = ("‖", "⟨", "⟩")
ElementTree.register_namespace("", _SPACE[1:-1])
_ROOT = re.compile(r"\\sqrt(\d)")


def _plain(formula: str) -> str:
    formula = _DIGITS.sub(r"\\\1{\2}{\3}", formula).replace(r"\dots", r"\ldots")
    return _ROOT.sub(r"\\sqrt{\1}", formula)


def _tidied(mathml: str) -> str:
    """Return it with the spaces of LaTeX, bars of one size, and labels under their braces."""
    root = ElementTree.fromstring(_NAMED.sub(lambda found: html.unescape(found[0]), mathml))
    for element in root.iter():
        parts = list(element)
        if (
            element.tag == f"{_SPACE}mo"
            and element.text in _FENCES
            and "minsize" not in element.attrib
        ):
            opens = element.text == "⟨" or element.attrib.pop("class", "") == "mathopen"
            element.set("stretchy", "false")
            element.set("form", "prefix" if opens else "postfix")
        elif element.tag == f"{_SPACE}mo" and element.text == "/":
            element.attrib.update(lspace="0em", rspace="0em")
        elif element.tag == f"{_SPACE}munderover" and parts[2].text in _ACCENTS:
            # An index is beside the letter with its accent, not under it.
            letter, index, accent = parts
            element.clear()
            element.tag = f"{_SPACE}msub"
            above = ElementTree.SubElement(element, f"{_SPACE}mover", accent="true")
            above.extend([letter, accent])
            element.append(index)
        elif (
            element.tag == f"{_SPACE}msub"
            and parts[0].tag == f"{_SPACE}munder"
            and parts[0][-1].text == "⏟"
        ):
            element.tag = f"{_SPACE}munder"
            parts[0][-1].set("stretchy", "true")
        for place, part in enumerate(parts if element.tag in _ROWS else ()):
            # Names of functions stand off from what is before and, without brackets, after.
            if (
                part.tag == f"{_SPACE}mi"
                and part.text
                and part.text.isalpha()
                and len(part.text) > 1
            ):
                rest = [other for other in parts[place + 1 :] if other.text != _APPLIED]
                alone = not rest or (rest[0].tag == f"{_SPACE}mo" and rest[0].text != "−")
                part.tag = f"{_SPACE}mo"
                part.attrib.update(form="prefix", lspace="0.17em" if place else "0em")
                part.set("rspace", "0em" if alone else "0.17em")
    return ElementTree.tostring(root, encoding="unicode")


def _mathml(node: nodes.Element, as_block: bool) -> str:
    try:
        return _tidied(tex2mathml(_plain(node.astext()), as_block=as_block))
    except MathError as error:
        logger.warning("cannot draw %r: %s", node.astext(), error, location=node)
        return f"<code>{node.astext()}</code>"


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(_mathml(node, as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def _keep_together(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let no line begin with the comma after a formula."""
    if "body" in context:
        context["body"] = _FORMULA.sub(r'<span class="nowrap">\1\2</span>', context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer; ``html_math_renderer = "mathml"`` takes it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("html-page-context", _keep_together)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
