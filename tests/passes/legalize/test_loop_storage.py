"""`part-loop-storage`: arrays that a loop fills begin in storage of their own."""

from __future__ import annotations

import numpy as np
import pytest
from stablehlo_runner import Example, deviations, run_examples

from axir.dialect import stablehlo as hlo

X = np.arange(1, 5)


def collect(x):
    """Collects doubles and squares in zeros, and returns the argument, which makes a transfer."""
    zeros = hlo.full_like(x, 0)
    count = hlo.constant(np.int32(0))

    def goes_on(index, *_):
        return hlo.compare(index, hlo.constant(np.int32(4)), "LT")

    def step(index, doubles, squares):
        element = hlo.dynamic_slice(x, [index], (1,))
        return [
            hlo.add(index, hlo.constant(np.int32(1))),
            hlo.dynamic_update_slice(doubles, hlo.add(element, element), [index]),
            hlo.dynamic_update_slice(squares, hlo.multiply(element, element), [index]),
        ]

    _, doubles, squares = hlo.while_([count, zeros, zeros], goes_on, step)
    return [hlo.add(doubles, doubles), hlo.add(squares, squares), x]


def example(dtype) -> Example:
    x = X.astype(dtype)
    return Example(f"collect_{x.dtype}", (x,), collect, [4 * x, 2 * x * x, x])


EXAMPLES = [example(dtype) for dtype in (np.float32, np.int32, np.uint8, np.float64)]


def test_values() -> None:
    results = run_examples(EXAMPLES, "legalize-for-iree")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []


def test_without_the_pass_one_array_overwrites_the_other() -> None:
    results = run_examples(EXAMPLES[:1], "copy-returned-inputs")
    doubles, squares, _ = results[EXAMPLES[0].name]
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(doubles, 4 * X)
    np.testing.assert_array_equal(doubles, squares)
