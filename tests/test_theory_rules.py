"""The calculators of imparo.theory against the thesis, and against what they are derived from.

Exponents are written as fractions by hand from the printed theorems, and found again by
minimizing the printed bounds at huge n.
"""

import copy
import json
import math
import pickle
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import imparo
from imparo.conditions import (
    Condition,
    ErrorTerms,
    Prescription,
    check_number,
    round_up,
)
from imparo.losses import Hinge, Loss, as_loss
from imparo.steps import STEP_RULES, StepRule, loss_constants, step_rule
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
from imparo.theory.random_features import (
    centers_exponent,
    features_as_regularizer,
    features_exponent,
    lower_bound_exponent,
    penalty_exponent,
    random_features_rule,
    rate_exponent,
)
from imparo.theory.sgm_bounds import check_convergence, sgm_bound

HALF = F(1, 2)


def slope(function, small, large):
    """The power of n in function(n), between two n."""
    return (math.log(function(large)) - math.log(function(small))) / math.log(large / small)


# Prescriptions


def example():
    return Prescription(
        "a theorem",
        {"penalty": 0.5, "n_centers": 12_345, "factor": math.inf},
        (
            Condition("enough rows", False, "n ≥ 10 is needed and n is 9"),
            Condition("smooth target", None),
            Condition("short steps", True),
        ),
    )


def test_a_prescription_names_what_is_violated_and_what_is_assumed():
    rule = example()
    assert (rule.penalty, rule.n_centers) == (0.5, 12_345)
    assert not rule.holds
    assert [c.name for c in rule.violated] == ["enough rows"]
    assert [c.name for c in rule.assumed] == ["smooth target"]
    text = str(rule)
    assert "violated: enough rows (n ≥ 10 is needed and n is 9)" in text
    assert "assumed: smooth target" in text
    assert "holds: short steps" in text
    assert "12,345" in text
    assert text.index("violated") < text.index("holds:") < text.index("assumed")
    assert Prescription("x", {}, rule.conditions[1:]).holds


def test_an_unknown_value_is_an_attribute_error_that_lists_the_known():
    with pytest.raises(AttributeError, match="penalty, n_centers"):
        _ = example().sigma
    assert "penalty" in dir(example())
    assert not hasattr(example(), "__array__")


def test_a_prescription_can_be_copied_pickled_saved_and_written_as_json(tmp_path):
    rule = example()
    assert copy.deepcopy(rule) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule
    imparo.save(rule, tmp_path / "rule.imparo")
    assert imparo.load(tmp_path / "rule.imparo") == rule
    plain = json.loads(json.dumps(rule.to_dict(), allow_nan=False))
    assert plain["values"] == {"penalty": 0.5, "n_centers": 12_345, "factor": None}
    assert [c["holds"] for c in plain["conditions"]] == [False, None, True]


def test_rounding_up_forgives_the_last_digits():
    assert round_up(1000 ** (1 / 3)) == 10
    assert round_up(10.0 + 1e-6) == 11
    assert round_up(9.5) == 10
    assert round_up(0.0) == 0


@pytest.mark.parametrize(
    ("limits", "bad", "words"),
    [
        ({"above": 0, "most": 1}, 0, "above 0 and up to 1"),
        ({"above": 0, "most": 1}, 1.5, "above 0 and up to 1"),
        ({"least": 0.5}, 0.4, "from 0.5 on"),
        ({"above": 0, "below": 1}, 1, "below 1"),
        ({"least": 0}, math.nan, "finite number"),
        ({"least": 0}, math.inf, "finite number"),
        ({"least": 0}, "1", "finite number"),
        ({"least": 0}, True, "finite number"),
    ],
)
def test_numbers_outside_their_limits_are_refused_in_words(limits, bad, words):
    with pytest.raises(ValueError, match=words):
        check_number("x", bad, **limits)


# Nyström KRLS, section 4.2


@pytest.mark.parametrize(
    ("s", "gamma", "penalty", "rate"),
    [
        (0, 1, F(1, 2), F(1, 2)),
        (HALF, 1, F(1, 3), F(2, 3)),
        (HALF, HALF, F(2, 5), F(4, 5)),
        (F(1, 4), HALF, F(1, 2), F(3, 4)),
        (0, F(1, 4), F(4, 5), F(4, 5)),
        (3, 1, F(1, 3), F(2, 3)),  # saturated at s = 1/2
    ],
)
def test_nystrom_exponents_are_those_printed(s, gamma, penalty, rate):
    def rule(n):
        return nystrom_rule(n, norm=0.25, s=float(s), gamma=float(gamma), Q=1.0)

    assert slope(lambda n: rule(n).penalty, 10, 10**9) == pytest.approx(-float(penalty))
    assert rule(10).penalty == pytest.approx(0.25 * 10 ** -float(penalty))
    assert rule(10**6).rate_exponent == pytest.approx(float(rate))
    assert slope(lambda n: rule(n).risk_bound, 10, 10**9) == pytest.approx(-float(rate))


@pytest.mark.parametrize(("s", "gamma"), [(0.0, 1.0), (0.25, 0.5), (0.5, 0.25), (2.0, 0.75)])
def test_nystrom_exponents_minimize_the_three_term_bound(s, gamma):
    dimensions = {"effective_dimension": lambda t: t**-gamma, "max_dimension": lambda t: 1 / t}

    def minimum(n):
        def log_bound(x):
            return math.log(nystrom_error(math.exp(x), n, 0.0, s=s, **dimensions).total)

        found = minimize_scalar(log_bound, bounds=(-0.95 * math.log(n), 0), method="bounded")
        return math.exp(found.x), math.exp(found.fun)

    small, large = 10**60, 10**70
    rule = nystrom_rule(small, norm=1.0, s=s, gamma=gamma, Q=1.0)
    larger = nystrom_rule(large, norm=1.0, s=s, gamma=gamma, Q=1.0)
    ratio = math.log(larger.penalty / rule.penalty)
    assert math.log(minimum(large)[0] / minimum(small)[0]) == pytest.approx(ratio, rel=0.01)
    rate = slope(lambda n: minimum(n)[1], small, large)
    assert rate == pytest.approx(-rule.rate_exponent, abs=1e-3)

    # The centers of the theorem make the computational error no larger than the others, and
    # with a tenth of them it would be.
    for m, at_most in ((rule.n_centers, True), (rule.n_centers / 10, False)):
        C = uniform_error(m)
        terms = nystrom_error(rule.penalty, small, C, s=s, **dimensions)
        assert (terms.computational <= 1.001 * terms.approximation) is at_most


