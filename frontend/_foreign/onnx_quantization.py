"""Quantized operators of ONNX, written as arithmetic before torch-mlir reads them.

`QuantizeLinear` and its relatives become casts, sums, products and rounding, by their formulas in
ONNX's specification. Products of dequantized arrays become products of integers, which are scaled
afterwards. Elsewhere: quantized numbers of StableHLO (`passes/raising`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from axir.dialect.core.annotations import UserObject

from .importing import needed
from .onnx_graphs import Graph, Integers, Rule, attribute_of, inputs_of

_EXTRA = "onnx"
# Sums of so many products of two bytes, less their zero points, stay within 32 bits.
_MOST_PRODUCTS = (2**31 - 1) // 255**2
_OPERATORS = frozenset(
    "QuantizeLinear DequantizeLinear DynamicQuantizeLinear MatMulInteger ConvInteger QLinearMatMul "
    "QLinearConv QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearGlobalAveragePool "
    "QLinearAveragePool QLinearConcat QLinearSoftmax QGemm".split()
)
_CONVOLUTION = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def write_out_quantization(model: UserObject) -> bool:
    """Changes a model so that it has no operators of quantization; tells whether it had some.

    Args:
        model: A model with inferred shapes.

    Raises:
        ModelImportError: if it quantizes in blocks with scales that it computes.
    """
    graphs = _graphs(model.graph)
    kinds = {tensor.data_type for graph in graphs for tensor in _tensors(graph)}
    names = map(needed("onnx", _EXTRA).TensorProto.DataType.Name, kinds)
    is_narrow = any(name.endswith(("INT2", "INT4")) for name in names)
    operators = (node.op_type for graph in graphs for node in graph.node)
    if not is_narrow and not any(name in _OPERATORS for name in operators):
        return False
    for graph in reversed(graphs):  # nested ones first: a rewritten graph has copies
        Graph(graph).rewrite(_RULES)
    return True


def _graphs(graph: UserObject) -> list[UserObject]:
    """Returns a graph and its nested graphs, of loops and branches."""
    found = [graph]
    for node in graph.node:
        for attribute in node.attribute:
            inner = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())]
            found += [each for outer in inner for each in _graphs(outer)]
    return found


def _tensors(graph: UserObject) -> list[UserObject]:
    """Returns the constants of a graph."""
    attributes = (attribute for node in graph.node for attribute in node.attribute)
    return [*graph.initializer, *(a.t for a in attributes if a.HasField("t"))]


# Operators ----------------------------------------------------------------------------------------


def _quantize_linear(graph: Graph, node: UserObject) -> None:
    x, scale, zero = inputs_of(node, 3)
    given = graph.kind(zero) if zero else attribute_of(node, "output_dtype", 0)
    kind = given or graph._onnx.TensorProto.UINT8
    like = Integers(node.output[0], scale, zero, attribute_of(node, "axis", 1),
                     attribute_of(node, "block_size", 0))  # fmt: skip
    if not graph.is_integer(kind):
        return graph.keep(node)
    if graph.kind(x) == graph._onnx.TensorProto.INT32:
        x = graph.cast(x, graph.kind(scale))
    graph.quantize(x, like, kind, node.output[0])


def _dequantize_linear(graph: Graph, node: UserObject) -> None:
    x, scale, zero = inputs_of(node, 3)
    if not graph.is_integer(graph.kind(x)):
        return graph.keep(node)
    integers = Integers(x, scale, zero, attribute_of(node, "axis", 1),
                         attribute_of(node, "block_size", 0))  # fmt: skip
    graph.dequantize(integers, node.output[0])
    return graph.remember(node.output[0], integers)


def _dynamic_quantize_linear(graph: Graph, node: UserObject) -> None:
    (x,), (y, scale, zero) = node.input, node.output
    proto = graph._onnx.TensorProto
    none, one, most = (graph.constant(np.float32(n)) for n in (0, 1, 255))
    high = graph.write("Max", graph.write("ReduceMax", x, keepdims=0), none)
    low = graph.write("Min", graph.write("ReduceMin", x, keepdims=0), none)
    step = graph.write("Div", graph.write("Sub", high, low), most)
    graph.write("Where", graph.write("Equal", step, none), one, step, output=scale)
    place = graph.write("Div", graph.write("Sub", none, low), scale)
    place = graph.write("Clip", graph.write("Round", place), none, most)
    graph.cast(place, proto.UINT8, zero)
    scaled = graph.write("Round", graph.write("Div", x, scale))
    shifted = graph.write("Clip", graph.write("Add", scaled, place), none, most)
    graph.cast(shifted, proto.UINT8, y)


def _mat_mul_integer(graph: Graph, node: UserObject) -> None:
    a, b, a_zero, b_zero = inputs_of(node, 4)
    graph.write(
        "MatMul",
        graph.centred(Integers(a, "", a_zero, -2)),
        graph.centred(Integers(b, "", b_zero, -1)),
        output=node.output[0],
    )


def _conv_integer(graph: Graph, node: UserObject) -> None:
    x, w, x_zero, w_zero = inputs_of(node, 4)
    lhs, rhs = Integers(x, "", x_zero, 1), Integers(w, "", w_zero, 0)
    _convolved(graph, node, lhs, rhs, node.output[0])


def _convolved(
    graph: Graph, node: UserObject, lhs: Integers, rhs: Integers, output: str = ""
) -> str:
    """Writes a convolution of integers.

    torch-mlir can pad integers only equally at both ends: other arrays are padded before.
    """
    value = graph._onnx.helper.get_attribute_value
    options = {a.name: value(a) for a in node.attribute if a.name in _CONVOLUTION}
    pads = _pads(options, graph.shape(lhs.name), graph.shape(rhs.name))
    wide = graph.centred(lhs)
    if pads is not None:
        half = len(pads) // 2
        ends = np.array([0, 0, *pads[:half], 0, 0, *pads[half:]], np.int64)
        wide = graph.write("Pad", wide, graph.constant(ends), graph.constant(np.int32(0)))
        options.pop("auto_pad", None)
        options["pads"] = [0] * len(pads)
    return graph.write("Conv", wide, graph.centred(rhs), output=output, **options)


def _pads(
    options: Mapping[str, UserObject],
    shape: Sequence[int | None] | None,
    window: Sequence[int | None] | None,
) -> list[int] | None:
    """Returns a convolution's padding before and after each axis; None if both are the same."""
    pads = [*options.get("pads", ())]
    half = len(pads) // 2
    kind = options.get("auto_pad", b"NOTSET").decode()
    if kind in ("SAME_UPPER", "SAME_LOWER") and shape is not None and window is not None:
        rank = len(shape) - 2
        strides, dilations = (options.get(x, [1] * rank) for x in ("strides", "dilations"))
        # As many windows as fit with the strides: see ONNX's Conv.
        missing = [
            max(0, (-(-n // s) - 1) * s + (w - 1) * d + 1 - n)
            for n, w, s, d in zip(shape[2:], window[2:], strides, dilations, strict=True)
            if n is not None and w is not None
        ]
        less, more = [x // 2 for x in missing], [x - x // 2 for x in missing]
        pads, half = ([*less, *more] if kind == "SAME_UPPER" else [*more, *less]), rank
        return pads if len(missing) == rank else None
    return pads if pads[:half] != pads[half:] else None


def _q_linear_mat_mul(graph: Graph, node: UserObject) -> None:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.input
    lhs, rhs = Integers(a, a_scale, a_zero, -2), Integers(b, b_scale, b_zero, -1)
    total = graph.write("MatMul", graph.centred(lhs), graph.centred(rhs))
    rows, columns = ((graph.shape(x) or [None])[place] for x, place in ((a, -2), (b, -1)))
    if rows != columns and graph.shape(y_scale) == [rows]:
        y_scale, y_zero = graph.column(y_scale), graph.column(y_zero)
    _requantize(graph, node, total, [lhs, rhs], Integers("", y_scale, y_zero, -1))


def _q_linear_conv(graph: Graph, node: object) -> None:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = inputs_of(node, 9)
    lhs, rhs = Integers(x, x_scale, x_zero, 1), Integers(w, w_scale, w_zero, 0)
    total = _convolved(graph, node, lhs, rhs)
    rank = len(graph.shape(w) or [0] * 4)
    if bias:
        column = graph.constant(np.array([-1, *[1] * (rank - 2)], np.int64))
        total = graph.write("Add", total, graph.write("Reshape", bias, column))
    _requantize(graph, node, total, [lhs, rhs], Integers("", y_scale, y_zero, 1))


def _requantize(
    graph: Graph,
    node: UserObject,
    total: str,
    sides: Sequence[Integers],
    like: Integers,
) -> None:
    """Writes the integers of the result for sums of products of integers."""
    scales = [graph.spread(side.scale, side.name, side.axis, 0) for side in sides]
    if node.op_type == "QLinearConv" and scales[1] != sides[1].scale:
        # Along the features of the result, which are its second axis.
        rank = len(graph.shape(sides[1].name) or [0] * 4)
        column = graph.constant(np.array([-1, *[1] * (rank - 2)], np.int64))
        scales[1] = graph.write("Reshape", sides[1].scale, column)
    factor = graph.write("Div", graph.write("Mul", *scales), like.scale)
    scaled = graph.write("Mul", graph.cast(total, graph._onnx.TensorProto.FLOAT), factor)
    graph.round(scaled, total, like, graph.kind(like.zero), node.output[0])


def _q_gemm(graph: Graph, node: UserObject) -> None:
    a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero = inputs_of(node, 9)
    if any(f.name == "alpha" and f.f != 1 for f in node.attribute):
        return graph.keep(node)
    is_turned = bool(attribute_of(node, "transB", 0))
    lhs, rhs = Integers(a, a_scale, a_zero, 0), Integers(b, b_scale, b_zero, 1 - is_turned)
    left, right = graph.centred(lhs), graph.centred(rhs)
    if attribute_of(node, "transA", 0):
        left = graph.write("Transpose", left, perm=[1, 0])
    if is_turned:
        right = graph.write("Transpose", right, perm=[1, 0])
    total = graph.write("MatMul", left, right)
    total = graph.write("Add", total, bias) if bias else total
    factor = graph.write("Mul", a_scale, b_scale)
    floats = graph.cast(total, graph._onnx.TensorProto.FLOAT)
    if not y_scale:
        graph.write("Mul", floats, factor, output=node.output[0])
        return None
    scaled = graph.write("Mul", floats, graph.write("Div", factor, y_scale))
    like = Integers("", y_scale, y_zero, 1)
    return graph.round(scaled, total, like, graph.kind(y_zero), node.output[0])


def _computed(operator: str, count: int) -> Rule:
    """Returns the rule of an operator on the numbers of so many quantized arrays.

    ONNX Runtime has these operators: each array is followed by its scale and zero point, and the
    result's scale and zero point come last.
    """

    def rule(graph: Graph, node: object) -> None:
        inputs = inputs_of(node, 3 * count + 2)
        arrays = _dequantized(graph, inputs[: 3 * count])
        _apply(graph, node, operator, arrays, inputs[3 * count :])

    return rule


def _dequantized(graph: Graph, inputs: Sequence[str]) -> list[str]:
    """Dequantizes arrays; each of the inputs is followed by its scale and zero point."""
    triples = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    return [graph.dequantize(Integers(x, scale, zero, 0)) for x, scale, zero in triples]


def _q_linear_concat(graph: Graph, node: UserObject) -> None:
    scale, zero, *rest = node.input
    _apply(graph, node, "Concat", _dequantized(graph, rest), [scale, zero])


def _apply(
    graph: Graph, node: UserObject, operator: str, arrays: Sequence[str], made: Sequence[str]
) -> None:
    value = graph._onnx.helper.get_attribute_value
    attributes = {a.name: value(a) for a in node.attribute if a.name not in ("channels_last",)}
    attributes.pop("opset", None)
    is_turned = bool(attribute_of(node, "channels_last", 0))
    rank = len(graph.shape(node.input[0]) or ())
    if is_turned:  # ONNX's operators have the channels in front
        arrays = [
            graph.write("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)]) for x in arrays
        ]
    found = graph.write(operator, *arrays, **attributes)
    if is_turned:
        found = graph.write("Transpose", found, perm=[0, *range(2, rank), 1])
    scale, zero = made
    kind = graph.kind(zero) or graph.kind(node.input[0])
    graph.quantize(found, Integers("", scale, zero, 0), kind, node.output[0])


# Products of dequantized arrays -------------------------------------------------------------------


def _mat_mul(graph: Graph, node: UserObject) -> None:
    sides = [graph.numbers_of(name) for name in node.input]
    lhs, rhs = sides
    shape = graph.shape(node.input[1])
    if lhs is None or rhs is None or shape is None or len(shape) < 2:
        return graph.keep(node)
    if not _are_products_of_bytes(graph, lhs, rhs, len(shape) - 1, shape[-2]):
        return graph.keep(node)
    total = graph.write("MatMul", graph.centred(lhs), graph.centred(rhs))
    return _scale(graph, total, [lhs.scale, rhs.scale], node.output[0])


def _gemm(graph: Graph, node: UserObject) -> None:
    a, b, bias = inputs_of(node, 3)
    lhs, rhs, shape = graph.numbers_of(a), graph.numbers_of(b), graph.shape(b)
    factors = [f for f in node.attribute if f.name in ("alpha", "beta") and f.f != 1]
    is_plain = not factors and not attribute_of(node, "transA", 0)
    if lhs is None or rhs is None or shape is None or not is_plain:
        return graph.keep(node)
    is_turned = attribute_of(node, "transB", 0)
    free, inner = (0, shape[1]) if is_turned else (1, shape[0])
    if not _are_products_of_bytes(graph, lhs, rhs, free, inner):
        return graph.keep(node)
    right = graph.centred(rhs)
    if is_turned:
        right = graph.write("Transpose", right, perm=[1, 0])
    total = graph.write("MatMul", graph.centred(lhs), right)
    scaled = "" if bias else node.output[0]
    return _scale(graph, total, [lhs.scale, rhs.scale], scaled, bias, node.output[0])


def _conv(graph: Graph, node: UserObject) -> None:
    x, w, bias = inputs_of(node, 3)
    lhs, rhs, shape = graph.numbers_of(x), graph.numbers_of(w), graph.shape(w)
    if lhs is None or rhs is None or shape is None or None in shape:
        return graph.keep(node)
    inner = math.prod(extent for extent in shape[1:] if extent is not None)
    if not _are_products_of_bytes(graph, lhs, rhs, 0, inner):
        return graph.keep(node)
    total = _convolved(graph, node, lhs, rhs)
    column = graph.constant(np.array([-1, *[1] * (len(shape) - 2)], np.int64))
    scales = [lhs.scale, rhs.scale]
    if graph.shape(rhs.scale) not in ([], [1]):
        scales[1] = graph.write("Reshape", rhs.scale, column)
    if bias:
        bias = graph.write("Reshape", bias, column)
    scaled = "" if bias else node.output[0]
    return _scale(graph, total, scales, scaled, bias, node.output[0])


def _are_products_of_bytes(
    graph: Graph, lhs: Integers, rhs: Integers, free: int, count: int | None
) -> bool:
    """Tells whether a product of numbers is one of bytes, times a factor for each column.

    Args:
        graph: The graph.
        lhs: The integers of the left side, of one scale.
        rhs: Those of the right side, of one scale or of one for each place along `free`.
        free: The axis of the right side that the product keeps.
        count: How many products are summed.
    """
    if lhs.block or rhs.block or count is None or count > _MOST_PRODUCTS:
        return False
    if graph.kind(lhs.scale) != graph._onnx.TensorProto.FLOAT:
        return False
    proto = graph._onnx.TensorProto
    bytes_ = (proto.INT8, proto.UINT8, proto.INT4, proto.UINT4)
    if graph.kind(lhs.name) not in bytes_ or graph.kind(rhs.name) not in bytes_:
        return False
    if graph.shape(lhs.scale) not in ([], [1]):
        return False
    rank = len(graph.shape(rhs.name) or [])
    return graph.shape(rhs.scale) in ([], [1]) or (rank > 0 and rhs.axis % rank == free)


def _scale(
    graph: Graph, total: str, scales: Sequence[str], output: str, bias: str = "", end: str = ""
) -> None:
    """Writes the numbers for sums of products of integers, and adds a bias."""
    floats = graph.cast(total, graph._onnx.TensorProto.FLOAT)
    scaled = graph.write("Mul", floats, graph.write("Mul", *scales), output=output)
    if bias:
        graph.write("Add", scaled, bias, output=end)


_RULES: dict[str, Rule] = {
    "Conv": _conv,
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize_linear,
    "DynamicQuantizeLinear": _dynamic_quantize_linear,
    "Gemm": _gemm,
    "MatMul": _mat_mul,
    "MatMulInteger": _mat_mul_integer,
    "QGemm": _q_gemm,
    "QLinearAdd": _computed("Add", 2),
    "QLinearAveragePool": _computed("AveragePool", 1),
    "QLinearConcat": _q_linear_concat,
    "QLinearConv": _q_linear_conv,
    "QLinearGlobalAveragePool": _computed("GlobalAveragePool", 1),
    "QLinearLeakyRelu": _computed("LeakyRelu", 1),
    "QLinearMatMul": _q_linear_mat_mul,
    "QLinearMul": _computed("Mul", 2),
    "QLinearSigmoid": _computed("Sigmoid", 1),
    "QLinearSoftmax": _computed("Softmax", 1),
    "QuantizeLinear": _quantize_linear,
}
