"""Which engine a device stands for, what it may use, and what if it fails."""

import gc
import sys
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imparo import KernelRegressor, NystromRegressor
from imparo.engine import (
    NumpyEngine,
    available_memory,
    choose_engine,
    choosing,
    computing_on,
    default_engine,
    engine_holding,
    engine_of,
    memory_for,
    rates,
    row_blocks,
    told_of_failures,
    with_smaller_blocks,
)
from imparo.engine.rates import Rates, measured_rates
from imparo.engine.sending import sent_ahead
from imparo.engine.torch import TorchEngine
from imparo.errors import DeviceError, MemoryBudgetError
from imparo.features import Fourier, NystromMap
from imparo.features.sent import sent
from imparo.kernels import Gaussian

torch = pytest.importorskip("torch", reason="the PyTorch engine needs PyTorch")
# One core, as on the machines that run all tests beside each other.
torch.set_num_threads(1)


@pytest.fixture
def engine():
    return TorchEngine(["cpu"])


# Which engine computes


def test_the_engine_at_work_is_that_of_the_innermost_block(engine):
    inner = TorchEngine(["cpu"])
    with computing_on(engine):
        assert default_engine() is engine
        with computing_on(inner):
            assert default_engine() is inner
        assert default_engine() is engine
        with pytest.raises(KeyError), computing_on(inner):
            raise KeyError
        assert default_engine() is engine
    assert isinstance(default_engine(), NumpyEngine)


def test_other_threads_do_not_see_it(engine):
    seen = []
    with computing_on(engine):
        thread = threading.Thread(target=lambda: seen.append(default_engine()))
        thread.start()
        thread.join()
    assert isinstance(seen[0], NumpyEngine)


def test_tensors_are_computed_with_where_they_are(engine):
    T, A = torch.ones((1, 1)), np.ones((1, 1))
    assert isinstance(engine_of(T), TorchEngine)
    assert isinstance(engine_of(A), NumpyEngine)
    with computing_on(engine):
        assert engine_of(T) is engine_holding(T) is engine
        assert engine_of(A) is engine
        assert isinstance(engine_holding(A), NumpyEngine)


# From a name to an engine


@pytest.fixture
def two_cards(monkeypatch):
    """PyTorch sees two GPUs; they are named and never used."""
    monkeypatch.setattr(choosing, "_cards", lambda: ["cuda:0", "cuda:1"])


@pytest.mark.parametrize(
    ("device", "X", "name"),
    [
        (None, None, "cpu"),
        (None, np.ones((2, 2)), "cpu"),
        (None, torch.ones((2, 2)), "torch:cpu"),
        ("cpu", torch.ones((2, 2)), "cpu"),
        ("auto", None, "cpu"),
        ("torch:cpu", None, "torch:cpu"),
        (torch.device("cpu"), np.ones((2, 2)), "torch:cpu"),
    ],
)
def test_devices_without_a_gpu(monkeypatch, device, X, name):
    monkeypatch.setattr(choosing, "_cards", list)
    engine = choose_engine(device, X)
    assert engine.name == name
    assert engine.resident == (name != "cpu")
    assert engine.precision == "float64"


@pytest.mark.parametrize(
    ("device", "places"),
    [
        ("cuda", ["cuda:0", "cuda:1"]),
        ("auto", ["cuda:0", "cuda:1"]),
        ("cuda:1", ["cuda:1"]),
        (torch.device("cuda:1"), ["cuda:1"]),
        ("cpu", None),
    ],
)
def test_devices_with_two_gpus(two_cards, device, places):
    engine = choose_engine(device)
    if places is None:
        assert isinstance(engine, NumpyEngine)
    else:
        assert [str(part.device) for part in engine.replicas] == places


@pytest.mark.parametrize(
    "device",
    ["gpu", "", "CPU", "cuda:x", "cuda:-1", "torch", "torch:cuda", 0, True, ["cpu"], np.nan,
     torch.ones(2)],
    ids=repr,
)  # fmt: skip
def test_unknown_devices_are_refused_with_what_to_give(device):
    with pytest.raises(ValueError, match="is not known; give 'cpu', 'cuda', 'cuda:0', 'auto'"):
        choose_engine(device)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda")])
def test_a_gpu_that_is_not_there(monkeypatch, device):
    monkeypatch.setattr(choosing, "_cards", list)
    with pytest.raises(DeviceError, match="PyTorch sees none; use device='cpu', 'auto'"):
        choose_engine(device)