def test_the_constants_of_the_theorem():
    # By hand, with κ² = ‖C‖ = 1, s = 0, γ = 1: v = 0, p = 2.
    needed = 1655 + 223 * math.log(60) + (76 * math.log(2280)) ** 2
    assert rows_needed(1.0, delta=0.1) == math.ceil(needed)
    rule = nystrom_rule(10**6, norm=1.0, delta=0.1, max_dimension=20.0, M=2.0, noise=3.0)
    assert rule.n_needed == math.ceil(needed)
    assert rule.penalty == pytest.approx(1e-3)
    assert rule.n_centers == math.ceil(100 * math.log(12 / 1e-4))
    assert rule.q == pytest.approx(6 * (2 + 2 + 3) * math.log(60))
    assert rule.risk_bound == pytest.approx(rule.q**2 * 1e-3)
    assert rule.holds
    # κ² = 4, ‖C‖ = 2, s = 1/2, γ = 1/2: v = 1/2, p = 5/3.
    p = 5 / 3
    needed = 4 * 1655 + 4 * 223 * math.log(240) + (19 * p * math.log(2280 * p)) ** p
    assert rows_needed(2.0, kernel_bound=4.0, s=0.5, gamma=0.5, delta=0.1) == math.ceil(needed)
    rule = nystrom_rule(
        10**5, norm=2.0, kernel_bound=4.0, s=0.5, gamma=0.5, delta=0.1, Q=5.0, R=2.0,
        max_dimension=1.0,
    )  # fmt: skip
    assert rule.penalty == pytest.approx(2 * 10**-2.0)
    assert rule.n_centers == math.ceil(67 * math.log(48 / (0.02 * 0.1)))
    q = 12 * (4 + 2 / math.sqrt(2) + math.sqrt(5 / math.sqrt(2))) * math.log(60)
    assert rule.q == pytest.approx(q)


def test_the_constants_for_leverage_scores():
    n, delta = 10**8, 0.1
    rule = nystrom_rule(
        n, norm=1.0, sampling="leverage", effective_dimension=lambda t: 50 * t**0,
        accuracy=2.0, delta=delta,
    )  # fmt: skip
    assert rule.n_centers == math.ceil(78 * 4 * 50 * math.log(48e8 / delta))
    assert rule.holds
    few = nystrom_rule(n, norm=1.0, sampling="leverage", effective_dimension=1.0, delta=delta)
    assert few.n_centers == math.ceil(334 * math.log(48e8 / delta))
    assert smallest_level(n, kernel_bound=3.0, delta=delta) == pytest.approx(
        57e-8 * math.log(12e8 / delta)
    )


def test_violated_conditions_of_the_theorem_are_named():
    few = nystrom_rule(1000, norm=0.5)
    names = [c.name for c in few.violated]
    assert "enough rows for the theorem" in names
    assert "there are as many rows as centers, m ≤ n" in names
    needed = rows_needed(0.5)
    assert f"n ≥ {needed:,} is needed and n is 1,000" in str(few)
    assert {c.name.split(":")[0] for c in few.assumed} == {"source", "noise"}

    # λ = n^{−1/(1+γ)} falls below t₀ where γ is small.
    rule = nystrom_rule(10**4, norm=1.0, sampling="leverage", gamma=0.1, Q=1.0)
    assert "the leverage scores are accurate at λ" in [c.name for c in rule.violated]
    coarse = nystrom_rule(10**8, norm=1.0, sampling="leverage", t0=0.5)
    assert "the leverage scores are accurate at λ" in [c.name for c in coarse.violated]
    fine = nystrom_rule(10**8, norm=1.0, sampling="leverage", t0=1e-9)
    assert fine.violated[0].name.startswith("scores are demanded from a level")

    wrong = nystrom_rule(10**7, norm=1.0, gamma=0.5, effective_dimension=1e6, Q=1.0)
    assert any(c.name.startswith("capacity") for c in wrong.violated)
    impossible = nystrom_rule(10**7, norm=1.0, max_dimension=1e6)
    assert any("κ²" in c.name for c in impossible.violated)


def test_what_is_not_known_of_the_capacity():
    always = nystrom_rule(10**7, norm=1.0)
    assert next(c for c in always.conditions if "capacity" in c.name).holds is True
    unknown = nystrom_rule(10**7, norm=1.0, gamma=0.5)
    assert next(c for c in unknown.conditions if "capacity" in c.name).holds is None
    assert not hasattr(unknown, "risk_bound")
    with pytest.raises(ValueError, match="give effective_dimension, or Q"):
        nystrom_rule(10**7, norm=1.0, gamma=0.5, sampling="leverage")
    # Q from 𝒩 at λ: that of the polynomial itself.
    given_q = nystrom_rule(10**7, norm=1.0, gamma=0.5, Q=3.0)
    implied = nystrom_rule(
        10**7, norm=1.0, gamma=0.5, effective_dimension=lambda t: 3 * t**-0.5
    )
    assert implied.q == pytest.approx(given_q.q)


def test_a_tiny_gamma_asks_for_more_rows_than_there_are_numbers():
    assert rows_needed(1e-3, gamma=0.01) == math.inf
    assert "n ≥ inf is needed" in str(nystrom_rule(100, norm=1e-3, gamma=0.01))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n": 0}, "n=0 must be a whole number of rows"),
        ({"n": 10.5}, "n=10.5 must be a whole number of rows"),
        ({"norm": 2.0}, "norm=2.0 must be a finite number above 0 and up to 1"),
        ({"gamma": 0.0}, "gamma=0.0"),
        ({"gamma": 1.5}, "gamma=1.5"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"delta": 0.0}, "delta=0.0"),
        ({"s": -1.0}, "s=-1.0"),
        ({"R": 0.5}, "R=0.5"),
        ({"accuracy": 0.5}, "accuracy=0.5"),
        ({"Q": 0.0}, "Q=0.0"),
        ({"M": -1.0}, "M=-1.0"),
        ({"max_dimension": -1.0}, "max_dimension=-1.0"),
        ({"sampling": "random"}, "'uniform' or 'leverage'"),
    ],
)
def test_nystrom_refuses_what_cannot_be(changes, words):
    with pytest.raises(ValueError, match=words):
        nystrom_rule(**{"n": 1000, "norm": 0.5} | changes)


