"""Quantized models of ONNX give what ONNX Runtime gives, and their weights stay bytes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import axir
from axir._foreign.onnx_models import with_weights
from axir._foreign.onnx_quantization import write_out_quantization
from axir.export import from_onnx

MODULES = ("onnx", "onnxruntime", "torch_mlir")
needs_onnx = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in MODULES),
    reason="needs axir[onnx] and onnxruntime",
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 8)).astype(np.float32)
BYTES = RNG.integers(0, 256, (4, 8)).astype(np.uint8)
IMAGE = RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)
PIXELS = RNG.integers(0, 256, (1, 3, 8, 8)).astype(np.uint8)
SCALES = {"s": np.float32(0.05), "z": np.uint8(120), "ys": np.float32(0.3), "yz": np.uint8(100)}
WEIGHTS = {
    "w": RNG.integers(-127, 128, (8, 12)).astype(np.int8),
    "ws": RNG.uniform(0.01, 0.02, 12).astype(np.float32),
    "wz": np.zeros(12, np.int8),
    "b": RNG.integers(-1000, 1000, 12).astype(np.int32),
    "bs": np.float32(0.0005),
}
KERNEL = {
    "w": RNG.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
    "ws": np.array([0.01, 0.02, 0.015, 0.005], np.float32),
    "wz": np.zeros(4, np.int8),
    "b": RNG.integers(-1000, 1000, 4).astype(np.int32),
    "bs": np.float32(0.0005),
}
UNEVEN = {"u": RNG.integers(0, 256, (8, 12)).astype(np.uint8), "uz": np.uint8(100)}
QUANTIZED = "QuantizeLinear x s z > q; DequantizeLinear q s z > d"
PADS = {"pads": [1, 1, 1, 1], "strides": [2, 2]}
UNEVEN_PADS = {"pads": [0, 0, 1, 1], "strides": [2, 2]}
SAME = {"auto_pad": "SAME_UPPER", "strides": [2, 2]}

Case = tuple[str, np.ndarray, dict[str, Any], Mapping[str, dict[str, Any]]]
CASES: dict[str, Case] = {
    "quantize": ("QuantizeLinear x s z > y", X, SCALES, {}),
    "quantize along an axis": (
        "QuantizeLinear x s z > y", X,
        {"s": np.array([0.1, 0.2, 0.03, 0.4], np.float32), "z": np.array([1, -2, 3, 9], np.int8)},
        {"QuantizeLinear": {"axis": 0}}),
    "dequantize": ("DequantizeLinear x s z > y", BYTES, SCALES, {}),
    "through 16 bits": (
        "QuantizeLinear x s z > q; DequantizeLinear q s z > y", X,
        {"s": np.float32(1e-4), "z": np.int16(1000)}, {}),
    "through 4 bits": (
        "QuantizeLinear x s z > q; DequantizeLinear q s z > y", X,
        {"s": np.float32(0.3), "z": np.array(1, ml_dtypes.int4)}, {}),
    "weights of 4 bits": (
        "DequantizeLinear w ws > d; MatMul x d > y", X,
        {"w": RNG.integers(-8, 8, (8, 12)).astype(ml_dtypes.int4), "ws": WEIGHTS["ws"]},
        {"DequantizeLinear": {"axis": 1}}),
    "weights of 4 bits in blocks": (
        "DequantizeLinear w ws > d; MatMul x d > y", X,
        {"w": RNG.integers(0, 16, (8, 12)).astype(ml_dtypes.uint4),
         "ws": RNG.uniform(0.1, 0.2, (2, 12)).astype(np.float32)},
        {"DequantizeLinear": {"axis": 0, "block_size": 4}}),
    "product": (
        f"{QUANTIZED}; DequantizeLinear w ws wz > e; MatMul d e > m; QuantizeLinear m ys yz > p;"
        " DequantizeLinear p ys yz > y", X, {**SCALES, **WEIGHTS}, {}),
    "product with a bias": (
        f"{QUANTIZED}; DequantizeLinear w ws wz > e; DequantizeLinear b bs > c; Gemm d e c > y",
        X, {**SCALES, **WEIGHTS}, {}),
    "convolution": (
        f"{QUANTIZED}; DequantizeLinear w ws wz > e; DequantizeLinear b bs > c; Conv d e c > m;"
        " QuantizeLinear m ys yz > p; DequantizeLinear p ys yz > y",
        IMAGE, {**SCALES, **KERNEL}, {"DequantizeLinear": {"axis": 0}, "Conv": PADS}),
    "dynamic": (
        "DynamicQuantizeLinear x > q s z; MatMulInteger q u z uz > i; Cast i > f; Mul f s > y",
        X, UNEVEN, {"Cast": {"to": 1}}),
    "integers": ("MatMulInteger x u z uz > y", BYTES, {**SCALES, **UNEVEN}, {}),
    "integers of a convolution": (
        "ConvInteger x w z > y", PIXELS, {**SCALES, **KERNEL}, {"ConvInteger": PADS}),
    "integers of a convolution with uneven pads": (
        "ConvInteger x w z > y", PIXELS, {**SCALES, **KERNEL}, {"ConvInteger": UNEVEN_PADS}),
    "convolution of the same size": (
        f"{QUANTIZED}; DequantizeLinear w ws wz > e; Conv d e > y",
        IMAGE, {**SCALES, **KERNEL}, {"DequantizeLinear": {"axis": 0}, "Conv": SAME}),
    "quantized convolution of the same size": (
        "QLinearConv x s z w ws wz ys yz b > y", PIXELS, {**SCALES, **KERNEL},
        {"QLinearConv": {"auto_pad": "SAME_LOWER", "strides": [2, 2]}}),
    "large integers by a scale of 16 bits": (
        "DequantizeLinear x s > y", np.array([100000, 70000, 5], np.int32),
        {"s": np.float16(0.001)}, {}),
    "quantized product": (
        "QLinearMatMul x s z u ws uz ys yz > y", BYTES,
        {**SCALES, **UNEVEN, "ws": np.float32(0.01)}, {}),
    "quantized convolution": (
        "QLinearConv x s z w ws wz ys yz b > y", PIXELS, {**SCALES, **KERNEL},
        {"QLinearConv": PADS}),
}  # fmt: skip


def write(path: Path, case: Case) -> Path:
    """Writes the model of a case; ONNX infers the types of results."""
    import onnx
    from onnx import helper, numpy_helper

    text, x, constants, attributes = case
    nodes = []
    for part in text.split(";"):
        left, right = part.split(">")
        operator, *inputs = left.split()
        per_axis = operator == "DequantizeLinear" and inputs[0] not in "wb"
        given = {} if per_axis else attributes.get(operator, {})
        nodes.append(helper.make_node(operator, inputs, right.split(), **given))
    names = {name for node in nodes for name in node.input}
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items() if k in names],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    onnx.save(model, path)
    return path


def runtime(path: Path, x: np.ndarray) -> np.ndarray:
    """What ONNX Runtime gives, as the operators are written."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, {"x": x})[0]
    return found


