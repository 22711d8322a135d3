"""`axir.numpy.fft` and `axir.scipy.fft` against JAX, NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.scipy.fft
import numpy as np
import pytest
import scipy.fft
from support.against_jax import Weak, compare, same_error

import axir
import axir.numpy as jnp
import axir.scipy.fft
from axir.dialect.core.errors import AxisError, NonArrayArgumentError, ParameterError

ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO_AXES = ("fft2", "ifft2", "rfft2", "irfft2")
SEVERAL_AXES = ("fftn", "ifftn", "rfftn", "irfftn")
OF_REALS = ("rfft", "ihfft", "rfft2", "rfftn")
COSINES = ("dct", "idct", "dctn", "idctn")


def draw(*shape: int, is_real: bool = False) -> np.ndarray:
    rng = np.random.default_rng(shape)
    x = rng.normal(size=shape).astype(np.float32)
    return x if is_real else x + 1j * rng.normal(size=shape).astype(np.float32)


def both(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    if name in COSINES:
        return getattr(axir.scipy.fft, name), getattr(jax.scipy.fft, name)
    return getattr(jnp.fft, name), getattr(jax.numpy.fft, name)


def check(name: str, *args: Any, **kwargs: Any) -> None:
    compare(*both(name), *args, **kwargs)


def fails(name: str, *args: Any, **kwargs: Any) -> str:
    return str(same_error(*both(name), *args, **kwargs))


# Transforms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_AXIS)
def test_one_axis(name: str) -> None:
    x = draw(3, 5, is_real=name in OF_REALS)
    check(name, x)
    check(name, x, axis=0)
    for n in (1, 4, 5, 8):
        check(name, x, n=n, axis=-2)
    for norm in (None, "backward", "ortho", "forward"):
        check(name, x, 4, norm=norm)


@pytest.mark.parametrize("name", TWO_AXES)
def test_two_axes(name: str) -> None:
    x = draw(2, 3, 4, is_real=name in OF_REALS)
    check(name, x)
    check(name, x, s=(5, 2), norm="ortho")
    check(name, x, axes=(2, 0))


@pytest.mark.parametrize("name", SEVERAL_AXES)
def test_several_axes(name: str) -> None:
    x = draw(2, 3, 4, is_real=name in OF_REALS)
    check(name, x)
    check(name, x, axes=(1,))
    check(name, x, axes=(2, 0), norm="forward")
    check(name, x, s=(3, 7))
    check(name, x, s=(4,), axes=(0,), norm="ortho")
    check(name, x, axes=())


@pytest.mark.parametrize("name", SEVERAL_AXES)
def test_more_axes_than_the_operation_takes(name: str) -> None:
    x = draw(2, 3, 2, 3, 4, is_real=name in OF_REALS)
    # Only where JAX makes the real axis last are four axes and more compared with it.
    result = getattr(jnp.fft, name)(x)
    expected = getattr(np.fft, name)(x.astype(np.complex128 if np.iscomplexobj(x) else float))
    np.testing.assert_allclose(result, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "float32"])
def test_dtypes(dtype: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(jax.numpy.dtype(dtype))
    for name in ("fft", "ifftn", "irfft", "hfft"):
        check(name, x)
    if dtype not in ("float16", "bfloat16"):
        check("rfft", x)
        check("ihfft", x)


def test_weak_operands_give_strong_results() -> None:
    check("fft", Weak(np.full(2, 3.0)))
    check("rfftn", Weak(np.full(2, 3.0)))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_no_elements(norm: str) -> None:
    check("fft", draw(2, 0), norm=norm)
    check("ifft", draw(2, 0), axis=0, norm=norm)
    check("fftn", draw(2, 0), norm=norm)
    check("irfft", draw(2, 1), norm=norm)


def test_double_precision() -> None:
    with axir.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(4, 101))
        result = np.asarray(jnp.fft.irfft(jnp.fft.rfft(x), 101))
    assert result.dtype == np.float64
    assert np.abs(result - x).max() < 1e-14


def test_compiled_batched_and_differentiated() -> None:
    x = draw(4, 40, is_real=True)

    def power(row: Any) -> Any:
        return (jnp.abs(jnp.fft.rfft(row, norm="ortho")) ** 2).sum()

    def reference(row: Any) -> Any:
        return (jax.numpy.abs(jax.numpy.fft.rfft(row, norm="ortho")) ** 2).sum()

    ours = np.asarray(axir.jit(axir.vmap(axir.grad(power)))(x))
    np.testing.assert_allclose(ours, jax.vmap(jax.grad(reference))(x), atol=1e-5)


@pytest.mark.parametrize("name", [*ONE_AXIS, *SEVERAL_AXES])
def test_errors_of_transforms(name: str) -> None:
    x = draw(2, 3, is_real=name in OF_REALS)
    with pytest.raises(ParameterError, match="'ortho'"):
        getattr(jnp.fft, name)(x, norm="unitary")
    lengths = {"n": 0} if name in ONE_AXIS else {"s": (3, -1)}
    with pytest.raises(ParameterError, match="not positive"):
        getattr(jnp.fft, name)(x, **lengths)
    axes = {"axis": 2} if name in ONE_AXIS else {"axes": (0, 2)}
    assert "out of bounds" in fails(name, x, **axes)
    with pytest.raises(NonArrayArgumentError, match="jnp.array"):
        getattr(jnp.fft, name)([1.0, 2.0])


def test_further_errors() -> None:
    x = draw(2, 3)
    assert "one axis" in fails("fft", x, axis=(0, 1))
    assert "twice" in fails("fftn", x, axes=(0, 0))
    assert "one length for each axis" in fails("fftn", x, s=(2,), axes=(0, 1)).lower()
    assert "two axes" in fails("fft2", x, axes=(0,))
    assert "real valued" in fails("rfft", x)
    with pytest.raises(ParameterError, match="3 lengths in s"):
        jnp.fft.fftn(x, s=(2, 2, 2))
    with pytest.raises(ParameterError, match="not an integer"):
        jnp.fft.fft(x, n=2.5)
    with pytest.raises(AxisError):
        jnp.fft.fft(np.float32(1))


# Frequencies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(name: str, n: int) -> None:
    check(name, n)
    check(name, n, 0.25)
    check(name, n, d=0.1, dtype=np.float16)
    check(name, n, np.float32(3))


def test_traced_distance() -> None:
    result = axir.jit(lambda d: jnp.fft.fftfreq(4, d))(0.5)
    np.testing.assert_array_equal(result, [0, 0.5, -1, -0.5])


def test_frequencies_without_samples() -> None:
    check("fftfreq", 0)
    check("rfftfreq", 0)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_errors_of_frequencies(name: str) -> None:
    with pytest.raises(ParameterError, match="integer"):
        getattr(jnp.fft, name)([1, 2])
    with pytest.raises(ParameterError, match="must be real"):
        getattr(jnp.fft, name)(4, 1j)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name: str) -> None:
    check(name, np.arange(5))
    check(name, np.arange(12).reshape(3, 4))
    check(name, np.arange(12).reshape(3, 4), axes=-1)
    check(name, np.arange(24).reshape(2, 3, 4), axes=(2, 0))
    fails(name, np.arange(3), axes=1)


# Cosine transforms -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dct", "idct"])
@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_cosine_transforms(name: str, length: int) -> None:
    x = draw(3, length, is_real=True)
    for norm in (None, "backward", "ortho"):
        check(name, x, norm=norm)
    check(name, x, n=3, axis=0)
    check(name, x, n=7)
    expected = getattr(scipy.fft, name)(x.astype(float), axis=0)
    result = getattr(axir.scipy.fft, name)(x, axis=0)
    np.testing.assert_allclose(result, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["dctn", "idctn"])
def test_cosine_transforms_of_several_axes(name: str) -> None:
    x = draw(2, 3, 4, is_real=True)
    check(name, x)
    check(name, x, norm="ortho")
    check(name, x, s=(4, 3))
    check(name, x, axes=(0, 2), s=(3, 5), norm="ortho")
    check(name, x, axes=1)


@pytest.mark.parametrize("dtype", ["int32", "float16", "bool"])
def test_dtypes_of_cosine_transforms(dtype: str) -> None:
    check("dct", np.arange(5).astype(dtype))


def test_cosine_transforms_of_complex_numbers() -> None:
    x = draw(5)
    for name in ("dct", "idct"):
        result = np.asarray(both(name)[0](x))
        np.testing.assert_allclose(result, getattr(scipy.fft, name)(x), atol=1e-5)


def test_gradient_of_a_cosine_transform() -> None:
    x = draw(6, is_real=True)
    ours = axir.grad(lambda x: (axir.scipy.fft.dct(x, norm="ortho") ** 2).sum())(x)
    np.testing.assert_allclose(ours, 2 * x, atol=1e-5)  # the transform is orthogonal


def test_errors_of_cosine_transforms() -> None:
    x = draw(2, 3, is_real=True)
    for name in COSINES:
        assert "only type 2" in fails(name, x, type=3)
        assert "ortho" in fails(name, x, norm="forward")
    assert "out of bounds" in fails("dct", x, axis=2)
    with pytest.raises(ParameterError, match="not positive"):
        axir.scipy.fft.idct(x, n=0)
    with pytest.raises(ParameterError, match="different lengths"):
        axir.scipy.fft.dctn(x, s=(2,), axes=(0, 1))
