"""Products of integers that were bytes become products of bytes, with the same sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import axir
from axir.dialect.core.array import as_array
from axir.dialect.text.parsing import parse_module
from axir.passes.raising.module import raise_module

RNG = np.random.default_rng(5)
KINDS = {"uint8": "ui8", "int8": "i8", "int32": "i32"}


def array(dtype: str, *shape: int) -> np.ndarray:
    info = np.iinfo(np.int8 if dtype == "int8" else np.uint8)
    found = RNG.integers(info.min, info.max + 1, shape).astype(dtype)
    found.reshape(-1)[:2] = info.min, info.max
    return found


def tensor(x: np.ndarray, kind: str | None = None) -> str:
    return f"tensor<{''.join(f'{n}x' for n in x.shape)}{kind or KINDS[str(x.dtype)]}>"


def constant(name: str, value: Any) -> str:
    words = np.asarray(value, np.int32)
    return f"  %{name} = stablehlo.constant dense<{words.tolist()}> : {tensor(words)}\n"


def less(name: str, x: np.ndarray, zero: Any, dims: str = "[]") -> str:
    """The text that widens an argument, and subtracts a zero point."""
    given, wide, known = tensor(x), tensor(x, "i32"), np.asarray(zero, np.int32)
    text = f"  %{name}_wide = stablehlo.convert %{name} : ({given}) -> {wide}\n"
    return text + (
        f"{constant(name + '_zero', known)}"
        f"  %{name}_zeros = stablehlo.broadcast_in_dim %{name}_zero, dims = {dims}"
        f" : ({tensor(known)}) -> {wide}\n"
        f"  %{name}_less = stablehlo.subtract %{name}_wide, %{name}_zeros : {wide}\n"
    )


def dot(x: np.ndarray, w: np.ndarray, body: str, left: str, right: str) -> str:
    result = tensor(np.zeros((x.shape[0], w.shape[1]), np.int32))
    return (
        f"func.func @main(%x: {tensor(x)}, %w: {tensor(w)}) -> {result} {{\n{body}"
        f"  %r = stablehlo.dot_general %{left}, %{right}, contracting_dims = [1] x [0]"
        f" : ({tensor(x, 'i32')}, {tensor(w, 'i32')}) -> {result}\n  return %r : {result}\n}}"
    )


def check(
    text: str, arrays: list[np.ndarray], wanted: np.ndarray, is_of_bytes: bool = True
) -> None:
    function = raise_module(parse_module(text)).functions["main"]
    (found,) = function.evaluate(*arrays)
    np.testing.assert_array_equal(np.asarray(found), wanted)
    shown = str(axir.make_jaxpr(function.evaluate)(*map(as_array, arrays)))
    products = [line for line in shown.splitlines() if "dot_general[" in line or "conv_gen" in line]
    assert products
    assert ("preferred_element_type=int32" in shown) == is_of_bytes


@pytest.mark.parametrize("x_dtype", ["uint8", "int8"])
@pytest.mark.parametrize("w_dtype", ["uint8", "int8"])
@pytest.mark.parametrize("zeros", [(0, 0), (3, 0), (120, 7), (100, [0, 3, 100])])
def test_products_of_bytes(x_dtype: str, w_dtype: str, zeros: Any) -> None:
    x, w = array(x_dtype, 5, 33), array(w_dtype, 33, 3)
    x_zero, w_zero = zeros
    dims = "[1]" if isinstance(w_zero, list) else "[]"
    body = less("x", x, x_zero) + less("w", w, w_zero, dims)
    wanted = (x.astype(np.int32) - x_zero) @ (w.astype(np.int32) - np.array(w_zero))
    check(dot(x, w, body, "x_less", "w_less"), [x, w], wanted)


def test_bytes_that_are_taken_for_unsigned_ones() -> None:
    x, w = np.array([[-1, 2, 3]], np.int8), np.array([[1], [1], [1]], np.int8)
    body = (
        "  %x_wide = arith.extui %x : tensor<1x3xi8> to tensor<1x3xi32>\n"
        "  %w_wide = arith.extsi %w : tensor<3x1xi8> to tensor<3x1xi32>\n"
    )
    check(dot(x, w, body, "x_wide", "w_wide"), [x, w], np.array([[260]]), is_of_bytes=False)


def test_constants_and_moves() -> None:
    x, w = array("int8", 4, 6), array("int8", 6, 3)
    turned = constant("wt", w.T) + (
        "  %wide = stablehlo.transpose %wt, dims = [1, 0] : (tensor<3x6xi32>) -> tensor<6x3xi32>\n"
    )
    wanted = x.astype(np.int32) @ w
    text = dot(x, w, less("x", x, 0) + turned, "x_less", "wide")
    check(text, [x, w], wanted)
    beyond = w.astype(np.int32)
    beyond[0, 0] = 300  # which is no byte
    text = text.replace(f"[{w[0, 0]},", "[300,", 1)
    check(text, [x, w], x.astype(np.int32) @ beyond, is_of_bytes=False)


def test_zero_points_that_are_no_bytes() -> None:
    x, w = array("int8", 4, 6), array("int8", 6, 3)
    text = dot(x, w, less("x", x, 1000) + less("w", w, 0), "x_less", "w_less")
    check(text, [x, w], (x.astype(np.int32) - 1000) @ w, is_of_bytes=False)


def test_zero_points_that_are_computed() -> None:
    x, w, zero = array("uint8", 4, 6), array("int8", 6, 3), np.array(130, np.uint8)
    body = (
        less("x", x, 0)
        + less("w", w, 0)
        + (
            "  %z = stablehlo.convert %zero : (tensor<ui8>) -> tensor<i32>\n"
            "  %zs = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<i32>) -> tensor<4x6xi32>\n"
            "  %x_new = stablehlo.subtract %x_wide, %zs : tensor<4x6xi32>\n"
        )
    )
    text = dot(x, w, body, "x_new", "w_less").replace(
        "%w: tensor<6x3xi8>", "%w: tensor<6x3xi8>, %zero: tensor<ui8>"
    )
    check(text, [x, w, zero], (x.astype(np.int32) - 130) @ w)


def test_sums_wrap_around_as_those_of_32_bits() -> None:
    x, w = np.full((1, 140000), -128, np.int8), np.full((140000, 1), -128, np.int8)
    text = dot(x, w, less("x", x, 0) + less("w", w, 0), "x_less", "w_less")
    check(text, [x, w], np.full((1, 1), 140000 * 2**14 - 2**32, np.int64).astype(np.int32))


def test_weights_along_a_batch() -> None:
    x, w = array("uint8", 2, 4, 6), array("int8", 6, 3)
    wide = less("w", w, [1, 2, 3], "[1]")
    text = (
        "func.func @main(%x: tensor<2x4x6xui8>, %w: tensor<6x3xi8>) -> tensor<2x4x3xi32> {\n"
        f"{less('x', x, 7)}{wide}"
        "  %b = stablehlo.broadcast_in_dim %w_less, dims = [1, 2]"
        " : (tensor<6x3xi32>) -> tensor<2x6x3xi32>\n"
        "  %r = stablehlo.dot_general %x_less, %b, batching_dims = [0] x [0],"
        " contracting_dims = [2] x [1]"
        " : (tensor<2x4x6xi32>, tensor<2x6x3xi32>) -> tensor<2x4x3xi32>\n"
        "  return %r : tensor<2x4x3xi32>\n}"
    )
    check(text, [x, w], (x.astype(np.int32) - 7) @ (w.astype(np.int32) - np.array([1, 2, 3])))


@pytest.mark.parametrize("zero", [0, 9, 128])
def test_convolutions_of_bytes(zero: int) -> None:
    x, w = array("uint8", 1, 2, 5, 5), array("int8", 3, 2, 3, 3)
    text = (
        f"func.func @main(%x: {tensor(x)}, %w: {tensor(w)}) -> tensor<1x3x3x3xi32> {{\n"
        f"{less('x', x, zero)}{less('w', w, 0)}"
        "  %r = stablehlo.convolution(%x_less, %w_less) dim_numbers = "
        "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        "window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        f" : ({tensor(x, 'i32')}, {tensor(w, 'i32')}) -> tensor<1x3x3x3xi32>\n"
        "  return %r : tensor<1x3x3x3xi32>\n}"
    )
    wide = np.pad(x.astype(np.int32) - zero, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))[:, :, ::2, ::2]
    wanted = np.einsum("bihwkl,oikl->bohw", windows, w.astype(np.int32))
    check(text, [x, w], wanted)
