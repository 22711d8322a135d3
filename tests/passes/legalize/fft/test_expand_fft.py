"""`expand-fft`: Fourier transforms of all lengths against NumPy, in a few modules.

`test_kernels.py` tests the results of kernels, except for two long transforms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.stablehlo_runner import CompilationError, Example, build, compile_module, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.passes.legalize.fft import tables

TRANSFORMS = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


def draw(shape: tuple[int, ...], is_real: bool) -> np.ndarray:
    rng = np.random.default_rng(shape)
    x = rng.normal(size=shape)
    return x if is_real else x + 1j * rng.normal(size=shape)


def example(kind: str, batch: tuple[int, ...], lengths: tuple[int, ...], is_wide: bool) -> Example:
    *outer, last = lengths
    shape = (*batch, *outer, last // 2 + 1 if kind == "IRFFT" else last)
    x = draw(shape, kind == "RFFT")
    narrow = np.float32 if kind == "RFFT" else np.complex64
    argument = x if is_wide else x.astype(narrow)
    axes = range(-len(lengths), 0)
    expected = TRANSFORMS[kind](argument.astype(x.dtype), lengths, axes)

    def transform(x: Any) -> Any:
        return hlo.fft(x, kind, lengths)

    name = f"{kind}_{'x'.join(map(str, (*batch, 'of', *lengths)))}_{'wide' if is_wide else ''}"
    return Example(name, (argument,), transform, expected)


# Of one product, of several stages, with a large prime factor, and large primes; odd and even.
LENGTHS = {
    "FFT": (1, 3, 32, 37, 74, 243, 404, 1021),
    "IFFT": (2, 31, 64, 67, 1000),
    "RFFT": (1, 2, 31, 33, 101, 134, 210),
    "IRFFT": (2, 3, 32, 45, 67, 74, 202, 1000),
}
EXAMPLES = [
    example(kind, (2,), (n,), is_wide=j % 2 == 0)
    for kind, lengths in LENGTHS.items()
    for j, n in enumerate(lengths)
] + [
    example("FFT", (), (34, 3, 36), is_wide=True),
    example("IFFT", (2,), (35, 6), is_wide=False),
    example("RFFT", (), (3, 40), is_wide=True),
    example("RFFT", (2, 3), (2, 5, 3), is_wide=False),
    example("IRFFT", (2,), (35, 6), is_wide=True),
    example("IRFFT", (), (3, 2, 33), is_wide=False),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "expand-fft{platform=cuda},split-complex-constants")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    (result,) = results[example.name]
    assert result.shape == example.expected.shape
    assert result.dtype.kind == example.expected.dtype.kind
    assert_near(result, example.expected)


def assert_near(result: np.ndarray, expected: np.ndarray) -> None:
    """Asserts that errors are a few units in the last place of the largest element."""
    allowed = 16 * np.finfo(result.dtype).eps * np.abs(expected).max()
    assert np.abs(result - expected).max() <= allowed


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_long_transforms(platform: str) -> None:
    """Tests transforms with twiddle factors from several tables."""
    examples = [
        example("FFT", (), (1 << 16,), False),
        example("RFFT", (), (60000,), True),
    ]
    if platform == "cuda":
        examples.append(example("IFFT", (), (10007,), False))
    found = run_examples(examples, f"expand-fft{{platform={platform}}},write-transforms")
    for long in examples:
        assert_near(found[long.name][0], long.expected)


def test_imaginary_parts_of_the_ends_do_not_count() -> None:
    x = np.zeros((2, 33), np.complex64)
    x[:, [0, -1]] = 5j
    examples = [
        Example(f"length_{n}", (x[:, : n // 2 + 1],), irfft(n), np.zeros((2, n), np.float32))
        for n in (64, 10, 1)
    ]
    found = run_examples(examples, "expand-fft")
    for case in examples:
        np.testing.assert_array_equal(found[case.name][0], case.expected)


def irfft(length: int) -> Any:
    return lambda x: hlo.fft(x, "IRFFT", (length,))


def test_empty_batch() -> None:
    empty = Example(
        "empty",
        (np.zeros((0, 5), np.complex64),),
        lambda x: hlo.fft(x, "FFT", (5,)),
        np.zeros((0, 5), np.complex64),
    )
    assert run_examples([empty], "expand-fft")["empty"][0].shape == (0, 5)


@pytest.mark.parametrize(("dtype", "lengths"), [("c64", (5,)), ("c128", (4,)), ("c64", (4, 4))])
def test_without_the_pass_the_compiler_fails(dtype: str, lengths: tuple[int, ...]) -> None:
    x = np.zeros((2, *lengths), np.complex64 if dtype == "c64" else np.complex128)
    with pytest.raises(CompilationError):
        compile_module(build({"f": ((x,), lambda x: hlo.fft(x, "FFT", lengths))}))


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_constants_are_small(platform: str) -> None:
    """The program of a long transform does not contain a megabyte of twiddles."""
    x = np.zeros(1 << 20, np.complex64)
    module = build({"f": ((x,), lambda x: hlo.fft(x, "FFT", x.type.shape))})
    run_passes(module, f"expand-fft{{platform={platform}}}")
    assert len(str(module)) < 1 << 20


# Tables ----------------------------------------------------------------------------------------


def test_roots_are_exact_at_the_axes() -> None:
    roots = tables.unit_roots(np.array([0, 3, 6, 9, -3, 12]), 12)
    np.testing.assert_array_equal(roots, [1, 1j, -1, -1j, -1j, 1])


@pytest.mark.parametrize("length", [1, 2, 32, 36, 64, 77, 1000, 1021, 2042, 65536, 100000])
def test_factors(length: int) -> None:
    factors = tables.factors(length)
    assert math.prod(factors) == length
    composite = [f for f in factors if f > tables.MOST_DENSE]
    assert all(f % d for f in composite for d in range(2, f))


@pytest.mark.parametrize("least", [1, 33, 133, 2041, 20013])
def test_padded_length(least: int) -> None:
    length = tables.padded_length(least)
    assert least <= length < 2 * least
    assert max(tables.factors(length)) <= tables.MOST_DENSE
