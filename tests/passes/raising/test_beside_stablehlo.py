"""Operations of exporters outside of StableHLO: `arith`, `tensor`, `shape`, and open extents."""

from __future__ import annotations

import numpy as np
import pytest

from axir.dialect.core.errors import ShapeError
from axir.dialect.text.parsing import parse_module
from axir.passes.framework.errors import RaisingError
from axir.passes.raising.module import raise_module

INTEGERS = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: np.trunc(a / b),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "remsi": np.fmod,
    "maxsi": np.maximum,
    "minui": lambda a, b: np.minimum(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
    "ceildivui": lambda a, b: -(-a.view(np.uint32).astype(int) // b.view(np.uint32)),
    "divui": lambda a, b: (a.view(np.uint32) // b.view(np.uint32)).view(np.int32),
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
}
FLOATS = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}
# By the number of the predicate, in order.
COMPARED = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()
INTEGERS_COMPARED = "eq ne slt sle sgt sge ult ule ugt uge".split()


def evaluate(text: str, *arguments: np.ndarray, **shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Raises a module, and returns its results from the evaluator."""
    function = raise_module(parse_module(text), shapes).functions["main"]
    return [x.host() for x in function.evaluate(*arguments)]


def with_ops(kind: str, ops: list[str], result: str = "") -> str:
    """Returns a module that applies operations to two arrays."""
    result = result or kind
    lines = [f"  %{n} = {op} %x, %y : {kind}" for n, op in enumerate(ops)]
    names = ", ".join(f"%{n}" for n in range(len(ops)))
    types = ", ".join([result] * len(ops))
    body = "\n".join(lines)
    return (
        f"func.func @main(%x: {kind}, %y: {kind}) -> ({types}) {{\n{body}\n"
        f"  return {names} : {types}\n}}\n"
    )


def test_arithmetic_on_arrays() -> None:
    x, y = np.array([7, -7, 6, -1], np.int32), np.array([2, 2, -3, -5], np.int32)
    text = with_ops("tensor<4xi32>", [f"arith.{name}" for name in INTEGERS])
    for (name, expected), found in zip(INTEGERS.items(), evaluate(text, x, y), strict=True):
        np.testing.assert_array_equal(found, expected(x, y), name)
    a = np.array([1.5, np.nan, -2.0, np.nan, 0.0], np.float32)
    b = np.array([-0.4, 1.0, np.nan, np.nan, 3.0], np.float32)
    text = with_ops("tensor<5xf32>", [f"arith.{name}" for name in FLOATS])
    for (name, expected), found in zip(FLOATS.items(), evaluate(text, a, b), strict=True):
        np.testing.assert_allclose(found, expected(a, b), 1e-6, err_msg=name)


def test_comparisons() -> None:
    a = np.array([1.0, np.nan, 2.0, 3.0], np.float32)
    b = np.array([1.0, 1.0, 3.0, 2.0], np.float32)
    text = with_ops("tensor<4xf32>", [f"arith.cmpf {c}," for c in COMPARED], "tensor<4xi1>")
    is_number = ~np.isnan(a)
    relations = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": a != b}
    for name, found in zip(COMPARED, evaluate(text, a, b), strict=True):
        if name in ("false", "true", "ord", "uno"):
            expected = {"false": ~a.astype(bool) & a.astype(bool), "ord": is_number}.get(
                name, ~is_number if name == "uno" else np.ones(4, bool)
            )
        else:
            expected = relations[name[1:]] & is_number
            expected = expected if name[0] == "o" else expected | ~is_number
        np.testing.assert_array_equal(found, expected, name)
    x, y = np.array([1, -1, 2], np.int32), np.array([1, 1, -2], np.int32)
    text = with_ops(
        "tensor<3xi32>", [f"arith.cmpi {c}," for c in INTEGERS_COMPARED], "tensor<3xi1>"
    )
    unsigned = {"ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal}
    signed = {"eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal,
              "sgt": np.greater, "sge": np.greater_equal}  # fmt: skip
    for name, found in zip(INTEGERS_COMPARED, evaluate(text, x, y), strict=True):
        pair = (x.view(np.uint32), y.view(np.uint32)) if name in unsigned else (x, y)
        np.testing.assert_array_equal(found, {**unsigned, **signed}[name](*pair), name)


TRUTH = """
func.func @main(%x: tensor<4xi1>, %y: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xf32>,
    tensor<4xf32>, tensor<4xindex>, tensor<4xi32>, tensor<4xi32>, tensor<4xui32>) {
  %0 = arith.maxsi %x, %y : tensor<4xi1>
  %1 = arith.minsi %x, %y : tensor<4xi1>
  %2 = arith.sitofp %x : tensor<4xi1> to tensor<4xf32>
  %3 = arith.uitofp %x : tensor<4xi1> to tensor<4xf32>
  %4 = arith.index_cast %x : tensor<4xi1> to tensor<4xindex>
  %5 = arith.extsi %x : tensor<4xi1> to tensor<4xi32>
  %6 = arith.extui %x : tensor<4xi1> to tensor<4xi32>
  %7 = tensor.bitcast %5 : tensor<4xi32> to tensor<4xui32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<4xi1>, tensor<4xi1>, tensor<4xf32>,
    tensor<4xf32>, tensor<4xindex>, tensor<4xi32>, tensor<4xi32>, tensor<4xui32>
}
"""


def test_truth_is_minus_one_with_a_sign() -> None:
    x, y = np.array([[False, False, True, True], [False, True, False, True]])
    found = evaluate(TRUTH, x, y)
    ones = x.astype(int)
    bits = (-ones).astype(np.uint32)
    for one, other in zip(
        found, [x & y, x | y, -ones, ones, -ones, -ones, ones, bits], strict=True
    ):
        np.testing.assert_array_equal(one, other)
    ops = [f"arith.cmpi {c}," for c in INTEGERS_COMPARED]
    a, b = -x.astype(int), -y.astype(int)
    signed = [a == b, a != b, a < b, a <= b, a > b, a >= b]
    unsigned = [-a < -b, -a <= -b, -a > -b, -a >= -b]
    found = evaluate(with_ops("tensor<4xi1>", ops), x, y)
    for name, one, other in zip(INTEGERS_COMPARED, found, signed + unsigned, strict=True):
        np.testing.assert_array_equal(one, other, name)


PARTS = """
func.func @main(%x: tensor<1x5x1xf32>) -> (tensor<1x5xf32>, tensor<5x1xf32>, tensor<5xf32>,
    tensor<1x1xf32>) {
  %0 = tensor.extract_slice %x[0, 0, 0] [1, 5, 1] [1, 1, 1] : tensor<1x5x1xf32> to tensor<1x5xf32>
  %1 = tensor.extract_slice %x[0, 0, 0] [1, 5, 1] [1, 1, 1] : tensor<1x5x1xf32> to tensor<5x1xf32>
  %2 = tensor.extract_slice %x[0, 0, 0] [1, 5, 1] [1, 1, 1] : tensor<1x5x1xf32> to tensor<5xf32>
  %3 = tensor.extract_slice %x[0, 3, 0] [1, 1, 1] [1, 1, 1] : tensor<1x5x1xf32> to tensor<1x1xf32>
  return %0, %1, %2, %3 : tensor<1x5xf32>, tensor<5x1xf32>, tensor<5xf32>, tensor<1x1xf32>
}
"""


def test_parts_lose_extents_of_one() -> None:
    x = np.arange(5, dtype=np.float32)
    found = evaluate(PARTS, x.reshape(1, 5, 1))
    for one, other in zip(found, [x.reshape(1, 5), x.reshape(5, 1), x, [[3.0]]], strict=True):
        np.testing.assert_array_equal(one, other)


SHAPES = """
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<6xf32>, tensor<2x2xf32>,
    tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x3xf32>, tensor<4xi64>, tensor<2xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %shape = shape.shape_of %x : tensor<2x3xf32> -> tensor<2xindex>
  %row = shape.const_shape [3] : tensor<1xindex>
  %both = shape.broadcast %shape, %row : tensor<2xindex>, tensor<1xindex> -> tensor<2xindex>
  %fits = shape.cstr_broadcastable %shape, %row : tensor<2xindex>, tensor<1xindex>
  %count = shape.num_elements %shape : tensor<2xindex> -> index
  %rows = tensor.dim %x, %c0 : tensor<2x3xf32>
  %columns = shape.get_extent %both, %c1 : tensor<2xindex>, index -> index
  %product = arith.muli %rows, %columns : index
  %flat = tensor.from_elements %product : tensor<1xindex>
  %0 = stablehlo.dynamic_reshape %x, %flat : (tensor<2x3xf32>, tensor<1xindex>) -> tensor<?xf32>
  %1 = tensor.cast %0 : tensor<?xf32> to tensor<6xf32>
  %2 = tensor.extract_slice %x[0, 1] [2, 2] [1, 1] : tensor<2x3xf32> to tensor<2x2xf32>
  %3 = shape.assuming %fits -> (tensor<2x3xf32>) {
    %n = stablehlo.negate %x : tensor<2x3xf32>
    shape.assuming_yield %n : tensor<2x3xf32>
  }
  %4 = tensor.concat dim(0) %x, %3 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %5 = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %6 = tensor.expand_shape %5 [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  %7 = tensor.insert_slice %2 into %6[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<2x3xf32>
  %8 = tensor.extract_slice %x[0, 2] [2, 1] [1, 1] : tensor<2x3xf32> to tensor<2xf32>
  %as_i64 = arith.index_cast %count : index to i64
  %9 = tensor.splat %as_i64 : tensor<4xi64>
  %dense = arith.constant dense<[3, -1]> : tensor<2xi64>
  %10 = arith.trunci %dense : tensor<2xi64> to tensor<2xi32>
  return %8, %1, %2, %3, %4, %7, %9, %10 : tensor<2xf32>, tensor<6xf32>, tensor<2x2xf32>,
    tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x3xf32>, tensor<4xi64>, tensor<2xi32>
}
"""


def test_arithmetic_on_shapes_is_known() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = evaluate(SHAPES, x)
    put = x.copy()
    put[:, :2] = x[:, 1:]
    expected = [x[:, 2], x.reshape(6), x[:, 1:], -x, np.concatenate([x, -x]), put]
    for one, other in zip(found, [*expected, np.full(4, 6), [3, -1]], strict=True):
        np.testing.assert_array_equal(one, other)


OPEN = """
func.func @main(%x: tensor<?x3xf32>, %w: tensor<3xf32>) -> tensor<?x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : tensor<?x3xf32>
  %sums = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
  %column = tensor.from_elements %rows, %c1 : tensor<2xindex>
  %0 = stablehlo.dynamic_reshape %sums, %column
    : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x1xf32>
  %shape = shape.shape_of %x : tensor<?x3xf32> -> tensor<2xindex>
  %1 = stablehlo.dynamic_broadcast_in_dim %0, %shape, dims = [0, 1]
    : (tensor<?x1xf32>, tensor<2xindex>) -> tensor<?x3xf32>
  %2 = func.call @scaled(%x, %w) : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %3 = stablehlo.subtract %2, %1 : tensor<?x3xf32>
  return %3 : tensor<?x3xf32>
}
func.func private @scaled(%x: tensor<?x3xf32>, %w: tensor<3xf32>) -> tensor<?x3xf32> {
  %shape = shape.shape_of %x : tensor<?x3xf32> -> tensor<2xindex>
  %0 = stablehlo.dynamic_broadcast_in_dim %w, %shape, dims = [1]
    : (tensor<3xf32>, tensor<2xindex>) -> tensor<?x3xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}
"""


@pytest.mark.parametrize("rows", [1, 4])
def test_open_extents_are_filled(rows: int) -> None:
    x, w = (
        np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32),
        np.float32([1, 2, 3]),
    )
    (found,) = evaluate(OPEN, x, w, arg0=(rows, 3))
    np.testing.assert_allclose(found, x * w - x.sum(1, keepdims=True), 1e-5, 1e-6)


def test_shapes_that_do_not_fit_are_refused() -> None:
    module = parse_module(OPEN)
    (raised,) = raise_module(module).functions.values()
    assert raised.input_types[0].is_open
    with pytest.raises(ShapeError, match=r"The shape \(4, 2\) is none of the argument 'arg0'"):
        raise_module(module, {"arg0": (4, 2)})
    for given in ({"arg0": (4, 3), "y": (2,)}, {"y": (2,)}):
        with pytest.raises(ShapeError, match=r"no argument 'y', whose.*\n.*\n.* are arg0, arg1"):
            raise_module(module, given)


def test_ways_out_are_ways_out() -> None:
    text = """
func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = "OP"(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
"""
    in_other_dialect = text.replace("OP", "math.sin").replace("complex<f32>", "f32")
    unknown = text.replace("OP", "chlo._asin_acos_kernel")
    beside = unknown.replace("  return", "  %1 = arith.constant 1 : i32\n  return")
    for module, way_out in (
        (in_other_dialect, "Lower it to StableHLO with the program that wrote it"),
        (unknown, "It can still be compiled"),
        (beside, "Export the program without it"),  # to be compiled it is raised
    ):
        with pytest.raises(RaisingError, match=rf"has no counterpart\.\n.*\n *{way_out}"):
            raise_module(parse_module(module))
