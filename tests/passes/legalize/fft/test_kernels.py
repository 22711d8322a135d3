"""Kernels of Fourier transforms against NumPy, and the complex numbers around them.

They are compiled without IREE, which takes longer; one test compares the bits of both.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.stablehlo_runner import build

import axir
import axir.numpy as jnp
from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.types import element_type
from axir.passes.framework.pipeline import run_passes
from axir.passes.legalize.fft.axes import padded_length
from axir.passes.legalize.fft.columns import LONGEST_PRIME, Columns, largest_prime
from axir.passes.legalize.fft.rows import split_row


def draw(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(shape)
    x = rng.normal(size=shape)
    is_complex = np.dtype(dtype).kind == "c"
    return (x + 1j * rng.normal(size=shape) if is_complex else x).astype(dtype)


def assert_near(result: np.ndarray, expected: np.ndarray) -> None:
    """Asserts that errors are a few units in the last place of the largest element."""
    assert result.shape == expected.shape
    allowed = 16 * np.finfo(result.dtype).eps * np.abs(expected).max()
    assert np.abs(result - expected).max() <= allowed


# A row as a matrix, with and without a last vector that reaches back, of shorter vectors, with a
# long butterfly; many short rows, few short columns; a large prime; several axes; two kernels.
CASES = [
    ("fftn", (1024,), (0,)),
    ("ifftn", (3, 1000), (1,)),
    ("fftn", (2, 300), (1,)),
    ("ifftn", (20, 61), (1,)),
    ("fftn", (164 * 17,), (0,)),
    ("fftn", (17, 32), (1,)),
    ("ifftn", (2, 45, 33), (1,)),
    ("fftn", (3, 200, 2), (1,)),
    ("fftn", (2, 521), (1,)),
    ("ifftn", (16, 6, 49), (0, 1, 2)),
    ("ifftn", (1 << 16,), (0,)),
    ("rfftn", (2, 1200), (1,)),
    ("rfftn", (675,), (0,)),
    ("rfftn", (24, 40, 66), (0, 1, 2)),
    ("rfftn", (40000,), (0,)),
    ("irfftn", (2, 601), (1,)),
    ("irfftn", (20, 51), (0, 1)),
    ("irfftn", (20001,), (0,)),
]


@pytest.mark.parametrize("is_wide", [False, True], ids=["single", "double"])
@pytest.mark.parametrize(("name", "shape", "axes"), CASES, ids=str)
def test_values(name: str, shape: tuple[int, ...], axes: tuple[int, ...], is_wide: bool) -> None:
    wide = np.float64 if name == "rfftn" else np.complex128
    narrow = np.float32 if name == "rfftn" else np.complex64
    with axir.enable_x64(is_wide), axir.config(axir_compiler="native"):
        x = draw(shape, wide if is_wide else narrow)
        found = np.asarray(axir.jit(lambda x: getattr(jnp.fft, name)(x, axes=axes))(x))
    assert found.dtype.itemsize == (2 if found.dtype.kind == "c" else 1) * (8 if is_wide else 4)
    assert_near(found, getattr(np.fft, name)(x.astype(wide), axes=axes))


def test_odd_lengths_of_real_numbers() -> None:
    x = draw((2, 675), np.float32)
    with axir.config(axir_compiler="native"):
        found = np.asarray(axir.jit(lambda x: jnp.fft.irfft(jnp.fft.rfft(x), n=675))(x))
    assert_near(found, x.astype(np.float64))


def test_imaginary_parts_of_the_ends_do_not_count() -> None:
    x = np.zeros((2, 601), np.complex64)
    x[:, [0, -1]] = 5j
    with axir.config(axir_compiler="native"):
        found = axir.jit(lambda x: jnp.fft.irfft(x))(x)
    np.testing.assert_array_equal(found, np.zeros((2, 1200), np.float32))


def test_gradients_batches_and_loops() -> None:
    x = draw((3, 640), np.float32)
    z = draw((2, 32, 3), np.complex64)

    def energy(x: Any) -> Any:
        return (jnp.abs(jnp.fft.rfft(x)) ** 2).sum()

    def program(x: Any, z: Any) -> Any:
        batched = axir.vmap(lambda z: jnp.fft.fft(z, axis=0), in_axes=2)(jnp.tile(z, (1, 1, 6)))

        def step(y: Any, _: Any) -> Any:
            return jnp.fft.ifft(jnp.fft.fft(y) * 0.5j), None

        return axir.grad(energy)(x), batched, axir.lax.scan(step, x + 0j, None, length=3)[0]

    with axir.config(axir_compiler="native"):
        gradient, batched, looped = map(np.asarray, axir.jit(program)(x, z))
    spectrum = np.fft.rfft(x.astype(np.float64))
    weights = np.full(321, 2.0)
    weights[[0, -1]] = 1
    half = np.fft.irfft(spectrum * 2 / weights) * 640
    assert_near(gradient, half)
    assert_near(batched, np.moveaxis(np.fft.fft(np.tile(z, (1, 1, 6)), axis=0), 2, 0))
    assert_near(looped, x * 0.5j**3)


def test_both_ways_of_compiling_give_the_same_bits() -> None:
    x, z = draw((64, 96), np.float32), draw((900,), np.complex64)

    def program(x: Any, z: Any) -> Any:
        filtered = jnp.fft.ifft2(jnp.fft.fft2(x) * x).real
        return filtered, z, jnp.fft.fft(z), jnp.fft.rfft(x, axis=0)

    found = []
    for compiler in ("native", "iree"):
        with axir.config(axir_compiler=compiler):
            found.append([np.asarray(y) for y in axir.jit(program)(x, z)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# Programs ---------------------------------------------------------------------------------------


def test_complex_numbers_are_taken_and_given_as_they_lie() -> None:
    z = np.zeros((1 << 16,), np.complex64)
    module = build({"f": ((z,), lambda z: hlo.fft(z, "FFT", (1 << 16,)))})
    run_passes(module, "expand-fft")
    text = str(module)
    assert "stablehlo.real" not in text
    assert text.count("flow.tensor.bitcast") == 2
    run_passes(module, "pair-complex-programs")
    text = str(module)
    assert "flow.tensor.bitcast" not in text
    assert "stablehlo.slice" not in text
    assert "stablehlo.concatenate" not in text


def test_there_and_back_share_kernels() -> None:
    z = np.zeros((64, 64), np.complex64)

    def filtered(z: Any, w: Any) -> Any:
        spectrum = hlo.multiply(hlo.fft(hlo.multiply(z, w), "FFT", (64, 64)), w)
        return hlo.real(hlo.fft(spectrum, "IFFT", (64, 64)))

    module = build({"f": ((z, z), filtered)})
    run_passes(module, "expand-fft")
    assert str(module).count("flow.dispatch") == 4
    assert str(module).count("stream.executable private") == 2


def test_small_and_other_platforms_have_products() -> None:
    small, large = np.zeros(256, np.complex64), np.zeros(4096, np.complex64)
    for x, platform in ((small, "cpu"), (large, "cuda")):
        module = build({"f": ((x,), lambda x: hlo.fft(x, "FFT", x.type.shape))})
        run_passes(module, f"expand-fft{{platform={platform}}}")
        assert "flow.dispatch" not in str(module)
        assert "stablehlo.dot_general" in str(module)


# Lengths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 16, 81, 127, 1000, 1271, 2048])
def test_radices(length: int) -> None:
    columns = Columns(length)
    assert math.prod(columns.radices) == length
    assert columns.factors().size == 2 * sum(
        (radix - 1) * math.prod(columns.radices[number + 1 :]) + (radix > 13) * (radix // 2) ** 2
        for number, radix in enumerate(columns.radices)
    )


@pytest.mark.parametrize("length", [256, 300, 1000, 20736, 1 << 20])
def test_sides_of_rows(length: int) -> None:
    found = split_row(length, 16)
    assert found is not None
    first, second, lanes = found
    assert first * second == length
    assert min(first, second) >= lanes


@pytest.mark.parametrize("length", [30, 2 * 131, 131 * 131])
def test_rows_without_sides(length: int) -> None:
    assert split_row(length, 16) is None


@pytest.mark.parametrize("least", [257, 2041, 20013, 1 << 21])
def test_padded_length(least: int) -> None:
    length = padded_length(least, element_type(np.dtype(np.float32)))
    assert least <= length < 1.4 * least
    assert largest_prime(length) <= LONGEST_PRIME
