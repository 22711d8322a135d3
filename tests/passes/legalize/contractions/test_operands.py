"""Contractions of unsigned, boolean and empty operands, and the passes that rewrite them."""

from __future__ import annotations

import itertools

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


def dot(element):
    return lambda a, b: hlo.dot_general(a, b, ((1,), (0,)), element=np.dtype(element))


def unsigned_example(lhs: str, rhs: str, result: str) -> Example:
    a = RNG.integers(0, np.iinfo(lhs).max, size=(33, 20), endpoint=True, dtype=lhs)
    b = RNG.integers(0, np.iinfo(rhs).max, size=(20, 17), endpoint=True, dtype=rhs)
    exact = a.astype(np.uint64) @ b.astype(np.uint64)
    name = f"{lhs}_{rhs}_{result}"
    return Example(name, (a, b), dot(result), exact.astype(result))


IMAGE = RNG.integers(0, 255, size=(2, 9, 9, 3), endpoint=True, dtype=np.uint8)
KERNEL = RNG.integers(0, 255, size=(2, 2, 3, 4), endpoint=True, dtype=np.uint8)
CONVOLVED = sum(
    np.einsum(
        "nhwc,co->nhwo",
        IMAGE[:, i : i + 8, j : j + 8].astype(np.int32),
        KERNEL[i, j].astype(np.int32),
    )
    for i, j in itertools.product(range(2), range(2))
)


def convolve(image, kernel):
    return hlo.convolution(
        image,
        kernel,
        dimension_numbers=((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)),
        window_strides=(1, 1),
        padding=((0, 0), (0, 0)),
        element=np.int32,
    )


UNSIGNED = [
    unsigned_example("uint8", "uint8", "int32"),
    unsigned_example("uint8", "uint8", "uint32"),
    unsigned_example("uint8", "uint8", "uint8"),
    unsigned_example("uint8", "uint8", "int64"),
    unsigned_example("uint16", "uint16", "uint32"),
    unsigned_example("uint16", "uint16", "uint64"),
    unsigned_example("uint32", "uint32", "uint64"),
    unsigned_example("uint64", "uint64", "uint64"),
    Example("convolution", (IMAGE, KERNEL), convolve, CONVOLVED),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(UNSIGNED, "widen-unsigned-dot")


@pytest.mark.parametrize("example", UNSIGNED, ids=lambda e: e.name)
def test_unsigned_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_without_the_pass_unsigned_values_are_wrong() -> None:
    example = UNSIGNED[0]
    assert deviations(run_examples([example])[example.name], example) != []


def converted_example(source: str, element: str, move=lambda value: value) -> Example:
    """Returns the product of unsigned numbers that are converted first, then moved."""
    a = RNG.integers(0, np.iinfo(source).max, size=(33, 20), endpoint=True, dtype=source)
    b = RNG.integers(-9, 9, size=(20, 17)).astype(element)

    def build(a, b):
        return dot(element)(move(hlo.convert(a, np.dtype(element))), b)

    exact = a.astype(np.int64) @ b.astype(np.int64)
    return Example(f"{source}_to_{element}", (a, b), build, exact.astype(element))


def moved(value):
    return hlo.reshape(hlo.reshape(value, (3, 11, 20)), (33, 20))


CONVERTED = [
    converted_example("uint8", "float32"),
    converted_example("uint8", "int32"),
    converted_example("uint16", "float32", moved),
    converted_example("uint16", "uint32"),
    converted_example("uint32", "float64"),
    unsigned_example("uint8", "uint8", "float32"),
]


@pytest.fixture(scope="module")
def converted_results() -> dict[str, list[np.ndarray]]:
    return run_examples(CONVERTED, "widen-unsigned-dot,clamp-unsigned-operands")


@pytest.mark.parametrize("example", CONVERTED, ids=lambda e: e.name)
def test_values_converted_from_unsigned_ones(
    converted_results: dict[str, list[np.ndarray]], example: Example
) -> None:
    assert deviations(converted_results[example.name], example) == []


def test_without_the_pass_values_converted_from_unsigned_ones_are_wrong() -> None:
    example = CONVERTED[0]
    assert deviations(run_examples([example])[example.name], example) != []


MASK = RNG.integers(0, 2, 1437).astype(bool)
ROWS = RNG.integers(-3, 3, size=(1437, 32))


def masked_sum(element, is_moved=False):
    """Returns the sum of the rows that a mask selects, as a product."""

    def build(mask, rows):
        chosen = hlo.convert(mask, np.dtype(element))
        if is_moved:
            chosen = hlo.reshape(hlo.reshape(chosen, (1, 1437)), (1437,))
        return hlo.dot_general(chosen, rows, ((0,), (0,)))

    return build


BOOLEAN = [
    Example("float", (MASK, ROWS.astype(np.float32)), masked_sum("float32"), MASK @ ROWS),
    Example("moved", (MASK, ROWS.astype(np.float32)), masked_sum("float32", True), MASK @ ROWS),
    Example("int", (MASK, ROWS.astype(np.int32)), masked_sum("int32"), MASK @ ROWS),
]


@pytest.fixture(scope="module")
def masked_results() -> dict[str, list[np.ndarray]]:
    return run_examples(BOOLEAN, "select-boolean-operands")


@pytest.mark.parametrize("example", BOOLEAN, ids=lambda e: e.name)
def test_masks_are_operands(masked_results: dict[str, list[np.ndarray]], example: Example) -> None:
    (result,) = masked_results[example.name]
    np.testing.assert_array_equal(result, example.expected)


def test_without_the_pass_masks_do_not_compile() -> None:
    with pytest.raises(CompilationError, match="vecmat"):
        compile_module(build({"f": (BOOLEAN[0].arguments, BOOLEAN[0].builder)}))


NOTHING = (np.zeros((4, 0), np.float32), np.zeros((0, 6), np.float32))
EMPTY = [
    Example("nothing_contracted", NOTHING, dot(np.float32), np.zeros((4, 6), np.float32)),
    Example(
        "nothing_left",
        (np.zeros((0, 5), np.int32), np.zeros((5, 6), np.int32)),
        dot(np.int32),
        np.zeros((0, 6), np.int32),
    ),
    Example(
        "batch_of_nothing",
        (np.zeros((3, 4, 0)), np.zeros((3, 0, 2))),
        lambda a, b: hlo.dot_general(a, b, ((2,), (1,)), ((0,), (0,))),
        np.zeros((3, 4, 2)),
    ),
    Example(
        "complex",
        (np.zeros((2, 0), np.complex64), np.zeros((0, 2), np.complex64)),
        dot(np.complex64),
        np.zeros((2, 2), np.complex64),
    ),
]


def test_empty_values() -> None:
    results = run_examples(EMPTY, "fill-empty-dot")
    assert [d for e in EMPTY for d in deviations(results[e.name], e)] == []


def test_without_the_pass_the_compiler_crashes() -> None:
    with pytest.raises(CompilationError):
        compile_module(build({"f": (NOTHING, dot(np.float32))}))
