"""Rewrites of kernels in LLVM's dialect."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from iree.compiler import ir

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.builders.kernels.functions import FUNCTION_MARK
from axir.dialect.core.config import config
from axir.runtime.compiler.invocation import invoker
from axir.runtime.compiler.invocation.kernel_code import (
    divide_vectors,
    freeze_conversions,
    keep_functions,
    load_addresses_late,
)

TEXT = f"""
llvm.func @program_0(%x: f32) -> f32 {{
  %0 = llvm.call @program_0{FUNCTION_MARK}0(%x) : (f32) -> f32
  llvm.return %0 : f32
}}
llvm.func @program_0{FUNCTION_MARK}0(%x: f32) -> f32 {{
  llvm.return %x : f32
}}
"""


def test_functions_of_kernels_are_not_inlined() -> None:
    with ir.Context():
        module = ir.Module.parse(TEXT)
        assert keep_functions(module.operation) == 1
        assert module.operation.verify()
        kernel, function = str(module).split("llvm.func")[1:]
    assert "noinline" not in kernel
    assert "internal" in function
    assert 'passthrough = ["noinline"]' in function


X = np.arange(1, 6, dtype=np.float32)

KERNEL = """
llvm.func @kernel(%x: f32, %y: vector<4xf64>) -> i32 {
  %0 = llvm.fptosi %x : f32 to i32
  %1 = llvm.fptoui %y : vector<4xf64> to vector<4xi64>
  %2 = llvm.add %0, %0 : i32
  llvm.return %2 : i32
}
"""


def test_all_uses_read_what_is_frozen() -> None:
    with ir.Context():
        module = ir.Module.parse(KERNEL)
        freeze_conversions(module.operation)
        assert module.operation.verify()
        lines = [line.strip() for line in str(module).splitlines()]
    assert "%1 = llvm.freeze %0 : i32" in lines
    assert "%3 = llvm.freeze %2 : vector<4xi64>" in lines
    assert "%4 = llvm.add %1, %1 : i32" in lines


def exponential_of_nan(number: float) -> np.ndarray:
    """`exp(nan)` with an operand that the compiler knows, by a program with a number in it."""
    return np.asarray(axir.jit(lambda x: jnp.exp(x * jnp.nan) + number)(X))


def test_exponential_of_nan_is_nan() -> None:
    assert np.isnan(exponential_of_nan(1.0)).all()


def test_it_is_still_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    axir.config.update("axir_isolate_compiler", "never")
    axir.config.update("axir_compiler", "iree")
    monkeypatch.setattr(invoker, "freeze_conversions", lambda module: None)
    assert not np.isnan(exponential_of_nan(2.0)).any()


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


def function(count: int) -> str:
    places = [
        f"%p{n} = llvm.getelementptr %table[{n}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
        f"%a{n} = llvm.load %p{n} : !llvm.ptr -> !llvm.ptr"
        for n in range(count)
    ]
    body = [
        f"%x{n} = llvm.load %a{n} : !llvm.ptr -> f32\nllvm.store %x{n}, %a0 : f32, !llvm.ptr"
        for n in range(count)
    ]
    # The last address is needed only in a loop, in another block.
    last = f"llvm.br ^end\n^end:\nllvm.store %x1, %a{count} : f32, !llvm.ptr\nllvm.return"
    places.append(f"%a{count} = llvm.load %table : !llvm.ptr -> !llvm.ptr")
    return "\n".join(["llvm.func @f(%table: !llvm.ptr) {", *places, *body, last, "}"])


@pytest.mark.parametrize("count", [40, 5])
def test_addresses_of_many_arrays_are_loaded_late(count: int) -> None:
    with ir.Context():
        module = ir.Module.parse(function(count))
        before = str(module)
        load_addresses_late(module.operation)
        assert module.operation.verify()
        after = str(module)
    assert (after == before) == (count == 5)
    # The operations are the same as before; the first sum now comes before the last address.
    assert sorted(map(_operation, after.splitlines())) == sorted(
        map(_operation, before.splitlines())
    )
    is_late = after.index("-> f32") < after.rindex("llvm.getelementptr")
    assert is_late == (count == 40)


def _operation(line: str) -> str:
    words = line.split()
    return words[2] if "=" in words else words[0]
