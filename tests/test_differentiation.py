"""Derivatives, filters and resampling that never look ahead."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

from imparo.dynamics.logs.checks import check_gaps, check_stamps
from imparo.dynamics.logs.differentiation import CausalDerivative, differentiate
from imparo.dynamics.logs.log import Log
from imparo.dynamics.logs.signals import low_pass, low_pass_delay, resample


def uneven(n, seed=0, start=0.0):
    return start + np.cumsum(np.random.default_rng(seed).uniform(0.004, 0.02, n))


def by_least_squares(t, x, window, order, lag):
    """q, dq and ddq by numpy's polynomial fit, window by window."""
    out = np.full((3, len(t)), np.nan)
    for i in range(window - 1, len(t)):
        part = slice(i - window + 1, i + 1)
        fit = Polynomial.fit(t[part], x[part], order)
        out[:, i] = [fit.deriv(d)(t[i - lag]) if d else fit(t[i - lag]) for d in range(3)]
    return out


def streamed(t, q, **how):
    derivative = CausalDerivative(**how)
    return [np.array(part) for part in zip(*map(derivative.update, t, q), strict=True)]


windows = st.integers(2, 5).flatmap(
    lambda order: st.tuples(st.just(order), st.integers(order + 1, order + 12))
)


@settings(max_examples=40, deadline=None)
@given(windows, st.data(), st.integers(0, 1000))
def test_polynomials_up_to_the_order_are_differentiated_exactly_on_uneven_stamps(
    sizes, data, seed
):
    order, window = sizes
    lag = data.draw(st.integers(0, window - 1))
    rng = np.random.default_rng(seed)
    t = uneven(window + 5, seed)
    p = Polynomial(rng.normal(size=order + 1))
    dq, ddq = differentiate(t, p(t), window=window, order=order, lag=lag)
    about = t[window - 1 - lag : len(t) - lag]
    # Rounding of q, eps, grows by the noise gain for steps of at least 4 ms.
    gain = CausalDerivative(window, order, lag).noise_gain
    slack = 1e-13 * max(np.abs(p(t)).max(), 1) * 20
    tolerance = slack * (1 + gain.dq / 0.004), slack * (1 + gain.ddq / 0.004**2)
    np.testing.assert_allclose(dq[window - 1 :], p.deriv()(about), atol=tolerance[0])
    np.testing.assert_allclose(ddq[window - 1 :], p.deriv(2)(about), atol=tolerance[1])
    assert np.isnan(dq[: window - 1]).all()


@pytest.mark.parametrize(
    ("window", "order", "lag"), [(3, 2, 0), (11, 2, 0), (9, 3, 4), (7, 5, 2)]
)
def test_the_fit_is_that_of_least_squares(window, order, lag):
    t = uneven(40)
    x = np.random.default_rng(3).normal(size=40)
    q, dq, ddq = by_least_squares(t, x, window, order, lag)
    got = differentiate(t, x, window=window, order=order, lag=lag)
    smooth = streamed(t, x, window=window, order=order, lag=lag)[0]
    for found, expected in zip((smooth, *got), (q, dq, ddq), strict=True):
        np.testing.assert_allclose(
            found, expected, rtol=1e-7, atol=1e-9 * np.nanmax(abs(expected))
        )


def test_even_stamps_give_the_filter_of_savitzky_and_golay():
    from scipy.signal import savgol_coeffs

    step, window = 0.01, 9
    x = np.random.default_rng(0).normal(size=30)
    dq, ddq = differentiate(np.arange(30) * step, x, window=window, order=3, lag=2)
    for d, found in ((1, dq), (2, ddq)):
        place = window - 1 - 2
        kernel = savgol_coeffs(window, 3, d, step, pos=place, use="dot")
        expected = np.correlate(x, kernel, "valid")
        np.testing.assert_allclose(found[window - 1 :], expected, rtol=1e-8, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(windows, st.data(), st.integers(1, 4), st.integers(0, 100))
def test_stream_and_batch_agree_to_the_bit_with_any_number_of_joints(sizes, data, J, seed):
    order, window = sizes
    how = {"window": window, "order": order, "lag": data.draw(st.integers(0, window - 1))}
    how["max_gap"] = 0.019
    t = uneven(40, seed, start=1.7e9)
    q = np.random.default_rng(seed).normal(size=(40, J))
    _, dq, ddq = streamed(t, q, **how)
    batch = differentiate(t, q, **how)
    np.testing.assert_array_equal(batch, [dq, ddq])
    one = differentiate(t, q[:, 0], **how)
    np.testing.assert_array_equal(one, np.array(batch)[..., 0])


def test_long_recordings_agree_to_the_bit_with_their_pieces(monkeypatch):
    t, q = uneven(300), np.random.default_rng(0).normal(size=(300, 3))
    whole = differentiate(t, q)
    monkeypatch.setattr("imparo.dynamics.logs.differentiation._BLOCK", 11 * 3 * 7)
    np.testing.assert_array_equal(differentiate(t, q), whole)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 59), st.integers(0, 100))
