"""`limit-scalar-fusion`: computations of more numbers than one dispatch can bind."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from support.stablehlo_runner import Compiled, Example, build, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
NUMBERS = tuple(x.astype(np.float32) for x in RNG.integers(1, 9, 40))
WHOLE = tuple(x.astype(np.int32) for x in NUMBERS)


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


SUM_OF_SQUARES = sum(x * x for x in NUMBERS)
EXAMPLES = [
    Example("squares", NUMBERS, squares, [x * x for x in NUMBERS]),
    Example("small", NUMBERS[:9], squares, [x * x for x in NUMBERS[:9]]),
    Example(
        "of_one_element",
        tuple(x.reshape(1, 1) for x in NUMBERS),
        squares,
        [x.reshape(1, 1) ** 2 for x in NUMBERS],
    ),
    Example("listed", NUMBERS, listed_squares, np.square(NUMBERS)),
    Example("mixed", WHOLE[:35], mixed_with_the_rest, mixed_with_the_rest_of(*WHOLE[:35])),
    Example("loop", NUMBERS, squares_in_a_loop, squares_in_a_loop_of(*NUMBERS)),
    Example("sum", NUMBERS * 2, sum_of_vectors, np.full(3, 2 * SUM_OF_SQUARES)),
    Example("vectors", NUMBERS, vectors_between, [SUM_OF_SQUARES + x for x in NUMBERS]),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(
        EXAMPLES, "compute-splats-once,limit-fusion,limit-scalar-fusion,branch-loops"
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_few_numbers_stay_together() -> None:
    assert "optimization_barrier" not in text_after(EXAMPLES[1], "limit-scalar-fusion")


def test_a_chain_of_numbers_stays_together() -> None:
    def chain(x):
        return functools.reduce(hlo.multiply, [x] * 100)

    module = build({"f": (NUMBERS[:1], chain)})
    run_passes(module, "limit-scalar-fusion")
    assert "optimization_barrier" not in str(module)


def test_without_the_pass_the_program_does_not_load() -> None:
    with pytest.raises(Exception, match="80 bindings"):
        Compiled(build({"f": (NUMBERS, listed_squares)}))
