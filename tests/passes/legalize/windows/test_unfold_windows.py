"""`unfold-windows`: small windows of several arrays."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.runtime import CompileError, Target, compile_module

X = np.array([[4, 2, 3, 6], [1, 5, 5, 2], [3, 3, 2, 1]], np.float32)
Y = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def largest(x, other, sizes, **options):
    """The largest element of each window of `x`, and what stands there in the other array."""
    lowest = hlo.full(0, (), np.float32)
    zero = hlo.full(0, (), hlo.element_type_of(other))

    def pick(value, companion, new_value, new_companion):
        is_larger = hlo.compare(value, new_value, "GE")
        return [
            hlo.select(is_larger, value, new_value),
            hlo.select(is_larger, companion, new_companion),
        ]

    return hlo.reduce_window([x, other], [lowest, zero], sizes, pick, **options)


def expected(other, rows, columns):
    """The same for windows whose elements are at these rows and columns."""
    places = np.array([[X[r, c].argmax() for c in columns] for r in rows])
    lines = list(zip(rows, places, strict=True))
    return [
        np.array(
            [[a[r, c][place] for c, place in zip(columns, line, strict=True)] for r, line in lines]
        )
        for a in (X, other)
    ]


def example(name, other, sizes, rows, columns, **options) -> Example:
    wanted = expected(other, rows, columns)
    return Example(name, (X, other), lambda x, y: largest(x, y, sizes, **options), wanted)


PAIRS = [[0, 1], [1, 2], [2, 3]]
EXAMPLES = [
    example("columns", Y, (1, 2), range(3), PAIRS),
    example("integers", Y.astype(np.int32), (1, 2), range(3), PAIRS),
    example("bytes", (Y + 5).astype(np.uint8), (1, 2), range(3), PAIRS),
    example("strided", Y, (1, 2), range(3), [[0, 1], [2, 3]], window_strides=(1, 2)),
    example("dilated", Y, (1, 2), range(3), [[0, 2], [1, 3]], window_dilations=(1, 2)),
    example("padded", Y, (1, 2), range(3), [[0], *PAIRS], padding=[(0, 0), (1, 0)]),
    example("cut", Y, (1, 2), [1, 2], PAIRS, padding=[(-1, 0), (0, 0)]),
]


def companions(x, y):
    """What stands where `x` is largest, in two arrays."""
    return [largest(x, y, (1, 2))[1], largest(x, hlo.multiply(y, y), (1, 2))[1]]


def test_values() -> None:
    results = run_examples(EXAMPLES, "unfold-windows,sign-unsigned-data")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []


def test_two_reductions_in_one_loop_compile() -> None:
    _, companion = expected(Y, range(3), PAIRS)
    twice = Example("twice", (X, Y), companions, [companion, companion**2])
    results = run_examples([twice], "unfold-windows")
    assert deviations(results["twice"], twice) == []


def test_without_the_pass_two_reductions_do_not_compile() -> None:
    module = build({"f": ((X, Y), companions)})
    with pytest.raises(CompileError, match="workgroup distribut"):
        compile_module(module.operation.get_asm(), Target(), "f")


def test_wide_windows_are_left_alone() -> None:
    wide = np.arange(40, dtype=np.float32)
    example = Example(
        "wide", (wide, wide * 2), lambda x, y: largest(x, y, (40,)), [wide[-1:], 2 * wide[-1:]]
    )
    module = build({"wide": (example.arguments, example.builder)})
    before = str(module)
    run_passes(module, "unfold-windows")
    assert str(module) == before
