"""`separate-loops`: loops that use each other's results, and what is computed between them."""

from __future__ import annotations

import numpy as np
import pytest
from stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect import stablehlo as hlo
from axir.runtime import CompileError, Target, compile_module

TABLE = np.array([[3], [7]])


def loop(inits, step):
    """Runs a step twice, which gets the number of the pass and what the last pass returned."""
    zero, one, two = (hlo.constant(np.int32(n)) for n in range(3))

    def goes_on(index, *_):
        return hlo.compare(index, two, "LT")

    def body(index, *carried):
        return [hlo.add(index, one), *step(index, *carried)]

    return hlo.while_([zero, *inits], goes_on, body)[1:]


def two_loops(x, table):
    """Collects squares in a loop and sums them in another; negates `x` before and after both."""
    zero = hlo.constant(np.int32(0))

    def collect(index, last, squares):
        row = hlo.reshape(hlo.dynamic_slice(table, [index, zero], (1, 1)), (1,))
        square = hlo.reshape(hlo.multiply(last, last), (1, 1))
        return [row, hlo.dynamic_update_slice(squares, square, [index, zero])]

    def total(index, so_far):
        square = hlo.reshape(hlo.dynamic_slice(squares, [index, zero], (1, 1)), (1,))
        return [hlo.add(so_far, square)]

    negated = hlo.negate(x)
    scaled = hlo.multiply(x, negated)
    _, squares = loop([scaled, hlo.full_like(table, 0)], collect)
    (result,) = loop([x], total)
    return hlo.multiply(result, negated)


def example(dtype) -> Example:
    x = np.array([2], dtype)
    # The loops collect (-x*x)**2 and 3**2.
    expected = np.array([(2 + 16 + 9) * -2]).astype(dtype)
    return Example(f"two_loops_{x.dtype}", (x, TABLE.astype(dtype)), two_loops, expected)


EXAMPLES = [example(dtype) for dtype in (np.float32, np.float64, np.int32, np.int8)]


def test_values() -> None:
    results = run_examples(EXAMPLES, "separate-loops")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []


def test_without_the_pass_the_loops_do_not_compile() -> None:
    module = build({"f": (EXAMPLES[0].arguments, two_loops)})
    with pytest.raises(CompileError, match="cyclic dependencies"):
        compile_module(module.operation.get_asm(), Target(), "f")


def test_unsigned_results_are_left_alone() -> None:
    x = np.array([2], np.uint8)

    def double(x):
        return loop([x], lambda _, value: [hlo.add(value, value)])[0]

    doubled = Example("double", (x,), double, 4 * x)
    results = run_examples([doubled], "separate-loops,sign-unsigned-data")
    assert deviations(results["double"], doubled) == []
