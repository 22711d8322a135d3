"""`store-complex-numbers`: numbers that are read as they are and as parts of complex ones.

No small program was found that IREE fails to compile without the pass: one of eight arguments of
diffrax's solvers with complex states did. So the tests look at what the pass writes, and at values.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

A, B, Z = np.float64(3.5), np.float64(1.25), np.complex128(2 - 1j)
PASS = "store-complex-numbers"


def scaled(a, b, z):
    difference = hlo.subtract(a, b)
    number = hlo.convert(difference, z.type.element_type)
    return [difference, hlo.multiply(number, z), hlo.multiply(hlo.complex(a, difference), z)]


def scaled_rows(a, b, z):
    return [hlo.multiply(hlo.complex(a, b), z)]


def scaled_by_constant(a, b, z):
    one = hlo.constant(np.float64(1))
    return [hlo.multiply(hlo.complex(one, one), z)]


def rows(x):
    return np.full(3, x)


EXAMPLES = [
    Example("scaled", (A, B, Z), scaled, [A - B, (A - B) * Z, (A + 1j * (A - B)) * Z]),
    Example("rows", (rows(A), rows(B), rows(Z)), scaled_rows, [rows((A + 1j * B) * Z)]),
    Example("constant", (A, B, Z), scaled_by_constant, [(1 + 1j) * Z]),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PASS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert not deviations(results[example.name], example)


@pytest.mark.parametrize(("example", "barriers"), [*zip(EXAMPLES, (2, 0, 0), strict=True)])
def test_single_numbers_are_stored(example: Example, barriers: int) -> None:
    text = text_after(example, PASS)
    assert text.count("stablehlo.optimization_barrier") == barriers