def test_samples_of_the_future_change_no_bit_of_the_past(cut, seed):
    rng = np.random.default_rng(seed)
    t, q = uneven(60, seed), rng.normal(size=(60, 2))
    later_t, later_q = t.copy(), q.copy()
    later_t[cut:] += rng.uniform(0, 1, 60 - cut).cumsum()
    later_q[cut:] = rng.normal(size=(60 - cut, 2)) * 100
    grid = np.concatenate([[t[0]], np.sort(rng.uniform(t[0], t[-1], 50))])
    seen = grid < t[cut]
    for function in (
        lambda t, q: differentiate(t, q)[0],
        lambda t, q: differentiate(t, q, window=5, order=3, lag=2, max_gap=0.5)[1],
        lambda t, q: low_pass(t, q, 4.0),
    ):
        np.testing.assert_array_equal(function(t, q)[:cut], function(later_t, later_q)[:cut])
    for how in ("mean", "hold"):
        before, after = (
            resample(*pair, grid, how=how) for pair in ((t, q), (later_t, later_q))
        )
        np.testing.assert_array_equal(before[seen], after[seen])


@pytest.mark.parametrize("lag", [0, 3, 7])
@pytest.mark.parametrize(("window", "order"), [(8, 2), (9, 2), (11, 3), (15, 4)])
def test_the_delay_is_that_of_a_slow_sine(window, order, lag):
    # A pure delay τ turns e^{iωt} into e^{iω(t − τ)}: its phase at a low ω gives τ.
    step, omega = 0.01, 1e-2
    t = np.arange(window) * step
    wave = np.exp(1j * omega * t / step)
    delay = CausalDerivative(window, order, lag).delay
    parts = [
        streamed(t, part, window=window, order=order, lag=lag)
        for part in (wave.real, wave.imag)
    ]
    for d, claimed in enumerate(delay):
        found = parts[0][d][-1] + 1j * parts[1][d][-1]
        phase = np.angle(found / ((1j * omega / step) ** d * wave[-1]))
        assert -phase / omega == pytest.approx(claimed, abs=0.02)
    expected = (window - 1) / 2 if order == 2 else lag
    assert delay == pytest.approx((lag, lag, expected), abs=1e-8)


def test_the_delay_in_seconds_is_that_of_the_stamps_in_the_window():
    # A parabola's slope fit has its acceleration, for a cubic, at a stamp that depends on the
    # spacing: compare with the acceleration of t³, which is 6 (t − delay).
    derivative = CausalDerivative(window=6, order=2)
    assert all(map(math.isnan, derivative.delay_seconds))
    t = uneven(30)
    for stamp in t:
        _, _, ddq = derivative.update(stamp, (stamp - t[-1]) ** 3)
    assert ddq / 6 == pytest.approx(-derivative.delay_seconds.ddq, rel=1e-6)
    assert derivative.delay_seconds.ddq != pytest.approx(2.5 * np.diff(t).mean(), rel=1e-3)


def test_the_noise_gain_is_the_deviation_that_noise_makes():
    step, derivative = 0.02, CausalDerivative(7, 2, 1)
    noise = np.random.default_rng(0).normal(size=200_000)
    dq, ddq = differentiate(np.arange(len(noise)) * step, noise, window=7, lag=1)
    gain = derivative.noise_gain
    assert np.nanstd(dq) == pytest.approx(gain.dq / step, rel=0.01)
    assert np.nanstd(ddq) == pytest.approx(gain.ddq / step**2, rel=0.01)


def test_an_offset_of_the_encoder_costs_no_digits():
    t = uneven(50)
    plain = differentiate(t, t**2)
    far = differentiate(t + 1e6, np.ldexp(np.round(np.ldexp(t**2, 30)), -30) + 4096.0)
    np.testing.assert_allclose(far[0][10:], plain[0][10:], atol=1e-5)


def test_the_window_starts_anew_after_a_gap():
    t = np.concatenate([np.arange(8) * 0.01, 5 + np.arange(8) * 0.01])
    q = np.where(t < 1, t, 7 - 2 * t)
    dq, _ = differentiate(t, q, window=4, max_gap=0.1)
    expected = np.concatenate([[np.nan] * 3, [1.0] * 5, [np.nan] * 3, [-2.0] * 5])
    np.testing.assert_allclose(dq, expected, atol=1e-9)
    stream = CausalDerivative(4, max_gap=0.1)
    ready = [(stream.update(*pair), stream.ready)[1] for pair in zip(t, q, strict=True)]
    assert ready == list(np.isfinite(dq))


