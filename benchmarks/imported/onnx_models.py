"""Five models in ONNX's format, of opsets 17 to 21, written operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Graph:
    """A graph that is being written: nodes, and weights of a fixed seed."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def __call__(self, kind: str, *inputs: str, results: int = 1, **attributes: object) -> str:
        """Returns the name of a node's result, or of its results with commas."""
        names = [f"{kind.lower()}_{len(self.nodes)}_{index}" for index in range(results)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return ",".join(names)

    def weight(self, *shape: int, scale: float | None = None, shift: float = 0.0) -> str:
        """Returns the name of a weight: normal numbers, so that products stay near 1."""
        scale = 1 / np.sqrt(np.prod(shape[1:]) or 1) if scale is None else scale
        drawn = self._random.standard_normal(shape) * scale + shift
        return self.constant(drawn.astype(np.float32))

    def constant(self, array: np.ndarray) -> str:
        """Returns the name of an initializer."""
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def norm(self, x: str, channels: int) -> str:
        """Returns the name of a batch norm's result."""
        around_one = [self.weight(channels, scale=0.1, shift=shift) for shift in (1, 0, 0)]
        spread = self.constant(self._random.uniform(0.5, 1.5, channels).astype(np.float32))
        return self("BatchNormalization", x, *around_one, spread)


def _perceptron(graph: _Graph) -> str:
    """Three layers of 256, by Gemm with transposed weights, and a softmax."""
    x = "x"
    for inner, outer in ((128, 256), (256, 256), (256, 10)):
        x = graph("Gemm", x, graph.weight(outer, inner), graph.weight(outer), transB=1)
        if outer > 10:
            x = graph("Relu", x)
    return graph("Softmax", x, axis=-1)


def _convolutional(graph: _Graph) -> str:
    """Convolutions with batch norms, a split in halves (Split of opset 18), pools."""
    x = graph("Conv", "x", graph.weight(32, 3, 3, 3), pads=[1, 1, 1, 1])
    x = graph("MaxPool", graph("Relu", graph.norm(x, 32)), kernel_shape=[2, 2], strides=[2, 2])
    left, right = graph("Split", x, results=2, axis=1, num_outputs=2).split(",")
    right = graph("Relu", graph("Conv", right, graph.weight(16, 16, 3, 3), pads=[1, 1, 1, 1]))
    x = graph("Concat", left, right, axis=1)
    x = graph("Conv", x, graph.weight(64, 32, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    x = graph("Flatten", graph("GlobalAveragePool", graph("Relu", graph.norm(x, 64))))
    return graph("Gemm", x, graph.weight(10, 64), graph.weight(10), transB=1)


def _separable(graph: _Graph) -> str:
    """Depthwise and pointwise convolutions, hard swish, squeeze and excitation."""
    x = graph("Conv", "x", graph.weight(32, 3, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    x = graph("HardSwish", graph.norm(x, 32))
    for inner, outer in ((32, 64), (64, 96)):
        x = graph("Conv", x, graph.weight(inner, 1, 3, 3), pads=[1, 1, 1, 1], group=inner)
        x = graph("HardSwish", graph.norm(x, inner))
        few = graph("Conv", graph("GlobalAveragePool", x), graph.weight(inner // 4, inner, 1, 1))
        gate = graph("Conv", graph("Relu", few), graph.weight(inner, inner // 4, 1, 1))
        x = graph("Mul", x, graph("HardSigmoid", gate, alpha=1 / 6, beta=0.5))
        x = graph("HardSwish", graph("Conv", x, graph.weight(outer, inner, 1, 1), strides=[2, 2]))
    x = graph("Flatten", graph("GlobalAveragePool", x))
    return graph("Gemm", x, graph.weight(10, 96), graph.weight(10), transB=1)


def _transformer(graph: _Graph) -> str:
    """Two blocks of attention by MatMul, LayerNormalization and Gelu, of opset 20."""
    width, heads, x = 128, 4, "x"
    split = graph.constant(np.array([0, 0, heads, width // heads], np.int64))
    joined = graph.constant(np.array([0, 0, width], np.int64))
    scale = graph.constant(np.array(np.sqrt(width / heads), np.float32))

    def linear(y: str, inner: int, outer: int) -> str:
        matrix = graph.weight(inner, outer, scale=1 / np.sqrt(inner))
        return graph("Add", graph("MatMul", y, matrix), graph.weight(outer))

    def normed(y: str) -> str:
        parts = graph.weight(width, scale=0.1, shift=1), graph.weight(width, scale=0.1)
        return graph("LayerNormalization", y, *parts, axis=-1)

    def in_heads(y: str, order: Sequence[int]) -> str:
        return graph(
            "Transpose", graph("Reshape", linear(y, width, width), split), perm=list(order)
        )

    for _ in range(2):
        y = normed(x)
        query, value = in_heads(y, (0, 2, 1, 3)), in_heads(y, (0, 2, 1, 3))
        scores = graph("Div", graph("MatMul", query, in_heads(y, (0, 2, 3, 1))), scale)
        mixed = graph("MatMul", graph("Softmax", scores, axis=-1), value)
        mixed = graph("Reshape", graph("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
        x = graph("Add", x, linear(mixed, width, width))
        x = graph("Add", x, linear(graph("Gelu", linear(normed(x), width, 512)), 512, width))
    return normed(x)


def _gated(graph: _Graph) -> str:
    """Convolutions along time with gates, and means over it, of opset 21."""
    x = graph("Transpose", "x", perm=[0, 2, 1])
    x = graph("Conv", x, graph.weight(64, 32, 1))
    for dilation in (1, 2, 4):
        y = graph("Conv", x, graph.weight(128, 64, 3), graph.weight(128),
                  pads=[dilation, dilation], dilations=[dilation])  # fmt: skip
        signal, gate = graph("Split", y, results=2, axis=1, num_outputs=2).split(",")
        y = graph("Mul", graph("Tanh", signal), graph("Sigmoid", gate))
        x = graph("Add", x, graph("Conv", y, graph.weight(64, 64, 1)))
    axes = graph.constant(np.array([2], np.int64))
    x = graph("ReduceMean", x, axes, keepdims=0)
    return graph("Gemm", x, graph.weight(10, 64), graph.weight(10), transB=1)


Write = Callable[[_Graph], str]
# The opset, the function that writes the graph, and the shape of an example.
MODELS: dict[str, tuple[int, Write, tuple[int, ...]]] = {
    "onnx-perceptron": (17, _perceptron, (128,)),
    "onnx-convolutional": (18, _convolutional, (3, 32, 32)),
    "onnx-separable": (19, _separable, (3, 64, 64)),
    "onnx-transformer": (20, _transformer, (64, 128)),
    "onnx-gated": (21, _gated, (100, 32)),
}


def write(name: str, batch: int, path: Path) -> np.ndarray:
    """Writes a model for a batch size, and returns its argument `x`."""
    opset, make, shape = MODELS[name]
    graph = _Graph()
    result = helper.make_tensor_value_info(make(graph), TensorProto.FLOAT, None)
    argument = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, *shape])
    made = helper.make_graph(graph.nodes, name, [argument], [result], graph.weights)
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(made, opset_imports=imports, ir_version=10)
    onnx.save(onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True), path)
    return np.random.default_rng(batch).standard_normal((batch, *shape), np.float32)
