"""Sums and products along axes: their precision, and products with broadcast arrays."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.runtime import CompileError, Target, compile_module

KINDS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def product_of(kind: str):
    x = np.ones((64, 64), KINDS[kind])
    return build({"f": ((x, x), lambda x, y: hlo.dot_general(x, y, ((1,), (0,))))})


@pytest.mark.parametrize(("kind", "is_widened"), [("f16", False), ("bf16", True), ("f32", False)])
def test_sums_are_of_single_precision(kind: str, is_widened: bool) -> None:
    module = product_of(kind)
    run_passes(module, "accumulate-in-single{widens=true}")
    (line,) = [line for line in str(module).splitlines() if "stablehlo.dot" in line]
    assert "-> tensor<64x64xf32>" in line
    assert (f"tensor<64x64x{kind}>" in line) == (not is_widened)
    assert ("optimization_barrier" in str(module)) == is_widened


def test_products_of_brain_floats_compile_for_cuda() -> None:
    module = product_of("bf16")
    run_passes(module, "accumulate-in-single")
    assert compile_module(module, Target("cuda"), "product")


def test_they_still_do_not_by_themselves() -> None:
    with pytest.raises(CompileError, match="failed to distribute"):
        compile_module(product_of("bf16"), Target("cuda"), "product")


RNG = np.random.default_rng(0)
IN_SINGLE = "reduce-in-single"
X = RNG.normal(size=(4, 8)).astype(ml_dtypes.bfloat16)


def example(name: str, x: np.ndarray, build, init: float, expected: np.ndarray) -> Example:
    def builder(value):
        return hlo.reduce([value], [hlo.full(init, (), x.dtype)], [1], build)[0]

    return Example(name, (x,), builder, expected)


WIDE = X.astype(np.float32)
BRAIN = [
    example("largest", X, hlo.maximum, -np.inf, WIDE.max(1)),
    example("smallest", X, hlo.minimum, np.inf, WIDE.min(1)),
    example("sums", X, hlo.add, 0, WIDE.sum(1)),
]
OTHERS = [
    example("half", X.astype(np.float16), hlo.maximum, -np.inf, WIDE.max(1)),
    example("differences", X, lambda x, y: hlo.negate(hlo.maximum(x, y)), 0, WIDE.max(1)),
]


def test_values() -> None:
    results = run_examples(BRAIN, IN_SINGLE)
    for case in BRAIN:
        expected = case.expected.astype(ml_dtypes.bfloat16).astype(np.float32)
        found = results[case.name][0].astype(np.float32)
        np.testing.assert_allclose(found, expected, rtol=0.01)


@pytest.mark.parametrize("case", BRAIN, ids=lambda case: case.name)
def test_reductions_are_of_singles(case: Example) -> None:
    text = text_after(case, IN_SINGLE)
    assert "(tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>" in text


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.name)
def test_others_stay(case: Example) -> None:
    assert text_after(case, IN_SINGLE) == text_after(case, "")


FACTORS = (1 + np.random.default_rng(1).normal(size=(5_000, 2)) * 2.0**-12).astype(np.float32)


def product(operand):
    return hlo.reduce([operand], [hlo.full(1, (), np.float32)], [0], hlo.multiply)[0]


def test_long_products_are_rounded_once() -> None:
    exact = FACTORS.astype(float).prod(0)
    case = Example("product", (FACTORS,), product, exact.astype(np.float32))
    [single] = run_examples([case], "")["product"]
    [double] = run_examples([case], "multiply-in-double")["product"]
    unit = np.finfo(np.float32).eps
    assert np.abs(double / exact - 1).max() <= unit
    assert np.abs(single / exact - 1).max() > 4 * unit


def test_short_products_sums_and_doubles_stay() -> None:
    functions = {
        "short": ((FACTORS[:100],), product),
        "double": (
            (FACTORS.astype(float),),
            lambda x: hlo.reduce([x], [hlo.full(1, (), np.float64)], [0], hlo.multiply)[0],
        ),
        "sum": (
            (FACTORS,),
            lambda x: hlo.reduce([x], [hlo.full(0, (), np.float32)], [0], hlo.add)[0],
        ),
    }
    module = build(functions)
    before = str(module)
    run_passes(module, "multiply-in-double")
    assert str(module) == before


X_NEGATION = np.arange(1, 25).reshape(2, 3, 4)
FACTORS_NEGATION = np.array([2, -1, 3, 5])


def subsets(least):
    return [c for k in range(least, 4) for c in itertools.combinations(range(3), k)]


def total(value, dimensions, start=0):
    init = hlo.full(start, (), hlo.element_type_of(value))
    return hlo.reduce([value], [init], dimensions, lambda a, b: hlo.add(a, b))[0]


def example_negation(axes, dimensions, dtype=np.float32, start=0) -> Example:
    shape = tuple(X_NEGATION.shape[a] for a in axes)
    x, y = X_NEGATION.astype(dtype), np.resize(FACTORS_NEGATION, shape).astype(dtype)
    spread = y.reshape([X_NEGATION.shape[a] if a in axes else 1 for a in range(3)])

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


ARRAYS = X_NEGATION.astype(np.float32), FACTORS_NEGATION.astype(np.float32)
EXAMPLES = [
    *(example_negation(axes, dimensions) for axes in subsets(1)[:-1] for dimensions in subsets(2)),
    *(
        example_negation((2,), (0, 1, 2), dtype)
        for dtype in (np.float64, np.float16, np.int32, np.uint8)
    ),
    example_negation((2,), (0, 1, 2), np.float32, 7),
    Example(
        "through_views", ARRAYS, through_views, [np.float32((X_NEGATION * FACTORS_NEGATION).sum())]
    ),
    Example(
        "of_a_function",
        ARRAYS,
        of_a_function,
        [np.float32((X_NEGATION * np.abs(FACTORS_NEGATION)).sum())],
    ),
    Example("of_zeros", ARRAYS, of_zeros, [np.float32(0)]),
]


def test_values_negation() -> None:
    results = run_examples(EXAMPLES, "negate-products,sign-unsigned-data")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []
    assert not np.signbit(results["of_zeros"][0])


@pytest.mark.parametrize("index", [0, -3, -2])
def test_without_the_pass_they_do_not_compile(index: int) -> None:
    simple = example_negation((2,), (0, 1, 2))
    chosen = simple if index == 0 else EXAMPLES[index]
    module = build({"f": (chosen.arguments, chosen.builder)})
    with pytest.raises(CompileError, match="invalid accumulator"):
        compile_module(str(module), Target(opt_level=0))  # which is verified
