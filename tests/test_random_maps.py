"""Random features: nested, the same for every kind of rows, and what they claim to be."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import hadamard
from scipy.special import zeta

import imparo
from imparo.engine import default_engine
from imparo.features import (
    Fastfood,
    FeatureRule,
    Fourier,
    FourierMap,
    LeverageFeatures,
    Orthogonal,
    QuasiMonteCarlo,
    Sorf,
    SplineFeatures,
    SplineMap,
    as_feature_rule,
)
from imparo.features.orthogonal import haar_rows
from imparo.features.quasi import points
from imparo.features.structured import power_of_two_from
from imparo.kernels import (
    Constant,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Spline,
)

ROUND = [Gaussian(1.5), Matern(0.5, 2.0), Matern(1.5, 1.0), Matern(2.5, 0.7)]
WAVES = [
    *(
        rule(form)
        for rule in (Fourier, Orthogonal, Fastfood, Sorf)
        for form in ("pair", "cosine")
    ),
    *(QuasiMonteCarlo(f, s) for f in ("pair", "cosine") for s in ("sobol", "halton")),
]
RULES = [
    *WAVES,
    SplineFeatures(),
    LeverageFeatures(),
    LeverageFeatures(Orthogonal("cosine"), penalty=0.01, pool=32),
    LeverageFeatures(Sorf(), pool=48),
    LeverageFeatures(SplineFeatures(), penalty=0.1, pool=40),
]
D = 5

every_rule = pytest.mark.parametrize("rule", RULES, ids=repr)
every_wave = pytest.mark.parametrize("rule", WAVES, ids=repr)
often = settings(max_examples=25, deadline=None)


def is_spline(rule):
    return isinstance(getattr(rule, "base", rule), SplineFeatures)


def example(rule, n=20, seed=0):
    """Return a kernel that the rule has features of, and rows."""
    rng = np.random.default_rng(seed)
    if is_spline(rule):
        return Spline(4.0), rng.random((n, 1))
    return Gaussian(1.5), rng.normal(size=(n, D))


def draw(rule, m, seed=3, kernel=None, X=None):
    default, rows = example(rule)
    rows = rows if X is None else X
    return rule.draw(kernel or default, rows.shape[1], m, seed, rows=rows)


# --- Nested ------------------------------------------------------------------------------


@every_rule
@pytest.mark.parametrize("few", [2, 10, 36])
def test_a_larger_number_keeps_the_first_features(rule, few):
    X = example(rule)[1]
    small, large = draw(rule, few), draw(rule, 90)
    assert len(small) == small.n_given == few
    assert_allclose(small.evaluate(X), large.evaluate(X)[:, :few], rtol=0, atol=1e-12)
    assert_allclose(large.first(few).evaluate(X), small.evaluate(X), rtol=0, atol=1e-12)
    assert type(large.first(few)) is type(large)


@every_rule
def test_another_seed_gives_other_features_and_the_same_one_the_same(rule):
    X = example(rule)[1]
    values = [draw(rule, 12, seed).evaluate(X) for seed in (0, 0, 1, 2**40)]
    assert_array_equal(values[0], values[1])
    for i, j in ((0, 2), (0, 3), (2, 3)):
        assert (abs(values[i] - values[j]).max(axis=0) > 1e-3).all()


@pytest.mark.parametrize("rule", [*WAVES, SplineFeatures()], ids=repr)
def test_no_feature_comes_twice(rule):
    F = draw(rule, 90).evaluate(example(rule, n=60)[1])
    distances = abs(F[:, :, None] - F[:, None, :]).max(axis=0)
    assert distances[np.triu_indices(90, 1)].min() > 1e-3


@every_rule
@given(ends=st.tuples(st.integers(0, 70), st.integers(0, 70)))
@often
def test_any_columns_are_those_of_all(rule, ends):
    start, stop = sorted(ends)
    X = example(rule)[1]
    map = draw(rule, 70)
    part, everything = map.evaluate(X, start, stop), map.evaluate(X)
    assert part.shape == (20, stop - start)
    assert part.flags.c_contiguous
    assert_allclose(part, everything[:, start:stop], rtol=0, atol=1e-12)


@every_rule
def test_rows_do_not_depend_on_each_other(rule):
    X = example(rule, n=200)[1]
    map = draw(rule, 40)
    F = map.evaluate(X)
    for rows in (slice(0, 0), slice(7, 8), slice(3, 150)):
        assert_allclose(map.evaluate(X[rows]), F[rows], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("rule", "kernel"),
    [
        *((rule, kernel) for rule in WAVES for kernel in (Gaussian(), Matern(1.5))),
        *((rule, Laplacian()) for rule in WAVES if isinstance(rule, Fourier | QuasiMonteCarlo)),
    ],
    ids=repr,
)
def test_frequencies_at_a_width_are_those_at_width_one_divided_by_it(rule, kernel):
    one, other = (draw(rule, 20, kernel=kernel.with_sigma(s)) for s in (1.0, 3.7))
    assert_allclose(other.frequencies(), one.frequencies() / 3.7, rtol=1e-13)
    if one.phases is not None:
        assert_array_equal(one.phases, other.phases)


# Scores at a given penalty do depend on the scale of the kernel.
@pytest.mark.parametrize("rule", [*WAVES, SplineFeatures(), LeverageFeatures()], ids=repr)
def test_a_multiple_of_a_kernel_multiplies_features_by_the_root(rule):
    kernel, X = example(rule)
    plain = draw(rule, 20).evaluate(X)
    for multiple in (2.5 * kernel, kernel * 2.5, 0.5 * (kernel * 5)):
        scaled = draw(rule, 20, kernel=multiple).evaluate(X)
        assert_allclose(scaled, np.sqrt(2.5) * plain, rtol=1e-12, atol=1e-12)
    assert (draw(rule, 20, kernel=0.0 * kernel).evaluate(X) == 0).all()


# --- Every kind of rows ------------------------------------------------------------------


@every_rule
def test_sparse_rows_give_what_dense_ones_give(rule):
    X = example(rule, n=50)[1]
    X *= np.median(X) < X
    map = draw(rule, 40, X=X)
    for dtype in (np.float64, np.float32):
        dense = map.evaluate(X.astype(dtype))
        for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array):
            result = map.evaluate(kind(X.astype(dtype)), 3, 31)
            assert result.dtype == dtype
            assert isinstance(result, np.ndarray)
            assert_allclose(
                result, dense[:, 3:31], rtol=0, atol=2e-5 if dtype == np.float32 else 1e-12
            )


def test_sparse_rows_to_choose_features_by(rng):
    X = sparse.random_array((60, D), density=0.5, rng=rng, format="csr")
    rule = LeverageFeatures(pool=64)
    maps = [draw(rule, 20, X=rows) for rows in (X, X.tocsc(), X.toarray())]
    for map in maps[1:]:
        assert_allclose(map.evaluate(X), maps[0].evaluate(X), rtol=1e-9)


@every_rule
def test_float32_rows_give_float32_features_near_those_of_float64(rule):
    X = example(rule, n=50)[1]
    map = draw(rule, 60, X=X)
    F, G = map.evaluate(X), map.evaluate(X.astype(np.float32))
    assert F.dtype == np.float64
    assert G.dtype == np.float32
    assert_allclose(G, F, rtol=0, atol=3e-5 * max(1, abs(F).max()))
    assert map.transform(X.astype(np.float32)).dtype == np.float32
    assert map.evaluate(X.astype(np.float16)).dtype == np.float32


@every_rule
@pytest.mark.parametrize("dtype", [np.int8, np.int64, bool])
def test_integers_become_float64(rule, dtype):
    X = (example(rule)[1] > 0.5).astype(dtype)
    map = draw(rule, 10)
    F = map.evaluate(X)
    assert F.dtype == np.float64
    assert_array_equal(F, map.evaluate(X.astype(float)))


@every_rule
def test_rows_in_any_memory_order(rule):
    X = example(rule, n=40)[1]
    map = draw(rule, 20)
    F = map.evaluate(X)
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        before = other.copy()
        assert_allclose(map.evaluate(other), F, rtol=0, atol=1e-12)
        assert_array_equal(other, before)


@every_rule
def test_transform_is_evaluate_over_the_root_of_m(rule):
    X = example(rule)[1]
    map = draw(rule, 30)
    assert_allclose(map.transform(X), map.evaluate(X) / np.sqrt(30), rtol=1e-15)
    assert_array_equal(map.columns([1, 30, 99]), [1, 30, 30])
    assert map.factor is None
    assert map.n_columns_in == X.shape[1]


@every_wave
def test_large_rows_have_finite_features_and_larger_ones_are_refused(rule):
    map = draw(rule, 200)
    X = np.random.default_rng(0).uniform(-1, 1, size=(30, D))
    for size, dtype in (
        (1e6, np.float64),
        (1e15, np.float64),
        (1e290, np.float64),
        (1e25, "f4"),
    ):
        F = map.evaluate((size * X).astype(dtype))
        assert np.isfinite(F).all()
        assert abs(F).max() <= np.sqrt(2) * (1 + 1e-6)
    for size, dtype in ((1.7e308, np.float64), (3e38, "f4")):
        with pytest.raises(ValueError, match=r"angles of random features overflow.*scale"):
            map.evaluate((size * X).astype(dtype))
        with pytest.raises(ValueError, match="overflow"):
            map.evaluate((-size * abs(X)).astype(dtype))


# --- What the features are ---------------------------------------------------------------


@every_wave
def test_features_are_waves_of_their_frequencies(rule, rng):
    X, map = rng.normal(size=(20, D)), draw(rule, 44)
    theta = X @ map.frequencies().T
    F = map.evaluate(X)
    if rule.form == "cosine":
        assert_allclose(F, np.sqrt(2) * np.cos(theta + map.phases), rtol=0, atol=1e-12)
        assert ((map.phases >= 0) & (map.phases <= 2 * np.pi)).all()
        assert map.step == rule.step == 1
    else:
        assert_allclose(F[:, 0::2], np.sqrt(2) * np.cos(theta), rtol=0, atol=1e-12)
        assert_allclose(F[:, 1::2], np.sqrt(2) * np.sin(theta), rtol=0, atol=1e-12)
        assert map.step == rule.step == 2
        assert_allclose(np.sum(map.transform(X) ** 2, axis=1), 1, rtol=1e-12)
    assert map.frequencies().shape == (44 // map.step, D)


@pytest.mark.parametrize("form", ["pair", "cosine"])
@pytest.mark.parametrize("d", [1, 3, 8, 32, 33])
def test_fastfood_is_its_dense_product(d, form):
    map = Fastfood(form).draw(Gaussian(2.0), d, 150, seed=5)
    p = map.n_padded
    assert p == power_of_two_from(d) < 2 * d
    blocks = []
    for signs, permutation, g in zip(map.signs, map.permutations, map.gaussians, strict=True):
        H, Pi = hadamard(p), np.eye(p)[permutation]
        blocks.append(H @ np.diag(g) @ Pi @ H @ np.diag(signs))
    V = np.concatenate(blocks)[: len(map.lengths), :d] * map.lengths[:, None]
    assert_allclose(map.frequencies(), V, rtol=0, atol=1e-12 * abs(V).max())
    # S makes the length of a row the one that was drawn, whatever G is.
    assert_allclose(np.linalg.norm(np.concatenate(blocks), axis=1), np.sqrt(p), rtol=1e-12)
    for signs, permutation in zip(map.signs, map.permutations, strict=True):
        assert set(signs) <= {-1, 1}
        assert_array_equal(np.sort(permutation), np.arange(p))


@pytest.mark.parametrize("form", ["pair", "cosine"])
@pytest.mark.parametrize("d", [1, 8, 32, 33, 100])
def test_sorf_is_its_dense_product(d, form):
    map = Sorf(form).draw(Gaussian(2.0), d, 300, seed=5)
    p = map.n_padded
    assert p == max(32, power_of_two_from(d))
    H, blocks = hadamard(p) / np.sqrt(p), []
    for D3, D2, D1 in map.signs.astype(float):
        blocks.append(H @ np.diag(D1) @ H @ np.diag(D2) @ H @ np.diag(D3))
        assert_allclose(blocks[-1] @ blocks[-1].T, np.eye(p), atol=1e-12)
    scale = map.lengths[:, None] * p**1.5
    V = np.concatenate(blocks)[: len(map.lengths), :d] * scale
    assert_allclose(map.frequencies(), V, rtol=0, atol=1e-12 * abs(V).max())
    assert set(map.signs.ravel()) == {-1, 1}


@pytest.mark.parametrize("rule", [Orthogonal(), Sorf()], ids=repr)
@pytest.mark.parametrize("kernel", ROUND, ids=repr)
def test_directions_of_a_block_are_orthogonal_and_those_of_two_blocks_are_not(rule, kernel):
    d = 64
    W = rule.draw(kernel, d, 4 * d, seed=1).frequencies()
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    G = W @ W.T
    assert_allclose(G[:d, :d], np.eye(d), atol=1e-12)
    assert_allclose(G[d:, d:], np.eye(d), atol=1e-12)
    assert abs(G[:d, d:]).max() > 0.1


@pytest.mark.parametrize("d", [1, 2, 64, 65, 150])
def test_rows_of_a_haar_matrix_are_orthonormal_and_do_not_depend_on_their_number(d):
    everything = haar_rows(d, d, np.random.default_rng(0))
    assert_allclose(everything @ everything.T, np.eye(d), atol=1e-13)
    for wanted in {1, d // 2, d - 1} - {0}:
        some = haar_rows(d, wanted, np.random.default_rng(0))
        assert_array_equal(some, everything[:wanted])


def test_rows_of_a_haar_matrix_are_those_of_gram_and_schmidt():
    d = 100
    Q, R = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)).T)
    expected = (Q * np.sign(np.diag(R))).T
    assert_allclose(haar_rows(d, d, np.random.default_rng(0)), expected, atol=1e-10)


@pytest.mark.parametrize("sequence", ["sobol", "halton"])
@pytest.mark.parametrize("kernel", [*ROUND, Laplacian(2.0)], ids=repr)
@pytest.mark.parametrize("form", ["pair", "cosine"])
def test_quasi_monte_carlo_warns_of_nothing_and_has_finite_frequencies(sequence, kernel, form):
    rule = QuasiMonteCarlo(form, sequence)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for m in (2, 6, 64, 1000):
            assert np.isfinite(rule.draw(kernel, 3, m, seed=0).frequencies()).all()


@pytest.mark.parametrize("sequence", ["sobol", "halton"])
def test_points_of_a_sequence_fill_cells_evenly_and_stay_inside(sequence):
    base = {"sobol": (2, 2), "halton": (2, 3)}[sequence]
    u = points(sequence, 2, 12 * 2**6, seed=4)
    assert ((u > 0) & (u < 1)).all()
    # Of the first b⁴ points each coordinate has one in every interval of length b⁻⁴.
    for j, b in enumerate(base):
        cells = np.floor(u[: b**4, j] * b**4).astype(int)
        assert_array_equal(np.sort(cells), np.arange(b**4))


@pytest.mark.parametrize("corner", [0.0, 1 - 2.0**-53])
@pytest.mark.parametrize("sequence", ["Sobol", "Halton"])
def test_points_on_the_border_have_finite_frequencies(monkeypatch, sequence, corner):
    from scipy.stats import qmc

    corner = min(corner, 1 - 2.0**-30) if sequence == "Sobol" else corner

    def random(self, n):
        return np.full((n, self.d), corner)

    monkeypatch.setattr(getattr(qmc, sequence), "random", random)
    for kernel in (*ROUND, Laplacian(1.0)):
        map = QuasiMonteCarlo("cosine", sequence.lower()).draw(kernel, 2, 4, seed=0)
        assert np.isfinite(map.frequencies()).all()
        assert abs(map.frequencies()).min() > 0.1


def test_spline_features_are_splines_of_half_the_order(rng):
    X = rng.random((30, 1))
    map = SplineFeatures().draw(Spline(5.0), 1, 17, seed=0)
    assert_allclose(map.evaluate(X), Spline(2.5)(X, map.nodes[:, None]), rtol=1e-13)
    assert ((map.nodes >= 0) & (map.nodes < 1)).all()


@given(q=st.floats(2.5, 9.0), x=st.floats(0, 1), z=st.floats(0, 1))
@often
def test_products_of_spline_features_integrate_to_the_kernel(q, x, z):
    # The mean over N equal steps has the terms |k|^{−a}|l|^{−a}, a = q/2, for which k + l is
    # a multiple of N; one of k and l is at least half of it.
    N, a = 4096, q / 2
    F = SplineMap(np.arange(N) / N, np.ones(N), a).evaluate(np.array([[x], [z]]))
    expected = Spline(q)(np.array([[x]]), np.array([[z]]))[0, 0]
    bound = 4 * 2**a * zeta(a) * (1 + 2 * zeta(a)) * N**-a
    assert bound < 0.02
    assert_allclose(np.mean(F[0] * F[1]), expected, rtol=0, atol=bound + 1e-10)


def test_picked_features_are_the_chosen_ones_times_their_weights(rng):
    positions, weights = np.array([7, 0, 7]), np.array([2.0, 0.5, 1.0])
    for rule in (Fourier(), Fourier("cosine"), Sorf("cosine"), Fastfood(), SplineFeatures()):
        X, map = example(rule)[1], draw(rule, 20)
        F = map.evaluate(X).reshape(len(X), -1, rule.step)
        expected = (F[:, positions] * weights[:, None]).reshape(len(X), -1)
        assert_allclose(map.picked(positions, weights).evaluate(X), expected, atol=1e-12)


# --- Files -------------------------------------------------------------------------------


@every_rule
def test_a_map_and_its_rule_come_back_from_a_file(rule, tmp_path):
    X, map = example(rule)[1], draw(rule, 24)
    F = map.evaluate(X)
    imparo.save(map, tmp_path / "map")
    imparo.save(rule, tmp_path / "rule")
    for same in (imparo.load(tmp_path / "map"), pickle.loads(pickle.dumps(map))):
        assert type(same) is type(map)
        assert_array_equal(same.evaluate(X), F)
        assert_array_equal(same.first(12).evaluate(X), map.first(12).evaluate(X))
    assert imparo.load(tmp_path / "rule") == rule
    assert hash(rule) == hash(imparo.load(tmp_path / "rule"))


def test_maps_and_rules_cannot_be_changed():
    for value, name in ((draw(Fourier(), 4), "omega"), (Fourier(), "form")):
        with pytest.raises(AttributeError):
            setattr(value, name, None)


# --- What is refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        *(Linear(), Polynomial(2), Spline(4.0), Precomputed(), Constant(1.0)),
        *(Gaussian(1.0) + Linear(), Gaussian(1.0) * Gaussian(2.0), 2 * Linear()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("rule", [r for r in RULES if not is_spline(r)], ids=repr)
def test_kernels_without_random_features_are_named(rule, kernel):
    for refuse in (lambda: rule.check(kernel, 1), lambda: draw(rule, 4, kernel=kernel)):
        with pytest.raises(
            ValueError, match=r"Gaussian, Laplacian and Matérn.*use one of"
        ) as e:
            refuse()
        assert repr(kernel) in str(e.value)


@pytest.mark.parametrize("rule", [Orthogonal(), Fastfood(), Sorf(), LeverageFeatures(Sorf())])
def test_rotations_and_the_laplacian_kernel(rule):
    with pytest.raises(ValueError, match=r"rotated.*use Fourier"):
        rule.check(3 * Laplacian(), 4)
    rule.check(Matern(0.5), 4)


def test_a_width_is_needed_to_draw_and_not_to_check():
    Fourier().check(2 * Gaussian(), 3)
    with pytest.raises(ValueError, match="width of Gaussian"):
        Fourier().draw(2 * Gaussian(), 3, 4, seed=0)


def test_splines():
    rule = SplineFeatures()
    with pytest.raises(ValueError, match="above 2"):
        rule.check(Spline(2.0), 1)
    with pytest.raises(ValueError, match="one column and X has 3"):
        rule.check(Spline(3.0), 3)
    with pytest.raises(ValueError, match=r"SplineFeatures.*not of Gaussian"):
        rule.check(Gaussian(1.0), 1)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        draw(rule, 4).evaluate(np.array([[1.5]]))


@pytest.mark.parametrize("rule", [Fourier(), QuasiMonteCarlo(), LeverageFeatures()], ids=repr)
def test_odd_numbers_of_pairs(rule):
    with pytest.raises(ValueError, match=r"n_features=7 must be a multiple of 2.*give 8"):
        draw(rule, 7)
    with pytest.raises(ValueError, match="no first 3; give a multiple of 2 from 2 to 8"):
        draw(rule, 8).first(3)


@every_rule
@pytest.mark.parametrize("m", [0, -2, 2.0, True, "8", None])
def test_numbers_of_features_that_are_none(rule, m):
    with pytest.raises(ValueError, match=r"n_features=.* must be a whole number from 1 on"):
        draw(rule, m)
    with pytest.raises(ValueError, match="no first"):
        draw(rule, 8).first(m)
    with pytest.raises(ValueError, match="no first 10"):
        draw(rule, 8).first(10)


@every_rule
@pytest.mark.parametrize("d", [0, -1, 2.5, None])
def test_numbers_of_columns_that_are_none(rule, d):
    with pytest.raises(ValueError, match="n_columns="):
        rule.check(example(rule)[0], d)


@every_rule
def test_rows_of_other_widths_and_columns_out_of_range(rule):
    X, map = example(rule)[1], draw(rule, 8)
    d = X.shape[1]
    for wrong in (np.zeros((3, d + 1)), np.zeros(d), sparse.csr_array((2, d + 3))):
        with pytest.raises(ValueError, match=f"drawn for {d} columns"):
            map.evaluate(wrong)
    for ends in ((-1, 4), (5, 4), (0, 9)):
        with pytest.raises(ValueError, match=r"columns .* were asked for and the map has 8"):
            map.evaluate(X, *ends)


def test_more_columns_than_the_sequence_has():
    rule = QuasiMonteCarlo("cosine")
    rule.check(Gaussian(), 21_200)
    with pytest.raises(ValueError, match=r"21,201 dimensions.*21,201 columns need 21,202"):
        rule.check(Gaussian(), 21_201)
    with pytest.raises(ValueError, match="need 21,202"):
        rule.check(Matern(), 21_200)
    QuasiMonteCarlo("cosine", "halton").check(Gaussian(), 30_000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fourier("sine"), r"form='sine'.*'pair'.*'cosine'"),
        (lambda: QuasiMonteCarlo(sequence="latin"), "sequence='latin'.*'sobol' or 'halton'"),
        (lambda: LeverageFeatures(base="fourier"), "base='fourier' must be a rule"),
        (lambda: LeverageFeatures(LeverageFeatures()), "draws features without rows"),
        (lambda: LeverageFeatures(penalty=0.0), "penalty=0.0 must be a positive"),
        (lambda: LeverageFeatures(pool=0), "pool=0 must be a whole number"),
        (lambda: LeverageFeatures(pool=33), "pool=33 must be a multiple of 2.*give 34"),
        (lambda: draw(LeverageFeatures(), 4, X=np.zeros((0, 3))), "got none; give some rows"),
        (lambda: LeverageFeatures().draw(Gaussian(1.0), 3, 4, 0), "got none; give some rows"),
    ],
)
def test_settings_that_are_none(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_names_of_rules():
    names = {
        "fourier": Fourier(), "orthogonal": Orthogonal(), "fastfood": Fastfood(),
        "sorf": Sorf(), "qmc": QuasiMonteCarlo(), "spline": SplineFeatures(),
        "leverage": LeverageFeatures(),
    }  # fmt: skip
    for name, rule in names.items():
        assert as_feature_rule(name) == rule == as_feature_rule(rule)
        assert isinstance(rule, FeatureRule)
    with pytest.raises(
        ValueError, match=r"features='nystrom' is not known; give one of fastfood"
    ):
        as_feature_rule("nystrom")
    for wrong in (None, 3, Fourier, Gaussian(1.0)):
        with pytest.raises(TypeError, match="features must be a name or a rule"):
            as_feature_rule(wrong)


# --- Products ----------------------------------------------------------------------------


def test_products_go_through_the_engine(monkeypatch, rng):
    engine, seen = default_engine(), []
    original = type(engine).product

    def product(self, A, B):
        seen.append((A.shape, B.shape))
        return original(self, A, B)

    monkeypatch.setattr(type(engine), "product", product)
    FourierMap(np.ones((7, 3)), np.ones(7)).evaluate(np.ones((4, 3)))
    assert seen == [((4, 3), (3, 7))]
    seen.clear()
    Fastfood().draw(Gaussian(1.0), 512, 1024, 0).evaluate(np.ones((4, 512)))
    # Two transforms of three small products each, and none with a matrix of 512 rows.
    assert len(seen) == 6
    assert all(min(a + b) == 8 for a, b in seen)
