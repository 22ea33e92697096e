"""Reports: what came of a fit or an evaluation, as a page, as values, as pictures."""

from imparo.reports.evaluation_report import evaluation_page
from imparo.reports.fit_report import fit_page
from imparo.reports.page import Page
from imparo.reports.writing import check_report_path, write_report

__all__ = ["Page", "check_report_path", "evaluation_page", "fit_page", "write_report"]
