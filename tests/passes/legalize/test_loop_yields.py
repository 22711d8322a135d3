"""`part-loop-values`: a loop's body gives each carried value a value of its own."""

from __future__ import annotations

import numpy as np
import pytest
from stablehlo_runner import CompilationError, Example, deviations, run_examples

from axir.dialect import stablehlo as hlo

X, Y = np.array([1, 2]), np.array([3, 5])


def double(x, y):
    """Adds two values into both until the first exceeds a limit, which the device finds out."""

    def holds(a, b):
        first = hlo.reshape(hlo.slice(a, [0], [1]), ())
        return hlo.compare(first, hlo.full_like(first, 50), "LT")

    def step(a, b):
        total = hlo.add(a, b)
        return [total, total]

    return hlo.while_([x, y], holds, step)


def example(dtype) -> Example:
    x, y = X.astype(dtype), Y.astype(dtype)
    a, b = x, y
    while a[0] < 50:
        a = b = a + b
    return Example(f"double_{x.dtype}", (x, y), double, [a, b])


EXAMPLES = [example(dtype) for dtype in (np.float32, np.int32, np.uint8)]


def test_values() -> None:
    results = run_examples(EXAMPLES, "legalize-for-iree")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []


def test_without_the_pass_the_compiler_fails() -> None:
    with pytest.raises(CompilationError, match="region branch point"):
        run_examples(EXAMPLES[:1], "copy-returned-inputs")