def test_a_refused_sample_leaves_the_stream_as_it_was():
    t, q = uneven(20), np.random.default_rng(0).normal(size=(20, 2))
    stream, undisturbed = CausalDerivative(5), CausalDerivative(5)
    for i in range(20):
        for bad in ((t[i], [np.nan, 1.0]), (np.nan, q[i]), (t[i] - 1, q[i]), (t[i], q[i][:1])):
            if i:
                with pytest.raises(ValueError, match=r"finite|exceed|shape"):
                    stream.update(*bad)
        np.testing.assert_array_equal(stream.update(t[i], q[i]), undisturbed.update(t[i], q[i]))
    stream.reset()
    assert not stream.ready
    assert np.isnan(stream.update(0.0, 1.0)[0]).all()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"order": 1}, "order is 1"),
        ({"window": 2}, "window is 2"),
        ({"lag": 11}, "lag is 11"),
        ({"lag": -1}, "lag is -1"),
        ({"max_gap": 0}, "max_gap is 0"),
    ],
)
def test_windows_that_make_no_sense_are_refused(how, message):
    with pytest.raises(ValueError, match=message):
        CausalDerivative(**how)
    with pytest.raises(ValueError, match=message):
        differentiate([0.0, 1.0], [0.0, 1.0], **how)
    with pytest.raises(TypeError, match="whole number"):
        CausalDerivative(window=5.5)


@pytest.mark.parametrize(
    ("t", "message"),
    [
        ([0.0, 1.0, 1.0], "row 2 .* repeats the stamp 1.0"),
        ([0.0, 2.0, 1.0], "row 2 .* is before the stamp 2.0"),
        ([0.0, np.nan, 1.0], "nan in row 1"),
        ([], "shape"),
        ([[0.0, 1.0, 2.0]], "shape"),
    ],
)
def test_bad_stamps_are_named(t, message):
    with pytest.raises(ValueError, match=message):
        check_stamps(t)
    for function in (
        differentiate,
        lambda t, x: low_pass(t, x, 1),
        lambda t, x: resample(t, x, [9]),
    ):
        with pytest.raises(ValueError, match=message):
            function(t, np.zeros(3))


def test_values_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="q has shape"):
        differentiate([0.0, 1.0], [1.0])
    with pytest.raises(ValueError, match="not finite in row 1"):
        low_pass([0.0, 1.0], [1.0, np.inf], 1.0)


# The filter of first order.


def test_the_low_pass_follows_a_step_as_the_differential_equation_does():
    t = uneven(200)
    x = np.ones((200, 2))
    x[0] = 0
    y = low_pass(t, x, cutoff=3.0)
    expected = 1 - np.exp(-2 * np.pi * 3.0 * (t - t[0]))
    np.testing.assert_allclose(y, np.column_stack([expected] * 2), atol=1e-13)


def test_the_low_pass_lags_behind_a_ramp_by_its_delay():
    step, cutoff = 0.01, 2.5
    t = np.arange(3000) * step
    late = t[-1] - low_pass(t, t, cutoff)[-1]
    assert late == pytest.approx(low_pass_delay(cutoff, step), rel=1e-9)
    assert low_pass_delay(cutoff, 1e-9) == pytest.approx(1 / (2 * np.pi * cutoff), rel=1e-6)
    np.testing.assert_array_equal(low_pass(t, t, math.inf), t)
    for cutoff in (0, -1, math.nan):
        with pytest.raises(ValueError, match="cutoff"):
            low_pass(t, t, cutoff)


# Other stamps.


def resampled(t, x, grid, how):
    out = []
    for k, g in enumerate(grid):
        known = [i for i in range(len(t)) if t[i] <= g]
        fresh = [i for i in known if k and t[i] > grid[k - 1]]
        out.append(x[fresh].mean(axis=0) if fresh and how == "mean" else x[known[-1]])
    return np.array(out)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=30, unique=True),
    st.lists(st.integers(0, 70), min_size=1, max_size=30, unique=True),
    st.sampled_from(["mean", "hold"]),
    st.booleans(),
)
def test_resampling_takes_the_mean_since_the_last_stamp_or_the_last_sample(old, new, how, flat):
    # Whole numbers, so that stamps also coincide.
    t, grid = np.sort(old).astype(float), np.sort(new).astype(float)
    x = np.random.default_rng(len(old)).normal(size=(len(t), 2))
    x = x[:, 0] if flat else x
    if grid[0] < t[0]:
        with pytest.raises(ValueError, match="before the first sample"):
            resample(t, x, grid, how=how)
        return
    found = resample(t, x, grid, how=how)
    np.testing.assert_allclose(found, resampled(t, x, grid, how), rtol=0, atol=1e-14)