def test_a_gpu_beyond_the_last(two_cards):
    with pytest.raises(DeviceError, match="'cuda:2' is not there: PyTorch sees cuda:0, cuda:1"):
        choose_engine("cuda:2")


@pytest.mark.parametrize("precision", ["double", "float16", 64, "Split"])
@pytest.mark.parametrize("device", [None, "cpu", "torch:cpu"])
def test_unknown_precisions_are_refused_with_what_to_give(device, precision):
    with pytest.raises(ValueError, match="is not known; give 'float64', 'float32', 'split'"):
        choose_engine(device, precision=precision)


@pytest.mark.parametrize("device", ["torch:cpu", "cuda", "cuda:0"])
def test_without_pytorch_its_extra_is_named(monkeypatch, device):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"imparo\[torch\]"):
        choose_engine(device)
    model = KernelRegressor(sigma=1.0, penalty=0.1, device=device)
    with pytest.raises(ImportError, match=r"imparo\[torch\]"):
        model.fit(np.ones((3, 1)), np.ones(3))
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("device", [None, "cpu", "auto"])
def test_without_pytorch_all_else_works(monkeypatch, rng, device):
    monkeypatch.setitem(sys.modules, "torch", None)
    X = rng.normal(size=(20, 2))
    model = NystromRegressor(n_centers=5, penalty=0.1, device=device).fit(X, X[:, 0])
    assert model.device_ == "cpu"
    assert model.predict(X).shape == (20,)


@pytest.mark.parametrize(
    ("share", "precision"),
    [(1.0, "float64"), (0.5, "float64"), (0.1, "split"), (1 / 64, "split")],
)
def test_a_gpu_that_is_slow_in_float64_sums_slices(share, precision):
    engine = TorchEngine(["cuda:0"])
    engine.rates = Rates(float64=share, float32=1.0, host=0.01, transfer=1.0)
    assert engine.precision == precision
    for asked in ("float64", "float32", "split"):
        assert TorchEngine(["cuda:0"], asked).precision == asked


@given(st.floats(1, 1e12), st.floats(0, 1e12), st.floats(0, 1e12))
def test_more_work_pays_sooner_and_more_bytes_later(operations, moved, more):
    speed = Rates(float64=1e13, float32=2e13, host=1e11, transfer=1e10)
    if speed.pays(operations, moved + more):
        assert speed.pays(operations, moved)
        assert speed.pays(operations + more, moved)
    # Nothing is free, and a device no faster than the host never gains.
    assert not speed.pays(1.0, moved)
    assert not Rates(1e11, 1e11, 1e11, 1e10).pays(operations, moved)


def test_rates_are_measured_once(monkeypatch):
    monkeypatch.setattr(rates, "_SIZE", 32)
    monkeypatch.setattr(rates, "_HOST_SIZE", 32)
    monkeypatch.setattr(rates, "_SENT", 2**12)
    measured_rates.cache_clear()
    try:
        found = measured_rates("cpu")
        assert min(found.float64, found.float32, found.host, found.transfer) > 0
        assert TorchEngine(["cpu"]).rates is found
    finally:
        measured_rates.cache_clear()


# Rows and arrays on their way


def test_blocks_are_sent_in_order_to_devices_in_turn(rng):
    X = rng.normal(size=(23, 2))
    engines = [TorchEngine(["cpu"]) for _ in range(3)]
    blocks = ((rows, X[rows]) for rows in row_blocks(23, 4))
    found = list(sent_ahead(blocks, engines))
    assert [rows.start for rows, _, _ in found] == [0, 4, 8, 12, 16, 20]
    assert [engines.index(e) for _, _, e in found] == [0, 1, 2, 0, 1, 2]
    for rows, there, _ in found:
        np.testing.assert_array_equal(there.numpy(), X[rows])


def make_map(kind):
    if kind == "nystrom":
        return NystromMap(Gaussian(1.0), np.array([[0.0], [1.0]])), "centers"
    return Fourier().draw(Gaussian(1.0), 1, 4, seed=0), "amplitudes"


@pytest.mark.parametrize("kind", ["nystrom", "fourier"])
def test_arrays_of_a_map_are_sent_once_and_go_with_it(engine, kind):
    map, name = make_map(kind)
    double = np.dtype(np.float64)
    there = sent(map, name, getattr(map, name), engine, double)
    assert sent(map, name, getattr(map, name), engine, double) is there
    assert sent(map, name, getattr(map, name), engine, np.dtype(np.float32)) is not there
    gone = weakref.ref(there)
    del there, map
    gc.collect()
    assert gone() is None


