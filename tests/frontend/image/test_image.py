"""`axir.image` against JAX, with derivatives and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import compare

import axir
import axir.numpy as jnp
from axir import image
from axir.image import ResizeMethod

X = np.random.default_rng(0).standard_normal((2, 7, 5)).astype(np.float32)
METHODS = ("linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area")
SHAPES = ((2, 4, 9), (1, 11, 3))
FACTOR = 256.0


@pytest.mark.parametrize("method", [*METHODS, "nearest"])
def test_sizes_are_jaxs(method: str) -> None:
    for arguments in zip(SHAPES, (method, method), (True, False), strict=True):
        ours, theirs = (lambda x, m=m, a=arguments: m.image.resize(x, *a) for m in (axir, jax))
        compare(ours, theirs, X, factor=FACTOR)


@pytest.mark.parametrize("method", ["linear", "cubic-pytorch", "lanczos3", "area"])
def test_scaling_and_moving_are_jaxs(method: str) -> None:
    scale, move = np.array([1.5, 0.4], np.float32), np.array([-2.0, 1.25], np.float32)
    for antialias in (True, False) if method in ("linear", "cubic-pytorch") else (True,):
        arguments = ((2, 9, 6), (1, 2), scale, move, method, antialias)
        ours, theirs = (
            lambda x, m=m, a=arguments: m.image.scale_and_translate(x, *a) for m in (axir, jax)
        )
        compare(ours, theirs, X, factor=FACTOR)


def test_dtypes() -> None:
    numbers = np.arange(6).reshape(2, 3)
    assert image.resize(numbers, (4, 3), "nearest").dtype == np.int32
    assert image.resize(numbers, (4, 3), "linear").dtype == np.float32
    assert image.resize(numbers.astype(np.float16), (4, 3), "cubic").dtype == np.float16
    with axir.enable_x64(True):
        compare(
            lambda x: image.resize(x, (2, 4, 9), "cubic"),
            lambda x: jax.image.resize(x, (2, 4, 9), "cubic"),
            X,
            factor=FACTOR,
        )
        result = image.resize(X.astype(np.float64), (2, 4, 9), "lanczos3")
    assert result.dtype == np.float64
    np.testing.assert_allclose(
        result, jax.image.resize(X, (2, 4, 9), "lanczos3"), rtol=1e-3, atol=1e-5
    )


def test_a_large_image_shrinks_by_whole_pixels() -> None:
    x = np.arange(3 * 40, dtype=np.float32).reshape(3, 40)
    expected = x.reshape(3, 10, 4).mean(-1)
    np.testing.assert_allclose(image.resize(x, (3, 10), "area"), expected, rtol=1e-6)


def test_compiled_with_derivatives() -> None:
    def loss(m: Any) -> Callable[..., Any]:
        def function(x: Any, scale: Any, move: Any) -> Any:
            total = 0.0
            for method in ("linear", "cubic"):
                moved = m.image.scale_and_translate(x, (2, 6, 6), (1, 2), scale, move, method)
                total += (moved**2).sum() + (m.image.resize(x, (2, 3, 9), method) ** 3).sum()
            return total

        return m.grad(function, argnums=(0, 1, 2))

    arguments = X, np.array([1.31, 0.83], np.float32), np.array([0.13, -0.41], np.float32)
    results = axir.jit(loss(axir))(*arguments)
    for ours, theirs in zip(results, loss(jax)(*arguments), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)


def test_empty_images() -> None:
    assert image.resize(jnp.ones((0, 3)), (0, 5), "linear").shape == (0, 5)
    assert image.resize(jnp.ones((4, 3)), (0, 5), "cubic").shape == (0, 5)
    np.testing.assert_array_equal(image.resize(jnp.ones((0,)), (2,), "nearest"), [0, 0])


def test_names_of_methods() -> None:
    assert [m.name for m in ResizeMethod] == [m.name for m in jax.image.ResizeMethod]
    for name in ("nearest", "triangle", "tricubic", "bicubic-pytorch", "lanczos5"):
        theirs = jax.image.ResizeMethod.from_string(name)
        assert ResizeMethod.from_string(name).name == theirs.name


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: image.resize(X, (2, 3), "linear"), "ShapeError", "has 2 extents"),
        (lambda: image.resize(X, (2, 3, -1), "linear"), "ParameterError", "negative"),
        (lambda: image.resize(X, (2, 3, 4), "linea"), "ParameterError", "'linea'"),
        (
            lambda: image.scale_and_translate(X, X.shape, (0,), np.ones(1), np.ones(1), "nearest"),
            "ParameterError",
            "'nearest'",
        ),
        (
            lambda: image.scale_and_translate(X, X.shape, (0,), np.ones(2), np.ones(1), "linear"),
            "ShapeError",
            "scale is of shape (2,)",
        ),
        (
            lambda: image.scale_and_translate(X, (2, 7, 6), (0,), np.ones(1), np.ones(1), "cubic"),
            "ShapeError",
            "axis 2 is to change",
        ),
    ],
)
def test_errors(call: Callable[[], Any], error: str, text: str) -> None:
    with pytest.raises(axir.errors.AxirError) as caught:
        call()
    assert type(caught.value).__name__ == error
    assert text in str(caught.value)