@settings(max_examples=60, deadline=None)
@given(
    m=st.floats(1.0, 1e9),
    gamma=st.floats(0.05, 1.0),
    delta=st.floats(1e-6, 0.9),
    kappa2=st.floats(1e-3, 1e3),
)
def test_uniform_error_is_the_smallest_that_suffices(m, gamma, delta, kappa2):
    def needed(t):
        largest = max(67.0, 5 * (kappa2 / t) ** gamma)
        return largest * math.log(12 * kappa2 / (t * delta))

    t = uniform_error(m, lambda t: (kappa2 / t) ** gamma, kernel_bound=kappa2, delta=delta)
    assert needed(t) <= m
    if t > 1e-299:
        assert needed(t * (1 - 1e-9)) > m


@settings(max_examples=60, deadline=None)
@given(
    m=st.floats(1.0, 1e8),
    gamma=st.floats(0.05, 1.0),
    n=st.integers(10**3, 10**12),
    T=st.floats(1.0, 3.0),
    norm=st.floats(0.01, 1.0),
)
def test_leverage_error_is_the_smallest_that_suffices(m, gamma, n, T, norm):
    delta = 0.1
    low = 19 / n * math.log(12 * n / delta)

    def needed(t):
        return max(334.0, 78 * T**2 * t**-gamma) * math.log(48 * n / delta)

    t = leverage_error(m, lambda t: t**-gamma, n=n, norm=norm, accuracy=T, delta=delta)
    if t == math.inf:
        assert low > norm or needed(norm) > m
    else:
        assert low <= t <= norm
        assert needed(t) <= m
        assert t == low or needed(t * (1 - 1e-9)) > m


def test_computational_errors_of_steps_and_of_few_dimensions():
    # 𝒩_∞ that jumps: the error is where it does.
    jump = uniform_error(1000, lambda t: 1e6 if t < 0.3 else 1.0)
    assert jump == pytest.approx(0.3, rel=1e-9)
    assert jump >= 0.3
    # Finite dimension d: t = 12κ²/δ·exp(−m/5d).
    t = uniform_error(3000, lambda t: 20.0, delta=0.1)
    assert t == pytest.approx(120 * math.exp(-30))
    assert 0 < uniform_error(1e9, lambda t: 20.0) <= 1e-299


@pytest.mark.parametrize(
    ("sampling", "s", "gamma"), [("uniform", 0, 1), ("leverage", 0.5, 0.5)]
)
def test_the_prescribed_centers_have_an_error_below_the_penalty(sampling, s, gamma):
    n = 10**9
    rule = nystrom_rule(n, norm=1.0, sampling=sampling, s=s, gamma=gamma, Q=1.0)
    if sampling == "uniform":
        error = uniform_error(rule.n_centers)
    else:
        error = leverage_error(rule.n_centers, lambda t: t**-gamma, n=n, norm=1.0)
    assert error <= rule.penalty * (1 + 1e-9)
    # Rounding up to a whole center is all that separates the two.
    assert error == pytest.approx(rule.penalty, rel=1e-3)


@pytest.mark.parametrize(("sampling", "expected"), [("uniform", 1.0), ("leverage", 0.5)])
def test_centers_grow_as_the_dimension_at_the_penalty(sampling, expected):
    # γ = 1/2, s = 1/2: λ = n^{−2/5}; uniform centers 1/λ, by scores λ^{−1/2}.
    def centers(n):
        return nystrom_rule(n, norm=1.0, sampling=sampling, s=0.5, gamma=0.5, Q=1.0).n_centers

    small, large = 10**100, 10**140
    logs = math.log(math.log(large) / math.log(small)) / math.log(large / small)
    power = slope(centers, small, large) - logs
    assert power == pytest.approx(0.4 * expected, abs=2e-3)


def test_terms_of_the_oracle_inequality():
    terms = nystrom_error(
        0.01, 100, 0.04, effective_dimension=4.0, max_dimension=9.0, s=0.5, delta=0.06,
        R=2.0, M=3.0, noise=5.0,
    )  # fmt: skip
    assert terms.sample == pytest.approx(2 * (3 * 3 / 100 + 5 * 0.2) * math.log(100))
    assert terms.computational == pytest.approx(2 * 0.04)
    assert terms.approximation == pytest.approx(2 * 0.01)
    assert terms.total == pytest.approx(
        (terms.sample + terms.computational + terms.approximation) ** 2
    )
    assert ErrorTerms(1.0, 2.0, 3.0).total == 6.0


def test_centers_as_regularizer():
    rule = centers_as_regularizer(10**6, s=0.25, gamma=0.5)
    assert rule.n_centers == math.ceil(3 * 1000 * math.log(10**6))
    assert rule.penalty == pytest.approx(math.log(rule.n_centers) / rule.n_centers)
    assert rule.rate_exponent == pytest.approx(3 / 4)
    assert centers_as_regularizer(100).violated[0].name.endswith("m ≤ n")
    # λ is of the order of the penalty of the theorem, up to logarithms.
    n = 10**60
    ratio = centers_as_regularizer(n).penalty / nystrom_rule(n, norm=1.0).penalty
    assert 1 / math.log(n) < ratio < math.log(n)


