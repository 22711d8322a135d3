"""`axir.scipy.signal`: convolutions as JAX's, and boundaries as SciPy's."""

from __future__ import annotations

from typing import Any

import jax.scipy.signal
import numpy as np
import pytest
import scipy.signal
from support.against_jax import assert_close, compare, same_error

import axir
from axir.dialect.core.errors import ParameterError
from axir.scipy import signal

MODES = ["full", "same", "valid"]
SHAPES = [
    ((7,), (4,)), ((4,), (7,)), ((5, 6), (3, 2)), ((5, 6), (2, 3)), ((2, 3), (4, 5)),
    ((4, 3, 5), (2, 3, 1)), ((), ()),
]  # fmt: skip


def draw(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng([seed, *shape])
    values = generator.uniform(-3, 3, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * generator.uniform(-3, 3, shape)
    return np.asarray(values).astype(dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("first", "second"), SHAPES)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_arrays_of_any_rank(name: str, first: Any, second: Any, mode: str) -> None:
    for dtype in (np.float32, np.complex64, np.int32):
        x, y = draw(first, dtype), draw(second, dtype, 1)
        compare(getattr(signal, name), getattr(jax.scipy.signal, name), x, y, mode, factor=16)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve"])
def test_by_fourier_transforms(name: str, mode: str) -> None:
    options = {} if name == "fftconvolve" else {"method": "fft"}
    for dtype in (np.float32, np.complex64):
        x, y = draw((5, 6), dtype), draw((3, 2), dtype, 1)
        function = getattr(jax.scipy.signal, name)
        compare(getattr(signal, name), function, x, y, mode, factor=64, **options)


@pytest.mark.parametrize("mode", MODES)
def test_by_fourier_transforms_along_some_axes(mode: str) -> None:
    x, y = draw((5, 6, 3)), draw((3, 1, 2), seed=1)
    expected = scipy.signal.fftconvolve(x, y, mode, axes=(0, -1))
    result = signal.fftconvolve(x, y, mode, axes=(0, -1))
    assert result.dtype == np.float32
    assert_close(np.asarray(result), expected, 64)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("first", "second"), [s for s in SHAPES if len(s[0]) == 2])
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_matrices(name: str, first: Any, second: Any, mode: str) -> None:
    for dtype in (np.float32, np.complex64):
        x, y = draw(first, dtype), draw(second, dtype, 1)
        compare(getattr(signal, name), getattr(jax.scipy.signal, name), x, y, mode, factor=16)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("boundary", "fillvalue"), [("wrap", 0), ("symm", 0), ("fill", 0), ("fill", 2.5)]
)
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_boundaries(name: str, boundary: str, fillvalue: float, mode: str) -> None:
    for first, second in (((5, 6), (3, 2)), ((4, 4), (4, 3)), ((3, 2), (4, 3))):
        x, y = draw(first), draw(second, seed=1)
        expected = getattr(scipy.signal, name)(x, y, mode, boundary, fillvalue)
        result = getattr(signal, name)(x, y, mode, boundary, fillvalue)
        assert_close(np.asarray(result), expected, 16)


def test_compiled() -> None:
    x, y = draw((40, 30)), draw((5, 4), seed=1)
    result = axir.jit(lambda x, y: signal.convolve2d(x, y, "same", "symm"))(x, y)
    assert_close(np.asarray(result), scipy.signal.convolve2d(x, y, "same", "symm"), 64)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("convolve", (np.ones((2, 2)), np.ones(2)), "(2, 2)"),
        ("convolve", (np.ones((2, 5)), np.ones((5, 2)), "valid"), "'valid'"),
        ("convolve", (np.ones(0), np.ones(2)), "(0,)"),
        ("convolve", (np.ones(3), np.ones(2), "most"), "'most'"),
        ("convolve", (np.ones(3), np.ones(2), "full", "slow"), "'slow'"),
        ("correlate", (np.ones(3), np.ones(2), "full", "slow"), "'slow'"),
        ("convolve2d", (np.ones(3), np.ones(2)), "matrices"),
        ("fftconvolve", (np.ones((3, 2)), np.ones((2, 4)), "full", 0), "axis 1"),
    ],
)
def test_errors(name: str, arguments: Any, text: str) -> None:
    theirs = getattr(jax.scipy.signal, name)
    error = same_error(getattr(signal, name), theirs, *arguments)
    assert text in str(error)


def test_boundary_without_a_known_name() -> None:
    with pytest.raises(ParameterError, match="'round'"):
        signal.convolve2d(np.ones((3, 2)), np.ones((2, 2)), boundary="round")
