"""Which examples are held out, and what is chosen by them: each against its own text."""

import copy
import math

import hypothesis
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from imparo import IncrementalClassifier
from imparo.lifelong import recoding
from imparo.lifelong.reservoir import Example, Reservoir
from incremental_tools import batch, held_rows, scores, shown, stream, weights_of

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=40, deadline=None)


def example(value, code, weight=1.0):
    return Example(np.array([float(value)]), code, weight)


def held(reservoir, code):
    return reservoir.rows[reservoir.codes == code, 0].astype(int)


# The reservoir.


@often
@given(seeds, st.integers(1, 30), st.integers(1, 6))
def test_nothing_is_lost_and_no_more_is_held_than_there_is_room(seed, capacity, n_classes):
    rng = np.random.default_rng(seed)
    reservoir, inside = Reservoir(capacity, 1, np.float64, seed), {}
    for i in range(150):
        code, weight = int(rng.integers(n_classes)), float(rng.random())
        inside[i] = (code, weight)
        gone = reservoir.offer(example(i, code, weight))
        if gone is not None:
            assert inside.pop(int(gone.row[0])) == (gone.code, gone.weight)
        assert len(reservoir) == len(inside) == min(capacity, i + 1)
    found = {int(e.row[0]): (e.code, e.weight) for e in reservoir.take()}
    assert found == inside
    assert len(reservoir) == 0


