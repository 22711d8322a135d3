"""`expand-hyperbolic`, `expand-inverse-trigonometry`, `expand-cube-root`, `define-digamma`."""

from __future__ import annotations

import ml_dtypes
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
