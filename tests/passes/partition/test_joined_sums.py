"""Sums over devices are joined unless an op needs one of them earlier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import axir
from axir import lax
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.effects import named_axis
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.partition.joined_sums import join_sums


def joined(body: Callable[..., Sequence[Any]], *types: ShapedArray) -> list[str]:
    with named_axis("i", 2), named_axis("j", 2):
        function = trace_function(lambda *xs: list(body(*xs)), types)
        found = join_sums(function)
    assert found.output_types == function.output_types
    return list(names(found))


def names(function: Function) -> Any:
    for equation in function.equations:
        count = len(equation.operands)
        is_joined = equation.primitive.name == "joined_psum"
        yield f"{count} sums" if is_joined else equation.primitive.name
        for inner in function.callees() if equation.primitive.name == "scan" else ():
            yield [*names(inner)]


A, B = ShapedArray((3,), np.dtype(np.float32)), ShapedArray((2, 2), np.dtype(np.int32))
LARGE = ShapedArray((1 << 19,), np.dtype(np.float32))


def test_sums_are_joined_with_what_needs_them_behind() -> None:
    found = joined(lambda a, b: (lax.psum(a, "i") * 2, lax.psum(b * b, "i") + 1), A, B)
    assert found == ["mul", "2 sums", "mul", "add"]


def test_sums_that_need_sums_are_not_joined_with_these() -> None:
    def body(a: Any, b: Any) -> Sequence[Any]:
        first = lax.psum(a, "i")
        return lax.psum(first * a, "i"), lax.psum(b, "i"), lax.psum(a, "j")

    assert joined(body, A, B) == ["psum", "mul", "2 sums", "psum"]


def test_what_is_not_joined() -> None:
    groups = [[0], [1]]
    assert joined(lambda a: [lax.psum(a, "i", axis_index_groups=groups) for _ in "ab"], A) == [
        "psum",
        "psum",
    ]
    assert joined(lambda a, b: (lax.psum(a, "i"), lax.psum(b, "j")), A, B) == ["psum", "psum"]
    assert joined(lambda a, b: (lax.psum(a, "i"), lax.psum(b, "i")), A, LARGE) == ["psum", "psum"]

    def acting(a: Any, b: Any) -> Sequence[Any]:
        total = lax.psum(a, "i")
        axir.debug.callback(print, total)
        return total, lax.psum(b, "i")

    assert joined(acting, A, B) == ["psum", "debug_callback", "psum"]


def test_bodies_of_loops() -> None:
    def step(carry: Any, _: Any) -> Any:
        a, b = carry
        return (lax.psum(a, "i"), lax.psum(b, "i")), None

    assert joined(lambda a, b: lax.scan(step, (a, b), None, length=3)[0], A, B) == [
        "scan",
        ["2 sums"],
    ]