@often
@given(seeds, st.integers(1, 40), st.integers(1, 7))
def test_room_is_shared_evenly_among_classes(seed, capacity, n_classes):
    """However rare a class is, and whenever it appeared, once it was offered its share."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(n_classes, 0.5)) + 0.02
    reservoir, offered = Reservoir(capacity, 1, np.float64, seed), np.zeros(n_classes, int)
    for i in range(400):
        code = int(rng.choice(n_classes, p=chances / chances.sum()))
        if i < 50 * code:
            continue
        offered[code] += 1
        reservoir.offer(example(i, code))
        counts = np.bincount(reservoir.codes, minlength=n_classes)
        assert (counts <= offered).all()
        # A class has fewer than another by more than one only if all of it is there.
        assert (counts[counts < counts.max() - 1] == offered[counts < counts.max() - 1]).all()


def inclusions(offers, capacity, code, n=300):
    """Return how often each example of a class is held in the end, over n seeds."""
    found = []
    for seed in range(n):
        reservoir = Reservoir(capacity, 1, np.float64, 7919 * seed)
        for value, label in offers:
            reservoir.offer(example(value, label))
        found.append(held(reservoir, code))
    return np.bincount(np.concatenate(found), minlength=max(v for v, _ in offers) + 1)


def in_turn(n_classes, n):
    return [(i, code) for i in range(n) for code in range(n_classes)]


OFFERS = {
    "one class": (in_turn(1, 60), 10, 0),
    "two classes in turn": (in_turn(2, 60), 10, 1),
    "an odd number of places": (in_turn(2, 60), 11, 1),
    "three classes in turn": (in_turn(3, 60), 10, 2),
    "seven classes in turn": (in_turn(7, 60), 30, 3),
    "others come later": ([(i, 0) for i in range(60)] + [(i, 1) for i in range(40)], 15, 0),
    "a late class": ([(i, 0) for i in range(90)] + [(i, 1) for i in range(60)], 15, 1),
    "a rare class": ([(i, int(i % 10 != 0)) for i in range(600)], 9, 1),
}


@pytest.mark.parametrize("name", OFFERS)
def test_each_example_of_a_class_is_as_likely_to_stay(name):
    offers, capacity, code = OFFERS[name]
    values = [value for value, label in offers if label == code]
    counts = inclusions(offers, capacity, code)[values]
    # Sixths of the stream: for single values the law of a sample without replacement.
    sixths = [part.sum() for part in np.array_split(counts, 6)]
    expected = np.array([len(part) for part in np.array_split(counts, 6)], float)
    expected *= counts.sum() / expected.sum()
    assert stats.chisquare(sixths, expected).pvalue > 1e-3
    if len(values) == 60:
        assert stats.chisquare(counts).pvalue > 1e-3


def test_a_reservoir_that_was_emptied_begins_anew():
    found = np.zeros(60)
    for seed in range(300):
        reservoir = Reservoir(10, 1, np.float64, seed)
        for value in range(1000):
            reservoir.offer(example(value, 0))
        reservoir.take()
        for value in range(60):
            reservoir.offer(example(value, 0))
        found += np.bincount(held(reservoir, 0), minlength=60)
    assert stats.chisquare(found).pvalue > 1e-3


def test_two_classes_that_became_one_are_sampled_as_one():
    found = np.zeros(90)
    for seed in range(300):
        reservoir = Reservoir(10, 1, np.float64, seed)
        for value in range(60):
            reservoir.offer(example(value, value % 2))
        reservoir.join(0, 1)
        for value in range(60, 90):
            reservoir.offer(example(value, 0))
        found += np.bincount(held(reservoir, 0), minlength=90)
    assert stats.chisquare(found.reshape(9, 10).sum(axis=1)).pvalue > 1e-3


def test_draws_go_by_the_seed_alone():
    def rows(seed, stop=None):
        reservoir = Reservoir(10, 1, np.float64, seed)
        for value, code in in_turn(3, 100):
            reservoir.offer(example(value, code))
            if value == stop and code == 1:
                reservoir = copy.deepcopy(reservoir)
        return reservoir.rows.ravel().tolist()

    assert rows(3) == rows(3) == rows(3, stop=50)
    assert rows(3) != rows(4)


@often
@given(seeds)
def test_dropped_and_joined_classes_are_renumbered(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 5, 40)
    first, second = (Reservoir(25, 1, np.float64, seed) for _ in range(2))
    for i, code in enumerate(codes):
        first.offer(example(i, int(code)))
        second.offer(example(i, int(code)))
    names = {int(row[0]): int(code) for row, code in zip(first.rows, first.codes, strict=True)}
    gone = int(rng.integers(5))
    kept = int(rng.choice([code for code in range(5) if code != gone]))
    first.drop(gone)
    second.join(kept, gone)
    expected = {i: code - (code > gone) for i, code in names.items() if code != gone}
    assert {int(r[0]): int(c) for r, c in zip(first.rows, first.codes, strict=True)} == expected
    one = {i: kept if code == gone else code for i, code in names.items()}
    one = {i: code - (code > gone) for i, code in one.items()}
    assert {int(r[0]): int(c) for r, c in zip(second.rows, second.codes, strict=True)} == one


# What a classifier holds out.


@often
@given(seeds, st.integers(2, 8))
def test_every_so_many_th_example_of_a_class_is_held_out(seed, holdout):
    X, y = stream(seed, 200, 5)
    model = IncrementalClassifier(penalty=1.0, holdout=holdout).fit(X, y)
    expected = [
        i for i in range(200) if (y[: i + 1] == y[i]).sum() % holdout == 0
    ]  # fmt: skip
    assert_array_equal(held_rows(model), X[expected])
    assert [model.classes_[code] for code in model._reservoir.codes] == y[expected].tolist()
    assert model.counts_.sum() == 200 - len(expected)


def test_what_is_held_out_is_bounded_and_what_makes_room_is_learned():
    X, y = stream(0, 600, 3)
    model = IncrementalClassifier(penalty=1.0, holdout=2, holdout_size=10)
    order, kept = shown(model, X, y)
    assert len(kept) == model.n_held_out_ == 10
    assert sorted([*order, *kept]) == list(range(600))
    assert order != sorted(order)  # some were held out for a while
    assert np.bincount(y[sorted(kept)]).min() >= 3
    W, _ = batch(X[order], y[order], model.classes_, 1.0)
    assert_allclose(weights_of(model), W, atol=1e-10)


def test_the_seed_says_what_is_kept():
    X, y = stream(0, 600, 3)
    kept = [
        held_rows(
            IncrementalClassifier(holdout=2, holdout_size=10, random_state=seed).fit(X, y)
        ).tolist()
        for seed in (0, 0, 1)
    ]
    assert kept[0] == kept[1] != kept[2]


# The penalty.


@often
@given(seeds, st.sampled_from([(6, 1000), (2, 1000), (2, 20)]))
def test_the_penalty_has_the_least_squared_error_on_what_is_held_out(seed, holdout):
    """Judged after 32 examples learned, and then after as many as are held out, or 32."""
    X, y = stream(seed, 260, 3, 6, spread=2.0)
    penalties = [1e-2, 1.0, 30.0, 1e3]
    model = IncrementalClassifier(
        penalty=penalties, holdout=holdout[0], holdout_size=holdout[1], recoding=0.0
    )
    expected, order, due = penalties[2], [], 32
    places = {row.tobytes(): i for i, row in enumerate(X)}
    inside = set()
    for i in range(260):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        now = {places[row.tobytes()] for row in held_rows(model)}
        order += sorted((inside | {i}) - now)
        inside = now
        if len(order) == due:
            rows = sorted(now)
            due += max(32, len(rows))
            classes = model.classes_
            Y = np.array([[float(label == c) for c in classes] for label in y[rows]])
            losses = []
            for penalty in penalties:
                W, _ = batch(X[order], y[order], classes, penalty)
                losses.append(np.square(Y - scores(W, X[rows])).sum() if rows else 0)
            expected = penalties[int(np.argmin(losses))] if rows else expected
        assert model.penalty_ == expected


# The recoding.


def naive_alpha(F, codes, counts):
    """Return α from its text, and how near a tie any decision was."""
    n_held = [codes.count(t) for t in range(len(counts))]
    asked = [i for i, code in enumerate(codes) if n_held[code] >= 3]
    if not asked:
        return 0.7, 1.0
    present = sorted(k for k in counts if k > 0)
    half = len(present) // 2
    median = present[half] if len(present) % 2 else (present[half - 1] + present[half]) / 2
    missing = sum(max(0, 1 - k / median) for k in present)

    def right(i, alpha):
        best, answer = -math.inf, None
        for t, k in enumerate(counts):
            score = F[i][t] * (sum(counts) / k) ** alpha if k > 0 else -math.inf
            if score > best:
                best, answer = score, t
        return answer == codes[i]

    nearest = 1.0
    for step in range(14, 0, -1):
        alpha = 0.7 * step / 14
        lost = {t: [] for t in range(len(counts))}
        for i in asked:
            lost[codes[i]].append(right(i, 0) - right(i, alpha))
        loss = sum(sum(own) / len(own) for own in lost.values() if own)
        error = math.sqrt(
            sum(sum(d * d for d in own) / len(own) ** 2 for own in lost.values() if own)
        )
        bound = max(missing / 5, error)
        if loss != bound:
            nearest = min(nearest, abs(loss - bound))
        if loss <= bound:
            return alpha, nearest
    return 0.0, nearest


def judged(seed, noise):
    """Return scores of examples held out, their classes, and how many were learned."""
    rng = np.random.default_rng(seed)
    T, n = rng.integers(1, 7), rng.integers(1, 80)
    counts = np.floor(10 ** rng.uniform(-0.5, 3.5, T))
    counts[rng.integers(T)] = 500
    codes = rng.choice(np.flatnonzero(counts), n)
    # Frequent classes have larger scores, as least squares gives them.
    F = noise * rng.normal(size=(n, T)) + counts / counts.sum()
    F[np.arange(n), codes] += 0.5
    return F, codes, counts


@settings(max_examples=150, deadline=None)
@given(seeds, st.floats(0.05, 1.5))
@hypothesis.example(13579, 1.0)  # a tie that rounding had turned
def test_the_recoding_is_that_of_plain_loops(seed, noise):
    F, codes, counts = judged(seed, noise)
    expected, nearest = naive_alpha(F.tolist(), codes.tolist(), counts.tolist())
    assume(nearest > 1e-9)
    assert recoding.choose_alpha(F, codes, counts) == pytest.approx(expected, abs=1e-12)


def test_plain_loops_choose_many_values_to_compare():
    chosen = [recoding.choose_alpha(*judged(seed, 0.5)) for seed in range(150)]
    assert len(set(chosen)) > 10


def test_the_recoding_in_use_is_the_one_chosen_by_what_is_held_out():
    """Many columns and few examples: noise of the rare class, times its factor, does harm."""
    rng = np.random.default_rng(1)
    y = rng.permutation(np.repeat(np.arange(5), [100, 100, 100, 100, 4]))
    X = 2 * np.eye(5, 60)[y] + rng.normal(size=(404, 60))
    model = IncrementalClassifier(penalty=1.0)
    order, kept = shown(model, X, y)
    model._select()
    W, counts = batch(X[order], y[order], model.classes_, 1.0)
    rows = sorted(kept)
    expected, _ = naive_alpha(scores(W, X[rows]).tolist(), y[rows].tolist(), counts.tolist())
    assert 0 < expected < 0.7
    assert model.recoding_ == pytest.approx(expected)


def test_before_anything_is_held_out_rare_classes_have_their_say():
    model = IncrementalClassifier(penalty=1.0).fit([[0.0], [1.0]], [0, 1])
    assert model.recoding_ == 0.7
    assert IncrementalClassifier(recoding=0.25).fit([[0.0]], [0]).recoding_ == 0.25


@often
@given(seeds)
def test_classes_with_no_example_have_no_factor_and_even_ones_have_one(seed):
    rng = np.random.default_rng(seed)
    counts, alpha = rng.integers(0, 9, 6) * 1.0, rng.random()
    counts[0] = 3
    expected = [(counts.sum() / k) ** alpha if k else 0 for k in counts]
    assert_allclose(recoding.scale(counts, alpha), expected)
    assert_allclose(recoding.scale(np.full(6, 7.0), alpha), 6**alpha)


# The temperature.


def badness(log_beta, S, codes, counts, alpha):
    """Return the penalized negative log-likelihood, by plain loops."""
    n, known = len(codes), [t for t, k in enumerate(counts) if k > 0]
    raw = [counts[c] / codes.count(c) for c in codes]
    total = (log_beta - math.log(10)) ** 2 / (2 * 0.5**2)
    for s, code, weight in zip(S, codes, raw, strict=True):
        z = {t: math.exp(log_beta) * s[t] / len(known) ** alpha for t in known}
        top = max(z.values())
        log_sum = top + math.log(sum(math.exp(v - top) for v in z.values()))
        total -= weight * n / sum(raw) * (z[code] - log_sum)
    return total


@often
@given(seeds, st.floats(0.05, 1.0), st.integers(1, 60))
def test_the_temperature_is_the_best_of_all(seed, noise, n):
    rng = np.random.default_rng(seed)
    counts, alpha = np.array([50.0, 400, 0, 9]), rng.random()
    codes = rng.choice([0, 1, 3], n)
    F = noise * rng.normal(size=(n, 4))
    F[np.arange(n), codes] += 0.6
    factors = np.array([(459 / k) ** alpha if k else 0 for k in counts])
    S = np.where(factors > 0, F * factors, -np.inf)
    found = math.log(recoding.temperature(S, codes, counts, 3, alpha))
    arguments = S.tolist(), codes.tolist(), counts.tolist(), alpha
    grid = [badness(u, *arguments) for u in np.linspace(math.log(10) - 3, math.log(10) + 3, 61)]
    assert badness(found, *arguments) <= min(grid) + 1e-6
    step = 1e-3
    slope = badness(found + step, *arguments) - badness(found - step, *arguments)
    assert abs(slope / (2 * step)) < 1e-3 * n + 1e-3


def test_few_examples_leave_the_temperature_near_10_and_many_decide_it():
    rng = np.random.default_rng(0)
    found = {}
    for n in (1, 5000):
        codes = rng.integers(0, 2, n)
        margin = rng.normal(size=n)
        # Logistic labels of slope 3: the most likely β is 3.
        codes = (rng.random(n) < 1 / (1 + np.exp(-3 * margin))).astype(int)
        S = np.column_stack([np.zeros(n), margin])
        found[n] = recoding.temperature(S, codes, np.array([500.0, 500]), 2, 0.0)
    assert 5 < found[1] < 20
    assert found[5000] == pytest.approx(3, rel=0.1)


@often
@given(seeds, st.floats(0, 1))
def test_probabilities_are_a_softmax_that_even_classes_do_not_feel_recoding_in(seed, alpha):
    F = np.random.default_rng(seed).normal(size=(5, 4))
    even = recoding.probabilities(F * 4**alpha, 3.0, 4, alpha)
    expected = np.exp(3 * F) / np.exp(3 * F).sum(axis=1, keepdims=True)
    assert_allclose(even, expected, rtol=1e-9)
    some = np.column_stack([F, np.full(5, -np.inf)])
    assert_allclose(recoding.probabilities(some, 3.0, 4, 0.0)[:, :4], expected, rtol=1e-9)
    assert not recoding.probabilities(some, 3.0, 4, 0.0)[:, 4].any()
    assert np.isfinite(recoding.probabilities(1e300 * F, 1.0, 4, 0.0)).all()
