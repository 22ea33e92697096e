"""The simulated rates of random features, and the Fourier algebra that they rest on."""

from dataclasses import replace
from fractions import Fraction

import matplotlib as mpl
import numpy as np
import pytest
from scipy.linalg import solve

from imparo.kernels import Spline
from imparo.theory import plot_simulations, simulate_rates
from imparo.theory.spline_model import FourierSample, SplineModel, fourier_sums, gram

mpl.use("agg")

SETTINGS = [(11 / 16, 1 / 8), (7 / 8, 1 / 4)]
NOISE = {11 / 16: 0.03, 7 / 8: 1.0}
# Means of periodic functions over this grid are integrals, up to frequencies of its size.
GRID = np.arange(4096) / 4096


@pytest.fixture(scope="module")
def simulation():
    return simulate_rates(*SETTINGS[1], repetitions=20)


@pytest.fixture(scope="module")
def simulations(simulation):
    """Both settings; of the first, whose exponents have a sharper test, a few numbers."""
    return [simulate_rates(*SETTINGS[0], n=(1000, 10000), repetitions=2), simulation]


def basis(x, degree):
    angles = 2 * np.pi * np.outer(x, np.arange(1, degree + 1))
    return np.hstack(
        [np.ones((len(x), 1)), np.sqrt(2) * np.cos(angles), np.sqrt(2) * np.sin(angles)]
    )


def column(x):
    return np.reshape(x, (-1, 1))


def target(model, x):
    return Spline(model.order)(column(x), column(model.x0))[:, 0]


def integrated_risk(model, prediction):
    return np.mean((prediction - target(model, GRID)) ** 2)


def ridge_on_features(model, x, y, omega, penalty):
    """Return RF-KRLS on the grid, from features ψ/√m and nothing else."""
    kernel = Spline(1 / (2 * model.gamma))
    F = kernel(column(x), column(omega)) / np.sqrt(len(omega))
    A = F.T @ F / len(x) + penalty * np.eye(len(omega))
    w = solve(A, F.T @ y / len(x), assume_a="pos")
    return kernel(column(GRID), column(omega)) @ w / np.sqrt(len(omega))


def expected_risk(model, n, penalty):
    """Return the excess risk on average, for the covariance of all rows, term by term."""
    total = (penalty / (1 + penalty)) ** 2 + model.noise**2 / n / (1 + penalty) ** 2
    for k in range(1, 400):
        sigma = k ** (-1 / model.gamma)
        total += 2 * (penalty / (sigma + penalty) * k**-model.order) ** 2
        total += 2 * model.noise**2 / n * (sigma / (sigma + penalty)) ** 2
    return total


@pytest.mark.parametrize("q", [2.5, 4.0])
def test_an_integral_of_two_kernels_is_one_of_twice_the_order(q):
    x, z = column([0.1, 0.45, 0.8]), column([0.3, 0.99])
    K = Spline(q)
    integral = K(x, column(GRID)) @ K(column(GRID), z) / len(GRID)
    np.testing.assert_allclose(integral, Spline(2 * q)(x, z), atol=1e-8)


def test_sums_and_gram_are_those_of_the_basis():
    x = np.random.default_rng(0).random(50)
    F = basis(x, 7)
    np.testing.assert_allclose(gram(fourier_sums(x, 14)[:, 0]), F.T @ F, atol=1e-12)
    pieces = fourier_sums(x, 14, weights=x, starts=(0, 20, 21))
    for piece, some in zip(pieces.T, (x[:20], x[20:21], x[21:]), strict=True):
        direct = [np.sum(some * np.exp(2j * np.pi * k * some)) for k in range(15)]
        np.testing.assert_allclose(piece, direct, atol=1e-12)


