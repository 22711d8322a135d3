"""`sign-unsigned-data`: reversed, windowed and converted unsigned integers."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import (
    CompilationError,
    Example,
    build,
    compile_module,
    deviations,
    run_examples,
)

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.runtime import Target
from axir.runtime import compile_module as compile_repaired

RNG = np.random.default_rng(0)
DTYPES = ("uint8", "uint16", "uint32", "uint64")


def values(dtype: str) -> np.ndarray:
    return RNG.integers(0, np.iinfo(dtype).max, size=(3, 8), endpoint=True, dtype=dtype)


def cumulate(combine, init):
    def builder(x):
        start = hlo.constant(init, hlo.element_type_of(x))
        padding = ((0, 0), (7, 0))
        return hlo.reduce_window([x], [start], (1, 8), combine, padding=padding)

    return builder


def counted(x):
    """A number with three kinds of digits: a counter of the host, its negative, and its parity."""
    unsigned = hlo.element_type_of(x)
    one, limit = hlo.constant(np.int32(1)), hlo.constant(np.int32(5))

    def step(i, total):
        is_odd = hlo.compare(hlo.and_(i, one), one, "EQ")
        for digit in (i, hlo.negate(i), is_odd):
            total = hlo.add(hlo.multiply(total, x), hlo.convert(digit, unsigned))
        return [hlo.add(i, one), total]

    start = [hlo.constant(np.int32(0)), hlo.constant(0, unsigned)]
    return hlo.while_(start, lambda i, _: hlo.compare(i, limit, "LT"), step)[1]


def counted_numpy(x):
    total = 0
    for i in range(5):
        for number in (i, -i, i % 2):
            total = total * int(x) + number
    return np.array(total % 2 ** (8 * x.itemsize), x.dtype)


def examples(dtype: str) -> list[Example]:
    x = values(dtype)
    accumulated = np.maximum.accumulate(x, axis=1)
    return [
        Example(f"{dtype}_reverse", (x,), lambda v: hlo.reverse(v, (1,)), x[:, ::-1]),
        Example(f"{dtype}_sum", (x,), cumulate(hlo.add, 0), np.cumsum(x, axis=1, dtype=dtype)),
        Example(f"{dtype}_max", (x,), cumulate(hlo.maximum, 0), accumulated),
    ]


EXAMPLES = [example for dtype in DTYPES for example in examples(dtype)]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "sign-unsigned-data")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


@pytest.mark.parametrize("example", EXAMPLES[6:9], ids=lambda e: e.name)
def test_without_the_pass_it_does_not_compile(example: Example) -> None:
    with pytest.raises(CompilationError):
        compile_module(build({"f": (example.arguments, example.builder)}))


COUNTED = [
    Example(f"{dtype}_counted", (number,), counted, counted_numpy(number))
    for dtype in DTYPES
    for number in [np.dtype(dtype).type(3)]
]


def _compile(module: ir.Module) -> bytes:
    return compile_repaired(module.operation.get_asm(), Target(), "counted")


def test_numbers_of_the_host_are_converted() -> None:
    results = run_examples(COUNTED, "sign-unsigned-data,branch-loops", compiler=_compile)
    assert [d for e in COUNTED for d in deviations(results[e.name], e)] == []


def test_without_the_pass_numbers_of_the_host_do_not_compile() -> None:
    example = COUNTED[0]
    module = build({"f": (example.arguments, example.builder)})
    run_passes(module, "branch-loops")
    with pytest.raises(CompilationError, match="from_elements|signless"):
        compile_module(module)
