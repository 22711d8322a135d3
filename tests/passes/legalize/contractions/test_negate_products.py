"""`negate-products`: sums over several axes of products with arrays that are broadcast."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.runtime import CompileError, Target, compile_module

X = np.arange(1, 25).reshape(2, 3, 4)
FACTORS = np.array([2, -1, 3, 5])


def subsets(least):
    return [c for k in range(least, 4) for c in itertools.combinations(range(3), k)]


def total(value, dimensions, start=0):
    init = hlo.full(start, (), hlo.element_type_of(value))
    return hlo.reduce([value], [init], dimensions, lambda a, b: hlo.add(a, b))[0]


def example(axes, dimensions, dtype=np.float32, start=0) -> Example:
    shape = tuple(X.shape[a] for a in axes)
    x, y = X.astype(dtype), np.resize(FACTORS, shape).astype(dtype)
    spread = y.reshape([X.shape[a] if a in axes else 1 for a in range(3)])

    def function(x, y):
        product = hlo.multiply(x, hlo.broadcast_in_dim(y, hlo.shape_of(x), axes))
        return [total(product, dimensions, start)]

    name = f"sum_{'_'.join(map(str, (*axes, 'over', *dimensions, np.dtype(dtype), start)))}"
    return Example(
        name, (x, y), function, [np.asarray((x * spread).sum(dimensions) + start, dtype)]
    )


def through_views(x, y):
    product = hlo.multiply(hlo.reshape(x, (6, 4)), hlo.broadcast_in_dim(y, (6, 4), (1,)))
    return [total(hlo.reshape(product, (2, 3, 4)), (0, 1, 2))]


def of_a_function(x, y):
    return [total(hlo.multiply(hlo.abs(hlo.broadcast_in_dim(y, (2, 3, 4), (2,))), x), (0, 1, 2))]


def of_zeros(x, y):
    product = hlo.multiply(hlo.full_like(x, 0), hlo.broadcast_in_dim(y, (2, 3, 4), (2,)))
    return [total(product, (0, 1, 2))]


ARRAYS = X.astype(np.float32), FACTORS.astype(np.float32)
EXAMPLES = [
    *(example(axes, dimensions) for axes in subsets(1)[:-1] for dimensions in subsets(2)),
    *(example((2,), (0, 1, 2), dtype) for dtype in (np.float64, np.float16, np.int32, np.uint8)),
    example((2,), (0, 1, 2), np.float32, 7),
    Example("through_views", ARRAYS, through_views, [np.float32((X * FACTORS).sum())]),
    Example("of_a_function", ARRAYS, of_a_function, [np.float32((X * np.abs(FACTORS)).sum())]),
    Example("of_zeros", ARRAYS, of_zeros, [np.float32(0)]),
]


def test_values() -> None:
    results = run_examples(EXAMPLES, "negate-products,sign-unsigned-data")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []
    assert not np.signbit(results["of_zeros"][0])


@pytest.mark.parametrize("index", [0, -3, -2])
def test_without_the_pass_they_do_not_compile(index: int) -> None:
    simple = example((2,), (0, 1, 2))
    chosen = simple if index == 0 else EXAMPLES[index]
    module = build({"f": (chosen.arguments, chosen.builder)})
    with pytest.raises(CompileError, match="invalid accumulator"):
        compile_module(str(module), Target(opt_level=0))  # which is verified
