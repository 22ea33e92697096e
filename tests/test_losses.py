"""Losses: theory (convexity, subgradients, minimizers) and values computed by hand."""

import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imparo.losses import (
    Absolute,
    EpsilonInsensitive,
    Exponential,
    Hinge,
    Logistic,
    Loss,
    Square,
    ZeroOne,
    as_loss,
)
from imparo.persistence import load, save

PIECEWISE_LINEAR = [
    Absolute(),
    EpsilonInsensitive(0.0),
    EpsilonInsensitive(0.25),
    EpsilonInsensitive(1.5),
    Hinge(),
]
SMOOTH = [Square(), Exponential(), Logistic()]
CONVEX = PIECEWISE_LINEAR + SMOOTH
ALL = [*CONVEX, ZeroOne()]

label = st.sampled_from([-1.0, 1.0])
prediction = st.floats(-20, 20)
# Multiples of 1/8 are exact in every operation below, and often fall on the kinks.
eighth = st.integers(-24, 24).map(lambda k: k / 8)


def per_loss(losses):
    return pytest.mark.parametrize("loss", losses, ids=repr)


@pytest.mark.parametrize(
    ("loss", "y", "a", "expected"),
    [
        (Square(), 3.0, 1.0, 4.0),
        (Square(), -1.0, 1.5, 6.25),
        (Absolute(), 3.0, 1.0, 2.0),
        (Absolute(), 1.0, 3.0, 2.0),
        (EpsilonInsensitive(0.5), 3.0, 1.0, 1.5),
        (EpsilonInsensitive(0.5), 1.0, 3.0, 1.5),
        (EpsilonInsensitive(0.5), 1.0, 0.75, 0.0),
        (Hinge(), 1.0, -2.0, 3.0),
        (Hinge(), -1.0, 0.5, 1.5),
        (Hinge(), -1.0, -1.5, 0.0),
        (Exponential(), 1.0, 2.0, math.exp(-2)),
        (Exponential(), -1.0, 2.0, math.exp(2)),
        (Logistic(), 1.0, 0.0, math.log(2)),
        (Logistic(), -1.0, 2.0, math.log(1 + math.exp(2))),
        (ZeroOne(), 1.0, 0.5, 0.0),
        (ZeroOne(), 1.0, -0.5, 1.0),
        (ZeroOne(), -1.0, 0.5, 1.0),
        (ZeroOne(), -1.0, -0.5, 0.0),
        (ZeroOne(), 1.0, 0.0, 0.0),
        (ZeroOne(), -1.0, 0.0, 1.0),
        (ZeroOne(), 1.0, -0.0, 0.0),
        (ZeroOne(), 1.0, math.nan, 1.0),
        (ZeroOne(), -1.0, math.nan, 1.0),
    ],
)
def test_values(loss, y, a, expected):
    assert loss.value(y, a) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("margin", ["hinge", "exponential", "logistic"])
@settings(deadline=None)
@given(y=label, a=prediction)
def test_surrogates_depend_on_the_margin_alone(margin, y, a):
    loss = as_loss(margin)
    assert loss.value(y, a) == loss.value(1.0, y * a)


@per_loss(CONVEX)
@settings(deadline=None)
@given(y=label, a=prediction, b=prediction, share=st.floats(0, 1))
def test_convex_along_chords(loss, y, a, b, share):
    between = share * a + (1 - share) * b
    chord = share * loss.value(y, a) + (1 - share) * loss.value(y, b)
    assert loss.value(y, between) <= chord + 1e-10 * (1 + chord)


@per_loss(CONVEX)
@settings(deadline=None)
@given(y=label, a=prediction, b=prediction)
def test_left_derivative_is_a_subgradient(loss, y, a, b):
    tangent = loss.value(y, a) + loss.derivative(y, a) * (b - a)
    assert loss.value(y, b) >= tangent - 1e-10 * (1 + abs(tangent))


