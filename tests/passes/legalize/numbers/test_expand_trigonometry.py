"""`expand-trigonometry`: sine, cosine and tangent for arguments of every size."""

from __future__ import annotations

import ml_dtypes
import mpmath
import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
FUNCTIONS = {
    "sine": (hlo.sine, np.sin),
    "cosine": (hlo.cosine, np.cos),
    "tan": (hlo.tan, np.tan),
}
ULPS = {"f32": 4, "f16": 1, "bf16": 1}


def arguments(dtype: type) -> np.ndarray:
    """Numbers of all magnitudes, multiples of pi/2, and the edges."""
    with np.errstate(over="ignore"):
        parts = [
            np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30]),
            RNG.uniform(-10, 10, 500),
            RNG.uniform(-1e5, 1e5, 500),
            10.0 ** RNG.uniform(-10, 38, 1000) * RNG.choice([-1, 1], 1000),
            np.arange(-100, 100) * np.pi / 2,
            np.array([2.0**17, 2.0**17 - 1, 2.0**23, 2.0**127, 3.4028235e38]),
        ]
        return np.concatenate([part.astype(dtype) for part in parts])


def example(name: str, kind: str) -> Example:
    builder, function = FUNCTIONS[name]
    x = arguments(DTYPES[kind])
    with np.errstate(invalid="ignore"):
        expected = function(x.astype(np.float64)).astype(DTYPES[kind])
    return Example(f"{name}_{kind}", (x,), builder, expected)


EXAMPLES = [example(name, kind) for name in FUNCTIONS for kind in DTYPES]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "expand-trigonometry")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    ulps = ULPS[example.name.split("_")[1]]
    assert deviations(results[example.name], example, ulps) == []


def test_the_reference_is_exact_for_huge_arguments() -> None:
    """The C library reduces the range of doubles exactly, as the tests above assume."""
    for value in (1e22, 3.4028234663852886e38, 123456789.0):
        with mpmath.workdps(80):
            assert np.sin(value) == pytest.approx(float(mpmath.sin(value)), rel=1e-15)


def test_double_precision_needs_no_help() -> None:
    x = np.concatenate([RNG.uniform(-1e6, 1e6, 300), [0.0, -0.0, np.inf, np.nan, 1e22, 1e300]])
    with np.errstate(invalid="ignore"):
        examples = [
            Example("sin64", (x,), hlo.sine, np.sin(x)),
            Example("cos64", (x,), hlo.cosine, np.cos(x)),
            Example("tan64", (x,), hlo.tan, np.tan(x)),
        ]
    results = run_examples(examples, "expand-trigonometry")
    assert [d for e in examples for d in deviations(results[e.name], e, 2)] == []


def test_without_the_pass_values_are_wrong() -> None:
    names = ("sine_f32", "cosine_f32", "tan_f32", "sine_bf16")
    examples = [e for e in EXAMPLES if e.name in names]
    raw = run_examples(examples)
    assert all(deviations(raw[e.name], e, 16) for e in examples)


def test_inside_a_reduction() -> None:
    """A function within the body of a reduction is legalized like any other."""
    x = RNG.uniform(-3, 3, size=(4, 5)).astype(np.float32)

    def total_of_sines(x):
        zero = hlo.constant(np.float32(0))
        return hlo.reduce([x], [zero], (1,), lambda a, b: hlo.add(a, hlo.sine(b)))

    example = Example("f", (x,), total_of_sines, np.sin(x.astype(np.float64)).sum(1).astype("f"))
    assert deviations(run_examples([example], "expand-trigonometry")["f"], example, 16) == []
