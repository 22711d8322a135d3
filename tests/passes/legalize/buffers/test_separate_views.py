"""`separate-views`: results of reductions and products that are combined along different axes."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, parse, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

X = np.arange(1, 25).reshape(4, 6).astype(np.float32)
CUBE = np.arange(48).reshape(3, 4, 4).astype(np.float32)
SQUARE = CUBE[1]
ROWS, LARGEST = X.sum(1), X.max(1)
PLANE = CUBE.sum(2)


def total(x, axes=(1,)):
    init = hlo.full(0, (), hlo.element_type_of(x))
    return hlo.reduce([x], [init], axes, hlo.add)[0]


def largest(x):
    init = hlo.full(-np.inf, (), hlo.element_type_of(x))
    return hlo.reduce([x], [init], (1,), hlo.maximum)[0]


def rows(x, count=4):
    return hlo.broadcast_in_dim(x, (4, count), (0,))


def columns(x):
    return hlo.broadcast_in_dim(x, (4, 4), (1,))


def met(x):
    return hlo.add(rows(x), columns(x))


def outer(x):
    return np.add.outer(x, x)


def dot(x, y, contracting, batching=()):
    return hlo.dot_general(x, y, contracting, (batching, batching))


def of_two_results(x):
    init = hlo.full(0, (), hlo.element_type_of(x))
    body = lambda a, b, c, d: [hlo.add(a, c), hlo.add(b, d)]  # noqa: E731
    first, second = hlo.reduce([x, hlo.abs(x)], [init, init], (1,), body)
    return hlo.add(rows(first), columns(second))


def of_planes(x):
    sums = total(x, (2,))
    shape = (3, 4, 4)
    along = hlo.broadcast_in_dim(sums, shape, (0, 1)), hlo.broadcast_in_dim(sums, shape, (0, 2))
    return hlo.add(*along)


def through_a_reduction(x):
    peak = largest(x)
    rest = total(hlo.subtract(x, rows(peak, 6)))
    return hlo.add(rows(peak), columns(rest))


def through_reshapes(x):
    sums = total(x)
    tall, wide = hlo.reshape(sums, (4, 1)), hlo.reshape(sums, (1, 4))
    spread = [hlo.broadcast_in_dim(a, (4, 4), (0, 1)) for a in (tall, wide)]
    return hlo.add(*spread)


def through_a_split(x):
    pairs = hlo.reshape(total(x), (2, 2))
    shape = (2, 2, 2)
    spread = [hlo.broadcast_in_dim(pairs, shape, axes) for axes in ((0, 1), (0, 2))]
    return hlo.add(*spread)


def after_a_function(x):
    return met(hlo.sqrt(total(x)))


def in_a_chain(x, y):
    sums = total(x)
    scaled = hlo.multiply(rows(sums), y)
    return [scaled, hlo.add(scaled, columns(sums))]


def normalized(x):
    sums = total(x)
    ratios = hlo.divide(x, rows(sums))
    return hlo.add(ratios, hlo.transpose(ratios, (1, 0)))


def outer_product(x):
    sums = total(x)
    return dot(sums, sums, ((), ()))


PAIRS = ROWS.reshape(2, 2)
SCALED = ROWS[:, None] * SQUARE
RATIOS = SQUARE / SQUARE.sum(1)[:, None]
EXAMPLES = [
    Example("sums", (X,), lambda x: met(total(x)), outer(ROWS)),
    Example("doubles", (X.astype(float),), lambda x: met(total(x)), outer(ROWS).astype(float)),
    Example("unsigned", (X.astype("u4"),), lambda x: met(total(x)), outer(ROWS).astype(np.uint32)),
    Example("maxima", (X,), lambda x: met(largest(x)), outer(LARGEST)),
    Example("two_results", (X,), of_two_results, outer(ROWS)),
    Example("planes", (CUBE,), of_planes, PLANE[:, :, None] + PLANE[:, None, :]),
    Example(
        "through_a_reduction",
        (X,),
        through_a_reduction,
        np.add.outer(LARGEST, (X - LARGEST[:, None]).sum(1)),
    ),
    Example("through_reshapes", (X,), through_reshapes, outer(ROWS)),
    Example("through_a_split", (X,), through_a_split, PAIRS[:, :, None] + PAIRS[:, None, :]),
    Example("after_a_function", (X * X,), after_a_function, outer(np.sqrt((X * X).sum(1)))),
    Example("in_a_chain", (X, SQUARE), in_a_chain, [SCALED, SCALED + ROWS]),
    Example("normalized", (SQUARE,), normalized, RATIOS + RATIOS.T),
    Example("outer_product", (X,), outer_product, np.outer(ROWS, ROWS)),
]


@pytest.fixture(scope="module")
def broken() -> dict[str, list[np.ndarray]]:
    """The results without the pass."""
    return run_examples(EXAMPLES)


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "separate-views")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example, ulps=4) == []


# IREE fuses nothing across this reshape, nor operations with several users, which `Target` turns
# off.
_RIGHT_WITHOUT = ("through_a_split", "through_a_reduction", "after_a_function", "in_a_chain")


@pytest.mark.parametrize(
    "example", [e for e in EXAMPLES if e.name not in _RIGHT_WITHOUT], ids=lambda e: e.name
)
def test_without_the_pass_they_are_wrong(
    broken: dict[str, list[np.ndarray]], example: Example
) -> None:
    assert deviations(broken[example.name], example, ulps=4) != []


def softmax(x):
    shifted = hlo.exponential(hlo.subtract(x, rows(largest(x))))
    return hlo.divide(shifted, rows(total(shifted)))


def squared_distances(x):
    norms, product = total(hlo.multiply(x, x)), dot(x, x, ((1,), (1,)))
    return hlo.subtract(met(norms), product)


def of_an_argument(x):
    return hlo.add(x, hlo.transpose(x, (1, 0)))


def residual(x, y):
    first = dot(x, y, ((1,), (0,)))
    second = hlo.add(first, dot(first, y, ((1,), (0,))))
    return hlo.add(rows(total(second)), second)


# How many barriers the pass puts into programs.
COUNTS = {
    softmax: 0,
    of_an_argument: 0,
    residual: 0,
    squared_distances: 1,
    normalized: 1,
    in_a_chain: 1,
}


@pytest.mark.parametrize("program", COUNTS, ids=lambda program: program.__name__)
def test_there_are_no_more_barriers_than_needed(program) -> None:
    arguments = (SQUARE,) * program.__code__.co_argcount
    text = text_after(Example(program.__name__, arguments, program, ()), "separate-views")
    assert text.count("optimization_barrier") == COUNTS[program]


def test_a_quotient_of_sums_is_computed_with_them() -> None:
    module = build({"f": ((SQUARE,), normalized)})
    run_passes(module, "separate-views")
    # The ratios themselves, so that they stay fused with the sums.
    assert "%3 = stablehlo.optimization_barrier %2 : tensor<4x4xf32>" in str(module)
    assert "%4 = stablehlo.transpose %3" in str(module)


def test_calls_read_what_is_behind_a_barrier() -> None:
    module = parse("""
        func.func private @plus(%a: tensor<4x1xf32>, %b: tensor<4xf32>) -> tensor<4x1xf32> {
          return %a : tensor<4x1xf32>
        }
        func.func @f(%x: tensor<4x4xf32>, %y: tensor<4xf32>) -> tensor<4x1xf32> {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
            : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
          %c = stablehlo.reshape %s : (tensor<4xf32>) -> tensor<4x1xf32>
          %r = func.call @plus(%c, %y) : (tensor<4x1xf32>, tensor<4xf32>) -> tensor<4x1xf32>
          return %r : tensor<4x1xf32>
        }""")
    run_passes(module, "separate-views")
    (call,) = (line for line in str(module).splitlines() if "call @plus" in line)
    assert "optimization_barrier %1 : tensor<4x1xf32>" in str(module)
    assert "@plus(%2, %arg1)" in call
