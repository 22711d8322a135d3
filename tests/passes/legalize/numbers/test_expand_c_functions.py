"""`expand-c-functions`: functions of doubles compared with the C library's."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.context import context
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.3e-308, 1.7976931348623157e308]
# The double nearest to a multiple of pi/2, and where one way of reduction gives way to the other.
HARD = [6381956970095103 * 2.0**797, 2.0**28, 2.0**28 - 1, -(2.0**28), 2.0**53, 2.0**1023]
SIZES = 2.0 ** RNG.uniform(-60, 1023, 600) * RNG.choice([-1, 1], 600)
NUMBERS = np.concatenate(
    [EDGES, HARD, RNG.uniform(-10, 10, 600), SIZES, np.arange(-60, 60) * np.pi / 2]
)
PARTS = np.concatenate(
    [EDGES, RNG.uniform(-1, 1, 800), 1 - 10.0 ** RNG.uniform(-16, 0, 200), [2.0]]
)
LEFT = np.concatenate([NUMBERS, np.repeat(EDGES, len(EDGES)), SIZES])
RIGHT = np.concatenate(
    [RNG.permutation(NUMBERS), np.tile(EDGES, len(EDGES)), SIZES * RNG.uniform(-3, 3, 600)]
)
# By name: arguments, and units in the last place beside the C library, which may be off by one.
CASES = {
    "sine": ((NUMBERS,), 1),
    "cosine": ((NUMBERS,), 1),
    "tan": ((NUMBERS,), 3),
    "tanh": ((NUMBERS,), 3),
    "atan": ((NUMBERS,), 2),
    "asin": ((PARTS,), 3),
    "acos": ((PARTS,), 3),
    "atan2": ((LEFT, RIGHT), 2),
    "remainder": ((LEFT, RIGHT), 0),
}


def exactly(function: Callable[[mpmath.mpf], mpmath.mpf]) -> Callable[[np.ndarray], np.ndarray]:
    """A function in 1,200 bits: the C library's is seven units off for the hardest number."""

    def of_number(x: float) -> float:
        with mpmath.workprec(1200):
            value = float(function(mpmath.mpf(x)))
        return math.copysign(value, x) if value == 0 else value  # mpmath has one zero

    return np.vectorize(lambda x: of_number(float(x)) if math.isfinite(x) else math.nan)


# Functions that are written out only for Vulkan and Metal.
FURTHER_CASES = {
    "exponential": ((NUMBERS,), 2),
    "exponential_minus_one": ((NUMBERS,), 2),
    "log": ((np.abs(NUMBERS),), 2),
    "log_plus_one": ((np.concatenate([np.abs(NUMBERS), PARTS]),), 3),
    "logistic": ((NUMBERS,), 4),
}
ALL_CASES = CASES | FURTHER_CASES
FUNCTIONS = {
    "sine": exactly(mpmath.sin), "cosine": exactly(mpmath.cos), "tan": exactly(mpmath.tan),
    "tanh": np.tanh, "atan": np.arctan,
    "asin": np.arcsin, "acos": np.arccos, "atan2": np.arctan2, "remainder": np.fmod,
    "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log,
    "log_plus_one": np.log1p, "logistic": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


def example(name: str) -> Example:
    arguments = ALL_CASES[name][0]
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](*arguments)
    # The processor treats denormal numbers as zeros.
    is_denormal = np.abs(expected) < 2.3e-308
    expected = np.where(is_denormal, np.copysign(0, expected), expected)
    return Example(name, arguments, getattr(hlo, name), expected)


EXAMPLES = [example(name) for name in ALL_CASES]


def ulps_off(results: dict[str, list[np.ndarray]], example: Example) -> list[str]:
    found = [np.where(np.abs(x) < 2.3e-308, np.copysign(0, x), x) for x in results[example.name]]
    return deviations(found, example, ALL_CASES[example.name][1])


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES[: len(CASES)], "expand-c-functions")


@pytest.mark.parametrize("example", EXAMPLES[: len(CASES)], ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert ulps_off(results, example) == []


@pytest.fixture(scope="module")
def results_for_vulkan() -> dict[str, list[np.ndarray]]:
    passes = "expand-c-functions{platform=vulkan},write-out-fused-products"
    return run_examples(EXAMPLES, passes)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values_without_fused_products(
    results_for_vulkan: dict[str, list[np.ndarray]], example: Example
) -> None:
    assert ulps_off(results_for_vulkan, example) == []


def test_fused_products_of_doubles_are_written_out() -> None:
    module = build({"f": ((np.ones(3),), hlo.exponential)})
    run_passes(module, "expand-c-functions{platform=vulkan}")
    assert "math.fma" in str(module)
    run_passes(module, "write-out-fused-products")
    assert "math.fma" not in str(module)


def test_functions_of_numbers_in_loops_are_replaced_too() -> None:
    x = np.ones(3, np.complex128)
    module = build({"f": ((x,), hlo.sine)})
    run_passes(module, "expand-complex,expand-c-functions")
    assert "math.sin" not in str(module)
    assert "math.cos" not in str(module)


def test_chlo_functions_that_call_the_c_library_are_written_out() -> None:
    text = """func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
      %0 = chlo.lgamma %x : tensor<4xf64> -> tensor<4xf64>
      return %0 : tensor<4xf64> }"""
    module = ir.Module.parse(text, context())
    run_passes(module, "expand-c-functions")
    assert "lgamma" not in str(module)
    assert "stablehlo.sine" not in str(module)
    assert "mului_extended" in str(module)


def test_single_precision_stays() -> None:
    module = build({"f": ((np.ones(3, np.float32),), hlo.sine)})
    run_passes(module, "expand-c-functions")
    assert "stablehlo.sine" in str(module)
