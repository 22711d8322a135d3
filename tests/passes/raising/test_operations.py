"""Operations that JAX does not write, or not in this form, follow their specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
from axir.dialect.core.array import as_array
from axir.dialect.text.parsing import parse_module
from axir.passes.raising.module import raise_module

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5
Y = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -4.0]], np.float32)
F = "tensor<2x3xf32>"

CASES: dict[str, tuple[str, tuple[Any, ...], Callable[..., Any]]] = {}


def case(
    name: str, arguments: tuple[Any, ...], result: str, body: str, expected: Callable[..., Any]
) -> None:
    arrays = tuple(map(np.asarray, arguments))
    types = [type_of(x) for x in arrays]
    given = ", ".join(f"%{letter}: {t}" for letter, t in zip("abcdefg", types, strict=False))
    text = f"func.func @main({given}) -> {result} {{\n{body}\n  return %r : {result}\n}}"
    CASES[name] = (text, arrays, expected)


def type_of(x: np.ndarray) -> str:
    kinds = {"float32": "f32", "int32": "i32", "bool": "i1", "uint32": "ui32"}
    return f"tensor<{''.join(f'{n}x' for n in x.shape)}{kinds[str(x.dtype)]}>"


case(
    "dot",
    (X, Y.T),
    "tensor<2x2xf32>",
    f"  %r = stablehlo.dot %a, %b : ({F}, tensor<3x2xf32>) -> tensor<2x2xf32>",
    lambda a, b: a @ b,
)
case(
    "einsum",
    (X, Y),
    "tensor<3x2xf32>",
    f'  %r = "stablehlo.einsum"(%a, %b) {{einsum_config = "ij,kj->jk"}} : ({F}, {F}) -> '
    "tensor<3x2xf32>",
    lambda a, b: np.einsum("ij,kj->jk", a, b),
)
case(
    "unary_einsum",
    (X,),
    "tensor<3xf32>",
    f'  %r = "stablehlo.unary_einsum"(%a) {{einsum_config = "ij->j"}} : ({F}) -> tensor<3xf32>',
    lambda a: a.sum(0),
)
case(
    "map",
    (X, Y),
    F,
    f'  %r = "stablehlo.map"(%a, %b) ({{\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n'
    "    %c = stablehlo.constant dense<3.0> : tensor<f32>\n"
    "    %0 = stablehlo.multiply %x, %c : tensor<f32>\n"
    "    %1 = stablehlo.subtract %0, %y : tensor<f32>\n"
    "    stablehlo.return %1 : tensor<f32>\n"
    f"  }}) {{dimensions = array<i64: 0, 1>}} : ({F}, {F}) -> {F}",
    lambda a, b: 3 * a - b,
)
case(
    "if",
    (np.bool_(True), X),
    F,
    '  %r = "stablehlo.if"(%a) ({\n'
    f"    %0 = stablehlo.negate %b : {F}\n    stablehlo.return %0 : {F}\n  }}, {{\n"
    f"    stablehlo.return %b : {F}\n  }}) : (tensor<i1>) -> {F}",
    lambda a, b: -b,
)
case(
    "an index out of range takes the last branch",
    (np.int32(-1), X),
    F,
    '  %r = "stablehlo.case"(%a) ({\n'
    f"    stablehlo.return %b : {F}\n  }}, {{\n"
    f"    %0 = stablehlo.negate %b : {F}\n    stablehlo.return %0 : {F}\n"
    f"  }}) : (tensor<i32>) -> {F}",
    lambda a, b: -b,
)
case(
    "tuple",
    (X,),
    F,
    f"  %0 = stablehlo.tuple %a, %a : tuple<{F}, {F}>\n"
    f"  %r = stablehlo.get_tuple_element %0[1] : (tuple<{F}, {F}>) -> {F}",
    lambda a: a,
)
case(
    "total order",
    (np.array([-0.0, 0.0, np.nan], np.float32), np.zeros(3, np.float32)),
    "tensor<3xi1>",
    "  %r = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<3xf32>, tensor<3xf32>) -> "
    "tensor<3xi1>",
    lambda a, b: np.array([True, False, False]),
)
case(
    "torch_index_select",
    (X, np.array([2, 0, 2, 1], np.int32)),
    "tensor<2x4xf32>",
    f'  %r = "stablehlo.torch_index_select"(%a, %b) {{dim = 1 : i64, batch_dims = 0 : i64}} : '
    f"({F}, tensor<4xi32>) -> tensor<2x4xf32>",
    lambda a, b: a[:, b],
)
case(
    "batch_norm_inference",
    (X, *Y[:1].repeat(3, 0), np.abs(Y[1])),
    F,
    f'  %r = "stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) {{epsilon = 0.5 : f32, '
    f"feature_index = 1 : i64}} : ({F}{', tensor<3xf32>' * 4}) -> {F}",
    lambda x, s, o, m, v: (x - m) / np.sqrt(v + 0.5) * s + o,
)
case(
    "batch_norm_training",
    (X, Y[0], Y[1]),
    "tensor<3xf32>",
    f'  %0:3 = "stablehlo.batch_norm_training"(%a, %b, %c) {{epsilon = 0.5 : f32, '
    f"feature_index = 1 : i64}} : ({F}, tensor<3xf32>, tensor<3xf32>) -> "
    f"({F}, tensor<3xf32>, tensor<3xf32>)\n"
    "  %1 = stablehlo.constant dense<0.0> : tensor<f32>\n"
    f"  %2 = stablehlo.reduce(%0#0 init: %1) applies stablehlo.maximum across dimensions = [0] : "
    f"({F}, tensor<f32>) -> tensor<3xf32>\n"
    "  %r = stablehlo.add %2, %0#2 : tensor<3xf32>",
    lambda x, s, o: (
        np.maximum(((x - x.mean(0)) / np.sqrt(x.var(0) + 0.5) * s + o).max(0), 0) + x.var(0)
    ),
)
case(
    "shapes that follow from constants",
    (np.float32(2), X),
    "tensor<3x2xf32>",
    "  %0 = stablehlo.constant dense<[3, 2]> : tensor<2xi32>\n"
    "  %1 = stablehlo.dynamic_broadcast_in_dim %a, %0, dims = [] : (tensor<f32>, tensor<2xi32>) "
    "-> tensor<3x2xf32>\n"
    f"  %2 = stablehlo.dynamic_reshape %b, %0 : ({F}, tensor<2xi32>) -> tensor<3x2xf32>\n"
    "  %3 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<2xi32>) -> tensor<3x2xf32>\n"
    "  %4 = stablehlo.multiply %1, %2 : tensor<3x2xf32>\n"
    "  %r = stablehlo.add %4, %3 : tensor<3x2xf32>",
    lambda a, b: a * b.reshape(3, 2) + np.arange(3)[:, None],
)
case(
    "bounds that follow from constants",
    (X,),
    "tensor<1x2xf32>",
    f'  %0 = "stablehlo.get_dimension_size"(%a) {{dimension = 1 : i64}} : ({F}) -> tensor<i32>\n'
    "  %1 = stablehlo.constant dense<[0, 1]> : tensor<2xi32>\n"
    "  %2 = stablehlo.constant dense<1> : tensor<1xi32>\n"
    "  %3 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>\n"
    "  %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> "
    "tensor<2xi32>\n"
    "  %5 = stablehlo.constant dense<1> : tensor<2xi32>\n"
    f"  %r = stablehlo.real_dynamic_slice %a, %1, %4, %5 : ({F}, tensor<2xi32>, tensor<2xi32>, "
    "tensor<2xi32>) -> tensor<1x2xf32>",
    lambda a: a[:1, 1:],
)
case(
    "dynamic_pad",
    (X, np.float32(7)),
    "tensor<3x4xf32>",
    "  %0 = stablehlo.constant dense<[1, 0]> : tensor<2xi32>\n"
    "  %1 = stablehlo.constant dense<[0, 1]> : tensor<2xi32>\n"
    "  %2 = stablehlo.constant dense<0> : tensor<2xi32>\n"
    f"  %r = stablehlo.dynamic_pad %a, %b, %0, %1, %2 : ({F}, tensor<f32>, tensor<2xi32>, "
    "tensor<2xi32>, tensor<2xi32>) -> tensor<3x4xf32>",
    lambda a, b: np.pad(a, ((1, 0), (0, 1)), constant_values=b),
)
case(
    "one device",
    (X,),
    F,
    '  %0 = "stablehlo.all_reduce"(%a) ({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n'
    "    %1 = stablehlo.add %x, %y : tensor<f32>\n    stablehlo.return %1 : tensor<f32>\n"
    f"  }}) {{replica_groups = dense<0> : tensor<1x1xi64>}} : ({F}) -> {F}\n"
    "  %2 = stablehlo.replica_id : tensor<ui32>\n"
    "  %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<f32>\n"
    f"  %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> {F}\n"
    f"  %r = stablehlo.add %0, %4 : {F}",
    lambda a: a,
)
case(
    "implicit broadcasting",
    (X, Y[0]),
    F,
    f"  %0 = chlo.broadcast_multiply %a, %b : ({F}, tensor<3xf32>) -> {F}\n"
    f"  %1 = chlo.broadcast_compare %0, %b {{comparison_direction = #chlo<comparison_direction GT>"
    f"}} : ({F}, tensor<3xf32>) -> tensor<2x3xi1>\n"
    f"  %r = chlo.broadcast_select %1, %0, %b : (tensor<2x3xi1>, {F}, tensor<3xf32>) -> {F}",
    lambda a, b: np.where(a * b > b, a * b, b),
)
case(
    "names of functions above StableHLO",
    (X,),
    F,
    f"  %0 = stablehlo.custom_call @mhlo.sinh(%a) {{mhlo.attributes = {{}}}} : ({F}) -> {F}\n"
    f'  %1 = stablehlo.composite "mine.twice" %0 {{decomposition = @twice}} : ({F}) -> {F}\n'
    f"  %r = stablehlo.custom_call @Sharding(%1) : ({F}) -> {F}",
    lambda a: 2 * np.sinh(a),
)
CASES["names of functions above StableHLO"] = (
    CASES["names of functions above StableHLO"][0]
    + f"\nfunc.func private @twice(%x: {F}) -> {F} {{\n"
    f"  %0 = stablehlo.add %x, %x : {F}\n  return %0 : {F}\n}}",
    *CASES["names of functions above StableHLO"][1:],
)  # fmt: skip
COMBINE = (
    "  ^bb0(%x: tensor<f32>, %u: tensor<f32>):\n"
    "    %two = stablehlo.constant dense<2.0> : tensor<f32>\n"
    "    %0 = stablehlo.multiply %x, %two : tensor<f32>\n"
    "    %1 = stablehlo.add %0, %u : tensor<f32>\n    stablehlo.return %1 : tensor<f32>\n"
)
for unique in ("true", "false"):
    rows = [[1], [0], [5]] if unique == "true" else [[1], [1], [5]]
    case(
        f"scatter by a function, unique_indices = {unique}",
        (X, np.array(rows, np.int32), np.ones((3, 3), np.float32)),
        F,
        f'  %r = "stablehlo.scatter"(%a, %b, %c) ({{\n{COMBINE}  }}) {{scatter_dimension_numbers '
        "= #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        f"scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = {unique}}} :"
        f" ({F}, tensor<3x1xi32>, tensor<3x3xf32>) -> {F}",
        (lambda a, b, c: 2 * a + 1)
        if unique == "true"
        else lambda a, b, c: np.stack([a[0], 4 * a[1] + 3]),
    )
case(
    "padding of windows holds initial values",
    (Y[0],),
    "tensor<4xf32>",
    "  %0 = stablehlo.constant dense<10.0> : tensor<f32>\n"
    '  %r = "stablehlo.reduce_window"(%a, %0) ({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n'
    "    %1 = stablehlo.add %x, %y : tensor<f32>\n    stablehlo.return %1 : tensor<f32>\n"
    "  }) {window_dimensions = array<i64: 2>, padding = dense<[[1, 1]]> : tensor<1x2xi64>} : "
    "(tensor<3xf32>, tensor<f32>) -> tensor<4xf32>",
    lambda a: np.convolve(np.pad(a, 1, constant_values=10), [1, 1], "valid") + 10,
)
case(
    "sort by keys of one's own",
    (X[0], Y[0]),
    "tensor<3xf32>",
    '  %0:2 = "stablehlo.sort"(%a, %b) ({\n'
    "  ^bb0(%p: tensor<f32>, %q: tensor<f32>, %s: tensor<f32>, %t: tensor<f32>):\n"
    "    %1 = stablehlo.abs %s : tensor<f32>\n    %2 = stablehlo.abs %t : tensor<f32>\n"
    "    %3 = stablehlo.compare GT, %1, %2 : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "    stablehlo.return %3 : tensor<i1>\n"
    "  }) {dimension = 0 : i64, is_stable = true} : (tensor<3xf32>, tensor<3xf32>) -> "
    "(tensor<3xf32>, tensor<3xf32>)\n"
    "  %r = stablehlo.subtract %0#0, %0#1 : tensor<3xf32>",
    lambda a, b: (a - b)[np.argsort(-np.abs(b), kind="stable")],
)
case(
    "an extremum that compares values with positions",
    (np.array([-5, -3, -4, -3], np.int32),),
    "tensor<i32>",
    "  %0 = stablehlo.iota dim = 0 : tensor<4xi32>\n"
    "  %1 = stablehlo.constant dense<-2147483648> : tensor<i32>\n"
    "  %2 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %3:2 = stablehlo.reduce(%a init: %1), (%0 init: %2) across dimensions = [0] : "
    "(tensor<4xi32>, tensor<4xi32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)\n"
    "   reducer(%p: tensor<i32>, %q: tensor<i32>) (%s: tensor<i32>, %t: tensor<i32>) {\n"
    + "".join(
        f"    %{n} = stablehlo.compare {kind}, {pair} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        for n, kind, pair in (
            (4, "GT", "%p, %q"),
            (5, "EQ", "%p, %q"),
            (6, "LT", "%s, %t"),
            (7, "GE", "%p, %t"),
        )
    )
    + "    %8 = stablehlo.and %5, %6 : tensor<i1>\n    %9 = stablehlo.or %4, %8 : tensor<i1>\n"
    "    %10 = stablehlo.and %9, %7 : tensor<i1>\n    %11 = stablehlo.or %10, %10 : tensor<i1>\n"
    "    %12 = stablehlo.select %11, %p, %q : tensor<i1>, tensor<i32>\n"
    "    %13 = stablehlo.select %11, %s, %t : tensor<i1>, tensor<i32>\n"
    "    stablehlo.return %12, %13 : tensor<i32>, tensor<i32>\n  }\n"
    "  %r = stablehlo.add %3#0, %3#1 : tensor<i32>",
    lambda a: a[3] + 3,
)
case(
    "a reversed kernel",
    (X[None], Y[None, :1]),
    "tensor<1x2x1xf32>",
    "  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], "
    "window = {reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : "
    "(tensor<1x2x3xf32>, tensor<2x1x3xf32>) -> tensor<1x2x1xf32>",
    lambda a, b: (a * b[:, :, ::-1].transpose(1, 0, 2)).sum(-1, keepdims=True),
)
CASES["a reversed kernel"] = (
    CASES["a reversed kernel"][0].replace("%b: tensor<1x1x3xf32>", "%b: tensor<2x1x3xf32>"),
    (X[None], Y[:, None]),
    CASES["a reversed kernel"][2],
)
case(
    "a loop that counts down",
    (X,),
    F,
    "  %0 = stablehlo.constant dense<7> : tensor<i32>\n"
    "  %1 = stablehlo.constant dense<-2> : tensor<i32>\n"
    "  %2 = stablehlo.constant dense<1> : tensor<i32>\n"
    f"  %3:2 = stablehlo.while(%i = %0, %x = %a) : tensor<i32>, {F} cond {{\n"
    "    %4 = stablehlo.compare GE, %i, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %4 : tensor<i1>\n  } do {\n"
    "    %4 = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>\n"
    f"    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> {F}\n"
    f"    %6 = stablehlo.multiply %x, %5 : {F}\n"
    "    %7 = stablehlo.add %i, %1 : tensor<i32>\n"
    f"    stablehlo.return %7, %6 : tensor<i32>, {F}\n  }}\n"
    "  %8 = stablehlo.convert %3#0 : (tensor<i32>) -> tensor<f32>\n"
    f"  %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> {F}\n"
    f"  %r = stablehlo.add %3#1, %9 : {F}",
    lambda a: a * 7 * 5 * 3 * 1 - 1,
)


@pytest.mark.parametrize("name", CASES)
def test_operation(name: str) -> None:
    text, arguments, expected = CASES[name]
    function = raise_module(parse_module(text)).functions["main"]
    with axir.config(jax_disable_jit=True):
        (found,) = function.evaluate(*map(as_array, arguments))
    np.testing.assert_allclose(np.asarray(found), expected(*arguments), rtol=2e-6, atol=1e-6)
