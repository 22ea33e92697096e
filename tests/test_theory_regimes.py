"""The regimes of section 4.3 against the costs they come from, and the figures."""

import colorsys
import itertools
import math
import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from imparo.theory.random_features import features_exponent
from imparo.theory.rates import plot_required_features, rate_exponents
from imparo.theory.regimes import (
    METHODS,
    fastest,
    iteration_limit,
    plot_regimes,
    possible,
    regime_costs,
    subsampling_limit,
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


# Regions


def test_the_two_curves():
    assert subsampling_limit(math.e**2, 1000) == pytest.approx(1000 / (math.log(1000) + 2))
    assert iteration_limit(math.e**3) == pytest.approx(math.e**3 / 3)
    assert iteration_limit(math.e**-3) == pytest.approx(math.e**-3 / 3)
    assert subsampling_limit(1e-6, 1000) == pytest.approx(1000 / math.log(1000))
    assert iteration_limit(1.0) == math.inf
    assert subsampling_limit(1 / 1024, 1024) == math.inf


def test_costs_are_those_of_the_discussion():
    snr, dimension, n = 500.0, 30.0, 10_000
    m, t = dimension * math.log(n * snr), snr
    assert regime_costs(snr, dimension, n) == pytest.approx(
        {"nytro": n * m * t, "early stopping": n**2 * t, "krls": n**3, "nkrls": n * m**2}
    )
    assert set(regime_costs(snr, dimension, n)) == set(METHODS)


@settings(max_examples=300, deadline=None)
@given(
    log_n=st.floats(math.log(1e3), math.log(1e9)),
    x=st.floats(0.05, 2.5),
    y=st.floats(0.01, 1.0),
)
def test_the_regions_are_those_of_the_smallest_cost(log_n, x, y):
    """At every possible point that is not near a boundary, where only logarithms count."""
    n = round(math.exp(log_n))
    snr = math.e * n**x
    dimension = min(snr, n) ** y
    c1, log = subsampling_limit(snr, n), math.log(n * snr)
    assume(not 0.9 < dimension / c1 < 1.1)
    if dimension < c1:
        # NYTRO and Nyström KRLS cost the same at snr/log(n·snr), not at snr/log(snr).
        assume(not 0.9 * snr / log < dimension < 1.1 * iteration_limit(snr))
    else:
        # Early stopping and KRLS cost the same at snr = n.
        assume(not n / 2.5 < snr < 2 * n * math.log(n))
    costs = regime_costs(snr, dimension, n)
    assert fastest(snr, dimension, n) == min(costs, key=costs.get)


def test_all_four_regions_are_among_the_possible():
    n = 10**6
    points = {
        "nkrls": (1e5, 100.0),
        "nytro": (1e4, 5e3),
        "early stopping": (3e5, 2.5e5),
        "krls": (1e8, 5e5),
    }
    for method, (snr, dimension) in points.items():
        assert possible(snr, dimension, n)
        assert fastest(snr, dimension, n) == method
        costs = regime_costs(snr, dimension, n)
        assert min(costs, key=costs.get) == method


@pytest.mark.parametrize("snr", [0.01, 30.0, 1e3, 1e7])
def test_crossing_a_curve_changes_the_method(snr):
    n = 10**5
    subsampled, iterative = {"nytro", "nkrls"}, {"nytro", "early stopping"}
    c1, c2 = subsampling_limit(snr, n), iteration_limit(snr)
    assert fastest(snr, c1 * 0.999, n) in subsampled
    assert fastest(snr, c1 * 1.001, n) not in subsampled
    assert fastest(snr, c2 * 0.999, n) not in iterative
    assert fastest(snr, c2 * 1.001, n) in iterative


def test_what_the_discussion_says():
    n = 10**5
    # Noisy problems: NYTRO, where d̃ is not far below its bound.
    assert fastest(0.01, 0.009, n) == "nytro"
    # Above SNR = 1, NYTRO where the dimension is large enough, and ever more so with n.
    assert fastest(1e3, 10.0, n) == "nkrls"
    assert fastest(1e3, 500.0, n) == "nytro"
    assert subsampling_limit(1e3, 10 * n) > 8 * subsampling_limit(1e3, n)
    # c₁ is quite flat.
    assert subsampling_limit(1e6, 10**9) / subsampling_limit(1e3, 10**9) > 0.75
    # The peak at SNR ≈ 1: Nyström KRLS, and KRLS close to n, neither of which can be.
    assert fastest(1.0, 5e3, n) == "nkrls"
    assert fastest(1.0, 5e4, n) == "krls"
    assert not possible(1.0, 5e3, n)
    assert not possible(1.0, 5e4, n)


def test_what_is_possible():
    """d̃ ≤ min(1/λ, n), attained by rows that share nothing."""
    n, penalty = 40, 1e-3
    leverage = np.diagonal(np.eye(n) @ np.linalg.inv(np.eye(n) * (1 + n * penalty)))
    assert possible(1 / penalty, n * leverage.max(), n)
    assert not possible(1 / penalty, n * 1.001, n)
    assert possible(10.0, 10.0, n)
    assert not possible(10.0, 10.001, n)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fastest(0.0, 1.0, 10),
        lambda: fastest(1.0, 0.0, 10),
        lambda: fastest(1.0, 1.0, 0),
        lambda: fastest(math.nan, 1.0, 10),
        lambda: regime_costs(-1.0, 1.0, 10),
        lambda: possible(1.0, math.inf, 10),
        lambda: subsampling_limit(1.0, 1.5),
        lambda: iteration_limit(-1.0),
        lambda: plot_regimes(10),
        lambda: plot_regimes(1000, here=(0.0, 1.0, "here")),
        lambda: plot_regimes(1000, here=(1.0, (1.0, 2.0), "here")),
        lambda: plot_required_features(plt.subplots(1, 3)[1]),
    ],
)
def test_one_sentence_for_what_cannot_be(call):
    with pytest.raises(ValueError) as raised:
        call()
    assert "\n" not in str(raised.value)


