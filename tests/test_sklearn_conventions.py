"""scikit-learn's own checks, and what its users take for granted."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from imparo import KernelClassifier, KernelRegressor

FIXED = {"sigma": 20.0, "penalty": 1e-3}
ESTIMATORS = [
    make(**settings)
    for make in (KernelRegressor, KernelClassifier)
    for settings in (
        {},
        FIXED,
        {"kernel": "linear", "intercept": True},
        {"sigma": "auto", "validation": 3},
        {"filter": "components"},
        {"filter": "landweber", "iterations": 200},
        {"filter": "nu"},
        {"filter": "cg"},
    )
]


def expected_failures(estimator):
    """Return the checks that cannot hold, each with its reason in one line."""
    weights = "copies of a row change what is left out, held out, or the median distance"
    if estimator.get_params()["penalty"] != FIXED["penalty"]:
        return {
            "check_sample_weight_equivalence_on_dense_data": weights,
            "check_sample_weight_equivalence_on_sparse_data": weights,
        }
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_conventions(estimator, check):
    check(estimator)
