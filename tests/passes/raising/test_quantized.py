"""Quantized operations of StableHLO follow the formulas of its specification.

The oracle is these formulas in float64 (`support.quantized_types`). Integers are exact, except
where a number is halfway between two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.quantized_types import Q, assert_quantized, tensor

import axir
from axir.cli import cli
from axir.dialect.core.errors import DTypeError, ParseError
from axir.dialect.text.parsing import parse_module
from axir.export import load
from axir.passes.framework.errors import QuantizationError
from axir.passes.raising.module import raise_module

S8, U8 = Q("i8", 0.05, 3), Q("u8", 0.02, 128)
OTHER = Q("i8", 0.07, -11)
FINE = Q("i8", 0.003, -128)
WIDE = Q("i8", 0.7, 10)
AXIS = Q("i8", (0.05, 0.1, 0.02), (3, -5, 0), axis=1)
NARROW = Q("i8", 0.04, 0, bounds=(-127, 127))
TYPES = {
    "i8": S8,
    "u8": U8,
    "narrow": NARROW,
    "axis": AXIS,
    "i4": Q("i4", 0.5, -2),
    "u4": Q("u4", 0.25, 7),
    "i2": Q("i2", 0.5, 0),
    "i16": Q("i16", 0.001, 100),
    "u16": Q("u16", 0.0005, 30000),
    "i32": Q("i32", 0.0001, 5),
    "u32": Q("u32", 0.001, 2**31),
    "u8 along rows": Q("u8", (0.5, 0.01), (0, 255), axis=0),
    "f64": Q("i8", 0.1, -7, expressed="f64"),
    "f16": Q("i8", 0.1, -7, expressed="f16"),
    "bf16": Q("i16", 0.0625, 1000, expressed="bf16"),
}
SHAPE = (2, 3)


class Case:
    """An operation on arrays, some of them quantized.

    Args:
        body: The text of operations, from `%a`, `%b`, ... to `%r`. `A`, `B`, ... and `R` in it are
            types.
        given: Shapes and element types of arguments.
        result: Shape and element type of the result.
        oracle: Computes the numbers of the result from the arguments' numbers, in float64.
    """

    def __init__(
        self,
        body: str,
        given: Sequence[tuple[Sequence[int], Q | str]],
        result: tuple[Sequence[int], Q | str],
        oracle: Callable[..., Any],
        seed: int = 0,
    ):
        self.given, self.result, self.oracle = given, result, oracle
        rng = np.random.default_rng(seed)
        self.arrays = [_random(rng, shape, kind) for shape, kind in given]
        types = {letter: tensor(*kind) for letter, kind in zip("ABCD", given, strict=False)}
        types["R"] = tensor(*result)
        for letter, kind in types.items():
            body = body.replace(f"<{letter}>", kind)
        self.body, self.types = body, types

    @property
    def text(self) -> str:
        """The case as a module."""
        arguments = ", ".join(
            f"%{letter.lower()}: {kind}" for letter, kind in self.types.items() if letter != "R"
        )
        result = self.types["R"]
        return (
            f"func.func @main({arguments}) -> {result} {{\n{self.body}\n  return %r : {result}\n}}"
        )

    @property
    def numbers(self) -> np.ndarray:
        """The numbers that the result should represent."""
        values = [
            kind.dequantize(x) if isinstance(kind, Q) else x
            for x, (_, kind) in zip(self.arrays, self.given, strict=True)
        ]
        with np.errstate(all="ignore"):
            return np.asarray(self.oracle(*values))

    def check(self, found: np.ndarray) -> None:
        """Asserts that a result is correct."""
        kind, wanted = self.result[1], self.numbers
        if isinstance(kind, Q):
            assert_quantized(found, kind, wanted)
        elif found.dtype.kind in "bi":
            np.testing.assert_array_equal(found, wanted)
        else:
            tolerance = {"float64": 1e-12, "float32": 1e-5}.get(str(found.dtype), 1e-2)
            scale = max(1, float(np.abs(wanted).max()))
            np.testing.assert_allclose(
                found.astype(np.float64), wanted, tolerance, tolerance * scale
            )


def _random(rng: np.random.Generator, shape: Sequence[int], kind: Q | str) -> np.ndarray:
    if isinstance(kind, Q):
        return kind.random(rng, shape)
    if kind in ("i32", "i1"):
        return rng.integers(0, 2, tuple(shape)).astype({"i32": np.int32, "i1": np.bool_}[kind])
    return (rng.standard_normal(tuple(shape)) * 3).astype(Q(expressed=kind).numbers)


CASES: dict[str, Case] = {}


def elementwise(
    name: str, oracle: Callable[..., Any], *kinds: Q | str, result: Q | str = S8
) -> Case:
    letters = "abcd"[: len(kinds)]
    operands = ", ".join(f"%{letter}" for letter in letters)
    types = ", ".join(f"<{letter.upper()}>" for letter in letters)
    body = f'  %r = "stablehlo.{name}"({operands}) : ({types}) -> <R>'
    return Case(body, [(SHAPE, kind) for kind in kinds], (SHAPE, result), oracle)


for key, q in TYPES.items():
    CASES[f"quantize {key}"] = elementwise("uniform_quantize", lambda x: x, q.expressed, result=q)
    CASES[f"dequantize {key}"] = elementwise(
        "uniform_dequantize", lambda x: x, q, result=q.expressed
    )
    if q.expressed == "f32":
        CASES[f"requantize {key}"] = elementwise("uniform_quantize", lambda x: x, q, result=FINE)
        CASES[f"requantize to {key}"] = elementwise("uniform_quantize", lambda x: x, S8, result=q)
    CASES[f"add {key}"] = elementwise("add", np.add, q, q, result=q)

UNARY: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "floor": np.floor,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "negate": np.negative,
    "round_nearest_even": np.round,
    "sign": np.sign,
    "sine": np.sin,
    "tan": np.tan,
    "tanh": np.tanh,
}
POSITIVE = {"log": np.log, "log_plus_one": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: x**-0.5}
BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "atan2": np.arctan2,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "subtract": np.subtract,
}
for name, oracle in UNARY.items():
    kind = Q("i8", 0.0513, 3)  # no multiple of the scale is a half
    CASES[name] = elementwise(name, oracle, kind, result=OTHER)
    CASES[f"{name} u8"] = elementwise(
        name, oracle, Q("u8", 0.0213, 128), result=Q("u8", 0.0213, 128)
    )
for name, oracle in POSITIVE.items():
    CASES[name] = elementwise(name, oracle, Q("i8", 0.02, -128), result=OTHER)
for name, oracle in BINARY.items():
    CASES[name] = elementwise(name, oracle, S8, OTHER, result=FINE)
    CASES[f"{name} of one type"] = elementwise(name, oracle, S8, S8, result=S8)
CASES["divide"] = elementwise("divide", np.divide, S8, OTHER, result=WIDE)
CASES["power"] = elementwise("power", np.power, Q("i8", 0.013, -128), S8, result=OTHER)
CASES["remainder"] = elementwise(
    "remainder", np.fmod, Q("i8", 0.0513, 3), Q("i8", 0.031, -128), result=OTHER
)
CASES["add along an axis"] = elementwise("add", np.add, AXIS, AXIS, result=AXIS)
CASES["select"] = elementwise("select", np.where, "i1", S8, S8)
for kinds in ((S8, S8, S8), (OTHER, S8, FINE)):
    CASES[f"clamp {len(set(kinds))}"] = elementwise(
        "clamp", lambda low, x, high: np.minimum(np.maximum(x, low), high), *kinds
    )
CASES["is_finite"] = elementwise("is_finite", np.isfinite, S8, result="i1")
for direction, oracle in {"LT": np.less, "EQ": np.equal, "GE": np.greater_equal}.items():
    for kinds in ((S8, S8), (U8, U8), (S8, OTHER)):
        body = f"  %r = stablehlo.compare {direction}, %a, %b, FLOAT : (<A>, <B>) -> <R>"
        CASES[f"compare {direction} {kinds[0].storage} {len(set(kinds))}"] = Case(
            body, [(SHAPE, kind) for kind in kinds], (SHAPE, "i1"), oracle
        )

ROWS = Q("i8", (0.05, 0.1, 0.02), (3, -5, 0), axis=0)
CASES |= {
    "transpose": Case(
        "  %r = stablehlo.transpose %a, dims = [1, 0] : (<A>) -> <R>",
        [(SHAPE, AXIS)], ((3, 2), ROWS), np.transpose),
    "reshape": Case(
        "  %r = stablehlo.reshape %a : (<A>) -> <R>", [(SHAPE, AXIS)],
        ((1, 2, 3), Q("i8", AXIS.scales, AXIS.zeros, axis=2)), lambda x: x[None]),
    "broadcast_in_dim": Case(
        "  %r = stablehlo.broadcast_in_dim %a, dims = [1] : (<A>) -> <R>",
        [((3,), ROWS)], (SHAPE, AXIS), lambda x: np.broadcast_to(x, SHAPE)),
    "broadcast of one": Case(
        "  %r = stablehlo.broadcast_in_dim %a, dims = [1] : (<A>) -> <R>",
        [((1,), Q("i8", (0.05,), (3,), axis=0))],
        (SHAPE, Q("i8", (0.05,) * 3, (3,) * 3, axis=1)), lambda x: np.broadcast_to(x, SHAPE)),
    "concatenate": Case(
        "  %r = stablehlo.concatenate %a, %b, dim = 0 : (<A>, <B>) -> <R>",
        [(SHAPE, S8), (SHAPE, S8)], ((4, 3), S8), lambda a, b: np.concatenate([a, b])),
    "slice": Case(
        "  %r = stablehlo.slice %a [0:2, 1:3] : (<A>) -> <R>",
        [(SHAPE, U8)], ((2, 2), U8), lambda x: x[:, 1:3]),
    "pad": Case(
        "  %r = stablehlo.pad %a, %b, low = [1, 0], high = [0, 1], interior = [0, 0]"
        " : (<A>, <B>) -> <R>",
        [(SHAPE, S8), ((), S8)], ((3, 4), S8),
        lambda x, y: np.pad(x, ((1, 0), (0, 1)), constant_values=y)),
    "reverse": Case(
        "  %r = stablehlo.reverse %a, dims = [1] : <A>", [(SHAPE, S8)], (SHAPE, S8),
        lambda x: x[:, ::-1]),
    "gather": Case(
        '  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = '
        "[1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
        "slice_sizes = array<i64: 1, 3>}> : (<A>, <B>) -> <R>",
        [(SHAPE, S8), ((4,), "i32")], ((4, 3), S8), lambda x, i: x[i]),
    "iota": Case(
        "  %r = stablehlo.iota dim = 1 : <R>", [], (SHAPE, S8),
        lambda: np.broadcast_to(np.arange(3.0), SHAPE)),
    "reduce the largest": Case(
        "  %i = stablehlo.constant() {value = dense<-128> : tensor<i8>} : () -> tensor<Q>\n"
        "  %r = stablehlo.reduce(%a init: %i) applies stablehlo.maximum across dimensions = [1]"
        " : (<A>, tensor<Q>) -> <R>".replace("Q", S8.text),
        [(SHAPE, S8)], ((2,), S8), lambda x: x.max(1)),
    "reduce in wider integers": Case(
        "  %i = stablehlo.constant() {value = dense<0> : tensor<i32>} : () -> tensor<Q>\n"
        "  %r = stablehlo.reduce(%a init: %i) across dimensions = [1] : (<A>, tensor<Q>) -> <R>\n"
        "   reducer(%x: tensor<Q>, %y: tensor<Q>) {\n"
        "    %s = stablehlo.add %x, %y : tensor<Q>\n"
        "    stablehlo.return %s : tensor<Q>\n  }".replace("Q", Q("i32", 0.05).text),
        [(SHAPE, S8)], ((2,), Q("i32", 0.05)), lambda x: x.sum(1)),
    "sort": Case(
        '  %r = "stablehlo.sort"(%a) <{dimension = 1 : i64}> ({\n'
        "  ^bb0(%x: tensor<Q>, %y: tensor<Q>):\n"
        "    %p = stablehlo.compare GT, %x, %y : (tensor<Q>, tensor<Q>) -> tensor<i1>\n"
        "    stablehlo.return %p : tensor<i1>\n"
        "  }) : (<A>) -> <R>".replace("Q", U8.text),
        [(SHAPE, U8)], (SHAPE, U8), lambda x: -np.sort(-x)),
    "while": Case(
        "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
        "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
        "  %three = stablehlo.constant dense<3> : tensor<i32>\n"
        "  %l, %r = stablehlo.while(%n = %zero, %x = %a) : tensor<i32>, <A> cond {\n"
        "    %c = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "    stablehlo.return %c : tensor<i1>\n"
        "  } do {\n"
        "    %m = stablehlo.add %n, %one : tensor<i32>\n"
        "    %y = stablehlo.add %x, %b : <A>\n"
        "    stablehlo.return %m, %y : tensor<i32>, <A>\n  }",
        [(SHAPE, S8), (SHAPE, Q("i8", 0.05, 3, bounds=(-10, 10)))][:1] * 2, (SHAPE, S8),
        lambda x, y: _saturating(x, y, 3)),
}  # fmt: skip


def _saturating(x: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    for _ in range(count):
        x = S8.dequantize(np.round(S8.before_rounding(x + y)))
    return x


# Products -----------------------------------------------------------------------------------------


def dot(left: Q | str, right: Q | str, result: Q | str, inner: int = 70) -> Case:
    body = "  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (<A>, <B>) -> <R>"
    if isinstance(right, Q) and (np.any(right.zeros) or right.axis == 0):  # as only dot may have it
        body = "  %r = stablehlo.dot %a, %b : (<A>, <B>) -> <R>"
    return Case(body, [((5, inner), left), ((inner, 3), right)], ((5, 3), result), np.matmul)


CENTRED = Q("i8", (0.01, 0.02, 0.005), 0, axis=1, bounds=(-127, 127))
UNEVEN = Q("u8", (0.01, 0.02, 0.005), (100, 128, 7), axis=1)
SUMS = Q("i32", tuple(np.float32(0.05) * np.float32(s) for s in (0.01, 0.02, 0.005)), 0, axis=1)
SUMS = Q("i32", tuple(float(s) for s in SUMS.scales), 0, axis=1)
CASES |= {
    "dot i8": dot(S8, OTHER, WIDE),
    "dot u8": dot(U8, U8, WIDE),
    "dot u8 and i8": dot(U8, Q("i8", 0.05, 0), Q("u8", 0.3, 100)),
    "dot i8 and u8": dot(S8, U8, WIDE),
    "dot along an axis": dot(S8, CENTRED, WIDE),
    "dot along an axis from uneven zeros": dot(U8, UNEVEN, WIDE),
    "dot to sums": dot(S8, CENTRED, SUMS),
    "dot to sums from a zero": dot(S8, CENTRED, Q("i32", SUMS.scales, (5, -6, 1000), axis=1)),
    "dot to other sums along the axis": dot(S8, UNEVEN, Q("i16", (0.1, 0.2, 0.3), 7, axis=1)),
    "dot i4": dot(TYPES["i4"], TYPES["u4"], WIDE),
    "dot i16": dot(Q("i16", 0.001, 100), Q("i16", 0.0005, 0), WIDE),
    "dot i8 and i16": dot(S8, Q("i16", 0.0005, 3), WIDE),
    "dot i32": dot(Q("i32", 1e-9, 0), Q("i32", 1e-9, 7), WIDE),
    "dot f64": dot(
        Q("i8", 0.05, 3, expressed="f64"), Q("i8", 0.07, 0, expressed="f64"),
        Q("i8", 0.7, 10, expressed="f64")),
    "dot of many": dot(U8, Q("u8", 0.02, 255), Q("i32", 1e-3, 0), inner=40000),
    "dot of floats and i8": dot("f32", CENTRED, "f32"),
    "dot of floats and u8": dot("f32", UNEVEN, "f32"),
    "dot with an axis that is summed": dot(
        S8, Q("i8", tuple([0.01 + 0.001 * n for n in range(70)]), 0, axis=0), WIDE),
    "dot of vectors": Case(
        "  %r = stablehlo.dot %a, %b : (<A>, <B>) -> <R>",
        [((40,), S8), ((40,), OTHER)], ((), WIDE), np.dot),
    "dot of a batch": Case(
        "  %r = stablehlo.dot_general %a, %b, batching_dims = [2, 0] x [0, 3],"
        " contracting_dims = [1] x [2] : (<A>, <B>) -> <R>",
        [((2, 9, 4, 3), S8), ((4, 5, 9, 2), Q("i8", (0.01, 0.02, 0.03, 0.04, 0.05), 0, axis=1))],
        ((4, 2, 3, 5), WIDE), lambda a, b: np.einsum("bkcm,cnkb->cbmn", a, b)),
    "dot of a batch of types": Case(
        "  %r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0],"
        " contracting_dims = [2] x [1] : (<A>, <B>) -> <R>",
        [((2, 3, 9), U8), ((2, 9, 4), Q("u8", (0.01, 0.2), 0, axis=0))],
        ((2, 3, 4), Q("u8", 0.7, 10)), np.matmul),
}  # fmt: skip


def convolution(
    left: Q | str,
    right: Q | str,
    result: Q | str,
    layout: str,
    *,
    window: str = "",
    groups: int = 1,
) -> Case:
    shapes: Any = ((2, 6, 5, 4), (3, 2, 4 // groups, 6))  # NHWC, HWIO
    order = {"nhwc": (0, 1, 2, 3), "nchw": (0, 3, 1, 2)}[layout]
    weights = {"nhwc": (0, 1, 2, 3), "nchw": (3, 2, 0, 1)}[layout]
    names = {"nhwc": "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
             "nchw": "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"}[layout]  # fmt: skip
    body = (
        f"  %r = stablehlo.convolution(%a, %b) dim_numbers = {names}, window = {{{window}}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}"
        " : (<A>, <B>) -> <R>"
    )

    def oracle(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        x, w = (np.transpose(v, np.argsort(o)) for v, o in ((x, order), (w, weights)))
        return np.transpose(_convolve(x, w, window, groups), order)

    shape = _convolve(np.zeros(shapes[0]), np.zeros(shapes[1]), window, groups).shape
    given = [(tuple(s[n] for n in o), q) for s, o, q in
             zip(shapes, (order, weights), (left, right), strict=True)]  # fmt: skip
    return Case(body, given, (tuple(shape[n] for n in order), result), oracle)


def _convolve(x: np.ndarray, w: np.ndarray, window: str, groups: int) -> np.ndarray:
    """The convolution of NHWC by HWIO in loops, by the window's text."""

    def numbers(name: str, default: Any) -> Any:
        return eval(window.split(f"{name} = ")[1].split("]]" if name == "pad" else "]")[0] + (
            "]]" if name == "pad" else "]")) if name in window else default  # fmt: skip

    stride, pad = numbers("stride", [1, 1]), numbers("pad", [[0, 0], [0, 0]])
    dilation, spread = numbers("lhs_dilate", [1, 1]), numbers("rhs_dilate", [1, 1])
    apart = [(n - 1) * d + 1 for n, d in zip(x.shape[1:3], dilation, strict=True)]
    wide = np.zeros((x.shape[0], *apart, 4))
    wide[:, :: dilation[0], :: dilation[1]] = x
    wide = np.pad(wide, [(0, 0), *map(tuple, pad), (0, 0)])
    reach = [(n - 1) * s + 1 for n, s in zip(w.shape[:2], spread, strict=True)]
    extents = zip(wide.shape[1:3], reach, stride, strict=True)
    rows, columns = ((n - r) // s + 1 for n, r, s in extents)
    found = np.zeros((x.shape[0], rows, columns, w.shape[3]))
    inner, outer = w.shape[2], w.shape[3] // groups
    for i in range(rows):
        for j in range(columns):
            top, left = i * stride[0], j * stride[1]
            part = wide[:, top : top + reach[0] : spread[0], left : left + reach[1] : spread[1]]
            for g in range(groups):
                features = slice(g * outer, (g + 1) * outer)
                found[:, i, j, features] = np.einsum(
                    "bhwi,hwio->bo", part[..., g * inner : (g + 1) * inner], w[..., features]
                )
    return found


HWIO = Q("i8", (0.01, 0.02, 0.005, 0.03, 0.01, 0.02), 0, axis=3, bounds=(-127, 127))
OIHW = Q("i8", HWIO.scales, 0, axis=0, bounds=(-127, 127))
UNCENTRED = Q("u8", HWIO.scales, (100, 128, 7, 0, 255, 1), axis=0)
PADDED = "stride = [2, 1], pad = [[1, 2], [0, 1]]"
CASES |= {
    "convolution": convolution(S8, HWIO, WIDE, "nhwc"),
    "convolution of padded": convolution(U8, HWIO, WIDE, "nhwc", window=PADDED),
    "convolution of channels first": convolution(S8, OIHW, WIDE, "nchw", window=PADDED),
    "convolution of uneven": convolution(U8, UNCENTRED, WIDE, "nchw", window=PADDED),
    "convolution of groups": convolution(U8, OIHW, WIDE, "nchw", window=PADDED, groups=2),
    "convolution of uneven groups": convolution(S8, U8, WIDE, "nchw", window=PADDED, groups=2),
    "convolution dilated": convolution(
        U8, HWIO, WIDE, "nhwc",
        window="pad = [[1, 2], [2, 1]], lhs_dilate = [2, 3], rhs_dilate = [2, 1]"),
    "convolution to sums": convolution(S8, Q("i8", 0.5, 0), Q("i32", 0.025, 0), "nchw"),
    "convolution of floats": convolution("f32", UNCENTRED, "f32", "nchw", window=PADDED),
    "convolution of i4": convolution(TYPES["i4"], TYPES["u4"], WIDE, "nhwc", window=PADDED),
    "convolution of i16": convolution(Q("i16", 0.001, 9), Q("i16", 0.001, 0), WIDE, "nhwc"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operations_on_quantized_numbers(name: str) -> None:
    case = CASES[name]
    function = raise_module(parse_module(case.text)).functions["main"]
    (found,) = function.evaluate(*case.arrays)
    case.check(np.asarray(found))


def test_compiled_programs_give_the_same(tmp_path: Path) -> None:
    functions, arguments, results, arrays = [], [], [], []
    for number, case in enumerate(CASES.values()):
        text = case.text.replace("@main", f"private @f{number}").replace(
            "func.func p", "func.func p"
        )
        functions.append(text)
        given = [kind for letter, kind in case.types.items() if letter != "R"]
        names = [f"%a{len(arguments) + place}" for place in range(len(given))]
        arguments += [f"{name}: {kind}" for name, kind in zip(names, given, strict=True)]
        results.append((f"%r{number}", case.types["R"], names, given))
        arrays += case.arrays
    calls = "\n".join(
        f"  {result} = func.call @f{number}({', '.join(names)}) : ({', '.join(given)}) -> {kind}"
        for number, (result, kind, names, given) in enumerate(results)
    )
    kinds = ", ".join(kind for _, kind, _, _ in results)
    returned = ", ".join(result for result, _, _, _ in results)
    main = (
        f"func.func @main({', '.join(arguments)}) -> ({kinds}) {{\n{calls}\n"
        f"  return {returned} : {kinds}\n}}"
    )
    path = tmp_path / "all.mlir"
    path.write_text("\n".join([*functions, main]))
    found = load(path)
    with axir.config(jax_enable_x64=True):
        made = axir.jit(found)(*arrays)
    wrong = []
    for (name, case), array in zip(CASES.items(), made, strict=True):
        try:
            case.check(np.asarray(array))
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong


# Types that make no sense, and operations that have no meaning ------------------------------------


def _passed_on(kind: str) -> str:
    return f"func.func @main(%x: {kind}) -> {kind} {{\n  return %x : {kind}\n}}"


WITHOUT_SENSE = {
    "i8:f32, 1.0:400": (
        r"has the zero point 400, which is none of its integers[\s\S]*They are -128 to 127"
    ),
    "i8:f32:7, {0.1,0.2}": r"has them along axis 7, but its arrays have 1 axes",
    "i8:f32:0, {0.1,0.2,0.3}": r"has 3 scales along axis 0, where its arrays have 2 elements",
    "i5:f32, 1.0": r"has i5 for f32[\s\S]*of 2, 4, 8, 16 or 32 bits",
    "i8:f8E4M3FN, 1.0": r"has i8 for f8E4M3FN, which StableHLO does not have",
    "i8:f32:{0:1}, {1.0, 2.0}": r"quantized in a way that StableHLO does not have",
}
UNREADABLE = {
    "i8:f32, 0.0": r"line 1: scale 0\.0[\s\S]*positive, finite numbers",
    "i8:f32, -1.0": r"scale -1\.0[\s\S]*positive, finite numbers",
    "i8:f32, 1.0e39": r"scale 1\.0+e\+39 out of[\s\S]*positive, finite numbers",
    "i8:f32, nan": r"expected floating point literal",
    "i64:f32, 1.0": r"illegal storage type size: 64[\s\S]*at most 32 bits",
    "i8<-200:3>:f32, 1.0": r"illegal storage type minimum: -200[\s\S]*bounds that fit them",
}


@pytest.mark.parametrize("quantized", WITHOUT_SENSE)
def test_types_without_sense(quantized: str) -> None:
    kind = f"tensor<2x!quant.uniform<{quantized}>>"
    message = WITHOUT_SENSE[quantized]
    with pytest.raises(QuantizationError, match=rf"Argument 0: [\s\S]*{message}"):
        raise_module(parse_module(_passed_on(kind)))
    computed = (
        f"func.func @main(%x: tensor<2xf32>) -> {kind} {{\n"
        f"  %0 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> {kind}\n"
        f"  return %0 : {kind}\n}}"
    )
    with pytest.raises(ParseError, match=rf"line 2: [\s\S]*{'' if 'f8' in quantized else message}"):
        parse_module(computed)


@pytest.mark.parametrize("quantized", UNREADABLE)
def test_types_that_mlir_refuses(quantized: str) -> None:
    with pytest.raises(ParseError, match=UNREADABLE[quantized]):
        parse_module(_passed_on(f"tensor<2x!quant.uniform<{quantized}>>"))


def test_nan_is_within_the_bounds(tmp_path: Path) -> None:
    kinds = ["i8<3:9>:f32, 0.5:3", "i8<-9:-3>:f32, 0.5:-4", "i8:f32, 0.5"]
    types = [f"tensor<3x!quant.uniform<{kind}>>" for kind in kinds]
    results = ", ".join(types)
    lines = [
        f"  %{n} = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> {kind}\n"
        for n, kind in enumerate(types)
    ]
    (tmp_path / "m.mlir").write_text(
        f"func.func @main(%x: tensor<3xf32>) -> ({results}) {{\n{''.join(lines)}"
        f"  return %0, %1, %2 : {results}\n}}"
    )
    found = load(tmp_path / "m.mlir")(np.array([np.nan, 2, -np.inf], np.float32))
    np.testing.assert_array_equal(found, [[3, 7, 3], [-3, -3, -9], [0, 4, -128]])


def test_operations_without_meaning(tmp_path: Path) -> None:
    kind = tensor((2,), S8)
    path = tmp_path / "called.mlir"
    path.write_text(
        f"func.func @main(%x: {kind}) -> {kind} {{\n"
        f"  %0 = stablehlo.custom_call @mine(%x) : ({kind}) -> {kind}\n  return %0 : {kind}\n}}"
    )
    message = (
        r"^stablehlo\.custom_call has no meaning for quantized numbers \(float32 by 0\.05:3\)\.\n"
        r"  at .*called\.mlir:2\n  Dequantize them before it, by stablehlo\.uniform_dequantize"
    )
    with pytest.raises(QuantizationError, match=message):
        load(path)


def test_callers_pass_and_get_integers(tmp_path: Path) -> None:
    given, made = tensor((2, 3), AXIS), tensor((2, 3), U8)
    path = tmp_path / "passed.mlir"
    path.write_text(
        f"func.func @main(%x: {given}) -> {made} {{\n"
        f"  %0 = stablehlo.uniform_dequantize %x : ({given}) -> tensor<2x3xf32>\n"
        f"  %1 = stablehlo.uniform_quantize %0 : (tensor<2x3xf32>) -> {made}\n"
        f"  return %1 : {made}\n}}"
    )
    found = load(path)
    assert str(found) == "<Exported main(arg0: int8[2,3]) -> uint8[2,3]>"
    x = AXIS.random(np.random.default_rng(0), SHAPE)
    assert_quantized(np.asarray(found(x)), U8, AXIS.dequantize(x))
    with pytest.raises(DTypeError, match="must have dtype int8, not float32"):
        found(np.ones((2, 3), np.float32))


def test_quantized_constants() -> None:
    kind = tensor((2, 3), Q("u8", (0.5, 0.25), (200, 3), axis=0))
    text = (
        "func.func @main() -> tensor<2x3xf32> {\n"
        "  %0 = stablehlo.constant() {value = dense<[[-1, 0, 1], [7, -128, 127]]> : tensor<2x3xi8>}"
        f" : () -> {kind}\n"
        f"  %1 = stablehlo.uniform_dequantize %0 : ({kind}) -> tensor<2x3xf32>\n"
        "  return %1 : tensor<2x3xf32>\n}"
    )
    (found,) = raise_module(parse_module(text)).functions["main"].evaluate()
    wanted = [[27.5, -100.0, -99.5], [1.0, 31.25, 31.0]]
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_weights_of_quantized_types(tmp_path: Path) -> None:
    kind = tensor((2, 3), AXIS)
    words = np.arange(6, dtype=np.int8).reshape(2, 3)
    path = tmp_path / "weights.mlir"
    path.write_text(
        "func.func @main(%x: tensor<3x2xf32>) -> tensor<3x3xf32> {\n"
        "  %0 = stablehlo.constant() {value = dense_resource<w> : tensor<2x3xi8>}"
        f" : () -> {kind}\n"
        f"  %1 = stablehlo.uniform_dequantize %0 : ({kind}) -> tensor<2x3xf32>\n"
        "  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0]"
        " : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>\n"
        "  return %2 : tensor<3x3xf32>\n}\n"
        f'{{-# dialect_resources: {{ builtin: {{ w: "0x01000000{words.tobytes().hex()}" }} }} #-}}'
    )
    found = load(path)
    np.testing.assert_array_equal(found.parameters["w"], words)
    x = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)
    np.testing.assert_allclose(found(x), x @ AXIS.dequantize(words), 1e-5, 1e-6)
    changed = found.with_parameters({"w": words * 2})
    np.testing.assert_allclose(changed(x), x @ AXIS.dequantize(words * 2), 1e-5, 1e-6)


def test_inspecting_and_running(tmp_path: Path) -> None:
    kind, made = tensor((2, 3), AXIS), tensor((2, 3), "f32")
    path = tmp_path / "shown.mlir"
    path.write_text(
        f"func.func @main(%x: {kind}) -> {made} {{\n"
        f"  %0 = stablehlo.uniform_dequantize %x : ({kind}) -> {made}\n  return %0 : {made}\n}}"
    )
    shown = CliRunner().invoke(cli, ["inspect", str(path)], catch_exceptions=False).output
    assert "arg0     2x3xi8  quantized: float32 by 0.05:3, 0.1:-5, 0.02:0 along axis 1" in shown
    assert "result0  2x3xf32\n" in shown
    ran = CliRunner().invoke(cli, ["run", str(path), "4,5,6,2,1,0"], catch_exceptions=False).output
    assert "[[ 0.05, 1. , 0.12], [-0.05, 0.6 , 0. ]]" in " ".join(ran.split())