def test_fixed_design_rule():
    rule = fixed_design_rule(10**6, 1e-2, lambda t: 0.2 / t, norm=5e4, delta=0.25)
    assert rule.n_centers == math.ceil((32 * 20 / 0.25 + 2) * math.log(5e4 * 1e6 / 0.0025))
    assert rule.factor == 2.0
    assert rule.holds
    few = fixed_design_rule(1000, 1e-2, 20.0)
    assert few.violated[0].detail == f"m is {few.n_centers:,} and n is 1,000"
    impossible = fixed_design_rule(10**9, 1e-2, 200.0)
    assert "the dimension is possible" in impossible.violated[0].name
    with pytest.raises(ValueError, match="delta"):
        fixed_design_rule(1000, 1e-2, 20.0, delta=1.0)


# Fixed design, section 4.3


def random_problem(seed, n, rank, decay):
    """A kernel matrix of given rank, a target and the noise's variance."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(n, rank)))[0]
    K = (U * 10 ** rng.uniform(-2, 2) * np.arange(1, rank + 1) ** -decay) @ U.T
    return K, rng.normal(size=n) * 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-3, 3)


problems = st.builds(
    random_problem,
    seed=st.integers(0, 10**6),
    n=st.just(12),
    rank=st.integers(1, 12),
    decay=st.floats(0, 2),
)


def dense_risk(K, mu, variance, smoother):
    """The definition: squared bias against the projection on the range, and variance."""
    P = K @ np.linalg.pinv(K, rcond=1e-11)
    bias = smoother @ mu - P @ mu
    return (bias @ bias + variance * np.square(smoother).sum()) / len(mu)


@settings(max_examples=50, deadline=None)
@given(problem=problems, penalty=st.floats(1e-4, 10.0), t=st.integers(1, 60))
def test_expected_risk_is_that_of_the_smoother(problem, penalty, t):
    K, mu, variance = problem
    n = len(mu)
    smoother = K @ np.linalg.inv(K + n * penalty * np.eye(n))
    reference = dense_risk(K, mu, variance, smoother)
    assert expected_risk(K, mu, variance, penalty) == pytest.approx(reference, rel=1e-6)

    step = 1.3 * n / np.linalg.norm(K, 2)
    alpha = np.zeros((n, n))
    for _ in range(t):
        alpha = alpha - step / n * (K @ alpha - np.eye(n))
    reference = dense_risk(K, mu, variance, K @ alpha)
    found = expected_risk(K, mu, variance, iterations=t, step_size=step)
    assert found == pytest.approx(reference, rel=1e-6)


def nystrom_matrices(K, m):
    K_nm, K_mm = K[:, :m], K[:m, :m]
    spectrum = np.linalg.svd(K_mm, compute_uv=False)
    rank = np.linalg.matrix_rank(K, tol=1e-11 * np.linalg.norm(K, 2))
    # The references below know K_mm⁺ to the inverse of this only.
    assume(spectrum[min(m, rank) - 1] > 1e-4 * spectrum[0])
    return K_nm, K_mm, K_nm @ np.linalg.pinv(K_mm, rcond=1e-11) @ K_nm.T


@settings(max_examples=50, deadline=None)
@given(problem=problems, penalty=st.floats(1e-3, 10.0), m=st.integers(1, 12))
def test_expected_risk_of_nystrom(problem, penalty, m):
    K, mu, variance = problem
    n = len(mu)
    K_nm, K_mm, L = nystrom_matrices(K, m)
    smoother = K_nm @ np.linalg.pinv(K_nm.T @ K_nm + n * penalty * K_mm, rcond=1e-12) @ K_nm.T
    reference = dense_risk(K, mu, variance, smoother)
    found = expected_risk(K, mu, variance, penalty, approximation=L)
    assert found == pytest.approx(reference, rel=1e-4)


def test_expected_risk_agrees_with_simulated_noise():
    K, mu, _ = random_problem(3, 12, 5, 0.5)
    rng = np.random.default_rng(0)
    smoother = K @ np.linalg.inv(K + 12 * 0.1 * np.eye(12))
    projected = K @ np.linalg.pinv(K) @ mu
    y = mu + rng.normal(size=(200_000, 12)) * 2.0
    risks = np.square(y @ smoother - projected).mean(axis=1)
    error = risks.std() / np.sqrt(len(risks))
    # Five standard errors: fails with probability 6e-7 where the formula is right.
    assert abs(expected_risk(K, mu, 4.0, 0.1) - risks.mean()) < 5 * error


def test_expected_risk_where_there_is_nothing_to_fit():
    assert expected_risk(np.zeros((3, 3)), np.ones(3), 1.0, 0.1) == 0
    assert expected_risk(np.zeros((3, 3)), np.ones(3), 1.0, iterations=5) == 0


def test_expected_risk_refuses_what_it_cannot_use():
    K, mu = np.eye(3), np.ones(3)
    with pytest.raises(ValueError, match="either a penalty or a number of iterations"):
        expected_risk(K, mu, 1.0)
    with pytest.raises(ValueError, match="either a penalty or a number of iterations"):
        expected_risk(K, mu, 1.0, 0.1, iterations=3)
    with pytest.raises(ValueError, match="square kernel matrix"):
        expected_risk(K, np.ones(4), 1.0, 0.1)


@settings(max_examples=100, deadline=None)
@given(problem=problems, share=st.floats(0.01, 1.0))
def test_krls_at_its_best_penalty_is_below_its_bound(problem, share):
    """Theorem 3 with λ* = 1/(n·SNR), and every smaller penalty."""
    K, mu, variance = problem
    n = len(mu)
    norm2 = mu @ np.linalg.pinv(K, rcond=1e-11) @ mu
    rule = krls_rule(n, norm2 / variance)
    rank = np.linalg.matrix_rank(K, tol=1e-11 * np.linalg.norm(K, 2))
    for penalty in (rule.penalty, share * rule.penalty):
        sigma = np.linalg.eigvalsh(K)[n - rank :]
        d_eff = (sigma / (sigma + n * penalty)).sum()
        bound = krls_rule(
            n, norm2 / variance, effective_dimension=d_eff, noise_variance=variance
        ).risk_bound
        assert expected_risk(K, mu, variance, penalty) <= bound * (1 + 1e-6)
        assert bound <= kols_risk(n, rank, variance) * (1 + 1e-9)
    ols = expected_risk(K, mu, variance, 0.0)
    assert ols == pytest.approx(kols_risk(n, rank, variance))


def test_the_printed_penalty_of_the_theorem_is_too_large():
    """K = 11ᵀ, f = c, σ = c: SNR is 1, and λ = 1/SNR breaks the bound by far."""
    n, c = 50, 3.0
    K, mu = np.ones((n, n)), np.full(n, c)

    def bound(penalty):
        return c**2 * (1 / (1 + penalty)) / n

    assert expected_risk(K, mu, c**2, 1.0) >= c**2 / 4 > 10 * bound(1.0)
    best = krls_rule(n, 1.0).penalty
    assert best == pytest.approx(1 / n)
    # With rank 1 the bound is attained at λ*, and no larger penalty will do.
    assert expected_risk(K, mu, c**2, best) == pytest.approx(bound(best))
    assert expected_risk(K, mu, c**2, 1.05 * best) > bound(1.05 * best)


@settings(max_examples=100, deadline=None)
@given(problem=problems, t=st.integers(2, 200), u=st.floats(0.01, 1.0), m=st.integers(1, 12))
def test_early_stopping_is_within_its_factor_of_ridge(problem, t, u, m):
    """Theorems 4 and 6, with every step up to n/‖K_n‖ and any centers."""
    K, mu, variance = problem
    n = len(mu)
    norm = np.linalg.norm(K, 2)
    step = u * n / norm
    rule = early_stopping_rule(n, iterations=t, step_size=step, norm=norm)
    assert rule.holds
    for L in (None, nystrom_matrices(K, m)[2]):
        stopped = expected_risk(K, mu, variance, iterations=t, step_size=step, approximation=L)
        ridge = expected_risk(K, mu, variance, rule.penalty, approximation=L)
        assert stopped <= rule.factor * ridge * (1 + 1e-9)
        # What the docstring says: 4 is enough.
        assert stopped <= 4 * ridge * (1 + 1e-9)


def test_a_step_beyond_the_condition_breaks_the_factor():
    K, mu, n = np.ones((5, 5)), np.ones(5), 5
    rule = early_stopping_rule(n, iterations=2, step_size=1.99, norm=5.0)
    assert [c.name for c in rule.violated] == ["the step is short enough, γ ≤ n/‖K_n‖"]
    stopped = expected_risk(K, mu, 1e-6, iterations=2, step_size=1.99)
    assert stopped > rule.factor * expected_risk(K, mu, 1e-6, rule.penalty)


def test_early_stopping_factor_and_time():
    assert early_stopping_factor(2) == 16
    assert early_stopping_factor(3) == 9
    assert early_stopping_factor(10**9) == pytest.approx(4)
    assert early_stopping_factor(1) == math.inf
    rule = early_stopping_rule(500, penalty=krls_rule(500, 2.0).penalty, kernel_bound=4.0)
    assert rule.iterations == 4 * 500 * 2
    assert rule.step_size == 0.25
    assert rule.penalty == pytest.approx(1 / 1000)
    rounded = early_stopping_rule(500, penalty=0.3)
    assert rounded.iterations == 4
    assert rounded.penalty == pytest.approx(0.25)
    assert early_stopping_rule(500, penalty=30.0).iterations == 2
    too_long = early_stopping_rule(500, penalty=0.3, step_size=1.5)
    assert "γ ≤ 1 is needed and γ is 1.5" in too_long.violated[0].detail
    with pytest.raises(ValueError, match="either a penalty or a number of iterations"):
        early_stopping_rule(500)


def test_nytro_rule_is_the_corollary():
    rule = nytro_rule(10**7, lambda t: 0.1 / t, iterations=500, norm=1e6, delta=0.5)
    centers = (32 * 50 / 0.5 + 2) * math.log(1e7 * 1e6 * 500 / 0.5)
    assert rule.n_centers == math.ceil(centers)
    assert rule.factor == pytest.approx(3 * 4 * (1 + 1 / 499) ** 2)
    assert rule.penalty == pytest.approx(1 / 500)
    assert rule.holds
    # 80 bounds every factor: t = 2 and δ → 1.
    assert nytro_rule(100, 1.0, iterations=2, delta=1 - 1e-9).factor == pytest.approx(80)
    bad = nytro_rule(100, 50.0, iterations=1, step_size=2.0)
    assert len(bad.violated) == 4
    assert "two steps are taken at least" in str(bad)


# Random features, chapter 5


@pytest.mark.parametrize(
    ("r", "gamma", "alpha", "features", "penalty", "rate"),
    [
        (HALF, 1, 1, F(1, 2), F(1, 2), F(1, 2)),  # theorem 9
        (1, 1, 1, F(2, 3), F(1, 3), F(2, 3)),
        (F(3, 4), HALF, 1, F(5, 8), F(1, 2), F(3, 4)),
        (F(3, 4), HALF, HALF, F(1, 2), F(1, 2), F(3, 4)),
        (HALF, F(1, 3), F(1, 3), F(1, 4), F(3, 4), F(3, 4)),  # printed as an example
        (HALF, HALF, HALF, F(1, 3), F(2, 3), F(2, 3)),  # γ/(1 + γ)
        (F(11, 16), F(1, 8), F(1, 8), F(1, 3), F(2, 3), F(11, 12)),  # simulated, figure
        (F(7, 8), F(1, 4), F(1, 4), F(1, 2), F(1, 2), F(7, 8)),  # simulated, figure
        (2, 1, 1, F(2, 3), F(1, 3), F(2, 3)),  # saturated at r = 1
    ],
)
def test_random_feature_exponents_are_those_printed(r, gamma, alpha, features, penalty, rate):
    r, gamma, alpha = float(r), float(gamma), float(alpha)
    assert features_exponent(r, gamma, alpha) == pytest.approx(float(features))
    assert penalty_exponent(r, gamma) == pytest.approx(float(penalty))
    assert rate_exponent(r, gamma) == pytest.approx(float(rate))
    rule = random_features_rule(10**12, r, gamma, alpha)
    assert rule.penalty == pytest.approx(10 ** (-12 * float(penalty)))
    assert rule.n_features == math.ceil(10 ** (12 * float(features)) * (1 - 1e-9))


problem_numbers = {
    "r": st.floats(0.5, 2.0),
    "gamma": st.floats(0.05, 1.0),
    "alpha": st.floats(0.05, 1.0),
}


@settings(max_examples=60, deadline=None)
@given(**problem_numbers)
def test_random_feature_exponents_balance_the_errors(r, gamma, alpha):
    # Bias λ^{2v} and variance λ^{−γ}/n, minimized over log_n λ at n → ∞.
    v = min(r, 1.0)

    def log_risk(x):
        return np.logaddexp(200 * 2 * v * x, 200 * (-gamma * x - 1)) / 200

    found = minimize_scalar(log_risk, bounds=(-2, 0), method="bounded")
    assert found.x == pytest.approx(-penalty_exponent(r, gamma), abs=0.02)
    assert found.fun == pytest.approx(-rate_exponent(r, gamma), abs=0.02)
    # Features: ℱ_∞(λ) = λ^{−α} of them where f is just in the space, 𝒩(λ)/λ at r = 1, and
    # by interpolation the geometric mean of both, with weights 2 − 2v and 2v − 1, between.
    log_lambda = -penalty_exponent(r, gamma)
    power = (2 - 2 * v) * -alpha * log_lambda + (2 * v - 1) * (-gamma - 1) * log_lambda
    assert features_exponent(r, gamma, alpha) == pytest.approx(power)
    # KRLS is optimal up to r = 1, and not beyond.
    lower = lower_bound_exponent(r, gamma)
    assert lower == pytest.approx(2 * r / (2 * r + gamma))
    assume(not 1 < r < 1.001)
    assert (rate_exponent(r, gamma) == pytest.approx(lower)) == (r <= 1)


@settings(max_examples=30, deadline=None)
@given(**problem_numbers)
def test_nystrom_and_random_features_have_the_same_rate(r, gamma, alpha):
    n = 10**9
    rule = nystrom_rule(n, norm=1.0, s=r - 0.5, gamma=gamma, Q=1.0)
    assert rule.rate_exponent == pytest.approx(rate_exponent(r, gamma))
    assert rule.penalty == pytest.approx(n ** -penalty_exponent(r, gamma))
    assert centers_exponent(r, gamma) == pytest.approx(penalty_exponent(r, gamma))
    leverage = centers_exponent(r, gamma, "leverage")
    assert leverage == pytest.approx(gamma * centers_exponent(r, gamma))
    # Nyström never needs more of them.
    assert centers_exponent(r, gamma) <= features_exponent(r, gamma) + 1e-12
    assert leverage <= features_exponent(r, gamma, alpha=gamma) + 1e-12


def test_which_theorem_and_what_it_assumes():
    assert "theorem 9" in random_features_rule(100).name
    assert "theorem 10" in random_features_rule(100, r=0.75).name
    assert "theorem 11" in random_features_rule(100, gamma=0.5, alpha=0.5).name
    assert len(random_features_rule(100, gamma=0.5, alpha=0.5).assumed) == 4
    assert len(random_features_rule(100).assumed) == 2
    assert random_features_rule(100).holds


def test_features_as_regularizer():
    rule = features_as_regularizer(10**6)
    assert rule.values == {"n_features": 1000, "penalty": 1e-3, "rate_exponent": 0.5}
    worst = random_features_rule(10**6)
    assert (rule.n_features, rule.penalty) == (worst.n_features, pytest.approx(worst.penalty))


@pytest.mark.parametrize(
    "call",
    [
        lambda: features_exponent(0.4, 1.0),
        lambda: features_exponent(0.5, 0.0),
        lambda: features_exponent(0.5, 1.1),
        lambda: features_exponent(0.5, 1.0, alpha=0.0),
        lambda: rate_exponent(0.4, 1.0),
        lambda: penalty_exponent(0.5, -1.0),
        lambda: lower_bound_exponent(0.3, 1.0),
        lambda: centers_exponent(0.3, 1.0),
        lambda: centers_exponent(0.5, 1.0, "random"),
        lambda: random_features_rule(0),
        lambda: features_as_regularizer(0),
        lambda: centers_as_regularizer(1),
        lambda: krls_rule(10, 0.0),
        lambda: kols_risk(10, 11, 1.0),
        lambda: uniform_error(0),
        lambda: step_rule("smooth"),
        lambda: step_rule("smooth-constant").rate_exponent(0.0),
        lambda: step_rule("smooth-constant").stopping_time(10, 1.5),
        lambda: step_rule("smooth-constant").stopping_time(0, 1.0),
        lambda: step_rule("smooth-constant").step_sizes([0, 1], 10, 1.0),
        lambda: step_rule("smooth-constant").step_sizes([1], 10, 1.0, eta1=0.0),
        lambda: sgm_bound([], 10, 1.0),
        lambda: sgm_bound([1.0, 2.0], 10, 1.0),
        lambda: sgm_bound([1.0, 0.0], 10, 1.0),
        lambda: sgm_bound([1.0], 10, 2.0),
    ],
)
def test_one_sentence_for_what_cannot_be(call):
    with pytest.raises(ValueError) as raised:
        call()
    assert "\n" not in str(raised.value)


# Stochastic gradient method, section 6.3

# From the eight corollaries: power of the step in 1/n, in 1/t, of n in t*, and of the rate.
COROLLARIES = {
    "smooth-constant": lambda b: (HALF, 0, (b + 3) / (2 * (b + 1)), b / (b + 1)),
    "smooth-decaying": lambda b: (0, HALF, 2 / (b + 1), b / (b + 1)),
    "smooth-one-pass-constant": lambda b: (b / (b + 1), 0, 1, b / (b + 1)),
    "smooth-one-pass-decaying": lambda b: (0, b / (b + 1), 1, b / (b + 1)),
    "nonsmooth-constant": lambda b: (HALF, 0, (2 * b + 3) / (4 * b + 2), b / (2 * b + 1)),
    "nonsmooth-decaying": lambda b: (0, HALF, 2 / (2 * b + 1), b / (2 * b + 1)),
    "nonsmooth-one-pass-constant": lambda b: (
        2 * b / (2 * b + 1), 0, 1, b / (2 * b + 1)
    ),
    "nonsmooth-one-pass-decaying": lambda b: (
        0, 2 * b / (2 * b + 1), 1, b / (2 * b + 1)
    ),
}  # fmt: skip
BETAS = [F(1, 4), F(1, 2), F(3, 4), F(1)]


def test_there_are_eight_corollaries():
    assert tuple(COROLLARIES) == STEP_RULES
    places = [step_rule(name).place for name in STEP_RULES]
    assert places == [f"corollary {k}, section 6.3.{2 if k < 6 else 3}" for k in range(2, 10)]
    assert [step_rule(name).smooth for name in STEP_RULES] == [True] * 4 + [False] * 4


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", STEP_RULES)
def test_each_corollary_is_as_printed(name, beta):
    in_n, in_t, stop, rate = COROLLARIES[name](beta)
    rule, b, n = step_rule(name), float(beta), 4096
    assert rule.rate_exponent(b) == pytest.approx(float(rate))
    assert rule.stopping_exponent(b) == pytest.approx(float(stop))
    t = np.array([1, 2, 10, 1000])
    expected = 0.7 * n ** -float(in_n) * t ** -float(in_t)
    np.testing.assert_allclose(rule.step_sizes(t, n, b, eta1=0.7), expected)
    steps = rule.stopping_time(n, b)
    assert isinstance(steps, int)
    assert steps - 1 < 4096 ** float(stop) * (1 + 1e-9)
    assert steps >= 4096 ** float(stop) * (1 - 1e-9)
    assert rule.epochs(n, b) == math.ceil(max(steps, n) / n - 1e-3)


def test_epochs_as_printed():
    # Smooth: ⌈n^{(1−β)/(2(1+β))}⌉ and ⌈n^{(1−β)/(1+β)}⌉.
    assert step_rule("smooth-constant").epochs(10**6, 1 / 3) == 32  # 31.6
    assert step_rule("smooth-decaying").epochs(10**6, 1 / 3) == 1000
    assert step_rule("smooth-decaying").epochs(10**6, 1.0) == 1
    # Non-smooth, β > 1/2: less than one pass.
    rule = step_rule("nonsmooth-constant")
    assert rule.stopping_time(10**6, 1.0) == math.ceil(10**5)
    assert rule.epochs(10**6, 1.0) == 1


def bound_in_logs(rule, beta, log_n, log_t, in_n, in_t):
    """The log of the printed bound of averages, for steps n^{−in_n}t^{−in_t}."""

    def log_sum(power):
        # Σk^{−power} ≈ t^{1−power}/(1−power), log t at 1, ζ beyond.
        if power < 1 - 1e-9:
            return (1 - power) * log_t - math.log(1 - power)
        return math.log(log_t) if power < 1 + 1e-9 else math.log(power / (power - 1))

    total = log_sum(in_t) - in_n * log_n
    squares = log_sum(2 * in_t) - 2 * in_n * log_n
    sample = (total - log_n) * (1.0 if rule.smooth else 0.5)
    return np.logaddexp.reduce([sample, squares - total, -beta * total])


@pytest.mark.parametrize("beta", [0.25, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("name", STEP_RULES)
def test_each_corollary_minimizes_the_bound_of_its_theorem(name, beta):
    rule = step_rule(name)
    small, large = 4000.0, 6000.0  # logs of n

    def minimum(log_n):
        def log_bound(x):
            if rule.one_pass:  # over the power in the step size, with t = n
                powers = (0.0, x) if rule.decaying else (x, 0.0)
                return bound_in_logs(rule, beta, log_n, log_n, *powers)
            powers = (0.0, 0.5) if rule.decaying else (0.5, 0.0)
            return bound_in_logs(rule, beta, log_n, x * log_n, *powers)

        grid = np.linspace(0.02, 0.98, 400) if rule.one_pass else np.linspace(0.6, 2, 400)
        best = grid[np.argmin([log_bound(x) for x in grid])]
        found = minimize_scalar(log_bound, bounds=(best - 0.01, best + 0.01), method="bounded")
        return found.x, found.fun

    (_, value), (x, larger) = minimum(small), minimum(large)
    assert (larger - value) / (large - small) == pytest.approx(
        -rule.rate_exponent(beta), abs=5e-3
    )
    expected = rule.step_exponent(beta) if rule.one_pass else rule.stopping_exponent(beta)
    if rule.smooth and beta == 1.0 and not rule.one_pass:
        # β = 1: the computational term has the same power, for t beyond t*.
        assert x >= expected - 0.01
    else:
        assert x == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("beta", [0.5, 1.0])
@pytest.mark.parametrize("name", STEP_RULES)
def test_the_bound_of_the_prescribed_steps_falls_at_the_rate(name, beta, average):
    rule = step_rule(name)

    def scaled(n):
        t = rule.stopping_time(n, beta)
        eta = rule.step_sizes(np.arange(1, t + 1), n, beta)
        terms = sgm_bound(eta, n, beta, smooth=rule.smooth, average=average)
        return terms.total * n ** rule.rate_exponent(beta)

    # Up to the log n of the corollaries.
    growth = scaled(30_000) / scaled(1_000)
    assert 0.6 < growth < 1.25 * math.log(30_000) / math.log(1_000)


@pytest.mark.parametrize("smooth", [True, False])
def test_sgm_bound_is_the_printed_sum(smooth):
    eta, n, beta = [1.0, 0.5, 0.25, 0.2], 7, 0.6
    total = sum(eta)
    sample = total / n if smooth else (total / n) ** 0.5
    terms = sgm_bound(eta, n, beta, smooth=smooth)
    squares = sum(x**2 for x in eta)
    assert terms.sample == pytest.approx(sample)
    assert terms.computational == pytest.approx(squares / total)
    assert terms.approximation == pytest.approx((1 / total) ** beta)
    t = len(eta)
    first = sum(eta[k - 1] / (eta[t - 1] * (t - k)) for k in range(1, t))
    second = sum(eta[k - 1] ** 2 / (eta[t - 1] * (t - k)) for k in range(1, t))
    last = sgm_bound(eta, n, beta, smooth=smooth, average=False)
    assert last.sample == pytest.approx(sample * first)
    assert last.computational == pytest.approx(second + eta[-1])
    assert last.approximation == pytest.approx(total ** (1 - beta) / (eta[-1] * t))


@pytest.mark.parametrize("name", ["absolute", "epsilon_insensitive", "hinge", "logistic",
                                  "square", "exponential"])  # fmt: skip
def test_loss_constants_are_those_of_the_derivative(name):
    loss, constants = as_loss(name), loss_constants(name)
    assert constants.convex

    def largest(width):
        a = np.linspace(-width, width, 20_001)
        slopes = [loss.derivative(y, a) for y in (-1.0, 1.0)]
        steepest = max(np.abs(s).max() for s in slopes)
        return steepest, max(np.abs(np.diff(s)).max() / (a[1] - a[0]) for s in slopes)

    steepest, curved = largest(40.0)
    if math.isfinite(constants.slope):
        assert steepest == pytest.approx(constants.slope)
    else:
        assert steepest > 1.9 * largest(20.0)[0]
    if math.isfinite(constants.curvature):
        assert curved == pytest.approx(constants.curvature, rel=1e-3)
        assert constants.smooth
    else:
        # A jump: the quotient grows as the grid is refined, or the loss has no bound.
        assert curved > 100
        assert not constants.smooth


def test_losses_without_constants():
    assert not loss_constants("zero_one").convex

    class Own(Loss):
        def _value(self, y, a):
            return a

        def _derivative(self, y, a):
            return a

    with pytest.raises(ValueError, match="constants of Own are not known"):
        loss_constants(Own())


def test_the_conditions_of_the_corollaries_are_named():
    rule = step_rule("smooth-constant")
    good = rule.prescribe(10_000, 0.5, loss="logistic", kernel_bound=4.0)
    assert good.holds
    assert good.step_size == pytest.approx(2 / (4 * 0.25) / 100)
    assert good.iterations == math.ceil(10_000 ** (3.5 / 3))
    assert good.rate_exponent == pytest.approx(1 / 3)
    long = rule.prescribe(10_000, 0.5, loss="logistic", kernel_bound=4.0, eta1=3.0)
    assert long.violated[0].detail == "η₁ ≤ 2 is needed and η₁ is 3"
    hinge = rule.prescribe(10_000, 0.5, loss=Hinge())
    assert [c.name for c in hinge.violated] == ["the derivative of the loss is Lipschitz"]
    square = rule.prescribe(10_000, 0.5, loss="square")
    assert [c.name for c in square.violated] == ["the derivative of the loss is bounded"]
    assert step_rule("nonsmooth-decaying").prescribe(10_000, loss="hinge").holds
    step = step_rule("nonsmooth-decaying").prescribe(10_000, 0.5, loss="hinge")
    assert (step.step_size, step.step_decay) == (1.0, 0.5)
    zero_one = step_rule("nonsmooth-decaying").prescribe(10_000, loss="zero_one")
    assert "the loss is convex" in [c.name for c in zero_one.violated]
    unknown = rule.prescribe(10_000)
    assert unknown.holds
    assert len(unknown.assumed) == 5


def test_a_step_rule_is_a_value_that_can_be_saved(tmp_path):
    rule = StepRule(smooth=False, one_pass=True, decaying=False)
    assert rule == step_rule("nonsmooth-one-pass-constant")
    assert step_rule(rule) is rule
    imparo.save(rule, tmp_path / "rule.imparo")
    assert imparo.load(tmp_path / "rule.imparo") == rule


# Convergence, section 6.3.1


@pytest.mark.parametrize("name", STEP_RULES)
def test_every_corollary_converges(name):
    rule = step_rule(name)
    for beta in (0.2, 0.5, 1.0):
        found = check_convergence(
            lambda t, n, b=beta: rule.step_sizes(t, n, b),
            lambda n, b=beta: rule.stopping_time(n, b),
        )
        assert found.holds, str(found)


@pytest.mark.parametrize(
    ("steps", "stop", "violated"),
    [
        (lambda t, n: n**-0.3, lambda n: n, ""),  # the examples of the thesis
        (lambda t, n: t**-0.3, lambda n: n, ""),
        (lambda t, n: 1 / t, lambda n: n, ""),  # B is about 1/log n
        (lambda t, n: n**-0.5, lambda n: n**2, "A"),  # Ση = n^{3/2}
        (lambda t, n: t**-0.5, lambda n: n**2, "A"),  # Ση = 2n
        (lambda t, n: t**-2.0, lambda n: n, "B"),  # Ση is bounded
        (lambda t, n: n**-1.0, lambda n: n, "B"),  # Ση = 1
        (lambda t, n: 0.1 + 0 * t, lambda n: round(n**0.5), "B"),  # Ση²/Ση = 0.1
        (lambda t, n: 0.1, lambda n: n, "AB"),
    ],
)
def test_conditions_of_convergence(steps, stop, violated):
    found = check_convergence(steps, stop)
    assert "".join(c.name[1] for c in found.violated) == violated


def test_sums_of_the_conditions_are_sums():
    found = check_convergence(lambda t, n: t**-0.7, lambda n: n)
    for n, A, B in zip(found.n[:2], found.A, found.B, strict=False):
        k = np.arange(1, min(n, 10**7) + 1, dtype=float)
        total, squares = (k**-0.7).sum(), (k**-1.4).sum()
        if n > 10**7:  # the rest by the integral
            low, high = 10**7 + 0.5, n + 0.5
            total += (high**0.3 - low**0.3) / 0.3
            squares += (low**-0.4 - high**-0.4) / 0.4
        assert pytest.approx(total / n, rel=1e-5) == A
        assert pytest.approx((1 + squares) / total, rel=1e-5) == B


def test_steps_that_grow_or_are_not_numbers():
    growing = check_convergence(lambda t, n: np.minimum(t, 100) * n**-0.5, lambda n: n)
    assert "the steps are positive and do not increase" in [c.name for c in growing.violated]
    with pytest.raises(ValueError, match="not finite"):
        check_convergence(lambda t, n: t * np.nan, lambda n: n)