@pytest.mark.parametrize(("r", "gamma"), SETTINGS)
@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_krls_is_that_of_the_kernel_matrix(r, gamma, factor):
    """Also the excess risk: in closed form, and as an integral."""
    model = SplineModel(r, gamma, NOISE[r], x0=0.3)
    n, p = 200, model.order
    x, y = model.draw(n, np.random.default_rng(1))
    best = model.limit(n)[1]
    penalty = factor * best
    K = Spline(1 / gamma)
    alpha = solve(K(column(x)) + n * penalty * np.eye(n), y, assume_a="pos")
    fitted = K(column(GRID), column(x)) @ alpha
    cross = Spline(1 / gamma + p)(column(x), column(0.3))[:, 0]
    risk = alpha @ Spline(2 / gamma)(column(x)) @ alpha - 2 * alpha @ cross
    risk += Spline(2 * p)(column(0.3))[0, 0]
    np.testing.assert_allclose(integrated_risk(model, fitted), risk, rtol=1e-6)
    # What the simulation leaves out changes the risk by little; with more kept, by nothing.
    for degree, rtol in ((model.degree(best), 1e-3), (8 * model.degree(best), 1e-6)):
        sample = FourierSample(model, x, y, degree)
        c = sample.krls(np.array([penalty]))
        np.testing.assert_allclose(sample.risk(c)[0], risk, rtol=rtol)
        difference = basis(GRID, degree) @ c[:, 0] - fitted
        assert np.mean(difference**2) <= rtol * risk


@pytest.mark.parametrize(("r", "gamma"), SETTINGS)
@pytest.mark.parametrize("m", [1, 20, 300])
def test_random_features_are_ridge_regression_on_psi(r, gamma, m):
    model = SplineModel(r, gamma, NOISE[r])
    rng = np.random.default_rng(2)
    x, y = model.draw(400, rng)
    omega, penalty = rng.random(m), model.limit(400)[1]
    risk = integrated_risk(model, ridge_on_features(model, x, y, omega, penalty))
    for factor, rtol in ((1, 1e-2), (8, 1e-4)):
        degree = factor * model.degree(penalty)
        sample = FourierSample(model, x, y, degree)
        c = sample.random_features(penalty, fourier_sums(omega, 2 * degree)[:, 0] / m)
        np.testing.assert_allclose(sample.risk(c)[0], risk, rtol=rtol)
    # Exactly the ridge regression on features of which the same frequencies are kept.
    k = np.append(1, np.tile(np.arange(1, degree + 1), 2))
    B = k[:, None] ** (-0.5 / gamma) * basis(omega, degree).T / np.sqrt(m)
    Psi = basis(x, degree) @ B
    w = solve(Psi.T @ Psi / 400 + penalty * np.eye(m), Psi.T @ y / 400, assume_a="pos")
    np.testing.assert_allclose(c[:, 0], B @ w, atol=1e-8)


@pytest.mark.parametrize(("r", "gamma"), SETTINGS)
def test_frequencies_that_are_left_out_do_not_matter(r, gamma, monkeypatch):
    settings = {"n": (1000, 3000), "repetitions": 2, "random_state": 8}
    few = simulate_rates(r, gamma, **settings)
    monkeypatch.setattr("imparo.theory.spline_model._NEGLIGIBLE", 1e-6)
    many = simulate_rates(r, gamma, **settings)
    np.testing.assert_allclose(few.risk, many.risk, rtol=1e-4)
    np.testing.assert_allclose(few.penalty, many.penalty, rtol=1e-3)
    # At most to the next number that is told apart, 4.4 % away.
    np.testing.assert_allclose(few.n_features, many.n_features, rtol=0.05)


def test_the_target_counts_beyond_the_degree():
    """Doing nothing risks ∫f² = K_2p(x₀, x₀), p = r/γ + 1/2 + ε, at any degree."""
    model = SplineModel(11 / 16, 1 / 8, epsilon=0.25, x0=0.3)
    assert model.order == 6.25
    sample = FourierSample(model, *model.draw(10, np.random.default_rng(0)), degree=2)
    whole = Spline(12.5)(column(0.3))[0]
    np.testing.assert_allclose(sample.risk(np.zeros((5, 1))), whole, rtol=1e-12)


