"""`saturate-conversions`, `keep-denormal-halves`, `convert-by-single`, `round-to-bfloat16`."""

from __future__ import annotations

import itertools
import platform

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = tuple(f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64))
EDGES = [0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, -1.5, 1e30, -1e30, np.inf, -np.inf, np.nan] + [
    sign * (2.0**power + offset)
    for sign in (1, -1)
    for power in (7, 8, 15, 16, 31, 32, 53, 63, 64)
    for offset in (-1, 0, 1)
]


def saturated(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The reference, in Python integers."""
    limits = np.iinfo(dtype)

    def one(value: float) -> int:
        if np.isnan(value):
            return 0
        if np.isinf(value):
            return limits.max if value > 0 else limits.min
        return min(max(int(value), limits.min), limits.max)

    return np.array([one(float(value)) for value in values], dtype)


def example(source: type, target: str) -> Example:
    with np.errstate(over="ignore"):
        values = np.array(EDGES).astype(source)
    dtype = np.dtype(target)
    name = f"{np.dtype(source).name}_to_{target}"
    return Example(name, (values,), lambda x: hlo.convert(x, dtype), saturated(values, dtype))


EXAMPLES = list(itertools.starmap(example, itertools.product(FLOATS, INTEGERS)))


def clamped(bounds: tuple[float, float], form: str) -> Example:
    """A conversion of clamped numbers, with bounds that bytes reach or do not."""
    low, high = bounds
    values = np.array(EDGES, np.float32)

    def builder(x):
        if form == "clamp":
            return hlo.convert(hlo.clamp(hlo.full_like(x, low), x, hlo.full_like(x, high)), np.int8)
        raised = hlo.maximum(hlo.full_like(x, low), x)
        return hlo.convert(hlo.minimum(raised, hlo.full_like(x, high)), np.int8)

    expected = saturated(np.clip(values, low, high), np.dtype(np.int8))
    return Example(f"{form}_{low}_{high}", (values,), builder, expected)


CLAMPED = [
    clamped(bounds, form)
    for bounds in ((-127.0, 127.0), (-128.0, 300.0), (-np.inf, 5.5), (3.0, 4.0))
    for form in ("clamp", "minimum")
]
EXAMPLES += CLAMPED


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "saturate-conversions")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_what_has_been_clamped_is_not_compared_again() -> None:
    counts = [text_after(e, "saturate-conversions").count("stablehlo.compare") for e in CLAMPED]
    assert counts == [1, 1, 2, 2, 2, 2, 1, 1]


def test_other_conversions_stay() -> None:
    x = np.array([0.0, np.nan, -2.5, np.inf], np.float32)
    examples = [
        Example("to_bool", (x,), lambda v: hlo.convert(v, bool), x != 0),
        Example("to_float", (x,), lambda v: hlo.convert(v, np.float64), x.astype(np.float64)),
    ]
    results = run_examples(examples, "saturate-conversions")
    assert [d for e in examples for d in deviations(results[e.name], e)] == []


def test_without_the_pass_values_are_wrong() -> None:
    names = ("float32_to_int32", "float32_to_int8", "float16_to_uint8")
    examples = [e for e in EXAMPLES if e.name in names]
    raw = run_examples(examples)
    assert all(deviations(raw[e.name], e) for e in examples)


def halves_example() -> Example:
    rng = np.random.default_rng(0)
    halves = rng.integers(0, 2**16, 3000, dtype=np.uint16).view(np.float16)
    halves = halves[np.abs(halves) < 65504].astype(np.float64)
    ties = halves + np.spacing(halves.astype(np.float16)).astype(np.float64) / 2
    x = np.concatenate(
        [
            halves,
            ties,  # between two halves, and next to that
            np.nextafter(ties, np.inf),
            np.nextafter(ties, -np.inf),
            [0.0, -0.0, 65519.99, 65520.0, 1e300, -np.inf, np.nan, 3e-8, 2.9802322387695312e-08],
        ]
    )
    with np.errstate(over="ignore"):
        return Example("f", (x,), lambda v: hlo.convert(v, np.float16), x.astype(np.float16))


def test_doubles_become_the_nearest_half() -> None:
    example = halves_example()
    assert deviations(run_examples([example], "keep-denormal-halves")["f"], example) == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the CPU is one of x86")
def test_without_the_pass_some_cpus_lose_denormal_halves() -> None:
    # CPUs with arithmetic in halves (avx512fp16) convert correctly without the pass.
    example = halves_example()
    raw = run_examples([example], flags=["--iree-llvmcpu-target-cpu=x86-64-v3"])
    assert deviations(raw["f"], example) != []


def test_integers_become_bf16() -> None:
    """Loads a program that without the pass ends the process ("undefined symbol")."""
    bf16 = ml_dtypes.bfloat16
    ends = [0, 1, 255, 256, 257, 258, 65535, 2**24 + 1, 2**31 - 1]
    examples = []
    for name in INTEGERS:
        limits = np.iinfo(name)
        values = [v for v in (*ends, *(-e for e in ends)) if limits.min <= v <= limits.max]
        x = np.array(values, name)
        expected = x.astype(np.float32).astype(bf16)
        examples.append(Example(f"{name}_to_bf16", (x,), lambda v: hlo.convert(v, bf16), expected))
    x = np.arange(-300, 300, dtype=np.int32).reshape(20, 30)
    examples.append(
        Example(
            "by_way_of_f32",
            (x,),
            lambda v: hlo.convert(hlo.transpose(hlo.convert(v, np.float32), (1, 0)), bf16),
            x.T.astype(np.float32).astype(bf16),
        )
    )
    results = run_examples(examples, "convert-by-single")
    assert [d for e in examples for d in deviations(results[e.name], e)] == []


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SINGLES = np.array(
    [*EDGES, 0.3, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38, 1e-40], np.float32
)  # fmt: skip


def read_at_once(x):
    """A conversion with a result that the same dispatch reads."""
    return hlo.abs(hlo.convert(hlo.convert(x, BFLOAT16), np.float32))


def _nearest(values):
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(BFLOAT16).astype(np.float32)


ROUNDED = [
    Example(
        name,
        (values,),
        read_at_once,
        np.abs(_nearest(values)),
    )
    for name, values in (
        ("single", SINGLES),
        ("double", SINGLES[:-1].astype(np.float64)),
        ("half", np.array(EDGES[:8], np.float16)),
    )
]


def test_what_is_read_at_once_is_rounded() -> None:
    results = run_examples(ROUNDED, "round-to-bfloat16")
    for rounded in ROUNDED:
        assert deviations(results[rounded.name], rounded) == []


def test_rounding_to_bfloat16_is_still_needed() -> None:
    assert deviations(run_examples(ROUNDED[:1])["single"], ROUNDED[0]) != []


def test_what_is_only_returned_is_converted_as_it_is() -> None:
    returned = Example("returned", (SINGLES,), lambda x: hlo.convert(x, BFLOAT16), SINGLES)
    assert text_after(returned, "round-to-bfloat16") == text_after(returned, "")