# Memory


def test_memory_on_the_host(engine):
    for where in (engine, NumpyEngine()):
        assert memory_for(None, where) == available_memory()
        assert memory_for("2GB", where) == 2 * 10**9
        assert memory_for(4096, where) == 4096
        assert memory_for({"host": "1MB", "device": "2GB"}, where) == 10**6
        assert memory_for({"device": "2GB"}, where) == available_memory()


def test_memory_on_a_gpu():
    """Nine tenths of what is free, what PyTorch holds and does not use being free too."""
    cuda = SimpleNamespace(
        mem_get_info=lambda device: (1000, 5000),
        memory_reserved=lambda device: 600,
        memory_allocated=lambda device: 100,
    )
    card = SimpleNamespace(device=SimpleNamespace(type="cuda"), xp=SimpleNamespace(cuda=cuda))
    assert memory_for(None, card) == 1350
    assert memory_for({"host": 7}, card) == 1350
    assert memory_for({"host": 7, "device": "1kB"}, card) == 1000
    assert memory_for("2kB", card) == 2000


@pytest.mark.parametrize(
    ("memory", "message"),
    [({}, "keys 'host' and 'device'"), ({"gpu": 1}, "keys 'host' and 'device'"),
     ({"host": 1, "disk": 2}, "keys 'host' and 'device'"), ({"host": "much"}, "not an amount"),
     ("much", "not an amount"), (-1, "at least one byte"), (True, "not an amount")],
)  # fmt: skip
def test_bad_memory(engine, rng, memory, message):
    with pytest.raises(ValueError, match=message):
        memory_for(memory, engine)
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match=message):
        NystromRegressor(n_centers=5, memory=memory, device="torch:cpu").fit(X, X[:, 0])


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("full"), RuntimeError("CUDA error: out of memory")]
)
def test_a_pass_that_runs_out_of_memory_starts_again_in_halves(engine, error):
    sizes = []

    def work(size):
        sizes.append(size)
        if size > 250:
            raise error
        return "done"

    assert with_smaller_blocks(work, 1000, engine) == "done"
    assert sizes == [1000, 500, 250]


def test_it_gives_up_where_blocks_are_small(engine):
    sizes = []

    def work(size):
        sizes.append(size)
        raise torch.OutOfMemoryError("full")

    with pytest.raises(MemoryBudgetError, match=r"torch:cpu has no memory left.*device='cpu'"):
        with_smaller_blocks(work, 1000, engine)
    assert sizes == [1000, 500, 250, 125]


@pytest.mark.parametrize(
    "error", [RuntimeError("shapes"), ValueError("out of memory"), MemoryError("main memory")]
)
def test_other_errors_of_a_pass_are_as_they_are(engine, error):
    sizes = []

    def work(size):
        sizes.append(size)
        raise error

    with pytest.raises(type(error)) as caught:
        with_smaller_blocks(work, 1000, engine)
    assert caught.value is error
    assert sizes == [1000]


FAILURES = {
    "CUDA error: unspecified launch failure\nCompile with X": (DeviceError, "failed in the"),
    "CUBLAS_STATUS_EXECUTION_FAILED when calling": (DeviceError, "failed in the middle"),
    "cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR": (DeviceError, "failed in the middle"),
    "CUDA out of memory. Tried to allocate": (MemoryBudgetError, "no memory left"),
    "CUDA error: out of memory": (MemoryBudgetError, "no memory left"),
    "mat1 and mat2 shapes cannot be multiplied": (RuntimeError, "shapes cannot"),
}


@pytest.mark.parametrize("message", FAILURES)
def test_errors_of_a_device_are_told_in_one_sentence(engine, message):
    kind, words = FAILURES[message]
    error = RuntimeError(message)
    with pytest.raises(kind, match=words) as caught, told_of_failures(engine):
        raise error
    assert "\n" not in str(caught.value)
    assert type(caught.value) is kind
    assert (caught.value is error) == (kind is RuntimeError)


def test_errors_that_are_not_of_a_device_pass(engine):
    for error in (ValueError("CUDA error"), KeyError("x"), DeviceError("CUDA error: told")):
        with pytest.raises(type(error)) as caught, told_of_failures(engine):
            raise error
        assert caught.value is error
