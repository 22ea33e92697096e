"""Stochastic gradient steps: loops over rows that follow the definition are the references."""

import itertools
import warnings
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_limits

import imparo
from imparo.filters import Landweber
from imparo.kernels import Gaussian
from imparo.losses import (
    Absolute,
    EpsilonInsensitive,
    Exponential,
    Hinge,
    Logistic,
    Loss,
    Square,
)
from imparo.sgm import (
    FeatureSpace,
    GrowingExpansion,
    Schedule,
    Slope,
    State,
    StoredExpansion,
    Sweep,
    slopes,
    take_steps,
)

REGRESSION = [Square(), Absolute(), EpsilonInsensitive(0.3), EpsilonInsensitive(0.0)]
CONVEX = [*REGRESSION, Hinge(), Exponential(), Logistic()]
SPACES = ["dense", "sparse", "stored", "growing", "growing sparse"]
CANDIDATES = Schedule(np.array([0.01, 0.2, 0.7]), np.array([0.0, 0.25, 0.5]))
DTYPES = [np.float64, np.float32]

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=15, deadline=None)
per_loss = pytest.mark.parametrize("loss", CONVEX, ids=repr)
per_space = pytest.mark.parametrize("kind", SPACES)
per_dtype = pytest.mark.parametrize("dtype", DTYPES)


@pytest.fixture(autouse=True, scope="module", params=["compiled", "products"])
def route(request):
    """Recursions by the compiled loop, or without numba by products."""
    if request.param == "compiled" and slopes.compiled() is None:
        pytest.skip("numba is not installed")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "products":
            patch.setattr(slopes, "compiled", lambda: None)
        yield


def assert_close(found, expected, rtol=1e-9):
    """Equal but for rounding errors, which are as large as the largest entries make them."""
    size = np.max(np.abs(expected), initial=0.0)
    assert_allclose(found, expected, rtol=rtol, atol=rtol * size)


def outputs_for(loss, rng, shape):
    if loss in REGRESSION:
        return rng.normal(size=shape)
    return rng.choice([-1.0, 1.0], size=shape)


# The reference.


@dataclass
class Loop:
    """Every iterate of a candidate: weights in rows, the intercept in the last one."""

    iterates: list
    etas: list
    progress: float

    @property
    def last(self):
        return self.iterates[-1]

    @property
    def average(self):
        """Σ_{k≤t}η_kw_k/Σ_{k≤t}η_k: the last step is taken and its iterate left out."""
        weighted = [eta * w for eta, w in zip(self.etas, self.iterates[:-1], strict=True)]
        return sum(weighted) / sum(self.etas)


@dataclass
class Problem:
    """Points, outputs and weights, in a space by name and in numbers that a loop needs.

    A row predicts by its row of ``met`` and adds multiples of its row of ``moved``: twice
    its features, or its kernel values and a unit vector.
    """

    kind: str
    X: np.ndarray
    Y: np.ndarray
    weight: np.ndarray
    loss: object

    @property
    def in_features(self):
        return self.kind in ("dense", "sparse")

    @property
    def kernel_matrix(self):
        D = self.X[:, None] - self.X[None, :]
        return np.exp(-(D**2).sum(axis=2) / 2)

    def loop(self, passes, eta, theta, batch, *, intercept=False, before=0, start=None):
        one = np.full((len(self.X), 1), float(intercept))
        met = np.hstack([self.X if self.in_features else self.kernel_matrix, one])
        moved = np.hstack([self.X if self.in_features else np.eye(len(self.X)), one])
        w = np.zeros((met.shape[1], self.Y.shape[1])) if start is None else start
        found, t = Loop([w], [], 0.0), before
        for order in passes:
            for first in range(0, len(order), batch):
                rows, t = order[first : first + batch], t + 1
                gradient = np.zeros_like(w)
                for i in rows:
                    f = met[i] @ w
                    slope = self.loss.derivative(self.Y[i], f)
                    gradient += self.weight[i] * np.outer(moved[i], slope) / len(rows)
                    found.progress += t * self.weight[i] * self.loss.value(self.Y[i], f).mean()
                w = w - eta * t**-theta * gradient
                found.iterates.append(w)
                found.etas.append(eta * t**-theta)
        return found

    @property
    def candidates(self):
        """Step sizes that do not overflow: the exponential loss takes small ones only."""
        share = 0.1 if self.loss == Exponential() else 1.0
        return Schedule(share * CANDIDATES.eta, CANDIDATES.theta)

    def zero(self, schedule=None, *, averaged=True, intercept=False, dtype=np.float64):
        p = self.X.shape[1] if self.in_features else len(self.X)
        T, schedule = self.Y.shape[1], schedule or self.candidates
        return State.zero(p, T, schedule, dtype, averaged=averaged, intercept=intercept)

    def space(self, state, block):
        X = sparse.csr_array(self.X) if "sparse" in self.kind else self.X
        X = X.astype(state.W.dtype)
        if self.in_features:
            return FeatureSpace(state.W, state.V, block)
        if self.kind == "stored":
            K = self.kernel_matrix.astype(state.W.dtype)
            space = StoredExpansion(K, state.W, state.V)
        else:
            space = GrowingExpansion(Gaussian(1.0), X, state.W, state.V)
        space.block = block
        return space

    def sweep(self, state, batch=1, *, block=64, unit=1.0):
        Y, space = (self.Y / unit).astype(state.W.dtype), self.space(state, block)
        return Sweep(space, state, self.loss, Y, self.weight, batch=batch, unit=unit)

    def rows(self, order, dtype=np.float64):
        """What the space takes for rows."""
        if self.kind == "sparse":
            return sparse.csr_array(self.X.astype(dtype))[order]
        return self.X[order].astype(dtype) if self.in_features else order

    def run(self, sweep, passes, cuts=()):
        for order in passes:
            sweep.begin(len(order))
            for piece in np.split(order, cuts):
                sweep.advance(self.rows(piece, sweep.Y.dtype), piece)
        return sweep


