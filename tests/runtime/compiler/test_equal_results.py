"""A dispatch that returns one value twice: readers of the second result read that value."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.runtime import Target, compile_module

X, Y = np.int32(3), np.int32(8)
Z = np.complex128(2 - 1j)


def widened_and_narrowed(x, y):
    product, total = hlo.multiply(x, y), hlo.add(x, y)
    wide = hlo.convert(total, ir.IntegerType.get_signless(64))
    narrow = hlo.convert(wide, x.type.element_type)
    return [product, wide, total, narrow, hlo.multiply(narrow, product)]


def added_in_two_ways(x, y):
    total = hlo.add(x, y)
    some = hlo.add(total, hlo.constant(np.int32(3)))
    more = hlo.add(some, hlo.constant(np.int32(4)))
    same = hlo.add(total, hlo.constant(np.int32(7)))
    product = hlo.multiply(hlo.multiply(more, x), y)
    return [product, some, more, same, total]


def real_and_complex(a, b, z):
    difference = hlo.subtract(a, b)
    number = hlo.complex(difference, a)
    return [hlo.multiply(number, z), hlo.add(number, z), hlo.real(number), difference]


def of_one_element(x, y):
    """The first, of arrays of one element."""
    results = widened_and_narrowed(hlo.reshape(x, (1,)), hlo.reshape(y, (1,)))
    return [hlo.reshape(result, ()) for result in results]


def of_several_readers(z, array):
    """A number converted to complex; each operation that reads it converts it again."""
    total = hlo.add(hlo.real(z), hlo.constant(np.float64(1)))
    root = hlo.sqrt(total)
    number = hlo.convert(root, z.type.element_type)
    tripled = hlo.multiply(hlo.multiply(hlo.constant(np.complex128(3)), z), number)
    conjugate = hlo.complex(hlo.real(z), hlo.negate(hlo.imag(z)))
    quotient = hlo.convert(hlo.divide(root, total), z.type.element_type)
    doubled = hlo.multiply(hlo.constant(np.complex128(2)), number)
    factor = hlo.add(hlo.multiply(quotient, conjugate), doubled)
    return [hlo.multiply(hlo.broadcast_in_dim(factor, array.type.shape, []), array), tripled]


A, B = np.float64(3.5), np.float64(2.25)
NUMBER = A - B + A * 1j
W, ROW = np.complex128(3 - 2j), np.arange(28.0) * (1 - 2j)
NARROWED = [X * Y, np.int64(11), X + Y, X + Y, np.int32(264)]
EXAMPLES = [
    Example(
        "narrowed", (X, Y), widened_and_narrowed, [X * Y, np.int64(11), X + Y, X + Y, np.int32(264)]
    ),
    Example("row", (X, Y), of_one_element, NARROWED),
    Example(
        "added",
        (X, Y),
        added_in_two_ways,
        [np.int32(18 * 24), *(np.int32(n) for n in (14, 18, 18, 11))],
    ),
    Example(
        "complex",
        (A, B, Z),
        real_and_complex,
        [NUMBER * Z, NUMBER + Z, A - B, A - B],
    ),
    Example(
        "read",
        (W, ROW),
        of_several_readers,
        [(np.conj(W) / 2 + 4) * ROW, 6 * W],
    ),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, compiler=lambda module: compile_module(module, Target()))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_the_compiler_alone_is_wrong() -> None:
    raw = run_examples(EXAMPLES[:1])
    assert deviations(raw["narrowed"], EXAMPLES[0])
