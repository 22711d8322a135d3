"""`expand-power`: powers of real numbers, special cases included."""

from __future__ import annotations

import ml_dtypes
import mpmath
import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
EDGES = np.array(
    [0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 7, 1e3, 1001, 1e30, np.inf, np.nan, 2**24 + 2, 1e-3, 1e-30]
)
EDGES = np.concatenate([EDGES, -EDGES])


def correct_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The C library's power of doubles, which is correct to the last place, rounded."""
    with np.errstate(all="ignore"):
        result = np.power(x.astype(np.float64), y.astype(np.float64))
        result = result.astype(x.dtype)
    # Denormal results, other than of f16, are flushed to zero by the processor.
    tiny = float(ml_dtypes.finfo(x.dtype).tiny) if x.dtype != np.float16 else 0.0
    is_denormal = np.abs(result.astype(np.float64)) < tiny
    return np.where(is_denormal, np.copysign(result.dtype.type(0), result), result)


def example(name: str, kind: str, x: np.ndarray, y: np.ndarray) -> Example:
    with np.errstate(over="ignore"):
        x, y = x.astype(DTYPES[kind]), y.astype(DTYPES[kind])
    return Example(f"{name}_{kind}", (x, y), hlo.power, correct_power(x, y))


def examples(kind: str) -> list[Example]:
    first, second = np.meshgrid(EDGES, EDGES)
    bases = 10.0 ** RNG.uniform(-5, 5, 2000)
    exponents = RNG.uniform(-8, 8, 2000) if kind != "f16" else RNG.uniform(-1, 1, 2000)
    integers = RNG.integers(-9, 10, 2000).astype(float)
    near_one = 1 + RNG.uniform(-0.01, 0.01, 2000)
    return [
        example("edges", kind, first.ravel(), second.ravel()),
        example("positive", kind, bases, exponents),
        example("negative", kind, -(bases ** (0.3 if kind == "f16" else 1)), integers),
        example("near_one", kind, near_one, RNG.uniform(-5000, 5000, 2000)),
    ]


EXAMPLES = [e for kind in DTYPES for e in examples(kind)]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "expand-power")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example, ulps=2) == []


def test_doubles_against_many_digits(results: dict[str, list[np.ndarray]]) -> None:
    for name in ("positive_f64", "near_one_f64"):
        (example,) = (e for e in EXAMPLES if e.name == name)
        x, y = example.arguments
        with mpmath.workdps(40):
            for a, b, result in list(zip(x, y, results[name][0], strict=True))[:300]:
                exact = mpmath.power(mpmath.mpf(float(a)), mpmath.mpf(float(b)))
                assert abs(mpmath.mpf(float(result)) / exact - 1) < 2 * 2.0**-52


def test_without_the_pass_values_are_wrong() -> None:
    names = ("edges_f32", "edges_f64", "negative_f32", "negative_bf16")
    examples = [e for e in EXAMPLES if e.name in names]
    raw = run_examples(examples)
    assert all(deviations(raw[e.name], e, 16) for e in examples)
