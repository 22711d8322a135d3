"""`renew-fills`: each operation in place gets its own array filled with a number."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.runtime import Target, compile_module
from axir.runtime.errors import WrongMemoryOrderError

X, Y, Z = (np.arange(5.0) + start for start in (1, 11, 21))
WHOLE = tuple(x.astype(np.int64) for x in (X, Y, Z))


def padded(value, *pads):
    """Arrays padded by one number in different ways."""

    def builder(*arrays):
        return [
            hlo.pad(x, hlo.full(value, (), hlo.element_type_of(x)), *([n] for n in pad))
            for x, pad in zip(arrays, pads, strict=True)
        ]

    return builder


def expected(arrays, value, *pads):
    found = []
    for x, (low, high, interior) in zip(arrays, pads, strict=True):
        spread = np.full((len(x) - 1) * (interior + 1) + 1, value, x.dtype)
        spread[:: interior + 1] = x
        kept = spread[max(0, -low) : len(spread) - max(0, -high)]
        found.append(np.pad(kept, (max(low, 0), max(high, 0)), constant_values=value))
    return found


def pads(name, arrays, value, *how) -> Example:
    return Example(name, arrays, padded(value, *how), expected(arrays, value, *how))


def updated(x, y, z):
    """Parts of equal arrays, each with other numbers."""
    filled = [hlo.full(0.1, (9,), np.float64) for _ in range(3)]
    starts = [[hlo.constant(start, np.int32)] for start in (0, 4, 2)]
    return [
        hlo.dynamic_update_slice(array, part, start)
        for array, part, start in zip(filled, (x, y, z), starts, strict=True)
    ]


def filled_around(part, start):
    array = np.full(9, 0.1)
    array[start : start + 5] = part
    return array


def updated_and_read(x):
    """A complex array is updated twice, and its old contents are read, too."""
    filled = hlo.full(0.5 + 1j, (9,), np.complex128)
    first, second = ([hlo.constant(start, np.int32)] for start in (0, 4))
    changed = hlo.dynamic_update_slice(filled, x, first)
    return [changed, hlo.dynamic_update_slice(filled, x, second), hlo.multiply(filled, filled)]


def complex_around(start):
    array = np.full(9, 0.5 + 1j)
    array[start : start + 5] = X + 2j
    return array


def padded_by_computed(x, y, number):
    """Pads by a number that is an argument, and by an equal computed number."""
    again = hlo.add(number, hlo.constant(0.0, np.float64))
    return [
        hlo.pad(x, number, [1], [2], [0]),
        hlo.pad(y, again, [2], [1], [0]),
        hlo.pad(y, number, [0], [3], [0]),
    ]


def updated_in_computed(x, y, number):
    """Updates parts of an array that is filled with an argument."""
    filled = hlo.broadcast_scalar(number, (9,))
    starts = [[hlo.constant(start, np.int32)] for start in (0, 4)]
    parts = zip((x, y), starts, strict=True)
    return [hlo.dynamic_update_slice(filled, part, start) for part, start in parts]


EQUAL = ((1, 2, 0), (1, 2, 0), (2, 1, 0))
EXAMPLES = [
    pads("floats", (X, Y, Z), 7.3, *EQUAL),
    pads("infinity", (X, Y, Z), -np.inf, *EQUAL),
    pads("integers", WHOLE, 2**40 + 7, *EQUAL),
    pads("between", (X, Y, Z), 7.3, (1, 2, 1), (2, 1, 1), (0, 3, 1)),
    pads("nothing", (X[:0], Y[:0], Z), 7.3, (1, 2, 0), (2, 1, 0), (0, -2, 0)),
    pads("cut", (X, Y, Z), 7.3, (-1, 4, 0), (4, -1, 0), (-1, 4, 0)),
    pads("zeros", (X, Y), 0.0, *EQUAL[:2]),
    pads("halves_that_are_equal", WHOLE[:2], -1, *EQUAL[:2]),
    pads("of_32_bits", (X.astype(np.float32), Y.astype(np.float32)), 7.0, *EQUAL[:2]),
    pads("truths", (X > 2, Y > 12), True, *EQUAL[:2]),
    Example(
        "complex",
        (X + 2j,),
        updated_and_read,
        [complex_around(0), complex_around(4), np.full(9, (0.5 + 1j) ** 2)],
    ),
    Example(
        "computed",
        (X, Y, np.asarray(0.1)),
        padded_by_computed,
        [np.pad(x, how, constant_values=0.1) for x, how in ((X, (1, 2)), (Y, (2, 1)), (Y, (0, 3)))],
    ),
    Example(
        "updates_in_computed",
        (X, Y, np.asarray(0.1)),
        updated_in_computed,
        list(map(filled_around, (X, Y), (0, 4))),
    ),
    Example("updates", (X, Y, Z), updated, list(map(filled_around, (X, Y, Z), (0, 4, 2)))),
]


def test_values() -> None:
    results = run_examples(EXAMPLES, "renew-fills")
    assert [(e.name, d) for e in EXAMPLES for d in deviations(results[e.name], e)] == []


@pytest.mark.makes_wrong_programs
def test_without_the_pass_one_array_is_worked_on_for_all() -> None:
    def compiler(module) -> bytes:
        return compile_module(module.operation.get_asm(), Target(), "f")

    with pytest.raises(WrongMemoryOrderError):
        run_examples(EXAMPLES[:1], compiler=compiler)


@pytest.mark.parametrize(
    "example",
    [
        pads("one", (X,), 7.3, (1, 2, 0)),
        pads("of_different_sizes", (X, Y), 7.3, (1, 2, 0), (1, 1, 0)),
        pads("of_32_bits_between", (X.astype(np.float32),) * 2, 7.0, (1, 2, 1), (2, 1, 1)),
    ],
    ids=lambda e: e.name,
)
def test_others_stay(example: Example) -> None:
    assert text_after(example, "renew-fills") == text_after(example, "")
