"""Changes of a mean: a window kept as a plain list, and the theory, are the references."""

import copy
import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import imparo
from imparo.lifelong.drift import Change, DriftDetector

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=40, deadline=None)


def bernoulli(seed, *pieces):
    """Return zeros and ones: for each piece (p, n), n of them that are one with chance p."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.random(n) < p for p, n in pieces]).astype(float).tolist()


def pieces_of(seed, grid=8):
    """Return values in steps of 1/grid, whose sums are exact, and whose mean jumps."""
    rng = np.random.default_rng(seed)
    pieces = [
        rng.binomial(grid, rng.random(), rng.integers(1, 300))
        for _ in range(rng.integers(1, 6))
    ]
    return (np.concatenate(pieces) / grid).tolist()


class Naive:
    """All values of the window in a list of buckets, each a list: everything from its text."""

    def __init__(self, delta, check_every, min_window):
        self.delta, self.check_every, self.min_window = delta, check_every, min_window
        self.buckets, self.n = [], 0

    @property
    def window(self):
        return [value for bucket in self.buckets for value in bucket]

    def update(self, value):
        self.n += 1
        self.buckets.append([value])
        size = 1
        while sum(len(bucket) == size for bucket in self.buckets) > 5:
            first = next(i for i, bucket in enumerate(self.buckets) if len(bucket) == size)
            self.buckets[first : first + 2] = [self.buckets[first] + self.buckets[first + 1]]
            size *= 2
        found = None
        while self.n % self.check_every == 0 and (i := self.cut()):
            before = [value for bucket in self.buckets[:i] for value in bucket]
            self.buckets = self.buckets[i:]
            after = self.window
            found = (self.n, mean(before), mean(after), len(before), len(after))
        return found

    def cut(self):
        """Return the number of buckets before the clearest cut, or 0 if none is clear."""
        window = self.window
        center = mean(window)
        variance = mean([(value - center) ** 2 for value in window])
        ratios = [(1.0, 0)]
        for i in range(1, len(self.buckets)):
            n0 = sum(map(len, self.buckets[:i]))
            older, newer = window[:n0], window[n0:]
            if min(len(older), len(newer)) < self.min_window:
                continue
            m = 1 / (1 / len(older) + 1 / len(newer))
            log = math.log(2 / (self.delta / math.log(len(window))))
            bound = math.sqrt(2 / m * variance * log) + 2 / (3 * m) * log
            ratios.append((abs(mean(older) - mean(newer)) / bound, i))
        return max(ratios, key=lambda pair: pair[0])[1]


def mean(values):
    return sum(values) / len(values)


def fields(change):
    parts = ("at", "before", "after", "n_before", "n_after")
    return change and tuple(getattr(change, part) for part in parts)


@often
@given(
    seeds,
    st.sampled_from([0.002, 0.1, 0.9]),
    st.sampled_from([7, 32]),
    st.sampled_from([1, 5, 20]),
)
def test_every_cut_is_that_of_a_window_kept_as_a_list(seed, delta, check_every, min_window):
    ours = DriftDetector(delta, check_every, min_window)
    naive = Naive(delta, check_every, min_window)
    for value in pieces_of(seed):
        found, expected = ours.update(value), naive.update(value)
        assert fields(found) == expected
        assert ours.width == len(naive.window)
        assert ours.mean == mean(naive.window)


@often
@given(st.integers(1, 60), st.integers(1, 9), st.sampled_from([1, 3, 5]))
def test_a_cut_may_fall_between_single_values(n_zeros, n_ones, min_window):
    ours, naive = DriftDetector(0.9, 1, min_window), Naive(0.9, 1, min_window)
    for value in [0] * n_zeros + [1] * n_ones:
        assert fields(ours.update(value)) == naive.update(value)


def test_the_list_and_the_detector_see_changes_to_compare():
    changes = [c for seed in range(20) for c in DriftDetector().update_many(pieces_of(seed))]
    assert sum(c.worse for c in changes) > 5
    assert sum(not c.worse for c in changes) > 5


@often
@given(seeds)
def test_width_and_means_are_those_of_the_last_values(seed):
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.beta(1, b, 400) for b in (8, 0.5, 8)]).tolist()
    detector, start, n_changes, last = DriftDetector(), 0, 0, None
    for n, value in enumerate(values, 1):
        change = detector.update(value)
        if change:
            n_changes += 1
            assert (change.at, change.n_after) == (n, detector.width)
            cut = n - change.n_after
            assert cut - change.n_before >= start
            assert change.before == pytest.approx(np.mean(values[cut - change.n_before : cut]))
            assert change.after == pytest.approx(np.mean(values[cut:n]))
            assert change.worse == (change.after > change.before)
            start, last = cut, change
        assert detector.last_change is last
        assert detector.n_seen == n
        assert detector.width == n - start
        assert detector.mean == pytest.approx(np.mean(values[start:n]), rel=1e-12)
    assert n_changes >= 2


def test_looks_are_taken_every_so_many_values_only():
    values = bernoulli(0, (0.1, 1000), (0.9, 1000), (0.2, 1000))
    for every in (1, 10, 64):
        changes = DriftDetector(check_every=every).update_many(values)
        assert len(changes) >= 2
        assert all(change.at % every == 0 for change in changes)


def test_several_cuts_in_one_look_report_the_last():
    values = [0.5] * 2000 + [0.1] * 500 + [0.3] * 500
    (change,) = DriftDetector(check_every=3000).update_many(values)
    assert change.worse
    assert change.before < 0.2  # the bucket in which 0.1 became 0.3 may be on either side
    assert change.after == pytest.approx(0.3, abs=0.05)
    assert change.n_before < 600


@pytest.mark.parametrize("p", [0.05, 0.2, 0.5])
def test_false_alarms_are_no_more_than_delta_for_each_look(p):
    n, delta = 3200, 0.02
    alarms = sum(
        len(DriftDetector(delta).update_many(bernoulli(seed, (p, n)))) for seed in range(50)
    )
    # The theorem is about one look: at most delta for each, 100 in all here.
    assert alarms <= delta * 50 * n / 32


def test_a_larger_delta_finds_more_in_streams_that_do_not_change():
    found = [
        sum(len(DriftDetector(d, 1).update_many(bernoulli(s, (0.3, 500)))) for s in range(10))
        for d in (0.002, 0.9)
    ]
    assert found[0] <= 0.002 * 5000
    assert found[0] < found[1] <= 0.9 * 5000


def expected_delay(p, q, n, delta):
    """Return how many values after the change the expected difference exceeds its bound."""
    for n1 in range(1, 10_000):
        share = n1 / (n + n1)
        center = p + share * (q - p)
        log = math.log(2 * math.log(n + n1) / delta) * (1 / n + 1 / n1)
        if abs(q - p) > math.sqrt(2 * center * (1 - center) * log) + 2 / 3 * log:
            return n1
    raise AssertionError("never")


@pytest.mark.parametrize(("p", "q"), [(0.1, 0.4), (0.1, 0.2), (0.05, 0.9), (0.4, 0.1)])
def test_an_abrupt_change_is_noticed_when_theory_expects_it(p, q):
    n, delays = 2000, []
    for seed in range(40):
        changes = DriftDetector(check_every=4).update_many(bernoulli(seed, (p, n), (q, 2000)))
        (first, *_) = [change for change in changes if change.at > n]
        assert first.worse == (q > p)
        delays.append(first.at - n)
    expected = expected_delay(p, q, n, 0.002)
    # Of several splits and lucky runs the first counts: rather earlier than expected.
    assert 0.3 * expected < np.median(delays) <= expected + 4
    assert max(delays) < 3 * expected + 16


def test_one_abrupt_change_is_one_cut_and_leaves_the_new_values():
    n_cuts, widths = 0, []
    for seed in range(40):
        detector = DriftDetector()
        n_cuts += len(detector.update_many(bernoulli(seed, (0.1, 2000), (0.4, 1000))))
        widths.append(detector.width)
    assert 40 <= n_cuts <= 44
    assert np.median(widths) == pytest.approx(1000, rel=0.02)


@often
@given(st.integers(40, 3000), st.integers(40, 200))
def test_a_cut_is_within_a_bucket_of_where_the_mean_changed(n_before, n_after):
    detector = DriftDetector(check_every=n_before + n_after)
    (change,) = detector.update_many([0] * n_before + [1] * n_after)
    # Four buckets or more of each smaller size are newer than one of s values.
    s = n_after / 4 + 1
    assert abs(change.n_after - n_after) <= s


@pytest.mark.parametrize(
    "error",
    [
        lambda t: 0.05 + 0.45 / (1 + t / 200),
        lambda t: 0.05 + 0.45 / np.sqrt(1 + t / 50),
        lambda t: np.where(t < 1000, 0.5, 0.1),
    ],
)
def test_errors_that_fall_are_changes_but_none_is_for_the_worse(error):
    chance = error(np.arange(4000))
    for seed in range(20):
        wrong = np.random.default_rng(seed).random(4000) < chance
        detector = DriftDetector()
        changes = detector.update_many(wrong)
        assert changes
        assert not any(change.worse for change in changes)
        assert all(change.after < change.before for change in changes)
        # What was forgotten is gone: the estimate follows the learner.
        assert abs(detector.mean - chance[-1]) < 0.08


@pytest.mark.parametrize("value", [0, 1, 0.1, 0.7, 1 / 3])
def test_values_that_are_all_the_same_are_never_cut(value):
    detector = DriftDetector(delta=0.9, check_every=1, min_window=1)
    assert detector.update_many([value] * 3000) == []
    assert detector.width == 3000
    assert detector.mean == pytest.approx(value)
    assert detector.last_change is None


def numbers_in(thing):
    if isinstance(thing, list | tuple):
        return sum(map(numbers_in, thing))
    assert thing is None or isinstance(thing, int | float)
    return 1


def test_memory_grows_with_the_logarithm_of_the_stream():
    detector, sizes = DriftDetector(), {}
    wrong = bernoulli(3, (0.2, 10_000))
    for n in (10_000, 100_000):
        while detector.n_seen < n:
            assert detector.update_many(wrong) == []
        sizes[n] = sum(map(numbers_in, vars(detector).values()))
        # Four buckets or five of each size, with two sums each, and a few numbers beside.
        assert sizes[n] <= 2 * 5 * (1 + math.log2((n + 4) / 5)) + 10
    assert detector.width == 100_000
    assert sizes[100_000] - sizes[10_000] <= 2 * 5 * math.ceil(math.log2(10))


VALUES = bernoulli(5, (0.1, 700), (0.6, 300), (0.2, 500))


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        iter,
        np.array,
        lambda values: np.array(values, np.float32),
        lambda values: np.array(values, bool),
        lambda values: np.array(values, np.uint8),
        lambda values: [np.float64(value) for value in values],
    ],
)
def test_many_values_at_once_are_the_same_as_one_by_one(form):
    single, many = DriftDetector(), DriftDetector()
    expected = [change for value in VALUES if (change := single.update(value))]
    assert len(expected) >= 2
    assert many.update_many(form(VALUES)) == expected
    assert vars(many) == vars(single)
    assert many.update_many(form(VALUES[:0])) == []
    assert vars(many) == vars(single)


def test_scalars_of_numpy_are_kept_as_plain_numbers():
    detector = DriftDetector(np.float64(0.01), np.int64(8), np.int32(4))
    detector.update_many([np.float32(0.5), np.True_, True, Fraction(1, 3)])
    detector.update(np.float16(0.25))
    leaves = [
        x for key in ("_totals", "_squares") for level in vars(detector)[key] for x in level
    ]
    assert {type(x) for x in leaves} == {float}
    assert {type(vars(detector)[key]) for key in ("check_every", "min_window")} == {int}
    assert detector.mean == pytest.approx((0.5 + 2 + 1 / 3 + 0.25) / 5)


@often
@given(seeds, st.integers(0, 1000))
def test_a_detector_saved_in_mid_stream_goes_on_bit_for_bit(tmp_path_factory, seed, at):
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.beta(1, b, 400) for b in (8, 0.5, 8)]).tolist()
    detector = DriftDetector(delta=0.01, check_every=8)
    detector.update_many(values[:at])
    path = tmp_path_factory.mktemp("drift") / "detector.imparo"
    imparo.save(detector, path)
    loaded, copied = imparo.load(path), copy.deepcopy(detector)
    assert type(loaded) is DriftDetector
    assert vars(loaded) == vars(copied) == vars(detector)
    changes = detector.update_many(values[at:])
    assert vars(copied) == vars(loaded)
    for other in (loaded, copied):
        assert other.update_many(values[at:]) == changes
        assert vars(other) == vars(detector)


def test_a_change_can_be_saved_and_not_altered(tmp_path):
    change = Change(64, 0.1, 1 / 3, 40, 24)
    imparo.save(change, tmp_path / "change.imparo")
    loaded = imparo.load(tmp_path / "change.imparo")
    assert loaded == change
    assert loaded.worse is True
    assert Change(64, 0.4, 1 / 3, 40, 24).worse is False
    with pytest.raises(FrozenInstanceError):
        change.after = 0.0


BAD = [math.nan, math.inf, -math.inf, 2.0, -0.001, 1 + 1e-15, "x", "0.5", None, [0.5], 1j]
BAD += [np.nan, np.array([0.0, 1.0]), np.datetime64("2020-01-01"), 10**400]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: repr(bad)[:20])
def test_a_bad_value_is_refused_and_changes_nothing(bad):
    detector = DriftDetector()
    detector.update_many(VALUES[:31])
    before = copy.deepcopy(vars(detector))
    with pytest.raises(ValueError, match=r"a value must be a number from 0 to 1, not "):
        detector.update(bad)
    assert vars(detector) == before
    with pytest.raises(ValueError, match="a number from 0 to 1"):
        detector.update_many([0, 1, bad, 0])
    assert vars(detector) == before
    assert detector.update(0.5) is None
    assert detector.n_seen == 32


@pytest.mark.parametrize("shape", [(2, 3), (3, 1)])
def test_rows_of_values_are_refused(shape):
    detector = DriftDetector()
    with pytest.raises(ValueError, match="a number from 0 to 1"):
        detector.update_many(np.zeros(shape))
    assert detector.n_seen == 0


@pytest.mark.parametrize(
    "parameters",
    [
        {"delta": 0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"delta": -0.1},
        {"check_every": 0},
        {"check_every": 1.5},
        {"check_every": "often"},
        {"min_window": 0},
        {"min_window": None},
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=name):
        DriftDetector(**parameters)


def test_a_new_detector_has_an_empty_window():
    detector = DriftDetector()
    assert (detector.n_seen, detector.width, detector.last_change) == (0, 0, None)
    assert math.isnan(detector.mean)
    assert DriftDetector(check_every=1, min_window=1).update(1) is None
