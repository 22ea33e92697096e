"""Tables in, models out: what the command line does, for Python."""

from imparo.tabular.conversion import as_frame
from imparo.tabular.fitting import TableFit, fit_table
from imparo.tabular.following import Keeper, open_kept
from imparo.tabular.model import TableModel
from imparo.tabular.opening import as_rows
from imparo.tabular.outcome import Account, Cost, Evaluation
from imparo.tabular.predicting import evaluate_table, open_model, predict_blocks

__all__ = [
    "Account",
    "Cost",
    "Evaluation",
    "Keeper",
    "TableFit",
    "TableModel",
    "as_frame",
    "as_rows",
    "evaluate_table",
    "fit_table",
    "open_kept",
    "open_model",
    "predict_blocks",
]
