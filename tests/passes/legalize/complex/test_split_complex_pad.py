"""`split-complex-pad`: complex tensors are padded."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Example,
    build,
    compile_module,
    deviations,
    run_examples,
)

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)


def example(name: str, dtype: type) -> Example:
    x = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(dtype)
    value = dtype(7 - 2j)
    expected = np.full((5 + 3, 3), value, dtype)
    expected[1:6:2] = x[:, :3]

    def pad(x, value):
        return hlo.pad(x, value, (1, 0), (2, -1), (1, 0))

    return Example(name, (x, value), pad, expected)


def pad_by_constant(x):
    return hlo.pad(x, hlo.constant(np.complex64(0)), (1,), (0,))


EXAMPLES = [
    Example(
        "constant",
        (np.full(3, 1j, np.complex64),),
        pad_by_constant,
        np.array([0, 1j, 1j, 1j], np.complex64),
    ),
    example("c64", np.complex64),
    example("c128", np.complex128),
]


def test_values() -> None:
    results = run_examples(EXAMPLES, "split-complex-pad")
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e)] == []


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_without_the_pass_the_compiler_crashes(dtype: type) -> None:
    def pad_zeros(x):
        return hlo.pad(x, hlo.constant(dtype(0)), (1, 0), (2, 0))

    with pytest.raises(CompilationError):
        compile_module(build({"f": ((np.ones((3, 4), dtype),), pad_zeros)}))