def test_features_may_risk_a_twentieth_more_than_krls(monkeypatch):
    asked, search = [], FourierSample.features_needed

    def recorded(self, penalty, most, rng):
        asked.append((penalty, most))
        return search(self, penalty, most, rng)

    monkeypatch.setattr(FourierSample, "features_needed", recorded)
    found = simulate_rates(0.75, 0.25, n=(100, 200), repetitions=2, noise=1.0)
    expected = np.column_stack([found.penalty.ravel(), 1.05 * found.risk.ravel()])
    np.testing.assert_allclose(asked, expected, rtol=1e-12)


@pytest.mark.parametrize(("r", "gamma"), SETTINGS)
def test_the_penalty_is_the_best_one(r, gamma):
    model = SplineModel(r, gamma, NOISE[r])
    near = model.limit(1000)[1]
    x, y = model.draw(1000, np.random.default_rng(3))
    sample = FourierSample(model, x, y, model.degree(near))
    penalty, risk = sample.best_penalty(near)
    grid = near * np.logspace(-3, 3, 20001)
    risks = sample.risk(sample.krls(grid))
    np.testing.assert_allclose(penalty, grid[np.argmin(risks)], rtol=1e-3)
    assert risk <= risks.min()


def test_the_features_are_the_fewest_within_the_limit():
    """Every size is fitted from ψ, on the draws that the search made."""
    model = SplineModel(0.75, 0.2, noise=2.0)
    x, y = model.draw(200, np.random.default_rng(4))
    near = model.limit(200)[1]
    sample = FourierSample(model, x, y, model.degree(near))
    penalty, risk = sample.best_penalty(near)
    m = sample.features_needed(penalty, 1.05 * risk, np.random.default_rng(5))
    rng, draws, size = np.random.default_rng(5), np.empty((10, 0)), 0
    while size < 2 * m:
        draws = np.hstack([draws, rng.random((10, max(1, size)))])
        size = draws.shape[1]

    def mean_risk(size):
        fits = [ridge_on_features(model, x, y, omega[:size], penalty) for omega in draws]
        return np.mean([integrated_risk(model, fit) for fit in fits])

    octave = 2 ** int(np.ceil(np.log2(m)))
    assert mean_risk(m) <= 1.05 * risk
    assert mean_risk(octave) <= 1.05 * risk
    assert mean_risk(2 * octave) <= 1.05 * risk
    assert mean_risk(octave // 2) > 1.05 * risk
    # The next smaller size that is told apart: a 16th of an octave.
    assert m > 32
    assert mean_risk(int(np.floor(m * 2 ** (-1 / 16))) - 1) > 1.05 * risk


@pytest.mark.parametrize(("r", "gamma"), SETTINGS)
def test_the_limit_is_the_least_expected_risk(r, gamma):
    model = SplineModel(r, gamma, NOISE[r])
    risk, penalty = model.limit(3000)
    np.testing.assert_allclose(risk, expected_risk(model, 3000, penalty), rtol=1e-6)
    for factor in (0.97, 1.03):
        assert expected_risk(model, 3000, factor * penalty) > risk
    rng, risks = np.random.default_rng(6), []
    for _ in range(150):
        sample = FourierSample(model, *model.draw(3000, rng), model.degree(penalty))
        risks.append(sample.risk(sample.krls(np.array([penalty])))[0])
    # Samples do worse than their limit by d_eff/n or so, below one per cent; five standard
    # errors beside that fail once in a million.
    error = np.std(risks) / np.sqrt(len(risks))
    assert abs(np.mean(risks) - risk) < 5 * error + 0.01 * risk


@pytest.mark.parametrize(("r", "gamma"), SETTINGS)
def test_noise_is_the_largest_in_the_asymptotic_regime(r, gamma):
    n = np.array([1000, 2000, 5000, 10000])
    chosen = simulate_rates(r, gamma, n=n.tolist(), repetitions=2).noise
    theory = np.array([-2 * r / (2 * r + gamma), -1 / (2 * r + gamma)])
    penalties = np.logspace(-7, 0, 3001)

    def gap(noise):
        model = SplineModel(r, gamma, noise)
        risks = np.array([expected_risk(model, rows, penalties) for rows in n])
        best = np.column_stack([risks.min(axis=1), penalties[risks.argmin(axis=1)]])
        local = np.diff(np.log(best), axis=0) / np.diff(np.log(n))[:, None]
        return np.abs(local - theory).max()

    noises = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001]
    assert chosen in noises
    # The grid knows log λ to 0.003 and a local exponent to about 0.01.
    assert gap(chosen) <= 0.06
    assert all(gap(noise) > 0.04 for noise in noises[: noises.index(chosen)])