@per_loss(CONVEX)
@settings(deadline=None)
@given(y=label, a=prediction, b=prediction)
def test_left_derivative_does_not_decrease(loss, y, a, b):
    low, high = sorted((a, b))
    assert loss.derivative(y, low) <= loss.derivative(y, high)


@per_loss(SMOOTH)
@settings(deadline=None)
@given(y=label, a=prediction)
def test_derivative_is_the_slope_from_the_left(loss, y, a):
    h = 1e-6
    slope = (loss.value(y, a) - loss.value(y, a - h)) / h
    # The second derivative is at most 2 (square), 1/4 (logistic), ℓ itself (exponential).
    tolerance = 1e-5 * (1 + float(loss.value(y, a)))
    assert loss.derivative(y, a) == pytest.approx(slope, abs=tolerance)


@per_loss(PIECEWISE_LINEAR)
@settings(deadline=None)
@given(y=label, a=eighth)
def test_derivative_is_the_slope_from_the_left_at_kinks_too(loss, y, a):
    h = 2.0**-10
    slope = (loss.value(y, a) - loss.value(y, a - h)) / h
    assert loss.derivative(y, a) == slope


@pytest.mark.parametrize(
    ("loss", "y", "kink", "left", "right"),
    [
        (Absolute(), 2.0, 2.0, -1, 1),
        (Hinge(), 1.0, 1.0, -1, 0),
        (Hinge(), -1.0, -1.0, 0, 1),
        (EpsilonInsensitive(0.25), 1.0, 0.75, -1, 0),
        (EpsilonInsensitive(0.25), 1.0, 1.25, 0, 1),
        (EpsilonInsensitive(0.0), 1.0, 1.0, -1, 1),
    ],
)
def test_derivative_at_a_kink_is_the_left_one(loss, y, kink, left, right):
    assert loss.derivative(y, kink) == left
    assert loss.derivative(y, np.nextafter(kink, np.inf)) == right


@per_loss(CONVEX)
@pytest.mark.parametrize("p", [0.0, 1 / 16, 0.25, 0.5, 0.625, 0.9375, 1.0])
def test_target_minimizes_the_conditional_risk(loss, p):
    grid = np.arange(-640, 641) / 64
    target = float(loss.target(p))
    if np.isinf(target):
        assert p in (0.0, 1.0)
        assert target == (2 * p - 1) * np.inf
        return

    def risk(a):
        return p * loss.value(1, a) + (1 - p) * loss.value(-1, a)

    best = risk(target)
    assert best <= risk(grid).min() + 1e-14
    # None of the other minimizers is closer to 0.
    others = grid[risk(grid) <= best + 1e-14]
    assert abs(target) <= np.min(np.abs(others), initial=np.inf)


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_target_of_the_zero_one_loss_is_the_likelier_label(p):
    target = ZeroOne().target(p)
    risk = p * ZeroOne().value(1, target) + (1 - p) * ZeroOne().value(-1, target)
    assert risk == min(p, 1 - p)
    assert target == {0.0: -1, 0.25: -1, 0.5: 0, 0.75: 1, 1.0: 1}[p]


@pytest.mark.parametrize(
    ("loss", "formula"),
    [
        (Square(), lambda p: 2 * p - 1),
        (Logistic(), lambda p: math.log(p / (1 - p))),
        (Exponential(), lambda p: math.log(p / (1 - p)) / 2),
        (EpsilonInsensitive(0.25), lambda p: math.copysign(0.75, 2 * p - 1)),
        (EpsilonInsensitive(1.5), lambda p: 0.0),
    ],
)
@settings(deadline=None)
@given(p=st.floats(0.01, 0.99).filter(lambda p: p != 0.5))
def test_target_formulas(loss, formula, p):
    assert loss.target(p) == pytest.approx(formula(p), rel=1e-12, abs=1e-12)


