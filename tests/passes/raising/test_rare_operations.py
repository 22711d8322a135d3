"""Operations of StableHLO without an op of the dialect: they become several ops."""

from __future__ import annotations

import numpy as np
import pytest

from axir.dialect.text.parsing import parse_module
from axir.passes.framework.errors import RaisingError
from axir.passes.raising.module import raise_module


def evaluate(text: str, *arguments: np.ndarray) -> list[np.ndarray]:
    function = raise_module(parse_module(text)).functions["main"]
    return [x.host() for x in function.evaluate(*arguments)]


def unary(op: str, given: str, result: str, rest: str = "") -> str:
    """Returns a module of one operation on one array."""
    return (
        f"func.func @main(%x: tensor<{given}>) -> tensor<{result}> {{\n"
        f"  %0 = stablehlo.{op} %x{rest} : (tensor<{given}>) -> tensor<{result}>\n"
        f"  return %0 : tensor<{result}>\n}}\n"
    )


POWER = """
func.func @main(%x: tensor<{n}x{t}>, %y: tensor<{n}x{t}>) -> tensor<{n}x{t}> {{
  %0 = stablehlo.power %x, %y : tensor<{n}x{t}>
  return %0 : tensor<{n}x{t}>
}}
"""


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "int8"])
def test_powers_of_integers(dtype: str) -> None:
    base = np.array([2, 3, 0, 0, 1, 7, 5, 255], np.int64).astype(dtype)
    exponent = np.array([5, 0, 0, 4, 9, 20, 13, 3], np.int64).astype(dtype)
    kind = dtype.replace("uint", "ui").replace("int", "i")
    (found,) = evaluate(POWER.format(n=8, t=kind), base, exponent)
    bits = np.dtype(dtype).itemsize * 8
    exact = [int(a) ** int(b) % 2**bits for a, b in zip(base, exponent, strict=True)]
    np.testing.assert_array_equal(found, np.array(exact, f"uint{bits}").view(dtype))


def test_negative_powers_of_integers() -> None:
    base = np.array([1, -1, -1, 2, -3, 0, 65535], np.int32)
    exponent = np.array([-3, -3, -4, -1, -2, -1, -1], np.int32)
    (found,) = evaluate(POWER.format(n=7, t="i32"), base, exponent)
    np.testing.assert_array_equal(found, [1, -1, 1, 0, 0, 0, 0])


def test_cube_roots_of_complex_numbers() -> None:
    z = np.array([3 + 4j, -8, 0, -1j], np.complex128)
    (found,) = evaluate(unary("cbrt", "4xcomplex<f64>", "4xcomplex<f64>"), z)
    np.testing.assert_allclose(found, z ** (1 / 3), 1e-14)


def test_bits_of_numbers() -> None:
    x = np.array([[1.5, -2.0], [np.pi, 0.0]], np.float32)
    (bits,) = evaluate(unary("bitcast_convert", "2x2xf32", "2x2x32xi1"), x)
    words = np.packbits(bits, axis=-1, bitorder="little").view(np.float32)[..., 0]
    np.testing.assert_array_equal(words, x)
    (again,) = evaluate(unary("bitcast_convert", "2x2x32xi1", "2x2xf32"), bits)
    np.testing.assert_array_equal(again, x)
    (wide,) = evaluate(unary("bitcast_convert", "64xi1", "i64"), np.arange(64) % 3 == 0)
    assert [int(wide) >> place & 1 for place in range(4)] == [1, 0, 0, 1]


def test_counting_in_narrow_integers() -> None:
    text = "func.func @main() -> tensor<3x4xi4> {\n  %0 = stablehlo.iota dim = 1 : tensor<3x4xi4>\n"
    (found,) = evaluate(text + "  return %0 : tensor<3x4xi4>\n}\n")
    np.testing.assert_array_equal(found.astype(int), np.broadcast_to(np.arange(4), (3, 4)))


SCAN = """
func.func @main(%x: tensor<2x3xf32>, %init: tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>) {
  %0:2 = chlo.scan(%x) inits(%init) dimension=1 attributes {is_reverse = REVERSE} {
  ^bb0(%new: tensor<2xf32>, %sum: tensor<2xf32>):
    %1 = stablehlo.add %sum, %new : tensor<2xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<2xf32>
    stablehlo.return %2, %1 : tensor<2xf32>, tensor<2xf32>
  } : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return %0#0, %0#1 : tensor<2x3xf32>, tensor<2xf32>
}
"""


@pytest.mark.parametrize("is_reversed", [False, True])
def test_scans(is_reversed: bool) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    init = np.array([1, 2], np.float32)
    stacks, last = evaluate(SCAN.replace("REVERSE", str(is_reversed).lower()), x, init)
    step = -1 if is_reversed else 1
    sums = init[:, None] + np.cumsum(x[:, ::step], 1)[:, ::step]
    np.testing.assert_array_equal(stacks, sums**2)
    np.testing.assert_array_equal(last, init + x.sum(1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "func.func @main(%t: !stablehlo.token) -> !stablehlo.token {\n"
            "  return %t : !stablehlo.token\n}",
            "is a token, which orders infeeds",
        ),
        (
            "func.func @main() -> tensor<f32> {\n  %t = stablehlo.create_token : !stablehlo.token\n"
            '  %0:2 = "stablehlo.infeed"(%t) {infeed_config = ""}\n'
            "    : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)\n"
            "  return %0#0 : tensor<f32>\n}",
            "stablehlo.infeed exchanges arrays with the program that runs the module",
        ),
    ],
)
def test_what_cannot_be_raised_says_why(text: str, message: str) -> None:
    with pytest.raises(RaisingError, match=message):
        raise_module(parse_module(text))
