"""Passes for Vulkan: their values on the CPU, and the programs that they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, parse, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.errors import UnsupportedByDeviceError
from axir.passes.framework.pipeline import run_passes

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
RNG = np.random.default_rng(0)


def remainder_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """C's remainder; by zero the dividend."""
    wide = [[int(v) for v in array] for array in (x, y)]
    return np.array(
        [
            a if not b else (abs(a) % abs(b)) * (-1 if a < 0 else 1)
            for a, b in zip(*wide, strict=True)
        ],
        x.dtype,
    )


def quotient_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The quotient of unsigned integers; by zero all ones."""
    largest = np.iinfo(x.dtype).max
    return np.array(
        [largest if not b else int(a) // int(b) for a, b in zip(x, y, strict=True)], x.dtype
    )


def test_quotients_and_remainders_of_integers() -> None:
    examples = []
    for name in INTEGERS:
        limits = np.iinfo(name)
        ends = [
            limits.min,
            limits.min + 1,
            limits.max,
            limits.max - 1,
            limits.max // 2 + 1,
            0,
            1,
            2,
        ]
        values = np.array([*ends, 3, 7], name)
        x, y = (grid.ravel() for grid in np.meshgrid(values, values))
        examples.append(Example(f"{name}_rem", (x, y), hlo.remainder, remainder_of(x, y)))
        if name[0] == "u":
            examples.append(Example(f"{name}_div", (x, y), hlo.divide, quotient_of(x, y)))
    results = run_examples(examples, "divide-by-signed,expand-remainder")
    assert [d for e in examples for d in deviations(results[e.name], e)] == []


def test_leading_zeros_are_counted_by_words() -> None:
    examples = []
    for name in INTEGERS:
        bits = np.iinfo(name).bits
        x = np.array([0, *(1 << n for n in range(bits)), 2**bits - 1, 5], np.uint64)
        x = x.astype(f"uint{bits}").view(name)
        zeros = [bits - int(v).bit_length() for v in x.view(f"uint{bits}")]
        expected = np.array(zeros, name)
        examples.append(Example(name, (x,), hlo.count_leading_zeros, expected))
    results = run_examples(examples, "count-zeros-of-words")
    assert [d for e in examples for d in deviations(results[e.name], e)] == []


def test_remainders_of_floats_are_exact() -> None:
    scales = 10.0 ** RNG.integers(-30, 30, (2, 500))
    x, y = (RNG.normal(size=(2, 500)) * scales).astype(np.float32)
    ends = np.array([0, -0.0, 1, -1, 5.3, 3e38, 1e-40, np.inf, -np.inf, np.nan], np.float32)
    # No denormal divisors: their remainders are denormal, too, and machines may flush them.
    edges = [grid.ravel() for grid in np.meshgrid(ends, ends[np.abs(ends) != ends[6]])]
    x, y = np.concatenate([x, edges[0]]), np.concatenate([y, edges[1]])
    with np.errstate(invalid="ignore"):
        example = Example("rem", (x, y), hlo.remainder, np.fmod(x, y))
    results = run_examples([example], "expand-remainder")
    assert list(deviations(results["rem"], example, ulps=0)) == []


def test_sines_without_fused_multiply_adds() -> None:
    x = np.concatenate([RNG.normal(size=2000) * 10.0 ** RNG.integers(-3, 9, 2000), [1608.4, 2048]])
    x = x.astype(np.float32)
    wide = x.astype(np.float64)
    examples = [
        Example("sin", (x,), hlo.sine, np.sin(wide).astype(np.float32)),
        Example("cos", (x,), hlo.cosine, np.cos(wide).astype(np.float32)),
    ]
    results = run_examples(examples, "expand-trigonometry{fuses=false}")
    assert [d for e in examples for d in deviations(results[e.name], e, ulps=4)] == []


def test_complex_sines_without_fused_multiply_adds() -> None:
    x = (RNG.normal(size=200) * 10.0 ** RNG.integers(0, 9, 200)).astype(np.complex64)
    example = Example("sin", (x,), hlo.sine, np.sin(x.astype(np.complex128)).astype(np.complex64))
    results = run_examples([example], "expand-complex{fuses=false}")
    assert list(deviations(results["sin"], example, ulps=4)) == []


ROUNDINGS = """
func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %big = stablehlo.constant dense<12582912.0> : tensor<4xf32>
  %again = stablehlo.constant dense<12582912.0> : tensor<4xf32>
  %0 = stablehlo.add %x, %big : tensor<4xf32>
  %1 = stablehlo.subtract %0, %again : tensor<4xf32>
  %2 = stablehlo.negate %x : tensor<4xf32>
  %3 = stablehlo.add %x, %y : tensor<4xf32>
  %4 = stablehlo.add %2, %3 : tensor<4xf32>
  return %1, %4 : tensor<4xf32>, tensor<4xf32>
}
"""


def test_sums_that_cancel_are_hidden() -> None:
    module = parse(ROUNDINGS)
    run_passes(module, "keep-roundings")
    assert str(module).count("stablehlo.minimum") == 2
    plain = parse(ROUNDINGS.replace("%2, %3", "%2, %y").replace("%0, %again", "%0, %y"))
    before = str(plain)
    run_passes(plain, "keep-roundings")
    assert str(plain) == before


def test_hidden_sums_are_what_they_were() -> None:
    x = np.array([0.0, -0.0, 1.5, -2.5, 3e38, np.inf, -np.inf, np.nan], np.float32)
    y = np.array([1e-9, -0.0, 1e9, 0.1, 3e38, 1, 1, 1], np.float32)
    with np.errstate(all="ignore"):
        example = Example("f", (x, y), lambda x, y: hlo.subtract(hlo.add(x, y), x), (x + y) - x)
    results = run_examples([example], "keep-roundings")
    assert list(deviations(results["f"], example, ulps=0)) == []


@pytest.mark.parametrize(
    ("options", "dtype", "text"),
    [
        ("platform=vulkan", "float64", "computes sine of 64-bit floats, which programs for vulkan"),
        (
            "platform=cuda,missing=f16",
            "float16",
            "numbers of type f16, with which this cuda device",
        ),
        ("platform=vulkan,missing=f64", "complex128", "numbers of type f64"),
    ],
)
def test_what_devices_cannot_is_refused(options: str, dtype: str, text: str) -> None:
    module = build({"f": ((np.ones(4, dtype),), hlo.sine)})
    with pytest.raises(UnsupportedByDeviceError, match=text) as caught:
        run_passes(module, f"refuse-unsupported{{{options}}}")
    assert "Compute with float32" in str(caught.value)


def test_what_devices_can_is_not() -> None:
    arguments = {"f": ((np.ones(4),), hlo.sine), "g": ((np.ones(4, np.float32),), hlo.sine)}
    run_passes(build(arguments), "refuse-unsupported{platform=cuda}")
    run_passes(build({"g": arguments["g"]}), "refuse-unsupported{platform=vulkan,missing=f64}")
