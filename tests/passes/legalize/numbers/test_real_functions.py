"""Functions of real numbers: powers, roots, rounding, hyperbolic functions and others."""

from __future__ import annotations

import ml_dtypes
import mpmath
import numpy as np
import pytest
import scipy.special
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
PASSES = "expand-hyperbolic,expand-inverse-trigonometry,expand-cube-root"
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
FUNCTIONS = {
    "exponential_minus_one": np.expm1,
    "log_plus_one": np.log1p,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan": np.arctan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "cbrt": np.cbrt,
}
EDGES = np.array(
    [0, 1, 0.5, 2, 1e-3, 1e-5, 1e-10, 1e-20, 3, 10, 50, 88, 100, 700, 720, 1e5, 1e10, 1e30, np.inf]
)
VALUES = np.concatenate(
    [
        [np.nan],
        EDGES,
        -EDGES,
        RNG.uniform(-5, 5, 500),
        RNG.uniform(-1, 1, 500),
        10.0 ** RNG.uniform(-8, 30, 300),
        -(10.0 ** RNG.uniform(-8, 30, 300)),
        1 + 10.0 ** RNG.uniform(-8, 0, 100),
    ]
)
# Single precision functions that IREE computes itself: correct, but not to the last place.
ULPS = {"exponential_minus_one": 4, "log_plus_one": 4, "acosh": 6, "asinh": 6, "atanh": 6}


def flushed(array: np.ndarray) -> np.ndarray:
    """Results with denormal numbers as zeros, as the processor makes them (but not for f16)."""
    if array.dtype == np.float16:
        return array
    is_denormal = np.abs(array.astype(np.float64)) < float(ml_dtypes.finfo(array.dtype).tiny)
    return np.where(is_denormal, np.copysign(array.dtype.type(0), array), array)


def example(name: str, kind: str) -> Example:
    with np.errstate(all="ignore"):
        x = VALUES.astype(DTYPES[kind])
        expected = flushed(FUNCTIONS[name](x.astype(np.float64)).astype(DTYPES[kind]))
    return Example(f"{name}_{kind}", (flushed(x),), getattr(hlo, name), expected)


def atan2_example(kind: str) -> Example:
    with np.errstate(all="ignore"):
        some = np.concatenate([[np.nan], EDGES, -EDGES, RNG.normal(size=20)]).astype(DTYPES[kind])
        y, x = (part.ravel() for part in np.meshgrid(flushed(some), flushed(some)))
        expected = np.arctan2(y.astype(np.float64), x.astype(np.float64)).astype(DTYPES[kind])
    return Example(f"atan2_{kind}", (y, x), hlo.atan2, flushed(expected))


EXAMPLES = [example(name, kind) for name in FUNCTIONS for kind in DTYPES]
EXAMPLES += [atan2_example(kind) for kind in DTYPES]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PASSES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    name, kind = example.name.rsplit("_", 1)
    ulps = ULPS.get(name, 4) if kind == "f32" else 3
    assert deviations(results[example.name], example, ulps) == []


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_the_cube_root_of_double_precision_did_not_compile(kind: str) -> None:
    example = next(e for e in EXAMPLES if e.name == f"cbrt_{kind}")
    if kind == "f64":
        with pytest.raises(CompilationError):
            compile_module(build({"f": (example.arguments, hlo.cbrt)}))
    else:
        assert deviations(run_examples([example])[example.name], example, 8) != []


def test_without_the_passes_values_are_wrong() -> None:
    names = {"exponential_minus_one_f64", "log_plus_one_f64", "asinh_f64", "sinh_f64"}
    names |= {"atan2_f32", "atan2_f16", "atan2_bf16", "cbrt_f32"}
    examples = [e for e in EXAMPLES if e.name in names]
    raw = run_examples(examples)
    assert all(deviations(raw[e.name], e, 16) for e in examples)


def test_digamma_has_no_value_at_zero() -> None:
    x = np.array([0.0, -0.0, 1.0, 2.5, -0.5, -1.0, -2.0, 30.0])
    expected = scipy.special.digamma(x)
    expected[:2] = np.nan
    example = Example("digamma", (x,), hlo.digamma, expected)
    assert deviations(run_examples([example], "define-digamma")["digamma"], example, 256) == []
    assert deviations(run_examples([example])["digamma"], example, 256) != []


def test_error_functions_of_double_precision_need_no_help() -> None:
    x = np.concatenate([RNG.uniform(-6, 6, 300), [0.0, np.inf, -np.inf, np.nan]])
    examples = [
        Example("erf", (x,), hlo.erf, scipy.special.erf(x)),
        Example("erfc", (x,), hlo.erfc, scipy.special.erfc(x)),
    ]
    results = run_examples(examples)
    assert [d for e in examples for d in deviations(results[e.name], e, 16)] == []