# Figures


def boxes(ax):
    """The place of every text on the axes, as corners of its box, turned as it is."""
    renderer = ax.figure.canvas.get_renderer()
    ax.figure.canvas.draw()
    found = {}
    for text in ax.texts:
        angle = text.get_rotation()
        text.set_rotation(0)
        box = text.get_window_extent(renderer)
        text.set_rotation(angle)
        center = np.array(text.get_window_extent(renderer).get_points()).mean(axis=0)
        a = math.radians(angle)
        half = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [box.width / 2, box.height / 2]
        turned = half @ np.array([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])
        found[text.get_text()] = center + turned
    return found


def overlap(P, Q):
    """Whether two convex quadrilaterals meet, by the separating axes."""
    for corners in (P, Q):
        for edge in np.roll(corners, -1, axis=0) - corners:
            normal = np.array([-edge[1], edge[0]])
            if (P @ normal).max() < (Q @ normal).min() or (Q @ normal).max() < (
                P @ normal
            ).min():
                return False
    return True


LABELS = {
    "NYTRO": "nytro",
    "early\nstopping": "early stopping",
    "KRLS": "krls",
    "Nyström KRLS": "nkrls",
}


@pytest.mark.parametrize("n", [200, 5_000, 10**5, 10**8])
def test_areas_are_labelled_where_they_are_and_labels_do_not_meet(n):
    ax = plot_regimes(n)
    found = boxes(ax)
    assert set(LABELS) < set(found)
    for label, method in LABELS.items():
        snr, dimension = ax.transData.inverted().transform(found[label].mean(axis=0))
        assert possible(snr, dimension, n)
        assert fastest(snr, dimension, n) == method
    frame = ax.get_window_extent()
    for (a, P), (b, Q) in itertools.combinations(found.items(), 2):
        assert not overlap(P, Q), f"{a!r} and {b!r} overlap at n = {n}"
    for label, P in found.items():
        assert all(frame.contains(x, y) for x, y in P), f"{label!r} leaves the axes"


# Hues of the thesis' figure: purple, blue, orange, yellow.
HUES = {
    "nytro": (0.70, 0.83),
    "early stopping": (0.52, 0.66),
    "krls": (0.04, 0.10),
    "nkrls": (0.11, 0.17),
}


