"""Limits of dispatches: `limit-fusion`, `limit-scalar-fusion`."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from support.stablehlo_runner import Compiled, Example, build, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
MANY = tuple(RNG.integers(0, 100, size=5).astype(np.float32) for _ in range(100))
NUMBERS = tuple(array[0] for array in MANY)


def chain(*arrays):
    return functools.reduce(hlo.add, arrays)


def tree(*arrays):
    values = list(arrays)
    while len(values) > 1:
        paired = [hlo.add(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = paired + values[len(paired) * 2 :]
    return values[0]


def many_results(*arrays):
    total = chain(*arrays)
    return [hlo.multiply(total, array) for array in arrays]


def unsigned(*arrays):
    return chain(*(hlo.convert(array, np.uint32) for array in arrays))


def joined(*arrays):
    return hlo.concatenate([hlo.add(array, arrays[0]) for array in arrays], 0)


def repeated(*numbers):
    return chain(*(hlo.broadcast_in_dim(number, (3,), ()) for number in numbers))


TOTAL = sum(MANY)
EXAMPLES = [
    Example("chain", MANY, chain, TOTAL),
    Example("tree", MANY, tree, TOTAL),
    Example("results", MANY[:40], many_results, [sum(MANY[:40]) * array for array in MANY[:40]]),
    Example("unsigned", MANY, unsigned, TOTAL.astype(np.uint32)),
    Example("repeated", NUMBERS, repeated, np.full(3, sum(NUMBERS))),
    Example("joined", MANY[:40], joined, np.concatenate([a + MANY[0] for a in MANY[:40]])),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "limit-fusion,sign-unsigned-data")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_small_computations_stay_whole() -> None:
    module = build({"f": (MANY[:20], chain)})
    run_passes(module, "limit-fusion")
    assert "optimization_barrier" not in str(module)


def test_without_the_pass_the_program_does_not_load() -> None:
    with pytest.raises(Exception, match="101 bindings"):
        Compiled(build({"f": (NUMBERS, repeated)}))


NUMBERS_SCALARS = tuple(x.astype(np.float32) for x in RNG.integers(1, 9, 40))
WHOLE = tuple(x.astype(np.int32) for x in NUMBERS_SCALARS)


def squares(*numbers):
    return [hlo.multiply(x, x) for x in numbers]


def listed_squares(*numbers):
    """Squares that are there when the first of them is read."""
    return hlo.concatenate([hlo.reshape(x, (1,)) for x in squares(*numbers)], 0)


def mixed_with_the_rest(*numbers):
    """Each of many numbers is read by all that come after."""
    made = list(numbers[:1])
    for x in numbers[1:]:
        made.append(hlo.add(functools.reduce(hlo.xor, made), x))
    return made


def mixed_with_the_rest_of(*numbers):
    made = list(numbers[:1])
    for x in numbers[1:]:
        made.append(functools.reduce(np.bitwise_xor, made) + x)
    return made


def vectors_between(*numbers):
    """Scalars become vectors, and elements of these vectors become scalars again."""
    vectors = [hlo.broadcast_in_dim(hlo.multiply(x, x), (3,), ()) for x in numbers]
    total = hlo.reshape(hlo.slice(functools.reduce(hlo.add, vectors), (1,), (2,)), ())
    return [hlo.add(total, x) for x in numbers]


def sum_of_vectors(*numbers):
    """Vectors of equal elements, so that IREE adds scalars."""
    vectors = [hlo.broadcast_in_dim(hlo.multiply(x, x), (3,), ()) for x in numbers]
    return functools.reduce(hlo.add, vectors)


def squares_in_a_loop(*numbers):
    """Squares of sums of neighbours, twice: listed in each iteration of a loop."""
    one, two = (hlo.constant(np.int32(x)) for x in (1, 2))

    def step(i, *numbers):
        sums = [hlo.add(x, y) for x, y in zip(numbers, numbers[1:] + numbers[:1], strict=True)]
        listed = listed_squares(*sums)
        elements = [hlo.slice(listed, (j,), (j + 1,)) for j in range(len(numbers))]
        return [hlo.add(i, one), *(hlo.reshape(x, ()) for x in elements)]

    start = [hlo.constant(np.int32(0)), *numbers]
    return hlo.while_(start, lambda i, *_: hlo.compare(i, two, "LT"), step)[1:]


def squares_in_a_loop_of(*numbers):
    for _ in range(2):
        numbers = [(x + y) ** 2 for x, y in zip(numbers, [*numbers[1:], numbers[0]], strict=True)]
    return numbers


SUM_OF_SQUARES = sum(x * x for x in NUMBERS_SCALARS)
EXAMPLES_SCALARS = [
    Example("squares", NUMBERS_SCALARS, squares, [x * x for x in NUMBERS_SCALARS]),
    Example("small", NUMBERS_SCALARS[:9], squares, [x * x for x in NUMBERS_SCALARS[:9]]),
    Example(
        "of_one_element",
        tuple(x.reshape(1, 1) for x in NUMBERS_SCALARS),
        squares,
        [x.reshape(1, 1) ** 2 for x in NUMBERS_SCALARS],
    ),
    Example("listed", NUMBERS_SCALARS, listed_squares, np.square(NUMBERS_SCALARS)),
    Example("mixed", WHOLE[:35], mixed_with_the_rest, mixed_with_the_rest_of(*WHOLE[:35])),
    Example("loop", NUMBERS_SCALARS, squares_in_a_loop, squares_in_a_loop_of(*NUMBERS_SCALARS)),
    Example("sum", NUMBERS_SCALARS * 2, sum_of_vectors, np.full(3, 2 * SUM_OF_SQUARES)),
    Example(
        "vectors", NUMBERS_SCALARS, vectors_between, [SUM_OF_SQUARES + x for x in NUMBERS_SCALARS]
    ),
]


@pytest.fixture(scope="module")
def results_scalars() -> dict[str, list[np.ndarray]]:
    return run_examples(
        EXAMPLES_SCALARS, "compute-splats-once,limit-fusion,limit-scalar-fusion,branch-loops"
    )


@pytest.mark.parametrize("example", EXAMPLES_SCALARS, ids=lambda e: e.name)
def test_values_scalars(results_scalars: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_scalars[example.name], example) == []


def test_few_numbers_stay_together() -> None:
    assert "optimization_barrier" not in text_after(EXAMPLES_SCALARS[1], "limit-scalar-fusion")


def test_a_chain_of_numbers_stays_together() -> None:
    def chain(x):
        return functools.reduce(hlo.multiply, [x] * 100)

    module = build({"f": (NUMBERS_SCALARS[:1], chain)})
    run_passes(module, "limit-scalar-fusion")
    assert "optimization_barrier" not in str(module)


def test_without_the_pass_the_program_does_not_load_scalars() -> None:
    with pytest.raises(Exception, match="80 bindings"):
        Compiled(build({"f": (NUMBERS_SCALARS, listed_squares)}))
