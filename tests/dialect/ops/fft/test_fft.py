"""Fourier transforms: types and spellings shared with JAX, the texts of errors."""

from __future__ import annotations

import enum
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax as jax_lax

import axir
from axir import lax
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.ops.contraction.fourier_transform import fft


def draw(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    rng = np.random.default_rng(shape)
    x = rng.normal(size=shape)
    is_complex = np.dtype(dtype).kind == "c"
    return (x + 1j * rng.normal(size=shape) if is_complex else x).astype(dtype)


@pytest.mark.parametrize(
    "fft_type",
    ["rfft", "RFFT", lax.FftType.RFFT, jax_lax.FftType.RFFT, enum.Enum("Kind", "RFFT").RFFT],
)
def test_spellings_of_a_type(fft_type: Any) -> None:
    result = fft(np.array([1, 2, 3], np.float32), fft_type, [3])
    np.testing.assert_allclose(result, [6, -1.5 + 0.5j * 3**0.5], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16"])
@pytest.mark.parametrize("fft_type", ["fft", "ifft", "irfft"])
def test_operands_become_complex_as_in_jax(dtype: str, fft_type: str) -> None:
    x = np.arange(4).reshape(2, 2).astype(jax.numpy.dtype(dtype))
    ours, theirs = fft(x, fft_type, (2,)), jax_lax.fft(x, fft_type, (2,))
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-6)


def test_integers_become_floats() -> None:
    assert fft(np.arange(4), "rfft", (4,)).dtype == np.complex64


def test_precision_is_that_of_the_operand() -> None:
    with axir.enable_x64(True):
        x = draw((1000,), np.complex128)
        expected = np.fft.fft(x)
        result = np.asarray(fft(x, "fft", (1000,)))
    assert np.abs(result - expected).max() < 1e-14 * np.abs(expected).max()


def test_no_axes_change_nothing() -> None:
    x = draw((2, 3), np.complex64)
    for fft_type in ("fft", "ifft", "irfft"):
        np.testing.assert_array_equal(fft(x, fft_type, ()), x)


@pytest.mark.parametrize("fft_type", ["rfft", "irfft"])
@pytest.mark.parametrize("lengths", [(5,), (6,), (1,), (3, 4), (2, 3, 5)])
def test_gradients_of_real_transforms_are_jaxs(fft_type: str, lengths: tuple[int, ...]) -> None:
    *outer, last = lengths
    is_real = fft_type == "rfft"
    shape = (2, *outer, last if is_real else last // 2 + 1)
    x = draw(shape, np.float32 if is_real else np.complex64)

    def loss(library: Any) -> Any:
        def function(x: Any) -> Any:
            y = library.fft(x, fft_type, lengths)
            weights = np.arange(y.size, dtype=np.float32).reshape(y.shape)
            real, imag = (y, y) if not is_real else (library.real(y), library.imag(y))
            return (real * real * weights + imag * weights).sum()

        return function

    ours = np.asarray(axir.grad(loss(lax))(x))
    theirs = np.asarray(jax.grad(loss(jax_lax))(x))
    np.testing.assert_allclose(ours, theirs, atol=2e-5 * np.abs(theirs).max())


def test_compiled_large_transform() -> None:
    x = draw((64, 1000), np.complex64)
    result = np.asarray(axir.jit(lambda x: fft(x, "ifft", (1000,)))(x))
    expected = np.fft.ifft(x)
    assert result.dtype == np.complex64
    assert np.abs(result - expected).max() < 2e-6 * np.abs(expected).max()


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "fft_type", "lengths", "error", "text"),
    [
        (draw((3, 4)), "dft", (4,), ParameterError, "'fft', 'ifft', 'rfft' or 'irfft'"),
        (draw((3, 4)), 2, (4,), ParameterError, "unknown FFT type 2"),
        (draw((3, 4)), "fft", (5,), ShapeError, r"are \(5,\), but got one of shape \(3, 4\)"),
        (draw((3, 4)), "irfft", (8,), ValueError, r"are \(5,\), but got one of shape \(3, 4\)"),
        (draw((3, 4)), "fft", (1, 3, 4), ParameterError, "fewer dimensions"),
        (draw((1, 1, 2, 2)), "fft", (1, 1, 2, 2), ParameterError, "at most 3 axes"),
        (draw((4,)), "fft", (4.5,), ParameterError, "sequence of integers"),
        (draw((4,)), "fft", 4, ParameterError, "sequence of integers"),
        (draw((4,)), "irfft", (-4,), ShapeError, "IRFFT of lengths"),
        (draw((4,), np.complex64), "rfft", (4,), DTypeError, "only real valued inputs"),
        (draw((4,), np.complex64), "rfft", (4,), ValueError, "use FFT for complex numbers"),
        (draw((4,), np.float16), "rfft", (4,), DTypeError, "float32 or float64"),
    ],
)
def test_errors(x: np.ndarray, fft_type: Any, lengths: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        fft(x, fft_type, lengths)