def test_exponents_of_the_theory(simulations):
    # 2r + γ = 11/8 + 1/8 = 3/2; c = 1/8 + 1·(11/8 − 1) = 1/2.
    first = {
        "risk": Fraction(-11, 12),
        "penalty": Fraction(-2, 3),
        "n_features": Fraction(1, 3),
    }
    # 2r + γ = 7/4 + 1/4 = 2; c = 1/4 + 1·(7/4 − 1) = 1.
    second = {"risk": Fraction(-7, 8), "penalty": Fraction(-1, 2), "n_features": Fraction(1, 2)}
    for simulation, expected in zip(simulations, (first, second), strict=True):
        for name, (_, _, theory) in simulation.exponents.items():
            assert theory == pytest.approx(float(expected[name]), abs=1e-15)
        assert set(simulation.exponents) == set(expected)


@pytest.mark.parametrize(
    ("r", "gamma"), [SETTINGS[1], pytest.param(*SETTINGS[0], marks=pytest.mark.slow)]
)
def test_simulated_exponents_agree_with_the_theory(r, gamma, simulation):
    """Within one standard deviation of 20 repetitions, as figure 5.2 of the thesis shows.

    The mean of 20 deviates by more than one standard deviation once in 10⁴ or less, if it
    is without bias.
    """
    if (r, gamma) != SETTINGS[1]:
        simulation = simulate_rates(r, gamma, repetitions=20)
    assert simulation.risk.shape == (20, 8)
    assert (simulation.n.min(), simulation.n.max()) == (1000, 10000)
    for mean, sd, theory in simulation.exponents.values():
        assert abs(mean - theory) <= sd
    assert simulation.agrees == dict.fromkeys(("risk", "penalty", "n_features"), True)


@pytest.mark.parametrize(
    ("r", "gamma"), [SETTINGS[0], pytest.param(*SETTINGS[1], marks=pytest.mark.slow)]
)
def test_exponents_over_two_decades_are_within_standard_errors(r, gamma):
    """A sharper test: one standard deviation leaves room for wrong exponents.

    Each of six means of 30 is off by 3.5 standard errors once in 600.
    """
    n = (1000, 3162, 10000, 31623, 100000)
    simulation = simulate_rates(r, gamma, n=n, repetitions=30, random_state=7)
    for mean, sd, theory in simulation.exponents.values():
        error = sd / np.sqrt(30)
        assert error < 0.08
        assert abs(mean - theory) < 3.5 * error
    mean, sd, _ = simulation.exponents["n_features"]
    assert mean > 3 * sd / np.sqrt(30)
    if r == 11 / 16:
        # Theorem 10, which does not know that α = γ: c = 1 + γ(2r − 1) = 67/64, over 3/2.
        assert mean + 3 * sd / np.sqrt(30) < 67 / 96


def test_slopes_are_least_squares_of_logarithms(simulation):
    for name, (mean, sd, _) in simulation.exponents.items():
        values = np.log(getattr(simulation, name)).T
        slopes = np.polyfit(np.log(simulation.n), values, 1)[0]
        assert mean == pytest.approx(slopes.mean())
        assert sd == pytest.approx(np.sqrt(np.sum((slopes - slopes.mean()) ** 2) / 19))


