"""Vectors of integers are divided in floating point, with the same results."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from iree.compiler import ir

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.config import config
from axir.runtime.compiler.invocation.kernel_code import divide_vectors

RNG = np.random.default_rng(0)
NARROW = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def operands(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the integers at which the division may fail, and random ones."""
    least, largest = np.iinfo(dtype).min, np.iinfo(dtype).max
    near = [least, least + 1, largest, largest - 1, largest // 2, largest // 2 + 1, 0, 1, 2, 3, 7]
    edges = near + [-1, -2, -7] * (least < 0)
    x, y = np.array(list(itertools.product(edges, edges)), dtype).T
    wide = RNG.integers(least, largest, (2, 20_000), dtype, endpoint=True)
    small = RNG.integers(1, 9, 20_000).astype(dtype)
    return np.concatenate([x, *wide]), np.concatenate([y, wide[1], small])


def divided(x: axir.Array, y: axir.Array) -> list[axir.Array]:
    return [lax.div(x, y), lax.rem(x, y), x // y, x % y]


def test_quotients_and_remainders() -> None:
    pairs = [operands(dtype) for dtype in NARROW]
    with config(axir_compiler="native"):
        found = axir.jit(lambda pairs: [divided(*pair) for pair in pairs])(pairs)
    with axir.disable_jit():
        expected = [divided(*map(jnp.asarray, pair)) for pair in pairs]
    for got, wanted in zip(found, expected, strict=True):
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("kind", "stays"),
    [("vector<8xi32>", False), ("vector<4xi16>", False), ("vector<4xi64>", True), ("i32", True)],
)
def test_only_narrow_vectors_change(kind: str, stays: bool) -> None:
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(
            f"llvm.func @f(%x: {kind}, %y: {kind}) -> {kind} {{\n"
            f"  %0 = llvm.srem %x, %y : {kind}\n  %1 = llvm.udiv %0, %y : {kind}\n"
            f"  llvm.return %1 : {kind}\n}}"
        )
        divide_vectors(module.operation)
        assert module.operation.verify()
        text = str(module)
    assert ("llvm.srem" in text, "llvm.udiv" in text) == (stays, stays)
    assert text.count("llvm.fdiv") == (0 if stays else 2)
