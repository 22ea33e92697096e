"""Kernels: against scikit-learn and closed forms, and what must hold for every kernel."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from imparo.engine import NumpyEngine
from imparo.kernels import (
    CallableKernel,
    Constant,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Product,
    Spline,
    Sum,
    as_kernel,
    pairwise,
)


def smallest(X, Z):
    """Return min(x, z) summed over the columns, a kernel on positive numbers."""
    return np.minimum(X[:, None, :], Z[None, :, :]).sum(axis=2)


SIMPLE = [
    Constant(2.0),
    Constant(0.0),
    Linear(),
    Polynomial(1),
    Polynomial(3),
    Gaussian(0.7),
    Laplacian(1.3),
    Matern(0.5, 0.4),
    Matern(1.5, 0.7),
    Matern(2.5, 2.0),
    Spline(1.5),
    Spline(2),
    Spline(3.0),
    CallableKernel(smallest),
]
COMPOSED = [
    Gaussian(0.7) + Linear(),
    Gaussian(0.7) * Polynomial(2),
    0.5 * Laplacian(1.0) + 3,
    (Matern(1.5, 1.0) + Constant(0.1)) * (Linear() + Spline(2.5)),
]
KERNELS = SIMPLE + COMPOSED


def name_of(kernel):
    """Return the repr without addresses, which differ between test processes."""
    return repr(kernel).split(" at 0x")[0]


every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=name_of)


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def columns_of(kernel):
    """Return how many columns to try a kernel on: splines take one."""
    return 1 if "Spline" in repr(kernel) else 3


@pytest.fixture
def rows(rng, request):
    kernel = getattr(request.node, "callspec", None) and request.node.callspec.params.get(
        "kernel"
    )
    return rng.uniform(0, 1, (12, columns_of(kernel)))


@pytest.fixture
def others(rng, rows):
    return np.vstack([rows[:2], rng.uniform(0, 1, (5, rows.shape[1]))])


def close(actual, expected, rtol=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)


# What must hold for every kernel


@every_kernel
def test_symmetric_and_positive_semidefinite(kernel, rng):
    X = rng.uniform(0, 1, (40, columns_of(kernel)))
    K = kernel(X)
    assert K.shape == (40, 40)
    close(K, K.T)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    assert eigenvalues[0] >= -1e-12 * max(eigenvalues[-1], 1)


@every_kernel
def test_blocks_agree_with_the_whole(kernel, rows, others):
    K = kernel(rows, others)
    assert K.shape == (12, 7)
    close(K, kernel(others, rows).T)
    whole = kernel(np.vstack([rows, others]))
    close(K, whole[:12, 12:])
    close(kernel(rows), whole[:12, :12])
    for i in (0, 5):
        close(kernel(rows[i : i + 1], others), K[i : i + 1])


@every_kernel
def test_diagonal(kernel, rows):
    diagonal = kernel.diagonal(rows)
    assert diagonal.shape == (12,)
    close(diagonal, np.diagonal(kernel(rows)))


@every_kernel
def test_bound(kernel, rows):
    diagonal = kernel.diagonal(rows)
    assert isinstance(kernel.bound, float)
    assert (diagonal <= kernel.bound * (1 + 1e-14)).all()


@every_kernel
@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0)])
@pytest.mark.filterwarnings("error")
def test_no_rows(kernel, n, m):
    d = columns_of(kernel)
    assert kernel(np.full((n, d), 0.5), np.full((m, d), 0.5)).shape == (n, m)
    assert kernel.diagonal(np.full((n, d), 0.5)).shape == (n,)


@every_kernel
def test_float32_in_float32_out(kernel, rows, others):
    X, Z = rows.astype(np.float32), others.astype(np.float32)
    K = kernel(X, Z)
    assert K.dtype == np.float32
    assert kernel.diagonal(X).dtype == np.float32
    close(K, kernel(X.astype(float), Z.astype(float)), 1e-4)
    close(kernel.diagonal(X), kernel.diagonal(X.astype(float)), 1e-4)
    assert kernel(X, others).dtype == kernel(rows, others).dtype == np.float64


@every_kernel
@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows(kernel, rows, others, layout, dtype):
    X = np.where(rows > 0.5, rows, 0).astype(dtype)
    Z = np.where(others > 0.5, others, 0).astype(dtype)
    if not kernel.sparse:
        for pair in [(layout(X), layout(Z)), (layout(X), Z), (X, layout(Z)), (layout(X),)]:
            with pytest.raises(TypeError, match="takes dense rows"):
                kernel(*pair)
        return
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for pair in [(layout(X), layout(Z)), (layout(X), Z), (X, layout(Z))]:
        K = kernel(*pair)
        assert isinstance(K, np.ndarray)
        assert K.dtype == dtype
        close(K, kernel(X, Z), tolerance)
    close(kernel(layout(X)), kernel(X), tolerance)
    diagonal = kernel.diagonal(layout(X))
    assert isinstance(diagonal, np.ndarray)
    assert diagonal.dtype == dtype
    close(diagonal, kernel.diagonal(X), tolerance)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Linear(), True),
        (Polynomial(), True),
        (Gaussian(1.0), True),
        (Matern(0.5, 1.0), True),
        (Constant(), True),
        (Laplacian(1.0), False),
        (Spline(), False),
        (Precomputed(), False),
        (CallableKernel(smallest), False),
        (Gaussian(1.0) + 2 * Linear(), True),
        (Gaussian(1.0) + Laplacian(1.0), False),
        (Spline() * Linear(), False),
    ],
    ids=name_of,
)
def test_which_kernels_take_sparse_rows(kernel, expected):
    assert kernel.sparse is expected


@every_kernel
def test_input_is_not_changed(kernel, rows, others):
    X, Z = rows.copy(), others.copy()
    kernel(rows, others)
    kernel(rows)
    kernel.diagonal(rows)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(others, Z)


@every_kernel
def test_kernels_are_values(kernel):
    same = pickle.loads(pickle.dumps(kernel))
    assert same == kernel
    assert hash(same) == hash(kernel)
    assert [k for k in KERNELS if k == kernel] == [kernel]
    if not isinstance(kernel, CallableKernel):
        assert eval(repr(kernel)) == kernel
    with pytest.raises(AttributeError):
        kernel.sigma = 3.0


# Each kernel against an independent reference


@pytest.mark.parametrize("sigma", [0.3, 1.0, 12.0])
def test_gaussian(rows, others, sigma):
    expected = rbf_kernel(rows, others, gamma=1 / (2 * sigma**2))
    close(Gaussian(sigma)(rows, others), expected)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 12.0])
def test_laplacian(rows, others, sigma):
    close(Laplacian(sigma)(rows, others), laplacian_kernel(rows, others, gamma=1 / sigma))


@pytest.mark.parametrize("order", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 12.0])
def test_matern(rows, others, order, sigma):
    expected = SklearnMatern(length_scale=sigma, nu=order)(rows, others)
    # The square root of a distance 0 that the reference rounds to 1e-16 is 1e-8.
    close(Matern(order, sigma)(rows, others), expected, 1e-7)


def test_laplacian_and_matern_agree_on_one_column(rows, others):
    X, Z = rows[:, :1], others[:, :1]
    close(Laplacian(0.4)(X, Z), Matern(0.5, 0.4)(X, Z))


def test_linear(rows, others):
    close(Linear()(rows, others), np.einsum("ik,jk->ij", rows, others))


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_polynomial(rows, others, degree):
    expected = polynomial_kernel(rows, others, degree=degree, gamma=1.0, coef0=1.0)
    close(Polynomial(degree)(rows, others), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(2), Gaussian(50.0), Laplacian(50.0)], ids=name_of
)
def test_whole_numbers_do_not_overflow(kernel, dtype, rng):
    X = rng.randint(0, 128, (6, 3)).astype(dtype)
    expected = kernel(X.astype(float))
    # Whole numbers of 8 bits give float32, as they do in NumPy.
    for rows in [X, sparse.csr_array(X)] if kernel.sparse else [X]:
        close(kernel(rows), expected, 1e-5)
        close(kernel.diagonal(rows), np.diagonal(expected), 1e-5)


def bernoulli(degree, t):
    return {
        2: t**2 - t + 1 / 6,
        4: t**4 - 2 * t**3 + t**2 - 1 / 30,
        6: t**6 - 3 * t**5 + 5 / 2 * t**4 - t**2 / 2 + 1 / 42,
    }[degree]


@pytest.mark.parametrize("q", [2, 4, 6])
def test_spline_of_even_order_is_a_bernoulli_polynomial(q):
    X = np.linspace(0, 1, 33)[:, None]
    t = np.abs(X - X.T)
    sign = (-1) ** (q // 2 - 1)
    expected = 1 + sign * (2 * np.pi) ** q / math.factorial(q) * bernoulli(q, t)
    close(Spline(q)(X), expected)


@pytest.mark.parametrize("q", [3, 3.3, 4.5, 5, 7, 12.25])
def test_spline_is_its_series(q):
    # What is left out is at most 2·N^{1−q}/(q − 1), 2.5e-13 at q = 3.
    k = np.arange(2_000_000, 0, -1.0)
    X = np.array([[0.0], [1e-4], [0.03], [0.25], [0.5], [0.9]])
    expected = [1 + np.sum(2 * np.cos(2 * np.pi * k * x) / k**q) for x in X[:, 0]]
    close(Spline(q)(X[:1], X)[0], expected)


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("odd", [3, 5])
def test_spline_is_continuous_in_its_order(odd, distance):
    X = np.linspace(0, 1, 9)[:, None]
    # |dK/dq| is at most 2Σ log(k)/k^q, 0.4 at q = 3.
    for q in (odd - distance, odd + distance):
        assert np.abs(Spline(q)(X) - Spline(odd)(X)).max() < 0.5 * distance + 1e-7


@pytest.mark.filterwarnings("error")
def test_spline_of_very_high_order_is_one_cosine():
    X = np.linspace(0, 1, 9)[:, None]
    for q in (60.0, 171.5, 200.0, 1000.0):
        close(Spline(q)(X), 1 + 2 * np.cos(2 * np.pi * (X - X.T)))


# The trapezoid's error is the Fourier coefficients from N on, about N^{−q}.
@pytest.mark.parametrize(
    ("q", "n_points", "tolerance"), [(2.5, 2**13, 1e-8), (1.5, 2**18, 1e-6)]
)
def test_splines_convolve_to_twice_the_order(q, n_points, tolerance):
    omega = np.arange(n_points)[:, None] / n_points
    X = np.array([[0.0], [0.1], [0.37], [0.9]])
    K = Spline(q)(omega, X)
    close(K.T @ K / n_points, Spline(2 * q)(X), tolerance)


def test_spline_takes_one_column(rows):
    with pytest.raises(ValueError, match="one column and X has 3"):
        Spline(2.5)(rows)


@pytest.mark.parametrize("bad", [-0.1, 1.1])
def test_spline_outside_its_interval(bad):
    X, Z = np.array([[0.5], [bad]]), np.array([[0.2]])
    for pair in [(X,), (X, Z), (Z, X)]:
        with pytest.raises(ValueError, match=r"defined on \[0, 1\]"):
            Spline()(*pair)


# Sums, products, multiples


def test_sums_and_products(rows, others):
    a, b = Gaussian(0.5), Linear()
    A, B = a(rows, others), b(rows, others)
    close((a + b)(rows, others), A + B)
    close((a * b)(rows, others), A * B)
    close((2 * a)(rows, others), 2 * A)
    close((a * 2)(rows, others), 2 * A)
    close((1 + a)(rows, others), 1 + A)
    close((a + 1.5)(rows, others), A + 1.5)
    close((2 * a + b * b + 3)(rows, others), 2 * A + B * B + 3)
    close(sum([a, b, b])(rows, others), A + 2 * B)


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2), 2])
def test_numpy_numbers_are_numbers(number):
    assert number * Gaussian(1.0) == Gaussian(1.0) * number == 2 * Gaussian(1.0)
    assert number + Gaussian(1.0) == Gaussian(1.0) + number == Gaussian(1.0) + 2


def test_bounds_of_sums_and_products():
    assert (Gaussian(1.0) + 3 * Laplacian(1.0)).bound == 4
    assert (Gaussian(1.0) * Constant(3.0)).bound == 3
    assert (Gaussian(1.0) + Linear()).bound == np.inf
    assert (0 * Linear()).bound == 0
    assert (Linear() * 0).bound == 0


def test_kernel_matrices_of_the_user_are_not_changed_by_sums(rows):
    given = np.eye(12)
    function = CallableKernel(lambda X, Z: given)
    (function + 1)(rows)
    (Precomputed() * 2)(given)
    np.testing.assert_array_equal(given, np.eye(12))


@pytest.mark.parametrize("bad", ["1", None, [1.0], True])
def test_other_things_cannot_be_added_or_multiplied(bad):
    with pytest.raises(TypeError):
        Gaussian(1.0) + bad
    with pytest.raises(TypeError):
        bad * Gaussian(1.0)


@pytest.mark.parametrize("bad", [-1.0, np.inf, np.nan])
def test_bad_multiples(bad):
    with pytest.raises(ValueError, match="shifted or scaled"):
        bad * Gaussian(1.0)
    with pytest.raises(ValueError, match="shifted or scaled"):
        Gaussian(1.0) + bad


def test_composed_kernels_compute_on_the_given_engine(rows):
    class Counting(NumpyEngine):
        calls = 0

        def squared_distances(self, X, Z, width=1.0, *, negative=False):
            self.calls += 1
            return super().squared_distances(X, Z, width, negative=negative)

    engine = Counting()
    ((Gaussian(1.0) + Linear()) * Matern(1.5, 1.0))(rows, engine=engine)
    assert engine.calls == 2


# Parameters


@pytest.mark.parametrize("kind", [Gaussian, Laplacian, Matern])
@pytest.mark.parametrize("bad", [0, -1.0, np.inf, np.nan, "1", [[1.0]]])
def test_bad_widths(kind, bad):
    with pytest.raises(ValueError, match="sigma must be a positive number"):
        kind(sigma=bad)
    with pytest.raises(ValueError, match="sigma must be a positive number"):
        kind().with_sigma(bad)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomial(0), "degree"),
        (lambda: Polynomial(1.5), "degree"),
        (lambda: Matern(2.0), "order of Matern"),
        (lambda: Spline(1.0), "order q"),
        (lambda: Spline(np.inf), "order q"),
        (lambda: Spline(np.nan), "order q"),
        (lambda: Constant(-1.0), "not negative"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "kernel", [Gaussian(), Laplacian(), Matern(0.5), Gaussian() + 1, Linear() * Laplacian()]
)
def test_a_width_that_is_not_set(kernel, rows):
    assert kernel.needs_sigma
    with pytest.raises(ValueError, match=r"the width of .* is not set"):
        kernel(rows)
    assert not kernel.with_sigma(1.0).needs_sigma
    assert kernel.with_sigma(1.0)(rows).shape == (12, 12)


def test_with_sigma_sets_only_what_is_not_set():
    assert Gaussian().with_sigma(2.0) == Gaussian(2.0)
    assert Matern(2.5).with_sigma(2.0) == Matern(2.5, 2.0)
    assert Gaussian(1.0).with_sigma(2.0) == Gaussian(1.0)
    assert Linear().with_sigma(2.0) == Linear()
    mixed = Gaussian() + Laplacian(3.0) * (Matern(0.5) + 1)
    assert mixed.needs_sigma
    assert mixed.with_sigma(2.0) == Gaussian(2.0) + Laplacian(3.0) * (Matern(0.5, 2.0) + 1)
    assert mixed == Gaussian() + Laplacian(3.0) * (Matern(0.5) + 1)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Gaussian(), "euclidean"),
        (Matern(0.5), "euclidean"),
        (Laplacian(), "cityblock"),
        (Laplacian(1.0), None),
        (Linear(), None),
        (Laplacian() + Gaussian(), "cityblock"),
        (Gaussian(1.0) * (Linear() + Laplacian()), "cityblock"),
        (Gaussian(1.0) + Linear(), None),
    ],
    ids=name_of,
)
def test_width_distance(kernel, expected):
    assert kernel.width_distance == expected


# Kernels that the user computes


def test_callable_kernel(rows, others):
    kernel = as_kernel(smallest)
    assert isinstance(kernel, CallableKernel)
    np.testing.assert_array_equal(kernel(rows, others), smallest(rows, others))
    assert kernel.bound == np.inf


def test_pairwise(rows, others):
    kernel = pairwise(lambda x, z: np.minimum(x, z).sum())
    close(kernel(rows, others), smallest(rows, others))
    close(kernel.diagonal(rows), rows.sum(axis=1))


@pytest.mark.parametrize(
    "function", [lambda X, Z: X @ X.T, lambda X, Z: 1.0, lambda X, Z: (X @ Z.T).T]
)
def test_callable_of_the_wrong_shape(function, rows, others):
    with pytest.raises(ValueError, match=r"must return \(12, 7\).*pairwise"):
        CallableKernel(function)(rows, others)


def test_callable_lists_are_converted(rows):
    kernel = CallableKernel(lambda X, Z: [[1] * len(Z)] * len(X))
    np.testing.assert_array_equal(kernel(rows), np.ones((12, 12)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed(rows, dtype):
    K = smallest(rows, rows).astype(dtype)
    for result, expected in [
        (Precomputed()(K), K),
        (Precomputed()(K[:3], rows), K[:3]),
        (Precomputed().diagonal(K), np.diagonal(K)),
    ]:
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == dtype
        assert not np.shares_memory(result, K)
    assert Precomputed() == pickle.loads(pickle.dumps(Precomputed()))
    assert Precomputed().bound == np.inf


# Names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gaussian", Gaussian()),
        ("laplacian", Laplacian()),
        ("matern12", Matern(0.5)),
        ("matern32", Matern(1.5)),
        ("matern52", Matern(2.5)),
        ("linear", Linear()),
        ("polynomial", Polynomial(2)),
        ("spline", Spline(2.0)),
        ("precomputed", Precomputed()),
    ],
)
def test_as_kernel_by_name(name, expected):
    assert as_kernel(name) == expected


@pytest.mark.parametrize(
    "kernel", [Gaussian(2.0), Sum(Linear(), Constant()), Product(Linear(), Linear())]
)
def test_as_kernel_leaves_kernels_alone(kernel):
    assert as_kernel(kernel) is kernel


def test_as_kernel_errors():
    with pytest.raises(ValueError, match=r"'rbf' is not known; give one of gaussian, .*spline"):
        as_kernel("rbf")
    for bad in (None, 3, Gaussian, ["gaussian"]):
        with pytest.raises(TypeError, match="kernel must be a name"):
            as_kernel(bad)


def test_kernel_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Kernel()