def test_a_seed_gives_the_same_and_more_repetitions_keep_the_first():
    settings = {"n": (200, 800), "noise": 1.0}
    first = simulate_rates(0.75, 0.25, repetitions=3, random_state=1, **settings)
    again = simulate_rates(0.75, 0.25, repetitions=5, random_state=1, **settings)
    other = simulate_rates(0.75, 0.25, repetitions=3, random_state=2, **settings)
    for name in ("risk", "penalty", "n_features"):
        np.testing.assert_array_equal(getattr(again, name)[:3], getattr(first, name))
        assert len(np.unique(getattr(again, name)[:, 0])) > 1
    assert (first.risk != other.risk).all()


def test_progress_counts_repetitions():
    seen = []
    simulate_rates(
        0.75, 0.25, n=(50, 100), repetitions=2, noise=1.0,
        progress=lambda done, total, what: seen.append((done, total, what)),
    )  # fmt: skip
    assert seen == [(1, 2, "repetitions"), (2, 2, "repetitions")]


def test_the_table_says_what_was_simulated(simulation):
    text = str(simulation)
    assert text.startswith("r = 7/8, γ = 1/4, noise 1, n = 1,000 to 10,000, 20 rep")
    assert text.count("within one sd") == 3
    assert "not within" not in text
    assert "-0.875" in text


def test_a_disagreement_is_seen(simulation):
    steeper = replace(simulation, risk=simulation.risk / simulation.n)
    assert steeper.agrees == {"risk": False, "penalty": True, "n_features": True}
    assert "not within" in str(steeper)


def test_plot_has_the_line_of_the_theory_through_the_mean(simulations):
    fig = plot_simulations(simulations)
    assert len(fig.axes) == 6
    fractions = ["-11/12", "-2/3", "1/3", "-7/8", "-1/2", "1/2"]
    panels = [(s, name) for s in simulations for name in s.exponents]
    for ax, fraction, (simulation, name) in zip(fig.axes, fractions, panels, strict=True):
        dots, line = ax.lines
        assert f"{{{fraction}}}" in line.get_label()
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        logs = np.log(getattr(simulation, name)).mean(axis=0)
        np.testing.assert_allclose(np.log(dots.get_ydata()), logs)
        drawn = np.log(line.get_ydata())
        slope = np.diff(drawn) / np.diff(np.log(line.get_xdata()))
        np.testing.assert_allclose(slope, float(Fraction(fraction)), rtol=1e-9)
        assert drawn.mean() == pytest.approx(logs.mean())
    mpl.pyplot.close(fig)
    given = mpl.figure.Figure()
    assert simulations[0].plot(given) is given
    assert len(given.axes) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"r": 0.4}, "r=0.4"),
        ({"r": 1.2}, "r=1.2"),
        ({"gamma": 0.5}, "gamma=0.5"),
        ({"gamma": 0.0}, "gamma=0.0"),
        ({"n": (100,)}, "two different numbers of rows"),
        ({"n": (100, 200.5)}, "whole number of rows"),
        ({"repetitions": 1}, "repetitions=1"),
        ({"repetitions": 2.5}, "repetitions=2.5"),
        ({"noise": 0.0}, "noise=0.0"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"x0": 1.5}, "x0=1.5"),
    ],
)
def test_wrong_parameters_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        simulate_rates(**({"r": 0.875, "gamma": 0.25, "n": (100, 200)} | wrong))


def test_nothing_to_plot_is_named():
    with pytest.raises(ValueError, match="no simulation to plot"):
        plot_simulations([])


def test_too_many_features_are_named(monkeypatch):
    monkeypatch.setattr("imparo.theory.spline_model._MOST_FEATURES", 16)
    with pytest.raises(ValueError, match=r"more than 16 random features .* more noise"):
        simulate_rates(0.875, 0.25, n=(1000, 2000), noise=0.1)
