"""`read-carries`: carried values that a loop does not read."""

from __future__ import annotations

import numpy as np
from stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect import stablehlo as hlo
from axir.passes.pipeline import run_passes
from axir.runtime import Target, compile_module


def last_two(x, start):
    """Doubles a value until its first element exceeds 9; returns it and the one before."""

    def goes_on(_, value):
        first = hlo.reshape(hlo.slice(value, (0,), (1,)), ())
        return hlo.compare(hlo.add(first, first), hlo.constant(18, x.type.element_type), "LE")

    def step(_, value):
        return [value, hlo.add(value, value)]

    return hlo.while_([start, x], goes_on, step)


def example(dtype) -> Example:
    x = np.array([1, 2, 3, 4], dtype)
    return Example(f"last_two_{x.dtype}", (x, 0 * x), last_two, [8 * x, 16 * x])


# Without the pass the compiler brings the process down, which no test can expect.
EXAMPLES = [example(dtype) for dtype in (np.float32, np.float64, np.int32, np.int8)]


def test_values() -> None:
    results = run_examples(EXAMPLES, "read-carries")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []


def test_unsigned_values_compile_with_all_passes() -> None:
    unsigned = example(np.uint8)
    module = build({"f": (unsigned.arguments, unsigned.builder)})
    run_passes(module, "legalize-for-iree")
    assert compile_module(module.operation.get_asm(), Target(), "f")