@pytest.mark.parametrize(
    ("method", "point"),
    [
        ("nytro", (1e3, 400.0)),
        ("nkrls", (1e7, 10.0)),
        ("early stopping", (2e5, 1e5)),
        ("krls", (1e7, 4e4)),
    ],
)
def test_the_color_at_a_point_is_that_of_its_method(method, point):
    n = 2 * 10**5
    assert fastest(*point, n) == method
    ax = plot_regimes(n)
    for text in list(ax.texts):
        text.remove()  # nothing but areas and curves is left
    ax.figure.canvas.draw()
    image = np.asarray(ax.figure.canvas.buffer_rgba())
    x, y = ax.transData.transform(point)
    red, green, blue = image[round(image.shape[0] - 1 - y), round(x), :3] / 255
    hue, saturation, _ = colorsys.rgb_to_hsv(red, green, blue)
    assert HUES[method][0] < hue < HUES[method][1]
    assert saturation > 0.2


def test_your_data_are_marked_with_error_bars():
    ax = plot_regimes(10_000, here=((3e3, 1e3, 9e3), (120.0, 60.0, 200.0), "your data"))
    assert "your data" in [text.get_text() for text in ax.texts]
    (container,) = ax.containers
    segments = [s for bars in container.lines[2] for s in bars.get_segments()]
    assert sorted(s[:, 0].tolist() for s in segments) == [[1e3, 9e3], [3e3, 3e3]]
    assert sorted(s[:, 1].tolist() for s in segments) == [[60.0, 200.0], [120.0, 120.0]]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    plain = plot_regimes(10_000, here=(3e3, 120.0, "here"))
    assert plain.containers[0].lines[0].get_xydata().tolist() == [[3e3, 120.0]]


def test_the_axes_reach_as_far_as_your_data():
    ax = plot_regimes(1000, here=(1e9, 0.1, "far"))
    assert ax.get_xlim()[1] > 1e9
    assert ax.get_ylim()[0] < 0.1
    ax = plot_regimes(1000, here=(0.05, 0.01, "near"))
    assert ax.get_xlim()[0] < 0.05


def test_figures_can_be_drawn_on_given_axes():
    ax = plt.subplots()[1]
    assert plot_regimes(1000, ax=ax) is ax
    part = plt.figure().subfigures(1, 2)[0].subplots()
    assert plot_regimes(1000, ax=part) is part
    axes = plt.subplots(1, 4)[1]
    assert plot_required_features(axes).ravel().tolist() == axes.tolist()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (lambda: plot_regimes(1000), plot_required_features):
        with pytest.raises(ImportError, match=r"pip install 'imparo\[plot\]'"):
            draw()


def test_maps_of_the_required_features():
    axes = plot_required_features()
    powers = {
        "random features, α = 1": lambda r, g: rate_exponents(r, g)["features"],
        "random features, α = γ": lambda r, g: rate_exponents(r, g, g)["features"],
        "Nyström, uniform centers": lambda r, g: rate_exponents(r, g)["centers"],
        "Nyström, leverage scores": lambda r, g: rate_exponents(r, g)["leverage_centers"],
    }
    assert [ax.get_title() for ax in axes[:, 0]] == list(powers)[:2]
    for ax in axes.flat:
        (mesh,) = [c for c in ax.collections if type(c).__name__ == "QuadMesh"]
        points, values = mesh.get_coordinates().reshape(-1, 2), mesh.get_array().ravel()
        for k in range(300, len(points), 1777):
            r, gamma = points[k]
            if gamma > 0:
                assert values[k] == pytest.approx(powers[ax.get_title()](r, gamma))
        labels = {text.get_text() for text in ax.texts}
        assert labels <= {f"0.{k}" for k in range(1, 10)}
        assert len(labels) >= 4


def test_rate_exponents_are_all_of_a_problem():
    found = rate_exponents(0.75, 0.5, 0.5)
    assert found == pytest.approx(
        {
            "risk": 3 / 4, "lower_bound": 3 / 4, "penalty": 1 / 2, "features": 1 / 2,
            "centers": 1 / 2, "leverage_centers": 1 / 4,
        }
    )  # fmt: skip
    assert rate_exponents(2.0, 1.0)["lower_bound"] == pytest.approx(4 / 5)
    assert rate_exponents(0.9, 0.3)["features"] == features_exponent(0.9, 0.3)