def test_resampling_states_how_late_it_is():
    t, grid = np.arange(1001) / 1000, np.arange(1, 11) / 10
    late = grid - resample(t, t, grid)
    np.testing.assert_allclose(late[1:], 0.05 - 0.0005, atol=1e-12)
    np.testing.assert_array_equal(resample(t, t**2, t), t**2)
    with pytest.raises(ValueError, match="how is 'linear'"):
        resample(t, t, grid, how="linear")


def test_the_mean_removes_what_would_fold_back():
    # 50 Hz sampled at 10 Hz looks constant; held samples keep it, means do not.
    t, grid = np.arange(1000) / 1000, np.arange(1, 10) / 10
    hum = np.cos(2 * np.pi * 50 * t)
    assert np.abs(resample(t, hum, grid)[1:]).max() < 1e-12
    assert resample(t, hum, grid, how="hold").min() > 0.999


def test_gaps_are_found_and_accepted_on_demand():
    t = np.array([0.0, 0.1, 0.2, 2.0, 2.1])
    with pytest.raises(ValueError, match=r"wrench has a gap of 1\.8 s after t = 0\.2 "):
        check_gaps(t, None, "wrench")
    assert check_gaps(t, 2.0, "wrench") == 2.0
    assert check_gaps(t[:3], None, "wrench") == pytest.approx(1.0)
    with pytest.raises(ValueError, match="max_gap is -1"):
        check_gaps(t, -1, "wrench")


# Logs that are completed by these.


@pytest.fixture
def arm():
    """Stamps, positions, velocities and outputs of two joints."""
    t = np.arange(40) / 50
    q = np.column_stack([np.sin(t), t**2])
    dq = np.column_stack([np.cos(t), 2 * t])
    return t, q, dq, 3 * q - dq


def test_what_was_not_measured_is_derived_from_the_past(arm):
    t, q, dq, y = arm
    log = Log.from_signals(t, q, y=y, window=7)
    for got, expected in zip((log.dq, log.ddq), differentiate(t, q, window=7), strict=True):
        np.testing.assert_array_equal(got, expected[6:])
    np.testing.assert_array_equal(log.t, t[6:])
    np.testing.assert_array_equal(log.y, y[6:])
    assert log.joints == log.outputs == ("joint1", "joint2")
    with_dq = Log.from_signals(t, q, dq, window=7)
    np.testing.assert_array_equal(with_dq.dq, dq[6:])
    np.testing.assert_array_equal(with_dq.ddq, differentiate(t, dq, window=7)[0][6:])
    assert "3 samples (0.06 s) late" in log.notes["ddq"]
    assert "0 samples (0 s) late" in with_dq.notes["ddq"]
    assert "dq" not in with_dq.notes


def test_with_a_lag_a_row_holds_its_own_derivative_known_later(arm):
    t, q, *_ = arm
    log = Log.from_signals(t, q, window=7, lag=3)
    np.testing.assert_array_equal(log.t, t[3:-3])
    np.testing.assert_array_equal(log.q, q[3:-3])
    np.testing.assert_allclose(log.dq[:, 1], 2 * log.t, atol=1e-9)
    np.testing.assert_allclose(log.ddq[:, 1], 2, atol=1e-7)
    assert "known 3 samples after its row" in log.notes["ddq"]
    assert "(0 s) late" in log.notes["ddq"]


def test_a_rate_averages_the_past_of_all_columns_alike(arm):
    t, q, dq, y = arm
    log = Log.from_signals(t, q, dq, dq, y, rate=10)
    np.testing.assert_allclose(log.t, np.arange(8) / 10, atol=1e-15)
    for got, column in ((log.q, q), (log.dq, dq), (log.y, y)):
        np.testing.assert_array_equal(got[0], column[0])
        expected = [column[5 * k + 1 : 5 * k + 6].mean(axis=0) for k in range(7)]
        np.testing.assert_allclose(got[1:], expected, atol=1e-15)
    assert "40 ms at most" in log.notes["resampled"]


def test_gaps_and_short_recordings_are_not_differentiated(arm):
    t, q, dq, _ = arm
    jump = t + 3 * (t > 0.4)
    with pytest.raises(ValueError, match=r"gap of 3\.02 s"):
        Log.from_signals(jump, q)
    with pytest.raises(ValueError, match=r"gap of 3\.02 s"):
        Log.from_signals(jump, q, dq, dq, rate=10)
    assert len(Log.from_signals(jump, q, max_gap=4)) == 30
    assert len(Log.from_signals(jump, q, dq, dq)) == 40
    with pytest.raises(ValueError, match=r"10 samples are too few .* a window of 11"):
        Log.from_signals(t[:10], q[:10])
    for rate in (0, -5, math.nan, math.inf):
        with pytest.raises(ValueError, match="rate is"):
            Log.from_signals(t, q, dq, dq, rate=rate)
