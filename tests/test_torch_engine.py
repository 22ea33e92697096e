"""The PyTorch engine against the NumPy one and exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from imparo.engine import NumpyEngine
from imparo.engine.torch import PANEL, TorchEngine
from imparo.errors import JitterWarning, NotPositiveDefiniteError

torch = pytest.importorskip("torch", reason="the PyTorch engine needs PyTorch")
# One core, as on the machines that run all tests beside each other.
torch.set_num_threads(1)

host = NumpyEngine()
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}

all_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture
def engine():
    return TorchEngine(["cpu"])


def normal(rng, shape, dtype):
    return rng.standard_normal(shape).astype(dtype)


def positive_definite(rng, p, dtype):
    B = rng.standard_normal((2 * p, p))
    return (B.T @ B / p + np.eye(p)).astype(dtype)


def triangular(rng, p, dtype):
    return np.linalg.cholesky(positive_definite(rng, p, np.float64)).T.astype(dtype)


def close(found, expected, dtype):
    scale = np.abs(expected).max(initial=1e-300)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


# Methods that return something: arguments, settings, and what of the result is unique.
METHODS = {
    "product": (lambda r, t: (normal(r, (5, 7), t), normal(r, (7, 3), t)), {}),
    "inner": (lambda r, t: (normal(r, (5, 7), t), normal(r, (4, 7), t)), {}),
    "squared_distances": (
        lambda r, t: (normal(r, (5, 3), t), normal(r, (4, 3), t)), {"width": 0.7}),
    "absolute_distances": (
        lambda r, t: (normal(r, (5, 3), t), normal(r, (4, 3), t)), {"width": 0.7}),
    "cholesky": (lambda r, t: (positive_definite(r, 6, t),), {}),
    "solve_triangular": (lambda r, t: (triangular(r, 6, t), normal(r, (6, 2), t)), {}),
    "whiten": (lambda r, t: (triangular(r, 6, t), normal(r, (9, 6), t)), {}),
    "congruence": (lambda r, t: (positive_definite(r, 6, t), triangular(r, 6, t)), {}),
    "invert_triangular": (lambda r, t: (triangular(r, 6, t),), {}),
    "eigh": (lambda r, t: (positive_definite(r, 6, t),), {}),
    "pivoted_cholesky": (lambda r, t: (positive_definite(r, 6, t),), {"tolerance": 0.0}),
    "orthonormalize": (lambda r, t: (normal(r, (8, 4), t),), {}),
}  # fmt: skip
MORE = {
    "squared_distances": {"width": 0.7, "negative": True},
    "cholesky": {"jitter": False},
    "solve_triangular": {"transpose": True},
    "pivoted_cholesky": {"tolerance": 1.0},
}
CALLS = [(name, how) for name, (_, how) in METHODS.items()] + list(MORE.items())


def unique(name, found):
    """Return what of a result does not depend on signs or on what nobody reads."""
    if name == "congruence":
        return (np.triu(found),)
    if name == "orthonormalize":
        Q, R = found
        signs = np.sign(np.diagonal(R))
        return Q * signs, R * signs[:, None]
    if name == "eigh":
        values, V = found
        return values, V * values @ V.T, V.T @ V
    return found if isinstance(found, tuple) else (found,)


@all_types
@pytest.mark.parametrize(("name", "how"), CALLS, ids=lambda value: str(value))
def test_every_method_agrees_with_numpy(engine, rng, monkeypatch, name, how, dtype):
    arrays = METHODS[name][0](rng, dtype)
    expected = getattr(host, name)(*(A.copy() for A in arrays), **how)
    method = getattr(engine, name)

    resident = method(*(torch.from_numpy(A.copy()) for A in arrays), **how)
    parts = resident if isinstance(resident, tuple) else (resident,)
    assert torch.is_tensor(parts[0])
    on_host = tuple(np.asarray(part) for part in parts)
    resident = on_host if isinstance(resident, tuple) else on_host[0]

    hosted = method(*(A.copy() for A in arrays), **how)
    # Where sending costs more than it gains, the host computes.
    monkeypatch.setattr(engine, "pays", lambda operations, moved: False)
    unsent = method(*(A.copy() for A in arrays), **how)

    for found in (resident, hosted, unsent):
        for ours, theirs in zip(unique(name, found), unique(name, expected), strict=True):
            assert isinstance(ours, np.ndarray)
            assert ours.dtype == theirs.dtype
            close(ours, theirs, dtype)
    for A, before in zip(
        arrays, METHODS[name][0](np.random.default_rng(0), dtype), strict=True
    ):
        np.testing.assert_array_equal(A, before)  # nothing was changed but copies


def test_work_on_arrays_is_done_by_pytorch_where_that_pays(engine, rng, monkeypatch):
    done = []
    product = type(host).product
    monkeypatch.setattr(type(host), "product", lambda *a: done.append(1) or product(*a))
    A = normal(rng, (3, 3), np.float64)
    engine.product(A, A)
    assert not done
    monkeypatch.setattr(engine, "pays", lambda operations, moved: False)
    engine.product(A, A)
    assert done


def test_sparse_rows_stay_on_the_host(engine, rng):
    X = sparse.random_array((6, 5), density=0.5, rng=0, format="csr")
    Z, B = rng.normal(size=(3, 5)), rng.normal(size=(5, 2))
    close(engine.product(X, B), X.toarray() @ B, np.float64)
    close(engine.inner(X, Z), X.toarray() @ Z.T, np.float64)
    expected = host.squared_distances(X.toarray(), Z)
    close(engine.squared_distances(X, sparse.csr_array(Z)), expected, np.float64)
    A, C = np.zeros((5, 5)), np.zeros((5, 5))
    engine.accumulate_gram(A, X)
    engine.accumulate_product(C, X, X)
    close(np.triu(A), np.triu(X.toarray().T @ X.toarray()), np.float64)
    close(C, X.toarray().T @ X.toarray(), np.float64)


@pytest.mark.parametrize("left", [np.float32, np.float64])
@pytest.mark.parametrize("right", [np.float32, np.float64])
def test_products_of_two_types_have_the_wider_one(engine, rng, left, right):
    A, B = normal(rng, (4, 5), left), normal(rng, (5, 3), right)
    R = triangular(rng, 4, right)
    wide = np.result_type(left, right)
    for found, expected in (
        (engine.product(torch.from_numpy(A), B), A @ B),
        (engine.solve_triangular(torch.from_numpy(R), A), np.linalg.solve(R, A)),
    ):
        assert engine.type_of(found) == wide
        close(found.numpy(), expected, np.float32)
    # Features keep their own type whatever that of the factor.
    assert engine.type_of(engine.whiten(R, torch.from_numpy(normal(rng, (2, 4), left)))) == left


# Distances


def exact_squares(X, Z):
    """Return squared distances in float64 from differences, which do not cancel."""
    D = X[:, None, :].astype(np.float64) - Z[None, :, :].astype(np.float64)
    return (D**2).sum(axis=2)


# Rows far from 0 and from each other's mean; a few close pairs; very many close pairs.
PLACES = {
    "far from zero": lambda r: (1e3 + r.normal(size=(60, 3)), 1e3 + r.normal(size=(50, 3))),
    "a few equal rows": lambda r: (lambda X: (X, np.vstack([X[:3], X[:30] + 5])))(
        r.normal(size=(60, 3))),
    "close pairs far apart": lambda r: (lambda C: (C + 1e-4 * r.normal(size=C.shape), C))(
        100 * r.normal(size=(40, 3))),
    "two clusters": lambda r: (lambda s: (s + 1e-5 * r.normal(size=s.shape),) * 2)(
        np.where(np.arange(60) < 30, -100.0, 100.0)[:, None] * np.ones((1, 3))),
    "all near": lambda r: (lambda X: (X, X.copy()))(0.3 + 0.5 * r.normal(size=(60, 3))),
    "one row many times": lambda r: (np.full((40, 3), 7.0), np.full((30, 3), 7.0)),
}  # fmt: skip


@all_types
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("negative", [False, True])
def test_distances_do_not_cancel(engine, rng, place, dtype, negative):
    X, Z = (rows.astype(dtype) for rows in PLACES[place](rng))
    found = engine.squared_distances(
        torch.from_numpy(X), torch.from_numpy(Z), 2.0, negative=negative
    ).numpy()
    expected = exact_squares(X, Z) / 4 * (-1 if negative else 1)
    assert found.dtype == dtype
    # Of numbers that are as exact as the rows themselves: where they are near, too. exp(−s)
    # forgives an error that is small against 1.
    forgiven = 50 * np.finfo(dtype).eps * 8 if negative else 0.0
    rtol = 1e-3 if dtype == np.float32 else 1e-8
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=forgiven)
    assert ((found <= 0) if negative else (found >= 0)).all()
    equal = expected == 0
    if place not in ("far from zero", "close pairs far apart"):
        assert equal.any()
    if not negative:
        assert (found[equal] == 0).all()


def test_near_rows_take_the_route_of_their_number(engine, rng, monkeypatch):
    """Few close pairs are computed again one by one; many by differences of all."""
    taken = []
    cdist = torch.cdist
    monkeypatch.setattr(torch, "cdist", lambda *a, **k: taken.append(1) or cdist(*a, **k))
    for place, others in (("a few equal rows", False), ("two clusters", True)):
        taken.clear()
        X, Z = (torch.from_numpy(rows) for rows in PLACES[place](rng))
        engine.squared_distances(X, Z)
        assert bool(taken) == others


# Sums in place


@all_types
@pytest.mark.parametrize("p", [1, PANEL - 1, PANEL, PANEL + 1, 2 * PANEL + 60])
@pytest.mark.parametrize("precision", ["float64", "float32", "split"])
def test_gram_of_blocks(rng, p, dtype, precision):
    engine = TorchEngine(["cpu"], precision)
    start = normal(rng, (p, p), np.float64)
    A = torch.from_numpy(start.copy())
    expected = start.copy()
    for b in (300, 0, 7):
        block = normal(rng, (b, p), dtype)
        engine.accumulate_gram(A, torch.from_numpy(block))
        expected += block.astype(np.float64).T @ block
    close(np.triu(A.numpy()), np.triu(expected), np.float64)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 256, 257, 600, 4000]), st.integers(1, 5),
    st.integers(-480, 480), st.sampled_from([-(2**20), 2**19]),
)  # fmt: skip
@example(0, 4000, 3, 0, 2**19)
def test_slices_sum_whole_numbers_exactly_at_every_scale(seed, b, p, scale, least):
    """Entries of 20 bits have exact products in slices, and so does their sum in float64.

    Sums of numbers of one sign are the largest: float32 holds those of 256 rows.
    """
    rng = np.random.default_rng(seed)
    whole = rng.integers(least, 2**20, size=(b, p))
    unit = 2.0**scale
    A = torch.zeros((p, p), dtype=torch.float64)
    TorchEngine(["cpu"], "split").accumulate_gram(A, torch.from_numpy(whole * unit))
    exact = (whole.T @ whole).astype(np.float64) * unit * unit
    np.testing.assert_array_equal(np.triu(A.numpy()), np.triu(exact))


@pytest.mark.parametrize("largest", [1e-150, 1.0, 1e150])
def test_slices_have_the_error_of_their_bits(rng, largest):
    """What is dropped is 2⁻⁴² of the squared largest entry for every row, at most."""
    F = rng.standard_normal((90, 3)) * [1.0, 1e-3, 1e-7]
    F *= largest / np.abs(F).max()
    A = torch.zeros((3, 3), dtype=torch.float64)
    TorchEngine(["cpu"], "split").accumulate_gram(A, torch.from_numpy(F))
    bound = Fraction(2) ** -42 * len(F) * Fraction(largest) ** 2
    for i in range(3):
        for j in range(i, 3):
            exact = sum(
                Fraction(x) * Fraction(y) for x, y in zip(F[:, i], F[:, j], strict=True)
            )
            assert abs(Fraction(float(A[i, j])) - exact) <= bound


def test_slices_of_nothing_and_of_zeros():
    engine, A = TorchEngine(["cpu"], "split"), torch.ones((2, 2), dtype=torch.float64)
    engine.accumulate_gram(A, torch.zeros((5, 2), dtype=torch.float64))
    engine.accumulate_gram(A, torch.zeros((0, 2), dtype=torch.float64))
    assert (A == 1).all()


@all_types
def test_products_are_added_in_the_type_of_the_sum(engine, rng, dtype):
    left, right = normal(rng, (9, 4), dtype), normal(rng, (9, 2), dtype)
    C = torch.ones((4, 2), dtype=torch.float64)
    engine.accumulate_product(C, torch.from_numpy(left), torch.from_numpy(right))
    close(C.numpy(), 1 + left.astype(float).T @ right, np.float64)
    D = np.ones((4, 2))
    engine.accumulate_product(D, left, right)
    close(D, C.numpy(), np.float32)


@pytest.mark.parametrize("p", [0, 1, 5, 4 * PANEL + 1])
def test_symmetrize(engine, rng, p):
    A = torch.from_numpy(rng.standard_normal((p, p)))
    upper = torch.triu(A)
    expected = upper + torch.triu(upper, 1).T
    engine.symmetrize(A)
    assert torch.equal(A, expected)
    spoiled = np.triu(expected.numpy()) + np.tril(np.full((p, p), np.nan), -1)
    engine.symmetrize(spoiled)
    np.testing.assert_array_equal(spoiled, expected.numpy())


@pytest.mark.parametrize("form", [np.array, torch.tensor])
def test_the_diagonal_is_shifted_in_place(engine, form):
    A = form([[1.0, 2.0], [3.0, 4.0]])
    engine.add_to_diagonal(A, 0.5)
    assert engine.to_host(A).tolist() == [[1.5, 2.0], [3.0, 4.5]]


# Factors


@all_types
@pytest.mark.parametrize("form", [np.array, torch.from_numpy])
def test_singular_matrices_get_jitter_and_a_warning(engine, rng, dtype, form):
    B = normal(rng, (2, 6), dtype)
    A = form(100 * B.T @ B)
    with pytest.warns(JitterWarning, match="singular"):
        R = engine.to_host(engine.cholesky(A))
    close(R.T @ R, engine.to_host(A), np.float32)
    with pytest.raises(NotPositiveDefiniteError, match="6 x 6 matrix is not positive definite"):
        engine.cholesky(A, jitter=False)


@pytest.mark.parametrize("jitter", [True, False])
@pytest.mark.parametrize("entry", [-1.0, np.nan])
def test_matrices_that_are_not_positive_definite_are_refused(engine, jitter, entry):
    A = torch.diag(torch.tensor([1.0, 2.0, entry], dtype=torch.float64))
    with pytest.raises(NotPositiveDefiniteError):
        engine.cholesky(A, jitter=jitter)


def test_only_upper_triangles_are_read(engine, rng):
    A = positive_definite(rng, 5, np.float64)
    spoiled = torch.from_numpy(np.triu(A) + np.tril(np.full((5, 5), np.nan), -1))
    R = engine.cholesky(spoiled).numpy()
    close(R.T @ R, A, np.float64)
    close(engine.eigh(spoiled)[0].numpy(), np.linalg.eigvalsh(A), np.float64)
    C = engine.congruence(spoiled, torch.from_numpy(R)).numpy()
    close(np.triu(C), np.eye(5), np.float64)


@pytest.mark.parametrize("form", [np.asarray, lambda A: torch.from_numpy(np.asarray(A))])
@all_types
def test_nothing_in_gives_nothing_out(engine, form, dtype):
    def empty(*shape):
        return form(np.zeros(shape, dtype))

    shapes = {
        "product": ((empty(0, 3), empty(3, 2)), (0, 2)),
        "inner": ((empty(2, 0), empty(3, 0)), (2, 3)),
        "squared_distances": ((empty(0, 3), empty(2, 3)), (0, 2)),
        "absolute_distances": ((empty(2, 3), empty(0, 3)), (2, 0)),
        "cholesky": ((empty(0, 0),), (0, 0)),
        "solve_triangular": ((empty(0, 0), empty(0, 2)), (0, 2)),
        "whiten": ((empty(0, 0), empty(4, 0)), (4, 0)),
        "congruence": ((empty(0, 0), empty(0, 0)), (0, 0)),
        "invert_triangular": ((empty(0, 0),), (0, 0)),
    }
    for name, (arrays, shape) in shapes.items():
        found = getattr(engine, name)(*arrays)
        assert tuple(found.shape) == shape, name
        assert engine.type_of(found) == dtype, name
    L, pivots = engine.pivoted_cholesky(form(np.zeros((3, 3), dtype)), 0.0)
    assert tuple(L.shape) == (3, 0)
    assert len(pivots) == 0


# Arrays


@pytest.mark.parametrize(
    "A",
    [np.arange(6.0).reshape(2, 3)[:, ::-1], np.arange(6.0)[::-2], np.array(True)],
    ids=["flipped", "steps back", "flag"],
)
def test_every_layout_becomes_a_tensor_and_comes_back(engine, A):
    A.flags.writeable = False
    there = engine.asarray(A)
    assert torch.is_tensor(there)
    np.testing.assert_array_equal(engine.to_host(there), A)
    assert engine.type_of(there) == A.dtype


@pytest.mark.parametrize("form", [np.array, torch.tensor])
def test_copies_are_copies_and_casts_change_the_type_alone(engine, form):
    A = form([[1.0, 2.0], [3.0, 4.0]], dtype=np.float64 if form is np.array else torch.float64)
    for copied in (engine.copy(A), engine.copy_rows(A.T).T):
        copied[0, 0] = 9.0
        assert A[0, 0] == 1.0
    narrow = engine.cast(A, np.dtype(np.float32))
    assert engine.type_of(narrow) == np.float32
    assert type(narrow) is type(A)
    assert engine.cast(A, np.dtype(np.float64)) is A
    assert engine.type_of(engine.asarray(A, np.float32)) == np.float32