def test_arc_tangent_of_zeros_that_the_compiler_knows() -> None:
    signs = (0.0, -0.0)
    x = np.ones(4)

    def build_all(value):
        zeros = [hlo.full_like(value, zero) for zero in signs]
        return [hlo.atan2(height, width) for height in zeros for width in zeros]

    expected = [np.full(4, np.arctan2(height, width)) for height in signs for width in signs]
    example = Example("origin", [x], build_all, expected)
    assert deviations(run_examples([example])["origin"], example)
    assert not deviations(run_examples([example], "expand-inverse-trigonometry")["origin"], example)


EDGES_POWER = np.array(
    [0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 7, 1e3, 1001, 1e30, np.inf, np.nan, 2**24 + 2, 1e-3, 1e-30]
)
EDGES_POWER = np.concatenate([EDGES_POWER, -EDGES_POWER])


def correct_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The C library's power of doubles, which is correct to the last place, rounded."""
    with np.errstate(all="ignore"):
        result = np.power(x.astype(np.float64), y.astype(np.float64))
        result = result.astype(x.dtype)
    # Denormal results, other than of f16, are flushed to zero by the processor.
    tiny = float(ml_dtypes.finfo(x.dtype).tiny) if x.dtype != np.float16 else 0.0
    is_denormal = np.abs(result.astype(np.float64)) < tiny
    return np.where(is_denormal, np.copysign(result.dtype.type(0), result), result)


def example_power(name: str, kind: str, x: np.ndarray, y: np.ndarray) -> Example:
    with np.errstate(over="ignore"):
        x, y = x.astype(DTYPES[kind]), y.astype(DTYPES[kind])
    return Example(f"{name}_{kind}", (x, y), hlo.power, correct_power(x, y))


def examples(kind: str) -> list[Example]:
    first, second = np.meshgrid(EDGES_POWER, EDGES_POWER)
    bases = 10.0 ** RNG.uniform(-5, 5, 2000)
    exponents = RNG.uniform(-8, 8, 2000) if kind != "f16" else RNG.uniform(-1, 1, 2000)
    integers = RNG.integers(-9, 10, 2000).astype(float)
    near_one = 1 + RNG.uniform(-0.01, 0.01, 2000)
    return [
        example_power("edges", kind, first.ravel(), second.ravel()),
        example_power("positive", kind, bases, exponents),
        example_power("negative", kind, -(bases ** (0.3 if kind == "f16" else 1)), integers),
        example_power("near_one", kind, near_one, RNG.uniform(-5000, 5000, 2000)),
    ]


EXAMPLES_POWER = [e for kind in DTYPES for e in examples(kind)]


@pytest.fixture(scope="module")
def results_power() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES_POWER, "expand-power")


@pytest.mark.parametrize("example", EXAMPLES_POWER, ids=lambda e: e.name)
def test_values_power(results_power: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_power[example.name], example, ulps=2) == []


def test_doubles_against_many_digits(results_power: dict[str, list[np.ndarray]]) -> None:
    for name in ("positive_f64", "near_one_f64"):
        (example_power,) = (e for e in EXAMPLES_POWER if e.name == name)
        x, y = example_power.arguments
        with mpmath.workdps(40):
            for a, b, result in list(zip(x, y, results_power[name][0], strict=True))[:300]:
                exact = mpmath.power(mpmath.mpf(float(a)), mpmath.mpf(float(b)))
                assert abs(mpmath.mpf(float(result)) / exact - 1) < 2 * 2.0**-52


def test_without_the_pass_values_are_wrong() -> None:
    names = ("edges_f32", "edges_f64", "negative_f32", "negative_bf16")
    examples = [e for e in EXAMPLES_POWER if e.name in names]
    raw = run_examples(examples)
    assert all(deviations(raw[e.name], e, 16) for e in examples)


TIES = np.arange(-4000.5, 4001) / np.array([[1], [2], [4]])
EDGES_ROUNDING = np.array(
    [0.0, -0.0, 0.49999997, -0.49999997, np.inf, -np.inf, np.nan, 1e30, -1e30]
)


def example_rounding(dtype: type) -> Example:
    digits = {2: 11, 4: 24, 8: 53}[np.dtype(dtype).itemsize]
    powers = np.outer([1, -1], 2.0 ** np.arange(-3, digits + 3)).ravel()
    powers = powers[np.abs(powers) < 60000] if dtype == np.float16 else powers
    near = np.concatenate([powers + step for step in (-1, -0.75, -0.5, 0, 0.5, 1.5)])
    with np.errstate(over="ignore"):
        values = np.concatenate([TIES.ravel(), near, EDGES_ROUNDING]).astype(dtype)
    expected = np.round(values.astype(np.float64)).astype(dtype)
    return Example(np.dtype(dtype).name, (values,), hlo.round_nearest_even, expected)


EXAMPLES_ROUNDING = [
    example_rounding(x) for x in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
]


@pytest.fixture(scope="module")
def results_rounding() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES_ROUNDING, "expand-rounding")


@pytest.mark.parametrize("example", EXAMPLES_ROUNDING, ids=lambda e: e.name)
def test_values_rounding(results_rounding: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_rounding[example.name], example) == []