def problem(kind="dense", loss=None, n=40, d=4, T=2, seed=0):
    """Rows half of whose entries are 0, and one that is 0 altogether."""
    rng, loss = np.random.default_rng(seed), loss or Square()
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    X[n // 2] = 0
    weight = rng.uniform(0.2, 2, n)
    Y = outputs_for(loss, rng, (n, T))
    return Problem(kind, X, Y, weight / weight.mean(), loss)


def draws(*lengths, n=40, seed=1):
    """Passes over rows drawn with replacement, so that rows of a step are often equal."""
    rng = np.random.default_rng(seed)
    return [rng.integers(n, size=length) for length in lengths]


def assert_follows(sweep, loops, rtol=1e-9):
    """All candidates are alive and where the loops are, after as many steps."""
    state = sweep.state()
    for c, loop in enumerate(loops):
        expected = loop.average if sweep.averaged else loop.last
        weights, intercept = state.solution(c)
        assert_close(weights, expected[:-1], rtol)
        assert_close(intercept, expected[-1], rtol)
    assert sweep.steps == len(loops[0].etas)
    assert not sweep.dead.any()


KNOWN_LOOPS = {}


def loops_of(data, passes, batch, *, intercept=False):
    """Return the loops of all candidates; those of other spaces and routes are the same."""
    numbers = [array.tobytes() for array in (data.X, data.Y, data.weight, *passes)]
    key = (data.in_features, repr(data.loss), batch, bool(intercept))
    key += (data.X.shape, data.Y.shape, *numbers)
    if key not in KNOWN_LOOPS:
        pairs = zip(data.candidates.eta, data.candidates.theta, strict=True)
        KNOWN_LOOPS[key] = [
            data.loop(passes, eta, theta, batch, intercept=intercept) for eta, theta in pairs
        ]
    return KNOWN_LOOPS[key]


# The recursion of a block.


def block_of(loss, rows, dtype, seed=0, largest=1.0):
    """Random predictions, inner products and step sizes, a millionth to ``largest``."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, 6)) / np.sqrt(6)
    step = np.geomspace(1e-6, 1, 7) * largest * rng.uniform(0.5, 1, size=(rows, 1))
    F = 0.3 * rng.normal(size=(rows, 7))
    Y = outputs_for(loss, rng, (rows, 7))
    return tuple(M.astype(dtype) for M in (F, features @ features.T, step, Y))


def row_by_row(F, gram, group, step, Y, slope):
    F, C = F.copy(), np.zeros_like(F)
    for i in range(len(F)):
        for k in range(i):
            if group[k] < group[i]:
                F[i] += gram[i, k] * C[k]
        C[i] = -step[i] * slope(Y[i], F[i])
    return C, F


def groups_of(rows, seed=0):
    """Steps of one row, of five, of any number, and one step of all rows."""
    index = np.arange(rows)
    anyhow = np.cumsum(np.random.default_rng(seed).random(rows) < 0.4)
    return [index, index // 5, anyhow, 0 * index]


@per_loss
@per_dtype
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 64, 100])
def test_steps_of_a_block_are_those_of_a_loop_over_its_rows(loss, dtype, rows):
    # Steps of the exponential loss that overshoot are a test of their own.
    largest = 0.02 if loss == Exponential() else 1.0
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    for group in groups_of(rows):
        F, gram, step, Y = block_of(loss, rows, dtype, seed=rows, largest=largest)
        expected, met = row_by_row(F, gram, group, step, Y, loss.derivative)
        C = take_steps(F, gram, group, step, Y, Slope(loss))
        assert C.dtype == F.dtype == dtype
        for column in range(F.shape[1]):
            assert_close(C[:, column], expected[:, column], rtol)
            assert_close(F[:, column], met[:, column], rtol)


@per_loss
@pytest.mark.parametrize("largest", [0.1, 1.0, 10.0])
def test_predictions_are_those_that_each_row_met(loss, largest):
    # However errors grow from row to row, what is returned fits together.
    if loss == Exponential():
        largest /= 50
    for group in groups_of(100):
        before, gram, step, Y = block_of(loss, 100, np.float64, largest=largest)
        F = before.copy()
        C = take_steps(F, gram, group, step, Y, Slope(loss))
        assert_allclose(C, -step * loss.derivative(Y, F), rtol=1e-13)
        for i in range(100):
            terms = gram[i, :, None] * C * (group < group[i])[:, None]
            size = np.abs(terms).sum(axis=0) + np.abs(before[i]) + 1
            assert (np.abs(before[i] + terms.sum(axis=0) - F[i]) < 1e-11 * size).all()


@per_dtype
def test_steps_of_a_block_leave_what_they_are_given(dtype):
    F, gram, step, Y = block_of(Logistic(), 40, dtype)
    copies = [M.copy() for M in (gram, step, Y)]
    take_steps(F, gram, np.arange(40), step, Y, Slope(Logistic()))
    for M, copy in zip((gram, step, Y), copies, strict=True):
        assert_array_equal(M, copy)


@per_dtype
@pytest.mark.parametrize("eta", [0.25, 0.5])
def test_exponential_steps_that_are_finite_row_by_row_are_finite_in_a_block(dtype, eta):
    # All rows are equal and nearly all of one class: predictions by the first guesses of
    # the coefficients are far too large, and their exponentials overflow.
    y = np.ones((32, 1), dtype)
    y[[10, 20]] = -1
    F, gram, step = np.zeros((32, 1), dtype), np.ones((32, 32), dtype), np.full_like(y, eta)
    slope, group = Slope(Exponential()), np.arange(32)
    expected, met = row_by_row(F, gram, group, step, y, slope)
    assert np.abs(expected).max() < 10
    C = take_steps(F, gram, group, step, y, slope)
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    assert_close(C, expected, rtol)
    assert_close(F, met, rtol)


@per_dtype
def test_a_huge_output_takes_no_digits_from_rows_orthogonal_to_it(dtype):
    rng = np.random.default_rng(0)
    features = np.hstack([np.zeros((32, 1)), rng.normal(size=(32, 3)) / np.sqrt(3)])
    features[0] = [1, 0, 0, 0]
    gram = (features @ features.T).astype(dtype)
    Y = rng.normal(size=(32, 1)).astype(dtype)
    F, step, slope = np.zeros_like(Y), np.full_like(Y, 0.5), Slope(Square())
    expected = row_by_row(F, gram, np.arange(32), step, Y, slope)[0]
    Y[0] = 0.1 / np.finfo(dtype).eps
    C = take_steps(F, gram, np.arange(32), step, Y, slope)
    assert_close(C[1:], expected[1:], 1e-10 if dtype == np.float64 else 1e-4)


# Sweeps against the definition.


@per_space
@pytest.mark.parametrize("batch", [1, 3, 64, 65, 130, 140])
def test_sweeps_follow_the_definition(kind, batch):
    passes = draws(130, 97, 64)
    for loss, intercept in itertools.product([Square(), EpsilonInsensitive(0.3)], (0, 1)):
        data = problem(kind, loss)
        loops = loops_of(data, passes, batch, intercept=intercept)
        for averaged in (False, True):
            state = data.zero(averaged=averaged, intercept=bool(intercept))
            assert_follows(data.run(data.sweep(state, batch), passes), loops)


@per_space
@per_loss
def test_sweeps_follow_the_definition_with_every_loss(kind, loss):
    data, passes = problem(kind, loss, T=3), draws(90, 50)
    loops = loops_of(data, passes, 3, intercept=True)
    for averaged in (False, True):
        state = data.zero(averaged=averaged, intercept=True)
        sweep = data.run(data.sweep(state, batch=3), passes)
        assert_follows(sweep, loops)


@per_space
@pytest.mark.parametrize("averaged", [False, True])
def test_predictions_are_those_of_the_solutions(kind, averaged):
    data, passes = problem(kind, Logistic()), draws(90, 50)
    sweep = data.run(data.sweep(data.zero(averaged=averaged, intercept=True), 2), passes)
    rows, state = np.array([3, 3, 0, 20, 39]), sweep.state()
    met = data.X if data.in_features else data.kernel_matrix
    found = sweep.predict(data.rows(rows))
    assert found.shape == (5, 3, 2)
    for c in range(3):
        weights, intercept = state.solution(c)
        assert_close(found[:, c], met[rows] @ weights + intercept)


@pytest.mark.parametrize("kind", ["stored", "growing"])
@pytest.mark.parametrize("batch", [1, 7, 64, 65, 512, 513])
def test_blocks_of_expansions_are_as_long_as_they_say(kind, batch):
    data, passes = problem(kind, Hinge(), T=1), draws(1100)
    block = {"stored": StoredExpansion, "growing": GrowingExpansion}[kind].block
    for averaged in (False, True):
        sweep = data.run(data.sweep(data.zero(averaged=averaged), batch, block=block), passes)
        assert_follows(sweep, loops_of(data, passes, batch))


@pytest.mark.parametrize("kind", ["growing", "growing sparse"])
def test_points_of_an_expansion_may_be_evaluated_in_parts(kind, monkeypatch):
    monkeypatch.setattr("imparo.sgm.spaces.CACHED_COLUMNS", 7)
    data, passes = problem(kind, Hinge()), draws(60, 60)
    sweep = data.run(data.sweep(data.zero(), block=16), passes)
    assert_follows(sweep, loops_of(data, passes, 1))


@per_space
def test_single_precision_follows_as_far_as_it_can(kind):
    data, passes = problem(kind, Logistic()), draws(130, 97)
    for batch, averaged in itertools.product([1, 10, 100], (False, True)):
        state = data.zero(averaged=averaged, intercept=True, dtype=np.float32)
        sweep = data.run(data.sweep(state, batch), passes)
        assert_follows(sweep, loops_of(data, passes, batch, intercept=True), rtol=1e-4)
        assert sweep.state().W.dtype == np.float32
        assert sweep.predict(data.rows(passes[0], np.float32)).dtype == np.float32


@per_space
def test_before_any_step_the_average_is_the_first_iterate(kind):
    data = problem(kind)
    state = data.zero(intercept=True)
    state = replace(state, W=state.W + 1.5, intercept=state.intercept - 0.5)
    sweep = data.sweep(state)
    weights, intercept = sweep.state().solution(1)
    assert_array_equal(weights, 1.5)
    assert_array_equal(intercept, -0.5)
    met = data.X if data.in_features else data.kernel_matrix
    expected = 1.5 * met.sum(axis=1) - 0.5
    found = sweep.predict(data.rows(np.arange(40)))
    assert_close(found, np.broadcast_to(expected[:, None, None], found.shape))


@per_space
@pytest.mark.parametrize("averaged", [False, True])
def test_steps_go_on_from_any_weights_and_any_time(kind, averaged):
    data, passes, rng = problem(kind, Logistic()), draws(70), np.random.default_rng(3)
    state = data.zero(averaged=averaged, intercept=True)
    W, intercept = rng.normal(size=state.W.shape), rng.normal(size=6)
    state = replace(state, W=W, intercept=intercept, steps=25)
    found = data.run(data.sweep(state, batch=3), passes).state()
    pairs = zip(CANDIDATES.eta, CANDIDATES.theta, strict=True)
    for c, (eta, theta) in enumerate(pairs):
        columns = slice(2 * c, 2 * c + 2)
        start = np.vstack([W[:, columns], intercept[columns]])
        loop = data.loop(passes, eta, theta, 3, intercept=True, before=25, start=start)
        expected = loop.average if averaged else loop.last
        assert_close(np.vstack(found.solution(c)), expected)
    assert found.steps == 25 + 24


# Pieces.


@per_space
@given(
    batch=st.sampled_from([1, 3, 16, 17, 40, 100, 120]),
    cuts=st.lists(st.integers(0, 100), max_size=6).map(sorted),
)
@often
def test_rows_may_come_in_any_pieces(kind, batch, cuts):
    data, passes = problem(kind, Logistic()), draws(100, 85)
    sweeps = [
        data.run(data.sweep(data.zero(intercept=True), batch, block=16), passes, pieces)
        for pieces in ((), cuts)
    ]
    assert_same(*sweeps, rtol=1e-11)


@per_space
def test_the_length_of_blocks_does_not_matter(kind):
    data, passes = problem(kind, Logistic()), draws(100, 85)
    sweeps = [
        data.run(data.sweep(data.zero(intercept=True), 5, block=block), passes)
        for block in (1, 5, 12, 64, 1000)
    ]
    for other in sweeps[1:]:
        assert_same(sweeps[0], other, rtol=1e-10)


def assert_same(one, other, rtol=1e-10):
    """Two sweeps are at the same place, and remember the same."""
    a, b = one.state(), other.state()
    assert a.steps == b.steps
    for name in ("W", "V", "intercept", "sums", "a", "progressive"):
        found, expected = getattr(a, name), getattr(b, name)
        assert (found is None) == (expected is None)
        if found is not None:
            assert_close(found, expected, rtol)


# Gradient descent.


@pytest.mark.parametrize("kind", ["stored", "growing", "dense", "sparse"])
@pytest.mark.parametrize("batch", [40, 55])
def test_full_batches_with_a_constant_step_are_landweber_iteration(kind, batch):
    data, n = problem(kind, T=3), 40
    data.weight = np.ones(n)
    M, y = data.kernel_matrix, data.Y
    if data.in_features:
        M, y = data.X.T @ data.X, data.X.T @ data.Y
    eta = 0.9 / np.linalg.eigvalsh(M)[-1]
    iterates = list(islice(Landweber(step=eta).iterates(M, y, primal=data.in_features), 20))
    # The mean of (y − a)² has slope 2(a − y)/n.
    schedule = Schedule(np.array([n * eta / 2]), np.zeros(1))
    for averaged in (False, True):
        sweep = data.sweep(data.zero(schedule, averaged=averaged), batch, block=16)
        for t, alpha in enumerate(iterates, start=1):
            data.run(sweep, [np.random.default_rng(t).permutation(n)])
            # w₁ = 0 is one of the t iterates.
            expected = sum(iterates[: t - 1], np.zeros_like(alpha)) / t if averaged else alpha
            found = sweep.state().solution()[0]
            assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(alpha).max())


# Candidates that are left, and candidates that are lost.


@per_space
@pytest.mark.parametrize(
    ("some", "positions"),
    [(np.array([2, 0]), [2, 0]), (np.array([False, True, False]), [1])],
    ids=["positions", "mask"],
)
def test_the_candidates_kept_go_on_as_if_alone(kind, some, positions):
    for batch, intercept in ((1, True), (70, False)):
        data, passes = problem(kind, EpsilonInsensitive(0.8)), draws(100, 60, 30)
        alone = data.sweep(data.zero(CANDIDATES.take(positions), intercept=intercept), batch)
        among = data.sweep(data.zero(intercept=intercept), batch)
        alone.counts_progress = among.counts_progress = True
        data.run(alone, passes)
        data.run(among, passes[:1])
        among.keep(some)
        assert_array_equal(among.candidates, positions)
        data.run(among, passes[1:])
        assert_same(among, alone)
        rows = data.rows(np.arange(40))
        assert_close(among.predict(rows), alone.predict(rows))


def test_keeping_twice_counts_among_those_left():
    data, passes = problem("growing", Hinge()), draws(50)
    sweep = data.run(data.sweep(data.zero()), passes)
    sweep.keep(np.array([1, 2]))
    sweep.keep(np.array([1]))
    assert_array_equal(sweep.candidates, [2])
    assert_same(sweep, data.run(data.sweep(data.zero(CANDIDATES.take([2]))), passes))


@per_space
@per_dtype
@pytest.mark.parametrize("loss", [Square(), Exponential()], ids=repr)
@pytest.mark.parametrize("averaged", [False, True])
def test_candidates_that_overflow_die_and_disturb_no_other(kind, dtype, loss, averaged):
    enormous = 1e25 if loss == Square() else 1e3
    data, passes = problem(kind, loss), draws(60, 60)
    eta, theta = np.array([0.01, enormous, 0.03, enormous]), np.array([0.5, 0.0, 0.25, 0.1])
    options = {"averaged": averaged, "intercept": True, "dtype": dtype}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sweep = data.run(data.sweep(data.zero(Schedule(eta, theta), **options)), passes)
        assert_array_equal(sweep.dead, [False, True, False, True])
        sweep.predict(data.rows(np.arange(40), dtype))
        ends = sweep.state().W[:, 2:4].copy()
        data.run(sweep, passes)
    assert_array_equal(sweep.state().W[:, 2:4], ends)
    sweep.keep(~sweep.dead)
    assert not sweep.dead.any()
    both = Schedule(eta[[0, 2]], theta[[0, 2]])
    alone = data.run(data.sweep(data.zero(both, **options)), passes + passes)
    assert np.isfinite(alone.state().W).all()
    assert_same(sweep, alone, 1e-9 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("kind", ["dense", "growing"])
@pytest.mark.parametrize("loss", [*CONVEX[1:5], Logistic()], ids=repr)
@pytest.mark.parametrize("averaged", [False, True])
def test_candidates_die_of_sums_that_overflow_too(kind, loss, averaged):
    # Slopes up to 1 are finite at predictions that are not.
    data, passes = problem(kind, loss), draws(200, 200)
    schedule = Schedule(np.array([1e38, 0.1]), np.zeros(2))
    options = {"averaged": averaged, "intercept": True, "dtype": np.float32}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sweep = data.run(data.sweep(data.zero(schedule, **options)), passes)
    assert_array_equal(sweep.dead, [True, False])
    alone = data.run(data.sweep(data.zero(schedule.take([1]), **options)), passes)
    sweep.keep(~sweep.dead)
    assert_same(sweep, alone, 1e-4)


def test_a_candidate_dies_with_one_of_its_outputs():
    data, passes = problem("dense", T=3), draws(200)
    schedule = Schedule(np.array([0.01, 40.0]), np.zeros(2))
    assert not data.run(data.sweep(data.zero(schedule)), passes).dead.any()
    data.Y[:, 1] *= 1e150
    sweep = data.run(data.sweep(data.zero(schedule)), passes)
    assert_array_equal(sweep.dead, [False, True])
    loop = data.loop(passes, 0.01, 0.0, 1)
    for output in range(3):
        assert_close(sweep.state().solution(0)[0][:, output], loop.average[:-1, output])
    ends = sweep.state().W[:, 3:].copy()
    data.run(sweep, passes)
    assert_array_equal(sweep.state().W[:, 3:], ends)


# Units and progress.


@pytest.mark.parametrize("loss", REGRESSION, ids=repr)
@pytest.mark.parametrize("unit", [4.0, 0.013, 7.3e5])
@pytest.mark.parametrize("averaged", [False, True])
def test_outputs_in_other_units_give_the_solution_in_them(loss, unit, averaged):
    data, passes = problem("dense", loss), draws(100, 50)
    sweeps = []
    for other in (1.0, unit):
        state = data.zero(averaged=averaged, intercept=True)
        sweep = data.sweep(state, batch=3, unit=other)
        sweep.counts_progress = True
        sweeps.append(data.run(sweep, passes))
    one, scaled = (sweep.state() for sweep in sweeps)
    for c in range(3):
        for found, expected in zip(scaled.solution(c), one.solution(c), strict=True):
            assert_close(unit * found, expected)
    assert_close(scaled.progressive, one.progressive)


@per_space
@pytest.mark.parametrize("batch", [1, 3, 16, 25])
def test_progress_is_the_sum_of_losses_before_each_step_times_its_number(kind, batch):
    for loss in (Square(), Logistic(), Hinge()):
        data, passes = problem(kind, loss), draws(60, 44)
        sweep = data.sweep(data.zero(), batch, block=16)
        sweep.counts_progress = True
        data.run(sweep, passes)
        expected = [loop.progress for loop in loops_of(data, passes, batch)]
        assert_allclose(sweep.progressive, expected, rtol=1e-10)


def test_progress_is_not_counted_unasked():
    data = problem()
    assert_array_equal(data.run(data.sweep(data.zero()), draws(60)).progressive, 0)


# Schedules.


def test_step_sizes_by_formula():
    schedule = Schedule(np.array([0.25, 3.0, 1e-4]), np.array([0.0, 0.5, 1.0]))
    sizes = schedule.sizes(1, 50)
    assert sizes.shape == (50, 3)
    for t in range(1, 51):
        assert_allclose(sizes[t - 1], [0.25, 3 / t**0.5, 1e-4 / t], rtol=1e-14)
    assert_array_equal(schedule.sizes(8, 20), sizes[7:27])
    assert schedule.sizes(4, 0).shape == (0, 3)


def test_a_schedule_may_be_taken_in_part_and_saved(tmp_path):
    imparo.save(CANDIDATES, tmp_path / "schedule.imparo")
    loaded = imparo.load(tmp_path / "schedule.imparo")
    assert len(CANDIDATES) == len(loaded) == 3
    assert_array_equal(loaded.sizes(3, 5), CANDIDATES.sizes(3, 5))
    for some in ([2, 0], np.array([True, False, True])):
        part = CANDIDATES.take(some)
        assert len(part) == 2
        assert_array_equal(part.sizes(3, 5), CANDIDATES.sizes(3, 5)[:, some])


# What a sweep must remember to go on.


@per_space
@per_loss
def test_a_sweep_that_is_put_down_and_taken_up_goes_on(kind, loss):
    data, passes = problem(kind, loss), draws(70, 50)
    through = data.run(data.sweep(data.zero(intercept=True), batch=3), passes)
    first = data.run(data.sweep(data.zero(intercept=True), batch=3), passes[:1])
    second = data.run(data.sweep(first.state(), batch=3), passes[1:])
    assert_same(second, through)
    rows = data.rows(np.arange(40))
    assert_close(second.predict(rows), through.predict(rows))
    one = data.sweep(through.state(2), batch=3)
    assert_close(one.predict(rows), through.predict(rows)[:, [2]])


@pytest.mark.parametrize("kind", ["stored", "growing"])
def test_points_whose_steps_cancel_still_count_in_the_average(kind):
    # One step up and one down: the coefficient is 0, but not that of the average.
    data = Problem(kind, np.zeros((1, 1)), np.array([[0.1]]), np.ones(1), Absolute())
    schedule = Schedule(np.array([0.5]), np.zeros(1))
    sweep = data.run(data.sweep(data.zero(schedule)), [np.zeros(2, int)])
    assert_array_equal(sweep.state().W, 0)
    # Of w₁ = 0 and w₂ = ½.
    assert_allclose(sweep.predict(np.zeros(1, int)), 0.25)
    taken_up = data.sweep(sweep.state())
    assert_allclose(taken_up.predict(np.zeros(1, int)), 0.25)


def test_a_sweep_leaves_the_state_that_it_began_with():
    data = problem("stored", Logistic())
    state = data.zero(intercept=True)
    sweep = data.sweep(state)
    sweep.counts_progress = True
    data.run(sweep, draws(80))
    for name in ("W", "V", "intercept", "sums", "a", "progressive"):
        assert_array_equal(getattr(state, name), 0)
    kept = sweep.state()
    copy = kept.W.copy()
    data.run(sweep, draws(80))
    assert_array_equal(kept.W, copy)


@pytest.mark.parametrize("kind", ["stored", "growing"])
def test_new_points_begin_with_no_weight(kind):
    data, early, late = problem(kind, Logistic()), draws(50, n=30), draws(60, n=40)
    fewer = Problem(kind, data.X[:30], data.Y[:30], data.weight[:30], data.loss)
    first = fewer.run(fewer.sweep(fewer.zero(intercept=True)), early)
    second = data.run(data.sweep(first.state().padded(10)), late)
    assert_follows(second, loops_of(data, early + late, 1, intercept=True))


def test_a_state_of_some_points_has_their_weights():
    data, some = problem("stored", Logistic()), np.array([5, 2, 30])
    state = data.run(data.sweep(data.zero(intercept=True)), draws(80)).state()
    for c in range(3):
        weights, intercept = state.solution(c)
        part = state.rows(some).solution(c)
        assert_array_equal(part[0], weights[some])
        assert_array_equal(part[1], intercept)


@pytest.mark.parametrize("averaged", [False, True])
def test_a_state_in_other_units_has_the_solution_in_them(averaged):
    data, shift = problem("dense", Logistic()), np.array([3.0, -1.0])
    for intercept in (False, True):
        state = data.zero(averaged=averaged, intercept=intercept)
        state = data.run(data.sweep(state), draws(80)).state()
        for c in range(3):
            weights, constant = state.solution(c)
            found = state.rescaled(2.5, shift).solution(c)
            assert_close(found[0], 2.5 * weights)
            assert_close(found[1], 2.5 * constant + shift if intercept else 0 * shift)


def test_other_candidates_may_begin_where_one_is():
    data, passes = problem("dense", Logistic()), draws(50, 60)
    one = Schedule(np.array([0.3]), np.array([0.5]))
    first = data.run(data.sweep(data.zero(one, intercept=True)), passes[:1])
    loop = data.loop(passes[:1], 0.3, 0.5, 1, intercept=True)
    second = data.run(
        data.sweep(first.state().first(CANDIDATES, averaged=True)), passes[1:]
    ).state()
    pairs = zip(CANDIDATES.eta, CANDIDATES.theta, strict=True)
    for c, (eta, theta) in enumerate(pairs):
        rest = data.loop(passes[1:], eta, theta, 1, intercept=True, before=50, start=loop.last)
        both = Loop(loop.iterates + rest.iterates[1:], loop.etas + rest.etas, 0.0)
        assert_close(np.vstack(second.solution(c)), both.average)


@pytest.mark.parametrize("before", [(False,), (True, False)], ids=["last", "average, last"])
def test_an_average_not_kept_before_begins_with_the_next_step(before):
    data, passes = problem("dense", Logistic()), draws(50, 60, 40)
    one = Schedule(np.array([0.3]), np.array([0.5]))
    state = data.zero(one, averaged=before[0], intercept=True)
    for averaged, order in zip((*before, True), passes, strict=False):
        state = state.first(one, averaged=averaged)
        state = data.run(data.sweep(state), [order]).state()
    done = passes[: len(before)]
    so_far = data.loop(done, 0.3, 0.5, 1, intercept=True)
    rest = data.loop(
        [passes[len(before)]], 0.3, 0.5, 1, intercept=True, before=len(so_far.etas),
        start=so_far.last,
    )  # fmt: skip
    assert_close(np.vstack(state.solution()), rest.average)


def test_states_are_saved(tmp_path):
    data, passes = problem("dense", Logistic()), draws(50, 60)
    for options in ({}, {"averaged": False}, {"intercept": True}):
        first = data.run(data.sweep(data.zero(**options)), passes[:1])
        imparo.save(first.state(), tmp_path / "state.imparo")
        loaded = imparo.load(tmp_path / "state.imparo")
        second = data.run(data.sweep(loaded), passes[1:])
        assert_same(second, data.run(first, passes[1:]), 1e-15)


# Losses, threads, kernels as features.


eighth = st.integers(-24, 24).map(lambda k: k / 8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "loss", [Absolute(), EpsilonInsensitive(0.25), EpsilonInsensitive(0.0)], ids=repr
)
@given(y=eighth, a=eighth)
@often
def test_left_derivatives_at_any_output_are_slopes_from_the_left(loss, dtype, y, a):
    y, a, h = dtype(y), dtype(a), dtype(2.0**-10)
    assert loss.derivative(y, a) == (loss.value(y, a) - loss.value(y, a - h)) / h


@pytest.mark.parametrize("kind", SPACES)
def test_threads_change_nothing_but_rounding(kind):
    data = problem(kind, Logistic(), n=300, d=200)
    schedule = Schedule(np.geomspace(1e-3, 0.05, 12), np.full(12, 0.1))
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            sweep = data.sweep(data.zero(schedule, intercept=True), batch=4, block=256)
            models.append(data.run(sweep, draws(500, n=300)))
    assert_same(*models, rtol=1e-9)


@given(
    seed=seeds,
    n=st.integers(1, 12),
    T=st.integers(1, 2),
    batch=st.integers(1, 15),
    block=st.integers(1, 15),
    loss=st.sampled_from(CONVEX),
    averaged=st.booleans(),
    intercept=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_an_expansion_is_a_sweep_over_features_of_its_kernel(
    seed, n, T, batch, block, loss, averaged, intercept
):
    rng = np.random.default_rng(seed)
    # Points apart from each other: their kernel matrix has a Cholesky factor.
    X = 2 * rng.permutation(np.arange(n))[:, None] + rng.uniform(-0.5, 0.5, size=(n, 1))
    Y, weight = outputs_for(loss, rng, (n, T)), rng.uniform(0.1, 2, n)
    growing = Problem("growing", X, Y, weight, loss)
    L = np.linalg.cholesky(growing.kernel_matrix)
    features = Problem("dense", L, Y, weight, loss)
    schedule = Schedule(rng.uniform(0.01, 0.3, 2), rng.uniform(0, 1, 2))
    passes = [rng.integers(n, size=length) for length in (25, 7)]
    found = []
    for data in (growing, features):
        state = data.zero(schedule, averaged=averaged, intercept=intercept)
        sweep = data.run(data.sweep(state, batch, block=block), passes)
        found.append(sweep.predict(data.rows(np.arange(n))))
        assert not sweep.dead.any()
    assert_close(*found, rtol=1e-8)


class Huber(Loss):
    """A loss of one's own, which has no compiled loop."""

    def _value(self, y, a):
        away = np.abs(a - y)
        return np.where(away < 1, away**2 / 2, away - 0.5)

    def _derivative(self, y, a):
        return np.clip(a - y, -1, 1)


def test_a_loss_of_ones_own_takes_the_steps_of_a_loop():
    rng = np.random.default_rng(0)
    F, Y = rng.normal(size=(2, 50, 3))
    Phi = rng.normal(size=(50, 8))
    step, group = np.full((50, 3), 0.1), np.arange(50)
    assert Slope(Huber()).loop() is None
    expected, met = row_by_row(F, Phi @ Phi.T, group, step, Y, Huber().derivative)
    assert_close(take_steps(F, Phi @ Phi.T, group, step, Y, Slope(Huber())), expected)
    assert_close(F, met)
