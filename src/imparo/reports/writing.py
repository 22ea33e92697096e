"""Reports as files: HTML, JSON, PNG or SVG, by the end of the name."""

import json
import os
from pathlib import Path

from imparo.extras import require
from imparo.reports.drawing import sheet
from imparo.reports.evaluation_report import evaluation_page
from imparo.reports.files import check_place, put
from imparo.reports.fit_report import fit_page
from imparo.reports.page import Page
from imparo.tabular.outcome import Account, Evaluation

SUFFIXES = (".html", ".json", ".png", ".svg")


def check_report_path(path: str | os.PathLike[str]) -> None:
    """Raise unless a report can be written, before the work that it is about.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    ValueError
        If the name ends in none of .html, .json, .png and .svg.
    OSError
        If the folder is missing, or may not be written to.
    ImportError
        If pictures are needed and matplotlib is missing.

    Examples
    --------
    >>> from imparo.reports import check_report_path
    >>> check_report_path("report.json")
    >>> check_report_path("report.doc")
    Traceback (most recent call last):
    ValueError: the report report.doc must end in .html, .json, .png or .svg
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"the report {path} must end in .html, .json, .png or .svg")
    check_place(path)
    if suffix != ".json":
        require("matplotlib", "plot")


def write_report(report: Page | Account | Evaluation, path: str | os.PathLike[str]) -> None:
    """Write a report, in the format that the end of its name says.

    Parameters
    ----------
    report : Page, Account or Evaluation
        Of an account the page of a fit is written, of an evaluation its page.
    path : path-like
        ``.html``: one page with everything; ``.json``: the values; ``.png`` and ``.svg``: all
        pictures on one sheet.

    Raises
    ------
    ValueError, OSError, ImportError
        As :func:`check_report_path`, and if the disk is full.
    """
    check_report_path(path)
    suffix = Path(path).suffix.lower()
    page = _page(report)
    if suffix == ".html":
        page.write(path)
        return
    if suffix == ".json":
        if page.data is None:
            raise ValueError(f"this page has no values to write to {path}; take .html")
        text = json.dumps(page.data, indent=1, allow_nan=False, default=str)
        put(path, f"{text}\n".encode())
        return
    put(path, sheet(page.pictures, page.title, suffix[1:]))


def _page(report: Page | Account | Evaluation) -> Page:
    if isinstance(report, Account):
        return fit_page(report)
    return evaluation_page(report) if isinstance(report, Evaluation) else report