def test_logistic_is_stable_at_extremes():
    y, a = np.array([1.0, 1.0, -1.0, -1.0]), np.array([-1000.0, 1000.0, -1000.0, 1000.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(Logistic().value(y, a), [1000, 0, 0, 1000])
        np.testing.assert_array_equal(Logistic().derivative(y, a), [-1, 0, 0, 1])
        np.testing.assert_array_equal(Logistic().target([0.0, 1.0]), [-np.inf, np.inf])
    # log(1 + x) would be 0 here.
    assert Logistic().value(1, 50) == pytest.approx(math.exp(-50), rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponential_overflows_in_silence(dtype):
    y, a = np.array([1, 1, -1], dtype), np.array([-1000, 1000, 1000], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(Exponential().value(y, a), [np.inf, 0, np.inf])
        np.testing.assert_array_equal(Exponential().derivative(y, a), [-np.inf, 0, np.inf])


@per_loss(ALL)
def test_arrays_in_arrays_out(loss):
    y = np.array([[1.0], [-1.0]])
    a = np.array([0.25, -3.0, 1.0])
    for function in [loss.value] + [loss.derivative] * (loss in CONVEX):
        table = function(y, a)
        assert table.shape == (2, 3)
        assert all(table[i, j] == function(y[i, 0], a[j]) for i in (0, 1) for j in range(3))


@per_loss(ALL)
def test_types(loss):
    y32, a32 = np.ones(3, np.float32), np.zeros(3, np.float32)
    assert loss.value(y32, a32).dtype == np.float32
    assert loss.target(a32).dtype == np.float32
    assert loss.value([1, 1], [0, 2]).dtype == np.float64
    if loss in CONVEX:
        assert loss.derivative(y32, a32).dtype == np.float32
        assert loss.derivative([1, 1], [0, 2]).dtype == np.float64


def test_numpy_epsilon_leaves_the_type_of_the_data():
    loss = EpsilonInsensitive(np.float64(0.25))
    assert loss.value(np.ones(3, np.float32), np.zeros(3, np.float32)).dtype == np.float32
    assert loss.target(np.ones(3, np.float32)).dtype == np.float32


def test_inputs_are_not_changed():
    y, a = np.array([1.0, -1.0]), np.array([0.5, 0.5])
    for loss in CONVEX:
        loss.value(y, a)
        loss.derivative(y, a)
    np.testing.assert_array_equal(y, [1, -1])
    np.testing.assert_array_equal(a, [0.5, 0.5])


def test_zero_one_has_no_derivative():
    with pytest.raises(TypeError, match="not convex"):
        ZeroOne().derivative([1.0], [0.5])


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, [0.5, 2.0]])
def test_target_needs_probabilities(p):
    with pytest.raises(ValueError, match="probabilities"):
        Square().target(p)


@pytest.mark.parametrize("epsilon", [-0.1, math.inf, math.nan])
def test_bad_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        EpsilonInsensitive(epsilon)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("square", Square),
        ("absolute", Absolute),
        ("epsilon_insensitive", EpsilonInsensitive),
        ("hinge", Hinge),
        ("exponential", Exponential),
        ("logistic", Logistic),
        ("zero_one", ZeroOne),
    ],
)
def test_as_loss_by_name(name, kind):
    assert type(as_loss(name)) is kind


def test_as_loss_leaves_losses_alone():
    loss = EpsilonInsensitive(0.3)
    assert as_loss(loss) is loss


def test_as_loss_errors():
    with pytest.raises(ValueError, match=r"'squared' is not known; give one of .*square"):
        as_loss("squared")
    for bad in (None, 3, Square):
        with pytest.raises(TypeError, match="loss object or one of"):
            as_loss(bad)


def test_loss_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Loss()


@per_loss(ALL)
def test_losses_are_values(loss, tmp_path):
    save(loss, tmp_path / "loss.imparo")
    for same in (
        eval(repr(loss)),
        pickle.loads(pickle.dumps(loss)),
        load(tmp_path / "loss.imparo"),
    ):
        assert same == loss
        assert hash(same) == hash(loss)
    assert loss not in [other for other in ALL if other is not loss]
