"""`limit-fusion`: computations of more arrays than one dispatch can bind."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from support.stablehlo_runner import Compiled, Example, build, deviations, run_examples

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
