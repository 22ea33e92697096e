"""The theory of the thesis as a tool: dimensions, rules with their conditions, regimes, advice.

Every rule returns a :class:`Prescription`: the numbers that a theorem asks for, with each of
its conditions checked and the violated one named.
"""

from imparo.conditions import Condition, ErrorTerms, Prescription
from imparo.steps import LossConstants, StepRule, loss_constants, step_rule
from imparo.theory.advice import Advice
from imparo.theory.advising import advise
from imparo.theory.cluster_costs import ClusterCost, cluster_cost
from imparo.theory.comparison import Comparison, compare
from imparo.theory.costs import Cost, Machine, this_machine
from imparo.theory.dimensions import Curve, Dimensions, Estimate, KernelSpectrum, dimensions_of
from imparo.theory.early_stopping import (
    early_stopping_factor,
    early_stopping_rule,
    expected_risk,
    kols_risk,
    krls_rule,
    nytro_rule,
)
from imparo.theory.nystrom import (
    centers_as_regularizer,
    fixed_design_rule,
    nystrom_rule,
    rows_needed,
    smallest_level,
)
from imparo.theory.nystrom_errors import leverage_error, nystrom_error, uniform_error
from imparo.theory.options import Option
from imparo.theory.random_features import (
    centers_exponent,
    features_as_regularizer,
    features_exponent,
    lower_bound_exponent,
    penalty_exponent,
    random_features_rule,
    rate_exponent,
)
from imparo.theory.rates import plot_required_features, rate_exponents
from imparo.theory.regimes import (
    fastest,
    iteration_limit,
    plot_regimes,
    possible,
    regime_costs,
    subsampling_limit,
)
from imparo.theory.sgm_bounds import check_convergence, sgm_bound
from imparo.theory.signal import Signal, signal_of
from imparo.theory.simulation import simulate_rates
from imparo.theory.simulation_plot import RateSimulation, plot_simulations

__all__ = [
    "Advice",
    "ClusterCost",
    "Comparison",
    "Condition",
    "Cost",
    "Curve",
    "Dimensions",
    "ErrorTerms",
    "Estimate",
    "KernelSpectrum",
    "LossConstants",
    "Machine",
    "Option",
    "Prescription",
    "RateSimulation",
    "Signal",
    "StepRule",
    "advise",
    "centers_as_regularizer",
    "centers_exponent",
    "check_convergence",
    "cluster_cost",
    "compare",
    "dimensions_of",
    "early_stopping_factor",
    "early_stopping_rule",
    "expected_risk",
    "fastest",
    "features_as_regularizer",
    "features_exponent",
    "fixed_design_rule",
    "iteration_limit",
    "kols_risk",
    "krls_rule",
    "leverage_error",
    "loss_constants",
    "lower_bound_exponent",
    "nystrom_error",
    "nystrom_rule",
    "nytro_rule",
    "penalty_exponent",
    "plot_regimes",
    "plot_required_features",
    "plot_simulations",
    "possible",
    "random_features_rule",
    "rate_exponent",
    "rate_exponents",
    "regime_costs",
    "rows_needed",
    "sgm_bound",
    "signal_of",
    "simulate_rates",
    "smallest_level",
    "step_rule",
    "subsampling_limit",
    "this_machine",
    "uniform_error",
]
