"""`sign-unsigned-data`: reversed and windowed unsigned integers."""

from __future__ import annotations

import numpy as np
import pytest
from stablehlo_runner import (
    CompilationError,
    Example,
    build,
    compile_module,
    deviations,
    run_examples,
)

from axir.dialect import stablehlo as hlo

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