@needs_onnx
@pytest.mark.parametrize("name", CASES)
def test_as_onnx_runtime(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "model.onnx", CASES[name])
    x = CASES[name][1]
    found, wanted = np.asarray(from_onnx(path)(x)), runtime(path, x)
    assert found.dtype == wanted.dtype
    tolerance = 1e-5 if wanted.dtype == np.float32 else 0
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)


@needs_onnx
@pytest.mark.parametrize("name", ["product", "integers", "quantized product"])
def test_weights_stay_bytes_that_are_multiplied(name: str, tmp_path: Path) -> None:
    found = from_onnx(write(tmp_path / "model.onnx", CASES[name]))
    key = "w" if name == "product" else "u"
    weights = CASES[name][2][key]
    np.testing.assert_array_equal(found.parameters[key], weights)
    assert found.parameters[key].dtype == weights.dtype
    x = axir.numpy.asarray(CASES[name][1])
    assert "preferred_element_type=int32" in str(axir.make_jaxpr(found.function.evaluate)(x))
    changed = found.with_parameters({key: weights // 2})
    case = (*CASES[name][:2], {**CASES[name][2], key: weights // 2}, CASES[name][3])
    wanted = runtime(write(tmp_path / "changed.onnx", case), CASES[name][1])
    np.testing.assert_allclose(changed(x), wanted, 1e-5, 1e-5)


@needs_onnx
@pytest.mark.parametrize(
    ("operator", "shape", "options"),
    [
        ("QLinearAveragePool", [1, 4, 6, 3], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("QLinearGlobalAveragePool", [1, 1, 1, 3], {}),
    ],
)
def test_channels_that_are_last(
    operator: str, shape: list[int], options: dict[str, Any], tmp_path: Path
) -> None:
    import onnx
    from onnx import helper, numpy_helper

    names, runtimes_own = ["x", "s", "z", "ys", "yz"], "com.microsoft"
    node = helper.make_node(operator, names, ["y"], domain=runtimes_own, channels_last=1, **options)
    x = RNG.integers(0, 256, (1, 4, 6, 3)).astype(np.uint8)
    graph = helper.make_graph(
        [node], "net", [helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, x.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, shape)],
        [numpy_helper.from_array(np.asarray(SCALES[name]), name) for name in names[1:]],
    )  # fmt: skip
    versions = [helper.make_opsetid("", 21), helper.make_opsetid(runtimes_own, 1)]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=10), tmp_path / "m.onnx")
    found = from_onnx(tmp_path / "m.onnx")(x)
    np.testing.assert_array_equal(found, runtime(tmp_path / "m.onnx", x))


@needs_onnx
def test_graphs_within_others_are_rewritten() -> None:
    from onnx import TensorProto, helper, numpy_helper

    branches = [
        helper.make_graph(
            [helper.make_node("DequantizeLinear", ["w", "s"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])],
            [
                numpy_helper.from_array(np.arange(4, dtype=np.int8), "w"),
                numpy_helper.from_array(np.float32(0.5), "s"),
            ],
        )
        for name in ("one", "other")
    ]
    choice = helper.make_node("If", ["x"], ["y"], then_branch=branches[0], else_branch=branches[1])
    graph = helper.make_graph(
        [choice], "net", [helper.make_tensor_value_info("x", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )  # fmt: skip
    model = helper.make_model(graph)
    assert write_out_quantization(model)
    (node,) = model.graph.node
    for attribute in node.attribute:
        assert {each.op_type for each in attribute.g.node} == {"Cast", "Mul"}


def test_arguments_become_weights() -> None:
    text = (
        'func.func @g(%arg0: tensor<2xf32> loc("x"), %arg1: tensor<3xi8> loc("a(\\"b"), '
        "%arg2: tensor<4xui8> loc(#loc3)) -> tensor<2xf32> {\n  return %arg0 : tensor<2xf32>\n}"
    )
    change: Callable[..., str] = with_weights
    assert change(text, 3, []) == text
    assert change(text, 1, ["w/0", "v"]) == (
        'func.func @g(%arg0: tensor<2xf32> loc("x")) -> tensor<2xf32> {\n'
        '    %arg1 = stablehlo.constant dense_resource<"w/0"> : tensor<3xi8>\n'
        '    %arg2 = stablehlo.constant dense_resource<"v"> : tensor<4xui8>\n'
        "  return %arg0 : tensor<2xf32>\n}"
    )


@needs_onnx
@pytest.mark.parametrize(("rows", "columns", "along"), [(3, 4, 0), (3, 4, 1), (4, 4, 1)])
def test_products_have_a_scale_for_each_row(
    rows: int, columns: int, along: int, tmp_path: Path
) -> None:
    # ONNX Runtime supports only one scale, unlike the specification.
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 255, (rows, 5), np.uint8), rng.integers(-128, 127, (5, columns), np.int8)
    count = (rows, columns)[along]
    given = {
        "as": rng.uniform(0.01, 0.02, rows).astype(np.float32),
        "az": rng.integers(100, 150, rows, np.uint8), "b": b,
        "bs": rng.uniform(0.01, 0.02, columns).astype(np.float32),
        "bz": np.zeros(columns, np.int8),
        "ys": rng.uniform(0.1, 0.5, count).astype(np.float32),
        "yz": rng.integers(100, 150, count, np.uint8),
    }  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])],
        "net", [helper.make_tensor_value_info("a", TensorProto.UINT8, a.shape)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [rows, columns])],
        [numpy_helper.from_array(x, name) for name, x in given.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    total = (a.astype(int) - given["az"][:, None].astype(int)) @ b.astype(int)
    factor = given["as"][:, None] * given["bs"]
    scale, zero = (np.expand_dims(given[x], 1 - along) for x in ("ys", "yz"))
    wanted = np.clip(np.round(total * (factor / scale)) + zero, 0, 255)
    np.testing.assert_array_equal(from_onnx(tmp_path / "m.onnx")(a), wanted)
